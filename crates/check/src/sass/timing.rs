//! What one instruction does to registers, and when: its control field, read from the bits, the operands that the table
//! of roles names, and how the unit that executes it treats them (`target`'s table of units).
//!
//! Nothing of this is shared with whoever writes control fields.

use smallvec::SmallVec;
use warpwright_flow::{Function as _, Inst, Value};
use warpwright_sass::Instruction;
use warpwright_sass::function::{Code, value_of};
use warpwright_sass::roles::{File, Role, Span};
use warpwright_target::{IssueUnit, IssueUnits, Queue};

use super::bits;
use super::step::GUARD_BIT;

/// Why the schedule of a section cannot be judged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unjudged {
    /// Nothing is known of the units.
    #[error("nothing is known of the distances on sm_{0}")]
    Architecture(u32),
    /// An instruction without roles.
    #[error("the operands of the instruction at {:#x} are not known", .0.0 * 16)]
    Operands(Inst),
    /// An instruction of no known unit.
    #[error("when the instruction at {:#x} is done is not known", .0.0 * 16)]
    Unit(Inst),
}

/// The number of scoreboards; behind them stand the groups of asynchronous matrix products.
pub(super) const SCOREBOARDS: u32 = 6;
/// The groups of asynchronous matrix products, as one more scoreboard.
pub(super) const GROUPS: u8 = 1 << SCOREBOARDS;
/// The operand of code that is not seen stands in no field.
pub(super) const NO_FIELD: u8 = 255;
/// The lowest bit of the field of P2R and R2P that says which predicates they read and write.
const MASK_BIT: u8 = 32;

/// No two instructions of ptxas are closer where the second waits by its mask for what the first sets.
const MASK_SEES_AFTER: u16 = 2;
/// DEPBAR looks later.
const DEPBAR_SEES_AFTER: u16 = 1;

/// The operation of DEPBAR, BAR, NOP and WARPGROUP.
const DEPBAR: u16 = 0x11a;
const BAR: u16 = 0x11d;
pub(super) const NOP: u16 = 0x118;
const WARPGROUP: u16 = 0x1c5;
const P2R: u16 = 0x003;
const R2P: u16 = 0x004;

/// A wait for scoreboards, before the instruction issues.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wait {
    /// One bit each.
    pub(super) boards: u8,
    /// So many of the youngest may still be going on.
    pub(super) left: u8,
    /// Cycles behind the issue of an instruction from which on the wait sees it.
    pub(super) sees_after: u16,
}

/// A predicate that decides whether an instruction is executed, and whether it is negated.
pub(super) type Guard = (Value, bool);

/// One register of an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Operand {
    pub(super) value: Value,
    pub(super) span: Span,
}

impl Operand {
    /// Is it one of the predicates that a mask names? How soon these can be read is in no table.
    pub(super) fn is_packed(self, operation: u16) -> bool {
        matches!(operation, P2R | R2P) && self.span.bit == MASK_BIT
    }

    /// Does it decide whether the instruction is executed?
    pub(super) fn is_guard(self) -> bool {
        self.span.role == Role::Use && self.span.bit == GUARD_BIT
    }
}

/// One instruction.
#[derive(Debug)]
pub(super) struct Timed {
    pub(super) inst: Inst,
    pub(super) operation: u16,
    pub(super) unit: &'static IssueUnit,
    /// Are results delivered, and general registers read, after an unknown time?
    is_late: bool,
    /// Cycles until the next instruction issues.
    pub(super) cycles: u16,
    /// Does the next one wait until it is done?
    pub(super) is_interlocked: bool,
    pub(super) guard: Option<Guard>,
    /// Is it executed whatever happens?
    pub(super) is_certain: bool,
    pub(super) operands: SmallVec<[Operand; 8]>,
    pub(super) written: SmallVec<[Value; 4]>,
    pub(super) waits: SmallVec<[Wait; 2]>,
    /// Scoreboards that tell when its results have come, and when its sources have been read: what it delivers, it has
    /// read before.
    pub(super) delivered: u8,
    pub(super) read: u8,
    /// The one of its read scoreboard alone.
    pub(super) reads_told: u8,
    /// Does it name a scoreboard that there is not?
    pub(super) names_no_scoreboard: bool,
    /// Does control go to code that is not seen, or come from there?
    pub(super) leaves: bool,
    /// Does it wait for the other warps of the block?
    pub(super) is_block_barrier: bool,
}

impl Timed {
    fn new(code: &Code, inst: Inst, unit: &'static IssueUnit) -> Timed {
        let word = code.instructions()[inst.0 as usize];
        let operation = operation(word);
        let boards = bits::SCOREBOARDS.map(|field| field.get(word));
        let named = |board: u32| board != NO_SCOREBOARD;
        let bit = |board: u32| u8::from(board < SCOREBOARDS) << board.min(SCOREBOARDS);
        let group = unit.has_groups && bits::GROUP.get(word) != NO_SCOREBOARD;
        let delivered = bit(boards[0]) | if group { GROUPS } else { 0 };
        let operands = operands(code, inst);
        let written = operands.iter().filter(|one| one.span.role == Role::Def);
        let stall = bits::STALL.get(word) as u16;
        let is_interlocked = stall == 0 && bits::YIELD.get(word) == 0;
        let is_certain = !code.is_predicated(inst);
        Timed {
            inst,
            operation,
            is_late: unit.is_late || unit.is_late_if_counted && named(boards[0]),
            unit,
            cycles: if is_interlocked {
                MASK_SEES_AFTER
            } else {
                stall
            },
            is_interlocked,
            guard: guard(code, inst),
            is_certain,
            written: written.map(|one| one.value).collect(),
            operands,
            waits: waits(word).collect(),
            delivered,
            read: delivered | bit(boards[1]),
            reads_told: bit(boards[1]),
            names_no_scoreboard: boards.into_iter().any(|b| named(b) && b >= SCOREBOARDS),
            leaves: code.leaves(inst),
            is_block_barrier: operation == BAR
                && is_certain
                && bits::BARRIER_MODE.get(word) != bits::BARRIER_ARRIVES,
        }
    }

    /// Is an operand in use for an unknown time? Guards and other predicates are read at issue.
    pub(super) fn is_late(&self, span: Span) -> bool {
        match (span.role, span.file) {
            (Role::Def, _) | (Role::Use, File::Gpr) => self.is_late,
            (Role::Use, File::Uniform) => self.unit.reads_uniform_late,
            (Role::Use, _) => false,
        }
    }

    /// Does it take an unknown time?
    pub(super) fn takes_unknown_time(&self) -> bool {
        self.is_late
    }

    /// What an operand of this role goes through in order.
    pub(super) fn queue(&self, role: Role) -> Option<Queue> {
        match role {
            Role::Def => self.unit.results,
            Role::Use => self.unit.sources,
        }
    }

    /// Scoreboards that tell when an operand is no longer in use.
    pub(super) fn tells(&self, span: Span) -> u8 {
        let comes_early = self.unit.tells_early && span.file == File::Pred;
        match span.role == Role::Def && !comes_early {
            true => self.delivered,
            false => self.read,
        }
    }
}

/// The value of a field that names no scoreboard.
const NO_SCOREBOARD: u32 = 7;

/// Bits 0 to 8 of the opcode, as `target`'s tables name operations.
pub(super) fn operation(word: Instruction) -> u16 {
    (bits::OPCODE.get(word) & 0x1ff) as u16
}

/// All instructions of a section.
///
/// # Errors
/// One of them is not known well enough.
pub(super) fn timed(code: &Code) -> Result<Vec<Timed>, Unjudged> {
    if let Some(&inst) = code.opaque().first() {
        return Err(Unjudged::Operands(inst));
    }
    let sm = code.instructions().first().map_or(0, |word| word.sm());
    let units = IssueUnits::for_sm(sm).ok_or(Unjudged::Architecture(sm))?;
    let insts = (0..code.instructions().len() as u32).map(Inst);
    insts
        .map(|inst| {
            let unit = units.of(operation(code.instructions()[inst.0 as usize]));
            Ok(Timed::new(code, inst, unit.ok_or(Unjudged::Unit(inst))?))
        })
        .collect()
}

/// All registers that it reads and writes, packed predicates with them. Convergence barriers keep themselves in order.
fn operands(code: &Code, inst: Inst) -> SmallVec<[Operand; 8]> {
    let spans = code.roles(inst).spans().iter().copied();
    let spans = spans.filter(|span| span.file != File::Barrier);
    let spans = spans.chain(packed(code.instructions()[inst.0 as usize]));
    spans
        .flat_map(|span| {
            let values = span.registers().filter_map(move |n| value_of(span.file, n));
            values.map(move |value| Operand { value, span })
        })
        .collect()
}

/// The predicates that P2R reads and R2P writes by a mask.
fn packed(word: Instruction) -> impl Iterator<Item = Span> {
    let role = match operation(word) {
        P2R => Some(Role::Use),
        R2P => Some(Role::Def),
        _ => None,
    };
    let mask = match bits::FORM.get(word) {
        bits::FORM_IMMEDIATE => bits::IMMEDIATE.get(word),
        _ => u32::MAX,
    };
    let numbers = (0..7).filter(move |number| mask >> number & 1 != 0);
    role.into_iter().flat_map(move |role| {
        numbers.clone().map(move |first| Span {
            role,
            file: File::Pred,
            first,
            count: 1,
            bit: MASK_BIT,
        })
    })
}

fn guard(code: &Code, inst: Inst) -> Option<Guard> {
    let mut spans = code.roles(inst).uses();
    let span = spans.find(|span| span.bit == GUARD_BIT)?;
    let is_negated = bits::GUARD_NEGATED.get(code.instructions()[inst.0 as usize]) != 0;
    Some((value_of(span.file, span.first)?, is_negated))
}

/// The mask of the control field; DEPBAR.LE, which counts on one scoreboard and waits for others whole; and
/// WARPGROUP.DEPBAR.LE, which counts groups of matrix products.
fn waits(word: Instruction) -> impl Iterator<Item = Wait> {
    let mask = Wait {
        boards: bits::WAITS.get(word) as u8,
        left: 0,
        sees_after: MASK_SEES_AFTER,
    };
    let operation = operation(word);
    let counted = match operation {
        DEPBAR => Some(1u8 << bits::COUNTED_SCOREBOARD.get(word) & (GROUPS - 1)),
        WARPGROUP if bits::IS_GROUP_WAIT.get(word) != 0 => Some(GROUPS),
        _ => None,
    };
    let counted = counted.map(|boards| Wait {
        boards,
        left: bits::COUNT_LEFT.get(word) as u8,
        sees_after: DEPBAR_SEES_AFTER,
    });
    let others = (operation == DEPBAR).then(|| Wait {
        boards: bits::ALSO_AWAITED.get(word) as u8,
        left: 0,
        sees_after: DEPBAR_SEES_AFTER,
    });
    let all = [Some(mask), counted, others].into_iter().flatten();
    all.filter(|wait| wait.boards != 0)
}

/// Scoreboards that a DEPBAR names, one bit each: it counts on them.
pub(super) fn counted(code: &Code) -> u8 {
    let words = code.instructions().iter();
    let words = words.filter(|&&word| operation(word) == DEPBAR);
    let named = words.map(|&word| {
        bits::ALSO_AWAITED.get(word) as u8 | 1u8 << bits::COUNTED_SCOREBOARD.get(word)
    });
    named.fold(0, |all, named| all | named) & (GROUPS - 1)
}
