//! The program that `tune` measures with, on the host: kernels and launchers of versions with its own data, sizes and
//! comparisons, threads of a block one after the other. What it shows is the program; versions run in the emulator.

#![allow(clippy::unwrap_used)]

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Output};

use warpwright_cudac::File;
use warpwright_cudac::diag::Source;
use warpwright_stencil::evaluate::Sizes;
use warpwright_stencil::ir::Stencil;
use warpwright_stencil::versions::{Version, odd_sizes, reference, tolerance, versions};
use warpwright_stencil::{dsl, extract, harness};
use warpwright_toolkit::testing::require_toolkit;

/// What the texts need of CUDA.
const HOST: &str = include_str!("host.h");

fn read(name: &str) -> Stencil {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/stencils");
    let text = std::fs::read_to_string(folder.join(name)).unwrap();
    if name.ends_with(".stencil") {
        return dsl::parse(&text).unwrap();
    }
    let file = File::parse(Source::new(name, text)).unwrap();
    extract::extract(&file, extract::choose(&file, None).unwrap()[0]).unwrap()
}

/// `KERNEL<<<GRID, BLOCK, …>>>(…);` as `run_blocks(GRID, BLOCK, [&] { KERNEL(…); });`.
fn without_launches(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("<<<") {
        let is_part = |c: char| c.is_alphanumeric() || c == '_';
        let at = before.rfind(|c| !is_part(c)).map_or(0, |at| at + 1);
        let (shape, after) = after.split_once(">>>").unwrap();
        let (call, after) = after.split_once(";\n").unwrap();
        // Commas within parentheses are not between arguments.
        let mut depth = 0;
        let shape: String = shape
            .chars()
            .map(|c| {
                depth += i32::from(c == '(') - i32::from(c == ')');
                if c == ',' && depth == 0 { '\n' } else { c }
            })
            .collect();
        let mut shape = shape.lines();
        let (grid, block) = (shape.next().unwrap(), shape.next().unwrap());
        let _ = writeln!(
            out,
            "{}run_blocks({grid}, {block}, [&] {{ {}{call}; }});",
            &before[..at],
            &before[at..]
        );
        rest = after;
    }
    out + rest
}

fn run(program: &Path, mode: &str, numbers: &str, what: &str, sizes: &Sizes) -> Output {
    let mut command = Command::new(program);
    command.args([mode, numbers, what]);
    command.args(sizes.values().map(ToString::to_string));
    command.output().unwrap()
}

fn distances(output: &Output) -> Vec<f64> {
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{output:?}");
    let of = |line: &str| {
        let value: serde_json::Value = serde_json::from_str(line).unwrap();
        value["distance"].as_f64().unwrap()
    };
    text.lines().map(of).collect()
}

#[test]
fn the_program_agrees_with_the_host() {
    if require_toolkit("harness").is_none() {
        return;
    }
    let gpu = warpwright_target::lookup("h200").unwrap();
    let folder = tempfile::tempdir().unwrap();
    for name in [
        "published/2d81pt.cu",
        "published/derivative.cu",
        "2d25pt.stencil",
        // Its arrays have components.
        "rhs4th3fort.stencil",
    ] {
        let stencil = read(name);
        // Planes of 304 by 304 elements are long for one core.
        let sizes: Sizes = match name.contains("derivative") || name.contains("rhs4") {
            true => stencil.parameters.values().map(|_| 7).collect(),
            false => odd_sizes(&stencil),
        };
        let all = versions(&stencil, &gpu, (&sizes, None), 0, true);
        let has_no_tile = |v: &&Version| v.sweep.entries.iter().all(|e| !e.body.contains("__sync"));
        let all: Vec<&Version> = all.iter().filter(has_no_tile).step_by(5).collect();
        assert!(all.len() > 1, "{name}");
        let mut texts = vec![String::new()];
        let mut launchers = Vec::new();
        for (at, version) in all.iter().enumerate() {
            let (unit, launcher) = version.unit(&stencil, &format!("version{at}"));
            texts.push(unit.replace("#include <cuda_runtime.h>", ""));
            launchers.push(launcher);
        }
        texts[0] = harness::program(&stencil, &launchers);
        let program = folder.path().join("program");
        let mut compiler = Command::new("c++");
        compiler
            .args(["-O1", "-std=c++17", "-w", "-o"])
            .arg(&program);
        for (at, text) in texts.iter().enumerate() {
            let source = folder.path().join(format!("unit{at}.cpp"));
            std::fs::write(&source, format!("{HOST}{}", without_launches(text))).unwrap();
            compiler.arg(source);
        }
        let built = compiler.output().unwrap();
        assert!(
            built.status.success(),
            "{}",
            String::from_utf8_lossy(&built.stderr)
        );
        let mut host = reference(&stencil, &sizes).unwrap();
        let file = folder.path().join("expected");
        let numbers: Vec<String> = (0..all.len()).map(|n| n.to_string()).collect();
        let (numbers, path) = (numbers.join(","), file.display().to_string());
        std::fs::write(&file, harness::expected(&stencil, &host)).unwrap();
        let found = distances(&run(&program, "check", &numbers, &path, &sizes));
        assert_eq!(found.len(), all.len(), "{name}");
        for apart in found {
            assert!(apart <= tolerance(&stencil), "{name}: {apart:e}");
        }
        let timed = distances(&run(&program, "time", &numbers, "1", &sizes));
        assert_eq!(timed.len(), all.len(), "{name}");
        for apart in timed {
            assert!(apart <= tolerance(&stencil), "{name}: {apart:e}");
        }
        // A number that is wrong, and one that is none.
        let (written, _) = stencil.arrays.iter().find(|(_, a)| a.written).unwrap();
        let middle = host.arrays[written].len() / 2;
        for wrong in [host.arrays[written][middle] + 0.5, f64::NAN] {
            host.arrays[written][middle] = wrong;
            std::fs::write(&file, harness::expected(&stencil, &host)).unwrap();
            let found = distances(&run(&program, "check", "0", &path, &sizes));
            assert!(found[0] > 1e-3, "{name}: {found:?}");
        }
        let short = vec![0u8; 8];
        std::fs::write(&file, short).unwrap();
        let output = run(&program, "check", "0", &path, &sizes);
        assert_eq!(output.status.code(), Some(2), "{name}");
    }
}
