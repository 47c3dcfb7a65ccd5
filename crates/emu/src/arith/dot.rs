//! `dp4a` and `dp2a`: dot products of bytes.

/// The byte of `x` at `index`, extended as `signed` says.
fn byte(x: u32, index: u32, signed: bool) -> i32 {
    let byte = (x >> (8 * index)) as u8;
    if signed {
        byte as i8 as i32
    } else {
        byte as i32
    }
}

/// `dp4a`: `c` plus the products of the four bytes; wraps.
#[inline(always)]
pub fn dp4a(a_signed: bool, b_signed: bool, a: u32, b: u32, c: u32) -> u32 {
    (0..4).fold(c, |sum, i| {
        sum.wrapping_add((byte(a, i, a_signed) * byte(b, i, b_signed)) as u32)
    })
}

/// `dp2a`: `c` plus the products of both halves of `a` with the two low (`high` false) or high
/// bytes of `b`; wraps.
#[inline(always)]
pub fn dp2a(high: bool, a_signed: bool, b_signed: bool, a: u32, b: u32, c: u32) -> u32 {
    (0..2).fold(c, |sum, i| {
        let half = (a >> (16 * i)) as u16;
        let half = if a_signed {
            half as i16 as i32
        } else {
            half as i32
        };
        sum.wrapping_add((half * byte(b, 2 * high as u32 + i, b_signed)) as u32)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_of_signed_and_unsigned_bytes() {
        assert_eq!(
            dp4a(true, true, 0xff02_0304, 0x01ff_0102, 10),
            (10 - 1 - 2 + 3 + 8) as u32
        );
        assert_eq!(
            dp4a(false, true, 0xff00_0000, 0xff00_0000, 0),
            -255i32 as u32
        );
        assert_eq!(
            dp2a(false, true, false, 0xffff_0003, 0x0000_0504, 1),
            (1 - 5 + 12) as u32
        );
        assert_eq!(
            dp2a(true, false, false, 0x0001_0002, 0x0605_0000, 0),
            6 + 10
        );
    }
}
