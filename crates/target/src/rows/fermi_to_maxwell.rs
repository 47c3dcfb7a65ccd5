//! Compute capabilities 2.0 (Fermi), 3.0 and 3.5 (Kepler), 5.2 (Maxwell): the parts of the CRAT, Yang and
//! RegDem papers.

use super::sources::{
    ARAFA_KEPLER, ARAFA_MAXWELL, GUIDE_6, GUIDE_10, LIMITS_FERMI, LIMITS_KEPLER, LIMITS_MAXWELL,
    MEI_CHU, WHITEPAPER_FERMI, WHITEPAPER_KEPLER, WHITEPAPER_MAXWELL,
};
use super::{KB, REGISTERS_64K};
use crate::arch::{
    Architecture, BelowNeed, Latency, RegisterAllocation, RegisterFile, SharedMemory, ThreadLimits,
    Throughput,
};
use crate::fact::{documented, estimated, measured};

pub(super) const SM_20: Architecture = Architecture {
    sm: 20,
    family: "Fermi",
    registers: RegisterFile {
        per_sm: 32_768,
        per_block: 32_768,
        per_thread: 63,
        allocation: RegisterAllocation::PerWarp(64),
        warp_granularity: 2,
    },
    threads: ThreadLimits {
        per_block: 1024,
        warps: 48,
        blocks: 8,
    },
    shared: SharedMemory {
        per_sm: 48 * KB,
        per_block: 48 * KB,
        per_block_opt_in: 48 * KB,
        reserved: 0,
        unit: 128,
        carveouts: &[16 * KB, 48 * KB],
        below_need: BelowNeed::Largest,
    },
    barriers: None,
    limits: LIMITS_FERMI,
    schedulers: 2,
    l1_bytes: documented(64 * KB, WHITEPAPER_FERMI),
    throughput: Throughput {
        fp32: documented(32, GUIDE_6),
        fp64: documented(16, GUIDE_6),
        fp16: None,
        int_add: documented(32, GUIDE_6),
        logic: documented(32, GUIDE_6),
        shift: documented(16, GUIDE_6),
        int_mul: documented(16, GUIDE_6),
        special: documented(4, GUIDE_6),
        int_to_float: documented(16, GUIDE_6),
        float_to_int: documented(16, GUIDE_6),
        convert_64: documented(16, GUIDE_6),
        shuffle: None,
        load_store: documented(16, WHITEPAPER_FERMI),
        // 32 banks of 4 bytes, two clocks of the shader domain per access.
        shared_bytes: documented(64, GUIDE_6),
    },
    latency: Latency {
        alu: documented(22, "CUDA C Programming Guide 4.2, 5.2.3"),
        int_mul: None,
        fp64: None,
        special: None,
        shared: measured(50, MEI_CHU),
        l1: None,
        l2: None,
        dram: None,
    },
};

/// The shared memory of 3.0 and 3.5.
const KEPLER_SHARED: SharedMemory = SharedMemory {
    per_sm: 48 * KB,
    per_block: 48 * KB,
    per_block_opt_in: 48 * KB,
    reserved: 0,
    unit: 256,
    carveouts: &[16 * KB, 32 * KB, 48 * KB],
    below_need: BelowNeed::Largest,
};

const AS_SM_35: &str = "equal to sm_35: the same generation of SM";

pub(super) const SM_30: Architecture = Architecture {
    sm: 30,
    family: "Kepler",
    registers: RegisterFile {
        per_thread: 63,
        ..REGISTERS_64K
    },
    threads: ThreadLimits {
        per_block: 1024,
        warps: 64,
        blocks: 16,
    },
    shared: KEPLER_SHARED,
    barriers: None,
    limits: LIMITS_KEPLER,
    schedulers: 4,
    l1_bytes: documented(64 * KB, GUIDE_10),
    throughput: Throughput {
        fp64: documented(8, GUIDE_10),
        shift: documented(32, GUIDE_10),
        convert_64: documented(8, GUIDE_10),
        ..SM_35.throughput
    },
    latency: Latency {
        alu: estimated(9, AS_SM_35),
        int_mul: estimated(9, AS_SM_35),
        fp64: None,
        special: estimated(18, AS_SM_35),
        shared: estimated(26, AS_SM_35),
        l1: estimated(32, AS_SM_35),
        l2: estimated(188, AS_SM_35),
        dram: estimated(331, AS_SM_35),
    },
};

pub(super) const SM_35: Architecture = Architecture {
    sm: 35,
    family: "Kepler",
    registers: REGISTERS_64K,
    threads: ThreadLimits {
        per_block: 1024,
        warps: 64,
        blocks: 16,
    },
    shared: KEPLER_SHARED,
    barriers: None,
    limits: LIMITS_KEPLER,
    schedulers: 4,
    l1_bytes: documented(64 * KB, GUIDE_10),
    throughput: Throughput {
        fp32: documented(192, GUIDE_10),
        fp64: documented(64, GUIDE_10),
        fp16: None,
        int_add: documented(160, GUIDE_10),
        logic: documented(160, GUIDE_10),
        shift: documented(64, GUIDE_10),
        int_mul: documented(32, GUIDE_10),
        special: documented(32, GUIDE_10),
        int_to_float: documented(32, GUIDE_10),
        float_to_int: documented(32, GUIDE_10),
        convert_64: documented(32, GUIDE_10),
        shuffle: documented(32, GUIDE_10),
        load_store: documented(32, WHITEPAPER_KEPLER),
        // 32 banks of 8 bytes; loads of 4 bytes a thread use half of it.
        shared_bytes: documented(256, WHITEPAPER_KEPLER),
    },
    latency: Latency {
        alu: measured(9, ARAFA_KEPLER),
        int_mul: measured(9, ARAFA_KEPLER),
        fp64: measured(10, ARAFA_KEPLER),
        special: measured(18, ARAFA_KEPLER),
        shared: measured(26, ARAFA_KEPLER),
        l1: measured(32, ARAFA_KEPLER),
        l2: measured(188, ARAFA_KEPLER),
        dram: measured(331, ARAFA_KEPLER),
    },
};

pub(super) const SM_52: Architecture = Architecture {
    sm: 52,
    family: "Maxwell",
    registers: REGISTERS_64K,
    threads: ThreadLimits {
        per_block: 1024,
        warps: 64,
        blocks: 32,
    },
    shared: SharedMemory {
        per_sm: 96 * KB,
        per_block: 48 * KB,
        per_block_opt_in: 48 * KB,
        reserved: 0,
        unit: 256,
        carveouts: &[96 * KB],
        below_need: BelowNeed::Largest,
    },
    barriers: None,
    limits: LIMITS_MAXWELL,
    schedulers: 4,
    l1_bytes: documented(48 * KB, GUIDE_10),
    throughput: Throughput {
        fp32: documented(128, GUIDE_10),
        fp64: documented(4, GUIDE_10),
        fp16: None,
        int_add: documented(128, GUIDE_10),
        logic: documented(128, GUIDE_10),
        shift: documented(64, GUIDE_10),
        int_mul: None,
        special: documented(32, GUIDE_10),
        int_to_float: documented(32, GUIDE_10),
        float_to_int: documented(32, GUIDE_10),
        convert_64: documented(4, GUIDE_10),
        shuffle: documented(32, GUIDE_10),
        load_store: documented(32, WHITEPAPER_MAXWELL),
        shared_bytes: documented(128, WHITEPAPER_MAXWELL),
    },
    latency: Latency {
        alu: measured(6, ARAFA_MAXWELL),
        int_mul: measured(13, ARAFA_MAXWELL),
        fp64: measured(48, ARAFA_MAXWELL),
        special: measured(15, ARAFA_MAXWELL),
        shared: measured(24, ARAFA_MAXWELL),
        l1: measured(82, ARAFA_MAXWELL),
        l2: measured(225, ARAFA_MAXWELL),
        dram: measured(375, ARAFA_MAXWELL),
    },
};
