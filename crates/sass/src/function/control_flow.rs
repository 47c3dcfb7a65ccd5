//! Control transfer as the bits of one instruction say it.

use crate::inst::Instruction;

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
const COLLECTIVE: u128 = 1 << 86;

impl ControlFlow {
    /// Reads `inst`.
    pub fn of(inst: Instruction) -> ControlFlow {
        let bits = inst.bits();
        match (bits & 0xfff) as u16 {
            0x547 | 0x947 => {
                let distance = inst.relative_distance();
                let conditional = Self::second(bits) != PT || bits & BRA_MODIFIERS != 0;
                match conditional {
                    true => ControlFlow::Branch(distance),
                    false => ControlFlow::Jump(distance),
                }
            }
            // Before sm_90 the bit means WARPSYNC.EXCLUSIVE, which goes nowhere.
            0x348 if bits & COLLECTIVE != 0 && inst.sm() >= 90 => {
                ControlFlow::Collective(inst.relative_distance())
            }
            0x944 => ControlFlow::Call(inst.relative_distance()),
            0x343 | 0x344 | 0x943 => ControlFlow::FarCall,
            0x949 | 0x958 => ControlFlow::Table,
            0x34a | 0x94a | 0x34c | 0x94c | 0x959 => ControlFlow::FarJump,
            0x350 | 0x950 => ControlFlow::Return,
            0x94d | 0x95b => ControlFlow::Exit,
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

#[cfg(test)]
mod tests {
    use super::*;

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
