//! What is chosen for a stencil, and why a stencil is refused.

use std::fmt;

use serde::{Deserialize, Serialize};

/// One way to compute a stencil: everything the search decides.
///
/// The outermost dimension is streamed: a block of threads keeps a tile of the other dimensions and
/// walks along it, one plane after the other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// Threads of a block along the contiguous dimension and the one before it.
    pub block: [u32; 2],
    /// Points of a thread along the same dimensions: neighbours, so that they share what they read.
    pub points: [u32; 2],
    /// Planes that are on their way to shared memory while one is computed; 1 or more.
    pub ahead: u32,
    /// Planes that a block computes before it ends.
    pub chunk: u32,
    /// Unrolling of the loop over planes.
    pub unroll: u32,
    /// Sums are reassociated, which the input has to permit: planes add to the outputs that they
    /// belong to as they come. Else every operation is as written.
    pub reassociate: bool,
    /// Values that neighbours need and that cost more than a read are computed once and given to
    /// the neighbours through shared memory.
    pub stage: bool,
    /// Values are read again where they are needed again, and not kept in registers: elements of
    /// shared memory after the staged values are written, and elements of short arrays.
    pub reload: bool,
    /// Blocks on a multiprocessor that the compiler has to make room for, at least.
    pub min_blocks: u32,
}

impl Plan {
    /// Threads of a block.
    pub fn threads(&self) -> u32 {
        self.block[0].saturating_mul(self.block[1])
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Plan {
            block,
            points,
            ahead,
            chunk,
            unroll,
            reassociate,
            stage,
            reload,
            min_blocks,
        } = self;
        write!(
            f,
            "block {}x{} points {}x{} ahead {ahead} chunk {chunk} unroll {unroll} blocks {min_blocks}",
            block[0], block[1], points[0], points[1]
        )?;
        if *reassociate {
            f.write_str(" retimed")?;
        }
        if *stage {
            f.write_str(" staged")?;
        }
        if *reload {
            f.write_str(" reloaded")?;
        }
        Ok(())
    }
}

/// Why no kernel is generated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Refusal(String);

impl Refusal {
    pub(super) fn new(reason: impl Into<String>) -> Self {
        Refusal(reason.into())
    }
}
