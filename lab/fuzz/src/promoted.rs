//! Loops that store to the same places again and again, with those in registers: the same results whatever pointers are one,
//! and mistakes in the rewritten loop that are not proved.

use warpwright_check::{Options, check_functions};
use warpwright_fuzzgen::{Rng, Sums, sums};
use warpwright_pass::passes::{Arrays, Promote};
use warpwright_pass::{Artifact, Demand, Recipe, Scope};
use warpwright_ptx::Module;

use crate::case::{self, Case};
use crate::proved::{self, Applied};

/// What a run came to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    /// Kernels that the pass rewrites.
    pub promoted: u64,
    /// Of them, those that the checker proves.
    pub proved: u64,
    /// Kernels that it leaves alone.
    pub refused: u64,
    /// Mistakes that the emulator shows at some launch.
    pub mistakes: u64,
}

/// What did not hold.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The kernel itself.
    #[error(transparent)]
    Case(#[from] case::Failure),
    /// What the pass wrote is invalid.
    #[error(transparent)]
    Pass(#[from] proved::Failure),
    /// It computes something else.
    #[error("it computes something else at launch {0}\n{1}")]
    Different(usize, String),
    /// The checker proves a mistake.
    #[error("the checker proves a mistake\n{0}")]
    Proved(String),
}

/// The kernel of a seed.
///
/// # Errors
/// What does not hold.
pub fn check(seed: u64, totals: &mut Totals) -> Result<(), Box<(Sums, Failure)>> {
    let kernel = sums(seed);
    checked(seed, &kernel, totals).map_err(|failure| Box::new((kernel, failure)))
}

fn checked(seed: u64, kernel: &Sums, totals: &mut Totals) -> Result<(), Failure> {
    let launches = &kernel.launches;
    let cases = launches
        .iter()
        .map(|launch| case::of_text(kernel.text.clone(), launch));
    let cases: Vec<Case> = cases.collect::<Result<_, _>>()?;
    let Some(first) = cases.first() else {
        return Ok(());
    };
    let input = Artifact::ptx(first.module.clone());
    let input = input.map_err(|error| case::Failure::Verify(error.render()))?;
    let recipe = Recipe::default().with(Promote {
        arrays: Arrays::Any,
    });
    let new = match proved::apply_for(&recipe, &input, &Scope::default(), Demand::Whatever)? {
        Applied::Changed(new) => new,
        Applied::Unchanged | Applied::Refused(_) => {
            totals.refused += 1;
            return Ok(());
        }
    };
    let Some(new) = new.artifact.as_module() else {
        return Ok(());
    };
    totals.promoted += 1;
    if let Some(launch) = first_difference(&cases, new)? {
        return Err(Failure::Different(launch, new.source.to_string()));
    }
    totals.proved += u64::from(is_proved(&first.module, new));
    if let Some(wrong) = mistaken(new, &mut Rng::new(seed))
        && first_difference(&cases, &wrong)?.is_some()
    {
        totals.mistakes += 1;
        if is_proved(&first.module, &wrong) {
            return Err(Failure::Proved(wrong.source.to_string()));
        }
    }
    Ok(())
}

/// The first launch at which a version leaves other bits, or faults.
fn first_difference(cases: &[Case], new: &Module) -> Result<Option<usize>, Failure> {
    for (number, case) in cases.iter().enumerate() {
        let before = case::emulate(case, &Default::default())?;
        let after = case::emulate_module(new, &case.launch, &case.inputs, &Default::default());
        if after.map_or(true, |after| after.buffers != before.buffers) {
            return Ok(Some(number));
        }
    }
    Ok(None)
}

fn is_proved(old: &Module, new: &Module) -> bool {
    let kernel = |module: &Module| module.kernels().next().map(|(id, _)| id);
    let both = kernel(old).zip(kernel(new));
    both.is_some_and(|(a, b)| check_functions((old, a), (new, b), &Options::default()).is_proved())
}

/// The rewritten kernel without one of the lines that were added, or with one register of the kept ones for another.
fn mistaken(new: &Module, rng: &mut Rng) -> Option<Module> {
    let mut lines: Vec<String> = new.source.lines().map(str::to_owned).collect();
    let is_ours = |line: &String| line.contains("%kept") && !line.contains(".reg");
    let ours: Vec<usize> = (0..lines.len()).filter(|&at| is_ours(&lines[at])).collect();
    let at = *ours.get(rng.below(ours.len()))?;
    let names: Vec<String> = (new.source.lines())
        .filter_map(|line| {
            line.trim()
                .strip_prefix(".reg .b32 ")
                .or_else(|| line.trim().strip_prefix(".reg .b64 "))
        })
        .filter(|name| name.starts_with("%kept"))
        .map(|name| name.trim_end_matches(';').to_owned())
        .collect();
    let other = names.iter().find(|name| !lines[at].contains(name.as_str()));
    match (
        other,
        names.iter().find(|name| lines[at].contains(name.as_str())),
    ) {
        (Some(other), Some(own)) if rng.chance(40) => lines[at] = lines[at].replace(own, other),
        _ => {
            lines.remove(at);
        }
    }
    let (module, diagnostics) = Module::parse("fuzz.ptx", &(lines.join("\n") + "\n"));
    (!diagnostics.iter().any(|found| found.is_error())).then_some(module)
}
