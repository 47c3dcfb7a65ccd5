//! The text of an operation back to bits.
//!
//! A line is tried against the forms of its mnemonic. Where several values of a modifier have the same
//! text, the smallest is taken: what the text does not say, the text form adds (`text` module).

use super::form::{Choice, Field, Form, GUARD, Guard, Kind, Number, Piece, ones};
use super::table::Table;

/// The operation bits (control field zero) whose text at byte `address` is `text`, or `None` if no
/// form has this text.
pub fn operation(table: &Table, text: &str, address: u64) -> Option<u128> {
    let (guard, rest) = match text.strip_prefix('@') {
        Some(tail) => {
            let (guard, rest) = tail.split_once(' ')?;
            (Some(guard), rest)
        }
        None => (None, text),
    };
    let end = rest.find(['.', ' ']).unwrap_or(rest.len());
    table.named(&rest[..end]).find_map(|form| {
        let guard = guard_bits(form.guard, guard)?;
        let mut matcher = Matcher {
            form,
            address,
            values: vec![None; form.fields.len()],
        };
        matcher.pieces(&form.pieces, rest).then_some(())?;
        let fields = form.fields.iter().zip(&matcher.values);
        let bits = fields.fold(form.value | guard, |b, (f, v)| {
            b | f.deposit(v.unwrap_or(0))
        });
        // Another form may claim these bits: then its text is meant by them, not this one's.
        std::ptr::eq(table.find(bits)?, form).then_some(bits)
    })
}

fn guard_bits(kind: Guard, text: Option<&str>) -> Option<u128> {
    let prefix = match kind {
        Guard::None => return text.is_none().then_some(0),
        Guard::Predicate => "P",
        Guard::Uniform => "UP",
    };
    let Some(text) = text else {
        return Some(7 << 12);
    };
    let (negated, name) = match text.strip_prefix('!') {
        Some(name) => (8, name),
        None => (0, text),
    };
    let index: u128 = match name.strip_prefix(prefix)? {
        "T" => 7,
        digit => digit.parse().ok().filter(|&i| i < 7)?,
    };
    Some((index | negated) << 12 & GUARD)
}

struct Matcher<'a> {
    form: &'a Form,
    address: u64,
    values: Vec<Option<u64>>,
}

impl Matcher<'_> {
    /// Do the pieces make up the whole text? Sets the values if so.
    fn pieces(&mut self, pieces: &[Piece], text: &str) -> bool {
        let Some((piece, others)) = pieces.split_first() else {
            return text.is_empty();
        };
        match piece {
            Piece::Text(fixed) => match text.strip_prefix(&**fixed) {
                Some(rest) => self.pieces(others, rest),
                None => false,
            },
            Piece::Number(number) => self.number(number, others, text),
            Piece::Choice(choice) => self.choice(choice, others, text),
        }
    }

    /// Goes on with a field set; unsets it again if that leads nowhere.
    fn with(&mut self, field: usize, value: u64, others: &[Piece], text: &str) -> bool {
        let old = self.values[field];
        if old.is_some_and(|v| v != value) {
            return false;
        }
        self.values[field] = Some(value);
        if self.pieces(others, text) {
            return true;
        }
        self.values[field] = old;
        false
    }

    fn choice(&mut self, choice: &Choice, others: &[Piece], text: &str) -> bool {
        let mut tried: Vec<usize> = Vec::new();
        for (value, option) in choice.texts.iter().enumerate() {
            let Some(rest) = option.as_deref().and_then(|o| text.strip_prefix(o)) else {
                continue;
            };
            // Values that read the same everywhere lead to the same end.
            if tried
                .iter()
                .any(|&t| self.form.same_texts(choice.field, t, value))
            {
                continue;
            }
            tried.push(value);
            if self.with(choice.field, value as u64, others, rest) {
                return true;
            }
        }
        false
    }

    fn number(&mut self, number: &Number, others: &[Piece], text: &str) -> bool {
        let field = &self.form.fields[number.field];
        if number.term {
            if let Some(tail) = text.strip_prefix('+') {
                let read = read(number, field, tail, self.address);
                return read.is_some_and(|(v, rest)| self.with(number.field, v, others, rest));
            }
            return self.with(number.field, 0, others, text);
        }
        let read = read(number, field, text, self.address);
        read.is_some_and(|(value, rest)| self.with(number.field, value, others, rest))
    }
}

/// The encoded value at the start of a text, and what follows.
fn read<'t>(number: &Number, field: &Field, text: &'t str, address: u64) -> Option<(u64, &'t str)> {
    let width = field.width() as u8;
    if let Kind::Register(file) | Kind::Complement(file) | Kind::Next(file) = number.kind {
        let end = text
            .find(|c: char| !c.is_ascii_alphanumeric())
            .unwrap_or(text.len());
        let (name, rest) = text.split_at(end);
        let index = match file.constant() == Some(name) {
            true => ones(width),
            false => name.strip_prefix(file.prefix())?.parse().ok()?,
        };
        let raw = match number.kind {
            Kind::Complement(_) => ones(width).checked_sub(index)?,
            Kind::Next(_) => index.checked_sub(1)?,
            _ => index,
        };
        return (index <= ones(width)).then_some((raw, rest));
    }
    if let Kind::Float(float) = number.kind {
        let end = text.find([',', ' ', ']']).unwrap_or(text.len());
        let (digits, rest) = text.split_at(end);
        return Some((float.parse(digits)?, rest));
    }
    let (negative, tail) = match text.strip_prefix('-') {
        Some(tail) => (true, tail),
        None => (false, text),
    };
    let digits = tail.strip_prefix("0x")?;
    let end = digits
        .find(|c: char| !c.is_ascii_hexdigit())
        .unwrap_or(digits.len());
    let (digits, rest) = digits.split_at(end);
    let magnitude = u64::from_str_radix(digits, 16).ok()?;
    let mut value = if negative {
        magnitude.wrapping_neg()
    } else {
        magnitude
    };
    if number.kind == Kind::Relative {
        value = value.wrapping_sub(address.wrapping_add(16));
    }
    if value & ((1 << number.scale) - 1) != 0 {
        return None;
    }
    let scaled = match number.kind {
        Kind::Unsigned => value >> number.scale,
        _ => ((value as i64) >> number.scale) as u64,
    };
    let raw = scaled & ones(width);
    let back = match number.kind {
        Kind::Unsigned => raw,
        _ => super::print::signed(raw, width) as u64,
    };
    (back == scaled).then_some((raw, rest))
}
