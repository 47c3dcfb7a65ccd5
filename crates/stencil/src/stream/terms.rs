//! Outputs as sums of terms, and the terms that are one value seen from several points.
//!
//! Goal: `out = … + c2 * (F(k+2) - F(k-2)) + c1 * (F(k+1) - F(k-1))`, where `F(k+2)` is `F` at
//! another point, should compute `F` once per point and give it to all outputs that need it. With
//! reassociation an output is opened up over `+`, `-` and factors that belong to the output's own
//! point; what remains are the terms, and terms of one class (see `shifts.rs`) are one [`Field`].
//!
//! Retiming is not new: Stock et al. (PLDI 2014) scatter a plane into several partial sums;
//! Rawat et al. (IPDPS 2018, "associative reordering") stream with it. That a whole product is
//! treated like an array element, and that fields with the same weights are added up before
//! anybody reads them, is ours.
//!
//! Requires: the permission to reassociate; without it every output is one term.

use std::collections::{BTreeMap, BTreeSet};

use super::graph::{Graph, MOST_DIMS, Node, NodeId, Operation, Shift, SourceId};
use super::shifts::{Class, Shifts};

/// A shift with all dimensions.
pub(super) type Vector = [i32; MOST_DIMS];

/// What stands before a value in a sum: weights, each with factors of the output's own point.
pub(super) type Coefficient = BTreeMap<Vec<NodeId>, Weight>;

/// A number in front of a value.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Weight(pub(super) f64);

/// A value that every point has and that outputs read at other points.
#[derive(Clone, Debug)]
pub(super) struct Field {
    /// It is the sum of these products: factors, and an expression with the shift at which the
    /// expression stands for the field at the point itself.
    pub(super) parts: Vec<(Vec<NodeId>, NodeId, Vector)>,
    /// What each output adds up: by output, the places it reads and their coefficients.
    pub(super) uses: BTreeMap<usize, BTreeMap<Vector, Coefficient>>,
}

/// What the outputs of a sweep are made of.
#[derive(Clone, Debug, Default)]
pub(super) struct Terms {
    /// Values read at several points.
    pub(super) fields: Vec<Field>,
    /// By output: expressions of the output's own point, and their coefficients.
    pub(super) direct: Vec<Vec<(NodeId, Coefficient)>>,
}

impl Terms {
    /// Opens up the outputs of a graph if that is permitted.
    pub(super) fn new(graph: &mut Graph, reassociate: bool) -> Terms {
        let outputs = graph.outputs.clone();
        if !reassociate {
            let whole = |(_, value): &(_, NodeId)| vec![(*value, one(Vec::new(), 1.0))];
            return Terms {
                fields: Vec::new(),
                direct: outputs.iter().map(whole).collect(),
            };
        }
        // Factors of neighbouring rows (`x[i+2]` in front of what stands elsewhere) stay inside the terms if they move
        // along with them, and come out if that leaves fewer values: then the terms are one field without them.
        let inside = Terms::opened(graph, &outputs, false);
        let outside = Terms::opened(graph, &outputs, true);
        if outside.values() < inside.values() {
            outside
        } else {
            inside
        }
    }

    fn opened(graph: &mut Graph, outputs: &[(SourceId, NodeId)], shifted: bool) -> Terms {
        let mut expanded = Vec::new();
        for (_, value) in outputs {
            let mut expansion = Expansion {
                graph,
                terms: BTreeMap::new(),
                shifted,
            };
            expansion.open(*value, 1.0, &[]);
            expanded.push(expansion.terms);
        }
        let shifts = Shifts::new(graph);
        group(graph, &shifts, &expanded)
    }

    /// Values that each point computes.
    fn values(&self) -> usize {
        let parts = self.fields.iter().map(|field| field.parts.len());
        parts.chain(self.direct.iter().map(Vec::len)).sum()
    }
}

/// One output as a sum.
struct Expansion<'a> {
    graph: &'a mut Graph,
    terms: BTreeMap<NodeId, Coefficient>,
    /// Elements of neighbouring rows are factors too.
    shifted: bool,
}

impl Expansion<'_> {
    fn open(&mut self, node: NodeId, weight: f64, factors: &[NodeId]) {
        match self.graph.nodes[node].clone() {
            Node::Neg(a) => self.open(a, -weight, factors),
            Node::Binary(Operation::Add, a, b) => {
                self.open(a, weight, factors);
                self.open(b, weight, factors);
            }
            Node::Binary(Operation::Sub, a, b) => {
                self.open(a, weight, factors);
                self.open(b, -weight, factors);
            }
            Node::Binary(Operation::Mul, a, b) if self.is_factor(a) => {
                self.scale(a, b, weight, factors);
            }
            Node::Binary(Operation::Mul, a, b) if self.is_factor(b) => {
                self.scale(b, a, weight, factors);
            }
            Node::Binary(Operation::Div, a, b) if self.is_factor(b) => {
                if let Node::Constant(bits) = self.graph.nodes[b] {
                    self.open(a, weight / f64::from_bits(bits), factors);
                } else {
                    let unit = self.graph.add(Node::Constant(1f64.to_bits()));
                    let inverse = self.graph.add(Node::Binary(Operation::Div, unit, b));
                    self.scale(inverse, a, weight, factors);
                }
            }
            _ => {
                let mut factors = factors.to_vec();
                factors.sort_unstable();
                let coefficient = self.terms.entry(node).or_default();
                coefficient.entry(factors).or_default().0 += weight;
            }
        }
    }

    fn scale(&mut self, factor: NodeId, node: NodeId, weight: f64, factors: &[NodeId]) {
        match self.graph.nodes[factor] {
            Node::Constant(bits) => self.open(node, weight * f64::from_bits(bits), factors),
            Node::Neg(a) => self.scale(a, node, -weight, factors),
            Node::Binary(Operation::Mul, a, b) => {
                let mut flat = Vec::new();
                let scale = self.flatten(&[a, b], &mut flat);
                flat.extend_from_slice(factors);
                self.open(node, weight * scale, &flat);
            }
            _ => {
                let mut factors = factors.to_vec();
                factors.push(factor);
                self.open(node, weight, &factors);
            }
        }
    }

    /// The factors of a product, and the product of its constants.
    fn flatten(&self, product: &[NodeId], flat: &mut Vec<NodeId>) -> f64 {
        let mut scale = 1.0;
        for &node in product {
            match &self.graph.nodes[node] {
                Node::Constant(bits) => scale *= f64::from_bits(*bits),
                Node::Binary(Operation::Mul, a, b) => {
                    scale *= self.flatten(&[*a, *b], flat);
                }
                _ => flat.push(node),
            }
        }
        scale
    }

    /// It belongs to the output's point and costs no element of a full array.
    fn is_factor(&self, node: NodeId) -> bool {
        let mut stack = vec![node];
        while let Some(node) = stack.pop() {
            if let Node::Load(source, shift) = self.graph.nodes[node] {
                let at_point = shift.iter().flatten().all(|s| *s == 0);
                if self.graph.is_full(source) || !(at_point || self.shifted) {
                    return false;
                }
            }
            stack.extend(self.graph.operands(node));
        }
        true
    }
}

/// By class: the places and coefficients, for each output.
type Uses = BTreeMap<usize, BTreeMap<Vector, Coefficient>>;

fn group(graph: &Graph, shifts: &Shifts, expanded: &[BTreeMap<NodeId, Coefficient>]) -> Terms {
    let mut terms = Terms {
        fields: Vec::new(),
        direct: vec![Vec::new(); expanded.len()],
    };
    for (output, all) in expanded.iter().enumerate() {
        let mut classes: BTreeMap<Class, Vec<NodeId>> = BTreeMap::new();
        for node in all.keys() {
            classes.entry(shifts.class(*node)).or_default().push(*node);
        }
        // By direction: `q` read along x and along y is two fields of different company.
        let mut alone = Vec::new();
        for nodes in classes.values() {
            for nodes in directions(graph, shifts, nodes) {
                let field = (nodes.len() >= 2).then(|| field(shifts, all, &nodes, output));
                match field {
                    Some(field) => alone.push(field),
                    None => {
                        let own = nodes.iter().map(|n| (*n, all[n].clone()));
                        terms.direct[output].extend(own);
                    }
                }
            }
        }
        for field in merge(graph, alone) {
            share(&mut terms.fields, field);
        }
    }
    terms
}

/// Members of a class split by the dimension along which they lie, if there is one for each.
/// Array elements cost nothing to look at again: they stay together.
fn directions(graph: &Graph, shifts: &Shifts, nodes: &[NodeId]) -> Vec<Vec<NodeId>> {
    if let Some(Node::Load(..)) = nodes.first().map(|n| &graph.nodes[*n]) {
        return vec![nodes.to_vec()];
    }
    let (base, _) = centre(shifts, nodes);
    let mut along: BTreeMap<Option<usize>, Vec<NodeId>> = BTreeMap::new();
    for node in nodes {
        let s = minus(vector(shifts.shift(*node)), base);
        let moved: Vec<usize> = (0..MOST_DIMS).filter(|d| s[*d] != 0).collect();
        match moved[..] {
            [] => along.entry(None).or_default().push(*node),
            [dim] => along.entry(Some(dim)).or_default().push(*node),
            // A box: all of it is one field.
            _ => return vec![nodes.to_vec()],
        }
    }
    if along.len() <= 2 && along.contains_key(&None) {
        return vec![nodes.to_vec()];
    }
    along.into_values().collect()
}

/// The middle of the members' shifts.
fn centre(shifts: &Shifts, nodes: &[NodeId]) -> (Vector, BTreeSet<Vector>) {
    let all: BTreeSet<Vector> = nodes.iter().map(|n| vector(shifts.shift(*n))).collect();
    let mut base = [0; MOST_DIMS];
    for (dim, base) in base.iter_mut().enumerate() {
        let low = all.iter().map(|s| s[dim]).min().unwrap_or(0);
        let high = all.iter().map(|s| s[dim]).max().unwrap_or(0);
        *base = (low + high).div_euclid(2);
    }
    (base, all)
}

fn field(
    shifts: &Shifts,
    all: &BTreeMap<NodeId, Coefficient>,
    nodes: &[NodeId],
    output: usize,
) -> Field {
    let (base, _) = centre(shifts, nodes);
    let mut places: BTreeMap<Vector, Coefficient> = BTreeMap::new();
    for node in nodes {
        let at = minus(vector(shifts.shift(*node)), base);
        // Two nodes may be one value, its operands exchanged.
        let sum: &mut Coefficient = places.entry(at).or_default();
        for (factors, weight) in &all[node] {
            sum.entry(factors.clone()).or_default().0 += weight.0;
        }
    }
    // The member stands at its own shift; the field at the point is the member moved back.
    let at = minus(vector(shifts.shift(nodes[0])), base);
    Field {
        parts: vec![(Vec::new(), nodes[0], at)],
        uses: Uses::from([(output, places)]),
    }
}

/// Adds up fields that are read at the same places with the same coefficients, after factors that
/// do not vary between these places have moved into the fields.
fn merge(graph: &Graph, alone: Vec<Field>) -> Vec<Field> {
    let moved: Vec<Field> = alone.iter().map(|f| move_factors(graph, f)).collect();
    let mut groups: Vec<(Uses, Vec<usize>)> = Vec::new();
    for (n, field) in moved.iter().enumerate() {
        match groups.iter_mut().find(|(uses, _)| *uses == field.uses) {
            Some((_, members)) => members.push(n),
            None => groups.push((field.uses.clone(), vec![n])),
        }
    }
    let mut result = Vec::new();
    for (uses, members) in groups {
        if let [single] = members[..] {
            result.push(alone[single].clone());
            continue;
        }
        let parts = members.iter().flat_map(|m| moved[*m].parts.clone());
        result.push(Field {
            parts: parts.collect(),
            uses,
        });
    }
    result
}

/// The field with all factors in it that are the same at all places where it is read.
fn move_factors(graph: &Graph, original: &Field) -> Field {
    let mut field = original.clone();
    let places: BTreeSet<Vector> = field
        .uses
        .values()
        .flat_map(|u| u.keys().copied())
        .collect();
    let varies: Vec<bool> = (0..MOST_DIMS)
        .map(|d| places.iter().any(|p| p[d] != 0))
        .collect();
    // Only if every place has one list of factors, and the same ones of them can move.
    let mut moved: Option<Vec<NodeId>> = None;
    for uses in field.uses.values_mut() {
        for coefficient in uses.values_mut() {
            let (Some((factors, weight)), 1) = (coefficient.first_key_value(), coefficient.len())
            else {
                return original.clone();
            };
            let (stay, movable): (Vec<NodeId>, Vec<NodeId>) = factors
                .iter()
                .partition(|f| !is_movable(graph, **f, &varies));
            if moved.get_or_insert_with(|| movable.clone()) != &movable {
                return original.clone();
            }
            *coefficient = one(stay, weight.0);
        }
    }
    let movable = moved.unwrap_or_default();
    for part in &mut field.parts {
        part.0.extend(&movable);
    }
    field
}

/// An array element that does not vary along these dimensions. Scalars stay outside.
fn is_movable(graph: &Graph, factor: NodeId, varies: &[bool]) -> bool {
    let mut loads = 0;
    let mut stack = vec![factor];
    while let Some(node) = stack.pop() {
        if let Node::Load(_, shift) = graph.nodes[node] {
            loads += 1;
            if shift.iter().zip(varies).any(|(s, v)| s.is_some() && *v) {
                return false;
            }
        }
        stack.extend(graph.operands(node));
    }
    loads > 0
}

/// Several outputs may read the same field.
fn share(fields: &mut Vec<Field>, field: Field) {
    match fields.iter_mut().find(|f| f.parts == field.parts) {
        Some(known) => known.uses.extend(field.uses),
        None => fields.push(field),
    }
}

fn one(factors: Vec<NodeId>, weight: f64) -> Coefficient {
    Coefficient::from([(factors, Weight(weight))])
}

/// A shift along all dimensions.
pub(super) fn vector(shift: Shift) -> Vector {
    shift.map(|s| s.unwrap_or(0))
}

/// The difference of two vectors.
pub(super) fn minus(a: Vector, b: Vector) -> Vector {
    let mut result = a;
    for (value, b) in result.iter_mut().zip(b) {
        *value -= b;
    }
    result
}
