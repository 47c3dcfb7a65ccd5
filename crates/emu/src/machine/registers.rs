//! The registers of a block that `setmaxnreg` moves between its warps.
//!
//! At entry every warp holds what the kernel is launched with, and the pool is empty. `.dec` gives registers to the pool,
//! `.inc` waits until the pool holds what it needs (PTX ISA, `setmaxnreg`). A warp that exits keeps its registers: the
//! ISA lets `.dec` alone release them.

use super::access::Trouble;
use super::block::Block;
use super::warp::{Next, Wait, Warp};
use crate::fault::FaultKind;
use crate::lanes::Mask;
use crate::program::SetRegisters;

/// The pool of one block. Counts are registers of a thread, as `setmaxnreg` names them.
pub(crate) struct Pool {
    /// What each warp holds.
    held: Vec<u32>,
    /// What nobody holds.
    free: u32,
}

impl Pool {
    /// All warps hold `each`.
    pub fn new(warps: usize, each: u32) -> Self {
        Pool {
            held: vec![each; warps],
            free: 0,
        }
    }

    fn held(&self, warp: usize) -> u32 {
        self.held.get(warp).copied().unwrap_or(0)
    }

    /// What a warp needs to hold so many.
    fn need(&self, warp: usize, count: u32) -> u32 {
        count.saturating_sub(self.held(warp))
    }

    /// Moves registers between a warp and the pool, if that has enough.
    fn set(&mut self, warp: usize, count: u32) -> bool {
        let both = self.free.saturating_add(self.held(warp));
        let enough = count <= both;
        if let Some(held) = self.held.get_mut(warp).filter(|_| enough) {
            (*held, self.free) = (count, both - count);
        }
        enough
    }

    /// Why a warp waits.
    pub fn missing(&self, warp: usize, count: u32) -> String {
        let need = self.need(warp, count);
        format!(
            "; warp {warp} needs {need} registers more for each thread, and {} are free",
            self.free
        )
    }

    /// Lets strands try again for which there are enough registers now. Does any?
    pub fn release(block: &Block<'_>, warps: &mut [Warp]) -> bool {
        let Some(pool) = &block.pool else {
            return false;
        };
        let mut any = false;
        for warp in warps {
            for strand in &mut warp.strands {
                if let Wait::Registers(count) = strand.wait
                    && pool.need(warp.index, count) <= pool.free
                {
                    strand.wait = Wait::Ready;
                    any = true;
                }
            }
        }
        any
    }
}

impl Warp {
    /// `setmaxnreg`
    pub(super) fn set_registers(
        &mut self,
        block: &mut Block<'_>,
        current: usize,
        mask: Mask,
        set: SetRegisters,
    ) -> Result<Next, Box<Trouble>> {
        let Some(pool) = &mut block.pool else {
            return Ok(Next::Fall);
        };
        let held = pool.held(self.index);
        if set.count != held && (set.count > held) != set.grows {
            let (count, way) = (set.count, if set.grows { "up" } else { "down" });
            let message = format!("{way} to {count} registers from {held}");
            return Err(Trouble::new(
                FaultKind::BadOperand,
                Warp::first(mask),
                message,
            ));
        }
        if pool.set(self.index, set.count) {
            return Ok(Next::Fall);
        }
        // Lanes that the guard keeps out go on.
        let strand = &self.strands[current];
        let (out, next) = (strand.mask & !mask, strand.pc + 1);
        if out != 0 {
            self.split(current, out, next, Wait::Ready);
        }
        if let Some(strand) = self.strands.get_mut(current) {
            strand.wait = Wait::Registers(set.count);
        }
        Ok(Next::Reschedule)
    }
}
