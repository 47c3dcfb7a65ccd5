//! Loops whose iterations can be counted ahead: one register moves by a constant in each, and the test at the end
//! compares it with a value that stays.
//!
//! Let the test before the branch back compare `i + offset + (j - 1) * step` in iteration j, where `i` is the register on
//! arrival at the header. All of the first `factor - 1` tests go on if `i` is on this side of the limit and more than
//! `reach = offset + (factor - 2) * step` away from it: the values that are compared then lie between `i` and the limit, so
//! none wraps around, whatever the width. Where that cannot be said the remainder loop runs, so it need not be exact.

use std::collections::BTreeMap;

use warpwright_flow::{Cfg, Dominators};
use warpwright_ptx::opcode::{Control, Op};
use warpwright_ptx::{Edits, FuncId, Inst, Operand, Reg, Type, View};

use super::region::Region;
use crate::refusal::Refusal;

/// How a counted loop goes on.
pub(in crate::ptx) struct Counted {
    /// The register that moves.
    index: String,
    reg: Reg,
    /// How far it moves in an iteration.
    stride: u64,
    /// What it is compared with: a register that stays, or a number.
    limit: String,
    /// The integer type of the comparison.
    ty: Type,
    /// Must it lie below the limit, above it, or only not meet it?
    side: Side,
    /// Does it count up?
    is_up: bool,
    /// How far the compared values go from the index, in the direction of the step.
    reach: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Below,
    Above,
    Apart,
}

/// A register's value in an iteration: what another one held on arrival at the header, and a constant.
type Linear = (Reg, i64);

const NOT_COUNTED: Refusal =
    Refusal::InTheWay("the iterations of its loop cannot be counted ahead");

impl Counted {
    /// # Errors
    /// The loop has other exits, or is not counted.
    pub(in crate::ptx) fn new(
        view: &View<'_>,
        cfg: &Cfg,
        region: &Region<'_>,
        factor: u32,
    ) -> Result<Counted, Refusal> {
        if region.has_other_ways() {
            return Err(Refusal::InTheWay(
                "its loop has exits beside the test at its end",
            ));
        }
        let body = view.body();
        let guard = body.insts[region.last()].guard.ok_or(NOT_COUNTED)?;
        let walk = Walk::new(view, cfg, region);
        let test = walk.tests.get(&guard.reg).ok_or(NOT_COUNTED)?;
        let found = test.iter().find_map(|compared| {
            let (index, offset) = compared.index?;
            let step = walk.steps.get(&index).filter(|(from, _)| *from == index)?.1;
            Some((compared, index, offset, step))
        });
        let (compared, index, offset, step) = found.ok_or(NOT_COUNTED)?;
        let is_up = step > 0;
        let (offset, stride) = if is_up {
            (offset, step)
        } else {
            (-offset, -step)
        };
        let continues = compared.comparison.negated_if(guard.negated);
        let side = continues.side(is_up).ok_or(NOT_COUNTED)?;
        let ahead = i64::from(factor) - 2;
        let reach = stride
            .checked_mul(ahead)
            .and_then(|far| far.checked_add(offset));
        let most = 1i64 << (compared.ty.bits() - 2).min(62);
        let reach = reach.filter(|reach| (0..most).contains(reach) && offset >= 0 && stride > 0);
        Ok(Counted {
            index: body.reg_name(index).to_string(),
            reg: index,
            stride: stride.unsigned_abs(),
            limit: compared.limit.clone(),
            ty: compared.ty,
            side,
            is_up,
            reach: reach.ok_or(NOT_COUNTED)?.unsigned_abs(),
        })
    }

    /// The lines that lead to `rest` unless all copies run, with registers of their own. Two tests stand apart, since a
    /// proof takes them one by one.
    pub(in crate::ptx) fn test(
        &self,
        kernel: FuncId,
        rest: &str,
        edits: &mut Edits<'_>,
    ) -> Result<Vec<String>, Refusal> {
        let bits = self.ty.bits();
        let distance = edits.fresh_name("%du");
        edits.add_declaration(kernel, &format!(".reg .b{bits} {distance};"))?;
        let (from, to) = match self.is_up {
            true => (&self.index, &self.limit),
            false => (&self.limit, &self.index),
        };
        let sign = if self.is_signed() { 's' } else { 'u' };
        let is_near = format!("setp.lt.{sign}{bits} {{}}, {from}, {to};");
        let is_far = format!("setp.gt.u{bits} {{}}, {distance}, {};", self.reach);
        let mut tests = vec![is_far];
        if self.side != Side::Apart {
            tests.insert(0, is_near);
        }
        let mut lines = vec![format!("sub.s{bits} {distance}, {to}, {from};")];
        for test in tests {
            let predicate = edits.fresh_name("%pu");
            edits.add_register(kernel, Type::Pred, &predicate)?;
            lines.push(test.replace("{}", &predicate));
            lines.push(format!("@!{predicate} bra {rest};"));
        }
        Ok(lines)
    }

    /// The most iterations there can be, where the register's value in front of the loop says it: a constant, or the low bits of
    /// a number that a loop of several iterations at once leaves over.
    pub(in crate::ptx) fn most(&self, view: &View<'_>, region: &Region<'_>) -> Option<u64> {
        let body = view.body();
        let is_outside = |at: &Inst| region.insts().all(|own| own != *at);
        let sets = |at: &Inst| is_outside(at) && view.defs(*at).contains(&self.reg);
        let mut all = body.insts.keys().filter(sets);
        let (Some(set), None) = (all.next(), all.next()) else {
            return None;
        };
        let opcode = view.module().opcode(&body.insts[set]);
        let limit: i64 = self.limit.parse().ok()?;
        let first = match (opcode.op?, body.operands(set)) {
            (Op::Mov, &[_, Operand::Imm(number)]) => {
                signed(number.seen_as(self.ty), self.ty.bits())
            }
            // From there down to nought, or fewer.
            (Op::And, &[_, _, Operand::Imm(mask)]) if !self.is_up && limit == 0 => {
                i64::try_from(mask.seen_as(self.ty)).ok()?
            }
            _ => return None,
        };
        let far = if self.is_up {
            limit.checked_sub(first)?
        } else {
            first.checked_sub(limit)?
        };
        Some(u64::try_from(far).ok()?.div_ceil(self.stride))
    }

    fn is_signed(&self) -> bool {
        matches!(self.ty, Type::S32 | Type::S64)
    }
}

/// A comparison of integers.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Comparison {
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Equal,
    Differs,
}

impl Comparison {
    fn parse(word: &str) -> Option<Comparison> {
        Some(match word {
            "lt" | "lo" => Comparison::Less,
            "le" | "ls" => Comparison::LessOrEqual,
            "gt" | "hi" => Comparison::Greater,
            "ge" | "hs" => Comparison::GreaterOrEqual,
            "eq" => Comparison::Equal,
            "ne" => Comparison::Differs,
            _ => return None,
        })
    }

    fn negated_if(self, negated: bool) -> Comparison {
        use Comparison::{Differs, Equal, Greater, GreaterOrEqual, Less, LessOrEqual};
        match (self, negated) {
            (own, false) => own,
            (Less, true) => GreaterOrEqual,
            (LessOrEqual, true) => Greater,
            (Greater, true) => LessOrEqual,
            (GreaterOrEqual, true) => Less,
            (Equal, true) => Differs,
            (Differs, true) => Equal,
        }
    }

    fn swapped(self) -> Comparison {
        use Comparison::{Greater, GreaterOrEqual, Less, LessOrEqual};
        match self {
            Less => Greater,
            LessOrEqual => GreaterOrEqual,
            Greater => Less,
            GreaterOrEqual => LessOrEqual,
            own => own,
        }
    }

    /// On which side of the limit the index must be for the loop to go on.
    fn side(self, is_up: bool) -> Option<Side> {
        match (self, is_up) {
            (Comparison::Less | Comparison::LessOrEqual, true) => Some(Side::Below),
            (Comparison::Greater | Comparison::GreaterOrEqual, false) => Some(Side::Above),
            (Comparison::Differs, _) => Some(Side::Apart),
            _ => None,
        }
    }
}

/// One reading of a test: an operand that moves, against one that stays.
struct Compared {
    comparison: Comparison,
    ty: Type,
    index: Option<Linear>,
    limit: String,
}

/// A walk over one iteration.
struct Walk {
    /// What each predicate was last set by, in both readings.
    tests: BTreeMap<Reg, Vec<Compared>>,
    /// What registers hold at the end, where that is known.
    steps: BTreeMap<Reg, Linear>,
}

impl Walk {
    fn new(view: &View<'_>, cfg: &Cfg, region: &Region<'_>) -> Walk {
        let dominators = Dominators::new(cfg);
        let latch = region.blocks().last().copied();
        let mut written: BTreeMap<Reg, Option<Linear>> = BTreeMap::new();
        let mut tests: BTreeMap<Reg, Vec<Compared>> = BTreeMap::new();
        let stays: BTreeMap<Reg, ()> = region
            .insts()
            .flat_map(|at| view.defs(at))
            .map(|reg| (reg, ()))
            .collect();
        for at in region.insts() {
            let block = cfg.block_of(warpwright_flow::Inst(at.as_u32()));
            let is_certain = view.body().insts[at].guard.is_none()
                && latch.is_some_and(|latch| dominators.dominates(block, latch));
            let value = is_certain.then(|| linear(view, at, &written)).flatten();
            let test = is_certain
                .then(|| compared(view, at, &written, &stays))
                .flatten();
            for reg in view.defs(at) {
                written.insert(reg, value);
                tests.remove(&reg);
            }
            if let Some((predicate, readings)) = test {
                tests.insert(predicate, readings);
            }
        }
        let steps = written
            .into_iter()
            .filter_map(|(reg, value)| Some((reg, value?)))
            .collect();
        Walk { tests, steps }
    }
}

/// What a register holds, where that is known.
fn held(reg: Reg, written: &BTreeMap<Reg, Option<Linear>>) -> Option<Linear> {
    written.get(&reg).copied().unwrap_or(Some((reg, 0)))
}

/// The value of an addition of a constant, or of a copy. Registers have the width of the operation.
fn linear(view: &View<'_>, at: Inst, written: &BTreeMap<Reg, Option<Linear>>) -> Option<Linear> {
    let body = view.body();
    let opcode = view.module().opcode(&body.insts[at]);
    let &[ty] = opcode.types.as_slice() else {
        return None;
    };
    let operands = body.operands(at);
    let fits = |reg: Reg| body.reg_type(reg).bits() == ty.bits();
    let plain = opcode.mods().count() == 1 && matches!(ty.bits(), 32 | 64);
    match (opcode.op, operands) {
        _ if !plain => None,
        (Some(Op::Mov), &[Operand::Reg(to), Operand::Reg(of)]) if fits(to) && fits(of) => {
            held(of, written)
        }
        (
            Some(op @ (Op::Add | Op::Sub)),
            &[Operand::Reg(to), Operand::Reg(of), Operand::Imm(by)],
        ) if fits(to) && fits(of) && is_integer(ty) => {
            let by = signed(by.seen_as(ty), ty.bits());
            let by = if op == Op::Add { by } else { by.checked_neg()? };
            let (reg, offset) = held(of, written)?;
            Some((reg, offset.checked_add(by)?))
        }
        _ => None,
    }
}

/// Both readings of a comparison.
fn compared(
    view: &View<'_>,
    at: Inst,
    written: &BTreeMap<Reg, Option<Linear>>,
    moves: &BTreeMap<Reg, ()>,
) -> Option<(Reg, Vec<Compared>)> {
    let body = view.body();
    let opcode = view.module().opcode(&body.insts[at]);
    let &[ty] = opcode.types.as_slice() else {
        return None;
    };
    if opcode.op != Some(Op::Setp)
        || opcode.mods().count() != 2
        || opcode.control() != Control::Next
    {
        return None;
    }
    let comparison = Comparison::parse(opcode.mods().next()?)?;
    let &[Operand::Reg(predicate), a, b] = body.operands(at) else {
        return None;
    };
    let ty = integer_of(ty)?;
    let stays = |operand: Operand| match operand {
        Operand::Imm(number) => Some(match ty {
            Type::S32 | Type::S64 => signed(number.seen_as(ty), ty.bits()).to_string(),
            _ => number.seen_as(ty).to_string(),
        }),
        Operand::Reg(reg)
            if !moves.contains_key(&reg) && body.reg_type(reg).bits() == ty.bits() =>
        {
            Some(body.reg_name(reg).to_string())
        }
        _ => None,
    };
    let reading = |x: Operand, y: Operand, comparison: Comparison| {
        let Operand::Reg(reg) = x else { return None };
        let is_wide = body.reg_type(reg).bits() == ty.bits();
        Some(Compared {
            comparison,
            ty,
            index: held(reg, written).filter(|_| is_wide),
            limit: stays(y)?,
        })
    };
    let readings = [
        reading(a, b, comparison),
        reading(b, a, comparison.swapped()),
    ];
    Some((predicate, readings.into_iter().flatten().collect()))
}

fn is_integer(ty: Type) -> bool {
    matches!(ty, Type::S32 | Type::U32 | Type::S64 | Type::U64)
}

/// The integer type by which words are compared: of bits alone, equality is that of numbers.
fn integer_of(ty: Type) -> Option<Type> {
    match ty {
        Type::B32 => Some(Type::U32),
        Type::B64 => Some(Type::U64),
        ty => is_integer(ty).then_some(ty),
    }
}

fn signed(bits: u64, width: u32) -> i64 {
    let unused = 64 - width;
    ((bits << unused) as i64) >> unused
}
