//! Where variables lie. A variable that comes, goes or stands elsewhere may move the others of its state space. That
//! changes nothing for code that uses addresses as addresses alone, and relies on no more alignment than is declared:
//! what it does is then the same wherever they lie. All other code is undecided. It is looked for in the original: the
//! rewritten function has the same values.
//!
//! Registers are looked at without regard to order: what holds an address somewhere holds one everywhere.

use warpwright_flow::Function as _;
use warpwright_ptx::opcode::{Op, Role};
use warpwright_ptx::{
    Base, Body, FuncId, FunctionKind, Init, Inst, Module, Opcode, Operand, Reg, Space, Symbol,
    Type, TypeKind, VarId, Variable, View,
};

/// Whose variables may be elsewhere.
const SPACES: [Space; 4] = [Space::Shared, Space::Local, Space::Const, Space::Global];

/// Bytes at whose multiples the address of an operation must lie of which nothing else is known.
const UNKNOWN_NEED: u32 = 1024;

/// What a register holds of addresses that may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Holds {
    Nothing,
    /// One of a variable, plus anything else. All such variables are aligned to so many bytes.
    Address(u32),
    /// Something else that is made of one.
    Mixed,
}

impl Holds {
    fn or(self, other: Holds) -> Holds {
        match (self, other) {
            (Holds::Nothing, any) | (any, Holds::Nothing) => any,
            (Holds::Address(a), Holds::Address(b)) => Holds::Address(a.min(b)),
            _ => Holds::Mixed,
        }
    }

    /// A sum.
    fn plus(self, other: Holds) -> Holds {
        match (self, other) {
            (Holds::Nothing, any) | (any, Holds::Nothing) => any,
            _ => Holds::Mixed,
        }
    }

    /// An operation that is not known to keep addresses.
    fn mixed(self) -> Holds {
        match self {
            Holds::Nothing => Holds::Nothing,
            _ => Holds::Mixed,
        }
    }
}

/// Why an original function may behave otherwise where its variables lie elsewhere.
pub(super) fn relies_on_places(
    original: (&Module, FuncId),
    new: (&Module, FuncId),
) -> Option<String> {
    let moved: Vec<Space> = SPACES
        .into_iter()
        .filter(|&space| layout(original, space) != layout(new, space))
        .collect();
    if moved.is_empty() {
        return None;
    }
    let view = original.0.view(original.1)?;
    let walk = Walk::new(&view, &moved);
    let insts = walk.body.insts.keys();
    let (inst, why) = insts
        .into_iter()
        .find_map(|inst| Some((inst, walk.reliance(inst)?)))?;
    let text = view.inst_text(warpwright_flow::Inst(inst.as_u32()));
    Some(format!(
        "{why} in `{text}`, and variables may lie elsewhere now"
    ))
}

/// May it access memory by an address that it made of another variable's? It does not if addresses are added to alone, and
/// none is where it could be read again and taken away: nobody stores one or begins with one, and no call gives one back.
pub(super) fn mixes_addresses(view: &View<'_>) -> bool {
    let module = view.module();
    let begins_with_one = |variable: &Variable| match &variable.init {
        Some(Init::Data(data)) => data
            .refs
            .iter()
            .any(|of| matches!(of.symbol, Symbol::Var(_))),
        _ => false,
    };
    if module.variables.values().any(begins_with_one) {
        return true;
    }
    let bodies = module.functions.iter().filter(|(_, f)| f.body.is_some());
    let mut others = bodies.filter_map(|(id, _)| module.view(id));
    lets_addresses_out(view, true)
        || others.any(|other| names_a_variable(&other) && lets_addresses_out(&other, false))
}

/// Is the address of a variable of the module a value in it?
fn names_a_variable(view: &View<'_>) -> bool {
    view.body().operands.values().any(|operand| match *operand {
        Operand::Symbol {
            symbol: Symbol::Var(var),
            ..
        } => view.module().variables[var].owner.is_none(),
        _ => false,
    })
}

/// Is an address used otherwise than as one, or made of several, or may a call have one? `calls`: count they.
fn lets_addresses_out(view: &View<'_>, calls: bool) -> bool {
    let walk = Walk::new(view, &SPACES);
    let mut insts = walk.body.insts.keys();
    insts.any(|inst| {
        let opcode = walk.module.opcode(&walk.body.insts[inst]);
        if opcode.is_pure() {
            return false;
        }
        if calls && opcode.op == Some(Op::Call) {
            return true;
        }
        let operands = walk.body.operands(inst);
        let roles = opcode.roles(operands.len()).unwrap_or_default();
        operands.iter().enumerate().any(|(index, operand)| {
            let is_address = matches!(operand, Operand::Mem(_) | Operand::MemTuple(_))
                || roles.get(index) == Some(&Role::Address);
            let is_result = roles.get(index) == Some(&Role::Def);
            match walk.operand(operand) {
                Holds::Nothing => false,
                Holds::Address(_) => !is_address && !is_result,
                Holds::Mixed => true,
            }
        })
    })
}

/// Names and declarations of all variables of a space that a function may share it with, in order.
fn layout((module, id): (&Module, FuncId), space: Space) -> Vec<(&str, u64, u32)> {
    let may_be_there = |owner: Option<FuncId>| {
        owner.is_none_or(|owner| owner == id || module.functions[owner].kind != FunctionKind::Entry)
    };
    let variables = module.variables.values();
    let here = variables.filter(|v| v.space == space && may_be_there(v.owner));
    here.map(|v| (&*v.name, v.bytes(), v.alignment())).collect()
}

struct Walk<'m> {
    module: &'m Module,
    body: &'m Body,
    view: &'m View<'m>,
    moved: &'m [Space],
    holds: Vec<Holds>,
}

impl<'m> Walk<'m> {
    fn new(view: &'m View<'m>, moved: &'m [Space]) -> Self {
        let body = view.body();
        let mut walk = Walk {
            module: view.module(),
            body,
            view,
            moved,
            holds: vec![Holds::Nothing; body.regs.len()],
        };
        walk.settle();
        walk
    }

    fn settle(&mut self) {
        loop {
            let mut changed = false;
            for inst in self.body.insts.keys() {
                let opcode = self.module.opcode(&self.body.insts[inst]);
                if !opcode.is_pure() {
                    continue;
                }
                let result = self.result(opcode, inst);
                for reg in self.view.defs(inst) {
                    let old = &mut self.holds[reg.as_u32() as usize];
                    let now = old.or(result);
                    changed |= now != *old;
                    *old = now;
                }
            }
            if !changed {
                return;
            }
        }
    }

    /// What the results of a pure instruction hold.
    fn result(&self, opcode: &Opcode, inst: Inst) -> Holds {
        let operands = self.body.operands(inst);
        let Some((_, sources)) = operands.split_first() else {
            return Holds::Nothing;
        };
        let of = |index: usize| {
            sources
                .get(index)
                .map_or(Holds::Nothing, |o| self.operand(o))
        };
        let all = || {
            sources
                .iter()
                .map(|o| self.operand(o))
                .fold(Holds::Nothing, Holds::or)
        };
        let is_scalar =
            |operand: &Operand| !matches!(operand, Operand::Vector(_) | Operand::Pair(_));
        let is_plain = operands.iter().all(is_scalar);
        let is_word = |ty: &Type| {
            ty.bits() >= 32 && matches!(ty.kind(), TypeKind::Unsigned | TypeKind::Signed)
        };
        match opcode.op {
            Some(Op::Isspacep | Op::Getctarank) => Holds::Nothing,
            Some(Op::Mov | Op::Cvta | Op::Mapa) if is_plain => of(0).or(of(1).mixed()),
            Some(Op::Cvt) if is_plain && opcode.types.iter().all(is_word) => of(0),
            Some(Op::Add) if is_plain => of(0).plus(of(1)),
            Some(Op::Sub) if is_plain => of(0).plus(of(1).mixed()),
            Some(Op::Mad) if is_plain => of(0).or(of(1)).mixed().plus(of(2)),
            Some(Op::Selp) if is_plain => of(0).or(of(1)).or(of(2).mixed()),
            _ => all().mixed(),
        }
    }

    fn operand(&self, operand: &Operand) -> Holds {
        match *operand {
            Operand::Symbol { symbol, .. } => self.symbol(symbol),
            Operand::Mem(address) => match address.base {
                Base::Symbol(symbol) => self.symbol(symbol),
                Base::Reg(reg) => self.register(reg),
                _ => Holds::Nothing,
            },
            Operand::Reg(reg) | Operand::Not(reg) => self.register(reg),
            Operand::Neg(reg) | Operand::Sum { reg, .. } | Operand::Select { reg, .. } => {
                self.register(reg).mixed()
            }
            Operand::Vector(list)
            | Operand::Pair(list)
            | Operand::MemTuple(list)
            | Operand::List(list) => {
                let parts = self.body.list(list).iter().map(|part| self.operand(part));
                parts.fold(Holds::Nothing, Holds::or)
            }
            _ => Holds::Nothing,
        }
    }

    fn register(&self, reg: Reg) -> Holds {
        self.holds[reg.as_u32() as usize]
    }

    fn symbol(&self, symbol: Symbol) -> Holds {
        match self.moved_variable(symbol) {
            Some(var) => Holds::Address(self.module.variables[var].alignment().max(1)),
            None => Holds::Nothing,
        }
    }

    /// The variable, if it may lie elsewhere.
    fn moved_variable(&self, symbol: Symbol) -> Option<VarId> {
        let Symbol::Var(var) = symbol else {
            return None;
        };
        let function = self.view.function();
        let is_param = function
            .params
            .iter()
            .chain(&function.returns)
            .any(|param| param.var == var);
        let space = self.module.variables[var].space;
        (!is_param && self.moved.contains(&space)).then_some(var)
    }

    /// What is wrong with an instruction, if variables lie elsewhere.
    fn reliance(&self, inst: Inst) -> Option<&'static str> {
        const VALUE: &str = "an address is used as a value";
        let data = &self.body.insts[inst];
        let opcode = self.module.opcode(data);
        if data
            .guard
            .is_some_and(|guard| self.register(guard.reg) != Holds::Nothing)
        {
            return Some(VALUE);
        }
        if opcode.is_pure() {
            return None;
        }
        let operands = self.body.operands(inst);
        let roles = opcode.roles(operands.len()).unwrap_or_default();
        let is_argument = opcode.op == Some(Op::St) && opcode.space == Some(Space::Param);
        for (index, operand) in operands.iter().enumerate() {
            let held = self.operand(operand);
            let is_address = matches!(operand, Operand::Mem(_) | Operand::MemTuple(_))
                || roles.get(index) == Some(&Role::Address);
            match held {
                Holds::Nothing => {}
                Holds::Address(align) if is_address => {
                    // Without order a register may hold what another instruction needs.
                    let is_there = opcode.space.is_none_or(|space| self.moved.contains(&space));
                    if is_there && align < self.need(opcode) {
                        return Some("more alignment is relied upon than is declared");
                    }
                }
                // Where a callee finds its arguments in local memory is for it alone.
                Holds::Address(_) if is_argument && self.moved == [Space::Local] => {}
                // A result is not read.
                _ if roles.get(index) == Some(&Role::Def) => {}
                _ => return Some(VALUE),
            }
        }
        None
    }

    /// Bytes at whose multiples an access must lie.
    fn need(&self, opcode: &Opcode) -> u32 {
        let element = opcode.types.first().map_or(16, |ty| ty.bytes());
        match opcode.op {
            Some(Op::Ld | Op::Ldu | Op::St | Op::Atom | Op::Red) if !opcode.has_mod("bulk") => {
                element * u32::from(opcode.vector.unwrap_or(1))
            }
            Some(Op::Prefetch | Op::Prefetchu) => 1,
            Some(Op::Mbarrier) => 8,
            Some(Op::Ldmatrix | Op::Stmatrix) => 16,
            Some(Op::Cp) if !opcode.has_mod("bulk") => 16,
            _ => UNKNOWN_NEED,
        }
    }
}
