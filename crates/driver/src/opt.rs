//! `opt`: what is asked for, what is reported, and the module with the chosen recipes in it. Between
//! them [`crate::explore`] works kernel by kernel.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use warpwright_launch::Launch;
use warpwright_ptx::ir::{Function, Module};
use warpwright_target::Gpu;
use warpwright_toolkit::{Build, ToolError};

use crate::build::{BuildError, Built, Workshop, read_back};
use crate::candidate::{Candidate, Measured};
use crate::crat::ResourceUsage;
use crate::database::Entry;
use crate::kernel::block_of;
use crate::propose::Peers;
use crate::realise::{Plan, RealiseError, realise};
use crate::recipe::Recipe;
use crate::rewrite::Setting;

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
    /// What people sweep by hand, to be built too. With any of it, throttled builds are added from
    /// which OptTLP can be measured.
    pub peers: Peers,
    /// Only candidates that PTX text alone can carry.
    pub ptx_only: bool,
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
    /// CRAT's view of the kernel.
    #[serde(default)]
    pub crat: Option<Crat>,
}

/// What CRAT knows of a kernel and would choose.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Crat {
    /// Table 1 of the paper.
    pub usage: ResourceUsage,
    /// Index of the candidate with the smallest TPSC at most at OptTLP.
    pub choice: Option<usize>,
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
