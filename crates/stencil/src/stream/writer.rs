//! The file around the step: head, entries and launcher.
//!
//! The launcher has a plain C signature: the arrays, the scalars and the sizes in their order, and
//! the stream. It computes the grid, opts in to the shared memory, and takes the kernel with
//! 128-bit accesses if all rows are aligned for it.

use std::collections::BTreeSet;

use cranelift_entity::EntityRef;

use super::cost::cost;
use super::generate::Kernel;
use super::graph::{Graph, SourceId};
use super::kernel::Step;
use super::layout::Layout;
use super::names::{argument, c_type, extent_text};
use super::plan::Plan;
use crate::ir::{Dim, DimId, Element, Extent, Stencil};

/// Puts the file together.
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
    pub(super) fn shapes(&self) -> (Vec<[String; 3]>, Vec<(SourceId, usize)>) {
        let mut shapes: Vec<[String; 3]> = Vec::new();
        let mut of = Vec::new();
        for source in self.graph.sources.keys() {
            if !self.graph.is_full(source) {
                continue;
            }
            let extents = self.extents(source);
            let number = shapes.iter().position(|s| *s == extents);
            let number = number.unwrap_or_else(|| {
                shapes.push(extents);
                shapes.len() - 1
            });
            of.push((source, number));
        }
        (shapes, of)
    }

    pub(super) fn finish(mut self, step: Step<'_>) -> Kernel {
        let element = c_type(self.graph.element);
        let (shapes, of) = self.shapes();
        let cost = cost(&self, &step);
        let bytes = self.shared_bytes();
        self.header(bytes);
        self.helpers();
        self.kernel_head(element, &shapes, &of);
        for line in step.before.into_lines() {
            self.line(format!("    {line}"));
        }
        self.queues(element, &of);
        self.copies(&shapes, &of);
        self.loop_head(&of);
        for line in step.code.into_lines() {
            self.line(format!("        {line}"));
        }
        self.loop_tail(&of);
        self.entries();
        self.launcher(&of, bytes);
        let [rows, columns] = self.layout.tile();
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
        Kernel {
            source: self.text,
            name: self.stencil.name.clone(),
            plan: self.plan.clone(),
            shared_bytes: bytes,
            tile: [columns as u32, rows as u32],
            cost,
            counts,
            flat: self.graph.dims == 2,
        }
    }

    pub(super) fn shared_bytes(&self) -> u32 {
        let size = if self.graph.element == Element::F64 {
            8
        } else {
            4
        };
        self.layout.elements() as u32 * size
    }

    pub(super) fn header(&mut self, bytes: u32) {
        let plan = self.plan;
        let [rows, columns] = self.layout.tile();
        let name = self.stencil.name.clone();
        self.line(format!(
            "// {name}: one sweep, streamed along `{}`.",
            self.streamed().name
        ));
        self.line("//");
        self.line(format!("// Plan: {plan}."));
        self.line(format!(
            "// A block of {} threads computes tiles of {columns} x {rows} points, plane by plane; \
             {bytes} bytes of shared memory.",
            plan.threads()
        ));
        let mut homes = Vec::new();
        for (source, home) in &self.layout.homes {
            let place = match (home.ring, home.queue) {
                (Some(_), Some([from, to])) if to > from => "shared memory and a register queue",
                (Some(_), _) => "shared memory",
                _ => "registers",
            };
            let array = &self.stencil.arrays[self.graph.sources[*source].array].name;
            homes.push(format!("//   {array}: {place}"));
        }
        self.line("// Planes of the arrays live in:");
        homes.dedup();
        for home in homes {
            self.line(home);
        }
        if self.layout.rings > 0 {
            let window = self.layout.window;
            self.line(format!(
                "// Shared memory holds planes {} to {} around the one that is computed, and {} \
                 on their way.",
                window[0], window[1], plan.ahead
            ));
        }
        let [low, high] = self.span;
        if low != high {
            self.line(format!(
                "// Retimed: a plane adds to the outputs {} before to {} after it.",
                high, -low
            ));
        }
        if self.layout.staged > 0 {
            self.line(format!(
                "// {} values are computed once per point and read by neighbours.",
                self.layout.staged
            ));
        }
        if plan.reassociate {
            self.line(
                "// Sums are reassociated, as the input permits: results differ by rounding.",
            );
        } else {
            self.line("// Every operation of the input, in its order.");
        }
        self.line("");
    }

    pub(super) fn helpers(&mut self) {
        self.text.push_str(include_str!("helpers.cuh"));
    }

    /// The parameters of the kernel and of the launcher.
    pub(super) fn parameters(&self) -> Vec<(String, String)> {
        let mut list = Vec::new();
        for array in self.stencil.arrays.values() {
            let element = c_type(array.element);
            let constant = if array.written { "" } else { "const " };
            let name = argument(&array.name);
            list.push((format!("{constant}{element}* __restrict__ {name}"), name));
        }
        for scalar in self.stencil.scalars.values() {
            let name = argument(&scalar.name);
            list.push((format!("{} {name}", c_type(scalar.element)), name));
        }
        for parameter in self.stencil.parameters.values() {
            let name = argument(parameter);
            list.push((format!("int {name}"), name));
        }
        list
    }

    pub(super) fn kernel_head(
        &mut self,
        element: &str,
        shapes: &[[String; 3]],
        of: &[(SourceId, usize)],
    ) {
        let plan = self.plan;
        let parameters: Vec<String> = self.parameters().into_iter().map(|p| p.0).collect();
        let [tile_rows, tile_columns] = self.layout.tile();
        let halo = self.layout.halo;
        let streamed = self.streamed();
        let (low, high) = (streamed.low, streamed.high);
        let planes = extent_text(self.stencil, streamed.extent);
        let axis = if self.graph.dims == 3 { 'z' } else { 'y' };
        let [rows, columns] = self.layout.points;
        self.line(format!(
            "namespace {{\n\ntemplate <bool WIDE>\n__device__ __forceinline__ void sweep({})\n{{",
            parameters.join(", ")
        ));
        if self.layout.elements() > 0 {
            self.line("    extern __shared__ __align__(16) unsigned char memory[];");
            self.line(format!(
                "    {element}* const shared = reinterpret_cast<{element}*>(memory) + {};",
                self.layout.guard
            ));
        }
        self.line("    const int tx = threadIdx.x, ty = threadIdx.y;");
        self.line(format!("    const int tid = ty * {} + tx;", plan.block[0]));
        self.line("    (void)tid;");
        self.line("    // The thread's first point.");
        self.line(format!(
            "    const int x = {} + (int)blockIdx.x * {tile_columns} + tx * {columns};",
            self.start - i64::from(halo.columns[0])
        ));
        let row = if self.graph.dims == 3 {
            self.dim(1).low
        } else {
            0
        };
        let block_row = if self.graph.dims == 3 {
            "(int)blockIdx.y"
        } else {
            "0"
        };
        self.line(format!(
            "    const int y = {} + {block_row} * {tile_rows} + ty * {rows};",
            row - i64::from(halo.rows[0])
        ));
        self.line("    (void)y;");
        self.line("    // The planes of this block.");
        self.line(format!(
            "    const int first = {low} + (int)blockIdx.{axis} * {};",
            plan.chunk
        ));
        self.line(format!(
            "    const int last = min(first + {}, {planes} - {high});",
            plan.chunk
        ));
        for (n, [_, rows, columns]) in shapes.iter().enumerate() {
            self.line(format!("    const int p{n} = {rows} * {columns};"));
        }
        for (source, _) in of {
            let pointer = self.base(*source);
            let text = format!("    auto* const b{} = {pointer};", source.index());
            self.line(text);
            self.line(format!("    (void)b{};", source.index()));
        }
        if self.layout.staged > 0 {
            self.line(format!(
                "    {element}* const given = shared + {} + (ty * {rows}) * {} + tx * {columns};",
                self.layout.ring_elements(),
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

    /// The kernels: one for rows that allow 128-bit accesses and one for all.
    pub(super) fn entries(&mut self) {
        let (declared, passed): (Vec<String>, Vec<String>) = self.parameters().into_iter().unzip();
        self.line("}  // namespace\n");
        for (suffix, wide) in [("wide", true), ("any", false)] {
            let line = format!(
                "extern \"C\" __global__ void __launch_bounds__({}, {})\n{}_{suffix}({})\n{{\n    \
                 sweep<{wide}>({});\n}}\n",
                self.plan.threads(),
                self.plan.min_blocks,
                self.stencil.name,
                declared.join(", "),
                passed.join(", ")
            );
            self.line(line);
        }
    }

    pub(super) fn launcher(&mut self, of: &[(SourceId, usize)], bytes: u32) {
        let parameters = self.parameters();
        let declared: Vec<String> = parameters
            .iter()
            .map(|p| p.0.replace(" __restrict__", ""))
            .collect();
        let passed: Vec<String> = parameters.into_iter().map(|p| p.1).collect();
        let name = self.stencil.name.clone();
        let [rows, columns] = self.layout.tile();
        let count = |dim: &Dim, low: i64, stencil: &Stencil| {
            format!(
                "{} - {} - {low}",
                extent_text(stencil, dim.extent),
                dim.high
            )
        };
        let x = count(self.contiguous(), self.start, self.stencil);
        let planes = count(self.streamed(), self.streamed().low, self.stencil);
        self.line("/// Computes one sweep; returns the status of the launch.");
        self.line(format!(
            "extern \"C\" cudaError_t {name}({}, cudaStream_t stream)\n{{",
            declared.join(", ")
        ));
        self.line(format!("    const int across = {x}, planes = {planes};"));
        let y = if self.graph.dims == 3 {
            count(self.dim(1), self.dim(1).low, self.stencil)
        } else {
            "1".to_owned()
        };
        self.line(format!("    const int down = {y};"));
        self.line("    if (across <= 0 || down <= 0 || planes <= 0) return cudaSuccess;");
        let chunk = self.plan.chunk;
        let (gx, gy, gz) = (
            format!("(across + {}) / {columns}", columns - 1),
            format!("(down + {}) / {rows}", rows - 1),
            format!("(planes + {}) / {chunk}", chunk - 1),
        );
        let grid = if self.graph.dims == 3 {
            format!("{gx}, {gy}, {gz}")
        } else {
            format!("{gx}, {gz}")
        };
        self.line(format!("    const dim3 grid({grid});"));
        self.line(format!(
            "    const dim3 block({}, {});",
            self.plan.block[0], self.plan.block[1]
        ));
        let mut aligned = BTreeSet::new();
        for (source, _) in of {
            let array = argument(&self.stencil.arrays[self.graph.sources[*source].array].name);
            let [planes, rows, pitch] = self.extents(*source);
            let _ = (planes, rows);
            aligned.insert(format!("{pitch} % 2 == 0"));
            aligned.insert(format!("(size_t){array} % 16 == 0"));
        }
        self.line("    // Rows that start at multiples of a pair: 128-bit accesses.");
        let aligned: Vec<String> = aligned.into_iter().collect();
        self.line(format!("    const bool wide = {};", aligned.join(" && ")));
        self.line(format!(
            "    auto* const kernel = wide ? {name}_wide : {name}_any;"
        ));
        self.line("    const cudaError_t status = cudaFuncSetAttribute(");
        self.line(format!(
            "        kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, {bytes});"
        ));
        self.line("    if (status != cudaSuccess) return status;");
        self.line(format!(
            "    kernel<<<grid, block, {bytes}, stream>>>({});",
            passed.join(", ")
        ));
        self.line("    return cudaGetLastError();");
        self.line("}");
    }
}
