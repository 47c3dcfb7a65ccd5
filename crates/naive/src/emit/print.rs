//! Values as text: the tree is printed with as many parentheses as C needs, so operators keep their operands.

use warpwright_cudac::Scalar;
use warpwright_cudac::ast::{Expr, ExprKind, Ident, Type};
use warpwright_cudac::print;

use crate::ir::Value;

/// What the leaves of a value are called.
pub(crate) trait Leaves {
    fn parameter(&self, number: usize) -> String;
    fn variable(&self, number: usize) -> String;
    fn load(&self, access: usize) -> String;
    /// The text of an integer.
    fn int(&self, poly: &warpwright_cudac::affine::Poly) -> String;
}

/// A value as C.
pub(crate) fn text(value: &Value, leaves: &impl Leaves) -> String {
    print::expr(&expr(value, leaves))
}

fn node(kind: ExprKind) -> Expr {
    Expr { kind, span: 0..0 }
}

fn name(text: String) -> Expr {
    node(ExprKind::Name(text))
}

fn expr(value: &Value, leaves: &impl Leaves) -> Expr {
    warpwright_cudac::with_stack(|| {
        let boxed = |v: &Value| Box::new(expr(v, leaves));
        match value {
            Value::Text(text) => name(text.clone()),
            Value::Parameter(number) => name(leaves.parameter(*number)),
            Value::Variable(number) => name(leaves.variable(*number)),
            Value::Load(access) => name(leaves.load(*access)),
            Value::Int(poly, scalar) => {
                let text = leaves.int(poly);
                let simple = text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
                let text = if simple { text } else { format!("({text})") };
                let cast = match scalar {
                    Scalar::Integer(32, true) => return name(text),
                    Scalar::Integer(64, true) => "long long",
                    Scalar::Integer(64, false) => "unsigned long long",
                    _ => "unsigned",
                };
                let ty = Box::new(Type::Named(cast.to_owned()));
                node(ExprKind::Cast(None, ty, Box::new(name(text))))
            }
            Value::Unary(op, a) => node(ExprKind::Unary(op.clone(), boxed(a))),
            Value::Binary(op, a, b) => node(ExprKind::Binary(op.clone(), boxed(a), boxed(b))),
            Value::Call(function, arguments) => {
                let ident = Ident {
                    text: function.clone(),
                    span: 0..0,
                };
                let arguments = arguments.iter().map(|a| expr(a, leaves)).collect();
                node(ExprKind::Call(ident, arguments))
            }
            Value::Cast(ty, a) => {
                let ty = Box::new(Type::Named(ty.clone()));
                node(ExprKind::Cast(None, ty, boxed(a)))
            }
            Value::Select(a, b, c) => node(ExprKind::Conditional(boxed(a), boxed(b), boxed(c))),
            Value::Member(a, field) => node(ExprKind::Member(boxed(a), field.clone())),
        }
    })
}
