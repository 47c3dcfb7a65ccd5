//! Hides recomputations from the compiler behind us.
//!
//! You & Tsai, section 2.4, problem 1: the assembler takes a recomputation for redundant, and undoes
//! it. So a recomputation must not look like the original computation: one of its sources is replaced
//! by `(source xor mask) xor mask`. docs/regs.md has what ptxas sees through and what it does not.
//!
//! Where nothing else computes the value any more, there is nothing to be recognised: then only a
//! place in a deeper loop than the old one is hidden, or it would be moved out again.
//!
//! The mask must differ from place to place, or the places are merged with each other; and in a loop it
//! must change from round to round, or the recomputation is moved out of the loop.

use std::collections::{BTreeMap, BTreeSet};

use warpwright_flow::{Function, Inst, Loop, Value};

use super::facts::{Facts, reads, written};
use crate::draft::{Draft, Origin};

/// A copy reads `(source xor mask) xor mask` in place of `source`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hidden {
    /// What it would read.
    pub source: Value,
    /// What is applied to it twice.
    pub mask: Mask,
}

/// A mask; see [`Hidden`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mask {
    /// This number, unique in the function.
    Constant(u32),
    /// A value of the same class that is live there.
    Value(Value),
}

/// How each copy is hidden that could be recognised and reads a register, in a draft of `func`. What is computed
/// from something hidden is hidden.
pub(crate) fn hide(func: &impl Function, draft: &Draft, facts: &Facts) -> BTreeMap<Inst, Hidden> {
    let mut times = BTreeMap::new();
    for own in draft.insts().filter_map(|inst| draft.own(inst)) {
        *times.entry(own).or_insert(0u32) += 1;
    }
    let base = Facts::new(func);
    let mut hider = Hider {
        facts,
        hidden: BTreeSet::new(),
        used: BTreeSet::new(),
        constants: 0,
    };
    let mut found = BTreeMap::new();
    for inst in draft.insts() {
        let Origin::Copy { of, .. } = draft.origin(inst) else {
            continue;
        };
        let is_repeated = times.get(&of).is_some_and(|&times| times > 1);
        if is_repeated || facts.weight(inst) > base.weight(of) {
            let hidden = hider.hide(draft, inst);
            found.extend(hidden.map(|hidden| (inst, hidden)));
        }
    }
    found
}

struct Hider<'a> {
    facts: &'a Facts,
    /// Values that no longer look like what they repeat.
    hidden: BTreeSet<Value>,
    /// Sources with the masks they had.
    used: BTreeSet<(Value, Value)>,
    constants: u32,
}

impl Hider<'_> {
    fn hide(&mut self, draft: &Draft, inst: Inst) -> Option<Hidden> {
        let sources = reads(draft, inst);
        let fresh = written(draft, inst)?;
        if sources.iter().any(|source| self.hidden.contains(source)) {
            self.hidden.insert(fresh);
            return None;
        }
        // What reads no register is a constant, a parameter or a special register.
        let registers = sources.into_iter();
        let fits = |value: &Value| (1..=2).contains(&draft.units(*value));
        let source = registers
            .filter(fits)
            .min_by_key(|&value| draft.units(value))?;
        self.hidden.insert(fresh);
        let mask = match self.changing(draft, inst, source) {
            Some(value) => Mask::Value(value),
            None => {
                self.constants += 1;
                Mask::Constant(self.constants)
            }
        };
        Some(Hidden { source, mask })
    }

    /// In a loop, a live value of the same class that changes from round to round.
    fn changing(&mut self, draft: &Draft, inst: Inst, source: Value) -> Option<Value> {
        let block = self.facts.cfg.block_of(inst);
        let around = self.facts.loops.innermost(block)?;
        let class = draft.class(source);
        let mut values = draft.values().filter(|&value| {
            value != source
                && draft.class(value) == class
                && self.facts.live_before(value, inst)
                && !self.used.contains(&(source, value))
                && self.is_set_in(around, value)
        });
        let found = values.next()?;
        self.used.insert((source, found));
        Some(found)
    }

    fn is_set_in(&self, around: Loop, value: Value) -> bool {
        let mut defs = self.facts.def_use.defs(value).iter();
        defs.any(|&def| {
            self.facts
                .loops
                .contains(around, self.facts.cfg.block_of(def))
        })
    }
}
