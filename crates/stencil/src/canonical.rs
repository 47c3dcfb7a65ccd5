//! One numbering of expressions for one text: in the order of the statements, operands first,
//! and nothing that no statement uses.

use cranelift_entity::SecondaryMap;
use cranelift_entity::packed_option::PackedOption;

use super::ir::{Expr, ExprId, Stencil};

/// Renumbers all expressions.
pub(super) fn renumber(stencil: &mut Stencil) {
    let old = std::mem::take(&mut stencil.exprs);
    let mut new = SecondaryMap::<ExprId, PackedOption<ExprId>>::new();
    for statement in &mut stencil.statements {
        // Depth first without recursion: a node is seen once before its operands, once after.
        let mut stack = vec![(statement.value, false)];
        while let Some((id, operands_done)) = stack.pop() {
            if new[id].is_some() {
                continue;
            }
            if !operands_done {
                stack.push((id, true));
                let operands = old[id].operands();
                stack.extend(operands.into_iter().rev().map(|o| (o, false)));
                continue;
            }
            let at = |o: &mut ExprId| {
                if let Some(moved) = new[*o].expand() {
                    *o = moved;
                }
            };
            let mut expr = old[id].clone();
            expr.operands_mut().into_iter().for_each(at);
            new[id] = stencil.exprs.push(expr).into();
        }
        if let Some(moved) = new[statement.value].expand() {
            statement.value = moved;
        }
    }
}

impl Expr {
    /// The expressions that it computes from, in order.
    pub fn operands(&self) -> Vec<ExprId> {
        match self {
            Expr::Constant(..) | Expr::Scalar(_) | Expr::Temp(_) | Expr::Load(_) => Vec::new(),
            Expr::Neg(a) => vec![*a],
            Expr::Binary(_, a, b) => vec![*a, *b],
            Expr::Call(_, arguments) => arguments.clone(),
            Expr::Choice(_, a, b) => vec![*a, *b],
        }
    }

    /// The same, to change them.
    pub fn operands_mut(&mut self) -> Vec<&mut ExprId> {
        match self {
            Expr::Constant(..) | Expr::Scalar(_) | Expr::Temp(_) | Expr::Load(_) => Vec::new(),
            Expr::Neg(a) => vec![a],
            Expr::Binary(_, a, b) => vec![a, b],
            Expr::Call(_, arguments) => arguments.iter_mut().collect(),
            Expr::Choice(_, a, b) => vec![a, b],
        }
    }
}
