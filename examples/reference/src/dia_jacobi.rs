//! A damped Jacobi sweep, entry by entry in the order of storage: each entry takes its share out of
//! its row's right-hand side.

use crate::data::{Data, Output, floats};

pub(crate) fn reference(data: &Data<'_>) -> Option<Vec<Output>> {
    let (omega, offset) = (data.scalar("omega")?, data.words("offset")?);
    let diagonal = data.floats("diagonal")?;
    let (b, x) = (data.floats("b")?, data.floats("x")?);
    let rows = x.len();
    let mut residual = b;
    let mut pivot = vec![0.0; rows];
    for (&offset, entries) in offset.iter().zip(diagonal.chunks_exact(rows)) {
        let offset = i64::from(offset as u32 as i32);
        for (row, &entry) in entries.iter().enumerate() {
            let column = usize::try_from(row as i64 + offset).ok();
            let Some(&value) = column.and_then(|column| x.get(column)) else {
                continue;
            };
            residual[row] -= entry * value;
            if offset == 0 {
                pivot[row] = entry;
            }
        }
    }
    let next = (0..rows)
        .map(|row| x[row] + omega * (residual[row] / pivot[row]))
        .collect();
    Some(vec![floats("next", next)])
}
