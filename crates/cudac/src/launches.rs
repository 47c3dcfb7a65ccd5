//! Where a text launches a kernel.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::names::among;
use crate::replace::{Note, Use};
use crate::words::{Token, closed, macros, tokens};

/// A launch that can be written anew.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    /// How it is written.
    pub form: Form,
    /// Its grid and its block, and its dynamic shared memory if that is stated.
    pub config: Vec<Range<usize>>,
    /// The template's arguments behind the name.
    pub arguments: Option<Range<usize>>,
    /// What is handed over, where that stands in the launch.
    pub parameters: Option<Range<usize>>,
    /// The array of pointers to what is handed over.
    pub array: Option<Range<usize>>,
}

/// How a launch is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Form {
    /// `k<<<g, b[, s[, stream]]>>>(…)`, perhaps with `<T>` behind the name: the place behind the name, those of `<<<`
    /// and of `>>>(`, what is missing, and whether there are arguments.
    #[allow(missing_docs)]
    Chevrons {
        name: usize,
        open: Range<usize>,
        close: Range<usize>,
        missing: usize,
        arguments: bool,
    },
    /// `cudaLaunchKernel((void*)k, g, b, arguments, s, stream)`: from the name to the comma behind `k`.
    Function(Range<usize>),
    /// `cudaLaunchCooperativeKernel`, or one with fewer arguments: it is not written anew. Where it begins.
    Other(usize),
}

impl Launch {
    /// Where it begins.
    pub fn start(&self) -> usize {
        match &self.form {
            Form::Chevrons { name, .. } => *name,
            Form::Function(range) => range.start,
            Form::Other(start) => *start,
        }
    }
}

/// `__global__ void k(…);` in front of the definition, outside of functions: the place behind it, and its parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Declaration {
    pub(crate) end: usize,
    pub(crate) parameters: Range<usize>,
}

/// What a file does with a kernel.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// Launches behind the first declaration or the definition.
    pub(crate) launches: Vec<Launch>,
    /// Other uses.
    pub(crate) notes: Vec<Note>,
    /// The first declaration.
    pub(crate) declaration: Option<Declaration>,
}

/// All uses of a kernel that is defined at `own`.
///
/// Those in front of the definition can be written anew behind a declaration, if `may_declare`.
pub(crate) fn find(text: &str, kernel: &str, own: &Range<usize>, may_declare: bool) -> Found {
    let tokens = tokens(text);
    let macros = macros(text, &tokens);
    let mut all = Found::default();
    for (number, token) in tokens.iter().enumerate() {
        let is_other = !token.word || &text[token.at.clone()] != kernel;
        if is_other || own.contains(&token.at.start) {
            continue;
        }
        if let Some(declaration) = declaration(text, &tokens, number) {
            let is_first = may_declare && all.declaration.is_none() && token.at.start < own.start;
            if is_first && !token.directive && is_outside(text, &tokens, number) {
                all.declaration = Some(declaration);
            }
            continue;
        }
        let from = all.declaration.as_ref().map_or(own.start, |d| d.end);
        let found = launch(text, &tokens, number);
        let line = text[..token.at.start].matches('\n').count() + 1;
        let mut note = |what| all.notes.push(Note { line, what });
        match found {
            None => note(Use::Other),
            Some(_) if token.directive || is_counted(text, &tokens, number, &macros) => {
                note(Use::InMacro);
            }
            Some(Launch {
                form: Form::Other(_),
                ..
            }) => note(Use::Other),
            Some(_) if token.at.start < from => note(Use::BeforeDefinition),
            Some(launch) => all.launches.push(launch),
        }
    }
    all
}

/// The launch of the kernel that is named at a token.
pub fn launch(text: &str, tokens: &[Token], at: usize) -> Option<Launch> {
    chevrons(text, tokens, at).or_else(|| function(text, tokens, at))
}

/// Does a token stand in the arguments of a macro that may print or count them? The chevrons of a launch are no
/// brackets to the preprocessor: `M(k<<<g, b>>>(p))` has two arguments.
fn is_counted(text: &str, tokens: &[Token], at: usize, macros: &BTreeMap<String, bool>) -> bool {
    let mut depth = 0_u32;
    for number in (1..at).rev().filter(|&number| !tokens[number].directive) {
        match word(text, tokens, number) {
            ")" => depth += 1,
            "(" if depth > 0 => depth -= 1,
            "(" if macros.get(word(text, tokens, number - 1)) == Some(&false) => return true,
            _ => {}
        }
    }
    false
}

/// Is a token in no braces but those of namespaces and of `extern "C"`?
fn is_outside(text: &str, tokens: &[Token], at: usize) -> bool {
    let mut open: Vec<bool> = Vec::new();
    for number in 0..at {
        match word(text, tokens, number) {
            _ if tokens[number].directive => {}
            "{" => open.push(opens_namespace(text, tokens, number)),
            "}" => {
                open.pop();
            }
            _ => {}
        }
    }
    open.into_iter().all(|is_namespace| is_namespace)
}

/// `namespace a::b {`, or `extern "C" {`.
fn opens_namespace(text: &str, tokens: &[Token], brace: usize) -> bool {
    let mut before = (0..brace).rev().map(|number| word(text, tokens, number));
    let mut name = before.by_ref().skip_while(|word| {
        *word == ":"
            || *word != "namespace"
                && word.starts_with(|c: char| c.is_alphabetic() || c == '_')
                && *word != "extern"
    });
    matches!(name.next(), Some("namespace" | "extern"))
}

fn word<'a>(text: &'a str, tokens: &[Token], at: usize) -> &'a str {
    tokens.get(at).map_or("", |t| &text[t.at.clone()])
}

/// `__global__ void k(…);`
fn declaration(text: &str, tokens: &[Token], at: usize) -> Option<Declaration> {
    let next = behind_template(text, tokens, at).unwrap_or(at + 1);
    if word(text, tokens, next) != "(" || at == 0 || word(text, tokens, at - 1) != "void" {
        return None;
    }
    let close = closed(text, tokens, next)?;
    (word(text, tokens, close + 1) == ";").then(|| Declaration {
        end: tokens[close + 1].at.end,
        parameters: tokens[next].at.end..tokens[close].at.start,
    })
}

/// The token behind `k<…>`; nothing where `k` has no template's arguments.
pub fn behind_template(text: &str, tokens: &[Token], at: usize) -> Option<usize> {
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
    let behind = behind_template(text, tokens, at);
    let next = behind.unwrap_or(at + 1);
    let open = tokens.get(next)?.at.start;
    if !text[open..].starts_with("<<<") {
        return None;
    }
    let (mut number, mut from, mut config) = (next + 3, open + 3, Vec::new());
    loop {
        let token = tokens.get(number)?;
        match &text[token.at.clone()] {
            "(" | "[" | "{" => number = closed(text, tokens, number)?,
            "," => {
                config.push(from..token.at.start);
                from = token.at.end;
            }
            ">" if text[token.at.start..].starts_with(">>>") => break,
            ";" | ")" | "]" | "}" => return None,
            _ => {}
        }
        number += 1;
    }
    let close = tokens.get(number)?.at.start;
    let commas = config.len();
    if word(text, tokens, number + 3) != "(" || !(1..=3).contains(&commas) {
        return None;
    }
    config.push(from..close);
    let end = closed(text, tokens, number + 3)?;
    let form = Form::Chevrons {
        name: tokens[at].at.end,
        open: open..open + 3,
        close: close..tokens.get(number + 3)?.at.end,
        missing: 3 - commas,
        arguments: end > number + 4,
    };
    config.truncate(3);
    Some(Launch {
        form,
        config,
        parameters: Some(tokens[number + 3].at.end..tokens[end].at.start),
        arguments: behind.map(|behind| tokens[at + 1].at.end..tokens[behind - 1].at.start),
        array: None,
    })
}

fn function(text: &str, tokens: &[Token], at: usize) -> Option<Launch> {
    let casts = "( ) * & < > const void char reinterpret_cast static_cast";
    let mut before = at.checked_sub(1)?;
    while among(casts, word(text, tokens, before)) {
        before = before.checked_sub(1)?;
    }
    let function = word(text, tokens, before);
    let is_it = ["cudaLaunchKernel", "cudaLaunchCooperativeKernel"].contains(&function);
    if !is_it || word(text, tokens, before + 1) != "(" {
        return None;
    }
    let mut comma = at + 1;
    while word(text, tokens, comma) == ")" {
        comma += 1;
    }
    if word(text, tokens, comma) != "," {
        return None;
    }
    // Five more arguments, of which the last two may be left out.
    let end = closed(text, tokens, before + 1)?;
    let (mut number, mut from, mut parts) = (comma + 1, tokens[comma].at.end, Vec::new());
    while number < end {
        match word(text, tokens, number) {
            "(" | "[" | "{" => number = closed(text, tokens, number)?,
            "," => {
                parts.push(from..tokens[number].at.start);
                from = tokens[number].at.end;
            }
            _ => {}
        }
        number += 1;
    }
    parts.push(from..tokens[end].at.start);
    let is_whole = function == "cudaLaunchKernel" && parts.len() == 5;
    let mut parts = parts.into_iter();
    let (grid, block, array) = (parts.next()?, parts.next()?, parts.next()?);
    Some(Launch {
        form: match is_whole {
            true => Form::Function(tokens[before].at.start..tokens[comma].at.end),
            false => Form::Other(tokens[before].at.start),
        },
        config: [Some(grid), Some(block), parts.next()]
            .into_iter()
            .flatten()
            .collect(),
        arguments: None,
        parameters: None,
        array: Some(array),
    })
}
