//! The order of the trees of a DAG: greedy fusion by reuse, then a topological sort.
//!
//! Paper: section 3.4, lines 1 to 10 of algorithm 2. The metric of a pair is the number of labels
//! that they share; among equals, the number of arrays that both read. A pair may be fused if no
//! dependence runs between the two through a third.
//!
//! Preserves: every tree comes after those whose results it reads.

use std::collections::BTreeSet;

use super::dag::{Dag, TreeId};
use super::labels::LabelSet;

/// Trees that are evaluated in a row.
struct Macro<'d> {
    trees: Vec<TreeId>,
    labels: LabelSet,
    arrays: BTreeSet<&'d str>,
    /// Indices of the macro nodes whose results this one reads.
    after: BTreeSet<usize>,
}

/// The array of a label is its name up to the subscripts.
fn array(name: &str) -> &str {
    name.split('[').next().unwrap_or(name)
}

/// The trees in order of evaluation.
pub fn order_trees(dag: &Dag) -> Vec<TreeId> {
    let mut nodes: Vec<Option<Macro>> = dag.trees.keys().map(|t| Some(leaf(dag, t))).collect();
    while let Some((first, second)) = candidate(&nodes) {
        fuse(&mut nodes, first, second);
    }
    topological(nodes)
}

fn leaf(dag: &Dag, tree: TreeId) -> Macro<'_> {
    let data = &dag.trees[tree];
    let mut labels = dag.uses(data.root);
    let names = labels.iter().map(|label| dag.labels[label].name.as_str());
    let arrays = names.filter(|name| name.contains('[')).map(array).collect();
    labels.insert(data.target);
    Macro {
        trees: vec![tree],
        labels,
        arrays,
        after: dag
            .predecessors(tree)
            .iter()
            .map(|t| t.as_u32() as usize)
            .collect(),
    }
}

/// The pair with the highest metric, if any shares anything: the one to come first, the other.
fn candidate(nodes: &[Option<Macro>]) -> Option<(usize, usize)> {
    let reach = reachable(nodes);
    let mut best: Option<((u32, usize), usize, usize)> = None;
    for (i, a) in nodes.iter().enumerate() {
        let Some(a) = a else { continue };
        for (j, b) in nodes.iter().enumerate().skip(i + 1) {
            let Some(b) = b else { continue };
            let metric = (
                a.labels.common(&b.labels),
                a.arrays.intersection(&b.arrays).count(),
            );
            if metric == (0, 0) || best.is_some_and(|(most, ..)| metric <= most) {
                continue;
            }
            let (first, second) = match reach[i].contains(&j) {
                true => (j, i),
                false => (i, j),
            };
            if !through_a_third(nodes, &reach, first, second) {
                best = Some((metric, first, second));
            }
        }
    }
    best.map(|(_, first, second)| (first, second))
}

/// For each macro node, all that it depends on.
fn reachable(nodes: &[Option<Macro>]) -> Vec<BTreeSet<usize>> {
    let mut reach: Vec<BTreeSet<usize>> = vec![BTreeSet::new(); nodes.len()];
    for at in sorted(nodes) {
        if let Some(node) = &nodes[at] {
            let mut all = node.after.clone();
            node.after.iter().for_each(|&p| all.extend(&reach[p]));
            reach[at] = all;
        }
    }
    reach
}

/// Does `second` depend on `first` through another one?
fn through_a_third(
    nodes: &[Option<Macro>],
    reach: &[BTreeSet<usize>],
    first: usize,
    second: usize,
) -> bool {
    let direct = nodes[second].as_ref().map(|node| &node.after);
    direct.is_some_and(|direct| {
        direct
            .iter()
            .any(|&p| p != first && reach[p].contains(&first))
    })
}

fn fuse(nodes: &mut [Option<Macro>], first: usize, second: usize) {
    let (Some(a), Some(b)) = (nodes[first].take(), nodes[second].take()) else {
        return;
    };
    let mut after: BTreeSet<usize> = a.after.union(&b.after).copied().collect();
    after.remove(&first);
    after.remove(&second);
    // The fused node takes the lower place, so that ties keep the order of the statements.
    let (place, gone) = (first.min(second), first.max(second));
    for node in nodes.iter_mut().flatten() {
        if node.after.remove(&gone) {
            node.after.insert(place);
        }
    }
    nodes[place] = Some(Macro {
        trees: a.trees.into_iter().chain(b.trees).collect(),
        labels: a.labels.union(&b.labels),
        arrays: a.arrays.union(&b.arrays).copied().collect(),
        after,
    });
}

/// The places of the macro nodes, each after those it depends on, low places first.
fn sorted(nodes: &[Option<Macro>]) -> Vec<usize> {
    let mut order = Vec::new();
    let mut done = vec![false; nodes.len()];
    loop {
        let ready = |at: &usize| match &nodes[*at] {
            Some(node) => !done[*at] && node.after.iter().all(|&p| done[p]),
            None => false,
        };
        let Some(next) = (0..nodes.len()).find(ready) else {
            return order;
        };
        done[next] = true;
        order.push(next);
    }
}

fn topological(nodes: Vec<Option<Macro>>) -> Vec<TreeId> {
    let order = sorted(&nodes);
    let trees = order
        .into_iter()
        .filter_map(|at| nodes[at].as_ref().map(|n| n.trees.clone()));
    trees.flatten().collect()
}
