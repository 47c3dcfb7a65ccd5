//! Names of the file: constants, and arrays and numbers in constant or global memory.
//!
//! A constant is evaluated where it is defined, in its own type. What lives in memory stays there:
//! its values are not known, even if it has some in the file, because the host may copy others to it.

use super::machine::{Machine, Var};
use super::statements::known;
use super::value::{Node, NodeKind, Pointer, Val, Valued, not_understood, operand};
use warpwright_cudac::affine::Poly;
use warpwright_cudac::ast::{Init, Type};
use warpwright_cudac::definitions::Global;
use warpwright_cudac::diag::{Diagnostic, Span};

impl Machine<'_> {
    /// The value of a name that the function does not define.
    pub(super) fn global(&mut self, name: &str, span: &Span) -> Valued<Val> {
        let Some(found) = self.file.global(name, span.start) else {
            return Err(self.unknown_name(name, span));
        };
        let found = found.clone();
        if self.evaluating.iter().any(|n| n == name) {
            return Err(not_understood("a constant that means itself", span));
        }
        // A definition sees the file, not the function that uses it.
        let function = std::mem::take(&mut self.scopes);
        self.evaluating.push(name.to_owned());
        let var = self.global_var(&found, span);
        self.evaluating.pop();
        self.scopes = function;
        self.globals.insert(name.to_owned(), var?);
        self.named(name, span)
    }

    /// Is a name that of an array of constants of the file?
    pub(super) fn known_table(&mut self, name: &str, span: &Span) -> Valued<bool> {
        let is_table = self.file.global(name, span.start).is_some_and(|found| {
            let is_array = matches!(found.ty, Type::Array(..));
            is_array && found.is_fixed() && !in_memory(found)
        });
        if is_table {
            // Its name alone has no value, but it is known from now on.
            let _ = self.global(name, span);
        }
        Ok(matches!(
            self.variable(name),
            Some(Var::Table(..) | Var::Integers(_))
        ))
    }

    fn global_var(&mut self, found: &Global, span: &Span) -> Valued<Var> {
        let name = &found.name.text;
        if in_memory(found) {
            return self.in_memory(found, span);
        }
        if !found.is_fixed() {
            let what = format!("`{name}` is a variable of the file, not a constant");
            return Err(Diagnostic::error("stencil::name", what)
                .label(span.clone(), "used here")
                .label(found.name.span.clone(), "defined here")
                .help("pass it as an argument, or make it `constexpr`"));
        }
        let unknown = || {
            let what = format!("the value of the constant `{name}` is not known");
            Diagnostic::error("stencil::name", what)
                .label(found.name.span.clone(), "defined here")
                .label(span.clone(), "used here")
        };
        let ty = self.resolved(&found.ty);
        if let Type::Array(of, length) = &ty {
            let Some(Init::List(values, at)) = &found.init else {
                return Err(unknown());
            };
            if self.is_integer(of) {
                let length = match length {
                    Some(length) => match self.operand(length, "[]")? {
                        Val::Int(length) => length.as_constant().ok_or_else(unknown)?,
                        _ => return Err(unknown()),
                    },
                    None => i64::try_from(values.len()).unwrap_or(i64::MAX),
                };
                self.note_type(name, of);
                let values = self.integers(values, length, at)?;
                return Ok(self.list_of(of, values));
            }
            let element = self.element(of).ok_or_else(unknown)?;
            let values = self.list(values, at)?;
            let numbers: Option<Vec<f64>> = values.iter().map(known).collect();
            let mut numbers = numbers.ok_or_else(unknown)?;
            if let Some(length) = length {
                let Val::Int(length) = self.operand(length, "[]")? else {
                    return Err(unknown());
                };
                let length = length.as_constant().and_then(|n| usize::try_from(n).ok());
                // What a list leaves out is zero.
                numbers.resize(length.filter(|n| *n <= 4096).ok_or_else(unknown)?, 0.0);
            }
            let numbers = numbers.into_iter().map(|n| element.round(n)).collect();
            return Ok(Var::Table(element, numbers));
        }
        let Some(Init::Value(value)) = &found.init else {
            return Err(unknown());
        };
        let value = self.value(value)?;
        if self.is_integer(&ty) {
            self.note_type(name, &ty);
            return match value {
                Val::Int(value) if value.as_constant().is_some() => {
                    Ok(Var::Int(self.cut_off(&ty, value)))
                }
                _ => Err(unknown()),
            };
        }
        let auto = matches!(&ty, Type::Named(name) if name == "auto");
        let element = match (self.element(&ty), &value) {
            (Some(element), _) => element,
            (None, Val::Real(node)) if auto => node.element,
            (None, Val::Int(value)) if auto && value.as_constant().is_some() => {
                return Ok(Var::Int(value.clone()));
            }
            _ => return Err(unknown()),
        };
        let number = known(&operand(value, span)?).ok_or_else(unknown)?;
        Ok(Var::Leaf(Node {
            kind: NodeKind::Number(element.round(number)),
            element,
            span: span.clone(),
        }))
    }

    /// `__constant__ float w[9];`: its elements are read where they stand; a number is the element of an array of one.
    fn in_memory(&mut self, found: &Global, span: &Span) -> Valued<Var> {
        let name = &found.name.text;
        let mut lengths = Vec::new();
        let ty = self.resolved(&found.ty);
        let mut element = &ty;
        while let Type::Array(of, length) = element {
            let length = match length {
                Some(length) => match self.operand(length, "[]")? {
                    Val::Int(length) => length.as_constant(),
                    _ => None,
                },
                None => None,
            };
            let length = length.filter(|length| *length > 0);
            lengths.push(length.ok_or_else(|| not_understood("an array of this length", span))?);
            element = of.bare();
        }
        let what = format!("`{name}` is in memory, but neither `float` nor `double`");
        let wrong = || {
            Diagnostic::error("stencil::name", what.clone())
                .label(span.clone(), "used here")
                .label(found.name.span.clone(), "defined here")
                .help("pass it as an argument")
        };
        let element = self.element(element).ok_or_else(wrong)?;
        if lengths.is_empty() {
            let array = self.array(name, element, Some(lengths));
            let mut pointer = Pointer::new(array, Vec::new());
            pointer.taken.push(Poly::constant(0));
            return Ok(Var::Leaf(self.load(pointer, span)));
        }
        let rows = lengths.iter().skip(1).map(|length| Poly::constant(*length));
        let rows = rows.collect();
        let array = self.array(name, element, Some(lengths));
        Ok(Var::Pointer(Pointer::new(array, rows)))
    }

    fn unknown_name(&self, name: &str, span: &Span) -> Diagnostic {
        let defined = self.file.globals.iter().find(|g| g.name.text == name);
        if let Some(defined) = defined {
            let what = format!("which definition of `{name}` holds is not known");
            let problem = Diagnostic::error("stencil::name", what)
                .label(span.clone(), "used here")
                .label(defined.name.span.clone(), "one of them");
            return match self.file.is_preprocessed {
                true => problem,
                false => problem.help("nvcc is needed to decide what `#if` takes"),
            };
        }
        let what = format!("`{name}` is not known");
        let problem = Diagnostic::error("stencil::name", what);
        let problem = problem.label(span.clone(), "no variable, argument or macro of this file");
        match self.file.is_preprocessed {
            true => problem,
            false => problem.help("headers are read where nvcc is found"),
        }
    }
}

/// Is it read from memory, where others may have written it?
fn in_memory(found: &Global) -> bool {
    let words = ["__constant__", "__device__", "__managed__"];
    words.into_iter().any(|word| found.is(word)) && !found.is("constexpr")
}
