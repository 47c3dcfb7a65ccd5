//! Kernels inside a program that runs: `trace`, `with`, `tune -- PROGRAM`, and the store of winners.
//!
//! * [`document`]: the file of a trace, and reading it again.
//! * [`end`]: how a command ends behind its program, which `warpwright_supervise` runs.
//! * [`watch`]: what the search and the proofs (`warpwright_autotune`) tell meanwhile.
//! * [`trace`], [`with`], [`tune`], [`db`]: the commands.

pub mod db;
pub mod document;
pub mod end;
pub mod trace;
pub mod tune;
pub mod watch;
pub mod with;
