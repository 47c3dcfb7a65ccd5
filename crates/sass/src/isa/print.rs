//! The text of an instruction's operation: guard, mnemonic, modifiers and operands, as nvdisasm
//! writes them.

use std::fmt::Write;

use super::form::{Field, File, Form, Guard, Kind, Number, Piece, ones};

/// Appends the text of `bits`, which `form` matches, at byte `address` of its section.
pub fn operation(form: &Form, bits: u128, address: u64, out: &mut String) {
    guard(form.guard, bits, out);
    for piece in &form.pieces {
        match piece {
            Piece::Text(text) => out.push_str(text),
            Piece::Number(n) => number(n, &form.fields[n.field], bits, address, out),
            Piece::Choice(c) => {
                let value = form.fields[c.field].extract(bits) as usize;
                if let Some(Some(text)) = c.texts.get(value) {
                    out.push_str(text);
                }
            }
        }
    }
}

fn guard(kind: Guard, bits: u128, out: &mut String) {
    let prefix = match kind {
        Guard::None => return,
        Guard::Predicate => "P",
        Guard::Uniform => "UP",
    };
    let (index, negated) = (bits >> 12 & 7, bits >> 15 & 1 != 0);
    if index == 7 && !negated {
        return;
    }
    out.push_str(if negated { "@!" } else { "@" });
    out.push_str(prefix);
    if index == 7 {
        out.push_str("T ");
    } else {
        let _ = write!(out, "{index} ");
    }
}

pub(super) fn number(number: &Number, field: &Field, bits: u128, address: u64, out: &mut String) {
    let raw = field.extract(bits);
    let width = field.width() as u8;
    if number.term {
        if raw == 0 {
            return;
        }
        out.push('+');
    }
    match number.kind {
        Kind::Register(file) => register(file, raw, width, out),
        Kind::Complement(file) => register(file, ones(width) - raw, width, out),
        Kind::Next(file) => register(file, (raw + 1).min(ones(width)), width, out),
        Kind::Unsigned => hex(raw << number.scale, out),
        Kind::Signed => {
            let value = signed(raw, width) << number.scale;
            if value < 0 {
                out.push('-');
            }
            hex(value.unsigned_abs(), out);
        }
        Kind::Relative => {
            let distance = signed(raw, width) << number.scale;
            let target = address.wrapping_add(16).wrapping_add_signed(distance) as i64;
            if target < 0 {
                out.push('-');
            }
            hex(target.unsigned_abs(), out);
        }
        Kind::Float(float) => float.print(raw, out),
    }
}

fn register(file: File, index: u64, width: u8, out: &mut String) {
    match file.constant().filter(|_| index == ones(width)) {
        Some(name) => out.push_str(name),
        None => {
            out.push_str(file.prefix());
            decimal(index, out);
        }
    }
}

pub(crate) fn signed(raw: u64, width: u8) -> i64 {
    let unused = 64 - u32::from(width);
    (raw << unused) as i64 >> unused
}

fn decimal(value: u64, out: &mut String) {
    let mut digits = [0u8; 20];
    let mut at = digits.len();
    let mut rest = value;
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    out.extend(digits[at..].iter().map(|&d| char::from(d)));
}

fn hex(value: u64, out: &mut String) {
    out.push_str("0x");
    let digits = (16 - value.leading_zeros() / 4).max(1);
    for i in (0..digits).rev() {
        let digit = (value >> (4 * i)) as usize & 0xf;
        out.push(char::from(b"0123456789abcdef"[digit]));
    }
}
