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
    Cause, Dependence, Distances, OperationPair, Order, Orders, Pair, Seen, Unchecked, Violation,
    control_faults, dependences_with,
};

use warpwright_target::IssueUnits;

use crate::Error;
use crate::code;

/// How many violations are shown.
const SHOWN: usize = 40;

/// What the functions of one architecture show, and how many cannot be checked, by reason.
#[derive(Default)]
struct Corpus {
    sm: u32,
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
    /// The same by operation: cycles and pairs.
    operations: BTreeMap<OperationPair, (u16, u64)>,
    /// What only the order of a unit protects: the number of pairs, the fewest cycles, and the closest pair.
    orders: BTreeMap<Order, (u64, u16, String)>,
    /// What is wrong whatever the distances are.
    wrong: Vec<String>,
}

/// The closest of the pairs of one kind in a function, with the text of that one.
struct Closest {
    cycles: u16,
    count: u64,
    text: String,
}

/// Where the tables go; without a place they are not written.
#[derive(clap::Args)]
pub struct Outputs {
    /// Where the distances by class go.
    #[arg(short, long)]
    output: Option<PathBuf>,
    /// Where the distances by operation go.
    #[arg(long)]
    operations: Option<PathBuf>,
    /// Where the orders of units go.
    #[arg(long)]
    orders: Option<PathBuf>,
    /// Only rows that have the words of one of these in this order; the functions are not counted.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Add to what the files have. Sightings add up, so the corpus must be one that they have not seen.
    #[arg(long)]
    extend: bool,
}

/// Mines the corpus, holds one half against the other, and writes the tables.
pub fn run(corpus: &[PathBuf], outputs: &Outputs) -> Result<String, Error> {
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
        let orders = orders(part.clone()(side));
        let missing = corpus.missing_orders(part.clone()(1 - side), &orders);
        let _ = writeln!(
            summary,
            "{} orders of one half, held against the other: {missing} functions rely on others",
            orders.len()
        );
    }
    let distances = mine(corpus.samples.iter());
    let held = judge(corpus.samples.iter(), &distances);
    let pairs = distances.pairs().len();
    let _ = write!(summary, "{pairs} pairs of all: {held}");
    let functions = corpus.samples.len();
    let orders = orders(corpus.samples.iter());
    let _ = write!(summary, "\n{} orders of all", orders.len());
    type Heading = fn(u64) -> String;
    let files: [(_, _, Heading, _); 3] = [
        (&outputs.output, table(&distances, functions), heading, 4),
        (
            &outputs.operations,
            operation_table(&corpus.samples),
            operation_heading,
            4,
        ),
        (
            &outputs.orders,
            order_table(&orders, functions),
            order_heading,
            3,
        ),
    ];
    for (output, mut rows, heading, numbers) in files {
        let Some(output) = output else { continue };
        rows.keep(&outputs.only);
        let failed = |error| Error::File(output.to_owned(), error);
        if outputs.extend {
            let text = std::fs::read_to_string(output).map_err(failed)?;
            let old = Rows::read(&text, numbers);
            let bad = || Error::Input(output.to_owned(), "not such a table".to_owned());
            rows.join(old.ok_or_else(bad)?);
        }
        std::fs::write(output, rows.print(heading)).map_err(failed)?;
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
            corpus.sm = part.sm;
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
        corpus.sm = elf.target().sm;
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

    /// Functions in which something would be a hazard if these orders were all.
    fn missing_orders<'a>(
        &self,
        samples: impl Iterator<Item = &'a Sample>,
        orders: &BTreeMap<Order, Relied>,
    ) -> usize {
        let Some(units) = IssueUnits::for_sm(self.sm) else {
            return 0;
        };
        let rows = orders.iter().filter_map(|(&order, relied)| {
            let cycles = relied.closest.as_ref()?.0;
            Some((order, cycles, relied.kernels.len() as u64))
        });
        let orders = Orders::new(units, rows);
        let is_missing = |sample: &&Sample| {
            let mut relied = sample.orders.iter();
            relied.any(|(&order, &(_, cycles, _))| {
                orders.needed(order).is_none_or(|needed| cycles < needed)
            })
        };
        samples.filter(is_missing).count()
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
            operations: BTreeMap::new(),
            orders: BTreeMap::new(),
            wrong: faults.iter().map(|fault| fault.describe(code)).collect(),
        };
        let describe =
            |dependence: &Dependence, cause| Violation::order(dependence, cause).describe(code);
        dependences_with(code, &Orders::looked_for(), |dependence| {
            if let Some(order) = dependence
                .order
                .filter(|_| dependence.unsettled().is_some())
            {
                let seen = sample.orders.entry(order);
                let (count, cycles, text) = seen.or_insert((0, u16::MAX, String::new()));
                *count += 1;
                if dependence.cycles < *cycles {
                    *cycles = dependence.cycles;
                    *text = describe(&dependence, Cause::NoScoreboard);
                }
                return;
            }
            if dependence.is_in_order() {
                return;
            }
            if let Some(cause) = dependence.unsettled() {
                sample.wrong.push(describe(&dependence, cause));
                return;
            }
            for (pair, cycles) in Pair::all(&dependence) {
                let closest = sample.closest.entry(pair).or_insert(Closest {
                    cycles: u16::MAX,
                    count: 0,
                    text: String::new(),
                });
                closest.count += 1;
                if cycles < closest.cycles {
                    closest.cycles = cycles;
                    let cause = Cause::TooSoon { cycles, needed: 0 };
                    closest.text = describe(&dependence, cause);
                }
            }
            if let (Some(pair), Some(cycles)) =
                (OperationPair::of(&dependence), dependence.waitless)
            {
                let seen = sample.operations.entry(pair).or_insert((cycles, 0));
                *seen = (cycles.min(seen.0), seen.1 + 1);
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

/// Where an order was relied on.
#[derive(Default)]
struct Relied<'a> {
    pairs: u64,
    kernels: BTreeSet<Kernel<'a>>,
    /// Fewest cycles between the two accesses, and such a pair.
    closest: Option<(u16, String)>,
}

/// What the functions rely on.
fn orders<'a>(samples: impl Iterator<Item = &'a Sample>) -> BTreeMap<Order, Relied<'a>> {
    let mut orders: BTreeMap<Order, Relied> = BTreeMap::new();
    for sample in samples {
        for (&order, (count, cycles, text)) in &sample.orders {
            let relied = orders.entry(order).or_default();
            relied.pairs += count;
            relied.kernels.insert(sample.kernel());
            if relied.closest.as_ref().is_none_or(|old| *cycles < old.0) {
                let Sample { source, name, .. } = sample;
                relied.closest = Some((*cycles, format!("{source}: {name}: {text}")));
            }
        }
    }
    orders
}

/// Rows of a table by what stands before their numbers: the fewest cycles, sums of sightings, and, where there is a
/// fourth number, the kernels that come down to those cycles.
struct Rows {
    rows: BTreeMap<String, Vec<u64>>,
    functions: u64,
}

impl Rows {
    fn new(functions: usize) -> Rows {
        Rows {
            rows: BTreeMap::new(),
            functions: functions as u64,
        }
    }

    /// A table that was written before, with so many numbers in a row.
    fn read(text: &str, numbers: usize) -> Option<Rows> {
        let mut rows = Rows::new(0);
        let mut words = text.lines().filter(|line| line.starts_with('#'));
        let functions = words.find_map(|line| {
            let before = line.split(" functions").next().filter(|&own| own != line)?;
            before.rsplit(' ').next()?.parse().ok()
        });
        rows.functions = functions?;
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let words: Vec<&str> = line.split_whitespace().collect();
            let (key, own) = words.split_at_checked(words.len().checked_sub(numbers)?)?;
            let own: Result<Vec<u64>, _> = own.iter().map(|word| word.parse()).collect();
            rows.add(key.join(" "), &own.ok()?);
        }
        Some(rows)
    }

    /// Takes in what other kernels show.
    fn add(&mut self, key: String, more: &[u64]) {
        let Some(own) = self.rows.get_mut(&key) else {
            self.rows.insert(key, more.to_vec());
            return;
        };
        let (had, has) = (own[0], more[0]);
        for (place, (own, more)) in own.iter_mut().zip(more).enumerate() {
            *own = match place {
                0 => had.min(has),
                3 if has > had => *own,
                3 if has < had => *more,
                _ => *own + more,
            };
        }
    }

    /// Keeps the rows that have the words of one of these in this order, as a part of what the functions show; all if
    /// there are none.
    fn keep(&mut self, only: &[String]) {
        if only.is_empty() {
            return;
        }
        let has = |key: &str, words: &str| {
            let mut own = key.split(' ');
            let mut words = words.split_whitespace();
            words.all(|word| own.any(|own| own == word))
        };
        let is_asked = |key: &str| only.iter().any(|words| has(key, words));
        self.rows.retain(|key, _| is_asked(key));
        self.functions = 0;
    }

    /// Takes in another table, of other kernels.
    fn join(&mut self, other: Rows) {
        self.functions += other.functions;
        for (key, more) in other.rows {
            self.add(key, &more);
        }
    }

    fn print(&self, heading: impl Fn(u64) -> String) -> String {
        let mut out = heading(self.functions);
        for (key, numbers) in &self.rows {
            let numbers: Vec<String> = numbers.iter().map(u64::to_string).collect();
            let _ = writeln!(out, "{key} {}", numbers.join(" "));
        }
        out
    }
}

fn order_table(orders: &BTreeMap<Order, Relied>, functions: usize) -> Rows {
    let mut rows = Rows::new(functions);
    for (order, relied) in orders {
        let Relied {
            pairs,
            kernels,
            closest,
        } = relied;
        let kernels = kernels.len() as u64;
        if let Some((cycles, text)) = closest {
            rows.add(order.to_string(), &[u64::from(*cycles), *pairs, kernels]);
            eprintln!(
                "{order}: {pairs} pairs, {kernels} kernels, at least {cycles} cycles: {text}"
            );
        }
    }
    rows
}

fn order_heading(functions: u64) -> String {
    format!(
        "# What units keep in order though nothing waits: operations (bits 0 to 8 of the opcode) of the earlier and\n\
         # of the later instruction, the fewest cycles between the two accesses, the number of pairs of registers that\n\
         # nothing else protects, and of kernels that had them, in {functions} functions: `warpwright-sassmine hazards` (docs/sass.md).\n"
    )
}

fn operation_table(samples: &[Sample]) -> Rows {
    let mut pairs: BTreeMap<OperationPair, (u64, BTreeMap<Kernel, u16>)> = BTreeMap::new();
    for sample in samples {
        for (&pair, &(cycles, count)) in &sample.operations {
            let (all, kernels) = pairs.entry(pair).or_default();
            *all += count;
            let closest = kernels.entry(sample.kernel()).or_insert(cycles);
            *closest = cycles.min(*closest);
        }
    }
    let mut rows = Rows::new(samples.len());
    for (pair, (count, kernels)) in pairs {
        let cycles = kernels.values().copied().min().unwrap_or(u16::MAX);
        let closest = kernels.values().filter(|&&c| c == cycles).count() as u64;
        let numbers = [u64::from(cycles), count, kernels.len() as u64, closest];
        rows.add(pair.to_string(), &numbers);
    }
    rows
}

fn operation_heading(functions: u64) -> String {
    format!(
        "# Fewest cycles from issue to issue that ptxas leaves between dependent instructions, by operation, where\n\
         # nothing waits between them: the pair of classes, the operations of the earlier and of the later instruction\n\
         # (bits 0 to 8; 000 for what writes after an unknown time), the lowest bit of the field that is read (else of the\n\
         # later operand), cycles, pairs, kernels that had them, kernels that had them that close, in {functions} functions:\n\
         # `warpwright-sassmine hazards`. What was seen is enough, and it is what new code keeps (docs/scheduling.md).\n"
    )
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

fn table(distances: &Distances, functions: usize) -> Rows {
    let mut rows = Rows::new(functions);
    for (pair, seen) in distances.pairs() {
        let Seen {
            cycles,
            count,
            kernels,
            closest,
        } = seen;
        rows.add(
            pair.to_string(),
            &[u64::from(cycles), count, kernels, closest],
        );
    }
    rows
}

fn heading(functions: u64) -> String {
    format!(
        "# Fewest cycles from issue to issue that ptxas leaves between dependent instructions, and the\n\
         # numbers of pairs, of kernels that had them, and of kernels that had them that close, in\n\
         # {functions} functions: `warpwright-sassmine hazards` (docs/sass.md).\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sightings_add_up_and_the_fewest_cycles_count() {
        let text = |functions, rows: &str| format!("# in\n# {functions} functions: x\n{rows}");
        let read = |text: &str| Rows::read(text, 4).unwrap();
        let mut old = read(&text(
            20,
            "raw R alu -> fma 5 100 30 10\nraw R alu -> alu 4 9 9 9\n",
        ));
        old.join(read(&text(
            3,
            "raw R alu -> fma 4 7 3 2\nraw R alu -> alu 4 2 2 1\nraw R fma -> alu 6 1 1 1\n",
        )));
        let rows =
            "raw R alu -> alu 4 11 11 10\nraw R alu -> fma 4 107 33 2\nraw R fma -> alu 6 1 1 1\n";
        assert_eq!(
            old.print(|functions| format!("{functions}\n")),
            format!("23\n{rows}")
        );
        old.join(read(&text(1, "raw R alu -> fma 9 1 1 1\n")));
        assert!(
            old.print(|_| String::new())
                .contains("raw R alu -> fma 4 108 34 2\n")
        );
        assert!(Rows::read("raw R alu -> fma 5 100 30 10\n", 4).is_none());
        old.keep(&["raw fma alu".to_owned(), "war".to_owned()]);
        assert_eq!(old.print(|_| String::new()), "raw R fma -> alu 6 1 1 1\n");
    }
}
