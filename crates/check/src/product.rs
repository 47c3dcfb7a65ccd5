//! The product graph: both functions walked side by side, decision by decision.
//!
//! A node is a pair of places. Both functions run their block there, or only one of them does, where
//! its block merely leads on: so an edit may split edges, merge blocks or thread jumps, as long as
//! the decisions (branches, exits) stay the same and in the same order.

use rustc_hash::FxHashMap;
use warpwright_flow::{Block, Cfg, Function, Inst, Transfer};

/// Where control may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Place {
    /// To the start of a block.
    Block(Block),
    /// Out of the function, in this way.
    Left(Transfer),
}

/// How a block ends.
#[derive(Clone, Debug, PartialEq, Eq)]
enum End {
    /// It leads on.
    Straight(Place),
    /// Its last instruction decides, between these places in order.
    Decision(Transfer, Vec<Place>),
}

/// What runs at a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Run {
    /// Both blocks.
    Both(Block, Block),
    /// The original's block alone.
    Original(Block),
    /// The rewritten function's block alone.
    Rewritten(Block),
    /// Nothing: both have left.
    Nothing,
}

/// A node of the product graph.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) original: Place,
    pub(crate) rewritten: Place,
    pub(crate) run: Run,
    /// The deciding instructions, if there are several successors.
    pub(crate) decision: Option<(Inst, Inst)>,
    /// One for each way that the decision may go.
    pub(crate) succs: Vec<u32>,
    /// Incoming edges: node and number of its successor.
    pub(crate) preds: Vec<(u32, u32)>,
}

/// The product graph. Node 0 is the entry, and nodes are in reverse postorder.
#[derive(Clone, Debug)]
pub(crate) struct Product {
    pub(crate) nodes: Vec<Node>,
}

/// Which way of one function's two-way branches goes with which of the other's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pairing {
    /// Taken with taken.
    ByPosition,
    /// Predicate true with predicate true: a branch may be inverted.
    ByPredicate,
}

/// One function's graph.
pub(crate) struct Skeleton<'a, F> {
    func: &'a F,
    cfg: &'a Cfg,
    ends: Vec<End>,
}

impl<'a, F: Function> Skeleton<'a, F> {
    /// `is_negated` tells whether a branch is taken when its guard predicate is false.
    pub(crate) fn new(
        func: &'a F,
        cfg: &'a Cfg,
        pairing: Pairing,
        is_negated: impl Fn(Inst) -> bool,
    ) -> Self {
        let flip = |inst| pairing == Pairing::ByPredicate && is_negated(inst);
        let ends = cfg
            .blocks()
            .map(|block| end(func, cfg, block, flip))
            .collect();
        Skeleton { func, cfg, ends }
    }

    fn entry(&self) -> Place {
        place(self.func, self.cfg, Inst(0))
    }

    /// Where a place leads without a decision.
    fn leads_to(&self, from: Place) -> Option<Place> {
        let Place::Block(block) = from else {
            return None;
        };
        match self.ends.get(block.as_u32() as usize)? {
            End::Straight(to) => Some(*to),
            End::Decision(..) => None,
        }
    }

    /// Is it a block on an edge: one way in, one way out?
    fn is_passage(&self, at: Place) -> bool {
        let Place::Block(block) = at else {
            return false;
        };
        let ways_in = self
            .cfg
            .preds(block)
            .iter()
            .filter(|&&pred| self.cfg.is_reachable(pred));
        block.as_u32() != 0 && self.leads_to(at).is_some() && ways_in.count() == 1
    }

    fn decision(&self, at: Place) -> Option<(Transfer, &[Place], Inst)> {
        let Place::Block(block) = at else { return None };
        match self.ends.get(block.as_u32() as usize)? {
            End::Straight(_) => None,
            End::Decision(kind, ways) => Some((*kind, ways, self.cfg.last_inst(block))),
        }
    }
}

fn place(func: &impl Function, cfg: &Cfg, inst: Inst) -> Place {
    if (inst.as_u32() as usize) < func.inst_count() {
        Place::Block(cfg.block_of(inst))
    } else {
        Place::Left(Transfer::Return)
    }
}

fn end(func: &impl Function, cfg: &Cfg, block: Block, flip: impl Fn(Inst) -> bool) -> End {
    let last = cfg.last_inst(block);
    let next = place(func, cfg, Inst(last.0 + 1));
    let kind = func.transfer(last);
    let mut ways = Vec::new();
    func.for_each_target(last, |target| ways.push(place(func, cfg, target)));
    if matches!(kind, Transfer::Return | Transfer::Exit | Transfer::Trap) {
        ways.push(Place::Left(kind));
    }
    if func.is_predicated(last) && !matches!(kind, Transfer::Next | Transfer::Call)
        || matches!(kind, Transfer::Next | Transfer::Call | Transfer::Branch)
    {
        ways.push(next);
    }
    if flip(last) {
        ways.reverse();
    }
    match ways.as_slice() {
        [first, rest @ ..] if rest.iter().all(|way| way == first) => End::Straight(*first),
        _ => End::Decision(kind, ways),
    }
}

/// The two functions cannot be walked side by side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Misaligned {
    pub(crate) original: Place,
    pub(crate) rewritten: Place,
    pub(crate) reason: &'static str,
}

impl Product {
    /// Walks both functions from their entries.
    pub(crate) fn new<F: Function, G: Function>(
        original: &Skeleton<'_, F>,
        rewritten: &Skeleton<'_, G>,
    ) -> Result<Product, Misaligned> {
        let mut nodes: Vec<Node> = Vec::new();
        let mut ids: FxHashMap<(Place, Place), u32> = FxHashMap::default();
        let mut work = vec![(original.entry(), rewritten.entry())];
        ids.insert(work[0], 0);
        nodes.push(visit(original, rewritten, work[0])?.0);
        // Functions that belong together have about one pair for each block.
        let limit = 8 * (original.ends.len() + rewritten.ends.len()) + 64;
        while let Some(key) = work.pop() {
            if nodes.len() > limit {
                let reason = "their blocks meet in too many pairs";
                return Err(Misaligned {
                    original: key.0,
                    rewritten: key.1,
                    reason,
                });
            }
            let (_, nexts) = visit(original, rewritten, key)?;
            let from = ids[&key];
            for next in nexts {
                let to = match ids.get(&next) {
                    Some(&to) => to,
                    None => {
                        let to = nodes.len() as u32;
                        ids.insert(next, to);
                        nodes.push(visit(original, rewritten, next)?.0);
                        work.push(next);
                        to
                    }
                };
                nodes[from as usize].succs.push(to);
            }
        }
        let product = Product { nodes }.in_reverse_postorder();
        product.refuse_solo_cycles()?;
        Ok(product)
    }

    fn in_reverse_postorder(self) -> Product {
        let mut order = Vec::with_capacity(self.nodes.len());
        let mut seen = vec![false; self.nodes.len()];
        seen[0] = true;
        let mut stack = vec![(0u32, 0)];
        while let Some((node, next)) = stack.last_mut() {
            match self.nodes[*node as usize].succs.get(*next) {
                Some(&succ) => {
                    *next += 1;
                    if !std::mem::replace(&mut seen[succ as usize], true) {
                        stack.push((succ, 0));
                    }
                }
                None => {
                    order.push(*node);
                    stack.pop();
                }
            }
        }
        order.reverse();
        let mut number = vec![0u32; self.nodes.len()];
        for (index, &node) in order.iter().enumerate() {
            number[node as usize] = index as u32;
        }
        let mut nodes: Vec<Node> = order
            .iter()
            .map(|&node| self.nodes[node as usize].clone())
            .collect();
        for node in &mut nodes {
            for succ in &mut node.succs {
                *succ = number[*succ as usize];
            }
        }
        for from in 0..nodes.len() {
            for (way, to) in nodes[from].succs.clone().into_iter().enumerate() {
                nodes[to as usize].preds.push((from as u32, way as u32));
            }
        }
        Product { nodes }
    }

    /// A cycle on which only one function moves: it may run for ever while the other goes on.
    fn refuse_solo_cycles(&self) -> Result<(), Misaligned> {
        for node in &self.nodes {
            let (mut at, mut steps) = (node, 0);
            while let (Run::Original(_) | Run::Rewritten(_), &[next]) = (at.run, &at.succs[..]) {
                at = &self.nodes[next as usize];
                steps += 1;
                if steps > self.nodes.len() {
                    return Err(Misaligned {
                        original: node.original,
                        rewritten: node.rewritten,
                        reason: "one of them loops for ever here",
                    });
                }
            }
        }
        Ok(())
    }
}

/// The node of a pair of places, and the pairs that follow.
fn visit<F: Function, G: Function>(
    original: &Skeleton<'_, F>,
    rewritten: &Skeleton<'_, G>,
    (a, b): (Place, Place),
) -> Result<(Node, Vec<(Place, Place)>), Misaligned> {
    let misaligned = |reason| Misaligned {
        original: a,
        rewritten: b,
        reason,
    };
    let mut node = Node {
        original: a,
        rewritten: b,
        run: Run::Nothing,
        decision: None,
        succs: Vec::new(),
        preds: Vec::new(),
    };
    let passages = (original.is_passage(a), rewritten.is_passage(b));
    let nexts = match (original.leads_to(a), rewritten.leads_to(b)) {
        (Some(_), Some(next)) if passages == (false, true) => {
            node.run = run(None, Some(b));
            vec![(a, next)]
        }
        (Some(next), Some(_)) if passages == (true, false) => {
            node.run = run(Some(a), None);
            vec![(next, b)]
        }
        (Some(next), Some(other)) => {
            node.run = run(Some(a), Some(b));
            vec![(next, other)]
        }
        (Some(next), None) => {
            node.run = run(Some(a), None);
            vec![(next, b)]
        }
        (None, Some(next)) => {
            node.run = run(None, Some(b));
            vec![(a, next)]
        }
        (None, None) => {
            let (first, second) = match (original.decision(a), rewritten.decision(b)) {
                (None, None) if a == b => return Ok((node, Vec::new())),
                (None, None) => return Err(misaligned("they leave in different ways")),
                (None, Some(_)) => {
                    return Err(misaligned(
                        "the original leaves, the rewritten function branches",
                    ));
                }
                (Some(_), None) => {
                    return Err(misaligned(
                        "the original branches, the rewritten function leaves",
                    ));
                }
                (Some(first), Some(second)) => (first, second),
            };
            if first.0 != second.0 || first.1.len() != second.1.len() {
                return Err(misaligned("they branch in different ways"));
            }
            node.run = run(Some(a), Some(b));
            node.decision = Some((first.2, second.2));
            first
                .1
                .iter()
                .copied()
                .zip(second.1.iter().copied())
                .collect()
        }
    };
    Ok((node, nexts))
}

fn run(original: Option<Place>, rewritten: Option<Place>) -> Run {
    match (original, rewritten) {
        (Some(Place::Block(a)), Some(Place::Block(b))) => Run::Both(a, b),
        (Some(Place::Block(a)), _) => Run::Original(a),
        (_, Some(Place::Block(b))) => Run::Rewritten(b),
        _ => Run::Nothing,
    }
}
