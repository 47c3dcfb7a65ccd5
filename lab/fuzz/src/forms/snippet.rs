//! One instruction with everything around it: operands from the table, results to the output.

use std::fmt::Write as _;

use warpwright_ptx::opcode::{
    Expected, Family, Form, Lanes, Op, Opcode, OperandSpec, Presence, Role,
};
use warpwright_ptx::{Space, Type, TypeKind};

use super::values::{Sort, THREADS, scramble};

/// Bytes of memory that a thread has in each space.
pub const MEMORY: usize = 32;

/// A way to write an opcode's operands.
#[derive(Clone, Copy, Debug, Default)]
pub struct Way {
    /// With the operands that may be missing.
    pub optional: bool,
    /// With the second part of a pair `d|p`.
    pub pair: bool,
    /// Narrow values stand in wider registers.
    pub wide: bool,
}

/// A piece of a kernel that runs one form.
#[derive(Clone, Debug)]
pub struct Snippet {
    /// The instruction.
    pub text: String,
    /// Everything before it, a line each.
    before: Vec<String>,
    /// What stores each result; `OUT` stands for the place.
    after: Vec<String>,
    /// Words of output per thread.
    pub words: usize,
    /// Where its operands come from.
    pub operands: Vec<(String, Sort, usize)>,
}

impl Snippet {
    /// A piece of its own.
    pub fn sequence(
        name: String,
        before: Vec<String>,
        after: Vec<String>,
        words: usize,
    ) -> Snippet {
        Snippet {
            text: format!("// {name}"),
            before,
            after,
            words,
            operands: Vec::new(),
        }
    }

    /// The text, in a scope, with its output from the `at`-th word on.
    pub fn print(&self, at: usize, out: &mut String) {
        out.push_str("{\n");
        let mut word = at;
        for line in self.before.iter().chain([&self.text]).chain(&self.after) {
            let mut line = line.clone();
            while line.contains("OUT") {
                line = line.replacen("OUT", &format!("[%out+{}]", word * THREADS * 8), 1);
                word += 1;
            }
            let _ = writeln!(out, "{line}");
        }
        out.push_str("}\n");
    }

    /// The instruction of an opcode of a form.
    pub fn new(form: &Form, text: &str, way: Way) -> Option<Snippet> {
        let opcode = Opcode::parse(text);
        let mut writer = Writer {
            form,
            opcode: &opcode,
            way,
            next: 0,
            loads: 0,
            seed: scramble(text.bytes().fold(0, |h, b| scramble(h ^ u64::from(b)))),
            snippet: Snippet {
                text: String::new(),
                before: Vec::new(),
                after: Vec::new(),
                words: 0,
                operands: Vec::new(),
            },
        };
        writer.write()?;
        Some(writer.snippet)
    }
}

struct Writer<'a> {
    form: &'a Form,
    opcode: &'a Opcode,
    way: Way,
    next: usize,
    loads: usize,
    seed: u64,
    snippet: Snippet,
}

impl Writer<'_> {
    fn write(&mut self) -> Option<()> {
        let effect = self.opcode.effect();
        if effect.carry_in {
            let (a, b) = (
                self.load(Type::U32, Sort::Bits),
                self.load(Type::U32, Sort::Bits),
            );
            self.before(format!(".reg .b32 %cc; add.cc.u32 %cc, {a}, {b};"));
        }
        let mut list = Vec::new();
        match self.form.sample {
            Some(sample) => list.push(self.fill_in(sample)?),
            None => {
                for spec in &self.form.operands {
                    if self.is_there(spec) {
                        list.push(self.operand(spec)?);
                    }
                }
            }
        }
        self.snippet.text = format!("{} {};", self.opcode.text, list.join(", "));
        if effect.carry_out {
            self.after(".reg .b32 %flag; addc.u32 %flag, 0, 0;".into());
            self.store("%flag", Type::U32);
            let last = self.snippet.after.len() - 2;
            // The flag is read before anything else may change it.
            let read = self.snippet.after.remove(last);
            self.snippet.after.insert(0, read);
        }
        Some(())
    }

    fn is_there(&self, spec: &OperandSpec) -> bool {
        match spec.presence {
            Presence::Always => true,
            Presence::Optional => self.way.optional,
            Presence::With(modifier) => self.opcode.has_mod(modifier),
        }
    }

    /// `~d, ~a, ~b`: operands by name, sources with a lane selection in every second case.
    fn fill_in(&mut self, sample: &str) -> Option<String> {
        if sample.contains(['<', '[', '%']) {
            return None;
        }
        let form = self.form;
        let mut list = Vec::new();
        for name in sample.split(", ") {
            let spec = form
                .operands
                .iter()
                .find(|o| Some(o.name) == name.strip_prefix('~'))?;
            list.push(self.operand(spec)?);
        }
        Some(list.join(", "))
    }

    fn operand(&mut self, spec: &OperandSpec) -> Option<String> {
        let expected = self.opcode.expected(spec);
        Some(match spec.role {
            Role::Label | Role::BranchTargets | Role::CallPart => return None,
            Role::Immediate => match (spec.name, spec.name.split_once('=')) {
                ("lut", _) => (self.seed & 0xff).to_string(),
                (_, Some((_, value))) => value.to_owned(),
                _ => "0".to_owned(),
            },
            Role::Address => self.address(),
            Role::Use if spec.name == "mask" && self.form.op != Op::Fns => "0xffffffff".to_owned(),
            Role::Use if spec.name == "policy" => {
                self.before(".reg .b64 %policy; createpolicy.fractional.L2::evict_first.b64 %policy, 0f3F800000;".into());
                "%policy".to_owned()
            }
            Role::Use => self.vector(spec, &expected, true, false)?,
            Role::UseDef => self.vector(spec, &expected, true, true)?,
            Role::Def => {
                let first = self.vector(spec, &expected, false, true)?;
                match expected.second.filter(|_| self.way.pair) {
                    Some(second) => format!(
                        "{first}|{}",
                        self.register(spec.name, second, false, true, Sort::Bits)
                    ),
                    None => first,
                }
            }
        })
    }

    fn vector(
        &mut self,
        spec: &OperandSpec,
        expected: &Expected,
        read: bool,
        written: bool,
    ) -> Option<String> {
        let ty = expected.ty?;
        let register = match (self.way.wide && expected.wider, ty.kind(), ty.bits()) {
            (true, TypeKind::Float | TypeKind::Predicate, _) => ty,
            (true, _, ..=16) => Type::B32,
            (true, _, 32) => Type::B64,
            _ => ty,
        };
        let sort = self.sort(spec, ty);
        let one = |this: &mut Self| this.register(spec.name, register, read, written, sort);
        Some(match expected.lanes {
            Lanes::Exactly(n) => {
                let all: Vec<String> = (0..n).map(|_| one(self)).collect();
                format!("{{{}}}", all.join(","))
            }
            _ => one(self),
        })
    }

    /// Matrices have whole numbers; other operands what their type says.
    fn sort(&self, spec: &OperandSpec, ty: Type) -> Sort {
        if self.form.family != Family::Matrix || self.opcode.types.len() < 4 {
            return Sort::of(ty);
        }
        let nth = |n: usize| self.opcode.types.get(n).copied().unwrap_or(ty);
        Sort::whole(match spec.name {
            "a" => nth(1),
            "b" => nth(2),
            "c" => nth(3),
            _ => Type::B32,
        })
    }

    fn register(&mut self, name: &str, ty: Type, read: bool, written: bool, sort: Sort) -> String {
        let register = match read {
            true => {
                self.snippet.operands.push((
                    name.to_owned(),
                    sort,
                    self.loads % super::values::PLACES,
                ));
                self.load(ty, sort)
            }
            false => self.fresh(ty),
        };
        if written {
            self.store(&register, ty);
        }
        register
    }

    fn fresh(&mut self, ty: Type) -> String {
        let name = format!("%x{}", self.next);
        self.next += 1;
        self.before(format!(".reg .{} {name};", class(ty)));
        name
    }

    /// A register with an operand of the table.
    fn load(&mut self, ty: Type, sort: Sort) -> String {
        let register = self.fresh(ty);
        let at = sort.offset(self.loads);
        self.loads += 1;
        let line = match class(ty) {
            "pred" => format!(
                "ld.global.b32 %t32, [%in+{at}]; and.b32 %t32, %t32, 1; setp.ne.b32 {register}, %t32, 0;"
            ),
            "b128" => format!(
                "ld.global.b64 %t64, [%in+{at}]; ld.global.b64 %u64, [%in+{}]; mov.b128 {register}, {{%t64, %u64}};",
                sort.offset(self.loads)
            ),
            class => format!("ld.global.{class} {register}, [%in+{at}];"),
        };
        self.before(line);
        register
    }

    fn store(&mut self, register: &str, ty: Type) {
        let (widen, words) = match class(ty) {
            "pred" => (format!("selp.b64 %t64, 1, 0, {register};"), 1),
            "b16" => (format!("cvt.u64.u16 %t64, {register};"), 1),
            "b32" => (format!("cvt.u64.u32 %t64, {register};"), 1),
            "f32" => (
                format!("mov.b32 %t32, {register}; cvt.u64.u32 %t64, %t32;"),
                1,
            ),
            "f64" => (format!("mov.b64 %t64, {register};"), 1),
            "b128" => (
                format!("mov.b128 {{%t64, %u64}}, {register}; st.global.b64 OUT, %u64;"),
                2,
            ),
            _ => (format!("mov.b64 %t64, {register};"), 1),
        };
        self.after(format!("{widen} st.global.b64 OUT, %t64;"));
        self.snippet.words += words;
    }

    /// An address of the thread's own memory, filled from the table; what is written comes to the output.
    fn address(&mut self) -> String {
        let effect = self.opcode.effect();
        let (base, space) = match self.opcode.space {
            Some(Space::Shared) => ("%shared", "shared"),
            Some(Space::Local) => ("%local", "local"),
            Some(Space::Const) => return "[%const]".into(),
            Some(Space::Param) => return "[k_v]".into(),
            _ if self.form.family == Family::Matrix => ("%shared", "shared"),
            _ => ("%mem", "global"),
        };
        let sort = match (self.form.op, self.opcode.types.last()) {
            (Op::Atom | Op::Red, Some(&ty)) => Sort::of(ty),
            _ => Sort::Bits,
        };
        for word in 0..MEMORY / 8 {
            let at = sort.offset(4 + word);
            self.before(format!(
                "ld.global.b64 %t64, [%in+{at}]; st.{space}.b64 [{base}+{}], %t64;",
                8 * word
            ));
        }
        self.snippet.operands.push(("[a]".into(), sort, 4));
        let all_lanes = self.form.family == Family::Matrix;
        if all_lanes {
            self.before("bar.warp.sync 0xffffffff;".into());
        }
        if !effect.writes.is_empty() {
            if all_lanes {
                self.after("bar.warp.sync 0xffffffff;".into());
            }
            for word in 0..MEMORY / 8 {
                self.after(format!(
                    "ld.{space}.b64 %t64, [{base}+{}]; st.global.b64 OUT, %t64;",
                    8 * word
                ));
                self.snippet.words += 1;
            }
        }
        if all_lanes {
            self.after("bar.warp.sync 0xffffffff;".into());
        }
        if all_lanes && self.opcode.space.is_none() {
            let convert = "cvt.u64.u32 %generic, %shared; cvta.shared.u64 %generic, %generic;";
            self.before(format!(".reg .b64 %generic; {convert}"));
            return "[%generic]".into();
        }
        format!("[{base}]")
    }

    fn before(&mut self, line: String) {
        self.snippet.before.push(line);
    }

    fn after(&mut self, line: String) {
        self.snippet.after.push(line);
    }
}

/// The type that a register of a type is declared with.
fn class(ty: Type) -> &'static str {
    match (ty.kind(), ty) {
        (TypeKind::Predicate, _) => "pred",
        (_, Type::F32) => "f32",
        (_, Type::F64) => "f64",
        _ => match ty.bits() {
            ..=16 => "b16",
            17..=32 => "b32",
            33..=64 => "b64",
            _ => "b128",
        },
    }
}

/// A kernel of such pieces.
pub fn kernel(version: (u8, u8), snippets: &[&Snippet]) -> String {
    let constants: Vec<String> = (0..64 * MEMORY as u64 / 8)
        .map(|i| format!("{:#x}", scramble(i)))
        .collect();
    let mut text = format!(
        ".version {}.{}\n.target sm_90a\n.address_size 64\n.const .align 32 .u64 bank[{}] = {{{}}};\n\
         .visible .entry k(.param .u64 k_in, .param .u64 k_out, .param .u64 k_mem, .param .u64 k_v)\n.maxntid 128\n{{\n\
         .reg .b64 %in, %out, %mem, %local, %t64, %u64, %const; .reg .b32 %t32, %u32, %me, %shared;\n\
         .shared .align 128 .b8 sh[{}];\n.local .align 32 .b8 lo[{MEMORY}];\n\
         ld.param.u64 %in, [k_in]; ld.param.u64 %out, [k_out]; ld.param.u64 %mem, [k_mem];\n\
         mov.u32 %me, %tid.x; mov.u32 %shared, sh; mad.lo.u32 %shared, %me, {MEMORY}, %shared;\n\
         mov.u32 %t32, %ctaid.x; mad.lo.u32 %me, %t32, 128, %me;\n\
         mad.wide.u32 %in, %me, 8, %in; mad.wide.u32 %out, %me, 8, %out; mad.wide.u32 %mem, %me, {MEMORY}, %mem;\n\
         mov.u64 %local, lo; and.b32 %t32, %me, 63; mov.u64 %const, bank; mad.wide.u32 %const, %t32, {MEMORY}, %const;\n",
        version.0,
        version.1,
        constants.len(),
        constants.join(","),
        128 * MEMORY,
    );
    let mut at = 0;
    for snippet in snippets {
        snippet.print(at, &mut text);
        at += snippet.words;
    }
    text + "ret;\n}\n"
}
