//! What the bounds of an output's elements are together: for which inputs, how far both sides are from the value over
//! the reals at the worst.

use std::collections::BTreeMap;

use warpwright_emu::symbolic::term::{Domain, Id, Terms};
use warpwright_launch::{Buffer, ElemType, Init};

use crate::Side;
use crate::bounds::{Bound, Bounds, Lack, Made, Range};
use crate::pairing::{self, Described, is_unset};
use crate::standing::{Bounded, Rounded, Why};

/// An element of an output, as both sides leave it.
pub(crate) struct Root<'n> {
    pub output: &'n str,
    pub index: usize,
    pub domain: Domain,
    pub values: [Id; 2],
}

/// Terms for which bounds are kept.
const MOST: usize = 24_000_000;

/// For each output the worst bound of its elements, or why there is none.
pub(crate) fn bounded(
    terms: &Terms,
    names: &[String],
    ranges: &[Option<Range>],
    roots: &[Root<'_>],
) -> Vec<Why> {
    if terms.len() > MOST {
        return Vec::new();
    }
    let mut outputs: BTreeMap<&str, Vec<&Root<'_>>> = BTreeMap::new();
    for root in roots {
        outputs.entry(root.output).or_default().push(root);
    }
    let name = |number: u32| names.get(number as usize).cloned().unwrap_or_default();
    let mut all = Vec::new();
    for (output, roots) in outputs {
        // Where the first element has no bound, the others need none.
        let found = worst(terms, ranges, &roots[..1]).and_then(|_| worst(terms, ranges, &roots));
        let why = match found {
            Ok((root, both, made)) => {
                let bounded = said(root, both, made, (ranges, &name));
                Why::Bounded(Box::new(bounded))
            }
            Err((index, lack)) => Why::Unbounded {
                output: output.to_owned(),
                index,
                lack: text(&lack, &name),
            },
        };
        all.push(why);
    }
    all
}

type Worst<'r, 'n> = (&'r Root<'n>, [Bound; 2], [Made; 2]);

/// The element whose bounds are the largest together, and what it is made of.
fn worst<'r, 'n>(
    terms: &Terms,
    ranges: &[Option<Range>],
    roots: &[&'r Root<'n>],
) -> Result<Worst<'r, 'n>, (usize, Lack)> {
    let places = roots.iter();
    let places = places.flat_map(|root| root.values.map(|id| (id, root.domain)));
    let places: Vec<(Id, Domain)> = places.collect();
    let mut bounds = Bounds::of(terms, ranges, &places);
    let mut worst: Option<(&Root<'_>, [Bound; 2])> = None;
    let together = |both: &[Bound; 2]| both[0].error + both[1].error;
    for root in roots {
        let mut at = |side: usize| {
            let bound = bounds.at((root.values[side], root.domain));
            bound.map_err(|lack| (root.index, lack))
        };
        let both = [at(0)?, at(1)?];
        if worst
            .as_ref()
            .is_none_or(|(_, known)| together(known) < together(&both))
        {
            worst = Some((root, both));
        }
    }
    let (root, both) = worst.ok_or((0, Lack::Bits))?;
    let made = root.values.map(|id| bounds.made(id));
    Ok((root, both, made))
}

fn said(
    root: &Root<'_>,
    both: [Bound; 2],
    made: [Made; 2],
    (ranges, name): (&[Option<Range>], &dyn Fn(u32) -> String),
) -> Bounded {
    let inputs: Vec<u32> = made.iter().flat_map(|made| made.inputs.clone()).collect();
    let known = inputs.into_iter().filter_map(|number| {
        let range = ranges.get(number as usize).copied().flatten()?;
        Some((name(number), (range.low, range.high)))
    });
    let ranges: BTreeMap<String, (f64, f64)> = known.collect();
    let side = |at: usize| Rounded {
        error: both[at].error,
        summands: made[at].summands,
        depth: both[at].depth,
        roundings: made[at].roundings,
    };
    Bounded {
        output: root.output.to_owned(),
        index: root.index,
        ranges: ranges
            .into_iter()
            .map(|(name, (low, high))| (name, low, high))
            .collect(),
        magnitude: both[0].magnitude().min(both[1].magnitude()),
        sides: [side(0), side(1)],
    }
}

fn text(lack: &Lack, name: &dyn Fn(u32) -> String) -> String {
    match lack {
        Lack::Range(number) => {
            let name = name(*number);
            format!("nothing says which numbers `{name}` holds (`--range {name}=LOW..HIGH`)")
        }
        Lack::Divisor => "for these ranges a divisor may be 0".to_owned(),
        Lack::Root => {
            "for these ranges what a root or logarithm is taken of may be 0 or less".to_owned()
        }
        Lack::Overflow => "for these ranges a value may leave its format".to_owned(),
        Lack::Function(name) => format!("no error of `{name}` is stated"),
        Lack::Bits => "the bits of a rounded number become another one's".to_owned(),
    }
}

// ---- ranges

/// The numbers that a buffer may hold, as far as its description says.
pub(crate) fn described(described: &Described<'_>) -> Option<Range> {
    let Described { buffer, bytes, .. } = described;
    if is_unset(described) {
        return None;
    }
    let (low, high) = match &buffer.init {
        Init::UniformFloat { ranges, .. } => (
            ranges.iter().map(|range| range.0).reduce(f64::min)?,
            ranges.iter().map(|range| range.1).reduce(f64::max)?,
        ),
        // No number lies further out: eight uniform ones are summed.
        Init::Normal {
            mean, deviation, ..
        } => (mean - 4.9 * deviation.abs(), mean + 4.9 * deviation.abs()),
        Init::UniformInt { low, high, .. } => (*low as f64, *high as f64),
        Init::Bits { .. } => return None,
        _ => among(buffer.ty, bytes)?,
    };
    Some(stated(buffer, low, high))
}

/// The buffers of a side whose numbers a description draws from a range: name, type, and both ends.
pub fn described_ranges(side: &Side) -> Vec<(String, ElemType, [f64; 2])> {
    let all = pairing::buffers(side).into_iter();
    let drawn = all.filter(|(_, own)| matches!(own.buffer.init, Init::UniformFloat { .. }));
    drawn
        .filter_map(|(name, own)| {
            let Range { low, high, .. } = described(&own)?;
            Some((name, own.buffer.ty, [low, high]))
        })
        .collect()
}

/// A range of a buffer's elements: its ends are rounded as they are.
pub(crate) fn stated(buffer: &Buffer, low: f64, high: f64) -> Range {
    let ty = buffer.ty;
    let rounded = |x: f64| match ty.is_float() {
        true => ty.to_f64(ty.float_bits(x)),
        false => x,
    };
    Range {
        domain: crate::compare::domain(ty),
        low: low.min(rounded(low)),
        high: high.max(rounded(high)),
    }
}

/// The least and the largest of some elements, if all are numbers.
fn among(ty: ElemType, bytes: &[u8]) -> Option<(f64, f64)> {
    let number = |element: &[u8]| match ty.is_float() {
        true => ty.to_f64(ty.read(element)),
        false => ty.to_int(ty.read(element)) as f64,
    };
    let mut all = bytes.chunks_exact(ty.size()).map(number);
    let start = (f64::INFINITY, f64::NEG_INFINITY);
    let found = all.try_fold(start, |(low, high), x| {
        x.is_finite().then(|| (x.min(low), x.max(high)))
    });
    found.filter(|(low, high)| low <= high)
}
