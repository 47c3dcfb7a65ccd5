//! Goal: one place of the launch that the text takes apart by `/` and `%` (`c = i % C; t = i / C % T; …`) becomes as many
//! dimensions, so that subscripts are polynomials again.
//!
//! The places are digits of a number in mixed radix: `i = d0 + r0 * (d1 + r1 * (d2 + …))`, with `0 <= d < r` for each
//! but the last. A division of `Q * D + R` by `D` leaves `R` where `R` is a sum of digits that cannot reach `D` and
//! nothing is negative. Where a division asks for a radix that is not there yet, the kernel is executed once more with
//! it; digits that only ever occur as one number become one again.
//!
//! Requires: radices are above zero, and the launch covers whole rows of them. The host checks both before it launches.

use std::collections::BTreeMap;

use warpwright_cudac::affine::{Poly, Relation, Symbol};

use super::Machine;
use crate::ir::{Flat, Kernel, Value};

/// Most digits.
pub(super) const MOST: usize = 5;
/// Numbers of the digits' symbols; the launch has places 0 to 2.
const FIRST: u8 = 16;
/// Rows of so few points, and their number known, are not worth a dimension.
const LEAST: i64 = 32;

/// The radices of all digits but the last.
#[derive(Clone, Debug, Default)]
pub(super) struct Digits {
    radices: Vec<Poly>,
}

/// A digit that a division asks to be divided, and by what.
#[derive(Clone, Debug)]
pub(super) struct Wish {
    digit: usize,
    by: Poly,
}

impl Digits {
    pub(super) fn count(&self) -> usize {
        self.radices.len() + 1
    }

    pub(super) fn are_split(&self) -> bool {
        !self.radices.is_empty()
    }

    /// The symbol of a digit; of a place that is not divided, its own.
    pub(super) fn symbol(&self, digit: usize) -> Symbol {
        match self.are_split() {
            true => symbol(digit),
            false => Symbol::Global(0),
        }
    }

    /// With one more digit.
    pub(super) fn split(&mut self, wish: &Wish) -> bool {
        match self.radices.get(wish.digit) {
            Some(radix) => {
                let Some(left) = radix.divided_by(&wish.by) else {
                    return false;
                };
                self.radices[wish.digit] = wish.by.clone();
                self.radices.insert(wish.digit + 1, left);
            }
            None => self.radices.push(wish.by.clone()),
        }
        true
    }

    /// The number that the digits from one on are.
    pub(super) fn place(&self, from: usize) -> Option<Poly> {
        let mut sum = Poly::default();
        let mut span = Poly::constant(1);
        for digit in from..self.count() {
            let term = span.times(&Poly::symbol(self.symbol(digit)))?;
            sum = sum.plus(&term, 1)?;
            if let Some(radix) = self.radices.get(digit) {
                span = span.times(radix)?;
            }
        }
        Some(sum)
    }

    /// How many places the digits from one on have, but the last.
    fn span(&self, from: usize) -> Option<Poly> {
        let mut own = self.radices.iter().skip(from);
        own.try_fold(Poly::constant(1), |a, b| a.times(b))
    }

    /// Is it never negative where no size, place or radix is?
    fn is_natural(&self, poly: &Poly) -> bool {
        let is_positive = |poly: &Poly| {
            poly.terms().all(|(symbols, times)| {
                let known = |s: &Symbol| matches!(s, Symbol::Size(_) | Symbol::Global(_));
                times > 0 && symbols.iter().all(known)
            })
        };
        let of_sizes = |mut poly: Poly| {
            for radix in &self.radices {
                // Radices that are sums of both signs, such as `n - f + 1`.
                if !is_positive(radix) {
                    while let Some(left) = poly.divided_by(radix).filter(|p| !p.is_zero()) {
                        poly = left;
                    }
                }
            }
            is_positive(&poly)
        };
        let mut rest = poly.clone();
        for digit in 0..self.count() {
            let symbol = self.symbol(digit);
            let Some(times) = poly.coefficient(symbol) else {
                return false;
            };
            let Some(left) = times
                .times(&Poly::symbol(symbol))
                .and_then(|own| rest.plus(&own, -1))
            else {
                return false;
            };
            rest = left;
            if !of_sizes(times) {
                return false;
            }
        }
        of_sizes(rest)
    }
}

fn symbol(digit: usize) -> Symbol {
    Symbol::Global(FIRST + u8::try_from(digit).unwrap_or(u8::MAX - FIRST))
}

fn is_of_sizes(poly: &Poly) -> bool {
    let symbols = poly.symbols();
    symbols.iter().all(|s| matches!(s, Symbol::Size(_)))
}

impl Machine<'_> {
    /// Makes the digits the dimensions of the kernel.
    pub(super) fn begin_flat(&mut self) {
        if !self.digits.are_split() {
            return;
        }
        for digit in 0..self.digits.count() {
            let radix = self.digits.radices.get(digit).cloned();
            self.dim(symbol(digit)).high.extend(radix);
        }
        self.kernel.flat = Some(Flat {
            radices: self.digits.radices.clone(),
            high: Vec::new(),
        });
    }

    /// Quotient and remainder where both are polynomials.
    pub(super) fn divided(&mut self, poly: &Poly, by: &Poly) -> Option<(Poly, Poly)> {
        if !is_of_sizes(by) || by.as_constant().is_some_and(|by| by <= 0) {
            return None;
        }
        let (mut quotient, mut rest) = (Poly::default(), poly.clone());
        let mut left: Vec<(usize, Poly)> = Vec::new();
        let mut remainder = Poly::default();
        for digit in 0..self.digits.count() {
            let place = Poly::symbol(self.digits.symbol(digit));
            let times = poly.coefficient(self.digits.symbol(digit))?;
            if !is_of_sizes(&times) {
                return None;
            }
            let own = times.times(&place)?;
            rest = rest.plus(&own, -1)?;
            match times.divided_by(by) {
                Some(times) => quotient = quotient.plus(&times.times(&place)?, 1)?,
                None => {
                    remainder = remainder.plus(&own, 1)?;
                    left.push((digit, times));
                }
            }
        }
        if !is_of_sizes(&rest) {
            return None;
        }
        quotient = quotient.plus(&rest.divided_by(by)?, 1)?;
        // A quotient without a remainder is one for every sign.
        if left.is_empty() {
            return Some((quotient, remainder));
        }
        let mut reached = Poly::constant(1);
        for (digit, times) in left {
            let wanted = by.divided_by(&reached)?;
            if times != reached {
                return None;
            }
            let radix = match self.digits.radices.get(digit) {
                Some(radix) => Some(radix.clone()),
                // The last digit ends where a guard says so.
                None => {
                    let last = self.digits.symbol(digit);
                    let dim = self.kernel.dims.iter().find(|d| d.symbol == last);
                    let mut ends = dim.into_iter().flat_map(|d| &d.high);
                    let end = ends.find(|end| wanted.divided_by(end).is_some());
                    end.cloned()
                }
            };
            let fits = radix.clone().filter(|r| wanted.divided_by(r).is_some());
            let Some(fits) = fits else {
                let can = radix.is_none_or(|r| r.divided_by(&wanted).is_some());
                let is_few = wanted.as_constant().is_some_and(|n| n < LEAST);
                if can && !is_few && self.wish.is_none() {
                    self.wish = Some(Wish { digit, by: wanted });
                }
                return None;
            };
            reached = reached.times(&fits)?;
        }
        self.digits
            .is_natural(&quotient)
            .then_some((quotient, remainder))
    }

    /// Takes a comparison as an end of the places of the launch, if it is one: of all digits, or of all from one on.
    pub(super) fn ends_flat(&self, relation: Relation, poly: &Poly) -> Option<(bool, Poly)> {
        if relation != Relation::NotNegative || !self.digits.are_split() {
            return None;
        }
        for from in 0..self.digits.count() - 1 {
            // `end - place - 1 >= 0`
            let end = poly.plus(&self.digits.place(from)?, 1)?;
            let end = end.plus(&Poly::constant(1), 1)?;
            if !is_of_sizes(&end) {
                continue;
            }
            let rows = self.digits.span(from)?;
            return match end.divided_by(&rows) {
                Some(rows) => Some((true, rows)),
                None => (from == 0).then_some((false, end)),
            };
        }
        None
    }

    /// Are these all the places of the launch, and guards of nothing else there? (What a loop over the grid may stand in.)
    pub(super) fn is_unbounded(&self) -> bool {
        let own = |digit: usize| {
            let symbol = self.digits.symbol(digit);
            let dim = self.kernel.dims.iter().find(|d| d.symbol == symbol);
            let radices = usize::from(digit < self.digits.radices.len());
            dim.is_none_or(|d| d.low.is_empty() && d.high.len() == radices)
        };
        let ends = self.kernel.flat.as_ref().is_none_or(|f| f.high.is_empty());
        ends && (0..self.digits.count()).all(own)
    }

    /// Joins digits that only occur as one number, and gives the others the places of the kernel's dimensions. False
    /// where more are left than a kernel may have.
    pub(super) fn finish_flat(&mut self) -> bool {
        if self.kernel.flat.is_none() {
            return true;
        }
        let mut own: Vec<Symbol> = (0..self.digits.count()).map(symbol).collect();
        let mut at = 0;
        while at + 1 < own.len() {
            match joined(&self.kernel, &own, at) {
                Some(kernel) => {
                    self.kernel = kernel;
                    self.names.remove(&own[at]);
                    self.names.remove(&own[at + 1]);
                    own.remove(at + 1);
                    at = at.saturating_sub(1);
                }
                None => at += 1,
            }
        }
        let renamed = (0u8..).map(Symbol::Global);
        let renamed: BTreeMap<Symbol, Symbol> = own.iter().copied().zip(renamed).collect();
        let rename = |poly: &mut Poly| {
            for (from, to) in &renamed {
                if let Some(new) = poly.substituted(*from, &Poly::symbol(*to)) {
                    *poly = new;
                }
            }
        };
        self.kernel.map_polys(&rename);
        self.kernel.ranges.iter_mut().for_each(|(p, _)| rename(p));
        for dim in &mut self.kernel.dims {
            dim.symbol = renamed.get(&dim.symbol).copied().unwrap_or(dim.symbol);
        }
        let names = std::mem::take(&mut self.names);
        let names = names.into_iter();
        self.names = names
            .map(|(s, name)| (renamed.get(&s).copied().unwrap_or(s), name))
            .collect();
        if own.len() == 1
            && let Some(flat) = self.kernel.flat.take()
            && let Some(dim) = self.kernel.dims.first_mut()
        {
            dim.high.extend(flat.high);
        }
        own.len() <= 4
    }
}

/// The kernel with two digits as one, if it uses them as one.
fn joined(kernel: &Kernel, own: &[Symbol], at: usize) -> Option<Kernel> {
    let (low, high) = (own[at], own[at + 1]);
    let flat = kernel.flat.as_ref()?;
    let radix = flat.radices.get(at)?.clone();
    let dims = |s: Symbol| kernel.dims.iter().position(|d| d.symbol == s);
    let (first, second) = (dims(low)?, dims(high)?);
    let is_bounded = |at: usize, radices: usize| {
        !kernel.dims[at].low.is_empty() || kernel.dims[at].high.len() > radices
    };
    let is_last = at + 2 == own.len();
    if is_bounded(first, 1) || !kernel.dims[second].low.is_empty() {
        return None;
    }
    // low = both - radix * high
    let both = Poly::symbol(low);
    let by = both.plus(&radix.times(&Poly::symbol(high))?, -1)?;
    let as_one = |poly: &Poly| {
        let poly = poly.substituted(low, &by)?;
        (!poly.symbols().contains(&high)).then_some(poly)
    };
    let mut fits = true;
    let mut see = |poly: &Poly| fits &= as_one(poly).is_some();
    for access in &kernel.accesses {
        access.affine().into_iter().for_each(&mut see);
    }
    for of in &kernel.loops {
        see(&of.low);
        see(&of.high);
    }
    kernel.values(&mut |value, _| {
        if let Value::Int(poly, _) = value {
            see(poly);
        }
    });
    if !fits {
        return None;
    }
    let mut new = kernel.clone();
    new.map_polys(&|poly| *poly = as_one(poly).unwrap_or_default());
    for (poly, _) in &mut new.ranges {
        *poly = as_one(poly).or_else(|| at_most(poly, (low, high), &radix))?;
    }
    let mut ends = Vec::new();
    for end in &kernel.dims[second].high {
        ends.push(end.times(&radix)?);
    }
    new.dims[first].high = ends;
    new.dims[first].whole = kernel.dims[second].whole;
    new.dims.remove(second);
    let flat = new.flat.as_mut()?;
    let radix = flat.radices.remove(at);
    if !is_last {
        let next = flat.radices.get_mut(at)?;
        *next = next.times(&radix)?;
    }
    Some(new)
}

/// A polynomial in both digits as one: nowhere smaller, and nowhere negative like the first.
fn at_most(poly: &Poly, (low, high): (Symbol, Symbol), radix: &Poly) -> Option<Poly> {
    if poly.terms().any(|(_, times)| times < 0) {
        return None;
    }
    let times = poly.coefficient(high)?;
    let rest = poly.plus(&times.times(&Poly::symbol(high))?, -1)?;
    // The second digit is at most the number, and at most the number by the radix.
    let times = times.divided_by(radix).unwrap_or(times);
    rest.plus(&times.times(&Poly::symbol(low))?, 1)
}
