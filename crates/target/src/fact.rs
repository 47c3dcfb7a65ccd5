//! A number with its source and how sure it is.

use std::fmt;

use serde::Serialize;

/// How sure a figure is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Confidence {
    /// Taken over from a similar part or derived from other figures; the source says how.
    Estimated,
    /// Measured by somebody, on hardware; the source says by whom and on what.
    Measured,
    /// Stated by the vendor.
    Documented,
}

impl fmt::Display for Confidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Estimated => "estimated",
            Self::Measured => "measured",
            Self::Documented => "documented",
        })
    }
}

/// One figure of a table. The unit stands with the field that holds the fact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Fact<T> {
    /// The figure.
    pub value: T,
    /// How sure it is.
    pub confidence: Confidence,
    /// Where it comes from, or what an estimate rests on.
    pub source: &'static str,
}

/// The source of a group of figures that come from one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Provenance {
    /// How sure the figures are.
    pub confidence: Confidence,
    /// Where they come from.
    pub source: &'static str,
}

/// A figure that the vendor states.
pub(crate) const fn documented(value: u32, source: &'static str) -> Option<Fact<u32>> {
    Some(Fact {
        value,
        confidence: Confidence::Documented,
        source,
    })
}

/// A figure that was measured.
pub(crate) const fn measured(value: u32, source: &'static str) -> Option<Fact<u32>> {
    Some(Fact {
        value,
        confidence: Confidence::Measured,
        source,
    })
}

/// A figure that is taken over or derived; `basis` says from what.
pub(crate) const fn estimated(value: u32, basis: &'static str) -> Option<Fact<u32>> {
    Some(Fact {
        value,
        confidence: Confidence::Estimated,
        source: basis,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn confidence_is_ordered_from_doubtful_to_sure() {
        assert!(Confidence::Estimated < Confidence::Measured);
        assert!(Confidence::Measured < Confidence::Documented);
        assert_eq!(Confidence::Measured.to_string(), "measured");
    }
}
