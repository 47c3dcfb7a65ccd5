//! The emulator on terms: a launch whose data are symbols.
//!
//! Addresses, trip counts and whatever else does not come from the inputs' data are known bits and run as they do on
//! numbers; data are terms. Branches on data run both sides and join where both meet again. So every element that a
//! launch writes is a graph over the elements that it was given: two kernels that write the same graphs compute the
//! same values for every input, at this launch.
//!
//! What it does not do it refuses by name ([`Refusal`]); what the kernel does wrong is a [`Fault`].

mod alike;
mod collective;
mod fork;
mod form;
mod machine;
mod memory;
mod pointers;
pub mod term;
mod warp;

pub use alike::{Bases, Digest, Footprint, Met, Place, Visited};
pub use machine::{Fault, FaultClass, Note, Options, Refusal, Report, Stop};
pub use memory::{Buffer, Clash, Content};
pub use pointers::Shown;
