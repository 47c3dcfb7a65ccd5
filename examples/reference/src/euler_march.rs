//! Euler fluxes differentiated: the derivative at a cell is that of the polynomial of
//! degree four through the fluxes of five cells, whose weights come from Lagrange's formula.

use crate::data::{Data, Output, floats};

const GAMMA: f64 = 1.4;
const FIELDS: usize = 5;

/// Derivatives at node 0 of the Lagrange polynomials over the nodes -2..=2.
fn weights() -> [f64; 5] {
    let node = |i: usize| i as f64 - 2.0;
    std::array::from_fn(|i| {
        let others = || (0..5).filter(move |&j| j != i);
        let below: f64 = others().map(|j| node(i) - node(j)).product();
        // The product rule: leave out one factor at a time.
        let above: f64 = others()
            .map(|left| {
                others()
                    .filter(|&j| j != left)
                    .map(|j| -node(j))
                    .product::<f64>()
            })
            .sum();
        above / below
    })
}

/// Flux along `axis` from primitive variables.
fn flux(q: [f64; FIELDS], axis: usize) -> [f64; FIELDS] {
    let density = q[0];
    let velocity: [f64; 3] = std::array::from_fn(|k| q[1 + k] / density);
    let speed2: f64 = velocity.iter().map(|v| v * v).sum();
    let pressure = (GAMMA - 1.0) * (q[4] - density * speed2 / 2.0);
    let through = velocity[axis];
    let momentum =
        |k: usize| density * velocity[k] * through + if k == axis { pressure } else { 0.0 };
    let enthalpy = GAMMA / (GAMMA - 1.0) * pressure + density * speed2 / 2.0;
    [
        density * through,
        momentum(0),
        momentum(1),
        momentum(2),
        enthalpy * through,
    ]
}

pub(crate) fn reference(data: &Data<'_>) -> Option<Vec<Output>> {
    let extent = [data.param("nx")?, data.param("ny")?, data.param("nz")?];
    // The kernel's factors hold the 12 of the usual form of the weights.
    let spacing = [
        1.0 / (12.0 * data.scalar("scale_x")?),
        1.0 / (12.0 * data.scalar("scale_y")?),
        1.0 / (12.0 * data.scalar("scale_z")?),
    ];
    let field = data.floats("field")?;
    let with_ghosts = extent.map(|n| n + 4);
    let strides = [1, with_ghosts[0], with_ghosts[0] * with_ghosts[1]];
    let cells: usize = with_ghosts.iter().product();
    let inner: usize = extent.iter().product();
    let weights = weights();

    let mut rate = vec![0.0; FIELDS * inner];
    for cell in 0..inner {
        let at = [
            cell % extent[0],
            cell / extent[0] % extent[1],
            cell / (extent[0] * extent[1]),
        ];
        let corner: usize = (0..3).map(|axis| at[axis] * strides[axis]).sum();
        let middle: usize = corner + strides.iter().map(|stride| 2 * stride).sum::<usize>();
        for axis in 0..3 {
            for (i, weight) in weights.iter().enumerate() {
                let place = middle - 2 * strides[axis] + i * strides[axis];
                let f = flux(std::array::from_fn(|k| field[k * cells + place]), axis);
                for k in 0..FIELDS {
                    rate[k * inner + cell] -= weight * f[k] / spacing[axis];
                }
            }
        }
    }
    Some(vec![floats("rate", rate)])
}
