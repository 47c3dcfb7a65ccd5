//! What one architecture (compute capability) is: launch limits, unit throughputs, latencies.

use serde::Serialize;

use crate::fact::{Fact, Provenance};

/// Threads per warp, on every architecture so far.
pub const WARP_SIZE: u32 = 32;

/// The most threads that a block of any device has (CUDA C++ Programming Guide, compute capabilities).
pub const THREADS_PER_BLOCK: u32 = 1024;

/// The most threads that reside on a multiprocessor of any device (same place).
pub const RESIDENT_THREADS: u32 = 2048;

/// Bytes of shared memory that a block has without asking for more, from compute capability 2.0 on (same place).
pub const SHARED_PER_BLOCK: u32 = 48 << 10;

/// The most bytes of shared memory that a block of any device has (same place).
pub const MOST_SHARED_PER_BLOCK: u32 = 227 << 10;

/// The most threads that a block of any device has along x, y and z (same place).
pub const BLOCK_DIMENSIONS: [u32; 3] = [1024, 1024, 64];

/// The most blocks of a grid along x, y and z, from compute capability 3.0 on (same place).
pub const GRID_DIMENSIONS: [u32; 3] = [i32::MAX as u32, 65_535, 65_535];

/// Bytes of constant memory that a module's variables may take (same place).
pub const CONSTANT_BYTES: u32 = 64 << 10;

/// Bytes of the pages in which device memory is mapped: an access behind an allocation but within its last page is
/// answered (`cuMemGetAllocationGranularity` on an H100 and an H200).
pub const PAGE_BYTES: u64 = 2 << 20;

/// Bytes that the rows of a pitched allocation are a multiple of, and that textures are aligned to (`deviceQuery` on an
/// H100).
pub const PITCH_BYTES: u64 = 512;

/// Bytes of the largest window of an access policy (`cudaAccessPolicyWindow::num_bytes`), where there are such
/// (`crates/target/probe/h200.txt`; of an AGX Orin the driver of CUDA 11.4 says 4 KiB less).
pub const ACCESS_WINDOW_BYTES: u32 = 128 << 20;

/// The limits of registers per thread that ptxas takes: it raises smaller ones by itself (the ABI's minimum on
/// sm_90, ptxas 13.5), and no thread can have more.
pub const REGISTERS_PER_THREAD: std::ops::RangeInclusive<u32> = 24..=255;

/// Bytes of a line of the level-1 cache (CUDA C++ Best Practices Guide 13, Coalesced Access to Global
/// Memory).
pub const LINE_BYTES: u32 = 128;

/// Bytes that a level-1 cache fetches at once, a quarter of a line, since Maxwell (same place; before, a
/// whole line).
pub const SECTOR_BYTES: u32 = 32;

/// Bytes of local memory that a thread may have, on every architecture so far (CUDA C++ Programming Guide
/// 13, Technical Specifications per Compute Capability).
pub const LOCAL_MEMORY_PER_THREAD: u32 = 512 << 10;

/// Bytes of local memory per thread that the driver sets aside for all threads that may reside, before any kernel is
/// launched (CUDA Runtime API 13, `cudaLimitStackSize`: the default). Kernels with more make it ask for memory.
pub const STACK_PER_THREAD: u32 = 1024;

/// One row of the table: a compute capability.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Architecture {
    /// Compute capability without the dot: 90 is 9.0, 120 is 12.0, 13 is 1.3.
    pub sm: u32,
    /// NVIDIA's name of the generation: "Hopper".
    pub family: &'static str,
    /// The register file of one multiprocessor (SM).
    pub registers: RegisterFile,
    /// Threads, warps and blocks that one SM holds.
    pub threads: ThreadLimits,
    /// The shared memory of one SM.
    pub shared: SharedMemory,
    /// Hardware barriers of one SM, all blocks together; `None` where their number never binds.
    pub barriers: Option<u32>,
    /// Source of `registers`, `threads`, `shared` and `barriers`: what occupancy rests on.
    pub limits: Provenance,
    /// Warp schedulers (sub-partitions) per SM. Source: `limits`.
    pub schedulers: u32,
    /// Level-1 cache of one SM in bytes, where `shared` is carved out of it the two together.
    pub l1_bytes: Option<Fact<u32>>,
    /// Results per clock of each class of unit.
    pub throughput: Throughput,
    /// Cycles until a dependent instruction can issue.
    pub latency: Latency,
}

/// The register file. One register holds 32 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct RegisterFile {
    /// Registers per SM.
    pub per_sm: u32,
    /// Registers that one block may take.
    pub per_block: u32,
    /// Registers that one thread may take.
    pub per_thread: u32,
    /// How they are handed out.
    pub allocation: RegisterAllocation,
    /// A block's warps are rounded up to a multiple of this when registers are handed out.
    pub warp_granularity: u32,
}

/// To whom registers are allocated, and in units of how many.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RegisterAllocation {
    /// Each warp gets a multiple of the unit (compute capability 2.0 and later).
    PerWarp(u32),
    /// Each block gets a multiple of the unit (compute capability 1.x).
    PerBlock(u32),
}

/// Threads, warps and blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ThreadLimits {
    /// Threads in one block.
    pub per_block: u32,
    /// Resident warps per SM.
    pub warps: u32,
    /// Resident blocks per SM.
    pub blocks: u32,
}

/// Shared memory, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct SharedMemory {
    /// Per SM, at the largest carve-out.
    pub per_sm: u32,
    /// For one block (static and dynamic together) without opt-in.
    pub per_block: u32,
    /// For one block whose kernel opts in: an attribute for dynamic shared memory; a static section of
    /// this size in a cubin needs none.
    pub per_block_opt_in: u32,
    /// Taken by the system from every block, on top of what the kernel asks for.
    pub reserved: u32,
    /// A block gets a multiple of this.
    pub unit: u32,
    /// The sizes that the split between shared memory and level-1 cache can have, ascending.
    pub carveouts: &'static [u32],
    /// The size that is chosen where the preferred carve-out cannot hold one block.
    pub below_need: BelowNeed,
}

/// Which carve-out is used where the preferred one cannot hold one block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BelowNeed {
    /// The smallest that holds one block (compute capability 7.0 and later).
    SmallestThatFits,
    /// The largest (before).
    Largest,
}

/// Results per clock and SM: one for each thread whose instruction completes. `None`: unknown, or (for
/// `fp16`, `int_mul`, `shuffle`) no such instruction in hardware.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Throughput {
    /// 32-bit floating-point add, multiply, fused multiply-add.
    pub fp32: Option<Fact<u32>>,
    /// 64-bit floating-point add, multiply, fused multiply-add, without tensor cores.
    pub fp64: Option<Fact<u32>>,
    /// 16-bit floating-point operations, packed by two: a packed instruction counts two results.
    pub fp16: Option<Fact<u32>>,
    /// 32-bit integer add and subtract.
    pub int_add: Option<Fact<u32>>,
    /// 32-bit and, or, xor.
    pub logic: Option<Fact<u32>>,
    /// 32-bit shift.
    pub shift: Option<Fact<u32>>,
    /// 32-bit integer multiply and multiply-add.
    pub int_mul: Option<Fact<u32>>,
    /// Reciprocal, reciprocal square root, exp2, log2, sine, cosine (32 bits).
    pub special: Option<Fact<u32>>,
    /// Conversions from 32-bit integer to 32-bit floating point.
    pub int_to_float: Option<Fact<u32>>,
    /// Conversions from 32-bit floating point to 32-bit integer.
    pub float_to_int: Option<Fact<u32>>,
    /// Conversions from and to 64-bit types.
    pub convert_64: Option<Fact<u32>>,
    /// Warp shuffle.
    pub shuffle: Option<Fact<u32>>,
    /// Threads whose load or store of 32 bits the load/store units accept.
    pub load_store: Option<Fact<u32>>,
    /// Bytes per clock and SM from shared memory, without bank conflicts.
    pub shared_bytes: Option<Fact<u32>>,
}

/// Cycles (rounded) from issue of an instruction to issue of one that needs its result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Latency {
    /// 32-bit floating-point and simple integer arithmetic.
    pub alu: Option<Fact<u32>>,
    /// 32-bit integer multiply-add.
    pub int_mul: Option<Fact<u32>>,
    /// 64-bit floating-point arithmetic.
    pub fp64: Option<Fact<u32>>,
    /// Special function (reciprocal, square root, exp2 …).
    pub special: Option<Fact<u32>>,
    /// Load from shared memory without bank conflicts.
    pub shared: Option<Fact<u32>>,
    /// Load from global memory that hits the level-1 cache.
    pub l1: Option<Fact<u32>>,
    /// Load that misses level 1 and hits the level-2 cache.
    pub l2: Option<Fact<u32>>,
    /// Load that goes to device memory (translation cached).
    pub dram: Option<Fact<u32>>,
}

impl Architecture {
    /// Major and minor compute capability: (9, 0).
    pub const fn compute_capability(&self) -> (u32, u32) {
        (self.sm / 10, self.sm % 10)
    }

    /// Are there clusters of blocks (CUDA C++ Programming Guide, compute capability 9.0)?
    pub const fn has_clusters(&self) -> bool {
        self.sm >= 90
    }

    /// Can a part of the level-2 cache be set aside for persisting accesses (CUDA Programming Guide, L2 Cache Control,
    /// compute capability 8.0)?
    pub const fn has_persisting_l2(&self) -> bool {
        self.sm >= 80
    }

    /// Where a kernel's own shared memory begins, in bytes from the start of the block's: from compute
    /// capability 9.0 on the reserved part comes first, and the section size in a cubin counts it
    /// (cubins of ptxas 13.5).
    pub const fn first_shared_address(&self) -> u32 {
        if self.sm >= 90 {
            self.shared.reserved
        } else {
            0
        }
    }
}

impl Latency {
    /// A load from local memory (a spilled register) takes the path of a global load: the level-1 cache
    /// where there is one, else device memory (compute capability 1.x).
    pub const fn local(&self) -> Option<Fact<u32>> {
        match self.l1 {
            Some(_) => self.l1,
            None => self.dram,
        }
    }
}

macro_rules! named_fields {
    ($type:ident: $($field:ident),+) => {
        impl $type {
            /// The columns in order, by name.
            pub fn iter(&self) -> impl Iterator<Item = (&'static str, Option<Fact<u32>>)> + use<> {
                [$((stringify!($field), self.$field)),+].into_iter()
            }
        }
    };
}

named_fields!(Throughput: fp32, fp64, fp16, int_add, logic, shift, int_mul, special, int_to_float,
    float_to_int, convert_64,
    shuffle, load_store, shared_bytes);
named_fields!(Latency: alu, int_mul, fp64, special, shared, l1, l2, dram);
