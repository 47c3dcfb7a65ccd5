//! Constants in registers, where ptxas loads them into one that the next instructions read.

use std::collections::BTreeSet;

use crate::branch::{CodeOperand, ControlFlow, target};
use crate::inst::Instruction;
use crate::operation::Operation;
use crate::roles::{File, Roles};

/// Bytes of an instruction.
const INSTRUCTION: usize = 16;

/// The instructions that others lead to; `None` where that is not known of one.
fn entered(code: &[Instruction]) -> Option<BTreeSet<usize>> {
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

/// What a general register holds when the instruction at `at` reads it, if a constant was loaded into it in the same straight
/// line of a function's whole code: no other instruction leads into the middle, and no call stands there.
pub fn held_constant(code: &[Instruction], at: usize, register: u16) -> Option<u32> {
    let entered = entered(code)?;
    for place in (0..at).rev() {
        if entered.contains(&(place + 1)) {
            return None;
        }
        let inst = *code.get(place)?;
        match ControlFlow::of(inst) {
            ControlFlow::Next | ControlFlow::Branch(_) => {}
            ControlFlow::Jump(_) | ControlFlow::Exit | ControlFlow::Return
                if inst.is_predicated() => {}
            _ => return None,
        }
        let roles = Roles::of(inst)?;
        let mut defs = roles.defs().filter(|span| span.file == File::Gpr);
        if let Some(span) = defs.find(|span| span.registers().contains(&register)) {
            let whole = !inst.is_predicated() && span.count == 1;
            return inst.loaded_constant().filter(|_| whole);
        }
    }
    None
}
