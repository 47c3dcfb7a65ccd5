//! Conditions on the place of a point: which points the kernel computes.

use std::collections::BTreeMap;

use super::machine::{Machine, Var};
use super::value::{Cond, Node, NodeKind, Operand, Val, select};
use crate::ir::{Element, Function};
use warpwright_cudac::Scalar;
use warpwright_cudac::affine::{Poly, Relation, Symbol, Test};
use warpwright_cudac::ast::{Expr, ExprKind, Type};
use warpwright_cudac::diag::{Diagnostic, Span};

/// The values of one point symbol.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Bounds {
    /// The first one.
    pub(super) low: i64,
    /// Each is one past the last one; the smallest counts.
    pub(super) ends: Vec<(Poly, Span)>,
    /// Single values that are left out.
    pub(super) without: Vec<(Poly, Span)>,
}

impl Bounds {
    /// Takes single values off the two ends; one in the middle is no box.
    fn settle(&mut self) -> Result<(), Diagnostic> {
        let one = Poly::constant(1);
        loop {
            let mut left = Vec::new();
            let before = self.without.len();
            for (value, span) in std::mem::take(&mut self.without) {
                let next = value.plus(&one, 1);
                if value.as_constant() == Some(self.low) {
                    self.low += 1;
                } else if self.ends.iter().any(|(end, _)| Some(end) == next.as_ref()) {
                    self.ends.push((value, span));
                } else if value.as_constant().is_none_or(|value| value >= self.low) {
                    left.push((value, span));
                }
            }
            self.without = left;
            match self.without.first() {
                None => return Ok(()),
                Some((_, span)) if self.without.len() == before => return Err(not_a_box(span)),
                Some(_) => {}
            }
        }
    }
}

/// All bounds that hold where the statements stand.
pub(super) type Domain = BTreeMap<Symbol, Bounds>;

impl Machine<'_> {
    /// What a condition says about places and sizes.
    pub(super) fn condition(&mut self, cond: &Expr) -> Result<Test, Diagnostic> {
        match self.general(cond)? {
            Cond::Place(test) => Ok(test),
            _ => Err(divergent(&cond.span)),
        }
    }

    /// A condition on places and sizes, or on data.
    pub(super) fn general(&mut self, cond: &Expr) -> Result<Cond, Diagnostic> {
        crate::with_stack(|| self.general_of(cond))
    }

    fn general_of(&mut self, cond: &Expr) -> Result<Cond, Diagnostic> {
        let cond = self.expanded(cond)?;
        let cond = cond.bare();
        let span = &cond.span;
        match &cond.kind {
            ExprKind::Bool(value) => Ok(Cond::Place(Test::Known(*value))),
            ExprKind::Unary(op, inner) if op == "!" => {
                let opposite = |test: Test| test.opposite().ok_or_else(|| divergent(span));
                let not = |node: Node| {
                    let element = node.element;
                    select(&node, Operand::Integer(0), Operand::Integer(1), element)
                };
                Ok(match self.general(inner)? {
                    Cond::Place(test) => Cond::Place(opposite(test)?),
                    Cond::Data(node) => Cond::Data(not(node)),
                    Cond::Both(test, node) => Cond::Either(opposite(test)?, not(node)),
                    Cond::Either(test, node) => Cond::Both(opposite(test)?, not(node)),
                })
            }
            ExprKind::Binary(op, a, b)
                if matches!(&**op, "&&" | "||")
                    || matches!(&**op, "&" | "|") && self.is_truth(a) && self.is_truth(b) =>
            {
                let first = self.general(a)?;
                // It is computed where the first one decides already, too.
                self.doubtful += 1;
                let beside = self.beside.clone();
                if let (true, Cond::Place(test)) = (op.starts_with('&'), &first) {
                    self.take_beside(test);
                }
                let second = self.general(b);
                self.beside = beside;
                self.doubtful -= 1;
                self.joined(first, second?, op.starts_with('&'), span)
            }
            ExprKind::Binary(op, a, b) if is_comparison(op) => self.compare(op, a, b, span),
            ExprKind::Name(name) if self.is_condition(name) => match self.variable(name) {
                Some(Var::Test(test)) => Ok(Cond::Place(test.clone())),
                Some(Var::Flag(node)) => Ok(Cond::Data(node.clone())),
                _ => Err(divergent(span)),
            },
            _ => match self.value(cond)? {
                Val::Int(value) => {
                    let (value, zero) = (self.placed(value), Poly::default());
                    let test = Test::of("!=", &value, &zero, span);
                    test.map(Cond::Place).ok_or_else(|| divergent(span))
                }
                Val::Real(node) => {
                    let value = Operand::Node(node);
                    Ok(Cond::Data(comparison(
                        "!=",
                        value,
                        Operand::Integer(0),
                        span,
                    )))
                }
                Val::Pointer(_) => Err(divergent(span)),
            },
        }
    }

    /// Is an expression a condition and no number, of which `&` takes the bits?
    fn is_truth(&self, expr: &Expr) -> bool {
        let Ok(expr) = self.expanded(expr) else {
            return false;
        };
        match &expr.bare().kind {
            ExprKind::Bool(_) => true,
            ExprKind::Name(name) => self.is_condition(name),
            ExprKind::Unary(op, _) => op == "!",
            ExprKind::Binary(op, ..) if is_comparison(op) => true,
            ExprKind::Binary(op, ..) if matches!(&**op, "&&" | "||") => true,
            ExprKind::Binary(op, a, b) if matches!(&**op, "&" | "|") => {
                self.is_truth(a) && self.is_truth(b)
            }
            _ => false,
        }
    }

    fn is_condition(&self, name: &str) -> bool {
        matches!(self.variable(name), Some(Var::Test(_) | Var::Flag(_)))
    }

    /// Both conditions, or either.
    fn joined(&mut self, a: Cond, b: Cond, both: bool, span: &Span) -> Result<Cond, Diagnostic> {
        // What both are made of: conditions on places, and conditions on data.
        let parts = |cond: Cond| match (cond, both) {
            (Cond::Place(test), _) => (Some(test), None),
            (Cond::Both(test, node), true) | (Cond::Either(test, node), false) => {
                (Some(test), Some(node))
            }
            (other, _) => match other.whole() {
                Cond::Data(node) => (None, Some(node)),
                _ => (None, None),
            },
        };
        let ((a, x), (b, y)) = (parts(a), parts(b));
        let test = match (a, b) {
            (Some(a), Some(b)) => Some(a.join(b, both)),
            (a, b) => a.or(b),
        };
        let node = match (x, y) {
            (Some(x), Some(y)) => {
                let (element, known) = (y.element, Operand::Integer(i64::from(!both)));
                let y = Operand::Node(y);
                Some(match both {
                    true => select(&x, y, known, element),
                    false => select(&x, known, y, element),
                })
            }
            (x, y) => x.or(y),
        };
        Ok(match (test, node) {
            (Some(Test::Known(value)), Some(_)) if value != both => Cond::Place(Test::Known(value)),
            (None | Some(Test::Known(_)), Some(node)) => Cond::Data(node),
            (Some(test), Some(node)) => {
                let test = self.of_points(&test)?;
                match both {
                    true => Cond::Both(test, node),
                    false => Cond::Either(test, node),
                }
            }
            (Some(test), None) => Cond::Place(test),
            (None, None) => return Err(divergent(span)),
        })
    }

    fn compare(&mut self, op: &str, a: &Expr, b: &Expr, span: &Span) -> Result<Cond, Diagnostic> {
        let is_unsigned = self.is_unsigned(a) || self.is_unsigned(b);
        let (x, y) = (self.value(a)?, self.value(b)?);
        let is_int = self.is_int(&x, a) && self.is_int(&y, b);
        let (a, b) = match (x, y) {
            (Val::Int(a), Val::Int(b)) => (a, b),
            (Val::Pointer(_), _) | (_, Val::Pointer(_)) => return Err(divergent(span)),
            (Val::Real(node), _) | (_, Val::Real(node)) if node.element.is_integer() && !is_int => {
                return Err(super::value::not_an_int(span));
            }
            (a, b) => {
                let (a, b) = (self.as_operand(a, span)?, self.as_operand(b, span)?);
                return Ok(Cond::Data(comparison(op, a, b, span)));
            }
        };
        if is_unsigned && !matches!(op, "==" | "!=") {
            for side in [&a, &b] {
                self.not_negative(side, span)?;
            }
        }
        let (a, b) = (self.placed(a), self.placed(b));
        let test = Test::of(op, &a, &b, span).ok_or_else(|| divergent(span))?;
        Ok(Cond::Place(match test {
            Test::Compare(relation, value, span) => {
                Test::compare(relation, self.placed(value), span)
            }
            test => test,
        }))
    }

    /// What is compared behind `&&` only matters where the conditions in front of it hold.
    fn take_beside(&mut self, test: &Test) {
        let known = self.beside.take().unwrap_or_else(|| self.domain.clone());
        let outside = std::mem::replace(&mut self.domain, known.clone());
        let is_taken = self.restrict(test, &(0..0)).is_ok();
        let within = std::mem::replace(&mut self.domain, outside);
        self.beside = Some(if is_taken { within } else { known });
    }

    /// The larger or smaller one of values without a sign is what it seems to be only above zero.
    pub(super) fn signed(
        &self,
        is_unsigned: bool,
        both: [&Poly; 2],
        span: &Span,
    ) -> Result<(), Diagnostic> {
        let mut both = both.into_iter().filter(|_| is_unsigned);
        both.try_for_each(|side| self.not_negative(side, span))
    }

    /// Without a sign, a place minus something, or a number below zero, is a very large one.
    fn not_negative(&self, side: &Poly, span: &Span) -> Result<(), Diagnostic> {
        if side.as_constant().is_some_and(|number| number < 0) {
            let what = "what has no sign is compared with a number below zero";
            return Err(Diagnostic::error("stencil::unsigned", what)
                .label(span.clone(), "the number is a very large one here"));
        }
        let least = |symbol| {
            let bounds = self.beside.as_ref().unwrap_or(&self.domain).get(&symbol);
            Some(bounds.map_or(0, |bounds| bounds.low.max(0)))
        };
        let grows = side.points().iter().all(|point| {
            let by = side.coefficient(*point).and_then(|c| c.as_constant());
            by.is_some_and(|by| by >= 0)
        });
        let depends = !side.points().is_empty() || side.is_raw();
        if !depends || side.never_negative() {
            return Ok(());
        }
        let sizes = side.symbols().iter().any(|s| matches!(s, Symbol::Size(_)));
        if grows && !sizes && side.evaluate(least).is_some_and(|least| least >= 0) {
            return Ok(());
        }
        let what = "a place without a sign is compared after something was taken off it";
        Err(Diagnostic::error("stencil::unsigned", what)
            .label(span.clone(), "below zero it is a very large number")
            .help("declare the place and the sizes as `int`"))
    }

    /// Has the type of an expression no sign, as far as it matters?
    pub(super) fn is_unsigned(&self, expr: &Expr) -> bool {
        match &expr.bare().kind {
            ExprKind::Name(name) => self.unsigned.contains(name),
            ExprKind::Member(..) => match self.member(expr.bare()) {
                Some(name) => self.unsigned.contains(&name),
                None => true,
            },
            ExprKind::Number(text) => super::integers::type_of_number(text).0,
            ExprKind::Index(base, _) => self.is_unsigned(base),
            ExprKind::Cast(_, ty, _) => self.unsigned_type(ty),
            ExprKind::Unary(_, inner) => self.is_unsigned(inner),
            ExprKind::Binary(op, a, _) if matches!(&**op, "<<" | ">>") => self.is_unsigned(a),
            ExprKind::Binary(_, a, b) | ExprKind::Conditional(_, a, b) => {
                self.is_unsigned(a) || self.is_unsigned(b)
            }
            ExprKind::Call(_, arguments) => arguments.iter().any(|a| self.is_unsigned(a)),
            _ => false,
        }
    }

    pub(super) fn unsigned_type(&self, ty: &Type) -> bool {
        let scalar = self.file.scalar(ty, &self.types);
        matches!(scalar, Some(Scalar::Integer(32 | 64, false)))
    }

    pub(super) fn note_type(&mut self, name: &str, ty: &Type) {
        self.note_sign(name, self.unsigned_type(ty));
        match self.is_wide_type(ty) {
            true => self.wide.insert(name.to_owned()),
            false => self.wide.remove(name),
        };
        match self
            .data_element(ty)
            .filter(|e| e.is_integer() && e.size() < 4)
        {
            Some(element) => self.narrow.insert(name.to_owned(), element),
            None => self.narrow.remove(name),
        };
    }

    pub(super) fn note_sign(&mut self, name: &str, is_unsigned: bool) {
        if is_unsigned {
            self.unsigned.insert(name.to_owned());
        } else {
            self.unsigned.remove(name);
        }
    }

    /// Takes a test into the domain, if it is a conjunction of bounds.
    pub(super) fn restrict(&mut self, test: &Test, span: &Span) -> Result<(), Diagnostic> {
        let bounds = test.conjuncts().ok_or_else(|| not_a_box(span))?;
        for (relation, value, span) in bounds {
            self.bound(relation, value, span)?;
        }
        Ok(())
    }

    /// Would [`Machine::restrict`] take a test?
    pub(super) fn is_box(&self, test: &Test) -> bool {
        let mut side = self.clone();
        side.restrict(test, &(0..0)).is_ok() && side.settled().is_ok()
    }

    /// Does one box lie in another one, within the domain? Only bounds that differ by numbers are compared.
    pub(super) fn implies(&self, inner: &Test, outer: &Test) -> bool {
        let within = |test: &Test| {
            let mut side = self.clone();
            side.restrict(test, &(0..0)).ok()?;
            side.settled().ok()
        };
        let (Some(inner), Some(outer)) = (within(inner), within(outer)) else {
            return false;
        };
        outer.iter().all(|(symbol, wide)| {
            let Some(tight) = inner.get(symbol) else {
                return *wide == Bounds::default();
            };
            let below = |end: &Poly| {
                let mut ends = tight.ends.iter();
                ends.any(|(own, _)| {
                    let apart = end.plus(own, -1).and_then(|apart| apart.as_constant());
                    apart.is_some_and(|apart| apart >= 0)
                })
            };
            tight.low >= wide.low && wide.ends.iter().all(|(end, _)| below(end))
        })
    }

    /// The domain once single points at its edges are taken off.
    pub(super) fn settled(&self) -> Result<Domain, Diagnostic> {
        let mut domain = self.domain.clone();
        for bounds in domain.values_mut() {
            bounds.settle()?;
        }
        Ok(domain)
    }

    /// `bound >= 0`, or `bound != 0`
    fn bound(&mut self, relation: Relation, bound: &Poly, span: &Span) -> Result<(), Diagnostic> {
        let mut points = bound.points();
        if bound.is_raw() {
            // Which threads of a block compute ([`Machine::find_windows`]).
            match bound.symbols()[..] {
                [thread @ Symbol::ThreadIdx(_)] if relation == Relation::NotNegative => {
                    points = vec![thread];
                }
                _ => return Err(not_on_places(span)),
            }
        }
        let &[point] = points.as_slice() else {
            return Err(if points.is_empty() {
                divergent(span)
            } else {
                not_a_box(span)
            });
        };
        let sign = bound.coefficient(point).and_then(|c| c.as_constant());
        let symbol = Poly::symbol(point);
        match relation {
            Relation::Zero => return Err(not_a_box(span)),
            Relation::NotZero => {
                // point + rest != 0, or -point + rest != 0
                let sign = sign
                    .filter(|s| s.abs() == 1)
                    .ok_or_else(|| not_a_box(span))?;
                let rest = bound.plus(&symbol, -sign);
                let other = rest.and_then(|rest| Poly::default().plus(&rest, -sign));
                let other = other.ok_or_else(|| not_a_box(span))?;
                let bounds = self.domain.entry(point).or_default();
                bounds.without.push((other, span.clone()));
                return Ok(());
            }
            Relation::NotNegative => {}
        }
        match sign {
            Some(1) => {
                let low = bound.plus(&symbol, -1).and_then(|rest| rest.as_constant());
                let Some(low) = low else {
                    let what = "the first point is not known when the kernel is compiled";
                    return Err(Diagnostic::error("stencil::guard", what)
                        .label(span.clone(), "a lower bound is a number"));
                };
                let bounds = self.domain.entry(point).or_default();
                bounds.low = bounds.low.max(-low);
            }
            Some(-1) => {
                let end = bound.plus(&symbol, 1);
                let end = end.and_then(|end| end.plus(&Poly::constant(1), 1));
                let end = end.filter(|end| end.as_extent().is_some()).ok_or_else(|| {
                    let what = "the last point is not a size plus a number";
                    Diagnostic::error("stencil::guard", what).label(
                        span.clone(),
                        "an upper bound is a parameter plus a constant",
                    )
                })?;
                let bounds = self.domain.entry(point).or_default();
                bounds.ends.push((end, span.clone()));
            }
            _ => return Err(not_a_box(span)),
        }
        Ok(())
    }
}

pub(super) fn not_on_places(span: &Span) -> Diagnostic {
    let what = "the condition is not on the place of the point";
    Diagnostic::error("stencil::guard", what)
        .label(
            span.clone(),
            "depends on the place of the thread in its block",
        )
        .help("compare `blockIdx.x * blockDim.x + threadIdx.x` and so on with the sizes")
}

/// 1 where a comparison of values holds, else 0.
fn comparison(op: &str, a: Operand, b: Operand, span: &Span) -> Node {
    let (function, [x, y], holds) = match op {
        "<" => (Function::IfLess, [a, b], 1),
        "<=" => (Function::IfAtMost, [a, b], 1),
        ">" => (Function::IfLess, [b, a], 1),
        ">=" => (Function::IfAtMost, [b, a], 1),
        "==" => (Function::IfEqual, [a, b], 1),
        _ => (Function::IfEqual, [a, b], 0),
    };
    let types = [&x, &y].map(|operand| match operand {
        Operand::Node(node) => Some(node.element),
        Operand::Integer(_) => None,
    });
    let types = types.into_iter().flatten().reduce(Element::wider);
    let element = types.unwrap_or(Element::F64).promoted();
    let (yes, no) = (Operand::Integer(holds), Operand::Integer(1 - holds));
    Node {
        kind: NodeKind::Select(function, Box::new([x, y, yes, no])),
        element,
        span: span.clone(),
    }
}

pub(super) fn is_comparison(op: &str) -> bool {
    matches!(op, "<" | "<=" | ">" | ">=" | "==" | "!=")
}

pub(super) fn divergent(span: &Span) -> Diagnostic {
    Diagnostic::error(
        "stencil::divergent",
        "the condition is not a bounds test, so points compute different things",
    )
    .label(span.clone(), "only places and sizes may be compared")
    .help("compute with `fmin`, `fmax` or masks in arrays instead")
}

pub(super) fn not_a_box(span: &Span) -> Diagnostic {
    Diagnostic::error("stencil::guard", "the points are not a rectangular box")
        .label(span.clone(), "not a bound of one iterator")
        .help("a guard is a conjunction of comparisons such as `i >= 1 && i < N - 1`")
}
