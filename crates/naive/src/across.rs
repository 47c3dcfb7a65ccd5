//! Goal: arrays that a kernel reads across their rows, as a transpose does, are read along them.
//!
//! Neighbouring threads of `b[idy * m + idx] = a[idx * n + idy]` store neighbouring elements of `b`, and load elements of
//! `a` that are a row apart. A block of points is loaded in the order of `a` into shared memory, and computed in the order
//! of `b`. Where the stores go across and no load does, the lanes of a warp are points along the other dimension instead,
//! and shared memory is not needed for what is then loaded across.
//!
//! Paper: Yang et al., PLDI 2010, section 3.3 (coalescing through shared memory; the exchange of idx and idy; padding
//! against bank conflicts). Departures: a square of a warp's width where the paper has half-warps; several rows for a
//! thread, so that loads are under way together; no remedy for partition camping (section 3.7), since the memory of the
//! GPUs in `target` hashes addresses over its channels.
//!
//! Requires: two dimensions or more; loads that every point does, outside of loops, from arrays that are not stored to.
//! Preserves: every operation, to the bit.

use warpwright_cudac::affine::{Poly, Symbol};
use warpwright_target::SHARED_PER_BLOCK;

use crate::emit::{Entry, Generated};
use crate::ir::{Kernel, Statement, Value};
use crate::text::Text;

/// A square of points for a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Across {
    /// Points along each side: a multiple of 32.
    pub side: u32,
    /// Rows of the square that are computed at once; a warp has 32 points of a row.
    pub rows: u32,
}

/// Why there is no such kernel.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// There is one dimension.
    #[error("the kernel has one dimension")]
    OneDimension,
    /// Nothing is read or stored across rows.
    #[error("nothing is read or stored across rows")]
    Along,
    /// The stores go along and across rows.
    #[error("some stores go along rows and others across")]
    Stores,
    /// The numbers contradict each other.
    #[error("the numbers are not those of a square")]
    Shape,
    /// The squares are more than a block has without asking; 0: the size of an element is not known.
    #[error("squares of {0} bytes are too many")]
    Shared(u32),
}

/// How an access goes along a dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// Neighbours are neighbours in memory, or the same element.
    Along,
    /// They are rows apart.
    Across,
}

fn way(index: &Poly, symbol: Symbol) -> Option<Way> {
    let step = index.coefficient(symbol)?;
    Some(match step.as_constant() {
        Some(-8..=8) => Way::Along,
        _ => Way::Across,
    })
}

/// The kernel in which a block computes a square of points.
///
/// # Errors
/// See [`Unfit`].
pub fn generate(kernel: &Kernel, across: &Across) -> Result<Generated, Unfit> {
    let [x, y, ..] = &kernel.dims[..] else {
        return Err(Unfit::OneDimension);
    };
    let threads = across.rows.saturating_mul(32);
    let tiles = across.side.is_multiple_of(32) && across.side <= 128;
    if !tiles || across.rows == 0 || threads > 1024 || !across.side.is_multiple_of(across.rows) {
        return Err(Unfit::Shape);
    }
    let mut stores = Vec::new();
    let mut loads = Vec::new();
    for statement in &kernel.body {
        let reached = !matches!(statement, Statement::Loop(..) | Statement::If(..));
        statement.walk(&mut |s| {
            if let Statement::Store { access, .. } = s {
                stores.push(*access);
            }
            if let (true, Some(value)) = (reached, s.value()) {
                value.walk(false, &mut |v, sometimes| {
                    if let (Value::Load(access), false) = (v, sometimes) {
                        loads.push(*access);
                    }
                });
            }
        });
    }
    let of = |access: usize, symbol| {
        kernel.accesses[access]
            .affine()
            .and_then(|index| way(index, symbol))
    };
    let all = |symbol, wanted| stores.iter().all(|s| of(*s, symbol) == Some(wanted));
    // Lanes go where the stores go along.
    let exchanged = match (all(x.symbol, Way::Along), all(y.symbol, Way::Along)) {
        (true, _) => false,
        (false, true) => true,
        _ => return Err(Unfit::Stores),
    };
    let (lane, row) = if exchanged { (1, 0) } else { (0, 1) };
    let (across_of, along_of) = (kernel.dims[lane].symbol, kernel.dims[row].symbol);
    let is_staged = |access: &usize| {
        let step = kernel.accesses[*access]
            .affine()
            .and_then(|index| index.coefficient(along_of));
        let near = step
            .and_then(|s| s.as_constant())
            .is_some_and(|s| matches!(s, -2..=2) && s != 0);
        near && of(*access, across_of) == Some(Way::Across)
            && !kernel.arrays[kernel.accesses[*access].array].stored
    };
    loads.retain(is_staged);
    if loads.is_empty() && !exchanged {
        return Err(Unfit::Along);
    }
    let side = across.side;
    let mut text = Text::new(kernel);
    let names: [String; 3] = ["lane", "first", "row"].map(|w| text.fresh(w));
    let [lane_name, first, turn] = &names;
    let [column, step, part] = ["column", "step", "part"].map(|w| text.fresh(w));
    let corner = ["corner_x", "corner_y"].map(|w| text.fresh(w));
    text.lines(&format!(
        "const int {lane_name} = threadIdx.x % 32;\nconst int {first} = threadIdx.x / 32;"
    ));
    for (axis, corner) in ["x", "y"].iter().zip(&corner) {
        text.line(&format!("const int {corner} = blockIdx.{axis} * {side};"));
    }
    text.planes();
    let inside = |text: &Text<'_>| {
        let mut tests = Vec::new();
        for number in [0, 1] {
            let dim = &kernel.dims[number];
            tests.push(format!("{} < {}", dim.name, text.end(number)));
            tests.extend(
                dim.low
                    .iter()
                    .map(|low| format!("{} >= {}", dim.name, text.poly(low))),
            );
        }
        tests.join(" && ")
    };
    // The same element under two numbers is staged once.
    let mut tiles: Vec<(usize, String)> = Vec::new();
    for access in &loads {
        let same = |(other, _): &&(usize, String)| {
            let (a, b) = (&kernel.accesses[*access], &kernel.accesses[*other]);
            (a.array, &a.index) == (b.array, &b.index)
        };
        if tiles.iter().any(|t| same(&t)) {
            continue;
        }
        let array = &kernel.arrays[kernel.accesses[*access].array];
        let tile = text.fresh(&format!("{}_square", array.name));
        // One element more in a row: a column then lies in 32 banks.
        text.line(&format!(
            "__shared__ {} {tile}[{side}][{}];",
            array.element,
            side + 1
        ));
        tiles.push((*access, tile));
    }
    let bytes = |(access, _): &(usize, String)| {
        kernel.arrays[kernel.accesses[*access].array].bytes * side * (side + 1)
    };
    let bytes: Vec<u32> = tiles.iter().map(bytes).collect();
    let total = bytes.iter().sum();
    if bytes.contains(&0) || total > SHARED_PER_BLOCK {
        return Err(Unfit::Shared(total));
    }
    // A point of the square: its place along the lanes, and along the rows.
    let point = |text: &mut Text<'_>, lane_at: &str, row_at: &str| {
        for (number, at) in [(lane, lane_at), (row, row_at)] {
            text.line(&format!(
                "const int {} = {} + {at};",
                kernel.dims[number].name, corner[number]
            ));
        }
        let inside = inside(text);
        text.open(&format!("if ({inside})"));
    };
    let square = |text: &mut Text<'_>| {
        text.lines(&format!(
            "#pragma unroll\nfor (int {step} = 0; {step} < {side}; {step} += {}) {{\n\
             const int {turn} = {step} + {first};",
            across.rows
        ));
        if side > 32 {
            text.lines(&format!(
                "#pragma unroll\nfor (int {part} = 0; {part} < {side}; {part} += 32) {{\n\
                 const int {column} = {part} + {lane_name};"
            ));
        }
    };
    let done = |text: &mut Text<'_>| {
        text.lines(if side > 32 { "}\n}\n}" } else { "}\n}" });
    };
    let across_name = if side > 32 { &column } else { lane_name };
    if !tiles.is_empty() {
        square(&mut text);
        // Here the lanes are the rows of the square, so that neighbours load neighbouring elements.
        point(&mut text, turn, across_name);
        for (access, tile) in &tiles {
            let element = text.element(*access);
            text.line(&format!("{tile}[{turn}][{across_name}] = {element};"));
        }
        done(&mut text);
        text.line("__syncthreads();");
    }
    square(&mut text);
    point(&mut text, across_name, turn);
    for access in &loads {
        let of = &kernel.accesses[*access];
        let found = tiles.iter().find(|(other, _)| {
            let other = &kernel.accesses[*other];
            (of.array, &of.index) == (other.array, &other.index)
        });
        if let Some((_, tile)) = found {
            text.replace_element(*access, format!("{tile}[{across_name}][{turn}]"));
        }
    }
    text.statements(&kernel.body);
    done(&mut text);
    let arrays: Vec<&str> = tiles
        .iter()
        .map(|(a, _)| kernel.arrays[kernel.accesses[*a].array].name.as_str())
        .collect();
    let mut notes = Vec::new();
    if exchanged {
        notes.push("the lanes of a warp are points along y, so that neighbours store neighbouring elements".to_owned());
    }
    if !arrays.is_empty() {
        notes.push(format!(
            "`{}` goes through shared memory in squares of {side}, so that neighbours load neighbouring elements",
            arrays.join("`, `")
        ));
    }
    let entry = Entry {
        suffix: "_across".to_owned(),
        body: text.out,
        threads,
        tile: [side, side, 1],
        ..Entry::default()
    };
    Ok(Generated {
        entries: vec![entry],
        notes,
        ..Generated::default()
    })
}
