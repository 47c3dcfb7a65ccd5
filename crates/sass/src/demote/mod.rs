//! Register demotion and compaction in machine code: what they see of a function, and the words they add.
//!
//! Goal: the general registers of a kernel, as values that can move to other registers and to slots in shared
//! memory. What moves where is decided elsewhere ([`General`] is a `flow::Function`); here stands what an
//! instruction asks of its registers, and the instructions that are added. Paper: RegDem, section 3.
//!
//! Requires: all instructions known, all calls followed. Preserves: R1, which stays the stack pointer's register.
//!
//! * [`general`]: a section's general registers as webs.
//! * [`access`]: loads and stores of slots.

pub mod access;
pub mod general;

pub use access::{Access, Slot};
pub use general::{General, Operands, Refusal, Unset};
