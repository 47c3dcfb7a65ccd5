//! What was found, as a [`Stencil`].

use std::collections::{BTreeMap, BTreeSet};

use super::choices::not_at_an_end;
use super::guard::{Bounds, Domain};
use super::live::{leaves, value_of};
use super::machine::{Action, Guard, Trace};
use super::pragma::Pragma;
use super::shape::{Length, Shape};
use super::value::{Node, NodeKind, Operand};
use crate::build::{Builder, Value};
use crate::ir::{
    Access, ArrayId, BinaryOp, DimId, Edge, Element, ExprId, Extent, ParameterId, ScalarId,
    Stencil, Subscript, Variable,
};
use crate::names::reserved;
use crate::rules::needed_extent;
use warpwright_cudac::affine::{Symbol, Test};
use warpwright_cudac::ast::Function;
use warpwright_cudac::diag::{Diagnostic, Span};

pub(super) type Built<T> = Result<T, Diagnostic>;

/// Builds the stencil.
pub(super) fn build(
    function: &Function,
    trace: &Trace,
    shape: &Shape,
    pragma: Option<&Pragma>,
) -> Result<Stencil, Vec<Diagnostic>> {
    let one = |problem| vec![problem];
    let emit = || Emit {
        builder: Builder::new(&function.name.text),
        trace,
        shape,
        sizes: BTreeMap::new(),
        dims: BTreeMap::new(),
        arrays: BTreeMap::new(),
        scalars: BTreeMap::new(),
        settled: None,
        limits: Vec::new(),
        guards: Vec::new(),
        masked: masked(trace),
        kept: BTreeMap::new(),
    };
    let (inside, around) = emit().domains().map_err(one)?;
    let build = |domain: &[Range], around: Option<&[Range]>, actions: &[Action], settled| {
        let mut emit = emit();
        if settled {
            emit.settled = Some(domain.to_vec());
        }
        emit.declare(domain, around).map_err(one)?;
        if let Some(pragma) = pragma {
            emit.pragma(pragma).map_err(one)?;
        }
        for action in actions {
            emit.action(action).map_err(one)?;
        }
        Ok::<Builder, Vec<Diagnostic>>(emit.builder)
    };
    let stencil = build(&inside, around.as_deref(), &trace.actions, true)?;
    match (&trace.border, &around) {
        (border, Some(around)) => {
            // Points whose neighbours are clamped or wrapped, or whose values are chosen, do what all do.
            let actions = border.as_ref().map_or(&trace.actions, |b| &b.actions);
            stencil.finish_with_border(build(around, Some(&inside), actions, false)?)
        }
        (_, None) => stencil.finish(),
    }
}

pub(super) struct Emit<'a> {
    pub(super) builder: Builder,
    pub(super) trace: &'a Trace,
    pub(super) shape: &'a Shape,
    sizes: BTreeMap<usize, ParameterId>,
    pub(super) dims: BTreeMap<Symbol, DimId>,
    arrays: BTreeMap<usize, ArrayId>,
    scalars: BTreeMap<usize, ScalarId>,
    /// All points of these compute the same: what is chosen by the place of the point is known.
    pub(super) settled: Option<Vec<Range>>,
    /// The tests under which a value is computed.
    pub(super) limits: Vec<Test>,
    /// Variables that are not zero, or zero, where a value counts.
    pub(super) guards: Vec<(String, bool)>,
    /// Arrays of which some elements are stored under conditions on data.
    masked: BTreeSet<usize>,
    /// Their elements that were stored: under which conditions, and what they hold where these hold.
    pub(super) kept: BTreeMap<Access, (Vec<(String, bool)>, ExprId)>,
}

impl Emit<'_> {
    /// Sizes, dimensions, arrays and scalars, those that are used, in the order of the arguments.
    fn declare(&mut self, domain: &[Range], other: Option<&[Range]>) -> Built<()> {
        let (block, computing) = self.trace.threads_of_blocks();
        self.builder.presume(block, computing);
        let lengths = self.shape.lengths.iter().flatten().flatten();
        let ends = domain.iter().chain(other.unwrap_or(&[]));
        let ends = ends.map(|d| d.extent.0);
        let used: BTreeSet<usize> = lengths.map(|l| l.0).chain(ends).flatten().collect();
        for size in used {
            let id = self.builder.parameter(&self.trace.sizes[size]);
            let planes = self.trace.from_grid.iter().find(|(s, _)| *s == size);
            if let Some((_, axis)) = planes {
                self.builder.count_by_grid(id, *axis);
            }
            self.sizes.insert(size, id);
        }
        for (&(point, _), known) in self.shape.dims.iter().zip(domain) {
            let id = self.builder.dim(&known.name);
            self.dims.insert(point, id);
            let extent = self.extent(known.extent);
            let dim = self.builder.dim_mut(id);
            (dim.extent, dim.low, dim.high) = (extent, known.low, known.high);
            dim.edge = known.edge;
        }
        for (number, array) in self.trace.arrays.iter().enumerate() {
            let Some(lengths) = &self.shape.lengths[number] else {
                continue;
            };
            let first = self.first_length(number, domain, other);
            let mut extents = vec![self.extent(first)];
            extents.extend(lengths.iter().map(|l| self.extent(*l)));
            // Generated kernels have a pointer to what the file calls by the plain name.
            let name = match array.variable {
                Some(_) => format!("{}_of_file", array.name),
                None => array.name.clone(),
            };
            let id = self.builder.array(&name, array.element, extents);
            if let Some(lengths) = &array.variable {
                let variable = Variable {
                    name: array.name.clone(),
                    is_number: lengths.is_empty(),
                };
                self.builder.variable(id, variable);
            }
            self.arrays.insert(number, id);
        }
        let used_as_values = self.used_scalars();
        for scalar in used_as_values {
            let both =
                |(size, own): (&usize, &usize)| *own == scalar && self.sizes.contains_key(size);
            if self.trace.valued.iter().any(both) {
                return Err(self.size_and_value(scalar));
            }
            let (name, element) = &self.trace.scalars[scalar];
            let id = self.builder.scalar(name, *element);
            self.scalars.insert(scalar, id);
        }
        Ok(())
    }

    pub(super) fn extent(&self, (size, add): Length) -> Extent {
        let parameter = size.and_then(|s| self.sizes.get(&s).copied());
        Extent { parameter, add }
    }

    /// The length of an array's first dimension, which no pointer tells: that of the points, or as
    /// many components as there are.
    fn first_length(&self, array: usize, domain: &[Range], other: Option<&[Range]>) -> Length {
        let variable = self.trace.arrays[array].variable.as_ref();
        if let Some(lengths) = variable {
            return (None, lengths.first().copied().unwrap_or(1));
        }
        let own = self.trace.accesses.iter().zip(&self.shape.accesses);
        let firsts = own.filter(|(raw, _)| raw.array == array);
        let firsts: Vec<_> = firsts.filter_map(|(_, a)| a.first().copied()).collect();
        let point = firsts.iter().find_map(|(point, _)| *point);
        let dims = self.shape.dims.iter().position(|(p, _)| Some(*p) == point);
        match dims {
            Some(dim) => match domain[dim].extent {
                (None, length) => {
                    let boxes = [Some(domain), other].into_iter().flatten();
                    let ahead = boxes.map(|domain| self.rows_ahead(array, dim, &domain[dim]));
                    let filled = self.filled_rows(array);
                    (None, ahead.fold(length.max(filled), i64::max))
                }
                named => named,
            },
            None => (
                None,
                firsts.iter().map(|f| f.1).max().unwrap_or(0).max(0) + 1,
            ),
        }
    }

    /// The rows of an array that fill shared memory, those included that no computed point reads.
    fn filled_rows(&self, array: usize) -> i64 {
        let lengths = self.shape.lengths[array].iter().flatten();
        let rows = |sizes: &[i64], elements: i64| {
            let size = |of: usize| sizes.get(of).copied();
            let mut row = 1i64;
            for (of, add) in lengths.clone() {
                let length = of.map_or(Some(0), size)?.saturating_add(*add);
                row = row.checked_mul(length).filter(|row| *row > 0)?;
            }
            Some((elements.saturating_sub(1)).div_euclid(row) + 1)
        };
        let own = self.trace.furthest.iter().filter(|f| f.0 == array);
        let own = own.filter_map(|(_, sizes, elements)| rows(sizes, *elements));
        own.max().unwrap_or(0)
    }

    /// The rows of an array that are loaded for iterations to come, at the last one, too.
    fn rows_ahead(&self, array: usize, dim: usize, range: &Range) -> i64 {
        let (point, shift) = self.shape.dims[dim];
        let end = range.extent.1.saturating_sub(range.high);
        let own = self.trace.ahead.iter().filter_map(|&number| {
            let access = &self.trace.accesses[number];
            let (of, offset) = *self.shape.accesses[number].first()?;
            let is_own = access.array == array && of == Some(point) && access.edges.is_empty();
            is_own.then(|| end.saturating_add(offset.saturating_sub(shift)))
        });
        own.max().unwrap_or(0)
    }

    /// A size is used as a value, too.
    fn size_and_value(&self, scalar: usize) -> Diagnostic {
        let what = "a place or a size is used as a value";
        let mut problem = Diagnostic::error("stencil::position", what);
        let border = self.trace.border.iter().flat_map(|b| &b.actions);
        let mut found = None;
        for action in self.trace.actions.iter().chain(border) {
            leaves(value_of(action), &mut |node| {
                if matches!(node.kind, NodeKind::Scalar(own) if own == scalar) {
                    found.get_or_insert_with(|| node.span.clone());
                }
            });
        }
        if let Some(span) = found {
            problem = problem.label(span, "also the length of a row or a bound");
        }
        problem.help("pass it a second time, as an argument of its own")
    }

    fn used_scalars(&self) -> BTreeSet<usize> {
        let mut used = BTreeSet::new();
        let border = self.trace.border.iter().flat_map(|b| &b.actions);
        for action in self.trace.actions.iter().chain(border) {
            leaves(value_of(action), &mut |node| {
                if let NodeKind::Scalar(scalar) = node.kind {
                    used.insert(scalar);
                }
            });
        }
        used
    }

    /// The computed points, and the box around them if its other points do something.
    fn domains(&self) -> Built<(Vec<Range>, Option<Vec<Range>>)> {
        self.no_bent_stores()?;
        let used = Trace::used(&self.trace.actions);
        let mut inside = self.domain(&self.trace.domain, &used)?;
        let Some(border) = &self.trace.border else {
            let (inside, around) = self.away_from_edges(inside, &used)?;
            return self.away_from_choices(inside, around);
        };
        self.no_edges()?;
        self.no_choices()?;
        let used = Trace::used(&border.actions);
        let mut around = self.domain(&border.domain, &used)?;
        for (inside, around) in inside.iter_mut().zip(&mut around) {
            if inside.extent.0 != around.extent.0 {
                let what = format!(
                    "`{}` has one size inside and another at the border",
                    inside.name
                );
                return Err(Diagnostic::error("stencil::border", what));
            }
            // Both are parts of the same arrays.
            let add = inside.extent.1.max(around.extent.1);
            for range in [inside, around] {
                range.high += add - range.extent.1;
                range.extent.1 = add;
            }
        }
        Ok((inside, Some(around)))
    }

    /// The points along each dimension.
    fn domain(&self, domain: &Domain, used: &BTreeSet<usize>) -> Built<Vec<Range>> {
        let mut out = Vec::new();
        let mut names = BTreeSet::new();
        for (position, &(point, shift)) in self.shape.dims.iter().enumerate() {
            let fallback = ["z", "y", "x"];
            let name = self.trace.names.get(&point).map(|(name, _)| name.clone());
            let name = name.filter(|n| !reserved(n) && !names.contains(n));
            let name = name.unwrap_or_else(|| {
                let from_end = self.shape.dims.len() - position;
                let letter = fallback.len().checked_sub(from_end).map(|n| fallback[n]);
                format!("{}{position}", letter.unwrap_or("d"))
            });
            names.insert(name.clone());
            let none = Bounds::default();
            let bounds = domain.get(&point).unwrap_or(&none);
            let (end, span) = self.end(&name, bounds)?;
            let end = (end.0, end.1.saturating_add(shift));
            let low = bounds.low.saturating_add(shift);
            let row = self.row_between_edges(point, used)?;
            out.push(self.range((name, point, shift), (low, end), row, used, &span)?);
        }
        Ok(out)
    }

    /// One past the last point.
    fn end(&self, name: &str, bounds: &Bounds) -> Built<(Length, Span)> {
        let mut ends = bounds.ends.iter();
        let Some((first, span)) = ends.next() else {
            let what = format!("nothing bounds `{name}` from above");
            let store = self
                .trace
                .actions
                .iter()
                .find_map(|action| match action.bare() {
                    Action::Store(access, ..) => Some(self.trace.accesses[*access].span.clone()),
                    _ => None,
                });
            return Err(Diagnostic::error("stencil::guard", what)
                .label(store.unwrap_or(0..0), "stored without a bounds test")
                .help("test the place of the point against the sizes: `if (i < N) …`"));
        };
        let mut least = first.as_extent().unwrap_or((None, 0));
        for (end, other) in ends {
            let end = end.as_extent().unwrap_or((None, 0));
            if end.0 != least.0 {
                let what = format!("`{name}` has two upper bounds");
                return Err(Diagnostic::error("stencil::guard", what)
                    .label(other.clone(), "which is smaller is not known")
                    .label(span.clone(), "the other one"));
            }
            least.1 = least.1.min(end.1);
        }
        Ok((least, span.clone()))
    }

    /// The size of a dimension, with the cells at its far end that are not computed.
    ///
    /// Rows have the length that the pointers say; the first dimension of an array is as long as
    /// its accesses need, and as long as the size in the bound.
    fn range(
        &self,
        (name, point, shift): (String, Symbol, i64),
        (low, end): (i64, Length),
        between: Option<Length>,
        used: &BTreeSet<usize>,
        span: &Span,
    ) -> Built<Range> {
        let own = self.shape.accesses.iter().enumerate();
        let along = own.filter(|(n, _)| used.contains(n));
        let along = along.flat_map(|(n, a)| a.iter().map(move |subscript| (n, subscript)));
        // What is read under a condition is read by fewer points.
        let offsets = along
            .filter(|(_, (p, _))| *p == Some(point))
            .map(|(n, (_, o))| o - shift - self.spared(n, point, (end.0, end.1 - shift)));
        let needed = offsets.max().unwrap_or(0).max(0);
        let row = self.row_length(point).filter(|l| l.0 == end.0);
        // The same rule as for points that a text names, so that printed text parses back.
        let extent = between.or(row).unwrap_or_else(|| {
            let stand_in = end.0.map(|size| ParameterId::from_u32(size as u32));
            let end = Extent {
                parameter: stand_in,
                add: end.1,
            };
            (
                end.parameter.map(|p| p.as_u32() as usize),
                needed_extent(end, needed).add,
            )
        });
        let high = extent.1 - end.1;
        if high < 0 || extent.0 != end.0 {
            let what = format!("`{name}` runs beyond the rows of the arrays");
            return Err(Diagnostic::error("stencil::bounds", what)
                .label(span.clone(), "this bound")
                .help("the last point of a row is followed by the first one of the next"));
        }
        Ok(Range {
            name,
            extent,
            low,
            high,
            edge: None,
        })
    }

    /// The length of the rows along a dimension, if some stored array says it.
    fn row_length(&self, point: Symbol) -> Option<Length> {
        let stores = self
            .trace
            .actions
            .iter()
            .filter_map(|action| match action.bare() {
                Action::Store(access, ..) => Some(*access),
                _ => None,
            });
        let mut lengths = stores.filter_map(|store| {
            let subscripts = &self.shape.accesses[store];
            let at = subscripts.iter().position(|s| s.0 == Some(point))?;
            let lengths = self.shape.lengths[self.trace.accesses[store].array].as_ref()?;
            lengths.get(at.checked_sub(1)?).copied()
        });
        lengths.next()
    }

    fn pragma(&mut self, pragma: &Pragma) -> Built<()> {
        for (name, factor) in &pragma.unroll {
            let dims = &self.builder.stencil().dims;
            let Some(dim) = dims.iter().find(|(_, d)| d.name == *name).map(|(d, _)| d) else {
                let names: Vec<&str> = dims.values().map(|d| &*d.name).collect();
                let what = format!("the stencil has no iterator `{name}`");
                return Err(Diagnostic::error("stencil::pragma", what)
                    .label(pragma.span.clone(), "in this pragma")
                    .help(format!("it has {}", names.join(", "))));
            };
            self.builder.dim_mut(dim).unroll = Some(*factor);
        }
        if pragma.reassociate {
            self.builder.reassociate();
        }
        Ok(())
    }

    fn action(&mut self, action: &Action) -> Built<()> {
        match action {
            Action::Declare(name, element, value, span) => {
                let value = match value {
                    None => None,
                    Some(value) => Some(self.real(value, *element)?),
                };
                let value = value.map(|value| self.limited(value, (*element, None), span));
                let value = value.transpose()?;
                self.builder.declare(name, *element, value, span.clone())
            }
            Action::Assign(name, value, span) => {
                let value = self.real(value, self.builder.local_element(name))?;
                let held = self.held(name, span);
                let value = self.limited(value, held, span)?;
                self.builder.assign(name, value, span.clone())
            }
            Action::Accumulate(name, value, span)
                if !self.limits.is_empty() || !self.guards.is_empty() =>
            {
                let (element, old) = self.held(name, span);
                let value = self.real(value, element)?;
                let Some(old) = old else {
                    // It says what is wrong.
                    return self.builder.accumulate(name, value, span.clone());
                };
                let sum = self.builder.binary(BinaryOp::Add, old, value);
                let value = self.limited(sum, (element, Some(old)), span)?;
                self.builder.assign(name, value, span.clone())
            }
            Action::Accumulate(name, value, span) => {
                let value = self.real(value, self.builder.local_element(name))?;
                self.builder.accumulate(name, value, span.clone())
            }
            Action::Under(Guard::Data(name, holds), action) => {
                self.guards.push((name.clone(), *holds));
                let done = self.action(action);
                self.guards.pop();
                done
            }
            Action::Under(Guard::Place(test), action) => match (self.known(test)?, &**action) {
                (Some(true), action) => self.action(action),
                (Some(false), Action::Declare(name, element, _, span)) => {
                    self.builder.declare(name, *element, None, span.clone())
                }
                (Some(false), _) => Ok(()),
                (None, action) => {
                    self.limits.push(test.clone());
                    let done = self.action(action);
                    self.limits.pop();
                    done
                }
            },
            Action::Store(number, accumulate, value, span) => {
                let place = self.trace.accesses[*number].span.clone();
                let access = self.access(*number)?;
                let element = self.builder.stencil().arrays[access.array].element;
                let value = self.real(value, element)?;
                if self.masked.contains(&self.trace.accesses[*number].array) {
                    let value = match *accumulate {
                        true => {
                            let old = self.builder.load(access.clone(), place.clone());
                            self.builder.binary(BinaryOp::Add, old, value)
                        }
                        false => value,
                    };
                    return self.masked((access, place), value, span);
                }
                self.builder
                    .store(access, *accumulate, value, (place, span.clone()))
            }
            Action::Forget(name) => {
                self.builder.forget(name);
                Ok(())
            }
        }
    }

    fn access(&self, number: usize) -> Built<Access> {
        let raw = &self.trace.accesses[number];
        let mut subscripts = Vec::new();
        for &(point, offset) in &self.shape.accesses[number] {
            let Some(point) = point else {
                subscripts.push(Subscript { dim: None, offset });
                continue;
            };
            let shift = self.shape.dims.iter().find(|(p, _)| *p == point);
            let (Some((_, shift)), Some(&dim)) = (shift, self.dims.get(&point)) else {
                let what = "this place is bounded by no test and stored by nobody";
                return Err(Diagnostic::error("stencil::race", what)
                    .label(raw.span.clone(), "no dimension of the stencil"));
            };
            subscripts.push(Subscript {
                dim: Some(dim),
                offset: offset - shift,
            });
        }
        let Some(&array) = self.arrays.get(&raw.array) else {
            let what = "this array is not understood";
            return Err(
                Diagnostic::error("stencil::shape", what).label(raw.span.clone(), "in this access")
            );
        };
        Ok(Access { array, subscripts })
    }

    fn real(&mut self, operand: &Operand, element: Element) -> Built<ExprId> {
        let value = self.value(operand)?;
        Ok(self.builder.real(value, element))
    }

    fn value(&mut self, operand: &Operand) -> Built<Value> {
        match operand {
            Operand::Integer(value) => Ok(Value::Integer(*value)),
            Operand::Node(node) => crate::with_stack(|| self.node(node)),
        }
    }

    fn node(&mut self, node: &Node) -> Built<Value> {
        Ok(Value::Real(match &node.kind {
            NodeKind::Number(value) => self.builder.constant(*value, node.element),
            NodeKind::Scalar(scalar) => match self.scalars.get(scalar) {
                Some(&scalar) => self.builder.scalar_value(scalar),
                None => self.builder.constant(0.0, node.element),
            },
            NodeKind::Local(name) => match self.builder.local(name, &node.span) {
                Some(value) => value?,
                None => {
                    let what = format!("`{name}` is not known here");
                    return Err(Diagnostic::error("stencil::name", what)
                        .label(node.span.clone(), "no value"));
                }
            },
            NodeKind::Carried(name) => {
                let what = format!("`{name}` is carried from one point to the next");
                return Err(Diagnostic::error("stencil::carried", what)
                    .label(node.span.clone(), "used here"));
            }
            NodeKind::Load(access) => {
                let within = self.within();
                let access = self.access(*access)?;
                if let Some((guards, _)) = self.kept.get(&access)
                    && !guards.is_empty()
                {
                    let what = "an element is read after it was written under a condition on data";
                    return Err(Diagnostic::error("stencil::divergent", what)
                        .label(node.span.clone(), "read here"));
                }
                self.builder.load_within(access, within, node.span.clone())
            }
            NodeKind::Select(function, arguments) => {
                let mut values = Vec::new();
                for argument in &**arguments {
                    values.push(self.value(argument)?);
                }
                let [x, y, a, b] = values[..] else {
                    return Ok(Value::Integer(0));
                };
                let of = |emit: &Self, value: Value, other: Value| match (value, other) {
                    (Value::Real(own), _) | (_, Value::Real(own)) => {
                        emit.builder.element(own).promoted()
                    }
                    _ => Element::F64,
                };
                let compared = of(self, x, y);
                let all = [
                    (x, compared),
                    (y, compared),
                    (a, node.element),
                    (b, node.element),
                ];
                let all = all.map(|(value, element)| self.builder.real(value, element));
                self.builder.select(*function, all)
            }
            NodeKind::Choice(test, a, b) => {
                let (a, b) = match self.known(test)? {
                    Some(known) => {
                        let value = self.real(if known { a } else { b }, node.element)?;
                        return Ok(Value::Real(self.builder.convert(value, node.element)));
                    }
                    None => {
                        let opposite = test.opposite().ok_or_else(|| not_at_an_end(&node.span))?;
                        let a = self.under(test, |emit| emit.real(a, node.element))?;
                        let b = self.under(&opposite, |emit| emit.real(b, node.element))?;
                        (a, b)
                    }
                };
                self.choose(test, a, b, &node.span)?
            }
            NodeKind::Neg(inner) => {
                let inner = self.value(inner)?;
                return Ok(self.builder.negative(inner));
            }
            NodeKind::Binary(op, a, b) => {
                let (a, b) = (self.value(a)?, self.value(b)?);
                return self.builder.arithmetic(*op, a, b, &node.span);
            }
            NodeKind::Call(name, arguments) => {
                let mut values = Vec::new();
                for argument in arguments {
                    values.push(self.value(argument)?);
                }
                self.builder.call_named(&name.text, &name.span, values)?
            }
        }))
    }
}

/// Arrays of which some elements are stored under conditions on data.
fn masked(trace: &Trace) -> BTreeSet<usize> {
    let border = trace.border.iter().flat_map(|b| &b.actions);
    let all = trace.actions.iter().chain(border);
    let under = all.filter(|a| matches!(a, Action::Under(..)));
    let stores = under.filter_map(|action| match action.bare() {
        Action::Store(access, ..) => Some(trace.accesses[*access].array),
        _ => None,
    });
    stores.collect()
}

/// The points along one dimension.
#[derive(Clone)]
pub(super) struct Range {
    pub(super) name: String,
    pub(super) extent: Length,
    pub(super) low: i64,
    pub(super) high: i64,
    pub(super) edge: Option<Edge>,
}
