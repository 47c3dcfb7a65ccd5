//! What a command that runs a program must be able to have, looked at before it starts one: what is denied in the middle would
//! cost what the program did.

use nix::sys::resource::{Resource, getrlimit};
use rustix::io::dup;

use warpwright_diag::Problem;

/// What a search may come to need while it builds and proves; bytes.
const MEMORY: u64 = 1 << 30;
/// Files that a command has open beside its program.
const FILES: usize = 8;
/// The same while versions are built.
const FILES_OF_SEARCH: usize = 32;

/// Is there what one run of a program takes?
///
/// # Errors
/// Too few files may be opened.
pub fn check() -> Result<(), Problem> {
    files(FILES)
}

/// Is there what a search takes?
///
/// # Errors
/// There is too little memory, or too few files may be opened.
pub fn check_search() -> Result<(), Problem> {
    let limit = getrlimit(Resource::RLIMIT_AS).map_or(u64::MAX, |(soft, _)| soft);
    if limit < MEMORY {
        return Err(Problem::Input(format!(
            "this process may have {} MiB of memory (`ulimit -v`), and a search takes up to {}: \
             `warpwright trace` and `with` take little",
            limit >> 20,
            MEMORY >> 20
        )));
    }
    files(FILES_OF_SEARCH)
}

/// May so many files be opened?
fn files(wanted: usize) -> Result<(), Problem> {
    let opened = (0..wanted).map(|_| dup(std::io::stderr()));
    let opened: Result<Vec<_>, _> = opened.collect();
    opened.map(drop).map_err(|e| {
        Problem::Input(format!(
            "this process may not open {wanted} more files (`ulimit -n`): {}; `warpwright with` needs none",
            std::io::Error::from(e)
        ))
    })
}
