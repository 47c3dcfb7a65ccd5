//! From what the last round found to a verdict that people can follow.

use warpwright_flow::Value;

use crate::compare::{Finding, Found, constants_differ};
use crate::machine::{Function, Observable};
use crate::product::{Place, Run};
use crate::prove::{Prover, show_place};
use crate::semantics::Semantics;
use crate::slots::Misplaced;
use crate::state::CALLER;
use crate::term::{Head, Side, Term};
use crate::trace::{Mismatch, Tracer};
use crate::verdict::{Cause, Reason, Refutation, Verdict};

/// Findings that are looked into for the one that says most. All but the first few follow from others.
const MAX_ANSWERS: usize = 64;

/// How deep terms are shown, and how deep at most where two look alike.
const SHOWN: u32 = 3;
const DEEPEST: u32 = 8;
/// What differs behind so many characters may be cut off on a screen.
const TOLD: usize = 120;

/// What registers that are read before they are set have to do with differences.
pub(crate) struct UnsetRegisters {
    /// Some were taken to hold the same just now.
    pub(crate) is_new: bool,
    /// Some stand where values begin to differ.
    pub(crate) is_to_blame: bool,
}

impl<S: Semantics> Prover<'_, S> {
    fn tracer(&self) -> Tracer<'_> {
        Tracer {
            terms: &self.machine.terms,
            product: &self.product,
            arriving: &self.arriving,
            entry: &self.entry,
        }
    }

    /// The first pair of values in which a finding shows, and what they are.
    fn mismatch(&self, finding: &Finding) -> Option<(usize, String, Mismatch)> {
        let tracer = self.tracer();
        let differing = |node: usize, a: &Observable, b: &Observable| {
            let pairs = a.content.iter().zip(&b.content).enumerate();
            let (index, (&x, &y)) = pairs.into_iter().find(|(_, (x, y))| x != y)?;
            Some((node, index, tracer.trace(x, y)))
        };
        match finding {
            Finding::Decision {
                node,
                observables: [a, b],
            } if a.op == b.op => {
                let (node, _, mismatch) = differing(*node, a, b)?;
                Some((node, "the branch condition differs".to_owned(), mismatch))
            }
            Finding::Observables {
                node,
                observables: [Some(a), Some(b)],
                ..
            } if a.op == b.op => {
                let (node, index, mismatch) = differing(*node, a, b)?;
                let what = match (index, a.is_store) {
                    (0, _) => "the guard differs".to_owned(),
                    (1, true) => "the address differs".to_owned(),
                    (_, true) => "the value stored differs".to_owned(),
                    (_, false) => format!("argument {index} differs"),
                };
                Some((node, what, mismatch))
            }
            Finding::Memory {
                node,
                terms: [a, b],
                memory,
            } => {
                let mismatch = tracer.trace(*a, *b);
                let what = match *memory {
                    CALLER => "what the caller sees differs",
                    _ => "what was stored differs",
                };
                Some((*node, what.to_owned(), mismatch))
            }
            _ => None,
        }
    }

    /// All innermost differences behind these findings, in one walk.
    fn leaves(&self, findings: &[Finding]) -> (Vec<[Term; 2]>, u64) {
        let mut pairs = Vec::new();
        for finding in findings {
            match finding {
                Finding::Memory { terms, .. } | Finding::Observables { terms, .. } => {
                    pairs.push(*terms)
                }
                Finding::Decision {
                    observables: [a, b],
                    ..
                } if a.op == b.op => {
                    pairs.extend(a.content.iter().zip(&b.content).map(|(&a, &b)| [a, b]));
                }
                _ => {}
            }
        }
        self.tracer().leaves(pairs)
    }

    /// If differences come from registers that are read before they are set, takes them to hold
    /// the same.
    pub(crate) fn assume_unset(&mut self, findings: &[Finding]) -> UnsetRegisters {
        // The original's unset registers hold anything, so any choice of ours is one of its runs.
        let before = self.given.len();
        let mut is_to_blame = false;
        let (leaves, pairs) = self.leaves(findings);
        self.machine.work += pairs;
        for pair in leaves {
            let heads = pair.map(|term| self.machine.terms.head(term));
            is_to_blame |= heads.iter().any(|head| matches!(head, Head::Unset(..)));
            if let [
                Head::Unset(Side::Original, of),
                Head::Unset(Side::Rewritten, to),
            ] = heads
                && of != Value(u32::MAX)
            {
                self.given.entry(of).or_insert(to);
            }
        }
        UnsetRegisters {
            is_new: self.given.len() > before,
            is_to_blame,
        }
    }

    pub(crate) fn answer(&self, found: &Found) -> Verdict {
        let findings = &found.findings;
        let is_unclear = |finding: &&Finding| {
            matches!(
                finding,
                Finding::Misplaced {
                    misplaced: Misplaced::Unclear(_),
                    ..
                }
            )
        };
        // What is read from an unclear place is unknown, and differs from everything.
        if let Some(unclear) = findings.iter().find(is_unclear) {
            return self.verdict(unclear);
        }
        let mut first = None;
        for finding in findings.iter().take(MAX_ANSWERS) {
            let verdict = self.verdict(&self.explained(finding, found));
            // A clear error says more than a doubt.
            if matches!(verdict, Verdict::Refuted(_)) {
                return verdict;
            }
            first.get_or_insert(verdict);
        }
        first.unwrap_or_else(|| Verdict::Undecided(Reason::new(Cause::Form, "nothing was found")))
    }

    fn verdict(&self, finding: &Finding) -> Verdict {
        let places = self.places(finding);
        match finding {
            Finding::Misplaced {
                node, misplaced, ..
            } => match misplaced {
                Misplaced::Unclear(text) => undecided(Cause::Slot, text.clone(), places),
                Misplaced::Wrong(text) => {
                    let own = "a spill slot of its own for each thread and value".to_owned();
                    self.refuted(
                        "an access to the spill area is wrong",
                        places,
                        (*node, &[]),
                        [own, text.clone()],
                        true,
                    )
                }
            },
            Finding::Speculated { term, .. } => {
                let text = format!(
                    "it loads {} where the original does not, and might fault",
                    self.show(*term)
                );
                undecided(Cause::Load, text, places)
            }
            Finding::Misaligned { .. } => {
                let text = "it accesses several elements at once where the original does not, and \
                            might not be aligned";
                undecided(Cause::Alignment, text.to_owned(), places)
            }
            Finding::Moved { .. } => {
                let text = "what threads do together, or in order, has moved over this branch";
                undecided(Cause::Together, text.to_owned(), places)
            }
            Finding::Unforced { node, .. } => self.refuted(
                "a branch is not known to go one way",
                places,
                (*node, &[]),
                ["both ways".to_owned(), "one way".to_owned()],
                false,
            ),
            Finding::Decision { node, observables } => self.compared(
                finding,
                *node,
                places,
                [Some(&observables[0]), Some(&observables[1])],
            ),
            Finding::Observables {
                node, observables, ..
            } => self.compared(
                finding,
                *node,
                places,
                [observables[0].as_ref(), observables[1].as_ref()],
            ),
            Finding::Memory { node, .. } => self.compared(finding, *node, places, [None, None]),
        }
    }

    fn compared(
        &self,
        finding: &Finding,
        node: usize,
        places: [Option<String>; 2],
        observables: [Option<&Observable>; 2],
    ) -> Verdict {
        let is_certain = self.is_certain_finding(finding);
        if let Some((node, what, mismatch)) = self.mismatch(finding) {
            let heads = mismatch.terms.map(|term| self.machine.terms.head(term));
            // What the original's unset registers are taken to hold has the other side's name.
            let (leaves, _) = self.leaves(std::slice::from_ref(finding));
            let mut unset = leaves
                .iter()
                .map(|&[a, _]| a)
                .filter(|&term| matches!(self.machine.terms.head(term), Head::Unset(..)));
            if let Some(first) = unset.next()
                && unset.count() + 1 == leaves.len()
            {
                let text = format!(
                    "the original may read {} before it is set",
                    self.show(first)
                );
                return undecided(Cause::Unset, text, places);
            }
            if heads.iter().any(|head| matches!(head, Head::Unknown(..))) {
                let text = "a register is read that was not thought to be live";
                return undecided(Cause::Unset, text.to_owned(), places);
            }
            let values = self.show_apart(mismatch.terms);
            return self.refuted(&what, places, (node, &mismatch.edges), values, is_certain);
        }
        let what = match observables {
            [Some(_), None] => "the rewritten function does not do this",
            [None, Some(_)] => "the original does not do this",
            _ => "another instruction stands in its place",
        };
        let shown = observables.map(|observable| match observable {
            Some(observable) => self.show_observable(observable),
            None => "nothing".to_owned(),
        });
        self.refuted(what, places, (node, &[]), shown, is_certain)
    }

    fn is_certain_finding(&self, finding: &Finding) -> bool {
        let terms = &self.machine.terms;
        match finding {
            Finding::Observables { is_certain, .. } => *is_certain,
            Finding::Decision {
                observables: [a, b],
                ..
            } if a.op == b.op => {
                let mut pairs = a.content.iter().zip(&b.content);
                pairs.any(|(&a, &b)| {
                    let is_known = terms.as_const(a).is_some() && terms.as_const(b).is_some();
                    is_known && constants_differ(terms, [a, b])
                })
            }
            _ => false,
        }
    }

    fn places(&self, finding: &Finding) -> [Option<String>; 2] {
        let [original, rewritten] = &self.machine.functions;
        let place = |observable: &Option<Observable>, function: &Function<'_, S>| {
            observable
                .as_ref()
                .map(|observable| function.func.place(observable.inst))
        };
        match finding {
            Finding::Memory { .. } => [None, None],
            Finding::Observables { observables, .. } => [
                place(&observables[0], original),
                place(&observables[1], rewritten),
            ],
            Finding::Moved { decision } | Finding::Unforced { decision, .. } => [
                decision[0].map(|inst| original.func.place(inst)),
                decision[1].map(|inst| rewritten.func.place(inst)),
            ],
            Finding::Decision {
                observables: [a, b],
                ..
            } => [
                Some(original.func.place(a.inst)),
                Some(rewritten.func.place(b.inst)),
            ],
            Finding::Misplaced { inst, .. }
            | Finding::Misaligned { inst }
            | Finding::Speculated { inst, .. } => [None, Some(rewritten.func.place(*inst))],
        }
    }

    fn refuted(
        &self,
        what: &str,
        [original_place, rewritten_place]: [Option<String>; 2],
        (node, edges): (usize, &[(u32, u32)]),
        [original, rewritten]: [String; 2],
        is_certain: bool,
    ) -> Verdict {
        let path = self.tracer().path(node as u32, edges);
        let functions = &self.machine.functions;
        let show = |node: &u32| {
            let node = &self.product.nodes[*node as usize];
            match node.run {
                Run::Rewritten(block) => show_place(&functions[1], Place::Block(block)),
                _ => show_place(&functions[0], node.original),
            }
        };
        Verdict::Refuted(Box::new(Refutation {
            what: what.to_owned(),
            original_place,
            rewritten_place,
            path: path.iter().map(show).collect(),
            original,
            rewritten,
            is_certain,
        }))
    }

    fn show_observable(&self, observable: &Observable) -> String {
        let op = self.machine.terms.text(observable.op);
        let content: Vec<String> = observable
            .content
            .iter()
            .skip(1)
            .map(|&term| self.show(term))
            .collect();
        format!("{op}({})", content.join(", "))
    }

    /// The line where a node begins, in the original where it moves.
    fn line(&self, node: u32) -> u32 {
        let [original, rewritten] = &self.machine.functions;
        match self.blocks(node as usize) {
            [Some(block), _] => original.func.line(original.cfg.first_inst(block)),
            [_, Some(block)] => rewritten.func.line(rewritten.cfg.first_inst(block)),
            _ => 0,
        }
    }

    fn show(&self, term: Term) -> String {
        self.show_to(term, SHOWN)
    }

    /// The first of the innermost operations that are the same of something else.
    fn apart(&self, both: [Term; 2]) -> [Term; 2] {
        let terms = &self.machine.terms;
        let is_alike = |old: Term, new: Term| {
            terms.head(old) == terms.head(new) && terms.args(old).len() == terms.args(new).len()
        };
        let [mut old, mut new] = both;
        while is_alike(old, new) {
            let mut pairs = terms.args(old).iter().zip(terms.args(new));
            // The same operands in another order are seldom what differs.
            let sorted = |term: Term| {
                let mut args = terms.args(term).to_vec();
                args.sort_unstable();
                args
            };
            let is_inner = |(a, b): &(&Term, &Term)| {
                let is_turned = terms.args(**a).len() <= 3 && sorted(**a) == sorted(**b);
                let is_other = a != b && !is_turned && !terms.args(**a).is_empty();
                is_other && !terms.is_memory(**a) && is_alike(**a, **b)
            };
            let Some((&a, &b)) = pairs.find(is_inner) else {
                break;
            };
            (old, new) = (a, b);
        }
        [old, new]
    }

    /// Two terms, or what of them differs, as deep as it takes to tell them apart.
    fn show_apart(&self, whole: [Term; 2]) -> [String; 2] {
        let texts = self.show_deep(whole);
        let same = texts[0].chars().zip(texts[1].chars());
        let both = match same.take_while(|(a, b)| a == b).count() < TOLD {
            true => whole,
            false => self.apart(whole),
        };
        match both == whole {
            true => texts,
            false => self.show_deep(both).map(|text| format!("in it {text}")),
        }
    }

    fn show_deep(&self, both: [Term; 2]) -> [String; 2] {
        let mut depths = SHOWN..=DEEPEST;
        let texts = depths.find_map(|depth| {
            let texts = both.map(|term| self.show_to(term, depth));
            (texts[0] != texts[1]).then_some(texts)
        });
        texts.unwrap_or_else(|| both.map(|term| self.show(term)))
    }

    fn show_to(&self, term: Term, depth: u32) -> String {
        let functions = &self.machine.functions;
        let register = |side: Side, value: Value| {
            let function = &functions[usize::from(side == Side::Rewritten)];
            match value {
                Value(u32::MAX) => "the carry flag".to_owned(),
                _ => function.func.value_name(value),
            }
        };
        let name = |head: Head| match head {
            Head::Unset(side, value) => Some(format!("{} unset", register(side, value))),
            Head::Unknown(_, side, value) => Some(format!("{} unknown", register(side, value))),
            Head::SlotUnset(slot) => Some(format!("{} unset", self.machine.slots.describe(slot))),
            Head::Phi(node, position) => {
                let blocks = self.blocks(node as usize);
                let held = self.machine.register_at(blocks, position as usize);
                Some(match held {
                    Some((side, value)) => {
                        let side = if side == 0 {
                            Side::Original
                        } else {
                            Side::Rewritten
                        };
                        format!("{}@{}", register(side, value), self.line(node))
                    }
                    None => format!("memory@{}", self.line(node)),
                })
            }
            _ => None,
        };
        self.machine.terms.show(term, depth, &name)
    }
}

fn undecided(
    cause: Cause,
    text: String,
    [original_place, rewritten_place]: [Option<String>; 2],
) -> Verdict {
    Verdict::Undecided(Reason {
        cause,
        text,
        original_place,
        rewritten_place,
    })
}
