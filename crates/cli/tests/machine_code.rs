//! Machine code on the command line: what nvcc links into libraries, and requests that cannot be met.

#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::process::{Command, Output};

use warpwright_toolkit::testing::require_toolkit;

/// Two kernels that spill under 32 registers.
const KERNELS: &str = "
#define BODY(N) \\
  float x[N]; \\
  _Pragma(\"unroll\") for (int i = 0; i < N; i++) x[i] = p[threadIdx.x + 64 * i]; \\
  _Pragma(\"unroll\") for (int i = 0; i < N; i++) x[i] = x[i] * x[N - 1 - i] + sqrtf(x[(i * 7 + 3) % N]); \\
  _Pragma(\"unroll\") for (int i = 0; i < N; i++) p[threadIdx.x + 64 * i] = x[i] + x[(i * 5 + 1) % N];
extern \"C\" __global__ void first(float *p) { BODY(48) }
extern \"C\" __global__ void second(float *p) { BODY(56) }
";

fn warpwright(folder: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_warpwright"));
    let cache = folder.join("cache");
    command.current_dir(folder).env("WARPWRIGHT_CACHE", cache);
    let toolkit = require_toolkit("warpwright on machine code").unwrap();
    let ptxas = toolkit.ptxas().unwrap().tool().path.clone();
    let root = ptxas.parent().and_then(Path::parent).unwrap();
    command.env("WARPWRIGHT_TOOLKIT", root);
    command.args(args).output().unwrap()
}

fn stderr(output: &Output) -> String {
    // The report breaks lines where the terminal ends.
    let text = String::from_utf8_lossy(&output.stderr).replace('│', " ");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A folder with the kernels as source, and as nvcc makes `out` of them.
fn folder(test: &str, more: &[&str], out: &str) -> Option<tempfile::TempDir> {
    let toolkit = require_toolkit(test)?;
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("k.cu"), KERNELS).unwrap();
    let nvcc = toolkit.nvcc().unwrap().tool().path.clone();
    let mut command = Command::new(nvcc);
    command.args(["-arch=sm_90", "-maxrregcount=32", "k.cu", "-o", out]);
    let status = command.args(more).current_dir(folder.path()).status();
    assert!(status.unwrap().success());
    Some(folder)
}

#[test]
fn stubs_without_kernels_are_passed_over() {
    let library = ["-shared", "-Xcompiler", "-fPIC"];
    let Some(folder) = folder("stubs_without_kernels_are_passed_over", &library, "k.so") else {
        return;
    };
    let args = ["--gpu", "sm_90", "--block", "64", "-o", "new.so"];
    let pass = [&["pass", "spill-to-shared", "k.so"], &args[..]].concat();
    let done = warpwright(folder.path(), &pass);
    let said = stderr(&done);
    assert_eq!(done.status.code(), Some(0), "{said}");
    for kernel in ["first", "second"] {
        assert!(
            said.contains(&format!("spill slots moved {kernel}: it promises")),
            "{said}"
        );
    }
    let explained = warpwright(folder.path(), &["explain", "new.so"]);
    let text = String::from_utf8_lossy(&explained.stdout).into_owned();
    assert_eq!(text.matches(" 0 B stack").count(), 2, "{text}");
}

#[test]
fn requests_that_cannot_be_met_are_refused_by_name() {
    let test = "requests_that_cannot_be_met_are_refused_by_name";
    let Some(folder) = folder(test, &["-cubin"], "k.cubin") else {
        return;
    };
    std::fs::write(folder.path().join("k.a"), b"!<arch>\n").unwrap();
    let cases: [(&[&str], i32, &str); 10] = [
        (
            &["pass", "maxnreg(32)", "k.cu", "--", "-maxrregcount=32"],
            2,
            "`-maxrregcount`",
        ),
        (&["explain", "k.cu", "--", "-Xptxas", "-O1"], 2, "`-Xptxas`"),
        (&["opt", "k.cubin", "-o", "x.ptx"], 2, "not to end in .ptx"),
        (&["pass", "compact", "k.cubin", "-o", "x.o"], 2, "end in .o"),
        (
            &["explain", "k.cu", "--gpu", "sm_20"],
            1,
            "`sm_20` is not supported",
        ),
        (&["check", "k.cu", "k.cubin"], 1, "of different kinds"),
        (
            &["pass", "spill-to-share", "k.cubin"],
            2,
            "`spill-to-share`; near: spill-to-shared",
        ),
        (
            &["sass", "k.cubin", "--gpu", "a100"],
            1,
            "a cubin for sm_90, which does not run on",
        ),
        (
            &["explain", "k.cubin", "--kernel", "third"],
            1,
            "has no kernel `third`; it has",
        ),
        (&["sass", "k.a"], 1, "is an archive"),
    ];
    for (args, code, what) in cases {
        let output = warpwright(folder.path(), args);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(code), "{args:?}: {said}");
        assert!(said.contains(what), "{args:?}: {said}");
    }
    let named = warpwright(folder.path(), &["sass", "k.cubin", "--gpu", "h200"]);
    assert_eq!(named.status.code(), Some(0));
}

/// Moved slots hold for some launches only, and launch bounds forbid others: both are said.
#[test]
fn what_launches_must_keep_to() {
    let Some(folder) = folder("what_launches_must_keep_to", &["-cubin"], "k.cubin") else {
        return;
    };
    let opt = |file: &str, out: &str, block: &str| {
        let args = [
            "opt", file, "-o", out, "--block", block, "--kernel", "second", "--gpu", "h200",
        ];
        let output = warpwright(folder.path(), &args);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(0), "{said}");
        String::from_utf8(output.stdout).unwrap()
    };
    let text = opt("k.cubin", "new.cubin", "64");
    let promise = "it promises blocks of at most 64 threads; a larger launch fails";
    assert!(text.contains(promise), "{text}");
    let args = ["pass", "spill-to-shared", "k.cubin", "-o", "pass.cubin"];
    let pass = warpwright(folder.path(), &[&args[..], &["--block", "64"]].concat());
    let said = stderr(&pass);
    assert!(said.contains(&format!("second: {promise}")), "{said}");
    // The result is bounded now.
    let args = ["explain", "new.cubin", "--kernel", "second"];
    let explain = warpwright(folder.path(), &[&args[..], &["--block", "128"]].concat());
    let shown = String::from_utf8_lossy(&explain.stdout).into_owned();
    assert!(shown.contains("cannot be launched"), "{shown}");
    let explain = warpwright(folder.path(), &["explain", "k.cubin"]);
    let shown = String::from_utf8_lossy(&explain.stdout).into_owned();
    assert!(!shown.contains(" 0 + 0 bytes spilled"), "{shown}");
    let text = opt("new.cubin", "again.cubin", "128");
    assert!(text.contains("launch bounds allow"), "{text}");
}

#[test]
fn the_grid_of_a_trace_counts() {
    let Some(folder) = folder("the_grid_of_a_trace_counts", &["-cubin"], "k.cubin") else {
        return;
    };
    let launch = |grid: u32| {
        serde_json::json!({
            "schema": "warpwright.trace/1", "program": ["p"], "date": "", "processes": 1, "modules_in": null,
            "gpu": {"name": "NVIDIA H200", "sm": 90, "driver": 13000}, "modules": [], "not_seen": [],
            "launches": [{
                "kernel": "first", "name": "first", "module": null, "digest": null, "grid": [grid, 1, 1],
                "block": [64, 1, 1], "dynamic_smem": 0, "cluster": null, "cooperative": false, "launches": 1,
                "in_graphs": 0, "gpu_ns": 9, "share": 1.0, "registers": null, "spill_bytes": null,
                "static_smem": null, "resident": null, "occupancy": null, "tied": null, "hint": ""
            }]
        })
    };
    // One block of two warps on each of 132 SMs, and more than fit.
    for (grid, warps) in [(132, 2), (1 << 20, 64)] {
        std::fs::write(folder.path().join("t.json"), launch(grid).to_string()).unwrap();
        let args = ["opt", "k.cubin", "--trace", "t.json", "--json"];
        let done = warpwright(folder.path(), &args);
        assert_eq!(done.status.code(), Some(0), "{}", stderr(&done));
        let document: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap();
        assert!(document["gpu"].as_str().unwrap().contains("h200"));
        let score = &document["kernels"][0]["candidates"][0]["score"];
        assert_eq!(score["active_warps"], warps, "{score}");
        assert!(score["judgement"].is_object(), "{score}");
    }
}

/// Slots behind dynamic shared memory hold for launches that have at most so much of it, which nothing enforces: every
/// form of the result says it, and the bound of the block, which is in the code.
#[test]
fn promises_stand_in_every_form_of_the_result() {
    const TEST: &str = "promises_stand_in_every_form_of_the_result";
    let Some(folder) = folder(TEST, &["-cubin"], "k.cubin") else {
        return;
    };
    let body = KERNELS.lines().take(6).collect::<Vec<_>>().join("\n");
    let dynamic = "extern \"C\" __global__ void dynamic(float *p) { extern __shared__ float t[]; \
                   t[threadIdx.x] = p[threadIdx.x]; __syncthreads(); p += (int)t[threadIdx.x ^ 1]; BODY(56) }";
    std::fs::write(folder.path().join("d.cu"), format!("{body}\n{dynamic}\n")).unwrap();
    let nvcc = require_toolkit(TEST)
        .unwrap()
        .nvcc()
        .unwrap()
        .tool()
        .path
        .clone();
    let mut command = Command::new(nvcc);
    command.args([
        "-arch=sm_90",
        "-maxrregcount=32",
        "-cubin",
        "d.cu",
        "-o",
        "d.cubin",
    ]);
    assert!(
        command
            .current_dir(folder.path())
            .status()
            .unwrap()
            .success()
    );
    let run = |more: &[&str]| {
        let launch = ["--gpu", "h200", "--block", "64", "--dynamic-smem", "4096"];
        let output = warpwright(folder.path(), &[more, &launch].concat());
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        output
    };
    let said = |text: &[u8], form: &str| {
        let text = String::from_utf8_lossy(text).replace(['│', '·'], " ");
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for promise in [
            "t promises blocks of at most 64 threads; a larger launch fails",
            "t holds for launches with at most 4096 bytes of dynamic shared memory",
            "at most 4096 bytes of dynamic shared memory; nothing refuses others of as many threads or fewer",
        ] {
            assert!(text.contains(promise), "{form} lacks `{promise}`:\n{text}");
        }
    };
    said(
        &run(&["pass", "spill-to-shared", "d.cubin", "-o", "p.cubin"]).stderr,
        "pass",
    );
    let opt = [
        "opt",
        "d.cubin",
        "-o",
        "o.cubin",
        "--recipe",
        "spill-to-shared",
    ];
    said(
        &run(&[&opt[..], &["--report", "page.html"]].concat()).stdout,
        "opt",
    );
    said(
        &std::fs::read(folder.path().join("page.html")).unwrap(),
        "the page",
    );
    said(&run(&[&opt[..], &["--json"]].concat()).stdout, "--json");
    let check = ["check", "d.cubin", "p.cubin", "--block", "64"];
    let check = warpwright(
        folder.path(),
        &[&check[..], &["--dynamic-smem", "4096"]].concat(),
    );
    let said = String::from_utf8_lossy(&check.stdout);
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        said.contains("at most 4096 bytes of dynamic shared memory"),
        "{said}"
    );
    // The bound of the block is in the code, so the driver refuses larger ones.
    let args = ["explain", "p.cubin", "--block", "128"];
    let explain = warpwright(folder.path(), &args);
    let shown = String::from_utf8_lossy(&explain.stdout).into_owned();
    assert!(shown.contains("cannot be launched"), "{shown}");
}
