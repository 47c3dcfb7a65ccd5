//! Are the cells of a tile filled that the computed points read?
//!
//! The stores of a block and the reads of its points are counted out, thread by thread, for sizes
//! around multiples of the block, in the blocks at the edges and beside them. A cell that is read
//! where nothing was stored has no defined value, so nothing is lost where a size that was not tried
//! has one; a cell that some store fills with another value than an element is tried at every
//! remainder of every size by the block.
//!
//! A tile may be filled with elements that no computed point reads. The kernel reads them nevertheless, so an array is
//! at least as long ([`Trace::furthest`](super::machine::Trace)).

use std::collections::{BTreeMap, BTreeSet};

use super::machine::{Done, Machine};
use super::tile::{Filled, Site, TileRead};
use warpwright_cudac::affine::{Poly, Relation, Symbol, Test};
use warpwright_cudac::diag::{Diagnostic, Span};

/// Most iterations of a loop that fills a tile.
const MOST_ITERATIONS: usize = 4096;

/// The blocks of a launch.
#[derive(Clone, Copy)]
struct Blocks {
    threads: [i64; 3],
    /// Places from one to the next.
    apart: [i64; 3],
}

/// Most threads of a block.
const MOST_THREADS: i64 = 1024;

/// The values of symbols by their numbers.
struct Values {
    slots: BTreeMap<Symbol, usize>,
    now: Vec<i64>,
}

/// A polynomial over numbered values.
struct Form(Vec<(i64, Vec<usize>)>);

/// A test over numbered values.
enum Check {
    Known(bool),
    Compare(Relation, Form),
    All(Vec<Check>),
    Any(Vec<Check>),
}

impl Values {
    fn slot(&mut self, symbol: Symbol) -> usize {
        let next = self.slots.len();
        let slot = *self.slots.entry(symbol).or_insert(next);
        if slot == self.now.len() {
            self.now.push(0);
        }
        slot
    }

    fn set(&mut self, symbol: Symbol, value: i64) {
        let slot = self.slot(symbol);
        self.now[slot] = value;
    }

    fn form(&mut self, poly: &Poly) -> Form {
        let terms = poly.terms();
        Form(
            terms
                .map(|(symbols, by)| (by, symbols.iter().map(|s| self.slot(*s)).collect()))
                .collect(),
        )
    }

    fn check(&mut self, test: &Test) -> Check {
        match test {
            Test::Known(value) => Check::Known(*value),
            Test::Compare(relation, value, _) => Check::Compare(*relation, self.form(value)),
            Test::All(parts) => Check::All(parts.iter().map(|p| self.check(p)).collect()),
            Test::Any(parts) => Check::Any(parts.iter().map(|p| self.check(p)).collect()),
        }
    }
}

impl Form {
    fn value(&self, now: &[i64]) -> i64 {
        let term = |(by, slots): &(i64, Vec<usize>)| {
            slots
                .iter()
                .fold(*by, |product, slot| product.wrapping_mul(now[*slot]))
        };
        self.0.iter().map(term).fold(0i64, i64::wrapping_add)
    }
}

impl Check {
    fn holds(&self, now: &[i64]) -> bool {
        match self {
            Check::Known(value) => *value,
            Check::Compare(relation, form) => relation.holds(form.value(now)),
            Check::All(parts) => parts.iter().all(|p| p.holds(now)),
            Check::Any(parts) => parts.iter().any(|p| p.holds(now)),
        }
    }
}

/// A site, ready to be counted out.
struct Store {
    index: Vec<Form>,
    filled: Content,
    tests: Vec<Check>,
    /// Slot of the counter, first value, step, condition.
    loops: Vec<(usize, Form, Form, Check)>,
    /// Slot, dividend, divisor, whether the remainder is meant.
    derived: Vec<(usize, Form, i64, bool)>,
    /// The array that it is filled from, and the element: each part counts in rows of the next one.
    from: Option<(usize, Vec<(Form, Form)>)>,
}

/// What a cell is filled with, by all that fill it.
#[derive(Clone, Copy, PartialEq)]
enum Content {
    /// An element; which one is clear.
    Element,
    /// A number, by its bits.
    Number(u64),
    /// Something else, or now this and now that.
    Other,
}

/// What a block leaves in the cells.
type Cells = BTreeMap<Vec<i64>, Content>;

/// How many elements of an array were read, from its beginning.
type Furthest = BTreeMap<usize, i64>;

/// A read, ready to be counted out: the cell, where it holds an element, and the number that it holds elsewhere.
struct Read<'s> {
    index: Vec<Form>,
    held: Option<(Check, u64)>,
    span: &'s Span,
}

impl Machine<'_> {
    /// Checks all reads of tiles.
    pub(super) fn check_tiles(&mut self) -> Done<()> {
        let Some(first) = self.trace.tile_reads.first() else {
            return Ok(());
        };
        if let Some(span) = &self.trace.repeated {
            let what = "shared memory and places through a maximum are not understood together";
            return Err(Diagnostic::error("stencil::shared", what)
                .label(first.span.clone(), "read here")
                .label(span.clone(), "the maximum"));
        }
        let threads = self.block_size(&first.span.clone())?;
        let mut block = Blocks {
            threads,
            apart: threads,
        };
        for (at, first_thread) in self.trace.windows.into_iter().enumerate() {
            let places = &mut self.trace.places.block[at];
            match (first_thread, *places) {
                (Some(_), Some(apart)) => {
                    block.apart[at] = apart;
                    self.trace.threads[at] = Some(threads[at]);
                }
                _ => *places = Some(threads[at]),
            }
        }
        let domain = self.trace.domain.clone();
        let tests = {
            let now = std::mem::replace(&mut self.domain, domain);
            let mut tests = self.domain_tests();
            self.domain = now;
            tests.extend(self.window_tests());
            tests
        };
        let mut seen = BTreeSet::new();
        let reads: Vec<_> = self
            .trace
            .tile_reads
            .iter()
            .filter(|read| {
                let what = format!("{:?} {:?}", read.index, read.held);
                seen.insert((read.tile, read.generation, what))
            })
            .cloned()
            .collect();
        let generations: BTreeSet<(usize, usize)> =
            reads.iter().map(|r| (r.tile, r.generation)).collect();
        for (tile, generation) in generations {
            let sites = self.tiles[tile].generations[generation].clone();
            let own = reads
                .iter()
                .filter(|r| (r.tile, r.generation) == (tile, generation));
            let own: Vec<&TileRead> = own.collect();
            let furthest = self.cover(tile, &sites, &own, &tests, block)?;
            self.trace.furthest.extend(furthest);
        }
        Ok(())
    }

    /// The block that the tile is made for: the numbers in the text, or as many threads as fill the
    /// tile with its margins on both sides.
    fn block_size(&self, span: &Span) -> Done<[i64; 3]> {
        let mut block = [0; 3];
        let sites = self
            .tiles
            .iter()
            .flat_map(|t| t.generations.iter().flatten().map(move |s| (t, s)));
        let sites: Vec<_> = sites.collect();
        for (axis, size) in block.iter_mut().enumerate() {
            let thread = Symbol::ThreadIdx(u8::try_from(axis).unwrap_or(0));
            if let (Some(known), None) = (self.trace.places.block[axis], self.trace.windows[axis]) {
                *size = known;
                continue;
            }
            let mut used = false;
            for (tile, site) in &sites {
                let everything = site.index.iter().chain(match &site.filled {
                    Filled::Element(_, _, parts) => parts.as_slice(),
                    Filled::Number(_) | Filled::Other => &[],
                });
                used |= everything
                    .into_iter()
                    .any(|p| p.symbols().contains(&thread));
                for (at, length) in site.index.iter().zip(&tile.lengths) {
                    let rest = at.plus(&Poly::symbol(thread), -1);
                    let margin = rest.and_then(|rest| rest.as_constant());
                    if let Some(margin) = margin.filter(|m| *m >= 0 && *size == 0) {
                        *size = length - 2 * margin;
                        // A column that only keeps the banks apart.
                        if *size > 1 && *size % 2 == 1 {
                            *size -= 1;
                        }
                    }
                }
            }
            if !used {
                *size = 1;
            }
        }
        let threads = block.iter().product::<i64>();
        let idle = self.trace.windows.iter().zip(self.trace.places.block);
        let enough = idle.zip(block).all(|((first, apart), threads)| {
            let last = first
                .zip(apart)
                .map(|(first, apart)| first.saturating_add(apart));
            last.is_none_or(|last| last <= threads)
        });
        if block.iter().any(|size| *size < 1) || threads > MOST_THREADS || !enough {
            let what = "how many threads fill the shared memory is not known";
            return Err(Diagnostic::error("stencil::shared", what)
                .label(span.clone(), "read here")
                .help("let one thread fill one cell of the middle of the tile"));
        }
        Ok(block)
    }

    fn cover(
        &self,
        tile: usize,
        sites: &[Site],
        reads: &[&TileRead],
        tests: &[Test],
        block: Blocks,
    ) -> Done<Vec<(usize, Vec<i64>, i64)>> {
        let mut all_furthest = Vec::new();
        let tile = &self.tiles[tile];
        let mut values = Values {
            slots: BTreeMap::new(),
            now: Vec::new(),
        };
        let stores: Vec<Store> = sites
            .iter()
            .map(|site| self.counted_out(&mut values, site))
            .collect();
        let domain: Vec<Check> = tests.iter().map(|test| values.check(test)).collect();
        let cells = reads.iter().map(|read| Read {
            index: read.index.iter().map(|at| values.form(at)).collect(),
            held: read
                .held
                .as_ref()
                .map(|(test, number)| (values.check(test), number.to_bits())),
            span: &read.span,
        });
        let cells: Vec<Read<'_>> = cells.collect();
        for symbol in (0..3).flat_map(symbols) {
            values.slot(symbol);
        }
        let has_other = stores.iter().any(|s| s.filled != Content::Element);
        for sizes in self.sizes_to_try(block, has_other) {
            for (number, size) in sizes.iter().enumerate() {
                values.set(Symbol::Size(number), *size);
            }
            let blocks = self.set_launch(&mut values, block, &sizes);
            let mut furthest = Furthest::new();
            for place in product(&blocks) {
                for axis in 0..3u8 {
                    values.set(Symbol::BlockIdx(axis), place[usize::from(axis)]);
                }
                let filled = fill(&mut values, &stores, block, &mut furthest);
                if let Some(span) = missing(&mut values, &domain, &cells, &filled, block) {
                    let what = format!("a cell of `{}` is read that no thread fills so", tile.name);
                    let all: Vec<String> = self
                        .trace
                        .sizes
                        .iter()
                        .zip(&sizes)
                        .map(|(name, size)| format!("{name} = {size}"))
                        .collect();
                    let when = if all.is_empty() {
                        "read here".to_owned()
                    } else {
                        format!("read here, for instance where {}", all.join(", "))
                    };
                    return Err(Diagnostic::error("stencil::shared", what)
                        .label(span.clone(), when)
                        .help("the margins of the tile are filled on all sides that are read, corners included"));
                }
            }
            let furthest = furthest.into_iter();
            all_furthest.extend(furthest.map(|(array, count)| (array, sizes.clone(), count)));
        }
        Ok(all_furthest)
    }

    /// Sizes around multiples of the block.
    fn sizes_to_try(&self, block: Blocks, thoroughly: bool) -> Vec<Vec<i64>> {
        let count = self.trace.sizes.len();
        let largest = block.apart.into_iter().max().unwrap_or(1);
        let usual = 2 * largest + 3;
        let mut all = vec![vec![usual; count]];
        if count == 0 {
            return all;
        }
        for size in [3, largest, largest + 1, 2 * largest, 3 * largest + 1] {
            all.push(vec![size; count]);
        }
        if thoroughly {
            // Whether a size lies before or behind a thread's place shows for all threads at once. Where the first and
            // the last ones meet the end of the block, and the margins, every size counts.
            let lengths = self.tiles.iter().flat_map(|tile| &tile.lengths);
            let margin = lengths.max().map_or(0, |length| (length - largest).max(0));
            let near = 2 * margin + 16;
            let is_near = |size: &i64| {
                let rest = size % largest;
                rest <= near || rest >= largest - near || rest == largest / 2
            };
            for number in 0..count {
                for size in (1..=2 * largest + 2).filter(is_near) {
                    let mut sizes = vec![usual; count];
                    sizes[number] = size;
                    all.push(sizes);
                }
            }
        }
        all
    }

    /// Sets loops and the launch, and names the blocks to look at along each axis.
    fn set_launch(&self, values: &mut Values, block: Blocks, sizes: &[i64]) -> [Vec<i64>; 3] {
        let size_of = |symbol| match symbol {
            Symbol::Size(number) => sizes.get(number).copied(),
            _ => None,
        };
        for number in 0..self.loops {
            let symbol = Symbol::Loop(number);
            let low = self
                .trace
                .domain
                .get(&symbol)
                .map_or(0, |bounds| bounds.low);
            values.set(symbol, low);
        }
        let largest = sizes.iter().copied().max().unwrap_or(1);
        let mut blocks = [vec![0], vec![0], vec![0]];
        for axis in 0..3u8 {
            let at = usize::from(axis);
            values.set(Symbol::BlockDim(axis), block.threads[at]);
            let first = self.trace.windows[at].unwrap_or(0);
            let end = |symbol| {
                let bounds = self.trace.domain.get(&symbol)?;
                let ends = bounds.ends.iter();
                ends.filter_map(|(end, _)| end.evaluate(size_of)).min()
            };
            let last = match (end(Symbol::Global(axis)), end(Symbol::BlockIdx(axis))) {
                (Some(end), _) => {
                    end.saturating_sub(1).saturating_sub(first).max(0) / block.apart[at]
                }
                (None, Some(end)) => (end - 1).max(0),
                (None, None) => largest / block.apart[at],
            };
            values.set(Symbol::GridDim(axis), last + 1);
            let mut some = vec![0, 1, last - 1, last];
            some.retain(|place| (0..=last).contains(place));
            some.sort_unstable();
            some.dedup();
            blocks[at] = some;
        }
        blocks
    }

    fn counted_out(&self, values: &mut Values, site: &Site) -> Store {
        let loops = site.strided.iter();
        let loops = loops.map(|l| {
            let slot = values.slot(l.counter);
            let (first, step) = (values.form(&l.first), values.form(&l.step));
            (slot, first, step, values.check(&l.test))
        });
        let loops = loops.collect();
        let derived = site.derived.iter();
        let derived = derived.map(|d| {
            let slot = values.slot(d.symbol);
            (slot, values.form(&d.of), d.by, d.remainder)
        });
        let derived = derived.collect();
        let from = match &site.filled {
            // Clamped and wrapped places are those of other elements.
            Filled::Element(array, lengths, parts)
                if !parts.iter().any(|part| self.trace.edges.has(part)) =>
            {
                let one = Poly::constant(1);
                // Behind the offset; a plain pointer has one row.
                let rows = std::iter::once(&one).chain(lengths);
                let rows = rows.chain(std::iter::repeat(&one));
                let rows = std::iter::once(&one).chain(rows);
                let parts = parts.iter().zip(rows);
                let parts = parts.map(|(part, rows)| (values.form(part), values.form(rows)));
                Some((*array, parts.collect()))
            }
            _ => None,
        };
        Store {
            index: site.index.iter().map(|at| values.form(at)).collect(),
            filled: match site.filled {
                Filled::Element(..) => Content::Element,
                Filled::Number(number) => Content::Number(number.to_bits()),
                Filled::Other => Content::Other,
            },
            tests: site.tests.iter().map(|test| values.check(test)).collect(),
            loops,
            derived,
            from,
        }
    }
}

fn symbols(axis: u8) -> [Symbol; 5] {
    [
        Symbol::ThreadIdx(axis),
        Symbol::BlockIdx(axis),
        Symbol::BlockDim(axis),
        Symbol::GridDim(axis),
        Symbol::Global(axis),
    ]
}

fn product(lists: &[Vec<i64>; 3]) -> Vec<[i64; 3]> {
    let mut all = Vec::new();
    for x in &lists[0] {
        for y in &lists[1] {
            all.extend(lists[2].iter().map(|z| [*x, *y, *z]));
        }
    }
    all
}

/// Sets a thread of the block at hand.
fn set_thread(values: &mut Values, thread: [i64; 3], block: Blocks) {
    for axis in 0..3u8 {
        let at = usize::from(axis);
        values.set(Symbol::ThreadIdx(axis), thread[at]);
        let first = values.slots[&Symbol::BlockIdx(axis)];
        let place = values.now[first] * block.apart[at] + thread[at];
        values.set(Symbol::Global(axis), place);
    }
}

fn threads(block: Blocks) -> Vec<[i64; 3]> {
    product(&block.threads.map(|size| (0..size).collect()))
}

/// What all threads of a block store.
fn fill(values: &mut Values, stores: &[Store], block: Blocks, furthest: &mut Furthest) -> Cells {
    let mut cells = Cells::new();
    for thread in threads(block) {
        set_thread(values, thread, block);
        for store in stores {
            visit(values, store, 0, &mut cells, furthest);
        }
    }
    cells
}

/// The iterations of a store's loops from one on.
fn visit(
    values: &mut Values,
    store: &Store,
    depth: usize,
    cells: &mut Cells,
    furthest: &mut Furthest,
) {
    if let Some((slot, first, step, test)) = store.loops.get(depth) {
        values.now[*slot] = first.value(&values.now);
        for _ in 0..MOST_ITERATIONS {
            if !test.holds(&values.now) {
                return;
            }
            visit(values, store, depth + 1, cells, furthest);
            values.now[*slot] += step.value(&values.now);
        }
        return;
    }
    for (slot, of, by, remainder) in &store.derived {
        let value = of.value(&values.now);
        values.now[*slot] = if *remainder { value % by } else { value / by };
    }
    if store.tests.iter().all(|test| test.holds(&values.now)) {
        let cell = store.index.iter().map(|at| at.value(&values.now)).collect();
        let content = cells.entry(cell).or_insert(store.filled);
        if *content != store.filled {
            *content = Content::Other;
        }
        if let Some((array, parts)) = &store.from {
            let element = parts.iter().fold(0i64, |so_far, (part, rows)| {
                let before = so_far.wrapping_mul(rows.value(&values.now));
                before.wrapping_add(part.value(&values.now))
            });
            let count = furthest.entry(*array).or_default();
            *count = (*count).max(element.saturating_add(1));
        }
    }
}

/// A read of a computed point that does not find what it should.
fn missing<'s>(
    values: &mut Values,
    domain: &[Check],
    reads: &[Read<'s>],
    filled: &Cells,
    block: Blocks,
) -> Option<&'s Span> {
    for thread in threads(block) {
        set_thread(values, thread, block);
        if !domain.iter().all(|test| test.holds(&values.now)) {
            continue;
        }
        for read in reads {
            let cell = read.index.iter().map(|at| at.value(&values.now));
            let cell: Vec<i64> = cell.collect();
            let wanted = match &read.held {
                Some((test, number)) if !test.holds(&values.now) => Content::Number(*number),
                _ => Content::Element,
            };
            if filled.get(&cell) != Some(&wanted) {
                return Some(read.span);
            }
        }
    }
    None
}
