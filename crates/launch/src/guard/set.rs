//! Sets of numbers that a condition allows: a range, and multiples of a number in it.

/// The multiples of `step` from `low` to `high`, both of them multiples; never empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Set {
    low: u64,
    high: u64,
    step: u64,
}

impl Set {
    /// The multiples of `step` in a range; `None` if there are none. A step of 0 allows 0 alone.
    pub fn new(low: u64, high: u64, step: u64) -> Option<Set> {
        if step == 0 {
            return (low == 0).then_some(Set::only(0));
        }
        let first = low.checked_next_multiple_of(step)?;
        let last = high - high % step;
        let step = if first == last { 1 } else { step };
        (first <= last).then_some(Set {
            low: first,
            high: last,
            step,
        })
    }

    /// One number.
    pub fn only(value: u64) -> Set {
        Set {
            low: value,
            high: value,
            step: 1,
        }
    }

    /// The least number.
    pub fn low(self) -> u64 {
        self.low
    }

    /// The largest number.
    pub fn high(self) -> u64 {
        self.high
    }

    /// All numbers are multiples of it.
    pub fn step(self) -> u64 {
        self.step
    }

    /// The number, if there is one alone.
    pub fn value(self) -> Option<u64> {
        (self.low == self.high).then_some(self.low)
    }

    /// Is the number in it?
    pub fn has(self, value: u64) -> bool {
        (self.low..=self.high).contains(&value) && value.is_multiple_of(self.step)
    }

    /// A number that divides all its numbers.
    pub(super) fn divisor(self) -> u64 {
        self.value().unwrap_or(self.step)
    }

    /// What is in both.
    pub fn and(self, other: Set) -> Option<Set> {
        let (low, high) = (self.low.max(other.low), self.high.min(other.high));
        let Some(step) = lcm(self.step, other.step) else {
            // The only multiple of both that is a number at all.
            return (low == 0).then_some(Set::only(0));
        };
        Set::new(low, high, step)
    }

    /// Is all of it in the other?
    pub fn is_in(self, other: Set) -> bool {
        other.low <= self.low
            && self.high <= other.high
            && self.divisor().is_multiple_of(other.step)
    }

    /// What it says beyond `known`, within `natural`; `None` where that is nothing.
    pub(super) fn beyond(self, known: Set, natural: Set) -> Option<Set> {
        if known.is_in(self) {
            return None;
        }
        if self.value().is_some() {
            return Some(self);
        }
        let low = if known.low >= self.low {
            natural.low
        } else {
            self.low
        };
        let high = if known.high <= self.high {
            natural.high
        } else {
            self.high
        };
        let is_multiple = known.divisor().is_multiple_of(self.step);
        Set::new(low, high, if is_multiple { 1 } else { self.step })
    }

    /// The number in it that is nearest to `value`.
    pub(super) fn nearest(self, value: u64) -> u64 {
        let value = value.clamp(self.low, self.high);
        (value - value % self.step).max(self.low)
    }
}

fn lcm(a: u64, b: u64) -> Option<u64> {
    (a / gcd(a, b)).checked_mul(b)
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_what_they_say() {
        let all = |set: Option<Set>| -> Vec<u64> {
            (0..100)
                .filter(|&n| set.is_some_and(|s| s.has(n)))
                .collect()
        };
        assert_eq!(all(Set::new(5, 20, 4)), [8, 12, 16, 20]);
        assert_eq!(Set::new(5, 7, 4), None);
        assert_eq!(Set::new(5, 8, 4), Some(Set::only(8)));
        let both = Set::new(0, 60, 4).and_then(|set| set.and(Set::new(10, 99, 6)?));
        assert_eq!(all(both), [12, 24, 36, 48, 60]);
        let far = Set::new(0, u64::MAX, 1 << 63).unwrap();
        assert_eq!(
            far.and(Set::new(0, u64::MAX, 3).unwrap()),
            Some(Set::only(0))
        );
        assert!(Set::only(12).is_in(Set::new(0, 60, 4).unwrap()));
        assert!(Set::only(0).is_in(Set::new(0, 60, 4).unwrap()));
        assert!(!Set::only(13).is_in(Set::new(0, 60, 4).unwrap()));
        assert_eq!(Set::new(8, 20, 4).unwrap().nearest(15), 12);
        assert_eq!(Set::new(8, 20, 4).unwrap().nearest(1), 8);
    }
}
