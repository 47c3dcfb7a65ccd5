//! How one sample of a kernel's time is taken.
//!
//! A sample is: restore what launches change; read a buffer larger than the L2 cache, so that no
//! data of the kernel is cached; launch once untimed on a set of buffers of its own, so that the
//! code is cached and the device is busy; then, between two events, `batch` launches, each on
//! another set of buffers. No launch of a sample finds its data in the cache, and only short
//! kernels are batched. `docs/measuring.md` says why.

use serde::{Deserialize, Serialize};

/// Kernels shorter than this are batched: an event has a resolution of about 0.5 microseconds,
/// and a launch costs a few.
const BATCH_BELOW_NS: f64 = 50_000.0;
/// A batch should take at least this long.
const BATCH_NS: f64 = 200_000.0;
/// Longest batch: bounded by what the driver queues without blocking.
const BATCH_MAX: f64 = 64.0;
/// For kernels longer than this, loading the code once (some microseconds) is below 0.5%.
const WARM_BELOW_NS: f64 = 2_000_000.0;

/// How one sample is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// Launches between the two events.
    pub batch: u32,
    /// One more, untimed launch just before the first event.
    pub warm: bool,
}

impl Plan {
    /// Sets of buffers that a sample needs.
    pub fn sets(&self) -> u32 {
        self.batch + u32::from(self.warm)
    }

    /// A plan for kernels of which the fastest takes about `ns`, with a `footprint` in bytes per
    /// launch and `memory` bytes to spend on sets. A plan always has at least one set, also
    /// where memory does not hold it: allocating it is then what fails, and says so.
    pub fn choose(ns: f64, footprint: u64, memory: u64) -> Plan {
        let most = (memory / footprint.max(1)).clamp(1, 1 << 16) as u32;
        let wanted = if ns < BATCH_BELOW_NS {
            (BATCH_NS / ns.max(1.0)).ceil().clamp(1.0, BATCH_MAX) as u32
        } else {
            1
        };
        let warm = ns < WARM_BELOW_NS && most > 1;
        let batch = wanted.min(most - u32::from(warm)).max(1);
        Plan { batch, warm }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GB: u64 = 1 << 30;

    #[test]
    fn short_kernels_are_batched() {
        assert_eq!(
            Plan::choose(5_000.0, GB / 100, 100 * GB),
            Plan {
                batch: 40,
                warm: true
            }
        );
        assert_eq!(
            Plan::choose(500.0, 0, 100 * GB),
            Plan {
                batch: 64,
                warm: true
            }
        );
        assert_eq!(
            Plan::choose(49_000.0, GB, 100 * GB),
            Plan {
                batch: 5,
                warm: true
            }
        );
    }

    #[test]
    fn longer_kernels_are_not() {
        assert_eq!(
            Plan::choose(60_000.0, GB, 100 * GB),
            Plan {
                batch: 1,
                warm: true
            }
        );
        assert_eq!(
            Plan::choose(5e6, GB, 100 * GB),
            Plan {
                batch: 1,
                warm: false
            }
        );
    }

    #[test]
    fn memory_limits_the_sets() {
        assert_eq!(
            Plan::choose(5_000.0, GB, 10 * GB),
            Plan {
                batch: 9,
                warm: true
            }
        );
        assert_eq!(
            Plan::choose(5_000.0, 6 * GB, 10 * GB),
            Plan {
                batch: 1,
                warm: false
            }
        );
        assert_eq!(Plan::choose(5_000.0, 60 * GB, 10 * GB).sets(), 1);
    }
}
