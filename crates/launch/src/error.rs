//! Labelled errors: what is wrong, and where in the description.

use std::ops::Range;
use std::sync::Arc;

/// The description's text and where it came from, shared by all errors about it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Source {
    pub path: String,
    pub text: String,
}

/// Something is wrong with a launch description.
///
/// Displays as `path:line:column: message`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}:{}:{}: {message}", .source_text.path, self.line(), self.column())]
pub struct LaunchError {
    /// What is wrong, in one sentence without a final stop.
    pub message: String,
    /// The bytes of the description that it is about; empty at 0 if it is about the whole.
    pub span: Range<usize>,
    source_text: Arc<Source>,
}

impl LaunchError {
    pub(crate) fn new(
        source: &Arc<Source>,
        span: Range<usize>,
        message: impl Into<String>,
    ) -> LaunchError {
        LaunchError {
            message: message.into(),
            span,
            source_text: Arc::clone(source),
        }
    }

    /// The description's path, as it was given to `LaunchFile::parse`.
    pub fn path(&self) -> &str {
        &self.source_text.path
    }

    /// The description's whole text, for showing the labelled line.
    pub fn text(&self) -> &str {
        &self.source_text.text
    }

    /// The line, from 1.
    pub fn line(&self) -> usize {
        1 + self.head().bytes().filter(|&b| b == b'\n').count()
    }

    /// The column in characters, from 1.
    pub fn column(&self) -> usize {
        let line = self.head().rsplit('\n').next().unwrap_or("");
        1 + line.chars().count()
    }

    /// The text before the label.
    fn head(&self) -> &str {
        let text = &self.source_text.text;
        text.get(..self.span.start).unwrap_or(text)
    }
}
