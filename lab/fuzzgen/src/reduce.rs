//! Shrinks a failing program while a predicate holds.
//!
//! Any subset of a program's statements is a program, so the reducer may simply try: drop halves,
//! quarters … single statements (delta debugging), replace a branch or loop by its contents, run
//! loops once, and make the grid and block smaller.

use crate::program::{Program, Stmt};

/// The smallest program found for which `fails` still holds. `fails(program)` must hold on entry;
/// if it does not, the program comes back unchanged. `budget` bounds the calls of `fails`.
pub fn reduce(
    program: &Program,
    budget: usize,
    mut fails: impl FnMut(&Program) -> bool,
) -> Program {
    let mut best = program.clone();
    let mut left = budget;
    let mut test = |candidate: &Program| {
        if left == 0 {
            return false;
        }
        left -= 1;
        fails(candidate)
    };
    if !test(&best) {
        return best;
    }
    loop {
        let before = best.clone();
        shorten_functions(&mut best, &mut test);
        for (grid, block) in [(1, 32), (1, best.block), (best.grid, 32)] {
            let smaller = Program {
                grid,
                block,
                ..best.clone()
            };
            if smaller != best && grid * block < best.grid * best.block && test(&smaller) {
                best = smaller;
            }
        }
        drop_chunks(&mut best, &mut test);
        simplify(&mut best, &mut test);
        if best == before {
            return best;
        }
    }
}

/// Tries to drop the statements of device functions.
fn shorten_functions(best: &mut Program, test: &mut impl FnMut(&Program) -> bool) {
    for number in 0..best.functions.len() {
        let mut at = best.functions[number].body.len();
        while at > 0 {
            at -= 1;
            let mut candidate = best.clone();
            candidate.functions[number].body.remove(at);
            if test(&candidate) {
                *best = candidate;
            }
        }
    }
}

/// Tries to drop runs of top-level statements, long runs first.
fn drop_chunks(best: &mut Program, test: &mut impl FnMut(&Program) -> bool) {
    let mut chunk = best.body.len().max(1);
    while chunk > 0 {
        let mut at = 0;
        while at < best.body.len() {
            let mut candidate = best.clone();
            let end = (at + chunk).min(candidate.body.len());
            candidate.body.drain(at..end);
            if test(&candidate) {
                *best = candidate;
            } else {
                at += chunk;
            }
        }
        chunk /= 2;
    }
}

/// Tries each one-step simplification of each statement at any depth.
fn simplify(best: &mut Program, test: &mut impl FnMut(&Program) -> bool) {
    let mut index = 0;
    while index < best.size() {
        let mut changed = false;
        for choice in 0..4 {
            let mut candidate = best.clone();
            let mut at = index;
            if edit(&mut candidate.body, &mut at, choice) && candidate != *best && test(&candidate)
            {
                *best = candidate;
                changed = true;
                break;
            }
        }
        if !changed {
            index += 1;
        }
    }
}

/// Applies simplification `choice` to the statement with pre-order number `at`.
fn edit(stmts: &mut Vec<Stmt>, at: &mut usize, choice: usize) -> bool {
    for i in 0..stmts.len() {
        if *at == 0 {
            return apply(stmts, i, choice);
        }
        *at -= 1;
        let found = stmts[i].inside_mut().any(|list| edit(list, at, choice));
        if found {
            return true;
        }
    }
    false
}

fn apply(stmts: &mut Vec<Stmt>, i: usize, choice: usize) -> bool {
    match (choice, stmts[i].clone()) {
        (0, _) => {
            stmts.remove(i);
            true
        }
        (1, Stmt::If { then, .. }) => {
            stmts.splice(i..=i, then);
            true
        }
        (2, Stmt::If { otherwise, .. }) => {
            stmts.splice(i..=i, otherwise);
            true
        }
        (1, Stmt::Loop { body, .. } | Stmt::Fewer(body)) => {
            stmts.splice(i..=i, body);
            true
        }
        (2, Stmt::Loop { body, count }) if count > 1 => {
            stmts[i] = Stmt::Loop { count: 1, body };
            true
        }
        (
            3,
            Stmt::Op {
                opcode,
                dst,
                src,
                guard: Some(_),
            },
        ) => {
            stmts[i] = Stmt::Op {
                opcode,
                dst,
                src,
                guard: None,
            };
            true
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Config, generate, print};

    fn mentions(program: &Program, what: &str) -> bool {
        print(program).contains(what)
    }

    /// The reducer must find the one statement that the predicate asks for, wherever it stands.
    #[test]
    fn shrinks_to_the_statement_that_matters() {
        let mut tried = 0;
        for seed in 0..200 {
            let program = generate(seed, &Config::default());
            if !mentions(&program, "shfl.sync.bfly") || program.size() < 20 {
                continue;
            }
            tried += 1;
            let small = reduce(&program, 10_000, |p| mentions(p, "shfl.sync.bfly"));
            assert_eq!(small.size(), 1, "seed {seed}: {small:?}");
            assert_eq!((small.grid, small.block), (1, 32));
        }
        assert!(tried > 5, "only {tried} programs had a butterfly shuffle");
    }

    #[test]
    fn a_program_that_does_not_fail_stays_as_it_is() {
        let program = generate(3, &Config::default());
        assert_eq!(reduce(&program, 100, |_| false), program);
    }
}
