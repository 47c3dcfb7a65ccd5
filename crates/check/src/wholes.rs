//! Coordinates of threads as whole numbers.
//!
//! Terms are arithmetic modulo 2^bits, in which a sum of coordinates is the same however it is added up. That it is
//! also the same once widened takes bounds: of each coordinate, and of what one number leaves of another
//! ([`Split`]).

use rustc_hash::FxHashMap;

use crate::semantics::Split;
use crate::term::{Term, sign_extended};

/// What is known of coordinates, each a leaf of 32 bits.
#[derive(Debug, Default)]
pub(crate) struct Wholes {
    /// Each is less than that.
    below: FxHashMap<Term, u64>,
    splits: Vec<Known>,
}

/// A number that is the sum of other ones times their factors, and of a rest.
#[derive(Debug)]
struct Known {
    whole: Term,
    rest: u64,
    parts: Vec<(Term, u64)>,
}

impl Wholes {
    pub(crate) fn is_empty(&self) -> bool {
        self.below.is_empty()
    }

    /// What a split says, of these leaves.
    pub(crate) fn insert(&mut self, split: &Split, whole: Term, parts: &[Term]) {
        let most = split
            .parts
            .iter()
            .map(|part| (part.below - 1) * part.factor);
        self.below.insert(whole, most.sum::<u64>() + split.rest);
        for (part, term) in split.parts.iter().zip(parts) {
            self.below.insert(*term, part.below);
        }
        let factors = split.parts.iter().map(|part| part.factor);
        self.splits.push(Known {
            whole,
            rest: split.rest,
            parts: parts.iter().copied().zip(factors).collect(),
        });
    }

    /// Bounds of a sum of leaves, each times a factor of 32 bits, as the number that it is before it wraps around.
    /// `None` where a part is no coordinate.
    pub(crate) fn range(&self, parts: &[(Term, u64)], constant: u64) -> Option<(i128, i128)> {
        let signed = |value: u64| i128::from(sign_extended(value, 32));
        let mut sum: Vec<(Term, i128)> =
            parts.iter().map(|part| (part.0, signed(part.1))).collect();
        let (mut low, mut high) = (signed(constant), signed(constant));
        let mut add = |factor: i128, below: u64| {
            let most = factor * i128::from(below - 1);
            low += most.min(0);
            high += most.max(0);
        };
        // A number beside what it is made of stands for its rest.
        for at in 0..sum.len() {
            let (whole, factor) = sum[at];
            let mut splits = self.splits.iter().filter(|split| split.whole == whole);
            let is_in = |term: Term| sum.iter().any(|part| part.0 == term);
            let Some(split) = splits.find(|split| split.parts.iter().any(|part| is_in(part.0)))
            else {
                continue;
            };
            for &(part, by) in &split.parts {
                let by = factor * i128::from(by);
                match sum.iter_mut().find(|known| known.0 == part) {
                    Some(known) => known.1 += by,
                    None => sum.push((part, by)),
                }
            }
            sum[at].1 = 0;
            add(factor, split.rest);
        }
        for (term, factor) in sum {
            add(factor, *self.below.get(&term)?);
        }
        Some((low, high))
    }
}
