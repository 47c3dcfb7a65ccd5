//! Generated kernels through every pass over PTX: each with options and a goal that alternate with the seed, proved
//! by the checker, and the same bits in the emulator before and after. Passes that write directives alone, or
//! print, go over a kernel one behind the other.

use crate::assignment;
use crate::case::{self, Case, Plan};
use crate::controls;
use crate::proved::{self, Applied, Version, pressure};
use crate::totals::Totals;
use warpwright_check::Cause;
use warpwright_emu::{Options, Results};
use warpwright_fuzzgen::{Program, launch_toml, print};
use warpwright_launch::{Allocation, Facts, Field, Guard, Known, Launch, Parts, Quantity, Source};
use warpwright_pass::options::Arguments;
use warpwright_pass::passes::Specialize;
use warpwright_pass::{Artifact, Invocation, NotProved, Recipe, RecipeError, Refusal, Scope};
use warpwright_ptx::Module;

/// One run, of one pass or of several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// What it is counted as: the pass, or [`DIRECTIVES`].
    pub name: &'static str,
    /// The passes, with their options.
    pub passes: Vec<(&'static str, Vec<(&'static str, &'static str)>)>,
    /// The goal, in per cent of the kernel's pressure, for a pass that has one.
    pub percent: Option<u32>,
}

impl Run {
    fn of(pass: &'static str, options: Vec<(&'static str, &'static str)>) -> Run {
        Run {
            name: pass,
            passes: vec![(pass, options)],
            percent: None,
        }
    }

    fn to(self, percent: u32) -> Run {
        Run {
            percent: Some(percent),
            ..self
        }
    }
}

/// What the passes that write directives alone, or print, are counted as; one recipe has all of them.
pub const DIRECTIVES: &str = "directives and prints, one behind the other";

/// What did not hold.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The kernel itself, before any pass.
    #[error("before the pass: {0}")]
    Before(case::Failure),
    /// What the pass wrote is invalid or not proved.
    #[error(transparent)]
    Pass(proved::Failure),
    /// The run itself makes no sense.
    #[error(transparent)]
    Recipe(#[from] RecipeError),
    /// It leaves the kernel alone for a reason that generated kernels do not give.
    #[error("refused: {0}")]
    Refused(Refusal),
    /// The emulator faults on it.
    #[error("after the pass: {0}")]
    After(case::Failure),
    /// It computes something else.
    #[error("other results than before the pass")]
    Different,
    /// It is not for the kernel's launch.
    #[error("it is for other launches: {0}")]
    Guard(String),
    /// `allocate` promised a number of registers, `spill-shared` and `reduce` less pressure.
    #[error("{after} registers instead of {most} at most")]
    Promise {
        /// Its pressure.
        after: u32,
        /// The promise.
        most: u32,
    },
    /// The checker proves a planted mistake, or does not prove what is as it was.
    #[error("controls: {0}")]
    Controls(#[from] controls::Failure),
    /// `allocate` promised names.
    #[error("a broken promise: {0}")]
    Assignment(assignment::Broken),
}

/// The pass over loops.
const UNROLL: &str = "unroll";

/// The pass that is told the kernel's launch.
const SPECIALIZE: &str = "specialize";

/// The directive that only the newest PTX has.
const SMEM_SPILLING: &str = "smem-spilling";

/// Which facts about it.
const FACTS: &str = "facts";

/// The passes with a goal, in the order of [`runs`].
pub const PASSES: [&str; 4] = ["remat", "spill-shared", "allocate", "reduce"];

/// What the kernel of a turn ([`Plan::turn`]) goes through: every pass of the registry over PTX.
pub fn runs(turn: u64) -> Vec<Run> {
    let pick = |choices: &[&'static str], divisor: u64| {
        choices[(turn / divisor % choices.len() as u64) as usize]
    };
    let percent =
        |choices: &[u32], divisor: u64| choices[(turn / divisor % choices.len() as u64) as usize];
    // Sizes alternate with the turn modulo 4 (`case::program`): the options do with what is left.
    let blocks = pick(&["2", "4", "1", "8"], 8);
    let directives = vec![
        ("pressure", Vec::new()),
        (
            "maxnreg",
            vec![("registers", pick(&["32", "64", "255"], 4))],
        ),
        ("maxntid", vec![("threads", "32")]),
        ("minnctapersm", vec![("blocks", blocks)]),
        ("canonical", Vec::new()),
        ("print", Vec::new()),
    ];
    vec![
        Run::of(PASSES[0], vec![("rules", pick(&["full", "paper"], 4))]).to(percent(&[75, 0], 8)),
        Run::of(
            PASSES[1],
            vec![("layout", pick(&["slot-major", "thread-major"], 4))],
        )
        .to(percent(&[75, 50, 90], 8)),
        Run::of(
            PASSES[2],
            vec![
                ("space", pick(&["shared", "local"], 4)),
                ("cut", pick(&["cell", "class"], 8)),
            ],
        )
        .to(percent(&[100, 80, 60], 16)),
        Run::of(PASSES[3], Vec::new()).to(percent(&[75, 50, 25], 4)),
        Run::of("dead-code", Vec::new()),
        Run::of(
            "cache",
            vec![
                (
                    "loads",
                    pick(&["no-allocate", "streaming", "evict-last"], 4),
                ),
                ("prefetch", pick(&["own", "256B", "64B"], 8)),
                ("stores", pick(&["write-through", "streaming"], 4)),
            ],
        ),
        Run::of(
            UNROLL,
            vec![
                ("factor", pick(&["2", "3", "4", "8"], 4)),
                ("tests", pick(&["each", "auto"], 8)),
            ],
        ),
        Run::of("vectorize", vec![("bytes", pick(&["16", "8"], 4))]),
        Run::of(
            SPECIALIZE,
            vec![
                (FACTS, pick(&["all", "grid", "params"], 4)),
                ("guarded", pick(&["no", "no", "no", "yes"], 4)),
            ],
        ),
        Run::of("throttle", vec![("blocks", blocks), ("by", "smem")]),
        Run::of(SMEM_SPILLING, Vec::new()),
        Run {
            name: DIRECTIVES,
            passes: directives,
            percent: None,
        },
    ]
}

/// Strict, and one block behind the other: the kernels run side by side.
fn options() -> Options {
    Options {
        sequential: true,
        ..case::strict()
    }
}

/// A generated kernel, verified, and what it computes.
struct Subject {
    plan: Plan,
    case: Case,
    artifact: Artifact,
    expected: Results,
    pressure: u32,
}

impl Subject {
    fn new(plan: Plan, program: &Program) -> Result<Subject, case::Failure> {
        let case = case::prepare(program)?;
        let artifact = Artifact::ptx(case.module.clone());
        let artifact = artifact.map_err(|error| case::Failure::Verify(error.render()))?;
        let expected = case::emulate(&case, &options())?;
        let kernel = case.module.kernels().next();
        let pressure = kernel.map_or(0, |(kernel, _)| pressure(&case.module, kernel));
        Ok(Subject {
            plan,
            case,
            artifact,
            expected,
            pressure,
        })
    }

    /// Counts in `unwritten` what [`Subject::same_results`] says.
    fn run(&self, run: &Run, unwritten: &mut u64) -> Result<Applied, Failure> {
        let module = &self.case.module;
        let Some((kernel, _)) = module.kernels().next() else {
            return Ok(Applied::Unchanged);
        };
        let before = self.pressure;
        let goal = run.percent.map(|percent| (before * percent / 100).max(8));
        let scope = Scope {
            launch: Some(&self.case.launch),
            ..Scope::default()
        };
        let is_newer = matches!(run.name, DIRECTIVES | SMEM_SPILLING);
        let newer = is_newer.then(|| self.newer()).transpose()?;
        let input = newer.as_ref().unwrap_or(&self.artifact);
        let recipe = match run.name {
            SPECIALIZE => self.specialized(run),
            _ => recipe(run, goal)?,
        };
        let applied = proved::apply(&recipe, input, &scope);
        let version = match applied.map_err(Failure::Pass)? {
            Applied::Changed(new) => new,
            Applied::Unchanged => return Ok(Applied::Unchanged),
            Applied::Refused(why) => return self.refused(run, why),
        };
        if !version.guard.covers(&launched(&self.case.launch)) {
            return Err(Failure::Guard(version.guard.to_string()));
        }
        let new = version.artifact.as_module().unwrap_or(module);
        let after = pressure(new, kernel);
        let allocated = goal.filter(|_| run.name == "allocate");
        let most = match run.name {
            "spill-shared" | "reduce" => before - 1,
            _ => allocated.unwrap_or(u32::MAX),
        };
        if after > most {
            return Err(Failure::Promise { after, most });
        }
        if let Some(goal) = allocated {
            assignment::check(new, kernel, goal).map_err(Failure::Assignment)?;
        }
        *unwritten += u64::from(self.same_results(new)?);
        Ok(Applied::Changed(version))
    }

    /// The reasons for which a pass may leave a generated kernel alone: what compilers write seldom gives many.
    fn refused(&self, run: &Run, why: Refusal) -> Result<Applied, Failure> {
        match why {
            _ if self.plan == Plan::Rare => Ok(Applied::Refused(why)),
            // Which loops can be unrolled is a matter of their shape.
            Refusal::InTheWay(_) if run.name == UNROLL => Ok(Applied::Refused(why)),
            Refusal::TooFewRegisters { .. }
            | Refusal::NothingHelps { .. }
            | Refusal::NothingToDo(_)
            | Refusal::NoThrottle { .. }
            | Refusal::WithinGoal { .. } => Ok(Applied::Refused(why)),
            other => Err(Failure::Refused(other)),
        }
    }

    /// The version for the kernel's own launch, or for a part of what is known of it.
    fn specialized(&self, run: &Run) -> Recipe {
        let options = run.passes.iter().flat_map(|(_, options)| options);
        let is = |name, value| options.clone().any(|&option| option == (name, value));
        let parts = Parts {
            block: !is(FACTS, "params"),
            grid: !is(FACTS, "params"),
            params: !is(FACTS, "grid"),
            ..Parts::ALL
        };
        let facts = Facts::of(&self.case.launch, Source::Described);
        Recipe::default().with(Specialize {
            guarded: is("guarded", "yes"),
            ..Specialize::of(&facts.guard(parts))
        })
    }

    /// The kernel in the first PTX version that has every directive.
    fn newer(&self) -> Result<Artifact, Failure> {
        let (major, minor) = self.case.module.header.version;
        let version = format!(".version {major}.{minor}");
        let text = self.case.text.replacen(&version, ".version 9.0", 1);
        let (module, _) = Module::parse("fuzz.ptx", &text);
        let artifact = Artifact::ptx(module);
        artifact.map_err(|error| Failure::Before(case::Failure::Verify(error.render())))
    }

    /// A mistake of one class in this version of the kernel (none: the kernel itself); for some kernels, none at all.
    fn plant(
        &self,
        version: Option<&Version>,
        (seed, turn): (u64, u64),
        controls: &mut controls::Controls,
    ) -> Result<(), controls::Failure> {
        if turn.is_multiple_of(IDLE) {
            controls::idle(&self.case, controls)?;
        }
        let text = version.map(|version| String::from_utf8_lossy(version.artifact.bytes()));
        let right = controls::Right {
            case: &self.case,
            expected: &self.expected,
            text: text.as_deref().unwrap_or(&self.case.text),
            assume: version.map_or_else(Guard::always, |version| version.guard.clone()),
        };
        let class = (turn % controls::MISTAKES.len() as u64) as usize;
        right.plant(class, seed, controls)
    }

    /// Runs the new version under the strict options; it must leave the same bits. It may read what was never
    /// written where nobody uses it (a spilled value, before a guarded definition that is dead): true then.
    fn same_results(&self, new: &Module) -> Result<bool, Failure> {
        let Case { launch, inputs, .. } = &self.case;
        let strict = case::no_longer(&self.expected, options());
        let lax = Options {
            uninitialised: false,
            ..strict.clone()
        };
        let run = |options| case::emulate_module(new, launch, inputs, options);
        let strictly = run(&strict);
        let unwritten = strictly.is_err();
        let found = strictly.or_else(|_| run(&lax));
        match found.map_err(Failure::After)?.buffers == self.expected.buffers {
            true => Ok(unwritten),
            false => Err(Failure::Different),
        }
    }
}

/// All passes on the kernel of a seed.
///
/// # Errors
/// The first run that fails, and how.
pub fn check(plan: Plan, seed: u64, totals: &mut Totals) -> Result<(), Box<(Run, Failure)>> {
    let subject = Subject::new(plan, &plan.program(seed));
    let turn = plan.turn(seed);
    let runs = runs(turn);
    let subject = subject.map_err(|error| Box::new((runs[0].clone(), Failure::Before(error))))?;
    totals.count_kernel(plan.stratum(seed));
    let mut versions = vec![(runs[0].clone(), None)];
    for run in runs {
        let mut unwritten = 0;
        let done = match subject.run(&run, &mut unwritten) {
            Ok(done) => done,
            Err(Failure::Pass(proved::Failure::NotProved(open))) if may_stay_open(&run, &open) => {
                totals.pass(run.name).count_undecided(&open.verdict);
                continue;
            }
            Err(failure) => return Err(Box::new((run.clone(), failure))),
        };
        totals.pass(run.name).count(&done);
        totals.pass(run.name).unwritten += unwritten;
        if let Applied::Changed(new) = done
            && new.artifact.as_module().is_some()
        {
            versions.push((run, Some(new)));
        }
    }
    // Neither the size (the turn modulo 4) nor the stratum goes with the class or the version.
    let turn = turn / 4 + seed;
    let spoiled = (turn / controls::MISTAKES.len() as u64) as usize % versions.len();
    let (run, version) = &versions[spoiled];
    let planted = subject.plant(version.as_ref(), (seed, turn), &mut totals.controls);
    planted.map_err(|failure| Box::new((run.clone(), Failure::Controls(failure))))
}

/// The guard that the launch meets, alignment of its buffers included.
fn launched(launch: &Launch) -> Guard {
    let facts = Facts::of(launch, Source::Described);
    let aligned = |guard: Guard, (&field, known): (&Field, &Known<Allocation>)| {
        guard.multiple(Quantity::Param(field), known.value.align)
    };
    facts.pointers.iter().fold(facts.guard(Parts::ALL), aligned)
}

/// Of so many kernels one is held against itself.
pub(crate) const IDLE: u64 = 8;

fn recipe(run: &Run, goal: Option<u32>) -> Result<Recipe, RecipeError> {
    let passes = run.passes.iter().map(|(pass, options)| {
        let mut arguments = Arguments::default();
        if let Some(goal) = goal {
            arguments.set("registers", goal.to_string());
        }
        for &(name, value) in options {
            arguments.set(name, value);
        }
        Invocation::new(pass, arguments)
    });
    Recipe::new(passes.collect::<Result<_, _>>()?)
}

/// Some versions for a launch and of unrolled loops stay undecided, and so does what moves a variable on whose alignment a
/// kernel may rely. All are counted; a pass writes none of them.
fn may_stay_open(run: &Run, open: &NotProved) -> bool {
    let by_name = matches!(run.name, UNROLL | SPECIALIZE);
    let cause = open.verdict.cause();
    open.verdict.word() == "undecided" && (by_name || cause == Some(Cause::Around))
}

/// Shrinks a kernel while the run fails in the same way; a test file with the failure, the run and
/// the launch in comments.
pub fn report(plan: Plan, program: &Program, run: &Run, failure: &Failure) -> String {
    let fails = |p: &Program| match Subject::new(plan, p) {
        Ok(subject) => subject.run(run, &mut 0).err(),
        Err(error) => Some(Failure::Before(error)),
    };
    let same = |p: &Program| {
        fails(p).is_some_and(|f| std::mem::discriminant(&f) == std::mem::discriminant(failure))
    };
    let small = case::reduced(program, same);
    let about = format!("{run:?}\n{failure}");
    case::in_comments(&about, &launch_toml(&small)) + &print(&small)
}
