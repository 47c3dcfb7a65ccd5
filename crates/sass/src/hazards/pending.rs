//! The register accesses that may still be going on at a point of the code, how long ago their
//! instructions were issued, and which scoreboards tell when they are over.
//!
//! Ages are the fewest cycles over all paths: stall counts add up, waits for scoreboards count as no
//! time. The set is the union over all paths.
//!
//! Most instructions only let time pass, so ages are kept as of a time of their own, and what is over stays in the set
//! for a while, where nobody sees it. Most accesses are over by time alone, and are small.

use warpwright_flow::{Inst, Value};
use warpwright_target::Queue;

use super::effect::{Effect, GUARD_BIT, Guard, is_interlocked};
use super::orders::{Order, OrderKind, Orders};
use super::waits::{MASK_SEES_AFTER, Wait};
use crate::roles::{Role, Span};

/// Ages stop here.
const LONG_AGO: u16 = 255;
/// There is no path without a wait for a scoreboard.
pub(crate) const NO_PATH: u16 = u16::MAX;
/// After so many cycles a unit with a fixed latency has delivered: the longest distance known is 35.
pub(crate) const SETTLED: u16 = 64;
/// So many registers are looked up one by one.
const FEW: usize = 8;

/// An access of a register by an instruction that has been issued.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Access {
    /// The register.
    pub value: Value,
    /// The instruction.
    pub inst: Inst,
    /// Which of its operands.
    pub span: Span,
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
    /// The order through which it is over, and after how many cycles.
    pub order: Option<(Order, u16)>,
}

/// The register, the instruction, and the number of its operand: ascending in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Key(u64);

impl Key {
    fn new(value: Value, inst: Inst, number: u16) -> Key {
        Key(u64::from(value.0) << 48 | u64::from(inst.0) << 16 | u64::from(number))
    }

    /// The lowest one of a register.
    fn first(value: u32) -> Key {
        Key(u64::from(value) << 48)
    }

    fn value(self) -> Value {
        Value((self.0 >> 48) as u32)
    }

    fn inst(self) -> Inst {
        Inst((self.0 >> 16) as u32)
    }

    fn number(self) -> u16 {
        self.0 as u16
    }
}

/// An access, as far as time goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Timed {
    key: Key,
    /// When its ages were right, by the clock of the set.
    at: u16,
    /// See [`Access::age`].
    age: u16,
    /// See [`Access::waitless`].
    waitless: u16,
    /// Does the predicate of its guard have the value that it had?
    is_guarded: bool,
}

/// An access that a scoreboard may tell of, or the order of a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Counted {
    timed: Timed,
    /// The operation of its instruction.
    operation: u16,
    /// What the operand goes through in order.
    queue: Option<Queue>,
    role: Role,
    is_late: bool,
    /// Does its unit work in groups?
    has_groups: bool,
    /// See [`Access::scoreboards`].
    scoreboards: u8,
    /// For each of them, fewest later instructions that count on it.
    later: [u8; 8],
    /// Scoreboards that tell through the order of a unit, one bit each, and the operations that count on them.
    told: u8,
    by: [u16; 8],
    /// Scoreboards that tell of it through a later instruction, one bit each, by the fewest cycles since its issue:
    /// as long as a wait may not see it yet.
    fresh: [u8; MASK_SEES_AFTER as usize],
    /// See [`Access::order`].
    order: Option<(Order, u16)>,
}

/// What both have.
trait Entry: Copy + PartialEq {
    fn timed(&self) -> &Timed;
    fn timed_mut(&mut self) -> &mut Timed;
    fn is_over(&self) -> bool;
    /// An access that may have come along two ways.
    fn worse(&self, other: &Self) -> Self;
    fn view(&self, steps: &[Effect]) -> Access;

    /// So much time passes for what is beside [`Timed`].
    fn pass(&mut self, _cycles: u16) {}

    /// The same with its ages at another time of the clock.
    fn now(mut self, clock: u16) -> Self {
        let cycles = (clock - self.timed().at).min(LONG_AGO);
        self.pass(cycles);
        let timed = self.timed_mut();
        timed.at = clock;
        timed.age = (timed.age + cycles).min(LONG_AGO);
        if timed.waitless != NO_PATH {
            timed.waitless = (timed.waitless + cycles).min(LONG_AGO);
        }
        self
    }

    fn guard(&self, steps: &[Effect]) -> Option<Guard> {
        let timed = self.timed();
        let guard = || steps[timed.key.inst().0 as usize].kept_guard;
        timed.is_guarded.then(guard).flatten()
    }
}

impl Entry for Timed {
    fn timed(&self) -> &Timed {
        self
    }

    fn timed_mut(&mut self) -> &mut Timed {
        self
    }

    fn is_over(&self) -> bool {
        self.age >= SETTLED
    }

    fn worse(&self, other: &Timed) -> Timed {
        Timed {
            age: self.age.min(other.age),
            waitless: self.waitless.min(other.waitless),
            is_guarded: self.is_guarded && other.is_guarded,
            ..*self
        }
    }

    fn view(&self, steps: &[Effect]) -> Access {
        let inst = self.key.inst();
        Access {
            value: self.key.value(),
            inst,
            span: steps[inst.0 as usize].span(self.key.number()),
            age: self.age,
            waitless: self.waitless,
            is_late: false,
            guard: self.guard(steps),
            scoreboards: 0,
            order: None,
        }
    }
}

impl Entry for Counted {
    fn timed(&self) -> &Timed {
        &self.timed
    }

    fn timed_mut(&mut self) -> &mut Timed {
        &mut self.timed
    }

    fn is_over(&self) -> bool {
        let age = self.timed.age;
        let in_order = self.order.is_some_and(|(_, cycles)| age >= cycles);
        !self.is_late && age >= SETTLED || in_order
    }

    fn pass(&mut self, cycles: u16) {
        if self.fresh != [0; _] {
            let cycles = usize::from(cycles);
            let age = |age: usize| age.checked_sub(cycles).map_or(0, |old| self.fresh[old]);
            self.fresh = std::array::from_fn(age);
        }
    }

    fn worse(&self, other: &Counted) -> Counted {
        Counted {
            timed: self.timed.worse(&other.timed),
            scoreboards: self.scoreboards & other.scoreboards,
            later: std::array::from_fn(|s| self.later[s].min(other.later[s])),
            told: self.told & other.told,
            fresh: std::array::from_fn(|age| self.fresh[age] | other.fresh[age]),
            order: self.order.zip(other.order).map(|(a, b)| match a.1 >= b.1 {
                true => a,
                false => b,
            }),
            ..*self
        }
    }

    fn view(&self, steps: &[Effect]) -> Access {
        Access {
            is_late: self.is_late,
            scoreboards: self.scoreboards,
            order: self.order,
            ..self.timed.view(steps)
        }
    }
}

impl Counted {
    /// Scoreboards of a wait that is late enough to see who counts on them.
    fn seen(&self, wait: &Wait) -> u8 {
        let young = self.fresh.iter().take(wait.sees_after.into());
        young.fold(wait.scoreboards, |seen, fresh| seen & !fresh)
    }

    /// Does this wait end it, if it comes late enough?
    fn is_ended_by(&self, wait: &Wait) -> bool {
        let mut shared = each(self.scoreboards & self.seen(wait));
        shared.any(|s| self.later[s] >= wait.count)
    }

    /// The order by which this wait ends it, the one that needs the fewest cycles.
    fn ends_by(&self, wait: &Wait, orders: &Orders) -> Option<(Order, u16)> {
        let shared = each(self.told & self.seen(wait));
        let shared = shared.filter(|&s| self.later[s] >= wait.count);
        let order = |scoreboard: usize| {
            let order = Order {
                kind: OrderKind::told(self.role),
                earlier: self.operation,
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

    /// Takes note that a later instruction counts on scoreboards. Where the two go through one
    /// queue, and their order is known, the later one's scoreboards speak for both, whatever their guards: ptxas relies
    /// on that for predicates that exclude each other.
    fn count(&mut self, step: &Effect, orders: &Orders) {
        for scoreboard in each((self.scoreboards | self.told) & step.read) {
            self.later[scoreboard] = self.later[scoreboard].saturating_add(1);
        }
        if !self.is_late || self.queue.is_none() || self.queue != step.timing.queue(self.role) {
            return;
        }
        let order = Order {
            kind: OrderKind::told(self.role),
            earlier: self.operation,
            later: step.timing.operation,
        };
        let also = match self.role {
            Role::Def => step.delivered,
            Role::Use => step.read,
        };
        // A group ends with all that belong to it: the instruction set says so.
        if self.has_groups {
            let new = also & !self.scoreboards;
            for scoreboard in each(new) {
                self.later[scoreboard] = 0;
            }
            self.scoreboards |= also;
            self.freshen(new);
            return;
        }
        let new = also & !self.scoreboards & !self.told;
        if new == 0 || orders.needed(order).is_none() {
            return;
        }
        for scoreboard in each(new) {
            self.later[scoreboard] = 0;
            self.by[scoreboard] = order.later;
        }
        self.told |= new;
        self.freshen(new);
    }

    /// An instruction that is just issued tells by these scoreboards.
    fn freshen(&mut self, scoreboards: u8) {
        self.fresh[0] |= scoreboards;
    }
}

/// The accesses that may be going on before an instruction, ascending by register, instruction,
/// operand: those that time alone ends, and others.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Pending {
    timed: Vec<Timed>,
    counted: Vec<Counted>,
    /// Cycles that have passed since all ages were right and nothing in the set was over.
    clock: u16,
}

impl Pending {
    /// All of them.
    pub fn all<'a>(&'a self, steps: &'a [Effect]) -> impl Iterator<Item = Access> + 'a {
        self.live(steps, &self.timed, &self.counted)
    }

    /// Scoreboards of accesses that take an unknown time, for each of them.
    pub fn late_scoreboards(&self) -> impl Iterator<Item = u8> + '_ {
        let late = self.counted.iter().filter(|access| access.is_late);
        let late = late.map(|access| access.now(self.clock));
        let late = late.filter(|access| !access.is_over());
        late.map(|access| access.scoreboards)
    }

    /// The accesses of one register.
    pub fn of<'a>(
        &'a self,
        value: Value,
        steps: &'a [Effect],
    ) -> impl Iterator<Item = Access> + 'a {
        let timed = &self.timed[range(&self.timed, value)];
        let counted = &self.counted[range(&self.counted, value)];
        self.live(steps, timed, counted)
    }

    fn live<'a>(
        &self,
        steps: &'a [Effect],
        mut timed: &'a [Timed],
        mut counted: &'a [Counted],
    ) -> impl Iterator<Item = Access> + use<'a> {
        let clock = self.clock;
        let next = move || {
            loop {
                let is_timed = match (timed.first(), counted.first()) {
                    (None, None) => return None,
                    (Some(a), Some(b)) => a.key < b.timed.key,
                    (a, _) => a.is_some(),
                };
                let found = match is_timed {
                    true => view(&mut timed, clock, steps),
                    false => view(&mut counted, clock, steps),
                };
                if found.is_some() {
                    return found;
                }
            }
        };
        std::iter::from_fn(next)
    }

    /// So much time passes.
    pub fn pass(&mut self, cycles: u16) {
        /// So often what is over is taken out.
        const OFTEN: u16 = 32;
        self.clock = self.clock.saturating_add(cycles);
        if self.clock >= OFTEN {
            self.settle();
        }
    }

    /// Makes all ages right, and takes out what is over.
    fn settle(&mut self) {
        let clock = std::mem::take(&mut self.clock);
        // Of these, nothing is over before time has passed.
        if clock > 0 {
            settle(&mut self.timed, clock);
        }
        settle(&mut self.counted, clock);
    }

    /// Takes in what may be going on along another path, into a set in which no time has passed; says whether that
    /// changed anything.
    pub fn join(&mut self, other: &Pending) -> bool {
        if self.clock > 0 {
            self.settle();
        }
        let timed = join(&mut self.timed, &other.timed, other.clock);
        let counted = join(&mut self.counted, &other.counted, other.clock);
        timed || counted
    }

    /// Ends the accesses that the instruction is sure to have awaited before it issues.
    pub fn wait(&mut self, step: &Effect, orders: &Orders) {
        if step.waits.is_empty() {
            return;
        }
        self.settle();
        for access in &mut self.timed {
            access.waitless = NO_PATH;
        }
        for wait in &step.waits {
            self.counted.retain_mut(|access| {
                let is_seen = access.timed.age >= wait.sees_after;
                if is_seen && access.is_ended_by(wait) {
                    return false;
                }
                access.timed.waitless = NO_PATH;
                if is_seen && access.told & access.seen(wait) != 0 {
                    access.keep(access.ends_by(wait, orders));
                }
                true
            });
        }
    }

    /// Issues the instruction, and leaves where it does so.
    pub fn issue(&mut self, step: &Effect, steps: &[Effect], orders: &Orders) {
        self.issue_without_leaving(step, steps, orders);
        if step.leaves && step.is_certain {
            self.timed.clear();
            self.counted.clear();
        }
    }

    /// Issues the instruction: its accesses begin, later instructions depend on it instead of what it
    /// overwrites, and time passes.
    pub fn issue_without_leaving(&mut self, step: &Effect, steps: &[Effect], orders: &Orders) {
        kill(&mut self.timed, step, steps);
        kill(&mut self.counted, step, steps);
        if step.writes_predicates {
            lose_guards(&mut self.timed, step, steps);
            lose_guards(&mut self.counted, step, steps);
        }
        if step.read != 0 {
            let clock = self.clock;
            for access in &mut self.counted {
                *access = access.now(clock);
                access.count(step, orders);
            }
        }
        if step.is_block_barrier {
            self.pass_barrier(steps, orders);
        }
        self.drop_what_goes_before(step, steps, orders);
        if is_interlocked(step.control) {
            let timed = self.timed.iter_mut();
            let counted = self.counted.iter_mut().map(|access| &mut access.timed);
            for access in timed.chain(counted) {
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

    /// The other warps of the block have come, too.
    fn pass_barrier(&mut self, steps: &[Effect], orders: &Orders) {
        let ends = |access: &Counted| {
            let unit = steps[access.timed.key.inst().0 as usize].timing.unit;
            let order = Order {
                kind: OrderKind::Barrier,
                earlier: access.operation,
                later: 0,
            };
            let is_read = access.role == Role::Use && access.is_late;
            let may = is_read && unit.reads_before_barrier;
            Some((order, orders.needed(order)?)).filter(|_| may)
        };
        self.settle();
        for access in &mut self.counted {
            access.keep(ends(access));
        }
    }

    /// A unit that reads in order has read a register for earlier instructions once it has for this
    /// one: whoever waits for this one waits for them.
    fn drop_what_goes_before(&mut self, step: &Effect, steps: &[Effect], orders: &Orders) {
        let Some(queue) = step.timing.queue(Role::Use) else {
            return;
        };
        let replaces = |access: &Counted| {
            if access.role != Role::Use || !access.is_late || access.queue != Some(queue) {
                return false;
            }
            let covered =
                step.is_certain || step.guard.is_some() && access.guard(steps) == step.guard;
            let order = Order {
                kind: OrderKind::Read,
                earlier: access.operation,
                later: step.timing.operation,
            };
            // While orders are looked for, what one has ended needs no second one.
            let is_sure = || match orders.are_looked_for() {
                true => order.earlier == order.later && access.order.is_some(),
                false => orders
                    .needed(order)
                    .is_some_and(|cycles| access.timed.age >= cycles),
            };
            covered && is_sure()
        };
        for &(value, span) in &step.operands {
            if span.role == Role::Def || !step.timing.is_late(span) || is_interlocked(step.control)
            {
                continue;
            }
            let clock = self.clock;
            let own = range(&self.counted, value);
            let mut live = self.counted[own].iter().map(|access| access.now(clock));
            if live.any(|access| !access.is_over() && replaces(&access)) {
                self.counted.retain(|access| {
                    access.timed.key.value() != value || !replaces(&access.now(clock))
                });
            }
        }
    }

    fn begin(&mut self, step: &Effect) {
        for &(value, span) in &step.operands {
            // The instruction's own result comes after its sources.
            if span.role == Role::Use && step.written.contains(&value) {
                continue;
            }
            let timed = Timed {
                key: Key::new(value, step.inst, step.number(span)),
                at: self.clock,
                age: 0,
                waitless: 0,
                is_guarded: step.kept_guard.is_some(),
            };
            if !step.is_counted {
                put(&mut self.timed, timed);
                continue;
            }
            let counted = Counted {
                timed,
                operation: step.timing.operation,
                queue: step.timing.queue(span.role),
                role: span.role,
                is_late: step.timing.is_late(span),
                has_groups: step.timing.unit.has_groups,
                scoreboards: step.scoreboards(span),
                later: [0; 8],
                told: 0,
                by: [0; 8],
                fresh: [0; _],
                order: None,
            };
            put(&mut self.counted, counted);
        }
    }
}

/// The places of the accesses of one register.
fn range<T: Entry>(set: &[T], value: Value) -> std::ops::Range<usize> {
    let place = |key: Key| set.partition_point(|access| access.timed().key < key);
    let from = place(Key::first(value.0));
    let end = Key::first(value.0 + 1);
    let own = set[from..].iter();
    from..from + own.take_while(|access| access.timed().key < end).count()
}

/// Takes the first access; none if it is over.
fn view<T: Entry>(set: &mut &[T], clock: u16, steps: &[Effect]) -> Option<Access> {
    let (first, others) = set.split_first()?;
    *set = others;
    let access = first.now(clock);
    (!access.is_over()).then(|| access.view(steps))
}

fn settle<T: Entry>(set: &mut Vec<T>, clock: u16) {
    set.retain_mut(|access| {
        *access = access.now(clock);
        access.timed_mut().at = 0;
        !access.is_over()
    });
}

/// Takes in what another set has by its own clock.
fn join<T: Entry>(ours: &mut Vec<T>, theirs: &[T], clock: u16) -> bool {
    let mut changed = false;
    let mut new: Vec<T> = Vec::new();
    let mut at = 0;
    for access in theirs {
        let mut access = access.now(clock);
        access.timed_mut().at = 0;
        if access.is_over() {
            continue;
        }
        let key = access.timed().key;
        while ours.get(at).is_some_and(|own| own.timed().key < key) {
            at += 1;
        }
        match ours.get_mut(at).filter(|own| own.timed().key == key) {
            Some(own) => {
                let worse = own.worse(&access);
                changed |= *own != worse;
                *own = worse;
            }
            None => new.push(access),
        }
    }
    changed |= !new.is_empty();
    insert(ours, new);
    changed
}

/// Puts ascending accesses between others, from behind.
fn insert<T: Entry>(ours: &mut Vec<T>, new: Vec<T>) {
    let Some(&first) = new.first() else { return };
    if ours.is_empty() {
        *ours = new;
        return;
    }
    let (mut own, mut others) = (ours.len(), &new[..]);
    ours.resize(own + others.len(), first);
    while let Some((last, before)) = others.split_last() {
        let to = own + others.len() - 1;
        let is_own = own > 0 && ours[own - 1].timed().key > last.timed().key;
        if is_own {
            own -= 1;
            ours[to] = ours[own];
        } else {
            ours[to] = *last;
            others = before;
        }
    }
}

fn put<T: Entry>(set: &mut Vec<T>, access: T) {
    let key = access.timed().key;
    match set.binary_search_by_key(&key, |known| known.timed().key) {
        Ok(at) => set[at] = access,
        Err(at) => set.insert(at, access),
    }
}

/// Drops the accesses of registers that the instruction is sure to write where it matters.
fn kill<T: Entry>(set: &mut Vec<T>, step: &Effect, steps: &[Effect]) {
    let kills =
        |access: &T| step.is_certain || step.guard.is_some() && access.guard(steps) == step.guard;
    if step.written.len() > FEW {
        set.retain(|access| !(kills(access) && step.written.contains(&access.timed().key.value())));
        return;
    }
    for &value in &step.written {
        let own = range(set, value);
        if set[own.clone()].iter().all(kills) {
            set.drain(own);
        } else if set[own].iter().any(kills) {
            set.retain(|access| access.timed().key.value() != value || !kills(access));
        }
    }
}

/// The predicates that the instruction writes have other values.
fn lose_guards<T: Entry>(set: &mut [T], step: &Effect, steps: &[Effect]) {
    for access in set {
        if access
            .guard(steps)
            .is_some_and(|guard| step.written.contains(&guard.predicate))
        {
            access.timed_mut().is_guarded = false;
        }
    }
}

/// The numbers of the scoreboards in a set.
fn each(mut set: u8) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let first = set.trailing_zeros() as usize;
        let has = set != 0;
        set &= set.wrapping_sub(1);
        has.then_some(first)
    })
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
