//! Conditions on statements: guards that bound the points, points at the border that do something
//! simpler, and conditions under which shared memory is filled.

use super::machine::{Action, Border, Done, Flow, Guard, Machine, NOT_SET, Var};
use super::tile::fills_tiles;
use super::value::{Cond, Node, Operand, Val};
use crate::ir::Element;
use warpwright_cudac::affine::Test;
use warpwright_cudac::ast::{Block, Expr, ExprKind, StmtKind};
use warpwright_cudac::def_use::DefUse;
use warpwright_cudac::diag::{Diagnostic, Span};
use warpwright_cudac::names::Scopes;

impl Machine<'_> {
    pub(super) fn branch(
        &mut self,
        cond: &Expr,
        then: &Block,
        otherwise: Option<&Block>,
    ) -> Done<Flow> {
        let nothing = Block::default();
        let other = otherwise.unwrap_or(&nothing);
        // What follows is for the other points only, also behind the block at hand.
        let leaves = |block: &Block| self.leaves(block).is_some() || self.ends_by_leaving(block);
        if self.guarded > 0 && (leaves(then) || leaves(other)) {
            let what = "some points leave the kernel in the middle";
            return Err(Diagnostic::error("stencil::divergent", what)
                .label(cond.span.clone(), "where this holds")
                .help("let points leave outside of other conditions"));
        }
        let test = match self.general(cond)? {
            Cond::Place(test) => test,
            // `if (i > 0 && mask[c] > 0) …`: as two, one inside the other.
            Cond::Both(test, node) if otherwise.is_none() => {
                let run = |machine: &mut Self| machine.by_data(node, then, None, &cond.span);
                return match self.sets_values(then) {
                    true => self.chosen(&test, run),
                    false => self.inside_with(&test, then, cond, run),
                };
            }
            // `if (i < 1 || mask[c] == 0) return;`: as two, one after the other.
            Cond::Either(test, node) if self.leaves(then).is_some() => {
                let opposite = test.opposite();
                let opposite = opposite.ok_or_else(|| super::guard::divergent(&cond.span))?;
                self.not_after_stores(&cond.span)?;
                self.restrict(&opposite, &cond.span)?;
                return self.by_data(node, then, otherwise, &cond.span);
            }
            other => match other.whole() {
                Cond::Data(node) => return self.by_data(node, then, otherwise, &cond.span),
                _ => return Err(super::guard::divergent(&cond.span)),
            },
        };
        if let Test::Known(holds) = test {
            return self.block(if holds { then } else { other });
        }
        let opposite = test
            .opposite()
            .ok_or_else(|| super::guard::divergent(&cond.span))?;
        if self.sets_indices(then, otherwise) {
            return self
                .set_indices(cond, then, otherwise, &cond.span)
                .map(|()| Flow::Next);
        }
        if self.sets_values(then) && otherwise.is_none_or(|other| self.sets_values(other)) {
            return self
                .set_values(&test, &opposite, then, otherwise, &cond.span)
                .map(|()| Flow::Next);
        }
        // Shared memory is filled by whichever threads the text says.
        if fills_tiles(self, then) && fills_tiles(self, other) {
            self.under(test, then)?;
            return self.under(opposite, other);
        }
        // `if (outside) return; else …` and `if (inside) … else return;` leave as well.
        if self.leaves(then).is_some() {
            self.not_after_stores(&cond.span)?;
            self.restrict(&opposite, &cond.span)?;
            return self.block(other);
        }
        if otherwise.is_some_and(|other| self.leaves(other).is_some()) {
            self.not_after_stores(&cond.span)?;
            self.restrict(&test, &cond.span)?;
            return self.block(then);
        }
        // What the border does, then everything else.
        if self.ends_by_leaving(then) {
            self.not_after_stores(&cond.span)?;
            self.at_the_border(then, &cond.span)?;
            self.restrict(&opposite, &cond.span)?;
            return self.block(other);
        }
        let Some(otherwise) = otherwise else {
            return self.inside(&test, then, cond);
        };
        if let Some((wider, around)) = else_if(otherwise)
            && let Some(flow) = self.nested(&test, then, cond, wider, around)?
        {
            return Ok(flow);
        }
        // One of the two sides is a box; the other one is the border of it.
        let (inside, box_of, border) = match (self.is_box(&test), self.is_box(&opposite)) {
            // Where both are, the shorter text is the border's.
            (true, both) if !both || then.span.len() >= otherwise.span.len() => {
                (then, test, otherwise)
            }
            (true, _) => (otherwise, opposite, then),
            (false, true) => (otherwise, opposite, then),
            (false, false) => {
                return Err(self
                    .restrict(&test, &cond.span)
                    .err()
                    .unwrap_or_else(|| super::guard::not_a_box(&cond.span)));
            }
        };
        self.not_after_stores(&cond.span)?;
        self.at_the_border(border, &cond.span)?;
        self.inside(&box_of, inside, cond)
    }

    /// Do the statements under a condition do nothing but set whole numbers?
    pub(super) fn sets_indices(&self, then: &Block, otherwise: Option<&Block>) -> bool {
        let is_index = |expr: &Expr| match &expr.bare().kind {
            ExprKind::Name(name) => matches!(
                self.scopes.get(name),
                Some(Var::Int(_) | Var::Other(NOT_SET))
            ),
            _ => false,
        };
        let sets = |block: &Block| {
            let sets = |kind: &StmtKind| match kind {
                StmtKind::Expr(expr) => match &expr.bare().kind {
                    ExprKind::Assign(_, left, _) => is_index(left),
                    ExprKind::Update(_, _, target) => is_index(target),
                    _ => false,
                },
                StmtKind::If(_, then, otherwise) => self.sets_indices(then, otherwise.as_ref()),
                _ => false,
            };
            !block.statements.is_empty() && block.statements.iter().all(|s| sets(&s.kind))
        };
        sets(then) && otherwise.is_none_or(sets)
    }

    /// `if (l < 0) l = 0;`: each of the numbers is one of two, by the place of the point.
    pub(super) fn set_indices(
        &mut self,
        cond: &Expr,
        then: &Block,
        otherwise: Option<&Block>,
        span: &Span,
    ) -> Done<()> {
        let test = match self.condition(cond)? {
            Test::Known(true) => return self.block(then).map(|_| ()),
            Test::Known(false) => {
                let other = otherwise.map(|other| self.block(other));
                return other.unwrap_or(Ok(Flow::Next)).map(|_| ());
            }
            test => test,
        };
        let before = self.scopes.clone();
        self.block(then)?;
        let there = std::mem::replace(&mut self.scopes, before);
        if let Some(other) = otherwise {
            self.block(other)?;
        }
        self.merge(Some(&test), &there, then, otherwise, span)
    }

    /// After the two sides of a condition, on places if it is given: variables are one thing or the other, `there` being
    /// what they are after the first side.
    fn merge(
        &mut self,
        test: Option<&Test>,
        there: &Scopes<Var>,
        then: &Block,
        otherwise: Option<&Block>,
        span: &Span,
    ) -> Done<()> {
        let mut names: Vec<String> = Vec::new();
        for block in std::iter::once(then).chain(otherwise) {
            let sites = DefUse::of(block);
            names.extend(sites.carried().map(str::to_owned));
            names.extend(self.carried_cells(&sites));
        }
        names.sort();
        names.dedup();
        names.retain(|name| !matches!(self.scopes.get(name), Some(Var::Cells(_))));
        for name in names {
            let both = (there.get(&name), self.scopes.get(&name));
            if let (Some(Var::Real(element, _)), Some(Var::Real(..))) = both {
                let var = Var::Real(*element, None);
                self.scopes.assign(&name, var);
                continue;
            }
            let (Some(Var::Int(a)), Some(Var::Int(b))) = both else {
                let var = Var::Other("set under a condition");
                self.scopes.assign(&name, var);
                continue;
            };
            if a == b {
                continue;
            }
            let Some(test) = test else {
                let var = Var::Other("set under a condition on data");
                self.scopes.assign(&name, var);
                continue;
            };
            let (a, b) = (Val::Int(a.clone()), Val::Int(b.clone()));
            if let Val::Int(value) = self.either(test, a, b, span)? {
                self.scopes.assign(&name, Var::Int(value));
            }
        }
        Ok(())
    }

    /// Does a block do nothing but compute values of the point?
    fn sets_values(&self, block: &Block) -> bool {
        let is_value = |expr: &Expr| match &expr.bare().kind {
            ExprKind::Name(name) => matches!(
                self.scopes.get(name),
                // What the block declares itself is not known yet.
                None | Some(Var::Int(_) | Var::Real(..) | Var::Other(NOT_SET))
            ),
            _ => self.is_own(expr),
        };
        let sets = |kind: &StmtKind| match kind {
            StmtKind::Expr(expr) => match &expr.bare().kind {
                ExprKind::Assign(_, left, _) => is_value(left),
                ExprKind::Update(_, _, target) => is_value(target),
                _ => false,
            },
            StmtKind::Declare(declaration) => {
                !declaration.storage.iter().any(|w| w == "__shared__")
            }
            StmtKind::If(_, then, otherwise) => {
                self.sets_values(then) && otherwise.as_ref().is_none_or(|o| self.sets_values(o))
            }
            StmtKind::For(parts) => self.sets_values(&parts.body),
            StmtKind::Block(block) => self.sets_values(block),
            StmtKind::Directive(_) => true,
            StmtKind::Plain(word) => word == ";",
            StmtKind::While(..) | StmtKind::Return(_) => false,
        };
        !block.statements.is_empty() && block.statements.iter().all(|s| sets(&s.kind))
    }

    /// `if (x > 0) s += in[x - 1];`: what neighbours beyond an end leave out, or what stands for them.
    fn set_values(
        &mut self,
        test: &Test,
        opposite: &Test,
        then: &Block,
        otherwise: Option<&Block>,
        span: &Span,
    ) -> Done<()> {
        let sides = (
            Guard::Place(self.of_points(test)?),
            Guard::Place(self.of_points(opposite)?),
        );
        let there = self.two_sides(sides, then, otherwise, span)?;
        self.merge(Some(test), &there, then, otherwise, span)
    }

    /// Runs one block under a condition and another one where it does not hold; the variables after the first one.
    fn two_sides(
        &mut self,
        (guard, opposite): (Guard, Guard),
        then: &Block,
        otherwise: Option<&Block>,
        span: &Span,
    ) -> Done<Scopes<Var>> {
        let before = (self.scopes.clone(), self.unset.clone(), self.partly.clone());
        let mut flow = vec![self.guarded(guard, |machine| machine.block(then))?];
        let there = std::mem::replace(&mut self.scopes, before.0);
        let unset = std::mem::replace(&mut self.unset, before.1);
        let partly = std::mem::replace(&mut self.partly, before.2);
        if let Some(other) = otherwise {
            flow.push(self.guarded(opposite, |machine| machine.block(other))?);
        }
        if flow.iter().any(|flow| *flow != Flow::Next) {
            let what = "some points leave the kernel in the middle";
            return Err(Diagnostic::error("stencil::divergent", what)
                .label(span.clone(), "where this holds"));
        }
        self.partly.extend(partly);
        self.partly
            .extend(unset.symmetric_difference(&self.unset).cloned());
        self.unset.extend(unset);
        Ok(there)
    }

    /// Statements under a condition on data: what they compute is chosen, and stored only where it holds.
    fn by_data(
        &mut self,
        condition: Node,
        then: &Block,
        otherwise: Option<&Block>,
        span: &Span,
    ) -> Done<Flow> {
        let (name, _) = self.note_condition(condition);
        let guard = |holds| Guard::Data(name.clone(), holds);
        let nothing = Block::default();
        // `if (mask[c] == 0) return;`, also with stores before it: whatever follows does the others.
        if self.leaves(then).is_some() || self.ends_by_leaving(then) {
            let before = Block {
                statements: then.statements[..then.statements.len() - 1].to_vec(),
                ..then.clone()
            };
            let scopes = self.scopes.clone();
            let flow = self.guarded(guard(true), |machine| machine.block(&before))?;
            self.scopes = scopes;
            if flow != Flow::Next {
                return Err(super::guard::divergent(span));
            }
            self.choices.push(guard(false));
            return self.block(otherwise.unwrap_or(&nothing));
        }
        let sides = (guard(true), guard(false));
        let there = self.two_sides(sides, then, otherwise, span)?;
        self.merge(None, &there, then, otherwise, span)?;
        Ok(Flow::Next)
    }

    /// Keeps a condition on data in a variable, 1 where it holds, else 0: its name and type.
    pub(super) fn note_condition(&mut self, condition: Node) -> (String, Element) {
        // No variable of the source has a dot in its name.
        let name = format!("condition.{}", self.trace.actions.len());
        let (element, span) = (condition.element, condition.span.clone());
        let value = Some(Operand::Node(condition));
        self.act(Action::Declare(name.clone(), element, value, span));
        self.scopes.declare(&name, Var::Real(element, None));
        (name, element)
    }

    /// Runs something under a condition on the place of the point.
    pub(super) fn chosen<T>(
        &mut self,
        test: &Test,
        run: impl FnOnce(&mut Self) -> Done<T>,
    ) -> Done<T> {
        let guard = Guard::Place(self.of_points(test)?);
        self.guarded(guard, run)
    }

    fn guarded<T>(&mut self, guard: Guard, run: impl FnOnce(&mut Self) -> Done<T>) -> Done<T> {
        let before = self.choices.len();
        self.choices.push(guard);
        self.guarded += 1;
        let done = run(self);
        self.guarded -= 1;
        self.choices.truncate(before);
        done
    }

    /// A condition on nothing but places of points and sizes.
    pub(super) fn of_points(&self, test: &Test) -> Done<Test> {
        match test {
            Test::Compare(_, value, span) => {
                if self.trace.edges.has(value) {
                    let what = "a choice by a clamped or wrapped place is not understood";
                    return Err(Diagnostic::error("stencil::choice", what)
                        .label(span.clone(), "this condition"));
                }
                if value.is_raw() {
                    return Err(super::guard::not_on_places(span));
                }
            }
            Test::All(parts) | Test::Any(parts) => {
                for part in parts {
                    self.of_points(part)?;
                }
            }
            Test::Known(_) => {}
        }
        Ok(test.clone())
    }

    /// `if (inside) … else if (wider) …`, where whatever is inside is within the wider box, too: as
    /// `if (wider) { if (inside) … else … }`.
    fn nested(
        &mut self,
        test: &Test,
        then: &Block,
        cond: &Expr,
        wider: &Expr,
        around: &Block,
    ) -> Done<Option<Flow>> {
        let outer = self.condition(wider)?;
        if !self.is_box(test) || !self.is_box(&outer) || !self.implies(test, &outer) {
            return Ok(None);
        }
        self.not_after_stores(&cond.span)?;
        let before = self.domain.clone();
        self.restrict(&outer, &wider.span)?;
        self.at_the_border(around, &wider.span)?;
        let flow = self.inside(test, then, cond)?;
        self.domain = before;
        Ok(Some(flow))
    }

    /// Statements under a bounds test.
    fn inside(&mut self, test: &Test, then: &Block, cond: &Expr) -> Done<Flow> {
        self.inside_with(test, then, cond, |machine| machine.block(then))
    }

    fn inside_with(
        &mut self,
        test: &Test,
        then: &Block,
        cond: &Expr,
        run: impl FnOnce(&mut Self) -> Done<Flow>,
    ) -> Done<Flow> {
        self.not_after_stores(&cond.span)?;
        let outside = self.domain.clone();
        self.restrict(test, &cond.span)?;
        let choices = self.choices.len();
        let flow = run(self)?;
        self.choices.truncate(choices);
        self.domain = outside;
        // Whatever follows is for other points, and so is a variable that was set inside.
        self.closed = Some(cond.span.clone());
        for name in DefUse::of(then).carried() {
            if self.scopes.get(name).is_some() {
                self.scopes
                    .assign(name, Var::Other("set under a condition"));
            }
        }
        if flow != Flow::Next {
            let what = "some points leave the kernel in the middle";
            return Err(Diagnostic::error("stencil::divergent", what)
                .label(cond.span.clone(), "where this holds")
                .help("treat the boundary in a kernel of its own"));
        }
        Ok(Flow::Next)
    }

    /// Statements that fill shared memory under a condition.
    fn under(&mut self, test: Test, block: &Block) -> Done<Flow> {
        self.path.push(test);
        let flow = self.block(block);
        self.path.pop();
        flow
    }

    /// What the points do that a condition excludes from the box so far: all that was done before,
    /// and a block of stores. It is run on the side; the box is the one before the condition.
    fn at_the_border(&mut self, block: &Block, cond: &Span) -> Done<()> {
        let refuse = |what: &str| {
            Diagnostic::error("stencil::border", what.to_owned())
                .label(cond.clone(), "where this holds")
                .help("treat the boundary in a kernel of its own")
        };
        if self.trace.border.is_some() {
            return Err(refuse("a second kind of boundary is not understood"));
        }
        let domain = self.settled()?;
        let mut side = self.clone();
        let flow = side.block(block)?;
        let leaves = matches!(flow, Flow::Next | Flow::Return | Flow::Continue);
        if !leaves || side.trace.border.is_some() || side.barriers != self.barriers {
            return Err(refuse("what the boundary does is not understood"));
        }
        if side.stored.is_none() {
            return Err(refuse("the boundary stores nothing but does something"));
        }
        if side.trace.tile_reads.len() != self.trace.tile_reads.len() {
            return Err(refuse("the boundary reads shared memory"));
        }
        if side.trace.domain != domain {
            return Err(refuse("the boundary has conditions of its own"));
        }
        // Loads of the border are among the accesses; everything else of the side is forgotten.
        self.trace.accesses = side.trace.accesses;
        self.trace.arrays = side.trace.arrays;
        self.trace.scalars = side.trace.scalars;
        self.trace.valued = side.trace.valued;
        self.trace.kept = side.trace.kept;
        self.trace.places = side.trace.places;
        self.globals = side.globals;
        let mut actions = side.trace.actions;
        actions.retain(|action| !matches!(action, Action::Forget(_)));
        self.trace.border = Some(Border { domain, actions });
        Ok(())
    }

    /// A block that does nothing but leave: the kernel, or in a loop over points this point.
    fn leaves(&self, block: &Block) -> Option<Flow> {
        match block.statements.as_slice() {
            [only] => match &only.kind {
                StmtKind::Return(None) if self.loops == 0 => Some(Flow::Return),
                StmtKind::Plain(word) if word == "continue;" && self.in_points => {
                    Some(Flow::Continue)
                }
                _ => None,
            },
            _ => None,
        }
    }

    pub(super) fn not_after_stores(&self, span: &Span) -> Done<()> {
        let Some(stored) = &self.stored else {
            return Ok(());
        };
        let what = "statements stand under different conditions";
        Err(Diagnostic::error("stencil::divergent", what)
            .label(span.clone(), "this condition is not that of all statements")
            .label(stored.clone(), "stored before it")
            .help("put all stores under one bounds test"))
    }

    /// A block whose last statement leaves, and that does something before.
    fn ends_by_leaving(&self, block: &Block) -> bool {
        let leaves = |kind: &StmtKind| match kind {
            StmtKind::Return(None) => self.loops == 0,
            StmtKind::Plain(word) => word == "continue;" && self.in_points,
            _ => false,
        };
        let last = block.statements.last();
        block.statements.len() > 1 && last.is_some_and(|last| leaves(&last.kind))
    }
}

/// `else if (…) …` with nothing behind it.
fn else_if(otherwise: &Block) -> Option<(&Expr, &Block)> {
    match otherwise.statements.as_slice() {
        [only] => match &only.kind {
            StmtKind::If(cond, then, None) => Some((cond, then)),
            _ => None,
        },
        _ => None,
    }
}
