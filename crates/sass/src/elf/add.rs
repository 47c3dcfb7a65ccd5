//! New sections and symbols. Nothing that is there gets another index.

use object::LittleEndian;
use object::elf::Sym64;

use super::symbol::Symbol;
use super::{Elf, ElfError, Extent, Gap, MAX_SECTIONS, Part, Placed, Section, damaged, refused};

/// Bytes of an entry of a symbol table.
const SYMBOL: usize = size_of::<Sym64<LittleEndian>>();

impl Elf {
    /// Adds a section with the contents, kind and alignment of `like`, which may be of another file. It stands behind
    /// section `behind`, in the same program header; one without contents stands behind the last of those. `info` is
    /// its sh_info.
    ///
    /// # Errors
    /// There are too many sections, or `behind` has no place of its own in the file.
    pub fn add_section(
        &mut self,
        name: &str,
        like: &Section,
        behind: usize,
        info: u32,
    ) -> Result<usize, ElfError> {
        if self.sections.len() + 1 >= MAX_SECTIONS {
            return Err(refused("there are too many sections"));
        }
        let section = Section {
            name: name.to_owned(),
            name_offset: self.add_section_name(name)?,
            link: self.sections.get(behind).map_or(0, |s| s.link),
            info,
            offset: 0,
            ..like.clone()
        };
        if section.is_zero_fill() {
            let bytes = section.size;
            let index = self.add_zero_fill(Section { link: 0, ..section });
            self.resize_zero_fill(index, bytes)?;
            return Ok(index);
        }
        let anchor = Part::Section(behind);
        let at = self.layout.iter().position(|p| p.part == anchor);
        let at = at.ok_or_else(|| refused("the section has no place of its own"))?;
        let index = self.sections.len();
        let part = Part::Section(index);
        let placed = Placed {
            part,
            gap: Gap::Aligned,
            align: section.align.max(1),
        };
        self.sections.push(section);
        self.layout.insert(at + 1, placed);
        for segment in &mut self.segments {
            if let Extent::Parts { last, .. } = &mut segment.extent
                && *last == Some(anchor)
            {
                *last = Some(part);
            }
        }
        Ok(index)
    }

    /// Adds symbols behind the last one; returns the index of the first. Their names come from themselves.
    ///
    /// # Errors
    /// There is no symbol table, or its names are full.
    pub fn add_symbols(&mut self, new: &[Symbol]) -> Result<u32, ElfError> {
        let table = self.symbol_table();
        let table = table.ok_or_else(|| refused("there is no symbol table"))?;
        let mut symbols = self.symbols_of(table)?;
        let first = symbols.len();
        let names = self.sections[table].link as usize;
        for symbol in new {
            let names = self.sections.get_mut(names);
            let names = names.ok_or_else(|| damaged("the symbol table has no names"))?;
            let name_offset = u32::try_from(names.data.len());
            let name_offset = name_offset.map_err(|_| refused("there are too many names"))?;
            names.data.extend_from_slice(symbol.name.as_bytes());
            names.data.push(0);
            symbols.push(Symbol {
                name_offset,
                ..symbol.clone()
            });
        }
        self.set_symbols(&symbols)?;
        // ptxas counts all symbols there, and not the local ones alone.
        let table = &mut self.sections[table];
        if table.info as usize == first {
            table.info = (table.data.len() / SYMBOL) as u32;
        }
        Ok(first as u32)
    }
}
