//! `warpwright opt` without a ptxas: estimate, annotate, say so.

use warpwright_driver::estimate::estimate;
use warpwright_driver::opt::{Chosen, Request, finish as carry_out};
use warpwright_pass::{Artifact, Fuel, Level};

use super::opt::{Document, annotated, finish, written_to};
use crate::args::{Emit, OptArgs};
use crate::failure::Failure;
use crate::input::Input;

/// Writes PTX with the estimated directives. A cubin cannot be had without ptxas.
pub fn run(
    args: &OptArgs,
    input: &Input,
    artifact: &Artifact,
    request: &Request,
    emit: Emit,
) -> Result<(), Failure> {
    if emit == Emit::Cubin {
        return Err(Failure::Missing {
            what: "there is no ptxas to build a cubin with (`--emit ptx` works without)".into(),
            mend: Some(warpwright_toolkit::REMEDY.into()),
        });
    }
    let reports = estimate(artifact, request)?;
    let chosen: Vec<Chosen> = reports.iter().map(Chosen::of).collect();
    let ptx = (Level::Ptx, Fuel::default());
    let all = carry_out(None, artifact, &chosen, request, ptx)?;
    let annotated = annotated(&String::from_utf8_lossy(all.artifact.bytes()), &reports);
    finish(
        args,
        &Document {
            schema: "warpwright.opt/1",
            input: input.name.clone(),
            gpu: request.gpu.to_string(),
            ptxas: None,
            kernels: reports,
            output: written_to(args),
            emitted: "ptx",
        },
        annotated.as_bytes(),
    )
}
