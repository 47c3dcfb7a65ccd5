//! Reads the opcode table. Its grammar stands in `crates/ptx/src/opcode/table/README.md`.

mod attributes;
mod operands;

use std::sync::LazyLock;

use smallvec::SmallVec;
use thiserror::Error;

use attributes::{apply_attribute, parse_family};
use operands::parse_operands;

use super::class::{Control, Effect, Family, Features, LatencyClass, MinTarget};
use super::form::{Form, Slot};
use super::op::Op;
use crate::types::Type;

macro_rules! files {
    ($($name:literal,)*) => { &[$(($name, include_str!(concat!("../table/", $name))),)*] };
}

/// The files of the table.
const FILES: &[(&str, &str)] = files![
    "integer.txt",
    "float.txt",
    "compare.txt",
    "move.txt",
    "async.txt",
    "texture.txt",
    "control.txt",
    "sync.txt",
    "matrix.txt",
    "wgmma.txt",
    "tcgen05.txt",
    "video.txt",
];

/// The whole table.
#[derive(Debug, Default)]
pub(crate) struct Table {
    /// All forms, in the order of the files.
    pub forms: Vec<Form>,
    /// For each base word, the indices of its forms.
    by_op: Vec<SmallVec<[u16; 8]>>,
}

/// A line of the table that cannot be read.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("{file}:{line}: {message}")]
pub(crate) struct TableError {
    file: &'static str,
    line: u32,
    message: String,
}

impl Table {
    /// The built-in table. Unreadable lines are left out: a unit test shows that there are none.
    pub fn builtin() -> &'static Table {
        static TABLE: LazyLock<Table> = LazyLock::new(|| Table::read(FILES).0);
        &TABLE
    }

    /// The forms of a base word with their indices.
    pub fn forms_of(&self, op: Op) -> impl Iterator<Item = (u16, &Form)> {
        let indices = self.by_op.get(op as usize);
        let indices = indices.into_iter().flatten().copied();
        indices.filter_map(|i| Some((i, self.forms.get(usize::from(i))?)))
    }

    fn read(files: &[(&'static str, &'static str)]) -> (Table, Vec<TableError>) {
        let mut table = Table {
            forms: Vec::new(),
            by_op: vec![SmallVec::new(); Op::ALL.len()],
        };
        let mut errors = Vec::new();
        for &(file, text) in files {
            let mut reader = Reader::default();
            for (line, text) in (1..).zip(text.lines()) {
                match reader.line(text.trim(), (file, line)) {
                    Ok(None) => {}
                    Ok(Some(form)) => table.push(form),
                    Err(message) => errors.push(TableError {
                        file,
                        line,
                        message,
                    }),
                }
            }
        }
        (table, errors)
    }

    fn push(&mut self, form: Form) {
        let index = u16::try_from(self.forms.len()).ok();
        if let (Some(index), Some(list)) = (index, self.by_op.get_mut(form.op as usize)) {
            list.push(index);
            self.forms.push(form);
        }
    }
}

/// The only modifiers in upper case.
const CACHES: [&str; 2] = ["L1", "L2"];

/// Reads one file.
#[derive(Default)]
struct Reader {
    section: Option<(Family, &'static str)>,
    defaults: &'static str,
    sets: Vec<(&'static str, SmallVec<[&'static str; 4]>)>,
}

type Message = String;

impl Reader {
    fn line(
        &mut self,
        text: &'static str,
        place: (&'static str, u32),
    ) -> Result<Option<Form>, Message> {
        if text.is_empty() || text.starts_with('#') {
            return Ok(None);
        }
        if let Some(rest) = text.strip_prefix('[') {
            let (family, heading) = rest.split_once(']').ok_or("no ] after [")?;
            self.section = Some((parse_family(family)?, heading.trim()));
            self.defaults = "";
            return Ok(None);
        }
        if let Some(rest) = text.strip_prefix("with ") {
            self.defaults = rest;
            return Ok(None);
        }
        if let Some(rest) = text.strip_prefix("set ") {
            self.set(rest)?;
            return Ok(None);
        }
        self.form(text, place).map(Some)
    }

    /// `NAME = a b c`; other sets may be named among the members.
    fn set(&mut self, text: &'static str) -> Result<(), Message> {
        let (name, members) = text.split_once('=').ok_or("no = in set")?;
        let mut all = SmallVec::new();
        for member in members.split_whitespace() {
            self.alternatives(member, &mut all)?;
        }
        self.sets.push((name.trim(), all));
        Ok(())
    }

    fn alternatives(
        &self,
        text: &'static str,
        out: &mut SmallVec<[&'static str; 4]>,
    ) -> Result<(), Message> {
        if text.is_empty() {
            return Err("empty modifier".to_owned());
        }
        // Set names are upper case.
        let upper_case = !text.chars().any(|c| c.is_ascii_lowercase() || c == ':');
        if upper_case && !CACHES.contains(&text) {
            let mut sets = self.sets.iter().rev();
            let (_, members) = sets
                .find(|(name, _)| *name == text)
                .ok_or_else(|| format!("no set {text}"))?;
            out.extend_from_slice(members);
        } else {
            out.push(text);
        }
        Ok(())
    }

    /// `pattern | operands | attributes | sample`
    fn form(&self, text: &'static str, place: (&'static str, u32)) -> Result<Form, Message> {
        let (family, section) = self.section.ok_or("no [section] before it")?;
        let mut parts = text.splitn(4, '|').map(str::trim);
        let pattern = parts.next().unwrap_or_default();
        let operands = parts.next().unwrap_or_default();
        let attributes = parts.next().unwrap_or_default();
        let sample = parts.next().filter(|s| !s.is_empty());
        let (op, slots) = self.pattern(pattern)?;
        let mut form = Form {
            op,
            slots,
            operands: parse_operands(operands)?,
            class: Some(LatencyClass::Misc),
            effect: Effect::default(),
            reads_space: None,
            writes_space: None,
            control: Control::Next,
            family,
            version: (1, 0),
            until: None,
            target: MinTarget {
                sm: 10,
                features: Features::Plain,
            },
            sample,
            section,
            pattern,
            place,
        };
        let defaults = self.defaults.split_whitespace();
        for attribute in defaults.chain(attributes.split_whitespace()) {
            apply_attribute(&mut form, attribute)
                .ok_or_else(|| format!("unknown attribute {attribute}"))?;
        }
        Ok(form)
    }

    fn pattern(&self, text: &'static str) -> Result<(Op, Vec<Slot>), Message> {
        let mut parts = text.split('.');
        let word = parts.next().unwrap_or_default();
        let op = Op::from_word(word).ok_or_else(|| format!("unknown base word {word}"))?;
        let slots = parts
            .map(|part| self.slot(part))
            .collect::<Result<_, _>>()?;
        Ok((op, slots))
    }

    /// `name`, `SET` or `{a,b,SET}`, with `?` behind it if it may be missing.
    fn slot(&self, text: &'static str) -> Result<Slot, Message> {
        let (text, optional) = match text.strip_suffix('?') {
            Some(text) => (text, true),
            None => (text, false),
        };
        let inner = text.strip_prefix('{').and_then(|t| t.strip_suffix('}'));
        let mut alternatives = SmallVec::new();
        for alternative in inner.unwrap_or(text).split(',') {
            self.alternatives(alternative, &mut alternatives)?;
        }
        let types = alternatives.iter().filter(|a| Type::parse(a).is_some());
        let types = types.count();
        if types != 0 && types != alternatives.len() {
            return Err(format!("types and other modifiers mixed in {text}"));
        }
        Ok(Slot {
            alternatives,
            optional,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_whole_table_can_be_read() {
        let (table, errors) = Table::read(FILES);
        assert_eq!(errors, []);
        assert!(table.forms.len() > 500);
    }

    #[test]
    fn lines_that_cannot_be_read() {
        let rows = [
            ("add.u32", "no [section] before it"),
            ("[nothing] Heading", "unknown family nothing"),
            ("[integer Heading", "no ] after ["),
            ("set A b c", "no = in set"),
            ("[integer] H\nfrob.u32", "unknown base word frob"),
            ("[integer] H\nadd.INT", "no set INT"),
            ("[integer] H\nadd..u32", "empty modifier"),
            (
                "[integer] H\nadd.{u32,sat}",
                "types and other modifiers mixed in {u32,sat}",
            ),
            ("[integer] H\nadd.u32 | =d:1, a:frob", "bad operand a:frob"),
            ("[integer] H\nadd.u32 | =d:1{n}", "bad operand =d:1{n}"),
            (
                "[integer] H\nadd.u32 | =d:1 | fast",
                "unknown attribute fast",
            ),
            (
                "[integer] H\nadd.u32 | =d:1 | sm=90b",
                "unknown attribute sm=90b",
            ),
            (
                "[integer] H\nadd.u32 | =d:1 | reads=frob",
                "unknown attribute reads=frob",
            ),
        ];
        for (text, want) in rows {
            let (table, errors) = Table::read(&[("x.txt", text)]);
            let found: Vec<_> = errors.iter().map(|e| e.message.as_str()).collect();
            assert_eq!(found, [want], "{text}");
            assert!(table.forms.is_empty());
        }
    }
}
