//! Divisions by constants, and the products that compilers write in their place.
//!
//! The quotient of numbers without signs is the upper part of a product (Granlund and Montgomery, PLDI 1994): with
//! `a = q·d + r`, `a·factor + plus` is `q·2^p + (q·(d·factor - 2^p) + r·factor + plus)`, so its bits from the p-th on are q
//! wherever what stands in brackets lies below 2^p and is not negative. It is linear in q and r, so that their ends decide.
//! Whoever multiplies says no divisor: the only two that can be meant are tried.
//!
//! How large `a` can be follows from what it is made of: special registers and parameters lie where the launch says.

use rustc_hash::FxHashMap;

use crate::semantics::Coordinate;
use crate::term::{Args, Head, Parts, Sym, Term, Terms, sign_extended, truncate};

/// Steps from a value to what it is made of.
const DEPTH: u32 = 24;

/// From the first to the last number.
type Range = (i128, i128);

/// What is known of values as numbers without signs.
#[derive(Debug, Default)]
pub(crate) struct Numbers {
    /// Where leaves lie, whatever way a thread came.
    bounds: FxHashMap<Term, Range>,
    /// What was computed as the 64 bits of `a·factor + plus`, with `a` of 32 bits.
    products: FxHashMap<Term, Product>,
    /// Where values of so many bits lie that are made of others.
    found: FxHashMap<(Term, u32), Range>,
}

#[derive(Clone, Copy, Debug)]
struct Product {
    a: Term,
    factor: u64,
    plus: u64,
}

impl Terms {
    /// Takes note of where a value lies, at every launch that is looked at.
    pub(crate) fn bound(&mut self, term: Term, low: u64, high: u64) {
        let known = self.numbers.bounds.entry(term);
        let known = known.or_insert((0, i128::from(u64::MAX)));
        *known = (known.0.max(low.into()), known.1.min(high.into()));
    }

    /// Where a leaf lies, if a launch says so.
    pub(crate) fn stated(&self, term: Term) -> Option<Range> {
        self.numbers.bounds.get(&term).copied()
    }

    /// Takes note of how a value of 64 bits was computed: as `a·b + c`, with `a` and `b` of 32 bits and no sign. Not where
    /// it has its form by what is known to hold there: elsewhere it may be another value's.
    pub(crate) fn computed_by(&mut self, term: Term, [a, b]: [Term; 2], c: Option<Term>) {
        let facts = std::mem::take(&mut self.facts);
        let product = self.mul_wide(32, false, a, b);
        let anywhere = c.map_or(product, |c| self.add(64, product, c));
        self.facts = facts;
        if anywhere != term {
            return;
        }
        let (a, factor) = match (self.as_const(a), self.as_const(b)) {
            (None, Some(factor)) => (a, factor),
            (Some(factor), None) => (b, factor),
            _ => return,
        };
        let Some(plus) = c.map_or(Some(0), |c| self.as_const(c)) else {
            return;
        };
        let product = Product { a, factor, plus };
        self.numbers.products.insert(term, product);
    }

    /// A constant that `a` is divided by as if neither had a sign.
    pub(crate) fn divisor(&mut self, bits: u32, signed: bool, a: Term, b: Term) -> Option<u64> {
        let d = self.as_const(b).filter(|&d| d > 0)?;
        let positive = 1 << (bits - 1);
        let fits = !signed || (d < positive && self.extent(bits, a, DEPTH).1 < positive.into());
        fits.then_some(d)
    }

    /// a / d, of numbers of so many bits without signs.
    pub(crate) fn divide(&mut self, bits: u32, a: Term, d: u64) -> Term {
        let most = self.extent(bits, a, DEPTH).1;
        if d == 1 {
            return a;
        }
        if most < i128::from(d) {
            return self.zero();
        }
        if d.is_power_of_two() {
            return self.shift_right(bits, a, d.trailing_zeros().into());
        }
        if bits == 64 && most < 1 << 32 {
            let low = self.extract(0, 32, 64, a);
            let quotient = self.divide(32, low, d);
            return self.zero_extend(32, 64, quotient);
        }
        let op = self.sym(&format!("div.u{bits}"));
        let d = self.constant(d);
        self.make(Head::Op(op, 0), [a, d])
    }

    /// The remainder of a / d, of numbers of so many bits without signs.
    pub(crate) fn remainder(&mut self, bits: u32, a: Term, d: u64) -> Term {
        let is_whole = self.extent(bits, a, DEPTH).1 < i128::from(d);
        if d.is_power_of_two() && !is_whole {
            let mask = self.constant(d - 1);
            return self.logic(bits, 0b1000, &[a, mask]);
        }
        let quotient = self.divide(bits, a, d);
        let d = self.constant(d);
        let whole = self.mul(bits, quotient, d);
        self.sub(bits, a, whole)
    }

    /// The bits of a product of 64 bits from the `by`-th on, where they are a quotient.
    pub(crate) fn quotient(&mut self, product: Term, by: u64) -> Option<Term> {
        let &Product { a, factor, plus } = self.numbers.products.get(&product)?;
        if factor == 0 || by >= 64 {
            return None;
        }
        let scale = 1i128 << by;
        let most = self.extent(32, a, DEPTH).1;
        let near = scale / i128::from(factor);
        let mut divisors = [near, near + 1].into_iter().filter(|&d| d > 1);
        let d = divisors.find(|&d| is_quotient(most, d, [factor, plus].map(i128::from), scale))?;
        let quotient = self.divide(32, a, u64::try_from(d).ok()?);
        Some(self.zero_extend(32, 64, quotient))
    }

    /// The bits of a number from the `by`-th on, where it is a product of 64 bits, or the upper part of one, and they are a
    /// quotient.
    pub(crate) fn quotient_of_bits(&mut self, bits: u32, a: Term, by: u64) -> Option<Term> {
        if bits == 64 {
            return self.quotient(a, by);
        }
        let (Head::Extract { lo, bits: own, of }, &[product]) = (self.head(a), self.args(a)) else {
            return None;
        };
        let is_upper = own == bits && of == 64 && lo + own == of;
        let by = u64::from(lo).checked_add(by).filter(|_| is_upper)?;
        let quotient = self.quotient(product, by)?;
        Some(self.extract(0, bits, 64, quotient))
    }

    /// A constant above zero, as a number with a sign.
    pub(crate) fn positive(&self, bits: u32, x: Term) -> Option<u64> {
        let value = self.as_const(x)?;
        (value > 0 && value < 1 << (bits - 1)).then_some(value)
    }

    /// a / d of numbers with signs, towards zero. By a power of two: a negative number is rounded down once `d - 1` is added.
    pub(crate) fn divide_signed(&mut self, bits: u32, a: Term, d: u64) -> Term {
        if d == 1 {
            return a;
        }
        if !d.is_power_of_two() {
            let op = self.sym(&format!("div.s{bits}"));
            let d = self.constant(d);
            return self.make(Head::Op(op, 0), [a, d]);
        }
        let by = d.trailing_zeros();
        let signs = self.field(bits, true, a, bits - 1, bits);
        let more = self.shift_right(bits, signs, u64::from(bits - by));
        let sum = self.add(bits, a, more);
        self.field(bits, true, sum, by, bits)
    }

    /// Puts quotients of numbers with signs into a sum, where it has the upper part of a product and, as often, its sign.
    pub(crate) fn with_quotients(&mut self, bits: u32, parts: &mut Parts) {
        if bits != 32 {
            return;
        }
        for at in 0..parts.len() {
            let (sign, factor) = parts[at];
            let Some((of, y)) = self.sign_of(sign) else {
                continue;
            };
            let mut found = None;
            for (place, &(upper, times)) in parts.iter().enumerate() {
                if place != at && times == factor && found.is_none() {
                    let quotient = self.signed_quotient(upper, of, y);
                    found = quotient.map(|quotient| (place, quotient));
                }
            }
            if let Some((place, quotient)) = found {
                parts[at].1 = 0;
                parts[place].1 = 0;
                match parts.iter_mut().find(|part| part.0 == quotient) {
                    Some(known) => known.1 = known.1.wrapping_add(factor),
                    None => parts[place] = (quotient, factor),
                }
            }
        }
    }

    /// A number and its bits, of its highest bit in a word.
    fn sign_of(&self, x: Term) -> Option<(u32, Term)> {
        let (Head::ZeroExtend(1, 32), &[bit]) = (self.head(x), self.args(x)) else {
            return None;
        };
        let (Head::Extract { lo, bits: 1, of }, &[y]) = (self.head(bit), self.args(bit)) else {
            return None;
        };
        (lo + 1 == of).then_some((of, y))
    }

    /// a / d, if `upper` is `a·factor / 2^p` rounded down, `y` of `of` bits being the product or its high half: with one more
    /// for a negative `a` it is that.
    fn signed_quotient(&mut self, upper: Term, of: u32, y: Term) -> Option<Term> {
        let (from, part) = match (self.head(upper), self.args(upper)) {
            (Head::SignExtend(from, 32), &[part]) => (from, part),
            _ => (32, upper),
        };
        let is_upper = match (self.head(part), self.args(part)) {
            (Head::Extract { lo, bits, of: all }, &[whole]) => {
                (whole, all, lo + bits, bits) == (y, of, of, from)
            }
            _ => false,
        };
        let (a, factor) = self.high_product(of, y).filter(|_| is_upper)?;
        let d = signed_divisor(factor, 64 - from)?;
        let by = self.constant(d);
        Some(match self.divisor(32, true, a, by) {
            Some(d) => self.divide(32, a, d),
            None => self.divide_signed(32, a, d),
        })
    }

    /// `a` of 32 bits with a sign and a factor, of a product of 64 bits, or of the high half of one to which `a` may be
    /// added once for a factor of 33 bits.
    fn high_product(&self, of: u32, y: Term) -> Option<(Term, i128)> {
        let product = |x: Term| {
            let (Head::Mul(64), &[a, factor]) = (self.head(x), self.args(x)) else {
                return None;
            };
            let (Head::SignExtend(32, 64) | Head::ZeroExtend(32, 64), &[number]) =
                (self.head(a), self.args(a))
            else {
                return None;
            };
            let is_signed = matches!(self.head(a), Head::SignExtend(..));
            let is_same = is_signed
                || self.is_never_negative(32, number)
                || self.is_positive_here(32, number);
            let factor = i128::from(self.as_const(factor)? as i64);
            is_same.then_some((number, factor))
        };
        if of == 64 {
            return product(y);
        }
        let (Head::Add(32), &[one, other]) = (self.head(y), self.args(y)) else {
            return None;
        };
        [(one, other), (other, one)]
            .into_iter()
            .find_map(|(high, added)| {
                let half = Head::Extract {
                    lo: 32,
                    bits: 32,
                    of: 64,
                };
                let (a, factor) = product(*self.args(high).first()?)?;
                (self.head(high) == half && a == added).then_some((a, factor + (1 << 32)))
            })
    }

    /// Where a number of so many bits lies.
    fn extent(&mut self, bits: u32, x: Term, depth: u32) -> Range {
        let all = (0, (1i128 << bits.min(100)) - 1);
        let (low, high) = self.numbers.bounds.get(&x).copied().unwrap_or(all);
        let (least, most) = match self.numbers.found.get(&(x, bits)) {
            Some(&found) => found,
            None => {
                let computed = depth
                    .checked_sub(1)
                    .and_then(|depth| self.computed(bits, x, depth))
                    .filter(|&(low, high)| low >= 0 && low <= high && high <= all.1);
                let found = computed.unwrap_or(all);
                self.numbers.found.insert((x, bits), found);
                found
            }
        };
        (low.max(least), high.min(most).min(all.1))
    }

    /// What a number's parts say of it, if it did not wrap around.
    fn computed(&mut self, bits: u32, x: Term, depth: u32) -> Option<Range> {
        let (head, args) = (self.head(x), Args::from_slice(self.args(x)));
        Some(match (head, args.as_slice()) {
            (Head::Const(value), _) => (value.into(), value.into()),
            // Dimensions of a block multiply to 1,024 at most.
            (Head::Coordinate(Coordinate::Thread(_)), _) => (0, 1023),
            (Head::Coordinate(Coordinate::Block(_)), _) => (1, 1024),
            (Head::Add(width) | Head::Mul(width), _) if width == bits => {
                self.summed(bits, x, depth)?
            }
            (Head::ZeroExtend(from, _), &[y]) => self.extent(from, y, depth),
            (Head::SignExtend(from, _), &[y]) => {
                let y = self.extent(from, y, depth);
                Some(y).filter(|y| y.1 < 1 << (from - 1))?
            }
            (Head::Extract { lo, of, .. }, &[y]) => {
                let (low, high) = self.extent(of, y, depth);
                (low >> lo, high >> lo)
            }
            (Head::Select, &[_, a, b]) => {
                let [a, b] = [a, b].map(|y| self.extent(bits, y, depth));
                (a.0.min(b.0), a.1.max(b.1))
            }
            (Head::Op(op, 0), &[a, b]) => {
                let [a, b] = [a, b].map(|y| self.extent(bits, y, depth));
                let by = u32::try_from(b.0)
                    .ok()
                    .filter(|by| b.0 == b.1 && *by < bits);
                match (self.word(op, bits)?, by) {
                    ("and.b", _) => (0, a.1.min(b.1)),
                    ("div.u", _) if b.0 > 0 => (a.0 / b.1, a.1 / b.0),
                    ("shr.u", Some(by)) => (a.0 >> by, a.1 >> by),
                    _ => return None,
                }
            }
            _ => return None,
        })
    }

    /// An operation's word before the number of its bits.
    fn word(&self, op: Sym, bits: u32) -> Option<&str> {
        self.text(op).strip_suffix(&bits.to_string())
    }

    /// Where a sum or product lies before it wraps around.
    fn summed(&mut self, bits: u32, x: Term, depth: u32) -> Option<Range> {
        let (mut parts, mut constant) = (Parts::new(), 0u64);
        if !self.parts(bits, x, 1, &mut parts, &mut constant) {
            return None;
        }
        if parts.as_slice() == [(x, 1)] {
            let &[a, b] = self.args(x) else { return None };
            let [a, b] = [a, b].map(|y| self.extent(bits, y, depth));
            return Some((a.0.checked_mul(b.0)?, a.1.checked_mul(b.1)?));
        }
        let constant = i128::from(sign_extended(constant, bits));
        let mut pieces = self.remainders(bits, &mut parts);
        for (part, factor) in parts {
            let lies = self.extent(bits, part, depth);
            pieces.push((sign_extended(factor, bits).into(), lies));
        }
        let mut sum = (constant, constant);
        for (factor, (low, high)) in pieces {
            let ends = [factor.checked_mul(low)?, factor.checked_mul(high)?];
            sum.0 = ends[0].min(ends[1]).checked_add(sum.0)?;
            sum.1 = ends[0].max(ends[1]).checked_add(sum.1)?;
        }
        Some(sum)
    }

    /// Takes the remainders `a - (a / d)·d` out of a sum: how often each is in it, and where it lies.
    fn remainders(&self, bits: u32, sum: &mut Parts) -> Vec<(i128, Range)> {
        let mut found = Vec::new();
        // A remainder of a remainder was made later.
        sum.sort_unstable_by(|a, b| b.cmp(a));
        for at in 0..sum.len() {
            let (quotient, factor) = sum[at];
            let Some((a, d)) = self.quotient_parts(bits, quotient) else {
                continue;
            };
            // What is left of the quotient may be added by itself.
            let factor = i128::from(sign_extended(factor, bits));
            let times = (d - 1 - factor).div_euclid(d);
            let (mut parts, mut rest) = (Parts::new(), 0u64);
            let is_sum = times > 0 && self.parts(bits, a, times as u64, &mut parts, &mut rest);
            let is_there = |&(part, factor): &(Term, u64)| {
                let mut known = sum.iter();
                part != quotient
                    && known.any(|known| {
                        known.0 == part && truncate(known.1, bits) == truncate(factor, bits)
                    })
            };
            if !is_sum || rest != 0 || !parts.iter().all(is_there) {
                continue;
            }
            for known in sum.iter_mut() {
                if parts.iter().any(|part| part.0 == known.0) {
                    known.1 = 0;
                }
            }
            sum[at].1 = (factor + times * d) as u64;
            found.push((times, (0, d - 1)));
        }
        found
    }

    /// `a` and `d` of a quotient.
    fn quotient_parts(&self, bits: u32, x: Term) -> Option<(Term, i128)> {
        let (Head::Op(op, 0), &[a, d]) = (self.head(x), self.args(x)) else {
            return None;
        };
        let is_quotient = self.word(op, bits) == Some("div.u");
        let d = self.as_const(d).filter(|&d| d > 0 && is_quotient)?;
        Some((a, d.into()))
    }
}

/// Is `(a·factor + plus) / scale` the quotient a / d, for all numbers up to `most`?
fn is_quotient(most: i128, d: i128, [factor, plus]: [i128; 2], scale: i128) -> bool {
    if most * factor + plus >= 1 << 64 {
        return false;
    }
    let error = d * factor - scale;
    let (last, rest) = (most / d, most.min(d - 1));
    [(0, 0), (last, 0), (0, rest), (last, rest)]
        .into_iter()
        .all(|(q, r)| (0..scale).contains(&(q * error + r * factor + plus)))
}

/// What numbers of 32 bits with a sign are divided by, where `a·factor / 2^by` is rounded down and a negative `a` has one more.
///
/// With `a = q·d + r`, `error = d·factor - 2^by` and `q·error + r·factor` below 2^by it is q where `a` is not negative. Where
/// `-a = q·d + r` is positive, it is `-q - 1`, as what stands there is not 0.
fn signed_divisor(factor: i128, by: u32) -> Option<u64> {
    let scale = 1i128 << by;
    if !(1..1 << 32).contains(&factor) {
        return None;
    }
    let d = scale / factor + 1;
    let (error, last) = (d * factor - scale, (1i128 << 31) / d);
    let holds = d < 1 << 31 && last * error + (d - 1) * factor < scale;
    u64::try_from(d).ok().filter(|_| holds && error > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_are_quotients_where_all_numbers_say_so() {
        let mut found = 0;
        for bits in 1..10 {
            let most = (1i128 << bits) - 1;
            for d in 2..40 {
                for p in 0..12 {
                    let scale = 1i128 << p;
                    for factor in [scale / d, scale / d + 1] {
                        for plus in [0, factor] {
                            let holds = (0..=most).all(|a| (a * factor + plus) / scale == a / d);
                            let said = is_quotient(most, d, [factor, plus], scale);
                            assert!(!said || holds, "{most} {d} {factor} {plus} {scale}");
                            found += u32::from(said);
                        }
                    }
                }
            }
        }
        assert!(found > 500, "{found}");
    }

    #[test]
    fn products_with_signs_are_quotients_where_it_is_said() {
        let mut found = 0;
        for d in (2i128..300).chain([641, 1_000, 1_000_003, 0x7fff_fffe, 0x7fff_ffff]) {
            for by in 32..63 {
                for factor in [0, 1, 2, 33].map(|more| (1i128 << by) / d + more) {
                    let Some(said) = super::signed_divisor(factor, by).map(i128::from) else {
                        continue;
                    };
                    found += 1;
                    let last = (1i128 << 31) / said * said;
                    let near = [0, said, last, last / 2 / said * said, 1 << 31];
                    let near = near.into_iter().flat_map(|at| at - 2..=at + 2);
                    let all = near.flat_map(|a| [a, -a]);
                    for a in all.filter(|a| (-(1i128 << 31)..1 << 31).contains(a)) {
                        let is = ((a * factor) >> by) + i128::from(a < 0);
                        assert_eq!(is, a / said, "{a} / {said} by {factor}, {by}");
                    }
                }
            }
        }
        assert!(found > 500, "{found}");
    }

    #[test]
    fn remainders_are_less_than_what_divides() {
        let mut t = Terms::default();
        let x = t.unknown("x");
        let rest = t.remainder(32, x, 600);
        assert_eq!(t.extent(32, rest, DEPTH), (0, 599));
        let row = t.divide(32, rest, 24);
        let column = t.remainder(32, rest, 24);
        assert_eq!(t.extent(32, row, DEPTH), (0, 24));
        assert_eq!(t.extent(32, column, DEPTH), (0, 23));
        let seven = t.constant(7);
        let scaled = t.mul(32, column, seven);
        let sum = t.add(32, scaled, row);
        assert_eq!(t.extent(32, sum, DEPTH), (0, 23 * 7 + 24));
        let other = t.unknown("y");
        let mixed = t.sub(32, other, column);
        assert_eq!(t.extent(32, mixed, DEPTH).1, i128::from(u32::MAX));
    }
}
