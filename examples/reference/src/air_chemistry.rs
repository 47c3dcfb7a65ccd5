//! Air chemistry from the list of reactions: production and loss of each species by the law of
//! mass action, then the same Gauss-Seidel sweeps of the two-step backward differentiation formula.

use crate::data::{Data, Output, floats};

const SPECIES: usize = 20;

/// Reactants and products, in the species order of the problem: NO2, NO, O3P, O3, HO2, OH, HCHO,
/// CO, ALD, MEO2, C2O3, CO2, PAN, CH3O, HNO3, O1D, SO2, SO4, NO3, N2O5.
const REACTIONS: [(&[usize], &[usize]); 25] = [
    (&[0], &[1, 2]),
    (&[1, 3], &[0]),
    (&[4, 1], &[0, 5]),
    (&[6], &[4, 4, 7]),
    (&[6], &[7]),
    (&[6, 5], &[4, 7]),
    (&[8], &[9, 4, 7]),
    (&[8, 5], &[10]),
    (&[10, 1], &[0, 9, 11]),
    (&[10, 0], &[12]),
    (&[12], &[10, 0]),
    (&[9, 1], &[13, 0]),
    (&[13], &[6, 4]),
    (&[0, 5], &[14]),
    (&[2], &[3]),
    (&[3], &[15]),
    (&[3], &[2]),
    (&[15], &[5, 5]),
    (&[15], &[2]),
    (&[16, 5], &[17, 4]),
    (&[18], &[1]),
    (&[18], &[0, 2]),
    (&[0, 3], &[18]),
    (&[18, 0], &[19]),
    (&[19], &[18, 0]),
];

/// What is made of a species per minute, and the share of it that is lost per minute.
fn balance(species: usize, y: &[f64; SPECIES], rate: &[f64; 25]) -> (f64, f64) {
    let (mut made, mut lost) = (0.0, 0.0);
    for ((reactants, products), k) in REACTIONS.iter().zip(rate) {
        let count = products.iter().filter(|&&p| p == species).count() as f64;
        made += count * reactants.iter().fold(*k, |rate, &r| rate * y[r]);
        if reactants.contains(&species) {
            let others = reactants.iter().filter(|&&r| r != species);
            lost += others.fold(*k, |rate, &r| rate * y[r]);
        }
    }
    (made, lost)
}

pub(crate) fn reference(data: &Data<'_>) -> Option<Vec<Output>> {
    let (n, steps) = (data.param("n")?, data.param("steps")?);
    let (sweeps, tau) = (data.int_scalar("sweeps")?, data.scalar("step")?);
    let (rate, mut all) = (data.floats("rate")?, data.floats("concentration")?);
    for cell in 0..n {
        let rate: [f64; 25] = std::array::from_fn(|r| rate[r * n + cell]);
        let mut y: [f64; SPECIES] = std::array::from_fn(|s| all[s * n + cell]);
        let mut before = y;
        for _ in 0..steps {
            let (now, last) = (y, before);
            before = now;
            for _ in 0..sweeps {
                for s in 0..SPECIES {
                    // 3/2 y - 2 now + 1/2 last = tau (made - lost y), solved for y.
                    let (made, lost) = balance(s, &y, &rate);
                    let right = tau * made + 2.0 * now[s] - 0.5 * last[s];
                    y[s] = right / (1.5 + tau * lost);
                }
            }
        }
        (0..SPECIES).for_each(|s| all[s * n + cell] = y[s]);
    }
    Some(vec![floats("concentration", all)])
}
