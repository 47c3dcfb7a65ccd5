//! Branches that always go one way, because of where indices lie.
//!
//! Method: conditional propagation (Wegman and Zadeck, TOPLAS 13(2), 1991) of ranges of numbers whose sign bit is clear,
//! so that it does not matter whether an instruction takes them with a sign. All else is unknown.

use std::collections::{BTreeMap, BTreeSet};

use warpwright_flow::{Block, Cfg, Function as _, Inst as FlowInst, Transfer};
use warpwright_launch::{Guard, Quantity};
use warpwright_ptx::opcode::Op;
use warpwright_ptx::{Edits, Inst, Operand, Reg, SpecialReg, Type, View};

use super::axis;
use crate::pass::Fuel;
use crate::ptx::facts::view;
use crate::refusal::Refusal;
use crate::site::Site;

/// From the first to the last number.
pub(super) type Range = (u64, u64);

/// Registers of which something is known; predicates are 0 or 1.
type State = BTreeMap<Reg, Range>;

/// Visits of a block after which bounds that move are given up.
const VISITS: u32 = 2;

/// The kernel without its decided branches and what they make dead, and how many they are.
pub(super) fn write(
    site: &Site,
    guard: &Guard,
    fuel: &mut Fuel,
) -> Result<(String, usize), Refusal> {
    let view = view(site.module, site.kernel)?;
    let mut analysis = Analysis::new(&view, guard);
    analysis.settle();
    let mut edits = Edits::new(site.module);
    let mut decided = 0;
    for (inst, is_taken) in analysis.decided() {
        if !fuel.burn() {
            break;
        }
        decided += 1;
        let data = &view.body().insts[inst];
        let text = site.module.text(warpwright_ptx::Span::new(
            data.opcode_span.start,
            data.span.end,
        ));
        match is_taken {
            true => edits.replace(data.span, text),
            false => edits.delete_inst(site.kernel, inst),
        }
    }
    Ok((edits.apply()?, decided))
}

struct Analysis<'a> {
    view: &'a View<'a>,
    rules: Rules<'a>,
    cfg: Cfg,
    entries: Vec<Option<State>>,
    visits: Vec<u32>,
}

fn ptx(inst: FlowInst) -> Inst {
    Inst::from_u32(inst.0)
}

impl<'a> Analysis<'a> {
    fn new(view: &'a View<'a>, guard: &'a Guard) -> Self {
        let cfg = Cfg::new(view);
        Analysis {
            entries: vec![None; cfg.block_count()],
            visits: vec![0; cfg.block_count()],
            cfg,
            view,
            rules: Rules { view, guard },
        }
    }

    fn settle(&mut self) {
        let Some(first) = self.entries.first_mut() else {
            return;
        };
        *first = Some(State::new());
        let mut work = BTreeSet::from([(0, Block(0))]);
        while let Some((_, block)) = work.pop_first() {
            let Some(state) = self.at_end(block) else {
                continue;
            };
            for to in self.ways(block, &state) {
                if self.enter(to, &state) {
                    work.extend(self.cfg.rpo_number(to).map(|number| (number, to)));
                }
            }
        }
    }

    /// Branches that are always or never taken, where control comes to them.
    fn decided(&self) -> Vec<(Inst, bool)> {
        let blocks = self.cfg.blocks();
        let of = |block: Block| {
            let state = self.at_end(block)?;
            let last = self.cfg.last_inst(block);
            let is_branch =
                self.view.transfer(last) == Transfer::Jump && self.view.is_predicated(last);
            let is_way =
                is_branch || matches!(self.view.transfer(last), Transfer::Return | Transfer::Exit);
            let holds = self.guard_of(ptx(last), &state).filter(|_| is_way)?;
            Some((ptx(last), holds))
        };
        blocks.filter_map(of).collect()
    }

    fn at_end(&self, block: Block) -> Option<State> {
        let mut state = self.entries[block.0 as usize].clone()?;
        for inst in self.cfg.insts(block) {
            self.execute(ptx(inst), &mut state);
        }
        Some(state)
    }

    fn guard_of(&self, inst: Inst, state: &State) -> Option<bool> {
        let guard = self.view.body().insts[inst].guard?;
        let &(low, high) = state.get(&guard.reg)?;
        (low == high).then_some((low == 1) != guard.negated)
    }

    fn ways(&self, block: Block, state: &State) -> Vec<Block> {
        let last = self.cfg.last_inst(block);
        let all = || self.cfg.succs(block).to_vec();
        if !matches!(
            self.view.transfer(last),
            Transfer::Jump | Transfer::Return | Transfer::Exit
        ) {
            return all();
        }
        let mut taken = Vec::new();
        self.view
            .for_each_target(last, |target| taken.push(self.cfg.block_of(target)));
        match self.guard_of(ptx(last), state) {
            None => all(),
            Some(true) => taken,
            Some(false) => {
                let next = FlowInst(last.0 + 1);
                let is_inside = (next.0 as usize) < self.view.inst_count();
                is_inside
                    .then(|| self.cfg.block_of(next))
                    .into_iter()
                    .collect()
            }
        }
    }

    fn enter(&mut self, to: Block, state: &State) -> bool {
        let index = to.0 as usize;
        let Some(before) = &mut self.entries[index] else {
            self.entries[index] = Some(state.clone());
            return true;
        };
        let mut is_changed = false;
        let is_late = self.visits[index] >= VISITS;
        before.retain(|reg, range| {
            let joined = state.get(reg).map(|&other| join(*range, other));
            let is_same = joined == Some(*range);
            is_changed |= !is_same;
            match joined {
                Some(joined) if is_same || !is_late => {
                    *range = joined;
                    true
                }
                _ => false,
            }
        });
        self.visits[index] += u32::from(is_changed);
        is_changed
    }

    fn execute(&self, inst: Inst, state: &mut State) {
        let body = self.view.body();
        let guard = body.insts[inst].guard;
        let holds = self.guard_of(inst, state);
        if holds == Some(false) {
            return;
        }
        let result = self.rules.result(inst, &|reg| state.get(&reg).copied());
        for reg in self.view.defs(inst) {
            let is_first =
                matches!(body.operands(inst).first(), Some(Operand::Reg(first)) if *first == reg);
            let new = result.filter(|_| is_first);
            let new = match (guard.is_some() && holds.is_none(), state.get(&reg)) {
                (false, _) => new,
                (true, Some(&old)) => new.map(|new| join(old, new)),
                (true, None) => None,
            };
            match new {
                Some(range) => drop(state.insert(reg, range)),
                None => drop(state.remove(&reg)),
            }
        }
    }
}

/// What instructions compute of numbers whose sign bit is clear.
#[derive(Clone, Copy)]
pub(super) struct Rules<'a> {
    pub(super) view: &'a View<'a>,
    pub(super) guard: &'a Guard,
}

impl Rules<'_> {
    /// What an instruction's first result can be.
    pub(super) fn result(&self, inst: Inst, read: &dyn Fn(Reg) -> Option<Range>) -> Option<Range> {
        let body = self.view.body();
        let opcode = self.view.module().opcode(&body.insts[inst]);
        let operands = body.operands(inst);
        let ty = *opcode.types.last()?;
        let arg = |n: usize| self.operand(operands.get(n)?, ty, read);
        let of_pred = |n: usize| match operands.get(n)? {
            Operand::Reg(reg) => read(*reg),
            _ => None,
        };
        let to = bits_of(*opcode.types.first()?)?;
        let words: Vec<&str> = opcode.mods().collect();
        let range = match (opcode.op?, words.as_slice()) {
            (Op::Mov, [_]) => arg(1)?,
            (Op::Cvt, [_, _]) => arg(1)?,
            (Op::Add, [_]) => sum(arg(1)?, arg(2)?)?,
            (Op::Sub, [_]) => {
                let ((a, b), (c, d)) = (arg(1)?, arg(2)?);
                (a.checked_sub(d)?, b - c)
            }
            (Op::Mul, ["lo", _]) => product(arg(1)?, arg(2)?)?,
            (Op::Mul, ["wide", _]) => return fits(product(arg(1)?, arg(2)?)?, 2 * to),
            (Op::Mad, ["lo", _]) => sum(product(arg(1)?, arg(2)?)?, arg(3)?)?,
            (Op::Mad, ["wide", _]) => {
                let wide = if to == 32 { Type::U64 } else { Type::U32 };
                let third = self.operand(operands.get(3)?, wide, read)?;
                return fits(sum(product(arg(1)?, arg(2)?)?, third)?, 2 * to);
            }
            (Op::Shl, [_]) => {
                let by = self.amount(operands.get(2)?, read)?;
                product(arg(1)?, (1 << by, 1 << by))?
            }
            (Op::Shr, [_]) => {
                let by = self.amount(operands.get(2)?, read)?;
                let (low, high) = arg(1)?;
                (low >> by, high >> by)
            }
            (Op::And, [_]) => (
                0,
                [1, 2]
                    .into_iter()
                    .filter_map(&arg)
                    .map(|range| range.1)
                    .min()?,
            ),
            (Op::Rem, [_]) => {
                let ((low, high), (least, most)) = (arg(1)?, arg(2)?);
                let most = most.checked_sub(1)?;
                if high < least {
                    (low, high)
                } else {
                    (0, high.min(most))
                }
            }
            (Op::Div, [_]) => {
                let ((a, b), (c, d)) = (arg(1)?, arg(2)?);
                (a.checked_div(d)?, b.checked_div(c)?)
            }
            (Op::Min, [_]) => {
                let ((a, b), (c, d)) = (arg(1)?, arg(2)?);
                (a.min(c), b.min(d))
            }
            (Op::Max, [_]) => {
                let ((a, b), (c, d)) = (arg(1)?, arg(2)?);
                (a.max(c), b.max(d))
            }
            (Op::Selp, [_]) => match of_pred(3) {
                Some((1, 1)) => arg(1)?,
                Some((0, 0)) => arg(2)?,
                _ => join(arg(1)?, arg(2)?),
            },
            (Op::Setp, [name, _]) => return compare(name, arg(1)?, arg(2)?),
            _ => return None,
        };
        fits(range, to)
    }

    /// A shift's amount.
    fn amount(&self, operand: &Operand, read: &dyn Fn(Reg) -> Option<Range>) -> Option<u64> {
        let (low, high) = self.operand(operand, Type::U32, read)?;
        (low == high && low < 31).then_some(low)
    }

    /// A number whose sign bit is clear.
    pub(super) fn operand(
        &self,
        operand: &Operand,
        ty: Type,
        read: &dyn Fn(Reg) -> Option<Range>,
    ) -> Option<Range> {
        let bits = bits_of(ty)?;
        match *operand {
            Operand::Reg(reg) if bits_of(self.view.body().reg_type(reg)) == Some(bits) => read(reg),
            Operand::Imm(imm) => {
                let value = imm.seen_as(ty);
                fits((value, value), bits)
            }
            Operand::Special { reg, part } => {
                let of = match reg {
                    SpecialReg::Tid => Quantity::Block,
                    SpecialReg::CtaId => Quantity::Grid,
                    _ => return None,
                };
                let most = self.guard.value(of(axis(part)?))?;
                fits((0, most.checked_sub(1)?), bits)
            }
            _ => None,
        }
    }
}

/// Bits of a type of integers.
pub(in crate::ptx) fn bits_of(ty: Type) -> Option<u32> {
    use Type::{B16, B32, B64, S16, S32, S64, U16, U32, U64};
    matches!(ty, B16 | B32 | B64 | S16 | S32 | S64 | U16 | U32 | U64).then(|| ty.bits())
}

fn fits(range: Range, bits: u32) -> Option<Range> {
    (range.1 < 1 << (bits - 1)).then_some(range)
}

fn join(a: Range, b: Range) -> Range {
    (a.0.min(b.0), a.1.max(b.1))
}

fn sum(a: Range, b: Range) -> Option<Range> {
    Some((a.0.checked_add(b.0)?, a.1.checked_add(b.1)?))
}

fn product(a: Range, b: Range) -> Option<Range> {
    Some((a.0.checked_mul(b.0)?, a.1.checked_mul(b.1)?))
}

/// The answer of a comparison, if it is one.
fn compare(name: &str, a: Range, b: Range) -> Option<Range> {
    let less = |a: Range, b: Range| match (a.1 < b.0, a.0 >= b.1) {
        (true, _) => Some(true),
        (_, true) => Some(false),
        _ => None,
    };
    let holds = match name {
        "lt" | "lo" => less(a, b)?,
        "gt" | "hi" => less(b, a)?,
        "ge" | "hs" => !less(a, b)?,
        "le" | "ls" => !less(b, a)?,
        "eq" | "ne" => {
            let is_one = a.0 == a.1 && a == b;
            let are_apart = a.1 < b.0 || b.1 < a.0;
            if !is_one && !are_apart {
                return None;
            }
            is_one == (name == "eq")
        }
        _ => return None,
    };
    let bit = u64::from(holds);
    Some((bit, bit))
}
