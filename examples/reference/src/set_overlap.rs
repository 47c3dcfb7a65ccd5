//! Sizes of intersections, by counting how often each number occurs. A number that occurs twice in
//! a list is two members.

use std::collections::BTreeMap;

use crate::data::{Data, Output, words};

pub(crate) fn reference(data: &Data<'_>) -> Option<Vec<Output>> {
    let size = data.param("size")?;
    let (member, pair) = (data.words("member")?, data.indices("pair")?);
    let occurrences = |set: usize| {
        let mut map = BTreeMap::<u64, u64>::new();
        for &number in &member[set * size..(set + 1) * size] {
            *map.entry(number).or_default() += 1;
        }
        map
    };
    let common = |pair: &[usize]| {
        let right = occurrences(pair[1]);
        let both = |(number, &n): (&u64, &u64)| n.min(right.get(number).copied().unwrap_or(0));
        occurrences(pair[0]).iter().map(both).sum()
    };
    Some(vec![words(
        "common",
        pair.chunks_exact(2).map(common).collect(),
    )])
}
