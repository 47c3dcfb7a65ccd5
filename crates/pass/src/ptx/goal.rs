//! Which step of the occupancy staircase a register pass aims at.
//!
//! Paper: You & Tsai section 2.1 (DRU, Eq. 1 and 2), inverted for every architecture by
//! `target::staircase`.

use warpwright_target::Stair;

use crate::ptx::facts::static_shared_bytes;
use crate::refusal::Refusal;
use crate::site::Site;

/// A goal, and the blocks that it lets reside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Goal {
    /// 32-bit registers per thread: the paper's DRU.
    pub registers: u32,
    /// Blocks that reside on an SM with that many registers per thread.
    pub blocks: u32,
}

/// The goal at `registers` registers, or without that the first step below `pressure`.
///
/// # Errors
/// [`Refusal::Launch`], [`Refusal::NoStair`].
pub fn goal(site: &Site, registers: Option<u32>, pressure: u32) -> Result<Goal, Refusal> {
    let used = static_shared_bytes(site.module, site.function());
    let stairs = site.setting.stairs(used)?;
    match registers {
        Some(registers) => Ok(Goal {
            registers,
            blocks: blocks_at(&stairs, registers),
        }),
        None => {
            let below = stairs.iter().filter(|stair| stair.regs < pressure);
            let next = below.max_by_key(|stair| stair.regs);
            let next = next.ok_or(Refusal::NoStair { pressure })?;
            Ok(Goal {
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
