//! A schedule as straight-line code, and its register pressure.
//!
//! A label is loaded right before the first step that reads it and stays in its register up to
//! its last use: the spill-free model of section 3.1. A step reads its operands and writes its
//! result; the result may take the register of an operand that ends there, as in `r1 <- r2 op r3`.
//! A stored value leaves its register when it is complete.
//!
//! MAXLIVE is the largest number of values alive right before or right after any step. The
//! recursive numbers of [`super::schedule_tree`] promise it; here it is counted.

use cranelift_entity::SecondaryMap;

use super::dag::{Child, Dag, Kind, Node};
use super::labels::{Label, LabelSet};

/// One operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    /// Evaluates an operator whose operands are there.
    Compute(Node),
    /// Takes one child of an accumulation, by its index, into the accumulator. The first such step
    /// of a node starts the accumulator.
    Accumulate(Node, u32),
}

/// A value that occupies a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Value {
    /// A label: a loaded value or the value of a tree.
    Label(Label),
    /// The value of an inner node.
    Temp(Node),
}

/// Labels alive around a piece of code.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Context {
    /// In registers before it.
    pub live_in: LabelSet,
    /// In registers after it.
    pub live_out: LabelSet,
}

/// From nodes to values.
#[derive(Clone, Debug)]
pub struct Values<'d> {
    dag: &'d Dag,
    targets: SecondaryMap<Node, Option<Label>>,
}

impl Step {
    /// The node whose value the step computes or adds to.
    pub fn node(self) -> Node {
        match self {
            Step::Compute(node) | Step::Accumulate(node, _) => node,
        }
    }
}

impl<'d> Values<'d> {
    /// For a DAG.
    pub fn new(dag: &'d Dag) -> Values<'d> {
        let mut targets = SecondaryMap::new();
        for tree in dag.trees.values() {
            targets[tree.root] = Some(tree.target);
        }
        Values { dag, targets }
    }

    /// The register value of a node; `None` for free operands.
    pub fn of(&self, node: Node) -> Option<Value> {
        match self.dag.nodes[node].kind {
            Kind::Leaf(_) => self.dag.register_label(node).map(Value::Label),
            Kind::Literal(_) | Kind::Multiply => None,
            _ => Some(self.targets[node].map_or(Value::Temp(node), Value::Label)),
        }
    }

    /// The label that a node is the root for.
    pub fn target(&self, node: Node) -> Option<Label> {
        self.targets[node]
    }

    /// The nodes that a step reads, the accumulator aside.
    pub fn operands(&self, step: Step) -> Vec<Node> {
        let nodes = &self.dag.nodes;
        let all = |children: &[Child]| children.iter().map(|c| c.node).collect();
        match step {
            Step::Compute(node) => all(&nodes[node].children),
            Step::Accumulate(node, at) => {
                let child = nodes[node].children[at as usize].node;
                match nodes[child].kind {
                    Kind::Multiply => all(&nodes[child].children),
                    _ => vec![child],
                }
            }
        }
    }

    /// The values that a step reads, the accumulator aside.
    pub fn reads(&self, step: Step) -> Vec<Value> {
        let mut found: Vec<Value> = self
            .operands(step)
            .into_iter()
            .filter_map(|node| self.of(node))
            .collect();
        found.sort_unstable();
        found.dedup();
        found
    }
}

/// Where a value lives: step numbers, inclusive. It is alive after `first` (before it already, if
/// it is loaded there) and before `last`.
#[derive(Clone, Copy, Debug)]
struct Range {
    first: usize,
    loaded: bool,
    last_write: usize,
    last: usize,
}

/// The pressure of a schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    /// Values alive right before each step, its operands included.
    pub before: Vec<u32>,
    /// Values alive right after each step, its result included.
    pub after: Vec<u32>,
}

impl Profile {
    /// Counts the pressure of a schedule in a context.
    pub fn new(dag: &Dag, steps: &[Step], context: &Context) -> Profile {
        let ranges = ranges(&Values::new(dag), steps, context);
        // Events at twice the step number: before the step, and one more: after it.
        let mut change = vec![0_i64; 2 * steps.len() + 2];
        for range in ranges {
            let start = 2 * range.first + usize::from(!range.loaded);
            let end = (2 * range.last + 1).max(match range.loaded {
                true => 0,
                false => 2 * range.last_write + 2,
            });
            change[start] += 1;
            change[end.min(2 * steps.len() + 1)] -= 1;
        }
        let mut live = 0;
        let mut counts = change.iter().map(|c| {
            live += c;
            u32::try_from(live).unwrap_or(0)
        });
        let mut profile = Profile {
            before: Vec::with_capacity(steps.len()),
            after: Vec::with_capacity(steps.len()),
        };
        for _ in steps {
            profile.before.extend(counts.next());
            profile.after.extend(counts.next());
        }
        profile
    }

    /// The largest number of values alive at any point.
    pub fn max_live(&self) -> u32 {
        self.before
            .iter()
            .chain(&self.after)
            .copied()
            .max()
            .unwrap_or(0)
    }
}

fn ranges(
    values: &Values,
    steps: &[Step],
    context: &Context,
) -> impl Iterator<Item = Range> + use<> {
    let mut labels: SecondaryMap<Label, Option<Range>> = SecondaryMap::new();
    let mut temps: SecondaryMap<Node, Option<Range>> = SecondaryMap::new();
    let at = |first: usize, loaded: bool| Range {
        first,
        loaded,
        last_write: first,
        last: first,
    };
    for label in context.live_in.iter() {
        labels[label] = Some(at(0, true));
    }
    for (number, &step) in steps.iter().enumerate() {
        let mut slot = |value: Value, loaded: bool| {
            let slot = match value {
                Value::Label(label) => &mut labels[label],
                Value::Temp(node) => &mut temps[node],
            };
            let range = slot.get_or_insert(at(number, loaded));
            range.last = number;
            if !loaded {
                range.last_write = number;
            }
        };
        for node in values.operands(step) {
            if let Some(value) = values.of(node) {
                slot(value, true);
            }
        }
        if let Some(value) = values.of(step.node()) {
            slot(value, false);
        }
    }
    for label in context.live_out.iter() {
        if let Some(range) = &mut labels[label] {
            range.last = steps.len();
        }
    }
    let labels: Vec<Range> = labels.values().flatten().copied().collect();
    let temps: Vec<Range> = temps.values().flatten().copied().collect();
    labels.into_iter().chain(temps)
}
