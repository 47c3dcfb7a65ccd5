//! Integer values of a kernel as polynomials over places of threads, loop counters and sizes: what
//! the source compilers know of subscripts, bounds and guards.

mod guard;

use std::collections::BTreeMap;

pub use guard::{Relation, Test};

/// What an integer depends on. The order of the variants decides which term of a polynomial leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Symbol {
    /// An integer parameter of the kernel, by number.
    Size(usize),
    /// `blockDim`, along x, y or z (0, 1 or 2).
    BlockDim(u8),
    /// `gridDim`
    GridDim(u8),
    /// `blockIdx`
    BlockIdx(u8),
    /// `threadIdx`
    ThreadIdx(u8),
    /// `blockIdx * blockDim + threadIdx`: the thread's place in the grid.
    Global(u8),
    /// The counter of a sequential loop.
    Loop(usize),
    /// An unknown of its owner: a value that a loop carries, a place that a block's threads share.
    Unknown(usize),
}

impl Symbol {
    /// Does it tell points apart: a place in the grid, or the counter of a loop?
    pub fn is_point(self) -> bool {
        matches!(
            self,
            Symbol::Global(_) | Symbol::BlockIdx(_) | Symbol::Loop(_)
        )
    }

    /// Is it a place of a thread in its block, or a size of the launch?
    fn is_raw(self) -> bool {
        matches!(
            self,
            Symbol::BlockDim(_) | Symbol::GridDim(_) | Symbol::ThreadIdx(_) | Symbol::Unknown(_)
        )
    }
}

/// A product of symbols, sorted.
type Monomial = Vec<Symbol>;

/// A sum of products; no coefficient is zero.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Poly(BTreeMap<Monomial, i64>);

/// Most terms, and most factors of a term: more is no address.
const LARGEST: usize = 64;

impl Poly {
    /// A number.
    pub fn constant(value: i64) -> Self {
        let mut poly = Poly::default();
        poly.insert(Vec::new(), value);
        poly
    }

    /// A symbol alone.
    pub fn symbol(symbol: Symbol) -> Self {
        Poly(BTreeMap::from([(vec![symbol], 1)]))
    }

    /// Is it always zero?
    pub fn is_zero(&self) -> bool {
        self.0.is_empty()
    }

    /// Its value, if it depends on nothing.
    pub fn as_constant(&self) -> Option<i64> {
        match self.0.first_key_value() {
            None => Some(0),
            Some((m, value)) if m.is_empty() && self.0.len() == 1 => Some(*value),
            _ => None,
        }
    }

    /// The term without symbols.
    pub fn constant_term(&self) -> i64 {
        self.0.get(&Vec::new()).copied().unwrap_or(0)
    }

    fn insert(&mut self, monomial: Monomial, value: i64) {
        if value == 0 {
            self.0.remove(&monomial);
        } else {
            self.0.insert(monomial, value);
        }
    }

    /// The sum with a multiple of another one; none if a number grows too large.
    pub fn plus(&self, other: &Poly, times: i64) -> Option<Poly> {
        let mut sum = self.clone();
        for (monomial, value) in &other.0 {
            let old = sum.0.get(monomial).copied().unwrap_or(0);
            let new = old.checked_add(value.checked_mul(times)?)?;
            sum.insert(monomial.clone(), new);
        }
        (sum.0.len() <= LARGEST).then_some(sum)
    }

    /// The product; none if it grows too large.
    pub fn times(&self, other: &Poly) -> Option<Poly> {
        let mut product = Poly::default();
        for (a, x) in &self.0 {
            for (b, y) in &other.0 {
                let mut monomial = a.clone();
                monomial.extend(b);
                monomial.sort_unstable();
                let old = product.0.get(&monomial).copied().unwrap_or(0);
                let new = old.checked_add(x.checked_mul(*y)?)?;
                product.insert(monomial, new);
            }
        }
        let small = product.0.keys().all(|m| m.len() <= 8) && product.0.len() <= LARGEST;
        small.then_some(product)
    }

    /// Its terms: the symbols of each and what they are multiplied by.
    pub fn terms(&self) -> impl Iterator<Item = (&[Symbol], i64)> {
        self.0
            .iter()
            .map(|(monomial, value)| (monomial.as_slice(), *value))
    }

    /// It as C, the longest products first; `name` gives what a symbol is called, in parentheses if it is a sum.
    pub fn text(&self, name: impl Fn(Symbol) -> String) -> String {
        let mut terms: Vec<(&Monomial, i64)> = self.0.iter().map(|(m, v)| (m, *v)).collect();
        // A sum begins with something that is added.
        terms.sort_by_key(|(m, value)| (*value < 0, std::cmp::Reverse(m.len()), *m));
        let mut out = String::new();
        for (monomial, value) in terms {
            let sign = match (out.is_empty(), value < 0) {
                (true, true) => "-",
                (true, false) => "",
                (false, true) => " - ",
                (false, false) => " + ",
            };
            out.push_str(sign);
            let mut factors: Vec<String> = monomial.iter().map(|s| name(*s)).collect();
            if value.unsigned_abs() != 1 || factors.is_empty() {
                factors.insert(0, value.unsigned_abs().to_string());
            }
            out.push_str(&factors.join(" * "));
        }
        if out.is_empty() { "0".to_owned() } else { out }
    }

    /// All symbols, in order.
    pub fn symbols(&self) -> Vec<Symbol> {
        let mut all: Vec<Symbol> = self.0.keys().flatten().copied().collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// The same with a symbol replaced by a value; none if it grows too large.
    pub fn substituted(&self, symbol: Symbol, by: &Poly) -> Option<Poly> {
        let mut out = Poly::default();
        for (monomial, value) in &self.0 {
            let rest = monomial.iter().copied().filter(|s| *s != symbol);
            let mut term = Poly(BTreeMap::from([(rest.collect(), *value)]));
            for _ in monomial.iter().filter(|s| **s == symbol) {
                term = term.times(by)?;
            }
            out = out.plus(&term, 1)?;
        }
        Some(out)
    }

    /// Its value where the symbols have values; none if one has not, or if a number grows too large.
    pub fn evaluate(&self, value_of: impl Fn(Symbol) -> Option<i64>) -> Option<i64> {
        let mut sum = 0i64;
        for (monomial, value) in &self.0 {
            let mut term = *value;
            for symbol in monomial {
                term = term.checked_mul(value_of(*symbol)?)?;
            }
            sum = sum.checked_add(term)?;
        }
        Some(sum)
    }

    /// The symbols that tell points apart, in order.
    pub fn points(&self) -> Vec<Symbol> {
        let mut all = self.symbols();
        all.retain(|s| s.is_point());
        all
    }

    /// Does it depend on the place of a thread in its block, or so?
    pub fn is_raw(&self) -> bool {
        self.0.keys().flatten().any(|s| s.is_raw())
    }

    /// What a symbol is multiplied by, if it occurs to the first power only.
    pub fn coefficient(&self, symbol: Symbol) -> Option<Poly> {
        let mut out = Poly::default();
        for (monomial, value) in &self.0 {
            match monomial.iter().filter(|s| **s == symbol).count() {
                0 => {}
                1 => {
                    let rest = monomial.iter().copied().filter(|s| *s != symbol);
                    out.insert(rest.collect(), *value);
                }
                _ => return None,
            }
        }
        Some(out)
    }

    /// Is it at least zero wherever the kernel runs? Places, and numbers alone.
    pub fn never_negative(&self) -> bool {
        self.0.iter().all(|(monomial, value)| {
            let counts = monomial
                .iter()
                .all(|s| !matches!(s, Symbol::Size(_) | Symbol::Loop(_) | Symbol::Unknown(_)));
            *value >= 0 && counts
        })
    }

    /// The largest number of factors of a term.
    pub fn degree(&self) -> usize {
        self.0.keys().map(Vec::len).max().unwrap_or(0)
    }

    /// The term with the most factors, the last one of several.
    fn leading(&self) -> Option<(&Monomial, i64)> {
        let leading = self.0.iter().max_by_key(|(m, _)| (m.len(), *m))?;
        Some((leading.0, *leading.1))
    }

    /// The quotient, if the division leaves nothing.
    pub fn divided_by(&self, divisor: &Poly) -> Option<Poly> {
        let (mut rest, mut quotient) = (self.clone(), Poly::default());
        let (lead, by) = divisor.leading()?;
        for _ in 0..LARGEST {
            let Some((monomial, value)) = rest.leading() else {
                return Some(quotient);
            };
            let mut left = monomial.clone();
            for symbol in lead {
                let at = left.iter().position(|s| s == symbol)?;
                left.remove(at);
            }
            if value % by != 0 {
                return None;
            }
            let term = Poly(BTreeMap::from([(left, value / by)]));
            rest = rest.plus(&term.times(divisor)?, -1)?;
            quotient = quotient.plus(&term, 1)?;
        }
        None
    }

    /// How often a stride is in it, rounded to the nearest: a number, and what remains.
    pub fn split(&self, stride: &Poly) -> Option<(i64, Poly)> {
        let (lead, by) = stride.leading()?;
        let value = self.0.get(lead).copied().unwrap_or(0);
        let times = if lead.is_empty() {
            // -1 in rows of 512 is one cell to the left, not 511 to the right of the row before.
            (value.checked_mul(2)?.checked_add(by)?).div_euclid(by.checked_mul(2)?)
        } else if value % by == 0 {
            value / by
        } else {
            return None;
        };
        Some((times, self.plus(stride, -times)?))
    }

    /// A size plus a number, or a number alone.
    pub fn as_extent(&self) -> Option<(Option<usize>, i64)> {
        let mut size = None;
        for (monomial, value) in &self.0 {
            match (monomial.as_slice(), value) {
                ([], _) => {}
                ([Symbol::Size(n)], 1) if size.is_none() => size = Some(*n),
                _ => return None,
            }
        }
        Some((size, self.constant_term()))
    }

    /// A point symbol plus a number, or a number alone.
    pub fn as_subscript(&self) -> Option<(Option<Symbol>, i64)> {
        let mut point = None;
        for (monomial, value) in &self.0 {
            match (monomial.as_slice(), value) {
                ([], _) => {}
                ([s], 1) if s.is_point() && point.is_none() => point = Some(*s),
                _ => return None,
            }
        }
        Some((point, self.constant_term()))
    }
}

/// How many threads a block has along each axis, as far as the text presumes it.
///
/// `blockIdx * blockDim + threadIdx` is the thread's place in the grid, also where the size of the
/// block is a number. The number is then the one that the kernel is launched with: with another one,
/// threads would collide or leave gaps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Places {
    /// The numbers.
    pub block: [Option<i64>; 3],
    /// An axis for which the text presumes two of them.
    pub conflict: Option<u8>,
}

impl Places {
    /// Writes places in the grid as [`Symbol::Global`].
    pub fn merged(&mut self, mut poly: Poly) -> Poly {
        for axis in 0..3 {
            let threads: Vec<Monomial> = poly
                .0
                .keys()
                .filter(|m| m.iter().filter(|s| **s == Symbol::ThreadIdx(axis)).count() == 1)
                .cloned()
                .collect();
            for thread in threads {
                self.place(&mut poly, axis, &thread);
            }
        }
        poly
    }

    fn place(&mut self, poly: &mut Poly, axis: u8, thread: &Monomial) {
        let rest: Monomial = thread
            .iter()
            .copied()
            .filter(|s| *s != Symbol::ThreadIdx(axis))
            .collect();
        let with = |more: &[Symbol]| {
            let mut monomial = rest.clone();
            monomial.extend(more);
            monomial.sort_unstable();
            monomial
        };
        let Some(&times) = poly.0.get(thread) else {
            return;
        };
        let by_size = with(&[Symbol::BlockIdx(axis), Symbol::BlockDim(axis)]);
        let by_number = with(&[Symbol::BlockIdx(axis)]);
        let number = poly.0.get(&by_number).copied().unwrap_or(0);
        let partner = if poly.0.get(&by_size) == Some(&times) {
            by_size
        } else if number != 0 && number % times == 0 && number / times > 0 {
            self.presume(axis, number / times);
            by_number
        } else {
            return;
        };
        poly.0.remove(&partner);
        poly.0.remove(thread);
        let global = with(&[Symbol::Global(axis)]);
        let sum = poly.0.get(&global).copied().unwrap_or(0).checked_add(times);
        if let Some(sum) = sum {
            poly.insert(global, sum);
        }
    }

    fn presume(&mut self, axis: u8, threads: i64) {
        let known = &mut self.block[usize::from(axis)];
        if known.is_some_and(|known| known != threads) {
            self.conflict = Some(axis);
        }
        *known = Some(threads);
    }

    /// The opposite of [`Places::merged`]: blocks and threads alone.
    pub fn split(&self, poly: &Poly) -> Option<Poly> {
        let mut out = poly.clone();
        for axis in 0..3 {
            let size = match self.block[usize::from(axis)] {
                Some(threads) => Poly::constant(threads),
                None => Poly::symbol(Symbol::BlockDim(axis)),
            };
            let place = Poly::symbol(Symbol::BlockIdx(axis)).times(&size)?;
            let place = place.plus(&Poly::symbol(Symbol::ThreadIdx(axis)), 1)?;
            out = out.substituted(Symbol::Global(axis), &place)?;
            out = out.substituted(Symbol::BlockDim(axis), &size)?;
        }
        Some(out)
    }
}

#[cfg(test)]
mod tests;
