//! Statements: guards bound the points, loops count upwards, everything else is kept as it was written.

use warpwright_cudac::affine::{Poly, Relation, Symbol, Test};
use warpwright_cudac::ast::{
    Block, Declaration, Expr, ExprKind, For, Init, Stmt, StmtKind, Type, Variable,
};
use warpwright_cudac::def_use::DefUse;
use warpwright_cudac::diag::Span;
use warpwright_cudac::{Literal, Scalar};

use super::values::INT;
use super::{Done, Machine, Pointer, Val, Var, refused};
use crate::ir::{AtomicOp, Dim, Index, Loop, Statement, Value};

impl Machine<'_> {
    pub(super) fn block(&mut self, block: &Block, top: bool) -> Done<Vec<Statement>> {
        self.scopes.open();
        let done = self.statements(&block.statements, top);
        self.scopes.close();
        done
    }

    fn statements(&mut self, all: &[Stmt], top: bool) -> Done<Vec<Statement>> {
        let mut out = Vec::new();
        for (number, statement) in all.iter().enumerate() {
            let rest = &all[number + 1..];
            if let StmtKind::If(cond, then, None) = &statement.kind {
                if is_return(then) {
                    if !top {
                        return Err(refused(
                            "a return inside a loop or a condition",
                            &statement.span,
                        ));
                    }
                    let Some(cond) = self.guards(cond, true)? else {
                        continue;
                    };
                    let inside = self.inside(|m| {
                        m.scopes.open();
                        let done = m.statements(rest, true);
                        m.scopes.close();
                        done
                    })?;
                    out.push(Statement::If(cond, inside, Vec::new()));
                    return Ok(out);
                }
                let last = rest
                    .iter()
                    .all(|s| matches!(&s.kind, StmtKind::Return(None)));
                if top && last && self.open {
                    match self.guards(cond, false)? {
                        None => out.extend(self.block(then, true)?),
                        Some(cond) => {
                            let then = self.inside(|m| m.block(then, false))?;
                            out.push(Statement::If(cond, then, Vec::new()));
                        }
                    }
                    return Ok(out);
                }
            }
            if matches!(&statement.kind, StmtKind::Return(None)) && top {
                return Ok(out);
            }
            warpwright_cudac::with_stack(|| self.statement(statement, &mut out))?;
        }
        Ok(out)
    }

    fn inside<T>(&mut self, work: impl FnOnce(&mut Self) -> Done<T>) -> Done<T> {
        let open = std::mem::replace(&mut self.open, false);
        self.depth += 1;
        let done = work(self);
        self.depth -= 1;
        self.open = open;
        done
    }

    /// Takes the parts of a condition that are bounds of the points as such; what is left of it, as it must hold. It
    /// `returns` where it holds, or what follows is done there.
    fn guards(&mut self, cond: &Expr, returns: bool) -> Done<Option<Value>> {
        if self.guarded(cond, returns)? {
            return Ok(None);
        }
        let mut parts = Vec::new();
        split(cond, if returns { "||" } else { "&&" }, &mut parts);
        let mut left: Option<Value> = None;
        for part in parts {
            if self.guarded(part, returns)? {
                continue;
            }
            let part = self.plain(part)?;
            let part = match returns {
                true => Value::Unary("!".into(), Box::new(part)),
                false => part,
            };
            left = Some(match left {
                None => part,
                Some(left) => Value::Binary("&&".into(), Box::new(left), Box::new(part)),
            });
        }
        Ok(left)
    }

    /// Takes a condition as bounds of the points, if it is nothing else.
    fn guarded(&mut self, cond: &Expr, returns: bool) -> Done<bool> {
        if !self.open {
            return Ok(false);
        }
        let (accesses, ranges) = (self.kernel.accesses.len(), self.kernel.ranges.len());
        let test = self.test(cond)?;
        let test = match returns {
            true => test.and_then(|test| test.opposite()),
            false => test,
        };
        let bounds = test.as_ref().and_then(bounds);
        let Some(bounds) = bounds else {
            self.kernel.accesses.truncate(accesses);
            self.kernel.ranges.truncate(ranges);
            return Ok(false);
        };
        for bound in bounds {
            let dim = self.dim(bound.symbol);
            if let Some(low) = bound.low {
                dim.low.push(low);
            }
            if let Some(high) = bound.high {
                dim.high.push(high);
            }
        }
        Ok(true)
    }

    /// The dimension of a place; a new one if there is none.
    pub(super) fn dim(&mut self, symbol: Symbol) -> &mut Dim {
        let known = self.kernel.dims.iter().position(|d| d.symbol == symbol);
        let at = known.unwrap_or_else(|| {
            self.kernel.dims.push(Dim {
                symbol,
                name: String::new(),
                low: Vec::new(),
                high: Vec::new(),
            });
            self.kernel.dims.len() - 1
        });
        &mut self.kernel.dims[at]
    }

    fn statement(&mut self, statement: &Stmt, out: &mut Vec<Statement>) -> Done<()> {
        let at = &statement.span;
        match &statement.kind {
            StmtKind::Declare(declaration) => self.declare(declaration, at, out),
            StmtKind::Expr(expr) => self.effect(expr, out),
            StmtKind::If(cond, then, otherwise) => {
                let cond = self.condition(cond)?;
                let then = self.inside(|m| m.block(then, false))?;
                let otherwise = match otherwise {
                    Some(otherwise) => self.inside(|m| m.block(otherwise, false))?,
                    None => Vec::new(),
                };
                out.push(Statement::If(cond, then, otherwise));
                Ok(())
            }
            StmtKind::For(parts) => self.for_loop(parts, at, out),
            StmtKind::While(..) => Err(refused("a `while` loop", at)),
            StmtKind::Return(_) => Err(refused("a return inside a loop or a condition", at)),
            StmtKind::Block(block) => {
                out.extend(self.block(block, false)?);
                Ok(())
            }
            StmtKind::Directive(text) if text.trim_start().starts_with("#pragma unroll") => Ok(()),
            StmtKind::Directive(text) if text.trim_start().starts_with("#pragma warpwright") => {
                Ok(())
            }
            StmtKind::Directive(_) => Err(refused("a preprocessor line inside the kernel", at)),
            StmtKind::Plain(text) if text == ";" => Ok(()),
            StmtKind::Plain(text) => Err(refused(&format!("`{}`", text.trim_end_matches(';')), at)),
        }
    }

    fn declare(
        &mut self,
        declaration: &Declaration,
        at: &Span,
        out: &mut Vec<Statement>,
    ) -> Done<()> {
        let shared = |w: &String| w == "__shared__" || w == "extern";
        if declaration.storage.iter().any(shared) {
            return Err(refused("shared memory", at));
        }
        if declaration
            .storage
            .iter()
            .any(|w| w == "static" || w == "volatile")
        {
            return Err(refused("a static or volatile variable", at));
        }
        for variable in &declaration.variables {
            self.declare_one(variable, out)?;
        }
        Ok(())
    }

    fn declare_one(&mut self, variable: &Variable, out: &mut Vec<Statement>) -> Done<()> {
        let (name, at) = (&variable.name.text, &variable.name.span);
        let assigned = self.is_assigned(name);
        let ty = self.file.resolved(&variable.ty, &self.types);
        let first = match &variable.init {
            None => None,
            Some(Init::Value(value)) => Some(value),
            Some(Init::List(..)) => return Err(refused("a list of first values", at)),
        };
        if matches!(ty, Type::Array(..)) {
            return Err(refused("an array of the thread's own", at));
        }
        let is_auto = matches!(&ty, Type::Named(name) if name == "auto");
        if let Type::Pointer(..) = ty {
            let value = first.map(|value| self.value(value)).transpose()?;
            return match value {
                Some(Val::Pointer(pointer)) if !assigned && pointer.taken.is_empty() => {
                    self.scopes.declare(name, Var::Pointer(pointer));
                    Ok(())
                }
                _ => Err(refused("a pointer that changes", at)),
            };
        }
        let value = first.map(|value| self.value(value)).transpose()?;
        let scalar = self.file.scalar(&ty, &self.types);
        match (value, scalar) {
            (Some(Val::Int(poly, from)), Some(to @ Scalar::Integer(32 | 64, _))) if !assigned => {
                let poly = self.placed(poly);
                self.named(&poly, name);
                // From `unsigned` places of a launch to `int`: they are small.
                let value = match from == to {
                    true => Val::Int(poly, to),
                    false => self.int(poly, to),
                };
                if let Val::Int(poly, scalar) = value {
                    self.scopes.declare(name, Var::Int(poly, scalar));
                }
                Ok(())
            }
            (Some(Val::Int(poly, scalar)), None) if is_auto && !assigned => {
                self.scopes.declare(name, Var::Int(poly, scalar));
                Ok(())
            }
            (Some(Val::Pointer(_)), _) => Err(refused("an address as a value", at)),
            _ if is_auto => Err(refused("`auto`", at)),
            (value, _) => {
                let value = match value {
                    None => None,
                    Some(Val::Value(value)) => Some(value),
                    Some(Val::Int(poly, scalar)) => Some(Value::Int(self.placed(poly), scalar)),
                    Some(Val::Pointer(_)) => None,
                };
                let number = self.variable(name, &ty);
                self.scopes.declare(name, Var::Value(number));
                out.push(Statement::Declare(number, value));
                Ok(())
            }
        }
    }

    /// Notes the name of a variable that is a place.
    fn named(&mut self, poly: &Poly, name: &str) {
        if let Some((Some(symbol), 0)) = poly.as_subscript() {
            self.names.entry(symbol).or_insert_with(|| name.to_owned());
        }
    }

    fn effect(&mut self, expr: &Expr, out: &mut Vec<Statement>) -> Done<()> {
        let at = &expr.span;
        match &expr.kind {
            ExprKind::Paren(inner) => self.effect(inner, out),
            ExprKind::Assign(op, target, value) => {
                // `a = b = c` is two statements.
                if let ExprKind::Assign(..) = &value.bare().kind {
                    return Err(refused("an assignment inside an expression", at));
                }
                let value = self.plain(value)?;
                self.assign(target, op, value, at, out)
            }
            ExprKind::Update(op, _, target) => {
                let op = if op == "++" { "+=" } else { "-=" };
                let one = Value::Int(Poly::constant(1), INT);
                self.assign(target, op, one, at, out)
            }
            ExprKind::Call(name, arguments) => {
                if let Some(meaning) = self.expanded(expr)? {
                    return self.effect(&meaning, out);
                }
                if name.text.starts_with("__sync") {
                    return Err(refused("a barrier", at));
                }
                if let (Some(op), [target, value]) = (AtomicOp::of(&name.text), &arguments[..]) {
                    return self.atomic(op, target, value, at, out);
                }
                for argument in arguments {
                    let address =
                        matches!(&argument.bare().kind, ExprKind::Unary(op, _) if op == "&");
                    if name.text.starts_with("atomic") || address {
                        return Err(refused("an atomic operation whose order counts", at));
                    }
                }
                Err(refused(
                    &format!("a call of `{}` for its effects", name.text),
                    at,
                ))
            }
            _ => Err(refused("this statement", at)),
        }
    }

    /// An atomic operation that nobody uses the result of.
    fn atomic(
        &mut self,
        op: AtomicOp,
        target: &Expr,
        value: &Expr,
        at: &Span,
        out: &mut Vec<Statement>,
    ) -> Done<()> {
        let value = self.plain(value)?;
        let pointer = match &target.bare().kind {
            ExprKind::Unary(op, inner) if op == "&" => self.subscripted(inner)?,
            _ => match self.value(target)? {
                Val::Pointer(mut pointer) => {
                    pointer.taken.push(Index::Affine(Poly::default()));
                    pointer
                }
                _ => return Err(refused("an atomic operation on no array", at)),
            },
        };
        let array = &self.kernel.arrays[pointer.array];
        let known = matches!(
            (op, array.scalar),
            (AtomicOp::Add, Some(Scalar::Float | Scalar::Double))
                | (_, Some(Scalar::Integer(32 | 64, _)))
        );
        if !known || pointer.taken.len() != pointer.lengths.len() + 1 {
            return Err(refused("an atomic operation on such an element", at));
        }
        self.kernel.arrays[pointer.array].stored = true;
        self.open = false;
        let access = self.access(pointer, at)?;
        out.push(Statement::Atomic { access, op, value });
        Ok(())
    }

    fn assign(
        &mut self,
        target: &Expr,
        op: &str,
        value: Value,
        at: &Span,
        out: &mut Vec<Statement>,
    ) -> Done<()> {
        let (base, member) = match &target.bare().kind {
            ExprKind::Member(base, field) => (base.bare(), Some(field.clone())),
            _ => (target.bare(), None),
        };
        let op = op.to_owned();
        if let ExprKind::Name(name) = &base.kind {
            return match self.scopes.get(name) {
                Some(Var::Value(variable)) => {
                    let variable = *variable;
                    out.push(Statement::Assign {
                        variable,
                        member,
                        op,
                        value,
                    });
                    Ok(())
                }
                _ => Err(refused(&format!("an assignment to `{name}`"), at)),
            };
        }
        let pointer: Pointer = self.subscripted(base)?;
        if pointer.taken.len() != pointer.lengths.len() + 1 {
            return Err(refused("an assignment to a row", at));
        }
        let array = pointer.array;
        let access = self.access(pointer, at)?;
        if let Index::Value(_) = self.kernel.accesses[access].index {
            return Err(refused("a store at an unresolved index", at));
        }
        self.kernel.arrays[array].stored = true;
        self.open = false;
        out.push(Statement::Store {
            access,
            member,
            op,
            value,
        });
        Ok(())
    }

    fn for_loop(&mut self, parts: &For, at: &Span, out: &mut Vec<Statement>) -> Done<()> {
        let form = || refused("a loop that does not count upwards by a number", at);
        let init = parts.init.as_ref().ok_or_else(form)?;
        let mut outer = None;
        let (name, first, scalar) = match &init.kind {
            StmtKind::Declare(Declaration { variables, storage }) if storage.is_empty() => {
                match &variables[..] {
                    [
                        Variable {
                            name,
                            ty,
                            init: Some(Init::Value(value)),
                        },
                    ] => (name.text.clone(), value, self.file.scalar(ty, &self.types)),
                    _ => return Err(form()),
                }
            }
            StmtKind::Expr(Expr {
                kind: ExprKind::Assign(op, target, value),
                ..
            }) if op == "=" => {
                let ExprKind::Name(name) = &target.bare().kind else {
                    return Err(form());
                };
                let Some(Var::Value(variable) | Var::Counter(variable)) = self.scopes.get(name)
                else {
                    return Err(form());
                };
                outer = Some(*variable);
                (
                    name.clone(),
                    &**value,
                    self.kernel.variables[*variable].scalar,
                )
            }
            _ => return Err(form()),
        };
        let Some(scalar @ Scalar::Integer(32 | 64, _)) = scalar else {
            return Err(form());
        };
        let Val::Int(low, _) = self.value(first)? else {
            return Err(refused("a loop from a value that is not known", at));
        };
        let low = self.placed(low);
        let step = step(parts.step.as_ref(), &name).ok_or_else(form)?;
        let high = self.end(parts.cond.as_ref(), &name, at)?;
        if DefUse::of(&parts.body)
            .sites(&name)
            .is_some_and(|s| !s.assigned.is_empty())
        {
            return Err(form());
        }
        let number = self.kernel.loops.len();
        self.kernel.loops.push(Loop {
            name: name.clone(),
            low,
            high,
            step,
            span: at.clone(),
        });
        self.scopes.open();
        let counter = Poly::symbol(Symbol::Loop(number));
        self.scopes.declare(&name, Var::Int(counter, scalar));
        let body = self.inside(|m| m.block(&parts.body, false));
        self.scopes.close();
        if let Some(variable) = outer {
            self.scopes.assign(&name, Var::Counter(variable));
        }
        out.push(Statement::Loop(number, body?));
        self.open = false;
        Ok(())
    }

    /// One past the last value of a counter.
    fn end(&mut self, cond: Option<&Expr>, name: &str, at: &Span) -> Done<Poly> {
        let form = || refused("a loop whose end is not a sum of sizes and places", at);
        let cond = cond.ok_or_else(form)?;
        let ExprKind::Binary(op, a, b) = &cond.bare().kind else {
            return Err(form());
        };
        let is_counter = |e: &Expr| matches!(&e.bare().kind, ExprKind::Name(n) if n == name);
        let (op, end) = match (is_counter(a), is_counter(b), &**op) {
            (true, false, "<" | "<=") => (&**op, b),
            (false, true, ">") => ("<", a),
            (false, true, ">=") => ("<=", a),
            _ => return Err(form()),
        };
        let Val::Int(end, _) = self.value(end)? else {
            return Err(form());
        };
        let end = self.placed(end);
        let more = i64::from(op == "<=");
        end.plus(&Poly::constant(more), 1).ok_or_else(form)
    }
}

/// `i++`, `++i`, `i += 2`, `i = i + 2`
fn step(step: Option<&Expr>, name: &str) -> Option<i64> {
    let is_counter = |e: &Expr| matches!(&e.bare().kind, ExprKind::Name(n) if n == name);
    let number = |e: &Expr| match &e.bare().kind {
        ExprKind::Number(text) => match Literal::parse(text) {
            Some(Literal::Integer(value)) if value > 0 && value < 1 << 20 => Some(value),
            _ => None,
        },
        _ => None,
    };
    match &step?.bare().kind {
        ExprKind::Update(op, _, target) if op == "++" && is_counter(target) => Some(1),
        ExprKind::Assign(op, target, value) if is_counter(target) => {
            match (&**op, &value.bare().kind) {
                ("+=", _) => number(value),
                ("=", ExprKind::Binary(plus, a, b)) if plus == "+" && is_counter(a) => number(b),
                _ => None,
            }
        }
        _ => None,
    }
}

/// The operands of a row of `&&` or `||`.
fn split<'e>(cond: &'e Expr, by: &str, parts: &mut Vec<&'e Expr>) {
    warpwright_cudac::with_stack(|| match &cond.bare().kind {
        ExprKind::Binary(op, a, b) if op == by => {
            split(a, by, parts);
            split(b, by, parts);
        }
        _ => parts.push(cond),
    });
}

fn is_return(block: &Block) -> bool {
    matches!(
        &block.statements[..],
        [Stmt {
            kind: StmtKind::Return(None),
            ..
        }]
    )
}

/// What a comparison says of one place.
struct Bound {
    symbol: Symbol,
    low: Option<Poly>,
    high: Option<Poly>,
}

/// The bounds that a condition is, if each of its parts speaks of one place.
fn bounds(test: &Test) -> Option<Vec<Bound>> {
    let mut all = Vec::new();
    for (relation, poly, _) in test.conjuncts()? {
        let points = poly.points();
        let [symbol @ (Symbol::Global(_) | Symbol::BlockIdx(_))] = points[..] else {
            return None;
        };
        let times = poly.coefficient(symbol)?.as_constant()?;
        let rest = poly.plus(&Poly::symbol(symbol), -times)?;
        if rest.is_raw() || times.abs() != 1 {
            return None;
        }
        let one = Poly::constant(1);
        // The value at which the comparison turns.
        let turn = match times {
            1 => Poly::default().plus(&rest, -1)?,
            _ => rest,
        };
        all.push(match (relation, times) {
            (Relation::NotNegative, 1) => Bound {
                symbol,
                low: Some(turn),
                high: None,
            },
            (Relation::NotNegative, _) => Bound {
                symbol,
                low: None,
                high: Some(turn.plus(&one, 1)?),
            },
            (Relation::Zero, _) => Bound {
                symbol,
                low: Some(turn.clone()),
                high: Some(turn.plus(&one, 1)?),
            },
            (Relation::NotZero, _) => return None,
        });
    }
    Some(all)
}
