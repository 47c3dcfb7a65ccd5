//! Compute capability 8.9 (Ada Lovelace).

use super::sources::{DEWING, GUIDE_12, GUIDE_13_CACHE, LIMITS, LUO_4090, WHITEPAPER_ADA};
use super::{KB, REGISTERS_64K, UP_TO_100_KB, shared_memory};
use crate::arch::{Architecture, Latency, ThreadLimits, Throughput};
use crate::fact::{documented, estimated, measured};

const AS_SM_86: &str = "equal to sm_86: the same pipelines";

pub(super) const SM_89: Architecture = Architecture {
    sm: 89,
    family: "Ada",
    registers: REGISTERS_64K,
    threads: ThreadLimits {
        per_block: 1024,
        warps: 48,
        blocks: 24,
    },
    shared: shared_memory(100 * KB, UP_TO_100_KB),
    barriers: None,
    limits: LIMITS,
    schedulers: 4,
    l1_bytes: documented(128 * KB, GUIDE_13_CACHE),
    throughput: Throughput {
        fp32: documented(128, GUIDE_12),
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
        load_store: documented(16, WHITEPAPER_ADA),
        shared_bytes: estimated(128, "equal to sm_86"),
    },
    latency: Latency {
        alu: estimated(4, AS_SM_86),
        int_mul: estimated(4, AS_SM_86),
        fp64: estimated(64, AS_SM_86),
        special: estimated(21, AS_SM_86),
        shared: measured(30, LUO_4090),
        l1: measured(40, DEWING),
        l2: measured(296, DEWING),
        dram: measured(636, DEWING),
    },
};
