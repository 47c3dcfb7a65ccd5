//! What a device gave against the emulator, form by form.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::values::THREADS;
use super::{Entry, Manifest, digest, emulate};

/// What `bench/forms.py` writes beside the raw words.
#[derive(Debug, Deserialize)]
struct Run {
    gpu: String,
    /// Forms whose digest is another: kernel, form, and where their words begin in `raw.bin`.
    differing: Vec<(usize, usize, usize)>,
    /// Kernels that failed, and how.
    failed: Vec<(String, String)>,
}

/// A form that differs.
#[derive(Debug, Serialize)]
pub struct Difference {
    /// The instruction.
    pub text: String,
    /// Hardware only approximates it: the rest is for the reader.
    pub approximate: bool,
    /// Words that differ.
    pub words: usize,
    /// The largest distance of two words, read as whole numbers.
    pub distance: u64,
    /// The first few: thread, word, operands, and both values.
    pub examples: Vec<String>,
}

/// What a run on a device came to.
#[derive(Debug, Serialize)]
pub struct Comparison {
    /// The device.
    pub gpu: String,
    /// Kernels that failed, and how.
    pub failed: Vec<(String, String)>,
    /// Forms that differ, the exact ones first.
    pub differences: Vec<Difference>,
}

/// The differences of a run on a device.
///
/// # Errors
/// A file is missing or no result of this campaign.
pub fn compare(folder: &Path, result: &Path) -> Result<Comparison, String> {
    let read = |path: &Path| std::fs::read(path).map_err(|e| format!("{}: {e}", path.display()));
    let manifest: Manifest =
        serde_json::from_slice(&read(&folder.join("forms.json"))?).map_err(|e| e.to_string())?;
    let found: Run =
        serde_json::from_slice(&read(&result.join("result.json"))?).map_err(|e| e.to_string())?;
    let raw = read(&result.join("raw.bin"))?;
    let operands = read(&folder.join("operands.bin"))?;
    let mut all = Vec::new();
    for (number, kernel) in manifest.kernels.iter().enumerate() {
        let differing = found.differing.iter().filter(|&&(of, ..)| of == number);
        let at: BTreeMap<usize, usize> = differing.map(|&(_, form, at)| (form, at)).collect();
        let text = read(&folder.join(format!("{}.ptx", kernel.name)))?;
        let text = String::from_utf8(text).map_err(|e| e.to_string())?;
        if found.failed.iter().any(|(name, _)| *name == kernel.name) {
            continue;
        }
        let Ok(run) = emulate(&text, kernel.words, &operands)? else {
            // Something is refused or a fault by now.
            continue;
        };
        for (form, entry) in kernel.forms.iter().enumerate() {
            let bytes = entry.words * THREADS * 8;
            let ours = run.output.get(entry.at * THREADS * 8..).unwrap_or_default();
            let ours = ours.get(..bytes).ok_or("the output is too short")?;
            match at.get(&form) {
                Some(&at) => {
                    let theirs = raw.get(at..at + bytes).ok_or("raw.bin is too short")?;
                    all.extend(
                        (ours != theirs).then(|| difference(entry, &operands, ours, theirs)),
                    );
                }
                None if digest(ours) != entry.digest => all.push(Difference::unseen(entry)),
                None => {}
            }
        }
    }
    all.sort_by_key(|d| d.approximate);
    Ok(Comparison {
        gpu: found.gpu,
        failed: found.failed,
        differences: all,
    })
}

impl Difference {
    /// The device agreed with what the emulator gave then.
    fn unseen(entry: &Entry) -> Difference {
        Difference {
            text: entry.text.clone(),
            approximate: entry.approximate,
            words: 0,
            distance: 0,
            examples: vec!["no longer what the device agreed with".into()],
        }
    }
}

fn difference(entry: &Entry, operands: &[u8], ours: &[u8], theirs: &[u8]) -> Difference {
    let words = |bytes: &[u8]| -> Vec<u64> {
        bytes
            .chunks_exact(8)
            .map(|c| u64::from_le_bytes(c.try_into().unwrap_or_default()))
            .collect()
    };
    let (ours, theirs) = (words(ours), words(theirs));
    let wrong: Vec<usize> = (0..ours.len()).filter(|&i| ours[i] != theirs[i]).collect();
    let show = |&i: &usize| {
        let (word, thread) = (i / THREADS, i % THREADS);
        let operands: Vec<String> = entry
            .operands
            .iter()
            .map(|(name, sort, place)| {
                format!("{name}={:#x}", operand(operands, sort, *place, thread))
            })
            .collect();
        format!(
            "thread {thread} word {word} ({}): emulator {:#x}, device {:#x}",
            operands.join(" "),
            ours[i],
            theirs[i]
        )
    };
    Difference {
        text: entry.text.clone(),
        approximate: entry.approximate,
        words: wrong.len(),
        distance: wrong
            .iter()
            .map(|&i| ours[i].abs_diff(theirs[i]))
            .max()
            .unwrap_or(0),
        examples: wrong.iter().take(4).map(show).collect(),
    }
}

fn operand(table: &[u8], sort: &str, place: usize, thread: usize) -> u64 {
    super::values::named(sort).map_or(0, |sort| super::values::read(table, sort, place, thread))
}
