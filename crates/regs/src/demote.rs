//! Goal: a function within so many registers, with some of its values in memory of their own for a while: which
//! values, where they are stored and loaded, and the register of every value.
//!
//! Paper: RegDem, sections 3.2 (demotion), 3.3 (compaction), 3.4.2 (redundant demotion code, hoisting,
//! substitution of the value register) and 3.4.3 (the order of candidates).
//!
//! Departures:
//! - The paper demotes a register everywhere: a store behind each definition, a load before each use. Here a
//!   value is away where the pressure is above the goal, and comes back once ([`crate::evict`]): a value that is
//!   live across such code without use is stored once and loaded once. Without [`Refinements::redundant`] it
//!   is the paper's way.
//! - No value register is reserved, and no address register: what is loaded is a value like every other, and the
//!   colouring finds a register for it, which is the paper's substitution taken to its end. Operand conflicts
//!   need no rule of their own.
//! - Candidates are webs, not registers, and only those that are live across the highest pressure. Beside
//!   the paper's three orders there is one by what is gained over what it costs ([`Strategy::Relief`]).
//! - Halves of pairs move together by one access; the paper cuts them into words.
//! - What a constant or a special register gives is computed again instead, and with [`Again::All`] all that is
//!   cheaper so ([`crate::again`], after You & Tsai).
//! - Compaction is a colouring with the constraints of tuples; the paper shifts and swaps. A value keeps its
//!   register, or the bank of it, where it can.
//!
//! Requires: values are webs. Preserves what every thread computes. Values in flight under asynchronous
//! operations and those that may be unset stay in registers.

use std::collections::{BTreeMap, BTreeSet};

use warpwright_flow::{EntityRef, Function, Inst, LiveRanges, LiveSet, Point, Value};

use crate::again::{Chain, Recomputation};
use crate::color::{File, Former, colour};
use crate::draft::{Code, Draft, Origin, Place, Role};
use crate::evict::{Facts, SplitRegion, evict, pinned, reloads, remove_dead_stores, writers};
use crate::interference::Graph;
use crate::webs::split;

/// In which order values are demoted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Strategy {
    /// The fewest accesses in the code first: the paper's first.
    Accesses,
    /// The fewest accesses, ten times as many in each loop: the paper's second.
    Loops,
    /// The fewest other registers beside it in one instruction first: the paper's third.
    Conflicts,
    /// The most instructions above the goal for the loop-weighted accesses that it costs.
    #[default]
    Relief,
}

/// What is computed again instead of being loaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Again {
    /// Nothing.
    Nothing,
    /// What one instruction gives that reads nothing: constants, special registers.
    #[default]
    Alone,
    /// What a chain of cheap instructions gives, from what is in registers there anyway, where that costs less than
    /// the slot.
    All,
}

/// What is done beyond the plain algorithm of section 3.2, each for itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refinements {
    /// Loads where a value is not in a register already, and stores that somebody reads.
    pub redundant: bool,
    /// Loads some instructions before the use, where a register is free.
    pub hoist: bool,
    /// Halves of a pair by one access.
    pub pairs: bool,
    /// What is computed again.
    pub again: Again,
}

impl Default for Refinements {
    fn default() -> Self {
        Refinements {
            redundant: true,
            hoist: true,
            pairs: true,
            again: Again::default(),
        }
    }
}

/// What is wanted.
#[derive(Clone, Copy, Debug)]
pub struct Goal {
    /// 32-bit registers per thread, the address register among them where it is a value.
    pub registers: u32,
    /// Bytes of slots that each thread can have.
    pub bytes: u32,
    /// The order of candidates.
    pub strategy: Strategy,
    /// Beyond the plain algorithm.
    pub refinements: Refinements,
    /// Does the address of the slots take a register of its own?
    pub address: Option<warpwright_flow::Class>,
    /// Values to be demoted at most.
    pub most: u64,
}

/// Why it cannot be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stuck {
    /// So many registers do not suffice for what must be in registers at this instruction of the function.
    TooFew(Option<Inst>),
    /// The slots take so many bytes per thread.
    NoRoom(u32),
    /// No more values may be demoted, and the pressure is still this.
    Limited(u32),
    /// Operands ask for what cannot be at once.
    Contradiction,
    /// So many values have so many neighbours that registers for them were looked for in vain long enough.
    Work,
}

/// Where a slot lies: the paper's Eq. 1, with areas for pairs and for words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cell {
    /// The first or second word of this pair.
    Half(u32, bool),
    /// This word.
    Word(u32),
}

/// A function within its registers.
#[derive(Clone, Debug)]
pub struct Demoted {
    /// The code, with loads and stores in their places.
    pub draft: Draft,
    /// For each value its register.
    pub register: Vec<Option<u32>>,
    /// For each slot its place.
    pub cells: BTreeMap<Value, Cell>,
    /// Pairs of slots that each thread has, and single ones.
    pub sizes: [u32; 2],
    /// Values that were demoted.
    pub values: u64,
}

impl Demoted {
    /// Bytes of slots per thread.
    pub fn bytes(&self) -> u32 {
        8 * self.sizes[0] + 4 * self.sizes[1]
    }
}

/// What a simple instruction costs over a load: what is computed again.
const AGAIN: f64 = 0.5;
/// A store is waited for by nobody.
const STORE: f64 = 0.6;
/// A pair by one access takes the shared memory as long as two words, but one issue slot.
const PAIR: f64 = 1.3;
/// Instructions that a load is hoisted over at most: some 25 cycles at two to three each.
const HOIST: usize = 10;
/// Registers below the goal that are tried until the colouring finds a place for all.
const SLACK: [u32; 5] = [0, 1, 2, 4, 8];

/// Neighbours of values that are looked at until the colouring is given up: some seconds.
const WORK: u64 = 1 << 30;

/// What the instruction set knows of the function's own instructions.
#[derive(Clone, Copy)]
pub struct Known<'a> {
    /// Can it be executed once more anywhere, to give the same? Only asked of those that read no value.
    pub constant: &'a dyn Fn(Inst) -> bool,
    /// Can the first be executed once more right before the second, where its values are the same?
    pub computable: &'a dyn Fn(Inst, Inst) -> bool,
    /// Can its result be stored?
    pub storable: &'a dyn Fn(Inst) -> bool,
    /// Must no load be hoisted over it?
    pub fence: &'a dyn Fn(Inst) -> bool,
}

/// Brings `func` within `goal`.
///
/// # Errors
/// See [`Stuck`].
pub fn demote(func: &impl Function, goal: &Goal, known: Known<'_>) -> Result<Demoted, Stuck> {
    let found = attempt(func, goal, known);
    match (&found, goal.refinements.again) {
        // Sources keep registers that slots would have left free.
        (Err(Stuck::TooFew(_) | Stuck::NoRoom(_) | Stuck::Contradiction), Again::All) => {
            let again = Again::Alone;
            let refinements = Refinements {
                again,
                ..goal.refinements
            };
            let goal = Goal {
                refinements,
                ..*goal
            };
            attempt(func, &goal, known)
        }
        _ => found,
    }
}

fn attempt(func: &impl Function, goal: &Goal, known: Known<'_>) -> Result<Demoted, Stuck> {
    let mut state = State::new(Draft::new(func), goal, known);
    let mut stuck = Stuck::TooFew(None);
    for slack in SLACK {
        state.relieve(goal.registers.saturating_sub(slack))?;
        match state.finish() {
            Err(Stuck::TooFew(at)) => stuck = Stuck::TooFew(at),
            done => return done,
        }
    }
    Err(stuck)
}

/// A register for every value of `draft` as it is, with so many of them.
///
/// # Errors
/// See [`Stuck`].
pub fn compact(draft: Draft, registers: u32) -> Result<Demoted, Stuck> {
    let goal = Goal {
        registers,
        bytes: 0,
        strategy: Strategy::default(),
        refinements: Refinements {
            again: Again::Nothing,
            ..Refinements::default()
        },
        address: None,
        most: 0,
    };
    let known = Known {
        constant: &|_| false,
        computable: &|_, _| false,
        storable: &|_| false,
        fence: &|_| true,
    };
    State::new(draft, &goal, known).finish()
}

/// The highest pressure of `func`, in registers.
pub fn pressure(func: &impl Function) -> u32 {
    let draft = Draft::new(func);
    Facts::new(&draft).pressure(&draft).max()
}

struct State<'a> {
    goal: &'a Goal,
    draft: Draft,
    base: Option<Value>,
    known: Known<'a>,
    /// What cannot be demoted, by value.
    fixed: Vec<bool>,
    /// The other half of a pair, for values that are mostly used in pairs: `(first, second)`.
    twins: BTreeMap<Value, (Value, Value)>,
    /// Pairs of slots.
    pairs: BTreeSet<(Value, Value)>,
    again: Recomputation<'a>,
    values: u64,
    /// What is left of [`WORK`].
    work: u64,
}

struct Candidate {
    values: Vec<Value>,
    reloads: Vec<Vec<Inst>>,
    /// For each value how it is computed again, if that costs less than its slot.
    plans: Vec<Option<Plan>>,
    /// Smaller is better.
    key: f64,
}

/// How a value is computed again.
struct Plan {
    /// Before these instructions, each by a chain.
    places: Vec<(Inst, Chain)>,
    /// In accesses, loop-weighted.
    cost: f64,
}

impl Plan {
    fn sources(&self) -> impl Iterator<Item = Value> + '_ {
        let places = self.places.iter();
        places.flat_map(|(_, chain)| chain.sources.iter().copied())
    }
}

impl<'a> State<'a> {
    fn new(mut draft: Draft, goal: &'a Goal, known: Known<'a>) -> Self {
        let facts = Facts::new(&draft);
        let fixed = pinned(&draft, &facts);
        let is_given = |value: Value| draft.fixed(value).is_some();
        let fixed = draft
            .values()
            .map(|value| fixed[value.index()] || is_given(value))
            .collect();
        let again = Recomputation::new(
            draft.clone(),
            Facts::new(&draft),
            known,
            goal.refinements.again,
        );
        let base = goal
            .address
            .map(|class| draft.add_value(Role::Base(0), class));
        if let Some(base) = base {
            draft.insert_at_entry(Code::new(Origin::Bases, &[base], &[]));
        }
        let mut state = State {
            goal,
            twins: twins(&draft, &facts),
            again,
            draft,
            base,
            known,
            fixed,
            pairs: BTreeSet::new(),
            values: 0,
            work: WORK,
        };
        state.fixed.resize(state.draft.value_count(), true);
        if !goal.refinements.pairs {
            state.twins.clear();
        }
        state
    }

    /// Demotes values until no instruction has more than `registers` of them.
    fn relieve(&mut self, registers: u32) -> Result<(), Stuck> {
        loop {
            let facts = Facts::new(&self.draft);
            let pressure = facts.pressure(&self.draft);
            let max = pressure.max();
            if max <= registers {
                return Ok(());
            }
            if self.values >= self.goal.most {
                return Err(Stuck::Limited(max));
            }
            let peaks = self.own_pressure(|inst| pressure.during(inst));
            let over = |inst: Inst| peaks[inst.index()] > registers;
            let away = match self.goal.refinements.redundant {
                true => SplitRegion::new(&self.draft, over),
                false => SplitRegion::new(&self.draft, |_| true),
            };
            let peak = self.draft.insts().find(|&inst| peaks[inst.index()] == max);
            let Some(peak) = peak else {
                return Err(Stuck::TooFew(None));
            };
            let mut candidates = self.candidates(&facts, &away, peak, over);
            candidates.sort_by(|a, b| a.key.total_cmp(&b.key).then(a.values.cmp(&b.values)));
            let mut wanted = i64::from(max - registers);
            let mut added = Vec::new();
            // Values that leave, values that others are computed of, and what is computed where.
            let (mut gone, mut read) = (BTreeSet::new(), BTreeSet::new());
            let mut computed = BTreeSet::new();
            for candidate in candidates {
                if wanted <= 0 || self.values >= self.goal.most {
                    break;
                }
                let plans = || candidate.plans.iter().flatten();
                let is_read = |value: &Value| read.contains(value);
                if candidate.values.iter().any(is_read)
                    || plans().any(|plan| plan.sources().any(|source| gone.contains(&source)))
                {
                    continue;
                }
                gone.extend(candidate.values.iter().copied());
                read.extend(plans().flat_map(Plan::sources));
                wanted -= candidate.values.len() as i64;
                self.values += candidate.values.len() as u64;
                self.demote(&facts, &candidate, &mut computed, &mut added);
            }
            if added.is_empty() {
                return Err(Stuck::TooFew(self.own(peak)));
            }
            self.draft.insert(added);
            self.fixed.resize(self.draft.value_count(), true);
        }
    }

    fn own(&self, inst: Inst) -> Option<Inst> {
        match self.draft.origin(inst) {
            Origin::Own(own) => Some(own),
            _ => None,
        }
    }

    /// For each of the function's own instructions the highest pressure at it and at the code that was added
    /// for it; 0 for added code.
    fn own_pressure(&self, during: impl Fn(Inst) -> u32) -> Vec<u32> {
        let mut all = vec![0; self.draft.inst_count()];
        let (mut ahead, mut last) = (0, None);
        for inst in self.draft.insts() {
            let here = during(inst);
            match (self.draft.origin(inst), last) {
                (Origin::Own(_), _) => {
                    all[inst.index()] = here.max(std::mem::take(&mut ahead));
                    last = Some(inst);
                }
                (Origin::Store { .. }, Some(last)) => {
                    let last: Inst = last;
                    all[last.index()] = all[last.index()].max(here);
                }
                _ => ahead = ahead.max(here),
            }
        }
        all
    }

    /// What is live across the peak and not accessed at it, and may leave.
    fn candidates(
        &self,
        facts: &Facts,
        away: &SplitRegion,
        peak: Inst,
        over: impl Fn(Inst) -> bool,
    ) -> Vec<Candidate> {
        let draft = &self.draft;
        let mut live = LiveSet::new(draft.value_count());
        let block = facts.cfg.block_of(peak);
        let mut walk = facts.liveness.walk(draft, &facts.cfg, block, &mut live);
        while walk.peek().is_some_and(|inst| inst >= peak) {
            walk.step();
        }
        let mut through: Vec<Value> = walk.live().members().to_vec();
        through.sort_unstable();
        through.retain(|&value| {
            let touches = |list: &[Value]| list.contains(&value);
            self.fixed.get(value.index()) == Some(&false)
                && !touches(draft.uses(peak))
                && !touches(draft.defs(peak))
        });
        let mut above = vec![0u32];
        for inst in draft.insts() {
            above.push(above[inst.index()] + u32::from(over(inst)));
        }
        let ranges = facts.ranges(draft);
        let mut done = BTreeSet::new();
        let mut found = Vec::new();
        for &value in &through {
            let values = match self.twins.get(&value) {
                Some(&(a, b)) if through.contains(&a) && through.contains(&b) => vec![a, b],
                _ => vec![value],
            };
            if !done.insert(values[0]) {
                continue;
            }
            let reloads: Vec<Vec<Inst>> = values
                .iter()
                .map(|&value| reloads(draft, facts, value, away))
                .collect();
            if reloads.iter().any(Vec::is_empty) {
                continue;
            }
            let plans = values.iter().zip(&reloads);
            let plans = plans.map(|(&value, reloads)| {
                let plan = self.plan((facts, &ranges), &over, (value, reloads), &values)?;
                let is_cheaper = !self.is_storable(facts, value)
                    || plan.cost <= self.accesses_cost(facts, value, reloads);
                is_cheaper.then_some(plan)
            });
            let plans: Vec<Option<Plan>> = plans.collect();
            let mut each = values.iter().zip(&plans);
            if !each.all(|(&value, plan)| plan.is_some() || self.is_storable(facts, value)) {
                continue;
            }
            let relieved = |value: Value| -> u32 {
                let segments = ranges.segments(value).iter();
                let inside = segments.map(|segment| {
                    let (from, to) = (segment.start.inst().index(), segment.end.inst().index());
                    above[to + 1] - above[from]
                });
                inside.sum()
            };
            let key = match self.goal.strategy {
                Strategy::Relief => {
                    let gain: u32 = values.iter().map(|&value| relieved(value)).sum();
                    self.cost(facts, (&values, &plans), &reloads) / f64::from(gain.max(1))
                }
                Strategy::Accesses => count(facts, &values, |_| 1.0),
                Strategy::Loops => count(facts, &values, |inst| {
                    let inner = facts.loops.innermost(facts.cfg.block_of(inst));
                    inner.map_or(1.0, |inner| 10f64.powi(facts.loops.depth(inner) as i32))
                }),
                Strategy::Conflicts => self.conflicts(facts, &values),
            };
            found.push(Candidate {
                values,
                reloads,
                plans,
                key,
            });
        }
        found
    }

    /// Can it be stored wherever it is written?
    fn is_storable(&self, facts: &Facts, value: Value) -> bool {
        let mut own = writers(&self.draft, facts, value).filter_map(|def| self.own(def));
        own.all(self.known.storable)
    }

    /// How a value is computed again in the place of loads, beside others that leave with it: from what is in registers
    /// there.
    fn plan(
        &self,
        (facts, ranges): (&Facts, &LiveRanges),
        over: impl Fn(Inst) -> bool,
        (value, reloads): (Value, &[Inst]),
        leaving: &[Value],
    ) -> Option<Plan> {
        let mut plan = Plan {
            places: Vec::new(),
            cost: 0.0,
        };
        for &inst in reloads {
            let is_there = |source: Value| {
                !leaving.contains(&source) && ranges.is_live_at(source, Point::before(inst))
            };
            let place = self.draft.place(inst)?;
            let chain = self.again.chain(value, place, is_there)?;
            // Where it is crowded, sources may have to leave themselves.
            let is_own = |&at: &Inst| self.own(at).is_some();
            let is_crowded = self
                .draft
                .insts()
                .skip(inst.index())
                .find(is_own)
                .is_some_and(&over);
            if is_crowded && (chain.steps.len() > 1 || !chain.sources.is_empty()) {
                return None;
            }
            let price = chain.steps.iter().map(|&step| {
                // What gives several of those that leave counts once.
                let shared = self.again.written(step, leaving).max(1);
                self.again.price(step) / shared as f64
            });
            plan.cost += AGAIN * facts.weight(inst) * price.sum::<f64>();
            plan.places.push((inst, chain));
        }
        Some(plan)
    }

    /// Loop-weighted accesses that the slot of a value costs.
    fn accesses_cost(&self, facts: &Facts, value: Value, reloads: &[Inst]) -> f64 {
        let weigh = |inst: Inst| facts.weight(inst);
        let loads = reloads.iter().copied().map(weigh).sum::<f64>();
        match self.draft.values[value.index()].is_stored {
            true => loads,
            false => loads + STORE * writers(&self.draft, facts, value).map(weigh).sum::<f64>(),
        }
    }

    /// Loop-weighted accesses that demoting costs.
    fn cost(
        &self,
        facts: &Facts,
        (values, plans): (&[Value], &[Option<Plan>]),
        reloads: &[Vec<Inst>],
    ) -> f64 {
        let each = values.iter().zip(plans).zip(reloads);
        let cost: f64 = each
            .map(|((&value, plan), reloads)| match plan {
                Some(plan) => plan.cost,
                None => self.accesses_cost(facts, value, reloads),
            })
            .sum();
        match values.len() {
            2 => cost * PAIR / 2.0,
            _ => cost,
        }
    }

    /// Other values that an instruction has beside one of `values`.
    fn conflicts(&self, facts: &Facts, values: &[Value]) -> f64 {
        let mut beside = BTreeSet::new();
        for &value in values {
            let all = facts.def_use.defs(value).iter();
            for &inst in all.chain(facts.def_use.uses(value)) {
                beside.extend(self.draft.uses(inst).iter().chain(self.draft.defs(inst)));
            }
        }
        beside.retain(|value| !values.contains(value));
        beside.len() as f64
    }

    /// Adds the code for a candidate. `computed` is what is computed again before which instruction already.
    fn demote(
        &mut self,
        facts: &Facts,
        candidate: &Candidate,
        computed: &mut BTreeSet<(Inst, Inst)>,
        added: &mut Vec<(Place, Code)>,
    ) {
        let (joint, pair) = match (&candidate.values[..], &candidate.plans[..]) {
            (&[a, b], [None, None]) => {
                let slots = (self.draft.slot_of(a), self.draft.slot_of(b));
                let free = |slot: Value| {
                    let mut pairs = self.pairs.iter();
                    !pairs.any(|pair| *pair != slots && (pair.0 == slot || pair.1 == slot))
                };
                (free(slots.0) && free(slots.1), Some((a, b, slots)))
            }
            _ => (false, None),
        };
        let Some((a, b, slots)) = pair.filter(|_| joint) else {
            let each = candidate.values.iter().zip(&candidate.reloads);
            for ((&value, reloads), plan) in each.zip(&candidate.plans) {
                let Some(plan) = plan else {
                    added.extend(evict(&mut self.draft, facts, value, reloads, self.base));
                    continue;
                };
                for (inst, chain) in &plan.places {
                    let Some(before) = self.draft.place(*inst) else {
                        continue;
                    };
                    for &step in &chain.steps {
                        if computed.insert((*inst, step)) {
                            let code = self.again.code(step, before);
                            added.push((Place::Before(*inst), code));
                        }
                    }
                }
            }
            return;
        };
        self.pairs.insert(slots);
        let base = self.base.as_slice().to_vec();
        let both: Vec<Inst> = common(&candidate.reloads[0], &candidate.reloads[1]);
        for (value, reloads) in [a, b].into_iter().zip(&candidate.reloads) {
            let single: Vec<Inst> = reloads
                .iter()
                .copied()
                .filter(|inst| !both.contains(inst))
                .collect();
            added.extend(self.loads(value, &single));
        }
        for &inst in &both {
            if let Some(before) = self.draft.place(inst) {
                let uses = [&[slots.0, slots.1], &base[..]].concat();
                let mut load = Code::new(Origin::Load { before }, &[a, b], &uses);
                load.tuples.push((smallvec::smallvec![a, b], 2));
                added.push((Place::Before(inst), load));
            }
        }
        let stores = |state: &Self, value: Value| -> Vec<Inst> {
            match state.draft.values[value.index()].is_stored {
                true => Vec::new(),
                false => writers(&state.draft, facts, value).collect(),
            }
        };
        let (of_a, of_b) = (stores(self, a), stores(self, b));
        let both = common(&of_a, &of_b);
        for (value, slot, stores) in [(a, slots.0, &of_a), (b, slots.1, &of_b)] {
            self.draft.values[value.index()].is_stored = true;
            for &inst in stores.iter().filter(|inst| !both.contains(inst)) {
                if let Origin::Own(after) = self.draft.origin(inst) {
                    let uses = [&[value], &base[..]].concat();
                    let store = Code::new(Origin::Store { after }, &[slot], &uses);
                    added.push((Place::After(inst), store));
                }
            }
        }
        for &inst in &both {
            if let Origin::Own(after) = self.draft.origin(inst) {
                let uses = [&[a, b], &base[..]].concat();
                let mut store = Code::new(Origin::Store { after }, &[slots.0, slots.1], &uses);
                store.tuples.push((smallvec::smallvec![a, b], 2));
                added.push((Place::After(inst), store));
            }
        }
    }

    fn loads(&mut self, value: Value, reloads: &[Inst]) -> Vec<(Place, Code)> {
        let slot = self.draft.slot_of(value);
        let uses = [&[slot], self.base.as_slice()].concat();
        let loads = reloads.iter().filter_map(|&inst| {
            let before = self.draft.place(inst)?;
            let load = Code::new(Origin::Load { before }, &[value], &uses);
            Some((Place::Before(inst), load))
        });
        loads.collect()
    }

    /// Removes what turned out useless, hoists, and gives every value a register.
    fn finish(&mut self) -> Result<Demoted, Stuck> {
        let mut draft = self.draft.clone();
        if self.goal.refinements.redundant {
            remove_dead_stores(&mut draft);
        }
        if self.goal.refinements.hoist {
            hoist(&mut draft, self.goal.registers, self.known);
        }
        let draft = split(&draft);
        let facts = Facts::new(&draft);
        let graph = Graph::new(&draft, &facts);
        let file = File {
            registers: self.goal.registers,
        };
        let cost: Vec<f64> = draft
            .values()
            .map(|value| accesses(&facts, value, |inst| facts.weight(inst)))
            .collect();
        let former: Vec<Option<u32>> = draft
            .values()
            .map(|value| match draft.role(value) {
                Role::Register(_) => draft.values[value.index()].former,
                _ => None,
            })
            .collect();
        let none = vec![None; former.len()];
        let how: (&[Former<'_>], u64) = (&[&former, &none], self.work);
        let found = colour(&draft, &graph, file, &cost, how);
        let found = found.map_err(|_| Stuck::Contradiction)?;
        if found.uncoloured.is_empty() {
            return self.place(draft, &facts, found.register);
        }
        self.work = self.work.saturating_sub(found.work);
        Err(match self.work {
            0 => Stuck::Work,
            _ => Stuck::TooFew(None),
        })
    }

    /// Gives every slot a cell. Slots whose contents are never needed at once share one.
    fn place(
        &self,
        draft: Draft,
        facts: &Facts,
        register: Vec<Option<u32>>,
    ) -> Result<Demoted, Stuck> {
        let ranges = facts.ranges(&draft);
        let used: BTreeSet<Value> = draft
            .insts()
            .filter(|&inst| !matches!(draft.origin(inst), Origin::Own(_)))
            .flat_map(|inst| draft.uses(inst).iter().chain(draft.defs(inst)).copied())
            .filter(|&value| matches!(draft.role(value), Role::Slot(_)))
            .collect();
        let mut cells: BTreeMap<Value, Cell> = BTreeMap::new();
        let mut sizes = [0, 0];
        let meets =
            |cells: &BTreeMap<Value, Cell>, slots: &[Value], same: &dyn Fn(Cell) -> bool| {
                let mut taken = cells.iter().filter(|(_, cell)| same(**cell));
                taken.any(|(&other, _)| slots.iter().any(|&slot| ranges.interfere(slot, other)))
            };
        for &(a, b) in &self.pairs {
            if !used.contains(&a) && !used.contains(&b) {
                continue;
            }
            let number = (0..).find(|&n| {
                let same = |cell: Cell| matches!(cell, Cell::Half(m, _) if m == n);
                !meets(&cells, &[a, b], &same)
            });
            let number = number.unwrap_or(0);
            cells.insert(a, Cell::Half(number, false));
            cells.insert(b, Cell::Half(number, true));
            sizes[0] = sizes[0].max(number + 1);
        }
        for &slot in &used {
            if cells.contains_key(&slot) {
                continue;
            }
            let number = (0..).find(|&n| !meets(&cells, &[slot], &|cell| cell == Cell::Word(n)));
            let number = number.unwrap_or(0);
            cells.insert(slot, Cell::Word(number));
            sizes[1] = sizes[1].max(number + 1);
        }
        let done = Demoted {
            draft,
            register,
            cells,
            sizes,
            values: self.values,
        };
        match done.bytes() <= self.goal.bytes {
            true => Ok(done),
            false => Err(Stuck::NoRoom(done.bytes())),
        }
    }
}

fn accesses(facts: &Facts, value: Value, weight: impl Fn(Inst) -> f64) -> f64 {
    let all = facts.def_use.defs(value).iter();
    let all = all.chain(facts.def_use.uses(value));
    all.map(|&inst| weight(inst)).sum()
}

fn count(facts: &Facts, values: &[Value], weight: impl Fn(Inst) -> f64) -> f64 {
    values
        .iter()
        .map(|&value| accesses(facts, value, &weight))
        .sum()
}

fn common(a: &[Inst], b: &[Inst]) -> Vec<Inst> {
    a.iter().copied().filter(|inst| b.contains(inst)).collect()
}

/// Values that are halves of a pair in most of their accesses: with the pair, by either half.
fn twins(draft: &Draft, facts: &Facts) -> BTreeMap<Value, (Value, Value)> {
    let mut seen: BTreeMap<(Value, Value), usize> = BTreeMap::new();
    for inst in draft.insts() {
        draft.for_each_tuple(inst, |values, _| {
            for pair in values.chunks_exact(2) {
                *seen.entry((pair[0], pair[1])).or_default() += 1;
            }
        });
    }
    let mut by_count: Vec<((Value, Value), usize)> = seen.into_iter().collect();
    by_count.sort_by_key(|&(pair, count)| (std::cmp::Reverse(count), pair));
    let mut twins = BTreeMap::new();
    for ((a, b), count) in by_count {
        let accesses = |value| facts.def_use.defs(value).len() + facts.def_use.uses(value).len();
        let is_usual = 2 * count >= accesses(a).max(accesses(b));
        if a != b && is_usual && !twins.contains_key(&a) && !twins.contains_key(&b) {
            twins.insert(a, (a, b));
            twins.insert(b, (a, b));
        }
    }
    twins
}

/// Lets loads, and what is computed again, stand some instructions before their use, where the pressure leaves a register
/// for that: within their block, behind what writes the slot or touches the value.
fn hoist(draft: &mut Draft, registers: u32, known: Known<'_>) {
    let facts = Facts::new(draft);
    let curve = facts.pressure(draft);
    let mut during: Vec<u32> = draft.insts().map(|inst| curve.during(inst)).collect();
    for block in facts.cfg.blocks() {
        let first = facts.cfg.first_inst(block).index();
        let last = facts.cfg.last_inst(block).index();
        for at in first..=last {
            let computed = match draft.code[at].origin {
                Origin::Load { .. } => None,
                Origin::Copy { of, .. } => Some(of),
                _ => continue,
            };
            let (mut place, mut own) = (at, 0);
            let units = draft.code[at].defs.len() as u32;
            while place > first && own < HOIST {
                let (load, before) = (&draft.code[place], &draft.code[place - 1]);
                let touches = load
                    .defs
                    .iter()
                    .any(|value| before.defs.contains(value) || before.uses.contains(value));
                let touches = touches || load.uses.iter().any(|value| before.defs.contains(value));
                let is_own = matches!(before.origin, Origin::Own(_));
                let may_pass = match before.origin {
                    Origin::Own(own) => {
                        let can_stand = |of: Inst| (known.computable)(of, own);
                        !(known.fence)(own) && computed.is_none_or(can_stand)
                    }
                    Origin::Load { .. } | Origin::Copy { .. } => true,
                    _ => false,
                };
                if touches || !may_pass || during[place - 1] + units > registers {
                    break;
                }
                draft.code.swap(place - 1, place);
                during.swap(place - 1, place);
                during[place] += units;
                own += usize::from(is_own);
                place -= 1;
            }
            during[place] = during[place].max(during.get(place + 1).copied().unwrap_or(0));
        }
    }
}
