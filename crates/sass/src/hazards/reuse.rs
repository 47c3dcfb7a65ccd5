//! Operand reuse: where ptxas sets the flags, and where it never does.
//!
//! In 42,767 instructions with flags, all had the yield bit set, named a slot that holds a general
//! register, and did not write a register that they kept. That the register is read again there does not matter, nor
//! that an instruction with a fixed latency writes it before: ptxas leaves flags there, so the hardware notices. What
//! arrives later it does not notice: on an H200 `IMAD.MOV.U32 R0, RZ, RZ, R19` read what an earlier `R19.reuse` had
//! kept, though an LDS had written R19 in between.

use warpwright_flow::{Function, Inst};

use super::timing::Timing;
use crate::function::{Code, value_of};
use crate::isa::table::Table;
use crate::roles::{File, Span};

/// What is wrong with a reuse flag.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ReuseFault {
    /// The flags mean something else or nothing.
    #[error("the yield bit is clear")]
    Yields,
    /// There is nothing to keep.
    #[error("no general register stands there")]
    NoRegister,
    /// What is kept is out of date at once.
    #[error("the instruction writes the register")]
    Written,
    /// What is kept is out of date before it is read from there.
    #[error("what takes an unknown time writes the register before it is read there again")]
    Stale,
}

/// The first slot of an instruction that must not have its flag; its block ends before `end`.
pub(super) fn fault(
    code: &Code,
    inst: Inst,
    timings: &[Timing],
    end: Inst,
) -> Option<(u8, ReuseFault)> {
    let control = code.instructions()[inst.0 as usize].control();
    let flagged = (0..4u8).filter(|slot| control.reuse >> slot & 1 != 0);
    flagged
        .filter_map(|slot| {
            let fault = match operand(code, inst, slot) {
                _ if !control.yield_bit => ReuseFault::Yields,
                None => ReuseFault::NoRegister,
                Some(span) if writes(code, inst, span) => ReuseFault::Written,
                Some(span) if is_stale(code, inst.0 + 1..end.0, timings, slot, span) => {
                    ReuseFault::Stale
                }
                Some(_) => return None,
            };
            Some((slot, fault))
        })
        .next()
}

/// Is the register written late before an instruction reads it in this slot?
fn is_stale(
    code: &Code,
    behind: std::ops::Range<u32>,
    timings: &[Timing],
    slot: u8,
    span: Span,
) -> bool {
    for next in behind.map(Inst) {
        if operand(code, next, slot).is_some_and(|other| other.first == span.first) {
            return false;
        }
        if writes(code, next, span) {
            return timings[next.0 as usize].is_late;
        }
    }
    false
}

/// The general register that a flag keeps. Which source a slot stands for is the form's: `FADD R0, R1, R2` has R2 in
/// the third, `FSETP` in the second.
pub(crate) fn operand(code: &Code, inst: Inst, slot: u8) -> Option<Span> {
    let word = code.instructions()[inst.0 as usize];
    let bit = Table::of(word.sm())?.find(word.bits())?.kept(slot)?;
    let mut uses = code.roles(inst).uses();
    uses.find(|span| span.file == File::Gpr && span.bit == bit)
}

pub(crate) fn writes(code: &Code, inst: Inst, span: Span) -> bool {
    let mut writes = false;
    code.for_each_def(inst, |value| {
        let mut kept = span.registers().filter_map(|n| value_of(span.file, n));
        writes |= kept.any(|register| register == value);
    });
    writes
}
