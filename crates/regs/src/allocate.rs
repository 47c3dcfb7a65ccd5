//! Goal: as few registers as the limit says, with as little spill code as possible.
//!
//! Paper: CRAT section 5.1, which takes the allocator of Chaitin and Briggs: live ranges (webs),
//! interference graph, conservative coalescing, optimistic colouring, spill code, and again until
//! everything has a register. Section 5.3 (spilling to shared memory) is [`crate::substacks`].
//!
//! Departures:
//! - CRAT colours each PTX type on its own and wastes registers, as it says: one that is free cannot
//!   take a value of another type. Here all types share one file of 32-bit registers, 64-bit values
//!   take aligned pairs, and the result is a register assignment that hardware could use as it is.
//! - A value is first spilled only over the code whose pressure is above the limit (as in You &
//!   Tsai's Algorithm 2), and everywhere only if that does not help.
//! - Predicates have a file of their own, which is not limited: they take no general register.
//! - Slots that are never needed at the same time share memory.
//! - Values that operands take together (pairs, fours), or that must lie in a given register, are
//!   coloured as one node ([`crate::groups`]) and not coalesced.
//!
//! Requires nothing of the function; preserves what every thread computes. Values in flight under
//! asynchronous operations, possibly unset ones and values wider than 64 bits get registers and are
//! never spilled.

use warpwright_flow::{Class, EntityRef, Function, Inst, Value};

use crate::coalesce::coalesce;
use crate::color::{File, colour};
use crate::draft::{Code, Draft, Origin, Role};
use crate::evict::{Facts, SplitRegion, evict, pinned, reloads};
use crate::frame::Frame;
use crate::groups::Contradiction;
use crate::interference::Graph;
use crate::substacks::{Shared, distribute};
use crate::webs::split;

/// What an allocation may take.
#[derive(Clone, Debug)]
pub struct Limits {
    /// 32-bit registers per thread.
    pub registers: u32,
    /// Shared memory for slots, if any is free; the rest goes to local memory.
    pub shared: Option<Shared>,
    /// The class of a shared-memory address.
    pub address: Class,
    /// Registers that computing base addresses in shared memory takes besides them.
    pub scratch: u32,
    /// Copies that are merged away at most. (What is spilled and renamed belongs together: a part of it is no
    /// allocation.)
    pub merges: u64,
}

/// Rounds of spilling at most: who needs many more spills one value after the other, and ends without registers (978
/// rounds for a product of matrices whose operands of tensor cores alone take the file).
pub const ROUNDS: usize = 64;

/// Why there is no allocation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AllocateError {
    /// The registers do not suffice for what must be in registers at once, or not after [`ROUNDS`] rounds of spilling; an
    /// instruction of the function where that is so.
    TooFew(Option<Inst>),
    /// Operands ask for what cannot be at once (a value first and second of a pair, a fixed register
    /// taken twice); an instruction that does, if it is one alone.
    Contradiction(Option<Inst>),
}

/// A function whose values have registers.
#[derive(Clone, Debug)]
pub struct Allocation {
    /// The code, with loads, stores and base addresses in their places, and without the copies that
    /// were merged away.
    pub draft: Draft,
    /// For each value its first 32-bit register; for predicates a number among them. `None`: a slot.
    pub register: Vec<Option<u32>>,
    /// Slots in shared memory.
    pub shared: Frame,
    /// Slots in local memory.
    pub local: Frame,
    /// Loop-weighted accesses that were added.
    pub added: Added,
    /// Copies that were merged away.
    pub merged: u64,
}

/// Loop-weighted instructions that an allocation added: CRAT's Num_shm, Num_local and Num_others
/// (section 6).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Added {
    /// Loads and stores of shared memory.
    pub shared: f64,
    /// Loads and stores of local memory.
    pub local: f64,
    /// Base addresses.
    pub others: f64,
}

/// Allocates registers. `may_spill` says of which registers the instruction set can load and store.
///
/// # Errors
/// [`AllocateError::TooFew`] if the limit cannot be reached.
pub fn allocate(
    func: &impl Function,
    limits: &Limits,
    may_spill: impl Fn(Value) -> bool,
) -> Result<Allocation, AllocateError> {
    let start = Draft::new(func);
    let plain = color_with(&start, limits, &[], &may_spill);
    let needs_none = |done: &Allocation| done.shared.is_empty() && done.local.is_empty();
    let Some(shared) = &limits.shared else {
        return plain;
    };
    if plain.as_ref().is_ok_and(needs_none) {
        return plain;
    }
    // A base address in a register makes room in shared memory and takes it in the file: try.
    let mut best = plain;
    for bases in shared.base_sizes() {
        let Ok(next) = color_with(&start, limits, bases, &may_spill) else {
            continue;
        };
        let is_better = match &best {
            Ok(best) => next.added.is_cheaper(&best.added),
            Err(_) => true,
        };
        if is_better {
            best = Ok(next);
        }
    }
    best
}

impl Added {
    /// CRAT's order: the fewest accesses to local memory, then to shared memory.
    fn is_cheaper(&self, other: &Added) -> bool {
        let key = |added: &Added| [added.local, added.shared, added.others];
        key(self) < key(other)
    }
}

/// Allocates with base addresses for shared accesses of certain sizes.
fn color_with(
    start: &Draft,
    limits: &Limits,
    bases: &[u32],
    may_spill: &impl Fn(Value) -> bool,
) -> Result<Allocation, AllocateError> {
    let file = File {
        registers: limits.registers,
    };
    let mut rounds = Rounds {
        draft: split(start),
        bases: Vec::new(),
        may_spill,
    };
    let mut merged = 0;
    loop {
        let more = coalesce(&mut rounds.draft, file, limits.merges - merged);
        match more.map_err(|found| rounds.contradiction(found))? {
            0 => break,
            more => merged += more,
        }
    }
    rounds.add_bases(bases, limits);
    for round in 1.. {
        let facts = Facts::new(&rounds.draft);
        let graph = Graph::new(&rounds.draft, &facts);
        let cost = rounds.costs(&facts);
        let found = colour(&rounds.draft, &graph, file, &cost, (&[], u64::MAX))
            .map_err(|found| rounds.contradiction(found))?;
        if found.uncoloured.is_empty() {
            let done = distribute(rounds.draft, found.register, limits, bases);
            return Ok(Allocation { merged, ..done });
        }
        let victims = victims(&graph, &cost, &found.uncoloured);
        if victims.is_empty() || round > ROUNDS {
            let tight = found.uncoloured.first();
            let at = tight.and_then(|&value| rounds.own_access(&facts, value));
            return Err(AllocateError::TooFew(at));
        }
        rounds.spill(&facts, limits, &victims);
    }
    Err(AllocateError::TooFew(None))
}

/// What to spill so that everything finds a register: the values that found none or, where such a
/// value cannot be spilled, its cheapest neighbour that can.
fn victims(graph: &Graph, cost: &[f64], uncoloured: &[Value]) -> Vec<Value> {
    let is_finite = |value: &Value| cost[value.index()].is_finite();
    let mut victims: Vec<Value> = uncoloured.iter().copied().filter(is_finite).collect();
    if victims.is_empty() {
        for &value in uncoloured {
            let neighbours = graph.of(value).iter().copied().filter(is_finite);
            let by_cost = |a: &Value, b: &Value| cost[a.index()].total_cmp(&cost[b.index()]);
            victims.extend(neighbours.min_by(by_cost));
        }
    }
    victims.sort_unstable();
    victims.dedup();
    victims
}

struct Rounds<'a, M> {
    draft: Draft,
    /// Base addresses with their access sizes.
    bases: Vec<(u32, Value)>,
    may_spill: &'a M,
}

impl<M: Fn(Value) -> bool> Rounds<'_, M> {
    fn add_bases(&mut self, sizes: &[u32], limits: &Limits) {
        if sizes.is_empty() {
            return;
        }
        let mut defs = Vec::new();
        for &size in sizes {
            let base = self.draft.add_value(Role::Base(size), limits.address);
            self.bases.push((size, base));
            defs.push(base);
        }
        for _ in 0..limits.scratch {
            defs.push(self.draft.add_value(Role::Scratch, limits.address));
        }
        self.draft
            .insert_at_entry(Code::new(Origin::Bases, &defs, &[]));
    }

    /// What spilling each value costs: loop-weighted accesses.
    fn costs(&self, facts: &Facts) -> Vec<f64> {
        let pinned = pinned(&self.draft, facts);
        let cost = |value: Value| {
            let is_fixed = match self.draft.role(value) {
                Role::Register(register) => !(self.may_spill)(register),
                _ => true,
            };
            let is_short = self.draft.values[value.index()].is_short;
            if is_fixed || is_short || pinned[value.index()] {
                return f64::INFINITY;
            }
            let accesses = facts.def_use.defs(value).iter();
            let accesses = accesses.chain(facts.def_use.uses(value));
            accesses.map(|&inst| facts.weight(inst)).sum()
        };
        self.draft.values().map(cost).collect()
    }

    /// Spills each victim over the code above the limit, or everywhere if that was done before or
    /// would not help.
    fn spill(&mut self, facts: &Facts, limits: &Limits, victims: &[Value]) {
        let pressure = facts.pressure(&self.draft);
        let crowded =
            SplitRegion::new(&self.draft, |inst| pressure.during(inst) > limits.registers);
        let all = SplitRegion::new(&self.draft, |_| true);
        let mut added = Vec::new();
        for &value in victims {
            let is_new = self.draft.values[value.index()].slot.is_none();
            let mut at = reloads(&self.draft, facts, value, &crowded);
            if !is_new || at.is_empty() {
                at = reloads(&self.draft, facts, value, &all);
                self.draft.values[value.index()].is_short = true;
            }
            let base = self.base_of(value);
            added.extend(evict(&mut self.draft, facts, value, &at, base));
        }
        self.draft.insert(added);
        // What spilling cut apart are values of their own now.
        self.draft = split(&self.draft);
    }

    fn base_of(&self, value: Value) -> Option<Value> {
        let bytes = self.draft.bytes(value);
        let base = self
            .bases
            .iter()
            .find(|(size, _)| [0, bytes].contains(size));
        base.map(|&(_, base)| base)
    }

    /// In terms of the function's own instructions.
    fn contradiction(&self, found: Contradiction) -> AllocateError {
        let own = found.0.and_then(|inst| match self.draft.origin(inst) {
            Origin::Own(inst) => Some(inst),
            _ => None,
        });
        AllocateError::Contradiction(own)
    }

    /// An instruction of the function that accesses a value.
    fn own_access(&self, facts: &Facts, value: Value) -> Option<Inst> {
        let accesses = facts.def_use.defs(value).iter();
        let mut accesses = accesses.chain(facts.def_use.uses(value));
        accesses.find_map(|&inst| match self.draft.origin(inst) {
            Origin::Own(inst) => Some(inst),
            _ => None,
        })
    }
}
