//! Members of structures: what the code makes of them before it hands the structure over.

use super::HostCode;
use super::described::is_name;
use super::names::{Declaration, Kind};
use super::values::parts;
use warpwright_cudac::words::tokens;

/// A text of the code, and the token at which it is understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Given<'t> {
    pub(super) text: &'t str,
    pub(super) at: usize,
}

/// A structure's definition, as far as it is read.
struct Structure<'t> {
    /// Its members in their order, with what they are where nobody says otherwise.
    members: Vec<(&'t str, Option<Given<'t>>)>,
    /// The parentheses of its constructors' parameters.
    constructors: Vec<usize>,
}

/// What a statement in a structure begins with that declares no member of an object.
const NO_MEMBER: [&str; 8] = [
    "static", "using", "typedef", "friend", "enum", "template", "struct", "class",
];

/// What an aggregate's member is for which its braces have nothing.
const ZERO: &str = "0";

impl<'t> HostCode<'t> {
    /// What `base.member` is at a token: the one assignment on the way there, or else what its initialiser makes of it.
    pub(super) fn member_text(&self, base: &str, member: &str, at: usize) -> Option<Given<'t>> {
        self.fuel.set(self.fuel.get().checked_sub(1)?);
        let own = self.declaration(base, at)?;
        if let Some(place) = self.assigned_member(&own, base, member, at)? {
            let text = &self.text[self.assigned(place + 1)];
            return Some(Given { text, at: place });
        }
        if own.kind == Kind::Parameter {
            let (text, call) = self.handed_text(&own)?;
            let is_other = is_name(text) && call != at;
            return is_other.then(|| self.member_text(text, member, call))?;
        }
        self.initial_member(&own, member)
    }

    /// What a member is by its structure's declaration.
    fn initial_member(&self, of: &Declaration, member: &str) -> Option<Given<'t>> {
        let (mut ty, mut open) = (self.type_before(of.at), None);
        match self.word(of.at + 1) {
            "{" | "(" => open = Some(of.at + 1),
            "=" => {
                let end = self.assigned(of.at + 1).end;
                let mut behind =
                    (of.at + 2..self.tokens.len()).take_while(|&at| self.tokens[at].at.start < end);
                let first = behind.find(|&at| matches!(self.word(at), "{" | "("))?;
                if first > of.at + 2 {
                    ty = self.type_before(first);
                }
                open = Some(first);
            }
            ";" | "," => {}
            _ => return None,
        }
        let Some(structure) = self.structure(ty) else {
            return self.returned_member(ty, open?, member);
        };
        let default = |structure: &Structure<'t>| {
            let all = structure.members.iter();
            let mut all = all.filter(|(name, _)| *name == member);
            all.next().and_then(|(_, default)| *default)
        };
        let arguments = match open {
            None => Vec::new(),
            Some(open) => {
                let close = self.tokens.get(self.close(open))?;
                parts(&self.text[self.tokens[open].at.end..close.at.start])
            }
        };
        let at = open.unwrap_or(of.at);
        if arguments.iter().any(|argument| argument.starts_with('.')) {
            let designated = |argument: &&'t str| {
                let (name, value) = argument.strip_prefix('.')?.split_once('=')?;
                (name.trim() == member).then(|| value.trim())
            };
            let found = arguments.iter().find_map(designated);
            let given = found.map(|text| Given { text, at });
            return given
                .or_else(|| default(&structure))
                .or(Some(Given { text: ZERO, at }));
        }
        let takes = |paren: &&usize| self.parameters(**paren).len() == arguments.len();
        if let Some(paren) = structure.constructors.iter().find(takes) {
            let made = self.constructed(*paren, &arguments, member, at);
            return made.or_else(|| default(&structure));
        }
        if !structure.constructors.is_empty() {
            return None;
        }
        let index = structure
            .members
            .iter()
            .position(|(name, _)| *name == member)?;
        match (open, arguments.get(index)) {
            (Some(open), Some(text)) if self.word(open) == "{" => Some(Given { text, at }),
            (Some(open), None) if self.word(open) == "{" => {
                default(&structure).or(Some(Given { text: ZERO, at }))
            }
            (None, _) => default(&structure),
            _ => None,
        }
    }

    /// What a member is of what a function of the file returns: `return {p, n};`, or a variable that it fills.
    fn returned_member(&self, function: &str, call: usize, member: &str) -> Option<Given<'t>> {
        let is_head = |&&at: &&usize| self.word(at + 1) == "(" && self.body(at + 1).is_some();
        let mut heads = self.places(function).iter().filter(is_head);
        let (&head, None) = (heads.next()?, heads.next()) else {
            return None;
        };
        let (paren, brace) = (head + 1, self.body(head + 1)?);
        let mut returns = (brace..self.close(brace)).filter(|&at| self.word(at) == "return");
        let (back, None) = (returns.next()?, returns.next()) else {
            return None;
        };
        let end = (back..self.tokens.len()).find(|&at| self.word(at) == ";")?;
        let found = if end == back + 2 && self.tokens[back + 1].word {
            self.member_text(self.word(back + 1), member, back)?
        } else {
            let open = (back..end).find(|&at| matches!(self.word(at), "{" | "("))?;
            let ty = match self.type_before(open) {
                "return" => self.type_before(head),
                ty => ty,
            };
            let names = self.structure(ty)?.members.into_iter();
            let index = names
                .map(|(name, _)| name)
                .position(|name| name == member)?;
            let close = self.tokens.get(self.close(open))?;
            let all = parts(&self.text[self.tokens[open].at.end..close.at.start]);
            Given {
                text: all.get(index)?,
                at: open,
            }
        };
        let close = self.tokens.get(self.close(call))?;
        let arguments = parts(&self.text[self.tokens[call].at.end..close.at.start]);
        self.in_call(found, &self.parameters(paren), (&arguments, call))
    }

    /// What a text in a function is where that is called, as far as it is one of its parameters or uses none.
    fn in_call(
        &self,
        found: Given<'t>,
        names: &[&str],
        (arguments, call): (&[&'t str], usize),
    ) -> Option<Given<'t>> {
        if let Some(index) = names.iter().position(|name| *name == found.text.trim()) {
            let text = *arguments.get(index)?;
            return Some(Given { text, at: call });
        }
        let uses = |name: &&str| {
            let mut all = tokens(found.text).into_iter();
            all.any(|token| &found.text[token.at] == *name)
        };
        (!names.iter().any(uses)).then_some(found)
    }

    /// The word of the type in front of a token, without a template's arguments.
    fn type_before(&self, at: usize) -> &'t str {
        let (mut depth, mut before) = (0_u32, at);
        while let Some(now) = before.checked_sub(1) {
            before = now;
            match self.word(now) {
                ">" => depth += 1,
                "<" => depth = depth.saturating_sub(1),
                ";" | "{" | "}" => return "",
                _ if depth > 0 => {}
                word => return word,
            }
        }
        ""
    }

    /// The names of the parameters in parentheses.
    fn parameters(&self, paren: usize) -> Vec<&'t str> {
        let inside = (paren + 1..self.close(paren)).filter(|&at| self.around[at] == Some(paren));
        let last = |&at: &usize| {
            self.tokens[at].word && matches!(self.word(at + 1), "," | ")" | "=") && at > paren + 1
        };
        inside.filter(last).map(|at| self.word(at)).collect()
    }

    /// What a constructor makes of a member: by its list of initialisers, or by a plain assignment in its body.
    fn constructed(
        &self,
        paren: usize,
        arguments: &[&'t str],
        member: &str,
        call: usize,
    ) -> Option<Given<'t>> {
        let names = self.parameters(paren);
        let level = self.around[paren];
        let (mut at, mut found) = (self.close(paren) + 1, None);
        while !matches!(self.word(at), "{" | ";" | "") || self.is_initialiser(at, level) {
            if matches!(self.word(at), "(" | "{") {
                let close = self.close(at);
                if self.word_before(at) == member {
                    let end = self.tokens.get(close)?.at.start;
                    found = Some(Given {
                        text: self.text[self.tokens[at].at.end..end].trim(),
                        at,
                    });
                }
                at = close;
            }
            at += 1;
        }
        if self.word(at) == "{" {
            let body = at + 1..self.close(at);
            let is_it = |place: &usize| {
                self.word(*place) == member
                    && self.word(*place + 1) == "="
                    && self.word(*place + 2) != "="
                    && matches!(self.word_before(*place), ";" | "{" | "}" | ">")
            };
            for place in body.filter(is_it) {
                let text = self.text[self.assigned(place + 1)].trim();
                found = Some(Given { text, at: place });
            }
        }
        self.in_call(found?, &names, (arguments, call))
    }

    /// Is a brace one behind a member in a constructor's list of initialisers?
    fn is_initialiser(&self, brace: usize, level: Option<usize>) -> bool {
        let before = self.word_before(brace.saturating_sub(1));
        self.word(brace) == "{" && self.around[brace] == level && matches!(before, ":" | ",")
    }

    /// The definition of a structure.
    fn structure(&self, name: &str) -> Option<Structure<'t>> {
        let brace = |&at: &usize| {
            if self.word_before(at) == "}" && self.word(at + 1) == ";" {
                // `typedef struct { … } Name;`
                let open = self.opens.get(&(at - 1)).copied()?;
                let before = [1, 2].map(|n| open.checked_sub(n).map_or("", |at| self.word(at)));
                return before.contains(&"struct").then_some(open);
            }
            let start = self.word(self.statement(at));
            match (start, self.word_before(at), self.word(at + 1)) {
                ("struct" | "class" | "template" | "typedef", _, "{") => Some(at + 1),
                _ => None,
            }
        };
        let open = self.places(name).iter().find_map(brace)?;
        let (mut members, mut constructors) = (Vec::new(), Vec::new());
        let (mut start, mut at) = (open + 1, open + 1);
        let mut is_function = false;
        while at < self.close(open) {
            match self.word(at) {
                ";" => {
                    if !is_function {
                        self.declared_members(open, start..at, &mut members);
                    }
                    (start, is_function) = (at + 1, false);
                }
                "public" | "private" | "protected" if self.word(at + 1) == ":" => {
                    at += 1;
                    start = at + 1;
                }
                "(" => {
                    let is_value = (start..at).any(|at| self.word(at) == "=");
                    is_function |= !is_value;
                    if self.word_before(at) == name && !is_value {
                        constructors.push(at);
                    }
                    at = self.close(at);
                }
                "{" => {
                    let close = self.close(at);
                    let is_body = is_function && !self.is_initialiser(at, Some(open));
                    at = close;
                    if is_body {
                        (start, is_function) = (close + 1, false);
                    }
                }
                "[" => at = self.close(at),
                _ => {}
            }
            at += 1;
        }
        Some(Structure {
            members,
            constructors,
        })
    }

    /// The names that a statement in a structure declares.
    fn declared_members(
        &self,
        open: usize,
        statement: std::ops::Range<usize>,
        members: &mut Vec<(&'t str, Option<Given<'t>>)>,
    ) {
        if NO_MEMBER.contains(&self.word(statement.start)) {
            return;
        }
        let mut is_value = false;
        for at in statement
            .clone()
            .filter(|&at| self.around[at] == Some(open))
        {
            let next = match at + 1 < statement.end {
                true => self.word(at + 1),
                false => ";",
            };
            match self.word(at) {
                "," => is_value = false,
                _ if is_value || at == statement.start || !self.tokens[at].word => {}
                name => match next {
                    "=" => {
                        let text = self.text[self.assigned(at + 1)].trim();
                        members.push((name, Some(Given { text, at })));
                        is_value = true;
                    }
                    "{" => {
                        let end = self.tokens.get(self.close(at + 1)).map(|t| t.at.start);
                        let from = self.tokens[at + 1].at.end;
                        let text = end.map_or("", |end| self.text[from..end].trim());
                        let text = if text.is_empty() { ZERO } else { text };
                        members.push((name, Some(Given { text, at })));
                        is_value = true;
                    }
                    "," | ";" | "[" => members.push((name, None)),
                    _ => {}
                },
            }
        }
    }
}
