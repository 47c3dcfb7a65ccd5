//! Floating point of any format, from integers: the one place where results are rounded.
//!
//! A number is unpacked into [`Value`]; an operation yields the exact result as an integer times a
//! power of two, or that with a sticky last bit where the exact one has no end; [`Format::pack`]
//! rounds once. The sticky form is enough: every operation below keeps at least 62 significant
//! bits above the sticky bit, and no format has more than 53, so the rounding bit and the
//! 'anything below it' bit that all modes decide by are always right.

use super::Round;

/// How a format uses its largest exponent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Special {
    /// IEEE 754: infinities and NaNs.
    Ieee,
    /// `e4m3`: the all-ones code is NaN, the rest are finite; no infinities.
    OneNan,
    /// `e2m1`, `e2m3`, `e3m2`: every code is a finite number.
    AllFinite,
}

/// A binary floating-point format: one sign bit, `exp` exponent bits, `man` fraction bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    /// Bits of the exponent field.
    pub exp: u32,
    /// Bits of the fraction field.
    pub man: u32,
    /// Use of the largest exponent.
    pub special: Special,
}

/// `.f16`
pub const F16: Format = Format::ieee(5, 10);
/// `.bf16`
pub const BF16: Format = Format::ieee(8, 7);
/// `.tf32` in its own 19 bits (a register holds it shifted left by 13).
pub const TF32: Format = Format::ieee(8, 10);
/// `.f32`
pub const F32: Format = Format::ieee(8, 23);
/// `.f64`
pub const F64: Format = Format::ieee(11, 52);
/// `.e5m2`
pub const E5M2: Format = Format::ieee(5, 2);
/// `.e4m3`
pub const E4M3: Format = Format {
    exp: 4,
    man: 3,
    special: Special::OneNan,
};
/// `.e2m3`
pub const E2M3: Format = Format {
    exp: 2,
    man: 3,
    special: Special::AllFinite,
};
/// `.e3m2`
pub const E3M2: Format = Format {
    exp: 3,
    man: 2,
    special: Special::AllFinite,
};
/// `.e2m1`
pub const E2M1: Format = Format {
    exp: 2,
    man: 1,
    special: Special::AllFinite,
};

/// An unpacked number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// Not a number; payloads are not kept.
    Nan,
    /// An infinity; `true` is negative.
    Inf(bool),
    /// A zero; `true` is negative.
    Zero(bool),
    /// `sig * 2^exp`, negated if `neg`; `sig` is not zero and below `2^127`. Bit 0 may be sticky:
    /// set because something smaller is not zero.
    Finite {
        /// Sign.
        neg: bool,
        /// Exponent of bit 0.
        exp: i32,
        /// Significand.
        sig: u128,
    },
}

use Value::{Finite, Inf, Nan, Zero};

/// Where operations put the leading bit of a significand: one bit of headroom for a carry.
const TOP: u32 = 125;

impl Format {
    const fn ieee(exp: u32, man: u32) -> Format {
        Format {
            exp,
            man,
            special: Special::Ieee,
        }
    }

    const fn bias(self) -> i32 {
        (1 << (self.exp - 1)) - 1
    }

    const fn exp_max(self) -> u64 {
        (1 << self.exp) - 1
    }

    /// Width in bits.
    pub const fn width(self) -> u32 {
        1 + self.exp + self.man
    }

    const fn sign(self, neg: bool) -> u64 {
        (neg as u64) << (self.exp + self.man)
    }

    /// The NaN that NVIDIA hardware returns: all ones below the sign (`0x7fffffff`, `0x7fff`), but
    /// `0xfff8000000000000` for `.f64` (`CUDART_NAN_F` and `CUDART_NAN` in `math_constants.h`).
    pub const fn nan(self) -> u64 {
        match self.man {
            52 => 0xfff8_0000_0000_0000,
            _ => (1 << (self.exp + self.man)) - 1,
        }
    }

    /// The largest finite magnitude's code.
    pub const fn max_finite(self) -> u64 {
        match self.special {
            Special::Ieee => (self.exp_max() << self.man) - 1,
            Special::OneNan => (1 << (self.exp + self.man)) - 2,
            Special::AllFinite => (1 << (self.exp + self.man)) - 1,
        }
    }

    /// Unpacks a code.
    pub fn unpack(self, bits: u64) -> Value {
        let neg = bits >> (self.exp + self.man) & 1 != 0;
        let magnitude = bits & (self.sign(true) - 1);
        let field = magnitude >> self.man;
        let fraction = magnitude & ((1 << self.man) - 1);
        match self.special {
            Special::Ieee if field == self.exp_max() => {
                return if fraction == 0 { Inf(neg) } else { Nan };
            }
            Special::OneNan if magnitude == self.nan() => return Nan,
            _ => {}
        }
        let least = 1 - self.bias() - self.man as i32;
        match (field, fraction) {
            (0, 0) => Zero(neg),
            (0, f) => Finite {
                neg,
                exp: least,
                sig: f as u128,
            },
            (e, f) => Finite {
                neg,
                exp: least + e as i32 - 1,
                sig: (f | 1 << self.man) as u128,
            },
        }
    }

    /// Rounds to this format. A magnitude beyond the largest finite one becomes infinity or that
    /// largest one as the mode says; formats without infinity saturate (`.satfinite`), and their
    /// NaN, where they have none, becomes the largest positive number.
    pub fn pack(self, mode: Round, value: Value) -> u64 {
        match value {
            Nan if self.special == Special::AllFinite => self.max_finite(),
            Nan => self.nan(),
            Inf(neg) => self.sign(neg) | self.infinity(),
            Zero(neg) => self.sign(neg),
            Finite { neg, exp, sig } => self.sign(neg) | self.round(mode, neg, exp, sig),
        }
    }

    fn infinity(self) -> u64 {
        match self.special {
            Special::Ieee => self.exp_max() << self.man,
            _ => self.max_finite(),
        }
    }

    fn round(self, mode: Round, neg: bool, exp: i32, sig: u128) -> u64 {
        let lead = exp + 127 - sig.leading_zeros() as i32;
        let least_normal = 1 - self.bias();
        let unit = lead.max(least_normal) - self.man as i32;
        let rounded = match unit - exp {
            cut if cut > 0 => round_off(mode, neg, sig, cut as u32),
            pad => sig << -pad,
        };
        // A carry out of the significand runs into the exponent field, where it belongs.
        let field = if lead < least_normal {
            0
        } else {
            (lead - least_normal + 1) as u64
        };
        let hidden = if lead < least_normal {
            0
        } else {
            1 << self.man
        };
        let code = (field << self.man) + (rounded as u64 - hidden);
        if code > self.max_finite() {
            let stays = match mode {
                Round::NearestEven | Round::NearestAway => false,
                Round::Zero => true,
                Round::Down => !neg,
                Round::Up => neg,
            };
            return if stays {
                self.max_finite()
            } else {
                self.infinity()
            };
        }
        code
    }
}

impl Value {
    /// Is it negative (zeros and infinities included)?
    pub fn is_neg(self) -> bool {
        match self {
            Nan => false,
            Inf(neg) | Zero(neg) | Finite { neg, .. } => neg,
        }
    }

    /// The value with the opposite sign.
    pub fn negate(self) -> Value {
        match self {
            Nan => Nan,
            Inf(neg) => Inf(!neg),
            Zero(neg) => Zero(!neg),
            Finite { neg, exp, sig } => Finite {
                neg: !neg,
                exp,
                sig,
            },
        }
    }

    /// An integer's value.
    pub fn from_int(value: i128) -> Value {
        match value {
            0 => Zero(false),
            v => Finite {
                neg: v < 0,
                exp: 0,
                sig: v.unsigned_abs(),
            },
        }
    }

    /// `self + other`, exact but for the sticky bit. The mode decides the sign of an exact zero.
    pub fn add(self, other: Value, mode: Round) -> Value {
        match (self, other) {
            (Nan, _) | (_, Nan) => Nan,
            (Inf(a), Inf(b)) => {
                if a == b {
                    Inf(a)
                } else {
                    Nan
                }
            }
            (Inf(a), _) | (_, Inf(a)) => Inf(a),
            (Zero(a), Zero(b)) => Zero(if a == b { a } else { mode == Round::Down }),
            (Zero(_), x) | (x, Zero(_)) => x,
            (
                Finite {
                    neg: an,
                    exp: ae,
                    sig: a,
                },
                Finite {
                    neg: bn,
                    exp: be,
                    sig: b,
                },
            ) => {
                let (ae, a) = lead_at(TOP, ae, a);
                let (be, b) = lead_at(TOP, be, b);
                if (ae, a) >= (be, b) {
                    add_magnitudes((an, ae, a), (bn, be, b), mode)
                } else {
                    add_magnitudes((bn, be, b), (an, ae, a), mode)
                }
            }
        }
    }

    /// `self * other`. Exact for operands of at most 63 significant bits.
    #[expect(
        clippy::should_implement_trait,
        reason = "beside `add` and `fma`, which round"
    )]
    pub fn mul(self, other: Value) -> Value {
        let neg = self.is_neg() != other.is_neg();
        match (self, other) {
            (Nan, _) | (_, Nan) | (Inf(_), Zero(_)) | (Zero(_), Inf(_)) => Nan,
            (Inf(_), _) | (_, Inf(_)) => Inf(neg),
            (Zero(_), _) | (_, Zero(_)) => Zero(neg),
            (
                Finite {
                    exp: ae, sig: a, ..
                },
                Finite {
                    exp: be, sig: b, ..
                },
            ) => Finite {
                neg,
                exp: ae + be,
                sig: a * b,
            },
        }
    }

    /// `self * b + c`, rounded nowhere.
    pub fn fma(self, b: Value, c: Value, mode: Round) -> Value {
        self.mul(b).add(c, mode)
    }

    /// `self / other`, for operands of at most 63 significant bits.
    #[expect(
        clippy::should_implement_trait,
        reason = "beside `add` and `fma`, which round"
    )]
    pub fn div(self, other: Value) -> Value {
        let neg = self.is_neg() != other.is_neg();
        match (self, other) {
            (Nan, _) | (_, Nan) | (Inf(_), Inf(_)) | (Zero(_), Zero(_)) => Nan,
            (Inf(_), _) | (_, Zero(_)) => Inf(neg),
            (Zero(_), _) | (_, Inf(_)) => Zero(neg),
            (
                Finite {
                    exp: ae, sig: a, ..
                },
                Finite {
                    exp: be, sig: b, ..
                },
            ) => {
                let (ae, a) = lead_at(TOP, ae, a);
                let (be, b) = lead_at(62, be, b);
                // The quotient has 63 or 64 bits; one more position holds the sticky bit.
                let sticky = (a % b != 0) as u128;
                Finite {
                    neg,
                    exp: ae - be - 1,
                    sig: (a / b) << 1 | sticky,
                }
            }
        }
    }

    /// The square root.
    pub fn sqrt(self) -> Value {
        match self {
            Nan | Inf(true) | Finite { neg: true, .. } => Nan,
            Inf(false) => Inf(false),
            Zero(neg) => Zero(neg),
            Finite { exp, sig, .. } => {
                let (mut exp, mut sig) = lead_at(TOP, exp, sig);
                if exp % 2 != 0 {
                    (exp, sig) = (exp - 1, sig << 1);
                }
                let root = sig.isqrt();
                let sticky = (root * root != sig) as u128;
                Finite {
                    neg: false,
                    exp: exp / 2 - 1,
                    sig: root << 1 | sticky,
                }
            }
        }
    }

    /// Rounds to an integral value; zero keeps the sign. `None` for NaN and infinities.
    pub fn to_integer(self, mode: Round) -> Option<Value> {
        match self {
            Nan | Inf(_) => None,
            Finite { neg, exp, sig } if exp < 0 => {
                Some(match round_off(mode, neg, sig, (-exp) as u32) {
                    0 => Zero(neg),
                    sig => Finite { neg, exp: 0, sig },
                })
            }
            integral => Some(integral),
        }
    }
}

/// Drops the low `cut` bits (at least one) of a magnitude, rounded.
///
/// Two facts decide: the highest bit dropped, and whether any below it is set.
fn round_off(mode: Round, neg: bool, sig: u128, cut: u32) -> u128 {
    let kept = sig.checked_shr(cut).unwrap_or(0);
    let half = sig.checked_shr(cut - 1).unwrap_or(0) & 1 != 0;
    let below = cut > 128 || sig & ((1u128 << (cut - 1)) - 1) != 0;
    let up = match mode {
        Round::NearestEven => half && (below || kept & 1 != 0),
        Round::NearestAway => half,
        Round::Zero => false,
        Round::Down => neg && (half || below),
        Round::Up => !neg && (half || below),
    };
    kept + up as u128
}

/// The same number with the leading bit of its significand at position `top`. Only shifts left or
/// over zeros for the callers above: their significands have at most 107 bits, or came from here.
fn lead_at(top: u32, exp: i32, sig: u128) -> (i32, u128) {
    let lead = 127 - sig.leading_zeros();
    if lead <= top {
        (exp - (top - lead) as i32, sig << (top - lead))
    } else {
        (exp + (lead - top) as i32, shift_jam(sig, lead - top))
    }
}

/// Shifts right; what falls off is kept as a sticky last bit.
fn shift_jam(sig: u128, by: u32) -> u128 {
    if by == 0 {
        return sig;
    }
    match sig.checked_shr(by) {
        Some(kept) => kept | (sig & ((1 << by) - 1) != 0) as u128,
        None => 1,
    }
}

/// Adds signed magnitudes whose leading bits stand at `TOP`; the first is the larger.
fn add_magnitudes(large: (bool, i32, u128), small: (bool, i32, u128), mode: Round) -> Value {
    let (neg, exp, a) = large;
    let b = shift_jam(small.2, (exp - small.1) as u32);
    if neg == small.0 {
        return Finite {
            neg,
            exp,
            sig: a + b,
        };
    }
    // Bits are lost only when the exponents differ by more than 18; then at most one leading bit
    // cancels, and the sticky bit stays far below every rounding position.
    match a - b {
        0 => Zero(mode == Round::Down),
        sig => Finite { neg, exp, sig },
    }
}

#[cfg(test)]
mod tests;
