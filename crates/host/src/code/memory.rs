//! The memory that a launch hands over: what the code asks for by the name of the pointer.

use std::collections::BTreeSet;

use super::HostCode;
use super::amount::Amount;
use super::described::is_name;
use super::names::{Declaration, Kind};
use super::values::{Change, Known, inside};
use warpwright_cudac::words::tokens;

/// Memory of a pointer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Memory {
    /// What tells it from other memory.
    pub id: String,
    /// How much of it there is, if the code says so.
    pub bytes: Option<Amount>,
    /// The pointer points behind its start.
    pub is_moved: bool,
}

/// Functions that hand out memory on the device, with the place of the size among their arguments.
const ASKS: [(&str, usize); 5] = [
    ("cudaMalloc", 1),
    ("cudaMallocManaged", 1),
    ("cudaMallocAsync", 1),
    ("cudaMallocFromPoolAsync", 1),
    ("cudaMallocPitch", 1),
];

/// A pointer as it is written: its name, what stands behind that, and whether something is added to it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Pointer {
    name: String,
    path: String,
    is_moved: bool,
    /// Its elements may be of another type than the pointer's own.
    is_cast: bool,
}

/// Reads casts, `.data()` and the like off a pointer.
fn pointer(text: &str) -> Option<Pointer> {
    let mut text = text.trim();
    let (mut is_moved, mut sees_cast) = (false, false);
    for _ in 0..16 {
        let before = text;
        for suffix in [".data()", ".get()", ".data().get()", ".begin()"] {
            text = text.strip_suffix(suffix).unwrap_or(text).trim();
        }
        text = text.strip_prefix("this->").unwrap_or(text);
        if let Some(inner) = inside(text).filter(|_| text.starts_with('(')) {
            text = inner.trim();
        }
        let all = tokens(text);
        let word = |at: usize| all.get(at).map_or("", |t| &text[t.at.clone()]);
        if word(0) == "(" {
            // A cast.
            let close = warpwright_cudac::words::closed(text, &all, 0)?;
            let is_type =
                (1..close).all(|at| all[at].word || matches!(word(at), "*" | ":" | "<" | ">"));
            if is_type && close > 1 && close + 1 < all.len() {
                text = text[all[close].at.end..].trim();
                sees_cast = true;
            }
        }
        let all = tokens(text);
        let word = |at: usize| all.get(at).map_or("", |t| &text[t.at.clone()]);
        let open = (0..all.len()).find(|&at| word(at) == "(");
        if let Some(open) = open {
            let is_cast = (0..open).any(|at| {
                matches!(
                    word(at),
                    "static_cast" | "reinterpret_cast" | "const_cast" | "raw_pointer_cast"
                )
            });
            if is_cast && warpwright_cudac::words::closed(text, &all, open)? + 1 == all.len() {
                sees_cast |=
                    (0..open).any(|at| matches!(word(at), "static_cast" | "reinterpret_cast"));
                text = inside(&text[all[open].at.start..])?.trim();
            }
        }
        // `&x[0]`
        if let Some(of) = text.strip_prefix('&').map(str::trim)
            && let Some((base, index)) = of.strip_suffix(']').and_then(|of| of.rsplit_once('['))
        {
            is_moved |= index.trim() != "0";
            text = base.trim();
        }
        if text == before {
            break;
        }
    }
    let all = tokens(text);
    let word = |at: usize| all.get(at).map_or("", |t| &text[t.at.clone()]);
    let mut end = 1;
    if !is_name(word(0)) {
        return None;
    }
    loop {
        match (word(end), word(end + 1)) {
            (".", name) if is_name(name) => end += 2,
            ("-", ">") if is_name(word(end + 2)) => end += 3,
            ("[", _) => end = warpwright_cudac::words::closed(text, &all, end)? + 1,
            _ => break,
        }
    }
    match word(end) {
        "" => {}
        "+" => is_moved = true,
        _ => return None,
    }
    let path = text[all[0].at.end..all[end - 1].at.end].to_owned();
    let path = path.replace("->", ".").replace(' ', "");
    Some(Pointer {
        name: word(0).to_owned(),
        path,
        is_moved,
        is_cast: sees_cast,
    })
}

impl HostCode<'_> {
    /// The memory of a pointer that stands at a token.
    pub(super) fn memory(&self, text: &str, at: usize) -> Option<Memory> {
        self.fuel.set(self.fuel.get().checked_sub(1)?);
        let own = pointer(text)?;
        let of = self.declaration(&own.name, at)?;
        let is_redirected = own.path.is_empty() && self.is_redirected(&own.name, &of, at);
        let is_moved = own.is_moved || is_redirected;
        let memory = |bytes| Memory {
            id: format!("{} {}", of.at, own.path),
            bytes,
            is_moved,
        };
        let is_sized = |bytes: &Amount| !own.is_cast || !bytes.has_element();
        if let Some(bytes) = self.asked(&own, &of).filter(is_sized) {
            return Some(memory(Some(bytes)));
        }
        if own.path.is_empty() {
            // What it is a name for.
            let other = match of.kind {
                Kind::Parameter => self.handed_text(&of),
                _ if self.word(of.at + 1) == "=" => {
                    let text = &self.text[self.assigned(of.at + 1)];
                    Some((text, of.at))
                }
                _ => None,
            };
            let is_other = other.is_some_and(|(text, _)| {
                of.kind == Kind::Parameter && self.is_handed_otherwise(&of, text)
            });
            let other = other.and_then(|(text, at)| self.memory(text, at));
            if let Some(mut other) = other {
                other.bytes = other.bytes.filter(is_sized);
                other.is_moved |= is_moved || is_other;
                return Some(other);
            }
        }
        Some(memory(None))
    }

    /// Does a pointer become another on the way to a token: by an assignment, or because two are swapped?
    fn is_redirected(&self, name: &str, of: &Declaration, at: usize) -> bool {
        let redirects = |&place: &usize| {
            // Of a loop the first time counts.
            let is_on_the_way = place < at;
            // `void *args[] = {&p};`
            let is_listed = self.around[place]
                .is_some_and(|open| self.word(open) == "{" && self.word_before(place) == "&");
            let call = self.around[place].and_then(|open| open.checked_sub(1));
            // The runtime, and what asks it for memory, fill a pointer.
            let fills = |call| {
                let call = self.word(call).to_lowercase();
                call.starts_with("cuda") || call.contains("alloc")
            };
            let is_it = match self.change(place, None) {
                Some(Change::Whole(text)) => !self.text[text].contains("alloc"),
                Some(Change::Anything) => !is_listed && !call.is_some_and(fills),
                _ => false,
            };
            place != of.at
                && is_on_the_way
                && is_it
                && self.declaration(name, place).is_some_and(|d| d.at == of.at)
        };
        self.places(name).iter().any(redirects)
    }

    /// The text of a size, and those of the variables that it is made of.
    fn with_parts(&self, text: &str, at: usize, depth: u32) -> Vec<String> {
        let mut all = vec![text.to_owned()];
        for token in tokens(text)
            .into_iter()
            .filter(|token| token.word && depth > 0)
        {
            let of = self.declaration(&text[token.at], at);
            if let Some(of) = of.filter(|of| self.word(of.at + 1) == "=") {
                let own = &self.text[self.assigned(of.at + 1)];
                all.extend(self.with_parts(own, of.at, depth - 1));
            }
        }
        all
    }

    /// Is a text a pointer of this name and declaration?
    fn is_pointer(&self, text: &str, at: usize, own: &Pointer, of: &Declaration) -> bool {
        let Some(found) = pointer(text) else {
            return false;
        };
        let is_element = found.path.starts_with('[') && own.path.starts_with('[');
        found.name == own.name
            && (found.path == own.path || is_element)
            && self
                .declaration(&found.name, at)
                .is_some_and(|d| d.at == of.at)
    }

    /// How much memory the code asks for, if it only does so once or the same each time.
    fn asked(&self, own: &Pointer, of: &Declaration) -> Option<Amount> {
        let mut found: Option<Amount> = None;
        for (function, size) in ASKS {
            for &call in self.places(function) {
                self.fuel.set(self.fuel.get().checked_sub(1)?);
                let Some(arguments) = self.call_arguments(call) else {
                    continue;
                };
                let Some(target) = arguments.first().and_then(|t| t.rsplit_once('&')) else {
                    continue;
                };
                let target = target.1.trim().trim_end_matches(')');
                if !self.is_pointer(target, call, own, of) {
                    continue;
                }
                let number = |at: usize| {
                    self.value(arguments.get(at)?, call, &Known::default())?
                        .number()
                };
                let bytes = match function {
                    "cudaMallocPitch" => {
                        let name = arguments.get(1)?.trim_start_matches('&');
                        let pitch = self.value(name, call, &Known::default())?.number()?;
                        pitch.amount.times(number(3)?.amount)
                    }
                    _ => number(size)?.amount,
                };
                if bytes.has_element() {
                    let texts = self.with_parts(arguments.get(size)?, call, 3);
                    if !texts.iter().all(|text| self.is_of_its_type(text, own, of)) {
                        return None;
                    }
                }
                match &found {
                    Some(other) if *other != bytes => return None,
                    _ => found = Some(bytes),
                }
            }
        }
        found
    }

    /// Are all types in the `sizeof`s of a size that of the pointer's elements?
    fn is_of_its_type(&self, size: &str, own: &Pointer, of: &Declaration) -> bool {
        let start = self.tokens[self.statement(of.at)].at.start;
        let declaration = &self.text[start..self.tokens[of.at].at.start];
        let plain = |text: &str| {
            text.replace("struct ", "")
                .split_whitespace()
                .collect::<Vec<_>>()
                .join(" ")
        };
        let declaration = plain(declaration);
        size.split("sizeof").skip(1).all(|behind| {
            let Some((ty, _)) = super::values::operand(behind) else {
                return false;
            };
            let ty = plain(ty);
            let named = ty.trim_start_matches('*').trim();
            let first = declaration
                .trim_start_matches("const ")
                .trim_start_matches("static ");
            super::values::size(&ty).is_some()
                || ty.starts_with('*') && named == own.name
                || ty.strip_suffix("[0]") == Some(&*own.name)
                || first
                    .strip_prefix(&*ty)
                    .is_some_and(|rest| rest.trim_start().starts_with('*'))
        })
    }

    /// The type of the elements of a `__constant__` or `__device__` variable, as it is written; empty where it is not
    /// understood.
    pub fn variable_type(&self, name: &str) -> String {
        let spaces = ["__constant__", "__device__", "__managed__"];
        let others = ["static", "const", "extern", "volatile", "struct"];
        let words = |&at: &usize| -> Option<Vec<&str>> {
            let words: Vec<&str> = (self.statement(at)..at).map(|at| self.word(at)).collect();
            let is_it = words.iter().any(|word| spaces.contains(word));
            Some(words).filter(|_| is_it && !self.tokens[at].directive)
        };
        let found = self.places(name).iter().find_map(words);
        let mut words = found.unwrap_or_default();
        words.retain(|word| !spaces.contains(word) && !others.contains(word));
        match words.iter().all(|word| is_name(word)) {
            true => words.join(" "),
            false => String::new(),
        }
    }

    /// Names that a kernel, and what it calls and uses of this text, is written with: macros among them mean the same
    /// to host code.
    pub fn words_of(&self, kernel: &str) -> BTreeSet<String> {
        let (mut all, mut work) = (BTreeSet::new(), vec![kernel.to_owned()]);
        while let Some(name) = work.pop() {
            let mut words = Vec::new();
            if let Some(found) = self.macros.named(&name).next_back() {
                let body = found.body.as_deref().unwrap_or("");
                words.extend(
                    tokens(body)
                        .into_iter()
                        .filter(|t| t.word)
                        .map(|t| body[t.at].to_owned()),
                );
            }
            for &at in self.places(&name) {
                if self.is_shared(self.around[at]) {
                    // A function, or a constant.
                    let open =
                        (at + 1..self.tokens.len().min(at + 2)).find(|&at| self.word(at) == "(");
                    let end = match open.and_then(|open| self.body(open)) {
                        Some(body) => self.close(body),
                        None if self.word(at + 1) == "=" => {
                            let end = self.assigned(at + 1).end;
                            self.tokens.partition_point(|t| t.at.start < end)
                        }
                        None => continue,
                    };
                    let inside =
                        (at + 1..end.min(self.tokens.len())).filter(|&at| self.tokens[at].word);
                    words.extend(inside.map(|at| self.word(at).to_owned()));
                    // Its head has types and bounds.
                    let head = (self.statement(at)..at).filter(|&at| self.tokens[at].word);
                    words.extend(head.map(|at| self.word(at).to_owned()));
                }
            }
            for word in words {
                if all.insert(word.clone()) {
                    work.push(word);
                }
            }
        }
        all
    }
}
