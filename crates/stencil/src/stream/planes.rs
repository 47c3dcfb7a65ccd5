//! How planes come and go: queues in registers, copies into the ring, the loop, and the stores.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use cranelift_entity::EntityRef;

use super::graph::SourceId;
use super::layout::Layout;
use super::names::{c_type, clamped, ends, extent_text, name, pair_type, queue, window};
use super::writer::{Shape, Writer};
use crate::ir::{Dim, Element, Stencil};

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
                    self.line(format!(
                        "    {element} {}n = {value};",
                        queue(source, *point, to - from)
                    ));
                }
            }
        }
        for output in 0..self.graph.outputs.len() {
            for point in &points {
                for k in 0..=(high - low) {
                    if high != low {
                        self.line(format!(
                            "    {element} {}_{k} = 0;",
                            name("a", output, *point)
                        ));
                    }
                }
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
        let size = if self.graph.element == Element::F64 {
            8
        } else {
            4
        };
        let half = layout.plane[1] / 2;
        let [py, px] = layout.points;
        self.line("    // The pairs of elements that this thread copies of each plane.");
        self.line(format!(
            "    const int left = x - tx * {px} - {}, top = y - ty * {py} - {};",
            layout.reach.columns[0] + layout.pad,
            layout.reach.rows[0]
        ));
        self.line("    const unsigned base = (unsigned)__cvta_generic_to_shared(shared);");
        // Arrays of the same lengths are copied by the same rows.
        let rows_of = |shape: usize| {
            let same = shapes
                .iter()
                .position(|s| s.extents == shapes[shape].extents);
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
            self.line(format!(
                "    const int g{k} = tid + {}, row{k} = g{k} / {half}, col{k} = g{k} % {half} * 2;",
                k * threads
            ));
            self.line(format!(
                "    const bool mid{k} = row{k} >= {} && row{k} < {}, own{k} = col{k} + 1 >= {} && \
                 col{k} < {};",
                layout.reach.rows[0],
                layout.reach.rows[0] + layout.region[0],
                layout.reach.columns[0] + layout.pad,
                layout.reach.columns[0] + layout.pad + layout.region[1]
            ));
            self.line(format!("    (void)mid{k}; (void)own{k};"));
            let fits = self.copied_part(k);
            for shape in &used {
                let [_, height, pitch] = &shapes[*shape].extents;
                self.line(format!(
                    "    const bool in{k}_{shape} = g{k} < {pairs} && top + row{k} >= 0 && \
                     top + row{k} < {height}{fits};"
                ));
                self.line(format!(
                    "    const bool lo{k}_{shape} = in{k}_{shape} && left + col{k} >= 0 && \
                     left + col{k} < {pitch};"
                ));
                self.line(format!(
                    "    const bool hi{k}_{shape} = in{k}_{shape} && left + col{k} + 1 >= 0 && \
                     left + col{k} + 1 < {pitch};"
                ));
                self.line(format!(
                    "    const int from{k}_{shape} = (top + row{k}) * {pitch} + left + col{k};"
                ));
            }
        }
        self.line("    auto fetch = [&](int plane, int slot) {");
        self.line(format!(
            "        const unsigned to = base + (unsigned)slot * {}u;",
            layout.rings * layout.plane_elements() * size
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
                let exists = |add: &str| match apart {
                    None => String::new(),
                    Some(_) => {
                        format!(
                            " && (unsigned)(from + from{k}_{rows}{add} - low{number}) <= span{number}"
                        )
                    }
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
        self.line("        copy_commit();");
        self.line("    };");
        let [from, to] = layout.window;
        self.line(format!(
            "    for (int j = 0; j < {}; ++j) fetch(begin + {from} + j, j);",
            to - from + self.plan.ahead as i32
        ));
        self.line(format!(
            "    int slot = {};  // of the plane that is computed",
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
        for (at, lead, reach, copied, size, last) in [
            ("row", 0, reach.rows, copied.rows, rows, 0),
            (
                "col",
                self.layout.pad,
                reach.columns,
                copied.columns,
                columns,
                1,
            ),
        ] {
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
        let [low, high] = self.span;
        self.line(format!("    #pragma unroll {}", self.plan.unroll));
        self.line(format!(
            "    for (int c = begin; c < last + {high}; ++c) {{"
        ));
        let _ = low;
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
            self.line(format!("        copy_wait<{}>();", self.plan.ahead - 1));
            self.line("        __syncthreads();");
            self.line(format!(
                "        fetch(c + {}, ring<{}>(slot + {}));",
                to + self.plan.ahead as i32,
                layout.slots,
                (to + self.plan.ahead as i32).rem_euclid(layout.slots)
            ));
            for plane in from..=to {
                self.line(format!(
                    "        const {element}* const {} = shared + ring<{}>(slot + {}) * {stride} + \
                     {own};",
                    window(plane),
                    layout.slots,
                    plane.rem_euclid(layout.slots)
                ));
                self.line(format!("        (void){};", window(plane)));
            }
            self.line(format!("        slot = ring<{}>(slot + 1);", layout.slots));
        } else if layout.staged > 0 {
            self.line("        __syncthreads();");
        }
        let points = self.points.clone();
        for (source, _, [from, to]) in self.fed(of) {
            let base = layout.homes[&source].ring.unwrap_or(0) as i32 * layout.plane_elements();
            for [y, x] in &points {
                self.line(format!(
                    "        {} = {}[{}];",
                    queue(source, [*y, *x], to - from),
                    window(to),
                    base + y * layout.plane[1] + x
                ));
            }
        }
        for (source, shape, [from, to]) in self.direct(of) {
            for point in &points {
                let last = queue(source, *point, to - from);
                let next = self.global(source, shape, *point, &format!("c + {}", to + 1));
                self.line(format!("        {last} = {last}n;"));
                self.line(format!("        {last}n = {next};"));
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
                for plane in from..to {
                    self.line(format!(
                        "        {} = {};",
                        queue(source, *point, plane - from),
                        queue(source, *point, plane - from + 1)
                    ));
                }
            }
        }
        self.line("    }");
        self.line("}\n");
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
            for (edge, at, count, size) in [
                (
                    halo.columns,
                    format!("tx * {columns} + {px}"),
                    columns,
                    region[1],
                ),
                (
                    halo.rows,
                    format!("ty * {} + {py}", self.layout.points[0]),
                    1,
                    region[0],
                ),
            ] {
                let _ = count;
                if edge != [0, 0] {
                    valid.push(format!("{at} >= {} && {at} < {}", edge[0], size - edge[1]));
                }
            }
            self.line(format!(
                "            const bool r{py}_{px} = {};",
                valid.join(" && ")
            ));
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
                let row = if *py == 0 {
                    String::new()
                } else {
                    format!("{py} * {pitch} + ")
                };
                let single = format!("if (r{py}_{px}) to[{row}{px}] = {value};");
                let pairs = columns % 2 == 0;
                if pairs && px % 2 == 0 {
                    let next = name("o", number, [*py, px + 1]);
                    let kind = pair_type(self.graph.element);
                    self.line(format!(
                        "              if (WIDE && r{py}_{px} && r{py}_{}) \
                         *reinterpret_cast<{kind}*>(to + {row}{px}) = make_{kind}({value}, {next});",
                        px + 1
                    ));
                    self.line(format!(
                        "              else {{ {single} if (r{py}_{0}) to[{row}{0}] = {next}; }}",
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
