//! A DAG of labelled expression trees with k-ary accumulation nodes (section 3 of the paper).
//!
//! Leaves carry labels: equal labels are the same memory location (or the result of an earlier
//! tree, which is a dependence edge). The value of a tree's root gets the tree's target label. A
//! label is written by at most one tree: successive values of one variable are labels of their own.
//!
//! Departures: constants and labels that the hardware reads as an operand from constant memory
//! (scalar arguments) are *free*: they take no register. The paper gives every operand one. A
//! [`Kind::Multiply`] is the product inside a fused multiply-add, the ternary operator that the
//! paper mentions: it has no step of its own, its sum consumes both factors.

use std::collections::HashMap;

use cranelift_entity::{PrimaryMap, entity_impl};

use super::labels::{Label, LabelSet};
use crate::ir::{Element, Function};

/// A node of a tree.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Node(u32);
entity_impl!(Node, "node");

/// A tree: one statement at one of the points that a thread computes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TreeId(u32);
entity_impl!(TreeId, "tree");

/// All trees of a kernel.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Dag {
    /// The labels.
    pub labels: PrimaryMap<Label, LabelData>,
    /// The nodes; children come before their parents.
    pub nodes: PrimaryMap<Node, NodeData>,
    /// The trees, in an order that respects the dependences.
    pub trees: PrimaryMap<TreeId, Tree>,
}

/// A label.
#[derive(Clone, Debug, PartialEq)]
pub struct LabelData {
    /// As it is printed, unique.
    pub name: String,
    /// Needs no register.
    pub free: bool,
    /// The type of the value.
    pub element: Element,
}

/// What a node is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// A read of a label.
    Leaf(Label),
    /// A constant.
    Literal(f64),
    /// The accumulation of one or more children by `+` (by `-` where negative).
    Sum(Order),
    /// The accumulation of two or more children by `*`.
    Product(Order),
    /// Two factors, consumed by the sum above it in a fused multiply-add.
    Multiply,
    /// An operator with operands in fixed places.
    Operator(Operator),
}

/// In which order an accumulation may take up its children.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// In any.
    Any,
    /// As written: reassociation is not permitted.
    Written,
}

/// The operators that are no accumulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// Negation.
    Negate,
    /// Division.
    Divide,
    /// A mathematical function.
    Call(Function),
}

/// A child of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Child {
    /// The subtree.
    pub node: Node,
    /// Subtracted instead of added; only under a sum.
    pub negative: bool,
}

/// A node.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeData {
    /// What it is.
    pub kind: Kind,
    /// Its operands, in the order in which they were written.
    pub children: Vec<Child>,
    /// The type of its value.
    pub element: Element,
}

/// One expression tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tree {
    /// Its root: never a leaf or a literal (a copy is a sum of one child).
    pub root: Node,
    /// The label of its value.
    pub target: Label,
    /// The value leaves the kernel through memory.
    pub stored: bool,
}

impl Dag {
    /// The label a leaf reads, if it takes a register.
    pub fn register_label(&self, node: Node) -> Option<Label> {
        match self.nodes[node].kind {
            Kind::Leaf(label) if !self.labels[label].free => Some(label),
            _ => None,
        }
    }

    /// Is it a leaf or a literal: an operand without a step of its own?
    pub fn is_operand(&self, node: Node) -> bool {
        matches!(self.nodes[node].kind, Kind::Leaf(_) | Kind::Literal(_))
    }

    /// Is it an accumulation?
    pub fn is_accumulation(&self, node: Node) -> bool {
        matches!(self.nodes[node].kind, Kind::Sum(_) | Kind::Product(_))
    }

    /// Must the children be taken up in the written order?
    pub fn is_ordered(&self, node: Node) -> bool {
        let kind = self.nodes[node].kind;
        matches!(
            kind,
            Kind::Sum(Order::Written) | Kind::Product(Order::Written)
        )
    }

    /// The nodes of a subtree, children before their parents.
    pub fn subtree(&self, root: Node) -> Vec<Node> {
        let mut found = Vec::new();
        let mut stack = vec![root];
        while let Some(node) = stack.pop() {
            found.push(node);
            stack.extend(self.nodes[node].children.iter().map(|c| c.node));
        }
        found.reverse();
        found
    }

    /// The labels in a subtree that take registers: `uses(n)`.
    pub fn uses(&self, root: Node) -> LabelSet {
        let subtree = self.subtree(root);
        subtree
            .iter()
            .filter_map(|&n| self.register_label(n))
            .collect()
    }

    /// All labels in a subtree, free ones included.
    pub fn reads(&self, root: Node) -> LabelSet {
        let leaf = |&node: &Node| match self.nodes[node].kind {
            Kind::Leaf(label) => Some(label),
            _ => None,
        };
        self.subtree(root).iter().filter_map(leaf).collect()
    }

    /// The tree that writes each label, where one does.
    pub fn producers(&self) -> HashMap<Label, TreeId> {
        self.trees
            .iter()
            .map(|(id, tree)| (tree.target, id))
            .collect()
    }

    /// The trees whose results a tree reads, ascending.
    pub fn predecessors(&self, tree: TreeId) -> Vec<TreeId> {
        let producers = self.producers();
        let reads = self.reads(self.trees[tree].root);
        let mut found: Vec<TreeId> = reads
            .iter()
            .filter_map(|l| producers.get(&l).copied())
            .collect();
        found.sort();
        found
    }
}
