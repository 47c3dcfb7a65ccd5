//! Compute capabilities 10.0 (B200), 10.3 (B300), 11.0 (Thor), 12.0 (GeForce RTX 50) and 12.1 (GB10).
//!
//! Little is published about these parts; what is taken over from an older one says so.

use super::sources::{
    BEST_13, BLACKWELL_TUNING, DEWING, GUIDE_13_CACHE, LIMITS, WHITEPAPER_RTX_BLACKWELL,
};
use super::{KB, REGISTERS_64K, UP_TO_100_KB, UP_TO_228_KB, shared_memory};
use crate::arch::{Architecture, Latency, ThreadLimits, Throughput};
use crate::fact::{documented, estimated, measured};

const AS_SM_90: &str = "equal to sm_90, for want of a published figure";
const AS_SM_100: &str = "equal to sm_100: the same generation of SM";
const AS_SM_86: &str = "equal to sm_86, for want of a published figure";
const AS_SM_120: &str = "equal to sm_120: the same SM";

pub(super) const SM_100: Architecture = Architecture {
    sm: 100,
    family: "Blackwell",
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
    l1_bytes: documented(256 * KB, BLACKWELL_TUNING),
    throughput: Throughput {
        fp32: documented(128, BEST_13),
        fp64: documented(64, BEST_13),
        fp16: documented(128, BEST_13),
        int_add: documented(64, BEST_13),
        logic: estimated(64, AS_SM_90),
        shift: estimated(64, AS_SM_90),
        int_mul: estimated(64, AS_SM_90),
        special: estimated(16, AS_SM_90),
        int_to_float: estimated(64, AS_SM_90),
        float_to_int: estimated(16, AS_SM_90),
        convert_64: estimated(16, AS_SM_90),
        shuffle: estimated(32, AS_SM_90),
        load_store: estimated(32, AS_SM_90),
        shared_bytes: estimated(128, AS_SM_90),
    },
    latency: Latency {
        alu: estimated(4, AS_SM_90),
        int_mul: estimated(4, AS_SM_90),
        fp64: estimated(8, AS_SM_90),
        special: estimated(17, AS_SM_90),
        shared: estimated(23, AS_SM_90),
        l1: measured(40, DEWING),
        l2: measured(295, DEWING),
        dram: measured(860, DEWING),
    },
};

pub(super) const SM_103: Architecture = Architecture {
    sm: 103,
    family: "Blackwell Ultra",
    // The header of CUDA 13.0 still had 64 barriers; 13.5 has one for each block slot.
    barriers: Some(32),
    throughput: Throughput {
        fp32: documented(128, BEST_13),
        // 10 TFLOP/s for eight GPUs of 148 SMs.
        fp64: estimated(2, "HGX B300 datasheet, FP64, divided by SMs and clock"),
        fp16: estimated(128, AS_SM_100),
        int_add: estimated(64, AS_SM_100),
        ..SM_100.throughput
    },
    latency: Latency {
        fp64: None,
        l1: estimated(40, AS_SM_100),
        l2: estimated(295, AS_SM_100),
        dram: estimated(860, AS_SM_100),
        ..SM_100.latency
    },
    l1_bytes: documented(256 * KB, GUIDE_13_CACHE),
    ..SM_100
};

pub(super) const SM_110: Architecture = Architecture {
    sm: 110,
    family: "Blackwell (Thor)",
    threads: ThreadLimits {
        per_block: 1024,
        warps: 48,
        blocks: 24,
    },
    barriers: Some(24),
    throughput: Throughput {
        fp32: estimated(128, AS_SM_100),
        // The programming guide's ratio of FP32 to FP64 for 11.0 differs between editions.
        fp64: None,
        fp16: estimated(128, AS_SM_100),
        int_add: estimated(64, AS_SM_100),
        ..SM_100.throughput
    },
    latency: Latency {
        fp64: None,
        l1: estimated(40, AS_SM_100),
        l2: None,
        dram: None,
        ..SM_100.latency
    },
    l1_bytes: documented(256 * KB, GUIDE_13_CACHE),
    ..SM_100
};

pub(super) const SM_120: Architecture = Architecture {
    sm: 120,
    family: "Blackwell",
    registers: REGISTERS_64K,
    threads: ThreadLimits {
        per_block: 1024,
        warps: 48,
        blocks: 24,
    },
    shared: shared_memory(100 * KB, UP_TO_100_KB),
    barriers: Some(24),
    limits: LIMITS,
    schedulers: 4,
    l1_bytes: documented(128 * KB, WHITEPAPER_RTX_BLACKWELL),
    throughput: Throughput {
        fp32: documented(128, BEST_13),
        fp64: documented(2, BEST_13),
        fp16: documented(128, BEST_13),
        int_add: documented(128, BEST_13),
        logic: documented(64, BEST_13),
        shift: documented(64, BEST_13),
        int_mul: documented(64, BEST_13),
        special: estimated(16, AS_SM_86),
        int_to_float: None,
        float_to_int: documented(2, BEST_13),
        convert_64: estimated(2, AS_SM_86),
        shuffle: documented(32, BEST_13),
        load_store: estimated(16, AS_SM_86),
        shared_bytes: estimated(128, AS_SM_86),
    },
    latency: Latency {
        alu: estimated(4, AS_SM_90),
        int_mul: estimated(4, AS_SM_90),
        fp64: estimated(64, AS_SM_86),
        special: estimated(17, AS_SM_90),
        shared: estimated(29, AS_SM_86),
        l1: measured(44, DEWING),
        l2: measured(360, DEWING),
        dram: measured(936, DEWING),
    },
};

pub(super) const SM_121: Architecture = Architecture {
    sm: 121,
    family: "Blackwell (GB10)",
    // The guide's column is headed "12.0 / 12.1", so throughputs hold for both.
    latency: Latency {
        l1: estimated(44, AS_SM_120),
        l2: None,
        dram: None,
        ..SM_120.latency
    },
    ..SM_120
};
