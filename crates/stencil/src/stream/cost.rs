//! What a step costs, counted where it is generated.

use std::collections::BTreeSet;

use super::kernel::PlaneStep;
use super::layout::Read;
use super::writer::Writer;
use crate::ir::Element;

/// The work of one thread in one step, counted in the generated text.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cost {
    /// Floating-point operations, before multiplications and additions are fused.
    pub operations: u32,
    /// Bytes that a thread reads from and writes to shared memory, copies excluded.
    pub shared_bytes: u32,
    /// Elements of one plane that a block brings into shared memory.
    pub copied: u32,
    /// Bytes of shared memory that one plane of the ring takes.
    pub plane_bytes: u32,
    /// The copied elements in bytes, rows counted in the cache lines (128 bytes) that they touch: one more than
    /// they fill, half of the time.
    pub copied_lines: u32,
    /// Elements that a thread reads from global memory itself.
    pub loaded: u32,
    /// Elements that a thread stores.
    pub stored: u32,
    /// Registers for what lives across steps.
    pub registers: u32,
    /// Registers for the values of a step that are alive at once, in the order of the text.
    pub alive: u32,
    /// Bytes of an element.
    pub element_bytes: u32,
    /// Bytes that a computed point has to read and write, each element once.
    pub point_bytes: u32,
    /// Barriers of a step.
    pub barriers: u32,
    /// Planes before the first and after the last that a chunk has to go through.
    pub extra_planes: u32,
}

/// Bytes of a cache line.
const LINE: u32 = 128;

pub(super) fn cost(writer: &Writer<'_>, step: &PlaneStep<'_>) -> Cost {
    let layout = writer.layout;
    let size = if writer.graph.element == Element::F64 {
        8
    } else {
        4
    };
    let points = writer.points.len() as u32;
    let mut queues = 0;
    let mut loaded = 0;
    let mut fed = 0;
    for home in layout.homes.values() {
        let Some([from, to]) = home.queue else {
            continue;
        };
        queues += (to - from + 1) as u32 * points;
        if home.ring.is_none() {
            loaded += points;
            queues += points;
        } else {
            fed += points;
        }
    }
    let own = |r: &Read| (0..2).all(|d| (0..layout.points[d]).contains(&r.at[d + 1]));
    let from_ring: BTreeSet<_> = step
        .reads
        .iter()
        .filter(|r| {
            let home = layout.homes.get(&r.source);
            home.is_some_and(|h| h.ring.is_some() && !(own(r) && h.queue.is_some()))
        })
        .map(|r| (r.source, r.at))
        .collect();
    let given = step.given_reads() as u32 + layout.staged as u32 * points;
    let [low, high] = writer.span;
    let outputs = writer.graph.outputs.len() as u32;
    let sums = outputs * points * (high - low + 1) as u32;
    let [rows, columns] = match layout.rings {
        0 => [0, 0],
        _ => layout.copied_shape(),
    };
    Cost {
        operations: step.code.operations as u32,
        shared_bytes: (from_ring.len() as u32 + fed + given) * size,
        copied: (layout.rings * rows * columns) as u32,
        plane_bytes: (layout.rings * layout.plane_elements()) as u32 * size,
        copied_lines: layout.rings as u32
            * rows as u32
            * (columns as u32 * size + LINE / 2).next_multiple_of(LINE / 2),
        loaded,
        stored: outputs * points,
        registers: (queues + sums + step.before.values() as u32) * size / 4,
        alive: step.code.most_alive() as u32 * size / 4,
        element_bytes: size,
        point_bytes: (layout.homes.len() as u32 + outputs) * size,
        barriers: u32::from(layout.rings > 0 || layout.staged > 0) + u32::from(layout.staged > 0),
        extra_planes: (high - low) as u32,
    }
}
