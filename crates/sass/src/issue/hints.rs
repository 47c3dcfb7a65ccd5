//! Yield bits and reuse flags, as ptxas has them. Neither changes what is computed.
//!
//! Read off 130 builds for sm_90: of instructions with a fixed latency those that stall for three cycles or more
//! have the yield bit clear without exception, those that stall for two have it clear where a dependence asks for
//! that, and not where the unit is busy; all others have it set up to eleven cycles and clear from twelve on.

use crate::function::Code;
use crate::hazards::reuse::{operand, writes};
use crate::hazards::timing::Timing;
use warpwright_flow::Inst;

/// From here on the yield bit is clear in every instruction of the corpus.
const LONG: u8 = 12;
/// The same for instructions with a fixed latency.
const DEPENDS: u8 = 3;
/// Sources with a reuse flag.
const SLOTS: u8 = 3;

/// The yield bit of an instruction that stalls for so long, for a dependence or not.
pub(super) fn yield_bit(timing: Timing, stall: u8, is_for_dependence: bool) -> bool {
    let is_fixed = !timing.is_late && !matches!(timing.unit.name, "control" | "sync" | "bmov");
    let yields = is_fixed && (stall >= DEPENDS || stall + 1 == DEPENDS && is_for_dependence);
    !(yields || stall >= LONG)
}

/// Which sources the operand cache should keep: those that the next instruction reads in the same place.
pub(super) fn reuse(code: &Code, inst: Inst, next: Inst) -> u8 {
    let mut flags = 0;
    for slot in 0..SLOTS {
        let (Some(own), Some(other)) = (operand(code, inst, slot), operand(code, next, slot))
        else {
            continue;
        };
        if own.first == other.first && !writes(code, inst, own) {
            flags |= 1 << slot;
        }
    }
    flags
}

/// Units whose sources have flags.
pub(super) fn keeps_operands(timing: Timing) -> bool {
    matches!(
        timing.unit.name,
        "alu" | "fma" | "wide" | "double" | "half" | "tensor"
    )
}
