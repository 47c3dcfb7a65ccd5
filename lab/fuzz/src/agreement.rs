//! What a pass proved, the command `check` must prove: the same two modules, at launches of the same guard as it is
//! printed, in the same shape.
//!
//! The executor proves a kernel alone, and of a version that goes two ways at some launches each way by itself. The command
//! knows of neither. What is asked twice: of the checker, and of the library that the command is made of, from the texts.

use std::collections::BTreeMap;

use warpwright_api::{CheckOptions, Input, Optimizer};
use warpwright_check::{Options, check_modules, signature};
use warpwright_launch::{Guard, Shape};
use warpwright_pass::{Artifact, CarriedOut, Demand, Executor, Recipe, Scope, carry_out, plans};
use warpwright_ptx::Module;
use warpwright_target::lookup;

/// Of one recipe: kernels that it changed and proved, those of them that `check` proves, and the others, with what it
/// says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Count {
    /// Kernels that were changed and proved.
    pub claimed: u64,
    /// Those that `check` proves.
    pub agreed: u64,
    /// Kernels that were changed, which the pass does not prove itself.
    pub unproved: Vec<String>,
    /// The others.
    pub apart: Vec<String>,
}

/// Recipes for any kernel.
pub const RECIPES: [&str; 10] = [
    "unroll(2)",
    "unroll(4)",
    "unroll(8)",
    "unroll(4,tests=each)",
    "vectorize()",
    "promote",
    "cache(loads=streaming,prefetch=128B,stores=write-through)",
    "specialize(block=64x1x1,grid=4x1x1)",
    "reshape(64x1x1,from=128x1x1,grid=4x1x1)",
    "dead-code",
];

/// Every recipe on every kernel of a module.
pub fn count(name: &str, text: &str, counts: &mut BTreeMap<String, Count>) {
    let Ok(input) = Artifact::parse(name, text) else {
        return;
    };
    let Some(module) = input.as_module() else {
        return;
    };
    for (_, kernel) in module.kernels().filter(|(_, kernel)| kernel.body.is_some()) {
        for recipe in recipes(module, &kernel.name) {
            let count = counts.entry(recipe.0).or_default();
            one(&input, &kernel.name, &recipe.1, count);
        }
    }
}

/// The recipes, and one with a number of the kernel's as a constant.
fn recipes(module: &Module, kernel: &str) -> Vec<(String, String)> {
    let plain = RECIPES
        .iter()
        .map(|text| ((*text).to_owned(), (*text).to_owned()));
    let params = module
        .function(kernel)
        .map(|id| &module.functions[id].params);
    let mut numbers = params
        .into_iter()
        .flatten()
        .map(|param| &module.variables[param.var]);
    let number = numbers.find(|variable| variable.bytes() == 4);
    let constant = number.map(|variable| {
        let text = format!("specialize(params={}=40)", variable.name);
        ("specialize(a number)".to_owned(), text)
    });
    plain.chain(constant).collect()
}

fn one(input: &Artifact, kernel: &str, recipe: &str, count: &mut Count) {
    let Ok(recipe) = recipe.parse::<Recipe>() else {
        return;
    };
    let kernels = [kernel.to_owned()];
    let scope = Scope {
        gpu: lookup("h200").ok(),
        kernels: &kernels,
        ..Scope::default()
    };
    let Some(all) = carried_out(input, &scope, &recipe) else {
        return;
    };
    let (Some(before), Some(after)) = (input.as_module(), all.artifact.as_module()) else {
        return;
    };
    let mut steps = all.kernels.iter().flat_map(|done| &done.steps);
    if all.artifact.bytes() == input.bytes() {
        return;
    }
    if let Some(error) = steps.find_map(|stepped| stepped.rung.as_ref().err()) {
        count
            .unproved
            .push(format!("{} {kernel}: {error}", before.name));
        return;
    }
    count.claimed += 1;
    match said([before, after], kernel, &all) {
        None => count.agreed += 1,
        Some(why) => count
            .apart
            .push(format!("{} {kernel}: {recipe}: {why}", before.name)),
    }
}

fn carried_out(input: &Artifact, scope: &Scope<'_>, recipe: &Recipe) -> Option<CarriedOut> {
    let plans = plans(input, scope, recipe).ok()?;
    let gpu = scope.gpu(input).ok()?;
    let level = (input.level(), Demand::Whatever);
    let mut executor = Executor::default();
    carry_out(&mut executor, input, (scope, &gpu), &plans, level).ok()
}

/// What `check` says of the kernel if it does not prove it.
fn said([before, after]: [&Module; 2], kernel: &str, all: &CarriedOut) -> Option<String> {
    let (guard, shape) = all.kernels.first()?.launches();
    let names = signature(before, before.function(kernel)?);
    let text = guard.named(&names).to_string();
    let assume = match Guard::parse(&text, &names) {
        Ok(assume) => assume,
        Err(error) => return Some(error.to_string()),
    };
    let options = Options {
        assume,
        shape,
        ..Options::default()
    };
    let verdicts = check_modules(before, after, &options);
    let own = verdicts.into_iter().find(|(name, _)| name == kernel)?.1;
    match own.is_proved() {
        true => said_by_library([before, after], kernel, (text, shape)),
        false => Some(own.to_string()),
    }
}

/// The same of the library, which reads both texts and the guard anew.
fn said_by_library(
    [before, after]: [&Module; 2],
    kernel: &str,
    (assume, shape): (String, Shape),
) -> Option<String> {
    let options = CheckOptions {
        kernel: Some(kernel.to_owned()),
        assume: Some(assume),
        shape,
        ..CheckOptions::default()
    };
    let input = |name: &str, module: &Module| Input::new(name, module.source.to_string());
    let checked = || {
        let (a, b) = (input("before.ptx", before)?, input("after.ptx", after)?);
        Optimizer::without_toolkit().check(&a, &b, &options)
    };
    match checked() {
        Ok(checked) if checked.is_proved() => None,
        Ok(checked) => Some(format!("through the library: {}", checked.verdict)),
        Err(error) => Some(format!("through the library: {error}")),
    }
}
