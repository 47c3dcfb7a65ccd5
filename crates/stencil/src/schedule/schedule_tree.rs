//! Algorithm 1, Schedule-Tree: the order of evaluation within a tree with data sharing.
//!
//! Paper: sections 3.2 and 3.3. `su'(n, in, out)` is the largest number of values alive while the
//! subtree of `n` is evaluated atomically, with the labels `in` alive before it and `out` after.
//!
//! Departures:
//! - the text leaves the values that wait for their siblings out of `in(n2)`, which would give 1
//!   for `b * c`; here an operand is alive up to the operation, as equation 1 has it. An operand
//!   that is a leaf is loaded at the operation itself, never before a sibling;
//! - all labels of a context that the subtree does not use cost one register each and change
//!   nothing: the plan is made, and remembered, for the minimal context (section 3.3,
//!   'Memoization');
//! - up to [`Options::exact`] children are ordered together, exactly; beyond it clusters and the
//!   theorems decide ([`super::clusters`]);
//! - where the order as written is within `d` of the best one found, it is taken: it sweeps
//!   through memory.
//!
//! Requires: a valid DAG. The steps compute each value by the same operations as the tree; ordered
//! accumulations keep their order, so results are bit-identical to the tree's.

use std::collections::HashMap;
use std::rc::Rc;

use cranelift_entity::SecondaryMap;

use super::clusters::{self, Effect};
use super::dag::{Dag, Kind, Node};
use super::labels::LabelSet;
use super::orders::{MAX_ITEMS, best_order};
use super::partition::{Criterion, Part, partition};
use super::straight::{Context, Step};

/// The knobs of section 3.3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// An order within `d` of the lower bound is good enough.
    pub d: u32,
    /// Clusters of more subtrees are partitioned; at most [`MAX_ITEMS`].
    pub largest_cluster: usize,
    /// Most subtrees (or groups of them) in a partition.
    pub partition: usize,
    /// Up to so many children are ordered together, whatever they share; at most [`MAX_ITEMS`].
    pub exact: usize,
    /// Evaluations that the search for orders may try in one tree; greedy beyond.
    pub threshold: u64,
    /// Remember plans by minimal context. Off only to show what it saves.
    pub memoize: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            d: 1,
            largest_cluster: 8,
            partition: 7,
            exact: 8,
            threshold: 100_000,
            memoize: true,
        }
    }
}

/// What the search did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Plans asked for.
    pub asked: u64,
    /// Plans made.
    pub made: u64,
    /// Trees whose threshold was reached.
    pub exhausted: u64,
}

/// The order of a node's children in one context.
#[derive(Clone, Debug)]
struct Plan {
    peak: u32,
    order: Rc<[u32]>,
}

/// A context that holds labels of the subtree only.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Minimal {
    node: Node,
    live_in: LabelSet,
    live_out: LabelSet,
    /// An operand of an accumulation that starts the accumulator: its value stays.
    starts: bool,
}

/// Schedules the trees of a DAG; plans are remembered across trees.
pub struct Scheduler<'d> {
    dag: &'d Dag,
    options: Options,
    uses: SecondaryMap<Node, LabelSet>,
    memo: HashMap<Minimal, Plan>,
    budget: u64,
    statistics: Statistics,
}

impl<'d> Scheduler<'d> {
    /// For all trees of a DAG.
    pub fn new(dag: &'d Dag, options: Options) -> Scheduler<'d> {
        let mut uses: SecondaryMap<Node, LabelSet> = SecondaryMap::new();
        for (node, data) in &dag.nodes {
            let mut labels = LabelSet::new();
            for child in &data.children {
                labels.add_all(&uses[child.node]);
            }
            if let Some(label) = dag.register_label(node) {
                labels.insert(label);
            }
            uses[node] = labels;
        }
        let options = Options {
            largest_cluster: options.largest_cluster.clamp(2, MAX_ITEMS),
            partition: options.partition.clamp(2, MAX_ITEMS),
            exact: options.exact.min(MAX_ITEMS),
            ..options
        };
        Scheduler {
            dag,
            options,
            uses,
            memo: HashMap::new(),
            budget: options.threshold,
            statistics: Statistics::default(),
        }
    }

    /// What the search did so far.
    pub fn statistics(&self) -> Statistics {
        self.statistics
    }

    /// `uses(n)`: the labels in a subtree that take registers.
    pub fn uses(&self, node: Node) -> &LabelSet {
        &self.uses[node]
    }

    /// `su'(root, in, out)`.
    pub fn su(&mut self, root: Node, context: &Context) -> u32 {
        self.renew();
        let minimal = self.minimal(root, &context.live_in, &context.live_out, true);
        let outside = context.live_in.difference(&self.uses[root]);
        self.plan(&minimal).peak + outside.len()
    }

    /// Appends the steps of a tree.
    pub fn schedule(&mut self, root: Node, context: &Context, steps: &mut Vec<Step>) {
        self.renew();
        let minimal = self.minimal(root, &context.live_in, &context.live_out, true);
        self.emit(&minimal, steps);
        self.statistics.exhausted += u64::from(self.budget == 0);
    }

    fn renew(&mut self) {
        self.budget = self.options.threshold;
    }

    fn minimal(&self, node: Node, before: &LabelSet, after: &LabelSet, starts: bool) -> Minimal {
        Minimal {
            node,
            live_in: before.intersection(&self.uses[node]),
            live_out: after.intersection(&self.uses[node]),
            starts,
        }
    }

    fn plan(&mut self, minimal: &Minimal) -> Plan {
        self.statistics.asked += 1;
        if let Some(plan) = self.memo.get(minimal) {
            return plan.clone();
        }
        self.statistics.made += 1;
        let plan = match self.dag.nodes[minimal.node].kind {
            Kind::Leaf(_) | Kind::Literal(_) => self.plan_operand(minimal),
            Kind::Multiply | Kind::Operator(_) => self.plan_operator(minimal),
            Kind::Sum(_) | Kind::Product(_) => self.plan_accumulation(minimal),
        };
        if self.options.memoize {
            self.memo.insert(minimal.clone(), plan.clone());
        }
        plan
    }

    /// A leaf that is taken into an accumulator.
    fn plan_operand(&self, minimal: &Minimal) -> Plan {
        let loaded = self.uses[minimal.node].len();
        let after = minimal.live_out.len() + u32::from(minimal.starts);
        Plan {
            peak: loaded.max(after),
            order: Rc::default(),
        }
    }

    /// The lower bound of section 3.3, plus `d`; 0 where there is no context to compare with.
    fn enough(&mut self, minimal: &Minimal) -> u32 {
        if minimal.live_in.is_empty() && minimal.live_out.is_empty() {
            return 0;
        }
        let none = LabelSet::new();
        let alone = self.minimal(minimal.node, &none, &none, minimal.starts);
        self.plan(&alone).peak + self.options.d
    }

    /// Operands that are subtrees wait for each other; those that are leaves come last.
    fn plan_operator(&mut self, minimal: &Minimal) -> Plan {
        let group = Group::of_operator(self, minimal);
        let waiting = group.children.len() as u32;
        let result = match self.dag.nodes[minimal.node].kind {
            Kind::Multiply => u32::from(minimal.starts),
            _ => 1,
        };
        let before = group.live_out.len() + waiting;
        let after = minimal.live_out.len() + result;
        let least = before.max(after);
        let (mut order, mut peak) = (Vec::new(), least);
        if waiting > 0 {
            let enough = self.enough(minimal).max(least);
            let found = group.best(self, enough);
            (order, peak) = (found.order, found.peak.max(least));
        }
        let order = order.iter().map(|&at| group.indices[at as usize]).collect();
        Plan { peak, order }
    }

    fn plan_accumulation(&mut self, minimal: &Minimal) -> Plan {
        let group = Group::of_accumulation(self, minimal);
        let count = group.children.len();
        let written: Vec<u32> = (0..count as u32).collect();
        if self.dag.is_ordered(minimal.node) {
            let peak = group.cost_of(self, &written);
            let order = written.into();
            return Plan { peak, order };
        }
        if count <= self.options.exact {
            let enough = self.enough(minimal);
            let found = group.best(self, enough);
            let order = found.order.into();
            let peak = found.peak;
            return Plan { peak, order };
        }
        let order = self.order_clusters(&group);
        let peak = group.cost_of(self, &order);
        let peak_written = group.cost_of(self, &written);
        match peak_written <= peak + self.options.d {
            true => Plan {
                peak: peak_written,
                order: written.into(),
            },
            false => Plan {
                peak,
                order: order.into(),
            },
        }
    }

    /// Lines 2 to 12 of algorithm 1.
    fn order_clusters(&mut self, group: &Group) -> Vec<u32> {
        let passthrough = group.live_in.intersection(&group.live_out);
        let clusters = clusters::maximal_clusters(&group.uses, &passthrough);
        let mut orders = Vec::new();
        let mut effects = Vec::new();
        for cluster in &clusters {
            let (order, effect) = self.order_cluster(group, cluster);
            orders.push(order);
            effects.push(effect);
        }
        let (sequence, _) = clusters::sequence(&effects);
        sequence
            .into_iter()
            .flat_map(|at| orders[at].clone())
            .collect()
    }

    /// A cluster by itself: the best order of its members and what it does to the registers.
    fn order_cluster(&mut self, group: &Group, members: &[u32]) -> (Vec<u32>, Effect) {
        let part = group.only(members);
        let size = members.len();
        let order = match size {
            1 => vec![0],
            _ if size <= self.options.largest_cluster => part.best(self, 0).order,
            _ => self.order_partitions(&part),
        };
        let (mut first, mut later) = (0, 0);
        for (at, &child) in order.iter().enumerate() {
            let before: Vec<u32> = order[..at].to_vec();
            let cost = part.cost(self, &before, child, at == 0);
            first = first.max(i64::from(cost));
            let cost = match at {
                0 => part.cost(self, &before, child, false) + 1,
                _ => cost,
            };
            later = later.max(i64::from(cost));
        }
        let base = i64::from(part.live_in.len());
        let effect = Effect {
            rise_as_first: first - base,
            rise: later - base - 1,
            change: i64::from(part.live_out.len()) - base,
        };
        let order = order.iter().map(|&at| members[at as usize]).collect();
        (order, effect)
    }

    fn order_partitions(&mut self, part: &Group) -> Vec<u32> {
        let released = part.all_uses().difference(&part.live_out);
        let members: Vec<u32> = (0..part.children.len() as u32).collect();
        let mut best: Option<(u32, Vec<u32>)> = None;
        for criterion in [Criterion::Affinity, Criterion::Release] {
            let most = self.options.partition;
            let nested = partition(&members, &part.uses, &released, most, criterion);
            let order = self.order_part(part, &nested, &[]);
            let peak = part.cost_of(self, &order);
            if best.as_ref().is_none_or(|(least, _)| peak < *least) {
                best = Some((peak, order));
            }
        }
        best.map_or(members, |(_, order)| order)
    }

    /// The members of a partition in their best order, after `before`.
    fn order_part(&mut self, group: &Group, part: &Part, before: &[u32]) -> Vec<u32> {
        let Part::Group(parts) = part else {
            return part.members();
        };
        let mut budget = self.budget;
        let found = best_order(parts.len(), 0, &mut budget, &mut |set, at, budget| {
            let mut before = before.to_vec();
            let earlier = (0..parts.len()).filter(|&other| set >> other & 1 != 0);
            before.extend(earlier.flat_map(|other| parts[other].members()));
            self.budget = *budget;
            let order = self.order_part(group, &parts[at], &before);
            *budget = self.budget;
            group.cost_after(self, before, &order)
        });
        self.budget = budget;
        let mut order = Vec::new();
        let mut before = before.to_vec();
        for at in found.order {
            let next = self.order_part(group, &parts[at as usize], &before);
            before.extend(&next);
            order.extend(next);
        }
        order
    }

    fn emit(&mut self, minimal: &Minimal, steps: &mut Vec<Step>) {
        let node = minimal.node;
        let accumulates = self.dag.is_accumulation(node);
        let plan = self.plan(minimal);
        let group = match accumulates {
            true => Group::of_accumulation(self, minimal),
            false => Group::of_operator(self, minimal),
        };
        let mut before = Vec::new();
        for &index in plan.order.iter() {
            let Some(at) = group.indices.iter().position(|&i| i == index) else {
                continue;
            };
            let starts = !accumulates || before.is_empty();
            let child = group.child_context(self, &before, at as u32, starts);
            if !self.dag.is_operand(child.node) {
                self.emit(&child, steps);
            }
            if accumulates {
                steps.push(Step::Accumulate(node, index));
            }
            before.push(at as u32);
        }
        if !accumulates && self.dag.nodes[node].kind != Kind::Multiply {
            steps.push(Step::Compute(node));
        }
    }
}

/// Children that are to be ordered, in a minimal context.
struct Group {
    children: Vec<Node>,
    /// Their places among the node's children.
    indices: Vec<u32>,
    uses: Vec<LabelSet>,
    live_in: LabelSet,
    /// What must be alive after the last of them: for an operator, its leaf operands too.
    live_out: LabelSet,
    /// They are taken into an accumulator one by one; otherwise all results wait.
    accumulates: bool,
}

impl Group {
    fn of_operator(scheduler: &Scheduler, minimal: &Minimal) -> Group {
        let dag = scheduler.dag;
        let all = dag.nodes[minimal.node].children.iter().map(|c| c.node);
        let mut live_out = minimal.live_out.clone();
        for leaf in all.clone().filter_map(|node| dag.register_label(node)) {
            live_out.insert(leaf);
        }
        let subtrees = all.zip(0..).filter(|&(node, _)| !dag.is_operand(node));
        let (children, indices): (Vec<Node>, Vec<u32>) = subtrees.unzip();
        Group {
            uses: children
                .iter()
                .map(|&node| scheduler.uses[node].clone())
                .collect(),
            children,
            indices,
            live_in: minimal.live_in.clone(),
            live_out,
            accumulates: false,
        }
    }

    fn of_accumulation(scheduler: &Scheduler, minimal: &Minimal) -> Group {
        let children = &scheduler.dag.nodes[minimal.node].children;
        let children: Vec<Node> = children.iter().map(|c| c.node).collect();
        Group {
            uses: children
                .iter()
                .map(|&node| scheduler.uses[node].clone())
                .collect(),
            indices: (0..children.len() as u32).collect(),
            children,
            live_in: minimal.live_in.clone(),
            live_out: minimal.live_out.clone(),
            accumulates: true,
        }
    }

    /// Some of the children, by themselves: no other label is in their context.
    fn only(&self, members: &[u32]) -> Group {
        let pick = |at: &u32| self.uses[*at as usize].clone();
        let uses: Vec<LabelSet> = members.iter().map(pick).collect();
        let mut all = LabelSet::new();
        uses.iter().for_each(|labels| all.add_all(labels));
        Group {
            children: members
                .iter()
                .map(|&at| self.children[at as usize])
                .collect(),
            indices: members.to_vec(),
            uses,
            live_in: self.live_in.intersection(&all),
            live_out: self.live_out.intersection(&all),
            accumulates: self.accumulates,
        }
    }

    fn all_uses(&self) -> LabelSet {
        let mut all = LabelSet::new();
        self.uses.iter().for_each(|labels| all.add_all(labels));
        all
    }

    /// Labels alive before a child and after it, in this group.
    fn around(&self, before: &[u32], child: u32) -> (LabelSet, LabelSet) {
        let mut live_in = self.live_in.clone();
        let mut live_out = self.live_out.clone();
        let mut later = vec![true; self.children.len()];
        later[child as usize] = false;
        for &at in before {
            live_in.add_all(&self.uses[at as usize]);
            later[at as usize] = false;
        }
        for (uses, _) in self.uses.iter().zip(later).filter(|(_, later)| *later) {
            live_out.add_all(uses);
        }
        (live_in, live_out)
    }

    fn child_context(
        &self,
        scheduler: &Scheduler,
        before: &[u32],
        child: u32,
        starts: bool,
    ) -> Minimal {
        let (live_in, live_out) = self.around(before, child);
        let node = self.children[child as usize];
        scheduler.minimal(node, &live_in, &live_out, starts)
    }

    /// Values alive at most while a child is evaluated after `before`. `starts`: no accumulator yet.
    fn cost(&self, scheduler: &mut Scheduler, before: &[u32], child: u32, starts: bool) -> u32 {
        let (live_in, live_out) = self.around(before, child);
        let node = self.children[child as usize];
        let starts_value = starts || !self.accumulates;
        let minimal = scheduler.minimal(node, &live_in, &live_out, starts_value);
        let passing = live_in
            .intersection(&live_out)
            .difference(&self.uses[child as usize]);
        let held = match self.accumulates {
            true => u32::from(!starts),
            false => before.len() as u32,
        };
        // What is alive before and has its last use elsewhere before this child is gone already.
        scheduler.plan(&minimal).peak + passing.len() + held
    }

    fn cost_after(&self, scheduler: &mut Scheduler, mut before: Vec<u32>, order: &[u32]) -> u32 {
        let mut peak = 0;
        for &child in order {
            let starts = before.is_empty();
            peak = self.cost(scheduler, &before, child, starts).max(peak);
            before.push(child);
        }
        peak
    }

    fn cost_of(&self, scheduler: &mut Scheduler, order: &[u32]) -> u32 {
        self.cost_after(scheduler, Vec::new(), order)
    }

    fn best(&self, scheduler: &mut Scheduler, enough: u32) -> super::orders::Ordered {
        let count = self.children.len();
        let mut budget = scheduler.budget;
        let found = best_order(count, enough, &mut budget, &mut |set, child, budget| {
            let before = (0..count as u32).filter(|&at| set >> at & 1 != 0);
            let before: Vec<u32> = before.collect();
            scheduler.budget = *budget;
            let cost = self.cost(scheduler, &before, child as u32, set == 0);
            *budget = scheduler.budget;
            cost
        });
        scheduler.budget = budget;
        found
    }
}
