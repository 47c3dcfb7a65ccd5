//! Addresses that are a multiple of the thread's number in its block plus a constant, for blocks
//! whose shape is not known.
//!
//! An address is expanded into a polynomial over `%tid` and `%ntid`, and compared with
//! `factor · T + constant`, where T = %tid.x + %ntid.x · (%tid.y + %ntid.y · %tid.z) is the thread's
//! number, which is different for every thread of the block and below its number of threads.

use std::cell::Cell;
use std::collections::BTreeMap;

use crate::semantics::Coordinate;
use crate::term::{Head, Term, Terms, truncate};

/// factor · T + constant, modulo 2^bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Linear {
    factor: u64,
    constant: u64,
    bits: u32,
}

impl Linear {
    /// Its value for the thread of this number.
    pub(crate) fn at(self, thread: u64) -> u64 {
        truncate(
            self.constant.wrapping_add(self.factor.wrapping_mul(thread)),
            self.bits,
        )
    }
}

/// Coefficients of sorted products, modulo 2^bits of the term that it stands for.
type Polynomial = BTreeMap<Vec<Coordinate>, u64>;

/// Products of more factors, and longer sums, are given up.
const MAX_DEGREE: usize = 4;
const MAX_TERMS: usize = 32;

/// Terms looked at in one address.
pub(crate) const FUEL: u32 = 4096;

/// An address in this form, a private region taken to start at 0. No block has more threads than
/// `most`.
pub(crate) fn linear(terms: &Terms, address: Term, most: u32) -> Option<Linear> {
    let expansion = Expansion {
        terms,
        most: u64::from(most),
        fuel: Cell::new(FUEL),
    };
    let mut rest = expansion.expand(address)?;
    let constant = rest.remove(&Vec::new()).unwrap_or(0);
    let (thread, block) = (Coordinate::Thread, Coordinate::Block);
    let mut number = [
        vec![thread(0)],
        vec![thread(1), block(0)],
        vec![thread(2), block(0), block(1)],
    ];
    let factor = rest.get(&number[0]).copied().unwrap_or(0);
    for product in &mut number {
        product.sort_unstable();
        if rest.remove(product).unwrap_or(0) != factor {
            return None;
        }
    }
    let is_linear = rest.values().all(|&coefficient| coefficient == 0);
    is_linear.then_some(Linear {
        factor,
        constant,
        bits: width(terms, address),
    })
}

/// The width of an address expression.
fn width(terms: &Terms, term: Term) -> u32 {
    match terms.head(term) {
        Head::Add(bits) | Head::Mul(bits) => bits,
        Head::Extract { bits, .. } => bits,
        _ => 64,
    }
}

struct Expansion<'a> {
    terms: &'a Terms,
    most: u64,
    fuel: Cell<u32>,
}

impl Expansion<'_> {
    fn expand(&self, term: Term) -> Option<Polynomial> {
        self.fuel.set(self.fuel.get().checked_sub(1)?);
        let args = self.terms.args(term);
        let arg = |index: usize| self.expand(*args.get(index)?);
        match self.terms.head(term) {
            Head::Const(bits) => Some(BTreeMap::from([(Vec::new(), bits)])),
            Head::Symbol(_) if self.terms.is_private(term) => Some(Polynomial::new()),
            Head::Coordinate(coordinate) => Some(BTreeMap::from([(vec![coordinate], 1)])),
            Head::Add(bits) => sum(arg(0)?, arg(1)?, bits),
            Head::Mul(bits) => product(&arg(0)?, &arg(1)?, bits),
            Head::ZeroExtend(from, _) => self.below(arg(0)?, power(from)?),
            Head::SignExtend(from, _) => self.below(arg(0)?, power(from - 1)?),
            Head::Extract { lo: 0, bits, .. } => sum(arg(0)?, Polynomial::new(), bits),
            _ => None,
        }
    }

    /// The polynomial, if its value is below `limit` for every thread without any wrapping around.
    fn below(&self, polynomial: Polynomial, limit: u64) -> Option<Polynomial> {
        let mut bound = 0u64;
        for (product, coefficient) in &polynomial {
            // The dimensions of a block multiply to at most `most` threads, so a product in which
            // each occurs once at most is no larger.
            let dims = product.iter().map(|coordinate| match coordinate {
                Coordinate::Thread(dim) | Coordinate::Block(dim) => dim,
            });
            let mut seen: Vec<_> = dims.collect();
            seen.sort_unstable();
            if seen.windows(2).any(|pair| pair[0] == pair[1]) {
                return None;
            }
            let most = if product.is_empty() { 1 } else { self.most };
            bound = bound.checked_add(coefficient.checked_mul(most)?)?;
        }
        (bound < limit).then_some(polynomial)
    }
}

/// 2^bits, if it fits.
fn power(bits: u32) -> Option<u64> {
    1u64.checked_shl(bits)
}

fn sum(mut a: Polynomial, b: Polynomial, bits: u32) -> Option<Polynomial> {
    for (product, coefficient) in b {
        let slot = a.entry(product).or_insert(0);
        *slot = slot.wrapping_add(coefficient);
    }
    reduce(a, bits)
}

fn product(a: &Polynomial, b: &Polynomial, bits: u32) -> Option<Polynomial> {
    let mut result = Polynomial::new();
    for (left, x) in a {
        for (right, y) in b {
            let mut factors = [left.as_slice(), right.as_slice()].concat();
            factors.sort_unstable();
            if factors.len() > MAX_DEGREE {
                return None;
            }
            let slot = result.entry(factors).or_insert(0);
            *slot = slot.wrapping_add(x.wrapping_mul(*y));
        }
    }
    reduce(result, bits)
}

fn reduce(mut polynomial: Polynomial, bits: u32) -> Option<Polynomial> {
    for coefficient in polynomial.values_mut() {
        *coefficient = truncate(*coefficient, bits);
    }
    polynomial.retain(|_, coefficient| *coefficient != 0);
    (polynomial.len() <= MAX_TERMS).then_some(polynomial)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::semantics::Name;

    struct Build {
        terms: Terms,
    }

    impl Build {
        fn new() -> Build {
            let mut terms = Terms::default();
            terms.make_private(&Name::Module("area".to_owned()));
            Build { terms }
        }

        fn thread(&mut self, dim: u8) -> Term {
            self.terms.leaf(Head::Coordinate(Coordinate::Thread(dim)))
        }

        fn block(&mut self, dim: u8) -> Term {
            self.terms.leaf(Head::Coordinate(Coordinate::Block(dim)))
        }

        /// tid.x + ntid.x · (tid.y + ntid.y · tid.z)
        fn number(&mut self) -> Term {
            let [x, y, z] = [0, 1, 2].map(|dim| self.thread(dim));
            let [nx, ny] = [0, 1].map(|dim| self.block(dim));
            let plane = self.terms.mul(32, ny, z);
            let row = self.terms.add(32, plane, y);
            let rows = self.terms.mul(32, nx, row);
            self.terms.add(32, rows, x)
        }

        /// area + factor · index + constant
        fn address(&mut self, index: Term, factor: u64, constant: i64) -> Term {
            let factor = self.terms.constant(factor);
            let area = self.terms.unknown("area");
            let scaled = self.terms.mul(32, index, factor);
            let sum = self.terms.add(32, area, scaled);
            self.terms.add_const(32, sum, constant)
        }
    }

    #[test]
    fn the_thread_number_times_a_constant() {
        let mut build = Build::new();
        let number = build.number();
        let address = build.address(number, 12, 8);
        let form = linear(&build.terms, address, 1024).unwrap();
        assert_eq!(
            [0, 1, 1023].map(|thread| form.at(thread)),
            [8, 20, 8 + 12 * 1023]
        );
        let backwards = build.address(number, u64::from(4u32.wrapping_neg()), 4096);
        let form = linear(&build.terms, backwards, 1024).unwrap();
        assert_eq!(form.at(1), 4092);
    }

    #[test]
    fn one_dimension_is_not_enough() {
        let mut build = Build::new();
        let x = build.thread(0);
        let address = build.address(x, 4, 0);
        assert_eq!(linear(&build.terms, address, 1024), None);
    }

    #[test]
    fn widening_must_not_wrap() {
        let mut build = Build::new();
        let number = build.number();
        let four = build.terms.constant(4);
        let huge = build.terms.constant(1 << 30);
        let area = build.terms.unknown("area");
        let mut widened = |factor| {
            let scaled = build.terms.mul(32, number, factor);
            let wide = build.terms.zero_extend(32, 64, scaled);
            build.terms.add(64, area, wide)
        };
        let (fits, wraps) = (widened(four), widened(huge));
        assert!(linear(&build.terms, fits, 1024).is_some());
        assert_eq!(linear(&build.terms, wraps, 1024), None);
    }

    #[test]
    fn a_sum_that_doubles_each_time_runs_out_of_fuel() {
        let mut build = Build::new();
        let mut sum = build.thread(0);
        for _ in 0..200 {
            sum = build.terms.make(Head::Add(32), [sum, sum]);
        }
        assert_eq!(linear(&build.terms, sum, 1024), None);
    }
}
