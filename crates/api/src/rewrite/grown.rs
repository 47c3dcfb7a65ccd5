//! Sizes at which more of both launches is seen than the smallest description shows.
//!
//! A grid of one block hides what the next one does wrong, and a loop that is written for the small sizes hides what it
//! leaves out at large ones. So each parameter is set to where the grids of both sides have two and three blocks, and to
//! what it is at the largest described size, as far as that can be afforded. An index of 8 or 16 bits shows at no small size
//! either: so each is set to where buffers have more elements than such a one counts.

use warpwright_launch::LaunchFile;

use super::{MOST_WORK, RewriteOptions, Try, known, parameters, resolved, work};

/// Blocks along an extent of the grid that a parameter grows, and what lies between one and so many.
const BLOCKS: i64 = 3;
/// No parameter is searched above this.
const MOST: i64 = 1 << 24;

/// An extent of a grid of one side that a parameter may grow.
#[derive(Clone, Copy)]
struct Extent<'f> {
    side: usize,
    file: &'f LaunchFile,
    axis: usize,
}

impl Extent<'_> {
    /// Blocks along it; `None` where there is no such launch.
    fn at(&self, at: &Try) -> Option<i64> {
        let launch = self.file.resolve(&at.size, &known(self.file, at)).ok()?;
        launch.grid.get(self.axis).copied().map(i64::from)
    }

    /// The least value of a parameter at which it has so many blocks, if it grows with that alone.
    fn least(&self, at: &Try, name: &str, blocks: i64) -> Option<i64> {
        least_of(1, |value| {
            Some(self.at(&at.derived(name, value))? >= blocks)
        })
    }
}

fn extents<'o>(options: &'o RewriteOptions<'_>) -> impl Iterator<Item = Extent<'o>> {
    let sides = options.launches.iter().enumerate();
    sides.flat_map(|(side, files)| {
        let files = files.iter();
        files.flat_map(move |file| (0..3).map(move |axis| Extent { side, file, axis }))
    })
}

/// Values of a parameter at which each extent that it grows has several blocks, the last one full and not full, unless it
/// has them at this size as it is.
pub(super) fn blocks(options: &RewriteOptions<'_>, at: &Try, name: &str) -> Vec<i64> {
    let few = extents(options).filter(|extent| extent.at(at).is_some_and(|n| n < BLOCKS));
    let mut values: Vec<i64> = few
        .filter_map(|extent| {
            let two = extent.least(at, name, 2)?;
            let three = extent.least(at, name, BLOCKS)?;
            Some([two - 1, two, three - 1, three])
        })
        .flatten()
        .filter(|&value| value >= 1)
        .collect();
    values.sort_unstable();
    values.dedup();
    values
}

/// Terms of the launch of a parameter's largest described value, about.
const MOST_TERMS: usize = 1 << 20;

/// The launch at which a parameter is as large as it is described anywhere, or as large as can be afforded where the
/// smallest launch takes so many terms.
pub(super) fn largest(
    options: &RewriteOptions<'_>,
    smallest: &Try,
    terms: usize,
    name: &str,
) -> Option<Try> {
    let own = *parameters(options, smallest).get(name)?;
    let files = options.launches.iter().flatten();
    let sizes = files.flat_map(|file| file.sizes().flat_map(|size| file.parameters(size)));
    let described = sizes.filter(|(other, _)| *other == name);
    let mut value = described.map(|(_, value)| value).max()?;
    while value > own.max(1) {
        let at = smallest.derived(name, value);
        let times = value / own.max(1);
        if is_afforded(options, &at, (terms, times), (MOST_TERMS, MOST_WORK / 4)) {
            return Some(at);
        }
        value /= 2;
    }
    None
}

/// Can a launch be afforded that is so many times the smallest one, which takes so many terms? `most`: terms, and what
/// [`work`] measures.
fn is_afforded(
    options: &RewriteOptions<'_>,
    at: &Try,
    (terms, times): (usize, i64),
    most: (usize, u64),
) -> bool {
    let times = usize::try_from(times).unwrap_or(usize::MAX);
    terms.max(1).saturating_mul(times) <= most.0
        && resolved(options, at).is_ok_and(|all| work(&all) <= most.1)
}

/// Elements at which integers of 8 and 16 bits end, with a sign and without, from the largest on.
const EDGES: [usize; 4] = [1 << 16, 1 << 15, 1 << 8, 1 << 7];
/// How many elements more there are, at least.
const BEYOND: usize = 64;
/// Terms of such a launch, about.
const MOST_WIDE: usize = 1 << 22;

/// The launch at which a parameter is so large that a buffer which it grows has more elements than an integer of 16 bits
/// counts, or else of 8: the largest such one that can be afforded where the smallest launch takes so many terms.
pub(super) fn wide(
    options: &RewriteOptions<'_>,
    smallest: &Try,
    terms: usize,
    name: &str,
) -> Option<Try> {
    let own = (*parameters(options, smallest).get(name)?).max(1);
    let lengths = |value: i64| -> Option<Vec<usize>> {
        let launches = resolved(options, &smallest.derived(name, value)).ok()?;
        let buffers = launches.iter().flat_map(warpwright_launch::Launch::buffers);
        Some(buffers.map(|buffer| buffer.len).collect())
    };
    let (now, twice) = (lengths(own)?, lengths(2 * own)?);
    let grown = (0..now.len().min(twice.len())).filter(|&at| now[at] < twice[at]);
    let least = |at: usize, edge: usize| {
        let is_there = |value: i64| Some(*lengths(value)?.get(at)? > edge + BEYOND);
        least_of(own, is_there)
    };
    let edges = grown.flat_map(|at| EDGES.map(|edge| (at, edge)));
    let mut values: Vec<i64> = edges.filter_map(|(at, edge)| least(at, edge)).collect();
    values.sort_unstable();
    values.dedup();
    let mut tries = values.into_iter().rev().filter(|&value| value > own);
    tries.find_map(|value| {
        let at = Try {
            wide: true,
            ..smallest.derived(name, value)
        };
        is_afforded(options, &at, (terms, value / own), (MOST_WIDE, MOST_WORK)).then_some(at)
    })
}

/// The least value from one on at which something holds that holds from there on; none above [`MOST`].
fn least_of(from: i64, holds: impl Fn(i64) -> Option<bool>) -> Option<i64> {
    let (mut low, mut high) = (from - 1, from);
    while !holds(high)? {
        (low, high) = (high, 2 * high);
        if high > MOST {
            return None;
        }
    }
    while low + 1 < high {
        let middle = low + (high - low) / 2;
        match holds(middle)? {
            true => high = middle,
            false => low = middle,
        }
    }
    Some(high)
}

/// What is said of extents of which one block alone was tried, though launches may have more.
pub(super) fn alone(
    options: &RewriteOptions<'_>,
    (names, tried): (&[&str], &[&Try]),
) -> Option<String> {
    let smallest = tried.first()?;
    let mut lone = extents(options).filter_map(|extent| {
        if tried.iter().any(|at| extent.at(at).is_some_and(|n| n > 1)) {
            return None;
        }
        let mut grown = names.iter();
        let (name, two) = grown.find_map(|name| Some((name, extent.least(smallest, name, 2)?)))?;
        let whose = ["the original", "the rewritten kernel"][extent.side];
        let axis = ["x", "y", "z"][extent.axis];
        Some(format!(
            "one block of {whose} alone was tried along {axis}: it has two from {name} = {two} on"
        ))
    });
    lone.next()
}
