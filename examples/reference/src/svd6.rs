//! Polar factor by Newton's iteration (Higham 1986), R <- (R + R^-T) / 2; singular values as the
//! eigenvalues of the symmetric factor R^T A, by bisection.

use rayon::prelude::*;

use crate::data::{Data, Output, floats};

const N: usize = 6;

type Matrix = [[f64; N]; N];

fn from_fn(f: impl Fn(usize, usize) -> f64) -> Matrix {
    std::array::from_fn(|i| std::array::from_fn(|j| f(i, j)))
}

fn mul(a: &Matrix, b: &Matrix) -> Matrix {
    from_fn(|i, j| (0..N).map(|k| a[i][k] * b[k][j]).sum())
}

fn transpose(a: &Matrix) -> Matrix {
    from_fn(|i, j| a[j][i])
}

/// Gauss-Jordan elimination with row pivoting.
fn inverse(mut a: Matrix) -> Matrix {
    let mut x = from_fn(|i, j| f64::from(u8::from(i == j)));
    for k in 0..N {
        let pivot = (k..N).fold(k, |p, i| if a[i][k].abs() > a[p][k].abs() { i } else { p });
        a.swap(k, pivot);
        x.swap(k, pivot);
        let scale = 1.0 / a[k][k];
        for j in 0..N {
            a[k][j] *= scale;
            x[k][j] *= scale;
        }
        for i in (0..N).filter(|&i| i != k) {
            let factor = a[i][k];
            for j in 0..N {
                a[i][j] -= factor * a[k][j];
                x[i][j] -= factor * x[k][j];
            }
        }
    }
    x
}

fn polar(a: &Matrix) -> Matrix {
    let mut r = *a;
    for _ in 0..60 {
        let back = transpose(&inverse(r));
        let next = from_fn(|i, j| (r[i][j] + back[i][j]) / 2.0);
        let change = (0..N * N)
            .map(|at| (next[at / N][at % N] - r[at / N][at % N]).abs())
            .fold(0.0, f64::max);
        r = next;
        if change < 1e-15 {
            break;
        }
    }
    r
}

/// How many eigenvalues of the symmetric `h` lie below `x`: the negative pivots of h - x I
/// (Sylvester's law of inertia).
fn below(h: &Matrix, x: f64) -> usize {
    let mut a = from_fn(|i, j| h[i][j] - if i == j { x } else { 0.0 });
    for k in 0..N {
        for i in k + 1..N {
            let factor = a[i][k] / a[k][k];
            for j in k + 1..N {
                a[i][j] -= factor * a[k][j];
            }
        }
    }
    (0..N).filter(|&k| a[k][k] < 0.0).count()
}

/// Eigenvalues of a symmetric positive definite matrix, in descending order, by bisection.
fn eigenvalues(h: &Matrix) -> [f64; N] {
    let trace: f64 = (0..N).map(|i| h[i][i]).sum();
    std::array::from_fn(|rank| {
        let (mut low, mut high) = (0.0, trace);
        for _ in 0..50 {
            let middle = (low + high) / 2.0;
            if below(h, middle) < N - rank {
                low = middle;
            } else {
                high = middle;
            }
        }
        (low + high) / 2.0
    })
}

pub(crate) fn reference(data: &Data<'_>) -> Option<Vec<Output>> {
    let n = data.param("n")?;
    let matrix = data.floats("matrix")?;
    let results: Vec<([f64; N], Matrix)> = (0..n)
        .into_par_iter()
        .map(|id| {
            let a = from_fn(|i, j| matrix[(N * i + j) * n + id]);
            let r = polar(&a);
            (eigenvalues(&mul(&transpose(&r), &a)), r)
        })
        .collect();
    let values = (0..N)
        .flat_map(|k| results.iter().map(move |(values, _)| values[k]))
        .collect();
    let factors = (0..N * N)
        .flat_map(|at| results.iter().map(move |(_, r)| r[at / N][at % N]))
        .collect();
    Some(vec![floats("values", values), floats("polar", factors)])
}
