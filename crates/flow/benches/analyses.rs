//! All analyses over a synthetic function of 50,000 instructions and as many values.
//!
//! `cargo bench -p warpwright-flow`

use criterion::{Criterion, criterion_group, criterion_main};
use std::hint::black_box;
use warpwright_flow::{
    Cfg, DefUse, Dominators, Inst, LiveRanges, Liveness, Loops, Pressure, Transfer, Value, Webs,
};
use warpwright_toy::{Toy, ToyInst};

/// Fifty loops of a thousand instructions in blocks of twenty, of which every other one may be
/// skipped. Every instruction has a result of its own, used up to 200 instructions later; 150 values
/// live throughout.
fn synthetic(insts: u32) -> Toy {
    let mut toy = Toy::default();
    for value in 0..insts {
        toy.value(&format!(
            "{}{value}",
            if value % 3 == 0 { 'd' } else { 'v' }
        ));
    }
    let mut seed = 12345u64;
    let mut random = move |below: u32| {
        seed = seed
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        ((seed >> 33) as u32) % below
    };
    for index in 0..insts {
        let mut inst = ToyInst::new(Transfer::Next);
        if index % 1000 == 999 {
            inst.transfer = Transfer::Branch;
            inst.targets = vec![Inst(index - 999)];
        } else if index % 40 == 19 && index >= 200 {
            inst.transfer = Transfer::Branch;
            inst.targets = vec![Inst(index + 21)];
        } else {
            inst.defs = vec![Value(index)];
            // Earlier results, from this block or from blocks that are never skipped.
            let earlier = (0..2).map(|_| index.saturating_sub(1 + random(200)));
            inst.uses = earlier
                .filter(|&at| at < 200 || at % 40 < 19 || at / 20 == index / 20)
                .map(Value)
                .collect();
            inst.uses
                .push(Value(random(150).min(index.saturating_sub(1))));
        }
        toy.insts.push(inst);
    }
    toy
}

fn analyses(criterion: &mut Criterion) {
    let func = synthetic(50_000);
    criterion.bench_function("cfg, loops, liveness, pressure", |bench| {
        bench.iter(|| {
            let cfg = Cfg::new(&func);
            let loops = Loops::new(&cfg);
            let liveness = Liveness::new(&func, &cfg);
            black_box((loops.len(), Pressure::new(&func, &cfg, &liveness).max()))
        });
    });
    let cfg = Cfg::new(&func);
    let liveness = Liveness::new(&func, &cfg);
    criterion.bench_function("dominators, post-dominators", |bench| {
        bench.iter(|| black_box((Dominators::new(&cfg), Dominators::post(&cfg))));
    });
    criterion.bench_function("ranges, def-use, webs", |bench| {
        bench.iter(|| {
            let ranges = LiveRanges::new(&func, &cfg, &liveness);
            let def_use = DefUse::new(&func, &liveness);
            black_box((ranges, Webs::new(&func, &cfg, &liveness, &def_use).len()))
        });
    });
}

criterion_group!(benches, analyses);
criterion_main!(benches);
