//! What every location holds, and what it holds where paths meet.
//!
//! A state is a vector of terms, one for each location that may still be read at a node: registers
//! of both functions that are live there, carry flags, memories and spill slots. That dead registers
//! are left out saves time and cannot make a proof wrong: a register that is read although it was
//! left out holds a term that equals nothing else.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::term::{Head, Term, Terms};

/// Memories, by number: those of [`crate::Spaces`], in the order of its bits, then two more.
pub(crate) const MEMORIES: usize = 7;

/// Order among instructions that exchange values within a warp.
pub(crate) const CONVERGENCE: usize = 5;

/// What the caller sees.
pub(crate) const CALLER: usize = 6;

/// One term for each location of a node; see [`Layout`].
pub(crate) type State = Vec<Term>;

/// Where the locations of a node stand in its states.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Layout {
    /// Live registers of the original come first, …
    pub(crate) original: usize,
    /// … then those of the rewritten function, …
    pub(crate) rewritten: usize,
}

impl Layout {
    /// … then the two carry flags, …
    pub(crate) fn flag(self, side: usize) -> usize {
        self.original + self.rewritten + side
    }

    /// … the memories as each function sees them, …
    pub(crate) fn memory(self, side: usize, memory: usize) -> usize {
        self.original + self.rewritten + 2 + side * MEMORIES + memory
    }

    /// … and the spill slots.
    pub(crate) fn slot(self, slot: usize) -> usize {
        self.original + self.rewritten + 2 + 2 * MEMORIES + slot
    }
}

/// The partition of a loop header's locations that has been found so far.
///
/// It starts from the assumption that every location is unchanged around the loop, and each round
/// refines it by what really arrives. Class 0 holds the locations that are still thought to be
/// unchanged; all others change, and those of one class always change alike.
#[derive(Clone, Debug, Default)]
pub(crate) struct Classes(Vec<u32>);

type Key = (u32, SmallVec<[Term; 4]>);

impl Classes {
    fn get(&self, position: usize) -> u32 {
        self.0.get(position).copied().unwrap_or(0)
    }

    /// Refines the partition by the states that arrive; says whether it changed.
    pub(crate) fn refine(&mut self, arriving: &[&State]) -> bool {
        let len = arriving.iter().map(|state| state.len()).max().unwrap_or(0);
        let mut ids: FxHashMap<Key, u32> = FxHashMap::default();
        let mut seen: FxHashMap<u32, u32> = FxHashMap::default();
        let mut refined = Vec::with_capacity(len);
        let mut changed = false;
        for position in 0..len {
            let old = self.get(position);
            let tuple = tuple(arriving, position);
            if old == 0 && tuple.iter().all(|term| *term == tuple[0]) {
                refined.push(0);
                continue;
            }
            let next = ids.len() as u32 + 1;
            let class = *ids.entry((old, tuple)).or_insert(next);
            // A class is new if it comes from class 0 or is another part of an old one.
            changed |= old == 0 || *seen.entry(old).or_insert(class) != class;
            refined.push(class);
        }
        self.0 = refined;
        changed
    }
}

fn tuple(arriving: &[&State], position: usize) -> SmallVec<[Term; 4]> {
    arriving
        .iter()
        .filter_map(|state| state.get(position).copied())
        .collect()
}

/// The state on arrival at `node`: a location keeps its term if the same one arrives by every
/// edge, and locations that hold equal terms on every edge, and are of one class, share a new one.
pub(crate) fn join(terms: &mut Terms, node: u32, classes: &Classes, arriving: &[&State]) -> State {
    let len = arriving.first().map_or(0, |state| state.len());
    let mut labels: FxHashMap<Key, Term> = FxHashMap::default();
    let mut joined = Vec::with_capacity(len);
    for position in 0..len {
        let class = classes.get(position);
        let tuple = tuple(arriving, position);
        if class == 0 && tuple.iter().all(|term| *term == tuple[0]) {
            joined.push(tuple[0]);
            continue;
        }
        let label = Head::Phi(node, position as u32);
        let term = *labels
            .entry((class, tuple))
            .or_insert_with(|| terms.leaf(label));
        joined.push(term);
    }
    joined
}
