//! Expressions of a kernel: integers as polynomials, floating-point values as trees, pointers as an
//! array with a place in it.

use std::borrow::Cow;

use super::execute::{Machine, RawAccess, Var};
use super::poly::{Poly, Symbol};
use crate::ir::{BinaryOp, Element};
use warpwright_cudac::ast::{Expr, ExprKind, Ident, Type};
use warpwright_cudac::diag::{Diagnostic, Span};
use warpwright_cudac::macros::Expanded;
use warpwright_cudac::print;

/// A value.
#[derive(Clone, Debug)]
pub(super) enum Val {
    Int(Poly),
    Real(Node),
    Pointer(Pointer),
}

/// A floating-point expression.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) kind: NodeKind,
    pub(super) element: Element,
    pub(super) span: Span,
}

#[derive(Clone, Debug)]
pub(super) enum NodeKind {
    Number(f64),
    Scalar(usize),
    Local(String),
    /// By number in the trace.
    Load(usize),
    Neg(Box<Operand>),
    Binary(BinaryOp, Box<Operand>, Box<Operand>),
    Call(Ident, Vec<Operand>),
}

/// An operand: a known integer takes the type of what it meets.
#[derive(Clone, Debug)]
pub(super) enum Operand {
    Integer(i64),
    Node(Node),
}

/// A pointer into an array.
#[derive(Clone, Debug)]
pub(super) struct Pointer {
    pub(super) array: usize,
    /// Elements from the beginning of the array.
    pub(super) offset: Poly,
    /// The lengths of the arrays that it points to, outermost first.
    pub(super) lengths: Vec<Poly>,
    /// Subscripts so far.
    pub(super) taken: Vec<Poly>,
}

type Valued<T> = Result<T, Diagnostic>;

/// Most macros inside macros.
const DEEPEST: u32 = 32;

impl Machine<'_> {
    /// What stands here once macros are expanded.
    pub(super) fn expanded<'e>(&self, expr: &'e Expr) -> Valued<Cow<'e, Expr>> {
        let mut out = Cow::Borrowed(expr);
        for _ in 0..DEEPEST {
            let bare = out.bare();
            if self.is_variable(bare) {
                return Ok(out);
            }
            match self.file.expand(bare) {
                Expanded::NoMacro => return Ok(out),
                Expanded::Problem(problem) => return Err(problem),
                Expanded::Expr(expr) => out = Cow::Owned(*expr),
            }
        }
        let what = "macros are nested too deep";
        Err(Diagnostic::error("cuda::macro", what).label(expr.span.clone(), "used here"))
    }

    fn is_variable(&self, expr: &Expr) -> bool {
        match &expr.kind {
            ExprKind::Name(name) => self.variable(name).is_some(),
            _ => false,
        }
    }

    /// A macro whose body falls apart between the operators around its use is refused. `around` is
    /// the operator on the left of a right operand, or `first` and the operator of a left one.
    fn operand(&mut self, expr: &Expr, around: &str) -> Valued<Val> {
        let inner = self.expanded(expr)?;
        if let Cow::Owned(expanded) = &inner
            && !matches!(expr.kind, ExprKind::Paren(_))
            && falls_apart(&expanded.kind, around)
        {
            let what = format!("the macro `{}` needs parentheses", print::expr(expr));
            return Err(Diagnostic::error("cuda::macro", what)
                .label(
                    expr.span.clone(),
                    format!("means `{}`", print::expr(expanded)),
                )
                .help("put parentheses around the body of the macro"));
        }
        self.value(&inner)
    }

    /// The value of an expression.
    pub(super) fn value(&mut self, expr: &Expr) -> Valued<Val> {
        self.step(&expr.span)?;
        crate::with_stack(|| self.value_of(expr))
    }

    fn value_of(&mut self, expr: &Expr) -> Valued<Val> {
        let expr = self.expanded(expr)?;
        let expr = expr.bare();
        let span = &expr.span;
        match &expr.kind {
            ExprKind::Number(text) => number(text, span),
            ExprKind::Bool(value) => Ok(Val::Int(Poly::constant(i64::from(*value)))),
            ExprKind::Name(name) => self.named(name, span),
            ExprKind::Member(base, field) => builtin(base, field, span),
            ExprKind::Index(base, index) => {
                if let Some(value) = self.constant_of(base, index, span)? {
                    return Ok(Val::Real(value));
                }
                let pointer = self.subscripted(base, index)?;
                self.load_or_row(pointer, span)
            }
            ExprKind::Unary(op, inner) => self.unary(op, inner, span),
            ExprKind::Binary(..) => self.binary_row(expr),
            ExprKind::Cast(_, ty, inner) => {
                let value = self.operand(inner, "(T)")?;
                self.cast(ty, value, span)
            }
            ExprKind::Call(name, arguments) => self.call(name, arguments, span),
            ExprKind::Conditional(cond, a, b) => self.choice(cond, a, b, span),
            ExprKind::Assign(..) | ExprKind::Update(..) => {
                let what = "an assignment inside an expression is not understood";
                Err(Diagnostic::error("stencil::expression", what).label(span.clone(), "here"))
            }
            ExprKind::Paren(inner) => self.value(inner),
        }
    }

    fn named(&mut self, name: &str, span: &Span) -> Valued<Val> {
        match self.variable(name) {
            Some(Var::Int(value)) => Ok(Val::Int(value.clone())),
            Some(Var::Pointer(pointer)) => Ok(Val::Pointer(pointer.clone())),
            Some(Var::Real(element)) => {
                let (element, kind) = (*element, NodeKind::Local(name.to_owned()));
                let span = span.clone();
                Ok(Val::Real(Node {
                    kind,
                    element,
                    span,
                }))
            }
            Some(Var::Leaf(node)) => {
                let (kind, element) = (node.kind.clone(), node.element);
                let span = span.clone();
                Ok(Val::Real(Node {
                    kind,
                    element,
                    span,
                }))
            }
            Some(Var::Scalar(scalar, element)) => Ok(Val::Real(Node {
                kind: NodeKind::Scalar(*scalar),
                element: *element,
                span: span.clone(),
            })),
            Some(Var::Table(..)) => {
                let what = format!("`{name}` is an array");
                Err(Diagnostic::error("stencil::local-array", what)
                    .label(span.clone(), "used without a subscript"))
            }
            Some(Var::Other(what)) => {
                let what = format!("`{name}` is {what}");
                Err(Diagnostic::error("stencil::argument", what)
                    .label(span.clone(), "cannot be part of a stencil"))
            }
            None => {
                let what = format!("`{name}` is not known");
                Err(Diagnostic::error("stencil::name", what)
                    .label(span.clone(), "no variable, argument or macro of this file")
                    .help("global variables, constant memory and macros of headers are not read"))
            }
        }
    }

    /// An element of a thread's own array of constants.
    fn constant_of(&mut self, base: &Expr, index: &Expr, span: &Span) -> Valued<Option<Node>> {
        let ExprKind::Name(name) = &base.kind else {
            return Ok(None);
        };
        let Some(Var::Table(element, values)) = self.variable(name).cloned() else {
            return Ok(None);
        };
        let at = match self.operand(index, "[]")? {
            Val::Int(at) => at.as_constant(),
            _ => None,
        };
        let value = at.and_then(|at| values.get(usize::try_from(at).ok()?));
        match value {
            Some(value) => Ok(Some(Node {
                kind: NodeKind::Number(*value),
                element,
                span: span.clone(),
            })),
            None => {
                let what = format!(
                    "which of the {} values of `{name}` is not known",
                    values.len()
                );
                Err(Diagnostic::error("stencil::local-array", what)
                    .label(index.span.clone(), "not a number in its bounds"))
            }
        }
    }

    /// `base[index]` as a pointer with one more subscript.
    pub(super) fn subscripted(&mut self, base: &Expr, index: &Expr) -> Valued<Pointer> {
        let array = self.value_of_base(base)?;
        let Val::Pointer(mut pointer) = array else {
            let what = format!("`{}` is no array", print::expr(base));
            return Err(Diagnostic::error("stencil::name", what)
                .label(base.span.clone(), "has a subscript"));
        };
        let value = self.operand(index, "[]")?;
        let Val::Int(index_value) = value else {
            let what = "a subscript is not an integer expression";
            return Err(Diagnostic::error("stencil::affine", what)
                .label(index.span.clone(), "not affine in the place of the point")
                .help("indirect accesses (`a[b[i]]`) are no stencils"));
        };
        pointer.taken.push(index_value.with_places());
        Ok(pointer)
    }

    fn value_of_base(&mut self, base: &Expr) -> Valued<Val> {
        let expanded = self.expanded(base)?;
        match &expanded.bare().kind {
            // A row of an array of arrays is no load yet.
            ExprKind::Index(inner, index) => {
                let pointer = self.subscripted(inner, index)?;
                if pointer.taken.len() > pointer.lengths.len() {
                    let what = format!("`{}` is a number", print::expr(base));
                    return Err(Diagnostic::error("stencil::dimensions", what)
                        .label(base.span.clone(), "has one subscript too many"));
                }
                Ok(Val::Pointer(pointer))
            }
            _ => self.operand(base, "[…]"),
        }
    }

    fn load_or_row(&mut self, pointer: Pointer, span: &Span) -> Valued<Val> {
        if pointer.taken.len() <= pointer.lengths.len() {
            return Ok(Val::Pointer(pointer));
        }
        Ok(Val::Real(self.load(pointer, span)))
    }

    /// A load of the element that a complete pointer means.
    pub(super) fn load(&mut self, pointer: Pointer, span: &Span) -> Node {
        let element = self.trace.arrays[pointer.array].element;
        let access = self.access(pointer, span);
        Node {
            kind: NodeKind::Load(access),
            element,
            span: span.clone(),
        }
    }

    /// Notes an access; its number.
    pub(super) fn access(&mut self, pointer: Pointer, span: &Span) -> usize {
        let Pointer {
            array,
            offset,
            lengths,
            taken,
        } = pointer;
        self.trace.accesses.push(RawAccess {
            array,
            offset,
            lengths,
            subscripts: taken,
            span: span.clone(),
        });
        self.trace.accesses.len() - 1
    }

    fn unary(&mut self, op: &str, inner: &Expr, span: &Span) -> Valued<Val> {
        if op == "&" {
            let target = self.expanded(inner)?;
            if let ExprKind::Index(base, index) = &target.bare().kind {
                let mut pointer = self.subscripted(base, index)?;
                // `&p[i]` is `p + i`.
                if pointer.lengths.is_empty()
                    && let Some(last) = pointer.taken.pop()
                    && let Some(offset) = pointer.offset.plus(&last, 1)
                {
                    pointer.offset = offset;
                    return Ok(Val::Pointer(pointer));
                }
            }
            return Err(not_understood("this address", span));
        }
        let value = self.operand(inner, op)?;
        match (op, value) {
            ("+", value @ (Val::Int(_) | Val::Real(_))) => Ok(value),
            ("-", Val::Int(value)) => {
                let negative = Poly::default().plus(&value, -1);
                negative.map(Val::Int).ok_or_else(|| not_affine(span))
            }
            ("-", Val::Real(node)) => {
                let element = node.element;
                let kind = NodeKind::Neg(Box::new(Operand::Node(node)));
                let span = span.clone();
                Ok(Val::Real(Node {
                    kind,
                    element,
                    span,
                }))
            }
            ("*", Val::Pointer(mut pointer)) => {
                pointer.taken.push(Poly::default());
                self.load_or_row(pointer, span)
            }
            _ => Err(not_understood(&format!("`{op}`"), span)),
        }
    }

    /// A row of operators that group to the left, walked in a loop.
    fn binary_row(&mut self, expr: &Expr) -> Valued<Val> {
        let mut row = Vec::new();
        let mut left = expr;
        while let ExprKind::Binary(op, a, b) = &left.kind {
            row.push((&**op, &**b, &left.span));
            left = a;
        }
        let first = match row.last() {
            Some(("+" | "-", ..)) => "first +",
            _ => "first *",
        };
        let mut value = self.operand(left, first)?;
        for (op, right, span) in row.into_iter().rev() {
            let b = if matches!(right.bare().kind, ExprKind::Binary(..)) {
                self.value(right)?
            } else {
                self.operand(right, op)?
            };
            value = self.arithmetic(op, value, b, span)?;
        }
        Ok(value)
    }

    fn arithmetic(&mut self, op: &str, a: Val, b: Val, span: &Span) -> Valued<Val> {
        match (a, b) {
            (Val::Int(a), Val::Int(b)) => integers(op, &a, &b, span).map(Val::Int),
            (Val::Pointer(mut p), Val::Int(n)) | (Val::Int(n), Val::Pointer(mut p))
                if matches!(op, "+" | "-") && p.taken.is_empty() && p.lengths.is_empty() =>
            {
                let sign = if op == "-" { -1 } else { 1 };
                p.offset = p.offset.plus(&n, sign).ok_or_else(|| not_affine(span))?;
                Ok(Val::Pointer(p))
            }
            (Val::Pointer(_), _) | (_, Val::Pointer(_)) => {
                Err(not_understood("this arithmetic on pointers", span))
            }
            (a, b) => {
                let op = match op {
                    "+" => BinaryOp::Add,
                    "-" => BinaryOp::Sub,
                    "*" => BinaryOp::Mul,
                    "/" => BinaryOp::Div,
                    _ => return Err(not_understood(&format!("`{op}`"), span)),
                };
                let (a, b) = (operand(a, span)?, operand(b, span)?);
                let element = match (&a, &b) {
                    (Operand::Node(a), Operand::Node(b)) => a.element.wider(b.element),
                    (Operand::Node(n), _) | (_, Operand::Node(n)) => n.element,
                    _ => Element::F64,
                };
                Ok(Val::Real(Node {
                    kind: NodeKind::Binary(op, Box::new(a), Box::new(b)),
                    element,
                    span: span.clone(),
                }))
            }
        }
    }

    /// `cond ? a : b`, where it is known, or the larger or smaller of two integers.
    fn choice(&mut self, cond: &Expr, a: &Expr, b: &Expr, span: &Span) -> Valued<Val> {
        let bare = cond.bare();
        if let ExprKind::Binary(op, x, y) = &bare.kind {
            let same = |p: &Expr, q: &Expr| print::expr(p.bare()) == print::expr(q.bare());
            let larger = matches!(&**op, ">" | ">=");
            if (larger || matches!(&**op, "<" | "<=")) && same(x, a) && same(y, b) {
                let (a, b) = (self.value(a)?, self.value(b)?);
                if let (Val::Int(a), Val::Int(b)) = (a, b) {
                    return extreme(&a, &b, larger, span).map(Val::Int);
                }
                let what = "a choice between two values is not understood";
                return Err(Diagnostic::error("stencil::divergent", what)
                    .label(span.clone(), "depends on the data")
                    .help("write `fmax` or `fmin`"));
            }
        }
        match self.condition(cond, false)? {
            super::guard::Condition::Known(true) => self.value(a),
            super::guard::Condition::Known(false) => self.value(b),
            super::guard::Condition::All(_) => {
                let what = "points compute different things";
                Err(Diagnostic::error("stencil::divergent", what)
                    .label(span.clone(), "depends on the place of the point"))
            }
        }
    }

    fn call(&mut self, name: &Ident, arguments: &[Expr], span: &Span) -> Valued<Val> {
        if let Some(problem) = forbidden(name) {
            return Err(problem);
        }
        let mut values = Vec::new();
        for argument in arguments {
            values.push(self.operand(argument, ",")?);
        }
        if self.file.functions.iter().any(|f| f.name.text == name.text) {
            return self.inlined(name, values, span);
        }
        let name_text = &*name.text;
        if let ("max" | "min", [Val::Int(a), Val::Int(b)]) = (name_text, values.as_slice()) {
            return extreme(a, b, name_text == "max", span).map(Val::Int);
        }
        if let ("__ldg", [Val::Pointer(pointer)]) = (name_text, values.as_slice()) {
            let mut pointer = pointer.clone();
            pointer.taken.push(Poly::default());
            return self.load_or_row(pointer, span);
        }
        // Overloaded in C++ for floating-point numbers.
        let text = match name_text {
            "max" => "fmax",
            "min" => "fmin",
            "abs" => "fabs",
            other => other,
        };
        let mut operands = Vec::new();
        for value in values {
            operands.push(operand(value, span)?);
        }
        let types = operands.iter().map(|o| match o {
            Operand::Integer(_) if text.ends_with('f') => Element::F32,
            Operand::Integer(_) => Element::F64,
            Operand::Node(node) => node.element,
        });
        let element = types.fold(Element::F32, Element::wider);
        let name = Ident {
            text: text.to_owned(),
            span: name.span.clone(),
        };
        Ok(Val::Real(Node {
            kind: NodeKind::Call(name, operands),
            element,
            span: span.clone(),
        }))
    }

    fn cast(&mut self, ty: &Type, value: Val, span: &Span) -> Valued<Val> {
        match (ty.bare(), value) {
            (ty, Val::Int(value)) if ty.is_integer() => Ok(Val::Int(value)),
            (Type::Pointer(to, _), Val::Pointer(pointer)) => self.pointer_cast(to, pointer, span),
            (ty, value) => {
                let Some(element) = self.element(ty) else {
                    return Err(not_understood("this cast", span));
                };
                match operand(value, span)? {
                    Operand::Integer(value) => Ok(Val::Real(Node {
                        kind: NodeKind::Number(value as f64),
                        element,
                        span: span.clone(),
                    })),
                    Operand::Node(node) if node.element == element => Ok(Val::Real(node)),
                    Operand::Node(Node {
                        kind: NodeKind::Number(value),
                        ..
                    }) => Ok(Val::Real(Node {
                        kind: NodeKind::Number(element.round(value)),
                        element,
                        span: span.clone(),
                    })),
                    Operand::Node(_) => {
                        let what = "a cast between `float` and `double` is not understood";
                        Err(Diagnostic::error("stencil::cast", what)
                            .label(span.clone(), "changes the type")
                            .help("assign it to a variable of the other type"))
                    }
                }
            }
        }
    }

    /// `(double (*)[M][N])p`
    pub(super) fn pointer_cast(
        &mut self,
        to: &Type,
        mut pointer: Pointer,
        span: &Span,
    ) -> Valued<Val> {
        let (element, lengths) = self.row_type(to, span)?;
        if element != Some(self.trace.arrays[pointer.array].element) {
            let what = "the pointer is cast to another element type";
            return Err(
                Diagnostic::error("stencil::cast", what).label(span.clone(), "another type")
            );
        }
        if !pointer.taken.is_empty() || (!lengths.is_empty() && !pointer.offset.is_zero()) {
            return Err(not_understood("this cast", span));
        }
        pointer.lengths = lengths;
        Ok(Val::Pointer(pointer))
    }

    /// What a pointer points to: its elements, and the lengths of arrays of them.
    pub(super) fn row_type(
        &mut self,
        ty: &Type,
        span: &Span,
    ) -> Valued<(Option<Element>, Vec<Poly>)> {
        let mut lengths = Vec::new();
        let mut ty = ty.bare();
        while let Type::Array(of, length) = ty {
            let length = match length {
                None => None,
                Some(length) => match self.operand(length, "[]")? {
                    Val::Int(length) => Some(length),
                    _ => None,
                },
            };
            lengths.push(length.ok_or_else(|| not_understood("this array type", span))?);
            ty = of.bare();
        }
        Ok((self.element(ty), lengths))
    }
}

/// Would an expression be torn apart by what stands around it, if it stands there as text?
fn falls_apart(kind: &ExprKind, around: &str) -> bool {
    let closed = matches!(around, "[]" | ",");
    match kind {
        ExprKind::Binary(op, ..) => match &**op {
            "*" | "/" | "%" => !closed && !matches!(around, "+" | "-" | "first +" | "first *"),
            "+" | "-" => !closed && around != "first +",
            _ => !closed,
        },
        ExprKind::Conditional(..) | ExprKind::Assign(..) => !closed,
        _ => false,
    }
}

/// A value as an operand of floating-point arithmetic.
pub(super) fn operand(value: Val, span: &Span) -> Valued<Operand> {
    match value {
        Val::Real(node) => Ok(Operand::Node(node)),
        Val::Int(value) => value.as_constant().map(Operand::Integer).ok_or_else(|| {
            let what = "a place or a size is used as a value";
            Diagnostic::error("stencil::position", what)
                .label(span.clone(), "depends on where the point is")
                .help("points compute from arrays, scalars and constants, not from their place")
        }),
        Val::Pointer(_) => Err(not_understood("a pointer as a value", span)),
    }
}

fn integers(op: &str, a: &Poly, b: &Poly, span: &Span) -> Valued<Poly> {
    let known = a.as_constant().zip(b.as_constant());
    let result = match (op, known) {
        ("+", _) => a.plus(b, 1),
        ("-", _) => a.plus(b, -1),
        ("*", _) => a.times(b),
        ("/", Some((a, b))) => a.checked_div(b).map(Poly::constant),
        ("%", Some((a, b))) => a.checked_rem(b).map(Poly::constant),
        ("<<", _) => match b.as_constant() {
            Some(shift @ 0..=40) => a.times(&Poly::constant(1 << shift)),
            _ => None,
        },
        ("/", None) if b.as_constant() == Some(1) => Some(a.clone()),
        _ => None,
    };
    result
        .map(Poly::with_places)
        .ok_or_else(|| not_affine(span))
}

/// The larger or smaller of two integers, if that is known: a place is never negative.
fn extreme(a: &Poly, b: &Poly, larger: bool, span: &Span) -> Valued<Poly> {
    let at_least = |x: &Poly, y: &Poly| {
        let Some(difference) = x.plus(y, -1) else {
            return false;
        };
        difference.never_negative()
    };
    if at_least(a, b) {
        return Ok(if larger { a.clone() } else { b.clone() });
    }
    if at_least(b, a) {
        return Ok(if larger { b.clone() } else { a.clone() });
    }
    Err(Diagnostic::error(
        "stencil::affine",
        "which of the two is larger is not known when the kernel is compiled",
    )
    .label(span.clone(), "not affine in the place of the point"))
}

/// `threadIdx.x` and its like.
fn builtin(base: &Expr, field: &str, span: &Span) -> Valued<Val> {
    let axis = match field {
        "x" => 0,
        "y" => 1,
        "z" => 2,
        _ => return Err(not_understood(&format!("`.{field}`"), span)),
    };
    let symbol = match &base.bare().kind {
        ExprKind::Name(name) => match &**name {
            "threadIdx" => Symbol::ThreadIdx(axis),
            "blockIdx" => Symbol::BlockIdx(axis),
            "blockDim" => Symbol::BlockDim(axis),
            "gridDim" => {
                let what = "the kernel depends on the size of the grid";
                return Err(Diagnostic::error("stencil::grid", what)
                    .label(span.clone(), "not part of a stencil")
                    .help("grid-stride loops are not understood: one thread computes one point"));
            }
            _ => return Err(not_understood(&format!("`{name}.{field}`"), span)),
        },
        _ => return Err(not_understood("this member", span)),
    };
    Ok(Val::Int(Poly::symbol(symbol)))
}

/// Functions that no stencil calls, with the reason.
fn forbidden(name: &Ident) -> Option<Diagnostic> {
    let text = &*name.text;
    let (code, what) = if text.starts_with("atomic") {
        (
            "stencil::atomic",
            "atomic operations depend on the order of the threads",
        )
    } else if text.starts_with("__syncthreads") || text == "__syncwarp" {
        (
            "stencil::barrier",
            "a barrier means that threads work together; points are independent",
        )
    } else if text.starts_with("__shfl") || text.starts_with("__ballot") {
        (
            "stencil::warp",
            "threads of a warp exchange values; points are independent",
        )
    } else if matches!(text, "printf" | "assert" | "__trap") {
        (
            "stencil::effect",
            "printing and stopping are no part of a stencil",
        )
    } else {
        return None;
    };
    Some(Diagnostic::error(code, what).label(name.span.clone(), format!("`{text}`")))
}

/// A literal.
fn number(text: &str, span: &Span) -> Valued<Val> {
    let wrong = || {
        let what = format!("the number `{text}` is not understood");
        Diagnostic::error("stencil::number", what).label(span.clone(), "here")
    };
    let plain = text.replace('\'', "");
    let (sign, digits) = match plain.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, &*plain),
    };
    let lower = digits.to_ascii_lowercase();
    let integer = lower.trim_end_matches(['u', 'l']);
    let parsed = match integer.strip_prefix("0x") {
        Some(hexadecimal) => i64::from_str_radix(hexadecimal, 16).ok(),
        // A leading zero means octal.
        None if integer.len() > 1 && integer.bytes().all(|b| b.is_ascii_digit()) => {
            let radix = if integer.starts_with('0') { 8 } else { 10 };
            i64::from_str_radix(integer, radix).ok()
        }
        None => integer.parse().ok(),
    };
    if let Some(value) = parsed {
        return Ok(Val::Int(Poly::constant(sign * value)));
    }
    let (digits, element) = match lower.strip_suffix('f') {
        Some(digits) => (digits, Element::F32),
        None => (lower.trim_end_matches('l'), Element::F64),
    };
    let first = digits.starts_with(|c: char| c.is_ascii_digit() || c == '.');
    let value = match element {
        Element::F32 => digits.parse::<f32>().map(f64::from),
        Element::F64 => digits.parse::<f64>(),
    };
    let value = value.ok().filter(|v| first && v.is_finite());
    let value = value.ok_or_else(wrong)? * sign as f64;
    Ok(Val::Real(Node {
        kind: NodeKind::Number(value),
        element,
        span: span.clone(),
    }))
}

fn not_affine(span: &Span) -> Diagnostic {
    Diagnostic::error(
        "stencil::affine",
        "this is not affine in the place of the point",
    )
    .label(span.clone(), "only sums, and products with sizes, are")
}

pub(super) fn not_understood(what: &str, span: &Span) -> Diagnostic {
    let message = format!("{what} is not understood in a stencil");
    Diagnostic::error("stencil::expression", message).label(span.clone(), "here")
}
