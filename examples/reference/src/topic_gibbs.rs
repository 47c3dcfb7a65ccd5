//! One sweep of Gibbs sampling: each word's topic is where the table of cumulated weights first
//! exceeds the drawn number.

use crate::data::{Data, Output, words};

/// The finalizer of MurmurHash3 (32 bits).
fn mix(mut h: u32) -> u32 {
    h = (h ^ (h >> 16)).wrapping_mul(0x85eb_ca6b);
    h = (h ^ (h >> 13)).wrapping_mul(0xc2b2_ae35);
    h ^ (h >> 16)
}

pub(crate) fn reference(data: &Data<'_>) -> Option<Vec<Output>> {
    let (length, topics) = (data.param("length")?, data.param("topics")?);
    let (word, weight) = (data.indices("word")?, data.words("weight")?);
    let mut count = data.words("count")?;
    let mut topic = Vec::with_capacity(word.len());
    for (place, &word) in word.iter().enumerate() {
        let document = place / length * topics;
        let own = &mut count[document..document + topics];
        let row = &weight[word * topics..(word + 1) * topics];
        let cumulated: Vec<u64> = own
            .iter()
            .zip(row)
            .scan(0, |sum, (c, w)| {
                *sum += (c + 1) * (w + 1);
                Some(*sum)
            })
            .collect();
        let total = cumulated.last().copied()?;
        let drawn = (u64::from(mix(place as u32)) * total) >> 32;
        let k = cumulated.partition_point(|&sum| sum <= drawn);
        own[k] += 1;
        topic.push(k as u64);
    }
    Some(vec![words("count", count), words("topic", topic)])
}
