//! The tables of roles and their text form.
//!
//! ```text
//! opcode 0x981 LDG @P key 72,73-75
//!   0x9 R16^1 R24v2 U32v2 P81v  1234
//! ```
//!
//! An opcode (bits 0 to 11) with its name, the file of its guard, and the bits that decide about
//! its operands, lowest first; then for each value of those bits the operands: file, lowest bit of
//! the field (`~` before it: the field holds the number inverted), `^` (written) or `v` (read), number of registers; at the end the number of corpus
//! instructions that confirmed the row.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::OnceLock;

use warpwright_target::machine_code;

use super::{File, Role, Roles, Span};
use crate::inst::Instruction;

/// One register operand: where its number stands and how many registers it names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Slot {
    /// The lowest bit of the field.
    pub bit: u8,
    /// Its file.
    pub file: File,
    /// Read or written.
    pub role: Role,
    /// Number of registers.
    pub count: u16,
    /// Does the field hold the number inverted? Written `~UP87v1`.
    pub complement: bool,
}

impl From<Span> for Slot {
    /// The slot that an operand was read from, but for whether it holds the number inverted.
    fn from(span: Span) -> Slot {
        Slot {
            bit: span.bit,
            file: span.file,
            role: span.role,
            count: span.count,
            complement: false,
        }
    }
}

/// The operands under one value of the key bits.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Row {
    /// The operands, in the order of their bits.
    pub slots: Vec<Slot>,
    /// Corpus instructions that confirmed it.
    pub confirmed: u64,
}

/// One opcode.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Entry {
    /// Mnemonic without modifiers.
    pub name: String,
    /// The file of its guard, or `None` if it takes none.
    pub guard: Option<File>,
    /// The bits that decide about the operands, ascending.
    pub key: Vec<u8>,
    /// By the value of the key bits.
    pub rows: BTreeMap<u32, Row>,
}

/// The roles of one architecture, by opcode.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Table {
    entries: BTreeMap<u16, Entry>,
    /// Bits in a field that names a uniform register.
    uniform_bits: u32,
}

/// A field of an instruction: its lowest bit and its width.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field(pub u32, pub u32);

impl Field {
    /// The field's value in `bits`.
    pub fn get(self, bits: u128) -> u16 {
        ((bits >> self.0) & ((1 << self.1) - 1)) as u16
    }

    /// `bits` with the field set to `value`.
    pub fn set(self, bits: u128, value: u16) -> u128 {
        let mask = ((1u128 << self.1) - 1) << self.0;
        bits & !mask | (u128::from(value) << self.0) & mask
    }
}

/// The opcode: operation and operand form.
pub const OPCODE: Field = Field(0, 12);
const GUARD: Field = Field(12, 3);

/// The guard of an instruction that is always executed: PT, not negated.
pub const NO_GUARD: u16 = 7;

/// A line of a table that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("table of roles, line {line}: {reason}")]
pub struct ParseError {
    /// From 1.
    pub line: usize,
    /// What is wrong.
    pub reason: &'static str,
}

impl Entry {
    /// The value of the key bits.
    pub fn key_of(&self, bits: u128) -> u32 {
        let bit = |at: u8| ((bits >> at) & 1) as u32;
        let pairs = self.key.iter().enumerate();
        pairs.fold(0, |key, (place, &at)| key | bit(at) << place)
    }
}

impl Table {
    /// An empty table for architecture `sm`.
    pub fn new(sm: u32) -> Table {
        Table {
            entries: BTreeMap::new(),
            uniform_bits: machine_code(sm).uniform_bits.into(),
        }
    }

    /// The table of architecture `sm`, if there is one.
    pub fn for_sm(sm: u32) -> Option<&'static Table> {
        static TABLES: [OnceLock<Option<Table>>; TEXTS.len()] = [const { OnceLock::new() }; _];
        let place = TEXTS.iter().position(|&(known, _)| known == sm)?;
        let control = match machine_code(sm).names_code {
            true => "",
            false => CONTROL_TO_SM_89,
        };
        let read = || {
            let mut table = Table::read(sm, &[TEXTS[place].1]).ok()?;
            // By hand is what cannot be mined: a row that was all the same counts nothing.
            let by_hand = Table::read(sm, &[CONTROL, control]).ok()?.verified();
            table.entries.extend(by_hand.entries);
            table.add(Table::read(sm, &[OURS]).ok()?.verified());
            Some(table)
        };
        TABLES[place].get_or_init(read).as_ref()
    }

    /// Reads tables one after the other; later ones replace the opcodes of earlier ones.
    ///
    /// # Errors
    /// The first line that is not of the form above.
    pub fn read(sm: u32, texts: &[&str]) -> Result<Table, ParseError> {
        let mut table = Table::new(sm);
        for text in texts {
            let mut current = None;
            for (index, line) in text.lines().enumerate() {
                let line = line.split('#').next().unwrap_or_default().trim();
                let done = match line.strip_prefix("opcode ") {
                    Some(head) => parse_head(head).map(|(opcode, entry)| {
                        table.entries.insert(opcode, entry);
                        current = Some(opcode);
                    }),
                    None if line.is_empty() => Ok(()),
                    None => parse_row(line).and_then(|(key, row)| {
                        let entry = current.and_then(|opcode| table.entries.get_mut(&opcode));
                        let entry = entry.ok_or("an operand row before any opcode")?;
                        entry.rows.insert(key, row);
                        Ok(())
                    }),
                };
                done.map_err(|reason| ParseError {
                    line: index + 1,
                    reason,
                })?;
            }
        }
        Ok(table)
    }

    /// A table that was not mined: each row of it was looked at.
    fn verified(mut self) -> Table {
        let rows = self
            .entries
            .values_mut()
            .flat_map(|entry| entry.rows.values_mut());
        rows.for_each(|row| row.confirmed = u64::MAX);
        self
    }

    /// Adds what `other` knows more: opcodes, and rows that are told from those known by further key bits
    /// above the known ones. What contradicts is left out.
    fn add(&mut self, other: Table) {
        for (opcode, more) in other.entries {
            let entry = self.entries.entry(opcode).or_insert_with(|| Entry {
                rows: BTreeMap::new(),
                ..more.clone()
            });
            if more.key.starts_with(&entry.key) {
                entry.key = more.key;
                for (key, row) in more.rows {
                    entry.rows.entry(key).or_insert(row);
                }
            }
        }
    }

    /// All opcodes.
    pub fn entries(&self) -> &BTreeMap<u16, Entry> {
        &self.entries
    }

    /// Adds or replaces an opcode.
    pub fn insert(&mut self, opcode: u16, entry: Entry) {
        self.entries.insert(opcode, entry);
    }

    /// What `inst` reads and writes, or `None` if its opcode or key bits are not in the table.
    pub fn roles(&self, inst: Instruction) -> Option<Roles> {
        self.roles_by(self.entries.get(&OPCODE.get(inst.bits()))?, inst)
    }

    /// The same by an entry for the opcode that need not be in the table.
    pub fn roles_by(&self, entry: &Entry, inst: Instruction) -> Option<Roles> {
        let bits = inst.bits();
        let row = entry.rows.get(&entry.key_of(bits))?;
        let operands = row.slots.iter().filter_map(|slot| self.span(*slot, bits));
        let guard = entry.guard.map(|file| Slot {
            bit: GUARD.0 as u8,
            file,
            role: Role::Use,
            count: 1,
            complement: false,
        });
        let mut roles: Roles = match guard {
            Some(slot) => operands.chain(self.span(slot, bits)).collect(),
            None if GUARD.get(bits) == NO_GUARD => operands.collect(),
            None => return None,
        };
        roles.is_rare = row.confirmed < Roles::FEW;
        Some(roles)
    }

    /// The field of a slot in this architecture.
    pub fn field(&self, slot: Slot) -> Field {
        let width = match slot.file {
            File::Gpr => 8,
            File::Pred | File::UniformPred => 3,
            File::Uniform => self.uniform_bits,
            File::Barrier => 4,
        };
        Field(u32::from(slot.bit), width)
    }

    /// The number of the first register that a slot names in `bits`.
    pub fn number(&self, slot: Slot, bits: u128) -> u16 {
        let field = self.field(slot);
        let value = field.get(bits);
        match slot.complement {
            true => (1 << field.1) - 1 - value,
            false => value,
        }
    }

    /// The registers that a slot names, unless it names the zero register or the true predicate.
    fn span(&self, slot: Slot, bits: u128) -> Option<Span> {
        let field = self.field(slot);
        let first = self.number(slot, bits);
        let nothing = slot.file != File::Barrier && first == (1 << field.1) - 1;
        (!nothing).then_some(Span {
            role: slot.role,
            file: slot.file,
            first,
            count: slot.count,
            bit: slot.bit,
        })
    }
}

fn number(text: &str) -> Result<u32, &'static str> {
    let parsed = match text.strip_prefix("0x") {
        Some(hex) => u32::from_str_radix(hex, 16),
        None => text.parse(),
    };
    parsed.map_err(|_| "not a number")
}

/// `0x981 LDG @P key 72,73-75`
fn parse_head(head: &str) -> Result<(u16, Entry), &'static str> {
    let mut words = head.split_whitespace();
    let opcode = number(words.next().ok_or("no opcode")?)?;
    let opcode = u16::try_from(opcode).map_err(|_| "the opcode has more than 12 bits")?;
    let mut entry = Entry {
        name: words.next().ok_or("no name")?.to_owned(),
        ..Entry::default()
    };
    while let Some(word) = words.next() {
        match word {
            "@P" => entry.guard = Some(File::Pred),
            "@UP" => entry.guard = Some(File::UniformPred),
            "key" => entry.key = parse_key(words.next().ok_or("no key bits")?)?,
            _ => return Err("an unknown word after the name"),
        }
    }
    Ok((opcode, entry))
}

fn parse_key(text: &str) -> Result<Vec<u8>, &'static str> {
    let mut bits = Vec::new();
    for range in text.split(',') {
        let (low, high) = range.split_once('-').unwrap_or((range, range));
        let (low, high) = (number(low)?, number(high)?);
        if low > high || high >= 105 {
            return Err("key bits are below 105 and ascend");
        }
        bits.extend((low..=high).map(|bit| bit as u8));
    }
    Ok(bits)
}

/// `0x9 R16^1 R24v2 1234`
fn parse_row(line: &str) -> Result<(u32, Row), &'static str> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [key, slots @ .., confirmed] = &words[..] else {
        return Err("a row has at least a key and a count");
    };
    let slots: Result<_, _> = slots.iter().map(|slot| slot.parse()).collect();
    let row = Row {
        slots: slots?,
        confirmed: u64::from(number(confirmed)?),
    };
    Ok((number(key)?, row))
}

const FILES: [(File, &str); 5] = [
    (File::Gpr, "R"),
    (File::Pred, "P"),
    (File::UniformPred, "UP"),
    (File::Uniform, "UR"),
    (File::Barrier, "B"),
];

impl FromStr for Slot {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Slot, &'static str> {
        let inverted = text.strip_prefix('~');
        let (text, complement) = (inverted.unwrap_or(text), inverted.is_some());
        let digits = text.find(|c: char| c.is_ascii_digit());
        let (file, rest) = text.split_at(digits.ok_or("an operand without a bit")?);
        let file = FILES.iter().find(|known| known.1 == file);
        let at = rest.find(['^', 'v']).ok_or("an operand without ^ or v")?;
        let role = match &rest[at..=at] {
            "^" => Role::Def,
            _ => Role::Use,
        };
        let bit = number(&rest[..at])?;
        Ok(Slot {
            bit: u8::try_from(bit)
                .ok()
                .filter(|&bit| bit < 105)
                .ok_or("no such bit")?,
            file: file.ok_or("an unknown register file")?.0,
            role,
            count: u16::try_from(number(&rest[at + 1..])?).map_err(|_| "too many registers")?,
            complement,
        })
    }
}

impl fmt::Display for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = FILES.iter().find(|known| known.0 == self.file);
        let file = file.map_or("?", |known| known.1);
        let role = if self.role == Role::Def { '^' } else { 'v' };
        let sign = if self.complement { "~" } else { "" };
        write!(f, "{sign}{file}{}{role}{}", self.bit, self.count)
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (opcode, entry) in &self.entries {
            write!(f, "opcode {opcode:#05x} {}", entry.name)?;
            match entry.guard {
                Some(File::UniformPred) => write!(f, " @UP")?,
                Some(_) => write!(f, " @P")?,
                None => {}
            }
            if !entry.key.is_empty() {
                let bits: Vec<String> = entry.key.iter().map(u8::to_string).collect();
                write!(f, " key {}", bits.join(","))?;
            }
            writeln!(f)?;
            for (key, row) in &entry.rows {
                write!(f, "  {key:#x}")?;
                for slot in &row.slots {
                    write!(f, " {slot}")?;
                }
                writeln!(f, " {}", row.confirmed)?;
            }
        }
        Ok(())
    }
}

/// Instructions that transfer control: their roles are read off real code, because perturbing them
/// would change the flow that nvdisasm analyses.
pub const CONTROL: &str = include_str!("../../tables/roles/control.txt");
/// Forms that only our own code has, for all architectures.
pub const OURS: &str = include_str!("../../tables/roles/ours.txt");
const CONTROL_TO_SM_89: &str = include_str!("../../tables/roles/control_to_sm_89.txt");

const TEXTS: [(u32, &str); 7] = [
    (75, include_str!("../../tables/roles/sm_75.txt")),
    (80, include_str!("../../tables/roles/sm_80.txt")),
    (86, include_str!("../../tables/roles/sm_86.txt")),
    (89, include_str!("../../tables/roles/sm_89.txt")),
    (90, include_str!("../../tables/roles/sm_90.txt")),
    (100, include_str!("../../tables/roles/sm_100.txt")),
    (120, include_str!("../../tables/roles/sm_120.txt")),
];

/// Does an instruction whose roles were seen rarely have the general registers that all its siblings have, whose
/// roles were seen often? Or none, as all of the uniform datapath? What was seen rarely are its other operands
/// then, which stay as they are.
pub fn is_usual(word: Instruction) -> bool {
    let Some(table) = Table::for_sm(word.sm()) else {
        return false;
    };
    let Some(entry) = table.entries().get(&OPCODE.get(word.bits())) else {
        return false;
    };
    let general = |row: &Row| -> Vec<(u8, Role, u16)> {
        let slots = row.slots.iter().filter(|slot| slot.file == File::Gpr);
        slots
            .map(|slot| (slot.bit, slot.role, slot.count))
            .collect()
    };
    let Some(own) = entry.rows.get(&entry.key_of(word.bits())).map(general) else {
        return false;
    };
    let is_uniform =
        entry.name.starts_with('U') && entry.rows.values().all(|row| general(row).is_empty());
    let mut usual = entry
        .rows
        .values()
        .filter(|row| row.confirmed >= Roles::FEW);
    let has_siblings = usual.clone().next().is_some();
    is_uniform || has_siblings && usual.all(|row| general(row) == own)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "opcode 0x981 LDG @P key 72,73,74,75\n  0x9 R16^1 R24v2 UR32v2 P81v1 12\n  0xb R16^2 R24v2 0\n";

    #[test]
    fn text_and_table_agree() {
        let table = Table::read(90, &[TEXT]).expect("the text is a table");
        assert_eq!(table.to_string(), TEXT);
        let bits = 0x981 | 0x1 << 12 | 4 << 16 | 8 << 24 | 6 << 32 | 7 << 81 | 9u128 << 72;
        let roles = table
            .roles(Instruction::new(90, bits))
            .expect("in the table");
        let all: Vec<_> = roles
            .spans()
            .iter()
            .map(|s| (s.role, s.file, s.first, s.count))
            .collect();
        assert_eq!(
            all,
            [
                (Role::Def, File::Gpr, 4, 1),
                (Role::Use, File::Gpr, 8, 2),
                (Role::Use, File::Uniform, 6, 2),
                (Role::Use, File::Pred, 1, 1),
            ]
        );
    }

    #[test]
    fn what_the_table_does_not_know_has_no_roles() {
        let table = Table::read(90, &[TEXT]).expect("the text is a table");
        assert_eq!(table.roles(Instruction::new(90, 0x981 | 7 << 12)), None);
        assert_eq!(table.roles(Instruction::new(90, 0x123 | 7 << 12)), None);
    }

    #[test]
    fn broken_tables_are_errors() {
        for text in [
            "  0x1 R16^1 0",
            "opcode 0x1",
            "opcode 0x1 X\n 0x0 R16 1",
            "opcode 0x1 X key 200",
        ] {
            assert!(Table::read(90, &[text]).is_err(), "{text}");
        }
    }

    #[test]
    fn every_table_in_the_binary_reads() {
        for (sm, text) in TEXTS {
            assert_eq!(Table::read(sm, &[CONTROL, text]).err(), None, "sm_{sm}");
        }
    }
}
