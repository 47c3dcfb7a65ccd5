//! Is a register assignment right? A check that knows no names of the allocated code, only
//! registers and slots: it runs over the *original* function and follows where each value lies.
//!
//! Method: forward data flow over places, as in the checker of regalloc2 (Fallin 2021). The state
//! maps each register and each word of a slot to the values that it surely holds; a definition takes
//! the value out of all other places; what meets at a join is intersected. A value that was never
//! written lies everywhere.

use std::collections::{BTreeMap, BTreeSet};

use warpwright_flow::{Cfg, EntityRef, Function, Inst, Value};
use warpwright_regs::allocate::Allocation;
use warpwright_regs::draft::{Draft, Origin, Role};
use warpwright_regs::frame::Cell;

/// One 32-bit word that can hold a part of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    Register(u32),
    Predicate(u32),
    Shared(Cell, u32),
    Local(Cell, u32),
}

/// A value of the original function, and which of its words.
type Part = (Value, u32);

#[derive(Clone, Debug, Default, PartialEq)]
struct State {
    holds: BTreeMap<Place, BTreeSet<Part>>,
    /// Values that may have been written.
    written: BTreeSet<Value>,
    /// Registers that an operation in flight still reads.
    busy: BTreeSet<(u8, Place)>,
}

impl State {
    fn has(&self, place: Place, part: Part) -> bool {
        !self.written.contains(&part.0)
            || self
                .holds
                .get(&place)
                .is_some_and(|set| set.contains(&part))
    }

    fn meet(&self, other: &State) -> State {
        let places: BTreeSet<Place> = self
            .holds
            .keys()
            .chain(other.holds.keys())
            .copied()
            .collect();
        let mut met = State {
            written: &self.written | &other.written,
            busy: &self.busy | &other.busy,
            ..State::default()
        };
        for place in places {
            let all = [self, other].map(|s| s.holds.get(&place).cloned().unwrap_or_default());
            let both = all[0].union(&all[1]).copied();
            let kept = both.filter(|&part| self.has(place, part) && other.has(place, part));
            met.holds.insert(place, kept.collect());
        }
        met
    }

    /// `value` is written anew and lies in `places` alone.
    fn define(&mut self, value: Value, places: &[Place], keeps: bool) {
        let was_there: Vec<bool> = (0u32..)
            .zip(places)
            .map(|(word, &place)| !keeps || self.has(place, (value, word)))
            .collect();
        for set in self.holds.values_mut() {
            set.retain(|part| part.0 != value);
        }
        for (word, (&place, is_whole)) in (0..).zip(places.iter().zip(was_there)) {
            let set = self.holds.entry(place).or_default();
            set.clear();
            if is_whole {
                set.insert((value, word));
            }
        }
        self.written.insert(value);
    }

    fn copy(&mut self, to: &[Place], from: &[Place]) {
        for (&to, from) in to.iter().zip(from) {
            let what = self.holds.get(from).cloned().unwrap_or_default();
            self.holds.insert(to, what);
        }
    }
}

/// What an allocation must keep to.
pub struct Checker<'a, F> {
    pub func: &'a F,
    pub done: &'a Allocation,
    /// 32-bit registers.
    pub limit: u32,
}

impl<F: Function> Checker<'_, F> {
    /// # Errors
    /// The first thing that is wrong, in words for the tester.
    pub fn check(&self) -> Result<(), String> {
        self.constraints()?;
        let attached = self.attached()?;
        let cfg = Cfg::new(self.func);
        let mut at: Vec<Option<State>> = vec![None; cfg.block_count()];
        let mut work: BTreeSet<usize> = BTreeSet::new();
        if let Some(entry) = cfg.blocks().next() {
            let mut state = State::default();
            for &inst in &attached.bases {
                self.added(&mut state, inst)?;
            }
            at[entry.index()] = Some(state);
            work.insert(entry.index());
        }
        while let Some(index) = work.pop_first() {
            let Some(block) = cfg.blocks().nth(index) else {
                continue;
            };
            let Some(mut state) = at[index].clone() else {
                continue;
            };
            for inst in cfg.first_inst(block).0..=cfg.last_inst(block).0 {
                self.step(&attached, &mut state, Inst(inst))?;
            }
            for succ in cfg.succs(block) {
                let met = match &at[succ.index()] {
                    Some(old) => old.meet(&state),
                    None => state.clone(),
                };
                if at[succ.index()].as_ref() != Some(&met) {
                    at[succ.index()] = Some(met);
                    work.insert(succ.index());
                }
            }
        }
        Ok(())
    }

    /// Limits, alignment, tuples and fixed registers, in the code as it is now.
    fn constraints(&self) -> Result<(), String> {
        let draft = &self.done.draft;
        for value in draft.values() {
            let units = draft.units(value);
            match (self.done.register[value.index()], units) {
                (Some(first), 1..) if first + units > self.limit || first % units > 0 => {
                    return Err(format!(
                        "{value:?} of {units} words lies in register {first}"
                    ));
                }
                _ => {}
            }
            if let (Role::Register(of), Some(first)) =
                (draft.role(value), self.done.register[value.index()])
                && self.func.fixed(of).is_some_and(|fixed| fixed != first)
            {
                return Err(format!("{of:?} has a fixed register and lies in {first}"));
            }
        }
        for inst in draft.insts() {
            let Origin::Own(own) = draft.origin(inst) else {
                continue;
            };
            let mut tuples = Vec::new();
            self.func
                .for_each_tuple(own, |values, align| tuples.push((values.to_vec(), align)));
            for (values, align) in tuples {
                let first = self.operand(inst, own, values[0])?;
                for (distance, &value) in (0..).zip(&values) {
                    let place = self.operand(inst, own, value)?;
                    if place != first + distance || first % align > 0 {
                        return Err(format!("{own:?}: a tuple is torn at {value:?}"));
                    }
                }
            }
        }
        Ok(())
    }

    /// The register in which the allocated instruction has an operand of the original.
    fn operand(&self, inst: Inst, own: Inst, value: Value) -> Result<u32, String> {
        let draft = &self.done.draft;
        let pairs = self.pairs(inst, own)?;
        let found = pairs
            .iter()
            .find(|(of, _)| *of == value)
            .map(|&(_, now)| now);
        let now = found.ok_or(format!("{own:?} has no operand {value:?}"))?;
        self.done.register[now.index()].ok_or(format!("{:?} has no register", draft.role(now)))
    }

    /// Operands of the original instruction beside those of the allocated one: uses, then definitions.
    fn pairs(&self, inst: Inst, own: Inst) -> Result<Vec<(Value, Value)>, String> {
        let (mut old, draft) = (Vec::new(), &self.done.draft);
        self.func.for_each_use(own, |value| old.push(value));
        let uses = old.len();
        self.func.for_each_def(own, |value| old.push(value));
        if uses != draft.uses(inst).len() || old.len() != uses + draft.defs(inst).len() {
            return Err(format!("{own:?} has other operands than before"));
        }
        let new = draft.uses(inst).iter().chain(draft.defs(inst)).copied();
        Ok(old.into_iter().zip(new).collect())
    }

    /// What stands around each of the function's own instructions, and where those are.
    fn attached(&self) -> Result<Attached, String> {
        let draft = &self.done.draft;
        let mut attached = Attached {
            bases: Vec::new(),
            own: vec![None; self.func.inst_count()],
            before: vec![Vec::new(); self.func.inst_count()],
            after: vec![Vec::new(); self.func.inst_count()],
        };
        let mut last = None;
        for inst in draft.insts() {
            match draft.origin(inst) {
                Origin::Bases => attached.bases.push(inst),
                Origin::Load { before } => {
                    if last.is_some_and(|last| last >= before) {
                        return Err(format!("a load for {before:?} stands behind it"));
                    }
                    attached.before[before.index()].push(inst);
                }
                Origin::Own(own) => {
                    if last.is_some_and(|last| last >= own) {
                        return Err(format!("{own:?} is out of order"));
                    }
                    last = Some(own);
                    attached.own[own.index()] = Some(inst);
                }
                Origin::Store { after } => {
                    if last != Some(after) {
                        return Err(format!("a store for {after:?} stands elsewhere"));
                    }
                    attached.after[after.index()].push(inst);
                }
                Origin::Copy { of, .. } => {
                    return Err(format!("an allocation executes {of:?} once more"));
                }
            }
        }
        Ok(attached)
    }

    fn step(&self, attached: &Attached, state: &mut State, own: Inst) -> Result<(), String> {
        for &inst in &attached.before[own.index()] {
            self.added(state, inst)?;
        }
        match attached.own[own.index()] {
            Some(inst) => self.own(state, inst, own)?,
            None => self.merged(state, own)?,
        }
        for &inst in &attached.after[own.index()] {
            self.added(state, inst)?;
        }
        Ok(())
    }

    /// A copy that was merged away: its result lies where its source does.
    fn merged(&self, state: &mut State, own: Inst) -> Result<(), String> {
        let (to, from) = self
            .func
            .copy_of(own)
            .ok_or(format!("{own:?} is gone and was no copy"))?;
        if to == from {
            return Ok(());
        }
        let is_written = state.written.contains(&from);
        for set in state.holds.values_mut() {
            set.retain(|part| part.0 != to);
            let both: Vec<Part> = set
                .iter()
                .filter(|part| part.0 == from)
                .map(|&(_, word)| (to, word))
                .collect();
            set.extend(both);
        }
        match is_written {
            true => state.written.insert(to),
            // What was never written is anything.
            false => state.written.remove(&to),
        };
        Ok(())
    }

    fn own(&self, state: &mut State, inst: Inst, own: Inst) -> Result<(), String> {
        let mut uses = 0;
        self.func.for_each_use(own, |_| uses += 1);
        let pairs = self.pairs(inst, own)?;
        for &(of, now) in &pairs[..uses] {
            for (word, place) in (0..).zip(self.places(now)?) {
                if !state.has(place, (of, word)) {
                    let holds = state.holds.get(&place);
                    return Err(format!(
                        "{own:?} reads {of:?} in {place:?}, which holds {holds:?}"
                    ));
                }
            }
        }
        let waits = self.func.waits(own);
        state
            .busy
            .retain(|&(queue, _)| !waits.contains(warpwright_flow::Queue(queue)));
        // Of a copy: what its source's words hold, without what it is about to overwrite.
        let mut copied: Vec<(u32, Part)> = Vec::new();
        if let Some((to, _)) = self.func.copy_of(own) {
            for (word, place) in (0..).zip(self.places(pairs[0].1)?) {
                let held = state.holds.get(&place).into_iter().flatten();
                copied.extend(held.filter(|part| part.0 != to).map(|&part| (word, part)));
            }
        }
        for &(of, now) in &pairs[uses..] {
            let places = self.places(now)?;
            self.not_busy(state, &places)?;
            state.define(of, &places, self.func.is_predicated(own));
        }
        // What a copy writes is what its source holds, too: both may share a register.
        if let (Some((to, from)), Some(&(_, now))) = (self.func.copy_of(own), pairs.get(uses)) {
            for (word, place) in (0..).zip(self.places(now)?) {
                let set = state.holds.entry(place).or_default();
                set.extend(
                    copied
                        .iter()
                        .filter(|(at, _)| *at == word)
                        .map(|&(_, part)| part),
                );
                set.insert((to, word));
            }
            if !state.written.contains(&from) {
                state.written.remove(&to);
            }
        }
        let mut held = Vec::new();
        self.func
            .for_each_held(own, |queue, value| held.push((queue, value)));
        for (queue, value) in held {
            let now = pairs
                .iter()
                .find(|(of, _)| *of == value)
                .map(|&(_, now)| now);
            for place in self.places(now.ok_or("a held value is no operand")?)? {
                state.busy.insert((queue.0, place));
            }
        }
        Ok(())
    }

    /// A load, a store or a base address.
    fn added(&self, state: &mut State, inst: Inst) -> Result<(), String> {
        let draft = &self.done.draft;
        let (defs, uses) = (draft.defs(inst), draft.uses(inst));
        match draft.origin(inst) {
            Origin::Bases => {
                for &def in defs {
                    let places = self.places(def)?;
                    for place in places {
                        state.holds.entry(place).or_default().clear();
                    }
                }
                Ok(())
            }
            _ => {
                let (to, from) = (self.places(defs[0])?, self.places(uses[0])?);
                if to.len() != from.len() {
                    return Err(format!("{inst:?} moves another size"));
                }
                self.not_busy(state, &to)?;
                state.copy(&to, &from);
                Ok(())
            }
        }
    }

    fn not_busy(&self, state: &State, places: &[Place]) -> Result<(), String> {
        let taken = state.busy.iter().find(|(_, place)| places.contains(place));
        match taken {
            Some(taken) => Err(format!("{taken:?} is written while it is read")),
            None => Ok(()),
        }
    }

    /// Where a value of the allocated code lies, word by word.
    fn places(&self, value: Value) -> Result<Vec<Place>, String> {
        let (draft, done): (&Draft, _) = (&self.done.draft, self.done);
        if let Role::Slot(_) = draft.role(value) {
            let shared = done.shared.cell(value);
            let local = done.local.cell(value);
            return match (shared, local) {
                (Some(cell), None) => Ok((0..cell.bytes / 4)
                    .map(|w| Place::Shared(cell, w))
                    .collect()),
                (None, Some(cell)) => {
                    Ok((0..cell.bytes / 4).map(|w| Place::Local(cell, w)).collect())
                }
                _ => Err(format!("{value:?} lies in two frames, or in none")),
            };
        }
        let first = done.register[value.index()].ok_or(format!("{value:?} has no register"))?;
        Ok(match draft.units(value) {
            0 => vec![Place::Predicate(first)],
            units => (first..first + units).map(Place::Register).collect(),
        })
    }
}

/// The allocated code by the function's own instructions.
struct Attached {
    bases: Vec<Inst>,
    own: Vec<Option<Inst>>,
    before: Vec<Vec<Inst>>,
    after: Vec<Vec<Inst>>,
}
