//! Goal: four neighbouring points for a thread, whose elements are loaded and stored 16 bytes at a time.
//!
//! What a thread does for one element of a long array (an outer product, an activation, a picture's brightness) is
//! little beside its accesses. With four points each it does them with a quarter of the instructions, and bytes that lie
//! between those of its neighbours (`2 * x` and `2 * x + 1`, three bytes of a pixel) are not loaded by several threads.
//!
//! Paper: Yang et al., PLDI 2010, sections 3.1 (vectorization of paired accesses) and 3.5.2 (thread merge). Departures:
//! four points instead of a pair, since a thread of today loads 16 bytes at once; the accesses of neighbouring threads are
//! grouped, which the paper does for AMD's GPUs alone; rows of a block are a further choice.
//!
//! Requires: no loop; rows that are whole fours and begin at 16 bytes, which the launch is asked for; a launch for which
//! that is not so gets the kernel as written.
//! Preserves: every operation, to the bit.

use warpwright_cudac::affine::Poly;

use crate::bounds::end;
use crate::emit::{Condition, Entry, Generated};
use crate::ir::{Kernel, Statement, any};
use crate::text::{Text, four_times};
use crate::wide::plan;

/// How a block takes its points.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fours {
    /// Threads of a block, along x.
    pub threads: u32,
    /// Points of a thread along y.
    pub rows: u32,
}

/// Why there is no such kernel.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// There is a loop.
    #[error("the kernel has a loop")]
    Loop,
    /// Points in front are left out.
    #[error("the first points along x are left out")]
    Low,
    /// No access is one of neighbours.
    #[error("neighbouring points do not load and store neighbouring elements")]
    NoGroup,
    /// The numbers contradict each other.
    #[error("the numbers are not those of a block")]
    Shape,
}

/// The kernel in which a thread takes four points of a row, or of several.
///
/// # Errors
/// See [`Unfit`].
pub fn generate(kernel: &Kernel, fours: &Fours) -> Result<Generated, Unfit> {
    let x = &kernel.dims[0];
    let two = kernel.dims.len() > 1;
    let shape = (32..=1024).contains(&fours.threads)
        && fours.threads.is_multiple_of(32)
        && (1..=16).contains(&fours.rows);
    if !shape || (!two && fours.rows > 1) {
        return Err(Unfit::Shape);
    }
    if any(&kernel.body, |s| matches!(s, Statement::Loop(..))) {
        return Err(Unfit::Loop);
    }
    if !x.low.is_empty() || x.axis() != 0 {
        return Err(Unfit::Low);
    }
    let mut plan = plan(kernel, x.symbol, &kernel.body, None).ok_or(Unfit::NoGroup)?;
    if !plan.groups.iter().any(|g| g.is_stored) {
        return Err(Unfit::NoGroup);
    }
    plan.push(Condition::Multiple(Poly::symbol(end(0)), 4));
    let mut text = Text::new(kernel);
    let [first, turn, row] = ["first", "turn", "row"].map(|w| text.fresh(w));
    text.line(&format!(
        "const int {first} = (blockIdx.x * {} + threadIdx.x) * 4;",
        fours.threads
    ));
    text.line(&format!("if ({first} >= {}) return;", text.end(0)));
    text.planes();
    // What is the same for all rows is loaded once.
    let shared = |g: &&crate::wide::Group| {
        two && fours.rows > 1
            && !g.is_stored
            && !kernel.arrays[g.array].stored
            && !g.base.symbols().contains(&kernel.dims[1].symbol)
    };
    for group in plan.groups.iter().filter(shared) {
        group.write(kernel, &mut text, x.symbol, &first, &turn);
    }
    if let Some(y) = kernel.dims.get(1) {
        let end = text.end(1).to_owned();
        let name = &y.name;
        text.lines(&match fours.rows {
            1 => format!("const int {name} = blockIdx.y;"),
            rows => format!(
                "#pragma unroll\nfor (int {row} = 0; {row} < {rows}; {row}++) {{\n\
                 const int {name} = blockIdx.y * {rows} + {row};\nif ({name} >= {end}) return;"
            ),
        });
        if !y.low.is_empty() {
            let lows: Vec<String> = y
                .low
                .iter()
                .map(|low| format!("{} >= {}", y.name, text.poly(low)))
                .collect();
            text.open(&format!("if ({})", lows.join(" && ")));
        }
    }
    let mut late = Vec::new();
    for group in plan.groups.iter().filter(|g| !shared(g)) {
        late.extend(group.write(kernel, &mut text, x.symbol, &first, &turn));
    }
    text.lines(&four_times(&turn));
    if plan.uses_counter {
        text.line(&format!("const int {} = {first} + {turn};", x.name));
    }
    text.statements(&kernel.body);
    text.close();
    late.iter().for_each(|line| text.line(line));
    if let Some(y) = kernel.dims.get(1) {
        if !y.low.is_empty() {
            text.close();
        }
        if fours.rows > 1 {
            text.close();
        }
    }
    let entry = Entry {
        suffix: "_fours".to_owned(),
        body: text.out,
        threads: fours.threads,
        tile: [4 * fours.threads, fours.rows, 1],
        conditions: plan.conditions,
        ..Entry::default()
    };
    let names: std::collections::BTreeSet<&str> = plan
        .groups
        .iter()
        .map(|g| kernel.arrays[g.array].name.as_str())
        .collect();
    let names: Vec<&str> = names.into_iter().collect();
    let note = format!(
        "a thread takes four neighbouring points, and loads or stores their elements of `{}` together",
        names.join("`, `")
    );
    Ok(Generated {
        entries: vec![entry],
        notes: vec![note],
        ..Generated::default()
    })
}
