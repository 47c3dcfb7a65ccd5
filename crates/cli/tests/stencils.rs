//! Stencils from source to source through the command line: both languages give a `.cu` with launch
//! code that nvcc takes, and what cannot be done is said.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use warpwright_toolkit::NvccJob;
use warpwright_toolkit::testing::require_toolkit;

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../examples/stencils")
        .join(name)
}

fn warpwright(arguments: &[&str]) -> Output {
    let program = env!("CARGO_BIN_EXE_warpwright");
    Command::new(program)
        .args(arguments)
        .output()
        .expect("it starts")
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Optimizes an example into a folder; the file that was written.
fn optimize(folder: &Path, name: &str, more: &[&str]) -> PathBuf {
    let out = folder.join(format!("{}.out.cu", name.replace('.', "-")));
    let (input, path) = (example(name), out.display().to_string());
    let input = input.display().to_string();
    let arguments = [&["opt", &input, "-o", &path, "--unchecked"], more].concat();
    let output = warpwright(&arguments);
    assert!(output.status.success(), "{name}: {}", stderr(&output));
    out
}

#[test]
fn both_languages_become_cuda_with_launch_code() {
    let folder = tempfile::tempdir().expect("a folder");
    let toolkit = require_toolkit("both_languages_become_cuda_with_launch_code");
    for name in ["2d25pt.stencil", "2d25pt.cu", "3d27pt.stencil"] {
        for more in [&[][..], &["--fp", "reassociate"]] {
            let out = optimize(folder.path(), name, more);
            let text = std::fs::read_to_string(&out).expect("it is written");
            assert!(text.contains("_launch("), "{text}");
            assert!(text.contains("<<<dim3("), "{text}");
            if let Some(nvcc) = toolkit.as_ref().and_then(|t| t.nvcc().ok()) {
                let made = nvcc.to_ptx(&NvccJob::new(&out, "sm_90"));
                made.unwrap_or_else(|e| panic!("{name}: {e}"));
            }
        }
    }
}

#[test]
fn what_is_chosen_is_data_too() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("x.cu").display().to_string();
    let input = example("2d81pt.stencil").display().to_string();
    let output = warpwright(&[
        "opt",
        &input,
        "-o",
        &out,
        "--json",
        "--grid",
        "N=1000",
        "--unchecked",
    ]);
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON alone");
    assert_eq!(document["schema"], "warpwright.stencil-opt/2");
    assert_eq!(document["sizes"][1], serde_json::json!(["N", 1000]));
    let chosen = document["chosen"].as_u64().expect("a choice") as usize;
    assert_eq!(document["versions"][chosen]["family"], "streamed");
}

const PROGRAM: &str = "__global__ void five(float* y, const float* x, int n) {\n\
    \x20 int i = blockIdx.x * 128 + threadIdx.x, j = blockIdx.y;\n\
    \x20 for (int j = 1; j < n - 1; ++j)\n\
    \x20   if (i > 0 && i < n - 1)\n\
    \x20     y[j * n + i] = x[j * n + i] + 0.25f * (x[j * n + i - 1] + x[j * n + i + 1] + x[j * n - n + i] + x[j * n + n + i]);\n}\n\
    void run(float* y, float* x, int n) { five<<<(n + 127) / 128, 128>>>(y, x, n); }\n";

/// A program stays one: launches are rewritten, and what is written was compared with the input.
#[test]
fn a_program_is_rewritten_and_checked() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(_) = require_toolkit("a_program_is_rewritten_and_checked") else {
        return;
    };
    let (input, out) = (folder.path().join("five.cu"), folder.path().join("out.cu"));
    std::fs::write(&input, PROGRAM.replace(", j = blockIdx.y", "")).expect("a file");
    let (input, path) = (input.display().to_string(), out.display().to_string());
    let output = warpwright(&["opt", &input, "-o", &path, "--json"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON alone");
    assert_eq!(document["launches"], 1);
    assert_eq!(document["checked"]["distance"], 0.0);
    assert!(
        document["checked"]["sizes"]
            .as_array()
            .is_some_and(|s| s.len() >= 3),
        "{document}"
    );
    let text = std::fs::read_to_string(&out).expect("it is written");
    assert!(
        text.contains("{ five_launch((n + 127) / 128, 128, 0, 0, y, x, n); }"),
        "{text}"
    );
}

/// Without a compiler nothing can be compared: the result says so, and so does the exit code.
#[test]
fn what_was_not_checked_says_so() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("x.cu").display().to_string();
    let input = example("2d25pt.cu").display().to_string();
    let nowhere = folder.path().display().to_string();
    let run = |more: &[&str]| {
        let arguments = [&["--toolkit", &*nowhere, "opt", &*input, "-o", &*out], more].concat();
        warpwright(&arguments)
    };
    let output = run(&[]);
    assert_eq!(output.status.code(), Some(5), "{}", stderr(&output));
    assert!(String::from_utf8_lossy(&output.stdout).contains("NOT CHECKED"));
    let text = std::fs::read_to_string(&out).expect("it is written");
    assert!(text.contains("// Not checked"), "{text}");
    assert_eq!(run(&["--unchecked"]).status.code(), Some(0));
}

#[test]
fn wrong_requests_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("x.cu");
    let path = out.display().to_string();
    let input = example("2d25pt.stencil").display().to_string();
    let wrong = [
        (
            vec!["opt", &*input, "-o", &*path, "--grid", "Q=5"],
            1,
            "has no size `Q`",
        ),
        (
            vec!["opt", &*input, "-o", &*path, "--grid", "N=0"],
            2,
            "is no size",
        ),
        (
            vec!["opt", &*input, "-o", &*path, "--gpu", "potato"],
            1,
            "potato",
        ),
        (
            vec!["opt", &*input, "-o", &*path, "--fp", "fast"],
            2,
            "fast",
        ),
    ];
    let naive = folder.path().join("naive.cu");
    let text = "__global__ void mm(const float *a, const float *b, float *c, int n) {\n\
                int i = blockIdx.y * blockDim.y + threadIdx.y, j = blockIdx.x * blockDim.x + threadIdx.x;\n\
                if (i < n && j < n) {\nfloat s = 0;\nfor (int k = 0; k < n; k++) s += a[i * n + k] * b[k * n + j];\n\
                c[i * n + j] = s;\n}\n}\n";
    std::fs::write(&naive, text).expect("a file");
    let naive = naive.display().to_string();
    let no_stencil = vec!["opt", &*naive, "-o", &*path, "--fp", "reassociate"];
    let wrong = wrong
        .into_iter()
        .chain([(no_stencil, 2, "has no effect on naive kernels")]);
    for (arguments, code, what) in wrong {
        let output = warpwright(&arguments);
        assert_eq!(output.status.code(), Some(code), "{}", stderr(&output));
        assert!(stderr(&output).contains(what), "{}", stderr(&output));
        assert!(!out.exists(), "nothing is half-written");
    }
}

const SEVERAL: &str = "#include \"sizes.h\"\n\
    __global__ void clear(float* y) { atomicAdd(y, 1.0f); }\n\
    __global__ void three(float* y, const float* x, int m) {\n\
    \x20 int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y;\n\
    \x20 if (i > 0 && i < PITCH - 1 && j < m)\n\
    \x20   y[j * PITCH + i] = x[j * PITCH + i - 1] + scale * x[j * PITCH + i + 1];\n}\n";

/// What is found is said, by `explain` and by `opt` for machine code: with headers and `-D` as nvcc has them.
#[test]
fn stencils_among_kernels_are_found() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(_) = require_toolkit("stencils_among_kernels_are_found") else {
        return;
    };
    let file = |name: &str| folder.path().join(name).display().to_string();
    std::fs::create_dir(file("include")).expect("a folder");
    let header = "constexpr float scale = 0.5f;\n#ifndef PITCH\n#error no size\n#endif\n";
    std::fs::write(file("include/sizes.h"), header).expect("a file");
    std::fs::write(file("k.cu"), SEVERAL).expect("a file");
    let options = ["--", "-I", &file("include"), "-DPITCH=512"];
    let said = |arguments: &[&str]| {
        let output = warpwright(&[arguments, &options[..]].concat());
        assert!(output.status.success(), "{}", stderr(&output));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let document = said(&["explain", &file("k.cu"), "--json"]);
    let document: serde_json::Value = serde_json::from_str(&document).expect("JSON alone");
    assert_eq!(document["stencils"][0]["points"][1], "1 <= i < 511");
    let other = &document["not_stencils"][0];
    assert_eq!(
        (&other["kernel"], &other["line"], &other["column"]),
        (&"clear".into(), &2.into(), &35.into())
    );
    // No command is named that would change nothing.
    for arguments in [
        &["explain", &file("k.cu")][..],
        &["opt", &file("k.cu")],
        &["opt", &file("k.cu"), "-o", &file("k.cubin")],
    ] {
        let text = said(arguments);
        assert!(!text.contains("is a stencil: "), "{arguments:?}: {text}");
    }
    // The only stencil is found without its name.
    let written = said(&["opt", &file("k.cu"), "-o", &file("out.cu"), "--unchecked"]);
    assert!(written.contains("three"), "{written}");
    assert!(written.contains("nothing was changed"), "{written}");
}

/// It is said wherever the file is looked at, with the command that does something about it.
#[test]
fn a_stencil_that_pays_is_named() {
    let Some(_) = require_toolkit("a_stencil_that_pays_is_named") else {
        return;
    };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("wide.cu").display().to_string();
    let text = include_str!("../../../examples/stencils/published/2d81pt.cu");
    std::fs::write(&file, text).expect("a file");
    for command in ["explain", "opt"] {
        let output = warpwright(&[command, &file]);
        assert!(output.status.success(), "{}", stderr(&output));
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
        let next = format!("`corner81` is a stencil: `warpwright opt {file} -o OUT.cu`");
        assert!(said.contains(&next), "{command}: {said}");
    }
}

/// What is no stencil for `opt -o OUT.cu` is none for `opt` and `explain`.
#[test]
fn advice_is_what_the_command_would_do() {
    let Some(_) = require_toolkit("advice_is_what_the_command_would_do") else {
        return;
    };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("k.cu");
    for (text, refusal) in [
        (
            "__global__ void k(int *x) { x[0] = 1; }\n",
            "no kernel can be written",
        ),
        (
            "__global__ void k(float *x, const float *y, int n) {\n\
             \x20 int i = blockIdx.x * blockDim.x + threadIdx.x;\n  if (i < n) x[i] += y[i];\n}\n",
            "",
        ),
    ] {
        std::fs::write(&path, text).expect("a file");
        let file = path.display().to_string();
        let said = |arguments: &[&str]| {
            let output = warpwright(arguments);
            String::from_utf8_lossy(&output.stdout).into_owned() + &stderr(&output)
        };
        for command in ["opt", "explain"] {
            let advice = said(&[command, &file]);
            assert!(
                !advice.contains("is a stencil: `warpwright opt"),
                "{advice}"
            );
        }
        let out = folder.path().join("out.cu").display().to_string();
        let written = said(&["opt", &file, "-o", &out]);
        assert!(written.contains(refusal), "{written}");
    }
}

const TWO: &str = "#include <cuda_runtime.h>\n\
    __global__ void ex(double *e, const double *h, int n, int m) {\n\
    \x20 int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y;\n\
    \x20 if (i < n && j >= 1 && j < m) e[j * n + i] = e[j * n + i] + 0.5 * (h[j * n + i] - h[(j - 1) * n + i]);\n}\n\
    __global__ void ey(double *e, const double *h, int n, int m) {\n\
    \x20 int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y;\n\
    \x20 if (i >= 1 && i < n && j < m) e[j * n + i] = e[j * n + i] - 0.5 * (h[j * n + i] - h[j * n + i - 1]);\n}\n\
    void run(double *e, double *h, int n, int m, dim3 g, dim3 b) {\n\
    \x20 void (*other)(double *, const double *, int, int) = ey;\n\
    \x20 ex<<<g, b>>>(e, h, n, m);\n  ey<<<g, b>>>(e, h, n, m);\n}\n";

/// Each stencil of a file is transformed, in one output; lines are those of the input.
#[test]
fn all_stencils_of_a_file_are_transformed() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(_) = require_toolkit("all_stencils_of_a_file_are_transformed") else {
        return;
    };
    let (input, out) = (folder.path().join("two.cu"), folder.path().join("out.cu"));
    std::fs::write(&input, TWO).expect("a file");
    let (input, path) = (input.display().to_string(), out.display().to_string());
    let output = warpwright(&["opt", &input, "-o", &path, "--json", "--grid", "n=4096"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON alone");
    assert_eq!(document["schema"], "warpwright.stencil-opts/1");
    let stencils = document["stencils"].as_array().expect("a list");
    let names: Vec<_> = stencils.iter().map(|s| &s["stencil"]).collect();
    assert_eq!(names, ["ex", "ey"]);
    for stencil in stencils {
        assert_eq!(stencil["launches"], 1);
        assert_eq!(stencil["checked"]["distance"], 0.0);
    }
    let left = stencils[1]["left"][0].as_str().expect("a note");
    assert!(left.starts_with("line 11: "), "{left}");
    let text = std::fs::read_to_string(&out).expect("it is written");
    for line in TWO.lines().filter(|line| !line.contains("<<<")) {
        assert!(text.contains(line), "{line}");
    }
    assert!(
        text.contains(
            "  ex_launch(g, b, 0, 0, e, h, n, m);\n  ey_launch(g, b, 0, 0, e, h, n, m);\n"
        )
    );
    let wrong = warpwright(&["opt", &input, "-o", &path, "--grid", "width=4096"]);
    assert_eq!(wrong.status.code(), Some(1));
    assert!(
        stderr(&wrong).contains("no stencil of"),
        "{}",
        stderr(&wrong)
    );
}

/// A naive kernel beside host code that this nvcc refuses.
const BESIDE_HOST_CODE: &str =
    "__global__ void mm(const float *a, const float *b, float *c, int n) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= n || y >= n) return;
    float s = 0.0f;
    for (int k = 0; k < n; ++k) s += a[y * n + k] * b[k * n + x];
    c[y * n + x] = s;
}
void run(float *a, float *b, float *c, int n) {
    mm<<<dim3(n / 16, n / 16), dim3(16, 16)>>>(a, b, c, n);
    cudaThreadSynchronize();
}
";

#[test]
fn kernels_are_compared_without_host_code_that_does_not_compile() {
    if require_toolkit("kernels_are_compared_without_host_code").is_none() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str| folder.path().join(name).display().to_string();
    std::fs::write(file("mm.cu"), BESIDE_HOST_CODE).expect("a file");
    let output = warpwright(&["opt", &file("mm.cu"), "-o", &file("out.cu"), "--json"]);
    let said = stderr(&output);
    assert!(output.status.success(), "{said}");
    // The user's file and line, once.
    let place = format!("{}:11: error", file("mm.cu"));
    assert_eq!(said.matches(&place).count(), 1, "{said}");
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert!(document["chosen"].is_number() && document["checked"].is_object());
    let text = std::fs::read_to_string(file("out.cu")).expect("it is written");
    assert!(text.contains("cudaThreadSynchronize();") && text.contains("mm_launch("));
    // What does not compile without it either is compared with nothing.
    let wrong = BESIDE_HOST_CODE.replace(
        "if (x >= n",
        "static_assert(sizeof(float) == 8, \"\");\n    if (x >= n",
    );
    std::fs::write(file("mm.cu"), wrong).expect("a file");
    std::fs::remove_file(file("out.cu")).expect("it was written");
    let output = warpwright(&["opt", &file("mm.cu"), "-o", &file("out.cu"), "--json"]);
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(!said.contains("\"checked\": {"), "{said}");
}

/// The file is named without its folder, which is where we are.
#[test]
fn a_header_beside_the_file_is_found_from_its_folder() {
    let Some(_) = require_toolkit("a_header_beside_the_file_is_found_from_its_folder") else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str| folder.path().join(name);
    std::fs::write(file("weights.h"), "#define W 0.25f\n").expect("a file");
    let text = "#include \"weights.h\"\n\
        __global__ void smooth(float *out, const float *in, int w, int h) {\n\
        int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y;\n\
        if (i < 1 || i >= w - 1 || j < 1 || j >= h - 1) return;\n\
        out[j * w + i] = W * (in[(j - 1) * w + i] + in[(j + 1) * w + i] + in[j * w + i - 1] + in[j * w + i + 1]); }\n";
    std::fs::write(file("k.cu"), text).expect("a file");
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_warpwright"))
        .args(["opt", "k.cu", "-o", "out.cu", "--gpu", "h200"])
        .current_dir(folder.path())
        .output()
        .expect("the program starts");
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &stderr(&output);
    assert!(output.status.success(), "{said}");
    assert!(
        !said.contains("nothing was changed") && !said.contains("weights.h"),
        "{said}"
    );
}

/// What a rewrite is predicted at is what the file's own program launches, else what is described; what nobody says is
/// assumed, and said to be.
#[test]
fn rewrites_go_by_the_sizes_of_the_launch() {
    let Some(_) = require_toolkit("rewrites_go_by_the_sizes_of_the_launch") else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let own = std::env::current_exe().expect("a path");
    let library = own.with_file_name("libwarpwright_standin.so");
    let run = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_warpwright"));
        let command = command.args(args).current_dir(folder.path());
        let output = command.env("WARPWRIGHT_STANDIN", &library).output();
        let output = output.expect("it runs");
        assert!(output.status.success(), "{}", stderr(&output));
        serde_json::from_slice::<serde_json::Value>(&output.stdout).expect("JSON alone")
    };
    let product = "__global__ void mm(const float *a, const float *b, float *c, int n, int w) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    float s = 0;
    if (x < n && y < n) { for (int k = 0; k < w; ++k) s += a[y * w + k] * b[k * n + x]; c[y * n + x] = s; }
}
";
    let main = "int main() { float *a; cudaMalloc(&a, 1 << 22);
    mm<<<dim3(10, 20), dim3(32, 16)>>>(a, a, a, 320, 96); return cudaDeviceSynchronize(); }
";
    std::fs::write(folder.path().join("mm.cu"), format!("{product}{main}")).expect("a file");
    let found = run(&["opt", "mm.cu", "-o", "out.cu", "--json"]);
    let sizes = &found["sizes"];
    assert_eq!(sizes["all"], serde_json::json!([["n", 320], ["w", 96]]));
    assert_eq!(sizes["launched"], serde_json::json!(["n", "w"]));
    // A slow machine builds no program in time, and reads the code.
    let is_known =
        |launch: &serde_json::Value| launch.as_str().is_some_and(|l| l.contains("launch"));
    assert!(is_known(&sizes["launch"]), "{sizes}");
    // What the command line says comes first.
    let found = run(&["opt", "mm.cu", "-o", "out.cu", "--json", "--grid", "w=64"]);
    assert_eq!(
        found["sizes"]["all"],
        serde_json::json!([["n", 320], ["w", 64]])
    );
    // The advice beside it goes by the same.
    let found = run(&["explain", "mm.cu", "--json", "--budget", "200"]);
    let edit = &found["rewrites"][0]["edits"][0];
    let text = edit["text"].as_str().expect("an edit");
    assert!(text.contains("at n = 320, w = 96 (the "), "{edit}");
    assert_eq!(edit["line"], "mm.cu:1");
    // Nobody launches it, and no program beside it does.
    std::fs::remove_file(folder.path().join("out.cu")).expect("it was written");
    std::fs::write(folder.path().join("mm.cu"), product).expect("a file");
    let found = run(&["opt", "mm.cu", "-o", "out.cu", "--json"]);
    assert_eq!(found["sizes"]["assumed"], serde_json::json!(["n", "w"]));
    // A stencil likewise.
    let launch = "int main() { float *a; cudaMalloc(&a, 1 << 22); run(a, a, 700); return cudaDeviceSynchronize(); }\n";
    let text = PROGRAM.replace(", j = blockIdx.y", "") + launch;
    std::fs::write(folder.path().join("five.cu"), text).expect("a file");
    let found = run(&["opt", "five.cu", "-o", "out.cu", "--json"]);
    assert_eq!(found["sizes"], serde_json::json!([["n", 700]]));
    assert_eq!(found["assumed_sizes"], serde_json::json!([]));
    assert_eq!(found["block"], serde_json::json!([128, 1, 1]));
    let plan = found["versions"][0]["plan"].as_str().expect("a plan");
    assert!(plan.starts_with("block 128x1x1"), "{found}");
    assert!(is_known(&found["launch"]), "{found}");
}

/// A file of which nothing is rewritten names its kernels, each with what is in its way; of a template the launched instance
/// is looked at, and named.
#[test]
fn kernels_that_stay_and_instances_are_named() {
    if require_toolkit("kernels that stay as written").is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let opt = |text: &str| {
        std::fs::write(folder.path().join("k.cu"), text).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_warpwright"));
        let command = command.args(["opt", "k.cu", "-o", "o.cu", "--no-run"]);
        command.current_dir(folder.path()).output().unwrap()
    };
    let none = opt(
        "__global__ void one(float *p) { __shared__ float s[64]; s[threadIdx.x] = p[threadIdx.x]; __syncthreads(); p[threadIdx.x] = s[63 - threadIdx.x]; }\n\
         __global__ void two(float *p, int i) { float own[4]; own[i] = p[threadIdx.x]; p[threadIdx.x] = own[3 - i]; }\n",
    );
    assert_eq!(none.status.code(), Some(1));
    let said = String::from_utf8_lossy(&none.stderr);
    assert!(
        said.starts_with("error: `k.cu` has no kernel that is written anew"),
        "{said}"
    );
    for line in [
        "  one stays as written: shared memory",
        "  two stays as written: an array of the thread's own",
    ] {
        assert!(said.lines().any(|own| own == line), "{line}\n{said}");
    }
    let instance = opt(
        "template <typename T, int V> __global__ void axpy(T a, const T *x, T *y, int n) {\n\
           int i = (blockIdx.x * blockDim.x + threadIdx.x) * V;\n\
           for (int k = 0; k < V; k++) if (i + k < n) y[i + k] += a * x[i + k]; }\n\
         template __global__ void axpy<double, 2>(double, const double *, double *, int);\n\
         int main() { int n = 1 << 20; float *x, *y; cudaMalloc(&x, n * 4); cudaMalloc(&y, n * 4);\n\
           axpy<float, 1><<<n / 256, 256>>>(2.0f, x, y, n); axpy<float, 4><<<n / 512, 128>>>(2.0f, x, y, n); }\n",
    );
    let said = String::from_utf8_lossy(&instance.stdout);
    assert!(
        said.starts_with("naive kernel axpy<float, 1> for"),
        "{said}{}",
        String::from_utf8_lossy(&instance.stderr)
    );
}

/// What a file means with one `-D` is not launched where it means something else.
#[test]
fn a_build_with_other_macros_launches_kernels_as_written() {
    let Some(toolkit) = require_toolkit("generated kernels under other macros") else {
        return;
    };
    let nvcc = toolkit.nvcc().expect("nvcc");
    let folder = tempfile::tempdir().expect("a folder");
    let head = "#ifndef NCOL\n#define NCOL 1024\n#endif\n#ifndef REAL\n#define REAL float\n#endif\n\
                #ifdef TWICE\nconst int PART = 2;\n#else\nconst int PART = 1;\n#endif\n#define UNUSED 7\n";
    let naive = "__global__ void k(int n, REAL *A, REAL *p, REAL *q) {\n\
                 int i = blockIdx.x * blockDim.x + threadIdx.x;\n\
                 if (i < n) { q[i] = 0.0f; for (int j = 0; j < n; j++) q[i] += A[i * NCOL + PART * j] * p[j]; }\n}\n\
                 void f(float *p) { k<<<4, 256>>>(1024, p, p, p); }\n";
    let stencil = "__global__ void k(int n, const REAL *a, REAL *b) {\n\
                   int j = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y * blockDim.y + threadIdx.y;\n\
                   if (i > 0 && i < n - 1 && j > 0 && j < n - 1)\n\
                   b[i * NCOL + j] = a[i * NCOL + j - PART] + a[i * NCOL + j + 1] + a[(i - 1) * NCOL + j] + a[(i + 1) * NCOL + j] + a[i * NCOL + j];\n}\n\
                   void f(float *p) { k<<<dim3(32, 128), dim3(32, 8)>>>(1024, p, p); }\n";
    for (name, kernel) in [("naive", naive), ("stencil", stencil)] {
        let at = |end: &str| folder.path().join(format!("{name}{end}.cu"));
        std::fs::write(at(""), format!("{head}{kernel}")).expect("it is written");
        let (input, out) = (at("").display().to_string(), at("-out"));
        let output = warpwright(&[
            "opt",
            &input,
            "-o",
            &out.display().to_string(),
            "--gpu",
            "h200",
            "--grid",
            "n=1024",
            "--unchecked",
        ]);
        assert!(output.status.success(), "{name}: {}", stderr(&output));
        let text = std::fs::read_to_string(&out).expect("it is written");
        assert!(
            text.contains("#if defined(NCOL) && (NCOL) == (1024)"),
            "{text}"
        );
        assert!(
            text.contains("!defined(TWICE)") && !text.contains("(UNUSED)"),
            "{text}"
        );
        let kernels = |options: &[&str]| {
            let mut job = NvccJob::new(&out, "sm_90");
            job.extra = options.iter().map(Into::into).collect();
            let made = nvcc.to_ptx(&job).map_err(|error| error.to_string())?;
            Ok::<usize, String>(made.ptx.matches(".entry").count())
        };
        let own = kernels(&[]).expect("it compiles");
        assert!(own > 1, "{name}: {text}");
        assert_eq!(kernels(&["-DNCOL=1024"]), Ok(own), "{name}");
        for other in ["-DNCOL=2048", "-DTWICE"] {
            assert_eq!(kernels(&[other]), Ok(1), "{name} {other}");
        }
        let other = kernels(&["-DREAL=double"]).expect_err("other numbers");
        assert!(
            other.contains("REAL is not what these kernels were generated for"),
            "{other}"
        );
        // As the file means it there, it is generated so.
        let output = warpwright(&[
            "opt",
            &input,
            "-o",
            &out.display().to_string(),
            "--grid",
            "n=1024",
            "--unchecked",
            "--",
            "-DNCOL=2048",
            "-DN=5",
        ]);
        assert!(output.status.success(), "{name}: {}", stderr(&output));
        let text = std::fs::read_to_string(&out).expect("it is written");
        assert!(text.contains("(NCOL) == (2048)"), "{text}");
    }
}
