//! Which dimensions a kernel has, and how its arrays are laid out.
//!
//! A plain pointer with the subscript `k*M*N + j*N + i - 1` is an array of rows: what `i`, `j` and
//! `k` are multiplied by are the strides, a stride divided by the next smaller one is the length of
//! a dimension, and what is left is split by the strides, each part to the nearest cell.

use std::collections::BTreeMap;

use super::machine::{Action, RawAccess, Trace};
use warpwright_cudac::affine::{Poly, Symbol};
use warpwright_cudac::diag::{Diagnostic, Span};

/// The kernel's dimensions and accesses.
#[derive(Debug)]
pub(super) struct Shape {
    /// Outermost first: the symbol, and what is added to it where the kernel stores.
    pub(super) dims: Vec<(Symbol, i64)>,
    /// By access.
    pub(super) accesses: Vec<Access>,
    /// By array: the lengths of all dimensions but the first, if it is used.
    pub(super) lengths: Vec<Option<Vec<Length>>>,
}

/// A size plus a number.
pub(super) type Length = (Option<usize>, i64);

/// Subscripts: a point symbol, if any, plus a number.
pub(super) type Access = Vec<(Option<Symbol>, i64)>;

type Found<T> = Result<T, Diagnostic>;

/// Finds out everything from the accesses.
pub(super) fn find(trace: &Trace) -> Found<Shape> {
    let mut lengths: Vec<Option<Vec<Length>>> = vec![None; trace.arrays.len()];
    let used = trace.all_used();
    let own = |access: &usize| used.contains(access);
    let mut strides = Vec::new();
    for (number, array) in trace.arrays.iter().enumerate() {
        strides.push(array_strides(trace, &own, number, &array.name)?);
    }
    let mut accesses = Vec::new();
    for (number, access) in trace.accesses.iter().enumerate() {
        if !used.contains(&number) {
            accesses.push(Access::new());
            continue;
        }
        let array = &trace.arrays[access.array].name;
        let (subscripts, own) = if access.lengths.is_empty() {
            linear(trace, access, &strides[access.array])?
        } else {
            nested(access, array)?
        };
        match &lengths[access.array] {
            None => lengths[access.array] = Some(own),
            Some(before) if *before == own => {}
            Some(_) => {
                let what = format!("`{array}` is accessed in two shapes");
                return Err(Diagnostic::error("stencil::shape", what)
                    .label(access.span.clone(), "other rows than before")
                    .help("use one form for all accesses of an array"));
            }
        }
        accesses.push(subscripts);
    }
    // Only how far these reach matters.
    for &number in trace.ahead.iter().filter(|number| !used.contains(number)) {
        let access = &trace.accesses[number];
        let array = &trace.arrays[access.array].name;
        let found = match access.lengths.is_empty() {
            true => linear(trace, access, &strides[access.array]),
            false => nested(access, array),
        };
        if let Ok((subscripts, own)) = found
            && lengths[access.array].as_ref() == Some(&own)
        {
            accesses[number] = subscripts;
        }
    }
    let dims = dims(trace, &accesses)?;
    Ok(Shape {
        dims,
        accesses,
        lengths,
    })
}

/// The dimensions, from the first store.
fn dims(trace: &Trace, accesses: &[Access]) -> Found<Vec<(Symbol, i64)>> {
    let stores = trace
        .actions
        .iter()
        .filter_map(|action| match action.bare() {
            Action::Store(access, ..) => Some(*access),
            _ => None,
        });
    let mut dims: Vec<(Symbol, i64)> = Vec::new();
    for store in stores {
        for &(point, offset) in &accesses[store] {
            let Some(point) = point else { continue };
            if !dims.iter().any(|(p, _)| *p == point) {
                dims.push((point, offset));
            }
        }
        if !dims.is_empty() {
            break;
        }
    }
    // A block has one place in the grid, and its threads have others that depend on it.
    for axis in 0..3 {
        let has = |symbol| dims.iter().any(|(point, _)| *point == symbol);
        if has(Symbol::Global(axis)) && has(Symbol::BlockIdx(axis)) {
            let what = "places of blocks and of threads along one axis are different dimensions";
            let problem = Diagnostic::error("stencil::shape", what);
            let first = used_store(trace);
            return Err(match first {
                Some(span) => problem.label(span, "not a dimension each"),
                None => problem,
            });
        }
    }
    let written = |point: &Symbol| dims.iter().any(|(p, _)| p == point);
    if let Some((point, bounds)) = trace.domain.iter().find(|(p, _)| !written(p)) {
        let name = trace
            .names
            .get(point)
            .map_or("a place", |(name, _)| &**name);
        let what = format!("all points along `{name}` write the same elements");
        let problem = Diagnostic::error("stencil::race", what);
        let problem = match bounds.ends.first() {
            Some((_, span)) => problem.label(span.clone(), "there are several points"),
            None => problem,
        };
        return Err(problem.help("every point stores to an element of its own"));
    }
    Ok(dims)
}

/// Where the first store stands.
fn used_store(trace: &Trace) -> Option<Span> {
    trace.actions.iter().find_map(|action| match action.bare() {
        Action::Store(access, ..) => Some(trace.accesses[*access].span.clone()),
        _ => None,
    })
}

/// The strides of an array that is accessed through a plain pointer, outermost first.
fn array_strides(
    trace: &Trace,
    used: &impl Fn(&usize) -> bool,
    number: usize,
    name: &str,
) -> Found<Vec<(Symbol, Poly)>> {
    let mut strides: BTreeMap<Symbol, (Poly, Span)> = BTreeMap::new();
    let own = trace.accesses.iter().enumerate().filter(|(n, _)| used(n));
    let own = own.map(|(_, access)| access);
    for access in own.filter(|a| a.array == number && a.lengths.is_empty()) {
        let index = index(trace, access)?;
        for point in index.points() {
            let stride = index.coefficient(point);
            let stride = stride.filter(|s| s.points().is_empty() && !s.is_zero());
            let Some(stride) = stride else {
                return Err(not_affine(access));
            };
            match strides.get(&point) {
                None => {
                    strides.insert(point, (stride, access.span.clone()));
                }
                Some((before, _)) if *before == stride => {}
                Some((_, span)) => {
                    let what = format!("`{name}` is accessed with different strides");
                    return Err(Diagnostic::error("stencil::shape", what)
                        .label(access.span.clone(), "another stride than before")
                        .label(span.clone(), "first here")
                        .help("rows of an array have one length"));
                }
            }
        }
    }
    let mut sorted: Vec<(Symbol, Poly)> = strides.into_iter().map(|(p, (s, _))| (p, s)).collect();
    sorted.sort_by_key(|(point, stride)| (stride.degree(), stride.as_constant(), *point));
    sorted.reverse();
    Ok(sorted)
}

/// The subscript of a plain pointer, from the beginning of the array.
fn index(trace: &Trace, access: &RawAccess) -> Found<Poly> {
    let mut index = access.offset.clone();
    for subscript in &access.subscripts {
        index = index.plus(subscript, 1).ok_or_else(|| not_affine(access))?;
    }
    let mut places = trace.places.clone();
    let index = places.merged(index);
    // What is added to a pointer may presume blocks of its own.
    if index.is_raw() || places != trace.places {
        return Err(not_a_place(access));
    }
    Ok(index)
}

/// Subscripts and row lengths of `a[k*M*N + j*N + i]`.
fn linear(
    trace: &Trace,
    access: &RawAccess,
    strides: &[(Symbol, Poly)],
) -> Found<(Access, Vec<Length>)> {
    let array = &trace.arrays[access.array].name;
    let index = index(trace, access)?;
    // One row of coefficients, read along several dimensions.
    if strides.len() > 1 && strides.iter().all(|(_, s)| s.as_constant() == Some(1)) {
        let subscript = index.as_subscript().ok_or_else(|| not_affine(access))?;
        return Ok((vec![subscript], Vec::new()));
    }
    let innermost = strides.last().map(|(_, s)| s.as_constant());
    if innermost.is_some_and(|s| s != Some(1)) {
        let what = format!("neighbours are not next to each other in `{array}`");
        return Err(Diagnostic::error("stencil::stride", what)
            .label(access.span.clone(), "no dimension has stride 1"));
    }
    let mut lengths = Vec::new();
    for pair in strides.windows(2) {
        let length = pair[0].1.divided_by(&pair[1].1);
        let length = length.and_then(|l| l.as_extent());
        let length = length.filter(|l| l.0.is_some() || l.1 > 1).ok_or_else(|| {
            let what = format!("the rows of `{array}` have no length that is a size plus a number");
            Diagnostic::error("stencil::shape", what).label(access.span.clone(), "in this access")
        })?;
        lengths.push(length);
    }
    let mut rest = index.clone();
    let mut subscripts = Vec::new();
    for (point, stride) in strides {
        let used = index.points().contains(point);
        // "To the nearest cell" is meant from where the source's own iterator is.
        let named = trace.names.get(point).filter(|_| used);
        let from = named.map_or(0, |(_, offset)| *offset);
        if used {
            let place = Poly::symbol(*point).plus(&Poly::constant(from), 1);
            let term = place.and_then(|place| place.times(stride));
            let less = term.and_then(|term| rest.plus(&term, -1));
            rest = less.ok_or_else(|| not_affine(access))?;
        }
        subscripts.push((used.then_some(*point), from));
    }
    for (subscript, (_, stride)) in subscripts.iter_mut().zip(strides) {
        let (times, left) = rest.split(stride).ok_or_else(|| not_affine(access))?;
        subscript.1 += times;
        rest = left;
    }
    if strides.is_empty() {
        // No point matters: an array of coefficients with a constant subscript.
        let value = rest.as_constant().ok_or_else(|| not_affine(access))?;
        return Ok((vec![(None, value)], lengths));
    }
    if !rest.is_zero() {
        let what = format!("this place in `{array}` is not a number of rows and cells away");
        return Err(
            Diagnostic::error("stencil::affine", what).label(access.span.clone(), "not understood")
        );
    }
    Ok((subscripts, lengths))
}

/// Subscripts and row lengths of `a[k][j][i]`.
fn nested(access: &RawAccess, array: &str) -> Found<(Access, Vec<Length>)> {
    let mut lengths = Vec::new();
    for length in &access.lengths {
        lengths.push(length.as_extent().ok_or_else(|| {
            let what = format!("the rows of `{array}` have no length that is a size plus a number");
            Diagnostic::error("stencil::shape", what).label(access.span.clone(), "in this access")
        })?);
    }
    if !access.offset.is_zero() {
        return Err(not_affine(access));
    }
    let mut subscripts = Vec::new();
    for subscript in &access.subscripts {
        if subscript.is_raw() {
            return Err(not_a_place(access));
        }
        subscripts.push(subscript.as_subscript().ok_or_else(|| not_affine(access))?);
    }
    Ok((subscripts, lengths))
}

fn not_affine(access: &RawAccess) -> Diagnostic {
    Diagnostic::error(
        "stencil::affine",
        "a subscript is not an iterator plus a constant",
    )
    .label(access.span.clone(), "not affine in the place of the point")
}

fn not_a_place(access: &RawAccess) -> Diagnostic {
    let what = "a subscript depends on the place of the thread in its block";
    Diagnostic::error("stencil::affine", what)
        .label(access.span.clone(), "not the place of a point")
        .help("a point is `blockIdx.x * blockDim.x + threadIdx.x` and so on, plus a constant")
}
