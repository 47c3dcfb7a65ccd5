//! A whole cubin as text: everything that the container knows.
//!
//! A header (`.elf`), the program headers (`.segment`), then each section by index with its contents:
//! instructions, records of `.nv.info`, symbols, relocations and strings by what they mean, the rest as
//! words. Offsets of instructions are labels, so lines of code can be added and taken away as long as
//! no table counts them (line tables, call frames, jump tables).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use object::elf::{SHT_STRTAB, SHT_SYMTAB};

use super::code::{self, LABEL, SIZE};
use super::error::Name;
use super::words::{
    BINDINGS, RECORD_KINDS, SECTION_KINDS, SECTION_TABLE, SEGMENT_KINDS, SEGMENT_TABLE,
    SYMBOL_KINDS, Strings, info_is_section, is_code, names_symbol, usual_layout, word_of,
};
use crate::edit::facts;
use crate::elf::info::{Info, Record, Value};
use crate::elf::reloc::Relocation;
use crate::elf::symbol::Symbol;
use crate::elf::{Elf, ElfError, Extent, Gap, Part, Section, refused};
use crate::inst::Instruction;

/// The text of a whole cubin.
///
/// # Errors
/// A file header that no cubin has.
pub fn whole(elf: &Elf) -> Result<String, ElfError> {
    let writer = Writer::new(elf)?;
    let mut out = String::new();
    writer.header(&mut out)?;
    writer.segments(&mut out);
    writer.layout(&mut out);
    for (index, section) in elf.sections.iter().enumerate() {
        writer.section(index, section, &mut out);
    }
    if !elf.tail.is_empty() {
        out.push_str("\n.tail\n");
        raw(&elf.tail, &mut out);
    }
    Ok(out)
}

struct Writer<'e> {
    elf: &'e Elf,
    symbols: Vec<Symbol>,
    /// How many sections, and how many symbols, have a name.
    section_names: BTreeMap<&'e str, usize>,
    symbol_names: BTreeMap<String, usize>,
    /// By section of code, the offsets that something outside names.
    labels: BTreeMap<usize, BTreeSet<u64>>,
}

impl<'e> Writer<'e> {
    fn new(elf: &'e Elf) -> Result<Writer<'e>, ElfError> {
        let mut section_names = BTreeMap::new();
        for section in &elf.sections {
            *section_names.entry(&*section.name).or_default() += 1;
        }
        let symbols = elf.symbols().unwrap_or_default();
        let mut symbol_names = BTreeMap::new();
        for symbol in &symbols {
            *symbol_names.entry(symbol.name.clone()).or_default() += 1;
        }
        let mut writer = Writer {
            elf,
            symbols,
            section_names,
            symbol_names,
            labels: BTreeMap::new(),
        };
        writer.find_labels()?;
        Ok(writer)
    }

    fn find_labels(&mut self) -> Result<(), ElfError> {
        let code = self.elf.sections.iter().enumerate();
        let code = code.filter(|(_, section)| is_code(self.elf, section));
        let mut labels: BTreeMap<usize, BTreeSet<u64>> =
            code.map(|(i, _)| (i, BTreeSet::new())).collect();
        for (index, section) in self.elf.sections.iter().enumerate() {
            if let (Some(target), Some(info)) = (self.target(index), self.records(section)) {
                for record in &info.records {
                    let words = record.words();
                    let offsets = facts::offsets(record)
                        .into_iter()
                        .map(|at| u64::from(words[at]));
                    labels.entry(target).or_default().extend(offsets);
                }
            }
            if let (Some(target), Some(found)) = (self.target(index), self.relocations(index)) {
                let places = found.iter().map(|r| r.offset - r.offset % SIZE);
                labels.entry(target).or_default().extend(places);
            }
        }
        for symbol in self.symbols.iter().filter(|s| s.is_function()) {
            let ends = [symbol.value, symbol.value.saturating_add(symbol.size)];
            let place = labels.get_mut(&usize::from(symbol.section));
            place.into_iter().for_each(|labels| labels.extend(ends));
        }
        for (&index, labels) in &mut labels {
            let end = self.elf.sections[index].data.len() as u64;
            labels.retain(|at| at.is_multiple_of(SIZE) && *at <= end);
        }
        self.labels = labels;
        Ok(())
    }

    /// The section of code that the offsets in section `index` count in.
    fn target(&self, index: usize) -> Option<usize> {
        let section = &self.elf.sections[index];
        let named = match section.name.strip_prefix(".nv.info.") {
            Some(name) => self.elf.section_index(&format!(".text.{name}")),
            None if section.is_relocations() => Some(section.info as usize),
            None => None,
        };
        named.filter(|&i| {
            self.elf
                .sections
                .get(i)
                .is_some_and(|s| is_code(self.elf, s))
        })
    }

    /// The records of a section, if it holds some that are written back as they were.
    fn records(&self, section: &Section) -> Option<Info> {
        let info = section.name.starts_with(".nv.info") && section.has_contents();
        let info = Info::parse(&section.data).ok().filter(|_| info)?;
        info.write()
            .is_ok_and(|bytes| bytes == section.data)
            .then_some(info)
    }

    fn relocations(&self, index: usize) -> Option<Vec<Relocation>> {
        let section = &self.elf.sections[index];
        let links_here = Some(section.link as usize) == self.elf.symbol_table();
        self.elf.relocations(index).ok().filter(|_| links_here)
    }

    fn header(&self, out: &mut String) -> Result<(), ElfError> {
        let header = &self.elf.header;
        let ident = &header.ident;
        if (
            ident.magic,
            ident.class,
            ident.data,
            ident.version,
            ident.padding,
        ) != (object::elf::ELFMAG, 2, 1, 1, [0; 7])
            || header.machine != crate::elf::header::EM_CUDA
        {
            return Err(refused(
                "the file header has values that the text has no words for",
            ));
        }
        let _ = writeln!(out, ".sm {}", self.elf.target().sm);
        let _ = write!(
            out,
            ".elf type={} version={:#x} osabi={:#x} abi={} flags={:#x} names={}",
            header.kind,
            header.version,
            ident.os_abi,
            ident.abi_version,
            header.flags,
            self.section_word(header.names)
        );
        attribute("entry", header.entry, 0, out);
        attribute("segment_entry", header.segment_entry.into(), 56, out);
        if self.elf.segments.is_empty() {
            attribute("segment_offset", header.segment_offset, 0, out);
        }
        out.push('\n');
        Ok(())
    }

    fn segments(&self, out: &mut String) {
        for segment in &self.elf.segments {
            let kind = word_of(&SEGMENT_KINDS, segment.kind.into());
            let _ = write!(out, ".segment {kind} flags={:#x}", segment.flags);
            match segment.extent {
                Extent::Parts { first, last } => {
                    let _ = write!(out, " from={}", self.part(first));
                    if let Some(last) = last {
                        let _ = write!(out, " to={}", self.part(last));
                    }
                }
                Extent::Fixed { offset, file_size } => {
                    let _ = write!(out, " offset={offset:#x} size={file_size:#x}");
                }
            }
            attribute("align", segment.align, 8, out);
            attribute("vaddr", segment.addresses[0], 0, out);
            attribute("paddr", segment.addresses[1], 0, out);
            if segment.zero_fill != 0 {
                let _ = write!(out, " more={}", segment.zero_fill);
            }
            out.push('\n');
        }
    }

    /// Where the file's order is not the usual one.
    fn layout(&self, out: &mut String) {
        let inside: Vec<usize> = self.elf.shared.iter().map(|s| s.section).collect();
        for shared in &self.elf.shared {
            let (part, owner) = (
                self.section_word(shared.section),
                self.section_word(shared.owner),
            );
            let _ = writeln!(out, ".within {part} {owner} {:#x}", shared.at);
        }
        let has_segments = !self.elf.segments.is_empty();
        if self.elf.layout == usual_layout(&self.elf.sections, &inside, has_segments) {
            return;
        }
        for placed in &self.elf.layout {
            let _ = write!(out, ".place {}", self.part(placed.part));
            attribute("align", placed.align, 1, out);
            if let Gap::Bytes(bytes) = &placed.gap {
                out.push_str(" gap=");
                bytes.iter().for_each(|b| {
                    let _ = write!(out, "{b:02x}");
                });
            }
            out.push('\n');
        }
    }

    fn section(&self, index: usize, section: &Section, out: &mut String) {
        let is_plain_null = section.kind == object::elf::SHT_NULL
            && index == 0
            && (section.flags, section.size, section.offset, section.align) == (0, 0, 0, 0)
            && (section.link, section.info, section.name_offset) == (0, 0, 0);
        if is_plain_null {
            return;
        }
        let kind = word_of(&SECTION_KINDS, section.kind.into());
        let _ = write!(out, "\n.section {} {kind}", Name(&section.name));
        let names = &self.elf.sections.get(self.elf.header.names);
        let usual = names.and_then(|names| Strings::new(&names.data).find(&section.name));
        if usual != Some(section.name_offset) {
            let _ = write!(out, " name={:#x}", section.name_offset);
        }
        attribute("flags", section.flags, 0, out);
        attribute("address", section.address, 0, out);
        if section.link != 0 {
            let _ = write!(out, " link={}", self.section_word(section.link as usize));
        }
        match info_is_section(section.kind, section.flags) {
            true if section.info != 0 => {
                let _ = write!(out, " info={}", self.section_word(section.info as usize));
            }
            _ => attribute("info", section.info.into(), 0, out),
        }
        attribute("align", section.align, 1, out);
        attribute("entry", section.entry_size, 0, out);
        if !section.has_contents() {
            attribute("size", section.size, 0, out);
        }
        let fixed = |s: &crate::elf::Segment| matches!(s.extent, Extent::Fixed { .. });
        if section.kind == object::elf::SHT_NULL || self.elf.segments.iter().any(fixed) {
            attribute("offset", section.offset, 0, out);
        }
        out.push('\n');
        self.contents(index, section, out);
    }

    fn contents(&self, index: usize, section: &Section, out: &mut String) {
        if is_code(self.elf, section) {
            return self.code(index, section, out);
        }
        if let Some(info) = self.records(section) {
            let target = self.target(index);
            info.records
                .iter()
                .for_each(|record| self.record(record, target, out));
            return;
        }
        if let Some(relocations) = self.relocations(index) {
            let target = self.target(index);
            relocations
                .iter()
                .for_each(|r| self.relocation(r, target, out));
            return;
        }
        if section.kind == SHT_SYMTAB && Some(index) == self.elf.symbol_table() {
            let names = self.elf.sections.get(section.link as usize);
            let names = Strings::new(names.map_or(&[], |names| &names.data));
            let whole = self.symbols.len() * size_of::<object::elf::Sym64<object::LittleEndian>>();
            if whole == section.data.len() {
                self.symbols
                    .iter()
                    .for_each(|s| self.symbol(s, &names, out));
                return;
            }
        }
        if section.kind == SHT_STRTAB && strings(&section.data, out) {
            return;
        }
        raw(&section.data, out);
    }

    fn code(&self, index: usize, section: &Section, out: &mut String) {
        let sm = self.elf.target().sm;
        let words = section.data.chunks_exact(SIZE as usize).map(|raw| {
            let word = raw
                .iter()
                .rev()
                .fold(0, |word, &b| word << 8 | u128::from(b));
            Instruction::new(sm, word)
        });
        let own = self.symbols.iter();
        let own = own.filter(|s| s.is_function() && usize::from(s.section) == index);
        let mut remarks: BTreeMap<u64, Vec<String>> = BTreeMap::new();
        for symbol in own {
            remarks
                .entry(symbol.value)
                .or_default()
                .push(symbol.name.clone());
        }
        let none = BTreeSet::new();
        let named = self.labels.get(&index).unwrap_or(&none);
        code::print(&words.collect::<Vec<_>>(), named, &remarks, out);
    }

    /// `.info words REGCOUNT k 30`
    fn record(&self, record: &Record, target: Option<usize>, out: &mut String) {
        let attribute = record.attribute;
        let name = attribute
            .name()
            .map_or(format!("{:#x}", attribute.0), str::to_owned);
        let pair = |kind: u8, [a, b]: [u8; 2]| {
            let known = RECORD_KINDS.iter().find(|k| k.1 == kind);
            let kind = known.map_or(format!("{kind:#x}"), |known| known.0.to_owned());
            match (&*kind, a, b) {
                ("flag", 0, 0) => format!("flag {name}"),
                (_, a, 0) => format!("{kind} {name} {a}"),
                (_, a, b) => format!("{kind} {name} {a} {b}"),
            }
        };
        let line = match &record.value {
            Value::Flag(value) => pair(crate::elf::info::FORMAT_FLAG, *value),
            Value::Byte(value) => pair(crate::elf::info::FORMAT_BYTE, *value),
            Value::Other(kind, value) => pair(*kind, *value),
            Value::Half(value) => format!("half {name} {value:#x}"),
            Value::Sized(bytes) if !bytes.len().is_multiple_of(4) => {
                let bytes = bytes.iter().map(|b| format!(" {b:#04x}"));
                format!("bytes {name}{}", bytes.collect::<String>())
            }
            Value::Sized(_) => {
                let offsets = facts::offsets(record);
                let words = record.words().into_iter().enumerate();
                let words = words.map(|(at, word)| match names_symbol(attribute, at) {
                    true => format!(" {}", self.symbol_word(word)),
                    false if offsets.contains(&at) => {
                        format!(" {}", self.offset(word.into(), target))
                    }
                    false => format!(" {word:#x}"),
                });
                format!("words {name}{}", words.collect::<String>())
            }
        };
        let _ = writeln!(out, ".info {line}");
    }

    /// `.reloc .L_30 0x38 k 0x10`
    fn relocation(&self, r: &Relocation, target: Option<usize>, out: &mut String) {
        let place = self.offset(r.offset, target);
        let symbol = self.symbol_word(r.symbol);
        let _ = write!(out, ".reloc {place} {:#x} {symbol}", r.kind);
        if let Some(addend) = r.addend {
            let _ = write!(out, " {addend}");
        }
        out.push('\n');
    }

    /// `.symbol k func global other=0x10 in=.text.k from=.L_0 to=.L_1380`
    fn symbol(&self, s: &Symbol, names: &Strings<'_>, out: &mut String) {
        let kind = word_of(&SYMBOL_KINDS, (s.info & 0xf).into());
        let binding = word_of(&BINDINGS, (s.info >> 4).into());
        let _ = write!(out, ".symbol {} {kind} {binding}", Name(&s.name));
        if names.find(&s.name) != Some(s.name_offset) {
            let _ = write!(out, " name={:#x}", s.name_offset);
        }
        attribute("other", s.other.into(), 0, out);
        if s.section != 0 {
            let _ = write!(out, " in={}", self.section_word(s.section.into()));
        }
        let labels = self
            .labels
            .get(&usize::from(s.section))
            .filter(|_| s.is_function());
        let end = s.value.wrapping_add(s.size);
        match labels.filter(|labels| labels.contains(&s.value) && labels.contains(&end)) {
            Some(_) => {
                let _ = write!(out, " from={LABEL}{:x} to={LABEL}{end:x}", s.value);
            }
            None => {
                attribute("value", s.value, 0, out);
                attribute("size", s.size, 0, out);
            }
        }
        out.push('\n');
    }

    /// An offset in a section of code: from a label, if there is one.
    fn offset(&self, offset: u64, target: Option<usize>) -> String {
        let (start, rest) = (offset - offset % SIZE, offset % SIZE);
        let labels = target.and_then(|target| self.labels.get(&target));
        match labels.is_some_and(|labels| labels.contains(&start)) {
            true if rest == 0 => format!("{LABEL}{start:x}"),
            true => format!("{LABEL}{start:x}+{rest}"),
            false => format!("{offset:#x}"),
        }
    }

    fn part(&self, part: Part) -> String {
        match part {
            Part::Section(i) => self.section_word(i),
            Part::SectionTable => SECTION_TABLE.to_owned(),
            Part::SegmentTable => SEGMENT_TABLE.to_owned(),
        }
    }

    fn section_word(&self, index: usize) -> String {
        let named = self.elf.sections.get(index).filter(|s| !s.name.is_empty());
        match named.filter(|s| self.section_names.get(&*s.name) == Some(&1)) {
            Some(section) => Name(&section.name).to_string(),
            None => format!("#{index}"),
        }
    }

    fn symbol_word(&self, index: u32) -> String {
        let named = self
            .symbols
            .get(index as usize)
            .filter(|s| !s.name.is_empty());
        match named.filter(|s| self.symbol_names.get(&s.name) == Some(&1)) {
            Some(symbol) => Name(&symbol.name).to_string(),
            None => format!("#{index}"),
        }
    }
}

fn attribute(name: &str, value: u64, usual: u64, out: &mut String) {
    if value != usual {
        let _ = write!(out, " {name}={value:#x}");
    }
}

/// A string table line by line; false if it is none.
fn strings(data: &[u8], out: &mut String) -> bool {
    let text = std::str::from_utf8(data).ok();
    let Some(text) = text.and_then(|text| text.strip_suffix('\0')) else {
        return false;
    };
    for string in text.split('\0') {
        let _ = writeln!(out, ".string {}", Name(string));
    }
    true
}

/// Bytes as words of four; runs of zeros by their length.
fn raw(data: &[u8], out: &mut String) {
    const ROW: usize = 32;
    let mut rest = data;
    while !rest.is_empty() {
        let zeros = rest.iter().take_while(|&&b| b == 0).count();
        let zeros = if zeros < rest.len() {
            zeros / ROW * ROW
        } else {
            zeros
        };
        if zeros >= ROW {
            let _ = writeln!(out, ".zero {zeros}");
            rest = &rest[zeros..];
            continue;
        }
        let (row, tail) = rest.split_at(rest.len().min(ROW));
        let words = row.chunks_exact(4);
        let left = words.remainder();
        if row.len() >= 4 {
            out.push_str(".word");
            for word in words {
                let word = word
                    .iter()
                    .rev()
                    .fold(0, |word, &b| word << 8 | u32::from(b));
                let _ = write!(out, " {word:#x}");
            }
            out.push('\n');
        }
        if !left.is_empty() {
            out.push_str(".byte");
            left.iter().for_each(|b| {
                let _ = write!(out, " {b:#x}");
            });
            out.push('\n');
        }
        rest = tail;
    }
}
