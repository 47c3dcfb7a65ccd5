//! Facts about a kernel that can be changed in a finished cubin without moving a byte.

use object::read::elf::{ElfFile64, ElfSection64};
use object::{Object, ObjectSection, ObjectSymbol};

use crate::cubin::{Cubin, CubinError, EIATTR_MAXREG_COUNT, EIATTR_REGCOUNT, records, word};

/// Why a cubin cannot be patched.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatchError {
    /// It cannot be read.
    #[error(transparent)]
    Cubin(#[from] CubinError),
    /// The fact to be changed is not there.
    #[error("the cubin does not state the {0} of `{1}`")]
    NotStated(&'static str, String),
    /// The change contradicts another fact.
    #[error("{wanted} registers: `{kernel}` {why}")]
    Registers {
        /// The kernel.
        kernel: String,
        /// Registers per thread asked for.
        wanted: u32,
        /// What is in the way.
        why: String,
    },
}

/// The cubin with another register count (EIATTR_REGCOUNT) for `kernel`: what the driver allocates
/// per thread. The code stays as it is, so the count may only grow.
///
/// Cubins before sm_90 repeat the count in the flags of the code section; they are refused.
pub fn set_registers(bytes: &[u8], kernel: &str, registers: u32) -> Result<Vec<u8>, PatchError> {
    let refuse = |why: String| PatchError::Registers {
        kernel: kernel.into(),
        wanted: registers,
        why,
    };
    let cubin = Cubin::parse(bytes)?;
    let own = cubin.kernel(kernel).map_or(0, |k| k.registers);
    if cubin.sm < 90 {
        return Err(refuse(format!("is built for sm_{}", cubin.sm)));
    }
    if registers < own {
        return Err(refuse(format!("uses {own}")));
    }
    let elf: ElfFile64 = ElfFile64::parse(bytes).map_err(|e| CubinError::NotElf(e.to_string()))?;
    let missing = || PatchError::NotStated("register count", kernel.into());
    if let Some(limit) = register_limit(&elf, kernel)?.filter(|&limit| limit < registers) {
        return Err(refuse(format!("is limited to {limit}")));
    }
    let symbol = elf
        .symbols()
        .find(|s| s.name() == Ok(kernel))
        .ok_or_else(missing)?;
    let info = elf.section_by_name(".nv.info").ok_or_else(missing)?;
    let (start, _) = info.file_range().ok_or_else(missing)?;
    let at = register_count(data(&info)?, symbol.index().0 as u32)?.ok_or_else(missing)?;
    let at = start as usize + at;
    let mut new = bytes.to_vec();
    let field = new.get_mut(at..at + 4).ok_or_else(missing)?;
    field.copy_from_slice(&registers.to_le_bytes());
    Ok(new)
}

/// The register limit (EIATTR_MAXREG_COUNT) under which the kernel was compiled; 255 says none.
fn register_limit(elf: &ElfFile64, kernel: &str) -> Result<Option<u32>, CubinError> {
    let Some(info) = elf.section_by_name(&format!(".nv.info.{kernel}")) else {
        return Ok(None);
    };
    for record in records(data(&info)?) {
        if let (EIATTR_MAXREG_COUNT, [low, high]) = record? {
            return Ok(Some(u16::from_le_bytes([*low, *high]).into()));
        }
    }
    Ok(None)
}

/// Offset of the four bytes in `.nv.info` that hold the register count of a symbol.
fn register_count(info: &[u8], symbol: u32) -> Result<Option<usize>, CubinError> {
    for record in records(info) {
        let (attribute, payload) = record?;
        if attribute == EIATTR_REGCOUNT && word(payload, 0) == Some(symbol) && payload.len() >= 8 {
            let start = payload.as_ptr() as usize - info.as_ptr() as usize;
            return Ok(Some(start + 4));
        }
    }
    Ok(None)
}

fn data<'d>(section: &ElfSection64<'d, '_>) -> Result<&'d [u8], CubinError> {
    section
        .data()
        .map_err(|e| CubinError::Damaged(e.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_count_of_the_right_kernel_is_found() {
        let info = [
            [0x04, 0x2f, 8, 0, 6, 0, 0, 0, 40, 0, 0, 0],
            [0x04, 0x11, 8, 0, 7, 0, 0, 0, 16, 0, 0, 0],
            [0x04, 0x2f, 8, 0, 7, 0, 0, 0, 68, 0, 0, 0],
        ]
        .concat();
        assert_eq!(register_count(&info, 7), Ok(Some(32)));
        assert_eq!(info[32], 68);
        assert_eq!(register_count(&info, 8), Ok(None));
    }

    #[test]
    fn junk_is_an_error() {
        assert!(matches!(
            set_registers(&[0x7f; 99], "k", 64),
            Err(PatchError::Cubin(CubinError::NotElf(_)))
        ));
    }
}
