//! What a file launches is what `opt`, `explain` and `bug` count with.

#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use warpwright_toolkit::testing::require_toolkit;

/// Dynamic shared memory that limits the blocks.
const CODE: &str = r#"
__constant__ float weights[3 * 3];
__global__ void big(float *x, int n) {
  extern __shared__ float s[];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  s[threadIdx.x] = x[i];
  __syncthreads();
  x[i] = s[(threadIdx.x + 1) % 192] * weights[threadIdx.x % 9];
}
int main() {
  float *x; int m = 1920 * 100; cudaMalloc(&x, m * sizeof(float));
  big<<<m / 192, 192, 48 * 1024>>>(x, m);
}
"#;

struct Bench(tempfile::TempDir);

impl Bench {
    fn new() -> Option<Bench> {
        require_toolkit("launches of the code")?;
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("own.cu"), CODE).unwrap();
        Some(Bench(folder))
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn run(&self, args: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_warpwright"));
        let output = command.args(args).current_dir(self.path()).output();
        output.expect("the program starts")
    }

    /// What it says, if it ends like this.
    fn said(&self, code: i32, args: &[&str]) -> String {
        let output = self.run(args);
        let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        assert_eq!(output.status.code(), Some(code), "{args:?}: {said}");
        said
    }
}

#[test]
fn blocks_and_shared_memory_of_the_code_count() {
    let Some(bench) = Bench::new() else {
        return;
    };
    let of = |command: &str, more: &[&str]| -> Value {
        let args = [command, "own.cu", "--gpu", "h200", "--kernel", "big"];
        let output = bench.run(&[&args[..], more].concat());
        let found: Value = serde_json::from_slice(&output.stdout).unwrap();
        found["kernels"][0].clone()
    };
    let explained = of("explain", &["--json"]);
    assert_eq!(explained["dynamic_smem"], 49_152);
    assert_eq!(explained["block"], serde_json::json!([192, 1, 1]));
    // 228 KiB hold four blocks of 48 KiB and what the driver reserves for each.
    assert_eq!(explained["residency"]["blocks"], 4, "{explained}");
    let stated = of("explain", &["--json", "--dynamic-smem", "768"]);
    assert_eq!(stated["dynamic_smem"], 768);
    let chosen = of("opt", &["--json"]);
    assert_eq!(chosen["dynamic_smem"], 49_152);
    // It promises nothing: what needs its size is not offered.
    let notes = chosen["notes"].to_string();
    assert!(notes.contains("promises no size of dynamic"), "{notes}");
    assert_eq!(chosen["promises"], serde_json::json!([]));
    // A report of a bug is about the same choice.
    let report = bench.said(0, &["bug", "own.cu", "--gpu", "h200", "--kernel", "big"]);
    let expected = format!(
        "block [192, 1, 1] (the code's own launch): `{}`",
        match chosen["recipe_text"].as_str().unwrap() {
            "" => "default",
            recipe => recipe,
        }
    );
    assert!(report.contains(&expected), "{expected}: {report}");
}
