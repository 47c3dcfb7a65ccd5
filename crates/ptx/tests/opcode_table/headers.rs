//! The inline assembly of NVIDIA's headers.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use warpwright_ptx::opcode::Shape;
use warpwright_toolkit::testing::{require_toolkit, skip};

/// An instruction found in a header.
pub struct Instruction {
    pub opcode: String,
    /// How each operand is written, where that can be told.
    pub operands: Option<Vec<Shape>>,
    /// File that has it.
    pub file: String,
}

/// One instruction for each distinct opcode and shape of operands in the toolkit's headers, or
/// `None` when there are no headers.
pub fn instructions(test: &str) -> Option<Vec<Instruction>> {
    let toolkit = require_toolkit(test)?;
    let ptxas = toolkit
        .ptxas()
        .map_err(|e| skip(test, &e.to_string()))
        .ok()?;
    let bin = ptxas.tool().path.parent()?;
    let include = bin.parent()?.join("include");
    if !include.is_dir() {
        skip(test, &format!("{} has no headers", include.display()));
        return None;
    }
    let mut files = Vec::new();
    collect(&include, &mut files);
    files.sort();
    let mut found = BTreeMap::new();
    for path in files {
        let Ok(bytes) = std::fs::read(&path) else {
            continue;
        };
        let file = path
            .strip_prefix(&include)
            .unwrap_or(&path)
            .display()
            .to_string();
        for text in assembly(&String::from_utf8_lossy(&bytes)) {
            for statement in text.split(';') {
                if let Some((opcode, operands)) = instruction(statement) {
                    found
                        .entry((opcode, operands))
                        .or_insert_with(|| file.clone());
                }
            }
        }
    }
    let make = |((opcode, operands), file)| Instruction {
        opcode,
        operands,
        file,
    };
    Some(found.into_iter().map(make).collect())
}

fn collect(dir: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, files);
        } else if path
            .extension()
            .is_some_and(|e| ["h", "hpp", "cuh", "inl"].iter().any(|x| e == *x))
        {
            files.push(path);
        }
    }
}

/// The texts of all `asm` statements that consist of string literals alone.
fn assembly(source: &str) -> Vec<String> {
    let mut texts = Vec::new();
    let mut rest = source;
    while let Some(at) = rest.find("asm") {
        let before = rest[..at].chars().next_back();
        rest = &rest[at + 3..];
        if before.is_some_and(|c| c.is_alphanumeric()) {
            continue;
        }
        let mut tail = rest.trim_start_matches('_').trim_start();
        for word in ["volatile", "__volatile__", "__volatile"] {
            tail = tail.strip_prefix(word).unwrap_or(tail).trim_start();
        }
        let Some(tail) = tail.strip_prefix('(') else {
            continue;
        };
        let (text, after) = literals(tail);
        // Text pasted together with macros cannot be read without a preprocessor.
        if after.trim_start().starts_with([':', ')']) {
            texts.push(text);
        }
    }
    texts
}

/// Adjacent string literals, joined; and what follows.
fn literals(mut rest: &str) -> (String, &str) {
    let mut text = String::new();
    while let Some(inside) = rest.trim_start().strip_prefix('"') {
        let mut chars = inside.char_indices();
        let mut end = inside.len();
        while let Some((i, c)) = chars.next() {
            match c {
                '"' => {
                    end = i;
                    break;
                }
                '\\' => match chars.next() {
                    Some((_, 'n' | 't')) => text.push(' '),
                    Some((_, c)) => text.push(c),
                    None => {}
                },
                c => text.push(c),
            }
        }
        rest = inside.get(end + 1..).unwrap_or_default();
    }
    (text, rest)
}

/// Opcode and number of operands of one statement; `None` for declarations, labels and the like.
fn instruction(statement: &str) -> Option<(String, Option<Vec<Shape>>)> {
    let mut text = statement.split("//").next()?.trim();
    text = text.trim_start_matches(['{', '}']).trim_start();
    if let Some(rest) = text.strip_prefix('@') {
        text = rest.split_once(char::is_whitespace)?.1.trim_start();
    }
    let end = text.find(|c: char| !(c.is_alphanumeric() || "._:".contains(c)));
    let (opcode, operands) = text.split_at(end.unwrap_or(text.len()));
    let word = opcode.split('.').next()?;
    let is_word = word.starts_with(|c: char| c.is_ascii_lowercase()) && !opcode.ends_with(':');
    // Labels and texts for a host compiler have no modifiers.
    if !is_word || !opcode.contains('.') {
        return None;
    }
    Some((opcode.to_owned(), brackets(operands)))
}

/// Cuts operands at the outer commas; `None` if brackets do not match.
fn brackets(text: &str) -> Option<Vec<Shape>> {
    let text = text.trim().trim_end_matches('}').trim_end();
    // The brace that closes a `{ … }` scope has gone; one that closes a vector must come back.
    let missing =
        text.matches('{').count() - text.matches('}').count().min(text.matches('{').count());
    let text = text.to_owned() + &"}".repeat(missing);
    let mut depth = 0i32;
    let mut operands = Vec::new();
    let mut begins = true;
    for c in text.chars().filter(|c| !c.is_whitespace()) {
        if begins {
            operands.push(match c {
                '[' => Shape::Bracketed,
                '{' => Shape::Vector,
                _ => Shape::Plain,
            });
        }
        begins = c == ',' && depth == 0;
        match c {
            '[' | '{' | '(' => depth += 1,
            ']' | '}' | ')' => depth -= 1,
            _ => {}
        }
    }
    (depth == 0).then_some(operands)
}
