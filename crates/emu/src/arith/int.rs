//! Integer arithmetic (PTX ISA, 'Integer Arithmetic Instructions' and 'Extended-Precision Integer
//! Arithmetic Instructions').

use super::Lane;

/// An integer register type.
pub trait Int: Lane + Ord {
    /// Width in bits.
    const BITS: u32;
    /// Twice as wide, same signedness; `.s64` and `.u64` widen to 128 bits.
    type Wide: Copy;
    /// `a + b`, wrapping.
    fn add(self, b: Self) -> Self;
    /// `a - b`, wrapping.
    fn sub(self, b: Self) -> Self;
    /// `mul.lo`
    fn mul_lo(self, b: Self) -> Self;
    /// `mul.hi`
    fn mul_hi(self, b: Self) -> Self;
    /// `mul.wide`
    fn mul_wide(self, b: Self) -> Self::Wide;
    /// `div`; division by zero gives all ones, the least value by -1 itself.
    fn div(self, b: Self) -> Self;
    /// `rem`; by zero all ones, as the hardware's routines return.
    fn rem(self, b: Self) -> Self;
    /// `abs`, wrapping.
    fn abs(self) -> Self;
    /// `neg`, wrapping.
    fn neg(self) -> Self;
    /// `add.sat`
    fn add_sat(self, b: Self) -> Self;
    /// `sub.sat`
    fn sub_sat(self, b: Self) -> Self;
    /// `|a - b|`
    fn abs_diff(self, b: Self) -> Self;
    /// The value in the widest integer.
    fn widest(self) -> i128;
    /// From the widest integer, truncated.
    fn truncate(value: i128) -> Self;
    /// From the widest integer, clamped to the type's range.
    fn clamped(value: i128) -> Self;
    /// `shl`: amounts beyond the width give zero.
    fn shl(self, by: u32) -> Self;
    /// `shr`: amounts beyond the width give zero, or the sign in every bit.
    fn shr(self, by: u32) -> Self;
}

macro_rules! ints {
    ($($ty:ident, $wide:ty, $signed:literal;)*) => {$(
        impl Int for $ty {
            const BITS: u32 = $ty::BITS;
            type Wide = $wide;
            #[inline(always)]
            fn add(self, b: Self) -> Self {
                self.wrapping_add(b)
            }
            #[inline(always)]
            fn sub(self, b: Self) -> Self {
                self.wrapping_sub(b)
            }
            #[inline(always)]
            fn mul_lo(self, b: Self) -> Self {
                self.wrapping_mul(b)
            }
            #[inline(always)]
            fn mul_hi(self, b: Self) -> Self {
                (self.mul_wide(b) >> $ty::BITS) as $ty
            }
            #[inline(always)]
            fn mul_wide(self, b: Self) -> $wide {
                self as $wide * b as $wide
            }
            #[inline(always)]
            fn div(self, b: Self) -> Self {
                if b == 0 { !0 } else { self.wrapping_div(b) }
            }
            #[inline(always)]
            fn rem(self, b: Self) -> Self {
                if b == 0 { !0 } else { self.wrapping_rem(b) }
            }
            #[inline(always)]
            fn abs(self) -> Self {
                if $signed && self >> ($ty::BITS - 1) != 0 { self.wrapping_neg() } else { self }
            }
            #[inline(always)]
            fn neg(self) -> Self {
                self.wrapping_neg()
            }
            #[inline(always)]
            fn add_sat(self, b: Self) -> Self {
                self.saturating_add(b)
            }
            #[inline(always)]
            fn sub_sat(self, b: Self) -> Self {
                self.saturating_sub(b)
            }
            #[inline(always)]
            fn abs_diff(self, b: Self) -> Self {
                $ty::abs_diff(self, b) as $ty
            }
            #[inline(always)]
            fn widest(self) -> i128 {
                self as i128
            }
            #[inline(always)]
            fn truncate(value: i128) -> Self {
                value as $ty
            }
            #[inline(always)]
            fn clamped(value: i128) -> Self {
                value.clamp($ty::MIN as i128, $ty::MAX as i128) as $ty
            }
            #[inline(always)]
            fn shl(self, by: u32) -> Self {
                self.checked_shl(by).unwrap_or(0)
            }
            #[inline(always)]
            fn shr(self, by: u32) -> Self {
                self >> if $signed { by.min($ty::BITS - 1) } else if by < $ty::BITS { by } else { return 0 }
            }
        }
    )*};
}
ints! {
    u8, u16, false;
    i8, i16, true;
    u16, u32, false;
    i16, i32, true;
    u32, u64, false;
    i32, i64, true;
    u64, u128, false;
    i64, i128, true;
}

/// `mad.lo`
#[inline(always)]
pub fn mad_lo<T: Int>(a: T, b: T, c: T) -> T {
    a.mul_lo(b).add(c)
}

/// `mad.hi`
#[inline(always)]
pub fn mad_hi<T: Int>(a: T, b: T, c: T) -> T {
    a.mul_hi(b).add(c)
}

/// `mad.hi.sat.s32`
#[inline(always)]
pub fn mad_hi_sat<T: Int>(a: T, b: T, c: T) -> T {
    a.mul_hi(b).add_sat(c)
}

/// `sad`: `c + |a - b|`.
#[inline(always)]
pub fn sad<T: Int>(a: T, b: T, c: T) -> T {
    c.add(a.abs_diff(b))
}

/// `min`
#[inline(always)]
pub fn min<T: Int>(a: T, b: T) -> T {
    Ord::min(a, b)
}

/// `max`
#[inline(always)]
pub fn max<T: Int>(a: T, b: T) -> T {
    Ord::max(a, b)
}

/// `min.relu`, `max.relu`: negative results become zero.
#[inline(always)]
pub fn relu<T: Int>(a: T) -> T {
    Ord::max(a, T::from_lane(0))
}

/// The 48-bit product of the low 24 bits of both operands: `mul24`.
#[inline(always)]
fn product24<T: Int>(a: T, b: T) -> i128 {
    let low24 = |x: T| {
        let bits = (x.to_lane() & 0xff_ffff) as i128;
        let signed = T::truncate(-1) < T::from_lane(0);
        if signed && bits & 0x80_0000 != 0 {
            bits - 0x100_0000
        } else {
            bits
        }
    };
    low24(a) * low24(b)
}

/// `mul24.lo`: bits 0 to 31 of the product.
#[inline(always)]
pub fn mul24_lo<T: Int>(a: T, b: T) -> T {
    T::truncate(product24(a, b))
}

/// `mul24.hi`: bits 16 to 47 of the product.
#[inline(always)]
pub fn mul24_hi<T: Int>(a: T, b: T) -> T {
    T::truncate(product24(a, b) >> 16)
}

/// Sum and carry-out: `add.cc`, and with a carry-in `addc.cc`.
#[inline(always)]
pub fn add_carry<T: Int>(a: T, b: T, carry: bool) -> (T, bool) {
    let sum = a.to_lane() as u128 + b.to_lane() as u128 + carry as u128;
    (T::from_lane(sum as u64), sum >> T::BITS != 0)
}

/// Difference and the carry flag after it: `sub.cc` (whose carry-in is set), and `subc.cc`.
///
/// Hardware adds the complement: `d = a + ~b + CC.CF`, and the flag is the carry out of that sum, set where *no*
/// borrow occurred. The ISA's text has it the other way round; an H100 has it so.
#[inline(always)]
pub fn sub_carry<T: Int>(a: T, b: T, carry: bool) -> (T, bool) {
    add_carry(a, T::from_lane(!b.to_lane()), carry)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn division_by_zero_and_overflow_are_defined() {
        assert_eq!(7u32.div(0), u32::MAX);
        assert_eq!(Int::div(-7i32, 0), -1);
        assert_eq!(Int::div(i32::MIN, -1), i32::MIN);
        assert_eq!(Int::rem(i64::MIN, -1), 0);
        assert_eq!(Int::rem(5u64, 0), u64::MAX);
        assert_eq!(Int::abs(i16::MIN), i16::MIN);
    }

    #[test]
    fn shifts_clamp() {
        assert_eq!(Int::shl(1u32, 31), 1 << 31);
        assert_eq!(Int::shl(1u32, 32), 0);
        assert_eq!(Int::shr(-8i32, 99), -1);
        assert_eq!(Int::shr(8i32, 99), 0);
        assert_eq!(Int::shr(u64::MAX, 64), 0);
        assert_eq!(Int::shr(0x8000u16, 15), 1);
    }

    #[test]
    fn mul24_takes_the_low_24_bits() {
        assert_eq!(mul24_lo(0xff00_0003u32, 5), 15);
        assert_eq!(mul24_lo(0x00ff_ffffi32, 5), -5);
        assert_eq!(
            mul24_hi(0x00ff_ffffu32, 0x00ff_ffff),
            ((0xff_ffffu64 * 0xff_ffff) >> 16) as u32
        );
    }

    proptest! {
        #[test]
        fn signed_products_agree_with_128_bits(a: i64, b: i64, c: i64) {
            let wide = a as i128 * b as i128;
            prop_assert_eq!(a.mul_hi(b), (wide >> 64) as i64);
            prop_assert_eq!(mad_lo(a, b, c), (wide + c as i128) as i64);
            let (a, b, c) = (a as i32, b as i32, c as i32);
            let high = (a as i64 * b as i64) >> 32;
            prop_assert_eq!(mad_hi_sat(a, b, c), (high + c as i64).clamp(i32::MIN as i64, i32::MAX as i64) as i32);
        }

        #[test]
        fn carry_chains_add_128_bits(a: u128, b: u128, signed: bool) {
            let halves = |x: u128| (x as u64, (x >> 64) as u64);
            let ((al, ah), (bl, bh)) = (halves(a), halves(b));
            let (low, carry) = add_carry(al, bl, false);
            let high = if signed {
                add_carry(ah as i64, bh as i64, carry).0 as u64
            } else {
                add_carry(ah, bh, carry).0
            };
            prop_assert_eq!((low, high), halves(a.wrapping_add(b)));
            let (low, carry) = sub_carry(al, bl, true);
            let (high, out) = sub_carry(ah, bh, carry);
            prop_assert_eq!((low, high), halves(a.wrapping_sub(b)));
            prop_assert_eq!(out, a >= b);
        }

        #[test]
        fn sad_is_exact_modulo_the_width(a: i32, b: i32, c: i32) {
            let exact = c as i64 + (a as i64 - b as i64).abs();
            prop_assert_eq!(sad(a, b, c), exact as i32);
        }
    }
}
