//! What one access to a spill slot costs: the two costs of CRAT's TPSC (section 6).

use serde::Serialize;

use crate::fact::{Confidence, Fact};
use crate::gpu::Gpu;
use crate::rows;

/// Cycles by which one access to a spill slot delays its warp.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct SpillCosts {
    /// Load or store of local memory, the slots in the level-1 cache.
    pub local: Fact<u32>,
    /// Load or store of shared memory without bank conflicts.
    pub shared: Fact<u32>,
}

/// What stands in where an architecture's row has no latency.
const UNKNOWN: u32 = 30;

impl Gpu {
    /// The costs of spill slots: as `bench/micro` measured them on this architecture, else the load
    /// latencies of its row, marked as estimates.
    pub fn spill_costs(&self) -> SpillCosts {
        let measured = rows::SPILLS.iter().find(|(sm, _)| *sm == self.arch.sm);
        if let Some((_, costs)) = measured {
            return *costs;
        }
        let from = |latency: Option<Fact<u32>>| Fact {
            value: latency.map_or(UNKNOWN, |f| f.value),
            confidence: Confidence::Estimated,
            source: "the load latency in the architecture's row",
        };
        SpillCosts {
            local: from(self.arch.latency.local()),
            shared: from(self.arch.latency.shared),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{architectures, lookup};

    #[test]
    fn every_architecture_has_costs() {
        for arch in architectures() {
            let costs = lookup(&arch.sm.to_string()).unwrap().spill_costs();
            assert!(
                costs.local.value > 0 && costs.shared.value > 0,
                "sm_{}",
                arch.sm
            );
        }
    }
}
