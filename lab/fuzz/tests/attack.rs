//! One wrong edit at a time in machine code that is proved, on a handful of generated kernels.

#![allow(clippy::unwrap_used, missing_docs)]

use warpwright_fuzz::attack;
use warpwright_fuzz::controls::Plan;
use warpwright_fuzz::machine_code::Assembler;
use warpwright_toolkit::testing::require_toolkit;

#[test]
fn no_wrong_edit_is_proved() {
    let Some(toolkit) = require_toolkit("wrong edits of machine code") else {
        return;
    };
    let plan = Plan {
        from: 0,
        count: 6,
        seconds: 600,
        jobs: 2,
    };
    let report = attack::run(plan, &Assembler::of(toolkit).unwrap());
    assert_eq!(report.failures, []);
    assert!(report.versions.len() >= 3, "{report:?}");
    assert!(report.missing().len() <= 4, "{:?}", report.missing());
    assert!(report.planted() >= 200, "{report:?}");
    let mut all = report.classes.values();
    assert!(all.all(|class| class.caught == class.planted));
}
