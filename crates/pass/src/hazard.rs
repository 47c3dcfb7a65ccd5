//! Hazards of a kernel's machine code: a pass over it wants code without, and must leave it so.

use warpwright_sass::function::{Calls, Code, CodeError};
use warpwright_sass::hazards::{self, Unchecked};
use warpwright_sass::{ElfError, Parsed};

/// What is wrong with the order of a kernel's reads and writes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Hazard {
    /// The cubin cannot be read.
    #[error(transparent)]
    Cubin(#[from] ElfError),
    /// Where it goes is not known.
    #[error("its control flow is not known: {0}")]
    Flow(#[from] CodeError),
    /// Something in it is not known well enough.
    #[error("its control fields cannot be checked: {0}")]
    Unchecked(#[from] Unchecked),
    /// A register is read or written too early: the first one.
    #[error("{0}")]
    Found(String),
}

/// Looks at every way through a kernel.
pub(crate) fn check(cubin: &Parsed, kernel: &str) -> Result<(), Hazard> {
    let elf = cubin.elf();
    let sections = elf.kernel(kernel)?;
    let code = Code::new(elf, &sections, Calls::Followed)?;
    match hazards::check(&code)?.first() {
        None => Ok(()),
        Some(first) => Err(Hazard::Found(first.describe(&code))),
    }
}

/// Do two versions of a kernel have the same instructions?
pub(crate) fn is_same_code(before: &Parsed, after: &Parsed, kernel: &str) -> bool {
    let code = |cubin: &Parsed| {
        let elf = cubin.elf();
        elf.instructions(&elf.kernel(kernel).ok()?).ok()
    };
    let (before, after) = (code(before), code(after));
    before.is_some() && before == after
}
