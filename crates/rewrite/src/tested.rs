//! On numbers: the second judge, and what shows a difference that terms tell of.

use std::collections::BTreeMap;

use warpwright_emu::{Fault, Options as RunOptions, Outcome};
use warpwright_launch::{Buffer, ElemType, Generator, Init, Tolerance, compare};

use crate::pairing::{self, Known, Paired};
use crate::standing::{Which, Why, at};
use crate::{Side, Step};

/// How inputs are filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Filling {
    /// As the description says.
    Described,
    /// Numbers of either sign, of magnitude one.
    Unit(u64),
    /// Small whole numbers: sums and products are exact.
    Whole(u64),
    /// Large negative ones: a maximum that begins at zero shows.
    Negative(u64),
    /// Large positive ones: a minimum that begins at zero shows.
    Positive(u64),
    /// Of many magnitudes.
    Spread(u64),
}

/// Fillings in the order in which they are tried.
pub(crate) const FILLINGS: [Filling; 9] = [
    Filling::Described,
    Filling::Whole(1),
    Filling::Unit(2),
    Filling::Negative(3),
    Filling::Spread(4),
    Filling::Whole(5),
    Filling::Unit(6),
    Filling::Spread(7),
    Filling::Positive(8),
];

impl Filling {
    pub fn text(self) -> String {
        match self {
            Filling::Described => "the inputs as described".to_owned(),
            Filling::Unit(seed) => format!("inputs between -1 and 1 (seed {seed})"),
            Filling::Whole(seed) => format!("whole inputs between -8 and 8 (seed {seed})"),
            Filling::Negative(seed) => format!("inputs between -9 and -1 (seed {seed})"),
            Filling::Positive(seed) => format!("inputs between 1 and 9 (seed {seed})"),
            Filling::Spread(seed) => format!("inputs of many magnitudes (seed {seed})"),
        }
    }

    fn bytes(self, name: &str, buffer: &Buffer, described: &[u8]) -> Vec<u8> {
        let seed = match self {
            Filling::Described => return described.to_vec(),
            Filling::Unit(seed)
            | Filling::Whole(seed)
            | Filling::Negative(seed)
            | Filling::Positive(seed)
            | Filling::Spread(seed) => seed,
        };
        let (ty, generator) = (buffer.ty, Generator::new(name, seed));
        if !ty.is_float() {
            let count = described.len() / ty.size();
            return match integers(buffer).and_then(|range| self.among(range)) {
                Some(range) => drawn(ty, generator, range, count as u64),
                None => described.to_vec(),
            };
        }
        let value = |i: u64| {
            let unit = generator.unit(i);
            match self {
                Filling::Whole(_) => (unit * 17.0).floor() - 8.0,
                Filling::Negative(_) => -1.0 - 8.0 * unit,
                Filling::Positive(_) => 1.0 + 8.0 * unit,
                Filling::Spread(_) => {
                    let sign = if generator.word(i) & 1 == 0 {
                        1.0
                    } else {
                        -1.0
                    };
                    sign * 2f64.powf(unit * 12.0 - 6.0)
                }
                _ => 2.0 * unit - 1.0,
            }
        };
        let size = ty.size();
        let count = described.len() / size;
        (0..count as u64)
            .flat_map(|i| ty.float_bits(value(i)).to_le_bytes().into_iter().take(size))
            .collect()
    }
}

impl Filling {
    /// Those of a range of integers that it stands for, if there are any.
    fn among(self, (low, high): (i128, i128)) -> Option<(i128, i128)> {
        let (low, high) = match self {
            Filling::Whole(_) => (low.max(-8), high.min(8)),
            Filling::Negative(_) => (low, high.min(-1)),
            Filling::Positive(_) => (low.max(1), high),
            _ => (low, high),
        };
        (low <= high).then_some((low, high))
    }
}

/// The integers that a buffer may hold, as far as its description draws them one by one.
pub(crate) fn integers(buffer: &Buffer) -> Option<(i128, i128)> {
    match buffer.init {
        Init::UniformInt { low, high, .. } => Some((low, high)),
        // Zeros that stand for any: small numbers, as indices and flags are.
        Init::Zeros => Some((0, 8)),
        Init::Bits { .. } => {
            let most = 1i128 << (8 * buffer.ty.size());
            Some(match buffer.ty.int_bits(-1) {
                Some(_) => (-most / 2, most / 2 - 1),
                None => (0, most - 1),
            })
        }
        _ => None,
    }
}

fn drawn(ty: ElemType, generator: Generator, (low, high): (i128, i128), count: u64) -> Vec<u8> {
    let values = u64::try_from(high - low + 1).ok();
    let value = |i: u64| match values {
        Some(values) => low + i128::from(generator.below(i, values)),
        None => low + i128::from(generator.word(i)),
    };
    let bits = (0..count).map(|i| ty.int_bits(value(i)).unwrap_or(0));
    bits.flat_map(|bits| bits.to_le_bytes().into_iter().take(ty.size()))
        .collect()
}

/// Contents of buffers by name.
pub type Memory = BTreeMap<String, Vec<u8>>;

/// What both sides begin with: the first side's names, and those that the second has alone.
pub(crate) fn filled(
    a: &Side,
    b: &Side,
    paired: &Paired,
    known: Known<'_>,
    filling: Filling,
) -> [Memory; 2] {
    let mut first = Memory::new();
    for (name, described) in pairing::buffers(a) {
        let keeps = pairing::is_unset(&described) || known.is_kept(&name, &described);
        let how = if keeps { Filling::Described } else { filling };
        first.insert(
            name.clone(),
            how.bytes(&name, described.buffer, described.bytes),
        );
    }
    let theirs = pairing::buffers(a);
    let mut second = Memory::new();
    for (name, described) in pairing::buffers(b) {
        let partner = paired.partner.get(&name);
        let partner = partner.and_then(|x| theirs.iter().find(|(n, _)| n == x));
        let leading = partner.filter(|(_, other)| pairing::leads(other, &described));
        let same = leading.and_then(|(x, _)| first.get(x));
        let own = || described.bytes.to_vec();
        second.insert(name, same.cloned().unwrap_or_else(own));
    }
    [first, second]
}

/// Runs a side's launches on numbers.
pub(crate) fn run(side: &Side, which: Which, memory: &mut Memory) -> Result<(), Why> {
    run_within(side, which, memory, PATIENT)
}

/// Warp instructions of a block, and of all blocks.
pub(crate) type Budget = [u64; 2];
pub(crate) const PATIENT: Budget = [1 << 26, 1 << 30];
/// For kernels in which blocks wait for one another, maybe for ever.
pub(crate) const WAITING: Budget = [1 << 19, 1 << 24];

/// The same, with less patience perhaps.
pub(crate) fn run_within(
    side: &Side,
    which: Which,
    memory: &mut Memory,
    budget: Budget,
) -> Result<(), Why> {
    for step in &side.steps {
        run_step(step, which, memory, budget)?;
    }
    Ok(())
}

/// What the launches of a side leave in its outputs, by name.
///
/// # Errors
/// [`Why`]: a fault, or a launch that does not fit.
pub fn outputs(side: &Side) -> Result<Vec<(String, Vec<u8>)>, Why> {
    let mut memory = Memory::new();
    run(side, Which::Second, &mut memory)?;
    let all = pairing::buffers(side).into_iter();
    let outputs = all.filter(|(_, described)| described.output);
    Ok(outputs
        .filter_map(|(name, _)| memory.remove(&name).map(|bytes| (name, bytes)))
        .collect())
}

fn run_step(
    step: &Step,
    which: Which,
    memory: &mut Memory,
    [budget, total]: Budget,
) -> Result<(), Why> {
    let names: Vec<String> = step.launch.buffers().map(|b| b.name.clone()).collect();
    let inputs = names.iter().zip(&step.contents);
    let inputs = inputs.map(|(name, own)| memory.get(name).cloned().unwrap_or_else(|| own.clone()));
    let options = RunOptions {
        budget,
        total,
        races: true,
        loose_shuffles: true,
        ..RunOptions::default()
    };
    let outcome = step.program.run(&step.launch, inputs.collect(), &options);
    match outcome {
        Ok(Outcome::Finished(results)) => {
            memory.extend(names.into_iter().zip(results.buffers));
            Ok(())
        }
        Ok(Outcome::Faulted(fault)) => Err(Why::FaultyOnNumbers {
            which,
            fault: in_a_line(&fault),
        }),
        Err(error) => Err(Why::Launch {
            which,
            text: error.to_string(),
        }),
    }
}

fn in_a_line(fault: &Fault) -> String {
    let ([x, y, z], [bx, by, bz]) = (fault.thread, fault.block);
    format!(
        "{}: {}, thread ({x}, {y}, {z}) of block ({bx}, {by}, {bz}), at {}",
        fault.kind.name(),
        fault.message,
        at(&fault.place)
    )
}

/// The first element of an output that differs, beyond rounding unless `exactly`.
pub(crate) struct Difference {
    pub output: String,
    pub index: usize,
    pub values: [String; 2],
    /// It may be rounding.
    pub small: bool,
}

/// The largest magnitude in each output on the described inputs.
pub(crate) type Scale = BTreeMap<String, f64>;

/// That of what the original leaves.
pub(crate) fn scale(a: &Side, paired: &Paired, [first, second]: &[Memory; 2]) -> Scale {
    let each = both_outputs(a, paired, [first, second]).into_iter();
    let floats = each.filter(|(_, ty, ..)| ty.is_float());
    let of = |(name, ty, x, _): (String, ElemType, &[u8], &[u8])| (name, largest(&numbers(ty, x)));
    floats.map(of).collect()
}

/// Compares the outputs of both sides, of each the largest difference, relative to the largest element. Where inputs that
/// nobody described lead the original out of the numbers, nothing is said; and elements there are small beside what is
/// described, since a sum that cancels leaves nothing else. What the description tolerates is small everywhere.
pub(crate) fn differences(
    [a, b]: [&Side; 2],
    paired: &Paired,
    (filling, scale): (Filling, &Scale),
    memory: &[Memory; 2],
) -> Vec<Difference> {
    let is_described = filling == Filling::Described;
    let each = both_outputs(a, paired, memory.each_ref()).into_iter();
    each.filter_map(|(name, ty, x, y)| {
        let judge = Judge {
            least: scale.get(&name).copied().filter(|_| !is_described),
            tolerance: tolerated([a, b], paired, &name),
            is_apart: |x: f64| !is_described && !x.is_finite(),
        };
        difference((&name, ty), [x, y], judge)
    })
    .collect()
}

/// The first element that is a number on one side, and infinite or none on the other.
pub(crate) fn stray(a: &Side, paired: &Paired, memory: &[Memory; 2]) -> Option<Difference> {
    stray_where(a, paired, memory, |[p, q]| p.is_finite() != q.is_finite())
}

fn stray_where(
    a: &Side,
    paired: &Paired,
    [first, second]: &[Memory; 2],
    is_stray: impl Fn([f64; 2]) -> bool,
) -> Option<Difference> {
    let each = both_outputs(a, paired, [first, second]).into_iter();
    let mut strays = each.filter_map(|(output, ty, x, y)| {
        let elements = x.chunks_exact(ty.size()).zip(y.chunks_exact(ty.size()));
        let mut values = elements.map(|(x, y)| [x, y].map(|e| ty.to_f64(ty.read(e))));
        let index = values.clone().position(&is_stray)?;
        let values = values.nth(index)?.map(|v| format!("{v}"));
        ty.is_float().then_some(Difference {
            output,
            index,
            values,
            small: false,
        })
    });
    strays.next()
}

/// The first element that is a number in the original and infinite or none in the other.
pub(crate) fn lost(a: &Side, paired: &Paired, memory: &[Memory; 2]) -> Option<Difference> {
    stray_where(a, paired, memory, |[p, q]| p.is_finite() && !q.is_finite())
}

/// The first element that is further off than the description allows: than its tolerance, or without one than rounding
/// is.
pub(crate) fn beyond(
    a: &Side,
    b: &Side,
    paired: &Paired,
    [first, second]: &[Memory; 2],
) -> Option<(Difference, Option<Tolerance>)> {
    let each = both_outputs(a, paired, [first, second]).into_iter();
    let mut far = each.filter_map(|(output, ty, x, y)| {
        let stated = tolerated([a, b], paired, &output);
        if stated.is_none() {
            let judge = Judge {
                least: None,
                tolerance: None,
                is_apart: |_| false,
            };
            let far = difference((&output, ty), [x, y], judge).filter(|found| !found.small);
            return far.map(|found| (found, None));
        }
        let index = compare(y, x, ty, stated).first_mismatch?;
        let at = index * ty.size()..(index + 1) * ty.size();
        let values = [x.get(at.clone())?, y.get(at)?];
        let far = Difference {
            output,
            index,
            values: values.map(|e| format!("{}", ty.to_f64(ty.read(e)))),
            small: false,
        };
        Some((far, stated))
    });
    far.next()
}

/// The tolerance of an output: the original's, else the other description's.
fn tolerated([a, b]: [&Side; 2], paired: &Paired, output: &str) -> Option<Tolerance> {
    let partner = paired.partner.iter().find(|(_, own)| *own == output);
    let own = tolerance(a, output);
    own.or_else(|| partner.and_then(|(name, _)| tolerance(b, name)))
}

/// The tolerance of an output, by the launch that says it.
fn tolerance(side: &Side, name: &str) -> Option<Tolerance> {
    let mut all = side.steps.iter().flat_map(|step| step.launch.buffers());
    all.find_map(|buffer| buffer.tolerance.filter(|_| buffer.name == name))
}

/// Name, type and bytes on both sides of each output.
fn both_outputs<'m>(
    a: &Side,
    paired: &Paired,
    [first, second]: [&'m Memory; 2],
) -> Vec<(String, ElemType, &'m [u8], &'m [u8])> {
    let all = pairing::buffers(a).into_iter().filter(|(_, d)| d.output);
    let both = all.filter_map(|(name, described)| {
        let (partner, _) = paired.partner.iter().find(|(_, x)| **x == name)?;
        let (x, y) = (first.get(&name)?, second.get(partner)?);
        Some((name, described.buffer.ty, &x[..], &y[..]))
    });
    both.collect()
}

/// The least normal number of half precision (IEEE 754, binary16).
const LEAST_HALF: f64 = 1.0 / 16384.0;

fn numbers(ty: ElemType, bytes: &[u8]) -> Vec<f64> {
    let elements = bytes.chunks_exact(ty.size());
    elements.map(|e| ty.to_f64(ty.read(e))).collect()
}

fn largest(all: &[f64]) -> f64 {
    let numbers = all.iter().filter(|v| v.is_finite());
    numbers.fold(0.0f64, |m, v| m.max(v.abs()))
}

/// What counts as a difference.
struct Judge<F> {
    /// What is small beside this is small, whatever else the output holds.
    least: Option<f64>,
    tolerance: Option<Tolerance>,
    /// Elements left out by what they are in the original.
    is_apart: F,
}

/// The first difference of an output that is larger than rounding and tolerance are, else the first one.
fn difference(
    (name, ty): (&str, ElemType),
    [x, y]: [&[u8]; 2],
    judge: Judge<impl Fn(f64) -> bool>,
) -> Option<Difference> {
    let size = ty.size();
    let (p, q) = (numbers(ty, x), numbers(ty, y));
    let unequal = |i: usize| x[i * size..(i + 1) * size] != y[i * size..(i + 1) * size];
    let both_nan = |i: usize| p[i].is_nan() && q[i].is_nan();
    let differs: Vec<usize> = (0..p.len().min(q.len()))
        .filter(|&i| unequal(i) && !both_nan(i) && !(judge.is_apart)(p[i]))
        .collect();
    let largest = largest(&p).max(judge.least.unwrap_or(0.0));
    // Ten bits fewer than the format has, of the largest element: sums of a thousand that cancel.
    let digits = match ty {
        ElemType::F64 => 43,
        ElemType::F32 => 13,
        ElemType::F16 => 5,
        ElemType::Bf16 => 3,
        _ => 64,
    };
    // Below the least normal number is what underflows in one order and not in another.
    let least = match ty {
        ElemType::F64 => f64::MIN_POSITIVE,
        ElemType::F32 | ElemType::Bf16 => f64::from(f32::MIN_POSITIVE),
        ElemType::F16 => LEAST_HALF,
        _ => 0.0,
    };
    let close = (largest * 2f64.powi(-digits)).max(least);
    let tolerated = |x: f64| judge.tolerance.map_or(0.0, |t| t.abs + t.rel * x.abs());
    let is_small = |i: usize| ty.is_float() && (p[i] - q[i]).abs() <= close.max(tolerated(p[i]));
    let large = differs.iter().copied().find(|&i| !is_small(i));
    let index = large.or(differs.first().copied())?;
    Some(Difference {
        output: name.to_owned(),
        index,
        values: [p[index], q[index]].map(|v| format!("{v}")),
        small: large.is_none(),
    })
}
