//! A program as PTX text, and its launch description.
//!
//! Parameters: three input arrays (32-bit words, singles, doubles), the output (one 64-bit cell
//! per thread and register) and a few counters.

use std::fmt::Write;

use crate::program::{Ending, Kind, Operand, Program, Stmt};
use crate::rare::Sum;

/// Elements of the input arrays of words and singles (a power of two).
const WORDS: usize = 1024;
/// Elements of the input array of doubles (a power of two).
const DOUBLES: usize = 512;
/// Cells of the counter array (a power of two).
const COUNTERS: usize = 16;
/// Words of the local array (a power of two).
const LOCALS: usize = 8;

/// Registers of a thread of a kernel that gives some away, and while it has fewer.
const REGISTERS: [usize; 2] = [128, 64];

/// The kernel as a PTX module for sm_75 and later, or what its statements need; the entry is called `fuzz`.
pub fn print(program: &Program) -> String {
    let mut out = String::new();
    let mut printer = Printer {
        out: &mut out,
        program,
        labels: 0,
        depth: 0,
        loops: 0,
    };
    printer.module();
    out
}

/// The launch description (TOML) of the kernel that [`print`] makes.
pub fn launch_toml(program: &Program) -> String {
    let threads = program.grid * program.block;
    let cells = threads * cells_per_thread(program);
    let sums = match has_sums(program) {
        true => format!(
            "\n[[args]]\nname = \"sums\"\ntype = \"u32\"\nshape = [{}]\ninit = {{ kind = \"zeros\" }}\noutput = true\n",
            Sum::WORDS
        ),
        false => String::new(),
    };
    format!(
        "kernel = \"fuzz\"\nabout = \"generated, seed {}\"\n\n[sizes.small]\n\n[launch]\n\
         grid = [{}]\nblock = [{}]\n\n\
         [[args]]\nname = \"words\"\ntype = \"u32\"\nshape = [{WORDS}]\ninit = {{ kind = \"bits\", seed = 1 }}\n\n\
         [[args]]\nname = \"singles\"\ntype = \"f32\"\nshape = [{WORDS}]\ninit = {{ kind = \"uniform\", low = -100.0, high = 100.0, seed = 2 }}\n\n\
         [[args]]\nname = \"doubles\"\ntype = \"f64\"\nshape = [{DOUBLES}]\ninit = {{ kind = \"uniform\", low = -100.0, high = 100.0, seed = 3 }}\n\n\
         [[args]]\nname = \"out\"\ntype = \"u64\"\nshape = [{cells}]\ninit = {{ kind = \"poison\" }}\noutput = true\n\n\
         [[args]]\nname = \"counters\"\ntype = \"u32\"\nshape = [{COUNTERS}]\ninit = {{ kind = \"zeros\" }}\noutput = true\n{sums}",
        program.seed, program.grid, program.block
    )
}

/// Are there common cells of floating-point numbers?
fn has_sums(program: &Program) -> bool {
    program.count(|stmt| matches!(stmt, Stmt::Rare(rare) if rare.is_common())) > 0
}

/// Cells of a thread that its statements use.
fn own_cells(program: &Program) -> usize {
    2 * usize::from(program.count(|stmt| matches!(stmt, Stmt::Rare(rare) if rare.is_own())) > 0)
}

/// Cells of a thread: those, and one for each register. Neighbours in the former lie at multiples of 16 bytes.
fn cells_per_thread(program: &Program) -> usize {
    let registers: usize = program.pool.iter().sum();
    match own_cells(program) {
        0 => registers,
        own => (own + registers).next_multiple_of(own),
    }
}

pub(crate) struct Printer<'a> {
    out: &'a mut String,
    pub(crate) program: &'a Program,
    labels: usize,
    depth: usize,
    pub(crate) loops: usize,
}

impl Printer<'_> {
    /// A line outside of functions.
    pub(crate) fn top(&mut self, text: &str) {
        let _ = writeln!(self.out, "{text}");
    }

    pub(crate) fn cells(&self) -> usize {
        cells_per_thread(self.program)
    }

    pub(crate) fn line(&mut self, text: &str) {
        let indent = 4 * (self.depth + 1);
        let _ = writeln!(self.out, "{:indent$}{text}", "");
    }

    fn has_local_array(&self) -> bool {
        self.program
            .count(|stmt| matches!(stmt, Stmt::Local { .. }))
            > 0
    }

    fn label(&mut self) -> String {
        self.labels += 1;
        format!("L{}", self.labels)
    }

    /// Version and target, as low as they can be.
    fn head(&mut self) {
        let program = self.program;
        let has = |is: &dyn Fn(&Stmt) -> bool| program.count_all(is) > 0;
        let (version, target) = if has(&|stmt| matches!(stmt, Stmt::Fewer(_))) {
            ("8.0", "sm_90a")
        } else if has(&|stmt| matches!(stmt, Stmt::Rare(rare) if rare.is_new())) {
            ("7.8", "sm_90")
        } else {
            ("7.8", "sm_75")
        };
        self.top(&format!(
            "// warpwright fuzz, seed {}\n.version {version}\n.target {target}\n.address_size 64\n",
            program.seed
        ));
    }

    /// Declares the registers of the pools, those for one statement each, and counters of loops.
    pub(crate) fn registers(&mut self, pool: &[usize; 6], loops: usize) {
        for (kind, &count) in Kind::ALL.iter().zip(pool) {
            self.line(&format!(".reg {} {}<{count}>;", kind.decl(), kind.prefix()));
        }
        self.line(".reg .b32 %t<8>;");
        self.line(".reg .b64 %a<8>;");
        self.line(".reg .pred %q;");
        if loops > 0 {
            self.line(&format!(".reg .b32 %n<{loops}>;"));
        }
    }

    fn module(&mut self) {
        let program = self.program;
        self.head();
        self.variables();
        self.functions();
        let has_sums = has_sums(program);
        let sums = if has_sums {
            ",\n    .param .u64 sums"
        } else {
            ""
        };
        let fewer = program.count(|stmt| matches!(stmt, Stmt::Fewer(_))) > 0;
        let limit = match fewer {
            true => format!(".maxnreg {}\n", REGISTERS[0]),
            false => String::new(),
        };
        self.top(&format!(
            ".visible .entry fuzz(\n    .param .u64 words,\n    .param .u64 singles,\n    \
             .param .u64 doubles,\n    .param .u64 out,\n    .param .u64 counters{sums}\n)\n\
             {limit}.reqntid {}, 1, 1\n{{",
            program.block
        ));
        let loops = program.count(|stmt| matches!(stmt, Stmt::Loop { .. }));
        self.registers(&program.pool, loops);
        if has_sums {
            self.line(".reg .f32 %g<2>;");
            self.line(".reg .f64 %h<2>;");
            self.line(".reg .b64 %b<1>;");
        }
        self.line(&format!(
            ".shared .align 8 .b8 exchange[{}];",
            program.block * 8
        ));
        if self.has_local_array() {
            self.line(&format!(".local .align 4 .b8 scratch[{}];", LOCALS * 4));
        }
        self.loops = 0;
        self.prologue();
        self.stmts(&program.body);
        self.epilogue();
        match program.ending {
            Ending::Ret => self.line("ret;"),
            Ending::Exit => self.line("exit;"),
            Ending::Falls => {}
        }
        self.top("}");
    }

    /// `%t0` is the thread in the block, `%t1` the thread in the grid; `%a0` to `%a4` are the
    /// parameters as global addresses, `%a5` the thread's own exchange slot.
    fn prologue(&mut self) {
        let names = ["words", "singles", "doubles", "out", "counters"];
        for (i, name) in names.iter().enumerate() {
            self.line(&format!("ld.param.u64 %a{i}, [{name}];"));
            self.line(&format!("cvta.to.global.u64 %a{i}, %a{i};"));
        }
        if has_sums(self.program) {
            self.line("ld.param.u64 %b0, [sums];");
            self.line("cvta.to.global.u64 %b0, %b0;");
        }
        self.line("mov.u32 %t0, %tid.x;");
        self.line("mov.u32 %t2, %ctaid.x;");
        self.line("mov.u32 %t3, %ntid.x;");
        self.line("mad.lo.u32 %t1, %t2, %t3, %t0;");
        self.line("mov.u64 %a5, exchange;");
        self.line("mad.wide.u32 %a5, %t0, 8, %a5;");
        if self.has_local_array() {
            self.line("mov.u64 %a6, scratch;");
            for i in 0..LOCALS {
                self.line(&format!("st.local.u32 [%a6+{}], %t1;", 4 * i));
            }
        }
        for i in 0..self.program.pool(Kind::B32) {
            self.line(&format!(
                "mad.lo.u32 %r{i}, %t1, {}, {};",
                2 * i + 1,
                77 * i
            ));
        }
        for i in 0..self.program.pool(Kind::B64) {
            self.line(&format!("mul.wide.u32 %rd{i}, %t1, {};", 40_503 * (i + 1)));
        }
        for i in 0..self.program.pool(Kind::B16) {
            self.line(&format!("cvt.u16.u32 %rs{i}, %t1;"));
        }
        for i in 0..self.program.pool(Kind::F32) {
            self.line(&format!("add.u32 %t4, %t1, {};", 13 * i));
            self.load(Kind::F32, &[i], "%t4");
        }
        for i in 0..self.program.pool(Kind::F64) {
            self.line(&format!("add.u32 %t4, %t1, {};", 29 * i));
            self.load(Kind::F64, &[i], "%t4");
        }
        for i in 0..self.program.pool(Kind::Pred) {
            self.line(&format!("and.b32 %t4, %t1, {};", i + 1));
            self.line(&format!("setp.eq.u32 %p{i}, %t4, 0;"));
        }
    }

    /// Every register of every pool goes to a cell of the thread's own, so all are live to the end.
    fn epilogue(&mut self) {
        self.own();
        let mut cell = own_cells(self.program);
        for kind in Kind::ALL {
            for i in 0..self.program.pool(kind) {
                let at = format!("[%a7+{}]", 8 * cell);
                cell += 1;
                let reg = format!("{}{i}", kind.prefix());
                match kind {
                    Kind::B64 => self.line(&format!("st.global.b64 {at}, {reg};")),
                    Kind::F64 => self.line(&format!("st.global.f64 {at}, {reg};")),
                    _ => {
                        let to_word = match kind {
                            Kind::B32 => format!("mov.b32 %t4, {reg};"),
                            Kind::F32 => format!("mov.b32 %t4, {reg};"),
                            Kind::B16 => format!("cvt.u32.u16 %t4, {reg};"),
                            _ => format!("selp.b32 %t4, 1, 0, {reg};"),
                        };
                        self.line(&to_word);
                        self.line(&format!("st.global.v2.b32 {at}, {{%t4, %t4}};"));
                    }
                }
            }
        }
    }

    fn load(&mut self, kind: Kind, dst: &[usize], index: &str) {
        let ty = self.element(kind, dst.len(), index);
        let regs: Vec<String> = dst
            .iter()
            .map(|i| format!("{}{i}", kind.prefix()))
            .collect();
        if let [one] = &regs[..] {
            self.line(&format!("ld.global.{ty} {one}, [%a7];"));
        } else {
            let width = regs.len();
            self.line(&format!(
                "ld.global.v{width}.{ty} {{{}}}, [%a7];",
                regs.join(", ")
            ));
        }
    }

    /// `%a7` becomes the address of an element of the array of a kind, behind which come as many as there are in a
    /// vector; its type.
    pub(crate) fn element(&mut self, kind: Kind, width: usize, index: &str) -> &'static str {
        let (array, elements, bytes, ty) = match kind {
            Kind::F32 => ("%a1", WORDS, 4, "f32"),
            Kind::F64 => ("%a2", DOUBLES, 8, "f64"),
            Kind::B64 => ("%a0", WORDS / 2, 8, "b64"),
            _ => ("%a0", WORDS, 4, "b32"),
        };
        self.line(&format!("and.b32 %t5, {index}, {};", elements - width));
        self.line(&format!("mad.wide.u32 %a7, %t5, {bytes}, {array};"));
        ty
    }

    pub(crate) fn stmts(&mut self, stmts: &[Stmt]) {
        for stmt in stmts {
            self.stmt(stmt);
        }
    }

    fn stmt(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::Op {
                opcode,
                dst,
                src,
                guard,
            } => {
                let guard = match guard {
                    Some((p, true)) => format!("@!%p{p} "),
                    Some((p, false)) => format!("@%p{p} "),
                    None => String::new(),
                };
                let operands: Vec<String> = dst.iter().chain(src).map(text).collect();
                self.line(&format!("{guard}{opcode} {};", operands.join(", ")));
            }
            Stmt::Load {
                kind,
                dst,
                index,
                width,
            } => {
                let regs: Vec<usize> = (*dst..dst + width).collect();
                self.load(*kind, &regs, &format!("%r{index}"));
            }
            Stmt::Local {
                value,
                store,
                load,
                dst,
            } => {
                for (index, access) in [
                    (store, format!("st.local.u32 [%a7], %r{value};")),
                    (load, format!("ld.local.u32 %r{dst}, [%a7];")),
                ] {
                    self.line(&format!("and.b32 %t5, %r{index}, {};", LOCALS - 1));
                    self.line("mad.wide.u32 %a7, %t5, 4, %a6;");
                    self.line(&access);
                }
            }
            Stmt::Exchange { kind, reg, flip } => self.exchange(*kind, *reg, *flip),
            Stmt::Shuffle {
                mode,
                reg,
                lane,
                pred,
            } => {
                let clamp = if *mode == "up" { 0 } else { 31 };
                self.line(&format!(
                    "shfl.sync.{mode}.b32 %r{reg}|%p{pred}, %r{reg}, {lane}, {clamp}, -1;"
                ));
            }
            Stmt::Vote {
                mode: "ballot",
                pred,
                dst,
            } => {
                self.line(&format!("vote.sync.ballot.b32 %r{dst}, %p{pred}, -1;"));
            }
            Stmt::Vote { mode, pred, dst } => {
                self.line(&format!("vote.sync.{mode}.pred %p{dst}, %p{pred}, -1;"));
            }
            Stmt::Reduce { value, cell } => {
                self.line(&format!("and.b32 %t5, %r{cell}, {};", COUNTERS - 1));
                self.line("mad.wide.u32 %a7, %t5, 4, %a4;");
                self.line(&format!("red.global.add.u32 [%a7], %r{value};"));
            }
            Stmt::If {
                pred,
                negated,
                then,
                otherwise,
            } => {
                let (not_taken, end) = (self.label(), self.label());
                let skip = if *negated { "" } else { "!" };
                self.line(&format!("@{skip}%p{pred} bra {not_taken};"));
                self.nested(then);
                self.line(&format!("bra {end};"));
                self.line(&format!("{not_taken}:"));
                self.nested(otherwise);
                self.line(&format!("{end}:"));
            }
            Stmt::Loop { count, body } => {
                let (head, counter) = (self.label(), self.loops);
                self.loops += 1;
                self.line(&format!("mov.u32 %n{counter}, {count};"));
                self.line(&format!("{head}:"));
                self.nested(body);
                self.line(&format!("add.s32 %n{counter}, %n{counter}, -1;"));
                self.line(&format!("setp.ne.s32 %q, %n{counter}, 0;"));
                self.line(&format!("@%q bra {head};"));
            }
            Stmt::Fewer(body) => {
                let [all, fewer] = REGISTERS;
                self.line(&format!("setmaxnreg.dec.sync.aligned.u32 {fewer};"));
                self.nested(body);
                self.line(&format!("setmaxnreg.inc.sync.aligned.u32 {all};"));
            }
            Stmt::Rare(rare) => self.rare(rare),
        }
    }

    fn nested(&mut self, stmts: &[Stmt]) {
        self.depth += 1;
        self.stmts(stmts);
        self.depth -= 1;
    }

    /// The partner is `(tid + flip) mod block`, which is a permutation for any block size.
    fn exchange(&mut self, kind: Kind, reg: usize, flip: usize) {
        let ty = if kind == Kind::B64 { "b64" } else { "b32" };
        let reg = format!("{}{reg}", kind.prefix());
        self.line(&format!("st.shared.{ty} [%a5], {reg};"));
        self.line("bar.sync 0;");
        self.partner(flip);
        self.line(&format!("ld.shared.{ty} {reg}, [%a7];"));
        self.line("bar.sync 0;");
    }

    /// `%a7` becomes the address of the partner's slot.
    pub(crate) fn partner(&mut self, flip: usize) {
        self.line(&format!("add.u32 %t5, %t0, {flip};"));
        self.line(&format!("rem.u32 %t5, %t5, {};", self.program.block));
        self.line("mov.u64 %a7, exchange;");
        self.line("mad.wide.u32 %a7, %t5, 8, %a7;");
    }
}

fn text(operand: &Operand) -> String {
    match operand {
        Operand::Reg(kind, i) => format!("{}{i}", kind.prefix()),
        Operand::Text(text) => text.clone(),
    }
}
