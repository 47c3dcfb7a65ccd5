//! The promises of the binary level, checked on one cubin after another.
//!
//! * Round trip ([`warpwright_sass::roundtrip`]): container, views, decoding and encoding, text form.
//! * The edit layer: a NOP before each instruction of a function can be inserted, and taking them out gives
//!   back the bytes; or the edit layer refuses, by name.
//! * Liveness: the same registers as in nvdisasm's life ranges, at every instruction of every function
//!   whose instructions all have roles. A difference that [`Known`] explains is counted, any other fails.
//!   A cubin for which nvdisasm takes too long is left out, and said to be.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use rayon::prelude::*;
use warpwright_driver::life_ranges::{Compared, LifeRangeError, Outcome, compare_cubin};
use warpwright_sass::{Edit, Elf, Instruction, roundtrip};
use warpwright_toolkit::{Nvdisasm, ToolError};

use super::known::Known;
use super::results::{Results, Row, Share};
use crate::Error;

const NOP: u128 = 0x000f_e200_0000_0000_0000_0000_0000_7918;

/// What is needed to check liveness.
#[derive(Clone, Copy)]
pub struct Oracle<'a> {
    /// The other opinion.
    pub nvdisasm: Nvdisasm<'a>,
    /// Differences that are explained.
    pub known: &'a Known,
    /// nvdisasm's time for one cubin.
    pub limit: Duration,
}

/// Checks all `.cubin` files below a directory, the largest first, as many at once as there are processors.
///
/// # Errors
/// A file cannot be read, or there is none.
pub fn check_dir(dir: &Path, oracle: Option<Oracle<'_>>) -> Result<Results, Error> {
    let files = crate::files_below(dir, "cubin")?;
    if files.is_empty() {
        return Err(Error::Empty(dir.to_path_buf()));
    }
    let progress = Mutex::new(Progress::new(&files)?);
    // The last file to be done shall be a small one.
    let checked = by_size(&files)?.into_iter().par_bridge().map(|at| {
        let path = &files[at];
        let bytes = std::fs::read(path).map_err(|e| Error::io(path, e))?;
        let name = path.strip_prefix(dir).unwrap_or(path).display().to_string();
        let row = check(&name, &bytes, oracle);
        if let Ok(mut progress) = progress.lock() {
            progress.add(bytes.len() as u64);
        }
        Ok((at, row))
    });
    let mut checked = checked.collect::<Result<Vec<(usize, Row)>, Error>>()?;
    checked.sort_unstable_by_key(|(at, _)| *at);
    let mut results = Results::default();
    checked.into_iter().for_each(|(_, row)| results.add(row));
    if let Some(oracle) = oracle {
        let version = oracle.nvdisasm.tool().version();
        results.nvdisasm = version.map(ToString::to_string).unwrap_or_default();
    }
    Ok(results)
}

fn size(path: &PathBuf) -> Result<u64, Error> {
    let found = std::fs::metadata(path).map_err(|e| Error::io(path, e))?;
    Ok(found.len())
}

/// Which file is the largest, the next, and so on.
fn by_size(files: &[PathBuf]) -> Result<Vec<usize>, Error> {
    let mut sizes = Vec::new();
    for (at, path) in files.iter().enumerate() {
        sizes.push((std::cmp::Reverse(size(path)?), at));
    }
    sizes.sort_unstable();
    Ok(sizes.into_iter().map(|(_, at)| at).collect())
}

/// Says now and then on stderr how far the check is.
struct Progress {
    files: usize,
    bytes: u64,
    done: (usize, u64),
    start: Instant,
    told: Instant,
}

impl Progress {
    const PAUSE: Duration = Duration::from_secs(5);

    fn new(files: &[PathBuf]) -> Result<Progress, Error> {
        let now = Instant::now();
        Ok(Progress {
            files: files.len(),
            bytes: files.iter().map(size).sum::<Result<u64, Error>>()?,
            done: (0, 0),
            start: now,
            told: now,
        })
    }

    fn add(&mut self, bytes: u64) {
        self.done.0 += 1;
        self.done.1 += bytes;
        let all = self.done.0 == self.files;
        if all || self.told.elapsed() >= Self::PAUSE {
            self.told = Instant::now();
            let (files, bytes) = self.done;
            let mega = |bytes: u64| bytes as f64 / 1e6;
            eprintln!(
                "{files} of {} cubins, {:.1} of {:.1} MB, {:.0} s",
                self.files,
                mega(bytes),
                mega(self.bytes),
                self.start.elapsed().as_secs_f64()
            );
        }
    }
}

/// Checks one cubin; what fails is in the row.
pub fn check(name: &str, bytes: &[u8], oracle: Option<Oracle<'_>>) -> Row {
    let mut row = Row {
        cubins: 1,
        ..Row::default()
    };
    let mut errors = Vec::new();
    if let Err(error) = check_into(&mut row, &mut errors, (name, bytes), oracle) {
        errors.push(error);
    }
    let failures = errors.into_iter().map(|error| format!("{name}: {error}"));
    row.failures.extend(failures);
    row
}

fn check_into(
    row: &mut Row,
    errors: &mut Vec<String>,
    (name, bytes): (&str, &[u8]),
    oracle: Option<Oracle<'_>>,
) -> Result<(), String> {
    let text = |e: warpwright_sass::ElfError| e.to_string();
    let elf = Elf::parse(bytes).map_err(text)?;
    (row.ptxas, row.sm) = (ptxas(&elf), elf.target().sm);
    let found = roundtrip::check(bytes).map_err(text)?;
    row.identical = u64::from(found.broken.is_empty());
    for broken in found.broken {
        let function = broken.function.unwrap_or_default();
        errors.push(format!("{function}: {}", broken.reason));
    }
    for function in &found.functions {
        row.functions += 1;
        row.instructions += function.instructions as u64;
        row.opaque += function.opaque as u64;
        match there_and_back(&elf, &function.name)? {
            None => row.edited += 1,
            Some(why) => *row.refused.entry(why).or_default() += 1,
        }
    }
    row.kernels = elf
        .symbols()
        .map_err(text)?
        .iter()
        .filter(|s| s.is_kernel())
        .count() as u64;
    if let Some(oracle) = oracle {
        check_liveness(row, errors, (name, bytes), oracle)?;
    }
    Ok(())
}

fn check_liveness(
    row: &mut Row,
    errors: &mut Vec<String>,
    (name, bytes): (&str, &[u8]),
    oracle: Oracle<'_>,
) -> Result<(), String> {
    let all = Share {
        functions: row.functions,
        instructions: row.instructions,
    };
    let compared = match compare_cubin(oracle.nvdisasm, bytes, oracle.limit) {
        Ok(compared) => compared,
        Err(error @ LifeRangeError::NoTable(_)) => {
            row.liveness.leave_out(error.to_string(), all);
            return Ok(());
        }
        Err(LifeRangeError::Tool(ToolError::Timeout { .. })) => {
            let limit = oracle.limit.as_secs();
            let why = format!("{name}: nvdisasm took longer than {limit} seconds");
            row.liveness.leave_out(why, all);
            return Ok(());
        }
        // It contradicts the tools' own product: not our business.
        Err(LifeRangeError::Tool(ToolError::Rejected { diagnostics, .. })) => {
            let why = diagnostics.first().map_or("", |d| d.message.as_str());
            let why = format!("nvdisasm refuses ptxas's file: {why}");
            row.liveness.leave_out(why, all);
            return Ok(());
        }
        Err(error) => return Err(error.to_string()),
    };
    for function in compared {
        count(row, errors, function, oracle.known);
    }
    Ok(())
}

/// Adds what came of one function.
fn count(row: &mut Row, errors: &mut Vec<String>, function: Compared, known: &Known) {
    let live = &mut row.liveness;
    let one = Share {
        functions: 1,
        instructions: function.instructions as u64,
    };
    live.not_shown += function.not_shown as u64;
    match function.outcome {
        Outcome::Agrees { by_rule } => {
            live.agreeing.add(one);
            live.by_rule += by_rule as u64;
            live.functions_by_rule += u64::from(by_rule > 0);
        }
        Outcome::Opaque(instructions) => {
            live.opaque.add(one);
            for (_, text) in instructions {
                *live.unknown.entry(mnemonic(&text)).or_default() += 1;
            }
        }
        Outcome::LeftOut(why) => live.leave_out(class(&why), one),
        Outcome::Differs(differences) => {
            if let Some(why) = known.explains(row.sm, &function.name, &differences) {
                live.explained.add(one);
                *live.reasons.entry(why.to_owned()).or_default() += 1;
                return;
            }
            live.differing.add(one);
            let first = differences.first();
            errors.push(format!(
                "{}: {} differences in liveness, first: {first:?}",
                function.name,
                differences.len()
            ));
        }
    }
}

/// The mnemonic with its first modifier.
fn mnemonic(text: &str) -> String {
    let word = text.split_whitespace().find(|word| !word.starts_with('@'));
    let parts: Vec<&str> = word.unwrap_or("?").split('.').take(2).collect();
    parts.join(".")
}

/// Inserts a NOP before every instruction and deletes them again; the reason if it is refused.
fn there_and_back(elf: &Elf, name: &str) -> Result<Option<String>, String> {
    let text = |e: warpwright_sass::ElfError| e.to_string();
    let kernel = elf.kernel(name).map_err(text)?;
    let code = elf.instructions(&kernel).map_err(text)?;
    let nop = Instruction::new(elf.target().sm, NOP);
    let padding = code.iter().rev();
    let padding = padding
        .take_while(|i| i.operation() == nop.operation())
        .count();
    let real = code.len() - padding;
    let mut edit = Edit::new();
    (0..real).for_each(|at| edit.insert_before(at, [nop]));
    let mut moved = elf.clone();
    if let Err(why) = edit.apply(&mut moved, name) {
        return Ok(Some(class(&why.to_string())));
    }
    let mut edit = Edit::new();
    (0..real).for_each(|at| edit.delete(2 * at));
    let back = edit.apply(&mut moved, name).map_err(text);
    back.map_err(|why| format!("{name} cannot be edited back: {why}"))?;
    match moved.write().map_err(text)? == elf.write().map_err(text)? {
        true => Ok(None),
        false => Err(format!("{name} comes back changed")),
    }
}

/// The reason without names and addresses.
fn class(why: &str) -> String {
    let why = why.rsplit(": ").next().unwrap_or(why);
    let words = why.split(' ').filter(|w| !w.starts_with("0x"));
    let words: Vec<&str> = words.collect();
    words
        .join(" ")
        .trim_end_matches(" at")
        .replace(" at is", " is")
}

/// The release of ptxas, from the note that it leaves.
fn ptxas(elf: &Elf) -> String {
    let note = elf.section(".note.nv.tkinfo").map(|s| s.data.as_slice());
    let text = String::from_utf8_lossy(note.unwrap_or_default()).into_owned();
    let release = text.split("release ").nth(1);
    let release = release.and_then(|r| r.split(',').next());
    release.unwrap_or("unknown").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_lose_their_places() {
        assert_eq!(class("k: BRX at 0x190"), "BRX");
        let call = "k: the return address of CALL.REL at 0x20 is not found";
        assert_eq!(class(call), "the return address of CALL.REL is not found");
    }

    #[test]
    fn unknown_instructions_by_mnemonic() {
        assert_eq!(mnemonic("@!P0 TEX.B.LL R0, R2"), "TEX.B");
        assert_eq!(mnemonic("NOP"), "NOP");
    }
}
