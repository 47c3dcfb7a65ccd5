//! A short run in one call of nvcc, and the same with mistakes planted: the run must be clean, and no mistake may pass.

use warpwright_naivegen::check::{Subject, planted};
use warpwright_sourcegen::{Counters, Subject as _, compare_all, compiled};
use warpwright_toolkit::testing::require_toolkit;

const KERNELS: u64 = 24;

#[test]
fn what_is_made_agrees_and_mistakes_do_not() {
    let Some(toolkit) = require_toolkit("what_is_made_agrees_and_mistakes_do_not") else {
        return;
    };
    let mut counters = Counters::default();
    let subjects: Vec<Subject> = (0..KERNELS)
        .filter_map(|number| Subject::generate(3, number, &mut counters).expect("a kernel"))
        .collect();
    assert!(subjects.len() >= 12, "most are naive kernels: {counters:?}");
    let nvcc = toolkit.nvcc().expect("nvcc");
    let module = compiled(&subjects, &nvcc, None).expect("PTX");
    let (more, findings) = compare_all(&subjects, &module);
    counters.add(&more);
    assert_eq!(counters.wrong(), 0, "{findings:#?}");
    assert!(counters.comparisons >= 100, "{counters:?}");
    let mistakes: Vec<(&str, bool)> = subjects
        .iter()
        .filter_map(|s| Some((s.kernel.name.as_str(), planted(s, &module)?)))
        .collect();
    assert!(
        mistakes.len() >= 8,
        "only {} mistakes were planted",
        mistakes.len()
    );
    let passed: Vec<&str> = mistakes
        .iter()
        .filter_map(|(name, found)| (!found).then_some(*name))
        .collect();
    assert!(passed.is_empty(), "mistakes passed in {passed:?}");
}
