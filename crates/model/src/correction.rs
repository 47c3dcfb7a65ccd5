//! The learned correction: how long a build takes beside the default build, and how likely it is slower.
//!
//! Two ensembles of regression trees over [`crate::features`], fitted by `lab/fits/fit/fit.py` to measured builds
//! (docs/model.md): one gives the expected logarithm of the time over the default's, the other the odds that the build
//! is slower by more than 2%, which a logistic curve makes a probability. The curve and the thresholds come from
//! programs that neither ensemble has seen. Outside the range of what was fitted nothing is promised.

use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

use crate::features::COUNT;
use crate::forest::Forest;

/// What the fit wrote.
const FITTED: &str = include_str!("correction.json");

/// A fitted correction.
#[derive(Debug, Clone, Deserialize)]
pub struct Correction {
    gain: Forest,
    loss: Forest,
    /// Slope and offset of the logistic curve.
    curve: [f64; 2],
    /// Least and largest values of the features that were seen.
    low: Vec<f64>,
    high: Vec<f64>,
    /// How likely it may be slower by more than 2%.
    risk: f64,
}

/// What is expected of a build.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Judgement {
    /// Expected time over the default's.
    pub expected: f32,
    /// Probability, 0 to 1, that the build is slower than the default by more than 2%.
    pub risk: f32,
    /// Are all features within what the fit has seen?
    pub is_known: bool,
    /// Is the risk small enough to give up the default, and the build of a kind that is known?
    pub is_safe: bool,
}

impl Correction {
    /// The one that ships.
    pub fn fitted() -> Option<&'static Correction> {
        static ONCE: OnceLock<Option<Correction>> = OnceLock::new();
        ONCE.get_or_init(|| Correction::parse(FITTED)).as_ref()
    }

    /// A correction as the fit writes it; none if it does not hold together.
    pub fn parse(text: &str) -> Option<Correction> {
        let found: Correction = serde_json::from_str(text).ok()?;
        let whole = found.gain.is_whole()
            && found.loss.is_whole()
            && found.low.len() == COUNT
            && found.high.len() == COUNT;
        whole.then_some(found)
    }

    /// What is expected of a build with these features.
    pub fn judge(&self, features: &[f64; COUNT]) -> Judgement {
        let expected = self.gain.value(features).exp();
        let odds = self.curve[0] * self.loss.value(features) + self.curve[1];
        let risk = 1.0 / (1.0 + (-odds).exp());
        let ranges = self.low.iter().zip(&self.high);
        let is_known = features
            .iter()
            .zip(ranges)
            .all(|(f, (low, high))| low <= f && f <= high);
        Judgement {
            expected: expected as f32,
            risk: risk as f32,
            is_known,
            is_safe: is_known && risk < self.risk,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One tree each: below 0.5 in the first feature a gain of a tenth, above it a certain loss.
    fn small() -> String {
        let tree = |base: f64, below: f64, above: f64| {
            format!(
                r#"{{"base":{base},"starts":[0],"feature":[0,-1,-1],"at":[0.5,{below},{above}],"right":[2,0,0]}}"#
            )
        };
        let range = |value: f64| serde_json::to_string(&vec![value; COUNT]).unwrap();
        format!(
            r#"{{"gain":{},"loss":{},"curve":[1,0],"low":{},"high":{},"risk":0.05}}"#,
            tree(0.0, -0.1, 0.2),
            tree(-1.0, -4.0, 6.0),
            range(-1.0),
            range(2.0),
        )
    }

    #[test]
    fn a_gain_without_risk_is_worth_it() {
        let correction = Correction::parse(&small()).unwrap();
        let good = correction.judge(&[0.0; COUNT]);
        assert!((good.expected - 0.9048).abs() < 1e-3 && good.risk < 0.01 && good.is_safe);
        let bad = correction.judge(&[1.0; COUNT]);
        assert!(bad.expected > 1.2 && bad.risk > 0.99 && bad.is_known && !bad.is_safe);
    }

    #[test]
    fn nothing_is_promised_outside_the_range() {
        let correction = Correction::parse(&small()).unwrap();
        let mut features = [0.0; COUNT];
        features[COUNT - 1] = 2.1;
        let outside = correction.judge(&features);
        assert!(!outside.is_known && !outside.is_safe);
    }

    #[test]
    fn what_does_not_hold_together_is_no_correction() {
        assert!(Correction::parse("{}").is_none());
        let endless = small().replacen("[2,0,0]", "[0,0,0]", 1);
        assert!(Correction::parse(&endless).is_none());
        let short = small().replacen("[0.5,", "[", 1);
        assert!(Correction::parse(&short).is_none());
    }

    #[test]
    fn the_shipped_correction_holds_together_and_gives_what_the_fit_gave() {
        #[derive(Deserialize)]
        struct Checks {
            checks: Vec<(Vec<f64>, f64, f64)>,
        }
        let correction = Correction::fitted().unwrap();
        let Checks { checks } = serde_json::from_str(FITTED).unwrap();
        assert!(checks.len() >= 5);
        for (features, expected, risk) in checks {
            let found = correction.judge(&features.try_into().unwrap());
            assert!(
                (f64::from(found.expected) - expected).abs() < 1e-4,
                "{found:?} {expected}"
            );
            assert!(
                (f64::from(found.risk) - risk).abs() < 1e-4,
                "{found:?} {risk}"
            );
        }
    }
}
