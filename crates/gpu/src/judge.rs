//! From two buffers that differ to a verdict.

use warpwright_launch::{ElemType, Tolerance, compare};

use crate::backend::Verdict;
use crate::fault::{Fault, FaultKind};
use crate::job::Buffer;

/// Judges a buffer's contents against the reference's: bit for bit, or within its tolerance.
pub(crate) fn judge(
    buffer: &Buffer,
    found: &[u8],
    expected: &[u8],
    bits: bool,
) -> Result<Verdict, Fault> {
    let ty = ElemType::from_name(&buffer.element).ok_or_else(|| {
        let detail = format!(
            "`{}`: unknown element type `{}`",
            buffer.name, buffer.element
        );
        Fault::new(FaultKind::Input, detail)
    })?;
    let tolerance = buffer.tolerance.map(|(abs, rel)| Tolerance { rel, abs });
    let close = compare(found, expected, ty, tolerance);
    let outcome = if bits {
        compare(found, expected, ty, None)
    } else {
        close
    };
    let Some(index) = outcome.first_mismatch else {
        return Ok(if close.equal_bits {
            Verdict::Identical
        } else {
            Verdict::Within {
                max_abs: close.max_abs,
                max_rel: close.max_rel,
            }
        });
    };
    let value = |bytes: &[u8]| {
        let at = index * ty.size();
        let bits = ty.read(bytes.get(at..).unwrap_or_default());
        let digits = 2 + 2 * ty.size();
        if ty.is_float() {
            format!("{:?} ({bits:#0digits$x})", ty.to_f64(bits))
        } else {
            format!("{} ({bits:#0digits$x})", ty.to_int(bits))
        }
    };
    Ok(Verdict::Wrong {
        buffer: buffer.name.clone(),
        index,
        expected: value(expected),
        found: value(found),
        mismatches: outcome.mismatches,
        of: outcome.len,
        within_tolerance: close.within(),
    })
}

/// The verdict on two buffers from the verdicts on each.
pub(crate) fn worse(a: Verdict, b: Verdict) -> Verdict {
    match (a, b) {
        (Verdict::Identical, b) => b,
        (a, Verdict::Identical) => a,
        (
            Verdict::Within {
                max_abs: a1,
                max_rel: r1,
            },
            Verdict::Within {
                max_abs: a2,
                max_rel: r2,
            },
        ) => Verdict::Within {
            max_abs: a1.max(a2),
            max_rel: r1.max(r2),
        },
        (Verdict::Within { .. }, b) => b,
        (a, _) => a,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn buffer(tolerance: Option<(f64, f64)>) -> Buffer {
        Buffer {
            name: "y".into(),
            bytes: 12,
            element: "f32".into(),
            file: "y.bin".into(),
            table: None,
            symbol: false,
            output: true,
            unwritten: true,
            align: 256,
            offset: 0,
            tolerance,
        }
    }

    fn floats(values: [f32; 3]) -> Vec<u8> {
        values.iter().flat_map(|v| v.to_le_bytes()).collect()
    }

    #[test]
    fn the_first_wrong_element_is_named() {
        let (found, expected) = (floats([1.0, 2.5, 4.0]), floats([1.0, 2.0, 3.0]));
        let verdict = judge(&buffer(Some((0.6, 0.0))), &found, &expected, false).expect("f32");
        let Verdict::Wrong {
            index,
            mismatches,
            of,
            within_tolerance,
            found,
            expected,
            ..
        } = verdict
        else {
            panic!("{verdict}");
        };
        assert_eq!((index, mismatches, of, within_tolerance), (2, 1, 3, false));
        assert_eq!(
            (found.as_str(), expected.as_str()),
            ("4.0 (0x40800000)", "3.0 (0x40400000)")
        );
    }

    /// A promise of identical bits is broken by a value that the tolerance would accept.
    #[test]
    fn bits_are_stricter_than_the_tolerance() {
        let (found, expected) = (floats([1.0, 2.5, 3.0]), floats([1.0, 2.0, 3.0]));
        let buffer = buffer(Some((0.6, 0.0)));
        let strict = judge(&buffer, &found, &expected, true).expect("f32");
        assert!(matches!(
            strict,
            Verdict::Wrong {
                index: 1,
                within_tolerance: true,
                ..
            }
        ));
        let loose = judge(&buffer, &found, &expected, false).expect("f32");
        assert_eq!(
            loose,
            Verdict::Within {
                max_abs: 0.5,
                max_rel: 0.25
            }
        );
        assert!(loose.is_correct() && !strict.is_correct());
    }

    #[test]
    fn without_a_tolerance_every_bit_counts() {
        let (found, expected) = (floats([0.0, 2.0, 3.0]), floats([-0.0, 2.0, 3.0]));
        let verdict = judge(&buffer(None), &found, &expected, false).expect("f32");
        assert!(matches!(
            verdict,
            Verdict::Wrong {
                index: 0,
                within_tolerance: false,
                ..
            }
        ));
    }

    #[test]
    fn the_worse_verdict_wins() {
        let within = |a, r| Verdict::Within {
            max_abs: a,
            max_rel: r,
        };
        assert_eq!(
            worse(Verdict::Identical, within(1.0, 2.0)),
            within(1.0, 2.0)
        );
        assert_eq!(worse(within(1.0, 2.0), within(3.0, 0.5)), within(3.0, 2.0));
        let bad = Verdict::Corrupts { what: "x".into() };
        assert_eq!(worse(within(1.0, 2.0), bad.clone()), bad);
    }
}
