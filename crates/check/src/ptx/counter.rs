//! What decides how often a loop of one block turns, where that is a number that grows by a constant.

use warpwright_ptx::opcode::{Control, Op};
use warpwright_ptx::{Inst, Operand, Reg, Type, View};

/// A register that the branch back goes by. Nothing that is proved rests on what is said here: it names the turns that the form
/// of a loop leaves to the loop as written.
#[derive(Clone, Debug)]
pub(super) struct Counter {
    pub(super) index: Reg,
    pub(super) step: i64,
    /// What it is compared with, as an operand.
    pub(super) limit: String,
    /// The type of the comparison.
    pub(super) ty: Type,
    /// Does the loop turn while the index is on its side of the limit, or only until both are equal?
    pub(super) is_ordered: bool,
    /// Is it compared after it has grown?
    grows_first: bool,
    /// The limit, if it is a number.
    number: Option<i64>,
}

impl Counter {
    /// Of instructions that end with a guarded branch back.
    pub(super) fn of(view: &View<'_>, insts: &[Inst]) -> Option<Counter> {
        let body = view.body();
        let guard = body.insts[*insts.last()?].guard?;
        let test = only_set(view, insts, guard.reg)?;
        let opcode = view.module().opcode(&body.insts[test]);
        let words: Vec<&str> = opcode.mods().collect();
        let (&[how, _], &[ty]) = (words.as_slice(), opcode.types.as_slice()) else {
            return None;
        };
        let is_plain = opcode.op == Some(Op::Setp)
            && opcode.control() == Control::Next
            && body.insts[test].guard.is_none();
        let ty = match ty {
            Type::B32 => Type::U32,
            Type::B64 => Type::U64,
            ty => ty,
        };
        if !is_plain || !matches!(ty, Type::S32 | Type::U32 | Type::S64 | Type::U64) {
            return None;
        }
        let ids: Vec<_> = body.insts[test].operands.ids().collect();
        let &[_, a, b] = ids.as_slice() else {
            return None;
        };
        [(a, b, false), (b, a, true)]
            .into_iter()
            .find_map(|(moving, staying, is_swapped)| {
                let Operand::Reg(index) = body.operands[moving] else {
                    return None;
                };
                let number = match body.operands[staying] {
                    Operand::Imm(number) => Some(as_signed(number.seen_as(ty), ty.bits())),
                    Operand::Reg(reg)
                        if !is_set(view, insts, reg) && body.reg_type(reg).bits() == ty.bits() =>
                    {
                        None
                    }
                    _ => return None,
                };
                let grows = only_set(view, insts, index)?;
                let step = growth(view, grows, index, ty.bits())?;
                let is_ordered = match (way(how, guard.negated, is_swapped)?, step > 0) {
                    (Way::Differs, _) => false,
                    (Way::Below, true) | (Way::Above, false) => true,
                    _ => return None,
                };
                Some(Counter {
                    index,
                    step,
                    limit: view.module().text(body.operand_spans[staying]).to_owned(),
                    ty,
                    is_ordered,
                    grows_first: grows < test,
                    number,
                })
            })
    }

    /// How far the index must be from the limit, in the direction in which it grows, for so many turns.
    pub(super) fn reach(&self, turns: u32) -> Option<i64> {
        let stride = self.step.checked_abs()?;
        let before = if self.grows_first { stride } else { 0 };
        let reach = stride
            .checked_mul(i64::from(turns) - 2)?
            .checked_add(before)?;
        (reach < 1 << (self.ty.bits() - 2).min(62)).then_some(reach)
    }

    /// The most turns that the index's first value allows, where it is known or the low bits of something.
    pub(super) fn most_turns(&self, view: &View<'_>, insts: &[Inst]) -> Option<u64> {
        let body = view.body();
        let outside = body.insts.keys().filter(|inst| !insts.contains(inst));
        let mut all = outside.filter(|&inst| view.defs(inst).contains(&self.index));
        let (Some(set), None) = (all.next(), all.next()) else {
            return None;
        };
        let limit = self.number?;
        let opcode = view.module().opcode(&body.insts[set]);
        let first = match (opcode.op?, body.operands(set)) {
            (Op::Mov, &[_, Operand::Imm(number)]) => {
                as_signed(number.seen_as(self.ty), self.ty.bits())
            }
            (Op::And, &[_, _, Operand::Imm(mask)]) if self.step < 0 && limit == 0 => {
                i64::try_from(mask.seen_as(self.ty)).ok()?
            }
            _ => return None,
        };
        let far = limit.checked_sub(first)?.checked_mul(self.step.signum())?;
        Some(u64::try_from(far).ok()?.div_ceil(self.step.unsigned_abs()))
    }
}

/// Where the index must be for the loop to turn.
enum Way {
    Below,
    Above,
    Differs,
}

/// Of a comparison of the index with the limit, or `swapped`; the branch back is taken where it holds, or where it fails
/// (`negated`).
fn way(how: &str, negated: bool, swapped: bool) -> Option<Way> {
    let below = match how {
        "ne" | "eq" => return ((how == "eq") == negated).then_some(Way::Differs),
        "lt" | "le" | "lo" | "ls" => true,
        "gt" | "ge" | "hi" | "hs" => false,
        _ => return None,
    };
    match below != (negated != swapped) {
        true => Some(Way::Below),
        false => Some(Way::Above),
    }
}

/// Does one of the instructions set a register?
pub(super) fn is_set(view: &View<'_>, insts: &[Inst], reg: Reg) -> bool {
    insts.iter().any(|&inst| view.defs(inst).contains(&reg))
}

fn only_set(view: &View<'_>, insts: &[Inst], reg: Reg) -> Option<Inst> {
    let mut setting = insts.iter().filter(|&&inst| view.defs(inst).contains(&reg));
    match (setting.next(), setting.next()) {
        (Some(&only), None) => Some(only),
        _ => None,
    }
}

/// The constant that an instruction adds to a register.
fn growth(view: &View<'_>, inst: Inst, reg: Reg, bits: u32) -> Option<i64> {
    let body = view.body();
    let opcode = view.module().opcode(&body.insts[inst]);
    let &[ty @ (Type::S32 | Type::U32 | Type::S64 | Type::U64)] = opcode.types.as_slice() else {
        return None;
    };
    let &[_, Operand::Reg(from), Operand::Imm(by)] = body.operands(inst) else {
        return None;
    };
    let is_plain = body.insts[inst].guard.is_none() && opcode.mods().count() == 1;
    if !is_plain || from != reg || ty.bits() != bits || body.reg_type(reg).bits() != bits {
        return None;
    }
    let by = as_signed(by.seen_as(ty), bits);
    match opcode.op? {
        Op::Add if by != 0 => Some(by),
        Op::Sub if by != 0 => by.checked_neg(),
        _ => None,
    }
}

fn as_signed(value: u64, bits: u32) -> i64 {
    ((value << (64 - bits)) as i64) >> (64 - bits)
}
