//! Wilson's operator with full 4 x 4 spin matrices 1 -+ gamma and no projection.

use std::ops::{Add, Mul, Sub};

use rayon::prelude::*;

use crate::data::{Data, Output, floats};

#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Complex(f64, f64);

impl Add for Complex {
    type Output = Complex;
    fn add(self, other: Complex) -> Complex {
        Complex(self.0 + other.0, self.1 + other.1)
    }
}

impl Sub for Complex {
    type Output = Complex;
    fn sub(self, other: Complex) -> Complex {
        Complex(self.0 - other.0, self.1 - other.1)
    }
}

impl Mul for Complex {
    type Output = Complex;
    fn mul(self, other: Complex) -> Complex {
        let (re, im) = (
            self.0 * other.0 - self.1 * other.1,
            self.0 * other.1 + self.1 * other.0,
        );
        Complex(re, im)
    }
}

const O: Complex = Complex(0.0, 0.0);
const P: Complex = Complex(1.0, 0.0);
const M: Complex = Complex(-1.0, 0.0);
const I: Complex = Complex(0.0, 1.0);
const J: Complex = Complex(0.0, -1.0);

/// Euclidean gamma matrices in the chiral basis of DeGrand and Rossi: x, y, z, t.
const GAMMA: [[[Complex; 4]; 4]; 4] = [
    [[O, O, O, I], [O, O, I, O], [O, J, O, O], [J, O, O, O]],
    [[O, O, O, M], [O, O, P, O], [O, P, O, O], [M, O, O, O]],
    [[O, O, I, O], [O, O, O, J], [J, O, O, O], [O, I, O, O]],
    [[O, O, P, O], [O, O, O, P], [P, O, O, O], [O, P, O, O]],
];

pub(crate) fn reference(data: &Data<'_>) -> Option<Vec<Output>> {
    let mut extent = [0; 4];
    for (to, name) in extent.iter_mut().zip(["nx", "ny", "nz", "nt"]) {
        *to = data.param(name)?;
    }
    let sites: usize = extent.iter().product();
    let kappa = data.scalar("kappa")?;
    let (link, spinor) = (data.floats("link")?, data.floats("in")?);
    let complex = |field: &[f64], k: usize, site: usize| {
        Complex(
            field[2 * k * sites + site],
            field[(2 * k + 1) * sites + site],
        )
    };
    let psi = |site: usize, spin: usize, colour: usize| complex(&spinor, 3 * spin + colour, site);
    let u = |site: usize, direction: usize, row: usize, column: usize| {
        complex(&link, (3 * direction + row) * 3 + column, site)
    };
    let neighbour = |site: usize, direction: usize, step: usize| {
        let stride: usize = extent[..direction].iter().product();
        let at = site / stride % extent[direction];
        site - at * stride + (at + step) % extent[direction] * stride
    };

    let results: Vec<[Complex; 12]> = (0..sites)
        .into_par_iter()
        .map(|site| {
            let mut hops = [O; 12];
            for direction in 0..4 {
                let up = neighbour(site, direction, 1);
                let down = neighbour(site, direction, extent[direction] - 1);
                for spin in 0..4 {
                    for other in 0..4 {
                        let one = if spin == other { P } else { O };
                        let gamma = GAMMA[direction][spin][other];
                        for colour in 0..3 {
                            for c in 0..3 {
                                let ahead = u(site, direction, colour, c) * psi(up, other, c);
                                let Complex(re, im) = u(down, direction, c, colour);
                                let behind = Complex(re, -im) * psi(down, other, c);
                                let term = (one - gamma) * ahead + (one + gamma) * behind;
                                hops[3 * spin + colour] = hops[3 * spin + colour] + term;
                            }
                        }
                    }
                }
            }
            std::array::from_fn(|k| complex(&spinor, k, site) - Complex(kappa, 0.0) * hops[k])
        })
        .collect();
    let out = (0..24)
        .flat_map(|row| {
            let part = move |z: &Complex| if row % 2 == 0 { z.0 } else { z.1 };
            results.iter().map(move |site| part(&site[row / 2]))
        })
        .collect();
    Some(vec![floats("out", out)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_matrices_anticommute() {
        for a in 0..4 {
            for b in 0..4 {
                for i in 0..4 {
                    for j in 0..4 {
                        let product = |m: usize, n: usize| {
                            (0..4).fold(O, |sum, k| sum + GAMMA[m][i][k] * GAMMA[n][k][j])
                        };
                        let two = if a == b && i == j {
                            Complex(2.0, 0.0)
                        } else {
                            O
                        };
                        assert_eq!(product(a, b) + product(b, a), two, "{a} {b} {i} {j}");
                    }
                }
            }
        }
    }
}
