//! A tile in shared memory, undone: what is read from it is an element of the array that filled it.
//!
//! Goal: a tutorial's tile (every thread loads its element, some load the halo, `__syncthreads()`,
//! compute from the tile) says the same as reads of the array; whoever generates code builds tiles of
//! its own. Undoing is safe in these steps:
//!
//! - Stores are collected as *sites*: subscripts, value, and the conditions under which a thread gets
//!   there. A site with one thread index or counter to each subscript tells which element of the
//!   array a cell holds, as a function of the cell and the block.
//! - All other sites must agree with that function (as polynomials, where a condition `== c` fixes a
//!   thread index), so a cell holds the same whoever filled it.
//! - A barrier stands between stores and reads, and between reads and the next stores, also from one
//!   iteration of a loop to the next. Otherwise the kernel is refused.
//! - Every cell that a computed point reads was filled, and with an element (`cover.rs`).
//!
//! Requires: the array is not written by the kernel (checked at the end). What a cell holds beyond
//! these elements, such as zeros at the border of the domain, must not be read by a computed point.

use super::loops::Counter;
use super::machine::{Done, Flow, Machine, Var};
use super::value::{Base, Node, NodeKind, Pointer, Val, Valued, not_understood};
use crate::ir::Element;
use warpwright_cudac::affine::{Poly, Relation, Symbol, Test};
use warpwright_cudac::ast::{Block, Declaration, Expr, ExprKind, For, StmtKind, Type};
use warpwright_cudac::diag::{Diagnostic, Span};

/// An array in shared memory.
#[derive(Clone, Debug)]
pub(super) struct Tile {
    pub(super) name: String,
    pub(super) element: Element,
    pub(super) lengths: Vec<i64>,
    /// Its contents one after the other: a store behind a read begins new ones.
    pub(super) generations: Vec<Vec<Site>>,
    was_read: bool,
    /// The number of barriers before the last read.
    last_read: Option<usize>,
}

/// A store to a tile.
#[derive(Clone, Debug)]
pub(super) struct Site {
    /// Blocks and threads, no places in the grid.
    pub(super) index: Vec<Poly>,
    pub(super) filled: Filled,
    pub(super) tests: Vec<Test>,
    /// Those of the tests that stand around this store.
    path: Vec<Test>,
    pub(super) strided: Vec<Strided>,
    pub(super) derived: Vec<Derived>,
    barriers: usize,
    pub(super) span: Span,
}

/// What a cell is filled with.
#[derive(Clone, Debug)]
pub(super) enum Filled {
    /// An element: the array, the lengths of its rows, offset and subscripts.
    Element(usize, Vec<Poly>, Vec<Poly>),
    /// A number: zero outside of the grid.
    Number(f64),
    /// Something else.
    Other,
}

/// A loop in which each thread takes the cells from `first` on, in steps.
#[derive(Clone, Debug)]
pub(super) struct Strided {
    pub(super) counter: Symbol,
    pub(super) first: Poly,
    pub(super) step: Poly,
    pub(super) test: Test,
}

/// A quotient or remainder of a place in the block.
#[derive(Clone, Debug)]
pub(super) struct Derived {
    pub(super) symbol: Symbol,
    pub(super) of: Poly,
    pub(super) by: i64,
    pub(super) remainder: bool,
}

/// A read of a tile.
#[derive(Clone, Debug)]
pub(super) struct TileRead {
    pub(super) tile: usize,
    pub(super) generation: usize,
    pub(super) index: Vec<Poly>,
    /// Where the cell holds an element, and the number that it holds elsewhere.
    pub(super) held: Option<(Test, f64)>,
    pub(super) span: Span,
}

/// Tiles that a loop fills, and the barriers before it.
pub(super) struct Entered {
    tiles: Vec<(usize, usize)>,
    barriers: usize,
}

impl Machine<'_> {
    /// `__shared__ float tile[H][W];`
    pub(super) fn declare_tiles(&mut self, declaration: &Declaration, span: &Span) -> Done<()> {
        if declaration.storage.iter().any(|w| w == "extern") {
            let what = "shared memory whose size the launch says is not understood";
            return Err(Diagnostic::error("stencil::shared", what)
                .label(span.clone(), "no size here")
                .help("give the array its size: `__shared__ float tile[H][W];`"));
        }
        for variable in &declaration.variables {
            let mut lengths = Vec::new();
            let mut ty = self.resolved(&variable.ty);
            while let Type::Array(of, length) = ty {
                let length = match length {
                    Some(length) => match self.operand(&length, "[]")? {
                        Val::Int(length) => length.as_constant(),
                        _ => None,
                    },
                    None => None,
                };
                let length = length.filter(|length| *length > 0);
                lengths
                    .push(length.ok_or_else(|| not_understood("an array of this length", span))?);
                ty = of.bare().clone();
            }
            let element = self.data_element(&ty).filter(|_| !lengths.is_empty());
            let Some(element) = element.filter(|_| variable.init.is_none()) else {
                return Err(not_understood("this variable in shared memory", span));
            };
            let name = &variable.name.text;
            let tile = self.tiles.len();
            let rows = lengths.iter().skip(1).map(|n| Poly::constant(*n)).collect();
            self.tiles.push(Tile {
                name: name.clone(),
                element,
                lengths,
                generations: vec![Vec::new()],
                was_read: false,
                last_read: None,
            });
            let pointer = Pointer {
                base: Base::Tile(tile),
                ..Pointer::new(0, rows)
            };
            self.scopes.declare(name, Var::Pointer(pointer));
        }
        Ok(())
    }

    /// Is an expression an element of a tile?
    pub(super) fn is_tile(&self, expr: &Expr) -> bool {
        tile_of(self, expr).is_some()
    }

    /// `tile[y][x] = value;`
    pub(super) fn store_tile(&mut self, left: &Expr, right: &Expr, span: &Span) -> Done<()> {
        if let ExprKind::Conditional(cond, a, b) = &right.bare().kind {
            let test = self.condition(cond)?;
            let opposite = test
                .opposite()
                .ok_or_else(|| super::guard::divergent(&cond.span))?;
            for (test, value) in [(test, a), (opposite, b)] {
                match test {
                    Test::Known(false) => continue,
                    Test::Known(true) => self.store_tile(left, value, span)?,
                    test => {
                        self.path.push(test);
                        let stored = self.store_tile(left, value, span);
                        self.path.pop();
                        stored?;
                    }
                }
            }
            return Ok(());
        }
        if !self.choices.is_empty() {
            let what = "shared memory that is filled under a condition on data";
            return Err(not_understood(what, span));
        }
        let pointer = self.tile_pointer(left)?;
        let Base::Tile(tile) = pointer.base else {
            return Err(not_understood("this target", &left.span));
        };
        let index = self.cell_index(&pointer, &left.span)?;
        let before = self.trace.accesses.len();
        let value = self.value(right)?;
        let element = self.tiles[tile].element;
        let leaf = match &value {
            Val::Real(_) => {
                let value = self.as_operand(value.clone(), span)?;
                self.leaf_of(&value, element)
            }
            _ => None,
        };
        let filled = match leaf.map(|leaf| leaf.kind) {
            Some(NodeKind::Number(value)) => Filled::Number(value),
            None if let Val::Int(value) = &value
                && let Some(known) = value.as_constant() =>
            {
                Filled::Number(element.wrapped(known))
            }
            Some(NodeKind::Load(number)) => {
                let access = self.trace.accesses[number].clone();
                let mut parts = vec![access.offset];
                parts.extend(access.subscripts);
                let (edges, places) = (&self.trace.edges, &self.trace.places);
                let split: Option<Vec<Poly>> = parts
                    .iter()
                    .map(|part| edges.mapped(part, &mut |poly| places.split(poly)))
                    .collect();
                let parts = split.ok_or_else(|| super::value::not_affine(span))?;
                self.trace.kept.push((access.array, access.span));
                Filled::Element(access.array, access.lengths, parts)
            }
            _ => Filled::Other,
        };
        // What fills a tile is no access of a point.
        self.trace.accesses.truncate(before);
        let mut tests = self.path.clone();
        tests.extend(self.domain_tests());
        // Cells are counted out without clamped or wrapped places.
        let edges = &self.trace.edges;
        let in_test = |test: &Test| {
            let parts = test.conjuncts();
            parts.is_none_or(|parts| parts.iter().any(|(_, value, _)| edges.has(value)))
        };
        if index.iter().any(|at| edges.has(at)) || edges.any() && tests.iter().any(in_test) {
            let what = "a cell of shared memory at a clamped or wrapped place is not understood";
            return Err(Diagnostic::error("stencil::shared", what).label(span.clone(), "here"));
        }
        let site = Site {
            index,
            filled,
            tests,
            path: self.path.clone(),
            strided: self.strided.clone(),
            derived: self.derived.clone(),
            barriers: self.barriers,
            span: span.clone(),
        };
        let barriers = self.barriers;
        let tile = &mut self.tiles[tile];
        if tile.last_read == Some(barriers) {
            return Err(no_barrier(
                &tile.name,
                span,
                "other threads may still read it",
            ));
        }
        if std::mem::take(&mut tile.was_read) {
            tile.generations.push(Vec::new());
        }
        if let Some(generation) = tile.generations.last_mut() {
            generation.push(site);
        }
        Ok(())
    }

    /// `__syncthreads();`
    pub(super) fn barrier(&mut self, span: &Span) -> Done<()> {
        let mut places = self.domain.keys();
        let some = places.any(|place| matches!(place, Symbol::ThreadIdx(_)));
        if some || !self.path.is_empty() || !self.strided.is_empty() || !self.choices.is_empty() {
            let what = "not all threads arrive at this barrier";
            return Err(Diagnostic::error("stencil::barrier", what).label(span.clone(), "here"));
        }
        self.barriers += 1;
        Ok(())
    }

    /// The element that a cell holds.
    pub(super) fn load_tile(&mut self, tile: usize, pointer: &Pointer, span: &Span) -> Valued<Val> {
        let index = self.cell_index(pointer, span)?;
        let barriers = self.barriers;
        let read = &mut self.tiles[tile];
        let generation = read.generations.len().saturating_sub(1);
        let sites = read.generations.last().cloned().unwrap_or_default();
        if sites.is_empty() {
            let what = format!("`{}` is read before it is filled", read.name);
            return Err(Diagnostic::error("stencil::shared", what).label(span.clone(), "read here"));
        }
        if let Some(site) = sites.iter().find(|site| site.barriers == barriers) {
            let problem = no_barrier(&read.name, span, "other threads may not have filled it");
            return Err(problem.label(site.span.clone(), "filled here"));
        }
        read.was_read = true;
        read.last_read = Some(barriers);
        if self.on_the_side {
            // What a loop carries is not known yet, and so is what it fills tiles with.
            return Ok(Val::Real(Node {
                kind: NodeKind::Carried(String::new()),
                element: read.element,
                span: span.clone(),
            }));
        }
        let name = read.name.clone();
        let element = self.element_at(&name, &sites, &index, span)?;
        let held = self.held_at(&sites, &index, span)?;
        let (array, lengths, mut parts) = element;
        let mut merged = Vec::new();
        let edges = self.trace.edges.clone();
        for part in parts.drain(..) {
            let placed = edges.mapped(&part, &mut |poly| Some(self.placed(poly.clone())));
            merged.push(placed.ok_or_else(|| super::value::not_affine(span))?);
        }
        let mut taken = merged;
        let offset = taken.remove(0);
        self.trace.tile_reads.push(TileRead {
            tile,
            generation,
            index,
            held: held.clone(),
            span: span.clone(),
        });
        let pointer = Pointer {
            base: Base::Array(array),
            offset,
            lengths,
            taken,
        };
        let load = self.load(pointer, span);
        let Some((test, number)) = held else {
            return Ok(Val::Real(load));
        };
        let number = Node {
            kind: NodeKind::Number(number),
            ..load.clone()
        };
        self.either(&test, Val::Real(load), Val::Real(number), span)
    }

    /// Where a cell holds an element, if some stores fill cells with a number: where the conditions on places hold that
    /// stand around the stores of elements. Counting out the cells shows whether that is all.
    fn held_at(
        &mut self,
        sites: &[Site],
        index: &[Poly],
        span: &Span,
    ) -> Valued<Option<(Test, f64)>> {
        let numbers = sites.iter().filter_map(|site| match site.filled {
            Filled::Number(number) => Some((number, &site.span)),
            _ => None,
        });
        let mut numbers = numbers.collect::<Vec<_>>().into_iter();
        let Some((number, _)) = numbers.next() else {
            return Ok(None);
        };
        if let Some((_, other)) = numbers.find(|(other, _)| other.to_bits() != number.to_bits()) {
            let what = "shared memory that is filled with two numbers is not understood";
            return Err(Diagnostic::error("stencil::shared", what)
                .label(other.clone(), "another number")
                .label(span.clone(), "read here"));
        }
        let mut all: Vec<Test> = Vec::new();
        for site in sites {
            let (Filled::Element(..), Some(solved)) = (&site.filled, solved(site)) else {
                continue;
            };
            if solved.iter().any(|(symbol, _)| symbol.is_none()) {
                continue;
            }
            let conjuncts = site.path.iter().filter_map(Test::conjuncts).flatten();
            for (relation, value, at) in conjuncts {
                let split = self.trace.places.split(value);
                let moved = split.and_then(|value| at_cell(&value, &solved, index));
                let Some(value) = moved.map(|value| self.placed(value)) else {
                    continue;
                };
                // What is on the thread says who fills the cell.
                if value.is_raw() || value.points().is_empty() {
                    continue;
                }
                let test = Test::compare(relation, value, at.clone());
                if !all.contains(&test) {
                    all.push(test);
                }
            }
        }
        if all.is_empty() {
            return Ok(None);
        }
        Ok(Some((Test::All(all), number)))
    }

    /// The element of a cell, from the site that tells; the others agree with it.
    fn element_at(
        &self,
        name: &str,
        sites: &[Site],
        index: &[Poly],
        span: &Span,
    ) -> Valued<(usize, Vec<Poly>, Vec<Poly>)> {
        let refuse = |what: &str, at: &Span| {
            let what = format!("what `{name}` holds is not understood: {what}");
            Diagnostic::error("stencil::shared", what)
                .label(at.clone(), "filled here")
                .label(span.clone(), "read here")
        };
        let tellers = sites.iter().rev().filter_map(|site| match &site.filled {
            Filled::Element(array, lengths, parts) => {
                let solved = solved(site)?;
                Some((site, *array, lengths, parts, solved))
            }
            Filled::Number(_) | Filled::Other => None,
        });
        // The one that says most: the first of those with most symbols.
        let told = tellers.max_by_key(|(.., solved)| {
            solved.iter().filter(|(symbol, _)| symbol.is_some()).count()
        });
        let Some((teller, array, lengths, parts, solved)) = told else {
            let at = sites.first().map_or(span, |site| &site.span);
            return Err(refuse(
                "no store has one thread index to each subscript",
                at,
            ));
        };
        let edges = &self.trace.edges;
        let function = |cell: &[Poly]| -> Option<Vec<Poly>> {
            let mut all = Vec::new();
            for part in parts {
                all.push(edges.mapped(part, &mut |poly| at_cell(poly, &solved, cell))?);
            }
            Some(all)
        };
        for site in sites {
            let Filled::Element(other, rows, values) = &site.filled else {
                continue;
            };
            let wrong = || refuse("two stores fill a cell with different elements", &site.span);
            if *other != array || rows != lengths || values.len() != parts.len() {
                return Err(wrong());
            }
            let expected = function(&site.index).ok_or_else(wrong)?;
            for (expected, value) in expected.iter().zip(values) {
                let difference = expected.plus(value, -1).ok_or_else(wrong)?;
                let difference = edges.mapped(&difference, &mut |poly| fixed(poly, &site.tests));
                if !difference.is_some_and(|d| d.is_zero()) {
                    return Err(wrong());
                }
            }
            for ((symbol, add), at) in solved.iter().zip(&site.index) {
                // A subscript that is a number is the same one everywhere.
                if symbol.is_none() && at.as_constant() != Some(*add) {
                    return Err(wrong());
                }
            }
        }
        for ((symbol, add), at) in solved.iter().zip(index) {
            if symbol.is_none() && at.as_constant() != Some(*add) {
                return Err(refuse("another cell is read than is filled", &teller.span));
            }
        }
        let found = function(index).ok_or_else(|| refuse("too large", &teller.span))?;
        Ok((array, lengths.clone(), found))
    }

    /// The subscripts of a cell in terms of blocks and threads.
    fn cell_index(&self, pointer: &Pointer, span: &Span) -> Valued<Vec<Poly>> {
        if pointer.taken.len() != pointer.lengths.len() + 1 || !pointer.offset.is_zero() {
            return Err(not_understood("this use of shared memory", span));
        }
        let index = pointer.taken.iter().map(|at| self.trace.places.split(at));
        let index: Option<Vec<Poly>> = index.collect();
        index.ok_or_else(|| super::value::not_affine(span))
    }

    fn tile_pointer(&mut self, left: &Expr) -> Valued<Pointer> {
        let target = self.expanded(left)?.into_owned();
        match &target.bare().kind {
            ExprKind::Index(base, index) => self.subscripted(base, index),
            _ => Err(not_understood("this target", &left.span)),
        }
    }

    /// The bounds so far as tests.
    pub(super) fn domain_tests(&self) -> Vec<Test> {
        let mut tests = Vec::new();
        let at_least_zero = |value: Option<Poly>, span: &Span| {
            value.map(|value| Test::compare(Relation::NotNegative, value, span.clone()))
        };
        for (symbol, bounds) in &self.domain {
            let place = Poly::symbol(*symbol);
            tests.extend(at_least_zero(
                place.plus(&Poly::constant(bounds.low), -1),
                &(0..0),
            ));
            for (end, span) in &bounds.ends {
                let last = end.plus(&Poly::constant(1), -1);
                tests.extend(at_least_zero(
                    last.and_then(|last| last.plus(&place, -1)),
                    span,
                ));
            }
            for (value, span) in &bounds.without {
                let difference = place.plus(value, -1);
                tests.extend(
                    difference.map(|value| Test::compare(Relation::NotZero, value, span.clone())),
                );
            }
        }
        tests
    }

    /// `for (int i = threadIdx.y; i < H; i += blockDim.y) tile[i][…] = …;`
    pub(super) fn fill_loop(&mut self, parts: &For, counter: &Counter, span: &Span) -> Done<Flow> {
        let strange = || not_understood("this loop over shared memory", span);
        if !self.carried_names(parts).is_empty() {
            return Err(strange());
        }
        let symbol = self.unknown();
        self.set_counter(counter, Poly::symbol(symbol));
        let cond = parts.cond.as_ref().ok_or_else(strange)?;
        let test = self.condition(cond)?;
        let places = &self.trace.places;
        let first = places.split(&counter.first).ok_or_else(strange)?;
        let step = places.split(&counter.step).ok_or_else(strange)?;
        self.strided.push(Strided {
            counter: symbol,
            first,
            step,
            test,
        });
        let flow = self.block(&parts.body);
        self.strided.pop();
        match flow? {
            Flow::Next => Ok(Flow::Next),
            _ => Err(strange()),
        }
    }

    /// A quotient or remainder of a place in the block, as an unknown.
    pub(super) fn derive(&mut self, of: &Poly, by: i64, remainder: bool) -> Option<Poly> {
        if by <= 0 || !of.is_raw() || !of.points().is_empty() {
            return None;
        }
        let of = self.trace.places.split(of)?;
        let symbol = self.unknown();
        self.derived.push(Derived {
            symbol,
            of,
            by,
            remainder,
        });
        Some(Poly::symbol(symbol))
    }

    /// A loop over points begins: what it fills holds nothing yet.
    pub(super) fn enter_tiles(&mut self, body: &Block) -> Entered {
        let mut filled = Vec::new();
        filled_tiles(self, body, &mut filled);
        filled.sort_unstable();
        filled.dedup();
        let mut tiles = Vec::new();
        for tile in filled {
            let generations = &mut self.tiles[tile].generations;
            tiles.push((tile, generations.len()));
            generations.push(Vec::new());
            self.tiles[tile].was_read = false;
        }
        Entered {
            tiles,
            barriers: self.barriers,
        }
    }

    /// The loop ends: its next iteration must not overwrite what this one may still read.
    pub(super) fn leave_tiles(&mut self, entered: &Entered, span: &Span) -> Done<()> {
        for (tile, from) in &entered.tiles {
            let tile = &self.tiles[*tile];
            let own = tile.generations.iter().skip(*from).flatten();
            let mut early = own.filter(|site| site.barriers == entered.barriers);
            if let Some(site) = early.next()
                && tile.last_read == Some(self.barriers)
            {
                let problem = no_barrier(
                    &tile.name,
                    &site.span,
                    "the iteration before may still read it",
                );
                return Err(problem.label(span.clone(), "in this loop"));
            }
        }
        Ok(())
    }
}

/// The symbol and the number of each subscript, if each has a symbol of its own or none.
fn solved(site: &Site) -> Option<Vec<(Option<Symbol>, i64)>> {
    let mut all: Vec<(Option<Symbol>, i64)> = Vec::new();
    for at in &site.index {
        let symbols = at.symbols();
        let symbol = match symbols.as_slice() {
            [] => None,
            [symbol @ (Symbol::ThreadIdx(_) | Symbol::Unknown(_))] => Some(*symbol),
            _ => return None,
        };
        let alone = symbol.map_or_else(Poly::default, Poly::symbol);
        let add = at.plus(&alone, -1)?.as_constant()?;
        if symbol.is_some() && all.iter().any(|(s, _)| *s == symbol) {
            return None;
        }
        all.push((symbol, add));
    }
    Some(all)
}

/// A value of the thread that fills a cell, for another cell.
fn at_cell(value: &Poly, solved: &[(Option<Symbol>, i64)], cell: &[Poly]) -> Option<Poly> {
    let mut value = value.clone();
    for (symbol, _) in solved {
        // First away from symbols that the cell may have itself.
        if let Some(symbol) = symbol {
            value = value.substituted(*symbol, &Poly::symbol(hidden(*symbol)))?;
        }
    }
    for ((symbol, add), at) in solved.iter().zip(cell) {
        if let Some(symbol) = symbol {
            let at = at.plus(&Poly::constant(*add), -1)?;
            value = value.substituted(hidden(*symbol), &at)?;
        }
    }
    Some(value)
}

/// A symbol that no kernel has, one for each of a site's.
fn hidden(symbol: Symbol) -> Symbol {
    let number = match symbol {
        Symbol::ThreadIdx(axis) => usize::from(axis),
        Symbol::Unknown(number) => number + 3,
        _ => 0,
    };
    Symbol::Unknown(usize::MAX - number)
}

/// A value where conditions fix thread indices.
fn fixed(value: &Poly, tests: &[Test]) -> Option<Poly> {
    let mut value = value.clone();
    for test in tests {
        let Some(parts) = test.conjuncts() else {
            continue;
        };
        for (relation, difference, _) in parts {
            if relation != Relation::Zero {
                continue;
            }
            for axis in 0..3 {
                let thread = Symbol::ThreadIdx(axis);
                let by = difference.coefficient(thread).and_then(|c| c.as_constant());
                let Some(by @ (1 | -1)) = by else { continue };
                let rest = difference.plus(&Poly::symbol(thread), -by)?;
                if rest.symbols().contains(&thread) {
                    continue;
                }
                let is = Poly::default().plus(&rest, -by)?;
                value = value.substituted(thread, &is)?;
            }
        }
    }
    Some(value)
}

/// The tile that an expression is an element of.
fn tile_of(machine: &Machine<'_>, expr: &Expr) -> Option<usize> {
    let expanded = machine.expanded(expr).ok()?;
    let mut base = expanded.bare();
    if !matches!(base.kind, ExprKind::Index(..)) {
        return None;
    }
    while let ExprKind::Index(inner, _) = &base.kind {
        base = inner.bare();
    }
    let ExprKind::Name(name) = &base.kind else {
        return None;
    };
    match machine.variable(name) {
        Some(Var::Pointer(Pointer {
            base: Base::Tile(tile),
            ..
        })) => Some(*tile),
        _ => None,
    }
}

/// Does a block do nothing but fill tiles?
pub(super) fn fills_tiles(machine: &Machine<'_>, block: &Block) -> bool {
    let fills = |kind: &StmtKind| match kind {
        StmtKind::Expr(expr) => match &expr.bare().kind {
            ExprKind::Assign(op, left, _) => op == "=" && machine.is_tile(left),
            _ => false,
        },
        StmtKind::Declare(_) | StmtKind::Directive(_) => true,
        StmtKind::If(_, then, otherwise) => {
            let other = otherwise.as_ref();
            fills_tiles(machine, then) && other.is_none_or(|other| fills_tiles(machine, other))
        }
        StmtKind::For(parts) => fills_tiles(machine, &parts.body),
        StmtKind::Block(block) => fills_tiles(machine, block),
        StmtKind::Plain(word) => word == ";",
        StmtKind::While(..) | StmtKind::Return(_) => false,
    };
    !machine.tiles.is_empty() && block.statements.iter().all(|s| fills(&s.kind))
}

/// The tiles that a block fills somewhere.
fn filled_tiles(machine: &Machine<'_>, block: &Block, found: &mut Vec<usize>) {
    block.walk(&mut |statement| {
        if let StmtKind::Expr(expr) = &statement.kind
            && let ExprKind::Assign(_, left, _) = &expr.bare().kind
        {
            found.extend(tile_of(machine, left));
        }
    });
}

fn no_barrier(name: &str, span: &Span, label: &str) -> Diagnostic {
    let what = format!("there is no barrier between stores to `{name}` and reads of it");
    Diagnostic::error("stencil::barrier", what)
        .label(span.clone(), label)
        .help("put `__syncthreads()` between them")
}
