//! The stall model: machine code and residency to SM cycles per warp.

use serde::{Deserialize, Serialize};
use warpwright_sass::{BranchTargets, Instruction, Latencies, Profile, Unit};
use warpwright_target::{CACHE_OVER_MEMORY, Gpu, NORM, Rates, WARP_SIZE, joined};

use crate::cost::figure;

/// What the model knows of a candidate.
#[derive(Debug, Clone, Copy)]
pub struct Case<'a> {
    /// The target.
    pub gpu: &'a Gpu,
    /// The kernel's machine code.
    pub code: &'a [Instruction],
    /// Where its indirect branches lead.
    pub targets: &'a BranchTargets,
    /// Resident warps per SM, at least 1.
    pub warps: u32,
    /// Warps that the grid brings to the busiest SM, if a launch is known: where these are fewer
    /// than can reside, registers cost no parallelism.
    pub grid_warps: Option<u32>,
    /// Local memory in bytes per thread (spill slots and stack).
    pub frame_bytes: u32,
    /// Shared memory in bytes per SM that the resident blocks take; the rest of the carve-out is
    /// first-level cache.
    pub shared_per_sm: u32,
    /// Weighted global bytes of the default build, if this is another one: what a kernel reads and
    /// writes in global memory does not depend on how it was built, only our guess of its loops'
    /// trip counts does.
    pub global_bytes: Option<f64>,
    /// How often a warp executes each instruction, where somebody counted.
    pub counts: Option<&'a [f64]>,
}

/// Free parameters. [`Parameters::default`] holds the fit of docs/model.md.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Parameters {
    /// Exponent of the norm that joins the three times.
    pub norm: f64,
    /// Share of global loads that miss the second-level cache: sets their latency.
    pub dram_share: f64,
    /// Share of global bytes that reach device memory.
    pub traffic_share: f64,
    /// Share of the bytes of spill stores that go through to the second-level cache although the
    /// slots fit into the first level.
    pub store_through: f64,
    /// How much more than a device-memory byte the second-level cache moves per cycle.
    pub l2_factor: f64,
}

impl Default for Parameters {
    fn default() -> Self {
        Parameters {
            norm: NORM,
            dram_share: 0.25,
            traffic_share: 0.75,
            store_through: 1.0,
            l2_factor: CACHE_OVER_MEMORY[0],
        }
    }
}

/// What bounds a kernel under the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bound {
    /// An execution unit or the issue slots.
    Issue,
    /// Too few warps to hide stalls.
    Latency,
    /// Cache and memory traffic.
    Traffic,
}

impl Bound {
    /// The name in words.
    pub const fn name(self) -> &'static str {
        match self {
            Bound::Issue => "issue",
            Bound::Latency => "latency",
            Bound::Traffic => "traffic",
        }
    }
}

/// Predicted SM cycles per warp, and their parts.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Prediction {
    /// All three joined.
    pub cycles: f64,
    /// Issue-bound cycles.
    pub issue: f64,
    /// Latency-bound cycles.
    pub latency: f64,
    /// Traffic-bound cycles.
    pub traffic: f64,
    /// Weighted global bytes per thread, for [`Case::global_bytes`] of the other candidates.
    pub global_bytes: f64,
}

impl Prediction {
    /// The largest part.
    pub fn bound(&self) -> Bound {
        if self.latency >= self.issue && self.latency >= self.traffic {
            Bound::Latency
        } else if self.traffic > self.issue {
            Bound::Traffic
        } else {
            Bound::Issue
        }
    }
}

/// Warps that a grid of so many blocks brings to the busiest SM of a board; `None` where the board is
/// not known.
pub fn grid_warps(gpu: &Gpu, blocks: u64, threads: u32) -> Option<u32> {
    let warps = u64::from(threads.div_ceil(WARP_SIZE));
    let most = gpu.blocks_for_sm(blocks)?.saturating_mul(warps);
    Some(u32::try_from(most).unwrap_or(u32::MAX))
}

/// The profile of a candidate's code, with the latencies that its spills have at its residency.
pub fn profile(case: &Case, parameters: &Parameters) -> Profile {
    let latencies = latencies_of(case, parameters);
    Profile::new(case.code, case.targets, &latencies, case.counts)
}

/// The latencies that a candidate's loads have at its residency.
pub(crate) fn latencies_of(case: &Case, parameters: &Parameters) -> Latencies {
    latencies(case.gpu, spill_home(case), parameters)
}

/// Predicts one candidate.
pub fn predict(case: &Case, parameters: &Parameters) -> Prediction {
    let spills = spill_home(case);
    let profile = profile(case, parameters);
    let resident = case
        .grid_warps
        .map_or(case.warps, |grid| grid.min(case.warps));
    let warps = f64::from(resident.max(1));
    let issue = issue_cycles(case.gpu, &profile);
    let latency = profile.warp_cycles / warps;
    let global = case.global_bytes.unwrap_or(profile.global_bytes);
    let traffic = traffic_cycles(case.gpu, &profile, global, spills, parameters);
    let (cycles, _) = joined(&[issue, latency, traffic].map(|t| (t, ())), parameters.norm);
    Prediction {
        cycles,
        issue,
        latency,
        traffic,
        global_bytes: profile.global_bytes,
    }
}

/// Issue-bound cycles, traffic-bound cycles with the build's own global bytes, and the local memory of all resident
/// threads over the first-level cache that is left for it.
pub(crate) fn traffic_terms(
    case: &Case,
    profile: &Profile,
    parameters: &Parameters,
) -> (f64, f64, f64) {
    let global = profile.global_bytes;
    let traffic = traffic_cycles(case.gpu, profile, global, spill_home(case), parameters);
    let footprint = f64::from(case.warps) * f64::from(WARP_SIZE) * f64::from(case.frame_bytes);
    let cache = f64::from(first_level(case)).max(1.0);
    (issue_cycles(case.gpu, profile), traffic, footprint / cache)
}

/// Bytes of the first-level cache that shared memory leaves.
fn first_level(case: &Case) -> u32 {
    let whole = case.gpu.arch.l1_bytes.map_or(0, |f| f.value);
    whole.saturating_sub(case.shared_per_sm)
}

/// Where the lines of the local memory of all resident threads are.
#[derive(Debug, Clone, Copy)]
struct SpillHome {
    /// Share that the first-level cache can hold, 0 to 1.
    in_l1: f64,
    /// Share of the others that the second level can hold.
    in_l2: f64,
}

fn spill_home(case: &Case) -> SpillHome {
    // No more threads have local memory than reside, or than there are.
    let warps = case
        .grid_warps
        .map_or(case.warps, |grid| grid.min(case.warps));
    let footprint = f64::from(warps) * f64::from(WARP_SIZE) * f64::from(case.frame_bytes);
    let board = case.gpu.typical_board();
    let l2 = board.and_then(|board| Some((board.l2_kib?.value, board.sms?.value)));
    let share = |cache: f64, of: f64| if of > 0.0 { (cache / of).min(1.0) } else { 1.0 };
    SpillHome {
        in_l1: share(f64::from(first_level(case)), footprint),
        in_l2: l2.map_or(1.0, |(kib, sms)| {
            share(1024.0 * f64::from(kib), footprint * f64::from(sms))
        }),
    }
}

/// Latencies in cycles; where the table has none, the next faster level's figure stands in.
fn latencies(gpu: &Gpu, spills: SpillHome, parameters: &Parameters) -> Latencies {
    let table = &gpu.arch.latency;
    let typical = Latencies::typical(table);
    let (l1, l2) = (typical.local, typical.global);
    let dram = figure(table.dram.or(table.l2), 500);
    Latencies {
        global: l2 + parameters.dram_share * (dram - l2),
        local: spills.in_l1 * l1
            + (1.0 - spills.in_l1) * (spills.in_l2 * l2 + (1.0 - spills.in_l2) * dram),
        ..typical
    }
}

/// Threads per SM and cycle that a unit takes.
pub(crate) fn lanes(gpu: &Gpu, unit: Unit) -> f64 {
    let table = &gpu.arch.throughput;
    let fp32 = figure(table.fp32, 128);
    let load_store = figure(table.load_store, 32);
    match unit {
        Unit::Alu => figure(table.logic.or(table.int_add), 64),
        Unit::Fma => fp32,
        Unit::Half => figure(table.fp16, 2 * fp32 as u32) / 2.0,
        Unit::Fp64 => figure(table.fp64, 2),
        Unit::Sfu => figure(table.special, 16),
        Unit::Shared | Unit::LocalLoad | Unit::LocalStore => load_store,
        Unit::GlobalLoad | Unit::GlobalStore => load_store,
        Unit::Texture => load_store / 2.0,
        Unit::Constant | Unit::Control | Unit::Tensor => fp32,
    }
}

/// SM cycles per warp that the busiest unit needs.
fn issue_cycles(gpu: &Gpu, profile: &Profile) -> f64 {
    let warp = f64::from(WARP_SIZE);
    let busiest = profile
        .issued
        .iter()
        .map(|(&unit, &count)| count * warp / lanes(gpu, unit))
        .fold(0.0, f64::max);
    let slots = profile.total() / f64::from(gpu.arch.schedulers.max(1));
    busiest.max(slots)
}

/// SM cycles per warp to move what leaves the SM.
fn traffic_cycles(
    gpu: &Gpu,
    profile: &Profile,
    global_bytes: f64,
    home: SpillHome,
    parameters: &Parameters,
) -> f64 {
    let Some(bytes_per_cycle) = memory_bytes_per_cycle(gpu) else {
        return 0.0;
    };
    let warp = f64::from(WARP_SIZE);
    let global = parameters.traffic_share * global_bytes;
    let overflow = 1.0 - home.in_l1;
    let spills = overflow * (profile.local_load_bytes + profile.local_store_bytes)
        + parameters.store_through * home.in_l1 * profile.local_store_bytes;
    // What the second level cannot hold moves to device memory and back.
    let price = home.in_l2 / parameters.l2_factor + (1.0 - home.in_l2);
    (global + spills * price) * warp / bytes_per_cycle
}

/// Device-memory bytes per SM and clock of the board, if its figures are known.
pub(crate) fn memory_bytes_per_cycle(gpu: &Gpu) -> Option<f64> {
    let rates = Rates::of(gpu).ok()?;
    let cycles = rates.mhz * 1e6 * rates.sms;
    (cycles > 0.0).then(|| rates.gb_s * 1e9 / cycles)
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpwright_target::lookup;

    fn op(operation: u128, write: u128, wait: u128) -> Instruction {
        let bits = operation | 7 << 12 | 4 << 73 | 2 << 105 | write << 110 | 7 << 113 | wait << 116;
        Instruction::new(90, bits)
    }

    /// A load and its use, `n` times: bound by latency at few warps, less so at many.
    fn loads(n: usize) -> Vec<Instruction> {
        (0..n)
            .flat_map(|_| [op(0x181, 0, 0), op(0x021, 7, 1)])
            .collect()
    }

    fn at(gpu: &Gpu, code: &[Instruction], warps: u32, frame_bytes: u32) -> Prediction {
        let case = Case {
            gpu,
            code,
            targets: &BranchTargets::new(),
            warps,
            grid_warps: None,
            frame_bytes,
            shared_per_sm: 0,
            global_bytes: None,
            counts: None,
        };
        predict(&case, &Parameters::default())
    }

    #[test]
    fn more_warps_hide_latency() {
        let gpu = lookup("h200").unwrap();
        let code = loads(20);
        let few = at(&gpu, &code, 8, 0);
        let many = at(&gpu, &code, 64, 0);
        assert_eq!(few.bound(), Bound::Latency);
        assert!(many.cycles < few.cycles / 2.0, "{few:?} {many:?}");
    }

    #[test]
    fn a_small_grid_gains_nothing_by_room_for_more_warps() {
        let gpu = lookup("h200").unwrap();
        let code = loads(20);
        let with = |warps| {
            let case = Case {
                gpu: &gpu,
                code: &code,
                targets: &BranchTargets::new(),
                warps,
                grid_warps: grid_warps(&gpu, 132, 256),
                frame_bytes: 0,
                shared_per_sm: 0,
                global_bytes: None,
                counts: None,
            };
            predict(&case, &Parameters::default()).cycles
        };
        assert_eq!(with(8), with(64));
        assert_eq!(grid_warps(&gpu, 133, 33), Some(4));
    }

    #[test]
    fn spills_cost_and_cost_more_beyond_the_first_level_cache() {
        let gpu = lookup("h200").unwrap();
        let plain: Vec<_> = (0..100).map(|_| op(0x023, 7, 0)).collect();
        let mut spilling = plain.clone();
        spilling.extend((0..20).flat_map(|_| [op(0x183, 0, 0), op(0x023, 7, 1)]));
        let base = at(&gpu, &plain, 16, 0).cycles;
        let small = at(&gpu, &spilling, 16, 80).cycles;
        let large = at(&gpu, &spilling, 16, 4000).cycles;
        assert!(base < small && small < large, "{base} {small} {large}");
    }

    #[test]
    fn local_memory_beyond_the_second_level_cache_goes_to_device_memory() {
        let gpu = lookup("h200").unwrap();
        let code: Vec<_> = (0..20)
            .flat_map(|_| [op(0x183, 0, 0), op(0x023, 7, 1)])
            .collect();
        // Of 132 SMs: 34 MB, then 270 MB, of which the cache holds 60.
        let within = at(&gpu, &code, 8, 1000).traffic;
        let beyond = at(&gpu, &code, 64, 1000).traffic;
        assert!(beyond > 2.0 * within, "{within} {beyond}");
    }
}
