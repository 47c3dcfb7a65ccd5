//! Builds candidates with ptxas, in parallel and through the cache, and reads their machine code.

use rayon::prelude::*;
use warpwright_ptx::ir::Module;
use warpwright_sass::Cubin;
use warpwright_toolkit::{Build, BuildCache, KernelResources, Ptxas, PtxasJob, ToolError, Toolkit};

use crate::candidate::{Candidate, Resources};
use crate::finish::finish;
use crate::realise::{Plan, RealiseError, realise};
use crate::recipe::{Recipe, Stage};
use crate::rewrite::Setting;

/// The tools of a run.
#[derive(Debug, Clone, Copy)]
pub struct Workshop<'a> {
    /// Where ptxas is.
    pub toolkit: &'a Toolkit,
    /// Finished builds.
    pub cache: &'a BuildCache,
    /// The architecture ptxas is asked for, `sm_90a`.
    pub arch: &'a str,
    /// Keep line information?
    pub lineinfo: bool,
}

/// A candidate with what its build left.
#[derive(Debug, Clone)]
pub struct Built {
    /// What is reported.
    pub candidate: Candidate,
    /// The cubin: of the whole module with only this kernel changed, or of the kernel without the others
    /// ([`slice`](mod@crate::slice)).
    pub cubin: Vec<u8>,
    /// The kernel's machine code.
    pub kernel: Option<warpwright_sass::Kernel>,
}

/// Why a module could not be built at all.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// ptxas or the machine.
    #[error(transparent)]
    Tool(#[from] ToolError),
    /// The recipe does not fit the kernel.
    #[error(transparent)]
    Realise(#[from] RealiseError),
    /// The finished cubin cannot be edited as the recipe wants.
    #[error("{0}")]
    Finish(String),
    /// ptxas wrote something that we cannot read back.
    #[error("ptxas wrote a cubin that cannot be read: {0}")]
    Cubin(#[from] warpwright_sass::CubinError),
}

impl Workshop<'_> {
    /// Builds a module's text as it is.
    pub fn assemble(&self, ptx: &str, usage_level: Option<u8>) -> Result<Build, ToolError> {
        let ptxas: Ptxas = self.toolkit.ptxas()?;
        let mut job = PtxasJob::new(ptx, self.arch);
        job.register_usage_level = usage_level;
        job.lineinfo = self.lineinfo;
        self.cache.ptxas(&ptxas, &job)
    }

    /// Builds each recipe for one kernel of the module. Failures become rejected candidates; only
    /// a missing tool ends the whole round.
    pub fn build_all(
        &self,
        module: &Module,
        kernel: &str,
        setting: &Setting,
        recipes: Vec<Recipe>,
        done: &(dyn Fn(&Candidate) + Sync),
    ) -> Result<Vec<Built>, ToolError> {
        recipes
            .into_par_iter()
            .map(|recipe| {
                let plan = Plan {
                    kernel,
                    recipe: &recipe,
                    setting: *setting,
                };
                let built = match self.build(module, &plan) {
                    Ok(built) => built,
                    Err(BuildError::Tool(e)) if e.is_tool_missing() => return Err(e),
                    Err(e) => rejected(recipe, e.to_string()),
                };
                done(&built.candidate);
                Ok(built)
            })
            .collect()
    }

    fn build(&self, module: &Module, plan: &Plan) -> Result<Built, BuildError> {
        let text = realise(module, &[*plan])?;
        let build = self.assemble(&text, plan.recipe.usage_level())?;
        read_back(plan, &build)
    }
}

/// Carries out the plan's cubin edits, and reads back what became of the kernel.
pub fn read_back(plan: &Plan, build: &Build) -> Result<Built, BuildError> {
    let cubin = finish(build.cubin.to_vec(), plan).map_err(BuildError::Finish)?;
    let code = Cubin::parse(&cubin)?.kernel(plan.kernel).cloned();
    let mut candidate = Candidate::new(plan.recipe.clone());
    candidate.resources = build.resources.kernel(plan.kernel).map(resources);
    match (&mut candidate.resources, &code) {
        // What was edited differs from what ptxas reported.
        (Some(resources), Some(code)) if plan.recipe.at(Stage::Finish).next().is_some() => {
            let first = plan.setting.gpu.arch.first_shared_address();
            resources.registers = code.registers;
            resources.shared_bytes = code.shared_bytes.saturating_sub(first);
            resources.stack_bytes = code.frame_bytes;
        }
        (Some(_), _) => {}
        (None, _) => {
            candidate.rejected = Some("ptxas reported no resources for this kernel".into());
        }
    }
    Ok(Built {
        candidate,
        cubin,
        kernel: code,
    })
}

fn rejected(recipe: Recipe, why: String) -> Built {
    let candidate = Candidate {
        rejected: Some(why),
        ..Candidate::new(recipe)
    };
    Built {
        candidate,
        cubin: Vec::new(),
        kernel: None,
    }
}

/// Names, for each candidate, the first earlier one with the same machine code and resources.
pub fn mark_duplicates(built: &mut [Built]) {
    for later in 1..built.len() {
        let (earlier, rest) = built.split_at_mut(later);
        let this = &mut rest[0];
        let Some(code) = &this.kernel else { continue };
        let twin = earlier.iter().find(|b| {
            b.candidate.same_code_as.is_none()
                && b.kernel.as_ref().is_some_and(|k| {
                    k.code == code.code
                        && k.registers == code.registers
                        && k.shared_bytes == code.shared_bytes
                        && k.frame_bytes == code.frame_bytes
                })
        });
        this.candidate.same_code_as = twin.map(|b| b.candidate.name());
    }
}

/// The resources that ptxas reports, in our terms.
pub fn resources(kernel: &KernelResources) -> Resources {
    Resources {
        registers: kernel.registers.unwrap_or(0),
        stack_bytes: kernel.stack_frame,
        spill_store_bytes: kernel.spill_stores,
        spill_load_bytes: kernel.spill_loads,
        shared_bytes: kernel.shared,
        barriers: kernel.barriers,
    }
}
