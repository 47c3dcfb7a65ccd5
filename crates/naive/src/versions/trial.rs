//! At which sizes a version is tried: one point, more than one tile, whole tiles, whole vectors, parts of loops that are
//! full and parts that are not. A size that an entry has built in is tried with its value.

use crate::emit::{self, Condition, Generated, extents};
use crate::ir::{Dim, Flat, Kernel, Statement};
use warpwright_cudac::affine::{Poly, Symbol};

/// One launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Case {
    /// By number of the size.
    pub(super) sizes: Vec<i64>,
    /// By dimension: one past the last point.
    pub(super) ends: Vec<i64>,
    pub(super) grid: [u64; 3],
    pub(super) block: [u32; 3],
    /// By array: elements.
    pub(super) lengths: Vec<i64>,
}

/// Most elements of all arrays together.
const MOST_ELEMENTS: i64 = 4 << 20;
/// Most turns of loops of all points together.
const MOST_TURNS: i64 = 6 << 20;
/// Elements of an array of which nothing is known: some bytes' worth of rows.
const UNKNOWN: i64 = 1 << 18;

/// The launches for a version.
pub(super) fn cases(kernel: &Kernel, generated: &Generated) -> Vec<Case> {
    let mut found: Vec<Case> = Vec::new();
    let entry = generated.entries.first();
    let tile = entry.map_or([1; 3], |e| e.tile.map(i64::from));
    // Turns of a part, from the condition that asks for whole parts.
    let turns = generated
        .entries
        .iter()
        .flat_map(|e| &e.conditions)
        .filter_map(|c| match c {
            Condition::Multiple(poly, by) if of_loop(kernel, poly) => Some(*by),
            _ => None,
        });
    let turns = turns.max().unwrap_or(4);
    let mut fixed: Vec<Vec<(usize, i64)>> = vec![Vec::new()];
    for entry in &generated.entries {
        let own: Vec<(usize, i64)> = entry
            .conditions
            .iter()
            .filter_map(|c| match c {
                Condition::Is(size, value) => Some((*size, *value)),
                _ => None,
            })
            .collect();
        if !fixed.contains(&own) {
            fixed.push(own);
        }
    }
    for fixed in &fixed {
        for (points, counts) in [
            ([1, 1, 1, 1], 1),
            ([tile[0] + 3, 3, 2, 3], turns + 3),
            ([5, tile[1] + 2, 3, 2], 2 * turns + 1),
            ([tile[0] + 4, 4, 2, 2], 2 * turns + 4),
            ([4, tile[1] + 4, 1, 3], turns + 8),
            ([tile[0], tile[1], 2, 2], 3 * turns),
            ([2 * tile[0], tile[1], 1, 1], turns),
        ] {
            let case = case(kernel, points, counts, fixed);
            if let Some(case) = case.filter(|c| !found.contains(c)) {
                found.push(case);
            }
        }
    }
    found
}

/// Is it the number of turns of a loop?
fn of_loop(kernel: &Kernel, poly: &Poly) -> bool {
    let span = |l: &crate::ir::Loop| l.high.plus(&l.low, -1);
    kernel.loops.iter().any(|l| span(l).as_ref() == Some(poly))
}

fn uses(poly: &Poly, size: usize) -> bool {
    poly.symbols().contains(&Symbol::Size(size))
}

fn case(kernel: &Kernel, points: [i64; 4], turns: i64, fixed: &[(usize, i64)]) -> Option<Case> {
    let mut sizes: Vec<Option<i64>> = vec![None; kernel.sizes.len()];
    // What a size is taken from, as a filter from the rows of an image, comes from the loops.
    let of_loops = |at: usize| {
        let own = |l: &crate::ir::Loop| uses(&l.high, at) || uses(&l.low, at);
        kernel.loops.iter().any(own).then_some(turns)
    };
    let set = |at: usize| {
        let found = fixed.iter().find(|(n, _)| *n == at);
        found.map(|(_, value)| *value)
    };
    for (at, size) in sizes.iter_mut().enumerate() {
        let mut ends = Vec::new();
        for (dim, points) in kernel.dims.iter().zip(points) {
            for high in dim.high.iter().filter(|h| uses(h, at)) {
                let times = high.coefficient(Symbol::Size(at));
                ends.extend(
                    match times.and_then(|times| times.as_constant()) {
                        // `n - 2` points want two more.
                        Some(1) => high.evaluate(|s| match s {
                            Symbol::Size(n) if n == at => Some(0),
                            Symbol::Size(n) => set(n).or_else(|| of_loops(n)).or(Some(0)),
                            _ => None,
                        }),
                        Some(_) => None,
                        // A factor beside others.
                        None if kernel.flat.is_some() => Some(points - 2),
                        None => Some(high.constant_term()),
                    }
                    .map(|add| points - add),
                );
            }
        }
        *size = set(at).or_else(|| ends.into_iter().chain(of_loops(at)).max());
        // What points begin behind is in front of what they end at.
        let begins = kernel
            .dims
            .iter()
            .any(|d| d.low.iter().any(|l| uses(l, at)));
        *size = size.or(begins.then_some(1));
    }
    // A launch without a guard is rounded up to whole blocks.
    let open = kernel.flat.is_none() && kernel.dims.iter().any(|d| d.high.is_empty());
    let points = points.map(|p| if open { p + 32 } else { p });
    let largest = sizes
        .iter()
        .flatten()
        .copied()
        .chain(points)
        .chain([turns])
        .max()?;
    // Lengths of rows alone: enough, and whole vectors.
    let rows = (largest + 7) / 8 * 8;
    let sizes: Vec<i64> = sizes.into_iter().map(|s| s.unwrap_or(rows)).collect();
    let mut block = [1u32; 3];
    for dim in kernel.dims.iter().filter(|_| kernel.flat.is_none()) {
        if let Symbol::Global(axis) = dim.symbol {
            block[usize::from(axis)] = if kernel.dims.len() == 1 {
                32
            } else {
                [16, 4, 1][usize::from(axis)]
            };
        }
    }
    for (threads, known) in block.iter_mut().zip(kernel.block) {
        if let Some(known) = known {
            *threads = u32::try_from(known).ok()?;
        }
    }
    let mut grid = [1u64; 3];
    let mut ends = Vec::new();
    let mut sizes = sizes;
    if let Some(flat) = &kernel.flat {
        let (launched, own) = flat_launch(kernel, flat, points, &mut sizes)?;
        let per = i64::from(
            *block
                .first()
                .filter(|_| kernel.block[0].is_some())
                .unwrap_or(&32),
        );
        block = [u32::try_from(per).ok()?, 1, 1];
        grid[0] = covering(kernel.dims.last()?, (launched + per - 1) / per)?;
        ends = own;
    }
    let of_sizes = |poly: &Poly| emit::value(poly, &sizes, &[]);
    let launched = kernel.dims.iter().zip(points);
    for (dim, points) in launched.filter(|_| kernel.flat.is_none()) {
        let axis = dim.axis();
        let wanted = dim
            .high
            .iter()
            .map(of_sizes)
            .min()
            .unwrap_or(Some(points))?;
        if kernel.single[axis] {
            let room = if kernel.dims.len() == 1 { 1024 } else { 16 };
            block[axis] = u32::try_from(wanted.clamp(1, room)).ok()?;
        }
        let per = i64::from(block[axis]);
        let blocks = match kernel.single[axis] {
            true => 1,
            false => (wanted.max(1) + per - 1) / per,
        };
        let end = wanted.min(blocks * per).min(if dim.high.is_empty() {
            blocks * per
        } else {
            wanted
        });
        grid[axis] = covering(dim, blocks)?;
        ends.push(match dim.high.is_empty() {
            true => blocks * per,
            false => end,
        });
    }
    // Points below a guard's lower bound are none.
    for (dim, end) in kernel.dims.iter().zip(&ends) {
        for low in &dim.low {
            if of_sizes(low)? >= *end {
                return None;
            }
        }
    }
    let value = |poly: &Poly| emit::value(poly, &sizes, &ends);
    let mut lengths = Vec::new();
    for (number, (array, found)) in kernel.arrays.iter().zip(extents(kernel)).enumerate() {
        let length = match (array.length, found) {
            (Some(length), _) => length,
            // What is known of it comes on top.
            (None, None) => {
                let own = kernel.accesses.iter().filter(|a| a.array == number);
                let own = own.filter_map(|a| crate::bounds::largest(kernel, a.affine()?));
                own.filter_map(|high| value(&high))
                    .max()
                    .unwrap_or(0)
                    .max(0)
                    + UNKNOWN
            }
            // Conditions keep accesses inside that are in front of the array here; without them the kernel as written
            // faults, which says nothing.
            (None, Some((_, highs))) => highs.iter().map(value).max().unwrap_or(Some(0))? + 1,
        };
        lengths.push(length.max(1));
    }
    if !apart(kernel, &ends, &value) {
        return None;
    }
    let total = lengths.iter().try_fold(0i64, |a, b| a.checked_add(*b))?;
    let mut work: i64 = ends.iter().product();
    for of in &kernel.loops {
        let span = of.high.plus(&of.low, -1)?;
        let span = crate::bounds::largest(kernel, &span).and_then(|s| value(&s));
        work = work.checked_mul(span.unwrap_or(turns).max(1))?;
    }
    (ends.iter().all(|end| *end > 0) && total <= MOST_ELEMENTS && work <= MOST_TURNS).then_some(
        Case {
            sizes,
            ends,
            grid,
            block,
            lengths,
        },
    )
}

/// How many blocks go over so many: half of them where the text has a loop over the grid.
fn covering(dim: &Dim, blocks: i64) -> Option<u64> {
    u64::try_from(if dim.whole { (blocks + 1) / 2 } else { blocks }).ok()
}

/// How many places a launch has that covers so many points of the last dimension, and where the dimensions end. A size
/// that is nothing but the number of all places is set to it.
fn flat_launch(
    kernel: &Kernel,
    flat: &Flat,
    points: [i64; 4],
    sizes: &mut [i64],
) -> Option<(i64, Vec<i64>)> {
    let value = |poly: &Poly, sizes: &[i64]| emit::value(poly, sizes, &[]);
    let last = kernel.dims.len().checked_sub(1)?;
    let mut ends = Vec::new();
    let mut rows = 1i64;
    for (radix, dim) in flat.radices.iter().zip(&kernel.dims) {
        let radix = value(radix, sizes)?;
        if radix <= 0 {
            return None;
        }
        rows = rows.checked_mul(radix)?;
        let mut end = radix;
        for high in &dim.high {
            end = end.min(value(high, sizes)?);
        }
        ends.push(end);
    }
    let mut end = kernel.dims[last].high.is_empty().then_some(points[last]);
    for high in &kernel.dims[last].high {
        let high = value(high, sizes)?;
        end = Some(end.map_or(high, |e| e.min(high)));
    }
    let mut end = end?;
    for high in &flat.high {
        if let Some((Some(size), 0)) = high.as_extent()
            && !flat.radices.iter().any(|r| uses(r, size))
        {
            sizes[size] = rows.checked_mul(end)?;
        }
        let high = value(high, sizes)?;
        if high % rows != 0 {
            return None;
        }
        end = end.min(high / rows);
    }
    ends.push(end);
    Some((rows.checked_mul(end)?, ends))
}

/// Does every point store elements of its own? Where it does not, the kernel as written races with itself.
fn apart(kernel: &Kernel, ends: &[i64], value: &impl Fn(&Poly) -> Option<i64>) -> bool {
    let mut stores = Vec::new();
    for statement in &kernel.body {
        statement.walk(&mut |s| {
            if let Statement::Store { access, .. } = s {
                stores.push(*access);
            }
        });
    }
    let one = |access: usize| -> Option<bool> {
        let poly = kernel.accesses[access].affine()?;
        let mut strides = Vec::new();
        for symbol in poly.points() {
            let times = value(&poly.coefficient(symbol)?)?.abs();
            let range = match symbol {
                Symbol::Loop(number) => {
                    let of = &kernel.loops[number];
                    let span = of.high.plus(&of.low, -1)?;
                    value(&crate::bounds::largest(kernel, &span)?)?
                }
                symbol => *ends.get(kernel.dim(symbol)?)?,
            };
            strides.push((times, range));
        }
        strides.sort_unstable();
        let mut reach = 0;
        for (times, range) in strides {
            if range > 1 && times <= reach {
                return Some(false);
            }
            reach += times * (range - 1).max(0);
        }
        Some(true)
    };
    stores
        .into_iter()
        .all(|access| one(access).unwrap_or(false))
}
