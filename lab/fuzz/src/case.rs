//! One generated kernel, and what must hold for it: parse, print, verify, and an emulator that
//! gives the same bits in any order of blocks, without a fault.

use std::time::{Duration, Instant};

use crate::controls;
use warpwright_emu::{Emulator, Options, Outcome, Results};
use warpwright_fuzzgen::{Config, Program, generate, launch_toml, print, reduce};
use warpwright_launch::{Launch, LaunchFile, no_files};
use warpwright_ptx::Module;
use warpwright_ptx::print::canonical as canonical_text;

/// What did not hold.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// The front end reported errors in a valid kernel.
    #[error("the front end refuses a valid kernel: {0}")]
    Diagnostics(String),
    /// Printing is not the identity.
    #[error("parse -> print changes the text")]
    Print,
    /// The typed view loses something.
    #[error("canonical print -> parse -> canonical print differs")]
    Canonical,
    /// The verifier refuses it.
    #[error("the verifier refuses a valid kernel: {0}")]
    Verify(String),
    /// The launch description is wrong: a bug of the generator.
    #[error("the launch description: {0}")]
    Launch(String),
    /// The emulator does not support it, or failed.
    #[error("the emulator: {0}")]
    Emulator(String),
    /// The kernel is at fault: a bug of the generator or the emulator.
    #[error("a fault in a valid kernel: {0}")]
    Fault(String),
    /// Two runs differ.
    #[error("parallel and sequential runs of the emulator differ")]
    Determinism,
}

/// A kernel ready to run.
#[derive(Debug)]
pub struct Case {
    /// The PTX text.
    pub text: String,
    /// Parsed.
    pub module: Module,
    /// How to launch it.
    pub launch: Launch,
    /// Initial contents of the buffers.
    pub inputs: Vec<Vec<u8>>,
}

/// The program of a seed: every few seeds another size, so that small kernels and kernels with
/// high register pressure both occur.
pub fn program(seed: u64, approximate: bool) -> Program {
    let config = Config {
        approximate,
        ..size(seed)
    };
    generate(seed, &config)
}

/// The four sizes in turn.
fn size(turn: u64) -> Config {
    let (statements, depth, registers) = match turn % 4 {
        0 => (25, 2, 8),
        1 => (60, 3, 24),
        2 => (120, 4, 48),
        _ => (40, 2, 100),
    };
    Config {
        statements,
        depth,
        registers,
        ..Config::default()
    }
}

/// So long a failing program is made smaller: runs of many kernels go on.
const REDUCING: Duration = Duration::from_secs(20);

/// Kernels after which the strata repeat.
const STRATA: u64 = 32;

/// Which kernels a run is made of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Plan {
    /// Four sizes in turn, up to a hundred registers, four warps and three blocks ([`program`]).
    #[default]
    Sizes,
    /// Of 32 kernels 26 tiny ones, five small ones, and one of the four sizes in turn: what many kernels cost
    /// goes into many kernels.
    Strata,
    /// The same with what compilers write seldom (`warpwright_fuzzgen::Rare`).
    Rare,
    /// Small kernels with so many values at once that ptxas spills them under a limit.
    Pressure,
}

impl Plan {
    /// What the kernel of a seed is called in the counts.
    pub fn stratum(self, seed: u64) -> &'static str {
        match (self, seed % STRATA) {
            (Plan::Sizes, _) | (Plan::Strata, 0) => "four sizes",
            (Plan::Strata, 1..=5) => "small",
            (Plan::Strata, _) => "tiny",
            (Plan::Rare, 0) => "rare, four sizes",
            (Plan::Rare, 1..=5) => "rare, small",
            (Plan::Rare, _) => "rare, tiny",
            (Plan::Pressure, _) => "pressure",
        }
    }

    /// The number that options alternate with; modulo four it is the size of a kernel of the four sizes, and what
    /// is left of it depends on no stratum.
    pub fn turn(self, seed: u64) -> u64 {
        match self {
            Plan::Sizes | Plan::Pressure => seed,
            Plan::Strata | Plan::Rare => seed / STRATA,
        }
    }

    /// The first class of [`SPOILS`](crate::controls::SPOILS) whose every member is a mistake: rare statements may store
    /// what a later one overwrites.
    pub fn first_certain(self) -> usize {
        match self {
            Plan::Sizes | Plan::Strata | Plan::Pressure => 0,
            Plan::Rare => controls::IN_STORES,
        }
    }

    /// The kernel of a seed.
    pub fn program(self, seed: u64) -> Program {
        let rare = self == Plan::Rare;
        let of = |statements, depth, registers, warps| {
            let config = Config {
                statements,
                depth,
                registers,
                approximate: false,
                warps,
                blocks: warps,
                rare,
            };
            generate(seed, &config)
        };
        match (self, seed % STRATA) {
            (Plan::Sizes, _) => program(seed, false),
            (Plan::Pressure, _) => of(25, 2, 40 + 20 * (seed % 4) as usize, 1),
            (_, 0) => generate(
                self.turn(seed),
                &Config {
                    rare,
                    ..size(self.turn(seed))
                },
            ),
            (_, 1..=5) => of(20, 2, 12, 2),
            _ => of(8, 2, 6, 1),
        }
    }
}

/// Front end and launch description of a program.
pub fn prepare(program: &Program) -> Result<Case, Failure> {
    of_text(print(program), &launch_toml(program))
}

/// The same of a text and its launch description.
pub fn of_text(text: String, launch: &str) -> Result<Case, Failure> {
    let (module, diagnostics) = Module::parse("fuzz.ptx", &text);
    if let Some(first) = diagnostics.first() {
        return Err(Failure::Diagnostics(first.one_line(&module)));
    }
    if module.print().ok().as_deref() != Some(&text) {
        return Err(Failure::Print);
    }
    let canonical = canonical_text(&module);
    let (again, diagnostics) = Module::parse("canonical.ptx", &canonical);
    if !diagnostics.is_empty() || canonical_text(&again) != canonical {
        return Err(Failure::Canonical);
    }
    if let Err(diagnostics) = warpwright_ptx::verify::verify(&module) {
        let first = diagnostics
            .first()
            .map(|d| d.one_line(&module))
            .unwrap_or_default();
        return Err(Failure::Verify(first));
    }
    let launch = LaunchFile::parse(launch, "fuzz.toml")
        .and_then(|file| file.resolve("small", &[]))
        .map_err(|e| Failure::Launch(e.to_string()))?;
    let inputs = launch
        .buffers()
        .map(|b| b.materialize(&no_files))
        .collect::<Result<_, _>>();
    let inputs = inputs.map_err(|e| Failure::Launch(e.to_string()))?;
    Ok(Case {
        text,
        module,
        launch,
        inputs,
    })
}

/// One run in the emulator.
pub fn emulate(case: &Case, options: &Options) -> Result<Results, Failure> {
    emulate_module(&case.module, &case.launch, &case.inputs, options)
}

/// The module with a barrier of the block in the place of one of the cluster, which the emulator does not know: without
/// clusters they are the same where a thread waits as soon as it has arrived.
fn of_one_block(module: &Module) -> Option<Module> {
    let text = module
        .source
        .replace("barrier.cluster.arrive;\n", "bar.sync 15;\n");
    let text = text.replace("barrier.cluster.wait;\n", "\n");
    (*text != *module.source).then(|| Module::parse("alone.ptx", &text).0)
}

/// One run of any version of a kernel.
pub fn emulate_module(
    module: &Module,
    launch: &Launch,
    inputs: &[Vec<u8>],
    options: &Options,
) -> Result<Results, Failure> {
    let alone = of_one_block(module);
    let module = alone.as_ref().unwrap_or(module);
    let program =
        Emulator::new(module, &launch.kernel).map_err(|e| Failure::Emulator(e.to_string()))?;
    match program.run(launch, inputs.to_vec(), options) {
        Ok(Outcome::Finished(results)) => Ok(results),
        Ok(Outcome::Faulted(fault)) => Err(Failure::Fault(fault.to_string())),
        Err(e) => Err(Failure::Emulator(e.to_string())),
    }
}

/// The emulator at its strictest: no read of what was never written, no race in shared memory.
pub fn strict() -> Options {
    Options {
        uninitialised: true,
        races: true,
        ..Options::default()
    }
}

/// The options with a budget for versions of a kernel that left these results: far more than a right one takes.
pub fn no_longer(results: &Results, options: Options) -> Options {
    Options {
        budget: results.statistics.warp_instructions.saturating_mul(64) + (1 << 16),
        ..options
    }
}

/// Everything that must hold on a machine without a GPU.
pub fn check(program: &Program) -> Result<(), Failure> {
    let case = prepare(program)?;
    let first = emulate(&case, &strict())?;
    let second = emulate(
        &case,
        &Options {
            sequential: true,
            ..Options::default()
        },
    )?;
    if first.buffers != second.buffers {
        return Err(Failure::Determinism);
    }
    Ok(())
}

/// A smaller program for which `same` holds: one of 400, found within a fraction of a minute.
pub fn reduced(program: &Program, same: impl Fn(&Program) -> bool) -> Program {
    let until = Instant::now() + REDUCING;
    reduce(program, 400, |p| Instant::now() < until && same(p))
}

/// Shrinks a failing program and shows it as a test file: the failure, the launch and the PTX.
pub fn report(program: &Program, failure: &Failure) -> String {
    let same = |p: &Program| {
        check(p).is_err_and(|f| std::mem::discriminant(&f) == std::mem::discriminant(failure))
    };
    let small = reduced(program, same);
    in_comments(&failure.to_string(), &launch_toml(&small)) + &print(&small)
}

/// The head of a test file: what failed, and the launch.
pub fn in_comments(about: &str, launch: &str) -> String {
    let about = about.lines().map(|line| format!("// {line}\n"));
    let launch = launch.lines().map(|line| format!("//   {line}\n"));
    about.chain(["// launch:\n".into()]).chain(launch).collect()
}
