//! A loop that stores in each turn, run without its stores first: the original, written so.
//!
//! The loop stands twice. The first copy keeps what it should store in registers and remembers what its registers held
//! at first. Behind it, the addresses that it loaded from are compared with those that it should have stored to. If none meets,
//! the values are stored; else the registers get their first values back, and the second copy does all as written. Where a
//! counter says so, few turns are left to the second copy from the beginning.
//!
//! Why it is the same. The first copy stores nothing, so memory is as before. If no load met a location, each has given what it
//! gives in the original, and so has all else. How often the loop turns and where it loads from does not depend on
//! what was loaded from such places, so both copies turn as often, and load from the same addresses: the first one does nothing that the
//! original does not. An address that is accessed in each turn and grows by the same amount lies between its first and its last
//! value, as sums do not wrap: what can be accessed lies far below 2^62. What other threads may see is told in `promoted.rs`.

use std::collections::{BTreeMap, BTreeSet};

use warpwright_flow::{Block, Function as _};
use warpwright_ptx::{EditError, Edits, FuncId, Inst, Operand, Reg, Type, View, opcode::Op};

use super::counter::{Counter, is_set};
use super::promoted::{Access, Walk, labels_at};

/// The loop of one block that a label stands at, and what it takes to run it so.
pub(super) struct Speculation<'v, 'm> {
    view: &'v View<'m>,
    id: FuncId,
    header: Block,
    insts: Vec<Inst>,
    accesses: Vec<Access>,
    /// The first store to each location.
    locations: Vec<Access>,
    /// Where loads of other places go.
    loads: Vec<Course>,
    /// What says how many turns there will be.
    counter: Option<Counter>,
    /// Registers whose values go around.
    carried: Vec<Reg>,
}

/// Bytes that may lie between two loads of one course.
const NEAR: i64 = 128;
/// Stores to the first location that make the first copy worth its while.
const WORTH: u32 = 12;

/// The addresses of loads at constant distances, turn by turn.
#[derive(Clone, Debug)]
struct Course {
    /// What grows in each turn; `None` if the address stays.
    induction: Option<Reg>,
    /// By how much it grows, as operands.
    step: Vec<String>,
    /// What is added to that, as operands.
    added: Vec<String>,
    /// Of the first load, and of the end of the last one.
    offset: i64,
    end: i64,
}

impl<'v, 'm> Speculation<'v, 'm> {
    /// `None` if the loop is none that can be run so.
    pub(super) fn of(walk: &Walk<'v, 'm>, id: FuncId, header: Block) -> Option<Self> {
        let view = walk.view;
        let insts = walk.insts(header);
        let accesses = walk.accesses(&insts)?;
        let mut this = Speculation {
            view,
            id,
            header,
            insts,
            accesses,
            locations: Vec::new(),
            loads: Vec::new(),
            counter: None,
            carried: Vec::new(),
        };
        let is_apt = this.turns_back(walk) && this.is_without_other_effects(walk);
        if !is_apt {
            return None;
        }
        this.locations = this.found_locations(walk)?;
        this.carried = this.found_carried();
        let mut loads = this.other_loads();
        loads.sort_by_key(|load| load.offset);
        for access in loads {
            let course = this.course(access)?;
            this.add(course);
        }
        this.counter = Counter::of(view, &this.insts);
        (!this.loads.is_empty() && this.goes_by_what_is_sure()).then_some(this)
    }

    /// Runs the first copy however few turns there will be.
    pub(super) fn ask_no_counter(&mut self) {
        self.counter = None;
    }

    /// Is it one block that ends with a guarded branch back and is left behind it?
    fn turns_back(&self, walk: &Walk<'v, 'm>) -> bool {
        let body = self.view.body();
        let Some(&last) = self.insts.last() else {
            return false;
        };
        let targets = self.view.targets(last);
        let at = walk.cfg.first_inst(self.header).as_u32();
        body.insts[last].guard.is_some()
            && targets.len() == 1
            && body.labels[targets[0]].at.as_u32() == at
            && (last.as_u32() as usize) + 1 < self.view.inst_count()
    }

    /// Does each instruction no more than set registers, load, or store to a location?
    fn is_without_other_effects(&self, walk: &Walk<'v, 'm>) -> bool {
        let body = self.view.body();
        let (branch, others) = match self.insts.split_last() {
            Some((branch, others)) => (*branch, others),
            None => return false,
        };
        let is_plain = |&inst: &Inst| {
            let effect = walk.opcode(inst).effect();
            let is_access = self.accesses.iter().any(|access| access.inst == inst);
            !effect.convergent
                && !effect.carry_in
                && !effect.carry_out
                && (effect.writes.is_empty() || is_access)
        };
        let is_unguarded = |access: &Access| access.guard.is_none();
        others.iter().all(is_plain)
            && self.accesses.iter().all(is_unguarded)
            && walk.opcode(branch).op == Some(Op::Bra)
            && body.operands(branch).len() == 1
    }

    /// The first store to each place that is stored to.
    fn found_locations(&self, walk: &Walk<'v, 'm>) -> Option<Vec<Access>> {
        let mut locations: Vec<Access> = Vec::new();
        for store in self.accesses.iter().filter(|access| access.is_store) {
            if !walk.is_bare(store) || self.is_set(store.base) || !walk.is_of_the_body(store.base) {
                return None;
            }
            let known = locations.iter().any(|known| is_same_place(known, store));
            let meets = |known: &&Access| known.base == store.base && !is_same_place(known, store);
            if locations
                .iter()
                .filter(meets)
                .any(|known| !is_apart(known, store))
            {
                return None;
            }
            if !known {
                locations.push(*store);
            }
        }
        // A load of a part of one, or over its edge, is none of another place.
        let is_clear = |access: &Access| {
            locations.iter().all(|location| {
                location.base != access.base
                    || is_same_place(location, access)
                    || is_apart(location, access)
            })
        };
        let all_clear = self.accesses.iter().all(is_clear);
        (all_clear && !locations.is_empty()).then_some(locations)
    }

    /// Adds a load that lies behind those that were added before.
    fn add(&mut self, course: Course) {
        let goes_along = |known: &&mut Course| {
            known.induction == course.induction
                && known.added == course.added
                && course.offset.saturating_sub(known.end) <= NEAR
        };
        match self.loads.iter_mut().find(goes_along) {
            Some(known) => known.end = known.end.max(course.end),
            None => self.loads.push(course),
        }
    }

    /// Turns below which the loop runs as written.
    fn worth(&self) -> u32 {
        let first = self.locations.first();
        let stores = self.accesses.iter().filter(|access| access.is_store);
        let to_first =
            stores.filter(|store| first.is_some_and(|first| is_same_place(first, store)));
        let count = u32::try_from(to_first.count()).unwrap_or(WORTH).max(1);
        WORTH.div_ceil(count).max(2)
    }

    fn is_set(&self, reg: Reg) -> bool {
        is_set(self.view, &self.insts, reg)
    }

    fn other_loads(&self) -> Vec<Access> {
        let loads = self.accesses.iter().filter(|access| !access.is_store);
        loads
            .filter(|load| {
                !self
                    .locations
                    .iter()
                    .any(|place| is_same_place(place, load))
            })
            .copied()
            .collect()
    }

    /// Registers that are read before they are set, and set, in order of their first reads.
    fn found_carried(&self) -> Vec<Reg> {
        let mut set: BTreeSet<Reg> = BTreeSet::new();
        let mut carried = Vec::new();
        for &inst in &self.insts {
            let mut reads: Vec<Reg> = self.view.uses(inst).into_iter().collect();
            if self.view.body().insts[inst].guard.is_some() {
                // What it does not set stays.
                reads.extend(self.view.defs(inst));
            }
            for reg in reads {
                if !set.contains(&reg) && !carried.contains(&reg) {
                    carried.push(reg);
                }
            }
            if self.view.body().insts[inst].guard.is_none() {
                set.extend(self.view.defs(inst));
            }
        }
        carried.retain(|&reg| self.is_set(reg));
        carried
    }

    /// Does nothing that would be otherwise had the loop stored decide how often it turns, or where it loads from?
    fn goes_by_what_is_sure(&self) -> bool {
        let loads = self.accesses.iter().filter(|access| !access.is_store);
        let loads: BTreeSet<Inst> = loads.map(|load| load.inst).collect();
        let mut stale: BTreeSet<Reg> = BTreeSet::new();
        loop {
            let before = stale.len();
            for &inst in &self.insts {
                let reads = self.view.uses(inst);
                if loads.contains(&inst) || reads.iter().any(|reg| stale.contains(reg)) {
                    stale.extend(self.view.defs(inst));
                }
            }
            if stale.len() == before {
                break;
            }
        }
        let body = self.view.body();
        let decides = self
            .insts
            .last()
            .is_some_and(|&last| self.view.uses(last).iter().any(|reg| stale.contains(reg)));
        // No address may depend on it, of whatever memory.
        let addresses = self.insts.iter().any(|&inst| {
            body.operands(inst).iter().any(|operand| {
                matches!(operand, Operand::Mem(address)
                    if matches!(address.base, warpwright_ptx::Base::Reg(reg) if stale.contains(&reg)))
            })
        });
        !decides && !addresses
    }

    /// The addresses of a load.
    fn course(&self, load: Access) -> Option<Course> {
        let mut course = Course {
            induction: None,
            step: Vec::new(),
            added: Vec::new(),
            offset: load.offset,
            end: load.offset.saturating_add(i64::from(bytes(&load))),
        };
        let (mut reg, mut before) = (load.base, load.inst);
        // What is read was set earlier in the turn, or in the turn before.
        while let Some(set) = self.only_set(reg)? {
            if set >= before {
                course.induction = Some(reg);
                course.step = self.growth(reg, set)?;
                return Some(course);
            }
            let (from, added) = self.sum(set)?;
            course.added.push(added);
            (reg, before) = (from, set);
        }
        // Nothing in the loop changes the sum.
        course.added.insert(0, self.name(reg));
        Some(course)
    }

    /// The only instruction of the loop that sets a register, if one does; `None` if several do.
    fn only_set(&self, reg: Reg) -> Option<Option<Inst>> {
        let mut setting = (self.insts.iter()).filter(|&&inst| self.view.defs(inst).contains(&reg));
        let first = setting.next().copied();
        setting.next().is_none().then_some(first)
    }

    /// By what a register grows from one turn to the next, if that stays. Its value is followed back to itself: what a sum reads of
    /// others was set earlier in the turn, and of itself is what the turn began with, as it is set once.
    fn growth(&self, reg: Reg, set: Inst) -> Option<Vec<String>> {
        let mut growth = Vec::new();
        let mut at = set;
        while let Some((from, added)) = self.sum(at) {
            growth.push(added);
            if from == reg {
                return Some(growth);
            }
            match self.only_set(from)? {
                Some(earlier) if earlier < at => at = earlier,
                _ => return None,
            }
        }
        None
    }

    /// `r, c, x` of an addition of something that stays.
    fn sum(&self, inst: Inst) -> Option<(Reg, String)> {
        let body = self.view.body();
        let opcode = self.view.module().opcode(&body.insts[inst]);
        let is_sum =
            matches!(&*opcode.text, "add.s64" | "add.u64") && body.insts[inst].guard.is_none();
        let mut ids = body.insts[inst].operands.ids().skip(1);
        let (first, second) = (ids.next()?, ids.next()?);
        if !is_sum {
            return None;
        }
        let stays = |id| match body.operands[id] {
            Operand::Imm(_) => true,
            Operand::Reg(reg) => !self.is_set(reg),
            _ => false,
        };
        let text = |id| self.view.module().text(body.operand_spans[id]).to_owned();
        match (body.operands[first], body.operands[second]) {
            (Operand::Reg(reg), _) if stays(second) => Some((reg, text(second))),
            (_, Operand::Reg(reg)) if stays(first) => Some((reg, text(first))),
            _ => None,
        }
    }

    fn name(&self, reg: Reg) -> String {
        self.view.body().reg_name(reg).to_string()
    }

    /// The module's text with the loop run so.
    ///
    /// # Errors
    /// The function cannot be edited.
    pub(super) fn text(&self, walk: &Walk<'v, 'm>) -> Result<String, EditError> {
        let module = self.view.module();
        let mut writing = Writing {
            of: self,
            edits: Edits::new(module),
            lines: Vec::new(),
            kept: Vec::new(),
            saved: BTreeMap::new(),
        };
        writing.write(walk)?;
        writing.edits.apply()
    }
}

fn is_same_place(a: &Access, b: &Access) -> bool {
    (a.base, a.offset, a.ty.bits()) == (b.base, b.offset, b.ty.bits())
}

/// Two places at constant distances from one register.
fn is_apart(a: &Access, b: &Access) -> bool {
    let ends = |access: &Access| {
        access
            .offset
            .saturating_add(i64::from(access.ty.bits() / 8))
    };
    ends(a) <= b.offset || ends(b) <= a.offset
}

fn bytes(access: &Access) -> u32 {
    access.ty.bits() / 8
}

struct Writing<'s, 'v, 'm> {
    of: &'s Speculation<'v, 'm>,
    edits: Edits<'m>,
    lines: Vec<String>,
    /// The register of each location.
    kept: Vec<String>,
    /// What registers held at first.
    saved: BTreeMap<Reg, String>,
}

impl<'m> Writing<'_, '_, 'm> {
    fn write(&mut self, walk: &Walk<'_, 'm>) -> Result<(), EditError> {
        let [enter, fast, again, left] =
            ["$enter", "$fast", "$again", "$left"].map(|name| self.edits.fresh_name(name));
        self.lines.push(format!("{enter}:"));
        self.leave_few(walk)?;
        self.remember()?;
        self.lines.push(format!("{fast}:"));
        self.turn(&fast);
        if let Some(any) = self.met()? {
            self.lines.push(format!("@{any} bra {again};"));
        }
        for (place, kept) in self.of.locations.clone().iter().zip(self.kept.clone()) {
            let line = format!(
                "st.global.{} {}, {kept};",
                place.ty.text(),
                self.place(place)
            );
            self.lines.push(line);
        }
        self.lines.push(format!("bra {left};"));
        self.lines.push(format!("{again}:"));
        for (&reg, saved) in &self.saved {
            let ty = moved_as(self.of.view.body().reg_type(reg));
            self.lines
                .push(format!("mov.{ty} {}, {saved};", self.of.name(reg)));
        }
        self.place_it(walk, &enter, &left);
        Ok(())
    }

    /// Goes to the loop as written if it will turn a few times.
    fn leave_few(&mut self, walk: &Walk<'_, 'm>) -> Result<(), EditError> {
        let Some(counter) = self.of.counter.clone() else {
            return Ok(());
        };
        let Some(reach) = counter.reach(self.of.worth()) else {
            return Ok(());
        };
        let body = self.of.view.body();
        let labels = labels_at(self.of.view, walk.cfg.first_inst(self.of.header));
        let Some(written) = labels
            .first()
            .map(|&label| body.labels[label].name.to_string())
        else {
            return Ok(());
        };
        let (bits, index) = (counter.ty.bits(), self.of.name(counter.index));
        let (from, to) = match counter.step > 0 {
            true => (&index, &counter.limit),
            false => (&counter.limit, &index),
        };
        let far = self.register(&format!("b{bits}"), "%ahead")?;
        self.lines.push(format!("sub.s{bits} {far}, {to}, {from};"));
        let mut tests = Vec::new();
        if counter.is_ordered {
            tests.push(format!("setp.lt.{} ?, {from}, {to};", counter.ty.text()));
        }
        tests.push(format!("setp.gt.u{bits} ?, {far}, {reach};"));
        for test in tests {
            let holds = self.register("pred", "%many")?;
            self.lines.push(test.replace('?', &holds));
            self.lines.push(format!("@!{holds} bra {written};"));
        }
        Ok(())
    }

    fn register(&mut self, ty: &str, prefix: &str) -> Result<String, EditError> {
        let name = self.edits.fresh_name(prefix);
        let id = self.of.id;
        self.edits
            .add_declaration(id, &format!(".reg .{ty} {name};"))?;
        Ok(name)
    }

    fn place(&self, access: &Access) -> String {
        format!("[{}+{}]", self.of.name(access.base), access.offset)
    }

    fn remember(&mut self) -> Result<(), EditError> {
        for &reg in &self.of.carried {
            let ty = moved_as(self.of.view.body().reg_type(reg));
            let saved = self.register(ty, "%first")?;
            self.lines
                .push(format!("mov.{ty} {saved}, {};", self.of.name(reg)));
            self.saved.insert(reg, saved);
        }
        for place in &self.of.locations {
            let ty = format!("b{}", place.ty.bits());
            let kept = self.register(&ty, "%kept")?;
            self.lines
                .push(format!("ld.global.{ty} {kept}, {};", self.place(place)));
            self.kept.push(kept);
        }
        Ok(())
    }

    /// The loop without its stores.
    fn turn(&mut self, fast: &str) {
        let of = self.of;
        let (body, module) = (of.view.body(), of.view.module());
        for &inst in &of.insts {
            let data = body.insts[inst];
            let text = module.text(data.span).to_owned();
            let access = of.accesses.iter().find(|access| access.inst == inst);
            let kept = access.and_then(|access| {
                let mut places = of.locations.iter();
                let index = places.position(|place| is_same_place(place, access))?;
                Some((access, self.kept[index].clone()))
            });
            let operand = |index: usize| {
                let id = data.operands.ids().nth(index);
                id.map_or("", |id| module.text(body.operand_spans[id]))
            };
            let line = match kept {
                Some((access, kept)) if access.is_store => {
                    format!("mov.{} {kept}, {};", access.ty.text(), operand(1))
                }
                Some((access, kept)) => format!("mov.{} {}, {kept};", access.ty.text(), operand(0)),
                None if Some(&inst) == of.insts.last() => {
                    let to = data.operands.ids().next().map(|id| body.operand_spans[id]);
                    let at = to.map_or(0, |span| (span.start - data.span.start) as usize);
                    let end = to.map_or(0, |span| (span.end - data.span.start) as usize);
                    format!("{}{fast}{}", &text[..at], &text[end..])
                }
                None => text,
            };
            self.lines.push(line);
        }
    }

    /// Has a load met a location, or a location another one? The predicate that says so.
    fn met(&mut self) -> Result<Option<String>, EditError> {
        let mut any: Option<String> = None;
        for course in self.of.loads.clone() {
            let (low, high) = self.ends(&course)?;
            for place in self.of.locations.clone() {
                let at = self.sum(&[self.of.name(place.base)], place.offset)?;
                let from = self.difference(&at, &low, i64::from(bytes(&place)) - 1)?;
                let length = course.end.saturating_sub(course.offset);
                let reach = length.saturating_add(i64::from(bytes(&place)) - 1);
                let within = self.difference(&high, &low, reach)?;
                any = Some(self.or_below(any, &from, &within)?);
            }
        }
        let places = self.of.locations.clone();
        for (index, one) in places.iter().enumerate() {
            for other in places
                .iter()
                .skip(index + 1)
                .filter(|other| other.base != one.base)
            {
                let [at, to] =
                    [one, other].map(|place| self.sum(&[self.of.name(place.base)], place.offset));
                let from = self.difference(&at?, &to?, i64::from(bytes(one)) - 1)?;
                let reach = (bytes(one) + bytes(other) - 1).to_string();
                any = Some(self.or_below(any, &from, &reach)?);
            }
        }
        Ok(any)
    }

    /// The lowest and the highest address of a load.
    fn ends(&mut self, course: &Course) -> Result<(String, String), EditError> {
        let Some(grows) = course.induction else {
            let at = self.sum(&course.added, course.offset)?;
            return Ok((at.clone(), at));
        };
        let saved = self.saved.get(&grows).cloned().unwrap_or_default();
        let mut ends = Vec::new();
        for (start, is_last) in [(saved, false), (self.of.name(grows), true)] {
            let mut all = vec![start];
            all.extend(course.added.iter().cloned());
            let end = self.sum(&all, course.offset)?;
            // The register has grown once more than was loaded from.
            for step in course.step.iter().filter(|_| is_last) {
                self.lines.push(format!("sub.s64 {end}, {end}, {step};"));
            }
            ends.push(end);
        }
        let [low, high] = [
            self.register("b64", "%low")?,
            self.register("b64", "%high")?,
        ];
        let both = ends.join(", ");
        self.lines.push(format!("min.s64 {low}, {both};"));
        self.lines.push(format!("max.s64 {high}, {both};"));
        Ok((low, high))
    }

    /// A register with the sum of operands and a constant.
    fn sum(&mut self, operands: &[String], offset: i64) -> Result<String, EditError> {
        let sum = self.register("b64", "%sum")?;
        self.lines.push(format!("mov.b64 {sum}, {offset};"));
        for operand in operands {
            self.lines.push(format!("add.s64 {sum}, {sum}, {operand};"));
        }
        Ok(sum)
    }

    /// A register with `a - b + more`.
    fn difference(&mut self, a: &str, b: &str, more: i64) -> Result<String, EditError> {
        let difference = self.register("b64", "%far")?;
        self.lines.push(format!("sub.s64 {difference}, {a}, {b};"));
        self.lines
            .push(format!("add.s64 {difference}, {difference}, {more};"));
        Ok(difference)
    }

    /// A predicate that is what another one was, or holds if `a` is below `b`.
    fn or_below(&mut self, any: Option<String>, a: &str, b: &str) -> Result<String, EditError> {
        let below = self.register("pred", "%below")?;
        self.lines.push(format!("setp.lt.u64 {below}, {a}, {b};"));
        let Some(any) = any else { return Ok(below) };
        let both = self.register("pred", "%any")?;
        self.lines.push(format!("or.pred {both}, {any}, {below};"));
        Ok(both)
    }

    /// The lines stand in front of the loop, where all ways lead that come from elsewhere.
    fn place_it(&mut self, walk: &Walk<'_, 'm>, enter: &str, left: &str) {
        let view = self.of.view;
        let body = view.body();
        let labels = labels_at(view, walk.cfg.first_inst(self.of.header));
        for block in walk.cfg.blocks().filter(|&block| block != self.of.header) {
            let inst = Inst::from_u32(walk.cfg.last_inst(block).as_u32());
            for id in body.insts[inst].operands.ids() {
                if matches!(body.operands[id], Operand::Label(label) if labels.contains(&label)) {
                    self.edits.replace(body.operand_spans[id], enter);
                }
            }
        }
        if let Some(&label) = labels.first() {
            let text = self.lines.join("\n") + "\n";
            self.edits.insert(body.labels[label].span.start, text);
        }
        if let Some(&last) = self.of.insts.last() {
            self.edits
                .insert_after(self.of.id, last, &[format!("{left}:")]);
        }
    }
}

/// The type by which a register is moved.
fn moved_as(ty: Type) -> &'static str {
    match ty.bits() {
        _ if ty == Type::Pred => "pred",
        16 => "b16",
        64 => "b64",
        128 => "b128",
        _ => "b32",
    }
}
