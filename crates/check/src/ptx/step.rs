//! From a PTX instruction to a [`Step`].

use smallvec::SmallVec;
use warpwright_ptx::opcode::{Control, Op, Role, SpaceSet};
use warpwright_ptx::{
    Base as PtxBase, Inst, Opcode, Operand, OperandList, Part, Reg, Space, SpecialReg, Symbol,
    Type, TypeKind,
};

use super::fold::fold;
use super::function::PtxFunction;
use super::meaning::{meaning, relation};
use crate::fold::field_place;
use crate::range::Range;
use crate::semantics::{
    Access, Address, Arg, Base, Coordinate, Effect, Extend, Guard, Meaning, Name, SlotSpace,
    Spaces, Step, Unsupported,
};
use crate::term::{sign_extended, truncate};
use warpwright_flow::{Function as _, Value};

type Result<T> = std::result::Result<T, Unsupported>;

fn unsupported<T>(text: impl Into<String>) -> Result<T> {
    Err(Unsupported(text.into()))
}

fn value(reg: Reg) -> Value {
    Value(reg.as_u32())
}

/// Is it one of a plain access's hints to the caches? `.lu` is none: it promises that nobody reads the line again.
fn is_hint(modifier: &str) -> bool {
    let is_operator = matches!(modifier, "ca" | "cg" | "cs" | "wb" | "wt");
    is_operator
        || modifier.starts_with("L1::")
        || matches!(modifier, "L2::64B" | "L2::128B" | "L2::256B")
}

/// Translates an instruction.
pub(super) fn step(function: &PtxFunction<'_>, inst: Inst) -> Result<Step> {
    let body = function.view.body();
    let data = &body.insts[inst];
    let opcode = function.module().opcode(data);
    let operands = body.operands(inst);
    if !opcode.is_known() {
        return unsupported(format!("the instruction {} is not known", opcode.text));
    }
    let mut is_held = false;
    function.for_each_held(warpwright_flow::Inst(inst.as_u32()), |_, _| is_held = true);
    let mut builder = Builder {
        function,
        opcode,
        step: Step::new(&*opcode.text),
        is_volatile: false,
        is_held,
    };
    if let Some(shaped) = &function.shaped {
        shaped.permits(opcode)?;
    }
    builder.step.guard = data.guard.map(|guard| Guard {
        value: value(guard.reg),
        negated: guard.negated,
    });
    match opcode.control() {
        Control::Call => builder.call(inst)?,
        _ => builder.operands(operands)?,
    }
    builder.effect(operands)?;
    // An atomic operation whose result nobody wants.
    if opcode.op == Some(Op::Red) && !opcode.has_mod("async") {
        builder.step.op = builder.step.op.replacen("red", "atom", 1);
    }
    if opcode.control() == Control::Return {
        let returned = function.returned();
        builder.step.args.extend(returned.map(Arg::Value));
    }
    if builder.step.effect == Effect::Pure {
        let is_exact = builder.is_exact(operands);
        builder.step.meaning = meaning(opcode, &builder.step, is_exact);
        builder.step.fold = fold(opcode, &builder.step).filter(|_| is_exact);
        if is_field_beyond(opcode, &builder.step) {
            builder.step.op += " beyond";
            (builder.step.meaning, builder.step.fold) = (Meaning::Opaque, None);
        }
    }
    builder.one_spelling();
    Ok(builder.step)
}

/// Does an immediate put a field's first bit or length beyond the word? What is taken then is not what registers with
/// the same numbers take.
fn is_field_beyond(opcode: &Opcode, step: &Step) -> bool {
    let bits = opcode.types.first().map_or(32, |ty| ty.bits());
    let is_beyond = |arg: &Arg| matches!(*arg, Arg::Const(value) if field_place(bits, Some(value), Some(0)).is_none());
    match (opcode.op, step.args.as_slice()) {
        (Some(Op::Bfe), [_, place @ ..]) | (Some(Op::Bfi), [_, _, place @ ..]) => {
            place.iter().any(is_beyond)
        }
        _ => false,
    }
}

struct Builder<'a> {
    function: &'a PtxFunction<'a>,
    opcode: &'a Opcode,
    step: Step,
    /// Reads a special register that changes by itself.
    is_volatile: bool,
    /// Its registers stay in use up to a wait.
    is_held: bool,
}

/// An operand's type as the instruction sees it.
#[derive(Clone, Copy)]
struct Seen {
    /// `None` if the opcode table does not check it.
    ty: Option<Type>,
}

impl Builder<'_> {
    fn operands(&mut self, operands: &[Operand]) -> Result<()> {
        let count = operands.len();
        let Some(roles) = self.opcode.roles(count) else {
            return unsupported(format!("{} with {count} operands", self.opcode.text));
        };
        for (index, (operand, role)) in operands.iter().zip(roles).enumerate() {
            let expected = self.opcode.operand_type(index, count);
            let seen = Seen {
                ty: expected.and_then(|expected| expected.ty),
            };
            match role {
                Role::Def => self.result(operand, seen)?,
                Role::UseDef => {
                    self.argument(operand, seen)?;
                    self.result(operand, seen)?;
                }
                Role::Address if self.is_plain_access() && self.step.access.is_none() => {
                    self.access(operand, operands)?;
                }
                Role::Label | Role::BranchTargets => {}
                Role::Use | Role::Address | Role::Immediate | Role::CallPart => {
                    self.argument(operand, seen)?;
                }
            }
        }
        Ok(())
    }

    /// Operations that are the same under several names have one.
    fn one_spelling(&mut self) {
        let comparison = self.opcode.mods().next().unwrap_or_default();
        if matches!(self.step.meaning, Meaning::Relation(_))
            && let Some((base, _)) = relation(comparison)
        {
            self.step.op =
                self.step
                    .op
                    .replacen(&format!(".{comparison}."), &format!(".{base}."), 1);
        }
        // What is computed does not depend on whether the carry flag is set.
        if self.step.writes_flag {
            self.step.op = self.step.op.replacen(".cc.", ".", 1);
        }
        if self.is_plain_access() {
            self.drop_hints();
        }
        // The elements of a vector are loaded and stored one by one.
        if let Some(access) = self.step.access.as_ref().filter(|access| access.lanes > 1) {
            let lanes = access.lanes;
            self.step.op = self.step.op.replacen(&format!(".v{lanes}"), "", 1);
            self.step.op = self.step.op.replace(&format!(" v{lanes}@0"), "");
        }
        // Zeros come in from the left.
        for bits in [16, 32, 64] {
            if self.step.op == format!("shr.b{bits}") {
                self.step.op = format!("shr.u{bits}");
            }
        }
        self.words_of_loads();
    }

    /// Bits are loaded, whatever they mean, and those of two words word by word.
    fn words_of_loads(&mut self) {
        let Effect::Load { spaces, .. } = self.step.effect else {
            return;
        };
        let access = self.step.access.as_ref();
        let access = access.filter(|access| access.extend == Extend::No);
        let (Some(access), Some(ty)) = (access, self.opcode.types.first()) else {
            return;
        };
        let bits = 8 * access.bytes / access.words(spaces);
        if let Some(start) = self.step.op.strip_suffix(&ty.to_string()) {
            self.step.op = format!("{start}.b{bits}");
        }
    }

    /// Cache operators, eviction priorities and prefetch sizes change no value ('performance hints only': PTX ISA,
    /// 'Cache Operators'). A policy in a register stays, as an operand of what has one.
    fn drop_hints(&mut self) {
        let hints = self.opcode.mods().filter(|name| is_hint(name));
        for hint in hints {
            self.step.op = self.step.op.replacen(&format!(".{hint}"), "", 1);
        }
    }

    fn list(&self, list: OperandList) -> &[Operand] {
        self.function.view.body().list(list)
    }

    /// The width of a scalar register.
    fn bits(&self, reg: Reg) -> Result<u32> {
        let body = self.function.view.body();
        let data = body.regs[reg];
        if body.reg_decls[data.decl].vector > 1 {
            return unsupported("a vector register is used");
        }
        Ok(data.ty.bits())
    }

    fn result(&mut self, operand: &Operand, seen: Seen) -> Result<()> {
        match *operand {
            Operand::Reg(reg) => {
                let bits = self.bits(reg)?;
                // The same opcode gives another value in a wider register.
                let note = format!(" to {bits}");
                let is_noted = self.step.access.is_some() && self.step.op.ends_with(&note);
                if seen.ty.is_some_and(|ty| ty.bits() != bits) && !is_noted {
                    self.step.op += &note;
                }
                self.step.results.push(Some(value(reg)));
                Ok(())
            }
            Operand::Sink => {
                self.step.results.push(None);
                Ok(())
            }
            Operand::Vector(list) | Operand::Pair(list) => {
                for part in self.list(list).to_vec() {
                    self.result(
                        &part,
                        Seen {
                            ty: self.element(seen, list),
                        },
                    )?;
                }
                Ok(())
            }
            _ => unsupported("a part of a register is written"),
        }
    }

    /// The type of one element of a vector operand: packing moves take the whole apart.
    fn element(&self, seen: Seen, list: OperandList) -> Option<Type> {
        if self.opcode.op != Some(Op::Mov) {
            return seen.ty;
        }
        match seen.ty?.bits() / list.len.max(1) {
            8 => Some(Type::B8),
            16 => Some(Type::B16),
            32 => Some(Type::B32),
            64 => Some(Type::B64),
            _ => None,
        }
    }

    fn argument(&mut self, operand: &Operand, seen: Seen) -> Result<()> {
        let arg = match *operand {
            Operand::Reg(reg) => self.register(reg, seen)?,
            Operand::Not(reg) => Arg::Not(value(reg)),
            Operand::Neg(reg) => {
                self.step.op += &format!(" neg{}", self.step.args.len());
                self.register(reg, seen)?
            }
            Operand::Sum { reg, by } => self.sum(reg, by, seen)?,
            Operand::Select { reg, part, negated } => {
                let sign = if negated { "-" } else { "" };
                self.step.op += &format!(" {sign}{}@{}", part.text(), self.step.args.len());
                self.bits(reg)?;
                Arg::Value(value(reg))
            }
            Operand::Special { reg, part } => self.special(reg, part, seen)?,
            Operand::Imm(imm) => Arg::Const(seen.ty.map_or(imm.bits(), |ty| imm.seen_as(ty))),
            Operand::Symbol { symbol, offset } => {
                Arg::Symbol(self.function.symbol(symbol)?, offset)
            }
            Operand::Mem(address) => Arg::Address(self.address(address)?),
            Operand::MemTuple(list) | Operand::List(list) => {
                for part in self.list(list).to_vec() {
                    self.argument(&part, Seen { ty: None })?;
                }
                return Ok(());
            }
            Operand::Vector(list) => {
                self.step.op += &format!(" v{}@{}", list.len, self.step.args.len());
                for part in self.list(list).to_vec() {
                    self.argument(
                        &part,
                        Seen {
                            ty: self.element(seen, list),
                        },
                    )?;
                }
                return Ok(());
            }
            _ => return unsupported("an operand that is not understood"),
        };
        self.step.args.push(arg);
        Ok(())
    }

    fn register(&self, reg: Reg, seen: Seen) -> Result<Arg> {
        let of = self.bits(reg)?;
        Ok(match seen.ty {
            Some(ty) if ty.bits() < of => Arg::Low {
                value: value(reg),
                bits: ty.bits(),
                of,
            },
            Some(ty) if ty.bits() > of && ty.kind() != TypeKind::Opaque => {
                return unsupported("a register is narrower than its operand");
            }
            _ => Arg::Value(value(reg)),
        })
    }

    /// A register and a constant: the sum has the register's width.
    fn sum(&self, reg: Reg, by: i64, seen: Seen) -> Result<Arg> {
        let of = self.bits(reg)?;
        let bits = match self.register(reg, seen)? {
            Arg::Low { bits, .. } => bits,
            _ => of,
        };
        Ok(Arg::Plus {
            value: value(reg),
            by,
            bits,
            of,
        })
    }

    fn special(&mut self, reg: SpecialReg, part: Option<Part>, seen: Seen) -> Result<Arg> {
        use SpecialReg as S;
        let dim = match part {
            None if reg.is_vector() => return unsupported(format!("{reg} is read as a whole")),
            Some(Part::X) => 0,
            Some(Part::Y) => 1,
            Some(Part::Z) => 2,
            _ => u8::MAX,
        };
        let is_word = seen.ty.is_some_and(|ty| ty.bits() == 32);
        let range = self.function.assumed.special(reg, dim).filter(|_| is_word);
        if let Some(range) = range {
            let index = self.step.args.len();
            self.step.bounds.push((index, range.low, range.high));
        }
        let placed = match &self.function.shaped {
            Some(shaped) => shaped.special(reg, dim, is_word)?,
            None => None,
        };
        if let Some(value) = range.and_then(Range::value) {
            return Ok(Arg::Const(value));
        }
        if let Some(placed) = placed {
            return Ok(placed);
        }
        Ok(match reg {
            S::Tid if dim < 3 && is_word => Arg::Coordinate(Coordinate::Thread(dim)),
            S::NTid if dim < 3 && is_word => Arg::Coordinate(Coordinate::Block(dim)),
            S::TotalSmemSize | S::AggrSmemSize => {
                return unsupported(format!(
                    "{reg} is read, which spills to shared memory change"
                ));
            }
            _ => {
                self.is_volatile |= changes_by_itself(reg);
                let part = part.map_or(String::new(), |part| format!(".{}", part.text()));
                let width = seen.ty.map_or(0, Type::bits);
                Arg::Input(Name::Special(format!("{reg}{part}:{width}")))
            }
        })
    }

    fn address(&mut self, address: warpwright_ptx::Address) -> Result<Address> {
        if address.unified {
            self.step.op += " unified";
        }
        let base = match address.base {
            PtxBase::Reg(reg) => Base::Value(value(reg), self.bits(reg)?),
            PtxBase::Symbol(symbol) => Base::Symbol(self.function.symbol(symbol)?),
            PtxBase::Absolute => return unsupported("an absolute address is used"),
            PtxBase::Unresolved => return unsupported("a name is not declared"),
        };
        Ok(Address {
            base,
            offset: address.offset,
        })
    }

    /// `ld` and `st` without any order towards other threads; `.cv` fetches anew what the host may have written.
    fn is_plain_access(&self) -> bool {
        let strong = [
            "volatile", "mmio", "relaxed", "acquire", "release", "async", "bulk", "cv",
        ];
        matches!(self.opcode.op, Some(Op::Ld | Op::Ldu | Op::St))
            && !strong.iter().any(|modifier| self.opcode.has_mod(modifier))
    }

    fn access(&mut self, operand: &Operand, operands: &[Operand]) -> Result<()> {
        let Operand::Mem(address) = *operand else {
            return unsupported("an address that is not understood");
        };
        let Some(&ty) = self.opcode.types.first() else {
            return unsupported("a memory access without a type");
        };
        let space = match self.opcode.space {
            Some(Space::Local) => SlotSpace::Local,
            Some(Space::Shared) if !self.opcode.has_mod("shared::cluster") => SlotSpace::Shared,
            _ => SlotSpace::Other,
        };
        let lanes = u32::from(self.opcode.vector.unwrap_or(1));
        self.step.is_aligned = match address.base {
            PtxBase::Symbol(symbol) => {
                let bytes = lanes * ty.bytes();
                self.function
                    .is_inside(symbol, self.opcode.space, address.offset, bytes)
            }
            _ => false,
        };
        let extend = self.extend(ty, operands)?;
        if let (Some(Space::Param), PtxBase::Symbol(symbol)) = (self.opcode.space, address.base) {
            if lanes == 1 && extend == Extend::No {
                let alignment = self.function.alignment(symbol, address.offset, ty.bytes());
                self.step.alignment = alignment;
            }
            self.step.known = (0..lanes)
                .map(|lane| {
                    let at = address.offset + i64::from(lane * ty.bytes());
                    let range = self.function.parameter(symbol, at, ty.bytes())?;
                    extended(range, ty.bits(), extend)
                })
                .collect();
        }
        self.step.access = Some(Access {
            address: self.address(address)?,
            bytes: ty.bytes(),
            lanes,
            space,
            extend,
        });
        Ok(())
    }

    /// How a load of `ty` fills its destination.
    fn extend(&self, ty: Type, operands: &[Operand]) -> Result<Extend> {
        if self.opcode.op == Some(Op::St) {
            return Ok(Extend::No);
        }
        let mut regs: SmallVec<[Reg; 8]> = SmallVec::new();
        match operands.first() {
            Some(Operand::Reg(reg)) => regs.push(*reg),
            Some(Operand::Vector(list)) => {
                let parts = self.list(*list).iter();
                regs.extend(parts.filter_map(|part| match part {
                    Operand::Reg(reg) => Some(*reg),
                    _ => None,
                }));
            }
            _ => {}
        }
        let mut widths = regs.iter().map(|&reg| self.bits(reg));
        let Some(width) = widths.next().transpose()? else {
            return Ok(Extend::No);
        };
        for other in widths {
            if other? != width {
                return unsupported("a vector of registers of different widths");
            }
        }
        Ok(match ty.kind() {
            _ if ty.bits() == width => Extend::No,
            TypeKind::Signed => Extend::Sign(width),
            _ => Extend::Zero(width),
        })
    }

    fn call(&mut self, inst: Inst) -> Result<()> {
        let body = self.function.view.body();
        let Some(call) = body.call(inst) else {
            return unsupported("a call that is not understood");
        };
        for operand in call.returns {
            match *operand {
                Operand::Reg(reg) => self.step.results.push(Some(value(reg))),
                Operand::Sink => self.step.results.push(None),
                _ => self.argument(operand, Seen { ty: None })?,
            }
        }
        match *call.target {
            Operand::Symbol {
                symbol: Symbol::Func(func),
                ..
            } => {
                self.step.op += &format!(" {}", self.function.module().functions[func].name);
            }
            ref target => self.argument(target, Seen { ty: None })?,
        }
        for operand in call.args {
            self.argument(operand, Seen { ty: None })?;
        }
        match call.table {
            Some(&Operand::CallTable(table)) => {
                let span = body.call_tables[table].span;
                self.step.op += &format!(" {}", self.function.module().text(span));
            }
            Some(&Operand::Prototype(prototype)) => {
                let span = body.prototypes[prototype].span;
                self.step.op += &format!(" {}", self.function.module().text(span));
            }
            _ => {}
        }
        Ok(())
    }

    fn effect(&mut self, operands: &[Operand]) -> Result<()> {
        let mut rest = self.opcode.effect();
        self.step.is_collective = is_collective(self.opcode, rest.convergent);
        self.step.reads_flag = std::mem::take(&mut rest.carry_in);
        self.step.writes_flag = std::mem::take(&mut rest.carry_out);
        // Registers that stay in use up to a wait are another matter: see `inflight`.
        if rest.is_async && !self.step.results.is_empty() && !self.is_held {
            return unsupported("its results arrive after it has been passed");
        }
        self.step.effect = match self.opcode.control() {
            Control::Branch | Control::IndirectBranch => Effect::Branch,
            Control::Return | Control::Exit | Control::Trap => Effect::Leave,
            Control::Call => Effect::Ordered,
            Control::Next if rest.is_none() && self.is_volatile => Effect::Convergent,
            Control::Next if rest.is_none() => Effect::Pure,
            Control::Next if self.is_volatile => Effect::Ordered,
            Control::Next if self.is_plain_access() => self.plain_access(operands),
            Control::Next => {
                let reads_textures = rest.reads == SpaceSet::TEXTURE;
                let convergent = std::mem::take(&mut rest.convergent);
                if convergent && rest.is_none() {
                    Effect::Convergent
                } else {
                    rest.reads = SpaceSet::NONE;
                    match reads_textures && !convergent && rest.is_none() {
                        true => Effect::Load {
                            spaces: Spaces::OTHER,
                            is_safe: false,
                        },
                        false => Effect::Ordered,
                    }
                }
            }
        };
        Ok(())
    }

    fn plain_access(&self, operands: &[Operand]) -> Effect {
        let space = match self.opcode.space {
            None => Spaces::GENERIC,
            Some(Space::Global) => Spaces::GLOBAL,
            Some(Space::Shared) => Spaces::SHARED,
            Some(Space::Local) => Spaces::LOCAL,
            Some(Space::Param) => Spaces::PARAM,
            Some(Space::Const) => Spaces::default(),
            Some(_) => Spaces::OTHER,
        };
        if self.opcode.op == Some(Op::St) {
            return Effect::Store(space);
        }
        let symbol = operands.iter().find_map(|operand| match operand {
            Operand::Mem(address) => match address.base {
                PtxBase::Symbol(symbol) => Some((symbol, address.offset)),
                _ => None,
            },
            _ => None,
        });
        let access = self.step.access.as_ref();
        let bytes = access.map_or(0, |access| access.bytes * access.lanes);
        Effect::Load {
            spaces: self
                .function
                .reads(self.opcode, symbol.map(|at| at.0), space),
            is_safe: symbol.is_some_and(|(symbol, offset)| {
                self.function
                    .is_inside(symbol, self.opcode.space, offset, bytes)
            }),
        }
    }

    /// Have all registers the widths that the opcode's types say?
    fn is_exact(&self, operands: &[Operand]) -> bool {
        let count = operands.len();
        let is_part = |arg: &Arg| match *arg {
            Arg::Low { .. } => true,
            Arg::Plus { bits, of, .. } => bits < of,
            _ => false,
        };
        let mut fits = !self.step.args.iter().any(is_part);
        for (index, operand) in operands.iter().enumerate() {
            let ty = self
                .opcode
                .operand_type(index, count)
                .and_then(|expected| expected.ty);
            let fit =
                |reg: Reg, ty: Option<Type>| ty.is_some_and(|ty| self.bits(reg) == Ok(ty.bits()));
            fits &= match *operand {
                Operand::Reg(reg) | Operand::Sum { reg, .. } => fit(reg, ty),
                Operand::Vector(list) => self.list(list).iter().all(|part| match *part {
                    Operand::Reg(reg) => fit(reg, self.element(Seen { ty }, list)),
                    Operand::Sink => true,
                    _ => false,
                }),
                Operand::Pair(list) => self.list(list).iter().all(|part| match *part {
                    Operand::Reg(reg) => self.bits(reg) == Ok(Type::Pred.bits()),
                    Operand::Sink => true,
                    _ => false,
                }),
                Operand::Imm(_) | Operand::Special { .. } | Operand::Symbol { .. } => ty.is_some(),
                Operand::Not(_) => true,
                _ => false,
            };
        }
        fits
    }
}

/// An element of so many bits as its register holds it.
fn extended(range: Range, bits: u32, extend: Extend) -> Option<(u64, u64)> {
    let wide = |value: u64| match extend {
        Extend::Sign(to) => truncate(sign_extended(value, bits) as u64, to),
        Extend::No | Extend::Zero(_) => value,
    };
    let (low, high) = (wide(range.low), wide(range.high));
    (low <= high).then_some((low, high))
}

/// Does it matter which threads execute it together? What is called may do anything.
fn is_collective(opcode: &Opcode, is_convergent: bool) -> bool {
    let op = opcode.op;
    is_convergent
        || opcode.control() == Control::Call
        || matches!(op, Some(Op::Activemask | Op::Bar | Op::Barrier))
        || ["sync", "aligned"].iter().any(|name| opcode.has_mod(name))
}

/// May two reads of a special register by one thread differ?
fn changes_by_itself(reg: SpecialReg) -> bool {
    use SpecialReg as S;
    matches!(
        reg,
        S::WarpId
            | S::SmId
            | S::Clock
            | S::ClockHi
            | S::Clock64
            | S::GlobalTimer
            | S::GlobalTimerLo
            | S::GlobalTimerHi
            | S::Pm(_)
            | S::Pm64(_)
    )
}
