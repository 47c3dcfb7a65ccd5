//! Where a file launches a kernel.

use std::ops::Range;

use super::words::{Token, closed, tokens};
use super::{Note, Use};

/// A launch that can be written anew.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Launch {
    /// `k<<<g, b[, s[, stream]]>>>(…)`, perhaps with `<T>` behind the name: the place behind the name, those of `<<<`
    /// and of `>>>(`, what is missing, and whether there are arguments.
    Chevrons {
        name: usize,
        open: Range<usize>,
        close: Range<usize>,
        missing: usize,
        arguments: bool,
    },
    /// `cudaLaunchKernel((void*)k, g, b, arguments, s, stream)`: from the name to the comma behind `k`.
    Function(Range<usize>),
}

/// All launches of a kernel behind the place `from`, and other uses of its name.
pub(super) fn find(text: &str, kernel: &str, own: &Range<usize>) -> (Vec<Launch>, Vec<Note>) {
    let tokens = tokens(text);
    let (mut launches, mut notes) = (Vec::new(), Vec::new());
    for (number, token) in tokens.iter().enumerate() {
        let is_other = !token.word || &text[token.at.clone()] != kernel;
        if is_other || own.contains(&token.at.start) {
            continue;
        }
        if is_declaration(text, &tokens, number) {
            continue;
        }
        let found = chevrons(text, &tokens, number).or_else(|| function(text, &tokens, number));
        let line = text[..token.at.start].matches('\n').count() + 1;
        let mut note = |what| notes.push(Note { line, what });
        match found {
            None => note(Use::Other),
            Some(_) if token.directive => note(Use::InMacro),
            Some(_) if token.at.start < own.start => note(Use::BeforeDefinition),
            Some(launch) => launches.push(launch),
        }
    }
    (launches, notes)
}

fn word<'a>(text: &'a str, tokens: &[Token], at: usize) -> &'a str {
    tokens.get(at).map_or("", |t| &text[t.at.clone()])
}

/// `__global__ void k(…);`
fn is_declaration(text: &str, tokens: &[Token], at: usize) -> bool {
    let next = behind_template(text, tokens, at).unwrap_or(at + 1);
    if word(text, tokens, next) != "(" || at == 0 || word(text, tokens, at - 1) != "void" {
        return false;
    }
    let end = closed(text, tokens, next);
    end.is_some_and(|end| word(text, tokens, end + 1) == ";")
}

/// The token behind `k<…>`; nothing where `k` has no template's arguments.
fn behind_template(text: &str, tokens: &[Token], at: usize) -> Option<usize> {
    let open = tokens.get(at + 1)?.at.start;
    if !text[open..].starts_with('<') || text[open..].starts_with("<<") {
        return None;
    }
    let (mut number, mut depth) = (at + 2, 1);
    while depth > 0 {
        match word(text, tokens, number) {
            "(" | "[" | "{" => number = closed(text, tokens, number)?,
            "<" => depth += 1,
            ">" => depth -= 1,
            ";" | ")" | "]" | "}" | "" => return None,
            _ => {}
        }
        number += 1;
    }
    Some(number)
}

fn chevrons(text: &str, tokens: &[Token], at: usize) -> Option<Launch> {
    let next = behind_template(text, tokens, at).unwrap_or(at + 1);
    let open = tokens.get(next)?.at.start;
    if !text[open..].starts_with("<<<") {
        return None;
    }
    let (mut number, mut commas) = (next + 3, 0);
    loop {
        let token = tokens.get(number)?;
        match &text[token.at.clone()] {
            "(" | "[" | "{" => number = closed(text, tokens, number)?,
            "," => commas += 1,
            ">" if text[token.at.start..].starts_with(">>>") => break,
            ";" | ")" | "]" | "}" => return None,
            _ => {}
        }
        number += 1;
    }
    let close = tokens.get(number)?.at.start;
    if word(text, tokens, number + 3) != "(" || !(1..=3).contains(&commas) {
        return None;
    }
    let end = closed(text, tokens, number + 3)?;
    Some(Launch::Chevrons {
        name: tokens[at].at.end,
        open: open..open + 3,
        close: close..tokens.get(number + 3)?.at.end,
        missing: 3 - commas,
        arguments: end > number + 4,
    })
}

fn function(text: &str, tokens: &[Token], at: usize) -> Option<Launch> {
    let casts = [
        "(",
        ")",
        "*",
        "&",
        "<",
        ">",
        "const",
        "void",
        "char",
        "reinterpret_cast",
        "static_cast",
    ];
    let mut before = at.checked_sub(1)?;
    while casts.contains(&word(text, tokens, before)) {
        before = before.checked_sub(1)?;
    }
    if word(text, tokens, before) != "cudaLaunchKernel" || word(text, tokens, before + 1) != "(" {
        return None;
    }
    let mut comma = at + 1;
    while word(text, tokens, comma) == ")" {
        comma += 1;
    }
    if word(text, tokens, comma) != "," {
        return None;
    }
    // Five more arguments.
    let end = closed(text, tokens, before + 1)?;
    let (mut number, mut commas) = (comma + 1, 0);
    while number < end {
        match word(text, tokens, number) {
            "(" | "[" | "{" => number = closed(text, tokens, number)?,
            "," => commas += 1,
            _ => {}
        }
        number += 1;
    }
    (commas == 4).then(|| Launch::Function(tokens[before].at.start..tokens[comma].at.end))
}
