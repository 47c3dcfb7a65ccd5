//! At which sizes a version is tried: one point, more than one tile, more than one chunk, odd and even rows.
//!
//! Sizes that are parameters are chosen. Sizes that the file fixes (`#define N 8192`, `const int n = 512;`) are made
//! small in a copy of the file, for the input and for the version alike: what is tried then is the same plan for the
//! same stencil on a smaller grid.

use std::collections::BTreeSet;

use crate::evaluate::{Sizes, elements, extent, range};
use crate::ir::{Extent, Stencil, Target};

use crate::sweep;
use warpwright_cudac::constants::{constants, with_values};
use warpwright_ladder::Read;

use super::Version;
use super::problem::Problem;

/// One grid.
pub(super) struct Grid {
    /// The input, with small constants where it has large ones.
    pub(super) problem: Problem,
    /// Constants were made smaller.
    pub(super) shrunk: bool,
    pub(super) sizes: Sizes,
}

/// Most elements of all arrays together.
const MOST_ELEMENTS: i64 = 6 << 20;
/// Most points of a domain.
const MOST_POINTS: i64 = 400_000;

/// The grids for a version.
pub(super) fn grids(problem: &Problem, version: &Version, read: &Read<'_>) -> Vec<Grid> {
    let mut found: Vec<Grid> = Vec::new();
    let mut seen: BTreeSet<(String, Vec<i64>)> = BTreeSet::new();
    for cells in cells(&problem.stencil, version) {
        let Some(grid) = grid(problem, &cells, read) else {
            continue;
        };
        let text = grid
            .problem
            .cuda
            .as_ref()
            .map(|c| c.file.source.text.to_string());
        let key = (
            text.unwrap_or_default(),
            grid.sizes.values().copied().collect(),
        );
        if seen.insert(key) {
            found.push(grid);
        }
    }
    found
}

/// Points along each dimension.
fn cells(stencil: &Stencil, version: &Version) -> Vec<Vec<i64>> {
    let count = stencil.dims.len();
    // Points of a block along each dimension: the largest of all kernels.
    let mut per = vec![1i64; count];
    for entry in &version.sweep.entries {
        // Blocks at the border have no tile.
        let sweep::Grid::Box(along) = &entry.grid else {
            continue;
        };
        for (along, per) in along.iter().zip(per.iter_mut().rev()) {
            *per = (*per).max(i64::from(along.per));
        }
    }
    let from_end = |n: usize| count.checked_sub(n);
    let tile = |x: i64, y: i64, z: i64| {
        let mut cells = vec![1; count];
        for (at, n) in [(1, x), (2, y), (3, z)] {
            if let Some(at) = from_end(at) {
                cells[at] = n;
            }
        }
        cells
    };
    let [x, y, z] = [1, 2, 3].map(|n| from_end(n).map_or(1, |at| per[at]));
    match count {
        2 => vec![
            vec![1, 1],
            tile(x + 3, 6, 1),
            tile(x.min(40) + 2, y + 5, 1),
            // Rows of both parities, whatever the halo.
            tile(5, 3, 1),
            tile(6, 4, 1),
        ],
        _ => vec![
            vec![1; count],
            tile(x + 3, y + 2, 4),
            tile(x.min(30) + 2, 3, z.min(300) + 3),
            tile(4, 5, 2),
            tile(5, 4, 3),
            // The same where one size is that of all dimensions.
            tile(4, 4, 2),
        ],
    }
}

fn grid(problem: &Problem, cells: &[i64], read: &Read<'_>) -> Option<Grid> {
    let as_it_is = || {
        Some(Grid {
            problem: problem.clone(),
            shrunk: false,
            sizes: small_sizes(&problem.stencil, cells)?,
        })
    };
    let smaller = || {
        let smaller = shrunk(problem, cells, read)?;
        let sizes = small_sizes(&smaller.stencil, cells)?;
        Some(Grid {
            problem: smaller,
            shrunk: true,
            sizes,
        })
    };
    // What the file fixes is one size; others are odd and tiny.
    let mut dims = problem.stencil.dims.values();
    match dims.any(|dim| dim.extent.parameter.is_none()) {
        true => smaller().or_else(as_it_is),
        false => as_it_is().or_else(smaller),
    }
}

/// Sizes for so many points along each dimension, if all of it is small; dimensions of constant size stay as they are.
pub fn small_sizes(stencil: &Stencil, cells: &[i64]) -> Option<Sizes> {
    let wanted = |extent: Extent| {
        let dims = stencil.dims.values().zip(cells);
        let of = dims.filter(|(d, _)| d.extent.parameter == extent.parameter);
        of.map(|(d, cells)| cells + d.low + d.high - d.extent.add)
            .max()
    };
    let mut sizes = Sizes::new();
    let mut alone = Vec::new();
    for parameter in stencil.parameters.keys() {
        let of = Extent {
            parameter: Some(parameter),
            add: 0,
        };
        let size = wanted(of);
        if size.is_none() {
            alone.push(parameter);
        }
        sizes.push(size.unwrap_or(1));
    }
    // A size that is the length of rows alone: enough, and six more, which are even where the points are.
    let longest = stencil
        .dims
        .values()
        .map(|d| range(d, &sizes).1 + d.high)
        .max();
    for parameter in alone {
        sizes[parameter] = longest? + 6;
    }
    let points = stencil.dims.values().map(|d| {
        let (low, end) = range(d, &sizes);
        (end - low).max(0)
    });
    let points = points.fold(1i64, i64::saturating_mul);
    let mut total = 0i64;
    for array in stencil.arrays.values() {
        total = total.saturating_add(elements(&array.name, &array.extents, &sizes).ok()?);
    }
    let borders = stencil.border.iter().all(|b| inside(b, &sizes));
    let fits = points > 0 && points <= MOST_POINTS && total <= MOST_ELEMENTS;
    (fits && borders && inside(stencil, &sizes)).then_some(sizes)
}

/// No point reads beyond an array.
fn inside(stencil: &Stencil, sizes: &Sizes) -> bool {
    let mut accesses = Vec::new();
    for statement in &stencil.statements {
        if let Target::Store(access) = &statement.target {
            accesses.push((access, Vec::new()));
        }
        accesses.extend(stencil.loads(statement.value));
    }
    accesses.iter().all(|(access, limits)| {
        let extents = &stencil.arrays[access.array].extents;
        access
            .subscripts
            .iter()
            .zip(extents)
            .all(|(subscript, of)| {
                let edge = subscript.dim.and_then(|d| stencil.dims[d].edge);
                if edge.is_some() {
                    return true;
                }
                let (mut low, mut end) = subscript
                    .dim
                    .map_or((0, 1), |d| range(&stencil.dims[d], sizes));
                for limit in limits.iter().filter(|l| Some(l.dim) == subscript.dim) {
                    let at = extent(limit.at, sizes);
                    match limit.below {
                        true => end = end.min(at),
                        false => low = low.max(at),
                    }
                }
                let within =
                    low + subscript.offset >= 0 && end - 1 + subscript.offset < extent(*of, sizes);
                within || low >= end
            })
    })
}

/// The file with constants for so many points.
fn shrunk(problem: &Problem, cells: &[i64], read: &Read<'_>) -> Option<Problem> {
    let file = &problem.cuda.as_ref()?.file;
    let constants = constants(file);
    let mut values: Vec<i64> = constants.iter().map(|c| c.value).collect();
    let mut changed = problem.clone();
    // The first round guesses how the lengths follow from the constants, the second one corrects it.
    for _ in 0..2 {
        for (constant, value) in constants.iter().zip(&mut values) {
            let mut wanted: Option<i64> = None;
            let dims = problem
                .stencil
                .dims
                .values()
                .zip(changed.stencil.dims.values());
            for ((before, now), cells) in dims.zip(cells) {
                let of_it = before.extent.parameter.is_none()
                    && (before.extent.add - constant.value).abs() <= 32;
                if of_it {
                    let add = *value + cells + now.low + now.high - now.extent.add;
                    wanted = Some(wanted.map_or(add, |w| w.max(add)));
                }
            }
            let lengths = problem
                .stencil
                .arrays
                .values()
                .zip(changed.stencil.arrays.values());
            for (before, now) in lengths {
                for (before, now) in before.extents.iter().zip(&now.extents) {
                    let row =
                        before.parameter.is_none() && (before.add - constant.value).abs() <= 32;
                    if row && wanted.is_none() {
                        let longest = problem
                            .stencil
                            .dims
                            .values()
                            .zip(cells)
                            .map(|(d, cells)| cells + d.low + d.high);
                        wanted = longest.max().map(|longest| *value + longest + 6 - now.add);
                    }
                }
            }
            if let Some(wanted) = wanted {
                *value = wanted.max(1);
            }
        }
        changed = problem.with_text(with_values(file, &constants, &values), read)?;
        let (old, new) = (&problem.stencil, &changed.stencil);
        if old.exprs != new.exprs || old.dims.len() != new.dims.len() {
            return None;
        }
    }
    Some(changed)
}
