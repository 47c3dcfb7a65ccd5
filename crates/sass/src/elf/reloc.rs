//! Relocations: places that the linker or the driver fills in.
//!
//! A section of type SHT_RELA (or SHT_REL, without addends) holds the relocations of the section
//! that its sh_info names.

use object::elf::{Rel64, Rela64, SHT_REL, SHT_RELA};
use object::{I64, LittleEndian, U64};

use super::{Elf, ElfError, Section, damaged, refused};

const E: LittleEndian = LittleEndian;

/// One relocation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Relocation {
    /// Offset of the place in the target section, in bytes. Within an instruction it names the
    /// instruction's start; the kind says which bits.
    pub offset: u64,
    /// Index of the symbol.
    pub symbol: u32,
    /// R_CUDA number.
    pub kind: u32,
    /// Added to the symbol's value; none in a SHT_REL section, where it stands in the place itself.
    pub addend: Option<i64>,
}

impl Section {
    /// Does it hold relocations?
    pub fn is_relocations(&self) -> bool {
        matches!(self.kind, SHT_REL | SHT_RELA)
    }
}

impl Elf {
    /// The sections that hold relocations of section `of`.
    pub fn relocation_sections(&self, of: usize) -> Vec<usize> {
        let all = self.sections.iter().enumerate();
        let those = all.filter(|(_, s)| s.is_relocations() && s.info as usize == of);
        those.map(|(index, _)| index).collect()
    }

    /// All relocations of section `of`.
    ///
    /// # Errors
    /// A section of them is cut short.
    pub fn relocations_of(&self, of: usize) -> Result<Vec<Relocation>, ElfError> {
        let mut all = Vec::new();
        for index in self.relocation_sections(of) {
            all.extend(self.relocations(index)?);
        }
        Ok(all)
    }

    /// The relocations in section `index`.
    ///
    /// # Errors
    /// [`ElfError::Refused`]: it holds none. [`ElfError::Damaged`]: it is cut short.
    pub fn relocations(&self, index: usize) -> Result<Vec<Relocation>, ElfError> {
        let section = self.sections.get(index).filter(|s| s.is_relocations());
        let section = section.ok_or_else(|| refused("the section holds no relocations"))?;
        let cut = |()| damaged(format!("section {} is cut short", section.name));
        let read = |offset: u64, info: u64, addend| Relocation {
            offset,
            symbol: (info >> 32) as u32,
            kind: info as u32,
            addend,
        };
        if section.kind == SHT_RELA {
            let raw = object::slice_from_all_bytes::<Rela64<LittleEndian>>(&section.data);
            let raw = raw.map_err(cut)?.iter();
            Ok(raw
                .map(|r| read(r.r_offset.get(E), r.r_info.get(E), Some(r.r_addend.get(E))))
                .collect())
        } else {
            let raw = object::slice_from_all_bytes::<Rel64<LittleEndian>>(&section.data);
            let raw = raw.map_err(cut)?.iter();
            Ok(raw
                .map(|r| read(r.r_offset.get(E), r.r_info.get(E), None))
                .collect())
        }
    }

    /// Replaces the relocations in section `index`.
    ///
    /// # Errors
    /// An addend where the section's type has none, or none where it has one.
    pub fn set_relocations(
        &mut self,
        index: usize,
        relocations: &[Relocation],
    ) -> Result<(), ElfError> {
        let section = self.sections.get_mut(index).filter(|s| s.is_relocations());
        let section = section.ok_or_else(|| refused("the section holds no relocations"))?;
        let mut bytes = Vec::new();
        for r in relocations {
            let r_offset = U64::new(E, r.offset);
            let r_info = U64::new(E, u64::from(r.symbol) << 32 | u64::from(r.kind));
            match (section.kind, r.addend) {
                (SHT_RELA, Some(addend)) => {
                    let r_addend = I64::new(E, addend);
                    bytes.extend_from_slice(object::pod::bytes_of(&Rela64 {
                        r_offset,
                        r_info,
                        r_addend,
                    }));
                }
                (SHT_REL, None) => {
                    bytes.extend_from_slice(object::pod::bytes_of(&Rel64 { r_offset, r_info }));
                }
                _ => return Err(refused("an addend does not fit the section's type")),
            }
        }
        section.data = bytes;
        Ok(())
    }
}
