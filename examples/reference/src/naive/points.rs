//! Elements on their own, elements in another order, and bodies.

use super::{list, sizes, table};
use crate::data::{Data, Output, floats};

pub(super) fn vv(data: &Data<'_>) -> Option<Vec<Output>> {
    let (m, n) = sizes(data)?;
    let (x, y) = (data.floats("x")?, data.floats("y")?);
    table("c", m, n, |row, column| x[row] * y[column])
}

pub(super) fn tp(data: &Data<'_>) -> Option<Vec<Output>> {
    let (m, n) = sizes(data)?;
    let a = data.floats("a")?;
    table("b", n, m, |row, column| a[column * n + row])
}

pub(super) fn add_transposed(data: &Data<'_>) -> Option<Vec<Output>> {
    let (m, n) = sizes(data)?;
    let (a, b) = (data.floats("a")?, data.floats("b")?);
    table("c", m, n, |row, column| {
        (a[row * n + column] + b[column * m + row]) / 2.0
    })
}

pub(super) fn nhwc(data: &Data<'_>) -> Option<Vec<Output>> {
    let (images, channels) = (data.param("images")?, data.param("channels")?);
    let pixels = data.param("height")? * data.param("width")?;
    let from = data.floats("in")?;
    table("out", images * pixels, channels, |row, channel| {
        let (image, pixel) = (row / pixels, row % pixels);
        from[(image * channels + channel) * pixels + pixel]
    })
}

pub(super) fn scale_shift(data: &Data<'_>) -> Option<Vec<Output>> {
    let (images, channels) = (data.param("images")?, data.param("channels")?);
    let (x, pixels) = (data.floats("x")?, data.param("pixels")?);
    let (scale, shift) = (data.floats("scale")?, data.floats("shift")?);
    table("y", images * channels, pixels, |row, pixel| {
        let channel = row % channels;
        x[row * pixels + pixel] * scale[channel] + shift[channel]
    })
}

pub(super) fn grey(data: &Data<'_>) -> Option<Vec<Output>> {
    let n = data.param("n")?;
    let picture = data.indices("picture")?;
    list("out", n, |i| {
        let weights = [0.299, 0.587, 0.114];
        let bytes = &picture[3 * i..][..3];
        bytes
            .iter()
            .zip(weights)
            .map(|(byte, weight)| *byte as f64 * weight)
            .sum()
    })
}

pub(super) fn gelu(data: &Data<'_>) -> Option<Vec<Output>> {
    let (m, n) = sizes(data)?;
    let (x, bias) = (data.floats("x")?, data.floats("bias")?);
    table("y", m, n, |row, column| {
        let v = x[row * n + column] + bias[column];
        // (1 + tanh t) / 2 is 1 / (1 + exp(-2 t)).
        let t = (2.0 / std::f64::consts::PI).sqrt() * (v + 0.044715 * v.powi(3));
        v / (1.0 + (-2.0 * t).exp())
    })
}

/// By the parity of calls and puts: call - put = price - discounted strike.
pub(super) fn black_scholes(data: &Data<'_>) -> Option<Vec<Output>> {
    let (price, strike) = (data.floats("price")?, data.floats("strike")?);
    let years = data.floats("years")?;
    let (rate, volatility) = (data.scalar("rate")?, data.scalar("volatility")?);
    // The polynomial for the upper tail; below zero by symmetry.
    let normal = |d: f64| {
        let k = 1.0 / (1.0 + 0.2316419 * d.abs());
        let factors = [
            1.330274429,
            -1.821255978,
            1.781477937,
            -0.356563782,
            0.31938153,
        ];
        let sum = factors.iter().fold(0.0, |sum, factor| (sum + factor) * k);
        let tail = sum * (-d * d / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt();
        if d > 0.0 { 1.0 - tail } else { tail }
    };
    let (mut calls, mut puts) = (Vec::new(), Vec::new());
    for ((s, x), t) in price.iter().zip(&strike).zip(&years) {
        let spread = volatility * t.sqrt();
        let d = ((s / x).ln() + rate * t) / spread + spread / 2.0;
        let discounted = x * (-rate * t).exp();
        let call = s * normal(d) - discounted * normal(d - spread);
        calls.push(call);
        puts.push(call - s + discounted);
    }
    Some(vec![floats("call", calls), floats("put", puts)])
}

/// One step: two transforms of length p become one of length 2 p.
pub(super) fn fft2(data: &Data<'_>) -> Option<Vec<Output>> {
    let (n, p) = (data.param("n")?, data.param("p")?);
    let (x, w) = (data.floats("x")?, data.floats("w")?);
    list("y", 2 * n, |i| {
        let (place, part) = (i / 2, i % 2);
        let (group, within) = (place / (2 * p), place % (2 * p));
        let (k, sign) = (within % p, if within < p { 1.0 } else { -1.0 });
        let (a, b, t) = (group * p + k, group * p + k + n / 2, n / (2 * p) * k);
        let (br, bi, wr, wi) = (x[2 * b], x[2 * b + 1], w[2 * t], w[2 * t + 1]);
        let turned = if part == 0 {
            br * wr - bi * wi
        } else {
            br * wi + bi * wr
        };
        x[2 * a + part] + sign * turned
    })
}

/// One step: eight transforms of length p become one of length 8 p.
pub(super) fn fft8(data: &Data<'_>) -> Option<Vec<Output>> {
    let (n, p) = (data.param("n")?, data.param("p")?);
    let (x, w) = (data.floats("x")?, data.floats("w")?);
    list("y", 2 * n, |i| {
        let (place, part) = (i / 2, i % 2);
        let (group, within) = (place / (8 * p), place % (8 * p));
        let (k, bin) = (within % p, within / p);
        let term = |r: usize| {
            let (a, t) = (group * p + k + r * (n / 8), n / (8 * p) * k * r);
            let angle = -std::f64::consts::FRAC_PI_4 * (r * bin % 8) as f64;
            let (xr, xi) = (x[2 * a], x[2 * a + 1]);
            // Nothing turns the first point, whatever the table has there.
            let (wr, wi) = if r == 0 {
                (1.0, 0.0)
            } else {
                (w[2 * t], w[2 * t + 1])
            };
            let (re, im) = (xr * wr - xi * wi, xr * wi + xi * wr);
            match part {
                0 => re * angle.cos() - im * angle.sin(),
                _ => re * angle.sin() + im * angle.cos(),
            }
        };
        (0..8).map(term).sum()
    })
}

/// By sorting all distances.
pub(super) fn nearest4(data: &Data<'_>) -> Option<Vec<Output>> {
    let (m, _) = sizes(data)?;
    let (queries, points) = (data.floats("queries")?, data.floats("points")?);
    let nearest: Vec<Vec<f64>> = queries
        .chunks(3)
        .map(|q| {
            let square = |p: &[f64]| q.iter().zip(p).map(|(q, p)| (p - q).powi(2)).sum();
            let mut all: Vec<f64> = points.chunks(3).map(square).collect();
            all.sort_by(f64::total_cmp);
            all.resize(all.len().max(4), 1e30);
            all
        })
        .collect();
    table("out", m, 4, |query, i| nearest[query][i])
}

pub(super) fn nbody(data: &Data<'_>) -> Option<Vec<Output>> {
    let n = data.param("n")?;
    let softening = data.scalar("softening")?;
    let body = data.floats("body")?;
    table("acceleration", n, 3, |own, axis| {
        let pull = |other: usize| {
            let to = |axis: usize| body[4 * other + axis] - body[4 * own + axis];
            let square = to(0).powi(2) + to(1).powi(2) + to(2).powi(2) + softening;
            body[4 * other + 3] * to(axis) / square.powf(1.5)
        };
        (0..n).map(pull).sum()
    })
}
