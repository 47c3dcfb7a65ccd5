//! The nearest centre of every point. Distances are rounded to f32 after every fused step, as the
//! kernel's are, so that close decisions fall the same way.

use crate::data::{Data, Output, floats, words};

pub(crate) fn reference(data: &Data<'_>) -> Option<Vec<Output>> {
    let features = data.param("features")?;
    let (point, centre) = (data.singles("point")?, data.singles("centre")?);
    let nearest: Vec<(usize, f32)> = point
        .chunks_exact(features)
        .filter_map(|point| {
            let square = |centre: &[f32]| {
                let pairs = point.iter().zip(centre);
                pairs.fold(0.0f32, |sum, (p, c)| (p - c).mul_add(p - c, sum))
            };
            let distances = centre.chunks_exact(features).map(square).enumerate();
            distances.min_by(|a, b| a.1.total_cmp(&b.1))
        })
        .collect();
    Some(vec![
        words("nearest", nearest.iter().map(|n| n.0 as u64).collect()),
        floats("distance", nearest.iter().map(|n| n.1.into()).collect()),
    ])
}
