//! Functions that the CUDA runtime provides to device code.

use std::fmt::Write;

use super::access::{Target, Trouble};
use super::block::Block;
use super::warp::Warp;
use crate::fault::FaultKind;
use crate::lanes::{Lanes, Mask, WARP, lanes_of};
use crate::memory::shared::read_le;
use crate::program::{Access, AccessSpace, Arg, HostFunction, Src};

/// Longest string read from device memory.
const MAX_STRING: u64 = 1 << 16;

/// What a block may print, in bytes: as much as the device's buffer holds for a whole launch by default.
const MAX_PRINTED: usize = 1 << 20;

/// Adds to what was printed, as long as it fits; what does not is said once.
pub(super) fn print(printed: &mut String, text: &str, limit: usize) {
    const MORE: &str = "\n… more was printed than is kept\n";
    if printed.len() + text.len() <= limit {
        printed.push_str(text);
    } else if !printed.ends_with(MORE) {
        printed.push_str(MORE);
    }
}

impl Warp {
    /// Calls a host function for each lane.
    pub fn host_call(
        &mut self,
        block: &mut Block<'_>,
        frame: usize,
        mask: Mask,
        function: HostFunction,
        args: &[Arg],
        returns: &[Arg],
    ) -> Result<(), Box<Trouble>> {
        for lane in lanes_of(mask) {
            let arg = |warp: &Warp, block: &Block<'_>, i: usize| match args.get(i) {
                Some(Arg::Value(src)) => warp.value(block, frame, *src)[lane],
                Some(&Arg::Memory { offset, len }) => {
                    let bytes = warp
                        .frames
                        .get(frame)
                        .map(|f| f.param_bytes(lane, offset, len));
                    read_le(bytes.unwrap_or(&[]), 0, len.min(8) as usize)
                }
                None => 0,
            };
            let result = match function {
                HostFunction::Malloc => block.memory.malloc(arg(self, block, 0)),
                HostFunction::Free => 0,
                HostFunction::Printf => {
                    let (format, list) = (arg(self, block, 0), arg(self, block, 1));
                    let text = self.format(block, frame, lane, format, list)?;
                    print(&mut block.printed, &text, MAX_PRINTED);
                    text.len() as u64
                }
                HostFunction::AssertFail => {
                    let condition = self.string(block, frame, lane, arg(self, block, 0))?;
                    let file = self.string(block, frame, lane, arg(self, block, 1))?;
                    let line = arg(self, block, 2) as u32;
                    let message = format!("{file}:{line}: `{condition}` does not hold");
                    return Err(Trouble::new(FaultKind::Assertion, lane, message));
                }
            };
            match returns.first() {
                Some(&Arg::Memory { offset, len }) => {
                    if let Some(data) = self.frames.get_mut(frame) {
                        let bytes = &result.to_le_bytes()[..len.min(8) as usize];
                        data.private(super::frame::PrivateSpace::Param)
                            .paste(lane, offset, bytes);
                    }
                }
                Some(Arg::Value(Src::Reg(reg))) => {
                    let values: Lanes = [result; WARP];
                    self.set(frame, *reg, 1 << lane, &values);
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Reads a piece of memory through a generic address.
    fn peek(
        &mut self,
        block: &mut Block<'_>,
        frame: usize,
        lane: usize,
        address: u64,
        size: u32,
    ) -> Result<u64, Box<Trouble>> {
        let access = Access {
            space: AccessSpace::Generic,
            base: Src::Const(0),
            offset: 0,
            narrow: false,
            elem: size,
            count: 1,
            align: 1,
        };
        let target: Target<'_> = self.target(block, frame, lane, &access, address)?;
        (0..size).try_fold(0, |value, i| {
            Ok(value | self.read(block, target, lane, i as u64, 1)? << (8 * i))
        })
    }

    fn string(
        &mut self,
        block: &mut Block<'_>,
        frame: usize,
        lane: usize,
        address: u64,
    ) -> Result<String, Box<Trouble>> {
        let mut bytes = Vec::new();
        for i in 0..MAX_STRING {
            match self.peek(block, frame, lane, address.wrapping_add(i), 1)? as u8 {
                0 => break,
                byte => bytes.push(byte),
            }
        }
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// `vprintf`: arguments lie one after the other, each aligned to its size (4 or 8 bytes).
    fn format(
        &mut self,
        block: &mut Block<'_>,
        frame: usize,
        lane: usize,
        format: u64,
        mut list: u64,
    ) -> Result<String, Box<Trouble>> {
        let format = self.string(block, frame, lane, format)?;
        let mut out = String::new();
        let mut rest = format.as_str();
        while let Some(at) = rest.find('%') {
            out.push_str(&rest[..at]);
            rest = &rest[at + 1..];
            let end = rest.find(|c: char| "diouxXeEfFgGaAcsp%".contains(c));
            let Some(end) = end else {
                out.push('%');
                break;
            };
            let (flags, conversion) = (&rest[..end], rest.as_bytes()[end] as char);
            rest = &rest[end + 1..];
            if conversion == '%' {
                out.push('%');
                continue;
            }
            let mut take = |warp: &mut Warp, block: &mut Block<'_>, size: u32| {
                list = list.wrapping_add(size as u64 - 1) & !(size as u64 - 1);
                let value = warp.peek(block, frame, lane, list, size)?;
                list = list.wrapping_add(size as u64);
                Ok::<u64, Box<Trouble>>(value)
            };
            let mut spec = Spec::parse(flags);
            if spec.width == Width::Argument {
                spec.width = Width::Fixed(take(self, block, 4)? as i32);
            }
            if spec.precision == Some(Width::Argument) {
                spec.precision = Some(Width::Fixed(take(self, block, 4)? as i32));
            }
            let wide = spec.wide || "eEfFgGaAsp".contains(conversion);
            let value = take(self, block, if wide { 8 } else { 4 })?;
            let text = match conversion {
                's' => self.string(block, frame, lane, value)?,
                _ => spec.number(conversion, value),
            };
            out.push_str(&spec.pad(conversion, text));
        }
        out.push_str(rest);
        Ok(out)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Width {
    Fixed(i32),
    Argument,
}

/// A conversion specification between `%` and its letter.
struct Spec {
    left: bool,
    plus: bool,
    space: bool,
    alternate: bool,
    zero: bool,
    width: Width,
    precision: Option<Width>,
    wide: bool,
}

impl Spec {
    fn parse(text: &str) -> Spec {
        let body = text.trim_start_matches(['-', '+', ' ', '#', '0']);
        let flags = &text[..text.len() - body.len()];
        let sizes = body.trim_end_matches(['h', 'l', 'L', 'z', 'j', 't']);
        let (width, precision) = match sizes.split_once('.') {
            Some((width, precision)) => (width, Some(precision)),
            None => (sizes, None),
        };
        let number = |text: &str| match text {
            "*" => Width::Argument,
            digits => Width::Fixed(digits.parse().unwrap_or(0)),
        };
        Spec {
            left: flags.contains('-'),
            plus: flags.contains('+'),
            space: flags.contains(' '),
            alternate: flags.contains('#'),
            zero: flags.contains('0'),
            width: number(width),
            precision: precision.map(number),
            wide: body[sizes.len()..].contains(['l', 'z', 'j', 't']),
        }
    }

    fn digits(&self) -> Option<usize> {
        match self.precision {
            Some(Width::Fixed(n)) => usize::try_from(n).ok(),
            _ => None,
        }
    }

    fn number(&self, conversion: char, value: u64) -> String {
        let signed = if self.wide {
            value as i64
        } else {
            value as i32 as i64
        };
        let unsigned = if self.wide {
            value
        } else {
            value as u32 as u64
        };
        let least = self.digits().unwrap_or(1);
        let sign = |neg: bool| match (neg, self.plus, self.space) {
            (true, ..) => "-",
            (_, true, _) => "+",
            (_, _, true) => " ",
            _ => "",
        };
        let prefix = |text: &'static str| {
            if self.alternate && unsigned != 0 {
                text
            } else {
                ""
            }
        };
        match conversion {
            'd' | 'i' => format!(
                "{}{:0>least$}",
                sign(signed < 0),
                signed.unsigned_abs().to_string()
            ),
            'u' => format!("{unsigned:0>least$}"),
            'o' => format!("{}{:0>least$}", prefix("0"), format!("{unsigned:o}")),
            'x' => format!("{}{:0>least$}", prefix("0x"), format!("{unsigned:x}")),
            'X' => format!("{}{:0>least$}", prefix("0X"), format!("{unsigned:X}")),
            'c' => ((value as u8) as char).to_string(),
            'p' => format!("{value:#x}"),
            _ => {
                let x = f64::from_bits(value);
                let body = float(
                    conversion,
                    x.abs(),
                    self.digits().unwrap_or(6),
                    self.alternate,
                );
                format!("{}{body}", sign(x.is_sign_negative()))
            }
        }
    }

    fn pad(&self, conversion: char, text: String) -> String {
        let text = match (conversion, self.digits()) {
            ('s', Some(most)) => text.chars().take(most).collect(),
            _ => text,
        };
        let Width::Fixed(width) = self.width else {
            return text;
        };
        let missing = (width.unsigned_abs() as usize).saturating_sub(text.chars().count());
        let integer_with_precision = "diouxX".contains(conversion) && self.precision.is_some();
        let finite = !text.contains("nan") && !text.contains("inf");
        let mut out = String::new();
        if self.left || width < 0 {
            let _ = write!(out, "{text}{}", " ".repeat(missing));
        } else if self.zero && !"csp".contains(conversion) && !integer_with_precision && finite {
            let at = text.find(|c: char| !"+- ".contains(c)).unwrap_or(0);
            let at = if text[at..].starts_with("0x") || text[at..].starts_with("0X") {
                at + 2
            } else {
                at
            };
            let _ = write!(out, "{}{}{}", &text[..at], "0".repeat(missing), &text[at..]);
        } else {
            let _ = write!(out, "{}{text}", " ".repeat(missing));
        }
        out
    }
}

/// A non-negative number in C's `%e`, `%f`, `%g` or `%a` form.
fn float(conversion: char, x: f64, precision: usize, alternate: bool) -> String {
    let upper = conversion.is_ascii_uppercase();
    let text = match conversion.to_ascii_lowercase() {
        _ if x.is_nan() => "nan".to_owned(),
        _ if x.is_infinite() => "inf".to_owned(),
        'f' => format!("{x:.precision$}"),
        'e' => exponent(x, precision),
        'a' => hexadecimal(x),
        _ => {
            let precision = precision.max(1);
            let scientific = exponent(x, precision - 1);
            let power: i32 = scientific
                .split('e')
                .nth(1)
                .and_then(|e| e.parse().ok())
                .unwrap_or(0);
            let trim = |s: &str| match s.contains('.') && !alternate {
                true => s.trim_end_matches('0').trim_end_matches('.').to_owned(),
                false => s.to_owned(),
            };
            if power < -4 || power >= precision as i32 {
                let (mantissa, tail) = scientific.split_once('e').unwrap_or((&scientific, "+00"));
                format!("{}e{tail}", trim(mantissa))
            } else {
                trim(&format!(
                    "{x:.*}",
                    (precision as i32 - 1 - power).max(0) as usize
                ))
            }
        }
    };
    if upper { text.to_uppercase() } else { text }
}

/// `d.ddde±dd`
fn exponent(x: f64, precision: usize) -> String {
    let text = format!("{x:.precision$e}");
    let (mantissa, power) = text.split_once('e').unwrap_or((&text, "0"));
    let power: i32 = power.parse().unwrap_or(0);
    let sign = if power < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", power.abs())
}

/// `0xh.hhhp±d`
fn hexadecimal(x: f64) -> String {
    let bits = x.to_bits();
    let (field, fraction) = ((bits >> 52) as i32, bits & ((1 << 52) - 1));
    let (lead, power) = match (field, fraction) {
        (0, 0) => (0, 0),
        (0, _) => (0, -1022),
        (e, _) => (1, e - 1023),
    };
    let digits = format!("{fraction:013x}");
    let digits = digits.trim_end_matches('0');
    let point = if digits.is_empty() { "" } else { "." };
    format!("0x{lead}{point}{digits}p{power:+}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn print(spec: &str, value: u64) -> String {
        let (flags, conversion) = spec.split_at(spec.len() - 1);
        let spec = Spec::parse(flags);
        let conversion = conversion.chars().next().unwrap();
        spec.pad(conversion, spec.number(conversion, value))
    }

    #[test]
    fn integers_print_as_in_c() {
        assert_eq!(print("d", -5i32 as u32 as u64), "-5");
        assert_eq!(print("05d", 42), "00042");
        assert_eq!(print("-5d", 42), "42   ");
        assert_eq!(print("+.3d", 7), "+007");
        assert_eq!(print("#x", 255), "0xff");
        assert_eq!(print("#010x", 255), "0x000000ff");
        assert_eq!(print("llu", u64::MAX), "18446744073709551615");
        assert_eq!(print("u", u64::MAX), "4294967295");
        assert_eq!(print("c", 65), "A");
    }

    #[test]
    fn floats_print_as_in_c() {
        let f = |spec: &str, x: f64| print(spec, x.to_bits());
        assert_eq!(f("f", 1.5), "1.500000");
        assert_eq!(f("8.2f", -2.71), "   -2.71");
        assert_eq!(f("e", 12345.678), "1.234568e+04");
        assert_eq!(f("g", 0.0001), "0.0001");
        assert_eq!(f("g", 1e10), "1e+10");
        assert_eq!(f("g", 100000.0), "100000");
        assert_eq!(f("G", 1e-10), "1E-10");
        assert_eq!(f("a", 1.5), "0x1.8p+0");
        assert_eq!(f("06.1f", -2.5), "-002.5");
        assert_eq!(f("f", f64::NAN.copysign(-1.0)), "-nan");
    }
}
