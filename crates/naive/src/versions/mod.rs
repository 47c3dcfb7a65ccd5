//! What `opt` makes of a naive kernel, and how that is compared with what was written.
//!
//! * [`Problem`]: a kernel of a file, and the text that a version of it becomes.
//! * [`climb`]: a version against the input in the PTX emulator; `trial` has the sizes.
//!
//! Input and output are the caller's: what compiles is a closure.

mod ladder;
mod problem;
mod shrunk;
mod trial;

pub use ladder::{climb, is_emulated};
pub use problem::{Output, Problem};
