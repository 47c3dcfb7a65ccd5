//! What a schedule makes the machine do: operations, accesses to shared memory, bytes from the level-2 cache.
//!
//! Traffic is counted for the schedule itself, not for the kernel as written: these transformations change exactly
//! that. Loads that are staged cost what the copies of the parts bring; the others cost the sectors that a warp
//! touches, and where a loop goes along a row, the later turns find the sector in the first-level cache.

use warpwright_cudac::affine::Symbol;

use super::tiles::{Plan, Tile, is_uniform, lanes, loads, plan};
use super::{expected, expected_ends, value};
use crate::bounds;
use crate::forms::rows;
use crate::ir::{Kernel, Statement, Value, any};
use crate::schedule::Schedule;

/// What one block does, and how many there are.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cost {
    /// Blocks of the expected launch.
    pub blocks: f64,
    /// Threads of a block.
    pub threads: u32,
    /// Bytes of shared memory of a block.
    pub shared_bytes: u32,
    /// Registers of a thread, estimated from the values that are alive.
    pub registers: f64,
    /// Those among them that hold operands from shared memory.
    pub fragments: f64,
    /// Groups of turns that are written out, each of which begins with such operands.
    pub groups: f64,
    /// Instructions of a thread.
    pub instructions: f64,
    /// Operations in double precision of a thread.
    pub doubles: f64,
    /// Operations of the special function units of a thread.
    pub special: f64,
    /// Turns of the shared-memory pipe for a warp: loads from shared memory, and sectors beyond the first four of loads
    /// from the cache.
    pub pipe: f64,
    /// Bytes that the block takes from the level-2 cache.
    pub bytes: f64,
    /// Parts, each with a wait.
    pub parts: f64,
    /// Turns of the loop that is done in parts, each time that it is done; 0: there is none.
    pub staged_turns: f64,
    /// Parts that are on their way at once.
    pub ahead: f64,
    /// Bytes of all arrays, each once.
    pub unique: f64,
    /// Bytes that a thread loads without waiting for anything.
    pub flying: f64,
    /// Turns of loops that a thread goes through with loads of its own.
    pub waits: f64,
}

/// The cost of a schedule at the sizes that the pragma expects.
pub fn cost(kernel: &Kernel, schedule: &Schedule) -> Option<Cost> {
    let kernel = &super::seen(kernel, schedule);
    let sizes = expected(kernel);
    let ends = expected_ends(kernel, &sizes);
    let tile = schedule.tile();
    let mut fixed = kernel.clone();
    if schedule.specialise {
        let small = sizes
            .iter()
            .enumerate()
            .filter(|(at, n)| **n <= 64 && super::counts(kernel, *at));
        let small: Vec<(usize, i64)> = small.map(|(at, n)| (at, *n)).collect();
        fixed = super::with_sizes(kernel, &small);
    }
    let kernel = &fixed;
    let plan = plan(kernel, schedule);
    if schedule.stage.is_some() && plan.is_none() {
        return None;
    }
    let mut found = Cost {
        threads: schedule.block(),
        registers: 24.0,
        blocks: 1.0,
        ahead: 1.0,
        ..Cost::default()
    };
    for (number, end) in ends.iter().enumerate() {
        let per = match number {
            0 | 1 => f64::from(tile[number]),
            _ => 1.0,
        };
        found.blocks *= (*end as f64 / per).ceil();
    }
    let mut counter = Counter {
        kernel,
        schedule,
        plan: plan.as_ref(),
        sizes: &sizes,
        ends: &ends,
        found,
    };
    counter.list(&kernel.body, 1.0, &[]);
    let mut found = counter.found;
    // Values that stay alive over a loop, for all points.
    let points = schedule.points.map(f64::from);
    let mut brief = vec![false; kernel.variables.len()];
    innermost(&kernel.body, &mut brief);
    let variables = super::body::dependences(kernel);
    let variables = variables.iter().zip(&kernel.variables).zip(brief);
    for ((axes, variable), _) in variables.filter(|(_, brief)| !brief) {
        let of = |axis: usize| if axes[axis] { points[axis] } else { 1.0 };
        found.registers += of(0) * of(1) * registers_of(&variable.ty);
    }
    for (array, extents) in kernel.arrays.iter().zip(super::extents(kernel)) {
        if let Some((_, highs)) = extents {
            let most = highs
                .iter()
                .filter_map(|h| value(h, &sizes, &ends))
                .max()
                .unwrap_or(0);
            found.unique += (most + 1) as f64 * f64::from(array.bytes);
        }
    }
    Some(found)
}

/// Marks variables that loops without loops declare: they live for one point of one turn.
fn innermost(body: &[Statement], found: &mut [bool]) {
    for statement in body {
        let Statement::Loop(_, inside) = statement else {
            continue;
        };
        if any(inside, |s| matches!(s, Statement::Loop(..))) {
            innermost(inside, found);
            continue;
        }
        for statement in inside {
            statement.walk(&mut |s| {
                if let Statement::Declare(variable, _) = s {
                    found[*variable] = true;
                }
            });
        }
    }
}

struct Counter<'a> {
    kernel: &'a Kernel,
    schedule: &'a Schedule,
    plan: Option<&'a Plan>,
    sizes: &'a [i64],
    ends: &'a [i64],
    found: Cost,
}

impl Counter<'_> {
    fn list(&mut self, statements: &[Statement], turns: f64, around: &[(usize, f64)]) {
        for statement in statements {
            match statement {
                Statement::Loop(number, body) => {
                    let trips = self.trips(*number);
                    let mut inside = around.to_vec();
                    inside.push((*number, trips));
                    if self.plan.is_some_and(|p| p.number == *number) {
                        self.staged(turns, trips);
                    }
                    // A loop whose turns are written out costs nothing by itself.
                    let written = self.plan.is_some() || trips <= 32.0;
                    self.found.instructions += turns * trips * if written { 0.25 } else { 2.0 };
                    let all = if is_uniform(self.kernel, *number) {
                        1.0
                    } else {
                        self.points()
                    };
                    self.list(body, turns * trips * all, &inside);
                }
                Statement::While(cond, body) => {
                    let turns = turns * super::UNKNOWN_TURNS;
                    self.value(cond, turns, self.points(), around);
                    self.list(body, turns, around);
                }
                Statement::If(cond, then, otherwise) => {
                    self.value(cond, turns, self.points(), around);
                    self.list(then, turns * 0.6, around);
                    self.list(otherwise, turns * 0.6, around);
                }
                Statement::Store { access, value, .. }
                | Statement::Atomic { access, value, .. } => {
                    self.value(value, turns, self.points(), around);
                    self.access(*access, turns, around, false);
                }
                Statement::Declare(_, value) => {
                    if let Some(value) = value {
                        self.value(value, turns, self.points(), around);
                    }
                }
                Statement::Assign { op, value, .. } => {
                    let points = self.points();
                    self.value(value, turns, points, around);
                    // A product that is added is one operation.
                    let fused = matches!(value, Value::Binary(op, ..) if op == "*");
                    if op != "=" && !fused {
                        self.found.instructions += turns * points;
                    }
                }
            }
        }
    }

    fn points(&self) -> f64 {
        f64::from(self.schedule.points[0] * self.schedule.points[1])
    }

    fn trips(&self, number: usize) -> f64 {
        let of = &self.kernel.loops[number];
        let span = of
            .high
            .plus(&of.low, -1)
            .and_then(|s| bounds::largest(self.kernel, &s));
        let most = span
            .and_then(|s| value(&s, self.sizes, self.ends))
            .unwrap_or(64)
            .max(0);
        let trips = most as f64 / of.step as f64;
        // Ends that depend on other counters are met halfway.
        let fixed = |p: &warpwright_cudac::affine::Poly| {
            p.symbols().iter().all(|s| matches!(s, Symbol::Size(_)))
        };
        if fixed(&of.low) && fixed(&of.high) {
            trips
        } else {
            trips / 2.0
        }
    }

    fn value(&mut self, value: &Value, turns: f64, points: f64, around: &[(usize, f64)]) {
        let mut found = Vec::new();
        loads(value, &mut found);
        value.walk(false, &mut |value, sometimes| {
            let (count, special) = match value {
                Value::Binary(..) | Value::Select(..) => (1.0, 0.0),
                Value::Unary(..) | Value::Cast(..) => (0.5, 0.0),
                Value::Call(name, _) => match &**name {
                    "fmaxf" | "fminf" | "fabsf" | "fmaf" | "max" | "min" => (1.0, 0.0),
                    "rsqrtf" | "__expf" => (3.0, 1.0),
                    _ => (12.0, 1.0),
                },
                _ => (0.0, 0.0),
            };
            self.found.instructions += count * turns * points;
            self.found.special += special * turns * points;
            if let Value::Load(access) = value
                && sometimes
            {
                self.access(*access, turns, around, false);
            }
        });
        for access in found {
            self.access(access, turns, around, true);
        }
        let double = self.kernel.arrays.iter().any(|a| a.bytes == 8);
        if double {
            self.found.doubles += turns * points;
        }
    }

    /// A load or a store where it is in memory, or a read of a fragment.
    fn access(&mut self, access: usize, turns: f64, around: &[(usize, f64)], shared: bool) {
        if let Some(plan) = self.plan
            && let Some(tile) = plan.tiles.iter().find(|t| t.offset(access).is_some())
            && tile.accesses[0].0 == access
        {
            let tile = tile.clone();
            self.fragment(plan, &tile, turns);
            return;
        }
        if self
            .plan
            .is_some_and(|p| p.tiles.iter().any(|t| t.offset(access).is_some()))
        {
            return;
        }
        let of = &self.kernel.accesses[access];
        let bytes = f64::from(self.kernel.arrays[of.array].bytes.max(1));
        let warps = f64::from(self.schedule.block()) / 32.0;
        let Some(found) = of.affine().and_then(rows) else {
            self.found.instructions += turns * self.points() * 3.0;
            self.found.pipe += turns * self.points() * 8.0;
            self.found.bytes += turns * self.points() * warps * 32.0 * 32.0;
            return;
        };
        let symbol = |axis: usize| self.kernel.dims.get(axis).map(|d| d.symbol);
        let has =
            |axis: usize| symbol(axis).is_some_and(|s| found.forms.iter().any(|f| f.times(s) > 0));
        let own = [has(0), has(1)];
        let mut times = 1.0;
        for (moves, points) in own.iter().zip(self.schedule.points) {
            if *moves || !shared {
                times *= f64::from(points);
            }
        }
        let along = if self.schedule.lanes > 0 {
            self.schedule.lanes
        } else {
            self.schedule.threads[0].min(32)
        };
        let along = f64::from(along);
        let across = 32.0 / along;
        // Sectors of 32 bytes that a warp touches.
        let unit = found.forms.iter().find(|f| f.is_unit());
        let step = unit.zip(symbol(0)).map_or(0, |(f, s)| f.times(s));
        let in_row = match (own[0], step) {
            (false, _) => 1.0,
            (true, 0) => along,
            (true, step) => {
                let bytes = bytes * step as f64 * f64::from(self.schedule.run[0]);
                (along * bytes / 32.0).clamp(1.0, along)
            }
        };
        let sectors = in_row * if own[1] { across } else { 1.0 };
        // A loop along the row finds what it needs next in the sector that it has, while the cache keeps it.
        let inner = around.last().map(|(n, _)| Symbol::Loop(*n));
        let along_row = unit.zip(inner).is_some_and(|(f, s)| f.times(s) > 0);
        let kept = sectors * warps * 128.0 * times * 4.0 < 160.0 * 1024.0;
        let fresh = if along_row && kept {
            (bytes / 32.0).min(1.0)
        } else {
            1.0
        };
        // What does not move with the innermost loops is loaded again from the first-level cache only.
        let moving: f64 = around
            .iter()
            .filter(|(n, _)| found.forms.iter().any(|f| f.times(Symbol::Loop(*n)) > 0))
            .map(|(_, trips)| trips)
            .product();
        let all: f64 = around.iter().map(|(_, trips)| trips).product();
        let again = if all > 0.0 {
            (moving / all).min(1.0)
        } else {
            1.0
        };
        self.found.instructions += turns * times * 2.0;
        self.found.pipe += turns * times * (sectors / 4.0).max(1.0);
        // Runs of points are loaded one after the other: the sectors are the same.
        let runs = if step == 1 {
            f64::from(self.schedule.run[0])
        } else {
            1.0
        };
        // Warps above each other want the same row.
        let rows = f64::from(self.schedule.threads[1]);
        let alone = if own[1] {
            warps
        } else {
            (warps / rows).max(1.0)
        };
        self.found.bytes += turns * times / runs * sectors * 32.0 * alone * fresh * again;
        // Lanes that are apart have whole sectors under way.
        let own_bytes = if step > 1 { bytes.max(sectors) } else { bytes };
        match around {
            [] if shared => self.found.flying += (times * own_bytes).min(128.0),
            [] => {}
            _ => self.found.waits += turns * times,
        }
    }

    /// Copies of all parts.
    fn staged(&mut self, turns: f64, trips: f64) {
        let Some(plan) = self.plan else { return };
        let parts = (trips / f64::from(plan.stage.turns)).ceil() * turns;
        self.found.parts += parts;
        self.found.staged_turns = trips;
        self.found.ahead = f64::from(plan.stage.buffers);
        self.found.groups += parts * f64::from(plan.stage.turns) / f64::from(plan.stage.unroll);
        // Which of three buffers is next is counted, of two it is one bit.
        if plan.stage.buffers > 2 {
            self.found.registers += 4.0;
        }
        self.found.instructions += parts * 20.0;
        for tile in &plan.tiles {
            let elements = (tile.row_count() * tile.column_count()) as f64;
            let bytes = f64::from(self.kernel.arrays[tile.array].bytes);
            let stored = tile.elements() as f64 * bytes * f64::from(plan.stage.buffers);
            self.found.shared_bytes += stored as u32;
            self.found.bytes += parts * elements * bytes;
            let wide = tile.columns().is_unit() && !tile.turned && plan.inner.is_empty();
            let lanes = if wide {
                lanes(self.kernel, tile.array) as f64
            } else {
                1.0
            };
            let copies = (elements / lanes / f64::from(self.schedule.block())).ceil();
            // Places in a box of several strides are divided out, one element after the other; those of a turned tile that
            // the block's threads divide evenly lie at one distance from each other.
            let block = i64::from(self.schedule.block());
            let (rows, all) = (tile.row_count(), tile.row_count() * tile.column_count());
            let steps = tile.turned && all % block == 0 && block % rows.max(1) == 0;
            let each = match (wide, steps, plan.inner.is_empty()) {
                (true, ..) => 4.0,
                (false, true, _) => 3.0,
                (false, false, true) => 20.0,
                (false, false, false) => 40.0,
            };
            self.found.instructions += parts * copies * each;
            self.found.pipe += parts * copies * if tile.turned { 8.0 } else { lanes.max(1.0) };
        }
    }

    /// How many lanes want the same banks at once, where points lie along rows.
    fn ways(&self, tile: &Tile, width: i64) -> f64 {
        let along = if self.schedule.lanes > 0 {
            self.schedule.lanes
        } else {
            self.schedule.threads[0].min(32)
        };
        let lanes = [along, 32 / along];
        let symbol = |axis: usize| self.kernel.dims.get(axis).map(|d| d.symbol);
        let mut ways: f64 = 1.0;
        for (axis, lanes) in lanes.into_iter().enumerate() {
            let in_rows = symbol(axis).is_some_and(|s| tile.rows().iter().any(|f| f.times(s) > 0));
            if !in_rows {
                continue;
            }
            let words = i64::from(self.kernel.arrays[tile.array].bytes) / 4;
            let step = i64::from(self.schedule.run[axis]) * tile.pitch * words.max(1);
            let group = (width * words.max(1)).max(1);
            let count = i64::from(lanes).min(32 / group);
            let mut places: Vec<i64> = (0..count).map(|lane| lane * step % 32 / group).collect();
            places.sort_unstable();
            places.dedup();
            ways = ways.max(count as f64 / places.len().max(1) as f64);
        }
        ways
    }

    /// Reads of a fragment for one turn.
    fn fragment(&mut self, plan: &Plan, tile: &Tile, turns: f64) {
        let points = self.schedule.points.map(i64::from);
        let symbol = |axis: usize| self.kernel.dims.get(axis).map(|d| d.symbol);
        let in_rows = |s: Symbol| tile.rows().iter().any(|f| f.times(s) > 0);
        let (mut reads, mut held) = (1.0, 1.0);
        for (axis, points) in points.iter().enumerate() {
            if symbol(axis).is_some_and(in_rows) {
                reads *= *points as f64;
                // Rows that nothing else is combined with one by one are read when their turn comes.
                let moves = |tile: &Tile, axis: usize| {
                    symbol(axis).is_some_and(|s| tile.forms.iter().any(|f| f.times(s) > 0))
                };
                let crossed = plan
                    .tiles
                    .iter()
                    .any(|t| moves(t, 1 - axis) && !moves(t, axis));
                held *= if crossed { *points } else { 2.min(*points) } as f64;
            }
        }
        let mut run = 1 + tile.range;
        let column = (0..2).find(|a| symbol(*a).is_some_and(|s| tile.columns().times(s) > 0));
        if let Some(axis) = column {
            let runs = (points[axis] / i64::from(self.schedule.run[axis])) as f64;
            (reads, held) = (reads * runs, held * runs);
            run += i64::from(self.schedule.run[axis]) - 1;
        }
        let unroll = i64::from(plan.stage.unroll);
        let (last, turns_there) = match plan.inner.last() {
            Some((number, turns)) => (*number, *turns),
            None => (plan.number, i64::from(plan.stage.turns)),
        };
        // As many as leave nothing over.
        let unroll = (1..=unroll)
            .rev()
            .find(|n| turns_there % n == 0)
            .unwrap_or(1);
        let turned = tile.columns().times(Symbol::Loop(last)) > 0;
        let mut share = 1.0;
        if turned {
            run += tile.columns().times(Symbol::Loop(last)) * (unroll - 1);
            share = unroll as f64;
        } else if !in_rows(Symbol::Loop(last)) {
            share = unroll as f64;
        }
        let lanes = lanes(self.kernel, tile.array);
        let wide = lanes > 1 && run % lanes == 0 || run > lanes;
        let width = if wide { lanes } else { 1 };
        let count = reads * ((run + width - 1) / width) as f64 / share;
        self.found.instructions += turns * count;
        let ways = self.ways(tile, width);
        self.found.pipe += turns * count * ways * if wide { 2.0 } else { 1.0 };
        let element = &self.kernel.arrays[tile.array].element;
        let held = held * run as f64 * registers_of(element);
        self.found.registers += held;
        self.found.fragments += held;
    }
}

/// 32-bit registers that a value of a type takes.
fn registers_of(ty: &str) -> f64 {
    let is_wide = ["double", "long", "int64", "uint64", "size_t"];
    if is_wide.iter().any(|word| ty.contains(word)) {
        2.0
    } else {
        1.0
    }
}
