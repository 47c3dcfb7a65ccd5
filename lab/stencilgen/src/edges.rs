//! Indices beyond the ends of a dimension: clamped to the last cell, or wrapped to the other end, in the spellings that
//! people use.

use std::fmt::Write as _;

use warpwright_fuzzgen::Rng;

use crate::generate::{Dim, Writer};

/// What indices beyond the ends of a dimension mean.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Edge {
    wraps: bool,
    /// Neighbours have names: `i_m1`.
    named: bool,
}

/// Gives some dimensions an edge, and computes points there.
pub(crate) fn bend(rng: &mut Rng, dims: &mut [Dim]) {
    for dim in dims {
        if rng.chance(70) {
            dim.edge = Some(Edge {
                wraps: rng.chance(45),
                named: rng.chance(30),
            });
            dim.margins = [rng.below(2) as i64, rng.below(2) as i64];
            dim.shifted = false;
        }
    }
}

impl Writer<'_> {
    /// Functions of the file that bend an index.
    pub(crate) fn bending(&mut self, text: &mut String) {
        let name = self.name;
        let has = |wraps: bool| {
            let edges = self.dims.iter().filter_map(|d| d.edge);
            edges.into_iter().any(|edge| edge.wraps == wraps)
        };
        let (clamps, wraps) = (has(false), has(true));
        let qualifiers = *self.rng.pick(&["__device__", "__device__ __forceinline__"]);
        if clamps {
            let body = *self.rng.pick(&[
                "return min(max(i, 0), n - 1);",
                "return i < 0 ? 0 : i >= n ? n - 1 : i;",
                "if (i < 0) return 0; if (i > n - 1) return n - 1; return i;",
                "if (i < 0) i = 0; else if (i >= n) i = n - 1; return i;",
            ]);
            let _ = writeln!(
                text,
                "{qualifiers} int clamp_{name}(int i, int n) {{ {body} }}"
            );
        }
        if wraps {
            let body = *self.rng.pick(&[
                "return (i + n) % n;",
                "return i < 0 ? i + n : i >= n ? i - n : i;",
                "if (i < 0) i += n; if (i >= n) i -= n; return i;",
            ]);
            let _ = writeln!(
                text,
                "{qualifiers} int wrap_{name}(int i, int n) {{ {body} }}"
            );
        }
    }

    /// The subscript of a neighbour along a dimension.
    pub(crate) fn index(&mut self, at: usize, offset: i64) -> String {
        let dim = &self.dims[at];
        match dim.edge {
            None => plain(dim, offset),
            Some(_) if offset == 0 => dim.iterator.to_owned(),
            Some(edge) if edge.named => name(dim, offset),
            Some(edge) => format!("({})", self.bent(at, offset, edge.wraps)),
        }
    }

    /// Declarations of the neighbours that have names.
    pub(crate) fn bent_names(&mut self) -> Vec<String> {
        let mut lines = Vec::new();
        for at in 0..self.dims.len() {
            let dim = &self.dims[at];
            let Some(edge) = dim.edge.filter(|edge| edge.named) else {
                continue;
            };
            let [low, high] = dim.offsets;
            for offset in (low..=high).filter(|offset| *offset != 0) {
                let dim = &self.dims[at];
                let (own, size) = (name(dim, offset), dim.size.clone());
                let place = plain(dim, offset);
                let (below, above) = match edge.wraps {
                    true => (format!("{own} += {size}"), format!("{own} -= {size}")),
                    false => (format!("{own} = 0"), format!("{own} = {size} - 1")),
                };
                match self.rng.below(4) {
                    0 => lines.push(format!(
                        "int {own} = {place}; if ({own} < 0) {below}; if ({own} >= {size}) {{ {above}; }}"
                    )),
                    1 if offset < 0 => {
                        lines.push(format!("int {own} = {place}; if ({own} < 0) {below};"));
                    }
                    1 => lines.push(format!(
                        "int {own} = {place}; if ({own} > {size} - 1) {above};"
                    )),
                    _ => {
                        let value = self.bent(at, offset, edge.wraps);
                        lines.push(format!("const int {own} = {value};"));
                    }
                }
            }
        }
        lines
    }

    fn bent(&mut self, at: usize, offset: i64, wraps: bool) -> String {
        let name = self.name;
        let dim = &self.dims[at];
        let (iterator, size, place) = (dim.iterator, dim.size.clone(), plain(dim, offset));
        let (by, is_low) = (offset.abs(), offset < 0);
        match (wraps, self.rng.below(5)) {
            (false, 0) => format!("min(max({place}, 0), {size} - 1)"),
            (false, 1) => format!("{place} < 0 ? 0 : {place} > {size} - 1 ? {size} - 1 : {place}"),
            (false, 2) if is_low => format!("max({place}, 0)"),
            (false, 2) => format!("min({place}, {size} - 1)"),
            (false, 3) if is_low => format!("{iterator} >= {by} ? {place} : 0"),
            (false, 3) => format!("{iterator} < {size} - {by} ? {place} : {size} - 1"),
            (false, _) => format!("clamp_{name}({place}, {size})"),
            (true, 0) if is_low => format!("({iterator} + {size} - {by}) % {size}"),
            (true, 0) => format!("({place}) % {size}"),
            (true, 1) if is_low => format!("{place} < 0 ? {place} + {size} : {place}"),
            (true, 1) => format!("{place} >= {size} ? {place} - {size} : {place}"),
            (true, 2) if offset == -1 => format!("{iterator} == 0 ? {size} - 1 : {place}"),
            (true, 2) if offset == 1 => format!("{iterator} == {size} - 1 ? 0 : {place}"),
            (true, 3) => format!("({place} + {size}) % {size}"),
            (true, _) => format!("wrap_{name}({place}, {size})"),
        }
    }
}

pub(crate) fn plain(dim: &Dim, offset: i64) -> String {
    match offset {
        0 => dim.iterator.to_owned(),
        n if n > 0 => format!("{} + {n}", dim.iterator),
        n => format!("{} - {}", dim.iterator, -n),
    }
}

fn name(dim: &Dim, offset: i64) -> String {
    let sign = if offset < 0 { 'm' } else { 'p' };
    format!("{}_{sign}{}", dim.iterator, offset.abs())
}
