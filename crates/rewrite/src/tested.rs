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
        let mut bytes = how.bytes(&name, described.buffer, described.bytes);
        let range = known.ranges.iter().find(|(own, ..)| *own == name);
        if let Some(&(_, low, high)) = range.filter(|_| !keeps) {
            within((&name, described.buffer.ty), &mut bytes, [low, high]);
        }
        first.insert(name, bytes);
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

/// Makes numbers outside of a stated range others in it.
fn within((name, ty): (&str, ElemType), bytes: &mut [u8], [low, high]: [f64; 2]) {
    if !ty.is_float() {
        return;
    }
    let generator = Generator::new(name, 0);
    for (at, element) in bytes.chunks_exact_mut(ty.size()).enumerate() {
        let value = ty.to_f64(ty.read(element));
        if !(low..=high).contains(&value) {
            let other = low + (high - low) * generator.unit(at as u64);
            let bits = ty.float_bits(other).to_le_bytes();
            element.copy_from_slice(&bits[..ty.size()]);
        }
    }
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

/// A run of both sides on numbers.
pub(crate) struct Ran<'m> {
    /// What the buffers of both held before it.
    pub before: &'m [Memory; 2],
    /// And behind it.
    pub after: &'m [Memory; 2],
    /// What it might take.
    pub budget: Budget,
}

/// Compares the outputs of both sides, of each the largest difference, relative to the largest element. Where inputs that
/// nobody described lead the original out of the numbers, nothing is said; and elements there are small beside what is
/// described, since a sum that cancels leaves nothing else. What the description tolerates is small everywhere. Where it
/// is known how far rounding moves results, what is many times that far off is not small, and what is as far is.
pub(crate) fn differences(
    sides: [&Side; 2],
    paired: &Paired,
    (filling, scale): (Filling, &Scale),
    ran: &Ran<'_>,
) -> Vec<Difference> {
    let is_described = filling == Filling::Described;
    let each = both_outputs(sides[0], paired, ran.after.each_ref());
    let is_apart = |x: f64| !is_described && !x.is_finite();
    let judge = |name: &str, noise: Option<Noise>| Judge {
        least: scale.get(name).copied().filter(|_| !is_described),
        tolerance: tolerated(sides, paired, name),
        is_apart,
        noise,
        is_strict: true,
    };
    let is_more_than_units = |(name, ty, x, y): &(String, ElemType, &[u8], &[u8])| {
        let judge = judge(name, Some(Noise::default()));
        let found = difference((name, *ty), [x, y], judge);
        ty.is_float() && found.is_some_and(|found| !found.small)
    };
    let is_asked = each.iter().any(is_more_than_units);
    let noise = match is_asked {
        true => noise(sides, paired, ran),
        false => BTreeMap::new(),
    };
    let each = each.into_iter();
    each.filter_map(|(name, ty, x, y)| {
        let judge = judge(&name, noise.get(&name).copied());
        difference((&name, ty), [x, y], judge)
    })
    .collect()
}

/// How far rounding moves an output.
#[derive(Clone, Copy, Debug, Default)]
struct Noise {
    /// The most that an element moves where inputs are another number by their last bit.
    of: f64,
    /// The largest magnitude among inputs and results: nothing is rounding beside it that is much more than its last bits.
    largest: f64,
}

/// Runs with other last bits of the inputs.
const MOVED: u64 = 2;

/// What other last bits of the inputs do to the outputs of either side: what is summed and cancels shows so, whatever is
/// left of it. None of outputs that they do not move.
fn noise([a, b]: [&Side; 2], paired: &Paired, ran: &Ran<'_>) -> BTreeMap<String, Noise> {
    let described = pairing::buffers(a);
    let floats = described.iter().filter(|(_, d)| d.buffer.ty.is_float());
    let held = floats.clone().filter(|(_, d)| pairing::is_data(d));
    let held = held.filter_map(|(name, d)| Some(numbers(d.buffer.ty, ran.before[0].get(name)?)));
    let largest_input = held.map(|all| largest(&all)).fold(0.0, f64::max);
    let mut all: BTreeMap<String, Noise> = BTreeMap::new();
    for seed in 0..MOVED {
        let [mut first, mut second] = moved(a, paired, ran.before, seed);
        if run_within(a, Which::First, &mut first, ran.budget).is_err()
            || run_within(b, Which::Second, &mut second, ran.budget).is_err()
        {
            continue;
        }
        let other = [first, second];
        let was = both_outputs(a, paired, ran.after.each_ref());
        let is = both_outputs(a, paired, other.each_ref());
        for ((name, ty, x, y), (_, _, p, q)) in was.into_iter().zip(is) {
            if !ty.is_float() {
                continue;
            }
            let apart = [(x, p), (y, q)].map(|(was, is)| apart(ty, was, is));
            let known = all.entry(name).or_default();
            known.of = apart.into_iter().fold(known.of, f64::max);
            known.largest = largest_input.max(largest(&numbers(ty, x)));
        }
    }
    all.retain(|_, noise| noise.of > 0.0);
    all
}

/// The largest distance of numbers in the same places.
fn apart(ty: ElemType, x: &[u8], y: &[u8]) -> f64 {
    let pairs = numbers(ty, x).into_iter().zip(numbers(ty, y));
    let all = pairs.map(|(x, y)| (x - y).abs());
    all.filter(|apart| apart.is_finite()).fold(0.0, f64::max)
}

/// Data of floating point of which each number is the next one, above or below.
fn moved(a: &Side, paired: &Paired, before: &[Memory; 2], seed: u64) -> [Memory; 2] {
    let mut memory = before.clone();
    let described = pairing::buffers(a).into_iter();
    for (name, d) in described.filter(|(_, d)| pairing::is_data(d)) {
        let (ty, generator) = (d.buffer.ty, Generator::new(&name, seed));
        let Some(mut bytes) = before[0].get(&name).filter(|_| ty.is_float()).cloned() else {
            continue;
        };
        for (at, element) in bytes.chunks_exact_mut(ty.size()).enumerate() {
            let bits = ty.read(element);
            let other = match generator.word(at as u64) & 1 {
                0 => bits.wrapping_add(1),
                _ => bits.wrapping_sub(1),
            };
            if ty.to_f64(bits) != 0.0 && ty.to_f64(other).is_finite() {
                element.copy_from_slice(&other.to_le_bytes()[..ty.size()]);
            }
        }
        let partner = paired.partner.iter().find(|(_, x)| **x == name);
        if let Some((partner, _)) = partner
            && before[1].get(partner) == before[0].get(&name)
        {
            memory[1].insert(partner.clone(), bytes.clone());
        }
        memory[0].insert(name, bytes);
    }
    memory
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
        let values = values.nth(index)?.map(number);
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
    ran: &Ran<'_>,
) -> Option<(Difference, Option<Tolerance>)> {
    let each = both_outputs(a, paired, ran.after.each_ref()).into_iter();
    let mut far = each.filter_map(|(output, ty, x, y)| {
        let stated = tolerated([a, b], paired, &output);
        if stated.is_none() {
            let judge = |noise| Judge {
                least: None,
                tolerance: None,
                is_apart: |_| false,
                noise,
                is_strict: false,
            };
            let is_far = |noise: Option<Noise>| {
                let found = difference((&output, ty), [x, y], judge(noise));
                found.filter(|found| !found.small)
            };
            is_far(None)?;
            let far = is_far(noise([a, b], paired, ran).get(&output).copied());
            return far.map(|found| (found, None));
        }
        let index = compare(y, x, ty, stated).first_mismatch?;
        let at = index * ty.size()..(index + 1) * ty.size();
        let values = [x.get(at.clone())?, y.get(at)?];
        let far = Difference {
            output,
            index,
            values: values.map(|e| number(ty.to_f64(ty.read(e)))),
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

/// A number, with an exponent where it would be a long row of digits.
pub(crate) fn number(x: f64) -> String {
    match x.abs() {
        0.0 | 1e-4..1e16 => x.to_string(),
        magnitude if magnitude.is_finite() => format!("{x:e}"),
        _ => x.to_string(),
    }
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
    noise: Option<Noise>,
    /// What is many times further off than rounding is no rounding, though it be small beside the largest element.
    is_strict: bool,
}

/// How many times further off rounding in another order may be than other last bits of the inputs, and where it surely is
/// none.
const TIMES: [f64; 2] = [16.0, 128.0];
/// Rounding is less than this of the largest number.
const MOST_NOISE: f64 = 1.525_878_906_25e-5;

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
    let unit = 2f64.powi(-(digits + 10));
    let [most, least] = TIMES;
    let rounding = judge.noise.map_or(0.0, |noise| {
        (most * noise.of).min(MOST_NOISE * noise.largest)
    });
    let is_none = |i: usize, apart: f64| {
        let noise = judge.noise.filter(|_| judge.is_strict);
        noise.is_some_and(|noise| apart > least * (noise.of + unit * p[i].abs()))
    };
    let is_small = |i: usize| {
        let apart = (p[i] - q[i]).abs();
        let is_close = apart <= close && !is_none(i, apart);
        ty.is_float() && (is_close || apart <= rounding.max(tolerated(p[i])))
    };
    let large = differs.iter().copied().find(|&i| !is_small(i));
    let index = large.or(differs.first().copied())?;
    Some(Difference {
        output: name.to_owned(),
        index,
        values: [p[index], q[index]].map(number),
        small: large.is_none(),
    })
}
