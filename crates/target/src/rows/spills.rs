//! Costs of spill slots by architecture, as `bench/micro/rows.sh` prints them from a run on the
//! hardware. An architecture that is not here takes the load latencies of its row.

use crate::fact::{Confidence, Fact};
use crate::spills::SpillCosts;

pub(crate) const SPILLS: &[(u32, SpillCosts)] = &[(
    90,
    SpillCosts {
        local: cycles(24, "bench/micro (NVIDIA H200, 580.159.04)"),
        shared: cycles(23, "bench/micro (NVIDIA H200, 580.159.04)"),
    },
)];

const fn cycles(value: u32, source: &'static str) -> Fact<u32> {
    let confidence = Confidence::Measured;
    Fact {
        value,
        confidence,
        source,
    }
}
