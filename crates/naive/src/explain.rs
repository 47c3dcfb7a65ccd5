//! What was done to a kernel and why, a sentence a step, in the words of the paper.

use warpwright_cudac::affine::Symbol;
use warpwright_diag::count;

use crate::forms::rows;
use crate::ir::{Index, Kernel};
use crate::schedule::Schedule;

/// Bytes that a thread loads at once, at most.
const WIDEST: u32 = 16;

/// How the threads of a warp touch each operand (section 3.2 of Yang et al.).
pub fn accesses(kernel: &Kernel) -> Vec<String> {
    let mut all = Vec::new();
    let atomics = kernel.atomics();
    for (number, access) in kernel.accesses.iter().enumerate() {
        let name = &kernel.arrays[access.array].name;
        let what = match &access.index {
            Index::Value(_) if access.below.is_none() && atomics.contains(&number) => {
                "counted in at an unresolved index, and nothing says how many elements it has: \
                 `if (0 <= i && i < count)` around it would"
                    .to_owned()
            }
            Index::Value(_) => "an unresolved index, left as it is".to_owned(),
            Index::Affine(poly) => {
                let x = kernel.dims[0].symbol;
                let form = rows(poly).and_then(|r| r.forms.into_iter().find(|f| f.times(x) > 0));
                let text = poly.text(|s| name_of(kernel, s));
                let how = match form {
                    None if poly.symbols().contains(&x) => {
                        "runs backwards or is no sum of strides, left as it is".to_owned()
                    }
                    None => "the same element for neighbouring threads".to_owned(),
                    Some(form) => match (form.is_unit(), form.times(x)) {
                        (true, 1) if kernel.arrays[access.array].bytes > WIDEST => format!(
                            "neighbouring threads have neighbours of {} bytes: coalesced as far as all of each is read",
                            kernel.arrays[access.array].bytes
                        ),
                        (true, 1) => "neighbouring threads have neighbours: coalesced".to_owned(),
                        (_, times) => {
                            let stride = form.stride.text(|s| name_of(kernel, s));
                            let apart = match (times, form.is_unit()) {
                                (times, true) => times.to_string(),
                                (1, false) => stride,
                                (times, false) => format!("{times} * ({stride})"),
                            };
                            format!(
                                "neighbouring threads are {apart} elements apart: not coalesced"
                            )
                        }
                    },
                };
                format!("[{text}]: {how}")
            }
        };
        let line = match what.starts_with('[') {
            true => format!("{name}{what}"),
            false => format!("{name}: {what}"),
        };
        if !all.contains(&line) {
            all.push(line);
        }
    }
    all
}

/// What a symbol of a polynomial is called in the kernel.
pub fn name_of(kernel: &Kernel, symbol: Symbol) -> String {
    match symbol {
        Symbol::Size(size) => kernel.size_name(size).to_owned(),
        Symbol::Loop(number) => kernel.loops[number].name.clone(),
        symbol => kernel
            .dim(symbol)
            .map_or(String::new(), |d| kernel.dims[d].name.clone()),
    }
}

/// The steps of a schedule.
pub fn steps(kernel: &Kernel, schedule: &Schedule) -> Vec<String> {
    let mut all = Vec::new();
    let two = kernel.dims.len() > 1;
    let pair = |p: [u32; 2]| {
        if two {
            format!("{} x {}", p[0], p[1])
        } else {
            p[0].to_string()
        }
    };
    let tile = schedule.tile();
    all.push(format!(
        "block merge: a block of {} threads computes {} points",
        schedule.block(),
        pair(tile)
    ));
    if schedule.points != [1, 1] {
        let mut text = format!(
            "thread merge: a thread computes {} points, and what they share is loaded once",
            pair(schedule.points)
        );
        if schedule.run != [1, 1] {
            text += &format!("; {} of them are neighbours", pair(schedule.run));
        }
        all.push(text);
    }
    if let Some(stage) = &schedule.stage {
        all.push(format!(
            "coalescing: {} of the loop at a time, operands in shared memory, {} written out",
            count(stage.turns, "turn"),
            count(stage.unroll, "turn")
        ));
        if stage.turn {
            all.push("rows along the loop are turned while they are copied".to_owned());
        }
        if stage.buffers > 1 {
            all.push(format!(
                "prefetching: {} in flight by cp.async, no registers for it",
                count(stage.buffers - 1, "part")
            ));
        }
    }
    if schedule.order > 1 {
        all.push(format!(
            "{} rows of blocks together, for the L2 cache",
            schedule.order
        ));
    }
    if schedule.planes {
        all.push("tiles lie along x and z, whose planes share operands".to_owned());
    }
    if schedule.specialise {
        all.push("the expected small sizes are constants in kernels of their own".to_owned());
    }
    all
}
