//! Two-stream fluxes: the differential equations of the two streams are integrated through each
//! layer (classical Runge-Kutta), and the conditions at the top and at the ground close a linear
//! system for the fluxes at all interfaces.

use rayon::prelude::*;

use crate::data::{Data, Output, floats};

const LAYERS: usize = 16;
const INTERFACES: usize = LAYERS + 1;
const UNKNOWNS: usize = 2 * INTERFACES;

/// Upward and downward diffuse flux, and the direct beam per horizontal area.
type Streams = [f64; 3];

/// One layer's optics.
struct Layer {
    depth: f64,
    albedo: f64,
    asymmetry: f64,
}

impl Layer {
    /// Derivatives by optical depth, counted downwards: Meador and Weaver 1980, Eqs. 1, 2.
    fn slope(&self, mu: f64, [up, down, beam]: Streams) -> Streams {
        let (w, g) = (self.albedo, self.asymmetry);
        let g1 = (8.0 - w * (5.0 + 3.0 * g)) / 4.0;
        let g2 = 3.0 * w * (1.0 - g) / 4.0;
        let g3 = (2.0 - 3.0 * g * mu) / 4.0;
        let scattered = w * beam / mu;
        [
            g1 * up - g2 * down - g3 * scattered,
            g2 * up - g1 * down + (1.0 - g3) * scattered,
            -beam / mu,
        ]
    }

    /// From the top of the layer to its bottom.
    fn through(&self, mu: f64, mut y: Streams) -> Streams {
        const STEPS: usize = 40;
        let h = self.depth / STEPS as f64;
        for _ in 0..STEPS {
            let towards =
                |k: Streams, by: f64| -> Streams { std::array::from_fn(|i| y[i] + by * k[i]) };
            let k1 = self.slope(mu, y);
            let k2 = self.slope(mu, towards(k1, h / 2.0));
            let k3 = self.slope(mu, towards(k2, h / 2.0));
            let k4 = self.slope(mu, towards(k3, h));
            y = std::array::from_fn(|i| {
                y[i] + h / 6.0 * (k1[i] + 2.0 * k2[i] + 2.0 * k3[i] + k4[i])
            });
        }
        y
    }
}

/// Gaussian elimination with row pivoting.
fn solve(mut a: Vec<[f64; UNKNOWNS + 1]>) -> [f64; UNKNOWNS] {
    for k in 0..UNKNOWNS {
        let larger = |p: usize, i: usize| a[i][k].abs() > a[p][k].abs();
        let pivot = (k..UNKNOWNS).fold(k, |p, i| if larger(p, i) { i } else { p });
        a.swap(k, pivot);
        let row = a[k];
        for other in &mut a[k + 1..] {
            let factor = other[k] / row[k];
            (k..=UNKNOWNS).for_each(|j| other[j] -= factor * row[j]);
        }
    }
    let mut x = [0.0; UNKNOWNS];
    for k in (0..UNKNOWNS).rev() {
        let known: f64 = (k + 1..UNKNOWNS).map(|j| a[k][j] * x[j]).sum();
        x[k] = (a[k][UNKNOWNS] - known) / a[k][k];
    }
    x
}

/// Upward and total downward flux at the interfaces.
fn column(layers: &[Layer], mu: f64, ground: f64) -> Vec<(f64, f64)> {
    // Unknowns 2 i and 2 i + 1 are the streams at interface i; the last entry is the right side.
    let mut system = Vec::new();
    let mut beams = vec![mu];
    let mut row = [0.0; UNKNOWNS + 1];
    row[1] = 1.0; // no diffuse light from space
    system.push(row);
    for (i, layer) in layers.iter().enumerate() {
        let from_up = layer.through(mu, [1.0, 0.0, 0.0]);
        let from_down = layer.through(mu, [0.0, 1.0, 0.0]);
        let from_beam = layer.through(mu, [0.0, 0.0, beams[i]]);
        for stream in 0..2 {
            let mut row = [0.0; UNKNOWNS + 1];
            row[2 * i] = from_up[stream];
            row[2 * i + 1] = from_down[stream];
            row[2 * (i + 1) + stream] = -1.0;
            row[UNKNOWNS] = -from_beam[stream];
            system.push(row);
        }
        beams.push(from_beam[2]);
    }
    let mut row = [0.0; UNKNOWNS + 1];
    row[2 * LAYERS] = 1.0;
    row[2 * LAYERS + 1] = -ground;
    row[UNKNOWNS] = ground * beams[LAYERS];
    system.push(row);
    let streams = solve(system);
    let pairs = streams.as_chunks::<2>().0.iter().zip(&beams);
    pairs.map(|([up, down], beam)| (*up, down + beam)).collect()
}

pub(crate) fn reference(data: &Data<'_>) -> Option<Vec<Output>> {
    let n = data.param("n")?;
    let (depth, albedo) = (data.floats("depth")?, data.floats("albedo")?);
    let asymmetry = data.floats("asymmetry")?;
    let (sun, ground) = (data.floats("sun")?, data.floats("ground")?);
    let columns: Vec<Vec<(f64, f64)>> = (0..n)
        .into_par_iter()
        .map(|c| {
            let layer = |i: usize| Layer {
                depth: depth[i * n + c],
                albedo: albedo[i * n + c],
                asymmetry: asymmetry[i * n + c],
            };
            let layers: Vec<Layer> = (0..LAYERS).map(layer).collect();
            column(&layers, sun[c], ground[c])
        })
        .collect();
    let all = |part: fn(&(f64, f64)) -> f64| {
        (0..INTERFACES)
            .flat_map(|i| columns.iter().map(move |fluxes| part(&fluxes[i])))
            .collect()
    };
    Some(vec![
        floats("up", all(|f| f.0)),
        floats("down", all(|f| f.1)),
    ])
}
