//! A version against the input: every kernel of it, at odd and tiny sizes ([`warpwright_ladder`]).

use std::sync::Arc;

use warpwright_cudac::Scalar;
use warpwright_ladder::{
    Argument, Bounds, Compile, Element, Launch, Original, Run, Rung, Trial, climb as climb_trials,
};

use super::problem::{Output, Problem};
use super::trial::{Case, cases};
use crate::emit::{Condition, Entry, Generated, NoLauncher, Parts, value};
use crate::ir::{Array, Kernel, ParameterKind};

/// A kernel that ran at so many sizes has been tried.
const BOUNDS: Bounds = Bounds { least: 1, most: 4 };

/// Compares a version with the input. Kernels for which no small launch can be made (conditions that contradict each
/// other) are taken out of the version.
pub fn climb(
    problem: &Problem,
    generated: &mut Generated,
    compile: &Compile<'_>,
) -> Rung<NoLauncher> {
    let kernel = &problem.kernel;
    let output = match problem.output(generated) {
        Ok(output) => output,
        Err(refusal) => return Rung::Falls(warpwright_ladder::Fall::Refused(refusal)),
    };
    if !is_emulated(kernel) {
        let why =
            "a parameter of it has a type that is not compared (a structure, or a pointer to one)";
        return Rung::Unchecked(why.to_owned());
    }
    let text: Arc<str> = output.text.as_str().into();
    let trials = cases(kernel, generated).into_iter().map(|case| {
        let rewrites = generated
            .entries
            .iter()
            .filter(|e| holds(&e.conditions, &case));
        Ok(Trial {
            text: text.clone(),
            sizes: named(kernel, &case),
            is_shrunk: false,
            arrays: arrays(kernel, &case),
            original: Original::Run(original(kernel, &case)),
            variables: variables(kernel),
            rewrites: rewrites
                .filter_map(|entry| rewrite((kernel, &output), entry, generated.reordered, &case))
                .collect(),
        })
    });
    let rung = climb_trials(trials, BOUNDS, compile);
    if let Rung::Agrees(checked) = &rung {
        let ran = |entry: &Entry| checked.kernels.contains(&output.names.entry(entry));
        generated.entries.retain(ran);
    }
    rung
}

/// The kernel as written.
fn original(kernel: &Kernel, case: &Case) -> Run {
    Run {
        launches: vec![Launch {
            kernel: kernel.name.clone(),
            grid: case.grid,
            block: case.block,
            shared: 0,
        }],
        arguments: arguments(kernel, case),
        scratch: Vec::new(),
        offset: 0,
        is_reordered: false,
    }
}

/// What an entry launches; none where it has values between its parts of a type that is not emulated.
fn rewrite(
    (kernel, output): (&Kernel, &Output),
    entry: &Entry,
    is_reordered: bool,
    case: &Case,
) -> Option<Run> {
    let is_aligned = |c: &Condition| matches!(c, Condition::Aligned(..));
    let blocks = |dim: usize| {
        let end = case.ends.get(dim).copied().unwrap_or(1);
        let per = entry.tile.get(dim).map_or(1, |tile| i64::from(*tile));
        u64::try_from((end + per - 1) / per).unwrap_or(1)
    };
    // The ends of the dimensions follow the kernel's own.
    let mut arguments = arguments(kernel, case);
    arguments.extend(case.ends.iter().map(|end| Argument::Integer(*end)));
    let mut run = Run {
        launches: vec![Launch {
            kernel: output.names.entry(entry),
            grid: [blocks(0), blocks(1), blocks(2) * blocks(3)],
            block: [entry.threads, 1, 1],
            shared: entry.shared_bytes,
        }],
        arguments,
        scratch: Vec::new(),
        // A kernel that does not ask for alignment must not need it.
        offset: match entry.conditions.iter().any(is_aligned) {
            true => 0,
            false => 16 - 16 % largest(kernel) + largest(kernel),
        },
        is_reordered,
    };
    if let Some(parts) = &entry.parts {
        in_parts(&mut run, parts, output.names.first(entry), kernel, case)?;
    }
    Some(run)
}

/// Another kernel before it, with memory between them that holds nothing at first.
fn in_parts(
    run: &mut Run,
    parts: &Parts,
    first: String,
    kernel: &Kernel,
    case: &Case,
) -> Option<()> {
    let turns = value(&parts.turns, &case.sizes, &case.ends);
    // More parts than a launch would make, some of them without a turn.
    let count = turns.unwrap_or(1).clamp(1, 5);
    let points = case.ends.first().copied().unwrap_or(1);
    let arrays = kernel
        .parameters
        .iter()
        .filter(|p| matches!(p.kind, ParameterKind::Array(_)));
    let own = arrays.count();
    for (number, (ty, _)) in parts.values.iter().enumerate() {
        let bytes = match ty.as_str() {
            "float" | "int" | "unsigned int" | "unsigned" => 4,
            "double" | "long long" | "unsigned long long" => 8,
            _ => return None,
        };
        let length = usize::try_from(count * points * bytes).ok()?;
        run.arguments.push(Argument::Array(own + number));
        run.scratch.push(vec![0xa5; length]);
    }
    run.arguments.push(Argument::Integer(count));
    let tile = i64::from(parts.tile);
    let across = u64::try_from((points + tile - 1) / tile).ok()?;
    let before = Launch {
        kernel: first,
        grid: [across, count.unsigned_abs(), 1],
        block: [parts.threads, 1, 1],
        shared: 0,
    };
    run.launches.insert(0, before);
    Some(())
}

/// Bytes of the largest element.
fn largest(kernel: &Kernel) -> usize {
    let bytes = kernel.arrays.iter().map(|a| a.bytes as usize);
    bytes.max().unwrap_or(4).clamp(1, 16)
}

fn named(kernel: &Kernel, case: &Case) -> Vec<(String, i64)> {
    let sizes = case.sizes.iter().enumerate();
    let mut all: Vec<(String, i64)> = sizes
        .map(|(n, v)| (kernel.size_name(n).to_owned(), *v))
        .collect();
    if all.is_empty() {
        all.extend(
            kernel
                .dims
                .iter()
                .zip(&case.ends)
                .map(|(d, end)| (d.name.clone(), *end)),
        );
    }
    all
}

fn holds(conditions: &[Condition], case: &Case) -> bool {
    let mut all = conditions.iter();
    all.all(|condition| condition.holds(&case.sizes, &case.ends))
}

/// Have all parameters types that a launch can pass? Of others no version can be compared.
pub fn is_emulated(kernel: &Kernel) -> bool {
    kernel
        .parameters
        .iter()
        .all(|parameter| match parameter.kind {
            ParameterKind::Array(array) => element(&kernel.arrays[array]).is_some(),
            ParameterKind::Size(..) | ParameterKind::Scalar(Some(_)) => true,
            ParameterKind::Scalar(None) => false,
            ParameterKind::Unused => parameter.declared.contains('*'),
        })
}

/// Those of the kernel as written, with which those of a generated one begin.
fn arguments(kernel: &Kernel, case: &Case) -> Vec<Argument> {
    let mut arrays = 0..;
    let each = kernel.parameters.iter().enumerate();
    each.map(|(number, parameter)| match parameter.kind {
        ParameterKind::Array(_) => Argument::Array(arrays.next().unwrap_or_default()),
        ParameterKind::Size(size, _) => Argument::Integer(case.sizes[size]),
        ParameterKind::Scalar(Some(Scalar::Float | Scalar::Double)) => {
            Argument::Real(0.75 + 0.25 * number as f64)
        }
        ParameterKind::Scalar(_) => Argument::Integer(3),
        ParameterKind::Unused => Argument::Unused,
    })
    .collect()
}

/// The arrays in the order of the parameters.
fn arrays(kernel: &Kernel, case: &Case) -> Vec<warpwright_ladder::Array> {
    let each = kernel.parameters.iter().enumerate();
    each.filter_map(|(number, parameter)| {
        let ParameterKind::Array(array) = parameter.kind else {
            return None;
        };
        let of = &kernel.arrays[array];
        let (element, tolerance) = match of.scalar {
            Some(Scalar::Float) => (Element::Single, 1e-5),
            Some(Scalar::Double) => (Element::Double, 1e-13),
            _ => (Element::Exact(of.bytes as usize), 0.0),
        };
        Some(warpwright_ladder::Array {
            name: of.name.clone(),
            element,
            bytes: data(of, case.lengths[array], number),
            tolerance,
        })
    })
    .collect()
}

/// What host code would copy to the variables of the file.
fn variables(kernel: &Kernel) -> Vec<(String, Vec<u8>)> {
    let all = kernel.arrays.iter().enumerate();
    let all = all.filter(|(_, a)| a.parameter.is_none() && !a.is_fixed);
    all.filter_map(|(number, array)| {
        Some((array.name.clone(), data(array, array.length?, 16 + number)))
    })
    .collect()
}

/// The form of its elements that [`data`] knows.
fn element(array: &Array) -> Option<&'static str> {
    match (array.scalar, &*array.element) {
        (Some(Scalar::Bool | Scalar::Integer(8, _)), _) => Some("u8"),
        (Some(Scalar::Float), _) => Some("f32"),
        (Some(Scalar::Double), _) => Some("f64"),
        (Some(Scalar::Integer(bits @ (16 | 64), _)), _) => {
            Some(if bits == 16 { "u16" } else { "u64" })
        }
        (Some(Scalar::Integer(..)), _) => Some("u32"),
        (None, "char" | "signed char" | "unsigned char" | "uint8_t" | "int8_t") => Some("u8"),
        (None, "half" | "__half" | "half2" | "__half2") => Some("f16"),
        (None, ty) if ty.starts_with("char") || ty.starts_with("uchar") => Some("u8"),
        (None, ty) if ty.starts_with("short") || ty.starts_with("ushort") => Some("u16"),
        (None, ty) if ty.starts_with("float") => Some("f32"),
        (None, ty) if ty.starts_with("double") => Some("f64"),
        (None, ty) if ty.starts_with("int") || ty.starts_with("uint") => Some("u32"),
        _ => None,
    }
}

/// So many 1024ths as a `__half`: 1 to 2047 of them are exact.
fn half(of_1024: u32) -> u16 {
    let leading = of_1024.clamp(1, 2047).ilog2();
    let mantissa = (of_1024 << (10 - leading.min(10))) & 0x3ff;
    ((leading + 5) << 10 | mantissa) as u16
}

/// What an array holds first: numbers that look random, positive, none of them alike.
fn data(array: &Array, length: i64, number: usize) -> Vec<u8> {
    let per = array.element.chars().last().and_then(|c| c.to_digit(10));
    let per = if array.scalar.is_none() {
        per.unwrap_or(1)
    } else {
        1
    };
    let count = usize::try_from(length).unwrap_or(0) * per as usize;
    let mut out = Vec::new();
    for at in 0..count {
        let mut h = (at as u32)
            .wrapping_mul(2_654_435_761)
            .wrapping_add((number as u32 + 1).wrapping_mul(0x9e37_79b1));
        h ^= h >> 15;
        h = h.wrapping_mul(739_982_445);
        h ^= h >> 12;
        let real = 0.25 + f64::from(h >> 9) / 8_388_608.0;
        let small = h >> 24;
        match element(array) {
            Some("f32") => out.extend((real as f32).to_le_bytes()),
            Some("f64") => out.extend(real.to_le_bytes()),
            // From 0.25 to 1.25 in steps that it has.
            Some("f16") => out.extend(half(256 + (h >> 22)).to_le_bytes()),
            Some("u64") => out.extend(u64::from(small).to_le_bytes()),
            Some("u16") => out.extend((small as u16).to_le_bytes()),
            Some("u8") => out.push(small as u8),
            _ => out.extend(small.to_le_bytes()),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::half;

    #[test]
    fn halves_are_what_they_stand_for() {
        let value = |bits: u16| {
            let exponent = i32::from(bits >> 10) - 15;
            (1.0 + f64::from(bits & 0x3ff) / 1024.0) * 2f64.powi(exponent)
        };
        for number in [256, 257, 511, 512, 1023, 1024, 1279] {
            assert_eq!(value(half(number)), f64::from(number) / 1024.0, "{number}");
        }
    }
}
