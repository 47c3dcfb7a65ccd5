//! Calls, casts, and the larger or smaller of two integers.

use super::integers::called;
use super::machine::Machine;
use super::value::{Node, NodeKind, Operand, Val, Valued, not_understood};
use crate::ir::{Element, Function};
use warpwright_cudac::affine::{Poly, Symbol, Test};
use warpwright_cudac::ast::{Expr, Ident, Type};
use warpwright_cudac::diag::{Diagnostic, Span};

impl Machine<'_> {
    pub(super) fn call(&mut self, name: &Ident, arguments: &[Expr], span: &Span) -> Valued<Val> {
        if let Some(problem) = forbidden(name) {
            return Err(problem);
        }
        let is_unsigned = arguments.iter().any(|a| self.is_unsigned(a));
        let mut values = Vec::new();
        for argument in arguments {
            values.push(self.operand(argument, ",")?);
        }
        // `T(4)`
        let ty = Type::Named(name.text.clone());
        if let [_] = values.as_slice()
            && self.data_element(&ty).is_some()
            && let Some(value) = values.pop()
        {
            return self.cast(&ty, value, span);
        }
        if self.file.functions.iter().any(|f| f.name.text == name.text) {
            return self.inlined(name, values, span);
        }
        let name_text = name.text.strip_prefix("std::").unwrap_or(&name.text);
        if let ("max" | "min", [Val::Int(a), Val::Int(b)]) = (name_text, values.as_slice()) {
            self.signed(is_unsigned, [a, b], span)?;
            return self.extreme(a, b, name_text == "max", span).map(Val::Int);
        }
        if let ("__ldg", [Val::Pointer(pointer)]) = (name_text, values.as_slice()) {
            let mut pointer = pointer.clone();
            pointer.taken.push(Poly::default());
            return self.load_or_row(pointer, span);
        }
        let known = Function::named(name_text);
        if known.is_some_and(|(function, _)| function.is_of_integers()) {
            return Err(not_understood("this call", span));
        }
        let is_int = values.iter().zip(arguments).all(|(v, a)| self.is_int(v, a));
        // Overloaded in C++ for floating-point numbers.
        let text = match name_text {
            "max" => "fmax",
            "min" => "fmin",
            "abs" => "fabs",
            other => other,
        };
        let mut operands = Vec::new();
        for value in values {
            operands.push(self.as_operand(value, span)?);
        }
        if let Some(node) = self.call_on_integers(name_text, &operands, span)? {
            return match is_int {
                true => Ok(Val::Real(node)),
                false => Err(super::value::not_an_int(span)),
            };
        }
        let types = operands.iter().map(|o| match o {
            Operand::Node(node) if !node.element.is_integer() => node.element,
            _ if text.ends_with('f') => Element::F32,
            _ => Element::F64,
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

    pub(super) fn cast(&mut self, ty: &Type, value: Val, span: &Span) -> Valued<Val> {
        match (ty.bare(), value) {
            (ty, Val::Int(value)) if self.is_integer(ty) => {
                // What an index is cast to holds it; a known number is cut off.
                self.retype(ty, &value);
                Ok(Val::Int(self.cut_off(ty, value)))
            }
            (Type::Pointer(to, _), Val::Pointer(pointer)) => self.pointer_cast(to, pointer, span),
            (ty, value) => {
                let Some(element) = self.data_element(ty) else {
                    return Err(not_understood("this cast", span));
                };
                match self.as_operand(value, span)? {
                    Operand::Integer(value) => Ok(Val::Real(Node {
                        kind: NodeKind::Number(element.wrapped(value)),
                        element,
                        span: span.clone(),
                    })),
                    Operand::Node(node) if node.element == element => Ok(Val::Real(node)),
                    Operand::Node(node) if node.element.is_integer() || element.is_integer() => {
                        let all = vec![Operand::Node(node)];
                        Ok(Val::Real(called(Function::To(element), all, element, span)))
                    }
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

    /// The larger or smaller of two integers, if that is known: a place is never negative.
    pub(super) fn extreme(
        &mut self,
        a: &Poly,
        b: &Poly,
        larger: bool,
        span: &Span,
    ) -> Valued<Poly> {
        let at_least = |x: &Poly, y: &Poly| {
            let difference = x.plus(y, -1);
            difference.is_some_and(|difference| difference.never_negative())
        };
        if at_least(a, b) {
            return Ok(if larger { a.clone() } else { b.clone() });
        }
        if at_least(b, a) {
            return Ok(if larger { b.clone() } else { a.clone() });
        }
        if larger {
            for (place, least) in [(a, b), (b, a)] {
                if let Some(found) = self.at_least(place, least, span) {
                    return Ok(found);
                }
            }
        }
        let op = if larger { ">=" } else { "<=" };
        let (x, y) = (self.placed(a.clone()), self.placed(b.clone()));
        for (x, y) in [(&x, &y), (&y, &x)] {
            if let Some(test) = Test::of(op, x, y, span)
                && let Some(value) = self.bent(&test, x, y)
            {
                return Ok(value);
            }
        }
        let edges = &self.trace.edges;
        let is_place = |value: &Poly| !value.points().is_empty() || edges.has(value);
        if !is_place(a) && !is_place(b) {
            let what = "which of the two is larger is not known when the kernel is compiled";
            return Err(
                Diagnostic::error("stencil::affine", what).label(span.clone(), "depends on sizes")
            );
        }
        let what = "this maximum or minimum is not understood";
        Err(Diagnostic::error("stencil::clamped", what)
            .label(
                span.clone(),
                "no index that is clamped to the first or last cell of a row",
            )
            .help("compute the points next to the border in an `else` or a kernel of their own"))
    }

    /// `max(blockIdx.x * blockDim.x + c, first)`, which becomes the place of a point once
    /// `threadIdx.x` is added: the places are all those from `first` on, as without the maximum and
    /// with `first` as a lower bound. Block b, whose points begin below `first` and end behind it,
    /// computes `first + t`: every place i >= first, of which t = i - first is less than the size of
    /// the block. Some places are computed by the next block again.
    fn at_least(&mut self, place: &Poly, least: &Poly, span: &Span) -> Option<Poly> {
        let least = least.as_constant()?;
        let (block, add) = (
            place.plus(&Poly::constant(place.constant_term()), -1)?,
            place,
        );
        let axis = (0..3).find(|axis| {
            let index = Poly::symbol(Symbol::BlockIdx(*axis));
            let size = Poly::symbol(Symbol::BlockDim(*axis));
            index.times(&size).as_ref() == Some(&block)
        })?;
        let low = least.checked_sub(add.constant_term())?;
        let bounds = self.domain.entry(Symbol::Global(axis)).or_default();
        bounds.low = bounds.low.max(low);
        self.trace.repeated.get_or_insert_with(|| span.clone());
        Some(place.clone())
    }
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
