//! Expressions of a kernel: integers as polynomials, floating-point values as trees, pointers as an
//! array with a place in it.

use std::borrow::Cow;

use super::integers::{converted, type_of_number};
use super::machine::{Machine, Var};
use crate::ir::{BinaryOp, Element, Function};
use warpwright_cudac::Literal;
use warpwright_cudac::affine::{Poly, Symbol, Test};
use warpwright_cudac::ast::{Expr, ExprKind, Ident};
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
    /// The value that a variable has when an iteration begins, while a loop is looked at.
    Carried(String),
    /// By number in the trace.
    Load(usize),
    Neg(Box<Operand>),
    Binary(BinaryOp, Box<Operand>, Box<Operand>),
    Call(Ident, Vec<Operand>),
    /// The first value where the test of the point's place holds, else the second one.
    Choice(Test, Box<Operand>, Box<Operand>),
    /// `x < y ? a : b` and its like: both values are computed.
    Select(Function, Box<[Operand; 4]>),
}

/// A condition.
#[derive(Clone, Debug)]
pub(super) enum Cond {
    /// On places and sizes.
    Place(Test),
    /// On data: 1 where it holds, else 0.
    Data(Node),
    /// Both; what the second one reads is there where the first one holds.
    Both(Test, Node),
    /// Either; what the second one reads is there where the first one does not hold.
    Either(Test, Node),
}

impl Cond {
    /// One condition of two.
    pub(super) fn whole(self) -> Cond {
        let (test, a, b, element, span) = match self {
            Cond::Both(test, node) => {
                let (element, span) = (node.element, node.span.clone());
                (
                    test,
                    Operand::Node(node),
                    Operand::Integer(0),
                    element,
                    span,
                )
            }
            Cond::Either(test, node) => {
                let (element, span) = (node.element, node.span.clone());
                (
                    test,
                    Operand::Integer(1),
                    Operand::Node(node),
                    element,
                    span,
                )
            }
            other => return other,
        };
        Cond::Data(Node {
            kind: NodeKind::Choice(test, Box::new(a), Box::new(b)),
            element,
            span,
        })
    }
}

/// An operand: a known integer takes the type of what it meets.
#[derive(Clone, Debug)]
pub(super) enum Operand {
    Integer(i64),
    Node(Node),
}

/// What a pointer points into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Base {
    /// An array, by number in the trace.
    Array(usize),
    /// An array in shared memory, by number.
    Tile(usize),
}

/// A pointer into an array.
#[derive(Clone, Debug)]
pub(super) struct Pointer {
    pub(super) base: Base,
    /// Elements from the beginning of the array.
    pub(super) offset: Poly,
    /// The lengths of the arrays that it points to, outermost first.
    pub(super) lengths: Vec<Poly>,
    /// Subscripts so far.
    pub(super) taken: Vec<Poly>,
}

impl Pointer {
    /// The beginning of an array.
    pub(super) fn new(array: usize, lengths: Vec<Poly>) -> Self {
        Pointer {
            base: Base::Array(array),
            offset: Poly::default(),
            lengths,
            taken: Vec::new(),
        }
    }
}

pub(super) type Valued<T> = Result<T, Diagnostic>;

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
    pub(super) fn operand(&mut self, expr: &Expr, around: &str) -> Valued<Val> {
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
            ExprKind::Member(base, field) => match self.member(expr) {
                Some(name) => self.named(&name, span),
                None => {
                    let found = builtin(base, field, span)?;
                    if let Val::Int(value) = &found
                        && let [Symbol::BlockDim(axis) | Symbol::GridDim(axis)] =
                            value.symbols()[..]
                    {
                        self.trace.asked[usize::from(axis)] = true;
                    }
                    Ok(found)
                }
            },
            ExprKind::Index(base, index) => {
                if let Some(value) = self.own_array(expr)? {
                    return Ok(value);
                }
                let pointer = self.subscripted(base, index)?;
                self.load_or_row(pointer, span)
            }
            ExprKind::Unary(op, _) if op == "!" => self.condition_as_value(expr),
            ExprKind::Unary(op, inner) => self.unary(op, inner, span),
            ExprKind::Binary(op, ..)
                if super::guard::is_comparison(op) || matches!(&**op, "&&" | "||") =>
            {
                self.condition_as_value(expr)
            }
            ExprKind::Binary(..) => self.binary_row(expr),
            ExprKind::Cast(_, ty, inner) => {
                let value = self.operand(inner, "(T)")?;
                self.cast(ty, value, span)
            }
            ExprKind::Call(name, arguments) => self.call(name, arguments, span),
            ExprKind::Conditional(cond, a, b) => self.choice(cond, a, b, span),
            ExprKind::Assign(..) | ExprKind::Update(..) | ExprKind::Comma(..) => {
                let what = "an assignment inside an expression is not understood";
                Err(Diagnostic::error("stencil::expression", what).label(span.clone(), "here"))
            }
            ExprKind::Paren(inner) => self.value(inner),
        }
    }

    /// The variable that is a member of an argument: `p.nx`, `p.size.x`.
    pub(super) fn member(&self, expr: &Expr) -> Option<String> {
        let mut fields = Vec::new();
        let mut base = expr.bare();
        while let ExprKind::Member(inner, field) = &base.kind {
            fields.push(&**field);
            base = inner.bare();
        }
        let ExprKind::Name(name) = &base.kind else {
            return None;
        };
        if !matches!(self.variable(name), Some(Var::Record)) {
            return None;
        }
        let fields = fields.into_iter().rev();
        let name = fields.fold(name.clone(), |name, field| format!("{name}.{field}"));
        self.variable(&name).is_some().then_some(name)
    }

    pub(super) fn named(&mut self, name: &str, span: &Span) -> Valued<Val> {
        match self.variable(name) {
            Some(Var::Int(value)) => Ok(Val::Int(value.clone())),
            Some(Var::Pointer(pointer)) => Ok(Val::Pointer(pointer.clone())),
            Some(Var::Real(..)) if self.partly.contains(name) => {
                let what = format!("`{name}` has a value at some points only");
                Err(Diagnostic::error("stencil::unset", what)
                    .label(span.clone(), "read here")
                    .help("give it a value where the condition does not hold, too"))
            }
            Some(Var::Real(element, known)) => {
                let kind = match known.as_ref().map(|node| &node.kind) {
                    Some(carried @ NodeKind::Carried(_)) => carried.clone(),
                    _ => NodeKind::Local(name.to_owned()),
                };
                Ok(Val::Real(Node {
                    kind,
                    element: *element,
                    span: span.clone(),
                }))
            }
            Some(Var::Test(Test::Known(value))) => Ok(Val::Int(Poly::constant(i64::from(*value)))),
            Some(Var::Test(_) | Var::Flag(_)) => {
                Err(not_understood("a condition as a value", span))
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
            Some(Var::Record) => Err(not_understood("a structure as a value", span)),
            Some(Var::Table(..) | Var::Integers(_) | Var::Cells(_)) => {
                let what = format!("`{name}` is an array");
                Err(Diagnostic::error("stencil::local-array", what)
                    .label(span.clone(), "used without a subscript"))
            }
            Some(Var::Other(what)) => {
                let what = format!("`{name}` is {what}");
                Err(Diagnostic::error("stencil::argument", what)
                    .label(span.clone(), "cannot be part of a stencil"))
            }
            None => self.global(name, span),
        }
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
        if let ("-", Val::Int(known)) = (op, &value)
            && let Some(negative) = Poly::default().plus(known, -1)
        {
            self.not_below_zero(self.is_unsigned(inner), &negative, span)?;
        }
        match (op, value) {
            ("+", value @ (Val::Int(_) | Val::Real(_))) => Ok(value),
            ("-", Val::Int(value)) => {
                let negative = Poly::default().plus(&value, -1);
                negative.map(Val::Int).ok_or_else(|| not_affine(span))
            }
            ("-", Val::Real(node)) => {
                let element = node.element.promoted();
                let kind = NodeKind::Neg(Box::new(Operand::Node(node)));
                let span = span.clone();
                Ok(Val::Real(Node {
                    kind,
                    element,
                    span,
                }))
            }
            ("~", Val::Real(node)) if node.element.is_integer() => {
                let (a, b) = (Operand::Node(node), Operand::Integer(-1));
                let node = self.on_integers("^", &a, &b, span)?;
                node.map(Val::Real)
                    .ok_or_else(|| not_understood("`~`", span))
            }
            ("*", Val::Pointer(mut pointer)) => {
                pointer.taken.push(Poly::default());
                self.load_or_row(pointer, span)
            }
            _ => Err(not_understood(&format!("`{op}`"), span)),
        }
    }

    /// `a == 3 || b`: 1 where it holds, else 0.
    fn condition_as_value(&mut self, expr: &Expr) -> Valued<Val> {
        self.doubtful += 1;
        let cond = self.general(expr);
        self.doubtful -= 1;
        match cond?.whole() {
            Cond::Place(Test::Known(value)) => Ok(Val::Int(Poly::constant(i64::from(value)))),
            Cond::Data(node) => {
                let to_int = Operand::Node(node);
                match converted(to_int, Element::I32, &expr.span) {
                    Operand::Node(node) => Ok(Val::Real(node)),
                    Operand::Integer(value) => Ok(Val::Int(Poly::constant(value))),
                }
            }
            _ => Err(not_understood("a condition as a value", &expr.span)),
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
        let mut is_int = self.is_int(&value, left);
        let mut is_unsigned = self.is_unsigned(left);
        for (op, right, span) in row.into_iter().rev() {
            let b = if matches!(right.bare().kind, ExprKind::Binary(..)) {
                self.value(right)?
            } else {
                self.operand(right, op)?
            };
            let of_integers = |value: &Val| matches!(value, Val::Real(n) if n.element.is_integer());
            let right_is_int = self.is_int(&b, right);
            if of_integers(&value) && !right_is_int || of_integers(&b) && !is_int {
                return Err(not_an_int(span));
            }
            is_unsigned |= self.is_unsigned(right);
            value = self.arithmetic(op, value, b, span)?;
            // The type of a row of numbers is that of all of them.
            is_int = !matches!(value, Val::Int(_)) || is_int && right_is_int;
            if let Val::Int(known) = &value {
                self.not_below_zero(is_unsigned, known, span)?;
            }
        }
        Ok(value)
    }

    /// A known number below zero is another one in a type without a sign.
    fn not_below_zero(&self, is_unsigned: bool, value: &Poly, span: &Span) -> Valued<()> {
        match is_unsigned && value.as_constant().is_some_and(|known| known < 0) {
            true => Err(not_understood("a number below zero without a sign", span)),
            false => Ok(()),
        }
    }

    pub(super) fn arithmetic(&mut self, op: &str, a: Val, b: Val, span: &Span) -> Valued<Val> {
        match (a, b) {
            (Val::Int(a), Val::Int(b)) => {
                if let ("/" | "%", None, Some(by)) = (op, a.as_constant(), b.as_constant())
                    && by != 1
                    && let Some(value) = self.derive(&a, by, op == "%")
                {
                    return Ok(Val::Int(value));
                }
                if op == "%"
                    && let Some(value) = self.wrapped(&a, &b)
                {
                    return Ok(Val::Int(value));
                }
                let value = integers(op, &a, &b, span)?;
                Ok(Val::Int(self.placed(value)))
            }
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
            (Val::Real(value), Val::Int(place)) | (Val::Int(place), Val::Real(value))
                if value.element.is_integer() && (place.is_raw() || !place.points().is_empty()) =>
            {
                let what = "a whole number that depends on data says which element is meant";
                Err(Diagnostic::error("stencil::affine", what)
                    .label(span.clone(), "a place and an element")
                    .help("indirect accesses (`a[b[i]]`) are no stencils"))
            }
            (a, b) => {
                let (a, b) = (self.as_operand(a, span)?, self.as_operand(b, span)?);
                if let Some(node) = self.on_integers(op, &a, &b, span)? {
                    return Ok(Val::Real(node));
                }
                let op = match op {
                    "+" => BinaryOp::Add,
                    "-" => BinaryOp::Sub,
                    "*" => BinaryOp::Mul,
                    "/" => BinaryOp::Div,
                    _ => return Err(not_understood(&format!("`{op}`"), span)),
                };
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
                let is_unsigned = self.is_unsigned(a) || self.is_unsigned(b);
                let (a, b) = (self.value(a)?, self.value(b)?);
                if let (Val::Int(a), Val::Int(b)) = (a, b) {
                    self.signed(is_unsigned, [&a, &b], span)?;
                    return self.extreme(&a, &b, larger, span).map(Val::Int);
                }
            }
        }
        let cond = self.general(cond)?;
        match &cond {
            Cond::Place(Test::Known(true)) => return self.value(a),
            Cond::Place(Test::Known(false)) => return self.value(b),
            _ => {}
        }
        let by_data = !matches!(cond, Cond::Place(_));
        self.doubtful += usize::from(by_data);
        let sides = self.either_side(
            &cond,
            |machine| machine.value(a),
            |machine| machine.value(b),
        );
        self.doubtful -= usize::from(by_data);
        let (first, second) = sides?;
        let is_data = |value: &Val| matches!(value, Val::Real(node) if node.element.is_integer());
        let are_known = matches!((&first, &second), (Val::Int(_), Val::Int(_)));
        if (by_data && are_known || is_data(&first) || is_data(&second))
            && !(self.is_int(&first, a) && self.is_int(&second, b))
        {
            return Err(not_an_int(span));
        }
        self.by(&cond, first, second, span)
    }

    /// Runs what stands on the two sides of a condition.
    pub(super) fn either_side<T>(
        &mut self,
        cond: &Cond,
        a: impl FnOnce(&mut Self) -> Valued<T>,
        b: impl FnOnce(&mut Self) -> Valued<T>,
    ) -> Valued<(T, T)> {
        let (first, second) = match cond {
            Cond::Place(test) => (Some(test.clone()), test.opposite()),
            Cond::Both(test, _) => (Some(test.clone()), None),
            Cond::Either(test, _) => (None, test.opposite()),
            Cond::Data(_) => (None, None),
        };
        let a = match first {
            Some(test) => self.chosen(&test, a)?,
            None => a(self)?,
        };
        let b = match second {
            Some(test) => self.chosen(&test, b)?,
            None => b(self)?,
        };
        Ok((a, b))
    }

    /// `cond ? a : b`
    pub(super) fn by(&mut self, cond: &Cond, a: Val, b: Val, span: &Span) -> Valued<Val> {
        match cond {
            Cond::Place(test) => self.either(test, a, b, span),
            Cond::Data(node) => self.selected(node, a, b, span).map(Val::Real),
            Cond::Both(test, node) => {
                let inner = self.selected(node, a, b.clone(), span)?;
                self.either(test, Val::Real(inner), b, span)
            }
            Cond::Either(test, node) => {
                let inner = self.selected(node, a.clone(), b, span)?;
                self.either(test, a, Val::Real(inner), span)
            }
        }
    }

    /// `test ? a : b`: an index that is clamped or wrapped, an element at one, or a value that is chosen.
    pub(super) fn either(&mut self, test: &Test, a: Val, b: Val, span: &Span) -> Valued<Val> {
        match (a, b) {
            (Val::Int(a), Val::Int(b)) => {
                if let Some(value) = self.bent(test, &a, &b) {
                    return Ok(Val::Int(value));
                }
            }
            (a, b @ Val::Real(_)) | (a @ Val::Real(_), b) => {
                return self.chosen_value(test, a, b, span).map(Val::Real);
            }
            _ => {}
        }
        let what = "a choice by the place of the point is not understood";
        Err(Diagnostic::error("stencil::choice", what)
            .label(
                span.clone(),
                "no index that is clamped to the last cell of a row or wraps to its first one",
            )
            .help("compute the points next to the border in an `else` or a kernel of their own"))
    }
}

impl Machine<'_> {
    /// `condition ? a : b`
    pub(super) fn selected(
        &mut self,
        condition: &Node,
        a: Val,
        b: Val,
        span: &Span,
    ) -> Valued<Node> {
        let (a, b) = (self.as_operand(a, span)?, self.as_operand(b, span)?);
        let element = match (&a, &b) {
            (Operand::Node(a), Operand::Node(b)) => a.element.wider(b.element),
            (Operand::Node(n), _) | (_, Operand::Node(n)) => n.element.promoted(),
            _ => Element::I32,
        };
        Ok(select(condition, a, b, element))
    }

    /// A floating-point value or another one, by the place of the point.
    fn chosen_value(&mut self, test: &Test, a: Val, b: Val, span: &Span) -> Valued<Node> {
        let (a, b) = (self.as_operand(a, span)?, self.as_operand(b, span)?);
        let element = match (&a, &b) {
            (Operand::Node(a), Operand::Node(b)) if a.element == b.element => {
                if let (NodeKind::Load(a), NodeKind::Load(b)) = (&a.kind, &b.kind) {
                    let all = &self.trace.accesses;
                    if let Some(pointer) = self.bent_access(test, &all[*a], &all[*b]) {
                        return Ok(self.load(pointer, span));
                    }
                }
                a.element
            }
            (Operand::Node(a), Operand::Node(b))
                if a.element.is_integer() || b.element.is_integer() =>
            {
                a.element.wider(b.element)
            }
            (Operand::Node(n), Operand::Integer(_)) | (Operand::Integer(_), Operand::Node(n)) => {
                n.element.promoted()
            }
            _ => {
                return Err(not_understood(
                    "a choice between `float` and `double`",
                    span,
                ));
            }
        };
        let test = self.of_points(test)?;
        Ok(Node {
            kind: NodeKind::Choice(test, Box::new(a), Box::new(b)),
            element,
            span: span.clone(),
        })
    }
}

/// `condition ? a : b`; a comparison chooses at once.
pub(super) fn select(condition: &Node, a: Operand, b: Operand, element: Element) -> Node {
    let (function, [x, y, a, b]) = match &condition.kind {
        NodeKind::Select(function, of) => match &**of {
            [x, y, Operand::Integer(1), Operand::Integer(0)] => {
                (*function, [x.clone(), y.clone(), a, b])
            }
            [x, y, Operand::Integer(0), Operand::Integer(1)] => {
                (*function, [x.clone(), y.clone(), b, a])
            }
            _ => unequal(condition, a, b),
        },
        _ => unequal(condition, a, b),
    };
    Node {
        kind: NodeKind::Select(function, Box::new([x, y, a, b])),
        element,
        span: condition.span.clone(),
    }
}

fn unequal(condition: &Node, a: Operand, b: Operand) -> (Function, [Operand; 4]) {
    let is = Operand::Node(condition.clone());
    (Function::IfEqual, [is, Operand::Integer(0), b, a])
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
    let placed = !a.points().is_empty() || a.is_raw();
    result.ok_or_else(|| match op {
        "%" if placed => {
            let what = "a remainder of the place of the point is not understood";
            Diagnostic::error("stencil::remainder", what)
                .label(
                    span.clone(),
                    "an index that wraps at the border, a colour, a row of one long array?",
                )
                .help("compute the points next to the border in an `else` or a kernel of their own")
        }
        _ => not_affine(span),
    })
}

/// `threadIdx.x` and its like.
fn builtin(base: &Expr, field: &str, span: &Span) -> Valued<Val> {
    let axis = match field {
        "x" => 0,
        "y" => 1,
        "z" => 2,
        _ => {
            let what = format!("the member `.{field}` of a structure");
            return Err(not_understood(&what, span));
        }
    };
    let symbol = match &base.bare().kind {
        ExprKind::Name(name) => match &**name {
            "threadIdx" => Symbol::ThreadIdx(axis),
            "blockIdx" => Symbol::BlockIdx(axis),
            "blockDim" => Symbol::BlockDim(axis),
            "gridDim" => Symbol::GridDim(axis),
            _ => return Err(not_understood(&format!("`{name}.{field}`"), span)),
        },
        _ => return Err(not_understood("this member", span)),
    };
    Ok(Val::Int(Poly::symbol(symbol)))
}

fn number(text: &str, span: &Span) -> Valued<Val> {
    let real = |value: f64, element| {
        Ok(Val::Real(Node {
            kind: NodeKind::Number(value),
            element,
            span: span.clone(),
        }))
    };
    match Literal::parse(text) {
        Some(Literal::Integer(value)) if value < 0 && type_of_number(text).0 => {
            Err(not_understood("a number below zero without a sign", span))
        }
        Some(Literal::Integer(value)) => Ok(Val::Int(Poly::constant(value))),
        Some(Literal::Float(value)) => real(f64::from(value), Element::F32),
        Some(Literal::Double(value)) => real(value, Element::F64),
        None => {
            let what = format!("the number `{text}` is not understood");
            Err(Diagnostic::error("stencil::number", what).label(span.clone(), "here"))
        }
    }
}

pub(super) fn not_affine(span: &Span) -> Diagnostic {
    Diagnostic::error(
        "stencil::affine",
        "this is not affine in the place of the point",
    )
    .label(span.clone(), "only sums, and products with sizes, are")
}

/// A number of another type than `int` beside whole numbers.
pub(super) fn not_an_int(span: &Span) -> Diagnostic {
    let what = "a number beside whole numbers that are data is not of type `int`";
    Diagnostic::error("stencil::integer", what)
        .label(span.clone(), "computed in another type")
        .help("declare it as `int`")
}

pub(super) fn not_understood(what: &str, span: &Span) -> Diagnostic {
    let message = format!("{what} is not understood in a stencil");
    Diagnostic::error("stencil::expression", message).label(span.clone(), "here")
}
