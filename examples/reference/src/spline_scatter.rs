//! Charge spreading: every particle against the mesh points around it, with cardinal B-splines
//! from their recursive definition (Essmann et al. 1995, Eq. 4.1).

use crate::data::{Data, Output, words};

const ORDER: i64 = 5;

/// Cardinal B-spline of an order, at u; zero outside (0, order).
fn spline(order: i64, u: f64) -> f64 {
    if u <= 0.0 || u >= order as f64 {
        return 0.0;
    }
    if order == 2 {
        return 1.0 - (u - 1.0).abs();
    }
    let n = order as f64;
    (u * spline(order - 1, u) + (n - u) * spline(order - 1, u - 1.0)) / (n - 1.0)
}

pub(crate) fn reference(data: &Data<'_>) -> Option<Vec<Output>> {
    let extent = [data.param("nx")?, data.param("ny")?, data.param("nz")?];
    let particles = data.floats("particle")?;
    let mut mesh = vec![0.0; extent.iter().product()];
    for particle in particles.chunks_exact(4) {
        // Along each axis: the mesh points that the particle touches, and their weights.
        let touched: [Vec<(usize, f64)>; 3] = std::array::from_fn(|axis| {
            let u = particle[axis] * extent[axis] as f64;
            let last = u.floor() as i64;
            let point = |k: i64| k.rem_euclid(extent[axis] as i64) as usize;
            (last - ORDER + 1..=last)
                .map(|k| (point(k), spline(ORDER, u - k as f64)))
                .collect()
        });
        for &(z, wz) in &touched[2] {
            for &(y, wy) in &touched[1] {
                for &(x, wx) in &touched[0] {
                    mesh[(z * extent[1] + y) * extent[0] + x] += particle[3] * wx * wy * wz;
                }
            }
        }
    }
    let fixed = mesh
        .into_iter()
        .map(|charge| (charge * 2f64.powi(32)).round() as u64)
        .collect();
    Some(vec![words("mesh", fixed)])
}
