//! Putting a cubin together again: parts in their order, each at its alignment, and every offset
//! that follows from that.

use std::collections::BTreeMap;

use object::elf::{FileHeader64, ProgramHeader64, SHT_NULL, SectionHeader64};
use object::{LittleEndian, U16, U32, U64};

use super::read::{HEADER_SIZE, SECTION_ENTRY, SEGMENT_ENTRY};
use super::{Elf, ElfError, Extent, Gap, Part, Section, damaged, refused};

const E: LittleEndian = LittleEndian;

/// Where every part stands: offset and size.
type Places = BTreeMap<Part, (u64, u64)>;

impl Elf {
    /// The bytes of the file. What was read and not changed comes out as it was.
    ///
    /// # Errors
    /// [`ElfError::Refused`]: parts no longer stand where a program header says.
    pub fn write(&self) -> Result<Vec<u8>, ElfError> {
        let mut bytes = vec![0; HEADER_SIZE as usize];
        let mut places = Places::new();
        for placed in &self.layout {
            if let Gap::Bytes(gap) = &placed.gap {
                bytes.extend_from_slice(gap);
            }
            let start = bytes.len().next_multiple_of(placed.align as usize);
            bytes.resize(start, 0);
            match placed.part {
                Part::Section(i) => bytes.extend_from_slice(&self.sections[i].data),
                Part::SectionTable | Part::SegmentTable => {
                    bytes.resize(start + self.table_size(placed.part), 0);
                }
            }
            places.insert(placed.part, (start as u64, (bytes.len() - start) as u64));
        }
        bytes.extend_from_slice(&self.tail);
        self.place_shared(&mut bytes, &mut places);
        self.fill_tables(&mut bytes, &places)?;
        Ok(bytes)
    }

    fn table_size(&self, table: Part) -> usize {
        match table {
            Part::SegmentTable => self.segments.len() * SEGMENT_ENTRY as usize,
            _ => self.sections.len() * SECTION_ENTRY as usize,
        }
    }

    /// Sections inside others stay there if the bytes still agree, else they go to the end.
    fn place_shared(&self, bytes: &mut Vec<u8>, places: &mut Places) {
        for shared in &self.shared {
            let section = &self.sections[shared.section];
            let owner = &self.sections[shared.owner].data;
            let (start, _) = places[&Part::Section(shared.owner)];
            let at = shared.at as usize;
            let size = section.data.len();
            let offset = match owner.get(at..at + size) {
                Some(same) if same == section.data => start + shared.at,
                _ => {
                    let offset = bytes.len().next_multiple_of(section.align.max(1) as usize);
                    bytes.resize(offset, 0);
                    bytes.extend_from_slice(&section.data);
                    offset as u64
                }
            };
            places.insert(Part::Section(shared.section), (offset, size as u64));
        }
    }

    fn fill_tables(&self, bytes: &mut [u8], places: &Places) -> Result<(), ElfError> {
        let start = |table: Part| places.get(&table).map(|place| place.0);
        let sections = start(Part::SectionTable).ok_or_else(|| damaged("no section table"))?;
        for (i, section) in self.sections.iter().enumerate() {
            let place = places.get(&Part::Section(i));
            let offset = place.map_or(section.offset, |place| place.0);
            let raw = section_header(section, offset);
            put(
                bytes,
                sections + i as u64 * SECTION_ENTRY,
                object::pod::bytes_of(&raw),
            );
        }
        let segments = start(Part::SegmentTable);
        for (i, segment) in self.segments.iter().enumerate() {
            let table =
                segments.ok_or_else(|| refused("there is no place for a program header"))?;
            let raw = self.program_header(segment, places)?;
            put(
                bytes,
                table + i as u64 * SEGMENT_ENTRY,
                object::pod::bytes_of(&raw),
            );
        }
        let raw = self.file_header(sections, segments);
        put(bytes, 0, object::pod::bytes_of(&raw));
        Ok(())
    }

    fn file_header(&self, sections: u64, segments: Option<u64>) -> FileHeader64<LittleEndian> {
        let h = &self.header;
        FileHeader64 {
            e_ident: h.ident,
            e_type: U16::new(E, h.kind),
            e_machine: U16::new(E, h.machine),
            e_version: U32::new(E, h.version),
            e_entry: U64::new(E, h.entry),
            e_phoff: U64::new(E, segments.unwrap_or(h.segment_offset)),
            e_shoff: U64::new(E, sections),
            e_flags: U32::new(E, h.flags),
            e_ehsize: U16::new(E, HEADER_SIZE as u16),
            e_phentsize: U16::new(E, h.segment_entry),
            e_phnum: U16::new(E, self.segments.len() as u16),
            e_shentsize: U16::new(E, SECTION_ENTRY as u16),
            e_shnum: U16::new(E, self.sections.len() as u16),
            e_shstrndx: U16::new(E, h.names as u16),
        }
    }

    fn program_header(
        &self,
        segment: &super::Segment,
        places: &Places,
    ) -> Result<ProgramHeader64<LittleEndian>, ElfError> {
        let (offset, file_size) = match segment.extent {
            Extent::Fixed { offset, file_size } => {
                if self.has_moved(places) {
                    return Err(refused(
                        "a program header covers no whole sections; nothing may move",
                    ));
                }
                (offset, file_size)
            }
            Extent::Parts { first, last } => {
                let start = places.get(&first).map_or(0, |place| place.0);
                let end = last.and_then(|last| places.get(&last)).map(|p| p.0 + p.1);
                (start, end.map_or(0, |end| end.saturating_sub(start)))
            }
        };
        let memory = (file_size as i64).checked_add(segment.zero_fill);
        let memory = memory.and_then(|m| u64::try_from(m).ok());
        let memory = memory.ok_or_else(|| damaged("a program header has a negative size"))?;
        Ok(ProgramHeader64 {
            p_type: U32::new(E, segment.kind),
            p_flags: U32::new(E, segment.flags),
            p_offset: U64::new(E, offset),
            p_vaddr: U64::new(E, segment.addresses[0]),
            p_paddr: U64::new(E, segment.addresses[1]),
            p_filesz: U64::new(E, file_size),
            p_memsz: U64::new(E, memory),
            p_align: U64::new(E, segment.align),
        })
    }

    /// Does any section stand elsewhere than where it was read?
    fn has_moved(&self, places: &Places) -> bool {
        let mut sections = self.sections.iter().enumerate();
        sections.any(|(i, s)| {
            places
                .get(&Part::Section(i))
                .is_some_and(|p| p.0 != s.offset)
        })
    }
}

fn section_header(section: &Section, offset: u64) -> SectionHeader64<LittleEndian> {
    let size = match section.kind {
        SHT_NULL => section.size,
        _ => section.size(),
    };
    SectionHeader64 {
        sh_name: U32::new(E, section.name_offset),
        sh_type: U32::new(E, section.kind),
        sh_flags: U64::new(E, section.flags),
        sh_addr: U64::new(E, section.address),
        sh_offset: U64::new(E, offset),
        sh_size: U64::new(E, size),
        sh_link: U32::new(E, section.link),
        sh_info: U32::new(E, section.info),
        sh_addralign: U64::new(E, section.align),
        sh_entsize: U64::new(E, section.entry_size),
    }
}

fn put(bytes: &mut [u8], at: u64, what: &[u8]) {
    let at = at as usize;
    bytes[at..at + what.len()].copy_from_slice(what);
}
