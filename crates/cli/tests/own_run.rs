//! A file's own program runs without a GPU: `explain`, `opt` and `launch` go by what it launches, and by the code alone
//! where it does not build or run.

#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::process::{Command, Output};
use std::time::Instant;

use serde_json::Value;
use warpwright_launch::LaunchFile;
use warpwright_toolkit::testing::require_toolkit;

fn run_in(folder: &Path, args: &[&str]) -> Output {
    let own = std::env::current_exe().unwrap();
    let library = own.with_file_name("libwarpwright_standin.so");
    assert!(library.exists(), "{} is missing", library.display());
    let mut command = Command::new(env!("CARGO_BIN_EXE_warpwright"));
    let command = command.args(args).current_dir(folder);
    command.env("WARPWRIGHT_STANDIN", library).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn document(folder: &Path, args: &[&str]) -> Value {
    let made = run_in(folder, args);
    assert!(made.status.success(), "{}", text(&made.stderr));
    serde_json::from_slice(&made.stdout).unwrap()
}

/// Launched from a template and a closure, by a size that the command line gives; how often a loop turns stands in memory
/// that the host fills, and in a variable. It leaves a file behind and ends well if it finds the one beside its source.
const PROGRAM: &str = r#"#include <cstdio>
#include <cstdlib>
__constant__ int turns[2];
template <int T> __global__ void scale(float *x, const int *often, float by, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) { float a = x[i]; for (int j = 0; j < often[i] * turns[1]; ++j) a = a * by + j; x[i] = a; }
}
__global__ void never(float *x) { x[threadIdx.x] = 1; }
struct Host { int n; template <typename F> void run(F f) { f(n); } };
int main(int argc, char **argv) {
    Host h{argc > 1 ? atoi(argv[1]) : 1000};
    float *x; int *often, two[2] = {0, 2};
    h.run([&](int n) {
        cudaMalloc(&x, n * sizeof(float)); cudaMalloc(&often, n * 4);
        int *host = new int[n]; for (int i = 0; i < n; ++i) host[i] = 8;
        cudaMemcpy(often, host, n * 4, cudaMemcpyHostToDevice);
        cudaMemcpyToSymbol(turns, two, 8);
        scale<128><<<(n + 127) / 128, 128>>>(x, often, 2, n);
    });
    if (FILE *f = fopen("left.txt", "w")) fclose(f);
    return fopen("data.txt", "r") ? cudaDeviceSynchronize() : 3;
}
"#;

/// Launched thrice, with two numbers that stay and one that does not.
const STEADY: &str = r#"__global__ void turn(unsigned *x, unsigned n, unsigned often, unsigned by) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x, a = i;
    if (i < n) { for (unsigned j = 0; j < often; ++j) a = (a ^ by) * 3 + (a >> 7); x[i] = a; }
}
int main() {
    unsigned *x; cudaMalloc(&x, 4000);
    for (unsigned by = 1; by < 4; ++by) turn<<<4, 256>>>(x, 1000, 6, by);
    return cudaDeviceSynchronize();
}
"#;

#[test]
fn what_stays_over_a_programs_launches_is_tried_as_a_constant() {
    if require_toolkit("a version for a program's launches").is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("k.cu"), STEADY).unwrap();
    let recipes = |more: &[&str]| -> Vec<String> {
        let words = ["opt", "k.cu", "--json", "--no-database"];
        let found = document(folder.path(), &[&words[..], more].concat());
        let candidates = found["kernels"][0]["candidates"].as_array().unwrap().iter();
        let recipes = candidates.map(|c| c["recipe"].as_str().unwrap().to_owned());
        recipes
            .filter(|recipe| recipe.starts_with("specialize"))
            .collect()
    };
    assert_eq!(
        recipes(&[]),
        ["specialize(block=256x1x1, grid=4x1x1, params=param1:4=1000&param2:4=6, guarded=yes)"]
    );
    // Of launches that are read in the code nobody knows what stays.
    assert_eq!(recipes(&["--no-run"]), [""; 0]);
}

#[test]
fn a_runs_time_and_memory_are_bounded() {
    if require_toolkit("bounds of a file's own program").is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    std::fs::write(at.join("k.cu"), STEADY).unwrap();
    let words = ["explain", "k.cu", "--json", "--no-run", "--budget", "0.001"];
    let late = document(at, &words)["kernels"][0]["not_counted"].clone();
    assert_eq!(late, "no time was left to run a launch: --budget");
    let large = STEADY.replace(
        "cudaMalloc(&x, 4000)",
        "if (cudaMalloc(&x, 64 << 20)) return 9",
    );
    std::fs::write(at.join("k.cu"), large).unwrap();
    let bounded = ["explain", "k.cu", "--budget", "200", "--run-memory", "32"];
    let said = text(&run_in(at, &bounded).stderr);
    assert!(said.contains("it ended with exit code 9"), "{said}");
    let found = document(at, &["explain", "k.cu", "--json", "--budget", "200"]);
    assert_eq!(found["kernels"][0]["block_source"], "ran");
}

/// What is guessed of a launch takes a while to find: its first guess faults.
#[test]
fn opt_looks_for_a_launch_no_longer_than_its_budget() {
    if require_toolkit("the time in which a launch is looked for").is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let far = "__global__ void far(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i * 5 + 2] + x[i * 5 + 9];
}
void run(float *x, float *y, int n) { far<<<(n + 255) / 256, 256>>>(x, y, n); }
";
    std::fs::write(folder.path().join("k.cu"), far).unwrap();
    let counted = |budget: &str| {
        let words = ["opt", "k.cu", "--no-database", "--budget", budget];
        let made = run_in(folder.path(), &words);
        assert!(made.status.success(), "{}", text(&made.stderr));
        text(&made.stdout).contains("times the sectors needed")
    };
    assert!(counted("900"));
    assert!(!counted("0.0001"));
}

#[test]
fn what_a_program_launches_counts() {
    if require_toolkit("a file's own program").is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    std::fs::write(at.join("k.cu"), PROGRAM).unwrap();
    std::fs::write(at.join("data.txt"), "data").unwrap();
    let seen = ["explain", "k.cu", "--json", "--budget", "200"];
    let of = |found: &Value, name: &str| {
        let kernels = found["kernels"].as_array().unwrap();
        let is_it = |kernel: &&Value| kernel["kernel"].as_str().unwrap().contains(name);
        kernels.iter().find(is_it).unwrap().clone()
    };
    let found = document(at, &seen);
    let scale = of(&found, "scale");
    assert_eq!(
        (&scale["block_source"], &scale["grid"]),
        (&"ran".into(), &8.into())
    );
    assert_eq!(scale["cycles"]["turns"], "counted", "{scale}");
    // All turns of all threads: what the host put into memory and into the variable.
    let at_launch = &scale["accesses"]["counted_at"];
    assert_eq!(at_launch, "the launch that its program made", "{scale}");
    // What it does not launch is not seen.
    assert_eq!(of(&found, "never")["block_source"], "assumed");
    let found = document(at, &[&seen[..], &["--run-args", "'5000'"]].concat());
    assert_eq!(of(&found, "scale")["grid"], 40);
    let found = document(at, &[&seen[..], &["--no-run"]].concat());
    assert_eq!(of(&found, "scale")["block_source"], "seen");
    let chosen = document(at, &["opt", "k.cu", "--json", "--kernel", "scale"]);
    assert_eq!(chosen["kernels"][0]["block_source"], "ran");
    // Its numbers are no guesses.
    let args = ["launch", "k.cu", "--kernel", "scale", "-o", "k.toml"];
    let made = run_in(at, &[&args[..], &["--budget", "900"]].concat());
    let toml = std::fs::read_to_string(at.join("k.toml")).unwrap();
    assert!(made.status.success(), "{}", text(&made.stderr));
    for line in [
        "n = 1000\n",
        "grid = [\"ceil_div(n, 128)\"]  # seen when its program ran\n",
        "block = [128]  # seen when its program ran\n",
        "shape = [\"n\"]\n",
        "value = 2.0\n",
    ] {
        assert!(toml.contains(line), "{line}: {toml}");
    }
    // What it writes is not here.
    let mut left: Vec<String> = std::fs::read_dir(at)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    left.sort();
    assert_eq!(left, ["data.txt", "k.cu", "k.toml"]);
    // How it ended is said.
    std::fs::remove_file(at.join("data.txt")).unwrap();
    let said = text(&run_in(at, &["explain", "k.cu", "--budget", "200"]).stderr);
    assert!(
        said.contains("ran without a GPU for 1 launch: it ended with exit code 3"),
        "{said}"
    );
}

#[test]
fn what_does_not_build_or_end_is_said() {
    if require_toolkit("programs that do not build or end").is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let kernel = "__global__ void k(float *x) { x[blockIdx.x * blockDim.x + threadIdx.x] = 1; }\n";
    for (main, said, source, most) in [
        (
            "int other();\nint main() { k<<<3, 96>>>(0); return other(); }",
            "its program does not build",
            "seen",
            200,
        ),
        ("void f(float *x) { k<<<3, 96>>>(x); }", "", "seen", 200),
        (
            "int main(int n, char **) { if (n > 5) k<<<3, 96>>>(0); }",
            "its program launches nothing",
            "seen",
            200,
        ),
        (
            "int main(int n, char **) { float *x; cudaMalloc(&x, 4096); k<<<n, 96>>>(x); for (volatile int i = 0; n < 2; ) i = 1; }",
            "it was ended after 9 s (--budget of `explain`, `launch` and `opt` gives it longer)",
            "ran",
            60,
        ),
    ] {
        std::fs::write(at.join("k.cu"), format!("{kernel}{main}")).unwrap();
        let budget = if most == 60 { "12" } else { "200" };
        if most == 60 {
            // Built before, by a run that ends: the budget is for the one that does not.
            let ends = [
                "explain",
                "k.cu",
                "--json",
                "--budget",
                "200",
                "--run-args",
                "end",
            ];
            assert!(run_in(at, &ends).status.success());
        }
        let begin = Instant::now();
        let made = run_in(at, &["explain", "k.cu", "--json", "--budget", budget]);
        let (out, err) = (text(&made.stdout), text(&made.stderr));
        assert!(
            made.status.success() && begin.elapsed().as_secs() < most,
            "{err}"
        );
        let found: Value = serde_json::from_str(&out).unwrap();
        assert_eq!(found["kernels"][0]["block_source"], source, "{main}: {err}");
        assert_eq!(found["kernels"][0]["block"], serde_json::json!([96, 1, 1]));
        assert!(
            err.contains(said) && err.is_empty() == said.is_empty(),
            "{err}"
        );
    }
}

/// Nobody asks for what is in it, and a program with it ends at once.
const OTHER: &str = "#include <unistd.h>\nstruct Ends { Ends() { _exit(9); } } ends;\nint another() { return 2; }\n";

#[test]
fn a_program_of_several_files_is_built_of_them() {
    if require_toolkit("a program of several files").is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    for (name, text) in [
        (
            "k.cuh",
            "__global__ void k(float *x) { x[threadIdx.x] = 1; }\n",
        ),
        (
            "k.cu",
            "#include \"k.cuh\"\nextern \"C\" void go(float *x, int n) { k<<<n, 64>>>(x); }\n",
        ),
        // Of something else: one does not compile, the other does.
        (
            "old.cpp",
            "#include \"gone.h\"\nint other() { return 1; }\n",
        ),
        ("other.cpp", OTHER),
        (
            "get.cpp",
            "#include <cuda_runtime.h>\nextern \"C\" float *get(int n) { float *x; cudaMalloc((void **)&x, n); return x; }\n",
        ),
        (
            "main.c",
            "float *get(int n);\nvoid go(float *x, int n);\nint main(int n, char **v) { go(get(256), n + 4); return 0; }\n",
        ),
    ] {
        std::fs::write(at.join(name), text).unwrap();
    }
    let args = [
        "explain",
        "k.cu",
        "--json",
        "--budget",
        "200",
        "--run-args",
        "1 2",
    ];
    let found = document(at, &args);
    let kernel = &found["kernels"][0];
    assert_eq!(
        (&kernel["block_source"], &kernel["grid"]),
        (&"ran".into(), &7.into())
    );
}

/// Files below a folder, with their sizes.
fn files(folder: &Path) -> Vec<(String, u64)> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            match entry.metadata().unwrap() {
                meta if meta.is_dir() => folders.push(entry.path()),
                meta => found.push((entry.path().display().to_string(), meta.len())),
            }
        }
    }
    found.sort();
    found
}

/// Neither beside the source, nor at home, nor among temporary files, what the program writes included.
#[test]
fn nothing_is_written_outside_of_the_cache() {
    if require_toolkit("what a run writes").is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    for name in ["source", "home", "temporary"] {
        std::fs::create_dir(at.join(name)).unwrap();
    }
    std::fs::write(at.join("source/k.cu"), PROGRAM).unwrap();
    std::fs::write(at.join("source/data.txt"), "data").unwrap();
    let cache = warpwright_toolkit::cache_dir().unwrap();
    let before = files(at);
    let library = std::env::current_exe().unwrap();
    let library = library.with_file_name("libwarpwright_standin.so");
    for args in [
        &["explain", "k.cu", "--budget", "200"][..],
        &["opt", "k.cu", "--kernel", "scale", "--budget", "0.1"],
        &["launch", "k.cu", "--kernel", "scale", "--budget", "200"],
        &["trace", "--no-gpu", "k.cu"],
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_warpwright"));
        command.args(args).current_dir(at.join("source"));
        command
            .env("HOME", at.join("home"))
            .env("TMPDIR", at.join("temporary"));
        command
            .env("WARPWRIGHT_CACHE", &cache)
            .env("WARPWRIGHT_STANDIN", &library);
        let made = command.env_remove("XDG_CACHE_HOME").output().unwrap();
        let said = text(&made.stderr);
        // The traced program runs where it is started, and leaves its file there.
        let left = at.join("source/left.txt");
        let is_traced = args[0] == "trace";
        assert_eq!(left.exists(), is_traced, "{args:?}: {said}");
        let _ = std::fs::remove_file(left);
        assert_eq!(files(at), before, "{args:?}: {said}");
    }
}

/// A trace of several kernels says of each how it was launched: of files that are no program by themselves, too.
#[test]
fn a_trace_of_several_kernels_counts_for_all() {
    if require_toolkit("a trace of several kernels").is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let kernels = "__global__ void one(float *x) { x[threadIdx.x] = 1; }\n__global__ void two(float *x) { x[threadIdx.x] += 1; }\n";
    std::fs::write(at.join("kernels.cuh"), kernels).unwrap();
    let main = "#include \"kernels.cuh\"\nint main() { float *x; cudaMalloc(&x, 1024); one<<<5, 32>>>(x); two<<<6, 64>>>(x); return cudaDeviceSynchronize(); }\n";
    std::fs::write(at.join("main.cu"), main).unwrap();
    let traced = run_in(at, &["trace", "--no-gpu", "-o", "T.json", "--", "main.cu"]);
    assert!(traced.status.success(), "{}", text(&traced.stderr));
    // It has the kernels alone.
    std::fs::write(at.join("k.cu"), kernels).unwrap();
    std::fs::remove_file(at.join("main.cu")).unwrap();
    for command in ["explain", "opt"] {
        let found = document(at, &[command, "k.cu", "--json", "--trace", "T.json"]);
        let kernels = found["kernels"].as_array().unwrap();
        let mut all: Vec<_> = kernels
            .iter()
            .map(|kernel| (kernel["block_source"].clone(), kernel["grid"].clone()))
            .collect();
        all.sort_by_key(|(_, grid)| grid.as_u64());
        assert_eq!(all, [("ran".into(), 5.into()), ("ran".into(), 6.into())]);
    }
    // What works on one kernel has to be told which.
    let bug = run_in(at, &["bug", "k.cu", "--trace", "T.json", "-o", "bug.txt"]);
    let said = text(&bug.stderr);
    assert!(said.contains("choose one with --kernel"), "{said}");
}

/// Kernels whose heads are outside the subset of CUDA C that is understood, are made by macros, or take what only the
/// compiler lays out.
const STRANGE: &str = r#"
#define KERNEL(name) __global__ void name
#define NAME(a) a##_kernel
#define RUN(k, g, b, ...) k<<<g, b>>>(__VA_ARGS__)
#define N 64
struct P { float x, y; int id; };
struct __align__(16) V { float x, y, z; };
struct F { int n[3]; float w; };
constexpr int power(int e) { return e ? 2 * power(e - 1) : 1; }
#define I blockIdx.x * blockDim.x + threadIdx.x
__global__ void waits(volatile int *flag, volatile float *x, int n) { int i = I; if (i < n) { x[i] = x[i] + 1; flag[0] = 1; } }
__global__ void points(struct P *p, const struct P *q, int n) { int i = I; if (i < n) { p[i].x += q[i].y; p[i].id = i; } }
__global__ void rows(float (*a)[N], const float b[][N], int n) { int i = I; if (i < n) for (int j = 0; j < N; ++j) a[i][j] += b[i][j]; }
__global__ void aligned(V *p, V v, F f, F *g, int n) { int i = I; if (i < n) { p[i].x += v.y * f.w; g[i].n[1] = f.n[2]; } }
KERNEL(one)(float *x, int n) { int i = I; if (i < n) x[i] = i; }
__global__ void NAME(two)(float *x, int n) { int i = I; if (i < n) x[i] = 2 * i; }
int main(int argc, char **argv) {
    int n = argc > 1 ? 3000 : 4096; int *f; float *x, (*a)[N], (*b)[N]; P *p, *q; V *v; F *g;
    cudaMalloc(&f, 4); cudaMalloc(&x, n * 4); cudaMalloc(&a, n * N * 4); cudaMalloc(&b, n * sizeof(*b));
    cudaMalloc(&p, n * sizeof(P)); cudaMalloc(&q, n * sizeof(P)); cudaMalloc(&v, n * sizeof(V)); cudaMalloc(&g, n * sizeof(F));
    waits<<<n / 256, 256>>>(f, x, n); points<<<n / 128, 128>>>(p, q, n); rows<<<n / 64, 64>>>(a, b, n);
    aligned<<<n / 256, 256>>>(v, V{1, 2, 3}, F{{1, 2, 3}, 4}, g, n);
    RUN(one, (power(10) + 127) / 128, 128, x, power(10)); NAME(two)<<<(n + 63) / 64, 64>>>(x, n);
    return cudaDeviceSynchronize();
}
"#;

#[test]
fn strange_heads_have_descriptions() {
    if require_toolkit("kernels whose heads are not understood").is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    // A byte-order mark, and a letter of Latin-1.
    let mut bytes = b"\xef\xbb\xbf// Gr\xf6\xdfe\n".to_vec();
    bytes.extend(STRANGE.as_bytes());
    std::fs::write(at.join("k.cu"), bytes).unwrap();
    let made = run_in(at, &["launch", "k.cu", "-o", "all/", "--budget", "300"]);
    assert!(
        made.status.success(),
        "{}{}",
        text(&made.stdout),
        text(&made.stderr)
    );
    for (kernel, grid, sizes) in [
        ("waits", 16, &[4, 4 * 4096][..]),
        ("points", 32, &[12 * 4096, 12 * 4096]),
        ("rows", 64, &[4096 * 64 * 4, 4096 * 64 * 4]),
        ("aligned", 16, &[16 * 4096, 16 * 4096]),
        ("one", 8, &[4 * 4096]),
        ("two_kernel", 64, &[4 * 4096]),
    ] {
        let path = at.join(format!("all/{kernel}.toml"));
        let toml = std::fs::read_to_string(&path).unwrap();
        let launch = LaunchFile::parse(&toml, kernel)
            .unwrap()
            .resolve("full", &[])
            .unwrap();
        assert_eq!(launch.grid_blocks(), grid, "{toml}");
        let found: Vec<usize> = launch.memory.iter().map(|buffer| buffer.size()).collect();
        assert_eq!(found, sizes, "{toml}");
        // It is given what the program gave.
        if kernel == "aligned" {
            let bytes: Vec<u8> = [1.0_f32, 2.0, 3.0]
                .iter()
                .flat_map(|n| n.to_le_bytes())
                .collect();
            assert_eq!(launch.args[1].bytes[..12], bytes, "{toml}");
            let n = [1, 2, 3_i32].iter().flat_map(|n| n.to_le_bytes());
            let bytes: Vec<u8> = n.chain(4_f32.to_le_bytes()).collect();
            assert_eq!(launch.args[2].bytes, bytes, "{toml}");
        }
    }
}

#[test]
fn the_exit_code_is_that_of_the_worst() {
    if require_toolkit("exit codes of launch").is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let source = "__global__ void fine(float *x) { x[threadIdx.x] = 1; }\n\
        extern \"C\" __global__ void outside(cudaTextureObject_t t, float *x) { x[0] = tex2D<float>(t, 0, 0); }\n\
        __global__ void nothing(const float *a, const int *m, float *x) { x[threadIdx.x] = m[threadIdx.x] > 1 << 30 ? a[threadIdx.x] : 0; }\n\
        __global__ void wild(float *x) { if (x) *(volatile float *)64 = 1; }\n";
    std::fs::write(at.join("k.cu"), source).unwrap();
    for (kernel, code, said) in [
        ("fine", 0, "guess"),
        ("nothing", 0, "outputs become zero"),
        ("wild", 5, "FAULTS"),
        ("outside", 1, "left out"),
        ("*", 1, "left out"),
    ] {
        let args = ["launch", "k.cu", "--kernel", kernel, "-o", "all/"];
        let made = run_in(at, &[&args[..], &["--budget", "900"]].concat());
        let out = text(&made.stdout);
        assert_eq!(made.status.code(), Some(code), "{kernel}: {out}");
        assert!(out.contains(said), "{kernel}: {out}");
    }
}

/// A table of which each byte was set, in which the kernel looks for a free place.
const TABLE: &str = r#"__global__ void build(const unsigned *keys, int n, unsigned *table, unsigned *at, unsigned mask) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    for (unsigned s = keys[i] & mask;; s = (s + 1) & mask) {
        unsigned old = atomicCAS(&table[s], 0xffffffffu, keys[i]);
        if (old == 0xffffffffu || old == keys[i]) { at[i] = s + 1; return; }
    }
}
int main() {
    int n = 4096, cap = 16384; unsigned *keys, *table, *at, *host = new unsigned[n];
    for (int i = 0; i < n; ++i) host[i] = i * 2654435761u;
    cudaMalloc(&keys, n * 4); cudaMalloc(&table, cap * 4); cudaMalloc(&at, n * 4);
    cudaMemset(table, 0xff, cap * 4);
    cudaMemcpy(keys, host, n * 4, cudaMemcpyHostToDevice);
    build<<<n / 256, 256>>>(keys, n, table, at, cap - 1);
    return cudaDeviceSynchronize();
}
"#;

#[test]
fn memory_begins_as_the_program_filled_it() {
    if require_toolkit("descriptions of filled memory").is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("k.cu"), TABLE).unwrap();
    let launch = [
        "launch", "k.cu", "--budget", "900", "-o", "k.toml", "--force",
    ];
    let made = run_in(folder.path(), &launch);
    assert!(made.status.success(), "{}", text(&made.stderr));
    let toml = std::fs::read_to_string(folder.path().join("k.toml")).unwrap();
    let table = toml.split("name = \"table\"").nth(1).unwrap();
    let init = table.lines().find(|line| line.starts_with("init")).unwrap();
    assert_eq!(
        init, "init = { kind = \"fill\", value = 4294967295 }",
        "{toml}"
    );
    assert!(
        toml.lines()
            .next()
            .unwrap()
            .contains("the emulator runs it"),
        "{toml}"
    );
    // With anything else in it there is no free place, however small it is.
    let endless = TABLE.replace("cudaMemset(table, 0xff, cap * 4);", "");
    let endless = endless.replace("old == 0xffffffffu || old == keys[i]", "old == 0xffffffffu");
    let endless = endless.replace("& mask", "% n");
    std::fs::write(folder.path().join("k.cu"), endless).unwrap();
    let said = |_| {
        let args = [&launch[..], &["--no-run"]].concat();
        let made = run_in(folder.path(), &args);
        assert!(made.status.success(), "{}", text(&made.stderr));
        text(&made.stdout)
    };
    let all: Vec<String> = (0..2).map(said).collect();
    assert!(all[0].contains("and so does a smaller one"), "{}", all[0]);
    assert!(!all[0].contains("make it smaller"), "{}", all[0]);
    assert_eq!(all[0], all[1]);
}

/// What the document says to write makes the promised code where the build takes fewer registers than its limit.
#[test]
fn the_limit_in_an_edit_is_that_of_the_build() {
    let Some(toolkit) = require_toolkit("the_limit_in_an_edit_is_that_of_the_build") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let source = r#"__global__ void nbody(const float4 *pos, float4 *acc, int n, float soft) {
        extern __shared__ float4 tile[]; int i = blockIdx.x * blockDim.x + threadIdx.x;
        float4 me = pos[i]; float ax = 0, ay = 0, az = 0;
        for (int t = 0; t < n; t += blockDim.x) {
            tile[threadIdx.x] = pos[t + threadIdx.x]; __syncthreads();
            #pragma unroll 8
            for (int j = 0; j < blockDim.x; j++) {
                float4 p = tile[j]; float dx = p.x - me.x, dy = p.y - me.y, dz = p.z - me.z;
                float ir = rsqrtf(dx * dx + dy * dy + dz * dz + soft), f = p.w * ir * ir * ir;
                ax += f * dx; ay += f * dy; az += f * dz; }
            __syncthreads(); }
        acc[i] = make_float4(ax, ay, az, 0); }
    int main() { int n = 4096; float4 *p, *a; cudaMalloc(&p, n * 16); cudaMalloc(&a, n * 16);
        nbody<<<n / 128, 128, 2048>>>(p, a, n, 0.01f); return cudaDeviceSynchronize(); }
    "#;
    std::fs::write(at("k.cu"), source).unwrap();
    let opt = [
        "opt",
        "k.cu",
        "-o",
        "chosen.cubin",
        "--gpu",
        "h200",
        "--no-database",
        "--json",
    ];
    let found = document(folder.path(), &opt);
    let kernel = &found["kernels"][0];
    let chosen = &kernel["candidates"][kernel["chosen"].as_u64().unwrap() as usize];
    let edit = found["edits"][0]["edits"][0]["text"].as_str().unwrap();
    let limit = edit.split("__maxnreg__(").nth(1).unwrap();
    let limit = limit.split(')').next().unwrap();
    let taken = chosen["resources"]["registers"].as_u64().unwrap();
    assert!(taken < limit.parse().unwrap(), "{taken} {edit}");
    std::fs::write(
        at("said.cu"),
        source.replace("void nbody(", &format!("void __maxnreg__({limit}) nbody(")),
    )
    .unwrap();
    let mut command = Command::new(&toolkit.nvcc().unwrap().tool().path);
    command.args([
        "-arch=sm_90",
        "-lineinfo",
        "-cubin",
        "said.cu",
        "-o",
        "said.cubin",
    ]);
    let built = command.current_dir(folder.path()).output().unwrap();
    assert!(built.status.success(), "{built:?}");
    let code = |file: &str| {
        let cubin = warpwright_sass::Cubin::parse(&std::fs::read(at(file)).unwrap()).unwrap();
        cubin
            .kernel(kernel["name"].as_str().unwrap())
            .unwrap()
            .code
            .clone()
    };
    assert!(code("chosen.cubin") == code("said.cubin"), "{edit}");
}

/// One kernel that runs; one on a path that is not taken, whose grid is the GPU's and whose memory nobody knows; one that
/// is launched by what nobody calls; one that no code names.
const PATHS: &str = r#"#include <cstdlib>
__global__ void usual(float *x, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) x[i] = 1; }
__global__ void other(float *x, const int *of, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) x[of[i]] += 2;
}
__global__ void dead(float *x) { x[threadIdx.x] = 3; }
__global__ void unnamed(float *x) { x[threadIdx.x] = 4; }
void old(float *x) { dead<<<8, 64>>>(x); }
int main(int argc, char **argv) {
    float *x; int *of, n = 1000;
    if (argc > 1) n = atoi(argv[1]);
    cudaMalloc(&x, n * sizeof(float));
    cudaDeviceProp its; cudaGetDeviceProperties(&its, 0);
    if (argc > 1) {
        cudaMalloc(&of, n * sizeof(int)); cudaMemset(of, 0, n * sizeof(int));
        other<<<its.multiProcessorCount * 2, 128>>>(x, of, n);
    } else
        usual<<<(n + 255) / 256, 256>>>(x, n);
    return cudaDeviceSynchronize();
}
"#;

/// Which kernel it launches stands behind an option; another one behind a flag, and one behind what nobody can guess.
const CHOICE: &str = r#"#include <cstdlib>
#include <cstring>
__global__ void usual(float *x) { x[threadIdx.x] = 1; }
__global__ void second(float *x) { x[threadIdx.x] = 2; }
__global__ void third(float *x) { x[threadIdx.x] = 3; }
__global__ void flagged(float *x) { x[threadIdx.x] = 4; }
__global__ void named(float *x) { x[threadIdx.x] = 5; }
int main(int argc, char **argv) {
    float *x; cudaMalloc(&x, 4096);
    int which = 0;
    for (int i = 1; i < argc; ++i) {
        if (!strcmp(argv[i], "--flag")) flagged<<<5, 32>>>(x);
        if (!strcmp(argv[i], "-k")) which = atoi(argv[++i]);
        if (!strcmp(argv[i], "-o")) { const char *name = argv[++i]; if (*name == 'z') named<<<1, 32>>>(x); }
    }
    switch (which) {
        case 1: second<<<2, 64>>>(x); break;
        case 2: third<<<3, 128>>>(x); break;
        default: usual<<<4, 256>>>(x);
    }
    return cudaDeviceSynchronize();
}
"#;

#[test]
fn options_that_a_program_names_are_tried_and_said() {
    if require_toolkit("other arguments of a file's own program").is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    std::fs::write(at.join("k.cu"), CHOICE).unwrap();
    let words = ["explain", "k.cu", "--json", "--budget", "200"];
    let found = |more: &[&str]| -> Vec<(String, Value, Value)> {
        let found = document(at, &[&words[..], more].concat());
        let kernels = found["kernels"].as_array().unwrap().iter();
        let ran = kernels.filter(|k| k["block_source"] == "ran");
        let mut all: Vec<_> = ran
            .map(|k| {
                let name = k["kernel"].as_str().unwrap().to_owned();
                (name, k["grid"].clone(), k["run_args"].clone())
            })
            .collect();
        all.sort_by(|a, b| a.0.cmp(&b.0));
        all
    };
    let row = |name: &str, grid: u64, args: Value| (name.to_owned(), Value::from(grid), args);
    assert_eq!(
        found(&[]),
        [
            row("_Z5thirdPf", 3, "-k 2".into()),
            row("_Z5usualPf", 4, Value::Null),
            row("_Z6secondPf", 2, "-k 1".into()),
            row("_Z7flaggedPf", 5, "--flag".into()),
        ]
    );
    // What is stated is what it is given.
    assert_eq!(
        found(&["--run-args", "-k 2"]),
        [row("_Z5thirdPf", 3, Value::Null)]
    );
    let made = run_in(at, &["explain", "k.cu", "--budget", "200"]);
    let (screen, said) = (text(&made.stdout), text(&made.stderr));
    let with = "its program launches it with `-k 1`, and not without arguments";
    assert!(screen.contains(with), "{screen}");
    assert!(said.contains("-k 1, -k 2, --flag"), "{said}");
    let made = run_in(
        at,
        &["launch", "k.cu", "--kernel", "second", "--budget", "200"],
    );
    let (toml, words) = (text(&made.stdout), "# its program launches it with `-k 1`");
    assert!(
        toml.contains(words) && toml.contains("grid = [2]"),
        "{toml}"
    );
    let opt = ["opt", "k.cu", "--json", "--no-database", "--budget", "1"];
    let opt = document(at, &opt);
    assert!(opt.to_string().contains(with), "{opt}");
}

#[test]
fn what_a_program_does_not_launch_is_said_by_name() {
    if require_toolkit("kernels that are not launched").is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    std::fs::write(at.join("k.cu"), PATHS).unwrap();
    let words = [
        "explain", "k.cu", "--json", "--gpu", "h200", "--budget", "200",
    ];
    let found = |more: &[&str]| -> Vec<(String, Value, Value, Value, Value)> {
        let found = document(at, &[&words[..], more].concat());
        let kernels = found["kernels"].as_array().unwrap().iter();
        let mut all: Vec<_> = kernels
            .map(|k| {
                let field = |name: &str| k.get(name).cloned().unwrap_or(Value::Null);
                let name = k["kernel"].as_str().unwrap();
                let name = ["usual", "other", "dead", "unnamed"]
                    .into_iter()
                    .find(|n| name.contains(n));
                (
                    name.unwrap().to_owned(),
                    field("block_source"),
                    field("grid"),
                    field("guessed"),
                    field("not_launched"),
                )
            })
            .collect();
        all.sort_by(|a, b| a.0.cmp(&b.0));
        all
    };
    let row = |name: &str, source: &str, grid: Value, why: Value| {
        (name.to_owned(), Value::from(source), grid, Value::Null, why)
    };
    let dead = "no code of the program of `k.cu` launches it: `old`, which would, is not called from `main`";
    let unnamed = "no code of the program of `k.cu` launches it";
    let path = "its program, as it ran, does not launch it (--run-args gives other arguments)";
    assert_eq!(
        found(&[]),
        [
            row("dead", "seen", 8.into(), dead.into()),
            row("other", "seen", 264.into(), path.into()),
            row("unnamed", "assumed", Value::Null, unnamed.into()),
            row("usual", "ran", 4.into(), Value::Null),
        ]
    );
    // The size that a run without arguments has is none that the code is sure of.
    let usual = row("usual", "seen", Value::Null, path.into());
    assert_eq!(
        found(&["--run-args", "500"])[1..],
        [
            row("other", "ran", 264.into(), Value::Null),
            row("unnamed", "assumed", Value::Null, unnamed.into()),
            usual,
        ]
    );
    let screen = text(&run_in(at, &["explain", "k.cu", "--gpu", "h200", "--budget", "200"]).stdout);
    assert!(screen.contains("launches it: `old`, which"), "{screen}");
    // Of a program that ends before it launches anything, too.
    let none = PATHS.replace("float *x; int *of", "exit(2); float *x; int *of");
    std::fs::write(at.join("none.cu"), none).unwrap();
    let none = document(at, &["explain", "none.cu", "--json", "--budget", "200"]);
    let why = none["kernels"].as_array().unwrap().iter();
    let why: Vec<String> = why.map(|k| k["not_launched"].to_string()).collect();
    assert_eq!(
        why.iter().filter(|why| why.contains(path)).count(),
        2,
        "{why:?}"
    );
    assert_eq!(
        why.iter().filter(|why| why.contains("no code")).count(),
        2,
        "{why:?}"
    );
    let opt = document(
        at,
        &["opt", "k.cu", "--json", "--no-database", "--budget", "1"],
    );
    let notes: Vec<String> = opt["kernels"]
        .as_array()
        .unwrap()
        .iter()
        .map(|k| k["notes"].to_string())
        .collect();
    for why in [dead, unnamed, path] {
        assert!(
            notes.iter().any(|notes| notes.contains(why)),
            "{why}: {notes:?}"
        );
    }
}

/// Bounds are no launch, local arrays are no spills, and a launch of few blocks fills no SM.
#[test]
fn what_a_program_launches_is_told_from_what_its_code_allows() {
    if require_toolkit("what a program launches").is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let kernels = "__global__ void __launch_bounds__(1024) bounded(float *x, const int *y) {
    x[blockIdx.x * blockDim.x + threadIdx.x] = 1;
}
__global__ void array(float *x, const int *y) {
    int kept[32];
    for (int k = 0; k < 32; k++) kept[k] = k;
    for (int k = 0; k < 8; k++) { int a = y[k] & 31, b = y[k + 8] & 31; kept[a] += kept[b]; }
    x[blockIdx.x * blockDim.x + threadIdx.x] = kept[y[16] & 31];
}
int main() {
    float *x; int *y; cudaMalloc(&x, 133 * 1024); cudaMalloc(&y, 68); cudaMemset(y, 1, 68);
    bounded<<<133, 256>>>(x, y); array<<<133, 256>>>(x, y);
    return cudaDeviceSynchronize();
}
";
    std::fs::write(at.join("k.cu"), kernels).unwrap();
    let explain = ["explain", "k.cu", "--gpu", "h200", "--budget", "200"];
    let found = document(at, &[&explain[..], &["--json"]].concat());
    let of = |name: &str| {
        let mut all = found["kernels"].as_array().unwrap().iter();
        let is_it = |k: &&Value| k["kernel"].as_str().unwrap().contains(name);
        all.find(is_it).unwrap().clone()
    };
    let bounded = of("bounded");
    assert_eq!(
        bounded["block"],
        serde_json::json!([256, 1, 1]),
        "{bounded}"
    );
    assert_eq!(bounded["block_source"], "ran");
    let screen = text(&run_in(at, &explain).stdout);
    let said = "8 blocks, 64 of 64 warps (100.0%), limited by warps; this launch has at most 2";
    assert!(screen.contains(said), "{screen}");
    let traced = document(at, &["trace", "--no-gpu", "--json", "k.cu"]);
    let launches = traced["launches"].as_array().unwrap();
    let of = |name: &str| {
        let is_it = |l: &&Value| l["name"].as_str().unwrap().contains(name);
        launches.iter().find(is_it).unwrap()
    };
    let (bounded, array) = (of("bounded"), of("array"));
    assert_eq!(bounded["spill_bytes"], 0, "{bounded}");
    assert_eq!(
        bounded["hint"],
        "at most 2 blocks for an SM, which has room for 8"
    );
    assert_eq!(bounded["occupancy"], 25.0);
    assert_eq!(array["spill_bytes"], Value::Null, "{array}");
    assert_eq!(array["stack_bytes"], 128);
    assert_eq!(
        array["hint"],
        "128 bytes of stack: local arrays, or spills as well"
    );
    // What nvcc says is of the file that was given.
    std::fs::write(at.join("k.cu"), "int main() { return 0 }\n").unwrap();
    let said = text(&run_in(at, &["trace", "--no-gpu", "k.cu"]).stderr);
    assert!(
        said.contains("k.cu:1") && !said.contains("program.cu"),
        "{said}"
    );
}

/// A program beside a file that does not use it is somebody else's: it does not run.
#[test]
fn a_program_that_does_not_use_the_file_does_not_run() {
    if require_toolkit("programs of others").is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let kernel = "__global__ void k(float *x, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) x[i] *= 2; }\n";
    std::fs::write(at.join("k.cu"), kernel).unwrap();
    let trace = at.join("ran");
    for (main, runs) in [
        (
            "int main() { RAN; for (int k = 0; k < 3; k++) RAN; }",
            false,
        ),
        (
            "__global__ void k(float *x, int n);\nint main() { RAN; k<<<3, 96>>>(0, 0); }",
            true,
        ),
        (
            "#include \"k.cu\"\nint main() { RAN; k<<<3, 96>>>(0, 0); }",
            true,
        ),
    ] {
        let _ = std::fs::remove_file(&trace);
        let write = format!("fclose(fopen(\"{}\", \"w\"))", trace.display());
        let text_of = format!("#include <cstdio>\n{}\n", main.replace("RAN", &write));
        std::fs::write(at.join("aaa.cu"), text_of).unwrap();
        let made = run_in(at, &["explain", "k.cu", "--json", "--budget", "200"]);
        let err = text(&made.stderr);
        assert!(made.status.success(), "{err}");
        assert_eq!(trace.exists(), runs, "{main}: {err}");
        assert_eq!(
            err.contains("`aaa.cu` ran without a GPU"),
            runs,
            "{main}: {err}"
        );
    }
}

/// The text presumes blocks of 32×32 threads, and the program launches 32×8.
const SHORT: &str = r#"__global__ void turned(const float *in, float *out, int n) {
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8) out[x * n + y + j] = in[(y + j) * n + x];
}
int main() {
    float *a, *b;
    int n = 512;
    cudaMalloc(&a, n * n * 4);
    cudaMalloc(&b, n * n * 4);
    cudaMemset(a, 0, n * n * 4);
    turned<<<dim3(16, 16), dim3(32, 8)>>>(a, b, n);
    return cudaDeviceSynchronize();
}
"#;

#[test]
fn nothing_is_promised_for_a_launch_that_a_rewrite_leaves() {
    if require_toolkit("a launch that a rewrite does not take").is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    std::fs::write(at.join("k.cu"), SHORT).unwrap();
    let args = ["--gpu", "h200", "--budget", "200"];
    let opt = run_in(at, &[&["opt", "k.cu", "-o", "out.cu"], &args[..]].concat());
    let said = text(&opt.stdout);
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    let why =
        "the launch that its program made has 8 threads in a block along y, a rewrite takes 32";
    assert!(said.contains(why), "{said}{}", text(&opt.stderr));
    assert!(!said.contains("predicted"), "{said}");
    let found = document(at, &[&["explain", "k.cu", "--json"], &args[..]].concat());
    assert_eq!(found["rewrites"], Value::Null);
    // 24 of its 256 blocks were counted.
    let counted = &found["kernels"][0]["accesses"]["counted_at"];
    let sample = "the launch that its program made, in 24 of its 256 blocks";
    assert_eq!(counted, sample, "{found}");
}
