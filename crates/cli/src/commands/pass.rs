//! `warpwright pass`: one pass alone, or a sequence of them.

use std::path::Path;

use warpwright::passes::{
    Again, How, carry, check_machine_code, list, over_cubins, over_source, recipe, said,
};
use warpwright::{Input, Level, passes};
use warpwright_files::{self as files, Kind, stage, write_atomically};
use warpwright_pass::{
    Artifact, CarriedOut, Demand, Invocation, Level as PassLevel, Recipe, Scope,
};

use super::stencil_opt::print_written;
use crate::args::{Cli, Floating, OptArgs, PassArgs};
use crate::failure::Failure;
use crate::session;
use crate::terminal::document;

/// Runs the command: the result goes to stdout or OUT, what the passes have to say about it to stderr.
pub fn run(cli: &Cli, args: &PassArgs) -> Result<(), Failure> {
    if args.list {
        println!("{}", list());
        return Ok(());
    }
    let (Some(name), Some(file)) = (&args.name, &args.file) else {
        return Err(Failure::Usage("NAME and FILE are wanted, or --list".into()));
    };
    let recipe = recipe(name, args.regs, &args.set)?;
    let first = recipe.passes().first().map(Invocation::level);
    let input = files::read(file)?;
    let options = session::options(&input, &args.kernel, &args.nvcc)?;
    let mut scope = options.scope();
    let is_source = matches!(input.level, Level::Cuda | Level::Stencil);
    let is_code = matches!(input.level, Level::Cubin | Level::Fat);
    // Options of nvcc are for what it compiles.
    let nvcc: &[String] = if is_code { &[] } else { &options.nvcc };
    let how = How {
        tools: &session::tools(cli, nvcc)?,
        fuel: args.fuel,
        demand: match args.unproved {
            true => Demand::Whatever,
            false => Demand::Proved,
        },
        file: (!is_code).then_some(&input),
        say: &|all| say(cli, all),
    };
    if is_code {
        return on_cubins(args, &how, &recipe, &input, &scope);
    }
    if is_source && first == Some(PassLevel::Source) {
        let all = over_source(&how, &recipe, &input, &scope)?;
        return write(args.output.as_deref(), &all);
    }
    // The level of the last pass says what comes out, before any work.
    let last = recipe.passes().last().map(Invocation::level);
    match (&args.output, last) {
        (None, Some(PassLevel::MachineCode)) => return Err(no_output()),
        (Some(output), Some(PassLevel::Ptx)) => {
            Kind::Ptx
                .fits(output)
                .map_err(|failure| built(failure.into(), output, &recipe))?;
        }
        _ => {}
    }
    let module = how.tools.module(&input, scope.gpu.as_ref(), false)?;
    if let Some(gpu) = scope.gpu {
        scope.gpu = Some(session::target(&module, Some(gpu))?);
    }
    let all = carry(&how, &session::verified(module)?, &recipe, &scope)?;
    write(args.output.as_deref(), &all)
}

/// Who wants a cubin of a pass over PTX is told which command builds one.
fn built(failure: Failure, output: &Path, recipe: &Recipe) -> Failure {
    let is_cubin = output.extension().is_some_and(|ending| ending == "cubin");
    match failure {
        Failure::Usage(what) if is_cubin => Failure::Usage(format!(
            "{what}; `warpwright opt FILE --recipe '{recipe}' -o {}` builds it",
            output.display()
        )),
        other => other,
    }
}

/// `opt --recipe` from CUDA C to CUDA C: what the passes make of the kernels, or an error.
pub fn replay(cli: &Cli, args: &OptArgs, input: &Input, recipe: &str) -> Result<(), Failure> {
    let recipe: Recipe = recipe.parse()?;
    let options = session::options(input, &args.kernel, &args.nvcc)?;
    let how = How {
        tools: &session::tools(cli, &options.nvcc)?,
        fuel: args.fuel,
        demand: Demand::Proved,
        file: None,
        say: &|all| say(cli, all),
    };
    let output = super::opt::written_to(args);
    let again = Again {
        options: &options,
        gpu: args.kernel.gpu.as_deref(),
        sizes: &args.stencil.sizes,
        reassociate: args.stencil.fp == Some(Floating::Reassociate),
        output: output.clone(),
    };
    let (replay, text) = passes::replay(&how, again, input, &recipe)?;
    if let Some(output) = &args.output {
        write_atomically(output, text.as_bytes())?;
    }
    if args.show.json {
        return super::print_json(&replay);
    }
    print!("{replay}");
    print_written(output.as_deref(), text != input.text()?);
    Ok(())
}

/// What each pass did, on stderr.
pub fn say(cli: &Cli, all: &CarriedOut) {
    for line in said(all, cli.verbose > 0) {
        eprintln!("{line}");
    }
}

/// Text goes to stdout where no OUT is named; a cubin needs a file.
fn write(output: Option<&Path>, all: &CarriedOut) -> Result<(), Failure> {
    let bytes = all.artifact.bytes();
    let is_cubin = all.artifact.as_cubin().is_some();
    match (output, std::str::from_utf8(bytes)) {
        (Some(output), _) => {
            kind(&all.artifact).fits(output)?;
            Ok(write_atomically(output, bytes)?)
        }
        (None, Ok(text)) if !is_cubin => {
            document(text);
            Ok(())
        }
        _ => Err(no_output()),
    }
}

/// What a result is.
fn kind(artifact: &Artifact) -> Kind {
    match (artifact.as_cubin(), artifact.as_source()) {
        (Some(_), _) => Kind::Cubin,
        (None, Some(_)) => Kind::Cuda,
        (None, None) => Kind::Ptx,
    }
}

fn no_output() -> Failure {
    Failure::Usage("-o OUT is wanted: the result is a cubin".into())
}

/// Passes over a finished cubin, or over those in a host file.
fn on_cubins(
    args: &PassArgs,
    how: &How<'_>,
    recipe: &Recipe,
    input: &Input,
    scope: &Scope<'_>,
) -> Result<(), Failure> {
    check_machine_code(recipe, input)?;
    let (Some(output), Some(file)) = (&args.output, &args.file) else {
        return Err(Failure::Usage("-o OUT is wanted".into()));
    };
    let kind = match input.level {
        Level::Fat => Kind::Host,
        _ => Kind::Cubin,
    };
    kind.fits(output)?;
    // An executable stays one.
    let mut staged = stage(output, &over_cubins(how, recipe, input, scope)?)?;
    staged.like(file)?;
    Ok(staged.commit()?)
}
