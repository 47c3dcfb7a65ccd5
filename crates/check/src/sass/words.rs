//! Instruction words by themselves: forms that exist, registers that they can name, and the schedule.

use std::collections::BTreeSet;
use std::ops::Range;

use warpwright_flow::Inst;
use warpwright_sass::function::Code;
use warpwright_sass::roles::Table;
use warpwright_sass::{Instruction, isa};

use super::places::shape;
use super::{bits, step};

/// A word of the rewritten version that the hardware may take for something else, or not at all.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Unknown {
    #[error("no instruction of this form is known at {0:#x}")]
    Form(u32),
    #[error("the registers of the instruction at {0:#x} begin at a number that they cannot")]
    Tuple(u32),
    #[error("the instruction at {0:#x} reads a constant that the original does not read")]
    Constant(u32),
    #[error("the instruction at {0:#x} may come too early after others")]
    Schedule(u32),
    #[error(
        "the instruction at {0:#x} no longer waits for what it waited for, though no register says so: that may order memory"
    )]
    Order(u32),
    #[error(
        "the instruction at {0:#x} keeps an operand for reuse that may be out of date, or none"
    )]
    Kept(u32),
    #[error(
        "an access to global memory went over the NOP at {0:#x}, where a barrier of the warp may have stood"
    )]
    Barrier(u32),
    #[error("behind {0:#x} other instructions on uniform registers come than in the original")]
    Uniform(u32),
}

impl Unknown {
    /// Where the judge found it.
    pub(super) fn at(&self) -> Option<Inst> {
        match *self {
            Unknown::Schedule(at) | Unknown::Kept(at) => Some(Inst(at / 16)),
            _ => None,
        }
    }
}

/// Every word must have a form that is known, and register tuples must begin at multiples of their size,
/// and constants be the original's or in its parameters (of so many bytes), unless the original has the same: also where a word is never executed, as the hardware reads it.
pub(super) fn check(
    original: &Code,
    new: &Code,
    parameters: u64,
    table: &'static Table,
) -> Result<(), Unknown> {
    let constants: BTreeSet<Read> = all(original)
        .filter_map(|at| Read::of(original.instructions()[at.0 as usize]))
        .collect();
    let words: BTreeSet<[i64; 2]> = constants.iter().map(Read::word).collect();
    let shapes = |code: &Code| -> BTreeSet<u128> {
        let insts = code.instructions().iter();
        insts.map(|&inst| shape(inst, table)).collect()
    };
    let known = shapes(original);
    let torn: BTreeSet<(u32, u8)> = all(original).flat_map(|at| torn(original, at)).collect();
    for at in all(new) {
        let inst = new.instructions()[at.0 as usize];
        let decoded = isa::decode(inst);
        let is_known = !decoded.is_opaque() && !decoded.modifiers().contains("INVALID")
            || is_uniform_frame_access(inst);
        // A jump that decides nothing is compared nowhere else.
        let is_known = is_known && !bits::is_control(inst);
        if !is_known && !known.contains(&shape(inst, table)) {
            return Err(Unknown::Form(at.0 * 16));
        }
        if let Some(read) = Read::of(inst).filter(|read| !constants.contains(read))
            && (!words.contains(&read.word()) && !read.is_inside(parameters) || !read.is_aligned())
        {
            return Err(Unknown::Constant(at.0 * 16));
        }
        if !torn.is_superset(&self::torn(new, at).collect()) {
            return Err(Unknown::Tuple(at.0 * 16));
        }
    }
    Ok(())
}

/// A constant that an instruction reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Read {
    constant: bits::Constant,
    /// Where an operand is a constant: one opcode always reads as many bytes.
    opcode: Option<u32>,
}

impl Read {
    fn of(inst: Instruction) -> Option<Self> {
        let constant = bits::constant(inst)?;
        let opcode = (!constant.is_load).then(|| bits::OPCODE.get(inst));
        Some(Read { constant, opcode })
    }

    fn word(&self) -> [i64; 2] {
        [i64::from(self.constant.bank), self.constant.offset & !3]
    }

    fn is_aligned(&self) -> bool {
        self.constant.offset & (self.constant.bytes - 1) == 0
    }

    /// Does it stay inside the parameters, which end so many bytes behind the beginning of bank 0?
    fn is_inside(&self, parameters: u64) -> bool {
        let offset = u64::try_from(self.constant.offset);
        let end = offset.map(|offset| offset + self.constant.bytes as u64);
        self.constant.bank == 0 && end.is_ok_and(|end| end <= parameters)
    }
}

/// `LDL R, [UR+n]` or `STL [UR+n], R`, which ptxas does not write (tried on sm_90).
fn is_uniform_frame_access(inst: Instruction) -> bool {
    let (register, uniform) = match bits::OPCODE.get(inst) {
        0x983 => (bits::RESULT, bits::LOAD_UNIFORM),
        0x987 => (bits::B, bits::STORE_UNIFORM),
        _ => return false,
    };
    let fields = [
        bits::OPCODE,
        bits::GUARD,
        register,
        bits::A,
        bits::OFFSET,
        bits::SIZE,
        bits::CACHE,
        bits::HAS_UNIFORM,
        bits::CONTROL,
        uniform,
    ];
    let known = fields.iter().fold(0, |all, field| all | field.mask());
    let is_in_range = bits::SIZE.get(inst) < 7 && bits::CACHE.get(inst) < 6;
    inst.bits() & !known == 0
        && is_in_range
        && bits::A.get(inst) == bits::RZ
        && bits::HAS_UNIFORM.get(inst) == 1
}

fn all(code: &Code) -> impl Iterator<Item = Inst> + use<> {
    (0..code.instructions().len() as u32).map(Inst)
}

/// The operands, by opcode and place, that begin at a register which is no multiple of their size.
fn torn(code: &Code, at: Inst) -> impl Iterator<Item = (u32, u8)> + '_ {
    let inst = code.instructions()[at.0 as usize];
    let spans = code.roles(at).spans().iter();
    let torn = spans.filter(|span| {
        let registers = span.registers();
        let size = registers.end - registers.start;
        size > 1
            && !registers
                .start
                .is_multiple_of(size.next_power_of_two().min(4))
    });
    torn.map(move |span| (bits::OPCODE.get(inst), span.bit))
}

/// An instruction that does more than write registers.
struct Event {
    inst: Inst,
    shape: u128,
    /// What is waited for since the event before it.
    waits: u32,
    /// The scoreboards that it sets.
    scoreboards: [u32; 2],
    stall: u32,
}

/// Scoreboards and waits order memory, too (fences, groups of asynchronous copies): events must set the same
/// scoreboards, stall as long, and wait for as much, in the order of the code. Where one told nothing, it may tell
/// by a scoreboard that nobody waits for by count: that makes others wait longer, if anything.
pub(super) fn same_order(
    original: &Code,
    new: &Code,
    area: &Range<u32>,
    table: &'static Table,
) -> Result<(), Unknown> {
    let before = events(original, &(0..0), table);
    let after = events(new, area, table);
    let counted = counted(new);
    for (at, event) in after.iter().enumerate() {
        let keeps = before.get(at).is_some_and(|old| {
            old.shape == event.shape
                && (old.scoreboards.iter().zip(event.scoreboards)).all(|(&old, new)| {
                    old == new || old == NO_SCOREBOARD && counted >> new & 1 == 0
                })
                && old.waits & !event.waits == 0
                && old.stall <= event.stall
        });
        if !keeps {
            return Err(Unknown::Schedule(event.inst.0 * 16));
        }
    }
    match before.len() == after.len() {
        true => Ok(()),
        false => Err(Unknown::Schedule(0)),
    }
}

/// The value of a field that names no scoreboard.
const NO_SCOREBOARD: u32 = 7;

/// The scoreboards that DEPBAR names, one bit each: it waits for all but some of what they count, or for all.
fn counted(code: &Code) -> u32 {
    const DEPBAR: u32 = 0x11a;
    let words = code.instructions().iter();
    let words = words.filter(|&&word| bits::OPCODE.get(word) & 0x1ff == DEPBAR);
    words.fold(0, |all, word| {
        let also = (word.bits() >> 32) as u32 & 0x3f;
        all | also | 1 << ((word.bits() >> 44) as u32 & 7)
    })
}

/// All events but accesses to the version's own memory, which registers alone order.
fn events(code: &Code, area: &Range<u32>, table: &'static Table) -> Vec<Event> {
    let mut events = Vec::new();
    let mut waits = 0;
    for inst in all(code) {
        let word = code.instructions()[inst.0 as usize];
        let entry = table.entries().get(&(bits::OPCODE.get(word) as u16));
        let name = entry.map_or("", |entry| entry.name.as_str());
        let is_own = match name {
            "LDL" | "STL" => true,
            "LDS" | "STS" => {
                u32::try_from(bits::offset(word)).is_ok_and(|offset| area.contains(&offset))
            }
            _ => false,
        };
        waits |= bits::WAITS.get(word);
        if is_own || step::PURE.contains(&name) || matches!(name, "S2R" | "S2UR" | "CS2R") {
            continue;
        }
        events.push(Event {
            inst,
            shape: shape(word, table),
            waits: std::mem::take(&mut waits),
            scoreboards: bits::SCOREBOARDS.map(|field| field.get(word)),
            stall: bits::STALL.get(word),
        });
    }
    events
}
