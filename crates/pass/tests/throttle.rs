//! Throttled kernels built by ptxas: the resident blocks are those that were asked for, and nothing else
//! changes. SKIPPED without a toolkit.

use std::collections::BTreeSet;
use std::sync::Arc;

use warpwright_pass::executor::BuildFailure;
use warpwright_pass::{
    Artifact, AssemblerOptions, Block, BlockSource, Builders, Executor, Level, Refusal, RunError,
    Setting, Target,
};
use warpwright_sass::{Cubin, Kernel};
use warpwright_target::{Resources, lookup, occupancy};
use warpwright_toolkit::{BuildCache, PtxasJob, testing::require_toolkit};

const TEXT: &str = ".version 8.0\n.target sm_90\n.address_size 64\n\n\
    .visible .entry scale(\n\t.param .u64 data\n)\n{\n\
    \t.reg .b32 \t%r<6>;\n\t.reg .b64 \t%rd<4>;\n\t.reg .f32 \t%f<3>;\n\n\
    \tld.param.u64 \t%rd1, [data];\n\tmov.u32 \t%r1, %ctaid.x;\n\tmov.u32 \t%r2, %tid.x;\n\
    \tmad.lo.s32 \t%r3, %r1, 256, %r2;\n\tmul.wide.s32 \t%rd2, %r3, 4;\n\
    \tadd.s64 \t%rd3, %rd1, %rd2;\n\tld.global.f32 \t%f1, [%rd3];\n\
    \tadd.f32 \t%f2, %f1, %f1;\n\tst.global.f32 \t[%rd3], %f2;\n\tret;\n}\n";

#[test]
fn throttles_hold_what_they_promise() {
    let Some(toolkit) = require_toolkit("throttles_hold_what_they_promise") else {
        return;
    };
    let start = Artifact::parse("scale.ptx", TEXT).expect("valid");
    let gpu = lookup("h200").expect("h200 is in the table");
    let block = Block {
        dims: [256, 1, 1],
        source: BlockSource::Option,
    };
    let target = Target {
        kernel: Some("scale"),
        setting: Setting {
            block,
            dynamic_smem: Some(0),
            ..Setting::new(&gpu)
        },
    };
    let cache = BuildCache::disabled();
    let assemble = |text: &str, _: AssemblerOptions| {
        let build = cache.ptxas(&toolkit.ptxas()?, &PtxasJob::new(text, "sm_90"))?;
        Ok::<Arc<[u8]>, BuildFailure>(build.cubin.into())
    };
    let build = |recipe: &str| {
        let mut executor = Executor::new(Builders {
            assemble: Some(&assemble),
            ..Builders::default()
        });
        let recipe = recipe.parse().expect("a recipe");
        let run = executor.run(&start, &target, &recipe, Level::MachineCode)?;
        let proved = run.prove().expect("proved");
        Ok::<Vec<u8>, RunError>(proved.artifact().bytes().to_vec())
    };
    let kernel = |cubin: &[u8]| Cubin::parse(cubin).expect("a cubin").kernels[0].clone();
    let resident = |kernel: &Kernel| {
        let first = gpu.arch.first_shared_address();
        let need = Resources::new(kernel.registers, 256)
            .static_smem(kernel.shared_bytes.saturating_sub(first));
        occupancy(&gpu, &need).expect("it can be launched").blocks
    };
    let plain = build("default").expect("it builds");
    let by_registers = build("throttle(3)").expect("it builds");
    let by_array = build("throttle(5, by=smem)").expect("it builds");
    let blocks = [&plain, &by_registers, &by_array].map(|cubin| resident(&kernel(cubin)));
    assert_eq!(blocks, [8, 3, 5]);
    // ptxas takes 48 KB at most, and two blocks need more.
    let refused = build("throttle(2, by=smem)");
    let refusal = match refused {
        Err(RunError::Refused { refusal, .. }) => refusal,
        other => panic!("{other:?}"),
    };
    assert!(matches!(refusal, Refusal::NoThrottle { blocks: 2, .. }));
    // The register count is one number in the cubin.
    let differ: BTreeSet<usize> = (0..plain.len())
        .filter(|&at| plain[at] != by_registers[at])
        .collect();
    assert!(!differ.is_empty() && differ.len() <= 4, "{differ:?}");
    let code = |cubin: &[u8]| kernel(cubin).code;
    assert_eq!(code(&plain), code(&by_registers));
    assert_eq!(
        code(&plain),
        code(&by_array),
        "the array is kept and not used"
    );
}
