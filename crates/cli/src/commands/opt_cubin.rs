//! `warpwright opt` for finished machine code, alone or in a fat binary, object, executable or library.

use warpwright_driver::opt::{DEFAULT_MARGIN, Request};
use warpwright_driver::{Peers, Proofs};
use warpwright_pass::{Artifact, Scope};
use warpwright_sass::Cubin;

use super::opt::{Document, finish, optimise, scope, written_to};
use crate::args::{Cli, Emit, OptArgs};
use crate::device_code;
use crate::failure::Failure;
use crate::input::{Input, Level};
use crate::session;

/// Runs the command.
pub fn run(cli: &Cli, args: &OptArgs, input: &Input) -> Result<(), Failure> {
    if args.emit == Some(Emit::Ptx) || !args.nvcc.is_empty() {
        return Err(Failure::Usage(
            "FILE is machine code: there is no PTX to write and nothing for nvcc to do".into(),
        ));
    }
    let launch = session::kernel_launch(&args.kernel)?;
    let blocks = args.kernel.blocks();
    let scope = scope(&args.kernel, &blocks, launch.as_ref())?;
    let code = device_code::of(input, scope.gpu.as_ref())?.with_kernels(scope.kernels)?;
    let ending = args.output.as_deref().and_then(|path| path.extension());
    let ends_in_ptx = ending.is_some_and(|e| e == "ptx");
    if let Some(Err(error)) = code.cubins.first().map(|c| Cubin::parse(&c.bytes)) {
        return Err(Failure::input(format!("`{}`: {error}", input.name)));
    }
    if ends_in_ptx {
        return Err(Failure::Usage(
            "FILE is machine code, and so is the result: OUT is not to end in .ptx".into(),
        ));
    }
    let is_alone = code.cubins.len() == 1;
    let mut edited = Vec::new();
    let mut reports = Vec::new();
    let mut target = None;
    for found in &code.cubins {
        // nvcc links stubs without kernels into programs and libraries.
        if !is_alone && !found.has_kernels() {
            edited.push(found.bytes.clone());
            continue;
        }
        let here = found.named(scope.kernels);
        let scope = Scope {
            kernels: &here,
            ..scope
        };
        let artifact = Artifact::cubin(found.bytes.clone());
        let artifact = artifact.map_err(|error| Failure::input(error.to_string()))?;
        let gpu = scope.gpu(&artifact)?;
        let request = Request {
            gpu: &gpu,
            scope,
            peers: Peers::None,
            ptx_only: false,
            margin: DEFAULT_MARGIN,
            budget: args.budget,
            proofs: Proofs::Choice,
        };
        let (bytes, found) = optimise(cli, args, None, &artifact, &request)?;
        edited.push(bytes);
        reports.extend(found);
        target = Some(gpu);
    }
    let gpu = target.ok_or_else(|| Failure::input(format!("`{}` has no kernel", input.name)))?;
    let document = Document {
        schema: "warpwright.opt/1",
        input: input.name.clone(),
        gpu: gpu.to_string(),
        ptxas: None,
        kernels: reports,
        output: written_to(args),
        emitted: match input.level {
            Level::Fat => "file",
            _ => "cubin",
        },
    };
    finish(args, &document, &code.replaced(&edited)?)
}
