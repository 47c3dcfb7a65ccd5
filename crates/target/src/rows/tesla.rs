//! Compute capability 1.3 (GT200), the part of You & Tsai 2011 and Yang et al. 2010.

use super::KB;
use super::sources::{GUIDE_3, LIMITS_TESLA, WONG};
use crate::arch::{
    Architecture, BelowNeed, Latency, RegisterAllocation, RegisterFile, SharedMemory, ThreadLimits,
    Throughput,
};
use crate::fact::{documented, measured};

pub(super) const SM_13: Architecture = Architecture {
    sm: 13,
    family: "Tesla",
    // The programming guide says 128 registers per thread, the spreadsheet 124; nvcc gave no more than 124.
    registers: RegisterFile {
        per_sm: 16_384,
        per_block: 16_384,
        per_thread: 124,
        allocation: RegisterAllocation::PerBlock(512),
        warp_granularity: 2,
    },
    threads: ThreadLimits {
        per_block: 512,
        warps: 32,
        blocks: 8,
    },
    // Kernel arguments and built-in variables stand in shared memory too; the compiler counts them as
    // static, so nothing is reserved here.
    shared: SharedMemory {
        per_sm: 16 * KB,
        per_block: 16 * KB,
        per_block_opt_in: 16 * KB,
        reserved: 0,
        unit: 512,
        carveouts: &[16 * KB],
        below_need: BelowNeed::Largest,
    },
    barriers: None,
    limits: LIMITS_TESLA,
    schedulers: 1,
    l1_bytes: None,
    throughput: Throughput {
        fp32: documented(8, GUIDE_3),
        fp64: documented(1, GUIDE_3),
        fp16: None,
        int_add: documented(8, GUIDE_3),
        logic: documented(8, GUIDE_3),
        shift: documented(8, GUIDE_3),
        int_mul: None,
        special: documented(2, GUIDE_3),
        int_to_float: documented(8, GUIDE_3),
        float_to_int: documented(8, GUIDE_3),
        convert_64: None,
        shuffle: None,
        load_store: documented(8, GUIDE_3),
        // 16 banks of 4 bytes, two clocks of the shader domain per access.
        shared_bytes: documented(32, GUIDE_3),
    },
    latency: Latency {
        alu: measured(24, WONG),
        int_mul: None,
        fp64: measured(48, WONG),
        special: measured(28, WONG),
        shared: measured(38, WONG),
        l1: None,
        l2: None,
        dram: measured(440, WONG),
    },
};
