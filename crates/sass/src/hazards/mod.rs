//! The hazard checker: is every register access of a function protected by its control fields?
//!
//! Goal: machine code whose stall counts, scoreboards and waits are wrong computes wrong values
//! without a word. For every pair of accesses that must keep their order (read after write, write
//! after read, write after write) the checker demands, along every path: from units with a
//! fixed latency at least the distance that ptxas leaves between such instructions; from the others a
//! wait for a scoreboard that tells when the access is over. Paper: RegDem (section 3.2) sets barriers
//! for the code that it inserts by a tracker within basic blocks; here finished code is judged, over
//! the whole graph, so nothing of that is shared. docs/sass.md has the model and its figures.
//!
//! Requires: roles and timing of all instructions. Preserves all.
//!
//! * [`timing`]: which operations take a known time, which tell by scoreboard, what goes in order.
//! * [`effect`](mod@effect): what an instruction does to what is going on.
//! * [`pending`](mod@pending): what may be going on before an instruction.
//! * [`walk`]: the fixpoint, and the pairs.
//! * [`distance`]: how far apart they must be.
//! * [`orders`]: what keeps its order without being waited for.
//! * [`reuse`]: the flags of the operand cache.
//! * [`settle`](mod@settle): control fields for code that was added, from what the checker finds.

pub mod distance;
pub(crate) mod effect;
pub mod orders;
pub(crate) mod pending;
pub(crate) mod reuse;
pub mod settle;
pub mod timing;
mod violation;
pub(crate) mod waits;
pub mod walk;

use warpwright_flow::{Cfg, Function, Inst};

use crate::control::SCOREBOARDS;
use crate::function::Code;
use crate::operation::Operation;
use crate::roles::{File, Role};

pub use distance::{Distances, Kept, OperationPair, Pair, Seen};
pub use orders::{Order, OrderKind, Orders};
pub use reuse::ReuseFault;
pub use settle::{Unsettled, settle};
pub use violation::{Cause, Hazard, Violation};
pub use walk::{Dependence, Kind, dependences, dependences_with};

/// Why a section cannot be checked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unchecked {
    /// The table of distances is missing.
    #[error("nothing is known of the distances on sm_{0}")]
    Architecture(u32),
    /// An instruction without roles.
    #[error("the operands of the instruction at {:#x} are not known", offset(*inst))]
    Opaque {
        /// The instruction.
        inst: Inst,
    },
    /// An instruction that may take any time: asynchronous matrix products, and whatever the corpus
    /// does not have.
    #[error("when {name} at {:#x} is done is not known", offset(*inst))]
    NoTiming {
        /// The instruction.
        inst: Inst,
        /// Its mnemonic.
        name: &'static str,
    },
}

/// The byte offset of an instruction.
fn offset(inst: Inst) -> u32 {
    inst.0 * 16
}

/// All violations of a section, in program order; none if every access is protected.
///
/// # Errors
/// Something in it is not known well enough.
pub fn check(code: &Code) -> Result<Vec<Violation>, Unchecked> {
    let sm = code.instructions().first().map_or(0, |inst| inst.sm());
    let distances = Distances::for_sm(sm).ok_or(Unchecked::Architecture(sm))?;
    check_with(code, distances)
}

/// The same with other distances.
///
/// # Errors
/// As [`check`].
pub fn check_with(code: &Code, distances: &Distances) -> Result<Vec<Violation>, Unchecked> {
    let mut violations = control_faults(code)?;
    dependences(code, |dependence| {
        if let Some(cause) = judge(&dependence, distances) {
            let violation = Violation::order(&dependence, cause);
            // One report for all registers of an operand.
            if violations
                .last()
                .is_none_or(|last| !last.is_about_the_same(&violation))
            {
                violations.push(violation);
            }
        }
    })?;
    violations.sort_by_key(|violation| violation.inst);
    Ok(violations)
}

/// What is wrong with control fields by themselves: reuse flags, and a scoreboard that is not there.
///
/// # Errors
/// As [`check`].
pub fn control_faults(code: &Code) -> Result<Vec<Violation>, Unchecked> {
    let timings = timing::timings(code)?;
    let cfg = Cfg::new(code);
    let end = |inst| cfg.last_inst(cfg.block_of(inst)).0 + 1;
    let mut violations = Vec::new();
    for (inst, timing) in (0..code.inst_count() as u32).map(Inst).zip(&timings) {
        let control = code.instructions()[inst.0 as usize].control();
        let named = [control.write_barrier, control.read_barrier];
        let wrong = named.into_iter().flatten().find(|&s| s >= SCOREBOARDS);
        let scoreboard = wrong.map(|scoreboard| Hazard::NoSuchScoreboard { scoreboard });
        let reuse = Some(timing).filter(|timing| !timing.unit.has_other_flags);
        let reuse = reuse.filter(|_| control.reuse != 0);
        let reuse = reuse.and_then(|_| reuse::fault(code, inst, &timings, Inst(end(inst))));
        let reuse = reuse.map(|(slot, fault)| Hazard::Reuse { slot, fault });
        let hazards = scoreboard.into_iter().chain(reuse);
        violations.extend(hazards.map(|hazard| Violation { inst, hazard }));
    }
    Ok(violations)
}

/// What of the control fields does not follow from registers: it orders memory, or counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Hidden {
    /// Scoreboards that the instruction sets though no register of its own is in use for an unknown time, one
    /// bit each: a fence, the start of a memory barrier.
    pub tokens: u8,
    /// Scoreboards of which DEPBAR counts the users, one bit each: those that it sets.
    pub counted: u8,
    /// Does it work on no register, so that its stall counts are its own?
    pub synchronizes: bool,
    /// Must what no register explains be over before it?
    pub awaits_tokens: bool,
}

/// What is hidden in the control fields of every instruction.
///
/// # Errors
/// As [`check`].
pub fn hidden(code: &Code) -> Result<Vec<Hidden>, Unchecked> {
    let timings = timing::timings(code)?;
    let counted = counted(code);
    let insts = (0..code.inst_count() as u32).map(Inst).zip(timings);
    let hidden = insts.map(|(inst, timing)| {
        let bits = code.instructions()[inst.0 as usize];
        let control = bits.control();
        let is_late = |role| {
            let mut spans = code.roles(inst).spans().iter();
            spans.any(|&span| {
                span.role == role && span.file != File::Barrier && timing.is_late(span)
            })
        };
        let counts = timing.unit.is_late_if_counted;
        let write = control
            .write_barrier
            .filter(|_| !is_late(Role::Def) && !counts);
        let read = control.read_barrier.filter(|_| !is_late(Role::Use));
        let set = waits::bit(control.write_barrier) | waits::bit(control.read_barrier);
        let accesses = timing.unit.sources.is_some() && timing.unit.reads_before_barrier;
        let is_sync = timing.unit.name == SYNC && bits.operation() != Operation::NOP;
        Hidden {
            tokens: waits::bit(write) | waits::bit(read),
            counted: set & counted,
            synchronizes: is_sync,
            awaits_tokens: accesses || is_sync || matches!(timing.unit.name, "control" | "bmov"),
        }
    });
    Ok(hidden.collect())
}

/// Scoreboards that a DEPBAR names, one bit each.
pub fn counted(code: &Code) -> u8 {
    let all = code.instructions().iter();
    let counts = all.filter(|inst| inst.operation() == Operation::DEPBAR);
    let named = counts.map(|inst| (inst.bits() >> 32) as u8 | 1 << (inst.bits() >> 44 & 7));
    named.fold(0, |all, named| all | named) & ((1 << SCOREBOARDS) - 1)
}

/// The unit of what works on no register.
const SYNC: &str = "sync";

/// What is wrong with a pair that no wait has settled, if anything.
pub(crate) fn judge(dependence: &Dependence, distances: &Distances) -> Option<Cause> {
    if dependence.is_in_order() {
        return None;
    }
    let too_soon = |(pair, cycles)| {
        let needed = distances.needed(pair);
        (cycles < needed).then_some(Cause::TooSoon { cycles, needed })
    };
    let too_soon = || Pair::all(dependence).find_map(too_soon);
    dependence.unsettled().or_else(too_soon)
}
