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
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Decision::MaxRegisters { registers } => write!(f, "maxnreg-{registers}"),
            Decision::BlockBound { threads } => write!(f, "maxntid-{threads}"),
            Decision::MinBlocks { blocks } => write!(f, "minblocks-{blocks}"),
            Decision::SharedSpilling => f.write_str("smem"),
            Decision::RegisterUsageLevel { level } => write!(f, "level-{level}"),
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
}
