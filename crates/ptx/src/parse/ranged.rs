//! Registers of ranges (`.reg .b32 %r<100>;`): one exists from its first use on, so that a declaration costs
//! nothing, whatever number it says.

use rustc_hash::FxHashMap;

use super::Parser;
use crate::ir::{Base, Body, Operand, Reg, RegData, RegDeclId};
use crate::names::{Entity, Found};

/// The registers of ranges that were used so far, by declaration and number.
#[derive(Default)]
pub(super) struct Ranged {
    /// By number, for each declaration; grows no faster than what is used.
    low: Vec<Vec<Option<Reg>>>,
    /// The others.
    rest: FxHashMap<(RegDeclId, u32), Reg>,
}

impl Ranged {
    fn get(&self, decl: RegDeclId, number: u32) -> Option<Reg> {
        let low = self.low.get(decl.as_u32() as usize);
        match low.and_then(|low| *low.get(number as usize)?) {
            None if !self.rest.is_empty() => self.rest.get(&(decl, number)).copied(),
            found => found,
        }
    }

    fn insert(&mut self, decl: RegDeclId, number: u32, reg: Reg) {
        let (decl_at, at) = (decl.as_u32() as usize, number as usize);
        if self.low.len() <= decl_at {
            self.low.resize_with(decl_at + 1, Vec::new);
        }
        let low = &mut self.low[decl_at];
        if at < low.len() {
            low[at] = Some(reg);
        } else if at < 2 * low.len() + 16 {
            low.resize(at + 1, None);
            low[at] = Some(reg);
        } else {
            self.rest.insert((decl, number), reg);
        }
    }
}

impl<'s> Parser<'s> {
    /// What a name stands for at this place; a register of a range is used from now on.
    #[inline]
    pub(super) fn find(&mut self, name: &str) -> Option<Found> {
        let found = self.names.find(name)?;
        let Entity::Ranged { decl, number } = found.entity else {
            return Some(found);
        };
        let reg = match self.work.ranged.get(decl, number) {
            Some(reg) => reg,
            None => {
                let body = &mut self.work.body;
                let ty = body.reg_decls[decl].ty;
                let reg = body.regs.push(RegData::new(ty, decl, Some(number)));
                self.work.ranged.insert(decl, number, reg);
                reg
            }
        };
        Some(Found {
            entity: Entity::Reg(reg),
            ..found
        })
    }
}

/// Numbers the registers in the order of their declarations, whichever was used first.
pub(super) fn order(body: &mut Body) {
    let place = |data: &RegData| (data.decl, data.index());
    if body.regs.values().is_sorted_by_key(place) {
        return;
    }
    let mut order: Vec<Reg> = body.regs.keys().collect();
    order.sort_unstable_by_key(|&reg| place(&body.regs[reg]));
    let mut new = vec![Reg::from_u32(0); order.len()];
    for (at, old) in order.iter().enumerate() {
        new[old.as_u32() as usize] = Reg::from_u32(at as u32);
    }
    let old = std::mem::take(&mut body.regs);
    body.regs = order.iter().map(|&reg| old[reg]).collect();
    let renumber = |reg: &mut Reg| *reg = new[reg.as_u32() as usize];
    for operand in body.operands.values_mut() {
        match operand {
            Operand::Reg(reg)
            | Operand::Not(reg)
            | Operand::Neg(reg)
            | Operand::Sum { reg, .. }
            | Operand::Select { reg, .. } => renumber(reg),
            Operand::Mem(address) => {
                if let Base::Reg(reg) = &mut address.base {
                    renumber(reg);
                }
            }
            Operand::Special { .. }
            | Operand::Imm(_)
            | Operand::Symbol { .. }
            | Operand::MemTuple(_)
            | Operand::Vector(_)
            | Operand::Pair(_)
            | Operand::List(_)
            | Operand::Label(_)
            | Operand::Sink
            | Operand::BranchTable(_)
            | Operand::CallTable(_)
            | Operand::Prototype(_)
            | Operand::Unresolved => {}
        }
    }
    let guards = body
        .insts
        .values_mut()
        .filter_map(|inst| inst.guard.as_mut());
    guards.for_each(|guard| renumber(&mut guard.reg));
}
