//! Generated kernels through the register passes: each with options and a goal that alternate with
//! the seed, proved by the checker, and the same bits in the emulator before and after.

use crate::assignment;
use crate::case::{self, Case};
use crate::proved::{self, Applied, pressure};
use warpwright_fuzzgen::{Program, launch_toml, print, reduce};
use warpwright_pass::options::Arguments;
use warpwright_pass::{Invocation, Recipe, RecipeError, Refusal, Scope};
use warpwright_ptx::Module;

/// One run of a pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// The pass.
    pub pass: &'static str,
    /// Its options.
    pub options: Vec<(&'static str, &'static str)>,
    /// The goal, in per cent of the kernel's pressure.
    pub percent: u32,
}

/// What did not hold.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The kernel itself, before any pass.
    #[error("before the pass: {0}")]
    Before(case::Failure),
    /// What the pass wrote is invalid or not proved.
    #[error(transparent)]
    Pass(proved::Failure),
    /// The run itself makes no sense.
    #[error(transparent)]
    Recipe(#[from] RecipeError),
    /// It leaves the kernel alone for a reason that generated kernels do not give.
    #[error("refused: {0}")]
    Refused(Refusal),
    /// The emulator faults on it.
    #[error("after the pass: {0}")]
    After(case::Failure),
    /// It computes something else.
    #[error("other results than before the pass")]
    Different,
    /// `allocate` promised a number of registers, `spill-shared` and `reduce` less pressure.
    #[error("a broken promise: {0}")]
    Promise(String),
}

/// What the runs on one kernel came to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Changed {
    /// Runs of the pass.
    pub runs: u64,
    /// Runs that changed the kernel.
    pub changed: u64,
}

/// The passes, in the order of [`runs`].
pub const PASSES: [&str; 4] = ["remat", "spill-shared", "allocate", "reduce"];

/// What a seed's kernel goes through: every pass once.
pub fn runs(seed: u64) -> [Run; 4] {
    let pick = |choices: &[&'static str], divisor: u64| {
        choices[(seed / divisor % choices.len() as u64) as usize]
    };
    let percent =
        |choices: &[u32], divisor: u64| choices[(seed / divisor % choices.len() as u64) as usize];
    // Sizes alternate with the seed modulo 4 (`case::program`): the options do with what is left.
    [
        Run {
            pass: PASSES[0],
            options: vec![("rules", pick(&["full", "paper"], 4))],
            percent: percent(&[75, 0], 8),
        },
        Run {
            pass: PASSES[1],
            options: vec![("layout", pick(&["slot-major", "thread-major"], 4))],
            percent: percent(&[75, 50, 90], 8),
        },
        Run {
            pass: PASSES[2],
            options: vec![
                ("space", pick(&["shared", "local"], 4)),
                ("cut", pick(&["cell", "class"], 8)),
            ],
            percent: percent(&[100, 80, 60], 16),
        },
        Run {
            pass: PASSES[3],
            options: Vec::new(),
            percent: percent(&[75, 50, 25], 4),
        },
    ]
}

/// All passes on the kernel of a seed.
///
/// # Errors
/// The first run that fails, and how.
pub fn check(seed: u64, totals: &mut [Changed; 4]) -> Result<(), Box<(Run, Failure)>> {
    let program = case::program(seed, false);
    for (run, total) in runs(seed).into_iter().zip(totals) {
        let changed = check_run(&program, &run).map_err(|failure| Box::new((run, failure)))?;
        total.runs += 1;
        total.changed += u64::from(changed);
    }
    Ok(())
}

/// One run on one kernel; whether it changed it.
///
/// # Errors
/// What did not hold.
pub fn check_run(program: &Program, run: &Run) -> Result<bool, Failure> {
    let case = case::prepare(program).map_err(Failure::Before)?;
    let Some((kernel, _)) = case.module.kernels().next() else {
        return Ok(false);
    };
    let before = pressure(&case.module, kernel);
    let goal = (before * run.percent / 100).max(8);
    let scope = Scope {
        launch: Some(&case.launch),
        ..Scope::default()
    };
    let new =
        match proved::apply(&recipe(run, goal)?, &case.module, &scope).map_err(Failure::Pass)? {
            Applied::Changed(new) => *new,
            Applied::Unchanged => return Ok(false),
            Applied::Refused(why) => return refused(why),
        };
    let after = pressure(&new, kernel);
    match run.pass {
        "allocate" if after > goal => Err(promise(after, goal)),
        "allocate" => assignment::check(&new, kernel, goal).map_err(Failure::Promise),
        "spill-shared" | "reduce" if after >= before => Err(promise(after, before - 1)),
        _ => Ok(()),
    }?;
    same_results(case, new)
}

fn recipe(run: &Run, goal: u32) -> Result<Recipe, RecipeError> {
    let mut arguments = Arguments::default();
    arguments.set("registers", goal.to_string());
    for &(name, value) in &run.options {
        arguments.set(name, value);
    }
    Recipe::new(vec![Invocation::new(run.pass, arguments)?])
}

/// The reasons for which a pass may leave a generated kernel alone.
fn refused(why: Refusal) -> Result<bool, Failure> {
    match why {
        Refusal::TooFewRegisters { .. }
        | Refusal::NothingHelps { .. }
        | Refusal::WithinGoal { .. } => Ok(false),
        other => Err(Failure::Refused(other)),
    }
}

fn promise(after: u32, most: u32) -> Failure {
    Failure::Promise(format!("{after} registers instead of {most} at most"))
}

/// Runs both under the strict options; they must leave the same bits.
fn same_results(case: Case, new: Module) -> Result<bool, Failure> {
    let expected = case::emulate(&case, &case::strict()).map_err(Failure::Before)?;
    let case = Case {
        module: new,
        ..case
    };
    let found = case::emulate(&case, &case::strict()).map_err(Failure::After)?;
    match found.buffers == expected.buffers {
        true => Ok(true),
        false => Err(Failure::Different),
    }
}

/// Shrinks a kernel while the run fails in the same way; a test file with the failure, the run and
/// the launch in comments.
pub fn report(program: &Program, run: &Run, failure: &Failure) -> String {
    let same = |p: &Program| {
        check_run(p, run)
            .is_err_and(|f| std::mem::discriminant(&f) == std::mem::discriminant(failure))
    };
    let small = reduce(program, 400, same);
    let about = format!("{run:?}\n{failure}");
    case::in_comments(&about, &launch_toml(&small)) + &print(&small)
}
