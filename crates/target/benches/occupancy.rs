//! How long one call of the calculator takes: `cargo bench -p warpwright-target`.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use warpwright_target::{Resources, lookup, occupancy, staircase};

fn benches(c: &mut Criterion) {
    let Ok(gpu) = lookup("sm_90") else { return };
    let kernel = Resources::new(96, 256).dynamic_smem(20_000);
    c.bench_function("occupancy", |b| {
        b.iter(|| occupancy(black_box(&gpu), black_box(&kernel)))
    });
    c.bench_function("staircase", |b| {
        b.iter(|| staircase(black_box(&gpu), black_box(64), 0, 0))
    });
}

criterion_group!(all, benches);
criterion_main!(all);
