//! What a kernel makes of the coordinates of its threads.
//!
//! Each register is followed as a sum of coordinates times factors, at both launches at once, or as something that is the
//! same for a thread whatever the shape. A sum that is the same multiple of the thread's number in both is such a thing, too. What is
//! neither must not reach memory, a branch, or what threads do together.

use std::collections::BTreeMap;

use warpwright_launch::Extents;
use warpwright_ptx::opcode::Op;
use warpwright_ptx::{Inst, Opcode, Operand, Part, Reg, SpecialReg, Type, TypeKind, View};

/// How the threads of a grid are numbered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Numbering {
    /// Along each axis.
    Axes,
    /// In one line: within a block with x innermost, then block after block.
    Line,
}

/// Factors of `%tid` and `%ctaid` along the axes, and a constant, modulo 2^64.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Sum {
    tid: [u64; 3],
    ctaid: [u64; 3],
    constant: u64,
}

/// What is known of a register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Value {
    /// A function of the thread's number and of what all threads know.
    Kept,
    /// This sum at the old launch and at the new one, and, if `plus`, something kept.
    Sums { of: [Sum; 2], plus: bool },
    /// It comes of this special register in another way.
    Spoiled(SpecialReg),
}

/// The two launches.
#[derive(Debug, Clone, Copy)]
pub(super) struct Map {
    pub(super) launches: [Extents; 2],
    pub(super) numbering: Numbering,
    /// Does each warp keep its threads, in their lanes?
    pub(super) keeps_warps: bool,
}

impl Sum {
    fn of(constant: u64) -> Sum {
        Sum {
            constant,
            ..Sum::default()
        }
    }

    fn zip(self, other: Sum, by: impl Fn(u64, u64) -> u64) -> Sum {
        let all = |a: [u64; 3], b: [u64; 3]| std::array::from_fn(|axis| by(a[axis], b[axis]));
        Sum {
            tid: all(self.tid, other.tid),
            ctaid: all(self.ctaid, other.ctaid),
            constant: by(self.constant, other.constant),
        }
    }

    fn times(self, factor: u64) -> Sum {
        self.zip(self, |a, _| a.wrapping_mul(factor))
    }

    /// The number, if no coordinate has a part in it.
    fn number(self) -> Option<u64> {
        (self == Sum::of(self.constant)).then_some(self.constant)
    }

    /// Factors and constant with their signs, as so many bits say them.
    fn signed(self, bits: u32) -> Sum {
        let shift = 64 - bits;
        self.zip(self, |a, _| (((a << shift) as i64) >> shift) as u64)
    }
}

impl Map {
    /// Does the whole kernel use coordinates through the threads' numbers alone?
    ///
    /// # Errors
    /// An instruction that does not, and the special register that it comes of.
    pub(super) fn holds(&self, view: &View<'_>, insts: &[Inst]) -> Result<(), (Inst, SpecialReg)> {
        let mut known: BTreeMap<Reg, Value> = BTreeMap::new();
        let mut is_settled = false;
        while !is_settled {
            is_settled = true;
            for &inst in insts {
                let Some(new) = self.result(view, inst, &known) else {
                    continue;
                };
                for reg in view.defs(inst) {
                    let joined =
                        self.join(known.get(&reg).copied(), new, view.body().reg_type(reg));
                    is_settled &= known.insert(reg, joined) == Some(joined);
                }
            }
        }
        let opcode = |inst: Inst| view.module().opcode(&view.body().insts[inst]);
        for &inst in insts.iter().filter(|&&inst| !is_pure(opcode(inst))) {
            let read = self.read(view, inst, &known);
            if let Some(reg) = read
                .iter()
                .find_map(|&(value, bits)| self.spoiled(value, bits))
            {
                return Err((inst, reg));
            }
        }
        Ok(())
    }

    /// All that an instruction reads, as far as it is known yet, with its bits.
    fn read(&self, view: &View<'_>, inst: Inst, known: &BTreeMap<Reg, Value>) -> Vec<(Value, u32)> {
        let body = view.body();
        let uses = view.uses(inst).into_iter();
        let regs = uses.filter_map(|reg| Some((*known.get(&reg)?, body.reg_type(reg).bits())));
        let specials = body
            .operands(inst)
            .iter()
            .filter_map(|operand| match *operand {
                Operand::Special { reg, part } => Some((self.special(reg, part), 32)),
                _ => None,
            });
        regs.chain(specials).collect()
    }

    /// The results of an instruction; `None` before anything that it reads is known.
    fn result(&self, view: &View<'_>, inst: Inst, known: &BTreeMap<Reg, Value>) -> Option<Value> {
        let body = view.body();
        let data = &body.insts[inst];
        let opcode = view.module().opcode(data);
        let is_known = |reg: &Reg| known.contains_key(reg);
        let read = self.read(view, inst, known);
        let spoiled = || {
            let mut read = read.iter();
            read.find_map(|&(value, bits)| self.spoiled(value, bits))
        };
        let whole = || Some(spoiled().map_or(Value::Kept, Value::Spoiled));
        if data.guard.is_some_and(|guard| !is_known(&guard.reg)) {
            return None;
        }
        let is_guarded = data.guard.is_some_and(|guard| {
            let value = known.get(&guard.reg);
            value.is_none_or(|&value| value != Value::Kept)
        });
        let arg = |at: usize| self.operand(*body.operands(inst).get(at)?, opcode, known);
        if is_guarded || !is_pure(opcode) {
            return whole();
        }
        if view.uses(inst).iter().any(|reg| !is_known(reg)) {
            return None;
        }
        self.sum(opcode, &arg).or_else(whole)
    }

    /// A sum of coordinates, or nothing that is known to be one.
    fn sum(&self, opcode: &Opcode, arg: &dyn Fn(usize) -> Option<Value>) -> Option<Value> {
        let ty = *opcode.types.first()?;
        let bits = integer(ty)?;
        let words: Vec<&str> = opcode.mods().collect();
        let value = match (opcode.op?, words.as_slice()) {
            (Op::Mov, [_]) => arg(1)?,
            (Op::Cvt, [_, _]) => {
                let from = *opcode.types.get(1)?;
                let of = integer(from)?;
                match bits > of {
                    true => self.widened(arg(1)?, of, from)?,
                    false if bits == of => arg(1)?,
                    false => return None,
                }
            }
            (Op::Add, [_]) => self.added(arg(1)?, arg(2)?),
            (Op::Sub, [_]) => self.added(arg(1)?, self.scaled(arg(2)?, u64::MAX)?),
            (Op::Mul, ["lo", _]) => self.product(arg(1)?, arg(2)?)?,
            (Op::Mad, ["lo", _]) => self.added(self.product(arg(1)?, arg(2)?)?, arg(3)?),
            (Op::Shl, [_]) => {
                let by = number(arg(2)?).filter(|by| *by < u64::from(bits))?;
                self.scaled(arg(1)?, 1 << by)?
            }
            (Op::Mul, ["wide", _]) => {
                return Some(self.settled(self.wide_product(arg(1)?, arg(2)?, ty)?, 2 * bits));
            }
            (Op::Mad, ["wide", _]) => {
                let product = self.wide_product(arg(1)?, arg(2)?, ty)?;
                return Some(self.settled(self.added(product, arg(3)?), 2 * bits));
            }
            _ => return None,
        };
        Some(self.settled(value, bits))
    }

    fn wide_product(&self, a: Value, b: Value, ty: Type) -> Option<Value> {
        let bits = integer(ty)?;
        self.product(self.widened(a, bits, ty)?, self.widened(b, bits, ty)?)
    }

    /// A sum that is kept is nothing else, unless it is a number.
    fn settled(&self, value: Value, bits: u32) -> Value {
        match value {
            Value::Sums { .. }
                if number(value).is_none() && self.spoiled(value, bits).is_none() =>
            {
                Value::Kept
            }
            other => other,
        }
    }

    /// The special register that keeps a value from being the same at both launches.
    fn spoiled(&self, value: Value, bits: u32) -> Option<SpecialReg> {
        match value {
            Value::Kept => None,
            Value::Spoiled(reg) => Some(reg),
            Value::Sums { of, .. } => {
                let [before, after] = [0, 1].map(|at| self.of_number(of[at].signed(bits), at));
                match (before, after) {
                    (Some(before), Some(after)) if before == after => None,
                    _ if of.iter().any(|sum| sum.tid != [0; 3]) => Some(SpecialReg::Tid),
                    _ if of.iter().any(|sum| sum.ctaid != [0; 3]) => Some(SpecialReg::CtaId),
                    _ => Some(SpecialReg::NTid),
                }
            }
        }
    }

    /// A sum as multiples of the thread's numbers, and a constant. Coordinates that are always 0 do not count.
    fn of_number(&self, sum: Sum, at: usize) -> Option<([Option<u64>; 6], u64)> {
        let launch = self.launches[at];
        let tids = (0..3).map(|axis| (sum.tid[axis], launch.block[axis]));
        let ctaids = (0..3).map(|axis| (sum.ctaid[axis], launch.grid[axis]));
        let parts: Vec<(u64, u32)> = tids.chain(ctaids).collect();
        let mut numbers = [None; 6];
        match self.numbering {
            Numbering::Line => numbers[0] = multiple(parts.into_iter())?,
            Numbering::Axes => {
                for axis in 0..3 {
                    let own = [parts[axis], parts[axis + 3]];
                    if self.launches[0].block[axis] == self.launches[1].block[axis] {
                        // Both coordinates are what they were.
                        numbers[axis] = Some(own[0].0).filter(|_| own[0].1 > 1);
                        numbers[axis + 3] = Some(own[1].0).filter(|_| own[1].1 > 1);
                    } else {
                        numbers[axis] = multiple(own.into_iter())?;
                    }
                }
            }
        }
        Some((numbers, sum.constant))
    }

    fn added(&self, a: Value, b: Value) -> Value {
        match (a, b) {
            (Value::Spoiled(reg), _) | (_, Value::Spoiled(reg)) => Value::Spoiled(reg),
            (Value::Kept, Value::Kept) => Value::Kept,
            (Value::Kept, Value::Sums { of, .. }) | (Value::Sums { of, .. }, Value::Kept) => {
                Value::Sums { of, plus: true }
            }
            (
                Value::Sums { of, plus },
                Value::Sums {
                    of: other,
                    plus: more,
                },
            ) => Value::Sums {
                of: std::array::from_fn(|at| of[at].zip(other[at], u64::wrapping_add)),
                plus: plus || more,
            },
        }
    }

    fn scaled(&self, value: Value, factor: u64) -> Option<Value> {
        match value {
            Value::Sums { of, plus } => Some(Value::Sums {
                of: of.map(|sum| sum.times(factor)),
                plus,
            }),
            _ => None,
        }
    }

    /// A product in which one factor is a number at each launch.
    fn product(&self, a: Value, b: Value) -> Option<Value> {
        if let Some(factor) = number(b) {
            return self.scaled(a, factor);
        }
        if let Some(factor) = number(a) {
            return self.scaled(b, factor);
        }
        let (Value::Sums { of: a, plus: false }, Value::Sums { of: b, plus: false }) = (a, b)
        else {
            return None;
        };
        let mut of = [Sum::default(); 2];
        for at in 0..2 {
            of[at] = match (a[at].number(), b[at].number()) {
                (_, Some(by)) => a[at].times(by),
                (Some(by), _) => b[at].times(by),
                _ => return None,
            };
        }
        Some(Value::Sums { of, plus: false })
    }

    /// A sum of so many bits that is one of more bits, too.
    fn widened(&self, value: Value, bits: u32, ty: Type) -> Option<Value> {
        let Value::Sums { of, plus: false } = value else {
            return None;
        };
        let is_signed = ty.kind() == TypeKind::Signed;
        let end = 1i128 << (bits - u32::from(is_signed));
        let of = of.map(|sum| sum.signed(bits));
        let fits = [0, 1].into_iter().all(|at| {
            let (low, high) = self.range(of[at], at);
            low >= 0 && high < end
        });
        fits.then_some(Value::Sums { of, plus: false })
    }

    /// Bounds of a sum with signs.
    fn range(&self, sum: Sum, at: usize) -> (i128, i128) {
        let launch = self.launches[at];
        let constant = i128::from(sum.constant as i64);
        let tids = sum.tid.into_iter().zip(launch.block);
        let parts = tids.chain(sum.ctaid.into_iter().zip(launch.grid));
        parts.fold((constant, constant), |(low, high), (factor, n)| {
            let most = i128::from(factor as i64) * i128::from(n - 1);
            (low + most.min(0), high + most.max(0))
        })
    }

    fn join(&self, old: Option<Value>, new: Value, ty: Type) -> Value {
        match old {
            None => new,
            Some(old) if old == new => old,
            Some(old) => {
                let spoiled = [old, new]
                    .into_iter()
                    .find_map(|v| self.spoiled(v, ty.bits()));
                spoiled.map_or(Value::Kept, Value::Spoiled)
            }
        }
    }

    fn operand(
        &self,
        operand: Operand,
        opcode: &Opcode,
        known: &BTreeMap<Reg, Value>,
    ) -> Option<Value> {
        match operand {
            Operand::Reg(reg) => known.get(&reg).copied(),
            Operand::Imm(imm) => {
                let value = imm.seen_as(*opcode.types.last()?);
                Some(Value::Sums {
                    of: [Sum::of(value); 2],
                    plus: false,
                })
            }
            Operand::Special { reg, part } => Some(self.special(reg, part)),
            _ => None,
        }
    }

    fn special(&self, reg: SpecialReg, part: Option<Part>) -> Value {
        use SpecialReg as S;
        let axis = match part {
            Some(Part::X) => Some(0),
            Some(Part::Y) => Some(1),
            Some(Part::Z) => Some(2),
            _ => None,
        };
        let sums = |of: &dyn Fn(&Extents, usize) -> Sum| match axis {
            Some(axis) => Value::Sums {
                of: std::array::from_fn(|at| of(&self.launches[at], axis)),
                plus: false,
            },
            None => Value::Spoiled(reg),
        };
        // Below an extent of one there is only 0.
        let one = |axis: usize, dims: [u32; 3]| {
            std::array::from_fn(|at| u64::from(at == axis && dims[axis] > 1))
        };
        match reg {
            S::Tid => sums(&|launch, axis| Sum {
                tid: one(axis, launch.block),
                ..Sum::default()
            }),
            S::CtaId => sums(&|launch, axis| Sum {
                ctaid: one(axis, launch.grid),
                ..Sum::default()
            }),
            S::NTid => sums(&|launch, axis| Sum::of(launch.block[axis].into())),
            S::NCtaId => sums(&|launch, axis| Sum::of(launch.grid[axis].into())),
            S::LaneId
            | S::LaneMaskEq
            | S::LaneMaskLe
            | S::LaneMaskLt
            | S::LaneMaskGe
            | S::LaneMaskGt
                if self.keeps_warps =>
            {
                Value::Kept
            }
            S::DynamicSmemSize => Value::Kept,
            _ => Value::Spoiled(reg),
        }
    }
}

/// The factor of a number of which these are the parts with their extents, the innermost first; none where nothing is
/// left of it. `None` where they are no multiple of it.
fn multiple(parts: impl Iterator<Item = (u64, u32)>) -> Option<Option<u64>> {
    let mut factor: Option<u64> = None;
    let mut stride = 1u64;
    for (own, extent) in parts {
        if extent == 1 {
            continue;
        }
        match factor {
            None => factor = Some(own),
            Some(factor) if own == factor.wrapping_mul(stride) => {}
            Some(_) => return None,
        }
        stride = stride.wrapping_mul(extent.into());
    }
    Some(factor)
}

/// The number that a value is at both launches.
fn number(value: Value) -> Option<u64> {
    match value {
        Value::Sums { of, plus: false } if of[0] == of[1] => of[0].number(),
        _ => None,
    }
}

/// Bits of a type of integers.
fn integer(ty: Type) -> Option<u32> {
    use Type::{B32, B64, S32, S64, U32, U64};
    matches!(ty, B32 | B64 | S32 | S64 | U32 | U64).then(|| ty.bits())
}

/// Does it give results of its operands, and nothing else?
pub(super) fn is_pure(opcode: &Opcode) -> bool {
    use warpwright_ptx::opcode::{Control, Effect};
    let rest = Effect {
        carry_in: false,
        carry_out: false,
        ..opcode.effect()
    };
    opcode.control() == Control::Next && rest.is_none()
}
