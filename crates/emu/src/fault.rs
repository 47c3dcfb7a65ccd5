//! What a program did wrong, and what the emulator cannot do.

use std::fmt;

use warpwright_ptx::Span;

/// Kinds of program faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FaultKind {
    /// An access outside every allocation, or over the end of one.
    OutOfBounds,
    /// An access at an address that is no multiple of its size.
    Misaligned,
    /// An access to local memory of a function that has returned.
    UseAfterScope,
    /// A store to read-only memory.
    ReadOnly,
    /// A register was read before anything was written to it.
    UninitialisedRegister,
    /// Shared or local memory was read before anything was written to it.
    UninitialisedMemory,
    /// Threads of a block do not meet at a barrier: they wait at different ones, or for others
    /// that never come.
    BarrierDivergence,
    /// Warps wait for registers (`setmaxnreg.inc`) that no other gives up.
    NoRegisters,
    /// A `.sync` instruction names lanes that do not come to it.
    WarpDivergence,
    /// A shuffle reads from a lane that does not take part.
    InactiveLane,
    /// Warps access the same shared memory, at least one of them writing, with no barrier between.
    SharedRace,
    /// The instruction budget is spent.
    Budget,
    /// `trap`.
    Trap,
    /// `__assertfail` was called.
    Assertion,
    /// An indirect call or branch to something that is no target.
    BadTarget,
    /// Too many nested calls.
    StackOverflow,
    /// An `mbarrier` object used in a way that the ISA leaves undefined.
    BadBarrier,
    /// An operand outside what the instruction allows.
    BadOperand,
}

impl FaultKind {
    /// The name in reports and filetests.
    pub const fn name(self) -> &'static str {
        match self {
            FaultKind::OutOfBounds => "out-of-bounds access",
            FaultKind::Misaligned => "misaligned access",
            FaultKind::UseAfterScope => "use after scope",
            FaultKind::ReadOnly => "store to read-only memory",
            FaultKind::UninitialisedRegister => "uninitialised register",
            FaultKind::UninitialisedMemory => "uninitialised memory",
            FaultKind::BarrierDivergence => "barrier divergence",
            FaultKind::NoRegisters => "registers that nobody releases",
            FaultKind::WarpDivergence => "warp divergence",
            FaultKind::InactiveLane => "read from an inactive lane",
            FaultKind::SharedRace => "shared-memory race",
            FaultKind::Budget => "instruction budget spent",
            FaultKind::Trap => "trap",
            FaultKind::Assertion => "assertion failed",
            FaultKind::BadTarget => "bad branch or call target",
            FaultKind::StackOverflow => "call stack overflow",
            FaultKind::BadBarrier => "bad mbarrier",
            FaultKind::BadOperand => "bad operand",
        }
    }
}

/// A place in the program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The function.
    pub function: String,
    /// The instruction as written, in one line.
    pub instruction: String,
    /// Where it stands in the PTX text.
    pub span: Span,
    /// Line in the PTX text, from 1.
    pub ptx_line: u32,
    /// File and line of the source that it was compiled from, if `.loc` says so.
    pub source: Option<(String, u32)>,
}

/// A program's fault: a result of the run, not an error of the emulator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// What went wrong.
    pub kind: FaultKind,
    /// The instruction.
    pub place: Place,
    /// `%ctaid`.
    pub block: [u32; 3],
    /// `%tid` of the first thread concerned.
    pub thread: [u32; 3],
    /// The address accessed, in the state space of the instruction.
    pub address: Option<u64>,
    /// The allocation that was hit or missed.
    pub allocation: Option<String>,
    /// What exactly happened.
    pub message: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [bx, by, bz] = self.block;
        let [tx, ty, tz] = self.thread;
        writeln!(f, "{}: {}", self.kind.name(), self.message)?;
        let place = &self.place;
        writeln!(
            f,
            "  at {}:{}: {}",
            place.function, place.ptx_line, place.instruction
        )?;
        if let Some((file, line)) = &place.source {
            writeln!(f, "  from {file}:{line}")?;
        }
        write!(f, "  block ({bx}, {by}, {bz}), thread ({tx}, {ty}, {tz})")?;
        if let Some(address) = self.address {
            write!(f, "\n  address {address:#x}")?;
        }
        if let Some(allocation) = &self.allocation {
            write!(f, "\n  allocation {allocation}")?;
        }
        Ok(())
    }
}

/// An instruction or feature that the emulator does not know, found before anything runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsupported {
    /// The instruction or declaration.
    pub place: Place,
    /// What about it is not supported.
    pub reason: String,
}

impl fmt::Display for Unsupported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = &self.place;
        write!(
            f,
            "{}:{}: {}: {}",
            place.function, place.ptx_line, place.instruction, self.reason
        )
    }
}

/// Why a kernel could not be decoded.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum DecodeError {
    /// The module has no kernel of this name with a body.
    #[error("no kernel `{0}` in the module")]
    NoKernel(String),
    /// Instructions or features that the emulator does not support.
    #[error("not supported by the emulator: {}", list(.0))]
    Unsupported(Vec<Unsupported>),
}

fn list(all: &[Unsupported]) -> String {
    all.iter()
        .map(Unsupported::to_string)
        .collect::<Vec<_>>()
        .join("; ")
}

/// Why a run could not be made: a launch that does not fit the kernel, or a bug of the emulator.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum EmuError {
    /// The launch does not fit the kernel.
    #[error("launch does not fit kernel `{kernel}`: {message}")]
    Launch {
        /// The kernel.
        kernel: String,
        /// What does not fit.
        message: String,
    },
    /// A bug of the emulator.
    #[error("internal error of the emulator: {0}")]
    Internal(String),
}
