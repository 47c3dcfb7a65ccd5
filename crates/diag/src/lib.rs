//! Labelled diagnostics about a source text (PTX, CUDA C, the stencil language), and their rendering.

mod diagnostic;
mod excerpt;
mod nearest;
pub mod span;

pub use diagnostic::{Diagnostic, Report, Severity, SourceText, render_all};
pub use nearest::nearest;
pub use span::{LineCol, LineIndex, Span};
