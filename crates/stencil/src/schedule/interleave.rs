//! Algorithm 3, slice-and-interleave: evaluate early what only needs what is at hand.
//!
//! Paper: section 4. After a source step the schedule has seen certain labels; together with the
//! labels that occur once in the whole DAG they are `L_ilv`. A later minimal expression (all its
//! operands are leaves) that shares a label with the source and needs only labels of `L_ilv` is
//! grown to the maximal expression that still does; if fewer values are alive where the next
//! subtree starts once it is evaluated there, it is sliced out and placed there. Source and target
//! may lie in one tree or in two: the schedule of the whole DAG is one sequence of steps.
//!
//! Growing into an accumulation takes all its children that only need `L_ilv`: the slice is a
//! partial accumulation, and what remains is added to it later. In an ordered accumulation only
//! the next children in order can be taken.
//!
//! Departures: a target must share a label with its source (the paper tries every later
//! expression; those that share nothing were eligible at an earlier source). Of the expressions on
//! the way to the maximal one, the largest that frees most is placed. Where several expressions
//! read a label, none of them frees it alone: their maximal expressions are tried together too. A move is made only if
//! MAXLIVE does not rise, so the result is never worse than the atomic schedule.

use cranelift_entity::SecondaryMap;

use super::dag::{Dag, Kind, Node};
use super::labels::{Label, LabelSet};
use super::straight::{Context, Profile, Step, Value, Values};

/// Which slices are tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Targets {
    /// One target at a time, as in the paper.
    Alone,
    /// Also all later readers of a label together.
    Together,
}

/// Reorders the steps of a valid schedule; it stays valid, and MAXLIVE does not rise.
pub fn interleave(dag: &Dag, steps: &mut Vec<Step>, context: &Context, targets: Targets) {
    let mut state = State::new(dag, std::mem::take(steps), context);
    state.targets = targets;
    let mut source = 0;
    while source < state.steps.len() {
        state.after(source);
        source += 1;
    }
    *steps = state.steps;
}

struct State<'d> {
    dag: &'d Dag,
    context: &'d Context,
    values: Values<'d>,
    steps: Vec<Step>,
    /// By node: the place of each step in `steps`.
    places: SecondaryMap<Node, Vec<usize>>,
    parents: SecondaryMap<Node, Option<(Node, u32)>>,
    uses: SecondaryMap<Node, LabelSet>,
    /// The steps that read each label.
    readers: SecondaryMap<Label, Vec<Step>>,
    /// Labels that are read once and come from memory.
    single: LabelSet,
    roots: SecondaryMap<Label, Option<Node>>,
    /// Labels in registers after the steps before the cursor.
    seen: LabelSet,
    max_live: u32,
    targets: Targets,
}

/// An expression that could be evaluated earlier.
struct Slice {
    /// Its steps that are still to come, by their places, ascending.
    places: Vec<usize>,
    /// The nodes whose values it leaves behind: one, or one for each of several expressions.
    results: Vec<Node>,
}

impl Slice {
    /// Does it follow the cursor already?
    fn is_in_place(&self, cursor: usize) -> bool {
        self.places.iter().zip(cursor + 1..).all(|(&a, b)| a == b)
    }
}

impl<'d> State<'d> {
    fn new(dag: &'d Dag, steps: Vec<Step>, context: &'d Context) -> State<'d> {
        let mut state = State {
            dag,
            context,
            values: Values::new(dag),
            max_live: Profile::new(dag, &steps, context).max_live(),
            steps,
            places: SecondaryMap::new(),
            parents: SecondaryMap::new(),
            uses: SecondaryMap::new(),
            readers: SecondaryMap::new(),
            single: LabelSet::new(),
            roots: SecondaryMap::new(),
            seen: context.live_in.clone(),
            targets: Targets::Together,
        };
        for (node, data) in &dag.nodes {
            let mut labels = LabelSet::new();
            for (child, at) in data.children.iter().zip(0..) {
                labels.add_all(&state.uses[child.node]);
                state.parents[child.node] = Some((node, at));
            }
            if let Some(label) = dag.register_label(node) {
                labels.insert(label);
            }
            state.uses[node] = labels;
        }
        for tree in dag.trees.values() {
            state.roots[tree.target] = Some(tree.root);
        }
        for &step in &state.steps {
            for value in state.values.reads(step) {
                if let Value::Label(label) = value {
                    state.readers[label].push(step);
                }
            }
        }
        for label in dag.labels.keys() {
            let loaded = state.roots[label].is_none() && !context.live_out.contains(label);
            if loaded && state.readers[label].len() == 1 {
                state.single.insert(label);
            }
        }
        state.place();
        state
    }

    fn place(&mut self) {
        for (at, &step) in self.steps.iter().enumerate() {
            let (node, index, count) = match step {
                Step::Compute(node) => (node, 0, 1),
                Step::Accumulate(node, index) => {
                    (node, index as usize, self.dag.nodes[node].children.len())
                }
            };
            self.places[node].resize(count, usize::MAX);
            self.places[node][index] = at;
        }
    }

    fn place_of(&self, step: Step) -> usize {
        let (node, index) = match step {
            Step::Compute(node) => (node, 0),
            Step::Accumulate(node, index) => (node, index as usize),
        };
        self.places[node].get(index).copied().unwrap_or(usize::MAX)
    }

    /// Marks what a step brings into registers.
    fn see(&mut self, at: usize) {
        let step = self.steps[at];
        for value in self.values.reads(step) {
            if let Value::Label(label) = value {
                self.seen.insert(label);
            }
        }
        if let Some(target) = self.values.target(step.node())
            && self.places[step.node()].iter().all(|&place| place <= at)
        {
            self.seen.insert(target);
        }
    }

    /// Tries all targets for the source at a place.
    fn after(&mut self, source: usize) {
        self.see(source);
        let seen_at_source = self.seen.clone();
        let mut cursor = source;
        let labels = self.source_labels(self.steps[source]);
        for label in labels.iter() {
            for target in self.readers_after(label, cursor) {
                // An earlier move may have taken it along.
                if self.place_of(target) > cursor
                    && let Some(slice) = self.best_slice(target, cursor)
                {
                    cursor = self.try_move(&slice, cursor);
                }
            }
            if self.targets == Targets::Alone {
                continue;
            }
            if let Some(slice) = self.joint_slice(label, cursor) {
                cursor = self.try_move(&slice, cursor);
            }
        }
        // The next source is the next step, maybe one that was just placed.
        self.seen = seen_at_source;
    }

    /// The labels of the expression that a step completes or goes on with: for a product, those of
    /// all its factors so far.
    fn source_labels(&self, step: Step) -> LabelSet {
        let leaf = |value: Value| match value {
            Value::Label(label) => Some(label),
            Value::Temp(_) => None,
        };
        let steps = match (step, self.dag.nodes[step.node()].kind) {
            (Step::Accumulate(node, _), Kind::Product(_)) => {
                let until = self.place_of(step);
                let all = (0..self.places[node].len() as u32).map(|at| Step::Accumulate(node, at));
                all.filter(|&s| self.place_of(s) <= until).collect()
            }
            _ => vec![step],
        };
        steps
            .into_iter()
            .flat_map(|step| self.values.reads(step))
            .filter_map(leaf)
            .collect()
    }

    /// The minimal expressions still to come that read a label.
    fn readers_after(&self, label: Label, cursor: usize) -> Vec<Step> {
        let later = |step: &&Step| self.place_of(**step) > cursor && self.is_minimal(**step);
        self.readers[label].iter().filter(later).copied().collect()
    }

    fn is_minimal(&self, step: Step) -> bool {
        self.values
            .operands(step)
            .iter()
            .all(|&node| self.dag.is_operand(node))
    }

    fn at_hand(&self, node: Node) -> bool {
        self.uses[node]
            .iter()
            .all(|l| self.seen.contains(l) || self.single.contains(l))
    }

    /// The expression around a minimal one that frees most values, the largest among equals.
    fn best_slice(&self, target: Step, cursor: usize) -> Option<Slice> {
        let mut best: Option<(i64, Slice)> = None;
        let mut slice = self.minimal(target, cursor);
        while let Some(grown) = slice {
            slice = self.grow(&grown, cursor);
            let change = self.change(&grown, cursor);
            if change < 0
                && !grown.is_in_place(cursor)
                && best.as_ref().is_none_or(|(least, _)| change <= *least)
            {
                best = Some((change, grown));
            }
        }
        best.map(|(_, slice)| slice)
    }

    /// The maximal expressions around all later readers of a label together: where several trees
    /// read it, it dies only after all of them.
    fn joint_slice(&self, label: Label, cursor: usize) -> Option<Slice> {
        let mut joint = Slice {
            places: Vec::new(),
            results: Vec::new(),
        };
        for target in self.readers_after(label, cursor) {
            let mut slice = self.minimal(target, cursor);
            while let Some(grown) = slice {
                slice = self.grow(&grown, cursor);
                if slice.is_none() {
                    joint.places.extend(grown.places);
                    joint.results.extend(grown.results);
                }
            }
        }
        joint.places.sort_unstable();
        joint.places.dedup();
        joint.results.sort();
        joint.results.dedup();
        let frees = self.change(&joint, cursor) < 0 && !joint.is_in_place(cursor);
        frees.then_some(joint)
    }

    fn minimal(&self, target: Step, cursor: usize) -> Option<Slice> {
        match target {
            Step::Compute(node) if self.at_hand(node) => Some(Slice {
                places: self.pending(node, cursor),
                results: vec![node],
            }),
            Step::Compute(_) => None,
            Step::Accumulate(node, index) => self.partial(node, index, cursor),
        }
    }

    /// The steps of a subtree that are still to come.
    fn pending(&self, root: Node, cursor: usize) -> Vec<usize> {
        let nodes = self.dag.subtree(root).into_iter();
        let places = nodes.flat_map(|node| self.places[node].iter().copied());
        let mut places: Vec<usize> = places.filter(|&place| place > cursor).collect();
        places.sort_unstable();
        places
    }

    /// All children of an accumulation that can be taken up now, if `index` is among them.
    fn partial(&self, node: Node, index: u32, cursor: usize) -> Option<Slice> {
        let children = &self.dag.nodes[node].children;
        let mut places = Vec::new();
        let mut taken = false;
        for (at, child) in children.iter().enumerate() {
            let place = self.places[node][at];
            if place <= cursor {
                continue;
            }
            if !self.at_hand(child.node) {
                if self.dag.is_ordered(node) {
                    break;
                }
                continue;
            }
            taken |= at == index as usize;
            places.push(place);
            places.extend(self.pending(child.node, cursor));
        }
        places.sort_unstable();
        taken.then_some(Slice {
            places,
            results: vec![node],
        })
    }

    /// The expression with its parent, if that too only needs what is at hand.
    fn grow(&self, slice: &Slice, cursor: usize) -> Option<Slice> {
        let complete = |place: &usize| *place <= cursor || slice.places.contains(place);
        let &result = slice.results.first()?;
        if !self.places[result].iter().all(complete) {
            return None;
        }
        let (mut parent, mut index) = self.parents[result]?;
        if self.dag.nodes[parent].kind == Kind::Multiply {
            (parent, index) = self.parents[parent]?;
        }
        match self.dag.is_accumulation(parent) {
            true => self.partial(parent, index, cursor),
            false if self.at_hand(parent) => Some(Slice {
                places: self.pending(parent, cursor),
                results: vec![parent],
            }),
            false => None,
        }
    }

    /// How many more values are alive after the slice, evaluated at the cursor, than without it.
    fn change(&self, slice: &Slice, cursor: usize) -> i64 {
        let inside = |place: usize| slice.places.binary_search(&place).is_ok();
        let mut ended: Vec<Value> = Vec::new();
        for &place in &slice.places {
            for value in self.values.reads(self.steps[place]) {
                let alive = match value {
                    Value::Label(label) => {
                        self.seen.contains(label) && !self.context.live_out.contains(label)
                    }
                    Value::Temp(node) => self.places[node].iter().any(|&p| p <= cursor),
                };
                let stays = match value {
                    Value::Label(label) => self.readers[label].iter().any(|&reader| {
                        let at = self.place_of(reader);
                        at > cursor && !inside(at)
                    }),
                    Value::Temp(_) => false,
                };
                if alive && !stays {
                    ended.push(value);
                }
            }
        }
        ended.sort_unstable();
        ended.dedup();
        let left = slice
            .results
            .iter()
            .map(|&node| self.leaves(node, &inside, cursor));
        left.sum::<i64>() - ended.len() as i64
    }

    /// Does the value of a node, once the slice is evaluated, take a register that it did not?
    fn leaves(&self, node: Node, inside: &dyn Fn(usize) -> bool, cursor: usize) -> i64 {
        let places = &self.places[node];
        let started = places.iter().any(|&p| p <= cursor);
        let complete = places.iter().all(|&p| p <= cursor || inside(p));
        let consumed = |label: Label| {
            let read = !self.readers[label].is_empty();
            let kept = self.context.live_out.contains(label);
            complete && !kept && !read
        };
        let wanted = match self.values.target(node) {
            Some(target) => !consumed(target),
            None => !complete || !self.is_consumed_inside(node, inside),
        };
        i64::from(wanted) - i64::from(started)
    }

    fn is_consumed_inside(&self, node: Node, inside: &dyn Fn(usize) -> bool) -> bool {
        let Some((mut parent, mut index)) = self.parents[node] else {
            return false;
        };
        if self.dag.nodes[parent].kind == Kind::Multiply {
            let Some(above) = self.parents[parent] else {
                return false;
            };
            (parent, index) = above;
        }
        let at = if self.dag.is_accumulation(parent) {
            index as usize
        } else {
            0
        };
        self.places[parent]
            .get(at)
            .is_some_and(|&place| inside(place))
    }

    /// Moves a slice to the cursor, unless that raises MAXLIVE. Returns the new cursor.
    fn try_move(&mut self, slice: &Slice, cursor: usize) -> usize {
        let mut steps = Vec::with_capacity(self.steps.len());
        steps.extend_from_slice(&self.steps[..=cursor]);
        steps.extend(slice.places.iter().map(|&place| self.steps[place]));
        for (place, &step) in self.steps.iter().enumerate().skip(cursor + 1) {
            if slice.places.binary_search(&place).is_err() {
                steps.push(step);
            }
        }
        let max_live = Profile::new(self.dag, &steps, self.context).max_live();
        if max_live > self.max_live {
            return cursor;
        }
        self.max_live = max_live;
        self.steps = steps;
        self.place();
        let end = cursor + slice.places.len();
        for at in cursor + 1..=end {
            self.see(at);
        }
        end
    }
}
