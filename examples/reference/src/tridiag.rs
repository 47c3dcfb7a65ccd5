//! Tridiagonal systems solved from the other end: the last unknown is eliminated first.

use crate::data::{Data, Output, floats};

pub(crate) fn reference(data: &Data<'_>) -> Option<Vec<Output>> {
    let n = data.param("n")?;
    let (lower, upper) = (data.floats("lower")?, data.floats("upper")?);
    let (mut pivot, mut x) = (data.floats("diagonal")?, data.floats("right")?);
    for start in (0..x.len()).step_by(n) {
        for row in (start..start + n - 1).rev() {
            let share = upper[row] / pivot[row + 1];
            pivot[row] -= share * lower[row + 1];
            x[row] -= share * x[row + 1];
        }
        x[start] /= pivot[start];
        for row in start + 1..start + n {
            x[row] = (x[row] - lower[row] * x[row - 1]) / pivot[row];
        }
    }
    Some(vec![floats("solution", x)])
}
