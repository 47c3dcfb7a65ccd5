//! The statements of a kernel, executed once on polynomials.

use super::machine::{Action, Done, Flow, Guard, Machine, NOT_SET, Var};
use super::value::{Base, Cond, Node, NodeKind, Operand, Pointer, Val, not_understood};
use crate::ir::{BinaryOp, Element};
use warpwright_cudac::Scalar;
use warpwright_cudac::affine::Poly;
use warpwright_cudac::ast::{
    Block, Declaration, Expr, ExprKind, Ident, Init, Stmt, StmtKind, Type, Variable,
};
use warpwright_cudac::diag::{Diagnostic, Span};

/// What `cooperative_groups::this_thread_block()` gives.
const BLOCK: &str = "the threads of a block";

fn is_this_block(value: &Expr) -> bool {
    match &value.bare().kind {
        ExprKind::Call(name, arguments) => {
            arguments.is_empty() && name.text.ends_with("this_thread_block")
        }
        _ => false,
    }
}

/// Most elements of a thread's own array.
const MOST_CELLS: i64 = 256;

impl Machine<'_> {
    pub(super) fn block(&mut self, block: &Block) -> Done<Flow> {
        self.scopes.open();
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

    pub(super) fn end_scope(&mut self) {
        for (name, var) in self.scopes.close() {
            if let Var::Real(..) = var {
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
        if declaration.storage.iter().any(|w| w == "__shared__") {
            return self.declare_tiles(declaration, span);
        }
        let known = ["constexpr", "register", "static", "__restrict__"];
        if let Some(word) = declaration.storage.iter().find(|w| !known.contains(&&***w)) {
            return Err(not_understood(&format!("`{word}`"), span));
        }
        let is_static = declaration.storage.iter().any(|w| w == "static");
        for variable in &declaration.variables {
            if is_static && !is_fixed(&variable.ty) {
                return Err(not_understood("a `static` variable", span));
            }
            let var = self.declared(variable, span)?;
            let name = &variable.name.text;
            if self.scopes.get(name).is_some() {
                let what = format!("`{name}` hides another variable");
                return Err(Diagnostic::error("stencil::name", what)
                    .label(variable.name.span.clone(), "declared again")
                    .help("give it a name of its own"));
            }
            self.scopes.declare(name, var);
        }
        Ok(())
    }

    fn declared(&mut self, variable: &Variable, span: &Span) -> Done<Var> {
        let (name, ty) = (&variable.name.text, self.resolved(&variable.ty));
        if let Type::Array(..) = &ty {
            return self.own_cells(name, &ty, variable.init.as_ref(), span);
        }
        if let Some(Init::Value(value)) = &variable.init
            && is_this_block(value)
        {
            return Ok(Var::Other(BLOCK));
        }
        let is_bool = self.file.scalar(&ty, &self.types) == Some(Scalar::Bool);
        let value = match &variable.init {
            None => None,
            Some(Init::Value(value)) if is_bool => {
                return match self.general(value)?.whole() {
                    Cond::Place(test) => Ok(Var::Test(test)),
                    // Kept in a variable: what it is made of may change.
                    Cond::Data(node) | Cond::Both(_, node) | Cond::Either(_, node) => {
                        let (name, _) = self.note_condition(node);
                        self.named(&name, span).map(|value| match value {
                            Val::Real(node) => Var::Flag(node),
                            _ => Var::Other("a condition"),
                        })
                    }
                };
            }
            Some(Init::Value(value)) => Some(self.value(value)?),
            Some(Init::List(_, at)) => return Err(not_understood("this list of values", at)),
        };
        let integer = self.is_integer(&ty) && !self.is_count(name, value.as_ref());
        let auto = matches!(&ty, Type::Named(name) if name == "auto");
        match (&ty, value) {
            (_, None) if integer => {
                self.note_type(name, &ty);
                Ok(Var::Other(NOT_SET))
            }
            (_, Some(Val::Int(value))) if integer || auto => {
                if integer {
                    self.retype(&ty, &value);
                }
                let value = self.cut_off(&ty, value);
                self.note_type(name, &ty);
                let value = self.held(name, value, span)?;
                if let (true, Some(Init::Value(init))) = (auto, &variable.init) {
                    let is_unsigned = self.is_unsigned(init);
                    self.note_sign(name, is_unsigned);
                }
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
                    _ => self.data_element(&ty),
                };
                let Some(element) = known else {
                    return Err(not_understood("a variable of this type", span));
                };
                let value = value
                    .map(|value| self.as_operand(value, span))
                    .transpose()?;
                let leaf = value
                    .as_ref()
                    .and_then(|value| self.leaf_of(value, element));
                self.note_value(name, value.is_some());
                let action = Action::Declare(name.clone(), element, value, span.clone());
                self.act(action);
                Ok(Var::Real(element, leaf))
            }
        }
    }

    /// `const double c[] = {…};`, or an array of a thread whose elements are variables.
    fn own_cells(&mut self, name: &str, ty: &Type, init: Option<&Init>, span: &Span) -> Done<Var> {
        let mut lengths = Vec::new();
        let mut element = ty;
        while let Type::Array(of, length) = element {
            let length = match (length, init) {
                (Some(length), _) => match self.operand(length, "[]")? {
                    Val::Int(length) => length.as_constant(),
                    _ => None,
                },
                (None, Some(Init::List(values, _))) => i64::try_from(values.len()).ok(),
                (None, _) => None,
            };
            lengths.push(length.ok_or_else(|| not_understood("the length of this array", span))?);
            element = of.bare();
        }
        if let (true, [length], Some(Init::List(values, _))) =
            (self.is_integer(element), &lengths[..], init)
        {
            self.note_type(name, element);
            let values = self.integers(values, *length, span)?;
            return Ok(self.list_of(element, values));
        }
        let Some(element) = self.data_element(element) else {
            return Err(not_understood("an array of a thread of this type", span));
        };
        let count = lengths.iter().try_fold(1i64, |a, b| a.checked_mul(*b));
        let count = count
            .filter(|count| (1..=MOST_CELLS).contains(count))
            .ok_or_else(|| {
                Diagnostic::error("stencil::local-array", "the array of a thread is too large")
                    .label(span.clone(), format!("more than {MOST_CELLS} elements"))
            })?;
        let values = match init {
            None => Vec::new(),
            Some(Init::List(values, at)) if lengths.len() == 1 && values.len() as i64 <= count => {
                self.list(values, at)?
            }
            Some(_) => return Err(not_understood("this list of values", span)),
        };
        let numbers: Option<Vec<f64>> = values.iter().map(known).collect();
        if let (Some(numbers), Type::Array(of, _)) = (&numbers, ty)
            && matches!(**of, Type::Const(_))
            && !numbers.is_empty()
        {
            let mut numbers: Vec<f64> = numbers.iter().map(|n| element.round(*n)).collect();
            numbers.resize(usize::try_from(count).unwrap_or(0), 0.0);
            return Ok(Var::Table(element, numbers));
        }
        for at in 0..count {
            let mut indices = Vec::new();
            let mut rest = at;
            for length in lengths.iter().rev() {
                indices.insert(0, rest % length);
                rest /= length;
            }
            let key = self.cell(name, &lengths, &indices, span)?;
            let value = match values.get(usize::try_from(at).unwrap_or(usize::MAX)) {
                Some(value) => Some(value.clone()),
                // What a list leaves out is zero.
                None => init.map(|_| Operand::Integer(0)),
            };
            let leaf = value
                .as_ref()
                .and_then(|value| self.leaf_of(value, element));
            self.note_value(&key, value.is_some());
            let action = Action::Declare(key.clone(), element, value, span.clone());
            self.act(action);
            self.scopes.declare(&key, Var::Real(element, leaf));
        }
        Ok(Var::Cells(lengths))
    }

    /// The numbers of a list of integers; nothing can be stored to it.
    pub(super) fn integers(&mut self, values: &[Init], length: i64, span: &Span) -> Done<Vec<i64>> {
        let mut all = Vec::new();
        for value in values {
            let number = match value {
                Init::Value(value) => match self.value(value)? {
                    Val::Int(value) => value.as_constant(),
                    _ => None,
                },
                Init::List(..) => None,
            };
            all.push(number.ok_or_else(|| not_understood("this list of values", span))?);
        }
        let length = usize::try_from(length)
            .ok()
            .filter(|n| (all.len()..=4096).contains(n));
        // What a list leaves out is zero.
        all.resize(
            length.ok_or_else(|| not_understood("the length of this array", span))?,
            0,
        );
        Ok(all)
    }

    /// The values of a list.
    pub(super) fn list(&mut self, values: &[Init], span: &Span) -> Done<Vec<Operand>> {
        let mut all = Vec::new();
        for value in values {
            match value {
                Init::Value(value) => all.push({
                    let value = self.value(value)?;
                    self.as_operand(value, span)?
                }),
                Init::List(_, span) => return Err(not_understood("a list in a list", span)),
            }
        }
        Ok(all)
    }

    /// The value that a variable then holds, if it is a leaf of the variable's own type.
    pub(super) fn leaf_of(&self, value: &Operand, element: Element) -> Option<Box<Node>> {
        let Operand::Node(node) = value else {
            return None;
        };
        let leaf = match &node.kind {
            NodeKind::Local(name) => match self.variable(name) {
                Some(Var::Real(_, known)) => return known.clone(),
                _ => return None,
            },
            NodeKind::Load(_) | NodeKind::Number(_) | NodeKind::Scalar(_) => node,
            NodeKind::Carried(_) => node,
            _ => return None,
        };
        (leaf.element == element).then(|| Box::new(leaf.clone()))
    }

    /// Remembers how the source calls a point symbol.
    pub(super) fn name_point(&mut self, name: &str, value: &Poly) {
        if let Some((Some(point), offset)) = value.as_subscript() {
            let names = &mut self.trace.names;
            names
                .entry(point)
                .or_insert_with(|| (name.to_owned(), offset));
        }
    }

    /// A list of whole numbers of a type.
    pub(super) fn list_of(&self, ty: &Type, values: Vec<i64>) -> Var {
        let cut = values.into_iter().map(|value| {
            let cut = self.cut_off(ty, Poly::constant(value));
            cut.as_constant().unwrap_or(value)
        });
        Var::Integers(cut.collect())
    }

    /// An expression statement.
    fn effect(&mut self, expr: &Expr, span: &Span) -> Done<()> {
        let expr = self.expanded(expr)?.into_owned();
        match &expr.bare().kind {
            ExprKind::Assign(op, left, right) if op == "=" && self.is_tile(left) => {
                self.store_tile(left, right, span)
            }
            ExprKind::Assign(op, left, right) => {
                if matches!(right.bare().kind, ExprKind::Assign(..)) {
                    return Err(not_understood("an assignment of an assignment", span));
                }
                let value = self.value(right)?;
                // Sums, products and bits are the same, whatever the type.
                if matches!(&**op, "/=" | "%=") && !self.is_int(&value, right) {
                    return Err(super::value::not_an_int(span));
                }
                self.assign(op, left, value, span)
            }
            ExprKind::Update(op, _, target) => {
                let op = if op == "++" { "+=" } else { "-=" };
                self.assign(op, target, Val::Int(Poly::constant(1)), span)
            }
            ExprKind::Call(name, arguments)
                if !self.tiles.is_empty() && self.is_barrier(name, arguments) =>
            {
                self.barrier(span)
            }
            // A call whose value nobody wants: refused with its reason, or without.
            ExprKind::Call(..) => {
                self.value(&expr)?;
                Err(not_understood("a call for its effect", span))
            }
            _ => Err(not_understood("a statement without an effect", span)),
        }
    }

    /// `__syncthreads()`, `cg::sync(block)` or `block.sync()`
    fn is_barrier(&self, name: &Ident, arguments: &[Expr]) -> bool {
        let is_block = |name: &str| {
            let found = self.variable(name);
            matches!(found, Some(Var::Other(what)) if *what == BLOCK)
        };
        match arguments {
            [] if name.text == "__syncthreads" => true,
            [] => name.text.strip_suffix(".sync").is_some_and(is_block),
            [
                Expr {
                    kind: ExprKind::Name(block),
                    ..
                },
            ] => name.text.ends_with("::sync") && is_block(block),
            _ => false,
        }
    }

    fn assign(&mut self, op: &str, left: &Expr, right: Val, span: &Span) -> Done<()> {
        let target = self.expanded(left)?.into_owned();
        let target = target.bare();
        match &target.kind {
            ExprKind::Name(name) => self.assign_variable(op, name, right, target, span),
            ExprKind::Index(base, index) => {
                if let Some((name, indices)) = self.own_element(target)?
                    && let Some(Var::Cells(lengths)) = self.variable(&name).cloned()
                {
                    let key = self.cell(&name, &lengths, &indices, span)?;
                    return self.assign_variable(op, &key, right, target, span);
                }
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
        let Some(depth) = self.scopes.depth_of(name) else {
            self.value(target)?;
            return Err(not_understood("this target", &target.span));
        };
        if depth < self.fixed {
            let what = format!("`{name}` is carried from one point to the next");
            return Err(Diagnostic::error("stencil::carried", what)
                .label(target.span.clone(), "assigned inside the loop over points")
                .help("declare it inside the loop, and compute it from the loop's counter"));
        }
        let var = self.scopes.get(name).cloned();
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
                let new = self.placed(new);
                let new = self.held(name, new, span)?;
                self.name_point(name, &new);
                self.scopes.assign(name, Var::Int(new));
                Ok(())
            }
            (Some(Var::Other("not set")), Val::Int(right)) if op == "=" => {
                let right = self.held(name, right, span)?;
                self.name_point(name, &right);
                self.scopes.assign(name, Var::Int(right));
                Ok(())
            }
            (Some(Var::Pointer(old)), Val::Int(by))
                if matches!(op, "+=" | "-=") && old.taken.is_empty() && old.lengths.is_empty() =>
            {
                let sign = if op == "+=" { 1 } else { -1 };
                let offset = old.offset.plus(&by, sign);
                let offset = offset.ok_or_else(|| not_understood("this pointer", span))?;
                let offset = self.placed(offset);
                self.scopes
                    .assign(name, Var::Pointer(Pointer { offset, ..old }));
                Ok(())
            }
            (Some(Var::Pointer(old)), Val::Pointer(new)) if op == "=" && old.base == new.base => {
                self.scopes.assign(name, Var::Pointer(new));
                Ok(())
            }
            (Some(Var::Real(element, _)), right) => {
                let old = || Node {
                    kind: NodeKind::Local(name.to_owned()),
                    element,
                    span: target.span.clone(),
                };
                let right = self.as_operand(right, span)?;
                let (accumulate, value) = match self.in_place(op, &old, element, &right, span)? {
                    Some(value) => (false, value),
                    None => combined(op, old, element, right, span)?,
                };
                let leaf = self.leaf_of(&value, element).filter(|_| !accumulate);
                self.scopes.assign(name, Var::Real(element, leaf));
                if op == "=" {
                    self.note_value(name, true);
                }
                let (name, span) = (name.to_owned(), span.clone());
                self.act(if accumulate {
                    Action::Accumulate(name, value, span)
                } else {
                    Action::Assign(name, value, span)
                });
                Ok(())
            }
            (Some(Var::Other(why)), _) => {
                let what = format!("`{name}` is {why}");
                Err(Diagnostic::error("stencil::divergent", what)
                    .label(span.clone(), "and again here")
                    .help("sums that leave out neighbours beyond the border are not understood"))
            }
            _ => Err(not_understood("this assignment", span)),
        }
    }

    /// `old op= right` where whole numbers have a part in it: the new value.
    fn in_place(
        &mut self,
        op: &str,
        old: &impl Fn() -> Node,
        element: Element,
        right: &Operand,
        span: &Span,
    ) -> Done<Option<Operand>> {
        let is_one = match right {
            Operand::Node(node) => node.element.is_integer(),
            Operand::Integer(_) => false,
        };
        let Some(sign) = op.strip_suffix('=').filter(|sign| !sign.is_empty()) else {
            return Ok(None);
        };
        if !is_one && !element.is_integer() {
            return Ok(None);
        }
        let right = match right {
            Operand::Integer(value) => Val::Int(Poly::constant(*value)),
            Operand::Node(node) => Val::Real(node.clone()),
        };
        let value = self.arithmetic(sign, Val::Real(old()), right, span)?;
        self.as_operand(value, span).map(Some)
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
        let Base::Array(array) = pointer.base else {
            return Err(not_understood(
                "this assignment to shared memory",
                &target.span,
            ));
        };
        let by_place = |guard: &Guard| matches!(guard, Guard::Place(_));
        if !self.path.is_empty() || !self.strided.is_empty() || self.choices.iter().any(by_place) {
            return Err(not_understood("a store under this condition", span));
        }
        let element = self.trace.arrays[array].element;
        let right = self.as_operand(right, span)?;
        let of_integers = |operand: &Operand| match operand {
            Operand::Node(node) => node.element.is_integer(),
            Operand::Integer(_) => false,
        };
        let (accumulate, value) = if op != "=" && (element.is_integer() || of_integers(&right)) {
            let old = self.load(pointer.clone(), &target.span);
            match self.in_place(op, &|| old.clone(), element, &right, span)? {
                Some(value) => (false, value),
                None => return Err(not_understood(&format!("`{op}`"), span)),
            }
        } else if matches!(op, "*=" | "/=") {
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
        let (accumulate, value) = match accumulate && !self.choices.is_empty() {
            // Added where the condition holds.
            true => {
                let old = Operand::Node(self.load(pointer.clone(), &target.span));
                let sum = Node {
                    kind: NodeKind::Binary(BinaryOp::Add, Box::new(old), Box::new(value)),
                    element,
                    span: span.clone(),
                };
                (false, Operand::Node(sum))
            }
            false => (accumulate, value),
        };
        let access = self.access(pointer, &target.span);
        self.act(Action::Store(access, accumulate, value, span.clone()));
        if self.stored.is_none() {
            self.stored = Some(span.clone());
            self.trace.domain = self.settled()?;
        }
        Ok(())
    }
}

fn is_fixed(ty: &Type) -> bool {
    match ty {
        Type::Const(_) => true,
        Type::Array(of, _) => is_fixed(of),
        Type::Named(_) | Type::Pointer(..) => false,
    }
}

/// A number, if it is known already.
pub(super) fn known(value: &Operand) -> Option<f64> {
    match value {
        Operand::Integer(value) => Some(*value as f64),
        Operand::Node(node) => match &node.kind {
            NodeKind::Number(value) => Some(*value),
            NodeKind::Neg(inner) => known(inner).map(|value| -value),
            // In the type of the operation: one rounding of what `double` computes of two floats.
            NodeKind::Binary(op, a, b) if !node.element.is_integer() => {
                let round = |value: f64| node.element.round(value);
                Some(round(op.apply(round(known(a)?), round(known(b)?))))
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
