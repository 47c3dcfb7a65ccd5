//! A kernel and a schedule to CUDA C.
//!
//! | file | |
//! |---|---|
//! | `tiles.rs` | which operands are staged in shared memory, and how they lie there |
//! | `body.rs` | statements for the points of a thread |
//! | `staged.rs` | the loop in parts: copies, fragments, waits |
//! | `print.rs` | values as text |
//! | `host.rs` | when and how the kernels are launched |

mod body;
mod cost;
mod host;
pub(crate) mod print;
mod staged;
mod tiles;

use std::collections::BTreeSet;

use warpwright_cudac::affine::{Poly, Symbol};

use crate::bounds;
use crate::ir::{Index, Kernel, Value};
use crate::schedule::Schedule;
pub(crate) use body::end_names;
pub use cost::{Cost, cost};
pub use host::{Launcher, Names, NoLauncher, launcher, shape_refused};

/// Kernels that take the place of a naive one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Generated {
    /// The kernels; the first whose conditions hold is launched.
    pub entries: Vec<Entry>,
    /// What was done, a sentence each.
    pub notes: Vec<String>,
    /// Sums of floating-point numbers are added in another order.
    pub reordered: bool,
    /// Several threads do parts of a point, or its parts come in another order: what it loads may come after what it
    /// stores.
    pub shares: bool,
}

/// A kernel. Its parameters are those of the naive one, and the ends of the dimensions (`int`).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Entry {
    /// Its name behind that of the naive kernel: `NAME_tuned`, and so on.
    pub suffix: String,
    /// A thread takes four neighbours at once, some of them in parts.
    pub is_wide: bool,
    /// Its statements.
    pub body: String,
    /// Threads of a block.
    pub threads: u32,
    /// Points of a block along x, y and z.
    pub tile: [u32; 3],
    /// Blocks that an SM must have room for; 0: it is not said.
    pub resident: u32,
    /// Bytes of dynamic shared memory.
    pub shared_bytes: u32,
    /// When it may be launched.
    pub conditions: Vec<Condition>,
    /// What is launched before it, and leaves it values in memory.
    pub parts: Option<Parts>,
}

/// A kernel that divides the turns of each point among blocks. It and its entry have as further parameters pointers to
/// the values, a row of points for each part, and the number of parts (`int`).
#[derive(Clone, Debug, PartialEq)]
pub struct Parts {
    /// Its statements.
    pub body: String,
    /// Threads of a block.
    pub threads: u32,
    /// Points of a block along x; there is no other dimension. Blocks along y are parts.
    pub tile: u32,
    /// How many turns there are, a polynomial of [`bounds`].
    pub turns: Poly,
    /// A part has at least so many turns.
    pub least: i64,
    /// How many blocks the GPU wants.
    pub blocks: i64,
    /// What the number of parts is called.
    pub count: String,
    /// Types, of 8 bytes at most, and names of the values.
    pub values: Vec<(String, String)>,
    /// The second kernel is launched while this one runs, and waits for it.
    pub early: bool,
    /// Blocks that an SM must have room for; 0: it is not said.
    pub resident: u32,
}

/// What an entry asks of a launch. Polynomials are those of [`bounds`]: sizes, and ends of dimensions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    /// A polynomial is a multiple of a number.
    Multiple(Poly, i64),
    /// An array, by number, begins at a multiple of so many bytes.
    Aligned(usize, u32),
    /// A size has this value.
    Is(usize, i64),
    /// A polynomial is no larger than a number.
    Most(Poly, i64),
}

impl Condition {
    /// Does it hold for arrays that begin where they must?
    pub(crate) fn holds(&self, sizes: &[i64], ends: &[i64]) -> bool {
        let at = |poly: &Poly| value(poly, sizes, ends);
        match self {
            Condition::Multiple(poly, by) => at(poly).is_some_and(|v| v % by == 0),
            Condition::Aligned(..) => true,
            Condition::Is(size, wanted) => sizes.get(*size) == Some(wanted),
            Condition::Most(poly, most) => at(poly).is_some_and(|v| v <= *most),
        }
    }
}

/// Why a schedule is not one for a kernel.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// The choices contradict each other.
    #[error("{0}")]
    Shape(&'static str),
    /// No loop has an operand that several points share, or that is not coalesced.
    #[error("no loop has an operand to be staged in shared memory")]
    NoOperand,
    /// More shared memory than a block may have.
    #[error("{0} bytes of shared memory are too many")]
    Shared(i64),
}

/// How much a kernel may take for granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Variant {
    /// Blocks and parts are full.
    exact: bool,
    /// Copies are 16 bytes wide where they can be.
    wide: bool,
}

/// Values of sizes for which nothing is said: those of a matrix, ...
const UNKNOWN_SIZE: i64 = 4096;
/// ... the length of a list for whose elements little is done, ...
const UNKNOWN_LENGTH: i64 = 1 << 24;
/// ... and how many matrices there are.
const UNKNOWN_PLANES: i64 = 16;

/// ... and of four dimensions the first two.
const UNKNOWN_ROWS: i64 = 256;

/// Turns of a loop of which nobody knows how many it makes: as those of a short row of a sparse matrix.
pub(crate) const UNKNOWN_TURNS: f64 = 16.0;

/// The kernels of a schedule. `shared` is how many bytes of shared memory a block may have.
///
/// # Errors
/// See [`Unfit`].
pub fn generate(kernel: &Kernel, schedule: &Schedule, shared: u32) -> Result<Generated, Unfit> {
    check(kernel, schedule)?;
    if schedule.stage.is_some() && kernel.is_open() {
        return Err(Unfit::NoOperand);
    }
    let kernel = &seen(kernel, schedule);
    let expected = expected(kernel);
    let mut fixed = Vec::new();
    if schedule.specialise {
        // Small sizes are those of loops that are written out.
        let small = |(at, n): (usize, &i64)| (*n <= 64 && counts(kernel, at)).then_some((at, *n));
        fixed = expected.iter().enumerate().filter_map(small).collect();
    }
    let mut generated = Generated {
        notes: crate::explain::steps(kernel, schedule),
        ..Generated::default()
    };
    let mut passes = vec![fixed.clone()];
    if !fixed.is_empty() {
        passes.push(Vec::new());
    }
    for fixed in passes {
        let kernel = &with_sizes(kernel, &fixed);
        let stem = if fixed.is_empty() { "" } else { "_fixed" };
        let plan = tiles::plan(kernel, schedule);
        if schedule.stage.is_some() && plan.is_none() {
            return Err(Unfit::NoOperand);
        }
        let variants = [
            (true, true, "_full"),
            (false, true, "_wide"),
            (false, false, ""),
        ];
        let variants = &variants[if plan.is_some() { 0 } else { 2 }..];
        for &(exact, wide, suffix) in variants {
            let variant = Variant { exact, wide };
            let mut entry = body::entry(kernel, schedule, plan.as_ref(), variant, &expected)?;
            if i64::from(entry.shared_bytes) > i64::from(shared) {
                return Err(Unfit::Shared(entry.shared_bytes.into()));
            }
            entry.suffix = format!("_tuned{stem}{suffix}");
            entry.is_wide = variant.wide && !variant.exact;
            let is = fixed
                .iter()
                .map(|(size, value)| Condition::Is(*size, *value));
            entry.conditions.extend(is);
            let known = generated
                .entries
                .iter()
                .any(|e| e.conditions == entry.conditions);
            if !known {
                generated.entries.push(entry);
            }
        }
        if let Some(plan) = &plan {
            for tile in &plan.tiles {
                let note = format!(
                    "`{}`: {} x {} elements a part in shared memory",
                    kernel.arrays[tile.array].name,
                    tile.row_count(),
                    tile.column_count()
                );
                if !generated.notes.contains(&note) {
                    generated.notes.push(note);
                }
            }
        }
    }
    if schedule.planes {
        generated.entries.iter_mut().for_each(exchange);
    }
    Ok(generated)
}

/// The kernel as a schedule takes it: its tiles lie along the first two dimensions.
fn seen(kernel: &Kernel, schedule: &Schedule) -> Kernel {
    let mut kernel = kernel.clone();
    if schedule.planes && kernel.dims.len() == 3 {
        kernel.dims.swap(1, 2);
    }
    kernel
}

/// An entry in terms of the dimensions as they are, where it was made with y and z exchanged.
fn exchange(entry: &mut Entry) {
    entry.tile.swap(1, 2);
    for condition in &mut entry.conditions {
        if let Condition::Multiple(poly, _) | Condition::Most(poly, _) = condition {
            let [y, z, other] = [1, 2, 3].map(bounds::end);
            for (from, to) in [(y, other), (z, y), (other, z)] {
                if let Some(new) = poly.substituted(from, &Poly::symbol(to)) {
                    *poly = new;
                }
            }
        }
    }
}

fn check(kernel: &Kernel, schedule: &Schedule) -> Result<(), Unfit> {
    let block = schedule.block();
    if block == 0 || block > 1024 || !block.is_multiple_of(32) {
        return Err(Unfit::Shape("a block is not whole warps, or too large"));
    }
    for axis in 0..2 {
        let (points, run) = (schedule.points[axis], schedule.run[axis]);
        if points == 0 || points > 64 || run == 0 || !points.is_multiple_of(run) {
            return Err(Unfit::Shape("a thread's points are not whole runs"));
        }
    }
    let lanes = schedule.lanes;
    if lanes != 0
        && (32 % lanes != 0
            || !schedule.threads[0].is_multiple_of(lanes)
            || !schedule.threads[1].is_multiple_of(32 / lanes))
    {
        return Err(Unfit::Shape("a warp's lanes do not fill the block"));
    }
    if schedule.planes && (kernel.dims.len() != 3 || kernel.flat.is_some() || schedule.order > 1) {
        return Err(Unfit::Shape(
            "tiles along z want three dimensions of the grid, in its order",
        ));
    }
    if kernel.dims.len() < 2 && (schedule.threads[1] != 1 || schedule.points[1] != 1) {
        return Err(Unfit::Shape("the kernel has one dimension"));
    }
    if let Some(stage) = &schedule.stage
        && (!(1..=64).contains(&stage.unroll)
            || !(1..=1024).contains(&stage.turns)
            || !(1..=8).contains(&stage.buffers))
    {
        return Err(Unfit::Shape(
            "a part of the loop without turns, or with so many turns or buffers",
        ));
    }
    Ok(())
}

/// By size: what the pragma expects, else the usual value as far as no array of the file ends before.
pub fn expected(kernel: &Kernel) -> Vec<i64> {
    let stated = |size: usize| {
        let name = kernel.size_name(size);
        let found = kernel.pragma.sizes.iter().find(|(n, _)| n == name);
        found.map(|(_, value)| *value)
    };
    let of = |size: usize| stated(size).unwrap_or_else(|| usual(kernel, size));
    let mut all: Vec<i64> = (0..kernel.sizes.len()).map(of).collect();
    for access in &kernel.accesses {
        let length = kernel.arrays.get(access.array).and_then(|a| a.length);
        if let (Some(length), Index::Affine(index)) = (length, &access.index)
            && let Some(last) = bounds::largest(kernel, index)
        {
            let symbols = last.symbols();
            let is_open =
                |size: &usize| symbols.contains(&Symbol::Size(*size)) && stated(*size).is_none();
            for size in (0..all.len()).filter(is_open) {
                fit(kernel, &mut all, (size, &last, length));
            }
        }
    }
    all
}

/// Makes a size no larger than leaves the last element that is accessed in an array of some length.
fn fit(kernel: &Kernel, sizes: &mut [i64], (size, last, length): (usize, &Poly, i64)) {
    let usual = sizes[size];
    let fits = |number: i64| {
        let mut sizes = sizes.to_vec();
        sizes[size] = number;
        let ends = expected_ends(kernel, &sizes);
        value(last, &sizes, &ends).is_none_or(|last| last < length)
    };
    // Of one that has nothing to do with it none would do.
    if fits(usual) || !fits(1) {
        return;
    }
    let (mut low, mut high) = (1, usual);
    while low + 1 < high {
        let middle = low + (high - low) / 2;
        match fits(middle) {
            true => low = middle,
            false => high = middle,
        }
    }
    sizes[size] = low;
}

/// The value of a size for which nothing is said.
fn usual(kernel: &Kernel, size: usize) -> i64 {
    let alone = |poly: &Poly| poly.symbols() == [Symbol::Size(size)];
    let ends = |dim: usize| {
        let dim = kernel.dims.get(dim);
        dim.is_some_and(|d| d.high.iter().any(alone))
    };
    match kernel.dims.len() {
        1 if kernel.loops.is_empty() && ends(0) => UNKNOWN_LENGTH,
        3 if ends(2) && !ends(0) && !ends(1) && !counts(kernel, size) => UNKNOWN_PLANES,
        // Rows of images, and heads.
        4.. if ends(2) || ends(3) => UNKNOWN_PLANES,
        4.. => UNKNOWN_ROWS,
        _ => UNKNOWN_SIZE,
    }
}

/// Does a size say how often a loop runs?
fn counts(kernel: &Kernel, size: usize) -> bool {
    let uses = |poly: &Poly| poly.symbols().contains(&Symbol::Size(size));
    kernel.loops.iter().any(|l| uses(&l.low) || uses(&l.high))
}

/// By dimension: one past the last point of the expected launch.
pub(crate) fn expected_ends(kernel: &Kernel, sizes: &[i64]) -> Vec<i64> {
    let of = |dim: &crate::ir::Dim| {
        let ends = dim.high.iter().filter_map(|high| value(high, sizes, &[]));
        ends.min()
    };
    kernel
        .dims
        .iter()
        .map(|d| {
            of(d).unwrap_or(match d.axis() {
                2.. => UNKNOWN_PLANES,
                _ => UNKNOWN_SIZE,
            })
        })
        .collect()
}

/// The value of a polynomial of [`bounds`].
pub(crate) fn value(poly: &Poly, sizes: &[i64], ends: &[i64]) -> Option<i64> {
    poly.evaluate(|s| match s {
        Symbol::Size(n) => sizes.get(n).copied(),
        Symbol::Unknown(n) => ends.get(n).copied(),
        _ => None,
    })
}

/// The kernel with numbers in place of some sizes.
fn with_sizes(kernel: &Kernel, fixed: &[(usize, i64)]) -> Kernel {
    let mut kernel = kernel.clone();
    let set = |poly: &mut Poly| {
        for (size, value) in fixed {
            if let Some(new) = poly.substituted(Symbol::Size(*size), &Poly::constant(*value)) {
                *poly = new;
            }
        }
    };
    kernel.map_polys(&set);
    for dim in &mut kernel.dims {
        dim.low.iter_mut().for_each(set);
    }
    kernel
}

/// The largest and the smallest element of each array that the kernel touches, where that is a polynomial.
pub fn extents(kernel: &Kernel) -> Vec<Option<(Vec<Poly>, Vec<Poly>)>> {
    let mut all = vec![Some((Vec::new(), Vec::new())); kernel.arrays.len()];
    let atomics = kernel.atomics();
    for (number, access) in kernel.accesses.iter().enumerate() {
        let found = match (&access.index, &access.below) {
            (Index::Affine(poly), _) => {
                bounds::smallest(kernel, poly).zip(bounds::largest(kernel, poly))
            }
            // What an atomic operation does in front of its array is done at once, where it stands.
            (Index::Value(_), Some((below, natural))) if *natural || atomics.contains(&number) => {
                let last = below.plus(&Poly::constant(1), -1);
                last.map(|last| (Poly::default(), last))
            }
            (Index::Value(_), _) => None,
        };
        match (found, &mut all[access.array]) {
            (Some((low, high)), Some((lows, highs))) => {
                if !lows.contains(&low) {
                    lows.push(low);
                }
                if !highs.contains(&high) {
                    highs.push(high);
                }
            }
            (None, of) => *of = None,
            _ => {}
        }
    }
    all
}

/// Where a thread is along a dimension behind the first: blocks along y, and along z, which two dimensions share.
pub(crate) fn plane(kernel: &Kernel, number: usize) -> String {
    let third = &end_names(kernel)[2];
    match (kernel.dims.len(), number) {
        (_, 1) => "blockIdx.y".to_owned(),
        (..=3, _) => "blockIdx.z".to_owned(),
        (_, 2) => format!("blockIdx.z % {third}"),
        _ => format!("blockIdx.z / {third}"),
    }
}

/// All names in a kernel.
pub(crate) fn names_of(kernel: &Kernel) -> BTreeSet<String> {
    let mut all: BTreeSet<String> = kernel.parameters.iter().map(|p| p.name.clone()).collect();
    all.extend(kernel.arrays.iter().map(|a| a.name.clone()));
    all.extend(kernel.variables.iter().map(|v| v.name.clone()));
    all.extend(kernel.loops.iter().map(|l| l.name.clone()));
    all.extend(kernel.dims.iter().map(|d| d.name.clone()));
    kernel.values(&mut |value, _| {
        if let Value::Text(text) | Value::Call(text, _) | Value::Cast(text, _) = value {
            all.insert(text.clone());
        }
    });
    all
}
