//! Special registers.
//!
//! What depends on the device or on time has fixed, reproducible values: one SM, a clock that
//! counts the block's warp instructions.

use warpwright_ptx::ir::Part;
use warpwright_ptx::special::SpecialReg;

use super::block::Block;
use super::warp::Warp;
use crate::lanes::{Lanes, Mask, WARP};

/// `%nsmid`: as many SMs as the emulated device has.
const SMS: u64 = 132;

impl Warp {
    /// The value of a special register in every lane.
    pub fn special(&self, block: &Block<'_>, reg: SpecialReg, part: Option<Part>) -> Lanes {
        let axis = match part {
            Some(Part::Y) => 1,
            Some(Part::Z) => 2,
            Some(Part::W) => 3,
            _ => 0,
        };
        let pick = |v: [u32; 3]| v.get(axis).copied().unwrap_or(0) as u64;
        let pick_extent = |v: [u32; 3]| v.get(axis).copied().unwrap_or(1) as u64;
        let rank = block.grid.rank(block.index);
        let layout = &block.shared.layout;
        let value = match reg {
            SpecialReg::Tid => {
                return Warp::per_lane(Mask::MAX, |lane| pick(block.grid.thread(self.index, lane)));
            }
            SpecialReg::LaneId => return Warp::per_lane(Mask::MAX, |lane| lane as u64),
            SpecialReg::LaneMaskEq => return lane_masks(|lane| 1 << lane),
            SpecialReg::LaneMaskLt => return lane_masks(|lane| (1 << lane) - 1),
            SpecialReg::LaneMaskLe => return lane_masks(|lane| (2 << lane) - 1),
            SpecialReg::LaneMaskGt => return lane_masks(|lane| !((2 << lane) - 1)),
            SpecialReg::LaneMaskGe => return lane_masks(|lane| !((1 << lane) - 1)),
            SpecialReg::NTid => pick_extent(block.grid.block),
            SpecialReg::CtaId => pick(block.index),
            SpecialReg::NCtaId => pick_extent(block.grid.grid),
            SpecialReg::WarpId => self.index as u64,
            SpecialReg::NWarpId => block.grid.threads().div_ceil(WARP as u32) as u64,
            SpecialReg::SmId => rank % SMS,
            SpecialReg::NSmId => SMS,
            SpecialReg::GridId => 1,
            // Without clusters every block is a cluster of its own.
            SpecialReg::ClusterId => pick(block.index),
            SpecialReg::NClusterId => pick_extent(block.grid.grid),
            SpecialReg::ClusterNCtaId | SpecialReg::ClusterNCtaRank => 1,
            SpecialReg::Clock => block.clock & 0xffff_ffff,
            SpecialReg::ClockHi => block.clock >> 32,
            SpecialReg::Clock64 | SpecialReg::GlobalTimer => block.clock,
            SpecialReg::GlobalTimerLo => block.clock & 0xffff_ffff,
            SpecialReg::GlobalTimerHi => block.clock >> 32,
            SpecialReg::TotalSmemSize | SpecialReg::AggrSmemSize => {
                layout.regions.iter().map(|r| r.len).sum()
            }
            SpecialReg::DynamicSmemSize => block.grid.dynamic_smem as u64,
            _ => 0,
        };
        [value; WARP]
    }
}

fn lane_masks(f: impl Fn(u64) -> u64) -> Lanes {
    Warp::per_lane(Mask::MAX, |lane| f(lane as u64) & 0xffff_ffff)
}
