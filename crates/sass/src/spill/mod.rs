//! `spill-to-shared`: spill slots of a finished kernel move from local to shared memory.
//!
//! Goal: every `STL`/`LDL` that is compiler spill code becomes `STS`/`LDS` in shared memory that
//! the occupancy leaves free. Paper: RegDem, sections 3.1 and 3.2. Departures: the paper demotes
//! registers of a kernel that does not spill; here ptxas has spilled under a limit, with its own
//! choice, placement and scheduling of the spill code, and only where the slots live changes. So
//! there is no value register, no new scoreboard, no compaction. The stack pointer's register
//! holds the thread's linear index, which scaled addresses make serve all widths; the paper adds a
//! register for the address.
//!
//! Requires: a frame that [`Frame::find`] understands, known dynamic shared memory, and no launch
//! with more threads than the layout has room for.
//! Preserves: every instruction but the accesses and the set-up of the stack pointer, with its
//! control field; the kernel's own shared memory.
//!
//! * [`frame`]: which bytes of the frame are slots.
//! * [`layout`]: where the slots of all threads go.
//! * [`entry`]: the code that computes the thread's index.
//! * [`word`]: the few instruction words involved.

pub mod entry;
pub mod frame;
pub mod layout;
mod word;

pub use entry::Shape;
pub use frame::{Access, Frame, Slot};
pub use layout::Layout;

use crate::edit::Edit;
use crate::inst::Instruction;
use word::{Place, STACK};

/// Why a kernel's spill code stays where it is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Nothing to do.
    #[error("it does not spill to local memory")]
    NoSpills,
    /// The stack pointer is not set up in the way that is known.
    #[error("its stack pointer is not set up in the usual way")]
    NoFrame,
    /// R1 is used otherwise than as the base of spill code.
    #[error(
        "instruction {at} uses the stack pointer: the kernel has local arrays or calls functions"
    )]
    FrameAddress {
        /// Index of the instruction.
        at: usize,
    },
    /// Local memory is accessed through another register.
    #[error("instruction {at} accesses local memory through a computed address")]
    LocalArray {
        /// Index of the instruction.
        at: usize,
    },
    /// An access to local memory in a form that is not known.
    #[error("instruction {at} accesses local memory in a form that is not understood")]
    UnknownForm {
        /// Index of the instruction.
        at: usize,
    },
    /// A wait that counts operations in the order in which they end.
    #[error("instruction {at} waits for scoreboards by count")]
    CountedWait {
        /// Index of the instruction.
        at: usize,
    },
    /// An instruction whose registers are not known.
    #[error("instruction {at} is not known")]
    Opaque {
        /// Index of the instruction.
        at: usize,
    },
    /// An access outside the frame.
    #[error("instruction {at} accesses local memory outside the frame")]
    OutsideFrame {
        /// Index of the instruction.
        at: usize,
    },
}

/// The edit that moves all slots of `frame` to where `layout` has them.
pub fn move_all(code: &[Instruction], frame: &Frame, layout: &Layout, shape: Shape) -> Edit {
    let mut edit = Edit::new();
    for at in [frame.load, frame.adjust] {
        edit.replace(at, word::nothing_instead_of(code[at]));
    }
    for (slot, &start) in frame.slots.iter().zip(&layout.offsets) {
        for access in &slot.accesses {
            let place = Place {
                offset: start + access.offset - slot.offset,
                scale: slot.bytes,
            };
            edit.replace(access.at, word::to_shared(code[access.at], STACK, place));
        }
    }
    let sm = code.first().map_or(0, |inst| inst.sm());
    edit.insert_before(0, entry::code(sm, STACK, shape));
    edit
}
