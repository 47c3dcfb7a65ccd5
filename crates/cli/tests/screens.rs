//! The screens of commands about the same code do not contradict each other.

#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::process::Command;

use warpwright_toolkit::testing::require_toolkit;

/// A loop whose turns the launch counts; dynamic shared memory that the launch gives; a function within a kernel's code.
const MANY: &str = "
__global__ void turns(const float *x, float *y, int n) {
    extern __shared__ float s[];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    s[threadIdx.x] = x[i];
    __syncthreads();
    float t = 0;
    for (int k = 0; k < n; k++) t = t * s[k % 128] + 1.f;
    y[i] = t;
}
__device__ int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
__global__ void calls(int *x) { x[threadIdx.x] = fib(threadIdx.x & 7); }
int main() {
    int n = 1 << 16; float *x, *y; cudaMalloc(&x, 4 * n); cudaMalloc(&y, 4 * n);
    turns<<<n / 128, 128, 512>>>(x, y, 100);
}
";
/// It spills under a limit.
const SPILLS: &str = "
extern \"C\" __global__ void __launch_bounds__(64) heavy(float *p) {
  float x[56];
  for (int r = 0; r < 9; r++) {
    _Pragma(\"unroll\") for (int i = 0; i < 56; i++) x[i] = p[threadIdx.x + 64 * i];
    _Pragma(\"unroll\") for (int i = 0; i < 56; i++) x[i] = x[i] * x[55 - i] + sqrtf(x[(i * 7 + 3) % 56]);
    _Pragma(\"unroll\") for (int i = 0; i < 56; i++) p[threadIdx.x + 64 * i] = x[i] + x[(i * 5 + 1) % 56];
  }
}
";
const NAIVE: &str = "
__global__ void turned(const double *A, double *B, int M, int N) {
    int i = blockIdx.y * blockDim.y + threadIdx.y, j = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < M && j < N) B[j * M + i] = A[i * N + j];
}
";

/// The words on both streams of a command that ends with this code.
#[track_caller]
fn said(folder: &Path, code: i32, args: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_warpwright"));
    command.env("WARPWRIGHT_STANDIN", "programs do not run here");
    let output = command.args(args).current_dir(folder).output().unwrap();
    assert_eq!(output.status.code(), Some(code), "{args:?}: {output:?}");
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8(text).unwrap();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn what_is_assumed_is_said_and_what_is_known_is_not_assumed() {
    if require_toolkit("screens of explain and opt").is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("many.cu"), MANY).unwrap();
    let of = |command: &str, kernel: &str| {
        let args = [command, "many.cu", "--gpu", "h200", "--kernel", kernel];
        said(folder.path(), 0, &args)
    };
    let explained = of("explain", "turns");
    assert!(explained.contains("512 B shared"), "{explained}");
    assert!(!explained.contains("is assumed to be"), "{explained}");
    assert!(explained.contains("loops counted"), "{explained}");
    let chosen = of("opt", "turns");
    assert!(chosen.contains("loops counted"), "{chosen}");
    let calls = of("explain", "calls");
    assert!(
        calls.contains("calls fib(int): its registers include theirs"),
        "{calls}"
    );
    assert!(calls.contains("not known (recursion)"), "{calls}");
}

#[test]
fn spills_are_told_alike() {
    if require_toolkit("spills").is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("k.cu"), SPILLS).unwrap();
    let run = |args: &[&str]| said(folder.path(), 0, &[args, &["--gpu", "h200"]].concat());
    let limited = ["opt", "k.cu", "--recipe", "maxnreg(40)", "-o", "k.cubin"];
    run(&limited);
    let moved = run(&[
        "opt",
        "k.cubin",
        "--recipe",
        "spill-to-shared",
        "-o",
        "m.cubin",
    ]);
    assert!(moved.contains("B spills (shared)"), "{moved}");
    let limited = run(&["explain", "k.cubin"]);
    assert!(limited.contains("B spills or local arrays"), "{limited}");
    // ptxas itself spills to shared memory, all of it or a part.
    for (recipe, said) in [
        ("maxnreg(72); smem-spilling", "no local spills"),
        ("maxnreg(40); smem-spilling", "B local spills"),
    ] {
        let text = run(&["opt", "k.cu", "--recipe", recipe]);
        let choice = text.split(" choice ").nth(1).unwrap();
        assert!(choice.contains(said), "{text}");
        assert!(choice.contains("of them for spills)"), "{text}");
        assert!(!choice.contains("no spills"), "{text}");
    }
    // Nobody knows which of its shared memory are slots.
    for command in ["explain", "opt"] {
        let text = run(&[command, "m.cubin"]);
        assert!(text.contains("no local spills"), "{text}");
    }
}

#[test]
fn a_recipe_from_source_to_source_says_what_is_behind_it() {
    if require_toolkit("recipes from source to source").is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("k.cu"), NAIVE).unwrap();
    let args = ["opt", "k.cu", "--recipe", "across(64, 8)", "-o", "new.cu"];
    let text = said(folder.path(), 0, &args);
    assert!(
        text.contains("compared: the emulator computes the same"),
        "{text}"
    );
    let other = [&args[..], &["--gpu", "h200", "--", "-arch=sm_80"]].concat();
    let text = said(folder.path(), 2, &other);
    assert!(text.contains("are for sm_80, but --gpu is h200"), "{text}");
    // What is new is no version of anything; the rest is what it was.
    let text = said(folder.path(), 5, &["check", "k.cu", "new.cu"]);
    let old = "turned(double const*, double*, int, int): proved";
    assert!(
        text.contains(old) && text.contains("undecided: it is new"),
        "{text}"
    );
}

#[test]
fn a_block_that_does_not_fit_gets_a_build_that_does() {
    if require_toolkit("blocks that do not fit").is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let large = SPILLS.replace("__launch_bounds__(64) ", "");
    std::fs::write(folder.join("k.cu"), large).unwrap();
    let command = ["k.cu", "--gpu", "h100", "--block", "1024"];
    let explained = said(folder, 0, &[&["explain"], &command[..]].concat());
    assert!(explained.contains("cannot be launched"), "{explained}");
    assert!(!explained.contains("it spills for"), "{explained}");
    assert!(
        explained.contains("a block fits with at most 64 registers"),
        "{explained}"
    );
    let chosen = said(
        folder,
        0,
        &[&["opt"], &command[..], &["-o", "k.cubin"]].concat(),
    );
    assert!(
        chosen.contains("choice maxnreg(64): the default cannot be launched"),
        "{chosen}"
    );
    assert!(chosen.contains("wrote k.cubin"), "{chosen}");
}

#[test]
fn bounds_that_no_build_takes_are_said_and_stop_nothing() {
    if require_toolkit("bounds that ptxas ignores").is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let kernel = |bounds: &str, name: &str| {
        format!(
            "__global__ void __launch_bounds__({bounds}) {name}(float *a) {{\n    a[blockIdx.x * blockDim.x + threadIdx.x] *= 2;\n}}\n"
        )
    };
    let source = kernel("2048", "wide") + &kernel("1024, 4", "many") + &kernel("256, 8", "fits");
    std::fs::write(folder.join("k.cu"), source).unwrap();
    for arguments in [
        &["explain", "k.cu", "--gpu", "h200"][..],
        &["opt", "k.cu", "--gpu", "h200", "-o", "k.cubin", "--json"],
    ] {
        let text = said(folder, 0, arguments);
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for wanted in [
            "its bound of 2048 threads refuses no launch (a block has 1024 at most), and leaves a thread 32 registers",
            "ptxas ignores the minimum of __launch_bounds__(1024, 4): an SM holds 2 such blocks",
            "fits",
        ] {
            assert!(text.contains(wanted), "{text}");
        }
        assert_eq!(
            text.matches("ptxas ignores the minimum").count(),
            1,
            "{text}"
        );
    }
}

#[test]
fn a_kernels_own_bounds_are_named_where_it_spills_for_them() {
    if require_toolkit("bounds that make kernels spill").is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let explained = |bounds: &str| {
        let source = SPILLS.replace("__launch_bounds__(64)", bounds);
        std::fs::write(folder.join("k.cu"), source).unwrap();
        said(folder, 0, &["explain", "k.cu", "--gpu", "h100"])
    };
    let text = explained("__launch_bounds__(64, 24)");
    let bound = "it spills for __launch_bounds__(64, 24), which leaves a thread 40 registers";
    assert!(text.contains(bound), "{text}");
    let text = explained("__launch_bounds__(1024)");
    assert!(
        text.contains("it spills for __launch_bounds__(1024), which leaves a thread 64"),
        "{text}"
    );
    assert!(!explained("__launch_bounds__(64)").contains("it spills for"));
    let text = explained("__maxnreg__(40)");
    assert!(text.contains("it spills for __maxnreg__(40)"), "{text}");
}
