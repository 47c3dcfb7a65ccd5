//! The records of `.nv.info` (facts about the module's functions) and `.nv.info.KERNEL` (facts
//! about one kernel).
//!
//! A record is one byte format, one byte attribute, and a value: two bytes (formats 1 to 3: none, a
//! byte, a 16-bit number), or a 16-bit size and that many bytes (format 4). Numbers and names of
//! the attributes are those that `cuobjdump -elf` 13.5 prints; what their values mean was seen in
//! the output of ptxas 13.0 and 13.5. Unknown attributes are kept as they are.

use std::collections::HashMap;

use super::{Elf, ElfError, damaged};

/// What a record is about. Any number is possible; known ones have a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Attribute(pub u8);

impl std::fmt::Display for Attribute {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.name() {
            Some(name) => write!(f, "EIATTR_{name}"),
            None => write!(f, "attribute {:#x}", self.0),
        }
    }
}

macro_rules! attributes {
    ($($number:literal $name:ident $text:literal;)*) => {
        impl Attribute {
            $(#[doc = concat!("EIATTR_", $text)] pub const $name: Attribute = Attribute($number);)*

            /// The name without `EIATTR_`, if it is known.
            pub fn name(self) -> Option<&'static str> {
                match self.0 {
                    $($number => Some($text),)*
                    _ => None,
                }
            }

            /// The attribute of a name without `EIATTR_`.
            pub fn named(name: &str) -> Option<Attribute> {
                match name {
                    $($text => Some(Attribute($number)),)*
                    _ => None,
                }
            }
        }
    };
}

attributes! {
    0x01 PAD "PAD";
    0x02 IMAGE_SLOT "IMAGE_SLOT";
    0x03 JUMPTABLE_RELOCS "JUMPTABLE_RELOCS";
    0x04 CTAIDZ_USED "CTAIDZ_USED";
    0x05 MAX_THREADS "MAX_THREADS";
    0x0a PARAM_CBANK "PARAM_CBANK";
    0x0f EXTERNS "EXTERNS";
    0x10 REQNTID "REQNTID";
    0x11 FRAME_SIZE "FRAME_SIZE";
    0x12 MIN_STACK_SIZE "MIN_STACK_SIZE";
    0x14 BINDLESS_IMAGE_OFFSETS "BINDLESS_IMAGE_OFFSETS";
    0x17 KPARAM_INFO "KPARAM_INFO";
    0x19 CBANK_PARAM_SIZE "CBANK_PARAM_SIZE";
    0x1b MAXREG_COUNT "MAXREG_COUNT";
    0x1c EXIT_INSTR_OFFSETS "EXIT_INSTR_OFFSETS";
    0x1d S2RCTAID_INSTR_OFFSETS "S2RCTAID_INSTR_OFFSETS";
    0x1e CRS_STACK_SIZE "CRS_STACK_SIZE";
    0x1f NEED_CNP_WRAPPER "NEED_CNP_WRAPPER";
    0x20 NEED_CNP_PATCH "NEED_CNP_PATCH";
    0x22 ISTYPEP_USED "ISTYPEP_USED";
    0x23 MAX_STACK_SIZE "MAX_STACK_SIZE";
    0x24 SUQ_USED "SUQ_USED";
    0x25 LD_CACHEMOD_INSTR_OFFSETS "LD_CACHEMOD_INSTR_OFFSETS";
    0x27 ATOM_SYS_INSTR_OFFSETS "ATOM_SYS_INSTR_OFFSETS";
    0x28 COOP_GROUP_INSTR_OFFSETS "COOP_GROUP_INSTR_OFFSETS";
    0x29 COOP_GROUP_MASK_REGIDS "COOP_GROUP_MASK_REGIDS";
    0x2b WMMA_USED "WMMA_USED";
    0x2c HAS_PRE_V10_OBJECT "HAS_PRE_V10_OBJECT";
    0x2d ATOMF16_EMUL_INSTR_OFFSETS "ATOMF16_EMUL_INSTR_OFFSETS";
    0x2e ATOM16_EMUL_INSTR_REG_MAP "ATOM16_EMUL_INSTR_REG_MAP";
    0x2f REGCOUNT "REGCOUNT";
    0x31 INT_WARP_WIDE_INSTR_OFFSETS "INT_WARP_WIDE_INSTR_OFFSETS";
    0x32 SHARED_SCRATCH "SHARED_SCRATCH";
    0x33 STATISTICS "STATISTICS";
    0x34 INDIRECT_BRANCH_TARGETS "INDIRECT_BRANCH_TARGETS";
    0x36 SW_WAR "SW_WAR";
    0x37 CUDA_API_VERSION "CUDA_API_VERSION";
    0x38 NUM_MBARRIERS "NUM_MBARRIERS";
    0x39 MBARRIER_INSTR_OFFSETS "MBARRIER_INSTR_OFFSETS";
    0x3a COROUTINE_RESUME_ID_OFFSETS "COROUTINE_RESUME_ID_OFFSETS";
    0x3b SAM_REGION_STACK_SIZE "SAM_REGION_STACK_SIZE";
    0x3d CTA_PER_CLUSTER "CTA_PER_CLUSTER";
    0x3e EXPLICIT_CLUSTER "EXPLICIT_CLUSTER";
    0x3f MAX_CLUSTER_RANK "MAX_CLUSTER_RANK";
    0x40 INSTR_REG_MAP "INSTR_REG_MAP";
    0x41 RESERVED_SMEM_USED "RESERVED_SMEM_USED";
    0x42 RESERVED_SMEM_0_SIZE "RESERVED_SMEM_0_SIZE";
    0x43 UCODE_SECTION_DATA "UCODE_SECTION_DATA";
    0x44 UNUSED_LOAD_BYTE_OFFSET "UNUSED_LOAD_BYTE_OFFSET";
    0x45 KPARAM_INFO_V2 "KPARAM_INFO_V2";
    0x46 SYSCALL_OFFSETS "SYSCALL_OFFSETS";
    0x4a VRC_CTA_INIT_COUNT "VRC_CTA_INIT_COUNT";
    0x4b TOOLS_PATCH_FUNC "TOOLS_PATCH_FUNC";
    0x4c NUM_BARRIERS "NUM_BARRIERS";
    0x4d TEXMODE_INDEPENDENT "TEXMODE_INDEPENDENT";
    0x4f AT_ENTRY_FRAGMENTS "AT_ENTRY_FRAGMENTS";
    0x50 SPARSE_MMA_MASK "SPARSE_MMA_MASK";
    0x51 TCGEN05_1CTA_USED "TCGEN05_1CTA_USED";
    0x52 TCGEN05_2CTA_USED "TCGEN05_2CTA_USED";
    0x53 GEN_ERRBAR_AT_EXIT "GEN_ERRBAR_AT_EXIT";
    0x54 REG_RECONFIG "REG_RECONFIG";
    0x55 ANNOTATIONS "ANNOTATIONS";
    0x57 STACK_CANARY_TRAP_OFFSETS "STACK_CANARY_TRAP_OFFSETS";
    0x58 STUB_FUNCTION_KIND "STUB_FUNCTION_KIND";
    0x59 LOCAL_CTA_ASYNC_STORE_OFFSETS "LOCAL_CTA_ASYNC_STORE_OFFSETS";
    0x5b BLOCKS_ARE_CLUSTERS "BLOCKS_ARE_CLUSTERS";
    0x5c SANITIZE "SANITIZE";
    0x5d SYSCALLS_FALLBACK "SYSCALLS_FALLBACK";
    0x5e CUDA_REQ "CUDA_REQ";
    0x62 CLUSTER_LAUNCH_CONTROL_USED "CLUSTER_LAUNCH_CONTROL_USED";
    0x64 MIN_PER_CTA_MEMORY_SIZE "MIN_PER_CTA_MEMORY_SIZE";
    0x65 IGNOREOOB_CP_ASYNC_BULK_INSTR_OFFSETS "IGNOREOOB_CP_ASYNC_BULK_INSTR_OFFSETS";
    0x66 LANGUAGE "LANGUAGE";
    0x68 GRID_ATTRIBUTES "GRID_ATTRIBUTES";
    0x69 STACK_OFFSET "STACK_OFFSET";
    0x6a RT_LIVESTATE_SASS_MAP "RT_LIVESTATE_SASS_MAP";
    0x6b NVSAL_SW_WAR "NVSAL_SW_WAR";
    0x6c INSTR_OFFSETS "INSTR_OFFSETS";
    0x6d PREEXIT_USED "PREEXIT_USED";
}

/// Where a branch and its targets stand among the words of EIATTR_INDIRECT_BRANCH_TARGETS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BranchEntry {
    pub branch: usize,
    pub targets: std::ops::Range<usize>,
}

/// The entries of such a record: offset of the branch, zero, number of targets, targets.
pub(crate) fn branch_entries(words: &[u32]) -> Option<Vec<BranchEntry>> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < words.len() {
        let count = *words.get(at + 2)? as usize;
        let end = (at + 3)
            .checked_add(count)
            .filter(|&end| end <= words.len())?;
        found.push(BranchEntry {
            branch: at,
            targets: at + 3..end,
        });
        at = end;
    }
    Some(found)
}

/// The value of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// Format 1: the attribute itself is the fact. The two bytes are kept.
    Flag([u8; 2]),
    /// Format 2: a byte; the second one is kept.
    Byte([u8; 2]),
    /// Format 3: a 16-bit number.
    Half(u16),
    /// Format 4: bytes, mostly 32-bit words.
    Sized(Vec<u8>),
    /// A format that we do not know, with its two bytes.
    Other(u8, [u8; 2]),
}

/// One record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// What it is about.
    pub attribute: Attribute,
    /// What it says.
    pub value: Value,
}

impl Record {
    /// The 32-bit words of a sized value; nothing for the other formats.
    pub fn words(&self) -> Vec<u32> {
        let Value::Sized(bytes) = &self.value else {
            return Vec::new();
        };
        let words = bytes.chunks_exact(4);
        words
            .map(|w| u32::from_le_bytes([w[0], w[1], w[2], w[3]]))
            .collect()
    }

    /// Replaces one 32-bit word of a sized value. False if there is none.
    pub fn set_word(&mut self, index: usize, word: u32) -> bool {
        let Value::Sized(bytes) = &mut self.value else {
            return false;
        };
        let place = bytes.get_mut(index * 4..index * 4 + 4);
        place
            .map(|p| p.copy_from_slice(&word.to_le_bytes()))
            .is_some()
    }
}

/// All records of one section, in order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Info {
    /// The records.
    pub records: Vec<Record>,
}

pub(crate) const FORMAT_FLAG: u8 = 1;
pub(crate) const FORMAT_BYTE: u8 = 2;
pub(crate) const FORMAT_HALF: u8 = 3;
pub(crate) const FORMAT_SIZED: u8 = 4;

impl Info {
    /// Reads the contents of a section.
    ///
    /// # Errors
    /// [`ElfError::Damaged`]: a record is cut short.
    pub fn parse(data: &[u8]) -> Result<Info, ElfError> {
        let cut = || damaged("a .nv.info record is cut short");
        let mut records = Vec::new();
        let mut rest = data;
        while !rest.is_empty() {
            let (&[format, attribute, a, b], behind) = rest.split_first_chunk().ok_or_else(cut)?;
            rest = behind;
            let value = match format {
                FORMAT_FLAG => Value::Flag([a, b]),
                FORMAT_BYTE => Value::Byte([a, b]),
                FORMAT_HALF => Value::Half(u16::from_le_bytes([a, b])),
                FORMAT_SIZED => {
                    let size = usize::from(u16::from_le_bytes([a, b]));
                    let (bytes, behind) = rest.split_at_checked(size).ok_or_else(cut)?;
                    rest = behind;
                    Value::Sized(bytes.to_vec())
                }
                other => Value::Other(other, [a, b]),
            };
            let attribute = Attribute(attribute);
            records.push(Record { attribute, value });
        }
        Ok(Info { records })
    }

    /// The bytes of the section: what [`Info::parse`] has read, if nothing was changed.
    ///
    /// # Errors
    /// A sized value of more than 65,535 bytes.
    pub fn write(&self) -> Result<Vec<u8>, ElfError> {
        let mut bytes = Vec::new();
        for record in &self.records {
            let (format, [a, b], more): (u8, [u8; 2], &[u8]) = match &record.value {
                Value::Flag(pair) => (FORMAT_FLAG, *pair, &[]),
                Value::Byte(pair) => (FORMAT_BYTE, *pair, &[]),
                Value::Half(number) => (FORMAT_HALF, number.to_le_bytes(), &[]),
                Value::Other(format, pair) => (*format, *pair, &[]),
                Value::Sized(more) => {
                    let size = u16::try_from(more.len());
                    let size = size.map_err(|_| super::refused("a .nv.info record is too long"))?;
                    (FORMAT_SIZED, size.to_le_bytes(), more)
                }
            };
            bytes.extend_from_slice(&[format, record.attribute.0, a, b]);
            bytes.extend_from_slice(more);
        }
        Ok(bytes)
    }

    /// The first record about `attribute`.
    pub fn get(&self, attribute: Attribute) -> Option<&Record> {
        self.records.iter().find(|r| r.attribute == attribute)
    }

    /// The value that a record of the form (symbol, number) gives for a symbol: register count,
    /// frame size, stack sizes.
    pub fn of_symbol(&self, attribute: Attribute, symbol: u32) -> Option<u32> {
        let mut about = self.records.iter().filter(|r| r.attribute == attribute);
        about.find_map(|r| match r.words()[..] {
            [s, value] if s == symbol => Some(value),
            _ => None,
        })
    }

    /// All such values of an attribute, by symbol: the first of each.
    pub fn by_symbol(&self, attribute: Attribute) -> HashMap<u32, u32> {
        let mut values = HashMap::new();
        for record in self.records.iter().filter(|r| r.attribute == attribute) {
            if let [symbol, value] = record.words()[..] {
                values.entry(symbol).or_insert(value);
            }
        }
        values
    }

    /// Sets such a value. False if there is no such record.
    pub fn set_of_symbol(&mut self, attribute: Attribute, symbol: u32, value: u32) -> bool {
        let mut about = self.records.iter_mut().filter(|r| r.attribute == attribute);
        about
            .find(|r| matches!(r.words()[..], [s, _] if s == symbol))
            .is_some_and(|r| r.set_word(1, value))
    }
}

impl Elf {
    /// The records of the section called `name`, if there is one.
    ///
    /// # Errors
    /// [`ElfError::Damaged`]: a record of it is cut short.
    pub fn info(&self, name: &str) -> Result<Option<Info>, ElfError> {
        let section = self.section(name);
        section.map(|s| Info::parse(&s.data)).transpose()
    }

    /// Replaces the records of an existing section.
    ///
    /// # Errors
    /// [`ElfError::Refused`]: there is no such section, or a record is too long.
    pub fn set_info(&mut self, name: &str, info: &Info) -> Result<(), ElfError> {
        let index = self.section_index(name);
        let index = index.ok_or_else(|| super::refused(format!("there is no section {name}")))?;
        self.sections[index].data = info.write()?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_of_all_formats_come_back() {
        let bytes = [
            0x04, 0x2f, 8, 0, 7, 0, 0, 0, 68, 0, 0, 0, // register count of symbol 7
            0x03, 0x1b, 0xff, 0, // limit
            0x01, 0x2b, 0, 0, 0x02, 0x4c, 1, 9, 0x77, 0xee, 1, 2,
        ];
        let mut info = Info::parse(&bytes).unwrap();
        assert_eq!(info.write().unwrap(), bytes);
        assert_eq!(info.of_symbol(Attribute::REGCOUNT, 7), Some(68));
        assert_eq!(info.of_symbol(Attribute::REGCOUNT, 8), None);
        assert!(info.set_of_symbol(Attribute::REGCOUNT, 7, 70));
        assert!(!info.set_of_symbol(Attribute::REGCOUNT, 8, 70));
        assert_eq!(info.write().unwrap()[8], 70);
        assert_eq!(info.records[4].attribute.name(), None);
        assert_eq!(info.records[2].attribute, Attribute::WMMA_USED);
    }

    #[test]
    fn a_cut_record_is_reported() {
        let whole = [0x04, 0x2f, 8, 0, 7, 0, 0, 0, 68, 0, 0, 0];
        assert!(Info::parse(&whole).is_ok());
        for cut in 1..whole.len() {
            assert!(Info::parse(&whole[..cut]).is_err(), "{cut}");
        }
    }
}
