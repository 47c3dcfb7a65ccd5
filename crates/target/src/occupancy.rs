//! The occupancy calculator: how many blocks of a kernel fit on one SM, and what limits them.
//!
//! The rules are those of NVIDIA's `cuda_occupancy.h` (compute capability 3.0 and later), which
//! `tests/header.rs` compares over the whole range, and of the CUDA Occupancy Calculator spreadsheet for
//! the parts before. One departure: the header keeps a limiting factor that a lower barrier limit has
//! overtaken; here a resource is a limiter exactly when its own limit equals the result.

use serde::Serialize;
use thiserror::Error;

use crate::arch::{
    Architecture, BelowNeed, RegisterAllocation, RegisterFile, SharedMemory, WARP_SIZE,
};
use crate::gpu::Gpu;
use crate::limits::{BlockLimits, Limiters};
use crate::resources::{Carveout, Options, Resources};

/// Barriers that one block can name (PTX ISA, `bar`: 0 to 15).
const MAX_BARRIERS_PER_BLOCK: u32 = 16;

/// What resides on one SM.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Occupancy {
    /// Resident blocks.
    pub blocks: u32,
    /// Resident warps.
    pub warps: u32,
    /// Resident warps in percent of the warps that the SM can hold.
    pub percent: f64,
    /// The resources that keep one more block out.
    pub limiters: Limiters,
    /// The limit of each resource.
    pub limits: BlockLimits,
}

/// Why a kernel cannot be launched at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
pub enum LaunchError {
    /// A block without threads.
    #[error("a block of 0 threads cannot be launched")]
    EmptyBlock,
    /// More threads than a block may have.
    #[error("a block of {threads} threads is larger than the {max} that the device allows")]
    BlockTooLarge {
        /// Threads per block asked for.
        threads: u32,
        /// Threads per block allowed.
        max: u32,
    },
    /// More registers than a thread may have.
    #[error("{regs} registers per thread are more than the {max} that the device allows")]
    TooManyRegisters {
        /// Registers per thread asked for.
        regs: u32,
        /// Registers per thread allowed.
        max: u32,
    },
    /// Not even one block fits into the register file.
    #[error(
        "a block of {threads} threads at {regs} registers takes {needed} registers, more than the {max} that \
         the device allows: one of {fits} threads fits"
    )]
    RegistersExceeded {
        /// Threads per block.
        threads: u32,
        /// Registers per thread.
        regs: u32,
        /// Registers that the hardware reckons for one block.
        needed: u32,
        /// Registers per block allowed.
        max: u32,
        /// Threads of the largest block with these registers, in whole warps.
        fits: u32,
    },
    /// More shared memory than a block may have.
    #[error(
        "a block takes {needed} bytes of shared memory ({reserved} of them reserved by the system), more than \
         the {max} that the device allows"
    )]
    SharedMemoryExceeded {
        /// Bytes per block as allocated.
        needed: u64,
        /// Bytes of these that the system takes.
        reserved: u32,
        /// Bytes per block allowed, with the reserved part.
        max: u32,
    },
    /// More named barriers than a block may have.
    #[error("{barriers} barriers are more than the {MAX_BARRIERS_PER_BLOCK} that a block can name")]
    TooManyBarriers {
        /// Barriers asked for.
        barriers: u32,
    },
}

/// The occupancy of a kernel with the default [`Options`]: the largest carve-out, opt-in to the largest
/// shared memory per block.
///
/// # Errors
/// [`LaunchError`] where not even one block can be launched.
pub fn occupancy(gpu: &Gpu, resources: &Resources) -> Result<Occupancy, LaunchError> {
    occupancy_with(gpu, resources, &Options::default())
}

/// The occupancy of a kernel with these choices of launch.
///
/// # Errors
/// [`LaunchError`] where not even one block can be launched.
pub fn occupancy_with(
    gpu: &Gpu,
    resources: &Resources,
    options: &Options,
) -> Result<Occupancy, LaunchError> {
    let limits = block_limits(gpu.arch, resources, options)?;
    let blocks = limits.min();
    let warps = blocks * resources.block_threads.div_ceil(WARP_SIZE);
    Ok(Occupancy {
        blocks,
        warps,
        percent: 100.0 * f64::from(warps) / f64::from(gpu.arch.threads.warps),
        limiters: limits.limiters(),
        limits,
    })
}

/// The limit that each resource sets; at least one block each.
pub(crate) fn block_limits(
    arch: &Architecture,
    resources: &Resources,
    options: &Options,
) -> Result<BlockLimits, LaunchError> {
    let threads = resources.block_threads;
    if threads == 0 {
        return Err(LaunchError::EmptyBlock);
    }
    if threads > arch.threads.per_block {
        return Err(LaunchError::BlockTooLarge {
            threads,
            max: arch.threads.per_block,
        });
    }
    if resources.barriers > MAX_BARRIERS_PER_BLOCK {
        return Err(LaunchError::TooManyBarriers {
            barriers: resources.barriers,
        });
    }
    Ok(BlockLimits {
        registers: register_limit(arch, resources.regs, threads)?,
        shared_memory: shared_limit(&arch.shared, resources, options)?,
        warps: arch.threads.warps / threads.div_ceil(WARP_SIZE),
        blocks: arch.threads.blocks,
        barriers: arch
            .barriers
            .and_then(|available| available.checked_div(resources.barriers)),
    })
}

/// Blocks that the register file holds; `None` for a kernel without registers.
fn register_limit(
    arch: &Architecture,
    regs: u32,
    threads: u32,
) -> Result<Option<u32>, LaunchError> {
    let file = &arch.registers;
    if regs > file.per_thread {
        return Err(LaunchError::TooManyRegisters {
            regs,
            max: file.per_thread,
        });
    }
    if regs == 0 {
        return Ok(None);
    }
    let warps = threads.div_ceil(WARP_SIZE);
    let needed = registers_per_block(file, regs, warps);
    if needed > file.per_block {
        return Err(LaunchError::RegistersExceeded {
            threads,
            regs,
            needed,
            max: file.per_block,
            fits: largest_block(file, regs, warps),
        });
    }
    Ok(Some(match file.allocation {
        RegisterAllocation::PerWarp(unit) => {
            // Each of `warp_granularity` sub-partitions has its share of the file and holds whole warps.
            let per_partition = file.per_sm / file.warp_granularity / warp_registers(regs, unit);
            per_partition * file.warp_granularity / warps
        }
        RegisterAllocation::PerBlock(unit) => file.per_sm / unit / (needed / unit),
    }))
}

/// Threads of the largest block of fewer warps that the register file holds.
fn largest_block(file: &RegisterFile, regs: u32, warps: u32) -> u32 {
    let mut fewer = (0..warps).rev();
    let fits = |warps: &u32| registers_per_block(file, regs, *warps) <= file.per_block;
    fewer.find(fits).unwrap_or(0) * WARP_SIZE
}

/// Registers that the hardware reckons for one block when it checks a launch: warps are rounded up to
/// their granularity.
fn registers_per_block(file: &RegisterFile, regs: u32, warps: u32) -> u32 {
    let warps = warps.next_multiple_of(file.warp_granularity);
    match file.allocation {
        RegisterAllocation::PerWarp(unit) => warp_registers(regs, unit) * warps,
        RegisterAllocation::PerBlock(unit) => (regs * WARP_SIZE * warps).next_multiple_of(unit),
    }
}

/// Registers of one warp as allocated.
fn warp_registers(regs: u32, unit: u32) -> u32 {
    (regs * WARP_SIZE).next_multiple_of(unit)
}

/// Blocks that shared memory holds; `None` for a block that takes none.
fn shared_limit(
    shared: &SharedMemory,
    resources: &Resources,
    options: &Options,
) -> Result<Option<u32>, LaunchError> {
    let asked = u64::from(resources.static_smem) + u64::from(resources.dynamic_smem);
    let needed = (asked + u64::from(shared.reserved)).next_multiple_of(u64::from(shared.unit));
    let allowed = if options.opt_in {
        shared.per_block_opt_in
    } else {
        shared.per_block
    };
    let max = allowed + shared.reserved;
    let Some(block) = u32::try_from(needed).ok().filter(|&bytes| bytes <= max) else {
        return Err(LaunchError::SharedMemoryExceeded {
            needed,
            reserved: shared.reserved,
            max,
        });
    };
    Ok(carveout(shared, options.carveout, block).checked_div(block))
}

/// The carve-out in effect for blocks of this many bytes.
fn carveout(shared: &SharedMemory, preferred: Carveout, block: u32) -> u32 {
    let Carveout::Percent(percent) = preferred else {
        return shared.per_sm;
    };
    let share = u64::from(percent.min(100)) * u64::from(shared.per_sm) / 100;
    let chosen = smallest_carveout(shared, share);
    match shared.below_need {
        _ if chosen >= block => chosen,
        BelowNeed::SmallestThatFits => smallest_carveout(shared, u64::from(block)),
        BelowNeed::Largest => shared.per_sm,
    }
}

/// The smallest carve-out of at least this many bytes.
fn smallest_carveout(shared: &SharedMemory, bytes: u64) -> u32 {
    let fits = |&&size: &&u32| u64::from(size) >= bytes;
    shared
        .carveouts
        .iter()
        .find(fits)
        .copied()
        .unwrap_or(shared.per_sm)
}
