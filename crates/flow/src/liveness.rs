//! Which values are live where.
//!
//! Method: by variable, as in Boissinot, Brandner, Darte, de Dinechin and Rastello, "Computing
//! liveness sets for SSA-form programs" (INRIA RR-7503, 2011), which needs no SSA form: from each
//! use that sees its block's entry, walk backwards until an unpredicated definition. The time is
//! proportional to the size of the result, and the live-in lists come out sorted, so that neither
//! the number of blocks nor of values enters by their product.

use cranelift_entity::EntityRef;

use crate::held::Released;
use crate::lists::Lists;
use crate::{Block, Cfg, Function, Inst, Value};

/// The values live at every block boundary. Within a block, [`Liveness::walk`] goes from there.
///
/// - A value is live where some path leads to a use without passing an unpredicated definition.
/// - What an asynchronous operation holds is used by the wait that releases it.
/// - Unreachable blocks are analysed like all others; they cannot influence reachable ones.
#[derive(Clone, Debug)]
pub struct Liveness {
    live_in: Lists<Value>,
    released: Released,
}

impl Liveness {
    /// Computes liveness of `func`.
    pub fn new(func: &impl Function, cfg: &Cfg) -> Liveness {
        let released = Released::new(func, cfg);
        let (exposed, kills) = local_sets(func, cfg, &released);
        let mut live_in: Vec<Vec<Value>> = vec![Vec::new(); cfg.block_count()];
        let mut killed = vec![u32::MAX; cfg.block_count()];
        let mut work = Vec::new();
        for index in 0..func.value_count() {
            let value = Value::new(index);
            if exposed.get(index).is_empty() {
                continue;
            }
            for block in kills.get(index) {
                killed[block.index()] = value.0;
            }
            work.extend_from_slice(exposed.get(index));
            for block in exposed.get(index) {
                live_in[block.index()].push(value);
            }
            while let Some(block) = work.pop() {
                for &pred in cfg.preds(block) {
                    let list = &mut live_in[pred.index()];
                    if killed[pred.index()] != value.0 && list.last() != Some(&value) {
                        list.push(value);
                        work.push(pred);
                    }
                }
            }
        }
        Liveness {
            live_in: Lists::from_nested(&live_in),
            released,
        }
    }

    /// The values live at the entry of `block`, in ascending order.
    pub fn live_in(&self, block: Block) -> &[Value] {
        self.live_in.get(block.index())
    }

    /// The values live at the end of `block`, in ascending order.
    pub fn live_out(&self, cfg: &Cfg, block: Block) -> Vec<Value> {
        let mut out = Vec::new();
        for &succ in cfg.succs(block) {
            out.extend_from_slice(self.live_in(succ));
        }
        out.sort_unstable();
        out.dedup();
        out
    }

    /// Is `value` live at the entry of `block`?
    pub fn is_live_in(&self, block: Block, value: Value) -> bool {
        self.live_in(block).binary_search(&value).is_ok()
    }

    /// Visits all values that `inst` reads: its uses in operand order, then the held values that it
    /// releases.
    pub fn for_each_read(&self, func: &impl Function, inst: Inst, mut visit: impl FnMut(Value)) {
        func.for_each_use(inst, &mut visit);
        self.released.get(inst).iter().copied().for_each(visit);
    }

    /// Walks `block` backwards; see [`Walk`]. One [`LiveSet`] serves any number of walks.
    pub fn walk<'a, F: Function>(
        &'a self,
        func: &'a F,
        cfg: &Cfg,
        block: Block,
        live: &'a mut LiveSet,
    ) -> Walk<'a, F> {
        live.clear();
        for &succ in cfg.succs(block) {
            for &value in self.live_in(succ) {
                live.insert(value);
            }
        }
        let first = cfg.first_inst(block).0;
        Walk {
            liveness: self,
            func,
            first,
            next: cfg.last_inst(block).0 + 1,
            live,
        }
    }

    /// The values live right before `inst`, in ascending order. For one instruction now and then;
    /// to visit many, use [`Liveness::walk`].
    pub fn live_before(&self, func: &impl Function, cfg: &Cfg, inst: Inst) -> Vec<Value> {
        let mut set = LiveSet::new(func.value_count());
        let mut walk = self.walk(func, cfg, cfg.block_of(inst), &mut set);
        while walk.step().is_some_and(|at| at != inst) {}
        set.to_sorted()
    }

    /// The values live right after `inst` (on any way out of it), in ascending order.
    pub fn live_after(&self, func: &impl Function, cfg: &Cfg, inst: Inst) -> Vec<Value> {
        let block = cfg.block_of(inst);
        if inst == cfg.last_inst(block) {
            self.live_out(cfg, block)
        } else {
            self.live_before(func, cfg, Inst(inst.0 + 1))
        }
    }

    pub(crate) fn live_in_lists(&self) -> &Lists<Value> {
        &self.live_in
    }
}

/// Per value, the blocks where a use sees the block's entry, and the blocks that surely define it.
fn local_sets(
    func: &impl Function,
    cfg: &Cfg,
    released: &Released,
) -> (Lists<Block>, Lists<Block>) {
    let values = func.value_count();
    let mut exposed = Vec::new();
    let mut kills = Vec::new();
    let mut seen = vec![u32::MAX; values];
    let mut killed = vec![u32::MAX; values];
    for block in cfg.blocks() {
        for inst in cfg.insts(block) {
            let mut read = |value: Value| {
                let index = value.index();
                if killed[index] != block.0 && seen[index] != block.0 {
                    seen[index] = block.0;
                    exposed.push((value.0, block));
                }
            };
            func.for_each_use(inst, &mut read);
            released.get(inst).iter().copied().for_each(read);
            if !func.is_predicated(inst) {
                func.for_each_def(inst, |value| {
                    if killed[value.index()] != block.0 {
                        killed[value.index()] = block.0;
                        kills.push((value.0, block));
                    }
                });
            }
        }
    }
    (
        Lists::from_pairs(values, &exposed),
        Lists::from_pairs(values, &kills),
    )
}

/// A set of values with constant-time insertion, removal and clearing.
#[derive(Clone, Debug)]
pub struct LiveSet {
    members: Vec<Value>,
    /// Where each value stands in `members`, if it does.
    position: Vec<u32>,
}

impl LiveSet {
    /// An empty set over `values` values.
    pub fn new(values: usize) -> LiveSet {
        LiveSet {
            members: Vec::new(),
            position: vec![0; values],
        }
    }

    /// Is `value` in the set?
    pub fn contains(&self, value: Value) -> bool {
        self.members.get(self.position[value.index()] as usize) == Some(&value)
    }

    /// Adds `value`; says whether it is new.
    pub fn insert(&mut self, value: Value) -> bool {
        if self.contains(value) {
            return false;
        }
        self.position[value.index()] = self.members.len() as u32;
        self.members.push(value);
        true
    }

    /// Removes `value`; says whether it was there.
    pub fn remove(&mut self, value: Value) -> bool {
        if !self.contains(value) {
            return false;
        }
        let at = self.position[value.index()];
        self.members.swap_remove(at as usize);
        if let Some(moved) = self.members.get(at as usize) {
            self.position[moved.index()] = at;
        }
        true
    }

    /// Removes everything.
    pub fn clear(&mut self) {
        self.members.clear();
    }

    /// The members, in no useful order.
    pub fn members(&self) -> &[Value] {
        &self.members
    }

    /// The members in ascending order.
    pub fn to_sorted(&self) -> Vec<Value> {
        let mut sorted = self.members.clone();
        sorted.sort_unstable();
        sorted
    }
}

/// A walk over one block from its end to its start, with the set of live values at hand.
pub struct Walk<'a, F> {
    liveness: &'a Liveness,
    func: &'a F,
    first: u32,
    next: u32,
    live: &'a mut LiveSet,
}

impl<F: Function> Walk<'_, F> {
    /// The values live now: after [`Walk::peek`], and before what [`Walk::step`] returned last.
    pub fn live(&self) -> &LiveSet {
        self.live
    }

    /// The instruction that the next step goes over.
    pub fn peek(&self) -> Option<Inst> {
        (self.next > self.first).then(|| Inst(self.next - 1))
    }

    /// Goes backwards over one instruction and returns it.
    pub fn step(&mut self) -> Option<Inst> {
        let inst = self.peek()?;
        if !self.func.is_predicated(inst) {
            self.func.for_each_def(inst, |value| {
                self.live.remove(value);
            });
        }
        self.liveness.for_each_read(self.func, inst, |value| {
            self.live.insert(value);
        });
        self.next -= 1;
        Some(inst)
    }
}
