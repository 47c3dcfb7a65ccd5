//! Floating-point arithmetic.

use warpwright_ptx::Type;
use warpwright_ptx::ir::Operand;

use super::operands::Decoder;
use super::words::{Reason, Words};
use crate::arith::approx::{self, Function};
use crate::arith::float::{self, Extreme, Mode, Real, Test};
use crate::arith::narrow::{Bf16, F16, Pair};
use crate::arith::{Lane, Round};
use crate::lanes::{LaneFn, binary, ternary, unary};

/// Instantiates an expression for a floating-point type: `$apply` turns a function of one value
/// into one of a register, for packed types lane by lane.
macro_rules! for_float {
    ($ty:expr, $T:ident => $scalar:expr, $pair:expr) => {
        match $ty {
            Type::F32 => {
                type $T = f32;
                Ok($scalar)
            }
            Type::F64 => {
                type $T = f64;
                Ok($scalar)
            }
            Type::F16 => {
                type $T = F16;
                Ok($scalar)
            }
            Type::Bf16 => {
                type $T = Bf16;
                Ok($scalar)
            }
            Type::F16x2 => {
                type $T = F16;
                Ok($pair)
            }
            Type::Bf16x2 => {
                type $T = Bf16;
                Ok($pair)
            }
            Type::F32x2 => {
                type $T = f32;
                Ok($pair)
            }
            other => Err(format!("type {other}")),
        }
    };
}

/// Lifts a function of one value of a type, or of each half of a pair.
macro_rules! lift1 {
    ($ty:expr, $T:ident, $f:expr) => {
        for_float!($ty, $T => unary::<$T, $T>($f), {
            let f = $f;
            unary(move |a: Pair<$T>| a.map(f))
        })
    };
}

/// Lifts a function of two values.
macro_rules! lift2 {
    ($ty:expr, $T:ident, $f:expr) => {
        for_float!($ty, $T => binary::<$T, $T, $T>($f), {
            let f = $f;
            binary(move |a: Pair<$T>, b: Pair<$T>| a.zip(b, f))
        })
    };
}

/// Lifts a function of three values.
macro_rules! lift3 {
    ($ty:expr, $T:ident, $f:expr) => {
        for_float!($ty, $T => ternary::<$T, $T, $T, $T>($f), {
            let f = $f;
            ternary(move |a: Pair<$T>, b: Pair<$T>, c: Pair<$T>| a.zip3(b, c, f))
        })
    };
}

impl Decoder<'_> {
    pub(super) fn floating(
        &mut self,
        words: &mut Words<'_>,
        operands: &[Operand],
    ) -> Result<(), Reason> {
        match words.name {
            "add" | "sub" | "mul" | "fma" | "mad" => self.float_arithmetic(words, operands),
            "div" | "rcp" | "sqrt" | "rsqrt" | "ex2" | "lg2" | "sin" | "cos" | "tanh" => {
                self.float_function(words, operands)
            }
            "min" | "max" => self.float_extremes(words, operands),
            "abs" | "neg" => {
                let (ty, ftz) = (words.ty()?, words.take("ftz"));
                let f = match words.name {
                    "abs" => lift1!(ty, T, move |x: T| float::abs(ftz, x))?,
                    _ => lift1!(ty, T, move |x: T| float::neg(ftz, x))?,
                };
                self.pure(operands, ty, f)
            }
            "copysign" => {
                let ty = words.ty()?;
                let f = match ty {
                    Type::F32 => binary(float::copysign::<f32>),
                    Type::F64 => binary(float::copysign::<f64>),
                    _ => return Err(format!("type {ty}")),
                };
                self.pure(operands, ty, f)
            }
            _ => self.test_property(words, operands),
        }
    }

    fn float_arithmetic(
        &mut self,
        words: &mut Words<'_>,
        operands: &[Operand],
    ) -> Result<(), Reason> {
        let (mode, ty) = (words.mode(), words.ty()?);
        if words.peek_type().is_some() {
            return self.mixed_precision(words, operands, mode, ty);
        }
        let relu = words.take("relu");
        // `.noftz` and `.oob` forms: the first is what we do, the second stays unsupported.
        words.skip(&["noftz"]);
        // The plain round-to-nearest forms get functions without any modifier to look at.
        let plain = mode == Mode::RN && !relu;
        let f = match (words.name, plain) {
            ("add", true) => lift2!(ty, T, |a: T, b: T| float::add(Mode::RN, a, b))?,
            ("sub", true) => lift2!(ty, T, |a: T, b: T| float::sub(Mode::RN, a, b))?,
            ("mul", true) => lift2!(ty, T, |a: T, b: T| float::mul(Mode::RN, a, b))?,
            ("add", _) => lift2!(ty, T, move |a: T, b: T| float::add(mode, a, b))?,
            ("sub", _) => lift2!(ty, T, move |a: T, b: T| float::sub(mode, a, b))?,
            ("mul", _) => lift2!(ty, T, move |a: T, b: T| float::mul(mode, a, b))?,
            (_, true) => lift3!(ty, T, |a: T, b: T, c: T| float::fma(Mode::RN, a, b, c))?,
            _ if relu => lift3!(ty, T, move |a: T, b: T, c: T| float::fma_relu(
                mode, a, b, c
            ))?,
            _ => lift3!(ty, T, move |a: T, b: T, c: T| float::fma(mode, a, b, c))?,
        };
        self.pure(operands, ty, f)
    }

    /// `add.f32.f16` and its like: a 16-bit operand, the rest `.f32`.
    fn mixed_precision(
        &mut self,
        words: &mut Words<'_>,
        operands: &[Operand],
        mode: Mode,
        ty: Type,
    ) -> Result<(), Reason> {
        let narrow = words.ty()?;
        let widen = match (ty, narrow) {
            (Type::F32, Type::F16) => |x: u64| F16::from_lane(x).widen(),
            (Type::F32, Type::Bf16) => |x: u64| Bf16::from_lane(x).widen(),
            _ => return Err(format!("types {ty}{narrow}")),
        };
        let wide = f32::from_lane;
        match (words.name, operands) {
            ("add" | "sub", [d, a, c]) => {
                let subtract = words.name == "sub";
                let srcs = smallvec::smallvec![self.src(a, narrow)?, self.src(c, ty)?];
                let f = binary(move |a: u64, c: u64| match subtract {
                    true => float::sub(mode, widen(a), wide(c)),
                    false => float::add(mode, widen(a), wide(c)),
                });
                self.alu(d, srcs, f)
            }
            ("fma", [d, a, b, c]) => {
                let mut srcs = self.srcs(&[*a, *b], narrow)?;
                srcs.push(self.src(c, ty)?);
                let f = ternary(move |a: u64, b: u64, c: u64| {
                    float::fma(mode, widen(a), widen(b), wide(c))
                });
                self.alu(d, srcs, f)
            }
            _ => Err("an operation of mixed precision of this kind".into()),
        }
    }

    fn float_function(
        &mut self,
        words: &mut Words<'_>,
        operands: &[Operand],
    ) -> Result<(), Reason> {
        let approximate = words.take("approx");
        let full = words.take("full");
        let (round, ftz, ty) = (words.round(), words.take("ftz"), words.ty()?);
        let f: LaneFn = match (round, words.name) {
            (Some(round), name) if !approximate => {
                let mode = Mode {
                    round,
                    ftz,
                    sat: false,
                };
                match (name, ty) {
                    ("div", Type::F32) => binary(move |a: f32, b: f32| float::div(mode, a, b)),
                    ("div", Type::F64) => binary(move |a: f64, b: f64| float::div(mode, a, b)),
                    ("rcp", Type::F32) => unary(move |a: f32| float::rcp(mode, a)),
                    ("rcp", Type::F64) => unary(move |a: f64| float::rcp(mode, a)),
                    ("sqrt", Type::F32) => unary(move |a: f32| float::sqrt(mode, a)),
                    ("sqrt", Type::F64) => unary(move |a: f64| float::sqrt(mode, a)),
                    _ => return Err(format!("rounded `{name}` of type {ty}")),
                }
            }
            (None, "div") if ty == Type::F32 => {
                self.approximate = true;
                binary(move |a: f32, b: f32| approx::div(full, ftz, a, b))
            }
            (None, name) => {
                self.approximate = true;
                let function = Function::parse(name).ok_or("a function of this name")?;
                match (function, ty) {
                    (Function::Rcp | Function::Rsqrt, Type::F64) if ftz => {
                        unary(move |a: f64| approx::gross_f64(function, a))
                    }
                    (Function::Rsqrt, Type::F64) => unary(move |a: f64| function.apply(ftz, a)),
                    (_, Type::F32) => unary(move |a: f32| function.apply(ftz, a)),
                    (
                        Function::Ex2 | Function::Tanh,
                        Type::F16 | Type::Bf16 | Type::F16x2 | Type::Bf16x2,
                    ) => lift1!(ty, T, move |x: T| function.apply(ftz, x))?,
                    _ => return Err(format!("`{name}` of type {ty}")),
                }
            }
            _ => return Err("a rounding mode beside .approx".into()),
        };
        self.pure(operands, ty, f)
    }

    fn float_extremes(
        &mut self,
        words: &mut Words<'_>,
        operands: &[Operand],
    ) -> Result<(), Reason> {
        let ty = words.ty()?;
        let larger = words.name == "max";
        let how = Extreme {
            ftz: words.take("ftz"),
            nan: words.take("NaN"),
            xorsign: words.take("xorsign"),
            abs: words.take("abs"),
        };
        match operands.len() {
            4 => {
                let f = ternary(move |a: f32, b: f32, c: f32| {
                    float::extreme(larger, how, float::extreme(larger, how, a, b), c)
                });
                match ty {
                    Type::F32 => self.pure(operands, ty, f),
                    _ => Err(format!("three inputs of type {ty}")),
                }
            }
            _ => {
                let f = lift2!(ty, T, move |a: T, b: T| float::extreme(larger, how, a, b))?;
                self.pure(operands, ty, f)
            }
        }
    }

    fn test_property(&mut self, words: &mut Words<'_>, operands: &[Operand]) -> Result<(), Reason> {
        let ty = words.ty()?;
        let test = words.find(|w| {
            Some(match w {
                "finite" => Test::Finite,
                "infinite" => Test::Infinite,
                "number" => Test::Number,
                "notanumber" => Test::NotANumber,
                "normal" => Test::Normal,
                "subnormal" => Test::Subnormal,
                _ => return None,
            })
        });
        let test = test.ok_or("a property of this name")?;
        let f = match ty {
            Type::F32 => unary(move |a: f32| float::testp(test, a)),
            Type::F64 => unary(move |a: f64| float::testp(test, a)),
            _ => return Err(format!("type {ty}")),
        };
        self.pure(operands, ty, f)
    }
}

/// The sum of two numbers for atomic operations, to nearest even.
///
/// In global memory `.f32` flushes subnormals, and in `.f64` a NaN stays as it is (an H200).
pub(super) fn atomic_add(ty: Type, global: bool) -> Option<fn(u64, u64) -> u64> {
    fn sum<T: Real>(a: u64, b: u64) -> u64 {
        float::add(Mode::RN, T::from_lane(a), T::from_lane(b)).to_lane()
    }
    fn flushed(a: u64, b: u64) -> u64 {
        let mode = Mode {
            round: Round::NearestEven,
            ftz: true,
            sat: false,
        };
        float::add(mode, f32::from_lane(a), f32::from_lane(b)).to_lane()
    }
    fn with_nan(a: u64, b: u64) -> u64 {
        let nans = [b, a].into_iter().find(|&x| f64::from_bits(x).is_nan());
        nans.unwrap_or_else(|| sum::<f64>(a, b))
    }
    fn pairs<T: Real>(a: u64, b: u64) -> u64 {
        sum::<T>(a & 0xffff, b & 0xffff) | sum::<T>(a >> 16, b >> 16) << 16
    }
    Some(match ty {
        Type::F32 if global => flushed,
        Type::F32 => sum::<f32>,
        Type::F64 if global => with_nan,
        Type::F64 => sum::<f64>,
        Type::F16 => sum::<F16>,
        Type::Bf16 => sum::<Bf16>,
        Type::F16x2 => pairs::<F16>,
        Type::Bf16x2 => pairs::<Bf16>,
        _ => return None,
    })
}

/// The smaller or larger of two 16-bit numbers or pairs, for atomic operations.
pub(super) fn atomic_extreme(
    ty: Type,
    larger: bool,
) -> Option<Box<dyn Fn(u64, u64) -> u64 + Send + Sync>> {
    fn pick<T: Real>(larger: bool, a: u64, b: u64) -> u64 {
        float::extreme(larger, Extreme::default(), T::from_lane(a), T::from_lane(b)).to_lane()
    }
    fn pairs<T: Real>(larger: bool, a: u64, b: u64) -> u64 {
        pick::<T>(larger, a & 0xffff, b & 0xffff) | pick::<T>(larger, a >> 16, b >> 16) << 16
    }
    let f: fn(bool, u64, u64) -> u64 = match ty {
        Type::F16 => pick::<F16>,
        Type::Bf16 => pick::<Bf16>,
        Type::F16x2 => pairs::<F16>,
        Type::Bf16x2 => pairs::<Bf16>,
        _ => return None,
    };
    Some(Box::new(move |a, b| f(larger, a, b)))
}
