//! `warpwright opt` without a ptxas: estimate, annotate, say so.

use warpwright_driver::estimate::estimate;
use warpwright_driver::opt::{Request, chosen_text};
use warpwright_ptx::Module;

use super::opt::{Document, annotated, finish};
use crate::args::{Emit, OptArgs};
use crate::failure::Failure;
use crate::input::Input;

/// Writes PTX with the estimated directives. A cubin cannot be had without ptxas.
pub fn run(
    args: &OptArgs,
    input: &Input,
    module: &Module,
    request: &Request,
    emit: Emit,
) -> Result<(), Failure> {
    if emit == Emit::Cubin {
        return Err(Failure::Missing {
            what: "there is no ptxas to build a cubin with (`--emit ptx` works without)".into(),
            mend: Some(warpwright_toolkit::REMEDY.into()),
        });
    }
    let reports = estimate(module, request)?;
    let text = chosen_text(module, &reports, request)?;
    let annotated = annotated(&text, &reports);
    finish(
        args,
        &Document {
            schema: "warpwright.opt/1",
            input: input.name.clone(),
            gpu: request.gpu.to_string(),
            ptxas: None,
            kernels: reports,
            output: args.output.display().to_string(),
            emitted: "ptx",
        },
        annotated.as_bytes(),
    )
}
