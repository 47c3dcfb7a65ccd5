//! Speed of the PTX front end: `cargo bench -p warpwright-ptx`.
//!
//! The text is made here: a kernel of 50,000 instructions in nvcc's style (about 2 MB).

use std::fmt::Write as _;
use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use warpwright_flow::{Cfg, Dominators, Liveness, Loops, Pressure};
use warpwright_ptx::syntax::scan;
use warpwright_ptx::verify::diagnose;
use warpwright_ptx::{FuncId, Module};

/// A kernel with `count` instructions: loads, address arithmetic, fused multiply-adds, loops.
fn kernel(count: usize) -> String {
    let mut text = ".version 8.5\n.target sm_90\n.address_size 64\n\n\
        .visible .entry _Z6kernelPfS_i(\n\t.param .u64 _Z6kernelPfS_i_param_0,\n\
        \t.param .u64 _Z6kernelPfS_i_param_1,\n\t.param .u32 _Z6kernelPfS_i_param_2\n)\n{\n\
        \t.reg .pred \t%p<10000>;\n\t.reg .f32 \t%f<50000>;\n\t.reg .b32 \t%r<50000>;\n\
        \t.reg .b64 \t%rd<50000>;\n\n\tld.param.u64 \t%rd1, [_Z6kernelPfS_i_param_0];\n"
        .to_owned();
    for i in 0..count / 8 {
        let (a, b) = (i + 1, (i * 7) % (i + 1));
        let _: std::fmt::Result = write!(
            text,
            "\tmul.wide.s32 \t%rd{n}, %r{b}, 4;\n\tadd.s64 \t%rd{m}, %rd1, %rd{n};\n\
             \tld.global.nc.f32 \t%f{a}, [%rd{m}+16];\n\
             \tfma.rn.f32 \t%f{n}, %f{a}, %f{b}, 0f3F800000;\n\
             $L__BB0_{i}:\n\tadd.s32 \t%r{a}, %r{b}, -1;\n\
             \tsetp.lt.s32 \t%p{p}, %r{a}, 100;\n\
             \tst.global.f32 \t[%rd{m}], %f{n};\n\t@%p{p} bra \t$L__BB0_{i};\n\n",
            n = 2 * i + 2,
            m = 2 * i + 3,
            p = i % 9_999,
        );
    }
    text.push_str("\tret;\n\n}\n");
    text
}

fn front_end(criterion: &mut Criterion) {
    let text = kernel(50_000);
    let (module, diagnostics) = Module::parse("kernel.ptx", &text);
    assert!(diagnostics.is_empty(), "{}", diagnostics[0].render(&module));

    let mut group = criterion.benchmark_group("50,000 instructions");
    group.throughput(Throughput::Bytes(text.len() as u64));
    group.bench_function("scan", |b| b.iter(|| scan(black_box(&text))));
    group.bench_function("parse", |b| {
        b.iter(|| Module::parse("kernel.ptx", black_box(&text)))
    });
    group.bench_function("print", |b| b.iter(|| black_box(&module).print()));
    group.bench_function("parse and print", |b| {
        b.iter(|| Module::parse("kernel.ptx", black_box(&text)).0.print());
    });
    group.bench_function("verify", |b| b.iter(|| diagnose(black_box(&module))));
    group.bench_function("view, CFG, loops, liveness, pressure", |b| {
        b.iter(|| {
            let view = module.view(FuncId::from_u32(0)).ok_or("no body")?;
            let cfg = Cfg::new(&view);
            let loops = Loops::new(&cfg);
            let liveness = Liveness::new(&view, &cfg);
            let pressure = Pressure::new(&view, &cfg, &liveness);
            black_box((Dominators::new(&cfg), loops));
            Ok::<u32, &str>(pressure.max())
        });
    });
    group.finish();
}

criterion_group!(benches, front_end);
criterion_main!(benches);
