//! Small functions of the same file, put in the place of their calls: those that are one `return`,
//! after values with names.

use super::integers::converted;
use super::machine::{Action, Machine, Var};
use super::value::{Cond, Node, NodeKind, Operand, Val, not_understood};
use crate::ir::Element;
use warpwright_cudac::affine::Test;
use warpwright_cudac::ast::{
    Block, Declaration, Function, Ident, Init, Parameter, Stmt, StmtKind, Type,
};
use warpwright_cudac::diag::{Diagnostic, Span};
use warpwright_cudac::names::Scopes;

/// Most calls inside calls.
const DEEPEST: usize = 16;

impl Machine<'_> {
    /// The value of a call of a function of the file.
    pub(super) fn inlined(
        &mut self,
        name: &Ident,
        arguments: Vec<Val>,
        span: &Span,
    ) -> Result<Val, Diagnostic> {
        let function = self.callee(name)?;
        if function.parameters.len() != arguments.len() {
            let (wanted, given) = (function.parameters.len(), arguments.len());
            let what = format!("`{}` takes {wanted} arguments, not {given}", name.text);
            return Err(Diagnostic::error("stencil::call", what)
                .label(name.span.clone(), "called here")
                .label(function.name.span.clone(), "defined here"));
        }
        let mut scope = Scopes::default();
        for (parameter, argument) in function.parameters.iter().zip(arguments) {
            let var = self.argument(parameter, argument, span)?;
            scope.declare(&parameter.name.text, var);
        }
        // The function sees its arguments, and nothing of its caller.
        let caller = std::mem::replace(&mut self.scopes, scope);
        let signs = self.unsigned.clone();
        for parameter in &function.parameters {
            let is_unsigned = self.unsigned_type(&parameter.ty);
            self.note_sign(&parameter.name.text, is_unsigned);
        }
        self.calls += 1;
        let value = self.returned(&function, &function.body.statements);
        self.calls -= 1;
        self.scopes = caller;
        self.unsigned = signs;
        self.result(&function.result, value?, span)
    }

    /// The function that a name means.
    fn callee(&self, name: &Ident) -> Result<Function, Diagnostic> {
        let named = self.file.functions.iter();
        let mut named = named.filter(|f| f.name.text == name.text);
        let (first, second) = (named.next(), named.next());
        let refuse = |what: &str, at: &Span| {
            let what = format!("the function `{}` {what}", name.text);
            Diagnostic::error("stencil::call", what)
                .label(name.span.clone(), "called here")
                .label(at.clone(), "defined here")
        };
        let Some(header) = first else {
            return Err(not_understood("this call", &name.span));
        };
        let at = &header.name.span;
        if let Some(second) = second {
            return Err(refuse("is overloaded", &second.name.span));
        }
        if header.nested {
            return Err(refuse("is a template or a member", at));
        }
        if self.calls >= DEEPEST {
            return Err(refuse("calls itself, or is nested too deep", at));
        }
        let function = self.file.kernel(header)?;
        if function.parameters.iter().any(|p| p.is_reference) {
            return Err(refuse("takes a reference", at));
        }
        Ok(function)
    }

    /// What a parameter stands for.
    fn argument(
        &mut self,
        parameter: &Parameter,
        argument: Val,
        span: &Span,
    ) -> Result<Var, Diagnostic> {
        let ty = self.resolved(&parameter.ty);
        match (&ty, argument) {
            (ty, Val::Int(value)) if self.is_integer(ty) => {
                self.retype(ty, &value);
                Ok(Var::Int(value))
            }
            (Type::Pointer(to, _), Val::Pointer(pointer)) => {
                match self.pointer_cast(to, pointer, span)? {
                    Val::Pointer(pointer) => Ok(Var::Pointer(pointer)),
                    _ => Err(not_understood("this argument", span)),
                }
            }
            (ty, value) => {
                let Some(element) = self.data_element(ty) else {
                    return Err(not_understood("an argument of this type", span));
                };
                let value = self.as_operand(value, span)?;
                Ok(Var::Leaf(self.leaf(&parameter.name, value, element, span)))
            }
        }
    }

    /// A value that may be written down several times: a leaf, or a variable that holds it.
    fn leaf(&mut self, name: &Ident, value: Operand, element: Element, span: &Span) -> Node {
        let leaf = |kind| Node {
            kind,
            element,
            span: span.clone(),
        };
        match value {
            Operand::Integer(value) => leaf(NodeKind::Number(value as f64)),
            Operand::Node(node)
                if node.element == element
                    && matches!(
                        node.kind,
                        NodeKind::Number(_)
                            | NodeKind::Scalar(_)
                            | NodeKind::Local(_)
                            | NodeKind::Load(_)
                    ) =>
            {
                node
            }
            value => {
                // No variable of the source has a dot in its name.
                let key = format!("{}.{}", name.text, self.trace.actions.len());
                let action = Action::Declare(key.clone(), element, Some(value), span.clone());
                self.act(action);
                leaf(NodeKind::Local(key))
            }
        }
    }

    /// Executes the body, from one statement on.
    fn returned(&mut self, function: &Function, body: &[Stmt]) -> Result<Val, Diagnostic> {
        let strange = |at: &Stmt| {
            let what = format!(
                "the function `{}` is more than a `return`",
                function.name.text
            );
            Diagnostic::error("stencil::call", what)
                .label(at.span.clone(), "this statement")
                .help("before it, only values may get names: `double a = …;`")
        };
        for (at, statement) in body.iter().enumerate() {
            match &statement.kind {
                StmtKind::Declare(declaration) => {
                    let plain = declaration.variables.iter().all(|variable| {
                        let ty = self.resolved(&variable.ty);
                        // Whether it is a value shows once it has one.
                        self.is_integer(&ty) || matches!(ty, Type::Pointer(..))
                    });
                    if plain {
                        self.declare(declaration, &statement.span)?;
                    } else if !self.values_with_names(declaration)? {
                        return Err(strange(statement));
                    }
                }
                StmtKind::Return(Some(value)) => return self.value(value),
                StmtKind::If(cond, then, otherwise) => {
                    let returns = |block: &Block| {
                        let last = block.statements.last().map(|s| &s.kind);
                        matches!(last, Some(StmtKind::Return(Some(_))))
                    };
                    if !returns(then) && self.sets_indices(then, otherwise.as_ref()) {
                        self.set_indices(cond, then, otherwise.as_ref(), &statement.span)?;
                        continue;
                    }
                    if !returns(then) {
                        return Err(strange(statement));
                    }
                    let rest = match otherwise {
                        None => &body[at + 1..],
                        Some(other) if at + 1 == body.len() => &other.statements,
                        Some(_) => return Err(strange(statement)),
                    };
                    let cond = self.general(cond)?;
                    match &cond {
                        Cond::Place(Test::Known(true)) => {
                            return self.returned(function, &then.statements);
                        }
                        Cond::Place(Test::Known(false)) => return self.returned(function, rest),
                        _ => {}
                    }
                    let scopes = self.scopes.clone();
                    let (a, b) = self.either_side(
                        &cond,
                        |machine| machine.returned(function, &then.statements),
                        |machine| {
                            machine.scopes = scopes;
                            machine.returned(function, rest)
                        },
                    )?;
                    return self.by(&cond, a, b, &statement.span);
                }
                _ => return Err(strange(statement)),
            }
        }
        Err(not_understood(
            "a function without a value",
            &function.name.span,
        ))
    }

    /// `double a = …, b = …;`: names for values that nothing changes. Says whether it is that.
    fn values_with_names(&mut self, declaration: &Declaration) -> Result<bool, Diagnostic> {
        for variable in &declaration.variables {
            let ty = self.resolved(&variable.ty);
            let (Some(element), Some(Init::Value(value))) =
                (self.data_element(&ty), &variable.init)
            else {
                return Ok(false);
            };
            let span = value.span.clone();
            let value = {
                let value = self.value(value)?;
                self.as_operand(value, &span)
            }?;
            let leaf = self.leaf(&variable.name, value, element, &span);
            self.scopes.declare(&variable.name.text, Var::Leaf(leaf));
        }
        Ok(true)
    }

    /// The value in the function's own type.
    fn result(&mut self, ty: &Type, value: Val, span: &Span) -> Result<Val, Diagnostic> {
        match (self.data_element(ty), value) {
            (_, Val::Int(value)) if self.is_integer(ty) => {
                self.retype(ty, &value);
                Ok(Val::Int(value))
            }
            (Some(element), Val::Real(node))
                if element.is_integer() || node.element.is_integer() =>
            {
                match converted(Operand::Node(node), element, span) {
                    Operand::Node(node) => Ok(Val::Real(node)),
                    Operand::Integer(_) => Err(not_understood("this value", span)),
                }
            }
            (Some(element), Val::Real(node)) if node.element == element => Ok(Val::Real(node)),
            (Some(element), Val::Int(value)) => match self.as_operand(Val::Int(value), span)? {
                Operand::Integer(value) => Ok(Val::Real(Node {
                    kind: NodeKind::Number(value as f64),
                    element,
                    span: span.clone(),
                })),
                Operand::Node(node) => Ok(Val::Real(node)),
            },
            _ => Err(not_understood(
                "a function that changes the type of its value",
                span,
            )),
        }
    }
}
