//! A second's worth of the pass fuzzer; `warpwright-fuzz passes` is the long form.

use warpwright_fuzz::{case, passes};

#[test]
fn generated_kernels_hold_through_every_pass() {
    let mut totals = [passes::Changed::default(); 4];
    for seed in 0..16 {
        if let Err(error) = passes::check(seed, &mut totals) {
            let (run, failure) = *error;
            let program = case::program(seed, false);
            let text = passes::report(&program, &run, &failure);
            panic!("seed {seed}, {}: {failure}\n\n{text}", run.pass);
        }
    }
    for (pass, total) in passes::PASSES.iter().zip(totals) {
        assert!(total.changed > 3, "the test of {pass} runs dry: {total:?}");
    }
}
