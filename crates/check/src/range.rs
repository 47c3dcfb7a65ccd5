//! Ranges of numbers without signs: what is known of a value whatever way a thread came.

use crate::term::truncate;

/// The numbers from the first to the last one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    pub(crate) low: u64,
    pub(crate) high: u64,
}

impl Range {
    /// Nothing is known, of a value of any width.
    pub(crate) const ANY: Range = Range {
        low: 0,
        high: u64::MAX,
    };

    pub(crate) fn new(low: u64, high: u64) -> Range {
        Range { low, high }
    }

    pub(crate) fn only(value: u64) -> Range {
        Range::new(value, value)
    }

    /// All numbers of so many bits.
    pub(crate) fn all(bits: u32) -> Range {
        Range::new(0, truncate(u64::MAX, bits))
    }

    /// What is known of a value of so many bits.
    pub(crate) fn of_width(self, bits: u32) -> Range {
        match self.high > Range::all(bits).high {
            true => Range::all(bits),
            false => self,
        }
    }

    pub(crate) fn value(self) -> Option<u64> {
        (self.low == self.high).then_some(self.low)
    }

    /// Is it true or false, as a predicate?
    pub(crate) fn truth(self) -> Option<bool> {
        self.value().map(|value| value & 1 == 1)
    }

    /// All that is in either.
    pub(crate) fn join(self, other: Range) -> Range {
        Range::new(self.low.min(other.low), self.high.max(other.high))
    }

    /// The same, with bounds that moved away at once.
    pub(crate) fn widen(self, other: Range) -> Range {
        let low = if other.low < self.low { 0 } else { self.low };
        let high = if other.high > self.high {
            u64::MAX
        } else {
            self.high
        };
        Range { low, high }
    }

    /// Is the sign bit clear in all of them?
    pub(crate) fn is_positive(self, bits: u32) -> bool {
        self.high <= Range::all(bits).high >> 1
    }

    /// As numbers with signs, if they are in that order too.
    fn signed(self, bits: u32) -> (i128, i128) {
        let half = 1i128 << (bits - 1);
        let (low, high) = (i128::from(self.low), i128::from(self.high));
        match (low >= half, high >= half) {
            (false, true) => (-half, half - 1),
            (is_negative, _) => {
                let by = if is_negative { 2 * half } else { 0 };
                (low - by, high - by)
            }
        }
    }

    /// In the order of numbers with or without signs.
    pub(crate) fn ordered(self, bits: u32, signed: bool) -> (i128, i128) {
        match signed {
            true => self.signed(bits),
            false => (self.low.into(), self.high.into()),
        }
    }

    /// Numbers modulo 2^bits, if all of them wrap around equally often.
    pub(crate) fn wrapped(low: i128, high: i128, bits: u32) -> Range {
        let turns = |n: i128| n >> bits;
        match turns(low) == turns(high) {
            true => {
                let base = turns(low) << bits;
                Range::new((low - base) as u64, (high - base) as u64)
            }
            false => Range::all(bits),
        }
    }
}
