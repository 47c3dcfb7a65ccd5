//! Where a return address goes: into returns, and on the way through registers and through the
//! version's own memory.
//!
//! A helper function saves registers that its caller may have left a return address in, and ptxas
//! spills return addresses like anything else. So the version's own memory is followed, too: a load of
//! exactly what was stored hands the address on, a load that may overlap it in another way is a use.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use warpwright_flow::{Cfg, Function as _, Inst, Transfer, Value};
use warpwright_sass::function::value_of;
use warpwright_sass::roles::File;

use super::bits;
use super::function::SassFunction;
use super::step;

/// Calls within calls that are followed; ptxas nests two.
const MAX_CALLS: usize = 8;

/// Four bytes of a version's own memory: `base · scale + offset`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    /// The register of the address; `None` in the frame, which has only one.
    base: Option<Value>,
    scale: i64,
    offset: i64,
}

/// Bytes of a register.
const WORD: i64 = 4;

/// The predicate that an instruction is executed under, and whether it is negated.
type Guard = (Value, bool);

/// What may hold the address.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Held {
    /// Each with the guards under which it was overwritten: where one is true it holds something else.
    registers: BTreeMap<Value, BTreeSet<Guard>>,
    places: BTreeSet<Place>,
}

impl Held {
    /// May `register` hold it for an instruction under `guard`?
    fn has(&self, register: Value, guard: Option<Guard>) -> bool {
        let held = self.registers.get(&register);
        held.is_some_and(|overwritten| guard.is_none_or(|guard| !overwritten.contains(&guard)))
    }

    /// What holds it where the guard is true, as it is behind a jump under this guard.
    fn where_true(&self, guard: Option<Guard>) -> Held {
        let mut held = self.clone();
        if let Some(guard) = guard {
            held.registers.retain(|_, under| !under.contains(&guard));
        }
        held
    }
}

/// A load from the version's own memory, or a store to it.
struct OwnAccess {
    is_store: bool,
    first: Place,
    /// Bytes of each element.
    bytes: i64,
    /// The registers of the elements; `None` for RZ.
    registers: Vec<Option<Value>>,
}

impl OwnAccess {
    fn place(&self, lane: usize) -> Place {
        let offset = self.first.offset + lane as i64 * self.bytes;
        Place {
            offset,
            ..self.first
        }
    }
}

impl SassFunction<'_> {
    /// Is the return address that `inst` writes to `value` read by anything but returns? Copies may
    /// hand it on. A return that it decides goes to `site`, every other one behind the call that it
    /// belongs to, or anywhere if that is not known.
    pub(super) fn has_other_uses(&self, inst: Inst, value: Value, site: usize) -> bool {
        let mut seen = BTreeSet::new();
        let held = Held {
            registers: BTreeMap::from([(value, BTreeSet::new())]),
            ..Held::default()
        };
        let mut open = vec![(inst.0 as usize + 1, held, Vec::new())];
        while let Some((mut at, mut held, mut calls)) = open.pop() {
            while at < self.code.inst_count() && held != Held::default() {
                if self.meets[at] && !seen.insert((at, held.clone(), calls.clone())) {
                    break;
                }
                match self.fuel.get().checked_sub(1) {
                    Some(rest) => self.fuel.set(rest),
                    None => return true,
                }
                let here = Inst(at as u32);
                let name = self.name(here);
                let reads = self.reads(here, &held);
                let back = match name {
                    "RET" if reads => Some(site),
                    "RET" => calls.pop(),
                    _ => None,
                };
                if let Some(back) = back {
                    calls.retain(|&call| call != site);
                    at = back;
                    continue;
                }
                if !self.hand_on(here, reads, &mut held) {
                    return true;
                }
                if name == "CALL" && calls.len() < MAX_CALLS {
                    calls.push(at + 1);
                }
                let transfer = self.code.transfer(here);
                let guard = self.guard(here);
                self.code.for_each_target(here, |to| {
                    open.push((to.0 as usize, held.where_true(guard), calls.clone()));
                });
                let goes_on = matches!(transfer, Transfer::Next | Transfer::Branch);
                if !goes_on && !self.code.is_predicated(here) {
                    break;
                }
                at += 1;
            }
        }
        false
    }

    fn reads(&self, inst: Inst, held: &Held) -> bool {
        let (mut reads, guard) = (false, self.guard(inst));
        self.code
            .for_each_use(inst, |value| reads |= held.has(value, guard));
        reads
    }

    fn guard(&self, inst: Inst) -> Option<Guard> {
        let word = self.instruction(inst);
        let mut spans = self.code.roles(inst).spans().iter();
        let span = spans.find(|span| span.bit == step::GUARD_BIT)?;
        let predicate = value_of(span.file, span.first)?;
        Some((predicate, bits::GUARD_NEGATED.get(word) != 0))
    }

    /// What holds the address behind `inst`, if that does not use it for anything else.
    fn hand_on(&self, inst: Inst, reads: bool, held: &mut Held) -> bool {
        let access = self.own_access(inst);
        let mut written = BTreeSet::new();
        self.code.for_each_def(inst, |value| {
            written.insert(value);
        });
        // A place is only known as long as its register holds the same value.
        let is_moved = |place: &Place| place.base.is_some_and(|base| written.contains(&base));
        if held.places.iter().any(is_moved) {
            return false;
        }
        let mut arrived = BTreeSet::new();
        match &access {
            Some(store) if store.is_store => return self.store(inst, store, held),
            Some(load) => {
                for (lane, register) in load.registers.iter().enumerate() {
                    let place = load.place(lane);
                    if load.bytes == WORD && held.places.contains(&place) {
                        arrived.extend(*register);
                    } else if self.overlaps(place, load.bytes, &held.places) {
                        return false;
                    }
                }
                if reads {
                    return false;
                }
            }
            None if reads => match self.copied_to(inst) {
                Some(to) => arrived.extend([to]),
                None => return false,
            },
            None => {}
        }
        match (self.code.is_predicated(inst), self.guard(inst)) {
            (false, _) => held.registers.retain(|value, _| !written.contains(value)),
            (true, guard) => {
                let overwritten = held.registers.iter_mut();
                let overwritten = overwritten.filter(|(value, _)| written.contains(*value));
                overwritten.for_each(|(_, under)| under.extend(guard));
                // Under a predicate and under its contrary: always.
                held.registers.retain(|_, under| {
                    let mut each = under.iter();
                    !each.any(|&(predicate, negated)| under.contains(&(predicate, !negated)))
                });
            }
        }
        for under in held.registers.values_mut() {
            under.retain(|(predicate, _)| !written.contains(predicate));
        }
        let arrived = arrived.into_iter();
        let arrived = arrived.map(|register| (register, BTreeSet::new()));
        held.registers.extend(arrived);
        true
    }

    /// What a store to own memory leaves there. False if it cuts an address up, or has one for its own.
    fn store(&self, inst: Inst, store: &OwnAccess, held: &mut Held) -> bool {
        let guard = self.guard(inst);
        let mut others = held.clone();
        for data in store.registers.iter().flatten() {
            others.registers.remove(data);
        }
        let in_address = store.first.base.is_some_and(|base| held.has(base, guard));
        if in_address || self.reads(inst, &others) {
            return false;
        }
        for (lane, register) in store.registers.iter().enumerate() {
            let place = store.place(lane);
            let stores_it = register.is_some_and(|register| held.has(register, guard));
            let (is_whole, was_there) = (store.bytes == WORD, held.places.remove(&place));
            if self.overlaps(place, store.bytes, &held.places)
                || !is_whole && (was_there || stores_it)
            {
                return false;
            }
            if stores_it || was_there && self.code.is_predicated(inst) {
                held.places.insert(place);
            }
        }
        true
    }

    /// May an access of so many bytes at `place` touch one of `places`?
    fn overlaps(&self, place: Place, bytes: i64, places: &BTreeSet<Place>) -> bool {
        let ranges = self.index_ranges.get_or_init(|| self.find_index_ranges());
        let mut places = places.iter();
        places.any(|held| match (place.base, held.base) {
            (Some(a), Some(b)) if a != b => true,
            (Some(base), Some(_)) => match ranges.get(&base) {
                Some(indices) => meet(&place, bytes, held, indices),
                None => true,
            },
            (None, None) => place.offset < held.offset + WORD && held.offset < place.offset + bytes,
            // One is in the frame, the other in shared memory.
            _ => false,
        })
    }

    /// What the registers in the addresses of this version's own shared memory may hold. All accesses that
    /// are reached are proved to lie inside it, for every thread; if such a register is written before any
    /// branch and any access, it is the same for all of them, and those at either end bound it. (Values
    /// that differ by a multiple of 2^32 / scale are the same to all.) Others are left out.
    fn find_index_ranges(&self) -> BTreeMap<Value, Range<i64>> {
        let area = &self.memory.shared;
        let cfg = Cfg::new(self.code);
        let reached = cfg.reverse_postorder().iter();
        let mut ranges: BTreeMap<Value, Range<i64>> = BTreeMap::new();
        let mut first_access = self.code.inst_count();
        for inst in reached.flat_map(|&block| cfg.insts(block)) {
            let Some(access) = self.own_access(inst) else {
                continue;
            };
            let Some(base) = access.first.base else {
                continue;
            };
            first_access = first_access.min(inst.0 as usize);
            let Place { scale, offset, .. } = access.first;
            // Rounding towards zero widens neither end beyond one.
            let (low, high) = (i64::from(area.start), i64::from(area.end));
            let (low, high) = ((low - offset) / scale, (high - 1 - offset) / scale + 1);
            let range = ranges.entry(base).or_insert(low..high);
            *range = range.start.max(low)..range.end.min(high);
        }
        let straight = |at: usize| {
            let next = matches!(self.code.transfer(Inst(at as u32)), Transfer::Next);
            next || self.name(Inst(at as u32)) == "EXIT"
        };
        let line = (0..first_access).take_while(|&at| straight(at)).count();
        for at in line..self.code.inst_count() {
            self.code.for_each_def(Inst(at as u32), |value| {
                ranges.remove(&value);
            });
        }
        ranges
    }

    /// `LDL`, `STL`, or an access to shared memory that only this version has. (Forms that are not
    /// understood are refused when their step is made.)
    fn own_access(&self, inst: Inst) -> Option<OwnAccess> {
        let name = self.name(inst);
        let word = self.instruction(inst);
        let offset = i64::from(bits::offset(word));
        let is_own = match name {
            "LDL" | "STL" => true,
            "LDS" | "STS" => self.own_shared_offset(word).is_some(),
            _ => false,
        };
        if !is_own || bits::GUARD.get(word) == bits::NEVER {
            return None;
        }
        let is_shared = matches!(name, "LDS" | "STS");
        let is_store = matches!(name, "STL" | "STS");
        let general = |number: u32| value_of(File::Gpr, number as u16);
        let base = general(bits::A.get(word)).filter(|_| is_shared);
        let first = match is_store {
            true => bits::B.get(word),
            false => bits::RESULT.get(word),
        };
        let bytes = i64::from(word.access_bytes());
        let lanes = (bytes / WORD).max(1) as u32;
        let lane = |lane| general(first + lane).filter(|_| first != bits::RZ);
        Some(OwnAccess {
            is_store,
            first: Place {
                base,
                scale: if is_shared {
                    bits::scale(word).into()
                } else {
                    0
                },
                offset,
            },
            bytes: bytes.min(WORD),
            registers: (0..lanes).map(lane).collect(),
        })
    }

    /// The register that a plain `MOV R, R` or `IMAD.MOV.U32 R, RZ, RZ, R` writes.
    fn copied_to(&self, inst: Inst) -> Option<Value> {
        const MOV: u32 = 0x202;
        const IMAD: u32 = 0x224;
        let word = self.instruction(inst);
        let is_copy = match bits::OPCODE.get(word) {
            MOV => true,
            IMAD => bits::A.get(word) == bits::RZ && bits::B.get(word) == bits::RZ,
            _ => false,
        };
        let to = bits::RESULT.get(word) as u16;
        is_copy.then(|| value_of(File::Gpr, to)).flatten()
    }
}

/// Do two places share a byte for one of these values of their common register?
fn meet(a: &Place, bytes: i64, b: &Place, indices: &Range<i64>) -> bool {
    let shares = |t: i64| {
        let (a, b) = (a.offset + t * a.scale, b.offset + t * b.scale);
        a < b + WORD && b < a + bytes
    };
    match a.scale - b.scale {
        0 => shares(0),
        steeper => {
            // There a and b are as close as they come.
            let nearest = (b.offset - a.offset) / steeper;
            (nearest - 2 * WORD..=nearest + 2 * WORD).any(|t| indices.contains(&t) && shares(t))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(scale: i64, offset: i64) -> Place {
        let base = value_of(File::Gpr, 1);
        Place {
            base,
            scale,
            offset,
        }
    }

    #[test]
    fn places_of_other_widths_meet_where_a_thread_has_both() {
        // 64 threads: a slot of 8 bytes, then two of 4.
        let (wide, first, second) = (at(8, 1024), at(4, 1536), at(4, 1792));
        assert!(!meet(&first, 4, &second, &(0..64)));
        assert!(meet(&first, 4, &first, &(0..64)));
        assert!(meet(&wide, 8, &at(8, 1028), &(0..64)));
        assert!(!meet(&wide, 4, &at(8, 1028), &(0..64)));
        assert!(!meet(&wide, 8, &first, &(0..64)));
        // Thread 128 would have 1024 + 8 · 128 and 1536 + 4 · 128, which are the same.
        assert!(meet(&wide, 4, &first, &(0..200)));
        assert!(meet(&first, 4, &wide, &(0..200)));
    }
}
