//! One lattice Boltzmann step: push-streaming into a scratch lattice, then a collision of each
//! cell's populations with two relaxation rates for the parts that are even and odd in velocity.

use crate::data::{Data, Output, floats};

/// Lattice velocities; the order is the storage order of the populations.
const C: [[i64; 3]; 19] = [
    [0, 0, 0],
    [1, 0, 0],
    [-1, 0, 0],
    [0, 1, 0],
    [0, -1, 0],
    [0, 0, 1],
    [0, 0, -1],
    [1, 1, 0],
    [-1, -1, 0],
    [1, -1, 0],
    [-1, 1, 0],
    [1, 0, 1],
    [-1, 0, -1],
    [1, 0, -1],
    [-1, 0, 1],
    [0, 1, 1],
    [0, -1, -1],
    [0, 1, -1],
    [0, -1, 1],
];

/// Square of the speed of sound.
const CS2: f64 = 1.0 / 3.0;

fn weight(q: usize) -> f64 {
    match C[q].iter().map(|c| c * c).sum::<i64>() {
        0 => 12.0 / 36.0,
        1 => 2.0 / 36.0,
        _ => 1.0 / 36.0,
    }
}

fn opposite(q: usize) -> usize {
    let reversed = C[q].map(|c| -c);
    C.iter().position(|&c| c == reversed).unwrap_or(q)
}

fn dot(q: usize, u: [f64; 3]) -> f64 {
    (0..3).map(|i| C[q][i] as f64 * u[i]).sum()
}

pub(crate) fn reference(data: &Data<'_>) -> Option<Vec<Output>> {
    let extent = [data.param("nx")?, data.param("ny")?, data.param("nz")?];
    let force = [data.scalar("fx")?, data.scalar("fy")?, data.scalar("fz")?];
    let fluid = Fluid {
        viscosity: data.scalar("viscosity")?,
        magic: data.scalar("magic")?,
        smagorinsky: data.scalar("smagorinsky")?,
        force,
    };
    let from = data.floats("from")?;
    let cells: usize = extent.iter().product();
    let place = |at: [usize; 3]| (at[2] * extent[1] + at[1]) * extent[0] + at[0];

    let mut streamed = vec![0.0; 19 * cells];
    for z in 0..extent[2] {
        for y in 0..extent[1] {
            for x in 0..extent[0] {
                let here = [x, y, z];
                for q in 0..19 {
                    let target = std::array::from_fn(|i| {
                        (here[i] as i64 + C[q][i]).rem_euclid(extent[i] as i64) as usize
                    });
                    streamed[q * cells + place(target)] = from[q * cells + place(here)];
                }
            }
        }
    }

    let mut to = vec![0.0; 19 * cells];
    let mut moments = vec![0.0; 4 * cells];
    for cell in 0..cells {
        let f: [f64; 19] = std::array::from_fn(|q| streamed[q * cells + cell]);
        let (after, moment) = fluid.collide(&f);
        (0..19).for_each(|q| to[q * cells + cell] = after[q]);
        (0..4).for_each(|k| moments[k * cells + cell] = moment[k]);
    }
    Some(vec![floats("to", to), floats("moments", moments)])
}

struct Fluid {
    viscosity: f64,
    magic: f64,
    smagorinsky: f64,
    force: [f64; 3],
}

impl Fluid {
    /// Populations after the collision; density and velocity.
    fn collide(&self, f: &[f64; 19]) -> ([f64; 19], [f64; 4]) {
        let density: f64 = f.iter().sum();
        let u: [f64; 3] = std::array::from_fn(|i| {
            let momentum: f64 = (0..19).map(|q| C[q][i] as f64 * f[q]).sum();
            (momentum + self.force[i] / 2.0) / density
        });
        let speed2: f64 = u.iter().map(|c| c * c).sum();
        let equilibrium: [f64; 19] = std::array::from_fn(|q| {
            let cu = dot(q, u) / CS2;
            weight(q) * density * (1.0 + cu + cu * cu / 2.0 - speed2 / (2.0 * CS2))
        });

        // Smagorinsky: tau = tau_0 + C^2 |S| / c_s^2 with |S| = |P| / (2 rho c_s^2 tau) (norms
        // include the factor sqrt 2) is a quadratic equation for tau.
        let mut norm2 = 0.0;
        for i in 0..3 {
            for j in 0..3 {
                let p: f64 = (0..19)
                    .map(|q| (C[q][i] * C[q][j]) as f64 * (f[q] - equilibrium[q]))
                    .sum();
                norm2 += p * p;
            }
        }
        let tau0 = self.viscosity / CS2 + 0.5;
        let stress = 2f64.sqrt() * norm2.sqrt() / density;
        let b = 2.0 * self.smagorinsky.powi(2) * stress / (CS2 * CS2);
        let tau_even = (tau0 + (tau0 * tau0 + b).sqrt()) / 2.0;
        let tau_odd = self.magic / (tau_even - 0.5) + 0.5;

        let source: [f64; 19] = std::array::from_fn(|q| {
            let drift: f64 = (0..3)
                .map(|i| (C[q][i] as f64 - u[i]) * self.force[i])
                .sum();
            weight(q) * (drift / CS2 + dot(q, u) * dot(q, self.force) / (CS2 * CS2))
        });
        let after = std::array::from_fn(|q| {
            let r = opposite(q);
            let even = |g: &[f64; 19]| (g[q] + g[r]) / 2.0;
            let odd = |g: &[f64; 19]| (g[q] - g[r]) / 2.0;
            f[q] - (even(f) - even(&equilibrium)) / tau_even
                - (odd(f) - odd(&equilibrium)) / tau_odd
                + (1.0 - 0.5 / tau_even) * even(&source)
                + (1.0 - 0.5 / tau_odd) * odd(&source)
        });
        (after, [density, u[0], u[1], u[2]])
    }
}
