//! One 128-bit instruction of sm_75 and later: the control field, the guard, the resource it
//! occupies, and where it branches to.
//!
//! Bit positions as docs/facts.md and `nvdisasm -hex` show them: opcode in bits 0 to 11 (the
//! low nine name the operation, the upper three its operand form), guard in 12 to 15, control
//! field in 105 to 125.

use warpwright_target::Unit;

use crate::operation::{Opcode, Operation};

/// One instruction, as it stands in the binary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Instruction {
    bits: u128,
    sm: u32,
}

impl Instruction {
    /// The instruction with these bits on architecture `sm` (75, 80, 90 …).
    pub fn new(sm: u32, bits: u128) -> Self {
        Instruction { bits, sm }
    }

    fn field(self, start: u32, width: u32) -> u64 {
        ((self.bits >> start) & ((1u128 << width) - 1)) as u64
    }

    /// The architecture as a number, 90 for sm_90.
    pub fn sm(self) -> u32 {
        self.sm
    }

    /// Other bits on the same architecture.
    pub fn with_bits(self, bits: u128) -> Self {
        Instruction { bits, sm: self.sm }
    }

    /// The whole 128 bits.
    pub fn bits(self) -> u128 {
        self.bits
    }

    /// Operation and operand form (bits 0 to 11).
    pub fn opcode(self) -> Opcode {
        Opcode::new(self.bits as u16)
    }

    /// Operation without its operand form (bits 0 to 8).
    pub fn operation(self) -> Operation {
        Operation::new(self.bits as u16)
    }

    /// Cycles the scheduler waits before this warp may issue its next instruction.
    pub fn stall(self) -> u32 {
        u32::from(self.control().stall)
    }

    /// Scoreboard that the result releases when it arrives, if any.
    pub fn write_barrier(self) -> Option<usize> {
        self.control().write_barrier.map(usize::from)
    }

    /// Scoreboard that is released when the sources have been read, if any.
    pub fn read_barrier(self) -> Option<usize> {
        self.control().read_barrier.map(usize::from)
    }

    /// Set of scoreboards to wait for before issue, one bit each.
    pub fn wait_mask(self) -> u8 {
        self.control().wait_mask
    }

    /// Is it guarded by a predicate other than PT?
    pub fn is_predicated(self) -> bool {
        self.field(12, 4) != 7
    }

    /// Does it end the thread or the function?
    pub fn is_exit(self) -> bool {
        matches!(self.operation(), Operation::EXIT | Operation::RET)
    }

    /// Bytes moved per thread by a load or store (bits 73 to 75), 4 for other instructions.
    pub fn access_bytes(self) -> u32 {
        match self.field(73, 3) {
            0 | 1 => 1,
            2 | 3 => 2,
            4 => 4,
            5 => 8,
            6 => 16,
            _ => 4,
        }
    }

    /// The resource that it occupies.
    pub fn unit(self) -> Unit {
        Unit::of(self.operation().number())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inst(sm: u32, low: u64, high: u64) -> Instruction {
        Instruction::new(sm, u128::from(low) | u128::from(high) << 64)
    }

    #[test]
    fn control_field() {
        let bra = inst(90, 0x0000000000181947, 0x000ff40003800000);
        assert_eq!(bra.stall(), 10);
        assert_eq!(bra.write_barrier(), None);
        assert_eq!(bra.wait_mask(), 0);
        assert!(bra.is_predicated());
        assert_eq!(bra.unit(), Unit::Control);
    }
}
