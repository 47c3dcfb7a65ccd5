//! The register accesses that may still be going on at a point of the code, how long ago their
//! instructions were issued, and which scoreboards tell when they are over.
//!
//! Ages are the fewest cycles over all paths: stall counts add up, waits for scoreboards count as no
//! time. The set is the union over all paths.
//!
//! Most instructions only let time pass, so ages are kept as of a time of their own, and what is over stays in the set
//! for a while, where nobody sees it.

use warpwright_flow::{Function, Inst, Transfer, Value};

use super::orders::{Order, OrderKind, Orders};
use super::timing::Timing;
use super::waits::{GROUPS, MASK_SEES_AFTER, Wait, bit, commits, is_block_barrier, waits};
use crate::control::Control;
use crate::function::{Code, value_of};
use crate::inst::Instruction;
use crate::roles::{File, Role, Span};

/// Ages stop here.
const LONG_AGO: u16 = 255;
/// There is no path without a wait for a scoreboard.
pub(crate) const NO_PATH: u16 = u16::MAX;
/// After so many cycles a unit with a fixed latency has delivered: the longest distance known is 35.
pub(crate) const SETTLED: u16 = 64;
/// So many registers are looked up one by one.
const FEW: usize = 8;
/// The lowest bit of the guard's field.
const GUARD_BIT: u8 = 12;

/// A predicate that decides whether an instruction is executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Guard {
    predicate: Value,
    negated: bool,
}

/// An access of a register by an instruction that has been issued.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Access {
    /// The register.
    pub value: Value,
    /// The instruction.
    pub inst: Inst,
    /// Which of its operands.
    pub span: Span,
    /// When its ages were right, by the clock of the set.
    at: u32,
    /// Fewest cycles since the issue.
    pub age: u16,
    /// The same along the paths on which nobody has waited for a scoreboard since; [`NO_PATH`] if there is none.
    pub waitless: u16,
    /// Does it go on for an unknown time?
    pub is_late: bool,
    /// The guard, as long as its predicate has the value that it had.
    guard: Option<Guard>,
    /// Scoreboards of which each tells when the access is over, one bit each.
    pub scoreboards: u8,
    /// For each of them, fewest later instructions that count on it.
    later: [u8; 8],
    /// Scoreboards that tell through the order of a unit, one bit each, and the operations that count on them.
    told: u8,
    by: [u16; 8],
    /// The order through which it is over, and after how many cycles.
    pub order: Option<(Order, u16)>,
}

impl Access {
    fn key(&self) -> (Value, Inst, Span) {
        (self.value, self.inst, self.span)
    }

    /// Does this wait end it, if it comes late enough?
    pub fn is_ended_by(&self, wait: &Wait) -> bool {
        let mut shared = each(self.scoreboards & wait.scoreboards);
        shared.any(|s| self.later[s] >= wait.count)
    }

    /// The order by which this wait ends it, the one that needs the fewest cycles.
    fn ends_by(&self, wait: &Wait, timings: &[Timing], orders: &Orders) -> Option<(Order, u16)> {
        let shared = each(self.told & wait.scoreboards);
        let shared = shared.filter(|&s| self.later[s] >= wait.count);
        let order = |scoreboard: usize| {
            let order = Order {
                kind: OrderKind::told(self.span.role),
                earlier: timings[self.inst.0 as usize].operation,
                later: self.by[scoreboard],
            };
            Some((order, orders.needed(order)?))
        };
        shared.filter_map(order).min_by_key(|order| order.1)
    }

    /// Takes note of an order that ends it: the one that does so first, a barrier only where nothing else does.
    fn keep(&mut self, other: Option<(Order, u16)>) {
        let rank = |order: (Order, u16)| (order.0.kind == OrderKind::Barrier, order.1);
        let old = self.order.into_iter();
        self.order = old.chain(other).min_by_key(|&order| rank(order));
    }

    /// The same with its ages at another time of the clock.
    fn now(mut self, clock: u32) -> Access {
        let cycles = (clock - self.at).min(u32::from(LONG_AGO)) as u16;
        self.at = clock;
        self.age = (self.age + cycles).min(LONG_AGO);
        if self.waitless != NO_PATH {
            self.waitless = (self.waitless + cycles).min(LONG_AGO);
        }
        self
    }

    fn is_over(&self) -> bool {
        let in_order = self.order.is_some_and(|(_, cycles)| self.age >= cycles);
        !self.is_late && self.age >= SETTLED || in_order
    }
}

/// What one instruction does to the set: everything that does not depend on the way to it.
pub(crate) struct Effect {
    inst: Inst,
    bits: Instruction,
    /// The groups of asynchronous products, if it ends one.
    group: u8,
    waits: Vec<Wait>,
    /// The control field.
    pub control: Control,
    timing: Timing,
    guard: Option<Guard>,
    /// Registers that it writes.
    written: Vec<Value>,
    /// Are predicates among them?
    writes_predicates: bool,
    /// Is it executed whatever happens?
    is_certain: bool,
    /// Does it wait for the other warps of the block?
    is_block_barrier: bool,
    /// Does control go to or come back from code that is not seen?
    pub leaves: bool,
    /// Scoreboards that tell when its results have come, one bit each.
    delivered: u8,
    /// Scoreboards that tell when its sources have been read: what it delivers, it has read before.
    read: u8,
    /// Its operands by register.
    pub operands: Vec<(Value, Span)>,
}

impl Effect {
    pub fn new(code: &Code, inst: Inst, timing: Timing) -> Effect {
        let spans = code.roles(inst).spans().iter();
        let spans = spans.filter(|span| counts_as_access(**span));
        let operands = spans.flat_map(|&span| {
            let values = span.registers().filter_map(move |n| value_of(span.file, n));
            values.map(move |value| (value, span))
        });
        let operands: Vec<(Value, Span)> = operands.collect();
        let written = operands
            .iter()
            .filter(|operand| operand.1.role == Role::Def);
        let bits = code.instructions()[inst.0 as usize];
        let group = match timing.unit.has_groups && commits(bits) {
            true => GROUPS,
            false => 0,
        };
        let mut step = Effect {
            inst,
            bits,
            group,
            waits: Vec::new(),
            control: Control::default(),
            delivered: 0,
            read: 0,
            is_block_barrier: is_block_barrier(bits) && !code.is_predicated(inst),
            leaves: matches!(code.transfer(inst), Transfer::Call | Transfer::Return),
            timing,
            guard: guard(code, inst),
            writes_predicates: written
                .clone()
                .any(|operand| matches!(operand.1.file, File::Pred | File::UniformPred)),
            written: written.map(|operand| operand.0).collect(),
            is_certain: !code.is_predicated(inst),
            operands,
        };
        step.set_control(bits.control());
        step
    }

    /// The same instruction with another control field.
    pub fn set_control(&mut self, control: Control) {
        self.waits.clear();
        self.waits.extend(waits(self.bits, control.wait_mask));
        self.delivered = bit(control.write_barrier) | self.group;
        self.read = self.delivered | bit(control.read_barrier);
        self.control = control;
    }

    /// Scoreboards that tell when an operand is no longer in use.
    fn scoreboards(&self, span: Span) -> u8 {
        let comes_early = self.timing.unit.tells_early && span.file == File::Pred;
        match span.role == Role::Def && !comes_early {
            true => self.delivered,
            false => self.read,
        }
    }
}

/// The accesses that may be going on before an instruction, ascending by register, instruction,
/// operand.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Pending {
    accesses: Vec<Access>,
    /// Cycles that have passed.
    clock: u32,
    /// When all ages were right and nothing in the set was over.
    settled: u32,
}

impl Pending {
    /// All of them.
    pub fn all(&self) -> impl Iterator<Item = Access> + '_ {
        self.live(&self.accesses)
    }

    /// The accesses of one register.
    pub fn of(&self, value: Value) -> impl Iterator<Item = Access> + '_ {
        let from = self.accesses.partition_point(|a| a.value < value);
        let own = self.accesses[from..].iter();
        let count = own.take_while(|a| a.value == value).count();
        self.live(&self.accesses[from..from + count])
    }

    fn live<'a>(&self, accesses: &'a [Access]) -> impl Iterator<Item = Access> + use<'a> {
        let clock = self.clock;
        let accesses = accesses.iter().map(move |access| access.now(clock));
        accesses.filter(|access| !access.is_over())
    }

    /// So much time passes.
    pub fn pass(&mut self, cycles: u16) {
        /// So often what is over is taken out.
        const OFTEN: u32 = 32;
        self.clock += u32::from(cycles);
        if self.clock - self.settled >= OFTEN {
            self.settle();
        }
    }

    /// Makes all ages right, and takes out what is over.
    fn settle(&mut self) {
        let clock = self.clock;
        self.settled = clock;
        self.accesses.retain_mut(|access| {
            *access = access.now(clock);
            !access.is_over()
        });
    }

    /// Takes in what may be going on along another path; says whether that changed anything.
    pub fn join(&mut self, other: &Pending) -> bool {
        self.settle();
        let at = self.clock;
        let theirs = other.all().map(move |access| Access { at, ..access });
        if self.accesses.is_empty() {
            self.accesses = theirs.collect();
            return !self.accesses.is_empty();
        }
        let mut joined = Vec::with_capacity(self.accesses.len().max(other.accesses.len()));
        let mut ours = self.accesses.iter().copied().peekable();
        let mut theirs = theirs.peekable();
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
                (Some(a), Some(b)) => Some(worse(&a, &b)),
                (a, b) => a.or(b),
            });
        }
        let changed = joined != self.accesses;
        self.accesses = joined;
        changed
    }

    /// Ends the accesses that the instruction is sure to have awaited before it issues.
    pub fn wait(&mut self, step: &Effect, timings: &[Timing], orders: &Orders) {
        if step.waits.is_empty() {
            return;
        }
        self.settle();
        for wait in &step.waits {
            self.accesses.retain_mut(|access| {
                let is_seen = access.age >= wait.sees_after;
                if is_seen && access.is_ended_by(wait) {
                    return false;
                }
                access.waitless = NO_PATH;
                if is_seen && access.told & wait.scoreboards != 0 {
                    access.keep(access.ends_by(wait, timings, orders));
                }
                true
            });
        }
    }

    /// Issues the instruction, and leaves where it does so.
    pub fn issue(&mut self, step: &Effect, timings: &[Timing], orders: &Orders) {
        self.issue_without_leaving(step, timings, orders);
        if step.leaves && step.is_certain {
            self.accesses.clear();
        }
    }

    /// Issues the instruction: its accesses begin, later instructions depend on it instead of what it
    /// overwrites, and time passes.
    pub fn issue_without_leaving(&mut self, step: &Effect, timings: &[Timing], orders: &Orders) {
        self.kill(step);
        if step.writes_predicates || step.read != 0 {
            for access in &mut self.accesses {
                access.guard = access
                    .guard
                    .filter(|g| !step.written.contains(&g.predicate));
                if step.read != 0 {
                    count(access, step, timings, orders);
                }
            }
        }
        if step.is_block_barrier {
            self.pass_barrier(timings, orders);
        }
        self.drop_what_goes_before(step, timings, orders);
        if is_interlocked(step.control) {
            for access in &mut self.accesses {
                access.waitless = NO_PATH;
            }
        } else {
            self.begin(step);
        }
        let stall = match is_interlocked(step.control) {
            true => MASK_SEES_AFTER,
            false => u16::from(step.control.stall),
        };
        self.pass(stall);
    }

    /// Drops the accesses of registers that the instruction is sure to write where it matters.
    fn kill(&mut self, step: &Effect) {
        let kills =
            |access: &Access| step.is_certain || step.guard.is_some() && access.guard == step.guard;
        if step.written.len() > FEW {
            let keeps = |a: &Access| !(kills(a) && step.written.contains(&a.value));
            self.accesses.retain(keeps);
            return;
        }
        for &value in &step.written {
            let from = self.accesses.partition_point(|a| a.value < value);
            let count = self.accesses[from..].partition_point(|a| a.value == value);
            let own = &self.accesses[from..from + count];
            if own.iter().all(kills) {
                self.accesses.drain(from..from + count);
            } else if own.iter().any(kills) {
                self.accesses.retain(|a| a.value != value || !kills(a));
            }
        }
    }

    /// The other warps of the block have come, too.
    fn pass_barrier(&mut self, timings: &[Timing], orders: &Orders) {
        let ends = |access: &Access| {
            let timing = timings[access.inst.0 as usize];
            let order = Order {
                kind: OrderKind::Barrier,
                earlier: timing.operation,
                later: 0,
            };
            let is_read = access.span.role == Role::Use && access.is_late;
            let may = is_read && timing.unit.reads_before_barrier;
            Some((order, orders.needed(order)?)).filter(|_| may)
        };
        self.settle();
        for access in &mut self.accesses {
            access.keep(ends(access));
        }
    }

    /// A unit that reads in order has read a register for earlier instructions once it has for this
    /// one: whoever waits for this one waits for them.
    fn drop_what_goes_before(&mut self, step: &Effect, timings: &[Timing], orders: &Orders) {
        let Some(queue) = step.timing.queue(Role::Use) else {
            return;
        };
        let replaces = |access: &Access| {
            let earlier = timings[access.inst.0 as usize];
            let covered = step.is_certain || step.guard.is_some() && access.guard == step.guard;
            let order = Order {
                kind: OrderKind::Read,
                earlier: earlier.operation,
                later: step.timing.operation,
            };
            // While orders are looked for, what one has ended needs no second one.
            let is_sure = match orders.are_looked_for() {
                true => order.earlier == order.later && access.order.is_some(),
                false => orders
                    .needed(order)
                    .is_some_and(|cycles| access.age >= cycles),
            };
            let same_queue = earlier.queue(Role::Use) == Some(queue);
            access.span.role == Role::Use && access.is_late && same_queue && covered && is_sure
        };
        for &(value, span) in &step.operands {
            if span.role == Role::Def || !step.timing.is_late(span) || is_interlocked(step.control)
            {
                continue;
            }
            if self.of(value).any(|access| replaces(&access)) {
                let clock = self.clock;
                self.accesses
                    .retain(|access| access.value != value || !replaces(&access.now(clock)));
            }
        }
    }

    fn begin(&mut self, step: &Effect) {
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
                at: self.clock,
                age: 0,
                waitless: 0,
                is_late: step.timing.is_late(span),
                guard,
                scoreboards: step.scoreboards(span),
                later: [0; 8],
                told: 0,
                by: [0; 8],
                order: None,
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
        waitless: a.waitless.min(b.waitless),
        guard: a.guard.filter(|_| a.guard == b.guard),
        scoreboards: a.scoreboards & b.scoreboards,
        later: std::array::from_fn(|s| a.later[s].min(b.later[s])),
        told: a.told & b.told,
        order: a.order.zip(b.order).map(|(a, b)| match a.1 >= b.1 {
            true => a,
            false => b,
        }),
        ..*a
    }
}

/// Takes note that an instruction behind `access` counts on scoreboards. Where the two go through one
/// queue, and their order is known, the later one's scoreboards speak for both, whatever their guards: ptxas relies
/// on that for predicates that exclude each other.
fn count(access: &mut Access, step: &Effect, timings: &[Timing], orders: &Orders) {
    for scoreboard in each((access.scoreboards | access.told) & step.read) {
        access.later[scoreboard] = access.later[scoreboard].saturating_add(1);
    }
    let role = access.span.role;
    let earlier = timings[access.inst.0 as usize];
    let queue = earlier.queue(role);
    if !access.is_late || queue.is_none() || queue != step.timing.queue(role) {
        return;
    }
    let order = Order {
        kind: OrderKind::told(role),
        earlier: earlier.operation,
        later: step.timing.operation,
    };
    let also = match role {
        Role::Def => step.delivered,
        Role::Use => step.read,
    };
    // A group ends with all that belong to it: the instruction set says so.
    if earlier.unit.has_groups {
        for scoreboard in each(also & !access.scoreboards) {
            access.later[scoreboard] = 0;
        }
        access.scoreboards |= also;
        return;
    }
    if orders.needed(order).is_none() {
        return;
    }
    let new = also & !access.scoreboards & !access.told;
    for scoreboard in each(new) {
        access.later[scoreboard] = 0;
        access.by[scoreboard] = order.later;
    }
    access.told |= new;
}

/// The numbers of the scoreboards in a set.
fn each(set: u8) -> impl Iterator<Item = usize> {
    (0..8).filter(move |scoreboard| set >> scoreboard & 1 != 0)
}

/// Must an instruction keep its distance from `access` with this operand? Reads do not wait for
/// reads, and threads that execute an instruction do not execute another with the opposite guard.
pub(crate) fn depends(access: &Access, step: &Effect, later: Span) -> bool {
    let writes = access.span.role == Role::Def || later.role == Role::Def;
    let guards = access.guard.zip(step.guard);
    let excluded =
        guards.is_some_and(|(a, b)| a.predicate == b.predicate && a.negated != b.negated);
    // The guard itself is read whatever its value.
    writes && (!excluded || later.role == Role::Use && later.bit == GUARD_BIT)
}

/// Is it the operand that decides whether the instruction is executed?
pub(crate) fn is_guard(span: Span) -> bool {
    span.role == Role::Use && span.bit == GUARD_BIT
}

/// No stall and the yield bit clear: the next instruction waits until this one is done, which takes
/// some cycles. Unoptimized
/// code is nothing else: 180,632 instructions with this control field and no scoreboard at all.
fn is_interlocked(control: Control) -> bool {
    control.stall == 0 && !control.yield_bit
}

/// Convergence barriers keep themselves in order.
fn counts_as_access(span: Span) -> bool {
    span.file != File::Barrier
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
