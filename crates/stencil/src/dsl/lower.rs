//! The tree to a [`Stencil`]: names are resolved, calls are expanded in order.

use std::collections::BTreeMap;

use super::ast::{Assign, Call, Function, Name, Node, NodeKind, Op, Program, Sum, Variable};
use crate::build::{Builder, Value};
use crate::ir;
use crate::ir::{
    Access, ArrayId, BinaryOp, DimId, Element, Extent, ParameterId, ScalarId, Stencil, Subscript,
};
use crate::rules::Points;
use warpwright_cudac::diag::{Diagnostic, Span};

type Lowered<T> = Result<T, Diagnostic>;

/// What a name at the top level stands for.
#[derive(Clone, Copy, Debug)]
enum Object {
    Parameter(ParameterId),
    Iterator(DimId),
    Array(ArrayId),
    Scalar(ScalarId),
    Constant(f64, Element),
    /// A variable that no call has passed yet.
    Variable(usize),
}

/// Lowers a whole file.
pub(super) fn lower(program: &Program) -> Result<Stencil, Vec<Diagnostic>> {
    let mut lowering = Lowering::declare(program).map_err(|d| vec![d])?;
    lowering.statements(program).map_err(|d| vec![d])?;
    let points = lowering.points(program).map_err(|d| vec![d])?;
    lowering.builder.derive_domain(&points)?;
    let stencil = lowering.builder.finish()?;
    returns(program, &stencil).map_err(|d| vec![d])?;
    Ok(stencil)
}

/// What is returned is what is written.
fn returns(program: &Program, stencil: &Stencil) -> Lowered<()> {
    let written = |name: &str| stencil.arrays.values().any(|a| a.written && a.name == name);
    for name in &program.returns {
        if !written(&name.text) {
            let what = format!("`{}` is returned, but nothing writes it", name.text);
            return Err(Diagnostic::error("stencil::return", what)
                .label(name.span.clone(), "not an output"));
        }
    }
    for array in stencil.arrays.values().filter(|a| a.written) {
        let returned = program.returns.iter().any(|name| name.text == array.name);
        if !returned {
            let what = format!("`{}` is written, but not returned", array.name);
            let declared = program.variables.iter().find(|v| v.name.text == array.name);
            let problem = Diagnostic::error("stencil::return", what);
            let problem = match declared {
                Some(v) => problem.label(v.name.span.clone(), "an output of the stencil"),
                None => problem,
            };
            return Err(problem.help("name every output in `return …;`"));
        }
    }
    Ok(())
}

struct Lowering<'a> {
    builder: Builder,
    variables: &'a [Variable],
    objects: BTreeMap<&'a str, (Object, Span)>,
}

impl<'a> Lowering<'a> {
    /// Enters all names of the top level.
    fn declare(program: &'a Program) -> Lowered<Self> {
        let Some(first) = program.calls.first() else {
            let what = "no function is called, so nothing is computed";
            let problem = Diagnostic::error("stencil::no-call", what);
            return Err(match program.functions.first() {
                Some(f) => problem.label(f.name.span.clone(), "never called"),
                None => problem.help("write `function f (out, in) { … }` and call it"),
            });
        };
        let mut lowering = Lowering {
            builder: Builder::new(&first.function.text),
            variables: &program.variables,
            objects: BTreeMap::new(),
        };
        for name in &program.parameters {
            let object = Object::Parameter(lowering.builder.parameter(&name.text));
            lowering.enter(name, object)?;
        }
        for name in &program.iterators {
            let object = Object::Iterator(lowering.builder.dim(&name.text));
            lowering.enter(name, object)?;
        }
        for (n, variable) in program.variables.iter().enumerate() {
            let object = match &variable.value {
                None => Object::Variable(n),
                Some(value) => lowering.constant(variable, value)?,
            };
            lowering.enter(&variable.name, object)?;
        }
        for (name, factor) in &program.unrolls {
            let dim = lowering.iterator(name)?;
            lowering.builder.dim_mut(dim).unroll = Some(*factor);
        }
        if program.reassociate {
            lowering.builder.reassociate();
        }
        Ok(lowering)
    }

    fn enter(&mut self, name: &'a Name, object: Object) -> Lowered<()> {
        let entry = (object, name.span.clone());
        match self.objects.insert(&name.text, entry) {
            None => Ok(()),
            Some((_, before)) => {
                let what = format!("`{}` is declared twice", name.text);
                Err(Diagnostic::error("stencil::name", what)
                    .label(name.span.clone(), "again here")
                    .label(before, "first here"))
            }
        }
    }

    fn constant(&mut self, variable: &Variable, value: &Node) -> Lowered<Object> {
        let value = self.value(value, &Scope::default())?;
        let value = self.builder.real(value, variable.element);
        match self.builder.constant_value(value) {
            Some((value, _)) => Ok(Object::Constant(value, variable.element)),
            None => {
                let what = format!("the value of `{}` is not constant", variable.name.text);
                Err(Diagnostic::error("stencil::constant", what)
                    .label(variable.name.span.clone(), "a constant of the stencil"))
            }
        }
    }

    fn statements(&mut self, program: &Program) -> Lowered<()> {
        // Arguments become the kernel's in the order of the calls.
        let mut calls = Vec::new();
        for call in &program.calls {
            calls.push(self.bind(program, call)?);
        }
        if let Some(unused) = program
            .variables
            .iter()
            .find(|v| matches!(self.objects[&*v.name.text].0, Object::Variable(_)))
        {
            let what = format!("`{}` is passed to no function", unused.name.text);
            return Err(Diagnostic::error("stencil::unused", what)
                .label(unused.name.span.clone(), "declared here"));
        }
        for (function, scope) in calls {
            for assign in &function.body {
                self.assign(assign, &scope)?;
            }
            self.builder.end_scope();
        }
        Ok(())
    }

    /// The function that a call means, and what its formal arguments stand for.
    fn bind<'p>(
        &mut self,
        program: &'p Program,
        call: &Call,
    ) -> Lowered<(&'p Function, Scope<'p>)> {
        let name = &call.function;
        let Some(function) = program.functions.iter().find(|f| f.name.text == name.text) else {
            let what = format!("there is no function `{}`", name.text);
            return Err(
                Diagnostic::error("stencil::name", what).label(name.span.clone(), "called here")
            );
        };
        if call.actuals.len() != function.formals.len() {
            let what = format!(
                "`{}` takes {} arguments, not {}",
                name.text,
                function.formals.len(),
                call.actuals.len()
            );
            return Err(Diagnostic::error("stencil::call", what)
                .label(name.span.clone(), "called here")
                .label(function.name.span.clone(), "declared here"));
        }
        let mut scope = Scope::default();
        for (formal, actual) in function.formals.iter().zip(&call.actuals) {
            let object = self.actual(actual)?;
            if scope.insert(&formal.text, object).is_some() {
                let what = format!("two arguments are called `{}`", formal.text);
                return Err(Diagnostic::error("stencil::name", what)
                    .label(formal.span.clone(), "again here"));
            }
        }
        Ok((function, scope))
    }

    /// What is passed: an array, a scalar or a constant. It becomes an argument of the kernel.
    fn actual(&mut self, name: &Name) -> Lowered<Object> {
        let (object, span) = self.object(name)?;
        match object {
            Object::Variable(n) => {
                let object = self.argument(&self.variables[n])?;
                self.objects
                    .insert(&self.variables[n].name.text, (object, span));
                Ok(object)
            }
            Object::Parameter(_) | Object::Iterator(_) => {
                let what = format!("`{}` is no array, scalar or constant", name.text);
                Err(Diagnostic::error("stencil::call", what).label(
                    name.span.clone(),
                    "sizes and iterators are known everywhere",
                ))
            }
            _ => Ok(object),
        }
    }

    /// A declared variable as an argument of the kernel.
    fn argument(&mut self, variable: &Variable) -> Lowered<Object> {
        let name = &variable.name.text;
        if variable.extents.is_empty() {
            let scalar = self.builder.scalar(name, variable.element);
            return Ok(Object::Scalar(scalar));
        }
        let mut extents = Vec::new();
        for size in &variable.extents {
            extents.push(self.extent(size)?);
        }
        let array = self.builder.array(name, variable.element, extents);
        Ok(Object::Array(array))
    }

    fn extent(&self, size: &Sum) -> Lowered<Extent> {
        let parameter = match &size.name {
            None => None,
            Some(name) => match self.object(name)?.0 {
                Object::Parameter(parameter) => Some(parameter),
                _ => {
                    let what = format!("`{}` is no size", name.text);
                    return Err(Diagnostic::error("stencil::sizes", what)
                        .label(name.span.clone(), "sizes are declared with `parameter`"));
                }
            },
        };
        if parameter.is_none() && size.add < 1 {
            let what = "an array has at least one element";
            return Err(
                Diagnostic::error("stencil::sizes", what).label(size.span.clone(), "this size")
            );
        }
        let add = size.add;
        Ok(Extent { parameter, add })
    }

    /// The points that the text asks for.
    fn points(&self, program: &Program) -> Lowered<Points> {
        let mut points = Points::new();
        for (name, low, end) in &program.points {
            let dim = self.iterator(name)?;
            if low.name.is_some() || low.add < 0 {
                let what = "the first point is a number, 0 or more";
                return Err(
                    Diagnostic::error("stencil::points", what).label(low.span.clone(), "not this")
                );
            }
            points.insert(dim, (low.add, self.extent(end)?));
        }
        Ok(points)
    }

    fn object(&self, name: &Name) -> Lowered<(Object, Span)> {
        self.objects.get(&*name.text).cloned().ok_or_else(|| {
            let what = format!("`{}` is not declared", name.text);
            Diagnostic::error("stencil::name", what).label(name.span.clone(), "unknown")
        })
    }

    fn iterator(&self, name: &Name) -> Lowered<DimId> {
        match self.object(name)?.0 {
            Object::Iterator(dim) => Ok(dim),
            _ => {
                let what = format!("`{}` is no iterator", name.text);
                Err(Diagnostic::error("stencil::name", what)
                    .label(name.span.clone(), "iterators are declared with `iterator`"))
            }
        }
    }

    fn assign(&mut self, assign: &Assign, scope: &Scope<'_>) -> Lowered<()> {
        let name = &assign.name;
        let value = self.value(&assign.value, scope)?;
        let span = assign.span.clone();
        if let Some(element) = assign.declared {
            self.new_local(assign, scope)?;
            let value = self.builder.real(value, element);
            return self.builder.declare(&name.text, element, Some(value), span);
        }
        let accumulate = assign.op != Op::Set;
        if self.builder.is_local(&name.text) && assign.subscripts.is_empty() {
            let element = self.builder.local_element(&name.text);
            let value = self.signed(value, element, assign.op);
            return if accumulate {
                self.builder.accumulate(&name.text, value, span)
            } else {
                self.builder.assign(&name.text, value, span)
            };
        }
        let access = self.access(name, &assign.subscripts, scope)?;
        let element = self.builder.stencil().arrays[access.array].element;
        let value = self.signed(value, element, assign.op);
        let place = assign.place.clone();
        self.builder.store(access, accumulate, value, (place, span))
    }

    /// The value that is added where the text subtracts: a - b is a + (-b), to the last bit.
    fn signed(&mut self, value: Value, element: Element, op: Op) -> ir::ExprId {
        let value = self.builder.real(value, element);
        match op {
            Op::Subtract => self.builder.neg(value),
            Op::Set | Op::Add => value,
        }
    }

    /// A temporary's name is new in its function.
    fn new_local(&self, assign: &Assign, scope: &Scope<'_>) -> Lowered<()> {
        let name = &assign.name;
        if let Some(subscript) = assign.subscripts.first() {
            let what = "a temporary is one value of the point, not an array";
            return Err(Diagnostic::error("stencil::local-array", what)
                .label(subscript.span.clone(), "subscript of a declaration"));
        }
        let taken = self.builder.is_local(&name.text) || scope.contains_key(&*name.text);
        let iterator = matches!(
            self.objects.get(&*name.text),
            Some((Object::Iterator(_), _))
        );
        if taken || iterator {
            let what = format!("`{}` is declared already", name.text);
            return Err(
                Diagnostic::error("stencil::name", what).label(name.span.clone(), "again here")
            );
        }
        Ok(())
    }

    fn access(&self, name: &Name, subscripts: &[Sum], scope: &Scope<'_>) -> Lowered<Access> {
        let array = match scope.get(&*name.text) {
            Some(Object::Array(array)) => *array,
            _ => return Err(self.no_array(name, scope)),
        };
        let wanted = self.builder.stencil().arrays[array].extents.len();
        if subscripts.len() != wanted {
            let what = format!(
                "`{}` has {wanted} dimensions, not {}",
                name.text,
                subscripts.len()
            );
            return Err(Diagnostic::error("stencil::dimensions", what)
                .label(name.span.clone(), format!("takes {wanted} subscripts")));
        }
        let subscripts = subscripts
            .iter()
            .map(|sum| {
                let dim = sum.name.as_ref().map(|n| self.iterator(n)).transpose()?;
                let offset = sum.add;
                Ok(Subscript { dim, offset })
            })
            .collect::<Lowered<_>>()?;
        Ok(Access { array, subscripts })
    }

    fn no_array(&self, name: &Name, scope: &Scope<'_>) -> Diagnostic {
        let (what, label) = if scope.contains_key(&*name.text) {
            (format!("`{}` is no array", name.text), "used as one")
        } else if self.builder.is_local(&name.text) {
            (
                format!("`{}` is a temporary, not an array", name.text),
                "used as one",
            )
        } else {
            (
                format!("`{}` is not known in this function", name.text),
                "unknown",
            )
        };
        let problem = Diagnostic::error("stencil::name", what).label(name.span.clone(), label);
        if label == "unknown" {
            problem
                .help("arrays and scalars are arguments; temporaries are declared: `double t = …;`")
        } else {
            problem
        }
    }

    fn value(&mut self, node: &Node, scope: &Scope<'_>) -> Lowered<Value> {
        crate::with_stack(|| self.value_of(node, scope))
    }

    fn value_of(&mut self, node: &Node, scope: &Scope<'_>) -> Lowered<Value> {
        match &node.kind {
            NodeKind::Integer(value) => Ok(Value::Integer(*value)),
            NodeKind::Real(value, element) => {
                Ok(Value::Real(self.builder.constant(*value, *element)))
            }
            NodeKind::Name(text) => self.named(text, &node.span, scope),
            NodeKind::Element(name, subscripts) => {
                let access = self.access(name, subscripts, scope)?;
                Ok(Value::Real(self.builder.load(access, node.span.clone())))
            }
            NodeKind::Neg(inner) => {
                let inner = self.value(inner, scope)?;
                Ok(self.builder.negative(inner))
            }
            NodeKind::Binary(op, a, b) => {
                let (a, b) = (self.value(a, scope)?, self.value(b, scope)?);
                if let (BinaryOp::Div, Value::Integer(_), Value::Integer(_)) = (op, a, b) {
                    let what = "a quotient of integers is a trap: in C it is rounded towards zero";
                    return Err(Diagnostic::error("stencil::integer-division", what)
                        .label(node.span.clone(), "two integers")
                        .help("write `1.0 / 2.0` for the fraction"));
                }
                self.builder.arithmetic(*op, a, b, &node.span)
            }
            NodeKind::Call(name, arguments) => {
                let mut values = Vec::new();
                for argument in arguments {
                    values.push(self.value(argument, scope)?);
                }
                let (name, at) = (&*name.text, &name.span);
                self.builder.call_named(name, at, values).map(Value::Real)
            }
        }
    }

    fn named(&mut self, text: &str, span: &Span, scope: &Scope<'_>) -> Lowered<Value> {
        if let Some(value) = self.builder.local(text, span) {
            return value.map(Value::Real);
        }
        let name = Name {
            text: text.to_owned(),
            span: span.clone(),
        };
        // Constants of the file are known in all functions; everything else is passed.
        let object = match scope.get(text) {
            Some(object) => Some(*object),
            None => match self.objects.get(text) {
                Some((constant @ Object::Constant(..), _)) => Some(*constant),
                _ => None,
            },
        };
        match object {
            Some(Object::Scalar(scalar)) => Ok(Value::Real(self.builder.scalar_value(scalar))),
            Some(Object::Constant(value, element)) => {
                Ok(Value::Real(self.builder.constant(value, element)))
            }
            Some(Object::Array(_)) => {
                let what = format!("`{text}` is an array");
                Err(Diagnostic::error("stencil::dimensions", what)
                    .label(span.clone(), "no subscripts"))
            }
            _ if matches!(
                self.objects.get(text),
                Some((Object::Iterator(_) | Object::Parameter(_), _))
            ) =>
            {
                let what = format!("`{text}` is used as a value");
                Err(Diagnostic::error("stencil::position", what)
                    .label(span.clone(), "an iterator or size")
                    .help(
                        "points compute from arrays, scalars and constants, not from their place",
                    ))
            }
            _ => Err(self.no_array(&name, scope)),
        }
    }
}

/// What the formal arguments of a function stand for.
type Scope<'a> = BTreeMap<&'a str, Object>;
