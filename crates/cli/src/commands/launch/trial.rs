//! A description is tried in the emulator before it is written: what is guessed of it is guessed anew where it faults.

use std::time::{Duration, Instant};

use warpwright_emu::{Emulator, FaultKind, Options, Outcome, Program};
use warpwright_launch::{LaunchFile, no_files};
use warpwright_ptx::Module;

use super::draft::{Contents, Draft, Parameter};
use super::make::Ground;
use super::sizes;
use crate::failure::Failure;

/// Warp instructions of a trial.
const FUEL: u64 = 1 << 24;
/// Time for all trials but the first.
const TIME: Duration = Duration::from_secs(15);

/// What a trial came to.
pub enum Trial {
    /// The small size runs.
    Runs,
    /// It does not; why, in a line, and whether other guesses may help.
    Faults(String, bool),
    /// The emulator cannot tell.
    Unknown(String),
}

/// Runs the small size of a description.
fn trial(program: &Program, text: &str, fuel: u64) -> Result<Trial, Failure> {
    // What is written has to be what is read.
    let launch = match LaunchFile::parse(text, "the description")
        .and_then(|file| file.resolve("small", &[]))
    {
        Ok(launch) => launch,
        Err(e) => return Ok(Trial::Faults(first_line(&e.to_string()), true)),
    };
    let mut inputs = Vec::new();
    for buffer in launch.buffers() {
        if buffer.size() > 1 << 30 {
            return Ok(Trial::Unknown(format!("`{}` is too large", buffer.name)));
        }
        match buffer.materialize(&no_files) {
            Ok(bytes) => inputs.push(bytes),
            Err(e) => return Ok(Trial::Faults(first_line(&e.to_string()), true)),
        }
    }
    let options = Options {
        budget: fuel,
        total: fuel,
        ..Options::default()
    };
    Ok(match program.run(&launch, inputs, &options) {
        Ok(Outcome::Finished(_)) => Trial::Runs,
        Ok(Outcome::Faulted(fault)) => {
            let what = format!("{}: {}", fault.kind.name(), fault.message);
            let may_help = matches!(
                fault.kind,
                FaultKind::OutOfBounds
                    | FaultKind::Budget
                    | FaultKind::Misaligned
                    | FaultKind::Trap
                    | FaultKind::Assertion
            );
            Trial::Faults(what, may_help)
        }
        Err(e) => Trial::Unknown(first_line(&e.to_string())),
    })
}

fn first_line(text: &str) -> String {
    text.lines()
        .next()
        .unwrap_or("")
        .trim_start_matches("error: ")
        .to_owned()
}

/// Integers that the kernel only reads and that are guessed.
fn has_indices(draft: &Draft) -> bool {
    draft.memory().any(|memory| {
        matches!(
            memory.contents,
            Contents::Indices(_) | Contents::Sorted(_) | Contents::Narrow
        )
    })
}

/// Is it a name that row pointers and the like have?
fn points_to_rows(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["ptr", "off", "row", "start", "begin", "xadj", "indptr"]
        .iter()
        .any(|part| name.contains(part))
}

/// Other contents of the buffers of indices.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Indices {
    AsThey,
    Rows,
    Zeros,
}

fn with(
    ground: &Ground<'_>,
    base: &Draft,
    level: usize,
    indices: Indices,
    scalar: Option<i64>,
    shift: u32,
) -> Draft {
    let mut draft = base.clone();
    ground.guess_counts(&mut draft, level);
    sizes::name(&mut draft);
    let one = warpwright_cudac::launches::Amount::Number(1);
    let guessed = draft.guessed_count.clone();
    for memory in draft.buffers_mut() {
        let is_index = matches!(memory.contents, Contents::Indices(_) | Contents::Narrow);
        match indices {
            Indices::Zeros if is_index => memory.contents = Contents::Zeros { is_code: false },
            Indices::Rows if is_index && !memory.is_output && points_to_rows(&memory.name) => {
                memory.contents = Contents::Sorted(one.clone());
                if memory.count.is_none() {
                    let count = guessed
                        .iter()
                        .cloned()
                        .reduce(warpwright_cudac::launches::Amount::times);
                    let count = count.unwrap_or(one.clone());
                    memory.count = Some(warpwright_cudac::launches::Amount::binary(
                        warpwright_cudac::launches::Op::Add,
                        count,
                        one.clone(),
                    ));
                    memory.note = super::draft::GUESS;
                }
            }
            _ => {}
        }
    }
    sizes::choose(&mut draft, shift, scalar);
    sizes::fill(&mut draft);
    draft
}

/// The first of some guesses that runs, else the first of all, and why that does not run.
pub fn best(ground: &Ground<'_>, base: &Draft, module: &Module) -> Result<(Draft, Trial), Failure> {
    let first = with(ground, base, 0, Indices::AsThey, None, 0);
    let program = match Emulator::new(module, ground.symbol) {
        Ok(program) => program,
        Err(e) => return Ok((first, Trial::Unknown(first_line(&e.to_string())))),
    };
    let start = Instant::now();
    let result = trial(&program, &first.render(), FUEL)?;
    let Trial::Faults(_, true) = result else {
        return Ok((first, result));
    };
    let guesses_sizes = base.memory().any(|memory| memory.count.is_none());
    let guesses_scalars = base
        .parameters
        .iter()
        .any(|p| matches!(p, Parameter::Scalar { .. }))
        && first
            .names
            .iter()
            .any(|named| named.is_scalar && named.root.value.is_none());
    let levels = if guesses_sizes { 0..4 } else { 0..1 };
    let all_indices: &[Indices] = match has_indices(&first) {
        true => &[Indices::AsThey, Indices::Rows, Indices::Zeros],
        false => &[Indices::AsThey],
    };
    let scalars: &[Option<i64>] = if guesses_scalars {
        &[None, Some(1), Some(0)]
    } else {
        &[None]
    };
    for shift in [0, 2, 4] {
        for level in levels.clone() {
            for &scalar in scalars {
                for &indices in all_indices {
                    if start.elapsed() > TIME {
                        return Ok((first, result));
                    }
                    let draft = with(ground, base, level, indices, scalar, shift);
                    if let Trial::Runs = trial(&program, &draft.render(), FUEL)? {
                        return Ok((draft, Trial::Runs));
                    }
                }
            }
        }
    }
    Ok((first, result))
}
