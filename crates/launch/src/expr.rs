//! Expressions over the size parameters: `ceil_div(n, 256)`, `3 * n + 1`, `1.0 / n`.
//!
//! ```text
//! sum     = product (('+' | '-') product)*
//! product = unary (('*' | '/' | '%') unary)*
//! unary   = '-' unary | atom
//! atom    = number | name | name '(' sum (',' sum)* ')' | '(' sum ')'
//! ```
//!
//! The same expression can be evaluated exactly in integers (`/` truncates towards zero, as in C)
//! or in f64 (`/` is the true quotient); which of the two is decided by where it stands.

use std::fmt;
use std::ops::Range;

/// A parsed expression.
#[derive(Clone, Debug, PartialEq)]
pub struct Expr {
    root: Node,
}

#[derive(Clone, Debug, PartialEq)]
enum Node {
    Int(i128),
    Float(f64),
    Name(String),
    Negate(Box<Node>),
    Binary(Op, Box<Node>, Box<Node>),
    Call(Function, Box<Node>),
}

/// What is computed of two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Op {
    /// `+`
    Add,
    /// `-`
    Sub,
    /// `*`
    Mul,
    /// `/`
    Div,
    /// `%`
    Rem,
    /// `min(a, b)`
    Min,
    /// `max(a, b)`
    Max,
    /// `ceil_div(a, b)`
    CeilDiv,
    /// `round_up(a, b)`
    RoundUp,
}

/// How they are written; `min` and `max` take two or more.
const OPS: [(&str, Op); 9] = [
    ("+", Op::Add),
    ("-", Op::Sub),
    ("*", Op::Mul),
    ("/", Op::Div),
    ("%", Op::Rem),
    ("ceil_div", Op::CeilDiv),
    ("round_up", Op::RoundUp),
    ("min", Op::Min),
    ("max", Op::Max),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Function {
    Abs,
    Pow2,
    Log2,
    Sqrt,
    Floor,
}

/// Functions of one number.
const FUNCTIONS: [(&str, Function); 5] = [
    ("abs", Function::Abs),
    ("pow2", Function::Pow2),
    ("log2", Function::Log2),
    ("sqrt", Function::Sqrt),
    ("floor", Function::Floor),
];

/// Nesting deeper than this is refused, so that no input can exhaust the stack.
const MAX_DEPTH: usize = 64;

/// Why an expression does not parse or has no value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ExprError {
    /// What is wrong.
    pub message: String,
    /// Bytes of the expression's text that it is about, where known.
    pub span: Option<Range<usize>>,
}

impl ExprError {
    fn new(message: impl Into<String>) -> ExprError {
        ExprError {
            message: message.into(),
            span: None,
        }
    }
}

type Result<T> = std::result::Result<T, ExprError>;

impl Expr {
    /// Parses `text`.
    ///
    /// # Errors
    /// [`ExprError`], with the place in the text.
    pub fn parse(text: &str) -> Result<Expr> {
        let mut parser = Parser {
            text,
            at: 0,
            depth: 0,
        };
        let root = parser.sum()?;
        match parser.peek() {
            None => Ok(Expr { root }),
            Some(c) => Err(parser.error(format!("unexpected `{c}`"))),
        }
    }

    /// The integer constant `value`.
    pub fn int(value: i128) -> Expr {
        Expr {
            root: Node::Int(value),
        }
    }

    /// The floating-point constant `value`.
    pub fn float(value: f64) -> Expr {
        Expr {
            root: Node::Float(value),
        }
    }

    /// The parameter of a name.
    pub fn name(name: impl Into<String>) -> Expr {
        Expr {
            root: Node::Name(name.into()),
        }
    }

    /// Of two others.
    pub fn of(op: Op, a: Expr, b: Expr) -> Expr {
        Expr {
            root: Node::Binary(op, Box::new(a.root), Box::new(b.root)),
        }
    }

    /// As a value of a description: a number, or text in quotes.
    pub fn quoted(&self) -> String {
        match self.root {
            Node::Int(_) | Node::Float(_) => self.to_string(),
            _ => format!("\"{self}\""),
        }
    }

    /// All names that the expression mentions, in order, with repetitions.
    pub fn names(&self) -> Vec<&str> {
        let mut names = Vec::new();
        self.root.visit_names(&mut |name| names.push(name));
        names
    }

    /// The exact integer value; overflow of 128 bits, division by zero and fractions are errors.
    ///
    /// # Errors
    /// [`ExprError`]: those, and a name that `lookup` does not know.
    pub fn eval_int(&self, lookup: &dyn Fn(&str) -> Option<i128>) -> Result<i128> {
        self.root.eval_int(lookup)
    }

    /// The value in f64 arithmetic.
    ///
    /// # Errors
    /// [`ExprError`]: a name that `lookup` does not know, or `pow2` or `log2` of no integer.
    pub fn eval_float(&self, lookup: &dyn Fn(&str) -> Option<i128>) -> Result<f64> {
        self.root.eval_float(lookup)
    }
}

impl Node {
    fn visit_names<'a>(&'a self, visit: &mut dyn FnMut(&'a str)) {
        match self {
            Node::Int(_) | Node::Float(_) => {}
            Node::Name(name) => visit(name),
            Node::Negate(a) => a.visit_names(visit),
            Node::Binary(_, a, b) => {
                a.visit_names(visit);
                b.visit_names(visit);
            }
            Node::Call(_, a) => a.visit_names(visit),
        }
    }

    fn eval_int(&self, lookup: &dyn Fn(&str) -> Option<i128>) -> Result<i128> {
        match self {
            Node::Int(value) => Ok(*value),
            Node::Float(value) => Err(ExprError::new(format!(
                "an integer is needed here, not {value:?}"
            ))),
            Node::Name(name) => lookup(name).ok_or_else(|| unknown(name)),
            Node::Negate(a) => a.eval_int(lookup)?.checked_neg().ok_or_else(overflow),
            Node::Binary(op, a, b) => {
                let (a, b) = (a.eval_int(lookup)?, b.eval_int(lookup)?);
                op.int(a, b)
            }
            Node::Call(function, a) => call_int(*function, a.eval_int(lookup)?),
        }
    }

    fn eval_float(&self, lookup: &dyn Fn(&str) -> Option<i128>) -> Result<f64> {
        match self {
            Node::Int(value) => Ok(*value as f64),
            Node::Float(value) => Ok(*value),
            Node::Name(name) => lookup(name).map(|v| v as f64).ok_or_else(|| unknown(name)),
            Node::Negate(a) => Ok(-a.eval_float(lookup)?),
            Node::Binary(op, a, b) => {
                let (a, b) = (a.eval_float(lookup)?, b.eval_float(lookup)?);
                Ok(op.float(a, b))
            }
            Node::Call(function, a) => call_float(*function, a.eval_float(lookup)?),
        }
    }
}

impl Op {
    fn name(self) -> &'static str {
        OPS.iter().find(|(_, op)| *op == self).map_or("", |e| e.0)
    }

    /// Of numbers of 64 bits, as C has it; none where that overflows or is not defined.
    pub fn of(self, a: i64, b: i64) -> Option<i64> {
        let value = self.int(a.into(), b.into()).ok()?;
        i64::try_from(value).ok()
    }

    fn int(self, a: i128, b: i128) -> Result<i128> {
        let value = match self {
            Op::Div | Op::Rem if b == 0 => return Err(ExprError::new("division by zero")),
            Op::CeilDiv | Op::RoundUp if a < 0 || b <= 0 => {
                return Err(ExprError::new(
                    "ceil_div and round_up need a first argument of at least 0 and a positive \
                     second",
                ));
            }
            Op::Add => a.checked_add(b),
            Op::Sub => a.checked_sub(b),
            Op::Mul => a.checked_mul(b),
            Op::Div => a.checked_div(b),
            Op::Rem => a.checked_rem(b),
            Op::Min => Some(a.min(b)),
            Op::Max => Some(a.max(b)),
            Op::CeilDiv => Some(a / b + i128::from(a % b != 0)),
            Op::RoundUp => (a / b + i128::from(a % b != 0)).checked_mul(b),
        };
        value.ok_or_else(overflow)
    }

    /// Only operations that IEEE 754 defines exactly, so that every machine computes the same bits.
    fn float(self, a: f64, b: f64) -> f64 {
        match self {
            Op::Add => a + b,
            Op::Sub => a - b,
            Op::Mul => a * b,
            Op::Div => a / b,
            Op::Rem => a % b,
            Op::Min => a.min(b),
            Op::Max => a.max(b),
            Op::CeilDiv => (a / b).ceil(),
            Op::RoundUp => (a / b).ceil() * b,
        }
    }

    /// How tight; what is written as a call is tighter than all signs.
    fn binds(self) -> u8 {
        match self {
            Op::Add | Op::Sub => 1,
            Op::Mul | Op::Div | Op::Rem => 2,
            _ => 3,
        }
    }
}

fn overflow() -> ExprError {
    ExprError::new("the value overflows")
}

fn unknown(name: &str) -> ExprError {
    ExprError::new(format!("unknown parameter `{name}`"))
}

fn call_int(function: Function, a: i128) -> Result<i128> {
    match function {
        Function::Abs => a.checked_abs().ok_or_else(overflow),
        Function::Pow2 if (0..=126).contains(&a) => Ok(1 << a),
        Function::Pow2 => Err(ExprError::new(format!("pow2({a}) is out of range"))),
        Function::Log2 if a > 0 => Ok(i128::from(a.ilog2())),
        Function::Log2 => Err(ExprError::new(format!("log2({a}) is not defined"))),
        Function::Sqrt => Err(ExprError::new("sqrt gives no integer")),
        Function::Floor => Ok(a),
    }
}

/// As [`Op::float`].
fn call_float(function: Function, a: f64) -> Result<f64> {
    Ok(match function {
        Function::Abs => a.abs(),
        Function::Sqrt => a.sqrt(),
        Function::Floor => a.floor(),
        Function::Pow2 if a.fract() == 0.0 && a.abs() <= 1000.0 => 2f64.powi(a as i32),
        Function::Pow2 | Function::Log2 => {
            return Err(ExprError::new("pow2 and log2 are for integers"));
        }
    })
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
}

impl Parser<'_> {
    fn error(&self, message: impl Into<String>) -> ExprError {
        let end = self
            .rest()
            .chars()
            .next()
            .map_or(self.at, |c| self.at + c.len_utf8());
        ExprError {
            message: message.into(),
            span: Some(self.at..end),
        }
    }

    fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or("")
    }

    fn peek(&mut self) -> Option<char> {
        let rest = self.rest();
        let blank = rest.len() - rest.trim_start().len();
        self.at += blank;
        self.rest().chars().next()
    }

    /// Consumes the next character if it is one of `wanted`.
    fn eat(&mut self, wanted: &[char]) -> Option<char> {
        let c = self.peek().filter(|c| wanted.contains(c))?;
        self.at += c.len_utf8();
        Some(c)
    }

    fn sum(&mut self) -> Result<Node> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(self.error("the expression is nested too deeply"));
        }
        let node = self.chain(&['+', '-'], |p| p.chain(&['*', '/', '%'], Self::unary));
        self.depth -= 1;
        node
    }

    fn chain(&mut self, ops: &[char], operand: impl Fn(&mut Self) -> Result<Node>) -> Result<Node> {
        let mut left = operand(self)?;
        let mut length = 0;
        while let Some(op) = self.eat(ops) {
            // A chain leans to the left, so its length is depth as well.
            length += 1;
            if length > MAX_DEPTH {
                return Err(self.error("the expression is too long"));
            }
            let sign = OPS.iter().find(|(sign, _)| sign.starts_with(op));
            let op = sign.map_or(Op::Add, |(_, op)| *op);
            left = Node::Binary(op, Box::new(left), Box::new(operand(self)?));
        }
        Ok(left)
    }

    fn unary(&mut self) -> Result<Node> {
        if self.eat(&['-']).is_none() {
            return self.atom();
        }
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(self.error("the expression is nested too deeply"));
        }
        let node = self.unary().map(|a| Node::Negate(Box::new(a)));
        self.depth -= 1;
        node
    }

    fn atom(&mut self) -> Result<Node> {
        match self.peek() {
            Some('(') => {
                self.at += 1;
                let node = self.sum()?;
                self.close()?;
                Ok(node)
            }
            Some(c) if c.is_ascii_digit() || c == '.' => self.number(),
            Some(c) if c.is_ascii_alphabetic() || c == '_' => self.name_or_call(),
            Some(c) => Err(self.error(format!("unexpected `{c}`"))),
            None => Err(self.error("the expression ends where a value is expected")),
        }
    }

    fn close(&mut self) -> Result<()> {
        match self.eat(&[')']) {
            Some(_) => Ok(()),
            None => Err(self.error("expected `)`")),
        }
    }

    /// The longest prefix of the rest whose characters satisfy `accept`.
    fn take_while(&mut self, accept: impl Fn(char, Option<char>) -> bool) -> &str {
        let start = self.at;
        let mut previous = None;
        while let Some(c) = self.rest().chars().next().filter(|&c| accept(c, previous)) {
            self.at += c.len_utf8();
            previous = Some(c);
        }
        self.text.get(start..self.at).unwrap_or("")
    }

    fn number(&mut self) -> Result<Node> {
        let start = self.at;
        let hex = self.rest().starts_with("0x");
        let token = self.take_while(|c, previous| {
            let sign_of_exponent = matches!(c, '+' | '-') && matches!(previous, Some('e' | 'E'));
            c.is_ascii_alphanumeric() || matches!(c, '.' | '_') || (sign_of_exponent && !hex)
        });
        let digits = token.replace('_', "");
        let node = if let Some(hex) = digits.strip_prefix("0x") {
            i128::from_str_radix(hex, 16).ok().map(Node::Int)
        } else if let Ok(int) = digits.parse::<i128>() {
            Some(Node::Int(int))
        } else {
            digits.parse::<f64>().ok().map(Node::Float)
        };
        let span = Some(start..self.at);
        node.ok_or_else(|| ExprError {
            message: format!("`{digits}` is no number"),
            span,
        })
    }

    fn name_or_call(&mut self) -> Result<Node> {
        let start = self.at;
        let name = self
            .take_while(|c, _| c.is_ascii_alphanumeric() || c == '_')
            .to_owned();
        let span = Some(start..self.at);
        if self.eat(&['(']).is_none() {
            return Ok(Node::Name(name));
        }
        let op = OPS.iter().find(|e| e.0 == name).map(|e| e.1);
        let function = FUNCTIONS.iter().find(|e| e.0 == name).map(|e| e.1);
        if op.is_none() && function.is_none() {
            let known = OPS[5..].iter().map(|e| e.0);
            let known: Vec<&str> = known.chain(FUNCTIONS.iter().map(|e| e.0)).collect();
            let message = format!("unknown function `{name}`; there are {}", known.join(", "));
            return Err(ExprError { message, span });
        }
        let mut args = vec![self.sum()?];
        while self.eat(&[',']).is_some() {
            args.push(self.sum()?);
        }
        self.close()?;
        let arity = if op.is_some() { 2 } else { 1 };
        let is_variadic = matches!(op, Some(Op::Min | Op::Max));
        let count = args.len();
        let mut args = args.into_iter();
        let node = match (args.next(), op, function) {
            (Some(a), Some(op), _) if count == 2 || is_variadic && count > 2 => {
                args.fold(a, |a, b| Node::Binary(op, Box::new(a), Box::new(b)))
            }
            (Some(a), None, Some(function)) if count == 1 => Node::Call(function, Box::new(a)),
            _ => {
                let message = format!("`{name}` takes {arity} arguments, not {count}");
                return Err(ExprError { message, span });
            }
        };
        Ok(node)
    }
}

impl fmt::Display for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.root.fmt(f)
    }
}

impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Node::Int(value) => write!(f, "{value}"),
            Node::Float(value) => write!(f, "{value:?}"),
            Node::Name(name) => f.write_str(name),
            Node::Negate(a) => write!(f, "-{}", a.beside(Op::Mul, true)),
            Node::Binary(op, a, b) if op.binds() > 2 => write!(f, "{}({a}, {b})", op.name()),
            Node::Binary(op, a, b) => {
                let (a, b) = (a.beside(*op, false), b.beside(*op, true));
                write!(f, "{a} {} {b}", op.name())
            }
            Node::Call(function, a) => {
                let name = FUNCTIONS.iter().find(|e| e.1 == *function);
                write!(f, "{}({a})", name.map_or("", |e| e.0))
            }
        }
    }
}

impl Node {
    /// As an operand, in parentheses where it needs them.
    fn beside(&self, op: Op, is_right: bool) -> String {
        let is_loose = match self {
            Node::Binary(own, ..) => {
                own.binds() < op.binds()
                    || own.binds() == op.binds() && (is_right || op != Op::Add && *own != op)
            }
            Node::Int(number) => *number < 0,
            Node::Float(number) => *number < 0.0,
            Node::Negate(_) => true,
            Node::Name(_) | Node::Call(..) => false,
        };
        if is_loose {
            format!("({self})")
        } else {
            self.to_string()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lookup(name: &str) -> Option<i128> {
        match name {
            "n" => Some(1000),
            "m" => Some(7),
            _ => None,
        }
    }

    #[test]
    fn integer_values() {
        for (text, value) in [
            ("1 + 2 * 3 - 4", 3),
            ("(1 + 2) * 3", 9),
            ("ceil_div(n, 256)", 4),
            ("round_up(n, 32)", 1024),
            ("n / m % 10", 2),
            ("-7 / 2", -3),
            ("--m", 7),
            ("min(n, m, 3) + max(1, 2)", 5),
            ("pow2(log2(n))", 512),
            ("abs(-5)", 5),
            ("0xffff_ffff_ffff_ffff", u64::MAX.into()),
            ("100 - 10 - 1", 89),
        ] {
            let expr = Expr::parse(text).unwrap();
            assert_eq!(expr.eval_int(&lookup), Ok(value), "{text}");
            let printed = Expr::parse(&expr.to_string()).unwrap();
            assert_eq!(printed.eval_int(&lookup), Ok(value), "{expr}");
        }
    }

    #[test]
    fn parentheses_stand_where_they_are_needed() {
        for text in [
            "a * b * c + d",
            "a - (b - c) - d",
            "(a + b) * c / d",
            "a * (b / c) % (d * e)",
            "a / b * c",
            "-(a + b) * (-c)",
            "ceil_div(a + 1, b) - (-2)",
        ] {
            let expr = Expr::parse(text).unwrap();
            assert_eq!(Expr::parse(&expr.to_string()).unwrap(), expr, "{expr}");
        }
        let made = Expr::of(Op::Div, Expr::name("n"), Expr::int(4));
        let made = Expr::of(Op::Max, made, Expr::int(1));
        assert_eq!(made, Expr::parse("max(n / 4, 1)").unwrap());
        let three = Expr::parse("min(1, 2, n)").unwrap();
        assert_eq!(three.to_string(), "min(min(1, 2), n)");
    }

    #[test]
    fn floating_point_values() {
        for (text, value) in [
            ("1.0 / n", 1e-3),
            ("1e-3*n", 1.0),
            ("n / 16", 62.5),
            ("floor(n / 16) % 7", 6.0),
            ("sqrt(2)", 2f64.sqrt()),
        ] {
            assert_eq!(
                Expr::parse(text).unwrap().eval_float(&lookup),
                Ok(value),
                "{text}"
            );
        }
    }

    #[test]
    fn what_has_no_value_says_why() {
        for (text, message) in [
            ("", "the expression ends where a value is expected"),
            ("1 +", "the expression ends where a value is expected"),
            ("n n", "unexpected `n`"),
            ("(n", "expected `)`"),
            ("3x", "`3x` is no number"),
            (
                "cos(n)",
                "unknown function `cos`; there are ceil_div, round_up, min, max, abs, pow2, log2, sqrt, floor",
            ),
            ("min(n)", "`min` takes 2 arguments, not 1"),
            ("q + 1", "unknown parameter `q`"),
            ("n / (m - 7)", "division by zero"),
            ("1.5 * n", "an integer is needed here, not 1.5"),
            ("pow2(100) * pow2(100)", "the value overflows"),
            ("log2(0)", "log2(0) is not defined"),
        ] {
            let result = Expr::parse(text).and_then(|e| e.eval_int(&lookup));
            assert_eq!(result.unwrap_err().message, message, "{text}");
        }
        for deep in [
            "(".repeat(100_000),
            "-".repeat(100_000),
            "1".to_owned() + &"+1".repeat(9999),
        ] {
            assert!(Expr::parse(&deep).is_err());
        }
    }
}
