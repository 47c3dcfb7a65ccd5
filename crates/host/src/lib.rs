//! Host code read: which launches a file makes, as facts and as drafts of launch descriptions.
//!
//! CUDA C and what was seen of a program go in; nothing is printed, no process is started, no file is opened. What a
//! draft says has a [`Source`](warpwright_launch::Source) each, from the reader to whoever shows it.

mod amount;
pub mod code;
mod counted;
mod describe;
mod draft;
mod error;
mod fit;
mod guards;
mod kernel;
mod layout;
mod make;
mod own;
mod seen;
mod signature;
mod sizes;
mod trial;

pub use code::{Calls, number};
pub use counted::{Counted, MOST_BYTES, halved, whole_or_parts};
pub use describe::{Code, Described, Kernel, Stated, Traced};
pub use draft::Draft;
pub use error::{Error, Strange};
pub use kernel::parameter_names;
pub use own::own_launches;
pub use trial::Trial;
