//! Labelled diagnostics about a source text (PTX, CUDA C, the stencil language), their rendering, and counted words.

mod count;
mod diagnostic;
mod excerpt;
mod nearest;
pub mod span;

pub use count::{count, plural};
pub use diagnostic::{Diagnostic, Report, Severity, SourceText, render_all};
pub use nearest::nearest;
pub use span::{LineCol, LineIndex, Span};
