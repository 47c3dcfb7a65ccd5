//! The distinct instructions of a corpus with what nvdisasm says of each: the samples, and what a table is
//! held against.

use std::collections::{BTreeMap, BTreeSet};

use warpwright_sass::Instruction;
use warpwright_sass::isa::form::OPERATION;
use warpwright_sass::roles::{self as sass, CONTROL, OPCODE, Table};
use warpwright_toolkit::life_ranges::{File, Row};
use warpwright_toolkit::{Nvdisasm, ToolError};

use super::fit;
use crate::Error;
use crate::code::Cubin;

/// nvdisasm's life ranges show uniform registers below this (sm_100 and later have more: UR79).
const SHOWN_UNIFORM: u16 = 63;

/// Registers: file, number, written (or else read).
type Marks = BTreeSet<(File, u16, bool)>;

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

/// All of them.
pub struct Corpus {
    sm: u32,
    seen: Vec<Seen>,
    control: Table,
}

impl Corpus {
    /// Reads the cubins, with nvdisasm's life ranges.
    pub fn read(nvdisasm: Nvdisasm<'_>, cubins: &[Cubin]) -> Result<Corpus, Error> {
        let sm = cubins.first().map_or(0, |cubin| cubin.sm);
        let control = Table::read(sm, &[CONTROL]).unwrap_or_default();
        let mut seen: BTreeMap<u128, Seen> = BTreeMap::new();
        for cubin in cubins {
            let sections = match nvdisasm.life_ranges(&cubin.bytes) {
                Ok(sections) => sections,
                Err(error @ ToolError::Rejected { .. }) => {
                    eprintln!("left out: {}: {error}", cubin.path.display());
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            for section in sections {
                let code = cubin.sections.iter().find(|known| known.0 == section.name);
                let Some((_, code)) = code else {
                    continue;
                };
                for row in &section.rows {
                    let Some(inst) = code.get(row.offset as usize / 16) else {
                        continue;
                    };
                    let new = || Seen {
                        bits: inst.bits(),
                        marks: marks(row),
                        count: 0,
                        example: format!(
                            "{} at {:#x} of {}",
                            row.text,
                            row.offset,
                            cubin.path.display()
                        ),
                    };
                    seen.entry(inst.bits() & OPERATION)
                        .or_insert_with(new)
                        .count += 1;
                }
            }
        }
        Ok(Corpus {
            sm,
            seen: seen.into_values().collect(),
            control,
        })
    }

    /// Every distinct instruction that is no control transfer.
    pub fn seen(&self) -> impl Iterator<Item = &Seen> {
        let is_control = |seen: &&Seen| {
            let opcode = OPCODE.get(seen.bits);
            self.control.entries().contains_key(&opcode)
        };
        self.seen.iter().filter(move |seen| !is_control(seen))
    }

    /// What the table says, as far as nvdisasm shows it.
    fn roles(&self, table: &Table, seen: &Seen) -> Option<Marks> {
        let roles = table.roles(Instruction::new(self.sm, seen.bits))?;
        let mut marks = marks_of(&roles);
        marks.retain(|mark| mark.0 != File::Uniform || mark.1 < SHOWN_UNIFORM);
        Some(marks)
    }

    /// The instructions that the table does not have or gets wrong, by opcode.
    pub fn open(&self, table: &Table) -> BTreeMap<u16, Vec<&Seen>> {
        let mut open: BTreeMap<u16, Vec<&Seen>> = BTreeMap::new();
        for seen in self.seen() {
            if self.roles(table, seen).as_ref() != Some(&seen.marks) {
                open.entry(OPCODE.get(seen.bits)).or_default().push(seen);
            }
        }
        open
    }

    /// Counts what confirms each row and drops rows that are contradicted; says how it went.
    pub fn confirm(&self, table: &mut Table) -> String {
        let (mut confirmed, mut unknown) = (0u64, BTreeMap::<u16, (u64, &str)>::new());
        let mut wrong: BTreeMap<(u16, u32), (u64, &str)> = BTreeMap::new();
        for seen in self.seen() {
            let opcode = OPCODE.get(seen.bits);
            let inst = Instruction::new(self.sm, seen.bits);
            match self.roles(table, seen) {
                None => unknown.entry(opcode).or_insert((0, &seen.example)).0 += seen.count,
                Some(ours) if ours == seen.marks => {
                    confirmed += seen.count;
                    if let Some(row) = table.row_mut(inst) {
                        row.confirmed += seen.count;
                    }
                }
                Some(_) => {
                    let key = table.entries()[&opcode].key_of(seen.bits);
                    let wrong = wrong.entry((opcode, key)).or_insert((0, &seen.example));
                    wrong.0 += seen.count;
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
        for (opcode, (count, example)) in &unknown {
            eprintln!("not in the table, {count} times: {opcode:#05x}: {example}");
        }
        let wrong: u64 = wrong.values().map(|wrong| wrong.0).sum();
        let unknown: u64 = unknown.values().map(|unknown| unknown.0).sum();
        format!(
            "{confirmed} instructions confirm the table, {wrong} contradict it, {unknown} are not in it"
        )
    }
}

/// What the row says is read and written.
fn marks(row: &Row) -> Marks {
    let mut marks = Marks::new();
    for &(file, register, mark) in &row.marks {
        if mark.defines() {
            marks.insert((file, register, true));
        }
        if mark.uses() {
            marks.insert((file, register, false));
        }
    }
    marks
}

/// What the roles say; convergence barriers aside, which nvdisasm does not show.
fn marks_of(roles: &sass::Roles) -> Marks {
    let mut marks = Marks::new();
    for span in roles.spans() {
        if let Some(file) = fit::file_of(span.file) {
            let written = span.role == sass::Role::Def;
            marks.extend(span.registers().map(|register| (file, register, written)));
        }
    }
    marks
}
