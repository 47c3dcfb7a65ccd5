//! From the statements of a text to a container.

use std::collections::BTreeMap;

use object::elf::{ELFMAG, Ident, SHT_NULL, SHT_REL};

use super::code::{self, LABEL};
use super::error::{At, Line, TextError, TextErrorKind};
use super::fresh;
use super::statement::{
    Draft, Item, Place, Ref, SYMBOL_BYTES, Statements, SymbolDraft, missing, tabled,
};
use super::words::{
    SECTION_TABLE, SEGMENT_KINDS, SEGMENT_TABLE, Strings, names_symbol, usual_layout,
};
use crate::elf::header::{EM_CUDA, Header};
use crate::elf::info::{Attribute, FORMAT_HALF, FORMAT_SIZED};
use crate::elf::{Elf, Extent, Gap, Part, Placed, Section, Segment, Shared, refused};

/// The cubin that a text says: what [`whole`](super::whole::whole) printed comes back bit for bit. A text without a
/// header (`.elf`), such as [`print`](super::print) writes or a hand does, gets a container of its own.
///
/// # Errors
/// The first line that is wrong.
pub fn assemble(text: &str) -> Result<Vec<u8>, TextError> {
    let mut statements = Statements::read(text)?;
    let sm = architecture(text, &statements)?;
    let first = first_line(text);
    if !statements.is_whole() {
        fresh::fill_in(sm, first, &mut statements)?;
    }
    let builder = Builder::new(sm, &statements)?;
    let elf = builder.build(&statements, first)?;
    let bytes = elf.write().map_err(|e| first.fail(e))?;
    // What was put together must read as a cubin.
    Elf::parse(&bytes).map_err(|e| first.fail(e))?;
    Ok(bytes)
}

/// The architecture that a text states.
pub(super) fn architecture(text: &str, found: &Statements<'_>) -> Result<u32, TextError> {
    found
        .sm
        .ok_or_else(|| first_line(text).fail(TextErrorKind::NoArchitecture))
}

fn first_line(text: &str) -> At<'_> {
    let text = text.lines().next().unwrap_or("");
    let line = Line { number: 1, text };
    At { line, text }
}

/// The instructions of a draft.
pub(super) fn instructions(
    sm: u32,
    draft: &Draft<'_>,
) -> Result<Vec<crate::inst::Instruction>, TextError> {
    let code = draft.items.iter().filter_map(|(offset, item)| match item {
        Item::Code(line) => Some(code::parse_line(sm, *line, *offset, &draft.labels)),
        _ => None,
    });
    code.collect()
}

/// Indices by name; several things may have one.
type Index = BTreeMap<String, Vec<usize>>;

struct Builder<'s, 't> {
    sm: u32,
    /// The drafts by section index; the null section, where it is not written, is none.
    drafts: Vec<Option<&'s Draft<'t>>>,
    sections: Index,
    symbols: Index,
}

impl<'s, 't> Builder<'s, 't> {
    fn new(sm: u32, statements: &'s Statements<'t>) -> Result<Self, TextError> {
        let written = statements
            .sections
            .first()
            .is_some_and(|d| d.kind == SHT_NULL);
        let none = (!written).then_some(None);
        let drafts: Vec<_> = none
            .into_iter()
            .chain(statements.sections.iter().map(Some))
            .collect();
        let mut sections = Index::new();
        let mut symbols = Index::new();
        for (i, draft) in drafts.iter().enumerate() {
            let Some(draft) = draft else { continue };
            sections.entry(draft.name.clone()).or_default().push(i);
            // Of a table that is made here the first entry is bytes.
            for (offset, item) in &draft.items {
                if let Item::Symbol(symbol) = item {
                    let number = (*offset / SYMBOL_BYTES) as usize;
                    symbols.entry(symbol.name.clone()).or_default().push(number);
                }
            }
        }
        Ok(Builder {
            sm,
            drafts,
            sections,
            symbols,
        })
    }

    fn build(&self, statements: &Statements<'t>, first: At<'t>) -> Result<Elf, TextError> {
        let mut sections = Vec::new();
        for draft in &self.drafts {
            sections.push(match draft {
                Some(draft) => self.section(draft)?,
                None => null(),
            });
        }
        let header = self.header(statements, first)?;
        self.name_symbols(&mut sections)?;
        self.name_sections(header.names, &mut sections)?;
        let mut elf = Elf {
            header,
            segments: Vec::new(),
            layout: Vec::new(),
            shared: Vec::new(),
            tail: statements.tail.clone(),
            sections,
        };
        for words in &statements.container {
            match words[0].text {
                ".segment" => elf.segments.push(self.segment(words)?),
                ".within" => elf.shared.push(self.within(words)?),
                ".place" => elf.layout.push(self.placed(words)?),
                _ => {}
            }
        }
        if !statements.is_whole() {
            elf.segments = fresh::program_headers(&elf.sections);
        }
        if elf.layout.is_empty() {
            let inside: Vec<usize> = elf.shared.iter().map(|s| s.section).collect();
            elf.layout = usual_layout(&elf.sections, &inside, !elf.segments.is_empty());
        }
        let is_placed = |part| elf.layout.iter().any(|p| p.part == part);
        if !elf.shared.iter().all(|s| is_placed(Part::Section(s.owner))) {
            return Err(first.fail(refused("a section lies within one that has no place")));
        }
        let wrong = elf.sections.iter().any(|s| s.align > crate::elf::MAX_ALIGN)
            || elf
                .layout
                .iter()
                .any(|p| p.align == 0 || p.align > crate::elf::MAX_ALIGN);
        match wrong {
            true => Err(first.fail(refused("an alignment that no section has"))),
            false => Ok(elf),
        }
    }

    fn section(&self, draft: &Draft<'t>) -> Result<Section, TextError> {
        let section = |given: Option<Ref<'t>>| match given {
            None => Ok(0),
            Some(Ref::Index(index)) => Ok(index),
            Some(Ref::Word(at)) if at.number::<u32>().is_ok() => at.number(),
            Some(Ref::Word(at)) => self.section_index(at).map(|i| i as u32),
        };
        let mut data = Vec::new();
        for (offset, item) in &draft.items {
            self.write(draft, *offset, item, &mut data)?;
        }
        if !draft.align.is_power_of_two() && draft.align != 0 {
            return Err(draft.at.fail(TextErrorKind::Number));
        }
        if !data.is_empty() && (crate::elf::is_zero_fill(draft.kind) || draft.kind == SHT_NULL) {
            return Err(draft
                .at
                .fail(refused("a section of this kind has no contents")));
        }
        Ok(Section {
            name: draft.name.clone(),
            name_offset: draft.name_offset.unwrap_or(0),
            kind: draft.kind,
            flags: draft.flags,
            address: draft.address,
            link: section(draft.link)?,
            info: section(draft.info)?,
            align: draft.align,
            entry_size: draft.entry,
            size: draft.size,
            data,
            offset: draft.offset,
        })
    }

    fn write(
        &self,
        draft: &Draft<'t>,
        offset: u64,
        item: &Item<'t>,
        out: &mut Vec<u8>,
    ) -> Result<(), TextError> {
        match item {
            Item::Bytes(bytes) => out.extend(bytes),
            Item::Code(line) => {
                let inst = code::parse_line(self.sm, *line, offset, &draft.labels)?;
                out.extend(inst.bits().to_le_bytes());
            }
            Item::Words(words) => {
                for &word in words {
                    out.extend(self.word(draft, word)?.to_le_bytes());
                }
            }
            Item::Info(format, attribute, values) => {
                self.record(draft, *format, *attribute, values, out)?;
            }
            Item::Symbol(symbol) => self.symbol(symbol, out)?,
            Item::Relocation(place, kind, symbol, addend) => {
                let is_rel = draft.kind == SHT_REL;
                if is_rel != addend.is_none() {
                    return Err(place.fail(refused("an addend does not fit the section's kind")));
                }
                let named: u32 = self.symbol_index(*symbol)?;
                out.extend(self.offset(draft, *place)?.to_le_bytes());
                out.extend((u64::from(named) << 32 | u64::from(*kind)).to_le_bytes());
                addend
                    .iter()
                    .for_each(|addend| out.extend(addend.to_le_bytes()));
            }
        }
        Ok(())
    }

    fn record(
        &self,
        draft: &Draft<'t>,
        format: u8,
        attribute: Attribute,
        values: &[At<'t>],
        out: &mut Vec<u8>,
    ) -> Result<(), TextError> {
        out.extend([format, attribute.0]);
        let pair = |at: usize| values.get(at).map_or(Ok(0), |value| value.number::<u8>());
        if let Some(more) = values.get(2).filter(|_| format != FORMAT_SIZED) {
            return Err(more.fail(TextErrorKind::Unexpected));
        }
        match (format, values) {
            (FORMAT_HALF, [value]) => out.extend(value.number::<u16>()?.to_le_bytes()),
            (FORMAT_HALF, _) => return Err(draft.at.fail(TextErrorKind::Missing("a number"))),
            (FORMAT_SIZED, values) => {
                let size = u16::try_from(values.len() * 4);
                let size = size.map_err(|_| draft.at.fail(TextErrorKind::Number))?;
                out.extend(size.to_le_bytes());
                for (at, &value) in values.iter().enumerate() {
                    let word = match names_symbol(attribute, at) && value.number::<u32>().is_err() {
                        true => self.symbol_index(value)?,
                        false => self.word(draft, value)?,
                    };
                    out.extend(word.to_le_bytes());
                }
            }
            _ => out.extend([pair(0)?, pair(1)?]),
        }
        Ok(())
    }

    /// Name offsets come later.
    fn symbol(&self, symbol: &SymbolDraft<'t>, out: &mut Vec<u8>) -> Result<(), TextError> {
        let section = match symbol.section {
            None => 0,
            Some(Ref::Index(index)) => index as usize,
            Some(Ref::Word(at)) => self.section_index(at)?,
        };
        let (value, size) = match symbol.place {
            Place::Numbers(value, size) => (value, size),
            Place::Labels(from, to) => {
                let draft = self.drafts.get(section).copied().flatten();
                let label = |at: At<'t>| {
                    let found = draft.and_then(|draft| draft.labels.get(at.text));
                    found.copied().ok_or_else(|| at.unknown("label"))
                };
                let (start, end) = (label(from)?, label(to)?);
                let size = end
                    .checked_sub(start)
                    .ok_or_else(|| to.fail(TextErrorKind::Number))?;
                (start, size)
            }
        };
        let too_many = || symbol.at.fail(refused("there are too many sections"));
        let section = u16::try_from(section).map_err(|_| too_many())?;
        out.extend(symbol.name_offset.unwrap_or(0).to_le_bytes());
        out.extend([symbol.info, symbol.other]);
        out.extend(section.to_le_bytes());
        out.extend(value.to_le_bytes());
        out.extend(size.to_le_bytes());
        Ok(())
    }

    /// A word of four bytes: a number, a label, or the distance between two.
    fn word(&self, draft: &Draft<'t>, at: At<'t>) -> Result<u32, TextError> {
        if !at.text.starts_with(LABEL) {
            return at.number::<i64>().and_then(|n| {
                let fits = u32::try_from(n)
                    .ok()
                    .or(i32::try_from(n).ok().map(|n| n as u32));
                fits.ok_or_else(|| at.fail(TextErrorKind::Number))
            });
        }
        let word = match at.text.split_once('-') {
            Some((to, from)) => {
                let part = |text| self.offset(draft, At { text, ..at });
                part(to)?.wrapping_sub(part(from)?) as u32
            }
            None => self.offset(draft, at)? as u32,
        };
        Ok(word)
    }

    /// `.L_30`, `.L_30+8`, or a number.
    fn offset(&self, draft: &Draft<'t>, at: At<'t>) -> Result<u64, TextError> {
        if !at.text.starts_with(LABEL) {
            return at.number();
        }
        let (label, more) = match at.text.split_once('+') {
            Some((label, more)) => (label, At { text: more, ..at }.number::<u64>()?),
            None => (at.text, 0),
        };
        let own = draft.labels.get(label).copied();
        let found = own.or_else(|| self.code_of(draft)?.labels.get(label).copied());
        Ok(found
            .ok_or_else(|| At { text: label, ..at }.unknown("label"))?
            .wrapping_add(more))
    }

    /// The section of code that belongs to another one.
    fn code_of(&self, draft: &Draft<'t>) -> Option<&'s Draft<'t>> {
        let prefixes = [".nv.info.", ".nv.constant2.", ".nv.constant0."];
        let named = prefixes
            .iter()
            .find_map(|prefix| draft.name.strip_prefix(prefix));
        let index = match named {
            Some(name) => self
                .sections
                .get(&format!(".text.{name}"))?
                .first()
                .copied(),
            None => match draft.info? {
                Ref::Index(index) => Some(index as usize),
                Ref::Word(at) => self.section_index(at).ok(),
            },
        };
        self.drafts.get(index?).copied().flatten()
    }

    /// A section by its name or `#INDEX`.
    fn section_index(&self, at: At<'t>) -> Result<usize, TextError> {
        if let Some(index) = at.text.strip_prefix('#') {
            return At { text: index, ..at }.number::<u32>().map(|i| i as usize);
        }
        match self.sections.get(&at.name()?).map(Vec::as_slice) {
            Some(&[index]) => Ok(index),
            _ => Err(at.unknown("section")),
        }
    }

    fn symbol_index(&self, at: At<'t>) -> Result<u32, TextError> {
        if let Some(index) = at.text.strip_prefix('#') {
            return At { text: index, ..at }.number();
        }
        match self.symbols.get(&at.name()?).map(Vec::as_slice) {
            Some(&[index]) => Ok(index as u32),
            _ => Err(at.unknown("symbol")),
        }
    }

    /// Gives the symbols the places of their names, and their table names that it lacks.
    fn name_symbols(&self, sections: &mut [Section]) -> Result<(), TextError> {
        for (index, draft) in self.drafts.iter().enumerate() {
            let Some(draft) = draft else { continue };
            let symbols = draft.items.iter().filter_map(|(offset, item)| match item {
                Item::Symbol(symbol) => Some((*offset as usize, symbol)),
                _ => None,
            });
            let unnamed: Vec<_> = symbols.filter(|(_, s)| s.name_offset.is_none()).collect();
            if unnamed.is_empty() {
                continue;
            }
            let table = sections[index].link as usize;
            let names = unnamed.iter().map(|(_, symbol)| &*symbol.name);
            let offsets =
                intern(sections, table, names).ok_or_else(|| draft.at.unknown("link of"))?;
            for ((at, _), offset) in unnamed.iter().zip(offsets) {
                sections[index].data[*at..at + 4].copy_from_slice(&offset.to_le_bytes());
            }
        }
        Ok(())
    }

    fn name_sections(&self, table: usize, sections: &mut [Section]) -> Result<(), TextError> {
        let names: Vec<String> = sections.iter().map(|s| s.name.clone()).collect();
        let written = |i: usize| self.drafts[i].is_some_and(|d| d.name_offset.is_some());
        let wanted: Vec<usize> = (0..names.len()).filter(|&i| !written(i)).collect();
        let offsets = intern(sections, table, wanted.iter().map(|&i| &*names[i]));
        for (&i, offset) in wanted.iter().zip(offsets.unwrap_or_default()) {
            sections[i].name_offset = offset;
        }
        Ok(())
    }

    fn header(&self, statements: &Statements<'t>, first: At<'t>) -> Result<Header, TextError> {
        let words = statements
            .container
            .iter()
            .find(|words| words[0].text == ".elf");
        let words = words.map_or(&[][..], Vec::as_slice);
        let at = words.first().copied().unwrap_or(first);
        let mut header = Header {
            ident: Ident {
                magic: ELFMAG,
                class: 2,
                data: 1,
                version: 1,
                os_abi: fresh::OS_ABI,
                abi_version: fresh::ABI,
                padding: [0; 7],
            },
            kind: object::elf::ET_EXEC,
            machine: EM_CUDA,
            version: fresh::VERSION,
            entry: 0,
            flags: fresh::flags(self.sm),
            segment_entry: 56,
            segment_offset: 0,
            names: 0,
        };
        for &word in words.iter().skip(1) {
            let (key, value) = word
                .pair()
                .ok_or_else(|| word.fail(TextErrorKind::Unexpected))?;
            match key {
                "type" => header.kind = value.number()?,
                "version" => header.version = value.number()?,
                "osabi" => header.ident.os_abi = value.number()?,
                "abi" => header.ident.abi_version = value.number()?,
                "flags" => header.flags = value.number()?,
                "names" => header.names = self.section_index(value)?,
                "entry" => header.entry = value.number()?,
                "segment_entry" => header.segment_entry = value.number()?,
                "segment_offset" => header.segment_offset = value.number()?,
                _ => return Err(word.fail(TextErrorKind::Unexpected)),
            }
        }
        if words.is_empty() {
            let table = self
                .sections
                .get(fresh::SECTION_NAMES)
                .and_then(|found| found.first());
            header.names = table.copied().unwrap_or(0);
        }
        match header.target().sm == self.sm {
            true => Ok(header),
            false => Err(at.fail(TextErrorKind::Architecture(header.target().sm))),
        }
    }

    fn segment(&self, words: &[At<'t>]) -> Result<Segment, TextError> {
        let kind = *words.get(1).ok_or_else(|| missing(words[0], "a kind"))?;
        let mut segment = Segment {
            kind: tabled(kind, &SEGMENT_KINDS)?,
            flags: 0,
            addresses: [0; 2],
            align: 8,
            zero_fill: 0,
            extent: Extent::Fixed {
                offset: 0,
                file_size: 0,
            },
        };
        let (mut from, mut to) = (None, None);
        let (mut offset, mut file_size) = (0, 0);
        for &word in &words[2..] {
            let (key, value) = word
                .pair()
                .ok_or_else(|| word.fail(TextErrorKind::Unexpected))?;
            match key {
                "flags" => segment.flags = value.number()?,
                "from" => from = Some(self.part(value)?),
                "to" => to = Some(self.part(value)?),
                "offset" => offset = value.number()?,
                "size" => file_size = value.number()?,
                "align" => segment.align = value.number()?,
                "vaddr" => segment.addresses[0] = value.number()?,
                "paddr" => segment.addresses[1] = value.number()?,
                "more" => segment.zero_fill = value.number()?,
                _ => return Err(word.fail(TextErrorKind::Unexpected)),
            }
        }
        segment.extent = match from {
            Some(first) => Extent::Parts { first, last: to },
            None => Extent::Fixed { offset, file_size },
        };
        Ok(segment)
    }

    fn within(&self, words: &[At<'t>]) -> Result<Shared, TextError> {
        let [_, section, owner, at] = words else {
            return Err(missing(words[0], "a section, its owner or a place"));
        };
        let shared = Shared {
            section: self.known_section(*section)?,
            owner: self.known_section(*owner)?,
            at: at.number()?,
        };
        match shared.at < crate::elf::MAX_SECTION {
            true => Ok(shared),
            false => Err(at.fail(TextErrorKind::Number)),
        }
    }

    fn placed(&self, words: &[At<'t>]) -> Result<Placed, TextError> {
        let part = *words.get(1).ok_or_else(|| missing(words[0], "a part"))?;
        let mut placed = Placed {
            part: self.part(part)?,
            gap: Gap::Aligned,
            align: 1,
        };
        for &word in &words[2..] {
            match word.pair() {
                Some(("align", value)) => placed.align = value.number()?,
                Some(("gap", value)) => {
                    let digits = value.text.as_bytes().chunks(2).map(|pair| {
                        let pair = std::str::from_utf8(pair).ok()?;
                        u8::from_str_radix(pair, 16).ok()
                    });
                    let bytes: Option<Vec<u8>> = digits.collect();
                    placed.gap =
                        Gap::Bytes(bytes.ok_or_else(|| value.fail(TextErrorKind::Number))?);
                }
                _ => return Err(word.fail(TextErrorKind::Unexpected)),
            }
        }
        Ok(placed)
    }

    fn part(&self, at: At<'t>) -> Result<Part, TextError> {
        match at.text {
            SECTION_TABLE => Ok(Part::SectionTable),
            SEGMENT_TABLE => Ok(Part::SegmentTable),
            _ => self.known_section(at).map(Part::Section),
        }
    }

    /// The index of a section that is there.
    fn known_section(&self, at: At<'t>) -> Result<usize, TextError> {
        let index = self.section_index(at)?;
        match index < self.drafts.len() {
            true => Ok(index),
            false => Err(at.unknown("section")),
        }
    }
}

fn null() -> Section {
    Section {
        name: String::new(),
        name_offset: 0,
        kind: SHT_NULL,
        flags: 0,
        address: 0,
        link: 0,
        info: 0,
        align: 0,
        entry_size: 0,
        size: 0,
        data: Vec::new(),
        offset: 0,
    }
}

/// The offsets of names in a string table, which gets those that it does not have.
fn intern<'n>(
    sections: &mut [Section],
    table: usize,
    names: impl Iterator<Item = &'n str>,
) -> Option<Vec<u32>> {
    let data = &mut sections.get_mut(table)?.data;
    let known = Strings::new(data);
    let mut more: Vec<u8> = Vec::new();
    let mut added: BTreeMap<&str, u32> = BTreeMap::new();
    let offsets = names.map(|name| {
        if let Some(offset) = known.find(name) {
            return offset;
        }
        *added.entry(name).or_insert_with(|| {
            let offset = data.len() + more.len();
            more.extend(name.as_bytes());
            more.push(0);
            offset as u32
        })
    });
    let offsets = offsets.collect();
    data.extend(more);
    Some(offsets)
}
