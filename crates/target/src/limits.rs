//! The limit that each resource of an SM sets on the number of resident blocks, and which of them bind.

use serde::{Serialize, Serializer};

/// A resource of an SM that can limit the number of resident blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Limiter {
    /// The register file.
    Registers,
    /// Shared memory.
    SharedMemory,
    /// Warp slots (resident threads).
    Warps,
    /// Block slots.
    Blocks,
    /// Hardware barriers.
    Barriers,
}

impl Limiter {
    /// All of them, in the order in which they are reported.
    pub const ALL: [Self; 5] = [
        Self::Registers,
        Self::SharedMemory,
        Self::Warps,
        Self::Blocks,
        Self::Barriers,
    ];

    /// The name in words: "shared memory".
    pub const fn name(self) -> &'static str {
        match self {
            Self::Registers => "registers",
            Self::SharedMemory => "shared memory",
            Self::Warps => "warps",
            Self::Blocks => "blocks",
            Self::Barriers => "barriers",
        }
    }
}

/// A set of [`Limiter`]s.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Limiters(u8);

impl Limiters {
    /// Whether the set holds this one.
    pub const fn contains(self, limiter: Limiter) -> bool {
        self.0 & (1 << limiter as u8) != 0
    }

    /// Its members, in the order of [`Limiter::ALL`].
    pub fn iter(self) -> impl Iterator<Item = Limiter> {
        Limiter::ALL
            .into_iter()
            .filter(move |&limiter| self.contains(limiter))
    }
}

impl FromIterator<Limiter> for Limiters {
    fn from_iter<I: IntoIterator<Item = Limiter>>(limiters: I) -> Self {
        Self(
            limiters
                .into_iter()
                .fold(0, |set, limiter| set | 1 << limiter as u8),
        )
    }
}

impl Serialize for Limiters {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

/// How many blocks each resource alone would let reside on one SM; `None`: it sets no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct BlockLimits {
    /// By the register file.
    pub registers: Option<u32>,
    /// By shared memory.
    pub shared_memory: Option<u32>,
    /// By warp slots.
    pub warps: u32,
    /// By block slots.
    pub blocks: u32,
    /// By hardware barriers.
    pub barriers: Option<u32>,
}

impl BlockLimits {
    /// The limit that this resource sets.
    pub const fn of(&self, limiter: Limiter) -> Option<u32> {
        match limiter {
            Limiter::Registers => self.registers,
            Limiter::SharedMemory => self.shared_memory,
            Limiter::Warps => Some(self.warps),
            Limiter::Blocks => Some(self.blocks),
            Limiter::Barriers => self.barriers,
        }
    }

    /// The smallest limit: blocks that do reside.
    pub fn min(&self) -> u32 {
        self.without_registers()
            .min(self.registers.unwrap_or(u32::MAX))
    }

    /// The smallest limit among all but the register file.
    pub(crate) fn without_registers(&self) -> u32 {
        let unlimited = u32::MAX;
        self.warps
            .min(self.blocks)
            .min(self.shared_memory.unwrap_or(unlimited))
            .min(self.barriers.unwrap_or(unlimited))
    }

    /// The resources whose limit is the smallest.
    pub fn limiters(&self) -> Limiters {
        let blocks = Some(self.min());
        Limiter::ALL
            .into_iter()
            .filter(|&limiter| self.of(limiter) == blocks)
            .collect()
    }
}
