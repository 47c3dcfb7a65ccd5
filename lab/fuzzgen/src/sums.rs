//! Kernels whose loops store to the same places again and again, and launches whose pointers may be one.

use std::fmt::Write;

use crate::rng::Rng;

/// A kernel `fuzz` of one thread with launches of it.
#[derive(Debug, Clone)]
pub struct Sums {
    /// The module.
    pub text: String,
    /// Launches, descriptions: the pointers lie in one array, here and there.
    pub launches: Vec<String>,
}

/// Pointers that stay where they are in the loop, and as many that move on.
const POINTERS: usize = 2;
/// Iterations, of a short launch and of a long one.
const ITERATIONS: [usize; 2] = [5, 30];
/// Elements of the array.
const ELEMENTS: usize = 48;
/// Values.
const VALUES: usize = 4;

#[derive(Debug, Clone, Copy)]
struct Element {
    name: &'static str,
    bytes: usize,
    prefix: &'static str,
    is_float: bool,
}

const TYPES: [Element; 4] = [
    element("u32", 4, "%r", false),
    element("u64", 8, "%rd", false),
    element("f32", 4, "%f", true),
    element("f64", 8, "%fd", true),
];

const fn element(
    name: &'static str,
    bytes: usize,
    prefix: &'static str,
    is_float: bool,
) -> Element {
    Element {
        name,
        bytes,
        prefix,
        is_float,
    }
}

/// The kernel of a seed.
pub fn sums(seed: u64) -> Sums {
    let mut rng = Rng::new(seed);
    let ty = *rng.pick(&TYPES);
    let launches = (0..6).map(|_| launch(&mut rng, ty)).collect();
    let is_plain = rng.chance(40);
    let mut writer = Writer {
        rng,
        ty,
        is_plain,
        text: String::new(),
        labels: 0,
    };
    writer.body();
    let text = format!(
        ".version 8.0\n.target sm_90\n.address_size 64\n\n.visible .entry fuzz(.param .u64 m, .param .u64 p0, .param .u64 p1, \
         .param .u64 q0, .param .u64 q1, .param .u32 n)\n{{\n\t.reg .pred %p<8>;\n\t.reg .b32 %r<16>;\n\t.reg .b64 \
         %rd<32>;\n\t.reg .f32 %f<16>;\n\t.reg .f64 %fd<16>;\n\n{}\tret;\n}}\n",
        writer.text
    );
    Sums { text, launches }
}

/// All pointers in the first elements of one array.
fn launch(rng: &mut Rng, ty: Element) -> String {
    let mut text = format!(
        "kernel = \"fuzz\"\n[sizes.small]\n[launch]\ngrid = [1]\nblock = [1]\n[[args]]\nname = \"m\"\ntype = \"{}\"\nshape = \
         [{ELEMENTS}]\ninit = {{ kind = \"iota\", start = 3 }}\noutput = true\n",
        ty.name
    );
    for name in ["p0", "p1", "q0", "q1"] {
        let offset = rng.below(7) * ty.bytes;
        let table = format!("[[args]]\nname = \"{name}\"\nalias = \"m\"\noffset = {offset}\n");
        text.push_str(&table);
    }
    let most = *rng.pick(&ITERATIONS);
    let n = rng.range(1, most);
    text + &format!("[[args]]\nname = \"n\"\ntype = \"u32\"\nvalue = {n}\n")
}

struct Writer {
    rng: Rng,
    ty: Element,
    /// Is the loop one block without guards, whose other accesses are loads?
    is_plain: bool,
    text: String,
    labels: u32,
}

impl Writer {
    fn line(&mut self, text: impl AsRef<str>) {
        // Writing to a string does not fail.
        let _: std::fmt::Result = writeln!(self.text, "\t{}", text.as_ref());
    }

    fn label(&mut self, name: &str) {
        let _: std::fmt::Result = writeln!(self.text, "{name}:");
    }

    fn body(&mut self) {
        for (number, name) in ["p0", "p1", "q0", "q1"].iter().enumerate() {
            self.line(format!("ld.param.u64 %rd{}, [{name}];", 20 + number));
        }
        self.line("ld.param.u64 %rd24, [m];");
        self.line("ld.param.u32 %r14, [n];");
        self.line("mov.u32 %r15, 0;");
        for value in 0..VALUES {
            let (value, bits) = (self.value(value), 8 * self.ty.bytes);
            self.line(format!("mov.b{bits} {value}, 1;"));
        }
        let is_entered_twice = self.rng.chance(30);
        if is_entered_twice {
            self.line("setp.eq.u32 %p0, %r14, 3;");
            self.line("@%p0 bra $LOOP;");
            self.line("mov.u32 %r15, 1;");
        }
        self.label("$LOOP");
        self.iteration();
        self.turn_back(is_entered_twice);
        self.label("$OUT");
        let ty = self.ty.name;
        let value = self.any();
        let last = (ELEMENTS - 1) * self.ty.bytes;
        self.line(format!("st.global.{ty} [%rd24+{last}], {value};"));
    }

    /// Counts in one of several ways; up to nothing but equality only from nought.
    fn turn_back(&mut self, is_entered_twice: bool) {
        let lines = match self.rng.below(4) {
            0 if !is_entered_twice => [
                "add.u32 %r15, %r15, 1;",
                "setp.ne.u32 %p7, %r15, %r14;",
                "@%p7 bra $LOOP;",
            ],
            1 => [
                "setp.gt.s32 %p7, %r14, 1;",
                "add.s32 %r14, %r14, -1;",
                "@%p7 bra $LOOP;",
            ],
            2 => [
                "sub.u32 %r14, %r14, 1;",
                "setp.eq.u32 %p7, %r14, 0;",
                "@!%p7 bra $LOOP;",
            ],
            _ => [
                "add.u32 %r15, %r15, 1;",
                "setp.lt.u32 %p7, %r15, %r14;",
                "@%p7 bra $LOOP;",
            ],
        };
        lines.into_iter().for_each(|line| self.line(line));
    }

    /// An iteration: what it does before the stores in any case, and behind them.
    fn iteration(&mut self) {
        self.line("and.b32 %r13, %r15, 1;");
        self.line("setp.eq.u32 %p1, %r13, 0;");
        self.steps(3);
        for pointer in 0..POINTERS {
            if pointer == 0 || self.rng.chance(50) {
                let offset = self.ty.bytes * (pointer % 2);
                self.add(pointer, offset);
            }
            self.steps(2);
        }
        if !self.is_plain && self.rng.chance(40) {
            self.line("setp.eq.u32 %p2, %r15, 2;");
            self.line("@%p2 bra $OUT;");
        }
        self.steps(2);
        for pointer in 0..POINTERS {
            let at = 22 + pointer;
            let bytes = self.ty.bytes;
            self.line(format!("add.s64 %rd{at}, %rd{at}, {bytes};"));
        }
    }

    /// `*p += value`, or without what stands there.
    fn add(&mut self, pointer: usize, offset: usize) {
        let ty = self.ty.name;
        let place = format!("[%rd{}+{offset}]", 20 + pointer);
        let (to, from) = (self.any(), self.any());
        if self.rng.chance(80) {
            self.line(format!("ld.global.{ty} {to}, {place};"));
        }
        self.line(format!("add.{ty} {to}, {to}, {from};"));
        self.line(format!("st.global.{ty} {place}, {to};"));
    }

    fn steps(&mut self, most: usize) {
        for _ in 0..self.rng.below(most + 1) {
            match self.rng.below(12) {
                1..=8 if self.is_plain => self.access(true),
                0 if !self.is_plain => self.around(),
                1..=5 => self.access(true),
                6..=8 => self.access(false),
                _ => self.arithmetic(),
            }
        }
    }

    /// A few accesses that odd iterations pass by.
    fn around(&mut self) {
        let label = format!("$AROUND{}", self.labels);
        self.labels += 1;
        self.line(format!("@!%p1 bra {label};"));
        self.access(true);
        self.access(false);
        self.label(&label);
    }

    fn access(&mut self, is_load: bool) {
        let guards = ["", "", "@%p1 ", "@!%p1 "];
        let guard = if self.is_plain {
            ""
        } else {
            *self.rng.pick(&guards)
        };
        let space = *self.rng.pick(&[".global", ".global", ""]);
        let pointer = 20 + self.rng.below(2 * POINTERS);
        let offset = self.rng.below(3) * self.ty.bytes;
        let (ty, value) = (self.ty.name, self.any());
        let place = format!("[%rd{pointer}+{offset}]");
        match is_load {
            true => self.line(format!("{guard}ld{space}.{ty} {value}, {place};")),
            false => self.line(format!("{guard}st{space}.{ty} {place}, {value};")),
        }
    }

    fn arithmetic(&mut self) {
        let (to, a, b) = (self.any(), self.any(), self.any());
        let opcode = match self.ty.is_float {
            true => *self.rng.pick(&["add", "mul", "sub"]),
            false => *self.rng.pick(&["add", "mul.lo", "sub"]),
        };
        let ty = self.ty.name;
        self.line(format!("{opcode}.{ty} {to}, {a}, {b};"));
    }

    fn any(&mut self) -> String {
        let number = self.rng.below(VALUES);
        self.value(number)
    }

    fn value(&self, number: usize) -> String {
        format!("{}{number}", self.ty.prefix)
    }
}
