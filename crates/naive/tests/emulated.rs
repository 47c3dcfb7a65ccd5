//! Naive kernels under many schedules: what is printed computes what was written, to the bit, in the emulator.

#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};

use warpwright_cudac::File;
use warpwright_cudac::diag::Source;
use warpwright_ladder::{CompileError, Rung};
use warpwright_naive::emit::{Generated, generate};
use warpwright_naive::schedule::{Schedule, Stage};
use warpwright_naive::versions::{Problem, climb};
use warpwright_toolkit::{FindOptions, NvccJob, Toolkit};

/// Bytes of shared memory that a block may have.
const SHARED: u32 = 96 << 10;

/// The toolkit; `None` where it is missing and nobody demands it.
fn toolkit() -> Option<Toolkit> {
    match Toolkit::find(&FindOptions::default()) {
        Ok(toolkit) => Some(toolkit),
        Err(e) => {
            let required = std::env::var_os("WARPWRIGHT_REQUIRE_TOOLKIT").is_some();
            assert!(!required, "{e}");
            None
        }
    }
}

fn compile(toolkit: &Toolkit, text: &str) -> Result<String, CompileError> {
    let nvcc = toolkit
        .nvcc()
        .map_err(|e| CompileError::Missing(e.to_string()))?;
    let mut job = NvccJob::new(Path::new(""), "sm_90");
    job.lineinfo = false;
    job.extra.push("-fmad=false".into());
    match nvcc.text_to_ptx(text, &job) {
        Ok(output) => Ok(output.ptx),
        Err(e) => Err(CompileError::Rejected(e.to_string())),
    }
}

fn example(name: &str) -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.join("../../examples/naive")
        .join(name)
        .with_extension("cu")
}

fn problem(text: &str) -> Problem {
    let file = File::parse(Source::new("kernel.cu", text)).unwrap();
    let header = file.kernels[0].clone();
    Problem::new(file, &header).unwrap()
}

fn schedule(threads: [u32; 2], points: [u32; 2], run: [u32; 2]) -> Schedule {
    Schedule {
        threads,
        points,
        run,
        ..Schedule::identity(2)
    }
}

fn staged(of: Schedule, turns: u32, unroll: u32, buffers: u32, turn: bool) -> Schedule {
    let stage = Some(Stage {
        turns,
        unroll,
        buffers,
        turn,
    });
    Schedule { stage, ..of }
}

fn agrees(toolkit: &Toolkit, problem: &Problem, of: &Schedule, generated: &Generated) {
    let name = &problem.kernel.name;
    let mut left = generated.clone();
    match climb(problem, &mut left, &|text| compile(toolkit, text)) {
        Rung::Agrees(checked) => {
            let kernels = left
                .entries
                .iter()
                .map(|e| 1 + usize::from(e.parts.is_some()));
            assert_eq!(
                checked.kernels.len(),
                kernels.sum::<usize>(),
                "{name}: {of}"
            );
        }
        other => {
            let text = problem
                .output(generated)
                .map(|o| o.text)
                .unwrap_or_default();
            panic!("{name}: {of}: {other:?}\n{text}");
        }
    }
}

fn all_agree(names: &[&str], schedules: &[Schedule]) {
    let Some(toolkit) = toolkit() else { return };
    for name in names {
        let problem = problem(&std::fs::read_to_string(example(name)).unwrap());
        for of in schedules {
            let generated = generate(&problem.kernel, of, SHARED).unwrap();
            agrees(&toolkit, &problem, of, &generated);
        }
    }
}

#[test]
fn a_thread_for_a_point_is_the_kernel_itself() {
    let of = [Schedule::identity(2)];
    all_agree(
        &[
            "add_transposed",
            "bmm",
            "demosaic",
            "imregionmax",
            "sweep5",
            "tp",
        ],
        &of,
    );
    all_agree(
        &["strsm", "softmax", "prefix_sum", "grey"],
        &[Schedule::identity(1)],
    );
}

#[test]
fn several_points_of_a_thread() {
    let merged = [
        schedule([32, 4], [2, 4], [2, 1]),
        schedule([16, 8], [4, 2], [1, 2]),
    ];
    all_agree(
        &[
            "add_transposed",
            "attention_scores",
            "demosaic",
            "mm_tn",
            "gelu",
        ],
        &merged,
    );
    all_agree(
        &["strsm", "layer_norm", "nearest4"],
        &[schedule([64, 1], [4, 1], [2, 1])],
    );
}

#[test]
fn operands_of_contractions_in_shared_memory() {
    let of = schedule([8, 8], [8, 8], [4, 4]);
    let lanes = Schedule {
        lanes: 8,
        order: 4,
        ..schedule([16, 8], [4, 4], [4, 4])
    };
    let all = [
        staged(of.clone(), 8, 4, 2, false),
        staged(lanes, 16, 4, 3, true),
        staged(of, 8, 1, 1, true),
    ];
    all_agree(&["mm", "bmm", "distances"], &all);
    all_agree(
        &["mm_strided", "linear", "syrk", "shortest_paths"],
        &all[1..2],
    );
}

#[test]
fn windows_and_filters_in_shared_memory() {
    let of = Schedule {
        specialise: true,
        ..schedule([16, 4], [4, 2], [4, 1])
    };
    all_agree(&["conv"], &[staged(of, 4, 8, 2, false)]);
    let of = schedule([16, 4], [4, 2], [4, 1]);
    all_agree(&["conv2d", "conv1d"], &[staged(of, 4, 3, 2, false)]);
    all_agree(
        &["fir", "nbody", "mv"],
        &[staged(schedule([64, 1], [4, 1], [4, 1]), 16, 8, 2, false)],
    );
}
