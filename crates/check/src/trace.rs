//! Where two values begin to differ: for reports, and to find registers that are read before they
//! are set. The proof does not depend on it.

use std::collections::VecDeque;

use rustc_hash::FxHashSet;

use crate::product::Product;
use crate::state::State;
use crate::term::{Head, Term, Terms};

/// Two terms that differ, and the edges over which they come together.
#[derive(Clone, Debug)]
pub(crate) struct Mismatch {
    pub(crate) terms: [Term; 2],
    /// (from, to), the last one first.
    pub(crate) edges: Vec<(u32, u32)>,
}

/// Looks back through the joins of the last round.
pub(crate) struct Tracer<'a> {
    pub(crate) terms: &'a Terms,
    pub(crate) product: &'a Product,
    pub(crate) arriving: &'a [Vec<Option<State>>],
    /// What arrives at node 0 from outside.
    pub(crate) entry: &'a State,
}

/// Pairs of terms that are looked at in one search: so many, and four for each term that there is.
const REACH: usize = 1 << 16;

impl Tracer<'_> {
    /// Goes down into two differing terms of `node` to the innermost difference.
    pub(crate) fn trace(&self, a: Term, b: Term) -> Mismatch {
        let mut found = Mismatch {
            terms: [a, b],
            edges: Vec::new(),
        };
        let mut seen = FxHashSet::default();
        while seen.insert(found.terms) {
            let [a, b] = found.terms;
            if let Some((edge, terms)) = self.over_an_edge(a, b) {
                found.edges.push(edge);
                found.terms = terms;
            } else if let Some(terms) = self.argument(a, b) {
                found.terms = terms;
            }
        }
        found
    }

    /// All innermost differences: pairs of terms that are not the same operation, and not joined at
    /// the same node from something that differs further back. With the number of pairs looked at.
    pub(crate) fn leaves(&self, pairs: Vec<[Term; 2]>) -> (Vec<[Term; 2]>, u64) {
        let mut leaves = Vec::new();
        let mut seen: FxHashSet<[Term; 2]> = FxHashSet::default();
        let mut work = pairs;
        let reach = REACH + 4 * self.terms.len();
        while let Some(pair) = work.pop() {
            let [a, b] = pair;
            if a == b || seen.len() >= reach || !seen.insert(pair) {
                continue;
            }
            let before = work.len();
            match (self.terms.head(a), self.terms.head(b)) {
                (Head::Phi(node, first), Head::Phi(other, second)) if node == other => {
                    let arriving = self.arriving[node as usize].iter().flatten();
                    let entry = (node == 0).then_some(self.entry);
                    let differing = arriving.chain(entry).filter_map(|state| {
                        let terms = [*state.get(first as usize)?, *state.get(second as usize)?];
                        (terms[0] != terms[1]).then_some(terms)
                    });
                    work.extend(differing);
                }
                (head, other) if head == other => {
                    let args = self.terms.args(a).iter().zip(self.terms.args(b));
                    work.extend(args.filter(|(a, b)| a != b).map(|(&a, &b)| [a, b]));
                }
                _ => {}
            }
            if work.len() == before {
                leaves.push(pair);
            }
        }
        (leaves, seen.len() as u64)
    }

    /// For two joined values of one node: an edge over which different terms arrive.
    fn over_an_edge(&self, a: Term, b: Term) -> Option<((u32, u32), [Term; 2])> {
        let (Head::Phi(node, first), Head::Phi(other, second)) =
            (self.terms.head(a), self.terms.head(b))
        else {
            return None;
        };
        if node != other {
            return None;
        }
        let preds = self.product.nodes[node as usize].preds.iter();
        preds
            .zip(&self.arriving[node as usize])
            .find_map(|(pred, state)| {
                let state = state.as_ref()?;
                let terms = [*state.get(first as usize)?, *state.get(second as usize)?];
                (terms[0] != terms[1]).then_some(((pred.0, node), terms))
            })
    }

    /// For two values of the same operation: the only argument that differs. Memories are not
    /// looked into: that a load reads another memory is the most that can be said of it.
    fn argument(&self, a: Term, b: Term) -> Option<[Term; 2]> {
        let (first, second) = (self.terms.args(a), self.terms.args(b));
        if self.terms.head(a) != self.terms.head(b) || first.len() != second.len() {
            return None;
        }
        let mut differing = first.iter().zip(second).filter(|(a, b)| a != b);
        let (&x, &y) = differing.next()?;
        let is_memory = |term| {
            matches!(
                self.terms.head(term),
                Head::Store(_) | Head::After(_) | Head::Memory(_) | Head::Event(_)
            )
        };
        (differing.next().is_none() && !is_memory(x) && !is_memory(y)).then_some([x, y])
    }

    /// A path from the entry over these edges (the last one first) to `node`.
    pub(crate) fn path(&self, node: u32, edges: &[(u32, u32)]) -> Vec<u32> {
        let mut path = Vec::new();
        let mut at = 0;
        for &(from, to) in edges.iter().rev().take(8) {
            path.extend(self.shortest(at, from));
            at = to;
        }
        path.extend(self.shortest(at, node));
        path
    }

    /// The nodes of a shortest path, both ends included; just the end if there is none.
    fn shortest(&self, from: u32, to: u32) -> Vec<u32> {
        let mut before = vec![u32::MAX; self.product.nodes.len()];
        let mut queue = VecDeque::from([from]);
        before[from as usize] = from;
        while let Some(at) = queue.pop_front() {
            if at == to {
                break;
            }
            for &succ in &self.product.nodes[at as usize].succs {
                if before[succ as usize] == u32::MAX {
                    before[succ as usize] = at;
                    queue.push_back(succ);
                }
            }
        }
        let mut path = vec![to];
        let mut at = to;
        while at != from && before[at as usize] != u32::MAX {
            at = before[at as usize];
            path.push(at);
        }
        path.reverse();
        path
    }
}
