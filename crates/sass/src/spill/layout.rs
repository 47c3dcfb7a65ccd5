//! Where the slots of all threads lie in the block's shared memory.
//!
//! RegDem, section 3.2, equation 1: slot-major, so that neighbouring threads own neighbouring words
//! and no access has a bank conflict. Departure: slots of 64 and 128 bits stay whole, each thread's
//! part as wide as the slot; the paper cuts them into words. The wider slots come first, which keeps
//! every one aligned whatever the number of threads.

use super::frame::Slot;

/// The largest alignment that a slot needs.
const ALIGN: u32 = 16;

/// The offsets of some slots for all threads of a block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    /// For each slot, in the order given, where thread 0 finds it: bytes from the start of the
    /// block's shared memory.
    pub offsets: Vec<u32>,
    /// End of the last slot, in bytes from the start of the block's shared memory.
    pub end: u32,
}

impl Layout {
    /// Lays `slots` out for `threads` threads behind the first `used` bytes. `None` if that needs
    /// more than an address has bits for.
    pub fn new(slots: &[&Slot], threads: u32, used: u32) -> Option<Layout> {
        let mut offsets = vec![0; slots.len()];
        let mut end = used.checked_next_multiple_of(ALIGN)?;
        for bytes in [16, 8, 4] {
            for (offset, _) in offsets
                .iter_mut()
                .zip(slots)
                .filter(|(_, s)| s.bytes == bytes)
            {
                *offset = end;
                end = end.checked_add(threads.checked_mul(bytes)?)?;
            }
        }
        // The offset of an access has 24 bits and a sign.
        (end < 1 << 23).then_some(Layout { offsets, end })
    }
}
