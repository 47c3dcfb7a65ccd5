//! The rung of the ladder that the source compilers climb: a rewritten kernel beside the one that was written, in the
//! PTX emulator.

pub mod emulated;

/// Why a text was not compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CompileError {
    /// There is no compiler.
    Missing(String),
    /// It refuses the text.
    Rejected(String),
}
