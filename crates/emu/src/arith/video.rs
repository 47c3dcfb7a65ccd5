//! Video instructions: scalar ones on selected parts of registers, and the two- and four-way SIMD
//! ones (PTX ISA, 'Scalar Video Instructions', 'SIMD Video Instructions').

use super::compare::Compare;

/// Part of a 32-bit operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Select {
    /// First bit.
    pub at: u32,
    /// Width: 8, 16 or 32.
    pub bits: u32,
}

impl Select {
    /// The whole register.
    pub const WORD: Select = Select { at: 0, bits: 32 };

    /// The part, extended as `signed` says.
    pub fn read(self, x: u32, signed: bool) -> i64 {
        let top = (x as u64) << (64 - self.at - self.bits);
        match signed {
            true => top as i64 >> (64 - self.bits),
            false => (top >> (64 - self.bits)) as i64,
        }
    }

    /// `c` with this part replaced by the low bits of `x`.
    fn merge(self, x: u32, c: u32) -> u32 {
        let mask = (u32::MAX >> (32 - self.bits)) << self.at;
        c & !mask | x << self.at & mask
    }
}

/// The operation of a video instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are the instructions'")]
pub enum Operation {
    Add,
    Sub,
    AbsDiff,
    Min,
    Max,
    Average,
    Shl { wrap: bool },
    Shr { wrap: bool },
    Set(Compare),
}

impl Operation {
    fn apply(self, a: i64, b: i64) -> i64 {
        let amount = |wrap: bool| if wrap { b & 31 } else { b.clamp(0, 32) };
        match self {
            Operation::Add => a + b,
            Operation::Sub => a - b,
            Operation::AbsDiff => (a - b).abs(),
            Operation::Min => a.min(b),
            Operation::Max => a.max(b),
            // Rounds halves away from zero.
            Operation::Average => (a + b + (a + b >= 0) as i64) >> 1,
            Operation::Shl { wrap } => a << amount(wrap),
            Operation::Shr { wrap } => a >> amount(wrap),
            Operation::Set(compare) => compare.int(a, b) as i64,
        }
    }
}

/// The second step of a scalar video instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Second {
    /// None: the result is the destination.
    None,
    /// `.add`: plus `c`, wrapping.
    Add,
    /// `.min` with `c`, of the destination's signedness.
    Min,
    /// `.max` with `c`.
    Max,
    /// `d.dsel`: merged into `c`.
    Merge(Select),
}

/// A scalar video instruction but `vmad`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scalar {
    /// What it computes.
    pub operation: Operation,
    /// `.dtype` is `.s32` (of `vset`, which has none: `.atype`).
    pub d_signed: bool,
    /// Part and signedness of `a`.
    pub a: (Select, bool),
    /// Part and signedness of `b`.
    pub b: (Select, bool),
    /// `.sat`
    pub sat: bool,
    /// Secondary operation or merge.
    pub second: Second,
}

impl Scalar {
    /// Executes it.
    pub fn apply(self, a: u32, b: u32, c: u32) -> u32 {
        let (a, b) = (self.a.0.read(a, self.a.1), self.b.0.read(b, self.b.1));
        let wide = self.saturated(self.operation.apply(a, b));
        let result = wide as u32;
        match self.second {
            Second::None => result,
            Second::Add => result.wrapping_add(c),
            Second::Min if self.order(wide) < self.order_of(c) => result,
            Second::Max if self.order(wide) > self.order_of(c) => result,
            Second::Min | Second::Max => c,
            Second::Merge(select) => select.merge(result, c),
        }
    }

    /// What `.sat` makes of an intermediate result.
    ///
    /// The ISA clamps to the destination's type. Code of ptxas for sm_90 (on an H200) does so for parts, signed
    /// destinations and left shifts, which it takes from an intermediate result of 34 bits; to an unsigned word
    /// everything else is clamped from below alone.
    fn saturated(self, wide: i64) -> i64 {
        let is_shift = matches!(self.operation, Operation::Shl { .. });
        let cut = if is_shift { wide << 30 >> 30 } else { wide };
        match self.second {
            _ if !self.sat => wide,
            Second::Merge(select) => clamp(cut, select.bits, self.d_signed),
            _ if is_shift || self.d_signed => clamp(cut, 32, self.d_signed),
            _ => wide.max(0),
        }
    }

    /// The place of an intermediate result among operands of `.min` and `.max`: all its 64 bits are compared, but of
    /// sums, differences and saturated unsigned shifts the low word, sign-extended (code of ptxas for sm_90).
    fn order(self, wide: i64) -> i128 {
        let is_cut = match self.operation {
            Operation::Add | Operation::Sub => true,
            Operation::Shl { .. } | Operation::Shr { .. } => self.sat && !self.d_signed,
            _ => false,
        };
        let wide = if is_cut { wide as i32 as i64 } else { wide };
        match self.d_signed {
            true => wide.into(),
            false => (wide as u64).into(),
        }
    }

    /// The place of `c`.
    fn order_of(self, c: u32) -> i128 {
        match self.d_signed {
            true => (c as i32).into(),
            false => c.into(),
        }
    }
}

fn clamp(x: i64, bits: u32, signed: bool) -> i64 {
    match signed {
        true => x.clamp(-(1 << (bits - 1)), (1 << (bits - 1)) - 1),
        false => x.clamp(0, (1 << bits) - 1),
    }
}

/// `vmad`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mad {
    /// Part and signedness of `a`.
    pub a: (Select, bool),
    /// Part and signedness of `b`.
    pub b: (Select, bool),
    /// The product is negated.
    pub negate_product: bool,
    /// `c` is negated.
    pub negate_c: bool,
    /// `.po`: plus one.
    pub plus_one: bool,
    /// Right shift: 0, 7 or 15.
    pub scale: u32,
    /// `.sat`
    pub sat: bool,
}

impl Mad {
    /// Executes it, as code of ptxas for sm_90 does: a product of signed words (parts are extended first) and the signed
    /// `c`, in 64 bits; without signs among the types the shift brings zeros in.
    pub fn apply(self, a: u32, b: u32, c: u32) -> u32 {
        let signed = self.a.1 || self.b.1 || self.negate_product || self.negate_c;
        let word = |(part, signed): (Select, bool), x: u32| i64::from(part.read(x, signed) as i32);
        let product = word(self.a, a).wrapping_mul(word(self.b, b));
        let c = i64::from(c as i32);
        let complement = |x: i64, negate: bool| if negate { !x } else { x };
        let carry = self.plus_one || self.negate_product || self.negate_c;
        let sum = complement(product, self.negate_product)
            .wrapping_add(complement(c, self.negate_c))
            .wrapping_add(carry.into());
        let result = match signed || self.scale == 0 {
            true => sum >> self.scale,
            false => (sum as u64 >> self.scale) as i64,
        };
        match self.sat {
            true => clamp(result, 32, signed) as u32,
            false => result as u32,
        }
    }
}

/// A SIMD video instruction on 2 or 4 lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Simd {
    /// What it computes.
    pub operation: Operation,
    /// 2 or 4.
    pub lanes: u32,
    /// `.dtype` is signed.
    pub d_signed: bool,
    /// Which lane of `b:a` feeds each lane, and whether it is signed.
    pub a: ([u8; 4], bool),
    /// The same for the second input.
    pub b: ([u8; 4], bool),
    /// `.sat`
    pub sat: bool,
    /// Lanes written, by bit.
    pub mask: u8,
    /// `.add`: lanes are summed onto `c` instead of merged into it.
    pub accumulate: bool,
}

impl Simd {
    /// Executes it.
    pub fn apply(self, a: u32, b: u32, c: u32) -> u32 {
        let bits = 32 / self.lanes;
        let pair = (b as u64) << 32 | a as u64;
        let lane = |index: u8, signed: bool| {
            let word = (pair >> (bits * index as u32)) as u32;
            Select { at: 0, bits }.read(word, signed)
        };
        let mut result = c;
        for i in (0..self.lanes).filter(|i| self.mask >> i & 1 != 0) {
            let x = lane(self.a.0[i as usize], self.a.1);
            let y = lane(self.b.0[i as usize], self.b.1);
            let value = self.operation.apply(x, y);
            let value = if self.sat {
                clamp(value, bits, self.d_signed)
            } else {
                value
            };
            result = match self.accumulate {
                true => result.wrapping_add(value as u32),
                false => Select { at: bits * i, bits }.merge(value as u32, result),
            };
        }
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const B0: Select = Select { at: 0, bits: 8 };
    const H1: Select = Select { at: 16, bits: 16 };

    fn scalar(operation: Operation) -> Scalar {
        let word = (Select::WORD, true);
        Scalar {
            operation,
            d_signed: true,
            a: word,
            b: word,
            sat: false,
            second: Second::None,
        }
    }

    #[test]
    fn scalar_operations_select_saturate_and_merge() {
        let add = scalar(Operation::Add);
        assert_eq!(add.apply(5, -7i32 as u32, 0), -2i32 as u32);
        let sat = Scalar { sat: true, ..add };
        assert_eq!(sat.apply(i32::MAX as u32, 1, 0), i32::MAX as u32);
        let parts = Scalar {
            a: (B0, true),
            b: (H1, false),
            ..add
        };
        assert_eq!(parts.apply(0xff, 0x8000_0000, 0), 0x7fff);
        let merged = Scalar {
            sat: true,
            second: Second::Merge(B0),
            ..add
        };
        assert_eq!(merged.apply(1000, 0, 0x1122_3344), 0x1122_337f);
        let min = Scalar {
            second: Second::Min,
            ..scalar(Operation::AbsDiff)
        };
        assert_eq!(min.apply(3, 10, 5), 5);
        assert_eq!(
            Scalar {
                second: Second::Add,
                ..min
            }
            .apply(3, 10, 5),
            12
        );
    }

    #[test]
    fn shifts_clamp_at_32() {
        let shl = scalar(Operation::Shl { wrap: false });
        assert_eq!(shl.apply(1, 40, 0), 0);
        assert_eq!(scalar(Operation::Shl { wrap: true }).apply(1, 40, 0), 256);
        assert_eq!(
            scalar(Operation::Shr { wrap: false }).apply(0x8000_0000, 99, 0),
            u32::MAX
        );
    }

    #[test]
    fn vmad_negates_scales_and_saturates() {
        let word = (Select::WORD, true);
        let mad = Mad {
            a: word,
            b: word,
            negate_product: false,
            negate_c: false,
            plus_one: false,
            scale: 0,
            sat: false,
        };
        assert_eq!(mad.apply(3, 4, 5), 17);
        assert_eq!(
            Mad {
                negate_product: true,
                ..mad
            }
            .apply(3, 4, 5),
            -7i32 as u32
        );
        assert_eq!(
            Mad {
                negate_c: true,
                ..mad
            }
            .apply(3, 4, 5),
            7
        );
        assert_eq!(
            Mad {
                plus_one: true,
                ..mad
            }
            .apply(3, 4, 5),
            18
        );
        assert_eq!(Mad { scale: 7, ..mad }.apply(1 << 10, 1, 0), 8);
        assert_eq!(
            Mad { sat: true, ..mad }.apply(1 << 20, 1 << 20, 0),
            i32::MAX as u32
        );
    }

    #[test]
    fn simd_lanes_are_independent() {
        let simd = Simd {
            operation: Operation::Add,
            lanes: 4,
            d_signed: true,
            a: ([0, 1, 2, 3], true),
            b: ([4, 5, 6, 7], true),
            sat: true,
            mask: 0b1111,
            accumulate: false,
        };
        assert_eq!(simd.apply(0x7f01_80ff, 0x0102_ff01, 0), 0x7f03_8000);
        assert_eq!(
            Simd {
                mask: 0b0001,
                ..simd
            }
            .apply(1, 2, 0xaabb_cc00),
            0xaabb_cc03
        );
        let sum = Simd {
            operation: Operation::AbsDiff,
            sat: false,
            accumulate: true,
            ..simd
        };
        assert_eq!(sum.apply(0x0102_0304, 0x0404_0404, 100), 100 + 3 + 2 + 1);
        let halves = Simd {
            lanes: 2,
            operation: Operation::Average,
            a: ([0, 1, 0, 0], true),
            b: ([2, 3, 0, 0], true),
            mask: 0b11,
            ..simd
        };
        assert_eq!(halves.apply(0x0003_ffff, 0x0004_fffe, 0), 0x0004_fffe);
    }
}
