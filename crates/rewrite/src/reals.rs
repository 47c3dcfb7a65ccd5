//! Terms over the reals: the same value at a random point of a prime field means the same function.
//!
//! Sums, products, quotients and powers of two are those of the field, of integers those of whole numbers modulo a
//! large power of two; every other function is a pseudo-random one of
//! its arguments; a maximum is the set of what it is taken of. A selection by a comparison is followed on both sides
//! and closed where both sides agree, where it is a maximum itself, or where both sides are one number scaled by the
//! exponential of the other operand (the rescaling of an online softmax).
//!
//! Two terms that are equal as functions always have the same value, as far as these rules see it; two that are not
//! have the same value with a probability of at most their degree in 2⁵⁷. Rounding is ignored; so are NaN and
//! overflow, and −`FLT_MAX` is −∞, as code that looks for a maximum takes it.

use rustc_hash::FxHashMap;
use warpwright_emu::symbolic::term::{Cmp, Domain, Id, Kind, Mode, Node, Order, Terms};

use crate::border::meets;
use crate::constants::{Meaning, doubles, half, number};
use crate::field::{P, Value};
use crate::sets::{Set, Sets};
use crate::taken::{DOMAINS, Place, needed, operands, wanted};

/// What a selection depends on: a comparison of two values, or a predicate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Key {
    /// The first is less than the second.
    Less(Value, Value),
    /// Of integers, with the comparison's own code.
    Compared(u32, Value, Value),
    Predicate(Value),
}

/// What a term depends on, and the predicates of which the bits count.
type Turning = (Key, Option<Deciders>);

/// Predicates of one key: the set of their bits, and one of them.
#[derive(Clone, Copy, Debug)]
struct Deciders {
    bits: Set,
    one: Id,
}

/// A term that depends on a comparison.
#[derive(Clone, Copy, Debug)]
struct Split {
    key: Key,
    /// Where it holds, and where not.
    sides: [Value; 2],
    /// No closed form was found.
    open: bool,
    /// Of which predicates the bits count: of none where both sides meet.
    on: Option<Deciders>,
}

/// What becomes of rounding.
enum Rounding {
    /// There is none.
    None,
    /// What rounds is a function of which nothing is known: equal values have equal bits.
    Unknown,
    /// There is none, but what decides (a comparison, a number cut to a whole one, its bits) is the same only where these
    /// are: values of terms if rounding is unknown.
    Deciding(Vec<Value>),
}

/// Which extreme a set stands for: integers without sign are in another order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Extreme {
    larger: bool,
    unsigned: bool,
}

impl Extreme {
    /// Of floating-point numbers.
    fn of(larger: bool) -> Extreme {
        Extreme {
            larger,
            unsigned: false,
        }
    }
}

/// Values of terms.
pub struct Reals<'a> {
    terms: &'a Terms,
    /// Of terms, each in its own domain, or in the first one for which it is taken.
    values: Vec<Value>,
    /// That domain, once there is a value.
    taken_for: Vec<Option<Domain>>,
    /// Of selections between terms without a domain that are taken for something else, too.
    others: FxHashMap<Place, Value>,
    splits: FxHashMap<Place, Split>,
    extremes: FxHashMap<Place, (Extreme, Set)>,
    sets: Sets,
    /// Sets of bits that decide, and their members.
    bits: Sets,
    bit_numbers: FxHashMap<Value, u32>,
    members: FxHashMap<Value, u32>,
    elements: Vec<Value>,
    /// The set that a value is the maximum or minimum of.
    of_value: FxHashMap<(Extreme, Value), Set>,
    /// More of these, the first one of a value to be kept: nobody has asked since.
    fresh: Vec<((Extreme, Value), Set)>,
    constants: FxHashMap<(u64, Domain), Value>,
    /// A divisor divides many.
    inverses: FxHashMap<Value, Value>,
    /// Numbers of double precision by the bits of the single one that they round to.
    doubles: FxHashMap<u32, f64>,
    /// Constants by their values, and those that are members of sets.
    numbers: FxHashMap<Value, f64>,
    bounds: Vec<(u32, f64)>,
    log2e: Value,
    /// Which random point.
    seed: u64,
    /// Terms evaluated.
    pub evaluated: u64,
    /// A rule about exponentials, infinities or selections was used.
    pub closed: u64,
    rounding: Rounding,
}

/// Overridden values of arguments, and the case that they belong to.
#[derive(Clone, Copy, Default)]
struct Case<'c> {
    values: &'c [(Place, Value)],
    less: Option<(Value, Value, bool)>,
}

/// Tags of pseudo-random functions.
mod tag {
    pub const LEAF: u64 = 1;
    pub const BITS: u64 = 2;
    pub const AS: u64 = 3;
    pub const KIND: u64 = 4;
    pub const ROOT: u64 = 5;
    pub const PREDICATE: u64 = 6;
    pub const SELECT: u64 = 7;
    pub const SET: u64 = 8;
    pub const NOT_A_NUMBER: u64 = 9;
    pub const CLAMP: u64 = 10;
    pub const NAME: u64 = 11;
    pub const ABSOLUTE: u64 = 12;
    pub const INVERSE: u64 = 13;
    pub const LOG2E: u64 = 14;
    pub const SATURATED: u64 = 15;
}

impl<'a> Reals<'a> {
    /// Nothing evaluated yet, at a random point.
    pub fn new(terms: &'a Terms, seed: u64) -> Reals<'a> {
        Reals {
            terms,
            values: vec![Value::ZERO; terms.len()],
            taken_for: vec![None; terms.len()],
            others: FxHashMap::default(),
            splits: FxHashMap::default(),
            extremes: FxHashMap::default(),
            sets: Sets::default(),
            bits: Sets::default(),
            bit_numbers: FxHashMap::default(),
            members: FxHashMap::default(),
            elements: Vec::new(),
            of_value: FxHashMap::default(),
            fresh: Vec::new(),
            constants: FxHashMap::default(),
            inverses: FxHashMap::default(),
            doubles: doubles(terms),
            numbers: FxHashMap::default(),
            bounds: Vec::new(),
            log2e: Value::random(&[tag::LOG2E, seed]),
            seed,
            evaluated: 0,
            closed: 0,
            rounding: Rounding::None,
        }
    }

    /// Only what has equal bits has equal values.
    pub fn exact(terms: &'a Terms, seed: u64) -> Reals<'a> {
        Reals {
            rounding: Rounding::Unknown,
            ..Reals::new(terms, seed)
        }
    }

    /// Over the reals, but whatever decides must have equal bits: these are the values of terms that tell.
    pub fn deciding(terms: &'a Terms, seed: u64, exact: Vec<Value>) -> Reals<'a> {
        Reals {
            rounding: Rounding::Deciding(exact),
            ..Reals::new(terms, seed)
        }
    }

    /// The values of all terms that some are made of; all others have one that no term has.
    pub(crate) fn evaluated(mut self, roots: &Roots) -> Vec<Value> {
        self.evaluate_all(roots);
        let each = (0..).zip(&mut self.values).zip(&roots.wanted);
        let others = each.filter(|(_, domains)| **domains == 0);
        for ((id, value), _) in others {
            *value = Value::nobodys(id);
        }
        self.values
    }

    /// What else a decision depends on than on values: the bits of what it is made of.
    fn bits_behind(&self, id: Id) -> [u64; 2] {
        match &self.rounding {
            Rounding::Deciding(exact) => {
                let value = exact[id as usize];
                [value.p, value.q]
            }
            Rounding::None | Rounding::Unknown => [0; 2],
        }
    }

    /// A predicate as what decides, where its bits count.
    fn deciders(&mut self, one: Id) -> Option<Deciders> {
        let Rounding::Deciding(exact) = &self.rounding else {
            return None;
        };
        let next = self.bit_numbers.len() as u32;
        let number = *self.bit_numbers.entry(exact[one as usize]).or_insert(next);
        let bits = self.bits.one(number);
        Some(Deciders { bits, one })
    }

    fn both(&mut self, a: Option<Deciders>, b: Option<Deciders>) -> Option<Deciders> {
        let (Some(x), Some(y)) = (a, b) else {
            return a.or(b);
        };
        let bits = self.bits.union(x.bits, y.bits);
        Some(Deciders { bits, ..x })
    }

    /// A term taken for something else than it is: of a number its bits count.
    fn reinterpreted(&self, id: Id, own: Domain, domain: Domain) -> Value {
        let value = self.values[id as usize];
        let bits = match own.is_float() {
            true => self.bits_behind(id),
            false => [0; 2],
        };
        let [p, q] = bits;
        Value::random(&[tag::AS, own as u64, domain as u64, value.p, value.q, p, q])
    }

    /// Are two terms of one value the same bits?
    fn are_same_bits(&self, a: Id, b: Id) -> bool {
        match &self.rounding {
            Rounding::Deciding(exact) => {
                let is_made = |id: Id| !is_leaf(&self.terms.node(id));
                let [x, y] = [a, b].map(|id| exact[id as usize]);
                a == b || is_made(a) && is_made(b) && x == y
            }
            Rounding::None | Rounding::Unknown => true,
        }
    }

    /// Of a quotient nothing is said of its being finite where that decides.
    fn may_be_infinite(&self, mut id: Id) -> bool {
        while matches!(self.terms.node(id).kind(), Kind::FAbs | Kind::FNeg) {
            id = self.terms.node(id).a;
        }
        let is_quotient = matches!(self.terms.node(id).kind(), Kind::FDiv | Kind::FRsqrt);
        is_quotient && !matches!(self.rounding, Rounding::None)
    }

    /// The values of some terms, each taken for something.
    pub(crate) fn of(&mut self, roots: &Roots) -> Vec<Value> {
        self.evaluate_all(roots);
        let places = roots.places.iter();
        places.map(|&(id, domain)| self.value(id, domain)).collect()
    }

    fn evaluate_all(&mut self, roots: &Roots) {
        self.number_members(roots);
        for (id, &domains) in roots.wanted.iter().enumerate() {
            if domains == 0 {
                continue;
            }
            self.evaluated += 1;
            let id = id as Id;
            let node = self.terms.node(id);
            match self.terms.domain(id) {
                Domain::Any if node.kind() == Kind::Select => {
                    for domain in DOMAINS
                        .into_iter()
                        .filter(|&d| domains >> d as u32 & 1 != 0)
                    {
                        let value = self.evaluate((id, domain), &node);
                        if !self.keep((id, domain), value) {
                            self.others.insert((id, domain), value);
                        }
                    }
                }
                domain if !is_leaf(&node) => {
                    let value = self.evaluate((id, domain), &node);
                    self.keep((id, domain), value);
                }
                _ => {}
            }
        }
    }

    /// Elements of buffers that maxima are taken of have numbers in their order: sets of neighbours are small.
    fn number_members(&mut self, roots: &Roots) {
        let mut all = Vec::new();
        for (id, _) in (0..)
            .zip(&roots.wanted)
            .filter(|(_, domains)| **domains != 0)
        {
            let node = self.terms.node(id);
            if matches!(node.kind(), Kind::FMin | Kind::FMax) {
                let own = self.terms.domain(id);
                let args = node.args().map(|arg| (self.terms.node(arg), arg));
                let inputs = args.filter(|(arg, _)| arg.kind() == Kind::Input);
                all.extend(inputs.map(|(input, arg)| (input.a, input.b, arg, own as u32)));
            }
        }
        all.sort_unstable();
        for (_, _, id, own) in all {
            let value = self.value(id, DOMAINS[own as usize]);
            self.member(value);
        }
    }

    // ---- values

    /// Keeps a value, unless there is one for something else.
    fn keep(&mut self, (id, domain): Place, value: Value) -> bool {
        let taken_for = self.taken_for[id as usize].get_or_insert(domain);
        let is_first = *taken_for == domain;
        if is_first {
            self.values[id as usize] = value;
        }
        is_first
    }

    #[inline]
    fn value(&mut self, id: Id, domain: Domain) -> Value {
        match self.taken_for[id as usize] == Some(domain) {
            true => self.values[id as usize],
            false => self.value_otherwise(id, domain),
        }
    }

    fn value_otherwise(&mut self, id: Id, domain: Domain) -> Value {
        let node = self.terms.node(id);
        if is_leaf(&node) {
            let value = match node.kind() {
                Kind::Const => self.constant(id, domain),
                _ => self.leaf(&node, domain),
            };
            self.keep((id, domain), value);
            return value;
        }
        let own = self.terms.domain(id);
        if own == domain {
            return self.values[id as usize];
        }
        if own == Domain::Any && node.kind() == Kind::Select {
            return self
                .others
                .get(&(id, domain))
                .copied()
                .unwrap_or(Value::ZERO);
        }
        if let Some(value) = self.scaled_by_bits(&node, domain) {
            return value;
        }
        self.reinterpreted(id, own, domain)
    }

    /// An element of an input, or what nobody has written.
    fn leaf(&self, node: &Node, domain: Domain) -> Value {
        let (a, b) = (u64::from(node.a), u64::from(node.b));
        let kind = node.kind() as u64;
        Value::random(&[tag::LEAF, self.seed, kind, a, b, domain as u64])
    }

    fn argument_value(&mut self, place: Place, case: Case<'_>) -> Value {
        let known = case.values.iter().find(|(at, _)| *at == place);
        match known {
            Some(&(_, value)) => value,
            None => self.value(place.0, place.1),
        }
    }

    fn constant(&mut self, id: Id, domain: Domain) -> Value {
        let bits = self.terms.bits_of(id).unwrap_or(0);
        if let Some(&value) = self.constants.get(&(bits, domain)) {
            return value;
        }
        let signed = |width: u32| {
            let shift = 64 - width;
            i128::from((bits << shift) as i64 >> shift)
        };
        let value = match domain {
            Domain::I16 | Domain::I32 | Domain::I64 => Value::whole(signed(domain.bits())),
            Domain::F32 => self.single(bits as u32),
            Domain::F64 => self.float(f64::from_bits(bits), 53, f64::MAX),
            Domain::Bf16 => {
                let wide = f32::from_bits((bits as u32) << 16);
                self.float(f64::from(wide), 8, f64::from(f32::MAX))
            }
            Domain::F16 => self.float(half(bits as u16), 11, 65504.0),
            Domain::Any | Domain::Pred => {
                Value::random(&[tag::BITS, self.seed, bits, domain as u64])
            }
        };
        self.constants.insert((bits, domain), value);
        if let Some(number) = number(bits, domain) {
            self.numbers.insert(value, number);
        }
        value
    }

    /// A number of single precision; one of double precision that rounds to it and stands somewhere is meant.
    fn single(&self, bits: u32) -> Value {
        match self.doubles.get(&bits) {
            Some(&x) => self.float(x, 53, f64::MAX),
            None => self.float(f64::from(f32::from_bits(bits)), 24, f64::from(f32::MAX)),
        }
    }

    /// A number of so many significant bits as what it is meant to be.
    fn float(&self, x: f64, digits: i32, most: f64) -> Value {
        match Meaning::of(x, digits, most) {
            Meaning::NotANumber => Value::random(&[tag::NOT_A_NUMBER, self.seed]),
            Meaning::Least => Value::LEAST,
            Meaning::Most => Value::MOST,
            Meaning::Log2e { negative: true } => self.log2e.negative(),
            Meaning::Log2e { negative: false } => self.log2e,
            Meaning::Fraction(above, below) => {
                let inverse = Value::integer(below).inverse().unwrap_or(Value::ONE);
                Value::integer(above).times(inverse)
            }
            Meaning::Itself(x) => exact(x),
        }
    }

    /// `2^j` of an integer `j` in the lower bits of a sum.
    fn scaled_by_bits(&mut self, node: &Node, domain: Domain) -> Option<Value> {
        if matches!(self.rounding, Rounding::Unknown) {
            return None;
        }
        let (sum, _) = scaled_by_bits(self.terms, node).filter(|_| domain == Domain::F32)?;
        let value = self.value(sum, Domain::F32);
        Some(value.plus(Value::integer(-12_583_039)).power_of_two())
    }

    fn sum(&self, a: Value, b: Value) -> Value {
        match (a.is_finite(), b.is_finite()) {
            (true, true) => a.plus(b),
            (false, true) => a,
            (true, false) => b,
            _ if a == b => a,
            _ => Value::random(&[tag::NOT_A_NUMBER, self.seed]),
        }
    }

    fn negated(&self, a: Value) -> Value {
        match a {
            Value::LEAST => Value::MOST,
            Value::MOST => Value::LEAST,
            a => a.negative(),
        }
    }

    /// A product; of an infinity where the other factor is a constant whose sign is known.
    fn times(&self, (x, a): (Id, Value), (y, b): (Id, Value)) -> Value {
        if a.is_finite() && b.is_finite() {
            return a.times(b);
        }
        let sign = |id: Id| {
            let bits = self.terms.bits_of(id)?;
            (bits != 0).then_some(bits >> 31 & 1 != 0 || bits >> 63 != 0)
        };
        let (infinite, factor) = if a.is_finite() {
            (b, sign(x))
        } else {
            (a, sign(y))
        };
        match factor {
            Some(false) => infinite,
            Some(true) => self.negated(infinite),
            None => Value::random(&[tag::NOT_A_NUMBER, self.seed, a.p, a.q, b.p, b.q]),
        }
    }

    fn inverse(&mut self, a: Value) -> Value {
        if !a.is_finite() {
            return Value::ZERO;
        }
        let none = || Value::random(&[tag::INVERSE, self.seed, a.p, a.q]);
        let known = self.inverses.entry(a);
        *known.or_insert_with(|| a.inverse().unwrap_or_else(none))
    }

    fn power(&self, a: Value) -> Value {
        match a {
            Value::LEAST => Value::ZERO,
            Value::MOST => Value::MOST,
            a => a.power_of_two(),
        }
    }

    // ---- one term

    fn evaluate(&mut self, place: Place, node: &Node) -> Value {
        match node.kind() {
            Kind::Select => self.selected(place, node),
            Kind::Cmp | Kind::Not | Kind::And | Kind::Xor => {
                self.compute(place, node, Case::default())
            }
            _ if self.splits.is_empty() => self.compute(place, node, Case::default()),
            _ => self.followed(place, node),
        }
    }

    /// A term whose arguments depend on a comparison is looked at on both sides of it.
    fn followed(&mut self, place: Place, node: &Node) -> Value {
        let args = operands(self.terms, node, place.1);
        let deepest = args
            .clone()
            .filter_map(|at| Some((at, *self.splits.get(&at)?)))
            .max_by_key(|(at, split)| (split.open, at.0));
        let Some((_, Split { key, .. })) = deepest else {
            return self.compute(place, node, Case::default());
        };
        let (mut open, mut on) = (false, None);
        let mut sides: [Vec<(Place, Value)>; 2] = [Vec::new(), Vec::new()];
        for at in args {
            let split = self.splits.get(&at).copied();
            let Some(split) = split.filter(|split| split.key == key) else {
                continue;
            };
            open |= split.open;
            on = self.both(on, split.on);
            for (side, value) in sides.iter_mut().zip(split.sides) {
                side.push((at, value));
            }
        }
        let [yes, no] = [0, 1].map(|at| {
            let less = match key {
                Key::Less(a, b) => Some((a, b, at == 0)),
                _ => None,
            };
            let case = Case {
                values: &sides[at],
                less,
            };
            self.compute(place, node, case)
        });
        if open {
            return match self.merged(place, key, yes, no) {
                Some(value) => {
                    self.split(place, (key, on), [yes, no], false);
                    value
                }
                None => self.left_open(place, (key, on), [yes, no]),
            };
        }
        let mut value = self.compute(place, node, Case::default());
        if yes != no {
            self.split(place, (key, on), [yes, no], false);
            let is_sum = matches!(node.kind(), Kind::FAdd | Kind::FFma);
            if is_sum && value.is_finite() && value.q == Value::UNKNOWN {
                value = self.merged(place, key, yes, no).unwrap_or(value);
            }
        }
        self.remember(place, value);
        value
    }

    fn split(&mut self, place: Place, (key, on): Turning, sides: [Value; 2], open: bool) {
        if sides[0] != sides[1] {
            let split = Split {
                key,
                sides,
                open,
                on,
            };
            self.splits.insert(place, split);
        }
    }

    /// A selection without a closed form: linear in an unknown of its condition, so that sums of several have no order.
    fn left_open(&mut self, place: Place, (key, on): Turning, [yes, no]: [Value; 2]) -> Value {
        let is_one = |on: &Deciders| self.bits.only(on.bits).is_some();
        let on = on.filter(|on| !(is_one(on) && meets(self.terms, place, on.one)));
        self.split(place, (key, on), [yes, no], true);
        let mut words = Words::of(&[tag::SELECT]);
        words.extend(key_words(key));
        words.extend(on.map(|on| u64::from(on.bits)));
        if is_whole(place.1) {
            let holds = words.random();
            return no.whole_plus(holds.whole_times(yes.whole_plus(no.whole_negative())));
        }
        if yes.is_finite() && no.is_finite() {
            let holds = words.random();
            return no.plus(holds.times(yes.plus(no.negative())));
        }
        words.extend([yes.p, yes.q, no.p, no.q]);
        words.random()
    }

    /// The set that a maximum is taken of stays known by its value.
    fn remember(&mut self, place: Place, value: Value) {
        if let Some(&(which, set)) = self.extremes.get(&place) {
            self.sets_of_values().insert((which, value), set);
        }
    }

    fn sets_of_values(&mut self) -> &mut FxHashMap<(Extreme, Value), Set> {
        for (value, set) in self.fresh.drain(..) {
            self.of_value.entry(value).or_insert(set);
        }
        &mut self.of_value
    }

    fn selected(&mut self, place: Place, node: &Node) -> Value {
        let (key, holds, decided) = self.condition(node.a);
        let (b, c) = ((node.b, place.1), (node.c, place.1));
        if let Some(known) = decided {
            let taken = if known { b } else { c };
            if let Some(&split) = self.splits.get(&taken) {
                self.splits.insert(place, split);
            }
            if let Some(&extreme) = self.extremes.get(&taken) {
                self.extremes.insert(place, extreme);
            }
            return self.value(taken.0, taken.1);
        }
        let on = self.deciders(stem(self.terms, node.a));
        let (yes, no) = if holds { (b, c) } else { (c, b) };
        let under = |reals: &mut Self, at: Place, side: usize| match reals.splits.get(&at) {
            Some(split) if split.key == key => split.sides[side],
            _ => reals.value(at.0, at.1),
        };
        let (yes, no) = (under(self, yes, 0), under(self, no, 1));
        let Some(value) = self.merged(place, key, yes, no) else {
            return self.left_open(place, (key, on), [yes, no]);
        };
        if let Key::Less(a, b) = key
            && (yes, no) != (no, yes)
            && [(a, b), (b, a)].contains(&(yes, no))
        {
            let which = Extreme::of(yes == b);
            if let Some(&set) = self.sets_of_values().get(&(which, value)) {
                self.extremes.insert(place, (which, set));
            }
        }
        self.split(place, (key, on), [yes, no], false);
        value
    }

    /// The value of a selection, where both sides are the same or one expression of a maximum.
    fn merged(&mut self, place: Place, key: Key, yes: Value, no: Value) -> Option<Value> {
        if yes == no {
            return Some(yes);
        }
        if is_whole(place.1) {
            return None;
        }
        let Key::Less(a, b) = key else { return None };
        if (yes, no) == (a, b) || (yes, no) == (b, a) {
            self.closed += 1;
            return self.extreme_of(Extreme::of(yes == b), a, b);
        }
        if ![a, b, yes, no].iter().all(|value| value.is_finite()) {
            return None;
        }
        let most = self.extreme_of(Extreme::of(true), a, b)?;
        let [at_a, at_b, at_most] = [a, b, most].map(|value| value.power_of(self.log2e));
        // yes * e^b = no * e^a, or the reciprocals of it.
        if yes.times(at_b).p == no.times(at_a).p {
            self.closed += 1;
            return Some(yes.times(at_b).times(at_most.inverse()?));
        }
        if yes.times(at_a).p == no.times(at_b).p {
            self.closed += 1;
            return Some(yes.times(at_b.inverse()?).times(at_most));
        }
        None
    }

    // ---- maxima

    fn member(&mut self, value: Value) -> Set {
        let next = self.elements.len() as u32;
        let number = *self.members.entry(value).or_insert(next);
        if number == next {
            self.elements.push(value);
            if let Some(&x) = self.numbers.get(&value) {
                self.bounds.push((number, x));
            }
        }
        self.sets.one(number)
    }

    fn set_of(&mut self, which: Extreme, value: Value) -> Option<Set> {
        let absent = if which.larger {
            Value::LEAST
        } else {
            Value::MOST
        };
        if value == absent {
            return None;
        }
        if let Some(&set) = self.sets_of_values().get(&(which, value)) {
            return Some(set);
        }
        Some(self.member(value))
    }

    fn extreme_of(&mut self, which: Extreme, a: Value, b: Value) -> Option<Value> {
        let sets = [a, b].map(|value| self.set_of(which, value));
        let set = match sets {
            [Some(x), Some(y)] => self.union(which, x, y),
            [Some(x), None] | [None, Some(x)] => x,
            _ => return Some(a),
        };
        let value = self.extreme_value(which, set);
        self.sets_of_values().insert((which, value), set);
        Some(value)
    }

    /// Both sets in one; of constants the outermost alone counts.
    fn union(&mut self, which: Extreme, a: Set, b: Set) -> Set {
        let mut all = self.sets.union(a, b);
        if self.bounds.len() < 2 || which.unsigned {
            return all;
        }
        let bounds = self
            .bounds
            .iter()
            .filter(|(member, _)| self.sets.has(all, *member));
        let mut bounds: Vec<(u32, f64)> = bounds.copied().collect();
        bounds.sort_by(|(_, x), (_, y)| {
            if which.larger {
                y.total_cmp(x)
            } else {
                x.total_cmp(y)
            }
        });
        for (member, _) in bounds.into_iter().skip(1) {
            all = self.sets.without(all, member).unwrap_or(all);
        }
        all
    }

    fn extreme_value(&self, which: Extreme, set: Set) -> Value {
        match self.sets.only(set) {
            Some(member) => self.elements[member as usize],
            None => {
                let order = u64::from(which.larger) | u64::from(which.unsigned) << 1;
                Value::random(&[tag::SET, self.seed, order, u64::from(set)])
            }
        }
    }

    fn extreme(&mut self, place: Place, node: &Node, case: Case<'_>) -> Value {
        let domain = place.1;
        let larger = node.kind() == Kind::FMax;
        let which = Extreme {
            larger,
            unsigned: !domain.is_float() && !node.mode().has(Mode::OTHER),
        };
        if case.values.is_empty()
            && let Some(value) = self.clamped(node, domain)
        {
            return value;
        }
        let mut all: Option<Set> = None;
        for arg in [node.a, node.b] {
            let at = (arg, domain);
            let overridden = case.values.iter().any(|(place, _)| *place == at);
            let known = self
                .extremes
                .get(&at)
                .filter(|(same, _)| *same == which && !overridden);
            let set = match known {
                Some(&(_, set)) => Some(set),
                None => {
                    let value = self.argument_value(at, case);
                    let beyond = if larger { Value::MOST } else { Value::LEAST };
                    if value == beyond {
                        return beyond;
                    }
                    match self.terms.node(arg).kind() {
                        // An input is no extreme of others.
                        Kind::Input if !overridden => Some(self.member(value)),
                        _ => self.set_of(which, value),
                    }
                }
            };
            all = match (all, set) {
                (Some(x), Some(y)) => Some(self.union(which, x, y)),
                (x, y) => x.or(y),
            };
        }
        let Some(mut set) = all else {
            return if larger { Value::LEAST } else { Value::MOST };
        };
        if let Some((a, b, less)) = case.less {
            set = self.reduced(set, larger, (a, b, less));
        } else {
            self.extremes.insert(place, (which, set));
        }
        let value = self.extreme_value(which, set);
        self.fresh.push(((which, value), set));
        value
    }

    /// Of two members that are compared one does not count.
    fn reduced(&mut self, set: Set, larger: bool, (a, b, less): (Value, Value, bool)) -> Set {
        let (Some(&x), Some(&y)) = (self.members.get(&a), self.members.get(&b)) else {
            return set;
        };
        if !(self.sets.has(set, x) && self.sets.has(set, y)) {
            return set;
        }
        let gone = if larger == less { x } else { y };
        self.sets.without(set, gone).unwrap_or(set)
    }

    /// `min(max(x, low), high)` and `max(min(x, high), low)` are one function where `low <= high`.
    fn clamped(&mut self, node: &Node, domain: Domain) -> Option<Value> {
        let constant = |id: Id| self.terms.bits_of(id).filter(|_| domain == Domain::F32);
        let parts = |node: &Node| match (constant(node.a), constant(node.b)) {
            (Some(bits), None) => Some((bits, node.b)),
            (None, Some(bits)) => Some((bits, node.a)),
            _ => None,
        };
        let (outer, inside) = parts(node)?;
        let inner = self.terms.node(inside);
        let pair = (node.kind(), inner.kind());
        if !matches!(pair, (Kind::FMin, Kind::FMax) | (Kind::FMax, Kind::FMin)) {
            return None;
        }
        let (other, x) = parts(&inner)?;
        let (low, high) = if pair.0 == Kind::FMin {
            (other, outer)
        } else {
            (outer, other)
        };
        let number = |bits: u64| f32::from_bits(bits as u32);
        let is_interval = number(low) <= number(high);
        if !is_interval {
            return None;
        }
        let value = self.value(x, domain);
        Some(Value::random(&[tag::CLAMP, low, high, value.p, value.q]))
    }

    // ---- predicates

    /// A predicate as a key, whether it is turned, and its truth where that is known.
    fn condition(&self, id: Id) -> (Key, bool, Option<bool>) {
        let node = self.terms.node(id);
        match node.kind() {
            Kind::Not => {
                let (key, holds, known) = self.condition(node.a);
                (key, !holds, known.map(|known| !known))
            }
            Kind::Cmp => self.comparison(&node),
            _ => (Key::Predicate(self.values[id as usize]), true, None),
        }
    }

    fn comparison(&self, node: &Node) -> (Key, bool, Option<bool>) {
        let cmp = Cmp(node.imm());
        let domain = cmp.domain();
        // Constants among the arguments have been evaluated with the comparison itself.
        let value = |id: Id| self.known_value(id, domain);
        let (a, b) = (value(node.a), value(node.b));
        let (x, y, holds) = match cmp.order() {
            Order::Le => (b, a, false),
            _ => (a, b, true),
        };
        match cmp.order() {
            Order::Lt | Order::Le if domain.is_float() => {
                let known = match (x, y) {
                    _ if x == y && self.are_same_bits(node.a, node.b) => Some(!holds),
                    _ if x == y => None,
                    (Value::LEAST, y) if y.is_finite() => Some(holds),
                    (_, Value::LEAST) => Some(!holds),
                    (Value::MOST, _) => Some(!holds),
                    _ => None,
                };
                (Key::Less(x, y), holds, known)
            }
            Order::Lt | Order::Le => {
                let code = node.imm() & !(3 << 4);
                let known = (x == y).then_some(!holds);
                (Key::Compared(code, x, y), holds, known)
            }
            Order::Eq | Order::Nan => {
                let code = node.imm();
                // A number is no infinity, and nothing here is NaN.
                let known = match cmp.order() {
                    Order::Eq if x == y && self.are_same_bits(node.a, node.b) => Some(true),
                    Order::Eq if self.may_be_infinite(node.a) || self.may_be_infinite(node.b) => {
                        None
                    }
                    Order::Eq if domain.is_float() && x.is_finite() != y.is_finite() => Some(false),
                    _ => None,
                };
                let (x, y) = (x.min(y), x.max(y));
                (Key::Compared(code, x, y), true, known)
            }
        }
    }

    /// As [`value`](Self::value), of what has been evaluated.
    fn known_value(&self, id: Id, domain: Domain) -> Value {
        match self.terms.bits_of(id) {
            Some(bits) => self
                .constants
                .get(&(bits, domain))
                .copied()
                .unwrap_or(Value::ZERO),
            None => {
                let mut copy = Glance { reals: self };
                copy.value(id, domain)
            }
        }
    }

    fn predicate(&mut self, place: Place, node: &Node) -> Value {
        match node.kind() {
            Kind::And | Kind::Xor => {
                let (a, b) = (
                    self.value(node.a, Domain::Pred),
                    self.value(node.b, Domain::Pred),
                );
                let (a, b) = (a.min(b), a.max(b));
                Value::random(&[tag::KIND, node.kind() as u64, a.p, a.q, b.p, b.q])
            }
            _ => {
                if node.kind() == Kind::Cmp {
                    let domain = Cmp(node.imm()).domain();
                    self.value(node.a, domain);
                    self.value(node.b, domain);
                }
                let (key, holds, known) = self.condition_of(place.0, node);
                if let Some(known) = known {
                    return Value::random(&[
                        tag::BITS,
                        self.seed,
                        u64::from(known),
                        Domain::Pred as u64,
                    ]);
                }
                let mut words = Words::of(&[tag::PREDICATE, u64::from(holds)]);
                words.extend(key_words(key));
                words.extend(self.bits_behind(stem(self.terms, place.0)));
                words.random()
            }
        }
    }

    fn condition_of(&self, id: Id, node: &Node) -> (Key, bool, Option<bool>) {
        match node.kind() {
            Kind::Cmp => self.comparison(node),
            _ => self.condition(id),
        }
    }

    // ---- functions

    fn compute(&mut self, place: Place, node: &Node, case: Case<'_>) -> Value {
        let own = place.1;
        let at = |id: Id| (id, own);
        let mode = node.mode();
        let rounded = Mode::ZERO | Mode::DOWN | Mode::UP | Mode::INTEGRAL;
        let rounded = rounded | Mode::RELU | Mode::FINITE;
        let is_odd = match node.kind() {
            Kind::FAdd | Kind::FMul | Kind::FFma => mode.has(rounded | Mode::OTHER),
            Kind::FDiv | Kind::FSqrt | Kind::FCvt => mode.has(rounded),
            _ => false,
        };
        if is_odd || matches!(self.rounding, Rounding::Unknown) && rounds(node.kind()) {
            return self.opaque(place, node, case);
        }
        let value = match node.kind() {
            Kind::FAdd => {
                let (a, b) = (
                    self.argument_value(at(node.a), case),
                    self.argument_value(at(node.b), case),
                );
                self.sum(a, b)
            }
            Kind::FMul => {
                let (a, b) = (
                    self.argument_value(at(node.a), case),
                    self.argument_value(at(node.b), case),
                );
                self.times((node.a, a), (node.b, b))
            }
            Kind::FFma if place.1 == Domain::F32 && completes_log2e(self.terms, node) => {
                self.argument_value(at(node.c), case)
            }
            Kind::FFma => {
                let (a, b) = (
                    self.argument_value(at(node.a), case),
                    self.argument_value(at(node.b), case),
                );
                let c = self.argument_value(at(node.c), case);
                self.sum(self.times((node.a, a), (node.b, b)), c)
            }
            Kind::FNeg => {
                let a = self.argument_value(at(node.a), case);
                self.negated(a)
            }
            Kind::FAbs => {
                let a = self.argument_value(at(node.a), case);
                self.absolute(a)
            }
            Kind::FDiv => {
                let (a, b) = (
                    self.argument_value(at(node.a), case),
                    self.argument_value(at(node.b), case),
                );
                let inverse = self.inverse(b);
                self.times((node.a, a), (node.b, inverse))
            }
            Kind::FSqrt | Kind::FRsqrt => {
                let a = self.argument_value(at(node.a), case);
                let root = Value::random(&[tag::ROOT, self.seed, a.p, a.q]);
                match node.kind() {
                    Kind::FSqrt => self.inverse(root),
                    _ => root,
                }
            }
            Kind::FEx2 => {
                let a = self.argument_value(at(node.a), case);
                self.power(a)
            }
            Kind::FMin | Kind::FMax if own.is_float() && !mode.has(Mode::NAN) => {
                self.extreme(place, node, case)
            }
            Kind::FMin | Kind::FMax if !own.is_float() => self.extreme(place, node, case),
            Kind::FCvt => {
                let from = DOMAINS[node.b as usize % DOMAINS.len()];
                self.argument_value((node.a, from), case)
            }
            Kind::IAdd => {
                let (a, b) = (
                    self.argument_value(at(node.a), case),
                    self.argument_value(at(node.b), case),
                );
                a.whole_plus(b)
            }
            Kind::IMul => {
                let (a, b) = (
                    self.argument_value(at(node.a), case),
                    self.argument_value(at(node.b), case),
                );
                a.whole_times(b)
            }
            Kind::Cmp | Kind::Not | Kind::And | Kind::Xor => self.predicate(place, node),
            _ => self.opaque(place, node, case),
        };
        if mode.has(Mode::SAT) && own.is_float() && is_arithmetic(node.kind()) {
            return match own {
                // `.sat` and the clamp between 0 and 1 are one function.
                Domain::F32 => {
                    Value::random(&[tag::CLAMP, 0, u64::from(1f32.to_bits()), value.p, value.q])
                }
                _ => Value::random(&[tag::SATURATED, own as u64, value.p, value.q]),
            };
        }
        value
    }

    fn absolute(&self, a: Value) -> Value {
        if !a.is_finite() {
            return Value::MOST;
        }
        let turned = a.negative();
        let one = if a.p < turned.p { a } else { turned };
        Value::random(&[tag::ABSOLUTE, self.seed, one.p, one.q])
    }

    /// A function of which nothing is known.
    fn opaque(&mut self, place: Place, node: &Node, case: Case<'_>) -> Value {
        let (kind, imm) = (node.kind() as u64, u64::from(node.imm()));
        let mut words = match node.kind() {
            Kind::App => {
                let name = self.terms.name(node.imm()).0;
                Words::of(&[tag::NAME, imm, name.len() as u64])
            }
            Kind::FromInt | Kind::FCvt => Words::of(&[tag::KIND, kind, imm, u64::from(node.b)]),
            Kind::FAdd => Words::of(&[tag::KIND, kind, imm & !u64::from(Mode::FUSIBLE)]),
            _ => Words::of(&[tag::KIND, kind, imm]),
        };
        let (mut args, mut count) = ([[0; 3]; 3], 0);
        for at in operands(self.terms, node, place.1) {
            let value = self.argument_value(at, case);
            args[count] = [at.1 as u64, value.p, value.q];
            count += 1;
        }
        // Which of two factors comes first is a matter of their numbers.
        if commutes(node.kind()) {
            args[..2].sort_unstable();
        }
        words.extend(args[..count].iter().flatten().copied());
        if cuts(self.terms, node, place.1) {
            words.extend(self.bits_behind(place.0));
        }
        words.random()
    }
}

/// Words of which a pseudo-random value is a function.
struct Words {
    all: [u64; 16],
    count: usize,
}

impl Words {
    fn of(first: &[u64]) -> Words {
        let mut words = Words {
            all: [0; 16],
            count: 0,
        };
        words.extend(first.iter().copied());
        words
    }

    fn extend(&mut self, more: impl IntoIterator<Item = u64>) {
        for word in more {
            self.all[self.count] = word;
            self.count += 1;
        }
    }

    fn random(&self) -> Value {
        Value::random(&self.all[..self.count])
    }
}

/// Values without making new ones: every term that it is asked for has been evaluated.
struct Glance<'r, 'a> {
    reals: &'r Reals<'a>,
}

impl Glance<'_, '_> {
    fn value(&mut self, id: Id, domain: Domain) -> Value {
        let reals = self.reals;
        if reals.taken_for[id as usize] == Some(domain) {
            return reals.values[id as usize];
        }
        let node = reals.terms.node(id);
        if matches!(node.kind(), Kind::Input | Kind::Unset) {
            return reals.leaf(&node, domain);
        }
        let own = reals.terms.domain(id);
        if own == domain {
            return reals.values[id as usize];
        }
        if own == Domain::Any && node.kind() == Kind::Select {
            return reals
                .others
                .get(&(id, domain))
                .copied()
                .unwrap_or(Value::ZERO);
        }
        reals.reinterpreted(id, own, domain)
    }
}

/// Terms whose values are asked for, and all that they are made of.
pub(crate) struct Roots {
    places: Vec<Place>,
    wanted: Vec<u16>,
}

impl Roots {
    pub fn new(terms: &Terms, places: Vec<Place>) -> Roots {
        let wanted = wanted(terms, &places);
        Roots { places, wanted }
    }

    /// What is asked for the bits of, where rounded values decide something or show their bits; `None`: they do not.
    pub fn telling(&self, terms: &Terms) -> Option<Roots> {
        let mut wanted = vec![0; terms.len()];
        let mut tells = false;
        for (id, &domains) in (0..).zip(&self.wanted).filter(|(_, d)| **d != 0) {
            let (node, own) = (terms.node(id), terms.domain(id));
            let is_reinterpreted = own.is_float() && domains & !(1 << own as u32) != 0;
            let mut ask = |id: Id| wanted[id as usize] |= self.wanted[id as usize];
            match node.kind() {
                Kind::Cmp => [id, node.a, node.b].into_iter().for_each(&mut ask),
                Kind::Select => ask(stem(terms, node.a)),
                Kind::Not => ask(stem(terms, id)),
                _ => {}
            }
            let shows = is_reinterpreted || cuts(terms, &node, own);
            if shows {
                ask(id);
            }
            tells |= shows || matches!(node.kind(), Kind::Cmp | Kind::Select);
        }
        needed(terms, &mut wanted);
        tells.then_some(Roots {
            places: Vec::new(),
            wanted,
        })
    }

    /// What the root of a number is taken for.
    pub fn domain(&self, at: usize) -> Domain {
        self.places[at].1
    }
}

/// The predicate that another one is, or is not.
fn stem(terms: &Terms, mut id: Id) -> Id {
    while terms.node(id).kind() == Kind::Not {
        id = terms.node(id).a;
    }
    id
}

/// Does a function cut numbers to whole ones, or take their bits?
fn cuts(terms: &Terms, node: &Node, own: Domain) -> bool {
    let takes_numbers = |id: Id| terms.domain(id).is_float();
    match node.kind() {
        Kind::FCvt => node.mode().has(Mode::INTEGRAL),
        Kind::App if !own.is_float() => {
            let mut args: Vec<Id> = node.args().collect();
            while let Some(&last) = args.last()
                && terms.node(last).kind() == Kind::Pair
            {
                args.pop();
                args.extend(terms.node(last).args());
            }
            args.into_iter().any(takes_numbers)
        }
        Kind::Extract | Kind::Concat => node.args().any(takes_numbers),
        _ => false,
    }
}

/// Does it add to a product with `log2e` what that lacks in its first half, times the same factor? So does `expf`.
pub(crate) fn completes_log2e(terms: &Terms, node: &Node) -> bool {
    const FIRST: u64 = 0x3fb8_aa3b;
    const SECOND: u64 = 0x32a5_7060;
    let scaled = |node: &Node, by: u64| {
        if node.kind() != Kind::FFma {
            return None;
        }
        let is_by = |id: Id| terms.bits_of(id) == Some(by);
        match (is_by(node.a), is_by(node.b)) {
            (true, false) => Some(node.b),
            (false, true) => Some(node.a),
            _ => None,
        }
    };
    let factor = scaled(node, SECOND);
    factor.is_some() && factor == scaled(&terms.node(node.c), FIRST)
}

/// The other operand of one that is a constant, and its bits.
pub(crate) fn with_constant(terms: &Terms, node: &Node) -> Option<(Id, u64)> {
    match (terms.bits_of(node.a), terms.bits_of(node.b)) {
        (Some(bits), None) => Some((node.b, bits)),
        (None, Some(bits)) => Some((node.a, bits)),
        _ => None,
    }
}

/// The sum `252 x + 12582913`, rounded down, whose lower bits are shifted to where an exponent stands, and `x`, which is
/// between 0 and 1: `2^j` of an integer `j`.
pub(crate) fn scaled_by_bits(terms: &Terms, node: &Node) -> Option<(Id, Id)> {
    if node.kind() != Kind::Concat || node.imm() & 0xff != 23 {
        return None;
    }
    let (below, part) = (terms.bits_of(node.a)?, terms.node(node.b));
    let is_low = part.kind() == Kind::Extract && part.imm() & 0xff == 0;
    if below != 0 || !is_low {
        return None;
    }
    let sum = terms.node(part.a);
    let mode = Mode::new(Domain::F32, Mode::DOWN);
    if sum.kind() != Kind::FFma || sum.mode() != mode {
        return None;
    }
    let (x, scale) = with_constant(terms, &sum)?;
    let clamped = terms.node(x);
    let is_clamped = match clamped.kind() {
        Kind::FCvt | Kind::FFma => clamped.mode().has(Mode::SAT),
        _ => false,
    };
    let is_sum = scale == 0x437c_0000 && terms.bits_of(sum.c) == Some(0x4b40_0001);
    (is_sum && is_clamped).then_some((part.a, x))
}

/// Is it a type of integers?
pub fn is_whole(domain: Domain) -> bool {
    matches!(domain, Domain::I16 | Domain::I32 | Domain::I64)
}

fn is_leaf(node: &Node) -> bool {
    matches!(node.kind(), Kind::Const | Kind::Input | Kind::Unset)
}

fn rounds(kind: Kind) -> bool {
    is_arithmetic(kind) || matches!(kind, Kind::FRsqrt | Kind::FEx2)
}

/// Does it not matter which of its first two operands is which?
fn commutes(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::FAdd | Kind::FMul | Kind::FFma | Kind::FMin | Kind::FMax | Kind::IAdd | Kind::IMul
    )
}

fn is_arithmetic(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::FAdd | Kind::FMul | Kind::FFma | Kind::FDiv | Kind::FCvt | Kind::FSqrt
    )
}

fn key_words(key: Key) -> [u64; 5] {
    match key {
        Key::Less(a, b) => [1, a.p, a.q, b.p, b.q],
        Key::Compared(code, a, b) => [2 + (u64::from(code) << 8), a.p, a.q, b.p, b.q],
        Key::Predicate(a) => [0, a.p, a.q, 0, 0],
    }
}

/// The number itself: a whole number times a power of two.
fn exact(x: f64) -> Value {
    let bits = x.to_bits();
    let exponent = (bits >> 52 & 0x7ff) as i32;
    let fraction = (bits & ((1 << 52) - 1)) as i128;
    let (whole, exponent) = match exponent {
        0 => (fraction, -1074),
        e => (fraction | 1 << 52, e - 1075),
    };
    let mut power = Value::ONE;
    for _ in 0..exponent.unsigned_abs() {
        power = power.plus(power);
    }
    let scale = match exponent < 0 {
        true => power.inverse().unwrap_or(Value::ONE),
        false => power,
    };
    let value = Value::integer(whole).times(scale);
    if x < 0.0 { value.negative() } else { value }
}

const _: () = assert!(P > 1 << 58);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_are_simple_fractions() {
        let terms = Terms::default();
        let reals = Reals::new(&terms, 1);
        let fraction = |x: f64, digits: i32| reals.float(x, digits, f64::MAX);
        let tenth = fraction(f64::from(0.1f32), 24);
        assert_eq!(tenth.times(Value::integer(10)), Value::ONE);
        let third = fraction(f64::from(1.0f32 / 3.0), 24);
        assert_eq!(third.times(Value::integer(-3)), Value::ONE.negative());
        assert_eq!(fraction(-7.0, 24), Value::integer(-7));
        let small = fraction(f64::from(f32::MIN_POSITIVE), 24);
        assert_eq!(small, exact(f64::from(f32::MIN_POSITIVE)));
        assert_eq!(half(0x3c00), 1.0);
        assert_eq!(half(0xc000), -2.0);
    }
}
