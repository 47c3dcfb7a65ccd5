//! Inputs that the difference of two terms asks for: what their conditions compare with, by which a path for a few
//! values alone is found, and elements that one of the two does not have.

use std::collections::BTreeSet;

use warpwright_emu::symbolic::term::{Cmp, Id, Kind, Order, Terms, Val};

/// An element of an input with its bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Given {
    pub buffer: u32,
    pub element: u32,
    pub bits: u32,
    pub value: u64,
}

/// Sets of elements tried.
const MOST: usize = 8;

/// Elements that a condition compares with a constant: all equalities at once, then each comparison alone.
pub(crate) fn fillings(terms: &Terms, values: [Val; 2]) -> Vec<Vec<Given>> {
    let mut seen = BTreeSet::new();
    let mut stack: Vec<Id> = values
        .iter()
        .filter_map(|value| match value {
            Val::Term(id) => Some(*id),
            Val::Bits(_) => None,
        })
        .collect();
    let (mut equal, mut others) = (Vec::new(), Vec::new());
    while let Some(id) = stack.pop() {
        if !seen.insert(id) {
            continue;
        }
        let node = terms.node(id);
        if node.kind() == Kind::Cmp {
            for (input, constant) in [(node.a, node.b), (node.b, node.a)] {
                if let Some(given) = given(terms, input, constant) {
                    let is_equality = Cmp(node.imm()).order() == Order::Eq;
                    if is_equality {
                        equal.push(given)
                    } else {
                        others.push(given)
                    }
                }
            }
        }
        stack.extend(node.args());
    }
    equal.sort_unstable();
    equal.dedup();
    let mut all = Vec::new();
    if !equal.is_empty() {
        all.push(equal.clone());
    }
    let singles = equal.iter().map(|&given| vec![given]);
    // On either side of a bound: the neighbours of its bits.
    let near = others.iter().flat_map(|&given| {
        let beside = |value| vec![Given { value, ..given }];
        [
            beside(given.value.wrapping_sub(1)),
            beside(given.value.wrapping_add(1)),
        ]
    });
    let numbers = singles.chain(near).filter(|set| set.iter().all(is_number));
    all.extend(numbers.take(MOST));
    all
}

/// Neither infinite nor NaN, should it be taken for single precision: inputs are numbers.
fn is_number(given: &Given) -> bool {
    given.bits != 32 || f32::from_bits(given.value as u32).is_finite()
}

/// Elements that one of two terms has alone, a few of them.
pub(crate) fn alone(terms: &Terms, values: [Val; 2]) -> Vec<Given> {
    let [first, second] = values.map(|value| inputs(terms, value));
    let all: Vec<Given> = first.symmetric_difference(&second).copied().collect();
    match all.as_slice() {
        [] => Vec::new(),
        [one] => vec![*one],
        [one, .., last] => vec![*one, *last],
    }
}

fn inputs(terms: &Terms, value: Val) -> BTreeSet<Given> {
    let mut seen = BTreeSet::new();
    let mut found = BTreeSet::new();
    let mut stack: Vec<Id> = match value {
        Val::Term(id) => vec![id],
        Val::Bits(_) => Vec::new(),
    };
    while let Some(id) = stack.pop() {
        if !seen.insert(id) {
            continue;
        }
        let node = terms.node(id);
        if node.kind() == Kind::Input {
            found.insert(Given {
                buffer: node.a,
                element: node.b,
                bits: node.imm(),
                value: 0,
            });
        }
        stack.extend(node.args());
    }
    found
}

fn given(terms: &Terms, input: Id, constant: Id) -> Option<Given> {
    let node = terms.node(input);
    let value = terms.bits_of(constant)?;
    (node.kind() == Kind::Input).then(|| Given {
        buffer: node.a,
        element: node.b,
        bits: node.imm(),
        value,
    })
}
