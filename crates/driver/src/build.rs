//! Builds candidates, in parallel and through the cache, and reads their machine code.

use std::cell::RefCell;
use std::ffi::OsString;
use std::sync::Arc;

use rayon::prelude::*;
use warpwright_pass::executor::{BuildFailure, RunError};
use warpwright_pass::miscompiled::{Met, met};
use warpwright_pass::passes::SpillToShared;
use warpwright_pass::ptx::facts::{has_shared_spilling, static_shared_bytes, used_variables};
use warpwright_pass::ptx::fusion;
use warpwright_pass::{
    Artifact, AssemblerOptions, Builders, Executor, Fuel, Level, Recipe, Run, Setting, Target,
};
use warpwright_ptx::{Function, Module, Space};
use warpwright_sass::{Kernel, Parsed, Unit};
use warpwright_target::{Gpu, WARP_SIZE};
use warpwright_toolkit::{
    Build, BuildCache, KernelResources, ModuleResources, Ptxas, PtxasJob, ToolError, Toolkit,
};

use crate::candidate::{Because, Candidate, Rejection, Resources, Standing};
use crate::proposal::KEPT_APART;

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
    /// Further arguments of ptxas, for every build.
    pub extra: &'a [OsString],
}

impl Workshop<'_> {
    /// Where this ptxas may make wrong code of a module.
    pub fn miscompiles<'m>(&self, module: &'m Module, gpu: &Gpu) -> Vec<Met<'m>> {
        let version = self
            .toolkit
            .ptxas()
            .and_then(|ptxas| ptxas.tool().version());
        let version = version.map(|version| (version.major, version.minor));
        version.map_or_else(|_| Vec::new(), |version| met(module, version, gpu.arch.sm))
    }

    /// Builds a module's text.
    ///
    /// # Errors
    /// ptxas is missing, or refuses the text.
    pub fn assemble(&self, ptx: &str, options: AssemblerOptions) -> Result<Build, ToolError> {
        let ptxas: Ptxas = self.toolkit.ptxas()?;
        let mut job = PtxasJob::new(ptx, self.arch);
        job.register_usage_level = options.usage_level;
        job.suffix = options.suffix;
        job.lineinfo = self.lineinfo;
        job.extra = self.extra.to_vec();
        self.cache.ptxas(&ptxas, &job)
    }
}

/// A kernel, and where its candidates come from.
#[derive(Debug, Clone, Copy)]
pub struct Bench<'a> {
    /// ptxas; none for machine code as it is.
    pub workshop: Option<&'a Workshop<'a>>,
    /// What the recipes are applied to.
    pub start: &'a Artifact,
    /// The kernel's name.
    pub kernel: &'a str,
    /// Where it will run.
    pub setting: Setting<'a>,
    /// Rewrites that may be made in each candidate.
    pub fuel: Fuel,
}

/// A candidate with what its build left.
#[derive(Debug, Clone)]
pub struct Built {
    /// What is reported.
    pub candidate: Candidate,
    /// The run: its result is a cubin of the whole module with only this kernel changed, or of the kernel
    /// without the others. None where there is no code.
    pub run: Option<Run>,
    /// The kernel's machine code.
    pub kernel: Option<Kernel>,
    /// What the launch that is known runs, where the original stands beside it: that version by itself.
    pub at_launch: Option<Box<Built>>,
}

impl Built {
    /// The cubin, which may not be proved yet.
    pub fn cubin(&self) -> Option<&Parsed> {
        self.run.as_ref()?.unproved().as_cubin()
    }
}

/// What a run left, and what ptxas said of its last build.
pub type Made = (Run, Option<ModuleResources>);

impl<'a> Bench<'a> {
    /// Goes on with a run, or begins one, as far as `until`.
    ///
    /// # Errors
    /// [`RunError`].
    pub fn run(&self, from: Option<&Run>, recipe: &Recipe, until: Level) -> Result<Made, RunError> {
        let said = RefCell::new(None);
        let assemble = |text: &str, options: AssemblerOptions| {
            let workshop = self.workshop.ok_or("there is no ptxas")?;
            let build = workshop.assemble(text, options)?;
            *said.borrow_mut() = Some(build.resources);
            Ok::<Arc<[u8]>, BuildFailure>(build.cubin.into())
        };
        let mut executor = Executor::new(Builders {
            assemble: Some(&assemble),
            ..Builders::default()
        });
        executor.fuel = self.fuel;
        let target = Target {
            kernel: Some(self.kernel),
            setting: self.setting,
        };
        let run = match from {
            Some(run) => executor.resume(run.clone(), &target, recipe, until),
            None => executor.run(self.start, &target, recipe, until),
        };
        Ok((run?, said.into_inner()))
    }

    /// What a recipe's passes make of the PTX, if they change it.
    pub fn of_ptx(&self, recipe: &Recipe) -> Option<Run> {
        let run = self.run(None, recipe, Level::Ptx);
        run.ok().map(|(run, _)| run)
    }

    /// What loops store in registers, as far as none may run twice and ptxas rounds as before: a recipe that may be chosen
    /// unmeasured, and what it makes of the PTX.
    pub fn kept_apart(&self) -> Option<(Recipe, Run)> {
        let is_free = !self.start.as_module().is_some_and(fusion::may_be_fused);
        let recipe = Recipe::default().with(KEPT_APART);
        let run = is_free.then(|| self.of_ptx(&recipe)).flatten()?;
        Some((recipe, run))
    }

    /// Builds each recipe. `known` gives a run that a recipe may begin with. Failures become rejected
    /// candidates; only a missing tool ends the whole round.
    ///
    /// # Errors
    /// A tool is missing.
    pub fn build_all(
        &self,
        recipes: Vec<Recipe>,
        known: &(dyn Fn(&Recipe) -> Option<&'a Run> + Sync),
        done: &(dyn Fn(&Candidate) + Sync),
    ) -> Result<Vec<Built>, ToolError> {
        let build = |recipe: Recipe| {
            let built = match self.run(known(&recipe), &recipe, Level::MachineCode) {
                Ok(made) => self.read_back(recipe, &made),
                Err(error) => rejected(recipe, missing_tool(error)?),
            };
            done(&built.candidate);
            Ok(built)
        };
        recipes.into_par_iter().map(build).collect()
    }

    /// What became of the kernel.
    pub fn read_back(&self, recipe: Recipe, (run, said): &Made) -> Built {
        let cubin = run.unproved().as_cubin();
        let code = cubin.and_then(|cubin| cubin.kernel(self.kernel)).cloned();
        let said = said.as_ref().and_then(|said| said.kernel(self.kernel));
        let Some(code) = code else {
            let why = Rejection::new(Because::Build, "ptxas wrote no such kernel");
            return rejected(recipe, why);
        };
        let of_cubin = resources_of(&code, self.setting.gpu);
        let resources = match said.map(resources) {
            // What was edited differs from what ptxas reported.
            Some(said) if recipe.at(Level::MachineCode).next().is_some() => Resources {
                registers: of_cubin.registers,
                shared_bytes: of_cubin.shared_bytes,
                stack_bytes: of_cubin.stack_bytes,
                spill_moved_bytes: (said.spill_store_bytes + said.spill_load_bytes)
                    .saturating_sub(of_cubin.local_spill_bytes()),
                ..said
            },
            Some(said) => said,
            None => match self.before_moves(&recipe) {
                // Of machine code, by what it was before.
                Some(before) => Resources {
                    spill_store_bytes: before.spill_store_bytes,
                    spill_load_bytes: before.spill_load_bytes,
                    spill_moved_bytes: before
                        .local_spill_bytes()
                        .saturating_sub(of_cubin.local_spill_bytes()),
                    ..of_cubin
                },
                None => of_cubin,
            },
        };
        let resources = Resources {
            spill_shared_bytes: self.spill_shared_bytes(run, &resources),
            ..resources
        };
        let mut candidate = Candidate::built(recipe, resources);
        let caution = run.cautions().into_iter().find(|c| c.wants_measurement());
        if let (Some(caution), Some(figures)) = (caution, candidate.figures_mut()) {
            figures.standing = Standing::UntilMeasured(caution);
        }
        Built {
            candidate,
            run: Some(run.clone()),
            kernel: Some(code),
            at_launch: None,
        }
    }
}

impl Bench<'_> {
    /// Bytes of a block's static shared memory that ptxas made spill slots, where the PTX asks for it: what the PTX does not
    /// declare.
    fn spill_shared_bytes(&self, run: &Run, found: &Resources) -> u32 {
        let module = run.ptx().and_then(Artifact::as_module);
        let declared = module.and_then(|module| {
            let function = &module.functions[module.function(self.kernel)?];
            has_shared_spilling(function).then(|| static_shared_bytes(module, function))
        });
        // A slot is a word of each lane; less is what alignment leaves.
        let slot = 4 * WARP_SIZE;
        let beside = declared.map_or(0, |declared| found.shared_bytes.saturating_sub(declared));
        beside / slot * slot
    }

    /// What the kernel of a cubin takes whose spills a recipe moves.
    fn before_moves(&self, recipe: &Recipe) -> Option<Resources> {
        recipe.find::<SpillToShared>()?;
        let kernel = self.start.as_cubin()?.kernel(self.kernel)?;
        Some(resources_of(kernel, self.setting.gpu))
    }
}

/// Why there is no candidate, unless a tool is missing.
fn missing_tool(error: RunError) -> Result<Rejection, ToolError> {
    match error {
        RunError::Build(failure) => match failure.downcast::<ToolError>() {
            Ok(error) if error.is_tool_missing() => Err(*error),
            Ok(error) => Ok(Rejection::new(Because::Build, error)),
            Err(other) => Ok(Rejection::new(Because::Build, other)),
        },
        RunError::Refused { pass, refusal } => {
            let text = format!("{pass}: {refusal}");
            Ok(Rejection::new(Because::Refused, text))
        }
        other => Ok(Rejection::new(Because::Build, other)),
    }
}

fn rejected(recipe: Recipe, why: Rejection) -> Built {
    Built {
        candidate: Candidate::not_built(recipe, why),
        run: None,
        kernel: None,
        at_launch: None,
    }
}

/// Names, for each candidate, the first earlier one with the same machine code and resources.
pub fn mark_duplicates(built: &mut [Built]) {
    for later in 1..built.len() {
        let (earlier, rest) = built.split_at_mut(later);
        let this = &mut rest[0];
        let Some(code) = &this.kernel else { continue };
        if this.candidate.rejected().is_some() {
            continue;
        }
        let twin = earlier.iter().find(|b| {
            b.candidate.same_code_as().is_none()
                && b.kernel.as_ref().is_some_and(|k| {
                    k.code == code.code
                        && k.registers == code.registers
                        && k.shared_bytes == code.shared_bytes
                        && k.frame_bytes == code.frame_bytes
                })
        });
        if let (Some(twin), Some(figures)) = (twin, this.candidate.figures_mut()) {
            figures.standing = Standing::SameCode(twin.candidate.name());
        }
    }
}

/// The resources that ptxas reports, in our terms.
pub fn resources(kernel: &KernelResources) -> Resources {
    Resources {
        registers: kernel.registers.unwrap_or(0),
        stack_bytes: kernel.stack_frame,
        spill_store_bytes: kernel.spill_stores,
        spill_load_bytes: kernel.spill_loads,
        spill_moved_bytes: 0,
        spill_shared_bytes: 0,
        computed_accesses: 0,
        shared_bytes: kernel.shared,
        barriers: kernel.barriers,
    }
}

/// What a kernel of a cubin takes. Spills are counted as accesses at fixed places of the frame, like ptxas
/// does, so parts of local arrays with constant indices are among them.
pub fn resources_of(kernel: &Kernel, gpu: &Gpu) -> Resources {
    let first = gpu.arch.first_shared_address();
    Resources {
        registers: kernel.registers,
        stack_bytes: kernel.frame_bytes,
        spill_store_bytes: kernel.frame_traffic(Unit::LocalStore),
        spill_load_bytes: kernel.frame_traffic(Unit::LocalLoad),
        spill_moved_bytes: 0,
        spill_shared_bytes: 0,
        computed_accesses: kernel.computed_accesses(),
        shared_bytes: kernel.shared_bytes.saturating_sub(first),
        barriers: 0,
    }
}

/// Bytes of a thread that the spills of a finished kernel move, where that is known: its accesses at fixed places of the frame
/// are spills alone if the PTX that it was made of (`made_of`) has no local memory.
pub fn known_spills(resources: &Resources, made_of: Option<(&Module, &Function)>) -> Option<u32> {
    let bytes = resources.local_spill_bytes();
    let is_local = |module: &Module, function: &Function| {
        let used = used_variables(module, function);
        let mut used = used.iter().map(|&id| &module.variables[id]);
        used.any(|variable| variable.space == Space::Local)
    };
    let are_spills = made_of.is_some_and(|(module, function)| !is_local(module, function));
    (bytes == 0 || are_spills).then_some(bytes)
}
