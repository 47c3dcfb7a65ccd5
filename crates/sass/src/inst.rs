//! One 128-bit instruction of sm_75 and later: the control field, the guard, the resource it
//! occupies, and where it branches to.
//!
//! Bit positions as docs/facts.md and `nvdisasm -hex` show them: opcode in bits 0 to 11 (the
//! low nine name the operation, the upper three its operand form), guard in 12 to 15, control
//! field in 105 to 125.

/// The execution resource that an instruction occupies, which decides how often one can issue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Unit {
    /// Integer add, logic, moves, comparisons, and everything we do not know better.
    Alu,
    /// Single-precision floating point and integer multiply-add.
    Fma,
    /// Packed half precision.
    Half,
    /// Double precision.
    Fp64,
    /// Special functions and conversions.
    Sfu,
    /// Shared-memory loads, stores, atomics, and shuffles.
    Shared,
    /// Global or generic loads.
    GlobalLoad,
    /// Global or generic stores and reductions.
    GlobalStore,
    /// Local-memory loads.
    LocalLoad,
    /// Local-memory stores.
    LocalStore,
    /// Loads from constant banks through the load path.
    Constant,
    /// Texture and surface accesses.
    Texture,
    /// Tensor cores.
    Tensor,
    /// Branches, barriers, exits.
    Control,
}

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

    /// Operation without its operand form (bits 0 to 8).
    pub fn operation(self) -> u16 {
        self.field(0, 9) as u16
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
        matches!(self.operation(), 0x14d | 0x150)
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

    /// Target of a relative branch as a signed distance in bytes from the next instruction.
    ///
    /// Turing to Ada keep bytes/4 in bits 34 to 81; Hopper and later moved the low eight bits of
    /// that number to bits 16 to 23 (compared against nvdisasm's labels, ptxas 13.5).
    pub fn branch_offset(self) -> Option<i64> {
        if self.operation() != 0x147 {
            return None;
        }
        Some(self.relative_distance())
    }

    /// The distance field of relative branches and calls, whatever the instruction is.
    pub(crate) fn relative_distance(self) -> i64 {
        let upper = ((self.field(34, 48) << 16) as i64) >> 16;
        if self.sm < 90 {
            return upper * 4;
        }
        ((upper << 8) | self.field(16, 8) as i64) * 4
    }

    /// The resource that it occupies.
    pub fn unit(self) -> Unit {
        match self.operation() {
            0x020 | 0x021 | 0x023 | 0x024 | 0x025 | 0x026 | 0x027 => Unit::Fma,
            0x030..=0x035 => Unit::Half,
            0x028..=0x02b => Unit::Fp64,
            0x03c..=0x03f | 0x1f0..=0x1f7 => Unit::Tensor,
            0x100..=0x112 => Unit::Sfu,
            0x184 | 0x188 | 0x189 | 0x18c | 0x18d | 0x13b => Unit::Shared,
            0x180 | 0x181 | 0x18a | 0x1a8 => Unit::GlobalLoad,
            0x185 | 0x186 | 0x18e => Unit::GlobalStore,
            0x183 => Unit::LocalLoad,
            0x187 => Unit::LocalStore,
            0x182 => Unit::Constant,
            0x160..=0x16f | 0x19b | 0x19d | 0x1a0..=0x1a6 => Unit::Texture,
            0x140..=0x15f | 0x11d | 0x118 => Unit::Control,
            _ => Unit::Alu,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inst(sm: u32, low: u64, high: u64) -> Instruction {
        Instruction::new(sm, u128::from(low) | u128::from(high) << 64)
    }

    /// Encodings and distances as `nvdisasm -hex` shows them for a kernel of ours.
    #[test]
    fn branch_distances_agree_with_nvdisasm() {
        let cases = [
            (75, 0x0000216000008947, 0x000fea0003800000, 0x2160),
            (80, 0xfffffff000007947, 0x000fc0000383ffff, -16),
            (90, 0x0000001c00f48947, 0x000fea0003800000, 0x1fd0),
            (90, 0xfffffffc00fc7947, 0x000fc0000383ffff, -16),
            (100, 0x0000002108547547, 0x000fea000b800000, 0x2150),
            (120, 0x0000000000180947, 0x004fea0003800000, 0x60),
        ];
        for (sm, low, high, distance) in cases {
            assert_eq!(
                inst(sm, low, high).branch_offset(),
                Some(distance),
                "sm_{sm} {low:#x}"
            );
        }
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
