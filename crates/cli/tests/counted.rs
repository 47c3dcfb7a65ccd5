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
            .env("WARPWRIGHT_STANDIN", "programs do not run here")
            .arg("--toolkit")
            .arg(&self.toolkit)
            .arg(args[0])
            .args(match args[0] {
                // However slow the machine is.
                "explain" | "launch" => &["--budget", "900"][..],
                _ => &[],
            })
            .args(&args[1..])
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
    // The full size does not fit; the largest part of it that does is counted, and the limit says so.
    let counted = [
        "explain",
        "turns.cu",
        "--gpu",
        "h200",
        "--launch",
        "turns.toml",
    ];
    let found = bench.document(&counted);
    let at = found["kernels"][0]["causes"]["counted_at"]
        .as_str()
        .unwrap();
    assert!(at.starts_with("size `full`, made small: "), "{at}");
    assert_eq!(found["kernels"][0]["cycles"]["turns"], "counted-smaller");
    assert_eq!(lines(&found)[0], "turns.cu:8");
    let share = found["kernels"][0]["causes"]["places"][0]["share"].as_f64();
    assert!(share.unwrap() > 0.8, "{share:?}");
    let screen = bench.screen(&counted);
    for said in [
        "instructions counted at size `full`, made small: ",
        "loops counted at a smaller size",
    ] {
        assert!(screen.contains(said), "{said}: {screen}");
    }
    assert!(!screen.contains("10 turns"), "{screen}");
}

/// All blocks together hold one tile each; a launch that is too large for the emulator as it is; one whose memory is not
/// what the kernel takes.
const LAUNCHED: &str = "#include <cuda_runtime.h>
#include <cstdlib>
__global__ void waits(const float* a, float* b, int n) {
    float x = 0;
#pragma unroll 1
    for (int i = threadIdx.x; i < n; i += 128) x += a[i] * a[blockIdx.x];
    b[blockIdx.x * 128 + threadIdx.x] = x;
}
__global__ void sums(const float* in, float* out, size_t n) {
    float s = 0;
#pragma unroll 1
    for (size_t i = blockIdx.x * 256ull + threadIdx.x; i < n; i += gridDim.x * 256ull) s += in[i];
    atomicAdd(out, s);
}
__global__ void beyond(float* a, int n) {
    a[(size_t)n * (1ull << 30) + threadIdx.x] = 1;
}
int main() {
    int n = 4096;
    float *a, *b;
    cudaMalloc(&a, n * sizeof(float));
    cudaMalloc(&b, n * sizeof(float));
    waits<<<n / 128, 128>>>(a, b, n);
    size_t m = 1ull << 29;
    float *x, *s;
    cudaMalloc(&x, m * sizeof(float));
    cudaMalloc(&s, sizeof(float));
    sums<<<1024, 256>>>(x, s, m);
    beyond<<<4, 64>>>(s, 77);
    return cudaDeviceSynchronize();
}
";

#[test]
fn the_codes_own_launch_says_how_many_blocks_there_are() {
    let test = "the_codes_own_launch_says_how_many_blocks_there_are";
    let Some(toolkit) = require_toolkit(test) else {
        return;
    };
    let bench = Bench::new(&toolkit);
    bench.file("l.cu", LAUNCHED);
    let of = |found: &Value, name: &str| -> Value {
        let kernels = found["kernels"].as_array().unwrap();
        let name_of = |k: &Value| k.get("kernel").or(k.get("name")).cloned().unwrap();
        let is_it = |k: &&Value| name_of(k).as_str().unwrap().contains(name);
        kernels.iter().find(is_it).unwrap().clone()
    };
    let explained = bench.document(&["explain", "l.cu", "--gpu", "h200"]);
    let chosen = bench.document(&["opt", "l.cu", "--gpu", "h200"]);
    for found in [&explained, &chosen] {
        let waits = of(found, "waits");
        assert_eq!(
            (
                &waits["grid"],
                waits["guessed"].as_str().unwrap_or_default()
            ),
            (&32.into(), "")
        );
        assert_eq!(of(found, "sums")["grid"], 1024);
    }
    // Both name the same limit, which is that of a description of the same launch.
    let bound = |found: &Value| found["bound"].clone();
    for (kernel, turns) in [("waits", "counted"), ("sums", "counted-smaller")] {
        let [one, other] = [
            &of(&explained, kernel)["cycles"],
            &of(&chosen, kernel)["counted"],
        ];
        assert_eq!(bound(one), bound(other), "{kernel}");
        assert_eq!(one["turns"], turns, "{kernel}: {one}");
    }
    let made = bench.run(&["launch", "l.cu", "--kernel", "waits", "-o", "w.toml"]);
    assert!(made.status.success(), "{made:?}");
    let options = ["--gpu", "h200", "--kernel", "waits", "--launch", "w.toml"];
    let described = bench.document(&[&["explain", "l.cu"], &options[..]].concat());
    assert_eq!(bound(&of(&described, "waits")["cycles"]), "latency");
    assert_eq!(bound(&of(&explained, "waits")["cycles"]), "latency");
    // A sum whose blocks all have work is bound by memory, in a part of its size, too.
    let at = &of(&explained, "sums")["causes"]["counted_at"];
    assert!(at.as_str().unwrap().contains("made small: n = "), "{at}");
    let most = &of(&explained, "sums")["causes"]["causes"][0]["cause"];
    assert_eq!(most, "global", "{explained}");
    let why = of(&explained, "beyond")["not_counted"].clone();
    assert!(why.as_str().unwrap().contains("it faults"), "{why}");
    let screen = bench.screen(&["opt", "l.cu", "--gpu", "h200", "--kernel", "waits"]);
    assert!(
        screen.contains("128 threads per block (the code's own launch), 32 blocks"),
        "{screen}"
    );
}

/// Its grid is asked of the device; its data are not.
const ASKED: &str = "#include <cuda_runtime.h>
__global__ void reduce(const float* in, float* out, size_t n) {
    __shared__ float s[256];
    float x = 0;
    for (size_t i = blockIdx.x * 256ull + threadIdx.x; i < n; i += gridDim.x * 256ull) x += in[i];
    s[threadIdx.x] = x;
    __syncthreads();
    for (int k = 128; k > 0; k >>= 1) {
        if (threadIdx.x < k) s[threadIdx.x] += s[threadIdx.x + k];
        __syncthreads();
    }
    if (threadIdx.x == 0) atomicAdd(out, s[0]);
}
int main() {
    size_t n = 1 << 28;
    float *in, *out;
    cudaMalloc(&in, n * sizeof(float));
    cudaMalloc(&out, sizeof(float));
    cudaDeviceProp its;
    cudaGetDeviceProperties(&its, 0);
    int sms = its.multiProcessorCount;
    reduce<<<sms * 8, 256>>>(in, out, n);
    return cudaDeviceSynchronize();
}
";

#[test]
fn a_grid_that_nobody_knows_is_none() {
    let Some(toolkit) = require_toolkit("a_grid_that_nobody_knows_is_none") else {
        return;
    };
    let bench = Bench::new(&toolkit);
    bench.file(
        "r.cu",
        &ASKED.replace("int sms = its", "int sms; scanf(\"%d\", &sms); its"),
    );
    let found = bench.document(&["explain", "r.cu", "--gpu", "h200"]);
    let kernel = &found["kernels"][0];
    assert!(kernel["grid"].is_null(), "{kernel}");
    let at = kernel["causes"]["counted_at"].as_str().unwrap();
    assert!(at.contains("blocks guessed"), "{at}");
    let chosen = bench.document(&["opt", "r.cu", "--gpu", "h200"]);
    let counted = &chosen["kernels"][0]["counted"]["bound"];
    assert_eq!(counted, &kernel["cycles"]["bound"]);
}

#[test]
fn the_processors_that_code_asks_for_are_those_of_the_gpu() {
    let test = "the_processors_that_code_asks_for_are_those_of_the_gpu";
    let Some(toolkit) = require_toolkit(test) else {
        return;
    };
    let bench = Bench::new(&toolkit);
    bench.file("r.cu", ASKED);
    for (gpu, processors) in [("h200", 132), ("a100", 108)] {
        let found = bench.document(&["explain", "r.cu", "--gpu", gpu]);
        let kernel = &found["kernels"][0];
        assert_eq!(kernel["grid"], processors * 8, "{kernel}");
        assert!(kernel["guessed"].is_null(), "{kernel}");
        assert_ne!(kernel["cycles"]["bound"], "issue", "{kernel}");
        assert_eq!(kernel["cycles"]["turns"], "counted-smaller", "{kernel}");
    }
    // Of an architecture nobody knows them.
    let found = bench.document(&["explain", "r.cu"]);
    assert!(found["kernels"][0]["grid"].is_null(), "{found}");
    // A description says as much as the code does.
    let args = ["launch", "r.cu", "-o", "r.toml"];
    assert!(bench.run(&args).status.success());
    let counted = ["explain", "r.cu", "--gpu", "h200", "--launch", "r.toml"];
    let described = bench.document(&counted);
    assert_ne!(described["kernels"][0]["cycles"]["bound"], "issue");
}

#[test]
fn what_accesses_waste_stands_beside_the_limit() {
    let test = "what_accesses_waste_stands_beside_the_limit";
    let Some(toolkit) = require_toolkit(test) else {
        return;
    };
    let bench = Bench::new(&toolkit);
    bench.file(
        "t.cu",
        "__global__ void turn(const float *a, float *b) {
    __shared__ float s[32][32];
    s[threadIdx.y][threadIdx.x] = a[blockIdx.x * 1024 + threadIdx.y * 32 + threadIdx.x];
    __syncthreads();
    b[blockIdx.x * 1024 + threadIdx.y * 32 + threadIdx.x] = s[threadIdx.x][threadIdx.y];
}
int main() {
    float *a, *b; cudaMalloc(&a, 64 * 4096); cudaMalloc(&b, 64 * 4096);
    turn<<<64, dim3(32, 32)>>>(a, b);
}
",
    );
    let said = "not in that: 16.5 times the passes over shared memory needed (t.cu:5)";
    for command in ["explain", "opt"] {
        let screen = bench.screen(&[command, "t.cu", "--gpu", "h200"]);
        assert!(screen.contains(said), "{command}: {screen}");
        assert!(screen.contains("64 blocks: 68 SMs get none"), "{screen}");
    }
}

#[test]
fn a_launch_of_few_blocks_is_not_throttled() {
    let test = "a_launch_of_few_blocks_is_not_throttled";
    let Some(toolkit) = require_toolkit(test) else {
        return;
    };
    let bench = Bench::new(&toolkit);
    let source = |rows: u32| {
        format!(
            "__global__ void k(const float *__restrict__ a, float *__restrict__ o, int rows, int w) {{
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= rows) return;
    float s = 0; for (int i = 0; i < w; i++) s += a[r * w + i];
    o[r] = s;
}}
int main() {{ int rows = {rows}, w = 64; float *a, *o; cudaMalloc(&a, rows * w * 4); cudaMalloc(&o, rows * 4);
    k<<<(rows + 127) / 128, 128>>>(a, o, rows, w); }}
"
        )
    };
    // An SM has one block at most, whatever fits.
    bench.file("few.cu", &source(512));
    let screen = bench.screen(&["opt", "few.cu", "--gpu", "h200", "--all"]);
    assert!(screen.contains("4 blocks: 128 SMs get none"), "{screen}");
    assert!(!screen.contains("throttle("), "{screen}");
    // Where nothing is known of the launch there may be more.
    let source = source(512);
    let (unknown, _) = source.split_once("int main").unwrap();
    bench.file("unknown.cu", unknown);
    let args = [
        "opt",
        "unknown.cu",
        "--gpu",
        "h200",
        "--block",
        "128",
        "--all",
    ];
    let screen = bench.screen(&args);
    assert!(screen.contains("throttle("), "{screen}");
}

#[test]
fn another_block_alone_is_not_advised() {
    let test = "another_block_alone_is_not_advised";
    let Some(toolkit) = require_toolkit(test) else {
        return;
    };
    let bench = Bench::new(&toolkit);
    let source = |body: &str| {
        format!(
            "__global__ void k(const int *next, int *o, int steps) {{
    int p = blockIdx.x * blockDim.x + threadIdx.x;
    {body}
}}
int main() {{ int *a, *o; cudaMalloc(&a, 4 << 24); cudaMalloc(&o, 4 << 17); k<<<264, 256>>>(a, o, 100); }}
"
        )
    };
    // Each step waits for the one before, in whatever block.
    let chase = "int q = p; for (int i = 0; i < steps; i++) q = next[q]; o[p] = q;";
    bench.file("chase.cu", &source(chase));
    let screen = bench.screen(&["explain", "chase.cu", "--gpu", "h100"]);
    assert!(
        screen.contains("kernel k(int const*, int*, int)"),
        "{screen}"
    );
    assert!(!screen.contains("writes a tuned kernel"), "{screen}");
}

#[test]
fn runs_are_compared_within_the_tolerance() {
    let test = "runs_are_compared_within_the_tolerance";
    let Some(toolkit) = require_toolkit(test) else {
        return;
    };
    let bench = Bench::new(&toolkit);
    let sum = |order: &str| {
        format!(
            "__global__ void k(const float *a, float *o) {{ float s = 0;
    for ({order}) s += a[i * 32 + threadIdx.x]; o[threadIdx.x] = s; }}
int main() {{ float *a, *o; cudaMalloc(&a, 2048 * 4); cudaMalloc(&o, 32 * 4); k<<<1, 32>>>(a, o); }}
"
        )
    };
    bench.file("a.cu", &sum("int i = 0; i < 64; i++"));
    bench.file("b.cu", &sum("int i = 63; i >= 0; i--"));
    assert!(
        bench
            .run(&["launch", "a.cu", "-o", "a.toml"])
            .status
            .success()
    );
    let check = ["check", "a.cu", "b.cu", "--run", "--launch", "a.toml"];
    let refuted = bench.screen(&check);
    for said in [
        "refuted: `o[",
        " in place of ",
        " of 32 elements do",
        "a `tolerance` in the description",
    ] {
        assert!(refuted.contains(said), "{said}: {refuted}");
    }
    let path = bench.folder.path().join("a.toml");
    let toml = std::fs::read_to_string(&path).unwrap();
    let within = toml.replace("output = true", "output = true\ntolerance = { abs = 1e-4 }");
    std::fs::write(&path, &within).unwrap();
    assert_eq!(bench.run(&check).status.code(), Some(5));
    let equal = bench.screen(&check);
    assert!(
        equal.contains("equal within the description's tolerance"),
        "{equal}"
    );
    std::fs::write(&path, within.replace("1e-4", "1e-9")).unwrap();
    assert_eq!(bench.run(&check).status.code(), Some(1));
}

#[test]
fn a_description_of_one_kernel_says_nothing_of_others() {
    let test = "a_description_of_one_kernel_says_nothing_of_others";
    let Some(toolkit) = require_toolkit(test) else {
        return;
    };
    let bench = Bench::new(&toolkit);
    bench.file(
        "two.cu",
        "__global__ void a(float *x, int n) { for (int i = threadIdx.x; i < n; i += 64) x[i] += 1; }
__global__ void b(float *x, int n) { for (int i = threadIdx.x; i < n; i += 64) x[i] *= 2; }
int main() {
    float *x; int n = 4096; cudaMalloc(&x, n * 4);
    a<<<7, 64>>>(x, n);
    b<<<9, 64>>>(x, n);
}
",
    );
    let args = ["launch", "two.cu", "--kernel", "a", "-o", "a.toml"];
    assert!(bench.run(&args).status.success());
    let found = bench.document(&["explain", "two.cu", "--launch", "a.toml"]);
    let at = |kernel: usize| found["kernels"][kernel]["causes"]["counted_at"].clone();
    assert_eq!(at(0), "size `full`, guesses in its description");
    assert_eq!(at(1), "the code's own launch");
    assert_eq!(found["kernels"][1]["grid"], 9);
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
    // A finished cubin has the calls in its line table.
    let nvcc = bench.toolkit.join("bin/nvcc");
    let options = [
        "-arch=sm_90",
        "-lineinfo",
        "-cubin",
        "scan.cu",
        "-o",
        "scan.cubin",
    ];
    let built = Command::new(nvcc)
        .args(options)
        .current_dir(bench.folder.path())
        .output();
    assert!(built.unwrap().status.success());
    let found = bench.document(&["explain", "scan.cubin", "--gpu", "h200", "--block", "256"]);
    let lines = self::lines(&found);
    assert!(lines.iter().any(|line| line == "scan.cu:5"), "{lines:?}");
    assert!(lines.iter().any(|line| line == "own.h:1"), "{lines:?}");
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

#[test]
fn what_a_check_is_told_counts() {
    let Some(toolkit) = require_toolkit("what_a_check_is_told_counts") else {
        return;
    };
    let bench = Bench::new(&toolkit);
    // Thread `n` is none of a block of as many.
    for (file, is) in [("a.cu", "<"), ("b.cu", "<=")] {
        let text = format!(
            "__global__ void k(int *x, int n) {{ if (threadIdx.x {is} n) x[threadIdx.x] = n; }}\n"
        );
        bench.file(file, &text);
    }
    for (file, threads) in [("c.cu", "blockDim.x"), ("d.cu", "64")] {
        let text =
            format!("__global__ void k(int *x, int n) {{ x[threadIdx.x] = n + {threads}; }}\n");
        bench.file(file, &text);
    }
    bench.file("e.cu", "__global__ void other(int *x) { x[0] = 1; }\n");
    bench.file(
        "k.toml",
        "source = \"a.cu\"\nkernel = \"k\"\n[sizes.small]\nn = 64\n[sizes.full]\nn = 64\n[launch]\ngrid = [1]\nblock = [64]\n\
         [[args]]\nname = \"x\"\ntype = \"s32\"\nshape = [\"n\"]\noutput = true\n\
         [[args]]\nname = \"n\"\ntype = \"s32\"\nvalue = \"n\"\n",
    );
    let check = |args: &[&str]| {
        let args = [&["check"], args].concat();
        let output = bench.run(&args);
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8(text).unwrap();
        let words: Vec<&str> = text.split_whitespace().collect();
        (output.status.code(), words.join(" "))
    };
    // A run at one launch does not hide what is known of others.
    let (code, text) = check(&["a.cu", "b.cu", "--run", "--launch", "k.toml"]);
    assert_eq!(code, Some(1), "{text}");
    assert!(
        text.contains("at the launch of `k.toml` the outputs are equal bit for bit"),
        "{text}"
    );
    // Of launches with other blocks than the description's nothing is said.
    assert_eq!(check(&["c.cu", "d.cu"]).0, Some(1));
    assert_eq!(check(&["c.cu", "d.cu", "--launch", "k.toml"]).0, Some(5));
    let (code, text) = check(&["a.cu", "e.cu"]);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("have no kernel in common"), "{text}");
    assert!(text.contains("--launch-a and --launch-b"), "{text}");
    let (code, text) = check(&["a.cu", "b.cu", "--size", "small"]);
    assert_eq!(code, Some(2), "{text}");
    assert!(text.contains("--size needs --launch"), "{text}");
    let options = ["opt", "a.cu", "--launch", "k.toml", "--block"];
    for (block, code) in [("64", 0), ("32", 2), ("k=32", 2)] {
        let output = bench.run(&[&options[..], &[block]].concat());
        assert_eq!(output.status.code(), Some(code), "{block}: {output:?}");
    }
}

/// A tile's columns are read at once, which one bank has; a plain store goes to 32 rows.
const TRANSPOSE: &str = "#include <cuda_runtime.h>
#define N 2048
__global__ void tile(const float* in, float* out, int n) {
    __shared__ float t[32][32];
    t[threadIdx.y][threadIdx.x] = in[(blockIdx.y * 32 + threadIdx.y) * n + blockIdx.x * 32 + threadIdx.x];
    __syncthreads();
    out[(blockIdx.x * 32 + threadIdx.y) * n + blockIdx.y * 32 + threadIdx.x] = t[threadIdx.x][threadIdx.y];
}
__global__ void plain(const float* in, float* out, int n) {
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    out[x * n + y] = in[y * n + x];
}
__global__ void sums(const float* in, float* out, int n) {
    float s = 0;
#pragma unroll 1
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) s += in[i];
    out[blockIdx.x * blockDim.x + threadIdx.x] = s;
}
int main() {
    float *a, *b;
    cudaMalloc(&a, N * N * sizeof(float));
    cudaMalloc(&b, N * N * sizeof(float));
    tile<<<dim3(N / 32, N / 32), dim3(32, 32)>>>(a, b, N);
    plain<<<dim3(N / 32, N / 32), dim3(32, 32)>>>(a, b, N);
    sums<<<64, 256>>>(a, b, N * N);
    return cudaDeviceSynchronize();
}
";

#[test]
fn coalescing_and_bank_conflicts_are_counted_at_the_codes_own_launch() {
    let test = "coalescing_and_bank_conflicts_are_counted_at_the_codes_own_launch";
    let Some(toolkit) = require_toolkit(test) else {
        return;
    };
    let bench = Bench::new(&toolkit);
    bench.file("t.cu", TRANSPOSE);
    let found = bench.document(&["explain", "t.cu", "--gpu", "h200"]);
    let kernels = found["kernels"].as_array().unwrap();
    let of = |name: &str| {
        let is_it = |k: &&Value| k["kernel"].as_str().unwrap().contains(name);
        &kernels.iter().find(is_it).unwrap()["accesses"]
    };
    for kernel in ["tile", "plain", "sums"] {
        let at = of(kernel)["counted_at"].as_str().unwrap();
        let sample = at.strip_prefix("the code's own launch").unwrap();
        assert!(sample.is_empty() || sample.ends_with(" blocks"), "{at}");
    }
    let place = |accesses: &Value, at: usize| {
        let place = &accesses["places"][at];
        let text = |key: &str| place[key].as_str().unwrap_or_default().to_owned();
        let number = |key: &str| place[key].as_f64().unwrap_or_default();
        (
            text("line"),
            text("memory"),
            number("taken"),
            number("least"),
        )
    };
    let (line, shared, global) = (
        |at| format!("t.cu:{at}"),
        "shared".to_owned(),
        "global".to_owned(),
    );
    let tile = of("tile");
    assert_eq!(place(tile, 0), (line(7), shared, 32.0, 1.0), "{tile}");
    assert_eq!(tile["places"].as_array().unwrap().len(), 1, "{tile}");
    let least = |total: &Value| total["taken"].as_f64().unwrap() / total["least"].as_f64().unwrap();
    assert_eq!(least(&tile["sectors"]), 1.0);
    let plain = of("plain");
    assert_eq!(place(plain, 0), (line(11), global, 32.0, 4.0), "{plain}");
    assert_eq!(least(&plain["sectors"]), 4.5);
    assert!(of("sums")["places"].as_array().unwrap().is_empty());
    // All 256 turns of it, and not the few of a small launch.
    let sums = kernels
        .iter()
        .find(|k| k["kernel"].as_str().unwrap().contains("sums"));
    let turning = sums.unwrap()["causes"]["places"][0].clone();
    assert_eq!(turning["line"], "t.cu:16", "{turning}");
    assert!(turning["share"].as_f64().unwrap() > 0.9, "{turning}");
    let screen = bench.screen(&["explain", "t.cu", "--gpu", "h200", "--kernel", "tile"]);
    let said = "16.5 times the passes over shared memory that their bytes need";
    assert!(screen.contains(said), "{screen}");
}

#[test]
fn equal_outputs_that_tell_little_are_named() {
    let Some(toolkit) = require_toolkit("equal_outputs_that_tell_little_are_named") else {
        return;
    };
    let bench = Bench::new(&toolkit);
    let root = "extern \"C\" __global__ void turns(const float* a, float* b) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    b[i] = ROOT;
}
";
    bench.file("turns.cu", root);
    bench.file("turns.toml", DESCRIPTION);
    let screen = |value: &str| {
        let root = format!("-DROOT={value}");
        bench.screen(&[
            "check",
            "turns.cu",
            "turns.cu",
            "--run",
            "--launch",
            "turns.toml",
            "--size",
            "small",
            "--",
            &root,
        ])
    };
    let nan = screen("sqrtf(-1.0f-a[i])");
    assert!(
        nan.contains("`b` tells little: every element is NaN"),
        "{nan}"
    );
    let some = screen("i%2?a[i]:sqrtf(-1.0f-a[i])");
    assert!(some.contains("512 of 1024 elements are NaN"), "{some}");
    for (value, words) in [
        ("0.0f", "every element is 0"),
        ("2.5f*(i>=0)", "every element is 2.5"),
    ] {
        let constant = screen(value);
        assert!(
            constant.contains(&format!("`b` tells little: {words}")),
            "{constant}"
        );
    }
    let fine = screen("a[i]+1");
    assert!(
        fine.contains("equal bit for bit") && !fine.contains("tells little"),
        "{fine}"
    );
}

/// Reducing a large argument is what most of the code of `sincosf` does, and ordinary arguments never come there: a launch
/// that somebody describes is judged by what runs.
#[test]
fn a_described_launch_may_pass_by_most_of_a_kernel() {
    let Some(toolkit) = require_toolkit("a_described_launch_may_pass_by_most_of_a_kernel") else {
        return;
    };
    let bench = Bench::new(&toolkit);
    let waves = "extern \"C\" __global__ void turns(const float* __restrict__ a, float* b) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float x = 0, s, c;
    for (int k = 0; k < 16; ++k) { sincosf(a[k] * i, &s, &c); x += s * c; }
    b[i] = x;
}
";
    bench.file("turns.cu", waves);
    bench.file("turns.toml", DESCRIPTION);
    let screen = bench.screen(&[
        "explain",
        "turns.cu",
        "--launch",
        "turns.toml",
        "--size",
        "small",
    ]);
    assert!(!screen.contains("no example"), "{screen}");
    assert!(
        screen.contains("instructions counted at size `small`"),
        "{screen}"
    );
}

/// A table for all, a table for each block, a place for each block, and lanes that meet nowhere.
const ATOMICS: &str = "__global__ void table(const unsigned char *a, unsigned *h) {
    atomicAdd(&h[a[blockIdx.x * 256 + threadIdx.x]], 1u);
}
__global__ void tables(const unsigned char *a, unsigned *h) {
    __shared__ unsigned own[256];
    own[threadIdx.x] = 0;
    __syncthreads();
    for (int i = 0; i < 64; ++i) atomicAdd(&own[a[(blockIdx.x * 64 + i) * 256 + threadIdx.x] & 1], 1u);
    __syncthreads();
    h[blockIdx.x * 256 + threadIdx.x] = own[threadIdx.x];
}
__global__ void places(const unsigned char *a, unsigned *h) {
    unsigned x = a[blockIdx.x * 256 + threadIdx.x];
    for (int i = 0; i < 64; ++i) x = x * x + 7;
    atomicAdd(&h[blockIdx.x * 256], x);
}
__global__ void apart(const unsigned char *a, unsigned *h) {
    int i = blockIdx.x * 256 + threadIdx.x;
    atomicAdd(&h[i], (unsigned)a[i]);
}
";

/// What bounds a kernel is told as the rewrites of its atomic operations tell it.
#[test]
fn atomic_operations_that_wait_for_each_other_are_what_bounds() {
    let test = "atomic_operations_that_wait_for_each_other_are_what_bounds";
    let Some(toolkit) = require_toolkit(test) else {
        return;
    };
    let bench = Bench::new(&toolkit);
    bench.file("h.cu", ATOMICS);
    for (kernel, is_bound) in [
        ("table", true),
        ("tables", true),
        ("places", false),
        ("apart", false),
    ] {
        let per_thread = if kernel == "tables" { 64 } else { 1 };
        bench.file(
            "h.toml",
            &format!(
                "source = \"h.cu\"
kernel = \"{kernel}\"
[sizes.full]
n = 1048576
[launch]
grid = [\"n / 256\"]
block = [256]
[[args]]
name = \"a\"
type = \"u8\"
shape = [\"n * {per_thread}\"]
init = \"bits\"
[[args]]
name = \"h\"
type = \"u32\"
shape = [\"n\"]
init = \"zeros\"
output = true
"
            ),
        );
        let given = [
            "h.cu", "--gpu", "h200", "--launch", "h.toml", "--kernel", kernel,
        ];
        let found = bench.document(&[&["explain"], &given[..]].concat());
        let cycles = &found["kernels"][0]["cycles"];
        assert_eq!(cycles["bound"] == "atomics", is_bound, "{kernel}: {cycles}");
        let screen = bench.screen(&[&["opt"], &given[..]].concat());
        let said = "time bound by atomics (predicted";
        assert_eq!(screen.contains(said), is_bound, "{kernel}: {screen}");
    }
}

/// A version that never ends costs as much as one permits, and nothing is said of it then.
#[test]
fn a_check_ends_where_its_fuel_does() {
    let Some(toolkit) = require_toolkit("a_check_ends_where_its_fuel_does") else {
        return;
    };
    let bench = Bench::new(&toolkit);
    let kernel = |body: &str| {
        format!(
            "__global__ void k(int *o, int n) {{ int i = threadIdx.x; {body} o[i] = n; }}
int main() {{ int *o; cudaMalloc(&o, 256); k<<<1, 64>>>(o, 5); }}
"
        )
    };
    bench.file("a.cu", &kernel(""));
    bench.file(
        "b.cu",
        &kernel("volatile int *w = o + i; while (*w != n) ;"),
    );
    let described = bench.run(&["launch", "a.cu", "-o", "a.toml"]);
    assert!(described.status.success());
    let check = ["check", "a.cu", "b.cu", "--run", "--launch", "a.toml"];
    let bounded = [&check[..], &["--fuel", "100000"]].concat();
    assert_eq!(bench.run(&bounded).status.code(), Some(5));
    let screen = bench.screen(&bounded);
    assert!(
        screen.contains("is not at its end after 100000 instructions of warps (--fuel)"),
        "{screen}"
    );
    assert!(!screen.contains("equal"), "{screen}");
    // The original is no judge either.
    let turned = [
        "check", "b.cu", "a.cu", "--run", "--launch", "a.toml", "--fuel", "100000",
    ];
    assert!(
        bench
            .screen(&turned)
            .contains("the original `PTX of b.cu` is not at its end")
    );
    assert_eq!(
        bench
            .run(&["check", "a.cu", "b.cu", "--fuel", "9"])
            .status
            .code(),
        Some(2)
    );
}
