//! When and how the kernels are launched, as host code.
//!
//! `NAME_launch` takes the place of `NAME<<<…>>>`. It works out which points the launch that was asked for computes
//! (what its threads cover, cut off by the guards of the kernel), launches a generated kernel for just these where its
//! conditions hold, and the kernel as written everywhere else: arrays that overlap, numbers beyond 32 bits, blocks of
//! another shape than the text presumes.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use warpwright_cudac::Scalar;
use warpwright_cudac::affine::{Poly, Symbol};
use warpwright_cudac::launcher::{self, Attempt};
use warpwright_cudac::names::free as free_name;

use super::body::end_names;
use super::{Condition, Entry, Generated, Parts, extents};
use crate::bounds;
use crate::ir::{Array, Flat, Kernel, ParameterKind};

/// What the parts of a generated text are called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Names(launcher::Names);

/// Why a kernel cannot be launched in another way.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoLauncher {
    /// Which elements are touched is not known, so it cannot be checked that arrays are apart.
    #[error(
        "which elements of `{0}` are touched is not known, and it may overlap an array that is stored to"
    )]
    Overlap(String),
    /// A number of the kernel has no bound that could be checked.
    #[error("how large a number of the kernel becomes is not known")]
    Range,
}

/// What the names of a version go on with, behind the kernel's: a suffix of each family.
const PARTS: [&str; 6] = ["_tuned", "_team", "_across", "_fours", "_prefix", "_totals"];

const AXES: [&str; 3] = ["x", "y", "z"];

impl Names {
    /// The names for a kernel in a text that has these words.
    pub fn new(kernel: &str, words: &BTreeSet<String>) -> Names {
        Names(launcher::Names::new(kernel, words, &PARTS))
    }

    /// The function that a program calls in place of the kernel.
    pub fn launch(&self) -> String {
        self.0.launch()
    }

    /// A kernel.
    pub fn entry(&self, entry: &Entry) -> String {
        self.0.of(&entry.suffix)
    }

    /// The kernel that runs before one.
    pub fn first(&self, entry: &Entry) -> String {
        self.0.of(&format!("{}_first", entry.suffix))
    }

    /// The function that launches a generated kernel where it can.
    pub fn attempt(&self) -> String {
        self.0.attempt()
    }
}

/// The kernels, and the functions that launch them.
pub struct Launcher {
    /// The kernels, and the function that launches one of them where it can.
    pub text: String,
    /// The function that takes the place of a launch.
    pub launch: String,
    /// That for launches by `cudaLaunchKernel`.
    pub by_pointers: String,
}

/// The kernels, and the functions that launch them.
///
/// # Errors
/// See [`NoLauncher`].
pub fn launcher(
    kernel: &Kernel,
    generated: &Generated,
    names: &Names,
) -> Result<Launcher, NoLauncher> {
    let mut text = String::new();
    for note in &generated.notes {
        let _ = writeln!(text, "// {note}");
    }
    let ends = end_names(kernel);
    for entry in &generated.entries {
        let bounds = bounds_of(entry.threads, entry.resident);
        let mut declared: Vec<String> = kernel.parameters.iter().map(of_entry).collect();
        declared.extend(
            ends.iter()
                .take(kernel.dims.len())
                .map(|end| format!("int {end}")),
        );
        if let Some(parts) = &entry.parts {
            declared.extend(
                parts
                    .values
                    .iter()
                    .map(|(ty, name)| format!("{ty} *{name}")),
            );
            declared.push(format!("int {}", parts.count));
            let _ = writeln!(
                text,
                "__global__ void __launch_bounds__({})\n{}({})\n{{\n{}}}\n",
                bounds_of(parts.threads, parts.resident),
                names.first(entry),
                declared.join(", "),
                parts.body
            );
        }
        let _ = writeln!(
            text,
            "__global__ void __launch_bounds__({bounds})\n{}({})\n{{\n{}}}\n",
            names.entry(entry),
            declared.join(", "),
            entry.body
        );
    }
    text += &attempt(kernel, generated, names)?;
    Ok(Launcher {
        text,
        launch: launch(kernel, names),
        by_pointers: by_pointers(kernel, names),
    })
}

/// What a kernel says about its blocks.
fn bounds_of(threads: u32, resident: u32) -> String {
    match resident {
        0 => threads.to_string(),
        resident => format!("{threads}, {resident}"),
    }
}

/// A parameter of a generated kernel: sizes are `int`.
fn of_entry(parameter: &crate::ir::Parameter) -> String {
    match parameter.kind {
        ParameterKind::Size(..) => format!("int {}", parameter.name),
        _ => parameter.declared.clone(),
    }
}

/// A polynomial of [`bounds`] as host code; each symbol is converted to `ty`.
fn host(kernel: &Kernel, ends: &[String; 4], poly: &Poly, ty: &str) -> String {
    poly.text(|symbol| {
        let name = match symbol {
            Symbol::Size(size) => kernel.size_name(size).to_owned(),
            Symbol::Unknown(dim) => ends[dim.min(3)].clone(),
            _ => String::new(),
        };
        format!("({ty}){name}")
    })
}

/// What the text presumes of a launch along an axis.
enum Shape {
    /// One thread of one block.
    Place,
    /// One block.
    Block,
    /// So many threads in a block.
    Threads(i64),
}

/// What the text presumes of a launch, by axis.
fn shape(kernel: &Kernel) -> Vec<(usize, Shape)> {
    let mut shape = Vec::new();
    for axis in 0..AXES.len() {
        let dim = kernel.dims.iter().find(|d| d.axis() == axis);
        match dim.map(|d| d.symbol) {
            _ if kernel.flat.is_some() => {
                // All its places are along x.
                if axis > 0 {
                    shape.push((axis, Shape::Place));
                }
            }
            None => shape.push((axis, Shape::Place)),
            Some(Symbol::BlockIdx(_)) => shape.push((axis, Shape::Threads(1))),
            Some(_) => {}
        }
        if kernel.single[axis] {
            shape.push((axis, Shape::Block));
        }
        if let Some(threads) = kernel.block[axis] {
            shape.push((axis, Shape::Threads(threads)));
        }
    }
    shape
}

/// Why the host's function leaves a launch to the kernel as written, by its shape.
pub fn shape_refused(kernel: &Kernel, grid: [u32; 3], block: [u32; 3]) -> Option<String> {
    let mut why = Vec::new();
    for (axis, wanted) in shape(kernel) {
        let (name, blocks, threads) = (AXES[axis], grid[axis], block[axis]);
        match wanted {
            Shape::Place if u64::from(blocks) * u64::from(threads) != 1 => why.push(format!(
                "{blocks} blocks of {threads} threads along {name}, a rewrite takes one of one"
            )),
            Shape::Block if blocks != 1 => {
                why.push(format!("{blocks} blocks along {name}, a rewrite takes one"))
            }
            Shape::Threads(wanted) if i64::from(threads) != wanted => why.push(format!(
                "{threads} threads in a block along {name}, a rewrite takes {wanted}"
            )),
            _ => {}
        }
    }
    (!why.is_empty()).then(|| why.join("; "))
}

fn attempt(kernel: &Kernel, generated: &Generated, names: &Names) -> Result<String, NoLauncher> {
    let [grid, block, _, stream, _] = &names.0.free;
    let ends = end_names(kernel);
    let mut declared = vec![format!("dim3 {grid}"), format!("dim3 {block}")];
    declared.extend(kernel.parameters.iter().map(|p| p.declared.clone()));
    let mut text = Attempt::new(&names.attempt(), &declared, stream);
    let shape = shape(kernel).into_iter().map(|(axis, wanted)| {
        let name = AXES[axis];
        match wanted {
            Shape::Place => format!("{grid}.{name} * {block}.{name} != 1"),
            Shape::Block => format!("{grid}.{name} != 1"),
            Shape::Threads(threads) => format!("{block}.{name} != {threads}"),
        }
    });
    text.unless(&shape.collect::<Vec<_>>());
    let mut sizes = Vec::new();
    for parameter in &kernel.parameters {
        if let ParameterKind::Size(_, scalar) = parameter.kind {
            let name = &parameter.name;
            match scalar {
                Scalar::Integer(32, true) => sizes.push(format!("{name} < 0")),
                Scalar::Integer(_, false) => sizes.push(format!("{name} > 2147483647u")),
                _ => sizes.push(format!("{name} < 0 || {name} > 2147483647")),
            }
        }
    }
    text.unless(&sizes);
    text.line("// The points that the launch computes.");
    let mut empty = Vec::new();
    if let Some(flat) = &kernel.flat {
        flat_ends(kernel, flat, &ends, names, &mut text);
    }
    for (dim, end) in kernel.dims.iter().zip(&ends) {
        let name = AXES[dim.axis().min(2)];
        let threads = match dim.symbol {
            Symbol::BlockIdx(_) => format!("(long long){grid}.{name}"),
            _ => format!("(long long){grid}.{name} * {block}.{name}"),
        };
        if kernel.flat.is_none() {
            if dim.whole {
                // Its steps are counted in 32 bits.
                text.unless(&[format!("{threads} > 2147483647")]);
            }
            let most = if dim.whole { "2147483647" } else { &*threads };
            text.line(&format!("long long {end} = {most};"));
            for high in &dim.high {
                let high = host(kernel, &ends, high, "long long");
                text.line(&format!("if ({end} > {high}) {end} = {high};"));
            }
        }
        empty.push(format!("{end} <= 0"));
        // Blocks count their points beyond the end as well.
        empty.push(format!("{end} > 2147352576"));
        for low in &dim.low {
            empty.push(format!(
                "{end} <= {}",
                host(kernel, &ends, low, "long long")
            ));
        }
    }
    text.unless(&empty);
    let rows: Vec<String> = bounds::assumptions(kernel)
        .iter()
        .map(|poly| format!("{} < 0", host(kernel, &ends, poly, "long long")))
        .collect();
    text.unless(&rows);
    let ranges = ranges(kernel)?;
    let ranges: Vec<String> = ranges
        .iter()
        .map(|(poly, limit)| match limit {
            Limit::Most => format!("{} > 2147483647.0", host(kernel, &ends, poly, "double")),
            Limit::Least(least) => format!("{} < {least}.0", host(kernel, &ends, poly, "double")),
        })
        .collect();
    if !ranges.is_empty() {
        text.line("// Places and sizes are counted in 32 bits.");
        text.unless(&ranges);
    }
    overlaps(kernel, generated.shares, &ends, &mut text)?;
    let mut passed: Vec<String> = kernel
        .parameters
        .iter()
        .map(|p| match p.kind {
            ParameterKind::Size(_, Scalar::Integer(32, true)) => p.name.clone(),
            ParameterKind::Size(..) => format!("(int){}", p.name),
            _ => p.name.clone(),
        })
        .collect();
    passed.extend(
        ends.iter()
            .take(kernel.dims.len())
            .map(|end| format!("(int){end}")),
    );
    for entry in &generated.entries {
        let conditions: Vec<String> = entry
            .conditions
            .iter()
            .map(|c| condition(kernel, &ends, c))
            .collect();
        text.open(&conditions, " &&\n        ");
        let tile = |dim: usize| entry.tile.get(dim).copied().unwrap_or(1);
        let blocks = |dim: usize| match ends.get(dim).filter(|_| dim < kernel.dims.len()) {
            None => "1".to_owned(),
            Some(end) => match tile(dim) {
                1 => end.clone(),
                tile => format!("({end} + {}) / {tile}", tile - 1),
            },
        };
        let [x, y, mut z] = [0, 1, 2].map(blocks);
        if kernel.dims.len() > 3 {
            z = format!("{z} * {}", blocks(3));
        }
        for along in [&y, &z] {
            if *along != "1" {
                text.fits(along);
            }
        }
        let name = names.entry(entry);
        if entry.shared_bytes > 0 {
            text.shared(&name, entry.shared_bytes);
        }
        if let Some(parts) = &entry.parts {
            let passed = passed.join(", ");
            text.push(&in_parts(kernel, &ends, entry, parts, names, &x, &passed));
            continue;
        }
        let how = format!("{}, {}, {stream}", entry.threads, entry.shared_bytes);
        text.launch(&name, &[x, y, z], &how, &passed.join(", "));
        text.close();
    }
    let last = generated.entries.last();
    let is_sure = last.is_some_and(|entry| entry.conditions.is_empty());
    Ok(text.end(is_sure) + "\n")
}

/// The ends of dimensions that are one place of the launch: what the launch covers must be whole rows of them, or all of
/// them.
fn flat_ends(kernel: &Kernel, flat: &Flat, ends: &[String; 4], names: &Names, text: &mut Attempt) {
    let [grid, block, ..] = &names.0.free;
    let Some(number) = kernel.dims.len().checked_sub(1) else {
        return;
    };
    let last = &kernel.dims[number];
    let threads = format!("(long long){grid}.x * {block}.x");
    let of = |poly: &Poly| host(kernel, ends, poly, "long long");
    text.unless(&[format!("{threads} > 2147483647")]);
    let most = if last.whole { "2147483647" } else { &*threads };
    let end = &ends[number.min(3)];
    text.line(&format!("long long {end} = {most};"));
    for high in &flat.high {
        let high = of(high);
        text.line(&format!("if ({end} > {high}) {end} = {high};"));
    }
    let is_end = |name: &str| ends.iter().any(|end| end == name);
    let rest = free_name("rest", |name| kernel.has_parameter(name) || is_end(name));
    text.line(&format!("long long {rest} = 0;"));
    for (dim, (radix, own)) in flat.radices.iter().zip(ends).enumerate() {
        let radix = of(radix);
        text.unless(&[format!("{radix} <= 0")]);
        text.line(&format!(
            "{rest} += {end} % ({radix});\n    {end} /= {radix};\n    long long {own} = {radix};"
        ));
        for high in &kernel.dims[dim].high {
            let high = of(high);
            if high != radix {
                text.line(&format!("if ({own} > {high}) {own} = {high};"));
            }
        }
    }
    for high in &last.high {
        let high = of(high);
        text.line(&format!(
            "if ({end} >= {high}) {{\n        {end} = {high};\n        {rest} = 0;\n    }}"
        ));
    }
    text.unless(&[format!("{rest} != 0")]);
}

/// The launch of two kernels, inside the conditions of the second; what follows is for few turns or no memory.
fn in_parts(
    kernel: &Kernel,
    ends: &[String; 4],
    entry: &Entry,
    parts: &Parts,
    names: &Names,
    blocks: &str,
    passed: &str,
) -> String {
    let stream = &names.0.free[3];
    let words = ["values", "device", "major", "early", "config"];
    let [values, device, major, early, config] =
        words.map(|word| free_name(word, |name| kernel.has_parameter(name)));
    let (end, count) = (&ends[0], &parts.count);
    let turns = host(kernel, ends, &parts.turns, "long long");
    let (first, second) = (names.first(entry), names.entry(entry));
    let pointer = |(at, (ty, _)): (usize, &(String, String))| match at {
        0 => format!("({ty} *){values}"),
        at => format!("({ty} *)((char *){values} + {count} * {end} * {})", 8 * at),
    };
    let pointers: Vec<String> = parts.values.iter().enumerate().map(pointer).collect();
    let rest = format!("{passed}, {}, (int){count}", pointers.join(", "));
    let tile = i64::from(parts.tile);
    let across = if tile == 1 {
        end.clone()
    } else {
        format!("({end} + {}) / {tile}", tile - 1)
    };
    // The second one reads what the first one stored, so it waits in the stream, or is told to.
    let launch = match parts.early {
        false => format!(
            "                {second}<<<dim3((unsigned)({blocks})), {}, 0, {stream}>>>(\n                    {rest});\n",
            entry.threads
        ),
        true => format!(
            "                // The second one is launched while the first one runs, and waits for it.\n                int \
             {device} = 0, {major} = 0;\n                cudaGetDevice(&{device});\n                \
             cudaDeviceGetAttribute(&{major}, cudaDevAttrComputeCapabilityMajor, {device});\n                \
             cudaLaunchAttribute {early} = {{}};\n                {early}.id = \
             cudaLaunchAttributeProgrammaticStreamSerialization;\n                \
             {early}.val.programmaticStreamSerializationAllowed = 1;\n                cudaLaunchConfig_t {config} = \
             {{}};\n                {config}.gridDim = dim3((unsigned)({blocks}));\n                {config}.blockDim = \
             dim3({own});\n                {config}.stream = {stream};\n                {config}.attrs = \
             &{early};\n                {config}.numAttrs = {major} >= 9;\n                cudaLaunchKernelEx(&{config}, \
             {second},\n                    {rest});\n",
            own = entry.threads,
        ),
    };
    format!(
        "        // Parts of the turns, so that there are {wanted} blocks.\n        long long {count} = {wanted} / \
         ({across});\n        if ({count} > ({turns}) / {least}) {count} = ({turns}) / {least};\n        if ({count} > \
         65535) {count} = 65535;\n        void *{values} = 0;\n        if ({count} > 1) {{\n            if \
         (cudaMallocAsync(&{values}, {count} * {end} * {bytes}, {stream}) == cudaSuccess) {{\n                \
         {first}<<<dim3((unsigned)({across}), (unsigned){count}), {threads}, 0, {stream}>>>(\n                    \
         {rest});\n{launch}                const cudaError_t status = cudaPeekAtLastError();\n                \
         cudaFreeAsync({values}, {stream});\n                return status;\n            }}\n            \
         cudaGetLastError();\n        }}\n    }}\n",
        wanted = parts.blocks,
        least = parts.least,
        bytes = 8 * parts.values.len(),
        threads = parts.threads,
    )
}

fn condition(kernel: &Kernel, ends: &[String; 4], condition: &Condition) -> String {
    match condition {
        Condition::Multiple(poly, by) => {
            format!("({}) % {by} == 0", host(kernel, ends, poly, "long long"))
        }
        Condition::Aligned(array, bytes) => {
            format!("(size_t){} % {bytes} == 0", kernel.arrays[*array].name)
        }
        Condition::Is(size, value) => format!("{} == {value}", kernel.size_name(*size)),
        Condition::Most(poly, most) => {
            format!("{} <= {most}", host(kernel, ends, poly, "long long"))
        }
    }
}

/// What a polynomial must not pass.
pub(crate) enum Limit {
    /// The largest `int`.
    Most,
    /// This number.
    Least(i64),
}

/// All that must be in range.
pub(crate) fn ranges(kernel: &Kernel) -> Result<Vec<(Poly, Limit)>, NoLauncher> {
    let mut most: Vec<Poly> = Vec::new();
    let mut all = Vec::new();
    let mut values: Vec<(Poly, bool)> = kernel.ranges.clone();
    values.extend(
        kernel
            .accesses
            .iter()
            .filter_map(|a| a.affine())
            .map(|p| (p.clone(), false)),
    );
    let mut least: Vec<(Poly, bool)> = Vec::new();
    for (poly, unsigned) in values {
        let high = bounds::largest(kernel, &poly).ok_or(NoLauncher::Range)?;
        if !most.contains(&high) {
            most.push(high);
        }
        // A sum of products that are not negative is not negative.
        if poly.terms().any(|(_, times)| times < 0) {
            let low = bounds::smallest(kernel, &poly).ok_or(NoLauncher::Range)?;
            if !least.contains(&(low.clone(), unsigned)) {
                least.push((low, unsigned));
            }
        }
    }
    // What is nowhere above another one needs no check of its own.
    let below = |a: &Poly, b: &Poly| {
        let apart = b.plus(a, -1);
        a != b && apart.is_some_and(|apart| apart.terms().all(|(_, times)| times > 0))
    };
    for poly in &most {
        if poly.as_constant().is_none_or(|v| v > i64::from(i32::MAX))
            && !most.iter().any(|other| below(poly, other))
        {
            all.push((poly.clone(), Limit::Most));
        }
    }
    for (poly, unsigned) in least {
        let limit = if unsigned { 0 } else { i64::from(i32::MIN) };
        if poly.as_constant().is_none_or(|v| v < limit) {
            all.push((poly, Limit::Least(limit)));
        }
    }
    Ok(all)
}

/// Arrays are taken to be apart.
///
/// Where it is not known which elements of an array are loaded, they may be some that are stored to. Points that load
/// what others store race already in the kernel as written. A point that stores over its own operands does so after it
/// has loaded them, in the kernel as written and in every generated one in which a thread does a point's statements in
/// their order.
fn overlaps(
    kernel: &Kernel,
    shares: bool,
    ends: &[String; 4],
    text: &mut Attempt,
) -> Result<(), NoLauncher> {
    let extents = extents(kernel);
    let ordered = |at: usize| !shares && kernel.arrays[at].early && extents[at].is_none();
    let restricted = |at: usize| {
        let parameter = kernel.arrays[at]
            .parameter
            .map(|p| &kernel.parameters[p].declared);
        parameter.is_some_and(|declared| declared.contains("__restrict__"))
    };
    let mut pairs = Vec::new();
    for (a, first) in kernel.arrays.iter().enumerate() {
        for (b, second) in kernel.arrays.iter().enumerate().skip(a + 1) {
            let both = first.parameter.is_some() && second.parameter.is_some();
            let stored = first.stored || second.stored;
            if both
                && stored
                && !(restricted(a) && restricted(b))
                && !(ordered(a) || ordered(b))
                && touched(&extents, a)
                && touched(&extents, b)
            {
                pairs.push((a, b));
            }
        }
    }
    if pairs.is_empty() {
        return Ok(());
    }
    text.line("// Arrays that are stored to must be apart from the others.");
    let named = |array: &Array, word: &str| {
        let name = format!("{}_{word}", array.name.replace('.', "_"));
        free_name(name, |name| kernel.has_parameter(name))
    };
    let wanted: BTreeSet<usize> = pairs.iter().flat_map(|(a, b)| [*a, *b]).collect();
    for at in wanted {
        let array = &kernel.arrays[at];
        let unknown = || NoLauncher::Overlap(array.name.clone());
        let (lows, highs) = extents[at].as_ref().ok_or_else(unknown)?;
        for (word, sign, polys) in [("first", "<", lows), ("last", ">", highs)] {
            let name = named(array, word);
            let texts: Vec<String> = polys
                .iter()
                .map(|p| host(kernel, ends, p, "long long"))
                .collect();
            let Some((one, more)) = texts.split_first() else {
                continue;
            };
            text.line(&format!("long long {name} = {one};"));
            for other in more {
                text.line(&format!("if ({other} {sign} {name}) {name} = {other};"));
            }
        }
    }
    let place = |at: usize, word: &str| {
        let array = &kernel.arrays[at];
        format!("(const char*)({} + {})", array.name, named(array, word))
    };
    let texts: Vec<String> = pairs
        .iter()
        .map(|&(a, b)| {
            let bytes = |at: usize| match kernel.arrays[at].bytes {
                0 => format!("sizeof(*{})", kernel.arrays[at].name),
                bytes => bytes.to_string(),
            };
            let (m, n) = (bytes(a), bytes(b));
            format!(
                "({} < {} + {n} && {} < {} + {m})",
                place(a, "first"),
                place(b, "last"),
                place(b, "first"),
                place(a, "last")
            )
        })
        .collect();
    text.unless(&texts);
    Ok(())
}

fn touched(extents: &[Option<(Vec<Poly>, Vec<Poly>)>], at: usize) -> bool {
    extents[at]
        .as_ref()
        .is_none_or(|(lows, _)| !lows.is_empty())
}

fn launch(kernel: &Kernel, names: &Names) -> String {
    let [grid, block, shared, stream, _] = &names.0.free;
    let mut declared = format!("dim3 {grid}, dim3 {block}, size_t {shared}, cudaStream_t {stream}");
    let (mut passed, mut own) = (String::new(), Vec::new());
    for parameter in &kernel.parameters {
        let _ = write!(declared, ", {}", parameter.written);
        // Another instance is not computed so, but compiled.
        let _ = match kernel.template {
            Some(_) => write!(passed, "({}){}, ", parameter.ty(), parameter.name),
            None => write!(passed, "{}, ", parameter.name),
        };
        own.push(&*parameter.name);
    }
    let (same, head, arguments, other) = of_template(kernel, names);
    let name = format!("{}{arguments}", kernel.name);
    format!(
        "{same}// In place of {name}<<<{grid}, {block}, {shared}, {stream}>>>(…): what was generated where it is for this \
         launch, else the kernel as written.\n{head}static inline void {}({declared})\n{{\n    if ({other}{}({grid}, {block}, \
         {passed}{stream}) == cudaErrorNotSupported)\n        {name}<<<{grid}, {block}, {shared}, \
         {stream}>>>({});\n}}\n",
        names.launch(),
        names.attempt(),
        own.join(", "),
    )
}

/// For a template: what compares types, `template <…>`, `<T, N>`, and the condition that it is another instance.
fn of_template(kernel: &Kernel, names: &Names) -> (String, String, String, String) {
    let Some(template) = &kernel.template else {
        return Default::default();
    };
    let same = format!("{}_same", names.launch());
    let is = |(is_type, name, what): &(bool, String, String)| match is_type {
        true => format!("!{same}<{name}, {what}>::value || "),
        false => format!("{name} != ({what}) || "),
    };
    let own = template.arguments.iter().map(|(_, name, _)| &**name);
    let own: Vec<&str> = own.collect();
    (
        format!(
            "template <typename A, typename B> struct {same} {{ static const bool value = false; }};\ntemplate <typename \
             A> struct {same}<A, A> {{ static const bool value = true; }};\n"
        ),
        format!("{}\n", template.head),
        format!("<{}>", own.join(", ")),
        template.arguments.iter().map(is).collect(),
    )
}

fn by_pointers(kernel: &Kernel, names: &Names) -> String {
    let [grid, block, shared, stream, arguments] = &names.0.free;
    let mut passed = String::new();
    for (at, parameter) in kernel.parameters.iter().enumerate() {
        let _ = write!(
            passed,
            "*(std::remove_reference<{}>::type*){arguments}[{at}], ",
            parameter.ty()
        );
    }
    let name = &kernel.name;
    format!(
        "\n// In place of cudaLaunchKernel((void*){name}, …).\nstatic inline cudaError_t {}_pointers(\n    dim3 {grid}, \
         dim3 {block}, void** {arguments}, size_t {shared}, cudaStream_t {stream})\n{{\n    const cudaError_t status = \
         {}({grid}, {block}, {passed}{stream});\n    if (status != cudaErrorNotSupported) return status;\n    return \
         cudaLaunchKernel((const void*){name}, {grid}, {block}, {arguments}, {shared}, {stream});\n}}\n",
        names.launch(),
        names.attempt(),
    )
}
