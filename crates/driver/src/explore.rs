//! The exploration of one kernel, whatever it comes as: rounds of proposals, each built and rated before
//! the next, the choice, and the proof of what is about to be chosen. docs/pipeline.md walks through it.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Arc;

use rayon::prelude::*;
use warpwright_diag::count;
use warpwright_launch::{Condition, Guard, Quantity, Version};
use warpwright_pass::passes::{Reduce, SmemSpilling, has_bounds, ignored_bounds};
use warpwright_pass::ptx::facts::{kernel_pressure, uses_dynamic_shared};
use warpwright_pass::ptx::specialize::loaded;
use warpwright_pass::ptx::{fusion, slice::Slices};
use warpwright_pass::scope::too_large;
use warpwright_pass::{
    Artifact, Block, Budget, Caution, Fuel, Invocation, ProofError, Proved, Recipe, Refusal,
    Reliance, Run, Rung, Setting,
};
use warpwright_ptx::ir::{Function, Module};
use warpwright_ptx::{FuncId, Inst};

use crate::build::{Bench, Built, Made, Workshop, mark_duplicates};
use crate::candidate::{Because, Candidate, Rejection, Resources, Standing};
use crate::choose::{Choice, choose};
use crate::control::{Assembly, control};
use crate::crat::{ResourceUsage, resource_usage};
use crate::machine_code::{demoted, hopeless, reordered};
use crate::opt::{
    Crat, DEFAULT_BUDGET, KernelOutcome, KernelReport, Known, NAMED, OptError, Proofs, Request,
};
use crate::proposal::{
    Goal, KEPT_APART, Peers, Situation, Throttled, all_spilling, at_launch, first_round,
    for_machine_code, goals, is_hopeless, is_rewritten, loops_and_caches, peers, register_limit,
    second_round, specialised, steps, third_round, throttles,
};
use crate::residency::{elsewhere, hold, occupy};
use crate::score::score_all;

/// What every kernel of an input is explored with.
#[derive(Clone, Copy)]
pub struct Input<'a> {
    /// ptxas; none for machine code as it is.
    pub workshop: Option<&'a Workshop<'a>>,
    /// The module or cubin.
    pub artifact: &'a Artifact,
    /// The kernels of a module apart.
    pub slices: Option<&'a Slices<'a>>,
    /// The untouched build of it.
    pub default: &'a Made,
    /// What is asked for.
    pub request: &'a Request<'a>,
}

/// A file of many kernels may take so many times the budget of one.
const KERNELS_OF_A_FILE: u64 = 5;

/// The budget of a file, dealt out to its kernels: what is left in equal shares, none larger than the budget of one.
/// What a kernel does not need is left for those behind it.
#[derive(Debug, Clone, Copy)]
pub struct Shares {
    most: u64,
    left: u64,
    kernels: u64,
}

impl Shares {
    /// `seconds` for one kernel, and so many kernels.
    pub fn new(seconds: f64, kernels: usize) -> Shares {
        let most = Budget::seconds(seconds).left();
        Shares {
            most,
            left: most.saturating_mul(KERNELS_OF_A_FILE),
            kernels: kernels as u64,
        }
    }

    /// What the next kernel may take.
    pub fn next(&self) -> Budget {
        let share = self.left / self.kernels.max(1);
        Budget::micros(share.min(self.most))
    }

    /// It has taken so much.
    pub fn taken(&mut self, work: u64) {
        self.left = self.left.saturating_sub(work);
        self.kernels = self.kernels.saturating_sub(1);
    }
}

/// Explores one kernel: all candidates, rated, and the choice, proved.
///
/// # Errors
/// [`OptError`].
pub fn explore(
    input: &Input<'_>,
    kernel: &str,
    (known, budget): (&Known, Budget),
    done: &(dyn Fn(&Candidate) + Sync),
) -> Result<KernelOutcome, OptError> {
    let alone = alone(input, kernel);
    let start = alone.as_ref().unwrap_or(input.artifact);
    let mut exploration = begin(input, (kernel, start), (known, budget), done)?;
    match input.artifact.as_module() {
        Some(whole) => exploration.of_ptx(whole)?,
        None => exploration.of_machine_code()?,
    }
    exploration.score();
    let choice = exploration.settle();
    Ok(exploration.outcome(choice))
}

/// One kernel with a named recipe: the default build and what the recipe makes of it, rated. None is proved.
///
/// # Errors
/// [`OptError`].
pub fn replay(input: &Input<'_>, kernel: &str, recipe: &Recipe) -> Result<KernelReport, OptError> {
    let alone = alone(input, kernel);
    let start = alone.as_ref().unwrap_or(input.artifact);
    let (known, budget) = (Known::new(), Budget::seconds(DEFAULT_BUDGET));
    let mut exploration = begin(input, (kernel, start), (&known, budget), &|_| {})?;
    let setting = exploration.bench.setting;
    if let Some((module, id)) = start
        .as_module()
        .and_then(|m| Some((m, m.function(kernel)?)))
    {
        let max_reg = kernel_pressure(module, id);
        let resources = exploration.default_resources();
        exploration.usage = Some(resource_usage(module, id, &setting, max_reg, &resources));
    }
    if !recipe.is_default() {
        let named =
            exploration
                .bench
                .build_all(vec![recipe.clone()], &|_| None, exploration.done)?;
        exploration.take(named);
    }
    exploration.score();
    let choice = Choice {
        index: exploration.built.len() - 1,
        reason: NAMED.to_owned(),
    };
    Ok(exploration.outcome(choice).report)
}

/// A proved version of a kernel that is to be measured, for where something tests its guard at each launch.
#[derive(Debug, Clone)]
pub struct Measurable {
    /// The version.
    pub version: Version<Arc<[u8]>, Rung>,
    /// What its proof leaves open.
    pub caution: Option<Caution>,
}

/// What each recipe makes of a kernel, proved; or why there is nothing.
///
/// # Errors
/// [`OptError`].
pub fn versions(
    input: &Input<'_>,
    kernel: &str,
    recipes: Vec<Recipe>,
) -> Result<Vec<Result<Measurable, Rejection>>, OptError> {
    let alone = alone(input, kernel);
    let start = alone.as_ref().unwrap_or(input.artifact);
    let (known, budget) = (Known::new(), Budget::seconds(DEFAULT_BUDGET));
    let mut exploration = begin(input, (kernel, start), (&known, budget), &|_| {})?;
    let built = exploration
        .bench
        .build_all(recipes, &|_| None, exploration.done)?;
    exploration.take(built);
    let built = exploration.built.par_iter().skip(1);
    Ok(built.map(measurable).collect())
}

fn measurable(built: &Built) -> Result<Measurable, Rejection> {
    let candidate = &built.candidate;
    if let Some(why) = candidate.rejected() {
        return Err(why.clone());
    }
    let none = || Rejection::new(Because::Build, "there is no code");
    let run = built.run.as_ref().ok_or_else(none)?;
    let proved = run.prove();
    let proved = proved.map_err(|error| Rejection::new(Because::NotProved, error))?;
    let code = proved.artifact().as_cubin().ok_or_else(none)?;
    let rungs = proved.rungs.iter().map(|(rung, _)| *rung);
    Ok(Measurable {
        caution: candidate.caution(),
        version: Version {
            code: code.bytes().clone(),
            guard: proved.guard.clone(),
            shape: proved.shape,
            recipe: candidate.recipe.to_string(),
            rung: rungs.max().unwrap_or(Rung::Unchanged),
        },
    })
}

/// The kernel without the others of its module, where that can be.
fn alone(input: &Input<'_>, kernel: &str) -> Option<Artifact> {
    let module = input.slices.and_then(|slices| slices.get(kernel))?;
    Artifact::ptx(module).ok()
}

/// The default build of one kernel.
fn begin<'a>(
    input: &Input<'a>,
    (kernel, start): (&'a str, &'a Artifact),
    (known, budget): (&'a Known, Budget),
    done: &'a (dyn Fn(&Candidate) + Sync),
) -> Result<Exploration<'a>, OptError> {
    let request = input.request;
    let setting = request.scope.setting(input.artifact, kernel, request.gpu)?;
    let mut exploration = Exploration {
        bench: Bench {
            workshop: input.workshop,
            start,
            kernel,
            setting,
            fuel: Fuel::default(),
        },
        request,
        reliance: Reliance::of(start, kernel),
        known,
        done,
        budget,
        given: budget.left(),
        begun: BTreeMap::new(),
        usage: None,
        built: Vec::new(),
        proved: None,
        notes: Vec::new(),
        untried: 0,
        has_bounds: false,
    };
    let bench = exploration.bench;
    let default = bench.read_back(Recipe::default(), input.default);
    exploration.take(vec![default]);
    Ok(exploration)
}

struct Exploration<'a> {
    bench: Bench<'a>,
    request: &'a Request<'a>,
    /// What the kernel relies on.
    reliance: Reliance,
    known: &'a Known,
    done: &'a (dyn Fn(&Candidate) + Sync),
    budget: Budget,
    /// What it was in the beginning, in nominal microseconds.
    given: u64,
    /// What first passes made of the PTX, by their invocations.
    begun: BTreeMap<Invocation, Run>,
    usage: Option<ResourceUsage>,
    built: Vec<Built>,
    proved: Option<Proved>,
    notes: Vec<String>,
    /// Recipes that the budget left out.
    untried: usize,
    has_bounds: bool,
}

/// What building takes: nominal microseconds for each candidate, and for each instruction of the default build
/// (docs/pipeline.md has what they come from).
const BUILD: u64 = 15_000;
const BUILD_INSTRUCTION: u64 = 60;
/// What our own register passes take for each instruction of the PTX.
const REWRITE_INSTRUCTION: u64 = 1_500;
/// The controller's passes and builds, as far as the budget goes.
struct Metered<'a> {
    bench: Bench<'a>,
    budget: Cell<Budget>,
    reserve: u64,
    work: u64,
}

impl Assembly for Metered<'_> {
    fn reduce(&self, goal: u32) -> Option<Run> {
        let mut budget = self.budget.get();
        let is_enough = budget.left().saturating_sub(self.work) >= self.reserve;
        if !is_enough || !budget.spend(self.work) {
            return None;
        }
        self.budget.set(budget);
        self.bench.reduce(goal)
    }

    fn build(&self, run: &Run) -> Option<Resources> {
        self.bench.build(run)
    }
}

impl<'a> Exploration<'a> {
    fn of_ptx(&mut self, whole: &Module) -> Result<(), OptError> {
        let Some(module) = self.bench.start.as_module() else {
            return Ok(());
        };
        let (Some(id), Some(own)) = (
            module.function(self.bench.kernel),
            whole.function(self.bench.kernel),
        ) else {
            return Ok(());
        };
        self.remarks(whole, &whole.functions[own]);
        if let Some(opaque) = module.functions[id].opaque() {
            let text = passed_through(module, &module.functions[id], opaque);
            self.notes.push(text);
            return Ok(());
        }
        if !self.moves_registers() {
            self.rounds(module, id, whole.kernels().count() == 1)?;
            if self.is_measured() && self.request.peers != Peers::Spills {
                self.score();
                self.build(loops_and_caches(&self.candidates()))?;
            }
        }
        self.rework()
    }

    /// Is it launched with registers that no build may change?
    fn moves_registers(&mut self) -> bool {
        if self.reliance.moves_registers {
            self.notes.push(format!(
                "no register limit, level, bound or spill is tried: {}",
                Refusal::MovesRegisters
            ));
        }
        self.reliance.moves_registers
    }

    fn rounds(&mut self, module: &Module, id: FuncId, is_alone: bool) -> Result<(), OptError> {
        let function = &module.functions[id];
        let (setting, request) = (self.bench.setting, self.request);
        let resources = self.default_resources();
        let stairs = setting.stairs(resources.shared_bytes);
        let stairs = stairs.map_err(|error| OptError::Launch {
            kernel: self.bench.kernel.to_owned(),
            error,
        })?;
        let max_reg = kernel_pressure(module, id);
        let usage = resource_usage(module, id, &setting, max_reg, &resources);
        let tops: Vec<u32> = stairs.iter().map(|s| s.regs).collect();
        let block = setting.block;
        let situation = Situation {
            natural: resources.registers,
            stairs: &tops,
            promised_block: block.is_given().then(|| block.threads()),
            module_options: is_alone,
            shared_spilling: SmemSpilling::obstacle(module, function, setting.dynamic()).is_none(),
            spill_to_shared: !request.ptx_only
                && setting.dynamic_smem.is_some()
                && (block.is_given() || function.max_ntid().is_some()),
        };
        let mut recipes = first_round(&situation);
        if request.peers == Peers::Spills {
            self.usage = Some(usage);
            self.build(recipes)?;
            self.score();
            return self.build(all_spilling(&situation, &self.candidates()));
        }
        if block.is_given() {
            let opt_tlp = usage.opt_tlp.as_ref().map(|o| o.blocks);
            recipes.extend(throttles(
                &self.throttled(&resources.clone().into_need(&setting), opt_tlp),
                request.peers != Peers::None,
            ));
        }
        let blocks: Vec<u32> = stairs.iter().map(|s| s.blocks).collect();
        recipes.extend(peers(&situation, request.peers, &blocks, self.resident()));
        self.usage = Some(usage);
        let is_thorough = self.is_thorough();
        let steps = match is_thorough {
            true => vec![recipes],
            false => steps(situation.natural, recipes),
        };
        for (at, step) in steps.iter().enumerate() {
            let candidates = self.candidates();
            let hopeless = candidates.iter().find(|c| at > 0 && is_hopeless(c));
            if let Some(hopeless) = hopeless {
                let rest = steps[at..].concat().len();
                self.notes.push(format!(
                    "{} {} not built: {} is predicted to be much slower already",
                    count(rest, "still lower register limit"),
                    if rest == 1 { "is" } else { "are" },
                    hopeless.recipe
                ));
                break;
            }
            self.build(step.clone())?;
            self.score();
        }
        let mut promising = self.candidates();
        promising.retain(|candidate| is_thorough || !is_hopeless(candidate));
        self.build(second_round(&situation, &promising))?;
        self.score();
        self.for_launch()?;
        let kept = (!self.is_measured()).then(|| self.bench.kept_apart());
        if let Some((recipe, run)) = kept.flatten() {
            self.begun.insert(KEPT_APART.into(), run);
            self.build(vec![recipe])?;
            self.score();
        }
        let goals = goals(&situation, &self.candidates());
        if self.may_rewrite(module) {
            let mut recipes = third_round(&goals);
            recipes.extend(self.reductions(module, id, &goals, max_reg, &resources));
            return self.build(recipes);
        }
        // What was measured may be chosen all the same.
        let known = third_round(&goals)
            .into_iter()
            .chain(self.known.keys().cloned());
        let is_known = |recipe: &Recipe| self.known.contains_key(recipe);
        let known = known.filter(is_known).filter(Recipe::fits_ptx).collect();
        self.build(known)
    }

    /// A guard without parameters that the kernel does not load.
    fn used(&self, guard: &Guard) -> Guard {
        let module = self.bench.start.as_module();
        let kernel = module.and_then(|module| Some((module, module.function(self.bench.kernel)?)));
        let used = kernel.map_or_else(Vec::new, |(module, kernel)| loaded(module, kernel));
        let conditions = guard.conditions().filter(|condition| match condition {
            Condition::In(Quantity::Param(field), _) => used.contains(field),
            _ => true,
        });
        conditions.fold(Guard::always(), Guard::with)
    }

    /// Versions for the launch that is known. Where nothing is measured there is one, and beside it stands what that launch runs
    /// of it.
    fn for_launch(&mut self) -> Result<(), OptError> {
        let setting = self.bench.setting;
        let known = self
            .request
            .scope
            .constants(self.bench.kernel, setting.block.dims);
        let Some(guard) = known.map(|guard| self.used(&guard)) else {
            return Ok(());
        };
        if self.request.proofs == Proofs::All {
            self.build(specialised(&guard, &self.candidates()))?;
            self.score();
            return Ok(());
        }
        let is_free = !self
            .bench
            .start
            .as_module()
            .is_some_and(fusion::may_be_fused);
        if !is_free || !self.budget.spend(self.building()) {
            return Ok(());
        }
        let (both, alone) = at_launch(&guard);
        self.build(vec![both.clone()])?;
        let alone = self.bench.build_all(vec![alone], &|_| None, &|_| {})?;
        let place = self.built.iter().position(|b| b.candidate.recipe == both);
        if let (Some(place), Some(mut alone)) = (place, alone.into_iter().next()) {
            occupy(&setting, &mut alone.candidate);
            self.built[place].at_launch = Some(Box::new(alone));
        }
        self.score();
        Ok(())
    }

    /// Are candidates built that the model sees no hope for? Measurements may tell another tale.
    fn is_thorough(&self) -> bool {
        let request = self.request;
        request.proofs == Proofs::All || request.peers != Peers::None || !self.known.is_empty()
    }

    /// Are builds that our own passes rewrite worth their time? Where ptxas may round differently they can be
    /// chosen only once measured.
    fn may_rewrite(&mut self, module: &Module) -> bool {
        // What they promise was looked at on kernels without such pairs.
        let is_free = !fusion::has_unrounded_pair(module) || self.request.proofs == Proofs::All;
        if !is_free {
            // The first of all: others matter more where there is no room for each.
            let note = "`reduce` and `allocate` are for `tune` (explain-term fusion)";
            self.notes.insert(0, note.to_owned());
        }
        is_free
    }

    /// You & Tsai's passes at each goal, with ptxas held to the limit. For one block more the
    /// controller finds the pressure at which ptxas keeps to it by itself; for the other goals the
    /// pressure has to fall by as much as the registers.
    fn reductions(
        &mut self,
        module: &Module,
        id: FuncId,
        goals: &[Goal],
        pressure: u32,
        natural: &Resources,
    ) -> Vec<Recipe> {
        let mut recipes = Vec::new();
        for (at, goal) in goals.iter().enumerate() {
            let found = (at == 0).then(|| {
                let metered = Metered {
                    bench: self.bench,
                    budget: Cell::new(self.budget),
                    reserve: self.reserve(),
                    work: self.rewriting() + self.building(),
                };
                let found = control((module, id), natural, goal.registers, &metered);
                self.budget = metered.budget.get();
                let runs = found.runs.into_iter();
                self.begun
                    .extend(runs.map(|(goal, run)| (reduce(goal), run)));
                found.goal
            });
            let found = found.flatten();
            let plain = pressure.saturating_sub(natural.registers.saturating_sub(goal.registers));
            let reduced = Recipe::default().with(reduce(found.unwrap_or(plain)));
            recipes.extend(found.map(|_| reduced.clone()));
            let limit = warpwright_pass::passes::MaxNReg {
                registers: goal.registers,
            };
            recipes.push(reduced.with(limit));
        }
        recipes
    }

    /// A finished cubin: its spills, and how many blocks reside.
    fn of_machine_code(&mut self) -> Result<(), OptError> {
        let setting = self.bench.setting;
        let Some(default) = self.built.first_mut() else {
            return Ok(());
        };
        let kernel = default.kernel.as_ref();
        if let Some(why) = kernel.and_then(|k| too_large(k, &setting.block, setting.gpu)) {
            if let Some(figures) = default.candidate.figures_mut() {
                figures.residency = None;
            }
            self.notes.push(format!("no change is offered: {why}"));
            default
                .candidate
                .reject(Rejection::new(Because::Launch, why));
            return Ok(());
        }
        self.notes.extend(not_promised(&self.bench.setting.block));
        let need = self.default_resources().into_need(&setting);
        let throttled = self.throttled(&need, None);
        let candidates = self.candidates();
        let Some(default) = candidates.first() else {
            return Ok(());
        };
        self.build(for_machine_code(default, &throttled))?;
        self.rework()
    }

    /// Are all candidates to be measured?
    fn is_measured(&self) -> bool {
        let request = self.request;
        request.proofs == Proofs::All && !request.is_searched
    }

    /// Other machine code of what there is, where all candidates are to be measured.
    fn rework(&mut self) -> Result<(), OptError> {
        if !self.is_measured() || self.request.ptx_only {
            return Ok(());
        }
        self.score();
        let gpu = self.bench.setting.gpu;
        let stairs = self
            .bench
            .setting
            .stairs(self.default_resources().shared_bytes);
        let stairs = stairs.unwrap_or_default();
        self.build(demoted(gpu, &stairs, &self.candidates()))?;
        self.score();
        for at in hopeless(&self.candidates()) {
            let why = Rejection::new(Because::Budget, "other demoted builds promise more");
            self.built[at].candidate.reject(why);
        }
        self.build(reordered(gpu, &self.candidates()))
    }

    fn throttled<'n>(
        &self,
        need: &'n warpwright_target::Resources,
        opt_tlp: Option<u32>,
    ) -> Throttled<'n>
    where
        'a: 'n,
    {
        let setting = &self.bench.setting;
        let own = setting
            .grid
            .and_then(|grid| setting.gpu.blocks_for_sm(grid));
        Throttled {
            gpu: setting.gpu,
            need,
            // Fewer than the launch has for an SM anyway are no fewer.
            resident: match own.and_then(|own| u32::try_from(own).ok()) {
                Some(own) => self.resident().min(own),
                None => self.resident(),
            },
            opt_tlp,
            ptx_only: self.request.ptx_only,
        }
    }

    fn candidates(&self) -> Vec<Candidate> {
        self.built.iter().map(|b| b.candidate.clone()).collect()
    }

    fn default_resources(&self) -> Resources {
        let default = self.built.first();
        default
            .and_then(|b| b.candidate.resources().cloned())
            .unwrap_or_default()
    }

    fn resident(&self) -> u32 {
        let default = self.built.first();
        default
            .and_then(|b| b.candidate.residency())
            .map_or(0, |r| r.blocks)
    }

    /// Builds the recipes that have not been built yet, as far as the budget goes; half of it is kept for
    /// proofs.
    fn build(&mut self, recipes: Vec<Recipe>) -> Result<(), OptError> {
        let reserve = self.reserve();
        let mut all: Vec<Recipe> = Vec::new();
        for recipe in recipes {
            let is_known = self.built.iter().any(|b| b.candidate.recipe == recipe);
            if !is_known && !all.contains(&recipe) {
                all.push(recipe);
            }
        }
        // Where the budget is short, what a kernel that spills gains most by comes first.
        let mut by_need: Vec<usize> = (0..all.len()).collect();
        by_need.sort_by_key(|&at| std::cmp::Reverse(self.relief(&all[at])));
        let mut fits = vec![false; all.len()];
        for at in by_need {
            let recipe = &all[at];
            let is_known = recipe
                .passes()
                .first()
                .is_some_and(|p| self.begun.contains_key(p));
            let work = match is_rewritten(recipe) && !is_known {
                true => self.building() + self.rewriting(),
                false => self.building(),
            };
            let is_enough = self.budget.left().saturating_sub(work) >= reserve;
            fits[at] = is_enough && self.budget.spend(work);
            self.untried += usize::from(!fits[at]);
        }
        let new: Vec<Recipe> = all
            .into_iter()
            .zip(fits)
            .filter_map(|(recipe, fits)| fits.then_some(recipe))
            .collect();
        let begun = &self.begun;
        let first = |recipe: &Recipe| begun.get(recipe.passes().first()?);
        let built = self.bench.build_all(new, &first, self.done)?;
        self.take(built);
        Ok(())
    }

    /// Registers that a higher limit gives a kernel that spills.
    fn relief(&self, recipe: &Recipe) -> u32 {
        let default = self.built.first().and_then(|b| b.candidate.resources());
        let default = default.filter(|resources| resources.spills());
        let limit = default.and_then(|default| {
            let limit = register_limit(recipe)?;
            limit.checked_sub(default.registers)
        });
        limit.unwrap_or(0)
    }

    /// Half of the budget is kept for proofs.
    fn reserve(&self) -> u64 {
        self.given / 2
    }

    /// What one build takes.
    fn building(&self) -> u64 {
        let code = self.built.first().and_then(|b| b.kernel.as_ref());
        BUILD + BUILD_INSTRUCTION * code.map_or(0, |k| k.code.len() as u64)
    }

    /// What one of our own register passes takes.
    fn rewriting(&self) -> u64 {
        let module = self.bench.start.as_module();
        let kernel = module.and_then(|m| Some(&m.functions[m.function(self.bench.kernel)?]));
        let body = kernel.and_then(|f| f.body.as_ref());
        REWRITE_INSTRUCTION * body.map_or(0, |body| body.insts.len() as u64)
    }

    /// Takes builds in, with their residency and what is known of them.
    fn take(&mut self, built: Vec<Built>) {
        for mut b in built {
            occupy(&self.bench.setting, &mut b.candidate);
            elsewhere(&self.bench.setting, b.run.as_ref(), &mut b.candidate);
            if let Some(default) = self.built.first() {
                let setting = &self.bench.setting;
                hold(self.reliance, setting, &default.candidate, &mut b.candidate);
            }
            remember(&mut b.candidate, self.known);
            self.built.push(b);
        }
    }

    fn score(&mut self) {
        mark_duplicates(&mut self.built);
        let opt_tlp = self.usage.as_ref().and_then(|u| u.opt_tlp.as_ref());
        score_all(&self.bench.setting, opt_tlp, &mut self.built);
    }

    /// Chooses, and proves what is chosen; if that fails, the next best is chosen.
    fn settle(&mut self) -> Choice {
        if self.request.proofs == Proofs::All {
            self.prove_all();
        }
        loop {
            let choice = match self.request.peers {
                Peers::Spills => Choice {
                    index: 0,
                    reason: "ways to spill are compared, nothing is chosen".into(),
                },
                _ => choose(&self.candidates(), self.request.margin),
            };
            match self.prove(choice.index) {
                Some(proved) => {
                    self.proved = Some(proved);
                    return choice;
                }
                None if choice.index == 0 => return choice,
                None => {}
            }
        }
    }

    /// Proves every candidate that could be measured, the most promising first.
    fn prove_all(&mut self) {
        let time = |b: &Built| {
            b.candidate
                .score()
                .map_or(f64::INFINITY, |s| s.relative_time)
        };
        let mut order: Vec<usize> = (0..self.built.len()).collect();
        order.sort_by(|&a, &b| time(&self.built[a]).total_cmp(&time(&self.built[b])));
        for index in order {
            let candidate = &self.built[index].candidate;
            if candidate.rejected().is_none() && candidate.same_code_as().is_none() {
                let caution = candidate.caution();
                let is_proved = self.prove(index).is_some();
                // A measurement is wanted all the same.
                let figures = self.built[index].candidate.figures_mut();
                if let (Some(figures), Some(caution), true) = (figures, caution, is_proved) {
                    figures.standing = Standing::UntilMeasured(caution);
                }
            }
        }
    }

    /// Proves a candidate, or rejects it.
    fn prove(&mut self, index: usize) -> Option<Proved> {
        let Built { candidate, run, .. } = &mut self.built[index];
        let found = run.as_ref()?.prove_within(&mut self.budget);
        match found {
            Ok(proved) if !proved.shape.is_same() => {
                let text = Refusal::OtherLaunch(proved.shape);
                candidate.reject(Rejection::new(Because::Launch, text));
                None
            }
            Ok(proved) if !proved.guard.is_always() => {
                let text = format!(
                    "right at launches of {} alone, and nothing refuses others",
                    proved.guard
                );
                candidate.reject(Rejection::new(Because::Launch, text));
                None
            }
            Ok(proved) => {
                let rung = proved.rungs.iter().map(|(rung, _)| *rung).max();
                let cautions = run.as_ref().map(Run::cautions).unwrap_or_default();
                if let Some(figures) = candidate.figures_mut() {
                    figures.holds_for = holds_for(&cautions, Some(&proved));
                }
                if let (Some(figures), Some(rung)) = (candidate.figures_mut(), rung)
                    && !matches!(figures.standing, Standing::Rejected(_))
                {
                    figures.standing = Standing::Proved(rung);
                }
                Some(proved)
            }
            Err(ProofError::NotProved(error)) => {
                candidate.reject(Rejection::new(Because::NotProved, error));
                None
            }
            Err(error @ ProofError::OverBudget) => {
                candidate.reject(Rejection::new(Because::Budget, error));
                None
            }
        }
    }

    fn outcome(mut self, choice: Choice) -> KernelOutcome {
        let candidates = self.candidates();
        if self.untried > 0 {
            let whole = self.given == Budget::seconds(self.request.budget).left();
            let budget = match whole {
                true => format!("the budget of {} reference seconds", self.request.budget),
                false => "this kernel's share of the file's budget of reference seconds".to_owned(),
            };
            self.notes.push(format!(
                "{} {} not tried: {budget} was spent (--budget{})",
                count(self.untried, "candidate"),
                if self.untried == 1 { "was" } else { "were" },
                if whole { "" } else { ", --kernel" }
            ));
        }
        let work = self.given.saturating_sub(self.budget.left());
        let mut waiting: Vec<Caution> = candidates.iter().filter_map(Candidate::caution).collect();
        waiting.sort_unstable();
        waiting.dedup();
        let waiting = waiting
            .iter()
            .map(|caution| format!("some candidates: {caution}"));
        self.notes.extend(waiting);
        let chosen = &self.built[choice.index];
        let kept = chosen.run.as_ref().map(Run::cautions).unwrap_or_default();
        let promises = holds_for(&kept, self.proved.as_ref());
        let crat = self.usage.map(|usage| Crat {
            choice: usage
                .opt_tlp
                .as_ref()
                .and_then(|o| crate::crat::choice(&candidates, o.blocks)),
            usage,
        });
        let setting = &self.bench.setting;
        let recipe = &candidates[choice.index].recipe;
        let report = KernelReport {
            name: self.bench.kernel.to_string(),
            block: setting.block.dims,
            block_source: setting.block.source,
            has_bounds: self.has_bounds,
            dynamic_smem: setting.dynamic(),
            grid: setting.grid,
            idle_sms: setting.idle_sms(),
            guessed: setting.guessed.to_owned(),
            recipe_text: recipe.to_string(),
            candidates,
            chosen: choice.index,
            reason: choice.reason,
            notes: self.notes,
            promises,
            gained: None,
            wasted: None,
            counted: None,
            crat,
        };
        KernelOutcome {
            report,
            built: self.built,
            proved: self.proved,
            work,
        }
    }

    /// What the user should know before anything is built.
    fn remarks(&mut self, module: &Module, function: &Function) {
        let setting = self.bench.setting;
        self.has_bounds = has_bounds(function);
        self.notes.extend(ignored_bounds(function, setting.gpu));
        self.notes.extend(not_promised(&self.bench.setting.block));
        let kernel = self.bench.kernel;
        let met = self
            .bench
            .workshop
            .into_iter()
            .flat_map(|workshop| workshop.miscompiles(module, setting.gpu));
        let own = met.filter(|met| met.kernel == kernel);
        self.notes.extend(own.map(|met| met.to_string()));
        let by_ptxas = SmemSpilling::obstacle(module, function, setting.dynamic());
        let by_us = match setting.dynamic_smem {
            _ if self.request.ptx_only => Some("PTX cannot hold an edit of the machine code"),
            None if uses_dynamic_shared(module, function) => Some(match setting.seen_dynamic {
                Some(_) => {
                    "the code's own launch promises no size of dynamic shared memory (--dynamic-smem states it)"
                }
                None => "the size of dynamic shared memory is not known (--dynamic-smem states it)",
            }),
            _ => None,
        };
        let ways = [("smem-spilling", by_ptxas), ("spill-to-shared", by_us)];
        let mut refused = ways
            .into_iter()
            .filter_map(|(pass, why)| Some((pass, why?)));
        if let Some((pass, why)) = refused.next() {
            let also = refused.next();
            let also =
                also.map_or_else(String::new, |(pass, why)| format!(", nor is {pass}: {why}"));
            self.notes
                .push(format!("{pass} is not offered: {why}{also}"));
        }
    }
}

/// What a build holds for, in words: what its passes promise of launches, and what its proof takes for granted.
fn holds_for(cautions: &[Caution], proved: Option<&Proved>) -> Vec<String> {
    let kept = cautions
        .iter()
        .filter(|caution| !caution.wants_measurement());
    let granted = proved.into_iter().flat_map(|proved| &proved.promises);
    let granted = granted.map(warpwright_pass::rests_on);
    kept.map(ToString::to_string).chain(granted).collect()
}

/// What a block that the code's own launch shows does not promise. (That one is assumed stands beside the kernel's name.)
pub(crate) fn not_promised(block: &Block) -> Option<String> {
    block.is_seen().then(|| {
        "the code's own launch promises nothing of others: what relies on the block is offered with --block"
            .to_owned()
    })
}

/// Enters what was measured of a candidate before.
pub fn remember(candidate: &mut Candidate, known: &Known) {
    match known.get(&candidate.recipe) {
        Some(Ok(measured)) => {
            if let Some(figures) = candidate.figures_mut() {
                figures.measured = Some(measured.clone());
            }
        }
        Some(Err(why)) => candidate.reject(Rejection::new(Because::Measured, why)),
        None => {}
    }
}

fn reduce(goal: u32) -> Invocation {
    Reduce {
        registers: Some(goal),
    }
    .into()
}

impl Resources {
    /// What the occupancy calculator asks for.
    fn into_need(self, setting: &Setting) -> warpwright_target::Resources {
        warpwright_target::Resources {
            regs: self.registers,
            block_threads: setting.block.threads(),
            static_smem: self.shared_bytes,
            dynamic_smem: setting.dynamic(),
            barriers: self.barriers,
        }
    }
}

fn passed_through(module: &Module, function: &Function, opaque: &[Inst]) -> String {
    let first = function
        .body
        .as_ref()
        .zip(opaque.first())
        .map_or("?", |(body, &inst)| &module.opcode(&body.insts[inst]).text);
    format!("passed through unchanged: `{first}` is not known to Warpwright's opcode table")
}
