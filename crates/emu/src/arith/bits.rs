//! Logic, shifts and bit fields.

use super::int::Int;

/// Do amounts and positions beyond the register clamp or wrap?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overrun {
    /// `.clamp`
    Clamp,
    /// `.wrap`
    Wrap,
}

impl Overrun {
    #[inline(always)]
    fn amount(self, by: u32) -> u32 {
        match self {
            Overrun::Clamp => by.min(32),
            Overrun::Wrap => by & 31,
        }
    }
}

/// `lop3`: each bit of the result is bit `a:b:c` of the truth table.
#[inline(always)]
pub fn lop3(table: u8, a: u32, b: u32, c: u32) -> u32 {
    let mut result = 0;
    for row in 0..8 {
        if table >> row & 1 != 0 {
            let pick = |x: u32, bit: u32| if row >> bit & 1 != 0 { x } else { !x };
            result |= pick(a, 2) & pick(b, 1) & pick(c, 0);
        }
    }
    result
}

/// `shf.l`: the upper word of `b:a` shifted left.
#[inline(always)]
pub fn shf_left(mode: Overrun, a: u32, b: u32, by: u32) -> u32 {
    let pair = (b as u64) << 32 | a as u64;
    ((pair << mode.amount(by)) >> 32) as u32
}

/// `shf.r`: the lower word of `b:a` shifted right.
#[inline(always)]
pub fn shf_right(mode: Overrun, a: u32, b: u32, by: u32) -> u32 {
    let pair = (b as u64) << 32 | a as u64;
    (pair >> mode.amount(by)) as u32
}

/// `bfind`: the position of the most significant one (of the first bit unlike the sign, for signed
/// types), or how far to shift it to the top; all ones if there is none.
#[inline(always)]
pub fn bfind<T: Int>(shift_amount: bool, a: T) -> u32 {
    let bits = if a.widest() < 0 {
        !a.widest()
    } else {
        a.widest()
    } as u128;
    match bits {
        0 => u32::MAX,
        _ if shift_amount => T::BITS - 1 - bits.ilog2(),
        _ => bits.ilog2(),
    }
}

/// Place and length of a bit field, each at most 255. In 32 bits the upper bits of the operands do not count; in 64
/// they do (an H200: ptxas's own sequence).
#[inline(always)]
fn field<T: Int>(pos: u32, len: u32) -> (u32, u32) {
    match T::BITS {
        64 => (pos.min(0xff), len.min(0xff)),
        _ => (pos & 0xff, len & 0xff),
    }
}

/// `bfe`: the field of `len` bits at `pos`, extended by its sign or by zeros. The sign bit of a
/// field that runs over the register's end is the register's own.
#[inline(always)]
pub fn bfe<T: Int>(a: T, pos: u32, len: u32) -> T {
    let (pos, len) = field::<T>(pos, len);
    let top = T::BITS - 1;
    let sign = len != 0 && a.widest() < 0 && (pos + len - 1) >= top
        || len != 0 && signed::<T>() && a.to_lane() >> (pos + len - 1).min(top) & 1 != 0;
    let field = a.to_lane().checked_shr(pos).unwrap_or(0);
    let kept = if len >= 64 { u64::MAX } else { (1 << len) - 1 };
    // Bits of the field that lie beyond the register take the sign as well.
    let present = u64::MAX >> (64 - T::BITS) >> pos.min(T::BITS - 1) >> (pos > top) as u32;
    let real = kept & present;
    T::from_lane(field & real | if sign { !real } else { 0 })
}

fn signed<T: Int>() -> bool {
    T::truncate(-1) < T::from_lane(0)
}

/// `bfi`: `b` with `len` bits of `a` inserted at `pos`.
#[inline(always)]
pub fn bfi<T: Int>(a: T, b: T, pos: u32, len: u32) -> T {
    let (pos, len) = field::<T>(pos, len);
    let width = if len >= 64 { u64::MAX } else { (1 << len) - 1 };
    let mask = width.checked_shl(pos).unwrap_or(0);
    let moved = a.to_lane().checked_shl(pos).unwrap_or(0);
    T::from_lane(b.to_lane() & !mask | moved & mask)
}

/// `fns`: the position of the `offset`-th one at or after (before, if negative) `base`.
pub fn fns(mask: u32, base: u32, offset: i32) -> u32 {
    if offset == 0 {
        return if mask.checked_shr(base).unwrap_or(0) & 1 != 0 {
            base
        } else {
            u32::MAX
        };
    }
    // The hardware's routine gives zero where the count of ones has no positive form.
    if offset == i32::MIN {
        return 0;
    }
    let step = offset.signum() as i64;
    let mut left = offset.unsigned_abs() - 1;
    let mut pos = base as i64;
    while (0..32).contains(&pos) {
        if mask >> pos & 1 != 0 {
            if left == 0 {
                return pos as u32;
            }
            left -= 1;
        }
        pos += step;
    }
    u32::MAX
}

/// `szext`: the low `n` bits, extended.
#[inline(always)]
pub fn szext(mode: Overrun, signed: bool, a: u32, n: u32) -> u32 {
    match mode.amount(n) {
        0 => 0,
        32 => a,
        n if signed => ((a << (32 - n)) as i32 >> (32 - n)) as u32,
        n => a << (32 - n) >> (32 - n),
    }
}

/// `bmsk`: `width` ones from `pos` up; what lies beyond bit 31 is dropped.
#[inline(always)]
pub fn bmsk(mode: Overrun, pos: u32, width: u32) -> u32 {
    let ones = (1u64 << mode.amount(width)) - 1;
    (ones << mode.amount(pos)) as u32
}

/// The modes of `prmt`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are the instruction's modifiers")]
pub enum Permute {
    Index,
    F4e,
    B4e,
    Rc8,
    Ecl,
    Ecr,
    Rc16,
}

/// `prmt`: bytes of `b:a` picked by a selector. In index mode a selector nibble's top bit
/// replicates the byte's sign.
#[inline(always)]
pub fn prmt(mode: Permute, a: u32, b: u32, selector: u32) -> u32 {
    let pair = (b as u64) << 32 | a as u64;
    let n = selector & 3;
    let mut result = 0;
    for i in 0..4 {
        let nibble = match mode {
            Permute::Index => selector >> (4 * i) & 0xf,
            Permute::F4e => n + i,
            Permute::B4e => n.wrapping_sub(i) & 7,
            Permute::Rc8 => n,
            Permute::Ecl => i.max(n),
            Permute::Ecr => i.min(n),
            Permute::Rc16 => (n & 1) * 2 + (i & 1),
        };
        let byte = (pair >> (8 * (nibble & 7))) as u8;
        let byte = if nibble & 8 != 0 {
            ((byte as i8) >> 7) as u8
        } else {
            byte
        };
        result |= (byte as u32) << (8 * i);
    }
    result
}

/// `cnot`: one if `a` is zero.
#[inline(always)]
pub fn cnot<T: Int>(a: T) -> T {
    T::from_lane((a.to_lane() == 0) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arith::Lane;
    use proptest::prelude::*;

    /// The ISA's own loop for `bfe`.
    /// The ISA's loops take eight bits of each; ptxas's sequence for 64 bits saturates (measured on an H200).
    fn as_the_machine_reads<T: Int>(pos: u32, len: u32) -> (u32, u32) {
        if T::BITS == 64 {
            (pos.min(255), len.min(255))
        } else {
            (pos % 256, len % 256)
        }
    }

    fn bfe_by_bits<T: Int>(a: T, pos: u32, len: u32) -> u64 {
        let ((pos, len), msb) = (as_the_machine_reads::<T>(pos, len), T::BITS - 1);
        let bit = |i: u32| a.to_lane() >> i & 1;
        let sign = if len == 0 || !signed::<T>() {
            0
        } else {
            bit((pos + len - 1).min(msb))
        };
        (0..=msb).fold(0, |d, i| {
            let taken = i < len && pos + i <= msb;
            d | (if taken { bit(pos + i) } else { sign }) << i
        })
    }

    fn bfi_by_bits<T: Int>(a: T, b: T, pos: u32, len: u32) -> u64 {
        let ((pos, len), msb) = (as_the_machine_reads::<T>(pos, len), T::BITS - 1);
        let mut f = b.to_lane();
        for i in (0..len).take_while(|i| pos + i <= msb) {
            f = f & !(1 << (pos + i)) | (a.to_lane() >> i & 1) << (pos + i);
        }
        f
    }

    fn bmsk_by_the_isa(mode: Overrun, a: u32, b: u32) -> u32 {
        let (a1, b1) = (a & 31, b & 31);
        let clamp = mode == Overrun::Clamp;
        let mask0 = if clamp && a >= 32 { 0 } else { !0u32 << a1 };
        let over = a1 + b1 >= 32 || clamp && (a >= 32 || b >= 32);
        let mask1 = if over {
            0
        } else if b1 == 0 {
            !0
        } else {
            !0u32 << (a1 + b1)
        };
        mask0 & !mask1
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4096))]
        #[test]
        fn fields_follow_the_isa_loops(a: u64, b: u64, pos in 0u32..300, len in 0u32..300) {
            prop_assert_eq!(bfe(a, pos, len), bfe_by_bits(a, pos, len));
            prop_assert_eq!(bfe(a as i64, pos, len).to_lane(), bfe_by_bits(a as i64, pos, len));
            prop_assert_eq!(bfe(a as u32, pos, len) as u64, bfe_by_bits(a as u32, pos, len));
            prop_assert_eq!(bfe(a as i32, pos, len).to_lane(), bfe_by_bits(a as i32, pos, len));
            prop_assert_eq!(bfi(a, b, pos, len), bfi_by_bits(a, b, pos, len));
            prop_assert_eq!(bfi(a as u32, b as u32, pos, len) as u64, bfi_by_bits(a as u32, b as u32, pos, len));
            let small = (pos % 40, len % 40);
            for mode in [Overrun::Clamp, Overrun::Wrap] {
                prop_assert_eq!(bmsk(mode, small.0, small.1), bmsk_by_the_isa(mode, small.0, small.1));
            }
        }

        #[test]
        fn lop3_reads_its_table(table: u8, a: u32, b: u32, c: u32) {
            let d = lop3(table, a, b, c);
            for i in 0..32 {
                let row = (a >> i & 1) << 2 | (b >> i & 1) << 1 | c >> i & 1;
                prop_assert_eq!(d >> i & 1, (table >> row & 1) as u32);
            }
        }
    }

    #[test]
    fn prmt_modes_follow_the_tables() {
        let (a, b) = (0x3322_1100u32, 0x7766_5544u32);
        // The ISA's tables, bytes from most to least significant.
        let rows: [(Permute, [u32; 4]); 6] = [
            (
                Permute::F4e,
                [0x33221100, 0x44332211, 0x55443322, 0x66554433],
            ),
            (
                Permute::B4e,
                [0x55667700, 0x66770011, 0x77001122, 0x00112233],
            ),
            (
                Permute::Rc8,
                [0x00000000, 0x11111111, 0x22222222, 0x33333333],
            ),
            (
                Permute::Ecl,
                [0x33221100, 0x33221111, 0x33222222, 0x33333333],
            ),
            (
                Permute::Ecr,
                [0x00000000, 0x11111100, 0x22221100, 0x33221100],
            ),
            (
                Permute::Rc16,
                [0x11001100, 0x33223322, 0x11001100, 0x33223322],
            ),
        ];
        for (mode, expected) in rows {
            for (n, want) in expected.into_iter().enumerate() {
                assert_eq!(prmt(mode, a, b, n as u32), want, "{mode:?} {n}");
            }
        }
        assert_eq!(prmt(Permute::Index, 0x80ff_7f01, 0, 0x32_8b), 0x80ff_00ff);
    }

    #[test]
    fn searches() {
        assert_eq!(bfind(false, 0u32), u32::MAX);
        assert_eq!(bfind(false, -1i32), u32::MAX);
        assert_eq!(bfind(false, -256i64), 7);
        assert_eq!(bfind(true, 1u64), 63);
        assert_eq!(bfind(true, 0x4000_0000i32), 1);
        assert_eq!(fns(0b1011_0000, 4, 2), 5);
        assert_eq!(fns(0b1011_0000, 31, -1), 7);
        assert_eq!(fns(0b1011_0000, 31, -4), u32::MAX);
        assert_eq!(fns(0b1011_0000, 5, 0), 5);
        assert_eq!(fns(0b1011_0000, 6, 0), u32::MAX);
    }

    #[test]
    fn funnel_shifts_and_extensions() {
        assert_eq!(shf_left(Overrun::Clamp, 0x8000_0001, 0x1, 1), 3);
        assert_eq!(shf_left(Overrun::Clamp, 7, 1, 40), 7);
        assert_eq!(shf_left(Overrun::Wrap, 7, 1, 32), 1);
        assert_eq!(shf_right(Overrun::Clamp, 2, 1, 1), 0x8000_0001);
        assert_eq!(shf_right(Overrun::Clamp, 2, 1, 99), 1);
        assert_eq!(szext(Overrun::Clamp, true, 0x1f, 5), u32::MAX);
        assert_eq!(szext(Overrun::Clamp, false, 0xffff_ffff, 0), 0);
        assert_eq!(szext(Overrun::Wrap, true, 0xff, 40), u32::MAX);
        assert_eq!(szext(Overrun::Clamp, true, 0x8000_0000, 32), 0x8000_0000);
    }
}
