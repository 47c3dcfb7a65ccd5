//! Integers of host code in the types that C computes them in.

use super::amount::Amount;
use warpwright_launch::Op;

/// An integer of C.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Number {
    pub(super) amount: Amount,
    pub(super) ty: Ty,
}

/// As much of an integer's type as decides what it can hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ty {
    pub(super) wide: bool,
    pub(super) unsigned: bool,
}

impl Ty {
    pub(super) const INT: Ty = Ty {
        wide: false,
        unsigned: false,
    };
    pub(super) const SIZE: Ty = Ty {
        wide: true,
        unsigned: true,
    };

    /// That of what is computed of both.
    fn with(self, other: Ty) -> Ty {
        let (wide, narrow) = if other.wide && !self.wide {
            (other, self)
        } else {
            (self, other)
        };
        Ty {
            wide: wide.wide,
            unsigned: wide.unsigned || narrow.unsigned && narrow.wide == wide.wide,
        }
    }

    /// That of a literal.
    pub(super) fn of_literal(digits: &str, number: i64) -> Ty {
        let lower = digits.to_ascii_lowercase();
        let digits = lower.trim_end_matches(['u', 'l']);
        let suffix = &lower[digits.len()..];
        let is_decimal = !digits.starts_with('0') || digits.len() == 1;
        let fits = i32::try_from(number).is_ok();
        let fits_unsigned = u32::try_from(number).is_ok();
        // What does not fit an `int` is unsigned next where it is not decimal.
        let unsigned = suffix.contains('u') || !fits && fits_unsigned && !is_decimal;
        let wide = suffix.contains('l') || !(fits || unsigned && fits_unsigned);
        Ty { wide, unsigned }
    }

    /// That of a declaration or a cast, by its words.
    pub(super) fn of(words: &str) -> Ty {
        let is_wide = ["long", "64", "size_t", "ptrdiff"]
            .iter()
            .any(|w| words.contains(w));
        let is_unsigned = |word: &str| word.starts_with('u') || word == "size_t";
        Ty {
            wide: is_wide,
            unsigned: words.split([' ', ':']).any(is_unsigned),
        }
    }
}

impl Number {
    /// Of this type, where it can hold the code's number.
    pub(super) fn new(amount: Amount, ty: Ty) -> Option<Number> {
        let (low, high) = match (ty.wide, ty.unsigned) {
            (false, false) => (i64::from(i32::MIN), i64::from(i32::MAX)),
            (false, true) => (0, i64::from(u32::MAX)),
            (true, false) => (i64::MIN, i64::MAX),
            (true, true) => (0, i64::MAX),
        };
        let fits = amount.number().is_none_or(|n| (low..=high).contains(&n));
        fits.then_some(Number { amount, ty })
    }

    pub(super) fn constant(number: i64) -> Number {
        let wide = i32::try_from(number).is_err();
        let ty = Ty { wide, ..Ty::INT };
        Number {
            amount: Amount::Number(number),
            ty,
        }
    }

    pub(super) fn number(&self) -> Option<i64> {
        self.amount.number()
    }

    pub(super) fn ty(&self) -> Ty {
        self.ty
    }

    /// Another amount of this type.
    pub(super) fn with(self, amount: Amount) -> Number {
        Number { amount, ..self }
    }
}

/// What is computed of two numbers, in the type that C computes it in.
pub(super) fn combined(op: Op, a: Number, b: Number) -> Option<Number> {
    let ty = a.ty.with(b.ty);
    // A negative number becomes something else in an unsigned type.
    let is_lost = |n: &Number| ty.unsigned && n.number().is_some_and(|n| n < 0);
    if is_lost(&a) || is_lost(&b) {
        return None;
    }
    let are_known = a.number().is_some() && b.number().is_some();
    let plain = |amount: &Amount| match amount {
        Amount::Number(n) => Some(*n),
        _ => None,
    };
    let amount = match (plain(&a.amount), plain(&b.amount)) {
        (Some(a), Some(b)) => Amount::Number(op.of(a, b)?),
        _ => Amount::binary(op, a.amount, b.amount),
    };
    (!are_known || amount.number().is_some()).then(|| Number::new(amount, ty))?
}

/// A number that is right as long as others stay what they are.
pub(super) fn given<const N: usize>(number: i64, ty: Ty, of: [Number; N]) -> Option<Number> {
    let others: Vec<Amount> = of.into_iter().map(|n| n.amount).collect();
    let amount = Amount::Number(number);
    let amount = match others.iter().all(|a| matches!(a, Amount::Number(_))) {
        true => amount,
        false => Amount::Given(Box::new(amount), others),
    };
    Number::new(amount, ty)
}

pub(super) fn binary(sign: &str, a: Number, b: Number) -> Option<Number> {
    let op = match sign {
        "+" => Op::Add,
        "-" => Op::Sub,
        "*" => Op::Mul,
        "/" => Op::Div,
        "%" => Op::Rem,
        _ => return compared(sign, a, b),
    };
    combined(op, a, b)
}

/// Types that hold less than an `int`, with the least and the most that all of their kind hold: other numbers become
/// others.
const NARROW: [(&str, i64, i64); 7] = [
    ("short", 0, 32767),
    ("char", 0, 127),
    ("int16_t", -32768, 32767),
    ("uint16_t", 0, 65535),
    ("int8_t", -128, 127),
    ("uint8_t", 0, 255),
    ("bool", 0, 1),
];

/// Is this one of the words of a type?
pub(super) fn has_word(words: &str, word: &str) -> bool {
    let mut all = words.split(|c: char| !c.is_alphanumeric() && c != '_');
    all.any(|own| own == word)
}

/// Does a number not fit the type that some words name?
pub(super) fn is_narrowed(words: &str, number: &Number) -> bool {
    let Some(number) = number.number() else {
        return false;
    };
    let narrow = NARROW.iter().filter(|(word, ..)| has_word(words, word));
    let mut narrow = narrow.map(|(_, least, most)| (*least..=*most).contains(&number));
    narrow.any(|fits| !fits)
}

/// `a || b`, or `a && b`: one of them may decide it alone.
pub(super) fn either(is_or: bool, a: Option<Number>, b: Option<Number>) -> Option<Number> {
    let truth = |n: &Option<Number>| Some(n.as_ref()?.number()? != 0);
    match (truth(&a), truth(&b)) {
        (Some(own), _) if own == is_or => given(i64::from(is_or), Ty::INT, [a?]),
        (_, Some(own)) if own == is_or => given(i64::from(is_or), Ty::INT, [b?]),
        (Some(_), Some(_)) => given(i64::from(!is_or), Ty::INT, [a?, b?]),
        _ => None,
    }
}

/// Shifts, bits and comparisons, which only are computed of numbers.
fn compared(sign: &str, a: Number, b: Number) -> Option<Number> {
    let (x, y) = (a.number(), b.number()?);
    let shift = || u32::try_from(y).ok().filter(|&n| n < 63);
    if matches!(sign, "<<" | ">>") {
        let factor = 1_i64.checked_shl(shift()?)?;
        let bits = if a.ty.wide { 64 } else { 32 };
        if y >= bits || sign == ">>" && x.is_some_and(|x| x < 0) {
            return None;
        }
        let op = if sign == "<<" { Op::Mul } else { Op::Div };
        let by = match &b.amount {
            Amount::Number(_) => Amount::Number(factor),
            other => Amount::Given(Box::new(Amount::Number(factor)), vec![other.clone()]),
        };
        let ty = a.ty;
        return combined(op, a, Number { amount: by, ty });
    }
    let x = x?;
    let ty = a.ty.with(b.ty);
    // A negative number becomes a large one where the other has no sign.
    if ty.unsigned && (x < 0 || y < 0) {
        return None;
    }
    let truth = match sign {
        "&" => return given(x & y, ty, [a, b]),
        "|" => return given(x | y, ty, [a, b]),
        "^" => return given(x ^ y, ty, [a, b]),
        "<" => x < y,
        ">" => x > y,
        "<=" => x <= y,
        ">=" => x >= y,
        "==" => x == y,
        "!=" => x != y,
        _ => return None,
    };
    given(i64::from(truth), Ty::INT, [a, b])
}
