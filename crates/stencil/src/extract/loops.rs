//! Loops. Those that store are loops over points and are entered once, with a symbol for their
//! counter; the others are executed iteration by iteration, so their bounds must be numbers.

use super::machine::{Done, Flow, Machine, Var};
use super::tile::fills_tiles;
use super::value::Val;
use warpwright_cudac::affine::{Poly, Symbol, Test};
use warpwright_cudac::ast::{Block, Expr, ExprKind, For, Init, StmtKind};
use warpwright_cudac::def_use::DefUse;
use warpwright_cudac::diag::{Diagnostic, Span};

impl Machine<'_> {
    pub(super) fn for_loop(&mut self, parts: &For, span: &Span) -> Done<Flow> {
        let head = span.start..parts.body.span.start.max(span.start);
        let counter = self.counter(parts, &head)?;
        self.scopes.open();
        let flow = if stores(&parts.body, self) {
            match self.stride(&counter) {
                Some(place) => self.grid_stride(parts, &counter, &place, &head),
                None => self.point_loop(parts, &counter, &head),
            }
        } else if counter.first.as_constant().is_none() && fills_tiles(self, &parts.body) {
            self.fill_loop(parts, &counter, &head)
        } else {
            self.unrolled(parts, &counter, &head)
        };
        self.end_scope();
        flow
    }

    /// The counter of a loop `for (int k = first; k < …; k++)`.
    fn counter(&mut self, parts: &For, span: &Span) -> Done<Counter> {
        let strange = || {
            let what = "this loop is not understood";
            Diagnostic::error("stencil::loop", what)
                .label(span.clone(), "not a count")
                .help("write `for (int k = 1; k < N - 1; k++)`")
        };
        let init = parts.init.as_ref().ok_or_else(strange)?;
        let (name, first) = match &init.kind {
            StmtKind::Declare(declaration) => match declaration.variables.as_slice() {
                [variable] if self.is_integer(&variable.ty) => match &variable.init {
                    Some(Init::Value(first)) => (variable.name.text.clone(), first),
                    _ => return Err(strange()),
                },
                _ => return Err(strange()),
            },
            StmtKind::Expr(Expr {
                kind: ExprKind::Assign(op, name, first),
                ..
            }) if op == "=" => match &name.kind {
                ExprKind::Name(name) => (name.clone(), &**first),
                _ => return Err(strange()),
            },
            _ => return Err(strange()),
        };
        let Val::Int(first) = self.value(first)? else {
            return Err(strange());
        };
        let step = parts.step.as_ref().and_then(|step| match &step.kind {
            ExprKind::Update(op, _, target) if is_name(target, &name) => {
                Some(Poly::constant(if op == "++" { 1 } else { -1 }))
            }
            ExprKind::Assign(op, target, by) if op == "+=" && is_name(target, &name) => {
                match self.value(by) {
                    Ok(Val::Int(by)) => Some(by),
                    _ => None,
                }
            }
            _ => None,
        });
        let step = step.filter(|s| !s.is_zero()).ok_or_else(strange)?;
        Ok(Counter { name, first, step })
    }

    /// A loop over the points of one dimension.
    fn point_loop(&mut self, parts: &For, counter: &Counter, span: &Span) -> Done<Flow> {
        let strange = |what: &str, label: &str| {
            Err(Diagnostic::error("stencil::loop", what).label(span.clone(), label))
        };
        let label = match counter.step.as_constant() {
            Some(1) => None,
            Some(-1) => Some("goes downwards"),
            Some(_) => Some("steps by more than one"),
            None if counter.step.is_raw() => Some("goes in steps of the block"),
            None => Some("how far it steps is not known"),
        };
        if let Some(label) = label {
            return strange("a loop over points visits each of them, upwards", label);
        }
        let Some(first) = counter.first.as_constant() else {
            return strange("the first point of a loop is a number", "begins elsewhere");
        };
        self.not_after_stores(span)?;
        let symbol = Symbol::Loop(self.loops);
        self.loops += 1;
        self.set_counter(counter, Poly::symbol(symbol));
        let outside = (self.domain.clone(), self.fixed, self.in_points);
        self.domain.entry(symbol).or_default().low = first;
        let bounded = match &parts.cond {
            Some(cond) => self.condition(cond)?,
            None => Test::Known(true),
        };
        match bounded {
            Test::Known(_) => return strange("the loop has no end", "no bound"),
            bounded => self.restrict(&bounded, span)?,
        }
        (self.fixed, self.in_points) = (self.scopes.depth(), true);
        self.carry(parts, symbol, first, span)?;
        let tiles = self.enter_tiles(&parts.body);
        let choices = self.choices.len();
        let flow = self.block(&parts.body)?;
        self.choices.truncate(choices);
        self.leave_tiles(&tiles, span)?;
        self.end_scope();
        (self.domain, self.fixed, self.in_points) = outside;
        self.forget_carried(parts);
        self.closed = Some(span.clone());
        match flow {
            Flow::Next | Flow::Continue => Ok(Flow::Next),
            Flow::Break | Flow::Return => strange("the loop ends at its first point", "left early"),
        }
    }

    /// The place of a thread in the grid, if a loop goes from there in steps as long as the grid:
    /// with what is added to it, as the value of the counter. Each place is visited once.
    fn stride(&self, counter: &Counter) -> Option<Poly> {
        let places = &self.trace.places;
        for axis in 0..3 {
            let grid = Poly::symbol(Symbol::GridDim(axis));
            let size = match places.block[usize::from(axis)] {
                Some(threads) => Poly::constant(threads),
                None => Poly::symbol(Symbol::BlockDim(axis)),
            };
            let whole = grid.times(&size)?;
            let symbols = Poly::symbol(Symbol::BlockDim(axis)).times(&grid)?;
            for (symbol, step) in [
                (Symbol::Global(axis), &whole),
                (Symbol::Global(axis), &symbols),
                (Symbol::BlockIdx(axis), &grid),
            ] {
                let from = counter.first.plus(&Poly::symbol(symbol), -1)?;
                if counter.step == *step && from.as_constant().is_some() {
                    return Some(counter.first.clone());
                }
            }
        }
        None
    }

    /// A loop of each thread over points as far apart as the grid is large: all points from the first
    /// one to the bound, each once, as if every thread had one of them.
    fn grid_stride(
        &mut self,
        parts: &For,
        counter: &Counter,
        place: &Poly,
        span: &Span,
    ) -> Done<Flow> {
        self.not_after_stores(span)?;
        if let Some(name) = self.carried_names(parts).first() {
            let what = format!("`{name}` is carried from one point to the next");
            return Err(Diagnostic::error("stencil::carried", what)
                .label(span.clone(), "assigned inside the loop over points")
                .help("declare it inside the loop, and compute it from the loop's counter"));
        }
        if !self.tiles.is_empty() {
            let what = "shared memory in a loop over the grid is not understood";
            return Err(Diagnostic::error("stencil::loop", what).label(span.clone(), "this loop"));
        }
        self.set_counter(counter, place.clone());
        let outside = (self.domain.clone(), self.fixed, self.in_points, self.loops);
        let Some(cond) = &parts.cond else {
            let what = "the loop has no end";
            return Err(Diagnostic::error("stencil::loop", what).label(span.clone(), "no bound"));
        };
        let test = self.condition(cond)?;
        self.restrict(&test, span)?;
        (self.fixed, self.in_points) = (self.scopes.depth(), true);
        // A `return` inside would leave out the points that follow.
        self.loops += 1;
        let choices = self.choices.len();
        let flow = self.block(&parts.body)?;
        self.choices.truncate(choices);
        (self.domain, self.fixed, self.in_points, self.loops) = outside;
        self.closed = Some(span.clone());
        match flow {
            Flow::Next | Flow::Continue => Ok(Flow::Next),
            Flow::Break | Flow::Return => {
                let what = "the loop ends at its first point";
                Err(Diagnostic::error("stencil::loop", what).label(span.clone(), "left early"))
            }
        }
    }

    /// Variables of outside that a loop assigns, its own counter aside.
    pub(super) fn carried_names(&self, parts: &For) -> Vec<String> {
        let sites = DefUse::of(&parts.body);
        let carried = sites.carried();
        let carried = carried.filter(|name| self.scopes.get(name).is_some());
        carried.map(str::to_owned).collect()
    }

    pub(super) fn set_counter(&mut self, counter: &Counter, value: Poly) {
        self.name_point(&counter.name, &value);
        self.scopes.declare(&counter.name, Var::Int(value));
    }

    /// A loop inside a point, executed.
    fn unrolled(&mut self, parts: &For, counter: &Counter, span: &Span) -> Done<Flow> {
        let unknown = || {
            let what = "a loop inside a point has numbers as bounds";
            Diagnostic::error("stencil::loop", what)
                .label(span.clone(), "not known when the kernel is compiled")
                .help("a loop over points stores in each iteration")
        };
        let mut at = counter.first.as_constant().ok_or_else(unknown)?;
        let cond = parts.cond.as_ref().ok_or_else(unknown)?;
        let step = counter.step.as_constant().ok_or_else(unknown)?;
        let outside = std::mem::replace(&mut self.in_points, false);
        let flow = loop {
            self.step(span)?;
            self.set_counter(counter, Poly::constant(at));
            match self.condition(cond)? {
                Test::Known(true) => {}
                Test::Known(false) => break Flow::Next,
                _ => return Err(unknown()),
            }
            match self.block(&parts.body)? {
                Flow::Return => break Flow::Return,
                Flow::Break => break Flow::Next,
                Flow::Next | Flow::Continue => {}
            }
            at = at.checked_add(step).ok_or_else(unknown)?;
        };
        self.in_points = outside;
        Ok(flow)
    }
}

/// The counter of a loop.
pub(super) struct Counter {
    pub(super) name: String,
    pub(super) first: Poly,
    pub(super) step: Poly,
}

fn is_name(expr: &Expr, name: &str) -> bool {
    matches!(&expr.kind, ExprKind::Name(n) if n == name)
}

/// Does a block store to memory anywhere?
fn stores(block: &Block, machine: &Machine<'_>) -> bool {
    let mut found = false;
    block.walk(&mut |statement| {
        if let StmtKind::Expr(expr) = &statement.kind
            && let ExprKind::Assign(_, left, _) = &expr.kind
            && let Ok(left) = machine.expanded(left)
        {
            let left = left.bare();
            let is_element = matches!(left.kind, ExprKind::Index(..) | ExprKind::Unary(..));
            found |= is_element && !machine.is_own(left) && !machine.is_tile(left);
        }
    });
    found
}
