//! Comparisons: `setp`, `set`, `slct`, and what combines their results.

use super::float::Real;
use super::int::Int;

/// Comparison operators (PTX ISA, 'Comparison and Selection Instructions').
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are the instruction's modifiers")]
pub enum Compare {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    Lo,
    Ls,
    Hi,
    Hs,
    Equ,
    Neu,
    Ltu,
    Leu,
    Gtu,
    Geu,
    Num,
    Nan,
}

impl Compare {
    /// The operator of this name.
    pub fn parse(text: &str) -> Option<Compare> {
        Some(match text {
            "eq" => Compare::Eq,
            "ne" => Compare::Ne,
            "lt" => Compare::Lt,
            "le" => Compare::Le,
            "gt" => Compare::Gt,
            "ge" => Compare::Ge,
            "lo" => Compare::Lo,
            "ls" => Compare::Ls,
            "hi" => Compare::Hi,
            "hs" => Compare::Hs,
            "equ" => Compare::Equ,
            "neu" => Compare::Neu,
            "ltu" => Compare::Ltu,
            "leu" => Compare::Leu,
            "gtu" => Compare::Gtu,
            "geu" => Compare::Geu,
            "num" => Compare::Num,
            "nan" => Compare::Nan,
            _ => return None,
        })
    }

    /// Does it hold of integers? `.lo .ls .hi .hs` are the unsigned names of the four orders.
    #[inline(always)]
    pub fn int<T: Int>(self, a: T, b: T) -> bool {
        match self {
            Compare::Eq | Compare::Equ => a == b,
            Compare::Ne | Compare::Neu => a != b,
            Compare::Lt | Compare::Lo | Compare::Ltu => a < b,
            Compare::Le | Compare::Ls | Compare::Leu => a <= b,
            Compare::Gt | Compare::Hi | Compare::Gtu => a > b,
            Compare::Ge | Compare::Hs | Compare::Geu => a >= b,
            Compare::Num => true,
            Compare::Nan => false,
        }
    }

    /// Does it hold of floating-point numbers? The plain operators are false if an operand is NaN,
    /// those that end in `u` true.
    #[inline(always)]
    pub fn float<T: Real>(self, ftz: bool, a: T, b: T) -> bool {
        let (a, b) = if ftz {
            (a.flushed(), b.flushed())
        } else {
            (a, b)
        };
        let unordered = a.is_nan() || b.is_nan();
        let (x, y) = (a.to_f64(), b.to_f64());
        match self {
            Compare::Eq => x == y,
            Compare::Ne => !unordered && x != y,
            Compare::Lt | Compare::Lo => x < y,
            Compare::Le | Compare::Ls => x <= y,
            Compare::Gt | Compare::Hi => x > y,
            Compare::Ge | Compare::Hs => x >= y,
            Compare::Equ => unordered || x == y,
            Compare::Neu => x != y,
            Compare::Ltu => unordered || x < y,
            Compare::Leu => unordered || x <= y,
            Compare::Gtu => unordered || x > y,
            Compare::Geu => unordered || x >= y,
            Compare::Num => !unordered,
            Compare::Nan => unordered,
        }
    }
}

/// How `setp` and `set` combine a comparison with a predicate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are the instruction's modifiers")]
pub enum Combine {
    And,
    Or,
    Xor,
}

impl Combine {
    /// The operator of this name.
    pub fn parse(text: &str) -> Option<Combine> {
        Some(match text {
            "and" => Combine::And,
            "or" => Combine::Or,
            "xor" => Combine::Xor,
            _ => return None,
        })
    }

    /// Applies it.
    #[inline(always)]
    pub fn apply(self, a: bool, b: bool) -> bool {
        match self {
            Combine::And => a & b,
            Combine::Or => a | b,
            Combine::Xor => a ^ b,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nan_makes_ordered_false_and_unordered_true() {
        use Compare::*;
        for op in [Eq, Ne, Lt, Le, Gt, Ge, Num] {
            assert!(!op.float(false, f32::NAN, 1.0), "{op:?}");
        }
        for op in [Equ, Neu, Ltu, Leu, Gtu, Geu, Nan] {
            assert!(op.float(false, 1.0, f64::NAN), "{op:?}");
        }
        assert!(Num.float(false, 1.0f32, 2.0) && !Nan.float(false, 1.0f32, 2.0));
    }

    #[test]
    fn flushing_makes_subnormals_equal_zero() {
        let tiny = f32::from_bits(1);
        assert!(Compare::Gt.float(false, tiny, 0.0));
        assert!(Compare::Eq.float(true, tiny, -0.0));
    }

    #[test]
    fn signedness_decides_the_order() {
        assert!(Compare::Lt.int(-1i32, 0));
        assert!(Compare::Hi.int(u32::MAX, 0));
    }
}
