//! Sums of table points on P-384. Numbers are plain integers, reduced by folding what lies above
//! 2^384 back with 2^384 = 2^128 + 2^96 - 2^32 + 1; Montgomery form is only put on and off.

use rayon::prelude::*;

use crate::data::{Data, Output, words};

/// 384 bits, least significant word first.
type Number = [u64; 6];

const PRIME: Number = [
    0x0000_0000_FFFF_FFFF,
    0xFFFF_FFFF_0000_0000,
    0xFFFF_FFFF_FFFF_FFFE,
    u64::MAX,
    u64::MAX,
    u64::MAX,
];

/// 2^384 modulo the prime.
const RADIX: Number = [0xFFFF_FFFF_0000_0001, 0x0000_0000_FFFF_FFFF, 1, 0, 0, 0];

/// The product in as many words as both factors have together.
fn product(a: &[u64], b: &[u64]) -> Vec<u64> {
    let mut sum = vec![0; a.len() + b.len()];
    for (i, &x) in a.iter().enumerate() {
        let mut carry = 0;
        for (j, &y) in b.iter().enumerate() {
            let term = u128::from(x) * u128::from(y) + u128::from(sum[i + j]) + carry;
            sum[i + j] = term as u64;
            carry = term >> 64;
        }
        sum[i + b.len()] = carry as u64;
    }
    sum
}

/// a + b, and the carry.
fn sum(a: &[u64], b: &[u64]) -> (Vec<u64>, bool) {
    let mut carry = false;
    let words = (0..a.len().max(b.len())).map(|i| {
        let at = |x: &[u64]| u128::from(x.get(i).copied().unwrap_or(0));
        let term = at(a) + at(b) + u128::from(carry);
        carry = term >> 64 != 0;
        term as u64
    });
    (words.collect(), carry)
}

/// a - b modulo 2^384, and whether that borrowed.
fn difference(a: &Number, b: &Number) -> (Number, bool) {
    let mut borrow = false;
    let words = std::array::from_fn(|i| {
        let (first, one) = a[i].overflowing_sub(b[i]);
        let (second, two) = first.overflowing_sub(u64::from(borrow));
        borrow = one || two;
        second
    });
    (words, borrow)
}

fn reduce(mut wide: Vec<u64>) -> Number {
    loop {
        let mut low = [0; 6];
        low.iter_mut().zip(&wide).for_each(|(to, &from)| *to = from);
        let high = wide.get(6..).unwrap_or(&[]);
        if high.iter().all(|&word| word == 0) {
            let (below, borrow) = difference(&low, &PRIME);
            return if borrow { low } else { below };
        }
        let (folded, carry) = sum(&product(high, &RADIX[..3]), &low);
        wide = folded;
        wide.push(u64::from(carry));
    }
}

fn mul(a: &Number, b: &Number) -> Number {
    reduce(product(a, b))
}

fn add(a: &Number, b: &Number) -> Number {
    let (mut words, carry) = sum(a, b);
    words.push(u64::from(carry));
    reduce(words)
}

fn sub(a: &Number, b: &Number) -> Number {
    let (words, borrow) = difference(a, b);
    // The 2^384 that was borrowed is RADIX too much.
    if borrow {
        difference(&words, &RADIX).0
    } else {
        words
    }
}

/// a^(p - 2), Fermat's inverse.
fn inverse(a: &Number) -> Number {
    let (exponent, _) = difference(&PRIME, &[2, 0, 0, 0, 0, 0]);
    let mut power = [1, 0, 0, 0, 0, 0];
    for bit in (0..384).rev() {
        power = mul(&power, &power);
        if exponent[bit / 64] >> (bit % 64) & 1 != 0 {
            power = mul(&power, a);
        }
    }
    power
}

/// Jacobian coordinates: the affine point is (x / z^2, y / z^3).
#[derive(Clone, Copy)]
struct Point {
    x: Number,
    y: Number,
    z: Number,
}

const ONE: Number = [1, 0, 0, 0, 0, 0];

/// Adds an affine point by the chord through the two, with the denominator z (x2 z^2 - x).
fn chord(p: &Point, x2: &Number, y2: &Number) -> Point {
    let square = |a: &Number| mul(a, a);
    let cube = |a: &Number| mul(a, &square(a));
    let run = sub(&mul(x2, &square(&p.z)), &p.x);
    let rise = sub(&mul(y2, &cube(&p.z)), &p.y);
    // slope^2 - x1 - x2, where x1 + x2 is (2 x + run) run^2 over the common denominator.
    let both = mul(&add(&add(&p.x, &p.x), &run), &square(&run));
    let x = sub(&square(&rise), &both);
    let back = sub(&mul(&p.x, &square(&run)), &x);
    let y = sub(&mul(&rise, &back), &mul(&p.y, &cube(&run)));
    let z = mul(&p.z, &run);
    Point { x, y, z }
}

/// Six words from twelve limbs.
fn number(limbs: &[u64]) -> Number {
    std::array::from_fn(|i| limbs[2 * i] | limbs[2 * i + 1] << 32)
}

pub(crate) fn reference(data: &Data<'_>) -> Option<Vec<Output>> {
    let (n, windows) = (data.param("n")?, data.param("windows")?);
    let (scalar, table) = (data.words("scalar")?, data.words("table")?);
    let unit = inverse(&RADIX);
    let plain = |limbs: &[u64]| mul(&number(limbs), &unit);
    let total = |id: usize| {
        let mut sum: Option<Point> = None;
        for window in 0..windows {
            let digit = (scalar[window / 4 * n + id] >> (8 * (window % 4))) as usize & 0xFF;
            if digit == 0 {
                continue;
            }
            let (x, y) = table[(window * 255 + digit - 1) * 24..][..24].split_at(12);
            let (x, y) = (plain(x), plain(y));
            sum = Some(match sum {
                Some(sum) => chord(&sum, &x, &y),
                None => Point { x, y, z: ONE },
            });
        }
        sum.map_or([[0; 6]; 3], |p| [p.x, p.y, p.z].map(|c| mul(&c, &RADIX)))
    };
    let totals: Vec<[Number; 3]> = (0..n).into_par_iter().map(total).collect();
    let limb = |total: &[Number; 3], at: usize| {
        let word = total[at / 12][at % 12 / 2];
        word >> (32 * (at % 2)) & 0xFFFF_FFFF
    };
    let sums = (0..36)
        .flat_map(|at| totals.iter().map(move |total| limb(total, at)))
        .collect();
    Some(vec![words("sum", sums)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_of_the_curve_add_up_to_points_of_the_curve() {
        // The base point (SEC 2, 2.5.1); the curve is y^2 = x^3 - 3 x + b.
        let x = [
            0x3A54_5E38_7276_0AB7,
            0x5502_F25D_BF55_296C,
            0x59F7_41E0_8254_2A38,
            0x6E1D_3B62_8BA7_9B98,
            0x8EB1_C71E_F320_AD74,
            0xAA87_CA22_BE8B_0537,
        ];
        let y = [
            0x7A43_1D7C_90EA_0E5F,
            0x0A60_B1CE_1D7E_819D,
            0xE9DA_3113_B5F0_B8C0,
            0xF8F4_1DBD_289A_147C,
            0x5D9E_98BF_9292_DC29,
            0x3617_DE4A_9626_2C6F,
        ];
        let on_curve = |x: &Number, y: &Number| {
            let three_x = add(x, &add(x, x));
            let b = [
                0x2A85_C8ED_D3EC_2AEF,
                0xC656_398D_8A2E_D19D,
                0x0314_088F_5013_875A,
                0x181D_9C6E_FE81_4112,
                0x988E_056B_E3F8_2D19,
                0xB331_2FA7_E23E_E7E4,
            ];
            mul(y, y) == add(&sub(&mul(x, &mul(x, x)), &three_x), &b)
        };
        assert!(on_curve(&x, &y));
        assert_eq!(mul(&x, &inverse(&x)), ONE);

        // Its double by the tangent, and the sum of both by the chord.
        let slope = mul(
            &sub(
                &add(&mul(&x, &x), &add(&mul(&x, &x), &mul(&x, &x))),
                &[3, 0, 0, 0, 0, 0],
            ),
            &inverse(&add(&y, &y)),
        );
        let x2 = sub(&mul(&slope, &slope), &add(&x, &x));
        let y2 = sub(&mul(&slope, &sub(&x, &x2)), &y);
        assert!(on_curve(&x2, &y2));
        let triple = chord(&Point { x, y, z: ONE }, &x2, &y2);
        let z = inverse(&triple.z);
        let (zz, zzz) = (mul(&z, &z), mul(&z, &mul(&z, &z)));
        assert!(on_curve(&mul(&triple.x, &zz), &mul(&triple.y, &zzz)));
    }
}
