//! Macros that stand for statements: `#define STEP s = s * v;`, used as `STEP STEP STEP`.
//!
//! The grammar, which expands nothing, cannot tell where such a use ends. So it sees `;` in the place of a blank behind
//! it: no byte moves, and what stands there is a statement whose meaning is asked for where it is executed.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::ast::Stmt;
use crate::diag::Span;
use crate::lower::Lower;
use crate::macros::Macros;
use crate::words::tokens;
use crate::{ambiguous, tree};

/// Names that stand for statements, as the `#define` lines of a text have it.
pub(crate) fn words_of(text: &str) -> BTreeSet<String> {
    let mut all = Vec::new();
    let joined = text.replace("\\\r\n", " ").replace("\\\n", " ");
    for line in joined.lines() {
        let Some(rest) = line.trim_start().strip_prefix('#') else {
            continue;
        };
        let Some(rest) = rest.trim_start().strip_prefix("define") else {
            continue;
        };
        let rest = rest.trim();
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let (name, body) = rest.split_at(rest.find(|c| !is_word(c)).unwrap_or(rest.len()));
        if body.starts_with([' ', '\t']) {
            all.push((name.to_owned(), body.trim().to_owned()));
        }
    }
    let mut found = BTreeSet::new();
    loop {
        let before = found.len();
        for (name, body) in &all {
            let last = body.rsplit(|c: char| c.is_whitespace() || c == ';').next();
            if body.ends_with([';', '}']) || last.is_some_and(|word| found.contains(word)) {
                found.insert(name.clone());
            }
        }
        if found.len() == before {
            return found;
        }
    }
}

/// A text with `;` behind these words where a blank stands there, outside of preprocessor lines.
pub(crate) fn separated(text: &Arc<str>, words: &BTreeSet<String>) -> Arc<str> {
    if words.is_empty() {
        return Arc::clone(text);
    }
    let mut bytes = text.as_bytes().to_vec();
    let all = tokens(text);
    let said = |at: usize| all.get(at).map_or("", |token| &text[token.at.clone()]);
    for (number, token) in all.iter().enumerate() {
        let (before, behind) = (said(number.wrapping_sub(1)), said(number + 1));
        let begins = matches!(before, ";" | "{" | "}" | ")" | "else") || words.contains(before);
        let ends = matches!(behind, "{" | "}") || all.get(number + 1).is_some_and(|t| t.word);
        if token.directive || !begins || !ends || !words.contains(said(number)) {
            continue;
        }
        let mut between = token.at.end..all[number + 1].at.start;
        if let Some(at) = between.find(|at| matches!(bytes[*at], b' ' | b'\t')) {
            bytes[at] = b';';
        }
    }
    // Only blanks became other signs, so this is text as before.
    String::from_utf8(bytes).map_or_else(|_| Arc::clone(text), Arc::from)
}

/// The statements of a macro's body, all at one place.
pub(crate) fn parsed(
    body: &str,
    place: Span,
    macros: &Macros,
    is_type: impl Fn(&str) -> bool,
) -> Option<Vec<Stmt>> {
    let defined: String = macros
        .iter()
        .filter(|m| m.parameters.is_none())
        .filter_map(|m| Some(format!("#define {} {}\n", m.name, m.body.as_ref()?)))
        .collect();
    let whole = Arc::from(format!("void f() {{ {body} }}"));
    let whole = separated(&whole, &words_of(&defined));
    let all = 0..whole.len();
    let clear = ambiguous::resolved(&whole, &[all], is_type, |_| false);
    let whole = clear.as_deref().unwrap_or(&whole);
    let tree = tree(whole)?;
    let root = tree.root_node();
    if root.has_error() || root.named_child_count() != 1 {
        return None;
    }
    let body = root.named_child(0)?.child_by_field_name("body")?;
    let block = Lower::at(whole, place).block(body).ok()?;
    Some(block.statements)
}
