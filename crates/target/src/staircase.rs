//! The inverse of the calculator: how many registers a thread may have so that a number of blocks resides.
//!
//! Paper: You & Tsai 2011, section 2.1. Their Eq. 2 holds for registers that are allocated to blocks
//! (compute capability 1.x); [`desired_registers`] is the same inversion for each allocation rule.

use serde::Serialize;

use crate::arch::{Architecture, RegisterAllocation, WARP_SIZE};
use crate::gpu::Gpu;
use crate::occupancy::{LaunchError, block_limits};
use crate::resources::{Options, Resources};

/// One step of the staircase.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Stair {
    /// Resident blocks per SM.
    pub blocks: u32,
    /// Resident warps per SM.
    pub warps: u32,
    /// Resident warps in percent of the warps that the SM can hold.
    pub percent: f64,
    /// The largest number of registers per thread at which this many blocks reside.
    pub regs: u32,
}

/// Each number of resident blocks that some register count reaches, from one block up, with the largest
/// register count that still reaches it.
///
/// # Errors
/// [`LaunchError`] where the block cannot be launched at any register count.
pub fn staircase(
    gpu: &Gpu,
    block_threads: u32,
    static_smem: u32,
    dynamic_smem: u32,
) -> Result<Vec<Stair>, LaunchError> {
    let block = Resources::new(0, block_threads)
        .static_smem(static_smem)
        .dynamic_smem(dynamic_smem);
    let options = Options::default();
    let most = block_limits(gpu.arch, &block, &options)?.min();
    let warps_per_block = block_threads.div_ceil(WARP_SIZE);
    let mut stairs = Vec::new();
    for blocks in 1..=most {
        let Some(regs) = desired_registers(gpu, block_threads, blocks) else {
            break;
        };
        // The same register count may hold more blocks: then no count holds exactly this many.
        if block_limits(gpu.arch, &block.regs(regs), &options)?.min() == blocks {
            let warps = blocks * warps_per_block;
            let percent = 100.0 * f64::from(warps) / f64::from(gpu.arch.threads.warps);
            stairs.push(Stair {
                blocks,
                warps,
                percent,
                regs,
            });
        }
    }
    Ok(stairs)
}

/// The desired register usage (DRU): the largest number of registers per thread at which the register
/// file holds `blocks` blocks. `None` where no register count does, and for a block or a number of blocks
/// of 0.
///
/// Eq. 2 of You & Tsai for allocation per block: `⌊⌊units / blocks⌋ · unit / threads⌋`. For allocation per
/// warp each sub-partition of the file must hold its share of the warps, so the division is by warps and
/// the result is rounded down to the allocation unit. Other resources are not looked at.
pub fn desired_registers(gpu: &Gpu, block_threads: u32, blocks: u32) -> Option<u32> {
    if block_threads == 0 || block_threads > gpu.arch.threads.per_block || blocks == 0 {
        return None;
    }
    registers_of_bound(gpu, block_threads, blocks)
}

/// The same for a bound that may be larger than any block: ptxas keeps to it all the same (13.5), as far as an SM holds so
/// many threads; beyond that it ignores the bound.
pub fn registers_of_bound(gpu: &Gpu, threads: u32, blocks: u32) -> Option<u32> {
    let warps = threads.div_ceil(WARP_SIZE);
    if warps == 0 || blocks == 0 || warps > gpu.arch.threads.warps {
        return None;
    }
    let regs = most_registers(gpu.arch, warps, blocks);
    Some(regs.min(gpu.arch.registers.per_thread)).filter(|&regs| regs > 0)
}

fn most_registers(arch: &Architecture, warps: u32, blocks: u32) -> u32 {
    let file = &arch.registers;
    let granularity = file.warp_granularity;
    let allocated_warps = warps.next_multiple_of(granularity);
    match file.allocation {
        RegisterAllocation::PerBlock(unit) => {
            file.per_sm / unit / blocks * unit / (allocated_warps * WARP_SIZE)
        }
        RegisterAllocation::PerWarp(unit) => {
            let warps_per_partition = warps.saturating_mul(blocks).div_ceil(granularity);
            let by_file = file.per_sm / granularity / warps_per_partition;
            // The launch check reckons with the warps of one block rounded up.
            let by_check = file.per_block / allocated_warps;
            by_file.min(by_check) / unit * unit / WARP_SIZE
        }
    }
}

/// The DRU of You & Tsai's Table 1: the largest number of registers per thread at which one block more
/// than now resides; `None` where another resource than registers keeps it out.
///
/// # Errors
/// [`LaunchError`] where the kernel cannot be launched as it is.
pub fn registers_for_one_more_block(
    gpu: &Gpu,
    resources: &Resources,
) -> Result<Option<u32>, LaunchError> {
    let limits = block_limits(gpu.arch, resources, &Options::default())?;
    let wanted = limits.min() + 1;
    if wanted > limits.without_registers() {
        return Ok(None);
    }
    Ok(desired_registers(gpu, resources.block_threads, wanted))
}

/// The most shared memory, static and dynamic together, in bytes per block at which `blocks` blocks reside;
/// `None` where no amount lets so many reside. What a kernel does not use of it is free for spills.
///
/// Other resources are not looked at; the carve-out is the largest, and the kernel may opt in.
pub fn most_shared_memory(gpu: &Gpu, blocks: u32) -> Option<u32> {
    let shared = &gpu.arch.shared;
    let share = shared.per_sm.checked_div(blocks)? / shared.unit * shared.unit;
    Some(
        share
            .checked_sub(shared.reserved)?
            .min(shared.per_block_opt_in),
    )
}
