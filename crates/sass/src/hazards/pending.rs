//! The register accesses that may still be going on at a point of the code, how long ago their
//! instructions were issued, and which scoreboards tell when they are over.
//!
//! Ages are the fewest cycles over all paths: stall counts add up, waits for scoreboards count as no
//! time. The set is the union over all paths.

use warpwright_flow::{Function, Inst, Value};

use super::timing::Timing;
use crate::control::Control;
use crate::function::{Code, value_of};
use crate::inst::Instruction;
use crate::roles::{File, Role, Span};

/// Ages stop here.
const LONG_AGO: u16 = 255;
/// After so many cycles a unit with a fixed latency has delivered: the longest distance known is 35.
const SETTLED: u16 = 64;
/// Cycles from the issue of an instruction to the first wait that sees its scoreboards: no two
/// instructions of the corpus are closer.
const SCOREBOARD_SEEN: u16 = 2;
/// The lowest bit of the guard's field.
const GUARD_BIT: u8 = 12;

/// A predicate that decides whether an instruction is executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Guard {
    predicate: Value,
    negated: bool,
}

/// An access of a register by an instruction that has been issued.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Access {
    /// The register.
    pub value: Value,
    /// The instruction.
    pub inst: Inst,
    /// Which of its operands.
    pub span: Span,
    /// Fewest cycles since the issue.
    pub age: u16,
    /// Does it go on for an unknown time?
    pub is_late: bool,
    /// The guard, as long as its predicate has the value that it had.
    guard: Option<Guard>,
    /// Scoreboards of which each tells when the access is over, one bit each.
    pub scoreboards: u8,
    /// Fewest later instructions that count on all of these scoreboards.
    later: u8,
}

impl Access {
    fn key(&self) -> (Value, Inst, Span) {
        (self.value, self.inst, self.span)
    }

    fn is_over(&self) -> bool {
        !self.is_late && self.age >= SETTLED
    }
}

/// What one instruction does to the set: everything that does not depend on the way to it.
pub(super) struct Step {
    inst: Inst,
    waits: Vec<Wait>,
    control: Control,
    timing: Timing,
    guard: Option<Guard>,
    /// Registers that it writes.
    written: Vec<Value>,
    /// Is it executed whatever happens?
    is_certain: bool,
    /// Its operands by register.
    pub operands: Vec<(Value, Span)>,
}

impl Step {
    pub fn new(code: &Code, inst: Inst, timing: Timing) -> Step {
        let bits = code.instructions()[inst.0 as usize];
        let spans = code.roles(inst).spans().iter();
        let spans = spans.filter(|span| counts_as_access(bits, **span));
        let operands = spans.flat_map(|&span| {
            let values = span.registers().filter_map(move |n| value_of(span.file, n));
            values.map(move |value| (value, span))
        });
        let operands: Vec<(Value, Span)> = operands.collect();
        let written = operands
            .iter()
            .filter(|operand| operand.1.role == Role::Def);
        Step {
            inst,
            waits: waits(bits).collect(),
            control: bits.control(),
            timing,
            guard: guard(code, inst),
            written: written.map(|operand| operand.0).collect(),
            is_certain: !code.is_predicated(inst),
            operands,
        }
    }

    /// Scoreboards that tell when an operand is no longer in use.
    fn scoreboards(&self, span: Span) -> u8 {
        let only_result = span.role == Role::Def;
        match only_result && !(self.timing.tells_early && span.file == File::Pred) {
            true => bit(self.control.write_barrier),
            // What the instruction delivers, it has read before.
            false => self.counts(),
        }
    }

    /// The scoreboards that it counts on.
    fn counts(&self) -> u8 {
        bit(self.control.write_barrier) | bit(self.control.read_barrier)
    }
}

/// The accesses that may be going on before an instruction, ascending by register, instruction,
/// operand.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Pending {
    accesses: Vec<Access>,
}

impl Pending {
    /// The accesses of one register.
    pub fn of(&self, value: Value) -> &[Access] {
        let from = self.accesses.partition_point(|a| a.value < value);
        let rest = &self.accesses[from..];
        &rest[..rest.partition_point(|a| a.value == value)]
    }

    /// Takes in what may be going on along another path; says whether that changed anything.
    pub fn join(&mut self, other: &Pending) -> bool {
        let mut joined = Vec::with_capacity(self.accesses.len().max(other.accesses.len()));
        let (mut ours, mut theirs) = (
            self.accesses.iter().peekable(),
            other.accesses.iter().peekable(),
        );
        loop {
            let order = match (ours.peek(), theirs.peek()) {
                (None, None) => break,
                (Some(_), None) => std::cmp::Ordering::Less,
                (None, Some(_)) => std::cmp::Ordering::Greater,
                (Some(a), Some(b)) => a.key().cmp(&b.key()),
            };
            let a = ours.next_if(|_| order.is_le());
            let b = theirs.next_if(|_| order.is_ge());
            joined.extend(match (a, b) {
                (Some(a), Some(b)) => Some(worse(a, b)),
                (a, b) => a.or(b).copied(),
            });
        }
        let changed = joined != self.accesses;
        self.accesses = joined;
        changed
    }

    /// Ends the accesses that the instruction is sure to have awaited before it issues.
    pub fn wait(&mut self, step: &Step) {
        for wait in &step.waits {
            self.accesses.retain(|access| {
                access.age < SCOREBOARD_SEEN
                    || access.scoreboards & wait.scoreboards == 0
                    || access.later < wait.count
            });
        }
    }

    /// Issues the instruction: its accesses begin, later instructions depend on it instead of what it
    /// overwrites, and time passes.
    pub fn issue(&mut self, step: &Step, timings: &[Timing]) {
        self.accesses.retain(|access| {
            let kills = step.is_certain || step.guard.is_some() && access.guard == step.guard;
            !(kills && step.written.contains(&access.value))
        });
        let counts = step.counts();
        for access in &mut self.accesses {
            access.guard = access
                .guard
                .filter(|g| !step.written.contains(&g.predicate));
            if counts != 0 {
                count(access, step, timings);
            }
        }
        if !is_interlocked(step.control) {
            self.begin(step);
        }
        let stall = u16::from(step.control.stall);
        for access in &mut self.accesses {
            access.age = (access.age + stall).min(LONG_AGO);
        }
        self.accesses.retain(|access| !access.is_over());
    }

    fn begin(&mut self, step: &Step) {
        let guard = step.guard.filter(|g| !step.written.contains(&g.predicate));
        for &(value, span) in &step.operands {
            // The instruction's own result comes after its sources.
            if span.role == Role::Use && step.written.contains(&value) {
                continue;
            }
            self.put(Access {
                value,
                inst: step.inst,
                span,
                age: 0,
                is_late: step.timing.is_late(span),
                guard,
                scoreboards: step.scoreboards(span),
                later: 0,
            });
        }
    }

    fn put(&mut self, access: Access) {
        let place = self
            .accesses
            .binary_search_by_key(&access.key(), Access::key);
        match place {
            Ok(at) => self.accesses[at] = access,
            Err(at) => self.accesses.insert(at, access),
        }
    }
}

/// An access that may have come along two ways.
fn worse(a: &Access, b: &Access) -> Access {
    Access {
        age: a.age.min(b.age),
        guard: a.guard.filter(|_| a.guard == b.guard),
        scoreboards: a.scoreboards & b.scoreboards,
        later: a.later.min(b.later),
        ..*a
    }
}

/// Takes note that an instruction behind `access` counts on scoreboards. Where the two go through one
/// queue, the later one's scoreboards speak for both, whatever their guards: ptxas relies on that
/// for predicates that exclude each other.
fn count(access: &mut Access, step: &Step, timings: &[Timing]) {
    let counts = step.counts();
    if access.scoreboards != 0 && access.scoreboards & !counts == 0 {
        access.later = access.later.saturating_add(1);
    }
    let role = access.span.role;
    let queue = timings[access.inst.0 as usize].queue(role);
    if queue.is_none() || queue != step.timing.queue(role) {
        return;
    }
    let also = match role {
        Role::Def => bit(step.control.write_barrier),
        Role::Use => counts,
    };
    if also & !access.scoreboards != 0 {
        access.scoreboards |= also;
        access.later = 0;
    }
}

/// Must an instruction keep its distance from `access` with this operand? Reads do not wait for
/// reads, and threads that execute an instruction do not execute another with the opposite guard.
pub(super) fn depends(access: &Access, step: &Step, later: Span) -> bool {
    let writes = access.span.role == Role::Def || later.role == Role::Def;
    let guards = access.guard.zip(step.guard);
    let excluded =
        guards.is_some_and(|(a, b)| a.predicate == b.predicate && a.negated != b.negated);
    // The guard itself is read whatever its value.
    writes && (!excluded || later.role == Role::Use && later.bit == GUARD_BIT)
}

/// Is it the operand that decides whether the instruction is executed?
pub(super) fn is_guard(span: Span) -> bool {
    span.role == Role::Use && span.bit == GUARD_BIT
}

/// No stall and the yield bit clear: the next instruction waits until this one is done. Unoptimized
/// code is nothing else: 180,632 instructions with this control field and no scoreboard at all.
fn is_interlocked(control: Control) -> bool {
    control.stall == 0 && !control.yield_bit
}

/// Convergence barriers keep themselves in order. The predicate of LDGSTS is a source, though
/// nvdisasm counts it as written, too: ptxas overwrites it with nothing in between.
fn counts_as_access(inst: Instruction, span: Span) -> bool {
    const LDGSTS: u16 = 0x1ae;
    let is_only_read = inst.operation() == LDGSTS && span.file == File::Pred;
    span.file != File::Barrier && !(is_only_read && span.role == Role::Def)
}

fn guard(code: &Code, inst: Inst) -> Option<Guard> {
    let bits = code.instructions()[inst.0 as usize].bits();
    let spans = code.roles(inst).spans().iter();
    let span = spans.copied().find(|&span| is_guard(span))?;
    Some(Guard {
        predicate: value_of(span.file, span.first)?,
        negated: bits >> (GUARD_BIT + 3) & 1 != 0,
    })
}

/// A wait for scoreboards.
struct Wait {
    /// One bit each.
    scoreboards: u8,
    /// How many instructions may still be counted on the scoreboard; the oldest end first.
    count: u8,
}

/// What an instruction waits for before it issues: the mask, and the operand of DEPBAR.LE.
fn waits(inst: Instruction) -> impl Iterator<Item = Wait> {
    const DEPBAR: u128 = 0x91a;
    let bits = inst.bits();
    let field = |at: u32, width: u32| (bits >> at) as u8 & ((1 << width) - 1);
    let mask = Wait {
        scoreboards: inst.control().wait_mask,
        count: 0,
    };
    let counted = Wait {
        scoreboards: 1 << field(44, 3),
        count: field(38, 6),
    };
    let mask = Some(mask).filter(|wait| wait.scoreboards != 0);
    let counted = Some(counted).filter(|_| bits & 0xfff == DEPBAR);
    mask.into_iter().chain(counted)
}

fn bit(scoreboard: Option<u8>) -> u8 {
    scoreboard.map_or(0, |s| 1 << s)
}
