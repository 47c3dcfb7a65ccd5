//! The statements of a text, taken apart: drafts of sections, whose names are resolved later.

use std::collections::BTreeMap;

use super::code::{self, LABEL, Labels, SIZE};
use super::error::{At, Line, TextError, TextErrorKind};
use super::words::{BINDINGS, RECORD_KINDS, SECTION_KINDS, SYMBOL_KINDS};
use crate::elf::info::Attribute;

/// An entry of a table of symbols.
pub(super) const SYMBOL_BYTES: u64 = 24;

/// A piece of a section's contents.
#[derive(Debug, Clone)]
pub(super) enum Item<'t> {
    /// An instruction.
    Code(Line<'t>),
    /// Bytes as they are.
    Bytes(Vec<u8>),
    /// Words of four bytes, labels among them.
    Words(Vec<At<'t>>),
    /// A record of `.nv.info`: format, attribute, values.
    Info(u8, Attribute, Vec<At<'t>>),
    Symbol(SymbolDraft<'t>),
    /// Place, kind, symbol, addend.
    Relocation(At<'t>, u32, At<'t>, Option<i64>),
}

/// A symbol whose place is not resolved yet.
#[derive(Debug, Clone)]
pub(super) struct SymbolDraft<'t> {
    pub at: At<'t>,
    pub name: String,
    pub name_offset: Option<u32>,
    pub info: u8,
    pub other: u8,
    pub section: Option<Ref<'t>>,
    /// Value and size, or the labels that it lies between.
    pub place: Place<'t>,
}

/// A section: by the word that names it, or by its index.
#[derive(Debug, Clone, Copy)]
pub(super) enum Ref<'t> {
    Word(At<'t>),
    Index(u32),
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Place<'t> {
    Numbers(u64, u64),
    Labels(At<'t>, At<'t>),
}

/// A section whose references are not resolved yet.
#[derive(Debug, Clone)]
pub(super) struct Draft<'t> {
    /// The line that begins it.
    pub at: At<'t>,
    pub name: String,
    pub kind: u32,
    pub name_offset: Option<u32>,
    pub flags: u64,
    pub address: u64,
    pub link: Option<Ref<'t>>,
    pub info: Option<Ref<'t>>,
    pub align: u64,
    pub entry: u64,
    pub size: u64,
    pub offset: u64,
    pub items: Vec<(u64, Item<'t>)>,
    pub labels: Labels<'t>,
    /// Bytes of the items.
    pub length: u64,
}

impl<'t> Draft<'t> {
    pub(super) fn new(at: At<'t>, name: String, kind: u32) -> Draft<'t> {
        Draft {
            at,
            name,
            kind,
            name_offset: None,
            flags: 0,
            address: 0,
            link: None,
            info: None,
            align: 1,
            entry: 0,
            size: 0,
            offset: 0,
            items: Vec::new(),
            labels: Labels::new(),
            length: 0,
        }
    }

    pub(super) fn push(&mut self, item: Item<'t>) {
        let length = match &item {
            Item::Code(_) => SIZE,
            Item::Bytes(bytes) => bytes.len() as u64,
            Item::Words(words) => words.len() as u64 * 4,
            Item::Info(format, _, values) => {
                4 + match format {
                    &crate::elf::info::FORMAT_SIZED => values.len() as u64 * 4,
                    _ => 0,
                }
            }
            Item::Symbol(_) => SYMBOL_BYTES,
            Item::Relocation(.., None) => 16,
            Item::Relocation(.., Some(_)) => 24,
        };
        self.items.push((self.length, item));
        self.length += length;
    }

    /// The name of the function whose code it is.
    pub(super) fn function(&self) -> &str {
        self.name.strip_prefix(".text.").unwrap_or(&self.name)
    }

    fn label(&mut self, line: Line<'t>, label: &'t str) -> Result<(), TextError> {
        match self.labels.insert(label, self.length) {
            None => Ok(()),
            Some(_) => Err(line.fail(
                label,
                TextErrorKind::Twice {
                    what: "label",
                    name: label.to_owned(),
                },
            )),
        }
    }
}

/// What a function states beside its code, by the words of its directives.
#[derive(Debug, Clone)]
pub(super) struct FunctionDraft<'t> {
    pub at: At<'t>,
    /// Index among the sections.
    pub section: usize,
    pub note: &'t str,
    pub facts: BTreeMap<&'t str, Vec<At<'t>>>,
    /// Local functions behind its start: names and offsets.
    pub inner: Vec<(&'t str, u64)>,
    /// Records for `.nv.info.NAME`.
    pub records: Vec<Item<'t>>,
}

/// A text taken apart.
#[derive(Debug, Default)]
pub(super) struct Statements<'t> {
    pub sm: Option<u32>,
    /// `.elf`, `.segment`, `.within` and `.place` lines, in their order.
    pub container: Vec<Vec<At<'t>>>,
    pub sections: Vec<Draft<'t>>,
    pub functions: Vec<FunctionDraft<'t>>,
    pub tail: Vec<u8>,
}

/// The directives of a function: how many values each wants.
pub(super) const FACTS: [(&str, usize); 6] = [
    (".registers", 1),
    (".local", 1),
    (".shared", 1),
    (".parameters", 2),
    (".reqntid", 3),
    (".maxntid", 3),
];

/// Where contents go.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Open {
    Nothing,
    Section,
    Function,
    Tail,
}

impl<'t> Statements<'t> {
    /// Does the text state its container?
    pub(super) fn is_whole(&self) -> bool {
        self.container.iter().any(|words| words[0].text == ".elf")
    }

    pub(super) fn read(text: &'t str) -> Result<Statements<'t>, TextError> {
        let mut found = Statements::default();
        let mut open = Open::Nothing;
        for (number, text) in (1..).zip(text.lines()) {
            let line = Line { number, text };
            let trimmed = text.trim();
            if trimmed.is_empty() || trimmed.starts_with("//") {
                continue;
            }
            if code::is_code(trimmed) {
                found.contents(line, open)?.push(Item::Code(line));
            } else if let Some(label) = trimmed.strip_suffix(':') {
                found.label(line, label, open)?;
            } else {
                open = found.statement(line, open)?;
            }
        }
        Ok(found)
    }

    fn contents(&mut self, line: Line<'t>, open: Open) -> Result<&mut Draft<'t>, TextError> {
        let outside = || line.fail(line.text.trim(), TextErrorKind::Outside);
        let draft = self.sections.last_mut();
        draft
            .filter(|_| matches!(open, Open::Section | Open::Function))
            .ok_or_else(outside)
    }

    /// A place in the code, or the name of a function in it.
    fn label(&mut self, line: Line<'t>, label: &'t str, open: Open) -> Result<(), TextError> {
        let draft = self.contents(line, open)?;
        draft.label(line, label)?;
        let offset = draft.length;
        if !label.starts_with(LABEL) {
            let unexpected = || line.fail(label, TextErrorKind::Unexpected);
            let function = self.functions.last_mut().filter(|_| open == Open::Function);
            function.ok_or_else(unexpected)?.inner.push((label, offset));
        }
        Ok(())
    }

    fn statement(&mut self, line: Line<'t>, open: Open) -> Result<Open, TextError> {
        let words = line.words()?;
        let (&first, rest) = words
            .split_first()
            .ok_or_else(|| line.fail(line.text, TextErrorKind::Statement))?;
        match first.text {
            ".sm" => {
                let sm = rest
                    .first()
                    .ok_or_else(|| missing(first, "an architecture"))?;
                self.sm = Some(sm.number()?);
            }
            ".elf" | ".segment" | ".within" | ".place" => self.container.push(words),
            ".section" => {
                let draft = section(first, rest)?;
                self.sections.push(draft);
                return Ok(Open::Section);
            }
            ".function" => {
                let name = *rest.first().ok_or_else(|| missing(first, "a name"))?;
                let note = line.text.split_once("// ").map_or("", |(_, note)| note);
                let name = format!(".text.{}", name.name()?);
                self.functions.push(FunctionDraft {
                    at: rest[0],
                    section: self.sections.len(),
                    note: note.trim_end(),
                    facts: BTreeMap::new(),
                    inner: Vec::new(),
                    records: Vec::new(),
                });
                let kind = object::elf::SHT_PROGBITS;
                self.sections.push(Draft::new(rest[0], name, kind));
                return Ok(Open::Function);
            }
            ".tail" => return Ok(Open::Tail),
            fact if open == Open::Function && FACTS.iter().any(|known| known.0 == fact) => {
                self.fact(first, rest)?;
            }
            ".info" if open == Open::Function => {
                let record = record(first, rest)?;
                let function = self.functions.last_mut();
                function
                    .into_iter()
                    .for_each(|f| f.records.push(record.clone()));
            }
            _ => {
                let item = item(first, rest)?;
                match (open, item) {
                    (Open::Tail, Item::Words(words)) => {
                        for word in words {
                            self.tail.extend(word.number::<u32>()?.to_le_bytes());
                        }
                    }
                    (Open::Tail, Item::Bytes(bytes)) => self.tail.extend(bytes),
                    (_, item) => self.contents(line, open)?.push(item),
                }
            }
        }
        Ok(open)
    }

    fn fact(&mut self, first: At<'t>, rest: &[At<'t>]) -> Result<(), TextError> {
        let wanted = FACTS.iter().find(|known| known.0 == first.text);
        match rest.get(wanted.map_or(0, |known| known.1)) {
            Some(more) => return Err(more.fail(TextErrorKind::Unexpected)),
            None if rest.len() < wanted.map_or(0, |known| known.1) => {
                return Err(missing(first, "a number"));
            }
            None => {}
        }
        let function = self.functions.last_mut();
        let old = function.and_then(|f| f.facts.insert(first.text, rest.to_vec()));
        match old {
            None => Ok(()),
            Some(_) => Err(first.fail(TextErrorKind::Unexpected)),
        }
    }
}

pub(super) fn missing(at: At<'_>, what: &'static str) -> TextError {
    at.fail(TextErrorKind::Missing(what))
}

/// The number that a word names in a table, or is.
pub(super) fn tabled<N: TryFrom<i128> + TryFrom<u64>>(
    at: At<'_>,
    table: &[(&str, u64)],
) -> Result<N, TextError> {
    match table.iter().find(|row| row.0 == at.text) {
        Some(row) => N::try_from(row.1).map_err(|_| at.fail(TextErrorKind::Number)),
        None => at.number(),
    }
}

fn section<'t>(first: At<'t>, rest: &[At<'t>]) -> Result<Draft<'t>, TextError> {
    let [name, kind, attributes @ ..] = rest else {
        return Err(missing(first, "a name or a kind"));
    };
    let mut draft = Draft::new(*name, name.name()?, tabled(*kind, &SECTION_KINDS)?);
    for &word in attributes {
        let (key, value) = word
            .pair()
            .ok_or_else(|| word.fail(TextErrorKind::Unexpected))?;
        match key {
            "name" => draft.name_offset = Some(value.number()?),
            "flags" => draft.flags = value.number()?,
            "address" => draft.address = value.number()?,
            "link" => draft.link = Some(Ref::Word(value)),
            "info" => draft.info = Some(Ref::Word(value)),
            "align" => draft.align = value.number()?,
            "entry" => draft.entry = value.number()?,
            "size" => draft.size = value.number()?,
            "offset" => draft.offset = value.number()?,
            _ => return Err(word.fail(TextErrorKind::Unexpected)),
        }
    }
    Ok(draft)
}

fn item<'t>(first: At<'t>, rest: &[At<'t>]) -> Result<Item<'t>, TextError> {
    Ok(match first.text {
        ".word" => Item::Words(rest.to_vec()),
        ".byte" => {
            let bytes = rest.iter().map(|byte| byte.number::<u8>());
            Item::Bytes(bytes.collect::<Result<_, _>>()?)
        }
        ".zero" => {
            const LIMIT: usize = 1 << 28;
            let size = *rest
                .first()
                .ok_or_else(|| missing(first, "a number of bytes"))?;
            let bytes: usize = size.number()?;
            match bytes <= LIMIT {
                true => Item::Bytes(vec![0; bytes]),
                false => return Err(size.fail(TextErrorKind::Number)),
            }
        }
        ".string" => {
            let string = rest
                .first()
                .ok_or_else(|| missing(first, "a string"))?
                .name()?;
            let mut bytes = string.into_bytes();
            bytes.push(0);
            Item::Bytes(bytes)
        }
        ".info" => record(first, rest)?,
        ".symbol" => symbol(first, rest)?,
        ".reloc" => {
            let [place, kind, symbol, addend @ ..] = rest else {
                return Err(missing(first, "a place, a kind or a symbol"));
            };
            let addend = addend.first().map(|addend| addend.number()).transpose()?;
            Item::Relocation(*place, kind.number()?, *symbol, addend)
        }
        _ => return Err(first.fail(TextErrorKind::Statement)),
    })
}

fn record<'t>(first: At<'t>, rest: &[At<'t>]) -> Result<Item<'t>, TextError> {
    let [format, attribute, values @ ..] = rest else {
        return Err(missing(first, "a format or an attribute"));
    };
    let attribute = match Attribute::named(attribute.text) {
        Some(known) => known,
        None => Attribute(
            attribute
                .number()
                .map_err(|_| attribute.unknown("attribute"))?,
        ),
    };
    if format.text == "bytes" {
        let bytes = values.iter().map(|byte| byte.number::<u8>());
        let bytes: Vec<u8> = bytes.collect::<Result<_, _>>()?;
        let size = u16::try_from(bytes.len()).map_err(|_| first.fail(TextErrorKind::Number))?;
        let mut all = vec![crate::elf::info::FORMAT_SIZED, attribute.0];
        all.extend(size.to_le_bytes());
        all.extend(bytes);
        return Ok(Item::Bytes(all));
    }
    let known = RECORD_KINDS.iter().find(|known| known.0 == format.text);
    let format = match known {
        Some(known) => known.1,
        None => format.number()?,
    };
    Ok(Item::Info(format, attribute, values.to_vec()))
}

fn symbol<'t>(first: At<'t>, rest: &[At<'t>]) -> Result<Item<'t>, TextError> {
    let [name, kind, binding, attributes @ ..] = rest else {
        return Err(missing(first, "a name, a kind or a binding"));
    };
    let nibble = |at: At<'t>, table: &[(&str, u64)]| {
        let value: u8 = tabled(at, table)?;
        match value < 16 {
            true => Ok(value),
            false => Err(at.fail(TextErrorKind::Number)),
        }
    };
    let mut draft = SymbolDraft {
        at: *name,
        name: name.name()?,
        name_offset: None,
        info: nibble(*kind, &SYMBOL_KINDS)? | nibble(*binding, &BINDINGS)? << 4,
        other: 0,
        section: None,
        place: Place::Numbers(0, 0),
    };
    let (mut value, mut size) = (0, 0);
    let (mut from, mut to) = (None, None);
    for &word in attributes {
        let (key, given) = word
            .pair()
            .ok_or_else(|| word.fail(TextErrorKind::Unexpected))?;
        match key {
            "name" => draft.name_offset = Some(given.number()?),
            "other" => draft.other = given.number()?,
            "in" => draft.section = Some(Ref::Word(given)),
            "value" => value = given.number()?,
            "size" => size = given.number()?,
            "from" => from = Some(given),
            "to" => to = Some(given),
            _ => return Err(word.fail(TextErrorKind::Unexpected)),
        }
    }
    draft.place = match (from, to) {
        (Some(from), Some(to)) => Place::Labels(from, to),
        (None, None) => Place::Numbers(value, size),
        _ => return Err(missing(first, "from= or to=")),
    };
    Ok(Item::Symbol(draft))
}
