//! Helmholtz operator on one element at a time: the gradient at all nodes, the flux, and the
//! gradient's transpose, as plain sums over tensor-product nodes.

use crate::data::{Data, Output, floats};

const N: usize = 8;
const NODES: usize = N * N * N;

/// Position in G of the factor that couples two directions (rr, rs, rt, ss, st, tt).
const FACTOR: [[usize; 3]; 3] = [[0, 1, 2], [1, 3, 4], [2, 4, 5]];
const MASS: usize = 6;

/// The nodes on the line through `node` in a direction (0 along i, 1 along j, 2 along k), and the
/// node's place on it.
fn line(node: usize, direction: usize) -> ([usize; N], usize) {
    let stride = N.pow(direction as u32);
    let place = node / stride % N;
    (
        std::array::from_fn(|m| node - place * stride + m * stride),
        place,
    )
}

pub(crate) fn reference(data: &Data<'_>) -> Option<Vec<Output>> {
    let elements = data.param("elements")?;
    let lambda = data.scalar("lambda")?;
    let (d, geometry, u) = (
        data.floats("derivative")?,
        data.floats("geometry")?,
        data.floats("u")?,
    );
    let mut result = vec![0.0; elements * NODES];
    for element in 0..elements {
        let u = &u[element * NODES..][..NODES];
        let factor = |kind: usize, node: usize| geometry[(element * 7 + kind) * NODES + node];
        let result = &mut result[element * NODES..][..NODES];
        for node in 0..NODES {
            let gradient: [f64; 3] = std::array::from_fn(|direction| {
                let (nodes, place) = line(node, direction);
                (0..N).map(|m| d[place * N + m] * u[nodes[m]]).sum()
            });
            for direction in 0..3 {
                let flux: f64 = (0..3)
                    .map(|e| factor(FACTOR[direction][e], node) * gradient[e])
                    .sum();
                // The transpose scatters what the gradient gathered.
                let (nodes, place) = line(node, direction);
                (0..N).for_each(|m| result[nodes[m]] += d[place * N + m] * flux);
            }
            result[node] += lambda * factor(MASS, node) * u[node];
        }
    }
    Some(vec![floats("result", result)])
}
