//! Why points do not disturb each other although their accesses to an array are not all the same: three forms of everyday
//! code. Elements are taken for rows and columns; where rows are shorter than what is stored in them, two points may
//! meet, and there the kernel as written races with itself.

use warpwright_cudac::affine::{Poly, Symbol};

use crate::ir::{Kernel, Statement, Value};

/// Is an array a mark: all that is done with it is to store the same number?
pub(super) fn mark(kernel: &Kernel, array: usize) -> bool {
    let mut number: Option<&Value> = None;
    let (mut stored, mut fits) = (0, true);
    for statement in &kernel.body {
        statement.walk(&mut |s| {
            let Statement::Store {
                access,
                member,
                op,
                value,
            } = s
            else {
                return;
            };
            if kernel.accesses[*access].array == array {
                stored += 1;
                fits &= member.is_none() && op == "=" && is_number(value);
                fits &= number.is_none_or(|before| before == value);
                number = Some(value);
            }
        });
    }
    let own = kernel.accesses.iter().filter(|a| a.array == array);
    let all: Vec<_> = own.collect();
    fits && stored > 0 && stored == all.len() && all.iter().all(|a| a.affine().is_some())
}

fn is_number(value: &Value) -> bool {
    match value {
        Value::Text(_) => true,
        Value::Int(poly, _) => poly.as_constant().is_some(),
        Value::Unary(op, inner) => op == "-" && is_number(inner),
        _ => false,
    }
}

/// Does a load lie where no point stores: in the row of the stores, at a place that the guards leave out?
pub(super) fn outside(kernel: &Kernel, load: &Poly, store: &Poly) -> bool {
    let apart = |dim: &crate::ir::Dim| {
        let apart = store.plus(load, -1)?;
        let stride = apart.coefficient(dim.symbol)?;
        if stride.is_zero() || !of_sizes(&stride) {
            return None;
        }
        let rest = apart.plus(&stride.times(&Poly::symbol(dim.symbol))?, -1)?;
        // store - load = stride * (place - where the load is)
        let place = Poly::default().plus(&rest, -1)?.divided_by(&stride)?;
        if !of_sizes(&place) {
            return None;
        }
        let below = |low: &Poly| low.plus(&place, -1).and_then(|p| p.as_constant()) >= Some(1);
        let above = |high: &Poly| place.plus(high, -1).and_then(|p| p.as_constant()) >= Some(0);
        Some(dim.low.iter().any(below) || dim.high.iter().any(above))
    };
    let flat = kernel.flat.is_some();
    !flat && kernel.dims.iter().any(|dim| apart(dim) == Some(true))
}

fn of_sizes(poly: &Poly) -> bool {
    let symbols = poly.symbols();
    symbols.iter().all(|s| matches!(s, Symbol::Size(_)))
}

/// Is each access to an array at `(x, y)` or `(y, x)` with `y >= x`, x the point? Of each pair, the smaller is the point.
pub(super) fn triangle(kernel: &Kernel, array: usize) -> bool {
    let [dim] = &kernel.dims[..] else {
        return false;
    };
    let own = kernel.accesses.iter().filter(|a| a.array == array);
    let Some(all) = own.map(|a| a.affine()).collect::<Option<Vec<&Poly>>>() else {
        return false;
    };
    let rows = all.iter().filter_map(|p| p.coefficient(dim.symbol));
    let mut rows = rows.flat_map(|row| {
        let less = row.plus(&Poly::constant(1), -1);
        [Some(row), less].into_iter().flatten()
    });
    rows.any(|row| {
        let is_row = of_sizes(&row) && row.as_constant().is_none_or(|row| row > 1);
        is_row
            && all
                .iter()
                .all(|p| in_triangle(kernel, p, &row, dim.symbol) == Some(true))
    })
}

fn in_triangle(kernel: &Kernel, poly: &Poly, row: &Poly, point: Symbol) -> Option<bool> {
    let place = Poly::symbol(point);
    let in_row = poly.plus(&row.times(&place)?, -1)?;
    let in_column = poly.plus(&place, -1)?.divided_by(row);
    let of = |other: Poly| {
        if other == place {
            return Some(true);
        }
        match other.symbols()[..] {
            [Symbol::Loop(number)] if other == Poly::symbol(Symbol::Loop(number)) => {
                let low = &kernel.loops.get(number)?.low;
                Some(low.plus(&place, -1)?.as_constant()? >= 0)
            }
            _ => None,
        }
    };
    of(in_row).or_else(|| of(in_column?))
}
