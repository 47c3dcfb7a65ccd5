//! What loops that both functions enter together will do, for the walk by values (`guided.rs`).
//!
//! One turn of each is played ahead, from values that are not known, along one way around. Registers that it changes by a
//! constant are variables. Where one function's step is several of the other's, its turn is as many of that one's turns, so
//! that variables that begin alike and move alike are one. What one way around shows of the values that the next turn begins
//! with is taken to hold at the header, and so is what `induction.rs` guesses of variables.
//!
//! Nothing here is trusted: a wrong guess leads the walk astray, and the proof fails.

use std::collections::BTreeMap;

use rustc_hash::{FxHashMap, FxHashSet};
use warpwright_flow::{Block, Cfg, Loops, Value};

use crate::facts::Facts;
use crate::induction::{Header, Variable, step_of, variables};
use crate::machine::{Machine, SIDES};
use crate::product::{Place, Skeleton};
use crate::semantics::Semantics;
use crate::state::State;
use crate::term::{Head, Term, Terms};

/// The loops of a function, by header: their blocks, and the registers that they change.
pub(crate) struct Changes(FxHashMap<Block, Loop>);

#[derive(Default)]
struct Loop {
    blocks: FxHashSet<Block>,
    values: FxHashSet<Value>,
}

impl Changes {
    pub(crate) fn new<S: Semantics>(machine: &Machine<'_, S>, side: usize) -> Changes {
        let function = &machine.functions[side];
        let cfg: &Cfg = &function.cfg;
        let loops = Loops::new(cfg);
        let mut all: FxHashMap<Block, Loop> = FxHashMap::default();
        for of in loops.iter() {
            let changed = all.entry(loops.header(of)).or_default();
            changed.blocks.extend(loops.blocks(of));
            for inst in loops.blocks(of).iter().flat_map(|&block| cfg.insts(block)) {
                function.func.for_each_def(inst, |value| {
                    changed.values.insert(value);
                });
            }
        }
        Changes(all)
    }

    pub(crate) fn is_header(&self, block: Block) -> bool {
        self.0.contains_key(&block)
    }

    /// Is a block in the loop of a header?
    pub(crate) fn has(&self, header: Block, block: Block) -> bool {
        self.0
            .get(&header)
            .is_some_and(|of| of.blocks.contains(&block))
    }

    fn holds(&self, header: Block, value: Value) -> bool {
        self.0
            .get(&header)
            .is_some_and(|changed| changed.values.contains(&value))
    }
}

/// Two loops that are entered together.
pub(crate) struct Together<'w, 'a, S> {
    pub(crate) machine: &'w mut Machine<'a, S>,
    pub(crate) sides: [&'w Skeleton<'w, S>; 2],
    pub(crate) changes: &'w [Changes; 2],
    pub(crate) headers: [Block; 2],
    /// The number that names are of.
    pub(crate) node: u32,
}

/// What a turn leaves: what holds behind it, and what registers hold.
type Turn = (Facts, State);

impl<S: Semantics> Together<'_, '_, S> {
    fn blocks(&self) -> [Option<Block>; 2] {
        self.headers.map(Some)
    }

    /// The locations that change, and whose register each is.
    fn changed(&self, len: usize) -> Vec<(usize, Option<usize>)> {
        let place = |at: usize| match self.machine.register_at(self.blocks(), at) {
            Some((side, value)) => {
                let is_changed = self.changes[side].holds(self.headers[side], value);
                is_changed.then_some((at, Some(side)))
            }
            None => Some((at, None)),
        };
        (0..len).filter_map(place).collect()
    }

    /// Of what changes nothing is known but that what is the same stays so.
    pub(crate) fn forget(&mut self, state: &mut State) {
        let mut names: FxHashMap<Term, Term> = FxHashMap::default();
        for (at, _) in self.changed(state.len()) {
            let name = Head::Phi(self.node, at as u32);
            let terms = &mut self.machine.terms;
            state[at] = *names.entry(state[at]).or_insert_with(|| terms.leaf(name));
        }
    }

    /// The same, and what a turn ahead shows of it.
    pub(crate) fn foresee(&mut self, state: &mut State, facts: &mut Facts) -> Option<()> {
        let (first, node) = (state.clone(), self.node as usize);
        let changed = self.changed(first.len());
        let mut apart = first.clone();
        self.forget(&mut apart);
        for &(at, side) in &changed {
            if side.is_some() {
                apart[at] = self.machine.terms.leaf(Head::Phi(self.node, at as u32));
            }
        }
        let mut all = [Vec::new(), Vec::new()];
        for (side, found) in all.iter_mut().enumerate() {
            let (_, back) = self.turn(side, &apart, facts)?;
            *found = variables(&mut self.machine.terms, node, [&first, &back], &apart);
        }
        let turns = turns(&self.machine.terms, &all);
        let mut back = self.name_alike(&changed, (&first, &all), turns, &mut apart);
        let mut header = Header::default();
        for side in [0, 1] {
            let (shown, mut own) = self.turn(side, &apart, facts)?;
            self.hide_other(side, &changed, &mut own);
            header.carry(&mut self.machine.terms, node, &shown, &own, &apart);
        }
        for (at, term) in back.iter_mut().enumerate() {
            if *term == first[at] {
                *term = apart[at];
            }
        }
        let terms = &mut self.machine.terms;
        let moving = variables(terms, node, [&first, &back], &apart);
        header.follow(terms, &moving, (node, &apart));
        terms.facts = facts.clone();
        header.keep_entered(terms, &first);
        header.believe(terms, node, &first, &mut apart);
        *facts = std::mem::take(&mut terms.facts);
        *state = apart;
        Some(())
    }

    /// What the other function holds has not moved in a turn of this one.
    fn hide_other(&mut self, side: usize, changed: &[(usize, Option<usize>)], back: &mut State) {
        for &(at, whose) in changed {
            if whose == Some(1 - side) {
                let name = Head::Unknown(self.node, SIDES[1 - side], Value(at as u32));
                back[at] = self.machine.terms.leaf(name);
            }
        }
    }

    /// Gives one name to variables of both that begin and move alike; gives back what they hold after so many turns.
    fn name_alike(
        &mut self,
        changed: &[(usize, Option<usize>)],
        (first, all): (&State, &[Vec<Variable>; 2]),
        turns: [i64; 2],
        state: &mut State,
    ) -> State {
        let mut back = first.clone();
        let mut names: BTreeMap<(Term, Option<i64>), Term> = BTreeMap::new();
        for &(at, side) in changed {
            let Some(side) = side else { continue };
            let terms = &mut self.machine.terms;
            let variable = all[side].iter().find(|variable| variable.position == at);
            let step = variable.and_then(|variable| step_of(terms, variable));
            let step = step.and_then(|step| step.checked_mul(turns[side]));
            let name = names.entry((first[at], step)).or_insert(state[at]);
            state[at] = *name;
            back[at] = match (variable, step) {
                (Some(variable), Some(step)) => terms.add_const(variable.bits, state[at], step),
                _ => state[at],
            };
        }
        back
    }

    /// Plays one way around a function's loop.
    fn turn(&mut self, side: usize, state: &State, facts: &Facts) -> Option<Turn> {
        let header = self.headers[side];
        let own = self.changes[side].0.get(&header)?;
        self.machine.terms.facts = facts.clone();
        self.machine.enter(self.node, self.headers.map(Some), state);
        let (mut at, mut seen) = (header, FxHashSet::default());
        loop {
            seen.insert(at);
            self.machine.run(side, at);
            let ways = self.sides[side].ways(Place::Block(at));
            let inside = |place: Place| match place {
                Place::Block(block) if own.blocks.contains(&block) => Some(block),
                _ => None,
            };
            let mut inner = ways.iter().enumerate();
            let is_new = |&(_, &way): &(usize, &Place)| {
                inside(way).is_some_and(|block| !seen.contains(&block))
            };
            let on = inner.clone().find(is_new);
            let back = || inner.find(|&(_, &way)| inside(way) == Some(header));
            let (way, &place) = on.or_else(back)?;
            self.take(side, at, way);
            let next = inside(place)?;
            if next == header {
                let facts = std::mem::take(&mut self.machine.terms.facts);
                return Some((facts, self.machine.leave(self.blocks())));
            }
            // Whatever an inner loop changes may be anything.
            if let Some(inner) = self.changes[side].0.get(&next) {
                for &value in &inner.values {
                    let name = Head::Unknown(self.node, SIDES[side], value);
                    let (any, truth) = (self.machine.terms.leaf(name), self.machine.truth);
                    self.machine.write(side, value, any, truth);
                }
            }
            at = next;
        }
    }

    /// A block was left by one of its ways.
    fn take(&mut self, side: usize, block: Block, way: usize) {
        let Some((_, _, inst)) = self.sides[side].decision(Place::Block(block)) else {
            return;
        };
        if !self.machine.functions[side].func.goes_by_guard(inst) || way > 1 {
            return;
        }
        let condition = self.machine.condition(side, inst, false);
        let guard = condition.and_then(|condition| condition.content.first().copied());
        let terms = &mut self.machine.terms;
        let fact = guard.map(|guard| if way == 0 { guard } else { terms.not(guard) });
        if let Some(fact) = fact.filter(|&fact| terms.as_const(fact).is_none()) {
            terms.facts.insert(fact);
        }
    }
}

/// After how many turns of each function both have gone as far: what most pairs of variables say that begin alike, else
/// what any pair says.
fn turns(terms: &Terms, all: &[Vec<Variable>; 2]) -> [i64; 2] {
    let mut votes: BTreeMap<(bool, i64, i64), u32> = BTreeMap::new();
    for one in &all[0] {
        for other in &all[1] {
            let (Some(a), Some(b)) = (step_of(terms, one), step_of(terms, other)) else {
                continue;
            };
            let (a, b) = (a.unsigned_abs() as i64, b.unsigned_abs() as i64);
            let is_alike = one.first == other.first && one.bits == other.bits;
            let turns = match (a, b) {
                (1.., 1..) if b % a == 0 => (b / a, 1),
                (1.., 1..) if a % b == 0 => (1, a / b),
                _ => continue,
            };
            *votes.entry((is_alike, turns.0, turns.1)).or_default() += 1;
        }
    }
    let best = votes
        .into_iter()
        .max_by_key(|&((is_alike, ..), votes)| (is_alike, votes));
    best.map_or([1, 1], |((_, a, b), _)| [a, b])
}
