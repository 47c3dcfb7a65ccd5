//! A short run in one call of nvcc, and the same with mistakes planted: the run must be clean, and no mistake may pass.

use warpwright_ladder::{Checked, Fall};
use warpwright_ptx::Module;
use warpwright_sourcegen::{Counters, Subject as _, all_beyond, compare_all, compiled};
use warpwright_stencil::replace::Refusal;
use warpwright_stencil::sweep::Grid;
use warpwright_stencil::versions::Comparison;
use warpwright_stencilgen::check::{Subject, names};
use warpwright_toolkit::testing::require_toolkit;

const KERNELS: u64 = 20;

#[test]
fn rewrites_agree_and_mistakes_do_not() {
    let Some(toolkit) = require_toolkit("rewrites_agree_and_mistakes_do_not") else {
        return;
    };
    let mut counters = Counters::default();
    let subjects: Vec<Subject> = (0..KERNELS)
        .filter_map(|number| Subject::generate(11, number, &mut counters).expect("a rewrite"))
        .collect();
    assert!(subjects.len() >= 10, "most are stencils: {counters:?}");
    let nvcc = toolkit.nvcc().expect("nvcc");
    let module = compiled(&subjects, &nvcc, Some(1)).expect("PTX");
    let (more, findings) = compare_all(&subjects, &module);
    counters.add(&more);
    assert_eq!(counters.wrong(), 0, "{findings:#?}");
    assert!(counters.comparisons >= 80, "{counters:?}");
    let beyond = all_beyond(&subjects, &module);
    assert!(beyond.is_empty(), "{beyond:#?}");
    planted(&subjects, &module);
}

/// Half of the blocks are missing.
fn planted(subjects: &[Subject], module: &Module) {
    let (mut tried, mut found) = (0, 0);
    for subject in subjects {
        let Some(sizes) = subject.sizes.last() else {
            continue;
        };
        let comparison = Comparison {
            problem: &subject.problem,
            sizes,
        };
        let Some(trial) = comparison.trial("".into()) else {
            continue;
        };
        let Ok(expected) = trial.expected(module) else {
            continue;
        };
        for (number, (_, version)) in subject.versions.iter().enumerate() {
            let mut wrong = version.clone();
            let mut fewer = false;
            // Kernels that are launched whatever the sizes are.
            let always = version.sweep.choices.last().map(|c| c.entries.clone());
            for (at, entry) in wrong.sweep.entries.iter_mut().enumerate() {
                let before = entry.grid.blocks(sizes);
                match &mut entry.grid {
                    Grid::Box(along) => along[0].per *= 2,
                    Grid::Around { per, .. } => *per *= 2,
                }
                let changed = before != entry.grid.blocks(sizes);
                fewer |= changed && always.as_ref().is_some_and(|a| a.contains(&at));
            }
            if !fewer {
                continue;
            }
            tried += 1;
            let mut checked = Checked::default();
            let names = names(subject, number);
            let compared: Result<(), Fall<Refusal>> = comparison
                .runs(&names, &wrong)
                .iter()
                .try_for_each(|run| trial.compare(run, module, &expected, &mut checked));
            found += usize::from(compared.is_err());
        }
    }
    assert!(tried >= 10, "only {tried} mistakes were planted");
    assert_eq!(found, tried, "a mistake passed");
}
