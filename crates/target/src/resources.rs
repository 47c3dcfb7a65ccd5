//! What a kernel takes of an SM, and the choices of a launch.

use serde::{Deserialize, Serialize};

/// What one block of a kernel takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Resources {
    /// 32-bit registers per thread.
    pub regs: u32,
    /// Threads per block.
    pub block_threads: u32,
    /// Static shared memory in bytes per block, without the part that the system reserves.
    pub static_smem: u32,
    /// Dynamic shared memory in bytes per block.
    pub dynamic_smem: u32,
    /// Named barriers (`ptxas -v`: "used N barriers"). They bind from compute capability 9.0 on.
    #[serde(default)]
    pub barriers: u32,
}

impl Resources {
    /// A kernel without shared memory.
    pub const fn new(regs: u32, block_threads: u32) -> Self {
        Self {
            regs,
            block_threads,
            static_smem: 0,
            dynamic_smem: 0,
            barriers: 0,
        }
    }

    /// With this much static shared memory (bytes per block).
    #[must_use]
    pub const fn static_smem(self, bytes: u32) -> Self {
        Self {
            static_smem: bytes,
            ..self
        }
    }

    /// With this much dynamic shared memory (bytes per block).
    #[must_use]
    pub const fn dynamic_smem(self, bytes: u32) -> Self {
        Self {
            dynamic_smem: bytes,
            ..self
        }
    }

    /// With this many registers per thread.
    #[must_use]
    pub const fn regs(self, regs: u32) -> Self {
        Self { regs, ..self }
    }
}

/// How the split between shared memory and level-1 cache is chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Carveout {
    /// No preference: the calculator reckons with the largest, as NVIDIA's does.
    #[default]
    MaxShared,
    /// The preferred share of the largest carve-out in percent, rounded up to one that exists
    /// (`cudaFuncAttributePreferredSharedMemoryCarveout`); above 100 is 100.
    Percent(u8),
}

/// Choices of a launch that bear on occupancy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Options {
    /// The preferred carve-out.
    pub carveout: Carveout,
    /// Whether the kernel may use more shared memory than the default limit (48 KB). True by default:
    /// a static section needs no opt-in, and for dynamic memory it is one attribute.
    pub opt_in: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            carveout: Carveout::MaxShared,
            opt_in: true,
        }
    }
}
