//! An access as rows: strides, each with what moves along it (section 3.2 and 3.4 of the paper: base and offsets).
//!
//! `in[(y + i) * (n + 2) + x + j]` is stride `n + 2` times `y + i`, plus `x + j`. Along each stride the elements that a
//! block of points and a part of a loop touch are an interval, so together they are a box, and a box can be staged in
//! shared memory.

use warpwright_cudac::affine::{Poly, Symbol};

/// One stride of an access.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Form {
    /// The distance in elements, from sizes alone.
    pub stride: Poly,
    /// What is multiplied by it: places and counters, each with a number above zero.
    pub terms: Vec<(Symbol, i64)>,
}

impl Form {
    /// What a symbol is multiplied by; 0 if it is not here.
    pub fn times(&self, symbol: Symbol) -> i64 {
        let found = self.terms.iter().find(|(s, _)| *s == symbol);
        found.map_or(0, |(_, times)| *times)
    }

    /// Is it the stride of neighbouring elements?
    pub fn is_unit(&self) -> bool {
        self.stride.as_constant() == Some(1)
    }
}

/// An access as rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rows {
    /// The part that is the same for all points and turns.
    pub base: Poly,
    /// The strides, the longest first; the unit stride, if there is one, is the last. No symbol is in two of them.
    pub forms: Vec<Form>,
}

/// Elements that are a row, where a size is a constant.
const ROW: i64 = 64;

/// The rows of a subscript; none where it is no sum of strides, or where something runs backwards.
pub fn rows(index: &Poly) -> Option<Rows> {
    let varies = |s: &Symbol| s.is_point();
    let mut base = Poly::default();
    let mut by_symbol: Vec<(Symbol, Poly)> = Vec::new();
    for (symbols, times) in index.terms() {
        let mut rest = Poly::constant(times);
        let mut varying = None;
        for symbol in symbols {
            match varies(symbol) {
                true if varying.is_some() => return None,
                true => varying = Some(*symbol),
                false => rest = rest.times(&Poly::symbol(*symbol))?,
            }
        }
        let Some(symbol) = varying else {
            base = base.plus(&rest, 1)?;
            continue;
        };
        match by_symbol.iter_mut().find(|(s, _)| *s == symbol) {
            Some((_, sum)) => *sum = sum.plus(&rest, 1)?,
            None => by_symbol.push((symbol, rest)),
        }
    }
    let mut forms: Vec<Form> = Vec::new();
    for (symbol, coefficient) in by_symbol {
        if coefficient.is_zero() {
            continue;
        }
        let (stride, times) = match coefficient.as_constant() {
            // Rows of a constant length, not neighbours that lie apart.
            Some(length) if length >= ROW => (coefficient, 1),
            _ => primitive(&coefficient)?,
        };
        match forms.iter_mut().find(|f| f.stride == stride) {
            Some(form) => form.terms.push((symbol, times)),
            None => forms.push(Form {
                stride,
                terms: vec![(symbol, times)],
            }),
        }
    }
    // Rows between those that are touched are none of the box.
    for form in forms.iter_mut().filter(|f| !f.is_unit()) {
        let every = form.terms.iter().fold(0, |a, (_, times)| gcd(a, *times));
        form.stride = form.stride.times(&Poly::constant(every))?;
        form.terms.iter_mut().for_each(|(_, times)| *times /= every);
    }
    forms.sort_by_key(|f| {
        (
            std::cmp::Reverse(f.stride.degree()),
            f.stride.as_constant().is_some(),
            std::cmp::Reverse(f.stride.as_constant()),
        )
    });
    Some(Rows { base, forms })
}

/// A polynomial as a number above zero times one whose numbers have no common divisor.
fn primitive(poly: &Poly) -> Option<(Poly, i64)> {
    let gcd = poly.terms().fold(0, |a, (_, times)| gcd(a, times.abs()));
    let stride = poly.divided_by(&Poly::constant(gcd))?;
    // One that may be negative (`n + f - 1`) is checked before the launch.
    let runs = stride.terms().any(|(_, times)| times > 0);
    runs.then_some((stride, gcd))
}

fn gcd(a: i64, b: i64) -> i64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_rows_that_are_touched_are_rows() {
        let (n, x, y) = (Symbol::Size(0), Symbol::Global(0), Symbol::Global(1));
        let s = Poly::symbol;
        let row = s(y)
            .times(&s(n))
            .unwrap()
            .times(&Poly::constant(5))
            .unwrap();
        let found = rows(&row.plus(&s(x), 3).unwrap()).unwrap();
        assert_eq!(
            found.forms[0].stride,
            s(n).times(&Poly::constant(5)).unwrap()
        );
        assert_eq!(found.forms[0].terms, [(y, 1)]);
        assert!(found.forms[1].is_unit());
        assert_eq!(found.forms[1].terms, [(x, 3)]);
        let fixed = s(y).times(&Poly::constant(512)).unwrap();
        let found = rows(&fixed.plus(&s(x), 1).unwrap()).unwrap();
        assert_eq!(found.forms[0].stride, Poly::constant(512));
        assert_eq!(found.forms[0].terms, [(y, 1)]);
        assert!(found.forms[1].is_unit());
    }

    #[test]
    fn a_window_is_rows_and_columns() {
        let (n, x, y) = (Symbol::Size(0), Symbol::Global(0), Symbol::Global(1));
        let (i, j) = (Symbol::Loop(0), Symbol::Loop(1));
        let s = Poly::symbol;
        let width = s(n).plus(&Poly::constant(2), 1).unwrap();
        let row = s(y).plus(&s(i), 1).unwrap().times(&width).unwrap();
        let index = row.plus(&s(x), 1).unwrap().plus(&s(j), 1).unwrap();
        let found = rows(&index.plus(&Poly::constant(5), 1).unwrap()).unwrap();
        assert_eq!(found.base, Poly::constant(5));
        assert_eq!(found.forms.len(), 2);
        assert_eq!(found.forms[0].stride, width);
        assert_eq!(found.forms[0].terms, [(y, 1), (i, 1)]);
        assert!(found.forms[1].is_unit());
        assert_eq!(found.forms[1].terms, [(x, 1), (j, 1)]);
        let backwards = Poly::default().plus(&s(x), -1).unwrap();
        assert_eq!(rows(&backwards), None);
        assert_eq!(rows(&s(x).times(&s(y)).unwrap()), None);
    }
}
