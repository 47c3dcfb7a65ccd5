//! Where each offset of the old code is in the new code.

use crate::elf::kernel::INSTRUCTION;

/// The way from old to new offsets, in bytes from the start of the section.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moves {
    /// New offset of each old instruction; `None` if it was deleted.
    pub(super) places: Vec<Option<u64>>,
    /// New offset at which a jump to each old instruction lands; one more for the end.
    pub(super) starts: Vec<u64>,
}

impl Moves {
    /// New offset of the instruction that was at byte `old` (or of a byte within it). `None` if it
    /// was deleted or never existed.
    pub fn instruction(&self, old: u64) -> Option<u64> {
        let place = self.places.get(index(old)?).copied().flatten()?;
        Some(place + old % INSTRUCTION as u64)
    }

    /// New offset of the place between instructions that was at byte `old`, up to the end: before
    /// what was inserted before the instruction there.
    pub fn boundary(&self, old: u64) -> Option<u64> {
        if !old.is_multiple_of(INSTRUCTION as u64) {
            return self.instruction(old);
        }
        self.starts.get(index(old)?).copied()
    }

    /// New offset of the place behind the instruction before byte `old`: where a call returns to.
    pub fn behind(&self, old: u64) -> Option<u64> {
        let size = INSTRUCTION as u64;
        Some(self.instruction(old.checked_sub(size)?)? + size)
    }

    /// New size of the stretch of `size` bytes from `start` on.
    pub(super) fn stretch(&self, start: u64, size: u64) -> Option<u64> {
        let end = self.boundary(start.checked_add(size)?)?;
        end.checked_sub(self.boundary(start)?)
    }
}

fn index(old: u64) -> Option<usize> {
    usize::try_from(old / INSTRUCTION as u64).ok()
}
