//! Products of matrices and vectors, and what is computed like them.

use super::{list, sizes, table};
use crate::data::{Data, Output};

pub(super) fn mm(data: &Data<'_>) -> Option<Vec<Output>> {
    let (m, n) = sizes(data)?;
    let k = data.param("k")?;
    let (a, b) = (data.floats("a")?, data.floats("b")?);
    table("c", m, n, |y, x| {
        (0..k).map(|i| a[y * k + i] * b[i * n + x]).sum()
    })
}

pub(super) fn bmm(data: &Data<'_>) -> Option<Vec<Output>> {
    let (m, n) = sizes(data)?;
    let (batch, k) = (data.param("batch")?, data.param("k")?);
    let (a, b) = (data.floats("a")?, data.floats("b")?);
    table("c", batch * m, n, |row, x| {
        let of = &b[row / m * k * n..];
        (0..k).map(|i| a[row * k + i] * of[i * n + x]).sum()
    })
}

pub(super) fn linear(data: &Data<'_>) -> Option<Vec<Output>> {
    let (m, n) = sizes(data)?;
    let k = data.param("k")?;
    let (x, w, bias) = (data.floats("x")?, data.floats("w")?, data.floats("bias")?);
    table("y", m, n, |row, unit| {
        let (x, w) = (&x[row * k..][..k], &w[unit * k..][..k]);
        let sum: f64 = x.iter().zip(w).map(|(x, w)| x * w).sum();
        (sum + bias[unit]).max(0.0)
    })
}

pub(super) fn mm_tn(data: &Data<'_>) -> Option<Vec<Output>> {
    let (m, n) = sizes(data)?;
    let k = data.param("k")?;
    let (alpha, beta) = (data.scalar("alpha")?, data.scalar("beta")?);
    let (a, b, c) = (data.floats("a")?, data.floats("b")?, data.floats("c")?);
    table("c", m, n, |y, x| {
        let product: f64 = (0..k).map(|i| a[i * m + y] * b[i * n + x]).sum();
        alpha * product + beta * c[y * n + x]
    })
}

pub(super) fn mm_strided(data: &Data<'_>) -> Option<Vec<Output>> {
    let (m, n) = sizes(data)?;
    let k = data.param("k")?;
    let (lda, ldb, ldc) = (data.param("lda")?, data.param("ldb")?, data.param("ldc")?);
    let (a, b, c) = (data.floats("a")?, data.floats("b")?, data.floats("c")?);
    table("c", m, ldc, |y, x| {
        if x < n {
            (0..k).map(|i| a[y * lda + i] * b[i * ldb + x]).sum()
        } else {
            c[y * ldc + x]
        }
    })
}

pub(super) fn syrk(data: &Data<'_>) -> Option<Vec<Output>> {
    let (m, n) = sizes(data)?;
    let a = data.floats("a")?;
    table("c", n, n, |y, x| {
        (0..m).map(|i| a[i * n + y] * a[i * n + x]).sum()
    })
}

/// The sum of the outer products of the rows.
pub(super) fn covariance(data: &Data<'_>) -> Option<Vec<Output>> {
    let (m, n) = sizes(data)?;
    let x = data.floats("x")?;
    let mut sums = vec![0.0; n * n];
    for row in x.chunks(n) {
        for (own, sums) in row.iter().zip(sums.chunks_mut(n)) {
            sums.iter_mut()
                .zip(row)
                .for_each(|(sum, x)| *sum += own * x);
        }
    }
    list("c", n * n, |i| sums[i] / (m as f64 - 1.0))
}

/// Row after row of all planes.
pub(super) fn doitgen(data: &Data<'_>) -> Option<Vec<Output>> {
    let p = data.param("p")?;
    let rows = data.param("r")? * data.param("q")?;
    let (a, c4) = (data.floats("a")?, data.floats("c4")?);
    table("out", rows, p, |row, column| {
        let a = &a[row * p..][..p];
        a.iter()
            .zip(c4[column..].iter().step_by(p))
            .map(|(a, c)| a * c)
            .sum()
    })
}

pub(super) fn mv(data: &Data<'_>) -> Option<Vec<Output>> {
    let (m, n) = sizes(data)?;
    let (a, x) = (data.floats("a")?, data.floats("x")?);
    list("y", m, |row| (0..n).map(|i| a[row * n + i] * x[i]).sum())
}

pub(super) fn tmv(data: &Data<'_>) -> Option<Vec<Output>> {
    let (m, n) = sizes(data)?;
    let (a, x) = (data.floats("a")?, data.floats("x")?);
    list("y", n, |column| {
        (0..m).map(|i| a[i * n + column] * x[i]).sum()
    })
}

/// By the inverse of the diagonal and forward substitution over whole rows.
pub(super) fn strsm(data: &Data<'_>) -> Option<Vec<Output>> {
    let (m, n) = sizes(data)?;
    let (l, mut b) = (data.floats("l")?, data.floats("b")?);
    for i in 0..m {
        let (solved, rest) = b.split_at_mut(i * n);
        let row = &mut rest[..n];
        for (factor, known) in l[i * m..].iter().zip(solved.chunks(n)) {
            for (b, x) in row.iter_mut().zip(known) {
                *b -= factor * x;
            }
        }
        row.iter_mut().for_each(|b| *b /= l[i * m + i]);
    }
    list("b", m * n, |i| b[i])
}

pub(super) fn attention_scores(data: &Data<'_>) -> Option<Vec<Output>> {
    let (n, d) = (data.param("n")?, data.param("d")?);
    let scale = data.scalar("scale")?;
    let (q, k) = (data.floats("q")?, data.floats("k")?);
    table("s", n, n, |y, x| {
        if x > y {
            return -1e30;
        }
        let (q, k) = (&q[y * d..][..d], &k[x * d..][..d]);
        scale * q.iter().zip(k).map(|(q, k)| q * k).sum::<f64>()
    })
}

pub(super) fn attention_values(data: &Data<'_>) -> Option<Vec<Output>> {
    let (n, d) = (data.param("n")?, data.param("d")?);
    let (p, v) = (data.floats("p")?, data.floats("v")?);
    table("o", n, d, |y, x| {
        (0..n).map(|i| p[y * n + i] * v[i * d + x]).sum()
    })
}

/// By the squares of the lengths and twice the product.
pub(super) fn distances(data: &Data<'_>) -> Option<Vec<Output>> {
    let (m, n) = sizes(data)?;
    let d = data.param("d")?;
    let (a, b) = (data.floats("a")?, data.floats("b")?);
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    table("out", m, n, |y, x| {
        let (a, b) = (&a[y * d..][..d], &b[x * d..][..d]);
        dot(a, a) + dot(b, b) - 2.0 * dot(a, b)
    })
}

pub(super) fn shortest_paths(data: &Data<'_>) -> Option<Vec<Output>> {
    let n = data.param("n")?;
    let (a, b) = (data.floats("a")?, data.floats("b")?);
    table("out", n, n, |y, x| {
        let ways = (0..n).map(|i| a[y * n + i] + b[i * n + x]);
        ways.fold(f64::INFINITY, f64::min)
    })
}
