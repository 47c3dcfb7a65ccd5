//! Compute capabilities 8.0 (A100, A30), 8.6 (GA10x) and 8.7 (Orin).

use super::sources::{
    ABDELKHALIK, ACCEL_SIM_3070, ACCEL_SIM_A100, ACCEL_SIM_ORIN, DEWING, GUIDE_12, GUIDE_13_CACHE,
    LIMITS, LUO_A100, ORIN_BRIEF, WHITEPAPER_A100, WHITEPAPER_GA102,
};
use super::{KB, REGISTERS_64K, UP_TO_100_KB, UP_TO_164_KB, shared_memory};
use crate::arch::{Architecture, Latency, ThreadLimits, Throughput};
use crate::fact::{documented, estimated, measured};

pub(super) const SM_80: Architecture = Architecture {
    sm: 80,
    family: "Ampere",
    registers: REGISTERS_64K,
    threads: ThreadLimits {
        per_block: 1024,
        warps: 64,
        blocks: 32,
    },
    shared: shared_memory(164 * KB, UP_TO_164_KB),
    barriers: None,
    limits: LIMITS,
    schedulers: 4,
    l1_bytes: documented(192 * KB, GUIDE_13_CACHE),
    throughput: Throughput {
        fp32: documented(64, GUIDE_12),
        fp64: documented(32, GUIDE_12),
        fp16: documented(256, GUIDE_12),
        int_add: documented(64, GUIDE_12),
        logic: documented(64, GUIDE_12),
        shift: documented(64, GUIDE_12),
        int_mul: documented(64, GUIDE_12),
        special: documented(16, GUIDE_12),
        int_to_float: documented(16, GUIDE_12),
        float_to_int: documented(16, GUIDE_12),
        convert_64: documented(16, GUIDE_12),
        shuffle: documented(32, GUIDE_12),
        load_store: documented(32, WHITEPAPER_A100),
        shared_bytes: documented(128, WHITEPAPER_A100),
    },
    latency: Latency {
        alu: measured(4, ACCEL_SIM_A100),
        int_mul: measured(4, ACCEL_SIM_A100),
        fp64: measured(6, ACCEL_SIM_A100),
        special: measured(23, ACCEL_SIM_A100),
        shared: measured(23, ABDELKHALIK),
        l1: measured(33, ABDELKHALIK),
        l2: measured(262, LUO_A100),
        dram: measured(466, LUO_A100),
    },
};

pub(super) const SM_86: Architecture = Architecture {
    sm: 86,
    family: "Ampere",
    registers: REGISTERS_64K,
    threads: ThreadLimits {
        per_block: 1024,
        warps: 48,
        blocks: 16,
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
        load_store: documented(16, WHITEPAPER_GA102),
        shared_bytes: documented(128, WHITEPAPER_GA102),
    },
    latency: Latency {
        alu: measured(4, ACCEL_SIM_3070),
        int_mul: measured(4, ACCEL_SIM_3070),
        fp64: measured(64, ACCEL_SIM_3070),
        special: measured(21, ACCEL_SIM_3070),
        shared: measured(29, ACCEL_SIM_3070),
        l1: measured(39, ACCEL_SIM_3070),
        // The table there says "RTX 2000" with 3 MiB of level-2 cache: the GA106 board.
        l2: measured(214, DEWING),
        dram: measured(570, DEWING),
    },
};

const AS_SM_86: &str = "equal to sm_86: the same SM apart from the size of its cache";

pub(super) const SM_87: Architecture = Architecture {
    sm: 87,
    family: "Ampere",
    registers: REGISTERS_64K,
    threads: ThreadLimits {
        per_block: 1024,
        warps: 48,
        blocks: 16,
    },
    shared: shared_memory(164 * KB, UP_TO_164_KB),
    barriers: None,
    limits: LIMITS,
    schedulers: 4,
    l1_bytes: documented(192 * KB, GUIDE_13_CACHE),
    throughput: Throughput {
        fp32: documented(128, ORIN_BRIEF),
        fp64: estimated(2, AS_SM_86),
        // Public measurements lie near 200, neither the 128 of sm_86 nor the 256 of sm_80.
        fp16: None,
        int_add: estimated(64, AS_SM_86),
        logic: estimated(64, AS_SM_86),
        shift: estimated(64, AS_SM_86),
        int_mul: estimated(64, AS_SM_86),
        special: estimated(16, AS_SM_86),
        int_to_float: estimated(16, AS_SM_86),
        float_to_int: estimated(16, AS_SM_86),
        convert_64: estimated(2, AS_SM_86),
        shuffle: estimated(32, AS_SM_86),
        load_store: estimated(16, AS_SM_86),
        shared_bytes: estimated(128, AS_SM_86),
    },
    latency: Latency {
        alu: measured(4, ACCEL_SIM_ORIN),
        int_mul: measured(4, ACCEL_SIM_ORIN),
        fp64: measured(55, ACCEL_SIM_ORIN),
        special: measured(23, ACCEL_SIM_ORIN),
        shared: measured(29, ACCEL_SIM_ORIN),
        l1: measured(39, ACCEL_SIM_ORIN),
        l2: None,
        dram: None,
    },
};
