//! Call frame information (.debug_frame, DWARF 3 section 6.4, in its 64-bit form).
//!
//! An entry for a function has its start (a relocation, with the offset in the addend or in the
//! place itself), its size, and a program that advances through the code. ptxas advances only by
//! DW_CFA_advance_loc4 in units of the code alignment, so no entry changes its size.

use super::{Moves, Undo};
use crate::elf::{Elf, ElfError, damaged, refused};

const DW_CFA_ADVANCE_LOC4: u8 = 0x04;
const CIE: u64 = u64::MAX;

pub(super) fn follow(
    elf: &mut Elf,
    text: usize,
    moves: &Moves,
    undo: &mut Undo,
) -> Result<(), ElfError> {
    let Some(frames) = elf.section_index(".debug_frame") else {
        return Ok(());
    };
    let starts = starts(elf, frames, text)?;
    if starts.is_empty() {
        return Ok(());
    }
    let mut data = elf.sections[frames].data.clone();
    let mut at = 0;
    while at < data.len() {
        if number(&data, at, 4)? != 0xffff_ffff {
            return Err(refused(".debug_frame is not in the 64-bit form"));
        }
        let size = number(&data, at + 4, 8)? as usize;
        let body = at + 12;
        let end = body.checked_add(size).filter(|&end| end <= data.len());
        let end = end.ok_or_else(|| damaged(".debug_frame is cut short"))?;
        if number(&data, body, 8)? != CIE
            && let Some(&start) = starts.iter().find(|s| s.place == body as u64 + 8)
        {
            move_entry(&mut data[..end], body + 8, start, moves)?;
        }
        at = end;
    }
    undo.replace(elf, frames, data);
    Ok(())
}

/// Where the start of a function of the edited section stands, and what it is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Start {
    pub place: u64,
    pub symbol: u64,
    /// None if it is in place.
    pub addend: Option<i64>,
}

/// Those that the relocations of a section name.
pub(super) fn starts(elf: &Elf, of: usize, text: usize) -> Result<Vec<Start>, ElfError> {
    let symbols = elf.symbols()?;
    let relocations = elf.relocations_of(of)?.into_iter();
    let starts = relocations.filter_map(|r| {
        let symbol = symbols.get(r.symbol as usize);
        let symbol = symbol.filter(|s| usize::from(s.section) == text)?;
        Some(Start {
            place: r.offset,
            symbol: symbol.value,
            addend: r.addend,
        })
    });
    Ok(starts.collect())
}

/// Moves one entry: `at` is the place of its start, `data` ends with it.
fn move_entry(data: &mut [u8], at: usize, start: Start, moves: &Moves) -> Result<(), ElfError> {
    let outside = || refused(".debug_frame names a place outside the code");
    let in_place = start.addend.is_none();
    let addend = start.addend.unwrap_or(number(data, at, 8)? as i64);
    let first = start
        .symbol
        .checked_add_signed(addend)
        .ok_or_else(outside)?;
    let new_first = moves.boundary(first).ok_or_else(outside)?;
    if in_place {
        let base = moves.boundary(start.symbol).ok_or_else(outside)?;
        put(data, at, &(new_first - base).to_le_bytes());
    }
    let size = number(data, at + 8, 8)?;
    let new_size = moves.stretch(first, size).ok_or_else(outside)?;
    put(data, at + 8, &new_size.to_le_bytes());
    let mut here = first;
    let mut i = at + 16;
    while i < data.len() {
        if data[i] != DW_CFA_ADVANCE_LOC4 {
            i += other_length(&data[i..])?;
            continue;
        }
        // An advance may lead back: ptxas counts modulo 2^32 bytes.
        let delta = number(data, i + 1, 4)?.wrapping_mul(CODE_ALIGNMENT);
        let next = here.wrapping_add(delta) & u64::from(u32::MAX);
        let ends = (moves.boundary(here), moves.boundary(next));
        let (Some(from), Some(to)) = ends else {
            return Err(outside());
        };
        let moved = (to.wrapping_sub(from) as u32) / CODE_ALIGNMENT as u32;
        put(data, i + 1, &moved.to_le_bytes());
        (here, i) = (next, i + 5);
    }
    Ok(())
}

/// The code alignment factor of every ptxas entry.
const CODE_ALIGNMENT: u64 = 4;

/// Length of an operation that does not advance: those that ptxas uses.
fn other_length(program: &[u8]) -> Result<usize, ElfError> {
    let leb = |mut at: usize, count: usize| {
        for _ in 0..count {
            let rest = program.get(at..)?;
            at += rest.iter().position(|b| b & 0x80 == 0)? + 1;
        }
        Some(at)
    };
    let block = |at: usize| {
        let start = leb(at, 1)?;
        let bytes = program.get(at..start)?.iter().rev();
        let size = bytes.fold(0usize, |n, b| n << 7 | usize::from(b & 0x7f));
        start.checked_add(size).filter(|&end| end <= program.len())
    };
    let length = match program[0] {
        // nop
        0x00 => Some(1),
        // offset_extended, register, def_cfa
        0x05 | 0x09 | 0x0c => leb(1, 2),
        // restore_extended, undefined, same_value, def_cfa_register, def_cfa_offset
        0x06..=0x08 | 0x0d | 0x0e => leb(1, 1),
        // def_cfa_expression; expression and val_expression with a register: registers and memory,
        // no code
        0x0f => block(1),
        0x10 | 0x16 => leb(1, 1).and_then(block),
        // remember_state, restore_state
        0x0a | 0x0b => Some(1),
        // offset, restore
        0x80..=0xbf => leb(1, 1),
        0xc0..=0xff => Some(1),
        _ => None,
    };
    length.ok_or_else(|| {
        refused(format!(
            ".debug_frame has operation {:#x}, which is not understood",
            program[0]
        ))
    })
}

fn number(data: &[u8], at: usize, size: usize) -> Result<u64, ElfError> {
    let bytes = at.checked_add(size).and_then(|end| data.get(at..end));
    let bytes = bytes.ok_or_else(|| damaged(".debug_frame is cut short"))?;
    let mut word = [0; 8];
    word[..size].copy_from_slice(bytes);
    Ok(u64::from_le_bytes(word))
}

fn put(data: &mut [u8], at: usize, bytes: &[u8]) {
    data[at..at + bytes.len()].copy_from_slice(bytes);
}
