//! The file header: kind of file, architecture, ABI version.
//!
//! e_flags has two layouts, told apart by the ABI version in e_ident (names after LLVM's
//! `BinaryFormat/ELF.h`, checked against ptxas 13.0 and 13.5):
//!
//! | ABI version | architecture | architecture-specific features (`sm_90a`) |
//! |---|---|---|
//! | up to 7 | bits 0 to 7 | bit 11 |
//! | from 8 | bits 8 to 15 | bit 3 |
//!
//! The other bits are kept. Not every ptxas sets the bit for architecture-specific features: 13.5 has
//! an attribute of `.nv.compat` in its place (9, 1 for `sm_90a`, 0 for `sm_90` and `sm_100f`; found by
//! comparing its files). Where neither is set, nothing follows from it.

use object::LittleEndian;
use object::elf::{FileHeader64, Ident};

/// e_machine of CUDA.
pub const EM_CUDA: u16 = 190;

/// The first ABI version with the new layout of e_flags.
const NEW_LAYOUT: u8 = 8;

/// What a cubin is made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Target {
    /// The architecture as a number, 90 for sm_90.
    pub sm: u32,
    /// Is the bit for architecture-specific features set?
    pub specific: bool,
    /// ABI version: 7 up to CUDA 12, 8 with CUDA 13.
    pub abi: u8,
}

impl Target {
    /// Reads e_flags by the layout that belongs to the ABI version.
    pub fn decode(abi: u8, flags: u32) -> Target {
        let (sm, specific) = if abi >= NEW_LAYOUT {
            ((flags >> 8) & 0xff, flags & 1 << 3 != 0)
        } else {
            (flags & 0xff, flags & 1 << 11 != 0)
        };
        Target { sm, specific, abi }
    }
}

/// The attribute of `.nv.compat` for the kind of target, and its value for architecture-specific features.
const KIND: u8 = 9;
const SPECIFIC: u8 = 1;

/// Does `.nv.compat` say that a file has architecture-specific features? Its attributes have a format, a number, and two
/// bytes, of format 4 the size of what follows.
pub(crate) fn is_specific(mut compat: &[u8]) -> bool {
    while let &[format, number, low, high, ref rest @ ..] = compat {
        if number == KIND {
            return low == SPECIFIC;
        }
        let size = u16::from_le_bytes([low, high]);
        let behind = if format == 4 { size.into() } else { 0 };
        compat = rest.get(behind..).unwrap_or_default();
    }
    false
}

/// The fields of the file header that do not follow from the rest.
#[derive(Debug, Clone)]
pub(crate) struct Header {
    pub ident: Ident,
    pub kind: u16,
    pub machine: u16,
    pub version: u32,
    pub entry: u64,
    pub flags: u32,
    /// Entry size of the program headers as stated: 0 in some files that have none.
    pub segment_entry: u16,
    /// Offset of the program header table as stated, for files that have none.
    pub segment_offset: u64,
    /// The section with the section names.
    pub names: usize,
}

impl Header {
    pub(crate) fn read(raw: &FileHeader64<LittleEndian>, names: usize) -> Header {
        let e = LittleEndian;
        Header {
            ident: raw.e_ident,
            kind: raw.e_type.get(e),
            machine: raw.e_machine.get(e),
            version: raw.e_version.get(e),
            entry: raw.e_entry.get(e),
            flags: raw.e_flags.get(e),
            segment_entry: raw.e_phentsize.get(e),
            segment_offset: raw.e_phoff.get(e),
            names,
        }
    }

    pub(crate) fn target(&self) -> Target {
        Target::decode(self.ident.abi_version, self.flags)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As ptxas 13.5 writes it for sm_100a and for sm_90; and a value of 9 within another attribute.
    #[test]
    fn architecture_specific_features_in_compat() {
        let specific = [2, 9, 1, 0, 2, 12, 0, 0, 2, 2, 1, 0, 2, 5, 5, 0];
        assert!(is_specific(&specific));
        let base = [2, 9, 0, 0, 2, 12, 0, 0, 4, 11, 8, 0, 2, 9, 1, 0, 0, 0, 0, 0];
        assert!(!is_specific(&base) && !is_specific(&base[8..]) && !is_specific(&[]));
    }

    /// The first three as ptxas 13.5 writes them, the last two as CUDA 12 did (LLVM's masks).
    #[test]
    fn both_layouts_of_e_flags() {
        let target = |sm, specific, abi| Target { sm, specific, abi };
        assert_eq!(Target::decode(8, 0x600_5a04), target(90, false, 8));
        assert_eq!(Target::decode(8, 0xa00_4b04), target(75, false, 8));
        assert_eq!(Target::decode(8, 0x600_640c), target(100, true, 8));
        assert_eq!(Target::decode(7, 0x0056_0556), target(86, false, 7));
        assert_eq!(Target::decode(7, 0x005a_0d5a), target(90, true, 7));
    }
}
