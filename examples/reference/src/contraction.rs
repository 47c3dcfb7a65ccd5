//! The contraction as its defining sum over two indices.

use rayon::prelude::*;

use crate::data::{Data, Output, floats};

pub(crate) fn reference(data: &Data<'_>) -> Option<Vec<Output>> {
    let (occupied, virtuals) = (data.param("occupied")?, data.param("virtuals")?);
    let (a, b) = (data.floats("a")?, data.floats("b")?);
    let at = |first: usize, second: usize, third: usize, fourth: usize| {
        2 * (((first * occupied + second) * occupied + third) * virtuals + fourth)
    };
    let rows = occupied * virtuals;
    let element = |flat: usize| {
        let (row, column) = (flat / rows, flat % rows);
        let (i, va, j, vb) = (
            row / virtuals,
            row % virtuals,
            column / virtuals,
            column % virtuals,
        );
        let (mut re, mut im) = (0.0, 0.0);
        for k in 0..occupied {
            for l in 0..occupied {
                let (p, q) = (at(k, i, l, va), at(l, j, k, vb));
                let ((x, y), (u, v)) = ((a[p], a[p + 1]), (b[q], -b[q + 1]));
                re += x * u - y * v;
                im += x * v + y * u;
            }
        }
        [re, im]
    };
    let c = (0..rows * rows)
        .into_par_iter()
        .flat_map_iter(element)
        .collect();
    Some(vec![floats("c", c)])
}
