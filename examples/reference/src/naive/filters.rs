//! Filters and neighbourhoods.

use super::{list, sizes, table};
use crate::data::{Data, Output, floats};

pub(super) fn conv(data: &Data<'_>) -> Option<Vec<Output>> {
    let (m, n) = sizes(data)?;
    let f = data.param("f")?;
    let (image, filter) = (data.floats("in")?, data.floats("filter")?);
    let width = n + f - 1;
    table("out", m, n, |y, x| {
        let row = |i: usize| {
            let (image, filter) = (&image[(y + i) * width + x..][..f], &filter[i * f..][..f]);
            image.iter().zip(filter).map(|(a, b)| a * b).sum::<f64>()
        };
        (0..f).map(row).sum()
    })
}

pub(super) fn fir(data: &Data<'_>) -> Option<Vec<Output>> {
    let (n, taps) = (data.param("n")?, data.param("taps")?);
    let (x, h) = (data.floats("x")?, data.floats("h")?);
    list("y", n, |i| {
        let window = &x[i..][..taps];
        window.iter().zip(&h).map(|(x, h)| x * h).sum()
    })
}

pub(super) fn conv1d(data: &Data<'_>) -> Option<Vec<Output>> {
    let (outs, ins) = (data.param("outs")?, data.param("ins")?);
    let (n, taps) = (data.param("n")?, data.param("taps")?);
    let (image, w) = (data.floats("in")?, data.floats("w")?);
    let width = n + taps - 1;
    table("out", outs, n, |o, x| {
        let channel = |c: usize| {
            let (image, w) = (&image[c * width + x..], &w[(o * ins + c) * taps..][..taps]);
            image.iter().zip(w).map(|(a, b)| a * b).sum::<f64>()
        };
        (0..ins).map(channel).sum()
    })
}

pub(super) fn conv2d(data: &Data<'_>) -> Option<Vec<Output>> {
    let (m, n) = sizes(data)?;
    let (outs, ins) = (data.param("outs")?, data.param("ins")?);
    let (image, w, bias) = (data.floats("in")?, data.floats("w")?, data.floats("bias")?);
    table("out", outs * m, n, |row, x| {
        let (o, y) = (row / m, row % m);
        let term = |t: usize| {
            let (c, i, j) = (t / 9, t / 3 % 3, t % 3);
            image[(c * (m + 2) + y + i) * (n + 2) + x + j] * w[o * ins * 9 + t]
        };
        bias[o] + (0..ins * 9).map(term).sum::<f64>()
    })
}

/// The two nearest pixels of a colour, or the four, whichever the pattern has there.
pub(super) fn demosaic(data: &Data<'_>) -> Option<Vec<Output>> {
    let (m, n) = sizes(data)?;
    let raw = data.floats("raw")?;
    // The colour of the place (y, x), which may lie in the margin: 0 red, 1 green, 2 blue.
    let colour = |y: i64, x: i64| (y.rem_euclid(2) + x.rem_euclid(2)) as usize;
    let channel = |wanted: usize| {
        let element = |y: i64, x: i64| {
            let mut found = Vec::new();
            for distance in 0..3 {
                for (dy, dx) in [-1, 0, 1_i64]
                    .iter()
                    .flat_map(|y| [-1, 0, 1_i64].map(|x| (*y, x)))
                {
                    if dy.abs() + dx.abs() == distance && colour(y + dy, x + dx) == wanted {
                        found.push(raw[((y + dy + 1) as usize) * (n + 2) + (x + dx + 1) as usize]);
                    }
                }
                if !found.is_empty() {
                    break;
                }
            }
            found.iter().sum::<f64>() / found.len() as f64
        };
        let all = (0..m as i64).flat_map(|y| (0..n as i64).map(move |x| (y, x)));
        all.map(|(y, x)| element(y, x)).collect()
    };
    Some(vec![
        floats("red", channel(0)),
        floats("green", channel(1)),
        floats("blue", channel(2)),
    ])
}

pub(super) fn imregionmax(data: &Data<'_>) -> Option<Vec<Output>> {
    let (m, n) = sizes(data)?;
    let image = data.floats("in")?;
    table("out", m, n, |y, x| {
        let own = image[(y + 1) * (n + 2) + x + 1];
        let around = (0..9).map(|i| image[(y + i / 3) * (n + 2) + x + i % 3]);
        f64::from(u8::from(around.into_iter().all(|other| other <= own)))
    })
}

pub(super) fn sweep5(data: &Data<'_>) -> Option<Vec<Output>> {
    let (m, n) = sizes(data)?;
    let (before, after) = (data.floats("in")?, data.floats("out")?);
    table("out", m, n, |y, x| {
        if y == 0 || x == 0 || y == m - 1 || x == n - 1 {
            return after[y * n + x];
        }
        let p = y * n + x;
        let around = before[p - 1] + before[p + 1] + before[p - n] + before[p + n];
        before[p] / 2.0 + around / 8.0
    })
}

pub(super) fn max_pool(data: &Data<'_>) -> Option<Vec<Output>> {
    let (m, n) = sizes(data)?;
    let image = data.floats("in")?;
    table("out", m, n, |y, x| {
        let pixel = |i: usize| image[(2 * y + i / 2) * 2 * n + 2 * x + i % 2];
        (0..4).map(pixel).fold(f64::NEG_INFINITY, f64::max)
    })
}
