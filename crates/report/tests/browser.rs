//! The pages in a browser, with real clicks. SKIPPED where there is no Chromium, no Node or no playwright-core
//! (Debian's `chromium`, npm's `playwright-core`; WARPWRIGHT_PLAYWRIGHT names its folder).

#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

fn candidate(recipe: &str, registers: u32, warps: u32, time: f64) -> Value {
    json!({
        "recipe": recipe,
        "resources": {"registers": registers, "stack_bytes": 0, "spill_store_bytes": 40, "spill_load_bytes": 60,
            "spill_moved_bytes": 0, "shared_bytes": 1024, "barriers": 0},
        "residency": {"blocks": warps / 8, "warps": warps, "percent": 12.5, "limiters": ["registers"]},
        "score": {"relative_time": time, "bound": "latency", "active_warps": warps},
        "measured": null, "rejected": null, "same_code_as": null
    })
}

fn kernel(name: &str) -> Value {
    let candidates = [
        candidate("default", 135, 8, 1.0),
        candidate("maxnreg(64); spill-to-shared", 64, 32, 0.7),
        candidate("maxnreg(32)", 32, 64, 2.0),
    ];
    json!({
        "name": name, "block": [256, 1, 1], "block_source": "option", "dynamic_smem": 0, "recipe_text": "",
        "candidates": candidates, "chosen": 1, "reason": "more warps hide more latency", "notes": ["a note"]
    })
}

/// What `explain` says of a kernel, its source, PTX and machine code linked.
fn explained(name: &str, count: usize) -> Value {
    let curve: Vec<usize> = (0..count).map(|at| (at * 7) % 90).collect();
    let row = |at: u32, line: &str| {
        json!({"at": at, "units": 80 + at % 9, "text": "fma.rn.f32 %f1, %f2, %f3, %f4", "line": line,
            "source": "for (int k = 0; k < 40; ++k) v[k] = v[k] * v[(k + 7) % 40] + v[(k + 13) % 40];",
            "ranges": "|due x".repeat(8)})
    };
    let rows = |from: u32| -> Vec<Value> {
        let lines = ["k.cu:3", "k.cu:3", "k.cu:4", "k.cu:5", "k.cu:3"];
        (from..)
            .zip(lines)
            .map(|(at, line)| row(at, line))
            .collect()
    };
    let side = |from: u32, lines: &[(usize, &str)], origins: &[(usize, u32)]| {
        let line = |at: usize| lines.iter().find(|line| line.0 == at).map(|line| line.1);
        let lines: Vec<Option<&str>> = (0..count).map(line).collect();
        let origin = |at: usize| origins.iter().find(|of| of.0 == at).map(|of| of.1);
        let origins: Vec<Option<u32>> = (0..count).map(origin).collect();
        json!({"peak_units": 89, "instructions": count, "loop_depth": 1, "curve": curve, "around": rows(from),
            "lines": lines, "origins": origins, "depths": vec![1; count],
            "texts": vec!["fma.rn.f32 %f1111, %f1112, %f1113, %f1114"; count],
            "live": ["%f1", "%f2"], "columns": vec!["%f1024"; 48],
            "peaks": [{"first": 38, "last": 39, "units": 89, "line": "k.cu:3", "text": "fma.rn.f32 %f1, %f2, %f3, %f4"}],
            "crossing": [{"register": "%f9", "units": 1, "length": 90, "uses": 2, "line": "k.cu:4", "defined_by": "mov"}]})
    };
    let ptx = [
        (0, "k.cu:3"),
        (1, "k.cu:3"),
        (2, "k.cu:3"),
        (300, "k.cu:4"),
        (301, "k.cu:4"),
        (350, "k.cu:5"),
        (count - 1, "k.cu:5"),
    ];
    let code = [
        (0, "k.cu:5"),
        (1, "k.cu:5"),
        (2, "k.cu:5"),
        (3, "k.cu:3"),
        (200, "k.cu:4"),
        (399, "k.cu:3"),
    ];
    let last = count as u32 - 1;
    let origins = [(0, 350), (1, last), (2, last), (3, 0)];
    let source = ["k.cu:3", "k.cu:4", "k.cu:5"]
        .map(|line| json!({"line": line, "text": "\tfor (int k = 0; k < 40; ++k) v[k] = v[(k + 7) % 40];"}));
    json!({
        "kernel": name, "block": [32, 1, 1], "block_source": "bound",
        "resources": {"registers": 10, "stack_bytes": 0, "shared_bytes": 0},
        "residency": {"blocks": 2, "warps": 8, "percent": 12.5, "limiters": ["blocks"]},
        "staircase": [{"blocks": 1, "warps": 8, "percent": 12.5, "regs": 255}],
        "causes": {"cycles": 10.0, "causes": [{"cause": "fixed-latency", "share": 0.5}], "each": vec![1.0; count],
            "places": [{"line": "k.cu:5", "at": "0x10", "share": 0.5, "text": "FFMA R1, R2, R3, R4", "causes": []}]},
        "pressure": side(1, &ptx, &[]), "machine_code": side(7, &code, &origins), "source": source
    })
}

fn documents() -> Vec<(&'static str, Value)> {
    let long = "a_kernel_with_a_name_that_is_longer_than_any_telephone_is_wide_".repeat(3);
    let side = |name: &str| {
        json!({"place": format!("{name}:14: st"), "value": "add64(ld.param.u64(param.0), ...)".repeat(20),
            "around": [{"line": 14, "text": "st.global.v4.f32 [%rd1], {%f1, %f2, %f3, %f4};", "is_it": true}]})
    };
    vec![
        (
            "opt",
            json!({"schema": "warpwright.opt/1", "input": "k.cu", "gpu": "h200 (sm_90)", "ptxas": "13.5.37",
                "kernels": [kernel("_Z1kPf"), kernel(&long)], "output": null, "emitted": "cubin",
                "command": "warpwright opt k.cu --report r.html", "explained": [explained("_Z1kPf", 400)]}),
        ),
        (
            "explain",
            json!({"schema": "warpwright.explain/1", "input": "k.ptx", "gpu": "sm_90", "kernels": [explained(&long, 10_000)]}),
        ),
        (
            "check",
            json!({"schema": "warpwright.check/1", "original": "a.ptx", "rewritten": "b.ptx", "how": "symbolically",
                "verdict": "refuted", "functions": [
                    {"name": "_Z1gPf", "verdict": "refuted",
                        "text": format!("refuted: it stores another value\n  {}", "add.u32 %r1, %r2, 3; ".repeat(30))},
                    {"name": "_Z1kPf", "verdict": "refuted", "text": "",
                        "tried": [{"rung": "symbolically", "found": "in-form"}, {"rung": "emulator", "found": "different"}],
                        "witness": {"kernel": "_Z1kPf", "blocks": 2, "block": [64, 1, 1], "number": 40, "kind": "word",
                            "parameter": long, "word": 7, "was": 1, "is": 2},
                        "difference": {"what": "it stores another value", "cause": null, "original": side("a.ptx"),
                            "rewritten": side("b.ptx"), "path": [long, "b.ptx:3: ld"]}}]}),
        ),
        (
            "rewrite",
            json!({"schema": "warpwright.rewrite/1", "original": "a.cu", "rewritten": "b.cu", "verdict": "refuted",
                "meaning": "not the same", "launches": [
                    {"size": "small", "verdict": "proved-at-launches", "elements": 4096, "terms": 18541, "why": [
                        {"code": "alike", "text": "1 of 16 groups of blocks were compared"}]},
                    {"size": "small", "set": ["K=63"], "verdict": "refuted", "elements": 0, "terms": 0, "why": [
                        {"code": "out-of-bounds", "text": format!("the rewritten kernel reads outside of `{long}`")}]}],
                "holds_where": {"text": "right where K % 16 == 0 (`--require 'K % 16 == 0'` tries more of them)"},
                "untried": [{"text": "buffers that share memory: each was one of its own"}]}),
        ),
        (
            "in-place",
            json!({"schema": "warpwright.tune-in-place/1", "gpu": "NVIDIA H200", "program": ["./a.out", &long],
                "date": "today", "kernels": [
                    {"kernel": "_Z1kPf", "name": "k(float*)", "digest": "12", "class": "block 256", "share": 0.75,
                     "candidates": 9, "original_ns": 4000.0, "winner_ns": 3000.0, "in_program": 0.8,
                     "winner": "unroll(8); cache(loads=no-allocate); maxnreg(64) of the PTX", "stays": null,
                     "edit": {"text": "`#pragma unroll 8` at its loops", "gives": {"measured": 0.8}}},
                    {"kernel": &long, "name": &long, "digest": "13", "class": "block 32", "share": 0.25, "candidates": 0,
                     "original_ns": null, "winner_ns": null, "in_program": null, "winner": null,
                     "stays": "it calls `assert`"}]}),
        ),
        (
            "naive",
            json!({"schema": "warpwright.naive-opt/1", "input": "mm.cu", "kernel": "mm", "gpu": "sm_90",
                "accesses": ["a[idy * k + i]: one element for a warp"], "chosen": 0, "original_ms": 2.0,
                "versions": [{"schedule": "tiles of 128x128, 8x8 elements per thread, through shared memory in steps of 8",
                    "predicted_ms": 0.5, "bound": "issue", "rejected": null}],
                "steps": ["tiles"], "checked": null, "unchecked": "there is no nvcc", "launches": 1, "output": "o.cu"}),
        ),
    ]
}

fn found(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let mut places = std::env::split_paths(&path).map(|folder| folder.join(program));
    places.find(|place| place.is_file())
}

#[test]
fn pages_hold_in_a_browser() {
    let browser = ["chromium", "chromium-browser", "google-chrome"];
    let browser = browser.into_iter().find_map(found);
    let (Some(browser), Some(node)) = (browser, found("node")) else {
        println!("SKIPPED the pages in a browser: no Chromium or no Node");
        return;
    };
    let name = std::env::var("WARPWRIGHT_PLAYWRIGHT").unwrap_or_else(|_| "playwright-core".into());
    let asked = Command::new(&node)
        .arg("-e")
        .arg(format!("require({name:?})"))
        .output();
    if !asked.unwrap().status.success() {
        println!(
            "SKIPPED the pages in a browser: no playwright-core (npm install playwright-core)"
        );
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let shots = std::env::var_os("WARPWRIGHT_SCREENSHOTS").map(PathBuf::from);
    let mut pages = Vec::new();
    for (name, document) in documents() {
        let place = folder.path().join(format!("{name}.html"));
        let page = warpwright_report::page(&document).unwrap();
        assert!(page.len() < 3_000_000, "{name}: {} bytes", page.len());
        std::fs::write(&place, page).unwrap();
        pages.push(place);
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/browser.js");
    let output = Command::new(node)
        .arg(script)
        .arg(browser)
        .arg(shots.as_deref().unwrap_or(folder.path()))
        .args(&pages)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
}
