//! Recipes carried out on a whole input, kernel by kernel and level by level, every step proved: the way of
//! `pass`, of what `opt` and `tune` write, of the filetests and of the fuzzers.

use std::time::{Duration, Instant};

use warpwright_check::Promises;
use warpwright_target::Gpu;

use crate::artifact::Artifact;
use crate::executor::{Executor, RunError, Step, Target};
use crate::launch::Block;
use crate::pass::Level;
use crate::proof::{NotProved, Rung};
use crate::recipe::{Invocation, Recipe};
use crate::refusal::Refusal;
use crate::scope::{Scope, ScopeError};
use crate::site::Setting;

/// What one kernel is to become.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// The kernel; none for passes over whole modules alone.
    pub kernel: Option<String>,
    /// Its recipe.
    pub recipe: Recipe,
}

/// What is done where a proof is not found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Demand {
    /// Nothing leaves.
    #[default]
    Proved,
    /// It leaves all the same, and is said.
    Whatever,
}

/// A step and what stands behind it.
#[derive(Debug, Clone)]
pub struct Stepped {
    /// What the pass did.
    pub step: Step,
    /// Why it is right, or why nobody knows.
    pub rung: Result<Rung, NotProved>,
    /// What must hold of launches for the proof to be one, though nothing refuses others.
    pub promises: Promises,
    /// What finding out took.
    pub proof: Duration,
}

/// What became of one kernel.
#[derive(Debug, Clone)]
pub struct Done {
    /// The kernel.
    pub kernel: Option<String>,
    /// Its passes.
    pub steps: Vec<Stepped>,
    /// The pass that refuses it, if one does: what comes after it is left out.
    pub refused: Option<(Invocation, Refusal)>,
}

/// The input with every plan carried out.
#[derive(Debug, Clone)]
pub struct CarriedOut {
    /// The result.
    pub artifact: Artifact,
    /// Kernel by kernel, in the order of the plans.
    pub kernels: Vec<Done>,
}

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
pub enum CarryError {
    /// What was stated contradicts the input.
    #[error(transparent)]
    Scope(#[from] ScopeError),
    /// A pass or a builder fails.
    #[error("{error}")]
    Run {
        /// The kernel.
        kernel: Option<String>,
        /// Why.
        error: RunError,
    },
    /// What was rewritten is not proved.
    #[error("{}{error}", of(.kernel))]
    NotProved {
        /// The kernel.
        kernel: Option<String>,
        /// What the checker says.
        error: NotProved,
    },
}

fn of(kernel: &Option<String>) -> String {
    kernel
        .as_ref()
        .map_or_else(String::new, |kernel| format!("{kernel}: "))
}

/// The same recipe for every kernel that the scope names.
///
/// # Errors
/// [`ScopeError`].
pub fn plans(
    input: &Artifact,
    scope: &Scope<'_>,
    recipe: &Recipe,
) -> Result<Vec<Plan>, ScopeError> {
    let is_whole = |pass: &Invocation| pass.pass.is_whole_module();
    let kernels: Vec<Option<String>> = match recipe.passes().iter().all(is_whole) {
        true => vec![None],
        false => scope.kernels(input)?.into_iter().map(Some).collect(),
    };
    let plan = |kernel| Plan {
        kernel,
        recipe: recipe.clone(),
    };
    Ok(kernels.into_iter().map(plan).collect())
}

/// Carries out each kernel's recipe and proves every step. The result is at `until`, or further down if a
/// recipe leads there.
///
/// # Errors
/// [`CarryError`].
pub fn carry_out(
    executor: &mut Executor<'_>,
    input: &Artifact,
    scope: (&Scope<'_>, &Gpu),
    plans: &[Plan],
    (until, demand): (Level, Demand),
) -> Result<CarriedOut, CarryError> {
    let mut all = CarriedOut {
        artifact: input.clone(),
        kernels: plans
            .iter()
            .map(|plan| Done {
                kernel: plan.kernel.clone(),
                steps: Vec::new(),
                refused: None,
            })
            .collect(),
    };
    let last = plans.iter().filter_map(|plan| plan.recipe.passes().last());
    let last = last.map(Invocation::level).fold(until, Level::max);
    for level in [
        Level::Source,
        Level::Ptx,
        Level::Assembler,
        Level::MachineCode,
    ] {
        let step = Carry {
            executor: &mut *executor,
            scope,
            demand,
            level,
        };
        step.carry(&mut all, plans, last)?;
    }
    Ok(all)
}

/// One level of it.
struct Carry<'e, 'b, 's> {
    executor: &'e mut Executor<'b>,
    scope: (&'s Scope<'s>, &'s Gpu),
    demand: Demand,
    level: Level,
}

impl Carry<'_, '_, '_> {
    fn carry(self, all: &mut CarriedOut, plans: &[Plan], last: Level) -> Result<(), CarryError> {
        if self.level > last {
            return Ok(());
        }
        if all.artifact.level() < self.level {
            let options = plans
                .iter()
                .flat_map(|plan| plan.recipe.at(Level::Assembler));
            let options = options.fold(Recipe::default(), |all, pass| all.with(pass.clone()));
            let recipe = match self.level {
                Level::Assembler => options,
                _ => Recipe::default(),
            };
            let wanted = match self.level {
                Level::Assembler => Level::MachineCode,
                level => level,
            };
            let kernel = plans.first().and_then(|plan| plan.kernel.as_deref());
            let target = target(self.scope, &all.artifact, kernel)?;
            let run = self.executor.run(&all.artifact, &target, &recipe, wanted);
            let run = run.map_err(|error| CarryError::Run {
                kernel: None,
                error,
            })?;
            all.artifact = run.unproved().clone();
        }
        if self.level == Level::Assembler {
            return Ok(());
        }
        for (plan, done) in plans.iter().zip(&mut all.kernels) {
            for pass in plan.recipe.at(self.level) {
                if done.refused.is_some() {
                    break;
                }
                let kernel = plan.kernel.as_deref();
                let target = target(self.scope, &all.artifact, kernel)?;
                let recipe = Recipe::default().with(pass.clone());
                let run = match self
                    .executor
                    .run(&all.artifact, &target, &recipe, self.level)
                {
                    Ok(run) => run,
                    Err(RunError::Refused { pass, refusal }) => {
                        done.refused = Some((pass, refusal));
                        break;
                    }
                    Err(error) => {
                        return Err(CarryError::Run {
                            kernel: plan.kernel.clone(),
                            error,
                        });
                    }
                };
                let start = Instant::now();
                let rung = run.prove_last();
                if let (Err(error), Demand::Proved) = (&rung, self.demand) {
                    return Err(CarryError::NotProved {
                        kernel: plan.kernel.clone(),
                        error: error.clone(),
                    });
                }
                let proof = start.elapsed();
                let (rung, promises) = match rung {
                    Ok((rung, promises)) => (Ok(rung), promises),
                    Err(error) => (Err(error), Promises::default()),
                };
                all.artifact = run.unproved().clone();
                let steps = run.steps.into_iter();
                done.steps.extend(steps.map(|step| Stepped {
                    step,
                    rung: rung.clone(),
                    promises,
                    proof,
                }));
            }
        }
        Ok(())
    }
}

fn target<'t>(
    (scope, gpu): (&'t Scope<'_>, &'t Gpu),
    artifact: &Artifact,
    kernel: Option<&'t str>,
) -> Result<Target<'t>, ScopeError> {
    let setting = match kernel {
        Some(kernel) => scope.setting(artifact, kernel, gpu)?,
        None => Setting {
            gpu,
            block: Block::ASSUMED,
            dynamic_smem: None,
            grid: None,
        },
    };
    Ok(Target { kernel, setting })
}
