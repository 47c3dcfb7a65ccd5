//! Faster CUDA kernels after the compiler.
//!
//! PTX, a cubin, a file with cubins in it, or CUDA C goes in as an [`Input`]; [`Optimizer::optimise`] gives back the
//! better build with the reasons, [`Optimizer::explain`] says what limits a kernel, [`Optimizer::check`] whether one
//! kernel is a correct version of another.
//!
//! ```no_run
//! use warpwright::{Input, Options, Optimizer, gpu};
//!
//! let input = Input::new("kernel.ptx", std::fs::read("kernel.ptx")?)?;
//! let options = Options {
//!     gpu: Some(gpu("h200")?),
//!     block: Some([256, 1, 1]),
//!     ..Options::default()
//! };
//! let outcome = Optimizer::new()?.optimise(&input, &options)?;
//! print!("{}", outcome.report.screen(false));
//! std::fs::write("kernel.cubin", outcome.code)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! `cargo install warpwright` installs the command line that is made of this. A library wants
//! `default-features = false`: without the feature `cli` there are no programs.

#[doc(inline)]
pub use warpwright_api::*;
