//! Kernels inside a program that runs: `trace`, `with`, `tune -- PROGRAM`, and the store of winners.
//!
//! * [`program`]: starting a program with the library in it; [`environment`]: its variables; [`needs`]:
//!   what it must have first.
//! * [`document`]: the file of a trace, and reading it again.
//! * [`stdin`]: what it reads; [`shown`]: what it writes; [`work`]: a folder to work in; [`limits`]: what that takes.
//! * [`watch`]: what the search and the proofs (`warpwright_autotune`) tell meanwhile.
//! * [`no_gpu`]: a program on the stand-in for CUDA.
//! * [`trace`], [`with`], [`tune`], [`db`]: the commands.

pub mod db;
pub mod document;
mod environment;
mod limits;
mod needs;
pub mod no_gpu;
pub mod program;
mod shown;
mod stdin;
pub mod trace;
pub mod tune;
mod watch;
pub mod with;
pub mod work;
