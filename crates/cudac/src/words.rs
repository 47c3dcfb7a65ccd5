//! C++ as words and signs: enough to find a name where it is used, and the bracket that closes another.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// A word or a sign, with its place. Comments, literals and white space are left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// Where it stands.
    pub at: Range<usize>,
    /// It is a word, or a number.
    pub word: bool,
    /// It stands in a preprocessor line.
    pub directive: bool,
}

/// All words and signs of a text.
pub fn tokens(text: &str) -> Vec<Token> {
    let bytes = text.as_bytes();
    let (mut out, mut at) = (Vec::new(), 0);
    let (mut directive, mut fresh) = (false, true);
    let is_word = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b >= 0x80;
    while let Some(&byte) = bytes.get(at) {
        let rest = &text.as_bytes()[at..];
        match byte {
            b'\n' => {
                let before = bytes[..at].strip_suffix(b"\r").unwrap_or(&bytes[..at]);
                let continued = before.ends_with(b"\\");
                directive &= continued;
                fresh = !continued;
                at += 1;
            }
            b if b.is_ascii_whitespace() => at += 1,
            b'/' if rest.starts_with(b"//") => {
                at += line(rest);
            }
            b'/' if rest.starts_with(b"/*") => {
                let end = rest.windows(2).skip(2).position(|w| w == b"*/");
                at += end.map_or(rest.len(), |end| end + 4);
            }
            b'"' | b'\'' => at += literal(rest),
            b'#' if fresh => {
                directive = true;
                fresh = false;
                at += 1;
            }
            b if is_word(b) => {
                let length = rest.iter().take_while(|b| is_word(**b)).count();
                let word = &rest[..length];
                let raw = matches!(word, b"R" | b"u8R" | b"uR" | b"UR" | b"LR");
                if raw && rest.get(length) == Some(&b'"') {
                    at += length + raw_literal(&rest[length..]);
                } else if b.is_ascii_digit() {
                    // A digit separator is no character literal.
                    at += rest
                        .iter()
                        .take_while(|b| is_word(**b) || **b == b'\'')
                        .count();
                } else {
                    out.push(Token {
                        at: at..at + length,
                        word: true,
                        directive,
                    });
                    at += length;
                }
                fresh = false;
            }
            _ => {
                out.push(Token {
                    at: at..at + 1,
                    word: false,
                    directive,
                });
                fresh = false;
                at += 1;
            }
        }
    }
    out
}

/// The rest of a preprocessor line in one line and without comments.
pub fn plain(rest: &str) -> String {
    let mut out = rest.replace("\\\n", " ").replace("\\\r\n", " ");
    while let Some(at) = out.find("/*") {
        let end = out[at..].find("*/").map_or(out.len(), |end| at + end + 2);
        out.replace_range(at..end, " ");
    }
    let end = out.find("//").unwrap_or(out.len());
    out[..end].trim().to_owned()
}

/// The bytes up to the end of the line, with those that a backslash joins to it.
pub fn line(rest: &[u8]) -> usize {
    let is_joined = |at: usize| {
        let mut before = rest[..at].iter().rev();
        before.find(|b| !matches!(b, b' ' | b'\t' | b'\r')) == Some(&b'\\')
    };
    let ends = |at: &usize| rest[*at] == b'\n' && !is_joined(*at);
    (0..rest.len()).find(ends).unwrap_or(rest.len())
}

fn literal(rest: &[u8]) -> usize {
    let quote = rest[0];
    let mut at = 1;
    while let Some(&byte) = rest.get(at) {
        at += 1;
        match byte {
            b'\\' => at += 1,
            b'\n' => return at,
            b if b == quote => return at,
            _ => {}
        }
    }
    rest.len()
}

fn raw_literal(rest: &[u8]) -> usize {
    let open = rest.iter().position(|b| *b == b'(').unwrap_or(rest.len());
    let mut end = vec![b')'];
    end.extend(rest.get(1..open).unwrap_or_default());
    end.push(b'"');
    let found = rest.windows(end.len()).position(|w| w == end);
    found.map_or(rest.len(), |at| at + end.len())
}

/// The macros with parameters that a text defines: the name, and whether the arguments are only handed on, so that it
/// does not matter what stands in them: `#define ONCE(...) f(); __VA_ARGS__`, but no `#__VA_ARGS__`, and no other macro
/// around them, which may count them.
pub(crate) fn macros(text: &str, tokens: &[Token]) -> BTreeMap<String, bool> {
    let word = |at: usize| tokens.get(at).map_or("", |t: &Token| &text[t.at.clone()]);
    let mut bodies = BTreeMap::new();
    for (at, token) in tokens.iter().enumerate() {
        let is_definition = token.directive && word(at) == "define" && word(at + 2) == "(";
        if !is_definition || tokens[at + 1].at.end != tokens[at + 2].at.start {
            continue;
        }
        let end = token.at.start + line(&text.as_bytes()[token.at.start..]);
        let body = (at + 2..tokens.len()).take_while(move |&at| tokens[at].at.start < end);
        bodies.insert(word(at + 1).to_owned(), body);
    }
    let names: BTreeSet<String> = bodies.keys().cloned().collect();
    let looks = |word: &&str| *word == "#" || names.contains(*word);
    let hands_on =
        |body: Vec<&str>| body.starts_with(&["(", ".", ".", ".", ")"]) && !body.iter().any(looks);
    let all = bodies.into_iter();
    all.map(|(name, body)| (name, hands_on(body.map(word).collect())))
        .collect()
}

/// The words of a text.
pub fn words(text: &str) -> BTreeSet<String> {
    let all = tokens(text).into_iter().filter(|t| t.word);
    all.map(|t| text[t.at].to_owned()).collect()
}

/// Functions of the device that generated texts call.
const CALLED: [&str; 2] = ["min", "max"];

/// A generated text in which no word is one of these: an underscore is added. A function of the device keeps its name,
/// in parentheses: a macro with parameters is only one in front of `(`.
pub(crate) fn avoid(text: &str, taken: &BTreeSet<String>) -> String {
    let (mut out, mut from) = (String::new(), 0);
    for token in tokens(text) {
        let word = &text[token.at.clone()];
        if token.word && taken.contains(word) {
            out.push_str(&text[from..token.at.start]);
            out += &match CALLED.contains(&word) {
                true => format!("({word})"),
                false => format!("{word}_"),
            };
            from = token.at.end;
        }
    }
    out + &text[from..]
}

/// The place after the bracket that closes the one at `open`, among these tokens.
pub fn closed(text: &str, tokens: &[Token], open: usize) -> Option<usize> {
    let mut depth = 0;
    for (number, token) in tokens.iter().enumerate().skip(open) {
        match &text[token.at.clone()] {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => {
                depth -= 1;
                if depth == 0 {
                    return Some(number);
                }
            }
            _ => {}
        }
    }
    None
}
