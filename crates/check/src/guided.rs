//! Walks both functions side by side where their decisions do not line up one by one: loops that are unrolled behind
//! one test for several iterations, branches that can go one way alone, iterations that were peeled off.
//!
//! Which decisions belong together is seen from the values on one path to each pair of places. A decision that what
//! holds there decides is none: the function goes on alone. Decisions by the same value, or by its complement, are one.
//! Of others the rewritten function's is taken to be its own, and both ways are followed. Loops that both functions
//! enter together begin with values of which nothing is known but that they are the same.
//!
//! There are two ways to go on where loops are entered. In one each pair of headers is such a place. In the other a pair
//! is one if both functions are in step, having accessed the same; what a turn does is looked at ahead (`foresee.rs`), and
//! constants are kept where one function is ahead, so that iterations may be peeled off and counts be known.
//!
//! Nothing here is trusted: the rounds of the proof show that each decision goes as it was taken to go, or there is no
//! proof. A function is at most so many decisions ahead of the other one, so neither goes round alone for ever.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use rustc_hash::FxHashMap;
use warpwright_flow::{Block, Inst};

use crate::facts::Facts;
use crate::foresee::{Changes, Together};
use crate::machine::Machine;
use crate::product::{
    Decision, Misaligned, Node, Place, Product, Run, Skeleton, bare, run, straight,
};
use crate::semantics::{Effect, Semantics, Step};
use crate::state::{MEMORIES, State};
use crate::term::{Head, Term};

/// Decisions that one function may be ahead: iterations that stand behind one test.
const MOST_AHEAD: u32 = 160;

/// Names of values on the way, apart from those of the proof.
const NAMES: u32 = 1 << 30;

/// A pair of places, the decisions since both ran together, and the loops that are open.
type Key = (Place, Place, u32, Open);

/// The loops that both functions entered together and that neither or only one has left, by a number. Where one loop of one
/// function goes on beside several of the other, what is known depends on them.
type Open = u32;

/// What is known on one path to a node.
#[derive(Clone)]
struct Known {
    state: State,
    facts: Facts,
    /// What each function loaded since both were in step.
    loads: [BTreeSet<Term>; 2],
    /// The loops that are open, the innermost one last, by their headers and number.
    open: Vec<([Block; 2], Open)>,
}

/// Where loops are taken to begin for both functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Meeting {
    /// At headers.
    Headers,
    /// At headers that they reach in step.
    InStep,
}

/// What a walk finds at two decisions.
enum Choice {
    /// They are one; `flip`: the rewritten function's ways are in the other order.
    One { flip: bool },
    /// One function decides alone, perhaps in one way only.
    Alone { side: usize, forced: Option<usize> },
}

/// The product graph, as values show it. Decisions in `open` are not taken to go one way, whatever a path shows.
pub(crate) fn walk<S: Semantics>(
    original: &Skeleton<'_, S>,
    rewritten: &Skeleton<'_, S>,
    machine: &mut Machine<'_, S>,
    open: &BTreeSet<[Option<Inst>; 2]>,
    meeting: Meeting,
) -> Result<Product, Misaligned> {
    let changes = [0, 1].map(|side| Changes::new(machine, side));
    let mut walk = Walk {
        sides: [original, rewritten],
        machine,
        changes,
        open,
        meeting,
        nodes: Vec::new(),
        known: Vec::new(),
        numbers: FxHashMap::default(),
        alike: FxHashMap::default(),
        loads: Default::default(),
        ids: FxHashMap::default(),
    };
    let product = walk.run();
    walk.machine.terms.facts = Facts::default();
    product
}

struct Walk<'w, 'a, S> {
    sides: [&'w Skeleton<'w, S>; 2],
    machine: &'w mut Machine<'a, S>,
    changes: [Changes; 2],
    open: &'w BTreeSet<[Option<Inst>; 2]>,
    meeting: Meeting,
    nodes: Vec<Node>,
    known: Vec<Known>,
    /// Numbers of open loops, by that of those around them and the headers.
    numbers: FxHashMap<(Open, [Block; 2]), Open>,
    /// Of loops that both are in: locations of either function that were taken to move alike.
    alike: FxHashMap<[Block; 2], Vec<(usize, Vec<usize>)>>,
    /// What was loaded up to the end of the node that was just played.
    loads: [BTreeSet<Term>; 2],
    ids: FxHashMap<Key, u32>,
}

impl<S: Semantics> Walk<'_, '_, S> {
    fn run(&mut self) -> Result<Product, Misaligned> {
        let entry = (self.sides[0].entry(), self.sides[1].entry(), 0, 0);
        let state = self.machine.entry_state(blocks(entry), &|_| None);
        let known = Known {
            state,
            facts: Facts::default(),
            loads: Default::default(),
            open: Vec::new(),
        };
        let mut work = vec![self.enter(entry, known)];
        let blocks = self.sides[0].blocks() + self.sides[1].blocks();
        let limit = 16 * blocks + 8 * MOST_AHEAD as usize;
        while let Some(id) = work.pop() {
            for (key, mut known) in self.visit(id)? {
                let key = self.settled(key, &mut known);
                if self.nodes.len() > limit {
                    return Err(misaligned(key, "their blocks meet in too many pairs"));
                }
                let to = match self.ids.get(&key) {
                    Some(&to) => to,
                    None => {
                        let to = self.enter(key, known);
                        work.push(to);
                        to
                    }
                };
                self.nodes[id as usize].succs.push(to);
            }
        }
        Product::of(std::mem::take(&mut self.nodes))
    }

    /// A new node, with what is known on this path.
    fn enter(&mut self, key: Key, mut known: Known) -> u32 {
        let id = self.nodes.len() as u32;
        let mut node = Node::at(key.0, key.1);
        node.phase = key.2;
        if key.2 == 0
            && let Some(headers) = self.headers(key)
        {
            let mut together = Together {
                machine: self.machine,
                sides: self.sides,
                changes: &self.changes,
                headers,
                node: NAMES + id,
            };
            let is_foreseen = self.meeting == Meeting::InStep
                && together
                    .foresee(&mut known.state, &mut known.facts)
                    .is_some();
            if !is_foreseen {
                together.forget(&mut known.state);
            }
            let alike = self.moving_alike(key, &known.state, NAMES + id);
            self.alike.insert(headers, alike);
        }
        self.ids.insert(key, id);
        self.nodes.push(node);
        self.known.push(known);
        id
    }

    /// Locations of the original that have a name of this number, each with those of the rewritten function that have it, too.
    fn moving_alike(&self, key: Key, state: &State, number: u32) -> Vec<(usize, Vec<usize>)> {
        let layout = self.machine.layout(blocks(key));
        let (first, rest) = state.split_at(layout.original);
        let is_name =
            |term: Term| matches!(self.machine.terms.head(term), Head::Phi(of, _) if of == number);
        let names = first.iter().enumerate().filter(|of| is_name(*of.1));
        let alike = names.map(|(at, name)| {
            let others = rest[..layout.rewritten].iter().enumerate();
            let others = others.filter(|of| of.1 == name);
            (at, others.map(|of| layout.original + of.0).collect())
        });
        alike
            .filter(|(_, others): &(_, Vec<usize>)| !others.is_empty())
            .collect()
    }

    /// Loops that begin here for both.
    fn headers(&self, key: Key) -> Option<[Block; 2]> {
        let [Some(a), Some(b)] = blocks(key) else {
            return None;
        };
        let is_pair = self.changes[0].is_header(a) && self.changes[1].is_header(b);
        is_pair.then_some([a, b])
    }

    /// The node that a pair of places is: where loops begin and both are in step, no function is ahead.
    fn settled(&mut self, key: Key, known: &mut Known) -> Key {
        if self.meeting == Meeting::Headers {
            return key;
        }
        let changes = &self.changes;
        let is_open = |headers: &[Block; 2]| {
            let at = blocks(key);
            (0..2).any(|side| at[side].is_some_and(|at| changes[side].has(headers[side], at)))
        };
        while known
            .open
            .last()
            .is_some_and(|(headers, _)| !is_open(headers))
        {
            known.open.pop();
        }
        let mut phase = key.2;
        if let Some(headers) = self.headers(key) {
            match self.are_in_step(key, known) {
                true => {
                    phase = 0;
                    known.loads = Default::default();
                    self.open(headers, &mut known.open);
                }
                false => phase = phase.max(1),
            }
        }
        let open = known.open.last().map_or(0, |(_, open)| *open);
        (key.0, key.1, phase, open)
    }

    /// Loops begin, or go round.
    fn open(&mut self, headers: [Block; 2], open: &mut Vec<([Block; 2], Open)>) {
        if let Some(at) = open.iter().position(|(known, _)| *known == headers) {
            open.truncate(at + 1);
            return;
        }
        let around = open.last().map_or(0, |(_, number)| *number);
        let next = self.numbers.len() as Open + 1;
        let number = *self.numbers.entry((around, headers)).or_insert(next);
        open.push((headers, number));
    }

    /// Have both accessed the same, as far as what they hold shows?
    fn are_in_step(&self, key: Key, known: &Known) -> bool {
        let layout = self.machine.layout(blocks(key));
        let memory = |side, memory| known.state[layout.memory(side, memory)];
        let (first, rest) = known.state.split_at(layout.original);
        let other = &rest[..layout.rewritten];
        let shares = first.iter().any(|term| {
            let is_constant = self.machine.terms.as_const(*term).is_some();
            !is_constant && other.contains(term)
        });
        let is_alike = (0..MEMORIES).all(|of| memory(0, of) == memory(1, of))
            && known.loads[0] == known.loads[1];
        let has_loaded = !known.loads[0].is_empty();
        // What moved alike in the loop that goes round, or that one function is still in, must have moved as far.
        let Some(headers) = self.headers(key) else {
            return false;
        };
        let mut known_alike = known.open.iter().filter_map(|(open, _)| {
            let is_same = [0, 1].map(|side| open[side] == headers[side]);
            let alike = self.alike.get(open)?;
            (is_same != [false; 2]).then_some((is_same, alike))
        });
        let moved = known_alike.all(|(is_same, all)| match is_same {
            [true, true] => all.iter().all(|(at, others)| {
                let mut others = others.iter();
                others.any(|&other| known.state[*at] == known.state[other])
            }),
            [true, false] => all.iter().all(|(at, _)| other.contains(&known.state[*at])),
            _ => (all.iter().flat_map(|(_, others)| others))
                .all(|&other| first.contains(&known.state[other])),
        });
        is_alike && moved && (has_loaded || shares || first.is_empty() || other.is_empty())
    }

    /// Finds out what runs at a node, and runs it.
    fn visit(&mut self, id: u32) -> Result<Vec<(Key, Known)>, Misaligned> {
        let node = &self.nodes[id as usize];
        let (a, b, phase) = (node.original, node.rewritten, node.phase);
        let key = (a, b, phase, 0);
        if self.meeting == Meeting::InStep
            && let Some((side, forced)) = self.goes_before_the_other_leaves(id, (a, b))
            && phase < MOST_AHEAD
        {
            return self.alone(id, key, side, Some(forced));
        }
        let bare = bare(self.sides[0], self.sides[1], (a, b));
        let straight = || straight(self.sides[0], self.sides[1], (a, b));
        let ends = || self.ends_of_loops((a, b));
        if let Some((straight, nexts)) = bare.or_else(ends).or_else(straight) {
            // What runs together is no longer apart.
            let phase = if is_both(straight.run) { 0 } else { phase };
            self.nodes[id as usize].run = straight.run;
            self.play(id, straight.run);
            let next = nexts.into_iter().map(|(a, b)| (a, b, phase, 0));
            return Ok(next.map(|key| (key, self.leave(id, key, None))).collect());
        }
        let decisions = [self.sides[0].decision(a), self.sides[1].decision(b)];
        if decisions.iter().all(Option::is_none) {
            return match a == b {
                true => Ok(Vec::new()),
                false => Err(misaligned(key, "they leave in different ways")),
            };
        }
        let insts = decisions.map(|decision| decision.map(|(_, _, inst)| inst));
        match self.choose(id, insts, (a, b)) {
            Some(Choice::One { flip }) => self.together(id, key, flip),
            Some(Choice::Alone { side, forced }) if phase < MOST_AHEAD => {
                self.alone(id, key, side, forced)
            }
            _ => Err(misaligned(key, "they branch in different ways")),
        }
    }

    /// Where a function runs its last block, and what the other one decides is decided: the other one goes on first, so that
    /// both do at the same node what they do last.
    fn goes_before_the_other_leaves(
        &mut self,
        id: u32,
        (a, b): (Place, Place),
    ) -> Option<(usize, usize)> {
        let decisions = [self.sides[0].decision(a), self.sides[1].decision(b)];
        let insts = decisions.map(|decision| decision.map(|(_, _, inst)| inst));
        let leaving = match insts {
            [Some(_), None] => self.sides[1].ways(b),
            [None, Some(_)] => self.sides[0].ways(a),
            _ => return None,
        };
        if !matches!(leaving.as_slice(), [Place::Left(_)]) {
            return None;
        }
        match self.choose(id, insts, (a, b)) {
            Some(Choice::Alone {
                side,
                forced: Some(way),
            }) => Some((side, way)),
            _ => None,
        }
    }

    /// The node of two places that both lead on and write in the same way. What one loop leads to alone and two copies of it
    /// lead to together is no block on an edge: it would run before the other function has come so far.
    fn ends_of_loops(&self, (a, b): (Place, Place)) -> Option<(Node, Vec<(Place, Place)>)> {
        let next = (self.sides[0].leads_to(a)?, self.sides[1].leads_to(b)?);
        let writes = [self.writes(0, a), self.writes(1, b)];
        let node = Node {
            run: run(Some(a), Some(b)),
            ..Node::at(a, b)
        };
        (writes[0] == writes[1] && !writes[0].is_empty()).then(|| (node, vec![next]))
    }

    /// What a place does beside computing and loading, in order.
    fn writes(&self, side: usize, at: Place) -> Vec<String> {
        let Place::Block(block) = at else {
            return Vec::new();
        };
        let function = &self.machine.functions[side];
        let steps = function.cfg.insts(block);
        let steps = steps.filter_map(|inst| function.func.step(inst).ok());
        let writes = |step: &Step| {
            let is_silent = matches!(
                step.effect,
                Effect::Pure | Effect::Load { .. } | Effect::Branch
            );
            !is_silent
        };
        steps.filter(writes).map(|step| step.op).collect()
    }

    /// Plays what runs at a node on what is known.
    fn play(&mut self, id: u32, run: Run) {
        let node = &self.nodes[id as usize];
        let at = blocks((node.original, node.rewritten, 0, 0));
        let known = self.known[id as usize].clone();
        self.machine.terms.facts = known.facts;
        self.machine.enter(NAMES + id, at, &known.state);
        match run {
            Run::Both(a, b) => {
                self.machine.run(0, a);
                self.machine.run(1, b);
            }
            Run::Original(a) => self.machine.run(0, a),
            Run::Rewritten(b) => self.machine.run(1, b),
            Run::Nothing => {}
        }
        if self.meeting == Meeting::InStep {
            self.loads = known.loads;
            for (loads, log) in self.loads.iter_mut().zip(&self.machine.log.loads) {
                loads.extend(log.iter().map(|load| load.term));
            }
        }
    }

    /// What is known where a node that was just played leads, if this condition holds.
    fn leave(&mut self, from: u32, to: Key, condition: Option<Term>) -> Known {
        let mut facts = self.machine.terms.facts.clone();
        if let Some(condition) = condition
            && self.machine.terms.as_const(condition).is_none()
        {
            facts.insert(condition);
        }
        let state = self.machine.leave(blocks(to));
        Known {
            state,
            facts,
            loads: self.loads.clone(),
            open: self.known[from as usize].open.clone(),
        }
    }

    fn choose(
        &mut self,
        id: u32,
        insts: [Option<Inst>; 2],
        (a, b): (Place, Place),
    ) -> Option<Choice> {
        self.play(id, run(Some(a), Some(b)));
        let conditions = [0, 1].map(|side| self.machine.condition(side, insts[side]?, false));
        let guard = |side: usize| {
            let is_by_guard = self.machine.functions[side]
                .func
                .goes_by_guard(insts[side]?);
            let content = &conditions[side].as_ref()?.content;
            is_by_guard.then(|| content.first().copied()).flatten()
        };
        let guards = [guard(0), guard(1)];
        let kinds = [self.sides[0].decision(a), self.sides[1].decision(b)];
        let are_alike = kinds[0]
            .zip(kinds[1])
            .is_some_and(|(a, b)| a.0 == b.0 && a.1.len() == b.1.len());
        if let (true, [Some(first), Some(second)]) = (are_alike, &conditions)
            && first.op == second.op
        {
            // Constants tell nothing of which belong together where one function is ahead.
            let is_certain = [guards[0], guards[1]].iter().all(|guard| {
                guard.is_some_and(|guard| self.machine.terms.as_const(guard).is_some())
            });
            if first.content == second.content && !(is_certain && self.ahead(id) != Ordering::Equal)
            {
                return Some(Choice::One { flip: false });
            }
            if let [Some(x), Some(y)] = guards
                && self.machine.terms.not(x) == y
            {
                return Some(Choice::One { flip: true });
            }
        }
        // Who stands where a loop begins waits for who does not.
        let order = match self.ahead(id) {
            Ordering::Greater => [1, 0],
            Ordering::Equal if self.waits(0, a) && !self.waits(1, b) => [1, 0],
            _ => [0, 1],
        };
        for side in order {
            let Some(guard) = guards[side] else { continue };
            let mut alone = [None; 2];
            alone[side] = insts[side];
            if self.open.contains(&alone) {
                continue;
            }
            let other = self.machine.terms.not(guard);
            for (way, goal) in [guard, other].into_iter().enumerate() {
                if self.machine.terms.proves(goal) {
                    let forced = Some(way);
                    return Some(Choice::Alone { side, forced });
                }
            }
        }
        match guards {
            [Some(_), _] if self.is_behind(id, (a, b)) => Some(Choice::Alone {
                side: 0,
                forced: None,
            }),
            [_, Some(_)] if insts[0].is_some() => Some(Choice::Alone {
                side: 1,
                forced: None,
            }),
            [None, None] if are_alike => Some(Choice::One { flip: false }),
            _ => None,
        }
    }

    /// Did the original load more than the rewritten function since both were in step, as far as that is followed?
    fn ahead(&self, id: u32) -> Ordering {
        let [original, rewritten] = &self.known[id as usize].loads;
        original.len().cmp(&rewritten.len())
    }

    /// Has the original yet to come to where the rewritten function is: did it load less, or does only the other one stand
    /// where a loop begins?
    fn is_behind(&self, id: u32, (a, b): (Place, Place)) -> bool {
        let waits = self.waits(1, b) && !self.waits(0, a);
        self.meeting == Meeting::InStep
            && match self.ahead(id) {
                Ordering::Less => true,
                Ordering::Equal => waits,
                Ordering::Greater => false,
            }
    }

    /// Does a function stand where a loop begins?
    fn waits(&self, side: usize, at: Place) -> bool {
        match at {
            Place::Block(block) => self.changes[side].is_header(block),
            Place::Left(_) => false,
        }
    }

    /// Both decide; they were just played.
    fn together(&mut self, id: u32, key: Key, flip: bool) -> Result<Vec<(Key, Known)>, Misaligned> {
        let (a, b, ..) = key;
        let (Some((_, first, one)), Some((_, second, other))) =
            (self.sides[0].decision(a), self.sides[1].decision(b))
        else {
            return Err(misaligned(key, "they branch in different ways"));
        };
        let ways = first.iter().copied().zip(second.iter().copied());
        let mut ways: Vec<(Place, Place)> = ways.collect();
        if flip {
            let crossed = first.iter().copied().zip(second.iter().rev().copied());
            ways = crossed.collect();
        }
        self.play(id, run(Some(a), Some(b)));
        let node = &mut self.nodes[id as usize];
        node.run = run(Some(a), Some(b));
        node.decision = Some(Decision {
            insts: [Some(one), Some(other)],
            flips: [false, flip],
            forced: None,
        });
        let conditions = self.both_ways(0, one);
        let next = ways.into_iter().enumerate().map(|(way, (a, b))| {
            let key = (a, b, 0, 0);
            (key, self.leave(id, key, conditions.get(way).copied()))
        });
        Ok(next.collect())
    }

    /// One function decides.
    fn alone(
        &mut self,
        id: u32,
        key: Key,
        side: usize,
        forced: Option<usize>,
    ) -> Result<Vec<(Key, Known)>, Misaligned> {
        let (a, b, phase, _) = key;
        let own = [a, b][side];
        let Some((_, ways, inst)) = self.sides[side].decision(own) else {
            return Err(misaligned(key, "they branch in different ways"));
        };
        let ways = ways.to_vec();
        let runs = match side {
            0 => run(Some(a), None),
            _ => run(None, Some(b)),
        };
        self.play(id, runs);
        let mut insts = [None; 2];
        insts[side] = Some(inst);
        let node = &mut self.nodes[id as usize];
        node.run = runs;
        node.decision = Some(Decision {
            insts,
            flips: [false; 2],
            forced,
        });
        let conditions = self.both_ways(side, inst);
        let taken = ways.into_iter().enumerate();
        let taken = taken.filter(|(way, _)| forced.is_none_or(|only| only == *way));
        let next = taken.map(|(way, to)| {
            let key = match side {
                0 => (to, b, phase + 1, 0),
                _ => (a, to, phase + 1, 0),
            };
            // What was forced followed from the facts.
            let condition = conditions.get(way).filter(|_| forced.is_none());
            (key, self.leave(id, key, condition.copied()))
        });
        Ok(next.collect())
    }

    /// What holds where a branch is taken, and where it is not.
    fn both_ways(&mut self, side: usize, inst: Inst) -> Vec<Term> {
        if !self.machine.functions[side].func.goes_by_guard(inst) {
            return Vec::new();
        }
        let condition = self.machine.condition(side, inst, false);
        let guard = condition.and_then(|condition| condition.content.first().copied());
        let ways = guard.map(|guard| vec![guard, self.machine.terms.not(guard)]);
        ways.unwrap_or_default()
    }
}

fn is_both(run: Run) -> bool {
    matches!(run, Run::Both(..))
}

fn blocks((a, b, ..): Key) -> [Option<Block>; 2] {
    [a, b].map(|place| match place {
        Place::Block(block) => Some(block),
        Place::Left(_) => None,
    })
}

fn misaligned((original, rewritten, ..): Key, reason: &'static str) -> Misaligned {
    Misaligned {
        original,
        rewritten,
        reason,
    }
}
