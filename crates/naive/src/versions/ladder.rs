//! A version against the input, in the PTX emulator: odd and tiny sizes, every kernel of the version, races in shared
//! memory and accesses outside of arrays being faults.
//!
//! Both stand in one text, which nvcc compiles without fusing multiplications and additions: it may choose other pairs
//! in other texts. Every bit must be equal.

use crate::emit::{Condition, Generated, NoLauncher, Parts};
use crate::ir::{Array, Kernel, ParameterKind};
use serde::Serialize;
use warpwright_cudac::Scalar;
use warpwright_cudac::affine::Symbol;
use warpwright_ptx::Module;

use super::problem::Problem;
use super::trial::{Trial, trials};
use warpwright_ladder::CompileError;
use warpwright_ladder::emulated::{Argument, Launched, run, symbol};

/// What agreed.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Checked {
    /// The sizes, by name, of each comparison.
    pub sizes: Vec<Vec<(String, i64)>>,
    /// The kernels that ran.
    pub kernels: Vec<String>,
}

/// Why a version is out.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Fall {
    /// The kernel cannot be replaced.
    #[error("the kernel cannot be replaced: {0}")]
    Refused(#[from] NoLauncher),
    /// The compiler refuses it.
    #[error("it does not compile: {0}")]
    Compile(String),
    /// It does something wrong.
    #[error("`{kernel}` at {sizes:?}: {fault}")]
    Fault {
        /// The kernel.
        kernel: String,
        /// The sizes.
        sizes: Vec<(String, i64)>,
        /// What the emulator says.
        fault: String,
    },
    /// It computes something else.
    #[error("`{kernel}` at {sizes:?}: element {element} of `{array}` is another one")]
    Differs {
        /// The kernel.
        kernel: String,
        /// The sizes.
        sizes: Vec<(String, i64)>,
        /// The array.
        array: String,
        /// The first element that differs.
        element: usize,
    },
}

/// How far a version got.
#[derive(Clone, Debug, PartialEq)]
pub enum Rung {
    /// It agrees with the input: every kernel that is left in it ran.
    Agrees(Checked),
    /// It is out.
    Falls(Fall),
    /// It was not compared: there is no compiler, or no small launch could be made.
    Unchecked(String),
}

/// Compares a version with the input. `compile` makes PTX of a text, with nvcc's `-fmad=false`. Kernels for which no
/// small launch can be made (conditions that contradict each other) are taken out of the version.
pub fn climb(
    problem: &Problem,
    generated: &mut Generated,
    compile: &dyn Fn(&str) -> Result<String, CompileError>,
) -> Rung {
    match compared(problem, generated, compile) {
        Ok(rung) => rung,
        Err(fall) => Rung::Falls(fall),
    }
}

fn compared(
    problem: &Problem,
    generated: &mut Generated,
    compile: &dyn Fn(&str) -> Result<String, CompileError>,
) -> Result<Rung, Fall> {
    let kernel = &problem.kernel;
    let output = problem.output(generated)?;
    let ptx = match compile(&output.text) {
        Ok(ptx) => ptx,
        Err(CompileError::Missing(why)) => return Ok(Rung::Unchecked(why)),
        Err(CompileError::Rejected(why)) => return Err(Fall::Compile(why)),
    };
    let (module, problems) = Module::parse("output", &ptx);
    if let Some(problem) = problems.iter().find(|d| d.is_error()) {
        return Err(Fall::Compile(problem.message.clone()));
    }
    let own = symbol(&module, &kernel.name)
        .ok_or_else(|| Fall::Compile("the kernel is not there".into()))?;
    let mut checked = Checked::default();
    let mut tried = vec![0; generated.entries.len()];
    for trial in trials(kernel, generated) {
        let named = named(kernel, &trial);
        let wanted: Vec<usize> = (0..generated.entries.len())
            .filter(|at| tried[*at] < 4 && holds(&generated.entries[*at].conditions, &trial))
            .collect();
        if wanted.is_empty() {
            continue;
        }
        let launched = Launched {
            kernel: &own,
            grid: trial.grid,
            block: trial.block,
            shared: 0,
            offset: 0,
        };
        let Some(arguments) = arguments(kernel, &trial, false) else {
            let why = "a parameter of it has a type that is not emulated";
            return Ok(Rung::Unchecked(why.to_owned()));
        };
        // A launch for which the kernel as written does not work says nothing.
        let Ok(expected) = run(&module, &launched, arguments) else {
            continue;
        };
        for at in wanted {
            let entry = &generated.entries[at];
            let name = output.names.entry(entry);
            let fault = |fault: String| Fall::Fault {
                kernel: name.clone(),
                sizes: named.clone(),
                fault,
            };
            let symbol = symbol(&module, &name).ok_or_else(|| fault("it is not there".into()))?;
            let aligned = entry
                .conditions
                .iter()
                .any(|c| matches!(c, Condition::Aligned(..)));
            let blocks = |dim: usize| {
                let end = trial.ends.get(dim).copied().unwrap_or(1);
                let per = i64::from(entry.tile[dim]);
                u64::try_from((end + per - 1) / per).unwrap_or(1)
            };
            let launched = Launched {
                kernel: &symbol,
                grid: [blocks(0), blocks(1), blocks(2)],
                block: [entry.threads, 1, 1],
                shared: entry.shared_bytes,
                // A kernel that does not ask for alignment must not need it.
                offset: if aligned {
                    0
                } else {
                    16 - 16 % largest(kernel) + largest(kernel)
                },
            };
            let Some(passed) = arguments_of_entry(kernel, &trial) else {
                continue;
            };
            let found = match &entry.parts {
                None => run(&module, &launched, passed),
                Some(parts) => {
                    let first = output.names.first(entry);
                    in_parts(&module, &launched, &first, parts, &trial, passed)
                }
            };
            let found = found.map_err(fault)?;
            let arrays = kernel.parameters.iter().filter_map(|p| match p.kind {
                ParameterKind::Array(array) => Some(&kernel.arrays[array]),
                _ => None,
            });
            for (array, (a, b)) in arrays.zip(expected.iter().zip(&found)) {
                if let Some(element) = different(array, generated.reordered, a, b) {
                    return Err(Fall::Differs {
                        kernel: name,
                        sizes: named,
                        array: array.name.clone(),
                        element,
                    });
                }
            }
            tried[at] += 1;
            if !checked.kernels.contains(&name) {
                checked.kernels.push(name);
            }
        }
        checked.sizes.push(named);
    }
    let mut times = tried.iter();
    generated
        .entries
        .retain(|_| times.next().is_some_and(|times| *times > 0));
    if generated.entries.is_empty() {
        return Ok(Rung::Unchecked(
            "no small launch could be made to try it on".to_owned(),
        ));
    }
    Ok(Rung::Agrees(checked))
}

/// The first element that differs. Where sums were reordered, by more than 1e-5 (`float`) or 1e-13 (`double`) of the
/// largest element.
fn different(array: &Array, reordered: bool, expected: &[u8], found: &[u8]) -> Option<usize> {
    let bytes = array.bytes.max(1) as usize;
    let real = |element: &[u8]| match array.scalar {
        Some(Scalar::Float) => element
            .try_into()
            .ok()
            .map(|b| f64::from(f32::from_le_bytes(b))),
        Some(Scalar::Double) => element.try_into().ok().map(f64::from_le_bytes),
        _ => None,
    };
    let largest = expected.chunks_exact(bytes).filter_map(real).map(f64::abs);
    let largest = largest.filter(|v| v.is_finite()).fold(0.0, f64::max);
    let most = match array.scalar {
        Some(Scalar::Float) => 1e-5 * largest,
        _ => 1e-13 * largest,
    };
    let pairs = expected.chunks(bytes).zip(found.chunks(bytes));
    let mut differ = pairs.map(|(a, b)| match (a == b, real(a), real(b)) {
        (true, ..) => false,
        (false, Some(a), Some(b)) if reordered => {
            !((a - b).abs() <= most || (a.is_nan() && b.is_nan()))
        }
        _ => true,
    });
    differ.position(|d| d)
}

/// Two kernels, one after the other, with memory between them that holds nothing at first.
fn in_parts(
    module: &Module,
    second: &Launched<'_>,
    first: &str,
    parts: &Parts,
    trial: &Trial,
    passed: Vec<Argument>,
) -> Result<Vec<Vec<u8>>, String> {
    let first = symbol(module, first).ok_or("the first kernel is not there")?;
    let turns = parts.turns.evaluate(|s| match s {
        Symbol::Size(n) => trial.sizes.get(n).copied(),
        Symbol::Unknown(n) => trial.ends.get(n).copied(),
        _ => None,
    });
    // More parts than a launch would make, some of them without a turn.
    let count = turns.unwrap_or(1).clamp(1, 5);
    let points = trial.ends.first().copied().unwrap_or(1);
    let mut arguments = passed;
    for (ty, _) in &parts.values {
        let (ty, bytes) = match ty.as_str() {
            "float" => ("f32", 4),
            "double" => ("f64", 8),
            "int" => ("s32", 4),
            "unsigned int" | "unsigned" => ("u32", 4),
            "long long" => ("s64", 8),
            "unsigned long long" => ("u64", 8),
            _ => return Err(format!("a value of type `{ty}`")),
        };
        let length = usize::try_from(count * points * bytes).unwrap_or(0);
        arguments.push(Argument::Array(ty, vec![0xa5; length]));
    }
    let number = Argument::Value("s32".into(), count.to_string());
    let tile = i64::from(parts.tile);
    let across = u64::try_from((points + tile - 1) / tile).unwrap_or(1);
    let launched = Launched {
        kernel: &first,
        grid: [across, count.unsigned_abs(), 1],
        block: [parts.threads, 1, 1],
        shared: 0,
        offset: second.offset,
    };
    let mut arguments_of_second = arguments.clone();
    arguments.push(number);
    let memory = run(module, &launched, arguments)?;
    let arrays = arguments_of_second.iter_mut().filter_map(|a| match a {
        Argument::Array(_, bytes) => Some(bytes),
        _ => None,
    });
    arrays.zip(memory).for_each(|(bytes, now)| *bytes = now);
    let mut arguments = arguments_of_second;
    arguments.push(Argument::Value("s32".into(), count.to_string()));
    let mut found = run(module, second, arguments)?;
    found.truncate(found.len().saturating_sub(parts.values.len()));
    Ok(found)
}

/// Bytes of the largest element.
fn largest(kernel: &Kernel) -> usize {
    let bytes = kernel.arrays.iter().map(|a| a.bytes as usize);
    bytes.max().unwrap_or(4).clamp(1, 16)
}

fn named(kernel: &Kernel, trial: &Trial) -> Vec<(String, i64)> {
    let sizes = trial.sizes.iter().enumerate();
    let mut all: Vec<(String, i64)> = sizes
        .map(|(n, v)| (kernel.size_name(n).to_owned(), *v))
        .collect();
    if all.is_empty() {
        all.extend(
            kernel
                .dims
                .iter()
                .zip(&trial.ends)
                .map(|(d, end)| (d.name.clone(), *end)),
        );
    }
    all
}

fn holds(conditions: &[Condition], trial: &Trial) -> bool {
    conditions.iter().all(|condition| match condition {
        Condition::Multiple(poly, by) => {
            let value = poly.evaluate(|s| match s {
                Symbol::Size(n) => trial.sizes.get(n).copied(),
                Symbol::Unknown(n) => trial.ends.get(n).copied(),
                _ => None,
            });
            value.is_some_and(|value| value % by == 0)
        }
        Condition::Aligned(..) => true,
        Condition::Is(size, value) => trial.sizes.get(*size) == Some(value),
    })
}

fn arguments(kernel: &Kernel, trial: &Trial, narrow: bool) -> Option<Vec<Argument>> {
    let mut all = Vec::new();
    for (number, parameter) in kernel.parameters.iter().enumerate() {
        all.push(match parameter.kind {
            ParameterKind::Array(array) => {
                let of = &kernel.arrays[array];
                Argument::Array(element(of)?, data(of, trial.lengths[array], number))
            }
            ParameterKind::Size(size, scalar) => {
                let ty = if narrow { "s32" } else { word(scalar) };
                Argument::Value(ty.to_owned(), trial.sizes[size].to_string())
            }
            ParameterKind::Scalar(Some(scalar)) => {
                let value = match scalar {
                    Scalar::Float | Scalar::Double => format!("{:?}", 0.75 + 0.25 * number as f64),
                    _ => "3".to_owned(),
                };
                Argument::Value(word(scalar).to_owned(), value)
            }
            ParameterKind::Scalar(None) => return None,
            ParameterKind::Unused => match parameter.declared.contains('*') {
                true => Argument::Unused,
                false => return None,
            },
        });
    }
    Some(all)
}

/// Those of a generated kernel: sizes are `int`, and the ends of the dimensions follow.
fn arguments_of_entry(kernel: &Kernel, trial: &Trial) -> Option<Vec<Argument>> {
    let mut all = arguments(kernel, trial, true)?;
    let ends = trial
        .ends
        .iter()
        .map(|end| Argument::Value("s32".into(), end.to_string()));
    all.extend(ends);
    Some(all)
}

fn word(scalar: Scalar) -> &'static str {
    match scalar {
        Scalar::Bool | Scalar::Integer(8, _) => "u8",
        Scalar::Float => "f32",
        Scalar::Double => "f64",
        Scalar::Integer(64, true) => "s64",
        Scalar::Integer(64, false) => "u64",
        Scalar::Integer(16, true) => "s16",
        Scalar::Integer(16, false) => "u16",
        Scalar::Integer(_, true) => "s32",
        Scalar::Integer(_, false) => "u32",
    }
}

fn element(array: &Array) -> Option<&'static str> {
    match array.scalar {
        Some(scalar) => Some(word(scalar)),
        None => match &*array.element {
            "char" | "signed char" | "unsigned char" | "uint8_t" | "int8_t" => Some("u8"),
            ty if ty.starts_with("float") => Some("f32"),
            ty if ty.starts_with("double") => Some("f64"),
            ty if ty.starts_with("int") => Some("s32"),
            ty if ty.starts_with("uint") => Some("u32"),
            _ => None,
        },
    }
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
            Some("s64" | "u64") => out.extend(u64::from(small).to_le_bytes()),
            Some("s16" | "u16") => out.extend((small as u16).to_le_bytes()),
            Some("u8") => out.push(small as u8),
            _ => out.extend(small.to_le_bytes()),
        }
    }
    out
}
