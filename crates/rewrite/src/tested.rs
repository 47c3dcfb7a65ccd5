//! On numbers: the second judge, and what shows a difference that terms tell of.

use std::collections::BTreeMap;

use warpwright_emu::{Options as RunOptions, Outcome};
use warpwright_launch::{ElemType, Generator};

use crate::pairing::{self, Paired};
use crate::standing::{Which, Why};
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
    /// Of many magnitudes.
    Spread(u64),
}

/// Fillings in the order in which they are tried.
pub(crate) const FILLINGS: [Filling; 8] = [
    Filling::Described,
    Filling::Whole(1),
    Filling::Unit(2),
    Filling::Negative(3),
    Filling::Spread(4),
    Filling::Whole(5),
    Filling::Unit(6),
    Filling::Spread(7),
];

impl Filling {
    pub fn text(self) -> String {
        match self {
            Filling::Described => "the inputs as described".to_owned(),
            Filling::Unit(seed) => format!("inputs between -1 and 1 (seed {seed})"),
            Filling::Whole(seed) => format!("whole inputs between -8 and 8 (seed {seed})"),
            Filling::Negative(seed) => format!("inputs between -9 and -1 (seed {seed})"),
            Filling::Spread(seed) => format!("inputs of many magnitudes (seed {seed})"),
        }
    }

    fn bytes(self, name: &str, ty: ElemType, described: &[u8]) -> Vec<u8> {
        if self == Filling::Described || !ty.is_float() {
            return described.to_vec();
        }
        let seed = match self {
            Filling::Described => 0,
            Filling::Unit(seed)
            | Filling::Whole(seed)
            | Filling::Negative(seed)
            | Filling::Spread(seed) => seed,
        };
        let generator = Generator::new(name, seed);
        let value = |i: u64| {
            let unit = generator.unit(i);
            match self {
                Filling::Whole(_) => (unit * 17.0).floor() - 8.0,
                Filling::Negative(_) => -1.0 - 8.0 * unit,
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

/// Contents of buffers by name.
pub(crate) type Memory = BTreeMap<String, Vec<u8>>;

/// What both sides begin with: the first side's names, and those that the second has alone.
pub(crate) fn filled(
    a: &Side,
    b: &Side,
    paired: &Paired,
    fixed: &[String],
    filling: Filling,
) -> [Memory; 2] {
    let mut first = Memory::new();
    for (name, described) in pairing::buffers(a) {
        let keeps = pairing::is_given(&described)
            || pairing::is_unset(&described)
            || fixed.contains(&name)
            || described.buffer.table.is_some();
        let how = if keeps { Filling::Described } else { filling };
        first.insert(
            name.clone(),
            how.bytes(&name, described.buffer.ty, described.bytes),
        );
    }
    let mut second = Memory::new();
    for (name, described) in pairing::buffers(b) {
        let partner = paired.partner.get(&name).and_then(|x| first.get(x));
        let same = partner.filter(|bytes| bytes.len() == described.bytes.len());
        let own = || described.bytes.to_vec();
        second.insert(name, same.cloned().unwrap_or_else(own));
    }
    [first, second]
}

/// Runs a side's launches on numbers.
pub(crate) fn run(side: &Side, which: Which, memory: &mut Memory) -> Result<(), Why> {
    for step in &side.steps {
        run_step(step, which, memory)?;
    }
    Ok(())
}

fn run_step(step: &Step, which: Which, memory: &mut Memory) -> Result<(), Why> {
    let names: Vec<String> = step.launch.buffers().map(|b| b.name.clone()).collect();
    let inputs = names.iter().zip(&step.contents);
    let inputs = inputs.map(|(name, own)| memory.get(name).cloned().unwrap_or_else(|| own.clone()));
    let options = RunOptions {
        budget: 1 << 26,
        total: 1 << 30,
        races: true,
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
            fault: fault.to_string().trim_end().to_owned(),
        }),
        Err(error) => Err(Why::Launch {
            which,
            text: error.to_string(),
        }),
    }
}

/// The first element of an output that differs, beyond rounding unless `exactly`.
pub(crate) struct Difference {
    pub output: String,
    pub index: usize,
    pub values: [String; 2],
    /// It may be rounding.
    pub small: bool,
}

/// Compares the outputs of both sides; the largest difference of all, relative to the largest element.
pub(crate) fn differences(
    a: &Side,
    paired: &Paired,
    [first, second]: &[Memory; 2],
) -> Vec<Difference> {
    let mut found = Vec::new();
    for (name, described) in pairing::buffers(a).into_iter().filter(|(_, d)| d.output) {
        let partner = paired.partner.iter().find(|(_, x)| **x == name);
        let (Some(x), Some(y)) = (first.get(&name), partner.and_then(|(y, _)| second.get(y)))
        else {
            continue;
        };
        found.extend(difference(&name, described.buffer.ty, x, y));
    }
    found
}

fn difference(name: &str, ty: ElemType, x: &[u8], y: &[u8]) -> Option<Difference> {
    let size = ty.size();
    let numbers = |bytes: &[u8]| -> Vec<f64> {
        bytes
            .chunks_exact(size)
            .map(|e| ty.to_f64(ty.read(e)))
            .collect()
    };
    let (p, q) = (numbers(x), numbers(y));
    let unequal = |i: usize| x[i * size..(i + 1) * size] != y[i * size..(i + 1) * size];
    let both_nan = |i: usize| p[i].is_nan() && q[i].is_nan();
    let differs: Vec<usize> = (0..p.len().min(q.len()))
        .filter(|&i| unequal(i) && !both_nan(i))
        .collect();
    let largest = p
        .iter()
        .filter(|v| v.is_finite())
        .fold(0.0f64, |m, v| m.max(v.abs()));
    // Ten bits fewer than the format has, of the largest element: sums of a thousand that cancel.
    let digits = match ty {
        ElemType::F64 => 43,
        ElemType::F32 => 13,
        ElemType::F16 => 5,
        ElemType::Bf16 => 3,
        _ => 64,
    };
    let close = largest * 2f64.powi(-digits);
    let is_small = |i: usize| ty.is_float() && (p[i] - q[i]).abs() <= close;
    let large = differs.iter().copied().find(|&i| !is_small(i));
    let index = large.or(differs.first().copied())?;
    Some(Difference {
        output: name.to_owned(),
        index,
        values: [p[index], q[index]].map(|v| format!("{v}")),
        small: large.is_none(),
    })
}
