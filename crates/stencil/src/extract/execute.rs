//! The statements of a kernel, executed once on polynomials.
//!
//! Loops that store are loops over points and are entered once, with a symbol for their counter.
//! All other loops are executed iteration by iteration, so their bounds must be numbers.

use std::collections::BTreeMap;

use super::guard::{Condition, Domain};
use super::poly::{Poly, Symbol};
use super::value::{Node, NodeKind, Operand, Pointer, Val, not_understood, operand};
use crate::ir::{BinaryOp, Element};
use warpwright_cudac::File;
use warpwright_cudac::ast::{
    Block, Declaration, Expr, ExprKind, For, Function, Init, Stmt, StmtKind, Type, Variable,
};
use warpwright_cudac::diag::{Diagnostic, Span};

/// What a kernel does, before its shape is known.
#[derive(Debug, Default)]
pub(super) struct Trace {
    /// Integer parameters by number.
    pub(super) sizes: Vec<String>,
    /// Floating-point parameters by number.
    pub(super) scalars: Vec<(String, Element)>,
    /// Pointer parameters by number.
    pub(super) arrays: Vec<RawArray>,
    pub(super) accesses: Vec<RawAccess>,
    pub(super) actions: Vec<Action>,
    /// By point symbol: the first variable that is the symbol plus a number, and the number.
    pub(super) names: BTreeMap<Symbol, (String, i64)>,
    pub(super) domain: Domain,
}

/// A pointer parameter.
#[derive(Debug)]
pub(super) struct RawArray {
    pub(super) name: String,
    pub(super) element: Element,
}

/// An access as written: one subscript for a plain pointer, several for arrays of arrays.
#[derive(Clone, Debug)]
pub(super) struct RawAccess {
    pub(super) array: usize,
    pub(super) offset: Poly,
    pub(super) lengths: Vec<Poly>,
    pub(super) subscripts: Vec<Poly>,
    pub(super) span: Span,
}

/// A floating-point statement.
#[derive(Clone, Debug)]
pub(super) enum Action {
    Declare(String, Element, Option<Operand>, Span),
    Assign(String, Operand, Span),
    Accumulate(String, Operand, Span),
    /// The access, whether it adds, the value.
    Store(usize, bool, Operand, Span),
    /// A variable's block ends.
    Forget(String),
}

/// A variable or parameter.
#[derive(Clone, Debug)]
pub(super) enum Var {
    Int(Poly),
    Real(Element),
    /// An argument of a function: what was passed, which is a leaf.
    Leaf(Node),
    Scalar(usize, Element),
    Pointer(Pointer),
    /// Constants, by number.
    Table(Element, Vec<f64>),
    /// Something that cannot be used, and why.
    Other(&'static str),
}

/// The state of the execution.
pub(super) struct Machine<'a> {
    pub(super) file: &'a File,
    pub(super) trace: Trace,
    pub(super) domain: Domain,
    pub(super) scopes: Vec<BTreeMap<String, Var>>,
    /// Calls that are being executed.
    pub(super) calls: usize,
    /// Scopes outside the innermost loop over points: what is in them is fixed inside it.
    fixed: usize,
    loops: usize,
    /// The first store.
    stored: Option<Span>,
    /// A condition or loop over points that has ended: no store may follow.
    closed: Option<Span>,
    /// The innermost loop is one over points.
    in_points: bool,
    steps: u32,
}

/// Most expressions that are looked at: loops are executed.
const MOST_STEPS: u32 = 400_000;

/// Where the execution goes on.
#[derive(Clone, Copy, PartialEq)]
enum Flow {
    Next,
    Continue,
    Break,
    Return,
}

type Done<T> = Result<T, Diagnostic>;

/// Executes a kernel.
pub(super) fn run(file: &File, function: &Function) -> Done<Trace> {
    let mut machine = Machine {
        file,
        trace: Trace::default(),
        domain: Domain::new(),
        scopes: vec![BTreeMap::new()],
        calls: 0,
        fixed: 0,
        loops: 0,
        stored: None,
        closed: None,
        in_points: false,
        steps: 0,
    };
    for parameter in &function.parameters {
        let var = machine.parameter(&parameter.name.text, &parameter.ty, &parameter.span)?;
        machine.scopes[0].insert(parameter.name.text.clone(), var);
    }
    machine.block(&function.body)?;
    if machine.stored.is_none() {
        let what = format!("`{}` stores nothing", function.name.text);
        return Err(Diagnostic::error("stencil::no-output", what)
            .label(function.name.span.clone(), "this kernel"));
    }
    Ok(machine.trace)
}

impl Machine<'_> {
    fn parameter(&mut self, name: &str, ty: &Type, span: &Span) -> Done<Var> {
        if let Some(element) = self.element(ty) {
            self.trace.scalars.push((name.to_owned(), element));
            return Ok(Var::Scalar(self.trace.scalars.len() - 1, element));
        }
        if self.resolved(ty).is_integer() {
            self.trace.sizes.push(name.to_owned());
            let size = Symbol::Size(self.trace.sizes.len() - 1);
            return Ok(Var::Int(Poly::symbol(size)));
        }
        let Type::Pointer(to, _) = ty.bare() else {
            return Ok(Var::Other("an argument of a type that is not understood"));
        };
        let (element, lengths) = self.row_type(to, span)?;
        let Some(element) = element else {
            return Ok(Var::Other("no array of `float` or `double`"));
        };
        let name = name.to_owned();
        self.trace.arrays.push(RawArray { name, element });
        Ok(Var::Pointer(Pointer {
            array: self.trace.arrays.len() - 1,
            offset: Poly::default(),
            lengths,
            taken: Vec::new(),
        }))
    }

    /// A type with the file's own names for types replaced.
    pub(super) fn resolved(&self, ty: &Type) -> Type {
        match ty.bare() {
            Type::Named(name) => Type::Named(self.file.type_named(name)),
            other => other.clone(),
        }
    }

    /// The element type, if it is `float` or `double`.
    pub(super) fn element(&self, ty: &Type) -> Option<Element> {
        match self.resolved(ty) {
            Type::Named(name) if name == "float" => Some(Element::F32),
            Type::Named(name) if name == "double" => Some(Element::F64),
            _ => None,
        }
    }

    pub(super) fn variable(&self, name: &str) -> Option<&Var> {
        self.scopes.iter().rev().find_map(|scope| scope.get(name))
    }

    /// Counts a step; loops with many iterations stop here.
    pub(super) fn step(&mut self, span: &Span) -> Done<()> {
        self.steps += 1;
        if self.steps > MOST_STEPS {
            let what = "the kernel has too many operations once its loops are unrolled";
            return Err(Diagnostic::error("stencil::size", what).label(span.clone(), "up to here"));
        }
        Ok(())
    }

    fn block(&mut self, block: &Block) -> Done<Flow> {
        self.scopes.push(BTreeMap::new());
        let mut flow = Flow::Next;
        for statement in &block.statements {
            flow = crate::with_stack(|| self.statement(statement))?;
            if flow != Flow::Next {
                break;
            }
        }
        self.end_scope();
        Ok(flow)
    }

    fn end_scope(&mut self) {
        for (name, var) in self.scopes.pop().unwrap_or_default() {
            if let Var::Real(_) = var {
                self.trace.actions.push(Action::Forget(name));
            }
        }
    }

    fn statement(&mut self, statement: &Stmt) -> Done<Flow> {
        let span = &statement.span;
        self.step(span)?;
        match &statement.kind {
            StmtKind::Declare(declaration) => {
                self.declare(declaration, span)?;
                Ok(Flow::Next)
            }
            StmtKind::Expr(expr) => {
                self.effect(expr, span)?;
                Ok(Flow::Next)
            }
            StmtKind::If(cond, then, otherwise) => self.branch(cond, then, otherwise.as_ref()),
            StmtKind::For(parts) => self.for_loop(parts, span),
            StmtKind::Block(block) => self.block(block),
            StmtKind::Return(None) => Ok(Flow::Return),
            // `#pragma unroll` and macros change nothing here; the file knows the macros.
            StmtKind::Directive(_) => Ok(Flow::Next),
            StmtKind::Plain(text) => Ok(match &**text {
                "continue;" => Flow::Continue,
                "break;" => Flow::Break,
                _ => Flow::Next,
            }),
            StmtKind::While(..) => {
                let what = "a `while` loop is not understood in a stencil";
                Err(Diagnostic::error("stencil::loop", what)
                    .label(span.clone(), "this loop")
                    .help("write a `for` loop over one dimension"))
            }
            StmtKind::Return(Some(_)) => Err(not_understood("a returned value", span)),
        }
    }

    pub(super) fn declare(&mut self, declaration: &Declaration, span: &Span) -> Done<()> {
        if let Some(word) = declaration.storage.iter().find(|w| w.contains("shared")) {
            let what = "shared memory means that threads work together; points are independent";
            return Err(Diagnostic::error("stencil::shared", what)
                .label(span.clone(), format!("`{word}`"))
                .help("write the kernel with global arrays only; tiling is Warpwright's part"));
        }
        let known = ["constexpr", "register", "__restrict__"];
        if let Some(word) = declaration.storage.iter().find(|w| !known.contains(&&***w)) {
            return Err(not_understood(&format!("`{word}`"), span));
        }
        for variable in &declaration.variables {
            let var = self.declared(variable, span)?;
            let name = &variable.name.text;
            if self.variable(name).is_some() {
                let what = format!("`{name}` hides another variable");
                return Err(Diagnostic::error("stencil::name", what)
                    .label(variable.name.span.clone(), "declared again")
                    .help("give it a name of its own"));
            }
            if let Some(scope) = self.scopes.last_mut() {
                scope.insert(name.clone(), var);
            }
        }
        Ok(())
    }

    fn declared(&mut self, variable: &Variable, span: &Span) -> Done<Var> {
        let (name, ty) = (&variable.name.text, self.resolved(&variable.ty));
        let value = match &variable.init {
            None => None,
            Some(Init::Value(value)) => Some(self.value(value)?),
            Some(Init::List(values, at)) => return self.table(&ty, values, at),
        };
        let auto = matches!(&ty, Type::Named(name) if name == "auto");
        match (&ty, value) {
            (_, None) if ty.is_integer() => Ok(Var::Other("not set")),
            (_, Some(Val::Int(value))) if ty.is_integer() || auto => {
                self.name_point(name, &value);
                Ok(Var::Int(value))
            }
            (Type::Pointer(to, _), Some(Val::Pointer(pointer))) => {
                match self.pointer_cast(to, pointer, span)? {
                    Val::Pointer(pointer) => Ok(Var::Pointer(pointer)),
                    _ => Err(not_understood("this pointer", span)),
                }
            }
            (_, Some(Val::Pointer(pointer))) if auto => Ok(Var::Pointer(pointer)),
            (_, value) => {
                let known = match &value {
                    Some(Val::Real(node)) if auto => Some(node.element),
                    _ => self.element(&ty),
                };
                let Some(element) = known else {
                    return Err(not_understood("a variable of this type", span));
                };
                let value = value.map(|value| operand(value, span)).transpose()?;
                let action = Action::Declare(name.clone(), element, value, span.clone());
                self.trace.actions.push(action);
                Ok(Var::Real(element))
            }
        }
    }

    /// `const double c[] = {…};`
    fn table(&mut self, ty: &Type, values: &[Init], span: &Span) -> Done<Var> {
        let element = match ty {
            Type::Array(of, _) => self.element(of),
            _ => None,
        };
        let Some(element) = element else {
            return Err(not_understood("this list of values", span));
        };
        let mut numbers = Vec::new();
        for value in values {
            let value = match value {
                Init::Value(value) => operand(self.value(value)?, span)?,
                Init::List(_, span) => return Err(not_understood("a list in a list", span)),
            };
            let Some(number) = known(&value) else {
                let what = "an array of a thread holds constants only";
                return Err(Diagnostic::error("stencil::local-array", what)
                    .label(span.clone(), "not all of these are known")
                    .help("use separate variables"));
            };
            numbers.push(element.round(number));
        }
        Ok(Var::Table(element, numbers))
    }

    /// Remembers how the source calls a point symbol.
    fn name_point(&mut self, name: &str, value: &Poly) {
        if let Some((Some(point), offset)) = value.as_subscript() {
            let names = &mut self.trace.names;
            names
                .entry(point)
                .or_insert_with(|| (name.to_owned(), offset));
        }
    }

    /// An expression statement.
    fn effect(&mut self, expr: &Expr, span: &Span) -> Done<()> {
        let expr = self.expanded(expr)?.into_owned();
        match &expr.bare().kind {
            ExprKind::Assign(op, left, right) => {
                if matches!(right.bare().kind, ExprKind::Assign(..)) {
                    return Err(not_understood("an assignment of an assignment", span));
                }
                let right = self.value(right)?;
                self.assign(op, left, right, span)
            }
            ExprKind::Update(op, _, target) => {
                let op = if op == "++" { "+=" } else { "-=" };
                self.assign(op, target, Val::Int(Poly::constant(1)), span)
            }
            // A call whose value nobody wants: refused with its reason, or without.
            ExprKind::Call(..) => {
                self.value(&expr)?;
                Err(not_understood("a call for its effect", span))
            }
            _ => Err(not_understood("a statement without an effect", span)),
        }
    }

    fn assign(&mut self, op: &str, left: &Expr, right: Val, span: &Span) -> Done<()> {
        let target = self.expanded(left)?.into_owned();
        let target = target.bare();
        match &target.kind {
            ExprKind::Name(name) => self.assign_variable(op, name, right, target, span),
            ExprKind::Index(base, index) => {
                let pointer = self.subscripted(base, index)?;
                self.store(op, pointer, right, target, span)
            }
            ExprKind::Unary(star, inner) if star == "*" => match self.value(inner)? {
                Val::Pointer(mut pointer) => {
                    pointer.taken.push(Poly::default());
                    self.store(op, pointer, right, target, span)
                }
                _ => Err(not_understood("this target", &target.span)),
            },
            _ => Err(not_understood("this target", &target.span)),
        }
    }

    fn assign_variable(
        &mut self,
        op: &str,
        name: &str,
        right: Val,
        target: &Expr,
        span: &Span,
    ) -> Done<()> {
        let depth = self.scopes.iter().rposition(|s| s.contains_key(name));
        let Some(depth) = depth else {
            self.value(target)?;
            return Err(not_understood("this target", &target.span));
        };
        if depth < self.fixed {
            let what = format!("`{name}` is carried from one point to the next");
            return Err(Diagnostic::error("stencil::carried", what)
                .label(target.span.clone(), "assigned inside the loop over points")
                .help("declare it inside the loop, and compute it from the loop's counter"));
        }
        let var = self.scopes[depth].get(name).cloned();
        match (var, right) {
            (Some(Var::Int(old)), Val::Int(right)) => {
                let new = match op {
                    "=" => Some(right),
                    "+=" => old.plus(&right, 1),
                    "-=" => old.plus(&right, -1),
                    "*=" => old.times(&right),
                    _ => None,
                };
                let new = new.ok_or_else(|| not_understood(&format!("`{op}`"), span))?;
                let new = new.with_places();
                self.name_point(name, &new);
                self.scopes[depth].insert(name.to_owned(), Var::Int(new));
                Ok(())
            }
            (Some(Var::Other("not set")), Val::Int(right)) if op == "=" => {
                self.name_point(name, &right);
                self.scopes[depth].insert(name.to_owned(), Var::Int(right));
                Ok(())
            }
            (Some(Var::Real(element)), right) => {
                let old = || Node {
                    kind: NodeKind::Local(name.to_owned()),
                    element,
                    span: target.span.clone(),
                };
                let right = operand(right, span)?;
                let (accumulate, value) = combined(op, old, element, right, span)?;
                let (name, span) = (name.to_owned(), span.clone());
                self.trace.actions.push(if accumulate {
                    Action::Accumulate(name, value, span)
                } else {
                    Action::Assign(name, value, span)
                });
                Ok(())
            }
            _ => Err(not_understood("this assignment", span)),
        }
    }

    fn store(
        &mut self,
        op: &str,
        pointer: Pointer,
        right: Val,
        target: &Expr,
        span: &Span,
    ) -> Done<()> {
        if pointer.taken.len() <= pointer.lengths.len() {
            return Err(not_understood("an assignment to a row", &target.span));
        }
        if let Some(closed) = &self.closed {
            let what = "statements stand under different conditions";
            return Err(Diagnostic::error("stencil::divergent", what)
                .label(target.span.clone(), "stored at other points")
                .label(closed.clone(), "than what stands in this")
                .help("put all statements under one bounds test"));
        }
        let element = self.trace.arrays[pointer.array].element;
        let right = operand(right, span)?;
        let (accumulate, value) = if matches!(op, "*=" | "/=") {
            let old = self.load(pointer.clone(), &target.span);
            combined(op, || old, element, right, span)?
        } else {
            let unused = || Node {
                kind: NodeKind::Number(0.0),
                element,
                span: span.clone(),
            };
            combined(op, unused, element, right, span)?
        };
        let access = self.access(pointer, &target.span);
        let action = Action::Store(access, accumulate, value, span.clone());
        self.trace.actions.push(action);
        if self.stored.is_none() {
            self.stored = Some(span.clone());
            self.trace.domain = self.domain.clone();
        }
        Ok(())
    }

    fn branch(&mut self, cond: &Expr, then: &Block, otherwise: Option<&Block>) -> Done<Flow> {
        // `if (outside) return; else …` and `if (inside) … else return;` leave as well.
        let nothing = Block::default();
        let guard = match (self.leaves(then), otherwise.and_then(|o| self.leaves(o))) {
            (Some(leave), _) => Some((leave, true, otherwise.unwrap_or(&nothing))),
            (None, Some(leave)) => Some((leave, false, then)),
            (None, None) => None,
        };
        if let Some((leave, opposite, inside)) = guard {
            match self.condition(cond, opposite)? {
                Condition::Known(true) => {}
                Condition::Known(false) => return Ok(leave),
                Condition::All(bounds) => {
                    self.not_after_stores(&cond.span)?;
                    self.restrict(bounds)?;
                }
            }
            return self.block(inside);
        }
        match (self.condition(cond, false)?, otherwise) {
            (Condition::Known(true), _) => self.block(then),
            (Condition::Known(false), None) => Ok(Flow::Next),
            (Condition::Known(false), Some(otherwise)) => self.block(otherwise),
            (Condition::All(bounds), None) => {
                self.not_after_stores(&cond.span)?;
                let outside = self.domain.clone();
                self.restrict(bounds)?;
                let flow = self.block(then)?;
                self.domain = outside;
                // Whatever follows, if only a variable that was set inside, is for other points.
                self.closed = Some(cond.span.clone());
                if flow != Flow::Next {
                    let what = "some points leave the kernel in the middle";
                    return Err(Diagnostic::error("stencil::divergent", what)
                        .label(cond.span.clone(), "where this holds")
                        .help("treat the boundary in a kernel of its own"));
                }
                Ok(Flow::Next)
            }
            (Condition::All(_), Some(otherwise)) => {
                let what = "points on the two sides of a condition compute different things";
                let at = otherwise.span.start..otherwise.span.start + 1;
                Err(Diagnostic::error("stencil::divergent", what)
                    .label(cond.span.clone(), "this condition")
                    .label(at, "the other side")
                    .help("treat the boundary in a kernel of its own"))
            }
        }
    }

    /// A block that does nothing but leave: the kernel, or in a loop over points this point.
    fn leaves(&self, block: &Block) -> Option<Flow> {
        match block.statements.as_slice() {
            [only] => match &only.kind {
                StmtKind::Return(None) if self.loops == 0 => Some(Flow::Return),
                StmtKind::Plain(word) if word == "continue;" && self.in_points => {
                    Some(Flow::Continue)
                }
                _ => None,
            },
            _ => None,
        }
    }

    fn not_after_stores(&self, span: &Span) -> Done<()> {
        let Some(stored) = &self.stored else {
            return Ok(());
        };
        let what = "statements stand under different conditions";
        Err(Diagnostic::error("stencil::divergent", what)
            .label(span.clone(), "this condition is not that of all statements")
            .label(stored.clone(), "stored before it")
            .help("put all stores under one bounds test"))
    }

    fn for_loop(&mut self, parts: &For, span: &Span) -> Done<Flow> {
        let head = span.start..parts.body.span.start.max(span.start);
        let counter = self.counter(parts, &head)?;
        self.scopes.push(BTreeMap::new());
        let flow = if stores(&parts.body, self) {
            self.point_loop(parts, &counter, &head)
        } else {
            self.unrolled(parts, &counter, &head)
        };
        self.end_scope();
        flow
    }

    /// The counter of a loop `for (int k = first; k < …; k++)`.
    fn counter(&mut self, parts: &For, span: &Span) -> Done<Counter> {
        let strange = || {
            let what = "this loop is not understood";
            Diagnostic::error("stencil::loop", what)
                .label(span.clone(), "not a count")
                .help("write `for (int k = 1; k < N - 1; k++)`")
        };
        let init = parts.init.as_ref().ok_or_else(strange)?;
        let (name, first) = match &init.kind {
            StmtKind::Declare(declaration) => match declaration.variables.as_slice() {
                [variable] if self.resolved(&variable.ty).is_integer() => match &variable.init {
                    Some(Init::Value(first)) => (variable.name.text.clone(), first),
                    _ => return Err(strange()),
                },
                _ => return Err(strange()),
            },
            StmtKind::Expr(Expr {
                kind: ExprKind::Assign(op, name, first),
                ..
            }) if op == "=" => match &name.kind {
                ExprKind::Name(name) => (name.clone(), &**first),
                _ => return Err(strange()),
            },
            _ => return Err(strange()),
        };
        let Val::Int(first) = self.value(first)? else {
            return Err(strange());
        };
        let step = parts.step.as_ref().and_then(|step| match &step.kind {
            ExprKind::Update(op, _, target) if is_name(target, &name) => {
                Some(if op == "++" { 1 } else { -1 })
            }
            ExprKind::Assign(op, target, by) if op == "+=" && is_name(target, &name) => {
                match self.value(by) {
                    Ok(Val::Int(by)) => by.as_constant(),
                    _ => None,
                }
            }
            _ => None,
        });
        let step = step.filter(|s| *s != 0).ok_or_else(strange)?;
        Ok(Counter { name, first, step })
    }

    /// A loop over the points of one dimension.
    fn point_loop(&mut self, parts: &For, counter: &Counter, span: &Span) -> Done<Flow> {
        let strange = |what: &str, label: &str| {
            Err(Diagnostic::error("stencil::loop", what).label(span.clone(), label))
        };
        if counter.step != 1 {
            return strange(
                "a loop over points visits each of them",
                "steps by more than one",
            );
        }
        let Some(first) = counter.first.as_constant() else {
            return strange("the first point of a loop is a number", "begins elsewhere");
        };
        self.not_after_stores(span)?;
        let symbol = Symbol::Loop(self.loops);
        self.loops += 1;
        self.set_counter(counter, Poly::symbol(symbol));
        let outside = (self.domain.clone(), self.fixed, self.in_points);
        self.domain.entry(symbol).or_default().low = first;
        match parts.cond.as_ref().map(|c| self.condition(c, false)) {
            Some(Ok(Condition::All(bounds))) => self.restrict(bounds)?,
            Some(Err(problem)) => return Err(problem),
            _ => return strange("the loop has no end", "no bound"),
        }
        (self.fixed, self.in_points) = (self.scopes.len(), true);
        let flow = self.block(&parts.body)?;
        (self.domain, self.fixed, self.in_points) = outside;
        self.closed = Some(span.clone());
        match flow {
            Flow::Next | Flow::Continue => Ok(Flow::Next),
            Flow::Break | Flow::Return => strange("the loop ends at its first point", "left early"),
        }
    }

    fn set_counter(&mut self, counter: &Counter, value: Poly) {
        self.name_point(&counter.name, &value);
        if let Some(scope) = self.scopes.last_mut() {
            scope.insert(counter.name.clone(), Var::Int(value));
        }
    }

    /// A loop inside a point, executed.
    fn unrolled(&mut self, parts: &For, counter: &Counter, span: &Span) -> Done<Flow> {
        let unknown = || {
            let what = "a loop inside a point has numbers as bounds";
            Diagnostic::error("stencil::loop", what)
                .label(span.clone(), "not known when the kernel is compiled")
                .help("a loop over points stores in each iteration")
        };
        let mut at = counter.first.as_constant().ok_or_else(unknown)?;
        let cond = parts.cond.as_ref().ok_or_else(unknown)?;
        let outside = std::mem::replace(&mut self.in_points, false);
        let flow = loop {
            self.step(span)?;
            self.set_counter(counter, Poly::constant(at));
            match self.condition(cond, false)? {
                Condition::Known(true) => {}
                Condition::Known(false) => break Flow::Next,
                Condition::All(_) => return Err(unknown()),
            }
            match self.block(&parts.body)? {
                Flow::Return => break Flow::Return,
                Flow::Break => break Flow::Next,
                Flow::Next | Flow::Continue => {}
            }
            at = at.checked_add(counter.step).ok_or_else(unknown)?;
        };
        self.in_points = outside;
        Ok(flow)
    }
}

/// The counter of a loop.
struct Counter {
    name: String,
    first: Poly,
    step: i64,
}

fn is_name(expr: &Expr, name: &str) -> bool {
    matches!(&expr.kind, ExprKind::Name(n) if n == name)
}

/// Does a block store to memory anywhere?
fn stores(block: &Block, machine: &Machine<'_>) -> bool {
    block
        .statements
        .iter()
        .any(|statement| match &statement.kind {
            StmtKind::Expr(expr) => match &expr.kind {
                ExprKind::Assign(_, left, _) => match machine.expanded(left) {
                    Ok(left) => {
                        matches!(left.bare().kind, ExprKind::Index(..) | ExprKind::Unary(..))
                    }
                    Err(_) => false,
                },
                _ => false,
            },
            StmtKind::If(_, then, otherwise) => {
                stores(then, machine) || otherwise.as_ref().is_some_and(|o| stores(o, machine))
            }
            StmtKind::For(parts) => stores(&parts.body, machine),
            StmtKind::While(_, body) | StmtKind::Block(body) => stores(body, machine),
            _ => false,
        })
}

/// A number, if it is known already.
fn known(value: &Operand) -> Option<f64> {
    match value {
        Operand::Integer(value) => Some(*value as f64),
        Operand::Node(node) => match &node.kind {
            NodeKind::Number(value) => Some(*value),
            NodeKind::Neg(inner) => known(inner).map(|value| -value),
            NodeKind::Binary(op, a, b) if node.element == Element::F64 => {
                Some(op.apply(known(a)?, known(b)?))
            }
            _ => None,
        },
    }
}

/// The value that `op=` assigns or adds: whether it adds, and what.
fn combined(
    op: &str,
    old: impl FnOnce() -> Node,
    element: Element,
    right: Operand,
    span: &Span,
) -> Done<(bool, Operand)> {
    let node = |kind, element| {
        Operand::Node(Node {
            kind,
            element,
            span: span.clone(),
        })
    };
    let type_of = |operand: &Operand| match operand {
        Operand::Integer(_) => element,
        Operand::Node(node) => node.element,
    };
    match op {
        "=" => Ok((false, right)),
        "+=" => Ok((true, right)),
        // a - b is a + (-b), to the last bit.
        "-=" => {
            let ty = type_of(&right);
            Ok((true, node(NodeKind::Neg(Box::new(right)), ty)))
        }
        "*=" | "/=" => {
            let op = if op == "*=" {
                BinaryOp::Mul
            } else {
                BinaryOp::Div
            };
            let ty = type_of(&right).wider(element);
            let old = Box::new(Operand::Node(old()));
            Ok((false, node(NodeKind::Binary(op, old, Box::new(right)), ty)))
        }
        _ => Err(not_understood(&format!("`{op}`"), span)),
    }
}
