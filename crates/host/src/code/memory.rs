//! The memory that a launch hands over: what the code asks for by the name of the pointer.

use std::collections::BTreeSet;

use super::HostCode;
use super::amount::Amount;
use super::described::{Argument, is_name};
use super::names::{Declaration, Kind};
use super::number::Number;
use super::values::{Change, Known, Value, inside, parts};
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
    /// What the code fills it with, and whether nothing else is known to change that before the launch.
    pub held: Option<(Held, bool)>,
    /// Of pointers: the bytes that each points to, if the code says so.
    pub each: Option<Amount>,
}

/// What the code fills memory with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Held {
    /// This byte.
    Byte(u8),
    /// This integer in each element.
    Value(Amount),
    /// Integers from zero, below this one.
    Below(Amount),
}

/// Functions that hand out memory on the device, with the place of the size among their arguments.
const ASKS: [(&str, usize); 5] = [
    ("cudaMalloc", 1),
    ("cudaMallocManaged", 1),
    ("cudaMallocAsync", 1),
    ("cudaMallocFromPoolAsync", 1),
    ("cudaMallocPitch", 1),
];

/// A variable of the module, outside of functions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModuleVariable {
    /// The type of its elements, as it is written; empty where it is not understood.
    pub ty: String,
    /// The integer that the host copies to it.
    pub value: Option<Amount>,
}

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
        let is_redirected = match own.path.strip_prefix('.') {
            Some(member) => self.redirects_member(&own.name, member, &of, at),
            None => own.path.is_empty() && self.is_redirected(&own.name, &of, at),
        };
        let is_moved = own.is_moved || is_redirected;
        let memory = |bytes| Memory {
            id: format!("{} {}", of.at, own.path),
            bytes,
            is_moved,
            held: self.held(&own, &of, at),
            each: self.each(&own, &of, at),
        };
        let is_sized = |bytes: &Amount| !own.is_cast || !bytes.has_element();
        if let Some(bytes) = self.asked(&own, &of).filter(is_sized) {
            return Some(memory(Some(bytes)));
        }
        let member = own.path.strip_prefix('.').filter(|member| is_name(member));
        let text = member.and_then(|member| self.member_text(&own.name, member, at));
        if let Some(given) = text
            && let Some(mut other) = self.memory(given.text, given.at)
        {
            other.bytes = other.bytes.filter(is_sized);
            other.is_moved |= own.is_moved;
            return Some(other);
        }
        if own.path.is_empty() {
            if let Some(bytes) = self.vector(&of).filter(is_sized) {
                return Some(memory(Some(bytes)));
            }
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
                other.held = memory(None).held.or(other.held);
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

    /// The same of a member, by a method of the structure.
    fn redirects_member(&self, name: &str, member: &str, of: &Declaration, at: usize) -> bool {
        let calls = self.places(name).iter().filter(|&&place| {
            place < at && self.word(place + 1) == "." && self.word(place + 3) == "("
        });
        let mut calls =
            calls.filter(|&&place| self.declaration(name, place).is_some_and(|d| d.at == of.at));
        calls.any(|&place| self.writes_member(self.word(place + 2), member))
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

    /// The bytes of `thrust::device_vector<T> v(n)`.
    fn vector(&self, of: &Declaration) -> Option<Amount> {
        let words = self.statement(of.at)..of.at;
        let has = |name: &str| words.clone().any(|at| self.word(at) == name);
        if !has("device_vector") && !has("universal_vector") {
            return None;
        }
        let length = self.vector_length(of, 0)?;
        Some(length.amount.times(Amount::Element))
    }

    /// The length of a vector, by its declaration.
    fn vector_length(&self, of: &Declaration, depth: u32) -> Option<Number> {
        let words = self.statement(of.at)..of.at;
        let vectors = ["device_vector", "host_vector", "universal_vector", "vector"];
        let is_vector = words.clone().any(|at| vectors.contains(&self.word(at)));
        let is_changed = [
            "resize",
            "push_back",
            "assign",
            "clear",
            "emplace_back",
            "insert",
        ]
        .iter()
        .any(|change| {
            self.places(change).iter().any(|&at| {
                self.word_before(at) == "." && at > 1 && self.word(at - 2) == self.word(of.at)
            })
        });
        if !is_vector || is_changed || depth > 4 {
            return None;
        }
        let open = of.at + 1;
        let text = match self.word(open) {
            "(" => {
                let close = self.tokens.get(self.close(open))?;
                &self.text[self.tokens[open].at.end..close.at.start]
            }
            "=" => &self.text[self.assigned(open)],
            _ => return None,
        };
        let first = parts(text).first().copied()?;
        let other = self.declaration(first, of.at).filter(|_| is_name(first));
        if let Some(length) = other.and_then(|other| self.vector_length(&other, depth + 1)) {
            return Some(length);
        }
        if self.word(open) == "=" || first.ends_with("begin()") {
            return None;
        }
        self.value(first, of.at, &Known::default())?.number()
    }

    /// A text with names for `v.size()`.
    pub(super) fn with_lengths(&self, text: &str, at: usize) -> String {
        let mut out = text.to_owned();
        for _ in 0..8 {
            let Some(end) = out.find(".size()") else {
                break;
            };
            let start = out[..end].rfind(|c: char| !c.is_ascii_alphanumeric() && c != '_');
            let start = start.map_or(0, |start| start + 1);
            let Some(of) = self.declaration(&out[start..end], at) else {
                break;
            };
            let name = format!("{LENGTH}{}", of.at);
            out.replace_range(start..end + ".size()".len(), &name);
        }
        out
    }

    /// What such a name is.
    pub(super) fn length(&self, name: &str) -> Option<Value> {
        let at: usize = name.strip_prefix(LENGTH)?.parse().ok()?;
        let of = self.declared(at)?;
        let length = self.vector_length(&of, 0)?;
        Some(Value::Number(length))
    }

    /// A `__constant__` or `__device__` variable.
    pub fn module_variable(&self, name: &str) -> ModuleVariable {
        self.refuel();
        let mut found = ModuleVariable::default();
        let spaces = ["__constant__", "__device__", "__managed__"];
        let others = [
            "static", "const", "extern", "volatile", "struct", "unsigned",
        ];
        for &at in self.places(name) {
            let words: Vec<&str> = (self.statement(at)..at).map(|at| self.word(at)).collect();
            if !words.iter().any(|word| spaces.contains(word)) || self.tokens[at].directive {
                continue;
            }
            let is_type = |word: &&&str| {
                !spaces.contains(word) && (!others.contains(word) || **word == "unsigned")
            };
            let ty: Vec<&str> = words.iter().filter(is_type).copied().collect();
            if ty.iter().all(|word| is_name(word)) {
                found.ty = ty.join(" ");
            }
            break;
        }
        for function in ["cudaMemcpyToSymbol", "cudaMemcpyToSymbolAsync"] {
            for &call in self.places(function) {
                let arguments = self.call_arguments(call).unwrap_or_default();
                let [target, from, ..] = arguments[..] else {
                    continue;
                };
                let from = from
                    .strip_prefix('&')
                    .map(str::trim)
                    .filter(|from| is_name(from));
                if let (true, Some(from)) = (target.trim_start_matches('&') == name, from) {
                    let value = self
                        .value(from, call, &Known::default())
                        .and_then(Value::number);
                    found.value = value.map(|n| n.amount);
                }
            }
        }
        found
    }

    /// What members of the structure are that the host copies to a variable of the module.
    pub fn module_members(&self, name: &str, members: &[String]) -> Vec<(String, Argument)> {
        let functions = ["cudaMemcpyToSymbol", "cudaMemcpyToSymbolAsync"].iter();
        for &call in functions.flat_map(|function| self.places(function)) {
            let arguments = self.call_arguments(call).unwrap_or_default();
            let [target, from, ..] = arguments[..] else {
                continue;
            };
            let from = from.strip_prefix('&').map_or(from, str::trim);
            if target.trim_start_matches('&') == name && is_name(from) {
                let mut found = self.arguments(from, call, members);
                return found.pop().map_or_else(Vec::new, |found| found.members);
            }
        }
        Vec::new()
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

    /// What the last call in front of a token fills memory with; without one there, the first.
    fn held(&self, own: &Pointer, of: &Declaration, at: usize) -> Option<(Held, bool)> {
        let functions = [
            "cudaMemset",
            "cudaMemsetAsync",
            "cudaMemcpy",
            "cudaMemcpyAsync",
        ];
        let (before, behind) = self.calls(&functions, at);
        let mut all = before.iter().rev().chain(&behind);
        let (call, found) = all.find_map(|&call| {
            let arguments = self.call_arguments(call).unwrap_or_default();
            let [target, from, ..] = arguments[..] else {
                return None;
            };
            if !self.is_pointer(target, call, own, of) {
                return None;
            }
            let found = match self.word(call).starts_with("cudaMemset") {
                true => {
                    let value = self.value(from, call, &Known::default());
                    let byte = value.and_then(Value::number).and_then(|n| n.number());
                    byte.map(|byte| Held::Byte(byte as u8))
                }
                false => self.filled(from, call),
            };
            Some((call, found))
        })?;
        // A launch on the way may write it.
        let is_handed = |&&place: &&usize| {
            let open = self.around[place].and_then(|open| open.checked_sub(3));
            let is_launch = open.is_some_and(|at| (at..at + 3).all(|at| self.word(at) == ">"));
            place > call && place < at && is_launch
        };
        let is_handed = self.places(&own.name).iter().any(|place| is_handed(&place));
        // What comes behind goes for the next time, and what is shorter leaves a rest.
        let is_before = call < at;
        let size = self
            .call_arguments(call)
            .and_then(|all| all.get(2).copied());
        let size = size.and_then(|size| self.value(size, call, &Known::default())?.number());
        let whole = self.asked(own, of);
        let is_part = size.zip(whole).is_some_and(|(size, whole)| {
            let numbers = size.amount.number().zip(whole.number());
            size.amount != whole && numbers.is_none_or(|(a, b)| a != b)
        });
        found.map(|found| (found, is_before && !is_handed && !is_part))
    }

    /// Calls of some functions in front of a token, and those behind it.
    fn calls(&self, functions: &[&str], at: usize) -> (Vec<usize>, Vec<usize>) {
        let mut calls: Vec<usize> = functions
            .iter()
            .flat_map(|f| self.places(f))
            .copied()
            .collect();
        calls.sort_unstable();
        calls.into_iter().partition(|&call| call < at)
    }

    /// What host memory holds where a call copies it: by its vector, a fill, or the only assignment to its elements.
    fn filled(&self, text: &str, call: usize) -> Option<Held> {
        let own = pointer(text).filter(|own| own.path.is_empty())?;
        let of = self.declaration(&own.name, call)?;
        let number = |text: &str, at: usize| {
            let value = self.value(text, at, &Known::default())?.number()?;
            value.number().map(|_| Held::Value(value.amount))
        };
        let is_own = |text: &str, at| self.is_pointer(text, at, &own, &of);
        let (fills, _) = self.calls(&["fill", "fill_n"], call);
        for &fill in fills.iter().rev() {
            if let [target, _, value] = self.call_arguments(fill).unwrap_or_default()[..]
                && is_own(target, fill)
            {
                return number(value, fill);
            }
        }
        let element = |&&place: &&usize| {
            let equals = self.close(place + 1) + 1;
            let is_it = place < call
                && self.word(place + 1) == "["
                && self.word(equals) == "="
                && self.word(equals + 1) != "="
                && is_own(self.word(place), place);
            is_it.then_some(equals)
        };
        let mut all = self
            .places(&own.name)
            .iter()
            .filter_map(|place| element(&place));
        if let Some(equals) = all.next() {
            let text = self.text[self.assigned(equals)].trim();
            let bound = text.rsplit_once('%').map(|(_, bound)| bound.trim());
            let bound = bound.filter(|bound| is_name(bound) || bound.parse::<u32>().is_ok());
            return match (all.next(), bound) {
                (Some(_), _) => None,
                (None, Some(bound)) => {
                    let bound = self.value(bound, equals, &Known::default())?.number()?;
                    Some(Held::Below(bound.amount))
                }
                (None, None) => number(text, equals).filter(|_| !self.is_of_loop(text, equals)),
            };
        }
        let open = of.at + 1;
        let close = self
            .tokens
            .get(self.close(open))
            .filter(|_| self.word(open) == "(")?;
        match parts(&self.text[self.tokens[open].at.end..close.at.start])[..] {
            [_, value] => number(value, of.at),
            _ => None,
        }
    }

    /// Does a text use a variable of a `for` around it?
    fn is_of_loop(&self, text: &str, at: usize) -> bool {
        let mut words = tokens(text).into_iter().filter(|t| t.word);
        words.any(|token| {
            let of = self.declaration(&text[token.at], at);
            let head = of
                .and_then(|of| self.around[of.at])
                .and_then(|open| open.checked_sub(1));
            head.is_some_and(|head| self.word(head) == "for")
        })
    }

    /// The bytes that each pointer of a table points to: of its own elements, or of those that it is a copy of.
    fn each(&self, own: &Pointer, of: &Declaration, at: usize) -> Option<Amount> {
        let part = |own: &Pointer| Pointer {
            path: "[0]".to_owned(),
            ..own.clone()
        };
        if !own.path.is_empty() {
            return None;
        }
        self.asked(&part(own), of).or_else(|| {
            let (before, _) = self.calls(&["cudaMemcpy", "cudaMemcpyAsync"], at);
            before.iter().rev().find_map(|&call| {
                let arguments = self.call_arguments(call).unwrap_or_default();
                let [target, from, ..] = arguments[..] else {
                    return None;
                };
                let from = pointer(from).filter(|_| self.is_pointer(target, call, own, of))?;
                self.asked(&part(&from), &self.declaration(&from.name, call)?)
            })
        })
    }
}

/// What stands in front of the token of a vector's declaration.
const LENGTH: &str = "__length_of_";
