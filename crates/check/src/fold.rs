//! Integer operations on constants and on ranges, exactly as the PTX ISA defines them (version 9.0, sections 9.7.1,
//! 'Integer Arithmetic Instructions', and 9.7.8, 'Logic and Shift Instructions'). What the ISA leaves open (division by
//! zero, the absolute value of the least number) has no value here. Floating-point operations are no part of it.

use crate::range::Range;
use crate::term::{sign_extended, truncate};

/// What an instruction computes, as a function of integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IntOp {
    /// a
    Move,
    /// a + b
    Add,
    /// a - b
    Sub,
    /// The low half of a · b.
    Mul,
    /// The high half of a · b.
    MulHigh,
    /// a · b at twice the width.
    MulWide,
    /// The low half of a · b, + c.
    MulAdd,
    /// The high half of a · b, + c.
    MulAddHigh,
    /// a · b at twice the width, + c.
    MulAddWide,
    /// a / b, towards zero.
    Divide,
    /// The remainder of that.
    Remainder,
    /// 0 - a
    Negate,
    /// |a|
    Abs,
    /// The lesser.
    Min,
    /// The larger.
    Max,
    /// Bit by bit.
    And,
    /// Bit by bit.
    Or,
    /// Bit by bit.
    Xor,
    /// Bit by bit.
    Not,
    /// 1 if a is zero, else 0.
    IsZero,
    /// a · 2^b, 0 from b = bits on.
    ShiftLeft,
    /// a / 2^b, rounded down; with the sign or zeros coming in.
    ShiftRight,
    /// Bits that are set.
    CountOnes,
    /// Zeros above the highest bit that is set.
    LeadingZeros,
    /// Bits in the other order.
    Reverse,
    /// c bits of a from b on.
    ExtractField,
    /// a in place of d bits of b from c on.
    InsertField,
    /// Bytes of a and b as c says.
    Permute,
    /// The upper (left) or lower half of b and a, shifted by c.
    Funnel {
        /// Left, and the upper half.
        left: bool,
        /// More than the width is the width; else it wraps around.
        clamp: bool,
    },
    /// Bit by bit, by the table d.
    Lookup,
    /// To a number of so many bits.
    Convert(u32),
    /// a if c, else b.
    Select,
    /// Is it so?
    Compare(Comparison),
    /// Is it so, and c?
    CompareAnd(Comparison),
    /// Is it so, or c?
    CompareOr(Comparison),
}

/// A comparison of integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Comparison {
    Equal,
    Differ,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
}

/// An operation on integers of so many bits, with signs or without.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fold {
    /// The operation.
    pub op: IntOp,
    /// Bits of its operands; 1 for predicates.
    pub bits: u32,
    /// Have they signs?
    pub signed: bool,
}

impl Fold {
    /// Bits of the result.
    fn result_bits(self) -> u32 {
        match self.op {
            IntOp::MulWide | IntOp::MulAddWide => 2 * self.bits,
            IntOp::CountOnes | IntOp::LeadingZeros => 32,
            IntOp::Convert(to) => to,
            IntOp::Compare(_) | IntOp::CompareAnd(_) | IntOp::CompareOr(_) => 1,
            _ => self.bits,
        }
    }

    /// Its first result for constants; `None` where that is not known.
    pub(crate) fn value(self, args: &[u64]) -> Option<u64> {
        let bits = self.bits;
        let wide = |n: usize| -> Option<i128> {
            let value = *args.get(n)?;
            Some(match self.signed {
                true => sign_extended(value, bits).into(),
                false => truncate(value, bits).into(),
            })
        };
        let word = |n: usize| args.get(n).map(|&value| truncate(value, bits));
        let amount = |n: usize| args.get(n).map(|&value| truncate(value, 32));
        let result = match self.op {
            IntOp::Move => wide(0)?,
            IntOp::Add => wide(0)? + wide(1)?,
            IntOp::Sub => wide(0)? - wide(1)?,
            IntOp::Mul | IntOp::MulWide => wide(0)?.wrapping_mul(wide(1)?),
            IntOp::MulHigh => self.product(wide(0)?, wide(1)?),
            IntOp::MulAdd => wide(0)?.wrapping_mul(wide(1)?).wrapping_add(wide(2)?),
            IntOp::MulAddHigh => self.product(wide(0)?, wide(1)?) + wide(2)?,
            IntOp::MulAddWide => {
                let third = truncate(*args.get(2)?, 2 * bits);
                (wide(0)? * wide(1)?).wrapping_add(third.into())
            }
            IntOp::Divide => self.quotient(wide(0)?, wide(1)?)?.0,
            IntOp::Remainder => self.quotient(wide(0)?, wide(1)?)?.1,
            IntOp::Negate => -wide(0)?,
            IntOp::Abs => Some(wide(0)?.abs()).filter(|&n| n < 1 << (bits - 1))?,
            IntOp::Min => wide(0)?.min(wide(1)?),
            IntOp::Max => wide(0)?.max(wide(1)?),
            IntOp::And => (word(0)? & word(1)?).into(),
            IntOp::Or => (word(0)? | word(1)?).into(),
            IntOp::Xor => (word(0)? ^ word(1)?).into(),
            IntOp::Not => (!word(0)?).into(),
            IntOp::IsZero => (word(0)? == 0).into(),
            IntOp::ShiftLeft => match amount(1)? {
                by if by >= bits.into() => 0,
                by => (word(0)? << by).into(),
            },
            IntOp::ShiftRight => wide(0)? >> amount(1)?.min(bits.into()),
            IntOp::CountOnes => word(0)?.count_ones().into(),
            IntOp::LeadingZeros => (word(0)?.leading_zeros() - (64 - bits)).into(),
            IntOp::Reverse => (word(0)?.reverse_bits() >> (64 - bits)).into(),
            IntOp::ExtractField => {
                let (from, len) = self.place(args.get(1..)?)?;
                self.extracted(word(0)?, from, len).into()
            }
            IntOp::InsertField => {
                let (from, len) = self.place(args.get(2..)?)?;
                self.inserted([word(0)?, word(1)?], from, len).into()
            }
            IntOp::Permute => permuted(word(0)? | word(1)? << 32, word(2)?).into(),
            IntOp::Funnel { left, clamp } => {
                let both = u128::from(word(1)?) << 32 | u128::from(word(0)?);
                let by = if clamp {
                    amount(2)?.min(32)
                } else {
                    amount(2)? & 31
                };
                (if left { both << by >> 32 } else { both >> by }) as i128
            }
            IntOp::Lookup => {
                let (words, table) = ([word(0)?, word(1)?, word(2)?], *args.get(3)?);
                looked_up(words, table).into()
            }
            IntOp::Convert(_) => wide(0)?,
            IntOp::Select => match args.get(2)? & 1 {
                1 => wide(0)?,
                _ => wide(1)?,
            },
            IntOp::Compare(by) => by.of(wide(0)?, wide(1)?).into(),
            IntOp::CompareAnd(by) => (by.of(wide(0)?, wide(1)?) && args.get(2)? & 1 == 1).into(),
            IntOp::CompareOr(by) => (by.of(wide(0)?, wide(1)?) || args.get(2)? & 1 == 1).into(),
        };
        Some(truncate(result as u64, self.result_bits()))
    }

    /// The high half of a product.
    fn product(self, a: i128, b: i128) -> i128 {
        match self.signed {
            true => (a * b) >> self.bits,
            false => ((a as u128).wrapping_mul(b as u128) >> self.bits) as i128,
        }
    }

    /// Quotient and remainder; none by zero, or where the quotient does not fit.
    fn quotient(self, a: i128, b: i128) -> Option<(i128, i128)> {
        let quotient = a.checked_div(b)?;
        let fits = !self.signed || quotient < 1 << (self.bits - 1);
        fits.then(|| (quotient, a - quotient * b))
    }

    fn place(self, args: &[u64]) -> Option<(u32, u32)> {
        field_place(self.bits, args.first().copied(), args.get(1).copied())
    }

    /// `bfe`
    fn extracted(self, a: u64, from: u32, len: u32) -> u64 {
        let top = self.bits - 1;
        let bit = |at: u32| at <= top && a >> at & 1 == 1;
        let sign = self.signed && len > 0 && bit((from + len - 1).min(top));
        let of = |i: u32| {
            if i < len && from + i <= top {
                bit(from + i)
            } else {
                sign
            }
        };
        (0..=top).fold(0, |all, i| all | u64::from(of(i)) << i)
    }

    /// `bfi`
    fn inserted(self, [field, into]: [u64; 2], from: u32, len: u32) -> u64 {
        let end = (from + len).min(self.bits);
        (from..end).fold(into, |all, at| {
            all & !(1 << at) | (field >> (at - from) & 1) << at
        })
    }

    /// What its first result can be.
    pub(crate) fn range(self, args: &[Range]) -> Range {
        let values: Option<Vec<u64>> = args.iter().map(|range| range.value()).collect();
        let exact = values.and_then(|values| self.value(&values));
        let range = exact.map(Range::only).or_else(|| self.bounds(args));
        range.unwrap_or(Range::all(self.result_bits()))
    }

    fn bounds(self, args: &[Range]) -> Option<Range> {
        let bits = self.bits;
        let arg = |n: usize| args.get(n).map(|range| range.of_width(bits));
        let positive = |n: usize| arg(n).filter(|a| !self.signed || a.is_positive(bits));
        let ordered = |n: usize| arg(n).map(|a| a.ordered(bits, self.signed));
        let scaled = |a: Range, b: Range| {
            [a.low, a.high]
                .map(i128::from)
                .into_iter()
                .zip([b.low, b.high].map(i128::from))
        };
        let wrap = |low: i128, high: i128| Range::wrapped(low, high, bits);
        Some(match self.op {
            IntOp::Move => arg(0)?,
            IntOp::Add => add(arg(0)?, arg(1)?, bits),
            IntOp::Sub => {
                let (a, b) = (arg(0)?, arg(1)?);
                let [low, high] =
                    [(a.low, b.high), (a.high, b.low)].map(|(a, b)| i128::from(a) - i128::from(b));
                wrap(low, high)
            }
            IntOp::Mul => mul(arg(0)?, arg(1)?, bits)?,
            IntOp::MulAdd => add(mul(arg(0)?, arg(1)?, bits)?, arg(2)?, bits),
            IntOp::MulWide => mul(positive(0)?, positive(1)?, 2 * bits)?,
            IntOp::MulAddWide => {
                let product = mul(positive(0)?, positive(1)?, 2 * bits)?;
                add(product, args.get(2)?.of_width(2 * bits), 2 * bits)
            }
            IntOp::MulHigh => {
                let mut ends = scaled(positive(0)?, positive(1)?);
                let mut end = || ends.next().map(|(a, b)| self.product(a, b) as u64);
                Range::new(end()?, end()?)
            }
            IntOp::Divide => {
                let (a, b) = (positive(0)?, positive(1).filter(|b| b.low > 0)?);
                Range::new(a.low / b.high, a.high / b.low)
            }
            IntOp::Remainder => {
                let (a, b) = (positive(0)?, positive(1).filter(|b| b.low > 0)?);
                if a.high < b.low {
                    a
                } else {
                    Range::new(0, a.high.min(b.high - 1))
                }
            }
            IntOp::Negate => arg(0)
                .filter(|a| a.low > 0)
                .map(|a| wrap(-i128::from(a.high), -i128::from(a.low)))?,
            IntOp::Min => {
                let (a, b) = (ordered(0)?, ordered(1)?);
                wrap(a.0.min(b.0), a.1.min(b.1))
            }
            IntOp::Max => {
                let (a, b) = (ordered(0)?, ordered(1)?);
                wrap(a.0.max(b.0), a.1.max(b.1))
            }
            IntOp::And => Range::new(0, arg(0)?.high.min(arg(1)?.high)),
            IntOp::Or | IntOp::Xor => {
                let most = arg(0)?.high | arg(1)?.high;
                Range::new(0, truncate(u64::MAX, 64 - most.leading_zeros()))
            }
            IntOp::Not => {
                let (a, all) = (arg(0)?, Range::all(bits).high);
                Range::new(all - a.high, all - a.low)
            }
            IntOp::ShiftLeft => {
                let by = args.get(1)?.value().filter(|&by| by < bits.into())?;
                mul(arg(0)?, Range::only(1 << by), bits)?
            }
            IntOp::ShiftRight => match (positive(0)?, args.get(1)?.value()) {
                (a, Some(by)) if by < bits.into() => Range::new(a.low >> by, a.high >> by),
                (a, _) => Range::new(0, a.high),
            },
            IntOp::CountOnes | IntOp::LeadingZeros => Range::new(0, bits.into()),
            IntOp::ExtractField if !self.signed => {
                let at = args.get(1)?.value().unwrap_or(0);
                let (_, len) = field_place(bits, Some(at), args.get(2)?.value())?;
                Range::all(len)
            }
            IntOp::Convert(to) => {
                let (low, high) = ordered(0)?;
                Range::wrapped(low, high, to)
            }
            IntOp::Select => match args.get(2)?.truth() {
                Some(true) => arg(0)?,
                Some(false) => arg(1)?,
                None => arg(0)?.join(arg(1)?),
            },
            IntOp::Compare(by) => by.decided(ordered(0)?, ordered(1)?)?,
            IntOp::CompareAnd(by) => {
                let own = by
                    .decided(ordered(0)?, ordered(1)?)
                    .unwrap_or(Range::all(1));
                let other = args.get(2)?.of_width(1);
                Range::new(own.low.min(other.low), own.high.min(other.high))
            }
            IntOp::CompareOr(by) => {
                let own = by
                    .decided(ordered(0)?, ordered(1)?)
                    .unwrap_or(Range::all(1));
                let other = args.get(2)?.of_width(1);
                Range::new(own.low.max(other.low), own.high.max(other.high))
            }
            _ => return None,
        })
    }
}

fn add(a: Range, b: Range, bits: u32) -> Range {
    let sum = |a: u64, b: u64| i128::from(a) + i128::from(b);
    Range::wrapped(sum(a.low, b.low), sum(a.high, b.high), bits)
}

/// A product that does not wrap around.
fn mul(a: Range, b: Range, bits: u32) -> Option<Range> {
    let high = u128::from(a.high) * u128::from(b.high);
    (high <= Range::all(bits).high.into()).then(|| Range::new(a.low * b.low, high as u64))
}

/// A field's first bit and length, where both are known: the low byte of each counts. Beyond the word ptxas takes
/// immediates otherwise than the ISA says.
pub(crate) fn field_place(bits: u32, at: Option<u64>, len: Option<u64>) -> Option<(u32, u32)> {
    let [at, len] = [at?, len?].map(|value| (value & 0xff) as u32);
    (at < bits && len < bits).then_some((at, len))
}

/// `prmt` without a mode.
fn permuted(bytes: u64, selection: u64) -> u64 {
    (0..4).fold(0, |all, i| {
        let which = selection >> (4 * i) & 0xf;
        let byte = bytes >> (8 * (which & 7)) & 0xff;
        let byte = match which & 8 {
            0 => byte,
            _ => (byte >> 7) * 0xff,
        };
        all | byte << (8 * i)
    })
}

/// `lop3`
fn looked_up(words: [u64; 3], table: u64) -> u64 {
    (0..32).fold(0, |all, i| {
        let [a, b, c] = words.map(|word| word >> i & 1);
        all | (table >> (a << 2 | b << 1 | c) & 1) << i
    })
}

impl Comparison {
    fn of(self, a: i128, b: i128) -> bool {
        match self {
            Comparison::Equal => a == b,
            Comparison::Differ => a != b,
            Comparison::Less => a < b,
            Comparison::LessEqual => a <= b,
            Comparison::Greater => a > b,
            Comparison::GreaterEqual => a >= b,
        }
    }

    /// The answer, where it is the same for all numbers of two ranges.
    fn decided(self, a: (i128, i128), b: (i128, i128)) -> Option<Range> {
        let always = match self {
            Comparison::Equal => (a.0 == a.1 && a == b, a.1 < b.0 || b.1 < a.0),
            Comparison::Differ => (a.1 < b.0 || b.1 < a.0, a.0 == a.1 && a == b),
            Comparison::Less => (a.1 < b.0, a.0 >= b.1),
            Comparison::LessEqual => (a.1 <= b.0, a.0 > b.1),
            Comparison::Greater => (a.0 > b.1, a.1 <= b.0),
            Comparison::GreaterEqual => (a.0 >= b.1, a.1 < b.0),
        };
        match always {
            (true, _) => Some(Range::only(1)),
            (_, true) => Some(Range::only(0)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fold(op: IntOp, bits: u32, signed: bool, args: &[u64]) -> Option<u64> {
        Fold { op, bits, signed }.value(args)
    }

    #[test]
    fn values_are_those_of_the_isa() {
        let minus = |n: i64| n as u64;
        let low = |n: i64| truncate(n as u64, 32);
        let u = |op, args: &[u64]| fold(op, 32, false, args);
        let s = |op, args: &[u64]| fold(op, 32, true, args);
        assert_eq!(u(IntOp::Add, &[low(-1), 2]), Some(1));
        assert_eq!(s(IntOp::Divide, &[low(-7), 2]), Some(low(-3)));
        assert_eq!(s(IntOp::Remainder, &[low(-7), 2]), Some(low(-1)));
        assert_eq!(s(IntOp::Divide, &[1 << 31, low(-1)]), None);
        assert_eq!(u(IntOp::Divide, &[7, 0]), None);
        assert_eq!(u(IntOp::MulHigh, &[low(-1), low(-1)]), Some(low(-2)));
        assert_eq!(s(IntOp::MulHigh, &[low(-1), low(-1)]), Some(0));
        let all = [u64::MAX, u64::MAX];
        assert_eq!(fold(IntOp::MulHigh, 64, false, &all), Some(minus(-2)));
        assert_eq!(fold(IntOp::MulHigh, 64, true, &all), Some(0));
        assert_eq!(s(IntOp::MulWide, &[low(-3), 5]), Some(minus(-15)));
        assert_eq!(u(IntOp::MulWide, &[low(-1), 2]), Some(0x1_ffff_fffe));
        assert_eq!(s(IntOp::MulAddWide, &[low(-3), 5, 16]), Some(1));
        assert_eq!(s(IntOp::Abs, &[1 << 31]), None);
        assert_eq!(s(IntOp::ShiftRight, &[low(-8), 40]), Some(low(-1)));
        assert_eq!(u(IntOp::ShiftRight, &[8, 32]), Some(0));
        assert_eq!(u(IntOp::ShiftLeft, &[1, 32]), Some(0));
        assert_eq!(s(IntOp::ExtractField, &[0xf0, 4, 4]), Some(low(-1)));
        assert_eq!(u(IntOp::ExtractField, &[0xf0, 4, 4]), Some(15));
        assert_eq!(s(IntOp::ExtractField, &[1 << 31, 31, 9]), Some(low(-1)));
        assert_eq!(u(IntOp::ExtractField, &[low(-1), 200, 9]), None);
        assert_eq!(u(IntOp::ExtractField, &[low(-1), 0, 32]), None);
        assert_eq!(u(IntOp::ExtractField, &[low(-1), 0x104, 4]), Some(15));
        assert_eq!(u(IntOp::InsertField, &[0xff, 0, 0, 32]), None);
        assert_eq!(u(IntOp::InsertField, &[0xff, 0, 28, 9]), Some(0xf000_0000));
        assert_eq!(
            u(IntOp::Permute, &[0x8070_6050, 0x0403_0201, 0x7b30]),
            Some(0x04ff_8050)
        );
        let funnel = |left, clamp| IntOp::Funnel { left, clamp };
        assert_eq!(u(funnel(true, false), &[0x8000_0000, 1, 1]), Some(3));
        assert_eq!(u(funnel(false, true), &[7, 5, 40]), Some(5));
        assert_eq!(u(funnel(true, true), &[7, 5, 40]), Some(7));
        assert_eq!(u(IntOp::Lookup, &[0xf0, 0xcc, 0xaa, 0x96]), Some(0x96));
        assert_eq!(u(IntOp::LeadingZeros, &[1]), Some(31));
        assert_eq!(
            fold(IntOp::Convert(64), 32, true, &[low(-2)]),
            Some(minus(-2))
        );
        assert_eq!(
            fold(IntOp::Convert(16), 32, true, &[0x1_2345]),
            Some(0x2345)
        );
        assert_eq!(s(IntOp::Compare(Comparison::Less), &[low(-1), 0]), Some(1));
        assert_eq!(u(IntOp::Compare(Comparison::Less), &[low(-1), 0]), Some(0));
    }

    /// Every value that an operation has for numbers of the ranges is in the range of its results.
    #[test]
    fn ranges_hold_what_they_say() {
        let comparison = [
            Comparison::Less,
            Comparison::GreaterEqual,
            Comparison::Equal,
        ];
        let mut ops = vec![
            IntOp::Move,
            IntOp::Add,
            IntOp::Sub,
            IntOp::Mul,
            IntOp::MulHigh,
            IntOp::MulWide,
            IntOp::MulAdd,
            IntOp::MulAddHigh,
            IntOp::MulAddWide,
            IntOp::Divide,
            IntOp::Remainder,
            IntOp::Negate,
            IntOp::Abs,
            IntOp::Min,
            IntOp::Max,
            IntOp::And,
            IntOp::Or,
            IntOp::Xor,
            IntOp::Not,
            IntOp::IsZero,
            IntOp::ShiftLeft,
            IntOp::ShiftRight,
            IntOp::CountOnes,
            IntOp::LeadingZeros,
            IntOp::Reverse,
            IntOp::ExtractField,
            IntOp::Convert(32),
            IntOp::Convert(8),
            IntOp::Select,
        ];
        for by in comparison {
            ops.extend([
                IntOp::Compare(by),
                IntOp::CompareAnd(by),
                IntOp::CompareOr(by),
            ]);
        }
        let mut state = 99u64;
        let mut random = |n: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) % n
        };
        let mut tight = 0;
        for _ in 0..4000 {
            let op = ops[random(ops.len() as u64) as usize];
            let fold = Fold {
                op,
                bits: 16,
                signed: random(2) == 0,
            };
            let mut args = [Range::ANY; 3];
            for range in &mut args {
                let base = [0, 1, 7, 255, 32_760, 65_530][random(6) as usize];
                *range = Range::new(base, (base + random(12)).min(65_535));
            }
            if matches!(
                op,
                IntOp::Select | IntOp::CompareAnd(_) | IntOp::CompareOr(_)
            ) {
                args[2] = [Range::only(0), Range::only(1), Range::all(1)][random(3) as usize];
            }
            let said = fold.range(&args);
            tight += u32::from(said != Range::all(fold.result_bits()));
            for _ in 0..20 {
                let values = args.map(|range| range.low + random(range.high - range.low + 1));
                if let Some(value) = fold.value(&values) {
                    let holds = (said.low..=said.high).contains(&value);
                    assert!(holds, "{fold:?} of {values:?} is {value}, not in {said:?}");
                }
            }
        }
        assert!(tight > 1000, "{tight}");
    }
}
