//! Symbolic values: hash-consed terms, so that two terms are equal if and only if their ids are.
//!
//! A term stands for one value at the current point of one execution. Equal terms have equal values
//! for every input; unequal ones may or may not. The constructors simplify where that is exact bit
//! for bit: integer addition and multiplication modulo 2^bits, selection, packing and unpacking.
//! Floating-point arithmetic is never touched.

use std::collections::hash_map::Entry;
use std::fmt;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use warpwright_flow::Value;

use crate::facts::Facts;
use crate::fold::Comparison;
use crate::quotient::Numbers;
use crate::semantics::{Coordinate, Name, Split, Variable};
use crate::wholes::Wholes;

/// A term of a [`Terms`] table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Term(u32);

/// An interned text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Sym(u32);

/// What a [`Sym`] stands for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Text {
    Operation(String),
    Name(Name),
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Text::Operation(text) => f.write_str(text),
            Text::Name(name) => name.fmt(f),
        }
    }
}

/// Which of the two functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Side {
    Original,
    Rewritten,
}

/// What a term is made of, apart from its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Head {
    Const(u64),
    /// A register before anything was written to it.
    Unset(Side, Value),
    /// A register at a node of the product graph where it should not matter.
    Unknown(u32, Side, Value),
    /// A constant of the thread, by name.
    Input(Sym),
    Coordinate(Coordinate),
    /// Address of a variable.
    Symbol(Sym),
    /// The n-th result of an operation.
    Op(Sym, u8),
    Add(u32),
    Mul(u32),
    /// A function of each bit of values of so many bits, by its table (`pieces.rs`).
    Logic {
        bits: u32,
        table: u64,
    },
    ZeroExtend(u32, u32),
    SignExtend(u32, u32),
    /// Bits `lo..lo + bits` of a value of `of` bits.
    Extract {
        lo: u32,
        bits: u32,
        of: u32,
    },
    /// Pieces, low ones first, each with the number of its bits (`pieces.rs`).
    Concat,
    /// condition, then, else
    Select,
    Not,
    /// Are two integers equal?
    Equal(u32),
    /// Is the first integer less than the second one? Bits, and whether they are signed.
    Less(u32, bool),
    /// The value that the locations of a class hold on arrival at a node.
    Phi(u32, u32),
    /// One memory on entry to the function.
    Memory(u8),
    /// That memory after a store: memory, guard, address, values.
    Store(Sym),
    /// An event that keeps its order: guard, arguments, memories.
    Event(Sym),
    /// A memory after an event.
    After(u8),
    /// The n-th result of an event.
    Result(u8),
    /// A spill slot before anything was written to it.
    SlotUnset(u32),
    /// What a slot holds after a store to another one that overlaps it: old value, stored value.
    Clobbered(u32, u32),
    /// What a slot may hold after the last use of this value.
    Lost,
    /// A read of slot bytes that no single store wrote.
    Mixed(u32),
}

/// Parts of a sum that are put in order; a longer one stays as it was added up.
const MAX_PARTS: usize = 16;

pub(crate) type Args = SmallVec<[Term; 4]>;

/// Parts of a sum, with their factors.
pub(crate) type Parts = SmallVec<[(Term, u64); MAX_PARTS]>;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Node {
    head: Head,
    args: Args,
}

/// The table of all terms.
#[derive(Debug, Default)]
pub(crate) struct Terms {
    nodes: Vec<Node>,
    ids: FxHashMap<Node, Term>,
    /// Does the address of a private variable occur in it?
    private: Vec<bool>,
    /// How many operations on bits stand on each other in it.
    depths: Vec<u16>,
    texts: Vec<String>,
    text_ids: FxHashMap<Text, Sym>,
    private_symbols: Vec<Sym>,
    /// Are the bytes of a variable its alone?
    apart: FxHashMap<Sym, bool>,
    /// What is known to hold where terms are made.
    pub(crate) facts: Facts,
    /// What is known of coordinates.
    wholes: Wholes,
    /// Where numbers lie, and what products they are.
    pub(crate) numbers: Numbers,
    /// Zeros at the end of parameters, where launches say so.
    pub(crate) aligned: FxHashMap<Term, u32>,
    extracted: Extracted,
}

/// Functions of bits that stand on more of each other keep their parts whole: what a generator of random numbers shifts and
/// combines in each turn would come down to as many pieces as there are ways through its turns.
const DEEPEST: u16 = 16;

/// What [`Terms::extract`] has found since it was called from outside, by term and place.
#[derive(Debug, Default)]
struct Extracted {
    of: FxHashMap<(Term, (u32, u32, u32)), Term>,
    depth: u32,
}

impl Terms {
    /// Number of terms.
    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// An operation.
    pub(crate) fn sym(&mut self, text: &str) -> Sym {
        self.intern(Text::Operation(text.to_owned()))
    }

    /// A variable, function, parameter or special register.
    pub(crate) fn name_of(&mut self, name: &Name) -> Sym {
        self.intern(Text::Name(name.clone()))
    }

    fn intern(&mut self, text: Text) -> Sym {
        let next = Sym(self.texts.len() as u32);
        match self.text_ids.entry(text) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(place) => {
                self.texts.push(place.key().to_string());
                *place.insert(next)
            }
        }
    }

    pub(crate) fn text(&self, sym: Sym) -> &str {
        &self.texts[sym.0 as usize]
    }

    /// Declares a variable private: terms with its address are marked from now on.
    pub(crate) fn make_private(&mut self, name: &Name) -> Sym {
        let sym = self.name_of(name);
        self.private_symbols.push(sym);
        sym
    }

    /// Makes known what a variable's declaration says.
    pub(crate) fn declare(&mut self, variable: &Variable, are_apart: bool) {
        let symbol = self.symbol(&variable.name);
        self.align(symbol, variable.align.max(1).into());
        let sym = self.name_of(&variable.name);
        self.apart.insert(sym, variable.is_apart && are_apart);
    }

    /// The variable that an address points into, if it is one whose bytes are its own: the only one in a sum.
    pub(crate) fn variable_of(&self, address: Term) -> Option<Sym> {
        let mut found = None;
        let mut work = Args::from_slice(&[address]);
        let mut looked = 0;
        while let Some(term) = work.pop() {
            looked += 1;
            if looked > 4 * MAX_PARTS {
                return None;
            }
            match (self.head(term), self.args(term)) {
                (Head::Add(_), args) => work.extend_from_slice(args),
                (Head::Symbol(sym), _) if found.is_none() => found = Some(sym),
                (Head::Symbol(_), _) => return None,
                _ => {}
            }
        }
        found.filter(|sym| self.apart.get(sym) == Some(&true))
    }

    pub(crate) fn head(&self, term: Term) -> Head {
        self.nodes[term.0 as usize].head
    }

    pub(crate) fn args(&self, term: Term) -> &[Term] {
        &self.nodes[term.0 as usize].args
    }

    /// Does the address of a private variable occur in the term?
    pub(crate) fn is_private(&self, term: Term) -> bool {
        self.private[term.0 as usize]
    }

    /// The term of this shape, as it is.
    pub(crate) fn make(&mut self, head: Head, args: impl IntoIterator<Item = Term>) -> Term {
        let node = Node {
            head,
            args: args.into_iter().collect(),
        };
        if let Some(&term) = self.ids.get(&node) {
            return term;
        }
        let term = Term(self.nodes.len() as u32);
        let own = matches!(head, Head::Symbol(sym) if self.private_symbols.contains(&sym));
        // What a memory holds does not say where a value points.
        let opaque = matches!(head, Head::Store(_) | Head::Event(_) | Head::After(_));
        let inherited = !opaque && node.args.iter().any(|&arg| self.is_private(arg));
        self.private.push(own || inherited);
        let is_bitwise = matches!(
            head,
            Head::Logic { .. }
                | Head::Extract { .. }
                | Head::Concat
                | Head::ZeroExtend(..)
                | Head::Mul(_)
        );
        let deepest = node
            .args
            .iter()
            .map(|arg| self.depths[arg.0 as usize])
            .max();
        let deepest = deepest.unwrap_or(0);
        self.depths.push(if is_bitwise {
            deepest.saturating_add(1)
        } else {
            0
        });
        self.nodes.push(node.clone());
        self.ids.insert(node, term);
        term
    }

    /// Was a term of one argument made?
    pub(crate) fn has(&self, head: Head, arg: Term) -> bool {
        let args = Args::from_slice(&[arg]);
        self.ids.contains_key(&Node { head, args })
    }

    pub(crate) fn zero(&mut self) -> Term {
        self.constant(0)
    }

    pub(crate) fn truth(&mut self) -> Term {
        self.constant(1)
    }

    pub(crate) fn leaf(&mut self, head: Head) -> Term {
        self.make(head, [])
    }

    pub(crate) fn constant(&mut self, bits: u64) -> Term {
        self.leaf(Head::Const(bits))
    }

    /// A constant of the thread.
    pub(crate) fn input(&mut self, name: &Name) -> Term {
        let sym = self.name_of(name);
        self.leaf(Head::Input(sym))
    }

    /// Takes note of what a number is made of.
    pub(crate) fn split(&mut self, split: &Split) {
        let whole = self.input(&split.whole);
        let parts: Args = split
            .parts
            .iter()
            .map(|part| self.input(&part.name))
            .collect();
        self.wholes.insert(split, whole, &parts);
    }

    pub(crate) fn symbol(&mut self, name: &Name) -> Term {
        let sym = self.name_of(name);
        self.leaf(Head::Symbol(sym))
    }

    /// Something unknown, for tests.
    #[cfg(test)]
    pub(crate) fn unknown(&mut self, name: &str) -> Term {
        self.symbol(&Name::Module(name.to_owned()))
    }

    pub(crate) fn as_const(&self, term: Term) -> Option<u64> {
        match self.head(term) {
            Head::Const(bits) => Some(bits),
            _ => None,
        }
    }

    /// k, if it is 2^k.
    pub(crate) fn as_power(&self, term: Term) -> Option<u32> {
        let value = self.as_const(term)?;
        value.is_power_of_two().then(|| value.trailing_zeros())
    }

    pub(crate) fn add(&mut self, bits: u32, a: Term, b: Term) -> Term {
        let (a, b) = self.constant_last(a, b);
        let Some(right) = self.as_const(b) else {
            return self.sum(bits, a, b);
        };
        if right == 0 {
            return a;
        }
        if self.complemented(bits, a).is_some() {
            return self.sum(bits, a, b);
        }
        if let Some(left) = self.as_const(a) {
            return self.constant(truncate(left.wrapping_add(right), bits));
        }
        if self.head(a) == Head::Add(bits)
            && let [inner, last] = *self.args(a)
            && let Some(left) = self.as_const(last)
        {
            let sum = self.constant(truncate(left.wrapping_add(right), bits));
            return self.add(bits, inner, sum);
        }
        self.make(Head::Add(bits), [a, b])
    }

    /// A sum of unknowns: its parts in order, each with its factor, the constant last.
    fn sum(&mut self, bits: u32, a: Term, b: Term) -> Term {
        let mut parts = Parts::new();
        let mut constant = 0u64;
        // A long sum is one part of what is added to it.
        if !(self.parts(bits, a, 1, &mut parts, &mut constant)
            && self.parts(bits, b, 1, &mut parts, &mut constant))
        {
            return self.make(Head::Add(bits), [a, b]);
        }
        self.of_parts(bits, parts, constant)
    }

    /// Adds `factor` times `term` to a sum of parts with factors; false if there are too many.
    pub(crate) fn parts(
        &self,
        bits: u32,
        term: Term,
        factor: u64,
        parts: &mut Parts,
        constant: &mut u64,
    ) -> bool {
        let mut work = Parts::from_slice(&[(term, factor)]);
        while let Some((term, factor)) = work.pop() {
            match (self.head(term), self.args(term)) {
                (Head::Const(value), _) => {
                    *constant = constant.wrapping_add(value.wrapping_mul(factor));
                }
                (Head::Add(width), &[x, y]) if width == bits => {
                    work.extend([(x, factor), (y, factor)]);
                }
                (Head::Mul(width), &[x, last])
                    if width == bits && self.as_const(last).is_some() =>
                {
                    let by = self.as_const(last).unwrap_or_default();
                    work.push((x, factor.wrapping_mul(by)));
                }
                // ~x = -x - 1
                (Head::Logic { .. }, &[x]) if self.complemented(bits, term).is_some() => {
                    *constant = constant.wrapping_sub(factor);
                    work.push((x, factor.wrapping_neg()));
                }
                _ => match parts.iter_mut().find(|part| part.0 == term) {
                    Some(part) => part.1 = part.1.wrapping_add(factor),
                    None => parts.push((term, factor)),
                },
            }
            if parts.len() + work.len() > MAX_PARTS {
                return false;
            }
        }
        true
    }

    /// x, of the complement of a number of so many bits.
    fn complemented(&self, bits: u32, term: Term) -> Option<Term> {
        match (self.head(term), self.args(term)) {
            (Head::Logic { bits: width, table }, &[x]) => {
                (width == bits && table == 0b01).then_some(x)
            }
            _ => None,
        }
    }

    fn of_parts(&mut self, bits: u32, mut parts: Parts, constant: u64) -> Term {
        self.without_remainders(bits, &mut parts);
        self.with_quotients(bits, &mut parts);
        parts.sort_unstable();
        let mut sum = None;
        for (part, factor) in parts {
            let part = match truncate(factor, bits) {
                0 => continue,
                1 => part,
                factor => {
                    let factor = self.constant(factor);
                    self.make(Head::Mul(bits), [part, factor])
                }
            };
            sum = Some(match sum {
                None => part,
                Some(sum) => self.make(Head::Add(bits), [sum, part]),
            });
        }
        let constant = self.constant(truncate(constant, bits));
        match sum {
            Some(sum) => self.add(bits, sum, constant),
            None => constant,
        }
    }

    /// Takes a number without its low bits, `x - x mod 2^k`, out of a sum as `2^k` times the others.
    fn without_remainders(&mut self, bits: u32, parts: &mut Parts) {
        for at in 0..parts.len() {
            let (low, factor) = parts[at];
            let (Head::ZeroExtend(from, to), &[part]) = (self.head(low), self.args(low)) else {
                continue;
            };
            let (Head::Extract { lo: 0, of, .. }, &[whole]) = (self.head(part), self.args(part))
            else {
                continue;
            };
            let is_whole = |part: &(Term, u64)| {
                part.0 == whole && truncate(part.1.wrapping_add(factor), bits) == 0
            };
            let Some(place) = parts.iter().position(is_whole) else {
                continue;
            };
            if to == bits && of == bits {
                let high = self.extract(from, bits - from, bits, whole);
                let high = self.zero_extend(bits - from, bits, high);
                let times = parts[place].1.wrapping_mul(1 << from);
                (parts[at].1, parts[place].1) = (0, 0);
                match parts.iter_mut().find(|part| part.0 == high) {
                    Some(known) => known.1 = known.1.wrapping_add(times),
                    None => parts[place] = (high, times),
                }
            }
        }
    }

    pub(crate) fn add_const(&mut self, bits: u32, a: Term, b: i64) -> Term {
        let b = self.constant(truncate(b as u64, bits));
        self.add(bits, a, b)
    }

    /// a - b, as a sum.
    pub(crate) fn sub(&mut self, bits: u32, a: Term, b: Term) -> Term {
        let minus_one = self.constant(truncate(u64::MAX, bits));
        let b = self.mul(bits, b, minus_one);
        self.add(bits, a, b)
    }

    pub(crate) fn mul(&mut self, bits: u32, a: Term, b: Term) -> Term {
        let (a, b) = self.constant_last(a, b);
        match (self.as_const(a), self.as_const(b)) {
            (Some(a), Some(b)) => self.constant(truncate(a.wrapping_mul(b), bits)),
            (_, Some(0)) => self.constant(0),
            (_, Some(1)) => a,
            // Every part of a sum is multiplied by itself.
            (_, Some(factor)) => {
                let mut parts = Parts::new();
                let mut constant = 0u64;
                match self.parts(bits, a, factor, &mut parts, &mut constant) {
                    true => self.of_parts(bits, parts, constant),
                    false => self.make(Head::Mul(bits), [a, b]),
                }
            }
            // So is every part of a short sum by an unknown, and constant factors come last.
            _ => {
                for (x, y) in [(a, b), (b, a)] {
                    let (head, args) = (self.head(x), self.args(x));
                    let &[inner, last] = args else { continue };
                    match head {
                        Head::Add(width) if width == bits && self.is_short(bits, x) => {
                            let [product, rest] = [inner, last].map(|part| self.mul(bits, part, y));
                            return self.add(bits, product, rest);
                        }
                        Head::Mul(width) if width == bits && self.as_const(last).is_some() => {
                            let product = self.mul(bits, inner, y);
                            return self.mul(bits, product, last);
                        }
                        _ => {}
                    }
                }
                self.make(Head::Mul(bits), [a, b])
            }
        }
    }

    /// Has a sum few parts, so that it may be multiplied by another one?
    fn is_short(&self, bits: u32, sum: Term) -> bool {
        let (mut parts, mut constant) = (Parts::new(), 0);
        self.parts(bits, sum, 1, &mut parts, &mut constant) && parts.len() < 4
    }

    /// Is `a` less than `b`? With a constant, it stands on the right.
    pub(crate) fn less(&mut self, bits: u32, signed: bool, a: Term, b: Term) -> Term {
        let order = |value: u64| match signed {
            // The sign bit flipped: signed order is that of unsigned numbers.
            true => truncate(value ^ 1 << (bits - 1), bits),
            false => truncate(value, bits),
        };
        let (left, right) = (self.as_const(a), self.as_const(b));
        match (left.map(order), right.map(order)) {
            (Some(left), Some(right)) => self.constant(u64::from(left < right)),
            (_, Some(0)) => self.constant(0),
            (None, Some(1)) if !signed => self.equal_zero(bits, a),
            (Some(left), None) if left == truncate(u64::MAX, bits) => self.constant(0),
            // c < x: not x < c + 1.
            (Some(_), None) => {
                let next = left.unwrap_or_default().wrapping_add(1);
                let next = self.constant(truncate(next, bits));
                let below = self.less(bits, signed, b, next);
                self.not(below)
            }
            _ if a == b => self.constant(0),
            _ => self.make(Head::Less(bits, signed), [a, b]),
        }
    }

    /// What a comparison of two integers of so many bits, with signs or without, says.
    pub(crate) fn compared(
        &mut self,
        by: Comparison,
        (bits, signed): (u32, bool),
        [a, b]: [Term; 2],
    ) -> Term {
        let answer = match by {
            Comparison::Equal | Comparison::Differ => self.equal(bits, a, b),
            Comparison::Less | Comparison::GreaterEqual => self.less(bits, signed, a, b),
            Comparison::Greater | Comparison::LessEqual => self.less(bits, signed, b, a),
        };
        match by {
            Comparison::Equal | Comparison::Less | Comparison::Greater => answer,
            _ => self.not(answer),
        }
    }

    fn equal_zero(&mut self, bits: u32, a: Term) -> Term {
        let zero = self.constant(0);
        self.equal(bits, a, zero)
    }

    /// Both orders of the operands of a commutative operation are one.
    pub(crate) fn in_order(&self, args: &mut [Term]) {
        if let [a, b, ..] = args {
            (*a, *b) = self.constant_last(*a, *b);
        }
    }

    /// The product of two extended numbers, which their double width holds.
    pub(crate) fn mul_wide(&mut self, bits: u32, signed: bool, a: Term, b: Term) -> Term {
        let [a, b] = [a, b].map(|factor| match signed {
            true => self.sign_extend(bits, 2 * bits, factor),
            false => self.zero_extend(bits, 2 * bits, factor),
        });
        self.mul(2 * bits, a, b)
    }

    pub(crate) fn shl(&mut self, op: Sym, bits: u32, a: Term, b: Term) -> Term {
        match self.as_const(b) {
            Some(by) if by >= u64::from(bits) => self.constant(0),
            Some(by) => {
                let factor = self.constant(truncate(1 << by, bits));
                self.mul(bits, a, factor)
            }
            None => self.make(Head::Op(op, 0), [a, b]),
        }
    }

    pub(crate) fn zero_extend(&mut self, from: u32, to: u32, a: Term) -> Term {
        self.extend(from, to, false, a)
    }

    pub(crate) fn sign_extend(&mut self, from: u32, to: u32, a: Term) -> Term {
        self.extend(from, to, true, a)
    }

    fn extend(&mut self, from: u32, to: u32, signed: bool, a: Term) -> Term {
        let wide = |value: u64| match signed {
            true => truncate(sign_extended(value, from) as u64, to),
            false => truncate(value, from),
        };
        if let Some(value) = self.as_const(a) {
            return self.constant(wide(value));
        }
        if from == to {
            return a;
        }
        if let Some(sum) = self.extended_whole(from, to, signed, a) {
            return sum;
        }
        let signed = signed && !self.is_never_negative(from, a) && !self.is_positive_here(from, a);
        match (self.head(a), self.args(a)) {
            (Head::ZeroExtend(inner, _), &[x]) if !signed => self.zero_extend(inner, to, x),
            (Head::SignExtend(inner, whole), &[x]) if signed && whole == from => {
                self.sign_extend(inner, to, x)
            }
            // Bits that are zero anyway are cut off.
            (Head::Extract { lo: 0, of, .. }, &[x])
                if !signed && of == to && self.is_below(of, x, from) =>
            {
                x
            }
            // A sum that does not wrap around is one of wider parts.
            (Head::Add(width), &[x, last])
                if width == from && self.as_const(last).is_some() && from < 64 =>
            {
                let by = self.as_const(last).unwrap_or_default();
                if self.facts.never_wraps(self, from, signed, x, by) {
                    let x = self.extend(from, to, signed, x);
                    return self.add_const(to, x, sign_extended(by, from));
                }
                self.make_extended(from, to, signed, a)
            }
            _ => self.make_extended(from, to, signed, a),
        }
    }

    /// A sum of coordinates that does not wrap around is one of wider ones.
    fn extended_whole(&mut self, from: u32, to: u32, signed: bool, a: Term) -> Option<Term> {
        if self.wholes.is_empty() || from != 32 {
            return None;
        }
        let (mut parts, mut constant) = (Parts::new(), 0u64);
        if !self.parts(from, a, 1, &mut parts, &mut constant) {
            return None;
        }
        let (low, high) = self.wholes.range(&parts, constant)?;
        let end = 1i128 << (from - u32::from(signed));
        if low < 0 || high >= end {
            return None;
        }
        for (part, factor) in &mut parts {
            *part = self.make_extended(from, to, false, *part);
            *factor = sign_extended(*factor, from) as u64;
        }
        Some(self.of_parts(to, parts, sign_extended(constant, from) as u64))
    }

    fn make_extended(&mut self, from: u32, to: u32, signed: bool, a: Term) -> Term {
        let head = match signed {
            true => Head::SignExtend(from, to),
            false => Head::ZeroExtend(from, to),
        };
        self.make(head, [a])
    }

    /// Bits `lo..lo + bits` of a value of `of` bits.
    pub(crate) fn extract(&mut self, lo: u32, bits: u32, of: u32, a: Term) -> Term {
        if lo == 0 && bits == of {
            return a;
        }
        match self.head(a) {
            Head::Const(value) if lo < 64 => self.constant(truncate(value >> lo, bits)),
            Head::Extract {
                lo: inner,
                of: whole,
                ..
            } => {
                let arg = self.args(a)[0];
                self.extract(inner + lo, bits, whole, arg)
            }
            Head::SignExtend(from, to) if to == of || lo + bits <= from => {
                let arg = self.args(a)[0];
                if lo + bits <= from {
                    return self.extract(lo, bits, from, arg);
                }
                // What stands above the number are copies of its sign.
                let first = lo.min(from - 1);
                let part = self.extract(first, from - first, from, arg);
                self.sign_extend(from - first, bits, part)
            }
            Head::ZeroExtend(..) | Head::Concat => self.extract_pieces(lo, bits, of, a),
            Head::Logic { bits: width, table }
                if width == of && self.depths[a.0 as usize] <= DEEPEST =>
            {
                self.extract_logic((lo, bits, of), a, table)
            }
            // A shift brings zeros in from below, and what it keeps stands higher.
            Head::Mul(width)
                if width == of
                    && let Some(by) = self.as_power(self.args(a)[1])
                    && (lo >= by || lo + bits <= by) =>
            {
                let arg = self.args(a)[0];
                match lo >= by {
                    true => self.extract(lo - by, bits, of, arg),
                    false => self.zero(),
                }
            }
            // The low bits of a sum are those of its parts.
            Head::Add(width) | Head::Mul(width) if lo == 0 && width == of => self.low(bits, of, a),
            _ => self.make(Head::Extract { lo, bits, of }, [a]),
        }
    }

    /// Bits of a function of bits: each term once, since random number generators shift and combine what they have
    /// combined before.
    fn extract_logic(&mut self, place: (u32, u32, u32), a: Term, table: u64) -> Term {
        let (lo, bits, of) = place;
        if let Some(&known) = self.extracted.of.get(&(a, place)) {
            return known;
        }
        self.extracted.depth += 1;
        let args = Args::from_slice(self.args(a));
        let parts: Args = args
            .into_iter()
            .map(|arg| self.extract(lo, bits, of, arg))
            .collect();
        let found = self.logic(bits, table, &parts);
        self.extracted.depth -= 1;
        match self.extracted.depth {
            // Facts may be others the next time.
            0 => self.extracted.of = FxHashMap::default(),
            _ => drop(self.extracted.of.insert((a, place), found)),
        }
        found
    }

    /// The low bits of a sum or product of `of` bits.
    fn low(&mut self, bits: u32, of: u32, a: Term) -> Term {
        let head = Head::Extract { lo: 0, bits, of };
        let (mut parts, mut constant) = (Parts::new(), 0u64);
        if !self.parts(of, a, 1, &mut parts, &mut constant) {
            return self.make(head, [a]);
        }
        let mut low = Parts::new();
        for (part, factor) in parts {
            // Multiples of a power of two do not show below it.
            if truncate(factor, bits) == 0 {
                continue;
            }
            let part = match self.head(part) {
                Head::Mul(_) if let Some((from, [a, b])) = self.extended_factors(part, bits) => {
                    let product = self.mul(from, a, b);
                    self.extract(0, bits, from, product)
                }
                Head::Add(_) | Head::Mul(_) => self.make(head, [part]),
                _ => self.extract(0, bits, of, part),
            };
            if !self.parts(bits, part, factor, &mut low, &mut constant) {
                return self.make(head, [a]);
            }
        }
        self.of_parts(bits, low, constant)
    }

    /// Parts of `bits` bits each, low part first.
    pub(crate) fn concat(&mut self, bits: u32, parts: &[Term]) -> Term {
        let pieces: Vec<_> = parts.iter().map(|&part| (bits, part)).collect();
        self.join_pieces(&pieces)
    }

    pub(crate) fn not(&mut self, a: Term) -> Term {
        match self.head(a) {
            Head::Not => self.args(a)[0],
            Head::Const(bit) => self.constant(bit & 1 ^ 1),
            _ => self.make(Head::Not, [a]),
        }
    }

    /// `then` if `condition` holds, else `other`.
    pub(crate) fn select(&mut self, condition: Term, then: Term, other: Term) -> Term {
        match self.head(condition) {
            Head::Not => {
                let inner = self.args(condition)[0];
                return self.select(inner, other, then);
            }
            Head::Const(bit) => return if bit & 1 == 1 { then } else { other },
            _ => {}
        }
        let then = self.assume(condition, then);
        let negated = self.not(condition);
        let other = self.assume(negated, other);
        if then == other {
            return then;
        }
        let (condition, then, other) = self.one_form(condition, then, other);
        self.make(Head::Select, [condition, then, other])
    }

    /// The lesser or the greater of two integers.
    pub(crate) fn extreme(
        &mut self,
        bits: u32,
        signed: bool,
        most: bool,
        a: Term,
        b: Term,
    ) -> Term {
        let (a, b) = self.constant_last(a, b);
        let less = self.less(bits, signed, a, b);
        let (then, other) = if most { (b, a) } else { (a, b) };
        self.select(less, then, other)
    }

    /// The lesser or greater of two numbers in one form: which of two equal ones is taken does not matter.
    fn one_form(&mut self, condition: Term, then: Term, other: Term) -> (Term, Term, Term) {
        let same = (condition, then, other);
        let Head::Less(bits, signed) = self.head(condition) else {
            return same;
        };
        let [x, y] = [self.args(condition)[0], self.args(condition)[1]];
        let is_of = |y: Term| (then, other) == (x, y) || (then, other) == (y, x);
        if is_of(y) && self.constant_last(x, y) != (x, y) {
            let condition = self.less(bits, signed, y, x);
            return match self.head(condition) {
                Head::Less(..) => (condition, other, then),
                _ => same,
            };
        }
        // x < c + 1: not c < x.
        let limit = self
            .as_const(y)
            .map(|end| truncate(end.wrapping_sub(1), bits));
        let limit = limit.map(|limit| self.constant(limit));
        match limit.filter(|&limit| is_of(limit)) {
            Some(limit) => {
                let condition = self.less(bits, signed, x, limit);
                match self.head(condition) {
                    Head::Less(..) => (condition, then, other),
                    _ => same,
                }
            }
            None => same,
        }
    }

    /// What `term` is worth where `condition` holds.
    pub(crate) fn assume(&self, condition: Term, term: Term) -> Term {
        let (atom, holds) = match self.head(condition) {
            Head::Not => (self.args(condition)[0], false),
            _ => (condition, true),
        };
        match (self.head(term), self.args(term)) {
            (Head::Select, &[inner, then, other]) if inner == atom => {
                if holds {
                    then
                } else {
                    other
                }
            }
            _ => term,
        }
    }

    /// Are two integers equal? Sees through a predicate that was turned into an integer.
    pub(crate) fn equal(&mut self, bits: u32, a: Term, b: Term) -> Term {
        let (a, b) = self.constant_last(a, b);
        if a == b {
            return self.constant(1);
        }
        let [first, second] = [a, b].map(|side| self.with_constant(bits, side));
        if first.0 == second.0 {
            return self.constant(u64::from(first.1 == second.1));
        }
        let Some(right) = self.as_const(b) else {
            return self.make(Head::Equal(bits), [a, b]);
        };
        if let Some(left) = self.as_const(a) {
            return self.constant(u64::from(left == right));
        }
        if let (Head::Select, &[condition, then, other]) = (self.head(a), self.args(a))
            && let (Some(then), Some(other)) = (self.as_const(then), self.as_const(other))
        {
            return match (then == right, other == right) {
                (true, true) => self.constant(1),
                (false, false) => self.constant(0),
                (true, false) => condition,
                (false, true) => self.not(condition),
            };
        }
        if let (Head::ZeroExtend(from, _), &[narrow]) = (self.head(a), self.args(a)) {
            return match truncate(right, from) == right {
                true => self.equal(from, narrow, b),
                false => self.zero(),
            };
        }
        self.make(Head::Equal(bits), [a, b])
    }

    /// A sum without its constant, and the constant.
    fn with_constant(&self, bits: u32, a: Term) -> (Term, u64) {
        match (self.head(a), self.args(a)) {
            (Head::Add(of), &[base, last]) if of == bits => self
                .as_const(last)
                .map_or((a, 0), |last| (base, truncate(last, bits))),
            _ => (a, 0),
        }
    }

    /// Orders the operands of a commutative integer operation.
    fn constant_last(&self, a: Term, b: Term) -> (Term, Term) {
        let key = |term| (self.as_const(term).is_some(), term);
        if key(a) <= key(b) { (a, b) } else { (b, a) }
    }

    /// Is it certain that nobody can see a single as a product that a sum might be fused with? What is loaded behind a
    /// store may be what was stored, and sums with constants may be what is left of them.
    pub(crate) fn is_no_product(&self, term: Term) -> bool {
        const SUMS: [&str; 5] = ["add.", "sub.", "fma.", "max.", "min."];
        const OTHERS: [&str; 6] = [
            "mul.rn.",
            "mul.rz.",
            "mul.rm.",
            "mul.rp.",
            "cvt.rn.f32.s",
            "cvt.rn.f32.u",
        ];
        let Head::Op(op, 0) = self.head(term) else {
            return matches!(self.head(term), Head::Const(_));
        };
        let (text, args) = (self.text(op), self.args(term));
        let begins = |words: &[&str]| words.iter().any(|word| text.starts_with(word));
        let is_at_entry =
            |arg: &Term| !self.is_memory(*arg) || matches!(self.head(*arg), Head::Memory(_));
        let is_unknown = |arg: &Term| self.as_const(*arg).is_none();
        begins(&OTHERS)
            || (begins(&["ld."]) && args.iter().all(is_at_entry))
            || (begins(&SUMS) && args.iter().all(is_unknown) && args.first() != args.get(1))
    }

    /// Is it a memory, as opposed to a value?
    pub(crate) fn is_memory(&self, term: Term) -> bool {
        matches!(
            self.head(term),
            Head::Memory(_) | Head::Store(_) | Head::After(_)
        )
    }

    /// The term as text, cut off below `depth` levels. `names` may name leaves.
    pub(crate) fn show(
        &self,
        term: Term,
        depth: u32,
        names: &dyn Fn(Head) -> Option<String>,
    ) -> String {
        let head = self.head(term);
        if let Some(name) = names(head) {
            return name;
        }
        let args = self.args(term);
        match (head, args) {
            (Head::Const(bits), _) if bits < 1 << 16 => return bits.to_string(),
            (Head::Const(bits), _) => return format!("{bits:#x}"),
            // An event's first result is what it is known by; its guard stands before its arguments.
            (Head::Result(n), &[event]) => {
                let shown = self.show(event, depth, names);
                return if n == 0 {
                    shown
                } else {
                    format!("{shown}#{n}")
                };
            }
            (Head::After(_), &[event]) => return self.name(self.head(event)),
            (Head::Add(bits), &[a, b]) => {
                let pairs = [(a, self.negated(bits, b)), (b, self.negated(bits, a))];
                let pair = pairs.into_iter().find_map(|(x, y)| Some([x, y?]));
                if let (Some(pair), 1..) = (pair, depth) {
                    let shown = pair.map(|part| self.show(part, depth - 1, names));
                    return format!("sub{bits}({})", shown.join(", "));
                }
            }
            (Head::Mul(bits), _) if depth > 0 && self.negated(bits, term).is_some() => {
                let shown = self.show(args[0], depth - 1, names);
                return format!("sub{bits}(0, {shown})");
            }
            // A product of extended numbers is a wide one, as in the instruction.
            (Head::Mul(_), &[a, b]) => {
                if let Some((from, factors)) = self.wide_factors(a, b) {
                    let shown = factors.map(|factor| self.show(factor, depth.max(1) - 1, names));
                    return match depth {
                        0 => format!("mulwide{from}(...)"),
                        _ => format!("mulwide{from}({})", shown.join(", ")),
                    };
                }
            }
            (Head::Memory(_), _) => return "entry".to_owned(),
            (Head::Store(_), _) => return self.name(head),
            _ => {}
        }
        let name = self.name(head);
        let guard = usize::from(matches!(head, Head::Event(_)));
        let mut memory = String::new();
        let mut shown = Vec::new();
        let step = if head == Head::Concat { 2 } else { 1 };
        for &arg in args.iter().skip(guard).step_by(step) {
            if self.is_memory(arg) {
                if memory.is_empty() && !matches!(self.head(arg), Head::Memory(_)) {
                    memory = format!(" after {}", self.show(arg, 0, names));
                }
            } else if depth > 0 {
                shown.push(self.show(arg, depth - 1, names));
            }
        }
        match (args.len(), depth) {
            (0, _) => name,
            (_, 0) => format!("{name}(...){memory}"),
            _ => format!("{name}({}){memory}", shown.join(", ")),
        }
    }

    /// x, of a part -x of a sum.
    fn negated(&self, bits: u32, part: Term) -> Option<Term> {
        match (self.head(part), self.args(part)) {
            (Head::Mul(_), &[x, factor]) => {
                (self.as_const(factor) == Some(truncate(u64::MAX, bits))).then_some(x)
            }
            _ => None,
        }
    }

    /// The factors of a wide product of unknowns, and their bits, `least` or more: the product's low bits are not made of
    /// others.
    fn extended_factors(&self, product: Term, least: u32) -> Option<(u32, [Term; 2])> {
        let &[a, b] = self.args(product) else {
            return None;
        };
        let extended = |term: Term| match self.head(term) {
            Head::ZeroExtend(from, _) | Head::SignExtend(from, _) => {
                Some((from, self.args(term)[0]))
            }
            _ => None,
        };
        let ((from, a), (width, b)) = (extended(a)?, extended(b)?);
        (from == width && least <= from).then_some((from, [a, b]))
    }

    /// The factors of a wide product, and their bits.
    fn wide_factors(&self, a: Term, b: Term) -> Option<(u32, [Term; 2])> {
        let extended = |term: Term| match self.head(term) {
            Head::ZeroExtend(from, _) => Some((from, false, self.args(term)[0])),
            Head::SignExtend(from, _) => Some((from, true, self.args(term)[0])),
            _ => None,
        };
        let (from, signed, first) = extended(a)?;
        match extended(b) {
            Some((width, sign, second)) if (width, sign) == (from, signed) => {
                Some((from, [first, second]))
            }
            None if self.as_const(b).is_some() => Some((from, [first, b])),
            _ => None,
        }
    }

    fn name(&self, head: Head) -> String {
        match head {
            Head::Input(sym) | Head::Symbol(sym) | Head::Op(sym, 0) => self.text(sym).to_owned(),
            Head::Op(sym, u8::MAX) => format!("carry of {}", self.text(sym)),
            Head::Op(sym, n) => format!("{}#{n}", self.text(sym)),
            Head::Store(sym) | Head::Event(sym) => self.text(sym).to_owned(),
            Head::Coordinate(Coordinate::Thread(dim)) => format!("%tid.{}", axis(dim)),
            Head::Coordinate(Coordinate::Block(dim)) => format!("%ntid.{}", axis(dim)),
            Head::Add(bits) => format!("add{bits}"),
            Head::Mul(bits) => format!("mul{bits}"),
            Head::Logic { bits, table } => match table {
                0b01 => format!("not{bits}"),
                0b1000 => format!("and{bits}"),
                0b1110 => format!("or{bits}"),
                0b0110 => format!("xor{bits}"),
                _ => format!("logic{table:#x}of{bits}"),
            },
            Head::ZeroExtend(from, to) => format!("zext{from}to{to}"),
            Head::SignExtend(from, to) => format!("sext{from}to{to}"),
            Head::Extract { lo, bits, .. } => format!("bits{lo}to{}", lo + bits - 1),
            Head::Concat => "concat".to_owned(),
            Head::Select => "select".to_owned(),
            Head::Not => "not".to_owned(),
            Head::Equal(bits) => format!("eq{bits}"),
            Head::Less(bits, signed) => format!("less{}{bits}", if signed { "s" } else { "u" }),
            Head::Clobbered(..) => "overwritten".to_owned(),
            Head::Lost => "lost".to_owned(),
            Head::Mixed(_) => "bytes".to_owned(),
            _ => "?".to_owned(),
        }
    }
}

fn axis(dim: u8) -> char {
    ['x', 'y', 'z']
        .get(usize::from(dim))
        .copied()
        .unwrap_or('?')
}

/// A number of so many bits with its sign.
pub(crate) fn sign_extended(value: u64, bits: u32) -> i64 {
    let shift = 64 - bits.clamp(1, 64);
    (value << shift) as i64 >> shift
}

/// The low `bits` of a number.
pub(crate) fn truncate(value: u64, bits: u32) -> u64 {
    if bits >= 64 {
        value
    } else {
        value & ((1 << bits) - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_fold_modulo_the_width() {
        let mut t = Terms::default();
        let x = t.unknown("x");
        let (a, b) = (t.add_const(32, x, -4), t.constant(4));
        assert_eq!(t.add(32, a, b), x);
        let big = t.constant(0xffff_ffff);
        let one = t.constant(1);
        let zero = t.constant(0);
        assert_eq!(t.add(32, big, one), zero);
        assert_ne!(t.add(64, big, one), zero);
        assert_eq!(t.sub(32, zero, one), big);
    }

    #[test]
    fn commutative_operations_have_one_form() {
        let mut t = Terms::default();
        let (x, y) = (t.unknown("x"), t.unknown("y"));
        assert_eq!(t.add(32, x, y), t.add(32, y, x));
        assert_eq!(t.mul(64, x, y), t.mul(64, y, x));
        assert_ne!(t.add(32, x, y), t.add(64, x, y));
        assert_ne!(t.sub(32, x, y), t.sub(32, y, x));
    }

    #[test]
    fn parts_and_wholes() {
        let mut t = Terms::default();
        let x = t.unknown("x");
        let (low, high) = (t.extract(0, 32, 64, x), t.extract(32, 32, 64, x));
        assert_eq!(t.concat(32, &[low, high]), x);
        assert_ne!(t.concat(32, &[high, low]), x);
        // The low half of a wider value is not the whole.
        let (a, b) = (t.extract(0, 32, 128, x), t.extract(32, 32, 128, x));
        assert_ne!(t.concat(32, &[a, b]), x);
        let y = t.unknown("y");
        let pair = t.concat(32, &[x, y]);
        assert_eq!(t.extract(32, 32, 64, pair), y);
        assert_eq!(t.extract(40, 8, 64, pair), t.extract(8, 8, 32, y));
    }

    #[test]
    fn selections() {
        let mut t = Terms::default();
        let [p, x, y] = ["p", "x", "y"].map(|name| t.unknown(name));
        let not_p = t.not(p);
        assert_eq!(t.not(not_p), p);
        let chosen = t.select(p, x, y);
        assert_eq!(t.select(not_p, y, x), chosen);
        assert_eq!(t.select(p, chosen, y), chosen);
        assert_eq!(t.select(p, x, x), x);
        assert_eq!(t.assume(not_p, chosen), y);
        // A predicate that was spilled as an integer comes back.
        let (one, zero) = (t.constant(1), t.constant(0));
        let spilled = t.select(p, one, zero);
        assert_eq!(t.equal(32, spilled, one), p);
        assert_eq!(t.equal(32, spilled, zero), not_p);
    }

    #[test]
    fn addresses_of_private_variables_are_marked() {
        let mut t = Terms::default();
        t.make_private(&Name::Module("area".to_owned()));
        let (area, other) = (t.unknown("area"), t.unknown("other"));
        let address = t.add_const(32, area, 8);
        assert!(t.is_private(address) && !t.is_private(other));
        let memory = t.leaf(Head::Memory(0));
        let op = t.sym("st");
        let after = t.make(Head::Store(op), [memory, address]);
        assert!(!t.is_private(after));
    }
}
