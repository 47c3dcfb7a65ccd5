//! What constants of the code are meant to be: `0.1f` is a tenth.

use rustc_hash::FxHashMap;
use warpwright_emu::symbolic::term::{Domain, Id, Terms};

/// A floating-point constant over the reals.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Meaning {
    NotANumber,
    /// −∞, which −`FLT_MAX` stands for, too.
    Least,
    Most,
    /// The binary logarithm of e.
    Log2e {
        negative: bool,
    },
    /// A quotient of whole numbers.
    Fraction(i128, i128),
    Itself(f64),
}

impl Meaning {
    /// Of a number of so many significant bits, in a format with this largest number.
    pub fn of(x: f64, digits: i32, most: f64) -> Meaning {
        const LOG2E: f64 = std::f64::consts::LOG2_E;
        let near = |a: f64, b: f64| (a - b).abs() <= b.abs() * 2f64.powi(1 - digits);
        match x {
            x if x.is_nan() => Meaning::NotANumber,
            x if x <= -most => Meaning::Least,
            x if x >= most => Meaning::Most,
            x if digits >= 24 && near(x.abs(), LOG2E) => Meaning::Log2e { negative: x < 0.0 },
            x => fraction(x, digits).map_or(Meaning::Itself(x), |(above, below)| {
                Meaning::Fraction(if x < 0.0 { -above } else { above }, below)
            }),
        }
    }
}

/// The simplest fraction that is nearer to a magnitude than its neighbours of so many significant bits, if there is one.
fn fraction(x: f64, digits: i32) -> Option<(i128, i128)> {
    if x == 0.0 {
        return Some((0, 1));
    }
    let magnitude = x.abs();
    let close = magnitude * 2f64.powi(-digits);
    // Convergents of the continued fraction.
    let (mut a, mut b) = ((0i128, 1i128), (1i128, 0i128));
    let mut rest = magnitude;
    for _ in 0..40 {
        let whole = rest.floor();
        if whole > 1e15 {
            break;
        }
        let next = (whole as i128 * b.0 + a.0, whole as i128 * b.1 + a.1);
        (a, b) = (b, next);
        if b.0 > 1 << 60 || b.1 > 1 << 60 {
            break;
        }
        if (b.0 as f64 / b.1 as f64 - magnitude).abs() <= close {
            return Some(b);
        }
        let left = rest - whole;
        if left <= 0.0 {
            break;
        }
        rest = 1.0 / left;
    }
    None
}

/// A finite constant as a number.
pub(crate) fn number(bits: u64, domain: Domain) -> Option<f64> {
    let shift = 64 - domain.bits();
    let x = match domain {
        Domain::F32 => f64::from(f32::from_bits(bits as u32)),
        Domain::F64 => f64::from_bits(bits),
        Domain::Bf16 => f64::from(f32::from_bits((bits as u32) << 16)),
        Domain::F16 => half(bits as u16),
        Domain::I16 | Domain::I32 => ((bits << shift) as i64 >> shift) as f64,
        Domain::Any | Domain::I64 | Domain::Pred => return None,
    };
    x.is_finite().then_some(x)
}

/// Constants that need double precision, by what they are in single precision.
pub(crate) fn doubles(terms: &Terms) -> FxHashMap<u32, f64> {
    let constants = (0..terms.len() as Id).filter_map(|id| terms.bits_of(id));
    let wide = constants.filter(|bits| bits >> 32 != 0).map(f64::from_bits);
    let rounded = wide.map(|x| (x as f32, x));
    let needed = rounded.filter(|&(narrow, x)| narrow.is_normal() && f64::from(narrow) != x);
    needed.map(|(narrow, x)| (narrow.to_bits(), x)).collect()
}

/// A binary16 number.
pub(crate) fn half(bits: u16) -> f64 {
    let sign = if bits >> 15 != 0 { -1.0 } else { 1.0 };
    let (exponent, fraction) = (i32::from(bits >> 10 & 31), f64::from(bits & 0x3ff));
    match exponent {
        0 => sign * fraction * 2f64.powi(-24),
        31 if fraction == 0.0 => sign * f64::INFINITY,
        31 => f64::NAN,
        _ => sign * (1024.0 + fraction) * 2f64.powi(exponent - 25),
    }
}
