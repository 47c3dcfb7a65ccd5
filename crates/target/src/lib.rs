//! Facts about GPUs (tables with sources) and the occupancy calculator.
//!
//! No number about a GPU stands anywhere else in Warpwright, and every number here names its source
//! and how sure it is ([`Fact`], [`Provenance`]). `docs/targets.md` tells how the tables are organised
//! and how to add a row.
//!
//! ```
//! use warpwright_target::{Resources, lookup, occupancy};
//!
//! let gpu = lookup("h200")?;
//! let kernel = Resources::new(128, 256);
//! assert_eq!(occupancy(&gpu, &kernel)?.blocks, 2);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod arch;
mod board;
mod distances;
mod edited;
mod fact;
mod gpu;
mod limits;
mod machine_code;
mod occupancy;
mod resources;
mod rows;
mod spills;
mod staircase;
mod time;
mod units;

pub use arch::{
    ACCESS_WINDOW_BYTES, Architecture, BLOCK_DIMENSIONS, BelowNeed, CONSTANT_BYTES,
    GRID_DIMENSIONS, LINE_BYTES, LOCAL_MEMORY_PER_THREAD, Latency, MOST_SHARED_PER_BLOCK,
    PAGE_BYTES, PITCH_BYTES, REGISTERS_PER_THREAD, RESIDENT_THREADS, RegisterAllocation,
    RegisterFile, SECTOR_BYTES, SHARED_PER_BLOCK, STACK_PER_THREAD, SharedMemory,
    THREADS_PER_BLOCK, ThreadLimits, Throughput, WARP_SIZE,
};
pub use board::Board;
pub use distances::{
    IssueDistance, OperationDistance, UnitOrder, cycles_behind_barrier, cycles_between_barriers,
    generation, issue_distances, operation_distances, unit_orders,
};
pub use edited::{EditedCode, ran_right};
pub use fact::{Confidence, Fact, Provenance};
pub use gpu::{Gpu, UnknownGpu, Variant, architectures, boards, lookup};
pub use limits::{BlockLimits, Limiter, Limiters};
pub use machine_code::{MachineCode, machine_code, runs_on};
pub use occupancy::{LaunchError, Occupancy, occupancy, occupancy_with};
pub use resources::{Carveout, Options, Resources};
pub use spills::SpillCosts;
pub use staircase::{
    Stair, desired_registers, most_shared_memory, registers_for_one_more_block, registers_of_bound,
    staircase,
};
pub use time::{Behaviour, CACHE_OVER_MEMORY, NORM, Rates, joined};
pub use units::{IssueUnit, IssueUnits, Queue, TIMED_ARCHITECTURES, Unit};
