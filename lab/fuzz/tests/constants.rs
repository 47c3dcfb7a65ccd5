//! A few thousand constants against ptxas; `warpwright-fuzz constants` is the long form.

use warpwright_fuzz::constants;
use warpwright_toolkit::testing::require_toolkit;

#[test]
fn the_front_end_evaluates_as_ptxas_does() {
    let Some(toolkit) = require_toolkit("constants against ptxas") else {
        return;
    };
    let ptxas = toolkit.ptxas().expect("ptxas");
    for seed in 0..3 {
        let totals = constants::check(seed, &ptxas).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        assert_eq!(totals.initial_values + totals.immediates, 1000);
        assert!(totals.refused > 0, "seed {seed}");
    }
}
