//! What may be made of a kernel: random choices of every kind.

use warpwright_fuzzgen::Rng;
use warpwright_naive::across::{self, Across};
use warpwright_naive::emit::{self, Generated};
use warpwright_naive::fours::{self, Fours};
use warpwright_naive::ir::Kernel;
use warpwright_naive::prefix::{self, Prefix};
use warpwright_naive::schedule::{Schedule, Stage};
use warpwright_naive::search::shortlist;
use warpwright_naive::team::{self, Lanes, Team};
use warpwright_pass::Invocation;
use warpwright_target::Gpu;

/// A kind, the choices in words, and the kernels.
pub type Way = (&'static str, String, Generated);

/// Bytes of shared memory that a block may have.
const SHARED: u32 = 99 * 1024;

fn text(way: impl Into<Invocation>) -> String {
    way.into().to_string()
}

/// All kinds that there are for a kernel.
pub fn ways(rng: &mut Rng, kernel: &Kernel) -> Vec<Way> {
    let mut all = Vec::new();
    for (kind, lanes) in [
        ("team of a block", Lanes::Turns { points: 1 }),
        ("team of a warp", Lanes::Turns { points: 4 }),
        ("team of warps", Lanes::Points),
    ] {
        let threads = match lanes {
            Lanes::Turns { points: 4 } => 128,
            _ => *rng.pick(&[64, 128, 256, 1024]),
        };
        let team = Team {
            threads,
            lanes,
            unroll: *rng.pick(&[1, 2, 4]),
            blocks: *rng.pick(&[0, 64, 1000]),
        };
        if let Ok(generated) = team::generate(kernel, &team) {
            all.push((kind, text(team), generated));
        }
    }
    let across = Across {
        side: *rng.pick(&[32, 32, 64]),
        rows: *rng.pick(&[4, 8, 16]),
    };
    if let Ok(generated) = across::generate(kernel, &across) {
        all.push(("across", text(across), generated));
    }
    let fours = Fours {
        threads: *rng.pick(&[32, 64, 128]),
        rows: if kernel.dims.len() > 1 {
            *rng.pick(&[1, 2, 4])
        } else {
            1
        },
    };
    if let Ok(generated) = fours::generate(kernel, &fours) {
        all.push(("fours", text(fours), generated));
    }
    let prefix = Prefix {
        threads: *rng.pick(&[64, 128, 256]),
        points: *rng.pick(&[1, 2, 4, 5]),
    };
    if let Ok(generated) = prefix::generate(kernel, &prefix) {
        all.push(("prefix", text(prefix), generated));
    }
    for (kind, staged) in [("merged", false), ("staged", true), ("staged", true)] {
        let schedule = schedule(rng, kernel.dims.len(), staged);
        if let Ok(generated) = emit::generate(kernel, &schedule, SHARED) {
            all.push((kind, text(schedule), generated));
        }
    }
    all
}

fn schedule(rng: &mut Rng, dims: usize, staged: bool) -> Schedule {
    let two = dims > 1;
    let threads = match two {
        true => *rng.pick(&[[32, 8], [16, 16], [8, 8], [32, 2], [16, 4], [64, 1]]),
        false => *rng.pick(&[[64, 1], [128, 1], [256, 1], [32, 1]]),
    };
    let points = [
        *rng.pick(&[1, 2, 4, 8]),
        if two { *rng.pick(&[1, 2, 4, 8]) } else { 1 },
    ];
    let run = [0, 1].map(|axis: usize| {
        let most: u32 = points[axis];
        *rng.pick(&[1, most.min(2), most.min(4)])
    });
    let turns = *rng.pick(&[4, 8, 16, 32]);
    Schedule {
        threads,
        points,
        run,
        lanes: if two { *rng.pick(&[0, 0, 8, 4]) } else { 0 },
        stage: staged.then(|| Stage {
            turns,
            unroll: *rng.pick(&[1, 2, 4, turns]),
            buffers: *rng.pick(&[1, 1, 2, 3]),
            turn: rng.chance(40),
        }),
        order: *rng.pick(&[0, 0, 4]),
        resident: 0,
        specialise: rng.chance(20),
    }
}

/// What is predicted to be fast: a name for each, and the kernels, the fastest first.
pub fn best(kernel: &Kernel, gpu: &Gpu, count: usize) -> Vec<(String, Generated)> {
    let shared = gpu.arch.shared.per_block_opt_in;
    let all = shortlist(kernel, gpu, count).into_iter();
    all.filter_map(|(way, _)| {
        let generated = way.generate(kernel, shared)?;
        Some((Invocation::from(way).label(), generated))
    })
    .collect()
}

/// The grid of choices that is measured: a name for each, and the kernels.
pub fn grid(kernel: &Kernel) -> Vec<(String, Generated)> {
    let mut all = Vec::new();
    for threads in [128, 256, 512, 1024] {
        for unroll in [1, 2, 4, 8] {
            for (word, lanes) in [
                ("block", Lanes::Turns { points: 1 }),
                (
                    "warp",
                    Lanes::Turns {
                        points: threads / 32,
                    },
                ),
                ("column", Lanes::Points),
            ] {
                for blocks in [0, 264, 528, 1056] {
                    let team = Team {
                        threads,
                        lanes,
                        unroll,
                        blocks,
                    };
                    if let Ok(generated) = team::generate(kernel, &team) {
                        let divided = generated.entries.iter().any(|e| e.parts.is_some());
                        if divided == (blocks > 0) {
                            all.push((
                                format!("team_{word}{threads}u{unroll}b{blocks}"),
                                generated,
                            ));
                        }
                    }
                }
            }
        }
    }
    for (side, rows) in [(32, 8), (32, 16), (32, 32), (64, 8), (64, 16)] {
        if let Ok(generated) = across::generate(kernel, &Across { side, rows }) {
            all.push((format!("across{side}r{rows}"), generated));
        }
    }
    for (threads, points) in [(256, 4), (1024, 4), (512, 8)] {
        if let Ok(generated) = prefix::generate(kernel, &Prefix { threads, points }) {
            all.push((format!("prefix{threads}p{points}"), generated));
        }
    }
    let two = kernel.dims.len() > 1;
    for threads in [64, 128, 256] {
        for rows in if two { &[1, 2, 4, 8][..] } else { &[1] } {
            if let Ok(generated) = fours::generate(
                kernel,
                &Fours {
                    threads,
                    rows: *rows,
                },
            ) {
                all.push((format!("fours{threads}r{rows}"), generated));
            }
        }
    }
    let shapes: &[[u32; 2]] = if two {
        &[[32, 8], [64, 4], [128, 1], [256, 1]]
    } else {
        &[[128, 1], [256, 1]]
    };
    for threads in shapes {
        for x in [1, 2, 4] {
            for y in if two { &[1, 2, 4, 8][..] } else { &[1] } {
                let schedule = Schedule {
                    threads: *threads,
                    points: [x, *y],
                    run: [x, *y],
                    lanes: 0,
                    stage: None,
                    order: 0,
                    resident: 0,
                    specialise: false,
                };
                if let Ok(generated) = emit::generate(kernel, &schedule, SHARED) {
                    all.push((
                        format!("merged{}x{}p{x}x{y}", threads[0], threads[1]),
                        generated,
                    ));
                }
            }
        }
    }
    all
}
