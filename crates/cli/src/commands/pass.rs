//! `warpwright pass`: one pass alone.

use std::path::Path;

use warpwright_driver::context::Context;
use warpwright_driver::cubin::{CUBIN_PASSES, CubinPass};
use warpwright_driver::passes::{PASSES, find};

use crate::args::{Cli, PassArgs};
use crate::device_code;
use crate::failure::Failure;
use crate::input::{Input, Level, stage, write_atomically};
use crate::session;
use crate::table::Table;
use crate::terminal::document;

/// Runs the command: the result goes to stdout or OUT, what the pass has to say about it to stderr.
pub fn run(cli: &Cli, args: &PassArgs) -> Result<(), Failure> {
    if args.list {
        return list();
    }
    let (Some(name), Some(file)) = (&args.name, &args.file) else {
        return Err(Failure::Usage("NAME and FILE are wanted, or --list".into()));
    };
    if let Some(pass) = CUBIN_PASSES.iter().find(|pass| pass.name == name) {
        return on_cubin(args, pass, file);
    }
    let Some(pass) = find(name) else {
        return Err(Failure::Usage(format!(
            "there is no pass `{name}`; `pass --list` names them"
        )));
    };
    let input = Input::read(file)?;
    let gpu = session::named_gpu(args.kernel.gpu.as_deref())?;
    let nvcc = session::described_nvcc(&input, args.kernel.launch.as_deref())?;
    let module = session::module(cli, &input, gpu.as_ref(), &nvcc, false)?;
    let launch = session::kernel_launch(&args.kernel)?;
    let context = Context {
        // A GPU that was named must fit; one that nobody named is looked up when a pass asks.
        gpu: gpu
            .map(|gpu| session::target(&module, Some(gpu)))
            .transpose()?,
        kernel: args.kernel.kernel.as_deref(),
        block: args.kernel.block,
        dynamic_smem: args.kernel.dynamic_smem,
        launch: launch.as_ref(),
        regs: args.regs,
        options: args.set.iter().cloned().collect(),
    };
    let output = pass.run(&module, &context)?;
    for note in &output.notes {
        eprintln!("{note}");
    }
    match &args.output {
        Some(path) => write_atomically(path, output.text.as_bytes()),
        None => {
            document(&output.text);
            Ok(())
        }
    }
}

/// A pass over a finished cubin: the result is no text, so it needs a file.
fn on_cubin(args: &PassArgs, pass: &CubinPass, file: &Path) -> Result<(), Failure> {
    let input = Input::read(file)?;
    if !matches!(input.level, Level::Cubin | Level::Fat) {
        let text = format!(
            "`{}` is no cubin and holds none, which `{}` works on",
            input.name, pass.name
        );
        return Err(Failure::input(text));
    }
    let Some(output) = &args.output else {
        return Err(Failure::Usage("-o OUT is wanted".into()));
    };
    let launch = session::kernel_launch(&args.kernel)?;
    let context = Context {
        gpu: session::named_gpu(args.kernel.gpu.as_deref())?,
        kernel: args.kernel.kernel.as_deref(),
        block: args.kernel.block,
        dynamic_smem: args.kernel.dynamic_smem,
        launch: launch.as_ref(),
        regs: args.regs,
        options: args.set.iter().cloned().collect(),
    };
    let code = device_code::of(&input, context.gpu.as_ref())?.with_function(context.kernel)?;
    let mut edited = Vec::new();
    for cubin in &code.cubins {
        // nvcc links stubs without kernels into programs and libraries.
        if code.cubins.len() > 1 && !cubin.has_kernels() {
            edited.push(cubin.bytes.clone());
            continue;
        }
        let made = pass.run(&cubin.bytes, &context)?;
        for note in &made.notes {
            eprintln!("{note}");
        }
        edited.push(made.cubin);
    }
    write_like(file, output, &code.replaced(&edited)?)
}

/// Writes OUT with the permissions of FILE: an executable stays one.
fn write_like(file: &Path, output: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let staged = stage(output, bytes)?;
    staged.like(file)?;
    staged.commit()
}

fn list() -> Result<(), Failure> {
    let mut table = Table::new(&["pass", "what it does"]);
    let on_text = PASSES
        .iter()
        .map(|pass| (pass.name, pass.about, pass.options));
    let on_cubins = CUBIN_PASSES
        .iter()
        .map(|pass| (pass.name, pass.about, pass.options));
    for (name, about, options) in on_text.chain(on_cubins) {
        table.row(vec![name.into(), about.into()]);
        for (option, about) in options {
            table.row(vec![format!("  --set {option}=…"), (*about).to_owned()]);
        }
    }
    print!("{}", table.render(0));
    Ok(())
}
