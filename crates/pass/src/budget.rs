//! Budgets that are counted in work, so that the same input gives the same result on every machine.

/// Work that may still be done. The unit is the nominal microsecond: what a core of a 2020s server takes
/// for it, roughly (docs/pipeline.md says how the figures were found).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    left: u64,
}

/// What proofs of PTX take: nominal microseconds per instruction of both versions.
pub(crate) const PROOF_OF_PTX: u64 = 30;
/// The same for machine code.
pub(crate) const PROOF_OF_MACHINE_CODE: u64 = 120;

impl Budget {
    /// What is done in so many nominal seconds.
    pub fn seconds(seconds: f64) -> Budget {
        Budget {
            left: (seconds.max(0.0) * 1e6) as u64,
        }
    }

    /// So many nominal microseconds.
    pub fn micros(micros: u64) -> Budget {
        Budget { left: micros }
    }

    /// Takes work out of it; `false`, and nothing taken, where it does not suffice.
    pub fn spend(&mut self, work: u64) -> bool {
        match self.left.checked_sub(work) {
            Some(left) => {
                self.left = left;
                true
            }
            None => false,
        }
    }

    /// Nominal microseconds that are left.
    pub fn left(self) -> u64 {
        self.left
    }
}
