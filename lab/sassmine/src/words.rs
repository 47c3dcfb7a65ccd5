//! The distinct instructions of a corpus of cubins: how often each occurs, and where first.

use std::collections::HashMap;
use std::path::PathBuf;

use rayon::prelude::*;
use warpwright_sass::elf::Elf;

use crate::Error;
use crate::code::find_all;

/// One instruction, whatever the bits outside the mask.
#[derive(Debug, Clone, Copy)]
pub struct Word {
    /// Its bits, where it stands for the first time.
    pub bits: u128,
    /// Occurrences.
    pub count: u64,
    /// Number of the file in which it stands first, and the byte of the section.
    pub first: (usize, u64),
}

/// See the module.
pub struct Words {
    /// The files that were read, by name.
    pub files: Vec<PathBuf>,
    /// By the bits in the mask.
    pub words: Vec<Word>,
}

type Counts = HashMap<u128, Word>;

impl Words {
    /// Reads all cubins for `sm` among `paths` (folders are searched through; cubins for others are passed
    /// over); instructions that differ outside `mask` alone count as one.
    pub fn read(paths: &[PathBuf], sm: u32, mask: u128) -> Result<Words, Error> {
        let files = find_all(paths)?;
        let counts = files
            .par_iter()
            .enumerate()
            .map(|(index, file)| {
                let bytes = std::fs::read(file).map_err(|e| Error::File(file.clone(), e))?;
                Ok::<_, Error>(count(&bytes, sm, mask, index))
            })
            .try_reduce(Counts::new, |a, b| Ok(merge(a, b)))?;
        let mut words: Vec<(u128, Word)> = counts.into_iter().collect();
        words.sort_unstable_by_key(|word| word.0);
        let words = words.into_iter().map(|word| word.1).collect();
        Ok(Words { files, words })
    }

    /// Where a word stands for the first time.
    pub fn place(&self, word: &Word) -> String {
        let (file, offset) = word.first;
        let name = self.files.get(file).and_then(|path| path.file_name());
        let name = name.unwrap_or_default().to_string_lossy();
        format!("{offset:#x} of {name}")
    }
}

/// The code of one cubin; nothing if it is for another architecture or cannot be read.
fn count(bytes: &[u8], sm: u32, mask: u128, file: usize) -> Counts {
    let mut counts = Counts::new();
    let Some(elf) = Elf::parse(bytes).ok().filter(|e| e.target().sm == sm) else {
        return counts;
    };
    for section in elf.sections.iter().filter(|s| s.name.starts_with(".text.")) {
        for (at, raw) in section.data.as_chunks::<16>().0.iter().enumerate() {
            let bits = u128::from_le_bytes(*raw);
            let first = (file, at as u64 * 16);
            let new = Word {
                bits,
                count: 0,
                first,
            };
            counts.entry(bits & mask).or_insert(new).count += 1;
        }
    }
    counts
}

/// The sum; the earlier of two places counts, so that the order of the parts does not matter.
fn merge(mut large: Counts, mut small: Counts) -> Counts {
    if large.len() < small.len() {
        std::mem::swap(&mut large, &mut small);
    }
    for (key, word) in small {
        let known = large.entry(key).or_insert(Word { count: 0, ..word });
        known.count += word.count;
        if word.first < known.first {
            (known.first, known.bits) = (word.first, word.bits);
        }
    }
    large
}
