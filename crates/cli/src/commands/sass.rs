//! `warpwright sass`: machine code as text, and checks of the binary level on a file.

use warpwright::sass::{Check, Sass};
use warpwright_files::{self as files, Kind, write_atomically};

use super::print_json;
use crate::args::{AssembleArgs, Cli, SassAction, SassArgs, SassInput};
use crate::failure::Failure;
use crate::session;
use crate::terminal::document;

/// Runs the command.
pub fn run(cli: &Cli, args: &SassArgs) -> Result<(), Failure> {
    match (&args.action, &args.input) {
        (Some(SassAction::Roundtrip(input)), _) => check(cli, input, Check::Roundtrip),
        (Some(SassAction::Liveness(input)), _) => check(cli, input, Check::Liveness),
        (Some(SassAction::Hazards(input)), _) => check(cli, input, Check::Hazards),
        (Some(SassAction::Assemble(args)), _) => assemble(args),
        (None, input) if input.json => print_json(&code(cli, input)?.listing()?),
        (None, input) => {
            let code = code(cli, input)?;
            document(&match args.whole {
                true => code.whole()?,
                false => code.text()?,
            });
            Ok(())
        }
    }
}

fn assemble(args: &AssembleArgs) -> Result<(), Failure> {
    if args.file.extension().is_none_or(|ending| ending != "sass") {
        return Err(Failure::Usage(
            "FILE is wanted with the ending .sass".into(),
        ));
    }
    Kind::Cubin.fits(&args.output)?;
    Ok(write_atomically(
        &args.output,
        &files::read(&args.file)?.bytes,
    )?)
}

fn code(cli: &Cli, args: &SassInput) -> Result<Sass, Failure> {
    let Some(file) = &args.file else {
        return Err(Failure::Usage("FILE is wanted".into()));
    };
    let input = files::read(file)?;
    let gpu = session::named_gpu(args.gpu.as_deref())?;
    let tools = session::tools(cli, &args.nvcc)?;
    Ok(Sass::of(&tools, &input, gpu, args.kernel.as_deref())?)
}

/// Runs one check, prints what it found, and fails if it does not hold.
fn check(cli: &Cli, args: &SassInput, what: Check) -> Result<(), Failure> {
    let found = code(cli, args)?.check(what, &session::tools(cli, &args.nvcc)?)?;
    match args.json {
        true => print_json(&found)?,
        false => {
            print!("{found}");
            for line in found.errors() {
                complain!("{line}");
            }
        }
    }
    match found.holds {
        true => Ok(()),
        false => Err(Failure::Quiet(1)),
    }
}
