//! Kernels that rely on the registers that they are launched with, or on how many of their blocks reside: no command gives
//! them others, and each says why.

#![allow(clippy::unwrap_used)]

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use warpwright_toolkit::testing::require_toolkit;

fn warpwright(folder: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_warpwright"));
    let cache = folder.join("builds");
    command.env("WARPWRIGHT_BUILDS", cache);
    command.args(args).current_dir(folder).output().unwrap()
}

#[track_caller]
fn said(folder: &Path, code: i32, args: &[&str]) -> String {
    let output = warpwright(folder, args);
    assert_eq!(output.status.code(), Some(code), "{args:?}: {output:?}");
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8(text).unwrap();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[track_caller]
fn document(folder: &Path, args: &[&str]) -> Value {
    let output = warpwright(folder, args);
    assert_eq!(output.status.code(), Some(0), "{args:?}: {output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// A kernel that keeps `values` numbers in registers over what `middle` does, under these directives.
fn kernel(directives: &str, values: u32, middle: &str) -> String {
    let mut body = String::new();
    for i in 0..values {
        writeln!(body, "ld.global.f32 %f{i}, [%d3+{}];", 4 * i).unwrap();
    }
    body.push_str(middle);
    for i in 0..values {
        let other = (i + 7) % values;
        writeln!(body, "fma.rn.f32 %f{i}, %f{i}, %f{other}, %f{i};").unwrap();
    }
    for i in 0..values {
        writeln!(body, "st.global.f32 [%d3+{}], %f{i};", 4 * i).unwrap();
    }
    format!(
        ".version 8.0\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .u64 p, .param .u64 q) {directives}\n{{\n\
         .reg .f32 %f<{values}>;\n.reg .b64 %d<4>;\n.reg .b32 %r<3>;\n.reg .pred %p<2>;\n\
         ld.param.u64 %d1, [p];\nld.param.u64 %d2, [q];\nmov.u32 %r1, %tid.x;\nmul.wide.u32 %d3, %r1, {};\n\
         add.s64 %d3, %d3, %d1;\n{body}ret;\n}}\n",
        4 * values
    )
}

const MOVES: &str = "setp.lt.u32 %p1, %r1, 256;\n@%p1 bra MORE;\nsetmaxnreg.dec.sync.aligned.u32 40;\nret;\nMORE:\n\
                     setmaxnreg.inc.sync.aligned.u32 232;\n";
const POLLS: &str =
    "WAIT:\nld.acquire.gpu.global.u32 %r2, [%d2];\nsetp.eq.u32 %p1, %r2, 0;\n@%p1 bra WAIT;\n";

#[test]
fn a_kernel_with_setmaxnreg_keeps_the_registers_that_it_is_launched_with() {
    if require_toolkit("reliance: setmaxnreg").is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let text = kernel(".maxntid 384, 1, 1 .minnctapersm 1", 160, MOVES);
    std::fs::write(at.join("k.ptx"), text).unwrap();
    let gpu = ["--gpu", "sm_90a"];
    let explained = said(at, 0, &[&["explain", "k.ptx"], &gpu[..]].concat());
    assert!(
        explained.contains("no staircase: it moves registers between its warps"),
        "{explained}"
    );
    assert!(!explained.contains("one block more"), "{explained}");

    let found = document(
        at,
        &[&["opt", "k.ptx", "--json", "-o", "k.cubin"], &gpu[..]].concat(),
    );
    let report = &found["kernels"][0];
    assert_eq!(report["chosen"], 0, "{report}");
    assert_eq!(
        report["candidates"].as_array().unwrap().len(),
        1,
        "{report}"
    );
    let notes = report["notes"].to_string();
    assert!(
        notes.contains("no register limit, level, bound or spill is tried"),
        "{notes}"
    );

    for recipe in [
        "maxnreg(32)",
        "minnctapersm(1)",
        "maxntid(384)",
        "usage-level(10)",
        "reduce(registers=64)",
        "allocate(64)",
        "throttle(1)",
        "throttle(1, by=smem)",
        "compact",
        "demote(64)",
        "smem-spilling",
    ] {
        let args = [
            "opt",
            "k.ptx",
            "--block",
            "384",
            "--dynamic-smem",
            "0",
            "--recipe",
            recipe,
        ];
        let refused = said(at, 1, &[&args, &gpu[..]].concat());
        assert!(refused.contains("setmaxnreg"), "{recipe}: {refused}");
    }
    let of_code = said(at, 0, &["explain", "k.cubin"]);
    assert!(
        of_code.contains("no staircase: it moves registers"),
        "{of_code}"
    );
    let args = [
        "pass",
        "throttle(1)",
        "k.cubin",
        "--block",
        "384",
        "--dynamic-smem",
        "0",
    ];
    let refused = said(at, 0, &[&args[..], &["-o", "t.cubin"]].concat());
    assert!(
        refused.contains("unchanged by throttle: it moves registers"),
        "{refused}"
    );
}

#[test]
fn where_blocks_wait_for_each_other_no_fewer_reside() {
    if require_toolkit("reliance: blocks that wait").is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let bounds = ".maxntid 256, 1, 1 .minnctapersm 4";
    std::fs::write(at.join("waits.ptx"), kernel(bounds, 90, POLLS)).unwrap();
    std::fs::write(at.join("free.ptx"), kernel(bounds, 90, "bar.sync 0;\n")).unwrap();
    let common = ["--gpu", "sm_90a", "--dynamic-smem", "0"];
    let opt = |file: &str, recipe: &str| {
        let args = [&["opt", file, "--recipe", recipe], &common[..]].concat();
        let output = warpwright(at, &args);
        (
            output.status.code(),
            String::from_utf8(output.stderr).unwrap(),
        )
    };
    let unbounded = ".maxntid 256, 1, 1";
    std::fs::write(at.join("small.ptx"), kernel(unbounded, 40, POLLS)).unwrap();
    std::fs::write(at.join("small-free.ptx"), kernel(unbounded, 40, "")).unwrap();
    for (recipe, waits, free) in [
        ("maxnreg(255)", "waits.ptx", "free.ptx"),
        ("throttle(2)", "small.ptx", "small-free.ptx"),
    ] {
        let (code, said) = opt(waits, recipe);
        assert_eq!(code, Some(1), "{recipe}: {said}");
        assert!(said.contains("may wait for each other"), "{recipe}: {said}");
        let (code, said) = opt(free, recipe);
        assert_eq!(code, Some(0), "{recipe}: {said}");
    }
    let (code, said) = opt("waits.ptx", "maxnreg(32)");
    assert_eq!(code, Some(0), "more blocks are no harm: {said}");

    let blocks = |candidate: &Value| candidate["residency"]["blocks"].as_u64();
    for (file, is_free) in [("free.ptx", true), ("waits.ptx", false)] {
        let found = document(at, &[&["opt", file, "--json"], &common[..]].concat());
        let candidates = found["kernels"][0]["candidates"].as_array().unwrap();
        let default = blocks(&candidates[0]);
        let mut fewer = candidates
            .iter()
            .filter(|c| blocks(c) < default && blocks(c).is_some());
        let is_open = fewer.any(|c| c["rejected"].is_null());
        assert_eq!(is_open, is_free, "{file}: {candidates:#?}");
    }
}

/// The build with the fewest spills cannot be launched with blocks of this size; CRAT goes by those that can.
#[test]
fn blocks_of_1024_threads_have_a_spill_cost() {
    if require_toolkit("reliance: 1024 threads").is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    std::fs::write(
        at.join("k.ptx"),
        kernel(".maxntid 1024, 1, 1", 96, "bar.sync 0;\n"),
    )
    .unwrap();
    let found = document(at, &["opt", "k.ptx", "--gpu", "sm_90a", "--json"]);
    let report = &found["kernels"][0];
    let default = &report["candidates"][0];
    assert!(
        default["resources"]["spill_store_bytes"].as_u64() > Some(0),
        "{default}"
    );
    assert!(!default["score"]["tpsc"].is_null(), "{default}");
    assert!(!report["crat"]["choice"].is_null(), "{}", report["crat"]);
}
