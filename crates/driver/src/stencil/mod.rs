//! Stencils from source to source.
//!
//! * `problem`: the input, and the text that a version of it becomes.
//! * `versions`: the ways to compute it among which `opt` and `tune` choose, each with a prediction; the kernel as
//!   written is one of them.
//! * `ladder`: a version against the input, in the PTX emulator at odd and tiny sizes; `trial` has the sizes.
//! * `choose`: the first version in the order of the predictions that agrees.
//! * `result`: what is measured of them.
//!
//! Input and output are the caller's: what compiles is a closure.

mod choose;
mod ladder;
mod problem;
mod result;
mod trial;
mod versions;

pub use choose::{Chosen, MARGIN, Verdict, choose};
pub use ladder::{Checked, Comparison, CompileError, Fall, Memory, Rung, climb};
pub use problem::{Launch, Output, Problem};
pub use result::{Measured, SCHEMA, StencilResult, distance, odd_sizes, reference, tolerance};
pub use trial::small_sizes;
pub use versions::{Family, Version, Way, versions};
