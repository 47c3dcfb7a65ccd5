//! Against LLVM's arbitrary-format floating point (through `rustc_apfloat`), an independent
//! implementation by other means, and for square roots against exact integers.

use super::*;
use crate::arith::sample::Sample;
use rustc_apfloat::Float;
use rustc_apfloat::ieee::{BFloat, Double, Half, Single};

fn theirs(mode: Round) -> rustc_apfloat::Round {
    match mode {
        Round::NearestEven => rustc_apfloat::Round::NearestTiesToEven,
        Round::NearestAway => rustc_apfloat::Round::NearestTiesToAway,
        Round::Zero => rustc_apfloat::Round::TowardZero,
        Round::Down => rustc_apfloat::Round::TowardNegative,
        Round::Up => rustc_apfloat::Round::TowardPositive,
    }
}

fn bits<F: Float>(format: Format, x: F) -> u64 {
    if x.is_nan() {
        format.nan()
    } else {
        x.to_bits() as u64
    }
}

/// All operations on three operands in all modes.
fn agree<F: Float>(format: Format, a: u64, b: u64, c: u64) {
    let [a, b, c] = [a, b, c].map(|x| x & (u64::MAX >> (64 - format.width())));
    let [x, y, z] = [a, b, c].map(|bits| F::from_bits(bits as u128));
    let [u, v, w] = [a, b, c].map(|bits| format.unpack(bits));
    for mode in Round::ALL {
        let r = theirs(mode);
        let results = [
            ("add", u.add(v, mode), x.add_r(y, r).value),
            ("mul", u.mul(v), x.mul_r(y, r).value),
            ("div", u.div(v), x.div_r(y, r).value),
            ("fma", u.fma(v, w, mode), x.mul_add_r(y, z, r).value),
        ];
        for (name, ours, theirs) in results {
            assert_eq!(
                format.pack(mode, ours),
                bits(format, theirs),
                "{name} {mode:?} {a:#x} {b:#x} {c:#x}"
            );
        }
    }
}

/// The root's square brackets the operand, in the given mode, by integers alone.
fn sqrt_is_right(format: Format, a: u64) {
    let value = format.unpack(a);
    let Value::Finite {
        neg: false,
        exp,
        sig,
    } = value
    else {
        return;
    };
    let code = |mode| format.pack(mode, value.sqrt());
    let (down, up) = (code(Round::Down), code(Round::Up));
    // Compares a code's square with the operand, both as integers over a common exponent.
    let order = |code: u64, halves: u128| {
        let Value::Finite {
            exp: re, sig: rs, ..
        } = format.unpack(code)
        else {
            return std::cmp::Ordering::Less;
        };
        let (square, square_exp) = ((2 * rs + halves).pow(2), 2 * re - 2);
        match square_exp - exp {
            d if d >= 0 => (square << d).cmp(&sig),
            d => square.cmp(&(sig << -d)),
        }
    };
    assert_ne!(order(down, 0), std::cmp::Ordering::Greater, "{a:#x}");
    assert_ne!(order(up, 0), std::cmp::Ordering::Less, "{a:#x}");
    assert!(up - down <= 1, "{a:#x}");
    assert_eq!(code(Round::Zero), down);
    let nearer = if order(down, 1) == std::cmp::Ordering::Less {
        up
    } else {
        down
    };
    assert_eq!(code(Round::NearestEven), nearer, "{a:#x}");
}

#[test]
fn every_format_and_mode_agrees() {
    let mut sample = Sample::new(1);
    for _ in 0..150_000 {
        let [a, b, c] = [(); 3].map(|()| sample.operand());
        agree::<Half>(F16, a, b, c);
        agree::<BFloat>(BF16, a, b, c);
        agree::<Single>(F32, a, b, c);
        agree::<Double>(F64, a, b, c);
    }
}

#[test]
fn cancellation_agrees() {
    let mut sample = Sample::new(2);
    for _ in 0..80_000 {
        let a = sample.operand();
        let (b, c) = (sample.near(a), sample.operand());
        agree::<Half>(F16, a, b, c);
        agree::<Single>(F32, a, b, c);
        agree::<Double>(F64, a, b, c);
        // a * 1 - b: the product against its near equal.
        agree::<Double>(F64, a, 0x3ff0_0000_0000_0000, b);
        agree::<Single>(F32, a, 0x3f80_0001, b);
    }
}

#[test]
fn square_roots_bracket() {
    let mut sample = Sample::new(3);
    for _ in 0..1_000_000 {
        let a = sample.operand();
        sqrt_is_right(F32, a & 0x7fff_ffff);
        sqrt_is_right(F64, a & (u64::MAX >> 1));
    }
}

#[test]
fn sixteen_bit_roots_are_right_without_exception() {
    for a in 0..0x8000 {
        sqrt_is_right(F16, a);
        sqrt_is_right(BF16, a);
    }
}

#[test]
fn small_formats_list_their_numbers() {
    let value = |format: Format, code| match format.unpack(code) {
        Value::Finite { exp, sig, .. } => sig as f64 * 2f64.powi(exp),
        _ => 0.0,
    };
    let e2m1: Vec<f64> = (0..8).map(|c| value(E2M1, c)).collect();
    assert_eq!(e2m1, [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]);
    assert_eq!(value(E4M3, 0x7e), 448.0);
    assert_eq!(value(E5M2, 0x7b), 57344.0);
    assert_eq!(value(E2M3, 0x1f), 7.5);
    assert_eq!(value(E3M2, 0x1f), 28.0);
    for format in [E4M3, E5M2, E2M3, E3M2, E2M1, TF32, F16, BF16] {
        for code in 0..1 << format.width() {
            let value = format.unpack(code);
            if value != Value::Nan {
                assert_eq!(format.pack(Round::NearestEven, value), code, "{format:?}");
            }
        }
    }
}
