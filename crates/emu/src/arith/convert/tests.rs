use super::soft::{BF16, E2M1, E4M3, E5M2, F16, F32, F64};
use super::*;
use crate::arith::sample::Sample;

const S8: IntType = IntType {
    bits: 8,
    signed: true,
};
const U8: IntType = IntType {
    bits: 8,
    signed: false,
};
const S32: IntType = IntType {
    bits: 32,
    signed: true,
};
const U32: IntType = IntType {
    bits: 32,
    signed: false,
};
const S64: IntType = IntType {
    bits: 64,
    signed: true,
};
const U64: IntType = IntType {
    bits: 64,
    signed: false,
};

fn f32_to(to: IntType, round: Round, x: f32) -> u64 {
    float_to_int(F32, to, round, false, x.to_bits() as u64)
}

#[test]
fn nan_depends_on_the_widths() {
    let nan32 = f32::NAN.to_bits() as u64;
    let nan64 = f64::NAN.to_bits();
    assert_eq!(float_to_int(F32, S32, Round::Zero, false, nan32), 0);
    assert_eq!(float_to_int(F32, U32, Round::Zero, false, nan32), 0);
    assert_eq!(float_to_int(F32, S64, Round::Zero, false, nan32), 1 << 63);
    assert_eq!(float_to_int(F32, U64, Round::Zero, false, nan32), 1 << 63);
    assert_eq!(
        float_to_int(F64, S32, Round::Zero, false, nan64) as u32,
        1 << 31
    );
    assert_eq!(
        float_to_int(F64, U32, Round::Zero, false, nan64) as u32,
        1 << 31
    );
}

#[test]
fn integral_rounding_has_its_four_modes() {
    for (x, rni, rzi, rmi, rpi) in [
        (2.5f32, 2, 2, 2, 3),
        (-2.5, -2, -2, -3, -2),
        (3.5, 4, 3, 3, 4),
        (-0.2, 0, 0, -1, 0),
    ] {
        let got = [Round::NearestEven, Round::Zero, Round::Down, Round::Up]
            .map(|round| f32_to(S32, round, x) as i32);
        assert_eq!(got, [rni, rzi, rmi, rpi], "{x}");
        let whole = Finish {
            integral: true,
            ..Finish::default()
        };
        let bits = float_to_float(F32, F32, Round::Down, whole, x.to_bits() as u64);
        assert_eq!(f32::from_bits(bits as u32), x.floor());
    }
    let minus = float_to_float(
        F32,
        F32,
        Round::Zero,
        Finish {
            integral: true,
            ..Finish::default()
        },
        0xbf00_0000,
    );
    assert_eq!(minus, 0x8000_0000, "-0.5 becomes -0");
}

#[test]
fn narrow_integers_clamp_and_extend() {
    assert_eq!(f32_to(S8, Round::Zero, -300.0), -128i64 as u64);
    assert_eq!(f32_to(U8, Round::Zero, 300.0), 255);
    assert_eq!(int_to_int(S32, S8, false, 0x1ff), u64::MAX);
    assert_eq!(int_to_int(S32, U8, true, -5i32 as u32 as u64), 0);
    assert_eq!(int_to_int(U32, S8, true, 0xffff_ffff), 127);
}

#[test]
fn small_formats() {
    let to = |format, x: f32| {
        float_to_float(
            F32,
            format,
            Round::NearestEven,
            Finish {
                satfinite: true,
                ..Finish::default()
            },
            x.to_bits() as u64,
        )
    };
    assert_eq!(to(E4M3, 448.0), 0x7e);
    assert_eq!(to(E4M3, 1e9), 0x7e);
    assert_eq!(to(E4M3, f32::NAN), 0x7f);
    assert_eq!(to(E4M3, -f32::INFINITY), 0xfe);
    assert_eq!(to(E4M3, 0.001953125), 1);
    assert_eq!(to(E5M2, 1e9), 0x7b);
    assert_eq!(to(E5M2, f32::NAN), 0x7f);
    assert_eq!(to(E2M1, 5.1), 7);
    assert_eq!(to(E2M1, -0.5), 9);
    assert_eq!(
        float_to_float(
            F32,
            F16,
            Round::NearestEven,
            Finish::default(),
            1e9f32.to_bits() as u64
        ),
        0x7c00
    );
    assert_eq!(
        float_to_float(
            F32,
            F16,
            Round::NearestEven,
            Finish {
                relu: true,
                ..Finish::default()
            },
            (-1f32).to_bits() as u64
        ),
        0
    );
    assert_eq!(
        float_to_tf32(Round::NearestAway, Finish::default(), 0x3f80_1000),
        0x3f80_2000
    );
    assert_eq!(
        to_ue8m0(Round::Up, true, F32.unpack(3f32.to_bits() as u64)),
        129
    );
    for (x, satfinite, code) in [
        (3f32, true, 128),
        (-3f32, true, 128),
        (f32::NEG_INFINITY, true, 254),
        (f32::NEG_INFINITY, false, 255),
        (-0f32, false, 0),
    ] {
        let value = F32.unpack(x.to_bits() as u64);
        assert_eq!(to_ue8m0(Round::Zero, satfinite, value), code, "{x}");
    }
}

#[test]
fn packs_two_saturated_fields() {
    let s16 = IntType {
        bits: 16,
        signed: true,
    };
    assert_eq!(
        pack(s16, S32, 70000, -70000i32 as u32 as u64, 0),
        0x7fff_8000
    );
    assert_eq!(pack(U8, S32, 300, 7, 0x1122_3344), 0x3344_ff07);
}

/// The host's conversions, which round toward zero and saturate as PTX does.
#[test]
fn float_to_int_agrees_with_the_host() {
    let mut sample = Sample::new(6);
    for _ in 0..2_000_000 {
        let bits = sample.operand();
        let (x, y) = (f64::from_bits(bits), f32::from_bits(bits as u32));
        if !x.is_nan() {
            assert_eq!(
                float_to_int(F64, S64, Round::Zero, false, bits),
                x as i64 as u64
            );
            assert_eq!(
                float_to_int(F64, U32, Round::Zero, false, bits),
                x as u32 as u64
            );
            let down = float_to_int(F64, S32, Round::Down, false, bits) as i32;
            assert_eq!(down, x.floor() as i32);
            let even = float_to_int(F64, U64, Round::NearestEven, false, bits);
            assert_eq!(even, x.round_ties_even() as u64);
        }
        if !y.is_nan() {
            assert_eq!(
                float_to_int(F32, U64, Round::Zero, false, bits & 0xffff_ffff),
                y as u64
            );
            assert_eq!(
                float_to_int(F32, S8, Round::Up, false, bits & 0xffff_ffff) as i8,
                y.ceil() as i8
            );
        }
    }
}

#[test]
fn int_to_float_agrees_with_the_host() {
    let mut sample = Sample::new(6);
    for _ in 0..2_000_000 {
        let x = sample.operand();
        let rn = Round::NearestEven;
        assert_eq!(
            int_to_float(U64, F32, rn, false, x) as u32,
            (x as f32).to_bits()
        );
        assert_eq!(
            int_to_float(S64, F32, rn, false, x) as u32,
            (x as i64 as f32).to_bits()
        );
        assert_eq!(int_to_float(U64, F64, rn, false, x), (x as f64).to_bits());
        assert_eq!(
            int_to_float(S32, F64, Round::Down, false, x),
            (x as i32 as f64).to_bits()
        );
    }
}

#[test]
fn narrowing_agrees_with_the_host() {
    let mut sample = Sample::new(6);
    for _ in 0..2_000_000 {
        let bits = sample.operand();
        let x = f64::from_bits(bits);
        if !x.is_nan() {
            let got = float_to_float(F64, F32, Round::NearestEven, Finish::default(), bits);
            assert_eq!(got as u32, (x as f32).to_bits());
        }
        let y = f32::from_bits(bits as u32);
        if !y.is_nan() {
            // Truncation of the bits is rounding toward zero, for every bf16 number.
            let zero = float_to_float(
                F32,
                BF16,
                Round::Zero,
                Finish::default(),
                bits & 0xffff_ffff,
            );
            assert_eq!(zero, bits >> 16 & 0xffff);
        }
    }
}
