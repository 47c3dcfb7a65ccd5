//! What is known of a file's own launches, for the commands that go by them.

use std::time::Instant;

use warpwright::source::read::{File, read};
use warpwright::source::sizes::OwnSizes;
use warpwright::trace::Trace;
use warpwright::{Counted, Input, Level};
use warpwright_autotune::launches::{Stated, counted as counted_in};
use warpwright_autotune::own_run::{BUDGET, DOING, Ran, Wanted, run, until};
use warpwright_target::Gpu;

use super::inplace::watch::Told;
use crate::args::{Cli, KernelArgs, OwnArgs};
use crate::failure::Failure;
use crate::{progress, session};

/// What takes time, in words.
pub const LOOKING: &str = "looking for a launch to count";

impl OwnArgs {
    /// How the file's own program is to run.
    pub fn wanted<'a>(
        &'a self,
        nvcc: &'a [String],
        (budget, gpu): (f64, Option<&'a Gpu>),
    ) -> Wanted<'a> {
        Wanted {
            run_args: self.run_args.as_deref(),
            no_run: self.no_run,
            run_memory: self.run_memory,
            nvcc,
            budget,
            gpu,
        }
    }
}

/// Are launches stated otherwise than by a run?
pub fn is_stated(kernel: &KernelArgs) -> bool {
    let is_traced = kernel.traced.is_some() || kernel.seen.is_some();
    kernel.launch.is_some() || kernel.trace.is_some() || is_traced
}

/// Runs the program of a file, if it has one, and says on standard error what came of it. Nobody wants to see a run whose
/// launches are stated otherwise.
pub fn ran(
    cli: &Cli,
    input: &Input,
    kernel: &KernelArgs,
    wanted: Wanted<'_>,
) -> Result<Option<Ran>, Failure> {
    if is_stated(kernel) {
        return Ok(None);
    }
    let tools = session::tools(cli, wanted.nvcc)?;
    Ok(run(&tools, input, wanted, &Told(cli)))
}

/// The launches whose executions are counted.
pub fn counted(
    cli: &Cli,
    of: (&Input, Option<&File>),
    kernel: &KernelArgs,
    nvcc: &[String],
    seen: (Option<&Ran>, Instant),
) -> Result<Vec<Counted>, Failure> {
    let gpu = session::named_gpu(kernel.gpu.as_deref())?;
    let stated = Stated {
        kernels: &kernel.kernels,
        gpu: gpu.as_ref(),
        block_of: &|symbol| kernel.block_of(symbol),
        dynamic_smem: kernel.dynamic_smem,
        traced: kernel.traced,
        traced_in: kernel.traced_in.as_deref(),
        is_traced: kernel.trace.is_some(),
        launch: kernel.launch.as_deref(),
        size: kernel.size.as_deref(),
    };
    Ok(counted_in(&session::tools(cli, nvcc)?, of, &stated, seen)?)
}

/// The sizes at which a file's kernels are launched, for a rewrite: of the launch that is described, else of that which the
/// file's program makes, else of that in its code, for which no guess is tried after so many seconds.
pub fn sizes(
    cli: &Cli,
    input: &Input,
    kernel: &KernelArgs,
    (own, nvcc, budget): (&OwnArgs, &[String], f64),
) -> Result<OwnSizes, Failure> {
    if input.level != Level::Cuda {
        return Ok(OwnSizes::default());
    }
    let file = &read(&session::tools(cli, nvcc)?, input, None)?;
    let gpu = session::named_gpu(kernel.gpu.as_deref())?;
    let wanted = own.wanted(nvcc, (budget.max(BUDGET), gpu.as_ref()));
    let ran = progress::waiting(DOING, || ran(cli, input, kernel, wanted))?;
    let of = (input, Some(file));
    let all = counted(cli, of, kernel, nvcc, (ran.as_ref(), until(budget)))?;
    Ok(OwnSizes::of(file, &all))
}

/// What is known of launches: the program's own, or those of a trace that was named.
pub fn known(ran: Option<&Ran>, kernel: &KernelArgs) -> Vec<Trace> {
    match ran {
        Some(ran) => ran.traces().cloned().collect(),
        None => kernel.seen.as_deref().cloned().into_iter().collect(),
    }
}
