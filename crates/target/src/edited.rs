//! What was tried on hardware with machine code that was changed after ptxas made it.

use crate::fact::{Confidence, Provenance};

/// What an edit relies on that nobody documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EditedCode {
    /// Code that was put in keeps values in shared memory of its own.
    OwnSharedMemory,
    /// A section of static shared memory larger than a launch gets without opting in, up to what a block may have.
    LargeSharedSection,
    /// A register count above what the code needs.
    RegisterCount,
    /// Control fields that are not ptxas's.
    ControlFields,
}

/// Where it ran with the right results: architectures, and the source.
const RUNS: [(EditedCode, &[u32], Provenance); 4] = [
    (
        EditedCode::OwnSharedMemory,
        &[90],
        measured("an H200; docs/spill-to-shared.md"),
    ),
    (
        EditedCode::LargeSharedSection,
        &[90],
        measured("an H200, up to 227 KB; docs/spill-to-shared.md"),
    ),
    (
        EditedCode::RegisterCount,
        &[90],
        measured("an H200; docs/regs.md, 'Throttling'"),
    ),
    (
        EditedCode::ControlFields,
        &[90],
        measured("an H200; docs/scheduling.md"),
    ),
];

const fn measured(source: &'static str) -> Provenance {
    Provenance {
        confidence: Confidence::Measured,
        source,
    }
}

/// Has code that was edited so run on architecture `sm`, with the right results?
pub fn ran_right(what: EditedCode, sm: u32) -> bool {
    let row = RUNS.iter().find(|row| row.0 == what);
    row.is_some_and(|row| row.1.contains(&sm))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_assumed_of_an_architecture_that_was_not_tried() {
        assert!(ran_right(EditedCode::OwnSharedMemory, 90));
        for (what, ..) in RUNS {
            assert!(!ran_right(what, 100), "{what:?}");
        }
    }
}
