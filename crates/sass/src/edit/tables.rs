//! Jump tables: BRX and BRXU, the lists of their targets in `.nv.info.KERNEL`
//! (EIATTR_INDIRECT_BRANCH_TARGETS), and the tables themselves among the optimizer's constants
//! (`.nv.constant2.KERNEL`).
//!
//! A table is moved only if it is proven to be the branch's: the branch's register comes from one load
//! with an index from constant bank 2, and what stands from that load's offset on is, word by word, the
//! list of targets in `.nv.info` less the base that the branch adds. ptxas keeps the list in the order
//! of the table, repeated targets included.

use std::collections::BTreeMap;

use warpwright_flow::{EntityRef, Source};

use super::trace::Section;
use super::{EditError, Moves, Undo};
use crate::branch::{CodeOperand, target};
use crate::elf::kernel::INSTRUCTION;
use crate::elf::{Elf, ElfError, KernelSections, refused};
use crate::inst::Instruction;
use crate::isa;
use crate::roles::{File, Roles};

const WORD: usize = 4;
/// A constant of bank 2 with an index, as the text form has it.
const INDEXED: [&str; 2] = ["c[0x2][R", "c[0x2][UR"];

/// A jump table: where it stands in its section, what its words count from, and where they lead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Table {
    place: usize,
    base: u64,
    targets: Vec<u64>,
}

/// The tables of all indirect branches in the code, or the reason why one is not proven.
pub(super) fn prove(
    elf: &Elf,
    kernel: &KernelSections,
    section: &Section<'_>,
) -> Result<Vec<Table>, EditError> {
    let branches = section.code.iter().enumerate();
    let branches = branches.filter_map(|(at, i)| match i.code_operand() {
        CodeOperand::Table(distance) => Some((at, distance)),
        _ => None,
    });
    let prove = |(at, distance): (usize, i64)| {
        let base = target(at * INSTRUCTION, distance);
        let found = base.and_then(|base| prove_one(elf, kernel, section, at, base));
        found.ok_or(EditError::NoTable(at * INSTRUCTION))
    };
    branches.map(prove).collect()
}

fn prove_one(
    elf: &Elf,
    kernel: &KernelSections,
    section: &Section<'_>,
    at: usize,
    base: u64,
) -> Option<Table> {
    let bank = elf.section_index(&format!(".nv.constant2.{}", kernel.name))?;
    let targets = section
        .listed
        .get(&at)
        .filter(|targets| !targets.is_empty())?;
    let load = load(section, at)?;
    let place = match section.is_relocated(load) {
        true => place_by_relocation(elf, kernel.text, bank, load)?,
        false => indexed_offset(section.code[load], load)?,
    };
    let words = elf.sections[bank].data.get(place..)?.chunks_exact(WORD);
    let words = words.map(|w| u64::from(u32::from_le_bytes([w[0], w[1], w[2], w[3]])));
    let mut words = words.map(|word| word.wrapping_add(base));
    let is_table = targets.iter().all(|&target| words.next() == Some(target));
    is_table.then(|| Table {
        place,
        base,
        targets: targets.clone(),
    })
}

/// The load that alone gives the branch at `at` its register.
fn load(section: &Section<'_>, at: usize) -> Option<usize> {
    let roles = Roles::of(section.code[at])?;
    let mut registers = roles
        .uses()
        .filter(|span| matches!(span.file, File::Gpr | File::Uniform));
    let register = registers.next().filter(|span| span.count == 2)?;
    let sources = section
        .trace()?
        .sources(at, (register.file, register.first))?;
    let mut sources = sources.into_iter();
    match (sources.next(), sources.next()) {
        (Some(Source::Inst(load)), None) => Some(load.index()),
        _ => None,
    }
}

/// Offset in constant bank 2 that a 32-bit load with an index adds it to.
fn indexed_offset(load: Instruction, at: usize) -> Option<usize> {
    let decoded = isa::decode(load);
    let loads =
        matches!(decoded.mnemonic(), "LDC" | "ULDC" | "LDCU") && decoded.modifiers().is_empty();
    let operands = decoded.operands((at * INSTRUCTION) as u64);
    let text = &operands.last().filter(|_| loads)?.text;
    let index = INDEXED.iter().find_map(|start| text.strip_prefix(start))?;
    let index = index.strip_suffix(']')?;
    match index.split_once("+0x") {
        Some((_, hex)) => usize::from_str_radix(hex, 16).ok(),
        None => index.bytes().all(|b| b.is_ascii_digit()).then_some(0),
    }
}

/// The same where the linker fills it in: the symbol's value.
fn place_by_relocation(elf: &Elf, text: usize, bank: usize, load: usize) -> Option<usize> {
    let symbols = elf.symbols().ok()?;
    let all = elf.relocations_of(text).ok()?;
    let found = (all.iter()).find(|r| r.offset == (load * INSTRUCTION) as u64)?;
    let symbol = symbols.get(found.symbol as usize)?;
    let here = usize::from(symbol.section) == bank;
    usize::try_from(symbol.value).ok().filter(|_| here)
}

/// Writes the tables for the moved code.
pub(super) fn follow(
    elf: &mut Elf,
    kernel: &KernelSections,
    tables: &[Table],
    moves: &Moves,
    undo: &mut Undo,
) -> Result<(), ElfError> {
    let outside = || refused("a jump table leads out of the code");
    let mut words = BTreeMap::new();
    for table in tables {
        let base = moves.boundary(table.base).ok_or_else(outside)?;
        for (i, &target) in table.targets.iter().enumerate() {
            let new = moves
                .boundary(target)
                .ok_or_else(outside)?
                .wrapping_sub(base) as u32;
            let other = words.insert(table.place + i * WORD, new);
            if other.is_some_and(|other| other != new) {
                return Err(refused("two jump tables overlap"));
            }
        }
    }
    let bank = elf.section_index(&format!(".nv.constant2.{}", kernel.name));
    let Some(bank) = bank.filter(|_| !words.is_empty()) else {
        return Ok(());
    };
    let mut data = elf.sections[bank].data.clone();
    for (place, word) in words {
        let bytes = data.get_mut(place..place + WORD).ok_or_else(outside)?;
        bytes.copy_from_slice(&word.to_le_bytes());
    }
    undo.replace(elf, bank, data);
    Ok(())
}
