//! One random kernel. Its text, and all that its text contains, follows from the state of the generator.

use std::fmt::Write as _;

use warpwright_fuzzgen::Rng;

use crate::edges::{self, Edge};
use crate::pads;
use crate::pixels;
use crate::shapes::Walk;

/// A kernel in CUDA C.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// Its name.
    pub name: String,
    /// Its text, macros included; all names at file scope end in the kernel's.
    pub text: String,
    /// Of a template with the parameter `T`: its only instance.
    pub instance: Option<&'static str>,
}

/// How elements are addressed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    /// `u[(k * ny + j) * nx + i]`, in one of three spellings.
    Linear(usize),
    /// `u[at + dy * nx + dx]`
    Base,
    /// `U(k, j, i)`
    Macro,
    /// `u[at_of(k, j, i, ny, nx)]`, a function of the file.
    Function,
    /// `u[k][j][i]`; the type of the parameter says so, or a cast.
    Nested(bool),
}

/// A dimension: its iterator, its size, and the offsets of its reads.
pub(crate) struct Dim {
    pub(crate) iterator: &'static str,
    pub(crate) size: String,
    /// The size is a number of the file.
    constant: Option<i64>,
    /// Offsets of reads.
    pub(crate) offsets: [i64; 2],
    /// Cells that are not computed.
    pub(crate) margins: [i64; 2],
    /// The axis of the threads; `None`: a loop.
    axis: Option<char>,
    /// The place of the thread is already that of the first point.
    pub(crate) shifted: bool,
    /// What indices beyond its ends mean.
    pub(crate) edge: Option<Edge>,
    /// Neighbours beyond its ends are left out, or something stands for them.
    pub(crate) padded: bool,
}

pub(crate) struct Writer<'a> {
    pub(crate) rng: &'a mut Rng,
    pub(crate) name: &'a str,
    double: bool,
    pub(crate) dims: Vec<Dim>,
    pub(crate) style: Style,
    walk: Walk,
    /// The length of a row, if it is not the size of the domain.
    pitch: Option<String>,
    pub(crate) inputs: Vec<String>,
    outputs: Vec<String>,
    /// Arrays of one dimension, and that dimension.
    pub(crate) coefficients: Vec<(String, usize)>,
    pub(crate) scalars: Vec<String>,
    /// Lengths of an array of weights in the file's own memory.
    table: Vec<usize>,
    /// A number in the file's own memory.
    number: bool,
    /// The element is a parameter of a template.
    is_template: bool,
    /// Points outside the margins do something else.
    border: bool,
    /// Values are chosen, and stored or not, by comparisons of data.
    pub(crate) masks: bool,
    /// The type of the one argument that has all sizes as its members.
    record: Option<String>,
}

/// A random kernel of this name.
pub fn kernel(rng: &mut Rng, name: &str) -> Kernel {
    if rng.chance(20) {
        return pixels::kernel(rng, name);
    }
    let count = *rng.pick(&[1, 2, 2, 2, 3, 3, 3]);
    let constant = rng.chance(30);
    let walk = Walk::random(rng, count);
    let flat = matches!(walk, Walk::March { .. } | Walk::Tile { .. });
    let nested = rng.chance(35) && count > 1 && !flat;
    let style = match (nested, rng.below(7)) {
        (true, _) => Style::Nested(rng.chance(50)),
        _ if matches!(walk, Walk::March { .. }) => Style::Base,
        (false, 0) => Style::Base,
        (false, 1) => Style::Macro,
        (false, 6) => Style::Function,
        (false, n) => Style::Linear(n % 3),
    };
    // Arrays of arrays have lengths that are numbers.
    let constant = constant || nested;
    let all = [("k", "nz"), ("j", "ny"), ("i", "nx")];
    let mut dims = Vec::new();
    for (at, (iterator, size)) in all[3 - count..].iter().enumerate() {
        let last = at + 1 == count;
        let offsets = offsets(rng);
        let extra = usize::from(rng.chance(20));
        let margin = |reach: i64| reach.max(0) + extra as i64;
        let number = rng.range(if last { 24 } else { 13 }, if last { 71 } else { 19 }) as i64;
        let sequential = !last && count == 3 && at == 0 && rng.chance(50);
        let sequential = sequential || (!last && count == 2 && rng.chance(15));
        dims.push(Dim {
            iterator,
            size: match constant {
                true => format!("{}_{name}", size.to_uppercase()),
                false => (*size).to_owned(),
            },
            constant: constant.then_some(number),
            offsets,
            margins: [margin(-offsets[0]), margin(offsets[1])],
            axis: (!sequential).then(|| ['z', 'y', 'x'][3 - count + at]),
            shifted: rng.chance(25),
            edge: None,
            padded: false,
        });
    }
    let reached = matches!(walk, Walk::Plain | Walk::GridStride | Walk::Plane);
    if style != Style::Base && reached && rng.chance(35) {
        edges::bend(rng, &mut dims);
    } else if reached && rng.chance(35) {
        pads::pad(rng, &mut dims);
    }
    // Sizes that are members of one argument.
    let mut record = None;
    if !constant && style != Style::Function && rng.chance(15) {
        let vectors = rng.chance(40) && count > 1;
        record = Some(match vectors {
            true => rng.pick(&[&["int2", "int3"], &["uint3", "dim3"], &["int3", "int3"]])
                [count - 2]
                .to_owned(),
            false => format!("Sizes_{name}"),
        });
        let mut letters = ["x", "y", "z"][..count].to_vec();
        if rng.chance(50) {
            letters.reverse();
        }
        for (dim, letter) in dims.iter_mut().zip(letters) {
            let member = if vectors { letter } else { &*dim.size };
            dim.size = format!("g.{member}");
        }
    }
    let pitch = (style != Style::Nested(true)
        && style != Style::Nested(false)
        && count > 1
        && rng.chance(20))
    .then(|| "pitch".to_owned());
    let names = |prefix: &str, n: usize| (0..n).map(|n| format!("{prefix}{n}")).collect();
    let (inputs, outputs, scalars) = (rng.range(1, 3), rng.range(1, 2), rng.below(3));
    let table = match rng.below(10) {
        0 => vec![rng.range(1, 9)],
        1 => vec![rng.range(1, 3), rng.range(2, 4)],
        _ => Vec::new(),
    };
    // All places have a thread then.
    let plain = walk == Walk::Plain;
    let straight = dims.iter().all(|d| d.edge.is_none() && !d.padded);
    let border = plain && straight && rng.chance(25) && dims.iter().any(|d| d.margins != [0, 0]);
    for dim in dims.iter_mut().filter(|_| border) {
        dim.shifted = false;
    }
    let coefficients = match rng.chance(25) {
        true => vec![("w".to_owned(), rng.below(count))],
        false => Vec::new(),
    };
    let writer = Writer {
        double: rng.chance(60),
        name,
        dims,
        style,
        walk,
        pitch,
        inputs: names("u", inputs),
        outputs: names("v", outputs),
        coefficients,
        scalars: names("c", scalars),
        table,
        number: rng.chance(8),
        is_template: rng.chance(15),
        border,
        record,
        masks: rng.chance(25),
        rng,
    };
    writer.write()
}

/// From and to: around the point, to one side, skewed, or not at the point at all.
fn offsets(rng: &mut Rng) -> [i64; 2] {
    let reach = rng.range(0, 3) as i64;
    match rng.below(6) {
        0 | 1 => [-reach, reach],
        2 => [0, reach + 1],
        3 => [-reach - 1, 0],
        4 => [-reach, rng.range(0, 4) as i64],
        _ => {
            let from = rng.range(0, 6) as i64 - 4;
            [from, from + reach]
        }
    }
}

impl Writer<'_> {
    fn write(mut self) -> Kernel {
        let mut text = String::new();
        for dim in &self.dims {
            if let Some(number) = dim.constant {
                let name = &dim.size;
                let _ = match self.rng.below(6) {
                    0 => writeln!(text, "constexpr int {name} = {number};"),
                    1 => writeln!(text, "static const int {name}{{{number}}};"),
                    _ => writeln!(text, "#define {name} {number}"),
                };
            }
        }
        if let Some(record) = self.record.clone().filter(|r| r.starts_with("Sizes")) {
            let mut members: Vec<String> =
                self.dims.iter().map(|d| d.size[2..].to_owned()).collect();
            if self.rng.chance(50) {
                members.reverse();
            }
            let members = members.join(if self.rng.chance(50) { ", " } else { "; int " });
            let more = *self
                .rng
                .pick(&["", " double dt;", " float a; const float* list;"]);
            let _ = match self.rng.chance(50) {
                true => writeln!(text, "struct {record} {{{more} int {members}; }};"),
                false => writeln!(text, "typedef struct {{ int {members};{more} }} {record};"),
            };
        }
        self.bending(&mut text);
        if self.style == Style::Function {
            let own = self.dims.iter().map(|d| d.iterator.to_owned());
            let own: Vec<String> = own.collect();
            let all = own.iter().cloned().chain(self.lengths());
            let declared: Vec<String> = all.map(|name| format!("int {name}")).collect();
            let (declared, index) = (declared.join(", "), self.linear(&own, 0));
            let name = self.name;
            let _ = writeln!(
                text,
                "__device__ __forceinline__ int at_{name}({declared}) {{ return {index}; }}"
            );
        }
        if self.number {
            let (ty, name) = (self.plain(), self.name);
            let memory = *self.rng.pick(&["__constant__", "__device__"]);
            let _ = writeln!(text, "{memory} {ty} C_{name};");
        }
        if self.style == Style::Macro {
            for array in self.inputs.iter().chain(&self.outputs) {
                let parameters: Vec<&str> = self.dims.iter().map(|d| d.iterator).collect();
                let parts: Vec<String> = parameters.iter().map(|p| format!("({p})")).collect();
                let index = self.linear(&parts, 0);
                let name = array.to_uppercase();
                let _ = writeln!(
                    text,
                    "#define {name}_{}({}) {array}[{index}]",
                    self.name,
                    parameters.join(", ")
                );
            }
        }
        if !self.table.is_empty() {
            let memory = *self
                .rng
                .pick(&["__constant__", "static __constant__", "__device__"]);
            let lengths: String = self.table.iter().map(|n| format!("[{n}]")).collect();
            let (ty, name) = (self.plain(), self.name);
            let _ = writeln!(text, "{memory} {ty} W_{name}{lengths};");
        }
        // Another kernel stands beside it.
        let other = self.rng.chance(12).then(|| {
            let (ty, name) = (self.plain(), self.name);
            format!(
                "__global__ void sum_{name}(const {ty}* a, const {ty}* b, {ty}* c, int n)\n{{\n    \
                 int i = blockIdx.x * blockDim.x + threadIdx.x;\n    if (i < n) atomicAdd(c, a[i] * b[i]);\n}}\n"
            )
        });
        let before = self.rng.chance(50);
        text.extend(other.clone().filter(|_| before));
        let body = self.body();
        let mut parameters = self.parameters();
        // Fisher and Yates.
        for at in (1..parameters.len()).rev() {
            let other = self.rng.below(at + 1);
            parameters.swap(at, other);
        }
        let head = match (self.is_template, self.rng.below(3)) {
            (true, _) => "template <typename T>\n__global__ void",
            (false, 0) => "extern \"C\" __global__ void",
            (false, _) => "__global__ void",
        };
        let parameters = parameters.join(", ");
        let name = self.name;
        let _ = writeln!(text, "{head} {name}({parameters})\n{{\n{body}}}");
        if self.is_template {
            let ty = self.plain();
            let parameters = parameters.replace("T ", &format!("{ty} "));
            let parameters = parameters.replace("T*", &format!("{ty}*"));
            let _ = writeln!(text, "template __global__ void {name}<{ty}>({parameters});");
        }
        text.extend(other.filter(|_| !before));
        Kernel {
            name: name.to_owned(),
            text,
            instance: self.is_template.then(|| self.plain()),
        }
    }

    /// Names of the arguments that an index needs: sizes that are no numbers of the file.
    fn lengths(&self) -> Vec<String> {
        let is_constant = |at: usize| {
            let own_row = at + 1 < self.dims.len() || self.pitch.is_none();
            own_row && self.dims[at].constant.is_some()
        };
        let all = (1..self.dims.len()).filter(|at| !is_constant(*at));
        all.map(|at| self.length(at)).collect()
    }

    pub(crate) fn element(&self) -> &'static str {
        if self.is_template { "T" } else { self.plain() }
    }

    fn plain(&self) -> &'static str {
        if self.double { "double" } else { "float" }
    }

    fn parameters(&mut self) -> Vec<String> {
        let element = self.element();
        let lengths: String = self.dims[1..]
            .iter()
            .map(|d| format!("[{}]", d.size))
            .collect();
        let mut list = Vec::new();
        let typed = self.style == Style::Nested(true);
        for (names, constant) in [(&self.inputs, "const "), (&self.outputs, "")] {
            for name in names {
                let restrict = *self.rng.pick(&["", "__restrict__ "]);
                list.push(match typed {
                    true => format!("{constant}{element} (*{name}){lengths}"),
                    false => format!("{constant}{element}* {restrict}{name}"),
                });
            }
        }
        for (name, _) in &self.coefficients {
            list.push(format!("const {element}* {name}"));
        }
        for name in &self.scalars {
            list.push(format!("{element} {name}"));
        }
        let sizes = self
            .dims
            .iter()
            .filter(|d| d.constant.is_none())
            .map(|d| d.size.clone());
        let own = match &self.record {
            Some(record) => {
                let constant = *self.rng.pick(&["", "const "]);
                list.push(format!("{constant}{record} g"));
                Vec::new()
            }
            None => sizes.collect(),
        };
        for size in own.into_iter().chain(self.pitch.clone()) {
            let ty = *self.rng.pick(&["int", "int", "int", "const int"]);
            list.push(format!("{ty} {size}"));
        }
        if self.rng.chance(10) {
            list.push("int unused".to_owned());
        }
        list
    }

    fn row(&self) -> String {
        let last = self.dims.last().map_or("", |d| &d.size).to_owned();
        self.pitch.clone().unwrap_or(last)
    }

    /// The length of a dimension of the arrays.
    pub(crate) fn length(&self, at: usize) -> String {
        match at + 1 == self.dims.len() {
            true => self.row(),
            false => self.dims[at].size.clone(),
        }
    }

    /// One subscript from several.
    pub(crate) fn linear(&self, parts: &[String], spelling: usize) -> String {
        if spelling == 0 {
            let mut text = parts[0].clone();
            for (at, part) in parts.iter().enumerate().skip(1) {
                text = format!("({text}) * {} + {part}", self.length(at));
            }
            return text;
        }
        let mut terms = Vec::new();
        for (at, part) in parts.iter().enumerate() {
            let mut factors = vec![format!("({part})")];
            factors.extend((at + 1..parts.len()).map(|n| self.length(n)));
            if spelling == 2 {
                factors.reverse();
            }
            terms.push(factors.join(" * "));
        }
        terms.join(" + ")
    }

    pub(crate) fn access(&mut self, array: &str, offsets: &[i64]) -> String {
        let parts = (0..offsets.len()).map(|at| self.index(at, offsets[at]));
        let parts: Vec<String> = parts.collect();
        match self.style {
            Style::Linear(spelling) => format!("{array}[{}]", self.linear(&parts, spelling)),
            Style::Function => {
                let all: Vec<String> = parts.into_iter().chain(self.lengths()).collect();
                format!("{array}[at_{}({})]", self.name, all.join(", "))
            }
            Style::Macro => format!(
                "{}_{}({})",
                array.to_uppercase(),
                self.name,
                parts.join(", ")
            ),
            Style::Nested(typed) => {
                let name = if typed {
                    array.to_owned()
                } else {
                    format!("{array}_")
                };
                name + &parts.iter().map(|p| format!("[{p}]")).collect::<String>()
            }
            Style::Base => {
                let mut text = "at".to_owned();
                for (at, offset) in offsets.iter().enumerate() {
                    let factors: Vec<String> =
                        (at + 1..offsets.len()).map(|n| self.length(n)).collect();
                    let stride = factors.join(" * ");
                    let (sign, size) = if *offset < 0 {
                        ('-', -offset)
                    } else {
                        ('+', *offset)
                    };
                    match (size, stride.is_empty()) {
                        (0, _) => {}
                        (_, true) => text += &format!(" {sign} {size}"),
                        (1, false) => text += &format!(" {sign} {stride}"),
                        (_, false) => text += &format!(" {sign} {size} * {stride}"),
                    }
                }
                format!("{array}[{text}]")
            }
        }
    }

    /// An element near the point.
    pub(crate) fn read(&mut self) -> String {
        let array = self.rng.pick(&self.inputs).clone();
        let mut offsets = Vec::new();
        for at in 0..self.dims.len() {
            let [low, high] = self.dims[at].offsets;
            offsets.push(low + self.rng.below((high - low + 1) as usize) as i64);
        }
        if array == self.inputs[0]
            && let Some(kept) = self.walk.kept(self, &offsets)
        {
            return kept;
        }
        let element = self.access(&array, &offsets);
        self.padded(element, &offsets)
    }

    pub(crate) fn literal(&mut self) -> String {
        let number = self.rng.range(1, 400) as f64 / 128.0;
        let number = if self.rng.chance(20) {
            0.1 * number
        } else {
            number
        };
        match self.double {
            true => format!("{number:?}"),
            false => format!("{:?}f", number as f32),
        }
    }

    fn function(&self, name: &str) -> String {
        match self.double {
            true => name.to_owned(),
            false => format!("{name}f"),
        }
    }

    /// A factor.
    pub(crate) fn weight(&mut self) -> String {
        if !self.scalars.is_empty() && self.rng.chance(35) {
            return self.rng.pick(&self.scalars).clone();
        }
        if !self.coefficients.is_empty() && self.rng.chance(40) {
            let (name, dim) = self.coefficients[0].clone();
            let [low, high] = self.dims[dim].offsets;
            let offset = low + self.rng.below((high - low + 1) as usize) as i64;
            return format!("{name}[{}]", self.index(dim, offset));
        }
        if self.number && self.rng.chance(40) {
            return format!("C_{}", self.name);
        }
        if !self.table.is_empty() && self.rng.chance(60) {
            let lengths = self.table.clone();
            let places: String = lengths
                .iter()
                .map(|n| format!("[{}]", self.rng.below(*n)))
                .collect();
            return format!("W_{}{places}", self.name);
        }
        self.literal()
    }

    /// What a point outside the margins does.
    fn at_the_border(&mut self) -> Vec<String> {
        let here = vec![0; self.dims.len()];
        let mut lines = Vec::new();
        for output in self.outputs.clone() {
            let place = self.access(&output, &here);
            let input = self.rng.pick(&self.inputs).clone();
            let input = self.access(&input, &here);
            lines.push(match self.rng.below(5) {
                0 => format!("{place} = 0;"),
                1 => format!("{place} = {};", self.literal()),
                2 => format!("{place} += {} * {input};", self.weight_apart()),
                _ => format!("{place} = {input};"),
            });
        }
        lines
    }

    /// A factor that is the same at all points.
    fn weight_apart(&mut self) -> String {
        let coefficients = std::mem::take(&mut self.coefficients);
        let weight = self.weight();
        self.coefficients = coefficients;
        weight
    }

    fn sum_of_reads(&mut self, most: usize) -> String {
        let mut text = self.read();
        for _ in 0..self.rng.below(most) {
            let sign = *self.rng.pick(&["+", "+", "+", "-"]);
            let _ = write!(text, " {sign} {}", self.read());
        }
        text
    }

    pub(crate) fn term(&mut self) -> String {
        match self.rng.below(10) {
            0..=3 => format!("{} * {}", self.weight(), self.read()),
            4 | 5 => format!("{} * ({})", self.weight(), self.sum_of_reads(5)),
            6 => format!("({}) * {}", self.sum_of_reads(3), self.weight()),
            7 => format!("({}) * {}", self.sum_of_reads(2), self.read()),
            8 => match self.rng.below(4) {
                0 => format!("({}) / {}", self.sum_of_reads(3), self.literal()),
                1 => {
                    let two = if self.double { "2.0" } else { "2.0f" };
                    format!("{} / ({} + {two})", self.weight(), self.read())
                }
                _ => self.read(),
            },
            _ => match self.rng.below(if self.masks { 7 } else { 4 }) {
                4.. => self.chosen_by_data(),
                0 => format!(
                    "{}({}({}))",
                    self.function("sqrt"),
                    self.function("fabs"),
                    self.sum_of_reads(2)
                ),
                1 => format!(
                    "{}({}, {})",
                    self.function("fmin"),
                    self.read(),
                    self.read()
                ),
                2 => format!(
                    "{}({}, {})",
                    self.function("fmax"),
                    self.read(),
                    self.sum_of_reads(2)
                ),
                _ => format!(
                    "{}({}, {}, {})",
                    self.function("fma"),
                    self.weight(),
                    self.read(),
                    self.read()
                ),
            },
        }
    }

    pub(crate) fn expression(&mut self, most: usize) -> String {
        let mut text = self.term();
        if self.rng.chance(10) {
            text = format!("-{}", self.read());
        }
        for _ in 0..self.rng.below(most) {
            let sign = *self.rng.pick(&["+", "+", "-"]);
            let _ = write!(text, " {sign} {}", self.term());
        }
        text
    }

    /// The statements of a point.
    pub(crate) fn statements(&mut self) -> Vec<String> {
        let element = self.element();
        let mut lines = self.bent_names();
        let mut temps = Vec::new();
        for n in 0..self.rng.below(3) {
            let value = self.expression(3);
            let constant = if self.rng.chance(50) { "const " } else { "" };
            lines.push(format!("{constant}{element} t{n} = {value};"));
            if constant.is_empty() && self.rng.chance(50) {
                let more = self.expression(2);
                lines.push(format!("t{n} += {more};"));
            }
            temps.push(format!("t{n}"));
        }
        self.guarded_sums(&mut lines, &mut temps);
        self.by_data(&mut lines, &mut temps);
        let here = vec![0; self.dims.len()];
        for output in self.outputs.clone() {
            let mut value = self.expression(6);
            if !temps.is_empty() && self.rng.chance(70) {
                value = format!(
                    "{} * {} + {value}",
                    self.rng.pick(&temps).clone(),
                    self.weight()
                );
            }
            let place = self.access(&output, &here);
            if self.masks && self.rng.chance(60) {
                self.masked_store(&mut lines, &place, &value);
                continue;
            }
            lines.push(match self.rng.below(6) {
                0 => format!("{place} += {value};"),
                1 => format!("{place} -= {value};"),
                2 => format!("{place} = {} * {place} + {value};", self.literal()),
                _ => format!("{place} = {value};"),
            });
        }
        lines
    }

    pub(crate) fn lower(&mut self, at: usize) -> Option<String> {
        let dim = &self.dims[at];
        let (name, low) = (dim.iterator, dim.margins[0]);
        if dim.shifted || (low == 0 && self.rng.chance(70)) {
            return None;
        }
        Some(match self.rng.below(3) {
            0 => format!("{name} >= {low}"),
            1 => format!("{name} > {}", low - 1),
            _ => format!("{low} <= {name}"),
        })
    }

    pub(crate) fn upper(&mut self, at: usize) -> String {
        let dim = &self.dims[at];
        let (name, size, high) = (dim.iterator, dim.size.clone(), dim.margins[1]);
        match self.rng.below(4) {
            0 if high == 0 => format!("{name} < {size}"),
            0 | 1 => format!("{name} < {size} - {high}"),
            2 => format!("{name} <= {size} - {}", high + 1),
            _ => format!("{size} - {high} > {name}"),
        }
    }

    fn body(&mut self) -> String {
        let mut text = String::new();
        let element = self.element();
        if self.style == Style::Nested(false) {
            let lengths: String = self.dims[1..]
                .iter()
                .map(|d| format!("[{}]", d.size))
                .collect();
            for (names, constant) in [(&self.inputs, "const "), (&self.outputs, "")] {
                for name in names {
                    let ty = format!("{constant}{element} (*");
                    let _ = writeln!(text, "    {ty}{name}_){lengths} = ({ty}){lengths}){name};");
                }
            }
        }
        if self.walk != Walk::Plain {
            let walk = self.walk.clone();
            self.walked(&mut text, &walk);
            return text;
        }
        let numbers = [('x', 32), ('y', 4), ('z', 2)];
        for at in 0..self.dims.len() {
            let Some(axis) = self.dims[at].axis else {
                continue;
            };
            let number = numbers.iter().find(|n| n.0 == axis).map_or(1, |n| n.1);
            let block = match self.rng.chance(15) {
                true => number.to_string(),
                false => format!("blockDim.{axis}"),
            };
            let place = match self.rng.below(3) {
                0 => format!("threadIdx.{axis} + blockIdx.{axis} * {block}"),
                1 => format!("{block} * blockIdx.{axis} + threadIdx.{axis}"),
                _ => format!("blockIdx.{axis} * {block} + threadIdx.{axis}"),
            };
            let dim = &self.dims[at];
            let shift = match dim.shifted && dim.margins[0] > 0 {
                true => format!(" + {}", dim.margins[0]),
                false => String::new(),
            };
            let constant = if self.rng.chance(60) { "const " } else { "" };
            let name = self.dims[at].iterator;
            let ty = match self.rng.below(20) {
                _ if self.dims[at].edge.is_some() || self.dims[at].padded => "int",
                0 => "unsigned int",
                1 => "size_t",
                2 => "long long",
                _ => "int",
            };
            let _ = writeln!(text, "    {constant}{ty} {name} = {place}{shift};");
        }
        for dim in &mut self.dims {
            dim.shifted &= dim.margins[0] > 0;
        }
        let threads: Vec<usize> = (0..self.dims.len())
            .filter(|d| self.dims[*d].axis.is_some())
            .collect();
        let loops: Vec<usize> = (0..self.dims.len())
            .filter(|d| self.dims[*d].axis.is_none())
            .collect();
        let mut conditions = Vec::new();
        for at in threads {
            conditions.extend(self.lower(at));
            conditions.push(self.upper(at));
        }
        let mut inner = Vec::new();
        if self.style == Style::Base {
            let parts: Vec<String> = self.dims.iter().map(|d| d.iterator.to_owned()).collect();
            let index = self.linear(&parts, 0);
            inner.push(format!("const int at = {index};"));
        }
        inner.extend(self.statements());
        let mut heads = Vec::new();
        for at in loops {
            let dim = &self.dims[at];
            let (name, low, high, size) = (
                dim.iterator,
                dim.margins[0],
                dim.margins[1],
                dim.size.clone(),
            );
            let test = match self.rng.below(3) {
                0 => format!("{name} <= {size} - {}", high + 1),
                _ => format!("{name} < {size} - {high}"),
            };
            let step = *self.rng.pick(&["++{}", "{}++", "{} += 1"]);
            heads.push(format!(
                "for (int {name} = {low}; {test}; {})",
                step.replace("{}", name)
            ));
        }
        if self.border && heads.is_empty() {
            self.bordered(&mut text, &conditions, &inner);
            return text;
        }
        match self.rng.below(4) {
            0 => {
                // Leave early: the opposite of each, in one or in several.
                let opposite: Vec<String> = conditions.iter().map(|c| format!("!({c})")).collect();
                match self.rng.chance(50) {
                    true => {
                        let _ = writeln!(text, "    if ({}) return;", opposite.join(" || "));
                    }
                    false => {
                        for condition in opposite {
                            let _ = writeln!(text, "    if ({condition}) return;");
                        }
                    }
                }
                nest(&mut text, &heads, &inner);
            }
            1 => {
                let mut nested = vec![format!("if ({})", conditions[0])];
                nested.extend(conditions[1..].iter().map(|c| format!("if ({c})")));
                nested.extend(heads);
                nest(&mut text, &nested, &inner);
            }
            2 if !heads.is_empty() => {
                // The test stands in the innermost loop.
                let mut lines = vec![format!("if (!({})) continue;", conditions.join(" && "))];
                lines.extend(inner);
                nest(&mut text, &heads, &lines);
            }
            _ => {
                let mut nested = vec![format!("if ({})", conditions.join(" && "))];
                nested.extend(heads);
                nest(&mut text, &nested, &inner);
            }
        }
        text
    }
}

impl Writer<'_> {
    /// All points of the arrays do something: those within the margins these statements, the others less.
    fn bordered(&mut self, text: &mut String, conditions: &[String], inner: &[String]) {
        let beyond: Vec<String> = self
            .dims
            .iter()
            .map(|d| format!("{} >= {}", d.iterator, d.size))
            .collect();
        let choice = self.rng.below(4);
        if choice < 3 {
            let _ = writeln!(text, "    if ({}) return;", beyond.join(" || "));
        }
        // The subscript stands before both.
        let (at, inner) = match inner.first() {
            Some(first) if first.starts_with("const int at = ") => inner.split_at(1),
            _ => inner.split_at(0),
        };
        nest(text, &[], at);
        let around = self.at_the_border();
        let within = conditions.join(" && ");
        match choice {
            3 => {
                let all = self
                    .dims
                    .iter()
                    .map(|d| format!("{} < {}", d.iterator, d.size));
                let all: Vec<String> = all.collect();
                nest(text, &[format!("if ({within})")], inner);
                nest(text, &[format!("else if ({})", all.join(" && "))], &around);
            }
            0 => {
                nest(text, &[format!("if ({within})")], inner);
                nest(text, &["else".to_owned()], &around);
            }
            choice => {
                let outside = match choice {
                    1 => format!("if (!({within}))"),
                    _ => {
                        let each = conditions.iter().map(|c| format!("!({c})"));
                        format!("if ({})", each.collect::<Vec<_>>().join(" || "))
                    }
                };
                let mut lines = around;
                lines.push("return;".to_owned());
                nest(text, &[outside], &lines);
                nest(text, &[], inner);
            }
        }
    }
}

pub(crate) fn nest(text: &mut String, heads: &[String], lines: &[String]) {
    let mut indent = "    ".to_owned();
    for head in heads {
        let _ = writeln!(text, "{indent}{head} {{");
        indent += "    ";
    }
    for line in lines {
        let _ = writeln!(text, "{indent}{line}");
    }
    for _ in heads {
        indent.truncate(indent.len() - 4);
        let _ = writeln!(text, "{indent}}}");
    }
}
