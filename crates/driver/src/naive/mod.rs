//! Naive kernels from source to source.
//!
//! * `problem`: a kernel of a file, and the text that a version of it becomes.
//! * `trial`: at which sizes a version is tried; `ladder`: a version against the input in the PTX emulator.
//!
//! Input and output are the caller's: what compiles is a closure.

mod ladder;
mod problem;
mod trial;

pub use ladder::{Checked, Fall, Rung, climb};
pub use problem::{Output, Problem};
