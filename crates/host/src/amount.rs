//! Integers of a launch as expressions over names, so that they hold at other sizes.

use std::collections::BTreeSet;
use std::rc::Rc;

use warpwright_launch::{Expr, Op};

/// A name that an amount is made of.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Root {
    /// As a parameter is called, or what is guessed.
    pub name: String,
    /// What it is at the launch, if that is known.
    pub value: Option<i64>,
}

/// An integer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Amount {
    /// A number.
    Number(i64),
    /// What a name is.
    Root(Rc<Root>),
    /// Of two others.
    Binary(Op, Box<Amount>, Box<Amount>),
}

impl Root {
    /// As an amount.
    pub fn amount(name: &str, value: Option<i64>) -> Amount {
        let name = name.to_owned();
        Amount::Root(Rc::new(Root { name, value }))
    }
}

impl Amount {
    /// Of two others.
    pub fn binary(op: Op, a: Amount, b: Amount) -> Amount {
        Amount::Binary(op, Box::new(a), Box::new(b))
    }

    /// A product, with its numbers in front.
    #[must_use]
    pub fn times(self, other: Amount) -> Amount {
        match (self, other) {
            (Amount::Number(1), other) | (other, Amount::Number(1)) => other,
            (Amount::Number(a), Amount::Number(b)) => Amount::Number(a.saturating_mul(b)),
            (own, Amount::Number(number)) => Amount::binary(Op::Mul, Amount::Number(number), own),
            (own, other) => Amount::binary(Op::Mul, own, other),
        }
    }

    /// A quotient.
    #[must_use]
    pub fn over(self, other: Amount) -> Amount {
        Amount::binary(Op::Div, self, other)
    }

    /// The number that it is at the launch, if that is known.
    pub fn number(&self) -> Option<i64> {
        self.at(&|root| root.value)
    }

    /// The number where the names are these.
    pub fn at(&self, value: &dyn Fn(&Root) -> Option<i64>) -> Option<i64> {
        match self {
            Amount::Number(number) => Some(*number),
            Amount::Root(root) => value(root),
            Amount::Binary(op, a, b) => op.of(a.at(value)?, b.at(value)?),
        }
    }

    /// Adds all names in it.
    pub fn roots(&self, all: &mut BTreeSet<Rc<Root>>) {
        match self {
            Amount::Number(_) => {}
            Amount::Root(root) => {
                all.insert(root.clone());
            }
            Amount::Binary(_, a, b) => {
                a.roots(all);
                b.roots(all);
            }
        }
    }

    /// As an expression of a launch description; `name` names the roots.
    pub fn expr(&self, name: &dyn Fn(&Root) -> String) -> Expr {
        match self {
            Amount::Number(number) => Expr::int((*number).into()),
            Amount::Root(root) => Expr::name(name(root)),
            Amount::Binary(op, a, b) => Expr::of(*op, a.expr(name), b.expr(name)),
        }
    }
}

/// The names of all of them.
pub fn roots_of<'a>(all: impl IntoIterator<Item = &'a Amount>) -> BTreeSet<Rc<Root>> {
    let mut found = BTreeSet::new();
    all.into_iter().for_each(|amount| amount.roots(&mut found));
    found
}
