//! Goal: functions of the file without a result are executed where they are called (`compute_velocity(density, momentum,
//! velocity);`).
//!
//! Requires: one definition, no template, no call of itself. A parameter by reference is the variable that is passed;
//! what a function may change so is a variable of the thread, and no polynomial.

use std::collections::BTreeMap;

use warpwright_cudac::ast::{Block, Expr, ExprKind, Function, Parameter, StmtKind, Type};
use warpwright_cudac::def_use::DefUse;
use warpwright_cudac::diag::Span;
use warpwright_cudac::names::Scopes;

use super::jumps::{self, Flags};
use super::{Done, Machine, Var, refused};
use crate::ir::Statement;

/// Most functions within each other.
const DEEPEST: usize = 8;

impl Machine<'_> {
    /// The function of a name, if a call of it can be executed where it stands.
    fn called(&self, name: &str) -> Option<Function> {
        let mut found = self.file.functions.iter().filter(|f| f.name.text == name);
        let (Some(header), None) = (found.next(), found.next()) else {
            return None;
        };
        let function = self.file.kernel(header).ok()?;
        let is_void = matches!(&function.result, Type::Named(name) if name == "void");
        let fits = header.template.is_none() && !header.is_member && is_void;
        (fits && function.head.contains("__device__")).then_some(function)
    }

    /// Notes the variables that functions of the file may change.
    pub(super) fn begin_referred(&mut self, body: &Block) {
        let mut calls = Vec::new();
        calls_of(body, &mut calls);
        let mut known: BTreeMap<&str, Option<Function>> = BTreeMap::new();
        for (name, arguments) in calls {
            let function = known.entry(name).or_insert_with(|| self.called(name));
            let parameters = function.iter().flat_map(|f| &f.parameters);
            for (parameter, argument) in parameters.zip(arguments) {
                if let (true, ExprKind::Name(name)) =
                    (parameter.is_reference, &argument.bare().kind)
                {
                    self.referred.insert(name.clone());
                }
            }
        }
    }

    /// Executes a call of a function of the file; false if it is none that can be.
    pub(super) fn inline(
        &mut self,
        name: &str,
        arguments: &[Expr],
        at: &Span,
        out: &mut Vec<Statement>,
    ) -> Done<bool> {
        let Some(function) = self.called(name) else {
            return Ok(false);
        };
        if function.parameters.len() != arguments.len() || self.inlined >= DEEPEST {
            return Ok(false);
        }
        let uses = DefUse::of(&function.body);
        let mut own = Scopes::default();
        for (parameter, argument) in function.parameters.iter().zip(arguments) {
            let meaning = self.bound(parameter, argument, &uses, out)?;
            own.declare(&parameter.name.text, meaning);
        }
        let mut inside = self.clone();
        inside.scopes = own;
        inside.uses = uses;
        inside.inlined += 1;
        for names in [&mut inside.referred, &mut inside.escaping] {
            names.clear();
        }
        inside.counting.clear();
        inside.straight.clear();
        inside.begin_function(&function.body);
        let mut statements = function.body.statements.clone();
        if statements.iter().any(jumps::returns) {
            let stem = inside.flag_stem();
            statements = Flags::of_function(&stem).returned(&statements, at);
        }
        let body = Block {
            statements,
            ..function.body.clone()
        };
        let done = inside.block(&body, false);
        // What it found out is kept; what its names mean is not.
        std::mem::swap(&mut inside.scopes, &mut self.scopes);
        std::mem::swap(&mut inside.uses, &mut self.uses);
        std::mem::swap(&mut inside.counting, &mut self.counting);
        std::mem::swap(&mut inside.straight, &mut self.straight);
        std::mem::swap(&mut inside.referred, &mut self.referred);
        std::mem::swap(&mut inside.escaping, &mut self.escaping);
        inside.inlined -= 1;
        *self = inside;
        out.extend(done?);
        Ok(true)
    }

    /// What a parameter is in a call.
    fn bound(
        &mut self,
        parameter: &Parameter,
        argument: &Expr,
        uses: &DefUse,
        out: &mut Vec<Statement>,
    ) -> Done<Var> {
        let at = &argument.span;
        let ty = self.file.resolved(&parameter.ty, &self.types);
        let changed = uses
            .sites(&parameter.name.text)
            .is_some_and(|s| !s.assigned.is_empty());
        if !parameter.is_reference {
            let value = Some(self.value(argument)?);
            return self.meaning(&parameter.name, &ty, value, changed, out);
        }
        let same = |m: &Self, variable: usize| {
            let text = warpwright_cudac::print::declared(ty.bare(), "");
            m.kernel.variables[variable].ty.trim_start_matches("const ") == text.trim()
        };
        // A call that a macro stands for was not seen before.
        if let ExprKind::Name(name) = &argument.bare().kind
            && self.referred.contains(name)
            && let Some(Var::Value(variable)) = self.scopes.get(name)
            && same(self, *variable)
        {
            let variable = *variable;
            if variable < self.grid.before {
                let what = "a value that is carried around a loop over the grid";
                return Err(refused(what, at));
            }
            // It may be read before it is changed.
            self.read.insert(variable);
            return Ok(Var::Value(variable));
        }
        match &ty {
            Type::Const(_) => {
                let value = Some(self.value(argument)?);
                self.meaning(&parameter.name, &ty, value, false, out)
            }
            _ => Err(refused("an argument that a function may change", at)),
        }
    }
}

/// Calls that are statements: the functions, and what they are passed.
fn calls_of<'b>(block: &'b Block, found: &mut Vec<(&'b str, &'b [Expr])>) {
    block.walk(&mut |statement| {
        if let StmtKind::Expr(expr) = &statement.kind
            && let ExprKind::Call(name, arguments) = &expr.bare().kind
        {
            found.push((&name.text, arguments));
        }
    });
}
