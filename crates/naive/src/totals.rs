//! Goal: what all points count in a few cells is added up in each block before it goes to memory.
//!
//! `atomicAdd(total, x[i])` has every thread of the GPU wait for one element of memory, and `atomicAdd(&bins[x[i]], 1)`
//! for a few. Here a thread takes several points. What goes to one cell waits in a register, and a block's values are
//! combined by shuffles; what goes to a cell that the data choose waits in a table in shared memory, where the table
//! is small. Then a block changes each cell once. What is read is loaded for several turns together.
//!
//! Paper: Yang et al., PLDI 2010, section 3.5.2 (thread merge) and the reduction of section 6.2. Departure: the paper's
//! kernels have no atomics; a table per block is what histograms by hand have.
//!
//! Requires: no loop; no use of what an operation gives back; a table whose length is known (bytes, or a condition
//! around the operation) and not above [`MOST_CELLS`]; points that share a cell lie along one axis.
//! Preserves: integers to the bit. The order in which an atomic operation adds floating-point numbers was never given;
//! the sums are compared as reordered ones.

use warpwright_cudac::Scalar;
use warpwright_cudac::affine::{Poly, Symbol};
use warpwright_cudac::names::free;

use crate::emit::{Condition, Entry, Generated, plane};
use crate::ir::{Access, Array, AtomicOp, Index, Kernel, Statement, Value, Variable};
use crate::text::{Text, four_times};
use crate::wide::{self, Group};

/// How a block takes its points.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Totals {
    /// Threads of a block.
    pub threads: u32,
    /// Points of a thread, or runs of four neighbours.
    pub points: u32,
}

/// Why there is no such kernel.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// Nothing is counted.
    #[error("the kernel has no atomic operation")]
    NoAtomic,
    /// A point has a loop.
    #[error("the kernel has a loop")]
    Loop,
    /// How many cells the data choose from is not known, or large.
    #[error("how many elements are counted in is not known, or large")]
    Cells,
    /// Every point has a cell of its own.
    #[error("no points share an element along one axis")]
    Own,
    /// Several operations of several kinds, or elements that shared memory does not count in.
    #[error("elements are changed in several ways, or have another type than integers of 32 bits")]
    Kinds,
    /// The numbers contradict each other.
    #[error("the numbers are not those of a block")]
    Shape,
}

/// Most cells of the tables of a block, of four bytes each.
pub const MOST_CELLS: i64 = 8192;

/// Where the values of an operation wait.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Wait {
    /// In a register: the cell is the same along the axis.
    Register {
        /// All threads of a block have one cell.
        is_shared: bool,
    },
    /// In a table of so many cells; none of them lies in front of it where that is said.
    Table { below: Poly, is_natural: bool },
}

/// An operation.
#[derive(Clone, Debug)]
pub(crate) struct Count {
    pub(crate) access: usize,
    pub(crate) op: AtomicOp,
    pub(crate) wait: Wait,
}

/// The operations of a kernel, and the axis along which a thread takes its points.
///
/// # Errors
/// See [`Unfit`].
pub(crate) fn counts(kernel: &Kernel) -> Result<(Vec<Count>, usize), Unfit> {
    let mut found: Vec<(usize, AtomicOp)> = Vec::new();
    let mut loops = false;
    for statement in &kernel.body {
        statement.walk(&mut |s| match s {
            Statement::Atomic { access, op, .. } => found.push((*access, *op)),
            Statement::Loop(..) => loops = true,
            _ => {}
        });
    }
    if found.is_empty() {
        return Err(Unfit::NoAtomic);
    }
    if loops {
        return Err(Unfit::Loop);
    }
    let has = |access: usize, dim: usize| {
        let of = kernel.accesses[access].affine().zip(kernel.dims.get(dim));
        of.is_some_and(|(poly, dim)| poly.symbols().contains(&dim.symbol))
    };
    let in_rows = found.iter().any(|(access, _)| has(*access, 1));
    let axis = usize::from(kernel.dims.len() > 1 && !in_rows);
    let mut all: Vec<Count> = Vec::new();
    for (access, op) in found {
        let of = &kernel.accesses[access];
        let array = &kernel.arrays[of.array];
        let other = |c: &Count| kernel.accesses[c.access].array == of.array && c.op != op;
        if array.parameter.is_none() || all.iter().any(other) {
            return Err(Unfit::Kinds);
        }
        let wait = match (&of.index, &of.below) {
            (Index::Affine(_), _) if has(access, axis) => return Err(Unfit::Own),
            (Index::Affine(_), _) => Wait::Register {
                is_shared: !has(access, 0),
            },
            (Index::Value(_), Some((below, is_natural))) => {
                if !matches!(array.scalar, Some(Scalar::Integer(32, _))) {
                    return Err(Unfit::Kinds);
                }
                Wait::Table {
                    below: below.clone(),
                    is_natural: *is_natural,
                }
            }
            (Index::Value(_), None) => return Err(Unfit::Cells),
        };
        all.push(Count { access, op, wait });
    }
    Ok((all, axis))
}

/// A table in shared memory.
struct Table {
    /// The array that it stands for.
    array: usize,
    op: AtomicOp,
    name: String,
    /// How many cells may be counted in, and how many there is room for.
    below: Poly,
    cells: i64,
}

/// A value in a register.
struct Sum {
    variable: usize,
    access: usize,
    op: AtomicOp,
    is_shared: bool,
}

/// The kernel with its operations turned to what is done in a block.
struct Plan {
    kernel: Kernel,
    tables: Vec<Table>,
    sums: Vec<Sum>,
}

/// The kernel in which blocks add up what they count.
///
/// # Errors
/// See [`Unfit`].
pub fn generate(kernel: &Kernel, totals: &Totals) -> Result<Generated, Unfit> {
    let shape = (32..=1024).contains(&totals.threads)
        && totals.threads.is_multiple_of(32)
        && (1..=1024).contains(&totals.points);
    if !shape {
        return Err(Unfit::Shape);
    }
    let (counts, axis) = counts(kernel)?;
    let plan = plan(kernel, &counts)?;
    let mut conditions = Vec::new();
    for table in plan
        .tables
        .iter()
        .filter(|t| t.below.as_constant().is_none())
    {
        conditions.push(Condition::Most(table.below.clone(), table.cells));
    }
    let x = &kernel.dims[0];
    // A cell for each place along x would be one of four.
    let alike = plan.sums.iter().all(|sum| sum.is_shared);
    let wide = (alike && x.axis() == 0 && x.low.is_empty())
        .then(|| wide::plan(&plan.kernel, x.symbol, &plan.kernel.body, None))
        .flatten()
        .filter(|wide| wide.groups.iter().all(|g| !g.is_stored));
    let mut entries = Vec::new();
    for wide in [wide, None] {
        let known = entries.iter().any(|e: &Entry| !e.is_wide);
        if wide.is_none() && known {
            continue;
        }
        let mut conditions = conditions.clone();
        if let Some(wide) = &wide {
            conditions.extend(wide.conditions.iter().cloned());
            let end = Poly::symbol(crate::bounds::end(0));
            conditions.push(Condition::Multiple(end, 4));
        }
        let each = if wide.is_some() { 4 } else { 1 };
        let mut tile = [totals.threads * each, 1, 1];
        tile[axis] *= totals.points;
        entries.push(Entry {
            suffix: format!("_totals{}", if wide.is_some() { "_wide" } else { "" }),
            is_wide: wide.is_some(),
            body: write(&plan, wide.as_ref(), totals, axis),
            threads: totals.threads,
            tile,
            conditions,
            ..Entry::default()
        });
    }
    let names = |all: Vec<usize>| {
        let mut names: Vec<&str> = all.iter().map(|a| &*kernel.arrays[*a].name).collect();
        names.dedup();
        format!("`{}`", names.join("`, `"))
    };
    let mut notes = Vec::new();
    if !plan.tables.is_empty() {
        let tables = names(plan.tables.iter().map(|t| t.array).collect());
        notes.push(format!(
            "a block counts in shared memory what goes to {tables}, and changes each element there once"
        ));
    }
    if !plan.sums.is_empty() {
        let sums = names(
            plan.sums
                .iter()
                .map(|s| kernel.accesses[s.access].array)
                .collect(),
        );
        notes.push(format!(
            "what goes to {sums} is added up in registers before, for all of a thread's points: {}",
            totals.points
        ));
    }
    let is_real = |sum: &Sum| {
        let scalar = plan.kernel.variables[sum.variable].scalar;
        matches!(scalar, Some(Scalar::Float | Scalar::Double))
    };
    Ok(Generated {
        entries,
        notes,
        reordered: plan.sums.iter().any(is_real),
        shares: true,
    })
}

fn plan(kernel: &Kernel, counts: &[Count]) -> Result<Plan, Unfit> {
    let mut plan = Plan {
        kernel: kernel.clone(),
        tables: Vec::new(),
        sums: Vec::new(),
    };
    let mut taken = crate::emit::names_of(kernel);
    let mut fresh = |wish: String| {
        let name = free(wish, |name| taken.contains(name));
        taken.insert(name.clone());
        name
    };
    for count in counts {
        let of = kernel.accesses[count.access].clone();
        let array = &kernel.arrays[of.array];
        let element = array.element.trim_start_matches("const ").to_owned();
        let change = match &count.wait {
            Wait::Register { is_shared } => {
                let known = plan.sums.iter().find(|s| {
                    let own = &kernel.accesses[s.access];
                    own.array == of.array && own.index == of.index
                });
                let variable = match known {
                    Some(sum) => sum.variable,
                    None => {
                        let variable = plan.kernel.variables.len();
                        plan.kernel.variables.push(Variable {
                            name: fresh(format!("{}_own", array.name)),
                            ty: element,
                            scalar: array.scalar,
                        });
                        plan.sums.push(Sum {
                            variable,
                            access: count.access,
                            op: count.op,
                            is_shared: *is_shared,
                        });
                        variable
                    }
                };
                Change::Sum(variable)
            }
            Wait::Table { below, is_natural } => {
                let known = plan.tables.iter().position(|t| t.array == of.array);
                let at = match known {
                    Some(at) => at,
                    None => {
                        plan.tables.push(Table {
                            array: of.array,
                            op: count.op,
                            name: fresh(format!("{}_own", array.name)),
                            below: below.clone(),
                            cells: below.as_constant().unwrap_or(4096),
                        });
                        plan.tables.len() - 1
                    }
                };
                let table = &plan.tables[at];
                if table.below != *below {
                    return Err(Unfit::Cells);
                }
                let own = plan.kernel.arrays.len();
                plan.kernel.arrays.push(Array {
                    name: table.name.clone(),
                    parameter: None,
                    length: Some(table.cells),
                    rows: 0,
                    ..array.clone()
                });
                plan.kernel.accesses.push(Access {
                    array: own,
                    ..of.clone()
                });
                Change::Table {
                    access: plan.kernel.accesses.len() - 1,
                    is_natural: *is_natural,
                }
            }
        };
        let mut body = std::mem::take(&mut plan.kernel.body);
        body.iter_mut()
            .for_each(|s| change.apply(&plan.kernel, count.access, s));
        plan.kernel.body = body;
    }
    let cells: i64 = plan.tables.iter().map(|t| t.cells).sum();
    match plan.tables.iter().all(|t| t.cells > 0) && cells <= MOST_CELLS {
        true => Ok(plan),
        false => Err(Unfit::Cells),
    }
}

/// What an operation becomes.
enum Change {
    /// This variable takes the value.
    Sum(usize),
    /// The operation is done on this element; in memory where the index lies in front of the array.
    Table { access: usize, is_natural: bool },
}

impl Change {
    fn apply(&self, kernel: &Kernel, wanted: usize, statement: &mut Statement) {
        warpwright_cudac::with_stack(|| match statement {
            Statement::Atomic { access, op, value } if *access == wanted => {
                let value = std::mem::replace(value, Value::Text(String::new()));
                *statement = match self {
                    Change::Sum(variable) => {
                        let ty = kernel.variables[*variable].ty.clone();
                        let value = Box::new(Value::Cast(ty, Box::new(value)));
                        let value = combined(*op, Box::new(Value::Variable(*variable)), value);
                        Statement::Assign {
                            variable: *variable,
                            member: None,
                            op: "=".to_owned(),
                            value,
                        }
                    }
                    Change::Table {
                        access: own,
                        is_natural,
                    } => {
                        let here = Statement::Atomic {
                            access: *own,
                            op: *op,
                            value: value.clone(),
                        };
                        match (&kernel.accesses[*own].index, is_natural) {
                            (Index::Value(index), false) => {
                                let zero = Box::new(Value::Text("0".to_owned()));
                                let cond =
                                    Value::Binary(">=".to_owned(), Box::new(index.clone()), zero);
                                let there = Statement::Atomic {
                                    access: *access,
                                    op: *op,
                                    value,
                                };
                                Statement::If(cond, vec![here], vec![there])
                            }
                            _ => here,
                        }
                    }
                };
            }
            Statement::If(_, then, otherwise) => {
                then.iter_mut()
                    .chain(otherwise)
                    .for_each(|s| self.apply(kernel, wanted, s));
            }
            _ => {}
        });
    }
}

/// Two values as one.
fn combined(op: AtomicOp, a: Box<Value>, b: Box<Value>) -> Value {
    let by = |op: &str, a, b| Value::Binary(op.to_owned(), a, b);
    match op {
        AtomicOp::Add => by("+", a, b),
        AtomicOp::And => by("&", a, b),
        AtomicOp::Or => by("|", a, b),
        AtomicOp::Xor => by("^", a, b),
        AtomicOp::Min => Value::Call("min".to_owned(), vec![*a, *b]),
        AtomicOp::Max => Value::Call("max".to_owned(), vec![*a, *b]),
    }
}

/// The same as text.
fn both(op: AtomicOp, a: &str, b: &str) -> String {
    let sign = match op {
        AtomicOp::Add => "+",
        AtomicOp::And => "&",
        AtomicOp::Or => "|",
        AtomicOp::Xor => "^",
        AtomicOp::Min => return format!("min({a}, {b})"),
        AtomicOp::Max => return format!("max({a}, {b})"),
    };
    format!("{a} {sign} {b}")
}

/// What changes nothing.
fn neutral(op: AtomicOp, scalar: Option<Scalar>) -> &'static str {
    match (op, scalar) {
        (AtomicOp::Add | AtomicOp::Or | AtomicOp::Xor, _) => "0",
        (AtomicOp::And, _) => "-1",
        (AtomicOp::Max, Some(Scalar::Integer(_, false))) => "0",
        (AtomicOp::Max, Some(Scalar::Integer(64, true))) => "-0x7fffffffffffffffLL - 1",
        (AtomicOp::Max, _) => "-0x7fffffff - 1",
        (AtomicOp::Min, Some(Scalar::Integer(64, false))) => "0xffffffffffffffffULL",
        (AtomicOp::Min, Some(Scalar::Integer(64, true))) => "0x7fffffffffffffffLL",
        (AtomicOp::Min, Some(Scalar::Integer(_, false))) => "0xffffffffu",
        (AtomicOp::Min, _) => "0x7fffffff",
    }
}

fn write(plan: &Plan, wide: Option<&wide::Plan>, totals: &Totals, axis: usize) -> String {
    let kernel = &plan.kernel;
    let mut text = Text::new(kernel);
    let [first, turn, near, cell, far, warp] =
        ["first", "turn", "near", "cell", "far", "warp"].map(|w| text.fresh(w));
    let threads = totals.threads;
    for table in &plan.tables {
        let array = &kernel.arrays[table.array];
        let (ty, empty) = (&array.element, neutral(table.op, array.scalar));
        let (name, below) = (&table.name, text.poly(&table.below));
        text.lines(&format!(
            "__shared__ {ty} {name}[{}];\n\
             for (int {cell} = threadIdx.x; {cell} < {below}; {cell} += {threads}) {name}[{cell}] = {empty};",
            table.cells
        ));
    }
    if !plan.tables.is_empty() {
        text.line("__syncthreads();");
    }
    for sum in &plan.sums {
        let of = &kernel.variables[sum.variable];
        let (ty, empty) = (of.ty.clone(), neutral(sum.op, of.scalar));
        text.line(&format!("{ty} {} = {empty};", text.variable(sum.variable)));
    }
    let each = if wide.is_some() { 4 } else { 1 };
    let along = threads * each * if axis == 0 { totals.points } else { 1 };
    text.line(&format!(
        "const int {first} = blockIdx.x * {along} + threadIdx.x{};",
        if each == 4 { " * 4" } else { "" }
    ));
    let x = &kernel.dims[0];
    let mut tests = Vec::new();
    for (number, dim) in kernel.dims.iter().enumerate().skip(1) {
        if number != axis {
            let place = plane(kernel, number);
            text.line(&format!("const int {} = {place};", dim.name));
        }
        tests.extend(dim.low.iter().map(|low| (dim, low)));
    }
    // Loads of several turns are under way together, where nothing is stored that they could be.
    let groups = wide.map_or(&[][..], |wide| &wide.groups);
    let are_read = !groups.is_empty() && groups.iter().all(Group::is_read_only) && axis == 0;
    let batch = match are_read {
        true => [4, 2]
            .into_iter()
            .find(|n| totals.points.is_multiple_of(*n))
            .unwrap_or(1),
        false => 1,
    };
    let mut held = Vec::new();
    let mut now = turn.clone();
    if batch > 1 {
        let ahead = text.fresh("ahead");
        text.open(&format!(
            "for (int {turn} = 0; {turn} < {}; {turn} += {batch})",
            totals.points
        ));
        now = format!("({turn} + {ahead})");
        for group in groups {
            let own = group.declare(kernel, &mut text, &format!("[{batch}]"));
            held.push(format!("{own}[{ahead}]"));
        }
        let all = format!("#pragma unroll\nfor (int {ahead} = 0; {ahead} < {batch}; {ahead}++) {{");
        let begin = text.fresh("begin");
        text.lines(&format!(
            "{all}\nconst int {begin} = {first} + {now} * {};\nif ({begin} >= {}) break;",
            threads * each,
            text.end(0)
        ));
        for (group, own) in groups.iter().zip(&held) {
            group.load(kernel, &mut text, x.symbol, &begin, &near, own);
        }
        text.lines(&format!("}}\n{all}"));
    } else {
        text.open(&format!(
            "for (int {turn} = 0; {turn} < {}; {turn}++)",
            totals.points
        ));
    }
    let place = match axis {
        0 => format!("{first} + {now} * {}", threads * each),
        _ => first.clone(),
    };
    let begin = match wide {
        Some(_) => {
            let begin = text.fresh("begin");
            text.line(&format!("const int {begin} = {place};"));
            begin
        }
        None => {
            text.line(&format!("const int {} = {place};", x.name));
            x.name.clone()
        }
    };
    if let Some(y) = kernel.dims.get(axis).filter(|_| axis > 0) {
        let rows = totals.points;
        text.line(&format!(
            "const int {} = blockIdx.y * {rows} + {turn};",
            y.name
        ));
    }
    // Who has no point here has none further on.
    let mut ends = vec![format!("{begin} >= {}", text.end(0))];
    if axis > 0 {
        let y = &kernel.dims[axis].name;
        ends.push(format!("{y} >= {}", text.end(axis)));
    }
    text.line(&format!("if ({}) break;", ends.join(" || ")));
    tests.extend(x.low.iter().map(|low| (x, low)));
    let tests: Vec<String> = tests
        .iter()
        .map(|(dim, low)| format!("{} >= {}", dim.name, text.poly(low)))
        .collect();
    if !tests.is_empty() {
        text.open(&format!("if ({})", tests.join(" && ")));
    }
    if let Some(wide) = wide {
        if batch == 1 {
            for group in &wide.groups {
                group.write(kernel, &mut text, x.symbol, &begin, &near);
            }
        }
        text.lines(&four_times(&near));
        if wide.uses_counter {
            text.line(&format!("const int {} = {begin} + {near};", x.name));
        }
    }
    text.statements(&kernel.body);
    if let Some(wide) = wide {
        text.close();
        wide.groups.iter().for_each(|group| group.end(&mut text));
    }
    if !tests.is_empty() {
        text.close();
    }
    text.close();
    if batch > 1 {
        text.close();
    }
    flush(plan, &mut text, threads, [&first, &cell, &far, &warp]);
    text.out
}

/// Brings the values of a block together, and to memory.
fn flush(plan: &Plan, text: &mut Text<'_>, threads: u32, names: [&str; 4]) {
    let kernel = &plan.kernel;
    let [first, cell, far, warp] = names;
    let warps = threads / 32;
    let together: Vec<&Sum> = plan.sums.iter().filter(|s| s.is_shared).collect();
    let mut parts = Vec::new();
    for sum in &together {
        let own = text.variable(sum.variable).to_owned();
        let shuffle = format!("__shfl_xor_sync(0xffffffff, {own}, {far})");
        let all = both(sum.op, &own, &shuffle);
        let head = format!("for (int {far} = 16; {far} > 0; {far} /= 2)");
        text.line(&format!("{head} {own} = {all};"));
        if warps > 1 {
            let part = text.fresh(&format!("{own}_parts"));
            let ty = &kernel.variables[sum.variable].ty;
            text.lines(&format!(
                "__shared__ {ty} {part}[{warps}];\n\
                 if (threadIdx.x % 32 == 0) {part}[threadIdx.x / 32] = {own};"
            ));
            parts.push(part);
        }
    }
    if !plan.tables.is_empty() || !parts.is_empty() {
        text.line("__syncthreads();");
    }
    for table in &plan.tables {
        let array = &kernel.arrays[table.array];
        let (op, name) = (table.op.name(), &table.name);
        let below = text.poly(&table.below);
        let (empty, array) = (neutral(table.op, array.scalar), array.text());
        text.lines(&format!(
            "for (int {cell} = threadIdx.x; {cell} < {below}; {cell} += {threads}) {{\n\
             if ({name}[{cell}] != {empty}) {op}(&{array}[{cell}], {name}[{cell}]);\n\
             }}"
        ));
    }
    for sum in plan.sums.iter().filter(|s| !s.is_shared) {
        // Each thread has a place along x of its own.
        let x = &kernel.dims[0];
        let own = text.variable(sum.variable).to_owned();
        let before = text.rename_symbol(x.symbol, first.to_owned());
        let line = change(kernel, sum, &own, text);
        text.line(&line);
        text.rename_symbol(x.symbol, before);
    }
    if together.is_empty() {
        return;
    }
    text.open("if (threadIdx.x == 0)");
    let mut parts = parts.iter();
    for sum in together {
        let own = text.variable(sum.variable).to_owned();
        if let Some(part) = parts.next() {
            let all = both(sum.op, &own, &format!("{part}[{warp}]"));
            let head = format!("for (int {warp} = 1; {warp} < {warps}; {warp}++)");
            text.line(&format!("{head} {own} = {all};"));
        }
        let line = change(kernel, sum, &own, text);
        text.line(&line);
    }
    text.close();
}

/// The operation on the element in memory; nothing where nothing was counted.
fn change(kernel: &Kernel, sum: &Sum, own: &str, text: &Text<'_>) -> String {
    let empty = neutral(sum.op, kernel.variables[sum.variable].scalar);
    let place = text.element(sum.access);
    format!("if ({own} != {empty}) {}(&{place}, {own});", sum.op.name())
}

/// The places that an operation's cell depends on.
pub(crate) fn places(kernel: &Kernel, access: usize) -> Vec<Symbol> {
    let poly = kernel.accesses[access].affine();
    poly.map(Poly::points).unwrap_or_default()
}
