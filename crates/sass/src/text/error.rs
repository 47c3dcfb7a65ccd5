//! Why a text is no machine code, and where.

use std::fmt;

use crate::control::{ControlRange, ControlSyntax};
use crate::elf::ElfError;

/// The text does not parse.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {kind}")]
pub struct TextError {
    /// Counted from 1.
    pub line: usize,
    /// Counted from 1, in bytes.
    pub column: usize,
    /// Bytes that the error is about.
    pub length: usize,
    /// What is wrong.
    pub kind: TextErrorKind,
}

impl TextError {
    /// The bytes of `text` that the error is about.
    pub fn span(&self, text: &str) -> std::ops::Range<usize> {
        let before = text.split_inclusive('\n').take(self.line.saturating_sub(1));
        let start = before.map(str::len).sum::<usize>() + self.column - 1;
        let start = start.min(text.len());
        start..(start + self.length).min(text.len())
    }
}

/// What is wrong with a text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TextErrorKind {
    /// No `.sm` line.
    #[error("there is no .sm line")]
    NoArchitecture,
    /// An architecture without tables, or another one than the header's flags say.
    #[error("no instructions of sm_{0} are known here")]
    Architecture(u32),
    /// A line that begins like no statement.
    #[error("this is no statement")]
    Statement,
    /// Contents before the first section or function.
    #[error("this belongs into a section, and there is none yet")]
    Outside,
    /// A word is missing.
    #[error("{0} is missing")]
    Missing(&'static str),
    /// A word that does not belong here.
    #[error("this does not belong here")]
    Unexpected,
    /// The control column does not parse.
    #[error(transparent)]
    Control(#[from] ControlSyntax),
    /// A value of the control column is too large.
    #[error(transparent)]
    ControlRange(#[from] ControlRange),
    /// A `/*` without its end, or a quote without one.
    #[error("the {0} is not closed")]
    Open(&'static str),
    /// A mnemonic that the architecture does not have.
    #[error("sm_{sm} has no instruction {name}")]
    Mnemonic {
        /// The mnemonic.
        name: String,
        /// The architecture.
        sm: u32,
    },
    /// A mnemonic that is known, but not with these modifiers and operands.
    #[error("no form of {name} on sm_{sm} reads like this")]
    Operands {
        /// The mnemonic.
        name: String,
        /// The architecture.
        sm: u32,
    },
    /// No number, or one that is too large for its place.
    #[error("a number is wanted that fits its place")]
    Number,
    /// A name that is defined nowhere, or several times.
    #[error("there is no {what} {name}, or there are several")]
    Unknown {
        /// Section, symbol, label, attribute and the like.
        what: &'static str,
        /// Its name.
        name: String,
    },
    /// A name that is defined already.
    #[error("the {what} {name} is here already")]
    Twice {
        /// Section, symbol or label.
        what: &'static str,
        /// Its name.
        name: String,
    },
    /// The parts do not make a container.
    #[error(transparent)]
    Container(#[from] ElfError),
}

/// A line of the text.
#[derive(Debug, Clone, Copy)]
pub(super) struct Line<'t> {
    /// Counted from 1.
    pub number: usize,
    pub text: &'t str,
}

impl<'t> Line<'t> {
    /// An error about `part`, which is a part of the line.
    pub(super) fn fail(self, part: &str, kind: impl Into<TextErrorKind>) -> TextError {
        let column = (part.as_ptr() as usize).wrapping_sub(self.text.as_ptr() as usize);
        let (column, length) = match column + part.len() <= self.text.len() {
            true => (column, part.len()),
            false => (0, self.text.len()),
        };
        TextError {
            line: self.number,
            column: column + 1,
            length,
            kind: kind.into(),
        }
    }

    /// The words of a statement; what stands in quotes is one word, or a part of one.
    pub(super) fn words(self) -> Result<Vec<At<'t>>, TextError> {
        let mut words = Vec::new();
        let mut rest = self.text.trim_start();
        while !rest.is_empty() && !rest.starts_with("//") {
            let mut quoted = false;
            let mut escaped = false;
            let end = rest.find(|c: char| {
                let ends = c.is_whitespace() && !quoted;
                quoted ^= c == '"' && !escaped;
                escaped = c == '\\' && !escaped;
                ends
            });
            if quoted {
                return Err(self.fail(rest, TextErrorKind::Open("quote")));
            }
            let (text, tail) = rest.split_at(end.unwrap_or(rest.len()));
            words.push(At { line: self, text });
            rest = tail.trim_start();
        }
        Ok(words)
    }
}

/// A word and where it stands.
#[derive(Debug, Clone, Copy)]
pub(super) struct At<'t> {
    pub line: Line<'t>,
    pub text: &'t str,
}

impl<'t> At<'t> {
    pub(super) fn fail(self, kind: impl Into<TextErrorKind>) -> TextError {
        self.line.fail(self.text, kind)
    }

    pub(super) fn unknown(self, what: &'static str) -> TextError {
        self.fail(TextErrorKind::Unknown {
            what,
            name: self.text.to_owned(),
        })
    }

    /// A number: decimal, or hexadecimal with `0x`, perhaps negative.
    pub(super) fn number<N: TryFrom<i128>>(self) -> Result<N, TextError> {
        number(self.text)
            .and_then(|n| N::try_from(n).ok())
            .ok_or_else(|| self.fail(TextErrorKind::Number))
    }

    /// The two sides of `key=value`.
    pub(super) fn pair(self) -> Option<(&'t str, At<'t>)> {
        let (key, value) = self.text.split_once('=')?;
        let plain = key.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        plain.then_some((
            key,
            At {
                text: value,
                ..self
            },
        ))
    }

    /// The name that the word is, without quotes.
    pub(super) fn name(self) -> Result<String, TextError> {
        let bad = || self.fail(TextErrorKind::Open("quote"));
        let Some(inside) = self.text.strip_prefix('"') else {
            return Ok(self.text.to_owned());
        };
        let inside = inside.strip_suffix('"').ok_or_else(bad)?;
        let mut name = String::new();
        let mut rest = inside.chars();
        while let Some(c) = rest.next() {
            match c {
                '\\' => match rest.next() {
                    Some('x') => {
                        let digits: String = rest.by_ref().take(2).collect();
                        let byte = u8::from_str_radix(&digits, 16).map_err(|_| bad())?;
                        name.push(char::from(byte & 0x7f));
                    }
                    Some(other) => name.push(other),
                    None => return Err(bad()),
                },
                '"' => return Err(bad()),
                other => name.push(other),
            }
        }
        Ok(name)
    }
}

pub(super) fn number(text: &str) -> Option<i128> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, text),
    };
    let (radix, digits) = match digits.strip_prefix("0x") {
        Some(digits) => (16, digits),
        None => (10, digits),
    };
    let plain = digits.bytes().all(|b| b.is_ascii_alphanumeric());
    let value = u64::from_str_radix(digits, radix).ok().filter(|_| plain)?;
    Some(sign * i128::from(value))
}

/// A name as a word of the text: as it is, or in quotes where it would read as something else.
pub(super) struct Name<'n>(pub &'n str);

impl fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plain = |b: u8| b.is_ascii_alphanumeric() || b"_.$@".contains(&b);
        let first = self.0.bytes().next().unwrap_or(b'0');
        let taken = self.0.starts_with(super::code::LABEL);
        if self.0.bytes().all(plain) && !first.is_ascii_digit() && first != b'@' && !taken {
            return f.write_str(self.0);
        }
        f.write_str("\"")?;
        for c in self.0.chars() {
            match c {
                '"' | '\\' => write!(f, "\\{c}")?,
                '\0'..='\x1f' | '\x7f' => write!(f, "\\x{:02x}", u32::from(c))?,
                _ => write!(f, "{c}")?,
            }
        }
        f.write_str("\"")
    }
}
