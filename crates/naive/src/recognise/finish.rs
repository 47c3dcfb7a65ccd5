//! What must hold of a kernel as a whole: each place that it uses is a dimension of its points, and the points do not
//! disturb each other.

use std::cell::RefCell;
use std::collections::BTreeSet;

use warpwright_cudac::affine::{Poly, Symbol};
use warpwright_cudac::diag::Span;
use warpwright_cudac::names::free;

use super::{Done, Machine, apart, problem, refused};
use crate::emit::names_of;
use crate::ir::{Flat, Index, Kernel, Statement, Value, any};

impl Machine<'_> {
    pub(super) fn finish(&mut self, name: &Span) -> Done<()> {
        if !self.kernel.arrays.iter().any(|a| a.stored) {
            return Err(problem(
                "naive::output",
                "the kernel stores nothing",
                name,
                "this kernel",
            ));
        }
        if let Some(axis) = self.places.conflict {
            let what = format!(
                "blocks of two sizes along {}",
                ["x", "y", "z"][usize::from(axis.min(2))]
            );
            return Err(refused(&what, name));
        }
        self.kernel.block = self.places.block;
        if !self.finish_flat() {
            return Err(refused("so many dimensions", name));
        }
        self.finish_blocks();
        let mut polys: Vec<(Poly, Span)> = Vec::new();
        for access in &self.kernel.accesses {
            if let Some(poly) = access.affine() {
                polys.push((poly.clone(), access.span.clone()));
            }
        }
        for counter in &self.kernel.loops {
            polys.push((counter.low.clone(), counter.span.clone()));
            polys.push((counter.high.clone(), counter.span.clone()));
        }
        self.kernel.values(&mut |value, _| {
            if let Value::Int(poly, _) = value {
                polys.push((poly.clone(), name.clone()));
            }
        });
        for (poly, at) in &polys {
            for symbol in poly.symbols() {
                match symbol {
                    Symbol::Global(_) | Symbol::BlockIdx(_) => {
                        self.dim(symbol);
                    }
                    Symbol::Size(_) | Symbol::Loop(_) => {}
                    Symbol::GridDim(_) => {
                        let at = self.grid.size.as_ref().unwrap_or(at);
                        return Err(refused("a loop over the grid, or `gridDim`", at));
                    }
                    _ => {
                        let what = "a place in the block, or the block's size, by itself";
                        return Err(refused(what, at));
                    }
                }
            }
        }
        self.kernel.dims.sort_by_key(|d| d.axis());
        if let [a, b, ..] = &self.kernel.dims[..]
            && a.axis() == b.axis()
        {
            return Err(refused("a block's place beside its threads' places", name));
        }
        // The launch has its places along x alone.
        let own = |f: &Flat| self.kernel.dims.len() == f.radices.len() + 1;
        if !self.kernel.flat.as_ref().is_none_or(own) {
            let what = "a place that is taken apart beside another one";
            return Err(refused(what, name));
        }
        if self.kernel.dims.is_empty() {
            return Err(refused("the same work in every thread", name));
        }
        for number in 0..self.kernel.dims.len() {
            let symbol = self.kernel.dims[number].symbol;
            let axis = self.kernel.dims[number].axis();
            let own = self.names.get(&symbol).cloned();
            let wish = own.unwrap_or_else(|| ["x", "y", "z", "w"][axis.min(3)].to_owned());
            // What was a place first may be a variable that changes further down.
            let taken = names_of(&self.kernel);
            self.kernel.dims[number].name = free(wish, |name| taken.contains(name));
        }
        self.independent(name)
    }

    /// Takes the threads of a block for the points along an axis where the kernel speaks of no blocks there.
    fn finish_blocks(&mut self) {
        for axis in 0..3u8 {
            let seen = RefCell::new(BTreeSet::new());
            let note = |poly: &mut Poly| seen.borrow_mut().extend(poly.symbols());
            self.kernel.map_polys(&note);
            let seen = seen.into_inner();
            let (own, place) = (Symbol::ThreadIdx(axis), Symbol::Global(axis));
            let others = [
                place,
                Symbol::BlockIdx(axis),
                Symbol::BlockDim(axis),
                Symbol::GridDim(axis),
            ];
            let is_alone = seen.contains(&own) && !others.iter().any(|s| seen.contains(s));
            if !is_alone || self.kernel.flat.is_some() {
                continue;
            }
            if self
                .kernel
                .dims
                .iter()
                .any(|d| d.axis() == usize::from(axis))
            {
                continue;
            }
            let renamed = |poly: &mut Poly| {
                if let Some(new) = poly.substituted(own, &Poly::symbol(place)) {
                    *poly = new;
                }
            };
            self.kernel.map_polys(&renamed);
            self.kernel.ranges.iter_mut().for_each(|(p, _)| renamed(p));
            self.kernel.single[usize::from(axis)] = true;
            self.dim(place);
        }
    }

    /// No point reads or stores what another one stores.
    ///
    /// Requires of every array that is stored to: all accesses to it have the same part that depends on places, and it
    /// depends on every dimension; or what is loaded lies where no point is (`outside`), the points are the smaller of
    /// row and column (`triangle`), or all store the same number that nobody reads (`mark`). Two points then have the
    /// same element only where rows are shorter than what is stored in them, and there the kernel as written races
    /// with itself.
    fn independent(&mut self, name: &Span) -> Done<()> {
        let mut stores = vec![Vec::new(); self.kernel.arrays.len()];
        for statement in &self.kernel.body {
            statement.walk(&mut |s| {
                if let Statement::Store { access, .. } = s {
                    stores[self.kernel.accesses[*access].array].push(*access);
                }
            });
        }
        let atomics = self.kernel.atomics();
        let counted = |array: usize| {
            let own = |a: &&usize| self.kernel.accesses[**a].array == array;
            atomics.iter().find(own).copied()
        };
        for (number, access) in self.kernel.accesses.iter().enumerate() {
            if let Some(first) = counted(access.array).filter(|_| !atomics.contains(&number)) {
                let array = &self.kernel.arrays[access.array].name;
                let what =
                    format!("`{array}` is changed atomically, and read or stored to as well");
                let at = &self.kernel.accesses[first].span;
                return Err(
                    problem("naive::independent", what, &access.span, "accessed here")
                        .label(at.clone(), "changed here"),
                );
            }
        }
        for (number, access) in self.kernel.accesses.iter().enumerate() {
            let own = &stores[access.array];
            let Some(&first) = own.first() else {
                continue;
            };
            if apart::mark(&self.kernel, access.array)
                || apart::triangle(&self.kernel, access.array)
            {
                continue;
            }
            let array = &self.kernel.arrays[access.array].name;
            let Index::Affine(poly) = &access.index else {
                let what = format!("`{array}` is stored to, and read at an unresolved index");
                return Err(problem(
                    "naive::independent",
                    what,
                    &access.span,
                    "read here",
                ));
            };
            let Some(stored) = self.kernel.accesses[first].affine() else {
                continue;
            };
            let is_outside = |store: &usize| {
                let store = self.kernel.accesses[*store].affine();
                store.is_some_and(|store| apart::outside(&self.kernel, poly, store))
            };
            if !own.contains(&number) && own.iter().all(is_outside) {
                continue;
            }
            let (a, b) = (of_places(poly), of_places(stored));
            if a != b {
                let what = format!("points may share elements of `{array}`, which is stored to");
                let at = &self.kernel.accesses[first].span;
                return Err(
                    problem("naive::independent", what, &access.span, "accessed here")
                        .label(at.clone(), "stored here"),
                );
            }
            for dim in self.kernel.dims.iter().filter(|dim| !dim.is_one()) {
                if !stored.symbols().contains(&dim.symbol) {
                    let what = format!(
                        "all points along `{}` store the same element of `{array}`",
                        dim.name
                    );
                    let at = &self.kernel.accesses[first].span;
                    return Err(problem("naive::independent", what, at, "stored here"));
                }
            }
        }
        let most = if self.kernel.flat.is_some() { 4 } else { 3 };
        if self.kernel.dims.len() > most {
            return Err(refused("so many dimensions", name));
        }
        Ok(())
    }
}

/// Notes from which arrays a point loads before it stores anything.
pub(super) fn note_order(kernel: &mut Kernel) {
    let mut late = vec![false; kernel.arrays.len()];
    order(kernel, &kernel.body, &mut false, &mut late);
    for (array, late) in kernel.arrays.iter_mut().zip(late) {
        array.early = !late && !array.stored;
    }
}

fn order(kernel: &Kernel, all: &[Statement], stored: &mut bool, late: &mut [bool]) {
    let stores = |all: &[Statement]| {
        any(all, |s| {
            matches!(s, Statement::Store { .. } | Statement::Atomic { .. })
        })
    };
    for statement in all {
        match statement {
            Statement::Loop(_, body) => {
                // What a turn stores comes before what the next one loads.
                *stored |= stores(body);
                order(kernel, body, stored, late);
            }
            Statement::While(cond, body) => {
                *stored |= stores(body);
                loads(kernel, cond, *stored, late);
                order(kernel, body, stored, late);
            }
            Statement::If(cond, then, otherwise) => {
                loads(kernel, cond, *stored, late);
                let before = *stored;
                order(kernel, then, stored, late);
                let mut other = before;
                order(kernel, otherwise, &mut other, late);
                *stored |= other;
            }
            other => {
                if let Statement::Store { access, .. } | Statement::Atomic { access, .. } = other
                    && let Index::Value(index) = &kernel.accesses[*access].index
                {
                    loads(kernel, index, *stored, late);
                }
                let value = other.value().into_iter();
                value.for_each(|v| loads(kernel, v, *stored, late));
                *stored |= stores(std::slice::from_ref(other));
            }
        }
    }
}

fn loads(kernel: &Kernel, value: &Value, stored: bool, late: &mut [bool]) {
    value.walk(false, &mut |v, _| {
        if let Value::Load(access) = v {
            let of = &kernel.accesses[*access];
            late[of.array] |= stored;
            if let Index::Value(index) = &of.index {
                loads(kernel, index, stored, late);
            }
        }
    });
}

/// The terms that depend on places.
fn of_places(poly: &Poly) -> Poly {
    let mut out = Poly::default();
    for (symbols, times) in poly.terms() {
        let place = |s: &Symbol| matches!(s, Symbol::Global(_) | Symbol::BlockIdx(_));
        if symbols.iter().any(place) {
            let mut term = Poly::constant(times);
            for symbol in symbols {
                // Terms of a polynomial multiply again to what they were.
                term = term.times(&Poly::symbol(*symbol)).unwrap_or_default();
            }
            out = out.plus(&term, 1).unwrap_or_default();
        }
    }
    out
}
