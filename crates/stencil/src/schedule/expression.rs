//! Expressions while trees are built: chains of associative operators become accumulations.
//!
//! The k-ary nodes of the paper (section 3, Figure 2c) arise here, as operators are applied. With
//! permission to reassociate, nested sums and products of one type merge whatever their
//! parentheses, signs move into the sums, and literal factors are multiplied out. Without it only
//! the left-deep chain that the operators form as written becomes an accumulation in written
//! order: `((a + b) - c) + d` is evaluated exactly so, and `a + (b + c)` keeps its inner sum.

use super::dag::{Operator, Order};
use super::labels::Label;
use crate::ir::Element;

/// An expression with its type.
#[derive(Clone, Debug, PartialEq)]
pub struct Expression {
    /// What it is.
    pub form: Form,
    /// The type of its value.
    pub element: Element,
}

/// The forms of an expression.
#[derive(Clone, Debug, PartialEq)]
pub enum Form {
    /// A read of a label.
    Leaf(Label),
    /// A constant.
    Literal(f64),
    /// Terms that are added up.
    Sum(Vec<Term>),
    /// Factors.
    Product(Vec<Expression>),
    /// Another operator.
    Operator(Operator, Vec<Expression>),
}

/// A term of a sum.
#[derive(Clone, Debug, PartialEq)]
pub struct Term {
    /// Subtracted.
    pub negative: bool,
    /// What is added or subtracted.
    pub value: Expression,
}

/// Whole numbers are computed as written: permission to reassociate is for what is rounded.
pub(super) fn as_written(element: Element, order: Order) -> Order {
    match element.is_integer() {
        true => Order::Written,
        false => order,
    }
}

impl Expression {
    /// A read of a label.
    pub fn leaf(label: Label, element: Element) -> Expression {
        let form = Form::Leaf(label);
        Expression { form, element }
    }

    /// A constant.
    pub fn literal(value: f64, element: Element) -> Expression {
        let form = Form::Literal(value);
        Expression { form, element }
    }

    /// `a + b`, or `a - b` if `negative`.
    pub fn plus(a: Expression, b: Expression, negative: bool, order: Order) -> Expression {
        let element = a.element.wider(b.element);
        let order = as_written(element, order);
        let mut terms = a.into_terms(false, element);
        match order {
            Order::Any => terms.extend(b.into_terms(negative, element)),
            Order::Written => terms.push(Term { negative, value: b }),
        }
        let form = Form::Sum(terms);
        Expression { form, element }
    }

    /// `a * b`
    pub fn times(a: Expression, b: Expression, order: Order) -> Expression {
        let element = a.element.wider(b.element);
        let order = as_written(element, order);
        let mut factors = a.into_factors(element);
        match order {
            Order::Any => factors.extend(b.into_factors(element)),
            Order::Written => factors.push(b),
        }
        if order == Order::Any {
            factors = multiply_literals(factors, element);
        }
        match factors.len() {
            1 => factors.remove(0).converted(element),
            _ => Expression {
                form: Form::Product(factors),
                element,
            },
        }
    }

    /// `-a`
    pub fn negated(self, order: Order) -> Expression {
        let element = self.element;
        let form = match (self.form, as_written(element, order)) {
            (Form::Literal(value), _) => Form::Literal(element.round(-value)),
            (form, Order::Any) => {
                let terms = Expression { form, element }.into_terms(true, element);
                Form::Sum(terms)
            }
            (form, Order::Written) => {
                let operand = Expression { form, element };
                Form::Operator(Operator::Negate, vec![operand])
            }
        };
        Expression { form, element }
    }

    /// Another operator; its type is the widest of its operands'.
    pub fn operator(operator: Operator, operands: Vec<Expression>) -> Expression {
        let types = operands.iter().map(|e| e.element);
        let element = match operator {
            Operator::Call(function) => function.element(types),
            Operator::Negate | Operator::Divide => types.reduce(Element::wider),
        };
        Expression {
            element: element.unwrap_or(Element::F64),
            form: Form::Operator(operator, operands),
        }
    }

    /// A literal takes on the type that the arithmetic around it has.
    fn converted(self, element: Element) -> Expression {
        match self.form {
            Form::Literal(_) => Expression { element, ..self },
            _ => self,
        }
    }

    /// Its terms, if it is a sum of this type; else itself as the only one.
    pub fn into_terms(self, negative: bool, element: Element) -> Vec<Term> {
        match self.form {
            Form::Sum(mut terms) if self.element == element => {
                for term in &mut terms {
                    term.negative ^= negative;
                }
                terms
            }
            _ => vec![Term {
                negative,
                value: self,
            }],
        }
    }

    fn into_factors(self, element: Element) -> Vec<Expression> {
        match self.form {
            Form::Product(factors) if self.element == element => factors,
            _ => vec![self],
        }
    }
}

/// All literal factors as one, at the place of the first.
fn multiply_literals(factors: Vec<Expression>, element: Element) -> Vec<Expression> {
    let mut product = None;
    let mut rest: Vec<Expression> = Vec::new();
    for factor in factors {
        match (factor.form, product) {
            (Form::Literal(value), None) => {
                product = Some((rest.len(), value));
                rest.push(Expression::literal(value, element));
            }
            (Form::Literal(value), Some((at, so_far))) => {
                let value = match element {
                    Element::F32 => f64::from(value as f32 * so_far as f32),
                    _ => value * so_far,
                };
                product = Some((at, value));
                rest[at] = Expression::literal(value, element);
            }
            (form, _) => rest.push(Expression {
                form,
                element: factor.element,
            }),
        }
    }
    rest
}
