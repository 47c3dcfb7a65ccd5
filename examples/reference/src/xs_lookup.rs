//! Macroscopic cross sections: for each channel, the sum over the material's nuclides of density
//! times the linear interpolation in the nuclide's table.

use crate::data::{Data, Output, floats};

const CHANNELS: usize = 6;

pub(crate) fn reference(data: &Data<'_>) -> Option<Vec<Output>> {
    let (neutrons, points) = (data.param("neutrons")?, data.param("points")?);
    let (energy, material) = (data.floats("energy")?, data.indices("material")?);
    let (first, nuclide) = (data.indices("first")?, data.indices("nuclide")?);
    let (density, grid) = (data.floats("density")?, data.floats("grid")?);
    let table = data.floats("data")?;

    let mut result = vec![0.0; CHANNELS * neutrons];
    for id in 0..neutrons {
        let e = energy[id];
        for entry in first[material[id]]..first[material[id] + 1] {
            let row = nuclide[entry] * points;
            let axis = &grid[row..row + points];
            // The interval that holds e; the last one also for energies beyond it.
            let above = axis
                .iter()
                .take(points - 1)
                .take_while(|&&g| g <= e)
                .count()
                .max(1);
            let (e0, e1) = (axis[above - 1], axis[above]);
            let share = (e - e0) / (e1 - e0);
            for channel in 0..CHANNELS {
                let at = |point: usize| table[(row + point) * CHANNELS + channel];
                let micro = (1.0 - share) * at(above - 1) + share * at(above);
                result[channel * neutrons + id] += density[entry] * micro;
            }
        }
    }
    Some(vec![floats("result", result)])
}
