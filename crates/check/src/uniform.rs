//! Decisions that all threads of a block take alike, if they came there together.
//!
//! A value is uniform if it is made of what all threads of a block share: parameters, extents, the block's place in the
//! grid. What a loop changes is uniform where it begins uniform, every way around changes it alike, and all threads leave
//! the loop together, since its exits are uniform: the largest set of such values is looked for, by taking all for uniform
//! and dropping what is not (Coutinho et al., PACT 2011, without their affine values). Values that meet behind a branch
//! never are.

use std::collections::{BTreeMap, BTreeSet};

use warpwright_flow::Inst;

use crate::prove::Prover;
use crate::semantics::{Coordinate, Semantics};
use crate::state::State;
use crate::term::{Args, Head, Term, Terms};
use crate::verdict::{Cause, Reason};

/// What loops carry, at a header: the values that it begins with, and those that come around.
struct Carried {
    header: usize,
    first: Vec<Term>,
    back: Vec<Term>,
}

impl<S: Semantics> Prover<'_, S> {
    /// Do the branches go one way in each warp of which the rewritten function says so, or does the original say it of
    /// the same ones?
    pub(crate) fn said_uniform(&mut self) -> Result<(), Reason> {
        let mut said: BTreeMap<Inst, Vec<usize>> = BTreeMap::new();
        for (number, node) in self.product.nodes.iter().enumerate() {
            let inst = node.decision.and_then(|decision| decision.insts[1]);
            if let Some(inst) = inst.filter(|&inst| self.says_uniform(1, inst)) {
                said.entry(inst).or_default().push(number);
            }
        }
        if said.is_empty() {
            return Ok(());
        }
        let uniform = self.uniform();
        let decision = |number: &usize| self.product.nodes[*number].decision;
        let unknown = said.iter().find(|(_, at)| {
            let mut originals = at.iter().map(|at| decision(at)?.insts[0]);
            let first = originals.next().flatten();
            let is_same = first.is_some_and(|inst| self.says_uniform(0, inst))
                && originals.all(|other| other == first);
            // Threads that come by several ways may be at one instruction together.
            let is_forced = |at: &usize| decision(at).is_some_and(|d| d.forced.is_some());
            let goes_one_way = at.len() == 1 && (uniform[at[0]] || is_forced(&at[0]));
            !is_same && !goes_one_way
        });
        match unknown {
            None => Ok(()),
            Some((&inst, _)) => Err(Reason {
                cause: Cause::Together,
                text: "a branch is said to go one way in each warp, and is not known to".to_owned(),
                original_place: None,
                rewritten_place: Some(self.machine.functions[1].func.place(inst)),
            }),
        }
    }

    fn says_uniform(&self, side: usize, inst: Inst) -> bool {
        self.machine.functions[side].func.is_said_uniform(inst)
    }

    /// For each node: is its decision taken alike by all threads that came there together?
    pub(crate) fn uniform(&mut self) -> Vec<bool> {
        let decisions: Vec<_> = self
            .product
            .nodes
            .iter()
            .map(|node| node.decision)
            .collect();
        let mut conditions: Vec<Args> = vec![Args::new(); decisions.len()];
        let mut states: Vec<State> = vec![State::new(); decisions.len()];
        self.round(&mut |machine, node, state| {
            states[node].clone_from(state);
            for (side, inst) in decisions[node].iter().flat_map(|decision| {
                let insts = decision.insts.iter().enumerate();
                insts.filter_map(|(side, inst)| Some((side, (*inst)?)))
            }) {
                let flips = decisions[node].is_some_and(|decision| decision.flips[side]);
                if let Some(condition) = machine.condition(side, inst, flips) {
                    conditions[node].extend(condition.content);
                }
            }
        });
        let carried = self.carried(&states);
        let exits = self.exits();
        let terms = &self.machine.terms;
        let mut names: BTreeSet<Term> = carried.keys().copied().collect();
        loop {
            let mut known = BTreeMap::new();
            let mut is_uniform = |term| shared(terms, term, &names, &mut known);
            let uniform: Vec<bool> = conditions
                .iter()
                .map(|content| content.iter().all(|&term| is_uniform(term)))
                .collect();
            let mut wrong = Vec::new();
            for &name in &names {
                let Carried {
                    header,
                    first,
                    back,
                } = &carried[&name];
                let is_one = |values: &[Term]| values.windows(2).all(|pair| pair[0] == pair[1]);
                let holds = is_one(first)
                    && is_one(back)
                    && first.iter().chain(back).all(|&value| is_uniform(value))
                    && exits[header].iter().all(|&node| uniform[node]);
                if !holds {
                    wrong.push(name);
                }
            }
            if wrong.is_empty() {
                return uniform;
            }
            for name in wrong {
                names.remove(&name);
            }
        }
    }

    /// The names of what changes around loops.
    fn carried(&self, states: &[State]) -> BTreeMap<Term, Carried> {
        let mut carried = BTreeMap::new();
        let is_loop = |node: &usize| !self.product.is_entered_elsewhere(*node);
        for node in (0..states.len()).filter(is_loop) {
            let state = &states[node];
            for (position, &name) in state.iter().enumerate() {
                let is_own = matches!(self.machine.terms.head(name), Head::Phi(of, _) if of as usize == node);
                if !is_own || carried.contains_key(&name) {
                    continue;
                }
                let (mut first, mut back) = (Vec::new(), Vec::new());
                let preds = self.product.nodes[node].preds.iter();
                for (pred, arriving) in preds.zip(&self.arriving[node]) {
                    let Some(value) = arriving.as_ref().and_then(|state| state.get(position))
                    else {
                        continue;
                    };
                    let is_back = pred.0 as usize >= node;
                    if is_back { &mut back } else { &mut first }.push(*value);
                }
                // What meets where no loop begins goes by the way that a thread came.
                if !back.is_empty() && !first.is_empty() {
                    carried.insert(
                        name,
                        Carried {
                            header: node,
                            first,
                            back,
                        },
                    );
                }
            }
        }
        carried
    }

    /// By header of a loop, its nodes whose decisions may leave it.
    fn exits(&self) -> BTreeMap<usize, Vec<usize>> {
        let nodes = &self.product.nodes;
        let mut exits = BTreeMap::new();
        for (header, node) in nodes.iter().enumerate() {
            let back = node.preds.iter().map(|pred| pred.0 as usize);
            let mut work: Vec<usize> = back.filter(|&pred| pred >= header).collect();
            let mut inside = BTreeSet::from([header]);
            while let Some(at) = work.pop() {
                if inside.insert(at) {
                    work.extend(nodes[at].preds.iter().map(|pred| pred.0 as usize));
                }
            }
            let leaves = |&at: &usize| {
                let mut succs = nodes[at].succs.iter();
                succs.any(|&succ| !inside.contains(&(succ as usize)))
            };
            let leaving = inside.iter().copied().filter(leaves);
            exits.insert(header, leaving.collect());
        }
        exits
    }
}

/// Has a value one number for all threads of a block, where these names have?
fn shared(
    terms: &Terms,
    term: Term,
    names: &BTreeSet<Term>,
    known: &mut BTreeMap<Term, bool>,
) -> bool {
    if let Some(&known) = known.get(&term) {
        return known;
    }
    let is_shared = match terms.head(term) {
        Head::Const(_) | Head::Coordinate(Coordinate::Block(_)) => true,
        // What a device function is given, each thread has of its own.
        Head::Symbol(name) => !terms.text(name).starts_with("argument."),
        Head::Input(name) => is_of_block(terms.text(name)),
        Head::Phi(..) => names.contains(&term),
        // What is read from memory may have been written by others meanwhile.
        Head::Op(..)
        | Head::Add(_)
        | Head::Mul(_)
        | Head::Logic { .. }
        | Head::ZeroExtend(..)
        | Head::SignExtend(..)
        | Head::Extract { .. }
        | Head::Concat
        | Head::Select
        | Head::Not
        | Head::Equal(_)
        | Head::Less(..) => {
            let args = terms.args(term);
            args.iter()
                .all(|&arg| !terms.is_memory(arg) && shared(terms, arg, names, known))
        }
        _ => false,
    };
    known.insert(term, is_shared);
    is_shared
}

/// Is it the same for all threads of a block, by its name?
fn is_of_block(name: &str) -> bool {
    const OF_BLOCK: [&str; 7] = [
        "param.",
        "%ctaid.",
        "%nctaid.",
        "%ntid.",
        "%clusterid.",
        "%nclusterid.",
        "%cluster_",
    ];
    OF_BLOCK.iter().any(|prefix| name.starts_with(prefix))
}
