//! Definitions and uses: where each value is written and read, which definitions reach a use, and
//! the webs that definitions and uses form.

use std::collections::BTreeSet;

use cranelift_entity::{EntityRef, entity_impl};

use crate::lists::Lists;
use crate::{Block, Cfg, Function, Inst, Liveness, Value};

/// Where what some place holds right before `inst` may come from: a search backwards along the edges of `cfg`.
/// `within` adds what writes the place in a stretch of one block (from the first instruction up to and without the
/// second) and reaches its end; it says whether what was there before the stretch does, too.
pub fn reaching(
    cfg: &Cfg,
    inst: Inst,
    mut within: impl FnMut(Inst, Inst, &mut BTreeSet<Source>) -> bool,
) -> BTreeSet<Source> {
    let mut found = BTreeSet::new();
    let mut seen = BTreeSet::new();
    let mut work = vec![(cfg.block_of(inst), inst)];
    while let Some((block, end)) = work.pop() {
        if !within(cfg.first_inst(block), end, &mut found) {
            continue;
        }
        if block.index() == 0 {
            found.insert(Source::Entry);
        }
        for &pred in cfg.preds(block) {
            if seen.insert(pred) {
                work.push((pred, Inst(cfg.last_inst(pred).0 + 1)));
            }
        }
    }
    found
}

/// Where each value is defined and used.
#[derive(Clone, Debug)]
pub struct DefUse {
    defs: Lists<Inst>,
    uses: Lists<Inst>,
}

/// Where the content of a register at some point may come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Source {
    /// It was there when the function was entered.
    Entry,
    /// This instruction wrote it.
    Inst(Inst),
}

impl DefUse {
    /// Collects all definitions and uses. An instruction appears once for each value, however often
    /// it reads or writes it; waits that release a held value are uses of it.
    pub fn new(func: &impl Function, liveness: &Liveness) -> DefUse {
        let mut defs: Vec<(u32, Inst)> = Vec::new();
        let mut uses: Vec<(u32, Inst)> = Vec::new();
        for inst in (0..func.inst_count()).map(Inst::new) {
            let add = |pairs: &mut Vec<(u32, Inst)>, from: usize, value: Value| {
                if !pairs[from..].contains(&(value.0, inst)) {
                    pairs.push((value.0, inst));
                }
            };
            let (first_def, first_use) = (defs.len(), uses.len());
            func.for_each_def(inst, |value| add(&mut defs, first_def, value));
            liveness.for_each_read(func, inst, |value| add(&mut uses, first_use, value));
        }
        DefUse {
            defs: Lists::from_pairs(func.value_count(), &defs),
            uses: Lists::from_pairs(func.value_count(), &uses),
        }
    }

    /// The instructions that write `value`, in program order.
    pub fn defs(&self, value: Value) -> &[Inst] {
        self.defs.get(value.index())
    }

    /// The instructions that read `value`, in program order.
    pub fn uses(&self, value: Value) -> &[Inst] {
        self.uses.get(value.index())
    }

    /// The definitions of `value` that may reach the point right before `inst`, ascending. Found by
    /// a search each time; for a whole function use [`Webs`].
    pub fn reaching(
        &self,
        func: &impl Function,
        cfg: &Cfg,
        inst: Inst,
        value: Value,
    ) -> Vec<Source> {
        let defs = self.defs(value);
        let found = reaching(cfg, inst, |first, end, found| {
            let from = defs.partition_point(|&def| def < first);
            let to = defs.partition_point(|&def| def < end);
            for &def in defs[from..to].iter().rev() {
                found.insert(Source::Inst(def));
                if !func.is_predicated(def) {
                    return false;
                }
            }
            true
        });
        found.into_iter().collect()
    }
}

/// A web: definitions and uses of one register that must stay in one register, because some use is
/// reached by several of them or a predicated definition adds to another. Two webs of one register
/// can be renamed apart.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Web(pub u32);
entity_impl!(Web, "web");

/// The webs of a function.
#[derive(Clone, Debug)]
pub struct Webs {
    /// Per value, its definitions in program order with their webs.
    defs: Lists<(Inst, Web)>,
    /// Per block and live-in value, the web.
    live_in: Vec<Web>,
    value: Vec<Value>,
    /// Webs that hold what their register held on entry to the function.
    from_entry: Vec<bool>,
}

impl Webs {
    /// Finds the webs of all values. Their numbers ascend by value.
    pub fn new(func: &impl Function, cfg: &Cfg, liveness: &Liveness, def_use: &DefUse) -> Webs {
        let mut nodes = Nodes::new(func, cfg, liveness, def_use);
        nodes.join_blocks();
        nodes.join_predicated();
        nodes.number()
    }

    /// Number of webs.
    pub fn len(&self) -> usize {
        self.value.len()
    }

    /// Are there no webs?
    pub fn is_empty(&self) -> bool {
        self.value.is_empty()
    }

    /// The register of a web.
    pub fn value(&self, web: Web) -> Value {
        self.value[web.index()]
    }

    /// Does the web hold what the register held on entry to the function?
    pub fn is_from_entry(&self, web: Web) -> bool {
        self.from_entry[web.index()]
    }

    /// The web to which the definition of `value` at `inst` belongs.
    pub fn of_def(&self, inst: Inst, value: Value) -> Option<Web> {
        let defs = self.defs.get(value.index());
        let at = defs.binary_search_by_key(&inst, |&(def, _)| def).ok()?;
        Some(defs[at].1)
    }

    /// The web that `value` belongs to right before `inst`, where it must be live.
    pub fn before(&self, cfg: &Cfg, liveness: &Liveness, inst: Inst, value: Value) -> Option<Web> {
        let block = cfg.block_of(inst);
        let defs = self.defs.get(value.index());
        let next = defs.partition_point(|&(def, _)| def < inst);
        match next.checked_sub(1).map(|at| defs[at]) {
            Some((def, web)) if cfg.first_inst(block) <= def => Some(web),
            _ => live_in_node(liveness, block, value).map(|node| self.live_in[node]),
        }
    }
}

/// The place of (`block`, `value`) among all live-in pairs.
fn live_in_node(liveness: &Liveness, block: Block, value: Value) -> Option<usize> {
    let at = liveness.live_in(block).binary_search(&value).ok()?;
    Some(liveness.live_in_lists().range(block.index()).start + at)
}

/// Union-find over the live-in pairs (first) and the definitions (after them).
struct Nodes<'a, F> {
    func: &'a F,
    cfg: &'a Cfg,
    liveness: &'a Liveness,
    def_use: &'a DefUse,
    parent: Vec<u32>,
    live_ins: usize,
}

impl<'a, F: Function> Nodes<'a, F> {
    fn new(func: &'a F, cfg: &'a Cfg, liveness: &'a Liveness, def_use: &'a DefUse) -> Self {
        let live_ins = liveness.live_in_lists().item_count();
        let count = live_ins + def_use.defs.item_count();
        let parent = (0..count as u32).collect();
        Nodes {
            func,
            cfg,
            liveness,
            def_use,
            parent,
            live_ins,
        }
    }

    fn find(&mut self, node: usize) -> usize {
        let mut at = node as u32;
        while self.parent[at as usize] != at {
            let above = self.parent[at as usize];
            self.parent[at as usize] = self.parent[above as usize];
            at = above;
        }
        at as usize
    }

    fn join(&mut self, a: usize, b: usize) {
        let (a, b) = (self.find(a), self.find(b));
        self.parent[a.max(b)] = a.min(b) as u32;
    }

    /// The node that `value` comes from right before `end`, which lies in `block` or ends it.
    fn source(&self, block: Block, end: Inst, value: Value) -> Option<usize> {
        let defs = self.def_use.defs(value);
        let next = defs.partition_point(|&def| def < end);
        match next.checked_sub(1) {
            Some(at) if self.cfg.first_inst(block) <= defs[at] => {
                Some(self.live_ins + self.def_use.defs.range(value.index()).start + at)
            }
            _ => live_in_node(self.liveness, block, value),
        }
    }

    /// What is live into a block is what its predecessors leave.
    fn join_blocks(&mut self) {
        for block in self.cfg.blocks() {
            let first = self.liveness.live_in_lists().range(block.index()).start;
            for (at, &value) in self.liveness.live_in(block).iter().enumerate() {
                for &pred in self.cfg.preds(block) {
                    let end = Inst(self.cfg.last_inst(pred).0 + 1);
                    if let Some(source) = self.source(pred, end, value) {
                        self.join(first + at, source);
                    }
                }
            }
        }
    }

    /// A predicated definition adds to what was there before.
    fn join_predicated(&mut self) {
        for index in 0..self.func.value_count() {
            let value = Value::new(index);
            let first = self.live_ins + self.def_use.defs.range(index).start;
            for (at, &def) in self.def_use.defs(value).iter().enumerate() {
                if self.func.is_predicated(def)
                    && self.is_live_after(def, value)
                    && let Some(source) = self.source(self.cfg.block_of(def), def, value)
                {
                    self.join(first + at, source);
                }
            }
        }
    }

    /// Does a use see what `value` holds right after its definition at `def`?
    fn is_live_after(&self, def: Inst, value: Value) -> bool {
        let block = self.cfg.block_of(def);
        let (uses, defs) = (self.def_use.uses(value), self.def_use.defs(value));
        let later = |list: &'a [Inst]| {
            let rest = &list[list.partition_point(|&at| at <= def)..];
            rest.iter()
                .copied()
                .take_while(move |&at| at <= self.cfg.last_inst(block))
        };
        let kill = later(defs).find(|&at| !self.func.is_predicated(at));
        match (later(uses).next(), kill) {
            (Some(used), Some(killed)) => used <= killed,
            (Some(_), None) => true,
            (None, Some(_)) => false,
            (None, None) => {
                let mut succs = self.cfg.succs(block).iter();
                succs.any(|&succ| self.liveness.is_live_in(succ, value))
            }
        }
    }

    /// Numbers the classes by value, then by their first definition or live-in block.
    fn number(mut self) -> Webs {
        let mut web_of_root = vec![None; self.parent.len()];
        let mut webs = Webs {
            defs: Lists::default(),
            live_in: Vec::new(),
            value: Vec::new(),
            from_entry: Vec::new(),
        };
        let mut live_in_pairs: Vec<(u32, u32)> = Vec::with_capacity(self.live_ins);
        for block in self.cfg.blocks() {
            let first = self.liveness.live_in_lists().range(block.index()).start;
            let pairs = self.liveness.live_in(block).iter().enumerate();
            live_in_pairs.extend(pairs.map(|(at, value)| (value.0, (first + at) as u32)));
        }
        let live_in_nodes = Lists::from_pairs(self.func.value_count(), &live_in_pairs);
        let entry_nodes = self.cfg.blocks().next().map_or(0..0, |entry| {
            self.liveness.live_in_lists().range(entry.index())
        });
        webs.live_in = vec![Web(0); self.live_ins];
        for index in 0..self.func.value_count() {
            let value = Value::new(index);
            let mut list = Vec::new();
            let mut web_of = |nodes: &mut Self, webs: &mut Webs, node: usize| {
                *web_of_root[nodes.find(node)].get_or_insert_with(|| {
                    webs.value.push(value);
                    webs.from_entry.push(false);
                    Web::new(webs.value.len() - 1)
                })
            };
            let first = self.live_ins + self.def_use.defs.range(index).start;
            for at in 0..self.def_use.defs(value).len() {
                let def = self.def_use.defs(value)[at];
                list.push((def, web_of(&mut self, &mut webs, first + at)));
            }
            for &node in live_in_nodes.get(index) {
                let web = web_of(&mut self, &mut webs, node as usize);
                webs.live_in[node as usize] = web;
                webs.from_entry[web.index()] |= entry_nodes.contains(&(node as usize));
            }
            webs.defs.push_list(list);
        }
        webs
    }
}
