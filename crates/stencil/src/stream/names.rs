//! Names and types in the generated text.

use cranelift_entity::EntityRef;

use super::graph::{Graph, SourceId};
use super::kernel::Point;
use crate::ir::{DimId, Element, Extent, Stencil};
pub(super) use crate::sweep::c_type;

/// The name of something that every output has for every point of a thread.
pub(super) fn name(prefix: &str, output: usize, [y, x]: Point) -> String {
    format!("{prefix}{output}_{y}_{x}")
}

/// The register of a queue.
pub(super) fn queue(source: SourceId, [y, x]: Point, place: i32) -> String {
    format!("q{}_{y}_{x}_{place}", source.index())
}

/// The pointer to a plane of the ring, relative to the one that is computed.
pub(super) fn window(plane: i32) -> String {
    if plane < 0 {
        format!("w_{}", -plane)
    } else {
        format!("w{plane}")
    }
}

pub(super) fn pair_type(element: Element) -> &'static str {
    match element {
        Element::F32 => "float2",
        // Of the two types that are streamed.
        _ => "double2",
    }
}

/// The name of an argument in the kernel: the user's, unless the generator uses it itself.
pub(super) fn argument(name: &str) -> String {
    let mut letters = name.chars();
    let generated = letters.next().is_some_and(|c| "tksaoqwpbeg".contains(c))
        && letters.as_str().starts_with(|c: char| c.is_ascii_digit());
    let words = [
        "first", "last", "given", "memory", "shared", "slot", "inside", "fetch", "stream", "wide",
        "grid", "block", "c", "x", "y", "kernel", "status", "across", "down", "tx", "ty", "tid",
        "own", "planes",
    ];
    if generated || words.contains(&name) {
        format!("{name}_argument")
    } else {
        name.to_owned()
    }
}

/// The first and the last index along a dimension at which the input reads an array: nothing else is known to
/// exist.
pub(super) fn ends(stencil: &Stencil, graph: &Graph, source: SourceId, dim: usize) -> [String; 2] {
    let [low, high] = graph.offsets(source)[dim];
    let of = &stencil.dims[DimId::new(dim)];
    let last = Extent {
        add: of.extent.add - of.high - 1 + i64::from(high),
        ..of.extent
    };
    [
        (of.low + i64::from(low)).to_string(),
        extent_text(stencil, last),
    ]
}

/// An index along a dimension, kept within what the input reads of an array.
pub(super) fn clamped(
    stencil: &Stencil,
    graph: &Graph,
    source: SourceId,
    dim: usize,
    index: &str,
) -> String {
    let [low, last] = ends(stencil, graph, source, dim);
    format!("inside({index}, {low}, {last})")
}

/// A size as an expression of the kernel's parameters.
pub(super) fn extent_text(stencil: &Stencil, extent: Extent) -> String {
    match extent.parameter {
        None => extent.add.to_string(),
        Some(parameter) => {
            let name = argument(&stencil.parameters[parameter]);
            match extent.add {
                0 => name,
                add if add > 0 => format!("({name} + {add})"),
                add => format!("({name} - {})", -add),
            }
        }
    }
}
