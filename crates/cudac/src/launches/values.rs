//! What host code computes, as far as that is a number.

use std::ops::Range;

use super::names::{Declaration, Kind};
use super::{HostCode, is_extended};
use crate::ast::{Expr, ExprKind};
use crate::literal::Literal;
use crate::macros::Expanded;
use crate::words::tokens;
use crate::{parse_expr, print};

/// Names that are looked up for one launch, at most.
pub(super) const MOST: u32 = 500;

/// What parameters are known to be.
pub(super) type Known = Vec<(String, i64)>;

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Number(i64),
    /// A `dim3`, in as many dimensions as it says.
    Extents(Vec<Option<i64>>),
}

impl Value {
    pub(super) fn number(self) -> Option<i64> {
        match self {
            Value::Number(number) => Some(number),
            Value::Extents(_) => None,
        }
    }

    pub(super) fn extents(self) -> Vec<Option<i64>> {
        match self {
            Value::Number(number) => vec![Some(number)],
            Value::Extents(all) => all,
        }
    }
}

/// What becomes of a variable where its name stands.
enum Change {
    /// It becomes this.
    Whole(Range<usize>),
    /// A member becomes this.
    Member(usize, Range<usize>),
    /// It may become anything.
    Anything,
}

/// The members of a `dim3`.
const AXES: [&str; 3] = ["x", "y", "z"];

/// The parts of a text between commas in no brackets.
pub(super) fn parts(text: &str) -> Vec<&str> {
    let (mut depth, mut from, mut all) = (0_i32, 0, Vec::new());
    for token in tokens(text) {
        match &text[token.at.clone()] {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth -= 1,
            "," if depth == 0 => {
                all.push(text[from..token.at.start].trim());
                from = token.at.end;
            }
            _ => {}
        }
    }
    let last = text[from..].trim();
    if !last.is_empty() {
        all.push(last);
    }
    all
}

/// What stands between a bracket at the start of a text and the one at its end that closes it.
fn inside(text: &str) -> Option<&str> {
    let all = Some(tokens(text)).filter(|_| text.starts_with(['(', '{']))?;
    let close = crate::words::closed(text, &all, 0)?;
    let is_whole = all.first()?.at.start == 0 && all[close].at.end == text.len();
    is_whole.then(|| &text[1..text.len() - 1])
}

/// Sizes of types in bytes, for `sizeof`.
fn size(ty: &str) -> Option<u32> {
    Some(match ty {
        "char" | "unsigned char" | "bool" | "uint8_t" | "int8_t" => 1,
        "half" | "__half" | "__nv_bfloat16" | "short" => 2,
        "float" | "int" | "unsigned" | "unsigned int" | "uint32_t" | "int32_t" | "__half2" => 4,
        "double" | "size_t" | "long long" | "float2" | "int2" | "uint64_t" | "int64_t" => 8,
        "float4" | "int4" | "double2" => 16,
        _ => return None,
    })
}

/// A text with the number in place of each `sizeof`.
fn without_sizeof(text: &str) -> Option<String> {
    let mut out = text.to_owned();
    while let Some(at) = out.find("sizeof") {
        let rest = out[at + "sizeof".len()..].trim_start();
        let (ty, behind) = rest.strip_prefix('(')?.split_once(')')?;
        out = format!("{}{}{behind}", &out[..at], size(ty.trim())?);
    }
    Some(out)
}

impl HostCode<'_> {
    /// What a text is that stands at a token.
    pub(super) fn value(&self, text: &str, at: usize, known: &Known) -> Option<Value> {
        self.fuel.set(self.fuel.get().checked_sub(1)?);
        let text = text.trim();
        // `{16, 16}` and `dim3{16, 16}`, which are no expressions of the subset.
        let list = text.strip_prefix("dim3").map_or(text, str::trim_start);
        let is_list = list.starts_with('{') || list.len() < text.len() && list.starts_with('(');
        if let Some(list) = inside(list).filter(|_| is_list) {
            return self.listed(&parts(list), at, known);
        }
        let expr = parse_expr(&without_sizeof(text)?, 0..0, |word| word.ends_with("_t"))?;
        if let ExprKind::Number(digits) = &expr.bare().kind
            && let Some(Literal::Double(whole)) = Literal::parse(digits)
        {
            // `int n = 1e6`
            let is_exact = whole.fract() == 0.0 && whole.abs() < 1e15;
            return is_exact.then_some(Value::Number(whole as i64));
        }
        if let ExprKind::Name(_) = &expr.kind
            && let Some(meaning) = self.macro_meaning(&expr)
        {
            return self.evaluated(&meaning, at, known);
        }
        self.evaluated(&expr, at, known)
    }

    fn listed(&self, all: &[&str], at: usize, known: &Known) -> Option<Value> {
        let one = |part: &&str| self.value(part, at, known).and_then(Value::number);
        let all: Vec<Option<i64>> = all.iter().map(one).collect();
        match all.len() {
            0 => Some(Value::Extents(vec![Some(1)])),
            1..=3 => Some(Value::Extents(all)),
            _ => None,
        }
    }

    /// What a use of a macro stands for.
    fn macro_meaning(&self, expr: &Expr) -> Option<Expr> {
        match self.macros.expand(expr, print::expr, |_| false) {
            Expanded::Expr(meaning) => Some(*meaning),
            _ => None,
        }
    }

    fn evaluated(&self, expr: &Expr, at: usize, known: &Known) -> Option<Value> {
        crate::with_stack(|| self.evaluate(expr, at, known))
    }

    fn evaluate(&self, expr: &Expr, at: usize, known: &Known) -> Option<Value> {
        let number = |expr: &Expr| self.evaluated(expr, at, known)?.number();
        if let ExprKind::Name(_) | ExprKind::Call(..) = &expr.kind
            && let Some(meaning) = self.macro_meaning(expr)
        {
            self.fuel.set(self.fuel.get().checked_sub(1)?);
            // A body without parentheses would fall apart here.
            let is_loose = matches!(
                meaning.kind,
                ExprKind::Binary(..) | ExprKind::Conditional(..) | ExprKind::Unary(..)
            );
            return match is_loose {
                true => None,
                false => self.evaluated(&meaning, at, known),
            };
        }
        Some(Value::Number(match &expr.kind {
            ExprKind::Number(digits) => match Literal::parse(digits)? {
                Literal::Integer(number) => number,
                _ => return None,
            },
            ExprKind::Bool(value) => i64::from(*value),
            ExprKind::Name(name) => return self.named(name, at, known),
            ExprKind::Member(base, member) => {
                let axis = AXES.iter().position(|axis| axis == member);
                match (axis, self.evaluated(base, at, known)) {
                    (Some(axis), Some(Value::Extents(all))) => match all.get(axis) {
                        Some(extent) => (*extent)?,
                        None => 1,
                    },
                    _ => return None,
                }
            }
            ExprKind::Call(name, arguments) => {
                let last = name.text.rsplit("::").next().unwrap_or(&name.text);
                let values: Vec<Option<i64>> = arguments.iter().map(number).collect();
                match (last, &values[..]) {
                    ("dim3" | "make_uint3" | "uint3", [_] | [_, _] | [_, _, _]) => {
                        return Some(Value::Extents(values));
                    }
                    ("min", [a, b]) => (*a)?.min((*b)?),
                    ("max", [a, b]) => (*a)?.max((*b)?),
                    ("int" | "unsigned" | "size_t" | "uint32_t", [value]) => (*value)?,
                    _ => {
                        let (names, text, at) = self.returned(last)?;
                        let names = names.into_iter().map(str::to_owned);
                        let values: Option<Vec<i64>> = values.into_iter().collect();
                        let values = values.filter(|v| v.len() == names.len())?;
                        let known: Known = names.zip(values).collect();
                        return self.value(text, at, &known);
                    }
                }
            }
            ExprKind::Unary(sign, inner) => match &**sign {
                "-" => number(inner)?.checked_neg()?,
                "+" => number(inner)?,
                "!" => i64::from(number(inner)? == 0),
                "~" => !number(inner)?,
                _ => return None,
            },
            ExprKind::Binary(sign, a, b) => binary(sign, number(a)?, number(b)?)?,
            ExprKind::Conditional(condition, a, b) => {
                let chosen = if number(condition)? != 0 { a } else { b };
                return self.evaluated(chosen, at, known);
            }
            ExprKind::Cast(_, ty, inner) if ty.is_integer() => number(inner)?,
            ExprKind::Paren(inner) => return self.evaluated(inner, at, known),
            _ => return None,
        }))
    }

    /// What a name is at a token.
    fn named(&self, name: &str, at: usize, known: &Known) -> Option<Value> {
        let last = name.rsplit("::").next().unwrap_or(name);
        let found = self.declaration(name, at).filter(|_| last == name);
        // `Type::NAME`, or a name that `using` brings in.
        let found = found.or_else(|| self.only_constant(last))?;
        match found.kind {
            Kind::Parameter => {
                let value = known.iter().find(|(own, _)| own == name);
                value.map(|(_, value)| Value::Number(*value))
            }
            Kind::Integer | Kind::Extents if found.is_fixed => self.initial(&found, None, known),
            Kind::Integer | Kind::Extents => self.variable(&found, None, at, known),
            Kind::Config | Kind::Unknown => None,
        }
    }

    /// A member of the launch configuration that a token names, at another.
    pub(super) fn field(
        &self,
        config: usize,
        field: &str,
        at: usize,
        known: &Known,
    ) -> Option<Value> {
        let found = self.declaration(self.word(config), at)?;
        (found.kind == Kind::Config)
            .then(|| self.variable(&found, Some(field), at, known))
            .flatten()
    }

    /// What a variable is declared with.
    fn initial(&self, of: &Declaration, field: Option<&str>, known: &Known) -> Option<Value> {
        self.fuel.set(self.fuel.get().checked_sub(1)?);
        let open = of.at + 1;
        let text = match self.word(open) {
            "=" => &self.text[self.assigned(open)],
            "(" | "{" => {
                let close = self.tokens.get(self.close(open))?;
                &self.text[self.tokens[open].at.start..close.at.end]
            }
            _ => "",
        };
        let text = text.trim();
        let list = text.starts_with(['{', '(']).then(|| inside(text)).flatten();
        match (of.kind, field) {
            (Kind::Config, Some(field)) => {
                let all = parts(list.unwrap_or(""));
                let by_name = |part: &&str| {
                    let rest = part.strip_prefix('.')?.trim_start().strip_prefix(field)?;
                    rest.trim_start().strip_prefix('=').map(str::to_owned)
                };
                let fields = ["gridDim", "blockDim", "dynamicSmemBytes"];
                let position = fields.iter().position(|f| *f == field)?;
                let is_named = all.iter().any(|part| part.starts_with('.'));
                let own = match is_named {
                    true => all.iter().find_map(by_name),
                    false => all.get(position).map(|part| (*part).to_owned()),
                };
                match own {
                    Some(own) => self.value(&own, of.at, known),
                    None => Some(Value::Number(i64::from(position < 2))),
                }
            }
            (Kind::Extents, _) => match (text, list) {
                ("", _) => Some(Value::Extents(vec![Some(1)])),
                (_, Some(list)) => match &parts(list)[..] {
                    // `dim3 a(b)`: a copy, or one extent.
                    [one] => {
                        let one = self.value(one, of.at, known);
                        Some(Value::Extents(one.map_or(vec![None], Value::extents)))
                    }
                    all => self.listed(all, of.at, known),
                },
                _ => Some(Value::Extents(self.value(text, of.at, known)?.extents())),
            },
            (_, _) => self.value(list.unwrap_or(text), of.at, known),
        }
    }

    /// What stands behind the `=` at a token.
    fn assigned(&self, equals: usize) -> Range<usize> {
        let level = self.around[equals];
        let behind = equals + 1..self.tokens.len();
        let mut behind = behind.filter(|&at| self.around[at] == level);
        let end = behind.find(|&at| matches!(self.word(at), "," | ";"));
        let close = level.and_then(|open| self.tokens.get(self.close(open)));
        let close = close.map_or(self.text.len(), |t| t.at.start);
        let end = end.map_or(close, |end| self.tokens[end].at.start.min(close));
        self.tokens[equals].at.end..end
    }

    /// What a variable is at a token: what it was declared with, and what the code on the way makes of it.
    fn variable(
        &self,
        of: &Declaration,
        field: Option<&str>,
        at: usize,
        known: &Known,
    ) -> Option<Value> {
        let home = self.around[of.at];
        let name = self.word(of.at);
        let is_shared = self.is_shared(home);
        let mut value = self.initial(of, field, known);
        for &place in self.places(name) {
            let is_it = || {
                let seen = self.declaration(name, place);
                let is_own = seen.map_or(is_shared, |d| d.at == of.at);
                is_own && !self.is_declared(place)
            };
            if place == of.at || place == at {
                continue;
            }
            let Some(change) = self.change(place, field) else {
                continue;
            };
            self.fuel.set(self.fuel.get().checked_sub(1)?);
            if !is_it() {
                continue;
            }
            let around = self.around[place];
            let is_on_the_way = self.is_inside(at, around) && self.is_inside(place, home);
            let starts = matches!(self.word_before(place), ";" | "{" | "}");
            if place > at {
                let again = |brace: &usize| {
                    self.is_inside(at, Some(*brace)) && self.is_inside(*brace, home)
                };
                let mut braces = self.braces_around(place).filter(again);
                if is_shared || braces.any(|brace| self.runs_again(brace)) {
                    return None;
                }
                continue;
            }
            let is_sure = is_on_the_way && starts && (!is_shared || self.is_alone(of, place, at));
            value = match change {
                Change::Whole(text) if is_sure => {
                    let new = self.value(&self.text[text], place, known);
                    match of.kind {
                        Kind::Extents => new.map(|new| Value::Extents(new.extents())),
                        _ => new,
                    }
                }
                Change::Member(axis, text) if is_sure => {
                    let new = self.value(&self.text[text], place, known);
                    value.map(|value| {
                        let mut all = value.extents();
                        all.resize(all.len().max(axis + 1), Some(1));
                        all[axis] = new.and_then(Value::number);
                        Value::Extents(all)
                    })
                }
                _ => None,
            };
        }
        value
    }

    /// Of a variable that several functions share: do these two places stand in one of them?
    fn is_alone(&self, of: &Declaration, place: usize, at: usize) -> bool {
        let home = self.around[of.at];
        let outermost = |at: usize| {
            let mut braces = self
                .braces_around(at)
                .filter(|brace| self.is_inside(*brace, home));
            braces.by_ref().last()
        };
        let own = outermost(place);
        own.is_some() && own == outermost(at)
    }

    fn braces_around(&self, at: usize) -> impl Iterator<Item = usize> + '_ {
        let first = self.around.get(at).copied().flatten();
        let all = std::iter::successors(first, |open| self.around[*open]);
        all.filter(|open| self.word(*open) == "{")
    }

    /// What becomes of the variable that a token names.
    fn change(&self, at: usize, field: Option<&str>) -> Option<Change> {
        let before = [1, 2].map(|n| at.checked_sub(n).map_or("", |at| self.word(at)));
        if before[0] == "." || before == [":", ":"] {
            return None;
        }
        let member = (self.word(at + 1) == ".").then(|| self.word(at + 2));
        if let (Some(field), Some(member)) = (field, member)
            && field != member
        {
            return None;
        }
        let mut last = if member.is_some() { at + 2 } else { at };
        let axis = member.and_then(|member| AXES.iter().position(|axis| *axis == member));
        // `config.blockDim.x = …`
        let mut of_field = None;
        if field.is_some() && self.word(last + 1) == "." {
            of_field = AXES.iter().position(|axis| *axis == self.word(last + 2));
            last += 2;
        }
        let next = [1, 2, 3].map(|n| self.word(last + n));
        let is_arithmetic = |sign: &str| "+-*/%&|^".contains(sign) && !sign.is_empty();
        let is_touching = |n: usize| {
            let end = self.tokens.get(last + n).map(|t| t.at.end);
            end == self.tokens.get(last + n + 1).map(|t| t.at.start)
        };
        match (next, before) {
            (["=", second, _], _) if second != "=" || !is_touching(1) => {
                let text = self.assigned(last + 1);
                match (field, axis, of_field) {
                    (Some(_), _, Some(axis)) => Some(Change::Member(axis, text)),
                    (Some(_), None, None) if member.is_some() => Some(Change::Whole(text)),
                    (None, Some(axis), _) => Some(Change::Member(axis, text)),
                    (None, None, _) if member.is_none() => Some(Change::Whole(text)),
                    _ => Some(Change::Anything),
                }
            }
            ([sign, "=", third], _) if is_arithmetic(sign) && is_touching(1) && third != "=" => {
                Some(Change::Anything)
            }
            (["+", "+", _] | ["-", "-", _], _) if is_touching(1) => Some(Change::Anything),
            (["<", "<", "="] | [">", ">", "="], _) => Some(Change::Anything),
            (_, ["+", "+"] | ["-", "-"] | [">", ">"]) => Some(Change::Anything),
            (_, ["&", "(" | "," | "=" | "{"]) => {
                let call = self.around[at].and_then(|open| open.checked_sub(1));
                let is_launch = call.is_some_and(|call| is_extended(self.word(call)));
                (!is_launch).then_some(Change::Anything)
            }
            (["," | ")", ..], ["(" | ",", _]) if member.is_none() => {
                let call = self.around[at].and_then(|open| open.checked_sub(1));
                let writes = call.is_some_and(|call| self.takes_references(self.word(call)));
                writes.then_some(Change::Anything)
            }
            _ => None,
        }
    }
}

fn binary(sign: &str, a: i64, b: i64) -> Option<i64> {
    let shift = || u32::try_from(b).ok().filter(|&n| n < 63);
    Some(match sign {
        "+" => a.checked_add(b)?,
        "-" => a.checked_sub(b)?,
        "*" => a.checked_mul(b)?,
        "/" => a.checked_div(b)?,
        "%" => a.checked_rem(b)?,
        "<<" => a.checked_mul(1_i64.checked_shl(shift()?)?)?,
        ">>" => a >> shift()?,
        "&" => a & b,
        "|" => a | b,
        "^" => a ^ b,
        "<" => i64::from(a < b),
        ">" => i64::from(a > b),
        "<=" => i64::from(a <= b),
        ">=" => i64::from(a >= b),
        "==" => i64::from(a == b),
        "!=" => i64::from(a != b),
        "&&" => i64::from(a != 0 && b != 0),
        "||" => i64::from(a != 0 || b != 0),
        _ => return None,
    })
}
