//! Where a return address goes.
//!
//! `MOV R, n` loads the place behind a call as a number, and the number changes where code moves. It may
//! stand for the place, in both versions, if nothing but returns ever reads it: copies and spill slots
//! may hand it on.

use std::collections::{BTreeMap, BTreeSet};

use warpwright_flow::{Function as _, Inst, Transfer, Value};
use warpwright_sass::function::value_of;
use warpwright_sass::roles::File;

use super::bits;
use super::function::SassFunction;
use crate::semantics::SlotSpace;

/// Calls within calls that are followed; ptxas nests two.
const MAX_CALLS: usize = 8;

/// What may hold the address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    Register(Value),
    /// Four bytes of the frame or of the spill area, by their offset.
    Cell(SlotSpace, u32),
}

/// A guard: the predicate, and whether it must be false.
type Guard = (Value, bool);

/// The places that hold the address. With a guard: it is overwritten where the guard holds, and the
/// guard has not changed since.
type Held = BTreeMap<Place, Option<Guard>>;

/// The accesses that spill code consists of.
struct Spill {
    is_store: bool,
    /// Register and cell, pairwise.
    lanes: Vec<(Place, Place)>,
}

/// A point of the search: an instruction, who holds the address there, and where the calls that are
/// open return to.
type Point = (usize, Held, Vec<usize>);

/// Is the return address `site` that `inst` writes to `value` read by nothing but returns? A return
/// that it decides goes to `site`, every other one behind the call that it belongs to, or anywhere if
/// that is not known.
pub(super) fn only_returned(
    function: &SassFunction,
    inst: Inst,
    value: Value,
    site: usize,
) -> bool {
    let held = Held::from([(Place::Register(value), None)]);
    let mut open: Vec<Point> = vec![(inst.0 as usize + 1, held, Vec::new())];
    let mut seen: BTreeSet<Point> = BTreeSet::new();
    while let Some(point) = open.pop() {
        let is_inside = point.0 < function.code.inst_count();
        if !is_inside || !seen.insert(point.clone()) {
            continue;
        }
        match (Search { function, site }).step(point) {
            Some(next) => open.extend(next),
            None => return false,
        }
    }
    true
}

struct Search<'s, 'c> {
    function: &'s SassFunction<'c>,
    site: usize,
}

impl Search<'_, '_> {
    /// The points that follow; `None` if the instruction makes something else of the address.
    fn step(&self, (at, held, mut calls): Point) -> Option<Vec<Point>> {
        let (code, here) = (self.function.code, Inst(at as u32));
        let guard = self.guard(here);
        let mut reads = false;
        code.for_each_use(here, |value| {
            let place = held.get(&Place::Register(value));
            reads |= place.is_some_and(|gone| gone.is_none() || *gone != guard);
        });
        let name = self.function.name(here);
        if name == "RET" {
            let back = if reads { Some(self.site) } else { calls.pop() };
            if let Some(back) = back {
                calls.retain(|&call| call != self.site);
                return Some(vec![(back, held, calls)]);
            }
        }
        if self.is_torn(here, &held) {
            return None;
        }
        let handed_on = match self.spill(here) {
            Some(spill) => self.through_memory(&spill, &held),
            None => match self.copied_to(here).filter(|_| reads) {
                Some(to) => vec![Place::Register(to)],
                None if reads => return None,
                None => Vec::new(),
            },
        };
        let held = self.after(here, held, &handed_on, guard);
        if held.is_empty() {
            return Some(Vec::new());
        }
        if name == "CALL" && calls.len() < MAX_CALLS {
            calls.push(at + 1);
        }
        let mut next = Vec::new();
        code.for_each_target(here, |to| {
            next.push((to.0 as usize, held.clone(), calls.clone()));
        });
        let goes_on = matches!(code.transfer(here), Transfer::Next | Transfer::Branch);
        if code.is_predicated(here) || goes_on {
            next.push((at + 1, held, calls));
        }
        Some(next)
    }

    /// Who holds the address afterwards.
    fn after(&self, here: Inst, mut held: Held, handed_on: &[Place], guard: Option<Guard>) -> Held {
        let code = self.function.code;
        let mut written = Vec::new();
        code.for_each_def(here, |value| written.push(Place::Register(value)));
        if let Some(spill) = self.spill(here).filter(|spill| spill.is_store) {
            written.extend(spill.lanes.iter().map(|(_, cell)| *cell));
        }
        for place in &written {
            match (held.get_mut(place), guard) {
                (Some(gone), Some(_)) => *gone = guard,
                (Some(_), None) if !code.is_predicated(here) => drop(held.remove(place)),
                _ => {}
            }
            // A guard that changes says nothing any more.
            for gone in held.values_mut() {
                if gone.is_some_and(|(predicate, _)| *place == Place::Register(predicate)) {
                    *gone = None;
                }
            }
        }
        held.extend(handed_on.iter().map(|&place| (place, None)));
        held
    }

    /// The places that get the address by spill code.
    fn through_memory(&self, spill: &Spill, held: &Held) -> Vec<Place> {
        let lanes = spill.lanes.iter().filter_map(|&(register, cell)| {
            let (from, to) = match spill.is_store {
                true => (register, cell),
                false => (cell, register),
            };
            held.contains_key(&from).then_some(to)
        });
        lanes.collect()
    }

    /// Does it access a part of a word that holds the address, or take the address for an index?
    fn is_torn(&self, inst: Inst, held: &Held) -> bool {
        let Some((space, offset)) = self.own_memory(inst) else {
            return false;
        };
        let word = self.function.instruction(inst);
        let base = value_of(File::Gpr, bits::A.get(word) as u16);
        let is_index = base.is_some_and(|base| held.contains_key(&Place::Register(base)));
        let part = Place::Cell(space, offset / 4 * 4);
        is_index || self.spill(inst).is_none() && held.contains_key(&part)
    }

    fn guard(&self, inst: Inst) -> Option<Guard> {
        let word = self.function.instruction(inst);
        let predicate = bits::GUARD.get(word) & 7;
        let value = value_of(File::Pred, predicate as u16)?;
        Some((value, bits::GUARD_NEGATED.get(word) == 1))
    }

    /// The first byte that an access to the frame or the spill area touches.
    fn own_memory(&self, inst: Inst) -> Option<(SlotSpace, u32)> {
        let shared = &self.function.memory.shared;
        let offset = u32::try_from(bits::offset(self.function.instruction(inst))).ok()?;
        match self.function.name(inst) {
            "LDL" | "STL" => Some((SlotSpace::Local, offset)),
            "LDS" | "STS" if shared.contains(&offset) => Some((SlotSpace::Shared, offset)),
            _ => None,
        }
    }

    /// The registers and cells of an access to the frame or the spill area, if they are whole words.
    fn spill(&self, inst: Inst) -> Option<Spill> {
        let (space, offset) = self.own_memory(inst)?;
        let word = self.function.instruction(inst);
        let is_store = matches!(self.function.name(inst), "STL" | "STS");
        let bytes = word.access_bytes();
        if bytes < 4 || !offset.is_multiple_of(4) {
            return None;
        }
        let first = if is_store { bits::B } else { bits::RESULT }.get(word);
        let lane = |i: u32| {
            let register = value_of(File::Gpr, (first + i) as u16)?;
            let cell = Place::Cell(space, offset + 4 * i);
            Some((Place::Register(register), cell))
        };
        let lanes = (0..bytes / 4).filter_map(lane).collect();
        Some(Spill { is_store, lanes })
    }

    /// The register that a plain `MOV R, R` or `IMAD.MOV.U32 R, RZ, RZ, R` writes.
    fn copied_to(&self, inst: Inst) -> Option<Value> {
        const MOV: u32 = 0x202;
        const IMAD: u32 = 0x224;
        let word = self.function.instruction(inst);
        let is_copy = match bits::OPCODE.get(word) {
            MOV => true,
            IMAD => bits::A.get(word) == bits::RZ && bits::B.get(word) == bits::RZ,
            _ => false,
        };
        let to = bits::RESULT.get(word) as u16;
        is_copy.then(|| value_of(File::Gpr, to)).flatten()
    }
}
