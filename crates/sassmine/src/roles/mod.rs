//! Derives the tables of roles: which registers each instruction reads and writes.
//!
//! 1. From the corpus, samples of every opcode are taken, one per combination of modifier bits.
//! 2. Which bits matter (the *key*): each bit of a sample is flipped; where that changes how many
//!    registers nvdisasm reports, or their file or role, the bit belongs to the key.
//! 3. For each value of the key that a sample or a flip shows, [`fit`] finds the operands by moving
//!    each field to registers of its own.
//! 4. The table is held against every instruction of the corpus; each row counts what confirmed it,
//!    and a row that an instruction contradicts is dropped and reported.

mod fit;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use warpwright_sass::roles::{self as sass, CONTROL, Entry, OPCODE, Row, Table};
use warpwright_toolkit::life_ranges::{self, File, Mark};
use warpwright_toolkit::{Nvdisasm, Toolkit};

use crate::Error;
use crate::bench::Bench;
use crate::code::{self, Cubin};
use fit::Fitted;
pub use fit::sass_file;

/// Samples of one opcode from which the key is found, and from which the operands are fitted.
const KEY_SAMPLES: usize = 10;
const FIT_SAMPLES: usize = 160;
/// More bits than this in a key mean that something was misunderstood.
const MOST_KEY_BITS: usize = 16;
/// Bits that may hold modifiers: not the opcode, the guard, the register fields, nor the control field.
const MODIFIERS: [std::ops::Range<u32>; 2] = [46..64, 72..105];

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
    let mut table = miner.derive(&cubins)?;
    let checked = confirm(nvdisasm, &mut table, &cubins)?;
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

impl Miner<'_> {
    fn derive(&self, cubins: &[Cubin]) -> Result<Table, Error> {
        let control = Table::read(self.sm, &[CONTROL])
            .map_err(|error| Error::Input("control.txt".into(), error.to_string()))?;
        let mut samples: BTreeMap<u16, BTreeMap<u128, u128>> = BTreeMap::new();
        for inst in cubins
            .iter()
            .flat_map(|cubin| &cubin.sections)
            .flat_map(|section| &section.1)
        {
            let bits = plain(inst.bits());
            let opcode = OPCODE.get(bits);
            if !control.entries().contains_key(&opcode) {
                samples
                    .entry(opcode)
                    .or_default()
                    .entry(modifiers(bits))
                    .or_insert(bits);
            }
        }
        let mut keys = self.keys(&samples)?;
        let mut jobs = Vec::new();
        for (opcode, samples) in &samples {
            let flips = keys.valid.get(opcode).into_iter().flatten();
            let step = samples.len().div_ceil(FIT_SAMPLES);
            jobs.extend(samples.values().step_by(step).chain(flips).copied());
        }
        let mut fits: BTreeMap<u16, Vec<(u128, Fitted)>> = BTreeMap::new();
        for (bits, fitted) in jobs.iter().zip(fit::fit(&self.bench, self.sm, &jobs)?) {
            let opcode = OPCODE.get(*bits);
            match fitted {
                Ok(fitted) => fits.entry(opcode).or_default().push((*bits, fitted)),
                Err(reason) => eprintln!("{opcode:#05x} {bits:#034x}: {reason}"),
            }
        }
        let mut table = Table::new(self.sm);
        for (opcode, fits) in &fits {
            let key = keys.bits.remove(opcode).unwrap_or_default();
            match entry(fits, key.into_iter().collect()) {
                Ok(entry) => table.insert(*opcode, entry),
                Err(reason) => eprintln!("{opcode:#05x}: {reason}"),
            }
        }
        Ok(table)
    }

    /// Flips the bits of samples.
    fn keys(&self, samples: &BTreeMap<u16, BTreeMap<u128, u128>>) -> Result<Keys, Error> {
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
        let more = MODIFIERS.into_iter().flatten().map(|bit| bit as u8);
        let more = more.filter(|bit| !key.contains(bit));
        let best = more
            .map(|bit| (self::conflicts(fits, &[&key[..], &[bit]].concat()), bit))
            .min();
        match best {
            Some((fewer, bit)) if fewer < conflicts && key.len() < MOST_KEY_BITS => key.push(bit),
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

/// Holds the table against all instructions of the corpus.
fn confirm(nvdisasm: Nvdisasm<'_>, table: &mut Table, cubins: &[Cubin]) -> Result<String, Error> {
    let (mut confirmed, mut unknown) = (0u64, BTreeMap::<u16, u64>::new());
    let mut wrong: BTreeMap<(u16, u32), (u64, String)> = BTreeMap::new();
    let control = Table::read(table_sm(cubins), &[CONTROL]).unwrap_or_default();
    for cubin in cubins {
        let sections = nvdisasm.life_ranges(&cubin.bytes)?;
        for section in &sections {
            let Some((_, code)) = cubin.sections.iter().find(|known| known.0 == section.name)
            else {
                continue;
            };
            for row in &section.rows {
                let Some(&inst) = code.get(row.offset as usize / 16) else {
                    continue;
                };
                let opcode = OPCODE.get(inst.bits());
                if control.entries().contains_key(&opcode) {
                    continue;
                }
                match table.roles(inst) {
                    None => *unknown.entry(opcode).or_default() += 1,
                    Some(roles) if agrees(&roles, row) => {
                        confirmed += 1;
                        if let Some(row) = table.row_mut(inst) {
                            row.confirmed += 1;
                        }
                    }
                    Some(_) => {
                        let key = table.entries()[&opcode].key_of(inst.bits());
                        let example = format!(
                            "{} at {:#x} of {}",
                            row.text,
                            row.offset,
                            cubin.path.display()
                        );
                        wrong.entry((opcode, key)).or_insert((0, example)).0 += 1;
                    }
                }
            }
        }
    }
    for ((opcode, key), (count, example)) in &wrong {
        eprintln!("contradicted {count} times: {opcode:#05x} key {key:#x}: {example}");
        if let Some(entry) = table.entries().get(opcode) {
            let mut entry = entry.clone();
            entry.rows.remove(key);
            table.insert(*opcode, entry);
        }
    }
    for (opcode, count) in &unknown {
        eprintln!("not in the table, {count} times: {opcode:#05x}");
    }
    let wrong: u64 = wrong.values().map(|wrong| wrong.0).sum();
    let unknown: u64 = unknown.values().sum();
    Ok(format!(
        "{confirmed} instructions confirm the table, {wrong} contradict it, {unknown} are not in it"
    ))
}

fn table_sm(cubins: &[Cubin]) -> u32 {
    cubins.first().map_or(0, |cubin| cubin.sm)
}

/// Do the roles name exactly the registers that nvdisasm marks as defined and used?
fn agrees(roles: &sass::Roles, row: &life_ranges::Row) -> bool {
    let mut ours: BTreeSet<(File, u16, bool)> = BTreeSet::new();
    for span in roles.spans() {
        if let Some(file) = fit::file_of(span.file) {
            ours.extend(
                span.registers()
                    .map(|r| (file, r, span.role == sass::Role::Def)),
            );
        }
    }
    let mut theirs = BTreeSet::new();
    for &(file, register, mark) in &row.marks {
        if mark.defines() {
            theirs.insert((file, register, true));
        }
        if mark.uses() {
            theirs.insert((file, register, false));
        }
    }
    ours == theirs
}
