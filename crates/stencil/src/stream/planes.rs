//! How planes come and go: queues in registers, copies into the ring, the loop, and the stores.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use cranelift_entity::EntityRef;

use super::graph::SourceId;
use super::layout::Layout;
use super::names::{c_type, clamped, ends, extent_text, name, pair_type, queue, window};
use super::writer::{Shape, Writer};
use crate::ir::{Dim, Stencil};
use crate::sweep::bytes;

impl Writer<'_> {
    /// Arrays that a thread reads from global memory itself.
    pub(super) fn direct(&self, of: &[(SourceId, usize)]) -> Vec<(SourceId, usize, [i32; 2])> {
        of.iter()
            .filter_map(|(source, shape)| {
                let home = self.layout.homes.get(source)?;
                let queue = home.queue.filter(|_| home.ring.is_none())?;
                Some((*source, *shape, queue))
            })
            .collect()
    }

    /// Sources with queues that the ring fills.
    pub(super) fn fed(&self, of: &[(SourceId, usize)]) -> Vec<(SourceId, usize, [i32; 2])> {
        of.iter()
            .filter_map(|(source, shape)| {
                let home = self.layout.homes.get(source)?;
                home.ring?;
                Some((*source, *shape, home.queue?))
            })
            .collect()
    }

    /// Register queues and partial sums, and what stands in them before the first step.
    pub(super) fn queues(&mut self, element: &str, shapes: &[Shape], of: &[(SourceId, usize)]) {
        let [low, high] = self.span;
        let begin = format!("first - {}", -low);
        self.line(format!("    const int begin = {begin};"));
        let mut all: Vec<(SourceId, usize, [i32; 2], bool)> = Vec::new();
        all.extend(self.direct(of).into_iter().map(|(s, n, q)| (s, n, q, true)));
        all.extend(self.fed(of).into_iter().map(|(s, n, q)| (s, n, q, false)));
        let mut offsets: BTreeSet<(usize, [i32; 2])> = BTreeSet::new();
        let points = self.points.clone();
        for (source, shape, [from, to], direct) in all {
            for point in &points {
                if offsets.insert((shape, *point)) {
                    let Shape {
                        extents: [_, _, pitch],
                        rows: [top, bottom],
                        columns: [left, right],
                    } = &shapes[shape];
                    let [py, px] = *point;
                    self.line(format!(
                        "    const int e{shape}_{py}_{px} = inside(y + {py}, {top}, {bottom}) * {pitch} + \
                         inside(x + {px}, {left}, {right});"
                    ));
                }
                for plane in from..=to {
                    let name = queue(source, *point, plane - from);
                    // The last one comes with the step.
                    let initial = if plane == to {
                        "0".to_owned()
                    } else {
                        self.global(source, shape, *point, &format!("begin + {plane}"))
                    };
                    self.line(format!("    {element} {name} = {initial};"));
                }
                if direct {
                    let value = self.global(source, shape, *point, &format!("begin + {to}"));
                    let last = queue(source, *point, to - from);
                    self.line(format!("    {element} {last}n = {value};"));
                }
            }
        }
        for output in (0..self.graph.outputs.len()).filter(|_| high != low) {
            for point in &points {
                let sum = name("a", output, *point);
                (0..=(high - low)).for_each(|k| self.line(format!("    {element} {sum}_{k} = 0;")));
            }
        }
    }

    /// An own element of a plane, read from global memory.
    pub(super) fn global(
        &self,
        source: SourceId,
        shape: usize,
        [y, x]: [i32; 2],
        plane: &str,
    ) -> String {
        let plane = clamped(self.stencil, self.graph, source, 0, plane);
        format!("b{}[{plane} * p{shape} + e{shape}_{y}_{x}]", source.index())
    }

    /// The ring's arrays.
    pub(super) fn rings(&self, of: &[(SourceId, usize)]) -> Vec<(SourceId, usize)> {
        let home = |s: &SourceId| self.layout.homes.get(s).and_then(|h| h.ring);
        of.iter()
            .copied()
            .filter(|(s, _)| home(s).is_some())
            .collect()
    }

    /// Which pairs of elements each thread copies, and how.
    pub(super) fn copies(&mut self, shapes: &[Shape], of: &[(SourceId, usize)]) {
        let rings = self.rings(of);
        if rings.is_empty() {
            return;
        }
        let layout = self.layout;
        let threads = self.plan.threads() as i32;
        let pairs = layout.plane_elements() / 2;
        let each = (pairs + threads - 1) / threads;
        let element = c_type(self.graph.element);
        let size = bytes(self.graph.element) as i32;
        let half = layout.plane[1] / 2;
        let [py, px] = layout.points;
        let lead = [layout.reach.rows[0], layout.reach.columns[0] + layout.pad];
        let [above, before] = lead;
        self.line(format!(
            "    // The pairs of elements that this thread copies of each plane.\n    \
             const int left = x - tx * {px} - {before}, top = y - ty * {py} - {above};\n    \
             const unsigned base = (unsigned)__cvta_generic_to_shared(shared);"
        ));
        // Arrays of the same lengths are copied by the same rows.
        let rows_of = |shape: usize| {
            let mut all = shapes.iter();
            let same = all.position(|s| s.extents == shapes[shape].extents);
            same.unwrap_or(shape)
        };
        let used: BTreeSet<usize> = rings.iter().map(|r| rows_of(r.1)).collect();
        let mut hulls = BTreeMap::new();
        for (source, shape) in &rings {
            let Some(hull) = self.hull(*source, &shapes[*shape]) else {
                continue;
            };
            let number = source.index();
            self.line(format!(
                "    const int low{number} = {}; const unsigned span{number} = (unsigned)({} - low{number});",
                hull.first, hull.last
            ));
            hulls.insert(*source, hull.apart);
        }
        for k in 0..each {
            let (begin, [rows, columns]) = (k * threads, layout.region);
            let (below, behind) = (above + rows, before + columns);
            self.line(format!(
                "    const int g{k} = tid + {begin}, row{k} = g{k} / {half}, col{k} = g{k} % {half} * 2;\n    \
                 const bool mid{k} = row{k} >= {above} && row{k} < {below}, own{k} = col{k} + 1 >= {before} && \
                 col{k} < {behind};\n    \
                 (void)mid{k}; (void)own{k};"
            ));
            let fits = self.copied_part(k);
            for shape in &used {
                let [_, height, pitch] = &shapes[*shape].extents;
                self.line(format!(
                    "    const bool in{k}_{shape} = g{k} < {pairs} && top + row{k} >= 0 && \
                     top + row{k} < {height}{fits};\n    \
                     const bool lo{k}_{shape} = in{k}_{shape} && left + col{k} >= 0 && left + col{k} < {pitch};\n    \
                     const bool hi{k}_{shape} = in{k}_{shape} && left + col{k} + 1 >= 0 && \
                     left + col{k} + 1 < {pitch};\n    \
                     const int from{k}_{shape} = (top + row{k}) * {pitch} + left + col{k};"
                ));
            }
        }
        let all = layout.rings * layout.plane_elements() * size;
        self.line(format!(
            "    auto fetch = [&](int plane, int slot) {{\n        \
             const unsigned to = base + (unsigned)slot * {all}u;"
        ));
        for (source, shape) in &rings {
            let home = &layout.homes[source];
            let plane = clamped(self.stencil, self.graph, *source, 0, "plane");
            let number = source.index();
            let offset = home.ring.unwrap_or(0) as i32 * layout.plane_elements() * size;
            self.line(format!("        {{ const int from = {plane} * p{shape};"));
            let rows = rows_of(*shape);
            let apart = hulls.get(source).copied();
            for k in 0..each {
                let needed = needed(home.sides, layout, k);
                let exists = |add: &str| {
                    let place = format!("from + from{k}_{rows}{add} - low{number}");
                    let text = |_| format!(" && (unsigned)({place}) <= span{number}");
                    apart.map_or_else(String::new, text)
                };
                self.line(format!(
                    "          copy_pair<WIDE, {}, {element}>(to + {offset}u + (unsigned)g{k} * {}u, \
                     b{number} + (from + from{k}_{rows}), lo{k}_{rows}{needed}{}, \
                     hi{k}_{rows}{needed}{});",
                    apart.unwrap_or(false),
                    2 * size,
                    exists(""),
                    exists(" + 1")
                ));
            }
            self.line("        }");
        }
        let [from, to] = layout.window;
        self.line(format!(
            "        copy_commit();\n    }};\n    \
             for (int j = 0; j < {}; ++j) fetch(begin + {from} + j, j);\n    \
             int slot = {};  // of the plane that is computed",
            to - from + self.plan.ahead as i32,
            (-from).rem_euclid(layout.slots)
        ));
    }

    /// What exists of an array for certain: everything between the first and the last element that the input reads. None
    /// if that is all of the rows that are copied.
    fn hull(&self, source: SourceId, shape: &Shape) -> Option<Hull> {
        let [_, height, pitch] = &shape.extents;
        let extents = &self.stencil.arrays[self.graph.sources[source].array].extents;
        let extents = &extents[extents.len() - self.graph.dims..];
        // Do the points read a dimension from its beginning to its end?
        let is_whole = |at: usize| {
            let ([low, high], of) = (self.graph.offsets(source)[at], self.dim(at));
            of.low + i64::from(low) == 0
                && of.extent.parameter == extents[at].parameter
                && of.extent.add - of.high + i64::from(high) == extents[at].add
        };
        let last = extents.len() - 1;
        // Planes are clamped, but not the places of a single row.
        if (last.min(1)..=last).all(is_whole) {
            return None;
        }
        let [low, high] = self.graph.offsets(source)[last];
        let along = self.contiguous();
        let low = along.low + i64::from(low);
        // The last place, counted from the end of the row, or from the end of the points where that is another size:
        // both are even where pairs are copied at once.
        let from = match along.extent.parameter == extents[last].parameter {
            true => along.extent.add - extents[last].add,
            false => 0,
        };
        let behind = from - along.high - 1 + i64::from(high);
        let [first, end] = ends(self.stencil, self.graph, source, 0);
        let place = |plane: &str, row: &str, column: &str| {
            format!("(({plane}) * {height} + {row}) * {pitch} + {column}")
        };
        Some(Hull {
            first: place(&first, &shape.rows[0], &shape.columns[0]),
            last: place(&end, &shape.rows[1], &shape.columns[1]),
            apart: low % 2 != 0 || behind % 2 == 0,
        })
    }

    /// Is a pair in the part of the plane that is copied? The rest is only looked at.
    fn copied_part(&self, k: i32) -> String {
        let (reach, copied) = (self.layout.reach, self.layout.copied);
        let [rows, columns] = self.layout.region;
        let mut text = String::new();
        let pad = self.layout.pad;
        let of_columns = ("col", pad, reach.columns, copied.columns, columns, 1);
        for (at, lead, reach, copied, size, last) in
            [("row", 0, reach.rows, copied.rows, rows, 0), of_columns]
        {
            if copied[0] < reach[0] {
                let first = lead + reach[0] - copied[0];
                let _ = write!(text, " && {at}{k} + {last} >= {first}");
            }
            if copied[1] < reach[1] {
                let end = lead + reach[0] + size + copied[1];
                let _ = write!(text, " && {at}{k} < {end}");
            }
        }
        text
    }

    pub(super) fn loop_head(&mut self, of: &[(SourceId, usize)]) {
        let layout = self.layout;
        let [_, high] = self.span;
        self.line(format!(
            "    #pragma unroll {}\n    for (int c = begin; c < last + {high}; ++c) {{",
            self.plan.unroll
        ));
        let rings = self.rings(of);
        let element = c_type(self.graph.element);
        if !rings.is_empty() {
            let [from, to] = layout.window;
            let stride = layout.rings * layout.plane_elements();
            let [rows, columns] = layout.points;
            let own = format!(
                "(ty * {rows} + {}) * {} + tx * {columns} + {}",
                layout.reach.rows[0],
                layout.plane[1],
                layout.reach.columns[0] + layout.pad
            );
            let (slots, newest) = (layout.slots, to + self.plan.ahead as i32);
            self.line(format!(
                "        copy_wait<{}>();\n        __syncthreads();\n        \
                 fetch(c + {newest}, ring<{slots}>(slot + {}));",
                self.plan.ahead - 1,
                newest.rem_euclid(slots)
            ));
            for plane in from..=to {
                let (w, at) = (window(plane), plane.rem_euclid(slots));
                self.line(format!(
                    "        const {element}* const {w} = shared + ring<{slots}>(slot + {at}) * {stride} + {own};\n        \
                     (void){w};"
                ));
            }
            self.line(format!("        slot = ring<{slots}>(slot + 1);"));
        } else if layout.staged > 0 {
            self.line("        __syncthreads();");
        }
        let points = self.points.clone();
        for (source, _, [from, to]) in self.fed(of) {
            let base = layout.homes[&source].ring.unwrap_or(0) as i32 * layout.plane_elements();
            for [y, x] in &points {
                let (own, from) = (queue(source, [*y, *x], to - from), window(to));
                let at = base + y * layout.plane[1] + x;
                self.line(format!("        {own} = {from}[{at}];"));
            }
        }
        for (source, shape, [from, to]) in self.direct(of) {
            for point in &points {
                let last = queue(source, *point, to - from);
                let next = self.global(source, shape, *point, &format!("c + {}", to + 1));
                self.line(format!(
                    "        {last} = {last}n;\n        {last}n = {next};"
                ));
            }
        }
    }

    pub(super) fn loop_tail(&mut self, of: &[(SourceId, usize)]) {
        self.stores(of);
        let points = self.points.clone();
        let mut all = self.direct(of);
        all.extend(self.fed(of));
        for (source, _, [from, to]) in all {
            for point in &points {
                for place in 0..to - from {
                    let [own, next] = [place, place + 1].map(|at| queue(source, *point, at));
                    self.line(format!("        {own} = {next};"));
                }
            }
        }
        self.line("    }\n}\n");
    }

    /// Stores the finished outputs of this step.
    pub(super) fn stores(&mut self, of: &[(SourceId, usize)]) {
        let [_, high] = self.span;
        let halo = self.layout.halo;
        let [_, columns] = self.layout.points;
        let region = self.layout.region;
        let outputs = self.graph.outputs.clone();
        let points = self.points.clone();
        let bound = |dim: &Dim, at: &str, n: i32, stencil: &Stencil| {
            let size = extent_text(stencil, dim.extent);
            format!(
                "{at} + {n} >= {} && {at} + {n} < {size} - {}",
                dim.low, dim.high
            )
        };
        self.line(format!("        if (c - {high} >= first) {{"));
        for [py, px] in &points {
            let mut valid = vec![bound(self.contiguous(), "x", *px, self.stencil)];
            if self.graph.dims == 3 {
                valid.push(bound(self.dim(1), "y", *py, self.stencil));
            }
            let [column, row] = [
                format!("tx * {columns} + {px}"),
                format!("ty * {} + {py}", self.layout.points[0]),
            ];
            for (edge, at, size) in [
                (halo.columns, column, region[1]),
                (halo.rows, row, region[0]),
            ] {
                if edge != [0, 0] {
                    valid.push(format!("{at} >= {} && {at} < {}", edge[0], size - edge[1]));
                }
            }
            let valid = valid.join(" && ");
            self.line(format!("            const bool r{py}_{px} = {valid};"));
        }
        for (number, (source, _)) in outputs.iter().enumerate() {
            let shape = of.iter().find(|(s, _)| s == source).map_or(0, |s| s.1);
            let [_, _, pitch] = self.extents(*source);
            let to = format!("b{}", source.index());
            self.line(format!(
                "            {{ auto* const to = {to} + ((c - {high}) * p{shape} + y * {pitch} + x);"
            ));
            for [py, px] in &points {
                let value = name("o", number, [*py, *px]);
                let row = match py {
                    0 => String::new(),
                    py => format!("{py} * {pitch} + "),
                };
                let single = format!("if (r{py}_{px}) to[{row}{px}] = {value};");
                let pairs = columns % 2 == 0;
                if pairs && px % 2 == 0 {
                    let next = name("o", number, [*py, px + 1]);
                    let kind = pair_type(self.graph.element);
                    self.line(format!(
                        "              if (WIDE && r{py}_{px} && r{py}_{0}) \
                         *reinterpret_cast<{kind}*>(to + {row}{px}) = make_{kind}({value}, {next});\n              \
                         else {{ {single} if (r{py}_{0}) to[{row}{0}] = {next}; }}",
                        px + 1
                    ));
                } else if !pairs {
                    self.line(format!("              {single}"));
                }
            }
            self.line("            }");
        }
        self.line("        }");
    }
}

/// What is known to exist of an array, counted in elements from its beginning.
struct Hull {
    first: String,
    last: String,
    /// It begins or ends within an aligned pair, if rows are of even length.
    apart: bool,
}

/// The part of the plane that an array of the ring needs.
fn needed(sides: [bool; 3], layout: &Layout, k: i32) -> String {
    let [rows, columns, corners] = sides;
    let has_rows = layout.copied.rows != [0, 0];
    let has_columns = layout.copied.columns != [0, 0];
    let mut conditions = Vec::new();
    if has_rows && !rows {
        conditions.push(format!("mid{k}"));
    }
    if has_columns && !columns {
        conditions.push(format!("own{k}"));
    }
    if has_rows && has_columns && rows && columns && !corners {
        conditions.push(format!("(mid{k} || own{k})"));
    }
    let mut text = String::new();
    for condition in conditions {
        let _ = write!(text, " && {condition}");
    }
    text
}
