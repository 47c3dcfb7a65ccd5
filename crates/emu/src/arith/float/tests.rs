use super::*;
use crate::arith::sample::Sample;

fn soft_rn<T: Real>(op: &str, a: T, b: T, c: T) -> u64 {
    let (u, v, w) = (a.unpack(), b.unpack(), c.unpack());
    let rn = Round::NearestEven;
    let value = match op {
        "add" => u.add(v, rn),
        "sub" => u.add(v.negate(), rn),
        "mul" => u.mul(v),
        "div" => u.div(v),
        "sqrt" => u.sqrt(),
        _ => u.fma(v, w, rn),
    };
    T::FORMAT.pack(rn, value)
}

/// The fast paths against the integer ones.
fn fast_paths_agree<T: Real>(a: u64, b: u64, c: u64) {
    let [a, b, c] = [a, b, c].map(T::from_lane);
    let rn = Mode::RN;
    let results = [
        ("add", add(rn, a, b)),
        ("sub", sub(rn, a, b)),
        ("mul", mul(rn, a, b)),
        ("div", div(rn, a, b)),
        ("sqrt", sqrt(rn, a)),
        ("fma", fma(rn, a, b, c)),
    ];
    for (name, got) in results {
        let (x, y, z) = (a.to_lane(), b.to_lane(), c.to_lane());
        if got.is_nan() {
            // Whose NaN it is has a test of its own.
            assert!(T::from_lane(soft_rn(name, a, b, c)).is_nan());
            continue;
        }
        assert_eq!(
            got.to_lane(),
            soft_rn(name, a, b, c),
            "{name} {x:#x} {y:#x} {z:#x}"
        );
    }
}

/// Every pair of 16-bit patterns from a coarse grid with all specials.
fn grid() -> Vec<u64> {
    let mut all: Vec<u64> = (0..=0xffff).step_by(97).collect();
    all.extend([
        0, 1, 0x8000, 0x8001, 0x7c00, 0xfc00, 0x7f80, 0xff80, 0x7fff, 0x7bff, 0x7f7f, 0x3ff, 0x400,
        0x7f, 0x80,
    ]);
    all
}

#[test]
fn narrow_pairs_agree() {
    for &a in &grid() {
        for &b in &grid() {
            fast_paths_agree::<F16>(a, b, a ^ b.rotate_left(3) & 0xffff);
            fast_paths_agree::<Bf16>(a, b, a ^ b.rotate_left(3) & 0xffff);
        }
    }
}

#[test]
fn fast_paths_agree_everywhere() {
    let mut sample = Sample::new(4);
    for _ in 0..500_000 {
        let [a, b, c] = [(); 3].map(|()| sample.operand());
        fast_paths_agree::<F16>(a, b, c);
        fast_paths_agree::<Bf16>(a, b, c);
        fast_paths_agree::<f32>(a, b, c);
        fast_paths_agree::<f64>(a, b, sample.near(a));
    }
}

/// The last product bit against a far smaller addend: where double rounding would show.
#[test]
fn ties_are_broken_by_tiny_addends() {
    let mut sample = Sample::new(5);
    for _ in 0..600_000 {
        let bits = sample.bits();
        let (a, b, c) = (bits & 0xffff, bits >> 16 & 0xffff, bits >> 32 & 0xff81 | 1);
        fast_paths_agree::<Bf16>(a, b, c);
        fast_paths_agree::<F16>(a, b, c & 0x83ff);
    }
}

#[test]
fn nan_results_are_canonical() {
    let payload = f32::from_bits(0xffc1_2345);
    assert_eq!(add(Mode::RN, payload, 1.0).to_bits(), 0x7fff_ffff);
    assert_eq!(
        mul(Mode::RN, f64::INFINITY, 0.0).to_bits(),
        0xfff8_0000_0000_0000
    );
    assert_eq!(fma(Mode::RN, F16(0x7c01), F16(0), F16(0)).0, 0x7fff);
    assert_eq!(sqrt(Mode::RN, -1f32).to_bits(), 0x7fff_ffff);
}

#[test]
fn flushing_and_saturation() {
    let ftz = Mode {
        ftz: true,
        ..Mode::RN
    };
    let sat = Mode {
        sat: true,
        ..Mode::RN
    };
    let tiny = f32::from_bits(0x8000_0001);
    assert_eq!(add(ftz, tiny, -0.0).to_bits(), 0x8000_0000);
    assert_eq!(mul(ftz, f32::MIN_POSITIVE, 0.5).to_bits(), 0);
    assert_eq!(mul(Mode::RN, f32::MIN_POSITIVE, 0.5).to_bits(), 0x0040_0000);
    assert_eq!(add(sat, 5f32, 0.0), 1.0);
    assert_eq!(add(sat, -0f32, -0.0).to_bits(), 0);
    assert_eq!(add(sat, f32::NAN, 0.0).to_bits(), 0);
    assert_eq!(add(sat, 0.25f32, 0.5), 0.75);
}

#[test]
fn extremes_order_zeros_and_skip_nan() {
    let plain = Extreme::default();
    let nan = Extreme { nan: true, ..plain };
    let xor = Extreme {
        xorsign: true,
        ..plain
    };
    let min = |how, a: f32, b: f32| extreme(false, how, a, b).to_bits();
    let max = |how, a: f32, b: f32| extreme(true, how, a, b).to_bits();
    assert_eq!(min(plain, 0.0, -0.0), (-0f32).to_bits());
    assert_eq!(max(plain, -0.0, 0.0), 0);
    assert_eq!(min(plain, f32::NAN, 2.0), 2f32.to_bits());
    assert_eq!(max(plain, f32::NAN, f32::NAN), 0x7fff_ffff);
    assert_eq!(max(nan, 1.0, f32::NAN), 0x7fff_ffff);
    assert_eq!(max(xor, -3.0, 2.0), (-3f32).to_bits());
    assert_eq!(min(xor, -3.0, -2.0), 2f32.to_bits());
    assert_eq!(max(plain, f32::NEG_INFINITY, -1.0), (-1f32).to_bits());
}

#[test]
fn directed_modes_bracket_the_nearest() {
    let mode = |round| Mode { round, ..Mode::RN };
    assert_eq!(add(mode(Round::Up), 1f32, 1e-20), 1.0 + f32::EPSILON);
    assert_eq!(add(mode(Round::Down), 1f32, 1e-20), 1.0);
    assert_eq!(sub(mode(Round::Down), 1f32, 1.0).to_bits(), 0x8000_0000);
    assert_eq!(rcp(mode(Round::Zero), 3f64), 0.333_333_333_333_333_3);
    assert_eq!(mul(mode(Round::Up), f32::MAX, 2.0), f32::INFINITY);
    assert_eq!(mul(mode(Round::Zero), f32::MAX, 2.0), f32::MAX);
}

#[test]
fn classes() {
    assert!(testp(Test::Normal, 0f32) && !testp(Test::Subnormal, 0f32));
    assert!(testp(Test::Subnormal, f64::from_bits(1)) && !testp(Test::Normal, f64::from_bits(1)));
    assert!(testp(Test::Infinite, f32::NEG_INFINITY) && testp(Test::Number, f32::INFINITY));
    assert!(testp(Test::NotANumber, f32::NAN) && !testp(Test::Finite, f32::NAN));
    assert_eq!(copysign(-1f32, 3.0), -3.0);
    assert_eq!(
        abs(false, f32::from_bits(0xffc0_0001)).to_bits(),
        0x7fff_ffff
    );
}

#[test]
fn doubles_pass_the_first_nan_on() {
    let (p, q) = (
        f64::from_bits(0x7ff0_0000_0000_0001),
        f64::from_bits(0xfff8_1234_5678_9abc),
    );
    let quiet = 0x7ff8_0000_0000_0001;
    assert_eq!(add(Mode::RN, p, 1.0).to_bits(), quiet);
    assert_eq!(add(Mode::RN, p, q).to_bits(), q.to_bits());
    assert_eq!(sub(Mode::RN, 1.0, q).to_bits(), q.to_bits());
    assert_eq!(fma(Mode::RN, q, 1.0, p).to_bits(), quiet);
    assert_eq!(fma(Mode::RN, 1.0, q, p).to_bits(), q.to_bits());
    assert_eq!(div(Mode::RN, p, q).to_bits(), quiet);
    assert_eq!(neg(false, q).to_bits(), q.to_bits());
}

#[test]
fn tiny_is_decided_before_rounding() {
    let ftz = Mode {
        ftz: true,
        ..Mode::RN
    };
    let below_one = f32::from_bits(0x3f7f_ffff);
    assert_eq!(
        mul(Mode::RN, f32::MIN_POSITIVE, below_one),
        f32::MIN_POSITIVE
    );
    assert_eq!(mul(ftz, f32::MIN_POSITIVE, below_one), 0.0);
    assert_eq!(mul(ftz, f32::MIN_POSITIVE, 1.0), f32::MIN_POSITIVE);
    assert_eq!(
        fma(ftz, f32::MIN_POSITIVE, -below_one, 0.0).to_bits(),
        1 << 31
    );
}
