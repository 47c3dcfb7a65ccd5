//! How long the operands of an operation are in use: what decides is the unit that executes it.
//!
//! Two ways exist. Units with a fixed latency read their sources when an instruction is issued and
//! deliver a known number of cycles later; stall counts keep others away. The other units take their
//! time and tell by scoreboards. Which unit is of which kind differs between architectures: the table
//! is `target`'s, read off the corpus (docs/sass.md).

use warpwright_flow::Inst;
use warpwright_target::{IssueUnit, IssueUnits, Queue};

use super::Unchecked;
use crate::function::Code;
use crate::isa::decode;
use crate::roles::{File, Role, Span};

/// Operations with the same distances: the unit's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Class(pub &'static str);

impl Class {
    /// What reads guards, and where branches are executed.
    pub const CONTROL: Class = Class("control");
    /// The halves of all wide addends are read by the same unit.
    pub const WIDE: Class = Class("wide");
}

/// How the operands of one operation behave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    /// What executes it.
    pub unit: &'static IssueUnit,
    /// The operation (bits 0 to 8 of the opcode); 0 for code that is not seen.
    pub operation: u16,
    /// Are results delivered and general registers read after an unknown time?
    pub is_late: bool,
}

impl Timing {
    /// For the distances.
    pub fn class(self) -> Class {
        Class(self.unit.name)
    }

    /// Is an operand in use for an unknown time?
    pub fn is_late(self, span: Span) -> bool {
        match (span.role, span.file) {
            (Role::Def, _) | (Role::Use, File::Gpr) => self.is_late,
            (Role::Use, File::Uniform) => self.unit.reads_uniform_late,
            // Guards and other predicates are read at issue.
            (Role::Use, _) => false,
        }
    }

    /// The queue that an operand of this role goes through.
    pub fn queue(self, role: Role) -> Option<Queue> {
        match role {
            Role::Def => self.unit.results,
            Role::Use => self.unit.sources,
        }
    }
}

/// The timing of every instruction.
///
/// # Errors
/// The first instruction of which it is not known, or whose operands are not.
pub(crate) fn timings(code: &Code) -> Result<Vec<Timing>, Unchecked> {
    if let Some(&inst) = code.opaque().first() {
        return Err(Unchecked::Opaque { inst });
    }
    let sm = code.instructions().first().map_or(0, |inst| inst.sm());
    let units = IssueUnits::for_sm(sm).ok_or(Unchecked::Architecture(sm))?;
    let insts = code.instructions().iter().enumerate();
    let timings = insts.map(|(at, &inst)| {
        let operation = inst.operation().number();
        let unit = units.of(operation);
        let timing = unit.map(|unit| Timing {
            unit,
            operation,
            is_late: unit.is_late
                || unit.is_late_if_counted && inst.control().write_barrier.is_some(),
        });
        timing.ok_or_else(|| Unchecked::NoTiming {
            inst: Inst(at as u32),
            name: decode(inst).mnemonic(),
        })
    });
    timings.collect()
}

/// The unit that stands for code which is not seen.
pub(crate) fn away(code: &Code) -> Option<Timing> {
    let sm = code.instructions().first()?.sm();
    let unit = IssueUnits::for_sm(sm)?.named("away")?;
    Some(Timing {
        unit,
        operation: 0,
        is_late: false,
    })
}
