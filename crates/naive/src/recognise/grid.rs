//! Loops over the grid (`for (i = place; i < n; i += gridDim.x * blockDim.x)`): every turn is a point of its own,
//! whatever the launch, so the loop's counter takes the place of the thread's place, and a `continue` that of a `return`.
//!
//! Requires: the loop is all that the kernel does, its head alone says where it ends, and nothing is carried from a turn
//! to the next one. Outside of it nothing may depend on the thread's place, inside nothing but through the counter.

use std::collections::BTreeSet;

use warpwright_cudac::Scalar;
use warpwright_cudac::affine::{Poly, Symbol};
use warpwright_cudac::ast::{Block, Expr, Stmt, StmtKind};
use warpwright_cudac::diag::Span;

use super::statements::{as_for, step};
use super::{Done, Machine, Var, refused};
use crate::ir::{Index, Statement};

/// Loops over the grid around the present place.
#[derive(Clone, Debug, Default)]
pub(super) struct Grid {
    /// The axes that they go along.
    pub(super) axes: BTreeSet<u8>,
    /// A loop that stands here may be one.
    pub(super) may: bool,
    /// Where the text last speaks of the size of the grid.
    pub(super) size: Option<Span>,
    /// Variables with smaller numbers stand outside of the innermost.
    pub(super) before: usize,
}

impl Machine<'_> {
    /// Notes which variables only a loop counts in that has no first value of its own.
    pub(super) fn begin_counting(&mut self, body: &Block) {
        let mut steps = Vec::new();
        counted(body, &mut steps);
        for (name, at) in steps {
            let sites = self.uses.sites(&name);
            if sites.is_some_and(|s| s.assigned == [at]) {
                self.counting.insert(name, usize::MAX);
            }
        }
    }

    /// Does a statement end the work for a point?
    pub(super) fn leaves(&self, statement: &Stmt) -> bool {
        match (&statement.kind, self.grid.axes.is_empty()) {
            (StmtKind::Return(None), true) => true,
            (StmtKind::Plain(text), false) => text.starts_with("continue"),
            _ => false,
        }
    }

    /// A block that ends the work for a point, without its end; and whether it does anything before.
    pub(super) fn left_early(&self, block: &Block) -> Option<(Block, bool)> {
        let (last, rest) = block.statements.split_last()?;
        let statements = rest.to_vec();
        let left = Block {
            statements,
            ..block.clone()
        };
        self.leaves(last).then_some((left, !rest.is_empty()))
    }

    /// The place that a counter begins with, if its step is the number of all places of the launch.
    pub(super) fn over_grid(&self, low: &Poly, by: &Poly) -> Option<Symbol> {
        for axis in 0..3 {
            let grid = Poly::symbol(Symbol::GridDim(axis));
            if *by == grid && *low == Poly::symbol(Symbol::BlockIdx(axis)) {
                return Some(Symbol::BlockIdx(axis));
            }
            let threads = match self.places.block[usize::from(axis)] {
                Some(threads) => Poly::constant(threads),
                None => Poly::symbol(Symbol::BlockDim(axis)),
            };
            let place = match axis {
                0 => self.digits.place(0)?,
                axis => Poly::symbol(Symbol::Global(axis)),
            };
            if grid.times(&threads).as_ref() == Some(by) && *low == place {
                return Some(Symbol::Global(axis));
            }
        }
        None
    }

    /// A loop whose turns are the points along an axis.
    pub(super) fn grid_loop(
        &mut self,
        (name, scalar): (&str, Scalar),
        symbol: Symbol,
        cond: &Expr,
        body: &Block,
        at: &Span,
        out: &mut Vec<Statement>,
    ) -> Done<()> {
        let (Symbol::Global(axis) | Symbol::BlockIdx(axis)) = symbol else {
            return Err(refused("this loop over the grid", at));
        };
        let is_flat = symbol == Symbol::Global(0) && self.digits.are_split();
        let places: Vec<Symbol> = match symbol {
            Symbol::Global(0) => (0..self.digits.count())
                .map(|d| self.digits.symbol(d))
                .collect(),
            symbol => vec![symbol],
        };
        let last = places.last().copied().unwrap_or(symbol);
        let of_axis = |s: &Symbol| {
            places.contains(s)
                || matches!(s, Symbol::Global(a) | Symbol::BlockIdx(a) | Symbol::ThreadIdx(a)
                    | Symbol::BlockDim(a) | Symbol::GridDim(a) if *a == axis)
        };
        let is_bounded = match is_flat {
            true => !self.is_unbounded(),
            false => {
                let mut dims = self.kernel.dims.iter();
                dims.any(|d| d.symbol == symbol && !(d.low.is_empty() && d.high.is_empty()))
            }
        };
        if is_bounded || self.used.iter().any(of_axis) {
            let what = "the place of a thread outside of its loop over the grid";
            return Err(refused(what, at));
        }
        for meaning in self.scopes.meanings_mut() {
            let uses = match meaning {
                Var::Int(poly, _) => poly.symbols().iter().any(of_axis),
                Var::Pointer(pointer) => match &pointer.offset {
                    Index::Affine(poly) => poly.symbols().iter().any(of_axis),
                    Index::Value(_) => false,
                },
                _ => false,
            };
            if uses {
                *meaning = Var::Other("a place in the launch, inside a loop over the grid");
            }
        }
        self.scopes.open();
        let place = match symbol {
            Symbol::Global(0) => self.digits.place(0),
            symbol => Some(Poly::symbol(symbol)),
        };
        let place = place.ok_or_else(|| refused("this loop over the grid", at))?;
        self.named(&place, name);
        if let super::Val::Int(place, scalar) = self.int(place, scalar) {
            self.scopes.declare(name, Var::Int(place, scalar));
        }
        self.grid.axes.insert(axis);
        // The head says where the points end, and nothing else of them.
        let left = self.guards(cond, false)?;
        let flat = self.kernel.flat.iter().filter(|_| is_flat);
        let mut ends: usize = flat.map(|f| f.high.len()).sum();
        let mut others = 0;
        for dim in &self.kernel.dims {
            match places.contains(&dim.symbol) {
                true if dim.symbol == last => ends += dim.high.len(),
                // Each has its radix.
                true => others += dim.high.len() - 1,
                false => continue,
            }
            others += dim.low.len();
        }
        if left.is_some() || ends == 0 || others > 0 {
            let what = "a loop over the grid whose end is not a sum of sizes";
            return Err(refused(what, at));
        }
        self.dim(last).whole = true;
        let before = std::mem::replace(&mut self.grid.before, self.kernel.variables.len());
        self.turning += 1;
        let done = self.block(body, true);
        self.turning -= 1;
        self.grid.before = before;
        self.grid.axes.remove(&axis);
        self.scopes.close();
        out.extend(done?);
        self.open = false;
        Ok(())
    }
}

/// The steps of all loops without a first value, and where they stand.
fn counted(block: &Block, out: &mut Vec<(String, Span)>) {
    block.walk(&mut |statement| {
        let by = match &statement.kind {
            StmtKind::For(parts) if parts.init.is_none() => parts.step.clone(),
            StmtKind::While(cond, body) => as_for(cond, body).and_then(|parts| parts.step),
            _ => None,
        };
        let by = by
            .iter()
            .filter_map(|by| Some((step(by)?.0.to_owned(), by)));
        out.extend(by.map(|(name, by)| (name, by.bare().span.clone())));
    });
}
