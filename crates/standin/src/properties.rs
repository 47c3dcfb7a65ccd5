//! What the GPU that is stood in for says of itself. What our tables do not have is zero.

use std::ffi::c_int;

use warpwright_target::{
    ACCESS_WINDOW_BYTES, BLOCK_DIMENSIONS, CONSTANT_BYTES, GRID_DIMENSIONS, Gpu, PITCH_BYTES,
    WARP_SIZE,
};

use crate::abi::DeviceProperties;
use crate::record::name;

/// The properties, with so many bytes of memory.
pub fn properties(gpu: &Gpu, memory: u64) -> DeviceProperties {
    // SAFETY: numbers and arrays of numbers, for which zeros stand.
    let mut p: DeviceProperties = unsafe { std::mem::zeroed() };
    let (arch, board) = (gpu.arch, gpu.typical_board());
    let (shared, registers) = (arch.shared, arch.registers);
    let (major, minor) = arch.compute_capability();
    for (to, from) in p.name.iter_mut().zip(name(gpu).bytes().take(255)) {
        *to = from as _;
    }
    p.total_memory = memory as usize;
    p.shared_per_block = shared.per_block as usize;
    p.shared_per_sm = shared.per_sm as usize;
    p.shared_opt_in = shared.per_block_opt_in as usize;
    p.shared_reserved = shared.reserved as usize;
    p.registers_per_block = registers.per_block as c_int;
    p.registers_per_sm = registers.per_sm as c_int;
    p.warp = WARP_SIZE as c_int;
    p.most_pitch = i32::MAX as usize;
    p.threads_per_block = arch.threads.per_block as c_int;
    p.block = BLOCK_DIMENSIONS.map(|n| n as c_int);
    p.grid = GRID_DIMENSIONS.map(|n| n as c_int);
    p.constant = CONSTANT_BYTES as usize;
    (p.major, p.minor) = (major as c_int, minor as c_int);
    p.texture_alignment = PITCH_BYTES as usize;
    p.texture_pitch_alignment = WARP_SIZE as usize;
    p.sms = gpu.typical_sms().unwrap_or(1) as c_int;
    p.maps_host_memory = 1;
    p.concurrent_kernels = 1;
    p.copy_engines = 1;
    p.unified_addressing = 1;
    let l2 = board.and_then(|board| board.l2_kib);
    p.l2 = l2.map_or(0, |fact| fact.value as c_int * 1024);
    let set_aside = board.and_then(|board| board.persisting_l2_kib);
    p.persisting_l2 = set_aside.map_or(0, |fact| fact.value as c_int * 1024);
    if arch.has_persisting_l2() {
        p.policy_window = ACCESS_WINDOW_BYTES as c_int;
    }
    p.threads_per_sm = (arch.threads.warps * WARP_SIZE) as c_int;
    p.blocks_per_sm = arch.threads.blocks as c_int;
    p.stream_priorities = 1;
    p.global_l1 = 1;
    p.local_l1 = 1;
    p.managed = 1;
    p.concurrent_managed = 1;
    p.preemption = 1;
    p.registered_pointer = 1;
    p.cooperative = 1;
    p.host_register = 1;
    p.pools = 1;
    p.clusters = c_int::from(gpu.arch.has_clusters());
    p
}

/// `cudaDeviceGetAttribute`: by the attribute's number.
pub fn attribute(gpu: &Gpu, number: c_int) -> c_int {
    let p = properties(gpu, 0);
    let clock = gpu.typical_board().and_then(|board| board.clock_mhz);
    match number {
        1 => p.threads_per_block,
        2..=4 => p.block[number as usize - 2],
        5..=7 => p.grid[number as usize - 5],
        8 => p.shared_per_block as c_int,
        9 => p.constant as c_int,
        10 => p.warp,
        11 => p.most_pitch as c_int,
        12 => p.registers_per_block,
        13 => clock.map_or(0, |fact| fact.value as c_int * 1000),
        14 => p.texture_alignment as c_int,
        15 | 19 | 31 | 40 | 41 | 78 | 79 | 80 | 83 | 89 | 90 | 91 | 95 | 99 | 115 => 1,
        16 => p.sms,
        38 => p.l2,
        39 => p.threads_per_sm,
        51 => p.texture_pitch_alignment as c_int,
        75 => p.major,
        76 => p.minor,
        81 => p.shared_per_sm as c_int,
        82 => p.registers_per_sm,
        97 => p.shared_opt_in as c_int,
        106 => p.blocks_per_sm,
        108 => p.persisting_l2,
        109 => p.policy_window,
        111 => p.shared_reserved as c_int,
        120 => p.clusters,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `cudaDevAttrMaxPersistingL2CacheSize` and `cudaDevAttrMaxAccessPolicyWindowSize`.
    #[test]
    fn a_part_of_the_cache_can_be_set_aside_from_8_0_on() {
        for (name, set_aside, window) in [
            ("h200", 39_321_600, 134_217_728),
            ("orin", 3_145_728, 134_217_728),
            ("t4", 0, 0),
        ] {
            let gpu = warpwright_target::lookup(name).unwrap();
            let p = properties(&gpu, 0);
            assert_eq!((p.persisting_l2, p.policy_window), (set_aside, window));
            assert_eq!([108, 109].map(|n| attribute(&gpu, n)), [set_aside, window]);
        }
    }
}
