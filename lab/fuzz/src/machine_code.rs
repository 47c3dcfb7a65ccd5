//! Generated kernels as machine code, through every pass of the registry that works on it: what a pass
//! writes must be taken apart, be free of hazards, and differ in no value for the checker; what the checker does not
//! decide is counted by its reasons. Values are demoted behind moved spills and behind orders with fewer registers, too, as the search over machine code does it. In
//! the end all passes that changed the kernel go over it one behind the other.
//!
//! The kernels are assembled with few registers, so that there is something to move; every other one goes
//! without its local array, so that all that lies in local memory was spilled.

use std::fmt;
use std::path::Path;

use warpwright_check::Verdict;
use warpwright_fuzzgen::{Program, launch_toml, print};
use warpwright_launch::Launch;
use warpwright_pass::options::Arguments;
use warpwright_pass::passes::PASSES;
use warpwright_pass::passes::{MaxNReg, Rename};
use warpwright_pass::{
    Artifact, AssemblerOptions, Builders, Executor, Invocation, Level, Recipe, RunError, Scope,
    ScopeError, Target,
};
use warpwright_target::{Gpu, UnknownGpu, lookup};
use warpwright_toolkit::{BuildCache, FindOptions, NotFound, PtxasJob, ToolError, Toolkit};

use crate::case::{self, Case, Plan};
use crate::controls::{self, Code, SPOILS};
use crate::passes::IDLE;
use crate::proved::{self, Applied};
use crate::totals::{Counts, Totals};

/// Where the kernels would run.
const GPU: &str = "h200";

/// Register limits; the small ones make kernels spill.
const LIMITS: [u32; 4] = [32, 24, 40, NO_LIMIT];
const NO_LIMIT: u32 = 255;

/// The name under which runs of several passes are counted.
pub const ALL: &str = "machine code, one behind the other";

/// The name under which values are counted that are demoted behind moved spills.
pub const BEHIND_SPILLS: &str = "machine code, values behind moved spills";
/// The name under which kernels are counted that another order brings down to fewer registers.
pub const BY_ORDER: &str = "machine code, fewer registers by another order";
/// The same where values are demoted behind it.
pub const BEHIND_ORDER: &str = "machine code, values behind another order";

/// The pass that is a matter of ptxas.
const RENAME: &str = "rename";

/// What assembles.
pub struct Assembler {
    toolkit: Toolkit,
    gpu: Gpu,
}

/// Why there is none.
#[derive(Debug, thiserror::Error)]
pub enum NoAssembler {
    /// No tools there.
    #[error(transparent)]
    Toolkit(#[from] NotFound),
    /// No ptxas, or one that does not say its version.
    #[error(transparent)]
    Tool(#[from] ToolError),
    /// No table of the GPU.
    #[error(transparent)]
    Gpu(#[from] UnknownGpu),
}

/// What a kernel went through.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// Registers per thread at most, of the build.
    pub limit: u32,
    /// The passes.
    pub recipe: Recipe,
}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, ".maxnreg {}: {}", self.limit, self.recipe)
    }
}

/// What did not hold.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The kernel itself.
    #[error("before the pass: {0}")]
    Before(#[from] case::Failure),
    /// What is stated contradicts it.
    #[error(transparent)]
    Scope(#[from] ScopeError),
    /// It could not be assembled.
    #[error("not assembled: {0}")]
    Assemble(#[from] RunError),
    /// What the pass wrote is invalid, has hazards or differs.
    #[error(transparent)]
    Pass(#[from] proved::Failure),
    /// Under another name ptxas made something else of it.
    #[error("under another name: {0}")]
    Renamed(String),
    /// The checker proves a planted mistake, or does not prove what is as it was.
    #[error("controls: {0}")]
    Controls(#[from] controls::Failure),
}

impl Assembler {
    /// The ptxas at a path, or in a folder.
    ///
    /// # Errors
    /// [`NoAssembler`].
    pub fn new(path: &Path) -> Result<Assembler, NoAssembler> {
        let folder = match path.is_file() {
            true => path.parent().unwrap_or(path),
            false => path,
        };
        let options = FindOptions {
            explicit_dir: Some(folder.to_path_buf()),
        };
        let toolkit = Toolkit::find(&options)?;
        toolkit.ptxas()?;
        Ok(Assembler::of(toolkit)?)
    }

    /// That of a toolkit.
    ///
    /// # Errors
    /// The table of the GPU is missing.
    pub fn of(toolkit: Toolkit) -> Result<Assembler, UnknownGpu> {
        let gpu = lookup(GPU)?;
        Ok(Assembler { toolkit, gpu })
    }

    /// Its version.
    ///
    /// # Errors
    /// There is no ptxas, or it does not say.
    pub fn version(&self) -> Result<String, ToolError> {
        let version = self.toolkit.ptxas()?.tool().version()?.to_string();
        Ok(format!("ptxas {version}"))
    }

    fn assemble(
        &self,
        ptx: &Artifact,
        launch: &Launch,
        (limit, name): (u32, Name),
    ) -> Result<Artifact, Failure> {
        let arch = format!("sm_{}", self.gpu.arch.sm);
        let build = |ptx: &str, options: AssemblerOptions| {
            let mut job = PtxasJob::new(ptx, &arch);
            job.suffix = options.suffix;
            let build = BuildCache::disabled().ptxas(&self.toolkit.ptxas()?, &job)?;
            Ok(build.cubin.into())
        };
        let builders = Builders {
            assemble: Some(&build),
            ..Builders::default()
        };
        let scope = self.scope(launch);
        let target = Target {
            kernel: Some(&launch.kernel),
            setting: scope.setting(ptx, &launch.kernel, &self.gpu)?,
        };
        // ptxas does not heed --maxrregcount where a kernel states its block.
        let recipe = match limit {
            NO_LIMIT => Recipe::default(),
            registers => Recipe::default().with(MaxNReg { registers }),
        };
        let recipe = match name {
            Name::Own => recipe,
            Name::Another => recipe.with(Rename {}),
        };
        let run = Executor::new(builders).run(ptx, &target, &recipe, Level::MachineCode)?;
        Ok(run.unproved().clone())
    }

    fn scope<'a>(&self, launch: &'a Launch) -> Scope<'a> {
        Scope {
            gpu: Some(self.gpu),
            launch: Some(launch),
            ..Scope::default()
        }
    }
}

/// The name under which ptxas sees a kernel.
#[derive(Clone, Copy)]
enum Name {
    Own,
    /// What `rename` makes of it.
    Another,
}

/// The kernel of a seed, as it is assembled: limits are for kernels that keep their registers.
pub fn program(plan: Plan, seed: u64) -> Program {
    let program = plan.program(seed).with_all_registers();
    match plan.turn(seed) / 4 % 2 {
        0 => program.without_local_array(),
        _ => program,
    }
}

/// Every pass of the registry over machine code, with options that alternate with the turn.
fn passes(turn: u64) -> impl Iterator<Item = Invocation> {
    let invoke = move |name: &str| {
        let mut arguments = Arguments::default();
        let blocks = [8, 16, 4, 12][(turn / 32 % 4) as usize];
        let registers = ["auto", "24", "20", "28"][(turn / 8 % 4) as usize];
        match name {
            "demote" => {
                arguments.set("registers", registers);
                arguments.set("again", ["on", "all"][(turn / 4 % 2) as usize]);
            }
            "throttle" => arguments.set("blocks", blocks.to_string()),
            "spill-to-shared" if turn / 8 % 2 == 1 => arguments.set("blocks", blocks.to_string()),
            _ => {}
        }
        Invocation::new(name, arguments).ok()
    };
    let all = PASSES.iter().filter_map(move |pass| invoke(pass.name));
    all.filter(|pass| pass.level() == Level::MachineCode)
}

/// What a kernel goes through that was built under a limit, each by the name under which it is counted: every pass alone,
/// values that follow ptxas's spills into shared memory, every other time in another order, and orders with fewer registers, with
/// values demoted behind them.
fn recipes(turn: u64, limit: u32) -> Vec<(&'static str, Recipe)> {
    let goal = limit - [4, 8][(turn / 8 % 2) as usize];
    let order = match turn / 4 % 2 {
        0 => "",
        _ => "; schedule(waits=alone, margin=0)",
    };
    let again = ["all", "on"][(turn / 16 % 2) as usize];
    // Fewer than the values of most kernels without a limit.
    let most = limit.min(LIMITS[2]);
    let few = most - [2, 1, 4, 8][(turn / 4 % 4) as usize];
    let by = ["height", "place", "none"][(turn / 16 % 3) as usize];
    let miss = ["near", "refuse"][(turn / 8 % 2) as usize];
    let alone = passes(turn).map(|pass| (pass.name(), Recipe::default().with(pass)));
    let written = [
        (
            BEHIND_SPILLS,
            format!("spill-to-shared; demote({goal}, again={again}){order}"),
        ),
        (
            BY_ORDER,
            format!("schedule(registers={few}, by={by}, miss={miss})"),
        ),
        (
            BEHIND_ORDER,
            format!("schedule(registers={few}, by={by}, miss=near); demote({few}, again={again})"),
        ),
    ];
    let written = written.into_iter();
    let written = written.filter_map(|(name, recipe)| Some((name, recipe.parse().ok()?)));
    alone.chain(written).collect()
}

/// Every pass on the machine code of the kernel of a seed, each alone and then all of them.
///
/// # Errors
/// The first run that fails, and how.
pub fn check(
    plan: Plan,
    seed: u64,
    assembler: &Assembler,
    totals: &mut Totals,
) -> Result<(), Box<(Run, Failure)>> {
    let turn = plan.turn(seed);
    let limit = LIMITS[(turn / 16 % LIMITS.len() as u64) as usize];
    let failed = |recipe: &Recipe, failure| {
        let recipe = recipe.clone();
        Box::new((Run { limit, recipe }, failure))
    };
    let nothing = Recipe::default();
    let built = build(&program(plan, seed), assembler, (limit, Name::Own));
    let (launch, cubin) = built.map_err(|failure| failed(&nothing, failure))?;
    totals.assembled += 1;
    let scope = assembler.scope(&launch);
    let mut apply = |name: &str, recipe: &Recipe| {
        let counts = totals.pass(name);
        match proved::apply(recipe, &cubin, &scope) {
            Ok(applied) => {
                counts.count(&applied);
                Ok(match applied {
                    Applied::Changed(new) => Some(new.artifact),
                    _ => None,
                })
            }
            Err(proved::Failure::NotProved(open))
                if matches!(*open.verdict, Verdict::Undecided(_)) =>
            {
                counts.count_undecided(&open.verdict);
                Ok(None)
            }
            Err(failure) => Err(failed(recipe, Failure::Pass(failure))),
        }
    };
    let mut all = Recipe::default();
    let mut versions = Vec::new();
    for (name, recipe) in recipes(turn, limit) {
        if let Some(new) = apply(name, &recipe)? {
            if let [pass] = recipe.passes() {
                all = all.with(pass.clone());
            }
            versions.push((recipe, new));
        }
    }
    if all.passes().len() > 1
        && let Some(new) = apply(ALL, &all)?
    {
        versions.push((all, new));
    }
    let code = Code {
        cubin: cubin.bytes(),
        block: launch.block,
    };
    // Neither the size nor the stratum goes with the class.
    let turn = turn / 4 + seed;
    if turn % IDLE == 1 {
        let counts = totals.pass(RENAME);
        let checked = renamed(&program(plan, seed), &code, (assembler, limit), counts);
        let recipe = Recipe::default().with(Rename {});
        checked.map_err(|failure| failed(&recipe, failure))?;
    }
    let controls = &mut totals.controls;
    if turn.is_multiple_of(IDLE) {
        let idle = code.idle(seed, controls);
        idle.map_err(|failure| failed(&nothing, failure.into()))?;
    }
    // Each kernel has a mistake of one class, and what a pass made of it another one.
    let first = plan.first_certain();
    let class = |end: usize| first + (turn % (end - first) as u64) as usize;
    let planted = code.plant(code.cubin, class(SPOILS.len()), seed, controls);
    planted.map_err(|failure| failed(&nothing, failure.into()))?;
    if !versions.is_empty() {
        let (recipe, new) = &versions[seed as usize / SPOILS.len() % versions.len()];
        let planted = code.plant(new.bytes(), class(controls::IN_VALUES), seed, controls);
        planted.map_err(|failure| failed(recipe, failure.into()))?;
    }
    Ok(())
}

/// A kernel that ptxas saw under another name: what it made of it may differ, but in no value for certain.
fn renamed(
    program: &Program,
    code: &Code<'_>,
    (assembler, limit): (&Assembler, u32),
    counts: &mut Counts,
) -> Result<(), Failure> {
    let (_, new) = build(program, assembler, (limit, Name::Another))?;
    if new.bytes() == code.cubin {
        counts.count(&Applied::Unchanged);
        return Ok(());
    }
    let verdict = code.verdict(new.bytes()).map_err(controls::Failure::from)?;
    match verdict {
        Verdict::Proved => counts.count_changed(),
        Verdict::Refuted(_) => return Err(Failure::Renamed(verdict.to_string())),
        other => counts.count_undecided(&other),
    }
    Ok(())
}

fn build(
    program: &Program,
    assembler: &Assembler,
    way: (u32, Name),
) -> Result<(Launch, Artifact), Failure> {
    build_case(case::prepare(program)?, assembler, way)
}

fn build_case(
    case: Case,
    assembler: &Assembler,
    way: (u32, Name),
) -> Result<(Launch, Artifact), Failure> {
    let ptx = Artifact::ptx(case.module);
    let ptx = ptx.map_err(|error| case::Failure::Verify(error.render()))?;
    let cubin = assembler.assemble(&ptx, &case.launch, way)?;
    Ok((case.launch, cubin))
}

/// A kernel's launch, its machine code, and what the passes made of it, each by what it went through.
pub(crate) struct Versions {
    pub(crate) launch: Launch,
    pub(crate) original: Artifact,
    pub(crate) proved: Vec<(Run, Artifact)>,
}

/// The versions of a kernel that are proved.
///
/// # Errors
/// It cannot be assembled, or a pass does what it must not.
pub(crate) fn versions(
    case: Case,
    turn: u64,
    assembler: &Assembler,
) -> Result<Versions, Box<Failure>> {
    let limit = LIMITS[(turn / 16 % LIMITS.len() as u64) as usize];
    let (launch, original) = build_case(case, assembler, (limit, Name::Own))?;
    let scope = assembler.scope(&launch);
    let mut proved = Vec::new();
    for (_, recipe) in recipes(turn, limit) {
        match proved::apply(&recipe, &original, &scope) {
            Ok(Applied::Changed(new)) => proved.push((Run { limit, recipe }, new.artifact)),
            Ok(Applied::Unchanged | Applied::Refused(_)) => {}
            Err(proved::Failure::NotProved(open))
                if matches!(*open.verdict, Verdict::Undecided(_)) => {}
            Err(failure) => return Err(Box::new(failure.into())),
        }
    }
    let recipe = Recipe::default();
    proved.push((Run { limit, recipe }, original.clone()));
    Ok(Versions {
        launch,
        original,
        proved,
    })
}

/// Shrinks a kernel while the run fails in the same way; a test file with the failure, the run and
/// the launch in comments.
pub fn report(program: &Program, assembler: &Assembler, run: &Run, failure: &Failure) -> String {
    let fails = |p: &Program| {
        let (launch, cubin) = build(p, assembler, (run.limit, Name::Own))?;
        proved::apply(&run.recipe, &cubin, &assembler.scope(&launch))?;
        Ok::<(), Failure>(())
    };
    let kind = |failure: &Failure| match failure {
        Failure::Pass(inner) => (
            std::mem::discriminant(failure),
            Some(std::mem::discriminant(inner)),
        ),
        _ => (std::mem::discriminant(failure), None),
    };
    let same = |p: &Program| fails(p).is_err_and(|found| kind(&found) == kind(failure));
    let small = case::reduced(program, same);
    let about = format!("{run}\n{failure}");
    case::in_comments(&about, &launch_toml(&small)) + &print(&small)
}
