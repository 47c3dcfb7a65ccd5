//! What a loop stores in each turn, kept in a register: the original, written so.
//!
//! Scalar promotion of memory (LLVM: `LICM`), without knowing what else has the address: a loop whose every turn stores
//! to one address `P` may keep the value, if each other access asks whether it meets `P`. The original is rewritten
//! here, and what a pass made is compared with that. The pass has its own code for it.
//!
//! Why it is the same. Where a turn begins, the memory of the original is that of the rewritten function with the register's
//! value at `P`. It is so at first, as the register is loaded from there. A plain store to `P` sets the
//! register. Another plain access of the same size meets `P` entirely or not at all, as both are aligned to their size; so
//! a load gives the register's value or what memory holds, and another store sets the register, too, if it meets `P`. Over
//! each edge out of the loop the value is stored. The original has stored to `P` in that turn, so neither this store nor the
//! first load touches what it does not touch. In between, no other thread may look, as nothing in
//! the loop orders memory: it would race with the original's stores.

use std::collections::BTreeSet;

use super::counter::Counter;
use super::speculated::Speculation;
use warpwright_flow::{
    Block, Cfg, Dominators, EntityRef as _, Function as _, Loop, Loops, Transfer,
};
use warpwright_ptx::opcode::{Op, SpaceSet};
use warpwright_ptx::{
    Address, Base, Body, EditError, Edits, FuncId, Guard, Inst, Label, Module, Opcode, Operand,
    Reg, Scope, Severity, Space, Type, View,
};

/// Turns of a loop that is left as it is first.
const FEW_TURNS: u64 = 7;

/// Choices of locations that are tried at most.
const MOST_CHOICES: u32 = 8;

/// The original in the forms in which loops keep what they store, all that may be kept in them first. Each is made when it is
/// asked for.
pub(super) fn versions(module: &Module, id: FuncId) -> impl Iterator<Item = Module> {
    let is_open = !module.functions[id].body.as_ref().is_some_and(hides_names);
    let choices = if is_open { 0..MOST_CHOICES } else { 0..0 };
    let mut known = BTreeSet::new();
    let forms =
        [(true, true), (false, true), (false, false)].map(|(long_alone, few_as_written)| Form {
            long_alone,
            few_as_written,
        });
    let versions = forms.into_iter().flat_map(move |form| {
        let choices = choices.clone();
        choices.filter_map(move |leave_out| version(module, id, leave_out, form))
    });
    versions.filter(move |version| known.insert(version.source.clone()))
}

/// May a register of an inner scope have the name of one of the body? What is written there, or out of there, would mean
/// the other one.
fn hides_names(body: &Body) -> bool {
    let stems = |is_outer: bool| {
        let all = body.reg_decls.values();
        all.filter(move |decl| (decl.scope == Scope::new(0)) == is_outer)
            .map(|decl| decl.base.trim_end_matches(|c: char| c.is_ascii_digit()))
    };
    let outer: BTreeSet<&str> = stems(true).collect();
    stems(false).any(|stem| outer.contains(stem))
}

/// What becomes of loops that turn a few times.
#[derive(Clone, Copy)]
struct Form {
    /// Are those that always do left as they are?
    long_alone: bool,
    /// Are the others left where a counter says so?
    few_as_written: bool,
}

/// The original with some loops run without their stores first, and some locations kept. The n-th of either is left as it is where
/// the n-th bit says so; `None` if all are.
fn version(module: &Module, id: FuncId, leave_out: u32, form: Form) -> Option<Module> {
    let mut at = None;
    let (mut choices, mut left) = (0, 0);
    let mut seen: BTreeSet<String> = BTreeSet::new();
    let mut as_written: BTreeSet<String> = BTreeSet::new();
    loop {
        let now = at.as_ref().unwrap_or(module);
        let view = now.view(id)?;
        let walk = Walk::new(&view);
        let headers = walk.innermost().into_iter().map(|of| walk.loops.header(of));
        let mut new = headers.filter_map(|header| Some((header, walk.label(header)?)));
        let Some((header, label)) = new.find(|(_, label)| !seen.contains(label)) else {
            break;
        };
        seen.insert(label.clone());
        if form.long_alone && walk.turns_seldom(header) {
            as_written.insert(label);
            continue;
        }
        let Some(mut speculation) = walk.speculation(id, header) else {
            continue;
        };
        if !form.few_as_written {
            speculation.ask_no_counter();
        }
        choices += 1;
        if leave_out >> (choices - 1).min(31) & 1 == 0 {
            at = Some(parsed(now, &speculation.text(&walk).ok()?)?);
            as_written.insert(label);
        }
    }
    loop {
        let now = at.as_ref().unwrap_or(module);
        let view = now.view(id)?;
        let found = Walk::new(&view).locations(&as_written);
        let Some(location) = found.get(left) else {
            break;
        };
        choices += 1;
        if leave_out >> (choices - 1).min(31) & 1 == 1 {
            left += 1;
            continue;
        }
        at = Some(parsed(
            now,
            &Rewrite::new(&view, id, location).text().ok()?,
        )?);
    }
    at
}

fn parsed(module: &Module, text: &str) -> Option<Module> {
    let (next, problems) = Module::parse(&module.name, text);
    let is_wrong = |problem: &warpwright_ptx::Diagnostic| problem.severity == Severity::Error;
    (next.errors == 0 && !problems.iter().any(is_wrong)).then_some(next)
}

/// A plain access to one element of global memory, or of what may be global memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Access {
    pub(super) inst: Inst,
    pub(super) is_store: bool,
    pub(super) ty: Type,
    pub(super) base: Reg,
    pub(super) offset: i64,
    pub(super) guard: Option<Guard>,
}

/// A location that a loop may keep in a register.
#[derive(Clone, Debug)]
struct Location {
    /// A store to it.
    store: Access,
    /// The accesses of the loop that may meet it, itself among them.
    accesses: Vec<Access>,
    header: Block,
    blocks: BTreeSet<Block>,
}

impl Location {
    fn is_at(&self, access: &Access) -> bool {
        (access.base, access.offset) == (self.store.base, self.store.offset)
    }
}

/// A function's loops.
pub(super) struct Walk<'v, 'm> {
    pub(super) view: &'v View<'m>,
    pub(super) cfg: Cfg,
    loops: Loops,
    dominators: Dominators,
}

impl<'v, 'm> Walk<'v, 'm> {
    fn new(view: &'v View<'m>) -> Self {
        let cfg = Cfg::new(view);
        let (loops, dominators) = (Loops::new(&cfg), Dominators::new(&cfg));
        Walk {
            view,
            cfg,
            loops,
            dominators,
        }
    }

    /// All locations, by the headers of their loops and their first stores, in the order of the text, but for those of loops
    /// that are `as_written`.
    fn locations(&self, as_written: &BTreeSet<String>) -> Vec<Location> {
        let is_open = |of: &Loop| {
            let label = self.label(self.loops.header(*of));
            !label.is_some_and(|label| as_written.contains(&label))
        };
        let loops = self.innermost().into_iter().filter(is_open);
        loops.flat_map(|of| self.locations_of(of)).collect()
    }

    /// The first label of a block.
    fn label(&self, block: Block) -> Option<String> {
        let labels = labels_at(self.view, self.cfg.first_inst(block));
        let first = labels.first()?;
        Some(self.view.body().labels[*first].name.to_string())
    }

    /// The instructions of a block.
    pub(super) fn insts(&self, block: Block) -> Vec<Inst> {
        let insts = self.cfg.insts(block);
        insts.map(|inst| Inst::from_u32(inst.as_u32())).collect()
    }

    /// Is it a loop of one block that turns a few times at most?
    fn turns_seldom(&self, header: Block) -> bool {
        let insts = self.insts(header);
        let counter = Counter::of(self.view, &insts);
        let most = counter.and_then(|counter| counter.most_turns(self.view, &insts));
        most.is_some_and(|most| most <= FEW_TURNS)
    }

    /// What it takes to run a loop without its stores first.
    fn speculation(&self, id: FuncId, header: Block) -> Option<Speculation<'v, 'm>> {
        let blocks = BTreeSet::from([header]);
        let is_alone = self.loops.blocks(self.loops.innermost(header)?) == [header];
        let is_open = self.can_be_entered_anew(header, &blocks) && self.can_be_left(&blocks);
        (is_alone && is_open)
            .then(|| Speculation::of(self, id, header))
            .flatten()
    }

    /// The innermost loops, in the order of their headers in the text.
    fn innermost(&self) -> Vec<Loop> {
        let parents: Vec<Loop> = self
            .loops
            .iter()
            .filter_map(|inner| self.loops.parent(inner))
            .collect();
        let is_innermost = |of: &Loop| !parents.contains(of) && !self.loops.is_irreducible(*of);
        let mut innermost: Vec<Loop> = self.loops.iter().filter(is_innermost).collect();
        innermost.sort_by_key(|&of| self.cfg.first_inst(self.loops.header(of)));
        innermost
    }

    fn locations_of(&self, of: Loop) -> Vec<Location> {
        let header = self.loops.header(of);
        let blocks: BTreeSet<Block> = self.loops.blocks(of).iter().copied().collect();
        if !self.can_be_entered_anew(header, &blocks) || !self.can_be_left(&blocks) {
            return Vec::new();
        }
        let mut insts: Vec<Inst> = blocks.iter().flat_map(|&block| self.insts(block)).collect();
        insts.sort();
        let Some(accesses) = self.accesses(&insts) else {
            return Vec::new();
        };
        let mut seen = BTreeSet::new();
        let stores = accesses.iter().filter(|access| access.is_store);
        let first = stores.filter(|store| seen.insert((store.base, store.offset)));
        let locations = first.map(|&store| Location {
            store,
            accesses: accesses.clone(),
            header,
            blocks: blocks.clone(),
        });
        locations
            .filter(|found| self.is_kept(found, &insts))
            .collect()
    }

    /// The accesses of a loop's instructions; `None` if one is none that can be followed, or orders memory.
    pub(super) fn accesses(&self, insts: &[Inst]) -> Option<Vec<Access>> {
        let mut accesses = Vec::new();
        for &inst in insts {
            let opcode = self.opcode(inst);
            let effect = opcode.effect();
            let at = warpwright_flow::Inst(inst.as_u32());
            let goes_on = matches!(self.view.transfer(at), Transfer::Next | Transfer::Jump);
            // What the host may have written is fetched anew.
            let is_fetched = opcode.has_mod("cv");
            let orders = effect.strong
                || is_fetched
                || effect.acquire
                || effect.release
                || effect.atomic
                || effect.is_async
                || effect.barrier
                || effect.fence
                || effect.other;
            if !goes_on || orders || !opcode.is_known() {
                return None;
            }
            if self.view.body().insts[inst].scope != Scope::new(0) {
                // Names may be others' there.
                return None;
            }
            // `ldu` reads what a thread stored before it, as other loads do.
            let elsewhere = opcode.is_invariant_load() && opcode.op != Some(Op::Ldu);
            if !(effect.reads | effect.writes).overlaps(SpaceSet::GLOBAL) || elsewhere {
                continue;
            }
            accesses.push(self.access(inst)?);
        }
        Some(accesses)
    }

    /// An instruction as a plain access to one element of 4 or 8 bytes.
    fn access(&self, inst: Inst) -> Option<Access> {
        let body = self.view.body();
        let opcode = self.opcode(inst);
        let is_store = match opcode.op {
            Some(Op::Ld) => false,
            Some(Op::St) => true,
            _ => return None,
        };
        let &[first, second] = body.operands(inst) else {
            return None;
        };
        let (address, data) = match is_store {
            true => (first, second),
            false => (second, first),
        };
        let (
            Operand::Mem(Address {
                base: Base::Reg(base),
                offset,
                unified: false,
            }),
            &[ty],
        ) = (address, opcode.types.as_slice())
        else {
            return None;
        };
        let is_whole = match data {
            Operand::Reg(reg) => body.reg_type(reg).bits() == ty.bits(),
            Operand::Imm(_) => is_store,
            _ => false,
        };
        let is_plain = opcode.vector.is_none()
            && matches!(opcode.space, None | Some(Space::Global))
            && matches!(ty.bits(), 32 | 64)
            && body.reg_type(base).bits() == 64
            && is_whole;
        is_plain.then_some(Access {
            inst,
            is_store,
            ty,
            base,
            offset,
            guard: body.insts[inst].guard,
        })
    }

    pub(super) fn opcode(&self, inst: Inst) -> &Opcode {
        self.view.module().opcode(&self.view.body().insts[inst])
    }

    /// Is it to `.global`, with nothing said but the type?
    pub(super) fn is_bare(&self, store: &Access) -> bool {
        let opcode = self.opcode(store.inst);
        opcode.space == Some(Space::Global) && opcode.mods().count() == 2
    }

    /// May its value be in a register while the loop turns?
    fn is_kept(&self, found: &Location, insts: &[Inst]) -> bool {
        let (base, size) = (found.store.base, found.store.ty.bits());
        let same = |access: &&Access| found.is_at(access);
        let mut stores = found
            .accesses
            .iter()
            .filter(|access| access.is_store)
            .filter(same);
        let is_stored_first = |store: &Access| {
            let block = self.block_of(store.inst);
            let is_before = |other: Block| self.dominators.dominates(block, other);
            store.guard.is_none() && self.last_blocks(found).into_iter().all(is_before)
        };
        let has_other_loads = found
            .accesses
            .iter()
            .any(|access| !access.is_store && !found.is_at(access));
        let is_changed = insts
            .iter()
            .any(|&inst| self.view.defs(inst).contains(&base));
        !is_changed
            && self.is_of_the_body(base)
            && has_other_loads
            && found.accesses.iter().all(|access| access.ty.bits() == size)
            && stores.clone().all(|store| self.is_bare(store))
            && stores.any(is_stored_first)
    }

    fn block_of(&self, inst: Inst) -> Block {
        self.cfg.block_of(warpwright_flow::Inst(inst.as_u32()))
    }

    /// Blocks of a loop behind which a turn, or the loop, is over.
    fn last_blocks(&self, found: &Location) -> Vec<Block> {
        let ends = |block: &&Block| {
            let mut succs = self.cfg.succs(**block).iter();
            succs.any(|succ| *succ == found.header || !found.blocks.contains(succ))
        };
        found.blocks.iter().filter(ends).copied().collect()
    }

    /// Is the register declared for all of the body?
    pub(super) fn is_of_the_body(&self, reg: Reg) -> bool {
        let body = self.view.body();
        body.reg_decls[body.regs[reg].decl].scope == Scope::new(0)
    }

    /// Can code be put on each edge into the loop? The header needs labels that can be named everywhere, and no list
    /// of targets may have them.
    fn can_be_entered_anew(&self, header: Block, blocks: &BTreeSet<Block>) -> bool {
        let body = self.view.body();
        let labels = labels_at(self.view, self.cfg.first_inst(header));
        let is_open = |label: &Label| body.labels[*label].scope == Scope::new(0);
        let is_listed = |label: &Label| {
            let mut tables = body.branch_tables.values();
            tables.any(|table| table.targets.contains(&Some(*label)))
        };
        let is_start = self.cfg.first_inst(header).as_u32() == 0;
        let has_entry = self
            .cfg
            .preds(header)
            .iter()
            .any(|pred| !blocks.contains(pred));
        has_entry
            && !is_start
            && !labels.is_empty()
            && labels
                .iter()
                .all(|label| is_open(label) && !is_listed(label))
    }

    /// Can code be put on each edge out of the loop, and is there one?
    fn can_be_left(&self, blocks: &BTreeSet<Block>) -> bool {
        let body = self.view.body();
        let end = self.view.inst_count() as u32;
        let mut is_left = false;
        for &block in blocks {
            let last = self.cfg.last_inst(block);
            let next = last.as_u32() + 1;
            // What falls off the end of the function has no edge.
            if self.cfg.leaves(block) && next == end {
                return false;
            }
            let inst = Inst::from_u32(last.as_u32());
            for label in self.view.targets(inst) {
                let at = body.labels[label].at.as_u32();
                let is_out = at == end || !blocks.contains(&self.block_of(Inst::from_u32(at)));
                is_left |= is_out;
                if is_out && body.labels[label].scope != Scope::new(0) {
                    return false;
                }
            }
            is_left |= self
                .cfg
                .succs(block)
                .iter()
                .any(|succ| !blocks.contains(succ));
        }
        is_left
    }
}

/// The labels in front of an instruction, in the order of the text.
pub(super) fn labels_at(view: &View<'_>, inst: warpwright_flow::Inst) -> Vec<Label> {
    let labels = view.body().labels.iter();
    labels
        .filter(|(_, label)| label.at.as_u32() == inst.as_u32())
        .map(|(id, _)| id)
        .collect()
}

/// One location of a function that is put in a register.
struct Rewrite<'v, 'm> {
    view: &'v View<'m>,
    id: FuncId,
    cfg: Cfg,
    edits: Edits<'m>,
    location: &'v Location,
    /// The register.
    kept: String,
    /// Blocks that are added behind the function.
    behind: String,
}

impl<'v, 'm> Rewrite<'v, 'm> {
    fn new(view: &'v View<'m>, id: FuncId, location: &'v Location) -> Self {
        let mut edits = Edits::new(view.module());
        let kept = edits.fresh_name("%kept");
        Rewrite {
            view,
            id,
            cfg: Cfg::new(view),
            edits,
            location,
            kept,
            behind: String::new(),
        }
    }

    fn text(mut self) -> Result<String, EditError> {
        let bits = self.location.store.ty.bits();
        let declaration = format!(".reg .b{bits} {};", self.kept);
        self.edits.add_declaration(self.id, &declaration)?;
        for access in &self.location.accesses {
            self.keep(access)?;
        }
        self.enter();
        self.leave();
        self.append();
        self.edits.apply()
    }

    /// An access in the loop.
    fn keep(&mut self, access: &Access) -> Result<(), EditError> {
        let (kept, ty) = (self.kept.clone(), access.ty);
        let guard = guard_text(self.view, access.guard);
        let data = self.operand(access.inst, usize::from(access.is_store));
        if self.location.is_at(access) {
            let (to, from) = match access.is_store {
                true => (kept.as_str(), data),
                false => (data, kept.as_str()),
            };
            let line = format!("{guard}mov.{} {to}, {from};", ty.text());
            self.edits.replace_by_lines(self.id, access.inst, &[line]);
            return Ok(());
        }
        let [meets, address] = ["%meets", "%met"].map(|prefix| self.edits.fresh_name(prefix));
        let body = self.view.body();
        let name = |reg: Reg| body.reg_name(reg).to_string();
        let store = &self.location.store;
        let distance = access.offset.wrapping_sub(store.offset);
        self.edits
            .add_declaration(self.id, &format!(".reg .pred {meets};"))?;
        self.edits
            .add_declaration(self.id, &format!(".reg .b64 {address};"))?;
        let before = [
            format!("add.s64 {address}, {}, {distance};", name(access.base)),
            format!("setp.eq.u64 {meets}, {address}, {};", name(store.base)),
        ];
        let bits = ty.bits();
        let after = match access.is_store {
            false => format!("{guard}selp.b{bits} {data}, {kept}, {data}, {meets};"),
            true => format!("{guard}selp.b{bits} {kept}, {data}, {kept}, {meets};"),
        };
        self.edits.insert_before(self.id, access.inst, &before);
        self.edits.insert_after(self.id, access.inst, &[after]);
        Ok(())
    }

    /// The register is loaded on each edge into the loop.
    fn enter(&mut self) {
        let body = self.view.body();
        let first = self.cfg.first_inst(self.location.header);
        let labels = labels_at(self.view, first);
        let Some(&label) = labels.first() else { return };
        let load = format!(
            "ld.global.b{} {}, {};",
            self.location.store.ty.bits(),
            self.kept,
            self.place()
        );
        let falls_in = |pred: &&Block| {
            let last = self.cfg.last_inst(**pred);
            last.as_u32() + 1 == first.as_u32() && self.goes_on(last)
        };
        let mut before = self.cfg.preds(self.location.header).iter();
        let falling = before.find(falls_in);
        if falling.is_some_and(|pred| !self.location.blocks.contains(pred)) {
            self.edits
                .insert(body.labels[label].span.start, format!("{load}\n"));
        }
        let entry = self.edits.fresh_name("$enter");
        let old = body.labels[label].name.to_string();
        for block in self.cfg.blocks() {
            if !self.location.blocks.contains(&block) {
                self.redirect(block, &entry, |label| labels.contains(&label));
            }
        }
        self.behind += &format!("{entry}:\n{load}\nbra {old};\n");
    }

    /// Does control reach the next instruction of the text from here?
    fn goes_on(&self, inst: warpwright_flow::Inst) -> bool {
        self.view.transfer(inst) == Transfer::Next || self.view.is_predicated(inst)
    }

    /// It is stored on each edge out of the loop.
    fn leave(&mut self) {
        let body = self.view.body();
        let ty = self.location.store.ty.text();
        let store = format!("st.global.{ty} {}, {};", self.place(), self.kept);
        let end = self.view.inst_count() as u32;
        let inside = |at: u32| {
            at < end
                && self
                    .location
                    .blocks
                    .contains(&self.cfg.block_of(warpwright_flow::Inst(at)))
        };
        let mut exits: BTreeSet<Label> = BTreeSet::new();
        for &block in &self.location.blocks {
            let last = self.cfg.last_inst(block);
            let inst = Inst::from_u32(last.as_u32());
            if self.goes_on(last) && !inside(last.as_u32() + 1) {
                self.edits
                    .insert_after(self.id, inst, std::slice::from_ref(&store));
            }
            let out = |label: &Label| !inside(body.labels[*label].at.as_u32());
            exits.extend(self.view.targets(inst).into_iter().filter(out));
        }
        for target in exits {
            let exit = self.edits.fresh_name("$leave");
            for &block in &self.location.blocks {
                self.redirect(block, &exit, |label| label == target);
            }
            let old = &body.labels[target].name;
            self.behind += &format!("{exit}:\n{store}\nbra {old};\n");
        }
    }

    /// The branch at a block's end goes to another label.
    fn redirect(&mut self, block: Block, to: &str, is_meant: impl Fn(Label) -> bool) {
        let body = self.view.body();
        let inst = Inst::from_u32(self.cfg.last_inst(block).as_u32());
        for id in body.insts[inst].operands.ids() {
            if matches!(body.operands[id], Operand::Label(label) if is_meant(label)) {
                self.edits.replace(body.operand_spans[id], to);
            }
        }
    }

    /// Added blocks stand at the function's end, which nothing falls off any more.
    fn append(&mut self) {
        let body = self.view.body();
        let at = body.span.end - 1;
        let behind = std::mem::take(&mut self.behind);
        self.edits.insert(at, format!("ret;\n{behind}"));
    }

    fn place(&self) -> String {
        let store = &self.location.store;
        format!(
            "[{}+{}]",
            self.view.body().reg_name(store.base),
            store.offset
        )
    }

    fn operand(&self, inst: Inst, index: usize) -> &'m str {
        let body = self.view.body();
        let mut ids = body.insts[inst].operands.ids();
        ids.nth(index)
            .map_or("", |id| self.view.module().text(body.operand_spans[id]))
    }
}

fn guard_text(view: &View<'_>, guard: Option<Guard>) -> String {
    guard.map_or_else(String::new, |guard| {
        let not = if guard.negated { "!" } else { "" };
        format!("@{not}{} ", view.body().reg_name(guard.reg))
    })
}
