//! Guards as text: `block=256,1,1; grid.x<=65535; smem=0; n=4096; align(x)=16; disjoint(x[4096],y[4096])`.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::{Condition, Disjoint, Extent, Guard, Quantity, Set};
use crate::values::Field;

/// The parameters of a kernel: names and sizes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Signature {
    params: Vec<(String, u32)>,
}

impl Signature {
    /// Of each parameter its name, which may be empty, and its bytes.
    pub fn new<N: Into<String>>(params: impl IntoIterator<Item = (N, u32)>) -> Signature {
        let params = params.into_iter();
        Signature {
            params: params.map(|(name, bytes)| (name.into(), bytes)).collect(),
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.params.len()
    }

    /// Are there none?
    pub fn is_empty(&self) -> bool {
        self.params.is_empty()
    }

    /// Bytes of a parameter.
    pub fn bytes(&self, param: usize) -> Option<u32> {
        self.params.get(param).map(|&(_, bytes)| bytes)
    }

    fn find(&self, name: &str) -> Option<usize> {
        self.params.iter().position(|(own, _)| own == name)
    }

    /// The name, if it can be nothing else in a guard.
    fn name(&self, param: usize) -> Option<&str> {
        let (name, _) = self.params.get(param)?;
        let is_word = name.chars().all(is_of_word) && !name.is_empty();
        let is_plain = is_word && !name.starts_with(|first: char| first.is_ascii_digit());
        let is_ours = KEYWORDS.contains(&name.as_str()) || numbered(name).is_some();
        (is_plain && !is_ours && self.find(name) == Some(param)).then_some(name)
    }
}

const KEYWORDS: [&str; 8] = [
    "block", "grid", "cluster", "smem", "align", "disjoint", "always", "never",
];

/// 3 of `param3`.
fn numbered(name: &str) -> Option<u16> {
    name.strip_prefix("param")?.parse().ok()
}

fn is_of_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '$'
}

/// The text is no guard.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{problem}")]
pub struct GuardError {
    /// What is wrong.
    pub problem: GuardProblem,
    /// The bytes of the text that it is about.
    pub span: Range<usize>,
}

/// What is wrong with a text that is no guard.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GuardProblem {
    /// Something else is expected.
    #[error("expected {0}")]
    Expected(&'static str),
    /// No such parameter.
    #[error("the kernel has no parameter `{0}`")]
    NoParameter(String),
    /// A parameter that is no scalar needs a place.
    #[error("which bytes of it? {0}")]
    WhichBytes(&'static str),
    /// A number that the quantity cannot be.
    #[error("{0} does not fit")]
    TooLarge(String),
}

impl Guard {
    /// Reads a guard; parameters go by name, or by number (`param0:4`: four bytes of the first one).
    ///
    /// # Errors
    /// [`GuardError`], with the place in the text.
    pub fn parse(text: &str, signature: &Signature) -> Result<Guard, GuardError> {
        let mut reader = Reader {
            text,
            at: 0,
            signature,
        };
        let mut guard = Guard::always();
        loop {
            reader.space();
            if reader.is_at_end() {
                return Ok(guard.normal());
            }
            guard = reader.condition(guard)?;
            if !reader.eat(";") && !reader.is_at_end() {
                return Err(reader.expected("`;` or the end"));
            }
        }
    }

    /// The guard's text with the names of parameters.
    pub fn named<'a>(&'a self, signature: &'a Signature) -> Named<'a> {
        Named {
            guard: self,
            signature,
        }
    }
}

impl FromStr for Guard {
    type Err = GuardError;

    fn from_str(text: &str) -> Result<Self, GuardError> {
        Guard::parse(text, &Signature::default())
    }
}

impl Serialize for Guard {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Guard {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    signature: &'a Signature,
}

/// Which bytes of which parameter, before it is known how many.
#[derive(Clone, Copy)]
struct Place {
    param: u16,
    at: u32,
    bytes: Option<u8>,
}

impl<'a> Reader<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn is_at_end(&self) -> bool {
        self.at == self.text.len()
    }

    fn space(&mut self) {
        self.at = self.text.len() - self.rest().trim_start().len();
    }

    fn eat(&mut self, what: &str) -> bool {
        self.space();
        let is_there = self.rest().starts_with(what);
        if is_there {
            self.at += what.len();
            self.space();
        }
        is_there
    }

    fn word(&mut self) -> &'a str {
        self.space();
        let rest = self.rest();
        let end = rest.find(|c| !is_of_word(c)).unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    fn error(&self, from: usize, problem: GuardProblem) -> GuardError {
        GuardError {
            problem,
            span: from..self.at.max(from),
        }
    }

    fn expected(&self, what: &'static str) -> GuardError {
        self.error(self.at, GuardProblem::Expected(what))
    }

    fn need(&mut self, what: &'static str, shown: &'static str) -> Result<(), GuardError> {
        match self.eat(what) {
            true => Ok(()),
            false => Err(self.expected(shown)),
        }
    }

    fn condition(&mut self, guard: Guard) -> Result<Guard, GuardError> {
        let start = self.at;
        let word = self.word();
        match word {
            "always" => Ok(guard),
            "never" => Ok(Guard::never()),
            "align" if self.eat("(") => self.aligned(guard),
            "disjoint" if self.eat("(") => self.disjoint(guard),
            "smem" => self.relation(guard, Quantity::DynamicShared),
            "block" => self.extents(guard, Quantity::Block),
            "grid" => self.extents(guard, Quantity::Grid),
            "cluster" => self.extents(guard, Quantity::Cluster),
            "" => Err(self.expected("a condition, such as `block=256,1,1` or `n=4096`")),
            name => {
                let place = self.place(start, name)?;
                let field = self.field(start, place)?;
                self.relation(guard, Quantity::Param(field))
            }
        }
    }

    /// `.x<=4`, `=4,1,1`, or `=256`: the other two are 1.
    fn extents(&mut self, guard: Guard, of: fn(Extent) -> Quantity) -> Result<Guard, GuardError> {
        if self.eat(".") {
            let extent = match self.word() {
                "x" => Extent::X,
                "y" => Extent::Y,
                "z" => Extent::Z,
                "size" => Extent::Size,
                _ => return Err(self.expected("`x`, `y`, `z` or `size`")),
            };
            return self.relation(guard, of(extent));
        }
        self.need("=", "`=` and the extents, or `.x`, `.y`, `.z`, `.size`")?;
        let mut guard = guard;
        let mut is_there = true;
        for axis in Extent::AXES {
            let n = if is_there { self.number(of(axis))? } else { 1 };
            guard.restrict(of(axis), Some(Set::only(n)));
            is_there = is_there && self.eat(",");
        }
        Ok(guard)
    }

    fn relation(&mut self, mut guard: Guard, of: Quantity) -> Result<Guard, GuardError> {
        if self.eat("<=") {
            let set = Set::new(0, self.number(of)?, 1);
            guard.restrict(of, set);
            return Ok(guard);
        }
        if self.eat(">=") {
            let set = Set::new(self.number(of)?, u64::MAX, 1);
            guard.restrict(of, set);
            return Ok(guard);
        }
        if self.eat("%") {
            let step = self.number(of)?;
            self.need("=", "`=0`")?;
            self.need("0", "`0`")?;
            guard.restrict(of, Set::new(0, u64::MAX, step));
            return Ok(guard);
        }
        self.need("=", "`=`, `<=`, `>=` or `%`")?;
        guard.restrict(of, Some(Set::only(self.number(of)?)));
        Ok(guard)
    }

    /// `x)=16`
    fn aligned(&mut self, mut guard: Guard) -> Result<Guard, GuardError> {
        let pointer = self.pointer()?;
        self.need(")", "`)`")?;
        self.need("=", "`=` and bytes")?;
        let of = Quantity::Param(pointer);
        guard.restrict(of, Set::new(0, u64::MAX, self.number(of)?));
        Ok(guard)
    }

    /// `x[4096],y[4096])`
    fn disjoint(&mut self, mut guard: Guard) -> Result<Guard, GuardError> {
        let (first, first_bytes) = self.region()?;
        self.need(",", "`,` and another pointer")?;
        let (second, second_bytes) = self.region()?;
        self.need(")", "`)`")?;
        guard.separate(Disjoint {
            pointers: [first, second],
            bytes: [first_bytes, second_bytes],
        });
        Ok(guard)
    }

    fn region(&mut self) -> Result<(Field, u64), GuardError> {
        let pointer = self.pointer()?;
        self.need("[", "`[` and bytes")?;
        let bytes = self.number(Quantity::Param(pointer))?;
        self.need("]", "`]`")?;
        Ok((pointer, bytes))
    }

    fn pointer(&mut self) -> Result<Field, GuardError> {
        let start = self.at;
        let name = self.word();
        let place = self.place(start, name)?;
        let bytes = place.bytes.or(Some(8));
        self.field(start, Place { bytes, ..place })
    }

    /// `n`, `args+8:4`, `param3:4`
    fn place(&mut self, start: usize, name: &str) -> Result<Place, GuardError> {
        let named = self.signature.find(name).map(|index| index as u16);
        let is_known = |param: &u16| {
            let all = self.signature.len();
            all == 0 || usize::from(*param) < all
        };
        let param = named.or_else(|| numbered(name).filter(is_known));
        let Some(param) = param else {
            let unknown = GuardProblem::NoParameter(name.to_owned());
            return Err(self.error(start, unknown));
        };
        let at = match self.eat("+") {
            true => self.integer("the member's offset in bytes")?,
            false => 0,
        };
        let bytes = match self.eat(":") {
            true => Some(self.integer("the member's bytes: 1, 2, 4 or 8")?),
            false => None,
        };
        Ok(Place { param, at, bytes })
    }

    fn field(&self, start: usize, place: Place) -> Result<Field, GuardError> {
        let size = self.signature.bytes(place.param.into());
        let bytes = match (place.bytes, size) {
            (Some(bytes), _) => Some(bytes),
            (None, Some(size)) if place.at == 0 => u8::try_from(size).ok(),
            (None, _) => None,
        };
        let field = bytes.and_then(|bytes| Field::new(place.param, place.at, bytes));
        let is_inside =
            |field: &Field| size.is_none_or(|size| field.at() + field.bytes() <= size as usize);
        field.filter(is_inside).ok_or_else(|| {
            let example = "such as `args+8:4`: four bytes from byte 8 on, a multiple of their size";
            self.error(start, GuardProblem::WhichBytes(example))
        })
    }

    fn integer<N: FromStr>(&mut self, what: &'static str) -> Result<N, GuardError> {
        let start = self.at;
        let parsed = self.word().parse();
        parsed.map_err(|_| self.error(start, GuardProblem::Expected(what)))
    }

    /// A number that the quantity can be: as it is, in hexadecimal, with a minus, or as a floating-point number.
    fn number(&mut self, of: Quantity) -> Result<u64, GuardError> {
        self.space();
        let start = self.at;
        let is_of_number = |c: char| c.is_alphanumeric() || "._-+".contains(c);
        let rest = self.rest();
        let end = rest.find(|c| !is_of_number(c)).unwrap_or(rest.len());
        let text = &rest[..end];
        self.at += end;
        match bits(text, of) {
            Some(value) if value <= of.natural().high() => Ok(value),
            Some(_) => Err(self.error(start, GuardProblem::TooLarge(text.to_owned()))),
            None => Err(self.error(start, GuardProblem::Expected("a number"))),
        }
    }
}

fn bits(text: &str, of: Quantity) -> Option<u64> {
    let Quantity::Param(field) = of else {
        return text.parse().ok();
    };
    if let Some(digits) = text.strip_prefix("0x") {
        return u64::from_str_radix(digits, 16).ok();
    }
    if let Ok(value) = text.parse::<u64>() {
        return Some(value);
    }
    if let Ok(value) = text.parse::<i64>() {
        let least = -1i64 << (8 * field.bytes() - 1);
        return (value >= least).then_some(value as u64 & field.most());
    }
    match field.bytes() {
        4 => Some(text.parse::<f32>().ok()?.to_bits().into()),
        8 => Some(text.parse::<f64>().ok()?.to_bits()),
        _ => None,
    }
}

impl fmt::Display for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.named(&Signature::default()).fmt(f)
    }
}

/// A guard that prints with the names of parameters.
#[derive(Clone, Copy, Debug)]
pub struct Named<'a> {
    guard: &'a Guard,
    signature: &'a Signature,
}

impl fmt::Display for Named<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.guard.is_always() {
            return f.write_str("always");
        }
        if self.guard.is_never() {
            return f.write_str("never");
        }
        let mut parts = Vec::new();
        let mut whole: Vec<fn(Extent) -> Quantity> = Vec::new();
        for of in [Quantity::Block, Quantity::Grid, Quantity::Cluster] {
            if self.is_exact(of) {
                whole.push(of);
            }
        }
        for condition in self.guard.conditions() {
            match condition {
                Condition::In(quantity, set) => self.numbers(&mut parts, &whole, quantity, set),
                Condition::Disjoint(disjoint) => parts.push(self.disjoint(disjoint)),
            }
        }
        f.write_str(&parts.join("; "))
    }
}

impl Named<'_> {
    /// Are all three extents stated as numbers?
    fn is_exact(&self, of: fn(Extent) -> Quantity) -> bool {
        let is_stated = |axis| {
            self.guard
                .sets
                .get(&of(axis))
                .is_some_and(|s| s.value().is_some())
        };
        Extent::AXES.into_iter().all(is_stated)
    }

    fn numbers(
        &self,
        parts: &mut Vec<String>,
        whole: &[fn(Extent) -> Quantity],
        quantity: Quantity,
        set: Set,
    ) {
        for of in whole {
            let dims = Extent::AXES.map(|axis| self.guard.stated(of(axis)).low());
            if quantity == of(Extent::X) {
                let [x, y, z] = dims;
                return parts.push(format!("{}={x},{y},{z}", family(quantity)));
            }
            if Extent::AXES.iter().any(|&axis| quantity == of(axis)) {
                return;
            }
        }
        let name = self.quantity(quantity);
        if let Some(value) = set.value() {
            return parts.push(format!("{name}={value}"));
        }
        self.range(parts, quantity, set);
    }

    /// What a set says that is not so anyway.
    fn range(&self, parts: &mut Vec<String>, quantity: Quantity, set: Set) {
        let name = self.quantity(quantity);
        let (natural, step) = (quantity.natural(), set.step());
        let all = natural.and(Set::new(0, u64::MAX, step).unwrap_or(natural));
        let all = all.unwrap_or(natural);
        if set.low() > all.low() {
            parts.push(format!("{name}>={}", set.low()));
        }
        if set.high() < all.high() {
            parts.push(format!("{name}<={}", set.high()));
        }
        match quantity {
            _ if step == 1 => {}
            Quantity::Param(field) if field.bytes() == 8 && step.is_power_of_two() => {
                parts.push(format!("align({})={step}", self.pointer(field)));
            }
            _ => parts.push(format!("{name}%{step}=0")),
        }
    }

    fn disjoint(&self, disjoint: Disjoint) -> String {
        let [a, b] = disjoint.pointers.map(|pointer| self.pointer(pointer));
        let [a_bytes, b_bytes] = disjoint.bytes;
        format!("disjoint({a}[{a_bytes}],{b}[{b_bytes}])")
    }

    fn quantity(&self, quantity: Quantity) -> String {
        match quantity {
            Quantity::Block(extent) | Quantity::Grid(extent) | Quantity::Cluster(extent) => {
                format!("{}.{}", family(quantity), extent.name())
            }
            Quantity::DynamicShared => family(quantity).to_owned(),
            Quantity::Param(field) => self.field(field, None),
        }
    }

    fn pointer(&self, field: Field) -> String {
        self.field(field, Some(8))
    }

    /// A field, with its size where that is not the parameter's or what stands here anyway.
    fn field(&self, field: Field, usual: Option<usize>) -> String {
        let name = self.signature.name(field.param());
        let mut text = name.map_or_else(|| format!("param{}", field.param()), str::to_owned);
        if field.at() > 0 {
            text += &format!("+{}", field.at());
        }
        let size = self
            .signature
            .bytes(field.param())
            .map(|size| size as usize);
        let is_whole = field.at() == 0 && size == Some(field.bytes());
        if !is_whole && usual != Some(field.bytes()) {
            text += &format!(":{}", field.bytes());
        }
        text
    }
}

impl Extent {
    /// `x`, `y`, `z` or `size`.
    pub fn name(self) -> &'static str {
        match self {
            Extent::X => "x",
            Extent::Y => "y",
            Extent::Z => "z",
            Extent::Size => "size",
        }
    }
}

fn family(quantity: Quantity) -> &'static str {
    match quantity {
        Quantity::Block(_) => "block",
        Quantity::Grid(_) => "grid",
        Quantity::Cluster(_) => "cluster",
        Quantity::DynamicShared => "smem",
        Quantity::Param(_) => "param",
    }
}
