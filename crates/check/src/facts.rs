//! What is known to hold at a point of both functions: conditions by which they came there, and what holds
//! in every round of a loop (`induction.rs`).

use smallvec::SmallVec;
use warpwright_target::WARP_SIZE;

use crate::semantics::Coordinate;
use crate::term::{Head, Term, Terms, sign_extended, truncate};

/// Facts that are kept at one point.
const MOST: usize = 48;

/// Steps from a value to what its bounds follow from.
pub(crate) const DEPTH: u32 = 4;

/// Predicates that are true.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Facts(SmallVec<[Term; 8]>);

/// The numbers from the first to the second one.
type Range = (i128, i128);

impl Facts {
    pub(crate) fn contains(&self, fact: Term) -> bool {
        self.0.contains(&fact)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = Term> + '_ {
        self.0.iter().copied()
    }

    /// Old ones give way to new ones.
    pub(crate) fn insert(&mut self, fact: Term) {
        if self.contains(fact) {
            return;
        }
        if self.0.len() == MOST {
            self.0.remove(0);
        }
        self.0.push(fact);
    }

    pub(crate) fn retain(&mut self, mut keep: impl FnMut(Term) -> bool) {
        self.0.retain(|fact| keep(*fact));
    }

    /// Is `x + by` the sum of the two numbers, `by` with its sign and `x` with or without one?
    pub(crate) fn never_wraps(
        &self,
        terms: &Terms,
        bits: u32,
        signed: bool,
        x: Term,
        by: u64,
    ) -> bool {
        if self.0.is_empty() {
            return false;
        }
        let (low, high) = self.range(terms, bits, signed, x, DEPTH);
        let (least, most) = all(bits, signed);
        let by = sign_extended(by, bits);
        let fits = low + i128::from(by) >= least && high + i128::from(by) <= most;
        fits || terms.is_whole(bits, signed, x, by)
    }

    /// Bounds of a value.
    pub(crate) fn range(
        &self,
        terms: &Terms,
        bits: u32,
        signed: bool,
        x: Term,
        depth: u32,
    ) -> Range {
        let own = self.bounds(terms, bits, signed, x, depth);
        let other = self.bounds(terms, bits, !signed, x, depth);
        // Where the sign bit is clear, both readings are one.
        let is_shared = other.0 >= 0 && other.1 <= all(bits, true).1;
        match is_shared {
            true => (own.0.max(other.0), own.1.min(other.1)),
            false => own,
        }
    }

    fn bounds(&self, terms: &Terms, bits: u32, signed: bool, x: Term, depth: u32) -> Range {
        let number = |term: Term| {
            terms
                .as_const(term)
                .map(|value| as_number(value, bits, signed))
        };
        if let Some(value) = number(x) {
            return (value, value);
        }
        let (least, most) = all(bits, signed);
        let (mut low, mut high) = (least, most);
        let mut others = SmallVec::<[i128; 4]>::new();
        match (terms.head(x), terms.args(x)) {
            (Head::Add(width), &[y, last])
                if width == bits && depth > 0 && terms.as_const(last).is_some() =>
            {
                if let Some(by) = terms.as_const(last) {
                    let by = i128::from(sign_extended(by, bits));
                    let (a, b) = self.range(terms, bits, signed, y, depth - 1);
                    if a + by >= least && b + by <= most {
                        (low, high) = (a + by, b + by);
                    }
                }
            }
            (Head::Add(width), &[y, z]) if width == bits && depth > 0 => {
                let [a, b] = [y, z].map(|part| self.range(terms, bits, signed, part, depth - 1));
                if a.0 + b.0 >= least && a.1 + b.1 <= most {
                    (low, high) = (a.0 + b.0, a.1 + b.1);
                }
            }
            (Head::Mul(width), &[y, last]) if width == bits && depth > 0 => {
                if let Some(by) = terms.as_const(last) {
                    let by = as_number(by, bits, signed);
                    let (a, b) = self.range(terms, bits, signed, y, depth - 1);
                    if by >= 0 && a >= 0 && b.checked_mul(by).is_some_and(|top| top <= most) {
                        (low, high) = (a * by, b * by);
                    }
                }
            }
            (Head::ZeroExtend(from, to), &[y]) if to == bits && from < to => {
                (low, high) = match depth {
                    0 => all(from, false),
                    _ => self.range(terms, from, false, y, depth - 1),
                };
            }
            (Head::Input(register), _) => {
                (low, high) = of_register(terms.text(register), (low, high))
            }
            // Dimensions of a block multiply to 1,024 at most.
            (Head::Coordinate(Coordinate::Thread(_)), _) if bits == 32 => (low, high) = (0, 1023),
            (Head::Coordinate(Coordinate::Block(_)), _) if bits == 32 => (low, high) = (1, 1024),
            _ => {}
        }
        // A launch states numbers without signs.
        if let Some((a, b)) = terms.stated(x)
            && b <= most
        {
            (low, high) = (low.max(a), high.min(b));
        }
        for fact in self.iter() {
            let (atom, holds) = match terms.head(fact) {
                Head::Not => (terms.args(fact)[0], false),
                _ => (fact, true),
            };
            match (terms.head(atom), terms.args(atom)) {
                (Head::Less(width, sign), &[a, b]) if width == bits && sign == signed => {
                    let (below, above) = if holds { (a, b) } else { (b, a) };
                    // Where it holds, they differ by one at least.
                    let apart = i128::from(holds);
                    if below == x {
                        high = high.min(number(above).unwrap_or(most) - apart);
                    } else if above == x {
                        low = low.max(number(below).unwrap_or(least) + apart);
                    }
                }
                (Head::Equal(width), &[a, b]) if width == bits && a == x => match number(b) {
                    Some(value) if holds => (low, high) = (low.max(value), high.min(value)),
                    Some(value) => others.push(value),
                    None => {}
                },
                _ => {}
            }
        }
        while others.contains(&low) {
            low += 1;
        }
        while others.contains(&high) {
            high -= 1;
        }
        (low, high)
    }
}

/// Bounds of a special register, by the text of its read: lanes of a warp, and grids, whose dimensions fit in 31 bits.
fn of_register(name: &str, otherwise: Range) -> Range {
    match name {
        "%laneid:32" => (0, i128::from(WARP_SIZE) - 1),
        "%ctaid.x:32" | "%ctaid.y:32" | "%ctaid.z:32" => (0, i128::from(i32::MAX) - 1),
        "%nctaid.x:32" | "%nctaid.y:32" | "%nctaid.z:32" => (1, i128::from(i32::MAX)),
        _ => otherwise,
    }
}

/// All numbers of so many bits.
fn all(bits: u32, signed: bool) -> Range {
    let size = 1i128 << bits;
    if signed {
        (-(size / 2), size / 2 - 1)
    } else {
        (0, size - 1)
    }
}

fn as_number(value: u64, bits: u32, signed: bool) -> i128 {
    if signed {
        sign_extended(value, bits).into()
    } else {
        truncate(value, bits).into()
    }
}

impl Terms {
    /// Is a number of so many bits, read with a sign, never negative, whatever is known of where it is made?
    pub(crate) fn is_never_negative(&self, bits: u32, x: Term) -> bool {
        bits <= 64 && Facts::default().range(self, bits, true, x, DEPTH).0 >= 0
    }

    /// Is a number of so many bits, read with a sign, not negative where the current facts hold?
    pub(crate) fn is_positive_here(&self, bits: u32, x: Term) -> bool {
        bits <= 64
            && self.facts.iter().next().is_some()
            && self.facts.range(self, bits, true, x, DEPTH).0 >= 0
    }

    /// Has a number of so many bits none of them set from the `low`-th on, whatever is known of where it is made?
    pub(crate) fn is_below(&self, bits: u32, x: Term, low: u32) -> bool {
        bits <= 64 && Facts::default().range(self, bits, false, x, DEPTH).1 <= all(low, false).1
    }

    /// Is a predicate true wherever the facts hold?
    pub(crate) fn proves(&mut self, goal: Term) -> bool {
        if self.as_const(goal) == Some(1) || self.facts.contains(goal) {
            return true;
        }
        let (atom, holds) = match self.head(goal) {
            Head::Not => (self.args(goal)[0], false),
            _ => (goal, true),
        };
        let quickly = match (self.head(atom), self.args(atom)) {
            (Head::Less(bits, signed), &[a, b]) => {
                let [a, b] = [a, b].map(|x| self.facts.range(self, bits, signed, x, DEPTH));
                if holds { a.1 < b.0 } else { a.0 >= b.1 }
            }
            // All its bits are known.
            (Head::Equal(bits), &[a, b]) if holds => {
                let low = self.congruence(a);
                low.bits >= bits && self.as_const(b) == Some(low.rest)
            }
            (Head::Equal(bits), &[a, b]) => {
                let [a, b] = [a, b].map(|x| self.facts.range(self, bits, false, x, DEPTH));
                a.1 < b.0 || b.1 < a.0
            }
            _ => false,
        };
        quickly || self.follows(atom, holds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_below_another_has_a_next_one() {
        let mut t = Terms::default();
        let (x, n, one) = (t.unknown("x"), t.unknown("n"), t.constant(1));
        let next = t.add(32, x, one);
        let wide = t.sign_extend(32, 64, x);
        let sum = t.add(64, wide, one);
        assert_ne!(t.sign_extend(32, 64, next), sum);
        let unsigned = t.less(32, false, x, n);
        t.facts.insert(unsigned);
        assert_ne!(t.sign_extend(32, 64, next), sum, "it may become negative");
        let less = t.less(32, true, x, n);
        t.facts.insert(less);
        assert_eq!(t.sign_extend(32, 64, next), sum);
        let two = t.constant(2);
        let second = t.add(32, x, two);
        let second = t.sign_extend(32, 64, second);
        let wide_second = t.add(64, wide, two);
        assert_ne!(second, wide_second, "only one is known to be there");
    }

    #[test]
    fn bounds_of_one_sign_hold_for_the_other_where_the_sign_bit_is_clear() {
        let mut t = Terms::default();
        let (x, eight) = (t.unknown("x"), t.constant(8));
        let less = t.less(32, false, x, eight);
        t.facts.insert(less);
        let minus = t.constant(0xffff_ffff);
        let goal = t.less(32, true, minus, x);
        assert!(t.proves(goal));
        let mut t = Terms::default();
        let (x, eight) = (t.unknown("x"), t.constant(8));
        let less = t.less(32, true, x, eight);
        t.facts.insert(less);
        let goal = t.less(32, false, x, eight);
        assert!(!t.proves(goal), "it may be negative");
    }

    #[test]
    fn what_is_far_enough_apart_does_not_meet() {
        let mut t = Terms::default();
        let (i, n, three) = (t.unknown("i"), t.unknown("n"), t.constant(3));
        let distance = t.sub(32, n, i);
        let far = t.less(32, false, three, distance);
        let near = t.less(32, true, i, n);
        let goal = |t: &mut Terms, by| {
            let sum = t.add_const(32, i, by);
            let less = t.less(32, true, sum, n);
            let equal = t.equal(32, sum, n);
            (less, t.not(equal))
        };
        t.facts.insert(far);
        for (by, differs) in [(1, true), (3, true), (4, false), (-1, false), (0, true)] {
            let (less, other) = goal(&mut t, by);
            assert!(!t.proves(less), "which side it is on is not known");
            assert_eq!(t.proves(other), differs, "{by}");
        }
        t.facts.insert(near);
        for (by, holds) in [(1, true), (3, true), (4, false), (-1, false)] {
            let (less, _) = goal(&mut t, by);
            assert_eq!(t.proves(less), holds, "{by}");
        }
        let sum = t.add_const(32, i, 2);
        let unsigned = t.less(32, false, sum, n);
        assert!(
            !t.proves(unsigned),
            "the sides are those of numbers with sign"
        );
    }

    #[test]
    fn a_step_that_misses_the_end_goes_on() {
        let mut t = Terms::default();
        let (x, four, end) = (t.unknown("x"), t.constant(4), t.constant(1024));
        let next = t.add(32, x, four);
        let goal = t.less(32, true, next, end);
        let below = t.less(32, true, x, end);
        let equal = t.equal(32, next, end);
        let other = t.not(equal);
        t.facts.insert(below);
        t.facts.insert(other);
        assert!(!t.proves(goal), "it may step over the end");
        let low = t.extract(0, 2, 32, x);
        let zero = t.constant(0);
        let multiple = t.equal(2, low, zero);
        t.facts.insert(multiple);
        assert!(t.proves(goal));
    }
}
