//! Sethi–Ullman numbers, generalised to accumulation nodes.
//!
//! Paper: section 3.1, equation 1 and the paragraph on accumulation nodes: the fewest registers
//! that evaluate a tree without data sharing, every operand in a register of its own. This is the
//! textbook number; it knows neither free operands nor sharing ([`super::schedule_tree`] does).

use super::dag::{Dag, Kind, Node};

/// `su(n)`.
pub fn su(dag: &Dag, node: Node) -> u32 {
    let children = &dag.nodes[node].children;
    let mut numbers: Vec<u32> = children.iter().map(|c| su(dag, c.node)).collect();
    numbers.sort_unstable_by(|a, b| b.cmp(a));
    match dag.nodes[node].kind {
        Kind::Leaf(_) | Kind::Literal(_) => 1,
        // One register accumulates; it comes from the child that is evaluated first.
        Kind::Sum(_) | Kind::Product(_) => match numbers[..] {
            [most, second, ..] if most == second => most + 1,
            [most, ..] => most,
            [] => 1,
        },
        // Operands are held until all are there: the i-th takes what it needs and i registers.
        Kind::Multiply | Kind::Operator(_) => {
            let held = numbers.iter().zip(0..);
            held.map(|(number, held)| number + held).max().unwrap_or(1)
        }
    }
}
