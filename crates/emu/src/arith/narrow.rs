//! The 16-bit formats as register values, and packed pairs of them.

use super::soft::{self, Value};
use super::{Lane, Round};

/// A `.f16` value, by its bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct F16(pub u16);

/// A `.bf16` value, by its bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bf16(pub u16);

macro_rules! narrow_lane {
    ($($ty:ident),*) => {$(
        impl Lane for $ty {
            #[inline(always)]
            fn from_lane(bits: u64) -> Self {
                $ty(bits as u16)
            }
            #[inline(always)]
            fn to_lane(self) -> u64 {
                self.0 as u64
            }
        }
    )*};
}
narrow_lane!(F16, Bf16);

impl F16 {
    /// The exact value.
    #[inline(always)]
    pub fn widen(self) -> f32 {
        let sign = (self.0 as u32 & 0x8000) << 16;
        let magnitude = self.0 as u32 & 0x7fff;
        // Moving the fields over and scaling by 2^112 mends the bias, subnormals included.
        let scaled = f32::from_bits(magnitude << 13) * f32::from_bits(0x7780_0000);
        let special = f32::from_bits(magnitude << 13 | 0x7f80_0000);
        let value = if magnitude >= 0x7c00 { special } else { scaled };
        f32::from_bits(value.to_bits() | sign)
    }

    /// Rounds to nearest even.
    #[inline(always)]
    pub fn from_f64(x: f64) -> F16 {
        let biased = x.to_bits() >> 52 & 0x7ff;
        if (1023 - 14..1023 + 15).contains(&biased) {
            return F16(round_fraction(x.to_bits(), 42, 1023 - 15) as u16 | sign16(x));
        }
        F16(slow(soft::F16, x))
    }
}

impl Bf16 {
    /// The exact value.
    #[inline(always)]
    pub fn widen(self) -> f32 {
        f32::from_bits((self.0 as u32) << 16)
    }

    /// Rounds to nearest even.
    #[inline(always)]
    pub fn from_f64(x: f64) -> Bf16 {
        let biased = x.to_bits() >> 52 & 0x7ff;
        if (1023 - 126..1023 + 127).contains(&biased) {
            return Bf16(round_fraction(x.to_bits(), 45, 1023 - 127) as u16 | sign16(x));
        }
        Bf16(slow(soft::BF16, x))
    }
}

fn sign16(x: f64) -> u16 {
    (x.to_bits() >> 48) as u16 & 0x8000
}

/// Rounds the low `cut` bits of a normal double's magnitude off and moves its exponent down.
fn round_fraction(bits: u64, cut: u32, rebias: u64) -> u64 {
    let magnitude = (bits & !(1 << 63)) - (rebias << 52);
    let odd = magnitude >> cut & 1;
    (magnitude + (1 << (cut - 1)) - 1 + odd) >> cut
}

fn slow(format: soft::Format, x: f64) -> u16 {
    format.pack(Round::NearestEven, soft::F64.unpack(x.to_bits())) as u16
}

/// Two lanes of a packed 32-bit register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pair<T> {
    /// Bits 0 to 15 (or 0 to 31 of `.f32x2`).
    pub low: T,
    /// The upper half.
    pub high: T,
}

macro_rules! pair_lane {
    ($($ty:ty => $bits:literal),*) => {$(
        impl Lane for Pair<$ty> {
            #[inline(always)]
            fn from_lane(bits: u64) -> Self {
                Pair { low: <$ty>::from_lane(bits), high: <$ty>::from_lane(bits >> $bits) }
            }
            #[inline(always)]
            fn to_lane(self) -> u64 {
                self.low.to_lane() | self.high.to_lane() << $bits
            }
        }
    )*};
}
pair_lane!(F16 => 16, Bf16 => 16, u16 => 16, i16 => 16, f32 => 32);

impl<T: Copy> Pair<T> {
    /// Applies a function of one value to both halves.
    #[inline(always)]
    pub fn map(self, f: impl Fn(T) -> T) -> Self {
        Pair {
            low: f(self.low),
            high: f(self.high),
        }
    }
    /// Applies a function of two values to both halves.
    #[inline(always)]
    pub fn zip(self, b: Self, f: impl Fn(T, T) -> T) -> Self {
        Pair {
            low: f(self.low, b.low),
            high: f(self.high, b.high),
        }
    }
    /// Applies a function of three values to both halves.
    #[inline(always)]
    pub fn zip3(self, b: Self, c: Self, f: impl Fn(T, T, T) -> T) -> Self {
        Pair {
            low: f(self.low, b.low, c.low),
            high: f(self.high, b.high, c.high),
        }
    }
}

/// The number a double stands for.
pub fn value_of(x: f64) -> Value {
    soft::F64.unpack(x.to_bits())
}
