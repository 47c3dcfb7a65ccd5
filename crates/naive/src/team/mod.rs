//! Goal: the turns of a loop over a team of threads, where a naive kernel gives all of them to one thread.
//!
//! A sum over a row (`mv`, a softmax, a layer norm) leaves most of the GPU idle when a thread takes a row, and its
//! loads are not coalesced: neighbouring threads are a row apart. Here a warp or a block takes a row, its threads take
//! neighbouring turns, and what they found is combined by shuffles and in shared memory. A sum over a column (`tmv`) is
//! coalesced as it is; there the warps of a block take turns, and its lanes stay columns.
//!
//! Paper: Yang et al., PLDI 2010, sections 3.3 and 3.4 (coalescing through shared memory, data sharing) and the
//! reduction of section 6.2. Departures: the paper stages tiles of the matrix in shared memory so that half-warps load
//! 64 bytes at once, and keeps one thread for a row. A warp of today combines its lanes' values without shared memory,
//! so nothing has to be staged, and a row is loaded in the order of memory by the threads that use it.
//!
//! Requires: loops at the top of the kernel whose turns are independent but for sums, maxima and minima
//! ([`turns`]); `reassociate` where a sum of floating-point numbers would change its order.
//! Preserves: everything else to the bit. The order of a sum depends on the numbers of turns and threads alone.

mod turns;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use warpwright_cudac::affine::{Poly, Symbol};
use warpwright_target::RESIDENT_THREADS;

use crate::bounds::{end, largest};
use crate::emit::{Condition, Entry, Generated, Parts, plane};
use crate::ir::{Kernel, Statement, Value, any};
use crate::text::{Text, four_times};
use crate::wide;
pub use turns::Apart;
pub(crate) use turns::{Combine, Sum, analyse, only_loop};

/// How turns are divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Team {
    /// Threads of a block.
    pub threads: u32,
    /// What the lanes of a warp are.
    pub lanes: Lanes,
    /// Turns that are written out one after the other.
    pub unroll: u32,
    /// Blocks that the GPU wants: where points give fewer, each point's turns are divided among several blocks, and a
    /// second kernel brings their results together. 0: they are not divided.
    pub blocks: u32,
    /// The four turns of an access of 16 bytes are added up apart, so that an addition does not wait for the one before
    /// it.
    pub apart: bool,
    /// Of two kernels the second is launched while the first one runs.
    pub early: bool,
    /// Blocks that an SM must have room for, whatever registers that leaves; 0: the compiler's own choice, which may take
    /// fewer registers than turns written out need to be loaded together.
    pub resident: u32,
}

/// What the lanes of a warp are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lanes {
    /// Turns of one point: a block takes so many points.
    Turns {
        /// Points of a block: each has whole warps.
        points: u32,
    },
    /// Points: the warps of a block take turns.
    Points,
}

impl Team {
    /// Threads that share the turns of a point.
    pub fn size(&self) -> u32 {
        match self.lanes {
            Lanes::Turns { points } => self.threads / points.max(1),
            Lanes::Points => self.threads / 32,
        }
    }

    /// Points of a block.
    pub fn points(&self) -> u32 {
        match self.lanes {
            Lanes::Turns { points } => points,
            Lanes::Points => 32,
        }
    }

    fn fits(&self) -> bool {
        let size = self.size();
        let whole = self.threads.is_multiple_of(32) && (32..=1024).contains(&self.threads);
        let shape = match self.lanes {
            Lanes::Turns { points } => {
                points > 0
                    && size.checked_mul(points) == Some(self.threads)
                    && size.is_multiple_of(32)
                    && (points == 1 || size == 32)
            }
            Lanes::Points => size > 1,
        };
        let room = self.threads.saturating_mul(self.resident) <= RESIDENT_THREADS;
        whole && shape && room && (1..=64).contains(&self.unroll)
    }
}

/// Why there is no such kernel.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// The loops do not allow it.
    #[error(transparent)]
    Apart(#[from] Apart),
    /// The numbers contradict each other.
    #[error("the numbers are not those of a team")]
    Shape,
}

/// The kernels in which a team of threads takes a point: with accesses of 16 bytes where rows allow it, and without.
///
/// # Errors
/// See [`Unfit`].
pub fn generate(kernel: &Kernel, team: &Team) -> Result<Generated, Unfit> {
    let sums = analyse(kernel)?;
    if !team.fits() {
        return Err(Unfit::Shape);
    }
    let mut entries = Vec::new();
    for is_wide in [true, false] {
        entries.extend(divided(kernel, team, &sums, is_wide)?);
    }
    for is_wide in [true, false] {
        let mut writer = Writer::new(kernel, team, is_wide);
        writer.places();
        let last = sums.iter().rposition(Option::is_some);
        for (at, (statement, sums)) in kernel.body.iter().zip(&sums).enumerate() {
            match (statement, sums) {
                (Statement::Loop(number, body), Some(sums)) => {
                    writer.turns(*number, body, sums, last == Some(at));
                }
                _ => writer.alone(statement)?,
            }
        }
        if is_wide && !writer.is_widened {
            continue;
        }
        let suffix = if is_wide { "_team_wide" } else { "_team" };
        entries.push(writer.entry(suffix));
    }
    let reordered = sums.iter().flatten().flatten().any(Sum::is_reordered);
    let names: Vec<&str> = sums
        .iter()
        .flatten()
        .flatten()
        .map(|s| kernel.variables[s.variable].name.as_str())
        .collect();
    let mut note = match team.lanes {
        Lanes::Turns { .. } => format!(
            "{} threads share the turns of a point, so that neighbours load neighbouring elements",
            team.size()
        ),
        Lanes::Points => format!(
            "{} warps of a block share the turns; their lanes are neighbouring points",
            team.size()
        ),
    };
    if !names.is_empty() {
        let _ = write!(note, "; `{}` is combined at the end", names.join("`, `"));
    }
    if entries.iter().any(|e| e.parts.is_some()) {
        let _ = write!(
            note,
            "; few points: their turns are divided among blocks, whose results a second kernel brings together"
        );
    }
    Ok(Generated {
        entries,
        notes: vec![note],
        reordered,
        shares: true,
    })
}

/// The two kernels that divide each point's turns among blocks; none where the kernel does not allow it: it has another
/// dimension, a second loop, or stores in front of the end.
fn divided(
    kernel: &Kernel,
    team: &Team,
    sums: &[Option<Vec<Sum>>],
    is_wide: bool,
) -> Result<Option<Entry>, Apart> {
    let (Some((at, number, body, sums)), 1) = (only_loop(kernel, sums), kernel.dims.len()) else {
        return Ok(None);
    };
    let stores = any(&kernel.body[..=at], |s| {
        matches!(s, Statement::Store { .. })
    });
    let counter = &kernel.loops[number];
    let turns = counter
        .high
        .plus(&counter.low, -1)
        .and_then(|span| largest(kernel, &span));
    let by_point = matches!(team.lanes, Lanes::Turns { points: 1 } | Lanes::Points);
    let (Some(turns), 1, false, true, true) =
        (turns, counter.step, stores, by_point, team.blocks > 0)
    else {
        return Ok(None);
    };
    // The first kernel: a part of the turns, and its result to memory.
    let mut first = Writer::new(kernel, team, is_wide);
    let [part, parts, from, to, each] =
        ["part", "parts", "from", "to", "each"].map(|w| first.text.fresh(w));
    let stems = sums.iter().map(|s| &kernel.variables[s.variable].name);
    let memory = stems.map(|stem| first.text.fresh(&format!("{stem}_memory")));
    let memory: Vec<String> = memory.collect();
    if team.early {
        early(&mut first.text, "cudaTriggerProgrammaticLaunchCompletion");
    }
    first.places();
    for statement in &kernel.body[..at] {
        first.alone(statement)?;
    }
    let (low, high) = (
        first.text.poly(&counter.low),
        first.text.poly(&counter.high),
    );
    // Whole groups of the turns that are written out: what is left over is loaded one by one. The last parts may have no
    // turn, and begin beyond what 32 bits hold.
    let group = 4 * team.size() * team.unroll;
    first.text.lines(&format!(
        "const int {part} = blockIdx.y;\n\
         const int {each} = (({high} - ({low}) + {parts} - 1) / {parts} + {}) / {group} * {group};\n\
         const int {from} = (int)min((long long)({high}), {low} + (long long){part} * {each});\n\
         const int {to} = (int)min((long long)({high}), (long long){from} + {each});",
        group - 1
    ));
    first.range = Some((from, to));
    let own = first.own_turns(number, body, sums);
    let place = format!("[{part} * {} + {}]", first.text.end(0), kernel.dims[0].name);
    for ((own, sum), memory) in own.iter().zip(sums).zip(&memory) {
        first.combine(sum, own, false);
        let line = format!("if ({}) {memory}{place} = {own};", first.first_inside());
        first.text.line(&line);
    }
    if is_wide && !first.is_widened {
        return Ok(None);
    }
    // The second: all parts, and what follows.
    let second_team = Team {
        threads: 256,
        unroll: 1,
        resident: 0,
        ..*team
    };
    let mut second = Writer::new(kernel, &second_team, false);
    for name in [&part, &parts].into_iter().chain(&memory) {
        second.text.fresh(name);
    }
    if team.early {
        early(&mut second.text, "cudaGridDependencySynchronize");
    }
    second.places();
    for statement in &kernel.body[..at] {
        second.alone(statement)?;
    }
    for (sum, memory) in sums.iter().zip(&memory) {
        let own = second.declare_own(sum);
        let both = sum.both(&own, &format!("{memory}{place}"));
        let (rank, size) = (second.rank.clone(), second_team.size());
        second.text.line(&format!(
            "for (int {part} = {rank}; {part} < {parts}; {part} += {size}) {own} = {both};"
        ));
        second.combine(sum, &own, false);
        let whole = second.text.variable(sum.variable).to_owned();
        let both = sum.both(&whole, &own);
        second.text.line(&format!("{whole} = {both};"));
    }
    for statement in &kernel.body[at + 1..] {
        second.alone(statement)?;
    }
    let values = sums
        .iter()
        .zip(memory)
        .map(|(sum, name)| (kernel.variables[sum.variable].ty.clone(), name))
        .collect();
    let mut entry = second.entry(if is_wide {
        "_team_parts_wide"
    } else {
        "_team_parts"
    });
    entry.is_wide = is_wide;
    entry.conditions = first.conditions;
    entry.parts = Some(Parts {
        body: first.text.out,
        threads: team.threads,
        tile: team.points(),
        turns,
        least: i64::from(group),
        blocks: i64::from(team.blocks),
        count: parts,
        values,
        early: team.early,
        resident: team.resident,
    });
    Ok(Some(entry))
}

/// The second of two kernels is launched before the first one ends (programmatic dependent launch, compute capability
/// 9.0), and waits for it before it reads anything.
fn early(text: &mut Text<'_>, function: &str) {
    text.lines(&format!("#if __CUDA_ARCH__ >= 900\n{function}();\n#endif"));
}

struct Writer<'k> {
    kernel: &'k Kernel,
    team: &'k Team,
    text: Text<'k>,
    /// Accesses of 16 bytes where they can be.
    is_wide: bool,
    /// There is one.
    is_widened: bool,
    conditions: Vec<Condition>,
    rank: String,
    column: String,
    inside: String,
    /// Where the turns of the block begin and end, if it does not do all of them.
    range: Option<(String, String)>,
    /// By variable: the shared memory in which its parts are already.
    filled: BTreeMap<usize, String>,
}

impl<'k> Writer<'k> {
    fn new(kernel: &'k Kernel, team: &'k Team, is_wide: bool) -> Self {
        let mut text = Text::new(kernel);
        let [rank, column, inside] = ["rank", "column", "inside"].map(|w| text.fresh(w));
        Writer {
            kernel,
            team,
            text,
            is_wide,
            is_widened: false,
            conditions: Vec::new(),
            rank,
            column,
            inside,
            range: None,
            filled: BTreeMap::new(),
        }
    }

    /// The kernel as it was written so far.
    fn entry(self, suffix: &str) -> Entry {
        Entry {
            suffix: suffix.to_owned(),
            is_wide: self.is_wide,
            body: self.text.out,
            threads: self.team.threads,
            tile: [self.team.points(), 1, 1],
            resident: self.team.resident,
            conditions: self.conditions,
            ..Entry::default()
        }
    }

    /// Is it the first thread of a team with a point?
    fn first_inside(&self) -> String {
        match self.team.lanes {
            Lanes::Points => format!("{} == 0 && {}", self.rank, self.inside),
            Lanes::Turns { .. } => format!("{} == 0", self.rank),
        }
    }

    /// The thread's points and its place in the team.
    fn places(&mut self) {
        let (rank, size, points) = (self.rank.clone(), self.team.size(), self.team.points());
        let x = self.kernel.dims[0].clone();
        let x_end = self.text.end(0).to_owned();
        match self.team.lanes {
            Lanes::Turns { points: 1 } => {
                self.text.lines(&format!(
                    "const int {rank} = threadIdx.x;\nconst int {} = blockIdx.x;",
                    x.name
                ));
            }
            Lanes::Turns { .. } => {
                self.text.lines(&format!(
                    "const int {rank} = threadIdx.x % {size};\n\
                     const int {} = blockIdx.x * {points} + threadIdx.x / {size};",
                    x.name
                ));
            }
            Lanes::Points => {
                let (column, inside) = (self.column.clone(), self.inside.clone());
                let place = self.text.fresh("place");
                let mut test = format!("{place} < {x_end}");
                let mut clamped = format!("min({place}, {x_end} - 1)");
                for low in &x.low {
                    let low = self.text.poly(low);
                    let _ = write!(test, " && {place} >= {low}");
                    clamped = format!("max({clamped}, {low})");
                }
                self.text.lines(&format!(
                    "const int {column} = threadIdx.x % 32;\n\
                     const int {rank} = threadIdx.x / 32;\n\
                     const int {place} = blockIdx.x * 32 + {column};\n\
                     const bool {inside} = {test};\n\
                     // Threads outside compute what the last one computes, and store nothing.\n\
                     const int {} = {clamped};",
                    x.name
                ));
            }
        }
        for (number, dim) in self.kernel.dims.iter().enumerate().skip(1) {
            let place = plane(self.kernel, number);
            let line = format!("const int {} = {place};", dim.name);
            self.text.line(&line);
        }
        // Blocks and warps leave as a whole.
        for (number, dim) in self.kernel.dims.iter().enumerate() {
            if number == 0 && self.team.lanes == Lanes::Points {
                continue;
            }
            let mut tests: Vec<String> = dim
                .low
                .iter()
                .map(|low| format!("{} < {}", dim.name, self.text.poly(low)))
                .collect();
            if number == 0 && points > 1 {
                tests.push(format!("{} >= {x_end}", dim.name));
            }
            if !tests.is_empty() {
                let line = format!("if ({}) return;", tests.join(" || "));
                self.text.line(&line);
            }
        }
    }

    /// A statement that every thread of the team does, but for its stores.
    fn alone(&mut self, statement: &Statement) -> Result<(), Apart> {
        let (mut stores, mut assigns) = (false, false);
        statement.walk(&mut |s| {
            stores |= matches!(s, Statement::Store { .. });
            assigns |= matches!(s, Statement::Assign { .. });
        });
        if stores && assigns {
            return Err(Apart::Condition);
        }
        if stores {
            let inside = self.first_inside();
            self.text.open(&format!("if ({inside})"));
        }
        self.text.statement(statement);
        if stores {
            self.text.close();
        }
        Ok(())
    }

    /// A loop whose turns the team divides.
    fn turns(&mut self, number: usize, body: &[Statement], sums: &[Sum], is_last: bool) {
        let own = self.own_turns(number, body, sums);
        for (at, (sum, own)) in sums.iter().zip(own).enumerate() {
            self.combine(sum, &own, is_last && at + 1 == sums.len());
            let whole = self.text.variable(sum.variable).to_owned();
            let both = sum.both(&whole, &own);
            self.text.line(&format!("{whole} = {both};"));
        }
    }

    /// A thread's part of a sum.
    fn declare_own(&mut self, sum: &Sum) -> String {
        let variable = &self.kernel.variables[sum.variable];
        let name = self.text.fresh(&format!("{}_own", variable.name));
        let first = match sum.combine {
            Combine::Add => "0".to_owned(),
            Combine::Largest | Combine::Least => self.text.variable(sum.variable).to_owned(),
        };
        let line = format!("{} {name} = {first};", variable.ty);
        self.text.line(&line);
        name
    }

    /// The turns of a thread, and the names of what they add up to.
    fn own_turns(&mut self, number: usize, body: &[Statement], sums: &[Sum]) -> Vec<String> {
        if let Some(plan) = self.columns_plan(number, body, sums) {
            return self.column_turns(number, body, sums, plan);
        }
        let plan = match self.is_wide && matches!(self.team.lanes, Lanes::Turns { .. }) {
            true => wide_plan(self.kernel, number, body),
            false => None,
        };
        if let Some(plan) = plan.as_ref().filter(|_| self.team.apart) {
            return self.turns_apart(number, body, sums, plan);
        }
        let mut whole = Vec::new();
        for sum in sums {
            let name = self.declare_own(sum);
            whole.push(self.text.rename(sum.variable, name));
        }
        let stores = any(body, |s| matches!(s, Statement::Store { .. }));
        let guarded = stores && self.team.lanes == Lanes::Points;
        if guarded {
            let inside = self.inside.clone();
            self.text.open(&format!("if ({inside})"));
        }
        match plan {
            Some(plan) => {
                let turn = self.text.fresh("turn");
                self.wide_turns(number, body, &plan, &turn);
            }
            None => self.plain_turns(number, body),
        }
        if guarded {
            self.text.close();
        }
        sums.iter()
            .zip(whole)
            .map(|(sum, whole)| self.text.rename(sum.variable, whole))
            .collect()
    }

    /// The turns of a thread, four at a time, each of the four with sums of its own.
    fn turns_apart(
        &mut self,
        number: usize,
        body: &[Statement],
        sums: &[Sum],
        plan: &wide::Plan,
    ) -> Vec<String> {
        let turn = self.text.fresh("turn");
        let mut all = Vec::new();
        for sum in sums {
            let own = self.declare_own(sum);
            let variable = &self.kernel.variables[sum.variable];
            let four = self.text.fresh(&format!("{}_four", variable.name));
            self.text.line(&format!(
                "{} {four}[4] = {{{own}, {own}, {own}, {own}}};",
                variable.ty
            ));
            let whole = self.text.rename(sum.variable, format!("{four}[{turn}]"));
            all.push((own, four, whole));
        }
        self.wide_turns(number, body, plan, &turn);
        let mut names = Vec::new();
        for (sum, (own, four, whole)) in sums.iter().zip(all) {
            self.text.rename(sum.variable, whole);
            let [a, b] = [0, 2].map(|at| {
                let [a, b] = [at, at + 1].map(|at| format!("{four}[{at}]"));
                sum.both(&a, &b)
            });
            let both = sum.both(&format!("({a})"), &format!("({b})"));
            self.text.line(&format!("{own} = {both};"));
            names.push(own);
        }
        names
    }

    /// Four neighbouring points for a thread, where all that a turn reads of them is whole vectors, and nothing else tells
    /// points apart.
    fn columns_plan(&self, number: usize, body: &[Statement], sums: &[Sum]) -> Option<wide::Plan> {
        let (kernel, dim) = (self.kernel, &self.kernel.dims[0]);
        let counter = &kernel.loops[number];
        let of_points = |poly: &Poly| poly.symbols().contains(&dim.symbol);
        let fits = self.is_wide
            && self.team.lanes == Lanes::Points
            && dim.low.is_empty()
            && !of_points(&counter.low)
            && !of_points(&counter.high)
            && sums.iter().all(|s| s.combine == Combine::Add);
        let mut plain = fits;
        let mut own: Vec<usize> = sums.iter().map(|s| s.variable).collect();
        let mut used = Vec::new();
        for statement in body {
            statement.walk(&mut |s| {
                plain &= !matches!(s, Statement::Loop(..) | Statement::Store { .. });
                if let Statement::Declare(variable, _) = s {
                    own.push(*variable);
                }
                s.own().into_iter().for_each(|v| {
                    v.walk(false, &mut |v, _| match v {
                        Value::Variable(variable) => used.push(*variable),
                        Value::Load(access) => {
                            plain &= kernel.accesses[*access].affine().is_some();
                        }
                        _ => {}
                    });
                });
            });
        }
        if !plain || used.iter().any(|v| !own.contains(v)) {
            return None;
        }
        let mut plan = wide::plan(kernel, dim.symbol, body, Some(number))?;
        plan.push(Condition::Multiple(Poly::symbol(end(0)), 4));
        (!plan.uses_counter).then_some(plan)
    }

    /// The turns of a thread for four neighbouring points; what a warp found is in shared memory afterwards.
    fn column_turns(
        &mut self,
        number: usize,
        body: &[Statement],
        sums: &[Sum],
        plan: wide::Plan,
    ) -> Vec<String> {
        self.is_widened = true;
        for condition in plan.conditions {
            if !self.conditions.contains(&condition) {
                self.conditions.push(condition);
            }
        }
        let kernel = self.kernel;
        let point = kernel.dims[0].symbol;
        let words = ["first", "row", "turn", "far"];
        let [first, row, turn, far] = words.map(|word| self.text.fresh(word));
        let x_end = self.text.end(0).to_owned();
        self.text.lines(&format!(
            "// Here a thread has four neighbouring points, and a warp four turns at once.\n\
             const int {first} = min((int)(blockIdx.x * 32 + threadIdx.x % 8 * 4), {x_end} - 4);\n\
             const int {row} = threadIdx.x / 8;"
        ));
        let mut names = Vec::new();
        let mut whole = Vec::new();
        for sum in sums {
            let variable = &kernel.variables[sum.variable];
            let name = self.text.fresh(&format!("{}_four", variable.name));
            let line = format!("{} {name}[4] = {{}};", variable.ty);
            self.text.line(&line);
            whole.push(self.text.rename(sum.variable, format!("{name}[{turn}]")));
            names.push(name);
        }
        let counter = &kernel.loops[number];
        let (low, high) = self.ends(number);
        let (name, step) = (counter.name.clone(), counter.step);
        let by = step * i64::from(self.team.threads / 8);
        let begin = match (low.as_str(), step) {
            ("0", 1) => row,
            ("0", step) => format!("{row} * {step}"),
            (low, 1) => format!("{low} + {row}"),
            (low, step) => format!("{low} + {row} * {step}"),
        };
        self.unroll(body);
        self.text.open(&format!(
            "for (int {name} = {begin}; {name} < {high}; {name} += {by})"
        ));
        for group in &plan.groups {
            group.write(kernel, &mut self.text, point, &first, &turn);
        }
        self.text.lines(&four_times(&turn));
        self.text.statements(body);
        self.text.lines("}\n}");
        plan.groups.iter().for_each(|g| g.end(&mut self.text));
        for (sum, whole) in sums.iter().zip(whole) {
            self.text.rename(sum.variable, whole);
        }
        let mut all = Vec::new();
        for (sum, four) in sums.iter().zip(names) {
            let ty = kernel.variables[sum.variable].ty.clone();
            let name = kernel.variables[sum.variable].name.clone();
            let own = format!("{four}[{turn}]");
            let other = format!("__shfl_xor_sync(0xffffffff, {own}, {far})");
            let both = sum.both(&own, &other);
            let parts = self.text.fresh(&format!("{name}_parts"));
            let name = self.text.fresh(&format!("{name}_own"));
            self.text.lines(&format!(
                "__shared__ {ty} {parts}[{}][32];\n\
                 {}\n\
                 for (int {far} = 8; {far} < 32; {far} *= 2) {own} = {both};\n\
                 if (threadIdx.x % 32 < 8) {parts}[{}][threadIdx.x % 8 * 4 + {turn}] = {own};\n\
                 }}\n\
                 {ty} {name};",
                self.team.size(),
                four_times(&turn),
                self.rank
            ));
            self.filled.insert(sum.variable, parts);
            all.push(name);
        }
        all
    }

    fn unroll(&mut self, body: &[Statement]) {
        let inner = any(body, |s| matches!(s, Statement::Loop(..)));
        if !inner && self.team.unroll > 1 {
            let line = format!("#pragma unroll {}", self.team.unroll);
            self.text.line(&line);
        }
    }

    /// Where the turns of a loop begin and end for the block.
    fn ends(&self, number: usize) -> (String, String) {
        let counter = &self.kernel.loops[number];
        let all = || (self.text.poly(&counter.low), self.text.poly(&counter.high));
        self.range.clone().unwrap_or_else(all)
    }

    fn plain_turns(&mut self, number: usize, body: &[Statement]) {
        let counter = &self.kernel.loops[number];
        let (low, high) = self.ends(number);
        let (name, step) = (counter.name.clone(), counter.step);
        let size = i64::from(self.team.size());
        let rank = match step {
            1 => self.rank.clone(),
            step => format!("{} * {step}", self.rank),
        };
        let first = match low.as_str() {
            "0" => rank,
            low => format!("{low} + {rank}"),
        };
        self.unroll(body);
        self.text.open(&format!(
            "for (int {name} = {first}; {name} < {high}; {name} += {})",
            step * size
        ));
        self.text.statements(body);
        self.text.close();
    }

    fn wide_turns(&mut self, number: usize, body: &[Statement], plan: &wide::Plan, turn: &str) {
        self.is_widened = true;
        for condition in &plan.conditions {
            if !self.conditions.contains(condition) {
                self.conditions.push(condition.clone());
            }
        }
        let counter = &self.kernel.loops[number];
        let (low, high) = match self.range.clone() {
            Some((low, high)) => (format!("{low} + "), high),
            None => (String::new(), self.text.poly(&counter.high)),
        };
        let first = self.text.fresh(&format!("{}_first", counter.name));
        let size = 4 * self.team.size();
        self.unroll(body);
        let rank = self.rank.clone();
        self.text.open(&format!(
            "for (int {first} = {low}{rank} * 4; {first} < {high}; {first} += {size})"
        ));
        let mut late = Vec::new();
        for group in &plan.groups {
            let (text, turns) = (&mut self.text, Symbol::Loop(number));
            late.extend(group.write(self.kernel, text, turns, &first, turn));
        }
        self.text.lines(&four_times(turn));
        if plan.uses_counter {
            let line = format!("const int {} = {first} + {turn};", counter.name);
            self.text.line(&line);
        }
        self.text.statements(body);
        self.text.close();
        for line in late {
            self.text.line(&line);
        }
        self.text.close();
        plan.groups.iter().for_each(|g| g.end(&mut self.text));
    }

    /// Brings together what the threads of a team found; all of them have it then, or those alone that store, if it is
    /// the last one.
    fn combine(&mut self, sum: &Sum, own: &str, is_last: bool) {
        let size = self.team.size();
        let ty = self.kernel.variables[sum.variable].ty.clone();
        let rank = self.rank.clone();
        if let Lanes::Turns { .. } = self.team.lanes {
            let far = self.text.fresh("far");
            let other = format!("__shfl_xor_sync(0xffffffff, {own}, {far})");
            let both = sum.both(own, &other);
            let head = format!("for (int {far} = 16; {far} > 0; {far} /= 2)");
            self.text.line(&format!("{head} {own} = {both};"));
            if size == 32 {
                return;
            }
        }
        let filled = self.filled.remove(&sum.variable);
        let is_filled = filled.is_some();
        let parts = filled.unwrap_or_else(|| {
            let name = &self.kernel.variables[sum.variable].name;
            self.text.fresh(&format!("{name}_parts"))
        });
        let part = self.text.fresh("part");
        let (count, column) = match self.team.lanes {
            Lanes::Turns { .. } => {
                let warps = size / 32;
                self.text.lines(&format!(
                    "__shared__ {ty} {parts}[{warps}];\n\
                     if ({rank} % 32 == 0) {parts}[{rank} / 32] = {own};"
                ));
                (warps, String::new())
            }
            Lanes::Points => {
                let column = format!("[{}]", self.column);
                if !is_filled {
                    self.text.lines(&format!(
                        "__shared__ {ty} {parts}[{size}][32];\n{parts}[{rank}]{column} = {own};"
                    ));
                }
                (size, column)
            }
        };
        self.text.line("__syncthreads();");
        if is_last && self.team.lanes == Lanes::Points {
            self.text.line(&format!("if ({rank} != 0) return;"));
        }
        let both = sum.both(own, &format!("{parts}[{part}]{column}"));
        self.text.lines(&format!(
            "{own} = {parts}[0]{column};\n\
             #pragma unroll\n\
             for (int {part} = 1; {part} < {count}; {part}++) {own} = {both};"
        ));
    }
}

/// Four turns at once, of a loop that begins at 0 in single steps.
fn wide_plan(kernel: &Kernel, number: usize, body: &[Statement]) -> Option<wide::Plan> {
    let counter = &kernel.loops[number];
    if !counter.low.is_zero() || counter.step != 1 {
        return None;
    }
    let mut plan = wide::plan(kernel, Symbol::Loop(number), body, None)?;
    plan.push(Condition::Multiple(counter.high.clone(), 4));
    Some(plan)
}
