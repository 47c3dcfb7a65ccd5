//! Floating-point arithmetic of `.f32`, `.f64`, `.f16` and `.bf16` under PTX's modifiers.
//!
//! Round-to-nearest runs on the host's IEEE arithmetic; the directed modes go through
//! [`soft`](super::soft). NaN results are the hardware's: canonical ones, but for `.f64`, where a
//! NaN operand passes through.

use super::narrow::{Bf16, F16};
use super::soft::{self, Format, Value};
use super::{Lane, Round};

/// The modifiers of an arithmetic instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mode {
    /// Rounding.
    pub round: Round,
    /// `.ftz`: subnormal inputs and results become zeros of their sign.
    pub ftz: bool,
    /// `.sat`: the result is clamped to [0, 1], NaN becomes +0.
    pub sat: bool,
}

impl Mode {
    /// `.rn` and nothing else.
    pub const RN: Mode = Mode {
        round: Round::NearestEven,
        ftz: false,
        sat: false,
    };
}

/// A floating-point register type.
pub trait Real: Lane {
    /// Its format.
    const FORMAT: Format;
    /// Sum, to nearest even; NaN in any form.
    fn add_rn(self, b: Self) -> Self;
    /// Product, to nearest even.
    fn mul_rn(self, b: Self) -> Self;
    /// `self * b + c`, rounded once, to nearest even.
    fn fma_rn(self, b: Self, c: Self) -> Self;
    /// Quotient, to nearest even.
    fn div_rn(self, b: Self) -> Self;
    /// Square root, to nearest even.
    fn sqrt_rn(self) -> Self;
    /// The exact value as a double; NaN stays NaN.
    fn to_f64(self) -> f64;

    /// The result of an operation that is not a number, its operands given in the order in which
    /// the hardware looks at them: `.f64` passes the first NaN on, made quiet; other types, and
    /// operations that make a NaN of numbers, give the canonical one.
    #[inline(always)]
    fn invalid(_operands: [Self; 3]) -> Self {
        Self::nan()
    }
    /// The canonical NaN.
    #[inline(always)]
    fn nan() -> Self {
        Self::from_lane(Self::FORMAT.nan())
    }
    /// Is it NaN?
    #[inline(always)]
    fn is_nan(self) -> bool {
        let infinity = Self::FORMAT.max_finite() + 1;
        self.magnitude() > infinity
    }
    /// The bits without the sign.
    #[inline(always)]
    fn magnitude(self) -> u64 {
        self.to_lane() & (sign_bit::<Self>() - 1)
    }
    /// Sign bit set?
    #[inline(always)]
    fn is_neg(self) -> bool {
        self.to_lane() & sign_bit::<Self>() != 0
    }
    /// The same with the sign bit flipped, NaN or not.
    #[inline(always)]
    fn negated(self) -> Self {
        Self::from_lane(self.to_lane() ^ sign_bit::<Self>())
    }
    /// Any NaN made canonical.
    #[inline(always)]
    fn canonical(self) -> Self {
        if self.is_nan() { Self::nan() } else { self }
    }
    /// Subnormals made zeros of their sign.
    #[inline(always)]
    fn flushed(self) -> Self {
        let bits = self.to_lane();
        let subnormal = self.magnitude() < 1 << Self::FORMAT.man;
        Self::from_lane(if subnormal {
            bits & sign_bit::<Self>()
        } else {
            bits
        })
    }
    /// Clamped to [0, 1]; NaN and -0 become +0.
    #[inline(always)]
    fn saturated(self) -> Self {
        let one = one::<Self>();
        let bits = self.to_lane();
        let low = self.is_neg() || self.is_nan();
        Self::from_lane(if low { 0 } else { bits.min(one) })
    }
    /// Unpacked.
    fn unpack(self) -> Value {
        Self::FORMAT.unpack(self.to_lane())
    }
    /// Rounded into this type.
    fn pack(round: Round, value: Value) -> Self {
        Self::from_lane(Self::FORMAT.pack(round, value))
    }
}

#[inline(always)]
const fn sign_bit<T: Real>() -> u64 {
    1 << (T::FORMAT.exp + T::FORMAT.man)
}

#[inline(always)]
const fn one<T: Real>() -> u64 {
    ((1 << (T::FORMAT.exp - 1)) - 1) << T::FORMAT.man
}

macro_rules! native_real {
    ($ty:ty, $format:expr, { $($invalid:tt)* }) => {
        impl Real for $ty {
            const FORMAT: Format = $format;
            $($invalid)*
            #[inline(always)]
            fn add_rn(self, b: Self) -> Self {
                self + b
            }
            #[inline(always)]
            fn mul_rn(self, b: Self) -> Self {
                self * b
            }
            #[inline(always)]
            fn fma_rn(self, b: Self, c: Self) -> Self {
                self.mul_add(b, c)
            }
            #[inline(always)]
            fn div_rn(self, b: Self) -> Self {
                self / b
            }
            #[inline(always)]
            fn sqrt_rn(self) -> Self {
                self.sqrt()
            }
            #[inline(always)]
            fn to_f64(self) -> f64 {
                self as f64
            }
        }
    };
}
native_real!(f32, soft::F32, {});
native_real!(f64, soft::F64, {
    #[inline(always)]
    fn invalid(operands: [Self; 3]) -> Self {
        let nan = operands.into_iter().find(|x| x.is_nan());
        f64::from_bits(nan.map_or(Self::FORMAT.nan(), |x| x.to_bits() | 1 << 51))
    }
});

macro_rules! narrow_real {
    ($ty:ident, $format:expr) => {
        /// Every operation is rounded from a double that is exact or rounded to odd, which
        /// rounds on to 11 bits or fewer as the exact value would.
        impl Real for $ty {
            const FORMAT: Format = $format;
            fn add_rn(self, b: Self) -> Self {
                $ty::from_f64(add_to_odd(self.to_f64(), b.to_f64()))
            }
            fn mul_rn(self, b: Self) -> Self {
                $ty::from_f64(self.to_f64() * b.to_f64())
            }
            fn fma_rn(self, b: Self, c: Self) -> Self {
                $ty::from_f64(add_to_odd(self.to_f64() * b.to_f64(), c.to_f64()))
            }
            fn div_rn(self, b: Self) -> Self {
                $ty::pack(Round::NearestEven, self.unpack().div(b.unpack()))
            }
            fn sqrt_rn(self) -> Self {
                $ty::pack(Round::NearestEven, self.unpack().sqrt())
            }
            fn to_f64(self) -> f64 {
                $ty::widen(self) as f64
            }
        }
    };
}
narrow_real!(F16, soft::F16);
narrow_real!(Bf16, soft::BF16);

/// `a + b` rounded to odd: where the sum is inexact, the neighbour with an odd last bit. The error
/// of a rounded sum is itself a double (Knuth's two-sum), and its sign says which neighbour the
/// exact sum lies towards.
fn add_to_odd(a: f64, b: f64) -> f64 {
    let sum = a + b;
    let b_part = sum - a;
    let error = (a - (sum - b_part)) + (b - b_part);
    if error == 0.0 || !error.is_finite() || sum.to_bits() & 1 != 0 {
        return sum;
    }
    let outward = (error > 0.0) == (sum > 0.0);
    f64::from_bits(if outward {
        sum.to_bits() + 1
    } else {
        sum.to_bits() - 1
    })
}

#[inline(always)]
fn input<T: Real>(mode: Mode, x: T) -> T {
    if mode.ftz { x.flushed() } else { x }
}

#[inline(always)]
fn output<T: Real>(mode: Mode, x: T, operands: [T; 3]) -> T {
    if mode.sat {
        return input(mode, x).saturated();
    }
    input(mode, if x.is_nan() { T::invalid(operands) } else { x })
}

/// With `.ftz` a result is flushed if it is too small before rounding: one that was rounded up to
/// the least normal number is replaced by the number just below.
#[inline(always)]
fn before_rounding<T: Real>(mode: Mode, x: T, exact: impl Fn() -> Value) -> T {
    match mode.ftz && x.magnitude() == 1 << T::FORMAT.man {
        true => T::pack(Round::Zero, exact()),
        false => x,
    }
}

/// `add`.
#[inline(always)]
pub fn add<T: Real>(mode: Mode, a: T, b: T) -> T {
    sum(mode, a, b, [b, a, a])
}

/// `sub`.
#[inline(always)]
pub fn sub<T: Real>(mode: Mode, a: T, b: T) -> T {
    sum(mode, a, b.negated(), [b, a, a])
}

#[inline(always)]
fn sum<T: Real>(mode: Mode, a: T, b: T, operands: [T; 3]) -> T {
    let (a, b) = (input(mode, a), input(mode, b));
    let sum = match mode.round {
        Round::NearestEven => a.add_rn(b),
        round => T::pack(round, a.unpack().add(b.unpack(), round)),
    };
    output(mode, sum, operands)
}

/// `mul`.
#[inline(always)]
pub fn mul<T: Real>(mode: Mode, a: T, b: T) -> T {
    let operands = [b, a, a];
    let (a, b) = (input(mode, a), input(mode, b));
    let exact = || a.unpack().mul(b.unpack());
    let product = match mode.round {
        Round::NearestEven => a.mul_rn(b),
        round => T::pack(round, exact()),
    };
    output(mode, before_rounding(mode, product, exact), operands)
}

/// `fma`, and `mad` on every target that this emulator models.
#[inline(always)]
pub fn fma<T: Real>(mode: Mode, a: T, b: T, c: T) -> T {
    let operands = [b, c, a];
    let (a, b, c) = (input(mode, a), input(mode, b), input(mode, c));
    let exact = || a.unpack().fma(b.unpack(), c.unpack(), mode.round);
    let result = match mode.round {
        Round::NearestEven => a.fma_rn(b, c),
        round => T::pack(round, exact()),
    };
    output(mode, before_rounding(mode, result, exact), operands)
}

/// `div` with a rounding modifier.
#[inline(always)]
pub fn div<T: Real>(mode: Mode, a: T, b: T) -> T {
    let operands = [a, b, b];
    let (a, b) = (input(mode, a), input(mode, b));
    let quotient = match mode.round {
        Round::NearestEven => a.div_rn(b),
        round => T::pack(round, a.unpack().div(b.unpack())),
    };
    output(mode, quotient, operands)
}

/// `rcp` with a rounding modifier.
#[inline(always)]
pub fn rcp<T: Real>(mode: Mode, a: T) -> T {
    div(mode, T::from_lane(one::<T>()), a)
}

/// `sqrt` with a rounding modifier.
#[inline(always)]
pub fn sqrt<T: Real>(mode: Mode, a: T) -> T {
    let x = input(mode, a);
    let root = match mode.round {
        Round::NearestEven => x.sqrt_rn(),
        round => T::pack(round, x.unpack().sqrt()),
    };
    output(mode, root, [a, a, a])
}

/// `fma.relu`: negative results become +0, NaN canonical.
#[inline(always)]
pub fn fma_relu<T: Real>(mode: Mode, a: T, b: T, c: T) -> T {
    relu(fma(mode, a, b, c))
}

/// `.relu`: negative results become +0; NaN becomes canonical.
#[inline(always)]
pub fn relu<T: Real>(x: T) -> T {
    match x.is_nan() {
        true => T::nan(),
        false if x.is_neg() => T::from_lane(0),
        false => x,
    }
}

/// `abs`. The hardware computes `|a| + -0`, so a NaN comes out as it does from a sum.
#[inline(always)]
pub fn abs<T: Real>(ftz: bool, a: T) -> T {
    let x = if ftz { a.flushed() } else { a };
    if a.is_nan() {
        T::invalid([a, a, a])
    } else {
        T::from_lane(x.magnitude())
    }
}

/// `neg`. The hardware computes `-a + -0`, so a NaN comes out as it does from a sum.
#[inline(always)]
pub fn neg<T: Real>(ftz: bool, a: T) -> T {
    let x = if ftz { a.flushed() } else { a };
    if a.is_nan() {
        T::invalid([a, a, a])
    } else {
        x.negated()
    }
}

/// `copysign`: the magnitude of `b` with the sign of `a`.
#[inline(always)]
pub fn copysign<T: Real>(a: T, b: T) -> T {
    T::from_lane(b.magnitude() | a.to_lane() & sign_bit::<T>())
}

/// The modifiers of `min` and `max`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extreme {
    /// `.ftz`
    pub ftz: bool,
    /// `.NaN`: a NaN input makes the result NaN; without it the other input is the result.
    pub nan: bool,
    /// `.xorsign.abs`: compare magnitudes; the result's sign is the exclusive or of both signs.
    pub xorsign: bool,
    /// `.abs` alone (three-input form): compare magnitudes.
    pub abs: bool,
}

/// `min` (`larger` false) and `max` (`larger` true). +0 is greater than -0.
#[inline(always)]
pub fn extreme<T: Real>(larger: bool, how: Extreme, a: T, b: T) -> T {
    let (mut a, mut b) = if how.ftz {
        (a.flushed(), b.flushed())
    } else {
        (a, b)
    };
    let sign = (a.to_lane() ^ b.to_lane()) & sign_bit::<T>();
    if how.xorsign || how.abs {
        (a, b) = (T::from_lane(a.magnitude()), T::from_lane(b.magnitude()));
    }
    let picked = match (a.is_nan(), b.is_nan()) {
        (true, true) => return T::invalid([b, a, a]),
        (true, _) | (_, true) if how.nan => return T::nan(),
        (true, false) => b,
        (false, true) => a,
        (false, false) if (total_order(a) > total_order(b)) == larger => a,
        _ => b,
    };
    if how.xorsign {
        T::from_lane(picked.to_lane() | sign)
    } else {
        picked
    }
}

/// A signed integer that orders numbers as their values do, -0 below +0.
#[inline(always)]
fn total_order<T: Real>(x: T) -> i64 {
    let magnitude = x.magnitude() as i64;
    if x.is_neg() {
        -1 - magnitude
    } else {
        magnitude
    }
}

/// The tests of `testp`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are the instruction's modifiers")]
pub enum Test {
    Finite,
    Infinite,
    Number,
    NotANumber,
    Normal,
    Subnormal,
}

/// `testp`. Zeros count as normal.
#[inline(always)]
pub fn testp<T: Real>(test: Test, a: T) -> bool {
    let infinity = T::FORMAT.max_finite() + 1;
    let least_normal = 1 << T::FORMAT.man;
    let m = a.magnitude();
    match test {
        Test::Finite => m < infinity,
        Test::Infinite => m == infinity,
        Test::Number => m <= infinity,
        Test::NotANumber => m > infinity,
        Test::Normal => m == 0 || (m >= least_normal && m < infinity),
        Test::Subnormal => m != 0 && m < least_normal,
    }
}

#[cfg(test)]
mod tests;
