//! `warpwright opt` for a naive kernel: the input with tuned kernels in it, in CUDA C. No GPU is needed; what is written
//! was compared with the input in the PTX emulator, which needs nvcc.

use warpwright::source::naive::{Documents, Found, Left, rewrite};
use warpwright::source::sizes::OwnSizes;
use warpwright::source::{Tools, target};

use super::stencil_opt::{decided, request, write, written};
use crate::args::{Floating, OptArgs, StencilArgs};
use crate::failure::Failure;
use warpwright::Input;

/// Only its pragma lets a naive kernel's sums be reordered: the text says so wherever it goes.
pub fn refuse_reassociate(args: &StencilArgs) -> Result<(), Failure> {
    match args.fp {
        Some(Floating::Reassociate) => Err(Failure::Usage(
            "--fp reassociate is for stencils, and has no effect on naive kernels: `#pragma warpwright naive reassociate` \
             in front of a kernel lets its sums be reordered"
                .into(),
        )),
        _ => Ok(()),
    }
}

/// Runs the command.
pub fn run(
    tools: &Tools<'_>,
    args: &OptArgs,
    input: &Input,
    found: (Vec<Found>, Vec<Left>),
    own: &OwnSizes,
) -> Result<(), Failure> {
    if found.0.len() > 1 && args.show.report.is_some() {
        let what = "--report shows one kernel: --kernel NAME names it";
        return Err(Failure::Usage(what.to_owned()));
    }
    let gpu = target(args.kernel.gpu.as_deref())?;
    let all = rewrite(tools, &request(args, &gpu, own), input, found)?;
    write(args, &all.text)?;
    if let [document] = &all.kernels[..] {
        super::write_page(args.show.report.as_deref(), document)?;
    }
    match (args.show.json, &all.kernels[..]) {
        (true, [document]) => super::print_json(document)?,
        (true, _) => super::print_json(&Documents {
            schema: "warpwright.naive-opts/1",
            input: input.name.clone(),
            kernels: all.kernels,
            output: super::opt::written_to(args),
        })?,
        (false, documents) => {
            for (number, document) in documents.iter().enumerate() {
                if number > 0 {
                    println!();
                }
                print!("{document}");
            }
            if let Some(output) = super::opt::written_to(args) {
                println!("{}", written(&output, all.text != input.text()?));
            }
        }
    }
    decided(args, all.is_checked)
}
