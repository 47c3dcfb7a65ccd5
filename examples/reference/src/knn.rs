//! The nearest neighbours by sorting all points by distance, then index. Distances are rounded to
//! f32 after every operation, as the kernel does, so ties fall the same way.

use rayon::prelude::*;

use crate::data::{Data, Output, words};

const K: usize = 16;

pub(crate) fn reference(data: &Data<'_>) -> Option<Vec<Output>> {
    let (n, m) = (data.param("n")?, data.param("m")?);
    let (queries, points) = (data.singles("queries")?, data.singles("points")?);
    let nearest = |q: usize| {
        let distance = |p: usize| {
            let square = |axis: usize| (points[axis * m + p] - queries[axis * n + q]).powi(2);
            square(0) + square(1) + square(2)
        };
        let mut all: Vec<(f32, usize)> = (0..m).map(|p| (distance(p), p)).collect();
        all.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        all.resize(m.max(K), (f32::INFINITY, usize::MAX));
        all.truncate(K);
        all
    };
    let neighbours: Vec<Vec<(f32, usize)>> = (0..n).into_par_iter().map(nearest).collect();
    let all = |bits: fn((f32, usize)) -> u64| {
        (0..K)
            .flat_map(|k| neighbours.iter().map(move |list| bits(list[k])))
            .collect()
    };
    Some(vec![
        words("index", all(|e| e.1 as u64)),
        words("distance", all(|e| e.0.to_bits().into())),
    ])
}
