//! Means of ratios, and how alike two orders are.

/// Values that differ by less than this have no order worth a correlation.
const SPREAD: f64 = 1.03;

/// The geometric mean; 1 of nothing.
pub fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let logs: Vec<f64> = values.map(f64::ln).collect();
    (logs.iter().sum::<f64>() / logs.len().max(1) as f64).exp()
}

/// Spearman's correlation of measured and predicted times; none where there are too few, or they are all alike.
pub fn correlation(times: &[f64], predicted: &[f64]) -> Option<f64> {
    let least = times.iter().copied().fold(f64::INFINITY, f64::min);
    let most = times.iter().copied().fold(0.0, f64::max);
    if times.len() < 4 || most < SPREAD * least {
        return None;
    }
    let (a, b) = (ranks(times), ranks(predicted));
    let mean = (times.len() as f64 - 1.0) / 2.0;
    let product = |a: &[f64], b: &[f64]| -> f64 {
        a.iter().zip(b).map(|(a, b)| (a - mean) * (b - mean)).sum()
    };
    let both = (product(&a, &a) * product(&b, &b)).sqrt();
    (both > 0.0).then(|| product(&a, &b) / both)
}

/// Ranks from 0, equals share theirs.
fn ranks(values: &[f64]) -> Vec<f64> {
    let rank = |value: f64| {
        let below = values.iter().filter(|v| **v < value).count();
        let same = values.iter().filter(|v| **v == value).count();
        below as f64 + (same as f64 - 1.0) / 2.0
    };
    values.iter().map(|&value| rank(value)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_alike_or_opposite() {
        let times = [1.0, 2.0, 3.0, 4.0];
        assert_eq!(correlation(&times, &[10.0, 20.0, 30.0, 40.0]), Some(1.0));
        assert_eq!(correlation(&times, &[4.0, 3.0, 2.0, 1.0]), Some(-1.0));
        assert_eq!(correlation(&[1.0, 1.01, 1.02, 1.0], &times), None);
        assert_eq!(correlation(&times[..3], &times[..3]), None);
        assert_eq!(mean([0.5, 2.0].into_iter()), 1.0);
    }
}
