//! Puts under Heston's model from Lewis's integral (2001), with the characteristic function in
//! its form with hyperbolic functions. The trapezoidal rule converges geometrically here: the
//! integrand is analytic in a strip around the real axis.

use std::ops::{Add, Div, Mul, Neg, Sub};

use rayon::prelude::*;

use crate::data::{Data, Output, floats};

#[derive(Clone, Copy)]
struct Complex(f64, f64);

const ONE: Complex = Complex(1.0, 0.0);
const I: Complex = Complex(0.0, 1.0);

impl Add for Complex {
    type Output = Complex;
    fn add(self, other: Complex) -> Complex {
        Complex(self.0 + other.0, self.1 + other.1)
    }
}

impl Neg for Complex {
    type Output = Complex;
    fn neg(self) -> Complex {
        Complex(-self.0, -self.1)
    }
}

impl Sub for Complex {
    type Output = Complex;
    fn sub(self, other: Complex) -> Complex {
        self + -other
    }
}

impl Mul for Complex {
    type Output = Complex;
    fn mul(self, other: Complex) -> Complex {
        let (re, im) = (
            self.0 * other.0 - self.1 * other.1,
            self.0 * other.1 + self.1 * other.0,
        );
        Complex(re, im)
    }
}

impl Mul<Complex> for f64 {
    type Output = Complex;
    fn mul(self, other: Complex) -> Complex {
        Complex(self * other.0, self * other.1)
    }
}

impl Div for Complex {
    type Output = Complex;
    fn div(self, other: Complex) -> Complex {
        let conjugate = Complex(other.0, -other.1);
        1.0 / (other * conjugate).0 * (self * conjugate)
    }
}

impl Complex {
    fn exp(self) -> Complex {
        self.0.exp() * Complex(self.1.cos(), self.1.sin())
    }

    fn ln(self) -> Complex {
        Complex(self.0.hypot(self.1).ln(), self.1.atan2(self.0))
    }

    fn sqrt(self) -> Complex {
        (0.5 * self.ln()).exp()
    }
}

/// Variance now, its mean in the long run, its reversion and volatility, and its correlation.
#[derive(Clone, Copy)]
struct Model {
    variance: f64,
    mean: f64,
    reversion: f64,
    volatility: f64,
    correlation: f64,
}

impl Model {
    /// E[(price / forward)^(i z)] at time t.
    fn characteristic(&self, t: f64, z: Complex) -> Complex {
        let v2 = self.volatility * self.volatility;
        let pull = Complex(self.reversion, 0.0) - self.correlation * self.volatility * (I * z);
        let convexity = z * z + I * z;
        let d = (pull * pull + v2 * convexity).sqrt();
        // cosh and sinh of d t / 2, over e^(d t / 2).
        let decay = (-t * d).exp();
        let (cosh, sinh) = (0.5 * (ONE + decay), 0.5 * (ONE - decay));
        let power = 2.0 * self.reversion * self.mean / v2;
        let base = 0.5 * t * d + (cosh + pull / d * sinh).ln();
        let level = self.variance * (convexity * sinh) / (d * cosh + pull * sinh);
        (0.5 * power * t * pull - power * base - level).exp()
    }

    /// Undiscounted put over strike, for the logarithm of forward over strike.
    fn put(&self, t: f64, moneyness: f64) -> f64 {
        const STEP: f64 = 0.1;
        const POINTS: usize = 3000;
        let value = |k: usize| {
            let u = k as f64 * STEP;
            let shifted = self.characteristic(t, Complex(u, -0.5));
            let turned = Complex(0.0, u * moneyness).exp() * shifted;
            turned.0 / (u * u + 0.25) * if k == 0 { 0.5 } else { 1.0 }
        };
        let integral: f64 = STEP * (0..POINTS).map(value).sum::<f64>();
        1.0 - (moneyness / 2.0).exp() / std::f64::consts::PI * integral
    }
}

pub(crate) fn reference(data: &Data<'_>) -> Option<Vec<Output>> {
    let n = data.param("n")?;
    let (model, maturity) = (data.floats("model")?, data.floats("maturity")?);
    let moneyness = data.floats("moneyness")?;
    let price = |at: usize| {
        let (strike, id) = (at / n, at % n);
        let model = Model {
            variance: model[id],
            mean: model[n + id],
            reversion: model[2 * n + id],
            volatility: model[3 * n + id],
            correlation: model[4 * n + id],
        };
        model.put(maturity[id], moneyness[strike])
    };
    let puts = (0..moneyness.len() * n).into_par_iter().map(price);
    Some(vec![floats("put", puts.collect())])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The normal distribution by Simpson's rule.
    fn normal(x: f64) -> f64 {
        let density = |y: f64| (-y * y / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt();
        let h = x / 2000.0;
        let weight = |k: usize| match k {
            0 | 2000 => 1.0,
            _ if k % 2 == 1 => 4.0,
            _ => 2.0,
        };
        let sum: f64 = (0..=2000).map(|k| weight(k) * density(k as f64 * h)).sum();
        0.5 + h / 3.0 * sum
    }

    #[test]
    fn with_steady_variance_the_price_is_that_of_black() {
        let (variance, t, moneyness) = (0.04, 1.5, 0.1);
        let model = Model {
            variance,
            mean: variance,
            reversion: 1.0,
            volatility: 1e-4,
            correlation: 0.0,
        };
        let deviation = f64::sqrt(variance * t);
        let d1 = moneyness / deviation + deviation / 2.0;
        let black = normal(deviation - d1) - moneyness.exp() * normal(-d1);
        let put = model.put(t, moneyness);
        assert!((put - black).abs() < 1e-7, "{put} {black}");
    }
}
