//! The form in which the first result files and databases hold recipes.

use serde::Deserialize;

use crate::passes::{
    Allocate, MaxNReg, MaxNTid, MinNCtaPerSm, Reduce, SmemSpilling, SpillToShared, Throttle,
    ThrottleBy, UsageLevel,
};
use crate::recipe::Invocation;

/// One decision of such a recipe.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(tag = "decision", rename_all = "kebab-case")]
pub(crate) enum Decision {
    MaxRegisters { registers: u32 },
    BlockBound { threads: u32 },
    MinBlocks { blocks: u32 },
    SharedSpilling,
    RegisterUsageLevel { level: u8 },
    Reduce { registers: u32 },
    Allocate { registers: u32, blocks: u32 },
    Throttle { blocks: u32, by: Scarce },
    SpillToShared,
    SpillHottestToShared { blocks: u32 },
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Scarce {
    Registers,
    SharedMemory,
}

impl Decision {
    pub(crate) fn into_pass(self) -> Invocation {
        match self {
            Decision::MaxRegisters { registers } => MaxNReg { registers }.into(),
            Decision::BlockBound { threads } => MaxNTid { threads }.into(),
            Decision::MinBlocks { blocks } => MinNCtaPerSm { blocks }.into(),
            Decision::SharedSpilling => SmemSpilling {}.into(),
            Decision::RegisterUsageLevel { level } => UsageLevel {
                level: level.into(),
            }
            .into(),
            Decision::Reduce { registers } => Reduce {
                registers: Some(registers),
            }
            .into(),
            Decision::Allocate { registers, blocks } => {
                Allocate::new(registers, Some(blocks)).into()
            }
            Decision::Throttle { blocks, by } => Throttle {
                blocks,
                by: match by {
                    Scarce::Registers => ThrottleBy::Registers,
                    Scarce::SharedMemory => ThrottleBy::SharedMemory,
                },
            }
            .into(),
            Decision::SpillToShared => SpillToShared { blocks: None }.into(),
            Decision::SpillHottestToShared { blocks } => SpillToShared {
                blocks: Some(blocks),
            }
            .into(),
        }
    }
}
