//! Neighbours beyond the ends of a row: an index that is clamped to the last cell, or that wraps to the other end.
//!
//! `max(i - 1, 0)`, `i > 0 ? i - 1 : 0`, `if (l < 0) l = 0;`, `(i + n - 1) % n` and their like are one thing: a function
//! of a place `p` that is `p` itself in the middle, something else below a number (`low`) and from a size on (`high`).
//! Such a value is a symbol of its own here; whatever is made of it stays a polynomial. Points in the middle then read
//! what they would read without it. The points that are left compute the same with bent indices, as the border does that
//! a kernel treats apart (`emit.rs` checks that what is bent are the ends of the rows).
//!
//! What is concluded holds where the middle has a point; launches without one are left to the kernel as written.

use std::cell::RefCell;
use std::rc::Rc;

use super::machine::{Done, Machine, RawAccess};
use super::value::Pointer;
use crate::ir::Edge;
use warpwright_cudac::affine::{Poly, Relation, Symbol, Test};
use warpwright_cudac::diag::{Diagnostic, Span};

/// A place that is bent at one end or both.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Bent {
    /// The place, without a number added to it.
    pub(super) of: Poly,
    /// Below it the place is bent.
    pub(super) low: Option<i64>,
    /// From it on the place is bent.
    pub(super) high: Option<Poly>,
    /// How: clamped to `low` and the place before `high`, or moved by a period.
    pub(super) rule: Rule,
}

/// How a place is bent.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Rule {
    Clamped,
    /// The period.
    Wrapped(Poly),
}

impl Rule {
    pub(super) fn edge(&self) -> Edge {
        match self {
            Rule::Clamped => Edge::Clamped,
            Rule::Wrapped(_) => Edge::Wrapped,
        }
    }
}

/// Bent places by number, each once. Copies share them, so a number means the same wherever it gets to.
#[derive(Clone, Debug, Default)]
pub(super) struct Edges(Rc<RefCell<Vec<Bent>>>);

/// The number of the first one among the unknowns.
const FIRST: usize = usize::MAX / 2;

impl Edges {
    fn symbol(&self, bent: Bent) -> Symbol {
        let mut all = self.0.borrow_mut();
        let at = all.iter().position(|b| *b == bent).unwrap_or_else(|| {
            all.push(bent);
            all.len() - 1
        });
        Symbol::Unknown(FIRST + at)
    }

    /// The bent place that a symbol is.
    pub(super) fn get(&self, symbol: Symbol) -> Option<Bent> {
        let Symbol::Unknown(number) = symbol else {
            return None;
        };
        self.0.borrow().get(number.checked_sub(FIRST)?).cloned()
    }

    /// Is there any?
    pub(super) fn any(&self) -> bool {
        !self.0.borrow().is_empty()
    }

    /// Does a value depend on a bent place?
    pub(super) fn has(&self, value: &Poly) -> bool {
        value.symbols().into_iter().any(|s| self.get(s).is_some())
    }

    /// A value with everything in it changed, also what its bent places are made of.
    pub(super) fn mapped(
        &self,
        value: &Poly,
        change: &mut impl FnMut(&Poly) -> Option<Poly>,
    ) -> Option<Poly> {
        let mut changed = change(value)?;
        for symbol in value.symbols() {
            let Some(bent) = self.get(symbol) else {
                continue;
            };
            let of = change(&bent.of)?;
            let by = of.constant_term();
            let place = of.plus(&Poly::constant(by), -1)?;
            let high = match bent.high {
                Some(high) => Some(high.plus(&Poly::constant(by), -1)?),
                None => None,
            };
            let low = match bent.low {
                Some(low) => Some(low.checked_sub(by)?),
                None => None,
            };
            let symbol_now = self.symbol(Bent {
                of: place,
                low,
                high,
                rule: bent.rule,
            });
            let now = Poly::symbol(symbol_now).plus(&Poly::constant(by), 1)?;
            changed = changed.substituted(symbol, &now)?;
        }
        Some(changed)
    }
}

/// One reading of a condition: the place lies beyond an end, and what the value is there and elsewhere.
struct Reading<'a> {
    end: End,
    beyond: &'a Poly,
    inside: &'a Poly,
    /// One place alone lies beyond.
    single: Option<i64>,
    /// The same, where it is a size plus a number.
    last: bool,
}

enum End {
    Low(i64),
    High(Poly),
}

impl Machine<'_> {
    /// `test ? a : b` as a value of a bent place; none if it is something else.
    pub(super) fn bent(&self, test: &Test, a: &Poly, b: &Poly) -> Option<Poly> {
        let parts = test.conjuncts()?;
        let &[(relation, value, _)] = parts.as_slice() else {
            return None;
        };
        let (place, rest, sign) = place_in(value)?;
        let one = Poly::constant(1);
        let zero = Poly::default();
        let low = |bound: &Poly| bound.as_constant().map(End::Low);
        let mut readings = Vec::new();
        let mut add = |end: Option<End>, beyond, inside, single, last| {
            readings.extend(end.map(|end| Reading {
                end,
                beyond,
                inside,
                single,
                last,
            }));
        };
        match (relation, sign) {
            (Relation::NotNegative, 1) => {
                let from = zero.plus(&rest, -1)?;
                add(low(&from), b, a, None, false);
                add(Some(End::High(from)), a, b, None, false);
            }
            (Relation::NotNegative, _) => {
                let to = rest.plus(&one, 1)?;
                add(low(&to), a, b, None, false);
                add(Some(End::High(to)), b, a, None, false);
            }
            (Relation::Zero | Relation::NotZero, _) => {
                let at = zero.plus(&rest, -sign)?;
                let (beyond, inside) = if relation == Relation::Zero {
                    (a, b)
                } else {
                    (b, a)
                };
                if self.is_beyond(&place, &at) {
                    return Some(inside.clone());
                }
                if let Some(number) = at.as_constant()
                    && self.least(&place) == Some(number)
                {
                    let end = Some(End::Low(number.checked_add(1)?));
                    add(end, beyond, inside, Some(number), false);
                }
                if self.is_last(&place, &at) {
                    add(Some(End::High(at)), beyond, inside, None, true);
                }
            }
        }
        readings.iter().find_map(|r| self.bent_at(&place, r))
    }

    fn bent_at(&self, place: &Poly, reading: &Reading<'_>) -> Option<Poly> {
        let edges = &self.trace.edges;
        let alone = |poly: &Poly| match poly.symbols().as_slice() {
            [symbol] => edges.get(*symbol),
            _ => None,
        };
        let has_end = |bent: &Bent| match reading.end {
            End::Low(_) => bent.low.is_some(),
            End::High(_) => bent.high.is_some(),
        };
        let tested = alone(place);
        if tested.as_ref().is_some_and(has_end) {
            return None;
        }
        let base = tested.map_or_else(|| place.clone(), |bent| bent.of);
        let inside = reading.inside;
        // What the value is made of: the place, or the place bent at the other end.
        let mut own = inside.symbols();
        own.retain(|s| edges.get(*s).is_some_and(|bent| bent.of == base));
        let (variable, before) = match own.as_slice() {
            [] => (base.clone(), None),
            [symbol] => (Poly::symbol(*symbol), edges.get(*symbol)),
            _ => return None,
        };
        if before.as_ref().is_some_and(has_end) {
            return None;
        }
        let pivot_symbol = pivot(&variable)?;
        let stride = inside.coefficient(pivot_symbol)?;
        let is_size = |s: &Symbol| matches!(s, Symbol::Size(_));
        if stride.is_zero() || !stride.symbols().iter().all(is_size) {
            return None;
        }
        let rest = inside.plus(&variable.times(&stride)?, -1)?;
        let parts = [base.symbols(), variable.symbols()].concat();
        if rest.symbols().iter().any(|s| parts.contains(s)) {
            return None;
        }
        // Beyond this end the place is not bent at the other one.
        let mut difference = reading.beyond.plus(inside, -1)?;
        if before.is_some() {
            difference = difference.substituted(pivot_symbol, &base)?;
        }
        let mut expected = match &reading.end {
            End::Low(low) => Poly::constant(*low).plus(&base, -1)?,
            End::High(high) => high.plus(&Poly::constant(1), -1)?.plus(&base, -1)?,
        }
        .times(&stride)?;
        // Where one place alone lies beyond, everything is compared there.
        let only = match (&reading.end, reading.single, reading.last) {
            (_, Some(number), _) => Some(Poly::constant(number)),
            (End::High(high), None, true) => Some(high.clone()),
            (End::Low(low), ..) if self.least(&base) == low.checked_sub(1) => {
                Some(Poly::constant(low.saturating_sub(1)))
            }
            (End::High(high), ..) if self.is_last(&base, high) => Some(high.clone()),
            _ => None,
        };
        let rule = if difference == expected {
            Rule::Clamped
        } else {
            let direct = difference.clone();
            if let Some(only) = &only {
                let symbol = pivot(&base)?;
                difference = difference.substituted(symbol, only)?;
                expected = expected.substituted(symbol, only)?;
            }
            if difference == expected {
                Rule::Clamped
            } else {
                let period = |by: &Poly| {
                    let by = match reading.end {
                        End::Low(_) => by.clone(),
                        End::High(_) => Poly::default().plus(by, -1)?,
                    };
                    let period = by.divided_by(&stride)?;
                    let (size, add) = period.as_extent()?;
                    // Of two readings in numbers the one with the nearer neighbour is meant.
                    let is_near = match &reading.end {
                        End::Low(low) => *low < add - add / 2,
                        End::High(high) => high.as_constant().is_none_or(|high| high > add / 2),
                    };
                    (size.is_some() || add > 1 && is_near).then_some(period)
                };
                Rule::Wrapped(period(&direct).or_else(|| period(&difference))?)
            }
        };
        let mut bent = before.unwrap_or_else(|| Bent {
            of: base,
            low: None,
            high: None,
            rule: rule.clone(),
        });
        if bent.rule != rule {
            return None;
        }
        match &reading.end {
            End::Low(low) => bent.low = Some(*low),
            End::High(high) => bent.high = Some(high.clone()),
        }
        let bent = Poly::symbol(edges.symbol(bent));
        rest.plus(&bent.times(&stride)?, 1)
    }

    /// `(p + n - 1) % n`
    pub(super) fn wrapped(&self, value: &Poly, period: &Poly) -> Option<Poly> {
        let (size, number) = period.as_extent()?;
        if size.is_none() && number < 2 {
            return None;
        }
        let (place, rest, sign) = place_in(value)?;
        if sign != 1 || self.trace.edges.has(&place) || place.points().len() > 1 {
            return None;
        }
        for periods in 0..=4 {
            let Some(offset) = rest.plus(period, -periods).and_then(|o| o.as_constant()) else {
                continue;
            };
            // A remainder has the sign of what is divided; in numbers only the number of periods next to zero is meant.
            if size.is_none()
                && offset.saturating_abs() >= number.saturating_sub(offset.saturating_abs())
            {
                continue;
            }
            if periods == 0 && offset <= 0 {
                return None;
            }
            let high = period.plus(&Poly::constant(offset), -1)?;
            let bent = Bent {
                of: place,
                low: (offset < 0).then(|| offset.saturating_neg()),
                high: Some(high),
                rule: Rule::Wrapped(period.clone()),
            };
            let bent = Poly::symbol(self.trace.edges.symbol(bent));
            return bent.plus(&Poly::constant(offset), 1);
        }
        None
    }

    /// The element that two pointers mean that differ in one place: `test ? a : b`.
    pub(super) fn bent_access(&self, test: &Test, a: &RawAccess, b: &RawAccess) -> Option<Pointer> {
        if a.array != b.array || a.lengths != b.lengths || a.subscripts.len() != b.subscripts.len()
        {
            return None;
        }
        let part = |x: &Poly, y: &Poly| match x == y {
            true => Some(x.clone()),
            false => self.bent(test, x, y),
        };
        let mut pointer = Pointer::new(a.array, a.lengths.clone());
        let pairs = a.subscripts.iter().zip(&b.subscripts);
        if a.lengths.is_empty() {
            let sum = |access: &RawAccess| {
                let mut all = access.subscripts.iter();
                all.try_fold(access.offset.clone(), |sum, s| sum.plus(s, 1))
            };
            pointer.taken.push(part(&sum(a)?, &sum(b)?)?);
            return Some(pointer);
        }
        pointer.offset = part(&a.offset, &b.offset)?;
        pointer.taken = pairs.map(|(x, y)| part(x, y)).collect::<Option<_>>()?;
        Some(pointer)
    }

    /// The least value of a place, if it is known.
    fn least(&self, place: &Poly) -> Option<i64> {
        let (Some(symbol), 0) = place.as_subscript()? else {
            return None;
        };
        let bounds = self.domain.get(&symbol);
        match symbol {
            Symbol::Loop(_) => bounds.map(|bounds| bounds.low),
            _ => Some(bounds.map_or(0, |bounds| bounds.low.max(0))),
        }
    }

    /// Is a value the largest one of a place?
    fn is_last(&self, place: &Poly, value: &Poly) -> bool {
        let (Some((Some(symbol), 0)), Some(end)) =
            (place.as_subscript(), value.plus(&Poly::constant(1), 1))
        else {
            return false;
        };
        let bounds = self.domain.get(&symbol);
        bounds.is_some_and(|b| b.ends.iter().any(|(known, _)| *known == end))
    }

    /// Is a value none of a place?
    fn is_beyond(&self, place: &Poly, value: &Poly) -> bool {
        if let (Some(least), Some(value)) = (self.least(place), value.as_constant())
            && value < least
        {
            return true;
        }
        let Some((Some(symbol), 0)) = place.as_subscript() else {
            return false;
        };
        let bounds = self.domain.get(&symbol);
        bounds.is_some_and(|b| {
            let behind = |end: &Poly| value.plus(end, -1).and_then(|by| by.as_constant());
            b.ends.iter().any(|(end, _)| behind(end) >= Some(0))
        })
    }

    /// Writes all accesses without bent places, which they keep a list of.
    pub(super) fn straighten(&mut self) -> Done<()> {
        let edges = self.trace.edges.clone();
        for access in &mut self.trace.accesses {
            let parts = access.subscripts.iter_mut().chain([&mut access.offset]);
            let mut found = Vec::new();
            let mut all: Vec<Symbol> = Vec::new();
            for part in parts {
                let symbols = part.symbols();
                for symbol in &symbols {
                    let Some(bent) = edges.get(*symbol) else {
                        continue;
                    };
                    let straight = part.substituted(*symbol, &bent.of);
                    *part = straight.ok_or_else(|| mixed(&access.span))?;
                    found.push(bent);
                }
                all.extend(symbols);
            }
            for (at, bent) in found.iter().enumerate() {
                let Some((Some(point), 0)) = bent.of.as_subscript() else {
                    return Err(mixed(&access.span));
                };
                // One subscript has a place once, bent or not.
                let again = found[..at].iter().any(|other| other.of == bent.of);
                if again || all.contains(&point) {
                    return Err(mixed(&access.span));
                }
            }
            access.edges = found;
        }
        Ok(())
    }
}

/// A place in a value, what is left of it, which is made of sizes and numbers, and the sign of the place.
fn place_in(value: &Poly) -> Option<(Poly, Poly, i64)> {
    let mut rest = Poly::default();
    for (symbols, by) in value.terms() {
        if symbols.iter().all(|s| matches!(s, Symbol::Size(_))) {
            let term = symbols
                .iter()
                .try_fold(Poly::constant(by), |term, s| term.times(&Poly::symbol(*s)));
            rest = rest.plus(&term?, 1)?;
        }
    }
    let place = value.plus(&rest, -1)?;
    let sign = place.coefficient(pivot(&place)?)?.as_constant()?;
    Some((Poly::default().plus(&place, sign)?, rest, sign))
}

/// A symbol that stands alone in a place.
fn pivot(place: &Poly) -> Option<Symbol> {
    let alone = place.terms().filter_map(|(symbols, by)| match symbols {
        [symbol] if by.abs() == 1 => Some(*symbol),
        _ => None,
    });
    alone.max()
}

fn mixed(span: &Span) -> Diagnostic {
    let what = "a subscript has clamped or wrapped places that do not belong to one end";
    Diagnostic::error("stencil::edge", what)
        .label(span.clone(), "in this access")
        .help("clamp or wrap each subscript once, at the ends of the rows")
}
