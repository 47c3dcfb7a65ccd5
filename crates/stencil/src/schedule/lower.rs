//! From expressions to the nodes of a DAG.
//!
//! With permission to reassociate (which includes contraction), a product under a sum becomes a
//! [`Kind::Multiply`]: the two factors of a fused multiply-add. Without it products are nodes of
//! their own, rounded on their own.

use super::dag::{Child, Dag, Kind, Node, NodeData, Order, Tree, TreeId};
use super::expression::{Expression, Form, Term, as_written};
use super::labels::Label;
use crate::ir::Element;

/// Adds a tree that computes `value` into `target`.
pub fn add_tree(
    dag: &mut Dag,
    value: Expression,
    target: Label,
    stored: bool,
    order: Order,
) -> TreeId {
    let element = value.element;
    let value = match value.form {
        Form::Leaf(_) | Form::Literal(_) => Expression {
            form: Form::Sum(value.into_terms(false, element)),
            element,
        },
        _ => value,
    };
    let root = lower(dag, value, order);
    dag.trees.push(Tree {
        root,
        target,
        stored,
    })
}

fn lower(dag: &mut Dag, expression: Expression, order: Order) -> Node {
    let element = expression.element;
    let own = as_written(element, order);
    let plain = |node: Node| Child {
        node,
        negative: false,
    };
    let (kind, children) = match expression.form {
        Form::Leaf(label) => (Kind::Leaf(label), Vec::new()),
        Form::Literal(value) => (Kind::Literal(value), Vec::new()),
        Form::Sum(terms) => {
            let terms = terms.into_iter().map(|term| Child {
                negative: term.negative,
                node: lower_term(dag, term, element, order),
            });
            (Kind::Sum(own), terms.collect())
        }
        Form::Product(factors) => {
            let factors = factors.into_iter().map(|f| plain(lower(dag, f, order)));
            (Kind::Product(own), factors.collect())
        }
        Form::Operator(operator, operands) => {
            let operands = operands.into_iter().map(|o| plain(lower(dag, o, order)));
            (Kind::Operator(operator), operands.collect())
        }
    };
    dag.nodes.push(NodeData {
        kind,
        children,
        element,
    })
}

/// A term of a sum of type `sum`: a product of the same type is fused with the addition.
fn lower_term(dag: &mut Dag, term: Term, sum: Element, order: Order) -> Node {
    let element = term.value.element;
    match term.value.form {
        Form::Product(mut factors) if as_written(sum, order) == Order::Any && element == sum => {
            let at = factors.iter().position(|f| is_operand(dag, f)).unwrap_or(0);
            let first = lower(dag, factors.remove(at), order);
            let rest = match factors.len() {
                1 => factors.remove(0),
                _ => Expression {
                    form: Form::Product(factors),
                    element,
                },
            };
            let rest = lower(dag, rest, order);
            let child = |node| Child {
                node,
                negative: false,
            };
            dag.nodes.push(NodeData {
                kind: Kind::Multiply,
                children: vec![child(first), child(rest)],
                element,
            })
        }
        form => lower(dag, Expression { form, element }, order),
    }
}

/// Takes no register: such a factor is best left for the last multiplication.
fn is_operand(dag: &Dag, expression: &Expression) -> bool {
    match expression.form {
        Form::Literal(_) => true,
        Form::Leaf(label) => dag.labels[label].free,
        _ => false,
    }
}
