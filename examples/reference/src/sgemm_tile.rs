//! Matrix product with bias and leaky ReLU, element by element.

use rayon::prelude::*;

use crate::data::{Data, Output, floats};

pub(crate) fn reference(data: &Data<'_>) -> Option<Vec<Output>> {
    let (m, n, k) = (data.param("m")?, data.param("n")?, data.param("k")?);
    let (alpha, beta, slope) = (
        data.scalar("alpha")?,
        data.scalar("beta")?,
        data.scalar("slope")?,
    );
    let (a, b) = (data.floats("a")?, data.floats("b")?);
    let (bias, c) = (data.floats("bias")?, data.floats("c")?);
    let element = |flat: usize| {
        let (row, column) = (flat / n, flat % n);
        let product: f64 = (0..k).map(|p| a[row * k + p] * b[p * n + column]).sum();
        let value = alpha * product + beta * c[flat] + bias[column];
        if value > 0.0 { value } else { slope * value }
    };
    Some(vec![floats(
        "c",
        (0..m * n).into_par_iter().map(element).collect(),
    )])
}
