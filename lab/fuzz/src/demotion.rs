//! How far register demotion reaches: every example's default build on an H200, demoted to each step of the occupancy
//! staircase that fewer registers alone would give.
//!
//! A step counts as reached when the executor takes the result (so the hazard checker is silent), the checker proves
//! registers, memory and control fields, and the occupancy calculator gives the step's blocks for the registers and the
//! shared memory that the new cubin states. What is refused says why by the type of the refusal. Kernels whose default
//! build spills are left out: here nothing lies in local memory.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use warpwright_check::{CubinOptions, Verdict, answer};
use warpwright_pass::options::Argument;
use warpwright_pass::passes::{Again, Demote, Target as Goal};
use warpwright_pass::{Artifact, Executor, Level, Recipe, Refusal, RunError, Scope, Target};
use warpwright_sass::{Cubin, Elf, Operation};
use warpwright_target::{Gpu, Resources, lookup, occupancy, staircase};
use warpwright_toolkit::Toolkit;

use crate::suite::{Example, GPU, examples};

/// The schema of a result.
pub const SCHEMA: &str = "warpwright.demotion-reach/1";

/// What came of all examples.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// [`SCHEMA`].
    pub schema: String,
    /// The GPU.
    pub gpu: String,
    /// What compiled and assembled.
    pub toolkit: String,
    /// What is computed again, as [`Demote`] has it.
    #[serde(default)]
    pub again: String,
    /// Sums.
    pub totals: Totals,
    /// Kernel by kernel.
    pub kernels: BTreeMap<String, Kernel>,
    /// Kernels that could not be built, and why.
    pub unusable: BTreeMap<String, String>,
}

/// Sums over the kernels.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    /// Kernels.
    pub kernels: usize,
    /// Kernels whose default build spills.
    pub spill: usize,
    /// Others in which fewer registers would let more blocks reside.
    pub limited: usize,
    /// Of these, such that reach the next step.
    pub next: usize,
    /// Of these, such that reach any step.
    pub any: usize,
    /// All their steps, and those that are reached.
    pub steps: [usize; 2],
    /// Why next steps are not reached, by the type of the reason.
    pub missed: BTreeMap<String, usize>,
}

/// One example's default build.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Kernel {
    /// Threads per block.
    pub threads: u32,
    /// Registers per thread.
    pub registers: u32,
    /// Resident blocks.
    pub blocks: u32,
    /// Bytes of the stack frame.
    pub frame: u32,
    /// Bytes of shared memory per block, static and dynamic.
    pub shared: [u32; 2],
    /// Steps above it, the next one first.
    pub steps: Vec<Step>,
    /// What `demote(auto)` comes to: registers and blocks, if the checker proves it.
    pub auto: Option<[u32; 2]>,
}

/// One step of the staircase.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// Registers per thread at most.
    pub registers: u32,
    /// Blocks that would reside.
    pub blocks: u32,
    /// What came of it.
    pub outcome: Outcome,
}

/// What came of a step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// It is there, proved and without hazards.
    Reached(Build),
    /// It is written, but the checker does not prove it or the blocks do not come.
    Open(Build, String),
    /// It is not written.
    Refused {
        /// The type of the refusal.
        kind: String,
        /// In words.
        why: String,
    },
}

/// A demoted build.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Build {
    /// Registers per thread.
    pub registers: u32,
    /// Resident blocks.
    pub blocks: u32,
    /// Values that were demoted.
    pub values: u64,
    /// Bytes of shared memory per thread for them.
    pub bytes: u32,
    /// Loads and stores that were added, and other instructions.
    pub added: [i64; 3],
    /// Instructions that were added, weighted by loops.
    pub cost: f64,
}

/// How much is done.
#[derive(Debug, Clone, Copy)]
pub struct Plan<'a> {
    /// So many steps of each kernel at most.
    pub steps: usize,
    /// What is computed again.
    pub again: Again,
    /// Where default builds and demoted ones go, as KERNEL.cubin and KERNEL-REGISTERS.cubin.
    pub keep: Option<&'a Path>,
}

/// Every example in a folder, or those of these names.
///
/// # Errors
/// There is no such folder, or no toolkit.
pub fn run(
    folder: &Path,
    names: &[String],
    plan: Plan<'_>,
    toolkit: &Toolkit,
) -> Result<Report, String> {
    let gpu = lookup(GPU).map_err(|e| e.to_string())?;
    let version = toolkit.ptxas().map_err(|e| e.to_string())?;
    let version = version.tool().version().map_err(|e| e.to_string())?;
    let mut report = Report {
        schema: SCHEMA.to_owned(),
        gpu: GPU.to_owned(),
        toolkit: version.to_string(),
        again: plan.again.print().unwrap_or_default(),
        ..Report::default()
    };
    let examples: Vec<(String, PathBuf)> = examples(folder, names)?;
    let all: Vec<(String, Result<Kernel, String>)> = examples
        .into_par_iter()
        .map(|(name, folder)| {
            let start = std::time::Instant::now();
            let kernel = one((&folder, &name), plan, &gpu, toolkit);
            eprintln!("{name}: {:.1} s", start.elapsed().as_secs_f64());
            (name, kernel)
        })
        .collect();
    for (name, kernel) in all {
        match kernel {
            Ok(kernel) => {
                report.totals.add(&kernel);
                report.kernels.insert(name, kernel);
            }
            Err(why) => {
                report.unusable.insert(name, why);
            }
        }
    }
    Ok(report)
}

impl Totals {
    fn add(&mut self, kernel: &Kernel) {
        self.kernels += 1;
        if kernel.frame > 0 {
            self.spill += 1;
            return;
        }
        let Some(next) = kernel.steps.first() else {
            return;
        };
        self.limited += 1;
        self.next += usize::from(next.is_reached());
        let reached = kernel.steps.iter().filter(|step| step.is_reached()).count();
        self.any += usize::from(reached > 0);
        self.steps[0] += kernel.steps.len();
        self.steps[1] += reached;
        let why = match &next.outcome {
            Outcome::Reached(_) => return,
            Outcome::Open(_, why) => why.split([',', ':']).next().unwrap_or_default(),
            Outcome::Refused { kind, .. } => kind,
        };
        *self.missed.entry(why.to_owned()).or_default() += 1;
    }
}

impl Step {
    fn is_reached(&self) -> bool {
        matches!(self.outcome, Outcome::Reached(_))
    }
}

/// A build with the facts that count.
struct Facts {
    registers: u32,
    /// Static shared memory in bytes.
    shared: u32,
    frame: u32,
    loads: i64,
    stores: i64,
    instructions: i64,
}

impl Facts {
    fn new(artifact: &Artifact, name: &str, gpu: &Gpu) -> Result<Facts, String> {
        let cubin = Cubin::parse(artifact.bytes()).map_err(|e| e.to_string())?;
        let kernel = cubin.kernel(name).ok_or("no such kernel")?;
        let count = |wanted: Operation| {
            let those = kernel.code.iter().filter(|i| i.operation() == wanted);
            those.count() as i64
        };
        let reserved = gpu.arch.first_shared_address();
        Ok(Facts {
            registers: kernel.registers,
            shared: kernel.shared_bytes.saturating_sub(reserved),
            frame: kernel.frame_bytes,
            loads: count(Operation::LDS),
            stores: count(Operation::STS),
            instructions: kernel.code.len() as i64 - count(Operation::NOP),
        })
    }

    fn blocks(&self, gpu: &Gpu, (threads, dynamic): (u32, u32)) -> u32 {
        let resources = Resources::new(self.registers, threads)
            .static_smem(self.shared)
            .dynamic_smem(dynamic);
        occupancy(gpu, &resources).map_or(0, |found| found.blocks)
    }
}

/// A kernel that is to be demoted.
struct Subject<'a> {
    cubin: &'a Artifact,
    target: Target<'a>,
    name: &'a str,
    keep: Option<PathBuf>,
    again: Again,
    own: &'a Facts,
}

fn one(
    (folder, name): (&Path, &str),
    plan: Plan<'_>,
    gpu: &Gpu,
    toolkit: &Toolkit,
) -> Result<Kernel, String> {
    let example = Example::new(folder, name, "full", toolkit)?;
    let cubin = example.cubin(None, toolkit)?;
    let launch = &example.launch;
    let own = Facts::new(&cubin, &launch.kernel, gpu)?;
    let threads = launch.block.iter().product();
    let mut kernel = Kernel {
        threads,
        registers: own.registers,
        blocks: own.blocks(gpu, (threads, launch.dynamic_smem)),
        frame: own.frame,
        shared: [own.shared, launch.dynamic_smem],
        ..Kernel::default()
    };
    if own.frame > 0 {
        return Ok(kernel);
    }
    let scope = Scope {
        gpu: Some(*gpu),
        launch: Some(launch),
        ..Scope::default()
    };
    let setting = scope.setting(&cubin, &launch.kernel, gpu);
    let target = Target {
        kernel: Some(&launch.kernel),
        setting: setting.map_err(|e| e.to_string())?,
    };
    let subject = Subject {
        cubin: &cubin,
        target,
        name: &launch.kernel,
        keep: plan.keep.map(|folder| folder.join(name)),
        again: plan.again,
        own: &own,
    };
    subject.keep(&cubin, None)?;
    let stairs = staircase(gpu, threads, own.shared, launch.dynamic_smem);
    let stairs = stairs.map_err(|e| e.to_string())?;
    let above = stairs.iter().filter(|stair| stair.blocks > kernel.blocks);
    for stair in above.take(plan.steps) {
        kernel.steps.push(Step {
            registers: stair.regs,
            blocks: stair.blocks,
            outcome: subject.demoted(Goal::Registers(stair.regs), stair.blocks)?,
        });
    }
    if !kernel.steps.is_empty()
        && let Outcome::Reached(build) = subject.demoted(Goal::Auto, kernel.blocks + 1)?
    {
        kernel.auto = Some([build.registers, build.blocks]);
    }
    Ok(kernel)
}

impl Subject<'_> {
    fn keep(&self, cubin: &Artifact, registers: Option<u32>) -> Result<(), String> {
        let Some(path) = &self.keep else {
            return Ok(());
        };
        let mut name = path.clone().into_os_string();
        name.push(registers.map_or_else(String::new, |n| format!("-{n}")) + ".cubin");
        let written = std::fs::write(&name, cubin.bytes());
        written.map_err(|e| format!("{}: {e}", path.display()))
    }

    fn demoted(&self, registers: Goal, blocks: u32) -> Result<Outcome, String> {
        let recipe = Recipe::default().with(Demote {
            again: self.again,
            ..Demote::to(registers)
        });
        let mut executor = Executor::default();
        let run = match executor.run(self.cubin, &self.target, &recipe, Level::MachineCode) {
            Ok(run) => run,
            Err(error) => {
                let kind = match &error {
                    RunError::Refused { refusal, .. } => kind(refusal),
                    RunError::Hazard { .. } => "hazard",
                    _ => "error",
                };
                return Ok(Outcome::Refused {
                    kind: kind.to_owned(),
                    why: error.to_string(),
                });
            }
        };
        let (gpu, new) = (self.target.setting.gpu, run.unproved());
        let facts = Facts::new(new, self.name, gpu)?;
        self.keep(new, Some(facts.registers))?;
        let setting = &self.target.setting;
        let launch = (setting.block.threads(), setting.dynamic());
        let added = [
            facts.loads - self.own.loads,
            facts.stores - self.own.stores,
            facts.instructions - self.own.instructions,
        ];
        let build = Build {
            registers: facts.registers,
            blocks: facts.blocks(gpu, launch),
            values: run.steps.iter().map(|step| step.rewrites).sum(),
            bytes: (facts.shared - self.own.shared) / launch.0,
            added: [added[0], added[1], added[2] - added[0] - added[1]],
            cost: run.steps.iter().map(|step| step.cost).sum(),
        };
        if build.blocks < blocks {
            let why = format!("{} blocks reside", build.blocks);
            return Ok(Outcome::Open(build, why));
        }
        let elf = |artifact: &Artifact| Elf::parse(artifact.bytes()).map_err(|e| e.to_string());
        let options = CubinOptions {
            block: setting.block.stated(),
            dynamic_smem: setting.dynamic_smem,
        };
        let found = answer(&elf(self.cubin)?, &elf(new)?, self.name, &options);
        Ok(match found.verdict {
            Verdict::Proved => Outcome::Reached(build),
            other => Outcome::Open(build, other.to_string()),
        })
    }
}

/// The type of a refusal.
fn kind(refusal: &Refusal) -> &'static str {
    match refusal {
        Refusal::TooFewRegisters { .. } => "too-few-registers",
        Refusal::NoRoom { .. } => "no-room",
        Refusal::NoStair { .. } => "no-stair",
        Refusal::Obstacle { what, .. } | Refusal::InTheWay(what) => what,
        Refusal::Hazard(_) => "hazard-before",
        _ => "other",
    }
}

impl std::fmt::Display for Report {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (name, kernel) in &self.kernels {
            let Kernel {
                registers, blocks, ..
            } = kernel;
            let about = match (kernel.frame, &kernel.steps[..]) {
                (1.., _) => "its default build spills".to_owned(),
                (0, []) => "registers do not limit it".to_owned(),
                (0, steps) => format!("{} steps", steps.len()),
            };
            writeln!(f, "{name}: {registers} registers, {blocks} blocks: {about}")?;
            for step in &kernel.steps {
                write!(f, "    {} for {} blocks: ", step.registers, step.blocks)?;
                match &step.outcome {
                    Outcome::Reached(build) => writeln!(f, "reached, {build}")?,
                    Outcome::Open(build, why) => writeln!(f, "OPEN, {build}: {why}")?,
                    Outcome::Refused { why, .. } => writeln!(f, "refused: {why}")?,
                }
            }
        }
        for (name, why) in &self.unusable {
            writeln!(f, "{name}: {why}")?;
        }
        let Totals {
            kernels,
            spill,
            limited,
            next,
            any,
            steps: [steps, reached],
            missed,
        } = &self.totals;
        writeln!(
            f,
            "{kernels} kernels: {spill} spill, {limited} are limited by registers; {next} of these reach the next \
             step, {any} any; {reached} of {steps} steps; missed: {missed:?}"
        )
    }
}

impl std::fmt::Display for Build {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [loads, stores, others] = self.added;
        write!(
            f,
            "{} registers: {} values in {} bytes, {loads} loads, {stores} stores, {others} others",
            self.registers, self.values, self.bytes
        )
    }
}
