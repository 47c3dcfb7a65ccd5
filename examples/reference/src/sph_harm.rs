//! Real spherical harmonics from angles and associated Legendre functions; the derivative by the
//! direction is a central difference quotient of the loss.

use crate::data::{Data, Output, floats};

const DEGREE: usize = 4;
const BASIS: usize = (DEGREE + 1) * (DEGREE + 1);

/// Associated Legendre function without the Condon-Shortley phase, for x = cos(theta).
fn legendre(l: usize, m: usize, x: f64) -> f64 {
    let sine = (1.0 - x * x).max(0.0).sqrt();
    let mut last = (0..m).fold(1.0, |p, k| p * (2 * k + 1) as f64 * sine);
    let mut before = 0.0;
    for n in m + 1..=l {
        let next = ((2 * n - 1) as f64 * x * last - (n + m - 1) as f64 * before) / (n - m) as f64;
        (before, last) = (last, next);
    }
    last
}

fn factorial(n: usize) -> f64 {
    (1..=n).map(|k| k as f64).product()
}

/// All basis functions in the direction of `d`, degree by degree, each with m from -l to l.
fn basis(d: [f64; 3]) -> [f64; BASIS] {
    let cosine = d[2] / (d[0] * d[0] + d[1] * d[1] + d[2] * d[2]).sqrt();
    let longitude = d[1].atan2(d[0]);
    let mut values = [0.0; BASIS];
    for l in 0..=DEGREE {
        for m in 0..=l {
            let norm = (2 * l + 1) as f64 / (4.0 * std::f64::consts::PI) * factorial(l - m)
                / factorial(l + m);
            let radial = norm.sqrt() * legendre(l, m, cosine);
            let center = l * (l + 1);
            if m == 0 {
                values[center] = radial;
            } else {
                let angle = m as f64 * longitude;
                values[center + m] = 2f64.sqrt() * radial * angle.cos();
                values[center - m] = 2f64.sqrt() * radial * angle.sin();
            }
        }
    }
    values
}

pub(crate) fn reference(data: &Data<'_>) -> Option<Vec<Output>> {
    let n = data.param("n")?;
    let (directions, coefficients) = (data.floats("direction")?, data.floats("coefficients")?);
    let upstream = data.floats("d_colour")?;

    let mut colours = vec![0.0; 3 * n];
    let mut d_coefficients = vec![0.0; 3 * BASIS * n];
    let mut d_directions = vec![0.0; 3 * n];
    for i in 0..n {
        let d: [f64; 3] = std::array::from_fn(|axis| directions[axis * n + i]);
        let colour = |d: [f64; 3]| -> [f64; 3] {
            let y = basis(d);
            std::array::from_fn(|c| {
                0.5 + (0..BASIS)
                    .map(|k| y[k] * coefficients[(3 * k + c) * n + i])
                    .sum::<f64>()
            })
        };
        let loss = |d: [f64; 3]| -> f64 {
            colour(d)
                .iter()
                .enumerate()
                .map(|(c, value)| upstream[c * n + i] * value)
                .sum()
        };
        let values = colour(d);
        let y = basis(d);
        let step = 1e-5 * (d[0] * d[0] + d[1] * d[1] + d[2] * d[2]).sqrt();
        for axis in 0..3 {
            colours[axis * n + i] = values[axis];
            let moved = |by: f64| {
                let mut moved = d;
                moved[axis] += by;
                loss(moved)
            };
            d_directions[axis * n + i] = (moved(step) - moved(-step)) / (2.0 * step);
            for k in 0..BASIS {
                d_coefficients[(3 * k + axis) * n + i] = y[k] * upstream[axis * n + i];
            }
        }
    }
    Some(vec![
        floats("colour", colours),
        floats("d_coefficients", d_coefficients),
        floats("d_direction", d_directions),
    ])
}
