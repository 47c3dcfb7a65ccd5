//! Values that are the same in another form.
//!
//! Most values have one form. Where a function of bits was taken apart for a mask, and its pieces were simplified each for
//! itself, nothing joins them again: so two values that are compared are, where their forms differ, cut at the same places.
//! Each step is an identity of bits, whatever holds at a node.

use rustc_hash::FxHashMap;

use crate::term::{Args, Head, Term, Terms};

/// Pairs that are looked at before two values are taken to differ.
const MOST_PAIRS: usize = 4096;

/// Steps from a value to what it is made of.
const DEPTH: u32 = 512;

/// What has been found out, by pair.
type Known = FxHashMap<[Term; 2], bool>;

impl Terms {
    /// Are two values of the same type, or two memories, the same? If not, they may be so all the same.
    pub(crate) fn are_alike(&mut self, a: Term, b: Term) -> bool {
        if a == b {
            return true;
        }
        // What is found must not depend on where one looks.
        let facts = std::mem::take(&mut self.facts);
        let found = self.alike([a, b], DEPTH, &mut Known::default());
        self.facts = facts;
        found
    }

    fn alike(&mut self, pair: [Term; 2], depth: u32, known: &mut Known) -> bool {
        if pair[0] == pair[1] {
            return true;
        }
        if let Some(&found) = known.get(&pair) {
            return found;
        }
        if depth == 0 || known.len() >= MOST_PAIRS {
            return false;
        }
        known.insert(pair, false);
        let found =
            self.made_alike(pair, depth - 1, known) || self.cut_alike(pair, depth - 1, known);
        known.insert(pair, found);
        found
    }

    /// The same operation on the same operands.
    fn made_alike(&mut self, [a, b]: [Term; 2], depth: u32, known: &mut Known) -> bool {
        if self.head(a) != self.head(b) {
            return false;
        }
        let [left, right] = [a, b].map(|term| Args::from_slice(self.args(term)));
        if left.is_empty() || left.len() != right.len() {
            return false;
        }
        let pairs = left.iter().zip(&right);
        let mut pairs = pairs.map(|(&a, &b)| [a, b]);
        if pairs.all(|pair| self.alike(pair, depth, known)) {
            return true;
        }
        match (self.head(a), &left[..], &right[..]) {
            // In the order of their numbers, which forms change.
            (Head::Add(_) | Head::Mul(_) | Head::Equal(_), &[a, b], &[c, d]) => {
                self.alike([a, d], depth, known) && self.alike([b, c], depth, known)
            }
            _ => false,
        }
    }

    /// The same pieces.
    fn cut_alike(&mut self, [a, b]: [Term; 2], depth: u32, known: &mut Known) -> bool {
        let widths = [a, b].map(|term| self.width(term));
        let [Some(bits), Some(other)] = widths else {
            return false;
        };
        if bits != other {
            return false;
        }
        if let Some(pair) = self.narrowed([a, b]) {
            return self.alike(pair, depth, known);
        }
        let cuts = self.cuts(bits, [a, b]);
        let mut from = 0;
        cuts.len() > 1
            && cuts.into_iter().all(|to| {
                let pair = [a, b].map(|term| self.cut(from, to - from, bits, term));
                from = to;
                self.alike(pair, depth, known)
            })
    }

    /// Of the same bits of a value and of its low part, the low parts.
    fn narrowed(&mut self, [a, b]: [Term; 2]) -> Option<[Term; 2]> {
        let (
            Head::Extract { lo, of, .. },
            Head::Extract {
                lo: other,
                of: wide,
                ..
            },
        ) = (self.head(a), self.head(b))
        else {
            return None;
        };
        let least = of.min(wide);
        let [x, y] = [a, b].map(|term| self.args(term)[0]);
        (lo == other && of != wide).then(|| {
            [
                self.extract(0, least, of, x),
                self.extract(0, least, wide, y),
            ]
        })
    }

    /// The bits of a value that shows them.
    fn width(&self, term: Term) -> Option<u32> {
        match self.head(term) {
            Head::ZeroExtend(_, bits)
            | Head::SignExtend(_, bits)
            | Head::Logic { bits, .. }
            | Head::Extract { bits, .. }
            | Head::Add(bits)
            | Head::Mul(bits) => Some(bits),
            Head::Concat => {
                let parts = self.args(term).chunks_exact(2);
                let bits = parts.map(|part| self.as_const(part[1]));
                bits.sum::<Option<u64>>()?.try_into().ok()
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const XOR: u64 = 0b0110;

    #[test]
    fn pieces_that_were_simplified_are_those_of_the_whole() {
        let mut t = Terms::default();
        let (x, y, one, three) = (t.unknown("x"), t.unknown("y"), t.constant(1), t.constant(3));
        // Their lowest bits are the same, so that it is zero in their difference.
        let [a, b] = [one, three].map(|number| {
            let doubled = t.mul(32, y, number);
            let sum = t.add(32, x, doubled);
            t.add(32, sum, number)
        });
        let whole = t.logic(32, XOR, &[a, b]);
        let once = t.logic(32, XOR, &[whole, one]);
        let twice = t.logic(32, XOR, &[once, one]);
        assert_ne!(whole, twice, "there is one form, and no need of this");
        assert!(t.are_alike(whole, twice));
        assert!(!t.are_alike(whole, once));
        // Within what nobody looks into.
        let op = t.sym("op");
        let [of_whole, of_twice, of_once] =
            [whole, twice, once].map(|term| t.make(Head::Op(op, 0), [x, term]));
        assert!(t.are_alike(of_whole, of_twice));
        assert!(!t.are_alike(of_whole, of_once));
        assert!(!t.are_alike(x, whole));
    }
}
