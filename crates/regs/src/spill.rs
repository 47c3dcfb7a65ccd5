//! Goal: lower the register pressure to a desired degree by keeping values in shared memory while
//! the pressure is high.
//!
//! Paper: You & Tsai section 2.3, Algorithm 2 and Eq. 3. While the pressure is above the goal, take
//! the first region at the highest pressure, and among the values that live across it without being
//! accessed there, spill one, as long as the slots fit into the maximum spilling capacity (MSC).
//!
//! Departures:
//! - The paper stores after the last access before the region and loads before the first one behind
//!   it, in straight-line code. Here 'before' and 'behind' are data-flow facts ([`crate::evict`]), so
//!   branches and loops are handled, and the value is away over *all* code above the goal, not over
//!   the region alone: the next peak needs no second pair of accesses.
//! - The paper takes the value that covers most regions of the same pressure, or the longest live
//!   range. Here a value counts by registers times covered regions over the loop-weighted cost of its
//!   loads and stores; the longest range decides ties. A 64-bit value frees two registers.
//! - MSC is in bytes per block, not in registers: slots have two sizes, and slots whose contents are
//!   never needed at the same time share memory.
//! - The base address takes a register itself, which counts.
//!
//! Requires nothing of the function; preserves what every thread computes. Values in flight under
//! asynchronous operations, possibly unset ones, predicates and values wider than 64 bits stay where
//! they are.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use warpwright_flow::{Class, EntityRef, Function, Inst, LiveRanges, Point, PressureRegion, Value};

use crate::draft::{Code, Draft, Origin, Role};
use crate::evict::{Facts, SplitRegion, evict, pinned, reloads, remove_dead_stores, writers};
use crate::frame::{Frame, Layout};

/// What spilling may take.
#[derive(Clone, Debug)]
pub struct Room {
    /// The desired register usage, in 32-bit registers (Eq. 1 and 2 of the paper).
    pub goal: u32,
    /// The maximum spilling capacity: bytes of shared memory per block.
    pub capacity: u64,
    /// Threads of the largest block.
    pub threads: u32,
    /// How the slots lie in memory.
    pub layout: Layout,
    /// The class of a shared-memory address.
    pub address: Class,
    /// Registers that computing the base addresses takes besides them.
    pub scratch: u32,
    /// Rounds at most: in each, one value is spilled.
    pub most: u64,
}

/// A function with some of its values in memory over parts of their live ranges.
#[derive(Clone, Debug)]
pub struct Spilled {
    /// The code, with loads, stores and base addresses in their places.
    pub draft: Draft,
    /// Where the slots lie.
    pub frame: Frame,
    /// The highest pressure now, in 32-bit registers.
    pub pressure: u32,
    /// Rounds that this version took.
    pub rounds: u64,
}

/// Algorithm 2. `None`: the goal is met already, or nothing lowers the pressure. The pressure that is
/// reached may still be above the goal.
///
/// `may_spill` says of which registers the instruction set can load and store.
pub fn spill(
    func: &impl Function,
    room: &Room,
    may_spill: impl Fn(Value) -> bool,
) -> Option<Spilled> {
    let mut draft = Draft::new(func);
    let facts = Facts::new(&draft);
    let start = facts.pressure(&draft).max();
    if start <= room.goal {
        return None;
    }
    let mut state = Spilling {
        room,
        fixed: pinned(&draft, &facts)
            .iter()
            .enumerate()
            .map(|(index, &pinned)| pinned || !may_spill(Value::new(index)))
            .collect(),
        bases: Vec::new(),
    };
    let mut best: Option<Spilled> = None;
    let mut done = 0;
    while done < room.most
        && let Some((next, clean)) = state.step(&draft)
    {
        draft = next;
        done += 1;
        let is_better = best
            .as_ref()
            .is_none_or(|best| clean.pressure < best.pressure);
        if is_better && clean.pressure < start {
            best = Some(Spilled {
                rounds: done,
                ..clean
            });
        }
    }
    best
}

/// Removes what turned out useless, and places the slots.
fn finish(draft: &Draft, room: &Room) -> Spilled {
    let mut draft = draft.clone();
    remove_dead_stores(&mut draft);
    let facts = Facts::new(&draft);
    let ranges = facts.ranges(&draft);
    let frame = Frame::new(&draft, &ranges, room.layout, room.threads, |_| true);
    let pressure = facts.pressure(&draft).max();
    Spilled {
        draft,
        frame,
        pressure,
        rounds: 0,
    }
}

/// A value that could be spilled for a region, and what speaks for it.
struct Candidate {
    value: Value,
    reloads: Vec<Inst>,
    /// Registers freed times regions of the highest pressure.
    relief: u32,
    /// Loop-weighted loads and stores.
    cost: f64,
    /// Instructions over which it is live.
    length: u32,
}

impl Candidate {
    /// The best first; the order is total, so the choice depends on nothing else.
    fn order(&self, other: &Candidate) -> Ordering {
        let merit = |c: &Candidate| f64::from(c.relief) / c.cost.max(f64::MIN_POSITIVE);
        merit(other)
            .total_cmp(&merit(self))
            .then(other.length.cmp(&self.length))
            .then(self.value.cmp(&other.value))
    }
}

struct Spilling<'a> {
    room: &'a Room,
    /// Registers that stay, by value of the original function.
    fixed: Vec<bool>,
    /// Base addresses that there are, with their access size (0: any).
    bases: Vec<(u32, Value)>,
}

impl Spilling<'_> {
    /// One round of the algorithm's loop: the draft with one more value spilled, and what it comes to.
    fn step(&mut self, draft: &Draft) -> Option<(Draft, Spilled)> {
        let facts = Facts::new(draft);
        let pressure = facts.pressure(draft);
        if pressure.max() <= self.room.goal {
            return None;
        }
        let regions = pressure.peak_regions();
        let away = SplitRegion::new(draft, |inst| pressure.during(inst) > self.room.goal);
        let ranges = facts.ranges(draft);
        let mut candidates: Vec<Candidate> = draft
            .values()
            .filter(|value| self.fixed.get(value.index()) == Some(&false))
            .filter(|&value| crosses(&facts, &ranges, value, regions[0]))
            .map(|value| candidate(draft, &facts, &ranges, &away, &regions, value))
            .collect();
        candidates.sort_by(Candidate::order);
        candidates
            .iter()
            .find_map(|candidate| self.try_spill(draft, &facts, candidate))
    }

    /// Spills a candidate if its slot fits.
    fn try_spill(
        &mut self,
        draft: &Draft,
        facts: &Facts,
        candidate: &Candidate,
    ) -> Option<(Draft, Spilled)> {
        let mut next = draft.clone();
        let bytes = draft.bytes(candidate.value);
        let known = self.bases.len();
        let base = self.base(&mut next, bytes);
        let added = evict(
            &mut next,
            facts,
            candidate.value,
            &candidate.reloads,
            Some(base),
        );
        next.insert(added);
        place_bases(&mut next, &self.bases, self.room);
        let clean = finish(&next, self.room);
        if clean.frame.bytes() > self.room.capacity {
            self.bases.truncate(known);
            return None;
        }
        Some((next, clean))
    }

    /// The base address for accesses of a size.
    fn base(&mut self, draft: &mut Draft, bytes: u32) -> Value {
        let size = match self.room.layout {
            Layout::SlotMajor => bytes,
            Layout::ThreadMajor => 0,
        };
        if let Some(&(_, base)) = self.bases.iter().find(|(of, _)| *of == size) {
            return base;
        }
        let base = draft.add_value(Role::Base(size), self.room.address);
        self.bases.push((size, base));
        base
    }
}

/// Puts the computation of the base addresses at the entry, or brings the one there up to date.
pub(crate) fn place_bases(draft: &mut Draft, bases: &[(u32, Value)], room: &Room) {
    if bases.is_empty() {
        return;
    }
    let first = draft.code.first();
    let is_there = first.is_some_and(|code| code.origin == Origin::Bases);
    if !is_there {
        let scratch: Vec<Value> = (0..room.scratch)
            .map(|_| draft.add_value(Role::Scratch, room.address))
            .collect();
        draft.insert_at_entry(Code::new(Origin::Bases, &scratch, &[]));
    }
    let defs = &mut draft.code[0].defs;
    for &(_, base) in bases {
        if !defs.contains(&base) {
            defs.push(base);
        }
    }
}

/// Does the value live across the region without being accessed there?
fn crosses(facts: &Facts, ranges: &LiveRanges, value: Value, region: PressureRegion) -> bool {
    let (start, end) = (Point::before(region.first), Point::after(region.last));
    let mut segments = ranges.segments(value).iter();
    let within = |list: &[Inst]| {
        let from = list.partition_point(|&inst| inst < region.first);
        list.get(from).is_some_and(|&inst| inst <= region.last)
    };
    segments.any(|segment| segment.start <= start && end <= segment.end)
        && !within(facts.def_use.uses(value))
        && !within(facts.def_use.defs(value))
}

fn candidate(
    draft: &Draft,
    facts: &Facts,
    ranges: &LiveRanges,
    away: &SplitRegion,
    regions: &[PressureRegion],
    value: Value,
) -> Candidate {
    let reloads = reloads(draft, facts, value, away);
    let weigh = |insts: &[Inst]| insts.iter().map(|&inst| facts.weight(inst)).sum::<f64>();
    let has_slot = draft.values[value.index()].slot.is_some();
    let stores: Vec<Inst> = match has_slot {
        true => Vec::new(),
        false => writers(draft, facts, value).collect(),
    };
    let covered = regions
        .iter()
        .filter(|&&region| crosses(facts, ranges, value, region))
        .count() as u32;
    Candidate {
        value,
        relief: draft.units(value) * covered,
        cost: weigh(&reloads) + weigh(&stores),
        reloads,
        length: ranges.length(value),
    }
}

/// The registers of the function that have slots.
pub fn spilled_registers(draft: &Draft) -> BTreeSet<Value> {
    let slots = draft.values().filter_map(|value| match draft.role(value) {
        Role::Slot(register) => Some(register),
        _ => None,
    });
    slots.collect()
}
