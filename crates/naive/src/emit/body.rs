//! Statements for the points of a thread.
//!
//! Thread merge (section 3.5.2 of the paper): control flow that is the same for all points stands once, and the
//! statements in it are repeated for every point. A statement that depends on one place alone is done once for the
//! points along the other. Order: the points are independent, so only the order of the statements of one point counts,
//! and that is kept.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use warpwright_cudac::affine::{Poly, Symbol};
use warpwright_cudac::names::free;
use warpwright_cudac::replace::words;

use super::print::{Leaves, text};
use super::staged::Fragment;
use super::tiles::{Plan, is_uniform, loads, trips};
use super::{Condition, Entry, Unfit, Variant, names_of, plane};
use crate::ir::{Index, Kernel, Statement, Value};
use crate::schedule::Schedule;

/// The kernel of a schedule.
pub(super) fn entry(
    kernel: &Kernel,
    schedule: &Schedule,
    plan: Option<&Plan>,
    variant: Variant,
    expected: &[i64],
) -> Result<Entry, Unfit> {
    let mut emitter = Emitter::new(kernel, schedule, plan, variant, expected);
    emitter.places();
    emitter.list(&kernel.body, &Place::default());
    let tile = schedule.tile();
    let mut conditions = Vec::new();
    if variant.exact {
        for (number, points) in tile.iter().enumerate().take(kernel.dims.len()) {
            conditions.push(Condition::Multiple(
                Poly::symbol(crate::bounds::end(number)),
                i64::from(*points),
            ));
        }
    }
    conditions.append(&mut emitter.conditions);
    conditions.retain(|c| !matches!(c, Condition::Multiple(poly, by) if poly.as_constant().is_some_and(|v| v % by == 0)));
    let mut unique: Vec<Condition> = Vec::new();
    for condition in conditions {
        if !unique.contains(&condition) {
            unique.push(condition);
        }
    }
    let y = if kernel.dims.len() > 1 { tile[1] } else { 1 };
    Ok(Entry {
        body: emitter.out,
        threads: schedule.block(),
        tile: [tile[0], y, 1],
        resident: schedule.resident,
        shared_bytes: emitter.shared_bytes,
        conditions: unique,
        ..Entry::default()
    })
}

/// Where code stands.
#[derive(Clone, Debug, Default)]
pub(super) struct Place {
    /// Inside the loop that is done in parts.
    pub(super) staged: bool,
    /// Loops around it, of those that are not done in parts.
    pub(super) depth: usize,
    /// The loop whose turns are written out here, and the name of the turn.
    pub(super) turn: Option<(usize, String)>,
    /// By loop: where its counter is in the part.
    pub(super) local: Vec<(usize, String)>,
    /// Operands that have been read from shared memory.
    pub(super) fragments: Vec<Fragment>,
}

pub(super) struct Emitter<'a> {
    pub(super) kernel: &'a Kernel,
    pub(super) schedule: &'a Schedule,
    pub(super) plan: Option<&'a Plan>,
    pub(super) variant: Variant,
    pub(super) expected: &'a [i64],
    pub(super) out: String,
    pub(super) level: usize,
    pub(super) conditions: Vec<Condition>,
    pub(super) shared_bytes: u32,
    taken: BTreeSet<String>,
    /// By variable: its name, the axes that it depends on, and whether it is one of the present point alone.
    variables: Vec<(String, [bool; 2], bool)>,
    /// By loop: the name of its counter.
    pub(super) counters: Vec<String>,
    pub(super) names: Names,
    /// Loads that have been done for all points: the access, its name, and the axes that it depends on.
    hoisted: Vec<(usize, String, [bool; 2])>,
    fragments: Vec<Fragment>,
    pub(super) turn: Option<(usize, String)>,
    /// By tile of the plan: its name.
    pub(super) tile_names: Vec<String>,
}

/// What the generated parts are called.
#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    pub(super) thread: String,
    /// The thread's place in the block.
    pub(super) own: [String; 2],
    /// The first point of the block.
    pub(super) block: [String; 3],
    /// Points of a thread, as loops go through them.
    pub(super) point: [String; 2],
    pub(super) ends: [String; 4],
    pub(super) part: String,
    pub(super) left: String,
    pub(super) turn: String,
    pub(super) buffer: String,
}

impl<'a> Emitter<'a> {
    fn new(
        kernel: &'a Kernel,
        schedule: &'a Schedule,
        plan: Option<&'a Plan>,
        variant: Variant,
        expected: &'a [i64],
    ) -> Emitter<'a> {
        let mut emitter = Emitter {
            kernel,
            schedule,
            plan,
            variant,
            expected,
            out: String::new(),
            level: 1,
            conditions: Vec::new(),
            shared_bytes: 0,
            taken: names_of(kernel),
            variables: Vec::new(),
            counters: Vec::new(),
            names: Names::default(),
            hoisted: Vec::new(),
            fragments: Vec::new(),
            turn: None,
            tile_names: Vec::new(),
        };
        let ends = end_names(kernel);
        emitter.taken.extend(ends.iter().cloned());
        let fresh = |e: &mut Emitter<'a>, word: &str| e.fresh(word);
        emitter.names = Names {
            thread: fresh(&mut emitter, "thread"),
            own: ["thread_x", "thread_y"].map(|w| emitter.fresh(w)),
            block: ["block_x", "block_y", "block_z"].map(|w| emitter.fresh(w)),
            point: ["px", "py"].map(|w| emitter.fresh(w)),
            ends,
            part: emitter.fresh("part"),
            left: emitter.fresh("left"),
            turn: emitter.fresh("turn"),
            buffer: emitter.fresh("buffer"),
        };
        let dependences = dependences(kernel);
        // Names that several variables have, or a parameter beside them, are told apart.
        let mut seen: BTreeSet<String> = kernel.parameters.iter().map(|p| p.name.clone()).collect();
        seen.extend(kernel.dims.iter().map(|d| d.name.clone()));
        seen.extend(kernel.arrays.iter().map(|a| a.name.clone()));
        for (variable, axes) in kernel.variables.iter().zip(dependences) {
            let name = match seen.insert(variable.name.clone()) {
                true => variable.name.clone(),
                false => emitter.fresh(&variable.name),
            };
            emitter.variables.push((name, axes, false));
        }
        for of in &kernel.loops {
            let known = seen.contains(&of.name) && !emitter.counters.contains(&of.name);
            let name = match known {
                false => of.name.clone(),
                true => emitter.fresh(&of.name),
            };
            seen.insert(name.clone());
            emitter.counters.push(name);
        }
        emitter
    }

    /// A name that nothing has yet.
    pub(super) fn fresh(&mut self, word: &str) -> String {
        let name = free(word, |name| self.taken.contains(name));
        self.taken.insert(name.clone());
        name
    }

    pub(super) fn line(&mut self, text: &str) {
        if text.starts_with('#') {
            let _ = writeln!(self.out, "{text}");
        } else {
            let _ = writeln!(self.out, "{}{text}", "    ".repeat(self.level));
        }
    }

    pub(super) fn open(&mut self, text: &str) {
        self.line(format!("{text} {{").trim_start());
        self.level += 1;
    }

    pub(super) fn close(&mut self) {
        self.level -= 1;
        self.line("}");
    }

    /// Dimensions that are tiled.
    pub(super) fn axes(&self) -> usize {
        self.kernel.dims.len().min(2)
    }

    /// A thread for a point and nothing shared: threads without a point end at once.
    fn is_plain(&self) -> bool {
        self.plan.is_none() && self.schedule.points == [1, 1]
    }

    /// The places of the thread and of its points.
    fn places(&mut self) {
        let (schedule, names) = (self.schedule, self.names.clone());
        let two = self.axes() > 1;
        let [bx, by] = schedule.threads;
        let one = self.is_plain() && !two;
        if !one {
            self.line(&format!("const int {} = threadIdx.x;", names.thread));
        }
        let lanes = schedule.lanes;
        if two && lanes != 0 && lanes != bx {
            let t = &names.thread;
            let rows = 32 / lanes;
            let across = bx / lanes;
            self.line(&format!("// A warp is {lanes} x {rows} threads."));
            let x = match across {
                1 => format!("{t} % {lanes}"),
                _ => format!("{t} / 32 % {across} * {lanes} + {t} % {lanes}"),
            };
            let y = format!("{t} / {} * {rows} + {t} % 32 / {lanes}", 32 * across);
            self.line(&format!("const int {} = {x};", names.own[0]));
            self.line(&format!("const int {} = {y};", names.own[1]));
        } else if two {
            self.line(&format!(
                "const int {} = {} % {bx};",
                names.own[0], names.thread
            ));
            self.line(&format!(
                "const int {} = {} / {bx};",
                names.own[1], names.thread
            ));
        }
        let tile = schedule.tile();
        let second = if schedule.planes {
            "blockIdx.z"
        } else {
            "blockIdx.y"
        };
        let mut index = ["blockIdx.x".to_owned(), second.to_owned()];
        if two && schedule.order > 1 {
            let [number, group, rows] = ["number", "group", "rows"].map(|w| self.fresh(w));
            let order = schedule.order;
            self.line(&format!("// {order} rows of blocks are computed together: what they load stays in the L2 cache."));
            self.line(&format!(
                "const int {number} = blockIdx.y * gridDim.x + blockIdx.x;"
            ));
            self.line(&format!(
                "const int {group} = {number} / ({order} * gridDim.x);"
            ));
            self.line(&format!(
                "const int {rows} = min({order}, (int)gridDim.y - {group} * {order});"
            ));
            let within = format!("{number} % ({order} * (int)gridDim.x)");
            index = [
                format!("({within} / {rows})"),
                format!("({group} * {order} + {within} % {rows})"),
            ];
        }
        for axis in 0..self.axes() {
            let points = tile[axis];
            self.line(&format!(
                "const int {} = {} * {points};",
                names.block[axis], index[axis]
            ));
        }
        for number in 2..self.kernel.dims.len() {
            let name = self.kernel.dims[number].name.clone();
            let place = match schedule.planes {
                true => "blockIdx.y".to_owned(),
                false => plane(self.kernel, number),
            };
            self.line(&format!("const int {name} = {place};"));
            for low in self.kernel.dims[number].low.clone() {
                let low = self.poly(&low);
                self.line(&format!("if ({name} < {low}) return;"));
            }
        }
        if self.is_plain() {
            for axis in 0..self.axes() {
                let own = self.own(axis);
                let name = &self.kernel.dims[axis].name;
                let line = format!("const int {name} = {} + {own};", names.block[axis]);
                self.line(&line);
            }
            let outside = self.outside();
            self.line(&format!("if ({outside}) return;"));
        }
        let _ = by;
    }

    pub(super) fn own(&self, axis: usize) -> String {
        match self.axes() {
            1 if self.is_plain() => "(int)threadIdx.x".to_owned(),
            1 => self.names.thread.clone(),
            _ => self.names.own[axis].clone(),
        }
    }

    fn outside(&self) -> String {
        let mut all = Vec::new();
        for axis in 0..self.axes() {
            let name = &self.kernel.dims[axis].name;
            all.push(format!("{name} >= {}", self.names.ends[axis]));
            for low in &self.kernel.dims[axis].low {
                all.push(format!("{name} < {}", self.poly(low)));
            }
        }
        all.join(" || ")
    }

    /// The place of a point, as it is counted; several of a thread by the names of their loops.
    fn raw(&self, axis: usize) -> String {
        let (threads, points, run) = (
            self.schedule.threads[axis],
            self.schedule.points[axis],
            self.schedule.run[axis],
        );
        let (own, point) = (self.own(axis), &self.names.point[axis]);
        let mut out = self.names.block[axis].clone();
        if points > run {
            let chunk = match run {
                1 => point.clone(),
                _ => format!("{point} / {run}"),
            };
            let _ = write!(out, " + {chunk} * {}", threads * run);
        }
        match run {
            1 => {
                let _ = write!(out, " + {own}");
            }
            _ => {
                let _ = write!(out, " + {own} * {run}");
                let _ = match points > run {
                    true => write!(out, " + {point} % {run}"),
                    false => write!(out, " + {point}"),
                };
            }
        }
        out
    }

    /// `const int x = …;`, inside the points or as it is counted.
    fn place_line(&self, axis: usize, clamp: bool) -> String {
        let raw = self.raw(axis);
        let dim = &self.kernel.dims[axis];
        let mut text = raw;
        if clamp && !self.variant.exact {
            text = format!("min({text}, {} - 1)", self.names.ends[axis]);
        }
        if clamp {
            for low in &dim.low {
                text = format!("max({text}, {})", self.poly(low));
            }
        }
        format!("const int {} = {text};", dim.name)
    }

    /// Statements one after the other.
    pub(super) fn list(&mut self, statements: &[Statement], place: &Place) {
        let mut at = 0;
        while at < statements.len() {
            if let Statement::Loop(number, body) = &statements[at]
                && is_uniform(self.kernel, *number)
                && !self.is_plain()
            {
                warpwright_cudac::with_stack(|| self.uniform(*number, body, place));
                at += 1;
                continue;
            }
            let axes = self.axes_of(&statements[at]);
            let mut end = at + 1;
            while end < statements.len() && self.axes_of(&statements[end]) == axes {
                let uniform = |s: &Statement| matches!(s, Statement::Loop(n, _) if is_uniform(self.kernel, *n));
                if uniform(&statements[end]) && !self.is_plain() {
                    break;
                }
                end += 1;
            }
            let (before, after) = (&statements[..at], &statements[end..]);
            self.group(&statements[at..end], &[before, after], axes, place);
            at = end;
        }
    }

    /// The axes that a statement's effect depends on.
    fn axes_of(&self, statement: &Statement) -> [bool; 2] {
        let mut axes = [false; 2];
        statement.walk(&mut |s| {
            let more = match s {
                Statement::Declare(v, _) | Statement::Assign { variable: v, .. } => {
                    self.variables[*v].1
                }
                Statement::Store { .. } | Statement::Atomic { .. } => [true, self.axes() > 1],
                Statement::Loop(..) | Statement::If(..) | Statement::While(..) => return,
            };
            axes = [axes[0] || more[0], axes[1] || more[1]];
        });
        axes
    }

    /// A loop that all threads go through together.
    fn uniform(&mut self, number: usize, body: &[Statement], place: &Place) {
        if let Some(plan) = self.plan
            && plan.number == number
        {
            self.parts(plan, body, place);
            return;
        }
        if place.staged {
            self.inner_loop(number, body, place);
            return;
        }
        let of = &self.kernel.loops[number];
        let (low, high, step) = (self.poly(&of.low), self.poly(&of.high), of.step);
        let name = self.counters[number].clone();
        if trips(self.kernel, number).is_some_and(|n| n <= 32) {
            self.line("#pragma unroll");
        }
        let step = match step {
            1 => format!("++{name}"),
            step => format!("{name} += {step}"),
        };
        self.open(&format!(
            "for (int {name} = {low}; {name} < {high}; {step})"
        ));
        let inside = Place {
            depth: place.depth + 1,
            ..place.clone()
        };
        self.list(body, &inside);
        self.close();
    }

    /// Statements that are done for the points along the same axes.
    fn group(
        &mut self,
        statements: &[Statement],
        around: &[&[Statement]],
        axes: [bool; 2],
        place: &Place,
    ) {
        self.fragments.clone_from(&place.fragments);
        self.turn.clone_from(&place.turn);
        let counts = [0, 1].map(|a| if axes[a] { self.schedule.points[a] } else { 1 });
        let stores = statements.iter().any(|s| {
            let mut found = false;
            s.walk(&mut |s| found |= matches!(s, Statement::Store { .. }));
            found
        });
        self.locals(statements, around);
        if !self.is_plain() {
            self.hoist(statements, axes);
        }
        // What is used by other statements stands outside the loops over the points.
        for statement in statements {
            if let Statement::Declare(v, _) = statement
                && !self.variables[*v].2
            {
                let ty = self.kernel.variables[*v].ty.clone();
                let name = self.variables[*v].0.clone();
                let of = self.lengths(self.variables[*v].1);
                self.line(&format!("{ty} {name}{of};"));
            }
        }
        let guarded = stores && !self.is_plain();
        let raw = guarded && !self.variant.exact;
        let lows = self.kernel.dims.iter().take(2).any(|d| !d.low.is_empty());
        let guard = guarded && (raw || lows);
        // What is inside is written once to know which places it uses.
        let used = words(&self.written(statements, 0));
        let wanted = [0, 1].map(|axis| {
            let dim = self
                .kernel
                .dims
                .get(axis)
                .filter(|_| axes[axis] && !self.is_plain());
            dim.is_some_and(|d| used.contains(&d.name) || guard)
        });
        let level = self.level;
        for axis in (0..2).rev() {
            if counts[axis] > 1 {
                self.line("#pragma unroll");
                let p = self.names.point[axis].clone();
                self.open(&format!("for (int {p} = 0; {p} < {}; ++{p})", counts[axis]));
            } else if wanted[axis] {
                self.open("");
            }
            if wanted[axis] {
                let line = self.place_line(axis, !guarded);
                self.line(&line);
            }
        }
        if guard {
            let mut all = Vec::new();
            for axis in 0..self.axes() {
                let name = &self.kernel.dims[axis].name;
                if raw {
                    all.push(format!("{name} < {}", self.names.ends[axis]));
                }
                for low in &self.kernel.dims[axis].low {
                    all.push(format!("{name} >= {}", self.poly(low)));
                }
            }
            self.open(&format!("if ({})", all.join(" && ")));
        }
        let inside = self.written(statements, self.level);
        self.out += &inside;
        while self.level > level {
            self.close();
        }
        self.hoisted.clear();
    }

    /// Statements for one point, as text.
    fn written(&mut self, statements: &[Statement], level: usize) -> String {
        let (outer, before) = (std::mem::take(&mut self.out), self.level);
        self.level = level;
        for statement in statements {
            self.point(statement);
        }
        self.level = before;
        std::mem::replace(&mut self.out, outer)
    }

    /// Marks the variables that live for one point alone.
    fn locals(&mut self, statements: &[Statement], around: &[&[Statement]]) {
        let mut outside = BTreeSet::new();
        for statement in around.iter().flat_map(|s| s.iter()) {
            used(statement, self.kernel, &mut outside);
        }
        let plain = self.is_plain();
        for statement in statements {
            let variables = &mut self.variables;
            let mut nested = false;
            statement.walk(&mut |s| {
                if let Statement::Declare(v, _) = s {
                    variables[*v].2 = plain || nested || !outside.contains(v);
                }
                nested = true;
            });
        }
    }

    /// Loads that several points share are done once.
    fn hoist(&mut self, statements: &[Statement], axes: [bool; 2]) {
        let mut found = Vec::new();
        for statement in statements {
            statement
                .own()
                .into_iter()
                .for_each(|v| loads(v, &mut found));
        }
        for access in found {
            if self.hoisted.iter().any(|h| h.0 == access)
                || self.fragments.iter().any(|f| f.of(access).is_some())
            {
                continue;
            }
            let of = &self.kernel.accesses[access];
            let Some(poly) = of.affine() else { continue };
            if self.kernel.arrays[of.array].stored {
                continue;
            }
            let own = self.axes_in(poly);
            let shared = [0, 1]
                .iter()
                .any(|a| axes[*a] && !own[*a] && self.schedule.points[*a] > 1);
            if !shared {
                continue;
            }
            let array = &self.kernel.arrays[of.array];
            let (element, from) = (array.element.clone(), array.text());
            let array = array.name.clone();
            let same = self.hoisted.iter().position(|h| {
                let other = &self.kernel.accesses[h.0];
                other.array == self.kernel.accesses[access].array
                    && other.index == self.kernel.accesses[access].index
            });
            if let Some(same) = same {
                let (_, name, own) = self.hoisted[same].clone();
                self.hoisted.push((access, name, own));
                continue;
            }
            let name = self.fresh(&format!("{array}_own"));
            let lengths = self.lengths(own);
            let index = self.poly(&poly.clone());
            if lengths.is_empty() && own == [false; 2] {
                self.line(&format!("const {element} {name} = {from}[{index}];"));
            } else {
                self.line(&format!("{element} {name}{lengths};"));
                let level = self.level;
                for axis in (0..2).rev().filter(|a| own[*a]) {
                    if self.schedule.points[axis] > 1 {
                        self.line("#pragma unroll");
                        let p = self.names.point[axis].clone();
                        self.open(&format!(
                            "for (int {p} = 0; {p} < {}; ++{p})",
                            self.schedule.points[axis]
                        ));
                    } else {
                        self.open("");
                    }
                    let line = self.place_line(axis, true);
                    self.line(&line);
                }
                let at = self.points(own);
                self.line(&format!("{name}{at} = {from}[{index}];"));
                while self.level > level {
                    self.close();
                }
            }
            self.hoisted.push((access, name, own));
        }
    }

    /// The axes whose places are in a polynomial.
    pub(super) fn axes_in(&self, poly: &Poly) -> [bool; 2] {
        let symbols = poly.symbols();
        let has = |axis: usize| {
            self.kernel
                .dims
                .get(axis)
                .is_some_and(|d| symbols.contains(&d.symbol))
        };
        [has(0), has(1)]
    }

    /// `[8][4]` for what depends on these axes.
    fn lengths(&self, axes: [bool; 2]) -> String {
        let of = |axis: usize| match axes[axis] && self.schedule.points[axis] > 1 {
            true => format!("[{}]", self.schedule.points[axis]),
            false => String::new(),
        };
        of(1) + &of(0)
    }

    fn points(&self, axes: [bool; 2]) -> String {
        let of = |axis: usize| match axes[axis] && self.schedule.points[axis] > 1 {
            true => format!("[{}]", self.names.point[axis]),
            false => String::new(),
        };
        of(1) + &of(0)
    }

    /// A statement for one point.
    fn point(&mut self, statement: &Statement) {
        match statement {
            Statement::Declare(v, value) => {
                let (name, axes, local) = self.variables[*v].clone();
                let ty = self.kernel.variables[*v].ty.clone();
                let at = if local {
                    String::new()
                } else {
                    self.points(axes)
                };
                let value = value.as_ref().map(|value| text(value, self));
                match (local, value) {
                    (true, Some(value)) => self.line(&format!("{ty} {name} = {value};")),
                    (true, None) => self.line(&format!("{ty} {name};")),
                    (false, Some(value)) => self.line(&format!("{name}{at} = {value};")),
                    (false, None) => {}
                }
            }
            Statement::Assign {
                variable,
                member,
                op,
                value,
            } => {
                let mut target = self.variable(*variable);
                if let Some(member) = member {
                    let _ = write!(target, ".{member}");
                }
                let value = text(value, self);
                self.line(&format!("{target} {op} {value};"));
            }
            Statement::Store {
                access,
                member,
                op,
                value,
            } => {
                let mut target = self.global(*access);
                if let Some(member) = member {
                    let _ = write!(target, ".{member}");
                }
                let value = text(value, self);
                self.line(&format!("{target} {op} {value};"));
            }
            Statement::Atomic { access, op, value } => {
                let (place, value) = (self.global(*access), text(value, self));
                self.line(&format!("{}(&{place}, {value});", op.name()));
            }
            Statement::Loop(number, body) => {
                let of = &self.kernel.loops[*number];
                let (low, high, step) = (self.poly(&of.low), self.poly(&of.high), of.step);
                let name = self.counters[*number].clone();
                let step = match step {
                    1 => format!("++{name}"),
                    step => format!("{name} += {step}"),
                };
                self.open(&format!(
                    "for (int {name} = {low}; {name} < {high}; {step})"
                ));
                body.iter().for_each(|s| self.point(s));
                self.close();
            }
            Statement::While(cond, body) => {
                let cond = text(cond, self);
                self.open(&format!("while ({cond})"));
                body.iter().for_each(|s| self.point(s));
                self.close();
            }
            Statement::If(cond, then, otherwise) => {
                let cond = text(cond, self);
                self.open(&format!("if ({cond})"));
                then.iter().for_each(|s| self.point(s));
                if !otherwise.is_empty() {
                    self.level -= 1;
                    self.line("} else {");
                    self.level += 1;
                    otherwise.iter().for_each(|s| self.point(s));
                }
                self.close();
            }
        }
    }

    /// An element where it is in memory.
    fn global(&self, access: usize) -> String {
        let of = &self.kernel.accesses[access];
        let array = self.kernel.arrays[of.array].text();
        match &of.index {
            Index::Affine(poly) => format!("{array}[{}]", self.poly(poly)),
            Index::Value(value) => format!("{array}[{}]", text(value, self)),
        }
    }

    /// A polynomial in the names of the kernel.
    pub(super) fn poly(&self, poly: &Poly) -> String {
        poly.text(|symbol| match symbol {
            Symbol::Size(size) => self.kernel.size_name(size).to_owned(),
            Symbol::Loop(number) => self.counters[number].clone(),
            symbol => self
                .kernel
                .dim(symbol)
                .map_or(String::new(), |d| self.kernel.dims[d].name.clone()),
        })
    }
}

impl Leaves for Emitter<'_> {
    fn parameter(&self, number: usize) -> String {
        self.kernel.parameters[number].name.clone()
    }

    fn variable(&self, number: usize) -> String {
        let (name, axes, local) = &self.variables[number];
        match local {
            true => name.clone(),
            false => format!("{name}{}", self.points(*axes)),
        }
    }

    fn load(&self, access: usize) -> String {
        if let Some(found) = self.fragments.iter().find(|f| f.of(access).is_some()) {
            return self.element(found, access);
        }
        match self.hoisted.iter().find(|h| h.0 == access) {
            Some((_, name, own)) => format!("{name}{}", self.points(*own)),
            None => self.global(access),
        }
    }

    fn int(&self, poly: &Poly) -> String {
        self.poly(poly)
    }
}

/// The names of the parameters that say where the dimensions end.
pub(crate) fn end_names(kernel: &Kernel) -> [String; 4] {
    let taken = names_of(kernel);
    [0, 1, 2, 3].map(|number| {
        let own = kernel.dims.get(number).map_or("none", |d| &d.name);
        free(format!("{own}_end"), |name| taken.contains(name))
    })
}

/// By variable: the axes that its value depends on.
pub(super) fn dependences(kernel: &Kernel) -> Vec<[bool; 2]> {
    let mut found = vec![[false; 2]; kernel.variables.len()];
    loop {
        let before = found.clone();
        for statement in &kernel.body {
            depend(kernel, statement, [false; 2], &mut found);
        }
        if found == before {
            return found;
        }
    }
}

fn depend(kernel: &Kernel, statement: &Statement, around: [bool; 2], found: &mut [[bool; 2]]) {
    let or = |a: [bool; 2], b: [bool; 2]| [a[0] || b[0], a[1] || b[1]];
    match statement {
        Statement::Declare(v, value) => {
            let axes = value
                .as_ref()
                .map_or([false; 2], |value| of_value(kernel, value, found));
            // Declared inside a condition or a loop of its own, it is one of the point all the same.
            found[*v] = or(or(found[*v], axes), around);
        }
        Statement::Assign {
            variable, value, ..
        } => {
            let axes = of_value(kernel, value, found);
            found[*variable] = or(or(found[*variable], axes), around);
        }
        Statement::Store { .. } | Statement::Atomic { .. } => {}
        Statement::Loop(number, body) => {
            let of = &kernel.loops[*number];
            let axes = or(of_poly(kernel, &of.low), of_poly(kernel, &of.high));
            body.iter()
                .for_each(|s| depend(kernel, s, or(around, axes), found));
            if !is_uniform(kernel, *number) {
                together(kernel, statement, found);
            }
        }
        Statement::While(cond, body) => {
            let axes = or(around, of_value(kernel, cond, found));
            body.iter().for_each(|s| depend(kernel, s, axes, found));
            together(kernel, statement, found);
        }
        Statement::If(cond, then, otherwise) => {
            let axes = or(around, of_value(kernel, cond, found));
            then.iter()
                .chain(otherwise)
                .for_each(|s| depend(kernel, s, axes, found));
            together(kernel, statement, found);
        }
    }
}

/// A statement that is done for one point after the other changes all its variables as often: they depend on the same
/// axes, on all where it stores.
fn together(kernel: &Kernel, statement: &Statement, found: &mut [[bool; 2]]) {
    let (mut changed, mut stores) = (Vec::new(), false);
    statement.walk(&mut |s| match s {
        Statement::Declare(v, _) | Statement::Assign { variable: v, .. } => changed.push(*v),
        Statement::Store { .. } | Statement::Atomic { .. } => stores = true,
        _ => {}
    });
    let axes = [stores, stores && kernel.dims.len() > 1];
    let all = changed
        .iter()
        .fold(axes, |a, v| [a[0] || found[*v][0], a[1] || found[*v][1]]);
    changed.into_iter().for_each(|v| found[v] = all);
}

fn of_poly(kernel: &Kernel, poly: &Poly) -> [bool; 2] {
    let symbols = poly.symbols();
    let mut axes = [0, 1].map(|a: usize| {
        kernel
            .dims
            .get(a)
            .is_some_and(|d| symbols.contains(&d.symbol))
    });
    // The counter of a loop whose ends depend on a place does so itself.
    for symbol in &symbols {
        if let Symbol::Loop(number) = symbol {
            let of = &kernel.loops[*number];
            for poly in [&of.low, &of.high] {
                let more = of_poly(kernel, poly);
                axes = [axes[0] || more[0], axes[1] || more[1]];
            }
        }
    }
    axes
}

fn of_value(kernel: &Kernel, value: &Value, found: &[[bool; 2]]) -> [bool; 2] {
    let mut axes = [false; 2];
    value.walk(false, &mut |value, _| {
        let more = match value {
            Value::Variable(v) => found[*v],
            Value::Int(poly, _) => of_poly(kernel, poly),
            Value::Load(access) => match &kernel.accesses[*access].index {
                Index::Affine(poly) => of_poly(kernel, poly),
                Index::Value(value) => of_value(kernel, value, found),
            },
            _ => [false; 2],
        };
        axes = [axes[0] || more[0], axes[1] || more[1]];
    });
    // An array that is stored to holds what its point has stored.
    value.walk(false, &mut |value, _| {
        if let Value::Load(access) = value
            && kernel.arrays[kernel.accesses[*access].array].stored
        {
            axes = [true, kernel.dims.len() > 1];
        }
    });
    axes
}

/// The variables that a statement reads, writes or declares.
fn used(statement: &Statement, kernel: &Kernel, all: &mut BTreeSet<usize>) {
    statement.walk(&mut |s| {
        let mut see = |value: &Value| variables(value, kernel, all);
        match s {
            Statement::Store { access, value, .. } => {
                see(value);
                if let Index::Value(index) = &kernel.accesses[*access].index {
                    see(index);
                }
            }
            other => other.own().into_iter().for_each(see),
        }
        if let Statement::Assign { variable, .. } = s {
            all.insert(*variable);
        }
    });
}

fn variables(value: &Value, kernel: &Kernel, all: &mut BTreeSet<usize>) {
    value.walk(false, &mut |value, _| match value {
        Value::Variable(v) => {
            all.insert(*v);
        }
        Value::Load(access) => {
            if let Index::Value(index) = &kernel.accesses[*access].index {
                variables(index, kernel, all);
            }
        }
        _ => {}
    });
}
