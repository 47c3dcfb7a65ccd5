//! Branches on data: both sides run, one after the other, and join where they meet.
//!
//! Registers that a side writes are put back before the other one runs; where both meet, each that somebody reads
//! becomes a selection. What a side writes to memory it writes as a selection at once. A side that comes to a barrier
//! or to an operation of the warp is refused: the other lanes cannot be told whether it comes.

use rustc_hash::FxHashMap;

use crate::lanes::{Lanes, Mask, lanes_of};
use crate::symbolic::machine::{Machine, Refusal, Stop};
use crate::symbolic::term::{Id, Kind, Terms, Val};
use crate::symbolic::warp::{Strand, Wait, Warp};

/// Branches on data within one another: more are a loop whose trip count is made of data.
const DEPTH: usize = 24;

/// What is assumed of some lanes.
pub(crate) struct Assumed {
    pub mask: Mask,
    /// A predicate each, never a negation.
    pub predicates: [Id; 32],
    /// Lanes whose predicate holds.
    pub holds: Mask,
}

/// Registers as they were before a side wrote them.
#[derive(Default)]
pub(crate) struct Before {
    saved: FxHashMap<u32, (Lanes, Mask)>,
}

impl Before {
    pub fn save(&mut self, reg: u32, values: &Lanes, sym: Mask) {
        self.saved.entry(reg).or_insert((*values, sym));
    }
}

impl Warp {
    /// The predicate of each lane, and the lanes in which it is turned.
    fn predicates(&self, m: &Machine<'_>, reg: u32, mask: Mask) -> ([Id; 32], Mask) {
        let mut all = [0; 32];
        let mut turned = 0;
        for lane in lanes_of(mask) {
            let id = self.regs[reg as usize][lane] as Id;
            let node = m.terms.node(id);
            all[lane] = match node.kind() {
                Kind::Not => {
                    turned |= 1 << lane;
                    node.a
                }
                _ => id,
            };
        }
        (all, turned)
    }

    /// Is a predicate known in a lane?
    pub fn decided(&self, m: &Machine<'_>, lane: usize, id: Id) -> Option<bool> {
        if self.assumed.is_empty() {
            return None;
        }
        let node = m.terms.node(id);
        if node.kind() == Kind::And {
            return match (self.decided(m, lane, node.a), self.decided(m, lane, node.b)) {
                (Some(false), _) | (_, Some(false)) => Some(false),
                (Some(true), Some(true)) => Some(true),
                _ => None,
            };
        }
        let (id, turned) = match node.kind() {
            Kind::Not => (node.a, true),
            _ => (id, false),
        };
        if turned && m.terms.node(id).kind() == Kind::And {
            return self.decided(m, lane, id).map(|holds| !holds);
        }
        let known = self
            .assumed
            .iter()
            .rev()
            .find(|assumed| assumed.mask >> lane & 1 != 0 && assumed.predicates[lane] == id);
        known.map(|assumed| (assumed.holds >> lane & 1 != 0) != turned)
    }

    /// All that is assumed of a lane as one predicate; 0 if nothing is.
    #[inline(always)]
    pub fn condition(&self, terms: &mut Terms, lane: usize) -> Id {
        match self.assumed.is_empty() {
            true => 0,
            false => self.all_assumed(terms, lane),
        }
    }

    fn all_assumed(&self, terms: &mut Terms, lane: usize) -> Id {
        let own = self.assumed.iter().filter(|a| a.mask >> lane & 1 != 0);
        let mut all = Val::Bits(1);
        for assumed in own {
            let predicate = Val::Term(assumed.predicates[lane]);
            let predicate = match assumed.holds >> lane & 1 {
                0 => terms.not(predicate),
                _ => predicate,
            };
            all = terms.and(all, predicate);
        }
        match all {
            Val::Term(id) => id,
            Val::Bits(_) => 0,
        }
    }

    /// A value as it is where the assumptions hold.
    #[inline(always)]
    pub fn simplified(&self, m: &Machine<'_>, lane: usize, value: Val) -> Val {
        match self.assumed.is_empty() {
            true => value,
            false => self.simplified_by(m, lane, value),
        }
    }

    fn simplified_by(&self, m: &Machine<'_>, lane: usize, value: Val) -> Val {
        let mut value = value;
        while let Val::Term(id) = value {
            let node = m.terms.node(id);
            if node.kind() != Kind::Select {
                break;
            }
            let Some(holds) = self.decided(m, lane, node.a) else {
                break;
            };
            let side = if holds { node.b } else { node.c };
            value = m.terms.bits_of(side).map_or(Val::Term(side), Val::Bits);
        }
        value
    }

    /// What a place holds after a store under the assumptions.
    pub fn stored(&self, m: &mut Machine<'_>, lane: usize, new: Val, old: Val) -> Val {
        let mut value = new;
        for assumed in &self.assumed {
            if assumed.mask >> lane & 1 == 0 {
                continue;
            }
            let p = Val::Term(assumed.predicates[lane]);
            value = match assumed.holds >> lane & 1 {
                0 => m.terms.select(p, old, value),
                _ => m.terms.select(p, value, old),
            };
        }
        value
    }

    /// Runs both sides of a branch for lanes whose predicate is a term, up to where they meet.
    /// Gives the step at which the lanes stand then; the number of steps where they have exited.
    pub fn fork(
        &mut self,
        m: &mut Machine<'_>,
        mask: Mask,
        (reg, negated): (u32, bool),
        (pc, target): (u32, u32),
    ) -> Result<u32, Stop> {
        m.report.forks += 1;
        self.parted = true;
        let (predicates, turned) = self.predicates(m, reg, mask);
        if self.assumed.len() >= DEPTH {
            let first = predicates[mask.trailing_zeros() as usize];
            return Err(m.refuse(Refusal::Loop(first), pc));
        }
        let meet = m.flow().meets(pc);
        // Lanes whose predicate holds on the side that jumps.
        let jumps = if negated { turned } else { mask & !turned };
        let strands = std::mem::take(&mut self.strands);
        let exited = self.exited;
        let mut sides = Vec::new();
        for (from, holds) in [(target, jumps), (pc + 1, mask & !jumps)] {
            self.assumed.push(Assumed {
                mask,
                predicates,
                holds,
            });
            self.before.push(Before::default());
            self.strands = vec![Strand {
                pc: from,
                mask,
                wait: Wait::Ready,
            }];
            self.region(m, meet)?;
            self.assumed.pop();
            let before = self.before.pop().unwrap_or_default();
            sides.push(self.take_back(before, mask));
            self.exited = exited;
        }
        self.strands = strands;
        let [first, second] = &sides[..] else {
            return Ok(meet);
        };
        let end = m.program.functions[m.program.kernel].code.len() as u32;
        if meet < end {
            self.join(m, (meet, mask), (predicates, jumps), [first, second]);
        }
        Ok(meet)
    }

    /// Runs the strands that there are until all stand at a step or have exited.
    fn region(&mut self, m: &mut Machine<'_>, meet: u32) -> Result<(), Stop> {
        while let Some(current) = self.pick(Some(meet)) {
            let limit = self.meeting_point(current).min(meet);
            self.run_strand(m, current, limit)?;
        }
        Ok(())
    }

    /// Puts registers back and gives what they were.
    fn take_back(&mut self, before: Before, mask: Mask) -> FxHashMap<u32, (Lanes, Mask)> {
        let mut written = FxHashMap::default();
        for (reg, (values, sym)) in before.saved {
            let at = reg as usize;
            written.insert(reg, (self.regs[at], self.sym[at]));
            for lane in lanes_of(mask) {
                self.regs[at][lane] = values[lane];
            }
            self.sym[at] = self.sym[at] & !mask | sym & mask;
        }
        written
    }

    fn join(
        &mut self,
        m: &mut Machine<'_>,
        (meet, mask): (u32, Mask),
        (predicates, jumps): ([Id; 32], Mask),
        [first, second]: [&FxHashMap<u32, (Lanes, Mask)>; 2],
    ) {
        let mut regs: Vec<u32> = first.keys().chain(second.keys()).copied().collect();
        regs.sort_unstable();
        regs.dedup();
        for reg in regs {
            if !m.flow().is_live(meet, reg) {
                continue;
            }
            let at = reg as usize;
            let old = (self.regs[at], self.sym[at]);
            let (a, b) = (
                first.get(&reg).unwrap_or(&old),
                second.get(&reg).unwrap_or(&old),
            );
            let (mut values, mut sym) = old;
            for lane in lanes_of(mask) {
                let (x, y) = (lane_of(a, lane), lane_of(b, lane));
                let p = Val::Term(predicates[lane]);
                let value = match jumps >> lane & 1 {
                    0 => m.terms.select(p, y, x),
                    _ => m.terms.select(p, x, y),
                };
                put(&mut values, &mut sym, lane, value);
            }
            self.set(reg, mask, &values, sym);
        }
    }

    /// Executes something for lanes whose guard is a term: results become selections.
    pub fn guarded(
        &mut self,
        m: &mut Machine<'_>,
        mask: Mask,
        (reg, negated): (u32, bool),
        execute: impl FnOnce(&mut Warp, &mut Machine<'_>) -> Result<(), Stop>,
    ) -> Result<(), Stop> {
        let (predicates, turned) = self.predicates(m, reg, mask);
        let holds = if negated { turned } else { mask & !turned };
        self.assumed.push(Assumed {
            mask,
            predicates,
            holds,
        });
        self.before.push(Before::default());
        execute(self, m)?;
        self.assumed.pop();
        let before = self.before.pop().unwrap_or_default();
        let new = self.take_back(before, mask);
        let mut regs: Vec<(u32, (Lanes, Mask))> = new.into_iter().collect();
        regs.sort_unstable_by_key(|(reg, _)| *reg);
        for (reg, new) in regs {
            let at = reg as usize;
            let old = (self.regs[at], self.sym[at]);
            let (mut values, mut sym) = old;
            for lane in lanes_of(mask) {
                let (x, y) = (lane_of(&new, lane), lane_of(&old, lane));
                let p = Val::Term(predicates[lane]);
                let value = match holds >> lane & 1 {
                    0 => m.terms.select(p, y, x),
                    _ => m.terms.select(p, x, y),
                };
                put(&mut values, &mut sym, lane, value);
            }
            self.set(reg, mask, &values, sym);
        }
        Ok(())
    }
}

/// A lane of a register.
pub(crate) fn lane_of((values, sym): &(Lanes, Mask), lane: usize) -> Val {
    match sym >> lane & 1 {
        0 => Val::Bits(values[lane]),
        _ => Val::Term(values[lane] as Id),
    }
}

/// Sets a lane of a register.
#[inline(always)]
pub(crate) fn put(values: &mut Lanes, sym: &mut Mask, lane: usize, value: Val) {
    match value {
        Val::Bits(bits) => {
            values[lane] = bits;
            *sym &= !(1 << lane);
        }
        Val::Term(id) => {
            values[lane] = u64::from(id);
            *sym |= 1 << lane;
        }
    }
}
