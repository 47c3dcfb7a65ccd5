//! Scheduling all trees of one kernel: lines 13 to 17 of algorithm 2, then algorithm 3.
//!
//! Paper: section 3.4. The trees are evaluated in a given order, each by algorithm 1 in the
//! context that the trees before and after it make: a label is alive before a tree if it was used
//! or written before and is read by the tree or after it.

use super::dag::{Dag, Kind, Node, TreeId};
use super::interleave::{Targets, interleave};
use super::labels::LabelSet;
use super::order_trees::order_trees;
use super::schedule_tree::{Options, Scheduler, Statistics};
use super::straight::{Context, Profile, Step};

/// A schedule of a whole kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct Schedule {
    /// The steps, in order.
    pub steps: Vec<Step>,
    /// The order of the trees before interleaving.
    pub trees: Vec<TreeId>,
    /// MAXLIVE with every tree evaluated atomically.
    pub atomic: u32,
    /// MAXLIVE of the steps.
    pub max_live: u32,
    /// What the search for orders did.
    pub statistics: Statistics,
}

/// The schedule with the smallest MAXLIVE over the trees in the order of [`order_trees`] and in the
/// order of the input (both are valid; the heuristic is not always better).
pub fn best_schedule(dag: &Dag, options: Options) -> Schedule {
    let fused = schedule(dag, &order_trees(dag), options);
    let written: Vec<TreeId> = dag.trees.keys().collect();
    if written == fused.trees {
        return fused;
    }
    let written = schedule(dag, &written, options);
    match written.max_live < fused.max_live {
        true => written,
        false => fused,
    }
}

/// Schedules the trees `order` (all of the DAG, in a valid order).
pub fn schedule(dag: &Dag, order: &[TreeId], options: Options) -> Schedule {
    let (mut steps, statistics) = atomic(dag, order, options);
    let context = Context::default();
    let atomic = Profile::new(dag, &steps, &context).max_live();
    let mut alone = steps.clone();
    interleave(dag, &mut steps, &context, Targets::Together);
    interleave(dag, &mut alone, &context, Targets::Alone);
    let max_live = |steps: &[Step]| Profile::new(dag, steps, &context).max_live();
    if max_live(&alone) < max_live(&steps) {
        steps = alone;
    }
    Schedule {
        max_live: Profile::new(dag, &steps, &context).max_live(),
        steps,
        trees: order.to_vec(),
        atomic,
        statistics,
    }
}

/// The contexts of the trees in their order.
pub fn contexts(dag: &Dag, order: &[TreeId]) -> Vec<Context> {
    let uses: Vec<LabelSet> = order.iter().map(|&t| dag.uses(dag.trees[t].root)).collect();
    let mut after = vec![LabelSet::new(); order.len() + 1];
    for at in (0..order.len()).rev() {
        after[at] = after[at + 1].union(&uses[at]);
    }
    let mut seen = LabelSet::new();
    let mut contexts = Vec::new();
    for (at, &tree) in order.iter().enumerate() {
        let live_in = seen.intersection(&after[at]);
        seen.add_all(&uses[at]);
        let live_out = seen.intersection(&after[at + 1]);
        seen.insert(dag.trees[tree].target);
        contexts.push(Context { live_in, live_out });
    }
    contexts
}

/// The steps of the trees, each evaluated atomically by algorithm 1.
pub fn atomic(dag: &Dag, order: &[TreeId], options: Options) -> (Vec<Step>, Statistics) {
    let mut scheduler = Scheduler::new(dag, options);
    let mut steps = Vec::new();
    for (&tree, context) in order.iter().zip(contexts(dag, order)) {
        scheduler.schedule(dag.trees[tree].root, &context, &mut steps);
    }
    (steps, scheduler.statistics())
}

impl Schedule {
    /// The trees one after the other, each evaluated as it was written: what is compared with.
    pub fn as_written(dag: &Dag) -> Schedule {
        let trees: Vec<TreeId> = dag.trees.keys().collect();
        let mut steps = Vec::new();
        for &tree in &trees {
            steps.extend(written(dag, dag.trees[tree].root));
        }
        let max_live = Profile::new(dag, &steps, &Context::default()).max_live();
        Schedule {
            steps,
            trees,
            atomic: max_live,
            max_live,
            statistics: Statistics::default(),
        }
    }
}

/// The steps of a subtree in written order.
fn written(dag: &Dag, root: Node) -> Vec<Step> {
    enum Task {
        Visit(Node),
        Do(Step),
    }
    let mut steps = Vec::new();
    let mut stack = vec![Task::Visit(root)];
    while let Some(task) = stack.pop() {
        let node = match task {
            Task::Do(step) => {
                steps.push(step);
                continue;
            }
            Task::Visit(node) => node,
        };
        let children = &dag.nodes[node].children;
        let mut tasks = Vec::new();
        for (child, at) in children.iter().zip(0..) {
            tasks.push(Task::Visit(child.node));
            if dag.is_accumulation(node) {
                tasks.push(Task::Do(Step::Accumulate(node, at)));
            }
        }
        if matches!(dag.nodes[node].kind, Kind::Operator(_)) {
            tasks.push(Task::Do(Step::Compute(node)));
        }
        stack.extend(tasks.into_iter().rev());
    }
    steps
}
