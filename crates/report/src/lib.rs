//! Result documents to tables, plots and self-contained HTML pages.
//!
//! * [`page`]: the HTML page of a document that `opt`, `explain` or `tune` printed with `--json`.
//! * [`crat`]: CRAT and You & Tsai on a result file, beside the papers' claims.
//! * [`spills`]: the ways to spill, at the same register limit.
//! * [`suite`]: the benchmark suite's result files as Markdown tables and figures.
//! * [`svg`]: the two kinds of plot, as SVG text without scripts or outside references.
//!
//! Everything is text in, text out; the command line writes the files.

pub mod crat;
mod page;
pub mod spills;
pub mod stencils;
pub mod suite;
pub mod svg;

pub use page::page;

/// A page or table could not be made.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// The document is of a kind that has no page.
    #[error("a document of schema `{0}` has no page")]
    UnknownSchema(String),
    /// The template and the document do not fit.
    #[error("the page could not be rendered: {0}")]
    Template(#[from] minijinja::Error),
    /// A Markdown file lacks the markers between which a table belongs.
    #[error("the file has no `<!-- {0} -->` … `<!-- /{0} -->` markers")]
    NoMarkers(String),
}
