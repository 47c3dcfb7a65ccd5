//! How far rounding may move a result, for all inputs in given ranges.
//!
//! A running error analysis (Wilkinson; Higham, 'Accuracy and Stability of Numerical Algorithms', section 3.3) over the
//! graph, each term once: an interval of its value over the reals, and how far what is computed may be from that value.
//! What a term is over the reals is what [`crate::reals`] takes it for, so that two that are equal there are no further
//! apart than both bounds together.
//!
//! Errors of approximate functions are those that the PTX ISA states. Sums in an order that nobody states (atomic ones,
//! those within a matrix instruction) are bounded for every order.

use rustc_hash::{FxHashMap, FxHashSet};
use warpwright_emu::symbolic::term::{Cmp, Domain, Id, Kind, Mode, Node, Order, Terms};

use crate::constants::{Meaning, doubles, half};
use crate::reals::{completes_log2e, scaled_by_bits, with_constant};
use crate::sets::{Set, Sets};
use crate::taken::{DOMAINS, Place, operands, wanted};

/// What is known of a term.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Bound {
    /// Between these is its value over the reals.
    pub low: f64,
    pub high: f64,
    /// What is computed is no further off.
    pub error: f64,
    /// What is computed is no less.
    floor: f64,
    /// Magnitudes of what a sum in any order is made of, together.
    sum: f64,
    /// Of how many it is made.
    parts: u32,
    /// Summands of a sum in whatever order.
    pub summands: u32,
    /// Roundings in a row.
    pub depth: u32,
}

/// Why there is no bound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lack {
    /// Nothing is said of the numbers in a buffer, by its number in terms.
    Range(u32),
    /// A divisor may be zero.
    Divisor,
    /// The operand of a root or a logarithm may be zero or less.
    Root,
    /// A value may be larger than its format holds.
    Overflow,
    /// Nothing is stated of this function.
    Function(String),
    /// The bits of a rounded number are taken for something else.
    Bits,
}

/// The numbers that a buffer may hold.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Range {
    /// What its elements are.
    pub domain: Domain,
    pub low: f64,
    pub high: f64,
}

/// What rounding does in a format.
#[derive(Clone, Copy)]
struct Format {
    /// Half an ulp of 1.
    unit: f64,
    /// Half of the least number, rounded up.
    tiny: f64,
    /// The least normal number.
    normal: f64,
    /// The largest number.
    most: f64,
    /// Significant bits.
    digits: i32,
}

impl Format {
    fn of(domain: Domain) -> Option<Format> {
        let new = |digits: i32, least: i32, most: f64| Format {
            unit: 2f64.powi(-digits),
            tiny: 2f64.powi((least - digits).max(-1074)),
            normal: 2f64.powi(least),
            most,
            digits,
        };
        Some(match domain {
            Domain::F16 => new(11, -14, 65504.0),
            Domain::Bf16 => new(8, -126, f64::from(f32::from_bits(0x7f7f_0000))),
            Domain::F32 => new(24, -126, f64::from(f32::MAX)),
            Domain::F64 => new(53, -1022, f64::MAX),
            _ => return None,
        })
    }
}

/// The factor by which what is computed here, of a few operations, is too small at most.
const GROWN: f64 = 1.0 + 1e-14;

impl Bound {
    const NONE: Bound = Bound {
        error: f64::INFINITY,
        ..Bound::exact(0.0, 0.0)
    };
    const LEAST: Bound = Bound::exact(f64::NEG_INFINITY, f64::NEG_INFINITY);
    const MOST: Bound = Bound::exact(f64::INFINITY, f64::INFINITY);

    const fn exact(low: f64, high: f64) -> Bound {
        Bound {
            low,
            high,
            error: 0.0,
            floor: low,
            sum: 0.0,
            parts: 1,
            summands: 1,
            depth: 0,
        }
    }

    fn is_none(&self) -> bool {
        self.error.is_infinite()
    }

    /// Is it an infinity that stands for nothing, as a maximum begins with?
    fn is_absent(&self) -> bool {
        self.low == self.high && self.low.is_infinite()
    }

    /// The largest magnitude over the reals.
    pub fn magnitude(&self) -> f64 {
        self.low.abs().max(self.high.abs())
    }

    /// The largest magnitude of what is computed.
    fn computed(&self) -> f64 {
        self.magnitude() + self.error
    }

    /// The least magnitude over the reals; 0 where the sign is open.
    fn least(&self) -> f64 {
        if self.low > 0.0 {
            self.low
        } else {
            (-self.high).max(0.0)
        }
    }

    /// The least magnitude of what is computed.
    fn least_computed(&self) -> f64 {
        (self.least() - self.error).max(self.floor)
    }

    /// Either of two.
    fn or(self, other: Bound) -> Bound {
        Bound {
            low: self.low.min(other.low),
            high: self.high.max(other.high),
            error: self.error.max(other.error),
            floor: self.floor.min(other.floor),
            depth: self.depth.max(other.depth),
            ..Bound::exact(0.0, 0.0)
        }
    }
}

/// Bounds of terms.
pub(crate) struct Bounds<'a> {
    terms: &'a Terms,
    ranges: &'a [Option<Range>],
    /// Where the bound of a term stands.
    slots: Vec<u32>,
    all: Vec<Bound>,
    /// Of selections between terms without a domain.
    others: FxHashMap<Place, Bound>,
    sets: Sets,
    /// What maxima are taken of.
    maxima: FxHashMap<Id, Set>,
    doubles: FxHashMap<u32, f64>,
}

const NOWHERE: u32 = u32::MAX;

/// What a result is made of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Made {
    /// Operations that round.
    pub roundings: usize,
    /// Summands of the longest sum.
    pub summands: u32,
    /// Buffers whose ranges count.
    pub inputs: Vec<u32>,
}

impl<'a> Bounds<'a> {
    /// Bounds of all that some terms are made of, for inputs in these ranges.
    pub fn of(terms: &'a Terms, ranges: &'a [Option<Range>], roots: &[Place]) -> Bounds<'a> {
        let mut bounds = Bounds {
            terms,
            ranges,
            slots: vec![NOWHERE; terms.len()],
            all: Vec::new(),
            others: FxHashMap::default(),
            sets: Sets::default(),
            maxima: FxHashMap::default(),
            doubles: doubles(terms),
        };
        for (id, &domains) in wanted(terms, roots).iter().enumerate() {
            let (id, node) = (id as Id, terms.node(id as Id));
            if domains == 0 || node.args().next().is_none() {
                continue;
            }
            match terms.domain(id) {
                Domain::Any if node.kind() == Kind::Select => {
                    let taken = |d: &Domain| domains >> *d as u32 & 1 != 0;
                    for domain in DOMAINS.into_iter().filter(taken) {
                        let bound = bounds.evaluate((id, domain), &node);
                        let bound = bound.unwrap_or(Bound::NONE);
                        bounds.others.insert((id, domain), bound);
                    }
                }
                own => {
                    let bound = bounds.evaluate((id, own), &node);
                    bounds.slots[id as usize] = bounds.all.len() as u32;
                    bounds.all.push(bound.unwrap_or(Bound::NONE));
                }
            }
        }
        bounds
    }

    /// The bound of a term.
    ///
    /// # Errors
    /// [`Lack`]: what stands in the way of one.
    pub fn at(&mut self, place: Place) -> Result<Bound, Lack> {
        let bound = self.value(place);
        match bound {
            Ok(bound) if bound.is_none() => Err(self.lack(place)),
            Ok(bound) if !bound.magnitude().is_finite() => Err(Lack::Overflow),
            bound => bound,
        }
    }

    /// The first reason on the way down. Arguments have lower numbers than what is made of them.
    fn lack(&mut self, mut place: Place) -> Lack {
        loop {
            let node = self.terms.node(place.0);
            let own = self.terms.domain(place.0);
            let reader = if own == Domain::Any { place.1 } else { own };
            let parts: Vec<Place> = match self.exponential(&node) {
                Some(x) => vec![(x, Domain::F32)],
                None => operands(self.terms, &node, reader).collect(),
            };
            let mut parts = parts.into_iter();
            let open = parts.find(|&at| !self.value(at).is_ok_and(|bound| !bound.is_none()));
            match open {
                Some(next) => place = next,
                None => return self.evaluate(place, &node).err().unwrap_or(Lack::Bits),
            }
        }
    }

    /// What a term is made of.
    pub fn made(&self, root: Id) -> Made {
        let mut made = Made::default();
        let mut seen = FxHashSet::default();
        let mut stack = vec![root];
        while let Some(id) = stack.pop() {
            if !seen.insert(id) {
                continue;
            }
            let node = self.terms.node(id);
            if node.kind() == Kind::Input && !made.inputs.contains(&node.a) {
                made.inputs.push(node.a);
            }
            made.roundings += usize::from(rounds(&node));
            if let Some(bound) = self.all.get(self.slots[id as usize] as usize) {
                made.summands = made.summands.max(bound.summands);
            }
            stack.extend(node.args());
        }
        made
    }

    // ---- leaves

    fn value(&mut self, (id, domain): Place) -> Result<Bound, Lack> {
        let node = self.terms.node(id);
        match node.kind() {
            Kind::Const => return self.constant(id, domain),
            Kind::Input => return self.input(&node, domain),
            Kind::Unset => return Err(Lack::Bits),
            _ => {}
        }
        let own = self.terms.domain(id);
        if own == Domain::Any && node.kind() == Kind::Select {
            let known = self.others.get(&(id, domain));
            return known.copied().ok_or(Lack::Bits);
        }
        let slot = self.slots[id as usize] as usize;
        let bound = self.all.get(slot).copied().unwrap_or(Bound::NONE);
        if own == domain || bound.is_none() {
            return Ok(bound);
        }
        if domain == Domain::F32
            && let Some(wide) = self.widened_bits(&node)
        {
            return wide;
        }
        match bound.error == 0.0 && !domain.is_float() {
            true if !own.is_float() && bound.low >= 0.0 => Ok(bound),
            true => Ok(whole(domain.bits())),
            false => Err(Lack::Bits),
        }
    }

    /// A number in single precision whose upper half is bfloat16.
    fn widened_bits(&mut self, node: &Node) -> Option<Result<Bound, Lack>> {
        let is_wide = node.kind() == Kind::Concat && node.imm() == 16 | 32 << 8;
        (is_wide && self.terms.bits_of(node.a) == Some(0))
            .then(|| self.value((node.b, Domain::Bf16)))
    }

    fn constant(&mut self, id: Id, domain: Domain) -> Result<Bound, Lack> {
        let bits = self.terms.bits_of(id).unwrap_or(0);
        let Some(format) = Format::of(domain) else {
            let shift = 64 - domain.bits();
            let value = ((bits << shift) as i64 >> shift) as f64;
            return Ok(Bound::exact(value, value));
        };
        let held = match domain {
            Domain::F16 => half(bits as u16),
            Domain::Bf16 => f64::from(f32::from_bits((bits as u32) << 16)),
            Domain::F32 => f64::from(f32::from_bits(bits as u32)),
            _ => f64::from_bits(bits),
        };
        let double = (domain == Domain::F32).then(|| self.doubles.get(&(bits as u32)));
        let meaning = match double.flatten() {
            Some(&x) => Meaning::of(x, 53, f64::MAX),
            None => Meaning::of(held, format.digits, format.most),
        };
        let (low, high) = match meaning {
            Meaning::NotANumber => return Err(Lack::Overflow),
            Meaning::Least => return Ok(Bound::LEAST),
            Meaning::Most => return Ok(Bound::MOST),
            Meaning::Itself(x) => (x, x),
            Meaning::Fraction(above, below) => {
                let value = above as f64 / below as f64;
                let is_exact = below & (below - 1) == 0 && above.unsigned_abs() < 1 << 53;
                if is_exact {
                    (value, value)
                } else {
                    around(value)
                }
            }
            Meaning::Log2e { negative } => {
                let value = std::f64::consts::LOG2_E;
                around(if negative { -value } else { value })
            }
        };
        let error = (held - low).abs().max((held - high).abs());
        Ok(Bound {
            error: error * GROWN,
            floor: held,
            ..Bound::exact(low, high)
        })
    }

    fn input(&self, node: &Node, domain: Domain) -> Result<Bound, Lack> {
        let known = self.ranges.get(node.a as usize).copied().flatten();
        match known {
            Some(range) if range.domain == domain && node.imm() == domain.bits() => {
                Ok(Bound::exact(range.low, range.high))
            }
            // An integer of fewer bits than its reader's has no sign there.
            Some(range) if !domain.is_float() && !range.domain.is_float() && range.low >= 0.0 => {
                Ok(Bound::exact(range.low, range.high))
            }
            _ if !domain.is_float() => Ok(whole(node.imm())),
            _ => Err(Lack::Range(node.a)),
        }
    }

    // ---- one term

    fn evaluate(&mut self, place: Place, node: &Node) -> Result<Bound, Lack> {
        let own = place.1;
        if self.is_leaf(node) {
            return self.value(place);
        }
        if node.kind() == Kind::FMul
            && let Some(x) = self.exponential(node)
        {
            return self.natural_power(x);
        }
        let mut x = [Bound::exact(0.0, 0.0); 3];
        for (bound, part) in x.iter_mut().zip(operands(self.terms, node, own)) {
            *bound = self.value(part)?;
            if bound.is_none() {
                return Ok(Bound::NONE);
            }
        }
        let depth = x.iter().map(|bound| bound.depth).max().unwrap_or(0);
        let mut bound = match node.kind() {
            Kind::Select => self.selected(place.0, node, x)?,
            Kind::Cmp | Kind::Not | Kind::And | Kind::Xor => predicate(x),
            Kind::FMin | Kind::FMax => self.extreme(place.0, node, x),
            Kind::App => self.named(node, &x[..node.args().count()])?,
            Kind::Pair => Bound {
                error: x[0].error.max(x[1].error),
                ..Bound::exact(0.0, 0.0)
            },
            Kind::Extract => part_of(node, x[0])?,
            Kind::Concat if x[0].error == 0.0 && x[1].error == 0.0 => whole(node.imm() >> 8),
            Kind::Concat => return Err(Lack::Bits),
            Kind::Sext => extended(node, x[0])?,
            Kind::IAdd | Kind::IMul => integer(own, node, x)?,
            _ => self.arithmetic(own, node, x)?,
        };
        bound.depth = depth + u32::from(rounds(node));
        let floor = floor(node, x);
        // What is subnormal may be flushed.
        let is_normal = Format::of(own).is_none_or(|format| floor >= format.normal);
        let floor = if is_normal { floor } else { floor.min(0.0) };
        bound.floor = floor.max(bound.low - bound.error);
        Ok(bound)
    }

    fn is_leaf(&self, node: &Node) -> bool {
        matches!(node.kind(), Kind::Const | Kind::Input | Kind::Unset)
    }

    fn arithmetic(&mut self, own: Domain, node: &Node, x: [Bound; 3]) -> Result<Bound, Lack> {
        let format = Format::of(own).ok_or(Lack::Bits)?;
        let mode = node.mode();
        let [a, b, c] = x.map(|x| flushed(x, mode, format));
        let round = Round { format, mode };
        match node.kind() {
            Kind::FNeg => Ok(negated(x[0])),
            Kind::FAbs => Ok(absolute(x[0])),
            Kind::FAdd => {
                let high = match self.is_difference_below_zero(node) {
                    true => 0.0,
                    false => f64::INFINITY,
                };
                self.sum(node, round, [a, b], high)
            }
            Kind::FMul => {
                if let Some(absent) = absent_product(a, b)? {
                    return Ok(absent);
                }
                let (range, error) = product(a, b, node.a == node.b);
                round.result(range, error, format.unit)
            }
            Kind::FFma if own == Domain::F32 && completes_log2e(self.terms, node) => {
                // What the first half of the constant lacks is in its error.
                let error = c.error + a.computed() * b.computed() * GROWN;
                round.result((c.low, c.high), error, format.unit)
            }
            Kind::FFma => self.fused(node, round, [a, b, c]),
            Kind::FDiv => quotient(round, a, b),
            Kind::FSqrt => root(round, a),
            Kind::FRsqrt => reciprocal_root(round, a),
            Kind::FEx2 => power(round, own, a),
            Kind::FCvt => converted(round, node, x[0]),
            Kind::FromInt => from_integer(round, node, x[0]),
            _ => Err(Lack::Bits),
        }
    }

    // ---- sums

    /// Summands and magnitude of a part of a sum that may come in any order.
    fn part(&self, id: Id, bound: Bound, first: bool) -> (f64, f64) {
        let node = self.terms.node(id);
        let is_sum =
            matches!(node.kind(), Kind::FAdd | Kind::FFma) && node.mode().has(Mode::MATRIX);
        match is_sum && !first {
            true => (f64::from(bound.parts), bound.sum),
            false => (1.0, bound.computed()),
        }
    }

    fn sum(&self, node: &Node, round: Round, [a, b]: [Bound; 2], most: f64) -> Result<Bound, Lack> {
        match (a.is_absent(), b.is_absent()) {
            (false, false) => {}
            (true, true) if a.low != b.low => return Err(Lack::Overflow),
            (true, _) => return Ok(a),
            (_, true) => return Ok(b),
        }
        let range = (sum_down(a.low, b.low), sum_up(a.high, b.high).min(most));
        let error = a.error + b.error;
        let summands = |id: Id, bound: Bound| match self.terms.node(id).kind() {
            Kind::FAdd | Kind::FFma => bound.summands,
            _ => 1,
        };
        let count = summands(node.a, a).saturating_add(summands(node.b, b));
        if !node.mode().has(Mode::MATRIX) {
            let result = round.result(range, error, round.format.unit)?;
            let summands = count;
            return Ok(Bound { summands, ..result });
        }
        let (p, q) = (self.part(node.a, a, false), self.part(node.b, b, false));
        let unit = round.format.unit * (1.0 + 2.0 * (p.0 + q.0) * round.format.unit);
        // Each summand is rounded once for each other one, at most.
        let error = error + unit * (p.0 * q.1 + q.0 * p.1) + round.format.normal;
        Ok(Bound {
            sum: (p.1 + q.1) * GROWN,
            parts: (p.0 + q.0) as u32,
            summands: count,
            ..round.result(range, error, round.format.unit)?
        })
    }

    fn fused(&self, node: &Node, round: Round, [a, b, c]: [Bound; 3]) -> Result<Bound, Lack> {
        if let Some(absent) = absent_product(a, b)? {
            return self.sum(node, round, [absent, c], f64::INFINITY);
        }
        if c.is_absent() {
            return Ok(c);
        }
        let ((low, high), error) = product(a, b, node.a == node.b);
        let range = (sum_down(low, c.low), sum_up(high, c.high));
        let is_sum = matches!(self.terms.node(node.c).kind(), Kind::FAdd | Kind::FFma);
        let before = if is_sum { c.summands } else { 1 };
        let mode = node.mode();
        if !mode.has(Mode::MATRIX) {
            let result = round.result(range, error + c.error, round.format.unit)?;
            let summands = before.saturating_add(1);
            return Ok(Bound { summands, ..result });
        }
        // Each summand of an instruction is cut to the last place of the largest one.
        let (count, sum) = self.part(node.c, c, mode.has(Mode::FIRST));
        let product = low.abs().max(high.abs()) + error;
        let cut = 4.0 * round.format.unit;
        let error = error + c.error + cut * (count * product + sum);
        Ok(Bound {
            sum: (sum + product) * GROWN,
            parts: count as u32 + 1,
            summands: before.saturating_add(1),
            ..round.result(range, error, round.format.unit)?
        })
    }

    // ---- maxima

    /// What a maximum is taken of; a term alone.
    fn members(&mut self, id: Id) -> Set {
        match self.maxima.get(&id) {
            Some(&set) => set,
            None => self.sets.one(id),
        }
    }

    /// Is it `x - m` where `x` is among what `m` is the maximum of, or both are maxima of which one has all of the other?
    fn is_difference_below_zero(&mut self, node: &Node) -> bool {
        [(node.a, node.b), (node.b, node.a)]
            .into_iter()
            .any(|(x, turned)| {
                let negative = self.terms.node(turned);
                negative.kind() == Kind::FNeg && self.is_at_most(x, negative.a)
            })
    }

    fn is_at_most(&mut self, x: Id, most: Id) -> bool {
        if !self.maxima.contains_key(&most) {
            return x == most;
        }
        let (own, all) = (self.members(x), self.members(most));
        match self.sets.only(own) {
            Some(member) => self.sets.has(all, member),
            None => self.sets.union(own, all) == all,
        }
    }

    fn extreme(&mut self, id: Id, node: &Node, [a, b, _]: [Bound; 3]) -> Bound {
        self.larger(id, node.kind() == Kind::FMax, (node.a, a), (node.b, b))
    }

    fn larger(
        &mut self,
        id: Id,
        is_larger: bool,
        (x, a): (Id, Bound),
        (y, b): (Id, Bound),
    ) -> Bound {
        let both = a.or(b);
        if !is_larger {
            let (low, high) = (a.low.min(b.low), a.high.min(b.high));
            return Bound { low, high, ..both };
        }
        let (one, other) = (self.members(x), self.members(y));
        let all = self.sets.union(one, other);
        self.maxima.insert(id, all);
        let (low, high) = (a.low.max(b.low), a.high.max(b.high));
        Bound { low, high, ..both }
    }

    // ---- choices

    fn selected(&mut self, id: Id, node: &Node, [p, a, b]: [Bound; 3]) -> Result<Bound, Lack> {
        if let Some(larger) = self.is_extreme(node) {
            let bound = self.larger(id, larger, (node.b, a), (node.c, b));
            return Ok(bound);
        }
        let both = a.or(b);
        if p.error == 0.0 {
            return Ok(both);
        }
        // What is computed may be the other one.
        let error = both.error + (both.high - both.low);
        match error.is_finite() {
            true => Ok(Bound {
                error: error * GROWN,
                ..both
            }),
            false => Err(Lack::Overflow),
        }
    }

    /// A selection by a comparison of just what is selected from: is it the larger one?
    fn is_extreme(&self, node: &Node) -> Option<bool> {
        let test = self.terms.node(node.a);
        let cmp = Cmp(test.imm());
        let is_order = test.kind() == Kind::Cmp && matches!(cmp.order(), Order::Lt | Order::Le);
        match is_order && cmp.domain().is_float() {
            true if (test.a, test.b) == (node.c, node.b) => Some(true),
            true if (test.a, test.b) == (node.b, node.c) => Some(false),
            _ => None,
        }
    }

    // ---- functions

    /// The exponent, where the product is what `expf` makes: a power of a fraction times one of a whole number.
    fn exponential(&self, node: &Node) -> Option<Id> {
        let terms = self.terms;
        if node.kind() != Kind::FMul {
            return None;
        }
        let (one, other) = (terms.node(node.a), terms.node(node.b));
        let (power, scale) = match (one.kind(), other.kind()) {
            (Kind::FEx2, Kind::Concat) => (one, other),
            (Kind::Concat, Kind::FEx2) => (other, one),
            _ => return None,
        };
        let outer = terms.node(power.a);
        if outer.kind() != Kind::FFma || !completes_log2e(terms, &outer) {
            return None;
        }
        let (x, _) = with_constant(terms, &outer)?;
        let (sum, clamped) = scaled_by_bits(terms, &scale)?;
        let whole = terms.node(terms.node(outer.c).c);
        if whole.kind() != Kind::FNeg {
            return None;
        }
        let shifted = terms.node(whole.a);
        let is_same = shifted.kind() == Kind::FAdd
            && with_constant(terms, &shifted) == Some((sum, 0xcb40_007f));
        let clamped = terms.node(clamped);
        let is_fraction = clamped.kind() == Kind::FFma
            && with_constant(terms, &clamped) == Some((x, 0x3bbb_989d))
            && terms.bits_of(clamped.c) == Some(0x3f00_0000);
        (is_same && is_fraction).then_some(x)
    }

    /// `expf`: 4 ulp at most, and nothing that is too small.
    fn natural_power(&mut self, x: Id) -> Result<Bound, Lack> {
        let a = self.value((x, Domain::F32))?;
        if a.is_none() {
            return Ok(Bound::NONE);
        }
        if a.is_absent() && a.low < 0.0 {
            return Ok(Bound::exact(0.0, 0.0));
        }
        let format = Format::of(Domain::F32).ok_or(Lack::Bits)?;
        let mode = Mode::new(Domain::F32, Mode::FTZ);
        let high = a.high.exp() * GROWN;
        let error = high * a.error.exp_m1() * GROWN + 2.0 * format.normal;
        let round = Round { format, mode };
        let bound = round.result((a.low.exp() / GROWN, high), error, 8.0 * format.unit)?;
        Ok(Bound {
            floor: 0.0,
            depth: a.depth + 1,
            ..bound
        })
    }

    fn named(&mut self, node: &Node, x: &[Bound]) -> Result<Bound, Lack> {
        let (name, domain) = self.terms.name(node.imm());
        let lack = || Lack::Function(name.to_owned());
        let words: Vec<&str> = name.split(['.', ' ']).collect();
        let has = |word: &str| words.contains(&word);
        let a = x.first().copied().unwrap_or(Bound::exact(0.0, 0.0));
        let is_single = x.len() == 1 && has("f32") && domain == Domain::F32;
        match words[0] {
            "lg2" if is_single => return logarithm(a),
            "sin" | "cos" if is_single => return wave(a).ok_or_else(lack),
            "tanh" if is_single => return Ok(bent(a)),
            "element" if x.len() == 1 && has("Tf32") => return Ok(cut(a, 2f64.powi(-10))),
            "cvt" if x.len() == 1 && has("tf32") => return Ok(cut(a, 2f64.powi(-10))),
            _ => {}
        }
        if x.iter().any(|bound| bound.error != 0.0) {
            return whole_number(a, &words, domain).ok_or_else(lack);
        }
        match domain {
            _ if !domain.is_float() => Ok(whole(domain.bits())),
            _ => Err(lack()),
        }
    }
}

/// How an operation rounds.
#[derive(Clone, Copy)]
struct Round {
    format: Format,
    mode: Mode,
}

impl Round {
    /// A result over the reals in this range, computed of operands by which it is off so far, rounded with an error of
    /// `unit` times its magnitude.
    fn result(self, (low, high): (f64, f64), error: f64, unit: f64) -> Result<Bound, Lack> {
        let Round { format, mode } = self;
        let directed = mode.has(Mode::ZERO | Mode::DOWN | Mode::UP);
        let unit = if directed { 2.0 * unit } else { unit };
        let magnitude = low.abs().max(high.abs()) + error;
        let flush = if mode.has(Mode::FTZ) {
            format.normal
        } else {
            format.tiny
        };
        let error = (error + unit * magnitude + flush) * GROWN;
        let most = magnitude + error;
        if most.is_nan() || most > format.most {
            return Err(Lack::Overflow);
        }
        let clamp = |x: f64| match () {
            () if mode.has(Mode::SAT) => x.clamp(0.0, 1.0),
            () if mode.has(Mode::RELU) => x.max(0.0),
            () => x,
        };
        Ok(Bound {
            error,
            ..Bound::exact(clamp(low), clamp(high))
        })
    }
}

/// What is computed is no less than this: rounding keeps order.
fn floor(node: &Node, [a, b, c]: [Bound; 3]) -> f64 {
    let are_positive = |x: &[Bound]| x.iter().all(|x| x.floor >= 0.0);
    let is_product = node.a == node.b || are_positive(&[a, b]);
    match node.kind() {
        Kind::FAdd if are_positive(&[a, b]) => a.floor.max(b.floor),
        Kind::FFma if is_product && c.floor >= 0.0 => match node.mode().has(Mode::MATRIX) {
            true => 0.0,
            false => c.floor,
        },
        Kind::FMul if is_product => 0.0,
        Kind::FDiv if are_positive(&[a, b]) => 0.0,
        Kind::FAbs | Kind::FEx2 | Kind::FSqrt | Kind::FRsqrt => 0.0,
        Kind::FMax => a.floor.max(b.floor),
        Kind::FMin => a.floor.min(b.floor),
        Kind::Select => b.floor.min(c.floor),
        Kind::FCvt if a.floor >= 0.0 => 0.0,
        _ => f64::NEG_INFINITY,
    }
}

/// May it round?
fn rounds(node: &Node) -> bool {
    match node.kind() {
        Kind::FAdd | Kind::FMul | Kind::FFma | Kind::FDiv | Kind::FSqrt => true,
        Kind::FRsqrt | Kind::FEx2 | Kind::FromInt | Kind::App => true,
        Kind::FCvt => is_narrowed(node),
        _ => false,
    }
}

fn is_narrowed(node: &Node) -> bool {
    let from = Format::of(DOMAINS[node.b as usize % DOMAINS.len()]);
    let to = Format::of(node.mode().domain());
    match (from, to) {
        (Some(from), Some(to)) => to.digits < from.digits || to.normal > from.normal,
        _ => true,
    }
}

/// Where subnormal operands are zero, an operand may be off by the least normal number.
fn flushed(x: Bound, mode: Mode, format: Format) -> Bound {
    let is_zero = x.low == 0.0 && x.high == 0.0 && x.error == 0.0;
    match mode.has(Mode::FTZ) && !is_zero && x.least() - x.error < format.normal {
        true => Bound {
            error: x.error + format.normal,
            floor: x.floor.min(0.0),
            ..x
        },
        false => x,
    }
}

// ---- ranges

/// The number next to it on either side.
fn around(x: f64) -> (f64, f64) {
    (x.next_down(), x.next_up())
}

/// What a rounded sum lacks.
fn lost(a: f64, b: f64, sum: f64) -> f64 {
    let other = sum - a;
    (a - (sum - other)) + (b - other)
}

fn sum_down(a: f64, b: f64) -> f64 {
    let sum = a + b;
    if lost(a, b, sum) < 0.0 {
        sum.next_down()
    } else {
        sum
    }
}

fn sum_up(a: f64, b: f64) -> f64 {
    let sum = a + b;
    if lost(a, b, sum) > 0.0 {
        sum.next_up()
    } else {
        sum
    }
}

/// A product, rounded down and up.
fn products(a: f64, b: f64) -> (f64, f64) {
    let product = a * b;
    let lost = a.mul_add(b, -product);
    match a == 0.0 || b == 0.0 || lost == 0.0 && product.abs() > 1e-280 {
        true => (product, product),
        false => around(product),
    }
}

/// The range of a product, and the error that comes of its factors'.
fn product(a: Bound, b: Bound, is_square: bool) -> ((f64, f64), f64) {
    let ends = [
        (a.low, b.low),
        (a.low, b.high),
        (a.high, b.low),
        (a.high, b.high),
    ];
    let ends = ends.map(|(x, y)| products(x, y));
    let low = ends.iter().fold(f64::INFINITY, |low, end| low.min(end.0));
    let high = ends
        .iter()
        .fold(f64::NEG_INFINITY, |high, end| high.max(end.1));
    let low = match is_square {
        true => products(a.least(), a.least()).0.max(0.0),
        false => low,
    };
    let error = a.magnitude() * b.error + b.magnitude() * a.error + a.error * b.error;
    ((low, high), error * GROWN)
}

/// An infinity times a number whose sign is known is one.
fn absent_product(a: Bound, b: Bound) -> Result<Option<Bound>, Lack> {
    let (infinite, factor) = match (a.is_absent(), b.is_absent()) {
        (false, false) => return Ok(None),
        (true, false) => (a, b),
        (false, true) => (b, a),
        _ => return Err(Lack::Overflow),
    };
    match factor {
        _ if factor.low > 0.0 => Ok(Some(infinite)),
        _ if factor.high < 0.0 => Ok(Some(negated(infinite))),
        _ => Err(Lack::Overflow),
    }
}

fn negated(x: Bound) -> Bound {
    Bound {
        low: -x.high,
        high: -x.low,
        ..x
    }
}

fn absolute(x: Bound) -> Bound {
    Bound {
        low: x.least(),
        high: x.magnitude(),
        ..x
    }
}

/// All integers of so many bits, with a sign or without.
fn whole(bits: u32) -> Bound {
    let half = 2f64.powi(bits.clamp(1, 64) as i32 - 1);
    Bound::exact(-half, 2.0 * half)
}

/// A predicate: that of what is exact is.
fn predicate(x: [Bound; 3]) -> Bound {
    let open = x.iter().any(|x| x.error != 0.0);
    Bound {
        error: f64::from(u8::from(open)),
        ..Bound::exact(0.0, 1.0)
    }
}

// ---- integers

fn integer(domain: Domain, node: &Node, [a, b, _]: [Bound; 3]) -> Result<Bound, Lack> {
    let ((low, high), error) = match node.kind() {
        Kind::IAdd => (
            (sum_down(a.low, b.low), sum_up(a.high, b.high)),
            a.error + b.error,
        ),
        _ => product(a, b, node.a == node.b),
    };
    let most = 2f64.powi(domain.bits() as i32 - 1);
    match (low - error >= -most && high + error < most, error == 0.0) {
        (true, _) => Ok(Bound {
            error,
            ..Bound::exact(low, high)
        }),
        (false, true) => Ok(whole(domain.bits())),
        (false, false) => Err(Lack::Overflow),
    }
}

fn part_of(node: &Node, x: Bound) -> Result<Bound, Lack> {
    let (at, bits) = (node.imm() & 0xff, node.imm() >> 8);
    let all = 2f64.powi(bits as i32);
    match x.error == 0.0 {
        true if at == 0 && x.low >= 0.0 && x.high < all => Ok(x),
        true => Ok(Bound::exact(0.0, all)),
        false => Err(Lack::Bits),
    }
}

fn extended(node: &Node, x: Bound) -> Result<Bound, Lack> {
    let most = 2f64.powi((node.imm() & 0xff) as i32 - 1);
    match (
        x.low - x.error >= -most && x.high + x.error < most,
        x.error == 0.0,
    ) {
        (true, _) => Ok(x),
        (false, true) => Ok(Bound::exact(-most, most)),
        (false, false) => Err(Lack::Bits),
    }
}

fn from_integer(round: Round, node: &Node, x: Bound) -> Result<Bound, Lack> {
    let (bits, signed) = ((node.b >> 1) as i32, node.b & 1 != 0);
    let half = 2f64.powi(bits - 1);
    let (low, high) = match (x.low >= 0.0 && x.high < half, signed) {
        (true, _) => (x.low, x.high),
        (false, true) if x.low >= -half && x.high < half => (x.low, x.high),
        (false, _) if x.error != 0.0 => return Err(Lack::Bits),
        (false, true) => (-half, half),
        (false, false) => (0.0, 2.0 * half),
    };
    let is_exact = low.abs().max(high.abs()) * round.format.unit <= 1.0 && x.error == 0.0;
    let unit = if is_exact { 0.0 } else { round.format.unit };
    let bound = round.result((low, high), x.error, unit)?;
    match is_exact {
        true => Ok(Bound {
            error: 0.0,
            ..bound
        }),
        false => Ok(bound),
    }
}

/// A number made whole, of one that is off: the other one at most.
fn whole_number(a: Bound, words: &[&str], domain: Domain) -> Option<Bound> {
    let is_rounded = ["rni", "rzi", "rmi", "rpi"]
        .iter()
        .any(|word| words.contains(word));
    let fits = a.computed() + 1.0 < 2f64.powi(domain.bits() as i32 - 1);
    (words[0] == "cvt" && is_rounded && !domain.is_float() && fits).then(|| Bound {
        error: a.error + 1.0,
        ..Bound::exact(a.low.floor(), a.high.ceil())
    })
}

// ---- functions

fn converted(round: Round, node: &Node, x: Bound) -> Result<Bound, Lack> {
    let mode = round.mode;
    if x.is_absent() {
        return Ok(x);
    }
    if mode.has(Mode::INTEGRAL) {
        let error = if x.error == 0.0 { 0.0 } else { x.error + 1.0 };
        let bound = round.result((x.low.floor(), x.high.ceil()), error, 0.0)?;
        return Ok(Bound { error, ..bound });
    }
    let unit = match (is_narrowed(node), mode.has(Mode::MATRIX)) {
        (false, _) => 0.0,
        (true, false) => round.format.unit,
        // A matrix instruction may round its sums to this format on the way.
        (true, true) => {
            let more = f64::from(x.summands) * x.sum * 2.0 * round.format.unit;
            let x = Bound {
                error: x.error + more,
                ..x
            };
            return round.result((x.low, x.high), x.error, round.format.unit);
        }
    };
    let is_plain = unit == 0.0 && !mode.has(Mode::FTZ);
    let bound = round.result((x.low, x.high), x.error, unit)?;
    match is_plain {
        true => Ok(Bound {
            error: x.error,
            ..bound
        }),
        false => Ok(bound),
    }
}

fn quotient(round: Round, a: Bound, b: Bound) -> Result<Bound, Lack> {
    let least = b.least_computed();
    if b.is_absent() || a.is_absent() {
        return Err(Lack::Overflow);
    }
    if least <= 0.0 || b.least() <= 0.0 {
        return Err(Lack::Divisor);
    }
    let ends = [
        a.low / b.low,
        a.low / b.high,
        a.high / b.low,
        a.high / b.high,
    ];
    let low = ends.iter().copied().fold(f64::INFINITY, f64::min);
    let high = ends.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let range = (low.next_down(), high.next_up());
    let most = range.0.abs().max(range.1.abs());
    let error = (a.error + most * b.error) / least * GROWN;
    let is_far = round.mode.has(Mode::APPROX) && b.computed() > 2f64.powi(126);
    match (round.mode.has(Mode::APPROX), round.format.digits) {
        _ if is_far => Err(Lack::Overflow),
        (false, _) => round.result(range, error, round.format.unit),
        (true, 24) => round.result(range, error, 4.0 * round.format.unit),
        (true, _) => Err(Lack::Function("rcp.approx".to_owned())),
    }
}

fn root(round: Round, a: Bound) -> Result<Bound, Lack> {
    if a.low < 0.0 || a.floor < 0.0 || a.is_absent() {
        return Err(Lack::Root);
    }
    let near = a.low.sqrt() + a.floor.sqrt();
    // Roots are no further apart than the root of the distance.
    let error = a.error.sqrt().min(a.error / near.max(f64::MIN_POSITIVE)) * GROWN;
    let range = (a.low.sqrt().next_down().max(0.0), a.high.sqrt().next_up());
    match (round.mode.has(Mode::APPROX), round.format.digits) {
        (false, _) => round.result(range, error, round.format.unit),
        (true, 24) => round.result(range, error, 4.0 * round.format.unit),
        (true, _) => Err(Lack::Function("sqrt.approx".to_owned())),
    }
}

fn reciprocal_root(round: Round, a: Bound) -> Result<Bound, Lack> {
    let least = a.low.min(a.floor);
    if least <= 0.0 || a.is_absent() {
        return Err(Lack::Root);
    }
    if round.format.digits != 24 {
        return Err(Lack::Function("rsqrt.approx".to_owned()));
    }
    let error = a.error / (2.0 * least * least.sqrt()) * GROWN;
    let range = (1.0 / a.high.sqrt() / GROWN, 1.0 / a.low.sqrt() * GROWN);
    round.result(range, error, 4.0 * round.format.unit)
}

fn power(round: Round, domain: Domain, a: Bound) -> Result<Bound, Lack> {
    if a.is_absent() {
        return match a.low < 0.0 {
            true => Ok(Bound::exact(0.0, 0.0)),
            false => Err(Lack::Overflow),
        };
    }
    let high = a.high.exp2() * GROWN;
    let error = high * (a.error * std::f64::consts::LN_2).exp_m1() * GROWN;
    let unit = match domain {
        Domain::F32 => 4.0 * round.format.unit,
        Domain::F16 => 2f64.powf(-9.9),
        Domain::Bf16 => 2f64.powi(-7),
        _ => return Err(Lack::Function("ex2".to_owned())),
    };
    let format = Format {
        tiny: round.format.normal,
        ..round.format
    };
    Round { format, ..round }.result((a.low.exp2() / GROWN, high), error, unit)
}

/// `lg2.approx.f32`: 2⁻²² of 1 or of the result.
fn logarithm(a: Bound) -> Result<Bound, Lack> {
    let least = a.low.min(a.floor);
    if least <= f64::from(f32::MIN_POSITIVE) || a.is_absent() {
        return Err(Lack::Root);
    }
    let (low, high) = (a.low.log2(), a.high.log2());
    let most = low.abs().max(high.abs()).max(1.0);
    let error = a.error / (least * std::f64::consts::LN_2) + most * 2f64.powi(-22);
    Ok(Bound {
        error: error * GROWN,
        ..Bound::exact(low - most * 1e-14, high + most * 1e-14)
    })
}

/// `sin.approx.f32` and `cos.approx.f32`: 2⁻²⁰·⁵ within 2π, 2⁻¹⁴·⁷ within 100π.
fn wave(a: Bound) -> Option<Bound> {
    let turns = a.computed() / std::f64::consts::PI;
    let own = match turns {
        _ if turns <= 2.0 => 2f64.powf(-20.5),
        _ if turns <= 100.0 => 2f64.powf(-14.7),
        _ => return None,
    };
    Some(Bound {
        error: (a.error + own) * GROWN,
        ..Bound::exact(-1.0, 1.0)
    })
}

/// `tanh.approx.f32`: 2⁻¹¹ of the result.
fn bent(a: Bound) -> Bound {
    Bound {
        error: (a.error + 2f64.powi(-11)) * GROWN,
        ..Bound::exact(-1.0, 1.0)
    }
}

/// Lower bits dropped.
fn cut(a: Bound, unit: f64) -> Bound {
    Bound {
        error: (a.error + unit * a.computed()) * GROWN,
        ..a
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpwright_emu::symbolic::term::Val;
    use warpwright_launch::ElemType;

    /// Twice double precision: what a value is over the reals, nearly.
    #[derive(Clone, Copy, Debug)]
    struct Wide(f64, f64);

    impl Wide {
        fn new(a: f64, b: f64) -> Wide {
            let sum = a + b;
            Wide(sum, lost(a, b, sum))
        }

        fn plus(self, other: Wide) -> Wide {
            let Wide(sum, rest) = Wide::new(self.0, other.0);
            Wide::new(sum, rest + self.1 + other.1)
        }

        fn times(self, other: Wide) -> Wide {
            let product = self.0 * other.0;
            let rest = self.0.mul_add(other.0, -product);
            Wide::new(product, rest + self.0 * other.1 + self.1 * other.0)
        }

        fn negative(self) -> Wide {
            Wide(-self.0, -self.1)
        }

        fn over(self, other: Wide) -> Wide {
            let first = Wide(self.0 / other.0, 0.0);
            let rest = self.plus(first.times(other).negative());
            first.plus(Wide(rest.0 / other.0, 0.0))
        }

        fn root(self) -> Wide {
            let first = Wide(self.0.sqrt(), 0.0);
            let rest = self.plus(first.times(first).negative());
            first.plus(Wide(rest.0 / (2.0 * first.0), 0.0))
        }

        fn is_less(self, other: Wide) -> bool {
            self.plus(other.negative()).0 < 0.0
        }
    }

    struct Random(u64);

    impl Random {
        fn below(&mut self, n: usize) -> usize {
            self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            (self.0 >> 33) as usize % n
        }

        fn unit(&mut self) -> f64 {
            self.below(1 << 30) as f64 / f64::from(1 << 30)
        }
    }

    /// A value as a term, as it is computed and as it is.
    #[derive(Clone, Copy, Debug)]
    struct Traced {
        term: Val,
        computed: f64,
        exact: Wide,
    }

    fn element(domain: Domain) -> ElemType {
        match domain {
            Domain::F16 => ElemType::F16,
            Domain::Bf16 => ElemType::Bf16,
            Domain::F32 => ElemType::F32,
            _ => ElemType::F64,
        }
    }

    /// Rounded to nearest, of what is exact in double precision or nearly so.
    fn rounded(domain: Domain, x: f64) -> f64 {
        let ty = element(domain);
        ty.to_f64(ty.float_bits(x))
    }

    fn constant(domain: Domain, x: f64) -> Val {
        Val::Bits(element(domain).float_bits(x))
    }

    /// A sum of products in its format, rounded once.
    fn fused(domain: Domain, a: f64, b: f64, c: f64) -> f64 {
        match domain {
            Domain::F64 => a.mul_add(b, c),
            Domain::F32 => f64::from((a as f32).mul_add(b as f32, c as f32)),
            _ => rounded(domain, a.mul_add(b, c)),
        }
    }

    /// One more value, of some that there are.
    fn next(terms: &mut Terms, random: &mut Random, domain: Domain, all: &[Traced]) -> Traced {
        let mut any = || all[random.below(all.len())];
        let (a, b, c) = (any(), any(), any());
        let mode = Mode::new(domain, 0);
        let round = |x: f64| rounded(domain, x);
        let (term, computed, exact) = match random.below(11) {
            0 | 1 => (
                terms.fadd(mode, a.term, b.term),
                round(a.computed + b.computed),
                a.exact.plus(b.exact),
            ),
            2 => (
                terms.fmul(mode, a.term, b.term),
                round(a.computed * b.computed),
                a.exact.times(b.exact),
            ),
            3 | 4 => (
                terms.ffma(mode, a.term, b.term, c.term),
                fused(domain, a.computed, b.computed, c.computed),
                a.exact.times(b.exact).plus(c.exact),
            ),
            5 => (
                terms.fdiv(mode, a.term, b.term),
                round(a.computed / b.computed),
                a.exact.over(b.exact),
            ),
            6 => {
                let square = terms.fmul(mode, a.term, a.term);
                let computed = round(round(a.computed * a.computed).sqrt());
                let exact = a.exact.times(a.exact).root();
                (terms.unary(Kind::FSqrt, mode.0, square), computed, exact)
            }
            7 => {
                let (x, y) = (a.computed.max(b.computed), a.exact.is_less(b.exact));
                let larger = if y { b.exact } else { a.exact };
                (terms.extreme(true, mode, a.term, b.term), x, larger)
            }
            8 => {
                // What is compared is rounded: it may be the other one.
                let cmp = Cmp::new(domain, Order::Lt, false, false);
                let test = terms.compare(cmp, a.term, b.term);
                let term = terms.select(test, c.term, b.term);
                let computed = if a.computed < b.computed {
                    c.computed
                } else {
                    b.computed
                };
                let exact = if a.exact.is_less(b.exact) {
                    c.exact
                } else {
                    b.exact
                };
                (term, computed, exact)
            }
            9 => (terms.fneg(domain, a.term), -a.computed, a.exact.negative()),
            _ => {
                // To bfloat16 and back.
                let down = Mode::new(Domain::Bf16, 0);
                let narrow = Node::new(Kind::FCvt, down.0, terms.term(a.term), domain as u32, 0);
                let narrow = terms.intern(narrow);
                let back = Node::new(Kind::FCvt, mode.0, narrow, Domain::Bf16 as u32, 0);
                let computed = round(rounded(Domain::Bf16, a.computed));
                (Val::Term(terms.intern(back)), computed, a.exact)
            }
        };
        Traced {
            term,
            computed,
            exact,
        }
    }

    /// Inputs in ranges, and constants.
    fn leaves(
        terms: &mut Terms,
        random: &mut Random,
        domain: Domain,
    ) -> (Vec<Traced>, Vec<Option<Range>>) {
        let mut all = Vec::new();
        let mut ranges = Vec::new();
        for number in 0..3u32 {
            let low = (random.unit() - 0.5) * 8.0;
            let (low, high) = (
                rounded(domain, low),
                rounded(domain, low + 4.0 * random.unit()),
            );
            ranges.push(Some(Range { domain, low, high }));
            for index in 0..3 {
                let x = rounded(domain, low + random.unit() * (high - low)).clamp(low, high);
                all.push(Traced {
                    term: Val::Term(terms.input(number, index, domain.bits())),
                    computed: x,
                    exact: Wide(x, 0.0),
                });
            }
        }
        for (above, below) in [(1.0, 3.0), (-7.0, 10.0), (2.0, 1.0), (0.0, 1.0)] {
            let computed = rounded(domain, above / below);
            all.push(Traced {
                term: constant(domain, computed),
                computed,
                exact: Wide(above, 0.0).over(Wide(below, 0.0)),
            });
        }
        (all, ranges)
    }

    /// Whatever is computed of inputs in the ranges is within the bound, and the value over the reals between its ends.
    #[test]
    fn bounds_hold_for_random_terms_and_inputs() {
        let mut known = 0;
        for seed in 0..1600u64 {
            let domain = [Domain::F32, Domain::F64, Domain::F16, Domain::Bf16][seed as usize % 4];
            let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            let mut terms = Terms::default();
            let (mut all, ranges) = leaves(&mut terms, &mut random, domain);
            for _ in 0..30 {
                let next = next(&mut terms, &mut random, domain, &all);
                if next.computed.is_finite() && next.exact.0.is_finite() {
                    all.push(next);
                }
            }
            let places: Vec<Place> = all.iter().map(|x| (terms.term(x.term), domain)).collect();
            let mut bounds = Bounds::of(&terms, &ranges, &places);
            for (x, place) in all.iter().zip(&places) {
                let Ok(bound) = bounds.at(*place) else {
                    continue;
                };
                known += 1;
                let off = Wide(x.computed, 0.0).plus(x.exact.negative()).0.abs();
                // What is exact here is so to twice double precision.
                let slack = 1e-25 * bound.magnitude();
                let is_between = bound.low - slack <= x.exact.0 && x.exact.0 <= bound.high + slack;
                assert!(
                    off <= bound.error + slack && is_between && bound.floor <= x.computed,
                    "seed {seed}: {x:?} is {off:e} off: {bound:?}"
                );
            }
        }
        assert!(known > 30_000, "{known}");
    }

    /// Sums of single precision in an order that nobody states, and those of matrix instructions, whose summands lose what
    /// is below the last place of the largest.
    #[test]
    fn numbers_of_leaves_are_no_terms() {
        let mut terms = Terms::default();
        let number = 1 << 21;
        let one = constant(Domain::F32, 1.0);
        let input = Val::Term(terms.input(number, 0, 32));
        let sum = terms.fadd(Mode::new(Domain::F32, 0), input, one);
        let place = (terms.term(sum), Domain::F32);
        let mut bounds = Bounds::of(&terms, &[], &[place]);
        assert_eq!(bounds.at(place).unwrap_err(), Lack::Range(number));
    }

    #[test]
    fn bounds_of_sums_hold_in_every_order() {
        let domain = Domain::F32;
        for seed in 0..300u64 {
            let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            let mut terms = Terms::default();
            let (all, ranges) = leaves(&mut terms, &mut random, domain);
            let inputs: Vec<Traced> = all.into_iter().take(9).collect();
            let exact = |x: &[Traced]| x.iter().fold(Wide(0.0, 0.0), |sum, x| sum.plus(x.exact));
            let mode = Mode::new(domain, Mode::MATRIX);
            let zero = constant(domain, 0.0);
            let sum = inputs
                .iter()
                .fold(zero, |sum, x| terms.fadd(mode, sum, x.term));
            let mut order: Vec<f64> = inputs.iter().map(|x| x.computed).collect();
            let product = |terms: &mut Terms, first: Val| {
                let pairs = inputs.iter().enumerate();
                pairs.fold(first, |sum, (at, x)| {
                    let flags = if at == 0 {
                        Mode::MATRIX | Mode::FIRST
                    } else {
                        Mode::MATRIX
                    };
                    let one = constant(domain, 2.0);
                    terms.ffma(Mode::new(domain, flags), x.term, one, sum)
                })
            };
            let twice = product(&mut terms, zero);
            let places = [(terms.term(sum), domain), (terms.term(twice), domain)];
            let mut bounds = Bounds::of(&terms, &ranges, &places);
            let [one, both] = places.map(|place| bounds.at(place).unwrap());
            for _ in 0..20 {
                for at in 0..order.len() {
                    order.swap(at, random.below(at + 1));
                }
                let computed = order.iter().fold(0f32, |sum, x| sum + *x as f32);
                let off = Wide(f64::from(computed), 0.0)
                    .plus(exact(&inputs).negative())
                    .0;
                assert!(off.abs() <= one.error, "seed {seed}: {off:e}, {one:?}");
            }
            let largest = order.iter().fold(0f64, |most, x| most.max(2.0 * x.abs()));
            let place = 2f64.powf(largest.log2().floor() - 23.0);
            let cut = order.iter().map(|x| (2.0 * x / place).trunc() * place);
            let computed = cut.sum::<f64>();
            let off = exact(&inputs)
                .plus(exact(&inputs))
                .plus(Wide(-computed, 0.0))
                .0;
            assert!(off.abs() <= both.error, "seed {seed}: {off:e}, {both:?}");
        }
    }
}
