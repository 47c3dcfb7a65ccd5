//! Kernels on whole numbers: pixels, cells that live or die, sums that are cut off.

use std::fmt::Write as _;

use warpwright_fuzzgen::Rng;

use crate::generate::Kernel;

/// A type of elements, and the largest number of it, if values are cut off there.
const TYPES: [(&str, Option<i64>); 8] = [
    ("unsigned char", Some(255)),
    ("unsigned char", Some(255)),
    ("signed char", None),
    ("short", Some(32_767)),
    ("unsigned short", Some(65_535)),
    ("int", None),
    ("unsigned", None),
    ("float", None),
];

/// Numbers at the ends of types, beside them and beyond.
const ENDS: [i64; 28] = [
    -1, 0, 1, 100, 127, 128, 129, 139, 200, 254, 255, 256, 257, 300, 1000, -2, -127, -128, -129,
    -139, -200, -256, 32_767, 32_768, -32_768, -32_769, 65_535, 65_536,
];

/// Types of variables and conversions.
const NARROW: [&str; 7] = [
    "int",
    "unsigned char",
    "signed char",
    "short",
    "unsigned short",
    "unsigned",
    "int",
];

struct Pixels<'a> {
    rng: &'a mut Rng,
    /// The elements that are read, by their distance in rows and columns.
    reads: Vec<String>,
    /// Variables of the point.
    values: Vec<String>,
}

/// A random kernel on two dimensions.
pub(crate) fn kernel(rng: &mut Rng, name: &str) -> Kernel {
    let (from, _) = *rng.pick(&TYPES[..7]);
    let (to, most) = *rng.pick(&TYPES);
    let reach = rng.range(1, 2) as i64;
    // Beyond the ends: not computed, the last cell, left out.
    let ends = rng.below(3);
    let more = rng.pick(&[
        "",
        "",
        "",
        ", unsigned bound",
        ", signed char bound",
        ", unsigned char bound",
    ]);
    let mut text = format!(
        "extern \"C\" __global__ void {name}({to}* out, const {from}* in, int nx, int ny, int level, float gain{more})\n{{\n    \
         int i = blockIdx.x * blockDim.x + threadIdx.x;\n    int j = blockIdx.y * blockDim.y + threadIdx.y;\n"
    );
    let margin = if ends == 0 { reach } else { 0 };
    let _ = writeln!(
        text,
        "    if (i < {margin} || j < {margin} || i >= nx - {margin} || j >= ny - {margin}) return;"
    );
    let at = |y: i64, x: i64| match ends {
        1 => format!("in[min(max(j + {y}, 0), ny - 1) * nx + min(max(i + {x}, 0), nx - 1)]"),
        _ => format!("in[(j + {y}) * nx + i + {x}]"),
    };
    let mut reads = Vec::new();
    for y in -reach..=reach {
        for x in -reach..=reach {
            let whole = ends != 2 || (y, x) == (0, 0);
            if rng.chance(60) || (y, x) == (0, 0) {
                reads.push(match whole {
                    true => at(y, x),
                    false => {
                        let mut tests = Vec::new();
                        for (name, by, size) in [("j", y, "ny"), ("i", x, "nx")] {
                            match by {
                                0 => {}
                                1.. => tests.push(format!("{name} + {by} < {size}")),
                                _ => tests.push(format!("{name} >= {}", -by)),
                            }
                        }
                        format!("({} ? {} : 0)", tests.join(" && "), at(y, x))
                    }
                });
            }
        }
    }
    if !more.is_empty() {
        reads.push("bound".to_owned());
    }
    let mut pixels = Pixels {
        rng,
        reads,
        values: Vec::new(),
    };
    let mut lines = Vec::new();
    for number in 0..pixels.rng.range(1, 4) {
        pixels.statement(number, &mut lines);
    }
    if ends != 1 && pixels.rng.chance(40) {
        pixels.counted(reach, ends == 2, &mut lines);
    }
    let mut value = pixels.value(3);
    if let Some(most) = most.filter(|_| pixels.rng.chance(70)) {
        value = match pixels.rng.below(3) {
            0 => format!("min(max((int)({value}), 0), {most})"),
            1 => {
                lines.push(format!("int last = {value};"));
                lines.push(format!(
                    "if (last > {most}) last = {most}; else if (last < 0) last = 0;"
                ));
                "last".to_owned()
            }
            _ => {
                lines.push(format!("int last = {value};"));
                format!("last < 0 ? 0 : (last > {most} ? {most} : last)")
            }
        };
    }
    let cast = if pixels.rng.chance(50) {
        format!("({to})({value})")
    } else {
        value
    };
    lines.push(match pixels.rng.below(8) {
        0 => format!("out[j * nx + i] += {cast};"),
        1 => format!("if ({}) out[j * nx + i] = {cast};", pixels.condition()),
        _ => format!("out[j * nx + i] = {cast};"),
    });
    for line in lines {
        let _ = writeln!(text, "    {line}");
    }
    text += "}\n";
    Kernel {
        name: name.to_owned(),
        text,
        instance: None,
    }
}

impl Pixels<'_> {
    fn read(&mut self) -> String {
        match self.values.is_empty() || self.rng.chance(60) {
            true => self.rng.pick(&self.reads).clone(),
            false => self.rng.pick(&self.values).clone(),
        }
    }

    /// A number near the ends of types.
    fn end(&mut self) -> String {
        let end = *self.rng.pick(&ENDS);
        match end < 0 && self.rng.chance(50) {
            true => format!("({end})"),
            false => end.to_string(),
        }
    }

    fn condition(&mut self) -> String {
        let op = *self.rng.pick(&["<", "<=", ">", ">=", "==", "!="]);
        let (a, b) = (self.read(), self.read());
        let end = self.end();
        match self.rng.below(12) {
            6 | 7 => format!("{a} {op} {end}"),
            8 => format!("{end} {op} {a}"),
            9 => format!("{a} {op} {end} && {b} {op} {}", self.end()),
            10 => format!("({})({a}) {op} {end}", self.rng.pick(&NARROW)),
            11 => format!("{a} - {b} {op} {end}"),
            0 => format!("{a} {op} {b}"),
            1 => format!("{a} {op} level"),
            2 => format!("({a} & 1) != 0 && {b} {op} 3"),
            3 => format!("{a} & 4"),
            4 => format!("!({a} {op} 2) || {b} == 3"),
            _ => format!("{a} {op} {}", self.rng.below(200)),
        }
    }

    /// An expression of whole numbers.
    fn value(&mut self, depth: usize) -> String {
        if depth == 0 {
            return self.read();
        }
        let (a, b) = (self.value(depth - 1), self.value(depth - 1));
        match self.rng.below(28) {
            20 => format!("~({a})"),
            21 => format!("({})({a})", self.rng.pick(&NARROW)),
            22 => format!("({} ? {a} : {})", self.condition(), self.end()),
            23 => format!("({} ? {} : {})", self.condition(), self.end(), self.end()),
            24 => format!("min((int)({a}), {})", self.end()),
            25 => format!("max({}, (int)({a}))", self.end()),
            26 => format!(
                "({a} {} {})",
                self.rng.pick(&["+", "-", "&", "|", "^"]),
                self.end()
            ),
            27 => format!(
                "({})({} * ({a}))",
                self.rng.pick(&NARROW),
                self.rng.pick(&["0.5f", "1.0f", "0.75"])
            ),
            0..=3 => format!("({a} + {b})"),
            4 | 5 => format!("({a} - {b})"),
            6 => format!("({a}) * {}", self.rng.range(1, 9)),
            7 => format!("({a}) / {}", self.rng.range(1, 9)),
            8 => format!("({a}) % {}", self.rng.range(2, 9)),
            9 => format!("({a} >> {})", self.rng.below(5)),
            10 => format!("(({a} & 255) << {})", self.rng.below(4)),
            11 => format!("({a} {} {})", self.rng.pick(&["&", "|", "^"]), self.read()),
            12 => format!("abs((int)({a}))"),
            13 => format!("min((int)({a}), (int)({b}))"),
            14 => format!("max((int)({a}), {})", self.rng.below(300)),
            15 => format!("({} ? {a} : {b})", self.condition()),
            16 => format!("(int)({} * {a})", self.rng.pick(&["gain", "0.25f", "1.5"])),
            17 => format!("({} == level)", self.read()),
            18 => format!("-{}", self.read()),
            _ => format!("(unsigned char)({a})"),
        }
    }

    fn statement(&mut self, number: usize, lines: &mut Vec<String>) {
        let ty = *self.rng.pick(&NARROW);
        let name = format!("v{number}");
        let value = match self.rng.chance(15) {
            true => self.end(),
            false => self.value(2),
        };
        lines.push(format!("{ty} {name} = {value};"));
        let (condition, more) = (self.condition(), self.value(1));
        let op = *self.rng.pick(&["=", "+=", "-=", "*=", "|=", "^="]);
        let end = self.end();
        match self.rng.below(8) {
            5 => lines.push(format!("if ({condition}) {name} = {end};")),
            6 => lines.push(format!("if ({name} > {end}) {name} = {end};")),
            7 => lines.push(format!(
                "{name} {} {end};",
                self.rng.pick(&["+=", "-=", "^=", "="])
            )),
            0 => lines.push(format!("{name} {op} {more};")),
            1 => lines.push(format!("if ({condition}) {name} {op} {more};")),
            2 => lines.push(format!("if ({condition}) {name}++; else {name} = {more};")),
            3 => lines.push(format!(
                "{name} += {} * {more};",
                self.rng.pick(&["gain", "2"])
            )),
            _ => {}
        }
        self.values.push(name);
    }

    /// Neighbours that are added up and counted.
    fn counted(&mut self, reach: i64, beyond: bool, lines: &mut Vec<String>) {
        lines.push("int sum = 0, count = 0;".to_owned());
        let test = match (beyond, self.rng.chance(50)) {
            (true, _) => "j + y >= 0 && j + y < ny && i + x >= 0 && i + x < nx".to_owned(),
            (false, true) => "in[(j + y) * nx + i + x] > 3".to_owned(),
            (false, false) => "y != 0 || x != 0".to_owned(),
        };
        lines.push(format!(
            "for (int y = -{reach}; y <= {reach}; y++)\n        for (int x = -{reach}; x <= {reach}; ++x)\n            \
             if ({test}) {{ sum += in[(j + y) * nx + i + x]; count++; }}"
        ));
        self.values.push("sum".to_owned());
        self.values.push(match beyond {
            true => "sum / count".to_owned(),
            false => "count".to_owned(),
        });
    }
}
