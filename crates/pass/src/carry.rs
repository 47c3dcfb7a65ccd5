//! Recipes carried out on a whole input, kernel by kernel and level by level, every step proved: the way of
//! `pass`, of what `opt` and `tune` write, of the filetests and of the fuzzers.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use warpwright_check::Promises;
use warpwright_launch::{Guard, Shape};
use warpwright_target::Gpu;

use crate::artifact::Artifact;
use crate::executor::{Executor, RunError, Step, Target, launches};
use crate::names::source_name;
use crate::pass::Level;
use crate::proof::{NotProved, Rung};
use crate::ptx::facts::uses_dynamic_shared;
use crate::ptx::slice::Slices;
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

impl Done {
    /// The launches that its result is right for, and what they become for it.
    pub fn launches(&self) -> (Guard, Shape) {
        launches(self.steps.iter().map(|stepped| &stepped.step))
    }
}

impl CarriedOut {
    /// The same for whoever leaves launches as they are.
    ///
    /// # Errors
    /// [`Refusal::OtherLaunch`]: a pass wants launches of another shape.
    pub fn as_launched(self) -> Result<CarriedOut, CarryError> {
        for done in &self.kernels {
            let mut steps = done.steps.iter().map(|stepped| &stepped.step);
            if let Some(step) = steps.find(|step| !step.shape.is_same()) {
                return Err(CarryError::Run {
                    kernel: done.kernel.clone(),
                    error: Box::new(RunError::Refused {
                        pass: step.pass.clone(),
                        refusal: Refusal::OtherLaunch(step.shape),
                    }),
                });
            }
        }
        Ok(self)
    }
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
        error: Box<RunError>,
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
        .map_or_else(String::new, |kernel| format!("{}: ", source_name(kernel)))
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
    let mut no_dynamic = BTreeSet::new();
    for level in [
        Level::Source,
        Level::Ptx,
        Level::Assembler,
        Level::MachineCode,
    ] {
        let mut step = Carry {
            executor: &mut *executor,
            scope,
            demand,
            level,
            no_dynamic: &mut no_dynamic,
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
    /// Kernels whose PTX names no dynamic shared memory: machine code does not tell it from static.
    no_dynamic: &'s mut BTreeSet<String>,
}

impl Carry<'_, '_, '_> {
    fn carry(
        &mut self,
        all: &mut CarriedOut,
        plans: &[Plan],
        last: Level,
    ) -> Result<(), CarryError> {
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
                error: Box::new(error),
            })?;
            all.artifact = run.unproved().clone();
        }
        if self.level == Level::Assembler {
            return Ok(());
        }
        if let Some(module) = all.artifact.as_module() {
            let has_none = |name: &&String| {
                let function = module.function(name).map(|id| &module.functions[id]);
                function.is_some_and(|function| !uses_dynamic_shared(module, function))
            };
            let kernels = plans.iter().filter_map(|plan| plan.kernel.as_ref());
            self.no_dynamic.extend(kernels.filter(has_none).cloned());
        }
        let mut at = 0;
        while at < plans.len() {
            at = self.apart(all, plans, at)?;
            if let (Some(plan), Some(done)) = (plans.get(at), all.kernels.get_mut(at)) {
                self.passes(&mut all.artifact, plan, done)?;
            }
            at += 1;
        }
        Ok(())
    }

    /// Carries out plans from the one numbered `from` on, each kernel of a module apart from the others, so that
    /// thousands of them do not read the module thousands of times. Gives the number of the first plan that wants the
    /// whole: it is no kernel's, its kernel calls functions, or what it does is not in the kernel alone.
    fn apart(
        &mut self,
        all: &mut CarriedOut,
        plans: &[Plan],
        from: usize,
    ) -> Result<usize, CarryError> {
        let whole = all.artifact.clone();
        let Some((module, slices)) = whole.as_module().and_then(|m| Some((m, Slices::new(m)?)))
        else {
            return Ok(from);
        };
        // By the first byte of each function: its last, and the new text.
        let mut texts: BTreeMap<u32, (u32, String)> = BTreeMap::new();
        let mut at = from;
        for (plan, done) in plans.iter().zip(&mut all.kernels).skip(from) {
            if plan.recipe.at(self.level).next().is_some() {
                let kernel = plan.kernel.as_deref().unwrap_or_default();
                let alone = slices.get(kernel).map(Artifact::ptx);
                let (Some(Ok(before)), Some(function)) = (alone, slices.function(kernel)) else {
                    break;
                };
                let span = function.span;
                if texts.contains_key(&span.start) {
                    break;
                }
                let fuel = self.executor.fuel;
                let mut after = before.clone();
                let mut own = done.clone();
                self.passes(&mut after, plan, &mut own)?;
                let Some(text) = rewritten([&before, &after], kernel) else {
                    self.executor.fuel = fuel;
                    break;
                };
                texts.insert(span.start, (span.end, text));
                *done = own;
            }
            at += 1;
        }
        if !texts.is_empty() {
            let (mut text, mut last) = (String::with_capacity(module.source.len()), 0);
            for (start, (end, new)) in texts {
                text.push_str(&module.source[last..start as usize]);
                text.push_str(&new);
                last = end as usize;
            }
            text.push_str(&module.source[last..]);
            let whole = Artifact::parse(&module.name, &text);
            all.artifact = whole.map_err(|invalid| CarryError::Run {
                kernel: None,
                error: Box::new(RunError::Built(invalid)),
            })?;
        }
        Ok(at)
    }

    /// The passes of this level for one kernel.
    fn passes(
        &mut self,
        artifact: &mut Artifact,
        plan: &Plan,
        done: &mut Done,
    ) -> Result<(), CarryError> {
        for pass in plan.recipe.at(self.level) {
            if done.refused.is_some() {
                break;
            }
            let (launches, shape) = done.launches();
            let shaped = Scope {
                block: shape.block.or(self.scope.0.block),
                blocks: if shape.block.is_some() {
                    &[]
                } else {
                    self.scope.0.blocks
                },
                ..*self.scope.0
            };
            let mut target = target((&shaped, self.scope.1), artifact, plan.kernel.as_deref())?;
            target.setting = target.setting.shaped(&launches, shape);
            if target.setting.dynamic_smem.is_none()
                && target.kernel.is_some_and(|k| self.no_dynamic.contains(k))
            {
                target.setting.dynamic_smem = Some(0);
            }
            let recipe = Recipe::default().with(pass.clone());
            let run = match self.executor.run(artifact, &target, &recipe, self.level) {
                Ok(run) if !shape.is_same() && !run.shape().is_same() => {
                    done.refused = Some((pass.clone(), Refusal::ShapedBefore(shape)));
                    break;
                }
                Ok(run) => run,
                Err(RunError::Refused { pass, refusal }) => {
                    done.refused = Some((pass, refusal));
                    break;
                }
                Err(error) => {
                    return Err(CarryError::Run {
                        kernel: plan.kernel.clone(),
                        error: Box::new(error),
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
            let compared = run.steps.last().and_then(|step| step.comparison.as_ref());
            let proof = start.elapsed() + compared.map_or(Duration::ZERO, |c| c.elapsed);
            let (rung, promises) = match rung {
                Ok((rung, promises)) => (Ok(rung), promises),
                Err(error) => (Err(error), Promises::default()),
            };
            *artifact = run.unproved().clone();
            let steps = run.steps.into_iter();
            done.steps.extend(steps.map(|step| Stepped {
                step,
                rung: rung.clone(),
                promises,
                proof,
            }));
        }
        Ok(())
    }
}

/// The text of a kernel that was rewritten apart from the others; `None` if anything beside it was.
fn rewritten(versions: [&Artifact; 2], kernel: &str) -> Option<String> {
    let [before, after] = versions.map(|version| {
        let module = version.as_module()?;
        let span = module.functions[module.function(kernel)?].span;
        let (head, rest) = module.source.split_at_checked(span.start as usize)?;
        let (own, tail) = rest.split_at_checked(span.end as usize - span.start as usize)?;
        Some((head, own, tail))
    });
    let (before, after) = (before?, after?);
    ((before.0, before.2) == (after.0, after.2)).then(|| after.1.to_owned())
}

fn target<'t>(
    (scope, gpu): (&'t Scope<'_>, &'t Gpu),
    artifact: &Artifact,
    kernel: Option<&'t str>,
) -> Result<Target<'t>, ScopeError> {
    let setting = match kernel {
        Some(kernel) => scope.setting(artifact, kernel, gpu)?,
        None => Setting::new(gpu),
    };
    Ok(Target { kernel, setting })
}
