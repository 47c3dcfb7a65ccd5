//! Values that are chosen by the place of the point: neighbours beyond an end are left out, or something stands for them.
//!
//! Away from the ends every such condition is known, and the points there compute the same. The points that are left
//! decide when they are computed, in a kernel of their own; what is not meant is not computed there, and not loaded.

use std::collections::BTreeMap;

use super::emit::{Built, Emit, Range};
use super::live::value_of;
use super::machine::{Action, Guard};
use super::shape::Length;
use super::value::{NodeKind, Operand};
use crate::ir::{Access, DimId, Element, ExprId, Extent, Function, Limit};
use warpwright_cudac::affine::{Poly, Relation, Symbol, Test};
use warpwright_cudac::diag::{Diagnostic, Span};

/// Most points between an end and a place that something depends on.
const FARTHEST: i64 = 64;

/// What a comparison says about the place along a dimension.
#[derive(Clone, Copy, Debug)]
struct Cut {
    /// Of [`Emit`]'s dimensions.
    dim: usize,
    /// It holds at this place and those before it, behind it, or nowhere else.
    side: Side,
    /// A place.
    at: Length,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Side {
    /// At places less than `at`.
    Below,
    /// At places from `at` on.
    From,
    /// At `at` alone.
    At,
    /// Everywhere else.
    NotAt,
}

impl Emit<'_> {
    /// A border of its own and choices do not go together.
    pub(super) fn no_choices(&self) -> Built<()> {
        let border = self.trace.border.iter().flat_map(|b| &b.actions);
        let all = self.trace.actions.iter().chain(border);
        match all.flat_map(tests).next() {
            None => Ok(()),
            Some(test) => {
                let what =
                    "a border and choices by the place of the point are not understood together";
                let problem = Diagnostic::error("stencil::choice", what);
                Err(match first_span(&test) {
                    Some(span) => problem.label(span, "this condition"),
                    None => problem,
                })
            }
        }
    }

    /// The points for which all choices are known, and all points, if they are more.
    pub(super) fn away_from_choices(
        &self,
        mut inside: Vec<Range>,
        around: Option<Vec<Range>>,
    ) -> Built<(Vec<Range>, Option<Vec<Range>>)> {
        let all = around.clone().unwrap_or_else(|| inside.clone());
        let before = margins(&inside);
        for test in self.trace.actions.iter().flat_map(tests) {
            let mut comparisons = Vec::new();
            leaves_of(&test, &mut comparisons);
            for (relation, value, span) in comparisons {
                let cut = self
                    .cut(relation, value)
                    .ok_or_else(|| not_at_an_end(span))?;
                // The place before which, and that from which on it is known.
                let (first, next) = match cut.side {
                    Side::Below | Side::From => (cut.at, cut.at),
                    Side::At | Side::NotAt => (cut.at, (cut.at.0, cut.at.1 + 1)),
                };
                let whole = &all[cut.dim];
                let end = (whole.extent.0, whole.extent.1 - whole.high);
                let from_low = next.0.is_none().then(|| next.1 - whole.low);
                let from_end = (first.0 == end.0).then(|| end.1 - first.1);
                let range = &mut inside[cut.dim];
                match (from_low, from_end) {
                    (Some(low), high) if high.is_none_or(|high| low <= high) => {
                        if low > FARTHEST {
                            return Err(not_at_an_end(span));
                        }
                        range.low = range.low.max(whole.low + low);
                    }
                    (_, Some(high)) if high <= FARTHEST => {
                        range.high = range.high.max(whole.high + high);
                    }
                    _ => return Err(not_at_an_end(span)),
                }
            }
        }
        let same = margins(&inside) == before;
        Ok(match (same, around) {
            (true, around) => (inside, around),
            (false, _) => (inside, Some(all)),
        })
    }

    /// A comparison as a cut through a dimension.
    fn cut(&self, relation: Relation, value: &Poly) -> Option<Cut> {
        let &[point] = value.points().as_slice() else {
            return None;
        };
        let dims = &self.shape.dims;
        let dim = dims.iter().position(|(symbol, _)| *symbol == point)?;
        let shift = dims[dim].1;
        let sign = value.coefficient(point)?.as_constant()?;
        let rest = value.plus(&Poly::symbol(point), -sign)?;
        let place = |value: Option<Poly>| {
            let (size, add) = value?.as_extent()?;
            Some((size, add.checked_add(shift)?))
        };
        let negative = Poly::default().plus(&rest, -1);
        let (side, at) = match (relation, sign) {
            // point + rest >= 0
            (Relation::NotNegative, 1) => (Side::From, place(negative)?),
            // rest - point >= 0
            (Relation::NotNegative, -1) => (Side::Below, place(rest.plus(&Poly::constant(1), 1))?),
            (Relation::Zero, 1) => (Side::At, place(negative)?),
            (Relation::Zero, -1) => (Side::At, place(Some(rest))?),
            (Relation::NotZero, 1) => (Side::NotAt, place(negative)?),
            (Relation::NotZero, -1) => (Side::NotAt, place(Some(rest))?),
            _ => return None,
        };
        Some(Cut { dim, side, at })
    }

    /// Whether a test holds at all points of a stencil without choices; `None` in its border.
    pub(super) fn known(&self, test: &Test) -> Built<Option<bool>> {
        let Some(ranges) = &self.settled else {
            return Ok(match test {
                Test::Known(value) => Some(*value),
                _ => None,
            });
        };
        match self.holds(test, ranges) {
            Some(known) => Ok(Some(known)),
            None => Err(not_at_an_end(&first_span(test).unwrap_or(0..0))),
        }
    }

    fn holds(&self, test: &Test, ranges: &[Range]) -> Option<bool> {
        let all = |parts: &[Test], wanted: bool| {
            let mut open = false;
            for part in parts {
                match self.holds(part, ranges) {
                    Some(holds) if holds != wanted => return Some(!wanted),
                    Some(_) => {}
                    None => open = true,
                }
            }
            (!open).then_some(wanted)
        };
        match test {
            Test::Known(value) => Some(*value),
            Test::All(parts) => all(parts, true),
            Test::Any(parts) => all(parts, false),
            Test::Compare(relation, value, _) => {
                let cut = self.cut(*relation, value)?;
                let range = &ranges[cut.dim];
                let end = (range.extent.0, range.extent.1 - range.high);
                // Is every place at `at` or behind it, or before it?
                let behind = cut.at.0.is_none() && range.low >= cut.at.1;
                let before = cut.at.0 == end.0 && end.1 <= cut.at.1;
                let beyond = before || cut.at.0.is_none() && range.low > cut.at.1;
                match cut.side {
                    Side::Below if before => Some(true),
                    Side::Below if behind => Some(false),
                    Side::From if behind => Some(true),
                    Side::From if before => Some(false),
                    Side::At if beyond => Some(false),
                    Side::NotAt if beyond => Some(true),
                    _ => None,
                }
            }
        }
    }

    /// How many points fewer than all read an element at the end of a dimension, whose points end at `end`.
    pub(super) fn spared(&self, access: usize, point: Symbol, end: Length) -> i64 {
        let mut spared: Option<i64> = None;
        for path in paths(&self.trace.actions)
            .get(&access)
            .into_iter()
            .flatten()
        {
            let mut own = 0;
            for test in path {
                for (relation, value, _) in test.conjuncts().into_iter().flatten() {
                    // rest - point >= 0, and the place of the last point is rest.
                    let (Relation::NotNegative, Some(rest)) =
                        (relation, value.plus(&Poly::symbol(point), 1))
                    else {
                        continue;
                    };
                    if let Some((size, add)) = rest.as_extent()
                        && size == end.0
                    {
                        own = own.max(end.1 - (add + 1));
                    }
                }
            }
            spared = Some(spared.map_or(own, |spared| spared.min(own)));
        }
        spared.unwrap_or(0)
    }

    /// By dimension, the first place and those left out at the end, of the points at which the tests hold.
    pub(super) fn within(&self) -> Vec<(DimId, i64, i64)> {
        let mut all: BTreeMap<DimId, (i64, i64)> = BTreeMap::new();
        for test in &self.limits {
            for (relation, value, _) in test.conjuncts().into_iter().flatten() {
                let Some(cut) = self.cut(relation, value) else {
                    continue;
                };
                let Some(&dim) = self.dims.get(&self.shape.dims[cut.dim].0) else {
                    continue;
                };
                let described = &self.builder.stencil().dims[dim];
                let (low, high, extent) = (described.low, described.high, described.extent);
                let own = all.entry(dim).or_insert((low, high));
                let to = match self.extent(cut.at) {
                    at if at.parameter == extent.parameter => Some(extent.add - at.add),
                    _ => None,
                };
                match (cut.side, to) {
                    (Side::From | Side::At, _) if cut.at.0.is_none() => {
                        own.0 = own.0.max(cut.at.1);
                    }
                    (Side::Below, Some(to)) => own.1 = own.1.max(to),
                    (Side::At, Some(to)) => own.1 = own.1.max(to - 1),
                    (Side::NotAt, _) if cut.at == (None, low) => own.0 = own.0.max(low + 1),
                    (Side::NotAt, Some(to)) if to == high + 1 => own.1 = own.1.max(to),
                    _ => {}
                }
            }
        }
        all.into_iter()
            .map(|(dim, (low, high))| (dim, low, high))
            .collect()
    }

    /// Something under a test.
    pub(super) fn under<T>(&mut self, test: &Test, run: impl FnOnce(&mut Self) -> T) -> T {
        self.limits.push(test.clone());
        let done = run(self);
        self.limits.pop();
        done
    }

    /// What a variable of a type holds after a statement that gives it a value under the conditions at hand, where it
    /// held `old`. A variable without a value has none where the conditions do not hold either.
    pub(super) fn limited(
        &mut self,
        value: ExprId,
        (element, old): (Element, Option<ExprId>),
        span: &Span,
    ) -> Built<ExprId> {
        if self.limits.is_empty() && (self.guards.is_empty() || old.is_none()) {
            return Ok(value);
        }
        let all = Test::All(self.limits.clone());
        let mut value = value;
        let wide = self.builder.element(value);
        if wide != element {
            // Converted before it meets the old one.
            let mut meant = value;
            if !self.limits.is_empty() {
                let zero = self.builder.constant(0.0, wide);
                meant = self.choose(&all, value, zero, span)?;
            }
            let name = "converted.0";
            self.builder
                .declare(name, element, Some(meant), span.clone())?;
            if let Some(held) = self.builder.local(name, span) {
                value = held?;
            }
        }
        if let Some(old) = old {
            value = self.chosen(value, old, span)?;
        }
        if self.limits.is_empty() {
            return Ok(value);
        }
        let old = old.unwrap_or_else(|| self.builder.constant(0.0, element));
        self.choose(&all, value, old, span)
    }

    /// One value where all conditions on data hold, else another one.
    pub(super) fn chosen(&mut self, value: ExprId, old: ExprId, span: &Span) -> Built<ExprId> {
        let mut value = value;
        for (name, holds) in self.guards.clone() {
            let Some(condition) = self.builder.local(&name, span) else {
                continue;
            };
            let condition = condition?;
            let zero = self.builder.constant(0.0, self.builder.element(condition));
            let old = self.builder.again(old);
            let (there, elsewhere) = if holds { (old, value) } else { (value, old) };
            value = self
                .builder
                .select(Function::IfEqual, [condition, zero, there, elsewhere]);
        }
        Ok(value)
    }

    /// A store, which may stand under conditions on data: an element that is stored several times gets the last value
    /// whose condition holds.
    pub(super) fn masked(
        &mut self,
        (access, place): (Access, Span),
        value: ExprId,
        span: &Span,
    ) -> Built<()> {
        let element = self.builder.stencil().arrays[access.array].element;
        let name = format!("stored.{}", self.builder.stencil().temps.len());
        let hold = |emit: &mut Self, value: ExprId, element| {
            emit.builder
                .declare(&name, element, Some(value), span.clone())?;
            match emit.builder.local(&name, span) {
                Some(held) => held,
                None => Ok(value),
            }
        };
        let mut value = hold(self, value, element)?;
        let mut guards = self.guards.clone();
        if let Some((before, old)) = self.kept.get(&access).cloned() {
            value = self.chosen(value, old, span)?;
            value = hold(self, value, element)?;
            let opposite = |(a, b): (&(String, bool), &(String, bool))| a.0 == b.0 && a.1 != b.1;
            let is_rest = match (&before[..], &guards[..]) {
                ([a], [b]) => opposite((a, b)),
                _ => false,
            };
            if before.is_empty() || is_rest {
                guards.clear();
            } else if !guards.is_empty() {
                // Either.
                let now = self.condition(&guards, span)?;
                let (zero, one) = self.zero_and_one(now);
                let then = self.condition(&before, span)?;
                let both = self
                    .builder
                    .select(Function::IfEqual, [now, zero, then, one]);
                let name = format!("either.{}", self.builder.stencil().temps.len());
                let element = self.builder.element(both);
                self.builder
                    .declare(&name, element, Some(both), span.clone())?;
                guards = vec![(name, true)];
            }
        }
        self.kept.insert(access.clone(), (guards.clone(), value));
        if !guards.is_empty() {
            let condition = self.condition(&guards, span)?;
            value = self.builder.when(condition, value);
        }
        self.builder
            .store(access, false, value, (place, span.clone()))
    }

    fn zero_and_one(&mut self, like: ExprId) -> (ExprId, ExprId) {
        let element = self.builder.element(like);
        let zero = self.builder.constant(0.0, element);
        (zero, self.builder.constant(1.0, element))
    }

    /// 1, or another number than zero, where all of these conditions hold, else 0.
    fn condition(&mut self, guards: &[(String, bool)], span: &Span) -> Built<ExprId> {
        let mut all: Option<ExprId> = None;
        for (name, holds) in guards {
            let Some(own) = self.builder.local(name, span) else {
                continue;
            };
            let own = own?;
            let (zero, one) = self.zero_and_one(own);
            let next = all.unwrap_or(one);
            let no = self.builder.again(zero);
            let [a, b] = if *holds { [no, next] } else { [next, no] };
            all = Some(match (all, holds) {
                (None, true) => own,
                _ => self.builder.select(Function::IfEqual, [own, zero, a, b]),
            });
        }
        Ok(all.unwrap_or_else(|| self.builder.constant(1.0, crate::ir::Element::F64)))
    }

    /// What a variable holds: its type, and its value if it has one.
    pub(super) fn held(&mut self, name: &str, span: &Span) -> (Element, Option<ExprId>) {
        let element = self.builder.local_element(name);
        let value = self.builder.local(name, span);
        (element, value.and_then(Result::ok))
    }

    /// `test ? a : b` in a border.
    pub(super) fn choose(
        &mut self,
        test: &Test,
        a: ExprId,
        b: ExprId,
        span: &Span,
    ) -> Built<ExprId> {
        let refuse = || not_at_an_end(span);
        match test {
            Test::Known(true) => Ok(a),
            Test::Known(false) => Ok(b),
            Test::Any(_) => {
                let opposite = test.opposite().ok_or_else(refuse)?;
                self.choose(&opposite, b, a, span)
            }
            Test::Compare(Relation::NotZero, ..) => {
                let opposite = test.opposite().ok_or_else(refuse)?;
                self.choose(&opposite, b, a, span)
            }
            Test::Compare(relation, value, _) => {
                let limits = self.limits_of(*relation, value).ok_or_else(refuse)?;
                Ok(self.builder.choice(limits, a, b))
            }
            Test::All(parts) => {
                // All that are comparisons at once, then the others.
                let mut limits = Vec::new();
                let mut others = Vec::new();
                for part in parts {
                    match part {
                        Test::Compare(
                            relation @ (Relation::NotNegative | Relation::Zero),
                            value,
                            _,
                        ) => {
                            limits.extend(self.limits_of(*relation, value).ok_or_else(refuse)?);
                        }
                        other => others.push(other),
                    }
                }
                let mut chosen = a;
                for other in others {
                    chosen = self.choose(other, chosen, b, span)?;
                }
                if limits.is_empty() {
                    return Ok(chosen);
                }
                Ok(self.builder.choice(limits, chosen, b))
            }
        }
    }

    fn limits_of(&self, relation: Relation, value: &Poly) -> Option<Vec<Limit>> {
        let cut = self.cut(relation, value)?;
        let dim = *self.dims.get(&self.shape.dims[cut.dim].0)?;
        let limit = |below, at| Limit {
            dim,
            below,
            at: self.extent(at),
        };
        let next = (cut.at.0, cut.at.1.checked_add(1)?);
        let described = &self.builder.stencil().dims[dim];
        let end = Extent {
            add: described.extent.add - described.high,
            ..described.extent
        };
        Some(match cut.side {
            Side::Below => vec![limit(true, cut.at)],
            Side::From => vec![limit(false, cut.at)],
            // The first place is the only one below the second, and the last one is the only one from it on.
            Side::At if cut.at == (None, described.low) => vec![limit(true, next)],
            Side::At if self.extent(next) == end => vec![limit(false, cut.at)],
            Side::At => vec![limit(false, cut.at), limit(true, next)],
            Side::NotAt => return None,
        })
    }
}

fn margins(all: &[Range]) -> Vec<(i64, i64)> {
    all.iter().map(|range| (range.low, range.high)).collect()
}

/// The tests of places that a statement stands under, and what stands there.
fn guarded(action: &Action) -> (Vec<Test>, &Action) {
    let (mut found, mut action) = (Vec::new(), action);
    while let Action::Under(guard, inner) = action {
        if let Guard::Place(test) = guard {
            found.push(test.clone());
        }
        action = inner;
    }
    (found, action)
}

/// All tests of a statement.
fn tests(action: &Action) -> Vec<Test> {
    let (mut found, action) = guarded(action);
    visit(value_of(action), &mut Vec::new(), &mut |node, path| {
        if let NodeKind::Choice(..) = node {
            found.extend(path.last().cloned());
        }
    });
    found
}

/// By access: the tests under which each of its loads is computed.
fn paths(actions: &[Action]) -> BTreeMap<usize, Vec<Vec<Test>>> {
    let mut found: BTreeMap<usize, Vec<Vec<Test>>> = BTreeMap::new();
    for action in actions {
        let (mut path, action) = guarded(action);
        visit(value_of(action), &mut path, &mut |node, path| {
            if let NodeKind::Load(access) = node {
                found.entry(*access).or_default().push(path.to_vec());
            }
        });
    }
    found
}

/// Visits loads and choices, each with the tests so far; a choice has its own as the last one.
fn visit(
    value: Option<&Operand>,
    path: &mut Vec<Test>,
    found: &mut impl FnMut(&NodeKind, &[Test]),
) {
    crate::with_stack(|| {
        let Some(Operand::Node(node)) = value else {
            return;
        };
        match &node.kind {
            NodeKind::Load(_) => found(&node.kind, path),
            NodeKind::Choice(test, a, b) => {
                path.push(test.clone());
                found(&node.kind, path);
                visit(Some(&**a), path, found);
                path.pop();
                path.push(test.opposite().unwrap_or(Test::Known(true)));
                visit(Some(&**b), path, found);
                path.pop();
            }
            NodeKind::Neg(a) => visit(Some(&**a), path, found),
            NodeKind::Binary(_, a, b) => {
                visit(Some(&**a), path, found);
                visit(Some(&**b), path, found);
            }
            NodeKind::Call(_, arguments) => {
                for argument in arguments {
                    visit(Some(argument), path, found);
                }
            }
            NodeKind::Select(_, arguments) => {
                for argument in &**arguments {
                    visit(Some(argument), path, found);
                }
            }
            NodeKind::Number(_)
            | NodeKind::Scalar(_)
            | NodeKind::Local(_)
            | NodeKind::Carried(_) => {}
        }
    });
}

fn leaves_of<'t>(test: &'t Test, found: &mut Vec<(Relation, &'t Poly, &'t Span)>) {
    match test {
        Test::Known(_) => {}
        Test::Compare(relation, value, span) => found.push((*relation, value, span)),
        Test::All(parts) | Test::Any(parts) => {
            for part in parts {
                leaves_of(part, found);
            }
        }
    }
}

fn first_span(test: &Test) -> Option<Span> {
    let mut all = Vec::new();
    leaves_of(test, &mut all);
    all.first().map(|(_, _, span)| (*span).clone())
}

/// The condition does not compare the place of a point with the ends of its dimension.
pub(super) fn not_at_an_end(span: &Span) -> Diagnostic {
    let what = "a choice by the place of the point is not understood";
    Diagnostic::error("stencil::choice", what)
        .label(
            span.clone(),
            "the place along one dimension is compared with what is near its first or last point",
        )
        .help("compute these points in an `else` or a kernel of their own")
}
