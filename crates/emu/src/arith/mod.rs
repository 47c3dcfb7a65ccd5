//! Exact scalar semantics of the PTX instructions, as pure functions of one lane.
//!
//! A register holds its bits zero-extended to 64; [`Lane`] moves a typed value in and out of that
//! form. Nothing here knows about registers, memory or instructions: decoding picks a function,
//! the machine applies it to the lanes of a warp.

pub mod approx;
pub mod bits;
pub mod compare;
pub mod convert;
pub mod dot;
pub mod float;
pub mod int;
pub mod narrow;
#[cfg(test)]
mod sample;
pub mod soft;
pub mod video;

/// A value that lives in a register lane.
///
/// `to_lane(from_lane(x))` keeps the low bits of `x` that the type has and clears the others.
pub trait Lane: Copy + Send + Sync + 'static {
    /// Reads the low bits of a lane; wider contents are truncated.
    fn from_lane(bits: u64) -> Self;
    /// The value's bits, zero-extended.
    fn to_lane(self) -> u64;
}

macro_rules! integer_lanes {
    ($($ty:ty => $unsigned:ty),*) => {$(
        impl Lane for $ty {
            #[inline(always)]
            fn from_lane(bits: u64) -> Self {
                bits as $ty
            }
            #[inline(always)]
            fn to_lane(self) -> u64 {
                self as $unsigned as u64
            }
        }
    )*};
}
integer_lanes!(u8 => u8, u16 => u16, u32 => u32, u64 => u64, i8 => u8, i16 => u16, i32 => u32, i64 => u64);

impl Lane for bool {
    #[inline(always)]
    fn from_lane(bits: u64) -> Self {
        bits & 1 != 0
    }
    #[inline(always)]
    fn to_lane(self) -> u64 {
        self as u64
    }
}

impl Lane for f32 {
    #[inline(always)]
    fn from_lane(bits: u64) -> Self {
        f32::from_bits(bits as u32)
    }
    #[inline(always)]
    fn to_lane(self) -> u64 {
        self.to_bits() as u64
    }
}

impl Lane for f64 {
    #[inline(always)]
    fn from_lane(bits: u64) -> Self {
        f64::from_bits(bits)
    }
    #[inline(always)]
    fn to_lane(self) -> u64 {
        self.to_bits()
    }
}

/// How a result is rounded to its destination (PTX ISA, 'Rounding Modifiers').
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Round {
    /// `.rn`, `.rni`: to nearest, ties to even.
    NearestEven,
    /// `.rna`: to nearest, ties away from zero.
    NearestAway,
    /// `.rz`, `.rzi`: toward zero.
    Zero,
    /// `.rm`, `.rmi`: toward minus infinity.
    Down,
    /// `.rp`, `.rpi`: toward plus infinity.
    Up,
}

impl Round {
    /// All modes, for tests and tables.
    pub const ALL: [Round; 5] = [
        Round::NearestEven,
        Round::NearestAway,
        Round::Zero,
        Round::Down,
        Round::Up,
    ];
}
