//! Constant expressions (PTX ISA, 'Constants' and 'Constant Expressions'), evaluated as they are
//! read.
//!
//! Integers are 64 bits wide, signed or unsigned; floating-point constants are doubles, or the
//! exact bits of a single (`0f…`), which take part in no arithmetic. Where the document and ptxas
//! differ, ptxas decides what runs: shifts count modulo 64, `%` is always unsigned, `& ^ |` are
//! signed where both sides are, `? :` has the type of the side chosen, and what ptxas refuses is
//! refused. `warpwright-fuzz constants` holds this file against ptxas.

use super::{Failed, Parse, Parser};
use crate::Span;
use crate::ir::Imm;
use crate::syntax::Kind;

/// Lanes of a warp: the value of `WARP_SZ`.
const WARP_SZ: i64 = warpwright_target::WARP_SIZE as i64;

/// Registers of one range; more than any compiler writes, few enough for memory.
const MAX_RANGE: i64 = 1 << 24;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Op {
    Mul,
    Div,
    Rem,
    Add,
    Sub,
    Shl,
    Shr,
    Lt,
    Le,
    Gt,
    Ge,
    Eq,
    Ne,
    And,
    Xor,
    Or,
    AndAnd,
    OrOr,
}

impl Op {
    /// Binding strength, as in C; larger binds tighter.
    fn precedence(self) -> u8 {
        match self {
            Op::Mul | Op::Div | Op::Rem => 10,
            Op::Add | Op::Sub => 9,
            Op::Shl | Op::Shr => 8,
            Op::Lt | Op::Le | Op::Gt | Op::Ge => 7,
            Op::Eq | Op::Ne => 6,
            Op::And => 5,
            Op::Xor => 4,
            Op::Or => 3,
            Op::AndAnd => 2,
            Op::OrOr => 1,
        }
    }
}

const fn int(value: i64) -> Imm {
    Imm::Int {
        value,
        unsigned: false,
    }
}

impl Parser<'_> {
    /// A constant expression.
    pub(super) fn constant(&mut self) -> Parse<Imm> {
        // Nearly all are single numbers.
        if self.kind() == Kind::Number && !self.operator_follows() {
            return self.number();
        }
        let start = self.span().start;
        self.nested(|p| {
            let condition = p.binary(1)?;
            if !p.eat(Kind::Question) {
                return Ok(condition);
            }
            let yes = p.constant()?;
            p.expect(Kind::Colon, "`:` of a conditional expression")?;
            let no = p.constant()?;
            match (condition, yes, no) {
                (Imm::Int { value, .. }, Imm::Int { .. }, Imm::Int { .. }) => {
                    Ok(if value != 0 { yes } else { no })
                }
                _ => {
                    let message = "`? :` chooses between integers";
                    p.fail("ptx::constant", message, p.since(start), "floating point")
                }
            }
        })
    }

    fn operator_follows(&self) -> bool {
        let next = self.kind_after();
        !matches!(
            next,
            Kind::Comma | Kind::Semi | Kind::RBrace | Kind::RBracket | Kind::RParen
        )
    }

    /// A constant expression that must be an integer.
    pub(super) fn integer(&mut self) -> Parse<i64> {
        let start = self.span().start;
        match self.constant()? {
            Imm::Int { value, .. } => Ok(value),
            _ => {
                let span = self.since(start);
                self.fail(
                    "ptx::constant",
                    "expected an integer",
                    span,
                    "this is floating point",
                )
            }
        }
    }

    /// An integer between 0 and 2³² - 1.
    pub(super) fn integer32(&mut self) -> Parse<u32> {
        let start = self.span().start;
        let value = self.integer()?;
        match u32::try_from(value) {
            Ok(value) => Ok(value),
            Err(_) => {
                let span = self.since(start);
                let message = format!("{value} is out of range");
                self.fail("ptx::constant", message, span, "expected 0 to 4294967295")
            }
        }
    }

    /// The size of a register range, up to its `>`.
    pub(super) fn range_size(&mut self) -> Parse<u32> {
        let start = self.span().start;
        match self.unary()? {
            Imm::Int {
                value: value @ 0..=MAX_RANGE,
                ..
            } => Ok(value as u32),
            _ => {
                let message = format!("a register range has 0 to {MAX_RANGE} registers");
                let span = self.since(start);
                self.fail("ptx::constant", message, span, "out of range")
            }
        }
    }

    /// What follows an address or symbol: `+ term`, `- term`, any number of times.
    pub(super) fn offset(&mut self) -> Parse<i64> {
        let mut sum = 0i64;
        loop {
            let negative = match self.kind() {
                Kind::Plus => false,
                Kind::Minus => true,
                _ => return Ok(sum),
            };
            self.bump();
            let start = self.span().start;
            // Terms bind as in an expression: a product is one term.
            let Imm::Int { value, .. } = self.nested(|p| p.binary(Op::Mul.precedence()))? else {
                let span = self.since(start);
                return self.fail("ptx::constant", "an offset is an integer", span, "not this");
            };
            sum = if negative {
                sum.wrapping_sub(value)
            } else {
                sum.wrapping_add(value)
            };
        }
    }

    fn binary(&mut self, least: u8) -> Parse<Imm> {
        let start = self.span().start;
        let mut left = self.unary()?;
        while let Some((op, tiles)) = self.operator().filter(|(op, _)| op.precedence() >= least) {
            for _ in 0..tiles {
                self.bump();
            }
            let right = self.nested(|p| p.binary(op.precedence() + 1))?;
            left = match apply(op, left, right) {
                Ok(value) => value,
                Err(message) => {
                    let span = self.since(start);
                    return self.fail("ptx::constant", message, span, "in this expression");
                }
            };
        }
        Ok(left)
    }

    /// The binary operator at the cursor, and how many tiles it takes.
    fn operator(&self) -> Option<(Op, u32)> {
        let next = self.tiles.get(self.at + 1).map_or(Kind::Eof, |t| t.kind);
        Some(match (self.kind(), next) {
            (Kind::Less, Kind::Less) => (Op::Shl, 2),
            (Kind::Greater, Kind::Greater) => (Op::Shr, 2),
            (Kind::Less, Kind::Equal) => (Op::Le, 2),
            (Kind::Greater, Kind::Equal) => (Op::Ge, 2),
            (Kind::Equal, Kind::Equal) => (Op::Eq, 2),
            (Kind::Bang, Kind::Equal) => (Op::Ne, 2),
            (Kind::Amp, Kind::Amp) => (Op::AndAnd, 2),
            (Kind::Pipe, Kind::Pipe) => (Op::OrOr, 2),
            (Kind::Star, _) => (Op::Mul, 1),
            (Kind::Slash, _) => (Op::Div, 1),
            (Kind::Percent, _) => (Op::Rem, 1),
            (Kind::Plus, _) => (Op::Add, 1),
            (Kind::Minus, _) => (Op::Sub, 1),
            (Kind::Less, _) => (Op::Lt, 1),
            (Kind::Greater, _) => (Op::Gt, 1),
            (Kind::Amp, _) => (Op::And, 1),
            (Kind::Caret, _) => (Op::Xor, 1),
            (Kind::Pipe, _) => (Op::Or, 1),
            _ => return None,
        })
    }

    fn unary(&mut self) -> Parse<Imm> {
        let start = self.span().start;
        let op = self.kind();
        match op {
            Kind::Number => self.number(),
            Kind::Dotted if self.at_fraction() => self.number(),
            Kind::Word if self.text() == "WARP_SZ" => {
                self.bump();
                Ok(int(WARP_SZ))
            }
            Kind::LParen => {
                self.bump();
                self.nested(Self::cast_or_group)
            }
            Kind::Plus | Kind::Minus | Kind::Bang | Kind::Tilde => {
                self.bump();
                let value = self.nested(Self::unary)?;
                match apply_unary(op, value) {
                    Some(value) => Ok(value),
                    None => {
                        let message = "this operator needs an integer";
                        self.fail(
                            "ptx::constant",
                            message,
                            self.since(start),
                            "floating point",
                        )
                    }
                }
            }
            _ => self.expected("a constant"),
        }
    }

    /// After `(`: `.s64) x`, `.u64) x`, or `expression)`.
    fn cast_or_group(&mut self) -> Parse<Imm> {
        if self.kind() != Kind::Dotted {
            let value = self.constant()?;
            self.expect(Kind::RParen, "`)`")?;
            return Ok(value);
        }
        let unsigned = match self.text() {
            ".s64" => false,
            ".u64" => true,
            _ => return self.expected("`.s64` or `.u64`"),
        };
        self.bump();
        self.expect(Kind::RParen, "`)`")?;
        let start = self.span().start;
        match self.unary()? {
            Imm::Int { value, .. } => Ok(Imm::Int { value, unsigned }),
            _ => {
                let message = "only integers are cast";
                self.fail("ptx::constant", message, self.since(start), "this is none")
            }
        }
    }

    /// Is the current tile a number that begins with its point, such as `.5`? The scanner cannot
    /// tell it from a modifier such as `.2d`.
    pub(super) fn at_fraction(&self) -> bool {
        let digits = self.text().strip_prefix('.').unwrap_or("");
        self.kind() == Kind::Dotted && digits.starts_with(|c: char| c.is_ascii_digit())
    }

    pub(super) fn number(&mut self) -> Parse<Imm> {
        let tile = self.bump();
        let text = tile.span.text(self.source);
        match parse_number(text) {
            Ok(value) => Ok(value),
            Err(message) => self.bad_number(message, tile.span),
        }
    }

    #[cold]
    fn bad_number(&mut self, message: &str, span: Span) -> Parse<Imm> {
        let number = super::shorten(span.text(self.source));
        self.fail(
            "ptx::constant",
            format!("`{number}` is no number"),
            span,
            message,
        )
    }
}

/// A numeric constant as PTX writes it.
fn parse_number(text: &str) -> Result<Imm, &'static str> {
    let bytes = text.as_bytes();
    match bytes {
        [b'0', b'f' | b'F', digits @ ..] => {
            let bits = hex_exact(digits, 8).ok_or("`0f` takes exactly eight hexadecimal digits")?;
            return Ok(Imm::F32(bits as u32));
        }
        [b'0', b'd' | b'D', digits @ ..] => {
            let bits = hex_exact(digits, 16).ok_or("`0d` takes exactly 16 hexadecimal digits")?;
            return Ok(Imm::F64(bits));
        }
        [b'0', b'x' | b'X', digits @ ..] => return radix(digits, 16),
        [b'0', b'b' | b'B', digits @ ..] => return radix(digits, 2),
        _ => {}
    }
    if bytes.iter().any(|b| matches!(b, b'.' | b'e' | b'E')) {
        let value: f64 = text
            .parse()
            .map_err(|_| "not a decimal floating-point number")?;
        let is_zero = bytes
            .iter()
            .take_while(|b| !matches!(b, b'e' | b'E'))
            .all(|b| matches!(b, b'0' | b'.'));
        return match value.is_normal() || is_zero {
            true => Ok(Imm::F64(value.to_bits())),
            false => Err("outside the range of normal doubles"),
        };
    }
    match bytes {
        [b'0', digits @ ..] if digits.first().is_some_and(u8::is_ascii_digit) => radix(digits, 8),
        _ => radix(bytes, 10),
    }
}

fn hex_exact(digits: &[u8], count: usize) -> Option<u64> {
    let mut value = 0u64;
    for &digit in digits {
        value = value << 4 | u64::from(char::from(digit).to_digit(16)?);
    }
    (digits.len() == count).then_some(value)
}

fn radix(digits: &[u8], radix: u32) -> Result<Imm, &'static str> {
    let (digits, suffix) = match digits {
        [rest @ .., b'U'] => (rest, true),
        _ => (digits, false),
    };
    if digits.is_empty() {
        return Err("digits are missing");
    }
    let mut value = 0u64;
    for &digit in digits {
        let digit = char::from(digit)
            .to_digit(radix)
            .ok_or("not a digit of this base")?;
        let scaled = value.checked_mul(u64::from(radix));
        let next = scaled.and_then(|v| v.checked_add(u64::from(digit)));
        value = next.ok_or("more than 64 bits")?;
    }
    Ok(Imm::Int {
        value: value as i64,
        unsigned: suffix || value > i64::MAX as u64,
    })
}

fn apply_unary(op: Kind, value: Imm) -> Option<Imm> {
    Some(match (op, value) {
        (Kind::Plus, value @ (Imm::Int { .. } | Imm::F64(_))) => value,
        (Kind::Minus, Imm::Int { value, unsigned }) => Imm::Int {
            value: value.wrapping_neg(),
            unsigned,
        },
        (Kind::Minus, Imm::F64(bits)) => Imm::F64(bits ^ 1 << 63),
        (Kind::Bang, Imm::Int { value, .. }) => int(i64::from(value == 0)),
        (Kind::Tilde, Imm::Int { value, .. }) => Imm::Int {
            value: !value,
            unsigned: true,
        },
        _ => return None,
    })
}

fn apply(op: Op, left: Imm, right: Imm) -> Result<Imm, &'static str> {
    match (left, right) {
        (
            Imm::Int {
                value: a,
                unsigned: ua,
            },
            Imm::Int {
                value: b,
                unsigned: ub,
            },
        ) => apply_integer(op, (a, ua), (b, ub)),
        (Imm::F64(a), Imm::F64(b)) => apply_float(op, f64::from_bits(a), f64::from_bits(b)),
        (Imm::F32(_), _) | (_, Imm::F32(_)) => Err("`0f` constants take part in no arithmetic"),
        _ => Err("one side is an integer, the other is floating point"),
    }
}

/// Arithmetic and comparisons are unsigned if either side is, comparisons give a signed 0 or 1, a
/// shift has the type of its left side.
fn apply_integer(op: Op, (a, ua): (i64, bool), (b, ub): (i64, bool)) -> Result<Imm, &'static str> {
    let unsigned = ua || ub;
    let (x, y) = (a as u64, b as u64);
    let typed = |value: i64| Imm::Int { value, unsigned };
    let shifted = |value: i64| Imm::Int {
        value,
        unsigned: ua,
    };
    let truth = |value: bool| int(i64::from(value));
    let order = if unsigned { x.cmp(&y) } else { a.cmp(&b) };
    // The hardware that ptxas runs on takes the count modulo 64.
    let count = y as u32 % 64;
    Ok(match op {
        Op::Mul => typed(a.wrapping_mul(b)),
        Op::Add => typed(a.wrapping_add(b)),
        Op::Sub => typed(a.wrapping_sub(b)),
        Op::Div | Op::Rem if b == 0 => return Err("division by zero"),
        Op::Div if unsigned => typed((x / y) as i64),
        Op::Div => typed(
            a.checked_div(b)
                .ok_or("the quotient does not fit 64 bits")?,
        ),
        Op::Rem => Imm::Int {
            value: (x % y) as i64,
            unsigned: true,
        },
        Op::Shl => shifted(a << count),
        Op::Shr if ua => shifted((x >> count) as i64),
        Op::Shr => shifted(a >> count),
        Op::Lt => truth(order.is_lt()),
        Op::Le => truth(order.is_le()),
        Op::Gt => truth(order.is_gt()),
        Op::Ge => truth(order.is_ge()),
        Op::Eq => truth(a == b),
        Op::Ne => truth(a != b),
        Op::And => typed(a & b),
        Op::Xor => typed(a ^ b),
        Op::Or => typed(a | b),
        Op::AndAnd => truth(a != 0 && b != 0),
        Op::OrOr => truth(a != 0 || b != 0),
    })
}

fn apply_float(op: Op, a: f64, b: f64) -> Result<Imm, &'static str> {
    let float = |value: f64| Imm::F64(value.to_bits());
    let truth = |value: bool| int(i64::from(value));
    Ok(match op {
        Op::Mul => float(a * b),
        Op::Div if b == 0.0 => return Err("division by zero"),
        Op::Div => float(a / b),
        Op::Add => float(a + b),
        Op::Sub => float(a - b),
        Op::Lt => truth(a < b),
        Op::Le => truth(a <= b),
        Op::Gt => truth(a > b),
        Op::Ge => truth(a >= b),
        Op::Eq => truth(a == b),
        Op::Ne => truth(a != b),
        _ => return Err("this operator needs integers"),
    })
}

impl Failed {
    /// For a caller that has reported and goes on.
    pub(super) fn ignore(self) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::syntax::scan;

    fn eval(text: &str) -> Option<Imm> {
        let syntax = scan(text);
        let mut parser = Parser::new(text, &syntax);
        let value = parser.constant().ok()?;
        assert_eq!(parser.kind(), Kind::Eof, "{text}");
        Some(value)
    }

    #[test]
    fn numbers() {
        assert_eq!(eval("42"), Some(int(42)));
        assert_eq!(eval("017"), Some(int(15)));
        assert_eq!(eval("0b101"), Some(int(5)));
        assert_eq!(
            eval("0xFFU"),
            Some(Imm::Int {
                value: 255,
                unsigned: true
            })
        );
        assert_eq!(
            eval("0xFFFFFFFFFFFFFFFF"),
            Some(Imm::Int {
                value: -1,
                unsigned: true
            })
        );
        assert_eq!(eval("0f3F800000"), Some(Imm::F32(0x3F80_0000)));
        assert_eq!(eval("0d3FF0000000000000"), Some(Imm::F64(1f64.to_bits())));
        assert_eq!(eval("1.5e1"), Some(Imm::F64(15f64.to_bits())));
        assert_eq!(eval(".5"), Some(Imm::F64(0.5f64.to_bits())));
        assert_eq!(eval("1.-.25e-1"), Some(Imm::F64(0.975f64.to_bits())));
        for bad in [
            "0f3F80",
            "08",
            "0x",
            "18446744073709551616",
            "12z",
            "1.2.3",
            "1e400",
            "4.9e-324",
            "10u",
        ] {
            assert_eq!(eval(bad), None, "{bad}");
        }
    }

    #[test]
    fn operators_bind_as_in_c() {
        assert_eq!(eval("1+2*3-4"), Some(int(3)));
        assert_eq!(eval("(1+2)*3"), Some(int(9)));
        assert_eq!(eval("1 << 4 >> 2"), Some(int(4)));
        assert_eq!(eval("-8 >> 1"), Some(int(-4)));
        assert_eq!(eval("7 % 4 == 3 && 2 > 1 ? WARP_SZ : 0"), Some(int(32)));
        assert_eq!(
            eval("!0 + ~0"),
            Some(Imm::Int {
                value: 0,
                unsigned: true
            })
        );
        assert_eq!(eval("-1 < 0U"), Some(int(0)));
        assert_eq!(eval("1.0 / 4.0"), Some(Imm::F64(0.25f64.to_bits())));
        assert_eq!(eval("1.5 < 2.5"), Some(int(1)));
        for bad in [
            "1/0",
            "1.0/0.0",
            "1.5 & 1",
            "1.0 / 4",
            "~1.5",
            "-0f3F800000",
            "(.s64) 2.9",
            "1 ? 1.5 : 2.5",
            "(0-0x7fffffffffffffff-1)/-1",
            "1 +",
            "(1",
        ] {
            assert_eq!(eval(bad), None, "{bad}");
        }
    }

    /// What ptxas makes of them, which is not always what C would.
    #[test]
    fn as_ptxas_evaluates() {
        let unsigned = |value: i64| {
            Some(Imm::Int {
                value,
                unsigned: true,
            })
        };
        assert_eq!(eval("1<<64"), Some(int(1)));
        assert_eq!(eval("1<<-1"), Some(int(i64::MIN)));
        assert_eq!(eval("-1 >> 65"), Some(int(-1)));
        assert_eq!(eval("-1 % 0xFFFFFFFF"), unsigned(0));
        assert_eq!(eval("5 % -3"), unsigned(5));
        assert_eq!(eval("-1 | 1"), Some(int(-1)));
        assert_eq!(eval("-1 | 1U"), unsigned(-1));
        assert_eq!(eval("1 ? -1 : 1U"), Some(int(-1)));
        assert_eq!(eval("(.u64)-1 / 2"), unsigned(i64::MAX));
    }

    #[test]
    fn nesting_is_bounded() {
        assert_eq!(eval(&"(".repeat(100_000)), None);
        assert_eq!(eval(&"-".repeat(100_000)), None);
    }
}
