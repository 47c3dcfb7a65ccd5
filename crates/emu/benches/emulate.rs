//! Speed of the emulator on the examples, in PTX thread instructions per second. One core:
//! `RAYON_NUM_THREADS=1 cargo bench -p warpwright-emu`.

use std::hint::black_box;
use std::time::Duration;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use warpwright_emu::{Emulator, Options, Outcome};

#[path = "../tests/common/mod.rs"]
mod common;

fn examples(criterion: &mut Criterion) {
    let Ok(toolkit) = common::toolkit() else {
        eprintln!("SKIPPED: the benchmark needs nvcc");
        return;
    };
    let mut group = criterion.benchmark_group("examples");
    group
        .sample_size(10)
        .measurement_time(Duration::from_secs(4));
    for name in warpwright_references::names() {
        let Ok(example) = common::example(&toolkit, name, name, "small") else {
            continue;
        };
        let Ok(program) = Emulator::new(&example.module, &example.launch.kernel) else {
            continue;
        };
        let run = || program.run(&example.launch, example.inputs.clone(), &Options::default());
        let Ok(Outcome::Finished(results)) = run() else {
            continue;
        };
        group.throughput(Throughput::Elements(results.statistics.thread_instructions));
        group.bench_function(name, |bencher| bencher.iter(|| black_box(run())));
    }
    group.finish();
}

criterion_group!(benches, examples);
criterion_main!(benches);
