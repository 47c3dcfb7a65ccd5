//! What a set of samples says: medians, their intervals, and who is faster.
//!
//! Goal: an interval that a second run of the same measurement falls into. Launch times are
//! skewed and drift with temperature and clocks, so nothing here assumes a normal distribution:
//! an interval of the median is a pair of order statistics whose coverage follows from the
//! binomial distribution (Conover, Practical Nonparametric Statistics, section 3.2: the number of
//! samples below the median is Bin(n, 1/2)).
//!
//! Samples come in *epochs* (fresh buffers and freshly loaded code in each). Rounds of one epoch
//! share where memory and code lie and are not independent draws, so the interval also has to
//! hold the spread of the epochs' medians, judged by the same order statistics.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Probability with which an interval is meant to hold the true median.
pub const CONFIDENCE: f64 = 0.95;

/// A median and the interval that holds it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// Median of all samples, in the samples' unit.
    pub median: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
    /// Number of samples behind it.
    pub samples: usize,
    /// Number of epochs behind it.
    pub epochs: usize,
    /// Probability that the interval holds the median, as far as the epochs can tell; below
    /// [`CONFIDENCE`] when there were too few of them (1 epoch: 0, 2 epochs: 0.5, 6: 0.97).
    pub coverage: f64,
}

impl Estimate {
    /// Half of the interval's width as a fraction of the median.
    pub fn half_width(&self) -> f64 {
        if self.median == 0.0 {
            f64::INFINITY
        } else {
            (self.high - self.low) / 2.0 / self.median
        }
    }
}

/// Samples of one quantity, by epoch; position within an epoch is the round.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Series {
    epochs: BTreeMap<u32, Vec<f64>>,
}

impl Series {
    /// Adds the samples of one epoch, in the order of its rounds.
    pub fn push(&mut self, epoch: u32, samples: Vec<f64>) {
        self.epochs.insert(epoch, samples);
    }

    /// The samples of one epoch.
    pub fn epoch(&self, epoch: u32) -> Option<&[f64]> {
        self.epochs.get(&epoch).map(Vec::as_slice)
    }

    /// Epochs present, ascending.
    pub fn epochs(&self) -> impl Iterator<Item = u32> + '_ {
        self.epochs.keys().copied()
    }

    /// True without a single sample.
    pub fn is_empty(&self) -> bool {
        self.epochs.values().all(Vec::is_empty)
    }

    /// Median and interval over everything sampled; `None` without samples.
    pub fn estimate(&self) -> Option<Estimate> {
        estimate(self.epochs.values().map(Vec::as_slice))
    }

    /// This series over `other`, round by round, where both were sampled in the same round.
    /// Drift that both shared cancels.
    pub fn over(&self, other: &Series) -> Series {
        let mut ratios = Series::default();
        for (&epoch, mine) in &self.epochs {
            if let Some(theirs) = other.epochs.get(&epoch) {
                ratios.push(epoch, mine.iter().zip(theirs).map(|(a, b)| a / b).collect());
            }
        }
        ratios
    }
}

/// The outcome of a comparison with a baseline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// The whole interval of the ratio lies below one, by more than the noise.
    Faster,
    /// The whole interval of the ratio lies above one, by more than the noise.
    Slower,
    /// The difference is inside the noise, or too little was measured to say.
    Tie,
}

/// Judges a ratio (time over the baseline's time). `noise` is the relative difference that two
/// copies of the same kernel can show on this device.
pub fn compare(ratio: &Estimate, noise: f64) -> Outcome {
    if ratio.coverage < CONFIDENCE {
        Outcome::Tie
    } else if ratio.high < 1.0 - noise {
        Outcome::Faster
    } else if ratio.low > 1.0 + noise {
        Outcome::Slower
    } else {
        Outcome::Tie
    }
}

/// Two copies of the same kernel that take turns differ by as much.
pub const NOISE: f64 = 0.005;

/// Each of a few samples must take less than this part of each of the other's.
const APART: f64 = 0.97;

/// What is measured in turns over what takes turns with it: the median of the ratios, if that is surely below one. Of few samples
/// (launches that take long) each must be clearly below each of the other's.
///
/// The one rule of `tune` wherever two kernels take turns in one process.
pub fn faster(own: &[f64], other: &[f64]) -> Option<f64> {
    let turns: Vec<f64> = own.iter().zip(other).map(|(a, b)| a / b).collect();
    let ratios = sorted(&turns);
    let within = interval(&ratios)?;
    let slowest = own.iter().copied().fold(0.0, f64::max);
    let fastest = other.iter().copied().fold(f64::INFINITY, f64::min);
    let is_faster = match within.coverage >= CONFIDENCE {
        true => within.high < 1.0 - NOISE,
        false => ratios.len() > 1 && slowest < fastest * APART,
    };
    middle(&ratios).filter(|_| is_faster)
}

/// Median of a slice; the mean of the two middle values for an even count.
pub fn median(samples: &[f64]) -> Option<f64> {
    middle(&sorted(samples))
}

/// Median and interval of samples that come in epochs: the hull of the pooled samples' interval
/// and of the epoch medians' interval.
pub fn estimate<'a>(epochs: impl IntoIterator<Item = &'a [f64]>) -> Option<Estimate> {
    let epochs: Vec<&[f64]> = epochs.into_iter().filter(|e| !e.is_empty()).collect();
    let pooled = sorted(&epochs.concat());
    let medians: Vec<f64> = epochs.iter().filter_map(|e| median(e)).collect();
    let within = interval(&pooled)?;
    let between = interval(&sorted(&medians))?;
    Some(Estimate {
        median: middle(&pooled)?,
        low: within.low.min(between.low),
        high: within.high.max(between.high),
        samples: pooled.len(),
        epochs: epochs.len(),
        coverage: between.coverage,
    })
}

/// An interval and the probability with which it holds the median.
struct Interval {
    low: f64,
    high: f64,
    coverage: f64,
}

/// The interval of the median of ascending samples.
fn interval(ascending: &[f64]) -> Option<Interval> {
    let (rank, coverage) = order_statistic(ascending.len(), CONFIDENCE)?;
    let low = *ascending.get(rank - 1)?;
    let high = *ascending.get(ascending.len() - rank)?;
    Some(Interval {
        low,
        high,
        coverage,
    })
}

/// The largest rank `k` (from 1) for which the `k`-th smallest and the `k`-th largest of `n`
/// samples enclose the median with at least `confidence`, and the coverage reached. With too few
/// samples the rank is 1 and the coverage is what it is. `None` for `n == 0`.
fn order_statistic(n: usize, confidence: f64) -> Option<(usize, f64)> {
    if n == 0 {
        return None;
    }
    if n == 1 {
        return Some((1, 0.0));
    }
    // P(B = i) for B ~ Bin(n, 1/2), in logarithms: 2^-n underflows beyond n = 1074.
    let mut ln_p = -(n as f64) * std::f64::consts::LN_2;
    let mut below = ln_p.exp(); // P(B <= k - 1) for k = 1
    let mut best = (1, 1.0 - 2.0 * below);
    for k in 2..=n / 2 {
        let i = (k - 1) as f64;
        ln_p += ((n as f64 - i + 1.0) / i).ln();
        below += ln_p.exp();
        let coverage = 1.0 - 2.0 * below;
        if coverage < confidence {
            break;
        }
        best = (k, coverage);
    }
    Some(best)
}

fn sorted(samples: &[f64]) -> Vec<f64> {
    let mut copy = samples.to_vec();
    copy.sort_by(f64::total_cmp);
    copy
}

fn middle(ascending: &[f64]) -> Option<f64> {
    let n = ascending.len();
    let upper = *ascending.get(n / 2)?;
    if n % 2 == 1 {
        return Some(upper);
    }
    ascending
        .get((n / 2).checked_sub(1)?)
        .map(|lower| (lower + upper) / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    #[test]
    fn medians_of_odd_and_even_counts() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0]), Some(3.0));
        assert_eq!(median(&[5.0, 1.0, 3.0]), Some(3.0));
        assert_eq!(median(&[4.0, 1.0, 3.0, 2.0]), Some(2.5));
    }

    /// Ranks and coverages of the two-sided sign-test interval, as in the usual tables:
    /// n = 6: 1 (0.969); n = 10: 2 (0.979); n = 20: 6 (0.959); n = 100: 40 (0.965).
    #[test]
    fn order_statistics_match_the_tables() {
        for (n, rank, coverage) in [
            (2, 1, 0.5),
            (5, 1, 0.9375),
            (6, 1, 0.969),
            (10, 2, 0.979),
            (20, 6, 0.959),
            (100, 40, 0.965),
        ] {
            let (k, c) = order_statistic(n, CONFIDENCE).expect("n > 0");
            assert_eq!(k, rank, "n = {n}");
            assert!((c - coverage).abs() < 5e-4, "n = {n}: {c}");
        }
    }

    #[test]
    fn large_counts_do_not_underflow() {
        let (k, c) = order_statistic(20_000, CONFIDENCE).expect("n > 0");
        // Normal approximation: n/2 - 1.96 sqrt(n)/2 = 9861.4.
        assert!((9855..=9867).contains(&k), "{k}");
        assert!((0.95..0.953).contains(&c), "{c}");
    }

    #[test]
    fn what_takes_turns_is_faster_beyond_the_noise_or_not_at_all() {
        let all = |n: usize, time: f64| vec![time; n];
        assert_eq!(faster(&all(11, 0.9), &all(11, 1.0)), Some(0.9));
        // As far as copies of one kernel are.
        assert_eq!(faster(&all(11, 0.996), &all(11, 1.0)), None);
        assert_eq!(faster(&all(11, 1.1), &all(11, 1.0)), None);
        // Drift that both share cancels; a few slow turns are no more than that.
        let drift: Vec<f64> = (0..11).map(|turn| 1.0 + f64::from(turn)).collect();
        let own: Vec<f64> = drift.iter().map(|time| 0.5 * time).collect();
        assert_eq!(faster(&own, &drift), Some(0.5));
        let mut mixed = all(11, 0.9);
        mixed[..5].fill(2.0);
        assert_eq!(faster(&mixed, &all(11, 1.0)), None);
        // Too few for an interval.
        assert_eq!(
            faster(&[0.9, 0.95], &[1.0, 0.99]),
            Some(0.5 * (0.9 + 0.95 / 0.99))
        );
        assert_eq!(faster(&[0.9, 0.98], &[1.0, 1.0]), None);
        assert_eq!(faster(&[0.5], &[1.0]), None);
        assert_eq!(faster(&[], &[]), None);
    }

    /// The interval must hold the true median in about 95 of 100 experiments, skewed or not.
    #[test]
    fn intervals_cover_the_median() {
        let mut rng = Rng::new(7);
        let mut held = 0;
        for _ in 0..1000 {
            // Exponential: median ln 2, heavily skewed as launch times are.
            let samples: Vec<f64> = (0..41).map(|_| -(1.0 - rng.unit()).ln()).collect();
            let e = estimate([samples.as_slice()]).expect("samples");
            held += usize::from((e.low..=e.high).contains(&std::f64::consts::LN_2));
        }
        assert!((940..=985).contains(&held), "{held} of 1000");
    }

    /// Epochs that differ among themselves widen the interval, however many rounds each has.
    #[test]
    fn spread_between_epochs_is_part_of_the_interval() {
        let epochs: Vec<Vec<f64>> = (0..6).map(|e| vec![100.0 + f64::from(e); 500]).collect();
        let e = estimate(epochs.iter().map(Vec::as_slice)).expect("samples");
        assert_eq!((e.low, e.high), (100.0, 105.0));
        assert!(e.coverage > 0.95);
        assert_eq!(e.epochs, 6);
    }

    #[test]
    fn paired_ratios_cancel_drift() {
        let (mut a, mut b) = (Series::default(), Series::default());
        let mut rng = Rng::new(3);
        for epoch in 0..6 {
            // Clocks drift by 20% over the epoch; b is 1% faster in every round.
            let base: Vec<f64> = (0..20)
                .map(|r| 100.0 * (1.0 + 0.01 * f64::from(r)))
                .collect();
            b.push(
                epoch,
                base.iter()
                    .map(|t| 0.99 * t * (1.0 + 1e-4 * rng.unit()))
                    .collect(),
            );
            a.push(epoch, base);
        }
        let ratio = b.over(&a).estimate().expect("samples");
        assert!((ratio.median - 0.99).abs() < 2e-4, "{ratio:?}");
        assert_eq!(compare(&ratio, 0.002), Outcome::Faster);
        // The plain medians overlap: unpaired, this would have been a tie.
        let (ea, eb) = (a.estimate().expect("a"), b.estimate().expect("b"));
        assert!(eb.high > ea.low);
    }

    #[test]
    fn only_rounds_that_both_saw_are_paired() {
        let (mut a, mut b) = (Series::default(), Series::default());
        a.push(0, vec![1.0, 2.0]);
        a.push(1, vec![4.0]);
        b.push(1, vec![2.0]);
        let ratios = a.over(&b);
        assert_eq!(ratios.epochs().collect::<Vec<_>>(), [1]);
        assert_eq!(ratios.epoch(1), Some(&[2.0][..]));
    }

    #[test]
    fn inside_the_noise_is_a_tie() {
        let ratio = |median, low, high| Estimate {
            median,
            low,
            high,
            samples: 50,
            epochs: 6,
            coverage: 0.97,
        };
        assert_eq!(compare(&ratio(0.99, 0.98, 1.001), 0.0), Outcome::Tie);
        assert_eq!(compare(&ratio(0.999, 0.9985, 0.9995), 0.002), Outcome::Tie);
        assert_eq!(compare(&ratio(0.95, 0.94, 0.96), 0.002), Outcome::Faster);
        assert_eq!(compare(&ratio(1.05, 1.04, 1.06), 0.002), Outcome::Slower);
        // Two epochs say nothing with confidence, however far apart the times are.
        let early = Estimate {
            coverage: 0.5,
            epochs: 2,
            ..ratio(0.5, 0.49, 0.51)
        };
        assert_eq!(compare(&early, 0.002), Outcome::Tie);
    }
}
