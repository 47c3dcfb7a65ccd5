//! Naive kernels under many schedules: what is printed computes what was written, to the bit, in the emulator.

#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};

use warpwright_cudac::File;
use warpwright_cudac::diag::Source;
use warpwright_ladder::{CompileError, Rung};
use warpwright_naive::emit::{Generated, generate};
use warpwright_naive::schedule::{Schedule, Stage};
use warpwright_naive::versions::{Problem, climb};
use warpwright_toolkit::testing::unfused_ptx;
use warpwright_toolkit::{FindOptions, Toolkit};

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
    unfused_ptx(toolkit, text).map_err(|e| match e.is_tool_missing() {
        true => CompileError::Missing(e.to_string()),
        false => CompileError::Rejected(e.to_string()),
    })
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
                "{name}: {of:?}"
            );
        }
        other => {
            let text = problem
                .output(generated)
                .map(|o| o.text)
                .unwrap_or_default();
            panic!("{name}: {of:?}: {other:?}\n{text}");
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
    // Tiles of a large product: one operand is turned, or both.
    let large = Schedule {
        lanes: 8,
        ..schedule([16, 8], [8, 16], [4, 4])
    };
    all_agree(&["mm", "linear"], &[staged(large, 32, 4, 2, true)]);
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

/// Kernels in the style of a course.
fn texts_agree(texts: &[&str], schedules: &[Schedule]) -> Vec<String> {
    let Some(toolkit) = toolkit() else {
        return Vec::new();
    };
    let mut all = Vec::new();
    for text in texts {
        let problem = problem(text);
        for of in schedules {
            let generated = generate(&problem.kernel, of, SHARED).unwrap();
            agrees(&toolkit, &problem, of, &generated);
            all.push(problem.output(&generated).unwrap().text);
        }
    }
    all
}

#[test]
fn arrays_in_constant_memory_stay_there() {
    let rows = "__constant__ float F[5][5];\n\
        __global__ void k(const float *in, float *out, int m, int n) {\n\
        int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;\n\
        if (x >= n || y >= m) return;\n\
        float s = 0;\n\
        for (int i = 0; i < 5; i++) for (int j = 0; j < 5; j++) s += in[(y + i) * (n + 4) + x + j] * F[i][j];\n\
        out[y * n + x] = s;\n}\n";
    let flat = "__constant__ float F[64];\n\
        __global__ void k(const float *in, float *out, int m, int n, int f) {\n\
        int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;\n\
        if (x >= n || y >= m) return;\n\
        float s = 0;\n\
        for (int i = 0; i < f; i++) s += in[y * (n + f - 1) + x + i] * F[i];\n\
        out[y * n + x] = s;\n}\n";
    let merged = schedule([32, 4], [4, 2], [4, 1]);
    let all = texts_agree(
        &[rows, flat],
        &[merged.clone(), staged(merged, 4, 5, 2, false)],
    );
    for text in &all {
        assert!(!text.contains("F_tile"), "{text}");
    }
}

#[test]
fn sums_in_memory_wait_in_registers() {
    let text = "__global__ void k(const int *a, const int *b, int *c, int N) {\n\
        int row = blockIdx.y * blockDim.y + threadIdx.y, col = blockIdx.x * blockDim.x + threadIdx.x;\n\
        if (row >= N || col >= N) return;\n\
        c[row * N + col] = 0;\n\
        for (int k = 0; k < N; k++) c[row * N + col] += a[row * N + k] * b[k * N + col];\n}\n";
    let added = "__global__ void k(const unsigned char *a, unsigned char *c, int n, int m) {\n\
        int x = blockIdx.x * blockDim.x + threadIdx.x;\n\
        if (x >= n) return;\n\
        c[x] -= 3;\n\
        for (int i = 0; i < m; i++) if (a[i] > c[x]) c[x] = c[x] * a[x] + i;\n}\n";
    let two = staged(schedule([16, 8], [4, 4], [4, 1]), 8, 4, 2, false);
    for text in texts_agree(&[text], &[two]) {
        assert!(text.contains("c_kept"), "{text}");
    }
    texts_agree(&[added], &[schedule([64, 1], [4, 1], [2, 1])]);
    // An element that may never be reached may not be there.
    let guarded = added.replace("c[x] -= 3;", "");
    let kernel = problem(&guarded).kernel;
    assert!(kernel.variables.is_empty(), "{kernel:?}");
}

#[test]
fn infinities_of_the_headers() {
    let text = "#pragma warpwright naive reassociate\n\
        __global__ void k(float *out, const float *in, int n, int c) {\n\
        int i = blockIdx.x * blockDim.x + threadIdx.x;\n\
        if (i >= n) return;\n\
        const float *row = in + i * c;\n\
        float most = -INFINITY;\n\
        for (int j = 0; j < c; j++) most = fmaxf(most, row[j]);\n\
        out[i] = most;\n}\n";
    texts_agree(&[text], &[schedule([64, 1], [2, 1], [1, 1])]);
}
