//! A static profile of a kernel's machine code: loop-weighted instruction counts per execution
//! unit, and the time that one warp alone would need.
//!
//! The timing walk follows RegDem (section 4, step 1 as far as the text goes): it adds up each
//! instruction's control-code stall and, at every wait, the latency that the waited-for
//! scoreboard still has to run. Blocks are weighted by loop depth (step 2). Departures: latencies
//! of loads come from the caller, because they depend on what fits in the L1 cache at the
//! occupancy in question; an unconditional straight-line order is assumed inside a loop body.

use std::collections::BTreeMap;

use warpwright_target::Unit;

use crate::branch::ControlFlow;
use crate::inst::Instruction;

/// How often a loop body is assumed to run when nothing is known about its trip count.
const LOOP_WEIGHT: f64 = 10.0;
/// Deeper nests than this count no more: weights would otherwise drown everything outside.
const MAX_DEPTH: u32 = 4;
const SCOREBOARDS: usize = 6;

/// Cycles from issue to the arrival of the result, for the variable-latency units.
#[derive(Debug, Clone, Copy)]
pub struct Latencies {
    /// Global loads.
    pub global: f64,
    /// Local loads (spills): L1 when the spill footprint fits, else L2.
    pub local: f64,
    /// Shared-memory loads.
    pub shared: f64,
    /// Special functions and conversions.
    pub sfu: f64,
    /// Double precision, where it is not pipelined with fixed latency.
    pub fp64: f64,
    /// Anything else that signals a scoreboard.
    pub other: f64,
}

/// Loop-weighted facts about one kernel.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Profile {
    /// Warp instructions per unit, weighted by loop depth.
    pub issued: BTreeMap<Unit, f64>,
    /// Bytes per thread loaded from local memory, weighted.
    pub local_load_bytes: f64,
    /// Bytes per thread stored to local memory, weighted.
    pub local_store_bytes: f64,
    /// Bytes per thread moved to and from shared memory, weighted.
    pub shared_bytes: f64,
    /// Bytes per thread moved to and from global memory, weighted.
    pub global_bytes: f64,
    /// Cycles one warp needs alone, weighted.
    pub warp_cycles: f64,
    /// Instructions in the kernel, not weighted.
    pub static_instructions: usize,
    /// Deepest loop nest.
    pub loop_depth: u32,
}

impl Profile {
    /// Profiles `code` with the given latencies.
    pub fn new(code: &[Instruction], latencies: &Latencies) -> Self {
        let depths = loop_depths(code);
        let mut profile = Profile {
            static_instructions: code.len(),
            loop_depth: depths.iter().copied().max().unwrap_or(0),
            ..Profile::default()
        };
        let mut walk = Walk::default();
        for (inst, &depth) in code.iter().zip(&depths) {
            let weight = LOOP_WEIGHT.powi(depth.min(MAX_DEPTH) as i32);
            let unit = inst.unit();
            *profile.issued.entry(unit).or_default() += weight;
            let bytes = weight * f64::from(inst.access_bytes());
            match unit {
                Unit::LocalLoad => profile.local_load_bytes += bytes,
                Unit::LocalStore => profile.local_store_bytes += bytes,
                Unit::Shared => profile.shared_bytes += bytes,
                Unit::GlobalLoad | Unit::GlobalStore => profile.global_bytes += bytes,
                _ => {}
            }
            profile.warp_cycles += weight * walk.step(*inst, latencies);
        }
        profile
    }

    /// Weighted instructions on `unit`.
    pub fn count(&self, unit: Unit) -> f64 {
        self.issued.get(&unit).copied().unwrap_or(0.0)
    }

    /// Weighted instructions in all.
    pub fn total(&self) -> f64 {
        self.issued.values().sum()
    }
}

/// Loop depth of each instruction: an instruction lies in one loop per distinct backward-branch
/// target whose span covers it. Endless self-branches (the padding behind EXIT) are no loops.
fn loop_depths(code: &[Instruction]) -> Vec<u32> {
    let mut loops: BTreeMap<usize, usize> = BTreeMap::new();
    for (at, inst) in code.iter().enumerate() {
        let (ControlFlow::Jump(offset) | ControlFlow::Branch(offset)) = ControlFlow::of(*inst)
        else {
            continue;
        };
        let target = (at as i64 + 1) + offset / 16;
        if let Ok(target) = usize::try_from(target)
            && target < at
        {
            let end = loops.entry(target).or_default();
            *end = (*end).max(at);
        }
    }
    let mut delta = vec![0i32; code.len() + 1];
    for (&start, &end) in &loops {
        delta[start] += 1;
        delta[end + 1] -= 1;
    }
    let mut depth = 0;
    delta[..code.len()]
        .iter()
        .map(|d| {
            depth += d;
            depth.max(0) as u32
        })
        .collect()
}

/// The clock of one warp running alone.
#[derive(Default)]
struct Walk {
    now: f64,
    ready: [f64; SCOREBOARDS],
}

impl Walk {
    /// Issues `inst`; returns the cycles that passed since the previous issue slot.
    fn step(&mut self, inst: Instruction, latencies: &Latencies) -> f64 {
        let before = self.now;
        for board in 0..SCOREBOARDS {
            if inst.wait_mask() & (1 << board) != 0 {
                self.now = self.now.max(self.ready[board]);
            }
        }
        if let Some(board) = inst.write_barrier().filter(|&b| b < SCOREBOARDS) {
            self.ready[board] = self.ready[board].max(self.now + latency(inst.unit(), latencies));
        }
        if let Some(board) = inst.read_barrier().filter(|&b| b < SCOREBOARDS) {
            // Sources are read soon after issue; a dozen cycles is what stores show.
            self.ready[board] = self.ready[board].max(self.now + 12.0);
        }
        self.now += f64::from(inst.stall().max(1));
        self.now - before
    }
}

fn latency(unit: Unit, latencies: &Latencies) -> f64 {
    match unit {
        Unit::GlobalLoad | Unit::Texture => latencies.global,
        Unit::LocalLoad => latencies.local,
        Unit::Shared => latencies.shared,
        Unit::Sfu => latencies.sfu,
        Unit::Fp64 => latencies.fp64,
        _ => latencies.other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LATENCIES: Latencies = Latencies {
        global: 500.0,
        local: 33.0,
        shared: 29.0,
        sfu: 20.0,
        fp64: 16.0,
        other: 20.0,
    };

    fn inst(operation: u16, stall: u32, write: u8, wait: u8) -> Instruction {
        let bits = u128::from(operation)
            | 7 << 12
            | u128::from(stall) << 105
            | u128::from(write) << 110
            | 7 << 113
            | u128::from(wait) << 116;
        Instruction::new(90, bits)
    }

    #[test]
    fn a_wait_costs_what_is_left_of_the_latency() {
        let code = [
            inst(0x181, 1, 0, 0),
            inst(0x021, 4, 7, 0),
            inst(0x021, 4, 7, 1),
        ];
        let profile = Profile::new(&code, &LATENCIES);
        assert_eq!(profile.warp_cycles, 500.0 + 4.0);
        assert_eq!(profile.count(Unit::Fma), 2.0);
    }

    #[test]
    fn a_loop_body_weighs_ten_times() {
        let jump_two_back = Instruction::new(
            90,
            0x147
                | 7 << 12
                | (((1u128 << 48) - 1) << 34)
                | 0xf8 << 16
                | 1 << 105
                | 7 << 110
                | 7 << 113,
        );
        assert_eq!(ControlFlow::of(jump_two_back), ControlFlow::Branch(-32));
        let code = [inst(0x021, 1, 7, 0), inst(0x021, 1, 7, 0), jump_two_back];
        let profile = Profile::new(&code, &LATENCIES);
        assert_eq!(profile.count(Unit::Fma), 11.0);
        assert_eq!(profile.loop_depth, 1);
    }
}
