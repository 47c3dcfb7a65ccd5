//! How long a kernel takes whose threads compute a box of points each, the kernel as written among them.
//!
//! The same machine and the same form as for streaming kernels (`model.rs`). What keeps a warp busy:
//!
//! - device memory: what its points read and write, each element once;
//! - the level-2 cache: the rows that a block touches, each once: the first-level cache holds a block's rows but not
//!   its neighbours';
//! - the first-level cache: every load and store of the text;
//! - arithmetic and issue slots;
//! - latency, which the resident warps share.
//!
//! Three constants are fitted to the kernels as written of the eight stencils in examples/stencils, measured on an H200
//! (bench/results/h200-2026-11-22-stencils.json), and to two plain stencils; there predictions were within 27%.

use std::collections::{BTreeMap, BTreeSet};

use warpwright_target::{Behaviour, Resources, joined, occupancy};

use super::model::{Machine, Prediction};
use crate::emit::{Generated, Options};
use crate::evaluate::{Sizes, range};
use crate::ir::{Access, Element, Stencil};
use crate::schedule::build::Origin;
use crate::sweep::bytes;

const BOXES: Behaviour = Behaviour::BOXES;
/// Cycles from the start of a warp to its end, loads apart.
const CHAIN: f64 = BOXES.arrival;
/// Cycles that a load of 128 bytes takes a warp on its own.
const LOAD: f64 = 20.0;
/// Registers beside values, and registers for a 64-bit value that is alive.
const REGISTERS: [f64; 2] = [24.0, 1.75];
/// Instructions of a thread beside operations and accesses.
const OVERHEAD: f64 = 25.0;
/// Bytes of local memory traffic for a register too many.
const SPILL: f64 = 24.0;
/// Cycles that a kernel more behind another one takes until it starts. An assumption, fitted to nothing.
const BEHIND: f64 = 4000.0;

impl Machine {
    /// Milliseconds for the kernel that computes the border: it starts, and its loads come.
    pub fn border_ms(&self, stencil: &Stencil) -> f64 {
        let [_, clock_hz, ..] = self.rates();
        match stencil.border {
            None => 0.0,
            Some(_) => (BEHIND + CHAIN) / clock_hz * 1e3,
        }
    }

    /// The time of a sweep; `None` if there is nothing to compute or the kernel cannot be launched.
    pub fn predict_boxes(
        &self,
        stencil: &Stencil,
        generated: &Generated,
        options: &Options,
        sizes: &Sizes,
    ) -> Option<Prediction> {
        let [kernel] = &generated.kernels[..] else {
            return None;
        };
        let unrolled = &kernel.unrolled;
        let block = options.block(stencil);
        let threads: u32 = block.iter().product();
        let loads: Vec<&Access> = unrolled
            .origins
            .values()
            .filter_map(|origin| match origin {
                Origin::Load(access) => Some(access),
                Origin::Scalar(_) | Origin::Tree => None,
            })
            .collect();
        let size = |access: &Access| f64::from(bytes(stencil.arrays[access.array].element));
        let stores = unrolled.stores.iter().map(|s| &s.access);
        let accessed: f64 = loads.iter().copied().chain(stores).map(size).sum();
        let accesses = (loads.len() + unrolled.stores.len()) as f64;
        let points: u32 = unrolled.factors.iter().product();
        let stored: f64 = unrolled.stores.iter().map(|s| size(&s.access)).sum();

        let widest = stencil.arrays.values().map(|a| bytes(a.element)).max()?;
        let alive = f64::from(kernel.schedule.max_live) * f64::from(widest) / 8.0;
        let wanted = REGISTERS[0] + REGISTERS[1] * alive;
        let room = f64::from(options.registers.unwrap_or(255).min(255));
        let registers = wanted.min(room).ceil() as u32;
        let resources = Resources::new(registers, threads);
        let resident = occupancy(self.gpu(), &resources).ok()?.blocks;
        let mut total: f64 = 1.0;
        for (dim, factor) in stencil.dims.values().zip(&unrolled.factors) {
            let (low, end) = range(dim, sizes);
            total *= (u64::try_from(end - low).ok().filter(|n| *n > 0)? as f64
                / f64::from(*factor))
            .ceil();
        }
        let [multiprocessors, clock_hz, memory, fp32, fp64] = self.rates();
        let warps = (total / 32.0 / multiprocessors).max(1.0);
        let together = (f64::from(resident * threads) / 32.0).min(warps.ceil());
        if together == 0.0 {
            return None;
        }
        let rate = if widest == 8 { fp64 } else { fp32 };
        let operations = kernel.schedule.steps.len() as f64;
        let compulsory: f64 = stencil
            .arrays
            .values()
            .filter(|a| a.variable.is_none() && a.extents.len() >= stencil.dims.len())
            .map(|a| f64::from(u8::from(a.read) + u8::from(a.written)) * element(a.element))
            .sum();
        let first_level = (32.0 * accessed + 32.0 * SPILL * (wanted - room).max(0.0)) / 128.0;
        let brought = rows(stencil, &loads, block, &unrolled.factors);
        let busy = [
            (32.0 * f64::from(points) * compulsory / memory, "memory"),
            (
                (brought / f64::from(threads) * 32.0 + stored * 32.0) / BOXES.cache_bytes,
                "cache",
            ),
            (first_level, "first-level cache"),
            (operations * 32.0 / rate, "arithmetic"),
            (
                (operations + accesses + OVERHEAD) / self.issued,
                "instructions",
            ),
            ((CHAIN + LOAD * first_level) / together, "latency"),
        ];
        let (cycles, bound) = joined(&busy, BOXES.power);
        Some(Prediction {
            ms: warps * cycles / clock_hz * 1e3,
            bound: bound?,
        })
    }
}

fn element(element: Element) -> f64 {
    f64::from(bytes(element))
}

/// Bytes of the rows that a block reads, each row once.
fn rows(stencil: &Stencil, loads: &[&Access], block: [u32; 3], factors: &[u32]) -> f64 {
    let last = stencil.dims.len().saturating_sub(1);
    // By array and row: the first and the last column.
    let mut found: BTreeMap<(u32, Vec<i64>), [i64; 2]> = BTreeMap::new();
    let along = |dim: usize| i64::from(block[last - dim]);
    let mut starts: BTreeSet<Vec<i64>> = BTreeSet::from([Vec::new()]);
    for (dim, factor) in factors.iter().enumerate().take(last) {
        let steps = 0..along(dim);
        starts = starts
            .iter()
            .flat_map(|start| {
                let factor = i64::from(*factor);
                steps
                    .clone()
                    .map(move |n| [&start[..], &[n * factor]].concat())
            })
            .collect();
    }
    for access in loads {
        for start in &starts {
            let mut row = Vec::new();
            let mut column = 0;
            let mut wide = false;
            for subscript in &access.subscripts {
                match subscript.dim.map(|d| d.as_u32() as usize) {
                    Some(dim) if dim == last => {
                        column = subscript.offset;
                        wide = true;
                    }
                    Some(dim) => row.push(start[dim] + subscript.offset),
                    None => row.push(subscript.offset),
                }
            }
            let width = match wide {
                true => along(last) * i64::from(factors[last]),
                false => 1,
            };
            let ends = found
                .entry((access.array.as_u32(), row))
                .or_insert([column, column + width]);
            *ends = [ends[0].min(column), ends[1].max(column + width)];
        }
    }
    let size = |array: u32| {
        let arrays = stencil.arrays.iter();
        let found = arrays
            .filter(|(id, _)| id.as_u32() == array)
            .map(|(_, a)| a.element);
        found.map(element).next().unwrap_or(8.0)
    };
    found
        .iter()
        .map(|((array, _), [from, to])| (to - from) as f64 * size(*array))
        .sum()
}
