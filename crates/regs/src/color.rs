//! Graph colouring: simplify, then select.
//!
//! Paper: Briggs 1992 (optimistic colouring: what seems to find no register is tried all the same),
//! with the generalised degree of Smith, Ramsey and Holloway (PLDI 2004) for values of several
//! sizes: all classes share one register file, a value of n registers begins at a multiple of n, and
//! a node is surely colourable if its neighbours cannot block all its places. A node is a group of
//! values ([`crate::groups`]): register pairs and fours move as one.
//!
//! Ties go to the lower value, so that the result depends on nothing but the graph.

use std::cell::Cell;
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use smallvec::SmallVec;
use warpwright_flow::{EntityRef, Function, Value};

use crate::draft::Draft;
use crate::groups::{Bank, Conflict, Conflicts, Contradiction, Group, Groups};
use crate::interference::Graph;

/// The register file: how many 32-bit registers a thread may have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct File {
    pub(crate) registers: u32,
}

impl File {
    /// Places where a value of `units` registers can begin. Classes that take none (predicates) are
    /// not limited here.
    pub(crate) fn places(self, units: u32) -> u32 {
        self.registers.checked_div(units).unwrap_or(u32::MAX)
    }

    /// Places where a group can begin.
    fn places_of(self, group: &Group) -> u32 {
        match (group.bank, group.fixed) {
            (Bank::Class(_), _) => u32::MAX,
            (Bank::General, Some(_)) => 1,
            (Bank::General, None) => {
                let last = self.registers.checked_sub(group.span + group.residue);
                last.map_or(0, |last| last / group.align + 1)
            }
        }
    }
}

/// Places of `value` that one neighbour blocks at most.
pub(crate) fn blocked(draft: &Draft, value: Value, neighbour: Value) -> u32 {
    let units = draft.units(neighbour).checked_div(draft.units(value));
    units.unwrap_or(1).max(1)
}

/// Places of `group` that `other` blocks at most, wherever it lies: of the forbidden distances those
/// that both alignments allow.
fn blocked_by(group: &Group, other: &Group, distances: &[i64]) -> u32 {
    if group.align == 1 {
        return distances.len() as u32;
    }
    let (align, common) = (i64::from(group.align), group.align.min(other.align).into());
    let apart = i64::from(group.residue) - i64::from(other.residue);
    let classes = (0..align).filter(|class| (class - apart).rem_euclid(common) == 0);
    let counts = classes.map(|class| {
        let those = distances.iter().filter(|d| d.rem_euclid(align) == class);
        those.count() as u32
    });
    counts.max().unwrap_or(0)
}

/// Registers that values had before, which they keep where they can: for each value, if any. Else one whose
/// number differs by an even one: register banks go by the lowest bit of the number (Volta and later: Jia
/// et al., Dissecting the NVIDIA Volta GPU Architecture via Microbenchmarking, 2018, section 3.1), so that the
/// operands of an instruction stay as spread over the banks as they were.
pub(crate) type Former<'a> = &'a [Option<u32>];

/// What colouring found.
pub(crate) struct Colouring {
    /// For each value its first register, in 32-bit registers (in values, for other files).
    pub(crate) register: Vec<Option<u32>>,
    /// The values that found none.
    pub(crate) uncoloured: Vec<Value>,
    /// Neighbours that were looked at for a place.
    pub(crate) work: u64,
}

/// Colours all registers of the draft. `cost` is what spilling a value costs; infinite for those
/// that cannot be spilled. No other order is tried after so much `work` ([`Colouring::work`]).
pub(crate) fn colour(
    draft: &Draft,
    graph: &Graph,
    file: File,
    cost: &[f64],
    (formers, work): (&[Former<'_>], u64),
) -> Result<Colouring, Contradiction> {
    let groups = Groups::new(draft)?;
    let mut colouring = Colour {
        former: formers.first().copied().unwrap_or_default(),
        conflicts: groups.conflicts(draft, graph)?,
        groups: &groups,
        file,
        work: Cell::new(0),
        most: work,
    };
    let fixed = (0..groups.list.len()).filter(|&g| groups.list[g].fixed.is_some());
    // Given registers come first: others must do without them.
    let fixed: Vec<usize> = fixed.collect();
    let order: Vec<usize> = colouring.simplify(cost).into_iter().rev().collect();
    let (mut place, mut failed) = colouring.select(&fixed, &order);
    for former in formers {
        colouring.former = former;
        (place, failed) = colouring.urge(&fixed, &order, (place, failed));
    }
    let mut uncoloured = Vec::new();
    for group in failed {
        uncoloured.extend(groups.list[group].members.iter().map(|&(value, _)| value));
    }
    let mut register = vec![None; draft.value_count()];
    for (group, place) in groups.list.iter().zip(place) {
        for &(value, at) in &group.members {
            register[value.index()] = place.map(|place| place + at);
        }
    }
    uncoloured.sort_unstable();
    Ok(Colouring {
        register,
        uncoloured,
        work: colouring.work.get(),
    })
}

struct Colour<'a> {
    groups: &'a Groups,
    former: Former<'a>,
    conflicts: Conflicts,
    file: File,
    /// See [`Colouring::work`].
    work: Cell<u64>,
    most: u64,
}

impl Colour<'_> {
    fn group(&self, index: usize) -> &Group {
        &self.groups.list[index]
    }

    /// Places of a node that a neighbour blocks at most.
    fn blocks(&self, node: usize, met: &Conflict) -> u32 {
        blocked_by(
            self.group(node),
            self.group(met.other()),
            self.conflicts.distances(met),
        )
    }

    /// The order in which nodes leave the graph; fixed ones stay.
    fn simplify(&self, cost: &[f64]) -> Vec<usize> {
        let nodes = 0..self.groups.list.len();
        let mut squeeze: Vec<u32> = nodes
            .clone()
            .map(|node| {
                let neighbours = self.conflicts.of(node).iter();
                let blocked = neighbours.map(|met| self.blocks(node, met));
                blocked.sum()
            })
            .collect();
        let cost: Vec<f64> = nodes
            .clone()
            .map(|node| {
                let members = self.group(node).members.iter();
                members.map(|&(value, _)| cost[value.index()]).sum()
            })
            .collect();
        let is_low =
            |squeeze: &[u32], node: usize| squeeze[node] < self.file.places_of(self.group(node));
        let is_free = |node: &usize| self.group(*node).fixed.is_none();
        let free = nodes.filter(is_free);
        let (low, high): (Vec<usize>, Vec<usize>) = free.partition(|&node| is_low(&squeeze, node));
        let mut low: BTreeSet<usize> = low.into_iter().collect();
        let mut stack = Vec::with_capacity(low.len() + high.len());
        let mut is_high = vec![false; self.groups.list.len()];
        high.iter().for_each(|&node| is_high[node] = true);
        let mut high = Costs::new(&cost, &squeeze, high);
        let mut gone = vec![false; self.groups.list.len()];
        loop {
            let next = low
                .pop_first()
                .or_else(|| high.pop(&squeeze, |node| is_high[node]));
            let Some(node) = next else { break };
            is_high[node] = false;
            gone[node] = true;
            stack.push(node);
            for other in self.conflicts.of(node).iter().map(Conflict::other) {
                if gone[other] {
                    continue;
                }
                let theirs = self.conflicts.of(other);
                let Ok(at) = theirs.binary_search_by_key(&node, Conflict::other) else {
                    continue;
                };
                squeeze[other] -= self.blocks(other, &theirs[at]);
                if is_low(&squeeze, other) && std::mem::take(&mut is_high[other]) {
                    low.insert(other);
                }
            }
        }
        stack
    }

    /// Gives the groups places in this order; says which found none.
    fn select(&self, fixed: &[usize], order: &[usize]) -> Selection {
        let mut place = vec![None; self.groups.list.len()];
        let mut failed = Vec::new();
        for &group in fixed.iter().chain(order) {
            place[group] = self.free_place(&place, group);
            if place[group].is_none() {
                failed.push(group);
            }
        }
        (place, failed)
    }

    /// Lets those that found no place choose before others, again and again, and keeps the best that came of it;
    /// tuples first is tried as well.
    fn urge(&self, fixed: &[usize], order: &[usize], first: Selection) -> Selection {
        const ROUNDS: usize = 24;
        const PATIENCE: usize = 5;
        let order = order.to_vec();
        let mut wide = order.clone();
        wide.sort_by_key(|&group| std::cmp::Reverse(self.group(group).span.min(4)));
        let mut best = first;
        for mut order in [order, wide] {
            let mut last = 0;
            for round in 0..ROUNDS {
                if best.1.is_empty() || self.work.get() >= self.most {
                    return best;
                }
                let found = self.select(fixed, &order);
                let urgent: BTreeSet<usize> = found.1.iter().copied().collect();
                order.sort_by_key(|group| !urgent.contains(group));
                if found.1.len() < best.1.len() {
                    best = found;
                    last = round;
                }
                if round > last + PATIENCE {
                    break;
                }
            }
        }
        best
    }

    /// Where the group was, if it was somewhere.
    fn former_place(&self, group: &Group) -> Option<u32> {
        let mut members = group.members.iter();
        members.find_map(|&(value, at)| {
            let place = (*self.former.get(value.index())?)?.checked_sub(at)?;
            (place % group.align == group.residue).then_some(place)
        })
    }

    /// A place that overlaps with no coloured neighbour: the former one, else one where the fewest neighbouring
    /// places are free, so that room for tuples is left, in the same bank if there is a choice.
    fn free_place(&self, place: &[Option<u32>], index: usize) -> Option<u32> {
        let group = self.group(index);
        let mut taken = Taken::default();
        let neighbours = self.conflicts.of(index);
        self.work.set(self.work.get() + neighbours.len() as u64);
        for met in neighbours {
            if let Some(other) = place[met.other()] {
                let distances = self.conflicts.distances(met).iter();
                let places = distances.map(|d| i64::from(other) + d);
                places.for_each(|place| taken.take(place));
            }
        }
        let limit = match group.bank {
            Bank::General => self.file.registers,
            // Each place that is taken is one: some place up to their number is free.
            Bank::Class(_) => taken.count * group.align + group.residue + group.span + 1,
        };
        let end = (limit + 1).saturating_sub(group.span);
        let fits = |place: u32| place < end && taken.is_free(place);
        let mut places = (group.residue..end).step_by(group.align as usize);
        if self.former.is_empty() || group.fixed.is_some() {
            return match group.fixed {
                Some(place) => Some(place).filter(|&place| fits(place)),
                None => places.find(|&place| fits(place)),
            };
        }
        let former = self.former_place(group);
        let room = |place: u32| {
            let four = place / 4 * 4..place / 4 * 4 + 4;
            let step = group.span.clamp(1, 4) as usize;
            four.step_by(step).filter(|&place| fits(place)).count()
        };
        let other_bank = |place: u32| former.map_or(0, |former| (place ^ former) & 1);
        former.filter(|&place| fits(place)).or_else(|| {
            let free = places.filter(|&place| fits(place));
            free.min_by_key(|&place| (room(place), other_bank(place), place))
        })
    }
}

/// The place of each group, and the groups that found none.
type Selection = (Vec<Option<u32>>, Vec<usize>);

/// Places that neighbours have.
#[derive(Default)]
struct Taken {
    /// One bit each.
    bits: SmallVec<[u64; 4]>,
    /// Each as often as it was taken.
    count: u32,
}

impl Taken {
    fn take(&mut self, place: i64) {
        self.count += 1;
        let Ok(place) = usize::try_from(place) else {
            return;
        };
        if place / 64 >= self.bits.len() {
            self.bits.resize(place / 64 + 1, 0);
        }
        self.bits[place / 64] |= 1 << (place % 64);
    }

    fn is_free(&self, place: u32) -> bool {
        let bits = self.bits.get(place as usize / 64);
        bits.is_none_or(|bits| bits >> (place % 64) & 1 == 0)
    }
}

/// Nodes by what their spilling costs for each neighbour that it frees (Chaitin's rule). Neighbours only leave, so it
/// only gets dearer: a node is looked at again when its old cost comes up.
struct Costs<'a> {
    cost: &'a [f64],
    /// Costs are not negative, so their bits are in their order.
    heap: BinaryHeap<Reverse<(u64, usize)>>,
}

impl<'a> Costs<'a> {
    fn new(cost: &'a [f64], squeeze: &[u32], nodes: Vec<usize>) -> Costs<'a> {
        let mut costs = Costs {
            cost,
            heap: BinaryHeap::new(),
        };
        let all = nodes
            .into_iter()
            .map(|node| Reverse((costs.of(node, squeeze), node)));
        costs.heap = all.collect();
        costs
    }

    fn of(&self, node: usize, squeeze: &[u32]) -> u64 {
        (self.cost[node] / f64::from(squeeze[node].max(1))).to_bits()
    }

    /// The cheapest one of those that are left.
    fn pop(&mut self, squeeze: &[u32], is_left: impl Fn(usize) -> bool) -> Option<usize> {
        while let Some(Reverse((known, node))) = self.heap.pop() {
            let now = self.of(node, squeeze);
            match (is_left(node), now == known) {
                (false, _) => {}
                (true, true) => return Some(node),
                (true, false) => self.heap.push(Reverse((now, node))),
            }
        }
        None
    }
}
