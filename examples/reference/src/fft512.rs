//! The discrete Fourier transform as its defining sum.

use rayon::prelude::*;

use crate::data::{Data, Output, floats};

const POINTS: usize = 512;

pub(crate) fn reference(data: &Data<'_>) -> Option<Vec<Output>> {
    let input = data.floats("in")?;
    let root = |k: usize| {
        let angle = -2.0 * std::f64::consts::PI * k as f64 / POINTS as f64;
        (angle.cos(), angle.sin())
    };
    let roots: Vec<(f64, f64)> = (0..POINTS).map(root).collect();
    let transform = |signal: &[f64]| -> Vec<f64> {
        let frequency = |k: usize| {
            let (mut re, mut im) = (0.0, 0.0);
            for n in 0..POINTS {
                let ((x, y), (c, s)) = ((signal[2 * n], signal[2 * n + 1]), roots[n * k % POINTS]);
                re += x * c - y * s;
                im += x * s + y * c;
            }
            [re, im]
        };
        (0..POINTS).flat_map(frequency).collect()
    };
    let out = input
        .par_chunks_exact(2 * POINTS)
        .flat_map_iter(transform)
        .collect();
    Some(vec![floats("out", out)])
}
