//! Statements: guards bound the points, loops count upwards, everything else is kept as it was written.

use warpwright_cudac::Scalar;
use warpwright_cudac::affine::{Poly, Relation, Symbol, Test};
use warpwright_cudac::ast::{
    Block, Declaration, Expr, ExprKind, For, Ident, Init, Stmt, StmtKind, Type, Variable,
};
use warpwright_cudac::def_use::DefUse;
use warpwright_cudac::diag::Span;

use super::jumps::{self, Flags};
use super::values::INT;
use super::{Done, Machine, Pointer, Val, Var, refused};
use crate::ir::{AtomicOp, Dim, Index, Loop, Statement, Value};

/// As those of a row of a sparse matrix.
const UNRESOLVED: &str = "a loop whose bounds are read from memory, or no sums of sizes and places";

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
                if let Some((then, true)) = self.left_early(then).filter(|_| top) {
                    // What is done in place of the rest.
                    let cond = self.condition(cond)?;
                    let then = self.inside(|m| m.block(&then, false))?;
                    let rest = self.inside(|m| {
                        m.scopes.open();
                        let done = m.statements(rest, true);
                        m.scopes.close();
                        done
                    })?;
                    out.push(Statement::If(cond, then, rest));
                    return Ok(out);
                }
                let only = matches!(self.left_early(then), Some((_, false)));
                if only && (top || self.grid.axes.is_empty()) {
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
                let last = rest.iter().all(|s| self.leaves(s));
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
            if self.leaves(statement) && top {
                return Ok(out);
            }
            if top && self.loose && self.grid.axes.is_empty() && jumps::returns(statement) {
                let stem = self.flag_stem();
                let left = Flags::of_function(&stem).returned(&all[number..], &statement.span);
                out.extend(self.inside(|m| m.statements(&left, false))?);
                return Ok(out);
            }
            let last = rest.iter().all(|s| self.leaves(s));
            self.grid.may = top && last && self.open;
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
    pub(super) fn guards(&mut self, cond: &Expr, returns: bool) -> Done<Option<Value>> {
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
        let bounds = test.as_ref().and_then(|test| self.bounds(test));
        let Some(bounds) = bounds else {
            self.kernel.accesses.truncate(accesses);
            self.kernel.ranges.truncate(ranges);
            return Ok(false);
        };
        for bound in bounds {
            let bound = match bound {
                Bounded::Place(bound) => bound,
                Bounded::Launch(end) => {
                    self.kernel
                        .flat
                        .iter_mut()
                        .for_each(|f| f.high.push(end.clone()));
                    continue;
                }
            };
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
                whole: false,
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
            StmtKind::For(parts) => self.looped(parts, at, out),
            StmtKind::While(cond, body) => match as_for(cond, body) {
                Some(parts) if !self.loose => self.for_loop(&parts, at, out),
                _ if self.loose => {
                    let parts = For {
                        init: None,
                        cond: Some(cond.clone()),
                        step: None,
                        body: body.clone(),
                    };
                    self.open_loop(&parts, at, out)
                }
                _ => Err(refused("a `while` loop", at)),
            },
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
        let listed;
        let first = match &variable.init {
            None => None,
            Some(Init::Value(value)) => Some(value),
            Some(Init::List(values, list)) => {
                listed = self.of_vector(&ty, values, list);
                Some(
                    listed
                        .as_ref()
                        .ok_or_else(|| refused("a list of first values", at))?,
                )
            }
        };
        if matches!(ty, Type::Array(..)) {
            return Err(refused("an array of the thread's own", at));
        }
        if let Some(own) = self.straight.get_mut(name) {
            *own = Some(ty.clone());
        }
        let value = first.map(|value| self.value(value)).transpose()?;
        let meaning = self.meaning(&variable.name, &ty, value, assigned, out)?;
        if let (Var::Int(..), Some(around)) = (&meaning, self.counting.get_mut(name)) {
            *around = self.turning;
        }
        self.scopes.declare(name, meaning);
        Ok(())
    }

    /// `make_float3(a, b, c)` for a vector `{a, b, c}`.
    fn of_vector(&self, ty: &Type, values: &[Init], at: &Span) -> Option<Expr> {
        let Type::Named(name) = ty.bare() else {
            return None;
        };
        let text = format!("make_{name}");
        let mut all = Vec::new();
        for value in values {
            match value {
                Init::Value(value) => all.push(value.clone()),
                Init::List(..) => return None,
            }
        }
        let length = name.strip_prefix(|c: char| c.is_ascii_lowercase())?;
        let fits = length.ends_with(&all.len().to_string()) && super::values::makes_vector(&text);
        let make = Ident {
            text,
            span: at.clone(),
        };
        fits.then(|| Expr {
            kind: ExprKind::Call(make, all),
            span: at.clone(),
        })
    }

    /// What a name of this type means that has this first value.
    pub(super) fn meaning(
        &mut self,
        name: &Ident,
        ty: &Type,
        value: Option<Val>,
        assigned: bool,
        out: &mut Vec<Statement>,
    ) -> Done<Var> {
        let (name, at) = (&name.text, &name.span);
        let is_auto = matches!(ty, Type::Named(name) if name == "auto");
        if let Type::Pointer(..) = ty.bare() {
            return match value {
                Some(Val::Pointer(pointer)) if !assigned && pointer.taken.is_empty() => {
                    Ok(Var::Pointer(pointer))
                }
                _ => Err(refused("a pointer that changes", at)),
            };
        }
        let scalar = self.file.scalar(ty, &self.types);
        match (value, scalar) {
            (Some(Val::Int(poly, from)), Some(to @ Scalar::Integer(32 | 64, _))) if !assigned => {
                let poly = self.placed(poly);
                self.named(&poly, name);
                // From `unsigned` places of a launch to `int`: they are small.
                let value = match from == to {
                    true => Val::Int(poly, to),
                    false => self.int(poly, to),
                };
                match value {
                    Val::Int(poly, scalar) => Ok(Var::Int(poly, scalar)),
                    _ => Err(refused("a number so large", at)),
                }
            }
            (Some(Val::Int(poly, scalar)), None) if is_auto && !assigned => {
                Ok(Var::Int(poly, scalar))
            }
            (Some(Val::Pointer(_)), _) => Err(refused("an address as a value", at)),
            _ if is_auto => Err(refused("`auto`", at)),
            (value, _) => {
                let value = match value {
                    None => None,
                    Some(Val::Value(value)) => Some(value),
                    Some(Val::Int(poly, scalar)) => Some(self.number(poly, scalar)),
                    Some(Val::Pointer(_)) => None,
                };
                let number = self.variable(name, ty);
                if let Some(value @ Value::Call(..)) = &value
                    && scalar == Some(INT)
                    && !assigned
                {
                    self.clamped.insert(number, value.clone());
                }
                out.push(Statement::Declare(number, value));
                Ok(Var::Value(number))
            }
        }
    }

    /// An assignment in the block of the declaration: from here on the name is another variable.
    fn once_more(
        &mut self,
        name: &str,
        ty: Type,
        (op, target, value): (&str, &Expr, &Expr),
        out: &mut Vec<Statement>,
    ) -> Done<()> {
        let before = self.scopes.get(name).cloned();
        let value = match op.strip_suffix('=') {
            None | Some("") => value.clone(),
            Some(op) => Expr {
                kind: ExprKind::Binary(
                    op.to_owned(),
                    Box::new(target.clone()),
                    Box::new(value.clone()),
                ),
                span: value.span.clone(),
            },
        };
        // A value of its own; the name keeps its scope.
        self.scopes.open();
        let variable = Variable {
            name: Ident {
                text: name.to_owned(),
                span: target.span.clone(),
            },
            ty,
            init: Some(Init::Value(value)),
        };
        let done = self.declare_one(&variable, out);
        let new = self.scopes.get(name).cloned();
        self.scopes.close();
        done?;
        if let Some(new) = new.or(before) {
            self.scopes.assign(name, new);
        }
        Ok(())
    }

    /// Notes which variables are only assigned to in the block of their declaration.
    pub(super) fn begin_straight(&mut self, block: &Block) {
        let assigned = |statement: &Stmt| match &statement.kind {
            StmtKind::Expr(expr) => match &expr.kind {
                ExprKind::Assign(_, target, value)
                    if !matches!(value.bare().kind, ExprKind::Assign(..)) =>
                {
                    match &target.bare().kind {
                        ExprKind::Name(name) => Some((name.clone(), expr.span.clone())),
                        _ => None,
                    }
                }
                _ => None,
            },
            _ => None,
        };
        let here: Vec<(String, Span)> = block.statements.iter().filter_map(assigned).collect();
        for statement in &block.statements {
            if let StmtKind::Declare(declaration) = &statement.kind {
                for variable in &declaration.variables {
                    let name = &variable.name.text;
                    let Some(sites) = self.uses.sites(name) else {
                        continue;
                    };
                    let own = |at: &Span| here.iter().any(|(n, s)| n == name && s == at);
                    let whole =
                        variable.ty.is_integer() || matches!(variable.ty.bare(), Type::Pointer(..));
                    if whole
                        && variable.init.is_some()
                        && sites.declared.len() == 1
                        && !sites.assigned.is_empty()
                        && sites.assigned.iter().all(own)
                    {
                        self.straight.insert(name.clone(), None);
                    }
                }
            }
            let blocks = statement.blocks().into_iter();
            blocks.for_each(|block| self.begin_straight(block));
        }
    }

    /// Notes the name of a variable that is a place.
    pub(super) fn named(&mut self, poly: &Poly, name: &str) {
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
                if let ExprKind::Assign(_, inner, _) = &value.bare().kind {
                    self.effect(value, out)?;
                    let value = self.plain(inner)?;
                    return self.assign(target, op, value, at, out);
                }
                if let ExprKind::Name(name) = &target.bare().kind
                    && let Some(Some(ty)) = self.straight.get(name)
                    // One that a macro stands for was not looked at.
                    && self.uses.sites(name).is_some_and(|s| s.assigned.contains(at))
                {
                    return self.once_more(name, ty.clone(), (op, target, value), out);
                }
                let value = self.plain(value)?;
                self.assign(target, op, value, at, out)
            }
            ExprKind::Comma(a, b) => {
                self.effect(a, out)?;
                self.effect(b, out)
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
                if self.inline(&name.text, arguments, at, out)? {
                    return Ok(());
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
            ExprKind::Name(_) => {
                let all = self.file.expand_statements(expr);
                let all = all.ok_or_else(|| refused("this statement", at))?;
                self.step(expr)?;
                out.extend(self.statements(&all, false)?);
                Ok(())
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
                    if op != "=" || member.is_some() {
                        self.read.insert(variable);
                    }
                    if variable < self.grid.before {
                        let what = "a value that is carried around a loop over the grid";
                        return Err(refused(what, at));
                    }
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

    /// A loop: one that counts upwards, or one of any form.
    fn looped(&mut self, parts: &For, at: &Span, out: &mut Vec<Statement>) -> Done<()> {
        if !self.loose {
            return self.for_loop(parts, at, out);
        }
        let (before, length) = (self.clone(), out.len());
        let counted = self.for_loop(parts, at, out);
        if counted.is_ok() {
            return counted;
        }
        let steps = self.steps;
        *self = Machine { steps, ..before };
        out.truncate(length);
        self.open_loop(parts, at, out)
    }

    /// A loop of which only its condition tells how often it turns.
    fn open_loop(&mut self, parts: &For, at: &Span, out: &mut Vec<Statement>) -> Done<()> {
        let stem = self.flag_stem();
        let open = Flags::of_loop(&stem).looped(parts, at);
        self.grid.may = false;
        self.scopes.open();
        let done = self.opened(parts, &open, out);
        self.scopes.close();
        self.open = false;
        done
    }

    fn opened(&mut self, parts: &For, open: &jumps::Loop, out: &mut Vec<Statement>) -> Done<()> {
        // A counter that is not read behind the loop is one of its own.
        if let Some(StmtKind::Expr(init)) = parts.init.as_ref().map(|init| &init.kind)
            && let ExprKind::Assign(op, target, _) = &init.kind
            && let (ExprKind::Name(name), "=") = (&target.bare().kind, &**op)
            && !self.escaping.contains(name)
            && let Some(Var::Value(outer)) = self.scopes.get(name)
        {
            let variable = self.kernel.variables[*outer].clone();
            self.kernel.variables.push(variable);
            let own = self.kernel.variables.len() - 1;
            self.scopes.declare(name, Var::Value(own));
            out.push(Statement::Declare(own, None));
        }
        for statement in &open.before {
            self.statement(statement, out)?;
        }
        let cond = self.condition(&open.cond)?;
        self.turning += 1;
        let body = self.inside(|m| m.block(&open.body, false));
        self.turning -= 1;
        out.push(Statement::While(cond, body?));
        Ok(())
    }

    /// What the names of new flags begin with.
    pub(super) fn flag_stem(&mut self) -> String {
        self.flags += 1;
        let mut stem = "still_".to_owned();
        while self.file.source.text.contains(&stem) {
            stem.push('_');
        }
        format!("{stem}{}_", self.flags)
    }

    /// Notes the counters that are read outside of the loops that set them.
    pub(super) fn begin_escaping(&mut self, body: &Block) {
        let mut loops = Vec::new();
        setting(body, &mut loops);
        for (name, _) in &loops {
            let inside = |read: &Span| {
                let mut own = loops.iter().filter(|(n, _)| n == name);
                own.any(|(_, at)| at.start <= read.start && read.end <= at.end)
            };
            let sites = self.uses.sites(name);
            if sites.is_some_and(|sites| !sites.read.iter().all(inside)) {
                self.escaping.insert(name.clone());
            }
        }
    }

    fn for_loop(&mut self, parts: &For, at: &Span, out: &mut Vec<Statement>) -> Done<()> {
        let form = || refused("a loop that does not count upwards by a number", at);
        let may = std::mem::take(&mut self.grid.may);
        let mut outer = None;
        let step = parts.step.as_ref().and_then(step).ok_or_else(form)?;
        let init = parts.init.as_ref();
        let (name, first, scalar) = match init.map(|init| &init.kind) {
            // It goes on from what the variable holds.
            None => match self.scopes.get(step.0) {
                Some(Var::Int(_, scalar)) if self.counting.get(step.0) == Some(&self.turning) => {
                    (step.0.to_owned(), step.1, Some(*scalar))
                }
                _ => return Err(form()),
            },
            Some(StmtKind::Declare(Declaration { variables, storage })) if storage.is_empty() => {
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
            Some(StmtKind::Expr(Expr {
                kind: ExprKind::Assign(op, target, value),
                ..
            })) if op == "=" => {
                let ExprKind::Name(name) = &target.bare().kind else {
                    return Err(form());
                };
                let Some(Var::Value(variable) | Var::Counter(variable)) = self.scopes.get(name)
                else {
                    return Err(form());
                };
                outer = Some(*variable);
                self.counted.insert(*variable);
                if self.escaping.contains(name) {
                    return Err(form());
                }
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
        let low = self.value(first)?;
        let lows = self
            .bounding(low, "max")
            .ok_or_else(|| refused(UNRESOLVED, at))?;
        let low = lows[0].clone();
        if step.0 != name
            || DefUse::of(&parts.body)
                .sites(&name)
                .is_some_and(|s| !s.assigned.is_empty())
        {
            return Err(form());
        }
        let by = match step.2 {
            None => Poly::constant(1),
            Some(by) => match self.value(by)? {
                Val::Int(by, _) => by,
                _ => return Err(form()),
            },
        };
        let least = |by: &i64| (1..1 << 20).contains(by);
        let Some(step) = by.as_constant().filter(least) else {
            let cond = parts.cond.as_ref().ok_or_else(form)?;
            let symbol = match lows.len() {
                1 => self.over_grid(&low, &by),
                _ => None,
            };
            let symbol = symbol.ok_or_else(form)?;
            if !may {
                let what = "a loop over the grid beside other statements";
                return Err(refused(what, at));
            }
            return self.grid_loop((&name, scalar), symbol, cond, &parts.body, at, out);
        };
        let highs = self.end(parts.cond.as_ref(), &name, at)?;
        let window = window(&lows, &highs, step, scalar);
        let (low, high) = window.ok_or_else(|| refused(UNRESOLVED, at))?;
        self.used.extend(low.symbols());
        self.used.extend(high.symbols());
        let number = self.kernel.loops.len();
        self.kernel.loops.push(Loop {
            name: name.clone(),
            low: low.clone(),
            high: high.clone(),
            step,
            span: at.clone(),
        });
        self.scopes.open();
        let counter = Poly::symbol(Symbol::Loop(number));
        self.scopes
            .declare(&name, Var::Int(counter.clone(), scalar));
        self.turning += 1;
        let body = self.inside(|m| m.block(&parts.body, false));
        self.turning -= 1;
        self.scopes.close();
        if let Some(variable) = outer {
            self.scopes.assign(&name, Var::Counter(variable));
        } else if init.is_none() {
            self.scopes.assign(&name, Var::Counted);
        }
        // Turns that the other bounds leave out do nothing.
        let mut body = body?;
        let mut tests = Vec::new();
        let others = lows.iter().filter(|l| **l != low).map(|l| (">=", l));
        let others = others.chain(highs.iter().filter(|h| **h != high).map(|h| ("<", h)));
        for (op, bound) in others {
            let counter = self.number(counter.clone(), scalar);
            let bound = self.number(bound.clone(), scalar);
            tests.push(Value::Binary(op.into(), Box::new(counter), Box::new(bound)));
        }
        let both = |a, b| Value::Binary("&&".into(), Box::new(a), Box::new(b));
        if let Some(test) = tests.into_iter().reduce(both) {
            body = vec![Statement::If(test, body, Vec::new())];
        }
        out.push(Statement::Loop(number, body));
        self.open = false;
        Ok(())
    }

    /// The polynomials of which a value is the largest or the smallest (`max`, `min`); a polynomial alone is one.
    fn bounding(&mut self, value: Val, of: &str) -> Option<Vec<Poly>> {
        let value = match value {
            Val::Int(poly, _) => return Some(vec![self.placed(poly)]),
            Val::Value(Value::Variable(variable)) => self.clamped.get(&variable).cloned()?,
            Val::Value(value) => value,
            Val::Pointer(_) => return None,
        };
        let Value::Call(name, arguments) = &value else {
            return None;
        };
        let own = arguments.iter().map(|argument| match argument {
            Value::Int(poly, Scalar::Integer(32, true)) => Some(poly.clone()),
            _ => None,
        });
        if name == of { own.collect() } else { None }
    }

    /// One past the last value of a counter: the smallest of these.
    fn end(&mut self, cond: Option<&Expr>, name: &str, at: &Span) -> Done<Vec<Poly>> {
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
        let end = self.value(end)?;
        let ends = self
            .bounding(end, "min")
            .ok_or_else(|| refused(UNRESOLVED, at))?;
        let more = i64::from(op == "<=");
        let ends = ends.iter().map(|end| end.plus(&Poly::constant(more), 1));
        ends.collect::<Option<Vec<Poly>>>().ok_or_else(form)
    }
}

/// The loops that set a variable of outside first: its name, and where they stand behind that.
fn setting(block: &Block, found: &mut Vec<(String, Span)>) {
    for statement in &block.statements {
        if let StmtKind::For(parts) = &statement.kind
            && let Some(StmtKind::Expr(init)) = parts.init.as_ref().map(|init| &init.kind)
            && let ExprKind::Assign(_, target, value) = &init.kind
            && let ExprKind::Name(name) = &target.bare().kind
        {
            found.push((name.clone(), value.span.end..statement.span.end));
        }
        for inner in statement.blocks() {
            setting(inner, found);
        }
    }
}

/// Where a loop begins and ends: of several bounds those that are as far apart for every point, as those of a window are
/// that the border cuts.
fn window(lows: &[Poly], highs: &[Poly], step: i64, scalar: Scalar) -> Option<(Poly, Poly)> {
    if let ([low], [high]) = (lows, highs) {
        return Some((low.clone(), high.clone()));
    }
    // Steps begin at the bound that counts; without a sign nothing is below zero.
    if lows.len() > 1 && step != 1 || !matches!(scalar, Scalar::Integer(_, true)) {
        return None;
    }
    let pairs = lows
        .iter()
        .flat_map(|low| highs.iter().map(move |high| (low, high)));
    let mut fitting = pairs.filter(|(low, high)| {
        let apart = high.plus(low, -1);
        !high.points().is_empty() && apart.is_some_and(|apart| apart.points().is_empty())
    });
    fitting
        .next()
        .map(|(low, high)| (low.clone(), high.clone()))
}

/// The counter of `i++`, `++i`, `i += 2` or `i = i + 2`, as a name and where it stands, and what is added if it is not 1.
pub(super) fn step(step: &Expr) -> Option<(&str, &Expr, Option<&Expr>)> {
    let counter = |e: &'_ Expr| matches!(&e.bare().kind, ExprKind::Name(_));
    let name = |e: &'_ Expr| match &e.bare().kind {
        ExprKind::Name(name) => Some(name.clone()),
        _ => None,
    };
    let (target, by) = match &step.bare().kind {
        ExprKind::Update(op, _, target) if op == "++" => (&**target, None),
        ExprKind::Assign(op, target, value) if counter(target) => {
            match (&**op, &value.bare().kind) {
                ("+=", _) => (&**target, Some(&**value)),
                ("=", ExprKind::Binary(plus, a, b)) if plus == "+" && name(a) == name(target) => {
                    (&**target, Some(&**b))
                }
                _ => return None,
            }
        }
        _ => return None,
    };
    match &target.bare().kind {
        ExprKind::Name(name) => Some((name, target, by)),
        _ => None,
    }
}

/// `while (i < n) { …; i += 2; }` as a loop whose counter goes on from what it holds.
pub(super) fn as_for(cond: &Expr, body: &Block) -> Option<For> {
    let (last, rest) = body.statements.split_last()?;
    let StmtKind::Expr(expr) = &last.kind else {
        return None;
    };
    step(expr)?;
    let body = Block {
        statements: rest.to_vec(),
        ..body.clone()
    };
    // It would leave the step out.
    if goes_on(&body) {
        return None;
    }
    Some(For {
        init: None,
        cond: Some(cond.clone()),
        step: Some(expr.clone()),
        body,
    })
}

/// Is there a `continue` in it?
fn goes_on(block: &Block) -> bool {
    block.statements.iter().any(|s| match &s.kind {
        StmtKind::Plain(text) => text.starts_with("continue"),
        StmtKind::If(_, then, otherwise) => {
            goes_on(then) || otherwise.as_ref().is_some_and(goes_on)
        }
        StmtKind::Block(block) => goes_on(block),
        _ => false,
    })
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

/// What a comparison says.
enum Bounded {
    /// Of one place.
    Place(Bound),
    /// That the launch ends here: all digits together.
    Launch(Poly),
}

/// What a comparison says of one place.
struct Bound {
    symbol: Symbol,
    low: Option<Poly>,
    high: Option<Poly>,
}

impl Machine<'_> {
    /// The bounds that a condition is, if each of its parts speaks of one place.
    fn bounds(&self, test: &Test) -> Option<Vec<Bounded>> {
        let mut all = Vec::new();
        for (relation, poly, _) in test.conjuncts()? {
            match self.ends_flat(relation, poly) {
                Some((true, high)) => {
                    all.push(Bounded::Place(Bound {
                        symbol: self.digits.symbol(self.digits.count() - 1),
                        low: None,
                        high: Some(high),
                    }));
                    continue;
                }
                Some((false, end)) => {
                    all.push(Bounded::Launch(end));
                    continue;
                }
                None => {}
            }
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
            all.push(Bounded::Place(match (relation, times) {
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
            }));
        }
        Some(all)
    }
}
