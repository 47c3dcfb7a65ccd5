//! The values of literals.

/// The value of a literal, with the types that matter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Literal {
    /// An integer of any type.
    Integer(i64),
    /// A `float`, rounded to one.
    Float(f32),
    /// A `double`.
    Double(f64),
}

impl Literal {
    /// Reads a literal; none if it is not finite, or no number.
    pub fn parse(text: &str) -> Option<Literal> {
        let plain = text.replace('\'', "");
        let (negative, digits) = match plain.strip_prefix('-') {
            Some(digits) => (true, digits),
            None => (false, plain.strip_prefix('+').unwrap_or(&plain)),
        };
        let lower = digits.to_ascii_lowercase();
        if let Some(value) = integer(lower.trim_end_matches(['u', 'l'])) {
            return Some(Literal::Integer(if negative { -value } else { value }));
        }
        let first = lower.starts_with(|c: char| c.is_ascii_digit() || c == '.');
        if !first || lower.starts_with("0x") {
            return None;
        }
        match lower.strip_suffix('f') {
            Some(digits) => {
                let value = digits.parse::<f32>().ok().filter(|v| v.is_finite())?;
                Some(Literal::Float(if negative { -value } else { value }))
            }
            None => {
                let digits = lower.trim_end_matches('l');
                let value = digits.parse::<f64>().ok().filter(|v| v.is_finite())?;
                Some(Literal::Double(if negative { -value } else { value }))
            }
        }
    }
}

fn integer(digits: &str) -> Option<i64> {
    if let Some(hexadecimal) = digits.strip_prefix("0x") {
        return i64::from_str_radix(hexadecimal, 16).ok();
    }
    if let Some(binary) = digits.strip_prefix("0b") {
        return i64::from_str_radix(binary, 2).ok();
    }
    // A leading zero means octal.
    let octal = digits.len() > 1 && digits.starts_with('0');
    let only_digits = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    if !only_digits {
        return None;
    }
    i64::from_str_radix(digits, if octal { 8 } else { 10 }).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_have_the_types_of_c() {
        for (text, value) in [
            ("10", Some(Literal::Integer(10))),
            ("0x1Fu", Some(Literal::Integer(31))),
            ("010", Some(Literal::Integer(8))),
            ("1'000LL", Some(Literal::Integer(1000))),
            ("-3", Some(Literal::Integer(-3))),
            ("+0.5", Some(Literal::Double(0.5))),
            ("0.1f", Some(Literal::Float(0.1))),
            (".5", Some(Literal::Double(0.5))),
            ("1e3", Some(Literal::Double(1000.0))),
            ("1.F", Some(Literal::Float(1.0))),
            ("1e400", None),
            ("nan", None),
            ("'a'", None),
            ("0x1p3", None),
        ] {
            assert_eq!(Literal::parse(text), value, "{text}");
        }
    }
}
