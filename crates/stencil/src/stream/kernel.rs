//! The code of one step: what a thread does for one plane.
//!
//! Goal: given the terms of the outputs and where arrays live, straight-line code in which every
//! value exists once, whichever of the thread's points needs it:
//!
//! - an output that other planes contribute to is a partial sum that waits in a register until
//!   its last plane has come (retiming; the sums are in `sums.rs`);
//! - staged fields are computed by their own point and read by neighbours after a barrier.
//!
//! Preserves: without reassociation there is one term and no weight, and the operations are those
//! of the source in its order.

use std::collections::{BTreeMap, BTreeSet};

use cranelift_entity::{EntityRef, SecondaryMap};

use super::emit::Emitter;
use super::graph::{Graph, Node, NodeId, SourceId};
use super::layout::{Layout, Place, Read};
use super::names::{argument, c_type, clamped, extent_text, name, pair_type, queue, window};
use super::plan::{Plan, Refusal};
use super::terms::{Field, Terms, Vector};
use crate::dsl::literal;
use crate::ir::{Function, Stencil};

/// A point of a thread: row and column.
pub(super) type Point = [i32; 2];

/// The step as code.
pub(super) struct PlaneStep<'a> {
    pub(super) stencil: &'a Stencil,
    pub(super) graph: &'a Graph,
    pub(super) terms: &'a Terms,
    pub(super) points: Point,
    /// By field: its number among the staged ones.
    pub(super) staged: Vec<Option<usize>>,
    /// None while it is found out what is read.
    pub(super) layout: Option<&'a Layout>,
    pub(super) reads: BTreeSet<Read>,
    pub(super) code: Emitter,
    pub(super) before: Emitter,
    values: Vec<BTreeMap<(NodeId, Vector, Point), String>>,
    /// Values that are the same for all planes.
    pub(super) early: SecondaryMap<NodeId, bool>,
    staging: Option<usize>,
    reload: bool,
    /// What is known to be read, to join neighbours into one access.
    known: BTreeSet<(SourceId, Place)>,
    given: BTreeSet<(usize, Point)>,
    pub(super) sums: BTreeMap<String, usize>,
}

impl<'a> PlaneStep<'a> {
    pub(super) fn new(
        stencil: &'a Stencil,
        graph: &'a Graph,
        terms: &'a Terms,
        plan: &Plan,
        staged: Vec<Option<usize>>,
        layout: Option<&'a Layout>,
        known: &BTreeSet<Read>,
    ) -> PlaneStep<'a> {
        let element = c_type(graph.element);
        let mut early: SecondaryMap<NodeId, bool> = SecondaryMap::new();
        for (id, node) in &graph.nodes {
            early[id] = match node {
                Node::Load(source, shift) => {
                    !plan.reload && !graph.is_full(*source) && shift[0].is_none()
                }
                _ => graph.operands(id).iter().all(|o| early[*o]),
            };
        }
        PlaneStep {
            stencil,
            graph,
            terms,
            points: [plan.points[1] as i32, plan.points[0] as i32],
            staged,
            layout,
            reads: BTreeSet::new(),
            code: Emitter::new("t", element),
            before: Emitter::new("k", element),
            values: vec![BTreeMap::new()],
            early,
            staging: None,
            reload: plan.reload,
            known: known.iter().map(|r| (r.source, r.at)).collect(),
            given: BTreeSet::new(),
            sums: BTreeMap::new(),
        }
    }

    /// The planes from which outputs are completed: the first and the last, relative to the output.
    pub(super) fn span(&self) -> [i32; 2] {
        let mut span = [0, 0];
        for field in &self.terms.fields {
            for place in field.uses.values().flat_map(|u| u.keys()) {
                let [plane, ..] = self.split(*place);
                span = [span[0].min(plane), span[1].max(plane)];
            }
        }
        span
    }

    /// All points of a thread.
    pub(super) fn all_points(&self) -> Vec<Point> {
        let [rows, columns] = self.points;
        (0..rows)
            .flat_map(|y| (0..columns).map(move |x| [y, x]))
            .collect()
    }

    /// Emits the step.
    pub(super) fn emit(&mut self) -> Result<(), Refusal> {
        self.count_sums();
        let own = self.stage()?;
        self.give(&own);
        let branch = self.only_inside();
        let [low, high] = self.span();
        for output in 0..self.terms.direct.len() {
            for point in self.all_points() {
                let sum = name("s", output, point);
                self.code
                    .line(format!("{} {sum} = 0;", c_type(self.graph.element)));
            }
        }
        for plane in (low..=high).filter(|p| *p != 0) {
            self.contribute(plane, false, high)?;
        }
        self.guarded(branch, |step| step.contribute(0, false, high))?;
        if !own.is_empty() {
            self.code.line("__syncthreads();");
            for plane in (low..=high).filter(|p| *p != 0) {
                self.contribute(plane, true, high)?;
            }
            self.guarded(branch, |step| step.contribute(0, true, high))?;
        }
        self.finish(low, high);
        Ok(())
    }

    /// Some work is only for the outputs of this plane, which may lie outside the block's chunk.
    fn only_inside(&self) -> bool {
        let [low, high] = self.span();
        let flat = |field: &Field| {
            let mut places = field.uses.values().flat_map(|u| u.keys());
            places.all(|p| self.split(*p)[0] == 0)
        };
        let direct = self.terms.direct.iter().any(|d| !d.is_empty());
        low != high && (direct || self.terms.fields.iter().any(flat))
    }

    fn guarded(
        &mut self,
        branch: bool,
        body: impl FnOnce(&mut Self) -> Result<(), Refusal>,
    ) -> Result<(), Refusal> {
        if !branch {
            return body(self);
        }
        self.code.open("if (c >= first && c < last)");
        self.values.push(BTreeMap::new());
        let result = body(self);
        self.values.pop();
        self.code.close();
        result
    }

    /// Computes the staged fields of the own points.
    fn stage(&mut self) -> Result<Vec<(usize, Point, String)>, Refusal> {
        let mut own = Vec::new();
        for (number, field) in self.terms.fields.iter().enumerate() {
            let Some(slot) = self.staged[number] else {
                continue;
            };
            self.staging = Some(slot);
            for point in self.all_points() {
                let value = self.compute(field, [0; 3], point)?;
                own.push((slot, point, value));
            }
            self.staging = None;
        }
        Ok(own)
    }

    /// Gives them to the neighbours.
    fn give(&mut self, own: &[(usize, Point, String)]) {
        let Some(layout) = self.layout else {
            return;
        };
        let [rows, columns] = layout.region;
        for (slot, [y, x], value) in own {
            let at = *slot as i32 * rows * columns + y * columns + x;
            self.code.line(format!("given[{at}] = {value};"));
        }
        if !own.is_empty() && self.reload {
            self.forget_reads();
        }
    }

    /// What was read from shared memory is read again where it is used next.
    fn forget_reads(&mut self) {
        self.code
            .forget(|right| right.contains("w0") || right.contains("w_"));
        let graph = self.graph;
        for scope in &mut self.values {
            scope.retain(|(node, ..), _| !matches!(graph.nodes[*node], Node::Load(..)));
        }
    }

    /// A field at a place relative to a point.
    pub(super) fn field_value(
        &mut self,
        number: usize,
        place: Vector,
        point: Point,
    ) -> Result<String, Refusal> {
        let terms = self.terms;
        let [_, y, x] = self.split(place);
        let flat = self.join([0, y, x]);
        match (self.staged[number], [y, x]) {
            (Some(slot), at) if at != [0, 0] => Ok(self.given(slot, [point[0] + y, point[1] + x])),
            _ => self.compute(&terms.fields[number], flat, point),
        }
    }

    /// Reads of values that neighbours computed.
    pub(super) fn given_reads(&self) -> usize {
        self.given.len()
    }

    fn given(&mut self, slot: usize, [y, x]: Point) -> String {
        self.given.insert((slot, [y, x]));
        let [rows, columns] = self.layout.map_or([0, 0], |l| l.region);
        let at = slot as i32 * rows * columns + y * columns + x;
        self.code.value(format!("given[{at}]"))
    }

    fn compute(&mut self, field: &Field, place: Vector, point: Point) -> Result<String, Refusal> {
        let mut sum = None;
        for (factors, node, at) in &field.parts {
            let mut offset = place;
            for (offset, at) in offset.iter_mut().zip(at) {
                *offset -= at;
            }
            let mut value = self.value(*node, offset, point)?;
            for factor in factors {
                let factor = self.value(*factor, place, point)?;
                value = self.code.operation(format!("{value} * {factor}"));
            }
            sum = Some(match sum {
                None => value,
                Some(before) => self.code.operation(format!("{before} + {value}")),
            });
        }
        Ok(sum.unwrap_or_else(|| "0".to_owned()))
    }

    /// An expression at a point, its offsets moved.
    pub(super) fn value(
        &mut self,
        node: NodeId,
        offset: Vector,
        point: Point,
    ) -> Result<String, Refusal> {
        let key = (node, offset, point);
        if let Some(known) = self.values.iter().rev().find_map(|scope| scope.get(&key)) {
            return Ok(known.clone());
        }
        let graph = self.graph;
        let text = match &graph.nodes[node] {
            Node::Constant(bits) => return Ok(self.number(f64::from_bits(*bits))),
            Node::Scalar(scalar) => return Ok(argument(&self.stencil.scalars[*scalar].name)),
            Node::Load(source, shift) => {
                let mut at = [0; 3];
                for (n, at) in at.iter_mut().enumerate() {
                    *at = shift[n].map_or(0, |s| s + offset[n]);
                }
                let [plane, y, x] = self.split(at);
                if graph.is_full(*source) {
                    let place = [plane, y + point[0], x + point[1]];
                    return Ok(self.element(*source, place));
                }
                self.coefficient(*source, [plane, y + point[0], x + point[1]])
            }
            Node::Neg(a) => format!("-{}", self.value(*a, offset, point)?),
            Node::Binary(op, a, b) => {
                let a = self.value(*a, offset, point)?;
                let b = self.value(*b, offset, point)?;
                format!("{a} {} {b}", op.symbol())
            }
            Node::Call(function, arguments) => {
                let mut texts = Vec::new();
                for argument in arguments {
                    texts.push(self.value(*argument, offset, point)?);
                }
                let named = Function::named(function);
                match named.filter(|(function, _)| function.comparison().is_some()) {
                    Some((function, _)) => function.text(&texts, graph.element),
                    None => format!("{function}({})", texts.join(", ")),
                }
            }
        };
        let load = matches!(graph.nodes[node], Node::Load(..));
        let early = self.early[node];
        let emitter = if early {
            &mut self.before
        } else {
            &mut self.code
        };
        let name = if load {
            emitter.value(text)
        } else {
            emitter.operation(text)
        };
        // A value of the prologue is known everywhere, others where they were computed.
        let scope = if early { 0 } else { self.values.len() - 1 };
        self.values[scope].insert(key, name.clone());
        Ok(name)
    }

    /// An element of a full array.
    fn element(&mut self, source: SourceId, at: Place) -> String {
        let staged = self.staging;
        self.reads.insert(Read { source, at, staged });
        let number = source.index();
        let Some(layout) = self.layout else {
            return self.code.value(format!("read({number}, {at:?})"));
        };
        let [plane, y, x] = at;
        let own = (0..self.points[0]).contains(&y) && (0..self.points[1]).contains(&x);
        let home = layout.homes.get(&source).cloned().unwrap_or_default();
        if let (Some([from, _]), true) = (home.queue, own) {
            return queue(source, [y, x], plane - from);
        }
        let base = home.ring.unwrap_or(0) as i32 * layout.plane_elements();
        let window = window(plane);
        let index = |x: i32| base + y * layout.plane[1] + x;
        if self.points[1] % 2 == 0 {
            // Both halves of an aligned pair: one access.
            let lead = layout.reach.columns[0] + layout.pad;
            let odd = (x + lead).rem_euclid(2);
            let first = x - odd;
            if self.known.contains(&(source, [plane, y, x + 1 - 2 * odd])) {
                let kind = pair_type(self.graph.element);
                let text = format!(
                    "*reinterpret_cast<const {kind}*>({window} + {})",
                    index(first)
                );
                let pair = self.code.typed(kind, text);
                return format!("{pair}.{}", if odd == 0 { 'x' } else { 'y' });
            }
        }
        self.code.value(format!("{window}[{}]", index(x)))
    }

    /// An element of an array with fewer dimensions.
    fn coefficient(&mut self, id: SourceId, [plane, y, x]: Place) -> String {
        let source = &self.graph.sources[id];
        let array = &self.stencil.arrays[source.array];
        let mut text = String::new();
        for (subscript, extent) in source.subscripts.iter().zip(&array.extents) {
            let size = extent_text(self.stencil, *extent);
            let index = match subscript {
                Err(constant) => constant.to_string(),
                Ok(dim) => {
                    let index = match *dim {
                        0 => format!("c + {plane}"),
                        dim if dim + 1 == self.graph.dims => format!("x + {x}"),
                        _ => format!("y + {y}"),
                    };
                    clamped(self.stencil, self.graph, id, *dim, &index)
                }
            };
            text = if text.is_empty() {
                index
            } else {
                format!("({text}) * {size} + {index}")
            };
        }
        format!("{}[{text}]", argument(&array.name))
    }

    /// Stores what is complete and moves the partial sums on.
    fn finish(&mut self, low: i32, high: i32) {
        let length = high - low;
        for output in 0..self.terms.direct.len() {
            for point in self.all_points() {
                let sum = name("s", output, point);
                let acc = name("a", output, point);
                let element = c_type(self.graph.element);
                let done = name("o", output, point);
                if length == 0 {
                    self.code.line(format!("const {element} {done} = {sum};"));
                    continue;
                }
                // The output of this plane stands at `high` in the queue of partial sums.
                self.code.line(format!("{acc}_{high} += {sum};"));
                self.code.operations += 1;
                self.code.line(format!("const {element} {done} = {acc}_0;"));
                for k in 0..length {
                    self.code.line(format!("{acc}_{k} = {acc}_{};", k + 1));
                }
                self.code.line(format!("{acc}_{length} = 0;"));
            }
        }
    }

    pub(super) fn number(&self, value: f64) -> String {
        let text = literal(value, self.graph.element);
        if value.is_sign_negative() {
            format!("({text})")
        } else {
            text
        }
    }

    /// Plane, row and column of a vector along the domain's dimensions.
    pub(super) fn split(&self, v: Vector) -> Place {
        split(self.graph.dims, v)
    }

    pub(super) fn join(&self, [plane, y, x]: Place) -> Vector {
        if self.graph.dims == 3 {
            [plane, y, x]
        } else {
            [plane, x, 0]
        }
    }
}

/// Plane, row and column of a vector along the domain's dimensions.
pub(super) fn split(dims: usize, v: Vector) -> Place {
    if dims == 3 { v } else { [v[0], 0, v[1]] }
}
