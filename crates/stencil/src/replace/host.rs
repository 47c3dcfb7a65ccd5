//! The host functions of a kernel that was replaced.

use std::fmt::Write as _;

use super::{Refusal, Subject};
use crate::extract::record::path_of;
use crate::extract::{self, Along};
use crate::ir::Extent;
use crate::sweep::{Names, Sweep, host_extent, parameters, try_function};
use warpwright_cudac::ast::Type;
use warpwright_cudac::replace::tokens;

/// What the host functions are made of.
pub(super) struct Host<'a> {
    subject: &'a Subject<'a>,
    names: &'a Names,
    /// By parameter of the sweep: where its value comes from.
    from: Vec<From>,
    /// Conditions on `grid` and `block` under which the launch computes all points.
    covers: Vec<String>,
    /// What the kernel is an instance of: by parameter of the template, whether it is a type, its name, and what it is.
    instance: Vec<(bool, String, String)>,
}

/// Where a parameter of the sweep gets its value.
#[derive(Clone, Debug, PartialEq, Eq)]
enum From {
    /// A parameter of the kernel, by number, or a member of it: `.nx`.
    Parameter(usize, String),
    /// The number of blocks along an axis.
    Grid(u8),
}

/// Axes of a launch.
const AXES: [&str; 3] = ["x", "y", "z"];

impl<'a> Host<'a> {
    pub(super) fn new(subject: &'a Subject<'a>, names: &'a Names) -> Result<Self, Refusal> {
        let own = &subject.function.parameters;
        let mut from = Vec::new();
        let stencil = subject.stencil;
        for parameter in parameters(stencil) {
            let by_grid = stencil
                .from_grid
                .iter()
                .find(|(size, _)| stencil.parameters[*size] == parameter.name);
            if let Some((_, axis)) = by_grid {
                from.push(From::Grid(*axis));
                continue;
            }
            let mut found = own.iter().enumerate().filter_map(|(at, p)| {
                let path = path_of(subject.file, p, &parameter.name)?;
                Some(From::Parameter(at, path))
            });
            from.push(found.next().ok_or(Refusal::Parameters)?);
        }
        let mut host = Host {
            subject,
            names,
            from,
            covers: Vec::new(),
            instance: extract::instance(subject.file, subject.header)
                .map_err(|_| Refusal::Template)?,
        };
        host.covers = host.covered()?;
        Ok(host)
    }

    fn covered(&self) -> Result<Vec<String>, Refusal> {
        let [grid, block, ..] = self.names.free();
        let mut conditions = Vec::new();
        let mut used = [false; 3];
        let stencil = self.subject.stencil;
        for (dim, along) in stencil.all_points().values().zip(self.subject.mapping) {
            let (axis, shift, by_block) = match *along {
                Along::Threads { axis, shift } => (usize::from(axis), shift, false),
                Along::Blocks { axis, shift } => (usize::from(axis), shift, true),
                Along::Loop => continue,
            };
            let name = AXES.get(axis).ok_or(Refusal::Geometry)?;
            used[axis] = true;
            let last = Extent {
                add: dim.extent.add - dim.high - shift,
                ..dim.extent
            };
            let last = host_extent(stencil, last);
            let places = match (by_block, stencil.computing[axis]) {
                (true, _) => format!("{grid}.{name}"),
                (false, None) => format!("{grid}.{name} * {block}.{name}"),
                (false, Some((first, count))) => format!("{grid}.{name} * {count} + {first}"),
            };
            // A loop over the grid visits all points, however few threads there are.
            if !self.strides(name) {
                conditions.push(format!("(long long){places} >= {last}"));
            }
            if by_block {
                conditions.push(format!("{block}.{name} == 1"));
            }
        }
        for (axis, name) in AXES.iter().enumerate() {
            if let Some(threads) = stencil.block[axis] {
                conditions.push(format!("{block}.{name} == {threads}"));
            }
            if !used[axis] {
                conditions.push(match stencil.block[axis] {
                    Some(_) => format!("{grid}.{name} == 1"),
                    None => format!("{grid}.{name} * {block}.{name} == 1"),
                });
            }
        }
        Ok(conditions)
    }

    /// Does the kernel look at `gridDim` of an axis?
    fn strides(&self, axis: &str) -> bool {
        let text = &self.subject.file.source.text[self.subject.header.span.clone()];
        let tokens = tokens(text);
        let word = |at: usize| tokens.get(at).map_or("", |t| &text[t.at.clone()]);
        (0..tokens.len())
            .any(|at| word(at) == "gridDim" && word(at + 1) == "." && word(at + 2) == axis)
    }

    /// The function that launches the sweep if it is for this launch.
    pub(super) fn attempt(&self, sweep: &Sweep) -> String {
        let [grid, block, .., stream, _] = self.names.free();
        let asked = [(grid.as_str(), block.as_str())];
        try_function(
            self.subject.stencil,
            sweep,
            self.names,
            stream,
            asked.first().map(|(g, b)| (*g, *b, &self.covers[..])),
        )
    }

    /// The arguments of that function, from the kernel's parameters as these texts give them.
    fn passed(&self, text: impl Fn(usize) -> String) -> String {
        let [grid, block, .., stream, _] = self.names.free();
        let mut passed = vec![grid.clone(), block.clone()];
        for (parameter, from) in parameters(self.subject.stencil).iter().zip(&self.from) {
            let value = match from {
                From::Parameter(at, path) => format!("{}{path}", text(*at)),
                From::Grid(axis) => format!("{grid}.{}", AXES[usize::from(*axis)]),
            };
            passed.push(format!("({}){value}", parameter.ty));
        }
        passed.push(stream.clone());
        passed.join(", ")
    }

    /// Sizes that `int` does not hold are for the kernel as written.
    fn fits(&self, text: impl Fn(usize) -> String) -> String {
        let list = parameters(self.subject.stencil);
        let sizes = list.iter().zip(&self.from).filter(|(p, _)| p.ty == "int");
        let fits: Vec<String> = sizes
            .filter_map(|(_, from)| match from {
                From::Parameter(at, path) => {
                    let value = format!("{}{path}", text(*at));
                    Some(format!("(long long){value} == (int){value}"))
                }
                From::Grid(_) => None,
            })
            .collect();
        match fits.is_empty() {
            true => "true".to_owned(),
            false => fits.join(" && "),
        }
    }

    /// For a template: what compares types, `template <…>`, `<T, N>`, and the condition that it is the instance with the
    /// sweep.
    fn template(&self) -> (String, String, String, String) {
        let Some(head) = &self.subject.header.head else {
            return Default::default();
        };
        let device = self.names.device();
        let head = self.subject.file.source.text[head.clone()].trim();
        let mut same = String::new();
        if self.instance.iter().any(|(is_type, ..)| *is_type) {
            same = format!(
                "namespace {device} {{\ntemplate <typename A, typename B> struct same {{ static const bool value = \
                 false; }};\ntemplate <typename A> struct same<A, A> {{ static const bool value = true; }};\n}}\n"
            );
        }
        let names: Vec<&str> = self.instance.iter().map(|(_, name, _)| &**name).collect();
        let is = self
            .instance
            .iter()
            .map(|(is_type, name, what)| match is_type {
                true => format!("{device}::same<{name}, {what}>::value && "),
                false => format!("{name} == ({what}) && "),
            });
        (
            same,
            format!("{head}\n"),
            format!("<{}>", names.join(", ")),
            is.collect(),
        )
    }

    /// `NAME_launch(grid, block, shared, stream, …)`
    pub(super) fn launch(&self) -> String {
        let [grid, block, shared, stream, _] = self.names.free();
        let source = &self.subject.file.source.text;
        let own = &self.subject.function.parameters;
        let mut declared =
            format!("dim3 {grid}, dim3 {block}, size_t {shared}, cudaStream_t {stream}");
        for parameter in own {
            let _ = write!(declared, ", {}", &source[parameter.span.clone()]);
        }
        let name = |at: usize| own[at].name.text.clone();
        let names: Vec<&str> = own.iter().map(|p| &*p.name.text).collect();
        let (same, head, template, is_instance) = self.template();
        let kernel = format!("{}{template}", self.subject.header.name.text);
        format!(
            "{same}// In place of {kernel}<<<{grid}, {block}, {shared}, {stream}>>>(…): the sweep where it is for this \
             launch, else the kernel as written.\n{head}static inline void {}({declared})\n{{\n    if ({is_instance}{} &&\n        \
             {}({}) != cudaErrorNotSupported)\n        return;\n    {kernel}<<<{grid}, {block}, {shared}, \
             {stream}>>>({});\n}}\n",
            self.names.launch(),
            self.fits(name),
            self.names.attempt(),
            self.passed(name),
            names.join(", ")
        )
    }

    /// `NAME_launch_pointers(grid, block, arguments, shared, stream)`, as `cudaLaunchKernel` has them.
    pub(super) fn launch_by_pointers(&self) -> String {
        let [grid, block, shared, stream, arguments] = self.names.free();
        let own = &self.subject.function.parameters;
        let value = |at: usize| match named(&own[at].ty) {
            Some(ty) => format!("*(const {ty}*){arguments}[{at}]"),
            None => format!("*(void**){arguments}[{at}]"),
        };
        let value = |at: usize| format!("({})", value(at));
        let kernel = &self.subject.header.name.text;
        format!(
            "\n// In place of cudaLaunchKernel((void*){kernel}, …).\nstatic inline cudaError_t {}_pointers(\n    dim3 \
             {grid}, dim3 {block}, void** {arguments}, size_t {shared}, cudaStream_t {stream})\n{{\n    if ({}) {{\n        \
             const cudaError_t status = {}({});\n        if (status != cudaErrorNotSupported) return status;\n    \
             }}\n    return cudaLaunchKernel((const void*){kernel}, {grid}, {block}, {arguments}, {shared}, {stream});\n}}\n",
            self.names.launch(),
            self.fits(value),
            self.names.attempt(),
            self.passed(value),
        )
    }
}

/// The name of a type that is passed by value.
fn named(ty: &Type) -> Option<&str> {
    match ty {
        Type::Named(name) => Some(name),
        Type::Const(inner) => named(inner),
        Type::Pointer(..) | Type::Array(..) => None,
    }
}
