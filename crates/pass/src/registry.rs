//! Every pass, by name.

use crate::pass::Registered;
use crate::passes::*;

/// The registry. A new pass is one file and one line here.
pub static PASSES: &[Registered] = &[
    Registered::of::<Across>(),
    Registered::of::<Allocate>(),
    Registered::of::<Boxes>(),
    Registered::of::<Cache>(),
    Registered::of::<Canonical>(),
    Registered::of::<Compact>(),
    Registered::of::<DeadCode>(),
    Registered::of::<DeadInstructions>(),
    Registered::of::<Demote>(),
    Registered::of::<Fours>(),
    Registered::of::<LaunchBounds>(),
    Registered::of::<Lower>(),
    Registered::of::<MaxNReg>(),
    Registered::of::<MaxNTid>(),
    Registered::of::<MinNCtaPerSm>(),
    Registered::of::<Prefix>(),
    Registered::of::<PressureNotes>(),
    Registered::of::<Print>(),
    Registered::of::<Promote>(),
    Registered::of::<Reduce>(),
    Registered::of::<Remat>(),
    Registered::of::<Rename>(),
    Registered::of::<Reshape>(),
    Registered::of::<Schedule>(),
    Registered::of::<SmemSpilling>(),
    Registered::of::<Specialize>(),
    Registered::of::<SpillShared>(),
    Registered::of::<SpillToShared>(),
    Registered::of::<Stream>(),
    Registered::of::<Team>(),
    Registered::of::<Throttle>(),
    Registered::of::<Tiles>(),
    Registered::of::<Totals>(),
    Registered::of::<Unroll>(),
    Registered::of::<UsageLevel>(),
    Registered::of::<Vectorize>(),
];

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
