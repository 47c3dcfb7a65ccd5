//! Arithmetic modulo two primes: values of terms over the reals, at a random point.
//!
//! The second prime divides the first one's order, so that exponents modulo the second one are exponents of a
//! generator modulo the first: `2^(a+b) = 2^a * 2^b` holds there as it does over the reals.

use std::sync::LazyLock;

/// The prime of values: 4 times [`Q`] and 1.
pub const P: u64 = 576_460_752_303_423_389;
/// The prime of exponents.
pub const Q: u64 = 144_115_188_075_855_847;
/// An element of order [`Q`] modulo [`P`].
const G: u64 = 81;

/// Bits of a whole number in either part of a value: below the primes, so that all random values are whole numbers too.
const LOW: u32 = 58;
const HIGH: u32 = 57;

/// A product modulo a prime below 2⁶⁰.
#[inline(always)]
fn product<const N: u64>(a: u64, b: u64) -> u64 {
    // Numbers are kept as they are; the quotient is estimated by Barrett's method.
    const SHIFT: u32 = 120;
    let wide = u128::from(a) * u128::from(b);
    let factor = const { (1u128 << SHIFT) / N as u128 };
    // wide < 2^118, factor < 2^64: the upper parts give the quotient but for two.
    let (high, low) = ((wide >> 60) as u64, factor as u64);
    let quotient = ((u128::from(high) * u128::from(low)) >> 60) as u64;
    let mut rest = (wide as u64).wrapping_sub(quotient.wrapping_mul(N));
    while rest >= N {
        rest -= N;
    }
    rest
}

#[cfg(test)]
fn power<const N: u64>(mut base: u64, mut exponent: u64) -> u64 {
    let mut all = 1;
    while exponent > 0 {
        if exponent & 1 != 0 {
            all = product::<N>(all, base);
        }
        base = product::<N>(base, base);
        exponent >>= 1;
    }
    all
}

/// Powers of [`G`] by the digits of an exponent, eight bits each: `POWERS[i][d]` is `G^(d * 256^i)`.
static POWERS: LazyLock<[[u64; 256]; 8]> = LazyLock::new(|| {
    let mut base = G;
    std::array::from_fn(|_| {
        let mut next = 1;
        let digits = std::array::from_fn(|_| {
            let power = next;
            next = product::<P>(next, base);
            power
        });
        base = next;
        digits
    })
});

/// `G` to the power of an exponent below [`Q`], which has 57 bits.
fn power_of_base(exponent: u64) -> u64 {
    let powers = &*POWERS;
    let digit = |i: usize| powers[i][(exponent >> (8 * i) & 255) as usize];
    let pair = |i: usize| product::<P>(digit(i), digit(i + 1));
    let halves = [0, 4].map(|i| product::<P>(pair(i), pair(i + 2)));
    product::<P>(halves[0], halves[1])
}

/// The inverse, by Euclid's algorithm; 0 of 0.
fn inverse<const N: u64>(a: u64) -> u64 {
    let (mut r, mut next) = (N, a);
    // Below the prime, whatever their sign.
    let (mut t, mut after) = (0i64, 1i64);
    while next != 0 {
        let quotient = r / next;
        (r, next) = (next, r - quotient * next);
        (t, after) = (after, t - quotient as i64 * after);
    }
    t.rem_euclid(N as i64) as u64
}

/// A value: modulo [`P`], and modulo [`Q`] where it is known there too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Value {
    /// Modulo [`P`].
    pub p: u64,
    /// Modulo [`Q`], or [`Value::UNKNOWN`].
    pub q: u64,
}

impl Value {
    /// No value modulo [`Q`]: a power is one modulo [`P`] alone.
    pub const UNKNOWN: u64 = u64::MAX;
    /// −∞
    pub const LEAST: Value = Value {
        p: u64::MAX,
        q: u64::MAX,
    };
    /// ∞
    pub const MOST: Value = Value {
        p: u64::MAX - 1,
        q: u64::MAX,
    };
    /// 0
    pub const ZERO: Value = Value { p: 0, q: 0 };
    /// 1
    pub const ONE: Value = Value { p: 1, q: 1 };

    /// One that no computation leads to.
    pub fn nobodys(number: u64) -> Value {
        Value {
            p: P + number,
            q: Value::UNKNOWN,
        }
    }

    /// An integer.
    pub fn integer(n: i128) -> Value {
        Value {
            p: n.rem_euclid(i128::from(P)) as u64,
            q: n.rem_euclid(i128::from(Q)) as u64,
        }
    }

    /// An integer modulo 2¹¹⁵, the lower bits in `p`: whole numbers that differ modulo 2⁶⁴ differ here, as they need not
    /// modulo a prime.
    pub fn whole(n: i128) -> Value {
        Value {
            p: n as u64 & ((1 << LOW) - 1),
            q: (n >> LOW) as u64 & ((1 << HIGH) - 1),
        }
    }

    fn number(self) -> i128 {
        i128::from(self.q) << LOW | i128::from(self.p)
    }

    /// The sum of whole numbers.
    pub fn whole_plus(self, other: Value) -> Value {
        Value::whole(self.number().wrapping_add(other.number()))
    }

    /// The product of whole numbers.
    pub fn whole_times(self, other: Value) -> Value {
        Value::whole(self.number().wrapping_mul(other.number()))
    }

    /// A whole number with its sign turned.
    pub fn whole_negative(self) -> Value {
        Value::whole(self.number().wrapping_neg())
    }

    /// Is it a number?
    #[inline(always)]
    pub fn is_finite(self) -> bool {
        self.p < P
    }

    /// Modulo [`P`] alone, but for 0, 1 and −1.
    fn alone(p: u64) -> Value {
        match p {
            0 => Value::ZERO,
            1 => Value::ONE,
            p if p == P - 1 => Value { p, q: Q - 1 },
            p => Value {
                p,
                q: Value::UNKNOWN,
            },
        }
    }

    /// A sum. Infinities are for the caller.
    #[inline(always)]
    pub fn plus(self, other: Value) -> Value {
        let sum = self.p + other.p;
        let p = if sum >= P { sum - P } else { sum };
        if self.q == Value::UNKNOWN || other.q == Value::UNKNOWN {
            return Value::alone(p);
        }
        let sum = self.q + other.q;
        let q = if sum >= Q { sum - Q } else { sum };
        Value { p, q }
    }

    /// A product. Infinities are for the caller.
    #[inline(always)]
    pub fn times(self, other: Value) -> Value {
        let p = product::<P>(self.p, other.p);
        if self.q == Value::UNKNOWN || other.q == Value::UNKNOWN {
            return Value::alone(p);
        }
        let q = product::<Q>(self.q, other.q);
        Value { p, q }
    }

    /// The sign turned.
    #[inline(always)]
    pub fn negative(self) -> Value {
        let turn = |a: u64, n: u64| if a == 0 { 0 } else { n - a };
        Value {
            p: turn(self.p, P),
            q: match self.q {
                Value::UNKNOWN => Value::UNKNOWN,
                q => turn(q, Q),
            },
        }
    }

    /// The reciprocal; `None` of zero.
    pub fn inverse(self) -> Option<Value> {
        if self.p == 0 || self.q == 0 {
            return None;
        }
        let p = inverse::<P>(self.p);
        Some(match self.q {
            Value::UNKNOWN => Value::alone(p),
            q => Value {
                p,
                q: inverse::<Q>(q),
            },
        })
    }

    /// It modulo [`Q`]; where that is not known, a pseudo-random function of it.
    pub fn exponent(self) -> u64 {
        match self.q {
            Value::UNKNOWN => Value::random(&[0x65_78_70, self.p]).q,
            q => q,
        }
    }

    /// 2 to its power.
    pub fn power_of_two(self) -> Value {
        Value::alone(power_of_base(self.exponent()))
    }

    /// e to its power times a number that `log2e` stands for.
    pub fn power_of(self, log2e: Value) -> Value {
        let exponent = product::<Q>(self.exponent(), log2e.q);
        Value::alone(power_of_base(exponent))
    }

    /// A pseudo-random value that is a function of these words.
    pub fn random(words: &[u64]) -> Value {
        // Two lanes of a 128-bit multiply-and-fold hash, each with its own keys.
        let fold = |a: u64, b: u64| {
            let wide = u128::from(a) * u128::from(b);
            (wide as u64) ^ (wide >> 64) as u64
        };
        let (mut x, mut y) = (0x243f_6a88_85a3_08d3, 0x1319_8a2e_0370_7344);
        for &word in words {
            x = fold(x ^ word, 0xa076_1d64_78bd_642f ^ x.rotate_left(23));
            y = fold(
                y ^ word.rotate_left(32),
                0xe703_7ed1_a0b4_28db ^ y.rotate_left(41),
            );
            x ^= y.rotate_left(17);
        }
        let finish = |h: u64| {
            let h = (h ^ h >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let h = (h ^ h >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
            h ^ h >> 31
        };
        Value {
            p: finish(x) >> (64 - LOW),
            q: finish(y) % Q,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_are_those_of_wide_numbers() {
        let mut words = (1u64..).map(|n| Value::random(&[n]));
        for _ in 0..10_000 {
            let (a, b) = (words.next().unwrap(), words.next().unwrap());
            let wide =
                |a: u64, b: u64, n: u64| (u128::from(a) * u128::from(b) % u128::from(n)) as u64;
            assert_eq!(a.times(b).p, wide(a.p, b.p, P));
            assert_eq!(a.times(b).q, wide(a.q, b.q, Q));
            assert_eq!(a.times(a.inverse().unwrap()), Value::ONE);
            assert_eq!(a.plus(a.negative()), Value::ZERO);
        }
        for (a, b) in [(P - 1, P - 1), (0, P - 1), (1, P - 1), (P - 1, 2)] {
            let wide = (u128::from(a) * u128::from(b) % u128::from(P)) as u64;
            assert_eq!(product::<P>(a, b), wide);
        }
    }

    #[test]
    fn whole_numbers_are_not_reduced_by_a_prime() {
        let x = Value::random(&[1]);
        let of_prime = Value::whole(i128::from(P));
        assert_ne!(x.whole_times(of_prime), Value::ZERO);
        assert_eq!(x.whole_plus(x.whole_negative()), Value::ZERO);
        assert_eq!(x.whole_times(Value::whole(-1)), x.whole_negative());
        assert_eq!(x.whole_plus(Value::whole(0)), x);
        // The highest bit of 64 is seen.
        assert_ne!(x.whole_times(Value::whole(1 << 63)), Value::ZERO);
    }

    #[test]
    fn powers_of_sums_are_products_of_powers() {
        assert_eq!(P, 4 * Q + 1);
        assert_eq!(power::<P>(G, Q), 1);
        for exponent in [0, 1, 15, 16, 0x1_0000, Q - 1, Value::random(&[3]).q] {
            assert_eq!(power_of_base(exponent), power::<P>(G, exponent));
        }
        let (a, b) = (Value::random(&[1]), Value::random(&[2]));
        let product = a.power_of_two().times(b.power_of_two());
        assert_eq!(a.plus(b).power_of_two().p, product.p);
        assert_ne!(a.power_of_two(), b.power_of_two());
    }
}
