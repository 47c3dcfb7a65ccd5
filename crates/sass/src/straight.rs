//! Straight lines of code: what an instruction reads there was written on the only way to it.

use std::collections::BTreeSet;

use crate::branch::{CodeOperand, ControlFlow, target};
use crate::elf::kernel::INSTRUCTION;
use crate::inst::Instruction;
use crate::operation::Operation;
use crate::roles::{File, Roles};

/// The instruction that writes general register `number` last before `at`, in every case and on the only way there.
/// `entries`: where control may come from elsewhere than the instruction before; `is_next`: does the next one follow?
pub(crate) fn last_write(
    code: &[Instruction],
    entries: &BTreeSet<usize>,
    is_next: impl Fn(usize) -> bool,
    at: usize,
    number: u16,
) -> Option<usize> {
    let mut at = at;
    while !entries.contains(&at) {
        at = at.checked_sub(1)?;
        if !is_next(at) {
            return None;
        }
        let inst = *code.get(at)?;
        let roles = Roles::of(inst)?;
        let mut defs = roles.defs().filter(|span| span.file == File::Gpr);
        if defs.any(|span| span.registers().contains(&number)) {
            return (!inst.is_predicated()).then_some(at);
        }
    }
    None
}

/// Constants in registers of a function's whole code, where ptxas loads them into one that the next instructions read.
pub struct HeldConstants<'c> {
    code: &'c [Instruction],
    /// Instructions that the loader changes.
    relocated: &'c BTreeSet<usize>,
    /// The instructions that others lead to; none where that is not known of one.
    entries: Option<BTreeSet<usize>>,
}

impl<'c> HeldConstants<'c> {
    /// Those of `code`, of which the loader changes the instructions `relocated`.
    pub fn new(code: &'c [Instruction], relocated: &'c BTreeSet<usize>) -> HeldConstants<'c> {
        HeldConstants {
            code,
            relocated,
            entries: entries(code),
        }
    }

    /// What a general register holds when the instruction at `at` reads it, if a constant was loaded into it in the same
    /// straight line.
    pub fn at(&self, at: usize, register: u16) -> Option<u32> {
        let entries = self.entries.as_ref()?;
        let is_next = |at: usize| ControlFlow::of(self.code[at]) == ControlFlow::Next;
        let set = last_write(self.code, entries, is_next, at, register)?;
        let is_known = !self.relocated.contains(&set);
        self.code[set].loaded_constant().filter(|_| is_known)
    }
}

fn entries(code: &[Instruction]) -> Option<BTreeSet<usize>> {
    let mut found = BTreeSet::new();
    for (index, inst) in code.iter().enumerate() {
        match inst.code_operand() {
            CodeOperand::None => {}
            CodeOperand::Relative(distance) => {
                let target = target(index * INSTRUCTION, distance)?;
                found.insert(usize::try_from(target).ok()? / INSTRUCTION);
            }
            // Where a callee returns to: behind a call, which no straight line goes through.
            CodeOperand::Indirect(_) if inst.operation() == Operation::LEPC => {}
            CodeOperand::Table(_) | CodeOperand::Indirect(_) => return None,
        }
    }
    Some(found)
}
