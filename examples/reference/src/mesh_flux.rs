//! Rusanov fluxes between extrapolated states, summed over the faces of each cell.

use crate::data::{Data, Output, floats};

const FACES: usize = 6;
const VARIABLES: usize = 5;
const GAMMA: f64 = 1.4;

type State = [f64; VARIABLES];

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// The state at a point relative to a cell's centre: each variable moves by at most a fifth.
fn extrapolate(record: &[f64], point: [f64; 3]) -> State {
    std::array::from_fn(|v| {
        let gradient = &record[VARIABLES + 3 * v..][..3];
        let most = 0.2 * record[v].abs();
        record[v] + dot(gradient, &point).clamp(-most, most)
    })
}

/// The flux through a unit face, and the speed of the fastest wave: normal velocity and sound.
fn flux(state: &State, normal: &[f64]) -> (State, f64) {
    let [density, x, y, z, energy] = *state;
    let velocity = [x / density, y / density, z / density];
    let kinetic = 0.5 * density * dot(&velocity, &velocity);
    let pressure = (GAMMA - 1.0) * (energy - kinetic);
    let through = dot(&velocity, normal);
    let mut flux = state.map(|carried| carried * through);
    for axis in 0..3 {
        flux[1 + axis] += pressure * normal[axis];
    }
    flux[4] += pressure * through;
    (flux, through.abs() + (GAMMA * pressure / density).sqrt())
}

pub(crate) fn reference(data: &Data<'_>) -> Option<Vec<Output>> {
    let (cells, half) = (data.param("cells")?, 0.5 * data.scalar("size")?);
    let (neighbour, face) = (data.words("neighbour")?, data.floats("face")?);
    let record = data.floats("record")?;
    let mut residual = vec![0.0; VARIABLES * cells];
    for cell in 0..cells {
        for f in cell * FACES..(cell + 1) * FACES {
            let relative = i64::from(neighbour[f] as u32 as i32);
            let other = (cell as i64 + relative).clamp(0, cells as i64 - 1) as usize;
            let (normal, area) = (&face[4 * f..4 * f + 3], face[4 * f + 3]);
            let side = |cell: usize, sign: f64| {
                let point = std::array::from_fn(|axis| sign * half * normal[axis]);
                extrapolate(&record[4 * VARIABLES * cell..][..4 * VARIABLES], point)
            };
            let (left, right) = (side(cell, 1.0), side(other, -1.0));
            let ((a, slow), (b, fast)) = (flux(&left, normal), flux(&right, normal));
            for v in 0..VARIABLES {
                let jump = slow.max(fast) * (right[v] - left[v]);
                residual[v * cells + cell] += area * 0.5 * (a[v] + b[v] - jump);
            }
        }
    }
    Some(vec![floats("residual", residual)])
}
