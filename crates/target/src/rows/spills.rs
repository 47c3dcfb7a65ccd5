//! Costs of spill slots by architecture, as `bench/micro/rows.sh` prints them from a run on the
//! hardware. An architecture that is not here takes the load latencies of its row.

use crate::spills::SpillCosts;

pub(crate) const SPILLS: &[(u32, SpillCosts)] = &[];
