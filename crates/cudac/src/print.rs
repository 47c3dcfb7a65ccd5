//! The tree as text that a person would keep: one statement per line, four blanks per level,
//! long expressions broken at their outermost operators, comments where they were.

use std::fmt::Write;

use crate::ast::{Block, Declaration, Expr, ExprKind, For, Function, Init, Stmt, StmtKind, Type};

/// Longest line.
const WIDTH: usize = 100;

/// A whole function.
pub fn function(function: &Function) -> String {
    let mut printer = Printer::default();
    printer.out.push_str(&function.head);
    printer.out.push_str(" {\n");
    printer.inside(&function.body);
    printer.out.push_str("}\n");
    printer.out
}

/// Statements, each indented by `level` levels.
pub fn statements(statements: &[Stmt], level: usize) -> String {
    let mut printer = Printer {
        level,
        ..Printer::default()
    };
    for statement in statements {
        printer.statement(statement);
    }
    printer.out
}

/// An expression on one line.
pub fn expr(expr: &Expr) -> String {
    let mut out = String::new();
    write_expr(&mut out, expr, 0);
    out
}

/// A declared name with its type, such as `double (*in)[N]`.
pub fn declared(ty: &Type, name: &str) -> String {
    let (base, declarator) = declarator(ty, name.to_owned(), false);
    match &*declarator {
        "" => base,
        declarator => format!("{base} {declarator}"),
    }
}

#[derive(Default)]
struct Printer {
    out: String,
    level: usize,
}

impl Printer {
    fn indent(&mut self) {
        self.out.push_str(&"    ".repeat(self.level));
    }

    fn inside(&mut self, block: &Block) {
        self.level += 1;
        for statement in &block.statements {
            self.statement(statement);
        }
        for comment in &block.tail {
            self.indent();
            self.out.push_str(comment);
            self.out.push('\n');
        }
        self.level -= 1;
    }

    fn statement(&mut self, statement: &Stmt) {
        if statement.spaced {
            self.out.push('\n');
        }
        for comment in &statement.leading {
            self.indent();
            self.out.push_str(comment);
            self.out.push('\n');
        }
        if let StmtKind::Directive(text) = &statement.kind {
            self.out.push_str(text);
        } else {
            self.indent();
            self.kind(&statement.kind);
        }
        if let Some(comment) = &statement.trailing {
            self.out.push(' ');
            self.out.push_str(comment);
        }
        self.out.push('\n');
    }

    fn kind(&mut self, kind: &StmtKind) {
        match kind {
            StmtKind::Declare(declaration) => {
                let text = write_declaration(declaration);
                self.out
                    .push_str(&self.broken(&text, declaration_value(declaration)));
                self.out.push(';');
            }
            StmtKind::Expr(value) => {
                let text = expr(value);
                let right = match &value.kind {
                    ExprKind::Assign(_, _, right) => Some(&**right),
                    _ => None,
                };
                self.out.push_str(&self.broken(&text, right));
                self.out.push(';');
            }
            StmtKind::If(cond, then, otherwise) => self.if_else(cond, then, otherwise.as_ref()),
            StmtKind::For(parts) => self.for_loop(parts),
            StmtKind::While(cond, body) => {
                let _ = write!(self.out, "while ({}) ", expr(cond));
                self.braces(body);
            }
            StmtKind::Return(None) => self.out.push_str("return;"),
            StmtKind::Return(Some(value)) => {
                let _ = write!(self.out, "return {};", expr(value));
            }
            StmtKind::Block(block) => self.braces(block),
            StmtKind::Directive(text) | StmtKind::Plain(text) => self.out.push_str(text),
        }
    }

    fn braces(&mut self, block: &Block) {
        self.out.push_str("{\n");
        self.inside(block);
        self.indent();
        self.out.push('}');
    }

    fn if_else(&mut self, cond: &Expr, then: &Block, otherwise: Option<&Block>) {
        let _ = write!(self.out, "if ({}) ", expr(cond));
        self.braces(then);
        let Some(otherwise) = otherwise else { return };
        self.out.push_str(" else ");
        match otherwise.statements.as_slice() {
            // `else if` stays on one line.
            [
                Stmt {
                    kind: StmtKind::If(cond, then, rest),
                    leading,
                    ..
                },
            ] if leading.is_empty() => self.if_else(cond, then, rest.as_ref()),
            _ => self.braces(otherwise),
        }
    }

    fn for_loop(&mut self, parts: &For) {
        let init = match parts.init.as_ref().map(|init| &init.kind) {
            Some(StmtKind::Declare(declaration)) => write_declaration(declaration),
            Some(StmtKind::Expr(value)) => expr(value),
            _ => String::new(),
        };
        let part = |part: &Option<Expr>| {
            part.as_ref()
                .map_or(String::new(), |e| format!(" {}", expr(e)))
        };
        let (cond, step) = (part(&parts.cond), part(&parts.step));
        let _ = write!(self.out, "for ({init};{cond};{step}) ");
        self.braces(&parts.body);
    }

    /// A statement's text; if it is too long, its value is broken at its outermost sums.
    fn broken(&self, text: &str, value: Option<&Expr>) -> String {
        let room = WIDTH.saturating_sub(self.level * 4 + 1);
        let Some(value) = value.filter(|_| text.len() > room) else {
            return text.to_owned();
        };
        let tail = expr(value);
        let Some(head) = text.strip_suffix(&*tail) else {
            return text.to_owned();
        };
        let indent = "    ".repeat(self.level + 1);
        let mut out = head.trim_end().to_owned();
        let mut line = String::new();
        for piece in pieces(value) {
            let width = indent.len() + line.len() + 1 + piece.len();
            if !line.is_empty() && width >= WIDTH {
                let _ = write!(out, "\n{indent}{line}");
                line.clear();
            }
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(&piece);
        }
        let _ = write!(out, "\n{indent}{line}");
        out
    }
}

/// A sum as its terms, each with its operator behind the one before.
fn pieces(value: &Expr) -> Vec<String> {
    let mut out = Vec::new();
    let mut rest = value;
    while let ExprKind::Binary(op, left, right) = &rest.kind {
        if op != "+" && op != "-" {
            break;
        }
        let mut term = String::new();
        write_expr(&mut term, right, 13);
        out.push(term);
        out.push(op.clone());
        rest = left;
    }
    let mut first = String::new();
    write_expr(&mut first, rest, if out.is_empty() { 0 } else { 12 });
    out.push(first);
    out.reverse();
    // `a`, `+`, `b` become `a +`, `b`.
    let mut joined: Vec<String> = Vec::new();
    for piece in out {
        match joined.last_mut() {
            Some(last) if piece == "+" || piece == "-" => {
                last.push(' ');
                last.push_str(&piece);
            }
            _ => joined.push(piece),
        }
    }
    joined
}

fn declaration_value(declaration: &Declaration) -> Option<&Expr> {
    match declaration.variables.last()?.init.as_ref()? {
        Init::Value(value) => Some(value),
        Init::List(..) => None,
    }
}

fn write_declaration(declaration: &Declaration) -> String {
    let mut out = String::new();
    for word in &declaration.storage {
        out.push_str(word);
        out.push(' ');
    }
    for (n, variable) in declaration.variables.iter().enumerate() {
        let name = variable.name.text.clone();
        let (base, declarator) = declarator(&variable.ty, name, false);
        if n == 0 {
            out.push_str(&base);
            out.push(' ');
        } else {
            out.push_str(", ");
        }
        out.push_str(&declarator);
        if let Some(init) = &variable.init {
            out.push_str(" = ");
            write_init(&mut out, init);
        }
    }
    out
}

fn write_init(out: &mut String, init: &Init) {
    match init {
        Init::Value(value) => write_expr(out, value, 0),
        Init::List(values, _) => {
            out.push('{');
            for (n, value) in values.iter().enumerate() {
                if n > 0 {
                    out.push_str(", ");
                }
                write_init(out, value);
            }
            out.push('}');
        }
    }
}

/// The word in front and the declarator of a type around `inner`.
fn declarator(ty: &Type, inner: String, constant: bool) -> (String, String) {
    match ty {
        Type::Named(name) if constant => (format!("const {name}"), inner),
        Type::Named(name) => (name.clone(), inner),
        Type::Const(of) => match &**of {
            // A constant pointer has its word behind the star.
            Type::Pointer(to, restrict) => declarator(to, star(to, inner, *restrict, true), false),
            of => declarator(of, inner, true),
        },
        Type::Pointer(to, restrict) => declarator(to, star(to, inner, *restrict, false), false),
        Type::Array(of, length) => {
            let length = length.as_ref().map_or(String::new(), |l| expr(l));
            declarator(of, format!("{inner}[{length}]"), constant)
        }
    }
}

fn star(to: &Type, inner: String, restrict: bool, constant: bool) -> String {
    let mut out = "*".to_owned();
    for (word, wanted) in [("const", constant), ("__restrict__", restrict)] {
        if wanted {
            out.push_str(word);
            out.push(' ');
        }
    }
    out.push_str(&inner);
    match to.bare() {
        Type::Array(..) => format!("({})", out.trim_end()),
        _ => out.trim_end().to_owned(),
    }
}

/// How tightly an operator binds.
fn precedence(op: &str) -> u8 {
    match op {
        "||" => 3,
        "&&" => 4,
        "|" => 5,
        "^" => 6,
        "&" => 7,
        "==" | "!=" => 8,
        "<" | ">" | "<=" | ">=" => 9,
        "<<" | ">>" => 11,
        "+" | "-" => 12,
        _ => 13,
    }
}

/// Binds a sign, and what stands behind one.
const UNARY: u8 = 14;
/// Binds a subscript, a member and a call.
const POSTFIX: u8 = 15;

fn write_expr(out: &mut String, value: &Expr, around: u8) {
    let own = match &value.kind {
        ExprKind::Comma(..) => 0,
        ExprKind::Assign(..) => 1,
        ExprKind::Conditional(..) => 2,
        ExprKind::Binary(op, ..) => precedence(op),
        ExprKind::Unary(..) | ExprKind::Update(..) | ExprKind::Cast(None, ..) => UNARY,
        ExprKind::Number(text) if text.starts_with('-') => UNARY,
        _ => POSTFIX + 1,
    };
    let open = own < around;
    if open {
        out.push('(');
    }
    write_kind(out, &value.kind, own);
    if open {
        out.push(')');
    }
}

fn write_kind(out: &mut String, kind: &ExprKind, own: u8) {
    match kind {
        ExprKind::Number(text) | ExprKind::Name(text) => out.push_str(text),
        ExprKind::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
        ExprKind::Member(base, field) => {
            write_expr(out, base, POSTFIX);
            let _ = write!(out, ".{field}");
        }
        ExprKind::Index(base, index) => {
            write_expr(out, base, POSTFIX);
            out.push('[');
            write_expr(out, index, 0);
            out.push(']');
        }
        ExprKind::Call(name, arguments) => {
            let arguments: Vec<String> = arguments.iter().map(expr).collect();
            let _ = write!(out, "{}({})", name.text, arguments.join(", "));
        }
        ExprKind::Unary(op, inner) => {
            out.push_str(op);
            let start = out.len();
            write_expr(out, inner, UNARY);
            // `- -x` is not `--x`.
            if out[start..].starts_with(&**op) && matches!(&**op, "-" | "+" | "&") {
                out.insert(start, ' ');
            }
        }
        ExprKind::Update(op, true, inner) => {
            out.push_str(op);
            write_expr(out, inner, UNARY);
        }
        ExprKind::Update(op, false, inner) => {
            write_expr(out, inner, POSTFIX);
            out.push_str(op);
        }
        ExprKind::Binary(op, left, right) => {
            write_expr(out, left, own);
            let _ = write!(out, " {op} ");
            write_expr(out, right, own + 1);
        }
        ExprKind::Assign(op, left, right) => {
            write_expr(out, left, UNARY);
            let _ = write!(out, " {op} ");
            write_expr(out, right, own);
        }
        ExprKind::Conditional(cond, a, b) => {
            write_expr(out, cond, own + 1);
            out.push_str(" ? ");
            write_expr(out, a, 0);
            out.push_str(" : ");
            write_expr(out, b, own);
        }
        ExprKind::Cast(None, ty, inner) => {
            let _ = write!(out, "({})", declared(ty, ""));
            write_expr(out, inner, UNARY);
        }
        ExprKind::Cast(Some(word), ty, inner) => {
            let _ = write!(out, "{word}<{}>({})", declared(ty, ""), expr(inner));
        }
        ExprKind::Comma(left, right) => {
            write_expr(out, left, own);
            out.push_str(", ");
            write_expr(out, right, own + 1);
        }
        ExprKind::Paren(inner) => {
            out.push('(');
            write_expr(out, inner, 0);
            out.push(')');
        }
    }
}
