//! A sweep as one graph: temporaries inlined, equal expressions shared.
//!
//! Goal: what the transformations of this folder look at. The statements of a [`Stencil`] become
//! nodes without names; what a point stores is a list of nodes. Nothing is reassociated: the
//! graph computes what the statements say, operation by operation.
//!
//! Requires: a stencil that passed the rules of the front ends. Refused by name: more than three
//! dimensions, subscripts that leave a dimension out in the middle of an array, mixed precision.

use std::collections::BTreeMap;

use cranelift_entity::{EntityRef, PrimaryMap, SecondaryMap, entity_impl};

use super::plan::Refusal;
use crate::ir::{
    Access, ArrayId, BinaryOp, Element, Expr, ExprId, Function, ScalarId, Stencil, Target,
};

/// Most dimensions of a domain that the generators of this folder take.
pub(super) const MOST_DIMS: usize = 3;

/// A node of the graph.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct NodeId(u32);
entity_impl!(NodeId, "node");

/// An array, or one component of an array of components.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct SourceId(u32);
entity_impl!(SourceId, "source");

/// How far from the point an element stands along each dimension of the domain; `None` where the
/// array does not extend along that dimension.
pub(super) type Shift = [Option<i32>; MOST_DIMS];

/// An array seen as a function of the point.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Source {
    /// The array.
    pub(super) array: ArrayId,
    /// By subscript: the dimension of the domain, or the constant component.
    pub(super) subscripts: Vec<Result<usize, i64>>,
}

/// One operation.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Node {
    /// A literal, by its bits.
    Constant(u64),
    /// A scalar argument.
    Scalar(ScalarId),
    /// An element of an array.
    Load(SourceId, Shift),
    /// The negative of a value.
    Neg(NodeId),
    /// Two operands.
    Binary(Operation, NodeId, NodeId),
    /// A function of CUDA's library, by its place in [`Function`]'s list of names.
    Call(&'static str, Vec<NodeId>),
}

/// [`BinaryOp`] with an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Operation {
    Add,
    Sub,
    Mul,
    Div,
}

impl Operation {
    /// The operands may be exchanged without changing a bit of the result.
    pub(super) fn commutes(self) -> bool {
        matches!(self, Operation::Add | Operation::Mul)
    }

    pub(super) fn symbol(self) -> char {
        match self {
            Operation::Add => '+',
            Operation::Sub => '-',
            Operation::Mul => '*',
            Operation::Div => '/',
        }
    }
}

impl From<BinaryOp> for Operation {
    fn from(op: BinaryOp) -> Self {
        match op {
            BinaryOp::Add => Operation::Add,
            BinaryOp::Sub => Operation::Sub,
            BinaryOp::Mul => Operation::Mul,
            BinaryOp::Div => Operation::Div,
        }
    }
}

/// A sweep: what each point stores.
#[derive(Clone, Debug)]
pub(super) struct Graph {
    pub(super) nodes: PrimaryMap<NodeId, Node>,
    pub(super) sources: PrimaryMap<SourceId, Source>,
    /// The places written, in the order of their first store, and their last values.
    pub(super) outputs: Vec<(SourceId, NodeId)>,
    /// The type of everything.
    pub(super) element: Element,
    /// The number of dimensions of the domain.
    pub(super) dims: usize,
    known: BTreeMap<Node, NodeId>,
}

impl Graph {
    /// Reads a stencil.
    pub(super) fn new(stencil: &Stencil) -> Result<Graph, Refusal> {
        let dims = stencil.dims.len();
        if dims == 0 || dims > MOST_DIMS {
            return Err(Refusal::new(format!("a domain of {dims} dimensions")));
        }
        let mut graph = Graph {
            nodes: PrimaryMap::new(),
            sources: PrimaryMap::new(),
            outputs: Vec::new(),
            element: one_type(stencil)?,
            dims,
            known: BTreeMap::new(),
        };
        let mut temps: SecondaryMap<_, Option<NodeId>> = SecondaryMap::new();
        for statement in &stencil.statements {
            let mut values = SecondaryMap::new();
            for expr in stencil.reachable(statement.value) {
                values[expr] = Some(graph.lower(stencil, expr, &values, &temps)?);
            }
            let mut value = known(values[statement.value])?;
            match &statement.target {
                Target::Temp(temp) => {
                    if statement.accumulate {
                        value =
                            graph.add(Node::Binary(Operation::Add, known(temps[*temp])?, value));
                    }
                    temps[*temp] = Some(value);
                }
                Target::Store(access) => {
                    if statement.accumulate {
                        let old = graph.load(access)?;
                        value = graph.add(Node::Binary(Operation::Add, old, value));
                    }
                    graph.store(access, value)?;
                }
            }
        }
        Ok(graph)
    }

    fn lower(
        &mut self,
        stencil: &Stencil,
        expr: ExprId,
        values: &SecondaryMap<ExprId, Option<NodeId>>,
        temps: &SecondaryMap<crate::ir::TempId, Option<NodeId>>,
    ) -> Result<NodeId, Refusal> {
        let node = match &stencil.exprs[expr] {
            Expr::Constant(value, _) => Node::Constant(value.to_bits()),
            Expr::Scalar(scalar) => Node::Scalar(*scalar),
            Expr::Temp(temp) => return known(temps[*temp]),
            Expr::Load(access) => return self.load(access),
            Expr::Neg(a) => Node::Neg(known(values[*a])?),
            Expr::Binary(op, a, b) => {
                Node::Binary((*op).into(), known(values[*a])?, known(values[*b])?)
            }
            Expr::Call(Function::When, _) => {
                return Err(Refusal::new("a value that is not always stored".to_owned()));
            }
            Expr::Call(function, arguments) => {
                let arguments: Result<_, _> = arguments.iter().map(|a| known(values[*a])).collect();
                Node::Call(spelling(*function, self.element), arguments?)
            }
            Expr::Choice(..) => {
                let what = "a value that is chosen by the place of the point";
                return Err(Refusal::new(what.to_owned()));
            }
        };
        Ok(self.add(node))
    }

    /// The node of an operation.
    pub(super) fn add(&mut self, node: Node) -> NodeId {
        if let Some(&id) = self.known.get(&node) {
            return id;
        }
        let id = self.nodes.push(node.clone());
        self.known.insert(node, id);
        id
    }

    /// An element's value: what this point stored there, or what stood there before the sweep.
    fn load(&mut self, access: &Access) -> Result<NodeId, Refusal> {
        let (source, shift) = self.source(access)?;
        let stored = self.outputs.iter().find(|(s, _)| *s == source);
        if let Some((_, value)) = stored {
            return Ok(*value);
        }
        Ok(self.add(Node::Load(source, shift)))
    }

    fn store(&mut self, access: &Access, value: NodeId) -> Result<(), Refusal> {
        let (source, _) = self.source(access)?;
        match self.outputs.iter_mut().find(|(s, _)| *s == source) {
            Some(output) => output.1 = value,
            None => self.outputs.push((source, value)),
        }
        Ok(())
    }

    fn source(&mut self, access: &Access) -> Result<(SourceId, Shift), Refusal> {
        let mut shift: Shift = [None; MOST_DIMS];
        let mut subscripts = Vec::new();
        for subscript in &access.subscripts {
            let offset = i32::try_from(subscript.offset)
                .map_err(|_| Refusal::new("an offset beyond 32 bits".to_owned()))?;
            subscripts.push(match subscript.dim {
                Some(dim) => {
                    shift[dim.index()] = Some(offset);
                    Ok(dim.index())
                }
                None => Err(subscript.offset),
            });
        }
        let source = Source {
            array: access.array,
            subscripts,
        };
        let found = self.sources.iter().find(|(_, s)| **s == source);
        let id = match found {
            Some((id, _)) => id,
            None => self.sources.push(source),
        };
        Ok((id, shift))
    }

    /// The nodes that a node computes from.
    pub(super) fn operands(&self, node: NodeId) -> Vec<NodeId> {
        match &self.nodes[node] {
            Node::Constant(_) | Node::Scalar(_) | Node::Load(..) => Vec::new(),
            Node::Neg(a) => vec![*a],
            Node::Binary(_, a, b) => vec![*a, *b],
            Node::Call(_, arguments) => arguments.clone(),
        }
    }

    /// By dimension of the domain: the smallest and the largest offset at which a point reads the source. What the
    /// points of the domain reach with these is all that the input is known to read.
    pub(super) fn offsets(&self, source: SourceId) -> [[i32; 2]; MOST_DIMS] {
        let mut found: [Option<[i32; 2]>; MOST_DIMS] = [None; MOST_DIMS];
        for node in self.nodes.values() {
            let Node::Load(_, shift) = node else { continue };
            if !matches!(node, Node::Load(read, _) if *read == source) {
                continue;
            }
            for (found, at) in found.iter_mut().zip(shift) {
                if let Some(at) = *at {
                    let [low, high] = found.unwrap_or([at, at]);
                    *found = Some([low.min(at), high.max(at)]);
                }
            }
        }
        found.map(Option::unwrap_or_default)
    }

    /// The source extends along all dimensions of the domain.
    pub(super) fn is_full(&self, source: SourceId) -> bool {
        let along = self.sources[source].subscripts.iter().flatten().count();
        along == self.dims
    }
}

fn known<T>(value: Option<T>) -> Result<T, Refusal> {
    value.ok_or_else(|| Refusal::new("a value is read before it is assigned".to_owned()))
}

/// The one type of all arrays, scalars and temporaries.
fn one_type(stencil: &Stencil) -> Result<Element, Refusal> {
    let arrays = stencil.arrays.values().map(|a| a.element);
    let scalars = stencil.scalars.values().map(|s| s.element);
    let temps = stencil.temps.values().map(|t| t.element);
    let mut all = arrays.chain(scalars).chain(temps);
    let first = all.next().unwrap_or(Element::F64);
    let mixed = || Refusal::new("types are mixed".to_owned());
    if first.is_integer() {
        return Err(Refusal::new("whole numbers are not streamed".to_owned()));
    }
    if all.any(|e| e != first) {
        return Err(mixed());
    }
    let types = stencil.types();
    for statement in &stencil.statements {
        for expr in stencil.reachable(statement.value) {
            let computed = !matches!(stencil.exprs[expr], Expr::Constant(..));
            // A literal of another type is exact in double; in float it would widen everything.
            if types[expr] != first && (computed || first == Element::F32) {
                return Err(mixed());
            }
        }
    }
    Ok(first)
}

fn spelling(function: Function, element: Element) -> &'static str {
    let double = element == Element::F64;
    match (function, double) {
        (Function::Sqrt, true) => "sqrt",
        (Function::Sqrt, false) => "sqrtf",
        (Function::Abs, true) => "fabs",
        (Function::Abs, false) => "fabsf",
        (Function::Min, true) => "fmin",
        (Function::Min, false) => "fminf",
        (Function::Max, true) => "fmax",
        (Function::Max, false) => "fmaxf",
        (Function::Fma, true) => "fma",
        (Function::Fma, false) => "fmaf",
        (Function::Exp, true) => "exp",
        (Function::Exp, false) => "expf",
        (Function::Log, true) => "log",
        (Function::Log, false) => "logf",
        (Function::Pow, true) => "pow",
        (Function::Pow, false) => "powf",
        // Choices are written in another way, and whole numbers are refused.
        _ => function.name(),
    }
}
