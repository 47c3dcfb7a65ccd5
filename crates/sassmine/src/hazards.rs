//! The distances between dependent instructions, mined from what ptxas writes; see
//! docs/sass-hazards.md.
//!
//! The kernels of a corpus are split in two, with all their builds. What one half shows must not call
//! anything in the other half a hazard; the table is then made of both.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::{Path, PathBuf};

use warpwright_sass::elf::Elf;
use warpwright_sass::function::{Calls, Code};
use warpwright_sass::hazards::{
    Dependence, Distances, Pair, Seen, Unchecked, Violation, check_with, dependences,
};

use crate::Error;
use crate::code;

/// How many violations are shown.
const SHOWN: usize = 40;

/// The functions of one architecture that can be checked, by source, and how many cannot.
#[derive(Default)]
struct Corpus {
    functions: Vec<Sample>,
    refused: BTreeMap<String, u64>,
}

struct Sample {
    /// The file's name up to the first dot: what the cubin was made of.
    source: String,
    name: String,
    code: Code,
}

/// Mines the corpus, holds one half against the other, and writes the table.
pub fn run(corpus: &[PathBuf], output: Option<&Path>) -> Result<String, Error> {
    let corpus = Corpus::read(corpus)?;
    let kernels: BTreeSet<Kernel> = corpus.functions.iter().map(Sample::kernel).collect();
    let kernels = kernels.into_iter().enumerate();
    let half: BTreeMap<_, _> = kernels.map(|(i, kernel)| (kernel, i % 2)).collect();
    let part = |side: usize| {
        let functions = corpus.functions.iter();
        functions.filter(move |f| half.get(&f.kernel()) == Some(&side))
    };
    let mut summary = corpus.summary();
    for side in [0, 1] {
        let distances = mine(part.clone()(side))?;
        let (functions, instructions, found) = judge(part.clone()(1 - side), &distances)?;
        let _ = writeln!(
            summary,
            "{} pairs of one half, held against the other: {functions} functions, {instructions} instructions, {found} violations",
            distances.pairs().len(),
        );
    }
    let distances = mine(corpus.functions.iter())?;
    let (functions, instructions, found) = judge(corpus.functions.iter(), &distances)?;
    let _ = write!(
        summary,
        "{} pairs of all: {functions} functions, {instructions} instructions, {found} violations",
        distances.pairs().len(),
    );
    if let Some(output) = output {
        let text = table(&distances, functions);
        std::fs::write(output, text).map_err(|error| Error::File(output.to_owned(), error))?;
    }
    Ok(summary)
}

/// Source and name: the same kernel however it was built.
type Kernel<'a> = (&'a str, &'a str);

impl Sample {
    fn kernel(&self) -> Kernel<'_> {
        (&self.source, &self.name)
    }
}

impl Corpus {
    fn read(paths: &[PathBuf]) -> Result<Corpus, Error> {
        let mut corpus = Corpus::default();
        for path in code::find_all(paths)? {
            let cubin = code::read(&path)?;
            let bad = |error: String| Error::Input(path.clone(), error);
            let elf = Elf::parse(&cubin.bytes).map_err(|error| bad(error.to_string()))?;
            let file = path.file_name().unwrap_or_default().to_string_lossy();
            let source = file.split('.').next().unwrap_or_default();
            for kernel in elf.kernels().map_err(|error| bad(error.to_string()))? {
                match Code::new(&elf, &kernel, Calls::Followed) {
                    Ok(code) => corpus.add(source, kernel.name, code),
                    Err(error) => corpus.refuse(format!("no flow: {error}")),
                }
            }
        }
        Ok(corpus)
    }

    fn add(&mut self, source: &str, name: String, code: Code) {
        match dependences(&code, |_| {}) {
            Ok(()) => self.functions.push(Sample {
                source: source.to_owned(),
                name,
                code,
            }),
            Err(Unchecked::Opaque { .. }) => self.refuse("unknown operands".to_owned()),
            Err(Unchecked::NoTiming { name, .. }) => self.refuse(format!("timing of {name}")),
            Err(other) => self.refuse(other.to_string()),
        }
    }

    fn refuse(&mut self, reason: String) {
        *self.refused.entry(reason).or_default() += 1;
    }

    fn summary(&self) -> String {
        let refused: u64 = self.refused.values().sum();
        let mut out = format!(
            "{} functions; {refused} not checked:\n",
            self.functions.len()
        );
        for (reason, count) in &self.refused {
            let _ = writeln!(out, "  {count}: {reason}");
        }
        out
    }
}

/// What the functions show: all pairs that only their distance protects.
fn mine<'a>(functions: impl Iterator<Item = &'a Sample>) -> Result<Distances, Error> {
    let mut pairs: BTreeMap<Pair, (Seen, BTreeSet<Kernel>)> = BTreeMap::new();
    for function in functions {
        let note = |dependence: Dependence| {
            let open = dependence.needs_scoreboard() || dependence.is_in_order();
            let Some(pair) = Pair::of(&dependence).filter(|_| !open) else {
                return;
            };
            let (seen, kernels) = pairs
                .entry(pair)
                .or_insert_with(|| (UNSEEN, BTreeSet::new()));
            seen.cycles = seen.cycles.min(dependence.cycles);
            seen.count += 1;
            kernels.insert(function.kernel());
        };
        dependences(&function.code, note).map_err(|error| unchecked(function, &error))?;
    }
    let mut distances = Distances::default();
    for (pair, (seen, kernels)) in pairs {
        let kernels = kernels.len() as u64;
        distances.add(pair, Seen { kernels, ..seen });
    }
    Ok(distances)
}

const UNSEEN: Seen = Seen {
    cycles: u16::MAX,
    count: 0,
    kernels: 0,
};

/// Functions, instructions, violations.
fn judge<'a>(
    functions: impl Iterator<Item = &'a Sample>,
    distances: &Distances,
) -> Result<(usize, usize, usize), Error> {
    let (mut count, mut instructions, mut found) = (0, 0, 0);
    for function in functions {
        let violations: Vec<Violation> =
            check_with(&function.code, distances).map_err(|error| unchecked(function, &error))?;
        for violation in violations.iter().take(SHOWN.saturating_sub(found)) {
            let what = violation.describe(&function.code);
            eprintln!("{}: {}: {what}", function.source, function.name);
        }
        count += 1;
        instructions += function.code.instructions().len();
        found += violations.len();
    }
    Ok((count, instructions, found))
}

fn unchecked(function: &Sample, error: &Unchecked) -> Error {
    Error::Differs(format!("{}: {error}", function.name))
}

fn table(distances: &Distances, functions: usize) -> String {
    let mut out = format!(
        "# Fewest cycles from issue to issue that ptxas leaves between dependent instructions, and the\n\
         # numbers of pairs and of kernels that showed them, in {functions} functions: `warpwright-sassmine hazards` (docs/sass-hazards.md).\n"
    );
    for (pair, seen) in distances.pairs() {
        let Seen {
            cycles,
            count,
            kernels,
        } = seen;
        let _ = writeln!(out, "{pair} {cycles} {count} {kernels}");
    }
    out
}
