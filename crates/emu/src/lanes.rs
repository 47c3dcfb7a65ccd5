//! A warp's worth of values, and functions over them.

use crate::arith::Lane;

/// Threads in a warp.
pub const WARP: usize = warpwright_target::WARP_SIZE as usize;

/// One register of a warp: the value of each lane, zero-extended.
pub type Lanes = [u64; WARP];

/// A set of lanes, by bit.
pub type Mask = u32;

/// The lanes of a mask, in ascending order.
#[inline(always)]
pub fn lanes_of(mut mask: Mask) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        if mask == 0 {
            return None;
        }
        let lane = mask.trailing_zeros() as usize;
        mask &= mask - 1;
        Some(lane)
    })
}

/// The mask of the lanes for which a function holds.
#[inline(always)]
pub fn mask_where(f: impl Fn(usize) -> bool) -> Mask {
    (0..WARP).fold(0, |mask, lane| mask | (f(lane) as Mask) << lane)
}

/// Fills the lanes of a mask; the others keep what they held.
///
/// The full mask has its own loop so that the compiler vectorises it.
#[inline(always)]
pub fn fill(mask: Mask, out: &mut Lanes, f: impl Fn(usize) -> u64) {
    if mask == Mask::MAX {
        for (lane, out) in out.iter_mut().enumerate() {
            *out = f(lane);
        }
    } else {
        for lane in lanes_of(mask) {
            out[lane] = f(lane);
        }
    }
}

/// A pure function of registers to one register, for the lanes of a mask.
pub type LaneFn = Box<dyn Fn(&[&Lanes], &mut Lanes, Mask) + Send + Sync>;

/// Lifts a function of one value.
pub fn unary<A: Lane, R: Lane>(f: impl Fn(A) -> R + Send + Sync + 'static) -> LaneFn {
    Box::new(move |x, out, mask| {
        let [a] = x else { return };
        fill(mask, out, |l| f(A::from_lane(a[l])).to_lane());
    })
}

/// Lifts a function of two values.
pub fn binary<A: Lane, B: Lane, R: Lane>(f: impl Fn(A, B) -> R + Send + Sync + 'static) -> LaneFn {
    Box::new(move |x, out, mask| {
        let [a, b] = x else { return };
        fill(mask, out, |l| {
            f(A::from_lane(a[l]), B::from_lane(b[l])).to_lane()
        });
    })
}

/// Lifts a function of three values.
pub fn ternary<A: Lane, B: Lane, C: Lane, R: Lane>(
    f: impl Fn(A, B, C) -> R + Send + Sync + 'static,
) -> LaneFn {
    Box::new(move |x, out, mask| {
        let [a, b, c] = x else { return };
        fill(mask, out, |l| {
            f(A::from_lane(a[l]), B::from_lane(b[l]), C::from_lane(c[l])).to_lane()
        });
    })
}

/// Lifts a function of any number of raw lanes.
pub fn variadic(f: impl Fn(&[u64]) -> u64 + Send + Sync + 'static) -> LaneFn {
    Box::new(move |x, out, mask| {
        for lane in lanes_of(mask) {
            let mut values = [0; 8];
            for (value, lanes) in values.iter_mut().zip(x) {
                *value = lanes[lane];
            }
            out[lane] = f(&values);
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_are_listed_and_filled_by_mask() {
        assert_eq!(lanes_of(0x8000_0011).collect::<Vec<_>>(), [0, 4, 31]);
        let mut out = [7; WARP];
        fill(0b101, &mut out, |lane| lane as u64);
        assert_eq!(out[..4], [0, 7, 2, 7]);
        assert_eq!(mask_where(|lane| lane < 3), 0b111);
    }

    #[test]
    fn lifted_functions_see_typed_lanes() {
        let add = binary(|a: i8, b: i8| a.wrapping_add(b));
        let mut out = [0; WARP];
        add(&[&[0x1ff; WARP], &[2; WARP]], &mut out, Mask::MAX);
        assert_eq!(out, [1; WARP]);
    }
}
