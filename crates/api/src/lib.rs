//! Faster CUDA kernels after the compiler.
//!
//! PTX, a cubin, a file with cubins in it, or CUDA C goes in as an [`Input`]; [`Optimizer::optimise`] gives back the better
//! build with the reasons, [`Optimizer::explain`] says what limits a kernel, [`Optimizer::check`] whether one kernel is a
//! correct version of another. Everything is bytes in, value out: no file is read or written but by NVIDIA's tools and
//! their cache. The command line and the Python package are made of this.
//!
//! * [`input`], [`error`]: what goes in and what goes wrong. [`device_code`]: the cubins of a file.
//! * [`front`]: CUDA C and PTX to a verified module.
//! * [`optimise`], [`explain`], [`check`]: the three things it does. [`source`]: kernels rewritten in CUDA C.
//! * [`passes`]: passes that are named. [`run`]: a kernel, run by its launch description. [`occupancy`]: the calculator. [`sass`]: machine code as text, and checked. [`bug`]: what a report about an input needs.
//! * [`trace`]: what a program was seen to launch. [`own_launch`]: what a file's own launches say. [`ran`]: what its program launched when it ran without a GPU.

pub mod bug;
pub mod check;
mod counts;
pub mod device_code;
pub mod error;
pub mod explain;
pub mod front;
pub mod input;
pub mod occupancy;
pub mod optimise;
pub mod own_launch;
mod parameters;
pub mod passes;
pub mod ran;
mod refused;
pub mod rewrite;
pub mod run;
pub mod sass;
pub mod source;
pub mod trace;

pub use check::{
    CheckOptions, Checked, Difference, Found, FunctionVerdict, Line, Promised, Rung, Side, Tried,
};
pub use device_code::DeviceCode;
pub use error::{Error, Fault};
pub use explain::Explained;
pub use input::{Input, Level};
pub use optimise::{Emit, Optimizer, Options, Outcome, Report, Unwatched, Watch};
pub use refused::{Made, RefusedPtx, placed};
pub use rewrite::{
    Beyond, InPlace, Limit, Precondition, Reason, RewriteOptions, Rewritten, Smallest, Word, shown,
    tells_little,
};
pub use warpwright_driver::{Candidate, KernelReport};
pub use warpwright_host::Counted;
pub use warpwright_launch::{Launch, LaunchFile};
pub use warpwright_pass::Recipe;
pub use warpwright_pass::names::source_name;
pub use warpwright_pass::witness::{Happens, Witness};
pub use warpwright_ptx::Module;
pub use warpwright_report::explain::Explanation;
pub use warpwright_report::page;
pub use warpwright_rewrite::{Bounded, Rounded, Which};
pub use warpwright_target::Gpu;
pub use warpwright_toolkit::Toolkit;

/// A GPU by name: `h200`, `a100`, `sm_90`, ….
///
/// ```
/// assert_eq!(warpwright_api::gpu("H200")?.arch.sm, 90);
/// assert!(warpwright_api::gpu("v100").is_err());
/// # Ok::<(), warpwright_api::Error>(())
/// ```
///
/// # Errors
/// [`Error::Gpu`] with the nearest names.
pub fn gpu(name: &str) -> Result<Gpu, Error> {
    Ok(warpwright_target::lookup(name)?)
}
