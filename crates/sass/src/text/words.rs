//! The words of the whole text that printing and reading share: kinds of sections, of symbols, of
//! records, and the attributes whose first word is a symbol.

use crate::elf::info::Attribute;
use crate::elf::{Elf, Gap, Part, Placed, Section};
use object::elf;

/// The two header tables, as parts of the file.
pub(super) const SECTION_TABLE: &str = "@sections";
pub(super) const SEGMENT_TABLE: &str = "@segments";

pub(super) const SECTION_KINDS: [(&str, u64); 9] = [
    ("null", elf::SHT_NULL as u64),
    ("progbits", elf::SHT_PROGBITS as u64),
    ("symtab", elf::SHT_SYMTAB as u64),
    ("strtab", elf::SHT_STRTAB as u64),
    ("rela", elf::SHT_RELA as u64),
    ("rel", elf::SHT_REL as u64),
    ("note", elf::SHT_NOTE as u64),
    ("nobits", elf::SHT_NOBITS as u64),
    ("cuda_info", 0x7000_0000),
];

pub(super) const SYMBOL_KINDS: [(&str, u64); 5] = [
    ("notype", elf::STT_NOTYPE as u64),
    ("object", elf::STT_OBJECT as u64),
    ("func", elf::STT_FUNC as u64),
    ("section", elf::STT_SECTION as u64),
    ("file", elf::STT_FILE as u64),
];

pub(super) const BINDINGS: [(&str, u64); 3] = [
    ("local", elf::STB_LOCAL as u64),
    ("global", elf::STB_GLOBAL as u64),
    ("weak", elf::STB_WEAK as u64),
];

pub(super) const SEGMENT_KINDS: [(&str, u64); 2] =
    [("load", elf::PT_LOAD as u64), ("phdr", elf::PT_PHDR as u64)];

/// Formats of `.nv.info` records; a sized one of whole words is `words`, another one `bytes`.
pub(super) const RECORD_KINDS: [(&str, u8); 4] = [
    ("flag", crate::elf::info::FORMAT_FLAG),
    ("byte", crate::elf::info::FORMAT_BYTE),
    ("half", crate::elf::info::FORMAT_HALF),
    ("words", crate::elf::info::FORMAT_SIZED),
];

/// Attributes whose words are symbols: the first one, or all.
pub(super) fn names_symbol(attribute: Attribute, word: usize) -> bool {
    match attribute {
        Attribute::EXTERNS => true,
        Attribute::REGCOUNT
        | Attribute::FRAME_SIZE
        | Attribute::MIN_STACK_SIZE
        | Attribute::MAX_STACK_SIZE
        | Attribute::PARAM_CBANK => word == 0,
        _ => false,
    }
}

/// The name of a number in one of the tables above, or its digits.
pub(super) fn word_of(table: &[(&str, u64)], number: u64) -> String {
    let known = table.iter().find(|row| row.1 == number);
    known.map_or_else(|| format!("{number:#x}"), |row| row.0.to_owned())
}

/// The order of parts in a file where nothing else is said.
pub(super) fn usual_layout(sections: &[Section], shared: &[usize], segments: bool) -> Vec<Placed> {
    let place = |part, align| Placed {
        part,
        gap: Gap::Aligned,
        align,
    };
    let own = sections.iter().enumerate();
    let own = own.filter(|(i, s)| s.kind != elf::SHT_NULL && !shared.contains(i));
    let mut layout: Vec<Placed> = own
        .map(|(i, s)| place(Part::Section(i), s.align.max(1)))
        .collect();
    layout.push(place(Part::SectionTable, 8));
    if segments {
        layout.push(place(Part::SegmentTable, 8));
    }
    layout
}

/// Offsets of strings in a string table.
pub(super) struct Strings<'d> {
    data: &'d [u8],
    whole: std::collections::BTreeMap<&'d [u8], u32>,
}

impl<'d> Strings<'d> {
    pub(super) fn new(data: &'d [u8]) -> Strings<'d> {
        let mut whole = std::collections::BTreeMap::new();
        let mut at = 0;
        for string in data.split(|&b| b == 0) {
            // What stands behind the last zero is no string.
            if at + string.len() < data.len() {
                whole.entry(string).or_insert(at as u32);
            }
            at += string.len() + 1;
        }
        Strings { data, whole }
    }

    /// Where a name stands: as a whole string, else at the end of another.
    pub(super) fn find(&self, name: &str) -> Option<u32> {
        let ending = || {
            let wanted = [name.as_bytes(), &[0]].concat();
            let found = self.data.windows(wanted.len()).position(|w| w == wanted);
            found.map(|at| at as u32)
        };
        self.whole.get(name.as_bytes()).copied().or_else(ending)
    }
}

/// Is it machine code that the text shows as instructions?
pub(super) fn is_code(elf: &Elf, section: &Section) -> bool {
    section.kind == elf::SHT_PROGBITS
        && section.flags & u64::from(elf::SHF_EXECINSTR) != 0
        && section
            .data
            .len()
            .is_multiple_of(super::code::SIZE as usize)
        && crate::isa::table::Table::of(elf.target().sm).is_some()
}

/// Does sh_info name a section?
pub(super) fn info_is_section(kind: u32, flags: u64) -> bool {
    flags & u64::from(elf::SHF_INFO_LINK) != 0 || matches!(kind, elf::SHT_REL | elf::SHT_RELA)
}
