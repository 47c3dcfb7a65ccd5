//! Generator of valid, terminating, race-free PTX kernels, and a reducer.
//!
//! A [`Program`] is a small structured program over fixed pools of typed registers. Every register
//! is initialised on entry, so *any* subset of the statements is a valid program too: that is what
//! makes the [reducer](reduce) simple. Loops have constant trip counts; shared memory and
//! shuffles are used only where control is uniform, in phases closed by barriers; each thread
//! writes global memory at places of its own, or by reductions whose order does not matter.
//!
//! ```
//! use warpwright_fuzzgen::{Config, generate, print};
//! let program = generate(42, &Config::default());
//! let text = print(&program);
//! assert!(text.contains(".visible .entry fuzz("));
//! assert_eq!(text, print(&generate(42, &Config::default())), "seeded, so repeatable");
//! ```

mod generate;
mod places;
mod print;
mod program;
mod rare;
mod reduce;
mod rng;
mod sums;

pub use generate::generate;
pub use places::{Places, places};
pub use print::{launch_toml, print};
pub use program::{Config, Ending, Function, Kind, Operand, Program, Stmt};
pub use rare::{Place, Rare, Sum, Way};
pub use reduce::reduce;
pub use rng::Rng;
pub use sums::{Sums, sums};
