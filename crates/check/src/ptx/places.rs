//! Where variables lie. A variable that comes, goes or stands elsewhere may move the others of its state space. That
//! changes nothing for code that uses addresses as addresses alone, and relies on no more alignment than is declared:
//! what it does is then the same wherever they lie. All other code is undecided. It is looked for in the original and in
//! all that it calls, with the addresses that it hands on: the rewritten functions have the same values.
//!
//! Registers are looked at without regard to order: what holds an address somewhere holds one everywhere.

use std::collections::BTreeMap;

use warpwright_flow::Function as _;
use warpwright_ptx::opcode::{Op, Role};
use warpwright_ptx::{
    Base, Body, FuncId, FunctionKind, Init, Inst, Module, Opcode, Operand, Reg, Space, Symbol,
    Type, TypeKind, VarId, Variable, View,
};

use super::surroundings::OF_THE_SYSTEM;

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

/// Why an original function, or one that it calls, may behave otherwise where variables lie elsewhere.
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
    let mut calls = Calls {
        module: original.0,
        moved: &moved,
        given: BTreeMap::from([(original.1, Given::new())]),
        waiting: vec![original.1],
    };
    calls.reliance()
}

/// What arguments hold, by the parameter.
type Given = BTreeMap<VarId, Holds>;

/// A function and all that it calls.
struct Calls<'m> {
    module: &'m Module,
    moved: &'m [Space],
    given: BTreeMap<FuncId, Given>,
    /// They are to be looked at, or looked at again with more arguments.
    waiting: Vec<FuncId>,
}

impl Calls<'_> {
    fn reliance(&mut self) -> Option<String> {
        while let Some(id) = self.waiting.pop() {
            let view = self.module.view(id)?;
            let walk = Walk::new(&view, self.moved, &self.given[&id]);
            if walk.gives_one_back() {
                let name = &view.function().name;
                return Some(format!(
                    "`{name}` gives back an address, and variables may lie elsewhere now"
                ));
            }
            for inst in walk.body.insts.keys() {
                let why = walk.reliance(inst).or_else(|| self.call(&walk, inst).err());
                if let Some(why) = why {
                    let text = view.inst_text(warpwright_flow::Inst(inst.as_u32()));
                    return Some(format!(
                        "{why} in `{text}`, and variables may lie elsewhere now"
                    ));
                }
            }
        }
        None
    }

    /// What is called is looked at, too.
    fn call(&mut self, walk: &Walk<'_>, inst: Inst) -> Result<(), &'static str> {
        if walk.module.opcode(&walk.body.insts[inst]).op != Some(Op::Call) {
            return Ok(());
        }
        let unknown = "it is not known what relies on addresses";
        let call = walk.body.call(inst).ok_or(unknown)?;
        let &Operand::Symbol {
            symbol: Symbol::Func(callee),
            ..
        } = call.target
        else {
            return Err(unknown);
        };
        let function = &self.module.functions[callee];
        if function.body.is_none() {
            return match OF_THE_SYSTEM.contains(&&*function.name) {
                true => Ok(()),
                false => Err(unknown),
            };
        }
        let is_new = !self.given.contains_key(&callee);
        let given = self.given.entry(callee).or_default();
        let mut changed = is_new;
        for (param, argument) in function.params.iter().zip(call.args) {
            let held = given.entry(param.var).or_insert(Holds::Nothing);
            let now = held.or(walk.argument(argument));
            changed |= now != *held;
            *held = now;
        }
        if changed {
            self.waiting.push(callee);
        }
        Ok(())
    }
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

/// Is an address used otherwise than as one, or made of several, or is anything done by one, or may a call have one?
/// `calls`: count they.
fn lets_addresses_out(view: &View<'_>, calls: bool) -> bool {
    let nothing = Given::new();
    let walk = Walk::new(view, &SPACES, &nothing);
    let mut insts = walk.body.insts.keys();
    insts.any(|inst| {
        let opcode = walk.module.opcode(&walk.body.insts[inst]);
        // What is counted or chosen by one may be another.
        if walk.is_decided_by_one(inst) {
            return true;
        }
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
    /// Variables of arguments: the function's own, and those of calls.
    arguments: Given,
}

impl<'m> Walk<'m> {
    fn new(view: &'m View<'m>, moved: &'m [Space], given: &Given) -> Self {
        let body = view.body();
        let mut walk = Walk {
            module: view.module(),
            body,
            view,
            moved,
            holds: vec![Holds::Nothing; body.regs.len()],
            arguments: given.clone(),
        };
        for param in &view.function().params {
            if let (Some(reg), Some(&held)) = (param.reg, given.get(&param.var)) {
                walk.holds[reg.as_u32() as usize] = held;
            }
        }
        walk.settle();
        walk
    }

    fn settle(&mut self) {
        loop {
            let mut changed = false;
            for inst in self.body.insts.keys() {
                changed |= self.hand_over(inst);
                let opcode = self.module.opcode(&self.body.insts[inst]);
                let result = match self.argument_accessed(inst) {
                    Some((var, Op::Ld)) => self.loaded(var, opcode),
                    _ if opcode.is_pure() => self.result(opcode, inst),
                    _ => continue,
                };
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

    /// The variable of an argument that is loaded or stored, if it is named.
    fn argument_accessed(&self, inst: Inst) -> Option<(VarId, Op)> {
        let opcode = self.module.opcode(&self.body.insts[inst]);
        let op = opcode.op.filter(|op| matches!(op, Op::Ld | Op::St))?;
        if opcode.space != Some(Space::Param) {
            return None;
        }
        let mut operands = self.body.operands(inst).iter();
        operands.find_map(|operand| match operand {
            Operand::Mem(address) => match address.base {
                Base::Symbol(Symbol::Var(var)) => Some((var, op)),
                _ => None,
            },
            _ => None,
        })
    }

    /// Stores an argument of a call. Has its variable more now?
    fn hand_over(&mut self, inst: Inst) -> bool {
        let Some((var, Op::St)) = self.argument_accessed(inst) else {
            return false;
        };
        let old = self.held_by(var);
        let now = old.or(self.stored(inst));
        self.arguments.insert(var, now);
        now != old
    }

    /// What a store stores.
    fn stored(&self, inst: Inst) -> Holds {
        let operands = self.body.operands(inst).iter();
        let values = operands.filter(|operand| !matches!(operand, Operand::Mem(_)));
        values
            .map(|operand| self.operand(operand))
            .fold(Holds::Nothing, Holds::or)
    }

    /// What is loaded of an argument: an address alone if all of it is.
    fn loaded(&self, var: VarId, opcode: &Opcode) -> Holds {
        let bytes = opcode.types.first().map_or(0, |ty| u64::from(ty.bytes()));
        match bytes == 8 || bytes == self.module.variables[var].bytes() {
            true => self.held_by(var),
            false => self.held_by(var).mixed(),
        }
    }

    /// What a call is given, or an argument that is loaded or stored, where it is followed.
    fn handed_on(&self, inst: Inst) -> Option<Holds> {
        let opcode = self.module.opcode(&self.body.insts[inst]);
        if opcode.op == Some(Op::Call) {
            let arguments = self.body.call(inst)?.args.iter();
            let held = arguments.map(|argument| self.argument(argument));
            return Some(held.fold(Holds::Nothing, Holds::or));
        }
        let mut returns = self.view.function().returns.iter();
        match self.argument_accessed(inst)? {
            (_, Op::Ld) => Some(Holds::Nothing),
            // What is given back is not followed.
            (var, _) if returns.any(|param| param.var == var) => Some(self.stored(inst).mixed()),
            _ => Some(self.stored(inst)),
        }
    }

    /// In a register.
    fn gives_one_back(&self) -> bool {
        let returns = self.view.function().returns.iter();
        let mut regs = returns.filter_map(|param| param.reg);
        regs.any(|reg| self.register(reg) != Holds::Nothing)
    }

    fn held_by(&self, var: VarId) -> Holds {
        self.arguments.get(&var).copied().unwrap_or(Holds::Nothing)
    }

    /// What a call is given.
    fn argument(&self, operand: &Operand) -> Holds {
        match *operand {
            Operand::Symbol {
                symbol: Symbol::Var(var),
                ..
            } if self.module.variables[var].space == Space::Param => self.held_by(var),
            _ => self.operand(operand),
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
        if let Symbol::Var(var) = symbol
            && self.held_by(var) != Holds::Nothing
        {
            // It is not followed where arguments are read by their addresses.
            return Holds::Mixed;
        }
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

    /// Is it executed or not by what an address is?
    fn is_decided_by_one(&self, inst: Inst) -> bool {
        let guard = self.body.insts[inst].guard;
        guard.is_some_and(|guard| self.register(guard.reg) != Holds::Nothing)
    }

    /// What is wrong with an instruction, if variables lie elsewhere.
    fn reliance(&self, inst: Inst) -> Option<&'static str> {
        const VALUE: &str = "an address is used as a value";
        let opcode = self.module.opcode(&self.body.insts[inst]);
        if self.is_decided_by_one(inst) {
            return Some(VALUE);
        }
        if opcode.is_pure() {
            return None;
        }
        if let Some(followed) = self.handed_on(inst) {
            return (followed == Holds::Mixed).then_some(VALUE);
        }
        let operands = self.body.operands(inst);
        let roles = opcode.roles(operands.len()).unwrap_or_default();
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
