//! Short-range forces over all pairs of particles with the nearest periodic image, no cells; the
//! forces are derivatives of the potential by Richardson's extrapolation of central differences.

use rayon::prelude::*;

use crate::data::{Data, Output, floats};

const CAPACITY: usize = 32;

/// erfc by its Taylor series below 2 and by its continued fraction from there on.
fn erfc(x: f64) -> f64 {
    let gauss = (-x * x).exp() / std::f64::consts::PI.sqrt();
    if x < 2.0 {
        // erf(x) = 2 / sqrt(pi) e^(-x^2) sum of 2^k x^(2k + 1) / (2k + 1)!!.
        let (mut term, mut sum) = (x, 0.0);
        for k in 0..80 {
            sum += term;
            term *= 2.0 * x * x / (2 * k + 3) as f64;
        }
        return 1.0 - 2.0 * gauss * sum;
    }
    let tail = (1..60)
        .rev()
        .fold(x, |below, k| x + f64::from(k) / 2.0 / below);
    gauss / tail
}

/// What two particles feel of each other.
struct Pair {
    sigma: f64,
    epsilon: f64,
    charges: f64,
    beta: f64,
    cutoff: f64,
}

impl Pair {
    fn lennard_jones(&self, r: f64) -> f64 {
        let s6 = (self.sigma / r).powi(6);
        4.0 * self.epsilon * (s6 * s6 - s6)
    }

    /// -dV/dr of Lennard-Jones.
    fn pull(&self, r: f64) -> f64 {
        let s6 = (self.sigma / r).powi(6);
        4.0 * self.epsilon * (12.0 * s6 * s6 - 6.0 * s6) / r
    }

    /// The potential, whose shift makes its value and slope zero at the cutoff, as far as they come
    /// from Lennard-Jones.
    fn potential(&self, r: f64) -> f64 {
        let rc = self.cutoff;
        let shift = self.pull(rc) / rc * (r * r - rc * rc) / 2.0;
        let coulomb = self.charges * erfc(self.beta * r) / r;
        self.lennard_jones(r) - self.lennard_jones(rc) + shift + coulomb
    }

    fn force(&self, r: f64) -> f64 {
        let central = |h: f64| (self.potential(r - h) - self.potential(r + h)) / (2.0 * h);
        let h = 1e-3 * r;
        (4.0 * central(h / 2.0) - central(h)) / 3.0
    }
}

pub(crate) fn reference(data: &Data<'_>) -> Option<Vec<Output>> {
    let cells = [
        data.param("cells_x")?,
        data.param("cells_y")?,
        data.param("cells_z")?,
    ];
    let (edge, beta) = (data.scalar("edge")?, data.scalar("beta")?);
    let closest = data.scalar("closest")?;
    let (position, kind) = (data.floats("position")?, data.indices("type")?);
    let (sigma, epsilon) = (data.floats("sigma")?, data.floats("epsilon")?);
    let charge = data.floats("charge")?;
    let particles = kind.len();
    let place = |p: usize| -> [f64; 3] {
        let cell = p / CAPACITY;
        let index = [
            cell % cells[0],
            cell / cells[0] % cells[1],
            cell / (cells[0] * cells[1]),
        ];
        std::array::from_fn(|k| index[k] as f64 * edge + position[k * particles + p])
    };
    let places: Vec<[f64; 3]> = (0..particles).map(place).collect();

    let feel = |me: usize| {
        let mut sums = [0.0; 10];
        for other in (0..particles).filter(|&other| other != me) {
            let d: [f64; 3] = std::array::from_fn(|k| {
                let period = cells[k] as f64 * edge;
                let d = places[me][k] - places[other][k];
                d - period * (d / period).round()
            });
            let r = d.iter().map(|x| x * x).sum::<f64>().sqrt();
            if r >= edge {
                continue;
            }
            let (a, b) = (kind[me], kind[other]);
            let pair = Pair {
                sigma: (sigma[a] + sigma[b]) / 2.0,
                epsilon: (epsilon[a] * epsilon[b]).sqrt(),
                charges: charge[a] * charge[b],
                beta,
                cutoff: edge,
            };
            let r = r.max(closest.sqrt());
            let f = pair.force(r) / r;
            (0..3).for_each(|k| sums[k] += f * d[k]);
            sums[3] += pair.potential(r);
            for (k, (i, j)) in [(0, 0), (1, 1), (2, 2), (0, 1), (1, 2), (2, 0)]
                .into_iter()
                .enumerate()
            {
                sums[4 + k] += f * d[i] * d[j];
            }
        }
        sums
    };
    let sums: Vec<[f64; 10]> = (0..particles).into_par_iter().map(feel).collect();
    let result = (0..10)
        .flat_map(|k| sums.iter().map(move |s| s[k]))
        .collect();
    Some(vec![floats("result", result)])
}
