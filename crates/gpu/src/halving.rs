//! Successive halving: who stays in the race.
//!
//! Time goes to the variants that may be the fastest (Jamieson & Talwalkar, 'Non-stochastic best
//! arm identification and hyperparameter optimization', AISTATS 2016). Departure from the plain
//! method: a variant that cannot be told from the best so far is not dropped for its rank alone,
//! as long as the field still shrinks.

use crate::stats::Estimate;

/// The contenders that go on, in their order. `field` has each contender's time over the
/// baseline's, `keep` is how many are meant to go on.
pub fn survivors<K: Copy + Ord>(field: &[(K, Estimate)], keep: usize) -> Vec<K> {
    let mut ranked: Vec<&(K, Estimate)> = field.iter().collect();
    // Ties go to the earlier contender: the driver ranks what it proposes.
    ranked.sort_by(|a, b| a.1.median.total_cmp(&b.1.median).then(a.0.cmp(&b.0)));
    let Some(best) = ranked.first().map(|(_, e)| e.high) else {
        return Vec::new();
    };
    let shrunk = (field.len() * 3)
        .div_ceil(4)
        .min(field.len().saturating_sub(1))
        .max(1);
    let mut kept: Vec<K> = ranked
        .iter()
        .enumerate()
        .filter(|(rank, (_, e))| *rank < keep || (e.low <= best && *rank < shrunk))
        .map(|(_, (k, _))| *k)
        .collect();
    kept.sort_unstable();
    kept
}

/// How many stages bring `field` contenders down to `finalists`, halving each time.
pub fn stages(field: usize, finalists: usize) -> u32 {
    let mut left = field;
    let mut stages = 0;
    while left > finalists.max(1) {
        left = left.div_ceil(2);
        stages += 1;
    }
    stages
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(median: f64, half: f64) -> Estimate {
        let (low, high) = (median - half, median + half);
        Estimate {
            median,
            low,
            high,
            samples: 10,
            epochs: 1,
            coverage: 0.95,
        }
    }

    #[test]
    fn the_slower_half_goes() {
        let field: Vec<(usize, Estimate)> = (0..8)
            .map(|i| (i, at(1.0 + 0.1 * i as f64, 0.01)))
            .collect();
        assert_eq!(survivors(&field, 4), [0, 1, 2, 3]);
    }

    #[test]
    fn who_cannot_be_told_from_the_best_stays_but_the_field_shrinks() {
        let field: Vec<(usize, Estimate)> = (0..8)
            .map(|i| (i, at(1.0 + 0.001 * i as f64, 0.05)))
            .collect();
        assert_eq!(survivors(&field, 4), [0, 1, 2, 3, 4, 5]);
    }

    #[test]
    fn ties_go_to_the_earlier() {
        let field: Vec<(usize, Estimate)> = (0..4).map(|i| (i, at(1.0, 0.0))).collect();
        assert_eq!(survivors(&field, 1), [0, 1, 2]);
        assert!(survivors::<usize>(&[], 3).is_empty());
    }

    #[test]
    fn stage_counts() {
        assert_eq!(stages(3, 3), 0);
        assert_eq!(stages(4, 3), 1);
        assert_eq!(stages(24, 3), 3);
        assert_eq!(stages(25, 3), 4);
    }
}
