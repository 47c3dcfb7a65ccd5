//! `spill-to-shared`: spill slots of a finished kernel move from local to shared memory.
//!
//! Goal: every `STL`/`LDL` that is compiler spill code becomes `STS`/`LDS` in shared memory that
//! the occupancy leaves free. Paper: RegDem, sections 3.1 and 3.2. Departures: the paper demotes
//! registers of a kernel that does not spill; here ptxas has spilled under a limit, with its own
//! choice, placement and scheduling of the spill code, and only where the slots live changes. So
//! there is no value register, no new scoreboard, no compaction. The stack pointer's register
//! holds the thread's linear index, which scaled addresses make serve all widths; the paper adds a
//! register for the address. Where some slots stay behind, the index takes a register that the kernel
//! does not use.
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
use crate::roles::{File, Roles};
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

/// A slot and where thread 0 finds it: bytes from the start of the block's shared memory.
pub type Move<'a> = (&'a Slot, u32);

/// The register that holds the thread's linear index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Index {
    /// The stack pointer's: nothing stays in the frame.
    StackPointer,
    /// One that the kernel does not use, because the frame remains.
    Register(u8),
}

impl Index {
    /// The first register that no instruction names, and that the code at the entry leaves alone;
    /// `None` where all are taken or an instruction is not known.
    pub fn free(code: &[Instruction]) -> Option<Index> {
        let mut first = entry::REGISTERS as u16;
        for &inst in code.iter().filter(|inst| !word::is_never_executed(**inst)) {
            let roles = Roles::of(inst)?;
            let general = roles.spans().iter().filter(|span| span.file == File::Gpr);
            first = general.fold(first, |first, span| first.max(span.registers().end));
        }
        u8::try_from(first)
            .ok()
            .filter(|&register| register < ZERO_REGISTER)
            .map(Index::Register)
    }
}

/// RZ, which reads as zero.
const ZERO_REGISTER: u8 = 255;

/// The edit that moves slots of `frame`. With [`Index::StackPointer`] these must be all of them.
pub fn move_slots(
    code: &[Instruction],
    frame: &Frame,
    moves: &[Move],
    index: Index,
    shape: Shape,
) -> Edit {
    let mut edit = Edit::new();
    let register = match index {
        Index::StackPointer => {
            for at in [frame.load, frame.adjust] {
                edit.replace(at, word::nothing_instead_of(code[at]));
            }
            STACK
        }
        Index::Register(register) => register,
    };
    for (slot, start) in moves {
        for access in &slot.accesses {
            let place = Place {
                offset: start + access.offset - slot.offset,
                scale: slot.bytes,
            };
            edit.replace(access.at, word::to_shared(code[access.at], register, place));
        }
    }
    let sm = code.first().map_or(0, |inst| inst.sm());
    edit.insert_before(0, entry::code(sm, register, shape));
    edit
}
