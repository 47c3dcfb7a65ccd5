//! Floating-point immediates as nvdisasm writes them, and back to bits.
//!
//! Twenty significant digits with trailing zeros dropped, as C's `%.20g`; from 10^9 on as `%.20e`
//! (compared with nvdisasm 13.5 on 20,000 random numbers). Infinities and NaNs are words with a sign;
//! a NaN's payload is not written.

/// The format of an immediate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Float {
    /// Half precision, 16 bits.
    F16,
    /// bfloat16, 16 bits.
    Bf16,
    /// Single precision, 32 bits.
    F32,
    /// The upper 32 bits of a double.
    F64,
}

impl Float {
    /// All formats, for a search.
    pub const ALL: [Float; 4] = [Float::F16, Float::Bf16, Float::F32, Float::F64];

    /// Bits of the encoded field.
    pub fn width(self) -> u32 {
        match self {
            Float::F16 | Float::Bf16 => 16,
            Float::F32 | Float::F64 => 32,
        }
    }

    fn value(self, bits: u64) -> f64 {
        match self {
            Float::F16 => half(bits as u16),
            Float::Bf16 => f64::from(f32::from_bits((bits as u32 & 0xffff) << 16)),
            Float::F32 => f64::from(f32::from_bits(bits as u32)),
            Float::F64 => f64::from_bits(bits << 32),
        }
    }

    /// Mantissa bits that are encoded.
    fn mantissa(self) -> u32 {
        match self {
            Float::F16 => 10,
            Float::Bf16 => 7,
            Float::F32 => 23,
            Float::F64 => 20,
        }
    }

    /// The text of an encoded value.
    pub fn print(self, bits: u64, out: &mut String) {
        let value = self.value(bits);
        if value.is_finite() {
            return general(value, out);
        }
        let negative = bits >> (self.width() - 1) & 1 != 0;
        out.push(if negative { '-' } else { '+' });
        let quiet = bits >> (self.mantissa() - 1) & 1 != 0;
        out.push_str(match (value.is_nan(), quiet) {
            (false, _) => "INF",
            (true, true) => "QNAN",
            (true, false) => "SNAN",
        });
    }

    /// The encoded value that is written like `text`, if there is one.
    pub fn parse(self, text: &str) -> Option<u64> {
        let (negative, word) = match text.as_bytes().first()? {
            b'-' => (true, &text[1..]),
            b'+' => (false, &text[1..]),
            _ => (false, text),
        };
        let sign = u64::from(negative) << (self.width() - 1);
        let mantissa = self.mantissa();
        let exponent = ((1 << (self.width() - 1)) - 1) & !((1 << mantissa) - 1);
        match word {
            "INF" => return Some(sign | exponent),
            "QNAN" => return Some(sign | exponent | 1 << (mantissa - 1)),
            "SNAN" => return Some(sign | exponent | 1),
            _ => {}
        }
        let value: f64 = word
            .parse()
            .ok()
            .filter(|_| word.as_bytes()[0].is_ascii_digit())?;
        let bits = match self {
            Float::F64 => value.to_bits() >> 32,
            // The printed digits are enough to name the single-precision number.
            Float::F32 => u64::from((value as f32).to_bits()),
            Float::Bf16 => u64::from((value as f32).to_bits() >> 16),
            Float::F16 => encode_half(value),
        };
        Some(sign | bits)
    }
}

fn half(bits: u16) -> f64 {
    let exponent = i32::from(bits >> 10 & 0x1f);
    let mantissa = f64::from(bits & 0x3ff);
    let magnitude = match exponent {
        0 => mantissa * 2f64.powi(-24),
        31 if mantissa == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (1024.0 + mantissa) * 2f64.powi(exponent - 25),
    };
    if bits >> 15 != 0 {
        -magnitude
    } else {
        magnitude
    }
}

/// The half nearest below a non-negative `value`; exact for values that a half holds.
fn encode_half(value: f64) -> u64 {
    if value < 2f64.powi(-14) {
        return (value * 2f64.powi(24)) as u64;
    }
    let exponent = ((value.to_bits() >> 52) as i64 - 1023 + 15).min(31) as u64;
    exponent << 10 | value.to_bits() >> 42 & 0x3ff
}

/// `%.20g`, or `%.20e` for large values.
fn general(value: f64, out: &mut String) {
    const DIGITS: i32 = 20;
    if value.abs() >= 1e9 {
        let text = format!("{value:.20e}");
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        return scientific(digits, exponent.parse().unwrap_or(0), out);
    }
    if value == value.trunc() {
        let minus_zero = value == 0.0 && value.is_sign_negative();
        out.push_str(&if minus_zero {
            "-0.0".into()
        } else {
            format!("{value:.0}")
        });
        return;
    }
    let text = format!("{value:.19e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..DIGITS).contains(&exponent) {
        let places = (DIGITS - 1 - exponent).max(0) as usize;
        out.push_str(stripped(&format!("{value:.places$}")));
    } else {
        scientific(stripped(digits), exponent, out);
    }
}

fn stripped(digits: &str) -> &str {
    if !digits.contains('.') {
        return digits;
    }
    digits.trim_end_matches('0').trim_end_matches('.')
}

fn scientific(digits: &str, exponent: i32, out: &mut String) {
    let sign = if exponent < 0 { '-' } else { '+' };
    out.push_str(&format!("{digits}e{sign}{:02}", exponent.abs()));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(float: Float, bits: u64) -> String {
        let mut out = String::new();
        float.print(bits, &mut out);
        out
    }

    /// Texts as nvdisasm 13.5 printed them.
    #[test]
    fn immediates_read_as_nvdisasm_writes_them() {
        let cases = [
            (Float::F32, 0x4086_2e43, "4.1931471824645996094"),
            (Float::F32, 0xade2_1ec1, "-2.5706882803011588123e-11"),
            (Float::F32, 0x0040_0402, "5.8789094863358348022e-39"),
            (Float::F32, 0xcb40_0000, "-12582912"),
            (Float::F32, 0x4e6e_6b27, "999999936"),
            (Float::F32, 0x4e6e_6b28, "1.00000000000000000000e+09"),
            (Float::F32, 0x8000_0000, "-0.0"),
            (Float::F32, 0x7f80_0001, "+SNAN"),
            (Float::F32, 0x7f80_0000, "+INF"),
            (Float::F32, 0xffff_ffff, "-QNAN"),
            (Float::F64, 0x41e0_0000, "2.14748364800000000000e+09"),
            (Float::F64, 0x4143_a9de, "2577340"),
            (Float::F64, 0x0010_0000, "2.2250738585072013831e-308"),
            (Float::F64, 0xbfcb_923a, "-0.21539998054504394531"),
            (Float::F16, 0x1ca0, "0.0045166015625"),
            (Float::F16, 0x0001, "5.9604644775390625e-08"),
            (Float::Bf16, 0x3f80, "1"),
        ];
        for (float, bits, expected) in cases {
            assert_eq!(text(float, bits), expected);
        }
    }

    #[test]
    fn every_half_and_many_others_parse_back() {
        for bits in 0..0x1_0000u64 {
            for float in Float::ALL {
                let wide = if float.width() == 16 {
                    bits
                } else {
                    bits << 16 | bits
                };
                let read = text(float, wide);
                if read.ends_with("NAN") {
                    continue;
                }
                assert_eq!(float.parse(&read), Some(wide), "{float:?} {read}");
            }
        }
    }
}
