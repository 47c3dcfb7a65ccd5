//! The proof: rounds over the product graph until the assumptions about loops hold, then a last
//! round that compares every observable.

use std::collections::{BTreeMap, BTreeSet};

use warpwright_flow::{Block, Inst, Transfer, Value};

use crate::facts::Facts;
use crate::guided::{self, Meeting};
use crate::induction::{Arrivals, Induction};
use crate::inflight;
use crate::machine::{Function, Machine};
use crate::product::{Pairing, Place, Product, Run, Skeleton};
use crate::semantics::{Name, Semantics, Variable};
use crate::slots::{Slots, Threads};
use crate::state::{Classes, State, join};
use crate::straight::Straightened;
use crate::term::{Head, Side, Term, Terms};
use crate::verdict::{Cause, Reason, Verdict};

/// Rounds after which the checker gives up. Each refines what is known of some loop, so nested
/// loops need a few; hundreds mean something degenerate.
const MAX_ROUNDS: usize = 300;

/// Terms after which it gives up: some gigabytes.
const MAX_TERMS: usize = 30_000_000;

/// Times that registers which are read before they are set are taken to hold the same.
const MAX_GUESSES: usize = 16;

/// Is `rewritten` a correct version of `original`? Both must take the same parameters.
///
/// Where the control flow differs, small branches are looked at as guards, too (`straight.rs`).
pub fn check<S: Semantics>(original: &S, rewritten: &S, threads: &Threads) -> Verdict {
    let first = check_counted(original, rewritten, threads).0;
    if first.is_proved() || first.cause() != Some(Cause::ControlFlow) {
        return first;
    }
    let straight = [(original, false), (rewritten, true)];
    let straight = straight.map(|(func, is_bound)| Straightened::new(func, is_bound));
    let [a, b] = &straight;
    if !a.is_changed() && !b.is_changed() {
        return first;
    }
    let second = check_counted(a, b, threads).0;
    if second.is_proved() { second } else { first }
}

/// The same as they are, with the work that it took: instructions executed, locations joined, pairs of values compared.
pub(crate) fn check_counted<S: Semantics>(
    original: &S,
    rewritten: &S,
    threads: &Threads,
) -> (Verdict, u64) {
    let by_position = Alignment::Paired(Pairing::ByPosition);
    let (first, ways_differ, work) = check_aligned(original, rewritten, threads, by_position);
    let any_negated = |func: &S| {
        let mut insts = (0..func.inst_count() as u32).map(Inst);
        insts.any(|inst| is_negated(func, inst))
    };
    if first.is_proved() || !ways_differ {
        return (first, work);
    }
    let mut all = work;
    let mut others = vec![
        Alignment::Guided(Meeting::InStep),
        Alignment::Guided(Meeting::Headers),
    ];
    if any_negated(original) || any_negated(rewritten) {
        others.insert(0, Alignment::Paired(Pairing::ByPredicate));
    }
    for alignment in others {
        let (verdict, _, work) = check_aligned(original, rewritten, threads, alignment);
        all += work;
        if verdict.is_proved() {
            return (verdict, all);
        }
    }
    (first, all)
}

/// How the decisions of two functions are brought together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Alignment {
    /// One by one.
    Paired(Pairing),
    /// As their values show (`guided.rs`).
    Guided(Meeting),
}

/// Is it a branch that is taken where its guard predicate is false?
pub(crate) fn is_negated<S: Semantics>(func: &S, inst: Inst) -> bool {
    func.transfer(inst) == Transfer::Jump
        && func.is_predicated(inst)
        && func
            .step(inst)
            .is_ok_and(|step| step.guard.is_some_and(|guard| guard.negated))
}

fn check_aligned<S: Semantics>(
    original: &S,
    rewritten: &S,
    threads: &Threads,
    alignment: Alignment,
) -> (Verdict, bool, u64) {
    let mut open = BTreeSet::new();
    let mut work = 0;
    loop {
        match Prover::new(original, rewritten, threads, alignment, &open) {
            Ok(mut prover) => {
                let verdict = prover.prove();
                work += prover.machine.work;
                let known = open.len();
                if prover.is_guided && !verdict.is_proved() {
                    open.extend(prover.unforced.iter().copied());
                }
                // What was taken for decided on one path is not: walk again without that.
                if open.len() == known || open.len() > MOST_OPEN {
                    return (verdict, prover.ways_differ, work);
                }
            }
            Err(Stop::Unclear(reason)) => return (Verdict::Undecided(reason), false, work),
            Err(Stop::Misaligned(reason)) => return (Verdict::Undecided(reason), true, work),
        }
    }
}

/// Decisions that a walk may take for decided in vain.
const MOST_OPEN: usize = 8;

/// Why a proof does not begin.
enum Stop {
    /// Something is outside the model.
    Unclear(Reason),
    /// The control flow does not line up.
    Misaligned(Reason),
}

impl From<Reason> for Stop {
    fn from(reason: Reason) -> Stop {
        Stop::Unclear(reason)
    }
}

/// A proof in the making.
pub(crate) struct Prover<'a, S> {
    pub(crate) machine: Machine<'a, S>,
    pub(crate) product: Product,
    /// Do decisions go by facts?
    is_guided: bool,
    classes: Vec<Classes>,
    /// What arrives over each edge, in the order of `Node::preds`.
    pub(crate) arriving: Vec<Vec<Option<State>>>,
    /// What arrives at node 0 from outside.
    pub(crate) entry: State,
    /// What the original's unset registers are taken to hold: unset registers of the rewritten
    /// function.
    pub(crate) given: BTreeMap<Value, Value>,
    /// Guesses about loops, once a proof without any has failed.
    induction: Option<Induction>,
    /// Are guesses wanted? Then what forced decisions show is a fact, too.
    is_guessing: bool,
    /// Decisions that the last comparison does not show to go the one way that they were taken to go.
    pub(crate) unforced: Vec<[Option<Inst>; 2]>,
    /// Has some branch another guard? Then its ways may be paired wrongly.
    ways_differ: bool,
}

impl<'a, S: Semantics> Prover<'a, S> {
    fn new(
        original: &'a S,
        rewritten: &'a S,
        threads: &Threads,
        alignment: Alignment,
        open: &BTreeSet<[Option<Inst>; 2]>,
    ) -> Result<Self, Stop> {
        let mut terms = Terms::default();
        for split in original.splits().iter().chain(&rewritten.splits()) {
            terms.split(split);
        }
        let slots = private_slots(original, rewritten, threads, &mut terms)?;
        let first = Function::new(original, &mut terms).map_err(|(inst, error)| Reason {
            cause: Cause::Unsupported,
            text: error.0,
            original_place: Some(original.place(inst)),
            rewritten_place: None,
        })?;
        let second = Function::new(rewritten, &mut terms).map_err(|(inst, error)| Reason {
            cause: Cause::Unsupported,
            text: error.0,
            original_place: None,
            rewritten_place: Some(rewritten.place(inst)),
        })?;
        if let Some(touched) = inflight::find(rewritten, &second.cfg) {
            let name = rewritten.value_name(touched.value);
            let holder = rewritten.place(touched.holder);
            return Err(Stop::Unclear(Reason {
                cause: Cause::InFlight,
                text: format!("{name} is touched while {holder} may still use it"),
                original_place: None,
                rewritten_place: Some(rewritten.place(touched.inst)),
            }));
        }
        let cfgs = [first.cfg.clone(), second.cfg.clone()];
        let pairing = match alignment {
            Alignment::Paired(pairing) => pairing,
            Alignment::Guided(_) => Pairing::ByPosition,
        };
        let a = Skeleton::new(original, &cfgs[0], pairing, |inst| {
            is_negated(original, inst)
        });
        let b = Skeleton::new(rewritten, &cfgs[1], pairing, |inst| {
            is_negated(rewritten, inst)
        });
        let mut machine = Machine::new([first, second], terms, slots);
        let product = match alignment {
            Alignment::Paired(_) => Product::new(&a, &b),
            Alignment::Guided(meeting) => guided::walk(&a, &b, &mut machine, open, meeting),
        };
        let product = product.map_err(|error| {
            Stop::Misaligned(Reason {
                cause: Cause::ControlFlow,
                text: format!("the control flow differs: {}", error.reason),
                original_place: Some(show_place(&machine.functions[0], error.original)),
                rewritten_place: Some(show_place(&machine.functions[1], error.rewritten)),
            })
        })?;
        let nodes = product.nodes.len();
        Ok(Prover {
            machine,
            entry: State::new(),
            arriving: product
                .nodes
                .iter()
                .map(|node| vec![None; node.preds.len()])
                .collect(),
            product,
            is_guided: matches!(alignment, Alignment::Guided(_)),
            classes: vec![Classes::default(); nodes],
            given: BTreeMap::new(),
            induction: None,
            is_guessing: false,
            unforced: Vec::new(),
            ways_differ: false,
        })
    }

    fn prove(&mut self) -> Verdict {
        let plain = self.prove_for_unset();
        // What is guessed of loops shows alignment, too.
        let is_open =
            matches!(plain, Verdict::Refuted(_)) || plain.cause() == Some(Cause::Alignment);
        if !is_open || !self.guess() {
            return plain;
        }
        let guessed = self.prove_for_unset();
        if guessed.is_proved() { guessed } else { plain }
    }

    /// Guesses how registers follow each other in loops; says whether they do anywhere.
    fn guess(&mut self) -> bool {
        let decisions = self.product.nodes.iter().filter_map(|node| node.decision);
        let mut deciding = decisions.filter_map(|decision| decision.deciding());
        let functions = &self.machine.functions;
        if !deciding.any(|(side, inst)| functions[side].func.goes_by_guard(inst)) {
            return false;
        }
        let ways = self.product.nodes.iter().map(|node| node.preds.len());
        self.induction = Some(Induction::new(ways));
        // The facts of each edge, over the classes that were found.
        self.is_guessing = true;
        self.round(&mut |_, _, _| {});
        self.is_guessing = false;
        let mut induction = self.induction.take().unwrap_or_default();
        for node in 0..self.product.nodes.len() {
            let state = self.arrive(node);
            let arrivals = arrivals(&self.product, &self.arriving, node);
            induction.guess(&mut self.machine.terms, &arrivals, &state);
        }
        // Forced decisions want facts alone.
        let found = self.is_guided || induction.is_of_use();
        self.induction = found.then_some(induction);
        found
    }

    fn prove_for_unset(&mut self) -> Verdict {
        // Most rewrites leave the names of registers alone.
        self.given = self.unset_of_one_name();
        let (first, is_unset_to_blame) = self.attempt();
        if first.is_proved() || self.given.is_empty() || !is_unset_to_blame {
            return first;
        }
        self.given.clear();
        let (second, _) = self.attempt();
        if second.is_proved() { second } else { first }
    }

    /// The verdict, and whether it might be another one if unset registers held something else.
    fn attempt(&mut self) -> (Verdict, bool) {
        for _ in 0..MAX_GUESSES {
            if let Err(reason) = self.settle() {
                self.ways_differ = true;
                return (Verdict::Undecided(reason), true);
            }
            match self.compare() {
                Ok(()) => {
                    let verdict = match self.same_together().and_then(|()| self.said_uniform()) {
                        Ok(()) => Verdict::Proved,
                        Err(reason) => Verdict::Undecided(reason),
                    };
                    return (verdict, false);
                }
                Err(found) => {
                    self.ways_differ |= found.other_guards();
                    let unset = self.assume_unset(&found.findings);
                    if !unset.is_new {
                        return (self.answer(&found), unset.is_to_blame);
                    }
                }
            }
        }
        let reason = Reason::new(
            Cause::Unset,
            "too many registers are read before they are set",
        );
        (Verdict::Undecided(reason), true)
    }

    /// Registers that both functions may read before they set them, and call by one name.
    fn unset_of_one_name(&self) -> BTreeMap<Value, Value> {
        let [original, rewritten] = &self.machine.functions;
        let [Some(a), Some(b)] = self.blocks(0) else {
            return BTreeMap::new();
        };
        let live = rewritten.liveness.live_in(b).iter();
        let names: BTreeMap<String, Value> = live
            .map(|&value| (rewritten.func.value_name(value), value))
            .collect();
        let unset = original.liveness.live_in(a).iter();
        let unset = unset.filter(|&&value| original.func.entry_name(value).is_none());
        let pairs =
            unset.filter_map(|&value| Some((value, *names.get(&original.func.value_name(value))?)));
        pairs.collect()
    }

    /// Rounds until the classes of all loop headers hold.
    fn settle(&mut self) -> Result<(), Reason> {
        self.classes.fill(Classes::default());
        self.entry = self.entry_state(0).unwrap_or_default();
        for _ in 0..MAX_ROUNDS {
            let slots = self.machine.slots.found();
            self.round(&mut |_, _, _| {});
            if self.machine.terms.len() > MAX_TERMS {
                return Err(Reason::new(Cause::Size, "the functions are too large"));
            }
            if self.machine.slots.found() != slots {
                // What slots are taken to hold at first depends on all of them, and a partition once
                // refined stays so.
                self.classes.fill(Classes::default());
                self.entry = self.entry_state(0).unwrap_or_default();
                continue;
            }
            let mut changed = false;
            for node in 0..self.product.nodes.len() {
                changed |= self.refine(node);
                if let Some(induction) = &mut self.induction {
                    let arrivals = arrivals(&self.product, &self.arriving, node);
                    changed |= induction.refine(&mut self.machine.terms, &arrivals);
                }
            }
            if !changed {
                return Ok(());
            }
        }
        Err(Reason::new(
            Cause::Size,
            "the values in its loops do not settle",
        ))
    }

    fn refine(&mut self, node: usize) -> bool {
        let loops = self.product.nodes[node]
            .preds
            .iter()
            .any(|pred| pred.0 as usize >= node);
        if !loops {
            return false;
        }
        let entry = self.entry_state(node);
        let mut arriving: Vec<&State> = entry.iter().collect();
        arriving.extend(self.arriving[node].iter().flatten());
        self.classes[node].refine(&arriving)
    }

    pub(crate) fn blocks(&self, node: usize) -> [Option<Block>; 2] {
        let node = &self.product.nodes[node];
        [node.original, node.rewritten].map(|place| match place {
            Place::Block(block) => Some(block),
            Place::Left(_) => None,
        })
    }

    fn entry_state(&mut self, node: usize) -> Option<State> {
        let given = &self.given;
        let leaves: BTreeMap<Value, Term> = given
            .iter()
            .map(|(&of, &to)| {
                (
                    of,
                    self.machine.terms.leaf(Head::Unset(Side::Rewritten, to)),
                )
            })
            .collect();
        let blocks = self.blocks(node);
        (node == 0).then(|| {
            self.machine
                .entry_state(blocks, &|value| leaves.get(&value).copied())
        })
    }

    /// The state on arrival at a node, from what arrives over edges that lead forward.
    fn arrive(&mut self, node: usize) -> State {
        let entry = self.entry_state(node);
        let preds = &self.product.nodes[node].preds;
        let forward = preds.iter().zip(&self.arriving[node]);
        let mut arriving: Vec<&State> = entry.iter().collect();
        arriving.extend(
            forward
                .filter(|(pred, _)| (pred.0 as usize) < node)
                .filter_map(|(_, state)| state.as_ref()),
        );
        let terms = &mut self.machine.terms;
        terms.facts = Facts::default();
        let mut state = join(terms, node as u32, &self.classes[node], &arriving);
        if let Some(induction) = &mut self.induction {
            let arrivals = arrivals(&self.product, &self.arriving, node);
            induction.arrive(terms, &arrivals, &mut state);
            terms.facts = induction.at(node);
        }
        state
    }

    /// What holds where a node is left over one of its edges, if its decision shows it.
    fn condition(&mut self, node: usize, edge: usize) -> Option<Term> {
        let decision = self.product.nodes[node].decision?;
        // It follows from the facts, or there is no proof.
        if decision.forced.is_some() && !self.is_guessing {
            return None;
        }
        let (side, inst) = decision.deciding()?;
        if !self.machine.functions[side].func.goes_by_guard(inst) {
            return None;
        }
        let condition = self.machine.condition(side, inst, decision.flips[side])?;
        let guard = *condition.content.first()?;
        match decision.forced.unwrap_or(edge) {
            0 => Some(guard),
            1 => Some(self.machine.terms.not(guard)),
            _ => None,
        }
    }

    /// Executes all nodes in order. `visit` sees each after its blocks have run.
    pub(crate) fn round(&mut self, visit: &mut dyn FnMut(&mut Machine<'a, S>, usize, &State)) {
        for node in 0..self.product.nodes.len() {
            let state = self.arrive(node);
            let blocks = self.blocks(node);
            self.machine.enter(node as u32, blocks, &state);
            match self.product.nodes[node].run {
                Run::Both(a, b) => {
                    self.machine.run(0, a);
                    self.machine.run(1, b);
                }
                Run::Original(a) => self.machine.run(0, a),
                Run::Rewritten(b) => self.machine.run(1, b),
                Run::Nothing => {}
            }
            visit(&mut self.machine, node, &state);
            for way in 0..self.product.nodes[node].succs.len() {
                let succ = self.product.nodes[node].succs[way] as usize;
                let state = self.machine.leave(self.blocks(succ));
                let edge = (node as u32, way as u32);
                let preds = &self.product.nodes[succ].preds;
                if let Some(at) = preds.iter().position(|&pred| pred == edge) {
                    self.arriving[succ][at] = Some(state);
                    let condition = self
                        .induction
                        .is_some()
                        .then(|| self.condition(node, way))
                        .flatten();
                    if let Some(induction) = &mut self.induction {
                        induction.leave(node, succ, at, condition);
                    }
                }
            }
        }
        self.machine.terms.facts = Facts::default();
    }
}

/// The ways into a node, and what came over them last.
fn arrivals<'s>(
    product: &Product,
    arriving: &'s [Vec<Option<State>>],
    node: usize,
) -> Arrivals<'s> {
    let preds = product.nodes[node].preds.iter();
    let ways = preds
        .zip(&arriving[node])
        .map(|(pred, state)| ((pred.0 as usize) < node, state.as_ref()));
    Arrivals {
        node,
        ways: ways.collect(),
    }
}

/// The rewritten function's variables that the original does not have.
fn private_slots<S: Semantics>(
    original: &S,
    rewritten: &S,
    threads: &Threads,
    terms: &mut Terms,
) -> Result<Slots, Reason> {
    let known: BTreeMap<Name, Variable> = original
        .variables()
        .into_iter()
        .map(|variable| (variable.name.clone(), variable))
        .collect();
    let mut slots = Slots::new(*threads);
    let apart = original.keeps_variables_apart() && rewritten.keeps_variables_apart();
    for variable in known.values() {
        terms.declare(variable, apart);
    }
    for variable in rewritten.variables() {
        match known.get(&variable.name) {
            Some(same) if *same == variable => {}
            Some(_) => {
                let text = format!("{} is declared differently", variable.name);
                return Err(Reason::new(Cause::Around, text));
            }
            None => {
                let symbol = terms.make_private(&variable.name);
                slots
                    .add_region(Side::Rewritten, &variable, symbol, false)
                    .map_err(|large| Reason::new(Cause::Slot, large.to_string()))?;
            }
        }
    }
    let own = [
        (Side::Original, original.own_memory()),
        (Side::Rewritten, rewritten.own_memory()),
    ];
    for (side, variables) in own {
        for variable in variables {
            let symbol = terms.make_private(&variable.name);
            slots
                .add_region(side, &variable, symbol, true)
                .map_err(|large| Reason::new(Cause::Slot, large.to_string()))?;
        }
    }
    Ok(slots)
}

pub(crate) fn show_place<S: Semantics>(function: &Function<'_, S>, place: Place) -> String {
    match place {
        Place::Block(block) => function.func.place(function.cfg.first_inst(block)),
        Place::Left(Transfer::Return) => "the return to the caller".to_owned(),
        Place::Left(_) => "the end of the thread".to_owned(),
    }
}
