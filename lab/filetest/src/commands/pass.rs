//! `pass`: runs one pass, and proves what it wrote.
//!
//! ```text
//! // test: pass NAME [--gpu G] [--kernel K] [--block X,Y,Z] [--dynamic-smem B] [--regs R] [--set N=V]
//! ```
//!
//! The options are those of `warpwright pass`. The output is what the pass has to say and then all
//! functions of the rewritten module. Whatever the file expects, the test fails unless the verifier
//! accepts the result, the checker proves every function of it and, where the header describes a
//! launch (see `run`), the emulator computes the same from both.

use std::fmt::Write as _;

use warpwright_check::{Options, check_modules};
use warpwright_driver::context::Context;
use warpwright_driver::passes;
use warpwright_emu::{Emulator, Outcome};
use warpwright_launch::{Launch, no_files};
use warpwright_ptx::{Module, verify};
use warpwright_target::lookup;

use super::run::launch;
use crate::case::Case;
use crate::harness::Command;

/// The command of this file.
pub const COMMANDS: &[Command] = &[Command {
    name: "pass",
    about: "run a pass: its notes and the functions it leaves; verified, proved and, with a \
            launch, emulated",
    run: pass,
}];

fn pass(case: &Case, args: &[String]) -> Result<String, String> {
    let (name, args) = args.split_first().ok_or("no pass named")?;
    let pass = passes::find(name).ok_or_else(|| format!("there is no pass `{name}`"))?;
    let context = context(args)?;
    let module = sound(case, &case.without_blocks())?;
    let output = pass.run(&module, &context).map_err(|e| e.to_string())?;
    let rewritten = sound(case, &output.text)?;
    // A kernel that a pass refuses may be one that the checker cannot judge.
    if output.text != *module.source {
        prove(&module, &rewritten, &context)?;
    }
    if case.source.lines().any(|l| l.starts_with("// launch:")) {
        emulate(&case.without_blocks(), &module, &rewritten)?;
    }
    let mut out = String::new();
    for note in &output.notes {
        let _: std::fmt::Result = writeln!(out, "{note}");
    }
    for function in rewritten.functions.values() {
        let _: std::fmt::Result = writeln!(out, "{}", rewritten.text(function.span));
    }
    Ok(out)
}

/// The options of `warpwright pass`.
pub(super) fn context(args: &[String]) -> Result<Context<'_>, String> {
    let mut context = Context::default();
    let mut args = args.iter();
    while let Some(name) = args.next() {
        let value = args.next().ok_or_else(|| format!("{name} wants a value"))?;
        let number = || value.parse().map_err(|e| format!("{name} {value}: {e}"));
        match name.as_str() {
            "--gpu" => context.gpu = Some(lookup(value).map_err(|e| e.to_string())?),
            "--kernel" => context.kernel = Some(value),
            "--block" => context.block = Some(super::check::block(value)?),
            "--dynamic-smem" => context.dynamic_smem = Some(number()?),
            "--regs" => context.regs = Some(number()?),
            "--set" => {
                let (key, value) = value.split_once('=').ok_or("--set wants NAME=VALUE")?;
                context.options.insert(key.into(), value.into());
            }
            _ => return Err(format!("unknown option {name}")),
        }
    }
    Ok(context)
}

/// A module that the verifier accepts.
fn sound(case: &Case, text: &str) -> Result<Module, String> {
    let (module, mut found) = Module::parse(&case.file_name(), text);
    if !found.iter().any(|d| d.is_error()) {
        found = verify::diagnose(&module);
    }
    let errors: String = found
        .iter()
        .filter(|d| d.is_error())
        .map(|d| d.render(&module))
        .collect();
    match errors.is_empty() {
        true => Ok(module),
        false => Err(format!("{errors}\n{text}")),
    }
}

fn prove(before: &Module, after: &Module, context: &Context) -> Result<(), String> {
    let options = Options {
        block: context.block,
    };
    for (name, verdict) in check_modules(before, after, &options) {
        if verdict.word() != "proved" {
            return Err(format!("`{name}` is {verdict}\n{}", after.source));
        }
    }
    Ok(())
}

/// Runs both versions on the same inputs; all outputs must be the same bits.
fn emulate(header: &str, before: &Module, after: &Module) -> Result<(), String> {
    let launch = launch(header, before)?;
    if execute(&launch, before)? != execute(&launch, after)? {
        let text = "the emulator computes something else after the pass";
        return Err(format!("{text}\n{}", after.source));
    }
    Ok(())
}

fn execute(launch: &Launch, module: &Module) -> Result<Vec<Vec<u8>>, String> {
    let program = Emulator::new(module, &launch.kernel).map_err(|e| e.to_string())?;
    let inputs: Result<Vec<_>, _> = launch.buffers().map(|b| b.materialize(&no_files)).collect();
    let options = warpwright_emu::Options {
        budget: 1 << 20,
        uninitialised: true,
        ..Default::default()
    };
    let outcome = program.run(launch, inputs.map_err(|e| e.to_string())?, &options);
    match outcome.map_err(|e| e.to_string())? {
        Outcome::Finished(results) => Ok(results.buffers),
        Outcome::Faulted(fault) => Err(format!("fault: {fault}")),
    }
}
