//! Local alignment by the full recurrence of Smith, Waterman and Beyer: every gap length is tried
//! at every place, so no gap matrices are needed.

use rayon::prelude::*;

use crate::data::{Data, Output, words};

/// Letter `at` of the sequence whose words of 32 letters stand `stride` apart.
fn letter(words: &[u64], stride: usize, pair: usize, at: usize) -> u64 {
    words[(at / 32) * stride + pair] >> (2 * (at % 32)) & 3
}

pub(crate) fn reference(data: &Data<'_>) -> Option<Vec<Output>> {
    let pairs = data.param("pairs")?;
    let (letters, rows) = (32 * data.param("strips")?, data.param("rows")?);
    let (read, window) = (data.words("read")?, data.words("window")?);
    let (hit, miss) = (data.int_scalar("match")?, data.int_scalar("mismatch")?);
    let (open, extend) = (data.int_scalar("open")?, data.int_scalar("extend")?);
    let (hit, miss, open, extend) = (hit as i64, miss as i64, open as i64, extend as i64);

    let best = |pair: usize| {
        let gap = |length: usize| open + extend * (length as i64 - 1);
        let width = letters + 1;
        let mut h = vec![0; (rows + 1) * width];
        for row in 1..=rows {
            for column in 1..=letters {
                let same =
                    letter(&read, pairs, pair, column - 1) == letter(&window, pairs, pair, row - 1);
                let diagonal = h[(row - 1) * width + column - 1] + if same { hit } else { -miss };
                let up = (1..=row).map(|k| h[(row - k) * width + column] - gap(k));
                let left = (1..=column).map(|k| h[row * width + column - k] - gap(k));
                let score = up.chain(left).fold(diagonal.max(0), i64::max);
                h[row * width + column] = score;
            }
        }
        h.into_iter().fold(0, i64::max) as u64
    };
    let scores = (0..pairs).into_par_iter().map(best).collect();
    Some(vec![words("score", scores)])
}
