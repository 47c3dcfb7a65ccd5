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
use super::rewrite::{Hidden, Mask, Rewrite};

/// Hides each copy that could be recognised and reads a register. What is computed from something
/// hidden is hidden.
pub(crate) fn hide<F: Function>(rewrite: &mut Rewrite<'_, F>, facts: &Facts) {
    let mut times = BTreeMap::new();
    for step in rewrite.steps() {
        *times.entry(step.of).or_insert(0u32) += 1;
    }
    let base = Facts::new(rewrite.base());
    let mut hider = Hider {
        facts,
        hidden: BTreeSet::new(),
        used: BTreeSet::new(),
        constants: 0,
    };
    for index in 0..rewrite.inst_count() as u32 {
        let inst = Inst(index);
        let step = &rewrite.steps()[index as usize];
        let is_repeated = times.get(&step.of).is_some_and(|&times| times > 1);
        if step.is_copy && (is_repeated || facts.weight(inst) > base.weight(step.of)) {
            let hidden = hider.hide(rewrite, inst);
            rewrite.set_hidden(inst, hidden);
        }
    }
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
    fn hide<F: Function>(&mut self, rewrite: &Rewrite<'_, F>, inst: Inst) -> Option<Hidden> {
        let sources = reads(rewrite, inst);
        let fresh = written(rewrite, inst)?;
        if sources.iter().any(|source| self.hidden.contains(source)) {
            self.hidden.insert(fresh);
            return None;
        }
        // What reads no register is a constant, a parameter or a special register.
        let registers = sources.into_iter();
        let fits = |value: &Value| (1..=2).contains(&rewrite.units(*value));
        let source = registers
            .filter(fits)
            .min_by_key(|&value| rewrite.units(value))?;
        self.hidden.insert(fresh);
        let mask = match self.changing(rewrite, inst, source) {
            Some(value) => Mask::Value(value),
            None => {
                self.constants += 1;
                Mask::Constant(self.constants)
            }
        };
        Some(Hidden { source, mask })
    }

    /// In a loop, a live value of the same class that changes from round to round.
    fn changing<F: Function>(
        &mut self,
        rewrite: &Rewrite<'_, F>,
        inst: Inst,
        source: Value,
    ) -> Option<Value> {
        let block = self.facts.cfg.block_of(inst);
        let around = self.facts.loops.innermost(block)?;
        let values = (0..rewrite.value_count() as u32).map(Value);
        let class = rewrite.class(source);
        let mut values = values.filter(|&value| {
            value != source
                && rewrite.class(value) == class
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
