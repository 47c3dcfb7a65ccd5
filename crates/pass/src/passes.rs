//! All passes, by type and by name.

pub use crate::demote::{Again, Target};
pub use crate::ptx::allocate::SlotSpace;
pub use crate::ptx::cache::{LoadPolicy, Prefetch, StorePolicy};
pub use crate::ptx::limits::{has_bounds, ignored_bounds};
pub use crate::ptx::promote::Arrays;
pub use crate::ptx::specialize::Values;
pub use crate::ptx::unroll::Tests;
pub use crate::schedule::{ScheduleBy, ScheduleMiss};
pub use crate::throttle::ThrottleBy;

use crate::pass::Registered;

macro_rules! registry {
    ($($pass:ident in $($module:ident)::+ $(as $own:ident)?;)*) => {
        $(pub use $($module::)+$pass $(as $own)?;)*

        /// The registry: the passes in the order of their names.
        pub static PASSES: &[Registered] = &[$(Registered::of::<$($module::)+$pass>()),*];
    };
}

// A new pass is one file and one line here.
registry! {
    Across in warpwright_naive::across;
    Allocate in crate::ptx::allocate;
    Boxes in warpwright_stencil::versions;
    Cache in crate::ptx::cache;
    Canonical in crate::ptx::print;
    Compact in crate::demote;
    DeadCode in crate::ptx::dead_code;
    DeadInstructions in crate::dead_instructions;
    Demote in crate::demote;
    Fours in warpwright_naive::fours;
    LaunchBounds in crate::source::launch_bounds;
    Lower in crate::source::stencil;
    MaxNReg in crate::ptx::limits;
    MaxNTid in crate::ptx::maxntid;
    MinNCtaPerSm in crate::ptx::limits;
    Prefix in warpwright_naive::prefix;
    PressureNotes in crate::ptx::pressure_notes;
    Print in crate::ptx::print;
    Promote in crate::ptx::promote;
    Reduce in crate::ptx::reduce;
    Remat in crate::ptx::remat;
    Rename in crate::rename;
    Reshape in crate::ptx::reshape;
    Schedule in crate::schedule;
    SmemSpilling in crate::ptx::smem_spilling;
    Specialize in crate::ptx::specialize;
    SpillShared in crate::ptx::spill_shared;
    SpillToShared in crate::spill_to_shared;
    Plan in warpwright_stencil::stream as Stream;
    Team in warpwright_naive::team;
    Throttle in crate::throttle;
    Schedule in warpwright_naive::schedule as Tiles;
    Totals in warpwright_naive::totals;
    Unroll in crate::ptx::unroll;
    UsageLevel in crate::usage_level;
    Vectorize in crate::ptx::vectorize;
}

/// The pass of this name.
pub fn find(name: &str) -> Option<&'static Registered> {
    PASSES.iter().find(|pass| pass.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_sorted_and_unique() {
        assert!(PASSES.is_sorted_by(|a, b| a.name < b.name));
    }
}
