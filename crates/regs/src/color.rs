//! Graph colouring: simplify, then select.
//!
//! Paper: Briggs 1992 (optimistic colouring: what seems to find no register is tried all the same),
//! with the generalised degree of Smith, Ramsey and Holloway (PLDI 2004) for values of several
//! sizes: all classes share one register file, a value of n registers begins at a multiple of n, and
//! a node is surely colourable if its neighbours cannot block all its places.
//!
//! Ties go to the lower value, so that the result depends on nothing but the graph.

use std::collections::BTreeSet;

use warpwright_flow::{EntityRef, Function, Value};

use crate::draft::{Draft, Role};
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
}

/// Places of `value` that one neighbour blocks at most.
pub(crate) fn blocked(draft: &Draft, value: Value, neighbour: Value) -> u32 {
    let units = draft.units(neighbour).checked_div(draft.units(value));
    units.unwrap_or(1).max(1)
}

/// What colouring found.
pub(crate) struct Colouring {
    /// For each value its first register, in 32-bit registers (in values, for other files).
    pub(crate) register: Vec<Option<u32>>,
    /// The values that found none.
    pub(crate) uncoloured: Vec<Value>,
}

/// Colours all registers of the draft. `cost` is what spilling a value costs; infinite for those
/// that cannot be spilled.
pub(crate) fn colour(draft: &Draft, graph: &Graph, file: File, cost: &[f64]) -> Colouring {
    let mut register = vec![None; draft.value_count()];
    let mut uncoloured = Vec::new();
    for value in simplify(draft, graph, file, cost).into_iter().rev() {
        match free_place(draft, graph, file, &register, value) {
            Some(place) => register[value.index()] = Some(place),
            None => uncoloured.push(value),
        }
    }
    uncoloured.sort_unstable();
    Colouring {
        register,
        uncoloured,
    }
}

/// The order in which nodes leave the graph.
fn simplify(draft: &Draft, graph: &Graph, file: File, cost: &[f64]) -> Vec<Value> {
    let is_register = |value: &Value| !matches!(draft.role(*value), Role::Slot(_));
    let nodes: Vec<Value> = draft.values().filter(is_register).collect();
    let mut squeeze: Vec<u32> = vec![0; draft.value_count()];
    for &value in &nodes {
        let neighbours = graph.of(value).iter();
        squeeze[value.index()] = neighbours.map(|&n| blocked(draft, value, n)).sum();
    }
    let is_low =
        |squeeze: &[u32], value: Value| squeeze[value.index()] < file.places(draft.units(value));
    let (mut low, mut high): (BTreeSet<Value>, BTreeSet<Value>) =
        nodes.iter().partition(|&&value| is_low(&squeeze, value));
    let mut stack = Vec::with_capacity(nodes.len());
    let mut gone = vec![false; draft.value_count()];
    loop {
        let next = low.pop_first().or_else(|| {
            let cheapest = cheapest(&high, cost, &squeeze)?;
            high.remove(&cheapest);
            Some(cheapest)
        });
        let Some(value) = next else { break };
        gone[value.index()] = true;
        stack.push(value);
        for &other in graph.of(value) {
            if gone[other.index()] {
                continue;
            }
            squeeze[other.index()] -= blocked(draft, other, value);
            if is_low(&squeeze, other) && high.remove(&other) {
                low.insert(other);
            }
        }
    }
    stack
}

/// The value whose spilling costs least for each neighbour that it frees (Chaitin's rule).
fn cheapest(high: &BTreeSet<Value>, cost: &[f64], squeeze: &[u32]) -> Option<Value> {
    let merit = |value: &Value| cost[value.index()] / f64::from(squeeze[value.index()].max(1));
    let all = high.iter().copied();
    all.min_by(|a, b| merit(a).total_cmp(&merit(b)).then(a.cmp(b)))
}

/// The lowest place that no coloured neighbour overlaps.
fn free_place(
    draft: &Draft,
    graph: &Graph,
    file: File,
    register: &[Option<u32>],
    value: Value,
) -> Option<u32> {
    let size = draft.units(value).max(1);
    let mut taken: Vec<(u32, u32)> = graph
        .of(value)
        .iter()
        .filter_map(|&other| {
            let first = register[other.index()]?;
            Some((first, first + draft.units(other).max(1)))
        })
        .collect();
    taken.sort_unstable();
    let mut place = 0;
    for (first, end) in taken {
        if first < place + size && place < end {
            place = end.next_multiple_of(size);
        }
    }
    let fits = draft.units(value) == 0 || place + size <= file.registers;
    fits.then_some(place)
}
