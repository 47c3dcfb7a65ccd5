//! The language as written, with places.

use crate::ir::{BinaryOp, Element};
use warpwright_cudac::diag::Span;

/// A name in the text.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Name {
    pub(super) text: String,
    pub(super) span: Span,
}

/// A whole file.
#[derive(Clone, Debug, Default)]
pub(super) struct Program {
    pub(super) functions: Vec<Function>,
    pub(super) parameters: Vec<Name>,
    pub(super) iterators: Vec<Name>,
    pub(super) variables: Vec<Variable>,
    /// Iterators with their first value, and one past the last.
    pub(super) points: Vec<(Name, Sum, Sum)>,
    pub(super) unrolls: Vec<(Name, u32)>,
    pub(super) calls: Vec<Call>,
    pub(super) returns: Vec<Name>,
    pub(super) reassociate: bool,
}

/// `function name (formals) { body }`
#[derive(Clone, Debug)]
pub(super) struct Function {
    pub(super) name: Name,
    pub(super) formals: Vec<Name>,
    pub(super) body: Vec<Assign>,
}

/// An array, a scalar argument (no extents) or a constant (a value).
#[derive(Clone, Debug)]
pub(super) struct Variable {
    pub(super) element: Element,
    pub(super) name: Name,
    pub(super) extents: Vec<Sum>,
    pub(super) value: Option<Node>,
}

/// A name plus a constant, or a constant alone: a size or a subscript.
#[derive(Clone, Debug)]
pub(super) struct Sum {
    pub(super) name: Option<Name>,
    pub(super) add: i64,
    pub(super) span: Span,
}

/// `name (actuals);`
#[derive(Clone, Debug)]
pub(super) struct Call {
    pub(super) function: Name,
    pub(super) actuals: Vec<Name>,
}

/// How a statement assigns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Op {
    Set,
    Add,
    Subtract,
}

/// `[type] name[subscripts] op value;`
#[derive(Clone, Debug)]
pub(super) struct Assign {
    pub(super) declared: Option<Element>,
    pub(super) name: Name,
    pub(super) subscripts: Vec<Sum>,
    /// The left-hand side.
    pub(super) place: Span,
    pub(super) op: Op,
    pub(super) value: Node,
    pub(super) span: Span,
}

/// An expression and its place.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) kind: NodeKind,
    pub(super) span: Span,
}

#[derive(Clone, Debug)]
pub(super) enum NodeKind {
    Integer(i64),
    Real(f64, Element),
    Name(String),
    Element(Name, Vec<Sum>),
    Neg(Box<Node>),
    Binary(BinaryOp, Box<Node>, Box<Node>),
    Call(Name, Vec<Node>),
}
