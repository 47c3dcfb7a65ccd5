//! The search and its model against kernels measured on an H200.
//!
//! `data/stream-h200.jsonl` holds the measurements: FP64, the grids of the paper plus halo (2D:
//! 8192², 3D: 512³ and 300³), the median of ten sweeps, CUDA 13.0.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use warpwright_stencil::dsl;
use warpwright_stencil::evaluate::Sizes;
use warpwright_stencil::ir::Stencil;
use warpwright_stencil::stream::{Machine, Plan, generate, search};

#[derive(Debug, Deserialize)]
struct Measured {
    stencil: String,
    ms: f64,
    registers: u32,
    local_bytes: u32,
    plan: Plan,
}

fn measurements() -> BTreeMap<String, Vec<Measured>> {
    let mut all: BTreeMap<String, Vec<Measured>> = BTreeMap::new();
    for line in include_str!("data/stream-h200.jsonl").lines() {
        let measured: Measured = serde_json::from_str(line).expect("a measurement");
        all.entry(measured.stencil.clone())
            .or_default()
            .push(measured);
    }
    all
}

fn benchmark(name: &str) -> (Stencil, Sizes) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../examples/stencils")
        .join(format!("{name}.stencil"));
    let text = std::fs::read_to_string(path).expect("the benchmark's file");
    let mut stencil = dsl::parse(&text).expect("the benchmark is a stencil");
    stencil.reassociate = true;
    let size = match name {
        "2d25pt" => 8196,
        "2d64pt" | "2d81pt" => 8200,
        "3d27pt" => 514,
        "3d125pt" => 516,
        "hypterm" => 308,
        _ => 304,
    };
    let sizes = stencil.parameters.values().map(|_| size).collect();
    (stencil, sizes)
}

fn h200() -> Machine {
    let gpu = warpwright_target::lookup("h200").expect("a known GPU");
    Machine::new(&gpu).expect("all figures")
}

/// Of the measured plans, the one that the model puts first is close to the fastest.
#[test]
fn the_model_picks_a_fast_plan() {
    let machine = h200();
    for (name, measured) in measurements() {
        let (stencil, sizes) = benchmark(&name);
        let predicted: Vec<f64> = measured
            .iter()
            .map(|m| {
                let kernel =
                    generate(&stencil, &m.plan).unwrap_or_else(|e| panic!("{}: {e}", m.plan));
                machine
                    .predict(&kernel, &sizes)
                    .map_or(f64::INFINITY, |p| p.ms)
            })
            .collect();
        let first = (0..measured.len())
            .min_by(|a, b| predicted[*a].total_cmp(&predicted[*b]))
            .expect("measurements");
        let best = measured.iter().map(|m| m.ms).fold(f64::INFINITY, f64::min);
        let pick = &measured[first];
        eprintln!(
            "{name}: {:.3} ms ({}), the best {best:.3}",
            pick.ms, pick.plan
        );
        assert!(
            pick.ms <= best * 1.15,
            "{name}: {} takes {} ms",
            pick.plan,
            pick.ms
        );
    }
}

/// The estimate of registers is close enough to tell how many blocks are resident.
#[test]
fn registers_are_estimated() {
    let machine = h200();
    let (mut error, mut count) = (0.0, 0);
    for (name, measured) in measurements() {
        let (stencil, _) = benchmark(&name);
        // Where the compiler was held back, it does not show what it wanted.
        let free = |m: &&Measured| m.local_bytes == 0 && m.plan.threads() * m.registers < 57_000;
        for m in measured.iter().filter(free) {
            let kernel = generate(&stencil, &m.plan).unwrap_or_else(|e| panic!("{}: {e}", m.plan));
            let estimate = machine.registers(&kernel).min(255.0);
            error += (estimate / f64::from(m.registers)).ln().abs();
            count += 1;
        }
    }
    let error = error / f64::from(count);
    eprintln!("{count} kernels, mean error {error:.3}");
    assert!(error < 0.25, "{error}");
}

#[test]
fn a_search_is_sorted_and_repeatable() {
    let gpu = warpwright_target::lookup("h200").expect("a known GPU");
    let (stencil, sizes) = benchmark("3d27pt");
    let ranked = search(&stencil, &gpu, &sizes, 5).expect("plans");
    assert_eq!(ranked.len(), 5);
    // Up to ties of half a percent.
    assert!(ranked.is_sorted_by(|a, b| a.predicted_ms <= b.predicted_ms * 1.011));
    let again = search(&stencil, &gpu, &sizes, 5).expect("plans");
    let plans = |list: &[warpwright_stencil::stream::Ranked]| -> Vec<Plan> {
        list.iter().map(|r| r.plan.clone()).collect()
    };
    assert_eq!(plans(&ranked), plans(&again));
    assert_eq!(ranked[0].kernel.sweep, again[0].kernel.sweep);
    let (mut exact, sizes) = benchmark("2d25pt");
    exact.reassociate = false;
    let ranked = search(&exact, &gpu, &sizes, 100).expect("plans");
    assert!(!ranked.is_empty() && ranked.iter().all(|r| !r.plan.reassociate));
}
