//! What host code computes, as far as that is a number.

use std::ops::Range;

use super::HostCode;
use super::names::{Declaration, Kind};
use super::number::{Number, Ty, binary, either, is_narrowed};
use warpwright_cudac::Literal;
use warpwright_cudac::ast::{Expr, ExprKind, Type};
use warpwright_cudac::macros::Expanded;
use warpwright_cudac::words::tokens;
use warpwright_cudac::{parse_expr, print};

/// Names that are looked up for one launch, at most.
pub(super) const MOST: u32 = 500;

/// What parameters are known to be.
pub(super) type Known = Vec<(String, Number)>;

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Number(Number),
    /// A `dim3`, in as many dimensions as it says.
    Extents(Vec<Option<Number>>),
}

impl Value {
    pub(super) fn number(self) -> Option<Number> {
        match self {
            Value::Number(number) => Some(number),
            Value::Extents(_) => None,
        }
    }

    pub(super) fn extents(self) -> Vec<Option<Number>> {
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

/// Functions of the standard library that write what they are handed.
const SWAPS: [&str; 3] = ["swap", "exchange", "tie"];

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
    let close = warpwright_cudac::words::closed(text, &all, 0)?;
    let is_whole = all.first()?.at.start == 0 && all[close].at.end == text.len();
    is_whole.then(|| &text[1..text.len() - 1])
}

/// Sizes of types in bytes, for `sizeof`.
fn size(ty: &str) -> Option<u32> {
    Some(match ty {
        "char" | "unsigned char" | "signed char" | "bool" | "uint8_t" | "int8_t" | "uchar" => 1,
        "half" | "__half" | "__nv_bfloat16" | "short" | "uchar2" | "unsigned short"
        | "uint16_t" | "int16_t" | "nv_bfloat16" => 2,
        "uchar3" => 3,
        "float" | "int" | "unsigned" | "unsigned int" | "uint32_t" | "int32_t" | "__half2"
        | "half2" | "uchar4" | "uint" | "short2" => 4,
        "double" | "size_t" | "long long" | "long" | "unsigned long" | "unsigned long long"
        | "float2" | "int2" | "uint2" | "uint64_t" | "int64_t" => 8,
        "float3" | "int3" | "uint3" => 12,
        "float4" | "int4" | "uint4" | "double2" => 16,
        "double3" => 24,
        "double4" => 32,
        pointer if pointer.ends_with('*') => 8,
        _ => return None,
    })
}

/// The type in parentheses behind a `sizeof`, and where they end.
fn operand(behind: &str) -> Option<(&str, usize)> {
    let all = tokens(behind);
    let close = warpwright_cudac::words::closed(behind, &all, 0)?;
    let is_it = behind[all[0].at.clone()] == *"(";
    let inside = &behind[all[0].at.end..all[close].at.start];
    is_it.then_some((inside.trim(), all[close].at.end))
}

/// A text in which calls name no types: `min(a, b)` for `std::min<int>(a, b)`.
fn without_types(text: &str) -> String {
    let (mut out, mut from) = (String::new(), 0);
    let all = tokens(text);
    let word = |at: usize| all.get(at).map_or("", |t| &text[t.at.clone()]);
    for open in 1..all.len() {
        let is_cast = word(open - 1).ends_with("_cast");
        if word(open) != "<" || !all[open - 1].word || is_cast || all[open].at.start < from {
            continue;
        }
        let is_type = |at: &usize| all[*at].word || matches!(word(*at), ":" | "*" | "&" | ",");
        let close = open + 1 + (open + 1..all.len()).take_while(is_type).count();
        if close > open + 1 && word(close) == ">" && word(close + 1) == "(" {
            out += &text[from..all[open].at.start];
            from = all[close].at.end;
        }
    }
    out + &text[from..]
}

/// What stands in front of a `sizeof` that is known.
const SIZE: &str = "__sizeof_";

/// A text with a name for the number in place of each `sizeof`; none where one is not known.
fn without_sizeof(text: &str) -> Option<String> {
    let (mut out, mut from) = (text.to_owned(), 0);
    while let Some(at) = out[from..].find("sizeof").map(|at| at + from) {
        let is_inside = |b: Option<char>| b.is_some_and(|c| c == '_' || c.is_alphanumeric());
        let behind = &out[at + "sizeof".len()..];
        if is_inside(out[..at].chars().next_back()) || is_inside(behind.chars().next()) {
            from = at + "sizeof".len();
            continue;
        }
        let (ty, end) = operand(behind)?;
        out = format!("{}{SIZE}{}{}", &out[..at], size(ty)?, &behind[end..]);
        from = at + SIZE.len();
    }
    Some(out)
}

impl HostCode<'_> {
    /// A text with the bodies of macros that are no expressions of their own, as the preprocessor puts them there.
    pub(super) fn with_loose_macros(&self, text: &str) -> Option<String> {
        let mut out = text.to_owned();
        for _ in 0..8 {
            let is_loose =
                |body: &str| parse_expr(body, 0..0, |_| false).is_some_and(|expr| is_loose(&expr));
            let words = tokens(&out);
            let found = words.iter().find_map(|token| {
                let body = self
                    .macros
                    .object(&out[token.at.clone()])
                    .filter(|_| token.word)?;
                is_loose(body).then(|| (token.at.clone(), body.to_owned()))
            });
            let Some((at, body)) = found else {
                return Some(out);
            };
            out.replace_range(at, &body);
            self.fuel.set(self.fuel.get().checked_sub(1)?);
        }
        None
    }
}

/// Would it fall apart without parentheses?
fn is_loose(expr: &Expr) -> bool {
    matches!(
        expr.kind,
        ExprKind::Binary(..) | ExprKind::Conditional(..) | ExprKind::Unary(..)
    )
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
        let text = &without_types(&without_sizeof(text)?);
        let read = |text: &str| {
            let expr = parse_expr(text, 0..0, |word| word.ends_with("_t"))?;
            self.evaluated(&expr, at, known)
        };
        let own = read(text);
        // A macro's body falls apart where its neighbours bind closer.
        let expanded = self.with_loose_macros(text)?;
        if expanded == *text {
            return own;
        }
        let apart = read(&expanded);
        match own == apart {
            true => own,
            false => apart,
        }
    }

    fn listed(&self, all: &[&str], at: usize, known: &Known) -> Option<Value> {
        let one = |part: &&str| self.value(part, at, known).and_then(Value::number);
        let all: Vec<Option<Number>> = all.iter().map(one).collect();
        match all.len() {
            0 => Some(Value::Extents(vec![Some(Number::constant(1))])),
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

    pub(super) fn evaluated(&self, expr: &Expr, at: usize, known: &Known) -> Option<Value> {
        warpwright_cudac::with_stack(|| self.evaluate(expr, at, known))
    }

    fn evaluate(&self, expr: &Expr, at: usize, known: &Known) -> Option<Value> {
        let number = |expr: &Expr| self.evaluated(expr, at, known)?.number();
        if let ExprKind::Name(_) | ExprKind::Call(..) = &expr.kind
            && let Some(meaning) = self.macro_meaning(expr)
        {
            self.fuel.set(self.fuel.get().checked_sub(1)?);
            return self.evaluated(&meaning, at, known);
        }
        Some(Value::Number(match &expr.kind {
            ExprKind::Number(digits) => match Literal::parse(digits)? {
                Literal::Integer(number) => Number::new(number, Ty::of_literal(digits, number))?,
                Literal::Float(number) => Number::Real(number.into(), true),
                Literal::Double(number) => Number::Real(number, false),
            },
            ExprKind::Bool(value) => Number::constant(i64::from(*value)),
            ExprKind::Name(name) if name.starts_with(SIZE) => {
                Number::new(name[SIZE.len()..].parse().ok()?, Ty::SIZE)?
            }
            ExprKind::Name(name) => return self.named(name, at, known),
            ExprKind::Member(_, member) if member == "multiProcessorCount" => {
                Number::constant(self.processors?)
            }
            ExprKind::Member(base, member) => {
                let axis = AXES.iter().position(|axis| axis == member)?;
                match self.evaluated(base, at, known)? {
                    Value::Extents(all) => match all.get(axis) {
                        Some(extent) => (*extent)?,
                        None => Number::constant(1),
                    },
                    Value::Number(_) => return None,
                }
            }
            ExprKind::Call(name, arguments) => {
                let last = name.text.rsplit("::").next().unwrap_or(&name.text);
                let values: Vec<Option<Number>> = arguments.iter().map(number).collect();
                return self.called(last, &values);
            }
            ExprKind::Unary(sign, inner) => match (&**sign, number(inner)?) {
                ("-", inner) => binary("-", Number::constant(0), inner)?,
                ("+", inner) => inner,
                ("!", inner) => Number::constant(i64::from(!inner.is_true())),
                _ => return None,
            },
            ExprKind::Binary(sign, a, b) if matches!(&**sign, "&&" | "||") => {
                either(sign == "||", number(a), number(b))?
            }
            ExprKind::Binary(sign, a, b) => binary(sign, number(a)?, number(b)?)?,
            ExprKind::Conditional(condition, a, b) => {
                let chosen = if number(condition)?.is_true() { a } else { b };
                return self.evaluated(chosen, at, known);
            }
            ExprKind::Cast(_, ty, inner) => {
                let Type::Named(words) = ty.bare() else {
                    return None;
                };
                number(inner)?.declared(words)?
            }
            ExprKind::Paren(inner) => return self.evaluated(inner, at, known),
            _ => return None,
        }))
    }

    /// What a function makes of numbers.
    fn called(&self, name: &str, values: &[Option<Number>]) -> Option<Value> {
        Some(Value::Number(match (name, values) {
            ("ceil" | "ceilf", [Some(argument)]) => argument.ceil(),
            ("dim3" | "make_uint3" | "uint3", [_] | [_, _] | [_, _, _]) => {
                return Some(Value::Extents(values.to_vec()));
            }
            ("min" | "max", [Some(a), Some(b)]) => {
                let is_less = binary("<", *a, *b)?.is_true();
                if is_less == (name == "min") { *a } else { *b }
            }
            ("int" | "unsigned" | "size_t" | "uint32_t" | "float" | "double", [Some(value)]) => {
                value.declared(name)?
            }
            _ => {
                let (names, text, at, ty) = self.returned(name)?;
                let names = names.into_iter().map(str::to_owned);
                let values: Option<Vec<Number>> = values.iter().copied().collect();
                let values = values.filter(|v| v.len() == names.len())?;
                let value = self.value(text, at, &names.zip(values).collect())?;
                return match &value {
                    Value::Number(number) if is_narrowed(ty, number.integer()?) => None,
                    _ => Some(value),
                };
            }
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
                let value = value.map(|(_, value)| Value::Number(*value));
                value.or_else(|| self.handed(&found))
            }
            Kind::Integer | Kind::Extents if found.is_fixed => self.initial(&found, known),
            Kind::Integer | Kind::Extents => self.variable(&found, at, known),
            Kind::Unknown => None,
        }
    }

    /// What all calls of a function hand over for its parameter, which stays what it is.
    fn handed(&self, of: &Declaration) -> Option<Value> {
        self.fuel.set(self.fuel.get().checked_sub(1)?);
        let (name, all) = (self.word(of.at), self.handed_texts(of)?);
        let is_changed = |&place: &usize| {
            place != of.at
                && self.change(place).is_some()
                && self.declaration(name, place).is_some_and(|d| d.at == of.at)
        };
        let mut values = all.into_iter().map(|(text, call)| {
            let number = self.value(text, call, &Known::default())?.number()?;
            number.declared(self.type_of(of))
        });
        let first = values.next()??;
        let is_one = values.all(|other| other == Some(first));
        let is_kept = is_one && !self.places(name).iter().any(is_changed);
        is_kept.then_some(Value::Number(first))
    }

    /// What the calls of a function hand over for its parameter, each with the token of that call.
    fn handed_texts(&self, of: &Declaration) -> Option<Vec<(&str, usize)>> {
        let open = self.around[of.at].filter(|&open| self.word(open) == "(" && open > 0)?;
        let body = self.body(open)?;
        let function = self.word(open - 1);
        let commas =
            (open + 1..of.at).filter(|&at| self.around[at] == Some(open) && self.word(at) == ",");
        let index = commas.count();
        let mut found = Vec::new();
        for &place in self.places(function) {
            self.fuel.set(self.fuel.get().checked_sub(1)?);
            let before = self.word_before(place);
            let is_typed = before.starts_with(|c: char| c.is_alphabetic() || c == '_')
                && !["return", "else", "do"].contains(&before);
            let is_call = place + 1 != open
                && !self.tokens[place].directive
                && !is_typed
                && !self.is_inside(place, Some(body))
                && !self.is_shared(self.around[place]);
            if is_call {
                let all = self.call_arguments(place)?;
                found.push((*all.get(index)?, place));
            }
        }
        Some(found)
    }

    /// The arguments of the call that a token names.
    fn call_arguments(&self, call: usize) -> Option<Vec<&str>> {
        let mut open = call + 1;
        if self.word(open) == "<" {
            open = (open..self.tokens.len().min(open + 40)).find(|&at| self.word(at) == "(")?;
        }
        let close = self.tokens.get(self.close(open));
        let close = close.filter(|_| self.word(open) == "(")?;
        Some(parts(&self.text[self.tokens[open].at.end..close.at.start]))
    }

    /// The words in front of a declared name: its type.
    fn type_of(&self, of: &Declaration) -> &str {
        let start = self.tokens[self.statement(of.at)].at.start;
        let words = &self.text[start..self.tokens[of.at].at.start];
        words.split([',', '=']).next().unwrap_or("").trim()
    }

    /// What a variable is declared with.
    fn initial(&self, of: &Declaration, known: &Known) -> Option<Value> {
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
        match of.kind {
            Kind::Extents => match (text, list) {
                ("", _) => Some(Value::Extents(vec![Some(Number::constant(1))])),
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
            _ => {
                let value = self.value(list.unwrap_or(text), of.at, known)?;
                Some(match value {
                    Value::Number(number) => Value::Number(number.declared(self.type_of(of))?),
                    // `auto b = dim3(64);`
                    extents => extents,
                })
            }
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
    fn variable(&self, of: &Declaration, at: usize, known: &Known) -> Option<Value> {
        let home = self.around[of.at];
        let name = self.word(of.at);
        if self.acting.written.contains(name) {
            return None;
        }
        let is_shared = self.is_shared(home);
        let mut value = self.initial(of, known);
        for &place in self.places(name) {
            let is_it = || {
                let seen = self.declaration(name, place);
                let is_own = seen.map_or(is_shared, |d| d.at == of.at);
                is_own && !self.is_declared(place)
            };
            if place == of.at || place == at {
                continue;
            }
            let Some(change) = self.change(place) else {
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
                        _ => {
                            let new = new.and_then(Value::number);
                            let new = new.and_then(|new| new.declared(self.type_of(of)));
                            new.map(Value::Number)
                        }
                    }
                }
                Change::Member(axis, text) if is_sure => {
                    let new = self.value(&self.text[text], place, known);
                    value.map(|value| {
                        let mut all = value.extents();
                        all.resize(all.len().max(axis + 1), Some(Number::constant(1)));
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

    pub(super) fn braces_around(&self, at: usize) -> impl Iterator<Item = usize> + '_ {
        let first = self.around.get(at).copied().flatten();
        let all = std::iter::successors(first, |open| self.around[*open]);
        all.filter(|open| self.word(*open) == "{")
    }

    /// What becomes of the variable that a token names.
    fn change(&self, at: usize) -> Option<Change> {
        let before = [1, 2].map(|n| at.checked_sub(n).map_or("", |at| self.word(at)));
        if before[0] == "." || before == [":", ":"] {
            return None;
        }
        let member = (self.word(at + 1) == ".").then(|| self.word(at + 2));
        let last = if member.is_some() { at + 2 } else { at };
        let axis = member.and_then(|member| AXES.iter().position(|axis| *axis == member));
        let next = [1, 2, 3].map(|n| self.word(last + n));
        let is_arithmetic = |sign: &str| "+-*/%&|^".contains(sign) && !sign.is_empty();
        let is_touching = |n: usize| {
            let end = self.tokens.get(last + n).map(|t| t.at.end);
            end == self.tokens.get(last + n + 1).map(|t| t.at.start)
        };
        match (next, before) {
            (["=", second, _], _) if second != "=" || !is_touching(1) => {
                let text = self.assigned(last + 1);
                Some(match axis {
                    Some(axis) => Change::Member(axis, text),
                    None if member.is_none() => Change::Whole(text),
                    None => Change::Anything,
                })
            }
            ([sign, "=", third], _) if is_arithmetic(sign) && is_touching(1) && third != "=" => {
                Some(Change::Anything)
            }
            (["+", "+", _] | ["-", "-", _], _) if is_touching(1) => Some(Change::Anything),
            (["<", "<", "="] | [">", ">", "="], _) => Some(Change::Anything),
            (_, ["+", "+"] | ["-", "-"] | [">", ">"]) => Some(Change::Anything),
            // `(n) = …`, as macros have it.
            ([")", "=", third], ["(", _]) if third != "=" => Some(Change::Anything),
            ([")", sign, "="], ["(", _]) if is_arithmetic(sign) && is_touching(2) => {
                Some(Change::Anything)
            }
            // `int &r = n;`: what happens to the one happens to the other.
            (["," | ";" | ".", ..], ["=", _]) if self.is_referred(at) => Some(Change::Anything),
            (_, ["&", "(" | "," | "=" | "{"]) => Some(Change::Anything),
            (["," | ")", ..], ["(" | ",", _]) => {
                let call = self.around[at].and_then(|open| open.checked_sub(1));
                let writes = call.is_some_and(|call| {
                    let function = self.word(call);
                    SWAPS.contains(&function)
                        || self.acting.writing.contains(function)
                        || member.is_none() && self.takes_references(self.word(call))
                });
                writes.then_some(Change::Anything)
            }
            _ => None,
        }
    }

    /// Does a reference to what is no constant begin with the name at a token?
    fn is_referred(&self, at: usize) -> bool {
        let Some(sign) = at.checked_sub(3) else {
            return false;
        };
        let start = self.statement(at);
        self.word(sign) == "&"
            && self.word_before(sign) != "&"
            && start < sign
            && !(start..sign).any(|at| self.word(at) == "const")
    }
}
