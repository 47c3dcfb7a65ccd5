//! Registers under asynchronous operations.
//!
//! A value held by an asynchronous operation counts as used by every instruction that may be the
//! first to await it. So liveness, ranges and webs need no rule of their own for it. A held value
//! that is defined again before the wait is not kept across that definition: instruction sets
//! forbid that, and an analysis cannot mend it.

use std::collections::HashSet;

use cranelift_entity::EntityRef;

use crate::lists::Lists;
use crate::{Block, Cfg, Function, Inst, Queue, Value};

/// For each instruction, the values it releases.
#[derive(Clone, Debug)]
pub(crate) struct Released {
    lists: Option<Lists<Value>>,
}

impl Released {
    pub(crate) fn new(func: &impl Function, cfg: &Cfg) -> Released {
        let (mut releases, pending) = within_blocks(func, cfg);
        if releases.is_empty() && pending.is_empty() {
            return Released { lists: None };
        }
        let first_waits: Vec<_> = cfg
            .blocks()
            .map(|block| first_waits(func, cfg, block))
            .collect();
        for (from, queue, value) in pending {
            across_blocks(cfg, &first_waits, from, queue, |wait| {
                releases.push((wait.0, value))
            });
        }
        releases.sort_unstable();
        releases.dedup();
        Released {
            lists: Some(Lists::from_pairs(func.inst_count(), &releases)),
        }
    }

    /// The values that `inst` releases, in order, each once.
    pub(crate) fn get(&self, inst: Inst) -> &[Value] {
        self.lists
            .as_ref()
            .map_or(&[], |lists| lists.get(inst.index()))
    }
}

/// A value that a wait releases, by the wait's index.
type Release = (u32, Value);

/// A value still held where a block ends.
type Pending = (Block, Queue, Value);

/// What is released in the block where it begins, and what is still pending where a block ends.
fn within_blocks(func: &impl Function, cfg: &Cfg) -> (Vec<Release>, Vec<Pending>) {
    let mut releases = Vec::new();
    let mut ends = Vec::new();
    let mut pending: Vec<(Queue, Value)> = Vec::new();
    for block in cfg.blocks() {
        for inst in cfg.insts(block) {
            let waits = func.waits(inst);
            if waits.0 != 0 {
                pending.retain(|&(queue, value)| {
                    let waited = waits.contains(queue);
                    if waited {
                        releases.push((inst.0, value));
                    }
                    !waited
                });
            }
            func.for_each_held(inst, |queue, value| pending.push((queue, value)));
        }
        pending.sort_unstable();
        pending.dedup();
        ends.extend(
            pending
                .drain(..)
                .map(|(queue, value)| (block, queue, value)),
        );
    }
    (releases, ends)
}

/// For each queue awaited in `block`, the first instruction that awaits it.
fn first_waits(func: &impl Function, cfg: &Cfg, block: Block) -> Vec<(Queue, Inst)> {
    let mut seen = 0u32;
    let mut firsts = Vec::new();
    for inst in cfg.insts(block) {
        let mut fresh = func.waits(inst).0 & !seen;
        seen |= fresh;
        while fresh != 0 {
            firsts.push((Queue(fresh.trailing_zeros() as u8), inst));
            fresh &= fresh - 1;
        }
    }
    firsts
}

/// Visits the first waits for `queue` on all paths from the end of `from`.
fn across_blocks(
    cfg: &Cfg,
    first_waits: &[Vec<(Queue, Inst)>],
    from: Block,
    queue: Queue,
    mut visit: impl FnMut(Inst),
) {
    let mut seen = HashSet::new();
    let mut work = cfg.succs(from).to_vec();
    while let Some(block) = work.pop() {
        if !seen.insert(block) {
            continue;
        }
        match first_waits[block.index()]
            .iter()
            .find(|(awaited, _)| *awaited == queue)
        {
            Some((_, inst)) => visit(*inst),
            None => work.extend_from_slice(cfg.succs(block)),
        }
    }
}
