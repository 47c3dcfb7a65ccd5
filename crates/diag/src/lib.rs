//! Labelled diagnostics about a source text (PTX, CUDA C, the stencil language), their rendering, counted words,
//! what is wrong in words, and text as a terminal may have it.

mod count;
mod diagnostic;
mod excerpt;
mod nearest;
mod printable;
mod problem;
pub mod span;

pub use count::{count, plural};
pub use diagnostic::{Diagnostic, Report, Severity, SourceText, render_all};
pub use nearest::nearest;
pub use printable::{is_control, printable};
pub use problem::Problem;
pub use span::{LineCol, LineIndex, Span};
