//! `warpwright pass`: one pass alone.

use warpwright_driver::passes::{PASSES, find};

use crate::args::{Cli, PassArgs};
use crate::failure::Failure;
use crate::input::{Input, write_atomically};
use crate::session;
use crate::table::Table;

/// Runs the command.
pub fn run(cli: &Cli, args: &PassArgs) -> Result<(), Failure> {
    if args.list {
        let mut table = Table::new(&["pass", "what it does"]);
        for pass in PASSES {
            table.row(vec![pass.name.into(), pass.about.into()]);
        }
        print!("{}", table.render(0));
        return Ok(());
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
    let text = (pass.run)(&module).map_err(Failure::Internal)?;
    match &args.output {
        Some(path) => write_atomically(path, text.as_bytes()),
        None => {
            print!("{text}");
            Ok(())
        }
    }
}
