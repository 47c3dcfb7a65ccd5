//! Every function of a corpus written again by the machine-code compiler: in ptxas's order with control fields of
//! ours, and in orders of ours. The hazard checker must find nothing, nothing may panic, and what is refused is counted
//! by reason.
//!
//! `warpwright-sassmine orders PATH… -o FILE`. Beside it stands how fast graph, schedule and emission are: time of
//! the processor, so that other programs on the machine do not count, over functions that were written; and a digest
//! of the code, by which two builds of the compiler can be compared.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use serde::{Serialize, Serializer};
use sha2::{Digest, Sha256};
use warpwright_sass::control::Control;
use warpwright_sass::fatbin::{Fatbin, Kind};
use warpwright_sass::function::{Calls, Code};
use warpwright_sass::ir::{Ir, IrError, Keep};
use warpwright_sass::isa::decode;
use warpwright_sass::roles::{OPCODE, Roles};
use warpwright_sass::schedule::{Priority, Scheduler, reorder};
use warpwright_sass::{Elf, Instruction, hazards};

use crate::{Error, code};

const SCHEMA: &str = "warpwright.orders-corpus/1";

/// Ways to write a function: the order, and what stays of ptxas's control fields.
const WAYS: [(&str, Option<Priority>, Keep); 4] = [
    ("ptxas's order, keep=nothing", None, Keep::Nothing),
    (
        "by=height, keep=blocks",
        Some(Priority::Height),
        Keep::Blocks,
    ),
    (
        "by=height, keep=nothing",
        Some(Priority::Height),
        Keep::Nothing,
    ),
    (
        "by=place, keep=scoreboards",
        Some(Priority::Place),
        Keep::Scoreboards,
    ),
];

/// All figures.
#[derive(Debug, Serialize)]
pub struct Results {
    schema: &'static str,
    /// Cubins by release of ptxas.
    pub ptxas: BTreeMap<String, u64>,
    /// By architecture.
    pub rows: BTreeMap<u32, Row>,
}

/// The functions of one architecture.
#[derive(Debug, Default, Serialize)]
pub struct Row {
    /// Cubins.
    pub cubins: u64,
    /// Functions with a section of their own.
    pub functions: u64,
    /// Their instructions.
    pub instructions: u64,
    /// Functions with an instruction that is not known, or whose registers are known from few sightings.
    pub unknown: u64,
    /// How many of them have it, by instruction and what is missing.
    pub missing: BTreeMap<String, u64>,
    /// Functions in which the hazard checker finds something as ptxas made them, or cannot tell, by reason: they are
    /// not written.
    pub not_checked: BTreeMap<String, u64>,
    /// What came of the others, by way.
    pub ways: BTreeMap<&'static str, Way>,
    /// Hazards, panics and other instructions than before; must be empty.
    pub failures: Vec<String>,
}

/// What came of functions written in one way.
#[derive(Debug, Default, Serialize)]
pub struct Way {
    /// Functions.
    pub written: u64,
    /// Their instructions.
    pub instructions: u64,
    /// Those that stand elsewhere.
    pub moved: u64,
    /// Functions that were refused, by reason.
    pub refused: BTreeMap<String, u64>,
    /// Seconds of one processor for graph and schedule, and for emission, control flow included in both.
    pub seconds: [f64; 2],
    /// The sum of the digests of all written functions, names included, in hexadecimal.
    #[serde(serialize_with = "hexadecimal")]
    pub digest: u128,
}

fn hexadecimal<S: Serializer>(number: &u128, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&format!("{number:032x}"))
}

impl Row {
    fn add(&mut self, other: Row) {
        self.cubins += other.cubins;
        self.functions += other.functions;
        self.instructions += other.instructions;
        self.unknown += other.unknown;
        add(&mut self.missing, other.missing);
        add(&mut self.not_checked, other.not_checked);
        for (name, more) in other.ways {
            let way = self.ways.entry(name).or_default();
            way.written += more.written;
            way.instructions += more.instructions;
            way.moved += more.moved;
            way.digest = way.digest.wrapping_add(more.digest);
            add(&mut way.refused, more.refused);
            for (sum, more) in way.seconds.iter_mut().zip(more.seconds) {
                *sum += more;
            }
        }
        self.failures.extend(other.failures);
    }
}

fn add(to: &mut BTreeMap<String, u64>, from: BTreeMap<String, u64>) {
    for (why, count) in from {
        *to.entry(why).or_default() += count;
    }
}

impl Results {
    /// Nothing is wrong.
    pub fn is_good(&self) -> bool {
        self.rows.values().all(|row| row.failures.is_empty())
    }

    /// The figures as tables.
    pub fn tables(&self) -> String {
        let mut text = String::from(
            "| architecture | way | functions | instructions | moved | refused | instructions a second | digest |\n|---|---|--:|--:|--:|--:|--:|---|\n",
        );
        for (sm, row) in &self.rows {
            for (name, way) in &row.ways {
                let refused: u64 = way.refused.values().sum();
                let speed = way.instructions as f64 / way.seconds.iter().sum::<f64>().max(1e-9);
                let _ = writeln!(
                    text,
                    "| sm_{sm} | {name} | {} | {} | {} | {} | {} | {:032x} |",
                    way.written, way.instructions, way.moved, refused, speed as u64, way.digest,
                );
            }
        }
        for (sm, row) in &self.rows {
            for failure in &row.failures {
                let _ = writeln!(text, "FAILED sm_{sm}: {failure}");
            }
        }
        text
    }
}

/// Which cubins.
#[derive(clap::Args)]
pub struct Options {
    /// Cubins, fat binaries, host objects, and folders of them.
    #[arg(required = true)]
    paths: Vec<PathBuf>,
    /// Of each architecture only so many functions, by digests of their names.
    #[arg(long)]
    sample: Option<usize>,
    /// Also write the figures to this file.
    #[arg(short, long)]
    output: Option<PathBuf>,
}

/// Writes every function of the cubins in these files, and below these folders, in every way; the figures as tables.
///
/// # Errors
/// A file cannot be read or written, or something is wrong.
pub fn run(options: &Options) -> Result<String, Error> {
    let files = code::find_all(&options.paths)?;
    let sample = match options.sample {
        Some(most) => Some(sample(&files, most)?),
        None => None,
    };
    let rows = files.par_iter().map(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let cubins = cubins(path)?.into_iter();
        Ok(cubins
            .filter_map(|cubin| cubin_row(&name, &cubin, sample.as_ref()))
            .collect::<Vec<_>>())
    });
    let rows = rows.collect::<Result<Vec<_>, Error>>()?;
    let mut results = Results {
        schema: SCHEMA,
        ptxas: BTreeMap::new(),
        rows: BTreeMap::new(),
    };
    for (release, sm, row) in rows.into_iter().flatten() {
        *results.ptxas.entry(release).or_default() += 1;
        results.rows.entry(sm).or_default().add(row);
    }
    if let Some(path) = &options.output {
        let text = serde_json::to_string_pretty(&results);
        let text = text.map_err(|e| Error::Input(path.clone(), e.to_string()))? + "\n";
        std::fs::write(path, text).map_err(|e| Error::File(path.clone(), e))?;
    }
    match results.is_good() {
        true => Ok(results.tables()),
        false => Err(Error::Differs(results.tables())),
    }
}

/// The release of ptxas, from the note that it leaves.
fn release(elf: &Elf) -> String {
    let note = elf.section(".note.nv.tkinfo").map(|s| s.data.as_slice());
    let text = String::from_utf8_lossy(note.unwrap_or_default()).into_owned();
    let release = text.split("release ").nth(1);
    let release = release.and_then(|r| r.split(',').next());
    release.unwrap_or("unknown").to_owned()
}

/// The cubins of a file: itself, or what a host object holds.
fn cubins(path: &Path) -> Result<Vec<Vec<u8>>, Error> {
    let bytes = std::fs::read(path).map_err(|e| Error::File(path.to_owned(), e))?;
    let Ok(held) = Fatbin::parse(&bytes) else {
        return Ok(vec![bytes]);
    };
    let found = held.extract(|entry| entry.kind == Kind::Cubin);
    let found = found.unwrap_or_default().into_iter();
    Ok(found.map(|(_, cubin)| cubin).collect())
}

/// Functions by architecture and the digest of their name.
type Names = BTreeSet<(u32, u128)>;

/// Of each architecture the functions whose names have the smallest digests.
fn sample(files: &[PathBuf], most: usize) -> Result<Names, Error> {
    let mut all = Names::new();
    for path in files {
        for cubin in cubins(path)? {
            let Ok(elf) = Elf::parse(&cubin) else {
                continue;
            };
            let sm = elf.target().sm;
            let names = elf.kernels().unwrap_or_default();
            all.extend(names.iter().map(|kernel| (sm, digest(&kernel.name, &[]))));
        }
    }
    let mut taken: BTreeMap<u32, usize> = BTreeMap::new();
    all.retain(|(sm, _)| {
        let count = taken.entry(*sm).or_default();
        *count += 1;
        *count <= most
    });
    Ok(all)
}

fn cubin_row(file: &str, cubin: &[u8], sample: Option<&Names>) -> Option<(String, u32, Row)> {
    let elf = Elf::parse(cubin).ok()?;
    let mut row = Row {
        cubins: 1,
        ..Row::default()
    };
    let sm = elf.target().sm;
    let is_in = |name: &str| sample.is_none_or(|names| names.contains(&(sm, digest(name, &[]))));
    for kernel in elf.kernels().unwrap_or_default() {
        if !is_in(&kernel.name) {
            continue;
        }
        let named = |why: String| format!("{file}: {}: {why}", kernel.name);
        row.functions += 1;
        let done = catch_unwind(AssertUnwindSafe(|| function(&elf, &kernel.name, &mut row)));
        match done {
            Ok(Ok(())) => {}
            Ok(Err(why)) => row.failures.push(named(why.to_string())),
            Err(_) => row.failures.push(named("a panic".to_owned())),
        }
    }
    Some((release(&elf), sm, row))
}

/// What must never be.
#[derive(Debug, thiserror::Error)]
enum Broken {
    #[error("{way}: {hazard}")]
    Hazard { way: &'static str, hazard: String },
    #[error("{way}: it cannot be checked any more: {why}")]
    Unchecked {
        way: &'static str,
        why: hazards::Unchecked,
    },
    #[error("{way}: the written code cannot be read: {why}")]
    Unreadable { way: &'static str, why: IrError },
    #[error("{way}: there are other instructions than before")]
    Instructions { way: &'static str },
}

fn function(elf: &Elf, name: &str, row: &mut Row) -> Result<(), Broken> {
    let mut refused = |why: &dyn std::fmt::Display| {
        *row.not_checked.entry(reason(&why.to_string())).or_default() += 1;
    };
    let old = elf.kernel(name).map_err(IrError::from);
    let old = old.and_then(|sections| Ok(Code::new(elf, &sections, Calls::Followed)?));
    let old = match old {
        Ok(old) => old,
        Err(why) => {
            refused(&why);
            return Ok(());
        }
    };
    row.instructions += old.instructions().len() as u64;
    let missing = missing(&old);
    row.unknown += u64::from(!missing.is_empty());
    add(
        &mut row.missing,
        missing.into_iter().map(|what| (what, 1)).collect(),
    );
    match hazards::check(&old) {
        Ok(found) if found.is_empty() => {}
        Ok(_) => {
            refused(&"the hazard checker reports what ptxas wrote");
            return Ok(());
        }
        Err(why) => {
            refused(&why);
            return Ok(());
        }
    }
    for (way, priority, keep) in WAYS {
        let result = row.ways.entry(way).or_default();
        match write(elf, name, (priority, keep), result) {
            Err(why) => *result.refused.entry(reason(&why.to_string())).or_default() += 1,
            Ok(new) => {
                result.written += 1;
                result.instructions += old.instructions().len() as u64;
                let code = judge(way, &old, &new, name)?;
                result.digest = result
                    .digest
                    .wrapping_add(digest(name, code.instructions()));
            }
        }
    }
    Ok(())
}

/// Instructions of the function that transformations refuse, whatever they do: opcode, mnemonic and what is missing.
fn missing(code: &Code) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (at, &inst) in code.instructions().iter().enumerate() {
        let is_never = inst.bits() & GUARD == GUARD;
        let roles = Roles::of(inst);
        let what = match &roles {
            _ if is_never => continue,
            _ if decode(inst).is_opaque() => "form",
            None => "operands",
            Some(roles) if roles.is_rare() => "rare",
            Some(_) => continue,
        };
        let decoded = decode(inst);
        let text = decoded.text(at as u64 * 16);
        let name = text.split(' ').find(|word| !word.starts_with('@'));
        let opcode = OPCODE.get(inst.bits());
        found.insert(format!("{opcode:03x} {}: {what}", name.unwrap_or("?")));
    }
    found
}

/// The guard of what no thread executes.
const GUARD: u128 = 0xf << 12;

/// The function written in one way.
fn write(
    elf: &Elf,
    name: &str,
    (priority, keep): (Option<Priority>, Keep),
    way: &mut Way,
) -> Result<Elf, IrError> {
    let start = cpu_seconds();
    let mut ir = Ir::new(elf, name)?;
    if let Some(priority) = priority {
        let code = Code::new(elf, &elf.kernel(name)?, Calls::Followed)?;
        let scheduler = Scheduler::new(&code).map_err(warpwright_sass::issue::Unassigned::from)?;
        for block in 0..ir.blocks.len() {
            let (estimate, order) = scheduler.block(&code, &ir.blocks[block], priority);
            if let Some(order) = order {
                reorder(&mut ir, block, &order);
                way.moved += u64::from(estimate.moved);
            }
        }
    }
    let scheduled = cpu_seconds();
    let mut new = elf.clone();
    ir.emit(&mut new, keep)?;
    way.seconds[0] += scheduled - start;
    way.seconds[1] += cpu_seconds() - scheduled;
    Ok(new)
}

/// Half of a SHA-256 over the name and the instructions.
fn digest(name: &str, code: &[Instruction]) -> u128 {
    let mut hash = Sha256::new_with_prefix(name);
    for inst in code {
        hash.update(inst.bits().to_le_bytes());
    }
    let bytes = hash.finalize().into_iter().take(16);
    bytes.fold(0, |number, byte| number << 8 | u128::from(byte))
}

/// No hazard, and the same instructions in some order: the new code.
fn judge(way: &'static str, old: &Code, new: &Elf, name: &str) -> Result<Code, Broken> {
    let read = new.kernel(name).map_err(IrError::from);
    let read = read.and_then(|sections| Ok(Code::new(new, &sections, Calls::Followed)?));
    let code = read.map_err(|why| Broken::Unreadable { way, why })?;
    let found = hazards::check(&code).map_err(|why| Broken::Unchecked { way, why })?;
    if let Some(first) = found.first() {
        let hazard = first.describe(&code);
        return Err(Broken::Hazard { way, hazard });
    }
    match blank(old) == blank(&code) {
        true => Ok(code),
        false => Err(Broken::Instructions { way }),
    }
}

/// The instructions without control fields, in an order that does not depend on theirs: blocks keep their places, so
/// distances of branches stay.
fn blank(code: &Code) -> Vec<u128> {
    let word = |inst: &Instruction| {
        let blank = inst.with_control(Control::default()).unwrap_or(*inst);
        blank.bits()
    };
    let mut all: Vec<u128> = code.instructions().iter().map(word).collect();
    all.sort_unstable();
    all
}

/// A reason without the function and the places in it.
fn reason(why: &str) -> String {
    let named = why.split_once(": ").filter(|(name, _)| !name.contains(' '));
    let why = named.map_or(why, |(_, why)| why);
    let word = |word: &str| match word.trim_matches(|c: char| !c.is_alphanumeric()) {
        place if place.starts_with("0x") => "…".to_owned(),
        _ => word.to_owned(),
    };
    let words: Vec<String> = why.split_whitespace().map(word).collect();
    words.join(" ")
}

/// Seconds that this thread has run on a processor; 0 where the system does not tell.
fn cpu_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = text.split_whitespace().next().and_then(|n| n.parse().ok());
    nanoseconds.unwrap_or(0.0) / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_lose_their_places() {
        assert_eq!(
            reason("kernel: what the instruction at 0x1a0 reads (0x20) was seen too rarely"),
            "what the instruction at … reads … was seen too rarely"
        );
    }
}
