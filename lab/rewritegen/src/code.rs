//! A writer of PTX: registers, guards, loops, and places where a mistake may be planted.

use std::fmt::Write;

use serde::{Deserialize, Serialize};

/// What people and generators get wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mistake {
    /// What is left over of a vector, a tile or a coarsened thread is not done.
    Tail,
    /// A bound that is missing, or wrong by one.
    Guard,
    /// A stride of a loop.
    Stride,
    /// An index: rows for columns, a shift by one.
    Index,
    /// A barrier that is not there.
    LostBarrier,
    /// A barrier that only some threads come to.
    ExtraBarrier,
    /// A load, an addition and a store in place of an atomic sum.
    LostAtomic,
    /// What a reduction begins with.
    Identity,
    /// A step of a reduction or scan that is not there.
    LostStep,
    /// A register or memory that nobody set.
    Unset,
    /// Everything behind the first tile.
    SecondTile,
    /// A short way for the inputs of a test.
    FastPath,
    /// An element that is not written: the last call's is left.
    LeftOutput,
    /// A constant, a factor or a function that is not the original's.
    Formula,
}

/// Types of elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Elem {
    /// Single precision.
    F32,
    /// Integers that wrap around.
    S32,
}

impl Elem {
    /// As PTX and launch descriptions have it.
    pub fn name(self) -> &'static str {
        match self {
            Elem::F32 => "f32",
            Elem::S32 => "s32",
        }
    }

    fn register(self) -> char {
        match self {
            Elem::F32 => 'f',
            Elem::S32 => 'r',
        }
    }

    /// An immediate.
    pub fn number(self, value: f64) -> String {
        match self {
            Elem::F32 => format!("0f{:08X}", (value as f32).to_bits()),
            Elem::S32 => format!("{}", value as i32),
        }
    }
}

/// Functions of two elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Binary {
    /// Sum.
    Add,
    /// Product.
    Mul,
    /// The larger.
    Max,
    /// The smaller.
    Min,
}

impl Binary {
    fn opcode(self, elem: Elem) -> &'static str {
        match (self, elem) {
            (Binary::Add, Elem::F32) => "add.rn.f32",
            (Binary::Add, Elem::S32) => "add.s32",
            (Binary::Mul, Elem::F32) => "mul.rn.f32",
            (Binary::Mul, Elem::S32) => "mul.lo.s32",
            (Binary::Max, Elem::F32) => "max.f32",
            (Binary::Max, Elem::S32) => "max.s32",
            (Binary::Min, Elem::F32) => "min.f32",
            (Binary::Min, Elem::S32) => "min.s32",
        }
    }

    /// What changes nothing.
    pub fn identity(self, elem: Elem) -> String {
        match (self, elem) {
            (Binary::Add, _) => elem.number(0.0),
            (Binary::Mul, _) => elem.number(1.0),
            (Binary::Max, Elem::F32) => elem.number(f64::NEG_INFINITY),
            (Binary::Min, Elem::F32) => elem.number(f64::INFINITY),
            (Binary::Max, Elem::S32) => elem.number(f64::from(i32::MIN)),
            (Binary::Min, Elem::S32) => elem.number(f64::from(i32::MAX)),
        }
    }

    /// What a beginner takes for it.
    pub fn wrong_identity(self, elem: Elem) -> String {
        match self {
            Binary::Add => elem.number(1.0),
            Binary::Mul | Binary::Max | Binary::Min => elem.number(0.0),
        }
    }
}

/// A kernel that is being written.
#[derive(Debug, Default)]
pub struct Code {
    body: String,
    registers: [usize; 4],
    labels: usize,
    params: Vec<String>,
    shared: String,
    /// Places where a mistake may be planted, in order.
    pub offered: Vec<Mistake>,
    /// The place that has one.
    planted: Option<usize>,
    is_quiet: bool,
}

const KINDS: [(char, &str); 4] = [('r', "b32"), ('d', "b64"), ('f', "f32"), ('p', "pred")];

/// The name of every kernel here.
pub const NAME: &str = "kernel";

impl Code {
    /// Nothing yet; the place of that number gets its mistake.
    pub fn new(planted: Option<usize>) -> Code {
        Code {
            planted,
            ..Code::default()
        }
    }

    /// A place for a mistake; is it to be made?
    pub fn slip(&mut self, mistake: Mistake) -> bool {
        if self.is_quiet {
            return false;
        }
        let at = self.offered.len();
        self.offered.push(mistake);
        self.planted == Some(at)
    }

    /// Code in which no mistake is planted.
    pub fn without_slips<T>(&mut self, body: impl FnOnce(&mut Code) -> T) -> T {
        let before = std::mem::replace(&mut self.is_quiet, true);
        let done = body(self);
        self.is_quiet = before;
        done
    }

    /// The module.
    pub fn text(&self) -> String {
        let mut out = String::from(".version 7.8\n.target sm_80\n.address_size 64\n\n");
        let params = self.params.join(",\n");
        let _ = write!(
            out,
            ".visible .entry {NAME}(\n{params}\n)\n{{\n{}",
            self.shared
        );
        for ((kind, ty), count) in KINDS.iter().zip(self.registers) {
            if count > 0 {
                let _ = writeln!(out, "    .reg .{ty} %{kind}<{count}>;");
            }
        }
        let _ = write!(out, "{}    ret;\n}}\n", self.body);
        out
    }

    fn line(&mut self, text: &str) {
        let _ = writeln!(self.body, "    {text}");
    }

    fn fresh(&mut self, kind: char) -> String {
        let at = KINDS.iter().position(|(k, _)| *k == kind).unwrap_or(0);
        self.registers[at] += 1;
        format!("%{kind}{}", self.registers[at] - 1)
    }

    fn label(&mut self) -> String {
        self.labels += 1;
        format!("$L{}", self.labels)
    }

    /// A register that nobody has set yet.
    pub fn register(&mut self, elem: Elem) -> String {
        self.fresh(elem.register())
    }

    /// An instruction into a register that there is.
    pub fn set(&mut self, op: &str, to: &str, args: &[&str]) {
        self.line(&format!("{op} {to}, {};", args.join(", ")));
    }

    fn op(&mut self, kind: char, op: &str, args: &[&str]) -> String {
        let to = self.fresh(kind);
        self.set(op, &to, args);
        to
    }

    // ---- parameters

    fn param(&mut self, ty: &str, name: &str) -> String {
        self.params.push(format!("    .param .{ty} p_{name}"));
        let kind = if ty == "u64" { 'd' } else { 'r' };
        self.op(kind, &format!("ld.param.{ty}"), &[&format!("[p_{name}]")])
    }

    /// A pointer to global memory.
    pub fn pointer(&mut self, name: &str) -> String {
        let generic = self.param("u64", name);
        self.op('d', "cvta.to.global.u64", &[&generic])
    }

    /// A size.
    pub fn size(&mut self, name: &str) -> String {
        self.param("u32", name)
    }

    /// `tid.x` and the like.
    pub fn special(&mut self, name: &str) -> String {
        self.op('r', "mov.u32", &[&format!("%{name}")])
    }

    // ---- integers

    /// A sum.
    pub fn add(&mut self, a: &str, b: impl ToString) -> String {
        self.op('r', "add.s32", &[a, &b.to_string()])
    }

    /// A difference.
    pub fn sub(&mut self, a: &str, b: impl ToString) -> String {
        self.op('r', "sub.s32", &[a, &b.to_string()])
    }

    /// A product.
    pub fn mul(&mut self, a: &str, b: impl ToString) -> String {
        self.op('r', "mul.lo.s32", &[a, &b.to_string()])
    }

    /// `a * b + c`
    pub fn mad(&mut self, a: &str, b: impl ToString, c: impl ToString) -> String {
        self.op('r', "mad.lo.s32", &[a, &b.to_string(), &c.to_string()])
    }

    /// A quotient of unsigned ones.
    pub fn div(&mut self, a: &str, b: impl ToString) -> String {
        self.op('r', "div.u32", &[a, &b.to_string()])
    }

    /// A remainder of unsigned ones.
    pub fn rem(&mut self, a: &str, b: impl ToString) -> String {
        self.op('r', "rem.u32", &[a, &b.to_string()])
    }

    /// The smaller of two signed ones.
    pub fn least(&mut self, a: &str, b: impl ToString) -> String {
        self.op('r', "min.s32", &[a, &b.to_string()])
    }

    /// The larger of two signed ones.
    pub fn most(&mut self, a: &str, b: impl ToString) -> String {
        self.op('r', "max.s32", &[a, &b.to_string()])
    }

    /// A number in a register of its own.
    pub fn integer(&mut self, value: impl ToString) -> String {
        self.op('r', "mov.u32", &[&value.to_string()])
    }

    // ---- predicates

    /// A comparison of signed integers: `lt`, `le`, `ge`, `eq`, …
    pub fn test(&mut self, how: &str, a: &str, b: impl ToString) -> String {
        self.op('p', &format!("setp.{how}.s32"), &[a, &b.to_string()])
    }

    /// Both.
    pub fn both(&mut self, a: &str, b: &str) -> String {
        self.op('p', "and.pred", &[a, b])
    }

    /// An element is a number.
    pub fn is(&mut self, elem: Elem, a: &str, value: f64) -> String {
        let op = format!("setp.eq.{}", elem.name());
        self.op('p', &op, &[a, &elem.number(value)])
    }

    // ---- elements

    /// An element that is known.
    pub fn constant(&mut self, elem: Elem, literal: &str) -> String {
        let op = format!("mov.{}", if elem == Elem::F32 { "f32" } else { "u32" });
        self.op(elem.register(), &op, &[literal])
    }

    /// Overwrites an element.
    pub fn copy(&mut self, elem: Elem, to: &str, from: &str) {
        let op = format!("mov.{}", if elem == Elem::F32 { "f32" } else { "u32" });
        self.set(&op, to, &[from]);
    }

    /// A function of two elements.
    pub fn binary(&mut self, elem: Elem, op: Binary, a: &str, b: &str) -> String {
        self.op(elem.register(), op.opcode(elem), &[a, b])
    }

    /// `to = to op b`
    pub fn fold(&mut self, elem: Elem, op: Binary, to: &str, b: &str) {
        self.set(op.opcode(elem), to, &[to, b]);
    }

    /// `to = a * b + to`
    pub fn accumulate(&mut self, elem: Elem, to: &str, a: &str, b: &str) {
        let op = match elem {
            Elem::F32 => "fma.rn.f32",
            Elem::S32 => "mad.lo.s32",
        };
        self.set(op, to, &[a, b, to]);
    }

    /// A function of singles by its opcode.
    pub fn single(&mut self, op: &str, args: &[&str]) -> String {
        self.op('f', op, args)
    }

    /// A single of an unsigned integer.
    pub fn single_of(&mut self, a: &str) -> String {
        self.op('f', "cvt.rn.f32.u32", &[a])
    }

    // ---- memory

    fn place(&mut self, base: &str, index: &str) -> String {
        self.op('d', "mad.wide.s32", &[index, "4", base])
    }

    /// An element of global memory.
    pub fn load(&mut self, elem: Elem, base: &str, index: &str) -> String {
        let at = self.place(base, index);
        let op = format!("ld.global.{}", elem.name());
        self.op(elem.register(), &op, &[&format!("[{at}]")])
    }

    /// Elements of global memory that lie side by side.
    pub fn load_vector(
        &mut self,
        elem: Elem,
        base: &str,
        index: &str,
        count: usize,
    ) -> Vec<String> {
        let at = self.place(base, index);
        let to: Vec<String> = (0..count).map(|_| self.register(elem)).collect();
        let op = format!("ld.global.v{count}.{}", elem.name());
        self.set(
            &op,
            &format!("{{{}}}", to.join(", ")),
            &[&format!("[{at}]")],
        );
        to
    }

    /// Writes to global memory.
    pub fn store(&mut self, elem: Elem, base: &str, index: &str, value: &str) {
        let at = self.place(base, index);
        let op = format!("st.global.{}", elem.name());
        self.set(&op, &format!("[{at}]"), &[value]);
    }

    /// Writes elements side by side.
    pub fn store_vector(&mut self, elem: Elem, base: &str, index: &str, values: &[String]) {
        let at = self.place(base, index);
        let op = format!("st.global.v{}.{}", values.len(), elem.name());
        let list = format!("{{{}}}", values.join(", "));
        self.set(&op, &format!("[{at}]"), &[&list]);
    }

    /// Adds to global memory: by an atomic operation, or by what is none.
    pub fn atomic(
        &mut self,
        elem: Elem,
        op: Binary,
        base: &str,
        index: &str,
        value: &str,
        lost: bool,
    ) {
        if lost {
            let old = self.load(elem, base, index);
            let new = self.binary(elem, op, &old, value);
            return self.store(elem, base, index, &new);
        }
        let at = self.place(base, index);
        let name = match op {
            Binary::Max => "max",
            Binary::Min => "min",
            _ => "add",
        };
        let ty = match (elem, op) {
            (Elem::S32, Binary::Add) => "u32",
            (elem, _) => elem.name(),
        };
        self.set(
            &format!("red.global.{name}.{ty}"),
            &format!("[{at}]"),
            &[value],
        );
    }

    /// Shared memory of so many elements of four bytes; its address.
    pub fn shared(&mut self, name: &str, count: usize) -> String {
        let _ = writeln!(
            self.shared,
            "    .shared .align 16 .b8 {name}[{}];",
            4 * count
        );
        self.op('r', "mov.u32", &[name])
    }

    /// An element of shared memory.
    pub fn get(&mut self, elem: Elem, base: &str, index: &str) -> String {
        let at = self.mad(index, 4, base);
        let op = format!("ld.shared.{}", elem.name());
        self.op(elem.register(), &op, &[&format!("[{at}]")])
    }

    /// Writes to shared memory.
    pub fn put(&mut self, elem: Elem, base: &str, index: &str, value: &str) {
        let at = self.mad(index, 4, base);
        let op = format!("st.shared.{}", elem.name());
        self.set(&op, &format!("[{at}]"), &[value]);
    }

    /// Adds one to a counter in shared memory.
    pub fn count(&mut self, base: &str, index: &str, lost: bool) {
        if lost {
            let old = self.get(Elem::S32, base, index);
            let new = self.add(&old, 1);
            return self.put(Elem::S32, base, index, &new);
        }
        let at = self.mad(index, 4, base);
        self.set("red.shared.add.u32", &format!("[{at}]"), &["1"]);
    }

    /// A barrier of the block.
    pub fn barrier(&mut self) {
        self.line("bar.sync 0;");
    }

    /// A barrier that may be lost.
    pub fn barrier_or_slip(&mut self) {
        if !self.slip(Mistake::LostBarrier) {
            self.barrier();
        }
    }

    /// A value of another lane: `down`, `up` or `bfly`.
    pub fn shuffle(&mut self, elem: Elem, how: &str, value: &str, by: usize) -> String {
        let clamp = if how == "up" { "0" } else { "31" };
        let op = format!("shfl.sync.{how}.b32");
        self.op(elem.register(), &op, &[value, &by.to_string(), clamp, "-1"])
    }

    // ---- control

    /// Where a predicate holds.
    pub fn when(&mut self, p: &str, body: impl FnOnce(&mut Code)) {
        let end = self.label();
        self.line(&format!("@!{p} bra {end};"));
        body(self);
        self.line(&format!("{end}:"));
    }

    /// Where it holds, and where not.
    pub fn either(&mut self, p: &str, yes: impl FnOnce(&mut Code), no: impl FnOnce(&mut Code)) {
        let (other, end) = (self.label(), self.label());
        self.line(&format!("@!{p} bra {other};"));
        yes(self);
        self.line(&format!("bra {end};"));
        self.line(&format!("{other}:"));
        no(self);
        self.line(&format!("{end}:"));
    }

    /// `for (i = from; i < to; i += step)`
    pub fn repeat(
        &mut self,
        (from, to, step): (&str, &str, &str),
        body: impl FnOnce(&mut Code, &str),
    ) {
        let (begin, end) = (self.label(), self.label());
        let i = self.integer(from);
        self.line(&format!("{begin}:"));
        let p = self.test("ge", &i, to);
        self.line(&format!("@{p} bra {end};"));
        body(self, &i);
        self.set("add.s32", &i, &[&i, step]);
        self.line(&format!("bra {begin};"));
        self.line(&format!("{end}:"));
    }
}
