//! Which values of one point are values of other points, shifted.
//!
//! Goal: `mu[k][j+2][i] * met1[k][j+2][i]` at one point is `mu[k][j][i] * met1[k][j][i]` two points
//! further along `j`. All such expressions are one *class* at several *shifts*: it can be computed
//! once per point and read by its neighbours. (Deitz, Chamberlain & Snyder call this array
//! subexpression elimination, ICS 2001; here the classes are found bottom-up by numbering, like
//! value numbering with the shift factored out.)
//!
//! Only operands of commutative operations are exchanged to find equal classes; that changes no
//! bit of a result. A value that does not vary along a dimension has no shift along it.

use std::collections::BTreeMap;

use cranelift_entity::SecondaryMap;

use super::graph::{Graph, MOST_DIMS, Node, NodeId, Operation, Shift, SourceId};
use crate::ir::ScalarId;

/// A class, numbered from 0 in the order of the graph's nodes.
pub(super) type Class = u32;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    Constant(u64),
    Scalar(ScalarId),
    Load(SourceId),
    Operation(Kind, Vec<(Class, Shift)>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Neg,
    Binary(Operation),
    Call(&'static str),
}

/// The class and the shift of every node.
#[derive(Clone, Debug, Default)]
pub(super) struct Shifts {
    of: SecondaryMap<NodeId, (Class, Shift)>,
}

impl Shifts {
    /// Numbers the nodes of a graph.
    pub(super) fn new(graph: &Graph) -> Shifts {
        let mut classes: BTreeMap<Key, Class> = BTreeMap::new();
        let mut shifts = Shifts::default();
        for (id, node) in &graph.nodes {
            let (key, shift) = shifts.key(node);
            let next = classes.len() as Class;
            let class = *classes.entry(key).or_insert(next);
            shifts.of[id] = (class, shift);
        }
        shifts
    }

    /// The class of a node.
    pub(super) fn class(&self, node: NodeId) -> Class {
        self.of[node].0
    }

    /// Where a node stands relative to the others of its class.
    pub(super) fn shift(&self, node: NodeId) -> Shift {
        self.of[node].1
    }

    fn key(&self, node: &Node) -> (Key, Shift) {
        const NOWHERE: Shift = [None; MOST_DIMS];
        match node {
            Node::Constant(bits) => (Key::Constant(*bits), NOWHERE),
            Node::Scalar(scalar) => (Key::Scalar(*scalar), NOWHERE),
            Node::Load(source, shift) => (Key::Load(*source), *shift),
            Node::Neg(a) => self.operation(Kind::Neg, vec![*a]),
            Node::Binary(op, a, b) => {
                let mut operands = vec![*a, *b];
                if op.commutes() {
                    operands.sort_by_key(|o| self.of[*o]);
                }
                self.operation(Kind::Binary(*op), operands)
            }
            Node::Call(name, arguments) => self.operation(Kind::Call(name), arguments.clone()),
        }
    }

    fn operation(&self, kind: Kind, operands: Vec<NodeId>) -> (Key, Shift) {
        let mut shift: Shift = [None; MOST_DIMS];
        for operand in &operands {
            for (all, own) in shift.iter_mut().zip(self.of[*operand].1) {
                *all = all.or(own);
            }
        }
        let relative = operands.iter().map(|operand| {
            let (class, own) = self.of[*operand];
            (class, difference(own, shift))
        });
        (Key::Operation(kind, relative.collect()), shift)
    }
}

/// From one shift to another along each dimension that the first one has.
pub(super) fn difference(a: Shift, b: Shift) -> Shift {
    let mut result = a;
    for (value, base) in result.iter_mut().zip(b) {
        *value = value.map(|v| v - base.unwrap_or(0));
    }
    result
}
