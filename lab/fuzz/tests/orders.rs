//! Other orders of machine code, on a handful of generated kernels.

#![allow(clippy::unwrap_used, missing_docs)]

use warpwright_fuzz::controls::Plan;
use warpwright_fuzz::orders;
use warpwright_toolkit::testing::require_toolkit;

#[test]
fn right_orders_are_proved_and_wrong_ones_are_not() {
    let Some(toolkit) = require_toolkit("orders of machine code") else {
        return;
    };
    let plan = Plan {
        from: 0,
        count: 12,
        seconds: 600,
        jobs: 2,
    };
    let report = orders::run(plan, u64::MAX, &toolkit.ptxas().unwrap());
    assert_eq!(report.failures, []);
    assert!(report.proved >= 8, "{report:?}");
    assert!(report.classes.len() >= 6, "{report:?}");
    let all = report.classes.values();
    assert!(all.clone().map(|class| class.planted).sum::<u64>() >= 100);
    assert!(all.into_iter().all(|class| class.caught == class.planted));
}
