//! Where a candidate is computed again, and from what (You & Tsai, Algorithm 1: condition 3 and the
//! insertion rule).
//!
//! The value is to be gone from the instructions that the candidate crosses. So every use that
//! control may reach from there gets a new value: computed right before it, or before an earlier use
//! that always comes first. A use that is only reached from the definition keeps the old one.
//!
//! A recomputation must read what the definition read. Its sources hold that wherever no definition of
//! theirs lies on a way from the definition, which is tested on the control flow graph; the paper
//! takes it for granted.

use warpwright_flow::{Cfg, DefUse, EntityRef, Function, Inst, Liveness, Reached, Stale, Value};

use super::candidate::Candidate;
use super::facts::{Facts, price, reads, written};
use crate::draft::{Draft, Place as Where};

/// How the sources of a recomputation may be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sources {
    /// They are live there: condition 3. If they are not live at the use, the recomputation moves up
    /// to where they last were, but not into the region.
    Live,
    /// They are live there, are recomputed as well, or stay live for longer.
    Any,
}

/// Recomputations in one chain: longer ones are not cheap any more.
pub(crate) const LONGEST_CHAIN: usize = 6;

/// The draft of `func` with the candidate recomputed behind the region; `None` where that is not possible.
pub(crate) fn recompute<F: Function>(
    func: &F,
    draft: &Draft,
    facts: &Facts,
    candidate: &Candidate,
    sources: Sources,
) -> Option<Draft> {
    let mut placer = Placer {
        func,
        facts,
        candidate,
        sources,
        draft: draft.clone(),
        copies: Vec::new(),
        stale: Stale::default(),
    };
    placer.place_all()?;
    let Placer {
        mut draft, copies, ..
    } = placer;
    let mut added = Vec::new();
    for (at, copy) in copies {
        let code = draft.repeat(copy.of, at, &copy.reads, copy.fresh)?;
        added.push((Where::Before(at), code));
    }
    draft.insert(added);
    sweep(&mut draft, candidate.value);
    Some(draft)
}

/// An instruction to be repeated in front of another one.
struct Copy {
    /// The instruction that it repeats.
    of: Inst,
    /// What it reads in place of what that one reads.
    reads: Vec<(Value, Value)>,
    /// What it writes, a fresh value.
    fresh: Value,
}

struct Placer<'a, F> {
    func: &'a F,
    facts: &'a Facts,
    candidate: &'a Candidate,
    sources: Sources,
    /// The instructions are still where the facts say; only reads are renamed.
    draft: Draft,
    copies: Vec<(Inst, Copy)>,
    /// Where a source may hold something else than a definition read.
    stale: Stale,
}

/// A place where the candidate is computed again.
struct Place {
    at: Inst,
    fresh: Value,
    /// What the region reaches without passing this place.
    avoiding: Reached,
}

impl<F: Function> Placer<'_, F> {
    fn place_all(&mut self) -> Option<()> {
        let value = self.candidate.value;
        let mut places: Vec<Place> = Vec::new();
        for inst in self.uses_behind() {
            if !self.can_rename(inst) {
                return None;
            }
            let serves = |place: &&Place| {
                self.facts.dominates(place.at, inst) && !place.avoiding.contains(inst)
            };
            let fresh = match places.iter().rev().find(serves) {
                Some(place) => place.fresh,
                None => {
                    let (at, fresh) = self.compute_for(inst)?;
                    let crossed = self.candidate.crossed.iter().copied();
                    let avoiding = self.facts.cfg.reach(crossed, at);
                    places.push(Place {
                        at,
                        fresh,
                        avoiding,
                    });
                    fresh
                }
            };
            self.draft.rename_read(inst, value, fresh);
        }
        (!places.is_empty()).then_some(())
    }

    /// The uses that control may reach from the crossed instructions without passing the definition:
    /// those that come first on every way first.
    fn uses_behind(&self) -> Vec<Inst> {
        let Candidate {
            web, def, crossed, ..
        } = self.candidate;
        let reached = self.facts.cfg.reach(crossed.iter().copied(), *def);
        let mut uses = self.facts.uses_of(*web);
        uses.retain(|&inst| reached.contains(inst));
        let order = |inst: &Inst| self.facts.cfg.rpo_number(self.facts.cfg.block_of(*inst));
        // Unreachable code has no pressure and keeps what it reads.
        uses.retain(|inst| order(inst).is_some());
        uses.sort_by_key(|inst| (order(inst), *inst));
        uses
    }

    /// Can a use read another register than before? Not where the instruction also writes it, only
    /// waits for it, or leaves it to the hardware for a while.
    fn can_rename(&self, inst: Inst) -> bool {
        let value = self.candidate.value;
        let (mut is_read, mut is_bound) = (false, false);
        let func = &self.draft;
        func.for_each_use(inst, |used| is_read |= used == value);
        func.for_each_def(inst, |defined| is_bound |= defined == value);
        func.for_each_held(inst, |_, held| is_bound |= held == value);
        is_read && !is_bound
    }

    /// Computes the candidate for a use: the place and the new value.
    fn compute_for(&mut self, inst: Inst) -> Option<(Inst, Value)> {
        let def = self.candidate.def;
        let at = self.last_overlap(inst);
        if at.is_none() && self.sources == Sources::Live {
            return None;
        }
        let at = at.unwrap_or(inst);
        let mut chain = Vec::new();
        let fresh = self.compute(def, at, 0, &mut chain)?;
        self.copies.extend(chain.into_iter().map(|copy| (at, copy)));
        Some((at, fresh))
    }

    /// The last place up to the use, in its block and behind the region, where all sources of the
    /// definition are live and hold what it read (condition 3).
    fn last_overlap(&mut self, inst: Inst) -> Option<Inst> {
        let first = self.facts.cfg.first_inst(self.facts.cfg.block_of(inst));
        let def = self.candidate.def;
        let sources = reads(&self.draft, def);
        let mut at = inst;
        loop {
            if self.all_live(&sources, at) {
                return Some(at);
            }
            let is_region = |above: Inst| self.candidate.crossed.binary_search(&above).is_ok();
            if self.sources == Sources::Any || at == first {
                return None;
            }
            at = Inst(at.0 - 1);
            if is_region(at) || at == def {
                return None;
            }
        }
    }

    fn all_live(&mut self, sources: &[Value], at: Inst) -> bool {
        let def = self.candidate.def;
        let live = |&value: &Value| self.facts.live_before(value, at);
        sources.iter().all(live) && sources.iter().all(|&value| self.is_same(value, def, at))
    }

    /// Appends to `chain` what computes the value of the instruction `def` right before `at`.
    fn compute(
        &mut self,
        def: Inst,
        at: Inst,
        depth: usize,
        chain: &mut Vec<Copy>,
    ) -> Option<Value> {
        if let Some(copy) = chain.iter().find(|copy| copy.of == def) {
            return Some(copy.fresh);
        }
        let (of, before) = (self.draft.own(def)?, self.draft.place(at)?);
        if !self.func.can_stand_before(of, before) {
            return None;
        }
        let mut renamed = Vec::new();
        for source in reads(&self.draft, def) {
            if let Some(fresh) = self.supply(source, def, at, depth, chain)? {
                renamed.push((source, fresh));
            }
        }
        let value = written(&self.draft, def)?;
        let fresh = self.draft.value_like(value);
        chain.push(Copy {
            of: def,
            reads: renamed,
            fresh,
        });
        Some(fresh)
    }

    /// How a recomputation of `def` at `at` gets a source: `Some(None)` from its own register,
    /// `Some(Some(fresh))` from a recomputation.
    fn supply(
        &mut self,
        source: Value,
        def: Inst,
        at: Inst,
        depth: usize,
        chain: &mut Vec<Copy>,
    ) -> Option<Option<Value>> {
        let is_same = self.is_same(source, def, at);
        let crossed = &self.candidate.crossed;
        let lives_on = crossed.iter().all(|&inst| self.facts.crosses(source, inst));
        if is_same && (self.facts.live_before(source, at) || lives_on) {
            return Some(None);
        }
        if self.sources == Sources::Live {
            return None;
        }
        if depth + 1 < LONGEST_CHAIN && chain.len() + 1 < LONGEST_CHAIN {
            let length = chain.len();
            let above = self.facts.explicit_def(source, def);
            let above = above.filter(|&above| price(&self.draft, above).is_some());
            if let Some(above) = above {
                if let Some(fresh) = self.compute(above, at, depth + 1, chain) {
                    return Some(Some(fresh));
                }
                chain.truncate(length);
            }
        }
        is_same.then_some(None)
    }

    /// Does `source` hold at `at` what the instruction `def` read, as long as control came from there?
    fn is_same(&self, source: Value, def: Inst, at: Inst) -> bool {
        let defs = || self.facts.def_use.defs(source).iter().copied();
        self.stale.is_same(&self.facts.cfg, (source, def), at, defs)
    }
}

/// Leaves out the definitions of `value` that nobody reads any more, and what only they needed.
fn sweep(draft: &mut Draft, value: Value) {
    let mut work = vec![value];
    while !work.is_empty() {
        let cfg = Cfg::new(draft);
        let liveness = Liveness::new(draft, &cfg);
        let def_use = DefUse::new(draft, &liveness);
        let mut dead = Vec::new();
        for value in work.drain(..) {
            let defs = def_use.defs(value).iter().copied();
            let unused = defs.filter(|&def| {
                let live = liveness.live_after(draft, &cfg, def);
                price(draft, def).is_some() && live.binary_search(&value).is_err()
            });
            dead.extend(unused);
        }
        dead.sort_unstable_by_key(|def| def.index());
        dead.dedup();
        for &def in &dead {
            work.extend(reads(draft, def));
        }
        draft.remove(|inst| dead.binary_search(&inst).is_ok());
        if dead.is_empty() {
            return;
        }
    }
}
