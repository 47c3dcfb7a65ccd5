//! Gravity and its time derivatives: the acceleration along the motion r + v t + a t^2 / 2 is
//! expanded as a power series in t, whose coefficients times 1, 1 and 2 are the derivatives.

use rayon::prelude::*;

use crate::data::{Data, Output, floats};

/// c0 + c1 t + c2 t^2, without what follows.
#[derive(Clone, Copy, Default)]
struct Series([f64; 3]);

impl Series {
    fn add(self, other: Series) -> Series {
        Series(std::array::from_fn(|k| self.0[k] + other.0[k]))
    }

    fn mul(self, other: Series) -> Series {
        let (a, b) = (self.0, other.0);
        Series(std::array::from_fn(|k| {
            (0..=k).map(|i| a[i] * b[k - i]).sum()
        }))
    }

    /// s^p by J.C.P. Miller's recurrence.
    fn powf(self, p: f64) -> Series {
        let s = self.0;
        let mut c = [s[0].powf(p), 0.0, 0.0];
        for k in 1..3 {
            let sum: f64 = (1..=k)
                .map(|i| (p * i as f64 - (k - i) as f64) * s[i] * c[k - i])
                .sum();
            c[k] = sum / (k as f64 * s[0]);
        }
        Series(c)
    }
}

pub(crate) fn reference(data: &Data<'_>) -> Option<Vec<Output>> {
    let (n, slices) = (data.param("n")?, data.param("slices")?);
    let softening = data.scalar("softening")?;
    let body = data.floats("body")?;
    let share = n.div_ceil(slices);

    // The nine derivatives of target i from the sources of one slice.
    let pull = |slice: usize, i: usize| {
        let mut sum = [Series::default(); 3];
        for j in slice * share..((slice + 1) * share).min(n) {
            let path: [Series; 3] = std::array::from_fn(|axis| {
                let difference = |kind: usize| {
                    let row = (3 * kind + axis) * n;
                    body[row + j] - body[row + i]
                };
                Series([difference(0), difference(1), difference(2) / 2.0])
            });
            let distance2 = path
                .iter()
                .fold(Series([softening, 0.0, 0.0]), |s, &r| s.add(r.mul(r)));
            let mass = Series([body[9 * n + j], 0.0, 0.0]);
            let strength = mass.mul(distance2.powf(-1.5));
            for axis in 0..3 {
                sum[axis] = sum[axis].add(strength.mul(path[axis]));
            }
        }
        sum
    };
    let pulls: Vec<[Series; 3]> = (0..slices * n)
        .into_par_iter()
        .map(|at| pull(at / n, at % n))
        .collect();

    let mut out = vec![0.0; slices * 9 * n];
    for (at, sum) in pulls.iter().enumerate() {
        for order in 0..3 {
            for axis in 0..3 {
                let row = (at / n) * 9 + 3 * order + axis;
                let factorial = [1.0, 1.0, 2.0][order];
                out[row * n + at % n] = factorial * sum[axis].0[order];
            }
        }
    }
    Some(vec![floats("derivatives", out)])
}
