//! The passes over naive kernels: their options print and parse, refuse what cannot be, and what the emulator finds
//! wrong does not leave the executor.

#![allow(clippy::unwrap_used)]

use std::cell::Cell;
use std::path::Path;

use warpwright_check::Verdict;
use warpwright_cudac::File;
use warpwright_cudac::diag::Source;
use warpwright_ladder::CompileError;
use warpwright_naive::recognise::recognise;
use warpwright_naive::search::ranked;
use warpwright_pass::source::naive::way;
use warpwright_pass::{
    Artifact, Builders, Executor, Fuel, Invocation, Language, Level, Recipe, Refusal, RunError,
    Rung, Setting, SourceFile, Target,
};
use warpwright_target::lookup;
use warpwright_toolkit::testing::{require_toolkit, unfused_ptx};

fn example(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/naive");
    std::fs::read_to_string(folder.join(name).with_extension("cu")).unwrap()
}

fn run(
    name: &str,
    pass: &str,
    fuel: Fuel,
    compile: &dyn Fn(&SourceFile) -> Result<String, CompileError>,
) -> Result<warpwright_pass::Run, RunError> {
    let gpu = lookup("h200").unwrap();
    let text = example(name);
    let mut executor = Executor::new(Builders {
        compile_unfused: Some(compile),
        ..Builders::default()
    });
    executor.fuel = fuel;
    let target = Target {
        kernel: Some(name),
        setting: Setting::new(&gpu),
    };
    let file = Artifact::source(SourceFile {
        name: "kernel.cu".to_owned(),
        text,
        language: Language::Cuda,
    });
    let recipe: Recipe = pass.parse().unwrap();
    executor.run(&file, &target, &recipe, Level::Source)
}

fn missing(_: &SourceFile) -> Result<String, CompileError> {
    Err(CompileError::Missing("none here".to_owned()))
}

#[test]
fn what_is_printed_of_a_way_is_read_back() {
    let gpu = lookup("h200").unwrap();
    for name in ["mm", "tmv", "conv", "tp", "gelu", "prefix_sum", "rd"] {
        let file = File::parse(Source::new("kernel.cu", example(name))).unwrap();
        let kernel = recognise(&file, &file.kernels[0]).unwrap();
        for (one, _) in ranked(&kernel, &gpu) {
            let pass = Invocation::from(one.clone());
            let read: Invocation = pass.to_string().parse().unwrap();
            assert_eq!(way(&read), Some(one), "{pass}");
        }
    }
    for text in [
        "tiles",
        "tiles(32)",
        "tiles(32x8, points=2)",
        "tiles(99999999999x1)",
        "tiles(32x8, stage=4)",
        "tiles(32x8, stage=4x0)",
        "tiles(32x8, stage=4x4x2x2)",
        "tiles(32x8, specialise=true)",
        "team(32)",
        "team(64, rows)",
        "across(32x32, 8)",
        "fours(64)",
        "prefix(64, 4, 1)",
    ] {
        assert!(text.parse::<Invocation>().is_err(), "{text}");
    }
}

#[test]
fn numbers_that_are_no_kernel_are_refused() {
    for pass in [
        "tiles(0x0)",
        "tiles(65536x65536)",
        "tiles(32x8, points=4294967295x1)",
        "tiles(32x8, points=4x4, run=3x1)",
        "tiles(32x8, run=0x1)",
        "tiles(32x8, lanes=5)",
        "tiles(32x8, stage=4294967295x1)",
        "tiles(32x8, stage=16x4294967295)",
        "tiles(32x8, stage=16x4x4294967295)",
        "team(0, points)",
        "team(4294967264, points)",
        "team(64, 4294967295)",
        "team(64, 0)",
        "team(64, points, unroll=4294967295)",
        "across(0, 0)",
        "across(32, 4294967295)",
        "fours(0, 0)",
        "fours(64, 4294967295)",
        "prefix(4294967295, 4294967295)",
    ] {
        for name in ["mm", "mv", "tp", "gelu", "prefix_sum"] {
            let found = run(name, pass, Fuel::default(), &missing);
            let is_refused = matches!(
                found,
                Err(RunError::Refused {
                    refusal: Refusal::Way(_),
                    ..
                })
            );
            assert!(is_refused, "{name}: {pass}: {found:?}");
        }
    }
}

#[test]
fn without_a_compiler_nothing_is_shown_and_without_fuel_nothing_is_changed() {
    let run = |fuel| run("tp", "across(32, 8)", fuel, &missing).unwrap();
    let unseen = run(Fuel::default());
    assert!(unseen.steps[0].is_changed);
    let verdict = unseen.prove().unwrap_err().verdict;
    assert!(matches!(*verdict, Verdict::Undecided(_)), "{verdict}");
    let unchanged = run(Fuel::limited(0));
    assert_eq!(unchanged.unproved().bytes(), example("tp").as_bytes());
    assert_eq!(unchanged.prove().unwrap().rungs[0].0, Rung::Unchanged);
}

#[test]
fn what_computes_something_else_does_not_leave() {
    let Some(toolkit) = require_toolkit("what_computes_something_else_does_not_leave") else {
        return;
    };
    let is_broken = Cell::new(false);
    let compile = |file: &SourceFile| {
        let ptx = unfused_ptx(&toolkit, &file.text);
        let ptx = ptx.map_err(|e| CompileError::Rejected(e.to_string()))?;
        if !is_broken.get() {
            return Ok(ptx);
        }
        // In the tuned kernels alone.
        let at = ptx.find("mm_tuned").unwrap();
        let own = ptx[at..]
            .find("// .globl\tmm\n")
            .map_or(ptx.len(), |n| at + n);
        let tuned = ptx[at..own].replacen("mul.rn.f32", "add.rn.f32", 1);
        assert_ne!(tuned, &ptx[at..own]);
        Ok(format!("{}{tuned}{}", &ptx[..at], &ptx[own..]))
    };
    let pass = "tiles(32x8, stage=16x4)";
    let right = run("mm", pass, Fuel::default(), &compile).unwrap();
    let rungs = right.prove().unwrap().rungs;
    assert_eq!(rungs[0].0, Rung::Emulated);
    is_broken.set(true);
    let wrong = run("mm", pass, Fuel::default(), &compile).unwrap();
    let verdict = wrong.prove().unwrap_err().verdict;
    assert!(matches!(*verdict, Verdict::Refuted(_)), "{verdict}");
}
