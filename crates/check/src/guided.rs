//! Walks both functions side by side where their decisions do not line up one by one: loops that are unrolled behind
//! one test for several iterations, branches that can go one way alone, iterations that were peeled off.
//!
//! Which decisions belong together is seen from the values on one path to each pair of places. A decision that what
//! holds there decides is none: the function goes on alone. Decisions by the same value, or by its complement, are one.
//! Of others the rewritten function's is taken to be its own, and both ways are followed. Loops that both functions
//! enter together begin with values of which nothing is known but that they are the same.
//!
//! Nothing here is trusted: the rounds of the proof show that each decision goes as it was taken to go, or there is no
//! proof. A function is at most so many decisions ahead of the other one, so neither goes round alone for ever.

use std::collections::BTreeSet;

use rustc_hash::{FxHashMap, FxHashSet};
use warpwright_flow::{Block, Cfg, Inst, Loops, Value};

use crate::facts::Facts;
use crate::machine::Machine;
use crate::product::{
    Decision, Misaligned, Node, Place, Product, Run, Skeleton, bare, run, straight,
};
use crate::semantics::Semantics;
use crate::state::State;
use crate::term::{Head, Term};

/// Decisions that one function may be ahead: iterations that stand behind one test.
const MOST_AHEAD: u32 = 160;

/// Names of values on the way, apart from those of the proof.
const NAMES: u32 = 1 << 30;

/// A pair of places, and the decisions since both ran together.
type Key = (Place, Place, u32);

/// What is known on one path to a node.
#[derive(Clone)]
struct Known {
    state: State,
    facts: Facts,
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
) -> Result<Product, Misaligned> {
    let changes = [0, 1].map(|side| Changes::new(machine, side));
    let mut walk = Walk {
        sides: [original, rewritten],
        machine,
        changes,
        open,
        nodes: Vec::new(),
        known: Vec::new(),
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
    nodes: Vec<Node>,
    known: Vec<Known>,
    ids: FxHashMap<Key, u32>,
}

impl<S: Semantics> Walk<'_, '_, S> {
    fn run(&mut self) -> Result<Product, Misaligned> {
        let entry = (self.sides[0].entry(), self.sides[1].entry(), 0);
        let state = self.machine.entry_state(blocks(entry), &|_| None);
        let known = Known {
            state,
            facts: Facts::default(),
        };
        let mut work = vec![self.enter(entry, known)];
        let blocks = self.sides[0].blocks() + self.sides[1].blocks();
        let limit = 16 * blocks + 8 * MOST_AHEAD as usize;
        while let Some(id) = work.pop() {
            for (key, known) in self.visit(id)? {
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
        if key.2 == 0 {
            self.forget(id, blocks(key), &mut known.state);
        }
        self.ids.insert(key, id);
        self.nodes.push(node);
        self.known.push(known);
        id
    }

    /// Of what loops change, that begin here for both, nothing is known but what is the same.
    fn forget(&mut self, id: u32, blocks: [Option<Block>; 2], state: &mut State) {
        let [Some(a), Some(b)] = blocks else { return };
        if !(self.changes[0].is_header(a) && self.changes[1].is_header(b)) {
            return;
        }
        let mut names: FxHashMap<Term, Term> = FxHashMap::default();
        for (position, term) in state.iter_mut().enumerate() {
            let is_changed = match self.machine.register_at(blocks, position) {
                Some((side, value)) => {
                    let header = if side == 0 { a } else { b };
                    self.changes[side].holds(header, value)
                }
                None => true,
            };
            if is_changed {
                let terms = &mut self.machine.terms;
                let name = Head::Phi(NAMES + id, position as u32);
                *term = *names.entry(*term).or_insert_with(|| terms.leaf(name));
            }
        }
    }

    /// Finds out what runs at a node, and runs it.
    fn visit(&mut self, id: u32) -> Result<Vec<(Key, Known)>, Misaligned> {
        let node = &self.nodes[id as usize];
        let key = (node.original, node.rewritten, node.phase);
        let (a, b, phase) = key;
        let bare = bare(self.sides[0], self.sides[1], (a, b));
        let straight = || straight(self.sides[0], self.sides[1], (a, b));
        if let Some((straight, nexts)) = bare.or_else(straight) {
            // What runs together is no longer apart.
            let phase = if is_both(straight.run) { 0 } else { phase };
            self.nodes[id as usize].run = straight.run;
            self.play(id, straight.run);
            let next = nexts.into_iter().map(|(a, b)| (a, b, phase));
            return Ok(next.map(|key| (key, self.leave(key, None))).collect());
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

    /// Plays what runs at a node on what is known.
    fn play(&mut self, id: u32, run: Run) {
        let node = &self.nodes[id as usize];
        let at = blocks((node.original, node.rewritten, 0));
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
    }

    /// What is known where a node that was just played leads, if this condition holds.
    fn leave(&mut self, to: Key, condition: Option<Term>) -> Known {
        let mut facts = self.machine.terms.facts.clone();
        if let Some(condition) = condition
            && self.machine.terms.as_const(condition).is_none()
        {
            facts.insert(condition);
        }
        let state = self.machine.leave(blocks(to));
        Known { state, facts }
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
            if first.content == second.content {
                return Some(Choice::One { flip: false });
            }
            if let [Some(x), Some(y)] = guards
                && self.machine.terms.not(x) == y
            {
                return Some(Choice::One { flip: true });
            }
        }
        for side in [0, 1] {
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
            [_, Some(_)] if insts[0].is_some() => Some(Choice::Alone {
                side: 1,
                forced: None,
            }),
            [None, None] if are_alike => Some(Choice::One { flip: false }),
            _ => None,
        }
    }

    /// Both decide; they were just played.
    fn together(&mut self, id: u32, key: Key, flip: bool) -> Result<Vec<(Key, Known)>, Misaligned> {
        let (a, b, _) = key;
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
            let key = (a, b, 0);
            (key, self.leave(key, conditions.get(way).copied()))
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
        let (a, b, phase) = key;
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
                0 => (to, b, phase + 1),
                _ => (a, to, phase + 1),
            };
            (key, self.leave(key, conditions.get(way).copied()))
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

fn blocks((a, b, _): Key) -> [Option<Block>; 2] {
    [a, b].map(|place| match place {
        Place::Block(block) => Some(block),
        Place::Left(_) => None,
    })
}

fn misaligned((original, rewritten, _): Key, reason: &'static str) -> Misaligned {
    Misaligned {
        original,
        rewritten,
        reason,
    }
}

/// What each loop of a function changes, by its header.
struct Changes(FxHashMap<Block, FxHashSet<Value>>);

impl Changes {
    fn new<S: Semantics>(machine: &Machine<'_, S>, side: usize) -> Changes {
        let function = &machine.functions[side];
        let cfg: &Cfg = &function.cfg;
        let loops = Loops::new(cfg);
        let mut all: FxHashMap<Block, FxHashSet<Value>> = FxHashMap::default();
        for of in loops.iter() {
            let changed = all.entry(loops.header(of)).or_default();
            for inst in loops.blocks(of).iter().flat_map(|&block| cfg.insts(block)) {
                function.func.for_each_def(inst, |value| {
                    changed.insert(value);
                });
            }
        }
        Changes(all)
    }

    fn is_header(&self, block: Block) -> bool {
        self.0.contains_key(&block)
    }

    fn holds(&self, header: Block, value: Value) -> bool {
        self.0
            .get(&header)
            .is_some_and(|changed| changed.contains(&value))
    }
}
