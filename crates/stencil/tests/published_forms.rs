//! The same computation in another form gets kernels that are as good: anchored at a corner in place of the middle, and
//! with its statements in another order. So do the published forms of two stencils of Table 1, by the model; what they
//! take is measured by `bench/stencils.sh`.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::path::Path;

use warpwright_cudac::File;
use warpwright_cudac::diag::Source;
use warpwright_ladder::{Checked, Fall};
use warpwright_ptx::Module;
use warpwright_stencil::evaluate::Sizes;
use warpwright_stencil::ir::{Expr, Stencil};
use warpwright_stencil::replace::Refusal;
use warpwright_stencil::stream::{Machine, Ranked, search};
use warpwright_stencil::sweep::Names;
use warpwright_stencil::versions::{Comparison, Problem, odd_sizes, versions};
use warpwright_stencil::{dsl, extract};
use warpwright_toolkit::NvccJob;
use warpwright_toolkit::testing::require_toolkit;

fn read(name: &str) -> Stencil {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/stencils");
    let mut stencil = match std::fs::read_to_string(folder.join(format!("{name}.stencil"))) {
        Ok(text) => dsl::parse(&text).unwrap(),
        Err(_) => {
            let text = std::fs::read_to_string(folder.join(format!("{name}.cu"))).unwrap();
            let file = File::parse(Source::new(name, text)).unwrap();
            extract::extract(&file, extract::choose(&file, None).unwrap()[0]).unwrap()
        }
    };
    stencil.reassociate = true;
    stencil
}

fn best(stencil: &Stencil, size: i64) -> Ranked {
    let gpu = warpwright_target::lookup("h200").unwrap();
    let sizes: Sizes = stencil.parameters.values().map(|_| size).collect();
    search(stencil, &gpu, &sizes, 1).unwrap().remove(0)
}

/// Operations, values alive at once, bytes of shared memory a step.
fn cost(ranked: &Ranked) -> [u32; 3] {
    let cost = &ranked.kernel.cost;
    [cost.operations, cost.alive, cost.shared_bytes]
}

/// The point is written at its low corner: every read is `by` cells further, and so is the domain.
fn anchored(stencil: &Stencil, by: i64) -> Stencil {
    let mut moved = stencil.clone();
    for dim in moved.dims.values_mut() {
        (dim.low, dim.high) = (dim.low - by, dim.high + by);
    }
    for expr in moved.exprs.values_mut() {
        if let Expr::Load(access) = expr {
            let along = access.subscripts.iter_mut().filter(|s| s.dim.is_some());
            along.for_each(|s| s.offset += by);
        }
    }
    moved
}

#[test]
fn the_anchor_does_not_matter() {
    for (name, reach, size) in [("2d81pt", 4, 8200), ("2d25pt", 2, 8196), ("3d27pt", 1, 514)] {
        let middle = read(name);
        let (a, b) = (best(&middle, size), best(&anchored(&middle, reach), size));
        let ratio = b.predicted_ms / a.predicted_ms;
        assert!((0.97..1.03).contains(&ratio), "{name}: {ratio}");
        // Rows begin at another column, so another tile may be ahead; the same tile costs the same.
        if a.plan == b.plan {
            assert_eq!(cost(&a), cost(&b), "{name}");
        }
    }
}

#[test]
fn the_order_of_sums_does_not_matter_much() {
    let gpu = warpwright_target::lookup("h200").unwrap();
    let machine = Machine::new(&gpu).unwrap();
    let written = read("derivative");
    let mut turned = written.clone();
    turned.statements.reverse();
    // Values of a point stay in front of those that use them.
    turned
        .statements
        .sort_by_key(|s| matches!(s.target, warpwright_stencil::ir::Target::Store(_)));
    let temps = written.statements.iter();
    let temps = temps.filter(|s| matches!(s.target, warpwright_stencil::ir::Target::Temp(_)));
    for (at, statement) in temps.enumerate() {
        turned.statements[at] = statement.clone();
    }
    let (a, b) = (best(&written, 304), best(&turned, 304));
    let (ra, rb) = (machine.registers(&a.kernel), machine.registers(&b.kernel));
    let ratio = b.predicted_ms / a.predicted_ms;
    assert!(
        (0.95..1.05).contains(&ratio),
        "{ratio}: {ra} and {rb} registers"
    );
    let [operations, ..] = cost(&a);
    let [turned, ..] = cost(&b);
    assert!(
        turned.abs_diff(operations) * 20 <= operations,
        "{operations} and {turned}"
    );
}

#[test]
fn the_published_forms_are_as_good_by_the_model() {
    for (name, size, most) in [("2d81pt", 8200, 1.0), ("derivative", 304, 1.15)] {
        let (own, published) = (
            best(&read(name), size),
            best(&read(&format!("published/{name}")), size),
        );
        let ratio = published.predicted_ms / own.predicted_ms;
        assert!(ratio < most + 0.01, "{name}: {ratio}");
    }
}

#[test]
fn stretchings_of_neighbouring_rows_come_out_of_the_fields() {
    // Ten fields, as many as without the stretchings; the terms were 28 values before.
    let kernel = best(&read("published/derivative"), 304).kernel;
    assert!(
        kernel.plan.stage && kernel.cost.operations < 140,
        "{:?}",
        kernel.cost
    );
}

/// What `tune` compares: the texts that it builds, against the host's values, at sizes of its kind.
#[test]
fn the_host_computes_what_the_published_forms_compute() {
    let Some(toolkit) = require_toolkit("published_forms") else {
        return;
    };
    let nvcc = toolkit.nvcc().unwrap();
    let gpu = warpwright_target::lookup("h200").unwrap();
    for name in ["published/2d81pt", "published/derivative"] {
        let stencil = read(name);
        // Rows of 304 by 304 elements are long for the emulator.
        let sizes: Sizes = match stencil.dims.len() {
            2 => odd_sizes(&stencil),
            _ => stencil.parameters.values().map(|_| 7).collect(),
        };
        let problem = Problem::of_language(stencil.clone());
        let comparison = Comparison {
            problem: &problem,
            sizes: &sizes,
        };
        let mut families = BTreeSet::new();
        for version in versions(&stencil, &gpu, (&sizes, None), 1, false) {
            if !families.insert(version.family) {
                continue;
            }
            let mut job = NvccJob::new(Path::new(""), "sm_90");
            job.extra = vec!["-fmad=false".into()];
            let text = version.unit(&stencil, "version").0;
            let ptx = nvcc.text_to_ptx(&text, &job).unwrap().ptx;
            let module = Module::parse("version", &ptx).0;
            let trial = comparison.trial(text.into()).unwrap();
            let expected = trial.expected(&module).unwrap();
            let names = Names::new("version", &BTreeSet::new());
            let runs = comparison.runs(&names, &version);
            assert!(!runs.is_empty(), "{name}: {:?}", version.family);
            for run in runs {
                let mut checked = Checked::default();
                let compared: Result<(), Fall<Refusal>> =
                    trial.compare(&run, &module, &expected, &mut checked);
                assert!(compared.is_ok(), "{name}, {}: {compared:?}", version.plan);
            }
        }
        assert!(families.len() >= 3, "{name}: {families:?}");
    }
}
