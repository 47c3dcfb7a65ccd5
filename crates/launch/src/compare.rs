//! Comparing outputs: bit for bit, or within a tolerance.

use std::fmt;

use crate::element::ElemType;

/// How far an element may be from the expected one: `|actual - expected| <= abs + rel *
/// |expected|`. Zero in both means equal values.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Tolerance {
    /// Relative part.
    pub rel: f64,
    /// Absolute part, in the element's own unit.
    pub abs: f64,
}

/// The outcome of comparing two buffers element by element.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Comparison {
    /// Elements compared.
    pub len: usize,
    /// Are all bits equal (and both buffers of the same length)?
    pub equal_bits: bool,
    /// Elements outside the tolerance. Excess bytes of the longer buffer count as one element.
    pub mismatches: usize,
    /// Index of the first element outside the tolerance.
    pub first_mismatch: Option<usize>,
    /// Largest `|actual - expected|`; infinite where only one of the two is a NaN, or where they
    /// are different infinities.
    pub max_abs: f64,
    /// Largest `|actual - expected| / |expected|` over elements whose expected value is not zero.
    pub max_rel: f64,
}

impl Comparison {
    /// Is every element within the tolerance?
    pub fn within(&self) -> bool {
        self.mismatches == 0
    }
}

/// Compares `actual` with `expected`, both little-endian elements of type `ty`.
///
/// Without a tolerance (`None`) an element matches only if its bits are equal. With one, NaN
/// matches NaN whatever its sign and payload, zeros match whatever their sign, and an infinity
/// matches only itself.
pub fn compare(
    actual: &[u8],
    expected: &[u8],
    ty: ElemType,
    tolerance: Option<Tolerance>,
) -> Comparison {
    let size = ty.size();
    let mut result = Comparison {
        len: actual.len().min(expected.len()) / size,
        equal_bits: actual == expected,
        ..Comparison::default()
    };
    if result.equal_bits {
        return result;
    }
    let pairs = actual.chunks_exact(size).zip(expected.chunks_exact(size));
    for (index, (a, e)) in pairs.enumerate() {
        if a == e {
            continue;
        }
        let (abs, rel) = difference(ty, ty.read(a), ty.read(e));
        result.max_abs = result.max_abs.max(abs);
        result.max_rel = result.max_rel.max(rel);
        let close = tolerance.is_some_and(|t| {
            abs == 0.0 || (abs.is_finite() && abs <= t.abs + t.rel * ty.to_f64(ty.read(e)).abs())
        });
        if !close {
            result.mismatches += 1;
            result.first_mismatch.get_or_insert(index);
        }
    }
    if actual.len() != expected.len() {
        result.mismatches += 1;
        result.first_mismatch.get_or_insert(result.len);
    }
    result
}

/// Absolute and relative difference of two elements with different bits.
fn difference(ty: ElemType, actual: u64, expected: u64) -> (f64, f64) {
    let e = ty.to_f64(expected);
    let abs = if ty.is_float() {
        let a = ty.to_f64(actual);
        if a == e || (a.is_nan() && e.is_nan()) {
            0.0
        } else if a.is_nan() || e.is_nan() {
            f64::INFINITY
        } else {
            (a - e).abs()
        }
    } else {
        // Exact even where f64 is not.
        (ty.to_int(actual) - ty.to_int(expected)).unsigned_abs() as f64
    };
    let rel = if abs == 0.0 || e == 0.0 {
        0.0
    } else {
        abs / e.abs()
    };
    (abs, if rel.is_nan() { f64::INFINITY } else { rel })
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.first_mismatch {
            _ if self.equal_bits => write!(f, "all {} elements equal", self.len),
            None => write!(
                f,
                "{} elements within the tolerance, largest error {:.3e} absolute, {:.3e} relative",
                self.len, self.max_abs, self.max_rel
            ),
            Some(first) => write!(
                f,
                "{} of {} elements differ, the first at index {first}, largest error {:.3e} \
                 absolute, {:.3e} relative",
                self.mismatches, self.len, self.max_abs, self.max_rel
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn floats(values: &[f32]) -> Vec<u8> {
        values.iter().flat_map(|v| v.to_le_bytes()).collect()
    }

    const EXACT: Option<Tolerance> = Some(Tolerance { rel: 0.0, abs: 0.0 });

    #[test]
    fn bitwise_mode_tells_zeros_and_nans_apart() {
        let (a, b) = (floats(&[0.0, f32::NAN]), floats(&[-0.0, -f32::NAN]));
        let c = compare(&a, &b, ElemType::F32, None);
        assert_eq!(
            (c.mismatches, c.first_mismatch, c.equal_bits),
            (2, Some(0), false)
        );
        assert!(compare(&a, &b, ElemType::F32, EXACT).within());
        assert!(compare(&a, &a, ElemType::F32, None).equal_bits);
    }

    #[test]
    fn the_tolerance_is_absolute_plus_relative() {
        let (a, e) = (floats(&[1.0, 100.5, 3.0]), floats(&[1.0, 100.0, 2.0]));
        let within =
            |rel, abs| compare(&a, &e, ElemType::F32, Some(Tolerance { rel, abs })).first_mismatch;
        assert_eq!(within(0.0, 0.0), Some(1));
        assert_eq!(within(0.005, 0.0), Some(2));
        assert_eq!(within(0.0, 1.0), None);
        assert_eq!(within(0.005, 0.99), None);
        let c = compare(&a, &e, ElemType::F32, EXACT);
        assert_eq!((c.max_abs, c.max_rel, c.mismatches), (1.0, 0.5, 2));
    }

    #[test]
    fn special_values_match_only_their_like() {
        let (inf, nan) = (f32::INFINITY, f32::NAN);
        let wide = Some(Tolerance {
            rel: 1.0,
            abs: f64::MAX,
        });
        for (a, e, close) in [
            (inf, inf, true),
            (inf, -inf, false),
            (inf, 1.0, false),
            (1.0, inf, false),
            (nan, 1.0, false),
            (1.0, nan, false),
        ] {
            let c = compare(&floats(&[a]), &floats(&[e]), ElemType::F32, wide);
            assert_eq!(c.within(), close, "{a} {e}");
        }
    }

    #[test]
    fn integers_are_compared_exactly() {
        let (a, e) = (u64::MAX.to_le_bytes(), (u64::MAX - 1).to_le_bytes());
        let c = compare(&a, &e, ElemType::U64, EXACT);
        assert_eq!((c.max_abs, c.within()), (1.0, false));
        let c = compare(
            &[0xFF],
            &[1],
            ElemType::S8,
            Some(Tolerance { rel: 0.0, abs: 2.0 }),
        );
        assert_eq!((c.max_abs, c.within()), (2.0, true));
    }

    #[test]
    fn different_lengths_differ() {
        let c = compare(&[1, 2], &[1], ElemType::U8, None);
        assert_eq!((c.first_mismatch, c.mismatches), (Some(1), 1));
        assert!(!c.within());
    }
}
