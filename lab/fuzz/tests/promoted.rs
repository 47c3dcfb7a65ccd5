//! A second's worth of loops with what they store in registers.

use warpwright_fuzz::promoted::{self, Totals};

#[test]
fn promoted_loops_compute_the_same_whatever_pointers_are_one() {
    let mut totals = Totals::default();
    for seed in 0..100 {
        if let Err(error) = promoted::check(seed, &mut totals) {
            let (kernel, failure) = *error;
            panic!(
                "seed {seed}: {failure}\n{}\n{}",
                kernel.text,
                kernel.launches.join("\n")
            );
        }
    }
    assert!(
        totals.promoted > 20 && totals.mistakes > 5 && 2 * totals.proved > totals.promoted,
        "the test runs dry: {totals:?}"
    );
}
