//! Why code cannot be changed.

use crate::elf::info::Attribute;

/// Why the code of a function, or what refers to it, cannot follow an edit. Places are in bytes from the start of
/// the section.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    /// A wish about an instruction that the function does not have.
    #[error("there is no instruction {0}")]
    NoInstruction(usize),
    /// A wish about the padding.
    #[error("an edit in the padding behind the code")]
    InPadding,
    /// An arrangement that was made for another function.
    #[error("an arrangement of other code")]
    OtherCode,
    /// An arrangement that has an instruction twice.
    #[error("instruction {0} stands at two places")]
    TwoPlaces(usize),
    /// A new branch, by its place, whose distance does not fit.
    #[error("the target of the new branch at place {0} is out of reach")]
    NewOutOfReach(usize),
    /// A section without instructions.
    #[error("there is no code")]
    NoCode,
    /// A branch whose new distance does not fit.
    #[error("a branch target out of reach at {0:#x}")]
    OutOfReach(usize),
    /// A branch to where the function has no instruction.
    #[error("a branch out of the function at {0:#x}")]
    Leaves(usize),
    /// A call or jump through a register that adds distances; the name of the instruction.
    #[error("{0} at {1:#x}")]
    Indirect(&'static str, usize),
    /// A return address that fits no register.
    #[error("a return address out of reach at {0:#x}")]
    ReturnOutOfReach(usize),
    /// An edit that replaces the load of a return address.
    #[error("a return address that would be replaced at {0:#x}")]
    ReturnReplaced(usize),
    /// A call of which nothing shows where it gets its return address.
    #[error("the return address of CALL.{form} at {at:#x} is not found")]
    NoReturnAddress {
        /// `REL` or `ABS`.
        form: &'static str,
        /// The call.
        at: usize,
    },
    /// An indirect branch whose jump table is not proven to be one.
    #[error("the jump table of the branch at {0:#x} is not found")]
    NoTable(usize),
    /// An attribute that may hold offsets.
    #[error("{0} is not understood")]
    Attribute(Attribute),
    /// An attribute whose records do not have the known size.
    #[error("{0} has an unknown layout")]
    Layout(Attribute),
    /// An annotation that may hold offsets.
    #[error("{0} of an unknown kind")]
    Kind(Attribute),
    /// An attribute that needs an instruction which the edit deletes.
    #[error("{0} names a deleted instruction")]
    Deleted(Attribute),
    /// An attribute that names a place outside the code.
    #[error("{0} names no instruction")]
    Nowhere(Attribute),
}
