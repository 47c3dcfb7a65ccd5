//! A container for code that states none: for tests, and to have nvdisasm read a few lines.
//!
//! Each `.function NAME` becomes a kernel with the sections that the analyses and passes ask for; what
//! it needs is stated by directives (`.registers`, `.local`, `.shared`, `.parameters`, `.reqntid`,
//! `.maxntid`, `.info`) or, for the registers, read off the code; what relocations name and is not there is the
//! system's. Such a cubin is not meant to be loaded, but
//! has the program headers that ptxas writes.

use std::collections::BTreeSet;

use object::elf::{
    PF_R, PF_W, PF_X, PT_LOAD, PT_PHDR, SHF_ALLOC, SHF_EXECINSTR, SHF_INFO_LINK, SHF_WRITE,
    SHT_NOBITS, SHT_PROGBITS, SHT_STRTAB, SHT_SYMTAB, STB_GLOBAL, STB_LOCAL, STT_FUNC,
};
use warpwright_target::machine_code;

use super::assemble::instructions;
use super::error::{At, TextError};
use super::statement::{
    Draft, FunctionDraft, Item, Place, Ref, SYMBOL_BYTES, Statements, SymbolDraft,
};
use crate::elf::info::{Attribute, FORMAT_HALF, FORMAT_SIZED};
use crate::elf::{Extent, Part, RESERVED_REGISTERS, Section, Segment, writable_memory};
use crate::roles::{File, Roles};

/// As ptxas 13.5 fills in the file header.
pub(super) const OS_ABI: u8 = 0x41;
pub(super) const ABI: u8 = 8;
pub(super) const VERSION: u32 = 1;
pub(super) const SECTION_NAMES: &str = ".shstrtab";

const INFO: u32 = 0x7000_0000;
/// st_other of a kernel.
const KERNEL: u8 = 0x10;

/// e_flags for an architecture.
pub(super) fn flags(sm: u32) -> u32 {
    0x600_0004 | sm << 8
}

/// Adds the sections that a container needs and the text does not have.
pub(super) fn fill_in<'t>(
    sm: u32,
    first: At<'t>,
    statements: &mut Statements<'t>,
) -> Result<(), TextError> {
    // Sections are numbered from 1: the null section is not written.
    let count = statements.sections.len() as u32;
    let (names, symbols_at) = (count + 2, count + 3);
    let mut added = Vec::new();
    let mut strings = |name: &str| {
        let mut draft = Draft::new(first, name.to_owned(), SHT_STRTAB);
        draft.push(Item::Bytes(vec![0]));
        added.push(draft);
    };
    strings(SECTION_NAMES);
    strings(".strtab");
    let mut table = Draft::new(first, ".symtab".to_owned(), SHT_SYMTAB);
    (table.link, table.align, table.entry) = (Some(Ref::Index(names)), 8, SYMBOL_BYTES);
    table.push(Item::Bytes(vec![0; SYMBOL_BYTES as usize]));
    let functions = std::mem::take(&mut statements.functions);
    let inner: usize = functions.iter().map(|function| function.inner.len()).sum();
    table.info = Some(Ref::Index(inner as u32 + 1));
    for function in &functions {
        let draft = &statements.sections[function.section];
        let ends = function.inner.iter().skip(1).map(|next| next.1);
        let ends = ends.chain([draft.length]);
        for (&(name, start), end) in function.inner.iter().zip(ends) {
            let index = function.section as u32 + 1;
            table.push(symbol(
                draft.at,
                name,
                index,
                (start, end - start),
                STB_LOCAL,
            ));
        }
    }
    let mut facts = Draft::new(first, ".nv.info".to_owned(), INFO);
    (facts.link, facts.align) = (Some(Ref::Index(symbols_at)), 4);
    let mut more = Vec::new();
    for (at, function) in functions.iter().enumerate() {
        let number = (inner + 1 + at) as u32;
        let code = &statements.sections[function.section];
        let name = code.function().to_owned();
        let index = function.section as u32 + 1;
        let end = function.inner.first().map_or(code.length, |inner| inner.1);
        table.push(symbol(code.at, &name, index, (0, end), STB_GLOBAL));
        let registers = match stated(function, ".registers")? {
            Some([registers, ..]) => registers,
            None => registers_of(sm, code)?,
        };
        let local = stated(function, ".local")?.map_or(0, |local| local[0]);
        for (attribute, value) in [
            (Attribute::REGCOUNT, registers),
            (Attribute::FRAME_SIZE, local),
            (Attribute::MIN_STACK_SIZE, local),
        ] {
            facts.push(words(attribute, &[number, value]));
        }
        let mut sections = own_sections(function, &name, index, symbols_at)?;
        more.append(&mut sections);
        let code = &mut statements.sections[function.section];
        code.flags = u64::from(SHF_ALLOC | SHF_EXECINSTR);
        code.link = Some(Ref::Index(symbols_at));
        let repeated = match machine_code(sm).repeats_registers {
            true => registers << 24,
            false => 0,
        };
        code.info = Some(Ref::Index(number | repeated));
        code.align = 128;
    }
    for name in undefined(&statements.sections) {
        table.push(external(first, name));
    }
    added.extend([table, facts]);
    added.append(&mut more);
    let known: Vec<String> = statements.sections.iter().map(|d| d.name.clone()).collect();
    added.retain(|draft| !known.contains(&draft.name));
    statements.sections.append(&mut added);
    Ok(())
}

/// What relocations name and no section has: functions of the system.
fn undefined<'t>(sections: &[Draft<'t>]) -> BTreeSet<&'t str> {
    let items = sections.iter().flat_map(|draft| &draft.items);
    let named = items.filter_map(|(_, item)| match item {
        Item::Relocation(_, _, symbol, _) => Some(symbol.text),
        _ => None,
    });
    let is_here = |name: &str| sections.iter().any(|draft| draft.function() == name);
    let is_name = |name: &&str| !name.starts_with(['#', '"']);
    named
        .filter(is_name)
        .filter(|name| !is_here(name))
        .collect()
}

/// What is loaded: the program headers themselves, code, constants, and memory without contents.
pub(super) fn program_headers(sections: &[Section]) -> Vec<Segment> {
    let segment = |kind, flags, first, last| Segment {
        kind,
        flags,
        addresses: [0; 2],
        align: 8,
        zero_fill: 0,
        extent: Extent::Parts { first, last },
    };
    let table = Part::SegmentTable;
    let mut segments: Vec<Segment> = [PT_PHDR, PT_LOAD]
        .map(|kind| segment(kind, PF_R, table, Some(table)))
        .into();
    let loaded = |section: &Section| {
        section.flags & u64::from(SHF_ALLOC) != 0 && !section.is_writable_memory()
    };
    for (at, section) in sections.iter().enumerate().filter(|(_, s)| loaded(s)) {
        let executes = section.flags & u64::from(SHF_EXECINSTR) != 0;
        let flags = if executes { PF_R | PF_X } else { PF_R };
        let part = Part::Section(at);
        segments.push(segment(PT_LOAD, flags, part, Some(part)));
    }
    let mut memory = sections.iter().enumerate();
    if let Some((at, _)) = memory.find(|(_, section)| section.is_writable_memory()) {
        let part = Part::Section(at);
        segments.push(Segment {
            zero_fill: writable_memory(sections.iter()) as i64,
            ..segment(PT_LOAD, PF_R | PF_W, part, None)
        });
    }
    segments
}

/// `.nv.info.NAME`, `.nv.constant0.NAME` and `.nv.shared.NAME`.
fn own_sections<'t>(
    function: &FunctionDraft<'t>,
    name: &str,
    text: u32,
    symbols: u32,
) -> Result<Vec<Draft<'t>>, TextError> {
    let at = function.at;
    let linked = u64::from(SHF_INFO_LINK);
    let mut info = Draft::new(at, format!(".nv.info.{name}"), INFO);
    (info.flags, info.link, info.info) =
        (linked, Some(Ref::Index(symbols)), Some(Ref::Index(text)));
    info.align = 4;
    let mut sections = Vec::new();
    for (fact, attribute) in [
        (".reqntid", Attribute::REQNTID),
        (".maxntid", Attribute::MAX_THREADS),
    ] {
        if let Some(block) = stated(function, fact)? {
            info.push(words(attribute, &block));
        }
    }
    if let Some([base, size, _]) = stated(function, ".parameters")? {
        let bank = format!(".nv.constant0.{name}");
        let mut constants = Draft::new(at, bank, SHT_PROGBITS);
        constants.flags = linked | u64::from(SHF_ALLOC);
        (constants.info, constants.align) = (Some(Ref::Index(text)), 4);
        let bytes = u64::from(base) + u64::from(size);
        constants.push(Item::Bytes(vec![0; bytes.min(1 << 16) as usize]));
        sections.push(constants);
        // The symbol of the bank is not there; nothing asks for it.
        info.push(words(Attribute::PARAM_CBANK, &[0, base | size << 16]));
        let size = (size as u16).to_le_bytes();
        let record = [FORMAT_HALF, Attribute::CBANK_PARAM_SIZE.0, size[0], size[1]];
        info.push(Item::Bytes(record.to_vec()));
    }
    function
        .records
        .iter()
        .for_each(|record| info.push(record.clone()));
    sections.push(info);
    if let Some([bytes, ..]) = stated(function, ".shared")? {
        let mut shared = Draft::new(at, format!(".nv.shared.{name}"), SHT_NOBITS);
        shared.flags = linked | u64::from(SHF_ALLOC | SHF_WRITE);
        (shared.info, shared.align, shared.size) = (Some(Ref::Index(text)), 16, bytes.into());
        sections.push(shared);
    }
    Ok(sections)
}

/// The values of a directive, zeros behind them.
fn stated(function: &FunctionDraft<'_>, fact: &str) -> Result<Option<[u32; 3]>, TextError> {
    let Some(given) = function.facts.get(fact) else {
        return Ok(None);
    };
    let mut values = [0; 3];
    for (value, word) in values.iter_mut().zip(given) {
        *value = word.number()?;
    }
    Ok(Some(values))
}

/// One register more than the highest that the code names, and those that nobody may name.
fn registers_of(sm: u32, draft: &Draft<'_>) -> Result<u32, TextError> {
    let code = instructions(sm, draft)?;
    let roles = code.iter().filter_map(|&inst| Roles::of(inst));
    let ends = roles.map(|roles| {
        let general = roles.spans().iter().filter(|span| span.file == File::Gpr);
        general.map(|span| span.registers().end).max().unwrap_or(0)
    });
    Ok(u32::from(ends.max().unwrap_or(0)) + RESERVED_REGISTERS)
}

fn words<'t>(attribute: Attribute, words: &[u32]) -> Item<'t> {
    let size = (words.len() as u16 * 4).to_le_bytes();
    let mut bytes = vec![FORMAT_SIZED, attribute.0, size[0], size[1]];
    bytes.extend(words.iter().flat_map(|word| word.to_le_bytes()));
    Item::Bytes(bytes)
}

fn symbol<'t>(at: At<'t>, name: &str, section: u32, place: (u64, u64), binding: u8) -> Item<'t> {
    Item::Symbol(SymbolDraft {
        at,
        name: name.to_owned(),
        name_offset: None,
        info: STT_FUNC | binding << 4,
        other: if binding == STB_GLOBAL { KERNEL } else { 0 },
        section: Some(Ref::Index(section)),
        place: Place::Numbers(place.0, place.1),
    })
}

fn external<'t>(at: At<'t>, name: &str) -> Item<'t> {
    Item::Symbol(SymbolDraft {
        at,
        name: name.to_owned(),
        name_offset: None,
        info: STT_FUNC | STB_GLOBAL << 4,
        other: 0,
        section: None,
        place: Place::Numbers(0, 0),
    })
}
