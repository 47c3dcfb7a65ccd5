//! What a loop does to global memory, and the locations in it that may be kept in registers.

use std::fmt;

use warpwright_flow::{Block, Cfg, Dominators, Function as _, Loop, Loops};
use warpwright_ptx::opcode::{Control, Effect, Op, SpaceSet};
use warpwright_ptx::{Base, Inst, Opcode, Operand, Reg, Scope, Space, Type, View};

use super::around::Around;
use crate::refusal::Refusal;

/// A place in global memory as a loop's text names it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Cell {
    base: String,
    offset: i64,
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.offset {
            0 => write!(f, "[{}]", self.base),
            offset => write!(f, "[{}+{offset}]", self.base),
        }
    }
}

/// A load or store of one element that may touch global memory.
#[derive(Debug, Clone, Copy)]
pub(super) struct Access {
    pub(super) inst: Inst,
    pub(super) is_load: bool,
    /// Not by a generic address.
    is_global: bool,
    /// Without hints.
    is_bare: bool,
    pub(super) base: Reg,
    pub(super) offset: i64,
    pub(super) ty: Type,
    /// What is loaded or stored.
    pub(super) value: Operand,
}

/// An innermost loop whose accesses of global memory are all plain.
pub(super) struct Turn<'v> {
    pub(super) view: &'v View<'v>,
    cfg: &'v Cfg,
    blocks: &'v [Block],
    accesses: Vec<Access>,
    pub(super) around: Around,
}

const ENTRIES: Refusal = Refusal::InTheWay("its loop is entered beside its header");
const ORDERED: &str = "its loop orders memory, or threads meet in it";
const UNKNOWN: &str = "its loop has an access that is no plain one of 4 or 8 bytes";

/// The cells that plain stores of a loop name, in the order of the text.
pub(super) fn stored(view: &View<'_>, cfg: &Cfg, blocks: &[Block]) -> Vec<Cell> {
    let stores = insts_of(cfg, blocks).into_iter().filter(|&inst| {
        let opcode = view.module().opcode(&view.body().insts[inst]);
        opcode.op == Some(Op::St) && opcode.space == Some(Space::Global)
    });
    let cells = stores.filter_map(|inst| match *view.body().operands(inst).first()? {
        Operand::Mem(address) => match address.base {
            Base::Reg(base) => Some(cell(view, base, address.offset)),
            _ => None,
        },
        _ => None,
    });
    cells.collect()
}

fn cell(view: &View<'_>, base: Reg, offset: i64) -> Cell {
    Cell {
        base: view.body().reg_name(base).to_string(),
        offset,
    }
}

/// The instructions of some blocks in the order of the text.
fn insts_of(cfg: &Cfg, blocks: &[Block]) -> Vec<Inst> {
    let all = blocks.iter().flat_map(|&block| cfg.insts(block));
    let mut all: Vec<Inst> = all.map(|at| Inst::from_u32(at.0)).collect();
    all.sort_unstable();
    all
}

impl<'v> Turn<'v> {
    /// # Errors
    /// Something in it orders memory or touches it in another way, or it is entered or left in one that has no place for
    /// loads and stores.
    pub(super) fn new(
        view: &'v View<'v>,
        cfg: &'v Cfg,
        loops: &'v Loops,
        of: Loop,
    ) -> Result<Turn<'v>, Refusal> {
        if loops.is_irreducible(of) {
            return Err(ENTRIES);
        }
        let blocks = loops.blocks(of);
        let mut accesses = Vec::new();
        for inst in insts_of(cfg, blocks) {
            accesses.extend(access(view, inst)?);
        }
        let around = Around::new(view, cfg, blocks, loops.header(of))?;
        Ok(Turn {
            view,
            cfg,
            blocks,
            accesses,
            around,
        })
    }

    fn insts(&self) -> Vec<Inst> {
        insts_of(self.cfg, self.blocks)
    }

    pub(super) fn blocks(&self) -> &[Block] {
        self.blocks
    }

    /// What the loop loads and stores.
    pub(super) fn accesses(&self) -> &[Access] {
        &self.accesses
    }

    /// Where an access goes, in the text.
    pub(super) fn address(&self, access: &Access) -> String {
        self.cell(access.base, access.offset).to_string()
    }

    pub(super) fn cell(&self, base: Reg, offset: i64) -> Cell {
        cell(self.view, base, offset)
    }

    /// What an access loads or stores, in the text; of a constant its bits.
    pub(super) fn value(&self, access: &Access) -> String {
        match access.value {
            Operand::Reg(reg) => self.view.body().reg_name(reg).to_string(),
            Operand::Imm(number) => format!("{:#x}", number.seen_as(access.ty)),
            _ => String::new(),
        }
    }

    /// Why this register does not stand for one address wherever the loop is entered and left.
    pub(super) fn changes(&self, base: Reg) -> Option<Refusal> {
        let (view, body) = (self.view, self.view.body());
        let mut insts = self.insts().into_iter();
        if insts.any(|inst| view.defs(inst).contains(&base)) {
            return Some(Refusal::InTheWay("its address changes in its loop"));
        }
        let name = body.reg_name(base).to_string();
        let mut others = body.regs.keys().filter(|&reg| reg != base);
        let is_inner = body.reg_decls[body.regs[base].decl].scope != Scope::from_u32(0);
        let is_shared = others.any(|reg| body.reg_name(reg).to_string() == name);
        (is_inner || is_shared).then_some(Refusal::InTheWay(
            "its address is a register of an inner block",
        ))
    }

    /// The blocks that an iteration ends in: those with a way out or back.
    fn ends(&self) -> impl Iterator<Item = Block> {
        let ends = |&block: &Block| {
            let mut succs = self.cfg.succs(block).iter();
            succs.any(|succ| *succ == self.around.header || !self.blocks.contains(succ))
        };
        self.blocks.iter().copied().filter(ends)
    }
}

/// What an instruction of a loop does to global memory, if anything.
///
/// # Errors
/// It is no plain load or store, orders others, or leaves the kernel.
fn access(view: &View<'_>, inst: Inst) -> Result<Option<Access>, Refusal> {
    let opcode = view.module().opcode(&view.body().insts[inst]);
    let text = || view.inst_text(warpwright_flow::Inst(inst.as_u32()));
    let effect = opcode.effect();
    match opcode.control() {
        Control::Next | Control::Branch => {}
        Control::Call => return Err(Refusal::InTheWay("its loop calls a function")),
        Control::IndirectBranch => return Err(Refusal::InTheWay("its loop jumps by a table")),
        Control::Return | Control::Exit | Control::Trap => {
            return Err(Refusal::InTheWay("its loop may end the thread"));
        }
    }
    if matches!(opcode.op, Some(Op::Prefetch | Op::Prefetchu)) {
        return Ok(None);
    }
    if orders(&effect) || reads_what_changes(view, inst) {
        return Err(Refusal::obstacle(ORDERED, text()));
    }
    let spaces = effect.reads | effect.writes;
    let outside = [SpaceSet::GLOBAL, SpaceSet::TEXTURE, SpaceSet::TENSOR];
    let is_nc = opcode.op == Some(Op::Ld) && opcode.has_mod("nc");
    if is_nc || !outside.into_iter().any(|space| spaces.overlaps(space)) {
        return Ok(None);
    }
    let plain = plain(view, inst, opcode);
    plain
        .map(Some)
        .ok_or_else(|| Refusal::obstacle(UNKNOWN, text()))
}

/// Does an instruction make an order among accesses, or do more than its results say?
fn orders(effect: &Effect) -> bool {
    effect.atomic
        || effect.strong
        || effect.acquire
        || effect.release
        || effect.is_async
        || effect.barrier
        || effect.fence
        || effect.convergent
        || effect.other
}

/// Does it read a clock, or another number that changes by itself?
fn reads_what_changes(view: &View<'_>, inst: Inst) -> bool {
    let operands = view.body().operands(inst).iter();
    operands
        .into_iter()
        .any(|operand| matches!(operand, Operand::Special { reg, .. } if !reg.is_stable()))
}

/// A plain load or store of one element of 32 or 64 bits, by a register of 64 bits.
fn plain(view: &View<'_>, inst: Inst, opcode: &Opcode) -> Option<Access> {
    let body = view.body();
    let (is_load, value, address) = match (opcode.op?, body.operands(inst)) {
        (Op::Ld, &[value, Operand::Mem(address)]) => (true, value, address),
        (Op::St, &[Operand::Mem(address), value]) => (false, value, address),
        _ => return None,
    };
    let (&[ty], Base::Reg(base)) = (opcode.types.as_slice(), address.base) else {
        return None;
    };
    let fits = match value {
        Operand::Reg(reg) => body.reg_type(reg).bits() == ty.bits(),
        Operand::Imm(_) => !is_load,
        _ => false,
    };
    let is_plain = fits
        && is_scalar(ty)
        && opcode.vector.is_none()
        && !address.unified
        && opcode.mods().all(is_plain_modifier)
        && body.reg_type(base).bits() == 64;
    is_plain.then_some(Access {
        inst,
        is_load,
        is_global: opcode.space == Some(Space::Global),
        is_bare: opcode.mods().count() == 2,
        base,
        offset: address.offset,
        ty,
        value,
    })
}

fn is_scalar(ty: Type) -> bool {
    use Type::{B32, B64, F32, F64, S32, S64, U32, U64};
    matches!(ty, B32 | U32 | S32 | F32 | B64 | U64 | S64 | F64)
}

/// Hints to the caches say nothing about values; their operators and policies are left alone.
fn is_plain_modifier(modifier: &str) -> bool {
    let is_hint = modifier.contains("::") && modifier != "L2::cache_hint";
    is_hint || matches!(modifier, "global" | "weak") || Type::parse(modifier).is_some()
}

/// A location of a loop that may be kept in a register.
pub(super) struct Location<'v, 't> {
    pub(super) turn: &'t Turn<'v>,
    pub(super) base: Reg,
    pub(super) offset: i64,
    /// Of its first store.
    pub(super) ty: Type,
}

impl<'v, 't> Location<'v, 't> {
    /// # Errors
    /// It may not be kept in a register, or nothing is gained.
    pub(super) fn new(
        turn: &'t Turn<'v>,
        dominators: &Dominators,
        cell_of: &Cell,
    ) -> Result<Location<'v, 't>, Refusal> {
        let stores = || turn.accesses.iter().filter(|access| access.is_store());
        let first = stores().find(|access| cell(turn.view, access.base, access.offset) == *cell_of);
        let first = first.ok_or(Refusal::InTheWay("it is stored by a generic address alone"))?;
        let location = Location {
            turn,
            base: first.base,
            offset: first.offset,
            ty: first.ty,
        };
        if let Some(why) = turn.changes(first.base) {
            return Err(why);
        }
        let has_width = |access: &Access| access.ty.bits() == first.ty.bits();
        if !turn.accesses.iter().all(has_width) {
            return Err(Refusal::InTheWay("an access of another width may touch it"));
        }
        if stores().any(|access| location.is_it(access) && !access.is_bare) {
            return Err(Refusal::InTheWay("a store to it has hints to the caches"));
        }
        if !stores().any(|access| location.is_stored_always(access, dominators)) {
            return Err(Refusal::InTheWay(
                "it is not stored in each iteration before the loop may be left",
            ));
        }
        let is_other_load = |access: &Access| access.is_load && !location.is_it(access);
        match turn.accesses.iter().any(is_other_load) {
            true => Ok(location),
            false => Err(Refusal::InTheWay(
                "its loop loads nothing else that could wait for the store",
            )),
        }
    }

    /// Does an access go to it by its own register?
    pub(super) fn is_it(&self, access: &Access) -> bool {
        access.is_global && (access.base, access.offset) == (self.base, self.offset)
    }

    /// Is it stored here in each iteration?
    fn is_stored_always(&self, store: &Access, dominators: &Dominators) -> bool {
        let turn = self.turn;
        let own = |inst: Inst| turn.cfg.block_of(warpwright_flow::Inst(inst.as_u32()));
        let is_sure = turn.view.body().insts[store.inst].guard.is_none();
        let mut ends = turn.ends();
        self.is_it(store) && is_sure && ends.all(|end| dominators.dominates(own(store.inst), end))
    }

    /// What the loop loads and stores.
    pub(super) fn accesses(&self) -> &[Access] {
        self.turn.accesses()
    }
}

impl Access {
    fn is_store(&self) -> bool {
        !self.is_load && self.is_global
    }

    /// Is it to `.global`, without hints?
    pub(super) fn is_plain_global(&self) -> bool {
        self.is_global && self.is_bare
    }
}
