//! `pass`: runs passes through the executor, which verifies and proves what they write.
//!
//! ```text
//! // test: pass NAME [--gpu G] [--kernel K] [--block X,Y,Z] [--dynamic-smem B] [--regs R] [--set N=V] [--fuel N]
//! // test: pass NAME(VALUE,N=V);NAME …
//! ```
//!
//! The options are those of `warpwright pass`. The output is what the passes have to say and then all
//! functions of the rewritten module. Whatever the file expects, the test fails unless the verifier
//! accepts the result, the checker proves every step of it and, where the header describes a
//! launch (see `run`), the emulator computes the same from both.

use std::fmt::Write as _;

use warpwright_emu::{Emulator, Outcome};
use warpwright_launch::{Extents, Launch, Shape, no_files};
use warpwright_pass::options::Arguments;
use warpwright_pass::{
    Artifact, Builders, CarriedOut, Demand, Executor, Fuel, Invocation, Recipe, Scope, carry_out,
    plans,
};
use warpwright_ptx::Module;
use warpwright_target::lookup;

use super::run::launch;
use crate::case::Case;
use crate::harness::Command;

/// The command of this file.
pub const COMMANDS: &[Command] = &[Command {
    name: "pass",
    about: "run passes: their notes and the functions they leave; verified, proved and, with a \
            launch, emulated",
    run: pass,
}];

fn pass(case: &Case, args: &[String]) -> Result<String, String> {
    let input = Artifact::parse(&case.file_name(), &case.without_blocks());
    let input = input.map_err(|error| error.render())?;
    let (mut out, all) = carried_out(&input, Builders::default(), args)?;
    let (Some(module), Some(rewritten)) = (input.as_module(), all.artifact.as_module()) else {
        return Err("only passes over PTX run here".to_owned());
    };
    if case.source.lines().any(|l| l.starts_with("// launch:")) {
        let shape = all.kernels.iter().map(|done| done.launches().1);
        let shape = shape.fold(
            Shape::SAME,
            |all, own| if all.is_same() { own } else { all },
        );
        emulate(&case.without_blocks(), module, (rewritten, shape))?;
    }
    for function in rewritten.functions.values() {
        let _: std::fmt::Result = writeln!(out, "{}", rewritten.text(function.span));
    }
    Ok(out)
}

/// `NAME …` carried out, every step proved, and what the passes say.
pub(super) fn carried_out(
    input: &Artifact,
    builders: Builders<'_>,
    args: &[String],
) -> Result<(String, CarriedOut), String> {
    let (name, args) = args.split_first().ok_or("no pass named")?;
    let (scope, recipe, fuel, demand) = options(name, args)?;
    let plans = plans(input, &scope, &recipe).map_err(|e| e.to_string())?;
    let gpu = scope.gpu(input).map_err(|e| e.to_string())?;
    let mut executor = Executor {
        fuel,
        ..Executor::new(builders)
    };
    let level = (input.level(), demand);
    let all = carry_out(&mut executor, input, (&scope, &gpu), &plans, level);
    let all = all.map_err(|e| e.to_string())?;
    let mut out = String::new();
    for done in &all.kernels {
        let name = done.kernel.as_ref();
        let of = name.map_or_else(String::new, |name| format!("{name}: "));
        for stepped in &done.steps {
            for note in &stepped.step.notes {
                let _: std::fmt::Result = writeln!(out, "{of}{note}");
            }
            for caution in &stepped.step.cautions {
                let _: std::fmt::Result = writeln!(out, "{of}caution: {caution}");
            }
        }
        if let Some((_, refusal)) = &done.refused {
            let _: std::fmt::Result = writeln!(out, "{of}unchanged: {refusal}");
        }
    }
    Ok((out, all))
}

/// What [`options`] gives.
type Options<'a> = (Scope<'a>, Recipe, Fuel, Demand);

/// The options of `warpwright pass`.
fn options<'a>(name: &str, args: &'a [String]) -> Result<Options<'a>, String> {
    let mut scope = Scope::default();
    let mut arguments = Arguments::default();
    let mut fuel = Fuel::default();
    let mut args = args.iter();
    let mut demand = Demand::Proved;
    while let Some(name) = args.next() {
        if name == "--unproved" {
            demand = Demand::Whatever;
            continue;
        }
        let value = args.next().ok_or_else(|| format!("{name} wants a value"))?;
        let number = || value.parse().map_err(|e| format!("{name} {value}: {e}"));
        match name.as_str() {
            "--gpu" => scope.gpu = Some(lookup(value).map_err(|e| e.to_string())?),
            "--kernel" => scope.kernels = std::slice::from_ref(value),
            "--block" => scope.block = Some(super::check::block(value)?),
            "--dynamic-smem" => scope.dynamic_smem = Some(number()?),
            "--regs" => arguments.set("registers", value),
            "--fuel" => fuel = Fuel::limited(u64::from(number()?)),
            "--set" => {
                let (key, value) = value.split_once('=').ok_or("--set wants NAME=VALUE")?;
                arguments.set(key, value);
            }
            _ => return Err(format!("unknown option {name}")),
        }
    }
    let recipe = match name.contains(['(', ';']) {
        true => name.parse(),
        false => Invocation::new(name, arguments).and_then(|pass| Recipe::new(vec![pass])),
    };
    Ok((scope, recipe.map_err(|e| e.to_string())?, fuel, demand))
}

/// Runs both versions on the same inputs, the second one in its shape; all outputs must be the same bits.
fn emulate(header: &str, before: &Module, (after, shape): (&Module, Shape)) -> Result<(), String> {
    let launch = launch(header, before)?;
    let made = shape.apply(Extents {
        grid: launch.grid,
        block: launch.block,
        dynamic_smem: launch.dynamic_smem,
    });
    let made = made.ok_or("the launch cannot have that shape")?;
    let shaped = Launch {
        grid: made.grid,
        block: made.block,
        dynamic_smem: made.dynamic_smem,
        ..launch.clone()
    };
    if execute(&launch, before)? != execute(&shaped, after)? {
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
