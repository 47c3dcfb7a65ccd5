//! Static OptTLP of a typical kernel: `cargo bench -p warpwright-model`. CRAT promises about 1 ms.
//!
//! The text is made here: two nested loops around 600 instructions in nvcc's style, a load to five
//! of them.

use std::fmt::Write as _;
use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use warpwright_model::{Launched, opt_tlp};
use warpwright_ptx::Module;
use warpwright_target::lookup;

fn kernel() -> String {
    let mut text = ".version 8.5\n.target sm_90\n.address_size 64\n\n.visible .entry k(\n\
        \t.param .u64 k_param_0,\n\t.param .u32 k_param_1\n)\n{\n\t.reg .pred \t%p<8>;\n\
        \t.reg .f32 \t%f<800>;\n\t.reg .b32 \t%r<800>;\n\t.reg .b64 \t%rd<800>;\n\n\
        \tld.param.u64 \t%rd1, [k_param_0];\n\tld.param.u32 \t%r1, [k_param_1];\n\
        \tmov.u32 \t%r2, %tid.x;\n\tmul.lo.u32 \t%r3, %r2, %r1;\n\tmov.u32 \t%r4, 0;\n\
        $OUTER:\n\tmov.u32 \t%r5, 0;\n$INNER:\n\tadd.u32 \t%r6, %r3, %r5;\n"
        .to_owned();
    for i in 0..120 {
        let n = i + 10;
        let _: std::fmt::Result = write!(
            text,
            "\tadd.u32 \t%r{n}, %r6, {i};\n\tmul.wide.u32 \t%rd{n}, %r{n}, 4;\n\
             \tadd.s64 \t%rd{m}, %rd1, %rd{n};\n\tld.global.f32 \t%f{n}, [%rd{m}];\n\
             \tfma.rn.f32 \t%f{m}, %f{n}, %f{n}, %f{n};\n",
            m = n + 200,
        );
    }
    text.push_str(
        "\tadd.u32 \t%r5, %r5, 1;\n\tsetp.lt.u32 \t%p1, %r5, %r1;\n\t@%p1 bra \t$INNER;\n\
         \tadd.u32 \t%r4, %r4, 1;\n\tsetp.lt.u32 \t%p2, %r4, %r1;\n\t@%p2 bra \t$OUTER;\n\
         \tst.global.f32 \t[%rd1], %f300;\n\tret;\n}\n",
    );
    text
}

fn estimate(c: &mut Criterion) {
    let (module, diagnostics) = Module::parse("k.ptx", &kernel());
    assert!(diagnostics.is_empty(), "{diagnostics:?}");
    let Some(id) = module.function("k") else {
        return;
    };
    let Ok(gpu) = lookup("h200") else { return };
    let launched = Launched {
        block: [128, 1, 1],
        shared_bytes: 1024,
        most_blocks: 16,
    };
    c.bench_function("opt_tlp, 600 instructions in two loops", |b| {
        b.iter(|| opt_tlp(black_box(&module), id, &gpu, &launched));
    });
}

criterion_group!(benches, estimate);
criterion_main!(benches);
