//! The distinct instructions of all cubins of an architecture, with nvdisasm's text for each.

use std::collections::BTreeSet;
use std::path::PathBuf;

use warpwright_sass::isa::form::OPERATION;
use warpwright_sass::isa::table::Table;
use warpwright_sass::roles::OPCODE;

use super::oracle::Oracle;
use super::shape;
use crate::Error;
use crate::words::Words;

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
    /// How many registers that are always zero or true it names.
    pub fn constants(&self) -> usize {
        let words = self.text.split(|c: char| !c.is_ascii_alphanumeric());
        let constant = |word: &&str| matches!(*word, "RZ" | "URZ" | "PT" | "UPT");
        words.filter(constant).count()
    }

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
    /// Instructions in all, those that nvdisasm refuses not counted.
    pub total: u64,
    /// Distinct ones that nvdisasm refuses.
    pub refused: usize,
}

const REUSE: u128 = 0xf << 122;

impl Corpus {
    /// Reads all cubins below the folders that are for architecture `sm`; of opcodes alone of which the table
    /// does not explain everything, if there is one.
    pub fn load(
        folders: &[PathBuf],
        sm: u32,
        oracle: &mut Oracle<'_>,
        lacking: Option<&Table>,
    ) -> Result<Self, Error> {
        let Words { mut words, .. } = Words::read(folders, sm, OPERATION | REUSE)?;
        if let Some(table) = lacking {
            let all = words.iter().map(|word| word.bits);
            let open: BTreeSet<u16> = all
                .filter(|&bits| table.find(bits).is_none())
                .map(|bits| OPCODE.get(bits))
                .collect();
            words.retain(|word| open.contains(&OPCODE.get(word.bits)));
        }
        if words.is_empty() {
            return Err(Error::Empty(sm));
        }
        let bits: Vec<u128> = words.iter().map(|word| word.bits).collect();
        let answers = oracle.ask(&bits)?;
        let refused = answers.iter().filter(|answer| answer.is_none()).count();
        let instances = words.into_iter().zip(answers);
        let instances = instances.filter_map(|(word, answer)| {
            let answer = answer?;
            Some(Instance {
                bits: word.bits,
                count: word.count,
                address: answer.address,
                shape: shape(&answer.text),
                text: answer.text,
            })
        });
        let instances: Vec<Instance> = instances.collect();
        let total = instances.iter().map(|i| i.count).sum();
        Ok(Corpus {
            instances,
            total,
            refused,
        })
    }
}
