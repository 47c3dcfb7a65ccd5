//! `cvt`: between integers and floating point of every width.

use super::Round;
use super::soft::{self, Format, Special, Value};

/// An integer type as `cvt` sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IntType {
    /// 8, 16, 32 or 64.
    pub bits: u32,
    /// `.s…`
    pub signed: bool,
}

impl IntType {
    /// The number in the low bits of a lane.
    pub fn read(self, lane: u64) -> i128 {
        let unused = 64 - self.bits;
        match self.signed {
            true => ((lane << unused) as i64 >> unused) as i128,
            false => (lane << unused >> unused) as i128,
        }
    }

    fn range(self) -> (i128, i128) {
        match self.signed {
            true => (-(1 << (self.bits - 1)), (1 << (self.bits - 1)) - 1),
            false => (0, (1 << self.bits) - 1),
        }
    }

    /// A lane that holds the number's low bits, sign- or zero-extended to 64 (the register's
    /// width cuts it).
    pub fn write(self, value: i128) -> u64 {
        self.read(value as u64) as u64
    }

    /// The nearest number of the type.
    pub fn clamp(self, value: i128) -> i128 {
        let (least, most) = self.range();
        value.clamp(least, most)
    }
}

/// Integer to integer: truncated or extended, with `.sat` clamped.
#[inline(always)]
pub fn int_to_int(from: IntType, to: IntType, sat: bool, lane: u64) -> u64 {
    let value = from.read(lane);
    to.write(if sat { to.clamp(value) } else { value })
}

/// Integer to floating point.
pub fn int_to_float(from: IntType, to: Format, round: Round, sat: bool, lane: u64) -> u64 {
    let value = from.read(lane);
    // `.sat` clamps to [0, 1]; of integers only those two are inside.
    let value = if sat { value.clamp(0, 1) } else { value };
    to.pack(round, Value::from_int(value))
}

/// Floating point to integer: rounded, then clamped.
///
/// NaN gives zero, but `1 << (width - 1)` of the destination if either side is 64 bits wide
/// (PTX ISA, `cvt`).
pub fn float_to_int(from: Format, to: IntType, round: Round, ftz: bool, lane: u64) -> u64 {
    let value = flush(from, ftz, from.unpack(lane & mask(from)));
    let (least, most) = to.range();
    match value {
        Value::Nan if from == soft::F64 || to.bits == 64 => to.write(1 << (to.bits - 1)),
        Value::Nan => 0,
        Value::Inf(neg) => to.write(if neg { least } else { most }),
        finite => to.write(to.clamp(to_i128(finite, round))),
    }
}

/// The integer a finite number rounds to, saturated to ±2^100.
fn to_i128(value: Value, round: Round) -> i128 {
    match value.to_integer(round) {
        Some(Value::Finite { neg, exp, sig }) => {
            let magnitude = match exp {
                0..=64 => (sig << exp) as i128,
                _ => 1 << 100,
            };
            if neg { -magnitude } else { magnitude }
        }
        _ => 0,
    }
}

/// What happens to a floating-point result on its way to the destination.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Finish {
    /// `.sat`: clamp to [0, 1], NaN to +0.
    pub sat: bool,
    /// `.relu`: negative to +0; NaN stays.
    pub relu: bool,
    /// `.satfinite`: infinities and overflow become the largest finite number.
    pub satfinite: bool,
    /// Subnormal `.f32` inputs and results become zeros.
    pub ftz: bool,
    /// Rounded to an integral value first (`.rni` … in a conversion between equal types).
    pub integral: bool,
}

/// Floating point to floating point.
///
/// NaNs come out as [`nan`] says.
pub fn float_to_float(from: Format, to: Format, round: Round, how: Finish, lane: u64) -> u64 {
    // A conversion to the same type that does nothing is a move (code of ptxas).
    if from == to && how == Finish::default() && matches!(to, soft::F32 | soft::F64) {
        return lane & mask(from);
    }
    // To `.f16` an H200 flushes nothing: rounded up or down, a subnormal counts.
    let how = Finish {
        ftz: how.ftz && to != soft::F16,
        ..how
    };
    let mut value = flush(from, how.ftz, from.unpack(lane & mask(from)));
    if how.integral {
        value = value.to_integer(round).unwrap_or(value);
    }
    if how.relu && value.is_neg() {
        value = Value::Zero(false);
    }
    if how.sat {
        value = saturate(value);
    }
    if value == Value::Nan {
        return nan(from, to, how.ftz, lane & mask(from));
    }
    let code = to.pack(round, value);
    let sign = 1 << (to.width() - 1);
    let code = match to.special {
        Special::Ieee if how.satfinite => code & sign | (code & (sign - 1)).min(to.max_finite()),
        _ => code,
    };
    let subnormal = code & (sign - 1) < 1 << to.man;
    if how.ftz && to == soft::F32 && subnormal {
        code & sign
    } else {
        code
    }
}

/// What a conversion makes of a NaN. To and from `.f64` sign and payload stay, and it becomes
/// quiet (with `.ftz`, what `.f32` arithmetic makes of it); `.bf16` to `.f32` without `.ftz` keeps all
/// bits; everything else is canonical.
pub fn nan(from: Format, to: Format, ftz: bool, bits: u64) -> u64 {
    let bits = match ftz && from == soft::F32 {
        true => from.nan(),
        false => bits,
    };
    if (from, to) == (soft::BF16, soft::F32) {
        return if ftz { to.nan() } else { bits << 16 };
    }
    if from != soft::F64 && to != soft::F64 {
        return to.pack(Round::Zero, Value::Nan);
    }
    let sign = bits >> (from.width() - 1) << (to.width() - 1);
    let payload = bits & ((1 << from.man) - 1);
    let payload = match to.man >= from.man {
        true => payload << (to.man - from.man),
        false => payload >> (from.man - to.man),
    };
    let infinity = to.max_finite() + 1;
    sign | infinity | payload | 1 << (to.man - 1)
}

/// Clamps to [0, 1]; NaN becomes +0.
fn saturate(value: Value) -> Value {
    match value {
        Value::Nan | Value::Zero(_) => Value::Zero(false),
        v if v.is_neg() => Value::Zero(false),
        Value::Finite { exp, sig, .. } if exp + (sig.ilog2() as i32) < 0 => value,
        _ => Value::from_int(1),
    }
}

fn flush(format: Format, ftz: bool, value: Value) -> Value {
    match value {
        Value::Finite { neg, exp, sig }
            if ftz && format == soft::F32 && exp + (sig.ilog2() as i32) < -126 =>
        {
            Value::Zero(neg)
        }
        v => v,
    }
}

fn mask(format: Format) -> u64 {
    u64::MAX >> (64 - format.width())
}

/// `.f32` to `.tf32`: 10 fraction bits, in the upper 19 bits of the register.
///
/// `.rna` rounds by adding to the bits, which cuts a NaN's payload short; `.satfinite` steps back from everything that is
/// not finite, NaNs among it.
pub fn float_to_tf32(round: Round, how: Finish, lane: u64) -> u64 {
    let is_nan = soft::F32.unpack(lane & 0xffff_ffff) == Value::Nan;
    if round == Round::NearestAway && is_nan {
        let cut = lane & 0xffff_e000;
        return if how.satfinite { cut - 0x2000 } else { cut };
    }
    float_to_float(soft::F32, soft::TF32, round, how, lane) << 13
}

/// `cvt.pack.sat`: both inputs clamped to the narrow type, `a` in the upper half of what `b`
/// begins, the rest of the register from `c` shifted up (zero for 16-bit types).
pub fn pack(to: IntType, from: IntType, a: u64, b: u64, c: u64) -> u64 {
    let field = |x: u64| to.clamp(from.read(x)) as u64 & ((1 << to.bits) - 1);
    let pair = field(a) << to.bits | field(b);
    let above = if to.bits < 16 { c << (2 * to.bits) } else { 0 };
    (above | pair) & 0xffff_ffff
}

/// `.ue8m0` of a number's magnitude: a power of two, by its biased exponent. Rounds up or toward zero;
/// too small numbers give the least code, NaN 255. (CUDA's header `cuda_fp8.hpp` drops the sign.)
pub fn to_ue8m0(round: Round, satfinite: bool, value: Value) -> u64 {
    match value {
        Value::Nan => 0xff,
        Value::Inf(_) => {
            if satfinite {
                0xfe
            } else {
                0xff
            }
        }
        Value::Zero(_) => 0,
        Value::Finite { exp, sig, .. } => {
            let lead = sig.ilog2() as i32;
            let up = round == Round::Up && sig != 1 << lead;
            let code = exp + lead + 127 + up as i32;
            code.clamp(0, if satfinite { 0xfe } else { 0xff }) as u64
        }
    }
}

#[cfg(test)]
mod tests;
