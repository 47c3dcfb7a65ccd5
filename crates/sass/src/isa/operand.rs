//! Operands as data: which registers, constants, addresses and numbers an instruction names.
//!
//! The tables give the places; which operands are read, written, or wider than one register is the
//! business of the roles.

use super::Decoded;
use super::form::{File, Form, Kind, Piece};
use super::print::signed;

/// A register in the text and the field that holds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Register {
    /// Its file.
    pub file: File,
    /// Its number; the constant register (`RZ`, `PT`) has the field's highest value.
    pub index: u32,
    /// Is it the constant register?
    pub constant: bool,
    /// Index of the field, `None` if its bits are fixed in this form.
    pub field: Option<usize>,
}

/// A number in the text and the field that holds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Immediate {
    /// The value as written, factor included; of a floating-point number the encoded bits.
    pub value: i64,
    /// How it is written.
    pub kind: Kind,
    /// Index of the field, `None` if its bits are fixed in this form.
    pub field: Option<usize>,
}

/// What an operand is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shape {
    /// A register.
    Register,
    /// A number.
    Immediate,
    /// `[R2+UR4+0x10]`, with or without a descriptor before it.
    Memory,
    /// `c[0x0][0x210]`, `c[0x3][R4+0x8]`.
    Constant,
    /// A word: a special register, a texture's dimension.
    Word,
}

/// One operand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operand {
    /// What it is made of.
    pub shape: Shape,
    /// Its text with signs and modifiers, as nvdisasm writes it.
    pub text: String,
    /// The registers that it names, in the order of the text.
    pub registers: Vec<Register>,
    /// The numbers that it names, in the order of the text.
    pub immediates: Vec<Immediate>,
}

/// The operands, in the order of the text, of an instruction at byte `address`.
pub fn operands(decoded: &Decoded, address: u64) -> Vec<Operand> {
    let Some(form) = decoded.form() else {
        return Vec::new();
    };
    let mut walk = Walk {
        address,
        bits: decoded.bits(),
        ..Walk::default()
    };
    for piece in &form.pieces {
        walk.piece(form, decoded, piece);
    }
    walk.finish()
}

#[derive(Default)]
struct Walk {
    address: u64,
    bits: u128,
    done: Vec<Operand>,
    text: String,
    registers: Vec<Register>,
    immediates: Vec<Immediate>,
    in_operands: bool,
}

impl Walk {
    fn piece(&mut self, form: &Form, decoded: &Decoded, piece: &Piece) {
        match piece {
            Piece::Text(text) => self.literal(text),
            Piece::Choice(c) => {
                let value = decoded.value(c.field).unwrap_or(0);
                if let Some(Some(text)) = c.texts.get(value as usize)
                    && self.in_operands
                {
                    self.text.push_str(text);
                }
            }
            Piece::Number(n) => {
                let raw = decoded.value(n.field).unwrap_or(0);
                let width = form.fields[n.field].width();
                let field = &form.fields[n.field];
                super::print::number(n, field, self.bits, self.address, &mut self.text);
                if let Kind::Register(file) | Kind::Complement(file) | Kind::Next(file) = n.kind {
                    let highest = super::form::ones(width as u8);
                    let index = match n.kind {
                        Kind::Complement(_) => highest - raw,
                        Kind::Next(_) => (raw + 1).min(highest),
                        _ => raw,
                    };
                    self.registers.push(Register {
                        file,
                        index: index as u32,
                        constant: index == highest && file.constant().is_some(),
                        field: Some(n.field),
                    });
                    return;
                }
                let value = match n.kind {
                    Kind::Signed | Kind::Relative => signed(raw, width as u8) << n.scale,
                    _ => (raw << n.scale) as i64,
                };
                self.immediates.push(Immediate {
                    value,
                    kind: n.kind,
                    field: Some(n.field),
                });
            }
        }
    }

    /// Fixed text: may end operands, and may name registers and numbers of its own.
    fn literal(&mut self, text: &str) {
        let mut rest = text;
        if !self.in_operands {
            let Some((_, tail)) = text.split_once(' ') else {
                return;
            };
            self.in_operands = true;
            rest = tail;
        }
        for (i, part) in rest.split(", ").enumerate() {
            if i > 0 {
                self.end();
            }
            self.words(part);
            self.text.push_str(part);
        }
    }

    fn words(&mut self, part: &str) {
        let words = part.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '-'));
        for word in words {
            let named = File::ALL.into_iter().find_map(|file| register(file, word));
            self.registers.extend(named);
            let (digits, sign) = match word.strip_prefix('-') {
                Some(digits) => (digits, -1),
                None => (word, 1),
            };
            let value = digits.strip_prefix("0x");
            if let Some(Ok(value)) = value.map(|d| i64::from_str_radix(d, 16)) {
                self.immediates.push(Immediate {
                    value: sign * value,
                    kind: Kind::Signed,
                    field: None,
                });
            }
        }
    }

    fn end(&mut self) {
        let text = std::mem::take(&mut self.text);
        let registers = std::mem::take(&mut self.registers);
        let immediates = std::mem::take(&mut self.immediates);
        let bare = text.trim_start_matches(['-', '!', '~', '|']);
        let shape = if bare.starts_with("c[") || bare.starts_with("cx[") {
            Shape::Constant
        } else if text.contains('[') {
            Shape::Memory
        } else if !registers.is_empty() {
            Shape::Register
        } else if !immediates.is_empty() {
            Shape::Immediate
        } else {
            Shape::Word
        };
        self.done.push(Operand {
            shape,
            text,
            registers,
            immediates,
        });
    }

    fn finish(mut self) -> Vec<Operand> {
        if self.in_operands {
            self.end();
        }
        self.done
    }
}

/// A register that stands in a form's fixed text.
fn register(file: File, word: &str) -> Option<Register> {
    let word = word.trim_start_matches('-');
    let constant = file.constant() == Some(word);
    let index = match constant {
        true => match file {
            File::Predicate | File::UniformPredicate => 7,
            _ => 255,
        },
        false => word.strip_prefix(file.prefix())?.parse().ok()?,
    };
    Some(Register {
        file,
        index,
        constant,
        field: None,
    })
}
