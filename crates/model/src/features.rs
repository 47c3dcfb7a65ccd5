//! What is known of a build beside the default build: the terms that the learned correction works on.
//!
//! Everything that counts code is put in relation to the **work** of the build (arithmetic in floating point, tensor
//! operations, accesses to global memory): ptxas unrolls the loops of one build and not those of another, and what a
//! guess of ten iterations then counts is not the same number of iterations of the source. Per unit of work, an
//! unrolled loop and a rolled one can be compared. Ratios are natural logarithms.

use warpwright_sass::Unit;
use warpwright_target::{NORM, WARP_SIZE, joined};

use crate::stall::{Case, Parameters, profile, traffic_terms};

/// What a build is and where it runs.
#[derive(Debug, Clone, Copy)]
pub struct Build<'a> {
    /// Code, residency and board.
    pub case: Case<'a>,
    /// Registers per thread.
    pub registers: u32,
    /// Threads per block.
    pub threads: u32,
    /// Resident blocks per SM.
    pub blocks: u32,
    /// Blocks of the launch, where it is known.
    pub grid: Option<u64>,
}

/// Numbers about one build, per warp, weighted by loop depth.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Terms {
    cycles: f64,
    issue_stall: f64,
    global_stall: f64,
    local_stall: f64,
    shared_stall: f64,
    slots: f64,
    busiest: f64,
    traffic: f64,
    work: f64,
    global_loads: f64,
    global_stores: f64,
    global_bytes: f64,
    global_waits: f64,
    local_loads: f64,
    local_stores: f64,
    shared: f64,
    special: f64,
    double: f64,
    tensor: f64,
    barriers: f64,
    branches: f64,
    guarded: f64,
    loop_depth: f64,
    instructions: f64,
    registers: f64,
    threads: f64,
    warps: f64,
    /// Warps of the launch per SM, as if all could reside.
    grid_warps: Option<f64>,
    /// Rounds in which the blocks of the launch run.
    waves: Option<f64>,
    /// Local memory of all resident threads over the first-level cache that is left.
    local_share: f64,
    shared_per_sm: f64,
}

/// The features, by name; docs/model.md says what they stand for.
pub const NAMES: [&str; COUNT] = [
    "cycles",
    "cycles_per_warp",
    "slots",
    "busiest",
    "bound",
    "stall_global",
    "stall_local",
    "stall_shared",
    "stall_issue",
    "traffic",
    "warps",
    "active",
    "waves",
    "tail",
    "loads_per_wait",
    "in_flight",
    "work",
    "local_loads",
    "local_stores",
    "local_share",
    "shared_ops",
    "others",
    "instructions",
    "registers_ratio",
    "shared_room",
    "same_residency",
    "default_registers",
    "default_warps",
    "default_active",
    "default_waves",
    "default_issue",
    "default_latency",
    "default_traffic",
    "default_global_stall",
    "default_shared_stall",
    "default_local",
    "default_loads",
    "default_stores",
    "default_bytes_a_load",
    "default_double",
    "default_special",
    "default_tensor",
    "default_shared",
    "default_barriers",
    "default_branches",
    "default_guarded",
    "default_depth",
    "default_instructions",
    "default_loads_per_wait",
    "threads",
    "grid_known",
    "registers",
    "promise",
    "spare",
];
/// How many there are.
pub const COUNT: usize = 54;

impl Terms {
    /// The terms of a build; `parameters` as for the prediction.
    pub fn new(build: &Build, parameters: &Parameters) -> Terms {
        let case = &build.case;
        let profile = profile(case, parameters);
        let (issue, traffic, local_share) = traffic_terms(case, &profile, parameters);
        let warps = f64::from(case.warps.max(1));
        let sms = case.gpu.typical_sms();
        let waves = build.grid.zip(sms).map(|(grid, sms)| {
            grid as f64 / (f64::from(build.blocks.max(1)) * f64::from(sms.max(1)))
        });
        Terms {
            cycles: profile.stalls.total(),
            issue_stall: profile.stalls.issue,
            global_stall: profile.stalls.global,
            local_stall: profile.stalls.local,
            shared_stall: profile.stalls.shared,
            slots: profile.total() / f64::from(case.gpu.arch.schedulers.max(1)),
            busiest: issue,
            traffic,
            work: profile.work,
            global_loads: profile.count(Unit::GlobalLoad),
            global_stores: profile.count(Unit::GlobalStore),
            global_bytes: profile.global_bytes,
            global_waits: profile.global_waits,
            local_loads: profile.count(Unit::LocalLoad),
            local_stores: profile.count(Unit::LocalStore),
            shared: profile.count(Unit::Shared),
            special: profile.count(Unit::Sfu),
            double: profile.count(Unit::Fp64),
            tensor: profile.count(Unit::Tensor),
            barriers: profile.barriers,
            branches: profile.branches,
            guarded: profile.guarded,
            loop_depth: f64::from(profile.loop_depth),
            instructions: profile.static_instructions as f64,
            registers: f64::from(build.registers),
            threads: f64::from(build.threads),
            warps,
            grid_warps: case.grid_warps.map(f64::from),
            waves,
            local_share,
            shared_per_sm: f64::from(case.shared_per_sm),
        }
    }

    /// Warps that run at a time.
    fn active(&self) -> f64 {
        self.grid_warps
            .map_or(self.warps, |grid| grid.min(self.warps))
            .max(1.0)
    }

    fn total(&self) -> f64 {
        (self.slots * 4.0).max(1.0)
    }

    /// The three times of docs/model.md joined, per unit of work.
    fn bound(&self) -> f64 {
        let latency = self.cycles / self.active();
        joined(
            &[self.busiest, latency, self.traffic].map(|t| (t, ())),
            NORM,
        )
        .0
    }
}

/// The feature of a name.
pub(crate) fn named(features: &[f64], name: &str) -> f64 {
    let at = NAMES.iter().position(|n| *n == name);
    at.map_or(0.0, |at| features[at])
}

/// Accesses to slots outside of registers, per instruction of the default, from which on they count: below, they are
/// not in loops.
const SPILLS_IN_LOOPS: f64 = 0.01;

/// Does it cost something where slots of this build lie in shared memory? Not where they are outside of loops, unless
/// the issue of instructions is the bound. (ptxas does not say how much it spills to shared memory.)
pub fn pays_for_spills(features: &[f64; COUNT]) -> bool {
    let of = |name| named(features, name);
    let more = of("local_loads") + of("local_stores") + of("shared_ops");
    let others = of("default_latency").max(of("default_traffic"));
    more > SPILLS_IN_LOOPS || of("default_issue") > others
}

/// Has the build more warps at work, where the default's time for memory traffic is twice its other times? They gain no
/// bandwidth, and share the caches.
pub fn crowds_memory(features: &[f64; COUNT]) -> bool {
    let of = |name| named(features, name);
    let others = of("default_issue").max(of("default_latency"));
    of("active") > 0.0 && of("default_traffic") > 2.0 * others
}

/// The expected time over the default's of a build whose loops keep what they store in registers, with a copy of the default's
/// loops that is hardly run: per unit of work, without the copy's share of both, and calibrated.
pub fn kept_in_registers(features: &[f64; COUNT]) -> f64 {
    let times = named(features, "bound").exp();
    let work = named(features, "work").exp();
    let own = work - 1.0;
    let predicted = match own > LEAST_COPIED {
        true => ((times * work - 1.0) / own).max(LEAST_TIME),
        false => times,
    };
    KEPT_MEAN * predicted.powf(KEPT_SLOPE)
}

/// Work beside the copy, over the default's, from which on it is told from the copy.
const LEAST_COPIED: f64 = 0.25;
/// No loop becomes faster than this.
const LEAST_TIME: f64 = 0.1;
/// What such builds took where none of the default's was predicted, and how little of a prediction shows in it: fitted by eye
/// to the means of eight classes of predictions of 210 kernels (bench/results/promote-nvidia-h200-2026-11-29.json).
const KEPT_MEAN: f64 = 0.84;
const KEPT_SLOPE: f64 = 0.2;

/// How much larger, as a logarithm.
fn ratio(of: f64, to: f64) -> f64 {
    ((of + 1e-9) / (to + 1e-9)).ln().clamp(-5.0, 5.0)
}

/// The last wave is not full: time lost by that, over the time of full ones.
fn tail(waves: f64) -> f64 {
    if waves <= 0.0 {
        0.0
    } else {
        (waves.ceil() / waves).ln().min(3.0)
    }
}

/// The features of `build`, beside the default build of the same kernel, in the order of [`NAMES`]; `promised` is its
/// predicted time over the default's.
pub fn features(default: &Terms, build: &Terms, promised: f64) -> [f64; COUNT] {
    let (d, b) = (default, build);
    // One source iteration has as much work in each build.
    let scale = ratio(b.work, d.work);
    let per_work = |of: fn(&Terms) -> f64| ratio(of(b), of(d)) - scale;
    // Instructions that the build has more, per instruction of the default, at equal work.
    let times = scale.exp();
    let more = |of: fn(&Terms) -> f64| ((of(b) / times - of(d)) / d.total()).clamp(-2.0, 5.0);
    let share = |of: f64| (of / d.total()).min(2.0);
    let stall =
        |of: fn(&Terms) -> f64| ((of(b) / times - of(d)) / d.cycles.max(1.0)).clamp(-2.0, 5.0);
    let active = ratio(b.active(), d.active());
    let waits = |t: &Terms| (t.global_loads / t.global_waits.max(1.0)).max(0.1);
    // Blocks that would fit beside those that the launch brings.
    let spare = b.grid_warps.map_or(-1.0, |grid| {
        let of_block = (b.threads / f64::from(WARP_SIZE)).ceil().max(1.0);
        ((b.warps - grid) / of_block).clamp(-1.0, 1.0)
    });
    let full = d.bound();
    let latency = d.cycles / d.active();
    [
        per_work(|t| t.cycles),
        per_work(|t| t.cycles) - active,
        per_work(|t| t.slots),
        per_work(|t| t.busiest),
        per_work(Terms::bound),
        stall(|t| t.global_stall),
        stall(|t| t.local_stall),
        stall(|t| t.shared_stall),
        stall(|t| t.issue_stall),
        ((b.traffic / times - d.traffic) / full.max(1e-9)).clamp(-2.0, 5.0),
        ratio(b.warps, d.warps),
        active,
        b.waves
            .zip(d.waves)
            .map_or(0.0, |(b, d)| ratio(b.ceil(), d.ceil())),
        b.waves.zip(d.waves).map_or(0.0, |(b, d)| tail(b) - tail(d)),
        ratio(waits(b), waits(d)),
        ratio(waits(b) * b.active(), waits(d) * d.active()),
        scale,
        more(|t| t.local_loads),
        more(|t| t.local_stores),
        b.local_share.min(8.0),
        more(|t| t.shared),
        more(|t| t.total() - t.local_loads - t.local_stores - t.shared),
        ratio(b.instructions, d.instructions),
        ratio(b.registers, d.registers),
        (b.shared_per_sm - d.shared_per_sm) / 1024.0,
        f64::from(u8::from(b.warps == d.warps)),
        d.registers,
        d.warps,
        d.active(),
        d.waves.unwrap_or(-1.0).min(100.0),
        d.busiest / full.max(1e-9),
        latency / full.max(1e-9),
        d.traffic / full.max(1e-9),
        d.global_stall / d.cycles.max(1.0),
        d.shared_stall / d.cycles.max(1.0),
        share(d.local_loads + d.local_stores),
        share(d.global_loads),
        share(d.global_stores),
        d.global_bytes / (d.global_loads + d.global_stores).max(1.0),
        share(d.double),
        share(d.special),
        share(d.tensor),
        share(d.shared),
        share(d.barriers),
        share(d.branches),
        share(d.guarded),
        d.loop_depth,
        d.instructions.max(1.0).ln(),
        waits(d),
        d.threads,
        f64::from(u8::from(d.waves.is_some())),
        b.registers,
        ratio(promised, 1.0),
        spare,
    ]
}
