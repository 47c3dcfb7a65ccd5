//! What the static model promises, without the launch: the only file here that knows how candidates are made.
//!
//! Goal: a build that is faster with near certainty, in half a second. Few candidates, each with no more
//! spilling than the default build: another occupancy step within a fifth of the registers, the usage level
//! that reorders most, what loops store in registers (of kernels of any block size), and of a kernel that spills the
//! highest register limits that a launch permits. Taken is what
//! promises a tenth of the time, or what `opt` would have it promise; a change that lives by more warps at the price of
//! spilling is what the model is wrong about, and is never among them.
//!
//! No build asks for more shared memory than the original: a launch may give as much dynamic shared memory as was left
//! beside it, whether the code declares any or not, and would fail. So spills move to shared memory only where it is said
//! that no launch does (`WARPWRIGHT_PTXAS_SMEM`), or by a recipe that is named.
//!
//! Fewer blocks resident than before are for kernels alone whose blocks cannot wait for each other: nobody here knows
//! the launch. Where nobody knows its dynamic shared memory either, higher limits are all that is tried: they are rated as
//! if there were none, and the more there is, the fewer warps they can cost.
//!
//! A kernel whose recipe is named (`WARPWRIGHT_PTXAS_RECIPES`) gets that, if it is proved, whatever is predicted.
//!
//! Requires, of the others: the block size from the PTX itself but for what asks for no residency, no option that changes the
//! code.

use warpwright_driver::Resources;
use warpwright_driver::build::{Bench, Built, Workshop, mark_duplicates, resources_of};
use warpwright_driver::candidate::{Because, Candidate};
use warpwright_driver::choose;
use warpwright_driver::opt::{
    Chosen, DEFAULT_BUDGET, OptError, Proofs, Request as OptRequest, finish,
};
use warpwright_driver::proposal::Peers;
use warpwright_driver::residency::{hold, occupy};
use warpwright_driver::score::score_all;
use warpwright_pass::Reliance;
use warpwright_pass::miscompiled::met;
use warpwright_pass::names::source_name;
use warpwright_pass::passes::{MaxNReg, SpillToShared, UsageLevel};
use warpwright_pass::{
    Artifact, Fuel, Invalid, Level, Need, Plan, Recipe, Refusal, Scope, ScopeError,
};
use warpwright_sass::{Cubin, Elf, ElfError};
use warpwright_target::{Gpu, UnknownGpu, lookup, runs_on};
use warpwright_toolkit::{BuildCache, ToolError, Toolkit};

use crate::Better;
use crate::messages::Facts;
use crate::options::Request;
use crate::policy::{GPU, RECIPES, SMEM, Settings};

/// Predicted time over the default's that a change must promise.
const SURE: f64 = 0.9;
/// Registers that a step of occupancy may cost, as a share of what the default build takes.
const NEAR: f64 = 0.8;
/// So many raised register limits are tried.
const RAISED: usize = 2;
/// Modules with more kernels are left alone.
const MOST_KERNELS: usize = 16;

/// Why nothing was tried.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// Options of the call.
    #[error("{0} changes the code")]
    Options(String),
    /// The PTX is none that we read.
    #[error("the PTX is not understood: {0}")]
    Ptx(#[from] Box<Invalid>),
    /// Too many kernels.
    #[error("the module has {0} kernels")]
    Many(usize),
    /// The target.
    #[error(transparent)]
    Gpu(#[from] UnknownGpu),
    /// The code is not for the GPU that is named.
    #[error("it is for {0}, and does not run on {1} ({GPU})")]
    OtherGpu(Gpu, Gpu),
    /// What the module says of its launches.
    #[error(transparent)]
    Scope(#[from] ScopeError),
    /// ptxas.
    #[error(transparent)]
    Tool(#[from] ToolError),
    /// The whole module is not what its kernels promised one by one, or is not proved.
    #[error(transparent)]
    Whole(#[from] Box<OptError>),
    /// What ptxas wrote.
    #[error(transparent)]
    Cubin(#[from] ElfError),
    /// The result is no cubin, or a kernel is missing in it.
    #[error("kernel `{0}` is missing in the result")]
    Missing(String),
}

/// Why a kernel stays as ptxas made it.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Unchanged {
    /// Occupancy is not known.
    #[error("its block size is not known: give it __launch_bounds__")]
    Block,
    /// The same of a kernel that cannot have both.
    #[error(
        "its block size is not known: give it __launch_bounds__ in the place of __maxnreg__, or name its recipe in {RECIPES}"
    )]
    BlockBesideLimit,
    /// Others are, and no policy.
    #[error("{RECIPES} names {0} and not this, and WARPWRIGHT_PTXAS is not `safe`")]
    NotNamed(String),
    /// Its recipe cannot be carried out.
    #[error("named by {RECIPES}, {0}")]
    Named(String),
    /// Higher register limits are all that is tried of it, if it spills.
    #[error(
        "{tried}; how much dynamic shared memory a launch gives it is not known here, and nothing else is tried: \
         `warpwright tune -- PROGRAM` sees it, and so does the decorator `warpwright.optimised` (Triton, CuPy)"
    )]
    DynamicSmem {
        /// What came of them.
        tried: String,
    },
    /// PTX that we do not read.
    #[error("it has instructions that are not understood")]
    Opaque,
    /// ptxas made no code of it.
    #[error("it is not in the cubin")]
    Absent,
    /// It does not spill, no step of occupancy is near, and usage levels would change its neighbours.
    #[error("no build is likely to be better without more spilling")]
    Nothing,
    /// Fewer of its blocks may not reside.
    #[error(
        "its blocks may wait for each other ({0}): no build of which fewer blocks reside, or more shared memory is wanted, is \
         tried"
    )]
    Waits(String),
    /// The best build promises too little.
    #[error(
        "the best of the builds, {recipe}, is predicted to take {predicted:.2} of the time: at most {wanted:.2} is taken"
    )]
    NotSure {
        /// Its recipe.
        recipe: String,
        /// Its time over the default's.
        predicted: f64,
        /// What is taken at most.
        wanted: f64,
    },
    /// What promises something costs spills, or blocks that others may wait for.
    #[error(
        "the other builds spill more, or leave fewer blocks resident, which may wait for each other"
    )]
    Spills,
    /// All builds are the same code.
    #[error("the other builds are the same code")]
    Same,
    /// A pass refuses it, by its name.
    #[error("{0}")]
    Refused(String),
    /// No build came out.
    #[error("{recipe}: {why}")]
    Rejected {
        /// The first recipe.
        recipe: String,
        /// Why.
        why: String,
    },
    /// Spills that shared memory might hold.
    #[error(
        "{0}; its spills stay out of shared memory, since a launch may give it dynamic shared memory that the code does not \
         declare ({SMEM}=declared says that none does)"
    )]
    Spilling(Box<Unchanged>),
}

/// What was found out about a module.
#[derive(Debug)]
pub struct Found {
    /// A better build of it, if one is sure.
    pub better: Option<Better>,
    /// The kernels that stay as they are.
    pub unchanged: Vec<(String, Unchanged)>,
}

/// A choice for one kernel, with the share of the time that it promises, unless its recipe was named.
type Choice = (Chosen, Option<f64>);

/// Where the real ptxas may make wrong code of a module.
pub fn miscompiled(toolkit: &Toolkit, request: &Request, ptx: Option<&str>) -> Vec<String> {
    let version = toolkit.ptxas().and_then(|ptxas| ptxas.tool().version());
    let (Ok(version), Some(ptx)) = (version, ptx) else {
        return Vec::new();
    };
    let arch = request.gpu.clone().unwrap_or_else(|| "sm_75".into());
    let (Ok(gpu), Ok(module)) = (lookup(&arch), Artifact::parse("ptx", ptx)) else {
        return Vec::new();
    };
    let version = (version.major, version.minor);
    let met = module
        .as_module()
        .map(|module| met(module, version, gpu.arch.sm));
    met.into_iter()
        .flatten()
        .map(|met| met.to_string())
        .collect()
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
) -> Result<Found, EngineError> {
    if let Some(option) = &request.changed_by {
        return Err(EngineError::Options(option.clone()));
    }
    let module = Artifact::parse("ptx", ptx).map_err(Box::new)?;
    let arch = request.gpu.clone().unwrap_or_else(|| "sm_75".into());
    let own = lookup(&arch)?;
    let gpu = settings.gpu.as_deref().map_or(Ok(own), lookup)?;
    if !runs_on(own.arch.sm, gpu.arch.sm) {
        return Err(EngineError::OtherGpu(own, gpu));
    }
    let cache = BuildCache::standard();
    let workshop = Workshop {
        toolkit,
        cache: &cache,
        arch: &arch,
        lineinfo: request.lineinfo,
        extra: &request.carried,
    };
    let asked = OptRequest {
        gpu: &gpu,
        scope: Scope::default(),
        peers: Peers::None,
        ptx_only: false,
        margin: 1.0 - SURE,
        budget: DEFAULT_BUDGET,
        proofs: Proofs::Choice,
        is_searched: false,
    };
    let kernels = asked.scope.kernels(&module)?;
    if kernels.len() > MOST_KERNELS {
        return Err(EngineError::Many(kernels.len()));
    }
    let default = Cubin::parse(made)?;
    let (mut choices, mut unchanged) = (Vec::new(), Vec::new());
    for kernel in &kernels {
        let function = module
            .as_module()
            .and_then(|m| Some(&m.functions[m.function(kernel)?]));
        let is_opaque = function.is_none_or(|f| f.opaque().is_some());
        let reliance = Reliance::of(&module, kernel);
        let setting = asked.scope.setting(&module, kernel, &gpu)?;
        let setting_smem = setting.dynamic_smem;
        let code = default.kernel(kernel).ok_or(Unchanged::Absent);
        let named = settings.recipe(kernel).map(|recipe| Chosen {
            plan: Plan {
                kernel: Some(kernel.clone()),
                recipe: recipe.clone(),
            },
            registers: None,
        });
        let choice = match (code, named) {
            (Err(why), _) => Err(why),
            (Ok(_), Some(named)) => Ok((named, None)),
            (Ok(_), None) if settings.named_alone => Err(Unchanged::NotNamed(settings.named())),
            (Ok(_), None) if is_opaque => Err(Unchanged::Opaque),
            (Ok(code), None) => {
                let bench = Bench {
                    workshop: Some(&workshop),
                    start: &module,
                    kernel,
                    setting,
                    fuel: Fuel::default(),
                };
                let untouched = Built {
                    candidate: Candidate::built(Recipe::default(), resources_of(code, &gpu)),
                    run: None,
                    kernel: Some(code.clone()),
                    at_launch: None,
                };
                let standing = Standing {
                    has_block: setting.block.is_given(),
                    is_limited: function.is_some_and(|f| f.max_nreg().is_some()),
                    is_alone: kernels.len() == 1,
                    has_no_more_smem: settings.smem_declared && setting_smem == Some(0),
                    reliance,
                };
                choose(&bench, untouched, standing)?
            }
        };
        match choice {
            Ok(choice) => choices.push(choice),
            Err(why) => unchanged.push((kernel.clone(), why)),
        }
    }
    let until = (Level::MachineCode, Fuel::default());
    let done = loop {
        if choices.is_empty() {
            return Ok(Found {
                better: None,
                unchanged,
            });
        }
        let chosen: Vec<Chosen> = choices.iter().map(|(chosen, _)| chosen.clone()).collect();
        match finish(Some(&workshop), &module, &chosen, &asked, until) {
            Ok(done) => break done,
            // A recipe that was named and cannot be is no reason against those of other kernels.
            Err(error) => unchanged.push(without(&mut choices, error)?),
        }
    };
    let missing = |name: &str| EngineError::Missing(name.to_owned());
    let cubin = done.artifact.as_cubin().ok_or_else(|| missing("*"))?;
    let (mut changed, mut what) = (Vec::new(), Vec::new());
    for (Chosen { plan, .. }, predicted) in &choices {
        let kernel = plan.kernel.as_deref().unwrap_or_default();
        let code = cubin.kernel(kernel).ok_or_else(|| missing(kernel))?;
        let facts = resources_of(code, &gpu);
        // Functions within the kernel's code have moved with it.
        if facts.stack_bytes == 0 && !facts.spills() {
            changed.extend(
                parts_of(cubin.elf(), kernel)
                    .into_iter()
                    .map(Facts::of_nothing),
            );
        }
        changed.push(Facts {
            kernel: kernel.to_owned(),
            registers: facts.registers,
            frame: facts.stack_bytes,
            spills: (facts.spill_store_bytes, facts.spill_load_bytes),
            shared: facts.shared_bytes,
        });
        let why = match predicted {
            Some(predicted) => format!("predicted {predicted:.2} of the time"),
            None => format!("named by {RECIPES}"),
        };
        let before = default.kernel(kernel).map(|code| resources_of(code, &gpu));
        let has_grown = before.is_some_and(|before| before.shared_bytes < facts.shared_bytes);
        let beside = match has_grown {
            true => format!(
                "; {} B of shared memory now: a launch with dynamic shared memory that the code does not declare may fail",
                facts.shared_bytes
            ),
            false => String::new(),
        };
        what.push(format!(
            "{}: {} ({why}{beside})",
            source_name(kernel),
            plan.recipe
        ));
    }
    let better = Some(Better {
        cubin: cubin.bytes().to_vec(),
        changed,
        what: what.join("; "),
    });
    Ok(Found { better, unchanged })
}

/// Takes out the kernel whose named recipe cannot be carried out.
///
/// # Errors
/// It is none, or not about one kernel.
fn without(choices: &mut Vec<Choice>, error: OptError) -> Result<(String, Unchanged), EngineError> {
    let is_it = |(chosen, predicted): &Choice| {
        predicted.is_none()
            && error
                .kernel()
                .is_some_and(|of| chosen.plan.kernel.as_deref() == Some(of))
    };
    let Some(at) = choices.iter().position(is_it) else {
        return Err(Box::new(error).into());
    };
    let (chosen, _) = choices.remove(at);
    let kernel = chosen.plan.kernel.unwrap_or_default();
    let why = match &error {
        OptError::Refused {
            refusal: Refusal::NotStated(Need::BlockSize),
            ..
        } => {
            format!(
                "{}: its block size is not known: give it __launch_bounds__",
                chosen.plan.recipe
            )
        }
        error => error.to_string(),
    };
    Ok((kernel, Unchanged::Named(why)))
}

/// What a kernel's surroundings permit.
#[derive(Debug, Clone, Copy)]
struct Standing {
    /// Its blocks have a size that is known.
    has_block: bool,
    /// A register limit is written in it.
    is_limited: bool,
    /// It is the module's only kernel.
    is_alone: bool,
    /// Launches are known to give it no dynamic shared memory.
    has_no_more_smem: bool,
    /// What it relies on.
    reliance: Reliance,
}

/// The few builds that could be sure of a kernel with blocks of a known size.
fn recipes(
    bench: &Bench,
    default: &Resources,
    blocks: Option<u32>,
    standing: Standing,
) -> Vec<Recipe> {
    let plain = Recipe::default();
    let mut recipes = Vec::new();
    let stairs = bench
        .setting
        .stairs(default.shared_bytes)
        .unwrap_or_default();
    let mut steps: Vec<u32> = stairs.iter().map(|stair| stair.regs).collect();
    steps.sort_unstable();
    let limit = |registers: u32| plain.with(MaxNReg { registers });
    if default.spills() && standing.reliance.is_nothing() {
        let raised = steps.iter().rev().filter(|&&r| r > default.registers);
        recipes.extend(raised.take(RAISED).map(|&registers| limit(registers)));
    }
    if bench.setting.dynamic_smem.is_none() {
        return recipes;
    }
    let least = (f64::from(default.registers) * NEAR) as u32;
    let below = steps.partition_point(|&regs| regs < default.registers);
    let step = steps[..below].last().filter(|&&regs| regs >= least);
    recipes.extend(step.map(|&registers| limit(registers)));
    if standing.is_alone {
        recipes.push(plain.with(UsageLevel { level: 10 }));
    }
    if default.spills() && standing.has_no_more_smem {
        recipes.push(plain.with(SpillToShared { blocks: None }));
        // Where not all slots fit beside so many blocks, those that do.
        recipes.extend(blocks.map(|_| plain.with(SpillToShared { blocks })));
    }
    recipes
}

/// The build to take, or why there is none.
fn choose(
    bench: &Bench,
    untouched: Built,
    standing: Standing,
) -> Result<Result<Choice, Unchanged>, EngineError> {
    let mut untouched = untouched;
    occupy(&bench.setting, &mut untouched.candidate);
    let default = untouched.candidate.resources().cloned().unwrap_or_default();
    let stays = default.spills() && !standing.has_no_more_smem;
    let blocks = untouched.candidate.residency().map(|r| r.blocks);
    let kept = bench.kept_apart();
    let begun = |recipe: &Recipe| {
        let (own, run) = kept.as_ref()?;
        (own == recipe).then_some(run)
    };
    let mut tried: Vec<Recipe> = kept.iter().map(|(recipe, _)| recipe.clone()).collect();
    if standing.has_block {
        tried.extend(recipes(bench, &default, blocks, standing));
    }
    let mut built = vec![untouched];
    built.extend(bench.build_all(tried, &begun, &|_| {})?);
    for b in &mut built {
        // By the code and not by ptxas's report: what moved is no spill any more.
        if let (Some(code), Some(figures)) = (&b.kernel, b.candidate.figures_mut()) {
            figures.resources = resources_of(code, bench.setting.gpu);
        }
        occupy(&bench.setting, &mut b.candidate);
    }
    if let Some((untouched, others)) = built.split_first_mut() {
        for other in others {
            let original = &untouched.candidate;
            hold(
                standing.reliance,
                &bench.setting,
                original,
                &mut other.candidate,
            );
        }
    }
    mark_duplicates(&mut built);
    score_all(&bench.setting, None, &mut built);
    let (default, candidates) = (&built[0].candidate, &built[1..]);
    let candidates: Vec<&Candidate> = candidates.iter().map(|b| &b.candidate).collect();
    let promises: Vec<(&Candidate, f64)> = candidates
        .iter()
        .filter(|c| standing.has_no_more_smem || asks_no_more(default, c))
        .filter_map(|c| Some((*c, promised(default, c)?)))
        .collect();
    let least = |a: &&(&Candidate, f64), b: &&(&Candidate, f64)| a.1.total_cmp(&b.1);
    // One that promises too little for what it is does not stand in the way of another that promises enough.
    let sure = promises.iter().filter(|(c, p)| *p <= wanted(default, c));
    if let Some((candidate, predicted)) = sure.min_by(least) {
        let plan = Plan {
            kernel: Some(bench.kernel.to_owned()),
            recipe: candidate.recipe.clone(),
        };
        let registers = candidate.resources().map(|r| r.registers);
        return Ok(Ok((Chosen { plan, registers }, Some(*predicted))));
    }
    let why = match promises.iter().min_by(least) {
        _ if !standing.has_block && standing.is_limited => Unchanged::BlockBesideLimit,
        _ if !standing.has_block => Unchanged::Block,
        best if bench.setting.dynamic_smem.is_none() => Unchanged::DynamicSmem {
            tried: match (candidates.is_empty(), best) {
                (true, _) if default.resources().is_some_and(Resources::spills) => {
                    "its blocks may wait for each other, or no higher register limit is left".into()
                }
                (true, _) => "it does not spill".into(),
                (false, Some((candidate, predicted))) => format!(
                    "of higher register limits the best, {}, is predicted to take {predicted:.2} of the time, and at most \
                     {:.2} is taken",
                    candidate.recipe,
                    wanted(default, candidate)
                ),
                (false, None) => "no higher register limit is better".into(),
            },
        },
        Some((candidate, predicted)) => Unchanged::NotSure {
            recipe: candidate.recipe.to_string(),
            predicted: *predicted,
            wanted: wanted(default, candidate),
        },
        None => match standing.reliance.waits {
            Some(wait) if candidates.is_empty() => Unchanged::Waits(wait.to_string()),
            _ => why_none(&candidates),
        },
    };
    Ok(Err(
        match stays && standing.has_block && bench.setting.dynamic_smem.is_some() {
            true => Unchanged::Spilling(Box::new(why)),
            false => why,
        },
    ))
}

/// The share of the default's time that a candidate may take at most.
fn wanted(default: &Candidate, candidate: &Candidate) -> f64 {
    1.0 - choose::promise(default, candidate, 1.0 - SURE)
}

/// Does a launch that had room beside the original have as much beside the candidate?
fn asks_no_more(default: &Candidate, candidate: &Candidate) -> bool {
    let shared = |c: &Candidate| c.resources().map(|r| r.shared_bytes);
    shared(candidate) <= shared(default)
}

/// Why none of these promises anything.
fn why_none(candidates: &[&Candidate]) -> Unchanged {
    let rejected = |c: &&Candidate| {
        let rejection = c.rejected()?;
        let why = rejection.to_string();
        Some(match rejection.because {
            Because::Refused => Unchanged::Refused(why),
            _ => Unchanged::Rejected {
                recipe: c.recipe.to_string(),
                why,
            },
        })
    };
    match candidates {
        [] => Unchanged::Nothing,
        _ if candidates.iter().any(|c| c.is_open()) => Unchanged::Spills,
        _ => candidates
            .iter()
            .find_map(rejected)
            .unwrap_or(Unchanged::Same),
    }
}

/// The share of the time that a candidate is predicted to take, if nothing speaks against it.
fn promised(default: &Candidate, candidate: &Candidate) -> Option<f64> {
    let (before, found) = (default.resources()?, candidate.resources()?);
    let spilled = |r: &Resources| r.spill_store_bytes + r.spill_load_bytes;
    let is_clean = spilled(found) <= spilled(before) && found.stack_bytes <= before.stack_bytes;
    let predicted = candidate.score()?.relative_time;
    (candidate.is_open() && is_clean).then_some(predicted)
}

/// The functions that stand in the code of this kernel and of no other, by the names that ptxas prints: symbols are
/// `$KERNEL$FUNCTION`.
fn parts_of(elf: &Elf, kernel: &str) -> Vec<String> {
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::ffi::OsString;

    use warpwright_emu::{Emulator, Options, launches_begun};
    use warpwright_launch::LaunchFile;
    use warpwright_toolkit::NvccJob;
    use warpwright_toolkit::testing::require_toolkit;

    use super::*;
    use crate::options::parse;

    const SOURCE: &str = "
extern \"C\" __global__ void sums(float *c, const float *a, const float *b, int n) {
  int t = blockIdx.x * blockDim.x + threadIdx.x;
  for (int k = 0; k < n; k++) c[t] += a[t * n + k] * b[k];
}";
    const LAUNCH: &str = "
kernel = \"sums\"
[sizes.small]
n = 2
[launch]
grid = [\"1\"]
block = [32]
[[args]]
name = \"c\"
type = \"f32\"
shape = [\"32\"]
output = true
init = { kind = \"zeros\" }
[[args]]
name = \"a\"
type = \"f32\"
shape = [\"32\", \"n\"]
init = { kind = \"normal\" }
[[args]]
name = \"b\"
type = \"f32\"
shape = [\"n\"]
init = { kind = \"normal\" }
[[args]]
name = \"n\"
type = \"s32\"
value = \"n\"
";

    #[test]
    fn nothing_is_emulated() {
        let Some(toolkit) = require_toolkit("a build that is chosen") else {
            return;
        };
        let folder = tempfile::tempdir().unwrap();
        let (source, cubin) = (folder.path().join("k.cu"), folder.path().join("k.cubin"));
        std::fs::write(&source, SOURCE).unwrap();
        let job = NvccJob::new(&source, "sm_90");
        let ptx = toolkit.nvcc().unwrap().to_ptx(&job).unwrap().ptx;
        let text = folder.path().join("k.ptx");
        std::fs::write(&text, &ptx).unwrap();
        let args: Vec<OsString> = vec![
            "-arch=sm_90".into(),
            text.into(),
            "-o".into(),
            cubin.clone().into(),
        ];
        let real = toolkit.ptxas().unwrap().tool().path.clone();
        assert!(
            std::process::Command::new(real)
                .args(&args)
                .status()
                .unwrap()
                .success()
        );
        let settings = Settings::of(&|name| (name == crate::policy::POLICY).then(|| "safe".into()));
        let made = std::fs::read(&cubin).unwrap();
        let found = better(&toolkit, &settings, &parse(&args).unwrap(), &ptx, &made).unwrap();
        assert!(
            found.better.is_some(),
            "nothing was chosen, so nothing is shown"
        );
        assert_eq!(launches_begun(), 0);
        // The count is of what it says.
        let module = Artifact::parse("ptx", &ptx).unwrap();
        let file = LaunchFile::parse(LAUNCH, "k.toml").unwrap();
        let launch = file.resolve("small", &[]).unwrap();
        let inputs = launch.buffers().map(|b| vec![0; b.size()]).collect();
        Emulator::new(module.as_module().unwrap(), "sums")
            .unwrap()
            .run(&launch, inputs, &Options::default())
            .unwrap();
        assert_eq!(launches_begun(), 1);
    }
}
