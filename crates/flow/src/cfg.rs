//! The control-flow graph: basic blocks, edges, reverse postorder.

use std::cell::RefCell;
use std::collections::BTreeMap;

use cranelift_entity::{EntityRef, entity_impl};

use crate::lists::Lists;
use crate::{Function, Inst, Transfer, Value};

/// A basic block: blocks are numbered in program order, the entry is block 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Block(pub u32);
entity_impl!(Block, "b");

/// The control-flow graph of one function. A function without instructions has no blocks.
///
/// Blocks end after every instruction that may go elsewhere than to the next one; calls do not end
/// a block.
#[derive(Clone, Debug)]
pub struct Cfg {
    /// First instruction of each block, and the instruction count.
    starts: Vec<u32>,
    block_of: Vec<Block>,
    succs: Lists<Block>,
    preds: Lists<Block>,
    leaves: Vec<bool>,
    rpo: Vec<Block>,
    rpo_number: Vec<u32>,
}

const UNREACHABLE: u32 = u32::MAX;

impl Cfg {
    /// Builds the graph of `func`.
    pub fn new(func: &impl Function) -> Cfg {
        let (starts, block_of) = split_blocks(func);
        let blocks = starts.len() - 1;
        let mut leaves = vec![false; blocks];
        let mut edges = Vec::new();
        for block in 0..blocks {
            let last = Inst(starts[block + 1] - 1);
            let from = edges.len();
            let mut add = |target: usize| match block_of.get(target) {
                Some(&to) if edges[from..].iter().any(|&(_, seen)| seen == to) => {}
                Some(&to) => edges.push((block as u32, to)),
                None => leaves[block] = true,
            };
            func.for_each_target(last, |target| add(target.index()));
            if falls_through(func, last) {
                add(last.index() + 1);
            }
            leaves[block] |= matches!(
                func.transfer(last),
                Transfer::Return | Transfer::Exit | Transfer::Trap
            );
        }
        let succs = Lists::from_pairs(blocks, &edges);
        let reversed: Vec<_> = edges
            .iter()
            .map(|&(from, to)| (to.0, Block(from)))
            .collect();
        let preds = Lists::from_pairs(blocks, &reversed);
        let rpo = reverse_postorder(blocks, &succs);
        let mut rpo_number = vec![UNREACHABLE; blocks];
        for (number, block) in rpo.iter().enumerate() {
            rpo_number[block.index()] = number as u32;
        }
        Cfg {
            starts,
            block_of,
            succs,
            preds,
            leaves,
            rpo,
            rpo_number,
        }
    }

    /// Number of blocks, unreachable ones included.
    pub fn block_count(&self) -> usize {
        self.starts.len() - 1
    }

    /// All blocks in program order.
    pub fn blocks(&self) -> impl DoubleEndedIterator<Item = Block> + ExactSizeIterator + use<> {
        (0..self.block_count() as u32).map(Block)
    }

    /// The block that holds `inst`.
    pub fn block_of(&self, inst: Inst) -> Block {
        self.block_of[inst.index()]
    }

    /// The instructions of `block`, in order; never empty.
    pub fn insts(
        &self,
        block: Block,
    ) -> impl DoubleEndedIterator<Item = Inst> + ExactSizeIterator + use<> {
        (self.starts[block.index()]..self.starts[block.index() + 1]).map(Inst)
    }

    /// The first instruction of `block`.
    pub fn first_inst(&self, block: Block) -> Inst {
        Inst(self.starts[block.index()])
    }

    /// The last instruction of `block`.
    pub fn last_inst(&self, block: Block) -> Inst {
        Inst(self.starts[block.index() + 1] - 1)
    }

    /// The instructions that control may be right before next, after `inst`.
    pub fn after(&self, inst: Inst) -> impl Iterator<Item = Inst> + '_ {
        let block = self.block_of(inst);
        let is_last = inst == self.last_inst(block);
        let succs = if is_last { self.succs(block) } else { &[] };
        let next = (!is_last).then_some(Inst(inst.0 + 1));
        next.into_iter()
            .chain(succs.iter().map(|&succ| self.first_inst(succ)))
    }

    /// The instructions that control may be right before, once it was behind one of `from`, without
    /// executing `barrier` on the way.
    pub fn reach(&self, from: impl IntoIterator<Item = Inst>, barrier: Inst) -> Reached {
        let mut reached = Reached::default();
        let mut work: Vec<Inst> = from.into_iter().flat_map(|i| self.after(i)).collect();
        while let Some(start) = work.pop() {
            let last = self.last_inst(self.block_of(start));
            for index in start.0..=last.0 {
                let inst = Inst(index);
                if !reached.insert(inst) || inst == barrier {
                    break;
                }
                if inst == last {
                    work.extend(self.after(last));
                }
            }
        }
        reached
    }

    /// Distinct successors: targets in the order of the instruction's table, then the fall-through.
    pub fn succs(&self, block: Block) -> &[Block] {
        self.succs.get(block.index())
    }

    /// Distinct predecessors in program order, unreachable ones included.
    pub fn preds(&self, block: Block) -> &[Block] {
        self.preds.get(block.index())
    }

    /// May control leave the function (return, exit, trap, off the end) from this block?
    pub fn leaves(&self, block: Block) -> bool {
        self.leaves[block.index()]
    }

    /// The reachable blocks in reverse postorder: a block comes before its successors, except along
    /// retreating edges.
    pub fn reverse_postorder(&self) -> &[Block] {
        &self.rpo
    }

    /// The position of `block` in [`Cfg::reverse_postorder`], or `None` if it is unreachable.
    pub fn rpo_number(&self, block: Block) -> Option<u32> {
        Some(self.rpo_number[block.index()]).filter(|&number| number != UNREACHABLE)
    }

    /// Can control reach `block` from the entry?
    pub fn is_reachable(&self, block: Block) -> bool {
        self.rpo_number(block).is_some()
    }
}

/// A set of instructions.
#[derive(Clone, Debug, Default)]
pub struct Reached(Vec<bool>);

impl Reached {
    /// Adds `inst`; is it new?
    fn insert(&mut self, inst: Inst) -> bool {
        if self.0.len() <= inst.index() {
            self.0.resize(inst.index() + 1, false);
        }
        !std::mem::replace(&mut self.0[inst.index()], true)
    }

    /// Is `inst` in it?
    pub fn contains(&self, inst: Inst) -> bool {
        self.0.get(inst.index()).copied().unwrap_or(false)
    }
}

/// Where values may hold something else than instructions read, worked out as it is asked for.
#[derive(Clone, Debug, Default)]
pub struct Stale(RefCell<BTreeMap<(Value, Inst), Reached>>);

impl Stale {
    /// Does `value` hold right before `place` what `reader` read, as long as control came from there? `defs` are the
    /// instructions that write it.
    pub fn is_same<D: IntoIterator<Item = Inst>>(
        &self,
        cfg: &Cfg,
        (value, reader): (Value, Inst),
        place: Inst,
        defs: impl FnOnce() -> D,
    ) -> bool {
        let mut known = self.0.borrow_mut();
        let stale = known.entry((value, reader));
        let stale = stale.or_insert_with(|| cfg.reach(defs(), reader));
        !stale.contains(place)
    }
}

/// May control go from `inst` to the instruction after it?
fn falls_through(func: &impl Function, inst: Inst) -> bool {
    func.is_predicated(inst)
        || matches!(
            func.transfer(inst),
            Transfer::Next | Transfer::Call | Transfer::Branch
        )
}

/// The first instruction of each block (closed by the instruction count), and each instruction's
/// block.
fn split_blocks(func: &impl Function) -> (Vec<u32>, Vec<Block>) {
    let count = func.inst_count();
    let mut leader = vec![false; count + 1];
    leader[0] = true;
    for index in 0..count {
        let inst = Inst::new(index);
        if !matches!(func.transfer(inst), Transfer::Next | Transfer::Call) {
            leader[index + 1] = true;
            func.for_each_target(inst, |target| leader[target.index()] = true);
        }
    }
    let mut starts = Vec::new();
    let mut block_of = Vec::with_capacity(count);
    for (index, &leads) in leader[..count].iter().enumerate() {
        if leads {
            starts.push(index as u32);
        }
        block_of.push(Block::new(starts.len() - 1));
    }
    starts.push(count as u32);
    (starts, block_of)
}

fn reverse_postorder(blocks: usize, succs: &Lists<Block>) -> Vec<Block> {
    let mut order = Vec::with_capacity(blocks);
    let mut seen = vec![false; blocks];
    let mut stack = Vec::new();
    if blocks > 0 {
        seen[0] = true;
        stack.push((Block(0), 0));
    }
    while let Some((block, next)) = stack.last_mut() {
        match succs.get(block.index()).get(*next) {
            Some(&succ) => {
                *next += 1;
                if !seen[succ.index()] {
                    seen[succ.index()] = true;
                    stack.push((succ, 0));
                }
            }
            None => {
                order.push(*block);
                stack.pop();
            }
        }
    }
    order.reverse();
    order
}
