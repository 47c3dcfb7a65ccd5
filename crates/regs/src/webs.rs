//! Values renamed so that each web is a value of its own: what the allocator colours.
//!
//! An instruction that reads and writes one register through one operand (`UseDef` operands, guarded
//! definitions) must find both in one register. The trait does not tell such operands from two of
//! the same name, so all that an instruction both reads and writes stays one web; the old value dies
//! there anyway.

use warpwright_flow::{EntityRef, Function, Inst, Value, Webs};

use crate::draft::{Draft, Role};
use crate::evict::Facts;
use crate::union::Union;

/// A draft with the same code and one value for each web. Slots and base addresses stay as they are.
pub(crate) fn split(draft: &Draft) -> Draft {
    let facts = Facts::new(draft);
    let webs = Webs::new(draft, &facts.cfg, &facts.liveness, &facts.def_use);
    let mut union = Union::new(webs.len());
    let web_at = |inst: Inst, value: Value| {
        webs.of_def(inst, value)
            .or_else(|| webs.before(&facts.cfg, &facts.liveness, inst, value))
    };
    for inst in draft.insts() {
        for &value in draft.defs(inst) {
            let def = webs.of_def(inst, value);
            let used = webs.before(&facts.cfg, &facts.liveness, inst, value);
            if let (true, Some(def), Some(used)) = (draft.uses(inst).contains(&value), def, used) {
                union.join(def.index(), used.index());
            }
        }
    }
    let mut next = draft.clone();
    // The first web of a register keeps its number; others get new ones.
    let mut taken = vec![false; draft.value_count()];
    let mut value_of = vec![None; webs.len()];
    let mut rename = |next: &mut Draft, inst: Inst, value: Value| {
        if !matches!(draft.role(value), Role::Register(_)) {
            return value;
        }
        let Some(web) = web_at(inst, value) else {
            return value;
        };
        let root = union.find(web.index());
        *value_of[root].get_or_insert_with(|| {
            if std::mem::replace(&mut taken[value.index()], true) {
                next.values.push(draft.values[value.index()]);
                return Value::new(next.values.len() - 1);
            }
            value
        })
    };
    for inst in draft.insts() {
        let mut code = draft.code[inst.index()].clone();
        code.rename(|value| rename(&mut next, inst, value));
        next.code[inst.index()] = code;
    }
    next
}
