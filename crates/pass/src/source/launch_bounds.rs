//! `launch-bounds`: promise a block size in CUDA C.
//!
//! Goal: nvcc and ptxas plan for the blocks that there are, not for 1,024 threads (CUDA C++ Programming
//! Guide, launch bounds); in the source, where the next build keeps it. A launch with larger blocks fails.
//!
//! Requires a kernel that is no template and has no bounds yet. Preserves the rest of the file byte by byte,
//! and the PTX that nvcc makes of it but for its directive.

use warpwright_target::THREADS_PER_BLOCK;

use crate::pass::{Caution, Fuel, Outcome, Pass, Rewritten, Work};
use crate::refusal::Refusal;
use crate::reliance::Footprint;
use crate::site::SourceSite;

/// The pass.
#[derive(Debug, Clone, Copy)]
pub struct LaunchBounds {
    /// Threads per block.
    pub threads: u32,
}

crate::options!(LaunchBounds: [threads "threads per block" in 1..=THREADS_PER_BLOCK]; []);

impl Pass for LaunchBounds {
    const NAME: &'static str = "launch-bounds";
    const ABOUT: &'static str =
        "promise a block size in CUDA C by __launch_bounds__; larger launches fail";
    const FOOTPRINT: Footprint = Footprint::Registers;

    fn work(&self) -> Work<Self> {
        Work::Source(promise)
    }
}

fn promise(pass: &LaunchBounds, site: &SourceSite, fuel: &mut Fuel) -> Outcome<String> {
    let (file, kernel) = site.cuda()?;
    let text = &file.source.text;
    let name = kernel.name.span.start;
    let head = text.get(kernel.span.start..name).unwrap_or_default();
    if kernel.nested || head.contains("__launch_bounds__") {
        return Err(Refusal::InTheWay("it is a template, or has launch bounds"));
    }
    if !fuel.burn() {
        return Ok(Rewritten::new(text.to_string()));
    }
    let threads = pass.threads;
    let text = file.replace(vec![(name..name, format!("__launch_bounds__({threads}) "))]);
    Ok(Rewritten::new(text).careful([Caution::BlockBound { threads }]))
}
