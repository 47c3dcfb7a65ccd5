//! Values that are computed again where they are wanted, from what is in registers there anyway.
//!
//! Paper: You & Tsai 2011, section 2.2, Algorithm 1, for code whose registers are allocated. Their conditions: (1) the
//! definition is no long instruction; (2) the value crosses code above the goal unaccessed, which
//! [`crate::demote`] looks after, like for values that go to a slot; (3) the sources of the definition are live where the
//! value is wanted; (4) the definition is one instruction without a guard.
//!
//! Departures:
//! - Behind finished code nobody undoes it, so nothing is hidden ([`crate::remat`] hides).
//! - 'Where it is wanted' is before each use that is reached from the crowded code, in any block; the paper goes back to
//!   where the sources are last live together, which keeps the value in its register from there on.
//! - That a source still holds what the definition read is tested on the control flow graph.
//! - A source that is not live is computed again as well, in a chain of cheap instructions down to what is live or reads
//!   nothing. None lives longer for it.
//! - An instruction that writes several values (the halves of an address) gives all of them.
//! - Whether a value is computed again or loaded from a slot is decided value by value, by the loop-weighted cost of
//!   either; the paper computes again what it can, and spills the rest.
//! - Where the place itself is crowded, only what one instruction gives that reads nothing is computed again: sources may
//!   have to leave there.
//!
//! A copy writes the values that the instruction itself writes. That is right wherever the instruction is their only
//! definition, so that it lies on every way to the copy, and its sources have not changed since.

use std::collections::BTreeSet;

use warpwright_flow::{EntityRef, Function, Inst, Repetition, Stale, Value};

use crate::demote::{Again, Known};
use crate::draft::{Code, Draft};
use crate::evict::Facts;
use crate::remat::place::LONGEST_CHAIN;

/// What the function's own instructions compute.
pub(crate) struct Recomputation<'a> {
    own: Draft,
    facts: Facts,
    known: Known<'a>,
    again: Again,
    /// For each value its only definition, if that can be executed once more.
    makers: Vec<Option<Inst>>,
    stale: Stale,
}

/// What gives a value at one place.
#[derive(Clone, Debug, Default)]
pub(crate) struct Chain {
    /// The function's own instructions, in their order.
    pub(crate) steps: Vec<Inst>,
    /// What they read that they do not write.
    pub(crate) sources: BTreeSet<Value>,
}

impl<'a> Recomputation<'a> {
    /// Of the function that `own` is a draft of, as it stands.
    pub(crate) fn new(own: Draft, facts: Facts, known: Known<'a>, again: Again) -> Self {
        let makers = own.values().map(|value| match again {
            Again::Nothing => None,
            Again::Alone | Again::All => maker(&own, &facts, known, (value, again)),
        });
        Recomputation {
            makers: makers.collect(),
            own,
            facts,
            known,
            again,
            stale: Stale::default(),
        }
    }

    /// What gives `value` right before the instruction `place` of the function, where `is_there` says which values
    /// are in their registers.
    pub(crate) fn chain(
        &self,
        value: Value,
        place: Inst,
        is_there: impl Fn(Value) -> bool,
    ) -> Option<Chain> {
        let mut chain = Chain::default();
        self.append(value, place, &is_there, &mut chain)?;
        Some(chain)
    }

    fn append(
        &self,
        value: Value,
        place: Inst,
        is_there: &impl Fn(Value) -> bool,
        chain: &mut Chain,
    ) -> Option<()> {
        let maker = (*self.makers.get(value.index())?)?;
        if chain.steps.contains(&maker) {
            return Some(());
        }
        if chain.steps.len() >= LONGEST_CHAIN || !(self.known.computable)(maker, place) {
            return None;
        }
        for &source in self.own.uses(maker) {
            if self.own.fixed(source).is_some() || !self.is_same(source, maker, place) {
                return None;
            }
            if is_there(source) {
                chain.sources.insert(source);
                continue;
            }
            self.append(source, place, is_there, chain)?;
        }
        // A chain that was as long before its sources were in it is too long now.
        chain.steps.push(maker);
        (chain.steps.len() <= LONGEST_CHAIN).then_some(())
    }

    /// The copy of an instruction, to be put before another one.
    pub(crate) fn code(&self, step: Inst, before: Inst) -> Code {
        self.own.once_more(step, before)
    }

    /// What an instruction costs in simple ones. What reads nothing counts as one, as everything did that was computed
    /// again at first.
    pub(crate) fn price(&self, step: Inst) -> f64 {
        match (self.again, self.own.repetition(step)) {
            (Again::All, Repetition::Cheap(price)) => f64::from(price),
            _ => 1.0,
        }
    }

    /// How many of `values` an instruction writes.
    pub(crate) fn written(&self, step: Inst, values: &[Value]) -> usize {
        let defs = self.own.defs(step).iter();
        defs.filter(|value| values.contains(value)).count()
    }

    /// Does `source` hold right before `place` what `reader` read?
    fn is_same(&self, source: Value, reader: Inst, place: Inst) -> bool {
        let defs = || self.facts.def_use.defs(source).iter().copied();
        self.stale
            .is_same(&self.facts.cfg, (source, reader), place, defs)
    }
}

/// The only definition of a value, if it can be executed once more and is that of all that it writes.
fn maker(
    own: &Draft,
    facts: &Facts,
    known: Known<'_>,
    (value, again): (Value, Again),
) -> Option<Inst> {
    let only = |value: Value| match facts.def_use.defs(value) {
        &[def] if !facts.is_from_entry(value) && own.fixed(value).is_none() => Some(def),
        _ => None,
    };
    let maker = only(value)?;
    let is_alone = own.uses(maker).is_empty() && own.defs(maker) == [value];
    let is_cheap = match again {
        Again::All => matches!(own.repetition(maker), Repetition::Cheap(_)),
        _ => is_alone && (known.constant)(maker),
    };
    let mut written = own.defs(maker).iter();
    let fits = is_cheap
        && !own.is_predicated(maker)
        && !own.is_tied(maker)
        && written.all(|&value| only(value) == Some(maker));
    fits.then_some(maker)
}
