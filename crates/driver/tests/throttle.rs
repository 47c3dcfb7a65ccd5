//! Throttled builds by ptxas: the resident blocks are those that were asked for, and nothing else
//! changes. SKIPPED without a toolkit.

use std::collections::BTreeSet;

use warpwright_driver::build::{Built, Workshop};
use warpwright_driver::kernel::{Block, BlockSource};
use warpwright_driver::residency::occupy;
use warpwright_driver::{Decision, Recipe, Scarce, Setting};
use warpwright_ptx::Module;
use warpwright_target::lookup;
use warpwright_toolkit::{BuildCache, testing::require_toolkit};

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
    let (module, diagnostics) = Module::parse("scale.ptx", TEXT);
    assert!(diagnostics.is_empty(), "{diagnostics:?}");
    let gpu = lookup("h200").expect("h200 is in the table");
    let setting = Setting {
        gpu: &gpu,
        block: Block {
            dims: [256, 1, 1],
            source: BlockSource::Option,
        },
        dynamic_smem: 0,
    };
    let cache = BuildCache::disabled();
    let workshop = Workshop {
        toolkit: &toolkit,
        cache: &cache,
        arch: "sm_90",
        lineinfo: false,
    };
    let throttle = |blocks, by| Recipe::default().with(Decision::Throttle { blocks, by });
    let recipes = vec![
        Recipe::default(),
        throttle(3, Scarce::Registers),
        throttle(5, Scarce::SharedMemory),
        throttle(2, Scarce::SharedMemory),
    ];
    let mut built = workshop
        .build_all(&module, "scale", &setting, recipes, &|_| {})
        .expect("ptxas runs");
    for b in &mut built {
        occupy(&gpu, &setting.block, 0, &mut b.candidate);
    }
    let blocks = |b: &Built| b.candidate.residency.as_ref().map(|r| r.blocks);
    assert_eq!(
        built.iter().map(blocks).collect::<Vec<_>>(),
        [Some(8), Some(3), Some(5), None]
    );
    assert!(
        built[3].candidate.rejected.is_some(),
        "ptxas takes 48 KB at most, and two blocks need more"
    );
    // The register count is one number in the cubin.
    let differ: BTreeSet<usize> = (0..built[0].cubin.len())
        .filter(|&at| built[0].cubin[at] != built[1].cubin[at])
        .collect();
    assert!(!differ.is_empty() && differ.len() <= 4, "{differ:?}");
    let code = |b: &Built| b.kernel.as_ref().map(|k| k.code.clone());
    assert_eq!(code(&built[0]), code(&built[1]));
    assert_eq!(
        code(&built[0]),
        code(&built[2]),
        "the array is kept and not used"
    );
}
