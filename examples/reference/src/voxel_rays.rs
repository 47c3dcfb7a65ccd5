//! Returns of rays through voxels: all crossings of a ray with planes are listed and sorted by
//! time, and the voxels between them looked at in turn.

use rayon::prelude::*;

use crate::data::{Data, Output, words};

const RETURNS: usize = 4;
const FRACTION: i64 = 256;

/// Crossings (time, axis) of the planes between here and the wall of the volume; the wall's is the
/// last of them. Times are multiplied with the product of all three speeds.
fn crossings(axis: usize, position: i64, direction: [i64; 3], size: i64) -> Vec<(i64, usize)> {
    let others: i64 = (0..3)
        .filter(|&other| other != axis)
        .map(|other| direction[other].abs())
        .product();
    let voxel = position / FRACTION;
    let planes: Vec<i64> = if direction[axis] > 0 {
        (voxel + 1..=size).collect()
    } else {
        (0..=voxel).rev().collect()
    };
    let time = |plane: i64| (plane * FRACTION - position).abs() * others;
    planes.into_iter().map(|p| (time(p), axis)).collect()
}

pub(crate) fn reference(data: &Data<'_>) -> Option<Vec<Output>> {
    let (rays, size) = (data.param("rays")?, data.param("size")? as i64);
    let (threshold, density) = (data.int_scalar("threshold")?, data.words("density")?);
    let (origin, direction) = (data.words("origin")?, data.words("direction")?);
    let follow = |ray: usize| {
        let position: [i64; 3] = std::array::from_fn(|axis| origin[axis * rays + ray] as i64);
        let direction: [i64; 3] =
            std::array::from_fn(|axis| 2 * direction[axis * rays + ray] as i64 - 1999);
        let mut events: Vec<(i64, usize)> = (0..3)
            .flat_map(|axis| crossings(axis, position[axis], direction, size))
            .collect();
        events.sort();

        let mut returns = Vec::new();
        let (mut voxel, mut now) = (position.map(|p| p / FRACTION), 0);
        for (time, axis) in events {
            let at = (voxel[2] * size + voxel[1]) * size + voxel[0];
            if i128::from(density[at as usize]) >= threshold {
                returns.push((at, now));
            }
            now = time;
            voxel[axis] += direction[axis].signum();
            if !(0..size).contains(&voxel[axis]) {
                break;
            }
        }
        returns.resize(returns.len().max(RETURNS), (-1, 0));
        returns
    };
    let all: Vec<Vec<(i64, i64)>> = (0..rays).into_par_iter().map(follow).collect();
    let part = |part: fn((i64, i64)) -> i64| {
        (0..RETURNS)
            .flat_map(|k| all.iter().map(move |returns| part(returns[k]) as u64))
            .collect()
    };
    Some(vec![
        words("voxel", part(|r| r.0)),
        words("time", part(|r| r.1)),
    ])
}
