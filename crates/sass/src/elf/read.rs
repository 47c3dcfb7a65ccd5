//! Taking a cubin apart.
//!
//! The file is seen as a sequence of parts (section contents and the two header tables) in the
//! order of their offsets. Between two parts there is either the zero padding that the alignment
//! asks for, or something that is kept as it is. A section that lies inside another one (sm_100 and
//! later share debug text between two sections) has no place of its own.

use object::LittleEndian;
use object::elf::{FileHeader64, ProgramHeader64, SHT_NULL, SectionHeader64};
use object::read::elf::{FileHeader as _, ProgramHeader as _, SectionHeader as _};

use super::header::{EM_CUDA, Header};
use super::{
    Elf, ElfError, Extent, Gap, MAX_ALIGN, MAX_SECTION, MAX_SECTIONS, Part, Placed, Section,
    Segment, Shared, damaged, is_zero_fill,
};

pub(super) const HEADER_SIZE: u64 = 64;
pub(super) const SECTION_ENTRY: u64 = 64;
pub(super) const SEGMENT_ENTRY: u64 = 56;

const E: LittleEndian = LittleEndian;

impl Elf {
    /// Takes a cubin apart. Bytes are never trusted: any inconsistency is an error.
    ///
    /// # Errors
    /// [`ElfError::NotElf`], [`ElfError::NotCuda`], [`ElfError::Damaged`].
    pub fn parse(bytes: &[u8]) -> Result<Elf, ElfError> {
        let raw = FileHeader64::<LittleEndian>::parse(bytes).map_err(not_elf)?;
        raw.endian().map_err(not_elf)?;
        if raw.e_machine(E) != EM_CUDA {
            return Err(ElfError::NotCuda(raw.e_machine(E)));
        }
        if u64::from(raw.e_ehsize.get(E)) != HEADER_SIZE {
            return Err(damaged("the file header has a size of its own"));
        }
        if raw.e_shnum.get(E) == 0 || raw.e_phnum.get(E) == object::elf::PN_XNUM {
            return Err(damaged("it has no sections, or too many program headers"));
        }
        let sections = read_sections(raw, bytes)?;
        let names = usize::from(raw.e_shstrndx.get(E));
        let programs = raw.program_headers(E, bytes).map_err(not_elf)?;
        let tables = Tables {
            sections: (raw.e_shoff.get(E), SECTION_ENTRY * sections.len() as u64),
            segments: (raw.e_phoff.get(E), SEGMENT_ENTRY * programs.len() as u64),
        };
        let (layout, shared, end) = lay_out(bytes, &sections, &tables)?;
        let elf = Elf {
            header: Header::read(raw, names),
            segments: Vec::new(),
            tail: bytes.get(end as usize..).unwrap_or_default().to_vec(),
            sections,
            layout,
            shared,
        };
        let segments = programs.iter().map(|p| elf.read_segment(p, &tables));
        let segments = segments.collect::<Result<_, _>>()?;
        Ok(Elf { segments, ..elf })
    }

    fn read_segment(
        &self,
        raw: &ProgramHeader64<LittleEndian>,
        tables: &Tables,
    ) -> Result<Segment, ElfError> {
        let (offset, file_size) = (raw.p_offset(E), raw.p_filesz(E));
        let memory = raw.p_memsz(E);
        if memory > MAX_SECTION || file_size > MAX_SECTION {
            return Err(damaged("a program header has an impossible size"));
        }
        Ok(Segment {
            kind: raw.p_type(E),
            flags: raw.p_flags(E),
            addresses: [raw.p_vaddr(E), raw.p_paddr(E)],
            align: raw.p_align(E),
            zero_fill: memory as i64 - file_size as i64,
            extent: self.extent(offset, file_size, raw.p_flags(E), tables),
        })
    }

    /// The parts that a range of the file covers, if it begins and ends with one.
    fn extent(&self, offset: u64, file_size: u64, flags: u32, tables: &Tables) -> Extent {
        let writable = flags & object::elf::PF_W != 0;
        let fixed = Extent::Fixed { offset, file_size };
        let range = |part: Part| match part {
            Part::Section(i) => (self.sections[i].offset, self.sections[i].data.len() as u64),
            Part::SectionTable => tables.sections,
            Part::SegmentTable => tables.segments,
        };
        let mut parts = self.layout.iter().map(|p| p.part);
        if file_size == 0 {
            // Memory without contents begins at the first section of that kind.
            let fits = |&part: &Part| match part {
                Part::Section(i) => {
                    let section = &self.sections[i];
                    !section.has_contents() && section.is_writable_memory() == writable
                }
                _ => false,
            };
            let first = parts.find(|part| range(*part).0 == offset && fits(part));
            return first.map_or(fixed, |first| Extent::Parts { first, last: None });
        }
        let end = offset.saturating_add(file_size);
        // A segment may end where memory without contents begins, which is behind what aligns it.
        let empty = |part: &Part| range(*part) == (end, 0) && matches!(part, Part::Section(_));
        let bound = parts.clone().find(empty);
        let filled = parts.filter(|part| range(*part).1 > 0);
        let inside = filled.filter(|&part| {
            let (at, size) = range(part);
            at >= offset && at + size <= end
        });
        let inside: Vec<Part> = inside.collect();
        match (inside.first(), inside.last()) {
            (Some(&first), Some(&last)) if range(first).0 == offset => {
                let reaches = range(last).0 + range(last).1 == end;
                match reaches.then_some(last).or(bound) {
                    Some(last) => Extent::Parts {
                        first,
                        last: Some(last),
                    },
                    None => fixed,
                }
            }
            _ => fixed,
        }
    }
}

fn not_elf(error: object::read::Error) -> ElfError {
    ElfError::NotElf(error.to_string())
}

/// Offset and size of the two header tables.
struct Tables {
    sections: (u64, u64),
    segments: (u64, u64),
}

fn read_sections(raw: &FileHeader64<LittleEndian>, bytes: &[u8]) -> Result<Vec<Section>, ElfError> {
    let table = raw.sections(E, bytes).map_err(not_elf)?;
    if table.len() > MAX_SECTIONS || usize::from(raw.e_shstrndx.get(E)) >= MAX_SECTIONS {
        return Err(damaged("it has too many sections"));
    }
    let read = |index: usize, header: &SectionHeader64<LittleEndian>| {
        let name = table
            .section_name(E, header)
            .ok()
            .and_then(|name| std::str::from_utf8(name).ok())
            .ok_or_else(|| damaged(format!("section {index} has no name")))?;
        let data = match header.sh_type(E) {
            kind if kind == SHT_NULL || is_zero_fill(kind) => &[][..],
            _ => header
                .data(E, bytes)
                .map_err(|_| damaged(format!("section {name} reaches beyond the file")))?,
        };
        let align = header.sh_addralign(E);
        if header.sh_size(E) > MAX_SECTION
            || !(align == 0 || align.is_power_of_two())
            || align > MAX_ALIGN
        {
            return Err(damaged(format!(
                "section {name} has an impossible size or alignment"
            )));
        }
        Ok(Section {
            name: name.to_string(),
            name_offset: header.sh_name(E),
            kind: header.sh_type(E),
            flags: header.sh_flags(E),
            address: header.sh_addr(E),
            link: header.sh_link(E),
            info: header.sh_info(E),
            align,
            entry_size: header.sh_entsize(E),
            size: header.sh_size(E),
            data: data.to_vec(),
            offset: header.sh_offset(E),
        })
    };
    let headers = table.iter().enumerate();
    let sections = headers.map(|(i, header)| read(i, header));
    sections.collect()
}

/// The parts in file order, the sections inside others, and where the last part ends.
fn lay_out(
    bytes: &[u8],
    sections: &[Section],
    tables: &Tables,
) -> Result<(Vec<Placed>, Vec<Shared>, u64), ElfError> {
    let mut layout = Vec::new();
    let mut shared = Vec::new();
    let mut end = HEADER_SIZE;
    let mut filled: Vec<(usize, u64, u64)> = Vec::new();
    for (offset, size, part) in in_file_order(sections, tables) {
        if offset < end {
            let inside =
                |&&(_, at, len): &&(usize, u64, u64)| at <= offset && offset + size <= at + len;
            match (part, filled.iter().rev().find(inside)) {
                (Part::Section(section), Some(&(owner, at, _))) => shared.push(Shared {
                    section,
                    owner,
                    at: offset - at,
                }),
                (Part::Section(i), None) => {
                    let name = &sections[i].name;
                    return Err(damaged(format!("section {name} overlaps another part")));
                }
                _ => return Err(damaged("a header table overlaps another part")),
            }
            continue;
        }
        let align = alignment(part, sections, offset);
        let gap = bytes.get(end as usize..offset as usize);
        let gap = gap.ok_or_else(|| damaged("a section begins beyond the file"))?;
        let expected = end.next_multiple_of(align) == offset && gap.iter().all(|&b| b == 0);
        let gap = if expected {
            Gap::Aligned
        } else {
            Gap::Bytes(gap.to_vec())
        };
        layout.push(Placed { part, gap, align });
        end = offset + size;
        if let Part::Section(i) = part
            && size > 0
        {
            filled.push((i, offset, size));
        }
    }
    Ok((layout, shared, end))
}

/// All parts with file offset and size; of those at one place the empty ones first.
fn in_file_order(sections: &[Section], tables: &Tables) -> Vec<(u64, u64, Part)> {
    let contents = sections.iter().enumerate();
    let mut parts: Vec<(u64, u64, Part)> = contents
        .filter(|(_, s)| s.kind != SHT_NULL)
        .map(|(i, s)| (s.offset, s.data.len() as u64, Part::Section(i)))
        .collect();
    parts.push((tables.sections.0, tables.sections.1, Part::SectionTable));
    if tables.segments.1 > 0 {
        parts.push((tables.segments.0, tables.segments.1, Part::SegmentTable));
    }
    parts.sort_by_key(|&(offset, size, part)| (offset, size > 0, part));
    parts
}

/// The alignment that a part keeps when it moves: the one it asks for, unless it does not have it.
fn alignment(part: Part, sections: &[Section], offset: u64) -> u64 {
    let wanted = match part {
        Part::Section(i) => sections[i].align.max(1),
        Part::SectionTable | Part::SegmentTable => 8,
    };
    if offset.is_multiple_of(wanted) {
        wanted
    } else {
        1
    }
}
