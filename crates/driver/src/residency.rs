//! Occupancy of candidates, through `target`'s calculator.

use warpwright_target::{Gpu, LaunchError, Resources, Stair, occupancy, staircase};

use crate::candidate::{Candidate, Residency};
use crate::kernel::Block;

/// The occupancy staircase of a block with this much shared memory.
pub fn stairs(
    gpu: &Gpu,
    block: &Block,
    static_smem: u32,
    dynamic_smem: u32,
) -> Result<Vec<Stair>, LaunchError> {
    staircase(gpu, block.threads(), static_smem, dynamic_smem)
}

/// Fills in a built candidate's residency, or rejects it when it cannot be launched.
pub fn occupy(gpu: &Gpu, block: &Block, dynamic_smem: u32, candidate: &mut Candidate) {
    let Some(resources) = &candidate.resources else {
        return;
    };
    let need = Resources {
        regs: resources.registers,
        block_threads: block.threads(),
        static_smem: resources.shared_bytes,
        dynamic_smem,
        barriers: resources.barriers,
    };
    match occupancy(gpu, &need) {
        Ok(found) => {
            candidate.residency = Some(Residency {
                blocks: found.blocks,
                warps: found.warps,
                percent: found.percent,
                limiters: found
                    .limits
                    .limiters()
                    .iter()
                    .map(|l| l.name().to_string())
                    .collect(),
            });
        }
        Err(e) => {
            if candidate.rejected.is_none() {
                candidate.rejected = Some(e.to_string());
            }
        }
    }
}
