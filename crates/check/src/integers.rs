//! Whether facts about sums, parts and orders of integers leave a number that they all hold for.
//!
//! Each number of so many bits is a whole number between bounds. A sum that may wrap around is one that so many times
//! 2^bits were taken from, a signed number one without its sign's weight, a part of a number what a quotient by a power of
//! two leaves: each such multiple is an unknown of its own. What is left are linear inequalities over integers. That no
//! integers meet them all is found by eliminating one unknown after the other (Fourier and Motzkin), each inequality
//! divided by what its factors have in common and its constant rounded (Pugh's Omega test, CACM 35(8), 1992, without its
//! splinters). How often something wrapped around is tried one by one before. So 'no' is certain, and 'perhaps' means
//! nothing.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use crate::facts::{DEPTH, Facts};
use crate::term::{Args, Head, Parts, Term, Terms, sign_extended, truncate};

/// Unknowns, and inequalities at one time, beyond which nothing is found.
const MOST_UNKNOWNS: usize = 48;
const MOST_ROWS: usize = 240;

/// Facts beyond which nothing is looked for: a walk has gone astray.
const MOST_FACTS: usize = 28;

/// Ways to wrap around that are tried.
const MOST_TRIED: u32 = 32;

/// Rounds in which bounds narrow each other.
const ROUNDS: u32 = 12;

/// A sum of unknowns with factors, and a constant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Sum {
    parts: BTreeMap<usize, i128>,
    constant: i128,
}

/// Numbers became too large, or there are too many unknowns.
struct GivenUp;

type Made<T> = Result<T, GivenUp>;

fn times(a: i128, b: i128) -> Made<i128> {
    a.checked_mul(b).ok_or(GivenUp)
}

fn plus(a: i128, b: i128) -> Made<i128> {
    a.checked_add(b).ok_or(GivenUp)
}

impl Sum {
    fn constant(constant: i128) -> Sum {
        Sum {
            parts: BTreeMap::new(),
            constant,
        }
    }

    /// The same with another sum, so many times, added.
    fn and(mut self, other: &Sum, factor: i128) -> Made<Sum> {
        for (&unknown, &own) in &other.parts {
            let sum = self.parts.entry(unknown).or_insert(0);
            *sum = plus(*sum, times(own, factor)?)?;
        }
        self.parts.retain(|_, factor| *factor != 0);
        self.constant = plus(self.constant, times(other.constant, factor)?)?;
        Ok(self)
    }

    fn and_constant(mut self, constant: i128) -> Made<Sum> {
        self.constant = plus(self.constant, constant)?;
        Ok(self)
    }
}

/// What is known, as inequalities.
struct System<'t> {
    terms: &'t Terms,
    /// Of each unknown.
    bounds: Vec<(i128, i128)>,
    /// Which of them say how often something wrapped around.
    wraps: Vec<usize>,
    numbers: FxHashMap<(Term, u32), Sum>,
    /// Numbers divided by 2^k, by number, bits and k.
    above: FxHashMap<(Term, u32, u32), Sum>,
    signed: FxHashMap<(Term, u32), Sum>,
    /// Not negative.
    rows: Vec<Sum>,
    /// Nought.
    equal: Vec<Sum>,
}

impl<'t> System<'t> {
    fn new(terms: &'t Terms) -> System<'t> {
        System {
            terms,
            bounds: Vec::new(),
            wraps: Vec::new(),
            numbers: FxHashMap::default(),
            above: FxHashMap::default(),
            signed: FxHashMap::default(),
            rows: Vec::new(),
            equal: Vec::new(),
        }
    }

    /// What the current facts say.
    fn of_facts(terms: &'t Terms) -> Made<System<'t>> {
        let mut system = System::new(terms);
        if terms.facts.iter().count() > MOST_FACTS {
            return Err(GivenUp);
        }
        for fact in terms.facts.iter() {
            system.assume(fact, true)?;
        }
        Ok(system)
    }

    fn unknown(&mut self, low: i128, high: i128) -> Made<Sum> {
        if low == high {
            return Ok(Sum::constant(low));
        }
        if self.bounds.len() == MOST_UNKNOWNS {
            return Err(GivenUp);
        }
        self.bounds.push((low, high));
        Ok(Sum {
            parts: BTreeMap::from([(self.bounds.len() - 1, 1)]),
            constant: 0,
        })
    }

    /// Where a sum lies, by the bounds of its parts.
    fn interval(&self, sum: &Sum) -> Made<(i128, i128)> {
        let mut ends = (sum.constant, sum.constant);
        for (&unknown, &factor) in &sum.parts {
            let (low, high) = self.bounds[unknown];
            let products = [times(factor, low)?, times(factor, high)?];
            ends.0 = plus(ends.0, products[0].min(products[1]))?;
            ends.1 = plus(ends.1, products[0].max(products[1]))?;
        }
        Ok(ends)
    }

    /// A sum lies between two numbers, once so many times `size` are taken from it.
    fn reduced(&mut self, sum: Sum, size: i128, (low, high): (i128, i128)) -> Made<Sum> {
        let (from, to) = self.interval(&sum)?;
        let first = plus(from, -low)?.div_euclid(size);
        let last = plus(to, -low)?.div_euclid(size);
        let wraps = self.unknown(first, last)?;
        let reduced = sum.and(&wraps, -size)?;
        if first != last {
            self.wraps.extend(wraps.parts.keys());
            self.rows.push(reduced.clone().and_constant(-low)?);
            let below = Sum::constant(high).and(&reduced, -1)?;
            self.rows.push(below);
        }
        Ok(reduced)
    }

    /// A number of so many bits without a sign.
    fn number(&mut self, bits: u32, x: Term) -> Made<Sum> {
        if let Some(known) = self.numbers.get(&(x, bits)) {
            return Ok(known.clone());
        }
        if bits > u64::BITS {
            return Err(GivenUp);
        }
        let number = match self.composed(bits, x)? {
            Some(number) => number,
            None => {
                let (low, high) = Facts::default().range(self.terms, bits, false, x, DEPTH);
                let stated = self.terms.stated(x).unwrap_or((low, high));
                self.unknown(low.max(stated.0), high.min(stated.1))?
            }
        };
        self.numbers.insert((x, bits), number.clone());
        Ok(number)
    }

    /// The same of its parts, if it has any.
    fn composed(&mut self, bits: u32, x: Term) -> Made<Option<Sum>> {
        let (head, args) = (self.terms.head(x), Args::from_slice(self.terms.args(x)));
        let all = (0, (1i128 << bits) - 1);
        Ok(Some(match (head, args.as_slice()) {
            (Head::Const(value), _) => Sum::constant(truncate(value, bits).into()),
            (Head::Add(width) | Head::Mul(width), _) if width == bits => {
                match self.whole(bits, false, x)? {
                    Some(sum) => self.reduced(sum, 1 << bits, all)?,
                    None => return Ok(None),
                }
            }
            (Head::ZeroExtend(from, to), &[y]) if to == bits => self.number(from, y)?,
            (Head::SignExtend(from, to), &[y]) if to == bits => {
                let signed = self.signed(from, y)?;
                self.reduced(signed, 1 << bits, all)?
            }
            (Head::Extract { lo, bits: own, of }, &[y]) if own == bits => {
                let above = self.above(of, y, lo)?;
                match lo + own == of {
                    true => above,
                    false => {
                        let rest = self.above(of, y, lo + own)?;
                        above.and(&rest, -(1 << own))?
                    }
                }
            }
            (Head::Concat, parts) => {
                let (mut at, mut sum) = (0, Sum::default());
                for pair in parts.chunks_exact(2) {
                    let own = self.terms.as_const(pair[1]).unwrap_or_default() as u32;
                    let part = self.number(own, pair[0])?;
                    sum = sum.and(&part, 1 << at)?;
                    at += own;
                }
                match at == bits {
                    true => sum,
                    false => return Ok(None),
                }
            }
            _ => return Ok(None),
        }))
    }

    /// A sum of numbers before anything wraps around.
    fn whole(&mut self, bits: u32, signed: bool, x: Term) -> Made<Option<Sum>> {
        let (mut parts, mut constant) = (Parts::new(), 0);
        let is_sum = self.terms.parts(bits, x, 1, &mut parts, &mut constant);
        if !is_sum || parts.as_slice() == [(x, 1)] {
            return Ok(None);
        }
        let mut sum = Sum::constant(sign_extended(constant, bits).into());
        for (part, factor) in parts {
            let part = self.value(bits, signed, part)?;
            sum = sum.and(&part, sign_extended(factor, bits).into())?;
        }
        Ok(Some(sum))
    }

    /// A number of `of` bits without its low `lo` ones: what they leave lies below 2^lo.
    fn above(&mut self, of: u32, y: Term, lo: u32) -> Made<Sum> {
        let whole = self.number(of, y)?;
        if lo == 0 {
            return Ok(whole);
        }
        if let Some(known) = self.above.get(&(y, of, lo)) {
            return Ok(known.clone());
        }
        let (low, high) = self.interval(&whole)?;
        let above = self.unknown(low.max(0) >> lo, high.min((1 << of) - 1) >> lo)?;
        let rest = whole.and(&above, -(1 << lo))?;
        let short = Sum::constant((1 << lo) - 1).and(&rest, -1)?;
        self.rows.extend([rest, short]);
        self.above.insert((y, of, lo), above.clone());
        Ok(above)
    }

    fn signed(&mut self, bits: u32, x: Term) -> Made<Sum> {
        if let Some(known) = self.signed.get(&(x, bits)) {
            return Ok(known.clone());
        }
        let half = 1i128 << (bits - 1);
        let signed = match (self.terms.head(x), self.terms.args(x)) {
            (Head::SignExtend(from, to), &[y]) if to == bits => self.signed(from, y)?,
            _ => {
                let is_sum = matches!(self.terms.head(x), Head::Add(width) | Head::Mul(width) if width == bits);
                let whole = is_sum.then(|| self.whole(bits, true, x)).transpose()?;
                let number = match whole.flatten() {
                    Some(sum) => sum,
                    None => self.number(bits, x)?,
                };
                self.reduced(number, 2 * half, (-half, half - 1))?
            }
        };
        self.signed.insert((x, bits), signed.clone());
        Ok(signed)
    }

    fn value(&mut self, bits: u32, signed: bool, x: Term) -> Made<Sum> {
        match signed {
            true => self.signed(bits, x),
            false => self.number(bits, x),
        }
    }

    /// a - b, from 0 on.
    fn difference(&mut self, bits: u32, a: Term, b: Term) -> Made<Sum> {
        let mut sides = [Sum::default(), Sum::default()];
        for (side, x) in sides.iter_mut().zip([a, b]) {
            *side = match self.terms.head(x) {
                Head::Add(width) | Head::Mul(width) if width == bits => {
                    self.whole(bits, false, x)?
                }
                _ => None,
            }
            .map_or_else(|| self.number(bits, x), Ok)?;
        }
        let [a, b] = sides;
        self.reduced(a.and(&b, -1)?, 1 << bits, (0, (1 << bits) - 1))
    }

    /// A predicate holds, or does not.
    fn assume(&mut self, predicate: Term, holds: bool) -> Made<()> {
        let args = Args::from_slice(self.terms.args(predicate));
        match (self.terms.head(predicate), args.as_slice()) {
            (Head::Not, &[inner]) => self.assume(inner, !holds)?,
            (Head::Less(bits, signed), &[a, b]) => {
                let [a, b] = [self.value(bits, signed, a)?, self.value(bits, signed, b)?];
                self.rows.push(match holds {
                    true => b.and(&a, -1)?.and_constant(-1)?,
                    false => a.and(&b, -1)?,
                });
            }
            (Head::Equal(bits), &[a, b]) => {
                let difference = self.difference(bits, a, b)?;
                match holds {
                    true => self.equal.push(difference),
                    false => self.rows.push(difference.and_constant(-1)?),
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Do no integers meet all of it? `last`: what was added last, which the others must have to do with.
    fn is_contradictory(&self, last: &[Sum]) -> Made<bool> {
        let unknowns = self.touched(last);
        let place: FxHashMap<usize, usize> = (unknowns.iter().enumerate())
            .map(|(at, &unknown)| (unknown, at))
            .collect();
        let row = |sum: &Sum| -> Option<Row> {
            let mut row: Row = vec![0; unknowns.len() + 1];
            for (unknown, &factor) in &sum.parts {
                row[*place.get(unknown)?] = factor;
            }
            row[unknowns.len()] = sum.constant;
            Some(row)
        };
        let side = |sums: &[Sum]| sums.iter().filter_map(row).collect();
        let mut problem = Problem {
            rows: side(&self.rows),
            equal: side(&self.equal),
            bounds: unknowns
                .iter()
                .map(|&unknown| self.bounds[unknown])
                .collect(),
            wraps: self
                .wraps
                .iter()
                .filter_map(|unknown| place.get(unknown).copied())
                .collect(),
        };
        problem.rows.extend(side(last));
        let mut tries = MOST_TRIED;
        problem.has_no_point(&mut tries)
    }

    /// Unknowns that these sums have to do with, however far off.
    fn touched(&self, sums: &[Sum]) -> Vec<usize> {
        let mut touched = vec![false; self.bounds.len()];
        for unknown in sums.iter().flat_map(|sum| sum.parts.keys()) {
            touched[*unknown] = true;
        }
        loop {
            let mut is_new = false;
            for sum in self.rows.iter().chain(&self.equal) {
                if sum.parts.keys().any(|&unknown| touched[unknown]) {
                    for &unknown in sum.parts.keys() {
                        is_new |= !std::mem::replace(&mut touched[unknown], true);
                    }
                }
            }
            if !is_new {
                return (0..touched.len()).filter(|&at| touched[at]).collect();
            }
        }
    }
}

/// Factors of unknowns, the constant last.
type Row = Vec<i128>;

/// Inequalities over so many unknowns.
#[derive(Clone)]
struct Problem {
    rows: Vec<Row>,
    equal: Vec<Row>,
    bounds: Vec<(i128, i128)>,
    wraps: Vec<usize>,
}

impl Problem {
    /// Do no integers meet all of it? `tries`: ways to wrap around that may still be tried.
    fn has_no_point(mut self, tries: &mut u32) -> Made<bool> {
        *tries = tries.checked_sub(1).ok_or(GivenUp)?;
        for _ in 0..ROUNDS {
            match self.narrow()? {
                None => return Ok(true),
                Some(false) => break,
                Some(true) => {}
            }
        }
        if has_no_point(&self.bounded(), &self.equal).unwrap_or(false) {
            return Ok(true);
        }
        let open = |&at: &usize| self.bounds[at].0 < self.bounds[at].1;
        // What was asked last comes first.
        let Some(at) = self.wraps.iter().rev().copied().find(open) else {
            return Ok(false);
        };
        let (low, high) = self.bounds[at];
        self.tried_between(at, (low, low), (low + 1, high), tries)
    }

    /// Has neither of two ranges of an unknown any point?
    fn tried_between(
        self,
        at: usize,
        first: (i128, i128),
        second: (i128, i128),
        tries: &mut u32,
    ) -> Made<bool> {
        let mut other = self.clone();
        let mut own = self;
        (own.bounds[at], other.bounds[at]) = (first, second);
        Ok(own.has_no_point(tries)? && other.has_no_point(tries)?)
    }

    /// Narrows bounds by each row once: nothing if none is left, else whether any became narrower.
    fn narrow(&mut self) -> Made<Option<bool>> {
        let mut is_new = false;
        let negated = |row: &Row| row.iter().map(|factor| -factor).collect::<Row>();
        let both = self
            .equal
            .iter()
            .flat_map(|row| [row.clone(), negated(row)]);
        let rows: Vec<Row> = self.rows.iter().cloned().chain(both).collect();
        for row in &rows {
            let Some((&constant, factors)) = row.split_last() else {
                continue;
            };
            let mut most = constant;
            for (&factor, &(low, high)) in factors.iter().zip(&self.bounds) {
                most = plus(most, times(factor, if factor > 0 { high } else { low })?)?;
            }
            if most < 0 {
                return Ok(None);
            }
            for (&factor, bounds) in factors.iter().zip(&mut self.bounds) {
                if factor == 0 {
                    continue;
                }
                // What the others leave for it.
                let own = times(factor, if factor > 0 { bounds.1 } else { bounds.0 })?;
                let rest = plus(most, -own)?;
                let end = -(rest.div_euclid(factor.abs()));
                let narrower = match factor > 0 {
                    true => (bounds.0.max(end), bounds.1),
                    false => (bounds.0, bounds.1.min(-end)),
                };
                is_new |= narrower != *bounds;
                *bounds = narrower;
                if bounds.0 > bounds.1 {
                    return Ok(None);
                }
            }
        }
        Ok(Some(is_new))
    }

    /// The rows that the bounds do not say, and those of the bounds.
    fn bounded(&self) -> Vec<Row> {
        let is_said = |row: &&Row| {
            let (constant, factors) = row.split_last().unwrap_or((&0, &[]));
            let mut parts = factors.iter().zip(&self.bounds);
            let least = parts.try_fold(*constant, |sum, (&factor, &(low, high))| {
                let end = if factor > 0 { low } else { high };
                sum.checked_add(factor.checked_mul(end)?)
            });
            least.is_some_and(|least| least >= 0)
        };
        let mut rows: Vec<Row> = self
            .rows
            .iter()
            .filter(|row| !is_said(row))
            .cloned()
            .collect();
        for (at, &(low, high)) in self.bounds.iter().enumerate() {
            for (factor, constant) in [(1, -low), (-1, high)] {
                let mut row = vec![0; self.bounds.len() + 1];
                (row[at], row[self.bounds.len()]) = (factor, constant);
                rows.push(row);
            }
        }
        rows
    }
}

fn gcd(a: i128, b: i128) -> i128 {
    if b == 0 { a.abs() } else { gcd(b, a % b) }
}

fn common(row: &[i128]) -> i128 {
    let (_, factors) = row.split_last().unwrap_or((&0, &[]));
    factors.iter().fold(0, |all, &factor| gcd(all, factor))
}

/// row + factor · other
fn combined(row: &[i128], by: i128, other: &[i128], factor: i128) -> Made<Row> {
    row.iter()
        .zip(other)
        .map(|(&a, &b)| plus(times(a, by)?, times(b, factor)?))
        .collect()
}

/// Do no integers make all rows of the first kind not negative and all of the second kind nought?
fn has_no_point(rows: &[Row], equal: &[Row]) -> Made<bool> {
    let (mut rows, mut equal) = (rows.to_vec(), equal.to_vec());
    loop {
        while let Some(row) = equal.pop() {
            if substituted(row, &mut rows, &mut equal)? {
                return Ok(true);
            }
        }
        let Some(tight) = tightened(&rows) else {
            return Ok(true);
        };
        rows = tight;
        if let Some(found) = opposite(&rows) {
            match found {
                Opposite::Apart => return Ok(true),
                Opposite::Equal(row) => equal.push(row),
            }
            continue;
        }
        let Some(at) = cheapest(&rows) else {
            return Ok(false);
        };
        rows = without(&rows, at)?;
        if rows.len() > MOST_ROWS {
            return Err(GivenUp);
        }
    }
}

/// Takes an unknown out by an equation; true if the equation has no solution.
fn substituted(mut row: Row, rows: &mut Vec<Row>, equal: &mut [Row]) -> Made<bool> {
    let all = common(&row);
    let constant = row.last().copied().unwrap_or_default();
    if all == 0 {
        return Ok(constant != 0);
    }
    if constant % all != 0 {
        return Ok(true);
    }
    row.iter_mut().for_each(|factor| *factor /= all);
    let unknowns = row.len() - 1;
    let Some(at) = row[..unknowns].iter().position(|factor| factor.abs() == 1) else {
        rows.push(row.iter().map(|factor| -factor).collect());
        rows.push(row);
        return Ok(false);
    };
    for other in rows.iter_mut().chain(equal) {
        if other[at] != 0 {
            *other = combined(other, 1, &row, -other[at] * row[at])?;
        }
    }
    Ok(false)
}

/// Rows without common factors, the tightest of each kind; nothing if one is negative for certain.
fn tightened(rows: &[Row]) -> Option<Vec<Row>> {
    let mut tightest: BTreeMap<Row, i128> = BTreeMap::new();
    for row in rows {
        let all = common(row);
        let (&constant, factors) = row.split_last()?;
        if all == 0 {
            if constant < 0 {
                return None;
            }
            continue;
        }
        let factors: Row = factors.iter().map(|factor| factor / all).collect();
        let constant = constant.div_euclid(all);
        let known = tightest.entry(factors).or_insert(constant);
        *known = constant.min(*known);
    }
    let whole = |(mut factors, constant): (Row, i128)| {
        factors.push(constant);
        factors
    };
    Some(tightest.into_iter().map(whole).collect())
}

/// Two rows that bound the same sum from both sides.
enum Opposite {
    /// Nothing lies between.
    Apart,
    /// One number does, and an unknown can be taken out.
    Equal(Row),
}

fn opposite(rows: &[Row]) -> Option<Opposite> {
    let mut known: FxHashMap<&[i128], i128> = FxHashMap::default();
    let mut found = None;
    for row in rows {
        let (&constant, factors) = row.split_last()?;
        let negated: Row = factors.iter().map(|factor| -factor).collect();
        match known.get(&*negated) {
            Some(other) if other + constant < 0 => return Some(Opposite::Apart),
            Some(other) if other + constant == 0 && factors.iter().any(|f| f.abs() == 1) => {
                found = Some(Opposite::Equal(row.clone()));
            }
            _ => {}
        }
        known.insert(factors, constant);
    }
    found
}

/// The unknown that makes the fewest new rows.
fn cheapest(rows: &[Row]) -> Option<usize> {
    let unknowns = rows.first()?.len() - 1;
    let cost = |at: usize| {
        let positive = rows.iter().filter(|row| row[at] > 0).count();
        let negative = rows.iter().filter(|row| row[at] < 0).count();
        (positive + negative > 0).then_some((positive * negative, at))
    };
    (0..unknowns).filter_map(cost).min().map(|(_, at)| at)
}

/// What rows say without an unknown.
fn without(rows: &[Row], at: usize) -> Made<Vec<Row>> {
    let mut left: Vec<Row> = rows.iter().filter(|row| row[at] == 0).cloned().collect();
    for low in rows.iter().filter(|row| row[at] > 0) {
        for high in rows.iter().filter(|row| row[at] < 0) {
            left.push(combined(low, -high[at], high, low[at])?);
        }
    }
    Ok(left)
}

impl Terms {
    /// Do the current facts leave no number for which a predicate is other than that?
    pub(crate) fn follows(&self, predicate: Term, holds: bool) -> bool {
        let contradictory = || -> Made<bool> {
            let mut system = System::of_facts(self)?;
            let before = system.equal.len();
            system.assume(predicate, !holds)?;
            let last = system.rows.iter().chain(&system.equal[before..]).last();
            let last: Vec<Sum> = last.cloned().into_iter().collect();
            system.is_contradictory(&last)
        };
        contradictory().unwrap_or(false)
    }

    /// Is `x + by` the sum of the two numbers wherever the current facts hold, `by` with its sign and `x` with or without
    /// one?
    pub(crate) fn is_whole(&self, bits: u32, signed: bool, x: Term, by: i64) -> bool {
        let within = || -> Made<bool> {
            let mut system = System::of_facts(self)?;
            let sum = system
                .value(bits, signed, x)?
                .and_constant(i128::from(by))?;
            let (least, most) = match signed {
                true => (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1),
                false => (0, (1i128 << bits) - 1),
            };
            let above = sum.clone().and_constant(-most - 1)?;
            let below = Sum::constant(least - 1).and(&sum, -1)?;
            Ok(system.is_contradictory(&[above])? && system.is_contradictory(&[below])?)
        };
        within().unwrap_or(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers of so many bits.
    const BITS: u32 = 4;

    /// What a term is where leaves have these values.
    fn value(t: &Terms, term: Term, leaves: &FxHashMap<Term, u64>) -> u64 {
        let args = t.args(term);
        let arg = |at: usize| value(t, args[at], leaves);
        match t.head(term) {
            Head::Const(value) => value,
            Head::Add(bits) => truncate(arg(0).wrapping_add(arg(1)), bits),
            Head::Mul(bits) => truncate(arg(0).wrapping_mul(arg(1)), bits),
            Head::ZeroExtend(from, _) => truncate(arg(0), from),
            Head::SignExtend(from, to) => truncate(sign_extended(arg(0), from) as u64, to),
            Head::Extract { lo, bits, .. } => truncate(arg(0) >> lo, bits),
            Head::Concat => {
                let parts = args.chunks_exact(2).rev();
                parts.fold(0, |all, part| {
                    let bits = t.as_const(part[1]).unwrap() as u32;
                    all << bits | truncate(value(t, part[0], leaves), bits)
                })
            }
            Head::Logic { bits, table } => (0..bits).fold(0, |all, bit| {
                let row = (0..args.len()).fold(0, |row, at| row | (arg(at) >> bit & 1) << at);
                all | (table >> row & 1) << bit
            }),
            Head::Not => arg(0) ^ 1,
            Head::Equal(_) => u64::from(arg(0) == arg(1)),
            Head::Less(_, false) => u64::from(arg(0) < arg(1)),
            Head::Less(bits, true) => {
                u64::from(sign_extended(arg(0), bits) < sign_extended(arg(1), bits))
            }
            Head::Symbol(_) => leaves[&term],
            other => panic!("{other:?}"),
        }
    }

    struct Dice(u64);

    impl Dice {
        fn below(&mut self, end: u64) -> u64 {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            (self.0 >> 11) % end
        }
    }

    /// A number made of leaves.
    fn number(t: &mut Terms, dice: &mut Dice, leaves: &[Term]) -> Term {
        let leaf = leaves[dice.below(leaves.len() as u64) as usize];
        let by = dice.below(16);
        match dice.below(9) {
            0 => t.constant(by),
            1 => t.add_const(BITS, leaf, by as i64),
            2 => {
                let other = number(t, dice, leaves);
                t.sub(BITS, leaf, other)
            }
            3 => {
                let by = t.constant(by);
                t.mul(BITS, leaf, by)
            }
            4 => {
                let mask = t.constant([0b1100, 0b0011, 0b0100, 0b1110][by as usize % 4]);
                t.logic(BITS, 0b1000, &[leaf, mask])
            }
            5 => {
                let low = t.extract(0, 2, BITS, leaf);
                t.sign_extend(2, BITS, low)
            }
            6 => {
                let high = t.extract(1 + by as u32 % 2, 2, BITS, leaf);
                t.zero_extend(2, BITS, high)
            }
            _ => leaf,
        }
    }

    fn predicate(t: &mut Terms, dice: &mut Dice, leaves: &[Term]) -> Term {
        let [a, b] = [0, 1].map(|_| number(t, dice, leaves));
        let atom = match dice.below(4) {
            0 => t.equal(BITS, a, b),
            1 => t.less(BITS, false, a, b),
            _ => t.less(BITS, true, a, b),
        };
        match dice.below(3) {
            0 => t.not(atom),
            _ => atom,
        }
    }

    #[test]
    fn what_follows_holds_for_all_numbers() {
        let mut dice = Dice(0x5eed_5eed);
        let (mut true_ones, mut found) = (0, 0);
        for _ in 0..1500 {
            let mut t = Terms::default();
            let leaves = ["x", "y", "z"].map(|name| t.unknown(name));
            for _ in 0..dice.below(5) {
                let fact = predicate(&mut t, &mut dice, &leaves);
                t.facts.insert(fact);
            }
            let goal = predicate(&mut t, &mut dice, &leaves);
            let by = dice.below(8) as i64 - 4;
            let points = (0..1u64 << (3 * BITS)).map(|point| {
                let parts = (0..3).map(|at| truncate(point >> (at * BITS), BITS));
                leaves
                    .iter()
                    .copied()
                    .zip(parts)
                    .collect::<FxHashMap<_, _>>()
            });
            let facts = t.facts.clone();
            let points: Vec<_> = points
                .filter(|point| facts.iter().all(|fact| value(&t, fact, point) == 1))
                .collect();
            let holds = points.iter().all(|point| value(&t, goal, point) == 1);
            let is_met = !points.is_empty();
            let said = t.proves(goal);
            assert!(!said || holds, "{}", t.show(goal, 9, &|_| None));
            true_ones += u32::from(holds && is_met);
            found += u32::from(said && is_met);
            let stays = |point: &FxHashMap<Term, u64>| {
                let sum = sign_extended(point[&leaves[0]], BITS) + by;
                (-8..8).contains(&sum)
            };
            let whole = t.is_whole(BITS, true, leaves[0], by);
            assert!(!whole || points.iter().all(stays), "{by}");
        }
        assert!(
            true_ones > 80 && 10 * found > 9 * true_ones,
            "{found} of {true_ones}"
        );
    }

    #[test]
    fn a_multiple_below_the_end_is_a_whole_step_below() {
        let mut t = Terms::default();
        let (i, n, zero) = (t.unknown("i"), t.unknown("n"), t.constant(0));
        let mask = t.constant(0x7fff_fffc);
        let end = t.logic(32, 0b1000, &[n, mask]);
        let low = t.extract(0, 2, 32, i);
        let facts = [
            t.less(32, true, zero, n),
            t.less(32, true, i, end),
            t.equal(2, low, zero),
        ];
        let goal = |t: &mut Terms, by| {
            let sum = t.add_const(32, i, by);
            t.less(32, true, sum, n)
        };
        for fact in facts {
            let three = goal(&mut t, 3);
            assert!(!t.proves(three), "a fact is missing");
            t.facts.insert(fact);
        }
        let (three, four) = (goal(&mut t, 3), goal(&mut t, 4));
        assert!(t.proves(three));
        assert!(!t.proves(four));
    }
}
