//! What the turns of the outermost loops do to each other.

use std::collections::{BTreeMap, BTreeSet};

use warpwright_cudac::affine::Symbol;
use warpwright_cudac::{Scalar, with_stack};

use crate::ir::{Index, Kernel, Statement, Value, any};

/// How values of two turns become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Combine {
    /// `+`
    Add,
    /// `fmaxf`, `fmax`, `max`
    Largest,
    /// `fminf`, `fmin`, `min`
    Least,
}

impl Combine {
    /// Both combined, by the type of the variable.
    pub(crate) fn text(self, scalar: Scalar, a: &str, b: &str) -> String {
        let function = match (self, scalar) {
            (Combine::Add, _) => return format!("{a} + {b}"),
            (Combine::Largest, Scalar::Float) => "fmaxf",
            (Combine::Largest, Scalar::Double) => "fmax",
            (Combine::Largest, _) => "max",
            (Combine::Least, Scalar::Float) => "fminf",
            (Combine::Least, Scalar::Double) => "fmin",
            (Combine::Least, _) => "min",
        };
        format!("{function}({a}, {b})")
    }
}

/// A variable to which every turn contributes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sum {
    /// The variable.
    pub(crate) variable: usize,
    /// How the contributions are combined.
    pub(crate) combine: Combine,
    /// Its type.
    pub(crate) scalar: Scalar,
}

impl Sum {
    /// Two contributions combined, as text.
    pub(crate) fn both(&self, a: &str, b: &str) -> String {
        self.combine.text(self.scalar, a, b)
    }

    /// Does another order of its turns change it?
    pub(crate) fn is_reordered(&self) -> bool {
        self.combine == Combine::Add && matches!(self.scalar, Scalar::Float | Scalar::Double)
    }
}

/// The loop at the top of a kernel whose turns can be divided, if there is only one: its place in the body, its number,
/// what it does, and its sums.
pub(crate) fn only_loop<'k>(
    kernel: &'k Kernel,
    sums: &'k [Option<Vec<Sum>>],
) -> Option<(usize, usize, &'k [Statement], &'k [Sum])> {
    let all = kernel.body.iter().zip(sums).enumerate();
    let mut loops = all.filter_map(|(at, both)| match both {
        (Statement::Loop(number, body), Some(sums)) => Some((at, *number, &body[..], &sums[..])),
        _ => None,
    });
    let only = loops.next()?;
    loops.next().is_none().then_some(only)
}

/// Why the turns of a kernel's loops cannot be divided among threads.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Apart {
    /// There is no loop at the top of the kernel.
    #[error("there is no loop whose turns could be divided")]
    NoLoop,
    /// A variable goes from turn to turn, and is no sum, maximum or minimum.
    #[error("`{0}` goes from turn to turn, and is no sum, maximum or minimum")]
    Carried(String),
    /// Sums of this variable would be added in another order.
    #[error(
        "the sums of `{0}` would be added in another order, and the pragma does not say `reassociate`"
    )]
    Order(String),
    /// Turns may read or store what others store.
    #[error("turns may share elements of `{0}`, which is stored to")]
    Shared(String),
    /// A loop inside a condition.
    #[error("a loop stands inside a condition")]
    Condition,
    /// The trip through the loop depends on something that is no polynomial of places and sizes.
    #[error("a loop's bounds depend on another loop")]
    Bounds,
}

/// For each statement of the body: nothing if it is no loop, else the loop's sums.
pub(crate) fn analyse(kernel: &Kernel) -> Result<Vec<Option<Vec<Sum>>>, Apart> {
    let mut all = Vec::new();
    let mut declared = BTreeSet::new();
    for statement in &kernel.body {
        all.push(match statement {
            Statement::Loop(number, body) => {
                let counter = &kernel.loops[*number];
                let depends = [&counter.low, &counter.high].into_iter().any(|p| {
                    p.symbols()
                        .iter()
                        .any(|s| matches!(s, Symbol::Loop(_) | Symbol::Unknown(_)))
                });
                if depends {
                    return Err(Apart::Bounds);
                }
                Some(sums(kernel, &declared, body)?)
            }
            Statement::If(..) => {
                let inside = std::slice::from_ref(statement);
                if any(inside, |s| matches!(s, Statement::Loop(..))) {
                    return Err(Apart::Condition);
                }
                None
            }
            Statement::Declare(variable, _) => {
                declared.insert(*variable);
                None
            }
            _ => None,
        });
    }
    if all.iter().all(Option::is_none) {
        return Err(Apart::NoLoop);
    }
    stores(kernel)?;
    Ok(all)
}

/// The variables of outside that a loop's body assigns to.
fn sums(
    kernel: &Kernel,
    declared: &BTreeSet<usize>,
    body: &[Statement],
) -> Result<Vec<Sum>, Apart> {
    let mut found: BTreeMap<usize, Option<Combine>> = BTreeMap::new();
    let mut reads: BTreeSet<usize> = BTreeSet::new();
    for statement in body {
        statement.walk(&mut |s| {
            let mut read = |value: &Value| {
                value.walk(false, &mut |v, _| {
                    if let Value::Variable(number) = v {
                        reads.insert(*number);
                    }
                });
            };
            match s {
                Statement::Assign {
                    variable,
                    member,
                    op,
                    value,
                } if declared.contains(variable) => {
                    let (how, rest) = match member {
                        Some(_) => (None, vec![value]),
                        None => contribution(*variable, op, value),
                    };
                    let known = found.entry(*variable).or_insert(how);
                    if *known != how {
                        *known = None;
                    }
                    rest.into_iter().for_each(&mut read);
                }
                s => s.own().into_iter().for_each(&mut read),
            }
        });
    }
    // Unresolved subscripts are values as well.
    let mut sums = Vec::new();
    for (variable, how) in found {
        let of = &kernel.variables[variable];
        let scalar = of.scalar.filter(|s| *s != Scalar::Bool);
        let (Some(combine), Some(scalar), false) = (
            how,
            scalar,
            reads.contains(&variable) || indexes(kernel, variable),
        ) else {
            return Err(Apart::Carried(of.name.clone()));
        };
        let sum = Sum {
            variable,
            combine,
            scalar,
        };
        if sum.is_reordered() && !kernel.pragma.reassociate {
            return Err(Apart::Order(of.name.clone()));
        }
        sums.push(sum);
    }
    Ok(sums)
}

/// Does a subscript use a variable?
fn indexes(kernel: &Kernel, variable: usize) -> bool {
    let mut uses = false;
    for access in &kernel.accesses {
        if let Index::Value(value) = &access.index {
            value.walk(false, &mut |v, _| uses |= *v == Value::Variable(variable));
        }
    }
    uses
}

/// How an assignment combines a variable with a new value, and the values that it reads besides.
fn contribution<'v>(
    variable: usize,
    op: &str,
    value: &'v Value,
) -> (Option<Combine>, Vec<&'v Value>) {
    let own = |v: &Value| *v == Value::Variable(variable);
    with_stack(|| match (op, value) {
        ("+=" | "-=", value) => (Some(Combine::Add), vec![value]),
        ("=", Value::Binary(op, a, b)) if (op == "+" || op == "-") && own(a) => {
            (Some(Combine::Add), vec![&**b])
        }
        ("=", Value::Binary(op, a, b)) if op == "+" && own(b) => (Some(Combine::Add), vec![&**a]),
        ("=", Value::Call(function, all)) => {
            let combine = match function.as_str() {
                "fmaxf" | "fmax" | "max" => Combine::Largest,
                "fminf" | "fmin" | "min" => Combine::Least,
                _ => return (None, vec![value]),
            };
            match &all[..] {
                [a, b] if own(a) => (Some(combine), vec![b]),
                [a, b] if own(b) => (Some(combine), vec![a]),
                _ => (None, vec![value]),
            }
        }
        _ => (None, vec![value]),
    })
}

/// Every element that is stored to inside a loop belongs to one turn, and the same turn of every loop.
fn stores(kernel: &Kernel) -> Result<(), Apart> {
    // By array: the place of its elements in terms of the turn, and the loop.
    let mut owners: BTreeMap<usize, (usize, Option<usize>)> = BTreeMap::new();
    let mut all = Vec::new();
    for statement in &kernel.body {
        let outer = match statement {
            Statement::Loop(number, _) => Some(*number),
            _ => None,
        };
        statement.walk(&mut |s| {
            if let Statement::Store { access, .. } = s {
                all.push((*access, outer, true));
            }
            let mut loads = |value: &Value| {
                value.walk(false, &mut |v, _| {
                    if let Value::Load(access) = v {
                        all.push((*access, outer, false));
                    }
                });
            };
            s.own().into_iter().for_each(&mut loads);
        });
    }
    for (access, outer, is_store) in &all {
        if *is_store {
            owners
                .entry(kernel.accesses[*access].array)
                .or_insert((*access, *outer));
        }
    }
    // Loads in subscripts that are values are not looked at one by one.
    for access in &kernel.accesses {
        if let Index::Value(value) = &access.index {
            let mut loads = None;
            value.walk(false, &mut |v, _| {
                if let Value::Load(load) = v
                    && owners.contains_key(&kernel.accesses[*load].array)
                {
                    loads = Some(kernel.accesses[*load].array);
                }
            });
            if let Some(array) = loads {
                return Err(Apart::Shared(kernel.arrays[array].name.clone()));
            }
        }
    }
    for (access, outer, _) in &all {
        let of = &kernel.accesses[*access];
        let Some((first, first_outer)) = owners.get(&of.array) else {
            continue;
        };
        let shared = || Apart::Shared(kernel.arrays[of.array].name.clone());
        let (Some(index), Some(stored)) = (of.affine(), kernel.accesses[*first].affine()) else {
            return Err(shared());
        };
        match (outer, first_outer) {
            // One thread does both.
            (None, None) => {}
            (Some(here), Some(there)) => {
                let (a, b) = (&kernel.loops[*here], &kernel.loops[*there]);
                if (&a.low, a.step) != (&b.low, b.step) {
                    return Err(shared());
                }
                let moved = index.substituted(
                    Symbol::Loop(*here),
                    &warpwright_cudac::affine::Poly::symbol(Symbol::Loop(*there)),
                );
                // Another loop's counter in the subscript could bring two turns to one element.
                let alone = stored
                    .symbols()
                    .iter()
                    .all(|s| !matches!(s, Symbol::Loop(n) if n != there));
                let own = stored
                    .coefficient(Symbol::Loop(*there))
                    .is_some_and(|c| !c.is_zero() && c.points().is_empty());
                if moved.as_ref() != Some(stored) || !alone || !own {
                    return Err(shared());
                }
            }
            _ => return Err(shared()),
        }
    }
    Ok(())
}
