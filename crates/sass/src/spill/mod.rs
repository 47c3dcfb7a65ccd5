//! `spill-to-shared`: spill slots of a finished kernel move from local to shared memory.
//!
//! Goal: every `STL`/`LDL` that is compiler spill code becomes `STS`/`LDS` in shared memory that
//! the occupancy leaves free. Paper: RegDem, sections 3.1 and 3.2. Departures: the paper demotes
//! registers of a kernel that does not spill; here ptxas has spilled under a limit, with its own
//! choice, placement and scheduling of the spill code, and only where the slots live changes. So
//! there is no value register, no compaction; a new wait only where an order of units is lost (the pass). The stack pointer's register
//! holds the thread's linear index, which scaled addresses make serve all widths; the paper adds a
//! register for the address. Where some slots stay behind, the index takes a register that the kernel
//! does not use, if that costs no resident block; else the frame's start goes into a uniform register,
//! of which every warp has all, and the index into R1 all the same.
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
pub(crate) mod word;

pub use entry::Shape;
pub use frame::{Access, Frame, Slot};
pub use layout::Layout;

use crate::edit::Edit;
use crate::function::{Code, value_of};
use crate::inst::Instruction;
use warpwright_flow::{Cfg, Inst, Liveness};

use crate::roles::{File, Role, Roles, Span};
use word::{Place, STACK, ZERO_REGISTER};

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
    /// A barrier of clusters: ptxas puts a block's rank into shared addresses, ours go without.
    #[error("instruction {at} waits for other blocks of a cluster")]
    Cluster {
        /// Index of the instruction.
        at: usize,
    },
    /// An instruction whose registers are not known.
    #[error("instruction {at} is not known")]
    Opaque {
        /// Index of the instruction.
        at: usize,
    },
    /// An instruction whose registers are known from few sightings: a sibling's may differ.
    #[error("what {name} (instruction {at}) reads and writes was seen too rarely to be relied on")]
    Rare {
        /// Index of the instruction.
        at: usize,
        /// Its mnemonic.
        name: &'static str,
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

/// The registers that addresses are made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Index {
    /// The thread's linear index is in R1. Slots that stay behind are addressed through the uniform
    /// register, if there is one; else all slots move.
    StackPointer(Option<u8>),
    /// The index is in a register that the kernel does not use. The stack pointer stays what it is.
    Register(u8),
}

impl Index {
    /// The first register that no instruction names, and that the code at the entry leaves alone;
    /// `None` where all are taken or an instruction is not known.
    pub fn free(code: &[Instruction], scratch: Scratch) -> Option<Index> {
        let behind = scratch
            .iter()
            .map(|&register| u16::from(register) + 1)
            .max();
        let first = first_free(code, File::Gpr, behind.unwrap_or(0))?;
        u8::try_from(first)
            .ok()
            .filter(|&register| register < ZERO_REGISTER)
            .map(Index::Register)
    }

    /// R1 for the index, and for what stays in the frame the first uniform register that no instruction
    /// names: a warp has them all, whatever the kernel uses. `None` where all are taken, an
    /// instruction is not known, or a slot that stays has no such form.
    pub fn freed(code: &[Instruction], staying: &[&Slot]) -> Option<Index> {
        let first = first_free(code, File::Uniform, 0)?;
        let uniform = u8::try_from(first)
            .ok()
            .filter(|&u| u < UNIFORM_REGISTERS)?;
        let is_known = |access: &Access| {
            let moved = word::through_uniform(code[access.at], uniform);
            Roles::of(moved)
                .is_some_and(|roles| roles.uses().any(|span| span.file == File::Uniform))
        };
        let mut accesses = staying.iter().flat_map(|slot| &slot.accesses);
        let is_possible = code.first()?.sm() < FIRST_WITHOUT_ULDC && accesses.all(is_known);
        is_possible.then_some(Index::StackPointer(Some(uniform)))
    }
}

/// Registers that the code at the entry may overwrite.
pub type Scratch = [u8; entry::SCRATCH];

/// Four of the first `registers` registers that nobody reads before they are written.
pub fn scratch(code: &Code, registers: u32) -> Option<Scratch> {
    let cfg = Cfg::new(code);
    let liveness = Liveness::new(code, &cfg);
    let entry = liveness.live_in(cfg.block_of(Inst(0)));
    let is_free = |&register: &u8| {
        let value = value_of(File::Gpr, register.into());
        register != STACK && value.is_some_and(|value| !entry.contains(&value))
    };
    let own = 0..u8::try_from(registers).unwrap_or(ZERO_REGISTER);
    let free: Vec<u8> = own.filter(is_free).take(entry::SCRATCH).collect();
    free.try_into().ok()
}

/// Uniform registers of a warp, URZ left out, on every architecture before sm_100.
const UNIFORM_REGISTERS: u8 = 63;

/// From here on uniform registers are loaded from constant banks in another way.
const FIRST_WITHOUT_ULDC: u32 = 100;

/// The number after the last register of `file` that an instruction names, at least `first`.
fn first_free(code: &[Instruction], file: File, first: u16) -> Option<u16> {
    let mut executed = code.iter().filter(|inst| !word::is_never_executed(**inst));
    executed.try_fold(first, |first, &inst| {
        let roles = Roles::of(inst)?;
        let named = roles.spans().iter().filter(|span| span.file == file);
        Some(named.fold(first, |first, span| first.max(span.registers().end)))
    })
}

/// The edit that moves slots of `frame`. With [`Index::StackPointer`] and no uniform register these must
/// be all of them.
pub fn move_slots(
    code: &[Instruction],
    frame: &Frame,
    moves: &[Move],
    index: Index,
    (shape, scratch): (Shape, Scratch),
) -> Edit {
    let sm = code.first().map_or(0, |inst| inst.sm());
    let mut edit = Edit::new();
    let mut entry = Vec::new();
    let register = match index {
        Index::StackPointer(uniform) => {
            for at in [frame.load, frame.adjust] {
                edit.replace(at, word::nothing_instead_of(code[at]));
            }
            if let Some(uniform) = uniform {
                entry = entry::frame(sm, uniform, frame.bytes);
                for access in frame.slots.iter().flat_map(|slot| &slot.accesses) {
                    edit.replace(access.at, word::through_uniform(code[access.at], uniform));
                }
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
    entry.extend(entry::code(sm, register, scratch, shape));
    edit.insert_before(0, entry);
    edit
}

/// The code for the entry that leaves the thread's index in `register`.
pub fn index_code(sm: u32, register: u8, (shape, scratch): (Shape, Scratch)) -> Vec<Instruction> {
    entry::code(sm, register, scratch, shape)
}

/// The register that holds the thread's index from the entry to the end, if `code` begins with [`index_code`] for this
/// shape, behind what names no general register at most, and nothing else writes the register.
pub fn index_register(code: &[Instruction], shape: Shape) -> Option<u8> {
    let general = |inst: Instruction| {
        let spans = Roles::of(inst)?.spans().to_vec();
        Some(spans.into_iter().filter(|span| span.file == File::Gpr))
    };
    let names_one = |inst: &Instruction| general(*inst).is_none_or(|mut all| all.next().is_some());
    let (first, own) = code[code.iter().position(names_one)?..].split_first()?;
    let index = word::result(*first);
    let mut scratch = Scratch::default();
    for (scratch, inst) in scratch.iter_mut().zip(own) {
        *scratch = word::result(*inst);
    }
    let expected = entry::code(first.sm(), index, scratch, shape);
    let found = std::iter::once(first).chain(own);
    let same = expected.iter().zip(found);
    if same
        .filter(|(ours, found)| word::is_same(**ours, **found))
        .count()
        < expected.len()
    {
        return None;
    }
    let writes = |inst: &Instruction| {
        let is_def =
            |span: Span| span.role == Role::Def && span.registers().contains(&index.into());
        !word::is_never_executed(*inst) && general(*inst).is_none_or(|mut all| all.any(is_def))
    };
    let is_kept = !own[expected.len() - 1..].iter().any(writes);
    is_kept.then_some(index)
}

/// `NOP` with the waits and the stall of `inst`.
pub fn nothing_instead_of(inst: Instruction) -> Instruction {
    word::nothing_instead_of(inst)
}
