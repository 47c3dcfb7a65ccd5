//! What each point would save at its cheapest candidate centre, from whole distances.

use crate::data::{Data, Output, floats, words};

pub(crate) fn reference(data: &Data<'_>) -> Option<Vec<Output>> {
    let dimensions = data.param("dimensions")?;
    let (point, candidate) = (data.floats("point")?, data.floats("candidate")?);
    let (weight, cost) = (data.floats("weight")?, data.floats("cost")?);
    let mut gain = vec![0.0; cost.len()];
    let mut choice = vec![u64::MAX; cost.len()];
    for (id, point) in point.chunks_exact(dimensions).enumerate() {
        for (c, candidate) in candidate.chunks_exact(dimensions).enumerate() {
            let square = |(a, b): (&f64, &f64)| (a - b).powi(2);
            let there: f64 = point.iter().zip(candidate).map(square).sum();
            let saved = cost[id] - weight[id] * there;
            if saved > gain[id] {
                gain[id] = saved;
                choice[id] = c as u64;
            }
        }
    }
    Some(vec![floats("gain", gain), words("choice", choice)])
}
