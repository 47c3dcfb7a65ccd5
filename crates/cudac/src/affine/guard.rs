//! Conditions on integers: what a guard says about places and sizes.

use super::{Poly, Symbol};
use crate::diag::Span;

/// How a value stands to zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// `value >= 0`
    NotNegative,
    /// `value == 0`
    Zero,
    /// `value != 0`
    NotZero,
}

/// A condition; comparisons know where they stand in the source.
#[derive(Clone, Debug, PartialEq)]
pub enum Test {
    /// It is always true, or never.
    Known(bool),
    /// A comparison of a value with zero.
    Compare(Relation, Poly, Span),
    /// All of them hold; there are at least two, none of them known or itself of this kind.
    All(Vec<Test>),
    /// One of them holds; as in [`Test::All`].
    Any(Vec<Test>),
}

impl Test {
    /// A comparison, decided where the value is a number.
    pub fn compare(relation: Relation, value: Poly, span: Span) -> Test {
        match value.as_constant() {
            Some(value) => Test::Known(relation.holds(value)),
            None => Test::Compare(relation, value, span),
        }
    }

    /// `a op b` for one of C's six comparisons; none if a number grows too large.
    pub fn of(op: &str, a: &Poly, b: &Poly, span: &Span) -> Option<Test> {
        let (relation, value) = match op {
            "<" => (
                Relation::NotNegative,
                b.plus(a, -1)?.plus(&Poly::constant(1), -1)?,
            ),
            "<=" => (Relation::NotNegative, b.plus(a, -1)?),
            ">" => (
                Relation::NotNegative,
                a.plus(b, -1)?.plus(&Poly::constant(1), -1)?,
            ),
            ">=" => (Relation::NotNegative, a.plus(b, -1)?),
            "==" => (Relation::Zero, a.plus(b, -1)?),
            "!=" => (Relation::NotZero, a.plus(b, -1)?),
            _ => return None,
        };
        Some(Test::compare(relation, value, span.clone()))
    }

    /// The opposite; none if a number grows too large.
    pub fn opposite(&self) -> Option<Test> {
        let opposites =
            |parts: &[Test]| -> Option<Vec<Test>> { parts.iter().map(Test::opposite).collect() };
        Some(match self {
            Test::Known(value) => Test::Known(!value),
            // value < 0 is -value - 1 >= 0.
            Test::Compare(Relation::NotNegative, value, span) => {
                let value = Poly::constant(-1).plus(value, -1)?;
                Test::Compare(Relation::NotNegative, value, span.clone())
            }
            Test::Compare(Relation::Zero, value, span) => {
                Test::Compare(Relation::NotZero, value.clone(), span.clone())
            }
            Test::Compare(Relation::NotZero, value, span) => {
                Test::Compare(Relation::Zero, value.clone(), span.clone())
            }
            Test::All(parts) => Test::Any(opposites(parts)?),
            Test::Any(parts) => Test::All(opposites(parts)?),
        })
    }

    /// Both, or one of both.
    #[must_use]
    pub fn join(self, other: Test, both: bool) -> Test {
        match (self, other) {
            // `true && x` is `x`, `true || x` is true.
            (Test::Known(value), x) | (x, Test::Known(value)) => {
                if value == both {
                    x
                } else {
                    Test::Known(value)
                }
            }
            (a, b) => {
                let mut parts = Vec::new();
                for part in [a, b] {
                    match part {
                        Test::All(more) if both => parts.extend(more),
                        Test::Any(more) if !both => parts.extend(more),
                        part => parts.push(part),
                    }
                }
                if both {
                    Test::All(parts)
                } else {
                    Test::Any(parts)
                }
            }
        }
    }

    /// The comparisons whose conjunction it is, if it is one.
    pub fn conjuncts(&self) -> Option<Vec<(Relation, &Poly, &Span)>> {
        match self {
            Test::Known(true) => Some(Vec::new()),
            Test::Compare(relation, value, span) => Some(vec![(*relation, value, span)]),
            Test::All(parts) => {
                let parts = parts.iter().map(|part| match part {
                    Test::Compare(relation, value, span) => Some((*relation, value, span)),
                    _ => None,
                });
                parts.collect()
            }
            Test::Known(false) | Test::Any(_) => None,
        }
    }

    /// Is it true where the symbols have values? None if one has not.
    pub fn holds(&self, value_of: &impl Fn(Symbol) -> Option<i64>) -> Option<bool> {
        match self {
            Test::Known(value) => Some(*value),
            Test::Compare(relation, value, _) => Some(relation.holds(value.evaluate(value_of)?)),
            Test::All(parts) => {
                for part in parts {
                    if !part.holds(value_of)? {
                        return Some(false);
                    }
                }
                Some(true)
            }
            Test::Any(parts) => {
                for part in parts {
                    if part.holds(value_of)? {
                        return Some(true);
                    }
                }
                Some(false)
            }
        }
    }
}

impl Relation {
    /// Does a value stand so to zero?
    pub fn holds(self, value: i64) -> bool {
        match self {
            Relation::NotNegative => value >= 0,
            Relation::Zero => value == 0,
            Relation::NotZero => value != 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compare(op: &str, a: Poly, b: i64) -> Test {
        Test::of(op, &a, &Poly::constant(b), &(0..0)).unwrap()
    }

    #[test]
    fn opposites_hold_where_the_test_does_not() {
        let (i, n) = (
            Poly::symbol(Symbol::Global(0)),
            Poly::symbol(Symbol::Size(0)),
        );
        let last = Test::of("==", &i, &n.plus(&Poly::constant(1), -1).unwrap(), &(0..0));
        let edge = compare("==", i.clone(), 0).join(last.unwrap(), false);
        let test = edge.join(compare("<", i.clone(), 7), true);
        let opposite = test.opposite().unwrap();
        for place in 0..12 {
            let value = |s| Some(if s == Symbol::Global(0) { place } else { 10 });
            let expected = place == 0;
            assert_eq!(test.holds(&value), Some(expected), "{place}");
            assert_eq!(opposite.holds(&value), Some(!expected), "{place}");
        }
        assert_eq!(test.holds(&|_| None), None);
    }

    #[test]
    fn what_is_known_disappears() {
        let i = Poly::symbol(Symbol::Global(0));
        let test = compare("<", i.clone(), 5);
        let known = compare("<", Poly::constant(3), 5);
        assert_eq!(known, Test::Known(true));
        assert_eq!(known.clone().join(test.clone(), true), test);
        assert_eq!(known.join(test.clone(), false), Test::Known(true));
        assert_eq!(test.conjuncts().map(|c| c.len()), Some(1));
        let either = test.clone().join(compare(">", i, 9), false);
        assert_eq!(either.conjuncts(), None);
    }
}
