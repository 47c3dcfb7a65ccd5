//! Declarations in host code, and where they hold.

use super::HostCode;

/// A declaration of a name.
#[derive(Clone, Debug)]
pub(super) struct Declaration {
    /// The token of the name.
    pub(super) at: usize,
    /// The token behind all those that see it.
    pub(super) end: usize,
    pub(super) kind: Kind,
    /// It never changes.
    pub(super) is_fixed: bool,
}

/// What is declared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// An integer, or `auto`.
    Integer,
    /// A `dim3`.
    Extents,
    /// A parameter of a template or of a function: what it is says who uses that.
    Parameter,
    /// Anything else.
    Unknown,
}

/// Words in front of a declared name that are no type.
const SPECIFIERS: [&str; 8] = [
    "static",
    "const",
    "constexpr",
    "inline",
    "extern",
    "thread_local",
    "volatile",
    "std",
];

/// Words of integer types.
const INTEGERS: [&str; 18] = [
    "auto",
    "int",
    "unsigned",
    "signed",
    "long",
    "short",
    "size_t",
    "uint",
    "ulong",
    "int32_t",
    "uint32_t",
    "int64_t",
    "uint64_t",
    "int16_t",
    "uint16_t",
    "ptrdiff_t",
    "ssize_t",
    "enum",
];

/// Words that a declaration does not begin with.
const NO_DECLARATION: [&str; 11] = [
    "return",
    "goto",
    "delete",
    "throw",
    "case",
    "else",
    "new",
    "using",
    "typedef",
    "sizeof",
    "namespace",
];

impl<'t> HostCode<'t> {
    pub(super) fn word(&self, at: usize) -> &'t str {
        let token = self.tokens.get(at);
        token.map_or("", |t| &self.text[t.at.clone()])
    }

    pub(super) fn word_before(&self, at: usize) -> &'t str {
        at.checked_sub(1).map_or("", |at| self.word(at))
    }

    /// Matches the brackets of what is no directive.
    pub(super) fn read_brackets(&mut self) {
        let mut open: Vec<usize> = Vec::new();
        for at in 0..self.tokens.len() {
            if self.tokens[at].directive {
                self.around.push(None);
                continue;
            }
            let word = self.word(at);
            let opener = match word {
                ")" => "(",
                "]" => "[",
                "}" => "{",
                _ => "",
            };
            if !opener.is_empty() {
                // What is left open inside of it is a mistake, but no brace is one of parentheses.
                let mut inner = open.iter().enumerate().rev();
                let found = inner
                    .find(|(_, o)| {
                        self.word(**o) == opener || opener != "{" && self.word(**o) == "{"
                    })
                    .filter(|(_, o)| self.word(**o) == opener);
                if let Some((depth, &opened)) = found {
                    self.closes.insert(opened, at);
                    self.opens.insert(at, opened);
                    open.truncate(depth);
                }
            }
            self.around.push(open.last().copied());
            if matches!(word, "(" | "[" | "{") {
                open.push(at);
            }
            if self.tokens[at].word {
                self.places.entry(word).or_default().push(at);
            }
        }
    }

    pub(super) fn places(&self, name: &str) -> &[usize] {
        self.places.get(name).map_or(&[], |all| all)
    }

    /// The bracket that closes this one, or the end.
    pub(super) fn close(&self, open: usize) -> usize {
        let close = self.closes.get(&open);
        close.copied().unwrap_or(self.tokens.len())
    }

    /// Is a token inside of a bracket, or of the file?
    pub(super) fn is_inside(&self, at: usize, open: Option<usize>) -> bool {
        open.is_none_or(|open| open < at && at < self.close(open))
    }

    /// The first token of the statement, or of the parameter, that has this one.
    pub(super) fn statement(&self, at: usize) -> usize {
        let level = self.around[at];
        let is_list = level.is_some_and(|open| self.word(open) == "(" && !self.is_for(open));
        let (mut start, mut now) = (at, at);
        while let Some(before) = now.checked_sub(1).filter(|b| Some(*b) != level) {
            now = before;
            if self.tokens[now].directive {
                continue;
            }
            let is_initialiser = matches!(self.word(start), "," | ")" | "]" | ".");
            match (self.word(now), self.opens.get(&now)) {
                (";", _) => break,
                (",", _) if is_list => break,
                ("}", _) if !is_initialiser => break,
                (_, Some(&open)) => {
                    now = open;
                    start = open;
                }
                _ => start = now,
            }
        }
        start
    }

    fn is_for(&self, open: usize) -> bool {
        open > 0 && self.word(open - 1) == "for"
    }

    /// The brace of a function or of a loop behind the parentheses of its head.
    pub(super) fn body(&self, parentheses: usize) -> Option<usize> {
        let level = self.around[parentheses];
        let behind = (self.close(parentheses) + 1..self.tokens.len())
            .filter(|&at| self.around[at] == level && !self.tokens[at].directive);
        let mut ends = behind.filter(|&at| matches!(self.word(at), ";" | "{" | "=" | ","));
        ends.next().filter(|&at| self.word(at) == "{")
    }

    /// The token that closes the `<` here.
    fn close_angle(&self, open: usize) -> Option<usize> {
        let mut depth = 0_u32;
        for at in open..self.tokens.len() {
            match self.word(at) {
                "<" => depth += 1,
                ">" => depth = depth.checked_sub(1)?,
                ";" | "{" => return None,
                _ => {}
            }
            if depth == 0 {
                return Some(at);
            }
        }
        None
    }

    /// The declaration that a name has at a token, if it is one.
    pub(super) fn declared(&self, at: usize) -> Option<Declaration> {
        let (next, level) = (self.word(at + 1), self.around[at]);
        let is_compared = next == "=" && self.word(at + 2) == "=";
        let is_qualified = next == ":" && self.word(at + 2) == ":";
        let mut start = self.statement(at);
        if start == at && self.word(start) != "template" && !self.is_enumerator(at) {
            return None;
        }
        if self.word(start) == "template" {
            let close = self.close_angle(start + 1)?;
            if at < close {
                let names_it = matches!(next, "," | ">" | "=") && at > start + 1;
                let level = self.around[start];
                let behind = (close + 1..self.tokens.len()).filter(|&at| self.around[at] == level);
                let mut ends = behind.filter(|&at| matches!(self.word(at), ";" | "{"));
                let end = ends.next().map_or(close, |end| match self.word(end) {
                    "{" => self.close(end),
                    _ => end,
                });
                return names_it.then_some(Declaration {
                    at,
                    end,
                    kind: Kind::Parameter,
                    is_fixed: true,
                });
            }
            start = close + 1;
        }
        if is_compared
            || is_qualified
            || !matches!(next, "=" | "(" | "{" | ";" | "," | ")" | "[" | ":" | "}")
        {
            return None;
        }
        // What sees it.
        let open = level.map_or("", |open| self.word(open));
        let (end, is_parameter) = match (level, open) {
            (None, _) => (self.tokens.len(), false),
            (Some(open), "{") => (self.close(open), false),
            (Some(open), "(") if matches!(self.word_before(open), "if" | "while" | "switch") => {
                return None;
            }
            (Some(open), "(") => match (self.body(open), self.is_for(open)) {
                (Some(body), is_for) => (self.close(body), !is_for),
                (None, true) => {
                    let behind = self.close(open)..self.tokens.len();
                    let level = self.around[open];
                    let mut behind = behind.filter(|&at| self.around[at] == level);
                    let end = behind.find(|&at| self.word(at) == ";");
                    (end.unwrap_or(self.tokens.len()), false)
                }
                (None, false) => return None,
            },
            _ => return None,
        };
        if self.is_enumerator(at) {
            let open = level.and_then(|open| self.around[open]);
            return Some(Declaration {
                at,
                end: open.map_or(self.tokens.len(), |open| self.close(open)),
                kind: Kind::Integer,
                is_fixed: true,
            });
        }
        if NO_DECLARATION.contains(&self.word(start)) {
            return None;
        }
        // `int a = b * c;` declares no `c`.
        let mut before = (start..at).rev().filter(|&at| self.around[at] == level);
        let separator = before.find(|&at| matches!(self.word(at), "=" | ","));
        if separator.is_some_and(|at| self.word(at) == "=") {
            return None;
        }
        let (mut first, mut is_fixed, mut is_static, mut kind) = (start, false, false, None);
        while first < at && self.around[first] == level {
            let word = self.word(first);
            is_fixed |= matches!(word, "const" | "constexpr");
            is_static |= matches!(word, "static" | "constexpr");
            match word {
                "dim3" => kind = Some(Kind::Extents),
                ":" => {}
                word if SPECIFIERS.contains(&word) => {}
                word if INTEGERS.contains(&word) => kind = kind.or(Some(Kind::Integer)),
                _ => break,
            }
            first += 1;
        }
        let before = self.word_before(at);
        let is_plain = at == first || before == "," && at > first && self.around[at - 1] == level;
        let kind = match kind {
            _ if is_parameter => match self.is_type(start..at) {
                true => Kind::Parameter,
                false => return None,
            },
            Some(kind) if is_plain && !matches!(next, "[" | ":" | ")") => kind,
            Some(_) if is_plain || matches!(before, "*" | "&") => Kind::Unknown,
            // A type that is not known here, in front of the name, or in front of the first of several.
            None if self.is_type(start..at) || self.follows(start, at) => Kind::Unknown,
            _ => return None,
        };
        // Each object has its own members; what is static remembers what the last call made of it.
        let is_member = level.is_some_and(|open| self.is_structure(open));
        let is_local = !self.is_shared(level);
        let kind = match (is_member, is_static) {
            (true, false) => Kind::Unknown,
            (false, true) if is_local && !is_fixed => Kind::Unknown,
            _ => kind,
        };
        Some(Declaration {
            at,
            end,
            kind,
            is_fixed,
        })
    }

    /// `T a(…), b`: is the name at a token one behind the first?
    fn follows(&self, start: usize, at: usize) -> bool {
        let level = self.around[at];
        let mut own = (start..at).filter(|&now| self.around[now] == level);
        let first = own.find(|&now| matches!(self.word(now), "(" | "{" | "=" | "["));
        let name = first.and_then(|first| first.checked_sub(1));
        let is_sign = |before: &usize| !matches!(self.word(*before), "*" | "&");
        let before = (start..at).rev().find(is_sign);
        before.is_some_and(|before| self.word(before) == ",")
            && name.is_some_and(|name| {
                name > start && self.tokens[name].word && self.is_type(start..name)
            })
    }

    pub(super) fn is_declared(&self, at: usize) -> bool {
        self.declared(at).is_some()
    }

    /// Can these tokens be a type?
    fn is_type(&self, tokens: std::ops::Range<usize>) -> bool {
        let last = tokens.end - 1;
        let ends = self.tokens[last].word || matches!(self.word(last), ">" | "*" | "&");
        let mut all = tokens;
        ends && all.all(|at| {
            let is_sign = matches!(self.word(at), ":" | "<" | ">" | "*" | "&" | ",");
            self.tokens[at].word || is_sign
        })
    }

    /// A name in the braces of an `enum`.
    fn is_enumerator(&self, at: usize) -> bool {
        let open = self.around[at].filter(|&open| self.word(open) == "{");
        let Some(open) = open.filter(|_| matches!(self.word_before(at), "{" | ",")) else {
            return false;
        };
        open > 0 && self.word(self.statement(open)) == "enum"
    }

    /// The declaration of a name that holds at a token. Two of one name in the same braces are alternatives of the
    /// preprocessor.
    pub(super) fn declaration(&self, name: &str, at: usize) -> Option<Declaration> {
        let all = self.places(name).iter().filter(|&&place| place < at);
        let all = all.filter_map(|&place| self.declared(place));
        let seen: Vec<Declaration> = all.filter(|d| at < d.end).collect();
        let mut last = seen.last()?.clone();
        let twin = |d: &Declaration| d.at != last.at && self.around[d.at] == self.around[last.at];
        if seen.iter().any(twin) && last.kind != Kind::Parameter {
            last.kind = Kind::Unknown;
        }
        Some(last)
    }

    /// The only declaration of that name in the file, if it is a constant outside of functions.
    pub(super) fn only_constant(&self, name: &str) -> Option<Declaration> {
        let all = self.places(name).iter();
        let mut all = all.filter_map(|&place| self.declared(place));
        let only = all.next()?;
        let is_fixed = only.is_fixed && only.kind == Kind::Integer;
        let home = match self.is_enumerator(only.at) {
            true => self.around[only.at].and_then(|open| self.around[open]),
            false => self.around[only.at],
        };
        (is_fixed && self.is_shared(home) && all.next().is_none()).then_some(only)
    }

    /// Is it a name for what the caller or the user of a template decides?
    pub(super) fn is_free(&self, name: &str, at: usize) -> bool {
        let declaration = self.declaration(name, at);
        declaration.is_some_and(|d| d.kind == Kind::Parameter)
    }

    /// `T f(…) { return …; }`: its parameters, what it returns, where that stands, and the words of its type.
    pub(super) fn returned(&self, name: &str) -> Option<(Vec<&'t str>, &'t str, usize, &'t str)> {
        let is_head = |&&at: &&usize| self.word(at + 1) == "(" && self.body(at + 1).is_some();
        let mut found = self.places(name).iter().filter(is_head);
        let (&at, None) = (found.next()?, found.next()) else {
            return None;
        };
        let (open, brace) = (at + 1, self.body(at + 1)?);
        if self.word(brace + 1) != "return" {
            return None;
        }
        let end = (brace + 1..self.close(brace)).find(|&at| self.word(at) == ";")?;
        if end + 1 != self.close(brace) {
            return None;
        }
        let inside = (open + 1..self.close(open)).filter(|&at| self.around[at] == Some(open));
        let last = |&at: &usize| matches!(self.word(at + 1), "," | ")");
        let names = inside.filter(|&at| self.tokens[at].word).filter(last);
        let text = &self.text[self.tokens[brace + 1].at.end..self.tokens[end].at.start];
        let start = self.tokens[self.statement(at)].at.start;
        let ty = self.text.get(start..self.tokens[at].at.start)?;
        Some((names.map(|at| self.word(at)).collect(), text, brace + 1, ty))
    }

    /// Does a function of this file that is called so take references?
    pub(super) fn takes_references(&self, name: &str) -> bool {
        let heads = self.places(name).iter().map(|at| at + 1);
        let mut heads = heads.filter(|&open| self.word(open) == "(" && self.body(open).is_some());
        heads.any(|open| (open..self.close(open)).any(|at| self.word(at) == "&"))
    }

    /// Is a brace one of a loop or of a lambda, whose code may run again?
    pub(super) fn runs_again(&self, brace: usize) -> bool {
        let Some(before) = brace.checked_sub(1) else {
            return false;
        };
        let head = self.opens.get(&before).and_then(|open| open.checked_sub(1));
        match self.word(before) {
            "do" | "]" => true,
            ")" => head.is_some_and(|head| matches!(self.word(head), "for" | "while" | "]")),
            _ => false,
        }
    }

    /// Is a brace one of a structure?
    fn is_structure(&self, brace: usize) -> bool {
        self.opens_with(brace, &["struct", "class", "union"])
    }

    /// Is a bracket, or the file, around functions, and not in one?
    pub(super) fn is_shared(&self, bracket: Option<usize>) -> bool {
        bracket.is_none_or(|open| {
            self.is_structure(open) || self.opens_with(open, &["namespace", "extern"])
        })
    }

    /// Does a brace belong to one of these words? A parenthesis in front of it is that of a function.
    fn opens_with(&self, brace: usize, words: &[&str]) -> bool {
        let level = self.around[brace];
        let mut before = (self.statement(brace)..brace).filter(|&at| self.around[at] == level);
        let has_word = before.clone().any(|at| words.contains(&self.word(at)));
        let is_head = |at: usize| {
            let is_alignment =
                ["alignas", "__align__", "__attribute__"].contains(&self.word_before(at));
            self.word(at) == "(" && !is_alignment
        };
        has_word && self.word(brace) == "{" && !before.any(is_head)
    }
}
