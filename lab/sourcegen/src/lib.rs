//! Runs of random kernels in CUDA C against what is made of them, many in one call of nvcc, in the PTX emulator.
//!
//! What kernels are generated, what is made of them and how it is compared says a [`Subject`]; here is the rest.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Instant;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use warpwright_ptx::Module;
use warpwright_toolkit::{FindOptions, Nvcc, NvccJob, ToolError, Toolkit};

/// What came of a run. All counters add up over batches.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// Kernels that were generated.
    pub kernels: u64,
    /// Kernels that are not taken, by the code or the text of the message.
    pub refused: BTreeMap<String, u64>,
    /// Versions that were compared, by kind.
    pub versions: BTreeMap<String, u64>,
    /// Comparisons: a version at a size.
    pub comparisons: u64,
    /// Kernels whose original could not be run at any size.
    pub idle: u64,
    /// Versions that compute something else.
    pub differences: u64,
    /// Versions that race in shared memory, leave their arrays, or fault otherwise; originals that leave theirs.
    pub faults: u64,
    /// Versions that cannot be compiled or put in the original's place.
    pub broken: u64,
}

impl Counters {
    /// Adds another run.
    pub fn add(&mut self, other: &Counters) {
        let Counters {
            kernels,
            refused,
            versions,
            comparisons,
            idle,
            differences,
            faults,
            broken,
        } = other;
        self.kernels += kernels;
        self.comparisons += comparisons;
        self.idle += idle;
        self.differences += differences;
        self.faults += faults;
        self.broken += broken;
        for (name, count) in refused {
            *self.refused.entry(name.clone()).or_default() += count;
        }
        for (name, count) in versions {
            *self.versions.entry(name.clone()).or_default() += count;
        }
    }

    /// Anything wrong?
    pub fn wrong(&self) -> u64 {
        self.differences + self.faults + self.broken
    }
}

/// Something that is wrong.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The kernel, and its launches if they stand apart.
    pub text: String,
    /// The kind of version and its choices.
    pub version: String,
    /// What is wrong.
    pub what: String,
}

/// A random kernel with its versions.
pub trait Subject: Sized + Sync {
    /// The kernel of a number, and versions of it; none where it is refused, which is counted.
    ///
    /// # Errors
    /// What is wrong with it before anything runs.
    fn generate(seed: u64, number: u64, counters: &mut Counters) -> Result<Option<Self>, Finding>;

    /// All kernels of a batch in one text.
    fn batch_text(batch: &[Self]) -> String;

    /// The batch's PTX as it is to be run.
    fn prepared(_batch: &[Self], ptx: String) -> String {
        ptx
    }

    /// Compares every version with the original.
    fn compare(&self, module: &Module) -> (Counters, Vec<Finding>);

    /// The original leaves the arrays that a launch gives it. Code that was not optimized reads what nobody uses.
    fn beyond(&self, _module: &Module) -> Option<Finding> {
        None
    }
}

/// The kernels of some numbers, but for those that are refused.
pub fn subjects<S: Subject>(
    seed: u64,
    numbers: Range<u64>,
    counters: &mut Counters,
) -> (Vec<S>, Vec<Finding>) {
    let (mut found, mut findings) = (Vec::new(), Vec::new());
    for number in numbers {
        match S::generate(seed, number, counters) {
            Ok(subject) => found.extend(subject),
            Err(finding) => findings.push(finding),
        }
    }
    (found, findings)
}

/// A text compiled, without fusing multiplications and additions: nvcc may choose other pairs in other texts.
/// `level` is that of the optimizer of nvcc's device compiler, which takes most of a run's time.
///
/// # Errors
/// nvcc's refusal.
pub fn ptx_of(text: &str, nvcc: &Nvcc<'_>, level: Option<u8>) -> Result<String, ToolError> {
    let mut job = NvccJob::new(Path::new(""), "sm_90");
    job.lineinfo = false;
    job.extra = vec!["-fmad=false".into()];
    if let Some(level) = level {
        job.extra
            .extend(["-Xcicc".into(), format!("-O{level}").into()]);
    }
    Ok(nvcc.text_to_ptx(text, &job)?.ptx)
}

/// A batch compiled ([`ptx_of`]), as it is to be run.
///
/// # Errors
/// nvcc's refusal.
pub fn compiled<S: Subject>(
    batch: &[S],
    nvcc: &Nvcc<'_>,
    level: Option<u8>,
) -> Result<Module, ToolError> {
    let ptx = ptx_of(&S::batch_text(batch), nvcc, level)?;
    Ok(Module::parse("batch", &S::prepared(batch, ptx)).0)
}

/// Compares every version of a batch with its original.
pub fn compare_all<S: Subject>(batch: &[S], module: &Module) -> (Counters, Vec<Finding>) {
    let each: Vec<_> = batch.par_iter().map(|s| s.compare(module)).collect();
    let (mut counters, mut findings) = (Counters::default(), Vec::new());
    for (more, found) in each {
        counters.add(&more);
        findings.extend(found);
    }
    (counters, findings)
}

/// The originals of a batch that leave their arrays.
pub fn all_beyond<S: Subject>(batch: &[S], module: &Module) -> Vec<Finding> {
    batch.par_iter().filter_map(|s| s.beyond(module)).collect()
}

/// The command `run`.
#[derive(Debug, clap::Args)]
pub struct Run {
    #[arg(long, default_value_t = 100)]
    count: u64,
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The first number
    #[arg(long, default_value_t = 0)]
    from: u64,
    /// Kernels in a call of nvcc
    #[arg(long, default_value_t = 24)]
    batch: u64,
    /// Level of the optimizer of nvcc's device compiler: 1 takes three quarters of its time, 0 two fifths
    #[arg(long)]
    level: Option<u8>,
    /// The counters so far, after every batch
    #[arg(long)]
    json: Option<PathBuf>,
    /// Kernels that fail
    #[arg(long)]
    failures: Option<PathBuf>,
}

impl Run {
    /// Generates, compiles and compares batch after batch.
    ///
    /// # Errors
    /// A missing toolkit, a file that cannot be written, or wrong versions.
    pub fn run<S: Subject>(&self) -> Result<(), String> {
        let toolkit = Toolkit::find(&FindOptions::default()).map_err(|e| e.to_string())?;
        let nvcc = toolkit.nvcc().map_err(|e| e.to_string())?;
        let mut all = Counters::default();
        let start = Instant::now();
        let end = self.from + self.count;
        let mut at = self.from;
        while at < end {
            let next = (at + self.batch.max(1)).min(end);
            let mut counters = Counters::default();
            let (batch, mut findings) = subjects::<S>(self.seed, at..next, &mut counters);
            match compiled(&batch, &nvcc, self.level) {
                Ok(module) => {
                    let (more, wrong) = compare_all(&batch, &module);
                    counters.add(&more);
                    findings.extend(wrong);
                    if self.level != Some(0) {
                        let beyond = all_beyond(&batch, &module);
                        counters.faults += beyond.len() as u64;
                        findings.extend(beyond);
                    }
                }
                Err(e) => {
                    counters.broken += 1;
                    findings.push(Finding {
                        text: S::batch_text(&batch),
                        version: "batch".into(),
                        what: e.to_string(),
                    });
                }
            }
            self.keep(at, &findings)?;
            all.add(&counters);
            at = next;
            let text = serde_json::to_string_pretty(&all).map_err(|e| e.to_string())?;
            if let Some(path) = &self.json {
                std::fs::write(path, text + "\n").map_err(|e| e.to_string())?;
            }
            eprintln!(
                "{at} of {end} in {:.0} s, wrong: {}",
                start.elapsed().as_secs_f64(),
                all.wrong()
            );
        }
        println!(
            "{}",
            serde_json::to_string_pretty(&all).map_err(|e| e.to_string())?
        );
        match all.wrong() {
            0 => Ok(()),
            wrong => Err(format!("{wrong} versions are wrong")),
        }
    }

    /// Says what is wrong in the batch that begins at a number, and writes it.
    fn keep(&self, at: u64, findings: &[Finding]) -> Result<(), String> {
        for (number, finding) in findings.iter().enumerate() {
            eprintln!("{}: {}", finding.version, finding.what);
            if let Some(folder) = &self.failures {
                let path = folder.join(format!("{at}-{number}.cu"));
                let text = format!(
                    "// {}\n// {}\n{}",
                    finding.version,
                    finding.what.replace('\n', "\n// "),
                    finding.text
                );
                std::fs::create_dir_all(folder).map_err(|e| e.to_string())?;
                std::fs::write(path, text).map_err(|e| e.to_string())?;
            }
        }
        Ok(())
    }
}

/// The command `show`: a kernel and its versions.
#[derive(Debug, clap::Args)]
pub struct Show {
    number: u64,
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

impl Show {
    /// Prints them; `refused` where it is not taken.
    ///
    /// # Errors
    /// What is wrong with the kernel before anything runs.
    pub fn show<S: Subject>(&self, refused: &str) -> Result<(), String> {
        let found = S::generate(self.seed, self.number, &mut Counters::default());
        match found.map_err(|f| format!("{}\n{}", f.what, f.text))? {
            Some(subject) => print!("{}", S::batch_text(&[subject])),
            None => println!("{refused}"),
        }
        Ok(())
    }
}
