//! nvdisasm's text as data: marks (registers, numbers, punctuation) with the modifiers before each.
//!
//! Two texts of the same shape differ in numbers and modifiers only, and can be compared place by
//! place. An address without an offset is read as one with the offset zero.

use warpwright_sass::isa::form::File;

/// A structural token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mark {
    /// A register; `None` is the constant one (`RZ`, `PT`).
    Register(File, Option<u64>),
    /// A hexadecimal number.
    Integer(i128),
    /// A decimal number, infinity or NaN.
    Float(String),
    /// Comma, bracket (with the word before it), plus, blank.
    Punctuation(String),
    /// The end of the text.
    End,
}

/// A mark and the modifiers and words that stand before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Atom {
    /// `.FTZ`, `-`, `|`, `SR_TID` …
    pub run: Vec<String>,
    /// What follows.
    pub mark: Mark,
}

/// File, index and negation of a guard's predicate; `None` is the constant one.
pub type Guard = (File, Option<u64>, bool);

/// The text of one instruction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parsed {
    /// What stands behind `@`.
    pub guard: Option<Guard>,
    /// The mnemonic without modifiers.
    pub base: String,
    /// The rest.
    pub atoms: Vec<Atom>,
}

impl Parsed {
    /// Reads one instruction's text; `None` if it has no mnemonic.
    pub fn new(text: &str) -> Option<Self> {
        let (guard, rest) = split_guard(text.trim());
        let end = rest.find(['.', ' ']).unwrap_or(rest.len());
        let (base, rest) = rest.split_at(end);
        if base.is_empty() {
            return None;
        }
        let mut atoms = Scanner {
            rest,
            run: Vec::new(),
        }
        .atoms();
        complete_addresses(&mut atoms);
        Some(Parsed {
            guard,
            base: base.to_owned(),
            atoms,
        })
    }

    /// Mnemonic and kinds of marks: equal for texts that can be compared place by place.
    pub fn shape(&self) -> String {
        let mut shape = self.base.clone();
        for atom in &self.atoms {
            match &atom.mark {
                Mark::Register(file, _) => shape.push_str(&format!(" {}", file.prefix())),
                Mark::Integer(_) => shape.push_str(" #"),
                Mark::Float(_) => shape.push_str(" f"),
                Mark::Punctuation(p) => shape.push_str(&format!(" {p}_")),
                Mark::End => {}
            }
        }
        shape
    }
}

fn split_guard(text: &str) -> (Option<Guard>, &str) {
    let Some((guard, rest)) = text.strip_prefix('@').and_then(|t| t.split_once(' ')) else {
        return (None, text);
    };
    let (negated, name) = match guard.strip_prefix('!') {
        Some(name) => (true, name),
        None => (false, guard),
    };
    let guard = register(name).map(|(file, index)| (file, index, negated));
    (guard, rest.trim_start())
}

fn register(word: &str) -> Option<(File, Option<u64>)> {
    File::ALL.into_iter().find_map(|file| {
        if file.constant() == Some(word) {
            return Some((file, None));
        }
        let digits = word.strip_prefix(file.prefix())?;
        let plain = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
        plain
            .then(|| digits.parse().ok())
            .flatten()
            .map(|n| (file, Some(n)))
    })
}

struct Scanner<'a> {
    rest: &'a str,
    run: Vec<String>,
}

impl<'a> Scanner<'a> {
    fn take(&mut self, len: usize) -> &'a str {
        let (head, tail) = self.rest.split_at(len);
        self.rest = tail;
        head
    }

    fn take_while(&mut self, test: impl Fn(char) -> bool) -> &'a str {
        let end = self.rest.find(|c| !test(c)).unwrap_or(self.rest.len());
        self.take(end)
    }

    fn atoms(mut self) -> Vec<Atom> {
        let mut atoms = Vec::new();
        loop {
            let mark = self.mark();
            let end = mark == Mark::End;
            let run = std::mem::take(&mut self.run);
            atoms.push(Atom { run, mark });
            if end {
                return atoms;
            }
        }
    }

    /// The next mark; modifiers on the way go into the run.
    fn mark(&mut self) -> Mark {
        loop {
            let Some(c) = self.rest.chars().next() else {
                return Mark::End;
            };
            if let Some(number) = self.number() {
                return number;
            }
            match c {
                ' ' => {
                    self.take_while(|c| c == ' ');
                    if !self.rest.is_empty() && !self.rest.starts_with(',') {
                        return Mark::Punctuation(" ".into());
                    }
                }
                ',' => {
                    self.take(1);
                    let spaced = !self.take_while(|c| c == ' ').is_empty();
                    return Mark::Punctuation(if spaced { ", " } else { "," }.into());
                }
                '.' => {
                    let len = 1 + word_length(&self.rest[1..]);
                    let suffix = self.take(len).to_owned();
                    self.run.push(suffix);
                }
                c if is_word(c) => {
                    let len = word_length(self.rest);
                    let word = self.take(len);
                    if let Some((file, index)) = register(word) {
                        return Mark::Register(file, index);
                    }
                    if self.rest.starts_with('[') {
                        self.take(1);
                        return Mark::Punctuation(format!("{word}["));
                    }
                    self.run.push(word.to_owned());
                }
                '-' | '!' | '~' | '|' => {
                    self.take(1);
                    self.run.push(c.to_string());
                }
                _ => return Mark::Punctuation(self.take(c.len_utf8()).to_owned()),
            }
        }
    }

    fn number(&mut self) -> Option<Mark> {
        let unsigned = self.rest.trim_start_matches(['-', '+']);
        let sign = &self.rest[..self.rest.len() - unsigned.len()];
        if sign.len() > 1 || sign == "+" && unsigned.starts_with(|c: char| c.is_ascii_digit()) {
            return None;
        }
        let first = unsigned.chars().next()?;
        if let Some(digits) = unsigned.strip_prefix("0x") {
            let len = word_length(digits);
            if sign == "+" {
                return None;
            }
            let magnitude = i128::from_str_radix(&digits[..len], 16).ok()?;
            self.take(sign.len() + 2 + len);
            return Some(Mark::Integer(if sign == "-" {
                -magnitude
            } else {
                magnitude
            }));
        }
        let len = if first.is_ascii_digit() {
            decimal_length(unsigned)
        } else if !sign.is_empty() {
            word_length(unsigned)
        } else {
            return None;
        };
        let word = &unsigned[..len];
        let is_number = first.is_ascii_digit() && !unsigned[len..].starts_with(is_word)
            || matches!(word, "INF" | "QNAN" | "SNAN");
        if !is_number {
            return None;
        }
        Some(Mark::Float(self.take(sign.len() + len).to_owned()))
    }
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

fn word_length(text: &str) -> usize {
    text.find(|c| !is_word(c)).unwrap_or(text.len())
}

fn decimal_length(text: &str) -> usize {
    let digits = |t: &str| t.find(|c: char| !c.is_ascii_digit()).unwrap_or(t.len());
    let mut len = digits(text);
    if text[len..].starts_with('.') && digits(&text[len + 1..]) > 0 {
        len += 1 + digits(&text[len + 1..]);
    }
    let exponent = &text[len..];
    if exponent.starts_with("e+") || exponent.starts_with("e-") {
        len += 2 + digits(&exponent[2..]);
    }
    len
}

/// Gives every address that names a register and no offset the offset zero.
fn complete_addresses(atoms: &mut Vec<Atom>) {
    let is = |atom: &Atom, text: &str| atom.mark == Mark::Punctuation(text.into());
    let mut start = None;
    let mut at = 0;
    while at < atoms.len() {
        if is(&atoms[at], "[") {
            start = Some(at);
        } else if let Some(open) = start.filter(|_| is(&atoms[at], "]")) {
            let inside = &atoms[open + 1..at];
            let registers = inside.iter().any(|a| matches!(a.mark, Mark::Register(..)));
            let offset = inside.iter().any(|a| matches!(a.mark, Mark::Integer(_)));
            if registers && !offset {
                let run = std::mem::take(&mut atoms[at].run);
                let plus = Mark::Punctuation("+".into());
                let zero = Mark::Integer(0);
                atoms.insert(
                    at,
                    Atom {
                        run: Vec::new(),
                        mark: zero,
                    },
                );
                atoms.insert(at, Atom { run, mark: plus });
                at += 2;
            }
            start = None;
        }
        at += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(text: &str) -> String {
        Parsed::new(text).map(|p| p.shape()).unwrap_or_default()
    }

    #[test]
    fn modifiers_do_not_change_the_shape() {
        assert_eq!(
            shape("@!P0 FFMA.FTZ R3, -R4.reuse, |RZ|, R5"),
            "FFMA  _ R , _ R , _ R , _ R"
        );
        assert_eq!(
            shape("LDG.E.U8 R0, desc[UR10][R2.64]"),
            shape("LDG.E R1, desc[UR4][RZ+-0x10]")
        );
        assert_eq!(shape("FADD R1, R2, +INF "), shape("FADD R1, R2, -1.5e-07"));
        assert_eq!(shape("TEX R1, 2D"), shape("TEX R1, ARRAY_1D"));
        assert_eq!(shape("BRX R2 -0x1a0"), "BRX  _ R  _ #");
    }

    #[test]
    fn runs_hold_the_modifiers() {
        let parsed = Parsed::new("FADD R3, -|R4|.reuse, R5").unwrap_or_else(|| unreachable!());
        assert_eq!(parsed.atoms[3].run, ["-", "|"]);
        assert_eq!(parsed.atoms[4].run, ["|", ".reuse"]);
    }
}
