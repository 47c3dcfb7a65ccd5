//! How long the operands of an operation are in use: what decides is the unit that executes it.
//!
//! Two ways exist. Units with a fixed latency read their sources when an instruction is issued and
//! deliver a known number of cycles later; stall counts keep others away. The other units take their
//! time and tell by scoreboards. Which operation is of which kind is read off the corpus
//! (docs/sass-hazards.md): an operation that ever has a write barrier delivers by scoreboard, one that
//! ever has a read barrier reads late.

use warpwright_flow::Inst;

use super::Unchecked;
use crate::function::Code;
use crate::isa::decode;
use crate::roles::{File, Role, Span};

/// Operations with the same distances.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// Integer add, logic, shifts, comparisons, selections, moves.
    Alu,
    /// FFMA, FADD, FMUL, IMAD, VIADD.
    Fma,
    /// IMAD.WIDE: the result's halves come one after the other, the addend is read late.
    Wide,
    /// IMAD.HI.
    High,
    /// Packed half precision.
    Half,
    /// Packed half precision on the tensor cores' port (HFMA2.MMA).
    HalfMma,
    /// Double precision.
    Double,
    /// HMMA, IMMA, BMMA.
    Tensor,
    /// What fills uniform registers at once: UMOV, ULDC, VOTEU, ELECT.
    UniformMove,
    /// Arithmetic on uniform registers.
    Uniform,
    /// R2UR.
    ToUniform,
    /// VOTE.
    Vote,
    /// CS2R.
    Clock,
    /// P2R.
    FromPredicates,
    /// R2P.
    ToPredicates,
    /// Branches, exits, convergence barriers.
    Control,
    /// Barriers, fences, NOP.
    Sync,
    /// Special functions, conversions, bit counts.
    Special,
    /// Loads, stores, atomics, shuffles.
    Memory,
    /// SYNCS, ARRIVES.
    AsyncBarrier,
    /// LDC.
    Constant,
    /// S2R, S2UR, B2R.
    System,
    /// DMMA.
    DoubleTensor,
    /// MOVM.
    Transpose,
    /// Textures and surfaces.
    Texture,
    /// MATCH, REDUX.
    WarpWide,
    /// Asynchronous copies that read their uniform registers late.
    Bulk,
    /// BMOV.
    BarrierMove,
}

/// Names for the tables.
const NAMES: [(Class, &str); 28] = [
    (Class::Alu, "alu"),
    (Class::Fma, "fma"),
    (Class::Wide, "wide"),
    (Class::High, "high"),
    (Class::Half, "half"),
    (Class::HalfMma, "halfmma"),
    (Class::Double, "double"),
    (Class::Tensor, "tensor"),
    (Class::UniformMove, "umove"),
    (Class::Uniform, "uniform"),
    (Class::ToUniform, "r2ur"),
    (Class::Vote, "vote"),
    (Class::Clock, "cs2r"),
    (Class::FromPredicates, "p2r"),
    (Class::ToPredicates, "r2p"),
    (Class::Control, "control"),
    (Class::Sync, "sync"),
    (Class::Special, "special"),
    (Class::Memory, "memory"),
    (Class::AsyncBarrier, "syncs"),
    (Class::Constant, "ldc"),
    (Class::System, "s2r"),
    (Class::DoubleTensor, "dmma"),
    (Class::Transpose, "movm"),
    (Class::Texture, "texture"),
    (Class::WarpWide, "warp"),
    (Class::Bulk, "bulk"),
    (Class::BarrierMove, "bmov"),
];

impl Class {
    /// The name in the tables.
    pub fn name(self) -> &'static str {
        NAMES.iter().find(|n| n.0 == self).map_or("?", |n| n.1)
    }

    /// The class of that name.
    pub fn named(name: &str) -> Option<Class> {
        NAMES.iter().find(|n| n.1 == name).map(|n| n.0)
    }

    fn timing(self) -> Timing {
        let fixed = Timing {
            class: self,
            delivers_late: false,
            reads_late: false,
            results: None,
            sources: None,
            tells_early: false,
        };
        let late = Timing {
            delivers_late: true,
            reads_late: true,
            ..fixed
        };
        let in_order = |queue| Timing {
            results: Some(queue),
            sources: Some(queue),
            ..late
        };
        match self {
            Class::Special => in_order(Queue::Special),
            Class::Texture => in_order(Queue::Texture),
            Class::DoubleTensor => in_order(Queue::DoubleTensor),
            Class::Transpose => in_order(Queue::Transpose),
            Class::WarpWide => in_order(Queue::WarpWide),
            Class::Memory | Class::AsyncBarrier | Class::Bulk => Timing {
                sources: Some(Queue::Memory),
                ..late
            },
            Class::Constant | Class::System | Class::BarrierMove => late,
            _ => fixed,
        }
    }
}

/// A unit that works in order: once one of its operations is known to be over, so are those before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Queue {
    /// Loads and stores of all kinds read their registers in order; their results come in any order.
    Memory,
    /// Loads from shared memory and shuffles deliver in order.
    Shared,
    /// Special functions.
    Special,
    /// Textures.
    Texture,
    /// DMMA.
    DoubleTensor,
    /// MOVM.
    Transpose,
    /// MATCH and REDUX.
    WarpWide,
}

/// How the operands of one operation behave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    /// For the distances.
    pub class: Class,
    /// Do its results come after an unknown time?
    pub delivers_late: bool,
    /// Are its general registers read after an unknown time?
    pub reads_late: bool,
    /// Where its results come in order.
    pub results: Option<Queue>,
    /// Where its sources are read in order.
    pub sources: Option<Queue>,
    /// Do its predicates come as soon as its sources have been read? So do those of generic atomics,
    /// which say whether the address lies in shared memory.
    pub tells_early: bool,
}

impl Timing {
    /// Is an operand in use for an unknown time?
    pub fn is_late(self, span: Span) -> bool {
        match (span.role, span.file) {
            (Role::Def, _) => self.delivers_late,
            (Role::Use, File::Gpr) => self.reads_late,
            (Role::Use, File::Uniform) => self.class == Class::Bulk,
            // Guards and other predicates are read at issue.
            (Role::Use, _) => false,
        }
    }

    /// The queue that an operand of this role goes through.
    pub fn queue(self, role: Role) -> Option<Queue> {
        match role {
            Role::Def => self.results,
            Role::Use => self.sources,
        }
    }
}

/// Operations (bits 0 to 8) by class; ranges include their ends.
const OPERATIONS: &[(u16, u16, Class)] = &[
    (0x001, 0x001, Class::Sync),
    (0x002, 0x002, Class::Alu),
    (0x003, 0x003, Class::FromPredicates),
    (0x004, 0x004, Class::ToPredicates),
    (0x005, 0x005, Class::Clock),
    (0x006, 0x006, Class::Vote),
    (0x007, 0x01f, Class::Alu),
    (0x020, 0x024, Class::Fma),
    (0x025, 0x025, Class::Wide),
    (0x026, 0x026, Class::Fma),
    (0x027, 0x027, Class::High),
    (0x028, 0x02b, Class::Double),
    (0x02d, 0x02e, Class::Sync),
    (0x02f, 0x02f, Class::UniformMove),
    (0x030, 0x034, Class::Half),
    (0x035, 0x035, Class::HalfMma),
    (0x036, 0x036, Class::Fma),
    (0x037, 0x037, Class::Tensor),
    (0x038, 0x038, Class::Alu),
    (0x03a, 0x03a, Class::Transpose),
    (0x03b, 0x03b, Class::Memory),
    (0x03c, 0x03d, Class::Tensor),
    (0x03e, 0x03e, Class::Alu),
    (0x03f, 0x03f, Class::DoubleTensor),
    (0x040, 0x040, Class::Alu),
    (0x044, 0x044, Class::Memory),
    (0x045, 0x048, Class::Alu),
    (0x082, 0x082, Class::UniformMove),
    (0x086, 0x086, Class::UniformMove),
    (0x087, 0x0a5, Class::Uniform),
    (0x0b9, 0x0bb, Class::UniformMove),
    (0x0bd, 0x0bf, Class::Uniform),
    (0x0ca, 0x0ca, Class::ToUniform),
    (0x100, 0x113, Class::Special),
    (0x118, 0x118, Class::Sync),
    (0x119, 0x119, Class::System),
    (0x11a, 0x11b, Class::Sync),
    (0x11c, 0x11c, Class::System),
    (0x11d, 0x11d, Class::Sync),
    (0x141, 0x150, Class::Control),
    (0x155, 0x156, Class::BarrierMove),
    (0x15c, 0x15d, Class::Control),
    (0x160, 0x16f, Class::Texture),
    (0x180, 0x181, Class::Memory),
    (0x182, 0x182, Class::Constant),
    (0x183, 0x18f, Class::Memory),
    (0x192, 0x192, Class::Sync),
    (0x199, 0x19f, Class::Texture),
    (0x1a1, 0x1a1, Class::WarpWide),
    (0x1a2, 0x1a6, Class::Memory),
    (0x1a7, 0x1a7, Class::AsyncBarrier),
    (0x1a8, 0x1aa, Class::Memory),
    (0x1ab, 0x1ab, Class::Sync),
    (0x1ae, 0x1af, Class::Memory),
    (0x1b0, 0x1b2, Class::AsyncBarrier),
    (0x1ba, 0x1ba, Class::Bulk),
    (0x1c3, 0x1c3, Class::System),
    (0x1c4, 0x1c4, Class::WarpWide),
    (0x1c6, 0x1c8, Class::Sync),
];

/// Loads from shared memory and shuffles.
const SHARED: [u16; 3] = [0x03b, 0x184, 0x189];

/// Atomics on generic addresses.
const GENERIC_ATOMICS: [u16; 3] = [0x18a, 0x18b, 0x1a2];

/// How an operation behaves, if the corpus has shown it.
fn timing(operation: u16) -> Option<Timing> {
    let in_range = |row: &&(u16, u16, Class)| (row.0..=row.1).contains(&operation);
    let mut timing = OPERATIONS.iter().find(in_range)?.2.timing();
    if SHARED.contains(&operation) {
        timing.results = Some(Queue::Shared);
    }
    timing.tells_early = GENERIC_ATOMICS.contains(&operation);
    Some(timing)
}

/// The timing of every instruction.
///
/// # Errors
/// The first instruction of which it is not known, or whose operands are not.
pub(super) fn timings(code: &Code) -> Result<Vec<Timing>, Unchecked> {
    if let Some(&inst) = code.opaque().first() {
        return Err(Unchecked::Opaque { inst });
    }
    let insts = code.instructions().iter().enumerate();
    let timings = insts.map(|(at, &inst)| {
        timing(inst.operation()).ok_or_else(|| Unchecked::NoTiming {
            inst: Inst(at as u32),
            name: decode(inst).mnemonic(),
        })
    });
    timings.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_have_one_class_each_and_names_read_back() {
        for pair in OPERATIONS.windows(2) {
            assert!(pair[0].1 < pair[1].0, "{:#x}", pair[1].0);
        }
        for (class, name) in NAMES {
            assert_eq!((Class::named(name), class.name()), (Some(class), name));
        }
    }
}
