//! Linear systems by Householder's orthogonal triangularization, and one step of iterative
//! refinement; the determinant is the product of the triangle's diagonal, with the reflections'
//! signs.

use rayon::prelude::*;

use crate::data::{Data, Output, floats};

const N: usize = 11;

type Matrix = [[f64; N]; N];
type Vector = [f64; N];

/// The triangle R, and the reflections' vectors (v, 2 / v^T v) with Q^T = H_(N - 2) ... H_0.
fn triangularize(mut a: Matrix) -> (Matrix, Vec<(Vector, f64)>) {
    let mut reflections = Vec::new();
    for k in 0..N - 1 {
        let norm = (k..N).map(|i| a[i][k] * a[i][k]).sum::<f64>().sqrt();
        let mut v: Vector = std::array::from_fn(|i| if i < k { 0.0 } else { a[i][k] });
        v[k] += norm.copysign(v[k]);
        let scale = 2.0 / v.iter().map(|x| x * x).sum::<f64>();
        for j in 0..N {
            let along = scale * (0..N).map(|i| v[i] * a[i][j]).sum::<f64>();
            (0..N).for_each(|i| a[i][j] -= along * v[i]);
        }
        reflections.push((v, scale));
    }
    (a, reflections)
}

fn solve(r: &Matrix, reflections: &[(Vector, f64)], mut x: Vector) -> Vector {
    for (v, scale) in reflections {
        let along = scale * (0..N).map(|i| v[i] * x[i]).sum::<f64>();
        (0..N).for_each(|i| x[i] -= along * v[i]);
    }
    for k in (0..N).rev() {
        let rest: f64 = (k + 1..N).map(|j| r[k][j] * x[j]).sum();
        x[k] = (x[k] - rest) / r[k][k];
    }
    x
}

pub(crate) fn reference(data: &Data<'_>) -> Option<Vec<Output>> {
    let n = data.param("n")?;
    let (matrix, right) = (data.floats("matrix")?, data.floats("right")?);
    let results: Vec<(Vector, f64)> = (0..n)
        .into_par_iter()
        .map(|id| {
            let a: Matrix =
                std::array::from_fn(|i| std::array::from_fn(|j| matrix[(N * i + j) * n + id]));
            let b: Vector = std::array::from_fn(|i| right[i * n + id]);
            let (r, reflections) = triangularize(a);
            let x = solve(&r, &reflections, b);
            let rest: Vector =
                std::array::from_fn(|i| (0..N).fold(b[i], |rest, j| a[i][j].mul_add(-x[j], rest)));
            let correction = solve(&r, &reflections, rest);
            // Each of the N - 1 reflections has determinant -1.
            let determinant = -(0..N).map(|k| -r[k][k]).product::<f64>();
            (std::array::from_fn(|i| x[i] + correction[i]), determinant)
        })
        .collect();
    let solution = (0..N)
        .flat_map(|k| results.iter().map(move |(x, _)| x[k]))
        .collect();
    let determinant = results.iter().map(|(_, d)| *d).collect();
    Some(vec![
        floats("solution", solution),
        floats("determinant", determinant),
    ])
}
