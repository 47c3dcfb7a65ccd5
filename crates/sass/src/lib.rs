//! SASS: the cubin container, and what the models need to know of the machine code.
//!
//! This room is young: it takes cubins apart and puts them together again without loss, splits
//! kernels into 128-bit instructions and names the resource each one occupies.
//!
//! * [`elf`]: the container, lossless, and what can be changed in it.
//! * [`fatbin`]: cubins inside fat binaries, host objects and executables.
//! * [`demote`]: general registers as values that can move, and what demotion adds.
//! * [`edit`]: inserting and deleting instructions, with everything that holds an offset.
//! * [`branch`]: the decoder of branches: where an instruction names a place in the code.
//! * [`cubin`]: a view of the container for reading: the per-kernel facts that `driver` and `model` need.
//! * [`control`]: the control field (stall, yield, barriers, wait mask, reuse), get and set.
//! * [`inst`]: the fields of one instruction that are known for sm_75 and later.
//! * [`ir`]: a function that can be put into another order.
//! * [`isa`]: decoding and encoding by tables, operands, text of an operation.
//! * [`issue`]: control fields, made anew.
//! * [`operation`]: operations and opcodes as types.
//! * [`roundtrip`]: is a cubin read and written without loss?
//! * [`schedule`]: another order for the instructions of a block.
//! * [`text`]: the text form of whole cubins, which parses back.
//! * [`function`]: a code section as the analyses of `flow` see it.
//! * [`roles`]: which registers each instruction reads and writes.
//! * [`hazards`]: is every register access protected by stall counts and scoreboards?
//! * [`spill`]: spill slots, moved from local to shared memory.
//! * [`profile`]: loop-weighted counts and a single-warp timing walk, the input of `model`.
#![warn(missing_docs)]

pub mod branch;
pub mod control;
pub mod cubin;
pub mod demote;
pub mod edit;
pub mod elf;
pub mod fatbin;
pub mod function;
pub mod hazards;
pub mod inst;
pub mod ir;
pub mod isa;
pub mod issue;
pub mod lines;
pub mod operation;
pub mod profile;
pub mod roles;
pub mod roundtrip;
pub mod schedule;
pub mod spill;
mod straight;
pub mod text;

pub use control::{Control, ControlRange};
pub use cubin::{Cubin, Kernel, Parsed};
pub use edit::Edit;
pub use elf::kernel::BranchTargets;
pub use elf::{Elf, ElfError};
pub use inst::Instruction;
pub use operation::{Opcode, OperandForm, Operation};
pub use profile::{Latencies, Profile, Stalls, Step, steps};
pub use straight::HeldConstants;
pub use warpwright_target::Unit;
