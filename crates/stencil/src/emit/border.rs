//! The points around the domain that do something of their own, such as to copy: one kernel more, behind the others.
//!
//! Both read nothing that the other writes (`rules::check_border`), so their order does not matter. A thread has one
//! point; the points are counted slab by slab: below the domain along the first dimension, above it, then the same along
//! the next one for the places within the domain along those before, so that each point is counted once.

use std::fmt::Write as _;

use super::{names, plain};
use crate::ir::{Dim, Extent, Stencil};
use crate::sweep::{Entry, Grid, Sweep};

/// Threads of a block.
const THREADS: u32 = 256;

/// The points of a box without those of a box inside it, by dimension: first places and, behind them, cells at the far
/// end, for the larger box and the one inside it.
pub(super) struct Around {
    bounds: Vec<[(i64, i64); 2]>,
    extents: Vec<Extent>,
}

impl Around {
    fn new(stencil: &Stencil, border: &Stencil) -> Around {
        let both = border.dims.values().zip(stencil.dims.values());
        let bounds = |dim: &Dim| (dim.low, dim.high);
        Around {
            bounds: both
                .map(|(all, inside)| [bounds(all), bounds(inside)])
                .collect(),
            extents: border.dims.values().map(|dim| dim.extent).collect(),
        }
    }

    fn grid(&self) -> Grid {
        let points = |which: usize| {
            let along = self.extents.iter().zip(&self.bounds);
            along
                .map(|(extent, bounds)| (*extent, bounds[which].0 + bounds[which].1))
                .collect()
        };
        Grid::Around {
            all: points(0),
            inside: points(1),
            per: THREADS,
        }
    }

    /// Statements that find a thread's point; `at` is a free name.
    pub(super) fn point(&self, stencil: &Stencil, at: &str) -> String {
        let all: Vec<&str> = stencil.dims.values().map(|dim| &*dim.name).collect();
        // From and number of points along a dimension.
        let along = |dim: usize, which: usize| {
            let (low, high) = self.bounds[dim][which];
            let size = names::extent(stencil, self.extents[dim], None);
            (
                low.to_string(),
                format!("(unsigned)({size} - {})", low + high),
            )
        };
        let mut text = format!(
            "  unsigned {at} = blockIdx.x * blockDim.x + threadIdx.x;\n  int {};\n  do {{\n",
            all.join(", ")
        );
        for (dim, [(low, high), (inner_low, inner_high)]) in self.bounds.iter().enumerate() {
            let size = names::extent(stencil, self.extents[dim], None);
            let below = (low.to_string(), inner_low - low);
            let above = (format!("{size} - {inner_high}"), inner_high - high);
            for (from, thick) in [below, above] {
                if thick < 1 {
                    continue;
                }
                let places: Vec<(String, String)> = (0..all.len())
                    .map(|other| match other.cmp(&dim) {
                        std::cmp::Ordering::Less => along(other, 1),
                        std::cmp::Ordering::Equal => (from.clone(), format!("{thick}u")),
                        std::cmp::Ordering::Greater => along(other, 0),
                    })
                    .collect();
                let counts: Vec<String> = places.iter().map(|(_, count)| count.clone()).collect();
                let count = counts.join(" * ");
                let _ = writeln!(text, "    if ({at} < {count}) {{");
                for (other, (from, _)) in places.iter().enumerate().rev() {
                    let (name, by) = (all[other], &counts[other]);
                    let _ = match other {
                        _ if by == "1u" => writeln!(text, "      {name} = {from};"),
                        0 => writeln!(text, "      {name} = {from} + (int){at};"),
                        _ => writeln!(
                            text,
                            "      {name} = {from} + (int)({at} % {by});\n      {at} /= {by};"
                        ),
                    };
                }
                let _ = writeln!(text, "      break;\n    }}\n    {at} -= {count};");
            }
        }
        text + "    return;\n  } while (0);\n"
    }
}

/// Adds the border's kernel to all that the sweep launches; nothing for a stencil without a border.
pub(crate) fn add(stencil: &Stencil, sweep: &mut Sweep) {
    let Some(border) = &stencil.border else {
        return;
    };
    let around = Around::new(stencil, border);
    let mut names = names::Names::new(border);
    for temp in border.temps.values() {
        names.unique(&temp.name);
    }
    let at = names.unique("at");
    let body = around.point(stencil, &at) + &plain::body(border, &mut names);
    for choice in &mut sweep.choices {
        choice.entries.push(sweep.entries.len());
    }
    sweep.entries.push(Entry {
        suffix: "border".to_owned(),
        qualifiers: format!("__launch_bounds__({THREADS})"),
        body,
        grid: around.grid(),
        block: [THREADS, 1, 1],
        shared_bytes: 0,
    });
}
