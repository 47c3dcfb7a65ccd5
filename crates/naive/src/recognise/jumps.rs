//! Goal: loops and returns as C has them, without jumps: `break`, `continue` and a `return` inside something clear a
//! flag, and what would be jumped over asks for it (Erosa and Hendren, "Taming control flow: a structured approach to
//! eliminating goto statements", ICCL 1994; the jumps of C go forwards and outwards alone, so flags are all it takes).
//!
//! Preserves: what is executed, and its order. A condition is not computed where C would not compute it.

use warpwright_cudac::ast::{
    Block, Declaration, Expr, ExprKind, For, Ident, Init, Stmt, StmtKind, Type, Variable,
};
use warpwright_cudac::diag::Span;

/// The flags that jumps clear, by name; a jump without one stays.
#[derive(Clone, Debug, Default)]
pub(super) struct Flags {
    /// The loop goes on.
    turning: Option<String>,
    /// The turn goes on.
    within: Option<String>,
    /// The function goes on.
    staying: Option<String>,
}

/// Which jumps leave a piece of code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Jumps {
    breaks: bool,
    continues: bool,
    returns: bool,
}

impl Jumps {
    fn of(all: &[Stmt]) -> Jumps {
        let mut found = Jumps::default();
        for statement in all {
            found = found.and(Jumps::of_one(statement));
        }
        found
    }

    fn of_one(statement: &Stmt) -> Jumps {
        warpwright_cudac::with_stack(|| match &statement.kind {
            StmtKind::Plain(text) => Jumps {
                breaks: text.starts_with("break"),
                continues: text.starts_with("continue"),
                returns: false,
            },
            StmtKind::Return(_) => Jumps {
                returns: true,
                ..Jumps::default()
            },
            StmtKind::If(_, then, otherwise) => {
                let otherwise = otherwise.iter().map(|b| Jumps::of(&b.statements));
                otherwise.fold(Jumps::of(&then.statements), Jumps::and)
            }
            StmtKind::Block(block) => Jumps::of(&block.statements),
            // Its other jumps stay inside of it.
            StmtKind::For(parts) => Jumps::of(&parts.body.statements).out_of_loop(),
            StmtKind::While(_, body) => Jumps::of(&body.statements).out_of_loop(),
            StmtKind::Declare(_) | StmtKind::Expr(_) | StmtKind::Directive(_) => Jumps::default(),
        })
    }

    fn out_of_loop(self) -> Jumps {
        Jumps {
            returns: self.returns,
            ..Jumps::default()
        }
    }

    fn and(self, other: Jumps) -> Jumps {
        Jumps {
            breaks: self.breaks || other.breaks,
            continues: self.continues || other.continues,
            returns: self.returns || other.returns,
        }
    }

    fn any(self) -> bool {
        self != Jumps::default()
    }
}

/// Does a `return` stand in a statement?
pub(super) fn returns(statement: &Stmt) -> bool {
    Jumps::of_one(statement).returns
}

/// A loop whose only jump is its condition.
pub(super) struct Loop {
    /// What stands in front of it.
    pub(super) before: Vec<Stmt>,
    pub(super) cond: Expr,
    pub(super) body: Block,
}

impl Flags {
    /// Those of a loop, with names that no name of the file begins with.
    pub(super) fn of_loop(stem: &str) -> Flags {
        Flags {
            turning: Some(format!("{stem}turning")),
            within: Some(format!("{stem}within")),
            staying: None,
        }
    }

    /// That of a function.
    pub(super) fn of_function(stem: &str) -> Flags {
        Flags {
            staying: Some(format!("{stem}staying")),
            ..Flags::default()
        }
    }

    /// A loop of any form.
    pub(super) fn looped(&self, parts: &For, at: &Span) -> Loop {
        let jumps = self.known(Jumps::of(&parts.body.statements));
        let mut before: Vec<Stmt> = parts.init.iter().cloned().collect();
        let mut body = Vec::new();
        if let Some(flag) = self.turning.as_ref().filter(|_| jumps.breaks) {
            before.push(declared(flag, at));
        }
        if let Some(flag) = self.within.as_ref().filter(|_| jumps.continues) {
            body.push(declared(flag, at));
        }
        body.extend(self.list(&parts.body.statements, at));
        let steps = parts.step.iter().flat_map(steps);
        let steps: Vec<Stmt> = steps.map(|e| stmt(StmtKind::Expr(e.clone()), at)).collect();
        let goes_on = self.none_of(
            Jumps {
                continues: false,
                ..jumps
            },
            at,
        );
        match &goes_on {
            Some(cond) if !steps.is_empty() => body.push(only_if(cond.clone(), steps, at)),
            _ => body.extend(steps),
        }
        let cond = parts.cond.clone();
        let cond = cond.unwrap_or_else(|| expr(ExprKind::Bool(true), at));
        Loop {
            before,
            cond: match goes_on {
                Some(flag) => both(flag, cond, at),
                None => cond,
            },
            body: Block {
                statements: body,
                ..parts.body.clone()
            },
        }
    }

    /// Statements of a function out of which it may return, as statements without returns.
    pub(super) fn returned(&self, all: &[Stmt], at: &Span) -> Vec<Stmt> {
        let flag = self.staying.iter().map(|flag| declared(flag, at));
        flag.chain(self.list(all, at)).collect()
    }

    /// Those of some jumps that have a flag.
    fn known(&self, jumps: Jumps) -> Jumps {
        Jumps {
            breaks: jumps.breaks && self.turning.is_some(),
            continues: jumps.continues && self.within.is_some(),
            returns: jumps.returns && self.staying.is_some(),
        }
    }

    /// Statements in which jumps clear their flags, and what follows them asks for these.
    fn list(&self, all: &[Stmt], at: &Span) -> Vec<Stmt> {
        let mut out = Vec::new();
        for (number, statement) in all.iter().enumerate() {
            let jumps = self.known(Jumps::of_one(statement));
            out.extend(warpwright_cudac::with_stack(|| {
                self.statement(statement, jumps)
            }));
            let rest = &all[number + 1..];
            if let Some(cond) = self.none_of(jumps, at).filter(|_| !rest.is_empty()) {
                let is_jump = matches!(statement.kind, StmtKind::Plain(_) | StmtKind::Return(_));
                if !is_jump {
                    out.push(only_if(cond, self.list(rest, at), at));
                }
                return out;
            }
        }
        out
    }

    fn statement(&self, statement: &Stmt, jumps: Jumps) -> Vec<Stmt> {
        let at = &statement.span;
        let block = |block: &Block| Block {
            statements: self.list(&block.statements, at),
            ..block.clone()
        };
        let kind = match &statement.kind {
            _ if !jumps.any() => return vec![statement.clone()],
            StmtKind::Plain(_) | StmtKind::Return(_) => return self.cleared(jumps, at),
            StmtKind::If(cond, then, otherwise) => {
                StmtKind::If(cond.clone(), block(then), otherwise.as_ref().map(block))
            }
            StmtKind::Block(inner) => StmtKind::Block(block(inner)),
            _ => return vec![self.ended(statement)],
        };
        vec![stmt(kind, at)]
    }

    /// A loop in which each `return` clears its flag and breaks off.
    fn ended(&self, statement: &Stmt) -> Stmt {
        let kind = match &statement.kind {
            StmtKind::For(parts) => StmtKind::For(Box::new(For {
                body: self.breaking(&parts.body),
                ..(**parts).clone()
            })),
            StmtKind::While(cond, body) => StmtKind::While(cond.clone(), self.breaking(body)),
            other => other.clone(),
        };
        stmt(kind, &statement.span)
    }

    fn breaking(&self, body: &Block) -> Block {
        let mut statements = Vec::new();
        for statement in &body.statements {
            let at = &statement.span;
            let off = stmt(StmtKind::Plain("break;".to_owned()), at);
            let jumps = self.known(Jumps {
                returns: Jumps::of_one(statement).returns,
                ..Jumps::default()
            });
            match &statement.kind {
                _ if !jumps.any() => statements.push(statement.clone()),
                StmtKind::Return(_) => {
                    statements.extend(self.cleared(jumps, at));
                    statements.push(off);
                }
                StmtKind::If(cond, then, otherwise) => {
                    let otherwise = otherwise.as_ref().map(|b| self.breaking(b));
                    let kind = StmtKind::If(cond.clone(), self.breaking(then), otherwise);
                    statements.push(stmt(kind, at));
                }
                StmtKind::Block(inner) => {
                    statements.push(stmt(StmtKind::Block(self.breaking(inner)), at));
                }
                _ => {
                    statements.push(self.ended(statement));
                    let left = self.none_of(jumps, at).map(|cond| {
                        let cond = expr(ExprKind::Unary("!".to_owned(), Box::new(cond)), at);
                        only_if(cond, vec![off], at)
                    });
                    statements.extend(left);
                }
            }
        }
        Block {
            statements,
            ..body.clone()
        }
    }

    fn flags(&self, jumps: Jumps) -> impl Iterator<Item = &String> {
        let all = [
            (jumps.returns, &self.staying),
            (jumps.breaks, &self.turning),
            (jumps.continues, &self.within),
        ];
        let all = all.into_iter().filter(|(is, _)| *is);
        all.filter_map(|(_, flag)| flag.as_ref())
    }

    fn cleared(&self, jumps: Jumps, at: &Span) -> Vec<Stmt> {
        self.flags(jumps).map(|flag| clear(flag, at)).collect()
    }

    /// The condition that none of these jumps was made; none where there are none.
    fn none_of(&self, jumps: Jumps, at: &Span) -> Option<Expr> {
        let flags = self.flags(jumps).map(|flag| name(flag, at));
        flags.reduce(|a, b| both(a, b, at))
    }
}

/// The parts of `a, b`.
fn steps(expr: &Expr) -> Vec<&Expr> {
    match &expr.bare().kind {
        ExprKind::Comma(a, b) => [steps(a), steps(b)].concat(),
        _ => vec![expr],
    }
}

fn stmt(kind: StmtKind, at: &Span) -> Stmt {
    Stmt {
        kind,
        span: at.clone(),
        leading: Vec::new(),
        trailing: None,
        spaced: false,
    }
}

fn expr(kind: ExprKind, at: &Span) -> Expr {
    Expr {
        kind,
        span: at.clone(),
    }
}

fn name(text: &str, at: &Span) -> Expr {
    expr(ExprKind::Name(text.to_owned()), at)
}

fn both(a: Expr, b: Expr, at: &Span) -> Expr {
    let kind = ExprKind::Binary("&&".to_owned(), Box::new(a), Box::new(b));
    expr(kind, at)
}

fn only_if(cond: Expr, statements: Vec<Stmt>, at: &Span) -> Stmt {
    let block = Block {
        statements,
        tail: Vec::new(),
        span: at.clone(),
    };
    stmt(StmtKind::If(cond, block, None), at)
}

fn declared(flag: &str, at: &Span) -> Stmt {
    let variable = Variable {
        name: Ident {
            text: flag.to_owned(),
            span: at.clone(),
        },
        ty: Type::Named("bool".to_owned()),
        init: Some(Init::Value(expr(ExprKind::Bool(true), at))),
    };
    let declaration = Declaration {
        storage: Vec::new(),
        variables: vec![variable],
    };
    stmt(StmtKind::Declare(declaration), at)
}

fn clear(flag: &str, at: &Span) -> Stmt {
    let value = Box::new(expr(ExprKind::Bool(false), at));
    let target = Box::new(name(flag, at));
    let kind = ExprKind::Assign("=".to_owned(), target, value);
    stmt(StmtKind::Expr(expr(kind, at)), at)
}
