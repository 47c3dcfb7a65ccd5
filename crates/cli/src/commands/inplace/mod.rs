//! Kernels inside a program that runs: `trace`, `with`, `tune -- PROGRAM`, and the store of winners.
//!
//! * [`program`]: starting a program with the library in it; [`environment`]: its variables.
//! * [`document`]: the file of a trace, and reading it again.
//! * [`hint`]: what a sentence can say about a kernel.
//! * [`stdin`]: what it reads; [`shown`]: what it writes; [`work`]: a folder to work in; [`limits`]: what that takes.
//! * [`verify`]: winners from elsewhere are proved.
//! * [`candidates`]: what the pipeline proposes for a kernel; [`search`]: what is tried next while the program waits.
//! * [`no_gpu`]: a program on the stand-in for CUDA.
//! * [`trace`], [`with`], [`tune`], [`db`]: the commands.

mod caches;
mod candidates;
pub mod db;
pub mod document;
mod environment;
mod kept;
mod limits;
pub mod no_gpu;
pub mod program;
mod search;
mod shown;
mod stdin;
pub mod trace;
pub mod tune;
mod verify;
pub mod with;
pub mod work;
