//! What may be made of a kernel: random choices of every kind.

use warpwright_fuzzgen::Rng;
use warpwright_naive::across::Across;
use warpwright_naive::emit::Generated;
use warpwright_naive::fours::Fours;
use warpwright_naive::ir::Kernel;
use warpwright_naive::prefix::Prefix;
use warpwright_naive::schedule::{Schedule, Stage};
use warpwright_naive::search::shortlist;
use warpwright_naive::team::{Lanes, Team};
use warpwright_naive::totals::Totals;
use warpwright_naive::way::Way as Form;
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
    let two = kernel.dims.len() > 1;
    let mut add = |kind, way: Form| {
        if let Some(generated) = way.generate(kernel, SHARED) {
            all.push((kind, text(way), generated));
        }
    };
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
            apart: rng.chance(50),
            early: rng.chance(50),
            resident: *rng.pick(&[0, 0, 1]),
        };
        add(kind, Form::Team(team));
    }
    let across = Across {
        side: *rng.pick(&[32, 32, 64]),
        rows: *rng.pick(&[4, 8, 16]),
    };
    add("across", Form::Across(across));
    let fours = Fours {
        threads: *rng.pick(&[32, 64, 128]),
        rows: if two { *rng.pick(&[1, 2, 4]) } else { 1 },
    };
    add("fours", Form::Fours(fours));
    let prefix = Prefix {
        threads: *rng.pick(&[64, 128, 256]),
        points: *rng.pick(&[1, 2, 4, 5]),
    };
    add("prefix", Form::Prefix(prefix));
    for (kind, staged) in [("merged", false), ("staged", true), ("staged", true)] {
        add(kind, Form::Tiles(schedule(rng, kernel.dims.len(), staged)));
    }
    let totals = Totals {
        threads: *rng.pick(&[32, 64, 128, 256]),
        points: *rng.pick(&[1, 2, 3, 8]),
    };
    add("totals", Form::Totals(totals));
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
        planes: dims == 3 && rng.chance(40),
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
    let two = kernel.dims.len() > 1;
    let generate = |way: Form| way.generate(kernel, SHARED);
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
                        apart: false,
                        early: true,
                        resident: 0,
                    };
                    if let Some(generated) = generate(Form::Team(team)) {
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
    let mut others = Vec::new();
    for (side, rows) in [(32, 8), (32, 16), (32, 32), (64, 8), (64, 16)] {
        let name = format!("across{side}r{rows}");
        others.push((name, Form::Across(Across { side, rows })));
    }
    for (threads, points) in [(256, 4), (1024, 4), (512, 8)] {
        let name = format!("prefix{threads}p{points}");
        others.push((name, Form::Prefix(Prefix { threads, points })));
    }
    for threads in [64, 128, 256] {
        for &rows in if two { &[1, 2, 4, 8][..] } else { &[1] } {
            let name = format!("fours{threads}r{rows}");
            others.push((name, Form::Fours(Fours { threads, rows })));
        }
    }
    for threads in [128, 256, 512] {
        for points in [4, 8, 16, 32, 64] {
            let name = format!("totals{threads}p{points}");
            others.push((name, Form::Totals(Totals { threads, points })));
        }
    }
    let shapes: &[[u32; 2]] = if two {
        &[[32, 8], [64, 4], [128, 1], [256, 1]]
    } else {
        &[[128, 1], [256, 1]]
    };
    for threads in shapes {
        for x in [1, 2, 4] {
            for &y in if two { &[1, 2, 4, 8][..] } else { &[1] } {
                let schedule = Schedule {
                    threads: *threads,
                    points: [x, y],
                    run: [x, y],
                    ..Schedule::identity(kernel.dims.len())
                };
                let name = format!("merged{}x{}p{x}x{y}", threads[0], threads[1]);
                others.push((name, Form::Tiles(schedule)));
            }
        }
    }
    let others = others.into_iter();
    all.extend(others.filter_map(|(name, way)| Some((name, generate(way)?))));
    all
}
