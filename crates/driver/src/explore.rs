//! The exploration of one kernel: rounds of proposals, each built and scored before the next, and
//! the choice at the end. docs/pipeline.md walks through it.

use warpwright_ptx::ir::{Function, Module};
use warpwright_ptx::{FuncId, Inst};
use warpwright_target::Stair;
use warpwright_toolkit::{Build, ToolError};

use crate::build::{Built, Workshop, mark_duplicates, read_back};
use crate::candidate::{Candidate, Resources};
use crate::choose::{Choice, choose};
use crate::crat::{ResourceUsage, choice, resource_usage};
use crate::demote;
use crate::explain::pressure_report;
use crate::fusion::{CAUTION, is_rewritten, may_be_fused};
use crate::kernel::{shared_spilling_obstacle, uses_dynamic_shared};
use crate::opt::{Crat, KernelOutcome, KernelReport, Known, OptError, Request, setting};
use crate::propose::{
    Goal, Peers, Situation, Throttled, all_spilling, first_round, goals, peers, second_round,
    third_round, throttles,
};
use crate::realise::Plan;
use crate::recipe::{Decision, Recipe};
use crate::residency::{occupy, stairs};
use crate::rewrite::{Setting, Site};
use crate::score::score_all;
use crate::slice::slice;

/// Explores one kernel: all candidates, scored, and the choice. `default` is the build of the
/// untouched module.
pub fn explore(
    workshop: &Workshop,
    module: &Module,
    function: &Function,
    default: &Build,
    request: &Request,
    known: &Known,
    done: &(dyn Fn(&Candidate) + Sync),
) -> Result<KernelOutcome, OptError> {
    let setting = setting(function, request)?;
    let slice = slice(module, &function.name);
    let mut exploration = Exploration {
        workshop,
        module: slice.as_ref().unwrap_or(module),
        is_alone: module.kernels().count() == 1,
        name: &function.name,
        setting,
        known,
        done,
        may_be_fused: may_be_fused(slice.as_ref().unwrap_or(module)),
        usage: None,
        built: Vec::new(),
    };
    let mut notes = notes(module, function, &setting, request);
    exploration.begin(default)?;
    match (
        function.opaque(),
        exploration.module.function(&function.name),
    ) {
        (None, Some(id)) => exploration.rounds(id, request)?,
        (opaque, _) => notes.push(passed_through(module, function, opaque.unwrap_or_default())),
    }
    exploration.score();
    notes.extend(exploration.cautions());
    Ok(exploration.outcome(request, notes))
}

struct Exploration<'a> {
    workshop: &'a Workshop<'a>,
    /// The kernel and what it needs, or the whole module where they cannot be parted.
    module: &'a Module,
    /// Is it the only kernel of the user's module?
    is_alone: bool,
    name: &'a str,
    setting: Setting<'a>,
    known: &'a Known,
    done: &'a (dyn Fn(&Candidate) + Sync),
    may_be_fused: bool,
    usage: Option<ResourceUsage>,
    built: Vec<Built>,
}

impl Exploration<'_> {
    /// The default build.
    fn begin(&mut self, default: &Build) -> Result<(), OptError> {
        let untouched = Plan {
            kernel: self.name,
            recipe: &Recipe::default(),
            setting: self.setting,
        };
        let built = read_back(&untouched, default)?;
        self.take(vec![built]);
        Ok(())
    }

    fn rounds(&mut self, id: FuncId, request: &Request) -> Result<(), OptError> {
        let function = &self.module.functions[id];
        let Setting {
            gpu,
            block,
            dynamic_smem,
        } = self.setting;
        let resources = self.default_resources();
        let stairs = stairs(gpu, &block, resources.shared_bytes, dynamic_smem)
            .map_err(|e| OptError::Request(format!("kernel `{}`: {e}", self.name)))?;
        let max_reg = pressure_report(self.module, id).peak_units;
        let usage = resource_usage(self.module, id, &self.setting, max_reg, &resources);
        let tops: Vec<u32> = stairs.iter().map(|s| s.regs).collect();
        let situation = Situation {
            natural: resources.registers,
            stairs: &tops,
            promised_block: block.is_given().then(|| block.threads()),
            module_options: self.is_alone,
            shared_spilling: shared_spilling_obstacle(self.module, function, dynamic_smem)
                .is_none(),
            spill_to_shared: spill_to_shared_obstacle(self.module, function, request).is_none(),
        };
        let mut recipes = first_round(&situation);
        if request.peers == Peers::Spills {
            recipes.retain(|recipe| recipe.usage_level().is_none());
            self.usage = Some(usage);
            self.build(recipes)?;
            self.score();
            return Ok(self.build(all_spilling(&situation, &self.candidates()))?);
        }
        recipes.extend(self.throttled(&usage, &resources, request));
        recipes.extend(self.swept(&situation, &stairs, request.peers));
        self.usage = Some(usage);
        self.build(recipes)?;
        self.score();
        self.build(second_round(&situation, &self.candidates()))?;
        self.score();
        let goals = goals(&situation, &self.candidates());
        let mut recipes = third_round(&goals);
        recipes.extend(self.reduced(id, &goals, max_reg, resources.registers));
        self.build(recipes)?;
        Ok(())
    }

    /// You & Tsai's passes at each goal, with ptxas held to the limit. For one block more the
    /// controller finds the pressure at which ptxas keeps to it by itself; for the other goals the
    /// pressure has to fall by as much as the registers.
    fn reduced(&self, kernel: FuncId, goals: &[Goal], pressure: u32, natural: u32) -> Vec<Recipe> {
        let site = Site {
            module: self.module,
            kernel,
            setting: self.setting,
        };
        let mut recipes = Vec::new();
        for (at, goal) in goals.iter().enumerate() {
            let limit = Decision::MaxRegisters {
                registers: goal.registers,
            };
            let found = (at == 0)
                .then(|| self.workshop.control(&site, goal.registers).ok()?.goal)
                .flatten();
            let plain = pressure.saturating_sub(natural.saturating_sub(goal.registers));
            let registers = found.unwrap_or(plain);
            let reduced = Recipe::default().with(Decision::Reduce { registers });
            recipes.extend(found.map(|_| reduced.clone()));
            recipes.push(reduced.with(limit));
        }
        recipes
    }

    fn candidates(&self) -> Vec<Candidate> {
        self.built.iter().map(|b| b.candidate.clone()).collect()
    }

    fn default_resources(&self) -> Resources {
        let default = self.built.first();
        default
            .and_then(|b| b.candidate.resources.clone())
            .unwrap_or_default()
    }

    fn resident(&self) -> u32 {
        let default = self.built.first();
        default
            .and_then(|b| b.candidate.residency.as_ref())
            .map_or(0, |r| r.blocks)
    }

    fn throttled(
        &self,
        usage: &ResourceUsage,
        resources: &Resources,
        request: &Request,
    ) -> Vec<Recipe> {
        let need = warpwright_target::Resources {
            regs: resources.registers,
            block_threads: self.setting.block.threads(),
            static_smem: resources.shared_bytes,
            dynamic_smem: self.setting.dynamic_smem,
            barriers: resources.barriers,
        };
        let kernel = Throttled {
            gpu: self.setting.gpu,
            need: &need,
            resident: self.resident(),
            opt_tlp: usage.opt_tlp.as_ref().map(|o| o.blocks),
            ptx_only: request.ptx_only,
        };
        match self.setting.block.is_given() {
            true => throttles(&kernel, request.peers != Peers::None),
            false => Vec::new(),
        }
    }

    fn swept(&self, situation: &Situation, stairs: &[Stair], wanted: Peers) -> Vec<Recipe> {
        let blocks: Vec<u32> = stairs.iter().map(|s| s.blocks).collect();
        peers(situation, wanted, &blocks, self.resident())
    }

    /// Builds the recipes that have not been built yet.
    fn build(&mut self, recipes: Vec<Recipe>) -> Result<(), ToolError> {
        let mut new: Vec<Recipe> = Vec::new();
        for recipe in recipes {
            let is_known = self.built.iter().any(|b| b.candidate.recipe == recipe);
            if !is_known && !new.contains(&recipe) {
                new.push(recipe);
            }
        }
        let built =
            self.workshop
                .build_all(self.module, self.name, &self.setting, new, self.done)?;
        self.take(built);
        Ok(())
    }

    /// Why some of the candidates are chosen only once measured, each reason once.
    fn cautions(&self) -> Vec<String> {
        let candidates = self.built.iter().map(|b| &b.candidate);
        let left = candidates.filter(|c| c.rejected.is_none());
        let mut reasons: Vec<&String> = left.filter_map(|c| c.caution.as_ref()).collect();
        reasons.sort_unstable();
        reasons.dedup();
        let note = |why| format!("some candidates: {why}");
        reasons.into_iter().map(note).collect()
    }

    /// Takes builds in, with their residency and what is known of them.
    fn take(&mut self, built: Vec<Built>) {
        let Setting {
            gpu,
            block,
            dynamic_smem,
        } = self.setting;
        for mut b in built {
            occupy(gpu, &block, dynamic_smem, &mut b.candidate);
            if moves_slots(&b.candidate.recipe) && !demote::TRIED.contains(&gpu.arch.sm) {
                b.candidate.caution = Some(demote::CAUTION.into());
            }
            if self.may_be_fused && is_rewritten(&b.candidate.recipe) {
                b.candidate.caution = Some(CAUTION.into());
            }
            match self.known.get(&b.candidate.recipe) {
                Some(Ok(measured)) => b.candidate.measured = Some(measured.clone()),
                Some(Err(why)) => b.candidate.rejected = Some(format!("measured: {why}")),
                None => {}
            }
            self.built.push(b);
        }
    }

    fn score(&mut self) {
        mark_duplicates(&mut self.built);
        let opt_tlp = self.usage.as_ref().and_then(|u| u.opt_tlp.as_ref());
        score_all(&self.setting, opt_tlp, &mut self.built);
    }

    fn outcome(self, request: &Request, notes: Vec<String>) -> KernelOutcome {
        let candidates = self.candidates();
        let Choice { index, reason } = match request.peers {
            Peers::Spills => Choice {
                index: 0,
                reason: "ways to spill are compared, nothing is chosen".into(),
            },
            _ => choose(&candidates, request.margin),
        };
        let crat = self.usage.map(|usage| Crat {
            choice: usage
                .opt_tlp
                .as_ref()
                .and_then(|o| choice(&candidates, o.blocks)),
            usage,
        });
        let report = KernelReport {
            name: self.name.to_string(),
            block: self.setting.block.dims,
            block_source: format!("{:?}", self.setting.block.source).to_lowercase(),
            dynamic_smem: self.setting.dynamic_smem,
            candidates,
            chosen: index,
            reason,
            notes,
            crat,
        };
        KernelOutcome {
            report,
            built: self.built,
        }
    }
}

/// What forbids moving spill slots in the cubin, as far as it can be known before any build.
fn spill_to_shared_obstacle(
    module: &Module,
    function: &Function,
    request: &Request,
) -> Option<&'static str> {
    if request.ptx_only {
        return Some("PTX cannot hold an edit of the machine code");
    }
    let is_described = request.launch.is_some_and(|l| l.kernel == *function.name);
    let is_stated = request.dynamic_smem.is_some() || is_described;
    let is_open = uses_dynamic_shared(module, function) && !is_stated;
    is_open.then_some("the size of dynamic shared memory is not known (--dynamic-smem states it)")
}

fn notes(
    module: &Module,
    function: &Function,
    setting: &Setting,
    request: &Request,
) -> Vec<String> {
    let mut notes = Vec::new();
    if !setting.block.is_given() {
        notes.push(format!(
            "the block size is not known; {} threads are assumed (--block states it)",
            setting.block.threads()
        ));
    }
    if let Some(why) = shared_spilling_obstacle(module, function, setting.dynamic_smem) {
        notes.push(format!("spilling to shared memory is not offered: {why}"));
    }
    if let Some(why) = spill_to_shared_obstacle(module, function, request) {
        notes.push(format!("spill-to-shared is not offered: {why}"));
    }
    notes
}

fn passed_through(module: &Module, function: &Function, opaque: &[Inst]) -> String {
    let first = function
        .body
        .as_ref()
        .zip(opaque.first())
        .map_or("?", |(body, &inst)| &module.opcode(&body.insts[inst]).text);
    format!("passed through unchanged: `{first}` is not known to Warpwright's opcode table")
}

fn moves_slots(recipe: &Recipe) -> bool {
    let moves = |d: &Decision| {
        matches!(
            d,
            Decision::SpillToShared | Decision::SpillHottestToShared { .. }
        )
    };
    recipe.0.iter().any(moves)
}
