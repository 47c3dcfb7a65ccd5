//! ptxas under pressure: generated kernels, built in many ways, on a GPU.
//!
//! Goal: find where ptxas itself turns a kernel into a wrong one when it is short of registers: the ways of
//! [`WAYS`] are what this tool's candidates are made of (register limits, spilling to shared memory, blocks per
//! multiprocessor, usage levels) beside no optimization at all. The emulator is the judge: every way must leave
//! its bits, which the generator makes possible (no approximate instructions, every rounding written out, so
//! nothing may be fused).
//!
//! The same for what this tool makes of machine code ([`EDITS`]): other orders, other registers, control fields of our own, of
//! kernels of two generators. What a pass refuses or the checker does not prove is counted and never run.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::Serialize;
use warpwright_emu::Options;
use warpwright_fuzzgen::{Program, launch_toml, print, reduce};
use warpwright_gpu::{Process, WorkerCommand};
use warpwright_pass::{Artifact, Recipe, Scope};
use warpwright_target::{Gpu, lookup};
use warpwright_toolkit::{FindOptions, Ptxas, PtxasJob, Toolkit};

use crate::case::{self, Case};
use crate::hardware::on_device;
use crate::proved::{self, Applied};
use crate::traffic;

/// A way to build a kernel.
pub struct Way {
    /// Its name in results.
    pub name: &'static str,
    /// Options of ptxas.
    pub options: &'static [&'static str],
    /// What stands for the line `.reqntid …` ([`NTID`] is that line itself).
    pub directives: &'static str,
    /// What follows the opening brace.
    pub pragma: &'static str,
}

/// What edits are made for: any GPU of sm_90 will do.
const EDITED_FOR: &str = "h200";

/// In [`Way::directives`]: the kernel's `.reqntid` line.
const NTID: &str = "NTID";

const SHARED_SPILLS: &str = ".pragma \"enable_smem_spilling\";";

/// The first version of PTX that knows [`SHARED_SPILLS`].
const PRAGMA_VERSION: &str = ".version 8.7";

const fn way(
    name: &'static str,
    options: &'static [&'static str],
    directives: &'static str,
    pragma: &'static str,
) -> Way {
    Way {
        name,
        options,
        directives,
        pragma,
    }
}

/// The ways.
pub const WAYS: [Way; 16] = [
    way("O0", &["-O0"], NTID, ""),
    way("O1", &["-O1"], NTID, ""),
    way("O2", &["-O2"], NTID, ""),
    way("O3", &["-O3"], NTID, ""),
    way("O0-maxrregcount-24", &["-O0", "-maxrregcount=24"], "", ""),
    way("O3-maxrregcount-24", &["-O3", "-maxrregcount=24"], "", ""),
    way("O3-maxrregcount-32", &["-O3", "-maxrregcount=32"], "", ""),
    way("O3-maxnreg-32", &["-O3"], "NTID\n.maxnreg 32", ""),
    way("O3-maxnreg-48", &["-O3"], "NTID\n.maxnreg 48", ""),
    way("O3-minnctapersm-32", &["-O3"], "NTID\n.minnctapersm 32", ""),
    way("O3-minnctapersm-16", &["-O3"], "NTID\n.minnctapersm 16", ""),
    way(
        "O3-shared-spills-24",
        &["-O3"],
        "NTID\n.maxnreg 24",
        SHARED_SPILLS,
    ),
    way(
        "O3-shared-spills-40",
        &["-O3"],
        "NTID\n.maxnreg 40",
        SHARED_SPILLS,
    ),
    way("level-0", &["--register-usage-level=0"], NTID, ""),
    way("level-10", &["--register-usage-level=10"], NTID, ""),
    way(
        "O2-maxrregcount-24-blocks-kept",
        &["-O2", "-maxrregcount=24", "--dont-merge-basicblocks"],
        "",
        "",
    ),
];

/// What this tool makes of the machine code of a way.
pub struct Edit {
    /// The way's name.
    pub of: &'static str,
    /// The passes.
    pub recipe: &'static str,
}

const fn edit(of: &'static str, recipe: &'static str) -> Edit {
    Edit { of, recipe }
}

/// The edits.
pub const EDITS: [Edit; 20] = [
    edit("O3", "schedule(by=none, keep=nothing)"),
    edit("O3", "schedule(by=height, waits=alone, margin=0)"),
    edit(
        "O3",
        "schedule(by=place, waits=alone, keep=nothing, margin=0)",
    ),
    edit("O3", "schedule(by=height, waits=alone, margin=0, seed=1)"),
    edit("O3", "schedule(by=height, waits=alone, margin=0, seed=2)"),
    edit("O3", "compact"),
    edit("O3", "demote(registers=auto)"),
    edit("O3", "demote(registers=24)"),
    edit("O3", "demote(registers=20, by=loops, hoist=off, waits=off)"),
    edit(
        "O3",
        "demote(registers=28); schedule(by=height, waits=alone, margin=0)",
    ),
    edit("O3", "schedule(registers=28)"),
    edit(
        "O3",
        "schedule(registers=24, miss=near); demote(registers=24, again=all)",
    ),
    edit("O3", "dead-instructions"),
    edit(
        "O3-maxrregcount-32",
        "schedule(by=height, waits=alone, keep=scoreboards, margin=0)",
    ),
    edit(
        "O3-maxrregcount-32",
        "compact; schedule(by=place, waits=alone, margin=0)",
    ),
    edit("O3-maxrregcount-24", "spill-to-shared"),
    edit(
        "O3-maxrregcount-32",
        "spill-to-shared; demote(registers=28)",
    ),
    edit(
        "O3-maxrregcount-32",
        "spill-to-shared; demote(registers=24, by=loops); schedule(by=height, waits=alone, margin=0)",
    ),
    edit(
        "O3-maxrregcount-24",
        "schedule(by=height, waits=alone, keep=nothing, margin=0)",
    ),
    edit("O3-maxrregcount-24", "schedule(by=none, keep=nothing)"),
];

impl Edit {
    /// Its name in results.
    pub fn name(&self) -> String {
        format!("{}: {}", self.of, self.recipe)
    }

    /// The new code, where the checker proves it.
    fn build(&self, cubin: &[u8], scope: &Scope<'_>) -> Result<Built, String> {
        let recipe: Recipe = (self.recipe.parse()).map_err(|e| format!("{e}"))?;
        let cubin = Artifact::cubin(cubin.to_vec()).map_err(|e| e.render())?;
        match proved::apply(&recipe, &cubin, scope) {
            Ok(Applied::Changed(new)) => Ok(Built {
                cubin: new.artifact.bytes().to_vec(),
                spills: false,
            }),
            Ok(Applied::Unchanged) => Err("nothing changed".to_owned()),
            Ok(Applied::Refused(why)) => Err(why.to_string()),
            Err(why) => Err(why.to_string()),
        }
    }
}

impl Way {
    /// The kernel's text in this way.
    pub fn text(&self, text: &str) -> String {
        let lines = text.lines().map(|line| {
            if line.starts_with(".reqntid") {
                self.directives.replace(NTID, line)
            } else if line == "{" && !self.pragma.is_empty() {
                format!("{{\n{}", self.pragma)
            } else if line.starts_with(".version") && !self.pragma.is_empty() {
                PRAGMA_VERSION.to_owned()
            } else {
                line.to_owned()
            }
        });
        lines.map(|line| line + "\n").collect()
    }

    fn build(&self, ptxas: &Ptxas<'_>, text: &str, gpu: &str) -> Result<Built, String> {
        let text = self.text(text);
        let mut job = PtxasJob::new(&text, gpu);
        job.extra = self.options.iter().map(Into::into).collect();
        job.timeout = Duration::from_secs(60);
        let build = ptxas.run(&job).map_err(|e| e.to_string())?;
        let spills = (build.resources.functions.iter()).any(|f| f.spill_stores > 0);
        Ok(Built {
            cubin: build.cubin,
            spills,
        })
    }
}

struct Built {
    cubin: Vec<u8>,
    spills: bool,
}

/// What one way came to, over all kernels.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Count {
    /// Kernels that ptxas built.
    pub built: u64,
    /// Of these, with spilled registers.
    pub spilled: u64,
    /// Kernels that it refused, by the first line of what it said.
    pub refused: BTreeMap<String, u64>,
    /// Of those built, the same bits as in the emulator.
    pub identical: u64,
    /// Other bits, or a fault.
    pub different: u64,
}

/// A kernel that some ways get wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The generator's seed.
    pub seed: u64,
    /// The ways, each with its first difference.
    pub ways: BTreeMap<String, String>,
}

/// The result file.
#[derive(Debug, Serialize)]
pub struct Report {
    /// `warpwright.ptxas-pressure/1`
    pub schema: &'static str,
    /// Device name.
    pub gpu: String,
    /// Driver version.
    pub driver: String,
    /// Version of ptxas.
    pub ptxas: String,
    /// When, UTC.
    pub date: String,
    /// First seed.
    pub from: u64,
    /// Kernels that were built and compared: the seeds from `from` on.
    pub kernels: u64,
    /// Kernels that the emulator could not run, which says nothing about ptxas: must be 0.
    pub unusable: u64,
    /// By way, or by edit.
    pub ways: BTreeMap<String, Count>,
    /// Kernels that differ.
    pub findings: Vec<Finding>,
}

/// What to run.
#[derive(Debug, Clone)]
pub struct Plan {
    /// First seed.
    pub from: u64,
    /// Kernels at most.
    pub count: u64,
    /// No kernel is begun after this.
    pub seconds: u64,
    /// Builds at a time.
    pub jobs: usize,
    /// Processes that use the GPU.
    pub workers: usize,
    /// Only what the edits start from, and the edits; every other kernel is one of [`traffic`].
    pub edits: bool,
    /// Take what [`build_all`] wrote to this folder.
    pub built: Option<PathBuf>,
}

/// What builds.
enum Builder<'t> {
    Ptxas(Ptxas<'t>),
    Folder(&'t Path),
}

impl Builder<'_> {
    fn version(&self) -> Result<String, String> {
        match self {
            Builder::Ptxas(ptxas) => {
                let version = ptxas.tool().version().map_err(|e| e.to_string())?;
                Ok(version.to_string())
            }
            Builder::Folder(folder) => {
                let file = folder.join(VERSION);
                std::fs::read_to_string(&file).map_err(|e| format!("{}: {e}", file.display()))
            }
        }
    }

    /// Is there anything of the kernel of a seed?
    fn has(&self, seed: u64) -> bool {
        match self {
            Builder::Ptxas(_) => true,
            Builder::Folder(folder) => WAYS
                .iter()
                .any(|way| folder.join(file_name(seed, way)).is_file()),
        }
    }

    /// All ways, or those that were built.
    fn build(
        &self,
        seed: u64,
        text: &str,
        arch: &str,
        edits: bool,
    ) -> Vec<(String, Result<Built, String>)> {
        let ways = WAYS
            .iter()
            .filter(|way| !edits || EDITS.iter().any(|edit| edit.of == way.name));
        match self {
            Builder::Ptxas(ptxas) => ways
                .map(|way| (way.name.to_owned(), way.build(ptxas, text, arch)))
                .collect(),
            Builder::Folder(folder) => ways
                .filter_map(|way| {
                    let file = folder.join(file_name(seed, way));
                    let cubin = std::fs::read(file).ok()?;
                    let built = Built {
                        spills: spills(&cubin),
                        cubin,
                    };
                    Some((way.name.to_owned(), Ok(built)))
                })
                .collect(),
        }
    }
}

/// The file that names the ptxas of a folder.
const VERSION: &str = "version";

fn file_name(seed: u64, way: &Way) -> String {
    format!("{seed}-{}.cubin", way.name)
}

/// Has its code accesses to local memory beyond those of the program's own array?
fn spills(cubin: &[u8]) -> bool {
    let cubin = warpwright_sass::Cubin::parse(cubin);
    cubin.is_ok_and(|cubin| cubin.kernels.iter().any(|kernel| kernel.frame_bytes > 32))
}

/// Builds kernels in all ways, or in those that are named, and writes them to a folder. How many there are.
///
/// # Errors
/// There is no toolkit, or the folder cannot be written to.
pub fn build_all(
    seeds: Range<u64>,
    ways: &[String],
    arch: &str,
    folder: &Path,
) -> Result<u64, String> {
    let toolkit = Toolkit::find(&FindOptions::default()).map_err(|e| e.to_string())?;
    let ptxas = toolkit.ptxas().map_err(|e| e.to_string())?;
    let version = ptxas.tool().version().map_err(|e| e.to_string())?;
    let write = |name: &str, bytes: &[u8]| {
        let file = folder.join(name);
        std::fs::write(&file, bytes).map_err(|e| format!("{}: {e}", file.display()))
    };
    std::fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    write(VERSION, version.to_string().as_bytes())?;
    let mut count = 0;
    for seed in seeds {
        let text = print(&case::program(seed, false));
        for way in WAYS.iter() {
            let is_wanted = ways.is_empty() || ways.iter().any(|name| name == way.name);
            if !is_wanted {
                continue;
            }
            if let Ok(built) = way.build(&ptxas, &text, arch) {
                write(&file_name(seed, way), &built.cubin)?;
                count += 1;
            }
        }
    }
    Ok(count)
}

struct Ready {
    seed: u64,
    case: Case,
    expected: Vec<Vec<u8>>,
    built: Vec<(String, Result<Built, String>)>,
}

/// Builds and compares the kernels of a plan.
///
/// # Errors
/// There is no toolkit or no GPU.
pub fn run(plan: &Plan) -> Result<Report, String> {
    let toolkit = match plan.built {
        Some(_) => None,
        None => Some(Toolkit::find(&FindOptions::default()).map_err(|e| e.to_string())?),
    };
    let builder = match (&plan.built, &toolkit) {
        (Some(folder), _) => Builder::Folder(folder),
        (None, Some(toolkit)) => Builder::Ptxas(toolkit.ptxas().map_err(|e| e.to_string())?),
        (None, None) => return Err("nothing builds".to_owned()),
    };
    let version = builder.version()?;
    let device = first_device()?;
    let edits = match plan.edits {
        true => Some(lookup(EDITED_FOR).map_err(|e| e.to_string())?),
        false => None,
    };
    let report = Mutex::new(Report {
        schema: "warpwright.ptxas-pressure/1",
        gpu: device.name,
        driver: device.driver.unwrap_or_default(),
        ptxas: version,
        date: warpwright_gpu::utc_now(),
        from: plan.from,
        kernels: 0,
        unusable: 0,
        ways: BTreeMap::new(),
        findings: Vec::new(),
    });
    let next = AtomicU64::new(plan.from);
    let until = Instant::now() + Duration::from_secs(plan.seconds);
    let (sender, receiver) = sync_channel::<Ready>(2 * plan.workers);
    let receiver = Mutex::new(receiver);
    std::thread::scope(|scope| -> Result<(), String> {
        for _ in 0..plan.workers {
            let command = WorkerCommand::this_program(0).map_err(|e| e.to_string())?;
            let (receiver, report) = (&receiver, &report);
            scope.spawn(move || compare_all(&mut Process::new(command), receiver, report));
        }
        for _ in 0..plan.jobs {
            let (sender, next, report) = (sender.clone(), &next, &report);
            let (builder, arch, edits) = (&builder, &device.arch, edits.as_ref());
            scope.spawn(move || {
                while Instant::now() < until {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= plan.from + plan.count {
                        break;
                    }
                    if !builder.has(seed) {
                        continue;
                    }
                    match ready(seed, builder, arch, edits) {
                        Some(ready) => {
                            let _ = sender.send(ready);
                        }
                        None => lock(report).unusable += 1,
                    }
                }
            });
        }
        drop(sender);
        Ok(())
    })?;
    let mut report = report.into_inner().unwrap_or_else(PoisonError::into_inner);
    report.findings.sort_by_key(|finding| finding.seed);
    Ok(report)
}

fn first_device() -> Result<warpwright_gpu::DeviceInfo, String> {
    let devices = warpwright_gpu::devices().map_err(|e| e.to_string())?;
    devices.into_iter().next().ok_or("there is no GPU".into())
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn ready(seed: u64, builder: &Builder<'_>, arch: &str, edits: Option<&Gpu>) -> Option<Ready> {
    let case = match edits {
        Some(_) if seed % 2 == 1 => case::of_text(traffic::kernel(seed), &traffic::launch_toml()),
        Some(_) => case::prepare(&case::program(seed / 2, false)),
        None => case::prepare(&case::program(seed, false)),
    };
    let case = case.ok()?;
    let expected = case::emulate(&case, &Options::default()).ok()?.buffers;
    let mut built = builder.build(seed, &case.text, arch, edits.is_some());
    if let Some(&gpu) = edits {
        let scope = Scope {
            gpu: Some(gpu),
            launch: Some(&case.launch),
            ..Scope::default()
        };
        for edit in &EDITS {
            let base = built.iter().find(|(name, _)| name == edit.of);
            if let Some((_, Ok(base))) = base {
                let new = edit.build(&base.cubin, &scope);
                built.push((edit.name(), new));
            }
        }
    }
    Some(Ready {
        seed,
        built,
        case,
        expected,
    })
}

/// One worker: takes kernels until there are no more.
fn compare_all(process: &mut Process, receiver: &Mutex<Receiver<Ready>>, report: &Mutex<Report>) {
    loop {
        let Ok(ready) = lock(receiver).recv() else {
            return;
        };
        let mut ways: BTreeMap<String, String> = BTreeMap::new();
        let mut counts: Vec<(String, Count)> = Vec::new();
        for (name, built) in ready.built {
            let mut count = Count::default();
            let of = EDITS
                .iter()
                .find(|edit| edit.name() == name)
                .map(|edit| edit.of);
            if of.is_some_and(|of| ways.contains_key(of)) {
                // ptxas got it wrong before us.
                continue;
            }
            match built {
                Err(why) => {
                    let first = why.lines().next().unwrap_or_default().to_owned();
                    count.refused.insert(first, 1);
                }
                Ok(built) => {
                    count.built = 1;
                    count.spilled = u64::from(built.spills);
                    match difference(process, &ready.case, &ready.expected, built.cubin) {
                        None => count.identical = 1,
                        Some(what) => {
                            count.different = 1;
                            ways.insert(name.clone(), what);
                        }
                    }
                }
            }
            counts.push((name, count));
        }
        let mut report = lock(report);
        report.kernels += 1;
        for (name, count) in counts {
            let sum = report.ways.entry(name).or_default();
            sum.built += count.built;
            sum.spilled += count.spilled;
            sum.identical += count.identical;
            sum.different += count.different;
            for (why, times) in count.refused {
                *sum.refused.entry(why).or_insert(0) += times;
            }
        }
        if !ways.is_empty() {
            let seed = ready.seed;
            report.findings.push(Finding { seed, ways });
        }
    }
}

/// The first element that the device computes otherwise, or why it did not run.
fn difference(
    process: &mut Process,
    case: &Case,
    expected: &[Vec<u8>],
    cubin: Vec<u8>,
) -> Option<String> {
    let found = match on_device(process, &case.launch, cubin) {
        Ok(found) => found,
        Err(why) => return Some(why),
    };
    for ((buffer, expected), found) in case.launch.buffers().zip(expected).zip(&found) {
        let Some(found) = found else { continue };
        let size = buffer.ty.size();
        let pairs = expected
            .chunks_exact(size)
            .zip(found.chunks_exact(size))
            .enumerate();
        if let Some((i, (a, b))) = pairs.into_iter().find(|(_, (a, b))| a != b) {
            let (a, b) = (buffer.ty.read(a), buffer.ty.read(b));
            return Some(format!(
                "{}[{i}]: {a:#x} expected, {b:#x} found",
                buffer.name
            ));
        }
    }
    None
}

/// The smallest kernel found that `way` gets wrong and the emulator does not, as a file with the launch in
/// comments; `None` if the two agree.
///
/// # Errors
/// There is no toolkit, no GPU, or no such way.
pub fn shrink(seed: u64, way: &str, budget: usize) -> Result<Option<String>, String> {
    let way = (WAYS.iter().find(|w| w.name == way)).ok_or_else(|| format!("no way `{way}`"))?;
    let toolkit = Toolkit::find(&FindOptions::default()).map_err(|e| e.to_string())?;
    let ptxas = toolkit.ptxas().map_err(|e| e.to_string())?;
    let version = ptxas.tool().version().map_err(|e| e.to_string())?;
    let device = first_device()?;
    let command = WorkerCommand::this_program(0).map_err(|e| e.to_string())?;
    let mut process = Process::new(command);
    let mut wrong = |program: &Program| {
        let case = case::prepare(program).ok()?;
        let expected = case::emulate(&case, &Options::default()).ok()?.buffers;
        let built = way.build(&ptxas, &case.text, &device.arch).ok()?;
        difference(&mut process, &case, &expected, built.cubin)
    };
    let program = case::program(seed, false);
    if wrong(&program).is_none() {
        return Ok(None);
    }
    let small = reduce(&program, budget, |program| wrong(program).is_some());
    let what = wrong(&small).unwrap_or_default();
    let about = format!(
        "ptxas {version} for {}, {}: {what}\nptxas {}",
        device.arch,
        way.name,
        way.options.join(" ")
    );
    let text = way.text(&print(&small));
    Ok(Some(
        case::in_comments(&about, &launch_toml(&small)) + &text,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_is_a_valid_kernel_with_its_directives() {
        let text = print(&case::program(3, false));
        for way in &WAYS {
            let new = way.text(&text);
            let (_, diagnostics) = warpwright_ptx::Module::parse("way.ptx", &new);
            assert!(
                !diagnostics.iter().any(warpwright_ptx::Diagnostic::is_error),
                "{}",
                way.name
            );
            assert_eq!(
                new.contains(".reqntid"),
                way.directives.contains(NTID),
                "{}",
                way.name
            );
            assert_eq!(
                new.contains("enable_smem_spilling"),
                way.pragma == SHARED_SPILLS,
                "{}",
                way.name
            );
        }
    }
}
