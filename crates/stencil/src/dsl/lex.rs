//! Characters to tokens.

use warpwright_cudac::diag::{Diagnostic, Span};

/// What a token is.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Kind {
    /// A name or a keyword.
    Word(String),
    /// An integer literal.
    Integer(i64),
    /// A literal with a point, an exponent or an `f`; whether it is a `float`.
    Real(f64, bool),
    /// Punctuation: one of [`PUNCTUATION`].
    Punct(&'static str),
    /// The end of the text.
    End,
}

/// A token and its place.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Token {
    pub(super) kind: Kind,
    pub(super) span: Span,
}

/// All punctuation, longest first.
const PUNCTUATION: [&str; 18] = [
    "+=", "-=", "(", ")", "[", "]", "{", "}", ",", ";", "=", "+", "-", "*", "/", "<", ">", ":",
];

/// Splits a text into tokens; the last one is [`Kind::End`].
pub(super) fn tokens(text: &str) -> Result<Vec<Token>, Diagnostic> {
    let mut out = Vec::new();
    let mut at = 0;
    loop {
        at = skip_blanks(text, at)?;
        let (kind, end) = token(text, at)?;
        let done = kind == Kind::End;
        out.push(Token {
            kind,
            span: at..end,
        });
        if done {
            return Ok(out);
        }
        at = end;
    }
}

/// The first byte at or after `at` that is neither blank nor in a comment.
fn skip_blanks(text: &str, mut at: usize) -> Result<usize, Diagnostic> {
    loop {
        let rest = &text[at..];
        let blanks = rest.len() - rest.trim_start().len();
        let rest = &rest[blanks..];
        at += blanks;
        if rest.starts_with("//") {
            at += rest.find('\n').unwrap_or(rest.len());
        } else if rest.starts_with("/*") {
            let Some(length) = rest.find("*/") else {
                let what = "the comment never ends";
                return Err(Diagnostic::error("stencil::syntax", what)
                    .label(at..at + 2, "it begins here")
                    .help("close it with `*/`"));
            };
            at += length + 2;
        } else {
            return Ok(at);
        }
    }
}

/// The token at `at`, and where it ends.
fn token(text: &str, at: usize) -> Result<(Kind, usize), Diagnostic> {
    let rest = &text[at..];
    let Some(first) = rest.chars().next() else {
        return Ok((Kind::End, at));
    };
    if first.is_ascii_alphabetic() || first == '_' {
        let length = rest
            .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
            .unwrap_or(rest.len());
        return Ok((Kind::Word(rest[..length].to_owned()), at + length));
    }
    if first.is_ascii_digit() || rest.starts_with('.') {
        let length = number_length(rest);
        let kind = number(&rest[..length]).ok_or_else(|| {
            let what = format!("`{}` is not a number", &rest[..length]);
            Diagnostic::error("stencil::syntax", what).label(at..at + length, "here")
        })?;
        return Ok((kind, at + length));
    }
    if let Some(punct) = PUNCTUATION.iter().find(|p| rest.starts_with(**p)) {
        return Ok((Kind::Punct(punct), at + punct.len()));
    }
    let what = format!("`{}` has no meaning here", first.escape_debug());
    Err(Diagnostic::error("stencil::syntax", what)
        .label(at..at + first.len_utf8(), "unexpected character"))
}

/// Length of what looks like a number: letters count, and a sign after an exponent's `e`.
fn number_length(text: &str) -> usize {
    let mut before = ' ';
    let hexadecimal = text.starts_with("0x") || text.starts_with("0X");
    for (n, c) in text.char_indices() {
        let sign = matches!(c, '+' | '-') && matches!(before, 'e' | 'E') && !hexadecimal;
        if !(c.is_ascii_alphanumeric() || c == '.' || c == '_' || sign) {
            return n;
        }
        before = c;
    }
    text.len()
}

/// The value of a literal.
fn number(text: &str) -> Option<Kind> {
    if text.bytes().all(|b| b.is_ascii_digit()) {
        return text.parse().ok().map(Kind::Integer);
    }
    let (digits, float) = match text.strip_suffix(['f', 'F']) {
        Some(digits) => (digits, true),
        None => (text, false),
    };
    // Rust also reads `inf` and `nan`; here a number begins with a digit or a point.
    let value: f64 = if float {
        f64::from(digits.parse::<f32>().ok()?)
    } else {
        digits.parse().ok()?
    };
    value.is_finite().then_some(Kind::Real(value, float))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Vec<Kind> {
        tokens(text).unwrap().into_iter().map(|t| t.kind).collect()
    }

    #[test]
    fn numbers_of_all_kinds() {
        let expected = [
            Kind::Integer(12),
            Kind::Real(0.5, false),
            Kind::Real(1e-3, false),
            Kind::Real(f64::from(0.1f32), true),
            Kind::Real(2.0, false),
            Kind::End,
        ];
        assert_eq!(kinds("12 .5 1e-3 0.1f 2."), expected);
        assert!(tokens("1.2.3").is_err());
        assert!(tokens("0x10").is_err());
        assert!(tokens("1e999").is_err());
    }

    #[test]
    fn comments_and_operators() {
        let expected = [
            Kind::Word("t".into()),
            Kind::Punct("-="),
            Kind::Integer(1),
            Kind::Punct("-"),
            Kind::Integer(2),
            Kind::End,
        ];
        assert_eq!(kinds("t /* a\n b */ -= 1-2 // end"), expected);
        assert!(tokens("/* open").is_err());
    }
}
