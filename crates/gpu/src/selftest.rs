//! Does the measuring side itself work on this machine? Planted faults must be found and named.
//!
//! Small kernels of our own (`tests/data`), most of them broken in one way each, go through a
//! whole session. The report says for each what was expected and what was found.

use std::ops::ControlFlow;
use std::path::Path;

use serde::{Deserialize, Serialize};
use warpwright_launch::{LaunchFile, no_files};

use crate::backend::{Backend, Verdict};
use crate::fault::{Fault, FaultKind};
use crate::job::{Image, Job, Promise, Shape, Variant};
use crate::prepare::prepare;
use crate::results::Measurements;
use crate::session::{Budget, measure};
use crate::stats::Outcome;

/// The launch of all the kernels.
const LAUNCH: &str = include_str!("../tests/data/selftest.toml");

/// What a case must come to.
enum Expected {
    Correct,
    Within,
    Wrong(usize),
    /// Wrong in the last element alone.
    WrongLast,
    Corrupts,
    Failed(FaultKind),
    /// A trap: drivers report it in one of two ways.
    Trapped,
}

use Expected::{Correct, Corrupts, Failed, Trapped, Within, Wrong, WrongLast};

macro_rules! ptx {
    ($name:literal) => {
        include_str!(concat!("../tests/data/", $name, ".ptx"))
    };
}

/// Name, image and expectation. The first is the baseline.
const CASES: &[(&str, &str, Expected)] = &[
    ("default", ptx!("default"), Correct),
    ("same", ptx!("default"), Correct),
    ("fast", ptx!("fast"), Correct),
    ("slow", ptx!("slow"), Correct),
    ("rounded", ptx!("rounded"), Within),
    ("not-the-same-bits", ptx!("rounded"), Wrong(0)),
    ("wrong", ptx!("wrong"), Wrong(777)),
    ("unwritten", ptx!("unwritten"), WrongLast),
    ("overrun", ptx!("overrun"), Corrupts),
    ("underrun", ptx!("underrun"), Corrupts),
    ("input", ptx!("input"), Corrupts),
    (
        "illegal",
        ptx!("illegal"),
        Failed(FaultKind::IllegalAddress),
    ),
    (
        "misaligned",
        ptx!("misaligned"),
        Failed(FaultKind::MisalignedAddress),
    ),
    ("trap", ptx!("trap"), Trapped),
    ("hang", ptx!("hang"), Failed(FaultKind::Timeout)),
    ("late", ptx!("late"), Failed(FaultKind::IllegalAddress)),
    ("params", ptx!("params"), Failed(FaultKind::BadLaunch)),
    ("broken", ptx!("broken"), Failed(FaultKind::Rejected)),
    ("greedy", ptx!("fast"), Failed(FaultKind::OutOfResources)),
];

/// What the self-test found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Selftest {
    /// Every case is as expected.
    pub passed: bool,
    /// The cases.
    pub cases: Vec<Case>,
    /// The session that ran them.
    pub measurements: Measurements,
}

/// One expectation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Case {
    /// Variant, or what else was looked at.
    pub id: String,
    /// What had to be.
    pub expected: String,
    /// What was.
    pub found: String,
    /// Do they agree?
    pub passed: bool,
}

/// How much work the self-test's kernels get.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SelftestSize {
    /// For a GPU: 20 million elements, 4 seconds of timing.
    Full,
    /// For a driver that computes on the host: 1003 elements, timed until it is tight.
    Small,
}

/// Runs the self-test; `dir` is a folder for its files, `tell` is told what is going on.
pub fn selftest(
    backend: &mut dyn Backend,
    dir: &Path,
    size: SelftestSize,
    tell: &mut dyn FnMut(&crate::Progress<'_>),
) -> Result<Selftest, Fault> {
    let (name, seconds) = match size {
        SelftestSize::Full => ("full", 4.0),
        SelftestSize::Small => ("small", 20.0),
    };
    let job = job(dir, name)?;
    let variants: Vec<Variant> = CASES.iter().map(|case| variant(case, &job)).collect();
    let budget = Budget {
        seconds,
        limit_s: 2.0,
        exhaustive: true,
        ..Budget::default()
    };
    let measurements = measure(
        backend,
        &job,
        &variants,
        CASES[0].0,
        &budget,
        None,
        &mut |p| {
            tell(p);
            ControlFlow::Continue(())
        },
    )?;
    let mut cases: Vec<Case> = CASES
        .iter()
        .map(|case| judge(case, &measurements))
        .collect();
    cases.extend(race(&measurements));
    Ok(Selftest {
        passed: cases.iter().all(|c| c.passed),
        cases,
        measurements,
    })
}

fn job(dir: &Path, size: &str) -> Result<Job, Fault> {
    let input = |e: warpwright_launch::LaunchError| Fault::new(FaultKind::Input, e.to_string());
    let file = LaunchFile::parse(LAUNCH, "selftest.toml").map_err(input)?;
    prepare(&file.resolve(size, &[]).map_err(input)?, dir, &no_files)
}

fn variant((id, ptx, expected): &(&str, &str, Expected), job: &Job) -> Variant {
    let mut variant = Variant::new(*id, Image::Bytes(ptx.as_bytes().to_vec()));
    if matches!(expected, Within) {
        variant.promise = Promise::Tolerance;
    }
    if matches!(expected, Failed(FaultKind::OutOfResources)) {
        // More shared memory than any GPU has.
        variant.shape = Some(Shape {
            dynamic_smem: 1 << 20,
            ..job.shape.clone()
        });
    }
    variant
}

fn judge((id, _, expected): &(&str, &str, Expected), measurements: &Measurements) -> Case {
    let found = measurements
        .get(id)
        .map_or(&Verdict::Untested, |m| &m.verdict);
    let (words, passed) = match expected {
        Correct => ("correct".to_string(), *found == Verdict::Identical),
        Within => (
            "within the tolerance".into(),
            matches!(found, Verdict::Within { .. }),
        ),
        Wrong(at) => (
            format!("wrong at {at}"),
            matches!(found, Verdict::Wrong { index, .. } if index == at),
        ),
        WrongLast => (
            "wrong in the last element".into(),
            matches!(found, Verdict::Wrong { index, of, mismatches: 1, .. } if index + 1 == *of),
        ),
        Corrupts => (
            "corrupts memory".into(),
            matches!(found, Verdict::Corrupts { .. }),
        ),
        Trapped => (
            "launch failed or illegal instruction".into(),
            matches!(
                found,
                Verdict::Failed {
                    kind: FaultKind::LaunchFailed | FaultKind::IllegalInstruction,
                    ..
                }
            ),
        ),
        Failed(kind) => (
            kind.name().into(),
            matches!(found, Verdict::Failed { kind: found, .. } if found == kind),
        ),
    };
    Case {
        id: (*id).into(),
        expected: words,
        found: found.to_string(),
        passed,
    }
}

/// What the timing must have come to.
fn race(measurements: &Measurements) -> Vec<Case> {
    let outcome = |id: &str, expected: Outcome| {
        let found = measurements.get(id).and_then(|m| m.outcome);
        Case {
            id: format!("time of {id}"),
            expected: format!("{expected:?}"),
            found: found.map_or("not timed".into(), |o| format!("{o:?}")),
            passed: found == Some(expected),
        }
    };
    let chosen = Case {
        id: "chosen".into(),
        // `rounded` does the work of `fast`: which of them wins is chance.
        expected: "fast or rounded".into(),
        found: measurements.chosen.clone(),
        passed: ["fast", "rounded"].contains(&measurements.chosen.as_str()),
    };
    vec![
        outcome("same", Outcome::Tie),
        outcome("fast", Outcome::Faster),
        outcome("slow", Outcome::Slower),
        chosen,
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_launch_is_what_the_kernels_expect() {
        let dir = tempfile::tempdir().expect("folder");
        let file = LaunchFile::parse(LAUNCH, "selftest.toml").expect("parses");
        assert!(file.resolve("full", &[]).is_ok());
        let small = file.resolve("small", &[]).expect("resolves");
        let job = prepare(&small, dir.path(), &no_files).expect("prepares");
        assert_eq!(job.params.len(), 3);
        let names: Vec<_> = job
            .buffers
            .iter()
            .map(|b| (b.name.as_str(), b.symbol))
            .collect();
        assert_eq!(names, [("x", false), ("y", false), ("c", true)]);
        assert!(job.buffers[1].unwritten && job.buffers[1].output);
        assert_eq!(std::fs::read(&job.buffers[2].file).expect("c").len(), 8);
        assert_eq!(job.footprint(), 2 * 4 * 1003);
    }

    #[test]
    fn case_names_are_unique() {
        let mut names: Vec<&str> = CASES.iter().map(|c| c.0).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), CASES.len());
    }
}
