//! `warpwright opt` for finished machine code, alone or in a fat binary, object, executable or library: kernel by
//! kernel unchanged, or with its spills moved.

use warpwright_driver::context::Context;
use warpwright_driver::cubin;
use warpwright_driver::opt::DEFAULT_MARGIN;

use super::opt::{Document, finish, keep};
use crate::args::{Emit, OptArgs};
use crate::device_code;
use crate::failure::Failure;
use crate::input::{Input, Level};
use crate::session;

/// Runs the command.
pub fn run(args: &OptArgs, input: &Input) -> Result<(), Failure> {
    if args.emit == Some(Emit::Ptx) || !args.nvcc.is_empty() {
        return Err(Failure::Usage(
            "FILE is machine code: there is no PTX to write and nothing for nvcc to do".into(),
        ));
    }
    let ends_in_ptx = args.output.extension().is_some_and(|e| e == "ptx");
    if ends_in_ptx {
        return Err(Failure::Usage(
            "FILE is machine code, and so is the result: OUT is not to end in .ptx".into(),
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
    let code = device_code::of(input, context.gpu.as_ref())?.with_function(context.kernel)?;
    let is_alone = code.cubins.len() == 1;
    let mut edited = Vec::new();
    let mut reports = Vec::new();
    let mut target = None;
    for found in &code.cubins {
        let mut bytes = found.bytes.clone();
        // nvcc links stubs without kernels into programs and libraries.
        if !is_alone && !found.has_kernels() {
            edited.push(bytes);
            continue;
        }
        let gpu = cubin::gpu(&bytes, context.gpu)?;
        for name in cubin::kernels(&bytes, context.kernel)? {
            let outcome = cubin::explore(&bytes, &name, &gpu, &context, DEFAULT_MARGIN)?;
            bytes.clone_from(&outcome.built[outcome.report.chosen].cubin);
            if let Some(folder) = &args.keep {
                keep(folder, std::slice::from_ref(&outcome))?;
            }
            reports.push(outcome.report);
        }
        edited.push(bytes);
        target = Some(gpu);
    }
    let gpu = target.ok_or_else(|| Failure::input(format!("`{}` has no kernel", input.name)))?;
    let document = Document {
        schema: "warpwright.opt/1",
        input: input.name.clone(),
        gpu: gpu.to_string(),
        ptxas: None,
        kernels: reports,
        output: args.output.display().to_string(),
        emitted: match input.level {
            Level::Fat => "file",
            _ => "cubin",
        },
    };
    finish(args, &document, &code.replaced(&edited)?)
}
