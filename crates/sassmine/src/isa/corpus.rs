//! The distinct instructions of all cubins of an architecture, with nvdisasm's text for each.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use warpwright_sass::elf::Elf;
use warpwright_sass::isa::form::OPERATION;

use super::oracle::Oracle;
use super::{MineError, shape};

/// One instruction, regardless of its control field (operand reuse apart, which has a text).
#[derive(Debug)]
pub struct Instance {
    /// The bits with the control field of the first occurrence.
    pub bits: u128,
    /// Occurrences.
    pub count: u64,
    /// Where the oracle had it.
    pub address: u64,
    /// What the oracle says.
    pub text: String,
    /// The text's shape.
    pub shape: String,
}

impl Instance {
    /// Mnemonic and its modifiers, without the guard.
    pub fn name(&self) -> &str {
        let words = self.text.split(' ');
        words
            .into_iter()
            .find(|w| !w.starts_with('@'))
            .unwrap_or("")
    }
}

/// The instructions of an architecture.
#[derive(Debug)]
pub struct Corpus {
    /// Distinct instructions, by bits.
    pub instances: Vec<Instance>,
    /// Instructions in all.
    pub total: u64,
}

const REUSE: u128 = 0xf << 122;

impl Corpus {
    /// Reads all cubins below `folder` that are for architecture `sm`.
    pub fn load(folder: &Path, sm: u32, oracle: &mut Oracle<'_>) -> Result<Self, MineError> {
        let mut files = Vec::new();
        list(folder, &mut files)?;
        let mut words: BTreeMap<u128, (u128, u64)> = BTreeMap::new();
        for file in files {
            let bytes = std::fs::read(&file).map_err(|e| failure(&file, &e))?;
            for word in code(&bytes, sm) {
                let entry = words.entry(word & (OPERATION | REUSE)).or_insert((word, 0));
                entry.1 += 1;
            }
        }
        if words.is_empty() {
            return Err(MineError::Empty(sm));
        }
        let list: Vec<(u128, u64)> = words.into_values().collect();
        let bits: Vec<u128> = list.iter().map(|w| w.0).collect();
        let answers = oracle.ask(&bits)?;
        let instances = list
            .into_iter()
            .zip(answers)
            .filter_map(|((bits, count), answer)| {
                let answer = answer?;
                Some(Instance {
                    bits,
                    count,
                    address: answer.address,
                    shape: shape(&answer.text),
                    text: answer.text,
                })
            });
        let instances: Vec<Instance> = instances.collect();
        let total = instances.iter().map(|i| i.count).sum();
        Ok(Corpus { instances, total })
    }
}

fn failure(path: &Path, error: &std::io::Error) -> MineError {
    MineError::File {
        path: path.to_owned(),
        reason: error.to_string(),
    }
}

fn list(folder: &Path, out: &mut Vec<PathBuf>) -> Result<(), MineError> {
    let entries = std::fs::read_dir(folder).map_err(|e| failure(folder, &e))?;
    let mut paths = Vec::new();
    for entry in entries {
        paths.push(entry.map_err(|e| failure(folder, &e))?.path());
    }
    paths.sort();
    for path in paths {
        if path.is_dir() {
            list(&path, out)?;
        } else if path.extension().is_some_and(|e| e == "cubin") {
            out.push(path);
        }
    }
    Ok(())
}

/// All instructions of a cubin for `sm`; none if it is for another architecture.
fn code(bytes: &[u8], sm: u32) -> Vec<u128> {
    let Some(elf) = Elf::parse(bytes).ok().filter(|e| e.target().sm == sm) else {
        return Vec::new();
    };
    let texts = elf.sections.iter().filter(|s| s.name.starts_with(".text."));
    let mut words = Vec::new();
    for section in texts {
        let (chunks, _) = section.data.as_chunks::<16>();
        words.extend(chunks.iter().map(|c| u128::from_le_bytes(*c)));
    }
    words
}
