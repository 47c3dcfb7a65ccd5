//! Choices and roundings that are computed of host code's integers.

use super::HostCode;
use super::amount::Amount;
use super::number::{Number, binary, combined};
use super::values::{Known, Value};
use warpwright_cudac::Literal;
use warpwright_cudac::ast::{Expr, ExprKind, Type};
use warpwright_launch::Op;

impl HostCode<'_> {
    /// `c ? a : b`
    pub(super) fn chosen(
        &self,
        condition: &Expr,
        (a, b): (&Expr, &Expr),
        at: usize,
        known: &Known,
    ) -> Option<Value> {
        let value = |expr: &Expr| self.evaluated(expr, at, known);
        let number = |expr: &Expr| value(expr).and_then(Value::number);
        let both = (number(a), number(b));
        if let (Some(a), Some(b)) = &both
            && let Some(found) = self.idiom(condition, a, b, &number)
        {
            return Some(Value::Number(found));
        }
        let known = number(condition).filter(|c| c.number().is_some());
        let Some(condition) = known else {
            // One of them is what nobody has to give.
            let ((Some(one), None) | (None, Some(one))) = both else {
                return None;
            };
            return Some(Value::Number(self.rooted_unsure(one)));
        };
        let is_so = condition.number()? != 0;
        let chosen = value(if is_so { a } else { b })?;
        Some(match chosen {
            Value::Number(n) => Value::Number(Number {
                amount: Amount::Given(Box::new(n.amount), vec![condition.amount]),
                ty: n.ty,
            }),
            extents => extents,
        })
    }

    /// A choice that is a smaller or a larger one, or a quotient that is rounded up.
    fn idiom(
        &self,
        condition: &Expr,
        a: &Number,
        b: &Number,
        number: &dyn Fn(&Expr) -> Option<Number>,
    ) -> Option<Number> {
        let ExprKind::Binary(sign, left, right) = &condition.bare().kind else {
            return self.rounding(number(condition)?, a, b);
        };
        let (left, right) = (number(left)?, number(right)?);
        let is_same = |x: &Number, y: &Number| x.amount == y.amount;
        let op = match &**sign {
            "<" | "<=" => Op::Min,
            ">" | ">=" => Op::Max,
            _ => Op::Add,
        };
        if op != Op::Add {
            let other = if op == Op::Min { Op::Max } else { Op::Min };
            if is_same(&left, a) && is_same(&right, b) {
                return combined(op, left, right);
            }
            if is_same(&left, b) && is_same(&right, a) {
                return combined(other, left, right);
            }
        }
        match &**sign {
            "!=" | ">" if right.amount == Amount::Number(0) => self.rounding(left, a, b),
            "==" if right.amount == Amount::Number(0) => self.rounding(left, b, a),
            "%" => self.rounding(binary("%", left, right)?, a, b),
            _ => None,
        }
    }

    /// `x / y + (x % y > 0)`
    pub(super) fn rest_added(
        &self,
        whole: &Number,
        rest: &Expr,
        number: &dyn Fn(&Expr) -> Option<Number>,
    ) -> Option<Number> {
        let mut rest = rest.bare();
        while let ExprKind::Cast(_, _, inner) = &rest.kind {
            rest = inner.bare();
        }
        let rest = match &rest.kind {
            ExprKind::Binary(sign, rest, zero) if matches!(&**sign, "!=" | ">") => {
                number(rest).filter(|_| number(zero).is_some_and(|n| n.number() == Some(0)))?
            }
            ExprKind::Conditional(rest, one, zero) => {
                let is = |expr, what| number(expr).is_some_and(|n| n.number() == Some(what));
                number(rest).filter(|_| is(one, 1) && is(zero, 0))?
            }
            _ => return None,
        };
        let one = Amount::binary(Op::Add, whole.amount.clone(), Amount::Number(1));
        self.rounding(rest, &whole.clone().with(one), whole)
    }

    /// `x % y ? x / y + 1 : x / y`
    fn rounding(&self, rest: Number, more: &Number, less: &Number) -> Option<Number> {
        let Amount::Binary(Op::Rem, x, y) = rest.amount else {
            return None;
        };
        let quotient = Amount::Binary(Op::Div, x.clone(), y.clone());
        let next = Amount::binary(Op::Add, quotient.clone(), Amount::Number(1));
        let is_it = less.amount == quotient && more.amount == next;
        is_it.then(|| Number::new(Amount::Binary(Op::CeilDiv, x, y), rest.ty))?
    }

    /// `ceil((float)a / b)`
    pub(super) fn rounded_up(&self, argument: &Expr, at: usize, known: &Known) -> Option<Number> {
        let number = |expr: &Expr| self.evaluated(expr, at, known)?.number();
        // What is a floating-point number, and which integer it is.
        let float = |expr: &Expr| -> Option<Number> {
            match &expr.bare().kind {
                ExprKind::Cast(_, ty, inner) => match ty.bare() {
                    Type::Named(name) if ["float", "double"].contains(&&**name) => number(inner),
                    _ => None,
                },
                ExprKind::Call(name, arguments) if ["float", "double"].contains(&&*name.text) => {
                    number(arguments.first()?)
                }
                ExprKind::Number(digits) => match Literal::parse(digits)? {
                    Literal::Float(n) if n.fract() == 0.0 && n.abs() < 1e6 => {
                        Some(Number::constant(n as i64))
                    }
                    Literal::Double(n) if n.fract() == 0.0 && n.abs() < 1e15 => {
                        Some(Number::constant(n as i64))
                    }
                    _ => None,
                },
                _ => None,
            }
        };
        let ExprKind::Binary(sign, a, b) = &argument.bare().kind else {
            return number(argument);
        };
        if sign != "/" {
            return number(argument);
        }
        match (float(a), float(b)) {
            (None, None) => number(argument),
            (x, y) => {
                let x = x.or_else(|| number(a))?;
                combined(Op::CeilDiv, x, y.or_else(|| number(b))?)
            }
        }
    }
}
