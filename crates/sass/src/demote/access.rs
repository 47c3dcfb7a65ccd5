//! Loads and stores of slots in shared memory, as instruction words.

use crate::control::Control;
use crate::inst::Instruction;
use crate::spill::word::{self, Place};

/// Where a slot lies in the block's shared memory: the thread of index t finds it at `offset` + t · `stride`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot {
    /// Bytes from the start of the block's shared memory to thread 0's.
    pub offset: u32,
    /// 4 or 8 bytes from one thread's to the next one's.
    pub stride: u32,
}

/// An access by one thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Access {
    /// Stored, not loaded?
    pub is_store: bool,
    /// The general register, the first of a pair.
    pub data: u8,
    /// The general register with the thread's index in the block.
    pub index: u8,
    /// 4 or 8 bytes.
    pub bytes: u32,
    /// Where.
    pub slot: Slot,
}

impl Access {
    /// The instruction. It neither waits nor tells when it is done: [`crate::hazards::settle`] adds that.
    pub fn instruction(self, sm: u32) -> Instruction {
        let place = Place {
            offset: self.slot.offset,
            scale: self.slot.stride,
        };
        word::shared(
            sm,
            (self.is_store, self.data, self.bytes),
            self.index,
            place,
            fresh(),
        )
    }
}

/// The control field of an instruction that is added.
pub fn fresh() -> Control {
    Control {
        stall: 1,
        yield_bit: true,
        ..Control::default()
    }
}
