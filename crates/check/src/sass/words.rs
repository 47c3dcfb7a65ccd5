//! Instruction words by themselves: forms that exist, registers that they can name, and the schedule.

use std::collections::{BTreeMap, BTreeSet};

use warpwright_flow::Inst;
use warpwright_sass::function::Code;
use warpwright_sass::hazards::{self, Hazard};
use warpwright_sass::roles::Table;
use warpwright_sass::{Instruction, isa};

use super::bits;
use super::places::shape;

/// A word of the rewritten version that the hardware may take for something else, or not at all.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Unknown {
    #[error("no instruction of this form is known at {0:#x}")]
    Form(u32),
    #[error("the registers of the instruction at {0:#x} begin at a number that they cannot")]
    Tuple(u32),
    #[error("the instruction at {0:#x} may come too early after others")]
    Schedule(u32),
    #[error("the schedule cannot be checked: {0}")]
    Unchecked(hazards::Unchecked),
}

/// Every word must have a form that is known, and register tuples must begin at multiples of their size,
/// unless the original has the same: also where a word is never executed, as the hardware reads it.
pub(super) fn check(original: &Code, new: &Code, table: &'static Table) -> Result<(), Unknown> {
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
        if !is_known && !known.contains(&shape(inst, table)) {
            return Err(Unknown::Form(at.0 * 16));
        }
        if !torn.is_superset(&self::torn(new, at).collect()) {
            return Err(Unknown::Tuple(at.0 * 16));
        }
    }
    Ok(())
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
        size > 1 && !registers.start.is_multiple_of(size.next_power_of_two().min(4))
    });
    torn.map(move |span| (bits::OPCODE.get(inst), span.bit))
}

/// The control fields must protect every access: by the hazard checker, which looks at them alone. What it
/// finds in the original, too, is its own mistake.
pub(super) fn check_schedule(
    original: &Code,
    new: &Code,
    table: &'static Table,
) -> Result<(), Unknown> {
    let found = |code: &Code| hazards::check(code).map_err(Unknown::Unchecked);
    if has_same_schedule(original, new) {
        return Ok(());
    }
    let violations = found(new)?;
    if violations.is_empty() {
        return Ok(());
    }
    let name = |code: &Code, inst: Inst| shape(code.instructions()[inst.0 as usize], table);
    let about = |code: &Code, violation: &hazards::Violation| {
        let earlier = match violation.hazard {
            Hazard::Order { earlier, .. } => Some(name(code, earlier)),
            _ => None,
        };
        (name(code, violation.inst), earlier)
    };
    let mut known: BTreeMap<_, usize> = BTreeMap::new();
    for violation in found(original)? {
        *known.entry(about(original, &violation)).or_default() += 1;
    }
    for violation in &violations {
        let left = known.get_mut(&about(new, violation));
        let Some(left) = left.filter(|left| **left > 0) else {
            return Err(Unknown::Schedule(violation.inst.0 * 16));
        };
        *left -= 1;
    }
    Ok(())
}

/// Are all words the same but for constants that no schedule depends on? Then there is nothing to check.
fn has_same_schedule(original: &Code, new: &Code) -> bool {
    original.instructions() == new.instructions()
}
