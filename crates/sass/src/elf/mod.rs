//! The cubin as a container that loses nothing: an ELF file whose parts can be changed one by one,
//! while everything else stays byte for byte as it was.
//!
//! [`Elf`] holds the sections with their bytes, the program headers by the parts that they cover,
//! and the order and padding of the file. Writing an unchanged `Elf` gives back the bytes that were
//! read; after a change, everything behind it moves and all file offsets follow. What is inside a
//! section is interpreted only on demand, by views that read and write the section's bytes:
//!
//! * [`header`]: e_flags and the ABI version (architecture, in both layouts).
//! * [`info`]: the records of `.nv.info*`.
//! * [`symbol`]: symbols; [`reloc`]: relocations.
//! * [`kernel`]: what belongs to one kernel, and the first operations on it.
//!
//! Bytes are never trusted: what contradicts itself is an [`ElfError`].

mod add;
pub mod header;
pub mod info;
pub mod kernel;
mod launch;
mod read;
pub mod reloc;
pub mod symbol;
mod write;

pub use header::Target;
pub use info::{Info, Record};
pub use kernel::{KernelSections, RESERVED_REGISTERS};

use crate::edit::EditError;
use object::elf::{SHF_ALLOC, SHF_WRITE, SHT_NOBITS, SHT_NULL};

/// Section types for memory without contents besides SHT_NOBITS, in relocatable files and among the
/// intermediate code: device, shared and reserved shared memory (.nv.global,
/// .nv.shared.KERNEL, .nv.shared.reserved.0; ptxas 13.0 and 13.5).
const ZERO_FILL: [u32; 3] = [0x7000_0007, 0x7000_000a, 0x7000_0015];

/// Why bytes are not a container that we can read, or why a change is not possible.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ElfError {
    /// Not a 64-bit little-endian ELF file, or a truncated one.
    #[error("not a cubin: {0}")]
    NotElf(String),
    /// An ELF file for another machine.
    #[error("an ELF file, but not a cubin (machine {0}, not CUDA)")]
    NotCuda(u16),
    /// Headers or contents contradict each other.
    #[error("the cubin is damaged: {0}")]
    Damaged(String),
    /// The change cannot be made; the text says why.
    #[error("{0}")]
    Refused(String),
    /// The code cannot be changed.
    #[error("{name}: {why}")]
    Edit {
        /// The function, or the section that would have to follow.
        name: Box<str>,
        /// Why not.
        why: Box<EditError>,
    },
}

/// Sections and alignments beyond these are taken for damage; sums of sizes cannot overflow then.
pub(crate) const MAX_SECTION: u64 = 1 << 40;
pub(crate) const MAX_ALIGN: u64 = 1 << 16;
/// As many sections as ELF can number.
pub(crate) const MAX_SECTIONS: usize = 0xff00;

/// Code that cannot be changed.
pub(crate) fn unedited(name: &str, why: EditError) -> ElfError {
    ElfError::Edit {
        name: name.into(),
        why: why.into(),
    }
}

/// Shorthand for the most frequent error.
pub(crate) fn damaged(what: impl Into<String>) -> ElfError {
    ElfError::Damaged(what.into())
}

/// One section: its header as plain numbers, and its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section {
    /// Name, as the section name table gives it.
    pub name: String,
    /// Offset of the name in the section name table.
    pub(crate) name_offset: u32,
    /// sh_type.
    pub kind: u32,
    /// sh_flags.
    pub flags: u64,
    /// sh_addr; 0 in all cubins seen.
    pub address: u64,
    /// sh_link.
    pub link: u32,
    /// sh_info. For a text section of sm_75 to sm_89 the register count in the top byte and the
    /// symbol's index below; later the symbol's index alone.
    pub info: u32,
    /// sh_addralign.
    pub align: u64,
    /// sh_entsize.
    pub entry_size: u64,
    /// sh_size: bytes of memory for a section without contents, else `data.len()`.
    pub(crate) size: u64,
    /// Contents; empty for a section without any (SHT_NOBITS).
    pub data: Vec<u8>,
    /// File offset at which it was read; meaningful only where it has no place in the layout.
    pub(crate) offset: u64,
}

impl Section {
    /// Bytes in memory: of the contents, or of the reserved space if it has none.
    pub fn size(&self) -> u64 {
        if self.has_contents() {
            self.data.len() as u64
        } else {
            self.size
        }
    }

    /// Does it occupy bytes in the file?
    pub fn has_contents(&self) -> bool {
        self.kind != SHT_NULL && !self.is_zero_fill()
    }

    /// Is it memory without contents in the file?
    pub fn is_zero_fill(&self) -> bool {
        is_zero_fill(self.kind)
    }

    pub(crate) fn is_writable_memory(&self) -> bool {
        self.flags & u64::from(SHF_ALLOC) != 0 && self.flags & u64::from(SHF_WRITE) != 0
    }
}

/// A part of the file that has a place of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Part {
    Section(usize),
    SectionTable,
    SegmentTable,
}

/// What stands between a part and the one before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Gap {
    /// Zeros up to the part's alignment.
    Aligned,
    /// These bytes.
    Bytes(Vec<u8>),
}

/// A part in file order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Placed {
    pub part: Part,
    pub gap: Gap,
    pub align: u64,
}

/// A section whose bytes lie within another's; it stays so as long as the bytes agree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shared {
    pub section: usize,
    pub owner: usize,
    pub at: u64,
}

/// The part of the file that a program header covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// From the start of one part; to the end of another, or nothing.
    Parts { first: Part, last: Option<Part> },
    /// Numbers that fit no parts; they forbid that anything moves.
    Fixed { offset: u64, file_size: u64 },
}

/// One program header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// p_type.
    pub kind: u32,
    /// p_flags.
    pub flags: u32,
    /// p_vaddr and p_paddr.
    pub addresses: [u64; 2],
    /// p_align.
    pub align: u64,
    /// p_memsz less p_filesz: memory without contents.
    pub(crate) zero_fill: i64,
    pub(crate) extent: Extent,
}

/// A cubin, taken apart.
#[derive(Debug, Clone)]
pub struct Elf {
    pub(crate) header: header::Header,
    /// All sections, by index; the first is the null section.
    pub sections: Vec<Section>,
    /// All program headers.
    pub segments: Vec<Segment>,
    pub(crate) layout: Vec<Placed>,
    pub(crate) shared: Vec<Shared>,
    /// Bytes behind the last part.
    pub(crate) tail: Vec<u8>,
}

impl Elf {
    /// The architecture and ABI, from the file header.
    pub fn target(&self) -> Target {
        self.header.target()
    }

    /// Is it said to be for architecture-specific features, by e_flags or by `.nv.compat`?
    pub fn is_specific(&self) -> bool {
        let compat = self.section(".nv.compat");
        self.target().specific || compat.is_some_and(|s| header::is_specific(&s.data))
    }

    /// The architecture as compilers name it: `sm_90`, `sm_90a`.
    pub fn architecture(&self) -> String {
        let features = if self.is_specific() { "a" } else { "" };
        format!("sm_{}{features}", self.target().sm)
    }

    /// Is it relocatable (from `-rdc` or `-c`), not final?
    pub fn is_relocatable(&self) -> bool {
        self.header.kind == object::elf::ET_REL
    }

    /// Index of the first section called `name`.
    pub fn section_index(&self, name: &str) -> Option<usize> {
        self.sections.iter().position(|s| s.name == name)
    }

    /// The first section called `name`.
    pub fn section(&self, name: &str) -> Option<&Section> {
        self.sections.iter().find(|s| s.name == name)
    }

    /// Sets the memory size of a section without contents, in the section header and in the
    /// program header that covers it.
    ///
    /// # Errors
    /// [`ElfError::Refused`]: the section has contents, or no section is that large.
    pub fn resize_zero_fill(&mut self, index: usize, bytes: u64) -> Result<(), ElfError> {
        let before = self.writable_memory();
        let section = self.sections.get_mut(index).filter(|s| s.is_zero_fill());
        let section =
            section.ok_or_else(|| refused("only a section without contents has a free size"))?;
        if bytes > MAX_SECTION {
            return Err(refused(format!("{bytes} bytes are too many for a section")));
        }
        section.size = bytes;
        let grown = self.writable_memory() - before;
        if let Some(at) = self.writable_segment() {
            self.segments[at].zero_fill += grown;
        }
        Ok(())
    }

    /// Adds a section without contents behind the last one, in the writable program header, which
    /// is made if there is none.
    pub(crate) fn add_zero_fill(&mut self, section: Section) -> usize {
        let index = self.sections.len();
        let before = self.writable_memory();
        let anchor = self.writable_segment().and_then(|s| self.end_of_segment(s));
        let at = anchor.map_or_else(|| self.last_loaded(), |at| at.max(self.end_of_memory()));
        self.sections.push(Section { size: 0, ..section });
        let part = Part::Section(index);
        self.layout.insert(
            at,
            Placed {
                part,
                gap: Gap::Aligned,
                align: 1,
            },
        );
        // It may have to be aligned, and then takes memory before it has a size.
        let grown = self.writable_memory() - before;
        if let Some(at) = self.writable_segment() {
            self.segments[at].zero_fill += grown;
        } else {
            self.segments.push(Segment {
                kind: object::elf::PT_LOAD,
                flags: object::elf::PF_R | object::elf::PF_W,
                addresses: [0; 2],
                align: 8,
                zero_fill: 0,
                extent: Extent::Parts {
                    first: part,
                    last: None,
                },
            });
        }
        index
    }

    fn writable_segment(&self) -> Option<usize> {
        self.segments.iter().position(is_writable)
    }

    /// Place in the layout behind the last part of a segment.
    fn end_of_segment(&self, segment: usize) -> Option<usize> {
        let Extent::Parts { first, last } = self.segments[segment].extent else {
            return None;
        };
        let part = last.unwrap_or(first);
        self.layout
            .iter()
            .position(|p| p.part == part)
            .map(|at| at + 1)
    }

    /// Place in the layout behind the last section of writable memory: those without contents take it in this order.
    fn end_of_memory(&self) -> usize {
        let is_memory = |p: &Placed| matches!(p.part, Part::Section(i) if self.sections[i].is_writable_memory());
        self.layout
            .iter()
            .rposition(is_memory)
            .map_or(0, |at| at + 1)
    }

    /// Place in the layout behind the last section that is loaded.
    fn last_loaded(&self) -> usize {
        let loaded = |p: &Placed| matches!(p.part, Part::Section(i) if self.sections[i].flags & u64::from(SHF_ALLOC) != 0);
        self.layout.iter().rposition(loaded).map_or(0, |at| at + 1)
    }

    /// Bytes of memory that the writable sections need, one behind the other.
    fn writable_memory(&self) -> i64 {
        let sections = self.layout.iter().filter_map(|p| match p.part {
            Part::Section(i) => Some(&self.sections[i]),
            _ => None,
        });
        writable_memory(sections) as i64
    }
}

/// Memory that the writable ones of some sections need, one behind the other.
pub(crate) fn writable_memory<'s>(sections: impl Iterator<Item = &'s Section>) -> u64 {
    let writable = sections.filter(|section| section.is_writable_memory());
    writable.fold(0, |end, section| {
        end.next_multiple_of(section.align.max(1)) + section.size()
    })
}

pub(crate) fn is_zero_fill(kind: u32) -> bool {
    kind == SHT_NOBITS || ZERO_FILL.contains(&kind)
}

fn is_writable(segment: &Segment) -> bool {
    segment.kind == object::elf::PT_LOAD && segment.flags & object::elf::PF_W != 0
}

pub(crate) fn refused(why: impl Into<String>) -> ElfError {
    ElfError::Refused(why.into())
}
