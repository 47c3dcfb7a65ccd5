//! The interference graph: which values cannot share a register.
//!
//! Paper: Chaitin et al. 1981: a definition interferes with what is live behind it. A copy's result
//! does not interfere with its source for the copy's sake: they hold the same.

use warpwright_flow::{EntityRef, Function, Inst, LiveSet, Value};

use crate::draft::{Draft, Role};
use crate::evict::Facts;

/// Adjacency lists, ascending, without repetition.
#[derive(Clone, Debug)]
pub(crate) struct Graph {
    neighbours: Vec<Vec<Value>>,
}

impl Graph {
    pub(crate) fn new(draft: &Draft, facts: &Facts) -> Graph {
        let mut graph = Graph {
            neighbours: vec![Vec::new(); draft.value_count()],
        };
        let mut live = LiveSet::new(draft.value_count());
        for block in facts.cfg.blocks() {
            let mut walk = facts.liveness.walk(draft, &facts.cfg, block, &mut live);
            while let Some(inst) = walk.peek() {
                graph.define(draft, inst, walk.live());
                walk.step();
            }
        }
        // What is live on entry is there at once.
        if let Some(entry) = facts.cfg.blocks().next() {
            let unset = facts.liveness.live_in(entry);
            for &a in unset {
                for &b in unset {
                    graph.add(draft, a, b);
                }
            }
        }
        for list in &mut graph.neighbours {
            list.sort_unstable();
            list.dedup();
        }
        graph
    }

    fn define(&mut self, draft: &Draft, inst: Inst, live: &LiveSet) {
        let defs = draft.defs(inst);
        let source = draft.copy_of(inst).map(|(_, source)| source);
        for &def in defs {
            for &other in live.members() {
                if source != Some(other) {
                    self.add(draft, def, other);
                }
            }
            for &other in defs {
                self.add(draft, def, other);
            }
        }
    }

    fn add(&mut self, draft: &Draft, a: Value, b: Value) {
        if a != b && share_file(draft, a, b) {
            self.neighbours[a.index()].push(b);
            self.neighbours[b.index()].push(a);
        }
    }

    pub(crate) fn of(&self, value: Value) -> &[Value] {
        &self.neighbours[value.index()]
    }

    pub(crate) fn interfere(&self, a: Value, b: Value) -> bool {
        self.of(a).binary_search(&b).is_ok()
    }

    /// Makes `b` one with `a`: all neighbours of `b` become neighbours of `a`.
    pub(crate) fn merge(&mut self, a: Value, b: Value) {
        for other in std::mem::take(&mut self.neighbours[b.index()]) {
            let list = &mut self.neighbours[other.index()];
            if let Ok(at) = list.binary_search(&b) {
                list.remove(at);
            }
            if let Err(at) = list.binary_search(&a) {
                list.insert(at, a);
            }
            let own = &mut self.neighbours[a.index()];
            if let Err(at) = own.binary_search(&other) {
                own.insert(at, other);
            }
        }
    }
}

/// Do two values compete for registers? All classes that take 32-bit registers share one file; any
/// other class has its own; slots take none.
fn share_file(draft: &Draft, a: Value, b: Value) -> bool {
    let is_slot = |value| matches!(draft.role(value), Role::Slot(_));
    let general = |value| draft.units(value) > 0;
    let together = general(a) && general(b) || draft.class(a) == draft.class(b);
    together && !is_slot(a) && !is_slot(b)
}
