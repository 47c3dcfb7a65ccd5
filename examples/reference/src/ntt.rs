//! Number-theoretic transforms by splitting into even and odd points, with remainders taken by
//! division.

use rayon::prelude::*;

use crate::data::{Data, Output, words};

const PRIME: u128 = (1 << 64) - (1 << 32) + 1;
const POINTS: usize = 4096;

fn mul(a: u128, b: u128) -> u128 {
    a * b % PRIME
}

fn pow(mut base: u128, mut exponent: u128) -> u128 {
    let mut power = 1;
    while exponent > 0 {
        if exponent & 1 == 1 {
            power = mul(power, base);
        }
        base = mul(base, base);
        exponent >>= 1;
    }
    power
}

/// The root of one of order 4096 for which root^256 = 2^12; 7 generates all residues.
fn root() -> u128 {
    pow(7, 5 * ((PRIME - 1) / POINTS as u128))
}

/// sum over j of points[j] root^(j k), for all k.
fn transform(points: &[u128], root: u128) -> Vec<u128> {
    let half = points.len() / 2;
    if half == 0 {
        return points.to_vec();
    }
    let part = |first: usize| {
        let part: Vec<u128> = points.iter().skip(first).step_by(2).copied().collect();
        transform(&part, mul(root, root))
    };
    let (even, odd) = (part(0), part(1));
    (0..2 * half)
        .scan(1, |power, k| {
            let sum = even[k % half] + mul(*power, odd[k % half]);
            *power = mul(*power, root);
            Some(sum % PRIME)
        })
        .collect()
}

pub(crate) fn reference(data: &Data<'_>) -> Option<Vec<Output>> {
    let points = data.words("in")?;
    let out = points
        .par_chunks(POINTS)
        .flat_map_iter(|points| {
            let points: Vec<u128> = points.iter().map(|&p| p.into()).collect();
            transform(&points, root()).into_iter().map(|x| x as u64)
        })
        .collect();
    Some(vec![words("out", out)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_root_has_its_order() {
        assert_eq!(pow(root(), 256), 1 << 12);
        assert_eq!(pow(root(), 2048), PRIME - 1);
    }

    #[test]
    fn the_transform_is_the_sum_that_it_stands_for() {
        let root = pow(root(), 256);
        let points: Vec<u128> = (0..16).map(|j| j * j + 5).collect();
        for (k, sum) in (0..).zip(transform(&points, root)) {
            let term = |(j, &point): (u128, &u128)| mul(point, pow(root, j * k));
            let direct = (0..).zip(&points).map(term).sum::<u128>() % PRIME;
            assert_eq!(sum, direct, "{k}");
        }
    }
}
