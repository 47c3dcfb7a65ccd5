//! The decoder of branches: where an instruction names a place in the code, in every encoding, what it does
//! to the program counter, and constants that are return addresses.
//!
//! Positions and units were compared with the labels that nvdisasm 13.5 prints, for sm_75 to
//! sm_120. Distances count from the next instruction. Up to sm_89 the distance divided by 4 stands
//! in bits 34 to 81; later its low eight bits moved to bits 16 to 23. BSSY keeps a barrier there, and
//! from sm_100 on its mode in bits 72 and 73: its distance is in bits 34 to 63. LEPC of sm_90 and
//! later has a distance in bytes in bits 24 to 31.

use warpwright_target::machine_code;

use crate::inst::Instruction;
use crate::operation::{OperandForm, Operation};

/// Bytes of an instruction.
const INSTRUCTION: i64 = 16;

/// How an instruction refers to code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CodeOperand {
    /// Not at all.
    None,
    /// To the instruction at this distance in bytes from the next one. Returns and calls through a
    /// register use it as the base to which the register is added.
    Relative(i64),
    /// By a table in constant memory, whose entries count from the instruction at this distance.
    Table(i64),
    /// By a register, in a way that is not followed; the name of the instruction.
    Indirect(&'static str),
}

/// The forms in which a distance is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Field {
    /// Bits 34 to 81, in units of 4 bytes.
    Whole,
    /// The same, and eight lower bits in 16 to 23.
    Split,
    /// Bits 34 to 63, in units of 4 bytes.
    Short,
    /// Bits 24 to 31, in bytes.
    Small,
}

impl Instruction {
    /// How this instruction refers to code.
    pub fn code_operand(self) -> CodeOperand {
        let through_register = self.opcode().form() == OperandForm::REGISTERS;
        match self.operation() {
            Operation::JMP => CodeOperand::Indirect("JMP"),
            Operation::JMX => CodeOperand::Indirect("JMX"),
            Operation::JMXU => CodeOperand::Indirect("JMXU"),
            Operation::BRX | Operation::BRXU => match self.field_of_distance() {
                Some(field) => CodeOperand::Table(self.distance(field)),
                None => CodeOperand::None,
            },
            // The register form adds the distances of function pointers.
            Operation::CALL_REL if through_register => {
                CodeOperand::Indirect("CALL.REL through a register")
            }
            Operation::LEPC if through_register => CodeOperand::Indirect("LEPC without a target"),
            _ => match self.field_of_distance() {
                Some(field) => CodeOperand::Relative(self.distance(field)),
                None => CodeOperand::None,
            },
        }
    }

    /// The same instruction with another distance in bytes; `None` if it does not fit, or if the
    /// instruction has none.
    pub fn with_distance(self, distance: i64) -> Option<Instruction> {
        let field = self.field_of_distance()?;
        let mask = |start: u32, width: u32| ((1u128 << width) - 1) << start;
        let bits = match field {
            Field::Small => {
                if !(0..0x80).contains(&distance) {
                    return None;
                }
                self.bits() & !mask(24, 8) | (distance as u128) << 24
            }
            Field::Whole => {
                let number = fits(distance / 4, 48)?;
                self.bits() & !mask(34, 48) | number << 34
            }
            Field::Short => {
                let number = fits(distance / 4, 30)?;
                self.bits() & !mask(34, 30) | number << 34
            }
            Field::Split => {
                let number = fits(distance / 4, 56)?;
                let low = number & 0xff;
                self.bits() & !mask(34, 48) & !mask(16, 8) | (number >> 8) << 34 | low << 16
            }
        };
        let moved = Instruction::new(self.sm(), bits);
        let kept = match moved.code_operand() {
            CodeOperand::Relative(moved) | CodeOperand::Table(moved) => moved == distance,
            _ => false,
        };
        kept.then_some(moved)
    }

    /// Is it a call, whose return address someone has loaded before?
    pub fn is_call(self) -> bool {
        matches!(self.operation(), Operation::CALL_ABS | Operation::CALL_REL)
    }

    /// The 32-bit constant that the instruction puts into a register without changing it: MOV,
    /// IMAD.MOV, or the sum of half-precision constants with zero that ptxas uses for the same.
    pub fn loaded_constant(self) -> Option<u32> {
        const RZ: u128 = 255;
        let zero = |start: u32| (self.bits() >> start) & 0xff == RZ;
        let loads = match (self.operation(), self.opcode().form()) {
            (Operation::MOV, OperandForm::IMMEDIATE) => true,
            // RZ * RZ + immediate; half precision: -RZ * RZ + immediate.
            (
                Operation::IMAD | Operation::HFMA2 | Operation::HFMA2_MMA,
                OperandForm::LAST_IMMEDIATE,
            ) => zero(24) && zero(64),
            _ => false,
        };
        loads.then_some((self.bits() >> 32) as u32)
    }

    /// The same instruction with another 32-bit immediate.
    pub(crate) fn with_constant(self, constant: u32) -> Instruction {
        let bits = self.bits() & !(0xffff_ffffu128 << 32) | u128::from(constant) << 32;
        Instruction::new(self.sm(), bits)
    }

    fn field_of_distance(self) -> Option<Field> {
        let mode = (self.bits() >> 85) & 3;
        let field = match machine_code(self.sm()).splits_distances {
            false => Field::Whole,
            true => Field::Split,
        };
        match self.operation() {
            Operation::BRA | Operation::CALL_REL | Operation::BRX | Operation::BRXU => Some(field),
            Operation::BSSY => Some(Field::Short),
            // RET.REL, not RET.ABS; WARPSYNC.COLLECTIVE, not the other WARPSYNCs.
            Operation::RET | Operation::WARPSYNC if mode == 2 => Some(field),
            Operation::LEPC if machine_code(self.sm()).names_code => Some(Field::Small),
            _ => None,
        }
    }

    fn distance(self, field: Field) -> i64 {
        let upper = ((((self.bits() >> 34) as u64) << 16) as i64) >> 16;
        match field {
            Field::Whole => upper * 4,
            Field::Split => ((upper << 8) | ((self.bits() >> 16) & 0xff) as i64) * 4,
            Field::Short => i64::from((self.bits() >> 32) as i32 >> 2) * 4,
            Field::Small => ((self.bits() >> 24) & 0xff) as i64,
        }
    }
}

/// What an instruction does to the program counter, targets as signed distances in bytes from the next
/// instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ControlFlow {
    /// Nothing: the next instruction follows (also BSSY, BSYNC, BREAK, YIELD and the like, which
    /// wait for or release other threads).
    Next,
    /// A branch, always taken when the guard holds.
    Jump(i64),
    /// A branch under a condition besides the guard: a second predicate, BRA.DIV (do the threads of the
    /// warp diverge?), BRA.U.ANY.
    Branch(i64),
    /// WARPSYNC.COLLECTIVE: the code up to the target is executed for all threads together.
    Collective(i64),
    /// A jump through a table (BRX).
    Table,
    /// A call of known distance.
    Call(i64),
    /// A call whose target a register or a relocation gives.
    FarCall,
    /// A jump whose target a register or a relocation gives and no table lists.
    FarJump,
    /// Back to the caller.
    Return,
    /// The thread ends.
    Exit,
}

/// The second predicate of control instructions with its negation, PT if there is none.
const SECOND: (u32, u128) = (87, 0xf);
const PT: u128 = 7;
/// BRA: .U and .DIV (bits 32 and 33), .INC and .DEC (85, 86), and with a uniform register (91) other forms of
/// them.
const BRA_MODIFIERS: u128 = 3 << 32 | 0x1f << 82 | 1 << 91;

impl ControlFlow {
    /// Reads `inst`.
    pub fn of(inst: Instruction) -> ControlFlow {
        let bits = inst.bits();
        let conditional = Self::second(bits) != PT || bits & BRA_MODIFIERS != 0;
        match (inst.operation(), inst.code_operand()) {
            (Operation::BRA, CodeOperand::Relative(distance)) if conditional => {
                ControlFlow::Branch(distance)
            }
            (Operation::BRA, CodeOperand::Relative(distance)) => ControlFlow::Jump(distance),
            // Elsewhere these bits mean something else, which goes nowhere.
            (Operation::WARPSYNC, CodeOperand::Relative(distance))
                if machine_code(inst.sm()).names_code =>
            {
                ControlFlow::Collective(distance)
            }
            (Operation::CALL_REL, CodeOperand::Relative(distance)) => ControlFlow::Call(distance),
            (Operation::CALL_REL | Operation::CALL_ABS, _) => ControlFlow::FarCall,
            (Operation::BRX | Operation::BRXU, _) => ControlFlow::Table,
            (Operation::JMP | Operation::JMX | Operation::JMXU, _) => ControlFlow::FarJump,
            (Operation::RET, _) => ControlFlow::Return,
            (Operation::EXIT | Operation::KILL, _) => ControlFlow::Exit,
            _ => ControlFlow::Next,
        }
    }

    fn second(bits: u128) -> u128 {
        bits >> SECOND.0 & SECOND.1
    }

    /// Does it transfer control only if a second predicate holds, which is no guard but works as one?
    pub fn has_second_condition(inst: Instruction) -> bool {
        let transfers = matches!(
            ControlFlow::of(inst),
            ControlFlow::Call(_) | ControlFlow::Return | ControlFlow::Exit | ControlFlow::Table
        );
        transfers && Self::second(inst.bits()) != PT
    }
}

/// The number as a two's complement field of so many bits.
fn fits(number: i64, width: u32) -> Option<u128> {
    let limit = 1i64 << (width - 1);
    (-limit..limit)
        .contains(&number)
        .then_some((number as u128) & ((1 << width) - 1))
}

/// Offset of the target of the instruction at byte `at`, for a distance.
pub(crate) fn target(at: usize, distance: i64) -> Option<u64> {
    let next = i64::try_from(at).ok()? + INSTRUCTION;
    u64::try_from(next.checked_add(distance)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inst(sm: u32, low: u64, high: u64) -> Instruction {
        Instruction::new(sm, u128::from(low) | u128::from(high) << 64)
    }

    /// Encodings and targets as `nvdisasm -hex` shows them.
    #[test]
    fn distances_of_every_form() {
        let cases = [
            (90, 0x0000_04e0_0008_7945, 0x000f_e200_0380_0000, 0x4e0), // BSSY
            (100, 0x0000_0550_0008_7945, 0x000f_e200_0380_0200, 0x550), // BSSY.RECONVERGENT
            (90, 0x0000_0000_1014_794e, 0x000f_ce00_0000_0000, 0x10),  // LEPC
            (90, 0xffff_fffc_14b4_7950, 0x000f_ec00_03c3_ffff, -0x130), // RET.REL
            (90, 0x0000_0000_000c_7944, 0x023f_ea00_03c0_0000, 0x30),  // CALL.REL
            (90, 0x0000_0000_0408_7348, 0x002f_ea00_03c0_0000, 0x20),  // WARPSYNC.COLLECTIVE
            (90, 0x0000_0006_0450_8947, 0x004f_ea00_0b80_0000, 0x540), // BRA.DIV
            (75, 0x0000_2160_0000_8947, 0x000f_ea00_0380_0000, 0x2160),
        ];
        for (sm, low, high, distance) in cases {
            let instruction = inst(sm, low, high);
            let operand = instruction.code_operand();
            assert_eq!(operand, CodeOperand::Relative(distance), "{low:#x}");
            for other in [0, 0x40] {
                let moved = instruction.with_distance(other).unwrap();
                assert_eq!(
                    moved.code_operand(),
                    CodeOperand::Relative(other),
                    "{low:#x}"
                );
                assert_eq!(moved.with_distance(distance), Some(instruction), "{low:#x}");
            }
        }
    }

    #[test]
    fn what_is_not_relative_stays_so() {
        let ret_abs = inst(90, 0x0000_0000_1400_7950, 0x000f_c000_03e0_0000);
        let warpsync = inst(90, 0x0000_0000_0000_7348, 0x000f_ea00_0380_0000);
        for instruction in [ret_abs, warpsync] {
            assert_eq!(instruction.code_operand(), CodeOperand::None);
            assert_eq!(instruction.with_distance(0), None);
        }
    }

    /// Bases as nvdisasm prints them: `BRX R2 -0x1b0`, `BRXU UR4 -0x110`, `BRXU UR4 -0xd20`.
    #[test]
    fn tables_count_from_a_base() {
        let cases = [
            (90, 0xffff_fffc_0294_7949, 0x000f_ea00_0383_ffff, -0x1b0),
            (90, 0xffff_fffc_04bc_7958, 0x000f_e400_0b83_ffff, -0x110),
            (75, 0xffff_f2e0_0400_7958, 0x000f_ea00_0b83_ffff, -0xd20),
        ];
        for (sm, low, high, base) in cases {
            let branch = inst(sm, low, high);
            assert_eq!(branch.code_operand(), CodeOperand::Table(base));
            let moved = branch.with_distance(base - 0x40).unwrap();
            assert_eq!(moved.code_operand(), CodeOperand::Table(base - 0x40));
            assert_eq!(moved.with_distance(base), Some(branch));
        }
    }

    #[test]
    fn a_target_out_of_reach_is_refused() {
        let lepc = inst(90, 0x0000_0000_1014_794e, 0x000f_ce00_0000_0000);
        assert_eq!(lepc.with_distance(0x100), None);
        let bra = inst(90, 0x0000_0000_0018_1947, 0x000f_f400_0380_0000);
        assert_eq!(bra.with_distance(i64::MAX), None);
    }

    fn of(sm: u32, bits: u128) -> ControlFlow {
        ControlFlow::of(Instruction::new(sm, bits))
    }

    /// BRA to 0x200 bytes behind itself, in all forms that nvdisasm 13.5 knows.
    #[test]
    fn a_branch_with_a_condition_in_its_modifiers_may_fall_through() {
        let bra = 0x000f_ea00_0380_0000_0000_0200_0000_7947;
        assert_eq!(of(75, bra), ControlFlow::Jump(0x200));
        for (name, bit) in [("U", 32), ("DIV", 33), ("INC", 85), ("DEC", 86)] {
            let found = of(75, bra ^ 1 << bit);
            assert_eq!(found, ControlFlow::Branch(0x200), "BRA.{name}");
        }
        for (name, bit) in [("P6", 87), ("!PT", 90)] {
            let second = of(75, bra ^ 1 << bit);
            assert_eq!(second, ControlFlow::Branch(0x200), "BRA {name}");
        }
    }

    #[test]
    fn warpsync_has_a_target_from_sm_90_on() {
        let warpsync = 0x000f_ea00_03c0_0000_0000_0200_0000_7348;
        assert_eq!(of(89, warpsync), ControlFlow::Next);
        assert!(matches!(of(90, warpsync), ControlFlow::Collective(_)));
    }
}
