//! A second's worth of the pass fuzzer; `warpwright-fuzz passes` is the long form.

use warpwright_fuzz::case::Plan;
use warpwright_fuzz::totals::Totals;
use warpwright_fuzz::{machine_code, passes};
use warpwright_toolkit::testing::require_toolkit;

#[test]
fn generated_kernels_hold_through_every_pass() {
    let mut totals = Totals::default();
    let plans = [Plan::Sizes, Plan::Strata, Plan::Rare];
    for (plan, seed) in plans
        .iter()
        .flat_map(|plan| (0..16).map(move |seed| (plan, 3 * seed)))
    {
        if let Err(error) = passes::check(*plan, seed, &mut totals) {
            let (run, failure) = *error;
            let program = plan.program(seed);
            let text = passes::report(*plan, &program, &run, &failure);
            panic!("seed {seed}, {}: {failure}\n\n{text}", run.name);
        }
    }
    for run in passes::runs(0) {
        let (pass, counts) = (run.name, totals.pass(run.name));
        assert!(
            counts.changed > 3,
            "the test of {pass} runs dry: {counts:?}"
        );
    }
    let controls = &totals.controls;
    assert!(
        controls.idle >= 8 && controls.failing([]).is_empty(),
        "{controls:?}"
    );
    let caught = controls.classes.values().filter(|class| class.caught > 0);
    assert!(caught.count() >= 8, "{controls:?}");
}

#[test]
fn machine_code_holds_through_every_pass() {
    let Some(toolkit) = require_toolkit("passes over machine code") else {
        return;
    };
    let assembler = machine_code::Assembler::of(toolkit.clone()).expect("an assembler");
    let mut totals = Totals::default();
    // The larger kernels: those that spill.
    for seed in (0..12).map(|n| 4 * n + 2 + n % 2) {
        if let Err(error) = machine_code::check(Plan::Sizes, seed, &assembler, &mut totals) {
            let (run, failure) = *error;
            let program = machine_code::program(Plan::Sizes, seed);
            let text = machine_code::report(&program, &assembler, &run, &failure);
            panic!("seed {seed}, {}: {failure}\n\n{text}", run.recipe);
        }
    }
    let counts = totals.pass("spill-to-shared");
    assert!(counts.changed > 3, "the test runs dry: {counts:?}");
    let controls = &totals.controls;
    let caught = controls.classes.values().filter(|class| class.caught > 0);
    assert!(
        caught.count() >= 4 && controls.failing([]).is_empty(),
        "{controls:?}"
    );
}
