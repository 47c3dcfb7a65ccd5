//! One leapfrog step of the wave equation, u'' = v^2 Laplace u, with central differences whose
//! weights come from the general formula.

use crate::data::{Data, Output, floats};

/// Half the order of accuracy: neighbours on each side.
const R: usize = 4;

/// Weight of the neighbours at distance `k` in the second derivative:
/// 2 (-1)^(k+1) R!^2 / (k^2 (R-k)! (R+k)!); that of the point itself makes the sum zero.
fn weights() -> [f64; R + 1] {
    let factorial = |n: usize| (1..=n).map(|k| k as f64).product::<f64>();
    let mut weights = [0.0; R + 1];
    for k in 1..=R {
        let sign = if k % 2 == 1 { 1.0 } else { -1.0 };
        let denominator = (k * k) as f64 * factorial(R - k) * factorial(R + k);
        weights[k] = 2.0 * sign * factorial(R).powi(2) / denominator;
        weights[0] -= 2.0 * weights[k];
    }
    weights
}

pub(crate) fn reference(data: &Data<'_>) -> Option<Vec<Output>> {
    let (nx, ny, nz) = (data.param("nx")?, data.param("ny")?, data.param("nz")?);
    let scale = data.scalar("scale")?;
    let (previous, current) = (data.floats("previous")?, data.floats("current")?);
    let (velocity, mut next) = (data.floats("velocity")?, data.floats("next")?);
    let c = weights();
    for z in R..nz - R {
        for y in R..ny - R {
            for x in R..nx - R {
                let at = (z * ny + y) * nx + x;
                let second = |stride: usize| -> f64 {
                    let pair = |k: usize| current[at + k * stride] + current[at - k * stride];
                    c[0] * current[at] + (1..=R).map(|k| c[k] * pair(k)).sum::<f64>()
                };
                let laplacian = second(1) + second(nx) + second(nx * ny);
                next[at] =
                    2.0 * current[at] - previous[at] + scale * velocity[at].powi(2) * laplacian;
            }
        }
    }
    Some(vec![floats("next", next)])
}
