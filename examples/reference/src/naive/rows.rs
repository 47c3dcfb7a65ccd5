//! Sums, maxima and counts over rows, columns and everything.

use super::{list, sizes, table};
use crate::data::{Data, Output, words};

pub(super) fn rd(data: &Data<'_>) -> Option<Vec<Output>> {
    let a = data.floats("a")?;
    list("s", 1, |_| a.iter().sum())
}

pub(super) fn rd_complex(data: &Data<'_>) -> Option<Vec<Output>> {
    let a = data.floats("a")?;
    list("s", 1, |_| a.iter().map(|part| part.abs()).sum())
}

pub(super) fn softmax(data: &Data<'_>) -> Option<Vec<Output>> {
    let (m, n) = sizes(data)?;
    let x = data.floats("x")?;
    // Without the maximum: the inputs are small enough for f64.
    let sums: Vec<f64> = x
        .chunks(n)
        .map(|row| row.iter().map(|v| v.exp()).sum())
        .collect();
    table("y", m, n, |row, column| {
        x[row * n + column].exp() / sums[row]
    })
}

pub(super) fn layer_norm(data: &Data<'_>) -> Option<Vec<Output>> {
    let (m, n) = sizes(data)?;
    let epsilon = data.scalar("epsilon")?;
    let (x, scale, shift) = (
        data.floats("x")?,
        data.floats("scale")?,
        data.floats("shift")?,
    );
    let moments = |row: &[f64]| {
        let mean = row.iter().sum::<f64>() / n as f64;
        let variance = row.iter().map(|v| v * v).sum::<f64>() / n as f64 - mean * mean;
        (mean, (variance + epsilon).sqrt())
    };
    let moments: Vec<(f64, f64)> = x.chunks(n).map(moments).collect();
    table("y", m, n, |row, column| {
        let (mean, deviation) = moments[row];
        (x[row * n + column] - mean) / deviation * scale[column] + shift[column]
    })
}

pub(super) fn rms_norm(data: &Data<'_>) -> Option<Vec<Output>> {
    let (m, n) = sizes(data)?;
    let (x, scale) = (data.floats("x")?, data.floats("scale")?);
    let mean = |row: &[f64]| row.iter().map(|v| v * v).sum::<f64>() / n as f64;
    let roots: Vec<f64> = x.chunks(n).map(|row| (mean(row) + 1e-6).sqrt()).collect();
    table("y", m, n, |row, column| {
        x[row * n + column] / roots[row] * scale[column]
    })
}

pub(super) fn row_max(data: &Data<'_>) -> Option<Vec<Output>> {
    let (m, n) = sizes(data)?;
    let x = data.floats("x")?;
    list("y", m, |row| {
        x[row * n..][..n]
            .iter()
            .copied()
            .fold(f64::NEG_INFINITY, f64::max)
    })
}

pub(super) fn column_mean(data: &Data<'_>) -> Option<Vec<Output>> {
    let (m, n) = sizes(data)?;
    let x = data.floats("x")?;
    list("y", n, |column| {
        (0..m).map(|row| x[row * n + column]).sum::<f64>() / m as f64
    })
}

pub(super) fn histogram(data: &Data<'_>) -> Option<Vec<Output>> {
    let mut counts = vec![0_u64; 256];
    for value in data.indices("values")? {
        counts[value] += 1;
    }
    Some(vec![words("counts", counts)])
}

pub(super) fn prefix_sum(data: &Data<'_>) -> Option<Vec<Output>> {
    let mut sum = 0_u64;
    let sums = data.words("x")?.into_iter().map(|x| {
        sum = sum.wrapping_add(x);
        sum
    });
    Some(vec![words("y", sums.collect())])
}

/// Every entry goes to its row.
pub(super) fn spmv(data: &Data<'_>) -> Option<Vec<Output>> {
    let rows = data.param("rows")?;
    let (first, column) = (data.indices("first")?, data.indices("column")?);
    let (value, x) = (data.floats("value")?, data.floats("x")?);
    list("y", rows, |row| {
        let entries = first[row]..first[row + 1];
        entries.map(|i| value[i] * x[column[i]]).sum()
    })
}
