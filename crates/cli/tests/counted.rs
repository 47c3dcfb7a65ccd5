//! Where the cycles go: turns of loops are counted where a launch is described, and said to be guessed elsewhere; lines
//! are those of the user's own code. What was not run is named.

#![allow(clippy::unwrap_used)]

use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::Value;
use warpwright_toolkit::Toolkit;
use warpwright_toolkit::testing::require_toolkit;

/// Three turns that load (line 5), and two thousand that compute (line 8).
const TURNS: &str = "__global__ void turns(const float* __restrict__ a, float* b) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float x = 0;
#pragma unroll 1
    for (int k = 0; k < 3; ++k) x += a[i + 1024 * k];
    float y = x;
#pragma unroll 1
    for (int k = 0; k < 2000; ++k) y = y * x + 1.5f;
    b[i] = y;
}
";
const DESCRIPTION: &str = "source = \"turns.cu\"
kernel = \"turns\"
[sizes.small]
n = 1024
[sizes.full]
n = 1073741824
[launch]
grid = [\"n / 256\"]
block = [256]
[[args]]
name = \"a\"
type = \"f32\"
shape = [\"n + 2048\"]
init = { kind = \"uniform\", low = 0.0, high = 1.0 }
[[args]]
name = \"b\"
type = \"f32\"
shape = [\"n\"]
output = true
";

struct Bench {
    folder: tempfile::TempDir,
    toolkit: PathBuf,
}

impl Bench {
    fn new(toolkit: &Toolkit) -> Bench {
        let ptxas = toolkit.ptxas().unwrap().tool().path.clone();
        let toolkit = ptxas.parent().unwrap().parent().unwrap().to_owned();
        let folder = tempfile::tempdir().unwrap();
        Bench { folder, toolkit }
    }

    fn file(&self, name: &str, text: &str) {
        std::fs::write(self.folder.path().join(name), text).unwrap();
    }

    fn run(&self, args: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_warpwright"))
            .args(args)
            .arg("--toolkit")
            .arg(&self.toolkit)
            .current_dir(self.folder.path())
            .output()
            .unwrap()
    }

    fn document(&self, args: &[&str]) -> Value {
        let output = self.run(&[args, &["--json"]].concat());
        assert!(output.status.success(), "{output:?}");
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// The words of what stands on the screen.
    fn screen(&self, args: &[&str]) -> String {
        let output = self.run(args);
        let text = String::from_utf8(output.stdout).unwrap();
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }
}

/// The lines by their share of the cycles, the largest first.
fn lines(document: &Value) -> Vec<String> {
    let places = document["kernels"][0]["causes"]["places"]
        .as_array()
        .unwrap();
    let line = |place: &Value| place["line"].as_str().unwrap_or_default().to_owned();
    places.iter().map(line).collect()
}

#[test]
fn turns_are_counted_where_a_launch_is_described() {
    let Some(toolkit) = require_toolkit("turns_are_counted_where_a_launch_is_described") else {
        return;
    };
    let bench = Bench::new(&toolkit);
    bench.file("turns.cu", TURNS);
    bench.file("turns.toml", DESCRIPTION);
    let guessed = ["explain", "turns.cu", "--gpu", "h200", "--block", "256"];
    let found = bench.document(&guessed);
    assert_eq!(lines(&found)[0], "turns.cu:5", "ten turns of each");
    assert!(bench.screen(&guessed).contains("if loops have 10 turns"));
    // The full size does not fit; the small one is counted.
    let counted = [
        "explain",
        "turns.cu",
        "--gpu",
        "h200",
        "--launch",
        "turns.toml",
    ];
    let found = bench.document(&counted);
    assert_eq!(
        found["kernels"][0]["causes"]["counted_at"],
        "size `small`, as `full` takes 8192 MiB"
    );
    assert_eq!(lines(&found)[0], "turns.cu:8");
    let share = found["kernels"][0]["causes"]["places"][0]["share"].as_f64();
    assert!(share.unwrap() > 0.8, "{share:?}");
    let screen = bench.screen(&counted);
    assert!(
        screen.contains("instructions counted at size `small`, as `full` takes 8192 MiB"),
        "{screen}"
    );
    assert!(!screen.contains("10 turns"), "{screen}");
}

#[test]
fn what_is_inlined_from_the_toolkit_belongs_to_the_line_that_calls_it() {
    let test = "what_is_inlined_from_the_toolkit_belongs_to_the_line_that_calls_it";
    let Some(toolkit) = require_toolkit(test) else {
        return;
    };
    let bench = Bench::new(&toolkit);
    bench.file(
        "scan.cu",
        "#include <cuda_fp16.h>
#include \"own.h\"
__global__ void scan(const int *a, __half2 *o) {
    int v = a[threadIdx.x];
    for (int d = 1; d < 32; d *= 2) { int t = __shfl_up_sync(~0u, v, d); v += t; }
    o[threadIdx.x] = __hadd2(__floats2half2_rn(twice(v), v), o[threadIdx.x]);
}
",
    );
    bench.file(
        "own.h",
        "__device__ inline float twice(float x) { return x * 2.0f + sinf(x); }\n",
    );
    let found = bench.document(&["explain", "scan.cu", "--gpu", "h200", "--block", "256"]);
    let lines = lines(&found);
    assert!(lines.iter().any(|line| line == "scan.cu:5"), "{lines:?}");
    let is_own = |line: &String| {
        line.is_empty() || line.starts_with("scan.cu:") || line.starts_with("own.h:")
    };
    assert!(lines.iter().all(is_own), "{lines:?}");
}

#[test]
fn shared_memory_that_nobody_states_is_said_to_be_assumed() {
    let test = "shared_memory_that_nobody_states_is_said_to_be_assumed";
    let Some(toolkit) = require_toolkit(test) else {
        return;
    };
    let bench = Bench::new(&toolkit);
    bench.file(
        "dynamic.cu",
        "extern \"C\" __global__ void k(float *a) {
    extern __shared__ float s[];
    s[threadIdx.x] = a[threadIdx.x];
    __syncthreads();
    a[threadIdx.x] = s[255 - threadIdx.x];
}
",
    );
    let explain = ["explain", "dynamic.cu", "--gpu", "h200", "--block", "256"];
    let assumed = "dynamic shared memory is assumed to be 0 B";
    assert!(bench.screen(&explain).contains(assumed));
    let stated = [&explain[..], &["--dynamic-smem", "32768"]].concat();
    assert!(!bench.screen(&stated).contains(assumed));
}

#[test]
fn kernels_that_nothing_ran_are_named() {
    let Some(toolkit) = require_toolkit("kernels_that_nothing_ran_are_named") else {
        return;
    };
    let bench = Bench::new(&toolkit);
    bench.file("turns.cu", TURNS);
    bench.file("turns.toml", DESCRIPTION);
    let more = format!("{TURNS}__global__ void turns_tuned(float *b) {{ b[0] = 1000; }}\n");
    bench.file("more.cu", &more);
    let run = |other: &str| {
        let args = [
            "check",
            "turns.cu",
            other,
            "--run",
            "--launch",
            "turns.toml",
        ];
        (bench.run(&args).status.code(), bench.screen(&args))
    };
    let (code, screen) = run("turns.cu");
    assert_eq!(code, Some(5), "{screen}");
    assert!(screen.contains("equal here, not proved"), "{screen}");
    let (code, screen) = run("more.cu");
    assert_eq!(code, Some(5), "{screen}");
    assert!(!screen.contains("equal here"), "{screen}");
    let named = "turns_tuned(float*): undecided: not run";
    assert!(screen.contains(named), "{screen}");
}
