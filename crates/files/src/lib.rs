//! What a command reads and writes: files whole or not at all, pipes, standard streams; nothing is written over what was
//! read, under whatever name.
//!
//! * [`reading`]: what the user names, with limits. [`writing`]: results, beside their place until they are whole.
//! * [`places`]: what may be written where, known before any work; [`kind`]: what the ending of its name may be.
//!
//! It is for a process of its own: what was read is remembered for all of it.

pub mod kind;
mod paths;
pub mod places;
pub mod reading;
pub mod writing;

pub use kind::Kind;
pub use paths::{behind_links, file_name, folder_of, is_stdout};
pub use places::{Places, modules_beside};
pub use reading::{STDIN, contents, read, text};
pub use writing::{Staged, make_folder, stage, write_atomically, write_into, write_stdout_with};
