//! Where polynomials lie: the largest and the smallest value over all points and all turns of the loops.
//!
//! The bounds are polynomials in the sizes and in the ends of the dimensions ([`Symbol::Unknown`] of the dimension's
//! number), so that a host function can compute them. They hold where no size is negative.

use warpwright_cudac::affine::{Poly, Symbol};

use crate::ir::Kernel;

/// The first point after those of a dimension, in polynomials of this file.
pub fn end(dim: usize) -> Symbol {
    Symbol::Unknown(dim)
}

/// A polynomial that is nowhere smaller than this one; none if it grows too large.
pub fn largest(kernel: &Kernel, poly: &Poly) -> Option<Poly> {
    bound(kernel, poly, true, &mut Vec::new())
}

/// A polynomial that is nowhere larger than this one; none if it grows too large.
pub fn smallest(kernel: &Kernel, poly: &Poly) -> Option<Poly> {
    bound(kernel, poly, false, &mut Vec::new())
}

/// What must not be negative for these bounds to hold, apart from the sizes: lengths of rows such as `n + f - 1`.
pub fn assumptions(kernel: &Kernel) -> Vec<Poly> {
    let mut all = Vec::new();
    let indices = kernel.accesses.iter().filter_map(|a| a.affine());
    for poly in indices.chain(kernel.ranges.iter().map(|(poly, _)| poly)) {
        bound(kernel, poly, true, &mut all);
        bound(kernel, poly, false, &mut all);
    }
    all
}

fn bound(kernel: &Kernel, poly: &Poly, upper: bool, assumed: &mut Vec<Poly>) -> Option<Poly> {
    let mut poly = poly.clone();
    // Inner loops depend on outer ones, so the last symbol goes first; places go last.
    for number in (0..kernel.loops.len()).rev() {
        let counter = &kernel.loops[number];
        let last = counter.high.plus(&Poly::constant(1), -1)?;
        poly = replaced(
            &poly,
            Symbol::Loop(number),
            &counter.low,
            &last,
            upper,
            assumed,
        )?;
    }
    for (number, dim) in kernel.dims.iter().enumerate() {
        let last = Poly::symbol(end(number)).plus(&Poly::constant(1), -1)?;
        let low = match &dim.low[..] {
            // Of several the largest counts; zero is below all of them, since places are never negative.
            [low] if low.as_constant().is_some_and(|low| low >= 0) => low.clone(),
            _ => Poly::default(),
        };
        poly = replaced(&poly, dim.symbol, &low, &last, upper, assumed)?;
    }
    Some(poly)
}

/// With the end of the symbol's range that makes it larger, or smaller.
fn replaced(
    poly: &Poly,
    symbol: Symbol,
    low: &Poly,
    high: &Poly,
    upper: bool,
    assumed: &mut Vec<Poly>,
) -> Option<Poly> {
    if !poly.symbols().contains(&symbol) {
        return Some(poly.clone());
    }
    let signs = |poly: &Poly| {
        (
            poly.terms().any(|(_, t)| t > 0),
            poly.terms().any(|(_, t)| t < 0),
        )
    };
    if let Some(times) = poly.coefficient(symbol)
        && times.symbols().iter().all(|s| matches!(s, Symbol::Size(_)))
    {
        let positive = match signs(&times) {
            (true, false) => true,
            (false, _) => false,
            (true, true) => {
                if !assumed.contains(&times) {
                    assumed.push(times);
                }
                true
            }
        };
        return poly.substituted(symbol, if positive == upper { high } else { low });
    }
    // Each term by itself: the other factors of a term are not negative.
    let mut out = Poly::default();
    for (symbols, times) in poly.terms() {
        let mut term = Poly::constant(times);
        for of in symbols {
            term = term.times(&Poly::symbol(*of))?;
        }
        let by = if (times > 0) == upper { high } else { low };
        out = out.plus(&term.substituted(symbol, by)?, 1)?;
    }
    Some(out)
}
