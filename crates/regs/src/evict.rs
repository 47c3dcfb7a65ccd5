//! Eviction: a value leaves its register over part of its live range and stays in its slot.
//!
//! Where a pass wants the register for others, the value is *away*. Every use that some path
//! reaches from there needs a load in front of it, and every definition that such a load may read
//! needs a store behind it. Which uses those are is a forward data-flow problem over one value: is it
//! in its register here, whichever way control came? A load puts it back, so the uses that follow
//! before it is away again need none.
//!
//! A predicated definition keeps the old value when its guard is false, so it counts as a use: the
//! register is whole again before it, and the store behind it needs no guard. One that nobody reads
//! afterwards keeps nothing: whatever the slot holds there, perhaps nothing yet, stays where it is.

use smallvec::SmallVec;
use warpwright_flow::{
    Block, Cfg, DefUse, EntityRef, Function, Inst, LiveRanges, Liveness, Loops, Pressure, Value,
};

use crate::draft::{Code, Draft, Origin, Place, Role};

/// The analyses of a draft as it stands.
pub(crate) struct Facts {
    pub(crate) cfg: Cfg,
    pub(crate) loops: Loops,
    pub(crate) liveness: Liveness,
    pub(crate) def_use: DefUse,
}

impl Facts {
    pub(crate) fn new(draft: &Draft) -> Facts {
        let cfg = Cfg::new(draft);
        let loops = Loops::new(&cfg);
        let liveness = Liveness::new(draft, &cfg);
        let def_use = DefUse::new(draft, &liveness);
        Facts {
            cfg,
            loops,
            liveness,
            def_use,
        }
    }

    pub(crate) fn pressure(&self, draft: &Draft) -> Pressure {
        Pressure::new(draft, &self.cfg, &self.liveness)
    }

    pub(crate) fn ranges(&self, draft: &Draft) -> LiveRanges {
        LiveRanges::new(draft, &self.cfg, &self.liveness)
    }

    /// How often an instruction runs, by the usual guess ([`Loops::weight`]).
    pub(crate) fn weight(&self, inst: Inst) -> f64 {
        self.loops.weight(self.cfg.block_of(inst))
    }

    /// Does the value hold what its register held when the function was entered?
    pub(crate) fn is_from_entry(&self, value: Value) -> bool {
        let mut blocks = self.cfg.blocks();
        blocks
            .next()
            .is_some_and(|entry| self.liveness.is_live_in(entry, value))
    }
}

/// The instructions over which an evicted value is in its slot: where its live range is split. Code that a pass
/// added is never among them: it stands between a definition and its store, or a load and its use.
pub(crate) struct SplitRegion {
    /// How many of the instructions before each one.
    before: Vec<u32>,
}

impl SplitRegion {
    pub(crate) fn new(draft: &Draft, is_away: impl Fn(Inst) -> bool) -> SplitRegion {
        let mut before = vec![0];
        let mut count = 0;
        for inst in draft.insts() {
            let own = matches!(draft.origin(inst), Origin::Own(_));
            count += u32::from(own && is_away(inst));
            before.push(count);
        }
        SplitRegion { before }
    }

    /// Is it away somewhere from `first` up to and without `end`?
    fn any(&self, first: Inst, end: Inst) -> bool {
        first < end && self.before[first.index()] < self.before[end.index()]
    }
}

/// Values that must stay in registers: read or written by operations that go on while the thread
/// runs, or possibly unset.
pub(crate) fn pinned(draft: &Draft, facts: &Facts) -> Vec<bool> {
    let mut pinned: Vec<bool> = draft
        .values()
        .map(|value| {
            let is_register = matches!(draft.role(value), Role::Register(_));
            let units = draft.units(value);
            !is_register || !(1..=2).contains(&units) || facts.is_from_entry(value)
        })
        .collect();
    for inst in draft.insts() {
        draft.for_each_held(inst, |_, value| pinned[value.index()] = true);
    }
    pinned
}

/// The instructions before which a value has to be loaded if it is away where `away` says, in
/// program order.
pub(crate) fn reloads(draft: &Draft, facts: &Facts, value: Value, away: &SplitRegion) -> Vec<Inst> {
    let cfg = &facts.cfg;
    // Optimistic: in its register wherever a block begins, until a path says otherwise.
    let mut whole = vec![true; cfg.block_count()];
    let enters = |whole: &[bool], block: Block| {
        let mut preds = cfg.preds(block).iter();
        block.index() > 0 && !cfg.preds(block).is_empty() && preds.all(|pred| whole[pred.index()])
    };
    let mut changed = true;
    while changed {
        changed = false;
        for &block in cfg.reverse_postorder() {
            let leaves = walk(
                draft,
                facts,
                value,
                away,
                block,
                enters(&whole, block),
                |_| {},
            );
            changed |= leaves != whole[block.index()];
            whole[block.index()] = leaves;
        }
    }
    let mut found = Vec::new();
    for block in cfg.blocks() {
        let enters = enters(&whole, block);
        walk(draft, facts, value, away, block, enters, |inst| {
            found.push(inst)
        });
    }
    found
}

/// Goes forward over a block; is the value in its register at its end?
fn walk(
    draft: &Draft,
    facts: &Facts,
    value: Value,
    away: &SplitRegion,
    block: Block,
    enters: bool,
    mut reload: impl FnMut(Inst),
) -> bool {
    let mut whole = enters;
    let mut next = facts.cfg.first_inst(block);
    let end = Inst(facts.cfg.last_inst(block).0 + 1);
    let accesses: SmallVec<[Access; 16]> = accesses(facts, value, next, end).collect();
    let keeps = |access: &Access| access.writes && draft.is_predicated(access.inst);
    let is_read_from = |at: usize| {
        let decisive = accesses[at..].iter().find(|a| a.reads || !keeps(a));
        match decisive {
            Some(access) => access.reads,
            None => {
                let mut succs = facts.cfg.succs(block).iter();
                succs.any(|&succ| facts.liveness.is_live_in(succ, value))
            }
        }
    };
    for (at, access) in accesses.iter().enumerate() {
        whole &= !away.any(next, access.inst);
        let needed = access.reads || keeps(access) && is_read_from(at + 1);
        if needed && !whole {
            reload(access.inst);
        }
        whole = true;
        next = Inst(access.inst.0 + 1);
    }
    whole && !away.any(next, end)
}

struct Access {
    inst: Inst,
    reads: bool,
    writes: bool,
}

/// The accesses to a value from `first` up to and without `end`.
fn accesses(
    facts: &Facts,
    value: Value,
    first: Inst,
    end: Inst,
) -> impl Iterator<Item = Access> + use<> {
    let within = |list: &[Inst]| -> SmallVec<[Inst; 8]> {
        let from = list.partition_point(|&inst| inst < first);
        let to = list.partition_point(|&inst| inst < end);
        SmallVec::from_slice(&list[from..to])
    };
    let uses = within(facts.def_use.uses(value));
    let defs = within(facts.def_use.defs(value));
    let mut all: SmallVec<[Inst; 16]> = uses.iter().chain(&defs).copied().collect();
    all.sort_unstable();
    all.dedup();
    all.into_iter().map(move |inst| Access {
        inst,
        reads: uses.binary_search(&inst).is_ok(),
        writes: defs.binary_search(&inst).is_ok(),
    })
}

/// The function's own instructions that write a value: those with a store behind them, once it is
/// evicted.
pub(crate) fn writers<'a>(
    draft: &'a Draft,
    facts: &'a Facts,
    value: Value,
) -> impl Iterator<Item = Inst> + 'a {
    let defs = facts.def_use.defs(value).iter().copied();
    defs.filter(|&def| matches!(draft.origin(def), Origin::Own(_)))
}

/// The code that loads the value before each of `reloads` and stores it after each definition, for
/// [`Draft::insert`]. `base` is the address that its slot is reached from, if that needs a register.
pub(crate) fn evict(
    draft: &mut Draft,
    facts: &Facts,
    value: Value,
    reloads: &[Inst],
    base: Option<Value>,
) -> Vec<(Place, Code)> {
    let is_first = !std::mem::replace(&mut draft.values[value.index()].is_stored, true);
    let slot = draft.slot_of(value);
    let base = base.as_slice();
    let mut added = Vec::new();
    for &inst in reloads {
        if let Some(before) = draft.place(inst) {
            let uses = [&[slot], base].concat();
            let load = Code::new(Origin::Load { before }, &[value], &uses);
            added.push((Place::Before(inst), load));
        }
    }
    if is_first {
        for inst in writers(draft, facts, value) {
            if let Origin::Own(after) = draft.origin(inst) {
                let uses = [&[value], base].concat();
                let store = Code::new(Origin::Store { after }, &[slot], &uses);
                added.push((Place::After(inst), store));
            }
        }
    }
    added
}

/// Removes stores to slots that nobody reads afterwards. After each eviction that adds loads, all
/// definitions must have their stores again, so this comes last.
pub(crate) fn remove_dead_stores(draft: &mut Draft) {
    let facts = Facts::new(draft);
    let mut dead = vec![false; draft.inst_count()];
    let mut live = warpwright_flow::LiveSet::new(draft.value_count());
    for block in facts.cfg.blocks() {
        let mut walk = facts.liveness.walk(draft, &facts.cfg, block, &mut live);
        while let Some(inst) = walk.peek() {
            let is_store = matches!(draft.origin(inst), Origin::Store { .. });
            let slots = draft.defs(inst);
            let is_read = slots.iter().any(|&slot| walk.live().contains(slot));
            dead[inst.index()] = is_store && !is_read;
            walk.step();
        }
    }
    draft.remove(|inst| dead[inst.index()]);
}
