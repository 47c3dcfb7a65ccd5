//! Element types of buffers and scalars, and their little-endian encodings.

use std::fmt;

/// The type of one element, named as PTX names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum ElemType {
    U8,
    U16,
    U32,
    U64,
    S8,
    S16,
    S32,
    S64,
    F16,
    Bf16,
    F32,
    F64,
}

use ElemType::*;

impl ElemType {
    /// All of them, in the order of the documentation.
    pub const ALL: [ElemType; 12] = [U8, U16, U32, U64, S8, S16, S32, S64, F16, Bf16, F32, F64];

    /// `u8`, `s32`, `bf16`, …
    pub const fn name(self) -> &'static str {
        match self {
            U8 => "u8",
            U16 => "u16",
            U32 => "u32",
            U64 => "u64",
            S8 => "s8",
            S16 => "s16",
            S32 => "s32",
            S64 => "s64",
            F16 => "f16",
            Bf16 => "bf16",
            F32 => "f32",
            F64 => "f64",
        }
    }

    /// The type of that name: as PTX has it, or as CUDA C does (`float`, `unsigned int`, `size_t`, `__half`).
    pub fn from_name(name: &str) -> Option<ElemType> {
        let own = Self::ALL.into_iter().find(|ty| ty.name() == name);
        own.or_else(|| Self::from_c(name))
    }

    /// What one of CUDA's vector types is made of: its element, their number, and its alignment in bytes (CUDA C++
    /// Programming Guide, built-in vector types; `cuda_fp16.h`, `cuda_bf16.h`).
    pub fn vector_from_name(name: &str) -> Option<(ElemType, usize, usize)> {
        match name {
            "dim3" => return Some((U32, 3, 4)),
            "half2" | "__half2" => return Some((F16, 2, 4)),
            "__nv_bfloat162" | "nv_bfloat162" => return Some((Bf16, 2, 4)),
            _ => {}
        }
        let count = ["1", "2", "3", "4"]
            .iter()
            .position(|count| name.ends_with(count))?
            + 1;
        let element = match &name[..name.len() - 1] {
            "char" => S8,
            "uchar" => U8,
            "short" => S16,
            "ushort" => U16,
            "int" => S32,
            "uint" => U32,
            "long" | "longlong" => S64,
            "ulong" | "ulonglong" => U64,
            "float" => F32,
            "double" => F64,
            _ => return None,
        };
        let align = match count {
            2 | 4 => (count * element.size()).min(16),
            _ => element.size(),
        };
        Some((element, count, align))
    }

    /// The type that CUDA C calls so on 64-bit Linux; of several words in any order.
    fn from_c(name: &str) -> Option<ElemType> {
        let name = name.strip_prefix("std::").unwrap_or(name);
        let mut words: Vec<&str> = name.split_whitespace().collect();
        words.retain(|word| *word != "const");
        let is_unsigned = words.contains(&"unsigned");
        let is_signed = words.contains(&"signed");
        words.retain(|word| !["unsigned", "signed"].contains(word));
        let longs = words.iter().filter(|word| **word == "long").count();
        if is_unsigned && is_signed {
            return None;
        }
        let integer = |signed: ElemType, unsigned: ElemType| {
            Some(if is_unsigned { unsigned } else { signed })
        };
        words.retain(|word| *word != "long");
        match (&words[..], longs) {
            ([] | ["int"], 1 | 2) => return integer(S64, U64),
            ([], 0) if is_unsigned || is_signed => return integer(S32, U32),
            (_, 1..) => return None,
            _ => {}
        }
        match &words[..] {
            ["char"] => integer(S8, U8),
            ["short"] | ["short", "int"] | ["int", "short"] => integer(S16, U16),
            ["int"] => integer(S32, U32),
            _ if is_unsigned || is_signed => None,
            ["float"] => Some(F32),
            ["double"] => Some(F64),
            ["half" | "__half"] => Some(F16),
            ["__nv_bfloat16" | "nv_bfloat16"] => Some(Bf16),
            ["bool" | "uint8_t" | "uchar"] => Some(U8),
            ["int8_t"] => Some(S8),
            ["uint16_t" | "ushort"] => Some(U16),
            ["int16_t"] => Some(S16),
            ["uint32_t" | "uint"] => Some(U32),
            ["int32_t"] => Some(S32),
            ["uint64_t" | "size_t" | "uintptr_t" | "ulong"] => Some(U64),
            ["int64_t" | "ptrdiff_t" | "intptr_t" | "ssize_t"] => Some(S64),
            _ => None,
        }
    }

    /// Size and natural alignment in bytes.
    pub const fn size(self) -> usize {
        match self {
            U8 | S8 => 1,
            U16 | S16 | F16 | Bf16 => 2,
            U32 | S32 | F32 => 4,
            U64 | S64 | F64 => 8,
        }
    }

    /// Is it a floating-point type?
    pub const fn is_float(self) -> bool {
        matches!(self, F16 | Bf16 | F32 | F64)
    }

    /// Is it a signed integer type?
    pub const fn is_signed(self) -> bool {
        matches!(self, S8 | S16 | S32 | S64)
    }

    /// Smallest and largest value of an integer type; `(0, 0)` for floating-point types.
    pub const fn int_range(self) -> (i128, i128) {
        let bits = 8 * self.size() as u32;
        if self.is_float() {
            (0, 0)
        } else if self.is_signed() {
            (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)
        } else {
            (0, (1 << bits) - 1)
        }
    }

    /// The bits of a quiet NaN with a telling payload, or 0xA5 in every byte of an integer: what
    /// an element holds that nobody has written.
    pub const fn poison(self) -> u64 {
        match self {
            F16 => 0x7EA5,
            Bf16 => 0x7FE5,
            F32 => 0x7FE5_A5A5,
            F64 => 0x7FFD_A5A5_A5A5_A5A5,
            _ => 0xA5A5_A5A5_A5A5_A5A5 & self.mask(),
        }
    }

    /// The bits of `value` in an integer type, two's complement; `None` if it is out of range or
    /// the type is no integer type.
    pub fn int_bits(self, value: i128) -> Option<u64> {
        let (low, high) = self.int_range();
        let fits = !self.is_float() && (low..=high).contains(&value);
        fits.then_some(value as u64 & self.mask())
    }

    /// The bits of `value` in a floating-point type, rounded once to nearest even; integer types
    /// give 0.
    pub fn float_bits(self, value: f64) -> u64 {
        match self {
            F64 => value.to_bits(),
            F32 => u64::from((value as f32).to_bits()),
            F16 => u64::from(round_to_16_bits(value, 5, 10)),
            Bf16 => u64::from(round_to_16_bits(value, 8, 7)),
            _ => 0,
        }
    }

    /// The value that `bits` stand for, exactly, for floating-point types and integers up to
    /// 2^53 in magnitude; larger integers are rounded.
    pub fn to_f64(self, bits: u64) -> f64 {
        match self {
            F64 => f64::from_bits(bits),
            F32 => f64::from(f32::from_bits(bits as u32)),
            F16 => half_to_f64(bits as u16),
            Bf16 => f64::from(f32::from_bits((bits as u32) << 16)),
            _ => self.to_int(bits) as f64,
        }
    }

    /// The integer that `bits` stand for; floating-point types give their bit pattern.
    pub fn to_int(self, bits: u64) -> i128 {
        let unused = 64 - 8 * self.size() as u32;
        if self.is_signed() {
            i128::from(((bits << unused) as i64) >> unused)
        } else {
            i128::from(bits & self.mask())
        }
    }

    /// The bits of the element at `bytes`, which must hold at least `size()` bytes (missing ones
    /// count as zero).
    pub fn read(self, bytes: &[u8]) -> u64 {
        let mut word = [0; 8];
        for (to, from) in word.iter_mut().zip(bytes.iter().take(self.size())) {
            *to = *from;
        }
        u64::from_le_bytes(word)
    }

    const fn mask(self) -> u64 {
        u64::MAX >> (64 - 8 * self.size() as u32)
    }
}

impl fmt::Display for ElemType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Rounds to a 16-bit IEEE format with so many exponent and stored significand bits, to nearest
/// even, in one step (going through f32 would round twice).
fn round_to_16_bits(value: f64, exponent_bits: u32, significand_bits: u32) -> u16 {
    let bits = value.to_bits();
    let sign = ((bits >> 48) & 0x8000) as u16;
    let infinity = (((1u32 << exponent_bits) - 1) << significand_bits) as u16;
    if value.is_nan() {
        return sign | infinity | 1 << (significand_bits - 1);
    }
    let bias = (1i64 << (exponent_bits - 1)) - 1;
    // Scale so that the last kept bit has weight one; subnormals share the smallest exponent.
    let exponent = (((bits >> 52) & 0x7FF) as i64 - 1023).max(1 - bias);
    let shift = i64::from(significand_bits) - exponent;
    let scaled = value.abs() * power_of_two(shift);
    if !scaled.is_finite() {
        return sign | infinity;
    }
    let steps = scaled.round_ties_even() as i64;
    // Carries out of the significand run into the exponent by themselves.
    let encoded = ((exponent + bias - 1) << significand_bits) + steps;
    sign | encoded.clamp(0, i64::from(infinity)) as u16
}

/// 2^`exponent`; infinity where f64 ends, which only happens for values far out of range.
fn power_of_two(exponent: i64) -> f64 {
    if exponent < -1022 {
        return f64::INFINITY;
    }
    f64::from_bits((((exponent + 1023).clamp(1, 2046)) as u64) << 52)
}

/// The value of an IEEE binary16 number.
fn half_to_f64(bits: u16) -> f64 {
    let sign = if bits & 0x8000 == 0 { 1.0 } else { -1.0 };
    let exponent = i64::from((bits >> 10) & 0x1F);
    let fraction = f64::from(bits & 0x3FF);
    match exponent {
        0 => sign * fraction * power_of_two(-24),
        31 if fraction == 0.0 => sign * f64::INFINITY,
        31 => f64::NAN,
        _ => sign * (1024.0 + fraction) * power_of_two(exponent - 25),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_finite_16_bit_float_survives_a_round_trip() {
        for ty in [F16, Bf16] {
            for bits in 0..=u64::from(u16::MAX) {
                let value = ty.to_f64(bits);
                if !value.is_nan() {
                    assert_eq!(ty.float_bits(value), bits, "{ty} {bits:#x} {value}");
                }
            }
        }
    }

    #[test]
    fn rounding_goes_to_the_nearest_and_ties_to_even() {
        for ty in [F16, Bf16] {
            for bits in 0..ty.float_bits(f64::INFINITY) - 1 {
                let (below, above) = (ty.to_f64(bits), ty.to_f64(bits + 1));
                let middle = (below + above) / 2.0;
                let even = bits + (bits & 1);
                assert_eq!(ty.float_bits(middle), even, "{ty} tie at {middle}");
                assert_eq!(ty.float_bits(middle.next_down()), bits);
                assert_eq!(ty.float_bits(middle.next_up()), bits + 1);
            }
        }
        assert_eq!(F16.float_bits(65519.99), 0x7BFF);
        assert_eq!(F16.float_bits(65520.0), 0x7C00);
        assert_eq!(F16.float_bits(1e300), 0x7C00);
        assert_eq!(Bf16.float_bits(f64::MIN), 0xFF80);
        assert_eq!(Bf16.float_bits(5e-324), 0);
    }

    #[test]
    fn integers_are_range_checked() {
        assert_eq!(S8.int_bits(-128), Some(0x80));
        assert_eq!(S8.int_bits(128), None);
        assert_eq!(U64.int_bits(u64::MAX.into()), Some(u64::MAX));
        assert_eq!(U8.int_bits(-1), None);
        assert_eq!(F32.int_bits(0), None);
        assert_eq!(S16.to_int(0xFFFE), -2);
    }

    #[test]
    fn poisoned_floats_are_quiet_nans() {
        assert!(
            ElemType::ALL
                .iter()
                .all(|t| !t.is_float() || t.to_f64(t.poison()).is_nan())
        );
        assert_eq!(F32.poison() & 0x0040_0000, 0x0040_0000);
        assert_eq!(S16.poison(), 0xA5A5);
    }

    #[test]
    fn types_of_c_are_known() {
        for (name, ty) in [
            ("float", F32),
            ("const double", F64),
            ("unsigned", U32),
            ("unsigned int", U32),
            ("long unsigned int", U64),
            ("long long", S64),
            ("signed char", S8),
            ("size_t", U64),
            ("std::int16_t", S16),
            ("__half", F16),
            ("s32", S32),
        ] {
            assert_eq!(ElemType::from_name(name), Some(ty), "{name}");
        }
        for name in [
            "",
            "float4",
            "unsigned float",
            "long double",
            "long float",
            "unsigned signed",
            "const",
            "void",
        ] {
            assert_eq!(ElemType::from_name(name), None, "{name}");
        }
    }
}
