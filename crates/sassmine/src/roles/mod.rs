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

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use warpwright_sass::roles::{CONTROL, Entry, OPCODE, Row, Table};
use warpwright_toolkit::Toolkit;
use warpwright_toolkit::life_ranges::{File, Mark};

use crate::Error;
use crate::bench::Bench;
use crate::code;
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

/// Mines the corpus and writes the table; returns a summary in words.
pub fn run(toolkit: &Toolkit, corpus: &[PathBuf], output: &Path) -> Result<String, Error> {
    let nvdisasm = toolkit.nvdisasm()?;
    let cubins = code::read_all(corpus)?;
    let first = cubins
        .first()
        .ok_or_else(|| Error::Input(corpus[0].clone(), "no cubin there".to_owned()))?;
    if let Some(other) = cubins.iter().find(|cubin| cubin.sm != first.sm) {
        return Err(Error::Input(
            other.path.clone(),
            "another architecture".to_owned(),
        ));
    }
    let miner = Miner {
        bench: Bench::new(nvdisasm, &first.bytes),
        sm: first.sm,
    };
    let corpus = Corpus::read(nvdisasm, &cubins)?;
    let mut table = miner.derive(&corpus)?;
    let checked = corpus.confirm(&mut table);
    let version = nvdisasm.tool().version()?;
    let text = format!(
        "# Roles of sm_{}, by `warpwright-sassmine roles` with nvdisasm {version}.\n{table}",
        first.sm
    );
    std::fs::write(output, text).map_err(|error| Error::File(output.to_owned(), error))?;
    Ok(checked)
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
    fn derive(&self, corpus: &Corpus) -> Result<Table, Error> {
        let control = Table::read(self.sm, &[CONTROL])
            .map_err(|error| Error::Input("control.txt".into(), error.to_string()))?;
        let mut samples = Samples::new();
        for seen in corpus.seen() {
            let bits = plain(seen.bits);
            let opcode = OPCODE.get(bits);
            if !control.entries().contains_key(&opcode) {
                let of_opcode = samples.entry(opcode).or_default();
                of_opcode.entry(modifiers(bits)).or_insert(bits);
            }
        }
        let keys = self.keys(&samples)?;
        let mut table = Table::new(self.sm);
        let mut jobs = first_jobs(&samples, &keys);
        for round in 0..ROUNDS {
            self.fit_into(&mut table, &keys, &jobs)?;
            let open = corpus.open(&table);
            eprintln!(
                "round {round}: {} instructions fitted, {} opcodes open",
                jobs.len(),
                open.len()
            );
            jobs = further_jobs(&samples, &keys, &open);
            if jobs.is_empty() {
                break;
            }
        }
        Ok(table)
    }

    /// Fits the instructions and puts the entries of their opcodes into the table.
    fn fit_into(&self, table: &mut Table, keys: &Keys, jobs: &[u128]) -> Result<(), Error> {
        let mut fits: BTreeMap<u16, Vec<(u128, Fitted)>> = BTreeMap::new();
        for (bits, fitted) in jobs.iter().zip(fit::fit(&self.bench, self.sm, jobs)?) {
            let opcode = OPCODE.get(*bits);
            match fitted {
                Ok(fitted) => fits.entry(opcode).or_default().push((*bits, fitted)),
                Err(reason) => eprintln!("{opcode:#05x} {bits:#034x}: {reason}"),
            }
        }
        for (opcode, fits) in &fits {
            let key = keys.bits.get(opcode).into_iter().flatten().copied();
            match entry(fits, key.collect()) {
                Ok(entry) => table.insert(*opcode, entry),
                Err(reason) => eprintln!("{opcode:#05x}: {reason}"),
            }
        }
        Ok(())
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

/// Many samples of the opcodes that are open, and the instructions that leave them open.
fn further_jobs(samples: &Samples, keys: &Keys, open: &BTreeMap<u16, Vec<&Seen>>) -> Vec<u128> {
    let mut jobs = Vec::new();
    for (opcode, culprits) in open {
        let flips = keys.valid.get(opcode).into_iter().flatten().copied();
        let samples: Vec<u128> = samples.get(opcode).map_or_else(Vec::new, |samples| {
            let step = samples.len().div_ceil(FIT_SAMPLES).max(1);
            samples.values().step_by(step).copied().collect()
        });
        let culprits = culprits
            .iter()
            .take(FIT_SAMPLES)
            .map(|seen| plain(seen.bits));
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

/// The rows of one opcode. Where samples of one key differ, the bit that settles most of the differences
/// joins the key.
fn entry(fits: &[(u128, Fitted)], mut key: Vec<u8>) -> Result<Entry, String> {
    loop {
        key.sort_unstable();
        let conflicts = conflicts(fits, &key);
        if conflicts == 0 && key.len() <= MOST_KEY_BITS {
            break;
        }
        let better = |bits: &mut dyn Iterator<Item = u32>| {
            let more = bits.map(|bit| bit as u8).filter(|bit| !key.contains(bit));
            let best = more.map(|bit| (self::conflicts(fits, &[&key[..], &[bit]].concat()), bit));
            best.min().filter(|(fewer, _)| *fewer < conflicts)
        };
        let best = better(&mut MODIFIERS.into_iter().flatten());
        let best = best.or_else(|| better(&mut LAST_FIELD.clone()));
        match best {
            Some((_, bit)) if key.len() < MOST_KEY_BITS => key.push(bit),
            _ => return Err(format!("no key tells its forms apart (so far {key:?})")),
        }
    }
    // Flips of predicate numbers look like modifiers now and then: what the samples do not need goes.
    let mut at = key.len();
    while at > 0 {
        at -= 1;
        let mut fewer = key.clone();
        fewer.remove(at);
        if self::conflicts(fits, &fewer) == 0 {
            key = fewer;
        }
    }
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
