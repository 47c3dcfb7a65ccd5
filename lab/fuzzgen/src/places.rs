//! Kernels whose threads write what they make of their places in the grid, and another shape for their launch.

use std::fmt::Write;

use crate::rng::Rng;

/// A kernel `fuzz` with its launch.
#[derive(Debug, Clone)]
pub struct Places {
    /// The module.
    pub text: String,
    /// The launch, a description.
    pub launch: String,
    /// Blocks of its grid.
    pub grid: [u32; 3],
    /// Threads of its blocks.
    pub block: [u32; 3],
    /// Threads of the other blocks, which divide the same threads.
    pub shape: [u32; 3],
    /// Does it use its threads' numbers alone, whatever the shape?
    pub is_right: bool,
}

const AXES: [char; 3] = ['x', 'y', 'z'];

struct Writer {
    rng: Rng,
    text: String,
    next: u32,
    block: [u32; 3],
    shape: [u32; 3],
    is_right: bool,
}

/// The kernel of a seed.
pub fn places(seed: u64) -> Places {
    let mut rng = Rng::new(seed);
    let threads: [u32; 3] = [8 << rng.below(4), 1 << rng.below(4), 1 << rng.below(2)];
    let divisor = |rng: &mut Rng, n: u32| 1 << rng.below(n.trailing_zeros() as usize + 1);
    let of = |rng: &mut Rng| threads.map(|n| divisor(rng, n));
    let block = of(&mut rng);
    let mut shape = of(&mut rng);
    if shape == block {
        shape[0] = if block[0] == 1 { 2 } else { block[0] / 2 };
    }
    let grid = std::array::from_fn(|axis| threads[axis] / block[axis]);
    let mut writer = Writer {
        rng,
        text: String::new(),
        next: 0,
        block,
        shape,
        is_right: true,
    };
    writer.body(threads);
    let total: u32 = threads.iter().product();
    let Writer { text, is_right, .. } = writer;
    let text = format!(
        ".version 8.0\n.target sm_90\n.address_size 64\n\n.visible .entry fuzz(.param .u64 out)\n{{\n\t.reg .b32 %r<400>;\n\t\
         .reg .b64 %rd<400>;\n\n{text}\tret;\n}}\n"
    );
    let launch = format!(
        "kernel = \"fuzz\"\n[sizes.small]\n[launch]\ngrid = {grid:?}\nblock = {block:?}\n[[args]]\nname = \"out\"\ntype = \
         \"u32\"\nshape = [{total}]\noutput = true\n"
    );
    Places {
        text,
        launch,
        grid,
        block,
        shape,
        is_right,
    }
}

impl Writer {
    fn line(&mut self, text: impl AsRef<str>) {
        // Writing to a string does not fail.
        let _: std::fmt::Result = writeln!(self.text, "\t{}", text.as_ref());
    }

    fn name(&mut self, prefix: &str) -> String {
        self.next += 1;
        format!("{prefix}{}", self.next)
    }

    /// An instruction of 32 bits with a new result.
    fn op(&mut self, opcode: &str, args: &str) -> String {
        let to = self.name("%r");
        self.line(format!("{opcode} {to}, {args};"));
        to
    }

    fn wide(&mut self, opcode: &str, args: &str) -> String {
        let to = self.name("%rd");
        self.line(format!("{opcode} {to}, {args};"));
        to
    }

    fn special(&mut self, name: &str, axis: usize) -> String {
        let read = self.op("mov.u32", &format!("%{name}.{}", AXES[axis]));
        match self.rng.chance(20) {
            true => self.op("mov.b32", &read),
            false => read,
        }
    }

    /// The thread's number along an axis, in one of the ways that compilers write it.
    fn number(&mut self, axis: usize) -> String {
        let [ctaid, ntid, tid] = ["ctaid", "ntid", "tid"].map(|name| self.special(name, axis));
        match self.rng.below(6) {
            0 => self.op("mad.lo.s32", &format!("{ctaid}, {ntid}, {tid}")),
            1 => self.op("mad.lo.u32", &format!("{ntid}, {ctaid}, {tid}")),
            2 => {
                let product = self.op("mul.lo.s32", &format!("{ntid}, {ctaid}"));
                self.op("add.s32", &format!("{tid}, {product}"))
            }
            3 => {
                // A power of two that the compiler knew.
                self.is_right &= self.block[axis] == self.shape[axis];
                let by = self.block[axis].trailing_zeros();
                let start = self.op("shl.b32", &format!("{ctaid}, {by}"));
                self.op("add.u32", &format!("{start}, {tid}"))
            }
            4 => {
                let sign = *self.rng.pick(&["u", "s"]);
                let tid = self.wide("cvt.u64.u32", &tid);
                let opcode = format!("mad.wide.{sign}32");
                let sum = self.wide(&opcode, &format!("{ctaid}, {ntid}, {tid}"));
                self.op("cvt.u32.u64", &sum)
            }
            _ => {
                let [ctaid, ntid, tid] =
                    [ctaid, ntid, tid].map(|part| self.wide("cvt.s64.s32", &part));
                let product = self.wide("mul.lo.s64", &format!("{ctaid}, {ntid}"));
                let sum = self.wide("add.s64", &format!("{product}, {tid}"));
                self.op("cvt.u32.u64", &sum)
            }
        }
    }

    /// Something else that a thread may know.
    fn other(&mut self) -> String {
        let axis = self.rng.below(3);
        let is_kept = self.block[axis] == self.shape[axis];
        match self.rng.below(5) {
            // All threads along an axis.
            0 | 1 => {
                let [ntid, nctaid] = ["ntid", "nctaid"].map(|name| self.special(name, axis));
                self.op("mul.lo.s32", &format!("{nctaid}, {ntid}"))
            }
            choice => {
                self.is_right &= is_kept;
                let name = ["tid", "ntid", "ctaid"][choice - 2];
                self.special(name, axis)
            }
        }
    }

    /// The number among all threads, within the block first.
    fn in_line(&mut self) -> String {
        let [nx, ny, nz] = [0, 1, 2].map(|axis| self.special("ntid", axis));
        let [gx, gy] = [0, 1].map(|axis| self.special("nctaid", axis));
        let [tx, ty, tz] = [0, 1, 2].map(|axis| self.special("tid", axis));
        let [cx, cy, cz] = [0, 1, 2].map(|axis| self.special("ctaid", axis));
        let plane = self.op("mad.lo.s32", &format!("{tz}, {ny}, {ty}"));
        let inside = self.op("mad.lo.s32", &format!("{plane}, {nx}, {tx}"));
        let block = self.op("mad.lo.s32", &format!("{cz}, {gy}, {cy}"));
        let block = self.op("mad.lo.s32", &format!("{block}, {gx}, {cx}"));
        let size = self.op("mul.lo.s32", &format!("{nx}, {ny}"));
        let size = self.op("mul.lo.s32", &format!("{size}, {nz}"));
        self.op("mad.lo.s32", &format!("{block}, {size}, {inside}"))
    }

    fn body(&mut self, threads: [u32; 3]) {
        let is_line = self.rng.chance(25);
        let at = match is_line {
            true => self.in_line(),
            false => {
                let [x, y, z] = [0, 1, 2].map(|axis| self.number(axis));
                let plane = self.op("mad.lo.s32", &format!("{z}, {}, {y}", threads[1]));
                self.op("mad.lo.s32", &format!("{plane}, {}, {x}", threads[0]))
            }
        };
        let mut value = self.op("mul.lo.s32", &format!("{at}, 2654435"));
        for _ in 0..self.rng.below(3) {
            let before = self.is_right;
            let other = match self.rng.chance(40) {
                true => self.other(),
                false => at.clone(),
            };
            // It is read, and nobody uses it.
            if self.rng.chance(30) {
                self.is_right = before;
                continue;
            }
            // Along an axis nothing is known of a number in one line.
            self.is_right &= !is_line || other == at || self.is_product(&other);
            value = self.op("xor.b32", &format!("{value}, {other}"));
        }
        let base = self.wide("ld.param.u64", "[out]");
        let offset = self.wide("mul.wide.u32", &format!("{at}, 4"));
        let address = self.wide("add.s64", &format!("{base}, {offset}"));
        self.line(format!("st.global.u32 [{address}], {value};"));
    }

    fn is_product(&self, register: &str) -> bool {
        self.text.contains(&format!("mul.lo.s32 {register}, "))
    }
}
