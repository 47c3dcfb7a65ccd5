//! A second's worth of fuzzing within the normal tests; `warpwright-fuzz run` is the long form.

use warpwright_fuzz::case;

#[test]
fn generated_kernels_hold() {
    for seed in 0..40 {
        let program = case::program(seed, seed % 5 == 4);
        if let Err(failure) = case::check(&program) {
            panic!(
                "seed {seed}: {failure}\n\n{}",
                case::report(&program, &failure)
            );
        }
    }
}
