//! HLLD fluxes: each state between the waves follows from the jump conditions over the wave in
//! front of it, and the flux at the face is the physical flux of the state there, with the total
//! pressure that all inner states share.

use crate::data::{Data, Output, floats};

const GAMMA: f64 = 5.0 / 3.0;

/// A state with its total pressure and total energy as quantities of their own.
#[derive(Clone, Copy)]
struct State {
    density: f64,
    velocity: [f64; 3],
    field: [f64; 3],
    total_pressure: f64,
    energy: f64,
}

fn dot(a: [f64; 3], b: [f64; 3]) -> f64 {
    (0..3).map(|k| a[k] * b[k]).sum()
}

impl State {
    fn new(q: [f64; 7], bx: f64) -> State {
        let [density, vx, vy, vz, by, bz, pressure] = q;
        let (velocity, field) = ([vx, vy, vz], [bx, by, bz]);
        let magnetic = dot(field, field) / 2.0;
        State {
            density,
            velocity,
            field,
            total_pressure: pressure + magnetic,
            energy: pressure / (GAMMA - 1.0) + density * dot(velocity, velocity) / 2.0 + magnetic,
        }
    }

    /// Larger root of c^4 - (a^2 + b^2) c^2 + a^2 bx^2 / rho = 0.
    fn fast_speed(&self) -> f64 {
        let b2 = dot(self.field, self.field);
        let sound2 = GAMMA * (self.total_pressure - b2 / 2.0) / self.density;
        let half = (sound2 + b2 / self.density) / 2.0;
        let product = sound2 * self.field[0].powi(2) / self.density;
        (half + (half * half - product).max(0.0).sqrt()).sqrt()
    }

    fn flux(&self) -> [f64; 7] {
        let (v, b) = (self.velocity, self.field);
        let momentum = |k: usize| self.density * v[k] * v[0] - b[0] * b[k];
        [
            self.density * v[0],
            momentum(0) + self.total_pressure,
            momentum(1),
            momentum(2),
            (self.energy + self.total_pressure) * v[0] - b[0] * dot(v, b),
            b[1] * v[0] - b[0] * v[1],
            b[2] * v[0] - b[0] * v[2],
        ]
    }

    /// Behind the fast wave of speed `s`, where the normal velocity and the total pressure are
    /// those given. Each transverse pair (v, B) solves two linear jump conditions.
    fn behind(&self, s: f64, normal: f64, total_pressure: f64) -> State {
        let bx = self.field[0];
        let mass_flux = self.density * (s - self.velocity[0]);
        let density = mass_flux / (s - normal);
        let mut next = State {
            density,
            total_pressure,
            ..*self
        };
        next.velocity[0] = normal;
        for k in 1..3 {
            // (s - u*) rho* v* + bx B* = m v + bx B and (s - u*) B* + bx v* = (s - u) B + bx v.
            let (v, b) = (self.velocity[k], self.field[k]);
            let first = mass_flux * v + bx * b;
            let second = (s - self.velocity[0]) * b + bx * v;
            let determinant = mass_flux * (s - normal) - bx * bx;
            if determinant.abs() >= 1e-8 * total_pressure {
                next.velocity[k] = (first * (s - normal) - bx * second) / determinant;
                next.field[k] = (mass_flux * second - bx * first) / determinant;
            }
        }
        let work = |q: &State| q.total_pressure * q.velocity[0] - bx * dot(q.velocity, q.field);
        let before = self.energy * (s - self.velocity[0]) - work(self);
        next.energy = (before + work(&next)) / (s - normal);
        next
    }
}

/// The flux through the face, and which of the six states stands there.
fn solve(left: State, right: State) -> ([f64; 7], usize) {
    let fast = left.fast_speed().max(right.fast_speed());
    let slowest = left.velocity[0].min(right.velocity[0]) - fast;
    let fastest = left.velocity[0].max(right.velocity[0]) + fast;
    if slowest >= 0.0 {
        return (left.flux(), 0);
    }
    if fastest <= 0.0 {
        return (right.flux(), 5);
    }
    // Mean of the Riemann fan (HLL), whose velocity is that of the contact.
    let mean = |side: fn(&State) -> (f64, f64)| {
        let ((ul, fl), (ur, fr)) = (side(&left), side(&right));
        (fastest * ur - slowest * ul + fl - fr) / (fastest - slowest)
    };
    let mass = mean(|q| (q.density, q.density * q.velocity[0]));
    let momentum = mean(|q| (q.density * q.velocity[0], q.flux()[1]));
    let contact = momentum / mass;
    let push = left.density * (slowest - left.velocity[0]);
    let total_pressure = left.total_pressure + push * (contact - left.velocity[0]);
    let outer = [
        left.behind(slowest, contact, total_pressure),
        right.behind(fastest, contact, total_pressure),
    ];

    let bx = left.field[0];
    let roots = outer.map(|q| q.density.sqrt());
    if contact - bx.abs() / roots[0] >= 0.0 {
        return (outer[0].flux(), 1);
    }
    if contact + bx.abs() / roots[1] <= 0.0 {
        return (outer[1].flux(), 4);
    }
    // Over an Alfven wave sqrt(rho) v + sign B (or minus) is kept: one invariant from each side.
    let side = usize::from(contact < 0.0);
    let sign = 1f64.copysign(bx);
    let mut inner = outer[side];
    for k in 1..3 {
        let from_left = roots[0] * outer[0].velocity[k] - sign * outer[0].field[k];
        let from_right = roots[1] * outer[1].velocity[k] + sign * outer[1].field[k];
        inner.velocity[k] = (from_left + from_right) / (roots[0] + roots[1]);
        inner.field[k] = sign * (roots[0] * inner.velocity[k] - from_left);
    }
    // The jump condition of energy over a wave of speed u -+ |bx| / sqrt(rho).
    let wave = [-1.0, 1.0][side] * bx.abs() / roots[side];
    let along = |q: &State| dot(q.velocity, q.field);
    inner.energy += bx * (along(&outer[side]) - along(&inner)) / wave;
    (inner.flux(), 2 + side)
}

/// Monotonized central slope: the flattest of twice either side and the mean, zero at extrema.
fn slope(a: f64, b: f64, c: f64) -> f64 {
    let candidates = [2.0 * (b - a), 2.0 * (c - b), (c - a) / 2.0];
    if candidates.iter().all(|&s| s > 0.0) {
        candidates.into_iter().fold(f64::INFINITY, f64::min)
    } else if candidates.iter().all(|&s| s < 0.0) {
        candidates.into_iter().fold(f64::NEG_INFINITY, f64::max)
    } else {
        0.0
    }
}

pub(crate) fn reference(data: &Data<'_>) -> Option<Vec<Output>> {
    let (nx, rows) = (data.param("nx")?, data.param("rows")?);
    let (cell, bx) = (data.floats("cell")?, data.floats("bx")?);
    let mut flux = vec![0.0; 7 * rows * nx];
    for face in 0..rows * nx {
        let (row, x) = (face / nx, face % nx);
        let at = |k: usize, step: usize| cell[(k * rows + row) * nx + (x + nx - 1 + step) % nx];
        let edge = |first: usize, side: f64| {
            let reconstruct = |k: usize| {
                let [a, b, c] = std::array::from_fn(|i| at(k, first + i));
                b + side * slope(a, b, c) / 2.0
            };
            State::new(std::array::from_fn(reconstruct), bx[face])
        };
        let (through, _) = solve(edge(0, 1.0), edge(1, -1.0));
        (0..7).for_each(|k| flux[k * rows * nx + face] = through[k]);
    }
    Some(vec![floats("flux", flux)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moving_frame_meets_all_six_states() {
        // The shock tube of Brio and Wu (1988) with a transverse flow, seen from frames of
        // different speeds.
        let mut met = Vec::new();
        for step in -900..=900 {
            let frame = f64::from(step) / 100.0;
            let left = State::new([1.0, frame, 0.1, 0.0, 1.0, 0.2, 1.0], 0.75);
            let right = State::new([0.125, frame, 0.0, 0.1, -1.0, 0.0, 0.1], 0.75);
            met.push(solve(left, right).1);
        }
        met.dedup();
        assert_eq!(met, [5, 4, 3, 2, 1, 0]);
    }

    #[test]
    fn without_a_jump_the_flux_is_that_of_the_state() {
        let q = State::new([1.2, 0.3, -0.1, 0.2, 0.4, -0.5, 0.9], -0.6);
        let (flux, _) = solve(q, q);
        for (a, b) in flux.into_iter().zip(q.flux()) {
            assert!((a - b).abs() < 1e-14, "{a} {b}");
        }
    }
}
