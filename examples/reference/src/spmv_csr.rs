//! A sparse matrix times a vector, entry by entry: each one adds its share to its row.

use crate::data::{Data, Output, floats};

pub(crate) fn reference(data: &Data<'_>) -> Option<Vec<Output>> {
    let (first, column) = (data.indices("first")?, data.indices("column")?);
    let (value, x) = (data.floats("value")?, data.floats("x")?);
    let mut y = vec![0.0; data.param("rows")?];
    let mut row = 0;
    for (entry, (&value, &column)) in value.iter().zip(&column).enumerate() {
        while first[row + 1] <= entry {
            row += 1;
        }
        y[row] += value * x[column];
    }
    Some(vec![floats("y", y)])
}
