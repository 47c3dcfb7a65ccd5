//! Where the cycles of a warp go: each instruction's share of what a warp alone takes, by cause.
//!
//! The walk is that of the stall model (RegDem section 4; `docs/model.md`). A wait belongs to who held the scoreboard
//! that came last; of a control-code stall one cycle is the issue slot, as many as the unit needs for a warp are the
//! unit's, and the rest is the fixed latency of a result. How long warps wait for each other at a barrier, and what
//! other warps hide, is not in it.

use serde::Serialize;
use warpwright_sass::{BranchTargets, Instruction, Operation, Step, Unit, steps};
use warpwright_target::{Gpu, WARP_SIZE};

use crate::stall::{Case, Parameters, lanes, latencies_of};

/// Why a warp does not issue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// It does: the slot of the instruction itself.
    Issue,
    /// The execution unit takes a warp in several cycles.
    Unit,
    /// A result of fixed latency is not there yet.
    FixedLatency,
    /// A load from global memory or a texture.
    Global,
    /// A load from local memory: spill slots, arrays.
    Local,
    /// Shared memory.
    Shared,
    /// Special functions, conversions, operands that are still being read, anything else with a scoreboard.
    Other,
    /// A barrier of the block.
    Barrier,
    /// A branch, call or return.
    Branch,
}

impl Cause {
    /// All of them, in the order of [`Cycles::by_cause`].
    pub const ALL: [Cause; 9] = [
        Cause::Issue,
        Cause::Unit,
        Cause::FixedLatency,
        Cause::Global,
        Cause::Local,
        Cause::Shared,
        Cause::Other,
        Cause::Barrier,
        Cause::Branch,
    ];

    /// In words.
    pub const fn name(self) -> &'static str {
        match self {
            Cause::Issue => "issue",
            Cause::Unit => "unit",
            Cause::FixedLatency => "fixed latency",
            Cause::Global => "global memory",
            Cause::Local => "local memory",
            Cause::Shared => "shared memory",
            Cause::Other => "other scoreboards",
            Cause::Barrier => "barrier",
            Cause::Branch => "branch",
        }
    }
}

/// Cycles of a warp alone, by cause.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Cycles {
    /// In the order of [`Cause::ALL`].
    pub by_cause: [f64; Cause::ALL.len()],
}

impl Cycles {
    /// All of them.
    pub fn total(&self) -> f64 {
        self.by_cause.iter().sum()
    }

    /// Those of a cause.
    pub fn of(&self, cause: Cause) -> f64 {
        self.by_cause[cause as usize]
    }

    /// Adds another's.
    pub fn add(&mut self, other: &Cycles) {
        for (sum, more) in self.by_cause.iter_mut().zip(other.by_cause) {
            *sum += more;
        }
    }

    /// The cause that takes most, the first of equals.
    pub fn most(&self) -> Cause {
        let first = Cause::Issue;
        let more = |most: Cause, next: Cause| match self.of(next) > self.of(most) {
            true => next,
            false => most,
        };
        Cause::ALL.into_iter().fold(first, more)
    }
}

/// The cycles of each instruction, weighted by the depth of its loops; their sum is the model's time of a warp alone
/// with innermost loops in their steady state.
pub fn attribute(case: &Case, parameters: &Parameters) -> Vec<Cycles> {
    let latencies = latencies_of(case, parameters);
    let code: &[Instruction] = case.code;
    let targets: &BranchTargets = case.targets;
    let of = |(step, &inst): (&Step, &Instruction)| split(case.gpu, inst, step);
    let steps = steps(code, targets, &latencies, case.counts);
    steps.iter().zip(code).map(of).collect()
}

fn split(gpu: &Gpu, inst: Instruction, step: &Step) -> Cycles {
    let mut cycles = Cycles::default();
    let mut put = |cause: Cause, of: f64| cycles.by_cause[cause as usize] += step.weight * of;
    put(
        match step.cause {
            Some(Unit::GlobalLoad | Unit::Texture) => Cause::Global,
            Some(Unit::LocalLoad) => Cause::Local,
            Some(Unit::Shared) => Cause::Shared,
            _ => Cause::Other,
        },
        step.waited,
    );
    let stall = step.cycles - step.waited;
    let slot = stall.min(1.0);
    put(Cause::Issue, slot);
    let unit = inst.unit();
    if inst.operation() == Operation::BAR {
        put(Cause::Barrier, stall - slot);
    } else if unit == Unit::Control {
        put(Cause::Branch, stall - slot);
    } else {
        let schedulers = f64::from(gpu.arch.schedulers.max(1));
        let busy = (f64::from(WARP_SIZE) * schedulers / lanes(gpu, unit)).min(stall);
        let busy = busy.max(slot);
        put(Cause::Unit, busy - slot);
        put(Cause::FixedLatency, stall - busy);
    }
    cycles
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile;
    use warpwright_target::lookup;

    fn op(operation: u128, stall: u128, write: u128, wait: u128) -> Instruction {
        let bits =
            operation | 7 << 12 | 4 << 73 | stall << 105 | write << 110 | 7 << 113 | wait << 116;
        Instruction::new(90, bits)
    }

    #[test]
    fn each_cycle_has_a_cause_and_they_add_up() {
        let gpu = lookup("h200").unwrap();
        // A global load, the addition that waits for it and whose result is four cycles away, a shared load, its use,
        // a double-precision addition, a barrier, the end.
        let code = [
            op(0x181, 1, 0, 0),
            op(0x021, 4, 7, 1),
            op(0x184, 2, 1, 0),
            op(0x021, 5, 7, 2),
            op(0x029, 2, 7, 0),
            op(0xb1d, 6, 7, 0),
            op(0x14d, 5, 7, 0),
        ];
        let targets = BranchTargets::new();
        let case = Case {
            gpu: &gpu,
            code: &code,
            targets: &targets,
            warps: 8,
            grid_warps: None,
            frame_bytes: 0,
            shared_per_sm: 0,
            global_bytes: None,
            counts: None,
        };
        let parameters = Parameters::default();
        let found = attribute(&case, &parameters);
        let mut all = Cycles::default();
        found.iter().for_each(|cycles| all.add(cycles));
        let profile = profile(&case, &parameters);
        assert!((all.total() - profile.stalls.total()).abs() < 1e-9);
        assert_eq!(all.of(Cause::Global), profile.stalls.global);
        assert_eq!(all.of(Cause::Shared), profile.stalls.shared);
        assert_eq!(all.of(Cause::Issue), 7.0);
        assert_eq!(found[1].of(Cause::FixedLatency), 3.0);
        assert_eq!(found[1].most(), Cause::Global);
        assert_eq!(found[4].of(Cause::Unit), 1.0);
        assert_eq!(found[5].of(Cause::Barrier), 5.0);
        assert_eq!(found[6].of(Cause::Branch), 4.0);
        assert_eq!(all.most(), Cause::Global);
    }
}
