//! Which step of the occupancy staircase a register pass aims at.
//!
//! Paper: You & Tsai section 2.1 (DRU, Eq. 1 and 2), inverted for every architecture by
//! `target::staircase`.

use warpwright_target::Stair;

use crate::kernel::static_shared_bytes;
use crate::residency::stairs;
use crate::rewrite::{Setting, Site};

/// A goal, and the blocks that it lets reside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// 32-bit registers per thread: the paper's DRU.
    pub registers: u32,
    /// Blocks that reside on an SM with that many registers per thread.
    pub blocks: u32,
}

/// The step at `goal` registers, or without a goal the first one below `pressure`.
///
/// # Errors
/// The launch is impossible, or no step lies below.
pub fn step(site: &Site, goal: Option<u32>, pressure: u32) -> Result<Step, String> {
    let Setting {
        gpu,
        block,
        dynamic_smem,
    } = site.setting;
    let used = static_shared_bytes(site.module, &site.module.functions[site.kernel]);
    let stairs = stairs(gpu, &block, used, dynamic_smem).map_err(|e| e.to_string())?;
    match goal {
        Some(registers) => Ok(Step {
            registers,
            blocks: blocks_at(&stairs, registers),
        }),
        None => {
            let below = stairs.iter().filter(|stair| stair.regs < pressure);
            let next = below.max_by_key(|stair| stair.regs).ok_or_else(|| {
                format!("no step of the occupancy staircase lies below {pressure} registers")
            })?;
            Ok(Step {
                registers: next.regs,
                blocks: next.blocks,
            })
        }
    }
}

/// Blocks that reside with `registers` registers per thread; at least one.
fn blocks_at(stairs: &[Stair], registers: u32) -> u32 {
    let holding = stairs.iter().filter(|stair| stair.regs >= registers);
    holding.map(|stair| stair.blocks).max().unwrap_or(1)
}
