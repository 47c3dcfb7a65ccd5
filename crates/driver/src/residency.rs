//! Occupancy of candidates, through `target`'s calculator, and whether it is enough for what the kernel relies on.

use warpwright_pass::Setting;
use warpwright_pass::reliance::{Reliance, Takes};
use warpwright_target::{Resources, occupancy};

use crate::candidate::{Because, Candidate, Rejection, Residency};

/// Fills in a built candidate's residency, or rejects it when it cannot be launched.
pub fn occupy(setting: &Setting, candidate: &mut Candidate) {
    // What the code allows may be launched elsewhere; what the kernel as it is cannot do, no build has to.
    let bound = setting.bound.filter(|_| !candidate.recipe.is_default());
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
    let at_bound = match bound {
        Some(block_threads) => {
            let need = Resources {
                block_threads,
                ..need
            };
            occupancy(setting.gpu, &need).map(drop)
        }
        None => Ok(()),
    };
    match at_bound.and_then(|()| occupancy(setting.gpu, &need)) {
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

/// Rejects a build that takes from the kernel what it relies on ([`Reliance`]): `original` is the untouched build. Both
/// have been through [`occupy`].
pub fn hold(
    reliance: Reliance,
    setting: &Setting,
    original: &Candidate,
    candidate: &mut Candidate,
) {
    let takes = |candidate: &Candidate| {
        let resources = candidate.resources()?;
        let residency = candidate.residency().filter(|_| setting.block.is_given());
        Some(Takes {
            registers: resources.registers,
            shared_bytes: resources.shared_bytes,
            blocks: residency.map(|residency| residency.blocks),
        })
    };
    if let (Some(before), Some(after)) = (takes(original), takes(candidate))
        && let Err(refusal) = reliance.keeps(before, after)
    {
        candidate.reject(Rejection::new(Because::Refused, refusal));
    }
}
