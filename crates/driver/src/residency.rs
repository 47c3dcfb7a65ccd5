//! Occupancy of candidates, through `target`'s calculator.

use warpwright_pass::Setting;
use warpwright_target::{Resources, occupancy};

use crate::candidate::{Because, Candidate, Rejection, Residency};

/// Fills in a built candidate's residency, or rejects it when it cannot be launched.
pub fn occupy(setting: &Setting, candidate: &mut Candidate) {
    let Some(figures) = candidate.figures_mut() else {
        return;
    };
    let need = Resources {
        regs: figures.resources.registers,
        block_threads: setting.block.threads(),
        static_smem: figures.resources.shared_bytes,
        dynamic_smem: setting.dynamic(),
        barriers: figures.resources.barriers,
    };
    match occupancy(setting.gpu, &need) {
        Ok(found) => {
            let limiters = found.limits.limiters();
            figures.residency = Some(Residency {
                blocks: found.blocks,
                warps: found.warps,
                percent: found.percent,
                limiters: limiters.iter().map(|l| l.name().to_string()).collect(),
            });
        }
        Err(error) => candidate.reject(Rejection::new(Because::Launch, error)),
    }
}
