//! What the preprocessor makes of host code: macros, and the lines that are compiled.

use std::collections::{BTreeMap, BTreeSet};

use super::HostCode;
use super::values::{Known, Value};
use warpwright_cudac::macros::{Macro, Macros};
use warpwright_cudac::words::{Token, line, plain, tokens};

/// The parameters of a macro, if it takes any, and its body; nothing for an `#undef`.
type Meaning = Option<(Option<Vec<String>>, String)>;

/// What macros mean so far.
#[derive(Default)]
struct Meanings {
    /// By name: every definition, and whether the last one is surely compiled.
    all: BTreeMap<String, (Vec<Meaning>, bool)>,
    /// Those of nvcc's options, which hold whatever the text says.
    stated: BTreeSet<String>,
}

/// An `#if` that is open.
struct Branch {
    /// Is this branch compiled, and was one before it? None where nobody knows.
    now: Option<bool>,
    before: Option<bool>,
}

/// Macros that are defined, or are not, wherever host code is compiled for Linux.
const OWN: [(&str, bool); 11] = [
    ("__CUDACC__", true),
    ("__NVCC__", true),
    ("__cplusplus", true),
    ("__linux__", true),
    ("__APPLE__", false),
    ("_WIN32", false),
    ("_WIN64", false),
    ("_MSC_VER", false),
    ("__HIPCC__", false),
    ("__HIP_PLATFORM_AMD__", false),
    ("__CUDACC_RTC__", false),
];

/// The tokens of a text without those that are not compiled for sure, and the macros of it, of its headers and of nvcc's
/// options that mean one thing all over them, and those that do something.
pub(super) fn compiled(
    text: &str,
    options: &[String],
    headers: &[String],
) -> (Vec<Token>, Macros, Acting) {
    let mut meanings = Meanings::stated(options);
    // Those that others include are last.
    for header in headers.iter().rev() {
        meanings.read(header);
    }
    let kept = meanings.read(text);
    let acting = meanings.acting();
    (kept, meanings.macros(false), acting)
}

/// Macros that do more than stand for a number.
#[derive(Debug, Default)]
pub(super) struct Acting {
    /// Names of variables that they write.
    pub(super) written: BTreeSet<String>,
    /// They write what they are handed.
    pub(super) writing: BTreeSet<String>,
    /// They launch something.
    pub(super) launching: BTreeSet<String>,
}

/// The words that the body of a macro writes, or hands on by their address.
fn written(body: &str) -> BTreeSet<&str> {
    let all = tokens(body);
    let word = |at: usize| all.get(at).map_or("", |t: &Token| &body[t.at.clone()]);
    let before = |at: usize, n: usize| at.checked_sub(n).map_or("", word);
    let is_assigned = |at: usize| match (word(at), word(at + 1), word(at + 2)) {
        ("=", second, _) => second != "=",
        ("+" | "-" | "*" | "/" | "%" | "|" | "&" | "^", "=", third) => third != "=",
        ("+", "+", _) | ("-", "-", _) | ("<", "<", "=") | (">", ">", "=") => true,
        _ => false,
    };
    let is_written = |&at: &usize| {
        // `(v).x = …`
        let mut end = at + 1;
        while word(end) == ")" || word(end) == "." && word(end + 1) != "." {
            end += if word(end) == ")" { 1 } else { 2 };
        }
        let signs = [before(at, 2), before(at, 1)];
        is_assigned(end) || matches!(signs, ["+", "+"] | ["-", "-"] | ["(" | ",", "&"])
    };
    let own = (0..all.len()).filter(|&at| all[at].word).filter(is_written);
    own.map(word).collect()
}

fn both(a: Option<bool>, b: Option<bool>) -> Option<bool> {
    match (a, b) {
        (Some(false), _) | (_, Some(false)) => Some(false),
        (Some(true), Some(true)) => Some(true),
        _ => None,
    }
}

fn not(truth: Option<bool>) -> Option<bool> {
    truth.map(|truth| !truth)
}

impl Meanings {
    /// Those of `-DNAME`, `-DNAME=VALUE` and `-UNAME`.
    fn stated(options: &[String]) -> Meanings {
        let mut all = Meanings::default();
        for (at, option) in options.iter().enumerate() {
            let rest = option
                .strip_prefix("-D")
                .map(|rest| (rest, true))
                .or_else(|| option.strip_prefix("-U").map(|rest| (rest, false)));
            let Some((rest, is_definition)) = rest else {
                continue;
            };
            let rest = match rest {
                "" => options.get(at + 1).map_or("", String::as_str),
                rest => rest,
            };
            let (name, value) = rest.split_once('=').unwrap_or((rest, "1"));
            let meaning = is_definition.then(|| (None, value.to_owned()));
            all.all.insert(name.to_owned(), (vec![meaning], true));
            all.stated.insert(name.to_owned());
        }
        all
    }

    /// Reads the directives of a text, and gives the tokens that are or may be compiled.
    fn read(&mut self, text: &str) -> Vec<Token> {
        let all = tokens(text);
        let word = |at: usize| all.get(at).map_or("", |t| &text[t.at.clone()]);
        let (mut open, mut kept) = (Vec::<Branch>::new(), Vec::new());
        for (at, token) in all.iter().enumerate() {
            let before = text[..token.at.start].trim_end_matches([' ', '\t']);
            let is_first = token.directive && before.ends_with('#');
            let around = |open: &[Branch]| {
                let all = open.iter().map(|branch| branch.now);
                all.reduce(both).unwrap_or(Some(true))
            };
            if is_first {
                let end = token.at.start + line(&text.as_bytes()[token.at.start..]);
                let rest = text.get(token.at.end..end).unwrap_or("");
                match word(at) {
                    start @ ("if" | "ifdef" | "ifndef") => {
                        let now = match around(&open) {
                            Some(false) => Some(false),
                            _ => self.holds(start, rest),
                        };
                        open.push(Branch { now, before: now });
                    }
                    start @ ("else" | "elif" | "elifdef" | "elifndef") => {
                        if let Some(mut branch) = open.pop() {
                            let own = match start {
                                "else" => Some(true),
                                _ if branch.before == Some(true) => Some(false),
                                _ => self.holds(&start["el".len()..], rest),
                            };
                            branch.now = both(not(branch.before), own);
                            branch.before = not(both(not(branch.before), not(own)));
                            open.push(branch);
                        }
                    }
                    "endif" => {
                        open.pop();
                    }
                    "define" | "undef" => match around(&open) {
                        Some(false) => {}
                        is_sure => self.define(text, &all, at, is_sure.is_some()),
                    },
                    _ => {}
                }
            }
            if around(&open) != Some(false) {
                kept.push(token.clone());
            }
        }
        kept
    }

    /// The directive at a token, `#define` or `#undef`.
    fn define(&mut self, text: &str, tokens: &[Token], at: usize, is_sure: bool) {
        let word = |at: usize| tokens.get(at).map_or("", |t: &Token| &text[t.at.clone()]);
        let from = tokens[at].at.start;
        let end = from + line(&text.as_bytes()[from..]);
        let name = tokens.get(at + 1).filter(|name| name.at.end <= end);
        let Some(name) = name.filter(|_| !self.stated.contains(word(at + 1))) else {
            return;
        };
        let meaning = || {
            let has_parameters = tokens
                .get(at + 2)
                .is_some_and(|t| t.at.start == name.at.end)
                && word(at + 2) == "(";
            let close = (at + 2..tokens.len()).find(|&at| word(at) == ")");
            let (parameters, from) = match (has_parameters, close) {
                (true, Some(close)) => {
                    let names = (at + 3..close).filter(|&at| tokens[at].word);
                    let names = names.map(|at| word(at).to_owned()).collect();
                    (Some(names), tokens[close].at.end)
                }
                _ => (None, name.at.end),
            };
            (parameters, plain(text.get(from..end).unwrap_or("")))
        };
        let meaning = (word(at) == "define").then(meaning);
        let known = self.all.entry(word(at + 1).to_owned()).or_default();
        known.0.push(meaning);
        known.1 = is_sure;
    }

    /// Is a name defined here?
    fn is_defined(&self, name: &str) -> Option<bool> {
        match self.all.get(name) {
            Some((_, false)) => None,
            Some((meanings, true)) => Some(meanings.last().is_some_and(Option::is_some)),
            None => match OWN.iter().find(|(own, _)| *own == name) {
                Some((_, is_defined)) => Some(*is_defined),
                // The compiler's and the toolkit's own.
                None if name.starts_with('_') || name.starts_with("CUDA") => None,
                None => Some(false),
            },
        }
    }

    /// Does the condition of an `#if`, `#ifdef` or `#ifndef` hold?
    fn holds(&self, directive: &str, rest: &str) -> Option<bool> {
        let rest = plain(rest);
        let name = |text: &str| {
            let end = text.find(|c: char| c != '_' && !c.is_alphanumeric());
            text[..end.unwrap_or(text.len())].to_owned()
        };
        match directive {
            "ifdef" => return self.is_defined(&name(&rest)),
            "ifndef" => return not(self.is_defined(&name(&rest))),
            _ => {}
        }
        // `defined X` and `defined(X)` as what they are.
        let (mut out, mut rest) = (String::new(), &*rest);
        while let Some(at) = rest.find("defined") {
            let behind = rest[at + "defined".len()..].trim_start();
            let inner = behind.strip_prefix('(').map(str::trim_start);
            let own = name(inner.unwrap_or(behind));
            out += &rest[..at];
            out += match self.is_defined(&own) {
                Some(true) => "1",
                Some(false) => "0",
                None => "__unknown",
            };
            rest = &inner.unwrap_or(behind)[own.len()..];
            if inner.is_some() {
                rest = rest.trim_start().strip_prefix(')')?;
            }
        }
        out += rest;
        let code = HostCode::of("", Vec::new(), (self.macros(true), Acting::default()));
        let number = code.value(&out, 0, &Known::default());
        Some(number.and_then(Value::number)?.is_true())
    }

    /// Those that do something.
    fn acting(&self) -> Acting {
        let mut found = Acting::default();
        for (name, (meanings, _)) in &self.all {
            for (parameters, body) in meanings.iter().flatten() {
                let parameters = parameters.as_deref().unwrap_or_default();
                let is_handed = |word: &&str| parameters.iter().any(|own| own == word);
                let (handed, own): (Vec<&str>, Vec<&str>) =
                    written(body).into_iter().partition(is_handed);
                found.written.extend(own.into_iter().map(str::to_owned));
                if !handed.is_empty() {
                    found.writing.insert(name.clone());
                }
                if body.contains("<<<") {
                    found.launching.insert(name.clone());
                }
            }
        }
        found
    }

    /// As macros: what they mean now, or else those that mean one thing all over.
    fn macros(&self, is_now: bool) -> Macros {
        let one = |(name, (meanings, is_sure)): (&String, &(Vec<Meaning>, bool))| {
            let mut all = meanings.clone();
            all.dedup();
            let is_one = if is_now { *is_sure } else { all.len() == 1 };
            let (parameters, body) = all.pop()?.filter(|_| is_one)?;
            Some(Macro {
                name: name.clone(),
                parameters,
                body: Some(body),
                span: 0..0,
                conditional: false,
                foreign: false,
            })
        };
        Macros::new(self.all.iter().filter_map(one).collect())
    }
}
