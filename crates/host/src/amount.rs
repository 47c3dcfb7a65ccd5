//! Integers of host code as expressions over the names that the code begins with, so that they hold at other sizes.

use std::collections::BTreeSet;
use std::rc::Rc;

use warpwright_launch::{Expr, Op};

/// A name that an amount is made of.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Root {
    /// The code's name; empty for a number that only may be right.
    pub name: String,
    /// What tells it from others of that name: the token that declares it.
    pub(super) at: usize,
    /// What it is in the code, if that is known.
    pub value: Option<i64>,
    /// It is that whatever the program is given.
    pub is_sure: bool,
    /// It becomes something else from one launch to the next.
    pub varies: bool,
    /// It is a macro or stands outside of functions, so that device code may use it as well.
    pub is_shared: bool,
    /// The runtime says it: the multiprocessors of the device.
    pub is_processors: bool,
}

/// An integer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Amount {
    /// A number.
    Number(i64),
    /// What a name is.
    Root(Rc<Root>),
    /// The size of an element in bytes, which host code alone does not say.
    Element,
    /// This, as far as these others are what they are.
    Given(Box<Amount>, Vec<Amount>),
    /// Of two others.
    Binary(Op, Box<Amount>, Box<Amount>),
}

/// What rows of `cudaMallocPitch` are a multiple of, in bytes.
pub(super) const PITCH: i64 = 512;

impl Root {
    /// A name that nobody has used, for what is guessed.
    pub fn guess(name: &str, value: Option<i64>) -> Amount {
        Self::named(name, value, false)
    }

    /// The same for a number of the code.
    pub fn literal(name: &str, value: i64) -> Amount {
        Self::named(name, Some(value), true)
    }

    fn named(name: &str, value: Option<i64>, is_sure: bool) -> Amount {
        Amount::Root(Rc::new(Root {
            name: name.to_owned(),
            at: usize::MAX,
            value,
            is_sure,
            varies: false,
            is_shared: false,
            is_processors: false,
        }))
    }
}

impl Amount {
    /// Of two others.
    pub fn binary(op: Op, a: Amount, b: Amount) -> Amount {
        Amount::Binary(op, Box::new(a), Box::new(b))
    }

    /// A product.
    #[must_use]
    pub fn times(self, other: Amount) -> Amount {
        Amount::binary(Op::Mul, self, other)
    }

    /// Does it go by the pitch of `cudaMallocPitch`, which is the device's? A multiple of 512 bytes on most.
    pub fn has_pitch(&self) -> bool {
        match self {
            Amount::Number(_) | Amount::Root(_) | Amount::Element => false,
            Amount::Given(of, _) => of.has_pitch(),
            Amount::Binary(op, a, b) => {
                (*op == Op::RoundUp && **b == Amount::Number(PITCH))
                    || a.has_pitch()
                    || b.has_pitch()
            }
        }
    }

    /// A quotient.
    #[must_use]
    pub fn over(self, other: Amount) -> Amount {
        Amount::binary(Op::Div, self, other)
    }

    /// The code's own number, if it is known.
    pub fn number(&self) -> Option<i64> {
        self.at(&|root| root.value)
    }

    /// The number where the names are these.
    pub fn at(&self, value: &dyn Fn(&Root) -> Option<i64>) -> Option<i64> {
        match self {
            Amount::Number(number) => Some(*number),
            Amount::Root(root) => value(root),
            Amount::Element => None,
            Amount::Given(own, _) => own.at(value),
            Amount::Binary(op, a, b) => op.of(a.at(value)?, b.at(value)?),
        }
    }

    /// All names in it; those that must stay what they are in the second set as well.
    pub fn roots(&self, all: &mut BTreeSet<Rc<Root>>, fixed: &mut BTreeSet<Rc<Root>>) {
        match self {
            Amount::Number(_) | Amount::Element => {}
            Amount::Root(root) => {
                all.insert(root.clone());
                if root.varies || root.name.is_empty() {
                    fixed.insert(root.clone());
                }
            }
            Amount::Given(own, others) => {
                own.roots(all, fixed);
                for other in others {
                    let mut inner = BTreeSet::new();
                    other.roots(&mut inner, fixed);
                    all.extend(inner.iter().cloned());
                    fixed.extend(inner);
                }
            }
            Amount::Binary(_, a, b) => {
                a.roots(all, fixed);
                b.roots(all, fixed);
            }
        }
    }

    /// Is it the code's own whatever the program is given?
    pub fn is_sure(&self) -> bool {
        match self {
            Amount::Number(_) => true,
            Amount::Element => false,
            Amount::Root(root) => root.is_sure && root.value.is_some(),
            Amount::Given(own, others) => own.is_sure() && others.iter().all(Amount::is_sure),
            Amount::Binary(_, a, b) => a.is_sure() && b.is_sure(),
        }
    }

    /// Is the size of an element in it, which is not known?
    pub fn has_element(&self) -> bool {
        match self {
            Amount::Number(_) | Amount::Root(_) => false,
            Amount::Element => true,
            Amount::Given(own, _) => own.has_element(),
            Amount::Binary(_, a, b) => a.has_element() || b.has_element(),
        }
    }

    /// The same in as few words as it takes, with amounts in place of some names and a size for the element.
    #[must_use]
    pub fn with(&self, root: &dyn Fn(&Rc<Root>) -> Option<Amount>, element: i64) -> Amount {
        match self {
            Amount::Number(_) => self.clone(),
            Amount::Root(own) => root(own).unwrap_or_else(|| self.clone()),
            Amount::Element => Amount::Number(element),
            Amount::Given(own, _) => own.with(root, element),
            Amount::Binary(op, a, b) => simple(*op, a.with(root, element), b.with(root, element)),
        }
    }

    /// As an expression of a launch description; `name` names the roots.
    pub fn expr(&self, name: &dyn Fn(&Root) -> String) -> Expr {
        match self {
            Amount::Number(number) => Expr::int((*number).into()),
            Amount::Root(root) => Expr::name(name(root)),
            Amount::Element => Expr::int(1),
            Amount::Given(own, _) => own.expr(name),
            Amount::Binary(op, a, b) => Expr::of(*op, a.expr(name), b.expr(name)),
        }
    }
}

/// Of two amounts that are simple.
fn simple(op: Op, a: Amount, b: Amount) -> Amount {
    use Amount::Number;
    if let (Number(a), Number(b)) = (&a, &b)
        && let Some(number) = op.of(*a, *b)
    {
        return Number(number);
    }
    match (op, a, b) {
        // `n + 256 - 1`
        (Op::Add | Op::Sub, Amount::Binary(inner @ (Op::Add | Op::Sub), a, c), Number(b))
            if matches!(*c, Number(_)) =>
        {
            let Number(c) = *c else { return Number(b) };
            let sign = |op, n: i64| {
                if op == Op::Add {
                    Some(n)
                } else {
                    n.checked_neg()
                }
            };
            let sum = sign(inner, c).and_then(|c| c.checked_add(sign(op, b)?));
            match sum {
                Some(0) => *a,
                Some(sum) if sum < 0 && sum > i64::MIN => {
                    Amount::Binary(Op::Sub, a, Box::new(Number(-sum)))
                }
                Some(sum) => Amount::Binary(Op::Add, a, Box::new(Number(sum))),
                None => {
                    let inner = Amount::Binary(inner, a, Box::new(Number(c)));
                    Amount::binary(op, inner, Number(b))
                }
            }
        }
        // `255 + n`
        (Op::Add, Number(a), b) => simple(Op::Add, b, Number(a)),
        (Op::Add | Op::Sub, a, Number(0)) => a,
        (Op::Mul, a, Number(1)) | (Op::Div, a, Number(1)) | (Op::Mul, Number(1), a) => a,
        (Op::Mul, a, Number(0)) | (Op::Mul, Number(0), a) if !matches!(a, Amount::Element) => {
            Number(0)
        }
        // Numbers of a product in front of it.
        (Op::Mul, Amount::Binary(Op::Mul, c, a), Number(b)) if matches!(*c, Number(_)) => {
            let Number(c) = *c else { return *a };
            match c.checked_mul(b) {
                Some(product) => simple(Op::Mul, Number(product), *a),
                None => {
                    let inner = Amount::Binary(Op::Mul, Box::new(Number(c)), a);
                    Amount::binary(Op::Mul, inner, Number(b))
                }
            }
        }
        (Op::Mul, Amount::Binary(Op::Mul, c, a), b) if matches!(*c, Number(_)) => {
            Amount::Binary(Op::Mul, c, Box::new(simple(Op::Mul, *a, b)))
        }
        (Op::Mul, a @ (Amount::Root(_) | Amount::Binary(..)), Number(b)) => {
            Amount::binary(Op::Mul, Number(b), a)
        }
        (Op::Mul, a, Amount::Binary(Op::Mul, c, b)) if matches!(*c, Number(_)) => {
            let Number(c) = *c else { return a };
            simple(Op::Mul, simple(Op::Mul, a, *b), Number(c))
        }
        // `n * 4 / 4`
        (Op::Div, a, Number(b)) if b > 1 => match without_factor(&a, b) {
            Some(a) => a,
            None => match a {
                // `(n + 255) / 256`
                Amount::Binary(Op::Add, a, c) if *c == Number(b - 1) => {
                    Amount::binary(Op::CeilDiv, *a, Number(b))
                }
                // `(n - 1) / 256 + 1` is what is left to others.
                a => Amount::binary(Op::Div, a, Number(b)),
            },
        },
        (op, a, b) => Amount::binary(op, a, b),
    }
}

/// A product without a factor, if that divides one of its numbers.
fn without_factor(amount: &Amount, factor: i64) -> Option<Amount> {
    match amount {
        Amount::Number(number) => (number % factor == 0).then_some(Amount::Number(number / factor)),
        Amount::Binary(Op::Mul, a, b) => {
            let left = without_factor(a, factor).map(|a| simple(Op::Mul, a, (**b).clone()));
            left.or_else(|| without_factor(b, factor).map(|b| simple(Op::Mul, (**a).clone(), b)))
        }
        Amount::Binary(op @ (Op::Add | Op::Sub), a, b) => {
            let (a, b) = (without_factor(a, factor)?, without_factor(b, factor)?);
            Some(simple(*op, a, b))
        }
        _ => None,
    }
}
