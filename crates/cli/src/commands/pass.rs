//! `warpwright pass`: one pass alone.

use warpwright_driver::context::{Context, PassError};
use warpwright_driver::passes::{PASSES, find};

use crate::args::{Cli, PassArgs};
use crate::failure::Failure;
use crate::input::{Input, write_atomically};
use crate::session;
use crate::table::Table;

/// Runs the command: the result goes to stdout or OUT, what the pass has to say about it to stderr.
pub fn run(cli: &Cli, args: &PassArgs) -> Result<(), Failure> {
    if args.list {
        return list();
    }
    let (Some(name), Some(file)) = (&args.name, &args.file) else {
        return Err(Failure::Usage("NAME and FILE are wanted, or --list".into()));
    };
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
    let output = pass.run(&module, &context).map_err(|error| match error {
        PassError::Request(text) => Failure::input(text),
        PassError::Internal(text) => Failure::Internal(text),
    })?;
    for note in &output.notes {
        eprintln!("{note}");
    }
    match &args.output {
        Some(path) => write_atomically(path, output.text.as_bytes()),
        None => {
            print!("{}", output.text);
            Ok(())
        }
    }
}

fn list() -> Result<(), Failure> {
    let mut table = Table::new(&["pass", "what it does"]);
    for pass in PASSES {
        table.row(vec![pass.name.into(), pass.about.into()]);
        for (name, about) in pass.options {
            table.row(vec![format!("  --set {name}=…"), (*about).to_owned()]);
        }
    }
    print!("{}", table.render(0));
    Ok(())
}
