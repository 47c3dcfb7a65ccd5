//! What differs between architectures in the containers and the encoding of machine code, and where the driver
//! leaves what a kernel reads at its entry.

use crate::fact::{Confidence, Provenance};

/// One row: an architecture and those behind it up to the next row's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MachineCode {
    /// The first architecture.
    pub since: u32,
    /// The top byte of a text section's `sh_info` repeats the register count of `.nv.info`.
    pub repeats_registers: bool,
    /// Bytes of shared memory that the system takes and that a section of static shared memory counts in.
    pub reserved_in_section: u32,
    /// A branch's distance stands in two fields.
    pub splits_distances: bool,
    /// `LEPC` and `WARPSYNC.COLLECTIVE` name a place in the code.
    pub names_code: bool,
    /// Bits of a uniform register's number.
    pub uniform_bits: u8,
    /// The initial stack pointer: a byte offset into constant bank 0.
    pub stack_pointer: u32,
    /// The block's first dimension, the others behind it: a byte offset into constant bank 0.
    pub block_size: u32,
    /// Where the row comes from.
    pub source: Provenance,
}

const CUBINS: Provenance = Provenance {
    confidence: Confidence::Measured,
    source: "cubins of ptxas 13.0 and 13.5, and what nvdisasm reads in them",
};

const TURING: MachineCode = MachineCode {
    since: 0,
    repeats_registers: true,
    reserved_in_section: 0,
    splits_distances: false,
    names_code: false,
    uniform_bits: 6,
    stack_pointer: 0x28,
    block_size: 0,
    source: CUBINS,
};

const HOPPER: MachineCode = MachineCode {
    since: 90,
    repeats_registers: false,
    reserved_in_section: 1024,
    splits_distances: true,
    names_code: true,
    ..TURING
};

const BLACKWELL: MachineCode = MachineCode {
    since: 100,
    uniform_bits: 8,
    stack_pointer: 0x37c,
    block_size: 0x360,
    ..HOPPER
};

/// All rows, from the oldest to the newest.
const ROWS: [&MachineCode; 3] = [&TURING, &HOPPER, &BLACKWELL];

/// The row of an architecture.
pub fn machine_code(sm: u32) -> &'static MachineCode {
    let newest = ROWS.iter().rfind(|row| row.since <= sm);
    newest.unwrap_or(&ROWS[0])
}

/// Does machine code for one architecture run on another? It does on later ones of the same generation (CUDA C++
/// Programming Guide, Binary Compatibility).
pub fn runs_on(code: u32, device: u32) -> bool {
    code / 10 == device / 10 && code <= device
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_hold_up_to_the_next() {
        let since = |sm| machine_code(sm).since;
        assert_eq!(
            [75, 89, 90, 99, 100, 121].map(since),
            [0, 0, 90, 90, 100, 100]
        );
    }

    #[test]
    fn what_a_section_counts_in_is_what_the_system_takes() {
        for arch in crate::architectures() {
            let counted = machine_code(arch.sm).reserved_in_section;
            assert!(
                counted == 0 || counted == arch.shared.reserved,
                "sm_{}",
                arch.sm
            );
        }
    }
}
