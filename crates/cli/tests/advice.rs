//! What people are told to do next fits what they gave, and what they have.

#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use warpwright_toolkit::testing::require_toolkit;

const SCALE: &str =
    "__global__ void scale(float *x, float f) { x[blockIdx.x * blockDim.x + threadIdx.x] *= f; }\n";

const LAUNCH: &str = "kernel = \"scale\"
[sizes.small]
n = 1024
[launch]
grid = [\"n / 256\"]
block = [256]
[[args]]
name = \"x\"
type = \"f32\"
shape = [\"n\"]
output = true
[[args]]
name = \"f\"
type = \"f32\"
value = 2.0
";

fn run(folder: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_warpwright"))
        .args(args)
        .current_dir(folder)
        .output()
        .unwrap()
}

fn words(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_block_that_fits_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let args = [
        "occupancy",
        "--gpu",
        "h200",
        "--regs",
        "72",
        "--block",
        "1024",
        "--smem",
        "0",
    ];
    let output = run(folder.path(), &args);
    let text = words(&[output.stdout, output.stderr].concat());
    assert!(text.contains("one of 896 threads fits"), "{text}");
}

#[test]
fn a_board_takes_code_for_its_own_features() {
    let Some(_) = require_toolkit("a_board_takes_code_for_its_own_features") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("k.cu"), SCALE).unwrap();
    let args = [
        "explain",
        "k.cu",
        "--gpu",
        "h200",
        "--block",
        "256",
        "--json",
        "--",
        "-arch=sm_90a",
    ];
    let output = run(folder.path(), &args);
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["gpu"], "h200 (sm_90a)", "{document}");
}

#[test]
fn kernels_of_cub_are_none_of_the_user() {
    let Some(_) = require_toolkit("kernels_of_cub_are_none_of_the_user") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let text = format!(
        "namespace cub {{ namespace detail {{ template <typename T> __global__ void EmptyKernel() {{}} \
         template __global__ void EmptyKernel<void>(); }} }}\n{SCALE}"
    );
    std::fs::write(folder.path().join("k.cu"), text).unwrap();
    let args = [
        "explain", "k.cu", "--gpu", "h200", "--block", "256", "--json",
    ];
    let output = run(folder.path(), &args);
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let kernels = document["kernels"].as_array().unwrap();
    assert_eq!(kernels.len(), 1, "{document}");
    // Whoever names it has it.
    let named = [&args[..], &["--kernel", "EmptyKernel"]].concat();
    assert!(run(folder.path(), &named).status.success());
}

#[test]
fn what_is_next_fits_what_was_given() {
    let Some(_) = require_toolkit("what_is_next_fits_what_was_given") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("k.cu"), SCALE).unwrap();
    let opt = ["opt", "k.cu", "--gpu", "h200", "--block", "256"];
    let page = "--report R.html: a page";
    assert!(words(&run(folder.path(), &opt).stdout).contains(page));
    let with_page = [&opt[..], &["--report", "r.html"]].concat();
    assert!(!words(&run(folder.path(), &with_page).stdout).contains(page));
    // A recipe says what stands behind it.
    std::fs::write(folder.path().join("sums.cu"), SUMS).unwrap();
    let named = [
        "opt",
        "sums.cu",
        "--gpu",
        "h200",
        "--block",
        "256",
        "--recipe",
        "maxnreg(40)",
    ];
    let shown = words(&run(folder.path(), &named).stdout);
    assert!(shown.contains("nothing is rewritten"), "{shown}");
    // Who wants a cubin of a pass over PTX hears of the command that builds one.
    let pass = [
        "pass",
        "maxnreg(72)",
        "k.cu",
        "--gpu",
        "h200",
        "--block",
        "256",
        "-o",
        "k.cubin",
    ];
    let output = run(folder.path(), &pass);
    assert_eq!(output.status.code(), Some(2));
    let told = words(&output.stderr);
    assert!(
        told.contains("`warpwright opt FILE --recipe 'maxnreg(72)' -o k.cubin` builds it"),
        "{told}"
    );
}

#[test]
fn without_a_gpu_tune_names_what_goes() {
    let Some(_) = require_toolkit("without_a_gpu_tune_names_what_goes") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("k.cu"), SCALE).unwrap();
    std::fs::write(folder.path().join("k.toml"), LAUNCH).unwrap();
    // No device is seen, whatever the machine has.
    let output = Command::new(env!("CARGO_BIN_EXE_warpwright"))
        .args(["tune", "k.cu", "--launch", "k.toml", "-o", "o.cubin"])
        .env("CUDA_VISIBLE_DEVICES", "")
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    let told = words(&output.stderr);
    assert!(
        told.contains("`warpwright opt` chooses without a GPU"),
        "{told}"
    );
    assert!(told.contains("`tune --jobs DIR`"), "{told}");
}

/// Thirty-two sums in registers.
const SUMS: &str = "__global__ void sums(float *o, const float *a, int n) {
    float s[32] = {};
    for (int i = 0; i < n; ++i)
#pragma unroll
        for (int k = 0; k < 32; ++k) s[k] = s[k] * a[i] + a[32 * i + k];
    float all = 0;
#pragma unroll
    for (int k = 0; k < 32; ++k) all += s[k] * k;
    o[threadIdx.x] = all;
}
";

#[test]
fn a_register_limit_of_nvcc_is_that_of_now() {
    let Some(_) = require_toolkit("a_register_limit_of_nvcc_is_that_of_now") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("k.cu"), SUMS).unwrap();
    let kernel = |command: &str, recipe: &[&str], limit: &[&str]| -> Value {
        let args = [command, "k.cu", "--gpu", "h200", "--block", "256", "--json"];
        let output = run(folder.path(), &[&args[..], recipe, limit].concat());
        let document: Value = serde_json::from_slice(&output.stdout).unwrap();
        document["kernels"][0].clone()
    };
    let registers = |command: &str, limit: &[&str]| {
        let kernel = kernel(command, &[], limit);
        let now = match command {
            "opt" => &kernel["candidates"][0]["resources"],
            _ => &kernel["resources"],
        };
        now["registers"].as_u64().unwrap()
    };
    let limit = ["--", "-maxrregcount", "32"];
    for command in ["opt", "explain"] {
        assert!(registers(command, &[]) > 32);
        assert!(registers(command, &limit) <= 32);
    }
    // A recipe is weighed against the same.
    for limit in [&[][..], &limit] {
        let [chosen, named] = [&[][..], &["--recipe", "maxnreg(40)"]].map(|recipe| {
            let now = &kernel("opt", recipe, limit)["candidates"][0];
            let score = &now["score"];
            assert!(score["relative_time"].is_number(), "{now}");
            let rated = [
                &score["relative_time"],
                &score["bound"],
                &score["active_warps"],
            ];
            [&[&now["resources"], &now["residency"]][..], &rated]
                .concat()
                .into_iter()
                .cloned()
                .collect::<Vec<Value>>()
        });
        assert_eq!(chosen, named);
    }
}

/// Three buffers of 256 MiB, by the code's own launch.
const LARGE: &str = "__global__ void add(float *o, const float *a, const float *b, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) o[i] = a[i] + b[i];
}
int main() {
    int n = 1 << 26;
    float *o, *a, *b;
    cudaMalloc(&o, n * sizeof(float));
    cudaMalloc(&a, n * sizeof(float));
    cudaMalloc(&b, n * sizeof(float));
    add<<<n / 256, 256>>>(o, a, b, n);
    return cudaDeviceSynchronize();
}
";

/// The most memory that a command has had, in KiB.
fn peak(child: &mut std::process::Child) -> u64 {
    let status = format!("/proc/{}/status", child.id());
    let mut most = 0;
    while child.try_wait().unwrap().is_none() {
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let number = line.and_then(|line| line.split_whitespace().next());
        most = most.max(number.and_then(|n| n.parse().ok()).unwrap_or(0));
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    most
}

#[test]
fn counting_takes_a_part_of_a_large_launch() {
    let Some(_) = require_toolkit("counting_takes_a_part_of_a_large_launch") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("k.cu"), LARGE).unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_warpwright"))
        .args(["explain", "k.cu", "--gpu", "h200", "--json"])
        .current_dir(folder.path())
        .stdout(std::fs::File::create(folder.path().join("out.json")).unwrap())
        .spawn()
        .unwrap();
    let most = peak(&mut child);
    let text = std::fs::read_to_string(folder.path().join("out.json")).unwrap();
    let document: Value = serde_json::from_str(&text).unwrap();
    let kernel = &document["kernels"][0];
    assert!(kernel["accesses"].is_object(), "it is counted: {kernel}");
    let counted = kernel["accesses"].to_string();
    assert!(counted.contains(", in 4 of its "), "{counted}");
    assert!(most < 600 << 10, "{most} KiB");
}
