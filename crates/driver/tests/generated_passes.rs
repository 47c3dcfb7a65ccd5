//! Generated kernels through the register passes: verified, proved, and the same in the emulator.
//!
//! `WARPWRIGHT_PASS_SEEDS=10000` makes it a long run.

mod common;

use common::{apply, assert_assignment, emulate, pressure};
use warpwright_driver::context::Context;
use warpwright_fuzzgen::{Config, generate, launch_toml, print};
use warpwright_launch::{Launch, LaunchFile, no_files};
use warpwright_ptx::Module;

/// How many seeds: fewer in the normal tests.
fn seeds(normal: u64) -> std::ops::Range<u64> {
    let long = std::env::var("WARPWRIGHT_PASS_SEEDS").ok();
    0..long.and_then(|text| text.parse().ok()).unwrap_or(normal)
}

struct Case {
    module: Module,
    launch: Launch,
    inputs: Vec<Vec<u8>>,
}

fn case(seed: u64) -> Case {
    let program = generate(seed, &Config::default());
    let (module, _) = Module::parse("generated.ptx", &print(&program));
    let launch = LaunchFile::parse(&launch_toml(&program), "launch.toml")
        .and_then(|file| file.resolve("small", &[]))
        .expect("a launch");
    let inputs = launch.buffers().map(|b| b.materialize(&no_files));
    let inputs = inputs.collect::<Result<_, _>>().expect("inputs");
    Case {
        module,
        launch,
        inputs,
    }
}

/// Runs a pass on generated kernels towards a part of their pressure; returns how many it changed.
fn run(pass: &str, options: &[(&str, &str)], seed: u64, percent: u32) -> Option<Module> {
    let case = case(seed);
    let (kernel, _) = case.module.kernels().next().expect("a kernel");
    let limit = (pressure(&case.module, kernel) * percent / 100).max(8);
    let context = Context {
        launch: Some(&case.launch),
        regs: Some(limit),
        options: options.iter().map(|&(k, v)| (k.into(), v.into())).collect(),
        ..Context::default()
    };
    let new = match apply(pass, &case.module, &context) {
        Ok(new) => new,
        Err(note) => {
            let allowed = [
                "needs more than",
                "nothing that could",
                "is within the goal",
            ];
            assert!(
                allowed.iter().any(|a| note.contains(a)),
                "seed {seed}: {note}"
            );
            return None;
        }
    };
    let before = emulate(&case.module, &case.launch, &case.inputs);
    let after = emulate(&new, &case.launch, &case.inputs);
    assert!(before == after, "seed {seed}:\n{}", new.source);
    if pass == "allocate" {
        assert_assignment(&new, kernel, limit);
        assert!(pressure(&new, kernel) <= limit, "seed {seed}");
    }
    Some(new)
}

#[test]
fn recomputed() {
    let mut changed = 0;
    for seed in seeds(12) {
        let rules = ["full", "paper"][seed as usize % 2];
        for percent in [75, 0] {
            changed += u32::from(run("remat", &[("rules", rules)], seed, percent).is_some());
        }
    }
    // The test must not run dry.
    assert!(changed > 0);
}

#[test]
fn spilled_to_shared_memory() {
    let mut lower = 0;
    for seed in seeds(12) {
        let layout = ["slot-major", "thread-major"][seed as usize % 2];
        let before = case(seed).module;
        let kernel = before.kernels().next().expect("a kernel").0;
        if let Some(new) = run("spill-shared", &[("layout", layout)], seed, 75) {
            assert!(
                pressure(&new, kernel) < pressure(&before, kernel),
                "seed {seed}"
            );
            lower += 1;
        }
    }
    assert!(lower > 3, "the test ran dry: {lower}");
}

#[test]
fn allocated() {
    let mut changed = 0;
    for seed in seeds(12) {
        let options = [
            ("space", ["shared", "local"][seed as usize % 2]),
            ("cut", ["cell", "class"][seed as usize / 2 % 2]),
        ];
        let percent = [100, 80, 60][seed as usize % 3];
        changed += u64::from(run("allocate", &options, seed, percent).is_some());
    }
    assert!(changed > 3, "the test ran dry: {changed}");
}
