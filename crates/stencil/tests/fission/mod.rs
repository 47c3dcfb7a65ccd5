//! Kernel fission: one stencil as several, from max-fuse (one kernel) to max-split (one kernel for
//! each statement that writes an output).
//!
//! Paper: section 3.4, line 11 of algorithm 2, and section 5, 'Kernel fission': less register
//! pressure in each kernel, for more traffic; values that cross a cut are recomputed or promoted to
//! arrays.
//!
//! The order of the trees is that of `schedule::order_trees`; the statements that write outputs are
//! cut into runs of it, such that the largest number of labels that any run reads is smallest.
//! Each run takes along the private values it needs: all of them where they are recomputed; where
//! they are promoted, the first run that needs one stores it for the later ones.
//!
//! Requires: no statement reads an element of an output as it was before the sweep, unless it is
//! the one that accumulates into it; [`split`] answers `None` otherwise. Preserves: the values,
//! bit by bit. An output that several kernels accumulate into is read and written by each.
//!
//! No pass splits a stencil yet: tests and the examples do.

#![allow(dead_code)]

use std::collections::{BTreeMap, BTreeSet};

use warpwright_stencil::ir::{
    Access, Array, Expr, ExprId, Statement, Stencil, Subscript, Target, TempId,
};
use warpwright_stencil::schedule::build::build;
use warpwright_stencil::schedule::labels::LabelSet;
use warpwright_stencil::schedule::order_trees::order_trees;

/// What becomes of a private value that several kernels need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crossing {
    /// Each computes it.
    Recompute,
    /// The first stores it in an array of the size of the domain, the others load it.
    Promote,
}

/// How many kernels a stencil can be split into at most.
pub fn most_kernels(stencil: &Stencil) -> usize {
    stencil
        .statements
        .iter()
        .filter(|s| matches!(s.target, Target::Store(_)))
        .count()
}

/// The kernels of a stencil that is split into `kernels`, in order; all have the same arrays, the
/// promoted ones at the end. `None` if it cannot be split so.
pub fn split(stencil: &Stencil, kernels: usize, crossing: Crossing) -> Option<Vec<Stencil>> {
    if kernels <= 1 {
        return Some(vec![stencil.clone()]);
    }
    let unrolled = build(stencil, &[]);
    if !unrolled.early.is_empty() || kernels > most_kernels(stencil) {
        return None;
    }
    let order = order_trees(&unrolled.dag);
    let statement_of = |tree| unrolled.statements[tree];
    let stores: Vec<usize> = order
        .iter()
        .map(|&tree| statement_of(tree))
        .filter(|&at| matches!(stencil.statements[at].target, Target::Store(_)))
        .collect();
    let needs: Vec<BTreeSet<usize>> = stores.iter().map(|&at| closure(stencil, at)).collect();
    let labels: Vec<LabelSet> = needs
        .iter()
        .map(|statements| {
            let trees = order
                .iter()
                .filter(|&&t| statements.contains(&statement_of(t)));
            let uses = trees.map(|&t| unrolled.dag.uses(unrolled.dag.trees[t].root));
            uses.fold(LabelSet::new(), |all, labels| all.union(&labels))
        })
        .collect();
    let cuts = cut(&labels, kernels)?;
    let mut runs: Vec<BTreeSet<usize>> = Vec::new();
    for window in cuts.windows(2) {
        runs.push(
            needs[window[0]..window[1]]
                .iter()
                .flatten()
                .copied()
                .collect(),
        );
    }
    // Each store stands in its own run only.
    let all: BTreeSet<usize> = stores.iter().copied().collect();
    for (run, window) in runs.iter_mut().zip(cuts.windows(2)) {
        let own = &stores[window[0]..window[1]];
        run.retain(|at| !all.contains(at) || own.contains(at));
    }
    let promoted = match crossing {
        Crossing::Recompute => BTreeMap::new(),
        Crossing::Promote => crossing_values(stencil, &runs),
    };
    Some(
        runs.iter()
            .enumerate()
            .map(|(at, run)| part(stencil, at, run, &promoted))
            .collect(),
    )
}

/// The private values that an expression reads.
fn temps(stencil: &Stencil, root: ExprId) -> BTreeSet<TempId> {
    let reachable = stencil.reachable(root);
    let temp = |&id: &ExprId| match stencil.exprs[id] {
        Expr::Temp(temp) => Some(temp),
        _ => None,
    };
    reachable.iter().filter_map(temp).collect()
}

/// A statement with all assignments to private values that it depends on.
fn closure(stencil: &Stencil, statement: usize) -> BTreeSet<usize> {
    let mut needed = BTreeSet::new();
    let mut stack = vec![statement];
    while let Some(at) = stack.pop() {
        if !needed.insert(at) {
            continue;
        }
        let reads = temps(stencil, stencil.statements[at].value);
        for (before, statement) in stencil.statements[..at].iter().enumerate() {
            let own = |temp: TempId| matches!(stencil.statements[at].target, Target::Temp(t) if t == temp);
            if let Target::Temp(temp) = statement.target
                && (reads.contains(&temp) || own(temp))
            {
                stack.push(before);
            }
        }
    }
    needed
}

/// Where to cut a sequence into runs so that the largest union of labels is smallest: the first
/// index of each run, and the end.
fn cut(labels: &[LabelSet], runs: usize) -> Option<Vec<usize>> {
    let count = labels.len();
    // cost[first][last]: the labels of a run.
    let cost = |first: usize| {
        let mut all = LabelSet::new();
        labels[first..]
            .iter()
            .map(move |l| {
                all.add_all(l);
                all.len()
            })
            .collect::<Vec<u32>>()
    };
    let costs: Vec<Vec<u32>> = (0..count).map(cost).collect();
    let mut best: Vec<Vec<Option<(u32, usize)>>> = vec![vec![None; count + 1]; runs + 1];
    best[0][0] = Some((0, 0));
    for run in 1..=runs {
        for end in 1..=count {
            for start in 0..end {
                let Some((before, _)) = best[run - 1][start] else {
                    continue;
                };
                let peak = before.max(costs[start][end - start - 1]);
                if best[run][end].is_none_or(|(least, _)| peak < least) {
                    best[run][end] = Some((peak, start));
                }
            }
        }
    }
    let mut cuts = vec![count];
    for run in (1..=runs).rev() {
        let (_, start) = best[run][*cuts.last()?]?;
        cuts.push(start);
    }
    cuts.reverse();
    Some(cuts)
}

/// The private values that more than one run computes, with the first run that does. One that is
/// assigned more than once stays private: its earlier values have no place in the array.
fn crossing_values(stencil: &Stencil, runs: &[BTreeSet<usize>]) -> BTreeMap<TempId, usize> {
    let mut first: BTreeMap<TempId, usize> = BTreeMap::new();
    let assignments = |temp: TempId| {
        stencil
            .statements
            .iter()
            .filter(|s| s.target == Target::Temp(temp))
            .count()
    };
    let mut crossing = BTreeMap::new();
    for (at, run) in runs.iter().enumerate() {
        for &statement in run {
            if let Target::Temp(temp) = stencil.statements[statement].target {
                let owner = *first.entry(temp).or_insert(at);
                if owner != at && assignments(temp) == 1 {
                    crossing.insert(temp, owner);
                }
            }
        }
    }
    crossing
}

/// One kernel: the statements of a run, promoted values stored by their owner and loaded by others.
fn part(
    stencil: &Stencil,
    number: usize,
    run: &BTreeSet<usize>,
    promoted: &BTreeMap<TempId, usize>,
) -> Stencil {
    let mut part = stencil.clone();
    if number > 0 {
        // The first one does it.
        part.border = None;
    }
    let accesses: BTreeMap<TempId, Access> = promoted
        .keys()
        .map(|&temp| (temp, promote(&mut part, temp)))
        .collect();
    let foreign = |temp: TempId| promoted.get(&temp).is_some_and(|&owner| owner != number);
    let mut statements: Vec<Statement> = Vec::new();
    for &at in run {
        let statement = stencil.statements[at].clone();
        match statement.target {
            Target::Temp(temp) if foreign(temp) => {}
            _ => statements.push(statement),
        }
    }
    for (&temp, access) in &accesses {
        if foreign(temp) {
            let all: Vec<ExprId> = part.exprs.keys().collect();
            for id in all {
                if part.exprs[id] == Expr::Temp(temp) {
                    part.exprs[id] = Expr::Load(access.clone());
                }
            }
        } else if promoted.get(&temp) == Some(&number) {
            let value = part.exprs.push(Expr::Temp(temp));
            statements.push(Statement {
                target: Target::Store(access.clone()),
                accumulate: false,
                value,
                span: 0..0,
            });
        }
    }
    part.statements = prune(&part, statements);
    mark(&mut part);
    part
}

/// Assignments to private values that nothing reads any more are left out.
fn prune(part: &Stencil, statements: Vec<Statement>) -> Vec<Statement> {
    let mut needed: BTreeSet<TempId> = BTreeSet::new();
    let mut kept: Vec<Statement> = Vec::new();
    for statement in statements.into_iter().rev() {
        let wanted = match &statement.target {
            Target::Temp(temp) => needed.contains(temp),
            Target::Store(_) => true,
        };
        if wanted {
            needed.extend(temps(part, statement.value));
            kept.push(statement);
        }
    }
    kept.reverse();
    kept
}

/// An array of the size of the domain for a private value.
fn promote(part: &mut Stencil, temp: TempId) -> Access {
    let data = part.temps[temp].clone();
    let array = part.arrays.push(Array {
        name: format!("promoted_{}", data.name),
        element: data.element,
        extents: part.dims.values().map(|d| d.extent).collect(),
        read: false,
        written: false,
        variable: None,
    });
    let subscript = |dim| Subscript {
        dim: Some(dim),
        offset: 0,
    };
    Access {
        array,
        subscripts: part.dims.keys().map(subscript).collect(),
    }
}

/// Which arrays the statements read and write.
fn mark(part: &mut Stencil) {
    let mut read = BTreeSet::new();
    let mut written = BTreeSet::new();
    for statement in &part.statements {
        for id in part.reachable(statement.value) {
            if let Expr::Load(access) = &part.exprs[id] {
                read.insert(access.array);
            }
        }
        if let Target::Store(access) = &statement.target {
            written.insert(access.array);
            if statement.accumulate {
                read.insert(access.array);
            }
        }
    }
    for (id, array) in part.arrays.iter_mut() {
        array.read = read.contains(&id);
        array.written = written.contains(&id);
    }
}
