//! The promises of the binary level, checked on one cubin after another.
//!
//! * Round trip ([`warpwright_sass::roundtrip`]): container, views, decoding and encoding, text form.
//! * The edit layer: a NOP before each instruction of a function can be inserted, and taking them out gives
//!   back the bytes; or the edit layer refuses, by name.
//! * Liveness: the same registers as in nvdisasm's life ranges, at every instruction of every function
//!   whose instructions all have roles. A difference that [`Known`] explains is counted, any other fails.

use std::path::Path;

use rayon::prelude::*;
use warpwright_driver::life_ranges::{LifeRangeError, Outcome, compare_cubin};
use warpwright_sass::{Edit, Elf, Instruction, roundtrip};
use warpwright_toolkit::{Nvdisasm, ToolError};

use super::known::Known;
use super::results::{Results, Row};
use crate::Error;

const NOP: u128 = 0x000f_e200_0000_0000_0000_0000_0000_7918;

/// What is needed to check liveness.
#[derive(Clone, Copy)]
pub struct Oracle<'a> {
    /// The other opinion.
    pub nvdisasm: Nvdisasm<'a>,
    /// Differences that are explained.
    pub known: &'a Known,
    /// Larger cubins are not compared; bytes.
    pub largest: u64,
}

/// Checks all `.cubin` files below a directory.
///
/// # Errors
/// A file cannot be read, or there is none.
pub fn check_dir(dir: &Path, oracle: Option<Oracle<'_>>) -> Result<Results, Error> {
    let files = crate::files_below(dir, "cubin")?;
    if files.is_empty() {
        return Err(Error::Empty(dir.to_path_buf()));
    }
    let checked = files.par_iter().map(|path| {
        let bytes = std::fs::read(path).map_err(|e| Error::io(path, e))?;
        let name = path.strip_prefix(dir).unwrap_or(path).display().to_string();
        Ok(check(&name, &bytes, oracle))
    });
    let mut results = Results::default();
    for row in checked.collect::<Vec<Result<Row, Error>>>() {
        results.add(row?);
    }
    if let Some(oracle) = oracle {
        let version = oracle.nvdisasm.tool().version();
        results.nvdisasm = version.map(ToString::to_string).unwrap_or_default();
    }
    Ok(results)
}

/// Checks one cubin; what fails is in the row.
pub fn check(name: &str, bytes: &[u8], oracle: Option<Oracle<'_>>) -> Row {
    let mut row = Row {
        cubins: 1,
        ..Row::default()
    };
    let mut errors = Vec::new();
    if let Err(error) = check_into(&mut row, &mut errors, bytes, oracle) {
        errors.push(error);
    }
    let failures = errors.into_iter().map(|error| format!("{name}: {error}"));
    row.failures.extend(failures);
    row
}

fn check_into(
    row: &mut Row,
    errors: &mut Vec<String>,
    bytes: &[u8],
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
    if let Some(oracle) = oracle
        && bytes.len() as u64 <= oracle.largest
    {
        check_liveness(row, errors, bytes, oracle)?;
    }
    Ok(())
}

fn check_liveness(
    row: &mut Row,
    errors: &mut Vec<String>,
    bytes: &[u8],
    oracle: Oracle<'_>,
) -> Result<(), String> {
    let mut leave_out = |why: String| {
        let functions = row.functions;
        *row.liveness.left_out.entry(why).or_default() += functions;
    };
    let compared = match compare_cubin(oracle.nvdisasm, bytes) {
        Ok(compared) => compared,
        Err(error @ LifeRangeError::NoTable(_)) => {
            leave_out(error.to_string());
            return Ok(());
        }
        // It contradicts the tools' own product: not our business.
        Err(LifeRangeError::Tool(ToolError::Rejected { diagnostics, .. })) => {
            let why = diagnostics.first().map_or("", |d| d.message.as_str());
            leave_out(format!("nvdisasm refuses ptxas's file: {why}"));
            return Ok(());
        }
        Err(error) => return Err(error.to_string()),
    };
    for function in compared {
        let live = &mut row.liveness;
        match function.outcome {
            Outcome::Agrees { contradictions } => {
                live.functions += 1;
                live.instructions += function.instructions as u64;
                live.contradictions += contradictions as u64;
            }
            Outcome::Opaque(instructions) => {
                live.opaque += 1;
                for (_, text) in instructions {
                    *live.unknown.entry(mnemonic(&text)).or_default() += 1;
                }
            }
            Outcome::LeftOut(why) => *live.left_out.entry(class(&why)).or_default() += 1,
            Outcome::Differs(differences) => {
                match oracle.known.explains(row.sm, &function.name, &differences) {
                    Some(why) => *live.explained.entry(why.to_owned()).or_default() += 1,
                    None => {
                        live.differing += 1;
                        let first = differences.first();
                        errors.push(format!(
                            "{}: {} differences in liveness, first: {first:?}",
                            function.name,
                            differences.len()
                        ));
                    }
                }
            }
        }
    }
    Ok(())
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
