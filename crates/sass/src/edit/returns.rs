//! Return addresses: constants in registers that name a place in the code.
//!
//! A relative call does not write its return address; the code loads it as a constant, mostly in the
//! block of the call. Where a helper is called from one place only, ptxas moves the constant into the
//! helper, in front of its return.

use std::collections::{BTreeMap, BTreeSet};

use super::code::{LEPC, Relocated};
use crate::branch::{CodeOperand, target};
use crate::elf::kernel::INSTRUCTION;
use crate::inst::Instruction;

/// The constants that are return addresses: index of the instruction that loads it, and the
/// address. Every call must have one in its own block or in front of a return, or name its return
/// address otherwise.
pub(super) fn return_addresses(
    code: &[Instruction],
    relocated: &Relocated,
) -> Result<BTreeMap<usize, u64>, String> {
    let labels = labels(code);
    let in_helpers = before_returns(code, &labels);
    let mut found = BTreeMap::new();
    for (at, call) in code.iter().enumerate().filter(|(_, i)| i.is_call()) {
        let address = ((at + 1) * INSTRUCTION) as u64;
        let mut known = false;
        for i in (0..at).rev() {
            let old = i * INSTRUCTION;
            let by_relocation = relocated.get(&(old as u64)) == Some(&Some(address));
            let by_lepc = code[i].operation() == LEPC
                && matches!(code[i].code_operand(), CodeOperand::Relative(d) if target(old, d) == Some(address));
            if by_relocation || by_lepc {
                known = true;
                break;
            }
            if code[i].loaded_constant().map(u64::from) == Some(address) {
                found.insert(i, address);
                known = true;
                break;
            }
            if labels.contains(&i) || leaves(code[i]) {
                break;
            }
        }
        if let Some(&i) = in_helpers.get(&address).filter(|_| !known) {
            found.insert(i, address);
            known = true;
        }
        if !known {
            let form = if call.operation() == 0x144 {
                "REL"
            } else {
                "ABS"
            };
            let old = at * INSTRUCTION;
            return Err(format!(
                "the return address of CALL.{form} at {old:#x} is not found"
            ));
        }
    }
    Ok(found)
}

/// Constants that a return takes, loaded in its own block: address, and index of the load.
fn before_returns(code: &[Instruction], labels: &BTreeSet<usize>) -> BTreeMap<u64, usize> {
    const RET: u16 = 0x150;
    let returns = code
        .iter()
        .enumerate()
        .filter(|(_, i)| i.operation() == RET);
    let loads = returns.filter_map(|(at, inst)| {
        let mut register = field(*inst, 24);
        for i in (0..at).rev() {
            if field(code[i], 16) == register {
                if let Some(constant) = code[i].loaded_constant() {
                    return Some((u64::from(constant), i));
                }
                register = copied_from(code[i])?;
            }
            if labels.contains(&i) || leaves(code[i]) {
                break;
            }
        }
        None
    });
    loads.collect()
}

/// The register that a plain `MOV R, R` or `IMAD.MOV.U32 R, RZ, RZ, R` reads.
fn copied_from(inst: Instruction) -> Option<u128> {
    const RZ: u128 = 255;
    let is_zero = |start| field(inst, start) == RZ;
    match inst.bits() & 0xfff {
        0x202 => Some(field(inst, 32)),
        0x224 if is_zero(24) && is_zero(32) => Some(field(inst, 64)),
        _ => None,
    }
}

/// The register in the eight bits from `start` on.
fn field(inst: Instruction, start: u32) -> u128 {
    (inst.bits() >> start) & 0xff
}

/// Does nothing behind it run by falling through?
fn leaves(inst: Instruction) -> bool {
    matches!(inst.operation(), 0x147 | 0x14d | 0x150) && !inst.is_predicated()
}

/// Instructions that a relative branch names.
fn labels(code: &[Instruction]) -> BTreeSet<usize> {
    let targets = code
        .iter()
        .enumerate()
        .filter_map(|(at, i)| match i.code_operand() {
            CodeOperand::Relative(distance) => target(at * INSTRUCTION, distance),
            _ => None,
        });
    targets.map(|t| t as usize / INSTRUCTION).collect()
}
