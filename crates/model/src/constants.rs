//! What a version for a launch takes that stands beside the original, behind a branch at the entry.
//!
//! An ensemble of regression trees over the [`crate::features`] of the version alone, fitted by `lab/fits/fit/constants.py` to
//! generated kernels (`bench/unmeasured.py`). What the branch costs, and the registers of both versions, are in what it was fitted to.
//! Of kernels unlike all of these (larger ones, with slots or tensor operations) it says nothing.

use std::sync::OnceLock;

use serde::Deserialize;

use crate::features::{COUNT, named};
use crate::forest::Forest;

/// What the fit wrote.
const FITTED: &str = include_str!("constants.json");

/// Features that must lie in the range that was seen: trees say the same of all that lies beyond.
const RANGED: [&str; 5] = [
    "default_instructions",
    "default_local",
    "default_tensor",
    "local_loads",
    "registers",
];

/// A fitted ensemble.
#[derive(Debug, Clone, Deserialize)]
pub struct Constants {
    gain: Forest,
    low: Vec<f64>,
    high: Vec<f64>,
}

impl Constants {
    /// The one that ships.
    pub fn fitted() -> Option<&'static Constants> {
        static ONCE: OnceLock<Option<Constants>> = OnceLock::new();
        ONCE.get_or_init(|| Constants::parse(FITTED)).as_ref()
    }

    /// An ensemble as the fit writes it; none if it does not hold together.
    pub fn parse(text: &str) -> Option<Constants> {
        let found: Constants = serde_json::from_str(text).ok()?;
        let is_whole =
            found.gain.is_whole() && found.low.len() == COUNT && found.high.len() == COUNT;
        is_whole.then_some(found)
    }

    /// The expected time over the default's of both versions together, at the launch; `features` are those of the version
    /// alone.
    pub fn expected(&self, features: &[f64; COUNT]) -> Option<f64> {
        let is_seen = |name: &&str| {
            let of = |all: &[f64]| named(all, name);
            (of(&self.low)..=of(&self.high)).contains(&of(features))
        };
        RANGED
            .iter()
            .all(is_seen)
            .then(|| self.gain.value(features).exp())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The ensemble, and what the fit gave for some features.
    fn shipped() -> (&'static Constants, Vec<(Vec<f64>, f64)>) {
        #[derive(Deserialize)]
        struct Checks {
            checks: Vec<(Vec<f64>, f64)>,
        }
        let Checks { checks } = serde_json::from_str(FITTED).unwrap();
        (Constants::fitted().unwrap(), checks)
    }

    #[test]
    fn the_shipped_ensemble_holds_together_and_gives_what_the_fit_gave() {
        let (constants, checks) = shipped();
        assert!(checks.len() >= 5);
        for (features, expected) in checks {
            let found = constants.expected(&features.try_into().unwrap()).unwrap();
            assert!((found - expected).abs() < 1e-4, "{found} {expected}");
        }
    }

    #[test]
    fn kernels_unlike_those_that_were_seen_are_left_alone() {
        let (constants, checks) = shipped();
        let seen: [f64; COUNT] = checks[0].0.clone().try_into().unwrap();
        for name in RANGED {
            let mut features = seen;
            let at = crate::features::NAMES
                .iter()
                .position(|n| *n == name)
                .unwrap();
            features[at] = constants.high[at] + 1.0;
            assert_eq!(constants.expected(&features), None, "{name}");
        }
        assert!(constants.expected(&seen).is_some());
    }

    #[test]
    fn what_does_not_hold_together_is_no_ensemble() {
        assert!(Constants::parse("{}").is_none());
        assert!(
            Constants::parse(&FITTED.replacen("\"right\":[", "\"right\":[9999999", 1)).is_none()
        );
    }
}
