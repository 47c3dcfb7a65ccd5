//! What threads do together (barriers, votes, shuffles, calls that may do such things), as events on
//! paths.
//!
//! That each thread does the same is not enough: which threads stand at one instruction at one time
//! must be the same, too. Threads come together where the paths of a function come together, so here
//! the paths of both functions are compared, as far as they matter: a graph whose nodes are the
//! collective instructions, the ways to leave, and the decisions after which different ones of these
//! come next, or different such decisions. The walk over the product graph pairs the nodes of the two. If each is always paired with
//! the same one, the two graphs are the same, and so are the sets of threads that arrive; an instruction
//! that was duplicated, merged, or moved into or out of an arm has two partners.
//!
//! Only copies of one instruction may be its partners (a loop that was unrolled), if all threads of a block that come
//! to the copied piece together go through it together: they come in by one way, and every decision in it that leads to
//! different copies is uniform (`uniform.rs`).

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use rustc_hash::{FxHashMap, FxHashSet};
use warpwright_flow::{Inst, Transfer};

use crate::machine::Machine;
use crate::product::{Decision, Node, Place, Run};
use crate::prove::Prover;
use crate::semantics::Semantics;
use crate::verdict::{Cause, Reason};

/// What threads meet next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    /// Nothing: they go round for ever.
    Nothing,
    /// The same for all: this collective instruction of one of the functions.
    Inst(Inst),
    /// The same for all: they leave in this way.
    Left(Transfer),
    /// The same for all: this decision of a function, behind which different things come next.
    Decision(usize, Inst),
    /// It depends on the path.
    Several,
}

impl Next {
    fn or(self, other: Next) -> Next {
        match (self, other) {
            (Next::Nothing, next) | (next, Next::Nothing) => next,
            (a, b) if a == b => a,
            _ => Next::Several,
        }
    }
}

/// Collective instructions that one function has passed and the other has not yet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Ahead([VecDeque<Inst>; 2]);

/// Partners found so far, for each side.
#[derive(Debug, Default)]
struct Pairs([BTreeMap<Inst, Inst>; 2]);

impl Pairs {
    fn join(&mut self, pair: [Inst; 2]) -> Result<(), [Inst; 2]> {
        for (side, partners) in self.0.iter_mut().enumerate() {
            if *partners.entry(pair[side]).or_insert(pair[1 - side]) != pair[1 - side] {
                return Err(pair);
            }
        }
        Ok(())
    }
}

impl<S: Semantics> Prover<'_, S> {
    /// Do the same threads meet at the same instructions? Every thread is known to do the same.
    pub(crate) fn same_together(&mut self) -> Result<(), Reason> {
        let met = self
            .collectives()
            .map_err(|pair| self.parted(pair.map(Some)))?;
        let mut pairs = Pairs::default();
        match met.iter().find_map(|&pair| pairs.join(pair).err()) {
            _ if met.is_empty() => Ok(()),
            Some(pair) => self.together_in_copies(&met, pair),
            None => self.decided_alike(&self.parting(0), &|_| false),
        }
    }

    /// Has each decision after which different things come next one partner, but those that go by themselves?
    fn decided_alike(&self, parts: &[bool], goes: &dyn Fn(usize) -> bool) -> Result<(), Reason> {
        let mut decisions = Pairs::default();
        for (number, node) in self.product.nodes.iter().enumerate() {
            let Some(decision) = node.decision.filter(|_| parts[number] && !goes(number)) else {
                continue;
            };
            let Some(pair) = decision.pair() else {
                return Err(self.parted(decision.insts));
            };
            decisions
                .join(pair)
                .map_err(|pair| self.parted(pair.map(Some)))?;
        }
        Ok(())
    }

    /// Do threads go together through the pieces that were copied?
    fn together_in_copies(
        &mut self,
        met: &BTreeSet<[Inst; 2]>,
        pair: [Inst; 2],
    ) -> Result<(), Reason> {
        let apart = |prover: &Self| Err(prover.parted(pair.map(Some)));
        let mut originals = BTreeMap::new();
        let is_copy = |&[a, b]: &[Inst; 2]| *originals.entry(b).or_insert(a) == a;
        if !met.iter().all(is_copy) {
            return apart(self);
        }
        let copied = self.copied();
        if !self.comes_in_one_way(&copied) {
            return apart(self);
        }
        let uniform = self.uniform();
        let parts = [self.parting(0), self.parting(1)];
        let parts: Vec<bool> = (parts[0].iter().zip(&parts[1]))
            .map(|(a, b)| *a || *b)
            .collect();
        for (number, node) in self.product.nodes.iter().enumerate() {
            let is_forced = node
                .decision
                .is_some_and(|decision| decision.forced.is_some());
            if parts[number] && copied[number] && !uniform[number] && !is_forced {
                return apart(self);
            }
        }
        self.decided_alike(&parts, &|number| copied[number])
    }

    /// Nodes at places of the original that run at several places of the rewritten function.
    fn copied(&self) -> Vec<bool> {
        let mut places: FxHashMap<Place, FxHashSet<Place>> = FxHashMap::default();
        for node in &self.product.nodes {
            if matches!(node.run, Run::Both(..) | Run::Original(_)) {
                places
                    .entry(node.original)
                    .or_default()
                    .insert(node.rewritten);
            }
        }
        let several = |node: &Node| places.get(&node.original).is_some_and(|all| all.len() > 1);
        self.product.nodes.iter().map(several).collect()
    }

    /// Does control come from elsewhere to one copy of each place alone?
    fn comes_in_one_way(&self, copied: &[bool]) -> bool {
        let nodes = &self.product.nodes;
        let mut entered: FxHashMap<Place, Place> = FxHashMap::default();
        let mut ways = (nodes.iter().enumerate()).flat_map(|(number, node)| {
            let from = node.preds.iter().map(|pred| pred.0 as usize);
            from.map(move |from| (from, number))
        });
        // The entry's place is come to from outside as well.
        if copied.first() == Some(&true) {
            return false;
        }
        ways.all(|(from, to)| {
            let node = &nodes[to];
            copied[from]
                || !copied[to]
                || *entered.entry(node.original).or_insert(node.rewritten) == node.rewritten
        })
    }

    /// Pairs the collective instructions of both functions along all paths.
    fn collectives(&self) -> Result<BTreeSet<[Inst; 2]>, [Inst; 2]> {
        let mut met = BTreeSet::new();
        let nodes = &self.product.nodes;
        let mut arriving: Vec<Option<Ahead>> = vec![None; nodes.len()];
        arriving[0] = Some(Ahead::default());
        for (number, node) in nodes.iter().enumerate() {
            // Reverse postorder: each node but the entry has a predecessor before it.
            let mut ahead = arriving[number].clone().unwrap_or_default();
            for (side, inst) in passed(&self.machine, node.run) {
                ahead.0[side].push_back(inst);
            }
            while let [Some(&a), Some(&b)] = [ahead.0[0].front(), ahead.0[1].front()] {
                met.insert([a, b]);
                ahead.0.iter_mut().for_each(|side| {
                    side.pop_front();
                });
            }
            for &succ in &node.succs {
                let known = arriving[succ as usize].get_or_insert_with(|| ahead.clone());
                if *known != ahead {
                    let first = |side: usize| {
                        let ahead = known.0[side].front().or(ahead.0[side].front());
                        ahead.copied().unwrap_or(Inst(0))
                    };
                    return Err([first(0), first(1)]);
                }
            }
        }
        Ok(met)
    }

    /// Which nodes decide what threads meet next: the smallest set such that behind each way of any decision one thing
    /// comes next, a decision of the set among them (the weak control closure of Danicic et al., TCS 2011, of the
    /// collective instructions and the ways to leave), as one of the two functions has them.
    fn parting<'a>(&'a self, side: usize) -> Vec<bool> {
        let nodes = &self.product.nodes;
        let mut parts = vec![false; nodes.len()];
        loop {
            let next = self.what_comes_next(&parts, side);
            let ways = |node: &'a Node| node.succs.iter().map(|&succ| next[succ as usize]);
            let is_new = |number: usize, node: &'a Node| !parts[number] && node.decision.is_some();
            let open = nodes.iter().enumerate().filter(|&(number, node)| {
                is_new(number, node) && ways(node).fold(Next::Nothing, Next::or) == Next::Several
            });
            let open: Vec<(usize, &'a Node)> = open.collect();
            // Those whose ways lead to different things for certain; where there is none, all that is left.
            let certain = |node: &'a Node| {
                let known = ways(node).filter(|way| *way != Next::Several);
                known.fold(Next::Nothing, Next::or) == Next::Several
            };
            let mut found: Vec<usize> = open
                .iter()
                .filter(|(_, node)| certain(node))
                .map(|(number, _)| *number)
                .collect();
            if found.is_empty() {
                found = open.iter().map(|(number, _)| *number).collect();
            }
            if found.is_empty() {
                return parts;
            }
            for number in found {
                parts[number] = true;
            }
        }
    }

    /// What threads meet next from the start of each node on, where these nodes decide.
    fn what_comes_next(&self, parts: &[bool], side: usize) -> Vec<Next> {
        let nodes = &self.product.nodes;
        let own: Vec<Option<Next>> = nodes
            .iter()
            .zip(parts)
            .map(|(node, &parts)| match (node.run, node.original) {
                (Run::Nothing, Place::Left(way)) => Some(Next::Left(way)),
                (run, _) => {
                    let mut passed = passed(&self.machine, run);
                    let first = passed.find(|&(of, _)| of == side);
                    let decision = node.decision.filter(|_| parts);
                    let decides = |decision: Decision| {
                        let own = decision.insts[side].map(|inst| (side, inst));
                        own.or(decision.deciding())
                    };
                    first.map(|(_, inst)| Next::Inst(inst)).or(decision
                        .and_then(decides)
                        .map(|(side, inst)| Next::Decision(side, inst)))
                }
            })
            .collect();
        let mut next = vec![Next::Nothing; nodes.len()];
        // Each value rises twice at most.
        let mut work: Vec<usize> = (0..nodes.len()).collect();
        while let Some(number) = work.pop() {
            let node = &nodes[number];
            let succs = node.succs.iter().map(|&succ| next[succ as usize]);
            let now = own[number].unwrap_or_else(|| succs.fold(Next::Nothing, Next::or));
            if now != next[number] {
                next[number] = now;
                work.extend(node.preds.iter().map(|pred| pred.0 as usize));
            }
        }
        next
    }

    fn parted(&self, [a, b]: [Option<Inst>; 2]) -> Reason {
        let [original, rewritten] = &self.machine.functions;
        Reason {
            cause: Cause::Together,
            text: "what threads do together is not done by the same threads on every path: an \
                   instruction was duplicated, merged or moved, or a branch before it was"
                .to_owned(),
            original_place: a.map(|inst| original.func.place(inst)),
            rewritten_place: b.map(|inst| rewritten.func.place(inst)),
        }
    }
}

/// The collective instructions that run at a node, by side, in order.
fn passed<'m, S: Semantics>(
    machine: &'m Machine<'_, S>,
    run: Run,
) -> impl Iterator<Item = (usize, Inst)> + 'm {
    let blocks = match run {
        Run::Both(a, b) => [Some(a), Some(b)],
        Run::Original(a) => [Some(a), None],
        Run::Rewritten(b) => [None, Some(b)],
        Run::Nothing => [None, None],
    };
    let blocks = blocks.into_iter().enumerate();
    blocks.flat_map(move |(side, block)| {
        let function = &machine.functions[side];
        let insts = block
            .into_iter()
            .flat_map(|block| function.cfg.insts(block));
        let collective = insts.filter(|&inst| function.is_collective(inst));
        collective.map(move |inst| (side, inst))
    })
}
