//! A launch by the names that its numbers are computed from.

use std::collections::BTreeSet;
use std::rc::Rc;

use super::amount::{Amount, PITCH, Root};
use super::memory::Memory;
use super::names::{Declaration, Kind};
use super::number::{Number, Ty, combined, has_word, is_narrowed};
use super::values::{Change, Known, Value, parts};
use super::{HostCode, Site};
use warpwright_cudac::ast::{Expr, ExprKind};
use warpwright_cudac::launches;
use warpwright_launch::Op;

/// A launch, with expressions instead of numbers.
#[derive(Clone, Debug, Default)]
pub struct Described {
    /// The byte of the text at which the kernel is named.
    pub at: usize,
    /// Blocks in as many dimensions as the launch says; none where not even that is known.
    pub grid: Vec<Option<Amount>>,
    /// Threads per block, likewise.
    pub block: Vec<Option<Amount>>,
    /// Dynamic shared memory in bytes per block.
    pub dynamic_smem: Option<Amount>,
    /// What it hands over, where that is seen.
    pub arguments: Option<Vec<Argument>>,
    /// Names that template arguments are made of.
    pub fixed: BTreeSet<Rc<Root>>,
}

/// What a launch hands over for one parameter.
#[derive(Clone, Debug, Default)]
pub struct Argument {
    /// As it is written.
    pub text: String,
    /// If it is an integer.
    pub integer: Option<Amount>,
    /// If it is a floating-point number that was seen.
    pub real: Option<f64>,
    /// If it is a pointer whose memory is known.
    pub memory: Option<Memory>,
    /// If it is a structure that was seen: what a member of it is, by name.
    pub members: Vec<(String, Argument)>,
    /// If it is a vector that was seen: its parts.
    pub parts: Vec<Argument>,
}

/// The device's multiprocessors, as the runtime and the driver call them.
const ATTRIBUTES: [&str; 2] = [
    "cudaDevAttrMultiProcessorCount",
    "CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT",
];

impl<'t> HostCode<'t> {
    /// All launches of a kernel, by its name without namespaces, in their order. Those of another instance than that with
    /// these template arguments, as far as they are known to be, are left out.
    pub fn described(&self, kernel: &str, instance: &[String]) -> Vec<Described> {
        let all = self.sites(kernel);
        let all = all.filter_map(|site| Some((site.0, self.described_at(site, instance)?)));
        all.map(|(at, own)| Described {
            at: self.tokens[at].at.start,
            ..own
        })
        .collect()
    }

    fn described_at(&self, (at, named): Site, instance: &[String]) -> Option<Described> {
        self.refuel();
        let known = Known::default();
        if let Some(config) = self.extended(at) {
            let field = |field| self.field(config, field, at, &known);
            let open = self.around[at]?;
            let inside = self.tokens[at].at.end..self.tokens.get(self.close(open))?.at.start;
            let behind = self.text[inside]
                .split_once(',')
                .map_or("", |(_, behind)| behind);
            return Some(Described {
                grid: amounts(field("gridDim")),
                block: amounts(field("blockDim")),
                dynamic_smem: field("dynamicSmemBytes").and_then(amount),
                arguments: Some(self.arguments(behind, at)),
                ..Described::default()
            });
        }
        let found = launches::launch(self.text, &self.tokens, at)?;
        if self.tokens[at].directive {
            // Its names are the parameters of a macro.
            return Some(Described::default());
        }
        let (mut known, mut fixed) = (Known::default(), BTreeSet::new());
        let own = self.template_arguments(&found, named).unwrap_or_default();
        for (argument, own) in own.into_iter().zip(instance) {
            if let Some(amount) = self.value(argument, at, &known).and_then(amount) {
                amount.roots(&mut BTreeSet::new(), &mut fixed);
                amount.roots(&mut fixed, &mut BTreeSet::new());
            }
            if !self.may_be(argument, own, at, &mut known) {
                return None;
            }
        }
        let part = |range: &std::ops::Range<usize>| {
            self.refuel();
            self.value(&self.text[range.clone()], at, &known)
        };
        let [grid, block] = [0, 1].map(|n| amounts(found.config.get(n).and_then(part)));
        let dynamic_smem = match found.config.get(2) {
            None => Some(Amount::Number(0)),
            Some(range) => part(range).and_then(amount),
        };
        let pointed = found
            .array
            .and_then(|range| self.pointed(&self.text[range], at));
        let arguments = match (found.parameters, pointed) {
            (Some(range), _) => Some(self.arguments(&self.text[range], at)),
            (None, pointed) => pointed.map(|text| self.arguments(&text, at)),
        };
        Some(Described {
            grid,
            block,
            dynamic_smem,
            arguments,
            fixed,
            ..Described::default()
        })
    }

    /// The namespaces around a byte of the text, and the name in front of the `::` there.
    pub fn spaces(&self, at: usize) -> (Vec<&'t str>, Option<&'t str>) {
        let at = self.tokens.partition_point(|t| t.at.start < at);
        let around = self.braces_around(at).filter_map(|open| {
            let named = (self.statement(open)..open).find(|&at| self.word(at) == "namespace")?;
            Some(self.word(named + 1))
        });
        let is_written = self.word_before(at) == ":" && at > 2 && self.word(at - 2) == ":";
        (around.collect(), is_written.then(|| self.word(at - 3)))
    }

    /// The type that the pointer of a name is declared to point to, at a byte of the text.
    pub fn pointed_type(&self, name: &str, at: usize) -> Option<String> {
        let at = self.tokens.partition_point(|t| t.at.start < at);
        let of = self.declaration(name, at).filter(|_| is_name(name))?;
        let start = self.tokens[self.statement(of.at)].at.start;
        let words = &self.text[start..self.tokens[of.at].at.start];
        let (ty, _) = words.split_once('*')?;
        let words = ty
            .split_whitespace()
            .filter(|w| !["const", "static"].contains(w));
        let words: Vec<&str> = words.collect();
        Some(words.join(" ")).filter(|ty| !ty.is_empty())
    }

    fn arguments(&self, text: &str, at: usize) -> Vec<Argument> {
        let all = parts(text).into_iter();
        all.map(|text| self.argument(text, at)).collect()
    }

    /// What the pointers of an array point to, as a list: `void *args[] = {&a, &b};`
    fn pointed(&self, array: &str, at: usize) -> Option<String> {
        let array = array.trim();
        let listed = match super::values::inside(array).filter(|_| array.starts_with('{')) {
            Some(listed) => listed,
            None => {
                let of = self.declaration(array, at)?;
                let open = (of.at..self.tokens.len().min(of.at + 16))
                    .take_while(|&at| self.word(at) != ";")
                    .find(|&at| self.word(at) == "{")?;
                let close = self.tokens.get(self.close(open))?;
                &self.text[self.tokens[open].at.end..close.at.start]
            }
        };
        let name = |element: &str| {
            let (_, name) = element.rsplit_once('&')?;
            let name = name.trim().trim_end_matches(')');
            is_name(name).then(|| name.to_owned())
        };
        let names: Option<Vec<String>> = parts(listed).into_iter().map(name).collect();
        names.map(|names| names.join(", "))
    }

    fn argument(&self, text: &str, at: usize) -> Argument {
        self.refuel();
        let integer = self.value(text, at, &Known::default()).and_then(amount);
        self.refuel();
        Argument {
            text: text.to_owned(),
            integer: integer.filter(|i| !i.has_element()),
            memory: self.memory(text, at),
            ..Argument::default()
        }
    }

    pub(super) fn refuel(&self) {
        self.fuel.set(super::values::MOST);
    }

    /// A number by the name of what holds it, if nothing else names it.
    pub(super) fn rooted(&self, number: Number, name: &str, at: usize, is_shared: bool) -> Number {
        if number.amount.has_element() {
            return number;
        }
        let (mut all, mut fixed) = (BTreeSet::new(), BTreeSet::new());
        number.amount.roots(&mut all, &mut fixed);
        if all.iter().any(|root| !root.name.is_empty()) {
            return number;
        }
        let root = Root {
            name: name.to_owned(),
            at,
            value: number.number(),
            is_sure: number.amount.is_sure(),
            varies: false,
            is_shared,
            is_processors: self.counts_processors(name, at),
        };
        number.with(Amount::Root(Rc::new(root)))
    }

    /// A number that is one of several.
    pub(super) fn rooted_unsure(&self, number: Number) -> Number {
        let root = Root {
            name: String::new(),
            at: usize::MAX,
            value: number.number(),
            is_sure: false,
            varies: false,
            is_shared: false,
            is_processors: false,
        };
        number.with(Amount::Root(Rc::new(root)))
    }

    /// Does the runtime say how many multiprocessors a device has, and this name is that? A member, or the variable whose
    /// address is handed over with the attribute.
    fn counts_processors(&self, name: &str, declared: usize) -> bool {
        let is_asked = |&place: &usize| {
            self.word_before(place) == "&"
                && self.word(place + 1) == ","
                && ATTRIBUTES.contains(&self.word(place + 2))
                && self
                    .declaration(name, place)
                    .is_some_and(|d| d.at == declared)
        };
        name.ends_with("_multiProcessorCount") || self.places(name).iter().any(is_asked)
    }

    /// What a name is of which nothing is known.
    pub(super) fn unknown(&self, name: &str, at: usize, is_shared: bool) -> Option<Value> {
        if !is_name(name) {
            return None;
        }
        let root = Root {
            name: name.to_owned(),
            at,
            value: None,
            is_sure: false,
            varies: false,
            is_shared,
            is_processors: self.counts_processors(name, at),
        };
        let ty = Ty {
            wide: true,
            unsigned: false,
        };
        Number::new(Amount::Root(Rc::new(root)), ty).map(Value::Number)
    }

    /// What a value becomes in the type of a declaration.
    pub(super) fn declared_as(&self, value: Value, of: &Declaration) -> Option<Value> {
        let Value::Number(number) = value else {
            return Some(value);
        };
        let start = self.tokens[self.statement(of.at)].at.start;
        let words = &self.text[start..self.tokens[of.at].at.start];
        // `auto` and what is not understood keep the type.
        let has = |word: &str| has_word(words, word);
        let is_plain = !has("auto") && of.kind == Kind::Integer && !has("enum");
        if is_narrowed(words, &number) {
            return None;
        }
        match is_plain {
            true => {
                let words = words.split([',', '=']).next().unwrap_or("");
                Number::new(number.amount, Ty::of(words.trim())).map(Value::Number)
            }
            false => Some(Value::Number(number)),
        }
    }

    /// A variable that changes in a way that is not followed: what it is first.
    pub(super) fn first(
        &self,
        of: &Declaration,
        name: &str,
        at: usize,
        known: &Known,
    ) -> Option<Value> {
        if let Some(pitch) = self.pitch(of, "") {
            return Some(Value::Number(pitch));
        }
        let initial = self.initial(of, None, known).and_then(Value::number);
        let (mut value, mut varies) = (initial, false);
        for &place in self.places(name) {
            self.fuel.set(self.fuel.get().checked_sub(1)?);
            let is_own = self.declaration(name, place).is_some_and(|d| d.at == of.at);
            let Some(change) = self
                .change(place, None)
                .filter(|_| is_own && place != of.at)
            else {
                continue;
            };
            let is_loop = |brace: usize| self.runs_again(brace) && self.is_inside(at, Some(brace));
            let is_head =
                self.around[place].is_some_and(|open| open > 0 && self.word(open - 1) == "for");
            varies |= is_head || self.braces_around(place).any(is_loop);
            if let (None, Change::Whole(text)) = (&value, change) {
                value = self
                    .value(&self.text[text], place, known)
                    .and_then(Value::number);
            }
        }
        let number = value.as_ref().and_then(Number::number);
        let is_wide = Ty {
            wide: true,
            unsigned: false,
        };
        let root = Root {
            name: name.to_owned(),
            at: of.at,
            value: number,
            is_sure: false,
            varies,
            is_shared: self.is_shared(self.around[of.at]),
            is_processors: self.counts_processors(name, of.at),
        };
        let ty = value.map_or(is_wide, |v| v.ty());
        Number::new(Amount::Root(Rc::new(root)), ty).map(Value::Number)
    }

    /// What `cudaMallocPitch` writes to a variable or to its member, as far as devices agree.
    fn pitch(&self, of: &Declaration, member: &str) -> Option<Number> {
        let name = self.word(of.at);
        let whole = match member {
            "" => name.to_owned(),
            member => format!("{name}.{member}"),
        };
        for &call in self.places("cudaMallocPitch") {
            let arguments = self.call_arguments(call)?;
            let [_, pitch, width, _] = arguments[..] else {
                continue;
            };
            let is_it = pitch.strip_prefix('&').map(str::trim) == Some(&whole)
                && self.declaration(name, call).is_some_and(|d| d.at == of.at);
            if is_it {
                let width = self.value(width, call, &Known::default())?.number()?;
                let sure = combined(Op::RoundUp, width, Number::constant(PITCH))?;
                return Some(sure);
            }
        }
        None
    }

    /// The arguments of the call that a token names.
    pub(super) fn call_arguments(&self, call: usize) -> Option<Vec<&'t str>> {
        let mut open = call + 1;
        if self.word(open) == "<" {
            open = (open..self.tokens.len().min(open + 40)).find(|&at| self.word(at) == "(")?;
        }
        let close = self
            .tokens
            .get(self.close(open))
            .filter(|_| self.word(open) == "(")?;
        Some(parts(&self.text[self.tokens[open].at.end..close.at.start]))
    }

    /// What the first call of a function hands over for its parameter, and the token of that call.
    pub(super) fn handed_text(&self, of: &Declaration) -> Option<(&'t str, usize)> {
        self.handed_texts(of)?.into_iter().next()
    }

    /// Does another call hand over something else than this?
    pub(super) fn is_handed_otherwise(&self, of: &Declaration, first: &str) -> bool {
        let all = self.handed_texts(of).unwrap_or_default();
        all.iter().any(|(text, _)| *text != first)
    }

    /// What the calls of a function hand over for its parameter, each with the token of that call.
    fn handed_texts(&self, of: &Declaration) -> Option<Vec<(&'t str, usize)>> {
        let open = self.around[of.at].filter(|&open| self.word(open) == "(" && open > 0)?;
        let body = self.body(open)?;
        let function = self.word(open - 1);
        let commas =
            (open + 1..of.at).filter(|&at| self.around[at] == Some(open) && self.word(at) == ",");
        let index = commas.count();
        let mut found = Vec::new();
        for &place in self.places(function) {
            self.fuel.set(self.fuel.get().checked_sub(1)?);
            let before = self.word_before(place);
            let is_typed = before.starts_with(|c: char| c.is_alphabetic() || c == '_')
                && !["return", "else", "do"].contains(&before);
            let is_call = place + 1 != open
                && !self.tokens[place].directive
                && !is_typed
                && !self.is_inside(place, Some(body))
                && !self.is_shared(self.around[place]);
            if !is_call {
                continue;
            }
            if let Some(argument) = self
                .call_arguments(place)
                .and_then(|all| all.get(index).copied())
            {
                found.push((argument, place));
            }
        }
        Some(found)
    }

    /// What the first call hands over for a parameter, as a number.
    pub(super) fn handed(&self, of: &Declaration) -> Option<Value> {
        self.fuel.set(self.fuel.get().checked_sub(1)?);
        let (text, call) = self.handed_text(of)?;
        let number = self.value(text, call, &Known::default())?.number();
        let name = self.word(of.at);
        let is_changed = |&&place: &&usize| {
            place != of.at
                && self.change(place, None).is_some()
                && self.declaration(name, place).is_some_and(|d| d.at == of.at)
        };
        let number = self.declared_as(Value::Number(number?), of)?.number()?;
        let is_changed = self.places(name).iter().any(|place| is_changed(&place))
            || self.is_handed_otherwise(of, text);
        let number = if is_changed {
            self.rooted_unsure(number)
        } else {
            number
        };
        Some(Value::Number(self.rooted(number, name, of.at, false)))
    }

    /// `p.n`: by a name of its own, unless it is a pitch.
    pub(super) fn member(&self, base: &Expr, member: &str, at: usize) -> Option<Number> {
        let ExprKind::Name(base) = &base.bare().kind else {
            return None;
        };
        let own = self.declaration(base, at);
        let value = own.as_ref().and_then(|own| self.pitch(own, member));
        let name = format!("{base}_{member}");
        let at = own.map_or(usize::MAX - 1, |d| d.at);
        match value {
            Some(value) => Some(self.rooted(value, &name, at, false)),
            None => self.unknown(&name, at, false)?.number(),
        }
    }
}

/// Is it a name that a launch description can have?
pub(super) fn is_name(text: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    !text.is_empty() && text.chars().all(is_part) && !text.starts_with(|c: char| c.is_ascii_digit())
}

fn amount(value: Value) -> Option<Amount> {
    value.number().map(|n| n.amount)
}

fn amounts(value: Option<Value>) -> Vec<Option<Amount>> {
    let all = value.map_or_else(Vec::new, Value::extents);
    all.into_iter().map(|n| n.map(|n| n.amount)).collect()
}
