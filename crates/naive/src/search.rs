//! The choice among schedules without a GPU: candidates as in section 4 of the paper (128 to 512 threads, merges of 4 to
//! 32) and beyond it, each with a predicted time.
//!
//! A prediction is the slowest of what a block keeps busy (issue slots, the shared-memory pipe, the level-2 cache, the
//! special function and double-precision units), with what its waits leave uncovered, times the waves of blocks, and
//! never less than the time in which device memory brings every array once. The constants in [`FIT`] were chosen by
//! looking at 280 schedules of 23 of the kernels in examples/naive on an H200; they stand for the behaviour of one GPU
//! (`bench/naive_model.py` compares).

use warpwright_cudac::affine::{Poly, Symbol};
use warpwright_target::{Behaviour, Gpu, Rates, Resources, joined, occupancy};

use std::collections::{BTreeMap, BTreeSet};

use crate::emit::{Cost, cost};
use crate::families::{self, arriving};
use crate::ir::{Dim, Kernel};
use crate::schedule::{Schedule, Stage};
pub use crate::way::Way;

/// A prediction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prediction {
    /// Milliseconds.
    pub ms: f64,
    /// What limits it.
    pub bound: &'static str,
}

/// Constants of the model.
struct Fit {
    /// Cycles between dependent instructions of a warp.
    chain: f64,
    /// Microseconds of a launch.
    launch: f64,
    /// The part of its worst case that the shared-memory pipe takes.
    pipe: f64,
    /// The same of all that, and of memory.
    memory: f64,
    /// Cycles of an SM until operands of the next group of turns are there, where no registers are left to load them
    /// during this group.
    operands: f64,
    /// Cycles of a part in which a block waits for it and for its own threads: with one part on its way, and alone with
    /// more; and for each warp that is waited for.
    part: [f64; 3],
    /// Registers beyond which values are spilled, and a schedule is left out.
    registers: f64,
    /// The part of its waits that a block of one warp has: without shared memory, and with.
    single: [f64; 2],
}

const TILES: Behaviour = Behaviour::TILES;

const FIT: Fit = Fit {
    chain: 2.4,
    launch: 3.0,
    pipe: 0.7,
    memory: 4.0,
    operands: 90.0,
    part: [400.0, 150.0, 5.0],
    registers: 255.0,
    single: [0.75, 0.85],
};

/// Cycles in which the GPU begins one block after the other, on all of its SMs together: of many small blocks that is
/// what takes the time. Measured with four kernels without loops on an H200 (65,536 to 262,144 blocks, 2% apart).
pub(crate) const BLOCK: f64 = 1.16;

/// The predicted time of a schedule at the sizes that the pragma expects; none where the GPU's figures are missing, or
/// where a block does not fit.
pub fn predict(kernel: &Kernel, schedule: &Schedule, gpu: &Gpu) -> Option<Prediction> {
    let of: Cost = cost(kernel, schedule)?;
    let Rates { sms, mhz, gb_s, .. } = Rates::of(gpu).ok()?;
    let rates = &gpu.arch.throughput;
    let (fp32, fp64) = (f64::from(rates.fp32?.value), f64::from(rates.fp64?.value));
    let special = rates.special.map_or(16.0, |f| f64::from(f.value));
    let shared = f64::from(rates.shared_bytes?.value);
    // What spills is not predicted: it took eleven times as long as promised (`mm_double`, 128 points a thread).
    if of.registers > FIT.registers {
        return None;
    }
    // Copies that run ahead need parts to run ahead of, and a part that is never full copies for nothing.
    if let Some(stage) = &schedule.stage {
        let turns = f64::from(stage.turns);
        let parts = (of.staged_turns / turns).ceil();
        if of.staged_turns < turns || parts < f64::from(stage.buffers) {
            return None;
        }
    }
    let registers = of.registers.max(16.0);
    let resources =
        Resources::new(registers.ceil() as u32, of.threads).dynamic_smem(of.shared_bytes);
    let resident = f64::from(occupancy(gpu, &resources).ok()?.blocks);
    if resident < 1.0 || of.blocks < 1.0 {
        return None;
    }
    let together = resident.min((of.blocks / sms).ceil());
    let waves = (of.blocks / (sms * together)).max(1.0);
    let waves = 0.5 * waves.ceil() + 0.5 * waves;
    let warps = f64::from(of.threads) / 32.0 * together;
    let mut busy = vec![
        (of.instructions * warps * 32.0 / fp32, "issue"),
        (of.pipe * warps * 128.0 / shared * FIT.pipe, "shared memory"),
        (of.bytes * together / TILES.cache_bytes, "cache"),
        (of.special * warps * 32.0 / special, "special functions"),
        (of.doubles * warps * 32.0 / fp64, "double precision"),
    ];
    // A warp alone: its instructions one after the other, and the waits that no other part covers.
    let uncovered = if of.ahead > 1.0 {
        TILES.arrival / (of.ahead - 1.0) * 0.6
    } else {
        TILES.arrival
    };
    let points = f64::from(schedule.points[0] * schedule.points[1]);
    let alone = of.instructions / points.sqrt().min(2.0) * FIT.chain
        + of.parts * uncovered.max(60.0)
        + of.waits / points.min(8.0) * TILES.arrival / 8.0;
    // A thread of a block of one warp may have more registers, and more turns are written out.
    let alone = match (of.threads, &schedule.stage) {
        (32, None) => alone * FIT.single[0],
        (32, Some(_)) => alone * FIT.single[1],
        _ => alone,
    };
    busy.push((alone, "latency"));
    let (mut cycles, slowest) = joined(&busy, TILES.power);
    if schedule.stage.is_some() {
        let all = f64::from(gpu.arch.registers.per_sm);
        let room = (all / f64::from(of.threads) / resident).min(FIT.registers);
        let lacking = (of.registers + of.fragments - room) / of.fragments.max(1.0);
        cycles += of.groups * FIT.operands * lacking.clamp(0.0, 1.0);
        let [one, more, warp] = FIT.part;
        // More parts on their way help a block that is alone on its SM; beside others they were in the way (`mm`, 8% with
        // three buffers in place of two).
        let wait = match (of.ahead > 2.0, together > 1.0) {
            (true, false) => more,
            (true, true) => one * (f64::from(of.threads) / 256.0).min(1.0),
            (false, _) => one / together,
        };
        cycles += of.parts * (wait + warp * f64::from(of.threads) / 32.0);
    }
    let cycles = cycles * waves;
    // Loads that wait for nothing else must be enough to keep memory busy until the first of them arrives.
    let rate = gb_s * 1e3 / mhz / sms;
    let flying = of.flying * f64::from(of.threads) * together;
    let idle = match schedule.stage {
        None if of.flying > 0.0 => (TILES.arrival * 1.5 * rate / flying).max(1.0),
        _ => 1.0,
    };
    let device = of.unique / (gb_s * 1e9) * 1e3 * idle;
    let on_chip = cycles / (mhz * 1e3);
    let (both, _) = joined(&[(on_chip, ()), (device, ())], FIT.memory);
    let begun = of.blocks * BLOCK / (mhz * 1e3);
    let ms = both.max(begun) + FIT.launch / 1e3;
    let bound = slowest.filter(|_| device <= on_chip).unwrap_or("memory");
    Some(Prediction { ms, bound })
}

/// The schedules to choose from, the kernel as written first.
pub fn candidates(kernel: &Kernel) -> Vec<Schedule> {
    let plain = Schedule::identity(kernel.dims.len());
    let mut all = vec![plain.clone()];
    let has_loop = !kernel.loops.is_empty();
    let stages = |turns: &[u32], unrolls: &[u32], buffers: &[u32], turn: &[bool]| {
        let mut all = Vec::new();
        for &turns in turns {
            for &unroll in unrolls.iter().filter(|u| turns % **u == 0 || **u > turns) {
                for &buffers in buffers {
                    for &turn in turn {
                        all.push(Stage {
                            turns,
                            unroll,
                            buffers,
                            turn,
                        });
                    }
                }
            }
        }
        all
    };
    let add = |all: &mut Vec<Schedule>, of: Schedule| {
        if !all.contains(&of) {
            all.push(of);
        }
    };
    if kernel.dims.len() == 1 {
        for threads in [32, 64, 128, 256] {
            for (points, run) in [(1, 1), (2, 1), (4, 4), (8, 4), (16, 4)] {
                let of = Schedule {
                    threads: [threads, 1],
                    points: [points, 1],
                    run: [run, 1],
                    ..plain.clone()
                };
                // Several points of a thread in one dimension never paid without shared memory.
                if points == 1 {
                    add(&mut all, of.clone());
                }
                if !has_loop {
                    continue;
                }
                for stage in stages(&[32, 64, 128], &[4, 8], &[1, 2, 3, 4], &[false]) {
                    let stage = Some(stage);
                    add(
                        &mut all,
                        Schedule {
                            stage,
                            ..of.clone()
                        },
                    );
                }
            }
        }
        return all;
    }
    for (threads, points, run) in [
        ([32, 8], [1, 2], [1, 1]),
        ([32, 8], [1, 4], [1, 1]),
        ([32, 4], [1, 8], [1, 1]),
        ([32, 8], [4, 2], [1, 1]),
        ([32, 8], [4, 4], [4, 1]),
    ] {
        add(
            &mut all,
            Schedule {
                threads,
                points,
                run,
                ..plain.clone()
            },
        );
    }
    if !has_loop {
        return all;
    }
    let wide = kernel.arrays.iter().any(|a| a.bytes == 8);
    for (threads, points) in [
        ([16, 16], [8, 8]),
        ([16, 8], [8, 8]),
        ([16, 16], [4, 8]),
        ([16, 16], [8, 4]),
        ([16, 16], [4, 4]),
        ([16, 8], [8, 16]),
        ([32, 8], [8, 16]),
        ([16, 8], [4, 4]),
        ([16, 8], [4, 2]),
    ] {
        let lanes = if wide { 2 } else { 4 };
        for run in [[lanes, 1], [lanes, lanes], [1, 1]] {
            let run = [0, 1].map(|a: usize| run[a].min(points[a]));
            for stage in stages(&[8, 16, 32], &[4], &[2, 3], &[false, true]) {
                let of = Schedule {
                    threads,
                    points,
                    run,
                    lanes: 8,
                    stage: Some(stage),
                    ..plain.clone()
                };
                add(&mut all, of);
            }
        }
    }
    let inner = kernel.loops.len() > 1;
    for (threads, points) in [
        ([16, 8], [8, 4]),
        ([32, 4], [4, 8]),
        ([8, 16], [8, 8]),
        ([16, 8], [8, 8]),
        ([16, 16], [8, 4]),
        ([32, 8], [4, 4]),
        ([16, 16], [4, 2]),
    ] {
        for stage in stages(
            if inner { &[4, 8] } else { &[] },
            &[3, 5, 8, 16],
            &[1, 2],
            &[false],
        ) {
            let of = Schedule {
                threads,
                points,
                run: [4, 1],
                stage: Some(stage),
                specialise: true,
                ..plain.clone()
            };
            add(&mut all, of);
        }
    }
    if !inner || !shares_planes(kernel) {
        return all;
    }
    for (threads, points) in [
        ([8, 16], [4, 4]),
        ([16, 16], [4, 4]),
        ([8, 16], [4, 8]),
        ([16, 8], [4, 8]),
        ([16, 16], [8, 4]),
        ([8, 8], [4, 8]),
    ] {
        for stage in stages(&[2, 4, 8], &[3, 5, 8], &[1, 2], &[false, true]) {
            let of = Schedule {
                threads,
                points,
                run: [4, if stage.turn { 4 } else { 1 }],
                stage: Some(stage),
                planes: true,
                specialise: true,
                ..plain.clone()
            };
            add(&mut all, of);
        }
    }
    all
}

/// Is an operand of a loop the same for all planes, and another for all of a row?
fn shares_planes(kernel: &Kernel) -> bool {
    let [x, _, z] = &kernel.dims[..] else {
        return false;
    };
    let without = |symbol: Symbol| {
        kernel.accesses.iter().any(|access| {
            let symbols = access.affine().map(Poly::symbols).unwrap_or_default();
            let in_loop = symbols.iter().any(|s| matches!(s, Symbol::Loop(_)));
            in_loop && !symbols.contains(&symbol)
        })
    };
    kernel.flat.is_none() && without(x.symbol) && without(z.symbol)
}

/// What is predicted to be fast, and what differs from it: so many ways of each kind, but one of a shape, the fastest first.
pub fn shortlist(kernel: &Kernel, gpu: &Gpu, count: usize) -> Vec<(Way, Prediction)> {
    let mut kinds: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    let mut all = ranked(kernel, gpu);
    all.retain(|(way, _)| {
        let (kind, shape) = match way {
            Way::Tiles(of) => match &of.stage {
                Some(stage) => {
                    let ahead = stage.buffers > 1;
                    ("staged", format!("{:?}{:?}{ahead}", of.threads, of.points))
                }
                None => ("merged", format!("{of:?}")),
            },
            Way::Team(of) => ("team", format!("{:?}{}", of.lanes, of.threads)),
            Way::Fours(of) => ("fours", of.rows.to_string()),
            Way::Across(of) => ("across", format!("{of:?}")),
            Way::Prefix(of) => ("prefix", format!("{of:?}")),
            Way::Totals(of) => ("totals", of.points.to_string()),
        };
        let of_a_kind = kinds.entry(kind).or_default();
        of_a_kind.len() < count && of_a_kind.insert(shape)
    });
    all
}

/// See [`arriving`].
fn arrival(kernel: &Kernel, of: &Schedule, gpu: &Gpu) -> Option<f64> {
    let block = of.threads.iter().product();
    let resident = occupancy(gpu, &Resources::new(32, block).static_smem(0)).ok()?;
    let points: u32 = of.points.iter().product();
    let threads = f64::from(resident.blocks * block);
    arriving(kernel, gpu, f64::from(points), threads)
}

/// The predicted time of one way; none where it cannot be predicted, or is not one for the kernel.
pub fn predicted(kernel: &Kernel, way: &Way, gpu: &Gpu) -> Option<Prediction> {
    let Way::Tiles(of) = way else {
        return families::predict(kernel, way, gpu);
    };
    let mut predicted = predict(kernel, of, gpu)?;
    if kernel.loops.is_empty() {
        predicted.ms = predicted.ms.max(arrival(kernel, of, gpu)?);
    }
    Some(predicted)
}

/// The ways with their predicted times, the fastest first; the kernel as written is among them. Schedules that cannot
/// be predicted are left out.
pub fn ranked(kernel: &Kernel, gpu: &Gpu) -> Vec<(Way, Prediction)> {
    // Without a loop a thread's neighbours pay where their accesses become one, which is what fours do.
    let loops = !kernel.loops.is_empty();
    // One point is no tile.
    let one = kernel.dims.iter().all(Dim::is_one);
    let counts = !kernel.atomics().is_empty();
    let tiles = candidates(kernel).into_iter();
    let tiles = tiles.filter(|of| !one && !counts && (loops || of.points[0] == 1));
    let ways = tiles.map(Way::Tiles).chain(families::fitting(kernel, gpu));
    let with_time = |way: Way| predicted(kernel, &way, gpu).map(|p| (way, p));
    let mut all: Vec<(Way, Prediction)> = ways.filter_map(with_time).collect();
    // Equal times stay in the order of the candidates.
    all.sort_by(|a, b| a.1.ms.total_cmp(&b.1.ms));
    all
}
