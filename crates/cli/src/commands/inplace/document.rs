//! The file of a trace.

use std::path::Path;
use std::sync::Arc;

use warpwright_autotune::draft::other_block;
use warpwright_pass::names::is_named;
use warpwright_target::lookup;

use crate::args::{KernelArgs, StatedBlock};
use crate::failure::Failure;

pub use warpwright::trace::{Launched, Trace};

/// Reads a trace.
pub fn read(path: &Path) -> Result<Trace, Failure> {
    let text = warpwright_files::text(path)?;
    Ok(Trace::parse(&path.display().to_string(), &text)?)
}

/// Puts grid, block size and dynamic shared memory of `--trace` where `--block` and `--dynamic-smem` would be: those
/// of the class that cost the kernel most. Dynamic shared memory that is stated beside it stands. Where several kernels
/// were launched, a command that looks at all of them goes by the trace.
pub fn apply(args: &KernelArgs, is_of_all: bool) -> Result<KernelArgs, Failure> {
    let mut args = args.clone();
    let Some(path) = args.trace.take() else {
        return Ok(args);
    };
    let trace = read(&path)?;
    let named = args.kernels.clone();
    let wanted =
        |l: &&Launched| named.is_empty() || named.iter().any(|name| is_named(name, &l.kernel));
    let mut kernels: Vec<&str> = trace
        .launches
        .iter()
        .filter(wanted)
        .map(|l| &*l.kernel)
        .collect();
    kernels.sort_unstable();
    kernels.dedup();
    if is_of_all && kernels.len() > 1 {
        args.gpu = args.gpu.or_else(|| gpu(&trace));
        args.seen = Some(Arc::new(trace));
        return Ok(args);
    }
    let [_] = kernels[..] else {
        let what = match (named.first(), kernels.len()) {
            (Some(name), 0) => format!("has no launch of `{name}`"),
            (None, 0) => "has no launch".to_owned(),
            (_, n) => format!("has launches of {n} kernels; choose one with --kernel"),
        };
        return Err(Failure::input(format!("`{}` {what}", path.display())));
    };
    let dearest = trace.launches.iter().find(|l| wanted(l));
    if let Some(launched) = dearest {
        args.kernels = vec![launched.kernel.clone()];
        match args.block_of(&launched.kernel) {
            None => args.block.push(StatedBlock {
                kernel: None,
                dims: launched.block,
            }),
            Some(stated) if stated == launched.block => {}
            Some(_) => return Err(Failure::Usage(other_block(launched.block))),
        }
        args.dynamic_smem = args.dynamic_smem.or(Some(launched.dynamic_smem));
        args.traced = Some((launched.grid, launched.block, launched.dynamic_smem));
        args.gpu = args.gpu.or_else(|| gpu(&trace));
        args.traced_in = Some(Arc::new(trace));
    }
    Ok(args)
}

/// The GPU of a trace, as `--gpu` names it.
fn gpu(trace: &Trace) -> Option<String> {
    let gpu = trace.gpu.as_ref()?;
    Some(match lookup(&gpu.name) {
        Ok(_) => gpu.name.clone(),
        Err(_) => format!("sm_{}", gpu.sm),
    })
}
