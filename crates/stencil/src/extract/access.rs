//! Pointers, subscripts, and the elements that they mean.

use super::machine::{Machine, RawAccess, Var};
use super::value::{Base, Node, NodeKind, Pointer, Val, Valued, not_understood};
use crate::ir::Element;
use warpwright_cudac::affine::Poly;
use warpwright_cudac::ast::{Expr, ExprKind, Type};
use warpwright_cudac::diag::{Diagnostic, Span};
use warpwright_cudac::print;

impl Machine<'_> {
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
        let index_value = self.placed(index_value);
        pointer.taken.push(index_value);
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

    pub(super) fn load_or_row(&mut self, pointer: Pointer, span: &Span) -> Valued<Val> {
        if pointer.taken.len() <= pointer.lengths.len() {
            return Ok(Val::Pointer(pointer));
        }
        match pointer.base {
            Base::Array(_) => Ok(Val::Real(self.load(pointer, span))),
            Base::Tile(tile) => self.load_tile(tile, &pointer, span),
        }
    }

    /// A load of the element that a complete pointer means.
    pub(super) fn load(&mut self, pointer: Pointer, span: &Span) -> Node {
        let element = self.element_of(pointer.base);
        let access = self.access(pointer, span);
        Node {
            kind: NodeKind::Load(access),
            element,
            span: span.clone(),
        }
    }

    /// The type of what a pointer points to.
    pub(super) fn element_of(&self, base: Base) -> Element {
        match base {
            Base::Array(array) => self.trace.arrays[array].element,
            Base::Tile(tile) => self.tiles[tile].element,
        }
    }

    /// An element of a thread's own array, if it is one: a constant, or a variable.
    pub(super) fn own_array(&mut self, expr: &Expr) -> Valued<Option<Val>> {
        let span = &expr.span;
        let Some((name, indices)) = self.own_element(expr)? else {
            return Ok(None);
        };
        match self.variable(&name).cloned() {
            Some(Var::Table(element, values)) => {
                let at = indices
                    .first()
                    .and_then(|at| values.get(usize::try_from(*at).ok()?));
                let Some(value) = at else {
                    return Err(self.outside(&name, values.len(), span));
                };
                Ok(Some(Val::Real(Node {
                    kind: NodeKind::Number(*value),
                    element,
                    span: span.clone(),
                })))
            }
            Some(Var::Integers(values)) => {
                let at = indices.first().and_then(|at| usize::try_from(*at).ok());
                match at.and_then(|at| values.get(at)) {
                    Some(value) => Ok(Some(Val::Int(Poly::constant(*value)))),
                    None => Err(self.outside(&name, values.len(), span)),
                }
            }
            Some(Var::Cells(lengths)) => {
                let key = self.cell(&name, &lengths, &indices, span)?;
                self.value(&Expr {
                    kind: ExprKind::Name(key),
                    span: span.clone(),
                })
                .map(Some)
            }
            _ => Ok(None),
        }
    }

    /// Is an expression an element of a thread's own array?
    pub(super) fn is_own(&self, expr: &Expr) -> bool {
        let mut base = expr.bare();
        while let ExprKind::Index(inner, _) = &base.kind {
            base = inner.bare();
        }
        let own = |name: &str| {
            matches!(
                self.variable(name),
                Some(Var::Table(..) | Var::Integers(_) | Var::Cells(_))
            )
        };
        matches!(&base.kind, ExprKind::Name(name) if own(name))
    }

    /// The name of a thread's own array with the subscripts behind it, which are numbers.
    pub(super) fn own_element(&mut self, expr: &Expr) -> Valued<Option<(String, Vec<i64>)>> {
        let mut subscripts = Vec::new();
        let mut base = expr.bare();
        while let ExprKind::Index(inner, index) = &base.kind {
            subscripts.push(&**index);
            base = inner.bare();
        }
        let ExprKind::Name(name) = &base.kind else {
            return Ok(None);
        };
        if !matches!(
            self.variable(name),
            Some(Var::Table(..) | Var::Integers(_) | Var::Cells(_))
        ) {
            // An array of constants of the file.
            if self.variable(name).is_some() || !self.known_table(name, &base.span)? {
                return Ok(None);
            }
        }
        let mut indices = Vec::new();
        for index in subscripts.into_iter().rev() {
            let known = match self.operand(index, "[]")? {
                Val::Int(at) => at.as_constant(),
                _ => None,
            };
            let Some(known) = known else {
                let what = format!("which element of `{name}` is not known");
                return Err(Diagnostic::error("stencil::local-array", what)
                    .label(index.span.clone(), "not a number in its bounds"));
            };
            indices.push(known);
        }
        Ok(Some((name.clone(), indices)))
    }

    /// The variable that is an element of a thread's own array. No variable of the source has a dot
    /// in its name.
    pub(super) fn cell(
        &self,
        name: &str,
        lengths: &[i64],
        indices: &[i64],
        span: &Span,
    ) -> Valued<String> {
        let inside = |(at, length): (&i64, &i64)| (0..*length).contains(at);
        if lengths.len() != indices.len() || !indices.iter().zip(lengths).all(inside) {
            let cells = lengths.iter().product::<i64>();
            return Err(self.outside(name, usize::try_from(cells).unwrap_or(0), span));
        }
        let numbers: Vec<String> = indices.iter().map(i64::to_string).collect();
        Ok(format!("{name}.{}", numbers.join(".")))
    }

    fn outside(&self, name: &str, count: usize, span: &Span) -> Diagnostic {
        let what = format!("which of the {count} values of `{name}` is not known");
        Diagnostic::error("stencil::local-array", what)
            .label(span.clone(), "not a number in its bounds")
    }

    /// Notes an access; its number.
    pub(super) fn access(&mut self, pointer: Pointer, span: &Span) -> usize {
        let Pointer {
            base,
            offset,
            lengths,
            taken,
        } = pointer;
        let (Base::Array(array) | Base::Tile(array)) = base;
        self.trace.accesses.push(RawAccess {
            array,
            offset,
            lengths,
            subscripts: taken,
            edges: Vec::new(),
            span: span.clone(),
        });
        self.trace.accesses.len() - 1
    }

    /// `(double (*)[M][N])p`
    pub(super) fn pointer_cast(
        &mut self,
        to: &Type,
        mut pointer: Pointer,
        span: &Span,
    ) -> Valued<Val> {
        let (element, lengths) = self.row_type(to, span)?;
        if element != Some(self.element_of(pointer.base)) {
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
        Ok((self.data_element(ty), lengths))
    }
}
