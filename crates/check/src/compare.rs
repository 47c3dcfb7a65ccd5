//! The last round of a proof: every observable of both functions, side by side.

use rustc_hash::{FxHashMap, FxHashSet};
use warpwright_flow::Inst;

use crate::machine::{Accessed, Loaded, Log, Machine, Observable};
use crate::product::{Decision, Place, Product, Run};
use crate::prove::Prover;
use crate::semantics::Semantics;
use crate::slots::Misplaced;
use crate::state::{CONVERGENCE, MEMORIES, State};
use crate::term::{Head, Sym, Term, Terms};

/// Something that the last round found wrong.
#[derive(Clone, Debug)]
pub(crate) enum Finding {
    /// The memories differ on arrival at a node.
    Memory {
        node: usize,
        memory: usize,
        terms: [Term; 2],
    },
    /// The same, and these observables are why; `None` where one is missing.
    Observables {
        node: usize,
        terms: [Term; 2],
        observables: [Option<Observable>; 2],
        /// Is it more than another form or order of the same?
        is_certain: bool,
    },
    /// Two decisions differ.
    Decision {
        node: usize,
        observables: [Observable; 2],
    },
    /// What threads do together came before a decision on one side only.
    Moved { decision: [Option<Inst>; 2] },
    /// A decision of one function that facts should show to go one way.
    Unforced {
        node: usize,
        decision: [Option<Inst>; 2],
    },
    /// An access to a spill area is wrong or unclear.
    Misplaced {
        node: usize,
        inst: Inst,
        misplaced: Misplaced,
    },
    /// A vector access that the original does not do there.
    Misaligned { inst: Inst },
    /// A load that the original does not execute.
    Speculated { inst: Inst, term: Term },
}

/// What the last round found, and what explains it.
pub(crate) struct Found {
    pub(crate) findings: Vec<Finding>,
    /// The state at each node, and what happened there.
    states: Vec<State>,
    logs: Vec<Log>,
}

impl Found {
    /// Does some branch go by another guard?
    pub(crate) fn other_guards(&self) -> bool {
        self.findings.iter().any(|finding| match finding {
            Finding::Decision {
                observables: [a, b],
                ..
            } => a.content.first() != b.content.first(),
            _ => false,
        })
    }
}

impl<S: Semantics> Prover<'_, S> {
    /// The last round: every observable of both functions.
    pub(crate) fn compare(&mut self) -> Result<(), Box<Found>> {
        let product = self.product.clone();
        let mut findings = Vec::new();
        let mut states: Vec<State> = Vec::new();
        let mut logs: Vec<Log> = Vec::new();
        let mut executed: Vec<Executed> = Vec::new();
        let mut early = Vec::new();
        self.round(&mut |machine, node, state| {
            let here = &product.nodes[node];
            let blocks = [here.original, here.rewritten].map(|place| match place {
                Place::Block(block) => Some(block),
                Place::Left(_) => None,
            });
            let layout = machine.layout(blocks);
            if is_compared(&product, node) {
                // Those that die with the thread are compared, too: a store to a wrong address may
                // do anything.
                for memory in 0..MEMORIES {
                    let of = |side| state[layout.memory(side, memory)];
                    let terms = [of(0), of(1)];
                    if !machine.terms.are_alike(terms[0], terms[1]) {
                        findings.push(Finding::Memory {
                            node,
                            memory,
                            terms,
                        });
                    }
                }
            }
            let mut log = std::mem::take(&mut machine.log);
            for (inst, misplaced) in &log.misplaced {
                findings.push(Finding::Misplaced {
                    node,
                    inst: *inst,
                    misplaced: misplaced.clone(),
                });
            }
            let before = Executed::at(&product, node, &executed, &logs);
            let held = &state[..layout.original];
            name_as_original(&mut machine.terms, &mut log, &before);
            early.extend(speculated(machine, node, &log, &before, held));
            executed.push(before);
            if let Some(decision) = here.decision {
                judge(machine, node, &decision, &mut findings);
            }
            states.push(state.clone());
            logs.push(log);
        });
        self.unforced = findings
            .iter()
            .filter_map(|finding| match finding {
                Finding::Unforced { decision, .. } => Some(*decision),
                _ => None,
            })
            .collect();
        self.misaligned(&logs, &executed, &mut findings);
        let later = Later::new(&product, &logs, &early);
        let unsure = early
            .iter()
            .filter(|load| !later.has(load, self.machine.truth));
        findings.extend(unsure.map(|load| Finding::Speculated {
            inst: load.inst,
            term: load.term,
        }));
        if findings.is_empty() {
            return Ok(());
        }
        Err(Box::new(Found {
            findings,
            states,
            logs,
        }))
    }

    /// The finding, with the observables behind memories that differ.
    pub(crate) fn explained(&self, finding: &Finding, found: &Found) -> Finding {
        if let Finding::Memory {
            node,
            memory,
            terms,
        } = *finding
            && let Some((node, observables)) =
                self.first_difference(node, memory, &found.states, &found.logs)
        {
            let is_certain = self.is_certain(&observables, &found.logs);
            return Finding::Observables {
                node,
                terms,
                observables,
                is_certain,
            };
        }
        finding.clone()
    }

    /// Vector accesses that are not known to be aligned: the original has done none as wide at the address, or only
    /// behind more events.
    fn misaligned(&mut self, logs: &[Log], executed: &[Executed], findings: &mut Vec<Finding>) {
        for (log, executed) in logs.iter().zip(executed) {
            for new in log.accesses[1].iter().filter(|new| new.is_wide) {
                let own = log.accesses[0].iter();
                let own = own.map(|old| (old, executed.lead + old.after as i64));
                let before = executed.accesses.iter().map(|(old, events)| (old, *events));
                let mut all = own.chain(before);
                let is_here = all.any(|(old, events)| {
                    let is_executed = old.guard == new.guard || old.guard == self.machine.truth;
                    old.bytes >= new.bytes
                        && is_executed
                        && events <= new.after as i64
                        && self.machine.terms.are_alike(old.address, new.address)
                });
                if !is_here {
                    findings.push(Finding::Misaligned { inst: new.inst });
                }
            }
        }
    }

    /// Can two observables that differ not be one in other forms, or moved? Nothing that the other function
    /// does anywhere may be the same, and constants differ, or it does such things less often.
    fn is_certain(&self, observables: &[Option<Observable>; 2], logs: &[Log]) -> bool {
        let terms = &self.machine.terms;
        let all = |side: usize| logs.iter().flat_map(move |log| &log.observables[side]);
        let is_elsewhere = |observable: &Observable, side: usize| {
            all(side).any(|other| other.op == observable.op && other.content == observable.content)
        };
        let kind = |observable: &Observable| {
            terms
                .text(observable.op)
                .split(' ')
                .next()
                .unwrap_or_default()
        };
        let is_missing = |observable: &Observable, from: usize| {
            let count = |side| {
                all(side)
                    .filter(|other| kind(other) == kind(observable))
                    .count()
            };
            !is_elsewhere(observable, from) && count(from) < count(1 - from)
        };
        // An operand that differs here is not a different one if such an operation elsewhere has it: then the two
        // may have changed places, whatever else they are compared by.
        let has = |side: usize, op: Sym, index: usize, value: Term| {
            all(side).any(|other| other.op == op && other.content.get(index) == Some(&value))
        };
        match observables {
            [Some(a), Some(b)] => {
                let mut pairs = a.content.iter().zip(&b.content).enumerate();
                let is_moved = is_elsewhere(a, 1) || is_elsewhere(b, 0);
                let differs = |(index, (&first, &second)): (usize, (&Term, &Term))| {
                    constants_differ(terms, [first, second])
                        && !has(1, a.op, index, first)
                        && !has(0, b.op, index, second)
                };
                a.op == b.op && !is_moved && pairs.any(differs)
            }
            [Some(observable), None] => is_missing(observable, 1),
            [None, Some(observable)] => is_missing(observable, 0),
            [None, None] => false,
        }
    }

    /// Walks back from `node` to where both saw the same memory, and returns the first observables that
    /// differ since then.
    fn first_difference(
        &self,
        node: usize,
        memory: usize,
        states: &[State],
        logs: &[Log],
    ) -> Option<(usize, [Option<Observable>; 2])> {
        let differs = |blocks, state: &State| {
            let layout = self.machine.layout(blocks);
            state.get(layout.memory(0, memory)) != state.get(layout.memory(1, memory))
        };
        let mut path = Vec::new();
        let mut at = node;
        loop {
            let preds = self.product.nodes[at].preds.iter().zip(&self.arriving[at]);
            let blocks = self.blocks(at);
            let wrong = preds
                .filter(|(_, state)| state.as_ref().is_some_and(|state| differs(blocks, state)));
            let pred = wrong.map(|(pred, _)| pred.0 as usize).next()?;
            if path.len() > self.product.nodes.len() {
                return None;
            }
            path.push(pred);
            at = pred;
            if !differs(self.blocks(pred), &states[pred]) {
                break;
            }
        }
        let mut observables: [Vec<(usize, &Observable)>; 2] = [Vec::new(), Vec::new()];
        for &node in path.iter().rev() {
            for side in [0, 1] {
                let touching = logs[node].observables[side].iter();
                observables[side].extend(
                    touching
                        .filter(|observable| observable.memories & 1 << memory != 0)
                        .map(|observable| (node, observable)),
                );
            }
        }
        let longest = observables[0].len().max(observables[1].len());
        (0..longest).find_map(|index| {
            let [a, b] = [observables[0].get(index), observables[1].get(index)];
            let same = a
                .zip(b)
                .is_some_and(|(a, b)| a.1.op == b.1.op && a.1.content == b.1.content);
            let node = a.or(b)?.0;
            let observables = [a.map(|a| a.1.clone()), b.map(|b| b.1.clone())];
            (!same).then_some((node, observables))
        })
    }
}

/// Are the memories compared on arrival here? Wherever both run on together, and at some node of every cycle, but for
/// where one of them is ahead in between.
fn is_compared(product: &Product, node: usize) -> bool {
    let here = &product.nodes[node];
    let is_header = here.preds.iter().any(|pred| pred.0 as usize >= node);
    match here.run {
        Run::Nothing => true,
        Run::Both(..) => here.phase == 0 || is_header,
        Run::Original(_) | Run::Rewritten(_) => {
            is_header && product.nodes.iter().any(|node| node.phase > 0)
        }
    }
}

/// More events than any function is ahead: how many is not known around a loop whose memories are not compared.
const UNKNOWN: i64 = 1 << 40;

/// What the original has executed on every path to a node.
#[derive(Clone, Debug, Default)]
struct Executed {
    /// Events by which the original is ahead of the rewritten function.
    lead: i64,
    /// By what is loaded: the guard, and the events that the rewritten function has not done yet and the original had.
    loads: FxHashMap<Term, (Term, i64)>,
    /// With the events that are missing in the same way.
    accesses: Vec<(Accessed, i64)>,
}

impl Executed {
    /// On arrival at a node, from the nodes before it. What was executed once stays so, around loops, too: it is told by
    /// names of what came before them. Of a cycle with several entries that is not so.
    fn at(product: &Product, node: usize, earlier: &[Executed], logs: &[Log]) -> Executed {
        let here = &product.nodes[node];
        if product.is_entered_elsewhere(node) {
            return Executed {
                lead: if is_compared(product, node) {
                    0
                } else {
                    UNKNOWN
                },
                ..Executed::default()
            };
        }
        let preds = here.preds.iter().map(|pred| pred.0 as usize);
        let mut ways = preds
            .filter(|&from| from < node)
            .map(|from| earlier[from].then(&logs[from]));
        let mut all = ways.next().unwrap_or_default();
        for other in ways {
            all.lead = all.lead.max(other.lead);
            all.loads.retain(|term, (guard, missing)| {
                let same = other.loads.get(term).filter(|same| same.0 == *guard);
                *missing = same.map_or(*missing, |same| same.1.max(*missing));
                same.is_some()
            });
            all.accesses.retain_mut(|(access, missing)| {
                let others = other.accesses.iter().filter(|(other, _)| {
                    (other.address, other.bytes, other.guard)
                        == (access.address, access.bytes, access.guard)
                });
                let least = others.map(|(_, missing)| *missing).min();
                *missing = least.map_or(*missing, |least| least.max(*missing));
                least.is_some()
            });
        }
        if is_compared(product, node) {
            // Equal memories are equal events.
            all.lead = 0;
            all.loads.values_mut().for_each(|load| load.1 = 0);
            all.accesses.iter_mut().for_each(|access| access.1 = 0);
        } else if here.preds.iter().any(|pred| pred.0 as usize >= node) {
            all.lead = UNKNOWN;
        }
        all
    }

    /// Behind a node at which this happened.
    fn then(&self, log: &Log) -> Executed {
        let mut next = self.clone();
        let [original, rewritten] = log.events.map(|events| events as i64);
        for load in &log.loads[0] {
            let missing = self.lead + load.after as i64;
            let known = next.loads.entry(load.term).or_insert((load.guard, missing));
            if known.1 > missing {
                *known = (load.guard, missing);
            }
        }
        let accesses = log.accesses[0].iter();
        let accesses = accesses.map(|access| (*access, self.lead + access.after as i64));
        next.accesses.extend(accesses);
        let loads = next.loads.values_mut().map(|load| &mut load.1);
        for missing in loads.chain(next.accesses.iter_mut().map(|access| &mut access.1)) {
            *missing = (*missing - rewritten).max(0);
        }
        next.lead += original - rewritten;
        next
    }
}

/// What is wrong with a decision.
fn judge<S: Semantics>(
    machine: &mut Machine<'_, S>,
    node: usize,
    decision: &Decision,
    findings: &mut Vec<Finding>,
) {
    let conditions = [0, 1].map(|side| {
        let inst = decision.insts[side]?;
        machine.condition(side, inst, decision.flips[side])
    });
    if let Some(way) = decision.forced {
        let guard = conditions.into_iter().flatten().next();
        let guard = guard.and_then(|condition| condition.content.first().copied());
        let holds = guard.is_some_and(|guard| {
            let goal = if way == 0 {
                guard
            } else {
                machine.terms.not(guard)
            };
            machine.terms.proves(goal)
        });
        if !holds {
            findings.push(Finding::Unforced {
                node,
                decision: decision.insts,
            });
        }
        return;
    }
    let [before, after] = machine.memories.map(|side| side[CONVERGENCE]);
    if before != after {
        findings.push(Finding::Moved {
            decision: decision.insts,
        });
    }
    if let [Some(first), Some(second)] = conditions
        && !is_same(&mut machine.terms, &first, &second)
    {
        findings.push(Finding::Decision {
            node,
            observables: [first, second],
        });
    }
}

fn is_same(terms: &mut Terms, first: &Observable, second: &Observable) -> bool {
    let mut contents = first.content.iter().zip(&second.content);
    first.op == second.op
        && first.content.len() == second.content.len()
        && contents.all(|(&a, &b)| terms.are_alike(a, b))
}

/// Do two values always differ, because they are the same but for a constant that is added?
pub(crate) fn constants_differ(terms: &Terms, values: [Term; 2]) -> bool {
    let split = |value: Term| match (terms.head(value), terms.args(value)) {
        (Head::Const(constant), _) => (None, constant),
        (Head::Add(_), &[base, constant]) => match terms.as_const(constant) {
            Some(constant) => (Some(base), constant),
            None => (Some(value), 0),
        },
        _ => (Some(value), 0),
    };
    let [(a, first), (b, second)] = values.map(split);
    a == b && first != second
}

/// A load of the rewritten function that the original has not executed yet.
struct Early {
    node: usize,
    inst: Inst,
    term: Term,
    guard: Term,
    /// Events that the original may do from the node on before it executes it, too.
    events: i64,
}

/// What the rewritten function loads is called as the original's loads are, where these are the same in another form.
fn name_as_original(terms: &mut Terms, log: &mut Log, before: &Executed) {
    let own = log.loads[0].iter().map(|load| load.term);
    let known: FxHashSet<Term> = own.chain(before.loads.keys().copied()).collect();
    for load in log.loads[1].iter_mut().filter(|load| !load.is_safe) {
        if !known.contains(&load.term) {
            let mut known = known.iter().copied();
            let same = known.find(|&other| {
                terms.head(other) == terms.head(load.term) && terms.are_alike(other, load.term)
            });
            load.term = same.unwrap_or(load.term);
        }
    }
}

/// Loads of the rewritten function that the original has not executed where they stand, and whose value it does not
/// hold either: if it never does, they might fault where the original does not.
fn speculated<S: Semantics>(
    machine: &Machine<'_, S>,
    node: usize,
    log: &Log,
    before: &Executed,
    held: &[Term],
) -> Vec<Early> {
    let mut known: Option<FxHashSet<(Term, Option<Term>)>> = None;
    let is_always = |guard| machine.terms.as_const(guard) == Some(1);
    let mut early = Vec::new();
    for &Loaded {
        inst,
        term,
        guard,
        is_safe,
        after,
    } in &log.loads[1]
    {
        // Both do the same events: the original's load must not come after more of them.
        let mut own = log.loads[0].iter();
        let is_here = own.any(|other| {
            let is_executed = other.guard == guard || is_always(other.guard);
            let events = before.lead + other.after as i64;
            other.term == term && is_executed && events <= after as i64
        });
        let is_before = before.loads.get(&term).is_some_and(|&(other, missing)| {
            (other == guard || is_always(other)) && missing <= after as i64
        });
        if is_safe || is_here || is_before {
            continue;
        }
        let known = known.get_or_insert_with(|| executed(&machine.terms, held));
        if !known.contains(&(term, None)) && !known.contains(&(term, Some(guard))) {
            early.push(Early {
                node,
                inst,
                term,
                guard,
                events: after as i64 - before.lead,
            });
        }
    }
    early
}

/// By node, what the original executes on every way on from there before it may go round: what is loaded and under
/// which guard, and behind how many events at most.
struct Later(Vec<FxHashMap<(Term, Term), i64>>);

impl Later {
    /// Of these loads alone.
    fn new(product: &Product, logs: &[Log], early: &[Early]) -> Later {
        let wanted: FxHashSet<Term> = early.iter().map(|load| load.term).collect();
        let mut later = vec![FxHashMap::default(); logs.len()];
        if wanted.is_empty() {
            return Later(later);
        }
        for (number, (node, log)) in product.nodes.iter().zip(logs).enumerate().rev() {
            let mut succs = node.succs.iter().map(|&succ| succ as usize);
            let mut here: FxHashMap<(Term, Term), i64> = FxHashMap::default();
            if succs.clone().all(|succ| succ > number) {
                here = succs.next().map_or(here, |succ| later[succ].clone());
                for succ in succs {
                    let other: &FxHashMap<(Term, Term), i64> = &later[succ];
                    here.retain(|load, events| {
                        let same = other.get(load);
                        *events = same.map_or(*events, |same| *same.max(events));
                        same.is_some()
                    });
                }
            }
            here.values_mut()
                .for_each(|events| *events += log.events[0] as i64);
            for load in log.loads[0]
                .iter()
                .filter(|load| wanted.contains(&load.term))
            {
                let events = here.entry((load.term, load.guard)).or_insert(i64::MAX);
                *events = (load.after as i64).min(*events);
            }
            later[number] = here;
        }
        Later(later)
    }

    /// Is it executed later, behind no more events than the rewritten function has done?
    fn has(&self, load: &Early, always: Term) -> bool {
        let here = &self.0[load.node];
        let mut guards = [load.guard, always].into_iter();
        guards.any(|guard| {
            here.get(&(load.term, guard))
                .is_some_and(|&events| events <= load.events)
        })
    }
}

/// The operations that must have been executed for these terms to be there; those under a
/// selection with their condition.
fn executed(terms: &Terms, held: &[Term]) -> FxHashSet<(Term, Option<Term>)> {
    let mut found = FxHashSet::default();
    let mut work: Vec<(Term, Option<Term>)> = held.iter().map(|&term| (term, None)).collect();
    while let Some((term, condition)) = work.pop() {
        if !found.insert((term, condition)) {
            continue;
        }
        match (terms.head(term), terms.args(term)) {
            (Head::Select, &[on, then, _]) => {
                work.push((on, condition));
                if condition.is_none() {
                    work.push((then, Some(on)));
                }
            }
            (Head::Store(_) | Head::Event(_) | Head::After(_), _) => {}
            (_, args) => work.extend(args.iter().map(|&arg| (arg, condition))),
        }
    }
    found
}
