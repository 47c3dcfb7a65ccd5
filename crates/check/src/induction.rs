//! Loops in which one register counts and another one is advanced alike: `p = p + 4` for `base + 4 · i`.
//!
//! A register that a loop changes is a name of its own (`state.rs`). Here it may be written as a linear
//! function of another one that changes, and facts may be taken to hold whenever the loop's header is
//! reached: what stands in `i < n`, so that extending `i` to 64 bits does not lose a carry. Both are
//! guesses. Each round takes them for true and computes, for every edge into the header, from outside
//! and around, whether they hold behind it if they held before; what does not is dropped, and all is done
//! again. What is left holds on every arrival, by induction on the steps of an execution.
//!
//! A function or a fact is made of names that belong to earlier nodes, and of what locations hold on
//! arrival: so it says the same however the header was reached.

use std::collections::{BTreeMap, BTreeSet};

use smallvec::{SmallVec, smallvec};

use crate::facts::Facts;
use crate::state::State;
use crate::term::{Head, Parts, Term, Terms, sign_extended, truncate};

/// Registers of one loop that are looked at, ways to write each, and facts.
const MOST_VARIABLES: usize = 24;
const MOST_WAYS: usize = 8;
const MOST_GUESSES: usize = 32;

/// Terms looked at to find the names in one.
const FUEL: usize = 256;

/// A location that each round of a loop changes by the same step.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Variable {
    pub(crate) position: usize,
    pub(crate) bits: u32,
    step: Term,
    /// What it holds at first.
    pub(crate) first: Term,
    /// Its name.
    name: Term,
}

/// first + factor · (of - what `of` holds at first)
#[derive(Clone, Copy, Debug)]
struct Way {
    of: usize,
    of_bits: u32,
    factor: Term,
    /// How `of` becomes as wide: with its sign?
    signed: bool,
}

/// The ways to write a location.
#[derive(Clone, Debug)]
struct Relation {
    position: usize,
    bits: u32,
    ways: Vec<Way>,
}

/// A part of a fact that may hold at a header.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    /// What a location holds.
    Location(usize),
    /// The low bits of that, of so many.
    Low(usize, u32, u32),
    /// A sum of so many bits: what locations hold, each so many times, and a term.
    Sum(u32, SmallVec<[(usize, u64); 2]>, Term),
    /// The low bits, of so many, of what is left to a term: how many, of how many, and from which location.
    Left(u32, u32, usize, Term),
    Term(Term),
}

/// `Less` or `Equal` of two parts, or not.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Guess {
    head: Head,
    holds: bool,
    parts: [Part; 2],
}

/// What is guessed of one header.
#[derive(Clone, Debug, Default)]
pub(crate) struct Header {
    relations: Vec<Relation>,
    guesses: Vec<Guess>,
    /// Facts that hold where the loop is entered and not around it.
    lost: BTreeSet<Term>,
    /// In this round: what locations hold on arrival, …
    joined: State,
    /// … the facts that were guessed, …
    guessed: Vec<Term>,
    /// … and the relations in use, by number and way, with the part that does not change.
    in_use: Vec<(usize, usize, Term)>,
}

/// Guesses about all headers, and the facts of the current round.
#[derive(Clone, Debug, Default)]
pub(crate) struct Induction {
    headers: BTreeMap<usize, Header>,
    /// By node, for each way into it.
    edges: Vec<Vec<Facts>>,
    /// By node.
    at: Vec<Facts>,
}

/// The edges into a node and what comes over them.
pub(crate) struct Arrivals<'s> {
    pub(crate) node: usize,
    /// For each way in: does it lead forward, and the state, once there was one.
    pub(crate) ways: Vec<(bool, Option<&'s State>)>,
}

impl Arrivals<'_> {
    fn is_header(&self) -> bool {
        self.node > 0 && self.ways.iter().any(|way| !way.0)
    }

    fn first(&self, forward: bool) -> Option<(usize, &State)> {
        let mut ways = self.ways.iter().enumerate();
        ways.find_map(|(at, way)| Some((at, way.1.filter(|_| way.0 == forward)?)))
    }
}

impl Induction {
    /// `ways`: the number of ways into each node.
    pub(crate) fn new(ways: impl Iterator<Item = usize>) -> Induction {
        let edges: Vec<_> = ways.map(|count| vec![Facts::default(); count]).collect();
        Induction {
            headers: BTreeMap::new(),
            at: vec![Facts::default(); edges.len()],
            edges,
        }
    }

    /// The facts at the start of a node.
    pub(crate) fn at(&self, node: usize) -> Facts {
        self.at[node].clone()
    }

    /// A node is left by one of its ways: this is the `way`-th way into `node`, and `condition` holds.
    pub(crate) fn leave(&mut self, from: usize, node: usize, way: usize, condition: Option<Term>) {
        let mut facts = self.at[from].clone();
        if let Some(condition) = condition {
            facts.insert(condition);
        }
        self.edges[node][way] = facts;
    }

    /// Writes the locations that are thought to follow others as functions of them, and finds the facts.
    pub(crate) fn arrive(&mut self, terms: &mut Terms, arrivals: &Arrivals<'_>, state: &mut State) {
        let node = arrivals.node;
        let mut facts = Facts::default();
        if node > 0 {
            // What holds on every way that leads forward; no such fact has a name of this node.
            let forward = arrivals.ways.iter().zip(&self.edges[node]);
            let mut forward = forward.filter(|(way, _)| way.0).map(|(_, facts)| facts);
            facts = forward.next().cloned().unwrap_or_default();
            for other in forward {
                facts.retain(|fact| other.contains(fact));
            }
        }
        if let Some(header) = self.headers.get_mut(&node) {
            facts.retain(|fact| !header.lost.contains(&fact));
            if let Some((_, first)) = arrivals.first(true) {
                terms.facts = facts.clone();
                header.suppose(terms, state);
                header.write(terms, node, first, state);
            }
            terms.facts = facts.clone();
            header.guessed = header.suppose(terms, state);
            facts = std::mem::take(&mut terms.facts);
            header.joined.clone_from(state);
        }
        self.at[node] = facts;
    }

    /// Drops what does not hold on some way into the node; says whether there was anything.
    pub(crate) fn refine(&mut self, terms: &mut Terms, arrivals: &Arrivals<'_>) -> bool {
        let node = arrivals.node;
        if !arrivals.is_header() {
            return false;
        }
        let header = self.headers.entry(node).or_default();
        let mut wrong = BTreeSet::new();
        let mut unproved = BTreeSet::new();
        let mut lost = BTreeSet::new();
        let ways = arrivals.ways.iter().zip(&self.edges[node]);
        for ((is_forward, state), facts) in ways {
            let Some(state) = state else { continue };
            terms.facts = facts.clone();
            for &(relation, way, rest) in &header.in_use {
                let Relation {
                    position,
                    bits,
                    ref ways,
                } = header.relations[relation];
                if ways[way].over(terms, bits, rest, state) != state[position] {
                    wrong.insert((relation, way));
                }
            }
            for (number, guess) in (1..).zip(&header.guesses) {
                // Of what is still taken not to change, and does, this round says nothing; the next one will.
                let is_stale = |at: usize| {
                    !is_name_of(terms, header.joined[at], node)
                        && !header.is_written(at)
                        && header.joined[at] != state[at]
                };
                if guess.locations().any(is_stale) {
                    continue;
                }
                let fact = guess.over(terms, state);
                if !terms.proves(fact) {
                    unproved.insert(number);
                }
            }
            if !is_forward {
                // The others are inherited, and made of names that the header leaves alone.
                lost.extend(self.at[node].iter().filter(|&fact| !facts.contains(fact)));
            }
        }
        terms.facts = Facts::default();
        lost.retain(|fact| !header.guessed.contains(fact));
        let changed = !(wrong.is_empty() && unproved.is_empty() && lost.is_empty());
        for (relation, way) in wrong.into_iter().rev() {
            header.relations[relation].ways.remove(way);
        }
        let mut number = 0;
        header.guesses.retain(|_| {
            number += 1;
            !unproved.contains(&number)
        });
        header.lost.extend(lost);
        changed
    }
}

impl Header {
    fn is_written(&self, position: usize) -> bool {
        let mut numbers = self.in_use.iter();
        numbers.any(|&(number, ..)| self.relations[number].position == position)
    }

    /// Replaces names of locations by functions of other ones.
    fn write(&mut self, terms: &mut Terms, node: usize, first: &State, state: &mut State) {
        self.in_use.clear();
        for (number, relation) in self.relations.iter().enumerate() {
            let &Relation { position, bits, .. } = relation;
            let is_name = |terms: &Terms, at: usize| is_name_of(terms, state[at], node);
            if !is_name(terms, position) {
                continue;
            }
            let mut ways = relation.ways.iter().enumerate();
            let Some((at, way)) = ways.find(|(_, way)| is_name(terms, way.of)) else {
                continue;
            };
            let zero = terms.zero();
            let start = way.over(terms, bits, zero, first);
            let rest = terms.sub(bits, first[position], start);
            self.in_use.push((number, at, rest));
            state[position] = way.over(terms, bits, rest, state);
        }
    }
}

impl Way {
    /// rest + factor · of
    fn over(&self, terms: &mut Terms, bits: u32, rest: Term, state: &State) -> Term {
        let of = widened(terms, self.of_bits, bits, self.signed, state[self.of]);
        let product = terms.mul(bits, of, self.factor);
        terms.add(bits, rest, product)
    }
}

impl Guess {
    fn locations(&self) -> impl Iterator<Item = usize> {
        let parts = self.parts.iter();
        parts.flat_map(|part| -> SmallVec<[usize; 2]> {
            match part {
                Part::Location(position)
                | Part::Low(position, ..)
                | Part::Left(_, _, position, _) => {
                    smallvec![*position]
                }
                Part::Sum(_, parts, _) => parts.iter().map(|part| part.0).collect(),
                Part::Term(_) => smallvec![],
            }
        })
    }

    /// Is it said of what a variable holds, rather than of some of its bits?
    fn is_of(&self, variable: &Variable) -> bool {
        self.parts.contains(&Part::Location(variable.position))
    }

    fn over(&self, terms: &mut Terms, state: &State) -> Term {
        let [a, b] = self.parts.each_ref().map(|part| match part {
            Part::Location(position) => state[*position],
            Part::Low(position, low, bits) => terms.extract(0, *low, *bits, state[*position]),
            Part::Sum(bits, parts, rest) => parts.iter().fold(*rest, |sum, &(at, factor)| {
                let factor = terms.constant(truncate(factor, *bits));
                let product = terms.mul(*bits, state[at], factor);
                terms.add(*bits, sum, product)
            }),
            Part::Left(low, bits, position, end) => {
                let left = terms.sub(*bits, *end, state[*position]);
                terms.extract(0, *low, *bits, left)
            }
            Part::Term(term) => *term,
        });
        let fact = match self.head {
            Head::Less(bits, signed) => terms.less(bits, signed, a, b),
            Head::Equal(bits) => terms.equal(bits, a, b),
            // Of others nothing is guessed.
            _ => terms.truth(),
        };
        if self.holds { fact } else { terms.not(fact) }
    }
}

fn widened(terms: &mut Terms, from: u32, to: u32, signed: bool, value: Term) -> Term {
    match signed {
        _ if from == to => value,
        true => terms.sign_extend(from, to, value),
        false => terms.zero_extend(from, to, value),
    }
}

/// Is it what a location that changes holds on arrival at the node?
fn is_name_of(terms: &Terms, term: Term, node: usize) -> bool {
    matches!(terms.head(term), Head::Phi(of, _) if of as usize == node)
}

/// Has it names of earlier nodes alone?
fn is_older(terms: &Terms, term: Term, node: usize) -> bool {
    let mut seen = BTreeSet::new();
    let mut work = vec![term];
    while let Some(term) = work.pop() {
        if !seen.insert(term) {
            continue;
        }
        if seen.len() > FUEL {
            return false;
        }
        match terms.head(term) {
            Head::Phi(of, _) if of as usize >= node => return false,
            Head::Unknown(..) => return false,
            _ => work.extend(terms.args(term)),
        }
    }
    true
}

impl Induction {
    /// Guesses, from what the rounds without any have come to.
    pub(crate) fn guess(&mut self, terms: &mut Terms, arrivals: &Arrivals<'_>, state: &State) {
        if !arrivals.is_header() {
            return;
        }
        let (Some((_, first)), Some((way, back))) = (arrivals.first(true), arrivals.first(false))
        else {
            return;
        };
        let node = arrivals.node;
        let variables = variables(terms, node, [first, back], state);
        let mut header = Header::default();
        header.carry(terms, node, &self.edges[node][way], back, state);
        header.follow(terms, &variables, (node, state));
        self.headers.entry(node).or_insert(header);
    }

    /// Is there anything that was guessed, and more than facts about branches?
    pub(crate) fn is_of_use(&self) -> bool {
        let is_low = |guess: &Guess| matches!(guess.parts[0], Part::Low(..));
        let mut headers = self.headers.values();
        headers.any(|header| !header.relations.is_empty() || header.guesses.iter().any(is_low))
    }
}

impl Header {
    /// Guesses that what holds on a way around holds of the values that the next round begins with.
    pub(crate) fn carry(
        &mut self,
        terms: &mut Terms,
        node: usize,
        facts: &Facts,
        back: &State,
        state: &State,
    ) {
        let around = Around { node, back, state };
        for fact in facts.iter() {
            let (atom, holds) = match terms.head(fact) {
                Head::Not => (terms.args(fact)[0], false),
                _ => (fact, true),
            };
            let head = terms.head(atom);
            let (Head::Less(bits, _) | Head::Equal(bits), &[a, b]) = (head, terms.args(atom))
            else {
                continue;
            };
            let [a, b] = [a, b].map(|arg| around.part(terms, bits, arg));
            if let (Some(a), Some(b)) = (a, b)
                && (a.1 || b.1)
            {
                self.guesses.push(Guess {
                    head,
                    holds,
                    parts: [a.0, b.0],
                });
            }
        }
    }

    /// Drops the guesses that do not hold where the loop is entered.
    pub(crate) fn keep_entered(&mut self, terms: &mut Terms, first: &State) {
        self.guesses.retain(|guess| {
            let fact = guess.over(terms, first);
            terms.proves(fact)
        });
    }

    /// Guesses how variables follow each other, where they begin and end, and which of their bits stay.
    pub(crate) fn follow(
        &mut self,
        terms: &mut Terms,
        variables: &[Variable],
        (node, state): (usize, &State),
    ) {
        for guess in self.guesses.clone() {
            self.guesses
                .extend(bounds_of_ends(terms, &guess, variables));
            self.guesses
                .extend(whole_steps(terms, &guess, variables, (node, state)));
        }
        for variable in variables {
            self.guesses.extend(low_bits(terms, variable));
            let decides = self.guesses.iter().any(|guess| guess.is_of(variable));
            if decides || terms.as_const(variable.first).is_some() {
                self.guesses.extend(starts(terms, variable));
            }
        }
        self.guesses.dedup();
        self.guesses.truncate(MOST_GUESSES);
        self.relations = relations(terms, variables);
    }

    /// Takes all guesses for true.
    pub(crate) fn believe(
        &mut self,
        terms: &mut Terms,
        node: usize,
        first: &State,
        state: &mut State,
    ) {
        let facts = terms.facts.clone();
        self.suppose(terms, state);
        self.write(terms, node, first, state);
        terms.facts = facts;
        self.suppose(terms, state);
    }

    /// Takes the guesses for true of what locations hold.
    fn suppose(&self, terms: &mut Terms, state: &State) -> Vec<Term> {
        let guesses = self.guesses.iter();
        let guessed: Vec<Term> = guesses.map(|guess| guess.over(terms, state)).collect();
        for &fact in &guessed {
            if terms.as_const(fact).is_none() {
                terms.facts.insert(fact);
            }
        }
        guessed
    }
}

/// A way around a loop: what locations hold behind it, and before.
struct Around<'s> {
    node: usize,
    back: &'s State,
    state: &'s State,
}

impl Around<'_> {
    /// What stands in a fact behind it, as a function of what locations hold there; is it of any that the loop changes?
    fn part(&self, terms: &mut Terms, bits: u32, arg: Term) -> Option<(Part, bool)> {
        if let Some(position) = self.changed(terms, arg) {
            return Some((Part::Location(position), true));
        }
        if is_older(terms, arg, self.node) {
            let kept = self.state.iter().position(|&term| term == arg);
            return Some((kept.map_or(Part::Term(arg), Part::Location), false));
        }
        self.sum(terms, bits, arg).map(|sum| (sum, true))
    }

    /// A location that changes and holds this behind the turn.
    fn changed(&self, terms: &Terms, arg: Term) -> Option<usize> {
        let mut all = 0..self.state.len();
        all.find(|&at| self.back[at] == arg && is_name_of(terms, self.state[at], self.node))
    }

    /// The same of a sum, in which a name is what its location holds behind the turn, less the step.
    fn sum(&self, terms: &mut Terms, bits: u32, arg: Term) -> Option<Part> {
        let (mut parts, mut constant) = (Parts::new(), 0);
        if !terms.parts(bits, arg, 1, &mut parts, &mut constant) || parts.len() == 1 {
            return None;
        }
        let mut rest = terms.constant(truncate(constant, bits));
        let mut found = SmallVec::new();
        for (part, factor) in parts {
            let older = match self.changed(terms, part) {
                Some(at) => {
                    found.push((at, factor));
                    continue;
                }
                None if is_older(terms, part, self.node) => part,
                None => {
                    let (at, step) = self.stepped(terms, bits, part)?;
                    found.push((at, factor));
                    let zero = terms.zero();
                    terms.sub(bits, zero, step)
                }
            };
            let factor = terms.constant(truncate(factor, bits));
            let product = terms.mul(bits, older, factor);
            rest = terms.add(bits, rest, product);
        }
        Some(Part::Sum(bits, found, rest))
    }

    /// A location that has this name, and what the turn adds to it.
    fn stepped(&self, terms: &mut Terms, bits: u32, name: Term) -> Option<(usize, Term)> {
        let mut all = (0..self.state.len()).filter(|&at| self.state[at] == name);
        all.find_map(|at| {
            let step = terms.sub(bits, self.back[at], name);
            is_older(terms, step, self.node).then_some((at, step))
        })
    }
}

/// The locations that the first way around changes by a step that is the same in each round.
pub(crate) fn variables(
    terms: &mut Terms,
    node: usize,
    [first, back]: [&State; 2],
    state: &State,
) -> Vec<Variable> {
    let mut variables = Vec::new();
    for (position, &name) in state.iter().enumerate() {
        let Head::Add(bits @ (32 | 64)) = terms.head(back[position]) else {
            continue;
        };
        if !is_name_of(terms, name, node) {
            continue;
        }
        let step = terms.sub(bits, back[position], name);
        if is_older(terms, step, node) {
            variables.push(Variable {
                position,
                bits,
                step,
                first: first[position],
                name,
            });
        }
    }
    variables.sort_by_key(|variable| {
        let size = step_of(terms, variable).map_or(u64::MAX, i64::unsigned_abs);
        (variable.bits, size, variable.position)
    });
    variables.truncate(MOST_VARIABLES);
    variables
}

/// The step, if it is a number.
pub(crate) fn step_of(terms: &Terms, variable: &Variable) -> Option<i64> {
    let step = terms.as_const(variable.step)?;
    Some(sign_extended(step, variable.bits))
}

fn relations(terms: &mut Terms, variables: &[Variable]) -> Vec<Relation> {
    let mut relations = Vec::new();
    for (number, variable) in variables.iter().enumerate() {
        let mut others: Vec<&Variable> = variables[..number]
            .iter()
            .filter(|other| other.name != variable.name)
            .collect();
        // Of the same width nothing can be lost.
        others.sort_by_key(|other| other.bits != variable.bits);
        others.dedup_by_key(|other| other.name);
        let mut ways = Vec::new();
        for other in others {
            let as_signed = terms.has(Head::SignExtend(other.bits, variable.bits), other.name);
            let as_unsigned = terms.has(Head::ZeroExtend(other.bits, variable.bits), other.name);
            let signs = match (other.bits == variable.bits, as_unsigned && !as_signed) {
                (true, _) => &[true][..],
                (false, true) => &[false, true],
                (false, false) => &[true, false],
            };
            for &signed in signs {
                if let Some(factor) = factor(terms, variable, other, signed) {
                    ways.push(Way {
                        of: other.position,
                        of_bits: other.bits,
                        factor,
                        signed,
                    });
                }
            }
        }
        ways.truncate(MOST_WAYS);
        if !ways.is_empty() {
            relations.push(Relation {
                position: variable.position,
                bits: variable.bits,
                ways,
            });
        }
    }
    relations
}

/// How many steps of `other`, as wide, one step of `variable` is.
fn factor(terms: &mut Terms, variable: &Variable, other: &Variable, signed: bool) -> Option<Term> {
    let bits = variable.bits;
    match (step_of(terms, variable), step_of(terms, other)) {
        (Some(step), Some(unit)) => {
            let is_multiple = unit != 0 && step.checked_rem(unit)? == 0;
            let zero = terms.zero();
            is_multiple.then(|| terms.add_const(bits, zero, step / unit))
        }
        (None, Some(1)) => Some(variable.step),
        (None, Some(-1)) => {
            let zero = terms.zero();
            Some(terms.sub(bits, zero, variable.step))
        }
        (None, None) => {
            let unit = widened(terms, other.bits, bits, signed, other.step);
            [1i64, 2, 4, 8, 16, -1].into_iter().find_map(|times| {
                let zero = terms.zero();
                let times = terms.add_const(bits, zero, times);
                (terms.mul(bits, unit, times) == variable.step).then_some(times)
            })
        }
        _ => None,
    }
}

/// A loop that counts by a power of two to an end, which it must meet, stays on its side of it.
fn bounds_of_ends(terms: &mut Terms, guess: &Guess, variables: &[Variable]) -> Vec<Guess> {
    let (Head::Equal(bits), false) = (guess.head, guess.holds) else {
        return Vec::new();
    };
    let [a, b] = guess.parts.clone();
    let mut found = Vec::new();
    for (counter, end) in [(a.clone(), b.clone()), (b, a)] {
        let Part::Location(position) = counter else {
            continue;
        };
        let variable = variables.iter().find(|of| of.position == position);
        let Some((variable, step)) =
            variable.and_then(|of| Some((of, step_of(terms, of).filter(|&step| step != 0)?)))
        else {
            continue;
        };
        for signed in [true, false] {
            found.push(Guess {
                head: Head::Less(bits, signed),
                holds: true,
                parts: if step > 0 {
                    [counter.clone(), end.clone()]
                } else {
                    [end.clone(), counter.clone()]
                },
            });
        }
        let power = step.trailing_zeros();
        if power > 0 && terms.as_const(variable.first).is_some() {
            let low = terms.extract(0, power, bits, variable.first);
            found.push(Guess {
                head: Head::Equal(power),
                holds: true,
                parts: [Part::Low(position, power, bits), Part::Term(low)],
            });
        }
    }
    found
}

/// What is left to an end is so many whole steps of a power of two.
fn whole_steps(
    terms: &mut Terms,
    guess: &Guess,
    variables: &[Variable],
    (node, state): (usize, &State),
) -> Option<Guess> {
    let [a, b] = &guess.parts;
    let (counter, end) = match (a, b) {
        (Part::Location(at), end) if variables.iter().any(|of| of.position == *at) => (*at, end),
        (end, Part::Location(at)) => (*at, end),
        _ => return None,
    };
    let end = match end {
        Part::Term(end) => *end,
        Part::Location(at) => state[*at],
        _ => return None,
    };
    if !is_older(terms, end, node) {
        return None;
    }
    let variable = variables.iter().find(|of| of.position == counter)?;
    let low = step_of(terms, variable)?.trailing_zeros().min(8);
    let zero = terms.zero();
    (low > 0 && low < variable.bits).then_some(Guess {
        head: Head::Equal(low),
        holds: true,
        parts: [
            Part::Left(low, variable.bits, counter, end),
            Part::Term(zero),
        ],
    })
}

/// Bits of a variable that its steps do not change.
fn low_bits(terms: &mut Terms, variable: &Variable) -> Option<Guess> {
    let step = step_of(terms, variable)?;
    let first = terms.congruence(variable.first);
    let bits = step.trailing_zeros().min(first.bits);
    let rest = terms.constant(truncate(first.rest, bits));
    (bits > 0).then_some(Guess {
        head: Head::Equal(bits),
        holds: true,
        parts: [
            Part::Low(variable.position, bits, variable.bits),
            Part::Term(rest),
        ],
    })
}

/// The low bits of a value, if a fact says them: how many, and what they are.
pub(crate) fn low_fact(terms: &Terms, fact: Term, value: Term) -> Option<(u32, u64)> {
    let (Head::Equal(bits), &[part, rest]) = (terms.head(fact), terms.args(fact)) else {
        return None;
    };
    let is_low = matches!(terms.head(part), Head::Extract { lo: 0, bits: own, .. } if own == bits);
    let rest = terms.as_const(rest).filter(|_| is_low)?;
    (terms.args(part) == [value]).then_some((bits, rest))
}

/// A counter does not come to the other side of where it begins.
fn starts(terms: &Terms, variable: &Variable) -> Vec<Guess> {
    let Some(step) = step_of(terms, variable) else {
        return Vec::new();
    };
    let here = Part::Location(variable.position);
    let first = Part::Term(variable.first);
    let parts = if step > 0 {
        [here, first]
    } else {
        [first, here]
    };
    let guess = |signed| Guess {
        head: Head::Less(variable.bits, signed),
        holds: false,
        parts: parts.clone(),
    };
    vec![guess(true), guess(false)]
}
