//! Where a function defines its variables, and where it uses them.
//!
//! By name: a name that is declared twice in one function is one variable here, with both
//! declarations. What is assigned through a pointer or a subscript is no variable.

use std::collections::BTreeMap;

use crate::ast::{Block, Declaration, Expr, ExprKind, For, Init, Stmt, StmtKind, Type};
use crate::diag::Span;

/// All variables of a piece of code.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DefUse(BTreeMap<String, Sites>);

/// Where a variable is declared, assigned and read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sites {
    /// Its declarations.
    pub declared: Vec<Span>,
    /// Assignments, `+=` and `++` included, but not the first values of declarations.
    pub assigned: Vec<Span>,
    /// Where its value is used; `x += 1` uses it as well. Its address counts.
    pub read: Vec<Span>,
}

impl DefUse {
    /// Those of a block.
    pub fn of(block: &Block) -> DefUse {
        let mut found = DefUse::default();
        found.block(block);
        found
    }

    /// Those of a loop: its head and its body.
    pub fn of_loop(parts: &For) -> DefUse {
        let mut found = DefUse::default();
        found.for_loop(parts);
        found
    }

    /// The sites of a variable.
    pub fn sites(&self, name: &str) -> Option<&Sites> {
        self.0.get(name)
    }

    /// All variables by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Sites)> {
        self.0.iter().map(|(name, sites)| (name.as_str(), sites))
    }

    /// Variables of outside that are assigned: their values may be carried from one execution of
    /// the code to the next.
    pub fn carried(&self) -> impl Iterator<Item = &str> {
        let outside = |sites: &Sites| sites.declared.is_empty() && !sites.assigned.is_empty();
        let carried = self.0.iter().filter(move |(_, sites)| outside(sites));
        carried.map(|(name, _)| name.as_str())
    }

    fn at(&mut self, name: &str) -> &mut Sites {
        self.0.entry(name.to_owned()).or_default()
    }

    fn block(&mut self, block: &Block) {
        for statement in &block.statements {
            crate::with_stack(|| self.statement(statement));
        }
    }

    fn statement(&mut self, statement: &Stmt) {
        match &statement.kind {
            StmtKind::Declare(declaration) => self.declaration(declaration),
            StmtKind::Expr(expr) => self.expr(expr),
            StmtKind::If(cond, then, otherwise) => {
                self.expr(cond);
                self.block(then);
                otherwise.iter().for_each(|block| self.block(block));
            }
            StmtKind::For(parts) => self.for_loop(parts),
            StmtKind::While(cond, body) => {
                self.expr(cond);
                self.block(body);
            }
            StmtKind::Return(value) => value.iter().for_each(|value| self.expr(value)),
            StmtKind::Block(block) => self.block(block),
            StmtKind::Directive(_) | StmtKind::Plain(_) => {}
        }
    }

    fn for_loop(&mut self, parts: &For) {
        parts.init.iter().for_each(|init| self.statement(init));
        parts.cond.iter().for_each(|cond| self.expr(cond));
        parts.step.iter().for_each(|step| self.expr(step));
        self.block(&parts.body);
    }

    fn declaration(&mut self, declaration: &Declaration) {
        for variable in &declaration.variables {
            let span = variable.name.span.clone();
            self.at(&variable.name.text).declared.push(span);
            self.ty(&variable.ty);
            variable.init.iter().for_each(|init| self.init(init));
        }
    }

    fn init(&mut self, init: &Init) {
        match init {
            Init::Value(value) => self.expr(value),
            Init::List(values, _) => values.iter().for_each(|value| self.init(value)),
        }
    }

    fn ty(&mut self, ty: &Type) {
        match ty {
            Type::Named(_) => {}
            Type::Const(inner) | Type::Pointer(inner, _) => self.ty(inner),
            Type::Array(of, length) => {
                self.ty(of);
                length.iter().for_each(|length| self.expr(length));
            }
        }
    }

    fn expr(&mut self, expr: &Expr) {
        crate::with_stack(|| self.kind(&expr.kind, &expr.span));
    }

    fn kind(&mut self, kind: &ExprKind, span: &Span) {
        match kind {
            ExprKind::Name(name) => self.at(name).read.push(span.clone()),
            ExprKind::Number(_) | ExprKind::Bool(_) => {}
            ExprKind::Member(inner, _) | ExprKind::Paren(inner) | ExprKind::Unary(_, inner) => {
                self.expr(inner);
            }
            ExprKind::Cast(_, ty, inner) => {
                self.ty(ty);
                self.expr(inner);
            }
            ExprKind::Index(a, b) | ExprKind::Binary(_, a, b) | ExprKind::Comma(a, b) => {
                self.expr(a);
                self.expr(b);
            }
            ExprKind::Conditional(a, b, c) => [a, b, c].into_iter().for_each(|e| self.expr(e)),
            ExprKind::Call(_, arguments) => arguments.iter().for_each(|a| self.expr(a)),
            ExprKind::Update(_, _, target) => self.target(target, true, span),
            ExprKind::Assign(op, target, value) => {
                self.expr(value);
                self.target(target, op != "=", span);
            }
        }
    }

    fn target(&mut self, target: &Expr, also_read: bool, span: &Span) {
        match &target.bare().kind {
            ExprKind::Name(name) => {
                let sites = self.at(name);
                sites.assigned.push(span.clone());
                if also_read {
                    sites.read.push(target.span.clone());
                }
            }
            _ => self.expr(target),
        }
    }
}
