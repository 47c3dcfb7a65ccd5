//! `warpwright opt` for a stencil: the input with a faster kernel in it, in CUDA C. No GPU is needed; what is written was
//! compared with the input in the PTX emulator, which needs nvcc.

use std::path::Path;

use warpwright::front::architecture;
use warpwright::source::sizes::OwnSizes;
use warpwright::source::stencil::{Documents, rewrite, stencils};
use warpwright::source::{Request, Tools, target};
use warpwright_target::Gpu;

use crate::args::{Floating, OptArgs};
use crate::failure::Failure;
use crate::session;
use warpwright::{Input, Level};
use warpwright_files::{is_stdout, write_atomically};

/// Is it source that becomes source: a `.stencil`, or CUDA C that is to stay CUDA C?
pub fn is_wanted(input: &Input, output: Option<&Path>) -> bool {
    let ends_in_cu = output.is_some_and(|path| path.extension().is_some_and(|e| e == "cu"));
    input.level == Level::Stencil || input.level == Level::Cuda && ends_in_cu
}

/// A stencil becomes CUDA C++, and OUT says so.
pub fn refuse_other_levels(output: Option<&Path>) -> Result<(), Failure> {
    match output {
        None => Ok(()),
        Some(output) if is_stdout(output) || output.extension().is_some_and(|e| e == "cu") => {
            Ok(())
        }
        Some(output) => Err(Failure::input(format!(
            "`{}`: a stencil becomes CUDA C++; name OUT.cu (and optimize that once more for a cubin)",
            output.display()
        ))),
    }
}

/// From source to source, options about builds and launches would be dropped without a word.
pub fn refuse_what_has_no_effect(args: &OptArgs) -> Result<(), Failure> {
    let given = [
        ("--emit", args.emit.is_some()),
        ("--keep", args.keep.is_some()),
        ("--block", !args.kernel.block.is_empty()),
        ("--dynamic-smem", args.kernel.dynamic_smem.is_some()),
        (
            "--launch beside --recipe",
            args.kernel.launch.is_some() && args.recipe.is_some(),
        ),
    ];
    match session::first_given(&given) {
        None => Ok(()),
        Some(name) => Err(Failure::Usage(format!(
            "{name} has no effect from source to source (--grid NAME=N or --launch states sizes); without OUT.cu, candidates of \
             a build are tried"
        ))),
    }
}

/// The same with the architecture that options of nvcc name as its GPU; it may not contradict `--gpu`.
pub fn for_one_target(args: &OptArgs) -> Result<OptArgs, Failure> {
    let mut args = args.clone();
    let named = session::named_gpu(args.kernel.gpu.as_deref())?;
    let (stated, nvcc) = architecture(named.as_ref(), &args.nvcc)?;
    args.kernel.gpu = args.kernel.gpu.or(stated);
    args.nvcc = nvcc;
    Ok(args)
}

/// What a command line asks of a rewrite.
pub fn request<'a>(args: &'a OptArgs, gpu: &'a Gpu, own: &'a OwnSizes) -> Request<'a> {
    Request {
        gpu,
        sizes: &args.stencil.sizes,
        own,
        reassociate: args.stencil.fp == Some(Floating::Reassociate),
        fuel: args.fuel,
        output: super::opt::written_to(args),
    }
}

/// Runs the command. `own` are the sizes of the file's launches.
pub fn run(
    tools: &Tools<'_>,
    args: &OptArgs,
    input: &Input,
    own: &dyn Fn() -> Result<OwnSizes, Failure>,
) -> Result<(), Failure> {
    refuse_other_levels(args.output.as_deref())?;
    let names = stencils(tools, input, args.kernel.one()?)?;
    if names.len() != 1 && args.show.report.is_some() {
        let what = "--report shows one stencil: --kernel NAME names it";
        return Err(Failure::Usage(what.to_owned()));
    }
    let (gpu, own) = (target(args.kernel.gpu.as_deref())?, own()?);
    let all = rewrite(tools, &request(args, &gpu, &own), input, &names)?;
    write(args, &all.text)?;
    let output = super::opt::written_to(args);
    if let [only] = &all.kernels[..] {
        super::write_page(args.show.report.as_deref(), &only.document)?;
    }
    match (args.show.json, &all.kernels[..]) {
        (true, [only]) => super::print_json(&only.document)?,
        (true, _) => super::print_json(&Documents {
            schema: "warpwright.stencil-opts/1",
            input: input.name.clone(),
            stencils: all.kernels.into_iter().map(|of| of.document).collect(),
            output,
        })?,
        (false, rewrites) => {
            for of in rewrites {
                print!("{}", of.screen(args.all));
                if rewrites.len() > 1 {
                    println!();
                }
            }
            let is_changed = input.level == Level::Stencil || all.text != input.text()?;
            print_written(output.as_deref(), is_changed);
        }
    }
    decided(args, all.is_checked)
}

/// Exit code 5 for what was not checked, unless that was permitted.
pub fn decided(args: &OptArgs, is_checked: bool) -> Result<(), Failure> {
    match is_checked || args.stencil.unchecked {
        true => Ok(()),
        false => Err(Failure::Quiet(5)),
    }
}

/// Writes the text, if it is wanted.
pub fn write(args: &OptArgs, text: &str) -> Result<(), Failure> {
    match &args.output {
        Some(output) => Ok(write_atomically(output, text.as_bytes())?),
        None => Ok(()),
    }
}

/// Says where the text is, and whether it is another than the input.
pub fn written(output: &str, is_changed: bool) -> String {
    match is_changed {
        true => format!("wrote {output} (CUDA C++)"),
        false => format!("wrote {output} (CUDA C++): the input as it is, nothing was changed"),
    }
}

/// The same on stdout.
pub fn print_written(output: Option<&str>, is_changed: bool) {
    match output {
        Some(output) => println!("{}", written(output, is_changed)),
        None => println!("nothing is written: -o OUT.cu writes it"),
    }
}
