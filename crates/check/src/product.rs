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

/// What decides where a node leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Decision {
    /// The deciding instruction of each function; `None` where the other one decides alone.
    pub(crate) insts: [Option<Inst>; 2],
    /// Are a function's ways in the other order, the first one taken where its condition is false?
    pub(crate) flips: [bool; 2],
    /// The only way that is ever taken, as facts must show: it is the node's only successor.
    pub(crate) forced: Option<usize>,
}

impl Decision {
    /// A function that decides, and the instruction.
    pub(crate) fn deciding(&self) -> Option<(usize, Inst)> {
        let mut insts = self.insts.iter().enumerate();
        insts.find_map(|(side, inst)| Some((side, (*inst)?)))
    }

    /// The instructions, where both decide.
    pub(crate) fn pair(&self) -> Option<[Inst; 2]> {
        Some([self.insts[0]?, self.insts[1]?])
    }
}

/// A node of the product graph.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) original: Place,
    pub(crate) rewritten: Place,
    pub(crate) run: Run,
    pub(crate) decision: Option<Decision>,
    /// Nodes since both functions ran together at which one of them decided alone: it may be ahead of the other.
    pub(crate) phase: u32,
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
    /// Blocks whose ways are in the other order.
    flipped: Vec<bool>,
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
        let flipped = cfg.blocks().map(|block| flip(cfg.last_inst(block)));
        let flipped = flipped.collect();
        Skeleton {
            func,
            cfg,
            ends,
            flipped,
        }
    }

    pub(crate) fn blocks(&self) -> usize {
        self.ends.len()
    }

    pub(crate) fn entry(&self) -> Place {
        place(self.func, self.cfg, Inst(0))
    }

    /// Where a place leads without a decision.
    pub(crate) fn leads_to(&self, from: Place) -> Option<Place> {
        let Place::Block(block) = from else {
            return None;
        };
        match self.ends.get(block.as_u32() as usize)? {
            End::Straight(to) => Some(*to),
            End::Decision(..) => None,
        }
    }

    /// Is it a block that does nothing but lead on?
    fn is_bare(&self, at: Place) -> bool {
        let Place::Block(block) = at else {
            return false;
        };
        let first = self.cfg.first_inst(block);
        let is_alone = first == self.cfg.last_inst(block);
        is_alone && self.func.transfer(first) == Transfer::Jump && self.leads_to(at).is_some()
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

    /// Where a place may lead.
    pub(crate) fn ways(&self, at: Place) -> Vec<Place> {
        match (self.leads_to(at), self.decision(at)) {
            (Some(to), _) => vec![to],
            (None, Some((_, ways, _))) => ways.to_vec(),
            (None, None) => Vec::new(),
        }
    }

    pub(crate) fn decision(&self, at: Place) -> Option<(Transfer, &[Place], Inst)> {
        let Place::Block(block) = at else { return None };
        match self.ends.get(block.as_u32() as usize)? {
            End::Straight(_) => None,
            End::Decision(kind, ways) => Some((*kind, ways, self.cfg.last_inst(block))),
        }
    }

    fn is_flipped(&self, at: Place) -> bool {
        match at {
            Place::Block(block) => self.flipped[block.as_u32() as usize],
            Place::Left(_) => false,
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
        Product::of(nodes)
    }

    /// The graph of these nodes, of which the first one is the entry.
    pub(crate) fn of(nodes: Vec<Node>) -> Result<Product, Misaligned> {
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
        let rests = [
            |run: Run| !matches!(run, Run::Both(..) | Run::Original(_)),
            |run: Run| !matches!(run, Run::Both(..) | Run::Rewritten(_)),
        ];
        for rests in rests {
            if let Some(at) = self.on_a_cycle(&|node| rests(node.run)) {
                return Err(Misaligned {
                    original: at.original,
                    rewritten: at.rewritten,
                    reason: "one of them loops for ever here",
                });
            }
        }
        Ok(())
    }

    /// Can what goes round to a node have come in without passing it? Then its cycle has another entry, and names of what
    /// stands before the node are given anew on the way around.
    pub(crate) fn is_entered_elsewhere(&self, header: usize) -> bool {
        let back = self.nodes[header].preds.iter().map(|pred| pred.0 as usize);
        let mut work: Vec<usize> = back.filter(|&pred| pred >= header).collect();
        let mut inside = vec![false; self.nodes.len()];
        inside[header] = true;
        while let Some(at) = work.pop() {
            if at < header {
                return true;
            }
            if !std::mem::replace(&mut inside[at], true) {
                work.extend(self.nodes[at].preds.iter().map(|pred| pred.0 as usize));
            }
        }
        false
    }

    /// A node on a cycle of such nodes alone.
    fn on_a_cycle(&self, is_one: &dyn Fn(&Node) -> bool) -> Option<&Node> {
        let inside: Vec<bool> = self.nodes.iter().map(is_one).collect();
        let ways_in = |node: &Node| {
            let from = node.preds.iter().filter(|pred| inside[pred.0 as usize]);
            from.count()
        };
        let mut open: Vec<usize> = self.nodes.iter().map(ways_in).collect();
        let mut work: Vec<usize> = (0..open.len())
            .filter(|&number| inside[number] && open[number] == 0)
            .collect();
        let mut left = inside.iter().filter(|&&is_inside| is_inside).count();
        while let Some(number) = work.pop() {
            left -= 1;
            for &succ in &self.nodes[number].succs {
                let succ = succ as usize;
                if inside[succ] {
                    open[succ] -= 1;
                    work.extend((open[succ] == 0).then_some(succ));
                }
            }
        }
        let mut stuck = (0..open.len()).filter(|&number| inside[number] && open[number] > 0);
        stuck
            .next()
            .filter(|_| left > 0)
            .map(|number| &self.nodes[number])
    }
}

/// The node of a pair of places, and the pairs that follow.
fn visit<F: Function, G: Function>(
    original: &Skeleton<'_, F>,
    rewritten: &Skeleton<'_, G>,
    (a, b): (Place, Place),
) -> Result<(Node, Vec<(Place, Place)>), Misaligned> {
    if let Some(straight) = straight(original, rewritten, (a, b)) {
        return Ok(straight);
    }
    let misaligned = |reason| Misaligned {
        original: a,
        rewritten: b,
        reason,
    };
    let mut node = Node::at(a, b);
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
    node.decision = Some(Decision {
        insts: [Some(first.2), Some(second.2)],
        flips: [original.is_flipped(a), rewritten.is_flipped(b)],
        forced: None,
    });
    let nexts = first.1.iter().copied().zip(second.1.iter().copied());
    Ok((node, nexts.collect()))
}

/// The node of a pair of places of which at least one leads on without a decision, and the pair that follows.
pub(crate) fn straight<F: Function, G: Function>(
    original: &Skeleton<'_, F>,
    rewritten: &Skeleton<'_, G>,
    (a, b): (Place, Place),
) -> Option<(Node, Vec<(Place, Place)>)> {
    let passages = (original.is_passage(a), rewritten.is_passage(b));
    let (run, next) = match (original.leads_to(a), rewritten.leads_to(b)) {
        (Some(_), Some(next)) if passages == (false, true) => (run(None, Some(b)), (a, next)),
        (Some(next), Some(_)) if passages == (true, false) => (run(Some(a), None), (next, b)),
        (Some(next), Some(other)) => (run(Some(a), Some(b)), (next, other)),
        (Some(next), None) => (run(Some(a), None), (next, b)),
        (None, Some(next)) => (run(None, Some(b)), (a, next)),
        (None, None) => return None,
    };
    let node = Node {
        run,
        ..Node::at(a, b)
    };
    Some((node, vec![next]))
}

/// The same where a block that does nothing is passed first: no function gets ahead of a join so.
pub(crate) fn bare<F: Function, G: Function>(
    original: &Skeleton<'_, F>,
    rewritten: &Skeleton<'_, G>,
    (a, b): (Place, Place),
) -> Option<(Node, Vec<(Place, Place)>)> {
    let (run, next) = match (original.is_bare(a), rewritten.is_bare(b)) {
        (_, true) => (run(None, Some(b)), (a, rewritten.leads_to(b)?)),
        (true, _) => (run(Some(a), None), (original.leads_to(a)?, b)),
        _ => return None,
    };
    let node = Node {
        run,
        ..Node::at(a, b)
    };
    Some((node, vec![next]))
}

impl Node {
    /// A node at which nothing runs.
    pub(crate) fn at(original: Place, rewritten: Place) -> Node {
        Node {
            original,
            rewritten,
            run: Run::Nothing,
            decision: None,
            phase: 0,
            succs: Vec::new(),
            preds: Vec::new(),
        }
    }
}

pub(crate) fn run(original: Option<Place>, rewritten: Option<Place>) -> Run {
    match (original, rewritten) {
        (Some(Place::Block(a)), Some(Place::Block(b))) => Run::Both(a, b),
        (Some(Place::Block(a)), _) => Run::Original(a),
        (_, Some(Place::Block(b))) => Run::Rewritten(b),
        _ => Run::Nothing,
    }
}
