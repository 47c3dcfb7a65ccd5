//! Operand reuse: where ptxas sets the flags, and where it never does.
//!
//! In 42,767 instructions with flags, all had the yield bit set, named a slot that holds a general
//! register, and did not write a register that they kept. That the register is read again there does not matter, nor
//! that an instruction with a fixed latency writes it before: ptxas leaves flags there, so the hardware notices. What
//! arrives later it does not notice: on an H200 `IMAD.MOV.U32 R0, RZ, RZ, R19` read what an earlier `R19.reuse` had
//! kept, though an LDS had written R19 in between.

use rustc_hash::FxHashSet;
use warpwright_flow::{Block, Cfg, EntityRef, Function, Inst};

use super::Unchecked;
use super::timing::{Timing, timings};
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

/// Takes flags back that what stands behind their instructions by now makes wrong. What takes an unknown time ends them here
/// whatever writes the register before it, and in other blocks, too.
pub(crate) fn forget(code: &mut Code) -> Result<(), Unchecked> {
    let (cfg, timings) = (Cfg::new(code), timings(code)?);
    for at in 0..code.instructions().len() {
        let inst = Inst::new(at);
        let mut control = code.instructions()[at].control();
        let wrong = |slot: &u8| {
            let kept = Kept {
                code,
                cfg: &cfg,
                timings: &timings,
                inst,
                slot: *slot,
            };
            control.reuse >> slot & 1 != 0 && !kept.is_right()
        };
        let wrong = (0..4).filter(wrong).fold(0, |all, slot| all | 1 << slot);
        if wrong != 0 {
            control.reuse &= !wrong;
            // The field is as wide as it was.
            let _ = code.set_control(inst, control);
        }
    }
    Ok(())
}

/// What a flag of an instruction keeps for its slot.
struct Kept<'a> {
    code: &'a Code,
    cfg: &'a Cfg,
    timings: &'a [Timing],
    inst: Inst,
    slot: u8,
}

impl Kept<'_> {
    /// May the flag stay: is there a register, and does nothing write it that takes an unknown time before it is read there
    /// again?
    fn is_right(&self) -> bool {
        let own = operand(self.code, self.inst, self.slot);
        own.is_some_and(|own| !writes(self.code, self.inst, own) && !self.is_stale(own))
    }

    fn is_stale(&self, own: Span) -> bool {
        let block = self.cfg.block_of(self.inst);
        let rest = self.inst.0 + 1..self.cfg.last_inst(block).0 + 1;
        let (is_late, is_read) = self.pass(own, rest);
        if is_late || is_read {
            return is_late;
        }
        let mut seen = FxHashSet::default();
        let mut work: Vec<Block> = self.cfg.succs(block).to_vec();
        while let Some(block) = work.pop() {
            if !seen.insert(block) {
                continue;
            }
            let all = self.cfg.first_inst(block).0..self.cfg.last_inst(block).0 + 1;
            match self.pass(own, all) {
                (true, _) => return true,
                (false, true) => {}
                (false, false) => work.extend(self.cfg.succs(block)),
            }
        }
        false
    }

    /// Up to where the register is read in the slot: is it written late, and is it read?
    fn pass(&self, own: Span, range: std::ops::Range<u32>) -> (bool, bool) {
        for inst in range.map(Inst) {
            let other = operand(self.code, inst, self.slot);
            if other.is_some_and(|other| other.first == own.first) {
                return (false, true);
            }
            if self.timings[inst.0 as usize].is_late && writes(self.code, inst, own) {
                return (true, false);
            }
        }
        (false, false)
    }
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
