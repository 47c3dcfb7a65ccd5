//! Integer arithmetic, logic, shifts and bit fields.

use smallvec::smallvec;
use warpwright_ptx::Type;
use warpwright_ptx::ir::Operand;

use super::operands::Decoder;
use super::words::{Reason, Words};
use crate::arith::bits::{self, Overrun, Permute};
use crate::arith::int::{self, Int};
use crate::arith::narrow::Pair;
use crate::arith::{Lane, dot};
use crate::lanes::{LaneFn, binary, ternary, unary, variadic};
use crate::program::{Op, Out, Src};

/// Instantiates an expression for an integer type.
macro_rules! for_int {
    ($ty:expr, $T:ident => $body:expr) => {
        match $ty {
            Type::U16 | Type::B16 => {
                type $T = u16;
                Ok($body)
            }
            Type::S16 => {
                type $T = i16;
                Ok($body)
            }
            Type::U32 | Type::B32 => {
                type $T = u32;
                Ok($body)
            }
            Type::S32 => {
                type $T = i32;
                Ok($body)
            }
            Type::U64 | Type::B64 => {
                type $T = u64;
                Ok($body)
            }
            Type::S64 => {
                type $T = i64;
                Ok($body)
            }
            other => Err(format!("type {other}")),
        }
    };
}
pub(super) use for_int;

impl Decoder<'_> {
    pub(super) fn arithmetic(
        &mut self,
        words: &mut Words<'_>,
        operands: &[Operand],
    ) -> Result<(), Reason> {
        match words.name {
            "add" | "sub" if !words.has("cc") => self.add_sub(words, operands),
            "add" | "sub" | "addc" | "subc" => self.carry_chain(words, operands),
            "mul" => self.multiply(words, operands),
            "mad" if !words.has("cc") => self.multiply_add(words, operands),
            "mad" | "madc" => self.multiply_carry(words, operands),
            "mul24" | "mad24" => self.multiply24(words, operands),
            "sad" | "div" | "rem" | "abs" | "neg" => self.simple(words, operands),
            "min" | "max" => self.extremes(words, operands),
            "popc" | "clz" | "bfind" | "brev" | "bfe" | "bfi" | "fns" => {
                self.fields(words, operands)
            }
            "and" | "or" | "xor" | "not" | "cnot" | "lop3" => self.logic(words, operands),
            "shl" | "shr" | "shf" | "szext" | "bmsk" | "prmt" => self.shifts(words, operands),
            "dp4a" | "dp2a" => self.dot_product(words, operands),
            _ => Err("the emulator does not know this instruction".into()),
        }
    }

    fn add_sub(&mut self, words: &mut Words<'_>, operands: &[Operand]) -> Result<(), Reason> {
        let (ty, sat) = (words.ty()?, words.take("sat"));
        let add = words.name == "add";
        let f = match ty {
            Type::U16x2 | Type::S16x2 if !sat => {
                let lane = move |x: u16, y: u16| if add { x.add(y) } else { x.sub(y) };
                binary(move |a: Pair<u16>, b: Pair<u16>| a.zip(b, lane))
            }
            _ => for_int!(ty, T => match (add, sat) {
                (true, false) => binary(<T as Int>::add),
                (true, true) => binary(<T as Int>::add_sat),
                (false, false) => binary(<T as Int>::sub),
                (false, true) => binary(<T as Int>::sub_sat),
            })?,
        };
        self.pure(operands, ty, f)
    }

    /// `add.cc`, `addc`, `addc.cc` and the same for `sub`.
    fn carry_chain(&mut self, words: &mut Words<'_>, operands: &[Operand]) -> Result<(), Reason> {
        let (set, get) = (words.take("cc"), words.name.ends_with('c'));
        let ty = words.ty()?;
        let subtract = words.name.starts_with("sub");
        let (f, flag): (LaneFn, LaneFn) = for_int!(ty, T => if subtract {
            (
                ternary(|a: T, b: T, c: bool| int::sub_carry(a, b, c).0),
                ternary(|a: T, b: T, c: bool| int::sub_carry(a, b, c).1),
            )
        } else {
            (
                ternary(|a: T, b: T, c: bool| int::add_carry(a, b, c).0),
                ternary(|a: T, b: T, c: bool| int::add_carry(a, b, c).1),
            )
        })?;
        let [d, a, b] = operands else {
            return Err("too few operands".into());
        };
        let mut srcs = self.srcs(&[*a, *b], ty)?;
        srcs.push(self.carry_in(get, subtract));
        let dst = self.dst(d)?;
        let mut outs = smallvec![Out { dst, f }];
        if set {
            outs.push(self.carry_out(flag));
        }
        self.emit(Op::Alu { srcs, outs });
        Ok(())
    }

    /// The carry flag, or what stands in its place where it is not read.
    fn carry_in(&mut self, get: bool, otherwise: bool) -> Src {
        if !get {
            return self.constant(otherwise.into());
        }
        let carry = self.carry();
        self.also_reads(carry);
        Src::Reg(carry)
    }

    fn carry_out(&mut self, f: LaneFn) -> Out {
        let dst = self.carry();
        self.also_writes(dst);
        Out { dst, f }
    }

    fn multiply(&mut self, words: &mut Words<'_>, operands: &[Operand]) -> Result<(), Reason> {
        let ty = words.ty()?;
        let f = match words.next() {
            Some("lo") => for_int!(ty, T => binary(<T as Int>::mul_lo))?,
            Some("hi") => for_int!(ty, T => binary(<T as Int>::mul_hi))?,
            Some("wide") => match ty {
                Type::U16 => binary(<u16 as Int>::mul_wide),
                Type::S16 => binary(<i16 as Int>::mul_wide),
                Type::U32 => binary(<u32 as Int>::mul_wide),
                Type::S32 => binary(<i32 as Int>::mul_wide),
                _ => return Err(format!("type {ty}")),
            },
            _ => return Err("a product without .lo, .hi or .wide".into()),
        };
        self.pure(operands, ty, f)
    }

    fn multiply_add(&mut self, words: &mut Words<'_>, operands: &[Operand]) -> Result<(), Reason> {
        let (ty, sat) = (words.ty()?, words.take("sat"));
        let [d, a, b, c] = operands else {
            return Err("too few operands".into());
        };
        let (f, sum) = match words.next() {
            Some("lo") if !sat => (for_int!(ty, T => ternary(int::mad_lo::<T>))?, ty),
            Some("hi") if !sat => (for_int!(ty, T => ternary(int::mad_hi::<T>))?, ty),
            Some("hi") if ty == Type::S32 => (ternary(int::mad_hi_sat::<i32>), ty),
            Some("wide") if !sat => match ty {
                Type::U16 => (
                    ternary(|a: u16, b: u16, c: u32| a.mul_wide(b).add(c)),
                    Type::U32,
                ),
                Type::S16 => (
                    ternary(|a: i16, b: i16, c: i32| a.mul_wide(b).add(c)),
                    Type::S32,
                ),
                Type::U32 => (
                    ternary(|a: u32, b: u32, c: u64| a.mul_wide(b).add(c)),
                    Type::U64,
                ),
                Type::S32 => (
                    ternary(|a: i32, b: i32, c: i64| a.mul_wide(b).add(c)),
                    Type::S64,
                ),
                _ => return Err(format!("type {ty}")),
            },
            _ => return Err("a product of this kind".into()),
        };
        let mut srcs = self.srcs(&[*a, *b], ty)?;
        srcs.push(self.src(c, sum)?);
        self.alu(d, srcs, f)
    }

    /// `mad.cc` and `madc`: a product added with carries.
    fn multiply_carry(
        &mut self,
        words: &mut Words<'_>,
        operands: &[Operand],
    ) -> Result<(), Reason> {
        let (set, get) = (words.take("cc"), words.name == "madc");
        let ty = words.ty()?;
        let high = match words.next() {
            Some("hi") => true,
            Some("lo") => false,
            _ => return Err("a product without .lo or .hi".into()),
        };
        let (f, flag): (LaneFn, LaneFn) = for_int!(ty, T => {
            let sum = move |x: &[u64]| {
                let (a, b) = (T::from_lane(x[0]), T::from_lane(x[1]));
                let product = if high { a.mul_hi(b) } else { a.mul_lo(b) };
                int::add_carry(product, T::from_lane(x[2]), x[3] & 1 != 0)
            };
            (variadic(move |x| sum(x).0.to_lane()), variadic(move |x| sum(x).1 as u64))
        })?;
        let [d, rest @ ..] = operands else {
            return Err("too few operands".into());
        };
        let mut srcs = self.srcs(rest, ty)?;
        srcs.push(self.carry_in(get, false));
        let dst = self.dst(d)?;
        let mut outs = smallvec![Out { dst, f }];
        if set {
            outs.push(self.carry_out(flag));
        }
        self.emit(Op::Alu { srcs, outs });
        Ok(())
    }

    fn multiply24(&mut self, words: &mut Words<'_>, operands: &[Operand]) -> Result<(), Reason> {
        let (ty, sat) = (words.ty()?, words.take("sat"));
        let mad = words.name == "mad24";
        let f = match (words.next(), ty, mad) {
            (Some("lo"), Type::U32, false) => binary(int::mul24_lo::<u32>),
            (Some("lo"), Type::S32, false) => binary(int::mul24_lo::<i32>),
            (Some("hi"), Type::U32, false) => binary(int::mul24_hi::<u32>),
            (Some("hi"), Type::S32, false) => binary(int::mul24_hi::<i32>),
            (Some("lo"), Type::U32 | Type::S32, true) if !sat => {
                let signed = ty == Type::S32;
                ternary(move |a: u32, b: u32, c: u32| {
                    let product = match signed {
                        true => int::mul24_lo(a as i32, b as i32) as u32,
                        false => int::mul24_lo(a, b),
                    };
                    product.add(c)
                })
            }
            (Some("hi"), Type::U32, true) if !sat => {
                ternary(|a: u32, b: u32, c: u32| int::mul24_hi(a, b).add(c))
            }
            (Some("hi"), Type::S32, true) => {
                let add = if sat {
                    <i32 as Int>::add_sat
                } else {
                    <i32 as Int>::add
                };
                ternary(move |a: i32, b: i32, c: i32| add(int::mul24_hi(a, b), c))
            }
            _ => return Err("a 24-bit product of this kind".into()),
        };
        self.pure(operands, ty, f)
    }

    fn simple(&mut self, words: &mut Words<'_>, operands: &[Operand]) -> Result<(), Reason> {
        let ty = words.ty()?;
        let f = for_int!(ty, T => match words.name {
            "sad" => ternary(int::sad::<T>),
            "div" => binary(<T as Int>::div),
            "rem" => binary(<T as Int>::rem),
            "abs" => unary(<T as Int>::abs),
            _ => unary(<T as Int>::neg),
        })?;
        self.pure(operands, ty, f)
    }

    fn extremes(&mut self, words: &mut Words<'_>, operands: &[Operand]) -> Result<(), Reason> {
        let (ty, relu) = (words.ty()?, words.take("relu"));
        let larger = words.name == "max";
        let f = match ty {
            Type::U16x2 => {
                let f = if larger {
                    int::max::<u16>
                } else {
                    int::min::<u16>
                };
                binary(move |a: Pair<u16>, b: Pair<u16>| a.zip(b, f))
            }
            Type::S16x2 => {
                let f = move |x: i16, y: i16| {
                    let picked = if larger {
                        int::max(x, y)
                    } else {
                        int::min(x, y)
                    };
                    if relu { int::relu(picked) } else { picked }
                };
                binary(move |a: Pair<i16>, b: Pair<i16>| a.zip(b, f))
            }
            _ => for_int!(ty, T => match (larger, relu) {
                (true, false) => binary(int::max::<T>),
                (false, false) => binary(int::min::<T>),
                (true, true) => binary(|a: T, b: T| int::relu(int::max(a, b))),
                (false, true) => binary(|a: T, b: T| int::relu(int::min(a, b))),
            })?,
        };
        self.pure(operands, ty, f)
    }

    fn fields(&mut self, words: &mut Words<'_>, operands: &[Operand]) -> Result<(), Reason> {
        let ty = words.ty()?;
        let shift_amount = words.take("shiftamt");
        let f = match (words.name, ty) {
            ("popc", Type::B32) => unary(u32::count_ones),
            ("popc", Type::B64) => unary(u64::count_ones),
            ("clz", Type::B32) => unary(u32::leading_zeros),
            ("clz", Type::B64) => unary(u64::leading_zeros),
            ("brev", Type::B32) => unary(u32::reverse_bits),
            ("brev", Type::B64) => unary(u64::reverse_bits),
            ("bfind", _) => for_int!(ty, T => unary(move |a: T| bits::bfind(shift_amount, a)))?,
            ("bfe", _) => for_int!(ty, T => ternary(bits::bfe::<T>))?,
            ("bfi", _) => for_int!(ty, T => variadic(|x| {
                bits::bfi(T::from_lane(x[0]), T::from_lane(x[1]), x[2] as u32, x[3] as u32).to_lane()
            }))?,
            ("fns", Type::B32) => ternary(bits::fns),
            _ => return Err(format!("type {ty}")),
        };
        self.pure(operands, ty, f)
    }

    fn logic(&mut self, words: &mut Words<'_>, operands: &[Operand]) -> Result<(), Reason> {
        if words.name == "lop3" {
            return self.lop3(words, operands);
        }
        let ty = words.ty()?;
        if ty == Type::Pred {
            let f = match words.name {
                "and" => binary(|a: bool, b: bool| a & b),
                "or" => binary(|a: bool, b: bool| a | b),
                "xor" => binary(|a: bool, b: bool| a ^ b),
                "not" => unary(|a: bool| !a),
                _ => return Err("a predicate".into()),
            };
            return self.pure(operands, ty, f);
        }
        let f = for_int!(ty, T => match words.name {
            "and" => binary(|a: T, b: T| a & b),
            "or" => binary(|a: T, b: T| a | b),
            "xor" => binary(|a: T, b: T| a ^ b),
            "not" => unary(|a: T| !a),
            _ => unary(bits::cnot::<T>),
        })?;
        self.pure(operands, ty, f)
    }

    fn lop3(&mut self, words: &mut Words<'_>, operands: &[Operand]) -> Result<(), Reason> {
        let ty = words.ty()?;
        let combine = words.find(crate::arith::compare::Combine::parse);
        let [d, a, b, c, Operand::Imm(table), rest @ ..] = operands else {
            return Err("lop3 without a constant table".into());
        };
        let table = table.bits() as u8;
        let mut srcs = self.srcs(&[*a, *b, *c], ty)?;
        let f = move |x: &[u64]| bits::lop3(table, x[0] as u32, x[1] as u32, x[2] as u32);
        let plain = variadic(move |x| f(x) as u64);
        match (combine, rest) {
            (None, []) => self.alu(d, srcs, plain),
            (Some(combine), [q]) => {
                srcs.push(self.src(q, Type::Pred)?);
                let (dst, pred) = self.pair(d)?;
                let mut outs = smallvec![];
                outs.extend(dst.map(|dst| Out { dst, f: plain }));
                let test = variadic(move |x| combine.apply(f(x) != 0, x[3] & 1 != 0) as u64);
                outs.extend(pred.map(|dst| Out { dst, f: test }));
                self.emit(Op::Alu { srcs, outs });
                Ok(())
            }
            _ => Err("lop3 with these operands".into()),
        }
    }

    fn shifts(&mut self, words: &mut Words<'_>, operands: &[Operand]) -> Result<(), Reason> {
        if words.name == "prmt" {
            return self.permute(words, operands);
        }
        let ty = words.ty()?;
        let mode = words.find(|w| match w {
            "clamp" => Some(Overrun::Clamp),
            "wrap" => Some(Overrun::Wrap),
            _ => None,
        });
        let f = match (words.name, mode) {
            ("shl", None) => for_int!(ty, T => binary(|a: T, by: u32| Int::shl(a, by)))?,
            ("shr", None) => for_int!(ty, T => binary(|a: T, by: u32| Int::shr(a, by)))?,
            ("shf", Some(mode)) => match words.next() {
                Some("l") => ternary(move |a, b, by| bits::shf_left(mode, a, b, by)),
                Some("r") => ternary(move |a, b, by| bits::shf_right(mode, a, b, by)),
                _ => return Err("a funnel shift without direction".into()),
            },
            ("szext", Some(mode)) => {
                let signed = ty == Type::S32;
                binary(move |a, n| bits::szext(mode, signed, a, n))
            }
            ("bmsk", Some(mode)) => binary(move |a, b| bits::bmsk(mode, a, b)),
            _ => return Err("a shift of this kind".into()),
        };
        // Shift amounts are .u32 whatever the type.
        let [d, a, rest @ ..] = operands else {
            return Err("too few operands".into());
        };
        let mut srcs = smallvec![self.src(a, ty)?];
        srcs.extend(self.srcs(rest, Type::U32)?);
        self.alu(d, srcs, f)
    }

    fn permute(&mut self, words: &mut Words<'_>, operands: &[Operand]) -> Result<(), Reason> {
        let ty = words.ty()?;
        let mode = words.find(|w| match w {
            "f4e" => Some(Permute::F4e),
            "b4e" => Some(Permute::B4e),
            "rc8" => Some(Permute::Rc8),
            "ecl" => Some(Permute::Ecl),
            "ecr" => Some(Permute::Ecr),
            "rc16" => Some(Permute::Rc16),
            _ => None,
        });
        let mode = mode.unwrap_or(Permute::Index);
        self.pure(
            operands,
            ty,
            ternary(move |a, b, c| bits::prmt(mode, a, b, c)),
        )
    }

    fn dot_product(&mut self, words: &mut Words<'_>, operands: &[Operand]) -> Result<(), Reason> {
        let (a, b) = (words.ty()? == Type::S32, words.ty()? == Type::S32);
        let f = match (words.name, words.next()) {
            ("dp4a", None) => ternary(move |x, y, z| dot::dp4a(a, b, x, y, z)),
            ("dp2a", Some("lo")) => ternary(move |x, y, z| dot::dp2a(false, a, b, x, y, z)),
            ("dp2a", Some("hi")) => ternary(move |x, y, z| dot::dp2a(true, a, b, x, y, z)),
            _ => return Err("a dot product of this kind".into()),
        };
        self.pure(operands, Type::B32, f)
    }
}
