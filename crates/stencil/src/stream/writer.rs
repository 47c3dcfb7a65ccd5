//! What surrounds the step: the device function's head, and the sweep with its two kernels.

use cranelift_entity::EntityRef;

use super::cost::cost;
use super::generate::Kernel;
use super::graph::{Graph, SourceId};
use super::kernel::PlaneStep;
use super::layout::Layout;
use super::names::{argument, c_type, ends, extent_text};
use super::plan::Plan;
use crate::emit::add_border;
use crate::ir::{Dim, DimId, Extent, Stencil};
use crate::sweep::{Blocks, Choice, Condition, Entry, Grid, Sweep, bytes, known};

/// Full arrays of the same lengths that are read within the same rows and columns: one set of offsets serves them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    /// Planes, rows and columns.
    pub(super) extents: [String; 3],
    /// The first and the last row that are read.
    pub(super) rows: [String; 2],
    /// The same for columns.
    pub(super) columns: [String; 2],
}

/// Puts the sweep together.
pub(super) struct Writer<'a> {
    pub(super) stencil: &'a Stencil,
    pub(super) graph: &'a Graph,
    pub(super) plan: &'a Plan,
    pub(super) layout: &'a Layout,
    pub(super) start: i64,
    pub(super) span: [i32; 2],
    pub(super) points: Vec<[i32; 2]>,
    pub(super) text: String,
}

impl Writer<'_> {
    pub(super) fn line(&mut self, line: impl AsRef<str>) {
        self.text.push_str(line.as_ref());
        self.text.push('\n');
    }

    pub(super) fn dim(&self, number: usize) -> &Dim {
        &self.stencil.dims[DimId::new(number)]
    }

    pub(super) fn streamed(&self) -> &Dim {
        self.dim(0)
    }

    pub(super) fn contiguous(&self) -> &Dim {
        self.dim(self.graph.dims - 1)
    }

    /// Plane, row and column extents of a full array.
    pub(super) fn extents(&self, source: SourceId) -> [String; 3] {
        let source = &self.graph.sources[source];
        let all = &self.stencil.arrays[source.array].extents;
        let own: Vec<String> = all[all.len() - self.graph.dims..]
            .iter()
            .map(|e| extent_text(self.stencil, *e))
            .collect();
        match &own[..] {
            [plane, row, column] => [plane.clone(), row.clone(), column.clone()],
            [plane, column] => [plane.clone(), "1".to_owned(), column.clone()],
            _ => ["1".to_owned(), "1".to_owned(), "1".to_owned()],
        }
    }

    /// Shapes of full arrays that are read or written, each once, and the number of each.
    pub(super) fn shapes(&self) -> (Vec<Shape>, Vec<(SourceId, usize)>) {
        let mut shapes: Vec<Shape> = Vec::new();
        let mut of = Vec::new();
        for source in self.graph.sources.keys() {
            if !self.graph.is_full(source) {
                continue;
            }
            let last = self.graph.dims - 1;
            let along = |dim| ends(self.stencil, self.graph, source, dim);
            let shape = Shape {
                extents: self.extents(source),
                rows: match last {
                    2 => along(1),
                    _ => ["0".to_owned(), "0".to_owned()],
                },
                columns: along(last),
            };
            let number = shapes.iter().position(|s| *s == shape);
            let number = number.unwrap_or_else(|| {
                shapes.push(shape);
                shapes.len() - 1
            });
            of.push((source, number));
        }
        (shapes, of)
    }

    pub(super) fn finish(mut self, step: PlaneStep<'_>) -> Kernel {
        let element = c_type(self.graph.element);
        let (shapes, of) = self.shapes();
        let cost = cost(&self, &step);
        let bytes = self.shared_bytes();
        let about = self.about(bytes);
        self.text.push_str(include_str!("helpers.cuh"));
        self.kernel_head(element, &shapes, &of);
        for line in step.before.into_lines() {
            self.line(format!("    {line}"));
        }
        self.queues(element, &shapes, &of);
        self.copies(&shapes, &of);
        self.loop_head(&of);
        for line in step.code.into_lines() {
            self.line(format!("        {line}"));
        }
        self.loop_tail(&of);
        let [rows, columns] = self.layout.tile();
        let tile = [columns as u32, rows as u32];
        let count = |dim: &Dim, low: i64| (dim.extent, dim.high + low);
        let middle = if self.graph.dims == 3 {
            count(self.dim(1), self.dim(1).low)
        } else {
            let one = Extent {
                parameter: None,
                add: 1,
            };
            (one, 0)
        };
        let counts = [
            count(self.contiguous(), self.start),
            middle,
            count(self.streamed(), self.streamed().low),
        ];
        let sweep = self.sweep(about, counts, tile, bytes, &of);
        Kernel {
            sweep,
            plan: self.plan.clone(),
            shared_bytes: bytes,
            tile,
            cost,
            counts,
            flat: self.graph.dims == 2,
        }
    }

    /// One kernel for rows that allow 128-bit accesses and one for all.
    fn sweep(
        &self,
        about: Vec<String>,
        counts: [(Extent, i64); 3],
        tile: [u32; 2],
        shared_bytes: u32,
        of: &[(SourceId, usize)],
    ) -> Sweep {
        let along = |at: usize, per| Blocks {
            extent: counts[at].0,
            less: counts[at].1,
            per,
        };
        let (x, y) = (along(0, tile[0]), along(1, tile[1]));
        let planes = along(2, self.plan.chunk);
        let grid = Grid::Box(match self.graph.dims {
            3 => [x, y, planes],
            _ => [x, planes, Blocks::ONE],
        });
        let passed: Vec<String> = known(self.stencil).into_iter().map(|p| p.name).collect();
        let passed = passed.join(", ");
        let entry = |suffix: &str, wide: bool| Entry {
            suffix: suffix.to_owned(),
            qualifiers: format!(
                "__launch_bounds__({}, {})",
                self.plan.threads(),
                self.plan.min_blocks
            ),
            body: format!("    DEVICE::sweep<{wide}>({passed});\n"),
            grid: grid.clone(),
            block: [self.plan.block[0], self.plan.block[1], 1],
            shared_bytes,
        };
        let mut conditions = Vec::new();
        for (source, _) in of {
            let array = &self.stencil.arrays[self.graph.sources[*source].array];
            let Some(pitch) = array.extents.last() else {
                continue;
            };
            // Where points end within the rows is at a place of this size, too.
            let end = self.contiguous().extent;
            let apart = (end.parameter != pitch.parameter).then_some(end);
            for even in [Some(*pitch), apart].into_iter().flatten() {
                let even = Condition::Even(even);
                if !conditions.contains(&even) {
                    conditions.push(even);
                }
            }
        }
        conditions.push(Condition::Aligned(16));
        let mut sweep = Sweep {
            about,
            device: self.text.clone(),
            entries: vec![entry("wide", true), entry("any", false)],
            choices: vec![
                Choice {
                    conditions,
                    entries: vec![0],
                },
                Choice {
                    conditions: Vec::new(),
                    entries: vec![1],
                },
            ],
        };
        add_border(self.stencil, &mut sweep);
        sweep
    }

    pub(super) fn shared_bytes(&self) -> u32 {
        self.layout.elements() as u32 * bytes(self.graph.element)
    }

    fn about(&self, shared_bytes: u32) -> Vec<String> {
        let plan = self.plan;
        let [rows, columns] = self.layout.tile();
        let name = &self.stencil.name;
        let mut about = vec![
            format!(
                "{name}: one sweep, streamed along `{}`.",
                self.streamed().name
            ),
            format!("Plan: {plan}."),
            format!(
                "A block of {} threads computes tiles of {columns} x {rows} points, plane by plane; {shared_bytes} \
                 bytes of shared memory.",
                plan.threads()
            ),
        ];
        let mut homes = Vec::new();
        for (source, home) in &self.layout.homes {
            let place = match (home.ring, home.queue) {
                (Some(_), Some([from, to])) if to > from => "shared memory and a register queue",
                (Some(_), _) => "shared memory",
                _ => "registers",
            };
            let array = &self.stencil.arrays[self.graph.sources[*source].array].name;
            homes.push(format!("  {array}: {place}"));
        }
        about.push("Planes of the arrays live in:".to_owned());
        homes.dedup();
        about.extend(homes);
        if self.layout.rings > 0 {
            let window = self.layout.window;
            about.push(format!(
                "Shared memory holds planes {} to {} around the one that is computed, and {} on their way.",
                window[0], window[1], plan.ahead
            ));
        }
        let [low, high] = self.span;
        if low != high {
            about.push(format!(
                "Retimed: a plane adds to the outputs {} before to {} after it.",
                high, -low
            ));
        }
        if self.layout.staged > 0 {
            about.push(format!(
                "{} values are computed once per point and read by neighbours.",
                self.layout.staged
            ));
        }
        about.push(
            match plan.reassociate {
                true => "Sums are reassociated, as the input permits: results differ by rounding.",
                false => "Every operation of the input, in its order.",
            }
            .to_owned(),
        );
        about
    }

    pub(super) fn kernel_head(
        &mut self,
        element: &str,
        shapes: &[Shape],
        of: &[(SourceId, usize)],
    ) {
        let plan = self.plan;
        let parameters: Vec<String> = known(self.stencil)
            .into_iter()
            .map(|p| match p.pointer {
                true => format!("{} __restrict__ {}", p.ty, argument(&p.name)),
                false => format!("{} {}", p.ty, argument(&p.name)),
            })
            .collect();
        let [tile_rows, tile_columns] = self.layout.tile();
        let halo = self.layout.halo;
        let streamed = self.streamed();
        let (low, high) = (streamed.low, streamed.high);
        let planes = extent_text(self.stencil, streamed.extent);
        let axis = if self.graph.dims == 3 { 'z' } else { 'y' };
        let [rows, columns] = self.layout.points;
        self.line(format!(
            "template <bool WIDE>\n__device__ __forceinline__ void sweep({})\n{{",
            parameters.join(", ")
        ));
        if self.layout.elements() > 0 {
            self.line(format!(
                "    extern __shared__ __align__(16) unsigned char memory[];\n    \
                 {element}* const shared = reinterpret_cast<{element}*>(memory);"
            ));
        }
        let (row, block_row) = match self.graph.dims {
            3 => (self.dim(1).low, "(int)blockIdx.y"),
            _ => (0, "0"),
        };
        self.line(format!(
            "    const int tx = threadIdx.x, ty = threadIdx.y;\n    \
             const int tid = ty * {} + tx;\n    \
             (void)tid;\n    \
             // The thread's first point.\n    \
             const int x = {} + (int)blockIdx.x * {tile_columns} + tx * {columns};\n    \
             const int y = {} + {block_row} * {tile_rows} + ty * {rows};\n    \
             (void)y;\n    \
             // The planes of this block.\n    \
             const int first = {low} + (int)blockIdx.{axis} * {chunk};\n    \
             const int most = first + {chunk}, last = most < {planes} - {high} ? most : {planes} - {high};",
            plan.block[0],
            self.start - i64::from(halo.columns[0]),
            row - i64::from(halo.rows[0]),
            chunk = plan.chunk
        ));
        for (n, shape) in shapes.iter().enumerate() {
            let [_, rows, columns] = &shape.extents;
            self.line(format!("    const int p{n} = {rows} * {columns};"));
        }
        for (source, _) in of {
            let (number, pointer) = (source.index(), self.base(*source));
            self.line(format!(
                "    auto* const b{number} = {pointer};\n    (void)b{number};"
            ));
        }
        if self.layout.staged > 0 {
            self.line(format!(
                "    {element}* const given = shared + {} + (ty * {rows}) * {} + tx * {columns};",
                self.layout.ring_elements() + self.layout.guard,
                self.layout.region[1]
            ));
        }
    }

    /// The first element of a source.
    pub(super) fn base(&self, source: SourceId) -> String {
        let source = &self.graph.sources[source];
        let array = &self.stencil.arrays[source.array];
        let mut component = String::new();
        let constants = source.subscripts.iter().zip(&array.extents);
        for (subscript, extent) in constants {
            if let Err(constant) = subscript {
                let size = extent_text(self.stencil, *extent);
                component = if component.is_empty() {
                    constant.to_string()
                } else {
                    format!("({component} * {size} + {constant})")
                };
            }
        }
        let name = argument(&array.name);
        if component.is_empty() || component == "0" {
            return name;
        }
        let own: Vec<String> = array.extents[array.extents.len() - self.graph.dims..]
            .iter()
            .map(|e: &Extent| extent_text(self.stencil, *e))
            .collect();
        format!("{name} + {component} * {}", own.join(" * "))
    }
}
