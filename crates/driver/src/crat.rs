//! What CRAT knows of a kernel before it builds anything: its resource usage (Table 1 of the paper)
//! and the points of its design space (section 4.2).

use serde::{Deserialize, Serialize};
use warpwright_model::{Launched, OptTlp, Tpsc, opt_tlp};
use warpwright_pass::Setting;
use warpwright_ptx::{FuncId, Module};
use warpwright_target::{Stair, WARP_SIZE};

use crate::candidate::{Candidate, Resources};

/// Table 1: the parameters that CRAT collects.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ResourceUsage {
    /// Registers per thread that hold all values of the PTX at once: its highest pressure, in 32-bit
    /// units. ptxas may take more.
    pub max_reg: u32,
    /// Registers per thread below which saving more lets no more threads reside: registers of an SM
    /// over its threads.
    pub min_reg: u32,
    /// Threads per block.
    pub block_size: u32,
    /// Static and dynamic shared memory in bytes per block.
    pub shm_size: u32,
    /// Blocks that reside at most, whatever the registers.
    pub max_tlp: u32,
    /// Blocks beyond which more do not help, estimated from the PTX.
    pub opt_tlp: Option<OptTlp>,
}

/// One point of the design space: the rightmost of its stair.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct DesignPoint {
    /// Registers per thread.
    pub registers: u32,
    /// Blocks per SM.
    pub blocks: u32,
    /// Does the second rule discard it: more blocks than OptTLP?
    pub pruned: bool,
}

/// Collects the parameters of a kernel. `max_reg` is its pressure, `resources` are those of the
/// default build or an estimate.
pub fn resource_usage(
    module: &Module,
    kernel: FuncId,
    setting: &Setting,
    max_reg: u32,
    resources: &Resources,
) -> ResourceUsage {
    let arch = setting.gpu.arch;
    let shm_size = resources.shared_bytes + setting.dynamic();
    let stairs = setting.stairs(resources.shared_bytes);
    let max_tlp = stairs.map_or(0, |s| s.last().map_or(0, |s| s.blocks));
    let launched = Launched {
        block: setting.block.dims,
        shared_bytes: shm_size + arch.shared.reserved,
        most_blocks: max_tlp,
    };
    ResourceUsage {
        max_reg,
        min_reg: arch.registers.per_sm / (arch.threads.warps * WARP_SIZE),
        block_size: setting.block.threads(),
        shm_size,
        max_tlp,
        opt_tlp: opt_tlp(module, kernel, setting.gpu, &launched),
    }
}

/// The design space after the first rule (of each stair only the rightmost point), with the marks of
/// the second one (nothing above OptTLP). Registers beyond `max_reg` buy nothing, so of the stairs
/// above it only the lowest is a point.
pub fn design_space(usage: &ResourceUsage, stairs: &[Stair]) -> Vec<DesignPoint> {
    let best = usage.opt_tlp.as_ref().map(|o| o.blocks);
    let enough = |s: &&Stair| s.regs >= usage.max_reg;
    let last = stairs.iter().filter(enough).map(|s| s.blocks).max();
    stairs
        .iter()
        .filter(|s| s.regs >= usage.min_reg && last.is_none_or(|last| s.blocks >= last))
        .map(|s| DesignPoint {
            registers: s.regs,
            blocks: s.blocks,
            pruned: best.is_some_and(|best| s.blocks > best),
        })
        .collect()
}

/// CRAT's choice among built candidates: the smallest TPSC of those with at most `opt_tlp` blocks; if
/// so few cannot be reached, of those with the fewest.
pub fn choice(candidates: &[Candidate], opt_tlp: u32) -> Option<usize> {
    let points: Vec<(usize, u32, Tpsc)> = candidates
        .iter()
        .enumerate()
        .filter(|(_, c)| c.rejected().is_none() && c.same_code_as().is_none())
        .filter_map(|(i, c)| Some((i, c.residency()?.blocks, c.score()?.tpsc?)))
        .collect();
    let fewest = points.iter().map(|(_, blocks, _)| *blocks).min()?;
    points
        .iter()
        .filter(|(_, blocks, _)| *blocks <= opt_tlp.max(fewest))
        // The first of equals: earlier proposals are the smaller changes.
        .min_by(|(_, _, a), (_, _, b)| a.compare(b))
        .map(|(i, ..)| *i)
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpwright_model::Point;

    fn usage(max_reg: u32, opt: u32) -> ResourceUsage {
        let point = |blocks| Point {
            blocks,
            relative_time: 1.0,
            contention: 1.0,
        };
        ResourceUsage {
            max_reg,
            min_reg: 32,
            block_size: 256,
            shm_size: 0,
            max_tlp: 8,
            opt_tlp: Some(OptTlp {
                blocks: opt,
                involved: opt,
                points: vec![point(1), point(8)],
            }),
        }
    }

    #[test]
    fn both_rules() {
        let gpu = warpwright_target::lookup("h200").unwrap();
        let stairs = warpwright_target::staircase(&gpu, 256, 0, 0).unwrap();
        let points = design_space(&usage(70, 5), &stairs);
        let kept: Vec<(u32, u32)> = points
            .iter()
            .filter(|p| !p.pruned)
            .map(|p| (p.registers, p.blocks))
            .collect();
        // 80 registers hold all 70 values, so three blocks are the fewest worth a thought.
        assert_eq!(kept, [(80, 3), (64, 4), (48, 5)]);
        assert!(points.iter().any(|p| p.blocks == 8 && p.pruned));
    }
}
