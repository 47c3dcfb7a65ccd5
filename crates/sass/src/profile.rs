//! A static profile of a kernel's machine code: loop-weighted instruction counts per execution
//! unit, and the time that one warp alone would need.
//!
//! The timing walk follows RegDem (section 4, step 1 as far as the text goes): it adds up each
//! instruction's control-code stall and, at every wait, the latency that the waited-for
//! scoreboard still has to run. Blocks are weighted by loop depth (step 2). Departures: latencies
//! of loads come from the caller, because they depend on what fits in the L1 cache at the
//! occupancy in question; an unconditional straight-line order is assumed inside a loop body.

use std::collections::{BTreeMap, BTreeSet};

use warpwright_flow::{Cfg, EntityRef, Loop, Loops};
use warpwright_target::{Fact, Latency, Unit};

use crate::elf::kernel::BranchTargets;
use crate::function::paths;
use crate::inst::Instruction;
use crate::operation::Operation;

/// How often a loop body is assumed to run when nothing is known about its trip count.
pub const LOOP_WEIGHT: f64 = 10.0;
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

impl Latencies {
    /// Those of an architecture, with global memory found in the L2 cache and local memory in L1; what is not known about it
    /// is as on others.
    pub fn typical(table: &Latency) -> Latencies {
        let figure = |known: Option<Fact<u32>>, usual: u32| {
            f64::from(known.map_or(usual, |fact| fact.value).max(1))
        };
        Latencies {
            global: figure(table.l2.or(table.l1), 200),
            local: figure(table.l1, 32),
            shared: figure(table.shared, 30),
            sfu: figure(table.special, 20),
            fp64: figure(table.fp64, 2 * table.alu.map_or(4, |fact| fact.value)),
            other: figure(table.special, 20),
        }
    }
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
    /// The same cycles with innermost loops in their steady state, by cause.
    pub stalls: Stalls,
    /// What the kernel is for, weighted: arithmetic in floating point, tensor operations and accesses to global
    /// memory, in instructions. However often ptxas unrolls a loop, a source iteration has the same of it.
    pub work: f64,
    /// Places where a warp waits for loads from global memory, weighted.
    pub global_waits: f64,
    /// Barriers of the block, weighted.
    pub barriers: f64,
    /// Branches, weighted.
    pub branches: f64,
    /// Guarded instructions other than branches, weighted.
    pub guarded: f64,
}

/// Where the cycles of a warp alone go, weighted by loop depth.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Stalls {
    /// Issuing, and waiting for fixed latencies.
    pub issue: f64,
    /// Waiting for global memory or textures.
    pub global: f64,
    /// Waiting for spill slots and other local memory.
    pub local: f64,
    /// Waiting for shared memory.
    pub shared: f64,
    /// Waiting for special functions, conversions, double precision where it signals, anything else.
    pub other: f64,
}

impl Stalls {
    /// All cycles.
    pub fn total(&self) -> f64 {
        self.issue + self.global + self.local + self.shared + self.other
    }

    fn add(&mut self, weight: f64, step: &Issue) {
        self.issue += weight * (step.cycles - step.waited);
        let wait = match step.cause {
            Some(Unit::GlobalLoad | Unit::Texture) => &mut self.global,
            Some(Unit::LocalLoad) => &mut self.local,
            Some(Unit::Shared) => &mut self.shared,
            _ => &mut self.other,
        };
        *wait += weight * step.waited;
    }
}

impl Profile {
    /// Profiles `code`, whose indirect branches lead to `targets`, with the given latencies. `counts` says how often
    /// each instruction is executed, where that is known: else loops count ten times.
    pub fn new(
        code: &[Instruction],
        targets: &BranchTargets,
        latencies: &Latencies,
        counts: Option<&[f64]>,
    ) -> Self {
        let nest = Nest::new(code, targets);
        let depths = &nest.depths;
        let weights = nest.weights(counts);
        let mut profile = Profile {
            static_instructions: code.len(),
            loop_depth: depths.iter().copied().max().unwrap_or(0),
            ..Profile::default()
        };
        let mut walk = Walk::default();
        for (inst, &weight) in code.iter().zip(&weights) {
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
            profile.warp_cycles += weight * walk.step(*inst, latencies).cycles;
            profile.work += weight * work(*inst);
            if inst.operation() == Operation::BAR {
                profile.barriers += weight;
            }
            match unit {
                Unit::Control => profile.branches += weight,
                _ if inst.is_predicated() => profile.guarded += weight,
                _ => {}
            }
        }
        for (step, &weight) in steady(code, &nest, latencies).iter().zip(&weights) {
            profile.stalls.add(weight, step);
            if step.is_first_wait {
                profile.global_waits += weight;
            }
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

/// How often an instruction at a loop depth is taken to be executed.
fn weight(depth: u32) -> f64 {
    LOOP_WEIGHT.powi(depth.min(MAX_DEPTH) as i32)
}

/// What an instruction does of the kernel's own work, in instructions: addresses, moves, comparisons and spills
/// come and go with the build, these do not.
fn work(inst: Instruction) -> f64 {
    match (inst.operation(), inst.unit()) {
        (Operation::FADD | Operation::FMUL | Operation::FFMA, _) => 1.0,
        (Operation::HFMA2 | Operation::HFMA2_MMA, _) if inst.loaded_constant().is_some() => 0.0,
        (_, Unit::Half) => 1.0,
        (_, Unit::Fp64 | Unit::Tensor) => 4.0,
        // Accesses of two and four words are two and four.
        (_, Unit::GlobalLoad | Unit::GlobalStore) => {
            4.0 * f64::from(inst.access_bytes().max(4)) / 4.0
        }
        (_, Unit::Texture) => 4.0,
        // Integer kernels have nothing else; elsewhere these are few beside the above.
        (_, Unit::Alu) => 0.1,
        _ => 0.0,
    }
}

/// The loops of a kernel, as the flow of control makes them.
struct Nest {
    /// Loop depth of each instruction.
    depths: Vec<u32>,
    /// The instructions of each innermost loop, ascending, by the last of them.
    innermost: BTreeMap<usize, Vec<usize>>,
}

impl Nest {
    /// How often each instruction is executed.
    fn weights(&self, counts: Option<&[f64]>) -> Vec<f64> {
        let of = |(at, &depth): (usize, &u32)| {
            let count = counts.and_then(|counts| counts.get(at));
            count.copied().unwrap_or_else(|| weight(depth))
        };
        self.depths.iter().enumerate().map(of).collect()
    }

    fn new(code: &[Instruction], targets: &BranchTargets) -> Nest {
        let cfg = Cfg::new(&paths(code, targets));
        let loops = Loops::new(&cfg);
        let waits = |of: Loop| loops.waits(&cfg, of);
        let outer: BTreeSet<Loop> = (loops.iter().filter(|&of| !waits(of)))
            .filter_map(|of| loops.parent(of))
            .collect();
        let all = loops.iter().filter(|of| !waits(*of) && !outer.contains(of));
        let innermost = all.filter_map(|of| {
            let blocks = loops.blocks(of).iter();
            let insts = blocks.flat_map(|&block| cfg.insts(block));
            let mut insts: Vec<usize> = insts.map(|inst| inst.index()).collect();
            insts.sort_unstable();
            Some((*insts.last()?, insts))
        });
        Nest {
            depths: loops.inst_depths(&cfg, code.len()),
            innermost: innermost.collect(),
        }
    }
}

/// The number of loops around each instruction; a call comes back, and is no way into the callee's loops.
pub fn loop_depths(code: &[Instruction], targets: &BranchTargets) -> Vec<u32> {
    Nest::new(code, targets).depths
}

/// What a warp alone spends on one instruction.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Step {
    /// How often it is taken to be executed.
    pub weight: f64,
    /// Cycles to the next issue slot, each time.
    pub cycles: f64,
    /// Those of them in which it waits for a scoreboard.
    pub waited: f64,
    /// Who held the scoreboard that came last.
    pub cause: Option<Unit>,
}

/// What a warp alone spends on each instruction, innermost loops in their second iteration: the sum is
/// [`Stalls::total`]. For `counts` see [`Profile::new`].
pub fn steps(
    code: &[Instruction],
    targets: &BranchTargets,
    latencies: &Latencies,
    counts: Option<&[f64]>,
) -> Vec<Step> {
    let nest = Nest::new(code, targets);
    let issues = steady(code, &nest, latencies).into_iter();
    let step = |(issue, &weight): (Issue, &f64)| Step {
        weight,
        cycles: issue.cycles,
        waited: issue.waited,
        cause: issue.cause,
    };
    issues.zip(&nest.weights(counts)).map(step).collect()
}

/// The steps of a warp alone, innermost loops in their second iteration: what one iteration loads for the next is
/// not waited for at once.
fn steady(code: &[Instruction], nest: &Nest, latencies: &Latencies) -> Vec<Issue> {
    let mut walk = Walk::default();
    let mut steps: Vec<Issue> = Vec::with_capacity(code.len());
    for (at, inst) in code.iter().enumerate() {
        steps.push(walk.step(*inst, latencies));
        for &again in nest.innermost.get(&at).into_iter().flatten() {
            steps[again] = walk.step(code[again], latencies);
        }
    }
    steps
}

/// What a warp alone does at one instruction.
#[derive(Clone, Copy)]
struct Issue {
    /// Cycles since the previous issue slot.
    cycles: f64,
    /// Those of them that it waited for a scoreboard.
    waited: f64,
    /// Who held the scoreboard that came last.
    cause: Option<Unit>,
    /// Is it the first to wait for some load from global memory?
    is_first_wait: bool,
}

/// The clock of one warp running alone.
#[derive(Default)]
struct Walk {
    now: f64,
    ready: [f64; SCOREBOARDS],
    /// Who set each scoreboard last, until somebody waits for it.
    setter: [Option<Unit>; SCOREBOARDS],
}

impl Walk {
    /// Issues `inst`.
    fn step(&mut self, inst: Instruction, latencies: &Latencies) -> Issue {
        let before = self.now;
        let (mut cause, mut is_first_wait) = (None, false);
        for board in 0..SCOREBOARDS {
            if inst.wait_mask() & (1 << board) != 0 {
                if self.ready[board] > self.now {
                    self.now = self.ready[board];
                    cause = self.setter[board];
                }
                is_first_wait |= self.setter[board] == Some(Unit::GlobalLoad);
                self.setter[board] = None;
            }
        }
        let waited = self.now - before;
        if let Some(board) = inst.write_barrier().filter(|&b| b < SCOREBOARDS) {
            self.ready[board] = self.ready[board].max(self.now + latency(inst.unit(), latencies));
            self.setter[board] = Some(inst.unit());
        }
        if let Some(board) = inst.read_barrier().filter(|&b| b < SCOREBOARDS) {
            // Sources are read soon after issue; a dozen cycles is what stores show.
            self.ready[board] = self.ready[board].max(self.now + 12.0);
        }
        self.now += f64::from(inst.stall().max(1));
        Issue {
            cycles: self.now - before,
            waited,
            cause,
            is_first_wait,
        }
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
    use crate::branch::ControlFlow;

    const LATENCIES: Latencies = Latencies {
        global: 500.0,
        local: 33.0,
        shared: 29.0,
        sfu: 20.0,
        fp64: 16.0,
        other: 20.0,
    };

    fn profile(code: &[Instruction]) -> Profile {
        Profile::new(code, &BranchTargets::new(), &LATENCIES, None)
    }

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
        let profile = profile(&code);
        assert_eq!(profile.warp_cycles, 500.0 + 4.0);
        assert_eq!(profile.count(Unit::Fma), 2.0);
    }

    #[test]
    fn a_load_for_the_next_iteration_is_not_waited_for_at_once() {
        // The load at the end of the body is used at its beginning; 600 cycles of arithmetic lie between.
        let mut code = vec![inst(0x021, 4, 7, 1)];
        code.extend((0..40).map(|_| inst(0x021, 15, 7, 0)));
        code.insert(1, inst(0x181, 1, 0, 0));
        let back = -(16 * (code.len() as i64 + 1)) / 4;
        let distance = (back as u128) & ((1 << 56) - 1);
        let jump = 0x147 | 7 << 12 | (distance >> 8) << 34 | (distance & 0xff) << 16 | 1 << 105;
        code.push(Instruction::new(90, jump | 7 << 110 | 7 << 113));
        let profile = profile(&code);
        assert_eq!(profile.loop_depth, 1);
        assert_eq!(profile.stalls.global, 0.0);
        assert_eq!(profile.global_waits, 10.0);
        assert_eq!(profile.stalls.total(), 10.0 * (4.0 + 1.0 + 600.0 + 1.0));
    }

    #[test]
    fn unrolling_does_not_change_the_work_of_an_iteration() {
        let body = [
            inst(0x181, 1, 0, 0),
            inst(0x023, 4, 7, 1),
            inst(0x010, 4, 7, 0),
        ];
        let once = profile(&body);
        let twice = profile(&[body, body].concat());
        assert!((twice.work - 2.0 * once.work).abs() < 1e-9);
        assert_eq!(once.stalls.global, 499.0);
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
        let profile = profile(&code);
        assert_eq!(profile.count(Unit::Fma), 11.0);
        assert_eq!(profile.loop_depth, 1);
    }
}
