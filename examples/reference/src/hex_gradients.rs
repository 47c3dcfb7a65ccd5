//! Volume, mean velocity gradient and hourglass forces of hexahedra. The integrals of the shape
//! functions' gradients are taken by Gauss quadrature over the reference cube (two points per axis
//! integrate them exactly), not from closed formulas.

use crate::data::{Data, Output, floats};

type Vector = [f64; 3];

/// Corners of the reference cube: around the bottom face, then the same above.
const CORNERS: [Vector; 8] = [
    [-1.0, -1.0, -1.0],
    [1.0, -1.0, -1.0],
    [1.0, 1.0, -1.0],
    [-1.0, 1.0, -1.0],
    [-1.0, -1.0, 1.0],
    [1.0, -1.0, 1.0],
    [1.0, 1.0, 1.0],
    [-1.0, 1.0, 1.0],
];

/// Gradient of corner `n`'s trilinear shape function at `at`, in reference coordinates.
fn shape_gradient(n: usize, at: Vector) -> Vector {
    let factor = |axis: usize| 1.0 + CORNERS[n][axis] * at[axis];
    std::array::from_fn(|axis| {
        let (u, v) = ((axis + 1) % 3, (axis + 2) % 3);
        CORNERS[n][axis] * factor(u) * factor(v) / 8.0
    })
}

fn cross(a: Vector, b: Vector) -> Vector {
    std::array::from_fn(|i| a[(i + 1) % 3] * b[(i + 2) % 3] - a[(i + 2) % 3] * b[(i + 1) % 3])
}

fn dot(a: Vector, b: Vector) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

/// The element's volume and the integrals of its shape functions' gradients.
fn integrate(x: &[Vector; 8]) -> (f64, [Vector; 8]) {
    let mut volume = 0.0;
    let mut b = [[0.0; 3]; 8];
    let point = 1.0 / 3f64.sqrt();
    for corner in CORNERS {
        let at = corner.map(|sign| sign * point);
        let gradients: [Vector; 8] = std::array::from_fn(|n| shape_gradient(n, at));
        // tangent[a] = dx / dxi_a; its cross products are the rows of the adjugate.
        let tangent: [Vector; 3] = std::array::from_fn(|a| {
            std::array::from_fn(|i| (0..8).map(|n| gradients[n][a] * x[n][i]).sum())
        });
        let normal: [Vector; 3] =
            std::array::from_fn(|a| cross(tangent[(a + 1) % 3], tangent[(a + 2) % 3]));
        volume += dot(tangent[0], normal[0]);
        for (n, gradient) in gradients.iter().enumerate() {
            for (i, b) in b[n].iter_mut().enumerate() {
                *b += (0..3).map(|a| gradient[a] * normal[a][i]).sum::<f64>();
            }
        }
    }
    (volume, b)
}

/// The four hourglass modes: products of the corner signs.
fn modes() -> [[f64; 8]; 4] {
    let product = |f: fn(Vector) -> f64| CORNERS.map(f);
    [
        product(|s| s[1] * s[2]),
        product(|s| s[0] * s[2]),
        product(|s| s[0] * s[1]),
        product(|s| s[0] * s[1] * s[2]),
    ]
}

pub(crate) fn reference(data: &Data<'_>) -> Option<Vec<Output>> {
    let edge = data.param("edge")?;
    let (elements, mesh_nodes) = (edge * edge * edge, (edge + 1) * (edge + 1) * (edge + 1));
    let hourglass = data.scalar("hourglass")?;
    let nodes = data.indices("nodes")?;
    let positions = [data.floats("x")?, data.floats("y")?, data.floats("z")?];
    let velocities = data.floats("velocity")?;
    let (density, sound_speed) = (data.floats("density")?, data.floats("sound_speed")?);

    let mut volumes = vec![0.0; elements];
    let mut gradients = vec![0.0; 9 * elements];
    let mut forces = vec![0.0; 24 * elements];
    for e in 0..elements {
        let node: [usize; 8] = std::array::from_fn(|n| nodes[n * elements + e]);
        let x: [Vector; 8] = node.map(|n| [positions[0][n], positions[1][n], positions[2][n]]);
        let v: [Vector; 8] = node.map(|n| std::array::from_fn(|i| velocities[i * mesh_nodes + n]));
        let (volume, b) = integrate(&x);
        volumes[e] = volume;
        for i in 0..3 {
            for j in 0..3 {
                let sum: f64 = (0..8).map(|n| v[n][i] * b[n][j]).sum();
                gradients[(3 * i + j) * elements + e] = sum / volume;
            }
        }
        let coefficient = hourglass * density[e] * sound_speed[e] * volume.powf(2.0 / 3.0);
        for mode in modes() {
            let moment: Vector =
                std::array::from_fn(|i| (0..8).map(|n| mode[n] * x[n][i]).sum::<f64>() / volume);
            let shape: [f64; 8] = std::array::from_fn(|n| mode[n] - dot(b[n], moment));
            for i in 0..3 {
                let rate: f64 = (0..8).map(|n| shape[n] * v[n][i]).sum();
                for n in 0..8 {
                    forces[(8 * i + n) * elements + e] -= coefficient * rate * shape[n];
                }
            }
        }
    }
    Some(vec![
        floats("volume", volumes),
        floats("gradient", gradients),
        floats("force", forces),
    ])
}
