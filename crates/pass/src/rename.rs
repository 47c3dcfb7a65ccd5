//! `rename`: a kernel goes through ptxas under another name, and gets its own back.
//!
//! Goal: ptxas makes other code of kernels whose name holds `cutlass`. Nothing documents it; on sm_90 it changes a quarter
//! of foreign kernels, for better or worse, so that only a measurement can choose it. What stands for the result is what
//! stands for any build: ptxas made it of the same PTX.
//!
//! Requires a module with one kernel to mean that kernel alone, and none that is used by its name. Preserves the PTX.

use crate::pass::{Pass, Work};
use crate::reliance::Footprint;

/// The pass.
#[derive(Debug, Clone, Copy)]
pub struct Rename {}

crate::options!(Rename: []; []);

/// What the name holds.
const SUFFIX: &str = "_cutlass";

impl Pass for Rename {
    const NAME: &'static str = "rename";
    const LABEL: &'static str = "name";
    const ABOUT: &'static str =
        "let ptxas see the kernel under a name with `cutlass` in it, of which it makes other code";
    const FOOTPRINT: Footprint = Footprint::Registers;

    fn work(&self) -> Work<Self> {
        Work::Assembler(|_, options| options.suffix = Some(SUFFIX))
    }
}
