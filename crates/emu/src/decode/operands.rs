//! Operands, and the function that is being decoded.

use std::collections::BTreeMap;

use smallvec::{SmallVec, smallvec};
use warpwright_ptx::ir::{
    Address, Base, Body, FuncId, Imm, Inst, InstData, Operand, OperandList, Part, Reg, Symbol,
    VarId,
};
use warpwright_ptx::{Space, SpecialReg, Type, TypeKind};

use super::words::{Reason, Words};
use super::{Constants, Decoding, MAX_PRIVATE, scope};
use crate::arith::narrow::{Bf16, F16};
use crate::fault::Unsupported;
use crate::lanes::{LaneFn, unary};
use crate::memory::image::Image;
use crate::program::{Access, AccessSpace, Function, Guard, Op, Out, ParamPlace, Site, Src, Step};

/// The function that is being decoded.
pub(super) struct Decoder<'a> {
    pub module: &'a warpwright_ptx::ir::Module,
    pub image: &'a Image,
    pub body: &'a Body,
    constants: &'a mut Constants,
    /// First lane register of each register.
    registers: Vec<u32>,
    count: u32,
    /// The carry flag.
    carry: Option<u32>,
    addresses: BTreeMap<VarId, u64>,
    locals: BTreeMap<VarId, u64>,
    pub code: Vec<Step>,
    site: u32,
    guard: Option<Guard>,
    reads: SmallVec<[u32; 4]>,
    writes: SmallVec<[u32; 4]>,
    /// Where blocks of a cooperative launch wait for each other.
    workspace: Option<u64>,
    /// The program's result depends on the order of blocks.
    pub ordered: bool,
    /// See [`Program::fenced`](crate::program::Program).
    pub fenced: bool,
    /// The program calls `malloc`.
    pub heap: bool,
    /// There may be texture and surface objects.
    pub has_textures: bool,
    /// The program names some.
    pub textures: bool,
    /// The current instruction's result is approximate.
    pub approximate: bool,
    /// First step of each instruction.
    pub starts: Vec<u32>,
}

impl Decoding<'_> {
    /// Decodes one function; what is not supported is noted.
    pub(super) fn function(&mut self, named: FuncId) -> Function {
        let func = scope::resolve_alias(self.module, named);
        let source = &self.module.functions[func];
        let (local, locals) = self.layout_of(func, Space::Local);
        let (param, addresses) = self.layout_of(func, Space::Param);
        let mut function = Function {
            code: Vec::new(),
            regs: 0,
            local,
            param,
            params: Vec::new(),
            returns: Vec::new(),
        };
        let Some(body) = &source.body else {
            return function;
        };
        if function.local.len.max(function.param.len) > MAX_PRIVATE {
            let place = self.place(func, Inst::from_u32(0));
            let reason = "more local memory than a thread can have".to_owned();
            self.unsupported.push(Unsupported { place, reason });
            return function;
        }
        let mut decoder = Decoder {
            module: self.module,
            image: &self.image,
            body,
            constants: &mut self.constants,
            registers: Vec::new(),
            count: 0,
            carry: None,
            addresses: addresses.into_iter().collect(),
            locals: locals.into_iter().collect(),
            code: Vec::new(),
            site: 0,
            guard: None,
            reads: SmallVec::new(),
            writes: SmallVec::new(),
            workspace: self.workspace,
            ordered: false,
            fenced: false,
            heap: false,
            has_textures: self.has_textures,
            textures: false,
            approximate: false,
            starts: Vec::new(),
        };
        for data in body.regs.values() {
            decoder.registers.push(decoder.count);
            let words = if data.ty.bits() > 64 { 2 } else { 1 };
            decoder.count += words * u32::from(body.reg_decls[data.decl].vector);
        }
        let places = |p: &warpwright_ptx::ir::Param| decoder.param_places(p);
        function.params = source.params.iter().flat_map(places).collect();
        function.returns = source.returns.iter().flat_map(places).collect();
        let mut failures = Vec::new();
        for (inst, data) in body.insts.iter() {
            decoder.starts.push(decoder.code.len() as u32);
            decoder.site = self.sites.len() as u32;
            let opcode = self.module.opcode(data);
            let result = decoder.instruction(inst, data);
            self.sites.push(Site {
                func,
                inst,
                place: Default::default(),
                opcode: opcode.text.split('.').next().unwrap_or("").to_owned(),
                approximate: std::mem::take(&mut decoder.approximate),
            });
            if let Err(reason) = result {
                failures.push((inst, reason));
            }
        }
        decoder.starts.push(decoder.code.len() as u32);
        decoder.end();
        function.regs = decoder.count as usize;
        let (ordered, fenced, heap) = (decoder.ordered, decoder.fenced, decoder.heap);
        let textures = decoder.textures;
        function.code = std::mem::take(&mut decoder.code);
        self.ordered |= ordered;
        self.fenced |= fenced;
        self.heap |= heap;
        self.textures |= textures;
        let first = self.sites.len() - body.insts.len();
        for site in first..self.sites.len() {
            self.sites[site].place = self.place(func, self.sites[site].inst);
        }
        for (inst, reason) in failures {
            self.unsupported.push(Unsupported {
                place: self.place(func, inst),
                reason,
            });
        }
        function
    }
}

impl<'a> Decoder<'a> {
    fn instruction(&mut self, inst: Inst, data: &InstData) -> Result<(), Reason> {
        self.guard = data.guard.map(|g| Guard {
            reg: self.register(g.reg),
            negated: g.negated,
        });
        self.reads.clear();
        self.writes.clear();
        let opcode = self.module.opcode(data);
        let mut words = Words::new(opcode);
        let operands = self.body.operands(inst);
        self.dispatch(inst, &mut words, operands)?;
        words.finish()
    }

    fn dispatch(
        &mut self,
        inst: Inst,
        words: &mut Words<'_>,
        operands: &[Operand],
    ) -> Result<(), Reason> {
        let float = words.peek_type().is_some_and(Type::is_float);
        match words.name {
            "add" | "sub" | "mul" | "fma" | "mad" | "div" | "min" | "max" | "abs" | "neg"
                if float =>
            {
                self.floating(words, operands)
            }
            "rcp" | "sqrt" | "rsqrt" | "ex2" | "lg2" | "sin" | "cos" | "tanh" | "copysign"
            | "testp" => self.floating(words, operands),
            "setp" | "set" | "selp" | "slct" => self.comparison(words, operands),
            "mov" | "cvt" | "cvta" | "isspacep" => self.conversion(words, operands),
            "ld" | "ldu" | "st" | "atom" | "red" | "prefetch" | "prefetchu" | "discard"
            | "applypriority" | "createpolicy" => self.memory(words, operands),
            "bra" | "brx" | "call" | "ret" | "exit" | "trap" | "brkpt" => {
                self.control(inst, words, operands)
            }
            "bar" | "barrier" | "membar" | "fence" | "vote" | "shfl" | "match" | "redux"
            | "activemask" | "elect" | "nanosleep" | "mbarrier" | "cp" | "pmevent"
            | "griddepcontrol" | "setmaxnreg" => self.synchronisation(words, operands),
            "tex" | "suld" | "sust" => self.texture(words, operands),
            "mma" | "wmma" | "ldmatrix" | "stmatrix" | "movmatrix" => self.tensor(words, operands),
            name if name.starts_with('v') && video_name(name) => self.video(words, operands),
            _ => self.arithmetic(words, operands),
        }
    }

    /// The step after the last instruction: falling off the end returns.
    fn end(&mut self) {
        self.guard = None;
        self.emit(Op::Return);
        if let Some(last) = self.code.last_mut() {
            last.counted = false;
        }
        let starts = std::mem::take(&mut self.starts);
        let step_of = |inst: u32| starts.get(inst as usize).copied().unwrap_or(u32::MAX);
        for step in &mut self.code {
            match &mut step.op {
                Op::Branch { target } => *target = step_of(*target),
                Op::BranchTable { targets, .. } => {
                    targets.iter_mut().for_each(|t| *t = step_of(*t));
                }
                _ => {}
            }
        }
    }

    /// Appends the instruction's main step.
    pub fn emit(&mut self, op: Op) {
        let step = Step {
            guard: self.guard,
            op,
            site: self.site,
            counted: true,
            reads: std::mem::take(&mut self.reads),
            writes: std::mem::take(&mut self.writes),
        };
        self.code.push(step);
    }

    /// Appends a helper step before the main one; it runs for all lanes that are there.
    fn prepare(&mut self, op: Op, reads: SmallVec<[u32; 4]>, dst: u32) {
        let step = Step {
            guard: None,
            op,
            site: self.site,
            counted: false,
            reads,
            writes: smallvec![dst],
        };
        self.code.push(step);
    }

    /// A fresh lane register.
    pub fn temporary(&mut self) -> u32 {
        self.count += 1;
        self.count - 1
    }

    /// The lane register of the carry flag.
    pub fn carry(&mut self) -> u32 {
        match self.carry {
            Some(carry) => carry,
            None => *self.carry.insert({
                self.count += 1;
                self.count - 1
            }),
        }
    }

    pub fn register(&self, reg: Reg) -> u32 {
        use cranelift_entity::EntityRef;
        self.registers.get(reg.index()).copied().unwrap_or(0)
    }

    /// Where a parameter lies; the elements of a vector register are passed one by one.
    fn param_places(&self, p: &warpwright_ptx::ir::Param) -> Vec<ParamPlace> {
        let Some(reg) = p.reg else {
            return vec![ParamPlace::Memory {
                offset: self.addresses.get(&p.var).copied().unwrap_or(0),
                len: self.module.variables[p.var].bytes(),
            }];
        };
        let first = self.register(reg);
        let elements = self.vector_of(reg).map_or(1, u32::from);
        (first..first + elements)
            .map(ParamPlace::Register)
            .collect()
    }

    /// The elements of a vector register.
    pub fn vector_of(&self, reg: Reg) -> Option<u8> {
        let vector = self.body.reg_decls[self.body.regs[reg].decl].vector;
        (vector > 1).then_some(vector)
    }

    /// The lane register that an element of a vector register has.
    fn element(&self, reg: Reg, part: Part) -> Option<u32> {
        let at = AXES.iter().position(|&axis| axis == part)?;
        let wide = self.reg_type(reg).bits() > 64;
        let inside = self.vector_of(reg).is_some_and(|n| at < usize::from(n));
        (inside && !wide).then(|| self.register(reg) + at as u32)
    }

    pub fn reg_type(&self, reg: Reg) -> Type {
        self.body.reg_type(reg)
    }

    /// Bits of a register operand; 64 for anything else.
    pub fn width(&self, operand: &Operand) -> u32 {
        match operand {
            Operand::Reg(reg) => self.reg_type(*reg).bits(),
            Operand::Select { reg, .. } | Operand::Sum { reg, .. } => self.reg_type(*reg).bits(),
            _ => 64,
        }
    }

    /// Bits of the register that an operand names, as a mask.
    pub fn register_mask(&self, operand: &Operand) -> u64 {
        u64::MAX >> (64 - self.width(operand).clamp(1, 64))
    }

    pub fn constant(&mut self, value: u64) -> Src {
        Src::Const(self.constants.intern(value))
    }

    pub fn list(&self, list: OperandList) -> &'a [Operand] {
        self.body.list(list)
    }

    /// The elements of a vector operand, or the operand alone.
    pub fn elements(&self, operand: &Operand) -> Vec<Operand> {
        self.vector(operand).unwrap_or_else(|| vec![*operand])
    }

    /// The elements of `{a, b}`, a vector register or a special register of four components.
    pub fn vector(&self, operand: &Operand) -> Option<Vec<Operand>> {
        match *operand {
            Operand::Vector(list) => Some(self.list(list).to_vec()),
            Operand::Reg(reg) => {
                let parts = &AXES[..usize::from(self.vector_of(reg)?).min(AXES.len())];
                let select = |&part| Operand::Select {
                    reg,
                    part,
                    negated: false,
                };
                Some(parts.iter().map(select).collect())
            }
            Operand::Special { reg, part: None } if reg.is_vector() => {
                let component = |part| Operand::Special {
                    reg,
                    part: Some(part),
                };
                Some(AXES.map(component).to_vec())
            }
            _ => None,
        }
    }

    /// A source operand of a type.
    pub fn src(&mut self, operand: &Operand, ty: Type) -> Result<Src, Reason> {
        match *operand {
            Operand::Reg(reg) if self.vector_of(reg).is_some() => Err("a vector register".into()),
            Operand::Reg(reg) => {
                let index = self.register(reg);
                self.reads.push(index);
                if self.reg_type(reg).bits() > 64 {
                    self.reads.push(index + 1);
                }
                Ok(Src::Reg(index))
            }
            Operand::Not(reg) => {
                let index = self.register(reg);
                Ok(self.computed(index, unary(|p: bool| !p)))
            }
            Operand::Imm(imm) => Ok(self.constant(immediate(imm, ty))),
            Operand::Special {
                reg: SpecialReg::EnvReg(half @ (1 | 2)),
                ..
            } if self.workspace.is_some() => {
                let workspace = self.workspace.unwrap_or_default();
                Ok(self.constant(workspace >> (32 * (2 - half)) & u64::from(u32::MAX)))
            }
            // Where blocks of a cooperative launch wait: this launch is none. Nobody says what the others are.
            Operand::Special {
                reg: SpecialReg::EnvReg(_),
                ..
            } => Err(
                "what the driver says in %envreg, as `this_grid().sync()` of a cooperative launch reads".to_owned(),
            ),
            Operand::Special { reg, part } => {
                let dst = self.temporary();
                self.prepare(Op::Special { dst, reg, part }, smallvec![], dst);
                Ok(Src::Reg(dst))
            }
            Operand::Symbol { symbol, offset } => self.symbol(symbol, offset),
            Operand::Select {
                reg,
                part,
                negated: false,
            } => {
                if let Some(index) = self.element(reg, part) {
                    self.reads.push(index);
                    return Ok(Src::Reg(index));
                }
                let index = self.register(reg);
                let (shift, bits) = part_bits(part).ok_or("a vector register")?;
                let part = move |x: u32| x >> shift & (u32::MAX >> (32 - bits));
                Ok(self.computed(index, unary(part)))
            }
            Operand::Sum { reg, by } => {
                let (index, mask) = (self.register(reg), self.register_mask(operand));
                if by as u64 & mask == 0 {
                    return self.src(&Operand::Reg(reg), ty);
                }
                let sum = move |x: u64| x.wrapping_add_signed(by) & mask;
                Ok(self.computed(index, unary(sum)))
            }
            Operand::Unresolved => Err("a name that is not declared".into()),
            _ => Err("an operand of this form".into()),
        }
    }

    /// A register computed by a helper step.
    fn computed(&mut self, from: u32, f: LaneFn) -> Src {
        let dst = self.temporary();
        let op = Op::Alu {
            srcs: smallvec![Src::Reg(from)],
            outs: smallvec![Out { dst, f }],
        };
        self.prepare(op, smallvec![from], dst);
        self.reads.push(dst);
        Src::Reg(dst)
    }

    /// Several sources of one type.
    pub fn srcs(&mut self, operands: &[Operand], ty: Type) -> Result<SmallVec<[Src; 4]>, Reason> {
        operands.iter().map(|o| self.src(o, ty)).collect()
    }

    /// Both halves of a 128-bit source.
    pub fn src128(&mut self, operand: &Operand) -> Result<[Src; 2], Reason> {
        match self.src(operand, Type::B128)? {
            Src::Reg(low) => Ok([Src::Reg(low), Src::Reg(low + 1)]),
            low => {
                let zero = self.constant(0);
                Ok([low, zero])
            }
        }
    }

    /// The address of a symbol, as a value.
    fn symbol(&mut self, symbol: Symbol, offset: i64) -> Result<Src, Reason> {
        if let Symbol::Var(var) = symbol
            && let Some(&at) = self.locals.get(&var)
        {
            let dst = self.temporary();
            let offset = at.wrapping_add_signed(offset);
            self.prepare(Op::LocalAddress { dst, offset }, smallvec![], dst);
            return Ok(Src::Reg(dst));
        }
        let address = self.address_of(symbol)?.wrapping_add_signed(offset);
        Ok(self.constant(address))
    }

    fn address_of(&self, symbol: Symbol) -> Result<u64, Reason> {
        if let Symbol::Var(var) = symbol
            && let Some(&address) = self.addresses.get(&var)
        {
            return Ok(address);
        }
        let name = match symbol {
            Symbol::Var(var) => &self.module.variables[var].name,
            Symbol::Func(func) => &self.module.functions[func].name,
        };
        let address = self.image.address(self.module, symbol);
        address.ok_or_else(|| format!("`{name}` has no address that the emulator knows"))
    }

    /// A `.param` variable of this function: offset and size.
    pub fn param_variable(&self, operand: &Operand) -> Option<(u64, u64)> {
        let Operand::Symbol {
            symbol: Symbol::Var(var),
            offset: 0,
        } = operand
        else {
            return None;
        };
        let data = &self.module.variables[*var];
        (data.space == Space::Param).then(|| Some((*self.addresses.get(var)?, data.bytes())))?
    }

    /// A destination register; a fresh one for `_`.
    pub fn dst(&mut self, operand: &Operand) -> Result<u32, Reason> {
        match operand {
            Operand::Reg(reg) if self.vector_of(*reg).is_some() => Err("a vector register".into()),
            Operand::Select { reg, part, .. } if self.element(*reg, *part).is_some() => {
                let index = self.element(*reg, *part).unwrap_or(0);
                self.writes.push(index);
                Ok(index)
            }
            Operand::Reg(reg) => {
                let index = self.register(*reg);
                self.writes.push(index);
                if self.reg_type(*reg).bits() > 64 {
                    self.writes.push(index + 1);
                }
                Ok(index)
            }
            Operand::Sink => Ok(self.temporary()),
            _ => Err("a destination that is no register".into()),
        }
    }

    /// A destination that may be `_`.
    pub fn optional_dst(&mut self, operand: &Operand) -> Result<Option<u32>, Reason> {
        match operand {
            Operand::Sink => Ok(None),
            other => self.dst(other).map(Some),
        }
    }

    /// `d|p`: the second is `None` if it is missing or `_`.
    pub fn pair(&mut self, operand: &Operand) -> Result<(Option<u32>, Option<u32>), Reason> {
        match operand {
            Operand::Pair(list) => match self.list(*list) {
                [d, p] => Ok((self.optional_dst(d)?, self.optional_dst(p)?)),
                _ => Err("a pair without two parts".into()),
            },
            other => Ok((self.optional_dst(other)?, None)),
        }
    }

    /// A register that the instruction also reads.
    pub fn also_reads(&mut self, reg: u32) {
        self.reads.push(reg);
    }

    /// A register that the instruction also writes.
    pub fn also_writes(&mut self, reg: u32) {
        self.writes.push(reg);
    }

    /// A pure instruction of one result.
    pub fn alu(
        &mut self,
        dst: &Operand,
        srcs: SmallVec<[Src; 4]>,
        f: LaneFn,
    ) -> Result<(), Reason> {
        let dst = self.dst(dst)?;
        self.emit(Op::Alu {
            srcs,
            outs: smallvec![Out { dst, f }],
        });
        Ok(())
    }

    /// A pure instruction on all operands but the first, which is the result.
    pub fn pure(&mut self, operands: &[Operand], ty: Type, f: LaneFn) -> Result<(), Reason> {
        let [d, rest @ ..] = operands else {
            return Err("too few operands".into());
        };
        let srcs = self.srcs(rest, ty)?;
        self.alu(d, srcs, f)
    }

    /// A memory operand: `elem` bytes in each of `count` elements.
    pub fn access(
        &mut self,
        operand: &Operand,
        space: AccessSpace,
        elem: u32,
        count: u32,
    ) -> Result<Access, Reason> {
        let address: Address = match operand {
            Operand::Mem(address) => *address,
            Operand::MemTuple(list) => match self.list(*list) {
                [Operand::Mem(address)] => *address,
                _ => return Err("a tensor address".into()),
            },
            Operand::Reg(reg) => Address {
                base: Base::Reg(*reg),
                offset: 0,
                unified: false,
            },
            Operand::Symbol { symbol, offset } => Address {
                base: Base::Symbol(*symbol),
                offset: *offset,
                unified: false,
            },
            _ => return Err("an operand that is no address".into()),
        };
        let mut space = space;
        let (base, narrow) = match address.base {
            Base::Reg(reg) => {
                let narrow = self.reg_type(reg).bits() <= 32;
                (self.src(&Operand::Reg(reg), Type::B64)?, narrow)
            }
            Base::Symbol(symbol) => {
                if space == AccessSpace::Generic {
                    space = self.space_of(symbol);
                }
                (self.symbol(symbol, 0)?, false)
            }
            Base::Absolute => (self.constant(0), false),
            Base::Unresolved => return Err("a name that is not declared".into()),
        };
        let bytes = elem * count;
        Ok(Access {
            space,
            base,
            offset: address.offset,
            narrow,
            elem,
            count,
            align: bytes,
        })
    }

    fn space_of(&self, symbol: Symbol) -> AccessSpace {
        match symbol {
            Symbol::Func(_) => AccessSpace::Generic,
            Symbol::Var(var) => match self.module.variables[var].space {
                Space::Shared => AccessSpace::Shared,
                Space::Local => AccessSpace::Local,
                Space::Param => AccessSpace::Param,
                Space::Global | Space::Const => AccessSpace::Global,
                _ => AccessSpace::Generic,
            },
        }
    }
}

/// The elements of a vector register, in order.
const AXES: [Part; 4] = [Part::X, Part::Y, Part::Z, Part::W];

/// First bit and width of a part of a 32-bit register.
pub(super) fn part_bits(part: Part) -> Option<(u32, u32)> {
    Some(match part {
        Part::B0 => (0, 8),
        Part::B1 => (8, 8),
        Part::B2 => (16, 8),
        Part::B3 => (24, 8),
        Part::H0 => (0, 16),
        Part::H1 => (16, 16),
        _ => return None,
    })
}

/// The lane of an immediate as an instruction of this type reads it.
fn immediate(imm: Imm, ty: Type) -> u64 {
    let bits = match (imm, ty) {
        (Imm::F64(bits), Type::F32) => (f64::from_bits(bits) as f32).to_bits() as u64,
        (Imm::F64(bits), Type::F16) => F16::from_f64(f64::from_bits(bits)).0 as u64,
        (Imm::F64(bits), Type::Bf16) => Bf16::from_f64(f64::from_bits(bits)).0 as u64,
        // ptxas takes the bits of `0f…` as they stand, not the number.
        (Imm::F32(bits), Type::F64) => bits as u64,
        (Imm::Int { value, .. }, Type::F32) => (value as f32).to_bits() as u64,
        (Imm::Int { value, .. }, Type::F64) => (value as f64).to_bits(),
        (imm, _) => imm.bits(),
    };
    match ty.kind() {
        TypeKind::Predicate => (bits != 0) as u64,
        _ => bits & (u64::MAX >> (64 - ty.bits().clamp(1, 64))),
    }
}

fn video_name(name: &str) -> bool {
    let base = name.trim_end_matches(['2', '4']);
    matches!(
        base,
        "vadd"
            | "vsub"
            | "vabsdiff"
            | "vmin"
            | "vmax"
            | "vshl"
            | "vshr"
            | "vmad"
            | "vset"
            | "vavrg"
    )
}
