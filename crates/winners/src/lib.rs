//! What identifies a kernel inside a running program, and the store of faster versions of it.
//!
//! The command line and the library that programs load (`inject`) share this and nothing else:
//!
//! * [`digest`]: a kernel's machine code as a number, without what does not matter.
//! * [`ties`]: what a kernel shares with its module; [`graft`]: a module with one more kernel, which shares it.
//! * [`image`]: which cubin of a module image the driver takes.
//! * [`class`]: launches that count as the same.
//! * [`fit`]: what a winner's cubin must be before a driver gets it.
//! * [`record`]: a winner as bytes; [`store`]: a folder of them; [`export`]: some of them as one file.
//! * [`aside`]: files that have their name once they are whole; [`plain`]: files that are read whoever named them.
//! * [`captured`]: does the program mean something else by what a library of ours calls?
//! * [`lines`]: the notes that the library writes for the command line, line by line; [`values`]: what launches were given.
//!
//! The store is a folder with one file for each winner, not a table in SQLite: the library reads it inside
//! other people's programs, where a lookup must be an `open` and nothing may lock, and a file that is written
//! aside and renamed needs no more to survive concurrent writers, a full disk or a crash.

pub mod aside;
pub mod class;
pub mod digest;
pub mod export;
pub mod fit;
pub mod graft;
pub mod image;
pub mod lines;
pub mod plain;
pub mod record;
pub mod store;
pub mod ties;
pub mod values;

pub use class::LaunchClass;
pub use digest::{Identity, identities};
pub use record::{RecordError, Standing, Winner};
pub use store::{Exposure, Kept, Store, StoreError};
pub use warpwright_launch::{Guard, Shape};

use sha2::{Digest, Sha256};

/// SHA-256 in lower-case hexadecimal.
pub fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}
