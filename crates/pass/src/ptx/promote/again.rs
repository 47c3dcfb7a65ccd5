//! A whole loop without its stores, and again as written where a load met what it should have stored.
//!
//! Selections behind every load cost a loop that is bound by the instructions it issues most of what the missing stores
//! bring. Here the loop is copied. The copy keeps in registers what the loop stores, and asks nothing. Behind it the ranges of the
//! addresses that it loaded from are compared with the locations: loads that lie near each other in each iteration have one
//! range. Where none is met the locations are stored; else the registers that the loop changes get back what they held in
//! front of it, and the loop itself runs. A loop whose iterations can be counted ahead runs as it is where they are few.
//!
//! Requires, beside what `promote` does: one block, left behind its branch back; unguarded accesses; no stores but those of
//! the locations, and no carry flags; neither the branch nor an address depends on what may have been stored; the address of
//! each other load stays, or is an induction register plus what stays.

use std::collections::{BTreeMap, BTreeSet};

use warpwright_flow::{Cfg, Loop, Loops};
use warpwright_ptx::opcode::Op;
use warpwright_ptx::{Base, Edits, FuncId, Inst, Operand, Reg, Scope, Type, View};

use super::around::Exit;
use super::location::{Access, Turn};
use crate::ptx::unroll::{counted::Counted, region::Region};
use crate::refusal::Refusal;

/// A loop that can be run so.
pub(super) struct Again<'v, 't> {
    turn: &'t Turn<'v>,
    insts: Vec<Inst>,
    /// The first store of each location.
    places: Vec<Access>,
    /// Loads of other places.
    loads: Vec<Load>,
    /// Whether enough iterations are ahead, where that can be told.
    ahead: Option<Counted>,
}

/// Loads at constant distances from each other.
struct Load {
    address: Address,
    /// Bytes from the address to the end of the last one.
    bytes: u32,
}

/// A register that grows by the same in each iteration.
struct Induction {
    reg: Reg,
    /// Registers and numbers that it grows by.
    steps: Vec<String>,
}

/// Bytes between loads that make them two.
const GAP: i64 = 128;
/// Stores to a location that are worth the copy.
const ENOUGH: usize = 12;

/// What is added up to the address of a load.
struct Address {
    induction: Option<Induction>,
    /// Registers and numbers that stay.
    rest: Vec<String>,
    /// The constant of the access.
    offset: i64,
}

impl<'v, 't> Again<'v, 't> {
    /// `None`: the loop is another one.
    pub(super) fn new(
        turn: &'t Turn<'v>,
        cfg: &Cfg,
        loops: &Loops,
        of: Loop,
    ) -> Option<Again<'v, 't>> {
        let &[only] = turn.blocks() else { return None };
        let insts = cfg.insts(only).map(|at| Inst::from_u32(at.0)).collect();
        let mut again = Again {
            turn,
            insts,
            places: Vec::new(),
            loads: Vec::new(),
            ahead: None,
        };
        if !again.is_simple() {
            return None;
        }
        again.places = again.places()?;
        let others = turn.accesses().iter().filter(|access| {
            let is_it = |place: &Access| same_place(place, access);
            access.is_load && !again.places.iter().any(is_it)
        });
        let others: Vec<Access> = others.copied().collect();
        for load in others {
            again.loads.push(Load {
                address: again.address(&load)?,
                bytes: size(&load),
            });
        }
        again.join_loads();
        let is_apt = !again.loads.is_empty() && again.is_sure();
        again.ahead = again.ahead(cfg, loops, of);
        is_apt.then_some(again)
    }

    /// Makes one of loads that lie near each other.
    fn join_loads(&mut self) {
        self.loads.sort_by_key(|load| load.address.offset);
        let mut joined: Vec<Load> = Vec::new();
        for load in std::mem::take(&mut self.loads) {
            let offset = load.address.offset;
            let end = |one: &Load| one.address.offset.saturating_add(i64::from(one.bytes));
            let near = joined.iter_mut().find(|one| {
                one.address.differs_by_a_constant(&load.address)
                    && offset.saturating_sub(end(one)) <= GAP
            });
            match near {
                None => joined.push(load),
                Some(one) => {
                    let bytes = end(&load).max(end(one)) - one.address.offset;
                    one.bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
                }
            }
        }
        self.loads = joined;
    }

    fn ahead(&self, cfg: &Cfg, loops: &Loops, of: Loop) -> Option<Counted> {
        let first = self.places.first()?;
        let stores = self.turn.accesses().iter();
        let stores = stores.filter(|access| !access.is_load && same_place(first, access));
        let least = ENOUGH.div_ceil(stores.count().max(1)).max(2);
        let region = Region::new(self.view(), cfg, loops, of).ok()?;
        Counted::new(self.view(), cfg, &region, u32::try_from(least).ok()?).ok()
    }

    fn view(&self) -> &'v View<'v> {
        self.turn.view
    }

    fn branch(&self) -> Option<Inst> {
        self.insts.last().copied()
    }

    /// It ends with a guarded branch back, has no guarded accesses, and stores to global memory alone.
    fn is_simple(&self) -> bool {
        let (view, body) = (self.view(), self.view().body());
        let opcode = |inst: Inst| view.module().opcode(&body.insts[inst]);
        let ends = self.branch().is_some_and(|branch| {
            opcode(branch).op == Some(Op::Bra)
                && body.insts[branch].guard.is_some()
                && body.operands(branch).len() == 1
                && matches!(self.turn.around.exits.as_slice(), [Exit::Behind(last)] if *last == branch)
        });
        let is_access = |inst: Inst| {
            self.turn
                .accesses()
                .iter()
                .any(|access| access.inst == inst)
        };
        let is_quiet = |&inst: &Inst| {
            let effect = opcode(inst).effect();
            let is_outer = body.insts[inst].scope == Scope::from_u32(0);
            let is_carry = effect.carry_in || effect.carry_out;
            is_outer && !is_carry && (effect.writes.is_empty() || is_access(inst))
        };
        let unguarded = |access: &Access| body.insts[access.inst].guard.is_none();
        ends && self.insts.iter().all(is_quiet) && self.turn.accesses().iter().all(unguarded)
    }

    /// The first stores of all locations, of which no other access at the same register holds a part.
    fn places(&self) -> Option<Vec<Access>> {
        let mut places: Vec<Access> = Vec::new();
        for store in self.turn.accesses().iter().filter(|access| !access.is_load) {
            if !store.is_plain_global() || self.turn.changes(store.base).is_some() {
                return None;
            }
            if !places.iter().any(|place| same_place(place, store)) {
                places.push(*store);
            }
        }
        let is_clear = |place: &Access, other: &Access| {
            same_place(place, other) || place.base != other.base || are_apart(place, other)
        };
        let all = self.turn.accesses();
        let clear = places
            .iter()
            .all(|place| all.iter().all(|other| is_clear(place, other)));
        (clear && !places.is_empty()).then_some(places)
    }

    fn defs(&self, reg: Reg) -> Vec<Inst> {
        let sets = |inst: &Inst| self.view().defs(*inst).contains(&reg);
        self.insts.iter().copied().filter(sets).collect()
    }

    /// Does nothing that decides about iterations or addresses come from what global memory may hold otherwise?
    fn is_sure(&self) -> bool {
        let view = self.view();
        let body = view.body();
        let from_memory: BTreeSet<Inst> = (self.turn.accesses().iter())
            .filter(|access| access.is_load)
            .map(|access| access.inst)
            .collect();
        let mut unsure: BTreeSet<Reg> = BTreeSet::new();
        let mut grows = true;
        while grows {
            let known = unsure.len();
            for &inst in &self.insts {
                let reads = view.uses(inst);
                if from_memory.contains(&inst) || reads.iter().any(|reg| unsure.contains(reg)) {
                    unsure.extend(view.defs(inst));
                }
            }
            grows = unsure.len() > known;
        }
        let decides = |inst: Inst| view.uses(inst).iter().any(|reg| unsure.contains(reg));
        let is_unsure = |operand: &Operand| match operand {
            Operand::Mem(address) => {
                matches!(address.base, Base::Reg(reg) if unsure.contains(&reg))
            }
            Operand::MemTuple(_) => true,
            _ => false,
        };
        let mut operands = self.insts.iter().flat_map(|&inst| body.operands(inst));
        !self.branch().is_some_and(decides) && !operands.any(is_unsure)
    }

    /// Follows additions back to what stays or to what an induction register holds where the iteration begins.
    fn address(&self, load: &Access) -> Option<Address> {
        let mut address = Address {
            induction: None,
            rest: Vec::new(),
            offset: load.offset,
        };
        let (mut reg, mut at) = (load.base, load.inst);
        loop {
            match self.defs(reg).as_slice() {
                [] => {
                    address.rest.push(self.name(reg));
                    return Some(address);
                }
                &[def] if def < at => {
                    let (from, amount) = self.addition(def)?;
                    address.rest.push(amount);
                    (reg, at) = (from, def);
                }
                &[def] => {
                    let steps = self.steps(reg, def)?;
                    address.induction = Some(Induction { reg, steps });
                    return Some(address);
                }
                _ => return None,
            }
        }
    }

    /// What is added to a register from one iteration to the next.
    fn steps(&self, reg: Reg, def: Inst) -> Option<Vec<String>> {
        let mut steps = Vec::new();
        let mut at = def;
        loop {
            let (from, amount) = self.addition(at)?;
            steps.push(amount);
            if from == reg {
                return Some(steps);
            }
            match self.defs(from).as_slice() {
                &[before] if before < at => at = before,
                _ => return None,
            }
        }
    }

    /// An unguarded 64-bit addition of something that stays.
    fn addition(&self, inst: Inst) -> Option<(Reg, String)> {
        let body = self.view().body();
        let data = body.insts[inst];
        let text = &*self.view().module().opcode(&data).text;
        if data.guard.is_some() || !matches!(text, "add.s64" | "add.u64") {
            return None;
        }
        let &[_, first, second] = body.operands(inst) else {
            return None;
        };
        let amount = |operand: Operand| match operand {
            Operand::Reg(reg) if self.defs(reg).is_empty() => Some(self.name(reg)),
            Operand::Imm(number) => Some((number.bits() as i64).to_string()),
            _ => None,
        };
        match (first, second) {
            (Operand::Reg(reg), other) if amount(other).is_some() => Some((reg, amount(other)?)),
            (other, Operand::Reg(reg)) => Some((reg, amount(other)?)),
            _ => None,
        }
    }

    fn name(&self, reg: Reg) -> String {
        self.view().body().reg_name(reg).to_string()
    }

    /// What the loop reads of what it left in the iteration before, in the order of the registers.
    fn carried(&self) -> BTreeSet<Reg> {
        let (view, body) = (self.view(), self.view().body());
        let mut set = BTreeSet::new();
        let mut carried = BTreeSet::new();
        for &inst in &self.insts {
            let is_guarded = body.insts[inst].guard.is_some();
            carried.extend(view.uses(inst).iter().filter(|reg| !set.contains(*reg)));
            let defs = view.defs(inst);
            match is_guarded {
                true => carried.extend(defs.iter().filter(|reg| !set.contains(*reg))),
                false => set.extend(defs),
            }
        }
        carried.retain(|&reg| !self.defs(reg).is_empty());
        carried
    }

    /// The locations as the text names them.
    pub(super) fn in_words(&self, kernel: FuncId) -> String {
        let each = self.places.iter().map(|place| {
            let line = self.view().module().own_line(kernel, place.inst);
            let line = line.map_or_else(String::new, |(_, line)| format!(" of line {line}"));
            format!("{}{line}", self.turn.address(place))
        });
        each.collect::<Vec<_>>().join(", ")
    }

    /// # Errors
    /// The text cannot be edited so.
    pub(super) fn written(&self, kernel: FuncId) -> Result<String, Refusal> {
        let mut draft = Draft {
            again: self,
            kernel,
            edits: Edits::new(self.view().module()),
            text: String::new(),
            kept: Vec::new(),
            before: BTreeMap::new(),
        };
        draft.write()?;
        Ok(draft.edits.apply()?)
    }
}

impl Address {
    fn differs_by_a_constant(&self, other: &Address) -> bool {
        let grows = |address: &Address| address.induction.as_ref().map(|induction| induction.reg);
        grows(self) == grows(other) && self.rest == other.rest
    }
}

fn same_place(a: &Access, b: &Access) -> bool {
    (a.base, a.offset, a.ty.bits()) == (b.base, b.offset, b.ty.bits())
}

fn are_apart(a: &Access, b: &Access) -> bool {
    a.offset.abs_diff(b.offset)
        >= u64::from(if a.offset < b.offset {
            size(a)
        } else {
            size(b)
        })
}

fn size(access: &Access) -> u32 {
    access.ty.bits() / 8
}

struct Draft<'a, 'v, 't> {
    again: &'a Again<'v, 't>,
    kernel: FuncId,
    edits: Edits<'v>,
    text: String,
    /// One for each location.
    kept: Vec<String>,
    /// What registers held in front of the loop.
    before: BTreeMap<Reg, String>,
}

impl Draft<'_, '_, '_> {
    fn write(&mut self) -> Result<(), Refusal> {
        let again = self.again;
        let (body, around) = (again.view().body(), &again.turn.around);
        let header = &body.labels[around.label];
        let labels = ["enter", "copy", "again", "left"];
        let [enter, copy, back, left] =
            labels.map(|name| self.edits.fresh_name(&format!("$L_{name}_")));
        self.line(&format!("{enter}:"));
        if let Some(ahead) = &again.ahead {
            let written = &body.labels[around.label].name;
            for line in ahead.test(self.kernel, written.as_ref(), &mut self.edits)? {
                self.line(&format!("\t{line}"));
            }
        }
        self.remember()?;
        self.line(&format!("{copy}:"));
        self.copy(&copy);
        if let Some(met) = self.met()? {
            self.line(&format!("\t@{met} bra {back};"));
        }
        for (place, kept) in again.places.iter().zip(self.kept.clone()) {
            let (ty, address) = (place.ty.text(), again.turn.address(place));
            self.line(&format!("\tst.global.{ty} {address}, {kept};"));
        }
        self.line(&format!("\tbra.uni {left};"));
        self.line(&format!("{back}:"));
        for (reg, before) in self.before.clone() {
            let ty = whole(body.reg_type(reg));
            self.line(&format!("\tmov.{ty} {}, {before};", again.name(reg)));
        }
        for &id in &around.entries {
            self.edits.replace(body.operand_span(id), enter.clone());
        }
        self.edits
            .insert(header.span.start, std::mem::take(&mut self.text));
        if let Some(branch) = again.branch() {
            self.edits
                .insert_after(self.kernel, branch, &[format!("{left}:")]);
        }
        Ok(())
    }

    fn line(&mut self, text: &str) {
        self.text += text;
        self.text.push('\n');
    }

    fn register(&mut self, ty: Type, name: &str) -> Result<String, Refusal> {
        let name = self.edits.fresh_name(name);
        self.edits.add_register(self.kernel, ty, &name)?;
        Ok(name)
    }

    fn remember(&mut self) -> Result<(), Refusal> {
        for reg in self.again.carried() {
            let ty = self.again.view().body().reg_type(reg);
            let before = self.register(ty, "%before")?;
            self.line(&format!(
                "\tmov.{} {before}, {};",
                whole(ty),
                self.again.name(reg)
            ));
            self.before.insert(reg, before);
        }
        for place in &self.again.places {
            let ty = if place.ty.bits() == 32 {
                Type::B32
            } else {
                Type::B64
            };
            let kept = self.register(ty, "%kept")?;
            let address = self.again.turn.address(place);
            self.line(&format!("\tld.global.{} {kept}, {address};", ty.text()));
            self.kept.push(kept);
        }
        Ok(())
    }

    /// The loop's instructions, with moves in the place of what accesses locations.
    fn copy(&mut self, label: &str) {
        let view = self.again.view();
        let (module, body) = (view.module(), view.body());
        for &inst in &self.again.insts {
            let data = body.insts[inst];
            let mut accesses = self.again.turn.accesses().iter();
            let access = accesses.find(|access| access.inst == inst);
            let place = access.and_then(|access| {
                let mut places = self.again.places.iter();
                places.position(|place| same_place(place, access))
            });
            let line = match (access, place) {
                (Some(access), Some(place)) => {
                    let (value, kept) = (self.again.turn.value(access), &self.kept[place]);
                    let bits = access.ty.bits();
                    match access.is_load {
                        true => format!("mov.b{bits} {value}, {kept};"),
                        false => format!("mov.b{bits} {kept}, {value};"),
                    }
                }
                _ if Some(inst) == self.again.branch() => {
                    let guard = crate::ptx::specialize::guard_text(view, inst);
                    format!("{guard}bra {label};")
                }
                _ => module.text(data.span).to_owned(),
            };
            self.line(&format!("\t{line}"));
        }
    }

    /// A predicate: did a load meet a location, or a location another one?
    fn met(&mut self) -> Result<Option<String>, Refusal> {
        let again = self.again;
        let mut met = None;
        for load in &again.loads {
            let (low, high) = self.range(&load.address)?;
            for place in &again.places {
                let start = self.sum(&again.name(place.base), &[], place.offset)?;
                let far = self.gap(&start, &low, size(place) - 1)?;
                let reach = self.gap(&high, &low, load.bytes.saturating_add(size(place) - 1))?;
                met = Some(self.or(met, &far, &reach)?);
            }
        }
        for (number, place) in again.places.iter().enumerate() {
            for other in &again.places[number + 1..] {
                if other.base == place.base {
                    continue;
                }
                let start = self.sum(&again.name(place.base), &[], place.offset)?;
                let low = self.sum(&again.name(other.base), &[], other.offset)?;
                let far = self.gap(&start, &low, size(place) - 1)?;
                let reach = (size(place) + size(other) - 1).to_string();
                met = Some(self.or(met, &far, &reach)?);
            }
        }
        Ok(met)
    }

    /// Its lowest and its highest address.
    fn range(&mut self, address: &Address) -> Result<(String, String), Refusal> {
        let Some(induction) = &address.induction else {
            let (first, rest) = address
                .rest
                .split_last()
                .ok_or(Refusal::InTheWay("its address is a number"))?;
            let at = self.sum(first, rest, address.offset)?;
            return Ok((at.clone(), at));
        };
        let before = self.before.get(&induction.reg).cloned();
        let first = self.sum(&before.unwrap_or_default(), &address.rest, address.offset)?;
        let now = self.again.name(induction.reg);
        let last = self.sum(&now, &address.rest, address.offset)?;
        for step in &induction.steps {
            self.line(&format!("\tsub.s64 {last}, {last}, {step};"));
        }
        let low = self.register(Type::B64, "%low")?;
        let high = self.register(Type::B64, "%high")?;
        self.line(&format!("\tmin.s64 {low}, {first}, {last};"));
        self.line(&format!("\tmax.s64 {high}, {first}, {last};"));
        Ok((low, high))
    }

    fn sum(&mut self, first: &str, rest: &[String], offset: i64) -> Result<String, Refusal> {
        let sum = self.register(Type::B64, "%sum")?;
        self.line(&format!("\tadd.s64 {sum}, {first}, {offset};"));
        for amount in rest {
            self.line(&format!("\tadd.s64 {sum}, {sum}, {amount};"));
        }
        Ok(sum)
    }

    /// `a - b` and some bytes.
    fn gap(&mut self, a: &str, b: &str, bytes: u32) -> Result<String, Refusal> {
        let gap = self.register(Type::B64, "%gap")?;
        self.line(&format!("\tsub.s64 {gap}, {a}, {b};"));
        self.line(&format!("\tadd.s64 {gap}, {gap}, {bytes};"));
        Ok(gap)
    }

    fn or(&mut self, met: Option<String>, far: &str, reach: &str) -> Result<String, Refusal> {
        let within = self.register(Type::Pred, "%within")?;
        self.line(&format!("\tsetp.lt.u64 {within}, {far}, {reach};"));
        let Some(met) = met else { return Ok(within) };
        let both = self.register(Type::Pred, "%met")?;
        self.line(&format!("\tor.pred {both}, {met}, {within};"));
        Ok(both)
    }
}

/// The type that moves a register's bits.
fn whole(ty: Type) -> String {
    match ty {
        Type::Pred => "pred".to_owned(),
        ty => format!("b{}", ty.bits()),
    }
}
