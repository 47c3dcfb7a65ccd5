//! What numbers leave when they are divided by powers of two: so alignment of addresses shows.

use crate::induction::low_fact;
use crate::term::{Head, Term, Terms};

/// Bits that are looked at.
const BITS: u32 = 8;

/// Steps from a value to what it is made of.
const DEPTH: u32 = 12;

/// The low `bits` bits are those of `rest`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Congruence {
    pub(crate) bits: u32,
    pub(crate) rest: u64,
}

impl Congruence {
    fn new(bits: u32, rest: u64) -> Congruence {
        let bits = bits.min(BITS);
        Congruence {
            bits,
            rest: rest & ((1 << bits) - 1),
        }
    }

    fn zeros(self) -> u32 {
        self.rest.trailing_zeros().min(self.bits)
    }

    fn sum(self, other: Congruence) -> Congruence {
        Congruence::new(self.bits.min(other.bits), self.rest + other.rest)
    }

    fn product(self, other: Congruence) -> Congruence {
        let bits = (self.zeros() + other.bits).min(other.zeros() + self.bits);
        Congruence::new(bits, self.rest * other.rest)
    }

    fn join(self, other: Congruence) -> Congruence {
        let apart = (self.rest ^ other.rest).trailing_zeros();
        Congruence::new(self.bits.min(other.bits).min(apart), self.rest)
    }
}

impl Terms {
    /// Takes note that a value is a multiple of so many bytes, at every launch that is looked at.
    pub(crate) fn align(&mut self, term: Term, bytes: u64) {
        self.aligned.insert(term, bytes.trailing_zeros());
    }

    /// A power of two that divides a value, as far as can be seen.
    pub(crate) fn alignment(&self, term: Term) -> u64 {
        1 << self.congruence(term).zeros()
    }

    pub(crate) fn congruence(&self, term: Term) -> Congruence {
        self.congruent(term, DEPTH)
    }

    fn congruent(&self, term: Term, depth: u32) -> Congruence {
        let made = depth
            .checked_sub(1)
            .and_then(|depth| self.made_of(term, depth));
        let made = made.unwrap_or(Congruence::new(0, 0));
        let aligned = self.aligned.get(&term).copied().unwrap_or(0);
        let mut known = match aligned > made.bits {
            true => Congruence::new(aligned, 0),
            false => made,
        };
        for fact in self.facts.iter() {
            if let Some((bits, rest)) = low_fact(self, fact, term)
                && bits > known.bits
            {
                known = Congruence::new(bits, rest);
            }
        }
        known
    }

    fn made_of(&self, term: Term, depth: u32) -> Option<Congruence> {
        let of = |term| self.congruent(term, depth);
        let within = |of: Congruence, bits: u32| Congruence::new(of.bits.min(bits), of.rest);
        Some(match (self.head(term), self.args(term)) {
            (Head::Const(value), _) => Congruence::new(BITS, value),
            (Head::Add(bits), &[a, b]) => within(of(a).sum(of(b)), bits),
            (Head::Mul(bits), &[a, b]) => within(of(a).product(of(b)), bits),
            (Head::ZeroExtend(from, _) | Head::SignExtend(from, _), &[a]) => within(of(a), from),
            (Head::Extract { lo: 0, bits, .. }, &[a]) => within(of(a), bits),
            (Head::Select, &[_, a, b]) => of(a).join(of(b)),
            (Head::Concat, &[low, bits, ..]) => {
                within(of(low), u32::try_from(self.as_const(bits)?).ok()?)
            }
            (Head::Op(op, 0), &[a]) if self.text(op).starts_with("cvta.") => {
                // Global memory has the same addresses as generic memory.
                let is_global = self.text(op).split('.').any(|word| word == "global");
                Some(of(a)).filter(|_| is_global)?
            }
            (Head::Op(op, 0), &[a, mask]) if self.text(op).starts_with("and.b") => {
                let (a, mask) = (of(a), self.as_const(mask)?);
                let zeros = mask.trailing_zeros();
                match zeros > a.bits {
                    true => Congruence::new(zeros, 0),
                    false => Congruence::new(a.bits, a.rest & mask),
                }
            }
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_and_products_keep_low_bits() {
        for (bits, other_bits) in [(0, 3), (2, 2), (3, 1), (4, 4)] {
            for x in 0..64u64 {
                for y in 0..64u64 {
                    let (a, b) = (Congruence::new(bits, x), Congruence::new(other_bits, y));
                    let holds =
                        |of: Congruence, value: u64| value & ((1 << of.bits) - 1) == of.rest;
                    assert!(holds(a.sum(b), x + y) && holds(a.product(b), x * y));
                    assert!(holds(a.join(b), x) && holds(a.join(b), y));
                }
            }
        }
    }

    #[test]
    fn an_address_is_as_aligned_as_its_parts() {
        let mut t = Terms::default();
        let (base, i, sixteen) = (t.unknown("base"), t.unknown("i"), t.constant(16));
        let row = t.mul(64, i, sixteen);
        let address = t.add(64, base, row);
        let eight = t.add_const(64, address, 8);
        assert_eq!(t.alignment(address), 1);
        t.align(base, 16);
        assert_eq!((t.alignment(address), t.alignment(eight)), (16, 8));
        assert_eq!(t.alignment(row), 16);
    }
}
