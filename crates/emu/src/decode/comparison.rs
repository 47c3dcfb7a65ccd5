//! `setp`, `set`, `selp` and `slct`.

use smallvec::{SmallVec, smallvec};
use warpwright_ptx::Type;
use warpwright_ptx::ir::Operand;

use super::arithmetic::for_int;
use super::operands::Decoder;
use super::words::{Reason, Words};
use crate::arith::Lane;
use crate::arith::compare::{Combine, Compare};
use crate::arith::float::Real;
use crate::arith::narrow::{Bf16, F16};
use crate::lanes::{LaneFn, ternary, variadic};
use crate::program::{Op, Out, Src};

/// A comparison of two raw lanes.
type Test = Box<dyn Fn(u64, u64) -> bool + Send + Sync>;

impl Decoder<'_> {
    pub(super) fn comparison(
        &mut self,
        words: &mut Words<'_>,
        operands: &[Operand],
    ) -> Result<(), Reason> {
        match words.name {
            "setp" => self.set_predicate(words, operands),
            "set" => self.set_value(words, operands),
            "selp" => {
                let ty = words.ty()?;
                let [d, a, b, p] = operands else {
                    return Err("too few operands".into());
                };
                if ty.bits() > 64 {
                    return Err(format!("type {ty}"));
                }
                let mut srcs = self.srcs(&[*a, *b], ty)?;
                srcs.push(self.src(p, Type::Pred)?);
                self.alu(
                    d,
                    srcs,
                    ternary(|a: u64, b: u64, p: bool| if p { a } else { b }),
                )
            }
            _ => self.select_by_sign(words, operands),
        }
    }

    /// The operands `a`, `b` and, with a combining operator, `c`.
    fn compared(
        &mut self,
        words: &mut Words<'_>,
        operands: &[Operand],
        ty: Type,
    ) -> Result<(SmallVec<[Src; 4]>, Option<Combine>), Reason> {
        let combine = words.find(Combine::parse);
        let (a, b, c) = match (combine, operands) {
            (None, [a, b]) => (a, b, None),
            (Some(_), [a, b, c]) => (a, b, Some(c)),
            _ => return Err("these operands".into()),
        };
        let mut srcs = self.srcs(&[*a, *b], ty)?;
        if let Some(c) = c {
            srcs.push(self.src(c, Type::Pred)?);
        }
        Ok((srcs, combine))
    }

    fn set_predicate(&mut self, words: &mut Words<'_>, operands: &[Operand]) -> Result<(), Reason> {
        let compare = words
            .find(Compare::parse)
            .ok_or("a comparison of this name")?;
        let (ftz, ty) = (words.take("ftz"), words.ty()?);
        let [d, rest @ ..] = operands else {
            return Err("too few operands".into());
        };
        let (srcs, combine) = self.compared(words, rest, ty)?;
        let (p, q) = self.pair(d)?;
        let mut outs: SmallVec<[Out; 1]> = smallvec![];
        // Of packed types `p` gets the lower half's result, `q` the upper one's; of others `q`
        // gets the negated comparison, combined the same way.
        let packed = matches!(ty, Type::F16x2 | Type::Bf16x2);
        let element = match ty {
            Type::F16x2 => Type::F16,
            Type::Bf16x2 => Type::Bf16,
            other => other,
        };
        if let (Some(dst), None, None) = (p, q, combine) {
            outs.push(Out {
                dst,
                f: direct(compare, ftz, element)?,
            });
            self.emit(Op::Alu { srcs, outs });
            return Ok(());
        }
        for (dst, second) in [(p, false), (q, true)] {
            let test = test(compare, ftz, element)?;
            let shift = if packed && second { 16 } else { 0 };
            let negate = second && !packed;
            let f: LaneFn = variadic(move |x| {
                let holds = test(x[0] >> shift, x[1] >> shift) ^ negate;
                combine.map_or(holds, |c| c.apply(holds, x[2] & 1 != 0)) as u64
            });
            outs.extend(dst.map(|dst| Out { dst, f }));
        }
        self.emit(Op::Alu { srcs, outs });
        Ok(())
    }

    fn set_value(&mut self, words: &mut Words<'_>, operands: &[Operand]) -> Result<(), Reason> {
        let compare = words
            .find(Compare::parse)
            .ok_or("a comparison of this name")?;
        let (ftz, to, from) = (words.take("ftz"), words.ty()?, words.ty()?);
        let [d, rest @ ..] = operands else {
            return Err("too few operands".into());
        };
        let (srcs, combine) = self.compared(words, rest, from)?;
        let (element, lanes) = match from {
            Type::F16x2 => (Type::F16, 2),
            Type::Bf16x2 => (Type::Bf16, 2),
            other => (other, 1),
        };
        // True is all ones for integers, 1.0 for floating point.
        let truth: u64 = match (to, lanes) {
            (Type::U32 | Type::S32, 1) => 0xffff_ffff,
            (Type::U32 | Type::S32 | Type::U16 | Type::S16, _) => 0xffff,
            (Type::F32, _) => 0x3f80_0000,
            (Type::F16 | Type::F16x2, _) => 0x3c00,
            (Type::Bf16 | Type::Bf16x2, _) => 0x3f80,
            _ => return Err(format!("a result of type {to}")),
        };
        let test = test(compare, ftz, element)?;
        let f = variadic(move |x| {
            (0..lanes).fold(0, |word, lane| {
                let shift = 16 * lane;
                let holds = test(x[0] >> shift, x[1] >> shift);
                let holds = combine.map_or(holds, |c| c.apply(holds, x[2] & 1 != 0));
                word | if holds { truth << shift } else { 0 }
            })
        });
        self.alu(d, srcs, f)
    }

    fn select_by_sign(
        &mut self,
        words: &mut Words<'_>,
        operands: &[Operand],
    ) -> Result<(), Reason> {
        let (ftz, ty, by) = (words.take("ftz"), words.ty()?, words.ty()?);
        let [d, a, b, c] = operands else {
            return Err("too few operands".into());
        };
        let mut srcs = self.srcs(&[*a, *b], ty)?;
        srcs.push(self.src(c, by)?);
        let f = match by {
            Type::S32 => ternary(|a: u64, b: u64, c: i32| if c >= 0 { a } else { b }),
            Type::F32 => ternary(move |a: u64, b: u64, c: f32| {
                let c = if ftz { c.flushed() } else { c };
                if c >= 0.0 { a } else { b }
            }),
            _ => return Err(format!("selection by type {by}")),
        };
        self.alu(d, srcs, f)
    }
}

/// A comparison as a test of raw lanes.
fn test(compare: Compare, ftz: bool, ty: Type) -> Result<Test, Reason> {
    fn float<T: Real>(compare: Compare, ftz: bool) -> Test {
        Box::new(move |a, b| compare.float(ftz, T::from_lane(a), T::from_lane(b)))
    }
    match ty {
        Type::F32 => Ok(float::<f32>(compare, ftz)),
        Type::F64 => Ok(float::<f64>(compare, ftz)),
        Type::F16 => Ok(float::<F16>(compare, ftz)),
        Type::Bf16 => Ok(float::<Bf16>(compare, ftz)),
        _ => for_int!(ty, T => Box::new(move |a, b| compare.int(T::from_lane(a), T::from_lane(b)))),
    }
}

/// A comparison as a function of lanes, with the common operators compiled apart.
fn direct(compare: Compare, ftz: bool, ty: Type) -> Result<LaneFn, Reason> {
    use crate::lanes::binary;
    macro_rules! each {
        ($T:ident, $method:ident $(, $ftz:expr)?) => {
            match compare {
                Compare::Eq => binary(move |a: $T, b: $T| Compare::Eq.$method($($ftz,)? a, b)),
                Compare::Ne => binary(move |a: $T, b: $T| Compare::Ne.$method($($ftz,)? a, b)),
                Compare::Lt => binary(move |a: $T, b: $T| Compare::Lt.$method($($ftz,)? a, b)),
                Compare::Le => binary(move |a: $T, b: $T| Compare::Le.$method($($ftz,)? a, b)),
                Compare::Gt => binary(move |a: $T, b: $T| Compare::Gt.$method($($ftz,)? a, b)),
                Compare::Ge => binary(move |a: $T, b: $T| Compare::Ge.$method($($ftz,)? a, b)),
                other => binary(move |a: $T, b: $T| other.$method($($ftz,)? a, b)),
            }
        };
    }
    match ty {
        Type::F32 if !ftz => Ok(each!(f32, float, false)),
        Type::F32 => Ok(each!(f32, float, true)),
        Type::F64 => Ok(each!(f64, float, false)),
        Type::F16 | Type::Bf16 => {
            let test = test(compare, ftz, ty)?;
            Ok(binary(move |a: u64, b: u64| test(a, b)))
        }
        _ => for_int!(ty, T => each!(T, int)),
    }
}
