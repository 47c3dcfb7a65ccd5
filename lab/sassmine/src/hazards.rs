//! The distances between dependent instructions, mined from what ptxas writes; see
//! docs/sass.md.
//!
//! The kernels of a corpus are split in two, with all their builds. What one half shows must not call
//! anything in the other half a hazard; the table is then made of both. Every function is walked
//! once: what it shows is kept, not its code.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use warpwright_flow::Function;
use warpwright_sass::elf::Elf;
use warpwright_sass::function::{Calls, Code};
use warpwright_sass::hazards::{
    Cause, Dependence, Distances, Pair, Seen, Unchecked, Violation, control_faults, dependences,
};

use crate::Error;
use crate::code;

/// How many violations are shown.
const SHOWN: usize = 40;

/// What the functions of one architecture show, and how many cannot be checked, by reason.
#[derive(Default)]
struct Corpus {
    samples: Vec<Sample>,
    refused: BTreeMap<String, u64>,
}

/// What one function shows.
struct Sample {
    /// The file's name up to the first dot: what the cubin was made of.
    source: String,
    name: String,
    instructions: usize,
    /// The closest pairs that only their distance protects.
    closest: BTreeMap<Pair, Closest>,
    /// What is wrong whatever the distances are.
    wrong: Vec<String>,
}

/// The closest of the pairs of one kind in a function, with the text of that one.
struct Closest {
    cycles: u16,
    count: u64,
    text: String,
}

/// Mines the corpus, holds one half against the other, and writes the table.
pub fn run(corpus: &[PathBuf], output: Option<&Path>) -> Result<String, Error> {
    let corpus = Corpus::read(corpus)?;
    let kernels: BTreeSet<Kernel> = corpus.samples.iter().map(Sample::kernel).collect();
    let kernels = kernels.into_iter().enumerate();
    let half: BTreeMap<_, _> = kernels.map(|(i, kernel)| (kernel, i % 2)).collect();
    let part = |side: usize| {
        let samples = corpus.samples.iter();
        samples.filter(move |sample| half.get(&sample.kernel()) == Some(&side))
    };
    let mut summary = corpus.summary();
    let wrong: usize = corpus.samples.iter().map(Sample::show_wrong).sum();
    let _ = writeln!(summary, "{wrong} violations whatever the distances are");
    for side in [0, 1] {
        let distances = mine(part.clone()(side));
        let held = judge(part.clone()(1 - side), &distances);
        let pairs = distances.pairs().len();
        let _ = writeln!(
            summary,
            "{pairs} pairs of one half, held against the other: {held}"
        );
    }
    let distances = mine(corpus.samples.iter());
    let held = judge(corpus.samples.iter(), &distances);
    let pairs = distances.pairs().len();
    let _ = write!(summary, "{pairs} pairs of all: {held}");
    if let Some(output) = output {
        let text = table(&distances, corpus.samples.len());
        std::fs::write(output, text).map_err(|error| Error::File(output.to_owned(), error))?;
    }
    Ok(summary)
}

/// Source and name: the same kernel however it was built.
type Kernel<'a> = (&'a str, &'a str);

impl Corpus {
    /// Reads the files on all processors; the result is in the order of their names.
    fn read(paths: &[PathBuf]) -> Result<Corpus, Error> {
        let files = code::find_all(paths)?;
        let next = AtomicUsize::new(0);
        let work = || {
            let mut done = Vec::new();
            while let Some(path) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
                done.push((path, Corpus::of_file(path)?));
            }
            Ok(done)
        };
        let count = thread::available_parallelism().map_or(1, usize::from);
        let parts: Vec<Result<Vec<_>, Error>> = thread::scope(|scope| {
            let threads: Vec<_> = (0..count).map(|_| scope.spawn(work)).collect();
            let joined = threads.into_iter().map(|thread| thread.join());
            joined
                .map(|part| part.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
                .collect()
        });
        let mut done = Vec::new();
        for part in parts {
            done.extend(part?);
        }
        done.sort_by_key(|(path, _)| *path);
        let mut corpus = Corpus::default();
        for (_, part) in done {
            corpus.samples.extend(part.samples);
            for (reason, count) in part.refused {
                *corpus.refused.entry(reason).or_default() += count;
            }
        }
        Ok(corpus)
    }

    fn of_file(path: &Path) -> Result<Corpus, Error> {
        let mut corpus = Corpus::default();
        let cubin = code::read(path)?;
        let bad = |error: String| Error::Input(path.to_owned(), error);
        let elf = Elf::parse(&cubin.bytes).map_err(|error| bad(error.to_string()))?;
        let file = path.file_name().unwrap_or_default().to_string_lossy();
        let source = file.split('.').next().unwrap_or_default();
        for kernel in elf.kernels().map_err(|error| bad(error.to_string()))? {
            let found = match Code::new(&elf, &kernel, Calls::Followed) {
                Ok(code) => Sample::new(source, &kernel.name, &code).map_err(reason),
                Err(error) => Err(format!("no flow: {error}")),
            };
            match found {
                Ok(mut sample) => {
                    let place =
                        |text: String| format!("{}: {}: {text}", path.display(), kernel.name);
                    sample.wrong = sample.wrong.into_iter().map(place).collect();
                    corpus.samples.push(sample);
                }
                Err(reason) => *corpus.refused.entry(reason).or_default() += 1,
            }
        }
        Ok(corpus)
    }

    fn summary(&self) -> String {
        let refused: u64 = self.refused.values().sum();
        let mut out = format!("{} functions; {refused} not checked:\n", self.samples.len());
        for (reason, count) in &self.refused {
            let _ = writeln!(out, "  {count}: {reason}");
        }
        out
    }
}

fn reason(error: Unchecked) -> String {
    match error {
        Unchecked::Opaque { .. } => "unknown operands".to_owned(),
        Unchecked::NoTiming { name, .. } => format!("timing of {name}"),
        other => other.to_string(),
    }
}

impl Sample {
    fn new(source: &str, name: &str, code: &Code) -> Result<Sample, Unchecked> {
        let faults = control_faults(code)?;
        let mut sample = Sample {
            source: source.to_owned(),
            name: name.to_owned(),
            instructions: code.inst_count(),
            closest: BTreeMap::new(),
            wrong: faults.iter().map(|fault| fault.describe(code)).collect(),
        };
        let describe =
            |dependence: &Dependence, cause| Violation::order(dependence, cause).describe(code);
        dependences(code, |dependence| {
            if dependence.is_in_order() {
                return;
            }
            if let Some(cause) = dependence.unsettled() {
                sample.wrong.push(describe(&dependence, cause));
                return;
            }
            let Some(pair) = Pair::of(&dependence) else {
                return;
            };
            let closest = sample.closest.entry(pair).or_insert(Closest {
                cycles: u16::MAX,
                count: 0,
                text: String::new(),
            });
            closest.count += 1;
            if dependence.cycles < closest.cycles {
                closest.cycles = dependence.cycles;
                let cause = Cause::TooSoon {
                    cycles: dependence.cycles,
                    needed: 0,
                };
                closest.text = describe(&dependence, cause);
            }
        })?;
        Ok(sample)
    }

    fn kernel(&self) -> Kernel<'_> {
        (&self.source, &self.name)
    }

    /// How many violations there are whatever the distances are.
    fn show_wrong(&self) -> usize {
        for text in self.wrong.iter().take(2) {
            eprintln!("{text}");
        }
        self.wrong.len()
    }
}

/// What the functions show.
fn mine<'a>(samples: impl Iterator<Item = &'a Sample>) -> Distances {
    let mut pairs: BTreeMap<Pair, (u64, BTreeMap<Kernel, u16>)> = BTreeMap::new();
    for sample in samples {
        for (&pair, closest) in &sample.closest {
            let (count, kernels) = pairs.entry(pair).or_default();
            *count += closest.count;
            let cycles = kernels.entry(sample.kernel()).or_insert(closest.cycles);
            *cycles = closest.cycles.min(*cycles);
        }
    }
    let mut distances = Distances::default();
    for (pair, (count, kernels)) in pairs {
        let cycles = kernels.values().copied().min().unwrap_or(u16::MAX);
        let seen = Seen {
            cycles,
            count,
            kernels: kernels.len() as u64,
            closest: kernels.values().filter(|&&c| c == cycles).count() as u64,
        };
        distances.add(pair, seen);
    }
    distances
}

/// Functions, instructions, and the kinds of pairs that come too soon, function by function.
struct Held {
    functions: usize,
    instructions: usize,
    violations: usize,
}

impl std::fmt::Display for Held {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Held {
            functions,
            instructions,
            violations,
        } = self;
        write!(
            f,
            "{functions} functions, {instructions} instructions, {violations} violations"
        )
    }
}

fn judge<'a>(samples: impl Iterator<Item = &'a Sample>, distances: &Distances) -> Held {
    let mut held = Held {
        functions: 0,
        instructions: 0,
        violations: 0,
    };
    for sample in samples {
        held.functions += 1;
        held.instructions += sample.instructions;
        for (&pair, closest) in &sample.closest {
            let needed = distances.needed(pair);
            if closest.cycles >= needed {
                continue;
            }
            held.violations += 1;
            if held.violations <= SHOWN {
                let Sample { source, name, .. } = sample;
                eprintln!("{source}: {name}: {pair} {needed}: {}", closest.text);
            }
        }
    }
    held
}

fn table(distances: &Distances, functions: usize) -> String {
    let mut out = format!(
        "# Fewest cycles from issue to issue that ptxas leaves between dependent instructions, and the\n\
         # numbers of pairs, of kernels that had them, and of kernels that had them that close, in\n\
         # {functions} functions: `warpwright-sassmine hazards` (docs/sass.md).\n"
    );
    for (pair, seen) in distances.pairs() {
        let Seen {
            cycles,
            count,
            kernels,
            closest,
        } = seen;
        let _ = writeln!(out, "{pair} {cycles} {count} {kernels} {closest}");
    }
    out
}
