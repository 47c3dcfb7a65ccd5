//! Naive kernels from source to source.
//!
//! * `problem`: a kernel of a file, and the text that a version of it becomes.
//! * `choose`: what a kernel is, and the first schedule in the order of the predictions that agrees.
//! * `trial`: at which sizes a version is tried; `ladder`: a version against the input in the PTX emulator.
//!
//! Input and output are the caller's: what compiles is a closure.

mod choose;
mod ladder;
mod problem;
mod trial;

pub use choose::{Chosen, Kind, MARGIN, Version, choose, kind};
pub use ladder::{Checked, Fall, Rung, climb};
pub use problem::{Output, Problem};
