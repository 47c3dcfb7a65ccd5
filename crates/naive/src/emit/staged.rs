//! The loop in parts: the operands of a part are copied to shared memory, read from there as fragments, and used for
//! all points of the block.
//!
//! Sections 3.3 (loops in parts) and 3.6 (prefetching) of the paper. Departures: copies are as wide as 16 bytes and do
//! not pass through registers where there are several buffers (`cp.async`, compute capability 8.0), so prefetching
//! takes no registers away; a fragment is read once for all points of a thread that use it; blocks are never half
//! warps. A copy beyond the last point or turn takes the last element instead: it is never used, and never outside.

use std::fmt::Write as _;

use warpwright_cudac::affine::{Poly, Symbol};
use warpwright_cudac::replace::words;
use warpwright_target::SHARED_PER_BLOCK;

use super::body::{Emitter, Place};
use super::tiles::{Plan, Tile, lanes, vector};
use super::{Condition, expected_ends, value};
use crate::bounds;
use crate::ir::{Statement, any};

/// Elements of a tile in registers.
#[derive(Clone, Debug)]
pub(super) struct Fragment {
    tile: Tile,
    name: String,
    /// The axis whose points are along the columns.
    columns: Option<usize>,
    /// Axes whose points are along the rows.
    rows: [bool; 2],
    /// Elements that follow each other.
    run: i64,
    /// The loop whose turns are inside the run.
    turned: Option<usize>,
}

/// Where a thread copies from.
struct Steps {
    from: String,
    row: String,
    column: String,
    /// Elements of a copy.
    width: i64,
    /// Copies of a thread.
    count: i64,
    /// Rows or columns from one copy to the next.
    step: i64,
    in_columns: bool,
    /// Elements of memory from one copy to the next.
    stride: String,
    /// Elements of memory from one part to the next.
    part: String,
}

impl Fragment {
    /// How far an access is from the first one, if it is served here.
    pub(super) fn of(&self, access: usize) -> Option<i64> {
        self.tile.offset(access)
    }
}

impl Emitter<'_> {
    /// The loop in parts.
    pub(super) fn parts(&mut self, plan: &Plan, body: &[Statement], place: &Place) {
        let stage = &plan.stage;
        let buffers = i64::from(stage.buffers);
        let names: Vec<String> = plan
            .tiles
            .iter()
            .map(|tile| {
                let array = self.kernel.arrays[tile.array].name.clone();
                self.fresh(&format!("{array}_tile"))
            })
            .collect();
        self.tile_names.clone_from(&names);
        self.shared(plan, &names);
        let of = &self.kernel.loops[plan.number];
        let (low, high) = (of.low.clone(), of.high.clone());
        let span = high.plus(&low, -1).unwrap_or_default();
        let turns = i64::from(stage.turns);
        if self.variant.exact {
            self.conditions
                .push(Condition::Multiple(span.clone(), turns));
        }
        let n = self.names.clone();
        let span_text = self.poly(&span);
        let count = self.fresh("parts");
        let parts = match self.variant.exact {
            true => format!("({span_text}) / {turns}"),
            false => format!("({span_text} + {}) / {turns}", turns - 1),
        };
        self.line(&format!("const int {count} = {parts};"));
        let (part, buffer) = (n.part.clone(), n.buffer.clone());
        let copy = self.copies(plan, &names, &low, &high);
        if buffers > 1 {
            let ahead = buffers - 1;
            self.open(&format!("for (int {part} = 0; {part} < {ahead}; ++{part})"));
            self.open(&format!("if ({part} < {count})"));
            self.call(&copy, &part);
            self.close();
            self.line("__pipeline_commit();");
            self.close();
        }
        self.open(&format!("for (int {part} = 0; {part} < {count}; ++{part})"));
        if buffers > 1 {
            let ahead = buffers - 1;
            self.line(&format!("__pipeline_wait_prior({});", ahead - 1));
            self.line("__syncthreads();");
            self.open(&format!("if ({part} + {ahead} < {count})"));
            self.call(&copy, &format!("{part} + {ahead}"));
            self.close();
            self.line("__pipeline_commit();");
            self.line(&format!("const int {buffer} = {part} % {buffers};"));
        } else {
            self.call(&copy, &part);
            self.line("__syncthreads();");
        }
        if !self.variant.exact {
            let left = format!(
                "const int {} = min({turns}, {span_text} - {part} * {turns});",
                n.left
            );
            self.line(&left);
        }
        let inside = Place {
            staged: true,
            depth: place.depth + 1,
            ..place.clone()
        };
        self.inner_loop(plan.number, body, &inside);
        if buffers == 1 {
            self.line("__syncthreads();");
        }
        self.close();
        if buffers > 1 && place.depth > 0 {
            self.line("__syncthreads();");
        }
    }

    /// Declares the tiles.
    fn shared(&mut self, plan: &Plan, names: &[String]) {
        let buffers = i64::from(plan.stage.buffers);
        let bytes = |e: &Self, tile: &Tile| {
            buffers * tile.elements() * i64::from(e.kernel.arrays[tile.array].bytes)
        };
        let total: i64 = plan.tiles.iter().map(|t| bytes(self, t)).sum();
        let prefix = if buffers > 1 {
            format!("[{buffers}]")
        } else {
            String::new()
        };
        // More than a block has without asking is dynamic.
        let dynamic = total > SHARED_PER_BLOCK.into();
        let memory = self.fresh("shared");
        if dynamic {
            self.shared_bytes = u32::try_from(total).unwrap_or(u32::MAX);
            self.line(&format!(
                "extern __shared__ __align__(16) unsigned char {memory}[];"
            ));
        }
        let mut at = 0;
        for (tile, name) in plan.tiles.iter().zip(names) {
            let element = self.kernel.arrays[tile.array].element.clone();
            let (rows, pitch) = (tile.row_count(), tile.pitch);
            match dynamic {
                false => self.line(&format!(
                    "__shared__ __align__(16) {element} {name}{prefix}[{rows}][{pitch}];"
                )),
                true => {
                    // Without the first length, as a pointer to what follows.
                    let ty = match buffers > 1 {
                        true => format!("{element} (*{name})[{rows}][{pitch}]"),
                        false => format!("{element} (*{name})[{pitch}]"),
                    };
                    let cast = ty.replace(&format!("*{name}"), "*");
                    self.line(&format!(
                        "{ty} = reinterpret_cast<{cast}>({memory} + {at});"
                    ));
                }
            }
            at += bytes(self, tile);
        }
    }

    /// The statements that copy a part; `@` stands for the part. What they need once is written now.
    fn copies(&mut self, plan: &Plan, names: &[String], low: &Poly, high: &Poly) -> String {
        let mut all = String::new();
        for (tile, name) in plan.tiles.iter().zip(names) {
            let from = self.steps(plan, tile, low);
            let (outer, level) = (std::mem::take(&mut self.out), self.level);
            self.level = 0;
            match &from {
                Some(from) => self.copy_by_steps(plan, tile, name, from),
                None => self.copy(plan, tile, name, low, high),
            }
            self.level = level;
            all += &std::mem::replace(&mut self.out, outer);
        }
        all
    }

    /// Where a thread copies from, if its elements of a part lie at one distance from each other and nothing is to be
    /// cut off: then no address is computed twice.
    fn steps(&mut self, plan: &Plan, tile: &Tile, low: &Poly) -> Option<Steps> {
        let whole = tile.column_count() == self.needed(tile) && tile.forms.len() <= 2;
        let lows = self.kernel.dims.iter().any(|d| !d.low.is_empty());
        if !self.variant.exact || !whole || lows {
            return None;
        }
        let width = self.width(tile);
        let threads = i64::from(self.schedule.block());
        let (rows, per_row) = (tile.row_count(), tile.column_count() / width);
        let fast = if tile.turned { rows } else { per_row };
        let total = rows * per_row;
        // A thread goes on in the next rows, or in the next columns of a turned tile.
        let single = rows == 1 && !tile.turned;
        if total % threads != 0 || (threads % fast != 0 && !single) {
            return None;
        }
        let [from, row, column] = ["from", "row", "column"].map(|w| {
            let array = self.kernel.arrays[tile.array].name.clone();
            self.fresh(&format!("{array}_{w}"))
        });
        let thread = self.names.thread.clone();
        let (r, c) = match (single, tile.turned) {
            (true, _) => ("0".to_owned(), thread),
            (false, false) => (
                format!("{thread} / {per_row}"),
                format!("{thread} % {per_row}"),
            ),
            // All copies of a thread are in one row.
            (false, true) => turned_item(tile, &thread, threads % (4 * rows) == 0),
        };
        let c = if width > 1 {
            format!("{c} * {width}")
        } else {
            c
        };
        self.line(&format!("const int {row} = {r}, {column} = {c};"));
        let mut index = tile.base.clone();
        let mut part = Poly::default();
        let turns = i64::from(plan.stage.turns);
        for form in &tile.forms {
            for (symbol, times) in &form.terms {
                let by = form.stride.times(&Poly::constant(*times))?;
                let moved = match *symbol {
                    Symbol::Loop(number) if number == plan.number => {
                        part = part.plus(&by, turns)?;
                        low.clone()
                    }
                    Symbol::Loop(number) if plan.inner.iter().any(|(m, _)| *m == number) => {
                        self.kernel.loops[number].low.clone()
                    }
                    symbol => Poly::symbol(symbol),
                };
                index = index.plus(&by.times(&moved)?, 1)?;
            }
        }
        let array = self.kernel.arrays[tile.array].name.clone();
        let element = self.kernel.arrays[tile.array].element.clone();
        let mut text = self.block_poly(&index);
        let own = |form: &crate::forms::Form, own: &str, stride: String| match form.is_unit() {
            true => format!(" + {own}"),
            false => format!(" + {own} * ({stride})"),
        };
        if let [form] = tile.rows() {
            text += &own(form, &row, self.block_poly(&form.stride));
        }
        text += &own(
            tile.columns(),
            &column,
            self.block_poly(&tile.columns().stride),
        );
        self.line(&format!("const {element}* {from} = {array} + ({text});"));
        let (step, stride) = match (single, tile.turned) {
            (true, _) => (threads * width, &tile.columns().stride),
            (false, false) => (threads / per_row, &tile.forms[0].stride),
            (false, true) => (threads / rows, &tile.columns().stride),
        };
        let stride = stride.times(&Poly::constant(step))?;
        Some(Steps {
            from,
            row,
            column,
            width,
            count: total / threads,
            step,
            in_columns: single || tile.turned,
            stride: self.block_poly(&stride),
            part: self.block_poly(&part),
        })
    }

    /// Copies a tile whose elements lie at one distance from each other.
    fn copy_by_steps(&mut self, plan: &Plan, tile: &Tile, name: &str, from: &Steps) {
        let buffers = plan.stage.buffers;
        let item = self.fresh("item");
        let mut target = (from.row.clone(), from.column.clone());
        let mut source = format!("{} + @ * ({})", from.from, from.part);
        if from.count > 1 {
            self.line("#pragma unroll");
            self.open(&format!(
                "for (int {item} = 0; {item} < {}; ++{item})",
                from.count
            ));
            let more = format!(" + {item} * {}", from.step);
            match from.in_columns {
                true => target.1 += &more,
                false => target.0 += &more,
            }
            let _ = write!(source, " + {item} * ({})", from.stride);
        }
        let (row, column) = target;
        let at = match buffers > 1 {
            true => format!("{name}[@ % {buffers}][{row}][{column}]"),
            false => format!("{name}[{row}][{column}]"),
        };
        let bytes = from.width * i64::from(self.kernel.arrays[tile.array].bytes);
        match (buffers > 1, from.width > 1) {
            (true, _) => self.line(&format!(
                "__pipeline_memcpy_async(&{at}, {source}, {bytes});"
            )),
            (false, true) => {
                let ty = vector(self.kernel, tile.array);
                self.line(&format!(
                    "*reinterpret_cast<{ty}*>(&{at}) = *reinterpret_cast<const {ty}*>({source});"
                ));
            }
            (false, false) => self.line(&format!("{at} = *({source});")),
        }
        if from.count > 1 {
            self.close();
        }
    }

    fn call(&mut self, copy: &str, part: &str) {
        let simple = part.chars().all(|c| c.is_alphanumeric() || c == '_');
        let part = if simple {
            part.to_owned()
        } else {
            format!("({part})")
        };
        for line in copy.replace('@', &part).lines() {
            self.line(line);
        }
    }

    /// Copies a tile.
    fn copy(&mut self, plan: &Plan, tile: &Tile, name: &str, low: &Poly, high: &Poly) {
        let buffers = plan.stage.buffers;
        let turns = i64::from(plan.stage.turns);
        let threads = self.schedule.block();
        let width = self.width(tile);
        let (rows, columns) = (tile.row_count(), tile.column_count());
        let per_row = columns / width;
        let total = rows * per_row;
        let array = self.kernel.arrays[tile.array].name.clone();
        let [item, row, column] = ["item", "row", "column"].map(|w| self.fresh(w));
        let thread = self.names.thread.clone();
        self.line("#pragma unroll");
        let head = format!("for (int {item} = {thread}; {item} < {total}; {item} += {threads})");
        self.open(&head);
        // Neighbouring threads copy neighbouring elements of memory.
        let (r, c) = match tile.turned {
            false if rows == 1 => ("0".to_owned(), item.clone()),
            false => (format!("{item} / {per_row}"), format!("{item} % {per_row}")),
            true => turned_item(tile, &item, true),
        };
        let c = if width > 1 {
            format!("{c} * {width}")
        } else {
            c
        };
        self.line(&format!("const int {row} = {r}, {column} = {c};"));
        let mut index = self.block_poly(&tile.base);
        let mut left = rows;
        for (at, form) in tile.forms.iter().enumerate() {
            let is_columns = at + 1 == tile.forms.len();
            let own = match is_columns {
                true => column.clone(),
                false => {
                    left /= tile.extents[at];
                    let mut own = row.clone();
                    if left > 1 {
                        own = format!("{own} / {left}");
                    }
                    if tile.forms.len() > 2 && at > 0 {
                        own = format!("{own} % {}", tile.extents[at]);
                    }
                    own
                }
            };
            // Where the box begins, and its last element.
            let mut begin = Poly::default();
            let mut begins = Vec::new();
            let mut last = Poly::constant(if is_columns { tile.range } else { 0 });
            let mut first = Poly::default();
            let (mut clamped, mut lows) = (false, false);
            for (symbol, times) in &form.terms {
                let add =
                    |to: &mut Poly, poly: &Poly| *to = to.plus(poly, *times).unwrap_or_default();
                match (*symbol, self.kernel.dim(*symbol)) {
                    (_, Some(axis @ 0..2)) => {
                        begins.push(scaled(&self.names.block[axis], *times));
                        let end = Poly::symbol(bounds::end(axis));
                        add(
                            &mut last,
                            &end.plus(&Poly::constant(1), -1).unwrap_or_default(),
                        );
                        clamped = true;
                        if let [low] = &self.kernel.dims[axis].low[..] {
                            add(&mut first, low);
                            lows = true;
                        }
                    }
                    (Symbol::Loop(number), _) if number == plan.number => {
                        begins.push(scaled(&format!("@ * {turns}"), *times));
                        add(&mut begin, low);
                        add(
                            &mut last,
                            &high.plus(&Poly::constant(1), -1).unwrap_or_default(),
                        );
                        clamped = true;
                    }
                    (Symbol::Loop(number), _) if plan.inner.iter().any(|(m, _)| *m == number) => {
                        let of = &self.kernel.loops[number];
                        add(&mut begin, &of.low);
                        add(
                            &mut last,
                            &of.high.plus(&Poly::constant(1), -1).unwrap_or_default(),
                        );
                    }
                    (symbol, _) => {
                        add(&mut begin, &Poly::symbol(symbol));
                        add(&mut last, &Poly::symbol(symbol));
                    }
                }
            }
            if !begin.is_zero() {
                begins.push(self.block_poly(&begin));
            }
            begins.push(own);
            let mut position = begins.join(" + ");
            let rounded = is_columns && columns > self.needed(tile);
            if (clamped && !self.variant.exact) || rounded {
                let last = match width > 1 && is_columns {
                    // The last whole vector.
                    true => last
                        .plus(&Poly::constant(width - 1), -1)
                        .unwrap_or_default(),
                    false => last,
                };
                position = format!("min({position}, {})", self.block_poly(&last));
            }
            if lows {
                position = format!("max({position}, {})", self.block_poly(&first));
            }
            let term = match form.is_unit() {
                true => position,
                false => {
                    let stride = self.block_poly(&form.stride);
                    let simple = stride.chars().all(|c| c.is_alphanumeric() || c == '_');
                    let stride = if simple {
                        stride
                    } else {
                        format!("({stride})")
                    };
                    let bare = position.starts_with("min(") || position.starts_with("max(");
                    match bare || !position.contains(' ') {
                        true => format!("{position} * {stride}"),
                        false => format!("({position}) * {stride}"),
                    }
                }
            };
            index = if index == "0" {
                term
            } else {
                format!("{index} + {term}")
            };
        }
        let at = match buffers > 1 {
            true => format!("{name}[@ % {buffers}][{row}][{column}]"),
            false => format!("{name}[{row}][{column}]"),
        };
        let bytes = width * i64::from(self.kernel.arrays[tile.array].bytes);
        match (buffers > 1, width > 1) {
            (true, _) => self.line(&format!(
                "__pipeline_memcpy_async(&{at}, &{array}[{index}], {bytes});"
            )),
            (false, true) => {
                let ty = vector(self.kernel, tile.array);
                let line = format!(
                    "*reinterpret_cast<{ty}*>(&{at}) = *reinterpret_cast<const {ty}*>(&{array}[{index}]);"
                );
                self.line(&line);
            }
            (false, false) => self.line(&format!("{at} = {array}[{index}];")),
        }
        self.close();
    }

    /// Columns that are used; the others fill up the last vector.
    fn needed(&self, tile: &Tile) -> i64 {
        let lanes = lanes(self.kernel, tile.array);
        let turns = |symbol: Symbol| self.turns(symbol);
        let moved: i64 = tile
            .columns()
            .terms
            .iter()
            .map(|(s, times)| times * (turns(*s) - 1))
            .sum();
        let needed = moved + 1 + tile.range;
        debug_assert!(tile.column_count() - needed < lanes);
        needed
    }

    /// Points or turns of a part.
    fn turns(&self, symbol: Symbol) -> i64 {
        let Some(plan) = self.plan else { return 1 };
        match symbol {
            Symbol::Loop(n) if n == plan.number => i64::from(plan.stage.turns),
            Symbol::Loop(n) => plan
                .inner
                .iter()
                .find(|(m, _)| *m == n)
                .map_or(1, |(_, turns)| *turns),
            symbol => match self.kernel.dim(symbol) {
                Some(axis @ 0..2) => i64::from(self.schedule.tile()[axis]),
                _ => 1,
            },
        }
    }

    /// Elements that a copy of a tile moves at once; what it needs for that becomes a condition.
    fn width(&mut self, tile: &Tile) -> i64 {
        let lanes = lanes(self.kernel, tile.array);
        let columns = tile.columns();
        // A copy that is pushed up to a lower bound begins anywhere.
        let pushed = columns.terms.iter().any(|(s, _)| {
            let dim = self.kernel.dim(*s).filter(|axis| *axis < 2);
            dim.is_some_and(|axis| !self.kernel.dims[axis].low.is_empty())
        });
        if !self.variant.wide || lanes == 1 || tile.turned || !columns.is_unit() || pushed {
            return 1;
        }
        let mut wanted = vec![tile.base.clone()];
        wanted.extend(tile.rows().iter().map(|form| form.stride.clone()));
        let mut last = Poly::constant(1 + tile.range);
        for (symbol, times) in &columns.terms {
            let end = match (*symbol, self.kernel.dim(*symbol)) {
                (_, Some(axis @ 0..2)) => Poly::symbol(bounds::end(axis)),
                (Symbol::Loop(number), _) => {
                    // The first turn must begin at a whole vector.
                    let of = &self.kernel.loops[number];
                    wanted.push(Poly::default().plus(&of.low, *times).unwrap_or_default());
                    of.high.clone()
                }
                _ => return 1,
            };
            let end = end.plus(&Poly::constant(1), -1).unwrap_or_default();
            last = last.plus(&end, *times).unwrap_or_default();
        }
        // Every part begins at a whole vector.
        let whole = columns.terms.iter().all(|(symbol, times)| {
            let inner = self
                .plan
                .is_some_and(|p| p.inner.iter().any(|(m, _)| Symbol::Loop(*m) == *symbol));
            inner || (times * self.turns(*symbol)) % lanes == 0
        });
        if !whole {
            return 1;
        }
        if !self.variant.exact || tile.column_count() > self.needed(tile) {
            wanted.push(last);
        }
        let is_block = |poly: &Poly| {
            poly.symbols()
                .iter()
                .all(|s| matches!(s, Symbol::Size(_) | Symbol::Unknown(_)))
        };
        let mut conditions = Vec::new();
        for poly in wanted {
            match is_block(&poly) {
                true => conditions.push(poly),
                // What moves with the block's z must be whole for all of them.
                false => {
                    for symbol in poly.points() {
                        match poly.coefficient(symbol) {
                            Some(times) => conditions.push(times),
                            None => return 1,
                        }
                    }
                    let mut rest = poly.clone();
                    for symbol in poly.points() {
                        rest = match rest.substituted(symbol, &Poly::default()) {
                            Some(rest) => rest,
                            None => return 1,
                        };
                    }
                    conditions.push(rest);
                }
            }
        }
        let ends = expected_ends(self.kernel, self.expected);
        let holds = |poly: &Poly| value(poly, self.expected, &ends).is_some_and(|v| v % lanes == 0);
        if !conditions.iter().all(holds) {
            return 1;
        }
        for poly in conditions {
            let condition = Condition::Multiple(poly, lanes);
            if !self.conditions.contains(&condition) {
                self.conditions.push(condition);
            }
        }
        let aligned = Condition::Aligned(tile.array, 16);
        if !self.conditions.contains(&aligned) {
            self.conditions.push(aligned);
        }
        lanes
    }

    /// A polynomial where a part is copied: places are those of the block.
    fn block_poly(&self, poly: &Poly) -> String {
        poly.text(|symbol| match symbol {
            Symbol::Size(size) => self.kernel.size_name(size).to_owned(),
            Symbol::Loop(number) => self.counters[number].clone(),
            Symbol::Unknown(axis) => self.names.ends[axis.min(3)].clone(),
            symbol => match self.kernel.dim(symbol) {
                Some(axis @ 0..2) => self.names.block[axis].clone(),
                Some(dim) => self.kernel.dims[dim].name.clone(),
                None => String::new(),
            },
        })
    }

    /// A loop inside a part. The turns of an innermost one are written out in groups.
    pub(super) fn inner_loop(&mut self, number: usize, body: &[Statement], place: &Place) {
        let Some(plan) = self.plan else { return };
        let is_parted = plan.number == number;
        let innermost = !any(body, |s| matches!(s, Statement::Loop(..)));
        let known = match is_parted {
            true => self.variant.exact.then_some(i64::from(plan.stage.turns)),
            false => plan
                .inner
                .iter()
                .find(|(m, _)| *m == number)
                .map(|(_, n)| *n),
        };
        let step = i64::from(plan.stage.unroll);
        let step = if innermost { step } else { 1 };
        let step = match known {
            // The largest number of turns that leaves nothing over.
            Some(turns) => (1..=step).rev().find(|s| turns % s == 0).unwrap_or(1),
            None => step,
        };
        let name = self.counters[number].clone();
        let counter = self.fresh(&format!("{name}_in"));
        let limit = known.map_or(self.names.left.clone(), |n| n.to_string());
        if step > 1 {
            match known {
                Some(turns) => {
                    if turns <= 64 {
                        self.line("#pragma unroll");
                    }
                    self.open(&format!(
                        "for (int {counter} = 0; {counter} < {turns}; {counter} += {step})"
                    ));
                    self.turns_of(plan, number, body, place, &counter, step);
                    self.close();
                }
                None => {
                    self.line(&format!("int {counter} = 0;"));
                    self.open(&format!(
                        "for (; {counter} + {step} <= {limit}; {counter} += {step})"
                    ));
                    self.turns_of(plan, number, body, place, &counter, step);
                    self.close();
                    self.open(&format!("for (; {counter} < {limit}; ++{counter})"));
                    self.turns_of(plan, number, body, place, &counter, 1);
                    self.close();
                }
            }
        } else {
            self.open(&format!(
                "for (int {counter} = 0; {counter} < {limit}; ++{counter})"
            ));
            self.turns_of(plan, number, body, place, &counter, 1);
            self.close();
        }
    }

    /// One group of turns: fragments for all of them, then each turn.
    fn turns_of(
        &mut self,
        plan: &Plan,
        number: usize,
        body: &[Statement],
        place: &Place,
        counter: &str,
        step: i64,
    ) {
        let mut wanted = Vec::new();
        for statement in body {
            direct(statement, &mut wanted);
        }
        let mut inside = place.clone();
        // The counter's place in the part, by loop.
        inside.local.retain(|(n, _)| *n != number);
        inside.local.push((number, counter.to_owned()));
        let mut late = Vec::new();
        for tile in &plan.tiles {
            let used = tile
                .accesses
                .iter()
                .any(|(access, _)| wanted.contains(access));
            if !used
                || inside
                    .fragments
                    .iter()
                    .any(|f| f.of(tile.accesses[0].0).is_some())
            {
                continue;
            }
            let in_rows = tile
                .rows()
                .iter()
                .any(|f| f.times(Symbol::Loop(number)) > 0);
            match step > 1 && in_rows {
                true => late.push(tile),
                false => {
                    let turn = (step > 1).then_some((number, step));
                    let fragment = self.fragment(tile, &inside, turn);
                    inside.fragments.push(fragment);
                }
            }
        }
        if step > 1 {
            let turn = self.names.turn.clone();
            self.line("#pragma unroll");
            self.open(&format!("for (int {turn} = 0; {turn} < {step}; ++{turn})"));
            inside.turn = Some((number, turn.clone()));
            inside.local.retain(|(n, _)| *n != number);
            inside.local.push((number, format!("({counter} + {turn})")));
            for tile in late {
                let fragment = self.fragment(tile, &inside, None);
                inside.fragments.push(fragment);
            }
        }
        let (outer, level) = (std::mem::take(&mut self.out), self.level);
        self.list(body, &inside);
        let text = std::mem::replace(&mut self.out, outer);
        self.level = level;
        let name = self.counters[number].clone();
        if words(&text).contains(&name) {
            let of = &self.kernel.loops[number];
            let local = inside.local.last().map_or(counter, |(_, l)| l).to_owned();
            let mut begin = if plan.number == number {
                format!("{} * {} + ", self.names.part, plan.stage.turns)
            } else {
                String::new()
            };
            if !of.low.is_zero() {
                let _ = write!(begin, "{} + ", self.poly(&of.low));
            }
            self.line(&format!("const int {name} = {begin}{local};"));
        }
        self.out += &text;
        if step > 1 {
            self.close();
        }
    }

    /// Reads the elements of a tile that a thread's points use. `turn` is a loop whose next turns are read as well.
    fn fragment(&mut self, tile: &Tile, place: &Place, turn: Option<(usize, i64)>) -> Fragment {
        let lanes = lanes(self.kernel, tile.array);
        let points = self.schedule.points;
        let axis_in = |forms: &[crate::forms::Form], axis: usize| {
            let symbol = self.kernel.dims.get(axis).map(|d| d.symbol);
            symbol.is_some_and(|s| forms.iter().any(|f| f.times(s) > 0))
        };
        let columns_form = std::slice::from_ref(tile.columns());
        let columns = [0, 1].into_iter().find(|a| axis_in(columns_form, *a));
        let rows = [0, 1].map(|a| axis_in(tile.rows(), a));
        let times = |symbol: Symbol| tile.columns().times(symbol);
        let mut run = 1 + tile.range;
        let mut aligned = true;
        if let Some(axis) = columns {
            let by = times(self.kernel.dims[axis].symbol);
            run += by * (i64::from(self.schedule.run[axis]) - 1);
            aligned &= by * i64::from(self.schedule.run[axis]) % lanes == 0;
        }
        let turned = turn.filter(|(number, _)| times(Symbol::Loop(*number)) > 0);
        if let Some((number, step)) = turned {
            run += times(Symbol::Loop(number)) * (step - 1);
            aligned &= times(Symbol::Loop(number)) * step % lanes == 0;
        }
        for (number, _) in &place.local {
            let in_run = turned.is_some_and(|(n, _)| n == *number);
            aligned &= in_run || times(Symbol::Loop(*number)) % lanes == 0;
        }
        let wide = lanes > 1 && aligned && run > 1;
        if wide {
            run = (run + lanes - 1) / lanes * lanes;
        }
        let array = self.kernel.arrays[tile.array].name.clone();
        let element = self.kernel.arrays[tile.array].element.clone();
        let name = self.fresh(&format!("{array}_part"));
        let fragment = Fragment {
            tile: tile.clone(),
            name: name.clone(),
            columns,
            rows,
            run,
            turned: turned.map(|(n, _)| n),
        };
        let mut lengths = String::new();
        for axis in (0..2).rev() {
            if rows[axis] && points[axis] > 1 {
                let _ = write!(lengths, "[{}]", points[axis]);
            }
        }
        let chunks = columns.map_or(1, |a| points[a] / self.schedule.run[a]);
        if chunks > 1 {
            let _ = write!(lengths, "[{chunks}]");
        }
        if run > 1 {
            let _ = write!(lengths, "[{run}]");
        }
        let align = if wide { "__align__(16) " } else { "" };
        let level = self.level;
        let plain = lengths.is_empty();
        if !plain {
            self.line(&format!("{align}{element} {name}{lengths};"));
        }
        for axis in (0..2).rev() {
            if rows[axis] && points[axis] > 1 {
                self.line("#pragma unroll");
                let p = self.names.point[axis].clone();
                self.open(&format!("for (int {p} = 0; {p} < {}; ++{p})", points[axis]));
            }
        }
        let chunk = self.names.point[columns.unwrap_or(0)].clone();
        if let Some(axis) = columns
            && chunks > 1
        {
            let by = self.schedule.run[axis];
            self.line("#pragma unroll");
            self.open(&format!(
                "for (int {chunk} = 0; {chunk} < {}; {chunk} += {by})",
                points[axis]
            ));
        }
        let tile_name = self.tile_name(tile);
        let row = self.local_row(tile, place);
        let column = self.local(tile.columns(), place, columns);
        let at = |more: &str| match more {
            "" => format!("{tile_name}[{row}][{column}]"),
            more if column == "0" => format!("{tile_name}[{row}][{more}]"),
            more => format!("{tile_name}[{row}][{column} + {more}]"),
        };
        let mut own = String::new();
        for axis in (0..2).rev() {
            if rows[axis] && points[axis] > 1 {
                let _ = write!(own, "[{}]", self.names.point[axis]);
            }
        }
        if chunks > 1 {
            let by = columns.map_or(1, |a| self.schedule.run[a]);
            match by {
                1 => own += &format!("[{chunk}]"),
                by => own += &format!("[{chunk} / {by}]"),
            }
        }
        match (plain, run) {
            (true, _) => self.line(&format!("const {element} {name} = {};", at(""))),
            (false, 1) => self.line(&format!("{name}{own} = {};", at(""))),
            (false, _) => {
                let by = if wide { lanes } else { 1 };
                let single = run == by;
                let c = self.fresh("c");
                let more = if single { "" } else { &*c };
                if !single {
                    self.line("#pragma unroll");
                    let next = if by == 1 {
                        format!("++{c}")
                    } else {
                        format!("{c} += {by}")
                    };
                    self.open(&format!("for (int {c} = 0; {c} < {run}; {next})"));
                }
                let to = format!("{name}{own}[{}]", if single { "0" } else { &*c });
                match wide {
                    true => {
                        let ty = vector(self.kernel, tile.array);
                        let from = at(more);
                        self.line(&format!(
                            "*reinterpret_cast<{ty}*>(&{to}) = *reinterpret_cast<const {ty}*>(&{from});"
                        ));
                    }
                    false => self.line(&format!("{to} = {};", at(more))),
                }
            }
        }
        while self.level > level {
            self.close();
        }
        fragment
    }

    fn tile_name(&self, tile: &Tile) -> String {
        let Some(plan) = self.plan else {
            return String::new();
        };
        let at = plan.tiles.iter().position(|t| t.accesses == tile.accesses);
        let name = at
            .and_then(|at| self.tile_names.get(at))
            .cloned()
            .unwrap_or_default();
        match plan.stage.buffers > 1 {
            true => format!("{name}[{}]", self.names.buffer),
            false => name,
        }
    }

    /// The row of a tile that is read.
    fn local_row(&self, tile: &Tile, place: &Place) -> String {
        let mut out = String::new();
        let mut below = tile.row_count();
        for (at, form) in tile.rows().iter().enumerate() {
            below /= tile.extents[at];
            let of = self.local(form, place, None);
            let term = match below {
                1 => of,
                below if of.contains(' ') => format!("({of}) * {below}"),
                below => format!("{of} * {below}"),
            };
            if term == "0" {
                continue;
            }
            out = if out.is_empty() {
                term
            } else {
                format!("{out} + {term}")
            };
        }
        if out.is_empty() { "0".to_owned() } else { out }
    }

    /// Where something is along a stride, from the beginning of the tile.
    fn local(&self, form: &crate::forms::Form, place: &Place, chunked: Option<usize>) -> String {
        let mut terms = Vec::new();
        for (symbol, times) in &form.terms {
            let term = match (*symbol, self.kernel.dim(*symbol)) {
                (_, Some(axis @ 0..2)) => self.own_point(axis, chunked == Some(axis)),
                (Symbol::Loop(number), _) => match place.local.iter().find(|(n, _)| *n == number) {
                    Some((_, local)) => local.clone(),
                    None => continue,
                },
                _ => continue,
            };
            terms.push(
                match (*times, term.contains(' ') && !term.starts_with('(')) {
                    (1, _) => term,
                    (times, true) => format!("({term}) * {times}"),
                    (times, false) => format!("{term} * {times}"),
                },
            );
        }
        if terms.is_empty() {
            "0".to_owned()
        } else {
            terms.join(" + ")
        }
    }

    /// A point of the thread, from the block's first one; `chunk`: the first one of its run.
    fn own_point(&self, axis: usize, chunk: bool) -> String {
        let (threads, points, run) = (
            self.schedule.threads[axis],
            self.schedule.points[axis],
            self.schedule.run[axis],
        );
        let (own, point) = (self.own(axis), &self.names.point[axis]);
        let mut out = match run {
            1 => own,
            run => format!("{own} * {run}"),
        };
        if points > run {
            let far = match (chunk, run) {
                (_, 1) => format!("{point} * {threads}"),
                // The loop goes from run to run.
                (true, _) => format!("{point} * {threads}"),
                (false, run) => format!("{point} / {run} * {}", threads * run),
            };
            out = format!("{far} + {out}");
        }
        if run > 1 && !chunk {
            let within = if points > run {
                format!("{point} % {run}")
            } else {
                point.clone()
            };
            out = format!("{out} + {within}");
        }
        out
    }

    /// The element of a fragment for the present point and turn.
    pub(super) fn element(&self, fragment: &Fragment, access: usize) -> String {
        let mut out = fragment.name.clone();
        let points = self.schedule.points;
        for axis in (0..2).rev() {
            if fragment.rows[axis] && points[axis] > 1 {
                let _ = write!(out, "[{}]", self.names.point[axis]);
            }
        }
        let mut within = Vec::new();
        if let Some(axis) = fragment.columns {
            let (run, point) = (self.schedule.run[axis], &self.names.point[axis]);
            if points[axis] > run {
                let _ = match run {
                    1 => write!(out, "[{point}]"),
                    run => write!(out, "[{point} / {run}]"),
                };
            }
            let by = fragment.tile.columns().times(self.kernel.dims[axis].symbol);
            if run > 1 {
                let text = if points[axis] > run {
                    format!("{point} % {run}")
                } else {
                    point.clone()
                };
                within.push(match by {
                    1 => text,
                    by if text.contains(' ') => format!("({text}) * {by}"),
                    by => format!("{text} * {by}"),
                });
            }
        }
        if let (Some(number), Some((of, turn))) = (fragment.turned, &self.turn)
            && number == *of
        {
            within.push(scaled(
                turn,
                fragment.tile.columns().times(Symbol::Loop(number)),
            ));
        }
        let offset = fragment.of(access).unwrap_or(0);
        if offset != 0 {
            within.push(offset.to_string());
        }
        if fragment.run > 1 {
            let within = if within.is_empty() {
                "0".to_owned()
            } else {
                within.join(" + ")
            };
            let _ = write!(out, "[{within}]");
        }
        out
    }
}

/// The row and the column of the element of a turned tile that is copied by its number. A warp copies 8 rows of 4 columns
/// where it can: rows begin 4 banks apart, so that it stores to 32 of them, and 8 rows are a whole sector of memory.
fn turned_item(tile: &Tile, item: &str, can: bool) -> (String, String) {
    let (rows, columns) = (tile.row_count(), tile.column_count());
    if !can || rows % 8 != 0 || columns % 4 != 0 {
        return (format!("{item} % {rows}"), format!("{item} / {rows}"));
    }
    let row = match rows / 8 {
        1 => format!("{item} % 8"),
        groups => format!("{item} / 32 % {groups} * 8 + {item} % 8"),
    };
    let column = format!("{item} / {} * 4 + {item} / 8 % 4", 4 * rows);
    (row, column)
}

fn scaled(text: &str, times: i64) -> String {
    match times {
        1 => text.to_owned(),
        times if text.contains(' ') => format!("({text}) * {times}"),
        times => format!("{text} * {times}"),
    }
}

/// Loads of statements that are no loops.
fn direct(statement: &Statement, found: &mut Vec<usize>) {
    match statement {
        Statement::Loop(..) => {}
        other => other
            .own()
            .into_iter()
            .for_each(|v| super::tiles::loads(v, found)),
    }
}
