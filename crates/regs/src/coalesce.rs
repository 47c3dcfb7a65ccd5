//! Conservative coalescing: a copy's two values become one where that cannot make the graph harder
//! to colour.
//!
//! Paper: Briggs, Cooper and Torczon 1994 (TOPLAS 16:3), section 4: two nodes may be merged if the
//! result has too few neighbours of significant degree to be blocked by them.
//!
//! Departure: values that have a slot are left alone, so that what the slot holds stays one value.

use warpwright_flow::{EntityRef, Function, Value};

use crate::color::{File, blocked};
use crate::draft::{Draft, Role};
use crate::evict::Facts;
use crate::groups::{Contradiction, Groups};
use crate::interference::Graph;
use crate::union::Union;

/// Merges what it can, `most` copies at most, and removes those; says how many there were.
pub(crate) fn coalesce(draft: &mut Draft, file: File, most: u64) -> Result<u64, Contradiction> {
    let facts = Facts::new(draft);
    let mut graph = Graph::new(draft, &facts);
    let groups = Groups::new(draft)?;
    let mut union = Union::new(draft.value_count());
    let mut dead = vec![false; draft.inst_count()];
    let mut merged = 0;
    for inst in draft.insts() {
        let Some((to, from)) = draft.copy_of(inst).filter(|_| merged < most) else {
            continue;
        };
        let (to, from) = (
            Value::new(union.find(to.index())),
            Value::new(union.find(from.index())),
        );
        if groups.is_constrained(to) || groups.is_constrained(from) {
            continue;
        }
        if to != from {
            if !may_merge(draft, &graph, file, to, from) {
                continue;
            }
            graph.merge(to.min(from), to.max(from));
            union.join(to.index(), from.index());
        }
        dead[inst.index()] = true;
        merged += 1;
    }
    if merged == 0 {
        return Ok(0);
    }
    let root: Vec<Value> = (0..draft.value_count())
        .map(|value| Value::new(union.find(value)))
        .collect();
    for code in &mut draft.code {
        code.rename(|value| root[value.index()]);
    }
    draft.remove(|inst| dead[inst.index()]);
    Ok(merged)
}

fn may_merge(draft: &Draft, graph: &Graph, file: File, a: Value, b: Value) -> bool {
    let data = |value: Value| &draft.values[value.index()];
    let is_plain =
        |value| matches!(draft.role(value), Role::Register(_)) && data(value).slot.is_none();
    if draft.class(a) != draft.class(b) || !is_plain(a) || !is_plain(b) || graph.interfere(a, b) {
        return false;
    }
    let mut around = [graph.of(a), graph.of(b)].concat();
    around.sort_unstable();
    around.dedup();
    let is_significant = |other: &Value| {
        let squeeze = graph.of(*other).iter().map(|&n| blocked(draft, *other, n));
        squeeze.sum::<u32>() >= file.places(draft.units(*other))
    };
    let significant = around.iter().filter(|other| is_significant(other));
    let squeeze: u32 = significant.map(|&other| blocked(draft, a, other)).sum();
    squeeze < file.places(draft.units(a))
}
