//! Ways to compute a stencil, of every family, with small tiles and chunks: a small grid has several of them.

use warpwright_fuzzgen::Rng;
use warpwright_stencil::ir::Stencil;
use warpwright_stencil::stream::Plan;
use warpwright_stencil::versions::{Boxes, Version, Way};

/// A version and what kind it is, for counting.
pub type Kind = (&'static str, Version);

/// One version of every kind that the stencil admits.
pub fn ways(rng: &mut Rng, stencil: &Stencil) -> Vec<Kind> {
    let mut found = Vec::new();
    let dims = stencil.dims.len();
    for (kind, scheduled) in [("unrolled", false), ("reordered", true)] {
        let mut points: Vec<u32> = (0..dims).map(|_| *rng.pick(&[1, 1, 2, 3])).collect();
        if points.iter().all(|f| *f == 1) {
            points[rng.below(dims)] = *rng.pick(&[2, 4]);
        }
        let boxes = Boxes {
            points,
            block: *rng.pick(&[[32, 4, 1], [16, 2, 2], [8, 8, 1]]),
            registers: None,
            scheduled,
        };
        found.extend(Version::new(stencil, Way::Boxes(boxes)).map(|v| (kind, v)));
    }
    let kinds: &[(&str, bool, bool)] = match stencil.reassociate {
        true => &[("retimed", true, false), ("staged", true, true)],
        false => &[("streamed", false, false)],
    };
    for &(kind, reassociate, stage) in kinds {
        // Some tiles are too small for a neighbourhood: another one then.
        for _ in 0..6 {
            let plan = plan(rng, dims, reassociate, stage);
            let version = Version::new(stencil, Way::Stream(plan)).ok();
            if let Some(version) = version.filter(fits) {
                found.push((kind, version));
                break;
            }
        }
    }
    found
}

/// A block of sm_90 may have that much shared memory; the model refuses larger ones by the GPU's own limit.
const MOST_SHARED: u32 = 227 << 10;

fn fits(version: &Version) -> bool {
    let mut entries = version.sweep.entries.iter();
    entries.all(|entry| entry.shared_bytes <= MOST_SHARED)
}

fn plan(rng: &mut Rng, dims: usize, reassociate: bool, stage: bool) -> Plan {
    let block = match (dims, stage) {
        (2, _) => [*rng.pick(&[16, 32, 64]), 1],
        (_, true) => *rng.pick(&[[32, 8], [16, 16], [32, 12]]),
        (_, false) => *rng.pick(&[[8, 2], [16, 4], [32, 2], [16, 1]]),
    };
    let columns = *rng.pick(&[1, 1, 2, 4]);
    let rows = if dims == 2 {
        1
    } else {
        *rng.pick(&[1, 1, 2, 4])
    };
    Plan {
        block,
        points: [columns, rows],
        ahead: rng.range(1, 3) as u32,
        chunk: rng.range(1, 9) as u32,
        unroll: *rng.pick(&[1, 1, 2]),
        reassociate,
        stage,
        reload: rng.chance(25),
        min_blocks: 1,
    }
}
