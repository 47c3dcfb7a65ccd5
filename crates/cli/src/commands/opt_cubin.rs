//! `warpwright opt` for a finished cubin: kernel by kernel unchanged, or with its spills moved.

use warpwright_driver::context::Context;
use warpwright_driver::cubin;
use warpwright_driver::opt::DEFAULT_MARGIN;

use super::opt::{Document, finish, keep};
use crate::args::{Emit, OptArgs};
use crate::failure::Failure;
use crate::input::Input;
use crate::session;

/// Runs the command.
pub fn run(args: &OptArgs, input: &Input) -> Result<(), Failure> {
    if args.emit == Some(Emit::Ptx) || !args.nvcc.is_empty() {
        return Err(Failure::Usage(
            "FILE is a cubin: there is no PTX to write and nothing for nvcc to do".into(),
        ));
    }
    let launch = session::kernel_launch(&args.kernel)?;
    let context = Context {
        gpu: session::named_gpu(args.kernel.gpu.as_deref())?,
        kernel: args.kernel.kernel.as_deref(),
        block: args.kernel.block,
        dynamic_smem: args.kernel.dynamic_smem,
        launch: launch.as_ref(),
        ..Context::default()
    };
    let gpu = cubin::gpu(&input.bytes, context.gpu)?;
    if args
        .output
        .extension()
        .is_some_and(|ending| ending == "ptx")
    {
        return Err(Failure::Usage(
            "FILE is a cubin, and so is the result: OUT is not to end in .ptx".into(),
        ));
    }
    let mut bytes = input.bytes.clone();
    let mut reports = Vec::new();
    for name in cubin::kernels(&bytes, context.kernel)? {
        let outcome = cubin::explore(&bytes, &name, &gpu, &context, DEFAULT_MARGIN)?;
        bytes.clone_from(&outcome.built[outcome.report.chosen].cubin);
        if let Some(folder) = &args.keep {
            keep(folder, std::slice::from_ref(&outcome))?;
        }
        reports.push(outcome.report);
    }
    let document = Document {
        schema: "warpwright.opt/1",
        input: input.name.clone(),
        gpu: gpu.to_string(),
        ptxas: None,
        kernels: reports,
        output: args.output.display().to_string(),
        emitted: "cubin",
    };
    finish(args, &document, &bytes)
}
