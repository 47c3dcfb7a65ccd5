//! Distributing products over sums, to expose fused multiply-adds.
//!
//! Paper: section 5, 'Loop Unrolling': the coefficient's product with a sum of contributions
//! becomes one multiply-add per contribution, all of them accumulated by the statement's own sum.
//! The number of instructions does not grow: a sum of n terms and its multiplication are n
//! instructions, and so are n fused multiply-adds. What is gained is freedom of order: each
//! contribution can be added when its operand is at hand.
//!
//! Departure: only a single factor that takes no register (a literal or a scalar argument) is
//! distributed, and only over terms that have no such factor yet; anything else would repeat
//! multiplications or keep a register alive.
//!
//! Requires permission to reassociate. Preserves the value up to rounding.

use super::expression::{Expression, Form, Term};
use super::labels::Label;

/// Distributes wherever it pays. `free` tells which labels take no register.
pub fn distribute(expression: Expression, free: &dyn Fn(Label) -> bool) -> Expression {
    let element = expression.element;
    if element.is_integer() && !matches!(expression.form, Form::Operator(..)) {
        return expression;
    }
    let form = match expression.form {
        Form::Sum(terms) => {
            let terms = terms.into_iter().flat_map(|term| {
                let value = distribute(term.value, free);
                value.into_terms(term.negative, element)
            });
            Form::Sum(terms.collect())
        }
        Form::Product(factors) => {
            let factors = factors.into_iter().map(|f| distribute(f, free));
            return over_sum(factors.collect(), element, free);
        }
        Form::Operator(operator, operands) => {
            let operands = operands.into_iter().map(|o| distribute(o, free));
            Form::Operator(operator, operands.collect())
        }
        form => form,
    };
    Expression { form, element }
}

fn is_free(expression: &Expression, free: &dyn Fn(Label) -> bool) -> bool {
    match expression.form {
        Form::Literal(_) => true,
        Form::Leaf(label) => free(label),
        _ => false,
    }
}

fn has_free_factor(expression: &Expression, free: &dyn Fn(Label) -> bool) -> bool {
    match &expression.form {
        Form::Product(factors) => factors.iter().any(|f| is_free(f, free)),
        _ => is_free(expression, free),
    }
}

fn over_sum(
    mut factors: Vec<Expression>,
    element: crate::ir::Element,
    free: &dyn Fn(Label) -> bool,
) -> Expression {
    let fits = matches!(&factors[..], [a, b] if is_free(a, free) != is_free(b, free));
    let sum = factors.iter().position(|f| match &f.form {
        Form::Sum(terms) if f.element == element => {
            terms.iter().all(|t| !has_free_factor(&t.value, free))
        }
        _ => false,
    });
    let (true, Some(at)) = (fits, sum) else {
        let form = Form::Product(factors);
        return Expression { form, element };
    };
    let sum = factors.remove(at);
    let multiply = |term: Term| {
        let value = Expression::times(factors[0].clone(), term.value, super::dag::Order::Any);
        Term { value, ..term }
    };
    let terms = sum.into_terms(false, element);
    let form = Form::Sum(terms.into_iter().map(multiply).collect());
    Expression { form, element }
}
