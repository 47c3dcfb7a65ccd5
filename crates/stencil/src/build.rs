//! Puts a [`Stencil`] together, statement by statement; both front ends use it.
//!
//! Goal: what does not mean the same for every order of the points never becomes a stencil. The
//! rules are in `rules.rs` and are checked once everything is known; here are naming, constants
//! and the life of temporaries:
//!
//! - arithmetic on constants is done at once, as nvcc does it (round to nearest, in the type of
//!   the operands), unless the result is not finite;
//! - a local variable that holds a constant stands for the constant;
//! - a second `t = …` makes a new temporary, so that each one has exactly one plain assignment,
//!   its first, and after it only `+=`.

use std::collections::{BTreeMap, BTreeSet};

use cranelift_entity::PrimaryMap;

use super::canonical::renumber;
use super::ir::{
    Access, Array, BinaryOp, Dim, DimId, Element, Expr, ExprId, Function, Limit, ParameterId,
    Scalar, ScalarId, Statement, Stencil, Target, Temp, TempId,
};
use super::ir::{ArrayId, Extent, Variable};
use super::names::reserved;
use super::rules::{self, Points, Use};
use warpwright_cudac::diag::{Diagnostic, Span};

/// Deepest nesting of an expression. A sum of n terms is n deep; walkers recurse.
const DEEPEST: u32 = 500;

/// Most expression nodes of a stencil.
const MOST_NODES: usize = 200_000;

/// What a local name stands for.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Local {
    /// Declared, no value yet.
    Unset,
    /// Always this value.
    Constant(f64),
    /// A value of the point.
    Temp(TempId),
}

/// What an operand of an expression is: integers are known while the stencil is built.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Value {
    Integer(i64),
    Real(ExprId),
}

/// A stencil in the making.
#[derive(Debug, Default)]
pub(crate) struct Builder {
    stencil: Stencil,
    /// By expression: how deep it is nested, and its type.
    nodes: PrimaryMap<ExprId, (u32, Element)>,
    locals: BTreeMap<String, (Local, Element)>,
    names: BTreeSet<String>,
    uses: Vec<Use>,
}

impl Builder {
    pub(crate) fn new(name: &str) -> Self {
        let mut builder = Builder::default();
        name.clone_into(&mut builder.stencil.name);
        builder
    }

    /// The stencil so far.
    pub(crate) fn stencil(&self) -> &Stencil {
        &self.stencil
    }

    /// Permits reassociation.
    pub(crate) fn reassociate(&mut self) {
        self.stencil.reassociate = true;
    }

    pub(crate) fn parameter(&mut self, name: &str) -> ParameterId {
        let name = self.unique(name);
        self.stencil.parameters.push(name)
    }

    /// Adds a dimension; its size and margins come later.
    pub(crate) fn dim(&mut self, name: &str) -> DimId {
        let name = self.unique(name);
        self.stencil.dims.push(Dim {
            name,
            extent: Extent {
                parameter: None,
                add: 0,
            },
            low: 0,
            high: 0,
            unroll: None,
            edge: None,
        })
    }

    /// The description of a dimension.
    pub(crate) fn dim_mut(&mut self, dim: DimId) -> &mut Dim {
        &mut self.stencil.dims[dim]
    }

    pub(crate) fn array(&mut self, name: &str, element: Element, extents: Vec<Extent>) -> ArrayId {
        let name = self.unique(name);
        self.stencil.arrays.push(Array {
            name,
            element,
            extents,
            read: false,
            written: false,
            variable: None,
        })
    }

    /// An array that is a variable of the source file.
    pub(crate) fn variable(&mut self, array: ArrayId, variable: Variable) {
        self.stencil.arrays[array].variable = Some(variable);
    }

    /// A size that is the number of blocks along an axis.
    pub(crate) fn count_by_grid(&mut self, parameter: ParameterId, axis: u8) {
        self.stencil.from_grid.push((parameter, axis));
    }

    /// How many threads along each axis of a block the source presumes, and which of them compute.
    pub(crate) fn presume(&mut self, block: [Option<i64>; 3], computing: [Option<(i64, i64)>; 3]) {
        self.stencil.block = block;
        self.stencil.computing = computing;
    }

    /// What the points around the domain do. Both are made of the same declarations.
    pub(crate) fn finish_with_border(self, border: Builder) -> Result<Stencil, Vec<Diagnostic>> {
        let (uses, others) = (self.uses.clone(), border.uses.clone());
        let (mut inside, mut around) = (self.finish()?, border.finish()?);
        let problems = rules::check_border(&inside, &uses, &others);
        if !problems.is_empty() {
            return Err(problems);
        }
        for (id, array) in &mut inside.arrays {
            let other = &mut around.arrays[id];
            array.read |= other.read;
            array.written |= other.written;
            (other.read, other.written) = (array.read, array.written);
        }
        inside.border = Some(Box::new(around));
        Ok(inside)
    }

    pub(crate) fn scalar(&mut self, name: &str, element: Element) -> ScalarId {
        let name = self.unique(name);
        self.stencil.scalars.push(Scalar { name, element })
    }

    /// The value of a constant expression.
    pub(crate) fn constant_value(&self, value: ExprId) -> Option<(f64, Element)> {
        match self.stencil.exprs[value] {
            Expr::Constant(value, element) => Some((value, element)),
            _ => None,
        }
    }

    pub(crate) fn constant(&mut self, value: f64, element: Element) -> ExprId {
        self.push(Expr::Constant(element.round(value), element), 1, element)
    }

    /// A value in another type, where C converts it and whole numbers have a part in it; between the types of
    /// floating-point numbers what it is stored to converts it.
    pub(crate) fn convert(&mut self, value: ExprId, element: Element) -> ExprId {
        let own = self.nodes[value].1;
        if own == element || !(own.is_integer() || element.is_integer()) {
            return value;
        }
        if let Some((value, _)) = self.constant_value(value) {
            return self.constant(value, element);
        }
        // What is stored under a condition is the whole value.
        if let Expr::Call(Function::When, arguments) = &self.stencil.exprs[value]
            && let [condition, value] = arguments[..]
        {
            let value = self.convert(value, element);
            return self.when(condition, value);
        }
        self.apply(Function::To(element), vec![value])
    }

    /// Two operands in the type in which C computes with them.
    fn usual(&mut self, a: ExprId, b: ExprId) -> (ExprId, ExprId) {
        let element = self.nodes[a].1.wider(self.nodes[b].1);
        (self.convert(a, element), self.convert(b, element))
    }

    /// A function of values that have its types.
    fn apply(&mut self, function: Function, arguments: Vec<ExprId>) -> ExprId {
        let depth = arguments.iter().map(|&a| self.nodes[a].0).max();
        let element = function.element(arguments.iter().map(|&a| self.nodes[a].1));
        let call = Expr::Call(function, arguments);
        self.push(
            call,
            depth.unwrap_or(0) + 1,
            element.unwrap_or(Element::F64),
        )
    }

    pub(crate) fn scalar_value(&mut self, scalar: ScalarId) -> ExprId {
        let element = self.stencil.scalars[scalar].element;
        self.push(Expr::Scalar(scalar), 1, element)
    }

    pub(crate) fn load(&mut self, access: Access, span: Span) -> ExprId {
        self.load_within(access, Vec::new(), span)
    }

    /// A load that fewer points than all do: along these dimensions the first place, and the places left out at the end.
    pub(crate) fn load_within(
        &mut self,
        access: Access,
        within: Vec<(DimId, i64, i64)>,
        span: Span,
    ) -> ExprId {
        let element = self.stencil.arrays[access.array].element;
        self.uses.push(Use::load(access.clone(), within, span));
        self.push(Expr::Load(access), 1, element)
    }

    /// One value or another, by the place of the point.
    pub(crate) fn choice(&mut self, limits: Vec<Limit>, a: ExprId, b: ExprId) -> ExprId {
        let (a, b) = self.usual(a, b);
        let ((depth_a, element), (depth_b, _)) = (self.nodes[a], self.nodes[b]);
        let depth = depth_a.max(depth_b) + 1;
        self.push(Expr::Choice(limits, a, b), depth, element)
    }

    /// `x < y ? a : b` and its like; integers take the type that they meet.
    pub(crate) fn select(&mut self, function: Function, [x, y, a, b]: [ExprId; 4]) -> ExprId {
        let ((x, y), (a, b)) = (self.usual(x, y), self.usual(a, b));
        self.apply(function, vec![x, y, a, b])
    }

    /// A value that is stored only where another one is not zero.
    pub(crate) fn when(&mut self, condition: ExprId, value: ExprId) -> ExprId {
        let ((depth, _), (other, element)) = (self.nodes[condition], self.nodes[value]);
        let depth = depth.max(other) + 1;
        self.push(
            Expr::Call(Function::When, vec![condition, value]),
            depth,
            element,
        )
    }

    /// A leaf once more: each expression is an operand once, as where a text is read.
    pub(crate) fn again(&mut self, leaf: ExprId) -> ExprId {
        let (depth, element) = self.nodes[leaf];
        match self.stencil.exprs[leaf].clone() {
            same @ (Expr::Constant(..) | Expr::Scalar(_) | Expr::Temp(_)) => {
                self.push(same, depth, element)
            }
            _ => leaf,
        }
    }

    /// The type of an expression.
    pub(crate) fn element(&self, value: ExprId) -> Element {
        self.nodes[value].1
    }

    pub(crate) fn neg(&mut self, value: ExprId) -> ExprId {
        if let Some((value, element)) = self.constant_value(value) {
            return self.constant(-value, element.promoted());
        }
        let value = self.convert(value, self.nodes[value].1.promoted());
        let (depth, element) = self.nodes[value];
        self.push(Expr::Neg(value), depth + 1, element)
    }

    pub(crate) fn binary(&mut self, op: BinaryOp, a: ExprId, b: ExprId) -> ExprId {
        let (a, b) = self.usual(a, b);
        let ((depth_a, type_a), (depth_b, type_b)) = (self.nodes[a], self.nodes[b]);
        let element = type_a.wider(type_b);
        if element.is_integer() && op == BinaryOp::Div {
            return self.apply(Function::Quotient, vec![a, b]);
        }
        if let (Some((x, _)), Some((y, _))) = (self.constant_value(a), self.constant_value(b)) {
            let value = op.apply_in(element, x, y);
            if value.is_finite() {
                return self.constant(value, element);
            }
        }
        let depth = depth_a.max(depth_b) + 1;
        self.push(Expr::Binary(op, a, b), depth, element)
    }

    /// A value as a floating-point number; an integer takes the type that it meets.
    pub(crate) fn real(&mut self, value: Value, element: Element) -> ExprId {
        match value {
            Value::Integer(value) => self.constant(value as f64, element),
            Value::Real(value) => value,
        }
    }

    pub(crate) fn negative(&mut self, value: Value) -> Value {
        match value {
            Value::Integer(value) => Value::Integer(-value),
            Value::Real(value) => Value::Real(self.neg(value)),
        }
    }

    /// An operation as C does it: on integers if both are, else on floating-point numbers.
    pub(crate) fn arithmetic(
        &mut self,
        op: BinaryOp,
        a: Value,
        b: Value,
        span: &Span,
    ) -> Result<Value, Diagnostic> {
        let (a, b) = match (a, b) {
            (Value::Integer(a), Value::Integer(b)) => {
                let value = op.apply_integer(a, b).ok_or_else(|| {
                    Diagnostic::error("stencil::integer", "this has no value")
                        .label(span.clone(), "division by zero, or too large")
                })?;
                return Ok(Value::Integer(value));
            }
            (Value::Real(a), b) => (a, self.real(b, self.nodes[a].1.promoted())),
            (a, Value::Real(b)) => (self.real(a, self.nodes[b].1.promoted()), b),
        };
        Ok(Value::Real(self.binary(op, a, b)))
    }

    /// A call of one of CUDA's functions; C++ takes the type of the result from the arguments.
    pub(crate) fn call_named(
        &mut self,
        name: &str,
        span: &Span,
        arguments: Vec<Value>,
    ) -> Result<ExprId, Diagnostic> {
        let Some((function, float)) = Function::named(name) else {
            let all = Function::ALL.iter();
            let all = all.filter(|f| f.first_of_value() == 0 && !f.is_of_integers());
            let known: Vec<&str> = all.map(|f| f.name()).collect();
            let what = format!("a stencil cannot call `{name}`");
            return Err(Diagnostic::error("stencil::function", what)
                .label(span.clone(), "no known function")
                .help(format!("there are {}", known.join(", "))));
        };
        if arguments.len() != function.arity() {
            let (wanted, given) = (function.arity(), arguments.len());
            let what = format!("`{name}` takes {wanted} arguments, not {given}");
            return Err(Diagnostic::error("stencil::call", what).label(span.clone(), "called here"));
        }
        if let (2, [x, y, a, b]) = (function.first_of_value(), &arguments[..]) {
            let pairs = [(*x, *y), (*y, *x), (*a, *b), (*b, *a)];
            let all = pairs.map(|(value, other)| {
                let element = match other {
                    Value::Real(other) => self.nodes[other].1.promoted(),
                    Value::Integer(_) => Element::I32,
                };
                self.real(value, element)
            });
            return Ok(self.select(function, all));
        }
        // A number among whole numbers is one of them.
        let own = |a: &Value| match a {
            Value::Real(a) => Some(self.nodes[*a].1.promoted()),
            Value::Integer(_) => None,
        };
        let widest = arguments.iter().filter_map(own).reduce(Element::wider);
        let number = widest.filter(|e| e.is_integer()).unwrap_or(float);
        let mut arguments: Vec<ExprId> = arguments
            .into_iter()
            .map(|a| self.real(a, number))
            .collect();
        let in_integers = matches!(function, Function::Min | Function::Max | Function::Abs);
        if number.is_integer() && (in_integers || function.is_of_integers()) {
            if !matches!(function, Function::To(_)) {
                arguments = arguments.iter().map(|&a| self.convert(a, number)).collect();
            }
            return Ok(self.apply(function, arguments));
        }
        if matches!(function, Function::To(_)) {
            return Ok(self.apply(function, arguments));
        }
        // The functions of the library take whole numbers as `double`, those for `float` as that.
        if function != Function::When {
            arguments = arguments.iter().map(|&a| self.convert(a, float)).collect();
        }
        let types = arguments.iter().skip(function.first_of_value());
        let types = types.map(|&a| self.nodes[a].1);
        let element = types.fold(Element::F32, Element::wider);
        if float == Element::F32 && element == Element::F64 {
            let what = format!("`{name}` rounds a `double` to a `float`");
            return Err(Diagnostic::error("stencil::function", what)
                .label(span.clone(), "called with a `double`")
                .help(format!("write `{}`", function.name())));
        }
        let depth = arguments.iter().map(|&a| self.nodes[a].0).max();
        let depth = depth.unwrap_or(0) + 1;
        Ok(self.push(Expr::Call(function, arguments), depth, element))
    }

    /// The type of a local variable; `double` if there is none of this name.
    pub(crate) fn local_element(&self, name: &str) -> Element {
        self.locals.get(name).map_or(Element::F64, |l| l.1)
    }

    /// The value of a local variable, or what is wrong with reading it.
    pub(crate) fn local(&mut self, name: &str, span: &Span) -> Option<Result<ExprId, Diagnostic>> {
        let &(local, element) = self.locals.get(name)?;
        Some(match local {
            Local::Constant(value) => Ok(self.constant(value, element)),
            Local::Temp(temp) => Ok(self.push(Expr::Temp(temp), 1, element)),
            Local::Unset => Err(Diagnostic::error(
                "stencil::unset",
                format!("`{name}` is read before it has a value"),
            )
            .label(span.clone(), "no value yet")),
        })
    }

    /// Is it the name of a local variable?
    pub(crate) fn is_local(&self, name: &str) -> bool {
        self.locals.contains_key(name)
    }

    /// Forgets all local variables: another function's body follows.
    pub(crate) fn end_scope(&mut self) {
        self.locals.clear();
    }

    /// Forgets one local variable: its block ends.
    pub(crate) fn forget(&mut self, name: &str) {
        self.locals.remove(name);
    }

    /// `element name = value;`
    pub(crate) fn declare(
        &mut self,
        name: &str,
        element: Element,
        value: Option<ExprId>,
        span: Span,
    ) -> Result<(), Diagnostic> {
        let value = value.map(|value| self.convert(value, element));
        let held = match value {
            None => Local::Unset,
            Some(value) => self.held(name, element, value, span)?,
        };
        self.locals.insert(name.to_owned(), (held, element));
        Ok(())
    }

    /// `name = value;` of a declared local variable.
    pub(crate) fn assign(
        &mut self,
        name: &str,
        value: ExprId,
        span: Span,
    ) -> Result<(), Diagnostic> {
        let Some(&(local, element)) = self.locals.get(name) else {
            return Ok(());
        };
        let value = self.convert(value, element);
        // `t = t + x` is `t += x`: the sum is the same.
        if let (Local::Temp(temp), Expr::Binary(BinaryOp::Add, a, b)) =
            (local, &self.stencil.exprs[value])
            && self.stencil.exprs[*a] == Expr::Temp(temp)
            && self.nodes[value].1 == element
        {
            let b = *b;
            return self.state(Target::Temp(temp), true, b, span);
        }
        let held = self.held(name, element, value, span)?;
        self.locals.insert(name.to_owned(), (held, element));
        Ok(())
    }

    /// `name += value;` of a declared local variable.
    pub(crate) fn accumulate(
        &mut self,
        name: &str,
        value: ExprId,
        span: Span,
    ) -> Result<(), Diagnostic> {
        let is_mixed = self.local_element(name).is_integer() || self.element(value).is_integer();
        if is_mixed && let Some(Ok(old)) = self.local(name, &span) {
            let sum = self.binary(BinaryOp::Add, old, value);
            return self.assign(name, sum, span);
        }
        let temp = match self.locals.get(name) {
            Some(&(Local::Temp(temp), _)) => temp,
            Some(&(Local::Constant(start), element)) => {
                let start = self.constant(start, element);
                let temp = self.new_temp(name, element);
                self.state(Target::Temp(temp), false, start, span.clone())?;
                let local = (Local::Temp(temp), element);
                self.locals.insert(name.to_owned(), local);
                temp
            }
            Some((Local::Unset, _)) | None => {
                let what = format!("`{name}` is added to before it has a value");
                return Err(Diagnostic::error("stencil::unset", what).label(span, "no value yet"));
            }
        };
        self.state(Target::Temp(temp), true, value, span)
    }

    /// `access = value;` or `access += value;`
    pub(crate) fn store(
        &mut self,
        access: Access,
        accumulate: bool,
        value: ExprId,
        (at, span): (Span, Span),
    ) -> Result<(), Diagnostic> {
        let element = self.stencil.arrays[access.array].element;
        let is_mixed = element.is_integer() || self.element(value).is_integer();
        if accumulate && is_mixed {
            let old = self.load(access.clone(), at.clone());
            let sum = self.binary(BinaryOp::Add, old, value);
            return self.store(access, false, sum, (at, span));
        }
        let value = self.convert(value, element);
        self.uses.push(Use::store(access.clone(), accumulate, at));
        self.state(Target::Store(access), accumulate, value, span)
    }

    /// Takes the domain from the arrays, where the text does not say it: all accesses stay within
    /// theirs.
    pub(crate) fn derive_domain(&mut self, points: &Points) -> Result<(), Vec<Diagnostic>> {
        rules::derive_domain(&mut self.stencil, &self.uses, points)
    }

    /// The stencil, if it obeys the rules.
    pub(crate) fn finish(mut self) -> Result<Stencil, Vec<Diagnostic>> {
        let problems = rules::check(&self.stencil, &self.uses);
        if !problems.is_empty() {
            return Err(problems);
        }
        for used in &self.uses {
            let array = &mut self.stencil.arrays[used.access.array];
            array.read |= used.read;
            array.written |= used.written;
        }
        renumber(&mut self.stencil);
        Ok(self.stencil)
    }

    /// A temporary that holds `value`, or the value itself if it is a constant.
    fn held(
        &mut self,
        name: &str,
        element: Element,
        value: ExprId,
        span: Span,
    ) -> Result<Local, Diagnostic> {
        if let Some((constant, _)) = self.constant_value(value) {
            return Ok(Local::Constant(element.round(constant)));
        }
        let temp = self.new_temp(name, element);
        self.state(Target::Temp(temp), false, value, span)?;
        Ok(Local::Temp(temp))
    }

    /// A new temporary, with a name of its own.
    fn new_temp(&mut self, name: &str, element: Element) -> TempId {
        // A key may say more than a name: `x.12` is the 12th `x`.
        let name = self.unique(name.split('.').next().unwrap_or(name));
        self.stencil.temps.push(Temp { name, element })
    }

    /// The name, or one like it if something else has it or it is a word of the languages that a
    /// stencil is printed in.
    fn unique(&mut self, name: &str) -> String {
        let base = match reserved(name) {
            true => format!("own_{}", name.trim_start_matches('_')),
            false => name.to_owned(),
        };
        let mut unique = base.clone();
        let mut number = 2;
        while !self.names.insert(unique.clone()) {
            unique = format!("{base}_{number}");
            number += 1;
        }
        unique
    }

    fn state(
        &mut self,
        target: Target,
        accumulate: bool,
        value: ExprId,
        span: Span,
    ) -> Result<(), Diagnostic> {
        if self.nodes[value].0 > DEEPEST {
            let what = format!("the expression is nested more than {DEEPEST} deep");
            return Err(Diagnostic::error("stencil::size", what)
                .label(span, "this statement")
                .help("split the sum over several statements (`+=`)"));
        }
        if self.nodes.len() > MOST_NODES {
            let what = format!("the stencil has more than {MOST_NODES} operations and operands");
            return Err(Diagnostic::error("stencil::size", what).label(span, "up to here"));
        }
        self.stencil.statements.push(Statement {
            target,
            accumulate,
            value,
            span,
        });
        Ok(())
    }

    fn push(&mut self, expr: Expr, depth: u32, element: Element) -> ExprId {
        self.nodes.push((depth, element));
        self.stencil.exprs.push(expr)
    }
}
