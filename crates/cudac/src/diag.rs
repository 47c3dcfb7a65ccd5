//! The source text that the diagnostics of this room are about.

use std::ops::Range;
use std::sync::Arc;

pub use warpwright_diag::{Diagnostic, Report, SourceText, render_all};

/// A half-open range of bytes in a source text.
pub type Span = Range<usize>;

/// A text and the name under which diagnostics show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// The file's name, as the user wrote it.
    pub name: String,
    /// Its contents.
    pub text: Arc<str>,
}

impl Source {
    /// A source text.
    pub fn new(name: impl Into<String>, text: impl Into<Arc<str>>) -> Self {
        Source {
            name: name.into(),
            text: text.into(),
        }
    }
}

impl SourceText for Source {
    fn name(&self) -> &str {
        &self.name
    }

    fn text(&self) -> &Arc<str> {
        &self.text
    }
}
