//! Where unresolved indices lie: a byte is below 256, and what a condition around it says counts.

use warpwright_cudac::Scalar;
use warpwright_cudac::affine::{Poly, Symbol};
use warpwright_cudac::with_stack;

use crate::ir::{Index, Kernel, Statement, Value};

/// A number above a value, and whether the value is never negative.
type Below = (Poly, bool);

/// Notes it for every access at an unresolved index.
pub(super) fn note(kernel: &mut Kernel) {
    let mut found: Vec<Option<Option<Below>>> = vec![None; kernel.accesses.len()];
    let seen = Seen::of(kernel);
    seen.statements(&kernel.body, &mut Vec::new(), &mut found);
    for (access, below) in kernel.accesses.iter_mut().zip(found) {
        access.below = below.flatten();
    }
}

struct Seen<'k> {
    kernel: &'k Kernel,
    /// By variable: its only value, where it has but one.
    values: Vec<Option<&'k Value>>,
    /// By variable: it is set once.
    fixed: Vec<bool>,
}

/// A condition, and whether it holds.
type Fact<'k> = (&'k Value, bool);

impl<'k> Seen<'k> {
    fn of(kernel: &'k Kernel) -> Self {
        let mut values = vec![None; kernel.variables.len()];
        let mut fixed = vec![true; kernel.variables.len()];
        for statement in &kernel.body {
            statement.walk(&mut |s| match s {
                Statement::Declare(variable, value) => values[*variable] = value.as_ref(),
                Statement::Assign { variable, .. } => fixed[*variable] = false,
                _ => {}
            });
        }
        for (value, fixed) in values.iter_mut().zip(&fixed) {
            *value = value.filter(|_| *fixed);
        }
        Seen {
            kernel,
            values,
            fixed,
        }
    }

    fn statements(
        &self,
        all: &'k [Statement],
        facts: &mut Vec<Fact<'k>>,
        found: &mut [Option<Option<Below>>],
    ) {
        for statement in all {
            with_stack(|| match statement {
                Statement::Loop(_, body) => self.statements(body, facts, found),
                Statement::While(cond, body) => {
                    self.uses(cond, facts, found);
                    self.statements(body, facts, found);
                }
                Statement::If(cond, then, otherwise) => {
                    self.uses(cond, facts, found);
                    for (branch, holds) in [(then, true), (otherwise, false)] {
                        facts.push((cond, holds));
                        self.statements(branch, facts, found);
                        facts.pop();
                    }
                }
                other => {
                    if let Statement::Store { access, .. } | Statement::Atomic { access, .. } =
                        other
                    {
                        self.access(*access, facts, found);
                    }
                    other
                        .value()
                        .into_iter()
                        .for_each(|v| self.uses(v, facts, found));
                }
            });
        }
    }

    fn uses(&self, value: &'k Value, facts: &[Fact<'k>], found: &mut [Option<Option<Below>>]) {
        value.walk(false, &mut |v, _| {
            if let Value::Load(access) = v {
                self.access(*access, facts, found);
            }
        });
    }

    fn access(&self, access: usize, facts: &[Fact<'k>], found: &mut [Option<Option<Below>>]) {
        let Index::Value(index) = &self.kernel.accesses[access].index else {
            return;
        };
        self.uses(index, facts, found);
        let own = self.below(index, facts);
        // Used twice, the worse one counts.
        found[access] = Some(match found[access].take() {
            None => own,
            Some(before) => before.filter(|b| Some(b) == own.as_ref()),
        });
    }

    fn below(&self, value: &Value, facts: &[Fact<'k>]) -> Option<Below> {
        with_stack(|| {
            let mut own = self.by_form(value, facts);
            let mut natural = own.as_ref().is_some_and(|(_, natural)| *natural)
                || self.is_unsigned(value)
                || facts
                    .iter()
                    .any(|f| self.says(f.0, f.1, &mut |op, a, b| {
                        matches!((op, number(b)), (">=", Some(0)) | (">", Some(-1)) if self.same(a, value))
                    }));
            for (fact, holds) in facts {
                let mut end = None;
                self.says(fact, *holds, &mut |op, a, b| {
                    let Value::Int(poly, scalar) = b else {
                        return false;
                    };
                    let is_number = |s: &Symbol| matches!(s, Symbol::Size(_));
                    let fits = self.same(a, value) && poly.symbols().iter().all(is_number);
                    let more = match op {
                        "<" => 0,
                        "<=" => 1,
                        _ => return false,
                    };
                    if fits {
                        end = poly.plus(&Poly::constant(more), 1);
                        // Compared without a sign.
                        natural |= match scalar {
                            Scalar::Integer(32, false) => self.is_narrow(a),
                            Scalar::Integer(_, is_signed) => !is_signed,
                            _ => false,
                        };
                    }
                    fits
                });
                // What the code says comes before what its types say.
                if let Some(end) = end {
                    own = Some((end, natural));
                }
            }
            own.map(|(end, _)| (end, natural))
        })
    }

    /// What a value's own form says.
    fn by_form(&self, value: &Value, facts: &[Fact<'k>]) -> Option<Below> {
        let byte = || Some((Poly::constant(256), true));
        match value {
            Value::Load(access) => {
                let array = &self.kernel.arrays[self.kernel.accesses[*access].array];
                let is_byte = matches!(array.scalar, Some(Scalar::Integer(8, false)))
                    || matches!(&*array.element, "unsigned char" | "uint8_t");
                is_byte.then(byte).flatten()
            }
            Value::Member(base, _) => self.is_of_bytes(base).then(byte).flatten(),
            Value::Cast(ty, _) if matches!(&**ty, "unsigned char" | "uint8_t") => byte(),
            Value::Cast(ty, inner) if matches!(&**ty, "int" | "unsigned" | "unsigned int") => {
                // A value in range stays what it is.
                self.below(inner, facts).filter(|(_, natural)| *natural)
            }
            Value::Variable(variable) => {
                let ty = &*self.kernel.variables[*variable].ty;
                if matches!(ty, "unsigned char" | "uint8_t") {
                    return byte();
                }
                // A wider type than what it is set to holds it.
                let whole = matches!(
                    self.kernel.variables[*variable].scalar,
                    Some(Scalar::Integer(32 | 64, _))
                );
                let value = self.values[*variable].filter(|_| whole)?;
                self.below(value, facts).filter(|(_, natural)| *natural)
            }
            Value::Binary(op, a, b) => match (&**op, number(b)) {
                ("&", Some(mask)) if mask >= 0 => Some((Poly::constant(mask + 1), true)),
                ("%", Some(by)) if by > 0 && self.is_natural(a, facts) => {
                    Some((Poly::constant(by), true))
                }
                ("/", Some(by)) if by > 0 => {
                    let (end, _) = self.below(a, facts).filter(|(_, natural)| *natural)?;
                    let last = end.as_constant()? - 1;
                    Some((Poly::constant(last / by + 1), true))
                }
                (">>", Some(by)) if (0..31).contains(&by) => {
                    let (end, _) = self.below(a, facts).filter(|(_, natural)| *natural)?;
                    let last = end.as_constant()? - 1;
                    Some((Poly::constant((last >> by) + 1), true))
                }
                _ => None,
            },
            _ => None,
        }
    }

    fn is_natural(&self, value: &Value, facts: &[Fact<'k>]) -> bool {
        self.is_unsigned(value) || self.below(value, facts).is_some_and(|(_, natural)| natural)
    }

    /// Has it a type without a sign, of the width that C computes with?
    fn is_unsigned(&self, value: &Value) -> bool {
        let is = |scalar: Option<Scalar>| matches!(scalar, Some(Scalar::Integer(32 | 64, false)));
        match value {
            Value::Variable(variable) => is(self.kernel.variables[*variable].scalar),
            Value::Load(access) => {
                is(self.kernel.arrays[self.kernel.accesses[*access].array].scalar)
            }
            _ => false,
        }
    }

    fn is_narrow(&self, value: &Value) -> bool {
        match value {
            Value::Variable(variable) => matches!(
                self.kernel.variables[*variable].scalar,
                Some(Scalar::Integer(..=32, _))
            ),
            _ => false,
        }
    }

    fn is_of_bytes(&self, value: &Value) -> bool {
        let is = |ty: &str| {
            matches!(
                ty.trim_start_matches("const "),
                "uchar2" | "uchar3" | "uchar4"
            )
        };
        match value {
            Value::Variable(variable) => is(&self.kernel.variables[*variable].ty),
            Value::Load(access) => {
                is(&self.kernel.arrays[self.kernel.accesses[*access].array].element)
            }
            _ => false,
        }
    }

    /// Does one of the comparisons that must hold satisfy this? They come with the operator as it holds.
    fn says(
        &self,
        cond: &Value,
        holds: bool,
        wanted: &mut dyn FnMut(&str, &Value, &Value) -> bool,
    ) -> bool {
        with_stack(|| match cond {
            Value::Unary(op, inner) if op == "!" => self.says(inner, !holds, wanted),
            Value::Binary(op, a, b) => match (&**op, holds) {
                ("&&", true) | ("||", false) => {
                    let first = self.says(a, holds, wanted);
                    self.says(b, holds, wanted) || first
                }
                ("<" | "<=" | ">" | ">=", _) => {
                    let opposite = |op: &str| match op {
                        "<" => ">=",
                        "<=" => ">",
                        ">" => "<=",
                        _ => "<",
                    };
                    let turned = |op: &str| match op {
                        "<" => ">",
                        "<=" => ">=",
                        ">" => "<",
                        _ => "<=",
                    };
                    let op = if holds { &**op } else { opposite(op) };
                    wanted(op, a, b) || wanted(turned(op), b, a)
                }
                _ => false,
            },
            _ => false,
        })
    }

    /// Are two values the same, wherever they stand?
    fn same(&self, a: &Value, b: &Value) -> bool {
        match (a, b) {
            (Value::Variable(a), Value::Variable(b)) => a == b && self.fixed[*a],
            (Value::Load(a), Value::Load(b)) => {
                let (a, b) = (&self.kernel.accesses[*a], &self.kernel.accesses[*b]);
                let stored = self.kernel.arrays[a.array].stored;
                let index = a.affine().is_some() && a.affine() == b.affine();
                a.array == b.array && !stored && index
            }
            _ => false,
        }
    }
}

fn number(value: &Value) -> Option<i64> {
    match value {
        Value::Int(poly, _) => poly.as_constant(),
        _ => None,
    }
}
