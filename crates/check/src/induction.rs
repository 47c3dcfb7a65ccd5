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

use crate::facts::Facts;
use crate::state::State;
use crate::term::{Head, Term, Terms, sign_extended, truncate};

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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// What a location holds.
    Location(usize),
    /// The low bits of that, of so many.
    Low(usize, u32, u32),
    Term(Term),
}

/// `Less` or `Equal` of two parts, or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
        let at = self.parts.map(|part| match part {
            Part::Location(position) | Part::Low(position, ..) => Some(position),
            Part::Term(_) => None,
        });
        at.into_iter().flatten()
    }

    /// Is it said of what a variable holds, rather than of some of its bits?
    fn is_of(&self, variable: &Variable) -> bool {
        self.parts.contains(&Part::Location(variable.position))
    }

    fn over(&self, terms: &mut Terms, state: &State) -> Term {
        let [a, b] = self.parts.map(|part| match part {
            Part::Location(position) => state[position],
            Part::Low(position, low, bits) => terms.extract(0, low, bits, state[position]),
            Part::Term(term) => term,
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
        header.follow(terms, &variables);
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
        terms: &Terms,
        node: usize,
        facts: &Facts,
        back: &State,
        state: &State,
    ) {
        for fact in facts.iter() {
            let (atom, holds) = match terms.head(fact) {
                Head::Not => (terms.args(fact)[0], false),
                _ => (fact, true),
            };
            let (head @ (Head::Less(..) | Head::Equal(_)), &[a, b]) =
                (terms.head(atom), terms.args(atom))
            else {
                continue;
            };
            let mut is_new = false;
            let mut part = |arg: Term| {
                let changed = (0..state.len())
                    .find(|&at| back[at] == arg && is_name_of(terms, state[at], node));
                if let Some(position) = changed {
                    is_new = true;
                    return Some(Part::Location(position));
                }
                let kept = state.iter().position(|&term| term == arg);
                let is_kept = is_older(terms, arg, node);
                is_kept.then(|| kept.map_or(Part::Term(arg), Part::Location))
            };
            if let (Some(a), Some(b)) = (part(a), part(b))
                && is_new
            {
                self.guesses.push(Guess {
                    head,
                    holds,
                    parts: [a, b],
                });
            }
        }
    }

    /// Guesses how variables follow each other, where they begin and end, and which of their bits stay.
    pub(crate) fn follow(&mut self, terms: &mut Terms, variables: &[Variable]) {
        for guess in self.guesses.clone() {
            self.guesses
                .extend(bounds_of_ends(terms, &guess, variables));
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
    let [a, b] = guess.parts;
    let mut found = Vec::new();
    for (counter, end) in [(a, b), (b, a)] {
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
                    [counter, end]
                } else {
                    [end, counter]
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
        parts,
    };
    vec![guess(true), guess(false)]
}
