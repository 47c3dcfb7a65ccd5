//! What people tripped over who met the commands for the first time: each statement is one about what was built, and about
//! the launch that was seen.

#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::process::{Command, Output};

use serde_json::{Value, json};
use warpwright_toolkit::testing::require_toolkit;

fn run(folder: &Path, args: &[&str]) -> Output {
    let own = std::env::current_exe().unwrap();
    let library = own.with_file_name("libwarpwright_standin.so");
    let mut command = Command::new(env!("CARGO_BIN_EXE_warpwright"));
    let command = command.args(args).current_dir(folder);
    command.env("WARPWRIGHT_STANDIN", library).output().unwrap()
}

fn words(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// What a command that ends well prints.
fn said(folder: &Path, args: &[&str]) -> String {
    let output = run(folder, args);
    assert!(
        output.status.success(),
        "{args:?}: {}",
        words(&output.stderr)
    );
    words(&output.stdout)
}

fn document(folder: &Path, args: &[&str]) -> Value {
    let output = run(folder, args);
    assert!(
        output.status.success(),
        "{args:?}: {}",
        words(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).unwrap()
}

/// A folder with a file.
fn with(name: &str, text: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join(name), text).unwrap();
    folder
}

/// A kernel with an attribute, launched with 16 × 16 threads.
fn program(attribute: &str) -> String {
    format!(
        "__global__ void {attribute} k(float *x, int n) {{\n\
         int i = blockIdx.x * 256 + threadIdx.y * 16 + threadIdx.x;\n\
         if (i < n) x[i] = x[i] * 2 + blockDim.x;\n}}\n\
         int main() {{ float *x; cudaMalloc(&x, 4096);\n\
         k<<<4, dim3(16, 16)>>>(x, 1024); return cudaDeviceSynchronize(); }}\n"
    )
}

#[test]
fn a_recipe_for_other_launches_has_no_residency_at_the_one_that_was_seen() {
    if require_toolkit("recipes for other launches").is_none() {
        return;
    }
    let folder = with("k.cu", &program(""));
    for (recipe, launches) in [
        ("maxntid(128)", Some("blocks of at most 128 threads")),
        ("specialize(block=128x1x1)", Some("block=128,1,1")),
        ("maxntid(256)", None),
        ("specialize(block=16x16x1)", None),
    ] {
        let opt = ["opt", "k.cu", "--gpu", "h200", "--recipe", recipe];
        let found = document(folder.path(), &[&opt[..], &["--json"]].concat());
        let kernel = &found["kernels"][0];
        assert_eq!(kernel["block_source"], "ran", "{kernel}");
        let chosen = &kernel["candidates"][kernel["chosen"].as_u64().unwrap() as usize];
        let (elsewhere, residency) = (&chosen["elsewhere"], &chosen["residency"]);
        assert_eq!(elsewhere.as_str(), launches, "{recipe}: {chosen}");
        assert_eq!(
            residency.is_null(),
            launches.is_some(),
            "{recipe}: {chosen}"
        );
        assert_eq!(chosen["score"].is_null(), launches.is_some(), "{chosen}");
        let page = [&opt[..], &["--report", "page.html"]].concat();
        let screen = said(folder.path(), &page);
        let page = std::fs::read(folder.path().join("page.html")).unwrap();
        let text = launches.map(|launches| format!("launches of {launches} and not this one"));
        let is_said = |shown: &str| text.as_ref().is_some_and(|text| shown.contains(text));
        assert_eq!(is_said(&screen), launches.is_some(), "{recipe}: {screen}");
        assert_eq!(is_said(&words(&page)), launches.is_some(), "{recipe}");
    }
    // One that runs at every launch does so at this one, by its other half.
    let guarded = "specialize(block=128x1x1, guarded=yes)";
    let screen = said(
        folder.path(),
        &["opt", "k.cu", "--gpu", "h200", "--recipe", guarded],
    );
    assert!(
        screen.contains("its constants are those of another launch"),
        "{screen}"
    );
}

#[test]
fn a_shape_that_was_seen_is_no_bound() {
    if require_toolkit("shapes that were seen").is_none() {
        return;
    }
    let folder = with("k.cu", &program("__launch_bounds__(256)"));
    for command in ["explain", "opt"] {
        let args = [command, "k.cu", "--gpu", "h200"];
        let found = document(folder.path(), &[&args[..], &["--json"]].concat());
        let kernel = &found["kernels"][0];
        assert_eq!(kernel["block"], json!([16, 16, 1]), "{kernel}");
        assert_eq!(kernel["block_source"], "bound-seen", "{kernel}");
        let page = [&args[..], &["--report", "page.html"]].concat();
        let screen = said(folder.path(), &page);
        let page = std::fs::read(folder.path().join("page.html")).unwrap();
        for shown in [screen, words(&page)] {
            let source =
                "16×16 threads per block (.maxntid, in the shape of a launch that was seen)";
            assert!(shown.contains(source), "{command}: {shown}");
        }
    }
}

#[test]
fn a_minimum_of_blocks_that_a_limit_replaces_is_named() {
    if require_toolkit("limits beside bounds").is_none() {
        return;
    }
    let folder = with("k.cu", &program("__launch_bounds__(256, 4)"));
    let opt = [
        "opt",
        "k.cu",
        "--gpu",
        "h200",
        "--recipe",
        "maxnreg(40)",
        "--all",
    ];
    let screen = said(folder.path(), &opt);
    assert!(
        screen.contains("its own .minnctapersm 4 goes for .maxnreg 40"),
        "{screen}"
    );
    // No source says what was built.
    assert!(!screen.contains("__maxnreg__"), "{screen}");
}

/// Four blocks, of which each reads what another has written.
const COOPERATIVE: &str = "#include <cooperative_groups.h>
__global__ void k(float *a, float *b, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    a[i] = i;
    cooperative_groups::this_grid().sync();
    for (int j = 0; j < 7; ++j) b[i] = a[n - 1 - i] + j;
}
";

const COOPERATIVE_LAUNCH: &str = "kernel = \"k\"
[sizes.small]
n = 1024
[launch]
grid = [\"n / 256\"]
block = [256]
[[args]]
name = \"a\"
type = \"f32\"
shape = [\"n\"]
output = true
[[args]]
name = \"b\"
type = \"f32\"
shape = [\"n\"]
output = true
[[args]]
name = \"n\"
type = \"s32\"
value = \"n\"
";

#[test]
fn a_kernel_with_a_grid_barrier_runs_everywhere() {
    if require_toolkit("grid barriers").is_none() {
        return;
    }
    let folder = with("k.cu", COOPERATIVE);
    std::fs::write(folder.path().join("k.toml"), COOPERATIVE_LAUNCH).unwrap();
    let launch = ["k.cu", "--launch", "k.toml"];
    let saved = [&["run"], &launch[..], &["--save", "out"]].concat();
    said(folder.path(), &saved);
    let file = std::fs::read(folder.path().join("out").join("b.npy")).unwrap();
    let bytes = &file[file.len() - 4 * 1024..];
    let found: Vec<f32> = bytes
        .chunks(4)
        .map(|c| f32::from_le_bytes(c.try_into().unwrap()))
        .collect();
    let wanted: Vec<f32> = (0..1024).map(|i| (1023 - i + 6) as f32).collect();
    assert!(found == wanted, "{found:?}");
    let explained = document(
        folder.path(),
        &[&["explain", "--json"], &launch[..]].concat(),
    );
    let kernel = &explained["kernels"][0];
    assert!(kernel["not_counted"].is_null(), "{}", kernel["not_counted"]);
    // More blocks than any GPU holds never meet.
    let many = [&["run"], &launch[..], &["--set", "n=33554432"]].concat();
    let refused = run(folder.path(), &many);
    assert!(!refused.status.success());
    let text = words(&refused.stderr);
    assert!(text.contains("no GPU holds the 131072 blocks"), "{text}");
}

#[test]
fn numbers_before_device_linking_are_called_so() {
    if require_toolkit("numbers before linking").is_none() {
        return;
    }
    let folder = with("k.cu", &program(""));
    let note = "registers and stack are those of this file alone, before device linking";
    for command in ["explain", "opt"] {
        for (nvcc, is_said) in [("-rdc=true", true), ("-rdc=false", false)] {
            let args = [command, "k.cu", "--gpu", "h200", "--report", "page.html"];
            let all = match command {
                "opt" => &["--all"][..],
                _ => &[],
            };
            let screen = said(folder.path(), &[&args[..], all, &["--", nvcc]].concat());
            let page = words(&std::fs::read(folder.path().join("page.html")).unwrap());
            assert_eq!(screen.contains(note), is_said, "{command} {nvcc}: {screen}");
            assert_eq!(
                page.to_lowercase().contains(note),
                is_said,
                "{command} {nvcc}"
            );
            let named = [command, "k.cu", "--gpu", "h200", "--json", "--", nvcc];
            let found = document(folder.path(), &named).to_string();
            assert_eq!(found.contains(note), is_said, "{command} {nvcc}");
        }
    }
}

#[test]
fn data_that_is_called_a_source_is_one_error() {
    let folder = tempfile::tempdir().unwrap();
    let data: Vec<u8> = (0..600u32).map(|i| (i * 37 + 130) as u8).collect();
    std::fs::write(folder.path().join("k.cu"), data).unwrap();
    std::fs::write(folder.path().join("k.toml"), COOPERATIVE_LAUNCH).unwrap();
    for args in [
        &["opt", "k.cu"][..],
        &["explain", "k.cu"],
        &["launch", "k.cu"],
        &["check", "k.cu", "k.cu"],
        &["sass", "k.cu"],
        &["pass", "maxnreg(32)", "k.cu"],
        &["run", "k.cu", "--launch", "k.toml"],
        &["rewrite", "k.cu"],
        &["bug", "k.cu", "-o", "bug.txt"],
    ] {
        let output = run(folder.path(), args);
        let text = words(&output.stderr);
        if text.contains("unrecognized subcommand") {
            continue;
        }
        assert_eq!(output.status.code(), Some(1), "{args:?}: {text}");
        assert_eq!(text.matches("error: ").count(), 1, "{args:?}: {text}");
        assert!(
            text.contains("`k.cu` is not text: byte 0 is not UTF-8"),
            "{args:?}: {text}"
        );
    }
}

#[test]
fn an_architecture_with_features_has_one_name() {
    let Some(toolkit) = require_toolkit("architectures with features") else {
        return;
    };
    let folder = with("k.cu", &program(""));
    let mut nvcc = Command::new(&toolkit.nvcc().unwrap().tool().path);
    nvcc.args(["-arch=sm_90a", "-cubin", "k.cu", "-o", "k.cubin"]);
    assert!(nvcc.current_dir(folder.path()).status().unwrap().success());
    for args in [
        &["explain", "k.cubin"][..],
        &["opt", "k.cubin"],
        &["sass", "k.cubin"],
        &["sass", "roundtrip", "k.cubin"],
        &["sass", "hazards", "k.cubin"],
    ] {
        let document = document(folder.path(), &[args, &["--json"]].concat());
        assert_eq!(document["gpu"], "sm_90a", "{args:?}");
    }
    let other = run(folder.path(), &["opt", "k.cubin", "--gpu", "sm_80"]);
    let text = words(&other.stderr);
    assert!(text.contains("is for sm_90a"), "{text}");
}

#[test]
fn a_page_names_the_board() {
    let Some(toolkit) = require_toolkit("boards on pages") else {
        return;
    };
    let folder = with("k.cu", &program(""));
    let mut nvcc = Command::new(&toolkit.nvcc().unwrap().tool().path);
    nvcc.args(["-arch=sm_90", "-cubin", "k.cu", "-o", "k.cubin"]);
    assert!(nvcc.current_dir(folder.path()).status().unwrap().success());
    for command in ["explain", "opt"] {
        for file in ["k.cu", "k.cubin"] {
            said(
                folder.path(),
                &[command, file, "--gpu", "h200", "--report", "page.html"],
            );
            let page = std::fs::read_to_string(folder.path().join("page.html")).unwrap();
            assert!(page.contains("h200 (sm_90)"), "{command} {file}");
        }
    }
}

#[test]
fn callees_are_named_with_the_stack_of_all() {
    let Some(toolkit) = require_toolkit("callees") else {
        return;
    };
    let text = "__device__ __noinline__ float far(float *x, int n) { float kept[24];\n\
                for (int i = 0; i < 24; i++) kept[i] = x[i]; return kept[n & 15] + kept[n & 7]; }\n\
                __global__ void k(float *x, int n) { x[threadIdx.x] = far(x, n); }\n";
    let folder = with("k.cu", text);
    let mut nvcc = Command::new(&toolkit.nvcc().unwrap().tool().path);
    nvcc.args(["-arch=sm_90", "-cubin", "k.cu", "-o", "k.cubin"]);
    assert!(nvcc.current_dir(folder.path()).status().unwrap().success());
    for file in ["k.cu", "k.cubin"] {
        let args = ["explain", file, "--gpu", "h200", "--block", "64"];
        let found = document(folder.path(), &[&args[..], &["--json"]].concat());
        let kernel = &found["kernels"][0];
        let functions = kernel["functions"].as_array().unwrap();
        assert!(
            functions
                .iter()
                .any(|f| f.as_str().unwrap().contains("far")),
            "{kernel}"
        );
        let stack = kernel["stack_with_functions"].as_u64().unwrap();
        assert!(stack >= 96, "{file}: {stack}");
        let screen = said(folder.path(), &args);
        assert!(screen.contains("far(float*, int)"), "{screen}");
        assert!(screen.contains(&format!("{stack} B")), "{screen}");
    }
}

#[test]
fn a_trace_counts_for_a_binary_of_several_kernels() {
    let Some(toolkit) = require_toolkit("traces of binaries") else {
        return;
    };
    let text = "__global__ void one(float *x) { x[threadIdx.x] = 1; }\n\
                __global__ void two(float *x) { x[threadIdx.x] += 1; }\n\
                int main() { float *x; cudaMalloc(&x, 1024); one<<<5, 32>>>(x); two<<<6, 64>>>(x);\n\
                return cudaDeviceSynchronize(); }\n";
    let folder = with("k.cu", text);
    let mut nvcc = Command::new(&toolkit.nvcc().unwrap().tool().path);
    nvcc.args(["-arch=sm_90", "-cubin", "k.cu", "-o", "k.cubin"]);
    assert!(nvcc.current_dir(folder.path()).status().unwrap().success());
    let traced = run(
        folder.path(),
        &["trace", "--no-gpu", "-o", "T.json", "--", "k.cu"],
    );
    assert!(traced.status.success(), "{}", words(&traced.stderr));
    for command in ["explain", "opt"] {
        let found = document(
            folder.path(),
            &[command, "k.cubin", "--json", "--trace", "T.json"],
        );
        let kernels = found["kernels"].as_array().unwrap().iter();
        let mut all: Vec<_> = kernels
            .map(|kernel| {
                (
                    kernel["grid"].as_u64(),
                    kernel["block"].clone(),
                    kernel["block_source"].clone(),
                )
            })
            .collect();
        all.sort_by_key(|(grid, ..)| *grid);
        let of = |grid, block| (Some(grid), json!([block, 1, 1]), json!("ran"));
        assert_eq!(all, [of(5, 32), of(6, 64)], "{command}");
    }
}

#[test]
fn one_block_for_all_is_not_meant_for_kernels_with_other_bounds() {
    if require_toolkit("a block beside launch bounds").is_none() {
        return;
    }
    let kernel = |bounds: &str, name: &str| {
        format!("__global__ void {bounds} {name}(float *x) {{ x[threadIdx.x] *= 2; }}\n")
    };
    let text = kernel("", "free") + &kernel("__launch_bounds__(64)", "bound");
    let folder = with("k.cu", &text);
    let blocks = |more: &[&str]| -> Vec<(Value, Value)> {
        let args = [
            "explain", "k.cu", "--gpu", "h200", "--json", "--block", "256",
        ];
        let found = document(folder.path(), &[&args[..], more].concat());
        let kernels = found["kernels"].as_array().unwrap().iter();
        let mut all: Vec<_> = kernels
            .map(|k| (k["block_source"].clone(), k["block"][0].clone()))
            .collect();
        all.sort_by_key(|(source, _)| source.to_string());
        all
    };
    let of = |source: &str, threads: u32| (json!(source), json!(threads));
    assert_eq!(blocks(&[]), [of("bound", 64), of("option", 256)]);
    assert_eq!(
        blocks(&["--block", "bound=32"]),
        [of("option", 256), of("option", 32)]
    );
    // Who names the kernel hears that it cannot be.
    let named = [
        "explain", "k.cu", "--gpu", "h200", "--block", "256", "--kernel", "bound",
    ];
    let output = run(folder.path(), &named);
    let text = words(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(
        text.contains("--block 256,1,1 is larger than the bound 64,1,1 of kernel `bound(float*)`"),
        "{text}"
    );
}

#[test]
fn long_commands_say_what_they_do_without_a_terminal() {
    if require_toolkit("progress without a terminal").is_none() {
        return;
    }
    // Its program takes longer than it may.
    let text = program("").replace(
        "int main() {",
        "#include <unistd.h>\nint main() { sleep(60);",
    );
    let folder = with("k.cu", &text);
    let started = std::time::Instant::now();
    let output = run(folder.path(), &["launch", "k.cu", "--budget", "30"]);
    let said = words(&output.stderr);
    assert!(
        said.contains("running the file's own program without a GPU: "),
        "{said}"
    );
    assert!(said.contains(" s until now"), "{said}");
    // The build takes what it takes.
    assert!(started.elapsed().as_secs() < 55, "{:?}", started.elapsed());
}
