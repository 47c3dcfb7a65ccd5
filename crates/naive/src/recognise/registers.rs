//! Goal: an element that a point stores to again and again waits in a register, and is stored once.
//!
//! `c[i] = 0; for (…) c[i] += …` stores in every turn, and a loop that stores is neither done in parts nor shared. The
//! element is the point's own, so nobody sees what it holds in between.
//!
//! Paper: Yang et al., PLDI 2010, section 3 (writes of temporary values that do not reach memory). Departure: the paper
//! asks for a pragma; here it follows from the points being independent.
//!
//! Requires: all accesses to the array are to one element, which no counter moves, and one of them is always reached, so
//! that the element is there. Preserves: every value, to the bit; elements are rounded to their type as they were.

use warpwright_cudac::affine::Symbol;
use warpwright_cudac::names::free;
use warpwright_cudac::with_stack;

use crate::ir::{Index, Kernel, Statement, Value, Variable};

/// Moves such elements of all arrays to variables.
pub(super) fn kept(kernel: &mut Kernel) {
    for array in 0..kernel.arrays.len() {
        if let Some((first, access)) = element(kernel, array) {
            keep(kernel, array, first, access);
        }
    }
}

/// The statement at the top that is the first to touch the array, and an access to its element.
fn element(kernel: &Kernel, array: usize) -> Option<(usize, usize)> {
    let of = &kernel.arrays[array];
    of.scalar.filter(|_| of.stored)?;
    let own = |access: usize| kernel.accesses[access].array == array;
    let all: Vec<usize> = (0..kernel.accesses.len()).filter(|a| own(*a)).collect();
    let index = kernel.accesses[*all.first()?].affine()?;
    let moves = |s: &Symbol| matches!(s, Symbol::Loop(_));
    let same = all
        .iter()
        .all(|a| kernel.accesses[*a].affine() == Some(index));
    // What a subscript loads is not looked at.
    let in_subscript = kernel.accesses.iter().any(|a| match &a.index {
        Index::Value(value) => loads(value, &own),
        Index::Affine(_) => false,
    });
    if !same || index.symbols().iter().any(moves) || in_subscript {
        return None;
    }
    let (mut first, mut reached, mut looped) = (None, false, false);
    for (at, statement) in kernel.body.iter().enumerate() {
        let mut touched = false;
        let mut member = false;
        statement.walk(&mut |s| {
            touched |= touches(s, &own);
            member |= matches!(s, Statement::Store { access, member: Some(_), .. } if own(*access));
        });
        if member {
            return None;
        }
        if touched {
            first.get_or_insert(at);
            looped |= matches!(statement, Statement::Loop(..));
            reached |= matches!(statement, Statement::Store { access, .. } if own(*access))
                || statement.value().is_some_and(|v| surely(v, &own));
        }
    }
    (reached && looped).then_some((first?, *all.first()?))
}

fn touches(statement: &Statement, own: &impl Fn(usize) -> bool) -> bool {
    let stores = matches!(statement, Statement::Store { access, .. } if own(*access));
    stores || statement.own().is_some_and(|v| loads(v, own))
}

fn loads(value: &Value, own: &impl Fn(usize) -> bool) -> bool {
    let mut found = false;
    value.walk(false, &mut |v, _| {
        found |= matches!(v, Value::Load(access) if own(*access))
    });
    found
}

fn surely(value: &Value, own: &impl Fn(usize) -> bool) -> bool {
    let mut found = false;
    value.walk(false, &mut |v, sometimes| {
        found |= !sometimes && matches!(v, Value::Load(access) if own(*access));
    });
    found
}

fn keep(kernel: &mut Kernel, array: usize, first: usize, access: usize) {
    let of = &kernel.arrays[array];
    let is_variable = |name: &str| kernel.variables.iter().any(|v| v.name == name);
    let name = free(format!("{}_kept", of.name), |name| {
        is_variable(name) || kernel.has_parameter(name)
    });
    let variable = kernel.variables.len();
    kernel.variables.push(Variable {
        name,
        ty: of.element.trim_start_matches("const ").to_owned(),
        scalar: of.scalar,
    });
    // One access is left: the last store, and the first load if there is one.
    let mut numbers = Vec::new();
    let mut left = Vec::new();
    for (number, of) in kernel.accesses.iter().enumerate() {
        numbers.push(left.len());
        if of.array != array || number == access {
            left.push(of.clone());
        }
    }
    let own: Vec<bool> = kernel.accesses.iter().map(|a| a.array == array).collect();
    let change = Change {
        own: &own,
        numbers: &numbers,
        variable,
    };
    for of in &mut left {
        if let Index::Value(value) = &mut of.index {
            change.value(value);
        }
    }
    let access = numbers[access];
    kernel.accesses = left;
    let is_set = matches!(&kernel.body[first], Statement::Store { access, op, .. } if own[*access] && op == "=");
    kernel.body.iter_mut().for_each(|s| change.statement(s));
    match &mut kernel.body[first] {
        Statement::Assign { value, .. } if is_set => {
            let value = std::mem::replace(value, Value::Variable(variable));
            kernel.body[first] = Statement::Declare(variable, Some(value));
        }
        _ => {
            let load = Statement::Declare(variable, Some(Value::Load(access)));
            kernel.body.insert(first, load);
        }
    }
    kernel.body.push(Statement::Store {
        access,
        member: None,
        op: "=".into(),
        value: Value::Variable(variable),
    });
}

struct Change<'a> {
    /// By access: is it one to the element?
    own: &'a [bool],
    /// By access: its new number.
    numbers: &'a [usize],
    variable: usize,
}

impl Change<'_> {
    fn value(&self, value: &mut Value) {
        with_stack(|| match value {
            Value::Load(access) if self.own[*access] => *value = Value::Variable(self.variable),
            Value::Load(access) => *access = self.numbers[*access],
            Value::Unary(_, a) | Value::Cast(_, a) | Value::Member(a, _) => self.value(a),
            Value::Binary(_, a, b) => [a, b].into_iter().for_each(|v| self.value(v)),
            Value::Call(_, all) => all.iter_mut().for_each(|v| self.value(v)),
            Value::Select(a, b, c) => [a, b, c].into_iter().for_each(|v| self.value(v)),
            Value::Text(_) | Value::Parameter(_) | Value::Variable(_) | Value::Int(..) => {}
        });
    }

    fn statement(&self, statement: &mut Statement) {
        with_stack(|| match statement {
            Statement::Declare(_, value) => value.iter_mut().for_each(|v| self.value(v)),
            Statement::Assign { value, .. } => self.value(value),
            Statement::Store {
                access, op, value, ..
            } => {
                self.value(value);
                match self.own[*access] {
                    true => {
                        *statement = Statement::Assign {
                            variable: self.variable,
                            member: None,
                            op: std::mem::take(op),
                            value: std::mem::replace(value, Value::Variable(self.variable)),
                        };
                    }
                    false => *access = self.numbers[*access],
                }
            }
            Statement::Atomic { access, value, .. } => {
                self.value(value);
                *access = self.numbers[*access];
            }
            Statement::Loop(_, body) => body.iter_mut().for_each(|s| self.statement(s)),
            Statement::While(cond, body) => {
                self.value(cond);
                body.iter_mut().for_each(|s| self.statement(s));
            }
            Statement::If(cond, then, otherwise) => {
                self.value(cond);
                then.iter_mut()
                    .chain(otherwise)
                    .for_each(|s| self.statement(s));
            }
        });
    }
}
