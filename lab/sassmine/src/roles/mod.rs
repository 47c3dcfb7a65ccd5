//! Derives the tables of roles: which registers each instruction reads and writes.
//!
//! 1. From the corpus, samples of every opcode are taken, one per combination of modifier bits.
//! 2. Which bits matter (the *key*): each bit of a sample is flipped; where that changes how many
//!    registers nvdisasm reports, or their file or role, the bit belongs to the key.
//! 3. For each value of the key that a sample or a flip shows, [`fit`] finds the operands by moving
//!    each field to registers of its own.
//! 4. The table is held against every instruction of the corpus ([`corpus`]). Opcodes with an instruction
//!    that contradicts it, or that it does not have, are fitted once more, from many samples and from those
//!    instructions; each row counts what confirms it in the end, and one that is still contradicted is
//!    dropped and reported.

mod corpus;
mod fit;
mod predicates;
mod sources;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use rayon::prelude::*;
use warpwright_sass::Instruction;
use warpwright_sass::isa::form::OPERATION;
use warpwright_sass::roles::{self as sass, CONTROL, Entry, Field, OPCODE, OURS, Row, Table};
use warpwright_toolkit::Toolkit;
use warpwright_toolkit::life_ranges::{File, Mark};

use crate::Error;
use crate::bench::Bench;
use crate::words::Words;
use corpus::{Corpus, Seen};
use fit::Fitted;

/// Samples of one opcode from which the key is found; of one value of the key from which the operands are
/// fitted first; and of one opcode from which they are fitted once more.
const KEY_SAMPLES: usize = 10;
const FIRST_SAMPLES: usize = 3;
const FIT_SAMPLES: usize = 160;
/// Rounds of fitting what the corpus contradicts or the table lacks.
const ROUNDS: usize = 3;
/// More bits than this in a key mean that something was misunderstood.
const MOST_KEY_BITS: usize = 16;
/// Bits that may hold modifiers: not the opcode, the guard, the register fields, nor the control field.
const MODIFIERS: [std::ops::Range<u32>; 2] = [46..64, 72..105];
/// The last register field, which holds modifiers in some opcodes; its bits join a key only where no other
/// bit tells the samples apart.
const LAST_FIELD: std::ops::Range<u32> = 64..72;

/// What to derive.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// Folders or files: cubins; those for other architectures are passed over.
    #[arg(required = true)]
    corpus: Vec<PathBuf>,
    /// The architecture, for example 90.
    #[arg(long)]
    sm: u32,
    /// Where the table goes.
    #[arg(short, long)]
    output: PathBuf,
    /// A table whose opcodes are kept as far as the corpus does not contradict them. Sightings add up, so
    /// the corpus must be one that the table has not seen.
    #[arg(long)]
    extend: Option<PathBuf>,
    /// Only these opcodes (hexadecimal); the rest of the table stays as it is.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Of the corpus only the opcodes of which it has something that the extended table has no row for, or a
    /// rare one, and of these a few instructions with each combination of modifiers.
    #[arg(long, requires = "extend")]
    lacking: bool,
}

/// Mines the corpus and writes the table; returns a summary in words.
pub fn run(toolkit: &Toolkit, options: &Options) -> Result<String, Error> {
    let nvdisasm = toolkit.nvdisasm()?;
    let sm = options.sm;
    let mut words = Words::read(&options.corpus, sm, OPERATION)?;
    if !options.only.is_empty() {
        let named = |bits| options.only.contains(&format!("{:x}", OPCODE.get(bits)));
        words.words.retain(|word| named(word.bits));
    }
    let mut table = Table::new(sm);
    if let Some(path) = &options.extend {
        let text = std::fs::read_to_string(path).map_err(|e| Error::File(path.clone(), e))?;
        let known = Table::read(sm, &[&text]);
        table = known.map_err(|error| Error::Input(path.clone(), error.to_string()))?;
    }
    let control = Table::read(sm, &[CONTROL])
        .map_err(|error| Error::Input("control.txt".into(), error.to_string()))?;
    if options.lacking {
        retain_lacking(&mut words, &table, &control);
    }
    let is_all = options.only.is_empty() && !options.lacking;
    // What is written by hand has no row to be fitted.
    let ours = Table::read(sm, &[OURS])
        .map_err(|error| Error::Input("ours.txt".into(), error.to_string()))?;
    let is_ours = |bits| ours.roles(Instruction::new(sm, bits)).is_some();
    words.words.retain(|word| !is_ours(word.bits));
    if words.words.is_empty() {
        return Err(Error::Empty(sm));
    }
    let before = table.clone();
    let mut bench = Bench::new(nvdisasm, sm)?;
    let sources = sources::find(&bench, &words, &control)?;
    let notes = sources::notes(&sources);
    bench.set_sources(sources);
    let corpus = Corpus::read(&bench, sm, &words, &control)?;
    let miner = Miner { bench, sm };
    miner.derive(&corpus, &mut table)?;
    let checked = corpus.confirm(&mut table, is_all);
    if options.extend.is_some() {
        carry(&before, &mut table, is_all, &corpus);
    }
    let version = nvdisasm.tool().version()?;
    let text = format!(
        "# Roles of sm_{sm}, by `warpwright-sassmine roles` with nvdisasm {version}.\n{notes}{table}"
    );
    let output = &options.output;
    std::fs::write(output, text).map_err(|error| Error::File(output.clone(), error))?;
    Ok(checked)
}

/// Instructions with the same modifiers that are asked about, of the opcodes that are lacking: enough to make a row known.
const ALIKE: usize = sass::Roles::FEW as usize;

/// Keeps the opcodes of which a word has a row in neither table, or a rare one, and of these a few words with each
/// combination of modifiers.
fn retain_lacking(words: &mut Words, table: &Table, control: &Table) {
    let is_known = |bits: u128| {
        let row = |entry: &Entry| Some(entry.rows.get(&entry.key_of(bits))?.confirmed);
        let mined = table.entries().get(&OPCODE.get(bits)).and_then(row);
        mined.is_some_and(|confirmed| confirmed >= sass::Roles::FEW)
            || control.entries().contains_key(&OPCODE.get(bits))
    };
    let all = words.words.iter().map(|word| word.bits);
    let open = all.filter(|&bits| !is_known(bits));
    let open: BTreeSet<u16> = open.map(|bits| OPCODE.get(bits)).collect();
    let mut taken: BTreeMap<(u16, u128), usize> = BTreeMap::new();
    words.words.retain(|word| {
        let opcode = OPCODE.get(word.bits);
        let alike = taken.entry((opcode, modifiers(word.bits))).or_default();
        *alike += 1;
        open.contains(&opcode) && *alike <= ALIKE
    });
}

/// Adds the sightings of the table that was extended: those of each row to the one row that says the same of
/// the same instructions. What the corpus does not show must not be lost: rows that it lacks stay, and where other bits
/// tell the rows of an opcode apart now, the opcode stays as it was if a row is not found again, or several times.
fn carry(before: &Table, table: &mut Table, all: bool, corpus: &Corpus) {
    let counted = |opcode: &u16| all || corpus.seen().contains_key(opcode);
    for (&opcode, old) in before
        .entries()
        .iter()
        .filter(|(opcode, _)| counted(opcode))
    {
        let entry = table.entries().get(&opcode).cloned();
        table.insert(
            opcode,
            entry.map_or_else(|| old.clone(), |new| carried(old, new)),
        );
    }
}

/// The new rows of an opcode with the sightings of the old ones.
fn carried(old: &Entry, mut entry: Entry) -> Entry {
    for (&key, row) in &old.rows {
        let agrees = |other: u32| {
            let mut shared = entry.key.iter().enumerate().filter_map(|(place, bit)| {
                let there = old.key.iter().position(|known| known == bit)?;
                Some((other >> place & 1, key >> there & 1))
            });
            shared.all(|(new, old)| new == old)
        };
        let same = entry.rows.iter();
        let same = same.filter(|(other, new)| new.slots == row.slots && agrees(**other));
        let same: Vec<u32> = same.map(|(other, _)| *other).collect();
        match same[..] {
            [only] => {
                if let Some(new) = entry.rows.get_mut(&only) {
                    new.confirmed += row.confirmed;
                }
            }
            _ if entry.key == old.key => {
                entry.rows.entry(key).or_insert_with(|| row.clone());
            }
            _ => return old.clone(),
        }
    }
    entry
}

struct Miner<'a> {
    bench: Bench<'a>,
    sm: u32,
}

/// Without guard and reuse flags.
fn plain(bits: u128) -> u128 {
    bits & !(0xf << 122) & !(0xf << 12) | 7 << 12
}

/// The part of an instruction in which samples of an opcode differ.
fn modifiers(bits: u128) -> u128 {
    let mask = |range: &std::ops::Range<u32>| ((1u128 << range.len()) - 1) << range.start;
    bits & mask(&MODIFIERS[1])
}

/// Samples of each opcode by their modifiers.
type Samples = BTreeMap<u16, BTreeMap<u128, u128>>;

impl Miner<'_> {
    /// Fits the opcodes of which the corpus has an instruction that the table lacks or gets wrong.
    fn derive(&self, corpus: &Corpus, table: &mut Table) -> Result<(), Error> {
        let open = corpus.open(table);
        let mut samples = Samples::new();
        for (opcode, seen) in corpus.seen() {
            if !open.contains_key(opcode) {
                continue;
            }
            let of_opcode = samples.entry(*opcode).or_default();
            for seen in seen {
                let bits = plain(seen.bits);
                of_opcode.entry(modifiers(bits)).or_insert(bits);
            }
        }
        let keys = self.keys(&samples)?;
        let mut jobs = first_jobs(&samples, &keys);
        jobs.extend(known_rows(table, &samples));
        for round in 0..ROUNDS {
            self.fit_into(corpus, table, &keys, &jobs)?;
            let open = corpus.open(table);
            eprintln!(
                "round {round}: {} instructions fitted, {} opcodes open",
                jobs.len(),
                open.len()
            );
            jobs = further_jobs(&samples, &keys, &open);
            if jobs.is_empty() {
                break;
            }
            jobs.extend(known_rows(table, &samples));
        }
        Ok(())
    }

    /// Fits the instructions and puts the entries of their opcodes into the table, where they do better
    /// than what is there.
    fn fit_into(
        &self,
        corpus: &Corpus,
        table: &mut Table,
        keys: &Keys,
        jobs: &[u128],
    ) -> Result<(), Error> {
        let mut fits: BTreeMap<u16, Vec<(u128, Fitted)>> = BTreeMap::new();
        let mut reasons: BTreeMap<(u16, String), u64> = BTreeMap::new();
        for (bits, fitted) in jobs.iter().zip(fit::fit(&self.bench, self.sm, jobs)?) {
            let opcode = OPCODE.get(*bits);
            match fitted {
                Ok(fitted) => fits.entry(opcode).or_default().push((*bits, fitted)),
                Err(reason) => *reasons.entry((opcode, reason)).or_default() += 1,
            }
        }
        for ((opcode, reason), count) in reasons {
            eprintln!("{opcode:#05x}, {count} times: {reason}");
        }
        let made: Vec<_> = fits
            .par_iter()
            .map(|(opcode, fits)| {
                let key = keys.bits.get(opcode).into_iter().flatten().copied();
                (*opcode, entry(self.sm, fits, &key.collect::<Vec<u8>>()))
            })
            .collect();
        for (opcode, made) in made {
            match made {
                Ok(entry) => self.improve(corpus, table, opcode, entry),
                Err(reason) => eprintln!("{opcode:#05x}: {reason}"),
            }
        }
        Ok(())
    }

    fn improve(&self, corpus: &Corpus, table: &mut Table, opcode: u16, entry: Entry) {
        let known = table.entries().get(&opcode);
        let known = known.map(|known| corpus.score(table, opcode, known));
        if known.is_none_or(|known| known < corpus.score(table, opcode, &entry)) {
            table.insert(opcode, entry);
        }
    }

    /// Flips the bits of samples.
    fn keys(&self, samples: &Samples) -> Result<Keys, Error> {
        let mut probes = Vec::new();
        for samples in samples.values() {
            let step = samples.len().div_ceil(KEY_SAMPLES);
            for &bits in samples.values().step_by(step) {
                let base = fit::spread_predicates(bits);
                probes.push((bits, None, base));
                for bit in MODIFIERS.into_iter().flatten() {
                    probes.push((bits ^ 1 << bit, Some(bit), base ^ 1 << bit));
                }
            }
        }
        let code: Vec<u128> = probes.iter().map(|probe| probe.2).collect();
        let readings = self.bench.read(&code)?;
        let mut keys = Keys::default();
        let mut base = None;
        for ((bits, flipped, _), reading) in probes.iter().zip(readings) {
            let shape = reading.map(|reading| shape(&reading.marks));
            let Some(bit) = flipped else {
                base = shape;
                continue;
            };
            if let (Some(base), Some(shape)) = (&base, shape)
                && *base != shape
            {
                let opcode = OPCODE.get(*bits);
                keys.bits.entry(opcode).or_default().insert(*bit as u8);
                keys.valid.entry(opcode).or_default().push(*bits);
            }
        }
        Ok(keys)
    }
}

#[derive(Default)]
struct Keys {
    bits: BTreeMap<u16, BTreeSet<u8>>,
    valid: BTreeMap<u16, Vec<u128>>,
}

/// A few samples of every value of the key.
fn first_jobs(samples: &Samples, keys: &Keys) -> Vec<u128> {
    let mut jobs = Vec::new();
    for (opcode, samples) in samples {
        let key = keys.bits.get(opcode).into_iter().flatten().copied();
        let entry = Entry {
            key: key.collect(),
            ..Entry::default()
        };
        let mut taken: BTreeMap<u32, usize> = BTreeMap::new();
        let flips = keys.valid.get(opcode).into_iter().flatten();
        for &bits in samples.values().chain(flips) {
            let count = taken.entry(entry.key_of(bits)).or_default();
            if *count < FIRST_SAMPLES {
                *count += 1;
                jobs.push(bits);
            }
        }
    }
    jobs
}

/// For each row of the table, of an opcode of which there are samples, an instruction: a sample with the
/// row's key bits.
fn known_rows(table: &Table, samples: &Samples) -> Vec<u128> {
    let mut jobs = Vec::new();
    for (opcode, samples) in samples {
        let Some(entry) = table.entries().get(opcode) else {
            continue;
        };
        for &row in entry.rows.keys() {
            let with_key = |&bits: &u128| {
                let places = entry.key.iter().enumerate();
                places.fold(bits, |bits, (place, &at)| {
                    Field(u32::from(at), 1).set(bits, (row >> place) as u16 & 1)
                })
            };
            let sample = samples.values().find(|&&bits| entry.key_of(bits) == row);
            jobs.extend(sample.or(samples.values().next()).map(with_key));
        }
    }
    jobs
}

/// Many samples of the opcodes that are open, and the instructions that leave them open.
fn further_jobs(samples: &Samples, keys: &Keys, open: &BTreeMap<u16, Vec<&Seen>>) -> Vec<u128> {
    let mut jobs = Vec::new();
    for (opcode, culprits) in open {
        let flips = keys.valid.get(opcode).into_iter().flatten().copied();
        let samples: Vec<u128> = samples.get(opcode).map_or_else(Vec::new, |samples| {
            let step = samples.len().div_ceil(FIT_SAMPLES).max(1);
            samples.values().step_by(step).copied().collect()
        });
        let step = culprits.len().div_ceil(FIT_SAMPLES).max(1);
        let culprits = culprits.iter().step_by(step).map(|seen| plain(seen.bits));
        let all: BTreeSet<u128> = samples.into_iter().chain(culprits).chain(flips).collect();
        jobs.extend(all);
    }
    jobs
}

/// How many registers of each file are written, and how many are read; numbers aside.
fn shape(marks: &[(File, u16, Mark)]) -> BTreeMap<(File, bool), u32> {
    let mut shape = BTreeMap::new();
    for (file, _, mark) in marks {
        *shape.entry((*file, true)).or_default() += u32::from(mark.defines());
        *shape.entry((*file, false)).or_default() += u32::from(mark.uses());
    }
    shape.retain(|_, count| *count > 0);
    shape
}

/// The rows of one opcode: by the key that flips showed, as far as the samples need it, or by one made
/// from nothing if that is shorter.
fn entry(sm: u32, fits: &[(u128, Fitted)], known: &[u8]) -> Result<Entry, String> {
    let taken = registers(sm, fits);
    let free = known.iter().copied().filter(|&bit| taken >> bit & 1 == 0);
    let find = |known: Vec<u8>, taken: u128| {
        let key = key(fits, known, taken)?;
        Ok::<_, String>(shortened(fits, key))
    };
    // A register's number decides nothing, unless nothing else tells the forms apart.
    let keys = [find(free.collect(), taken), find(Vec::new(), taken)];
    let shortest = keys.into_iter().flatten().min_by_key(Vec::len);
    let key = match shortest {
        Some(key) => key,
        None => find(known.to_vec(), 0).or_else(|_| find(Vec::new(), 0))?,
    };
    let mut entry = Entry {
        key,
        ..Entry::default()
    };
    for (bits, fitted) in fits {
        entry.name.clone_from(&fitted.name);
        entry.guard = entry.guard.or(fitted.guard);
        let row = Row {
            slots: fitted.slots.clone(),
            confirmed: 0,
        };
        entry.rows.insert(entry.key_of(*bits), row);
    }
    Ok(entry)
}

/// The key made longer: where samples of one key differ, the bit that settles most of the differences
/// joins it.
fn key(fits: &[(u128, Fitted)], mut key: Vec<u8>, taken: u128) -> Result<Vec<u8>, String> {
    loop {
        key.sort_unstable();
        let conflicts = conflicts(fits, &key);
        if conflicts == 0 && key.len() <= MOST_KEY_BITS {
            return Ok(key);
        }
        let better = |bits: &mut dyn Iterator<Item = u32>| {
            let more = bits.map(|bit| bit as u8);
            let more = more.filter(|bit| !key.contains(bit) && taken >> bit & 1 == 0);
            let best = more.map(|bit| (self::conflicts(fits, &[&key[..], &[bit]].concat()), bit));
            best.min().filter(|(fewer, _)| *fewer < conflicts)
        };
        let first = better(&mut MODIFIERS.into_iter().flatten());
        let last = better(&mut LAST_FIELD.clone());
        // A modifier before a bit of the last field, unless that bit alone settles everything.
        let best = last
            .filter(|&(left, _)| left == 0 && first.is_none_or(|(left, _)| left > 0))
            .or(first)
            .or(last);
        match best {
            Some((_, bit)) if key.len() < MOST_KEY_BITS => key.push(bit),
            _ => return Err(format!("no key tells its forms apart (so far {key:?})")),
        }
    }
}

/// The bits that name general and uniform registers in some sample.
fn registers(sm: u32, fits: &[(u128, Fitted)]) -> u128 {
    let table = Table::new(sm);
    let slots = fits.iter().flat_map(|(_, fitted)| &fitted.slots);
    let wide = slots.filter(|s| matches!(s.file, sass::File::Gpr | sass::File::Uniform));
    wide.fold(0, |bits, slot| table.field(*slot).set(bits, u16::MAX))
}

/// The key without what the samples do not need: flips of predicate numbers look like modifiers now and
/// then.
fn shortened(fits: &[(u128, Fitted)], mut key: Vec<u8>) -> Vec<u8> {
    let mut at = key.len();
    while at > 0 {
        at -= 1;
        let mut fewer = key.clone();
        fewer.remove(at);
        if conflicts(fits, &fewer) == 0 {
            key = fewer;
        }
    }
    key
}

/// Samples whose operands differ from those of the first sample with the same key.
fn conflicts(fits: &[(u128, Fitted)], key: &[u8]) -> usize {
    let entry = Entry {
        key: key.to_vec(),
        ..Entry::default()
    };
    let mut first: BTreeMap<u32, &Fitted> = BTreeMap::new();
    let differ = fits.iter().filter(|(bits, fitted)| {
        first.entry(entry.key_of(*bits)).or_insert(fitted).slots != fitted.slots
    });
    differ.count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(key: &str, rows: &str) -> Entry {
        let text = format!("opcode 0x98e RED @P key {key}\n{rows}");
        let table = Table::read(90, &[&text]).unwrap();
        table.entries().values().next().unwrap().clone()
    }

    #[test]
    fn what_the_corpus_does_not_show_stays() {
        let old = entry("73,91", "0x0 R24v2 R32v1 7\n0x3 R24v2 R32v2 UR64v2 5\n");
        let new = entry("73,91", "0x0 R24v2 R32v1 2\n0x1 R24v2 R32v2 1\n");
        let both = entry(
            "73,91",
            "0x0 R24v2 R32v1 9\n0x1 R24v2 R32v2 1\n0x3 R24v2 R32v2 UR64v2 5\n",
        );
        assert_eq!(carried(&old, new), both);
        // What was asked of nvdisasm alone counts no sightings, and takes none away.
        let asked = entry(
            "73,91",
            "0x0 R24v2 R32v1 2\n0x1 R24v2 R32v2 1\n0x3 R24v2 R32v2 UR64v2 0\n",
        );
        assert_eq!(carried(&old, asked), both);
        // Another bit tells more apart: rows that are found again keep their sightings.
        let more = entry(
            "73,74,91",
            "0x0 R24v2 R32v1 2\n0x5 R24v2 R32v2 UR64v2 1\n0x2 R24v2 R32v2 1\n",
        );
        let sum = entry(
            "73,74,91",
            "0x0 R24v2 R32v1 9\n0x5 R24v2 R32v2 UR64v2 6\n0x2 R24v2 R32v2 1\n",
        );
        assert_eq!(carried(&old, more), sum);
        // It lacks one, or does not know which one it was.
        let less = entry("74,91", "0x0 R24v2 R32v1 2\n");
        assert_eq!(carried(&old, less), old);
        let twice = entry(
            "73,74,91",
            "0x0 R24v2 R32v1 2\n0x2 R24v2 R32v1 2\n0x5 R24v2 R32v2 UR64v2 1\n",
        );
        assert_eq!(carried(&old, twice), old);
    }
}
