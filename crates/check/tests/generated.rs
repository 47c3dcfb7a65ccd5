//! Generated kernels: random spills of them are proved, and what is proved computes the same.
//!
//! `WARPWRIGHT_CHECK_SEEDS=5000` makes it a long run.

mod common;
#[path = "common/rewrite.rs"]
mod rewrite;

use common::{Run, parse, run};
use rewrite::{damage, spill};
use warpwright_check::{Options, Verdict, check_modules};
use warpwright_fuzzgen::{Config, Rng, generate, launch_toml, print};
use warpwright_ptx::Module;

/// How many seeds: fewer in the normal tests.
fn seeds(normal: u64) -> std::ops::Range<u64> {
    let long = std::env::var("WARPWRIGHT_CHECK_SEEDS")
        .ok()
        .and_then(|text| text.parse().ok());
    0..long.unwrap_or(normal)
}

fn verdict(original: &Module, new: &Module) -> Verdict {
    let mut verdicts = check_modules(original, new, &Options::default());
    verdicts.pop().expect("one kernel").1
}

#[test]
fn spilled_kernels_are_proved() {
    for seed in seeds(30) {
        let program = generate(seed, &Config::default());
        let original = parse("original.ptx", &print(&program)).expect("valid PTX");
        let mut rng = Rng::new(seed);
        let count = [1, 3, 10, 40][rng.below(4)];
        let text = spill(&original, &mut rng, count, program.block as u32);
        let Some(new) = parse("spilled.ptx", &text) else {
            panic!("seed {seed}:\n{text}")
        };
        let verdict = verdict(&original, &new);
        assert!(verdict.is_proved(), "seed {seed}: {verdict}\n{text}");
    }
}

#[test]
fn damaged_kernels_that_compute_something_else_are_never_proved() {
    let (mut different, mut refuted, mut proved) = (0, 0, 0);
    for seed in seeds(30) {
        let program = generate(seed, &Config::default());
        let launch = launch_toml(&program);
        let original = parse("original.ptx", &print(&program)).expect("valid PTX");
        let mut rng = Rng::new(seed);
        let before = run(&original, &launch);
        // Damage the kernel itself, or a version with spills.
        let text = spill(&original, &mut rng, 8, program.block as u32);
        let spilled = parse("spilled.ptx", &text).expect("valid PTX");
        for base in [&original, &spilled, &spilled] {
            let Some(text) = damage(base, &mut rng) else {
                continue;
            };
            let Some(new) = parse("damaged.ptx", &text) else {
                continue;
            };
            let verdict = verdict(&original, &new);
            let after = run(&new, &launch);
            let is_different = after != before;
            let difference = describe(&before, &after);
            let why = format!("seed {seed}: proved, but it computes something else\n{difference}");
            assert!(!(is_different && verdict.is_proved()), "{why}\n{text}");
            different += usize::from(is_different);
            proved += usize::from(verdict.is_proved());
            refuted += usize::from(matches!(verdict, Verdict::Differs(_)));
        }
    }
    // The test must not run dry.
    assert!(
        different > 10 && refuted > 10 && proved > 3,
        "{different} {refuted} {proved}"
    );
}

/// The first difference of two runs.
fn describe(before: &Run, after: &Run) -> String {
    let (Run::Finished(before), Run::Finished(after)) = (before, after) else {
        let shorten = |run: &Run| match run {
            Run::Finished(_) => "it finishes".to_owned(),
            Run::Faulted(fault) => fault.clone(),
        };
        return format!("{}\n{}", shorten(before), shorten(after));
    };
    let pairs = before.iter().zip(after).enumerate();
    let differing = pairs.filter(|(_, (a, b))| a != b);
    let first = differing.map(|(buffer, (a, b))| {
        let at = a.iter().zip(b).position(|(a, b)| a != b);
        format!("buffer {buffer} at byte {at:?}")
    });
    first.collect::<Vec<_>>().join(", ")
}
