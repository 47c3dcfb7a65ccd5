//! Compute capability 9.0 (Hopper).

use super::sources::{GUIDE_12, GUIDE_13_CACHE, LIMITS, PROBE, WHITEPAPER_H100};
use super::{KB, REGISTERS_64K, UP_TO_228_KB, shared_memory};
use crate::arch::{Architecture, Latency, ThreadLimits, Throughput};
use crate::fact::{documented, measured};

pub(super) const SM_90: Architecture = Architecture {
    sm: 90,
    family: "Hopper",
    registers: REGISTERS_64K,
    threads: ThreadLimits {
        per_block: 1024,
        warps: 64,
        blocks: 32,
    },
    shared: shared_memory(228 * KB, UP_TO_228_KB),
    barriers: Some(64),
    limits: LIMITS,
    schedulers: 4,
    l1_bytes: documented(256 * KB, GUIDE_13_CACHE),
    throughput: Throughput {
        fp32: documented(128, GUIDE_12),
        fp64: documented(64, GUIDE_12),
        fp16: documented(256, GUIDE_12),
        int_add: documented(64, GUIDE_12),
        logic: documented(64, GUIDE_12),
        shift: documented(64, GUIDE_12),
        int_mul: documented(64, GUIDE_12),
        special: documented(16, GUIDE_12),
        // The pair with a 64-per-clock LOP3 on the same pipeline runs at 32.
        int_to_float: measured(64, PROBE),
        float_to_int: measured(16, PROBE),
        convert_64: documented(16, GUIDE_12),
        shuffle: documented(32, GUIDE_12),
        load_store: documented(32, WHITEPAPER_H100),
        shared_bytes: measured(128, PROBE),
    },
    latency: Latency {
        alu: measured(4, PROBE),
        int_mul: measured(4, PROBE),
        fp64: measured(8, PROBE),
        special: measured(17, PROBE),
        shared: measured(23, PROBE),
        l1: measured(34, PROBE),
        l2: measured(281, PROBE),
        dram: measured(659, PROBE),
    },
};
