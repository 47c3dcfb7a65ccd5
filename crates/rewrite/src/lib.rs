//! A kernel and its rewrite, each at launches of its own: does the second compute what the first does?
//!
//! Both run on terms ([`warpwright_emu::symbolic`]) with the same inputs. Every element that both are to write is then
//! the same term (equal bit for bit), the same function over the reals ([`reals`]: equal up to rounding), or another
//! one: then inputs are looked for on which the emulator shows it. What this machinery does not do is tested on
//! numbers, and said to be.

mod addresses;
mod alike;
mod border;
mod bounds;
mod compare;
mod constants;
mod errors;
pub mod field;
mod guards;
pub mod pairing;
mod plainest;
pub mod reals;
pub mod sets;
mod standing;
mod taken;
mod tested;
mod witness;

pub use addresses::{Look, Looked, addresses};
pub use compare::{Options, compare};
pub use errors::described_ranges;
pub use pairing::{Paired, PairingError};
pub use plainest::plainest;
pub use standing::{AtLaunch, Begun, Bounded, Rounded, Standing, Which, Why};
pub use tested::{Memory, outputs};
pub use witness::Witness;

use warpwright_emu::Program;
use warpwright_launch::Launch;

/// One launch of a side.
pub struct Step {
    /// The kernel.
    pub program: Program,
    /// How it is launched.
    pub launch: Launch,
    /// What its buffers hold before, in the order of [`Launch::buffers`].
    pub contents: Vec<Vec<u8>>,
}

/// A sequence of launches; buffers of one name are one.
pub struct Side {
    /// The file.
    pub name: String,
    /// Its launches, in order.
    pub steps: Vec<Step>,
}
