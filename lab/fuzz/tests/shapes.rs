//! A second's worth of kernels in other shapes.

use warpwright_fuzz::shapes::{self, Totals};

#[test]
fn generated_kernels_hold_in_other_shapes() {
    let mut totals = Totals::default();
    for seed in 0..80 {
        if let Err(error) = shapes::check(seed, &mut totals) {
            let (kernel, failure) = *error;
            panic!("seed {seed}: {}", shapes::report(&kernel, &failure));
        }
    }
    assert!(
        totals.counts.changed > 10 && totals.different > 10,
        "the test runs dry: {totals:?}"
    );
}
