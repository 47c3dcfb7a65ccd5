//! What is still under way when an instruction issues: the judge's own walk after dependences.
//!
//! Goal: to find every pair of accesses of a register that must keep its order, and whether something keeps it: cycles,
//! a scoreboard that is awaited, or a unit that works in order. The hazard checker of `sass` knows the same things, but
//! whoever writes control fields writes them after that one, so nothing of it is used here.
//!
//! Method: each access is followed by itself, from its instruction along all paths, until it is over, or another access
//! has taken its place, or nothing can meet it any more. What is known on the way (the fewest cycles, the scoreboards
//! that tell of it on every path) only becomes less where paths meet, so it ends.
//!
//! 1. *Time.* A stall counts its cycles, a wait for a scoreboard none. What is read and written at a fixed time is over
//!    after [`SETTLED`] cycles.
//! 2. *Scoreboards.* An access that takes an unknown time is over behind a wait for one that its instruction set, unless
//!    the wait came too early to see it, or counts and leaves as many. So it is behind a wait for one that a later
//!    instruction of the same queue set, where ptxas relies on such orders.
//! 3. *Guards.* Instructions under opposite guards do not meet, as long as the predicate is the same.
//!
//! The model and its figures are those of docs/sass.md.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};

use warpwright_flow::{Block, Cfg, EntityRef as _, Function as _, Inst, Value};
use warpwright_sass::function::Code;
use warpwright_sass::roles::{Role, Span};

use super::habits::{Habits, OrderKind};
use super::timing::{NO_FIELD, Operand, SCOREBOARDS, Timed, Wait};

/// After so many cycles a unit with a fixed latency has delivered: the longest distance known is 35.
const SETTLED: u16 = 64;
/// Ages stop here.
const LONG_AGO: u16 = 255;
/// The lowest bit of the first factor of a matrix product.
const FIRST_FACTOR: u8 = 24;
/// No time is enough.
const NEVER: u16 = u16::MAX;

/// The order that two accesses of a register must keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Kind {
    /// Read after write.
    Raw,
    /// Write after read.
    War,
    /// Write after write.
    Waw,
}

/// One access of a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Access {
    pub(super) inst: Inst,
    pub(super) operand: Operand,
}

impl Access {
    /// Its instruction; `None` for code that is not seen.
    pub(super) fn timed(self, all: &[Timed]) -> Option<&Timed> {
        (self.operand.span.bit != NO_FIELD).then(|| &all[self.inst.index()])
    }
}

/// Two accesses of one register, at least one of which writes it, that neither a wait nor a unit's order keeps apart on
/// every path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Dependence {
    pub(super) kind: Kind,
    pub(super) earlier: Access,
    pub(super) later: Access,
    /// Fewest cycles from issue to issue; waits count as none.
    pub(super) cycles: u16,
    /// Is the earlier one over only when a scoreboard says so? Then nothing keeps the two apart.
    pub(super) is_late: bool,
}

/// A scoreboard that tells when an access is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ticket {
    /// Fewest later instructions that count on it, too.
    later: u8,
    /// Fewest cycles since whoever speaks for the access set it.
    age: u16,
    /// From so many cycles behind the access on it is over, once this was awaited.
    needs: u16,
}

/// One for each scoreboard, and for groups.
type Tickets = [Option<Ticket>; SCOREBOARDS as usize + 1];

/// What is known of an access that is under way, along all paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Way {
    age: u16,
    /// Has the predicate of its guard the value that it had?
    is_guarded: bool,
    tickets: Tickets,
    /// From this age on it is over.
    over_at: u16,
}

impl Way {
    fn is_over(&self) -> bool {
        self.age >= self.over_at
    }

    fn pass(&mut self, cycles: u16) {
        self.age = (self.age + cycles).min(LONG_AGO);
        for ticket in self.tickets.iter_mut().flatten() {
            ticket.age = (ticket.age + cycles).min(LONG_AGO);
        }
    }

    /// Takes in what is known along another path; says whether that changed anything.
    fn join(&mut self, other: &Way) -> bool {
        let before = *self;
        self.age = self.age.min(other.age);
        self.is_guarded &= other.is_guarded;
        self.over_at = self.over_at.max(other.over_at);
        for (own, other) in self.tickets.iter_mut().zip(other.tickets) {
            *own = own.zip(other).map(|(a, b)| Ticket {
                later: a.later.min(b.later),
                age: a.age.min(b.age),
                needs: a.needs.max(b.needs),
            });
        }
        *self != before
    }

    /// Ends it where this wait sees that it is over.
    fn wait(&mut self, wait: &Wait) {
        if self.age < wait.sees_after {
            return;
        }
        let tickets = each(wait.boards).filter_map(|board| self.tickets[board]);
        let seen = tickets.filter(|t| t.age >= wait.sees_after && t.later >= wait.left);
        let needs = seen.map(|ticket| ticket.needs).min();
        self.over_at = needs.map_or(self.over_at, |needs| needs.min(self.over_at));
    }
}

/// The numbers of scoreboards.
fn each(boards: u8) -> impl Iterator<Item = usize> {
    (0..=SCOREBOARDS as usize).filter(move |board| boards >> board & 1 != 0)
}

/// Visits all dependences, earlier instructions first.
pub(super) fn dependences(
    code: &Code,
    timed: &[Timed],
    habits: &Habits,
    mut visit: impl FnMut(Dependence),
) {
    let mut walk = Walk::new(code, timed, habits);
    for one in timed.iter().filter(|one| !one.is_interlocked) {
        for &operand in &one.operands {
            // Its own result comes after its sources.
            if operand.span.role == Role::Use && one.written.contains(&operand.value) {
                continue;
            }
            let access = Access {
                inst: one.inst,
                operand,
            };
            walk.follow(access, &mut visit);
        }
    }
}

/// What was found of one access, by the later one.
type Found = BTreeMap<(Inst, Span), Dependence>;

struct Walk<'c> {
    cfg: Cfg,
    timed: &'c [Timed],
    habits: &'c Habits,
    /// By register: the instructions that meet it, ascending; those that lead to code which is not seen meet all.
    meets: Vec<Vec<u32>>,
    /// By register: the blocks from whose beginning something meets it.
    reaches: Vec<OnceCell<Vec<bool>>>,
    /// What is known where a block begins.
    ways: Vec<Option<Way>>,
}

impl<'c> Walk<'c> {
    fn new(code: &Code, timed: &'c [Timed], habits: &'c Habits) -> Walk<'c> {
        let cfg = Cfg::new(code);
        let mut meets: Vec<Vec<u32>> = vec![Vec::new(); code.value_count()];
        for one in timed {
            let note = |all: &mut Vec<u32>| {
                if all.last() != Some(&one.inst.0) {
                    all.push(one.inst.0);
                }
            };
            let named = one.operands.iter().map(|operand| operand.value.index());
            match one.leaves {
                true => meets.iter_mut().for_each(note),
                false => named.for_each(|value| note(&mut meets[value])),
            }
        }
        Walk {
            ways: vec![None; cfg.block_count()],
            reaches: meets.iter().map(|_| OnceCell::new()).collect(),
            cfg,
            timed,
            habits,
            meets,
        }
    }

    /// The next instruction from `from` on that meets a register.
    fn next_meeting(&self, value: Value, from: u32) -> Option<u32> {
        let all = &self.meets[value.index()];
        all.get(all.partition_point(|&at| at < from)).copied()
    }

    /// Does something meet the register from the beginning of a block on?
    fn reaches(&self, value: Value, block: Block) -> bool {
        let find = || {
            let mut found = vec![false; self.cfg.block_count()];
            let all = self.meets[value.index()].iter();
            let mut work: Vec<Block> = all.map(|&at| self.cfg.block_of(Inst(at))).collect();
            while let Some(block) = work.pop() {
                if !std::mem::replace(&mut found[block.index()], true) {
                    work.extend(self.cfg.preds(block));
                }
            }
            found
        };
        self.reaches[value.index()].get_or_init(find)[block.index()]
    }

    /// Follows one access until it is over on every path.
    fn follow(&mut self, access: Access, visit: impl FnMut(Dependence)) {
        let mut found = Found::new();
        let block = self.cfg.block_of(access.inst);
        let mut touched = Vec::new();
        let mut work = BTreeSet::new();
        let begun = self.begin(access, &mut found);
        let mut next = begun
            .and_then(|way| self.pass_block(access, way, (block, access.inst.0 + 1), &mut found));
        let mut at = block;
        loop {
            if let Some(way) = next {
                self.go_on(access, way, at, &mut touched, &mut work);
            }
            let Some((_, block)) = work.pop_first() else {
                break;
            };
            at = block;
            let first = self.cfg.first_inst(block).0;
            let way = self.ways[block.index()];
            next = way.and_then(|way| self.pass_block(access, way, (block, first), &mut found));
        }
        for block in touched {
            self.ways[block.index()] = None;
        }
        found.into_values().for_each(visit);
    }

    /// The access when its own instruction has issued; `None` if control leaves with it.
    fn begin(&self, access: Access, found: &mut Found) -> Option<Way> {
        let own = &self.timed[access.inst.index()];
        let span = access.operand.span;
        let mut way = Way {
            age: 0,
            is_guarded: own
                .guard
                .is_some_and(|guard| !own.written.contains(&guard.0)),
            tickets: [None; _],
            over_at: match own.is_late(span) {
                true => NEVER,
                false => SETTLED,
            },
        };
        for board in each(own.tells(span)) {
            way.tickets[board] = Some(Ticket {
                later: 0,
                age: 0,
                needs: 0,
            });
        }
        way.pass(own.cycles);
        if own.leaves {
            self.leave(access, &way, own, found);
        }
        (!own.leaves || !own.is_certain).then_some(way)
    }

    /// Takes it to the blocks behind `block` where something meets it.
    fn go_on(
        &mut self,
        access: Access,
        way: Way,
        block: Block,
        touched: &mut Vec<Block>,
        work: &mut BTreeSet<(u32, Block)>,
    ) {
        for &succ in self.cfg.succs(block) {
            if !self.reaches(access.operand.value, succ) {
                continue;
            }
            let is_new = match &mut self.ways[succ.index()] {
                Some(known) => known.join(&way),
                none => {
                    *none = Some(way);
                    touched.push(succ);
                    true
                }
            };
            if is_new {
                work.insert((self.cfg.rpo_number(succ).unwrap_or(u32::MAX), succ));
            }
        }
    }

    /// Follows it from an instruction to the end of its block; `None` if it is over there.
    fn pass_block(
        &self,
        access: Access,
        mut way: Way,
        (block, from): (Block, u32),
        found: &mut Found,
    ) -> Option<Way> {
        let end = self.cfg.last_inst(block).0 + 1;
        let value = access.operand.value;
        let mut succs = self.cfg.succs(block).iter();
        let goes_on = succs.any(|&succ| self.reaches(value, succ));
        let mut next = self.next_meeting(value, from);
        for at in from..end {
            if next.is_none_or(|next| next >= end) && !goes_on {
                return None;
            }
            let here = &self.timed[at as usize];
            here.waits.iter().for_each(|wait| way.wait(wait));
            if way.is_over() {
                return None;
            }
            let is_met = next == Some(at);
            if !self.pass(access, &mut way, here, is_met, found) {
                return None;
            }
            if is_met {
                next = self.next_meeting(value, at + 1);
            }
        }
        goes_on.then_some(way)
    }

    /// Issues an instruction; says whether the access is still under way behind it.
    fn pass(
        &self,
        access: Access,
        way: &mut Way,
        here: &Timed,
        is_met: bool,
        found: &mut Found,
    ) -> bool {
        let own = &self.timed[access.inst.index()];
        let is_covered = here.is_certain || way.is_guarded && here.guard == own.guard;
        if is_met {
            self.meet(access, way, here, found);
            // What overwrites it takes its place, and so does its own next time; under a guard that may have changed
            // that may not come.
            let replaces = here.inst == access.inst || here.written.contains(&access.operand.value);
            if replaces && is_covered {
                return false;
            }
        }
        if own
            .guard
            .is_some_and(|guard| here.written.contains(&guard.0))
        {
            way.is_guarded = false;
        }
        self.count(own, access.operand.span, way, here);
        if here.is_block_barrier {
            self.pass_barrier(own, access.operand.span, way);
        }
        if is_met && is_covered && self.goes_before(access, way, here) {
            return false;
        }
        way.pass(here.cycles);
        if here.leaves && !way.is_over() {
            self.leave(access, way, here, found);
        }
        !(way.is_over() || here.leaves && here.is_certain)
    }

    /// Code that is not seen may use any register at once.
    fn leave(&self, access: Access, way: &Way, here: &Timed, found: &mut Found) {
        let kind = match access.operand.span.role {
            Role::Use => Kind::War,
            Role::Def => Kind::Raw,
        };
        let mut operand = access.operand;
        operand.span.bit = NO_FIELD;
        let later = Access {
            inst: here.inst,
            operand,
        };
        self.note((access, later, kind), way, found);
    }

    /// Holds it against the operands of an instruction.
    fn meet(&self, access: Access, way: &Way, here: &Timed, found: &mut Found) {
        let own = &self.timed[access.inst.index()];
        let guards = own.guard.filter(|_| way.is_guarded).zip(here.guard);
        let is_excluded = guards.is_some_and(|(a, b)| a.0 == b.0 && a.1 != b.1);
        let operands = here.operands.iter();
        for &operand in operands.filter(|one| one.value == access.operand.value) {
            let kind = match (access.operand.span.role, operand.span.role) {
                (Role::Use, Role::Use) => continue,
                (Role::Use, Role::Def) => Kind::War,
                (Role::Def, Role::Use) => Kind::Raw,
                (Role::Def, Role::Def) => Kind::Waw,
            };
            // A guard itself is read whatever its value.
            if is_excluded && !operand.is_guard()
                || self.is_in_order((own, access.operand), (here, operand), kind, way.age)
            {
                continue;
            }
            let later = Access {
                inst: here.inst,
                operand,
            };
            self.note((access, later, kind), way, found);
        }
    }

    fn note(&self, (earlier, later, kind): (Access, Access, Kind), way: &Way, found: &mut Found) {
        let span = earlier.operand.span;
        let here = Dependence {
            kind,
            earlier,
            later,
            cycles: way.age,
            is_late: self.timed[earlier.inst.index()].is_late(span),
        };
        let known = found
            .entry((later.inst, later.operand.span))
            .or_insert(here);
        known.cycles = known.cycles.min(way.age);
    }

    /// Does a unit keep two accesses in order, so many cycles apart?
    fn is_in_order(
        &self,
        (own, earlier): (&Timed, Operand),
        (here, later): (&Timed, Operand),
        kind: Kind,
        age: u16,
    ) -> bool {
        if !own.is_late(earlier.span) {
            let is_same = own.unit.name == here.unit.name && !own.unit.has_shapes;
            return kind == Kind::Waw
                && !own.takes_unknown_time()
                && is_same
                && !here.takes_unknown_time();
        }
        // Products add to the sums of those before them.
        if kind == Kind::Raw {
            return own.unit.has_groups
                && own.unit == here.unit
                && earlier.span.registers() == later.span.registers()
                && later.span.bit != FIRST_FACTOR;
        }
        // It writes what it has read before.
        let (queue, order) = match kind {
            Kind::Waw => (here.unit.results, OrderKind::Waw),
            _ => (here.unit.sources, OrderKind::War),
        };
        let of_own = own.queue(earlier.span.role);
        if of_own.is_none() || of_own != queue {
            return false;
        }
        let needs = || self.habits.order(order, own.operation, here.operation);
        own.unit.has_groups || needs().is_some_and(|needs| age >= needs)
    }

    /// A later instruction counts on scoreboards; where it goes through the same queue, they may speak for the access.
    fn count(&self, own: &Timed, span: Span, way: &mut Way, here: &Timed) {
        if here.read == 0 {
            return;
        }
        for board in each(here.read) {
            if let Some(ticket) = &mut way.tickets[board] {
                ticket.later = ticket.later.saturating_add(1);
            }
        }
        let queue = own.queue(span.role);
        if !own.is_late(span) || queue.is_none() || queue != here.queue(span.role) {
            return;
        }
        let boards = match span.role {
            Role::Def => here.delivered,
            Role::Use => here.read,
        };
        let needs = match own.unit.has_groups {
            // A group ends with all that belong to it.
            true => Some(0),
            false => {
                let kind = OrderKind::told(span.role);
                self.habits.order(kind, own.operation, here.operation)
            }
        };
        let Some(needs) = needs else { return };
        for board in each(boards) {
            let new = Ticket {
                later: 0,
                age: 0,
                needs,
            };
            way.tickets[board].get_or_insert(new);
        }
    }

    /// The other warps of the block have come, too.
    fn pass_barrier(&self, own: &Timed, span: Span, way: &mut Way) {
        let is_reader = span.role == Role::Use && own.is_late(span);
        if is_reader && own.unit.reads_before_barrier {
            let needs = self.habits.order(OrderKind::Barrier, own.operation, 0);
            way.over_at = needs.map_or(way.over_at, |needs| needs.min(way.over_at));
        }
    }

    /// A unit that reads in order has read a register for the earlier instruction once it has for this one: whoever
    /// waits for this one waits for both.
    fn goes_before(&self, access: Access, way: &Way, here: &Timed) -> bool {
        let own = &self.timed[access.inst.index()];
        let span = access.operand.span;
        let queue = own.queue(Role::Use);
        let is_one_queue = queue.is_some() && queue == here.queue(Role::Use);
        if span.role == Role::Def || !own.is_late(span) || !is_one_queue || here.is_interlocked {
            return false;
        }
        let reads = here.operands.iter().any(|one| {
            one.value == access.operand.value
                && one.span.role == Role::Use
                && here.is_late(one.span)
        });
        let needs = || {
            self.habits
                .order(OrderKind::Read, own.operation, here.operation)
        };
        reads && needs().is_some_and(|needs| way.age >= needs)
    }
}
