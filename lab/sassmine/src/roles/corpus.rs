//! The distinct instructions of a corpus with what nvdisasm says of each: the samples, and what a table is
//! held against.

use std::collections::{BTreeMap, BTreeSet};

use rayon::prelude::*;
use warpwright_sass::Instruction;
use warpwright_sass::roles::{Entry, OPCODE, Table};
use warpwright_toolkit::ToolError;
use warpwright_toolkit::life_ranges::File;

use super::fit;
use crate::bench::Bench;
use crate::words::{Word, Words};

/// nvdisasm's life ranges show uniform registers below this (sm_100 and later have more: UR79).
const SHOWN_UNIFORM: u16 = 63;

/// Registers: file, number, written (or else read).
pub type Marks = BTreeSet<(File, u16, bool)>;

/// One instruction, whatever its control field.
pub struct Seen {
    /// Its bits, with the control field that it has for the first time (nvdisasm does not accept every one).
    pub bits: u128,
    /// What nvdisasm says that it reads and writes.
    marks: Marks,
    /// How often the corpus has it.
    count: u64,
    /// Where it stands for the first time, and how nvdisasm writes it.
    example: String,
}

/// All of them by opcode, but for control transfers: those are not put on the bench.
pub struct Corpus {
    sm: u32,
    seen: BTreeMap<u16, Vec<Seen>>,
    /// Occurrences of instructions that nvdisasm refuses on the bench.
    pub refused: u64,
}

/// How well an entry does: instructions that confirm it without those that contradict it, and its rows.
pub type Score = (i64, usize);

impl Corpus {
    /// Puts every distinct instruction on the bench that is not in `control`.
    pub fn read(
        bench: &Bench<'_>,
        sm: u32,
        words: &Words,
        control: &Table,
    ) -> Result<Corpus, ToolError> {
        let known = control.entries();
        let wanted: Vec<&Word> = words
            .words
            .iter()
            .filter(|word| !known.contains_key(&OPCODE.get(word.bits)))
            .collect();
        let bits: Vec<u128> = wanted.iter().map(|word| word.bits).collect();
        let mut corpus = Corpus {
            sm,
            seen: BTreeMap::new(),
            refused: 0,
        };
        for (word, reading) in wanted.into_iter().zip(bench.read(&bits)?) {
            let Some(reading) = reading else {
                eprintln!(
                    "refused {} times: {:#034x} at {}",
                    word.count,
                    word.bits,
                    words.place(word)
                );
                corpus.refused += word.count;
                continue;
            };
            let seen = Seen {
                bits: word.bits,
                marks: fit::said(&reading),
                count: word.count,
                example: format!("{} at {}", reading.text, words.place(word)),
            };
            let opcode = OPCODE.get(word.bits);
            corpus.seen.entry(opcode).or_default().push(seen);
        }
        Ok(corpus)
    }

    /// Every distinct instruction, by opcode.
    pub fn seen(&self) -> &BTreeMap<u16, Vec<Seen>> {
        &self.seen
    }

    /// What the entry says, as far as nvdisasm shows it.
    fn roles(&self, table: &Table, entry: &Entry, seen: &Seen) -> Option<Marks> {
        let roles = table.roles_by(entry, Instruction::new(self.sm, seen.bits))?;
        let mut marks = fit::marks_of(&roles);
        marks.retain(|mark| mark.0 != File::Uniform || mark.1 < SHOWN_UNIFORM);
        Some(marks)
    }

    /// The instructions that the table does not have or gets wrong, by opcode.
    pub fn open(&self, table: &Table) -> BTreeMap<u16, Vec<&Seen>> {
        let open = self.seen.par_iter().map(|(&opcode, seen)| {
            let wrong = |seen: &&Seen| {
                let entry = table.entries().get(&opcode);
                let ours = entry.and_then(|entry| self.roles(table, entry, seen));
                ours.as_ref() != Some(&seen.marks)
            };
            (opcode, seen.iter().filter(wrong).collect::<Vec<_>>())
        });
        let open = open.filter(|(_, seen)| !seen.is_empty());
        open.collect()
    }

    /// How well the entry does for its opcode.
    pub fn score(&self, table: &Table, opcode: u16, entry: &Entry) -> Score {
        let seen = self.seen.get(&opcode).into_iter().flatten();
        let verdicts = seen.filter_map(|seen| {
            let ours = self.roles(table, entry, seen)?;
            Some(if ours == seen.marks { 1 } else { -1 })
        });
        (verdicts.sum(), entry.rows.len())
    }

    /// Counts what confirms each row and drops rows that are contradicted; says how it went. The counts of
    /// opcodes that the corpus does not have become zero if it is all there is.
    pub fn confirm(&self, table: &mut Table, all: bool) -> String {
        let (mut confirmed, mut unknown) = (0u64, BTreeMap::<(u16, &str), (u64, &str)>::new());
        let mut wrong: BTreeMap<(u16, u32), (u64, &str)> = BTreeMap::new();
        let mut counts: BTreeMap<(u16, u32), u64> = BTreeMap::new();
        for (&opcode, seen) in self
            .seen
            .iter()
            .flat_map(|(o, s)| s.iter().map(move |s| (o, s)))
        {
            let entry = table.entries().get(&opcode);
            let key = entry.map(|entry| entry.key_of(seen.bits));
            match entry.and_then(|entry| self.roles(table, entry, seen)) {
                None => {
                    let missing = unknown.entry((opcode, fit::words(&seen.example)));
                    missing.or_insert((0, &seen.example)).0 += seen.count;
                }
                Some(ours) if ours == seen.marks => {
                    confirmed += seen.count;
                    *counts.entry((opcode, key.unwrap_or(0))).or_default() += seen.count;
                }
                Some(_) => {
                    let place = (opcode, key.unwrap_or(0));
                    wrong.entry(place).or_insert((0, &seen.example)).0 += seen.count;
                }
            }
        }
        for ((opcode, key), (count, example)) in &wrong {
            eprintln!("contradicted {count} times: {opcode:#05x} key {key:#x}: {example}");
            confirmed -= counts.get(&(*opcode, *key)).unwrap_or(&0);
        }
        let here = |opcode: &u16| all || self.seen.contains_key(opcode);
        let entries: Vec<u16> = table.entries().keys().copied().filter(here).collect();
        for opcode in entries {
            let Some(mut entry) = table.entries().get(&opcode).cloned() else {
                continue;
            };
            entry
                .rows
                .retain(|key, _| !wrong.contains_key(&(opcode, *key)));
            for (key, row) in &mut entry.rows {
                row.confirmed = counts.get(&(opcode, *key)).copied().unwrap_or(0);
            }
            table.insert(opcode, entry);
        }
        for ((opcode, _), (count, example)) in &unknown {
            eprintln!("not in the table, {count} times: {opcode:#05x}: {example}");
        }
        let wrong: u64 = wrong.values().map(|wrong| wrong.0).sum();
        let unknown: u64 = unknown.values().map(|unknown| unknown.0).sum();
        format!(
            "{confirmed} instructions confirm the table, {wrong} contradicted rows that were dropped, {unknown} are not in it, nvdisasm refuses {}",
            self.refused
        )
    }
}
