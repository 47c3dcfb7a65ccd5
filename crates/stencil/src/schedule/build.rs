//! From a stencil to the DAG of trees that one thread evaluates, unrolled along any dimensions.
//!
//! Paper: section 3 (labelled trees, dependence edges), Listing 1 (`unroll k=2, j=2`).
//!
//! A thread computes a box of neighbouring points; each statement at each of them is a tree. The
//! label of a load is the element it reads relative to the thread's first point, so points share
//! the labels of the elements that they share. Each assignment to a private value or an output
//! makes a new label, so a label is written once. Trees of private values that compute the same
//! expression of the same labels are one tree. Scalar arguments and constants are free.
//!
//! With permission to reassociate, products are distributed ([`super::distribute`]) and the terms
//! of a sum are put into the order in which they lie in memory: nothing depends on how the input
//! was written, and schedules sweep through memory where they have the choice.

use std::collections::{BTreeSet, HashMap};

use cranelift_entity::{PrimaryMap, SecondaryMap};

use super::dag::{Dag, LabelData, Operator, Order, TreeId};
use super::distribute::distribute;
use super::expression::{Expression, Form, Term};
use super::labels::Label;
use super::lower::add_tree;
use crate::ir::{
    Access, BinaryOp, DimId, Element, Expr, ExprId, ScalarId, Stencil, Subscript, Target, TempId,
};

/// Where the value of a label comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Origin {
    /// An element of an array, relative to the first point.
    Load(Access),
    /// A scalar argument.
    Scalar(ScalarId),
    /// A tree.
    #[default]
    Tree,
}

/// A value that leaves the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Store {
    /// The tree that computes it.
    pub tree: TreeId,
    /// Where to, relative to the first point.
    pub access: Access,
    /// The point: its distance from the first along each dimension.
    pub point: Vec<u32>,
}

/// What one thread evaluates.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Unrolled {
    /// The trees.
    pub dag: Dag,
    /// By label.
    pub origins: SecondaryMap<Label, Origin>,
    /// The outputs, in the order of points and statements.
    pub stores: Vec<Store>,
    /// By tree: the statement that it comes from.
    pub statements: SecondaryMap<TreeId, usize>,
    /// Points per thread along each dimension.
    pub factors: Vec<u32>,
    /// Loads of elements that the kernel also writes and that another tree than the writing one
    /// reads: they must happen before any store.
    pub early: Vec<Label>,
}

/// Builds the DAG for `factors[d]` points along dimension `d` (missing and 0 count as 1).
pub fn build(stencil: &Stencil, factors: &[u32]) -> Unrolled {
    let factors: Vec<u32> = (0..stencil.dims.len())
        .map(|d| factors.get(d).copied().unwrap_or(1).max(1))
        .collect();
    let mut builder = Builder {
        stencil,
        order: if stencil.reassociate {
            Order::Any
        } else {
            Order::Written
        },
        built: Unrolled {
            factors: factors.clone(),
            ..Unrolled::default()
        },
        names: HashMap::new(),
        temps: HashMap::new(),
        outputs: HashMap::new(),
        known: HashMap::new(),
        last: Vec::new(),
        point: vec![0; factors.len()],
    };
    let points: u64 = factors.iter().map(|&f| u64::from(f)).product();
    for number in 0..points {
        let mut rest = number;
        for (d, &factor) in factors.iter().enumerate().rev() {
            builder.point[d] = (rest % u64::from(factor)) as u32;
            rest /= u64::from(factor);
        }
        builder.temps.clear();
        for at in 0..stencil.statements.len() {
            builder.statement(at);
        }
    }
    builder.finish()
}

struct Builder<'s> {
    stencil: &'s Stencil,
    order: Order,
    built: Unrolled,
    names: HashMap<String, Label>,
    /// The current value of each private value at this point.
    temps: HashMap<TempId, Label>,
    /// The current value of each output element, and its tree's place in `last`.
    outputs: HashMap<Access, (Label, usize)>,
    /// Trees of private values by what they compute.
    known: HashMap<String, Label>,
    last: Vec<Store>,
    point: Vec<u32>,
}

impl Builder<'_> {
    fn statement(&mut self, at: usize) {
        let before = self.built.dag.trees.len();
        let statement = &self.stencil.statements[at];
        let mut value = self.expression(statement.value);
        if statement.accumulate {
            let old = self.old_value(&statement.target);
            value = Expression::plus(old, value, false, self.order);
        }
        if self.order == Order::Any {
            let labels = &self.built.dag.labels;
            value = distribute(value, &|label| labels[label].free);
            self.sweep(&mut value);
        }
        match &statement.target {
            Target::Temp(temp) => self.assign(*temp, value),
            Target::Store(access) => self.store(self.shifted(access), value),
        }
        if let Some(tree) = self.built.dag.trees.keys().next_back()
            && self.built.dag.trees.len() > before
        {
            self.built.statements[tree] = at;
        }
    }

    fn old_value(&mut self, target: &Target) -> Expression {
        match target {
            Target::Temp(temp) => {
                let element = self.stencil.temps[*temp].element;
                match self.temps.get(temp) {
                    Some(&label) => Expression::leaf(label, element),
                    // The front ends refuse this; nothing was assigned yet.
                    None => Expression::literal(0.0, element),
                }
            }
            Target::Store(access) => self.load(access),
        }
    }

    fn assign(&mut self, temp: TempId, value: Expression) {
        let data = &self.stencil.temps[temp];
        let key = format!("{:?} {value:?}", data.element);
        let label = match self.known.get(&key) {
            Some(&label) => label,
            None => {
                let label = self.fresh(&data.name, data.element);
                add_tree(&mut self.built.dag, value, label, false, self.order);
                self.known.insert(key, label);
                label
            }
        };
        self.temps.insert(temp, label);
    }

    fn store(&mut self, access: Access, value: Expression) {
        let element = self.stencil.arrays[access.array].element;
        let name = self.name_of(&access);
        let label = self.fresh(&format!("{name}.out"), element);
        let tree = add_tree(&mut self.built.dag, value, label, true, self.order);
        let store = Store {
            tree,
            access: access.clone(),
            point: self.point.clone(),
        };
        match self.outputs.get(&access) {
            Some(&(_, place)) => {
                let before = self.last[place].tree;
                self.built.dag.trees[before].stored = false;
                self.last[place] = store;
                self.outputs.insert(access, (label, place));
            }
            None => {
                self.last.push(store);
                self.outputs.insert(access, (label, self.last.len() - 1));
            }
        }
    }

    /// A label for a value that a tree computes, with a name of its own.
    fn fresh(&mut self, name: &str, element: Element) -> Label {
        let mut full = name.to_owned();
        let mut version = 1;
        while self.names.contains_key(&full) {
            version += 1;
            full = format!("{name}.{version}");
        }
        self.label(full, element, Origin::Tree, false)
    }

    fn label(&mut self, name: String, element: Element, origin: Origin, free: bool) -> Label {
        if let Some(&label) = self.names.get(&name) {
            return label;
        }
        let label = self.built.dag.labels.push(LabelData {
            name: name.clone(),
            free,
            element,
        });
        self.built.origins[label] = origin;
        self.names.insert(name, label);
        label
    }

    /// The element relative to the thread's first point.
    fn shifted(&self, access: &Access) -> Access {
        let shift = |s: &Subscript| Subscript {
            offset: s.offset
                + s.dim
                    .map_or(0, |d| i64::from(self.point[d.as_u32() as usize])),
            ..*s
        };
        Access {
            array: access.array,
            subscripts: access.subscripts.iter().map(shift).collect(),
        }
    }

    fn name_of(&self, access: &Access) -> String {
        let mut name = self.stencil.arrays[access.array].name.clone();
        for subscript in &access.subscripts {
            let text = match (subscript.dim, subscript.offset) {
                (None, offset) => format!("{offset}"),
                (Some(dim), 0) => self.stencil.dims[dim].name.clone(),
                (Some(dim), offset) => format!("{}{offset:+}", self.stencil.dims[dim].name),
            };
            name += &format!("[{text}]");
        }
        name
    }

    fn load(&mut self, access: &Access) -> Expression {
        let access = self.shifted(access);
        let element = self.stencil.arrays[access.array].element;
        if let Some(&(label, _)) = self.outputs.get(&access) {
            return Expression::leaf(label, element);
        }
        let name = self.name_of(&access);
        let label = self.label(name, element, Origin::Load(access), false);
        Expression::leaf(label, element)
    }

    /// The value of an expression at this point. Children come before their parents, so one pass
    /// over the reachable nodes in ascending order does.
    fn expression(&mut self, root: ExprId) -> Expression {
        let mut needed: BTreeSet<ExprId> = BTreeSet::new();
        let mut uses: HashMap<ExprId, usize> = HashMap::new();
        let mut stack = vec![root];
        while let Some(id) = stack.pop() {
            *uses.entry(id).or_default() += 1;
            if needed.insert(id) {
                stack.extend(self.stencil.exprs[id].operands());
            }
        }
        let mut values: HashMap<ExprId, Expression> = HashMap::new();
        for id in needed {
            let expr = &self.stencil.exprs[id];
            let operands: Option<Vec<Expression>> = expr
                .operands()
                .iter()
                .map(|operand| {
                    let left = uses.entry(*operand).or_default();
                    *left = left.saturating_sub(1);
                    match *left {
                        0 => values.remove(operand),
                        _ => values.get(operand).cloned(),
                    }
                })
                .collect();
            let value = self.apply(expr, operands.unwrap_or_default());
            values.insert(id, value);
        }
        values
            .remove(&root)
            .unwrap_or(Expression::literal(0.0, Element::F64))
    }

    fn apply(&mut self, expr: &Expr, mut operands: Vec<Expression>) -> Expression {
        let order = self.order;
        match (expr, operands.len()) {
            (Expr::Constant(value, element), _) => Expression::literal(*value, *element),
            (Expr::Scalar(scalar), _) => {
                let data = &self.stencil.scalars[*scalar];
                let origin = Origin::Scalar(*scalar);
                let label = self.label(format!("${}", data.name), data.element, origin, true);
                Expression::leaf(label, data.element)
            }
            (Expr::Temp(temp), _) => self.old_value(&Target::Temp(*temp)),
            (Expr::Load(access), _) => self.load(access),
            (Expr::Neg(_), _) => match operands.pop() {
                Some(operand) => operand.negated(order),
                None => Expression::literal(0.0, Element::F64),
            },
            (Expr::Binary(op, ..), 2) => {
                let b = operands.remove(1);
                let a = operands.remove(0);
                match op {
                    BinaryOp::Add => Expression::plus(a, b, false, order),
                    BinaryOp::Sub => Expression::plus(a, b, true, order),
                    BinaryOp::Mul => Expression::times(a, b, order),
                    BinaryOp::Div => Expression::operator(Operator::Divide, vec![a, b]),
                }
            }
            // Borders, which have choices, are not scheduled.
            (Expr::Binary(..) | Expr::Choice(..), _) => Expression::literal(0.0, Element::F64),
            (Expr::Call(function, _), _) => {
                Expression::operator(Operator::Call(*function), operands)
            }
        }
    }

    /// Terms in memory order.
    fn sweep(&self, expression: &mut Expression) {
        let is_integer = expression.element.is_integer();
        match &mut expression.form {
            Form::Sum(terms) => {
                terms
                    .iter_mut()
                    .for_each(|term| self.sweep(&mut term.value));
                if !is_integer {
                    terms.sort_by_cached_key(|term: &Term| self.lowest(&term.value));
                }
            }
            Form::Product(operands) | Form::Operator(_, operands) => {
                operands.iter_mut().for_each(|operand| self.sweep(operand));
            }
            Form::Leaf(_) | Form::Literal(_) => {}
        }
    }

    /// The smallest distance from the first point of any element that an expression loads, outer
    /// dimensions first; values of trees come before all elements.
    fn lowest(&self, expression: &Expression) -> Option<Vec<i64>> {
        match &expression.form {
            Form::Leaf(label) => match &self.built.origins[*label] {
                Origin::Load(access) => Some(self.distance(access)),
                Origin::Scalar(_) | Origin::Tree => None,
            },
            Form::Literal(_) => None,
            Form::Sum(terms) => terms.iter().filter_map(|t| self.lowest(&t.value)).min(),
            Form::Product(operands) | Form::Operator(_, operands) => {
                operands.iter().filter_map(|o| self.lowest(o)).min()
            }
        }
    }

    fn distance(&self, access: &Access) -> Vec<i64> {
        let along = |dim: DimId| {
            let subscript = access.subscripts.iter().find(|s| s.dim == Some(dim));
            subscript.map_or(0, |s| s.offset)
        };
        self.stencil.dims.keys().map(along).collect()
    }

    fn finish(mut self) -> Unrolled {
        self.built.early = self.early_loads();
        self.built.stores = self.last;
        drop_dead_trees(&mut self.built);
        self.built
    }

    fn early_loads(&self) -> Vec<Label> {
        let dag = &self.built.dag;
        let written_by = |access: &Access| {
            let name = format!("{}.out", self.name_of(access));
            self.names.get(&name).copied()
        };
        let mut early = Vec::new();
        for label in dag.labels.keys() {
            let Origin::Load(access) = &self.built.origins[label] else {
                continue;
            };
            let Some(target) = written_by(access) else {
                continue;
            };
            let mut readers = dag
                .trees
                .values()
                .filter(|t| dag.reads(t.root).contains(label));
            if readers.any(|tree| tree.target != target) {
                early.push(label);
            }
        }
        early
    }
}

/// Removes trees whose values nobody reads.
fn drop_dead_trees(built: &mut Unrolled) {
    let dag = &mut built.dag;
    let producers = dag.producers();
    let mut needed: BTreeSet<TreeId> = BTreeSet::new();
    let mut stack: Vec<TreeId> = dag.trees.keys().filter(|&t| dag.trees[t].stored).collect();
    while let Some(tree) = stack.pop() {
        if needed.insert(tree) {
            let reads = dag.reads(dag.trees[tree].root);
            stack.extend(reads.iter().filter_map(|label| producers.get(&label)));
        }
    }
    let mut renamed: HashMap<TreeId, TreeId> = HashMap::new();
    let mut trees = PrimaryMap::new();
    let mut statements = SecondaryMap::new();
    for &tree in &needed {
        let new = trees.push(dag.trees[tree].clone());
        statements[new] = built.statements[tree];
        renamed.insert(tree, new);
    }
    dag.trees = trees;
    built.statements = statements;
    for store in &mut built.stores {
        store.tree = renamed[&store.tree];
    }
}
