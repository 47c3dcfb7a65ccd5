//! A naive kernel: the points of a grid, and what a thread computes for one of them.
//!
//! Integers that say where something is (places, counters, subscripts, bounds) are polynomials of
//! [`affine`](warpwright_cudac::affine). Everything else stays an expression tree as it was written, operators and
//! order included, so that what is printed from it means the same to the compiler, to the bit.

use warpwright_cudac::Scalar;
use warpwright_cudac::affine::{Poly, Symbol};
use warpwright_cudac::diag::Span;

/// A kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct Kernel {
    /// Its name.
    pub name: String,
    /// What it is an instance of, where it is a template.
    pub template: Option<Template>,
    /// Its parameters in their order.
    pub parameters: Vec<Parameter>,
    /// Its arrays.
    pub arrays: Vec<Array>,
    /// By number of [`Symbol::Size`]: the parameter.
    pub sizes: Vec<usize>,
    /// The dimensions of its points: x, y, z as far as they are used, in this order; four at most where they are
    /// [`Flat`]. Those behind the second are blocks along z.
    pub dims: Vec<Dim>,
    /// The dimensions are those that the text finds in one place of the launch, by `/` and `%`.
    pub flat: Option<Flat>,
    /// Threads of a block along x, y and z, where the text presumes them.
    pub block: [Option<i64>; 3],
    /// By axis: the text counts on one block along it, as its threads are the points.
    pub single: [bool; 3],
    /// Variables of a thread.
    pub variables: Vec<Variable>,
    /// Accesses to arrays, by number.
    pub accesses: Vec<Access>,
    /// By number of [`Symbol::Loop`].
    pub loops: Vec<Loop>,
    /// What is done for a point.
    pub body: Vec<Statement>,
    /// Integers that C computes in 32 bits, and whether without a sign: where all of them are in range, the
    /// polynomials are what C computes.
    pub ranges: Vec<(Poly, bool)>,
    /// What its pragma says.
    pub pragma: Pragma,
}

/// The one instance of a template that a file has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    /// `template <…>`
    pub head: String,
    /// Its parameters: whether it is a type, its name, and what it is in the instance.
    pub arguments: Vec<(bool, String, String)>,
}

impl Template {
    /// `<float, 4>`
    pub fn given(&self) -> String {
        let all: Vec<&str> = self.arguments.iter().map(|(.., what)| &**what).collect();
        format!("<{}>", all.join(", "))
    }

    /// A text with the arguments of the instance in the place of the parameters.
    fn instantiated(&self, text: &str) -> String {
        let mut out = String::new();
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let mut rest = text;
        while let Some(c) = rest.chars().next() {
            let same = rest.find(|d: char| is_word(d) != is_word(c));
            let (word, after) = rest.split_at(same.unwrap_or(rest.len()));
            let own = self.arguments.iter().find(|(_, name, _)| name == word);
            out.push_str(own.map_or(word, |(.., what)| what));
            rest = after;
        }
        out
    }
}

/// `#pragma warpwright naive …`
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pragma {
    /// Sizes that are expected, by name of a parameter.
    pub sizes: Vec<(String, i64)>,
    /// Arrays that count as results; empty: all that are stored to.
    pub outputs: Vec<String>,
    /// Sums may be reordered.
    pub reassociate: bool,
}

/// A parameter of the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Its name.
    pub name: String,
    /// Its declaration, as written.
    pub written: String,
    /// The same in the instance of a template.
    pub declared: String,
    /// What it is.
    pub kind: ParameterKind,
}

impl Parameter {
    /// One that is declared so.
    pub fn new(
        name: &str,
        written: String,
        template: Option<&Template>,
        kind: ParameterKind,
    ) -> Parameter {
        let own = template.map(|template| template.instantiated(&written));
        Parameter {
            name: name.to_owned(),
            declared: own.unwrap_or_else(|| written.clone()),
            written,
            kind,
        }
    }

    /// Its type, as C has it: the declaration without the name; arrays are pointers.
    pub fn ty(&self) -> String {
        let declared = self.declared.replace("__restrict__", "");
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        // Behind the type: `a` is in `float` too.
        let mut found = declared.rmatch_indices(&self.name).filter(|(at, name)| {
            let (before, after) = (&declared[..*at], &declared[at + name.len()..]);
            !before.ends_with(is_word) && !after.starts_with(is_word)
        });
        let Some((at, name)) = found.next() else {
            return declared;
        };
        let (before, after) = (declared[..at].trim(), declared[at + name.len()..].trim());
        match after
            .strip_prefix('[')
            .and_then(|rest| rest.split_once(']'))
        {
            Some((_, "")) => format!("{before} *"),
            Some((_, rows)) => format!("{before} (*){rows}"),
            None => format!("{before} {after}").trim().to_owned(),
        }
    }
}

/// What a parameter is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParameterKind {
    /// An array, by number.
    Array(usize),
    /// An integer, by number of [`Symbol::Size`].
    Size(usize, Scalar),
    /// A number of another type, which is passed by value.
    Scalar(Option<Scalar>),
    /// Something that the kernel does not use.
    Unused,
}

/// An array in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Array {
    /// Its name.
    pub name: String,
    /// The parameter that points to it; none for a variable of the file.
    pub parameter: Option<usize>,
    /// The type of its elements, as C has it.
    pub element: String,
    /// Bytes of an element.
    pub bytes: u32,
    /// The type of its elements, if it is an arithmetic one.
    pub scalar: Option<Scalar>,
    /// Elements of a variable of the file.
    pub length: Option<i64>,
    /// Subscripts that a variable of the file takes in the text beyond the first.
    pub rows: usize,
    /// A variable of the file whose first value stands there.
    pub is_fixed: bool,
    /// It is stored to.
    pub stored: bool,
    /// A point has loaded all that it loads from it before it stores anything.
    pub early: bool,
}

impl Array {
    /// A pointer to its first element, as C has it.
    pub fn text(&self) -> String {
        match self.rows {
            0 => self.name.clone(),
            rows => format!("(&{}{})", self.name, "[0]".repeat(rows + 1)),
        }
    }
}

/// Dimensions in one: a place along x of the launch is the first place, plus so many times the second, and so on (a
/// number in mixed radix).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flat {
    /// By dimension, but the last: how many places it has before the next one moves. Above zero in every launch.
    pub radices: Vec<Poly>,
    /// Each is one past the last place of the launch; the smallest counts, and what the launch has threads for.
    pub high: Vec<Poly>,
}

/// A dimension of the points.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dim {
    /// A place in the grid: [`Symbol::Global`] or [`Symbol::BlockIdx`].
    pub symbol: Symbol,
    /// The variable that holds it in the text.
    pub name: String,
    /// Points below are left out; the largest counts.
    pub low: Vec<Poly>,
    /// Each is one past the last point; the smallest counts, and what the launch has threads for.
    pub high: Vec<Poly>,
    /// A loop over the grid (`i += gridDim.x * blockDim.x`) goes to its end, however many threads there are.
    pub whole: bool,
}

impl Dim {
    /// The axis of the grid: 0 is x.
    pub fn axis(&self) -> usize {
        match self.symbol {
            Symbol::Global(axis) | Symbol::BlockIdx(axis) => usize::from(axis),
            _ => 0,
        }
    }

    /// Do its guards leave one place of it, as in `if (i == 0)`?
    pub fn is_one(&self) -> bool {
        let one = |low: &Poly, high: &Poly| {
            let places = high.plus(low, -1);
            places.and_then(|n| n.as_constant()) == Some(1)
        };
        let of = |low| self.high.iter().any(|high| one(low, high));
        self.low.iter().any(of)
    }
}

/// A variable of a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    /// Its name in the text.
    pub name: String,
    /// Its type, as C has it.
    pub ty: String,
    /// Its type, if it is an arithmetic one.
    pub scalar: Option<Scalar>,
}

/// An element of an array.
#[derive(Clone, Debug, PartialEq)]
pub struct Access {
    /// The array.
    pub array: usize,
    /// Which of its elements.
    pub index: Index,
    /// Above an unresolved index wherever it is used, and whether the index is never negative; none: it is not known.
    pub below: Option<(Poly, bool)>,
    /// Where it stands.
    pub span: Span,
}

/// A subscript, in elements.
#[derive(Clone, Debug, PartialEq)]
pub enum Index {
    /// A polynomial.
    Affine(Poly),
    /// The paper's unresolved index (section 3.2): a value of the thread.
    Value(Value),
}

impl Access {
    /// The subscript, if it is a polynomial.
    pub fn affine(&self) -> Option<&Poly> {
        match &self.index {
            Index::Affine(poly) => Some(poly),
            Index::Value(_) => None,
        }
    }
}

/// A sequential loop, `for (name = low; name < high; name += step)`.
#[derive(Clone, Debug, PartialEq)]
pub struct Loop {
    /// Its counter.
    pub name: String,
    /// The first value.
    pub low: Poly,
    /// One past the last value.
    pub high: Poly,
    /// The step, above zero.
    pub step: i64,
    /// Its head.
    pub span: Span,
}

/// What a thread does.
#[derive(Clone, Debug, PartialEq)]
pub enum Statement {
    /// `ty name;`, or with a first value.
    Declare(usize, Option<Value>),
    /// `variable = value;`, `variable.member += value;`, …
    Assign {
        /// The variable.
        variable: usize,
        /// A part of it.
        member: Option<String>,
        /// `=`, `+=`, …
        op: String,
        /// The value.
        value: Value,
    },
    /// `array[index] = value;` and so on.
    Store {
        /// The element.
        access: usize,
        /// A part of it.
        member: Option<String>,
        /// `=`, `+=`, …
        op: String,
        /// The value.
        value: Value,
    },
    /// `atomicAdd(&array[index], value);` and so on: nobody uses what it gives back.
    Atomic {
        /// The element.
        access: usize,
        /// What is done to it.
        op: AtomicOp,
        /// With what.
        value: Value,
    },
    /// A loop.
    Loop(usize, Vec<Statement>),
    /// `if (…) … else …`
    If(Value, Vec<Statement>, Vec<Statement>),
    /// `while (…) …`: how many turns is not known.
    While(Value, Vec<Statement>),
}

/// An operation whose order does not count: integers become the same in every one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtomicOp {
    /// `atomicAdd`
    Add,
    /// `atomicMin`
    Min,
    /// `atomicMax`
    Max,
    /// `atomicAnd`
    And,
    /// `atomicOr`
    Or,
    /// `atomicXor`
    Xor,
}

impl AtomicOp {
    const ALL: [(&str, AtomicOp); 6] = [
        ("atomicAdd", AtomicOp::Add),
        ("atomicMin", AtomicOp::Min),
        ("atomicMax", AtomicOp::Max),
        ("atomicAnd", AtomicOp::And),
        ("atomicOr", AtomicOp::Or),
        ("atomicXor", AtomicOp::Xor),
    ];

    /// The operation of a function.
    pub fn of(name: &str) -> Option<AtomicOp> {
        let found = AtomicOp::ALL.into_iter().find(|(own, _)| *own == name);
        found.map(|(_, op)| op)
    }

    /// Its function.
    pub fn name(self) -> &'static str {
        let found = AtomicOp::ALL.into_iter().find(|(_, op)| *op == self);
        found.map_or("", |(name, _)| name)
    }
}

/// A value of a thread.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A literal, or the name of a constant of the file.
    Text(String),
    /// A parameter that is passed by value.
    Parameter(usize),
    /// A variable.
    Variable(usize),
    /// An element of an array, by number of the access.
    Load(usize),
    /// An integer of this type.
    Int(Poly, Scalar),
    /// A sign or another operator in front.
    Unary(String, Box<Value>),
    /// Two operands.
    Binary(String, Box<Value>, Box<Value>),
    /// A function without effects.
    Call(String, Vec<Value>),
    /// A conversion to the type of this name.
    Cast(String, Box<Value>),
    /// `c ? a : b`
    Select(Box<Value>, Box<Value>, Box<Value>),
    /// `a.x`
    Member(Box<Value>, String),
}

impl Value {
    /// The parts of which it is made.
    pub fn parts(&self) -> Vec<&Value> {
        match self {
            Value::Text(_)
            | Value::Parameter(_)
            | Value::Variable(_)
            | Value::Load(_)
            | Value::Int(..) => Vec::new(),
            Value::Unary(_, a) | Value::Cast(_, a) | Value::Member(a, _) => vec![a],
            Value::Binary(_, a, b) => vec![a, b],
            Value::Call(_, all) => all.iter().collect(),
            Value::Select(a, b, c) => vec![a, b, c],
        }
    }

    /// Calls `see` for itself and all its parts, and tells whether a part is computed only sometimes.
    pub fn walk<'a>(&'a self, sometimes: bool, see: &mut impl FnMut(&'a Value, bool)) {
        warpwright_cudac::with_stack(|| {
            see(self, sometimes);
            match self {
                Value::Select(cond, a, b) => {
                    cond.walk(sometimes, see);
                    a.walk(true, see);
                    b.walk(true, see);
                }
                Value::Binary(op, a, b) if op == "&&" || op == "||" => {
                    a.walk(sometimes, see);
                    b.walk(true, see);
                }
                _ => self
                    .parts()
                    .into_iter()
                    .for_each(|p| p.walk(sometimes, see)),
            }
        });
    }
}

impl Value {
    fn map_polys(&mut self, set: &impl Fn(&mut Poly)) {
        warpwright_cudac::with_stack(|| match self {
            Value::Int(poly, _) => set(poly),
            Value::Unary(_, a) | Value::Cast(_, a) | Value::Member(a, _) => a.map_polys(set),
            Value::Binary(_, a, b) => [a, b].into_iter().for_each(|v| v.map_polys(set)),
            Value::Call(_, all) => all.iter_mut().for_each(|v| v.map_polys(set)),
            Value::Select(a, b, c) => [a, b, c].into_iter().for_each(|v| v.map_polys(set)),
            Value::Text(_) | Value::Parameter(_) | Value::Variable(_) | Value::Load(_) => {}
        });
    }
}

impl Statement {
    fn map_polys(&mut self, set: &impl Fn(&mut Poly)) {
        warpwright_cudac::with_stack(|| match self {
            Statement::Declare(_, value) => value.iter_mut().for_each(|v| v.map_polys(set)),
            Statement::Assign { value, .. }
            | Statement::Store { value, .. }
            | Statement::Atomic { value, .. } => value.map_polys(set),
            Statement::Loop(_, body) => body.iter_mut().for_each(|s| s.map_polys(set)),
            Statement::While(cond, body) => {
                cond.map_polys(set);
                body.iter_mut().for_each(|s| s.map_polys(set));
            }
            Statement::If(cond, then, otherwise) => {
                cond.map_polys(set);
                let all = then.iter_mut().chain(otherwise);
                all.for_each(|s| s.map_polys(set));
            }
        });
    }

    /// The value that it computes, if it does nothing else.
    pub fn value(&self) -> Option<&Value> {
        match self {
            Statement::Declare(_, value) => value.as_ref(),
            Statement::Assign { value, .. }
            | Statement::Store { value, .. }
            | Statement::Atomic { value, .. } => Some(value),
            Statement::Loop(..) | Statement::If(..) | Statement::While(..) => None,
        }
    }

    /// What it computes itself: its value, or its condition.
    pub fn own(&self) -> Option<&Value> {
        match self {
            Statement::If(cond, ..) | Statement::While(cond, _) => Some(cond),
            other => other.value(),
        }
    }

    /// Calls `see` for itself and all statements in it.
    pub fn walk<'a>(&'a self, see: &mut impl FnMut(&'a Statement)) {
        warpwright_cudac::with_stack(|| {
            see(self);
            match self {
                Statement::Loop(_, body) | Statement::While(_, body) => {
                    body.iter().for_each(|s| s.walk(see));
                }
                Statement::If(_, then, otherwise) => {
                    then.iter().chain(otherwise).for_each(|s| s.walk(see));
                }
                _ => {}
            }
        });
    }
}

/// Is one of these statements, or of those in them, of a kind?
pub(crate) fn any(all: &[Statement], is: impl Fn(&Statement) -> bool) -> bool {
    let mut found = false;
    all.iter().for_each(|s| s.walk(&mut |s| found |= is(s)));
    found
}

impl Kernel {
    /// Calls `see` for every value of the kernel, those of subscripts included, and tells whether it is computed only
    /// sometimes.
    pub fn values<'a>(&'a self, see: &mut impl FnMut(&'a Value, bool)) {
        for statement in &self.body {
            statement.walk(&mut |s| match s {
                Statement::If(cond, ..) | Statement::While(cond, _) => cond.walk(true, see),
                s => s.value().into_iter().for_each(|v| v.walk(false, see)),
            });
        }
        for access in &self.accesses {
            if let Index::Value(value) = &access.index {
                value.walk(true, see);
            }
        }
    }

    /// Changes every polynomial of its accesses, loops and statements.
    pub fn map_polys(&mut self, set: &impl Fn(&mut Poly)) {
        for access in &mut self.accesses {
            match &mut access.index {
                Index::Affine(poly) => set(poly),
                Index::Value(value) => value.map_polys(set),
            }
        }
        for of in &mut self.loops {
            set(&mut of.low);
            set(&mut of.high);
        }
        self.body.iter_mut().for_each(|s| s.map_polys(set));
    }

    /// Has it loops of which nobody knows how many turns they make?
    pub fn is_open(&self) -> bool {
        any(&self.body, |s| matches!(s, Statement::While(..)))
    }

    /// Is one of its parameters called so?
    pub(crate) fn has_parameter(&self, name: &str) -> bool {
        self.parameters.iter().any(|p| p.name == name)
    }

    /// Accesses of atomic operations.
    pub fn atomics(&self) -> Vec<usize> {
        let mut all = Vec::new();
        for statement in &self.body {
            statement.walk(&mut |s| {
                if let Statement::Atomic { access, .. } = s {
                    all.push(*access);
                }
            });
        }
        all
    }

    /// The dimension of a place.
    pub fn dim(&self, symbol: Symbol) -> Option<usize> {
        self.dims.iter().position(|d| d.symbol == symbol)
    }

    /// The name of a size.
    pub fn size_name(&self, size: usize) -> &str {
        let parameter = self.sizes.get(size).and_then(|p| self.parameters.get(*p));
        parameter.map_or("", |p| &p.name)
    }
}
