//! Kernels are called as their source calls them, wherever one is named; what a file launches is read from it; a failure
//! has its place in the source, with the path as it was given.

#![allow(clippy::unwrap_used)]

use std::process::{Command, Output};

use serde_json::Value;
use warpwright_toolkit::testing::require_toolkit;

/// Overloads, instances, a namespace, and a kernel of the tile of a matrix.
const MANY: &str = r#"
struct Params { float scale; int steps; double shift; };
struct Cell { double value; int mark; };
template <typename T, int B> __global__ void sum(const T *x, T *out, int n) {
  __shared__ T s[B];
  s[threadIdx.x] = blockIdx.x * B + threadIdx.x < n ? x[blockIdx.x * B + threadIdx.x] : T(0);
  __syncthreads();
  if (threadIdx.x == 0) { T t = 0; for (int i = 0; i < B; i++) t += s[i]; out[blockIdx.x] = t; }
}
__global__ void scale(float *x, float f, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) x[i] *= f; }
__global__ void scale(double *x, double f, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) x[i] *= f; }
namespace stats {
__global__ void mean(const float4 *x, float3 *y, Params p, Cell *cells, int2 from, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) { float4 v = x[i]; y[i] = make_float3(v.x * p.scale, v.y + from.x, v.z); cells[i].value = v.w + p.shift; }
}
}
__global__ void add(const float *a, float *b, int n) {
  int i = blockIdx.y * blockDim.y + threadIdx.y, j = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && j < n) b[i * n + j] += a[i * n + j];
}
constexpr int TILE = 16;
void host(float *a, float *b, double *d, int n) {
  dim3 block(TILE, TILE), grid((n + TILE - 1) / TILE, (n + TILE - 1) / TILE);
  add<<<grid, block>>>(a, b, n);
  sum<float, 256><<<n / 256, 256>>>(a, b, n);
  sum<double, 128><<<n / 128, 128>>>(d, d, n);
}
"#;

/// Dynamic shared memory that limits the blocks.
const DYNAMIC: &str = r#"
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
    fn new(files: &[(&str, &str)]) -> Option<Bench> {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("in")).unwrap();
        for (name, text) in files {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        require_toolkit("kernels by name").map(|_| Bench(folder))
    }

    fn run(&self, args: &[&str]) -> Output {
        let program = env!("CARGO_BIN_EXE_warpwright");
        let mut command = Command::new(program);
        command.args(args).current_dir(self.0.path());
        command.env("WARPWRIGHT_STANDIN", "programs do not run here");
        command.output().unwrap()
    }

    /// What a command says that ends with this code: stdout, then stderr.
    #[track_caller]
    fn said(&self, code: i32, args: &[&str]) -> String {
        let output = self.run(args);
        let [out, err] = [&output.stdout, &output.stderr].map(|t| String::from_utf8_lossy(t));
        assert_eq!(output.status.code(), Some(code), "{args:?}: {out}{err}");
        format!("{out}{err}")
    }

    fn kernels(&self, args: &[&str]) -> Vec<Value> {
        let output = self.run(&[args, &["--json"]].concat());
        let document: Value = serde_json::from_slice(&output.stdout).unwrap();
        document["kernels"].as_array().unwrap().clone()
    }

    fn text(&self, name: &str) -> String {
        std::fs::read_to_string(self.0.path().join(name)).unwrap()
    }
}

#[test]
fn kernels_are_named_as_in_the_source() {
    let Some(bench) = Bench::new(&[("many.cu", MANY)]) else {
        return;
    };
    for (pattern, kernels) in [
        ("sum<double,128>", 1),
        ("sum< float , 256 >", 1),
        ("scale", 2),
        ("scale(float *,float,int)", 1),
        ("mean", 1),
        ("stats::*", 1),
        ("sum<float, 256>(float const*, float*, int)", 1),
        ("void sum<float,256>(float const *, float *, int)", 1),
        ("mean(float4 const*, float3*, Params, Cell*, int2, int)", 1),
    ] {
        let found = bench.kernels(&["explain", "many.cu", "--kernel", pattern]);
        assert_eq!(found.len(), kernels, "{pattern}");
    }
    // The same where a block is stated; none is a mistake that lists the names.
    let lists = |said: &str| {
        assert!(said.contains("scale(float*, float, int)"), "{said}");
        assert!(!said.contains("_Z"), "{said}");
    };
    for command in ["opt", "explain"] {
        let said = bench.said(1, &[command, "many.cu", "--block", "nix=64"]);
        assert!(said.contains("has no kernel `nix`"), "{said}");
        lists(&said);
    }
    let lists_it = bench.said(1, &["opt", "many.cu", "--kernel", "nix"]);
    lists(&lists_it);
    // From source to source.
    let add = [
        "opt",
        "many.cu",
        "-o",
        "out.cu",
        "--kernel",
        "add(const float*,float*,int)",
    ];
    assert!(
        bench
            .run(&["opt", "many.cu", "-o", "out.cu", "--kernel", "nix"])
            .status
            .code()
            == Some(1)
    );
    let said = bench.said(
        0,
        &[&add[..5], &["add(float const*, float*, int)"]].concat(),
    );
    assert!(said.contains("kernel add for"), "{said}");
    let overload = bench.said(1, &[&add[..5], &["scale(float*, float, int)"]].concat());
    assert!(
        overload.contains("several kernels are called `scale`"),
        "{overload}"
    );
}

#[test]
fn launch_descriptions_name_kernels_as_the_source_does() {
    let Some(bench) = Bench::new(&[("many.cu", MANY)]) else {
        return;
    };
    // The right one of overloads, and the launch of the right instance.
    let described = |kernel: &str| {
        bench.said(
            0,
            &["launch", "many.cu", "--kernel", kernel, "-o", "l.toml"],
        );
        bench.text("l.toml")
    };
    let doubles = described("scale(double*,double,int)");
    assert!(
        doubles.contains("type = \"f64\"") && !doubles.contains("f32"),
        "{doubles}"
    );
    let instance = described("sum<double, 128>");
    assert!(
        instance.contains("block = [128]  # the code's launch"),
        "{instance}"
    );
    // Two dimensions are two.
    let add = described("add");
    for line in [
        "grid = [\"ceil_div(n, 16)\", \"ceil_div(n, 16)\"]  # guess",
        "block = [16, 16]  # the code's launch",
        "shape = [\"n\", \"n\"]  # guess",
    ] {
        assert!(add.contains(line), "{add}");
    }
    bench.said(
        0,
        &["run", "many.cu", "--launch", "l.toml", "--size", "small"],
    );
    // Vectors and structures, by value and pointed to; the emulator takes them.
    let mean = described("mean");
    for line in [
        "shape = [\"n\", 4]  # guess",
        "shape = [\"n\", 3]  # guess",
        "{ name = \"scale\", type = \"f32\", value = 1.0 },  # guess",
        "shape = [\"n\", 16]  # guess",
        "value = [\"n\", \"n\"]  # guess\nalign = 8",
    ] {
        assert!(mean.contains(line), "{line}: {mean}");
    }
    let run = ["run", "many.cu", "--launch", "l.toml", "--size", "small"];
    bench.said(0, &run);
    let named = |kernel: &str| {
        let start = mean.find("kernel = ").unwrap();
        let end = start + mean[start..].find('\n').unwrap();
        let text = format!("{}kernel = \"{kernel}\"{}", &mean[..start], &mean[end..]);
        std::fs::write(bench.0.path().join("l.toml"), text).unwrap();
    };
    for name in [
        "mean",
        "stats::mean",
        "m?an",
        "stats::mean(float4 const*,float3*,Params,Cell*,int2,int)",
    ] {
        named(name);
        bench.said(0, &run);
        let check = ["check", "many.cu", "many.cu", "--run", "--launch", "l.toml"];
        bench.said(5, &check);
    }
    named("scale");
    let several = bench.said(1, &run);
    assert!(several.contains("are 2 kernels of `many.cu`"), "{several}");
    named("nix");
    for command in [&run[..], &["opt", "many.cu", "--launch", "l.toml"]] {
        let none = bench.said(1, command);
        let none: Vec<&str> = none.split_whitespace().collect();
        let none = none.join(" ");
        assert!(
            none.contains("`nix`, which `many.cu` does not have; it has"),
            "{none}"
        );
    }
}

#[test]
fn the_codes_own_launches_are_seen() {
    let Some(bench) = Bench::new(&[("many.cu", MANY)]) else {
        return;
    };
    for (pattern, block, source) in [
        ("add", [16, 16, 1], "seen"),
        ("sum<float,256>", [256, 1, 1], "seen"),
        ("sum<double,128>", [128, 1, 1], "seen"),
        ("mean", [256, 1, 1], "assumed"),
    ] {
        let found = &bench.kernels(&["explain", "many.cu", "--kernel", pattern])[0];
        assert_eq!(found["block_source"], source, "{pattern}");
        assert_eq!(found["block"], serde_json::json!(block), "{pattern}");
    }
}

#[test]
fn what_is_promised_is_what_the_command_does() {
    let naive = "__global__ void mm(const float *a, const float *b, float *c, int n) {\n\
        int i = blockIdx.y * blockDim.y + threadIdx.y, j = blockIdx.x * blockDim.x + threadIdx.x;\n\
        if (i < n && j < n) { float s = 0; for (int k = 0; k < n; k++) s += a[i * n + k] * b[k * n + j]; c[i * n + j] = s; } }\n";
    let over = "__global__ void scale(float *x, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) x[i] *= 2; }\n\
        __global__ void scale(double *x, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) x[i] *= 2; }\n\
        __global__ void shift(float *x, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) x[i] += 2; }\n";
    let Some(bench) = Bench::new(&[("over.cu", over), ("mm.cu", naive)]) else {
        return;
    };
    let promise = |said: &str| said.replace('\n', " ").contains("writes a tuned kernel");
    // Nothing is promised of kernels that the command leaves alone, and then it says so.
    let said = bench.said(0, &["opt", "over.cu", "--gpu", "h200"]);
    assert!(!promise(&said), "{said}");
    let unchanged = bench.said(0, &["opt", "over.cu", "-o", "out.cu", "--gpu", "h200"]);
    assert_eq!(bench.text("out.cu"), over);
    let line = "wrote out.cu (CUDA C++): the input as it is, nothing was changed";
    assert!(unchanged.lines().any(|l| l == line), "{unchanged}");
    let mm = bench
        .said(0, &["opt", "mm.cu", "--gpu", "h200"])
        .replace('\n', " ");
    assert!(
        promise(&mm) && mm.contains("opt mm.cu -o OUT.cu --gpu h200"),
        "{mm}"
    );
    let changed = bench.said(0, &["opt", "mm.cu", "-o", "out.cu", "--gpu", "h200"]);
    assert_ne!(bench.text("out.cu"), naive);
    assert!(
        changed.lines().any(|l| l == "wrote out.cu (CUDA C++)"),
        "{changed}"
    );
}

#[test]
fn failures_have_their_place_as_it_was_given() {
    let calls = "extern __device__ float other(float);\n__global__ void k(float *x) {\n  x[0] = other(x[0]);\n}\n";
    let typo = "#include \"typo.cuh\"\n__global__ void k(float *x) { x[0] = y; }\n";
    let assembly = "__global__ void k(unsigned *x) {\n  asm volatile(\"bogus.b32 %0, %0;\" : \"+r\"(x[0]));\n}\n";
    let files = [
        ("in/calls.cu", calls),
        ("in/typo.cu", typo),
        ("in/typo.cuh", "int z = w;\n"),
        ("in/asm.cu", assembly),
    ];
    let Some(bench) = Bench::new(&files) else {
        return;
    };
    for (file, places) in [
        (
            "in/typo.cu",
            &["in/typo.cuh(1): error", "in/typo.cu(2): error"][..],
        ),
        ("in/asm.cu", &["in/asm.cu(2): error: inline assembly"]),
        (
            "in/calls.cu",
            &[
                "in/calls.cu:3:10",
                "calls `other(float)`, which it does not define",
                "nvcc -rdc=true",
            ],
        ),
    ] {
        let said = bench.said(1, &["opt", file]);
        let flat = said
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
            .replace(" │ ", " ");
        for place in places {
            assert!(flat.contains(place), "{place}: {said}");
        }
        assert!(!said.contains(&*bench.0.path().to_string_lossy()), "{said}");
        // A report about it says the same, of files only their names.
        let report = bench.said(0, &["bug", file]);
        // Lines break elsewhere where a name is shorter.
        let words = |text: &str| {
            let is_word = |word: &&str| !word.contains(['│', '─', '·']);
            let words = text.split_whitespace().filter(is_word);
            words.collect::<Vec<_>>().join(" ")
        };
        let error = said[said.find("error").unwrap()..].replace("in/", "");
        let error = words(&error);
        assert!(words(&report).contains(&error), "{error}: {report}");
    }
    let failure = bench.run(&["opt", "in/calls.cu", "--json"]);
    let failure: Value = serde_json::from_slice(&failure.stdout).unwrap();
    assert_eq!(failure["place"]["file"], "in/calls.cu");
    assert_eq!(failure["place"]["line"], 3);
}

#[test]
fn blocks_and_shared_memory_of_the_code_count() {
    let Some(bench) = Bench::new(&[("own.cu", DYNAMIC)]) else {
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

/// CUDA C++ under the ending of a header or of C++: nvcc is told the language.
#[test]
fn cuda_under_other_endings_is_cuda() {
    let Some(bench) = Bench::new(&[("many.cuh", MANY), ("many.cpp", MANY)]) else {
        return;
    };
    for args in [
        &["explain", "many.cuh"][..],
        &["explain", "many.cpp"],
        &["explain", "many.cpp", "--kernel", "*"],
    ] {
        assert_eq!(bench.kernels(args).len(), 6, "{args:?}");
    }
    bench.said(0, &["explain", "many.cpp", "--", "-x", "cu"]);
}
