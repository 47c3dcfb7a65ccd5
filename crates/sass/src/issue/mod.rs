//! Control fields, made anew: stall counts, yield, scoreboards, waits and reuse flags of every instruction.
//!
//! Goal: code that was moved, inserted or renamed needs other control fields than ptxas gave it. Paper: RegDem
//! (section 3.2) gives barriers to the instructions that it inserts by a tracker within basic blocks
//! and leaves all others as they were; here nothing is left, and the state is that of the hazard checker, over
//! the whole graph ([`crate::hazards`]): what it demands is what is written.
//!
//! * Stall counts: the fewest cycles that the table of distances allows, and that ptxas leaves between two
//!   instructions of one unit.
//! * Waits: at the first instruction that depends.
//! * Scoreboards: [`scoreboards`].
//! * Yield bits as ptxas gave them to the instruction, reuse flags where the same instruction follows: what ours cost
//!   was measured (docs/scheduling.md). Else as ptxas has them elsewhere: [`hints`].
//!
//! Blocks whose order has not changed may keep their fields, which only get stricter then ([`Old`]).
//!
//! What stays of the old control field elsewhere: stall counts of instructions that work on no register (barriers, fences
//! and the like) are not made shorter; an instruction that had a scoreboard and no register to tell of still
//! has one, and the next instruction that synchronizes, touches memory or leaves its block waits for it;
//! scoreboards that a DEPBAR counts belong to those that counted on them; the padding, and what loops on itself.
//!
//! Requires: roles, timing and flow of all instructions. Preserves everything but control fields.

mod hints;
mod scoreboards;
mod walk;

use warpwright_flow::Inst;

use crate::control::ControlRange;
use crate::function::Code;
use crate::hazards::Unchecked;
use crate::hazards::reuse::forget;
use crate::hazards::waits::keep_waits_apart;

/// Why control fields cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unassigned {
    /// Something is not known well enough.
    #[error(transparent)]
    Unchecked(#[from] Unchecked),
    /// No control field keeps two instructions far enough apart.
    #[error("the instruction at {:#x} cannot be kept away from the one at {:#x}", later.0 * 16, earlier.0 * 16)]
    TooClose {
        /// The first one.
        earlier: Inst,
        /// The second one.
        later: Inst,
    },
    /// A matrix product of which no wait is sure.
    #[error("nothing waits for the matrix product at {:#x}", inst.0 * 16)]
    Group {
        /// The product.
        inst: Inst,
    },
    /// Distances by operation are known of some architectures alone.
    #[error("on sm_{0} it is not known by operation how far apart instructions must be")]
    NotTried(u32),
    /// Operands that the tables have from too few sightings.
    #[error("what the instruction at {:#x} reads and writes was seen too rarely", inst.0 * 16)]
    Rare {
        /// The instruction.
        inst: Inst,
    },
    /// All scoreboards belong to DEPBAR.
    #[error("no scoreboard is free")]
    NoScoreboard,
    /// A value that does not fit.
    #[error(transparent)]
    Range(#[from] ControlRange),
}

/// The old fields, and where they stay.
#[derive(Debug, Clone, Default)]
pub struct Old<'a> {
    /// The code before: instructions of which ptxas is not often seen to leave any distance keep the one that they
    /// have there.
    pub code: Option<&'a Code>,
    /// Instructions whose neighbours are as they were, with everything else in their block: the field stays, and
    /// gets stricter where it must. None of them if this is empty.
    pub kept: Vec<bool>,
    /// Instructions behind which the same one comes as before: they may keep their operands for it. None if empty.
    pub followed: Vec<bool>,
    /// Instructions that keep their scoreboards where they need one. None of them if this is empty.
    pub scoreboards: Vec<bool>,
}

/// Gives every instruction of `code` a control field, on every architecture whose distances are known by operation.
/// Whether such code counts as proved is another question (`target::EditedCode::ControlFields`).
///
/// # Errors
/// See [`Unassigned`]; `code` is unchanged then.
pub fn assign(code: &mut Code, old: &Old<'_>) -> Result<(), Unassigned> {
    let controls = walk::controls(code, old)?;
    for (at, control) in controls.into_iter().enumerate() {
        code.set_control(Inst(at as u32), control)?;
    }
    forget(code)?;
    Ok(keep_waits_apart(code)?)
}
