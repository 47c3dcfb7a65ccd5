//! All plans that are worth a try, the most promising first.
//!
//! Goal: a short list, without a GPU and without a compiler, that has a plan close to the best one
//! at its top. Every plan of a grid of choices is generated; what its step costs is counted in the
//! text (`cost.rs`) and judged by `model.rs`. Nothing is pruned by rules of thumb: a kernel takes
//! milliseconds to generate.

use rayon::prelude::*;
use warpwright_target::Gpu;

use super::generate::{Kernel, Prepared};
use super::model::{Machine, Prediction};
use super::plan::{Plan, Refusal};
use crate::evaluate::Sizes;
use crate::ir::Stencil;
use crate::sweep::Sweep;

/// A plan, its kernel, and how long a sweep should take.
#[derive(Clone, Debug)]
pub struct Ranked {
    /// The plan.
    pub plan: Plan,
    /// Its kernel.
    pub kernel: Kernel,
    /// Predicted time of a sweep in milliseconds.
    pub predicted_ms: f64,
    /// What limits it: "memory", "cache", "shared memory", "arithmetic", "instructions" or
    /// "latency".
    pub bound: &'static str,
}

/// The best `keep` plans for a stencil of these sizes, the best first.
///
/// Plans that reassociate are among them if the stencil permits it. An error says why there is
/// none: the stencil is refused, or nothing is known about the GPU.
pub fn search(
    stencil: &Stencil,
    gpu: &Gpu,
    sizes: &Sizes,
    keep: usize,
) -> Result<Vec<Ranked>, Refusal> {
    let machine = Machine::new(gpu)?;
    let mut prepared = vec![(false, Prepared::new(stencil, false)?)];
    if stencil.reassociate {
        prepared.push((true, Prepared::new(stencil, true)?));
    }
    let mut judged: Vec<(Prediction, Plan)> = Vec::new();
    for (reassociate, prepared) in &prepared {
        let shapes = shapes(stencil, prepared, *reassociate);
        let all: Vec<Vec<(Prediction, Plan)>> = shapes
            .into_par_iter()
            .map(|shape| {
                let Ok(kernel) = prepared.generate(&shape) else {
                    return Vec::new();
                };
                judge(&machine, kernel, sizes)
            })
            .collect();
        judged.extend(all.into_iter().flatten());
    }
    judged.sort_by_key(|(p, _)| step_of(p.ms));
    judged.truncate(keep);
    let mut ranked = Vec::new();
    for (prediction, plan) in judged {
        ranked.push(Ranked {
            kernel: super::generate::generate(stencil, &plan)?,
            plan,
            predicted_ms: prediction.ms + machine.border_ms(stencil),
            bound: prediction.bound,
        });
    }
    Ok(ranked)
}

/// Threads of a block along rows and columns, for tiles of rows.
const TILES: [[u32; 2]; 13] = [
    [32, 4],
    [32, 8],
    [32, 12],
    [32, 16],
    [32, 20],
    [32, 24],
    [16, 8],
    [16, 12],
    [16, 16],
    [64, 4],
    [64, 8],
    [128, 4],
    [256, 2],
];

/// Points of a thread along columns and rows.
const POINTS: [[u32; 2]; 5] = [[1, 1], [2, 4], [2, 2], [1, 4], [1, 2]];

/// Planes on their way and planes that a block computes, for tiles of one row and of several. A
/// third plane on its way pays for rows, and blocks that walk far apart lose the halos that they
/// share in the level-2 cache: what lies outside these lists was slower wherever it was measured.
const LINES: ([u32; 1], [u32; 4]) = ([3], [64, 128, 256, 512]);
const PLANES: ([u32; 3], [u32; 8]) = ([2, 1, 3], [50, 64, 75, 100, 128, 150, 200, 256]);

/// Plans of one shape that are kept: they differ little.
const ALIKE: usize = 2;

/// The plans that change the straight-line code of a step.
fn shapes(stencil: &Stencil, prepared: &Prepared<'_>, reassociate: bool) -> Vec<Plan> {
    let mut grid: Vec<([u32; 2], [u32; 2])> = Vec::new();
    if stencil.dims.len() == 2 {
        // 128 bits for a thread.
        let points = if prepared.is_double() { 2 } else { 4 };
        grid.extend([32, 64, 96, 128, 256].map(|line| ([line, 1], [points, 1])));
    } else {
        // With many arrays the values of one point fill the registers.
        let points = if prepared.full_sources() <= 2 {
            &POINTS[..]
        } else {
            &POINTS[..1]
        };
        for tile in TILES {
            grid.extend(points.iter().map(|points| (tile, *points)));
        }
    }
    let stages: &[bool] = if prepared.can_stage() {
        &[false, true]
    } else {
        &[false]
    };
    let mut plans = Vec::new();
    for (block, points) in grid {
        for &stage in stages {
            plans.push(Plan {
                block,
                points,
                ahead: 1,
                chunk: 64,
                unroll: 1,
                reassociate,
                stage,
                reload: false,
                min_blocks: 1,
            });
        }
    }
    plans
}

/// The other choices only change how often the step is done and what surrounds it. The best of
/// them, by the model.
fn judge(machine: &Machine, mut kernel: Kernel, sizes: &Sizes) -> Vec<(Prediction, Plan)> {
    kernel.sweep = Sweep::default();
    let (aheads, chunks) = if kernel.is_flat() {
        (&LINES.0[..], &LINES.1[..])
    } else {
        (&PLANES.0[..], &PLANES.1[..])
    };
    let mut judged = Vec::new();
    for &ahead in aheads {
        let kernel = kernel.with_ahead(ahead);
        for &chunk in chunks {
            for min_blocks in [1, 2, 4] {
                let mut kernel = kernel.clone();
                kernel.plan.chunk = chunk;
                kernel.plan.min_blocks = min_blocks;
                let prediction = machine.predict(&kernel, sizes);
                judged.extend(prediction.map(|p| (p, kernel.plan)));
            }
        }
    }
    judged.sort_by_key(|(p, _)| step_of(p.ms));
    // One for each number of planes on their way.
    let mut kept: Vec<(Prediction, Plan)> = Vec::new();
    for (prediction, plan) in judged {
        let new = kept.iter().all(|(_, k)| k.ahead != plan.ahead);
        if new && kept.len() < ALIKE {
            kept.push((prediction, plan));
        }
    }
    kept
}

/// Predictions closer than half a percent are equal: the order of the lists decides.
fn step_of(ms: f64) -> i64 {
    (ms.max(1e-9).ln() * 200.0).round() as i64
}
