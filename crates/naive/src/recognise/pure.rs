//! Functions of the file that compute with their arguments alone: local variables, conditions, loops, calls of others.

use warpwright_cudac::ast::{
    Block, Expr, ExprKind, Function, Init, Parameter, Stmt, StmtKind, Type,
};
use warpwright_cudac::macros::Expanded;
use warpwright_cudac::names::among;
use warpwright_cudac::{File, TypeNames};

use super::values::{NUMBERS, is_known};

/// Most functions that call each other.
const DEEPEST: usize = 8;

/// Does a function of the file compute with its arguments and numbers alone, and leave nothing behind?
pub(super) fn is_pure(file: &File, types: &TypeNames, name: &str) -> bool {
    Pure { file, types }.function(name, DEEPEST)
}

/// Is a parameter of a function of the file passed by reference that is not constant?
pub(super) fn is_reference(file: &File, name: &str, number: usize) -> bool {
    let found = file.functions.iter().find(|f| f.name.text == name);
    let function = found.and_then(|header| file.kernel(header).ok());
    let parameter = function.and_then(|f| f.parameters.into_iter().nth(number));
    parameter.is_some_and(|p| p.is_reference && !matches!(p.ty, Type::Const(_)))
}

struct Pure<'f> {
    file: &'f File,
    types: &'f TypeNames,
}

impl Pure<'_> {
    fn function(&self, name: &str, depth: usize) -> bool {
        let mut found = self.file.functions.iter().filter(|f| f.name.text == name);
        let (Some(header), None, 1..) = (found.next(), found.next(), depth) else {
            return false;
        };
        let Ok(function) = self.file.kernel(header) else {
            return false;
        };
        let by_value = |p: &Parameter| matches!(p.ty.bare(), Type::Named(_));
        let references = function.parameters.iter().filter(|p| p.is_reference);
        let fixed: Vec<&str> = references.map(|p| p.name.text.as_str()).collect();
        let mut own: Vec<String> = function
            .parameters
            .iter()
            .map(|p| p.name.text.clone())
            .collect();
        declared(&function.body, &mut own);
        let inside = Inside {
            of: self,
            function: &function,
            own: &own,
            fixed: &fixed,
            depth,
        };
        // A name of its own that is a variable of the file as well could be either.
        let clear = |name: &String| self.file.global(name, function.span.end).is_none();
        header.template.is_none()
            && function.head.contains("__device__")
            && function.parameters.iter().all(by_value)
            && own.iter().all(clear)
            && inside.block(&function.body)
    }
}

/// The variable of which a place is a part.
fn root(target: &Expr) -> Option<&str> {
    match &target.bare().kind {
        ExprKind::Name(name) => Some(name),
        ExprKind::Member(base, _) | ExprKind::Index(base, _) => root(base),
        _ => None,
    }
}

/// Names of the variables that a block declares.
fn declared(block: &Block, own: &mut Vec<String>) {
    block.walk(&mut |statement| {
        let declaring = match &statement.kind {
            StmtKind::For(parts) => parts.init.as_ref(),
            _ => Some(statement),
        };
        if let Some(StmtKind::Declare(declaration)) = declaring.map(|s| &s.kind) {
            own.extend(declaration.variables.iter().map(|v| v.name.text.clone()));
        }
    });
}

struct Inside<'p> {
    of: &'p Pure<'p>,
    function: &'p Function,
    own: &'p [String],
    /// Variables of the caller.
    fixed: &'p [&'p str],
    depth: usize,
}

impl Inside<'_> {
    fn block(&self, block: &Block) -> bool {
        block.statements.iter().all(|s| self.statement(s))
    }

    fn statement(&self, statement: &Stmt) -> bool {
        warpwright_cudac::with_stack(|| match &statement.kind {
            StmtKind::Return(value) => value.as_ref().is_none_or(|v| self.value(v)),
            StmtKind::Declare(declaration) => {
                let by_value = |ty: &Type| match ty.bare() {
                    Type::Named(_) => true,
                    Type::Array(of, _) => matches!(of.bare(), Type::Named(_)),
                    _ => false,
                };
                declaration.storage.is_empty()
                    && declaration
                        .variables
                        .iter()
                        .all(|v| by_value(&v.ty) && v.init.as_ref().is_none_or(|i| self.init(i)))
            }
            StmtKind::Expr(expr) => self.effect(expr),
            StmtKind::If(cond, then, otherwise) => {
                self.value(cond)
                    && self.block(then)
                    && otherwise.as_ref().is_none_or(|b| self.block(b))
            }
            StmtKind::For(parts) => {
                parts.init.as_ref().is_none_or(|s| self.statement(s))
                    && parts.cond.as_ref().is_none_or(|c| self.value(c))
                    && parts.step.as_ref().is_none_or(|s| self.effect(s))
                    && self.block(&parts.body)
            }
            StmtKind::While(cond, body) => self.value(cond) && self.block(body),
            StmtKind::Block(body) => self.block(body),
            StmtKind::Directive(text) => text.trim_start().starts_with("#pragma unroll"),
            StmtKind::Plain(text) => matches!(text.trim(), ";" | "break;" | "continue;"),
        })
    }

    fn init(&self, init: &Init) -> bool {
        match init {
            Init::Value(value) => self.value(value),
            Init::List(all, _) => all.iter().all(|i| self.init(i)),
        }
    }

    /// A change of a variable of its own.
    fn effect(&self, expr: &Expr) -> bool {
        match &expr.bare().kind {
            ExprKind::Assign(_, target, value) => self.changes(target) && self.value(value),
            ExprKind::Update(_, _, target) => self.changes(target),
            _ => false,
        }
    }

    fn changes(&self, target: &Expr) -> bool {
        let is_fixed = root(target).is_none_or(|name| self.fixed.contains(&name));
        !is_fixed && self.place(target)
    }

    fn place(&self, target: &Expr) -> bool {
        match &target.bare().kind {
            ExprKind::Name(name) => self.own.contains(name),
            ExprKind::Member(base, _) => self.place(base),
            ExprKind::Index(base, index) => self.place(base) && self.value(index),
            _ => false,
        }
    }

    fn value(&self, expr: &Expr) -> bool {
        warpwright_cudac::with_stack(|| match &expr.kind {
            ExprKind::Number(_) | ExprKind::Bool(_) => true,
            ExprKind::Name(name) => self.own.contains(name) || self.number(name, expr),
            ExprKind::Paren(a) | ExprKind::Cast(_, _, a) | ExprKind::Member(a, _) => self.value(a),
            ExprKind::Unary(op, a) => op != "*" && op != "&" && self.value(a),
            ExprKind::Binary(_, a, b) => self.value(a) && self.value(b),
            ExprKind::Index(..) => self.place(expr),
            ExprKind::Conditional(a, b, c) => [a, b, c].iter().all(|e| self.value(e)),
            ExprKind::Call(name, all) => {
                let known = is_known(&name.text) || self.of.function(&name.text, self.depth - 1);
                known && all.iter().all(|e| self.value(e))
            }
            ExprKind::Update(..) | ExprKind::Assign(..) | ExprKind::Comma(..) => false,
        })
    }

    /// Is a name from outside a number: of the headers, a macro, a constant of the file?
    fn number(&self, name: &str, expr: &Expr) -> bool {
        let file = self.of.file;
        match file.expand(expr.bare()) {
            Expanded::Expr(meaning) => {
                let same = matches!(&meaning.kind, ExprKind::Name(other) if other == name);
                return !same && self.value(&meaning);
            }
            Expanded::Problem(_) => return false,
            Expanded::NoMacro => {}
        }
        match file.global(name, self.function.span.start) {
            None => among(NUMBERS, name),
            Some(found) => {
                let scalar = file.scalar(&found.ty, self.of.types);
                scalar.is_some() && found.is_fixed() && found.init.is_some()
            }
        }
    }
}
