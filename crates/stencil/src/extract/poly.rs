//! Integer values of a kernel as polynomials: places of threads, loop counters, sizes.

use std::collections::BTreeMap;

/// What an integer depends on. The order of the variants decides which term of a polynomial leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Symbol {
    /// An integer parameter of the kernel, by number.
    Size(usize),
    /// `blockDim`, along x, y or z.
    BlockDim(u8),
    /// `blockIdx`
    BlockIdx(u8),
    /// `threadIdx`
    ThreadIdx(u8),
    /// `blockIdx * blockDim + threadIdx`: the thread's place in the grid.
    Global(u8),
    /// The counter of a sequential loop.
    Loop(usize),
}

impl Symbol {
    /// Does it tell points apart?
    pub(super) fn is_point(self) -> bool {
        matches!(self, Symbol::Global(_) | Symbol::Loop(_))
    }

    fn is_raw(self) -> bool {
        matches!(
            self,
            Symbol::BlockDim(_) | Symbol::BlockIdx(_) | Symbol::ThreadIdx(_)
        )
    }
}

/// A product of symbols, sorted.
type Monomial = Vec<Symbol>;

/// A sum of products; no coefficient is zero.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Poly(BTreeMap<Monomial, i64>);

/// Most terms, and most factors of a term: more is no address.
const LARGEST: usize = 64;

impl Poly {
    pub(super) fn constant(value: i64) -> Self {
        let mut poly = Poly::default();
        poly.insert(Vec::new(), value);
        poly
    }

    pub(super) fn symbol(symbol: Symbol) -> Self {
        Poly(BTreeMap::from([(vec![symbol], 1)]))
    }

    pub(super) fn is_zero(&self) -> bool {
        self.0.is_empty()
    }

    /// Its value, if it depends on nothing.
    pub(super) fn as_constant(&self) -> Option<i64> {
        match self.0.first_key_value() {
            None => Some(0),
            Some((m, value)) if m.is_empty() && self.0.len() == 1 => Some(*value),
            _ => None,
        }
    }

    /// The term without symbols.
    pub(super) fn constant_term(&self) -> i64 {
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
    pub(super) fn plus(&self, other: &Poly, times: i64) -> Option<Poly> {
        let mut sum = self.clone();
        for (monomial, value) in &other.0 {
            let old = sum.0.get(monomial).copied().unwrap_or(0);
            let new = old.checked_add(value.checked_mul(times)?)?;
            sum.insert(monomial.clone(), new);
        }
        (sum.0.len() <= LARGEST).then_some(sum)
    }

    /// The product; none if it grows too large.
    pub(super) fn times(&self, other: &Poly) -> Option<Poly> {
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

    /// Writes `blockIdx * blockDim + threadIdx` as the thread's place in the grid, also where the
    /// size of the block is a number. The number is then the one that the kernel is launched with:
    /// with another one, threads would collide or leave gaps.
    pub(super) fn with_places(mut self) -> Poly {
        for axis in 0..3 {
            let threads: Vec<Monomial> = self
                .0
                .keys()
                .filter(|m| m.iter().filter(|s| **s == Symbol::ThreadIdx(axis)).count() == 1)
                .cloned()
                .collect();
            for thread in threads {
                self.place(axis, &thread);
            }
        }
        self
    }

    fn place(&mut self, axis: u8, thread: &Monomial) {
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
        let Some(&times) = self.0.get(thread) else {
            return;
        };
        let by_size = with(&[Symbol::BlockIdx(axis), Symbol::BlockDim(axis)]);
        let by_number = with(&[Symbol::BlockIdx(axis)]);
        let number = self.0.get(&by_number).copied().unwrap_or(0);
        let partner = if self.0.get(&by_size) == Some(&times) {
            by_size
        } else if number != 0 && number % times == 0 && number / times > 0 {
            by_number
        } else {
            return;
        };
        self.0.remove(&partner);
        self.0.remove(thread);
        self.insert(with(&[Symbol::Global(axis)]), times);
    }

    /// The symbols that tell points apart, in order.
    pub(super) fn points(&self) -> Vec<Symbol> {
        let mut all: Vec<Symbol> = self.0.keys().flatten().copied().collect();
        all.retain(|s| s.is_point());
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Does it depend on the place of a thread in its block, or so?
    pub(super) fn is_raw(&self) -> bool {
        self.0.keys().flatten().any(|s| s.is_raw())
    }

    /// What a symbol is multiplied by, if it occurs to the first power only.
    pub(super) fn coefficient(&self, symbol: Symbol) -> Option<Poly> {
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
    pub(super) fn never_negative(&self) -> bool {
        self.0.iter().all(|(monomial, value)| {
            let counts = monomial
                .iter()
                .all(|s| !matches!(s, Symbol::Size(_) | Symbol::Loop(_)));
            *value >= 0 && counts
        })
    }

    /// The largest number of factors of a term.
    pub(super) fn degree(&self) -> usize {
        self.0.keys().map(Vec::len).max().unwrap_or(0)
    }

    /// The term with the most factors, the last one of several.
    fn leading(&self) -> Option<(&Monomial, i64)> {
        let leading = self.0.iter().max_by_key(|(m, _)| (m.len(), *m))?;
        Some((leading.0, *leading.1))
    }

    /// The quotient, if the division leaves nothing.
    pub(super) fn divided_by(&self, divisor: &Poly) -> Option<Poly> {
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
    pub(super) fn split(&self, stride: &Poly) -> Option<(i64, Poly)> {
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
    pub(super) fn as_extent(&self) -> Option<(Option<usize>, i64)> {
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
    pub(super) fn as_subscript(&self) -> Option<(Option<Symbol>, i64)> {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn s(symbol: Symbol) -> Poly {
        Poly::symbol(symbol)
    }

    #[test]
    fn places_of_threads_are_found_inside_products() {
        let place = s(Symbol::BlockIdx(0))
            .times(&s(Symbol::BlockDim(0)))
            .unwrap()
            .plus(&s(Symbol::ThreadIdx(0)), 1)
            .unwrap();
        let row = place.times(&s(Symbol::Size(0))).unwrap();
        let expected = s(Symbol::Global(0)).times(&s(Symbol::Size(0))).unwrap();
        assert_eq!(row.with_places(), expected);
        // A block of 32 threads.
        let place = s(Symbol::ThreadIdx(1))
            .plus(&s(Symbol::BlockIdx(1)), 32)
            .unwrap();
        assert_eq!(place.with_places(), s(Symbol::Global(1)));
        assert!(s(Symbol::ThreadIdx(0)).with_places().is_raw());
    }

    #[test]
    fn strides_divide() {
        let (n, m) = (s(Symbol::Size(0)), s(Symbol::Size(1)));
        let pitch = n.plus(&Poly::constant(2), 1).unwrap();
        let plane = pitch.times(&m).unwrap();
        assert_eq!(plane.divided_by(&pitch), Some(m.clone()));
        assert_eq!(plane.divided_by(&n), None);
        let (times, rest) = plane.plus(&pitch, -3).unwrap().split(&plane).unwrap();
        assert_eq!((times, rest.split(&pitch).unwrap().0), (1, -3));
        let rows = Poly::constant(512);
        let split = |v: i64| Poly::constant(v).split(&rows).unwrap();
        assert_eq!(split(-1), (0, Poly::constant(-1)));
        assert_eq!(split(1023), (2, Poly::constant(-1)));
    }
}
