//! A form: one way in which an opcode's bits and text belong together.
//!
//! An opcode (bits 0 to 11) has several forms when its text changes shape with the bits: an optional
//! operand, an alias such as IMAD.MOV, a uniform register in place of a constant. A form says which
//! bits are fixed, which fields there are, and how the text is put together from them.

use super::float::Float;

/// Bits 0 to 104 belong to the operation, the rest to the control field.
pub const OPERATION: u128 = (1 << 105) - 1;
/// The flag of the first source in the control field.
const REUSE: u8 = 122;
/// The guard: predicate in bits 12 to 14, its negation in bit 15.
pub const GUARD: u128 = 0xf << 12;

/// A run of bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Segment {
    /// Lowest bit.
    pub lo: u8,
    /// Number of bits.
    pub width: u8,
}

/// Bits that hold one value: segments from the least significant on.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Field(pub Vec<Segment>);

impl Field {
    /// The field over `bits`, which are listed from the least significant on.
    pub fn from_bits(bits: &[u8]) -> Self {
        let mut segments: Vec<Segment> = Vec::new();
        for &bit in bits {
            match segments.last_mut() {
                Some(s) if s.lo + s.width == bit => s.width += 1,
                _ => segments.push(Segment { lo: bit, width: 1 }),
            }
        }
        Field(segments)
    }

    /// Number of bits.
    pub fn width(&self) -> u32 {
        self.0.iter().map(|s| u32::from(s.width)).sum()
    }

    /// The bits that it covers.
    pub fn mask(&self) -> u128 {
        self.deposit(u64::MAX)
    }

    /// Its value in `bits`.
    pub fn extract(&self, bits: u128) -> u64 {
        let mut value = 0;
        let mut at = 0;
        for s in &self.0 {
            value |= ((bits >> s.lo) as u64 & ones(s.width)) << at;
            at += s.width;
        }
        value
    }

    /// `value` at its place, zeros elsewhere.
    pub fn deposit(&self, value: u64) -> u128 {
        let mut bits = 0;
        let mut rest = value;
        for s in &self.0 {
            bits |= u128::from(rest & ones(s.width)) << s.lo;
            rest = rest.checked_shr(u32::from(s.width)).unwrap_or(0);
        }
        bits
    }
}

pub(super) fn ones(width: u8) -> u64 {
    u64::MAX.checked_shr(64 - u32::from(width)).unwrap_or(0)
}

/// Register files and their names in text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum File {
    /// General registers `R0` to `R254`, `RZ`.
    General,
    /// Uniform registers `UR0` on, `URZ`.
    Uniform,
    /// Predicates `P0` to `P6`, `PT`.
    Predicate,
    /// Uniform predicates `UP0` to `UP6`, `UPT`.
    UniformPredicate,
    /// Convergence barriers `B0` on.
    Barrier,
    /// Scoreboards `SB0` on, as DEPBAR names them.
    Scoreboard,
}

impl File {
    /// All files, longer names first where one begins another.
    pub const ALL: [File; 6] = [
        File::Uniform,
        File::UniformPredicate,
        File::Scoreboard,
        File::General,
        File::Predicate,
        File::Barrier,
    ];

    /// What the name of a register begins with.
    pub fn prefix(self) -> &'static str {
        match self {
            File::General => "R",
            File::Uniform => "UR",
            File::Predicate => "P",
            File::UniformPredicate => "UP",
            File::Barrier => "B",
            File::Scoreboard => "SB",
        }
    }

    /// The name of the register that is always zero or true, which has all bits set.
    pub fn constant(self) -> Option<&'static str> {
        match self {
            File::General => Some("RZ"),
            File::Uniform => Some("URZ"),
            File::Predicate => Some("PT"),
            File::UniformPredicate => Some("UPT"),
            File::Barrier | File::Scoreboard => None,
        }
    }
}

/// How a field's value is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A register's name.
    Register(File),
    /// A register whose number the field holds inverted (the scale predicate of wgmma).
    Complement(File),
    /// The register behind the one that the field names (the descriptor of a tensor core's instruction).
    Next(File),
    /// Hexadecimal, without sign.
    Unsigned,
    /// Hexadecimal, two's complement.
    Signed,
    /// A signed distance in bytes from the next instruction, written as an address.
    Relative,
    /// A floating-point number.
    Float(Float),
}

/// A number or a register in the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Number {
    /// Index of its field.
    pub field: usize,
    /// How it is written.
    pub kind: Kind,
    /// What the encoded value is multiplied with, as a shift.
    pub scale: u8,
    /// A summand of an address: with a plus sign, and left out when zero.
    pub term: bool,
}

/// One of several texts, by the value of a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// Index of its field.
    pub field: usize,
    /// Text by value; `None` where nvdisasm knows none.
    pub texts: Vec<Option<String>>,
}

/// A piece of the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// The same in every instruction of the form.
    Text(String),
    /// A number or register.
    Number(Number),
    /// A modifier.
    Choice(Choice),
}

/// Which file the guard names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Guard {
    /// The guard's bits are fixed.
    None,
    /// `@P0`.
    Predicate,
    /// `@UP0`.
    Uniform,
}

/// One form of an opcode.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Form {
    /// Bits 0 to 11.
    pub opcode: u16,
    /// Corpus instances whose text this form reproduces.
    pub confirmed: u64,
    /// How the guard is written.
    pub guard: Guard,
    /// The fixed bits.
    pub value: u128,
    /// Bits that vary in the corpus without a trace in the text.
    pub hidden: u128,
    /// The fields, each bit in at most one.
    pub fields: Vec<Field>,
    /// The text from the mnemonic on.
    pub pieces: Vec<Piece>,
}

impl Form {
    /// The bits that are fixed: of the operation, those that no field, no guard and no hidden bit is.
    pub fn mask(&self) -> u128 {
        let guard = if self.guard == Guard::None { 0 } else { GUARD };
        let fields = self.fields.iter().fold(0, |m, f| m | f.mask());
        OPERATION & !(guard | fields | self.hidden)
    }

    /// The opcode's name: the text up to the first modifier or blank.
    pub fn mnemonic(&self) -> &str {
        match self.pieces.first() {
            Some(Piece::Text(text)) => text.split(['.', ' ']).next().unwrap_or(""),
            _ => "",
        }
    }

    /// Does every choice have a text for its value in `bits`?
    pub fn has_texts(&self, bits: u128) -> bool {
        self.pieces.iter().all(|piece| match piece {
            Piece::Choice(c) => {
                let value = self.fields[c.field].extract(bits);
                matches!(c.texts.get(value as usize), Some(Some(_)))
            }
            _ => true,
        })
    }

    /// The lowest bit of the field of the general register that reuse flag `slot` (0 to 3) keeps, by the text.
    pub fn kept(&self, slot: u8) -> Option<u8> {
        let lowest = |field: usize| self.fields[field].0.first().map(|segment| segment.lo);
        let mut register = None;
        for piece in &self.pieces {
            match piece {
                Piece::Text(_) => register = None,
                Piece::Number(n) => {
                    let is_general = n.kind == Kind::Register(File::General);
                    register = is_general.then_some(n.field).and_then(lowest);
                }
                Piece::Choice(c) => {
                    if lowest(c.field) == Some(REUSE + slot) {
                        return register;
                    }
                }
            }
        }
        None
    }

    /// Do two values of a field have the same text in every choice?
    pub fn same_texts(&self, field: usize, a: usize, b: usize) -> bool {
        self.pieces.iter().all(|piece| match piece {
            Piece::Choice(c) if c.field == field => {
                let text = |v: usize| c.texts.get(v).and_then(Option::as_deref);
                text(a).is_some() && text(a) == text(b)
            }
            _ => true,
        })
    }
}
