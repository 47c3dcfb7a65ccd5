//! What makes statements a stencil: every point computes the same, from places that no other
//! point of the sweep writes.

use std::collections::BTreeMap;

use super::ir::{Access, Array, DimId, Expr, Extent, Function, Stencil, Target};
use warpwright_cudac::diag::{Diagnostic, Span};

/// One use of an array in the source.
#[derive(Clone, Debug)]
pub(super) struct Use {
    pub(super) access: Access,
    pub(super) read: bool,
    pub(super) written: bool,
    /// Along some dimensions the first place and the places left out at the end, where fewer points than all do it.
    within: Vec<(DimId, i64, i64)>,
    span: Span,
}

impl Use {
    pub(super) fn load(access: Access, within: Vec<(DimId, i64, i64)>, span: Span) -> Self {
        Use {
            access,
            read: true,
            written: false,
            within,
            span,
        }
    }

    pub(super) fn store(access: Access, accumulate: bool, span: Span) -> Self {
        Use {
            access,
            read: accumulate,
            written: true,
            within: Vec::new(),
            span,
        }
    }

    fn array<'a>(&self, stencil: &'a Stencil) -> &'a Array {
        &stencil.arrays[self.access.array]
    }
}

/// Everything that is wrong with a stencil.
pub(super) fn check(stencil: &Stencil, uses: &[Use]) -> Vec<Diagnostic> {
    let mut problems = Vec::new();
    if !uses.iter().any(|u| u.written) {
        let what = format!("`{}` writes no array", stencil.name);
        problems.push(Diagnostic::error("stencil::no-output", what));
    }
    for used in uses {
        problems.extend(iterator_order(stencil, used));
        problems.extend(within_array(stencil, used));
        if used.written {
            problems.extend(own_point(stencil, used));
        } else {
            problems.extend(in_place(stencil, used, uses));
        }
    }
    problems.extend(not_stored(stencil));
    // Accesses repeat, and so do their mistakes.
    problems.truncate(MOST_PROBLEMS);
    if problems.is_empty() {
        problems.extend(beyond_the_arrays(stencil));
    }
    problems.extend(empty_domain(stencil));
    problems.extend(too_much_unrolled(stencil));
    problems
}

/// Largest number in offsets and extents: sums of several stay far from the end of 64 bits.
const LARGEST: u64 = 1 << 40;

/// Cells between a point and its neighbours: no cache holds what lies between them.
const FARTHEST: u64 = 4096;

fn too_large(stencil: &Stencil, uses: &[Use], points: &Points) -> Option<Diagnostic> {
    let subscripts = || uses.iter().flat_map(|u| u.access.subscripts.iter());
    let mut along = subscripts().filter(|s| s.dim.is_some());
    let far = along.find(|s| s.offset.unsigned_abs() > FARTHEST);
    if let Some(far) = far {
        let what = format!("`{}` reads {} cells away", stencil.name, far.offset);
        let help = format!("neighbours are at most {FARTHEST} cells away");
        return Some(Diagnostic::error("stencil::number", what).help(help));
    }
    let offsets = subscripts().map(|s| s.offset);
    let points = points.values().flat_map(|(low, end)| [*low, end.add]);
    let arrays = stencil
        .arrays
        .values()
        .flat_map(|a| a.extents.iter().map(|e| e.add));
    let mut all = offsets.chain(points).chain(arrays);
    let large = all.find(|n| n.unsigned_abs() > LARGEST)?;
    let what = format!(
        "`{}` has the number {large} in an index or an extent",
        stencil.name
    );
    Some(
        Diagnostic::error("stencil::number", what)
            .help("such an array does not fit into any memory"),
    )
}

/// What is wrong between the points of a domain and those around it: one reads what the other writes.
pub(super) fn check_border(stencil: &Stencil, inside: &[Use], around: &[Use]) -> Vec<Diagnostic> {
    let mut problems = Vec::new();
    for (uses, others) in [(inside, around), (around, inside)] {
        let read = uses.iter().filter(|used| used.read);
        problems.extend(read.filter_map(|used| in_place(stencil, used, others)));
    }
    problems.truncate(MOST_PROBLEMS);
    problems
}

/// Most mistakes that are shown.
const MOST_PROBLEMS: usize = 5;

/// Most points of one thread.
const MOST_POINTS: u64 = 256;

fn too_much_unrolled(stencil: &Stencil) -> Option<Diagnostic> {
    let factors = stencil.dims.values().filter_map(|d| d.unroll);
    let points: u64 = factors.map(u64::from).product();
    if points <= MOST_POINTS {
        return None;
    }
    let what = format!("the unroll factors give {points} points to each thread");
    Some(
        Diagnostic::error("stencil::unroll", what)
            .help(format!("at most {MOST_POINTS} make sense")),
    )
}

/// What is stored under a condition is all of a value, and nothing else is.
fn not_stored(stencil: &Stencil) -> Option<Diagnostic> {
    let is_when = |expr: &Expr| matches!(expr, Expr::Call(Function::When, _));
    let mut statements = stencil.statements.iter();
    let wrong = statements.find(|statement| {
        let mut all = stencil.reachable(statement.value).into_iter();
        let stores = matches!(statement.target, Target::Store(_)) && !statement.accumulate;
        all.any(|e| is_when(&stencil.exprs[e]) && !(stores && e == statement.value))
    })?;
    let what = "`when` is the whole value of an element that is stored";
    Some(Diagnostic::error("stencil::function", what).label(wrong.span.clone(), "here it is not"))
}

/// Iterators appear in their order: the last one is contiguous in memory.
fn iterator_order(stencil: &Stencil, used: &Use) -> Option<Diagnostic> {
    let dims: Vec<DimId> = used
        .access
        .subscripts
        .iter()
        .filter_map(|s| s.dim)
        .collect();
    let bad = dims.windows(2).find(|pair| pair[0] >= pair[1])?;
    let (first, second) = (&stencil.dims[bad[0]].name, &stencil.dims[bad[1]].name);
    let array = &used.array(stencil).name;
    let what = if first == second {
        format!("two subscripts of `{array}` use `{first}`")
    } else {
        format!("the subscripts of `{array}` use `{first}` before `{second}`")
    };
    Some(
        Diagnostic::error("stencil::transposed", what)
            .label(used.span.clone(), "not in the order of the loops")
            .help("a transposed or diagonal access is no stencil: iterators go outermost first"),
    )
}

/// An element is written at the point itself, and by one point only.
fn own_point(stencil: &Stencil, used: &Use) -> Option<Diagnostic> {
    let array = &used.array(stencil).name;
    let subscripts = &used.access.subscripts;
    if let Some(moved) = subscripts.iter().find(|s| s.dim.is_some() && s.offset != 0) {
        let dim = moved.dim.map_or("", |d| &stencil.dims[d].name);
        let what = format!("`{array}` is written at another point than the thread's own");
        return Some(
            Diagnostic::error("stencil::scatter", what)
                .label(used.span.clone(), format!("`{dim}{:+}`", moved.offset))
                .help("shift the iterators so that what is written has no offset"),
        );
    }
    let missing = stencil
        .dims
        .iter()
        .find(|(d, _)| !subscripts.iter().any(|s| s.dim == Some(*d)))?;
    let what = format!(
        "all points along `{}` write the same element of `{array}`",
        missing.1.name
    );
    Some(
        Diagnostic::error("stencil::race", what)
            .label(used.span.clone(), format!("no `{}` here", missing.1.name))
            .help("reductions are not stencils; every point has an element of its own"),
    )
}

/// What is written is not read at another point.
fn in_place(stencil: &Stencil, used: &Use, uses: &[Use]) -> Option<Diagnostic> {
    let reads_neighbour = used
        .access
        .subscripts
        .iter()
        .any(|s| s.dim.is_some() && s.offset != 0);
    let whole = stencil
        .dims
        .keys()
        .all(|d| used.access.subscripts.iter().any(|s| s.dim == Some(d)));
    if !reads_neighbour && whole {
        return None;
    }
    let writer = uses
        .iter()
        .find(|w| w.written && w.access.array == used.access.array && may_meet(used, w))?;
    let array = &used.array(stencil).name;
    let what = format!("`{array}` is read at another point than the one that is written");
    Some(
        Diagnostic::error("stencil::in-place", what)
            .label(used.span.clone(), "depends on the order of the points")
            .label(writer.span.clone(), "written here")
            .help("write to a second array, and exchange the two between sweeps"),
    )
}

/// Can both be the same element for some two points? Components (`u[0][…]`, `u[1][…]`) differ.
fn may_meet(a: &Use, b: &Use) -> bool {
    a.access
        .subscripts
        .iter()
        .zip(&b.access.subscripts)
        .all(|(x, y)| x.dim.is_some() || y.dim.is_some() || x.offset == y.offset)
}

/// Where the sizes can be compared, the element lies within the array at every point.
fn within_array(stencil: &Stencil, used: &Use) -> Option<Diagnostic> {
    let array = used.array(stencil);
    for (subscript, size) in used.access.subscripts.iter().zip(&array.extents) {
        let (low, room, name) = match subscript.dim {
            None => {
                let outside =
                    size.parameter.is_none() && !(0..size.add).contains(&subscript.offset);
                let outside = outside || subscript.offset < 0;
                (if outside { -1 } else { 0 }, Some(0), String::new())
            }
            Some(id) => {
                let dim = &stencil.dims[id];
                // Bent at both ends, and the array is no shorter.
                if dim.edge.is_some() && distance(dim.extent, *size).is_none_or(|more| more >= 0) {
                    continue;
                }
                let own = used.within.iter().find(|(d, ..)| *d == id);
                let (low, high) = own.map_or((dim.low, dim.high), |(_, low, high)| (*low, *high));
                let last = subscript.offset.saturating_sub(high).saturating_sub(1);
                let room = distance(dim.extent, *size);
                let room = room.map(|more| more.saturating_sub(1).saturating_sub(last));
                let low = low.saturating_add(subscript.offset);
                (low, room, dim.name.clone())
            }
        };
        if low < 0 || room.is_some_and(|room| room < 0) {
            let array = &array.name;
            let what = format!("`{array}` is read or written outside its bounds");
            let at = match &*name {
                "" => "no such component".to_owned(),
                name if low < 0 => format!("`{name}` begins too early for this"),
                name => format!("`{name}` ends too late for this"),
            };
            return Some(
                Diagnostic::error("stencil::bounds", what)
                    .label(used.span.clone(), at)
                    .help("leave out the points at the edge whose neighbours do not exist"),
            );
        }
    }
    None
}

/// `b - a`, if it is the same for all parameters.
fn distance(a: Extent, b: Extent) -> Option<i64> {
    (a.parameter == b.parameter).then_some(b.add - a.add)
}

/// Points that the arrays do not have.
fn beyond_the_arrays(stencil: &Stencil) -> Option<Diagnostic> {
    let outside = stencil.dims.values().find(|d| d.high < 0 || d.low < 0)?;
    let what = format!("`{}` runs beyond the arrays", outside.name);
    Some(Diagnostic::error("stencil::bounds", what))
}

/// A domain of constant size that holds no point is a slip.
fn empty_domain(stencil: &Stencil) -> Option<Diagnostic> {
    let empty = stencil
        .dims
        .values()
        .find(|dim| dim.extent.parameter.is_none() && dim.extent.add - dim.high <= dim.low)?;
    let what = format!("no point along `{}` has all its neighbours", empty.name);
    Some(Diagnostic::error("stencil::empty", what).help(format!(
        "`{}` has {} cells, {} and {} of them at the two edges",
        empty.name, empty.extent.add, empty.low, empty.high
    )))
}

/// The points that a text asks for along a dimension: the first one, and one past the last.
pub(super) type Points = BTreeMap<DimId, (i64, Extent)>;

/// Sizes and margins of all dimensions: the points that are asked for, else the largest domain whose
/// accesses stay within the arrays. A dimension is as long as the first written array along it.
pub(super) fn derive_domain(
    stencil: &mut Stencil,
    uses: &[Use],
    points: &Points,
) -> Result<(), Vec<Diagnostic>> {
    if let Some(problem) = too_large(stencil, uses, points) {
        return Err(vec![problem]);
    }
    let mut problems = Vec::new();
    for dim in stencil.dims.keys() {
        let found = match points.get(&dim) {
            Some(&(low, end)) => Ok(Some(asked_for(stencil, uses, dim, low, end))),
            None => largest(stencil, uses, dim),
        };
        match found {
            Ok(Some((extent, low, high))) => {
                let described = &mut stencil.dims[dim];
                (described.extent, described.low, described.high) = (extent, low, high);
            }
            // A stencil that writes nothing along it is refused later, at the store.
            Ok(None) => {}
            Err(problem) => problems.push(problem),
        }
    }
    if problems.is_empty() {
        Ok(())
    } else {
        Err(problems)
    }
}

/// A dimension: its size, and the cells at both ends that are not computed.
type Domain = (Extent, i64, i64);

/// The uses along a dimension, each with its offset and the size of the array there.
fn along<'a>(
    stencil: &'a Stencil,
    uses: &'a [Use],
    dim: DimId,
) -> impl Iterator<Item = (&'a Use, i64, Extent)> {
    uses.iter().flat_map(move |used| {
        let sizes = &stencil.arrays[used.access.array].extents;
        let pairs = used.access.subscripts.iter().zip(sizes);
        pairs
            .filter(move |(s, _)| s.dim == Some(dim))
            .map(move |(s, size)| (used, s.offset, *size))
    })
}

fn largest(stencil: &Stencil, uses: &[Use], dim: DimId) -> Result<Option<Domain>, Diagnostic> {
    let written = along(stencil, uses, dim).find(|(used, ..)| used.written);
    let Some((_, _, extent)) = written else {
        return Ok(None);
    };
    let (mut low, mut high) = (0, 0);
    for (used, offset, size) in along(stencil, uses, dim) {
        let Some(longer) = distance(extent, size) else {
            let (name, array) = (&stencil.dims[dim].name, &used.array(stencil).name);
            let what = format!("`{name}` runs over arrays of different sizes");
            return Err(Diagnostic::error("stencil::sizes", what)
                .label(used.span.clone(), format!("another size in `{array}`"))
                .help("one iterator has one size; a constant may be added to it"));
        };
        low = low.max(-offset);
        high = high.max(offset - longer);
    }
    Ok(Some((extent, low, high)))
}

/// The size is that of the arrays where it can be compared with the end, else what the accesses
/// need. A bound beyond the arrays gives a negative margin, which [`check`] refuses.
fn asked_for(stencil: &Stencil, uses: &[Use], dim: DimId, low: i64, end: Extent) -> Domain {
    let written = along(stencil, uses, dim).find(|(used, ..)| used.written);
    let extent = match written {
        Some((_, _, size)) if size.parameter == end.parameter => size,
        _ => {
            let needed = along(stencil, uses, dim).map(|(_, offset, _)| offset).max();
            needed_extent(end, needed.unwrap_or(0).max(0))
        }
    };
    (extent, low, extent.add - end.add)
}

/// The size of a dimension whose points end before `end` and reach `needed` cells further: the
/// parameter itself, if that is enough.
pub(super) fn needed_extent(end: Extent, needed: i64) -> Extent {
    match end.parameter {
        Some(_) if end.add <= -needed => Extent { add: 0, ..end },
        _ => Extent {
            add: end.add + needed,
            ..end
        },
    }
}

/// The points of a stencil's domain that a text must name, because they do not follow from the
/// accesses.
pub(super) fn points_to_name(stencil: &Stencil) -> Points {
    let mut uses = Vec::new();
    for statement in &stencil.statements {
        for expr in stencil.reachable(statement.value) {
            if let Expr::Load(access) = &stencil.exprs[expr] {
                uses.push(Use::load(access.clone(), Vec::new(), 0..0));
            }
        }
        if let Target::Store(access) = &statement.target {
            uses.push(Use::store(access.clone(), statement.accumulate, 0..0));
        }
    }
    let mut points = Points::new();
    for (id, dim) in &stencil.dims {
        let derived = largest(stencil, &uses, id);
        if !matches!(derived, Ok(Some(domain)) if domain == (dim.extent, dim.low, dim.high)) {
            let end = Extent {
                add: dim.extent.add - dim.high,
                ..dim.extent
            };
            points.insert(id, (dim.low, end));
        }
    }
    points
}
