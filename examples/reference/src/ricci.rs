//! Ricci tensor from derivatives of the Christoffel symbols,
//! R_ij = d_k G^k_ij - d_j G^k_ik + G^k_kl G^l_ij - G^k_jl G^l_ik, where the derivatives of the
//! inverse metric follow from d(g^-1) = -g^-1 dg g^-1. The grid's differences of fourth order are
//! the kernel's; the algebra is not.

use rayon::prelude::*;

use crate::data::{Data, Output, floats};

type Matrix = [[f64; 3]; 3];

const HALO: usize = 2;

/// Component of a symmetric tensor in storage: xx, xy, xz, yy, yz, zz.
const PACK: [[usize; 3]; 3] = [[0, 1, 2], [1, 3, 4], [2, 4, 5]];

/// Weights of the first and second derivative at distances -2 to 2, times 12.
const FIRST: [f64; 5] = [1.0, -8.0, 0.0, 8.0, -1.0];
const SECOND: [f64; 5] = [-1.0, 16.0, -30.0, 16.0, -1.0];

fn matrix(f: impl Fn(usize, usize) -> f64) -> Matrix {
    std::array::from_fn(|i| std::array::from_fn(|j| f(i, j)))
}

fn product(a: &Matrix, b: &Matrix) -> Matrix {
    matrix(|i, j| (0..3).map(|k| a[i][k] * b[k][j]).sum())
}

fn invert(g: &Matrix) -> Matrix {
    let minor = |i: usize, j: usize| {
        let (a, b, c, d) = ((i + 1) % 3, (i + 2) % 3, (j + 1) % 3, (j + 2) % 3);
        g[a][c] * g[b][d] - g[a][d] * g[b][c]
    };
    let determinant: f64 = (0..3).map(|j| g[0][j] * minor(0, j)).sum();
    matrix(|i, j| minor(j, i) / determinant)
}

/// A point of the grid.
struct Point<'a> {
    metric: &'a [f64],
    points: usize,
    strides: [usize; 3],
    at: usize,
    per_h: f64,
}

impl Point<'_> {
    fn value(&self, c: usize, offset: isize) -> f64 {
        self.metric[c * self.points + self.at.wrapping_add_signed(offset)]
    }

    /// Weighted sum over the five points around `offset` along an axis.
    fn along(&self, axis: usize, weights: [f64; 5], f: impl Fn(isize) -> f64) -> f64 {
        let stride = self.strides[axis] as isize;
        (-2..=2)
            .zip(weights)
            .map(|(k, w)| if w == 0.0 { 0.0 } else { w * f(k * stride) })
            .sum()
    }

    fn first(&self, c: usize, i: usize) -> f64 {
        self.along(i, FIRST, |o| self.value(c, o)) * self.per_h / 12.0
    }

    fn second(&self, c: usize, i: usize, j: usize) -> f64 {
        let per_h2 = self.per_h * self.per_h;
        if i == j {
            return self.along(i, SECOND, |o| self.value(c, o)) * per_h2 / 12.0;
        }
        let outer = self.along(j, FIRST, |o| self.along(i, FIRST, |p| self.value(c, o + p)));
        outer * per_h2 / 144.0
    }

    /// The metric's inverse and the Ricci tensor.
    fn curvature(&self) -> (Matrix, Matrix) {
        let g = matrix(|i, j| self.value(PACK[i][j], 0));
        let inverse = invert(&g);
        let dg: [Matrix; 3] = std::array::from_fn(|k| matrix(|i, j| self.first(PACK[i][j], k)));
        let ddg: [[Matrix; 3]; 3] = std::array::from_fn(|k| {
            std::array::from_fn(|l| matrix(|i, j| self.second(PACK[i][j], k, l)))
        });
        // First-kind symbols [m][i][j] from first derivatives of the metric, however obtained.
        let symbols = |d: &[Matrix; 3]| -> [Matrix; 3] {
            std::array::from_fn(|m| matrix(|i, j| (d[i][m][j] + d[j][m][i] - d[m][i][j]) / 2.0))
        };
        let raise = |inverse: &Matrix, lower: &[Matrix; 3]| -> [Matrix; 3] {
            std::array::from_fn(|m| {
                matrix(|i, j| (0..3).map(|k| inverse[m][k] * lower[k][i][j]).sum())
            })
        };
        let lower = symbols(&dg);
        let upper = raise(&inverse, &lower);
        // d_upper[l][m][i][j] = d_l G^m_ij
        let d_upper: [[Matrix; 3]; 3] = std::array::from_fn(|l| {
            let d_inverse =
                product(&product(&inverse, &dg[l]), &inverse).map(|row| row.map(|v| -v));
            let (a, b) = (
                raise(&d_inverse, &lower),
                raise(&inverse, &symbols(&ddg[l])),
            );
            std::array::from_fn(|m| matrix(|i, j| a[m][i][j] + b[m][i][j]))
        });
        let ricci = matrix(|i, j| {
            let mut sum = 0.0;
            for k in 0..3 {
                sum += d_upper[k][k][i][j] - d_upper[j][k][i][k];
                for l in 0..3 {
                    sum += upper[k][k][l] * upper[l][i][j] - upper[k][j][l] * upper[l][i][k];
                }
            }
            sum
        });
        (inverse, ricci)
    }
}

pub(crate) fn reference(data: &Data<'_>) -> Option<Vec<Output>> {
    let n = data.param("n")?;
    let per_h = data.scalar("per_h")?;
    let (metric, extrinsic) = (data.floats("metric")?, data.floats("extrinsic")?);
    let density = data.floats("density")?;
    let (mut ricci, mut constraint) = (data.floats("ricci")?, data.floats("constraint")?);

    let points = n * n * n;
    let inner = |flat: usize| {
        let coordinates = [flat % n, flat / n % n, flat / (n * n)];
        coordinates.iter().all(|&c| (HALO..n - HALO).contains(&c))
    };
    let at_point = |at: usize| {
        let point = Point {
            metric: &metric,
            points,
            strides: [1, n, n * n],
            at,
            per_h,
        };
        let (inverse, tensor) = point.curvature();
        let k = matrix(|i, j| extrinsic[PACK[i][j] * points + at]);
        let mixed = product(&inverse, &k);
        let trace = |m: &Matrix| m[0][0] + m[1][1] + m[2][2];
        let scalar = trace(&product(&inverse, &tensor));
        let matter = 16.0 * std::f64::consts::PI * density[at];
        let violation = scalar + trace(&mixed).powi(2) - trace(&product(&mixed, &mixed)) - matter;
        (at, tensor, violation)
    };
    let results: Vec<(usize, Matrix, f64)> = (0..points)
        .into_par_iter()
        .filter(|&p| inner(p))
        .map(at_point)
        .collect();
    for (at, tensor, violation) in results {
        for i in 0..3 {
            for j in i..3 {
                ricci[PACK[i][j] * points + at] = tensor[i][j];
            }
        }
        constraint[at] = violation;
    }
    Some(vec![
        floats("ricci", ricci),
        floats("constraint", constraint),
    ])
}
