//! What is said of kernels and results: documents, and tables, plots and HTML pages of them.
//!
//! * [`screen`]: what `opt` and `tune` print. [`glossary`]: words explained. [`table`]: plain-text tables.
//! * [`explain`](mod@explain): what there is to say before any choice.
//! * [`job`]: what travels between building and measuring; [`results`]: what comes back.
//! * [`accesses`]: coalescing and bank conflicts.
//! * [`cycles`]: where the cycles of a warp go, beside the source line.
//! * [`edit`]: what somebody would change in the source. [`local`]: arrays and parameters in local memory.
//! * [`page`]: the HTML page of a document that `opt`, `explain` or `tune` printed with `--json`.
//! * [`crat`]: CRAT and You & Tsai on a result file, beside the papers' claims.
//! * [`spills`]: the ways to spill, at the same register limit.
//! * [`suite`]: the benchmark suite's result files as Markdown tables and figures.
//! * [`tables`]: which tables stand where, and which kernels had a part in which decision.
//! * [`svg`]: the two kinds of plot, as SVG text without scripts or outside references.
//!
//! Everything is text in, text out; the command line writes the files.

pub mod accesses;
pub mod crat;
pub mod cycles;
pub mod edit;
pub mod explain;
pub mod glossary;
pub mod job;
mod listing;
pub mod local;
mod page;
mod plane;
pub mod results;
pub mod rewritten;
pub mod screen;
pub mod spills;
pub mod stencils;
pub mod suite;
pub mod svg;
pub mod table;
pub mod tables;

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
    /// A document does not hold what its schema says.
    #[error("the document is not in the form of its schema: {0}")]
    Document(#[from] serde_json::Error),
    /// A Markdown file lacks the markers between which a table belongs.
    #[error("the file has no `<!-- {0} -->` … `<!-- /{0} -->` markers")]
    NoMarkers(String),
    /// A file cannot be read.
    #[error("cannot read `{file}`: {source}")]
    Read {
        /// Its name.
        file: String,
        /// Why.
        source: std::io::Error,
    },
    /// A file is not in the form of what it should be.
    #[error("`{file}`: {source}")]
    Json {
        /// Its name.
        file: String,
        /// Where and why.
        source: serde_json::Error,
    },
    /// A document of another schema.
    #[error("`{file}`: schema `{found}`, wanted `{wanted}`")]
    Schema {
        /// Its name.
        file: String,
        /// Its schema.
        found: String,
        /// The one that is read.
        wanted: &'static str,
    },
    /// A table is made of nothing.
    #[error("too few result files (two to compare, else one)")]
    NoResults,
}
