//! What the static model is sure of: the only file here that knows how candidates are made.
//!
//! Goal: a build that is faster with near certainty, in half a second. Few candidates, each with no more
//! spilling than the default build: another occupancy step within a fifth of the registers, the usage level
//! that reorders most, and (proved) spills in shared memory. Taken is what promises a tenth of the time; a
//! change that lives by more warps at the price of spilling is what the model is wrong about, and is never
//! among them.
//!
//! Requires: the block size from the PTX itself, no dynamic shared memory, no option that changes the code.

use warpwright_driver::build::{BuildError, Built, Workshop, mark_duplicates, read_back};
use warpwright_driver::candidate::Candidate;
use warpwright_driver::demote;
use warpwright_driver::kernel::{block_of, uses_dynamic_shared};
use warpwright_driver::realise::{Plan, RealiseError, realise};
use warpwright_driver::recipe::{Decision, Recipe, Stage};
use warpwright_driver::residency::{occupy, stairs};
use warpwright_driver::score::score_all;
use warpwright_driver::{Resources, Setting, cubin};
use warpwright_ptx::Module;
use warpwright_sass::{Cubin, CubinError, Elf};
use warpwright_target::{UnknownGpu, lookup};
use warpwright_toolkit::{BuildCache, ToolError, Toolkit};

use crate::Better;
use crate::messages::Facts;
use crate::options::Request;
use crate::policy::Settings;

/// Predicted time over the default's that a change must promise.
const SURE: f64 = 0.9;
/// Registers that a step of occupancy may cost, as a share of what the default build takes.
const NEAR: f64 = 0.8;
/// Modules with more kernels are left alone.
const MOST_KERNELS: usize = 16;

/// Why nothing was tried.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// Options of the call.
    #[error("an option of the call changes the code")]
    Options,
    /// The PTX is none that we read.
    #[error("the PTX is not understood")]
    Ptx,
    /// Too many kernels.
    #[error("the module has {0} kernels")]
    Many(usize),
    /// The target.
    #[error("{0}")]
    Gpu(#[from] UnknownGpu),
    /// ptxas.
    #[error(transparent)]
    Tool(#[from] ToolError),
    /// A candidate.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// A module with several choices in it.
    #[error(transparent)]
    Realise(#[from] RealiseError),
    /// What ptxas wrote.
    #[error(transparent)]
    Cubin(#[from] CubinError),
    /// The whole module is not what its kernels promised one by one.
    #[error("kernel `{0}` comes out otherwise in the whole module")]
    Otherwise(String),
}

/// A choice for one kernel.
struct Chosen<'a> {
    kernel: &'a str,
    recipe: Recipe,
    setting: Setting<'a>,
    registers: u32,
    predicted: f64,
}

/// A better build of a module, if one is sure.
///
/// # Errors
/// Why none was looked for, or a tool's.
pub fn better(
    toolkit: &Toolkit,
    settings: &Settings,
    request: &Request,
    ptx: &str,
    made: &[u8],
) -> Result<Option<Better>, EngineError> {
    if !request.is_plain {
        return Err(EngineError::Options);
    }
    let (module, problems) = Module::parse("ptx", ptx);
    let is_good =
        !problems.iter().any(|d| d.is_error()) && warpwright_ptx::verify::verify(&module).is_ok();
    if !is_good {
        return Err(EngineError::Ptx);
    }
    let kernels: Vec<_> = module.kernels().map(|(_, function)| function).collect();
    if kernels.len() > MOST_KERNELS {
        return Err(EngineError::Many(kernels.len()));
    }
    let arch = request.gpu.clone().unwrap_or_else(|| "sm_75".into());
    let target = lookup(settings.gpu.as_deref().unwrap_or(&arch))?;
    let cache = BuildCache::standard();
    let workshop = Workshop {
        toolkit,
        cache: &cache,
        arch: &arch,
        lineinfo: request.lineinfo,
    };
    let default = Cubin::parse(made)?;
    let mut chosen = Vec::new();
    for function in &kernels {
        let Some(code) = default.kernel(&function.name) else {
            continue;
        };
        let Ok(block) = block_of(function, None, None) else {
            continue;
        };
        if !block.is_given()
            || function.opaque().is_some()
            || uses_dynamic_shared(&module, function)
        {
            continue;
        }
        let setting = Setting {
            gpu: &target,
            block,
            dynamic_smem: 0,
        };
        let untouched = Built {
            candidate: Candidate {
                resources: Some(cubin::resources(code, &target)),
                ..Candidate::new(Recipe::default())
            },
            cubin: made.to_vec(),
            kernel: Some(code.clone()),
        };
        let site = Kernel {
            workshop: &workshop,
            module: &module,
            name: &function.name,
            is_alone: kernels.len() == 1,
            setting,
        };
        chosen.extend(site.choose(untouched)?);
    }
    if chosen.is_empty() {
        return Ok(None);
    }
    whole(&workshop, &module, &chosen).map(Some)
}

struct Kernel<'a> {
    workshop: &'a Workshop<'a>,
    module: &'a Module,
    name: &'a str,
    is_alone: bool,
    setting: Setting<'a>,
}

impl<'a> Kernel<'a> {
    fn recipes(&self, default: &Resources) -> Vec<Recipe> {
        let plain = Recipe::default();
        let mut recipes = Vec::new();
        let Setting {
            gpu,
            block,
            dynamic_smem,
        } = self.setting;
        let stairs = stairs(gpu, &block, default.shared_bytes, dynamic_smem).unwrap_or_default();
        let least = (f64::from(default.registers) * NEAR) as u32;
        let steps = stairs.iter().map(|stair| stair.regs);
        let step = steps
            .filter(|&regs| regs < default.registers && regs >= least)
            .max();
        recipes.extend(step.map(|registers| plain.with(Decision::MaxRegisters { registers })));
        if self.is_alone {
            recipes.push(plain.with(Decision::RegisterUsageLevel { level: 10 }));
        }
        if default.spills() && demote::TRIED.contains(&gpu.arch.sm) {
            recipes.push(plain.with(Decision::SpillToShared));
        }
        recipes
    }

    fn choose(&self, untouched: Built) -> Result<Option<Chosen<'a>>, EngineError> {
        let default = untouched.candidate.resources.clone().unwrap_or_default();
        let recipes = self.recipes(&default);
        let mut built = vec![untouched];
        built.extend(self.workshop.build_all(
            self.module,
            self.name,
            &self.setting,
            recipes,
            &|_| {},
        )?);
        let Setting {
            gpu,
            block,
            dynamic_smem,
        } = self.setting;
        for b in &mut built {
            // What moved is no spill any more; ptxas's report is older than the move.
            if let (Some(resources), Some(code)) = (&mut b.candidate.resources, &b.kernel)
                && b.candidate.recipe.at(Stage::Finish).next().is_some()
            {
                *resources = cubin::resources(code, gpu);
            }
            occupy(gpu, &block, dynamic_smem, &mut b.candidate);
        }
        mark_duplicates(&mut built);
        score_all(&self.setting, None, &mut built);
        let candidates = built.iter().skip(1).map(|b| &b.candidate);
        let sure = candidates.filter_map(|c| Some((c, promise(c, &default)?)));
        let best = sure.min_by(|a, b| a.1.total_cmp(&b.1));
        Ok(best.map(|(candidate, predicted)| Chosen {
            kernel: self.name,
            recipe: candidate.recipe.clone(),
            setting: self.setting,
            registers: candidate.resources.as_ref().map_or(0, |r| r.registers),
            predicted,
        }))
    }
}

/// What a candidate promises, if that is sure.
fn promise(candidate: &Candidate, default: &Resources) -> Option<f64> {
    let found = candidate.resources.as_ref()?;
    let spilled = |r: &Resources| r.spill_store_bytes + r.spill_load_bytes;
    let is_clean = spilled(found) <= spilled(default) && found.stack_bytes <= default.stack_bytes;
    let is_open = candidate.rejected.is_none()
        && candidate.caution.is_none()
        && candidate.same_code_as.is_none();
    let predicted = candidate.score.as_ref()?.relative_time;
    (is_clean && is_open && predicted <= SURE).then_some(predicted)
}

/// The module with all choices in it.
fn whole(workshop: &Workshop, module: &Module, chosen: &[Chosen]) -> Result<Better, EngineError> {
    let plan = |c: &Chosen| -> (String, Recipe) { (c.kernel.to_owned(), c.recipe.clone()) };
    let named: Vec<(String, Recipe)> = chosen.iter().map(plan).collect();
    let plans: Vec<Plan> = named
        .iter()
        .zip(chosen)
        .map(|((kernel, recipe), c)| Plan {
            kernel,
            recipe,
            setting: c.setting,
        })
        .collect();
    let text = realise(module, &plans)?;
    let level = plans.iter().find_map(|p| p.recipe.usage_level());
    let mut build = workshop.assemble(&text, level)?;
    let (mut changed, mut what) = (Vec::new(), Vec::new());
    for (plan, c) in plans.iter().zip(chosen) {
        let built = read_back(plan, &build)?;
        let reported = built.candidate.resources.clone();
        let (Some(reported), Some(code)) = (reported, &built.kernel) else {
            return Err(EngineError::Otherwise(c.kernel.to_owned()));
        };
        if reported.registers != c.registers {
            return Err(EngineError::Otherwise(c.kernel.to_owned()));
        }
        let is_moved = plan.recipe.at(Stage::Finish).next().is_some();
        let facts = match is_moved {
            true => cubin::resources(code, plan.setting.gpu),
            false => reported,
        };
        // Functions within the kernel's code have moved with it.
        if is_moved && facts.stack_bytes == 0 && !facts.spills() {
            let parts = parts_of(&built.cubin, c.kernel).into_iter();
            changed.extend(parts.map(|kernel| Facts {
                kernel,
                registers: 0,
                frame: 0,
                spills: (0, 0),
                shared: 0,
            }));
        }
        changed.push(Facts {
            kernel: c.kernel.to_owned(),
            registers: facts.registers,
            frame: facts.stack_bytes,
            spills: (facts.spill_store_bytes, facts.spill_load_bytes),
            shared: facts.shared_bytes,
        });
        what.push(format!(
            "{}: {} (predicted {:.2} of the time)",
            c.kernel, c.recipe, c.predicted
        ));
        build.cubin = built.cubin;
    }
    Ok(Better {
        cubin: build.cubin,
        changed,
        what: what.join("; "),
    })
}

/// The functions that stand in the code of this kernel and of no other, by the names that ptxas prints: symbols are
/// `$KERNEL$FUNCTION`.
fn parts_of(cubin: &[u8], kernel: &str) -> Vec<String> {
    let Ok(elf) = Elf::parse(cubin) else {
        return Vec::new();
    };
    let own = elf.section_index(&format!(".text.{kernel}"));
    let symbols = elf.symbols().unwrap_or_default();
    let functions: Vec<_> = symbols.iter().filter(|s| s.is_function()).collect();
    let short = |name: &str| name.rsplit('$').next().unwrap_or(name).to_owned();
    let (inside, outside): (Vec<_>, Vec<_>) = functions
        .into_iter()
        .partition(|s| Some(usize::from(s.section)) == own);
    let elsewhere: Vec<String> = outside.iter().map(|s| short(&s.name)).collect();
    let names = inside
        .iter()
        .filter(|s| s.name != kernel)
        .map(|s| short(&s.name));
    names.filter(|name| !elsewhere.contains(name)).collect()
}
