//! `mov`, `cvt`, `cvta` and `isspacep`.

use smallvec::{SmallVec, smallvec};
use warpwright_ptx::ir::Operand;
use warpwright_ptx::{Type, TypeKind};

use super::operands::Decoder;
use super::words::{Reason, Words};
use crate::arith::Round;
use crate::arith::convert::{self, Finish, IntType};
use crate::arith::soft::{self, Format};
use crate::lanes::{LaneFn, binary, unary, variadic};
use crate::memory::{LOCAL_WINDOW, PARAM_WINDOW, SHARED_WINDOW, Window, window};
use crate::program::{Op, Out, Src};

impl Decoder<'_> {
    pub(super) fn conversion(
        &mut self,
        words: &mut Words<'_>,
        operands: &[Operand],
    ) -> Result<(), Reason> {
        match words.name {
            "mov" => self.mov(words, operands),
            "cvta" => self.convert_address(words, operands),
            "isspacep" => self.is_space(words, operands),
            _ if words.has("pack") => self.convert_pack(words, operands),
            _ => self.convert(words, operands),
        }
    }

    fn mov(&mut self, words: &mut Words<'_>, operands: &[Operand]) -> Result<(), Reason> {
        let (vector, ty) = (words.vector(), words.ty()?);
        let [d, a] = operands else {
            return Err("too few operands".into());
        };
        if vector > 1 {
            return self.mov_vector(d, a, vector, ty);
        }
        match (self.vector(d), self.vector(a)) {
            (Some(parts), _) => {
                let srcs: SmallVec<[Src; 4]> = match ty.bits() {
                    128 => self.src128(a)?.into_iter().collect(),
                    _ => smallvec![self.src(a, ty)?],
                };
                let bits = ty.bits() / parts.len().max(1) as u32;
                let mut outs: SmallVec<[Out; 1]> = smallvec![];
                for (i, part) in parts.iter().enumerate() {
                    if let Some(dst) = self.optional_dst(part)? {
                        outs.push(Out {
                            dst,
                            f: extract(i as u32 * bits, bits),
                        });
                    }
                }
                self.emit(Op::Alu { srcs, outs });
                Ok(())
            }
            (_, Some(parts)) => {
                let bits = ty.bits() / parts.len().max(1) as u32;
                let srcs: SmallVec<[Src; 4]> = parts
                    .iter()
                    .map(|part| self.src(part, untyped(bits).ok_or("a vector of this length")?))
                    .collect::<Result<_, Reason>>()?;
                self.wide_result(d, ty, srcs, |word| insert(word, bits))
            }
            _ if ty.bits() == 128 => {
                let srcs = self.src128(a)?.into_iter().collect();
                self.wide_result(d, ty, srcs, |word| extract(64 * word, 64))
            }
            _ => {
                let mask = u64::MAX >> (64 - ty.bits().clamp(1, 64));
                self.pure(operands, ty, unary(move |a: u64| a & mask))
            }
        }
    }

    /// `mov.v2`, `mov.v4`: every element is read before one is written.
    fn mov_vector(
        &mut self,
        d: &Operand,
        a: &Operand,
        vector: u32,
        ty: Type,
    ) -> Result<(), Reason> {
        let (to, from) = (self.elements(d), self.elements(a));
        let is_of_length = |elements: &[Operand]| elements.len() == vector as usize;
        if !is_of_length(&to) || !is_of_length(&from) || vector > 4 || ty.bits() > 64 {
            return Err(format!("a vector of {vector} elements of type {ty}"));
        }
        let srcs = self.srcs(&from, ty)?;
        let mask = u64::MAX >> (64 - ty.bits().clamp(1, 64));
        let mut outs: SmallVec<[Out; 1]> = smallvec![];
        for (at, element) in to.iter().enumerate() {
            if let Some(dst) = self.optional_dst(element)? {
                let f = variadic(move |x| x.get(at).copied().unwrap_or(0) & mask);
                outs.push(Out { dst, f });
            }
        }
        self.emit(Op::Alu { srcs, outs });
        Ok(())
    }

    /// A result of one or, for 128 bits, two lane registers; `f` makes the function of each.
    fn wide_result(
        &mut self,
        d: &Operand,
        ty: Type,
        srcs: SmallVec<[Src; 4]>,
        f: impl Fn(u32) -> LaneFn,
    ) -> Result<(), Reason> {
        let dst = self.dst(d)?;
        let words = if ty.bits() == 128 { 2 } else { 1 };
        let outs = (0..words)
            .map(|word| Out {
                dst: dst + word,
                f: f(word),
            })
            .collect();
        self.emit(Op::Alu { srcs, outs });
        Ok(())
    }

    fn convert(&mut self, words: &mut Words<'_>, operands: &[Operand]) -> Result<(), Reason> {
        let integral = words.integer_round();
        let round = words.round();
        let how = Finish {
            ftz: words.take("ftz"),
            sat: words.take("sat"),
            relu: words.take("relu"),
            satfinite: words.take("satfinite"),
            integral: false,
        };
        let (to, from) = (words.ty()?, words.ty()?);
        let [d, sources @ ..] = operands else {
            return Err("too few operands".into());
        };
        let nearest = round.unwrap_or(Round::NearestEven);
        if let Some(packed) = Packed::of(to) {
            return self.convert_to_packed(d, sources, from, packed, nearest, how);
        }
        let f: LaneFn = match (int_type(from), int_type(to)) {
            (Some(from), Some(to)) => {
                unary(move |x: u64| convert::int_to_int(from, to, how.sat, x))
            }
            (Some(from), None) => {
                let to = format(to)?;
                unary(move |x: u64| convert::int_to_float(from, to, nearest, how.sat, x))
            }
            (None, Some(to)) => {
                let (from, round) = (format(from)?, integral.unwrap_or(Round::Zero));
                unary(move |x: u64| convert::float_to_int(from, to, round, how.ftz, x))
            }
            (None, None) if to == Type::Tf32 => {
                unary(move |x: u64| convert::float_to_tf32(nearest, how, x))
            }
            (None, None) => {
                let how = Finish {
                    integral: integral.is_some(),
                    ..how
                };
                let round = integral.unwrap_or(nearest);
                float_to_float(format(from)?, format(to)?, round, how)
            }
        };
        // A narrow result is extended to the register.
        let mask = self.register_mask(d);
        let f = match to.bits() < 64 && int_type(to).is_some_and(|t| t.signed) {
            true => masked(f, mask),
            false => f,
        };
        let srcs = self.srcs(sources, from)?;
        match srcs.len() {
            1 => self.alu(d, srcs, f),
            _ => Err("a conversion with these operands".into()),
        }
    }

    /// Several numbers into one packed register: the first operand goes to the top.
    fn convert_to_packed(
        &mut self,
        d: &Operand,
        sources: &[Operand],
        from: Type,
        to: Packed,
        round: Round,
        how: Finish,
    ) -> Result<(), Reason> {
        let one = move |value: u64, from: Format| match to.format {
            Some(format) => convert::float_to_float(from, format, round, how, value),
            None => convert::to_ue8m0(round, how.satfinite, from.unpack(value)),
        };
        if let Some(source) = Packed::of(from) {
            // Packed to packed, element by element.
            let (Some(from), [a]) = (source.format, sources) else {
                return Err("a conversion with these operands".into());
            };
            let srcs = smallvec![self.src(a, Type::B32)?];
            let f = unary(move |x: u64| {
                (0..to.count).fold(0, |word, i| {
                    let element = x >> (source.bits * i) & (u64::MAX >> (64 - source.bits));
                    word | one(element, from) << (to.bits * i)
                })
            });
            return self.alu(d, srcs, f);
        }
        if sources.len() != to.count as usize || from != Type::F32 {
            return Err("a conversion with these operands".into());
        }
        let srcs = self.srcs(sources, from)?;
        let f = variadic(move |x| {
            (0..to.count).fold(0, |word, i| {
                let value = x[(to.count - 1 - i) as usize];
                word | one(value, soft::F32) << (to.bits * i)
            })
        });
        self.alu(d, srcs, f)
    }

    fn convert_pack(&mut self, words: &mut Words<'_>, operands: &[Operand]) -> Result<(), Reason> {
        words.skip(&["pack", "sat"]);
        let to = words.find(|w| {
            let signed = w.starts_with('s');
            let bits = w
                .get(1..)?
                .parse()
                .ok()
                .filter(|b| [2, 4, 8, 16].contains(b))?;
            (signed || w.starts_with('u')).then_some(IntType { bits, signed })
        });
        let to = to.ok_or("a packed type of this name")?;
        let from = int_type(words.ty()?).ok_or("a source of this type")?;
        words.skip(&["b32"]);
        let [d, rest @ ..] = operands else {
            return Err("too few operands".into());
        };
        let srcs = self.srcs(rest, Type::B32)?;
        self.alu(
            d,
            srcs,
            variadic(move |x| convert::pack(to, from, x[0], x[1], x[2])),
        )
    }

    fn convert_address(
        &mut self,
        words: &mut Words<'_>,
        operands: &[Operand],
    ) -> Result<(), Reason> {
        let to_space = words.take("to");
        let ty = words.last_type().ok_or("it names no type")?;
        let space = words.next().ok_or("an address without a state space")?;
        // Global, constant and parameter addresses are generic addresses already.
        let base = match space {
            "shared" | "shared::cta" | "shared::cluster" => SHARED_WINDOW,
            "local" => LOCAL_WINDOW,
            "global" | "const" | "param" | "param::entry" => 0,
            _ => return Err(format!("state space .{space}")),
        };
        let base = if to_space { base.wrapping_neg() } else { base };
        if ty != Type::U64 {
            return Err(format!("addresses of type {ty}"));
        }
        self.pure(operands, ty, unary(move |a: u64| a.wrapping_add(base)))
    }

    fn is_space(&mut self, words: &mut Words<'_>, operands: &[Operand]) -> Result<(), Reason> {
        let space = words.next().ok_or("a state space is missing")?;
        let (image, first) = (self.image.globals.iter().enumerate(), self.image.first);
        let constants: Vec<u64> = image
            .filter(|(_, g)| g.constant)
            .map(|(i, _)| crate::memory::slot_address(first + i) >> crate::memory::SLOT_BITS)
            .collect();
        let is_constant = move |a: u64| constants.contains(&(a >> crate::memory::SLOT_BITS));
        let f: LaneFn = match space {
            "shared" | "shared::cta" | "shared::cluster" => {
                unary(|a: u64| matches!(window(a), Window::Shared(_)))
            }
            "local" => unary(|a: u64| matches!(window(a), Window::Local(_))),
            "param" | "param::entry" => {
                unary(|a: u64| window(a) == Window::Param(a.wrapping_sub(PARAM_WINDOW)))
            }
            "const" => unary(is_constant),
            "global" => unary(move |a: u64| window(a) == Window::Global && !is_constant(a)),
            _ => return Err(format!("state space .{space}")),
        };
        self.pure(operands, Type::U64, f)
    }
}

/// A packed register type: element format (`None` for `.ue8m0`), count and bits each.
#[derive(Clone, Copy)]
struct Packed {
    format: Option<Format>,
    count: u32,
    bits: u32,
}

impl Packed {
    fn of(ty: Type) -> Option<Packed> {
        let (format, count, bits) = match ty {
            Type::F16x2 => (Some(soft::F16), 2, 16),
            Type::Bf16x2 => (Some(soft::BF16), 2, 16),
            Type::E4m3x2 => (Some(soft::E4M3), 2, 8),
            Type::E5m2x2 => (Some(soft::E5M2), 2, 8),
            Type::E2m3x2 => (Some(soft::E2M3), 2, 8),
            Type::E3m2x2 => (Some(soft::E3M2), 2, 8),
            Type::E2m1x2 => (Some(soft::E2M1), 2, 4),
            Type::Ue8m0x2 => (None, 2, 8),
            _ => return None,
        };
        Some(Packed {
            format,
            count,
            bits,
        })
    }
}

/// Integer types, untyped bits among them.
pub(super) fn int_type(ty: Type) -> Option<IntType> {
    let bits = ty.bits();
    let plain = matches!(bits, 8 | 16 | 32 | 64);
    let signed = match ty.kind() {
        TypeKind::Signed => true,
        TypeKind::Unsigned | TypeKind::Bits => false,
        _ => return None,
    };
    let packed = matches!(ty, Type::U8x4 | Type::S8x4 | Type::U16x2 | Type::S16x2);
    (plain && !packed).then_some(IntType { bits, signed })
}

fn format(ty: Type) -> Result<Format, Reason> {
    match ty {
        Type::F16 => Ok(soft::F16),
        Type::Bf16 => Ok(soft::BF16),
        Type::F32 => Ok(soft::F32),
        Type::F64 => Ok(soft::F64),
        _ => Err(format!("type {ty}")),
    }
}

/// The common widenings and narrowings on the host's arithmetic, the rest by integers.
fn float_to_float(from: Format, to: Format, round: Round, how: Finish) -> LaneFn {
    use crate::arith::float::Real;
    use crate::arith::narrow::{Bf16, F16};
    let plain = how == Finish::default() && round == Round::NearestEven;
    match (from, to) {
        (soft::F32, soft::F64) if plain => unary(|x: f32| {
            let bits = || convert::nan(soft::F32, soft::F64, false, x.to_bits() as u64);
            if x.is_nan() {
                f64::from_bits(bits())
            } else {
                x as f64
            }
        }),
        (soft::F64, soft::F32) if plain => unary(|x: f64| {
            let bits = || convert::nan(soft::F64, soft::F32, false, x.to_bits()) as u32;
            if x.is_nan() {
                f32::from_bits(bits())
            } else {
                x as f32
            }
        }),
        (soft::F16, soft::F32) if plain => unary(|x: F16| x.widen().canonical()),
        (soft::BF16, soft::F32) if plain => unary(|x: Bf16| (x.0 as u32) << 16),
        (soft::F32, soft::F16) if plain => unary(|x: f32| F16::from_f64(x as f64).canonical()),
        (soft::F32, soft::BF16) if plain => unary(|x: f32| Bf16::from_f64(x as f64).canonical()),
        _ => unary(move |x: u64| convert::float_to_float(from, to, round, how, x)),
    }
}

fn masked(f: LaneFn, mask: u64) -> LaneFn {
    Box::new(move |x, out, lanes| {
        f(x, out, lanes);
        out.iter_mut().for_each(|value| *value &= mask);
    })
}

/// Bits `at..at + bits` of a value given in words of 64 bits.
fn extract(at: u32, bits: u32) -> LaneFn {
    let (word, shift) = ((at / 64) as usize, at % 64);
    let mask = u64::MAX >> (64 - bits.clamp(1, 64));
    variadic(move |x| x[word] >> shift & mask)
}

/// Word number `word` of the parts joined, `bits` each.
fn insert(word: u32, bits: u32) -> LaneFn {
    let mask = u64::MAX >> (64 - bits.clamp(1, 64));
    match bits {
        32 => binary(|a: u32, b: u32| a as u64 | (b as u64) << 32),
        64 => variadic(move |x| x[word as usize]),
        _ => variadic(move |x| {
            let per = 64 / bits;
            (0..per.min(8)).fold(0, |all, i| {
                all | (x[(word * per + i) as usize % 8] & mask) << (bits * i)
            })
        }),
    }
}

fn untyped(bits: u32) -> Option<Type> {
    Some(match bits {
        8 => Type::B8,
        16 => Type::B16,
        32 => Type::B32,
        64 => Type::B64,
        _ => return None,
    })
}
