//! The filetest harness: a file's header says which test to run, its comments what to expect.
//!
//! `lab/filetest/README.md` describes the format. A [`Registry`] maps the names after `// test:` to
//! functions from a [`Case`] to text; [`run_all`] makes one test of every file under some folders.
//! With `WARPWRIGHT_BLESS=1` the expectations are rewritten to what the tests say now.

mod case;
pub mod commands;
mod harness;

pub use case::{Case, Expectation, Test};
pub use harness::{Command, Registry, Run, check_file, run_all};
