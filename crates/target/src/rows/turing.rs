//! Compute capability 7.5 (Turing).

use super::sources::{
    ACCEL_SIM_2060, ARAFA_TURING, GUIDE_12, GUIDE_13_CACHE, JIA_TURING, LIMITS, WHITEPAPER_TURING,
};
use super::{KB, REGISTERS_64K};
use crate::arch::{Architecture, BelowNeed, Latency, SharedMemory, ThreadLimits, Throughput};
use crate::fact::{documented, measured};

pub(super) const SM_75: Architecture = Architecture {
    sm: 75,
    family: "Turing",
    registers: REGISTERS_64K,
    threads: ThreadLimits {
        per_block: 1024,
        warps: 32,
        blocks: 16,
    },
    shared: SharedMemory {
        per_sm: 64 * KB,
        per_block: 48 * KB,
        per_block_opt_in: 64 * KB,
        reserved: 0,
        unit: 256,
        carveouts: &[32 * KB, 64 * KB],
        below_need: BelowNeed::SmallestThatFits,
    },
    barriers: None,
    limits: LIMITS,
    schedulers: 4,
    l1_bytes: documented(96 * KB, GUIDE_13_CACHE),
    throughput: Throughput {
        fp32: documented(64, GUIDE_12),
        fp64: documented(2, GUIDE_12),
        fp16: documented(128, GUIDE_12),
        int_add: documented(64, GUIDE_12),
        logic: documented(64, GUIDE_12),
        shift: documented(64, GUIDE_12),
        int_mul: documented(64, GUIDE_12),
        special: documented(16, GUIDE_12),
        int_to_float: documented(16, GUIDE_12),
        float_to_int: documented(16, GUIDE_12),
        convert_64: documented(2, GUIDE_12),
        shuffle: documented(32, GUIDE_12),
        load_store: documented(16, WHITEPAPER_TURING),
        shared_bytes: documented(64, WHITEPAPER_TURING),
    },
    latency: Latency {
        alu: measured(4, ARAFA_TURING),
        int_mul: measured(5, JIA_TURING),
        fp64: measured(45, ARAFA_TURING),
        special: measured(21, ACCEL_SIM_2060),
        shared: measured(30, ARAFA_TURING),
        l1: measured(30, ARAFA_TURING),
        l2: measured(231, ARAFA_TURING),
        dram: measured(279, ARAFA_TURING),
    },
};
