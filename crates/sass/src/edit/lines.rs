//! Line tables: .debug_line (source lines) and .nv_debug_line_sass (PTX lines), both line number
//! programs of DWARF 2 or 3 (section 6.2).
//!
//! Only operations that advance the address change. ptxas writes a row as a special opcode exactly
//! if it is 16 bytes behind the last one and its line is another one, near enough (14,000 rows of
//! both tables); the same rule is kept, so that taking back an edit gives back the bytes.

use std::collections::BTreeMap;

use super::{Moves, Undo};
use crate::elf::{Elf, ElfError, damaged, refused};

const SECTIONS: [&str; 2] = [".debug_line", ".nv_debug_line_sass"];
/// The address step that ptxas's special opcodes have.
const STEP: u64 = 16;

pub(super) fn follow(
    elf: &mut Elf,
    text: usize,
    moves: &Moves,
    undo: &mut Undo,
) -> Result<(), ElfError> {
    for name in SECTIONS {
        let Some(table) = elf.section_index(name) else {
            continue;
        };
        let starts = starts(elf, table, text)?;
        if starts.is_empty() {
            continue;
        }
        let old = &elf.sections[table].data;
        let (new, places, headers) =
            rewrite(old, &starts, moves).map_err(|why| refused(format!("{name}: {why}")))?;
        undo.replace(elf, table, new);
        // The places of the addresses moved with the bytes.
        for i in elf.relocation_sections(table) {
            let mut relocations = elf.relocations(i)?;
            for r in &mut relocations {
                let place = places.get(&r.offset).copied();
                let place = place.or_else(|| headers.iter().find_map(|h| h.moved(r.offset)));
                r.offset = place.ok_or_else(|| damaged(format!("{name}: a stray relocation")))?;
            }
            undo.take(elf, i);
            elf.set_relocations(i, &relocations)?;
        }
    }
    Ok(())
}

/// Places of addresses in the edited section: symbol value and addend (none if it is in place).
pub(crate) type Starts = BTreeMap<u64, (u64, Option<i64>)>;

pub(crate) fn starts(elf: &Elf, table: usize, text: usize) -> Result<Starts, ElfError> {
    let starts = super::frames::starts(elf, table, text)?.into_iter();
    Ok(starts
        .map(|start| (start.place, (start.symbol, start.addend)))
        .collect())
}

/// The header of a unit: where it was, and where it is now. It may have relocations of its own (the
/// names of functions that were inlined).
struct Header {
    old: std::ops::Range<u64>,
    new: u64,
}

impl Header {
    fn moved(&self, place: u64) -> Option<u64> {
        let inside = self.old.contains(&place);
        inside.then(|| place - self.old.start + self.new)
    }
}

/// A line table that cannot be rewritten.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum LineError {
    #[error("the table is cut short")]
    Cut,
    #[error("version {0} is not understood")]
    Version(usize),
    #[error("its header is not understood")]
    Header,
    #[error("operation {0} is not understood")]
    Operation(u8),
    #[error("an address that is not zero in its place")]
    InPlace,
    #[error("a row outside the code")]
    Outside,
}

/// A new table, the way from old to new places of its addresses, and its headers.
type Rewritten = (Vec<u8>, BTreeMap<u64, u64>, Vec<Header>);

fn rewrite(old: &[u8], starts: &Starts, moves: &Moves) -> Result<Rewritten, LineError> {
    let mut new = Vec::with_capacity(old.len());
    let mut places = BTreeMap::new();
    let mut headers = Vec::new();
    let mut at = 0;
    while at < old.len() {
        let unit = Unit::read(old, at)?;
        headers.push(Header {
            old: at as u64..unit.program as u64,
            new: new.len() as u64,
        });
        new.extend_from_slice(&old[at..unit.program]);
        let start = new.len() - (unit.program - at);
        let mut program = Program {
            unit: &unit,
            starts,
            moves,
            old: &old[..unit.end],
            new: &mut new,
            places: &mut places,
            address: None,
            row: Row::default(),
        };
        program.run()?;
        let length = (new.len() - start - 4) as u32;
        new[start..start + 4].copy_from_slice(&length.to_le_bytes());
        at = unit.end;
    }
    Ok((new, places, headers))
}

/// What the header of a unit says.
pub(crate) struct Unit {
    pub(crate) program: usize,
    pub(crate) end: usize,
    pub(crate) line_base: i64,
    pub(crate) line_range: i64,
    pub(crate) opcode_base: u8,
    pub(crate) lengths: Vec<u8>,
}

impl Unit {
    pub(crate) fn read(data: &[u8], at: usize) -> Result<Unit, LineError> {
        let cut = || LineError::Cut;
        let word = |at: usize, size: usize| -> Result<usize, LineError> {
            let bytes = data.get(at..at + size).ok_or_else(cut)?;
            Ok(bytes.iter().rev().fold(0, |n, &b| n << 8 | usize::from(b)))
        };
        let end = at + 4 + word(at, 4)?;
        let version = word(at + 4, 2)?;
        if !(2..=3).contains(&version) || end > data.len() {
            return Err(LineError::Version(version));
        }
        let program = at + 10 + word(at + 6, 4)?;
        let head = data.get(at + 10..program.min(end)).ok_or_else(cut)?;
        let [unit, _, base, range, opcodes, ..] = *head else {
            return Err(LineError::Cut);
        };
        if unit != 1 || range == 0 || opcodes == 0 || program > end {
            return Err(LineError::Header);
        }
        let lengths = head.get(5..5 + usize::from(opcodes) - 1).ok_or_else(cut)?;
        Ok(Unit {
            program,
            end,
            line_base: i64::from(base as i8),
            line_range: i64::from(range),
            opcode_base: opcodes,
            lengths: lengths.to_vec(),
        })
    }

    /// The special opcode for a row one step further, if there is one.
    fn special(&self, line: i64) -> Option<u8> {
        if line < self.line_base || line >= self.line_base + self.line_range {
            return None;
        }
        let opcode =
            (line - self.line_base) + self.line_range * STEP as i64 + i64::from(self.opcode_base);
        u8::try_from(opcode).ok()
    }
}

/// The part of a row that is already in the output and may become a special opcode.
#[derive(Debug, Clone, Copy, Default)]
struct Row {
    /// Length of the output before its advances, if they are all there is since.
    from: Option<usize>,
    line: i64,
    /// Old and new address advance.
    advance: Option<(u64, u64)>,
}

/// A line number program on its way from old to new.
struct Program<'a> {
    unit: &'a Unit,
    starts: &'a Starts,
    moves: &'a Moves,
    old: &'a [u8],
    new: &'a mut Vec<u8>,
    places: &'a mut BTreeMap<u64, u64>,
    /// The old address, while the sequence is in the edited section.
    address: Option<u64>,
    row: Row,
}

impl Program<'_> {
    fn run(&mut self) -> Result<(), LineError> {
        let mut at = self.unit.program;
        while at < self.old.len() {
            let opcode = self.old[at];
            let next = match opcode {
                0 => self.extended(at)?,
                1 => self.copy(at)?,
                2 => self.advance_pc(at)?,
                3 => self.advance_line(at)?,
                8 | 9 if self.address.is_some() => {
                    return Err(LineError::Operation(opcode));
                }
                _ if opcode >= self.unit.opcode_base => self.special(at, opcode)?,
                _ => {
                    let count = self.unit.lengths[usize::from(opcode) - 1];
                    let mut end = at + 1;
                    for _ in 0..count {
                        end = leb(self.old, end)?.1;
                    }
                    self.keep(at, end)
                }
            };
            at = next;
        }
        Ok(())
    }

    /// Copies an operation that has nothing to do with addresses.
    fn keep(&mut self, at: usize, end: usize) -> usize {
        self.new.extend_from_slice(&self.old[at..end]);
        self.row = Row::default();
        end
    }

    fn extended(&mut self, at: usize) -> Result<usize, LineError> {
        let (length, body) = leb(self.old, at + 1)?;
        let end = body
            .checked_add(length as usize)
            .filter(|&e| e <= self.old.len());
        let end = end.ok_or(LineError::Cut)?;
        match self.old.get(body) {
            Some(1) => self.address = None,
            Some(2) => return self.set_address(at, body, end),
            _ => {}
        }
        Ok(self.keep(at, end))
    }

    fn set_address(&mut self, at: usize, body: usize, end: usize) -> Result<usize, LineError> {
        let place = body as u64 + 1;
        let shift = self.new.len() as u64 + (body + 1 - at) as u64;
        self.places.insert(place, shift);
        self.keep(at, end);
        let Some(&(symbol, addend)) = self.starts.get(&place) else {
            self.address = None;
            return Ok(end);
        };
        let field = self.old[body + 1..end].iter().rev();
        let in_place = field.fold(0u64, |n, &b| n << 8 | u64::from(b));
        let addend = addend.unwrap_or(in_place as i64);
        let address = symbol.checked_add_signed(addend);
        if in_place != 0 {
            return Err(LineError::InPlace);
        }
        self.address = address;
        Ok(end)
    }

    /// The new advance for an old one, and the old address moves on.
    fn advance(&mut self, by: u64) -> Result<u64, LineError> {
        let Some(address) = self.address else {
            return Ok(by);
        };
        let new = self.moves.stretch(address, by);
        self.address = address.checked_add(by);
        new.ok_or(LineError::Outside)
    }

    fn advance_line(&mut self, at: usize) -> Result<usize, LineError> {
        let (line, end) = sleb(self.old, at + 1)?;
        let from = self.new.len();
        self.new.extend_from_slice(&self.old[at..end]);
        self.row = Row {
            from: Some(from),
            line,
            advance: None,
        };
        Ok(end)
    }

    fn advance_pc(&mut self, at: usize) -> Result<usize, LineError> {
        let (old, end) = leb(self.old, at + 1)?;
        let new = self.advance(old)?;
        let from = self.row.from.filter(|_| self.row.advance.is_none());
        let line = if from.is_some() { self.row.line } else { 0 };
        self.row = Row {
            from: Some(from.unwrap_or(self.new.len())),
            line,
            advance: Some((old, new)),
        };
        self.new.push(2);
        push_leb(self.new, new);
        Ok(end)
    }

    /// A row written out: it becomes a special opcode if ptxas would have written one.
    fn copy(&mut self, at: usize) -> Result<usize, LineError> {
        if let (Some(from), Some((old, STEP))) = (self.row.from, self.row.advance)
            && old != STEP
            && self.row.line != 0
            && let Some(opcode) = self.unit.special(self.row.line)
        {
            self.new.truncate(from);
            self.new.push(opcode);
            self.row = Row::default();
            return Ok(at + 1);
        }
        Ok(self.keep(at, at + 1))
    }

    fn special(&mut self, at: usize, opcode: u8) -> Result<usize, LineError> {
        let number = i64::from(opcode - self.unit.opcode_base);
        let line = number % self.unit.line_range + self.unit.line_base;
        let old = (number / self.unit.line_range) as u64;
        let new = self.advance(old)?;
        if new == old {
            return Ok(self.keep(at, at + 1));
        }
        if line != 0 || new == 0 {
            self.new.push(3);
            push_sleb(self.new, line);
        }
        if new != 0 {
            self.new.push(2);
            push_leb(self.new, new);
        }
        self.new.push(1);
        self.row = Row::default();
        Ok(at + 1)
    }
}

pub(crate) fn leb(data: &[u8], mut at: usize) -> Result<(u64, usize), LineError> {
    let (mut value, mut shift) = (0u64, 0);
    loop {
        let &byte = data.get(at).ok_or(LineError::Cut)?;
        if shift < 63 {
            value |= u64::from(byte & 0x7f) << shift;
        }
        (at, shift) = (at + 1, shift + 7);
        if byte & 0x80 == 0 {
            return Ok((value, at));
        }
    }
}

pub(crate) fn sleb(data: &[u8], at: usize) -> Result<(i64, usize), LineError> {
    let (value, end) = leb(data, at)?;
    let bits = 7 * (end - at) as u32;
    let shift = 64u32.saturating_sub(bits);
    Ok((((value << shift) as i64) >> shift, end))
}

/// ptxas writes unsigned numbers as long as signed ones.
fn push_leb(out: &mut Vec<u8>, value: u64) {
    push_sleb(out, value as i64);
}

fn push_sleb(out: &mut Vec<u8>, mut value: i64) {
    loop {
        let byte = (value & 0x7f) as u8;
        value >>= 7;
        let sign = byte & 0x40 != 0;
        if (value == 0 && !sign) || (value == -1 && sign) {
            out.push(byte);
            return;
        }
        out.push(byte | 0x80);
    }
}
