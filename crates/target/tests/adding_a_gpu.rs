//! The worked example of docs/adding-a-gpu.md: an architecture that there is not, and a board with it. The page shows
//! parts of this file.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use warpwright_target::{
    Architecture, Board, Confidence, Fact, Gpu, Latency, Limiter, Provenance, RegisterFile,
    Resources, SharedMemory, ThreadLimits, Throughput, Variant, lookup, occupancy, staircase,
};

const HEADER: Provenance = Provenance {
    confidence: Confidence::Documented,
    source: "CUDA Toolkit N, cuda_occupancy.h and cccl cuda/__device/arch_traits.h",
};

/// What the vendor states; where it says nothing there is `None`.
fn architecture() -> Architecture {
    let like = lookup("sm_90").unwrap().arch;
    Architecture {
        sm: 199,
        family: "Example",
        registers: RegisterFile {
            per_sm: 96 * 1024,
            ..like.registers
        },
        threads: ThreadLimits {
            per_block: 1024,
            warps: 64,
            blocks: 32,
        },
        shared: SharedMemory {
            per_sm: 256 * 1024,
            per_block_opt_in: 255 * 1024,
            carveouts: &[0, 64 * 1024, 128 * 1024, 256 * 1024],
            ..like.shared
        },
        barriers: Some(64),
        limits: HEADER,
        schedulers: 4,
        l1_bytes: None,
        throughput: Throughput {
            fp64: Some(Fact {
                value: 64,
                confidence: Confidence::Estimated,
                source: "equal to sm_90: the guide does not have it yet",
            }),
            ..unknown_throughput()
        },
        latency: UNKNOWN_LATENCY,
    }
}

fn unknown_throughput() -> Throughput {
    Throughput {
        fp32: None,
        fp64: None,
        fp16: None,
        int_add: None,
        logic: None,
        shift: None,
        int_mul: None,
        special: None,
        int_to_float: None,
        float_to_int: None,
        convert_64: None,
        shuffle: None,
        load_store: None,
        shared_bytes: None,
    }
}

const UNKNOWN_LATENCY: Latency = Latency {
    alu: None,
    int_mul: None,
    fp64: None,
    special: None,
    shared: None,
    l1: None,
    l2: None,
    dram: None,
};

fn gpu() -> Gpu {
    let arch = Box::leak(Box::new(architecture()));
    let board = Box::leak(Box::new(Board {
        name: "Example 1",
        aliases: &["EX1"],
        arch,
        ..*lookup("h200").unwrap().board.unwrap()
    }));
    Gpu {
        arch,
        board: Some(board),
        variant: Variant::Base,
    }
}

#[test]
fn a_row_is_all_that_the_calculator_needs() {
    let kernel = Resources::new(128, 256);
    let found = occupancy(&gpu(), &kernel).unwrap();
    assert_eq!(found.blocks, 3, "half as many registers again");
    assert!(
        found
            .limiters
            .iter()
            .any(|limiter| limiter == Limiter::Registers)
    );
    assert_eq!(
        occupancy(&lookup("sm_90").unwrap(), &kernel)
            .unwrap()
            .blocks,
        2
    );
}

#[test]
fn and_the_staircase_has_its_stairs() {
    let most = |gpu: &Gpu| {
        let stairs = staircase(gpu, 256, 0, 0).unwrap();
        stairs
            .iter()
            .find(|stair| stair.blocks == 3)
            .map(|stair| stair.regs)
    };
    assert_eq!(most(&lookup("sm_90").unwrap()), Some(80));
    assert_eq!(most(&gpu()), Some(128));
}
