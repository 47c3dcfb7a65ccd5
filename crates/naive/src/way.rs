//! A way to compute the points: one of each family. Its text is that of its pass (`warpwright-pass`).

use crate::across::{self, Across};
use crate::emit::{self, Generated};
use crate::explain;
use crate::fours::{self, Fours};
use crate::ir::Kernel;
use crate::prefix::{self, Prefix};
use crate::schedule::Schedule;
use crate::team::{self, Team};
use crate::totals::{self, Totals};

/// A way to compute the points.
#[derive(Clone, Debug, PartialEq)]
pub enum Way {
    /// Tiles of points, operands in shared memory.
    Tiles(Schedule),
    /// The turns of a loop over a team of threads.
    Team(Team),
    /// Squares that are turned in shared memory.
    Across(Across),
    /// Runs of neighbours, 16 bytes at a time.
    Fours(Fours),
    /// Prefixes: what lies in front of a block is added up once.
    Prefix(Prefix),
    /// What is counted atomically, added up in a block before.
    Totals(Totals),
}

impl Way {
    /// Its kernels. `shared` is how many bytes of shared memory a block may have.
    ///
    /// # Errors
    /// It is not one for this kernel: why not.
    pub fn kernels(&self, kernel: &Kernel, shared: u32) -> Result<Generated, Unfit> {
        let counts = !kernel.atomics().is_empty();
        if counts && !matches!(self, Way::Totals(_)) {
            return Err(Unfit::Atomic);
        }
        if kernel.is_open() && !matches!(self, Way::Tiles(_)) {
            return Err(Unfit::Open);
        }
        Ok(match self {
            Way::Tiles(of) => emit::generate(kernel, of, shared)?,
            Way::Team(of) => team::generate(kernel, of)?,
            Way::Across(of) => across::generate(kernel, of)?,
            Way::Fours(of) => fours::generate(kernel, of)?,
            Way::Prefix(of) => prefix::generate(kernel, of)?,
            Way::Totals(of) => totals::generate(kernel, of)?,
        })
    }

    /// Its kernels; none where it is not one for this kernel.
    pub fn generate(&self, kernel: &Kernel, shared: u32) -> Option<Generated> {
        self.kernels(kernel, shared).ok()
    }

    /// What is done, a sentence a step.
    pub fn steps(&self, kernel: &Kernel) -> Vec<String> {
        match self {
            Way::Tiles(of) => explain::steps(kernel, of),
            _ => self.generate(kernel, 0).map_or(Vec::new(), |g| g.notes),
        }
    }
}

/// Why a way is not one for a kernel.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// Of tiles.
    #[error(transparent)]
    Tiles(#[from] emit::Unfit),
    /// Of a team.
    #[error(transparent)]
    Team(#[from] team::Unfit),
    /// Of squares.
    #[error(transparent)]
    Across(#[from] across::Unfit),
    /// Of runs of four.
    #[error(transparent)]
    Fours(#[from] fours::Unfit),
    /// Of prefixes.
    #[error(transparent)]
    Prefix(#[from] prefix::Unfit),
    /// Of totals.
    #[error(transparent)]
    Totals(#[from] totals::Unfit),
    /// It counts atomically, which `totals` alone is for.
    #[error("the kernel has atomic operations")]
    Atomic,
    /// It has a loop of which only its tests tell how often it turns.
    #[error("how many turns a loop makes is not known")]
    Open,
}
