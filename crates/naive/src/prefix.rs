//! Goal: sums of all beginnings of a list with work for each element, where a naive kernel adds up every beginning anew.
//!
//! `for (i = 0; i <= x; i++) sum += f(i)` gives point x the sum of the turns up to its own. A block adds up the turns in
//! front of its points once, all its threads together; then each thread adds the turns of its own few points to what the
//! threads before it have (Hillis and Steele's scan in a warp, by shuffles).
//!
//! Paper: Yang et al., PLDI 2010, section 3.5 (thread merge, data sharing); the paper has no such kernel. Departure from
//! what libraries do: no value goes from block to block, so nothing waits and no memory is needed, but the blocks read
//! the list n / (2 * points of a block) times instead of once.
//!
//! Requires: one dimension; one loop from a fixed first turn to the point, in single steps, whose turns depend on no
//! point; `reassociate` where numbers are floating-point ones.
//! Preserves: everything else to the bit.

use warpwright_cudac::affine::{Poly, Symbol};

use crate::emit::{Entry, Generated};
use crate::ir::{Index, Kernel, Statement, Value};
use crate::team::{Apart, Combine, Sum, analyse, only_loop};
use crate::text::Text;

/// How a block takes its points.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Prefix {
    /// Threads of a block.
    pub threads: u32,
    /// Points of a thread.
    pub points: u32,
}

/// Why there is no such kernel.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// The loops do not allow it.
    #[error(transparent)]
    Apart(#[from] Apart),
    /// No loop ends at the point.
    #[error("no loop ends at the point")]
    NoPrefix,
    /// A turn depends on the point beyond being one of its turns.
    #[error("a turn depends on the point")]
    Turns,
    /// The numbers contradict each other.
    #[error("the numbers are not those of a block")]
    Shape,
}

/// The kernel in which a block shares the turns of its points.
///
/// # Errors
/// See [`Unfit`].
pub fn generate(kernel: &Kernel, prefix: &Prefix) -> Result<Generated, Unfit> {
    let all = analyse(kernel)?;
    if !(64..=1024).contains(&prefix.threads)
        || !prefix.threads.is_multiple_of(32)
        || !(1..=16).contains(&prefix.points)
    {
        return Err(Unfit::Shape);
    }
    let [dim] = &kernel.dims[..] else {
        return Err(Unfit::NoPrefix);
    };
    let (at, number, body, sums) = only_loop(kernel, &all).ok_or(Unfit::NoPrefix)?;
    let counter = &kernel.loops[number];
    let one = counter
        .high
        .coefficient(dim.symbol)
        .and_then(|c| c.as_constant())
        == Some(1);
    let fixed = !counter.low.symbols().contains(&dim.symbol);
    // Where the loop of point 0 ends: turn x + last is the last one of point x.
    let last = counter
        .high
        .plus(&Poly::symbol(dim.symbol), -1)
        .and_then(|p| p.plus(&Poly::constant(1), -1));
    let (true, true, 1, Some(last)) = (one, fixed, counter.step, last) else {
        return Err(Unfit::NoPrefix);
    };
    let [sum] = sums else {
        return Err(Unfit::NoPrefix);
    };
    if depends(kernel, dim.symbol, body, sum, &kernel.body[..at]) {
        return Err(Unfit::Turns);
    }
    let mut writer = Writer {
        kernel,
        prefix,
        text: Text::new(kernel),
        sum,
    };
    writer.write(at, number, body, &last);
    let entry = Entry {
        suffix: "_prefix".to_owned(),
        body: writer.text.out,
        threads: prefix.threads,
        tile: [prefix.threads * prefix.points, 1, 1],
        ..Entry::default()
    };
    let note = format!(
        "a block adds up the turns in front of its {} points once, and shares them",
        prefix.threads * prefix.points
    );
    Ok(Generated {
        entries: vec![entry],
        notes: vec![note],
        reordered: sum.is_reordered(),
        shares: true,
    })
}

/// Does a turn depend on the point: by a place, or by a variable that the point sets before? It may then not store either.
fn depends(
    kernel: &Kernel,
    place: Symbol,
    body: &[Statement],
    sum: &Sum,
    before: &[Statement],
) -> bool {
    let mut outer = Vec::new();
    for statement in before {
        statement.walk(&mut |s| match s {
            Statement::Declare(variable, _) | Statement::Assign { variable, .. } => {
                outer.push(*variable)
            }
            _ => {}
        });
    }
    let mut found = false;
    let on_place = |poly: &Poly| poly.symbols().contains(&place);
    let mut value = |v: &Value| {
        v.walk(false, &mut |v, _| {
            found |= match v {
                Value::Int(poly, _) => on_place(poly),
                Value::Variable(variable) => *variable != sum.variable && outer.contains(variable),
                Value::Load(access) => match &kernel.accesses[*access].index {
                    Index::Affine(poly) => on_place(poly),
                    Index::Value(_) => true,
                },
                _ => false,
            };
        });
    };
    let mut stores = false;
    for statement in body {
        statement.walk(&mut |s| {
            stores |= matches!(s, Statement::Store { .. });
            match s {
                Statement::Loop(inner, _) => {
                    stores |= [&kernel.loops[*inner].low, &kernel.loops[*inner].high]
                        .into_iter()
                        .any(on_place);
                }
                s => s.own().into_iter().for_each(&mut value),
            }
        });
    }
    found || stores
}

struct Writer<'k> {
    kernel: &'k Kernel,
    prefix: &'k Prefix,
    text: Text<'k>,
    sum: &'k Sum,
}

impl Writer<'_> {
    fn write(&mut self, at: usize, number: usize, body: &[Statement], last: &Poly) {
        let (kernel, sum, prefix) = (self.kernel, self.sum, self.prefix);
        let (threads, points) = (prefix.threads, prefix.points);
        let block = threads * points;
        let dim = &kernel.dims[0];
        let counter = &kernel.loops[number];
        let ty = kernel.variables[sum.variable].ty.clone();
        let both = |a: &str, b: &str| sum.both(a, b);
        let [first, front, own, parts, point, warp, far] =
            ["first", "front", "own", "parts", "point", "warp", "far"].map(|w| self.text.fresh(w));
        let has = self.text.fresh("any");
        let empty = neutral(sum);
        let low = self.text.poly(&counter.low);
        let end = self.text.end(0).to_owned();
        let i = counter.name.clone();
        // The turn of the block's first point.
        self.text.name(dim.symbol, first.clone());
        let begin = last.plus(&Poly::symbol(dim.symbol), 1).unwrap_or_default();
        let at_first = self.text.poly(&begin);
        let warps = threads / 32;
        self.text.lines(&format!(
            "const int {first} = blockIdx.x * {block};\n\
             __shared__ {ty} {parts}[{warps}];\n\
             // What lies in front of the block's points.\n\
             {ty} {front} = {empty};\n\
             #pragma unroll 4\n\
             for (int {i} = {low} + (int)threadIdx.x; {i} < {at_first}; {i} += {threads}) {{"
        ));
        let whole = self.text.rename(sum.variable, front.clone());
        self.text.statements(body);
        let far_front = format!("__shfl_xor_sync(0xffffffff, {front}, {far})");
        let part = format!("{parts}[{warp}]");
        // The thread's own points, each with those before it in the thread.
        let place = format!("{first} + (int)threadIdx.x * {points} + {point}");
        self.text.name(dim.symbol, dim.name.clone());
        let (x, turn) = (&dim.name, self.text.poly(&begin));
        self.text.lines(&format!(
            "}}\n\
             for (int {far} = 16; {far} > 0; {far} /= 2) {front} = {};\n\
             if (threadIdx.x % 32 == 0) {parts}[threadIdx.x / 32] = {front};\n\
             __syncthreads();\n\
             {front} = {parts}[0];\n\
             for (int {warp} = 1; {warp} < {warps}; {warp}++) {front} = {};\n\
             // The thread's {points} points.\n\
             {ty} {own}[{points}];\n\
             {ty} {has} = {empty};\n\
             #pragma unroll\n\
             for (int {point} = 0; {point} < {points}; {point}++) {{\n\
             const int {x} = {place};\n\
             const int {i} = {turn};\n\
             if ({x} < {end} && {i} >= {low}) {{",
            both(&front, &far_front),
            both(&front, &part)
        ));
        self.text.rename(sum.variable, has.clone());
        self.text.statements(body);
        // The threads before it: in the warp, and the warps before.
        let [before, other] = ["before", "other"].map(|w| self.text.fresh(w));
        let lows = dim.low.iter();
        let lows = lows.map(|low| format!(" && {x} >= {}", self.text.poly(low)));
        let test = format!("{x} < {end}{}", lows.collect::<String>());
        self.text.lines(&format!(
            "}}\n\
             {own}[{point}] = {has};\n\
             }}\n\
             {ty} {before} = {has};\n\
             for (int {far} = 1; {far} < 32; {far} *= 2) {{\n\
             const {ty} {other} = __shfl_up_sync(0xffffffff, {before}, {far});\n\
             if (threadIdx.x % 32 >= {far}) {before} = {};\n\
             }}\n\
             __syncthreads();\n\
             if (threadIdx.x % 32 == 31) {parts}[threadIdx.x / 32] = {before};\n\
             __syncthreads();\n\
             {before} = __shfl_up_sync(0xffffffff, {before}, 1);\n\
             if (threadIdx.x % 32 == 0) {before} = {empty};\n\
             for (int {warp} = 0; {warp} < (int)threadIdx.x / 32; {warp}++) {front} = {};\n\
             {front} = {};\n\
             #pragma unroll\n\
             for (int {point} = 0; {point} < {points}; {point}++) {{\n\
             const int {x} = {place};\n\
             if ({test}) {{",
            both(&other, &before),
            both(&front, &part),
            both(&front, &before)
        ));
        self.text.rename(sum.variable, whole);
        self.text.statements(&kernel.body[..at]);
        let own = format!("{own}[{point}]");
        let variable = self.text.variable(sum.variable).to_owned();
        let line = format!("{variable} = {};", both(&variable, &both(&front, &own)));
        self.text.line(&line);
        self.text.statements(&kernel.body[at + 1..]);
        self.text.lines("}\n}");
    }
}

/// What changes nothing.
fn neutral(sum: &Sum) -> &'static str {
    use warpwright_cudac::Scalar;
    match (sum.combine, sum.scalar) {
        (Combine::Add, _) => "0",
        // What is not a number loses to any number.
        (_, Scalar::Float) => "__int_as_float(0x7fffffff)",
        (_, Scalar::Double) => "__longlong_as_double(0x7fffffffffffffff)",
        (Combine::Largest, Scalar::Integer(64, true)) => "-0x7fffffffffffffff - 1",
        (Combine::Least, Scalar::Integer(64, true)) => "0x7fffffffffffffff",
        (Combine::Least, Scalar::Integer(64, false)) => "0xffffffffffffffff",
        (Combine::Largest, Scalar::Integer(_, false) | Scalar::Bool) => "0",
        (Combine::Least, Scalar::Integer(_, false) | Scalar::Bool) => "0xffffffff",
        (Combine::Largest, Scalar::Integer(_, true)) => "-0x7fffffff - 1",
        (Combine::Least, Scalar::Integer(_, true)) => "0x7fffffff",
    }
}
