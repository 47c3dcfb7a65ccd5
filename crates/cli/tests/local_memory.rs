//! Local memory that is no spill: which array or parameter lies there, why, and what to edit.

#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use warpwright_toolkit::Toolkit;
use warpwright_toolkit::testing::require_toolkit;

const KERNELS: &str = "struct P { float w[24]; int n; };
__device__ __noinline__ void fill(float *v, int n) { for (int i = 0; i < n; ++i) v[i] = i * 0.5f; }
__global__ void data(float *out, const int *at, const float *a) {
    float v[4] = {a[0], a[1], a[2], a[3]};
    int w[6];
#pragma unroll 1
    for (int i = 0; i < 6; ++i) w[i] = at[i] * 3;
    out[threadIdx.x] = v[at[threadIdx.x]] + w[5] + w[0];
}
__global__ void turns(float *out, const float *a, int n) {
    float ring[16];
    for (int i = 0; i < n; ++i)
        ring[i & 15] = a[i];
    out[threadIdx.x] = ring[3] + ring[9];
}
__global__ void call(float *out, int n) {
    float x[32];
    fill(x, n);
    out[threadIdx.x] = x[3];
}
__global__ void value(float *out, const int *at, P p) {
    for (int i = 0; i < p.n; ++i) p.w[at[i] % 24u] += out[i];
    out[threadIdx.x] = p.w[at[threadIdx.x] % 24u];
}
__global__ void ways(float *out, const float *a, int n) {
    float best[4]; int where[4];
    for (int k = 0; k < 4; ++k) { best[k] = -1e30f; where[k] = -1; }
    for (int i = 0; i < n; ++i) {
        int k = 3;
        if (!(a[i] > best[3])) continue;
        while (k > 0 && a[i] > best[k - 1]) { best[k] = best[k - 1]; where[k] = where[k - 1]; --k; }
        best[k] = a[i]; where[k] = i;
    }
    for (int k = 0; k < 4; ++k) out[4 * threadIdx.x + k] = best[k] + where[k];
}
__global__ void stack(float *out, const int2 *kids) {
    int st[24], sp = 0, c = 0;
    st[sp++] = threadIdx.x;
    while (sp > 0) {
        int v = st[--sp];
        int2 k = kids[v];
        c += v;
        if (k.x >= 0) st[sp++] = k.x;
        if (k.y >= 0) st[sp++] = k.y;
    }
    out[threadIdx.x] = c;
}
__global__ void held(const float *x, float *y, int n) {
    float w[40];
#pragma unroll 1
    for (int k = 0; k < 40; k++) w[k] = x[k * n + threadIdx.x];
#pragma unroll 1
    for (int k = 1; k < 39; k++) y[k * n + threadIdx.x] = w[k - 1] + w[k + 1] - 2 * w[k] + w[39 - k];
}
struct Q { double c[12]; int deg[4]; }; __global__ void sines(const float *x, float *y, Q p, int which) {
    double v = x[threadIdx.x], r = 0; float s, c; for (int k = p.deg[which]; k >= 0; k--) r = r * v + p.c[k];
    sincosf(x[threadIdx.x], &s, &c);
    y[threadIdx.x] = r * s + c;
}
__global__ void sine(const float *x, float *y) { y[threadIdx.x] = sinf(x[threadIdx.x]); }
__global__ void print(const float *x, int n) { if (n > 3) printf(\"%d %f\\n\", n, x[0]); }
__global__ void none(float *out, const float *a) {
    float v[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) v[i] = a[i];
    out[threadIdx.x] = v[0] * v[3];
}
";

fn run(toolkit: &Toolkit, folder: &Path, args: &[&str]) -> Output {
    run_as("explain", toolkit, folder, args)
}

fn run_as(command: &str, toolkit: &Toolkit, folder: &Path, args: &[&str]) -> Output {
    let ptxas = toolkit.ptxas().unwrap().tool().path.clone();
    Command::new(env!("CARGO_BIN_EXE_warpwright"))
        .arg("--toolkit")
        .arg(ptxas.parent().unwrap().parent().unwrap())
        .args([command, "--gpu", "h200", "--block", "128"])
        .args(args)
        .current_dir(folder)
        .output()
        .unwrap()
}

/// What is said of each kernel: what it is called, its declaration, its bytes, its cause, its reason; its edits.
fn arrays(document: &Value, kernel: &str) -> Vec<String> {
    let kernels = document["kernels"].as_array().unwrap();
    let is_it = |one: &&Value| one["kernel"].as_str().unwrap().contains(kernel);
    let found = kernels.iter().find(is_it).unwrap();
    let arrays = found["local_arrays"].as_array().into_iter().flatten();
    let text = |value: &Value| value.as_str().unwrap_or("–").to_owned();
    let edit = |edit: &Value| format!("{}: {}", text(&edit["line"]), text(&edit["text"]));
    let one = |array: &Value| {
        let edits: Vec<String> = array["edits"]
            .as_array()
            .unwrap()
            .iter()
            .map(edit)
            .collect();
        let [name, declared, cause, reason] =
            ["name", "declared", "cause", "reason"].map(|of| text(&array[of]));
        let head = format!("{name} {declared} {} {cause}: {reason}", array["bytes"]);
        std::iter::once(head)
            .chain(edits)
            .collect::<Vec<_>>()
            .join("\n  ")
    };
    arrays.map(one).collect()
}

#[test]
fn arrays_and_parameters_in_local_memory_are_named() {
    let Some(toolkit) = require_toolkit("arrays_and_parameters_in_local_memory_are_named") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("k.cu"), KERNELS).unwrap();
    let output = run(&toolkit, folder.path(), &["k.cu", "--json"]);
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let shared = |bytes: u32, line: u32| {
        format!("k.cu:{line}: keep it in shared memory: {bytes} B for 128 threads")
    };
    assert_eq!(
        arrays(&document, "data"),
        [
            format!(
                "v k.cu:4 16 run-time: the index at k.cu:8 is not known before `ld.global.u32` has run\n  \
                 k.cu:8: a `switch` over the index, with constant indices in its cases\n  {}",
                shared(2048, 8)
            ),
            "w k.cu:5 24 loop: the index at k.cu:7 goes by the loop at k.cu:7, which is not fully unrolled\n  \
             k.cu:7: `#pragma unroll` in place of `#pragma unroll 1` before this loop: its turns are constant, and so is the \
             index then"
                .to_owned(),
        ]
    );
    assert_eq!(
        arrays(&document, "turns"),
        [format!(
            "ring k.cu:11 64 loop: the index at k.cu:13 goes by the loop at k.cu:12, whose number of turns is not \
             constant\n  k.cu:12: give this loop a constant number of turns, and `#pragma unroll`\n  {}",
            shared(8192, 13)
        )]
    );
    assert_eq!(
        arrays(&document, "call"),
        [
            "x k.cu:17 128 call: its address at k.cu:18 goes to `fill(float*, int)`, which is not inlined\n  \
          k.cu:2: inline `fill(float*, int)` (`__forceinline__`)"
        ]
    );
    // Pointers that branches set to one element or another; a line that names one of the arrays alone tells them apart.
    let either = |name: &str| {
        format!(
            "{name} k.cu:26 16 run-time: the index at k.cu:32 goes by branches or the turns of a loop\n  \
             k.cu:32: a `switch` over the index, with constant indices in its cases\n  {}",
            shared(2048, 32)
        )
    };
    assert_eq!(arrays(&document, "ways"), ["best", "where"].map(either));
    assert_eq!(
        arrays(&document, "stack"),
        [format!(
            "st k.cu:37 96 run-time: the index at k.cu:40 is moved by branches in the loop at k.cu:39, as a stack's is\n  \
             {}\n  k.cu:39: loops of a constant depth in its place, unrolled: each level has a constant index",
            shared(12288, 40)
        )]
    );
    assert_eq!(
        arrays(&document, "held"),
        [
            "w k.cu:49 160 loop: the index at k.cu:51 goes by the loop at k.cu:51, which is not fully unrolled\n  \
          k.cu:51: `#pragma unroll` in place of `#pragma unroll 1` before this loop and at k.cu:53: their turns are \
          constant, and so is each index then"
        ]
    );
    let sines = arrays(&document, "sines");
    let library = sines.iter().find(|one| one.contains("library")).unwrap();
    assert!(
        library.starts_with(
            "– – 32 library: the `sinf`, `cosf`, `tanf` or `sincosf` at k.cu:57 indexes it where the argument is large\n  \
             –: `__sinf`, `__cosf`, `__tanf` or `__sincosf` in its place, or -use_fast_math"
        ),
        "{sines:?}"
    );
    assert_eq!(arrays(&document, "4sine"), [""; 0]);
    assert_eq!(
        arrays(&document, "print"),
        [
            "– – 16 library: it holds the arguments of the `printf` at k.cu:61\n  k.cu:61: without this `printf`"
        ]
    );
    let copy = &arrays(&document, "value")[0];
    assert!(
        copy.starts_with("p k.cu:21 100 run-time: the index at k.cu:22"),
        "{copy}"
    );
    assert_eq!(arrays(&document, "none"), [""; 0]);
    // The screen and the page have the same.
    let args = ["k.cu", "--kernel", "data", "--report", "r.html"];
    let screen = String::from_utf8(run(&toolkit, folder.path(), &args).stdout).unwrap();
    let screen = screen.split_whitespace().collect::<Vec<_>>().join(" ");
    let page = std::fs::read_to_string(folder.path().join("r.html")).unwrap();
    let page = page.replace("<code>", "`").replace("</code>", "`");
    for text in [&screen, &page] {
        for part in [
            "`v` (k.cu:4) lies in local memory, 16 B: the index at k.cu:8",
            "k.cu:7: `#pragma unroll` in place of `#pragma unroll 1`",
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
    }
}

/// The frame of other compilers, and an array that has a variable for itself.
const PTX: &str = ".version 8.5
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out, .param .u32 n)
{
.local .align 16 .b8 table[64];
.reg .b32 %r<4>; .reg .b64 %rd<6>;
ld.param.u64 %rd1, [out];
ld.param.u32 %r1, [n];
mov.u32 %r2, %tid.x;
st.local.u32 [table], %r1;
st.local.u32 [table+4], %r2;
mov.u64 %rd2, table;
mul.wide.u32 %rd3, %r2, 4;
add.s64 %rd4, %rd2, %rd3;
ld.local.u32 %r3, [%rd4];
st.global.u32 [%rd1], %r3;
ret;
}
";

#[test]
fn a_local_variable_of_ptx_is_named() {
    let Some(toolkit) = require_toolkit("a_local_variable_of_ptx_is_named") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("k.ptx"), PTX).unwrap();
    let output = run(&toolkit, folder.path(), &["k.ptx", "--json"]);
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let found = arrays(&document, "k");
    assert_eq!(found.len(), 1, "{found:?}");
    let reason = "table – 64 run-time: the index of instruction 8 (`ld.local.u32 %r3, [%rd4]`) goes by a special register, such as the thread's number";
    assert!(found[0].starts_with(reason), "{found:?}");
}

#[test]
fn the_stack_of_a_build_is_said_with_what_accesses_it() {
    let Some(toolkit) = require_toolkit("the_stack_of_a_build_is_said_with_what_accesses_it")
    else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("k.cu"), KERNELS).unwrap();
    let said = |command: &str, args: &[&str]| {
        let output = run_as(command, &toolkit, folder.path(), args);
        let text = String::from_utf8(output.stdout).unwrap();
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let opt = said("opt", &["k.cu", "--kernel", "stack", "-o", "k.cubin"]);
    assert!(opt.contains("no spills, 96 B of local arrays"), "{opt}");
    let none = said("opt", &["k.cu", "--kernel", "none"]);
    assert!(!none.contains("local arrays"), "{none}");
    // The array is indexed: what stands at fixed places is its first element alone.
    let explained = said("explain", &["k.cubin", "--kernel", "stack"]);
    assert!(
        explained.contains(
            "96 B spills or local arrays, 96 B stack (4 B moved at fixed places, 3 accesses by an index)"
        ),
        "{explained}"
    );
}
