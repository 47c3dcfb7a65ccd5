//! Loads and stores of spill slots, on terms.

use warpwright_flow::Inst;

use crate::execute::Results;
use crate::machine::{Machine, REWRITTEN, SIDES};
use crate::semantics::{Access, Extend, Semantics, SlotSpace};
use crate::slots::Misplaced;
use crate::state::CONVERGENCE;
use crate::term::{Args, Head, Term, Terms};

impl<S: Semantics> Machine<'_, S> {
    fn place(&mut self, side: usize, inst: Inst, access: &Access, address: Term) -> Vec<u32> {
        let Access {
            bytes,
            lanes,
            space,
            ..
        } = *access;
        let placed = match space {
            SlotSpace::Other => {
                let text = "the spill area is accessed through a generic address";
                Err(Misplaced::Unclear(text.to_owned()))
            }
            _ => self
                .slots
                .place(&self.terms, address, SIDES[side], space, bytes, lanes),
        };
        self.fill_slots();
        placed.unwrap_or_else(|misplaced| {
            self.log.misplaced.push((inst, misplaced));
            Vec::new()
        })
    }

    pub(crate) fn load_slots(
        &mut self,
        side: usize,
        inst: Inst,
        access: &Access,
        address: Term,
        guard: Term,
    ) -> Results {
        let slots = self.place(side, inst, access, address);
        let bits = 8 * access.bytes;
        let is_last = self.functions[side].func.is_last_use(inst);
        let found = slots.clone();
        let loaded = slots.into_iter().map(|slot| {
            let term = self.slot_content(slot);
            match access.extend {
                Extend::No => term,
                Extend::Zero(to) => self.terms.zero_extend(bits, to, term),
                Extend::Sign(to) => self.terms.sign_extend(bits, to, term),
            }
        });
        let loaded = Results::Terms(loaded.collect());
        if is_last {
            for slot in found {
                self.lose_slot(side, slot, guard);
            }
        }
        loaded
    }

    /// After a last use: what stands there may be lost. The original never reads what it has lost, so what it
    /// would find is ours to choose: the value, where the rewritten version's slot of the same number keeps
    /// it; else the same unknown that the rewritten version would find.
    fn lose_slot(&mut self, side: usize, slot: u32, guard: Term) {
        if !self.slots.loses(slot, side == REWRITTEN) {
            return;
        }
        let all = self.slots.slots[slot as usize].overlaps.iter();
        let all: Vec<u32> = all.map(|&(other, _)| other).chain([slot]).collect();
        for slot in all {
            let old = self.slot_values[slot as usize];
            let lost = self.terms.make(Head::Lost, [old]);
            self.slot_values[slot as usize] = self.terms.select(guard, lost, old);
        }
    }

    /// What a slot holds: what was stored to it, or parts of what was stored over it.
    fn slot_content(&mut self, slot: u32) -> Term {
        let own = self.slot_values[slot as usize];
        let is_whole = |terms: &Terms, term: Term| {
            !matches!(
                terms.head(term),
                Head::SlotUnset(_) | Head::Clobbered(..) | Head::Lost
            )
        };
        if is_whole(&self.terms, own) {
            return own;
        }
        let bytes = self.slots.slots[slot as usize].bytes;
        let mut inside: Vec<(i64, u32, Term)> = Vec::new();
        let mut others: Args = Args::from_slice(&[own]);
        for &(other, distance) in &self.slots.slots[slot as usize].overlaps {
            let content = self.slot_values[other as usize];
            let size = self.slots.slots[other as usize].bytes;
            others.push(content);
            let Some(distance) = distance.filter(|_| is_whole(&self.terms, content)) else {
                continue;
            };
            if distance <= 0 && distance + i64::from(size) >= i64::from(bytes) {
                let lo = 8 * (-distance) as u32;
                return self.terms.extract(lo, 8 * bytes, 8 * size, content);
            }
            inside.push((distance, size, content));
        }
        inside.sort_unstable();
        let size = inside.first().map_or(0, |part| part.1);
        let tiles = inside
            .iter()
            .enumerate()
            .all(|(index, &(distance, part, _))| {
                part == size && distance == index as i64 * i64::from(size)
            });
        if size > 0 && tiles && size as usize * inside.len() == bytes as usize {
            let parts: Vec<Term> = inside.iter().map(|part| part.2).collect();
            return self.terms.concat(8 * size, &parts);
        }
        match others.len() {
            1 => own,
            _ => {
                let slot = self.slots.number(slot);
                self.terms.make(Head::Mixed(slot), others)
            }
        }
    }

    pub(crate) fn store_slots(
        &mut self,
        side: usize,
        inst: Inst,
        access: &Access,
        address: Term,
        args: &Args,
        guard: Term,
    ) {
        let slots = self.place(side, inst, access, address);
        for (slot, &value) in slots.into_iter().zip(args) {
            let old = self.slot_values[slot as usize];
            let new = self.terms.select(guard, value, old);
            self.slot_values[slot as usize] = new;
            for (other, _) in self.slots.slots[slot as usize].overlaps.clone() {
                let old = self.slot_values[other as usize];
                let numbers = [other, slot].map(|slot| self.slots.number(slot));
                let head = Head::Clobbered(numbers[0], numbers[1]);
                let clobbered = self.terms.make(head, [old, value]);
                let clobbered = self.terms.select(guard, clobbered, old);
                self.slot_values[other as usize] = clobbered;
            }
        }
    }

    /// After a call that may have used the same spill area.
    pub(crate) fn lose_slots(&mut self) {
        let event = self.memories[REWRITTEN][CONVERGENCE];
        for slot in 0..self.slot_values.len() as u32 {
            if !self.slots.survives_call(slot) {
                let old = self.slot_values[slot as usize];
                self.slot_values[slot as usize] =
                    self.terms.make(Head::Clobbered(slot, slot), [old, event]);
            }
        }
    }
}
