//! What compilers write seldom and passes stumble over: floating-point atomics, divisions that become routines, device
//! functions, variables of the module, shared addresses as values, cluster barriers, neighbouring accesses.

use crate::generate::Maker;
use crate::print::Printer;
use crate::program::{Config, Function, Kind, Program, Stmt, counted};

/// A statement of this kind. Registers are numbers within the pool of 32-bit integers where nothing else is said.
#[derive(Debug, Clone, PartialEq)]
pub enum Rare {
    /// An atomic addition.
    Atomic {
        /// Of what.
        ty: Sum,
        /// Where.
        place: Place,
        /// By `atom`, else by `red`.
        returned: bool,
        /// Register added, of the type's pool.
        value: usize,
        /// Register that chooses among common cells.
        cell: usize,
        /// Register that gets what the own cell held (`atom`) or holds (`red`), of the type's pool.
        dst: usize,
    },
    /// A division or remainder of integers; the divisor is made odd and positive.
    Divide {
        /// `div` or `rem` with its type.
        opcode: &'static str,
        /// Pool of all three registers.
        kind: Kind,
        /// Result, dividend, divisor.
        regs: [usize; 3],
    },
    /// A call of a device function.
    Call {
        /// Number of the function.
        function: usize,
        /// Two 32-bit arguments, one of 64 bits, and the result.
        regs: [usize; 4],
        /// All threads of the block come here together.
        uniform: bool,
    },
    /// A constant array of the module is read.
    Table {
        /// In constant memory, else in global memory.
        is_const: bool,
        /// Result and index.
        regs: [usize; 2],
    },
    /// The thread's own cell in a variable of the module.
    Own {
        /// Written, else read.
        is_store: bool,
        /// Register written or read.
        reg: usize,
    },
    /// Threads tell each other where in a shared variable of the module their values are.
    Board {
        /// Register exchanged.
        reg: usize,
        /// The partner is `tid + flip`.
        flip: usize,
    },
    /// The address of shared memory as a value.
    Address {
        /// What is done to it.
        way: Way,
        /// Register stored and register loaded.
        regs: [usize; 2],
    },
    /// A barrier of all blocks of a cluster.
    Cluster,
    /// Neighbouring elements, one instruction for each: from an array, or through memory of the thread in reverse.
    Neighbours {
        /// Pool of the registers.
        kind: Kind,
        /// First register.
        first: usize,
        /// How many.
        width: usize,
        /// Index register into the array; without it, the thread's own memory.
        index: Option<usize>,
    },
}

/// What an atomic operation adds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Sum {
    F32,
    F64,
    F16x2,
    Bf16x2,
    U32,
}

/// Where an atomic operation adds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// In a cell of all threads; in any order the same, as small numbers are added.
    Common,
    /// In the thread's own global memory.
    Global,
    /// In the thread's own shared memory.
    Shared,
}

/// What is done to a shared address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// It is a result: it may change with every variable that is added.
    Value,
    /// Its last bits are a result.
    LowBits,
    /// Its distance from another address of the variable is a result.
    Distance,
    /// It is kept in shared memory and used.
    InShared,
    /// It is kept in global memory and used.
    InGlobal,
    /// It is used as a generic address.
    Generic,
}

/// Bytes of the common cells of one type.
const CELLS: usize = 64;

impl Sum {
    const ALL: [Sum; 5] = [Sum::F32, Sum::F64, Sum::F16x2, Sum::Bf16x2, Sum::U32];

    /// 32-bit words that hold the common cells.
    pub(crate) const WORDS: usize = Sum::ALL.len() * CELLS / 4;

    fn kind(self) -> Kind {
        match self {
            Sum::F32 => Kind::F32,
            Sum::F64 => Kind::F64,
            _ => Kind::B32,
        }
    }

    fn add(self) -> &'static str {
        match self {
            Sum::F32 => "add.f32",
            Sum::F64 => "add.f64",
            Sum::F16x2 => "add.noftz.f16x2",
            Sum::Bf16x2 => "add.noftz.bf16x2",
            Sum::U32 => "add.u32",
        }
    }

    fn start(self) -> usize {
        let before = Sum::ALL.iter().take_while(|&&sum| sum != self);
        CELLS * before.count()
    }
}

impl Rare {
    /// Does it need sm_90?
    pub(crate) fn is_new(&self) -> bool {
        let ty = Sum::Bf16x2;
        matches!(self, Rare::Cluster) || matches!(self, Rare::Atomic { ty: own, .. } if *own == ty)
    }

    /// Does it use the thread's own part of the output?
    pub(crate) fn is_own(&self) -> bool {
        match self {
            Rare::Atomic { place, .. } => *place == Place::Global,
            Rare::Address { way, .. } => *way == Way::InGlobal,
            Rare::Neighbours { index, .. } => index.is_none(),
            _ => false,
        }
    }

    /// Does it add in common cells?
    pub(crate) fn is_common(&self) -> bool {
        let place = Place::Common;
        matches!(self, Rare::Atomic { place: own, .. } if *own == place)
    }
}

/// Registers of a device function.
const POOL: [usize; 6] = [4, 2, 2, 2, 2, 2];

/// The device functions of a kernel: each may call those before it.
pub(crate) fn functions(maker: &mut Maker<'_>, config: &Config) -> Vec<Function> {
    let pool = Program {
        pool: POOL,
        ..maker.program.clone()
    };
    let mut functions = Vec::new();
    for number in 0..maker.rng.below(4) {
        let mut inner = Maker {
            rng: maker.rng.clone(),
            program: &pool,
            config,
            budget: 10,
            functions: number,
            is_function: true,
        };
        let body = inner.block(1, false);
        maker.rng = inner.rng;
        functions.push(Function {
            by_register: maker.rng.chance(50),
            returns: maker.rng.chance(50),
            early: maker.rng.chance(30),
            body,
        });
    }
    functions
}

impl Maker<'_> {
    /// A statement that is possible inside a device function as well, where this is one.
    pub(crate) fn rare(&mut self, uniform: bool) -> Stmt {
        Stmt::Rare(
            match self.rng.below(if self.is_function { 3 } else { 12 }) {
                0 => self.division(),
                1 if self.functions > 0 => Rare::Call {
                    function: self.rng.below(self.functions),
                    regs: [Kind::B32, Kind::B32, Kind::B64, Kind::B32].map(|kind| self.reg(kind)),
                    uniform: uniform && !self.is_function,
                },
                1 | 2 => Rare::Table {
                    is_const: self.rng.chance(50),
                    regs: [Kind::B32; 2].map(|kind| self.reg(kind)),
                },
                3 => Rare::Own {
                    is_store: self.rng.chance(50),
                    reg: self.reg(Kind::B32),
                },
                4 if uniform => Rare::Board {
                    reg: self.reg(Kind::B32),
                    flip: self.rng.below(self.program.block),
                },
                5 if uniform && self.rng.chance(50) => Rare::Cluster,
                4 | 5 => self.address(),
                6..8 => self.neighbours(),
                _ => self.atomic(),
            },
        )
    }

    fn division(&mut self) -> Rare {
        let (opcode, kind) = *self.rng.pick(&[
            ("div.u32", Kind::B32),
            ("rem.s32", Kind::B32),
            ("div.s64", Kind::B64),
            ("rem.u64", Kind::B64),
        ]);
        Rare::Divide {
            opcode,
            kind,
            regs: [kind; 3].map(|kind| self.reg(kind)),
        }
    }

    fn address(&mut self) -> Rare {
        // Whoever adds a variable leaves kernels alone that show where theirs are: few of these.
        let ways = [
            Way::Distance,
            Way::InShared,
            Way::InGlobal,
            Way::Generic,
            Way::LowBits,
        ];
        let way = match self.rng.chance(6) {
            true => Way::Value,
            false => *self.rng.pick(&ways),
        };
        Rare::Address {
            way,
            regs: [Kind::B32; 2].map(|kind| self.reg(kind)),
        }
    }

    fn atomic(&mut self) -> Rare {
        let ty = *self.rng.pick(&Sum::ALL);
        Rare::Atomic {
            ty,
            place: *self
                .rng
                .pick(&[Place::Common, Place::Global, Place::Shared]),
            returned: self.rng.chance(50),
            value: self.reg(ty.kind()),
            cell: self.reg(Kind::B32),
            dst: self.reg(ty.kind()),
        }
    }

    fn neighbours(&mut self) -> Rare {
        let kind = *self.rng.pick(&[Kind::B32, Kind::B64, Kind::F32, Kind::F64]);
        let most = self.program.pool(kind);
        let width = match kind {
            Kind::B32 | Kind::F32 if most >= 4 && self.rng.chance(50) => 4,
            _ => 2,
        };
        Rare::Neighbours {
            kind,
            first: self.rng.below(most - width + 1),
            width,
            index: self.rng.chance(50).then(|| self.reg(Kind::B32)),
        }
    }
}

impl Printer<'_> {
    pub(crate) fn rare(&mut self, rare: &Rare) {
        match rare {
            Rare::Atomic { .. } => self.atomic(rare),
            Rare::Divide { opcode, kind, regs } => self.division(opcode, *kind, *regs),
            Rare::Call {
                function,
                regs,
                uniform,
            } => self.call(*function, *regs, *uniform),
            Rare::Table {
                is_const,
                regs: [dst, index],
            } => {
                let (array, space) = match is_const {
                    true => ("factors", "const"),
                    false => ("table", "global"),
                };
                self.line(&format!("and.b32 %t5, %r{index}, {};", TABLE - 1));
                self.line(&format!("mov.u64 %a7, {array};"));
                self.line("mad.wide.u32 %a7, %t5, 4, %a7;");
                self.line(&format!("ld.{space}.b32 %r{dst}, [%a7];"));
            }
            Rare::Own { is_store, reg } => {
                self.line("mov.u64 %a7, cells;");
                self.line("mad.wide.u32 %a7, %t1, 4, %a7;");
                self.line(&match is_store {
                    true => format!("st.global.b32 [%a7], %r{reg};"),
                    false => format!("ld.global.b32 %r{reg}, [%a7];"),
                });
            }
            Rare::Board { reg, flip } => {
                self.line("mov.u64 %a7, board;");
                self.line("mad.wide.u32 %a7, %t0, 4, %a7;");
                self.line(&format!("st.shared.b32 [%a7], %r{reg};"));
                self.line("st.shared.b64 [%a5], %a7;");
                self.line("bar.sync 0;");
                self.partner(*flip);
                self.line("ld.shared.b64 %a7, [%a7];");
                self.line(&format!("ld.shared.b32 %r{reg}, [%a7];"));
                self.line("bar.sync 0;");
            }
            Rare::Address { way, regs } => self.address(*way, *regs),
            Rare::Cluster => {
                self.line("barrier.cluster.arrive;");
                self.line("barrier.cluster.wait;");
            }
            Rare::Neighbours {
                kind,
                first,
                width,
                index,
            } => self.neighbours(*kind, (*first, *width), *index),
        }
    }

    /// `%a7` becomes the beginning of the thread's own part of the output.
    pub(crate) fn own(&mut self) {
        let bytes = 8 * self.cells();
        self.line(&format!("mad.wide.u32 %a7, %t1, {bytes}, %a3;"));
    }

    fn atomic(&mut self, rare: &Rare) {
        let &Rare::Atomic {
            ty,
            place,
            returned,
            value,
            cell,
            dst,
        } = rare
        else {
            return;
        };
        let (prefix, add) = (ty.kind().prefix(), ty.add());
        let (value, dst) = (format!("{prefix}{value}"), format!("{prefix}{dst}"));
        let bits = if ty == Sum::F64 { "b64" } else { "b32" };
        if place == Place::Common {
            self.line(&format!("and.b32 %t5, %r{cell}, 7;"));
            self.line("mad.wide.u32 %a7, %t5, 8, %b0;");
            let (small, scratch) = self.small(ty, cell);
            let at = format!("[%a7+{}]", ty.start());
            self.line(&match returned {
                true => format!("atom.global.{add} {scratch}, {at}, {small};"),
                false => format!("red.global.{add} {at}, {small};"),
            });
            return;
        }
        let (space, base) = match place {
            Place::Shared => ("shared", "%a5"),
            _ => ("global", "%a7"),
        };
        if place == Place::Global {
            self.own();
        }
        self.line(&format!("st.{space}.{bits} [{base}], {dst};"));
        match returned {
            true => self.line(&format!("atom.{space}.{add} {dst}, [{base}], {value};")),
            false => {
                self.line(&format!("red.{space}.{add} [{base}], {value};"));
                self.line(&format!("ld.{space}.{bits} {dst}, [{base}];"));
            }
        }
    }

    /// A register with a small number, whose sums are exact or end at one bound, and one for a result.
    fn small(&mut self, ty: Sum, cell: usize) -> (&'static str, &'static str) {
        let (mask, lines): (u32, &[&str]) = match ty {
            Sum::F32 => (255, &["cvt.rn.f32.u32 %g0, %t5;"]),
            Sum::F64 => (255, &["cvt.rn.f64.u32 %h0, %t5;"]),
            Sum::F16x2 => (1, &["mul.lo.u32 %t5, %t5, 0x3C003C00;"]),
            Sum::Bf16x2 => (1, &["mul.lo.u32 %t5, %t5, 0x3F803F80;"]),
            Sum::U32 => (u32::MAX, &[]),
        };
        self.line(&format!("shr.u32 %t5, %r{cell}, 3;"));
        self.line(&format!("and.b32 %t5, %t5, {mask};"));
        lines.iter().for_each(|line| self.line(line));
        match ty {
            Sum::F32 => ("%g0", "%g1"),
            Sum::F64 => ("%h0", "%h1"),
            _ => ("%t5", "%t4"),
        }
    }

    fn division(&mut self, opcode: &str, kind: Kind, [dst, a, b]: [usize; 3]) {
        let (bits, scratch, most) = match kind {
            Kind::B64 => ("b64", "%a7", i64::MAX),
            _ => ("b32", "%t5", i64::from(i32::MAX)),
        };
        let prefix = kind.prefix();
        self.line(&format!("and.{bits} {scratch}, {prefix}{b}, {most};"));
        self.line(&format!("or.{bits} {scratch}, {scratch}, 1;"));
        self.line(&format!("{opcode} {prefix}{dst}, {prefix}{a}, {scratch};"));
    }

    fn call(&mut self, function: usize, [a, b, wide, dst]: [usize; 4], uniform: bool) {
        let call = if uniform { "call.uni" } else { "call" };
        if self.program.functions[function].by_register {
            let arguments = format!("(%r{a}, %r{b}, %rd{wide})");
            self.line(&format!("{call} (%r{dst}), helper{function}, {arguments};"));
            return;
        }
        self.line("{");
        self.line(".param .b32 result;");
        for (name, ty, register) in [
            ("first", "b32", format!("%r{a}")),
            ("second", "b32", format!("%r{b}")),
            ("third", "b64", format!("%rd{wide}")),
        ] {
            self.line(&format!(".param .{ty} {name};"));
            self.line(&format!("st.param.{ty} [{name}], {register};"));
        }
        self.line(&format!(
            "{call} (result), helper{function}, (first, second, third);"
        ));
        self.line(&format!("ld.param.b32 %r{dst}, [result];"));
        self.line("}");
    }

    fn address(&mut self, way: Way, [value, dst]: [usize; 2]) {
        let store = |base: &str| format!("st.shared.b32 [{base}], %r{value};");
        let lines = match way {
            Way::Value => vec![format!("cvt.u32.u64 %r{dst}, %a5;")],
            Way::LowBits => vec![
                "cvt.u32.u64 %t5, %a5;".to_owned(),
                format!("and.b32 %r{dst}, %t5, 15;"),
            ],
            Way::Distance => vec![
                "mov.u32 %t4, exchange;".to_owned(),
                "cvt.u32.u64 %t5, %a5;".to_owned(),
                format!("sub.u32 %r{dst}, %t5, %t4;"),
            ],
            Way::InShared => vec![
                "st.shared.b64 [%a5], %a5;".to_owned(),
                "ld.shared.b64 %a7, [%a5];".to_owned(),
                store("%a7"),
            ],
            Way::InGlobal => {
                self.own();
                vec![
                    "st.global.b64 [%a7], %a5;".to_owned(),
                    "ld.global.b64 %a7, [%a7];".to_owned(),
                    store("%a7"),
                ]
            }
            Way::Generic => vec![
                "cvta.shared.u64 %a7, %a5;".to_owned(),
                format!("st.b32 [%a7], %r{value};"),
            ],
        };
        lines.iter().for_each(|line| self.line(line));
        if matches!(way, Way::InShared | Way::InGlobal | Way::Generic) {
            self.line(&format!("ld.shared.b32 %r{dst}, [%a5];"));
        }
    }

    fn neighbours(&mut self, kind: Kind, (first, width): (usize, usize), index: Option<usize>) {
        let (ty, bytes) = match kind {
            Kind::B32 => ("b32", 4),
            Kind::F32 => ("f32", 4),
            Kind::B64 => ("b64", 8),
            _ => ("f64", 8),
        };
        let register = |n: usize| format!("{}{}", kind.prefix(), first + n);
        match index {
            Some(index) => _ = self.element(kind, width, &format!("%r{index}")),
            None => {
                self.own();
                for n in 0..width {
                    let at = bytes * n;
                    self.line(&format!("st.global.{ty} [%a7+{at}], {};", register(n)));
                }
            }
        }
        for n in 0..width {
            let from = if index.is_some() { n } else { width - 1 - n };
            let at = bytes * from;
            self.line(&format!("ld.global.{ty} {}, [%a7+{at}];", register(n)));
        }
    }

    /// The variables of the module that the statements use.
    pub(crate) fn variables(&mut self) {
        let program = self.program;
        let uses = |is_used: &dyn Fn(&Rare) -> bool| {
            program.count_all(|stmt| matches!(stmt, Stmt::Rare(rare) if is_used(rare))) > 0
        };
        let threads = program.grid * program.block;
        let numbers: Vec<String> = (0..TABLE)
            .map(|n| (n * n * 2_654_435).to_string())
            .collect();
        let numbers = numbers.join(", ");
        for (name, space) in [("table", ".global"), ("factors", ".const")] {
            let is_const = space == ".const";
            if uses(&|rare| matches!(rare, Rare::Table { is_const: own, .. } if *own == is_const)) {
                self.top(&format!(
                    "{space} .align 4 .b32 {name}[{TABLE}] = {{{numbers}}};"
                ));
            }
        }
        if uses(&|rare| matches!(rare, Rare::Own { .. })) {
            self.top(&format!(".global .align 4 .b8 cells[{}];", 4 * threads));
        }
        if uses(&|rare| matches!(rare, Rare::Board { .. })) {
            self.top(&format!(
                ".shared .align 4 .b8 board[{}];",
                4 * program.block
            ));
        }
    }

    /// The device functions that are called.
    pub(crate) fn functions(&mut self) {
        let program = self.program;
        for number in program.called() {
            self.function(number, &program.functions[number]);
        }
    }

    fn function(&mut self, number: usize, function: &Function) {
        let (space, parameters) = match function.by_register {
            true => (".reg", ["%back", "%one", "%two", "%three"]),
            false => (".param", ["back", "one", "two", "three"]),
        };
        let [back, one, two, three] = parameters;
        self.top(&format!(
            ".func ({space} .b32 {back}) helper{number} ({space} .b32 {one}, {space} .b32 {two}, {space} .b64 {three})"
        ));
        self.top("{");
        self.registers(
            &POOL,
            counted(&function.body, &|stmt| matches!(stmt, Stmt::Loop { .. })),
        );
        for (ty, register, name) in [
            ("b32", "%r0", one),
            ("b32", "%r1", two),
            ("b64", "%rd0", three),
        ] {
            self.line(&match function.by_register {
                true => format!("mov.{ty} {register}, {name};"),
                false => format!("ld.param.{ty} {register}, [{name}];"),
            });
        }
        for line in FUNCTION_START {
            self.line(line);
        }
        let result = |register: &str| match function.by_register {
            true => format!("mov.b32 {back}, {register};"),
            false => format!("st.param.b32 [{back}], {register};"),
        };
        if function.early {
            self.line(&result("%r1"));
            self.line("@%p1 ret;");
        }
        self.loops = 0;
        self.stmts(&function.body);
        for line in FUNCTION_END {
            self.line(line);
        }
        self.line(&result("%t4"));
        if function.returns {
            self.line("ret;");
        }
        self.top("}");
    }
}

/// Elements of the constant arrays (a power of two).
const TABLE: usize = 16;

const FUNCTION_START: [&str; 14] = [
    "mad.lo.u32 %r2, %r0, 3, %r1;",
    "xor.b32 %r3, %r0, %r1;",
    "mul.wide.u32 %rd1, %r2, %r3;",
    "cvt.u16.u32 %rs0, %r0;",
    "cvt.u16.u32 %rs1, %r2;",
    "cvt.rn.f32.s32 %f0, %r0;",
    "cvt.rn.f32.s32 %f1, %r1;",
    "cvt.rn.f64.s32 %fd0, %r2;",
    "cvt.rn.f64.s32 %fd1, %r3;",
    "and.b32 %t4, %r0, 1;",
    "setp.eq.u32 %p0, %t4, 0;",
    "and.b32 %t4, %r0, 3;",
    "setp.eq.u32 %p1, %t4, 3;",
    "mov.u32 %t4, 0;",
];

/// All that a function makes goes into its result.
const FUNCTION_END: [&str; 12] = [
    "xor.b32 %t4, %r0, %r1;",
    "mad.lo.u32 %t4, %t4, 5, %r2;",
    "xor.b32 %t4, %t4, %r3;",
    "cvt.u32.u64 %t5, %rd0;",
    "mad.lo.u32 %t4, %t4, 7, %t5;",
    "cvt.u32.u64 %t5, %rd1;",
    "xor.b32 %t4, %t4, %t5;",
    "mov.b32 %t5, %f0;",
    "mad.lo.u32 %t4, %t4, 9, %t5;",
    "cvt.rn.f32.f64 %f1, %fd0;",
    "mov.b32 %t5, %f1;",
    "xor.b32 %t4, %t4, %t5;",
];
