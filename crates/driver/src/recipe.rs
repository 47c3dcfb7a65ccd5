//! A recipe: the ordered list of decisions that turns a kernel into a candidate.
//!
//! Recipes are what `opt` prints, `tune` stores and anyone can replay; they serialise to JSON and
//! have a short name (`maxnreg-64+smem`) that is unique within a kernel.

use serde::{Deserialize, Serialize};
use std::fmt;

/// One decision about one kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(tag = "decision", rename_all = "kebab-case")]
pub enum Decision {
    /// Limit the registers per thread by the `.maxnreg` directive (PTX ISA, performance-tuning
    /// directives). It replaces a `.minnctapersm` of the kernel: the two contradict each other.
    MaxRegisters {
        /// Registers per thread.
        registers: u32,
    },
    /// Promise a block size by `.maxntid`. A launch with larger blocks fails, so this is only
    /// proposed when the block size was given.
    BlockBound {
        /// Threads per block.
        threads: u32,
    },
    /// Ask for this many resident blocks by `.minnctapersm`; needs a block bound.
    MinBlocks {
        /// Blocks per SM.
        blocks: u32,
    },
    /// Let ptxas spill to shared memory first (`.pragma "enable_smem_spilling"`, CUDA 13.0).
    SharedSpilling,
    /// ptxas `--register-usage-level` (0 to 10, 5 is the default). An option of the whole module.
    RegisterUsageLevel {
        /// The level.
        level: u8,
    },
    /// Recompute values and park them in shared memory until the PTX needs at most this many
    /// registers (You & Tsai, Algorithms 1 and 2).
    Reduce {
        /// 32-bit registers per thread that the values of the PTX may take.
        registers: u32,
    },
    /// Allocate the registers of the PTX (CRAT, section 5). What does not fit is spilled, to shared
    /// memory as far as this many blocks stay resident, the rest to local memory.
    Allocate {
        /// 32-bit registers per thread that the values of the PTX may take.
        registers: u32,
        /// Blocks per SM.
        blocks: u32,
    },
    /// Let fewer blocks reside than could: each has more of the caches (CRAT, section 4.1).
    Throttle {
        /// Blocks per SM.
        blocks: u32,
        /// What the blocks are made to run out of.
        by: Scarce,
    },
    /// Move the spill slots of the finished machine code from local to shared memory (RegDem).
    SpillToShared,
    /// Move the hottest of them, as far as this many blocks stay resident.
    SpillHottestToShared {
        /// Blocks per SM.
        blocks: u32,
    },
}

/// The resource that a throttled kernel takes more of than it uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scarce {
    /// Registers: the cubin states a larger count. The caches keep their size.
    Registers,
    /// Shared memory: an array that nobody uses, as in the paper. Where the first-level cache and
    /// shared memory are one, the cache gets smaller by what the arrays take.
    SharedMemory,
}

/// Where in the making of a candidate a decision is carried out. The stages follow one upon the
/// other, whatever the order in the recipe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// The PTX is rewritten ([`crate::rewrite`]).
    Rewrite,
    /// Directives and pragmas are set ([`crate::realise`]).
    Directive,
    /// ptxas is told by an option.
    Assembler,
    /// The cubin is edited ([`crate::finish`]).
    Finish,
}

impl Decision {
    /// Where it is carried out.
    pub fn stage(self) -> Stage {
        match self {
            Decision::Reduce { .. } | Decision::Allocate { .. } => Stage::Rewrite,
            Decision::Throttle {
                by: Scarce::SharedMemory,
                ..
            } => Stage::Rewrite,
            Decision::MaxRegisters { .. }
            | Decision::BlockBound { .. }
            | Decision::MinBlocks { .. }
            | Decision::SharedSpilling => Stage::Directive,
            Decision::RegisterUsageLevel { .. } => Stage::Assembler,
            Decision::Throttle {
                by: Scarce::Registers,
                ..
            }
            | Decision::SpillToShared
            | Decision::SpillHottestToShared { .. } => Stage::Finish,
        }
    }
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Decision::MaxRegisters { registers } => write!(f, "maxnreg-{registers}"),
            Decision::BlockBound { threads } => write!(f, "maxntid-{threads}"),
            Decision::MinBlocks { blocks } => write!(f, "minblocks-{blocks}"),
            Decision::SharedSpilling => f.write_str("smem"),
            Decision::RegisterUsageLevel { level } => write!(f, "level-{level}"),
            Decision::Reduce { registers } => write!(f, "reduce-{registers}"),
            Decision::Allocate { registers, blocks } => write!(f, "allocate-{registers}x{blocks}"),
            Decision::Throttle { blocks, by } => match by {
                Scarce::Registers => write!(f, "throttle-{blocks}"),
                Scarce::SharedMemory => write!(f, "throttle-{blocks}-smem"),
            },
            Decision::SpillToShared => f.write_str("spill-to-shared"),
            Decision::SpillHottestToShared { blocks } => write!(f, "spill-to-shared-x{blocks}"),
        }
    }
}

/// An ordered list of decisions; empty means "do nothing".
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Recipe(pub Vec<Decision>);

impl Recipe {
    /// Does it leave the kernel alone?
    pub fn is_default(&self) -> bool {
        self.0.is_empty()
    }

    /// The same recipe with one more decision at the end.
    #[must_use]
    pub fn with(&self, decision: Decision) -> Self {
        let mut decisions = self.0.clone();
        decisions.push(decision);
        Recipe(decisions)
    }

    /// The decisions of one stage, in order.
    pub fn at(&self, stage: Stage) -> impl Iterator<Item = Decision> + '_ {
        self.0.iter().copied().filter(move |d| d.stage() == stage)
    }

    /// Is the code the default build's, at most with fewer resident blocks?
    pub fn is_throttle_only(&self) -> bool {
        let is_throttle = |d: &Decision| matches!(d, Decision::Throttle { .. });
        self.0.iter().all(is_throttle)
    }

    /// Can PTX text alone carry it? (A ptxas option can be named beside the text.)
    pub fn fits_ptx(&self) -> bool {
        self.at(Stage::Finish).next().is_none()
    }

    /// The ptxas `--register-usage-level` it asks for.
    pub fn usage_level(&self) -> Option<u8> {
        self.0.iter().find_map(|d| match d {
            Decision::RegisterUsageLevel { level } => Some(*level),
            _ => None,
        })
    }

    /// The largest block that it promises, in threads.
    pub fn block_bound(&self) -> Option<u32> {
        self.0.iter().find_map(|d| match d {
            Decision::BlockBound { threads } => Some(*threads),
            _ => None,
        })
    }

    /// The register limit it sets.
    pub fn max_registers(&self) -> Option<u32> {
        self.0.iter().find_map(|d| match d {
            Decision::MaxRegisters { registers } => Some(*registers),
            _ => None,
        })
    }
}

impl fmt::Display for Recipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("default");
        }
        for (i, decision) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str("+")?;
            }
            write!(f, "{decision}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_short_and_json_is_stable() {
        let recipe = Recipe::default()
            .with(Decision::MaxRegisters { registers: 64 })
            .with(Decision::SharedSpilling);
        assert_eq!(recipe.to_string(), "maxnreg-64+smem");
        assert_eq!(Recipe::default().to_string(), "default");
        let json = serde_json::to_string(&recipe).unwrap();
        assert_eq!(
            json,
            r#"[{"decision":"max-registers","registers":64},{"decision":"shared-spilling"}]"#
        );
        assert_eq!(serde_json::from_str::<Recipe>(&json).unwrap(), recipe);
    }

    #[test]
    fn throttles_are_carried_out_where_their_resource_is() {
        let by = |by| Decision::Throttle { blocks: 3, by };
        let registers = Recipe::default().with(by(Scarce::Registers));
        let shared = Recipe::default().with(by(Scarce::SharedMemory));
        assert_eq!(registers.to_string(), "throttle-3");
        assert_eq!(shared.to_string(), "throttle-3-smem");
        assert!(!registers.fits_ptx() && shared.fits_ptx());
        let json = serde_json::to_string(&registers).unwrap();
        assert_eq!(
            json,
            r#"[{"decision":"throttle","blocks":3,"by":"registers"}]"#
        );
    }
}
