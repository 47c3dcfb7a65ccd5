//! The cubin container: an ELF file with one `.text.NAME` section per function and facts about
//! each kernel in `.nv.info` (for the whole module) and `.nv.info.NAME`.
//!
//! Record format of `.nv.info*`: one byte format, one byte attribute, then either a 16-bit value
//! (formats 1 to 3) or a 16-bit payload size and the payload (format 4). Seen in the output of
//! ptxas 13.0 and 13.5 for sm_75 to sm_120.

use object::read::elf::{ElfFile64, ElfSection64, FileHeader};
use object::{Object, ObjectSection, ObjectSymbol, SymbolKind};
use std::collections::BTreeMap;

use crate::inst::{Instruction, Unit};

const EIATTR_MAX_THREADS: u8 = 0x05;
const EIATTR_REQNTID: u8 = 0x10;
const EIATTR_FRAME_SIZE: u8 = 0x11;
pub(crate) const EIATTR_MAXREG_COUNT: u8 = 0x1b;
pub(crate) const EIATTR_REGCOUNT: u8 = 0x2f;
const FORMAT_SIZED: u8 = 0x04;

/// Why some bytes are not a cubin that we can read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CubinError {
    /// Not an ELF file, or a truncated one.
    #[error("not a cubin: {0}")]
    NotElf(String),
    /// An ELF file for another machine.
    #[error("an ELF file, but not a cubin (machine {0}, not CUDA)")]
    NotCuda(u16),
    /// A section's contents contradict its headers.
    #[error("the cubin is damaged: {0}")]
    Damaged(String),
}

/// A finished cubin: what ptxas wrote, read only.
#[derive(Debug, Clone)]
pub struct Cubin {
    /// The architecture as a number, 90 for sm_90 (ELF header flags, bits 8 to 15).
    pub sm: u32,
    /// Kernels and separately compiled functions, in symbol-table order.
    pub kernels: Vec<Kernel>,
}

/// One function of a cubin that has a `.text` section of its own.
#[derive(Debug, Clone)]
pub struct Kernel {
    /// Symbol name.
    pub name: String,
    /// Is it a kernel (has `.nv.info.NAME` with a parameter bank) rather than a device function?
    pub is_entry: bool,
    /// Registers per thread (EIATTR_REGCOUNT), 0 if the cubin does not say.
    pub registers: u32,
    /// Bytes of local memory per thread (EIATTR_FRAME_SIZE): stack and spills.
    pub frame_bytes: u32,
    /// Bytes of static shared memory per block as the section header states them.
    pub shared_bytes: u32,
    /// `.maxntid` or `.reqntid`, if the kernel states one.
    pub max_threads: Option<[u32; 3]>,
    /// The kernel's own instructions; helper functions placed behind it are left out.
    pub code: Vec<Instruction>,
}

impl Cubin {
    /// Reads a cubin. Bytes are never trusted: any inconsistency is an error.
    pub fn parse(bytes: &[u8]) -> Result<Self, CubinError> {
        let elf: ElfFile64 =
            ElfFile64::parse(bytes).map_err(|e| CubinError::NotElf(e.to_string()))?;
        let header = elf.elf_header();
        let endian = elf.endian();
        const EM_CUDA: u16 = 190;
        if header.e_machine(endian) != EM_CUDA {
            return Err(CubinError::NotCuda(header.e_machine(endian)));
        }
        let abi = header.e_ident().abi_version;
        let sm = crate::elf::Target::decode(abi, header.e_flags(endian)).sm;
        let facts = module_facts(&elf)?;
        let mut kernels = Vec::new();
        for symbol in elf.symbols() {
            if symbol.kind() != SymbolKind::Text || symbol.is_local() {
                continue;
            }
            let (Ok(name), Some(index)) = (symbol.name(), symbol.section_index()) else {
                continue;
            };
            let section = elf
                .section_by_index(index)
                .map_err(|e| CubinError::Damaged(e.to_string()))?;
            if section.name() != Ok(&format!(".text.{name}")) {
                continue;
            }
            kernels.push(read_kernel(
                &elf,
                sm,
                name,
                symbol.index().0,
                &section,
                &facts,
            )?);
        }
        Ok(Cubin { sm, kernels })
    }

    /// The function called `name`.
    pub fn kernel(&self, name: &str) -> Option<&Kernel> {
        self.kernels.iter().find(|k| k.name == name)
    }
}

impl Kernel {
    /// May it use shared memory, static or dynamic? Generic and asynchronous accesses need an address of
    /// shared memory, which comes from the special register of its window.
    pub fn touches_shared(&self) -> bool {
        const READS_SPECIAL: u16 = 0x119;
        const SHARED_WINDOW: u128 = 0x2f;
        self.shared_bytes > 0
            || self.code.iter().any(|inst| {
                let window = inst.bits() >> 72 & 0xff == SHARED_WINDOW;
                inst.unit() == Unit::Shared || (inst.operation() == READS_SPECIAL && window)
            })
    }

    /// Bytes that accesses of `unit` at fixed places of the stack frame move, each counted once: ptxas
    /// counts its spills so, and parts of local arrays with constant indices are among them.
    pub fn frame_traffic(&self, unit: Unit) -> u32 {
        // The frame's start is in R1, or in a uniform register, with RZ beside it.
        let is_fixed = |inst: &&Instruction| matches!(inst.bits() >> 24 & 0xff, 0x01 | 0xff);
        let those = self.code.iter().filter(|inst| inst.unit() == unit);
        those.filter(is_fixed).map(|inst| inst.access_bytes()).sum()
    }
}

/// Attributes of `.nv.info` that name a symbol: attribute and symbol index to value.
type Facts = BTreeMap<(u8, u32), u32>;

fn read_kernel(
    elf: &ElfFile64,
    sm: u32,
    name: &str,
    symbol: usize,
    section: &ElfSection64,
    facts: &Facts,
) -> Result<Kernel, CubinError> {
    let text = section
        .data()
        .map_err(|e| CubinError::Damaged(e.to_string()))?;
    let end = helper_start(elf, section.index().0, name, text.len());
    let code = text[..end]
        .chunks_exact(16)
        .map(|raw| {
            let mut bytes = [0u8; 16];
            bytes.copy_from_slice(raw);
            Instruction::new(sm, u128::from_le_bytes(bytes))
        })
        .collect();
    let fact = |attribute| facts.get(&(attribute, symbol as u32)).copied().unwrap_or(0);
    let info = elf.section_by_name(&format!(".nv.info.{name}"));
    let max_threads = match &info {
        Some(s) => block_bound(s.data().map_err(|e| CubinError::Damaged(e.to_string()))?)?,
        None => None,
    };
    Ok(Kernel {
        name: name.to_string(),
        is_entry: elf
            .section_by_name(&format!(".nv.constant0.{name}"))
            .is_some(),
        registers: fact(EIATTR_REGCOUNT),
        frame_bytes: fact(EIATTR_FRAME_SIZE),
        shared_bytes: elf
            .section_by_name(&format!(".nv.shared.{name}"))
            .map_or(0, |s| u32::try_from(s.size()).unwrap_or(u32::MAX)),
        max_threads,
        code,
    })
}

/// ptxas places slow paths (division, square root) behind the kernel in the same section, as
/// local function symbols: the kernel's own code ends where the first of them starts.
fn helper_start(elf: &ElfFile64, section: usize, kernel: &str, len: usize) -> usize {
    elf.symbols()
        .filter(|s| s.kind() == SymbolKind::Text && s.name() != Ok(kernel))
        .filter(|s| s.section_index().is_some_and(|i| i.0 == section) && s.address() > 0)
        .filter_map(|s| usize::try_from(s.address()).ok())
        .fold(len, usize::min)
}

fn module_facts(elf: &ElfFile64) -> Result<Facts, CubinError> {
    let mut facts = Facts::new();
    let Some(section) = elf.section_by_name(".nv.info") else {
        return Ok(facts);
    };
    let data = section
        .data()
        .map_err(|e| CubinError::Damaged(e.to_string()))?;
    for record in records(data) {
        let (attribute, payload) = record?;
        if let (Some(symbol), Some(value)) = (word(payload, 0), word(payload, 1)) {
            facts.insert((attribute, symbol), value);
        }
    }
    Ok(facts)
}

fn block_bound(data: &[u8]) -> Result<Option<[u32; 3]>, CubinError> {
    for record in records(data) {
        let (attribute, payload) = record?;
        if matches!(attribute, EIATTR_MAX_THREADS | EIATTR_REQNTID)
            && let (Some(x), Some(y), Some(z)) =
                (word(payload, 0), word(payload, 1), word(payload, 2))
        {
            return Ok(Some([x, y, z]));
        }
    }
    Ok(None)
}

pub(crate) fn word(payload: &[u8], index: usize) -> Option<u32> {
    let bytes = payload.get(index * 4..index * 4 + 4)?;
    Some(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
}

/// Iterates over the records of a `.nv.info` section as (attribute, payload); formats without a
/// payload yield their two value bytes.
pub(crate) fn records(data: &[u8]) -> impl Iterator<Item = Result<(u8, &[u8]), CubinError>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        if at == data.len() {
            return None;
        }
        let damaged = || {
            Some(Err(CubinError::Damaged(
                "a .nv.info record is cut short".into(),
            )))
        };
        let Some(head) = data.get(at..at + 4) else {
            at = data.len();
            return damaged();
        };
        let size = match head[0] {
            FORMAT_SIZED => usize::from(u16::from_le_bytes([head[2], head[3]])),
            _ => 0,
        };
        let (start, end) = if size == 0 {
            (at + 2, at + 4)
        } else {
            (at + 4, at + 4 + size)
        };
        let Some(payload) = data.get(start..end) else {
            at = data.len();
            return damaged();
        };
        at = end;
        Some(Ok((head[1], payload)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn junk_is_an_error_not_a_panic() {
        assert!(matches!(Cubin::parse(b""), Err(CubinError::NotElf(_))));
        assert!(matches!(
            Cubin::parse(&[0x7f; 200]),
            Err(CubinError::NotElf(_))
        ));
    }

    #[test]
    fn a_cut_info_record_is_reported() {
        let whole = [0x04, 0x2f, 8, 0, 7, 0, 0, 0, 68, 0, 0, 0];
        let all: Result<Vec<_>, _> = records(&whole).collect();
        assert_eq!(all, Ok(vec![(EIATTR_REGCOUNT, &whole[4..12])]));
        let cut: Result<Vec<_>, _> = records(&whole[..9]).collect();
        assert!(cut.is_err());
    }
}
