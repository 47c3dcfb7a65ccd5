//! Kernels inside a program that runs: `trace`, `with`, `tune -- PROGRAM`, and the store of winners.
//!
//! * [`program`]: starting a program with the library in it.
//! * [`document`]: the file of a trace, and reading it again.
//! * [`hint`]: what a sentence can say about a kernel.
//! * [`candidates`]: what the pipeline proposes for a kernel.
//! * [`trace`], [`with`], [`tune`], [`db`]: the commands.

mod candidates;
pub mod db;
pub mod document;
mod program;
pub mod trace;
pub mod tune;
pub mod with;
