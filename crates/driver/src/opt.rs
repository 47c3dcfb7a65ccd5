//! `opt`: propose, build, predict, choose; kernel by kernel, then the whole module once more with
//! the chosen recipes. docs/pipeline.md walks through it.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use warpwright_launch::Launch;
use warpwright_ptx::ir::{Function, Module};
use warpwright_target::Gpu;
use warpwright_toolkit::{Build, ToolError};

use crate::build::{BuildError, Built, Workshop, mark_duplicates, read_back};
use crate::candidate::{Candidate, Measured};
use crate::choose::{Choice, choose};
use crate::database::Entry;
use crate::kernel::{block_of, shared_spilling_obstacle};
use crate::propose::{Situation, first_round, peers, second_round};
use crate::realise::{Plan, RealiseError, realise};
use crate::recipe::Recipe;
use crate::residency::{occupy, stairs};
use crate::rewrite::Setting;
use crate::score::score_all;

/// What is asked for, apart from the module itself.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// The target.
    pub gpu: &'a Gpu,
    /// Only this kernel.
    pub kernel: Option<&'a str>,
    /// `--block`.
    pub block: Option<[u32; 3]>,
    /// `--dynamic-smem`, bytes per block.
    pub dynamic_smem: Option<u32>,
    /// The launch description, for the kernel that it names.
    pub launch: Option<&'a Launch>,
    /// Also build what people sweep by hand.
    pub exhaustive: bool,
    /// Share of time that a change must promise to save.
    pub margin: f64,
}

/// The share that a change must promise unless the caller says otherwise: see docs/model.md for
/// the errors of the model that it covers.
pub const DEFAULT_MARGIN: f64 = 0.05;

/// Why `opt` could not be done at all.
#[derive(Debug, thiserror::Error)]
pub enum OptError {
    /// The request contradicts the module.
    #[error("{0}")]
    Request(String),
    /// A tool failed, or refused the untouched module.
    #[error(transparent)]
    Tool(#[from] ToolError),
    /// What ptxas wrote makes no sense to us.
    #[error(transparent)]
    Build(#[from] BuildError),
}

/// What was found for one kernel.
#[derive(Debug, Clone)]
pub struct KernelOutcome {
    /// What is reported.
    pub report: KernelReport,
    /// The builds, in the order of the report's candidates.
    pub built: Vec<Built>,
}

/// What is reported of one kernel.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct KernelReport {
    /// Its name.
    pub name: String,
    /// Threads per block in x, y, z.
    pub block: [u32; 3],
    /// Where the block size comes from.
    pub block_source: String,
    /// Dynamic shared memory in bytes per block.
    pub dynamic_smem: u32,
    /// All candidates; the first is the default build.
    pub candidates: Vec<Candidate>,
    /// Index of the chosen one.
    pub chosen: usize,
    /// Why.
    pub reason: String,
    /// Things the user should know: what was not offered, and why.
    pub notes: Vec<String>,
}

/// What earlier runs measured, by recipe: a time, or why the candidate is unfit.
pub type Known = BTreeMap<Recipe, Result<Measured, String>>;

/// The newest measurement of each recipe among database entries (newest first).
pub fn known(entries: &[Entry]) -> Known {
    let mut known = Known::new();
    for entry in entries {
        let found = match (&entry.measured, &entry.failure) {
            (_, Some(why)) => Err(why.clone()),
            (Some(measured), None) => Ok(measured.clone()),
            (None, None) => continue,
        };
        known.entry(entry.recipe.clone()).or_insert(found);
    }
    known
}

/// The kernels of a module that a request is about.
pub fn kernels<'m>(module: &'m Module, only: Option<&str>) -> Result<Vec<&'m Function>, OptError> {
    let all: Vec<&Function> = module.kernels().map(|(_, f)| f).collect();
    if all.is_empty() {
        return Err(OptError::Request(
            "the module has no kernel (.entry)".into(),
        ));
    }
    let Some(name) = only else { return Ok(all) };
    let found: Vec<&Function> = all.iter().copied().filter(|f| &*f.name == name).collect();
    if found.is_empty() {
        let names: Vec<&str> = all.iter().map(|f| &*f.name).take(8).collect();
        return Err(OptError::Request(format!(
            "there is no kernel `{name}`; the module has {}",
            names.join(", ")
        )));
    }
    Ok(found)
}

/// Where a kernel will run, by the request and its own directives.
pub fn setting<'a>(function: &Function, request: &Request<'a>) -> Result<Setting<'a>, OptError> {
    let launch = request.launch.filter(|l| l.kernel == *function.name);
    Ok(Setting {
        gpu: request.gpu,
        block: block_of(function, request.block, launch).map_err(OptError::Request)?,
        dynamic_smem: request
            .dynamic_smem
            .or(launch.map(|l| l.dynamic_smem))
            .unwrap_or_default(),
    })
}

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
    let name = &*function.name;
    let setting = setting(function, request)?;
    let Setting {
        block,
        dynamic_smem,
        ..
    } = setting;
    let untouched = Plan {
        kernel: name,
        recipe: &Recipe::default(),
        setting,
    };
    let mut built = vec![read_back(&untouched, default)?];
    let mut notes = notes(module, function, &setting);

    if let Some(opaque) = function.opaque() {
        notes.push(passed_through(module, function, opaque));
    } else {
        let resources = built[0].candidate.resources.clone().unwrap_or_default();
        let stairs = stairs(request.gpu, &block, resources.shared_bytes, dynamic_smem)
            .map_err(|e| OptError::Request(format!("kernel `{name}`: {e}")))?;
        let tops: Vec<u32> = stairs.iter().map(|s| s.regs).collect();
        let situation = Situation {
            natural: resources.registers,
            stairs: &tops,
            promised_block: block.is_given().then(|| block.threads()),
            module_options: module.kernels().count() == 1,
            shared_spilling: shared_spilling_obstacle(module, function, dynamic_smem).is_none(),
        };
        let mut recipes = first_round(&situation);
        recipes.remove(0);
        if request.exhaustive {
            let blocks: Vec<u32> = stairs.iter().map(|s| s.blocks).collect();
            let new = peers(&situation, &blocks).into_iter();
            let new: Vec<Recipe> = new.filter(|r| !recipes.contains(r)).collect();
            recipes.extend(new);
        }
        built.extend(workshop.build_all(module, name, &setting, recipes, done)?);
        let candidates: Vec<Candidate> = built.iter().map(|b| b.candidate.clone()).collect();
        let second = second_round(&situation, &candidates);
        built.extend(workshop.build_all(module, name, &setting, second, done)?);
    }

    for b in &mut built {
        occupy(request.gpu, &block, dynamic_smem, &mut b.candidate);
        match known.get(&b.candidate.recipe) {
            Some(Ok(measured)) => b.candidate.measured = Some(measured.clone()),
            Some(Err(why)) => b.candidate.rejected = Some(format!("measured: {why}")),
            None => {}
        }
    }
    mark_duplicates(&mut built);
    score_all(request.gpu, dynamic_smem, &mut built);
    let candidates: Vec<Candidate> = built.iter().map(|b| b.candidate.clone()).collect();
    let Choice { index, reason } = choose(&candidates, request.margin);
    let report = KernelReport {
        name: name.to_string(),
        block: block.dims,
        block_source: format!("{:?}", block.source).to_lowercase(),
        dynamic_smem,
        candidates,
        chosen: index,
        reason,
        notes,
    };
    Ok(KernelOutcome { report, built })
}

/// The plan of each report's choice.
fn plans<'a>(
    module: &Module,
    reports: &'a [KernelReport],
    request: &Request<'a>,
) -> Result<Vec<Plan<'a>>, OptError> {
    let plan = |report: &'a KernelReport| {
        let kernel = module.kernels().find(|(_, f)| *f.name == *report.name);
        let missing = || BuildError::from(RealiseError::NoKernel(report.name.clone()));
        let (_, function) = kernel.ok_or_else(missing)?;
        Ok(Plan {
            kernel: &report.name,
            recipe: &report.candidates[report.chosen].recipe,
            setting: setting(function, request)?,
        })
    };
    reports.iter().map(plan).collect()
}

/// The module's text with each kernel's chosen recipe in it.
pub fn chosen_text(
    module: &Module,
    reports: &[KernelReport],
    request: &Request,
) -> Result<String, OptError> {
    let plans = plans(module, reports, request)?;
    realise(module, &plans).map_err(|e| OptError::Build(e.into()))
}

/// The chosen module (`text`) as a cubin. Its resources must be what each kernel's own build
/// promised.
pub fn chosen_build(
    workshop: &Workshop,
    module: &Module,
    text: &str,
    reports: &[KernelReport],
    request: &Request,
) -> Result<Build, OptError> {
    let plans = plans(module, reports, request)?;
    let level = plans.iter().find_map(|p| p.recipe.usage_level());
    let mut build = workshop.assemble(text, level)?;
    for (plan, report) in plans.iter().zip(reports) {
        let promised = report.candidates[report.chosen].resources.as_ref();
        let built = read_back(plan, &build)?;
        let got = built.candidate.resources.map(|r| r.registers);
        if promised.map(|r| r.registers) != got {
            return Err(OptError::Request(format!(
                "kernel `{}` takes {got:?} registers in the final module, not {:?} as built alone",
                report.name,
                promised.map(|r| r.registers)
            )));
        }
        build.cubin = built.cubin;
    }
    Ok(build)
}

fn notes(module: &Module, function: &Function, setting: &Setting) -> Vec<String> {
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
    notes
}

fn passed_through(
    module: &Module,
    function: &Function,
    opaque: &[warpwright_ptx::ir::Inst],
) -> String {
    let first = function
        .body
        .as_ref()
        .zip(opaque.first())
        .map_or("?", |(body, &inst)| &module.opcode(&body.insts[inst]).text);
    format!("passed through unchanged: `{first}` is not known to Warpwright's opcode table")
}
