//! The PTX emulator: the oracle.
//!
//! [`Emulator::new`] decodes a kernel of a parsed module into a [`Program`], or lists what it does
//! not support; [`Program::run`] executes a launch of it. What a program does wrong is a result
//! ([`Outcome::Faulted`]); [`EmuError`] is for launches that do not fit and for the emulator's own
//! bugs. `docs/emulator.md` describes the machine and where it is stricter than hardware.

pub mod arith;
mod cfg;
mod decode;
mod fault;
mod lanes;
mod machine;
mod matrix;
mod memory;
mod outcome;
mod pattern;
mod program;
mod race;
pub mod symbolic;
mod texture;

pub use decode::Emulator;
pub use fault::{DecodeError, EmuError, Fault, FaultKind, Place, Unsupported};
pub use machine::{Device, Extents, Parameter, Spent, Variable, launches_begun};
pub use outcome::{Approximation, InstructionCount, Options, Outcome, Results, Statistics};
pub use pattern::{Contention, Pattern, Patterns};
pub use program::Program;
pub use texture::{Addressing, Channel, Texture};
