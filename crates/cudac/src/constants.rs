//! Numbers that a file gives names to, so that it can be tried with smaller ones.

use std::ops::Range;

use crate::File;
use crate::ast::{ExprKind, Init};

/// A constant of the file: its value, and where that stands.
pub struct Constant {
    /// Its value.
    pub value: i64,
    /// Where it stands, or may be defined anew.
    pub at: Range<usize>,
    /// It stands elsewhere, in a header or among the options of the compiler, and can be defined anew at this place.
    again: Option<String>,
}

impl Constant {
    /// What stands at the place with another value.
    fn text(&self, value: i64) -> String {
        match &self.again {
            None => value.to_string(),
            Some(name) => format!("\n#undef {name}\n#define {name} {value}\n"),
        }
    }
}

/// The constants of a file above 16, in the order of their places.
pub fn constants(file: &File) -> Vec<Constant> {
    let mut found = in_text(&file.source.text);
    found.extend(from_elsewhere(file));
    // Enumerators, and what stands otherwise on its line.
    for global in file.globals.iter().filter(|g| g.is_fixed()) {
        if let Some(Init::Value(value)) = &global.init
            && let ExprKind::Number(digits) = &value.kind
            && let Ok(number) = digits.parse::<i64>()
            && number > 16
            && file.source.text.get(value.span.clone()) == Some(digits)
            && !found.iter().any(|c| c.at == value.span)
        {
            found.push(Constant {
                value: number,
                at: value.span.clone(),
                again: None,
            });
        }
    }
    found.sort_by_key(|c| (c.at.start, c.at.end));
    found
}

/// The file's text with other values for its [`constants`].
pub fn with_values(file: &File, constants: &[Constant], values: &[i64]) -> String {
    let mut text = file.source.text.to_string();
    for (constant, value) in constants.iter().zip(values).rev() {
        text.replace_range(constant.at.clone(), &constant.text(*value));
    }
    text
}

/// `#define N 512` and `const int n = 512;` with numbers above 16, in the order of the text.
fn in_text(text: &str) -> Vec<Constant> {
    let mut found = Vec::new();
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let words: Vec<&str> = line.split_whitespace().collect();
        let number = match &words[..] {
            ["#define", name, number, ..] if !name.contains('(') => Some(*number),
            _ => {
                let declared = words.iter().any(|w| ["const", "constexpr"].contains(w));
                let sign = words.iter().position(|w| *w == "=");
                sign.filter(|_| declared)
                    .and_then(|at| words.get(at + 1).copied())
            }
        };
        let digits = number.map(|n| n.trim_end_matches(';'));
        if let Some((digits, value)) = digits.and_then(|d| Some((d, d.parse::<i64>().ok()?)))
            && value > 16
            && let Some(at) = line.rfind(digits)
        {
            found.push(Constant {
                value,
                at: start + at..start + at + digits.len(),
                again: None,
            });
        }
        start += line.len();
    }
    found
}

/// Macros with numbers above 16 that headers and the command line define, once each.
fn from_elsewhere(file: &File) -> Vec<Constant> {
    let mut found: Vec<Constant> = Vec::new();
    for own in file.macros.iter().filter(|_| file.is_preprocessed) {
        let line = &file.source.text[own.span.clone()];
        let included = line.trim_start().starts_with('#') && line.contains("include");
        let value = own
            .body
            .as_deref()
            .and_then(|body| body.parse::<i64>().ok());
        let many = file.macros.iter().filter(|m| m.name == own.name).count();
        if let Some(value) = value.filter(|v| *v > 16)
            && own.parameters.is_none()
            && (included || own.span.is_empty())
            && many == 1
        {
            found.push(Constant {
                value,
                at: own.span.end..own.span.end,
                again: Some(own.name.clone()),
            });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_of_both_spellings() {
        let text =
            "#define N 512\n#define F(x) 99\n#define H 4\nconst int ny = 300;\nint z = 40;\n";
        let found: Vec<(i64, &str)> = in_text(text)
            .into_iter()
            .map(|c| (c.value, &text[c.at]))
            .collect();
        assert_eq!(found, [(512, "512"), (300, "300")]);
    }
}
