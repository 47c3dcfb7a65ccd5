//! `opt`: what is asked for, what is reported, and the input with the chosen recipes carried out. Between
//! them [`crate::explore`] works kernel by kernel.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use warpwright_pass::executor::{Assemble, BuildFailure};
use warpwright_pass::names::source_name;
use warpwright_pass::reliance::{Reliance, Takes};
use warpwright_pass::{
    Artifact, AssemblerOptions, BlockSource, Builders, CarriedOut, CarryError, Demand, Executor,
    Fuel, Level, NotProved, Plan, Proved, Recipe, Refusal, RunError, Scope, ScopeError, carry_out,
};
use warpwright_target::Gpu;
use warpwright_toolkit::ToolError;

use crate::build::{Built, Workshop};
use crate::candidate::{Candidate, Measured};
use crate::crat::ResourceUsage;
use crate::database::Entry;
use crate::proposal::Peers;
use crate::score::Cycles;

/// Which candidates are proved.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Proofs {
    /// The one that is about to be chosen; if that fails the next.
    #[default]
    Choice,
    /// All that could be measured.
    All,
}

/// What is asked for, apart from the input itself.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// The target.
    pub gpu: &'a Gpu,
    /// Which kernels, and how they are launched.
    pub scope: Scope<'a>,
    /// What people sweep by hand, to be built too. With any of it, throttled builds are added from
    /// which OptTLP can be measured.
    pub peers: Peers,
    /// Only candidates that PTX text alone can carry.
    pub ptx_only: bool,
    /// Share of time that a change must promise to save.
    pub margin: f64,
    /// Nominal seconds of work for each kernel.
    pub budget: f64,
    /// What is proved.
    pub proofs: Proofs,
    /// Is what only a measurement can tell left to a [search](crate::search)?
    pub is_searched: bool,
}

/// The share that a change must promise unless the caller says otherwise: see docs/model.md for
/// the errors of the model that it covers.
pub const DEFAULT_MARGIN: f64 = 0.05;

/// The budget of a kernel unless the caller says otherwise, in nominal seconds.
pub const DEFAULT_BUDGET: f64 = 20.0;

/// Why a recipe was carried out that nobody chose.
pub const NAMED: &str = "named by --recipe";

/// Why `opt` could not be done at all.
#[derive(Debug, thiserror::Error)]
pub enum OptError {
    /// What was stated contradicts the input.
    #[error(transparent)]
    Scope(#[from] ScopeError),
    /// A kernel cannot be launched as was stated.
    #[error("kernel `{}`: {error}", source_name(.kernel))]
    Launch {
        /// The kernel.
        kernel: String,
        /// Why.
        error: Refusal,
    },
    /// A tool failed, or refused the untouched module.
    #[error(transparent)]
    Tool(#[from] ToolError),
    /// A pass of a recipe refuses a kernel.
    #[error("kernel `{}`: {pass}: {refusal}", source_name(.kernel))]
    Refused {
        /// The kernel.
        kernel: String,
        /// The pass.
        pass: String,
        /// Why.
        refusal: Refusal,
    },
    /// PTX was asked for, and the recipe edits machine code.
    #[error("kernel `{}`: PTX cannot hold an edit of the machine code", source_name(.0))]
    NotInPtx(String),
    /// Another mistake of a run.
    #[error(transparent)]
    Run(RunError),
    /// What was rewritten is not proved, so nothing is written.
    #[error("kernel `{}`: {error}", source_name(.kernel))]
    NotProved {
        /// The kernel.
        kernel: String,
        /// What the checker says.
        error: NotProved,
    },
    /// A kernel takes other registers in the final module than in its own build.
    #[error(
        "kernel `{}` takes {got} registers in the final module, not {promised} as built alone",
        source_name(.kernel)
    )]
    Registers {
        /// The kernel.
        kernel: String,
        /// Registers per thread in the final module.
        got: u32,
        /// In its own build.
        promised: u32,
    },
}

impl OptError {
    /// The kernel that it is about, by its symbol, if it is about one.
    pub fn kernel(&self) -> Option<&str> {
        match self {
            OptError::Launch { kernel, .. }
            | OptError::Refused { kernel, .. }
            | OptError::NotInPtx(kernel)
            | OptError::NotProved { kernel, .. }
            | OptError::Registers { kernel, .. } => Some(kernel),
            OptError::Scope(_) | OptError::Tool(_) | OptError::Run(_) => None,
        }
    }
}

/// What was found for one kernel.
#[derive(Debug, Clone)]
pub struct KernelOutcome {
    /// What is reported.
    pub report: KernelReport,
    /// The builds, in the order of the report's candidates.
    pub built: Vec<Built>,
    /// The chosen one, proved.
    pub proved: Option<Proved>,
    /// What it took of the budget, in nominal microseconds.
    pub work: u64,
}

/// What is reported of one kernel.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct KernelReport {
    /// Its name.
    pub name: String,
    /// Threads per block in x, y, z.
    pub block: [u32; 3],
    /// Where the block size comes from.
    pub block_source: BlockSource,
    /// Its code bounds blocks, or says how many reside at least: the source has `__launch_bounds__`.
    #[serde(default)]
    pub has_bounds: bool,
    /// Dynamic shared memory in bytes per block.
    pub dynamic_smem: u32,
    /// Blocks of the launch that the prediction goes by, if one is known.
    #[serde(default)]
    pub grid: Option<u64>,
    /// Multiprocessors that get none of these blocks, if there are some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_sms: Option<u32>,
    /// The sizes that `grid` goes by and that are guessed, in words.
    #[serde(default)]
    pub guessed: String,
    /// The chosen recipe, for `opt --recipe`.
    #[serde(default)]
    pub recipe_text: String,
    /// All candidates; the first is the default build.
    pub candidates: Vec<Candidate>,
    /// Index of the chosen one.
    pub chosen: usize,
    /// Why.
    pub reason: String,
    /// Things the user should know: what was not offered, and why.
    pub notes: Vec<String>,
    /// What launches of the choice must keep to, and what its proof takes for granted.
    #[serde(default)]
    pub promises: Vec<String>,
    /// What the choice changes for a warp alone, as the model has it.
    #[serde(default)]
    pub gained: Option<String>,
    /// What its accesses take beyond what is predicted, where they were counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wasted: Option<String>,
    /// What bounds the default build where its instructions were counted: what [`crate::candidate::Score::bound`] says
    /// takes loops for ten turns.
    #[serde(default)]
    pub counted: Option<Cycles>,
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

/// What each kernel is to become, and what its own build promised.
#[derive(Debug, Clone, PartialEq)]
pub struct Chosen {
    /// The kernel and its recipe.
    pub plan: Plan,
    /// The registers that its own build takes, if that is known.
    pub registers: Option<u32>,
}

impl Chosen {
    /// What a report has chosen.
    pub fn of(report: &KernelReport) -> Chosen {
        let chosen = &report.candidates[report.chosen];
        Chosen {
            plan: Plan {
                kernel: Some(report.name.clone()),
                recipe: chosen.recipe.clone(),
            },
            registers: chosen.resources().map(|resources| resources.registers),
        }
    }
}

/// Carries out each kernel's recipe on the whole input and proves every step: what leaves here may be
/// written.
///
/// # Errors
/// [`OptError`].
pub fn finish(
    workshop: Option<&Workshop<'_>>,
    input: &Artifact,
    chosen: &[Chosen],
    request: &Request<'_>,
    (until, fuel): (Level, Fuel),
) -> Result<CarriedOut, OptError> {
    let edited = |c: &&Chosen| c.plan.recipe.at(Level::MachineCode).next().is_some();
    if let Some(edited) = chosen.iter().find(edited).filter(|_| until == Level::Ptx) {
        return Err(OptError::NotInPtx(name(&edited.plan.kernel)));
    }
    let assemble = |text: &str, options: AssemblerOptions| {
        let workshop = workshop.ok_or("there is no ptxas")?;
        let build = workshop.assemble(text, options)?;
        Ok::<Arc<[u8]>, BuildFailure>(build.cubin.into())
    };
    let mut executor = Executor::new(Builders {
        assemble: Some(&assemble),
        ..Builders::default()
    });
    executor.fuel = fuel;
    let plans: Vec<Plan> = chosen.iter().map(|chosen| chosen.plan.clone()).collect();
    let scope = (&request.scope, request.gpu);
    let all = carry_out(&mut executor, input, scope, &plans, (until, Demand::Proved));
    let all = all.and_then(CarriedOut::as_launched);
    let all = all.map_err(|error| match error {
        CarryError::Scope(error) => OptError::Scope(error),
        CarryError::Run { kernel, error } => match *error {
            // An option of ptxas holds for all kernels: the first stands for them.
            RunError::Refused { pass, refusal } => OptError::Refused {
                kernel: kernel
                    .or_else(|| chosen.first()?.plan.kernel.clone())
                    .unwrap_or_default(),
                pass: pass.to_string(),
                refusal,
            },
            error => failure(error),
        },
        CarryError::NotProved { kernel, error } => OptError::NotProved {
            kernel: name(&kernel),
            error,
        },
    })?;
    for done in &all.kernels {
        if let Some((pass, refusal)) = &done.refused {
            return Err(OptError::Refused {
                kernel: name(&done.kernel),
                pass: pass.to_string(),
                refusal: refusal.clone(),
            });
        }
    }
    keep_promises(&all.artifact, chosen)?;
    for one in chosen {
        hold(&assemble, (input, &all.artifact), one, request)?;
    }
    Ok(all)
}

/// What a kernel relies on, the result must give it ([`Reliance`]): a recipe that somebody names was held against no
/// default build before.
fn hold(
    assemble: &Assemble<'_>,
    (input, result): (&Artifact, &Artifact),
    Chosen { plan, .. }: &Chosen,
    request: &Request<'_>,
) -> Result<(), OptError> {
    let Some(kernel) = plan.kernel.as_deref().filter(|_| !plan.recipe.is_default()) else {
        return Ok(());
    };
    let reliance = Reliance::of(input, kernel);
    if reliance.is_nothing() {
        return Ok(());
    }
    let setting = request.scope.setting(input, kernel, request.gpu)?;
    let takes = |artifact: &Artifact, options: AssemblerOptions| {
        let built = match artifact.as_module() {
            Some(module) => Artifact::cubin(assemble(&module.source, options)?).ok(),
            None => Some(artifact.clone()),
        };
        let cubin = built.as_ref().and_then(Artifact::as_cubin);
        let kernel = cubin.and_then(|cubin| cubin.kernel(kernel));
        Ok(kernel.map(|kernel| Takes::of(kernel, &setting)))
    };
    let build = |error| failure(RunError::Build(error));
    let before = takes(input, AssemblerOptions::default()).map_err(build)?;
    let after = takes(result, plan.recipe.assembler()).map_err(build)?;
    let (Some(before), Some(after)) = (before, after) else {
        return Ok(());
    };
    reliance
        .keeps(before, after)
        .map_err(|refusal| OptError::Refused {
            kernel: kernel.to_owned(),
            pass: plan.recipe.to_string(),
            refusal,
        })
}

fn name(kernel: &Option<String>) -> String {
    kernel.clone().unwrap_or_default()
}

/// An error of a run; a tool's is the tool's.
pub fn failure(error: RunError) -> OptError {
    match error {
        RunError::Build(failure) => match failure.downcast::<ToolError>() {
            Ok(error) => OptError::Tool(*error),
            Err(other) => OptError::Run(RunError::Build(other)),
        },
        other => OptError::Run(other),
    }
}

/// Each kernel must take the registers that its own build promised.
fn keep_promises(artifact: &Artifact, chosen: &[Chosen]) -> Result<(), OptError> {
    let cubin = artifact.as_cubin();
    for Chosen { plan, registers } in chosen {
        let built = cubin.and_then(|cubin| cubin.kernel(plan.kernel.as_deref()?));
        match (built.map(|kernel| kernel.registers), *registers) {
            (Some(got), Some(promised)) if got != promised => {
                return Err(OptError::Registers {
                    kernel: name(&plan.kernel),
                    got,
                    promised,
                });
            }
            _ => {}
        }
    }
    Ok(())
}
