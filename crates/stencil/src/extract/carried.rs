//! Variables that a loop over points carries from one iteration to the next: running indices, and
//! columns of an array that are kept in registers.
//!
//! Goal: `idx += nx * ny;` and `below = center; center = above;` at the end of a marching loop are no
//! dependence between points: the value that an iteration begins with follows from its number.
//! Micikevicius (GPGPU 2009) writes stencils so.
//!
//! The body is executed once on the side, with an unknown in the place of each carried value. An
//! integer must then have grown by something that no iteration changes: it is its first value plus
//! that, times the number of the iteration. A floating-point variable must hold an element of an
//! array, or what another carried variable held: iteration k begins with what iteration k - 1 ended
//! with, and the first one with the value before the loop, which must be the same element.
//!
//! Requires: nothing is stored to an array whose elements are kept (checked at the end). Everything
//! else that is carried, such as a sum, is refused.

use std::collections::BTreeMap;

use super::machine::{Action, Done, Machine, RawAccess, Var};
use super::value::{Node, NodeKind};
use crate::ir::Element;
use warpwright_cudac::affine::{Poly, Symbol};
use warpwright_cudac::ast::For;
use warpwright_cudac::diag::{Diagnostic, Span};

/// What a carried variable is when an iteration begins.
#[derive(Clone)]
enum Start {
    Int(Poly),
    Pointer(super::value::Pointer),
    /// Nothing yet: it is assigned before it is read.
    Unset(Element),
    /// A leaf; the number of an access is one of the machine's own.
    Leaf(Node),
}

impl Machine<'_> {
    /// Opens the scope of a loop's carried variables, with their values at iteration `symbol`.
    pub(super) fn carry(
        &mut self,
        parts: &For,
        symbol: Symbol,
        first: i64,
        span: &Span,
    ) -> Done<()> {
        let mut names = self.carried_names(parts);
        let assigned = warpwright_cudac::def_use::DefUse::of(&parts.body);
        // The counter itself, and elements of a thread's own arrays.
        names.extend(self.carried_cells(&assigned));
        let mut starts = BTreeMap::new();
        if !names.is_empty() {
            starts = self.starts(parts, names, symbol, first, span)?;
        }
        self.scopes.open();
        for (name, start) in starts {
            let var = match start {
                Start::Int(value) => Var::Int(value),
                Start::Pointer(pointer) => Var::Pointer(pointer),
                Start::Unset(element) => {
                    let action = Action::Declare(name.clone(), element, None, span.clone());
                    self.trace.actions.push(action);
                    Var::Real(element, None)
                }
                Start::Leaf(node) => {
                    let element = node.element;
                    let leaf = Some(Box::new(node.clone()));
                    let value = Some(super::value::Operand::Node(node));
                    let action = Action::Declare(name.clone(), element, value, span.clone());
                    self.trace.actions.push(action);
                    Var::Real(element, leaf)
                }
            };
            self.scopes.declare(&name, var);
        }
        Ok(())
    }

    /// After the loop, what it carried is not known.
    pub(super) fn forget_carried(&mut self, parts: &For) {
        for name in self.carried_names(parts) {
            self.scopes
                .assign(&name, Var::Other("changed by a loop over points"));
        }
    }

    /// Elements of a thread's own arrays of outside, if the loop names their array.
    pub(super) fn carried_cells(&self, sites: &warpwright_cudac::def_use::DefUse) -> Vec<String> {
        let mut cells = Vec::new();
        for (name, sites) in sites.iter() {
            if !sites.declared.is_empty() {
                continue;
            }
            if let Some(Var::Cells(lengths)) = self.scopes.get(name) {
                let mut keys = vec![name.to_owned()];
                for length in lengths {
                    let longer = keys
                        .iter()
                        .flat_map(|key| (0..*length).map(move |n| format!("{key}.{n}")));
                    keys = longer.collect();
                }
                cells.extend(keys);
            }
        }
        cells
    }

    /// Executes the body on the side, and solves for the values at the beginning of an iteration.
    fn starts(
        &mut self,
        parts: &For,
        names: Vec<String>,
        symbol: Symbol,
        first: i64,
        span: &Span,
    ) -> Done<BTreeMap<String, Start>> {
        let mut side = self.clone();
        side.on_the_side = true;
        side.scopes.open();
        let mut unknowns = BTreeMap::new();
        for name in &names {
            let var = match self.scopes.get(name) {
                Some(Var::Int(_)) => {
                    let unknown = side.unknown();
                    unknowns.insert(name.clone(), unknown);
                    Var::Int(Poly::symbol(unknown))
                }
                Some(Var::Pointer(pointer)) if pointer.taken.is_empty() => {
                    let unknown = side.unknown();
                    unknowns.insert(name.clone(), unknown);
                    let mut pointer = pointer.clone();
                    pointer.offset = Poly::symbol(unknown);
                    Var::Pointer(pointer)
                }
                Some(Var::Real(element, known)) => {
                    let kind = NodeKind::Carried(name.clone());
                    let node = Node {
                        kind,
                        element: *element,
                        span: span.clone(),
                    };
                    // A variable without a value cannot be carried into the first iteration.
                    let declared = known.is_some();
                    let action = Action::Declare(name.clone(), *element, None, span.clone());
                    side.trace.actions.push(action);
                    Var::Real(*element, declared.then(|| Box::new(node)))
                }
                Some(Var::Other("not set")) => Var::Other("not set"),
                _ => return Err(carried(name, span)),
            };
            side.scopes.declare(name, var);
        }
        side.enter_tiles(&parts.body);
        side.block(&parts.body)?;
        // A `continue` that depends on the iteration leaves out what it carries.
        if side.domain.get(&symbol) != self.domain.get(&symbol) {
            return Err(carried(names.first().map_or("", |n| n), span));
        }
        let mut starts = BTreeMap::new();
        let iteration = Poly::symbol(symbol).plus(&Poly::constant(first), -1);
        let iteration = iteration.ok_or_else(|| carried("an index", span))?;
        for name in &names {
            let refuse = || carried(name, span);
            let (before, after) = match (self.scopes.get(name), side.scopes.get(name)) {
                (Some(Var::Int(before)), Some(Var::Int(after))) => (before, after),
                (Some(Var::Pointer(before)), Some(Var::Pointer(after)))
                    if before.base == after.base =>
                {
                    (&before.offset, &after.offset)
                }
                (Some(Var::Other("not set")), _) => continue,
                _ => continue,
            };
            let unknown = unknowns.get(name).ok_or_else(refuse)?;
            let by = after.plus(&Poly::symbol(*unknown), -1).ok_or_else(refuse)?;
            let changes =
                |s: &Symbol| matches!(s, Symbol::Unknown(_)) || *s == symbol || inner(*s, symbol);
            if by.symbols().iter().any(changes) {
                return Err(refuse());
            }
            let so_far = by.times(&iteration).ok_or_else(refuse)?;
            let value = before.plus(&so_far, 1).ok_or_else(refuse)?;
            let value = self.placed(value);
            let start = match self.scopes.get(name) {
                Some(Var::Pointer(pointer)) => {
                    let mut pointer = pointer.clone();
                    pointer.offset = value;
                    Start::Pointer(pointer)
                }
                _ => Start::Int(value),
            };
            starts.insert(name.clone(), start);
        }
        // What the accesses of the side say in terms of the iteration.
        let at = |poly: &Poly| -> Option<Poly> {
            let mut poly = poly.clone();
            for (name, unknown) in &unknowns {
                let value = match starts.get(name)? {
                    Start::Int(value) => value,
                    Start::Pointer(pointer) => &pointer.offset,
                    _ => return None,
                };
                poly = poly.substituted(*unknown, value)?;
            }
            Some(poly)
        };
        let mut reals = BTreeMap::new();
        for name in &names {
            if let Some(Var::Real(element, known)) = side.scopes.get(name) {
                let mut node = known.as_deref().cloned();
                if let Some(Node {
                    kind: NodeKind::Load(number),
                    ..
                }) = &node
                {
                    let access = &side.trace.accesses[*number];
                    let access = self.moved(access, &at).ok_or_else(|| carried(name, span))?;
                    side.trace.accesses.push(access);
                    let last = side.trace.accesses.len() - 1;
                    node = node.map(|node| Node {
                        kind: NodeKind::Load(last),
                        ..node
                    });
                }
                reals.insert(name.clone(), (*element, node));
            }
        }
        for (name, (element, _)) in &reals {
            let before = match self.scopes.get(name) {
                Some(Var::Real(_, known)) => known.as_deref().cloned(),
                _ => None,
            };
            let Some(before) = before else {
                starts.insert(name.clone(), Start::Unset(*element));
                continue;
            };
            let start = self.solve(&side, &reals, name, &before, (symbol, first), span)?;
            starts.insert(name.clone(), Start::Leaf(start));
        }
        Ok(starts)
    }

    /// What a floating-point variable holds when iteration `symbol` begins.
    fn solve(
        &mut self,
        side: &Machine<'_>,
        ends: &BTreeMap<String, (Element, Option<Node>)>,
        name: &str,
        before: &Node,
        (symbol, first): (Symbol, i64),
        span: &Span,
    ) -> Done<Node> {
        let refuse = || carried(name, span);
        let back = Poly::symbol(symbol)
            .plus(&Poly::constant(1), -1)
            .ok_or_else(refuse)?;
        // How many iterations ago it was loaded.
        let mut ago = Poly::symbol(symbol);
        let mut now = name.to_owned();
        for _ in 0..=ends.len() {
            let (_, end) = ends.get(&now).ok_or_else(refuse)?;
            let end = end.as_ref().ok_or_else(refuse)?;
            ago = ago.substituted(symbol, &back).ok_or_else(refuse)?;
            match &end.kind {
                NodeKind::Carried(other) if *other == now && now == name => {
                    // It never changes.
                    return Ok(before.clone());
                }
                NodeKind::Carried(other) => now.clone_from(other),
                NodeKind::Load(number) => {
                    let access = &side.trace.accesses[*number];
                    let at = |poly: &Poly| poly.substituted(symbol, &ago);
                    let access = self.moved(access, &at).ok_or_else(refuse)?;
                    let begin = |poly: &Poly| poly.substituted(symbol, &Poly::constant(first));
                    let begins = self.moved(&access, &begin).ok_or_else(refuse)?;
                    let NodeKind::Load(given) = &before.kind else {
                        return Err(refuse());
                    };
                    let given = self.trace.accesses[*given].clone();
                    if !self.same_element(&given, &begins) {
                        let what =
                            format!("`{name}` begins with another element than it goes on with");
                        return Err(Diagnostic::error("stencil::carried", what)
                            .label(given.span, "loaded before the loop")
                            .label(access.span, "loaded in the loop"));
                    }
                    self.trace.kept.push((access.array, access.span.clone()));
                    // The last iterations load what no other one uses.
                    self.trace.ahead.push(self.trace.accesses.len());
                    self.trace
                        .accesses
                        .push(side.trace.accesses[*number].clone());
                    self.trace.accesses.push(access);
                    return Ok(Node {
                        kind: NodeKind::Load(self.trace.accesses.len() - 1),
                        ..end.clone()
                    });
                }
                _ => return Err(refuse()),
            }
        }
        Err(refuse())
    }

    fn same_element(&mut self, a: &RawAccess, b: &RawAccess) -> bool {
        if a.array != b.array || a.lengths != b.lengths || a.subscripts.len() != b.subscripts.len()
        {
            return false;
        }
        let mut parts = |access: &RawAccess| -> Option<Vec<Poly>> {
            if access.lengths.is_empty() {
                let mut sum = access.offset.clone();
                for subscript in &access.subscripts {
                    sum = sum.plus(subscript, 1)?;
                }
                return Some(vec![self.placed(sum)]);
            }
            let mut all = vec![self.placed(access.offset.clone())];
            for subscript in &access.subscripts {
                all.push(self.placed(subscript.clone()));
            }
            Some(all)
        };
        match (parts(a), parts(b)) {
            (Some(a), Some(b)) => a == b,
            _ => false,
        }
    }

    /// An access with all its parts changed.
    fn moved(&self, access: &RawAccess, at: &impl Fn(&Poly) -> Option<Poly>) -> Option<RawAccess> {
        let edges = &self.trace.edges;
        let moved = |part: &Poly| edges.mapped(part, &mut |poly| at(poly));
        let subscripts = access.subscripts.iter().map(moved);
        Some(RawAccess {
            offset: moved(&access.offset)?,
            subscripts: subscripts.collect::<Option<_>>()?,
            ..access.clone()
        })
    }
}

/// Is a symbol the counter of a loop inside another one?
fn inner(symbol: Symbol, outer: Symbol) -> bool {
    match (symbol, outer) {
        (Symbol::Loop(inner), Symbol::Loop(outer)) => inner > outer,
        _ => false,
    }
}

fn carried(name: &str, span: &Span) -> Diagnostic {
    let what = format!("`{name}` is carried from one point to the next");
    Diagnostic::error("stencil::carried", what)
        .label(span.clone(), "changed by this loop over points")
        .help(
            "a running index grows by the same every time; a register holds an element of an array",
        )
}
