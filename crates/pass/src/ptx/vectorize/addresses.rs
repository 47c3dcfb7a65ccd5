//! Addresses of a block as the value of something and a constant.

use std::collections::BTreeMap;

use warpwright_ptx::opcode::Op;
use warpwright_ptx::{Base, Inst, Operand, Reg, View};

/// Where an access goes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    /// The register in its text, and the constant behind it.
    pub(super) base: Reg,
    pub(super) written: i64,
    /// The value that the register was made of by adding constants, and all of these.
    pub(super) root: u32,
    pub(super) offset: i64,
}

/// Where the accesses of a block go.
pub(super) struct Addresses {
    places: BTreeMap<Inst, Place>,
}

impl Addresses {
    pub(super) fn new(view: &View<'_>, insts: &[Inst]) -> Addresses {
        let body = view.body();
        let mut values: BTreeMap<Reg, (u32, i64)> = BTreeMap::new();
        let mut next = 0;
        let mut new = || {
            next += 1;
            (next, 0)
        };
        let mut places = BTreeMap::new();
        for &inst in insts {
            let operands = body.operands(inst);
            for operand in operands {
                if let Operand::Mem(address) = *operand
                    && let Base::Reg(base) = address.base
                {
                    let (root, offset) = *values.entry(base).or_insert_with(&mut new);
                    let place = Place {
                        base,
                        written: address.offset,
                        root,
                        offset: offset + address.offset,
                    };
                    places.insert(inst, place);
                }
            }
            let sum = added(view, inst).map(|(of, by)| {
                let (root, offset) = *values.entry(of).or_insert_with(&mut new);
                (root, offset.wrapping_add(by))
            });
            for reg in view.defs(inst) {
                let value = sum.unwrap_or_else(&mut new);
                values.insert(reg, value);
            }
        }
        Addresses { places }
    }

    pub(super) fn place(&self, inst: Inst) -> Option<Place> {
        // Far from where the register points, sums might wrap around.
        const NEAR: i64 = 1 << 20;
        let place = self.places.get(&inst).copied();
        place.filter(|place| place.offset.abs() < NEAR && place.written.abs() < NEAR)
    }
}

/// The register and the constant of an addition of 64 bits that is executed in any case.
fn added(view: &View<'_>, inst: Inst) -> Option<(Reg, i64)> {
    let body = view.body();
    let data = &body.insts[inst];
    let opcode = view.module().opcode(data);
    let is_plain = data.guard.is_none() && opcode.mods().count() == 1;
    let ty = *opcode
        .types
        .first()
        .filter(|ty| ty.bits() == 64 && is_plain)?;
    match (opcode.op?, body.operands(inst)) {
        (Op::Add, &[Operand::Reg(_), Operand::Reg(of), Operand::Imm(by)]) => {
            Some((of, by.seen_as(ty) as i64))
        }
        (Op::Sub, &[Operand::Reg(_), Operand::Reg(of), Operand::Imm(by)]) => {
            Some((of, (by.seen_as(ty) as i64).checked_neg()?))
        }
        (Op::Mov, &[Operand::Reg(_), Operand::Reg(of)]) => Some((of, 0)),
        _ => None,
    }
}
