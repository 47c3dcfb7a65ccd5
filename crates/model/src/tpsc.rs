//! TPSC, the measure by which CRAT compares design points (section 6): thread-level parallelism
//! times the cost of spills, the smaller the better.
//!
//! ```text
//! TPSC      = TLP_gain · Spill_cost
//! TLP_gain  = 1 − TLP · BlockSize / (TLP · BlockSize + MaxThread)
//! Spill_cost = Num_local · Cost_local + Num_shm · Cost_shm + Num_others
//! ```
//!
//! The numbers are instructions, counted in the machine code and weighted by loop depth (the paper
//! does not say whether it weights them). A point without spills has TPSC 0, whatever its
//! parallelism; among several the one with more threads is meant to win, so TLP_gain is kept to
//! break the tie.

use serde::{Deserialize, Serialize};
use warpwright_sass::{Profile, Unit};
use warpwright_target::{Gpu, WARP_SIZE};

/// Instructions that spilling has added, per warp, weighted by loop depth.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Inserted {
    /// Loads and stores of local memory.
    pub local: f64,
    /// Loads and stores of shared memory.
    pub shared: f64,
    /// Others: addresses, recomputation.
    pub others: f64,
}

/// The measure of one design point.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Tpsc {
    /// TLP_gain, 0 to 1; smaller with more threads.
    pub tlp_gain: f64,
    /// Spill_cost in cycles per warp.
    pub spill_cost: f64,
}

impl Tpsc {
    /// TLP_gain · Spill_cost.
    pub fn value(&self) -> f64 {
        self.tlp_gain * self.spill_cost
    }

    /// Orders design points, the better one first.
    pub fn compare(&self, other: &Self) -> std::cmp::Ordering {
        self.value()
            .total_cmp(&other.value())
            .then(self.tlp_gain.total_cmp(&other.tlp_gain))
    }
}

/// What a build has more than `least`, the build without spills that it is compared with. All local
/// accesses count; a build that has fewer of something than `least` has inserted none of it.
pub fn inserted(build: &Profile, least: &Profile) -> Inserted {
    let local = build.count(Unit::LocalLoad) + build.count(Unit::LocalStore);
    let shared = (build.count(Unit::Shared) - least.count(Unit::Shared)).max(0.0);
    let of_least = least.total() - least.count(Unit::LocalLoad) - least.count(Unit::LocalStore);
    Inserted {
        local,
        shared,
        others: (build.total() - local - shared - of_least).max(0.0),
    }
}

/// TPSC of a point with `blocks` resident blocks of `block_threads` threads.
pub fn tpsc(gpu: &Gpu, blocks: u32, block_threads: u32, inserted: &Inserted) -> Tpsc {
    let costs = gpu.spill_costs();
    let threads = f64::from(blocks) * f64::from(block_threads);
    let most = f64::from(gpu.arch.threads.warps * WARP_SIZE);
    Tpsc {
        tlp_gain: 1.0 - threads / (threads + most),
        spill_cost: inserted.local * f64::from(costs.local.value)
            + inserted.shared * f64::from(costs.shared.value)
            + inserted.others,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpwright_target::lookup;

    #[test]
    fn parallelism_has_diminishing_returns() {
        let gpu = lookup("h200").unwrap();
        let spills = Inserted {
            local: 10.0,
            ..Inserted::default()
        };
        let at = |blocks| tpsc(&gpu, blocks, 256, &spills).value();
        assert!(at(1) - at(2) > at(7) - at(8) && at(7) > at(8));
        assert_eq!(tpsc(&gpu, 8, 256, &spills).tlp_gain, 0.5);
    }

    #[test]
    fn shared_memory_is_cheaper_than_local() {
        let gpu = lookup("h200").unwrap();
        let local = Inserted {
            local: 10.0,
            ..Inserted::default()
        };
        let shared = Inserted {
            shared: 10.0,
            ..Inserted::default()
        };
        let of = |i| tpsc(&gpu, 4, 256, i);
        assert!(of(&shared).value() < of(&local).value());
    }

    #[test]
    fn among_points_without_spills_more_threads_win() {
        let gpu = lookup("h200").unwrap();
        let of = |blocks| tpsc(&gpu, blocks, 256, &Inserted::default());
        assert_eq!(of(3).value(), 0.0);
        assert!(of(4).compare(&of(3)).is_lt());
    }
}
