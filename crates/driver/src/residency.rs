//! Occupancy of candidates, through `target`'s calculator, and whether it is enough for what the kernel relies on.

use warpwright_launch::{Condition, Quantity};
use warpwright_pass::reliance::{Reliance, Takes};
use warpwright_pass::{BlockSource, Caution, Run, Setting};
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

/// Of a build that refuses the launch that is known, or is not right for it, no residency is stated there: it says which launches
/// it is for.
pub fn elsewhere(setting: &Setting, run: Option<&Run>, candidate: &mut Candidate) {
    let launches = run.and_then(|run| launches_without(setting, run));
    if let (Some(launches), Some(figures)) = (launches, candidate.figures_mut()) {
        figures.residency = None;
        figures.elsewhere = Some(launches);
    }
}

/// The launches that a build is for, if the one that is known is none of them.
fn launches_without(setting: &Setting, run: &Run) -> Option<String> {
    if setting.block.source == BlockSource::Assumed {
        return None;
    }
    let threads = setting.block.threads();
    let bound = run
        .cautions()
        .into_iter()
        .find_map(|caution| match caution {
            Caution::BlockBound { threads: most } if threads > most => {
                Some(format!("blocks of at most {most} threads"))
            }
            _ => None,
        });
    let guard = run.guard();
    let fails = |condition: Condition| match condition {
        Condition::In(Quantity::Block(extent), set) => !set.has(extent.of(setting.block.dims)),
        Condition::In(Quantity::Grid(extent), set) => {
            let grid = setting.grid_dims.map(|dims| extent.of(dims));
            grid.is_some_and(|grid| !set.has(grid))
        }
        _ => false,
    };
    let is_other = guard.conditions().any(fails);
    bound.or_else(|| is_other.then(|| guard.to_string()))
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
