//! Why a pass leaves a kernel alone, by name.

use warpwright_diag::count;
use warpwright_launch::Shape;
use warpwright_naive::emit::NoLauncher;
use warpwright_naive::way::Unfit;
use warpwright_ptx::EditError;
use warpwright_sass::ElfError;
use warpwright_sass::function::CodeError;
use warpwright_sass::ir::IrError;
use warpwright_sass::spill::Refusal as SpillRefusal;
use warpwright_stencil::{replace, versions};
use warpwright_target::LaunchError;

use crate::hazard::Hazard;
use crate::pass::{Level, Need};
use crate::reliance::Wait;

/// A refusal. The kernel's name stands in front of it where it is shown.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The pass works on another level.
    #[error("it works on {wants}")]
    WrongLevel {
        /// Its level.
        wants: Level,
    },
    /// Something must be stated.
    #[error("{}", unstated(*.0))]
    NotStated(Need),
    /// There is no such kernel, or only a declaration.
    #[error("it has no body")]
    NoBody,
    /// An instruction that our tables do not have.
    #[error("it has an instruction that is not known: {0}")]
    UnknownInstruction(String),
    /// Debug information names registers.
    #[error("it has debug information, which names its registers")]
    DebugInformation,
    /// Registers that are no plain values.
    #[error("it declares {kind} registers: {name}")]
    RegisterKind {
        /// `vector`, `opaque`, `8-bit`.
        kind: &'static str,
        /// The declaration's name.
        name: String,
    },
    /// It can notice how much shared memory it has.
    #[error("it {0}")]
    SeesSharedMemory(&'static str),
    /// Only local memory was asked for.
    #[error("only local memory was asked for")]
    LocalOnly,
    /// It cannot be launched in this way.
    #[error("{0}")]
    Launch(#[from] LaunchError),
    /// A block that no launch can have.
    #[error("a block of {threads} threads is larger than the {most} that {who}")]
    BlockTooLarge {
        /// Threads per block.
        threads: u64,
        /// The most.
        most: u64,
        /// Who says so.
        who: &'static str,
    },
    /// The kernel bounds its blocks to fewer threads than would be promised.
    #[error("it bounds its blocks to {own} threads, and {wanted} were to be promised")]
    BlockBound {
        /// Threads per block of its own bound.
        own: u32,
        /// Threads per block that were to be promised.
        wanted: u32,
    },
    /// An SM never holds so many blocks.
    #[error("{} cannot reside on an SM{}: {most} can", count(*.blocks, "block"), of_threads(.threads))]
    NotResident {
        /// Blocks per SM that were asked for.
        blocks: u32,
        /// Threads per block of the kernel's own bound.
        threads: Option<u32>,
        /// Blocks per SM.
        most: u32,
    },
    /// No stair of the occupancy staircase lies below the pressure.
    #[error("no step of the occupancy staircase lies below {pressure} registers")]
    NoStair {
        /// 32-bit registers.
        pressure: u32,
    },
    /// Its warps share out the registers that it is launched with.
    #[error(
        "it moves registers between its warps (setmaxnreg), which wait for ever where it is launched with others than its own"
    )]
    MovesRegisters,
    /// Fewer of its blocks would reside, and they may wait for each other.
    #[error("its blocks may wait for each other ({0}), and fewer of them would reside")]
    MayWait(Wait),
    /// Launches have another shape already.
    #[error("launches have another block already ({0})")]
    ShapedBefore(Shape),
    /// Nothing here changes launches.
    #[error(
        "it is for launches of another block ({0}), and what is written here changes no launch"
    )]
    OtherLaunch(Shape),
    /// Nothing has to be done.
    #[error("its pressure of {pressure} registers is within the goal of {goal}")]
    WithinGoal {
        /// 32-bit registers.
        pressure: u32,
        /// 32-bit registers.
        goal: u32,
    },
    /// Nothing can be done.
    #[error("nothing that could be {means} lowers its pressure of {pressure} registers")]
    NothingHelps {
        /// `recomputed`, `spilled to 512 bytes of free shared memory`, …
        means: String,
        /// 32-bit registers.
        pressure: u32,
    },
    /// An instruction needs more registers at once.
    #[error("it needs more than {registers} registers{}", place(.at))]
    TooFewRegisters {
        /// The limit.
        registers: u32,
        /// The instruction.
        at: Option<String>,
    },
    /// No order was found in which so few suffice.
    #[error(
        "it needs {needed} registers in the best order that was found, {} more than {registers}", needed - registers
    )]
    NeedsRegisters {
        /// The limit.
        registers: u32,
        /// The fewest.
        needed: u32,
    },
    /// So much is live at once that an allocation would be as good as all spills, and take long.
    #[error("{pressure} registers are live at once, and more than {most} are not tried")]
    TooManyLive {
        /// 32-bit registers.
        pressure: u32,
        /// The most that is tried.
        most: u32,
    },
    /// Its slots do not fit into shared memory.
    #[error("its slots take {wanted} bytes of shared memory per thread, and {free} are free")]
    NoRoom {
        /// Bytes per thread.
        wanted: u32,
        /// Bytes per thread.
        free: u32,
    },
    /// So many blocks cannot be had.
    #[error("no {what} leaves exactly {}", count(*.blocks, "block"))]
    NoThrottle {
        /// `register count`, `array that ptxas takes`.
        what: &'static str,
        /// Blocks per SM.
        blocks: u32,
    },
    /// There is nothing of the kind in the kernel.
    #[error("it has no {0}")]
    NothingToDo(&'static str),
    /// Where such code has not run it is not made.
    #[error("this was not tried on sm_{0}")]
    NotTried(u32),
    /// Another thing that is in the way, named by the pass.
    #[error("{0}")]
    InTheWay(&'static str),
    /// The same with what it is.
    #[error("{what}: {detail}")]
    Obstacle {
        /// What is in the way.
        what: &'static str,
        /// What was found.
        detail: String,
    },
    /// The kernel cannot be launched in another way.
    #[error(transparent)]
    Launcher(#[from] NoLauncher),
    /// A way to compute points is none for this kernel.
    #[error(transparent)]
    Way(#[from] Unfit),
    /// A stencil's kernel cannot be replaced.
    #[error(transparent)]
    Replace(#[from] replace::Refusal),
    /// A way to compute points is none for this stencil.
    #[error(transparent)]
    Sweep(#[from] versions::Unfit),
    /// The spill code of a cubin is not of the kind that can move.
    #[error(transparent)]
    Spill(#[from] SpillRefusal),
    /// Machine code cannot be taken apart or written.
    #[error(transparent)]
    Ir(#[from] IrError),
    /// The machine code is not sound before the pass, as far as is known.
    #[error("before the pass: {0}")]
    Hazard(Hazard),
    /// The cubin cannot be read or changed.
    #[error(transparent)]
    Elf(#[from] ElfError),
    /// The text cannot be edited so.
    #[error(transparent)]
    Edit(#[from] EditError),
}

impl From<CodeError> for Refusal {
    fn from(error: CodeError) -> Refusal {
        Refusal::obstacle("its control flow is not known", error)
    }
}

fn unstated(need: Need) -> &'static str {
    match need {
        Need::BlockSize => {
            "its block size is not known, and what the pass does depends on it: name it with --block, or bound it \
             by .maxntid"
        }
        Need::DynamicShared => {
            "it uses shared memory, perhaps dynamic of unknown size: name the size with --dynamic-smem (0 if \
             there is none)"
        }
    }
}

fn of_threads(threads: &Option<u32>) -> String {
    threads.map_or_else(String::new, |threads| {
        format!(" with up to {threads} threads each")
    })
}

fn place(at: &Option<String>) -> String {
    at.as_ref()
        .map_or_else(String::new, |at| format!(" at `{at}`"))
}

impl Refusal {
    /// Something that was found in the way.
    pub fn obstacle(what: &'static str, detail: impl ToString) -> Refusal {
        Refusal::Obstacle {
            what,
            detail: detail.to_string(),
        }
    }
}
