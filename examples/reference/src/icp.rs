//! The Gauss-Newton sums of point-to-plane registration: Jacobians by central differences of the
//! residual, which is linear in the translation and in the cross product with a rotation vector.

use crate::data::{Data, Output, floats};

const UNKNOWNS: usize = 6;
const SUMS: usize = 29;

pub(crate) fn reference(data: &Data<'_>) -> Option<Vec<Output>> {
    let (n, blocks) = (data.param("n")?, data.param("blocks")?);
    let (threads, huber) = (data.block_threads(), data.scalar("huber")?);
    let pose = data.structure("pose")?;
    let (source, target) = (data.floats("source")?, data.floats("target")?);
    let normal = data.floats("normal")?;
    let point = |from: &[f64], i: usize| -> [f64; 3] { std::array::from_fn(|k| from[k * n + i]) };

    let mut out = vec![0.0; blocks * SUMS];
    for i in 0..n {
        let (s, q, normal) = (point(&source, i), point(&target, i), point(&normal, i));
        let moved: [f64; 3] = std::array::from_fn(|r| {
            (0..3).map(|c| pose[3 * r + c] * s[c]).sum::<f64>() + pose[9 + r]
        });
        // The residual after a further small rotation and translation.
        let residual = |step: [f64; UNKNOWNS]| -> f64 {
            let turned = cross([step[0], step[1], step[2]], moved);
            (0..3)
                .map(|k| normal[k] * (moved[k] + turned[k] + step[3 + k] - q[k]))
                .sum()
        };
        let r = residual([0.0; UNKNOWNS]);
        let jacobian: [f64; UNKNOWNS] = std::array::from_fn(|k| {
            let towards =
                |by: f64| residual(std::array::from_fn(|i| if i == k { by } else { 0.0 }));
            (towards(1.0) - towards(-1.0)) / 2.0
        });
        let weight = 1f64.min(huber / r.abs());

        let block = (i / threads) % blocks;
        let sums = &mut out[block * SUMS..(block + 1) * SUMS];
        let pairs = (0..UNKNOWNS).flat_map(|a| (a..UNKNOWNS).map(move |b| (a, b)));
        for (sum, (a, b)) in sums.iter_mut().zip(pairs) {
            *sum += weight * jacobian[a] * jacobian[b];
        }
        for a in 0..UNKNOWNS {
            sums[21 + a] += weight * jacobian[a] * r;
        }
        sums[27] += weight * r * r;
        sums[28] += weight;
    }
    Some(vec![floats("sums", out)])
}

fn cross(a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
    std::array::from_fn(|k| {
        let (i, j) = ((k + 1) % 3, (k + 2) % 3);
        a[i] * b[j] - a[j] * b[i]
    })
}
