//! The approximate functions, computed in double precision and rounded once: well inside every
//! error bound that the PTX ISA states, but not the hardware's own bits. Kernels that use them are
//! marked, and comparisons of their outputs need a tolerance.

use super::float::Real;

/// The approximate functions of one operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are the instructions'")]
pub enum Function {
    Ex2,
    Lg2,
    Rcp,
    Rsqrt,
    Sqrt,
    Sin,
    Cos,
    Tanh,
}

impl Function {
    /// The function of this instruction name.
    pub fn parse(text: &str) -> Option<Function> {
        Some(match text {
            "ex2" => Function::Ex2,
            "lg2" => Function::Lg2,
            "rcp" => Function::Rcp,
            "rsqrt" => Function::Rsqrt,
            "sqrt" => Function::Sqrt,
            "sin" => Function::Sin,
            "cos" => Function::Cos,
            "tanh" => Function::Tanh,
            _ => return None,
        })
    }

    fn of(self, x: f64) -> f64 {
        match self {
            Function::Ex2 => x.exp2(),
            Function::Lg2 => x.log2(),
            Function::Rcp => 1.0 / x,
            Function::Rsqrt => 1.0 / x.sqrt(),
            Function::Sqrt => x.sqrt(),
            Function::Sin => x.sin(),
            Function::Cos => x.cos(),
            Function::Tanh => x.tanh(),
        }
    }

    /// The function of a value; NaNs are as [`Real::invalid`] says, `.ftz` flushes input and result.
    pub fn apply<T: Real>(self, ftz: bool, x: T) -> T {
        if x.to_f64().is_nan() {
            return T::invalid([x; 3]);
        }
        let x = if ftz { x.flushed() } else { x };
        let result = round_to::<T>(self.of(x.to_f64()));
        if ftz { result.flushed() } else { result }
    }
}

fn round_to<T: Real>(x: f64) -> T {
    T::pack(super::Round::NearestEven, super::narrow::value_of(x))
}

/// `div.approx.f32` and `div.full.f32`. `approx` (`full` false) delivers zero for divisors above
/// 2^126, and NaN if the dividend is infinite too.
pub fn div(full: bool, ftz: bool, a: f32, b: f32) -> f32 {
    let (a, b) = if ftz {
        (a.flushed(), b.flushed())
    } else {
        (a, b)
    };
    let huge = b.is_finite() && b.abs() > f32::from_bits(0x7e80_0000);
    let quotient = match (full, huge) {
        (false, true) if a.is_infinite() || a.is_nan() => f32::NAN,
        (false, true) => f32::copysign(0.0, a) * b.signum(),
        _ => a / b,
    };
    let quotient = quotient.canonical();
    if ftz { quotient.flushed() } else { quotient }
}

/// `rcp.approx.ftz.f64` and `rsqrt.approx.ftz.f64`: work on the upper 32 bits; the lower ones are
/// ignored in the operand and zero in the result.
pub fn gross_f64(function: Function, x: f64) -> f64 {
    let upper = |x: f64| f64::from_bits(x.to_bits() & !0xffff_ffff).flushed();
    let result = function.of(upper(x));
    if result.is_nan() {
        return f64::from_bits(0x7fff_ffff_0000_0000);
    }
    upper(result)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arith::narrow::F16;

    fn f(function: Function, x: f32) -> f32 {
        function.apply(false, x)
    }

    #[test]
    fn special_values_follow_the_tables() {
        assert_eq!(f(Function::Ex2, f32::NEG_INFINITY), 0.0);
        assert_eq!(f(Function::Ex2, -0.0), 1.0);
        assert_eq!(f(Function::Lg2, -0.0), f32::NEG_INFINITY);
        assert_eq!(f(Function::Lg2, -1.0).to_bits(), 0x7fff_ffff);
        assert_eq!(f(Function::Rcp, -0.0), f32::NEG_INFINITY);
        assert_eq!(f(Function::Rsqrt, -0.0), f32::NEG_INFINITY);
        assert_eq!(f(Function::Rsqrt, f32::INFINITY), 0.0);
        assert_eq!(f(Function::Sqrt, -0.0).to_bits(), (-0f32).to_bits());
        assert_eq!(f(Function::Sin, f32::INFINITY).to_bits(), 0x7fff_ffff);
        assert_eq!(f(Function::Sin, -0.0).to_bits(), (-0f32).to_bits());
        assert_eq!(f(Function::Cos, 0.0), 1.0);
        assert_eq!(f(Function::Tanh, f32::NEG_INFINITY), -1.0);
        assert_eq!(Function::Rcp.apply(true, f32::from_bits(1)), f32::INFINITY);
        assert_eq!(Function::Ex2.apply(true, -127f32), 0.0);
        assert_eq!(Function::Tanh.apply(false, F16(0x7c00)), F16(0x3c00));
    }

    #[test]
    fn division_by_huge_numbers_vanishes() {
        let huge = f32::from_bits(0x7e80_0001);
        assert_eq!(div(false, false, 1e38, huge), 0.0);
        assert!(div(false, false, f32::INFINITY, huge).is_nan());
        assert!(div(true, false, 1e38, huge) > 0.0);
        assert_eq!(div(false, false, 6.0, -2.0), -3.0);
    }

    #[test]
    fn errors_stay_inside_the_documented_bounds() {
        // The loosest way to be wrong is a wrong function; a wide sample shows it.
        for i in 1..20_000 {
            let x = i as f32 * 0.013;
            let relative = |got: f32, want: f64| ((got as f64 - want) / want).abs();
            assert!(relative(f(Function::Rcp, x), 1.0 / x as f64) < 2f64.powi(-23));
            assert!(relative(f(Function::Rsqrt, x), 1.0 / (x as f64).sqrt()) < 2f64.powf(-22.4));
            let y = x % 16.0 - 8.0;
            assert!(relative(f(Function::Ex2, y), 2f64.powf(y as f64)) < 2f64.powi(-22));
        }
    }

    #[test]
    fn gross_doubles_drop_the_lower_word() {
        let r = gross_f64(Function::Rcp, f64::from_bits(3f64.to_bits() | 0x1234));
        assert_eq!(r.to_bits(), (1f64 / 3.0).to_bits() & !0xffff_ffff);
        assert_eq!(gross_f64(Function::Rcp, f64::from_bits(5)), f64::INFINITY);
        let nan = gross_f64(Function::Rsqrt, -1.0);
        assert_eq!(nan.to_bits(), 0x7fff_ffff_0000_0000);
    }
}
