//! Random naive kernels: affine accesses in rows, across rows, strided and shifted, several arrays and types, guards in
//! every form, places that are taken apart from one place of the launch, loops over the grid, reductions, loops in loops,
//! conditions on data, unresolved indices, sizes that are odd and tiny; and here
//! and there what no naive kernel has, such as an atomic operation, which must be refused by its name.
//!
//! Every subscript is built from parts whose ranges are known, so that array lengths follow and no access leaves its
//! array, at any size.

use std::fmt::Write as _;

use warpwright_fuzzgen::Rng;

/// A kernel with launches.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// Its name.
    pub name: String,
    /// The file.
    pub text: String,
    /// A launch description, with sizes `s0`, `s1`, …
    pub launch: String,
    /// How many sizes it has.
    pub sizes: usize,
    /// Sums may be reordered.
    pub reassociate: bool,
    /// It must be refused, with this message.
    pub refused: Option<&'static str>,
}

/// A part of a subscript: its text, and its largest value in the words of launch descriptions.
#[derive(Clone, Debug)]
struct Part {
    text: String,
    most: String,
}

struct Input {
    name: String,
    ty: &'static str,
    length: Vec<String>,
}

/// How the text says where a thread is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// Each place from its axis of the launch.
    Axes,
    /// All places from the one along x, by `/` and `%`.
    Flat,
    /// In loops over the grid, one for each axis.
    Strides,
    /// In one loop over the grid, and taken apart in it.
    FlatStrides,
}

struct Maker<'r> {
    form: Form,
    rng: &'r mut Rng,
    /// Dimensions: their names, and the sizes that end them.
    dims: Vec<(String, &'static str)>,
    inputs: Vec<Input>,
    ty: &'static str,
    loops: usize,
    exact: bool,
    /// What is stored to is counted in atomically.
    counts: bool,
    /// A function of the file, if it is called.
    function: String,
    is_called: bool,
    /// A function without a result, that changes two of its arguments.
    is_changed: bool,
    refused: Option<&'static str>,
}

/// Statements that no naive kernel has, and what is said of them.
const REFUSED: &[(&str, &str)] = &[
    (
        "atomicExch(&OUT, VALUE);",
        "an atomic operation whose order counts",
    ),
    (
        "atomicCAS(&OUT, VALUE, VALUE);",
        "an atomic operation whose order counts",
    ),
    ("OUT = VALUE; __syncthreads();", "a barrier"),
    ("__shared__ int s; OUT = VALUE;", "shared memory"),
    (
        "OUT = VALUE * gridDim.x;",
        "a loop over the grid, or `gridDim`",
    ),
];

const SIZES: [&str; 4] = ["n", "m", "d", "k"];

/// The kernel of a random number.
pub fn kernel(rng: &mut Rng, name: &str) -> Kernel {
    let ty = *rng.pick(&[
        "float",
        "float",
        "float",
        "float",
        "double",
        "int",
        "unsigned int",
    ]);
    let count = *rng.pick(&[1, 1, 1, 1, 2, 2, 2, 2, 2, 3, 3, 4]);
    let reassociate = rng.chance(60);
    let names = *rng.pick(&[
        ["idx", "idy", "idz", "idw"],
        ["x", "y", "z", "w"],
        ["column", "row", "plane", "image"],
    ]);
    let dims: Vec<(String, &'static str)> = (0..count)
        .map(|d| (names[d].to_owned(), SIZES[d]))
        .collect();
    let exact = ty == "int" || ty == "unsigned int";
    let form = match count {
        1 => *rng.pick(&[Form::Axes, Form::Axes, Form::Axes, Form::Strides]),
        4 => *rng.pick(&[Form::Flat, Form::FlatStrides]),
        _ => *rng.pick(&[
            Form::Axes,
            Form::Axes,
            Form::Axes,
            Form::Flat,
            Form::Flat,
            Form::Strides,
            Form::FlatStrides,
        ]),
    };
    let mut maker = Maker {
        form,
        rng,
        dims,
        inputs: Vec::new(),
        ty,
        loops: 0,
        exact,
        counts: false,
        function: format!("{name}_bent"),
        is_called: false,
        is_changed: false,
        refused: None,
    };
    let outputs = if maker.rng.chance(20) { 2 } else { 1 };
    let by_rows = count == 1 && maker.rng.chance(25);
    maker.counts = !by_rows && maker.rng.chance(12);
    // The order in which numbers are added atomically is never given.
    let reassociate = reassociate || maker.counts;
    let mut body = String::new();
    match (by_rows, maker.counts) {
        (true, _) => maker.rows(&mut body),
        (_, true) => maker.counts(&mut body, outputs),
        _ => maker.points(&mut body, outputs),
    }
    maker.finish(name, body, outputs, reassociate, by_rows)
}

impl Maker<'_> {
    /// The place of the point along a dimension.
    fn place(&self, dim: usize) -> Part {
        let (name, size) = &self.dims[dim];
        Part {
            text: name.clone(),
            most: format!("({size} - 1)"),
        }
    }

    /// An element of an input whose place has these parts, the outermost first: rows of the length that they need.
    fn load(&mut self, parts: &[Part], unresolved: bool) -> String {
        let name = format!("a{}", self.inputs.len());
        let pad = *self.rng.pick(&[0, 0, 0, 0, 1, 3, 4]);
        let shift = *self.rng.pick(&[0, 0, 0, 0, 1, 2, 4]);
        // Rows of a length that the text fixes: above all that sizes and their multiples reach.
        let is_fixed = parts.len() > 1 && self.rng.chance(15);
        let (mut text, mut length) = (String::new(), Vec::new());
        for (at, part) in parts.iter().enumerate() {
            // Texts of extents in the kernel and in the description are the same: sizes, + and *.
            let last = at + 1 == parts.len();
            let extent = match last {
                true if is_fixed => "256".to_owned(),
                true => format!("({} + {})", part.most, 1 + pad + shift),
                false => format!("({} + 1)", part.most),
            };
            let own = match (last, shift) {
                (true, 1..) => format!("{} + {shift}", part.text),
                _ => part.text.clone(),
            };
            text = match text.is_empty() {
                true => own,
                false => format!("({text}) * {extent} + {own}"),
            };
            length.push(extent);
        }
        let ty = match unresolved {
            true => "int",
            false if self.ty == "float" && self.rng.chance(8) => "unsigned char",
            false => self.ty,
        };
        self.inputs.push(Input {
            name: name.clone(),
            ty,
            length,
        });
        format!("{name}[{text}]")
    }

    /// A part that is a place, a shifted place, a multiple of one, or the counter of a loop.
    fn part(&mut self, counters: &[Part]) -> Part {
        let dims = self.dims.len();
        let choice = self.rng.below(10);
        if !counters.is_empty() && choice < 5 {
            let at = self.rng.below(counters.len());
            let counter = counters[at].clone();
            return match self.rng.below(8) {
                0 => Part {
                    text: format!("2 * {}", counter.text),
                    most: format!("2 * {}", counter.most),
                },
                1 => {
                    let place = self.rng.below(dims);
                    self.sum(place, &counter)
                }
                _ => counter,
            };
        }
        let place = self.rng.below(dims);
        let place = self.place(place);
        match self.rng.below(10) {
            0 => Part {
                text: format!("2 * {}", place.text),
                most: format!("2 * {}", place.most),
            },
            1 => Part {
                text: format!("3 * {}", place.text),
                most: format!("3 * {}", place.most),
            },
            2 => Part {
                text: format!("{} / 2", place.text),
                most: format!("{} / 2", place.most),
            },
            _ => place,
        }
    }

    fn sum(&self, place: usize, counter: &Part) -> Part {
        let place = self.place(place);
        Part {
            text: format!("{} + {}", place.text, counter.text),
            most: format!("({} + {})", place.most, counter.most),
        }
    }

    /// Places in a random order, each once: a matrix, or its transpose.
    fn all_places(&mut self) -> Vec<Part> {
        let mut order: Vec<usize> = (0..self.dims.len()).rev().collect();
        if self.rng.chance(30) {
            order.reverse();
        }
        order.into_iter().map(|d| self.place(d)).collect()
    }

    fn operand(&mut self, counters: &[Part]) -> String {
        let parts = match self.rng.below(12) {
            0 => vec![self.part(counters)],
            1..=3 => self.all_places(),
            4 => {
                let mut parts = self.all_places();
                parts.push(self.part(counters));
                parts
            }
            5 if counters.is_empty() => return self.number(),
            6 if self.rng.chance(30) => {
                // An unresolved index: the place comes from memory.
                let inner = vec![self.part(counters)];
                let index = self.load(&inner, true);
                let name = format!("a{}", self.inputs.len());
                self.inputs.push(Input {
                    name: name.clone(),
                    ty: self.ty,
                    length: vec!["8".to_owned()],
                });
                return format!("{name}[{index} & 7]");
            }
            _ => vec![self.part(counters), self.part(counters)],
        };
        self.load(&parts, false)
    }

    fn number(&mut self) -> String {
        match self.ty {
            "float" => (*self.rng.pick(&["0.5f", "1.25f", "3.0f", "-0.75f"])).to_owned(),
            "double" => (*self.rng.pick(&["0.5", "1.25", "3.0", "-0.75"])).to_owned(),
            _ => (*self.rng.pick(&["1", "3", "7"])).to_owned(),
        }
    }

    fn expression(&mut self, counters: &[Part], depth: usize) -> String {
        if depth == 0 || self.rng.chance(25) {
            return self.operand(counters);
        }
        let (a, b) = (
            self.expression(counters, depth - 1),
            self.expression(counters, depth - 1),
        );
        let (max, min) = match self.ty {
            "float" => ("fmaxf", "fminf"),
            "double" => ("fmax", "fmin"),
            _ => ("max", "min"),
        };
        match self.rng.below(13) {
            12 => {
                self.is_called = true;
                format!("{}({a}, {b})", self.function)
            }
            0..=3 => format!("{a} * {b}"),
            4..=6 => format!("({a} + {b})"),
            7 | 8 => format!("({a} - {b})"),
            9 => format!("{max}({a}, {b})"),
            10 => format!("{min}({a}, {b})"),
            _ => {
                let c = self.number();
                format!("({a} > {c} ? {a} : {b})")
            }
        }
    }

    /// The head of a loop, its counter and how often it runs at most, and what ends a turn.
    fn head(&mut self, name: &str) -> (String, Part, String) {
        if self.rng.chance(12) {
            // A window that the border cuts.
            let at = self.rng.below(self.dims.len());
            let (place, size) = &self.dims[at];
            let (size, place) = (*size, place.clone());
            let low = match self.rng.below(3) {
                0 => format!("max({place} - 1, 0)"),
                1 => format!("max(0, {place} - 2)"),
                _ => place.clone(),
            };
            return (
                format!("for (int {name} = {low}; {name} < min({place} + 2, {size}); {name}++)"),
                Part {
                    text: name.to_owned(),
                    most: format!("({size} - 1)"),
                },
                String::new(),
            );
        }
        let size = *self.rng.pick(&["k", "k", "k", "d", "m", "3", "5"]);
        let low = *self.rng.pick(&[0, 0, 0, 0, 1, 2]);
        let step = *self.rng.pick(&[1, 1, 1, 1, 2, 3]);
        let turn = match step {
            1 => (*self.rng.pick(&[
                format!("{name}++"),
                format!("++{name}"),
                format!("{name} += 1"),
            ]))
            .clone(),
            step => format!("{name} += {step}"),
        };
        let test = match self.rng.below(4) {
            0 => format!("{name} <= {size} - 1"),
            _ => format!("{name} < {size}"),
        };
        let (head, last) = match self.rng.chance(20) {
            true => (format!("int {name} = {low}; while ({test})"), turn + ";"),
            false => (
                format!("for (int {name} = {low}; {test}; {turn})"),
                String::new(),
            ),
        };
        let most = format!("({size} - 1)");
        let text = name.to_owned();
        (head, Part { text, most }, last)
    }

    /// A loop that adds up, or takes the largest or the least.
    fn reduction(&mut self, body: &mut String, variable: &str, outer: &[Part], indent: &str) {
        let name = ["i", "j", "l", "t", "u"][self.loops.min(4)];
        self.loops += 1;
        let (head, counter, last) = self.head(name);
        let mut counters = outer.to_vec();
        counters.push(counter);
        let inner = self.rng.chance(20) && outer.is_empty() && self.loops < 5;
        let _ = writeln!(body, "{indent}{head} {{");
        if inner {
            self.reduction(body, variable, &counters, &format!("{indent}    "));
        } else {
            let value = self.expression(&counters, 1);
            let (max, min) = match self.ty {
                "float" => ("fmaxf", "fminf"),
                "double" => ("fmax", "fmin"),
                _ => ("max", "min"),
            };
            let line = match self.rng.below(12) {
                0 => format!("{variable} = {max}({variable}, {value});"),
                1 => format!("{variable} = {min}({value}, {variable});"),
                2 => format!("{variable} = {variable} + {value};"),
                3 => format!("{variable} -= {value};"),
                4 => {
                    let bound = self.number();
                    format!(
                        "{} own_{name} = {value};\n{indent}    if (own_{name} > {bound}) {variable} += own_{name};",
                        self.ty
                    )
                }
                _ => format!("{variable} += {value};"),
            };
            let _ = writeln!(body, "{indent}    {line}");
        }
        let _ = writeln!(body, "{indent}{last}}}");
    }

    /// A loop of which nobody knows how many turns it makes, or a function that changes what it is passed.
    fn open_loop(&mut self, body: &mut String, number: usize) {
        let counter = Part {
            text: format!("s{number}"),
            most: "(k - 1)".to_owned(),
        };
        let few = Part {
            most: "9".to_owned(),
            ..counter.clone()
        };
        let (s, bound) = (counter.text.clone(), self.number());
        let [a, b] = [0, 1].map(|_| self.load(std::slice::from_ref(&counter), false));
        let head = format!("for (int {s} = 0; {s} < k; {s}++)");
        let strides = matches!(self.form, Form::Strides | Form::FlatStrides);
        let place = self.place(0);
        let text = match self.rng.below(10) {
            0 => format!(
                "int at{number} = -1;\n    {head} {{\n        if ({a} > {bound}) {{\n            at{number} = {s};\n            \
                 break;\n        }}\n        open += {b};\n    }}\n    open += at{number};"
            ),
            1 => format!(
                "{head} {{\n        if ({a} > {bound}) continue;\n        open += {b};\n    }}"
            ),
            2 => format!(
                "int q{number} = k;\n    int {s} = 0;\n    while ({s} < q{number} && {a} < {bound}) {{\n        open += {b};\n        \
                 {s} += 2;\n        q{number}--;\n    }}\n    open += {s};"
            ),
            3 => {
                let ends = [0, 1].map(|_| self.load(std::slice::from_ref(&place), true));
                let a = self.load(std::slice::from_ref(&few), false);
                format!(
                    "const int low{number} = {} & 3;\n    const int high{number} = low{number} + ({} & 3);\n    for (int {s} = \
                     low{number}; {s} <= high{number}; ++{s}) open += {a};",
                    ends[0], ends[1]
                )
            }
            4 => format!(
                "int q{number} = 1;\n    for (int {s} = 0; {s} < k && q{number} < 9; {s}++, q{number} += 2) open += {a} * q{number};"
            ),
            5 => format!(
                "int {s};\n    for ({s} = 0; {s} < k; {s}++) open += {a};\n    open += {s};"
            ),
            6 if !strides => format!(
                "{head} {{\n        if ({a} > {bound} && {b} > {bound}) return;\n        open += {a};\n    }}"
            ),
            7 => format!(
                "for (int t{number} = 0; t{number} < 4; t{number}++) {{\n        int {s} = 0;\n        for (;;) {{\n            if ({s} >= k) \
                 break;\n            if ({a} > {bound}) {{\n                {s} += 2;\n                continue;\n            }}\n            \
                 open += {b};\n            {s}++;\n        }}\n        if (open > 99) break;\n    }}"
            ),
            8 => format!("int {s} = k;\n    while (--{s} >= 0) open += {a};"),
            _ => {
                self.is_changed = true;
                let value = self.operand(&[]);
                format!(
                    "{ty} low{number} = {value};\n    {}_change(open, low{number}, k);\n    open += low{number};",
                    self.function,
                    ty = self.ty
                )
            }
        };
        let _ = writeln!(body, "    {text}");
    }

    /// A kernel that stores an element or two for every point.
    fn points(&mut self, body: &mut String, outputs: usize) {
        let count = *self.rng.pick(&[0, 0, 1, 1, 1, 2]);
        let mut values = Vec::new();
        for number in 0..count {
            let name = format!("sum{number}");
            let first = match self.rng.below(4) {
                0 => self.operand(&[]),
                1 => self.number(),
                _ => "0".to_owned(),
            };
            let _ = writeln!(body, "    {} {name} = {first};", self.ty);
            self.reduction(body, &name, &[], "    ");
            values.push(name);
        }
        if self.rng.chance(40) {
            let first = self.number();
            let _ = writeln!(body, "    {} open = {first};", self.ty);
            for number in 0..self.rng.range(1, 2) {
                self.open_loop(body, number);
            }
            values.push("open".to_owned());
        }
        for number in 0..outputs {
            let mut value = match values.is_empty() || self.rng.chance(30) {
                true => self.expression(&[], 2),
                false => {
                    let at = self.rng.below(values.len());
                    values[at].clone()
                }
            };
            if !values.is_empty() && self.rng.chance(40) {
                value = format!("{value} + {}", values.join(" + "));
            }
            let op = *self.rng.pick(&["=", "=", "=", "=", "+="]);
            let mut order: Vec<usize> = (0..self.dims.len()).rev().collect();
            if self.rng.chance(20) {
                order.reverse();
            }
            let mut index = String::new();
            for dim in order {
                let (name, size) = &self.dims[dim];
                index = match index.is_empty() {
                    true => name.clone(),
                    false => format!("({index}) * {size} + {name}"),
                };
            }
            let parity = self.rng.chance(8);
            let line = match self.rng.chance(3) {
                false => format!("out{number}[{index}] {op} {value};"),
                true => {
                    let (text, why) = *self.rng.pick(REFUSED);
                    let strides = matches!(self.form, Form::Strides | Form::FlatStrides);
                    self.refused = Some(match strides && text.contains("gridDim") {
                        true => "a place in the launch, inside a loop over the grid",
                        false => why,
                    });
                    text.replace("OUT", &format!("out{number}[{index}]"))
                        .replace("VALUE", &value)
                }
            };
            match parity {
                true => {
                    let name = &self.dims[0].0;
                    let _ = writeln!(body, "    if ({name} % 2 == 0) {line}");
                }
                false => {
                    let _ = writeln!(body, "    {line}");
                }
            }
        }
    }

    /// A kernel that counts atomically: in one element, in one for each place of a dimension, or in a table, whose
    /// length a condition, a mask or a type says.
    fn counts(&mut self, body: &mut String, outputs: usize) {
        let ops: &[&str] = match self.exact {
            true => &[
                "atomicAdd",
                "atomicAdd",
                "atomicMax",
                "atomicMin",
                "atomicOr",
                "atomicAnd",
                "atomicXor",
            ],
            false => &["atomicAdd"],
        };
        for number in 0..outputs {
            let op = *self.rng.pick(ops);
            let value = self.expression(&[], 1);
            let place = self.rng.below(self.dims.len());
            let line = match self.rng.below(if self.exact { 6 } else { 2 }) {
                0 => format!("{op}(out{number}, {value});"),
                1 => format!("{op}(&out{number}[{}], {value});", self.dims[place].0),
                form => {
                    let parts = self.all_places();
                    let byte = form == 2;
                    let from = self.load(&parts, true);
                    if let Some(input) = self.inputs.last_mut().filter(|_| byte) {
                        input.ty = "unsigned char";
                    }
                    let cell = format!("cell{number}");
                    match form {
                        2 => format!("{op}(&out{number}[{from}], {value});"),
                        3 => format!("{op}(&out{number}[{from} & 31], {value});"),
                        4 => format!(
                            "int {cell} = {from}; if ({cell} >= 0 && {cell} < k) {op}(&out{number}[{cell}], {value});"
                        ),
                        _ => format!(
                            "int {cell} = {from}; if (!({cell} < 0 || {cell} > 6)) {op}(out{number} + {cell}, {value});"
                        ),
                    }
                }
            };
            let line = match self.rng.below(4) {
                0 => {
                    let (a, b) = (self.operand(&[]), self.number());
                    format!("if ({a} > {b}) {{ {line} }}")
                }
                _ => line,
            };
            let _ = writeln!(body, "    {line}");
        }
    }

    /// A kernel that goes over a row several times, and stores into it.
    fn rows(&mut self, body: &mut String) {
        let (name, _) = self.dims[0].clone();
        let phases = self.rng.range(1, 2);
        let mut values = Vec::new();
        let pad = *self.rng.pick(&[0, 0, 0, 2]);
        self.inputs.push(Input {
            name: "a0".into(),
            ty: self.ty,
            length: vec!["n".into(), format!("(k + {pad})")],
        });
        let width = if pad == 0 {
            "k".to_owned()
        } else {
            format!("(k + {pad})")
        };
        let row = format!("a0[{name} * {width} + i]");
        for number in 0..phases {
            let variable = format!("sum{number}");
            let _ = writeln!(body, "    {} {variable} = 0;", self.ty);
            let mut value = row.clone();
            if let Some(last) = values.last() {
                value = match self.rng.below(3) {
                    0 => format!("({value} - {last})"),
                    1 => format!("{value} * {last}"),
                    _ => value,
                };
            }
            if self.rng.chance(30) {
                value = format!("{value} * {value}");
            }
            let (max, wide) = match self.ty {
                "float" => ("fmaxf", true),
                "double" => ("fmax", true),
                _ => ("max", false),
            };
            let line = match self.rng.below(4) {
                0 => format!("{variable} = {max}({variable}, {value});"),
                _ => format!("{variable} += {value};"),
            };
            let _ = writeln!(body, "    for (int i = 0; i < k; i++) {line}");
            let mean = format!("mean{number}");
            if wide && self.rng.chance(50) {
                let _ = writeln!(body, "    {} {mean} = {variable} / k;", self.ty);
                values.push(mean);
            } else {
                values.push(variable);
            }
        }
        let last = values.last().cloned().unwrap_or_default();
        let mut value = match self.rng.below(3) {
            0 => format!("{row} - {last}"),
            1 => format!("{row} * {last}"),
            _ => format!("{row} + {last}"),
        };
        if self.rng.chance(50) {
            let scale = self.load(
                &[Part {
                    text: "i".into(),
                    most: "(k - 1)".into(),
                }],
                false,
            );
            value = format!("({value}) * {scale}");
        }
        let _ = writeln!(
            body,
            "    for (int i = 0; i < k; i++) out0[{name} * k + i] = {value};"
        );
    }

    /// The places, and how often what is opened must be closed.
    fn head_of_points(&mut self) -> (String, usize) {
        let mut out = String::new();
        let ty = *self
            .rng
            .pick(&["int", "int", "int", "unsigned", "long long", "size_t"]);
        let place = "blockIdx.x * blockDim.x + threadIdx.x";
        let own = match ty {
            "long long" | "size_t" => format!("({ty})blockIdx.x * blockDim.x + threadIdx.x"),
            _ => place.to_owned(),
        };
        let count = match (self.form, self.rng.below(4)) {
            (Form::Flat | Form::FlatStrides, 0) => "total".to_owned(),
            _ => {
                let sizes: Vec<&str> = self.dims.iter().map(|(_, size)| *size).collect();
                sizes.join(" * ")
            }
        };
        match self.form {
            Form::Axes => return (self.guard(), 0),
            Form::Strides => {
                for (axis, (name, size)) in self.dims.iter().enumerate() {
                    let letter = ["x", "y", "z"][axis];
                    let (place, stride) = match axis {
                        2 => ("blockIdx.z".to_owned(), "gridDim.z".to_owned()),
                        _ => (
                            format!("blockIdx.{letter} * blockDim.{letter} + threadIdx.{letter}"),
                            format!("blockDim.{letter} * gridDim.{letter}"),
                        ),
                    };
                    let _ = writeln!(
                        out,
                        "    for (int {name} = {place}; {name} < {size}; {name} += {stride}) {{"
                    );
                }
                return (out, self.dims.len());
            }
            Form::Flat => {
                let _ = writeln!(out, "    {ty} flat = {own};");
                match (self.rng.below(3), count == "total") {
                    // The last place alone says where they end.
                    (0, false) => {}
                    _ => {
                        let _ = writeln!(out, "    if (flat >= {count}) return;");
                    }
                }
            }
            Form::FlatStrides => {
                let _ = writeln!(
                    out,
                    "    int stride = gridDim.x * blockDim.x;\n    for (int flat = {place}; flat < {count}; flat += stride) {{"
                );
            }
        }
        let leave = match self.form {
            Form::FlatStrides => "continue",
            _ => "return",
        };
        match self.rng.below(3) {
            // What is left over after each division.
            0 => {
                let _ = writeln!(out, "    int rest = flat;");
                let last = self.dims.len() - 1;
                for (at, (name, size)) in self.dims.iter().enumerate() {
                    let _ = match at == last {
                        true => writeln!(out, "    int {name} = rest;"),
                        false => writeln!(
                            out,
                            "    int {name} = rest % {size};\n    rest = rest / {size};"
                        ),
                    };
                }
            }
            // The outermost first.
            1 => {
                for at in (0..self.dims.len()).rev() {
                    let inner: Vec<&str> = self.dims[..at].iter().map(|(_, s)| *s).collect();
                    let own = match inner.is_empty() {
                        true => "flat".to_owned(),
                        false => format!("(flat / ({}))", inner.join(" * ")),
                    };
                    let (name, size) = &self.dims[at];
                    let last = at + 1 == self.dims.len();
                    let own = if last { own } else { format!("{own} % {size}") };
                    let _ = writeln!(out, "    int {name} = {own};");
                }
            }
            _ => {
                let mut by = String::new();
                for (at, (name, size)) in self.dims.iter().enumerate() {
                    let last = at + 1 == self.dims.len();
                    let _ = match last {
                        true => writeln!(out, "    int {name} = flat{by};"),
                        false => writeln!(out, "    int {name} = flat{by} % {size};"),
                    };
                    let _ = write!(by, " / {size}");
                }
            }
        }
        if let Some((name, size)) = self.dims.last() {
            let _ = writeln!(out, "    if ({name} >= {size}) {leave};");
        }
        (out, usize::from(self.form == Form::FlatStrides))
    }

    fn guard(&mut self) -> String {
        let mut out = String::new();
        for (axis, (name, _)) in self.dims.iter().enumerate() {
            let letter = ["x", "y", "z"][axis];
            let place = match axis {
                2 => "blockIdx.z".to_owned(),
                _ => format!("blockIdx.{letter} * blockDim.{letter} + threadIdx.{letter}"),
            };
            let _ = writeln!(out, "    int {name} = {place};");
        }
        let tests: Vec<String> = self
            .dims
            .iter()
            .map(|(name, size)| format!("{name} >= {size}"))
            .collect();
        match self.rng.below(3) {
            0 => tests.iter().for_each(|t| {
                let _ = writeln!(out, "    if ({t}) return;");
            }),
            _ => {
                let _ = writeln!(out, "    if ({}) return;", tests.join(" || "));
            }
        }
        out
    }

    fn finish(
        mut self,
        name: &str,
        body: String,
        outputs: usize,
        reassociate: bool,
        by_rows: bool,
    ) -> Kernel {
        let (guard, open) = self.head_of_points();
        let close = "    }\n".repeat(open);
        let body = body + &close;
        let mut parameters: Vec<String> = Vec::new();
        for input in &self.inputs {
            let restrict = if self.rng.chance(30) {
                "__restrict__ "
            } else {
                ""
            };
            parameters.push(format!("const {} *{restrict}{}", input.ty, input.name));
        }
        let results = if by_rows { 1 } else { outputs };
        parameters.extend((0..results).map(|n| format!("{} *out{n}", self.ty)));
        parameters.extend(SIZES.iter().map(|s| format!("int {s}")));
        parameters.push("int total".to_owned());
        let function = match self.is_called {
            // Conditions, a loop and variables of its own.
            true => format!(
                "__device__ {ty} {}({ty} a, {ty} b)\n{{\n    {ty} c = a;\n    if (a > b) c = b;\n    else a = a - b;\n    for \
                 (int i = 0; i < 3; i++) c += a;\n    return c;\n}}\n",
                self.function,
                ty = self.ty
            ),
            false => String::new(),
        };
        let function = match self.is_changed {
            true => format!(
                "{function}__device__ void {}_change({ty} &a, {ty} &b, int n)\n{{\n    {ty} c = a;\n    if (a > b) {{\n        b = a;\n        \
                 return;\n    }}\n    for (int i = 0; i < n; i++) {{\n        c += b;\n        if (c > 40) return;\n    }}\n    a = \
                 c;\n}}\n",
                self.function,
                ty = self.ty
            ),
            false => function,
        };
        let words = if reassociate { " reassociate" } else { "" };
        let pragma = format!("#pragma warpwright naive sizes(n=64, m=64, d=8, k=32){words}");
        let own = parameters.join(", ");
        let text = match self.ty == "float" && self.rng.chance(15) {
            false => {
                format!("{function}{pragma}\n__global__ void {name}({own})\n{{\n{guard}{body}}}\n")
            }
            // Its only instance.
            true => {
                let kernel = format!("__global__ void {name}({own})\n{{\n{guard}{body}}}\n");
                let kernel = kernel.replace("float ", "T ");
                format!(
                    "{function}{pragma}\ntemplate <typename T>\n{kernel}template __global__ void {name}<float>({own});\n"
                )
            }
        };
        let is_flat = matches!(self.form, Form::Flat | Form::FlatStrides);
        let block = match self.dims.len() {
            _ if is_flat => *self.rng.pick(&["[64]", "[32]", "[256]", "[1]"]),
            1 => *self.rng.pick(&["[64]", "[32]", "[256]", "[1]"]),
            _ => *self.rng.pick(&["[16, 16]", "[32, 8]", "[8, 4]", "[1, 3]"]),
        };
        let product: Vec<&str> = self.dims.iter().map(|(_, size)| *size).collect();
        let product = product.join(" * ");
        let mut grid = Vec::new();
        let extents: Vec<usize> = block
            .trim_matches(['[', ']'])
            .split(", ")
            .filter_map(|b| b.parse().ok())
            .collect();
        for (axis, (_, size)) in self.dims.iter().enumerate() {
            grid.push(match (axis, self.form) {
                // Fewer threads than points.
                (0, Form::FlatStrides) => "3".to_owned(),
                (1.., Form::FlatStrides | Form::Flat) => continue,
                (0 | 1, Form::Strides) => "2".to_owned(),
                (_, Form::Strides) => "3".to_owned(),
                (0, Form::Flat) => format!("\"ceil_div({product}, {})\"", extents[axis]),
                (2, _) => format!("\"{size}\""),
                _ => format!("\"ceil_div({size}, {})\"", extents[axis]),
            });
        }
        let mut launch = format!("kernel = \"{name}\"\n");
        let count = 4;
        for number in 0..count {
            let of = |rng: &mut Rng| match number {
                0 => 1,
                1 => 4 * rng.range(1, 9),
                2 => 2 * rng.range(1, 20) + 1,
                _ => rng.range(1, 70),
            };
            let many = self.dims.len() > 2;
            let _ = writeln!(launch, "[sizes.s{number}]");
            for size in SIZES {
                let mut value = of(self.rng);
                if many || size == "d" {
                    value = value.min(9);
                }
                let _ = writeln!(launch, "{size} = {value}");
            }
        }
        let _ = writeln!(
            launch,
            "[launch]\ngrid = [{}]\nblock = {block}",
            grid.join(", ")
        );
        let kind = |ty: &str| match ty {
            "float" => ("f32", "{ kind = \"uniform\", low = -1.0, high = 1.0 }"),
            "double" => ("f64", "{ kind = \"uniform\", low = -1.0, high = 1.0 }"),
            "int" => ("s32", "{ kind = \"uniform\", low = -9, high = 9 }"),
            "unsigned char" => ("u8", "{ kind = \"bits\" }"),
            _ => ("u32", "{ kind = \"uniform\", low = 0, high = 20 }"),
        };
        for input in &self.inputs {
            let (ty, init) = kind(input.ty);
            let shape: Vec<String> = input.length.iter().map(|l| format!("\"{l}\"")).collect();
            let _ = writeln!(
                launch,
                "[[args]]\nname = \"{}\"\ntype = \"{ty}\"\nshape = [{}]\ninit = {init}",
                input.name,
                shape.join(", ")
            );
        }
        for number in 0..results {
            let (ty, init) = kind(self.ty);
            let shape: Vec<String> = match by_rows {
                true => vec!["\"n\"".into(), "\"k\"".into()],
                false if self.counts => vec!["\"(n + m + d + k + 256)\"".into()],
                false => self
                    .dims
                    .iter()
                    .map(|(_, size)| format!("\"{size}\""))
                    .collect(),
            };
            let _ = writeln!(
                launch,
                "[[args]]\nname = \"out{number}\"\ntype = \"{ty}\"\nshape = [{}]\ninit = {init}\noutput = true",
                shape.join(", ")
            );
        }
        for size in SIZES {
            let _ = writeln!(
                launch,
                "[[args]]\nname = \"{size}\"\ntype = \"s32\"\nvalue = \"{size}\""
            );
        }
        let _ = writeln!(
            launch,
            "[[args]]\nname = \"total\"\ntype = \"s32\"\nvalue = \"{product}\""
        );
        Kernel {
            name: name.to_owned(),
            text,
            launch,
            sizes: count,
            reassociate: reassociate && !self.exact,
            refused: self.refused,
        }
    }
}
