//! A sweep as CUDA C++: the device code, and the host function that launches it.
//!
//! Names: `NAME_launch` is what a program calls, `NAME_sweep_…` are the kernels, the namespace `NAME_device` has
//! their functions, and `NAME_try` launches if it can. If the file uses one of these, NAME is `kernel_2`, and so on.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use warpwright_cudac::launcher::{self, Attempt};
use warpwright_target::SHARED_PER_BLOCK;

use super::{Blocks, Choice, Condition, Grid, Sweep, bytes, c_type, parameters};
use crate::ir::{Access, ArrayId, Expr, Extent, Stencil, Target};

/// What the parts of a generated text are called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Names(launcher::Names);

impl Names {
    /// The names for a kernel in a text that has these words.
    pub fn new(kernel: &str, words: &BTreeSet<String>) -> Names {
        Names(launcher::Names::new(kernel, words, &["_sweep", "_device"]))
    }

    /// The function that a program calls in place of the kernel.
    pub fn launch(&self) -> String {
        self.0.launch()
    }

    /// The function that launches the sweep, or says that it cannot.
    pub fn attempt(&self) -> String {
        self.0.attempt()
    }

    /// The namespace of the device functions.
    pub fn device(&self) -> String {
        self.0.of("_device")
    }

    /// A kernel.
    pub fn entry(&self, suffix: &str) -> String {
        self.0.of(&format!("_sweep_{suffix}"))
    }

    /// Names that are free: the grid, the block, the shared memory, the stream, the arguments.
    pub(crate) fn free(&self) -> &[String; 5] {
        &self.0.free
    }
}

/// A size in host code: 64 bits wide.
pub(crate) fn host_extent(stencil: &Stencil, extent: Extent) -> String {
    let name = extent.parameter.map(|p| &stencil.parameters[p]);
    match (name, extent.add) {
        (None, add) => format!("{add}LL"),
        (Some(name), 0) => format!("(long long){name}"),
        (Some(name), add) => format!("((long long){name} {add:+})"),
    }
}

fn points(stencil: &Stencil, count: &Blocks) -> String {
    let size = host_extent(stencil, count.extent);
    match count.less {
        0 => size,
        less => format!("({size} - {less})"),
    }
}

fn blocks(stencil: &Stencil, count: &Blocks) -> String {
    let points = points(stencil, count);
    match count.per {
        1 => points,
        per => format!("({points} + {}) / {per}", per - 1),
    }
}

/// The blocks of a launch along x, y and z.
fn grid_text(stencil: &Stencil, grid: &Grid) -> [String; 3] {
    match grid {
        Grid::Box(along) => [0, 1, 2].map(|n| blocks(stencil, &along[n])),
        Grid::Around { all, inside, per } => {
            let product = |of: &[(Extent, i64)]| {
                let along = of.iter().map(|&(extent, less)| {
                    let one = Blocks {
                        extent,
                        less,
                        per: 1,
                    };
                    points(stencil, &one)
                });
                along.collect::<Vec<_>>().join(" * ")
            };
            let (all, inside) = (product(all), product(inside));
            let count = format!("({all} - {inside} + {}) / {per}", per - 1);
            [count, "1".to_owned(), "1".to_owned()]
        }
    }
}

/// The lines at the beginning of a kernel: pointers to variables of the file.
fn pointers(stencil: &Stencil) -> String {
    let mut text = String::new();
    for (array, variable) in stencil.variables() {
        let constant = if array.written { "" } else { "const " };
        let first = match variable.is_number {
            true => String::new(),
            false => "[0]".repeat(array.extents.len()),
        };
        let variable = &variable.name;
        let (ty, name) = (c_type(array.element), &array.name);
        let _ = writeln!(
            text,
            "    {constant}{ty}* const {name} = &{variable}{first};"
        );
    }
    text
}

/// The namespace and the kernels. `linkage` is `extern "C" ` or nothing.
pub(crate) fn device(stencil: &Stencil, sweep: &Sweep, names: &Names, linkage: &str) -> String {
    let mut text = String::new();
    for line in &sweep.about {
        let _ = writeln!(text, "// {line}");
    }
    if !sweep.device.is_empty() {
        let name = names.device();
        let _ = writeln!(
            text,
            "namespace {name} {{\n{}}}  // namespace {name}\n",
            sweep.device
        );
    }
    let declared = parameters(stencil);
    let declared: Vec<String> = declared.iter().map(|p| p.declared(true)).collect();
    let declared = declared.join(", ");
    for entry in &sweep.entries {
        let body = entry
            .body
            .replace("DEVICE::", &format!("{}::", names.device()));
        let _ = writeln!(
            text,
            "{linkage}__global__ void {}\n{}({declared})\n{{\n{}{body}}}\n",
            entry.qualifiers,
            names.entry(&entry.suffix),
            pointers(stencil)
        );
    }
    text
}

/// The host function that launches the sweep. It returns `cudaErrorNotSupported`, and has launched nothing, where
/// the sweep is not for this launch: arrays that overlap, more elements than 32 bits count, a device without the
/// shared memory, or an error from before that somebody still has to see.
///
/// `asked` are names for the launch that was asked for, and what it must satisfy.
pub(crate) fn try_function(
    stencil: &Stencil,
    sweep: &Sweep,
    names: &Names,
    stream: &str,
    asked: Option<(&str, &str, &[String])>,
) -> String {
    let list = parameters(stencil);
    let mut declared: Vec<String> = Vec::new();
    if let Some((grid, block, _)) = asked {
        declared.extend([format!("dim3 {grid}"), format!("dim3 {block}")]);
    }
    declared.extend(list.iter().map(|p| p.declared(false)));
    let mut text = Attempt::new(&names.attempt(), &declared, stream);
    let empty = no_points(stencil);
    let nothing = match stencil.border {
        None => "cudaSuccess;  // no points",
        Some(_) => "cudaErrorNotSupported;  // nothing but a border",
    };
    text.line(&format!("if ({empty}) return {nothing}"));
    // Threads that walk in steps of the grid compute all points of any launch.
    if let Some((_, _, covers)) = asked.filter(|(_, _, covers)| !covers.is_empty()) {
        let covers = covers.join(" &&\n          ");
        text.line("// Does the launch compute all points, each once?");
        text.line(&format!("if (!({covers})) return cudaErrorNotSupported;"));
    }
    text.unless(&large(stencil));
    text.unless(&overlaps(stencil));
    let passed: Vec<&str> = list.iter().map(|p| p.name.as_str()).collect();
    for choice in &sweep.choices {
        let passed = passed.join(", ");
        launches(stencil, sweep, choice, names, (&passed, stream), &mut text);
    }
    let last = sweep.choices.last();
    text.end(last.is_some_and(|choice| choice.conditions.is_empty()))
}

/// Cells that threads, tiles and marches may reach beyond a dimension.
const BEYOND: u32 = 512;

/// Elements are counted in 32 bits, those of threads beyond the domain included.
fn large(stencil: &Stencil) -> Vec<String> {
    let mut all = BTreeSet::new();
    for (id, array) in stencil.passed() {
        // The place behind the last one: `((3 * (L + 512)) * M + 512) * N + 512`; nothing reaches beyond components.
        let mut end = String::new();
        for (at, extent) in array.extents.iter().enumerate() {
            let size = host_extent(stencil, *extent);
            end = match end.as_str() {
                "" => format!("(double){size}"),
                _ => format!("({end}) * {size}"),
            };
            if is_walked(stencil, id, at) {
                let _ = write!(end, " + {BEYOND}");
            }
        }
        all.insert(format!("{end} > 2147483647.0"));
    }
    all.into_iter().collect()
}

/// Does a dimension of the domain, of this stencil or of its border, run along this subscript of the array?
fn is_walked(stencil: &Stencil, array: ArrayId, at: usize) -> bool {
    let loads = stencil.exprs.values().filter_map(|expr| match expr {
        Expr::Load(access) => Some(access),
        _ => None,
    });
    let stores = stencil.statements.iter().filter_map(|s| match &s.target {
        Target::Store(access) => Some(access),
        Target::Temp(_) => None,
    });
    let mut own = loads.chain(stores).filter(|access| access.array == array);
    let along = |access: &Access| access.subscripts.get(at).is_some_and(|s| s.dim.is_some());
    own.any(along)
        || stencil
            .border
            .as_deref()
            .is_some_and(|border| is_walked(border, array, at))
}

/// Arrays are taken to be apart.
fn overlaps(stencil: &Stencil) -> Vec<String> {
    let arrays: Vec<_> = stencil.passed().map(|(_, array)| array).collect();
    let size = |at: usize| {
        let factors: Vec<String> = arrays[at]
            .extents
            .iter()
            .map(|e| host_extent(stencil, *e))
            .collect();
        format!("{} * {}", factors.join(" * "), bytes(arrays[at].element))
    };
    let mut all = Vec::new();
    for (a, first) in arrays.iter().enumerate() {
        for (b, second) in arrays.iter().enumerate().skip(a + 1) {
            if first.written || second.written {
                let (x, y) = (&first.name, &second.name);
                all.push(format!(
                    "((const char*){x} < (const char*){y} + {} && (const char*){y} < (const char*){x} + {})",
                    size(b),
                    size(a)
                ));
            }
        }
    }
    all
}

fn condition(stencil: &Stencil, condition: &Condition) -> String {
    match condition {
        Condition::Even(extent) => format!("{} % 2 == 0", host_extent(stencil, *extent)),
        Condition::Aligned(bytes) => {
            let each = stencil.passed().map(|(_, a)| format!("(size_t){}", a.name));
            format!("({}) % {bytes} == 0", each.collect::<Vec<_>>().join(" | "))
        }
        Condition::AtLeast(extent, less, least) => {
            format!("{} >= {}", host_extent(stencil, *extent), less + least)
        }
        Condition::Is(parameter, value) => format!("{} == {value}", stencil.parameters[*parameter]),
    }
}

fn launches(
    stencil: &Stencil,
    sweep: &Sweep,
    choice: &Choice,
    names: &Names,
    (passed, stream): (&str, &str),
    text: &mut Attempt,
) {
    let conditions = choice.conditions.iter().map(|c| condition(stencil, c));
    text.open(&conditions.collect::<Vec<String>>(), " && ");
    for entry in choice
        .entries
        .iter()
        .filter_map(|&at| sweep.entries.get(at))
    {
        let name = names.entry(&entry.suffix);
        let grid = grid_text(stencil, &entry.grid);
        let open = grid[1..].iter().filter(|along| along.contains("long long"));
        open.for_each(|along| text.fits(along));
        if entry.shared_bytes > SHARED_PER_BLOCK {
            text.shared(&name, entry.shared_bytes);
        }
        let ([x, y, z], shared) = (entry.block, entry.shared_bytes);
        let how = format!("dim3({x}, {y}, {z}), {shared}, {stream}");
        text.launch(&name, &grid, &how, passed);
    }
    text.close();
}

/// A whole file for a stencil that has no CUDA text of its own: the sweep, if there is one, the plain kernel that
/// computes a point per thread (named for the stencil), and `NAME_launch(…, stream)`, which returns the status.
pub fn standalone(stencil: &Stencil, sweep: Option<&Sweep>, plain: Option<&Sweep>) -> String {
    let names = Names::new(&stencil.name, &BTreeSet::new());
    let mut text = String::from("#include <cuda_runtime.h>\n\n");
    if let Some(sweep) = sweep {
        text += &device(stencil, sweep, &names, "extern \"C\" ");
        text += &try_function(stencil, sweep, &names, "stream", None);
        text.push('\n');
    }
    let list = parameters(stencil);
    let of_kernel: Vec<String> = list.iter().map(|p| p.declared(true)).collect();
    let of_host: Vec<String> = list.iter().map(|p| p.declared(false)).collect();
    let passed: Vec<&str> = list.iter().map(|p| p.name.as_str()).collect();
    let (of_kernel, of_host, passed) =
        (of_kernel.join(", "), of_host.join(", "), passed.join(", "));
    let name = &stencil.name;
    let mut launch = String::new();
    if let Some(entry) = plain.and_then(|p| p.entries.first()) {
        let _ = writeln!(
            text,
            "// A thread computes a point.\nextern \"C\" __global__ void {}\n{name}({of_kernel})\n{{\n{}}}\n",
            entry.qualifiers, entry.body
        );
        let [x, y, z] = grid_text(stencil, &entry.grid);
        let [bx, by, bz] = entry.block;
        let empty = no_points(stencil);
        let _ = write!(
            launch,
            "    if ({empty}) return cudaSuccess;\n    {name}<<<dim3((unsigned)({x}), (unsigned)({y}), \
             (unsigned)({z})), dim3({bx}, {by}, {bz}), 0, stream>>>({passed});\n    return cudaPeekAtLastError();\n"
        );
    }
    let _ = writeln!(
        text,
        "/// Computes one sweep; returns the status of the launch.\nextern \"C\" cudaError_t \
         {}({of_host}, cudaStream_t stream)\n{{",
        names.launch()
    );
    if sweep.is_some() && launch.is_empty() {
        launch = format!("    return {}({passed}, stream);\n", names.attempt());
    } else if sweep.is_some() {
        let _ = writeln!(
            text,
            "    const cudaError_t status = {}({passed}, stream);\n    \
             if (status != cudaErrorNotSupported) return status;",
            names.attempt()
        );
    }
    text + &launch + "}\n"
}

/// Some dimension of the domain is empty.
fn no_points(stencil: &Stencil) -> String {
    let empty: BTreeSet<String> = stencil
        .dims
        .values()
        .map(|d| format!("{} <= {}", host_extent(stencil, d.extent), d.low + d.high))
        .collect();
    empty.into_iter().collect::<Vec<_>>().join(" || ")
}
