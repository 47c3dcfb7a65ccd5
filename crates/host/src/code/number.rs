//! Numbers of host code in the types that C computes them in.

/// A number of C.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Number {
    Integer(i64, Ty),
    /// A floating-point number; is it a `float`?
    Real(f64, bool),
}

/// As much of an integer's type as decides what it can hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ty {
    wide: bool,
    unsigned: bool,
}

/// Integers that a `double` holds, all up to this one.
const EXACT: f64 = 9e15;

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
    fn of(words: &str) -> Ty {
        let is_wide = ["long", "64", "size_t", "ptrdiff"];
        let is_unsigned = |word: &str| word.starts_with('u') || word == "size_t";
        Ty {
            wide: is_wide.iter().any(|word| words.contains(word)),
            unsigned: words.split([' ', ':']).any(is_unsigned),
        }
    }
}

impl Number {
    /// Of this type, where that can hold it.
    pub(super) fn new(number: i64, ty: Ty) -> Option<Number> {
        let (low, high) = match (ty.wide, ty.unsigned) {
            (false, false) => (i64::from(i32::MIN), i64::from(i32::MAX)),
            (false, true) => (0, i64::from(u32::MAX)),
            (true, false) => (i64::MIN, i64::MAX),
            (true, true) => (0, i64::MAX),
        };
        (low..=high)
            .contains(&number)
            .then_some(Number::Integer(number, ty))
    }

    pub(super) fn constant(number: i64) -> Number {
        let wide = i32::try_from(number).is_err();
        Number::Integer(number, Ty { wide, ..Ty::INT })
    }

    /// What an integer becomes that is set to it.
    pub(super) fn integer(self) -> Option<i64> {
        match self {
            Number::Integer(number, _) => Some(number),
            Number::Real(number, _) => (number.abs() < EXACT).then_some(number as i64),
        }
    }

    /// In the type of a declaration or a cast, where that can hold it.
    pub(super) fn declared(self, words: &str) -> Option<Number> {
        let real = |single| Some(Number::Real(self.real(single), single));
        match () {
            () if has_word(words, "float") => real(true),
            () if has_word(words, "double") => real(false),
            () if has_word(words, "auto") || has_word(words, "enum") => Some(self),
            () => {
                let number = self.integer()?;
                (!is_narrowed(words, number)).then(|| Number::new(number, Ty::of(words)))?
            }
        }
    }

    fn real(self, single: bool) -> f64 {
        let number = match self {
            Number::Integer(number, _) => number as f64,
            Number::Real(number, _) => number,
        };
        if single {
            f64::from(number as f32)
        } else {
            number
        }
    }

    pub(super) fn is_true(self) -> bool {
        self.real(false) != 0.0
    }

    pub(super) fn ceil(self) -> Number {
        match self {
            Number::Real(number, single) => Number::Real(number.ceil(), single),
            integer => integer,
        }
    }
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
fn has_word(words: &str, word: &str) -> bool {
    let mut all = words.split(|c: char| !c.is_alphanumeric() && c != '_');
    all.any(|own| own == word)
}

/// Does a number not fit the type that some words name?
pub(super) fn is_narrowed(words: &str, number: i64) -> bool {
    let mut narrow = NARROW.iter().filter(|(word, ..)| has_word(words, word));
    narrow.any(|(_, least, most)| !(*least..=*most).contains(&number))
}

/// `a || b`, or `a && b`: one of them may decide it alone.
pub(super) fn either(is_or: bool, a: Option<Number>, b: Option<Number>) -> Option<Number> {
    let truth = |n: Option<Number>| n.map(Number::is_true);
    match (truth(a), truth(b)) {
        (Some(own), _) | (_, Some(own)) if own == is_or => Some(Number::constant(is_or.into())),
        (Some(_), Some(_)) => Some(Number::constant((!is_or).into())),
        _ => None,
    }
}

/// What is computed of two numbers, in the type that C computes it in.
pub(super) fn binary(sign: &str, a: Number, b: Number) -> Option<Number> {
    use Number::{Integer, Real};
    match (a, b) {
        (Integer(a, of_a), Integer(b, of_b)) => integers(sign, (a, of_a), (b, of_b)),
        (Real(..), _) | (_, Real(..)) => {
            let is_single = |n| !matches!(n, Real(_, false));
            let single = is_single(a) && is_single(b);
            reals(sign, (a.real(single), b.real(single)), single)
        }
    }
}

fn reals(sign: &str, (a, b): (f64, f64), single: bool) -> Option<Number> {
    let number = match sign {
        "+" => a + b,
        "-" => a - b,
        "*" => a * b,
        "/" => a / b,
        _ => return compared(sign, &a, &b),
    };
    // A product of two of 24 bits has 48: it is rounded once.
    let number = if single {
        f64::from(number as f32)
    } else {
        number
    };
    number.is_finite().then_some(Number::Real(number, single))
}

fn integers(sign: &str, (a, of_a): (i64, Ty), (b, of_b): (i64, Ty)) -> Option<Number> {
    if let "<<" | ">>" = sign {
        let bits = if of_a.wide { 63 } else { 32 };
        let by = u32::try_from(b).ok().filter(|by| *by < bits && a >= 0)?;
        let number = match sign {
            "<<" => a.checked_mul(1 << by)?,
            _ => a >> by,
        };
        return Number::new(number, of_a);
    }
    let ty = of_a.with(of_b);
    // A negative number becomes something else in an unsigned type.
    if ty.unsigned && (a < 0 || b < 0) {
        return None;
    }
    let number = match sign {
        "+" => a.checked_add(b),
        "-" => a.checked_sub(b),
        "*" => a.checked_mul(b),
        "/" => a.checked_div(b),
        "%" => a.checked_rem(b),
        "&" => Some(a & b),
        "|" => Some(a | b),
        "^" => Some(a ^ b),
        _ => return compared(sign, &a, &b),
    };
    Number::new(number?, ty)
}

fn compared<T: PartialOrd>(sign: &str, a: &T, b: &T) -> Option<Number> {
    let truth = match sign {
        "<" => a < b,
        ">" => a > b,
        "<=" => a <= b,
        ">=" => a >= b,
        "==" => a == b,
        "!=" => a != b,
        _ => return None,
    };
    Some(Number::constant(truth.into()))
}
