//! Conditions on the place of a point: which points the kernel computes.

use std::collections::BTreeMap;

use super::execute::Machine;
use super::poly::{Poly, Symbol};
use super::value::Val;
use warpwright_cudac::ast::{Expr, ExprKind};
use warpwright_cudac::diag::{Diagnostic, Span};

/// The values of one point symbol.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Bounds {
    /// The first one.
    pub(super) low: i64,
    /// Each is one past the last one; the smallest counts.
    pub(super) ends: Vec<(Poly, Span)>,
}

/// All bounds that hold where the statements stand.
pub(super) type Domain = BTreeMap<Symbol, Bounds>;

/// What a condition says.
pub(super) enum Condition {
    /// It is always true, or never.
    Known(bool),
    /// It holds where all of these are at least zero.
    All(Vec<(Poly, Span)>),
}

impl Machine<'_> {
    /// A condition, or its opposite.
    pub(super) fn condition(
        &mut self,
        cond: &Expr,
        opposite: bool,
    ) -> Result<Condition, Diagnostic> {
        crate::with_stack(|| self.condition_of(cond, opposite))
    }

    fn condition_of(&mut self, cond: &Expr, opposite: bool) -> Result<Condition, Diagnostic> {
        let cond = self.expanded(cond)?;
        let cond = cond.bare();
        match &cond.kind {
            ExprKind::Bool(value) => Ok(Condition::Known(*value != opposite)),
            ExprKind::Unary(op, inner) if op == "!" => self.condition(inner, !opposite),
            ExprKind::Binary(op, a, b) if matches!(&**op, "&&" | "&" | "||" | "|") => {
                let a = self.condition(a, opposite)?;
                let b = self.condition(b, opposite)?;
                // `!(a || b)` is `!a && !b`.
                let both = op.starts_with('&') != opposite;
                join(a, b, both, &cond.span)
            }
            ExprKind::Binary(op, a, b) => match comparison(op, opposite) {
                Some(op) => self.compare(op, a, b, &cond.span),
                None => Err(divergent(&cond.span)),
            },
            _ => match self.value(cond)? {
                Val::Int(value) => match value.as_constant() {
                    Some(value) => Ok(Condition::Known((value != 0) != opposite)),
                    None => Err(divergent(&cond.span)),
                },
                _ => Err(divergent(&cond.span)),
            },
        }
    }

    fn compare(
        &mut self,
        op: &str,
        a: &Expr,
        b: &Expr,
        span: &Span,
    ) -> Result<Condition, Diagnostic> {
        let (Val::Int(a), Val::Int(b)) = (self.value(a)?, self.value(b)?) else {
            return Err(divergent(span));
        };
        let too_large = || divergent(span);
        let difference = a.plus(&b, -1).ok_or_else(too_large)?;
        let below = b.plus(&a, -1).ok_or_else(too_large)?;
        let one = Poly::constant(1);
        let positive = match op {
            "<" => below.plus(&one, -1),
            "<=" => Some(below),
            ">" => difference.plus(&one, -1),
            ">=" => Some(difference),
            _ => {
                return match difference.as_constant() {
                    Some(value) => Ok(Condition::Known((value == 0) == (op == "=="))),
                    None => Err(divergent(span)),
                };
            }
        };
        let positive = positive.ok_or_else(too_large)?;
        Ok(match positive.as_constant() {
            Some(value) => Condition::Known(value >= 0),
            None => Condition::All(vec![(positive, span.clone())]),
        })
    }

    /// Takes bounds into the domain.
    pub(super) fn restrict(&mut self, bounds: Vec<(Poly, Span)>) -> Result<(), Diagnostic> {
        for (bound, span) in bounds {
            self.bound(&bound, &span)?;
        }
        Ok(())
    }

    /// `bound >= 0`
    fn bound(&mut self, bound: &Poly, span: &Span) -> Result<(), Diagnostic> {
        let bound = bound.clone().with_places();
        if bound.is_raw() {
            let what = "the condition is not on the place of the point";
            return Err(Diagnostic::error("stencil::guard", what)
                .label(
                    span.clone(),
                    "depends on the place of the thread in its block",
                )
                .help("compare `blockIdx.x * blockDim.x + threadIdx.x` and so on with the sizes"));
        }
        let points = bound.points();
        let &[point] = points.as_slice() else {
            return Err(if points.is_empty() {
                divergent(span)
            } else {
                not_a_box(span)
            });
        };
        let sign = bound.coefficient(point).and_then(|c| c.as_constant());
        let symbol = Poly::symbol(point);
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

/// An operator that compares, or its opposite.
fn comparison(op: &str, opposite: bool) -> Option<&'static str> {
    let pairs = [
        ("<", ">="),
        ("<=", ">"),
        (">", "<="),
        (">=", "<"),
        ("==", "!="),
        ("!=", "=="),
    ];
    let (same, other) = pairs.into_iter().find(|(same, _)| *same == op)?;
    Some(if opposite { other } else { same })
}

fn join(a: Condition, b: Condition, both: bool, span: &Span) -> Result<Condition, Diagnostic> {
    Ok(match (a, b) {
        // `true && x` is `x`, `true || x` is true.
        (Condition::Known(value), other) | (other, Condition::Known(value)) => {
            if value == both {
                other
            } else {
                Condition::Known(value)
            }
        }
        (Condition::All(mut a), Condition::All(b)) if both => {
            a.extend(b);
            Condition::All(a)
        }
        _ => return Err(not_a_box(span)),
    })
}

fn divergent(span: &Span) -> Diagnostic {
    Diagnostic::error(
        "stencil::divergent",
        "the condition is not a bounds test, so points compute different things",
    )
    .label(span.clone(), "only places and sizes may be compared")
    .help("compute with `fmin`, `fmax` or masks in arrays instead")
}

fn not_a_box(span: &Span) -> Diagnostic {
    Diagnostic::error("stencil::guard", "the points are not a rectangular box")
        .label(span.clone(), "not a bound of one iterator")
        .help("a guard is a conjunction of comparisons such as `i >= 1 && i < N - 1`")
}
