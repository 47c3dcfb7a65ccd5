//! The verifier: what a module must satisfy before anything transforms it.
//!
//! Checks, for every function with a body:
//! - opcodes: operand counts that the opcode takes, vectors where they belong;
//! - register types against the opcode's types, by the ISA's relaxed rules for sizes and bits;
//! - destinations that can be written: registers and sinks;
//! - guards, branch targets and call signatures;
//! - no control that falls off the end of a device function or kernel without `ret` or `exit`
//!   (a warning: the hardware would run on, but compilers emit it after calls that do not return);
//! - constants, special registers and addresses of variables where the opcode takes them;
//! - directives that contradict each other.
//!
//! What the opcode table does not know is not judged: an opaque instruction passes, and
//! [`Function::opaque`] tells. A module that was parsed with errors never passes. Everything after
//! the front end asks for [`Verified`].

use std::ops::Deref;
use std::rc::Rc;

use cranelift_entity::SecondaryMap;
use smallvec::SmallVec;

use crate::Diagnostic;
use crate::Span;
use crate::ir::{
    Base, Body, Call, FuncId, Function, FunctionKind, Imm, Inst, Module, OpcodeId, Operand,
    OperandId, Param, Reg, Symbol,
};
use crate::opcode::{Control, Expected, Family, Lanes, Op, Opcode, Role, Shape};
use crate::special::SpecialReg;
use crate::types::{Space, Type, TypeKind};

/// Proof that a module has passed [`verify`].
#[derive(Clone, Copy, Debug)]
pub struct Verified<'m>(&'m Module);

impl<'m> Verified<'m> {
    /// The module.
    pub fn module(self) -> &'m Module {
        self.0
    }
}

impl Deref for Verified<'_> {
    type Target = Module;

    fn deref(&self) -> &Module {
        self.0
    }
}

/// Verifies a module. `Err` holds all diagnostics, of which at least one is an error.
///
/// # Errors
/// All diagnostics, where one of them is an error.
pub fn verify(module: &Module) -> Result<Verified<'_>, Vec<Diagnostic>> {
    let diagnostics = diagnose(module);
    match diagnostics.iter().any(Diagnostic::is_error) {
        true => Err(diagnostics),
        false => Ok(Verified(module)),
    }
}

/// All findings of the verifier, warnings included, in source order by function.
pub fn diagnose(module: &Module) -> Vec<Diagnostic> {
    if module.errors > 0 {
        let message = format!("the module has {} syntax errors", module.errors);
        return vec![Diagnostic::error("ptx::parse", message)];
    }
    let mut verifier = Verifier {
        module,
        plans: SecondaryMap::new(),
        diagnostics: Vec::new(),
    };
    for (id, function) in module.functions.iter() {
        verifier.function(id, function);
    }
    verifier.diagnostics
}

/// What each operand of an opcode is, and the type it may have.
type Plan = Vec<(Role, Option<Expected>)>;

type Shapes = SmallVec<[Shape; 8]>;

/// The plans of one opcode by what its operands look like; `None` for a number that it does not take.
type Plans = Vec<(Shapes, Option<Rc<Plan>>)>;

fn plan(opcode: &Opcode, shapes: &[Shape]) -> Option<Plan> {
    let exact = opcode.roles_of(shapes).zip(opcode.expected_of(shapes));
    if let Some((roles, types)) = exact {
        return Some(roles.into_iter().zip(types.into_iter().map(Some)).collect());
    }
    // Operands of the wrong shape are judged one by one, if at least their number fits.
    let count = shapes.len();
    let types = (0..count).map(|i| opcode.operand_type(i, count));
    opcode
        .roles(count)
        .map(|roles| roles.into_iter().zip(types).collect())
}

struct Verifier<'m> {
    module: &'m Module,
    plans: SecondaryMap<OpcodeId, Plans>,
    diagnostics: Vec<Diagnostic>,
}

impl<'m> Verifier<'m> {
    fn error(
        &mut self,
        code: &'static str,
        message: impl Into<String>,
        span: Span,
        label: impl Into<String>,
    ) {
        self.diagnostics
            .push(Diagnostic::error(code, message).label(span, label));
    }

    fn function(&mut self, _id: FuncId, function: &'m Function) {
        self.head(function);
        let Some(body) = &function.body else { return };
        for inst in body.insts.keys() {
            self.inst(body, inst);
        }
        self.end(function, body);
    }

    /// Rules for directives (PTX ISA, 'Performance-Tuning Directives').
    fn head(&mut self, function: &Function) {
        let find = |pick: fn(&crate::ir::DirectiveKind) -> bool| {
            function
                .directives
                .iter()
                .find(|d| pick(&d.kind))
                .map(|d| d.span)
        };
        use crate::ir::DirectiveKind as D;
        let max_ntid = find(|d| matches!(d, D::MaxNtid(_)));
        let req_ntid = find(|d| matches!(d, D::ReqNtid(_)));
        if let (Some(max), Some(req)) = (max_ntid, req_ntid) {
            let message = "`.maxntid` and `.reqntid` exclude each other";
            let diagnostic = Diagnostic::error("ptx::directive", message);
            self.diagnostics.push(
                diagnostic
                    .label(max, "one here")
                    .label(req, "the other here"),
            );
        }
        if function.kind == FunctionKind::Func
            && let Some(span) = max_ntid.or(req_ntid)
        {
            let message = "a block size belongs to a kernel, not to a device function";
            self.error("ptx::directive", message, span, "here");
        }
        if function.kind == FunctionKind::Entry
            && let Some(first) = function.returns.first()
        {
            let span = self.module.variables[first.var].span;
            self.error(
                "ptx::params",
                "a kernel returns nothing",
                span,
                "return parameter",
            );
        }
    }

    fn end(&mut self, function: &Function, body: &Body) {
        let last = body.insts.last().map(|(_, data)| data);
        let leaves = last.is_some_and(|data| {
            let opcode = &self.module.opcodes[data.opcode];
            let stops = !matches!(opcode.control(), Control::Next | Control::Call);
            // A guarded jump may go on; nobody knows where an opaque instruction goes.
            !opcode.is_known() || (stops && data.guard.is_none())
        });
        if leaves || last.is_none() {
            return;
        }
        let span = last.map_or(body.span, |data| data.span);
        let name = &function.name;
        let diagnostic = Diagnostic::warning("ptx::end", format!("`{name}` does not end in `ret`"));
        self.diagnostics
            .push(diagnostic.label(span, "control falls off the end here"));
    }

    fn inst(&mut self, body: &Body, inst: Inst) {
        let data = &body.insts[inst];
        let opcode = &self.module.opcodes[data.opcode];
        if !opcode.is_known() {
            return;
        }
        if opcode.op == Some(Op::Call) {
            return self.call(body, inst);
        }
        let count = data.operands.len as usize;
        let shapes = data.operands.ids().map(|id| body.operands[id].shape());
        let Some(plan) = self.plan(data.opcode, shapes.collect()) else {
            let message = format!("`{opcode}` does not take {count} operands");
            return self.error(
                "ptx::operands",
                message,
                data.opcode_span,
                "this instruction",
            );
        };
        for (id, &(role, expected)) in data.operands.ids().zip(plan.iter()) {
            self.operand(body, opcode, id, role, expected);
        }
    }

    /// Roles and types of an opcode's operands, looked up once for each way to write them.
    fn plan(&mut self, id: OpcodeId, shapes: Shapes) -> Option<Rc<Plan>> {
        let known = self.plans[id].iter().find(|(known, _)| *known == shapes);
        if let Some((_, plan)) = known {
            return plan.clone();
        }
        let opcode = &self.module.opcodes[id];
        let plan = plan(opcode, &shapes).map(Rc::new);
        self.plans[id].push((shapes, plan.clone()));
        plan
    }

    fn operand(
        &mut self,
        body: &Body,
        opcode: &Opcode,
        id: OperandId,
        role: Role,
        expected: Option<Expected>,
    ) {
        let span = body.operand_spans[id];
        let operand = body.operands[id];
        match role {
            Role::Def | Role::UseDef => self.destination(body, opcode, id, expected),
            Role::Label if !matches!(operand, Operand::Label(_)) => {
                self.error(
                    "ptx::operands",
                    format!("`{opcode}` needs a label"),
                    span,
                    "not this",
                );
            }
            Role::BranchTargets if !matches!(operand, Operand::BranchTable(_)) => {
                let message = format!("`{opcode}` needs the label of a `.branchtargets` list");
                self.error("ptx::operands", message, span, "not this");
            }
            Role::Address => self.address(body, opcode, id),
            Role::Use => self.source(body, opcode, id, expected),
            _ => {}
        }
    }

    fn destination(
        &mut self,
        body: &Body,
        opcode: &Opcode,
        id: OperandId,
        expected: Option<Expected>,
    ) {
        let span = body.operand_spans[id];
        match body.operands[id] {
            Operand::Reg(reg) => self.reg_type(body, opcode, reg, span, expected),
            Operand::Select { .. } | Operand::Sink => {}
            Operand::Vector(list) => {
                self.lanes(opcode, list.len, span, expected);
                // `mov.b64 {a, b}, c` packs and unpacks: the elements have no type of their own.
                let expected = expected.filter(|e| e.lanes != Lanes::Pack);
                for id in list.ids() {
                    self.destination(body, opcode, id, expected);
                }
            }
            Operand::Pair(list) => {
                let second = expected.and_then(|e| e.second);
                let kinds = [expected, second.map(scalar)];
                for (id, expected) in list.ids().zip(kinds) {
                    self.destination(body, opcode, id, expected);
                }
            }
            // An array element or bracketed address as a destination of `st`-like forms has the
            // role of an address; here it cannot be written.
            _ => {
                let message = format!("`{opcode}` cannot write this operand");
                self.error("ptx::operands", message, span, "expected a register");
            }
        }
    }

    fn source(&mut self, body: &Body, opcode: &Opcode, id: OperandId, expected: Option<Expected>) {
        let span = body.operand_spans[id];
        match body.operands[id] {
            Operand::Reg(reg) => self.reg_type(body, opcode, reg, span, expected),
            Operand::Neg(_) | Operand::Select { negated: true, .. }
                if opcode.op != Some(Op::Vmad) =>
            {
                let message = format!("`{opcode}` cannot negate its operands");
                self.error("ptx::operands", message, span, "a minus sign");
            }
            Operand::Neg(reg) => self.reg_type(body, opcode, reg, span, expected),
            Operand::Sum { reg, .. } if !is_integer(body, reg) => {
                let ty = body.reg_type(reg);
                let message = format!("no constant is added to a register of type {ty}");
                self.error("ptx::type", message, span, "expected an integer");
            }
            Operand::Sum { reg, .. } => self.reg_type(body, opcode, reg, span, expected),
            Operand::Imm(imm) => self.immediate(opcode, imm, span, expected),
            Operand::Special { reg, part } => {
                self.special(opcode, (reg, part.is_some()), span, expected);
            }
            Operand::Symbol { .. } if is_arithmetic(opcode) => {
                let message = format!("`{opcode}` takes no address of a variable");
                self.error(
                    "ptx::operands",
                    message,
                    span,
                    "`mov` it into a register first",
                );
            }
            Operand::Not(reg) if body.reg_type(reg) != Type::Pred => {
                let message = "only a predicate can be negated with `!`";
                self.error("ptx::type", message, span, "this is no predicate");
            }
            Operand::Vector(list) => {
                self.lanes(opcode, list.len, span, expected);
                // `mov.b64 {a, b}, c` packs and unpacks: the elements have no type of their own.
                let expected = expected.filter(|e| e.lanes != Lanes::Pack);
                let may_skip = skips_elements(opcode);
                for id in list.ids() {
                    if !(may_skip && body.operands[id] == Operand::Sink) {
                        self.source(body, opcode, id, expected);
                    }
                }
            }
            Operand::Sink => {
                let message = format!("`{opcode}` reads this operand");
                self.error("ptx::operands", message, span, "`_` has no value");
            }
            Operand::Label(_) => {
                let message = format!("`{opcode}` takes no label here");
                self.error("ptx::operands", message, span, "a label");
            }
            _ => {}
        }
    }

    /// Constants have the kind of the type: integers for integers, floating point of either width
    /// for floating point, and for bits an integer or the pattern of their size.
    fn immediate(&mut self, opcode: &Opcode, imm: Imm, span: Span, expected: Option<Expected>) {
        let Some(ty) = expected.and_then(|e| e.ty) else {
            return;
        };
        let fits = match (imm, ty.kind()) {
            (Imm::Int { .. }, TypeKind::Float) => !matches!(ty, Type::F32 | Type::F64),
            (Imm::Int { .. }, _) => true,
            (_, TypeKind::Float) => matches!(ty, Type::F32 | Type::F64),
            (Imm::F32(_), TypeKind::Bits) => ty.bits() == 32,
            (Imm::F64(_), TypeKind::Bits) => ty.bits() == 64,
            _ => false,
        };
        if !fits {
            let message = format!("`{imm}` is no constant of type {ty}, which `{opcode}` needs");
            self.error("ptx::type", message, span, "this constant");
        }
    }

    /// Special registers can be moved and converted; everything else needs a copy.
    fn special(
        &mut self,
        opcode: &Opcode,
        (reg, has_part): (SpecialReg, bool),
        span: Span,
        expected: Option<Expected>,
    ) {
        if !matches!(opcode.op, Some(Op::Mov | Op::Cvt)) {
            let message = format!("`{opcode}` takes no special register");
            return self.error(
                "ptx::operands",
                message,
                span,
                "`mov` it into a register first",
            );
        }
        if reg.is_vector() && !has_part && opcode.vector.is_none() {
            let message = format!("`{reg}` has three components");
            return self.error("ptx::operands", message, span, "which one?");
        }
        let wanted = expected.and_then(|e| e.ty);
        if let Some(ty) = wanted.filter(|ty| ty.bits() > reg.ty().bits()) {
            let message = format!("`{reg}` has type {}, but `{opcode}` needs {ty}", reg.ty());
            self.error("ptx::type", message, span, "too narrow");
        }
    }

    fn address(&mut self, body: &Body, opcode: &Opcode, id: OperandId) {
        let span = body.operand_spans[id];
        let address = match body.operands[id] {
            Operand::Mem(address) => Some(address),
            Operand::MemTuple(list) => match body.list(list).first() {
                Some(Operand::Mem(address)) => Some(*address),
                _ => None,
            },
            Operand::Unresolved => None,
            _ => {
                let message = format!("`{opcode}` needs an address in brackets");
                return self.error("ptx::operands", message, span, "not this");
            }
        };
        let Some(Base::Reg(reg)) = address.map(|a| a.base) else {
            return;
        };
        let ty = body.reg_type(reg);
        if ty.is_float() || ty == Type::Pred || ty.bits() < 32 {
            let message = format!("a register of type {ty} is no address");
            self.error(
                "ptx::type",
                message,
                span,
                "expected 32 or 64 bits of integer",
            );
        }
    }

    fn lanes(&mut self, opcode: &Opcode, len: u32, span: Span, expected: Option<Expected>) {
        let Some(expected) = expected else { return };
        let want = match expected.lanes {
            Lanes::Exactly(n) => u32::from(n),
            _ => return,
        };
        if len != want {
            let message = format!("`{opcode}` takes {want} elements here, not {len}");
            self.error("ptx::operands", message, span, format!("{len} elements"));
        }
    }

    fn reg_type(
        &mut self,
        body: &Body,
        opcode: &Opcode,
        reg: Reg,
        span: Span,
        expected: Option<Expected>,
    ) {
        let ty = body.reg_type(reg);
        let Some(expected) = expected else { return };
        // Packed elements, matrix fragments and vector registers: widths differ by design.
        let is_vector = body.reg_decls[body.regs[reg].decl].vector > 1;
        if expected.lanes == Lanes::Any || is_vector || expected.accepts(ty) {
            return;
        }
        let Some(want) = expected.ty else { return };
        let name = body.reg_name(reg);
        let message = format!("`{name}` has type {ty}, but `{opcode}` needs {want} here");
        let declared = body.reg_decls[body.regs[reg].decl].name_span;
        let diagnostic = Diagnostic::error("ptx::type", message)
            .label(span, format!("a {ty} register"))
            .label(declared, "declared here");
        self.diagnostics.push(diagnostic);
    }

    // Calls.

    fn call(&mut self, body: &Body, inst: Inst) {
        let span = body.insts[inst].span;
        let Some(call) = body.call(inst) else {
            let message = "a `call` needs the function that it calls";
            return self.error("ptx::call", message, span, "nothing is called here");
        };
        let (returns, params) = match (*call.target, call.table) {
            (
                Operand::Symbol {
                    symbol: Symbol::Func(func),
                    ..
                },
                _,
            ) => {
                let callee = &self.module.functions[func];
                if callee.kind == FunctionKind::Entry && callee.body.is_none() {
                    return;
                }
                (vars(&callee.returns), vars(&callee.params))
            }
            (Operand::Reg(_), Some(Operand::Prototype(prototype))) => {
                let prototype = &body.prototypes[*prototype];
                (prototype.returns.clone(), prototype.params.clone())
            }
            (Operand::Reg(_), Some(Operand::CallTable(table))) => {
                match body.call_tables[*table].targets.iter().flatten().next() {
                    Some(&func) => {
                        let callee = &self.module.functions[func];
                        (vars(&callee.returns), vars(&callee.params))
                    }
                    None => return,
                }
            }
            (Operand::Reg(_), _) => {
                let message = "an indirect call needs a `.callprototype` or `.calltargets` list";
                return self.error("ptx::call", message, span, "none is named here");
            }
            (Operand::Unresolved, _) => return,
            _ => {
                let message = "only functions and registers can be called";
                return self.error("ptx::call", message, span, "this calls something else");
            }
        };
        self.arguments(span, &call, &returns, &params, body);
    }

    fn arguments(
        &mut self,
        span: Span,
        call: &Call<'_>,
        returns: &[crate::ir::VarId],
        params: &[crate::ir::VarId],
        body: &Body,
    ) {
        let lists = [
            ("result", call.returns, returns),
            ("argument", call.args, params),
        ];
        for (what, given, wanted) in lists {
            if given.len() != wanted.len() {
                let (g, w) = (given.len(), wanted.len());
                let message = format!("the number of {what}s is {g}, but the function has {w}");
                self.error("ptx::call", message, span, "this call");
                continue;
            }
            for (operand, &param) in given.iter().zip(wanted) {
                self.argument(span, operand, param, body);
            }
        }
    }

    /// An argument has the size of its parameter.
    fn argument(&mut self, span: Span, operand: &Operand, param: crate::ir::VarId, body: &Body) {
        let param = &self.module.variables[param];
        let (given, wanted) = match *operand {
            Operand::Symbol {
                symbol: Symbol::Var(var),
                ..
            } => {
                let var = &self.module.variables[var];
                if var.space != Space::Param || param.is_open() {
                    return;
                }
                (var.bytes(), param.bytes())
            }
            Operand::Reg(reg) => {
                let ty = body.reg_type(reg);
                if ty == Type::Pred || param.ty == Type::Pred {
                    return;
                }
                let elements = body.reg_decls[body.regs[reg].decl].vector;
                let given = u64::from(ty.bytes()) * u64::from(elements);
                (given, param.element_bytes())
            }
            _ => return,
        };
        if given < wanted {
            let name = &param.name;
            let message = format!("{given} bytes are passed for `{name}`, which has {wanted}");
            self.error("ptx::call", message, span, "this call");
        }
    }
}

/// A store of 256 bits leaves the elements alone for which `_` stands (PTX ISA, `st`).
fn skips_elements(opcode: &Opcode) -> bool {
    let element = opcode.types.first().map_or(0, |ty| ty.bits());
    opcode.op == Some(Op::St) && element * u32::from(opcode.vector.unwrap_or(1)) == 256
}

/// Is it a register of one integer of up to 64 bits?
fn is_integer(body: &Body, reg: Reg) -> bool {
    let ty = body.reg_type(reg);
    let is_one = body.reg_decls[body.regs[reg].decl].vector == 1;
    let is_bits = matches!(
        ty.kind(),
        TypeKind::Bits | TypeKind::Unsigned | TypeKind::Signed
    );
    is_one && is_bits && ty.bits() <= u64::BITS
}

fn is_arithmetic(opcode: &Opcode) -> bool {
    use Family::{Compare, Extended, Float, Integer, Logic};
    matches!(
        opcode.family(),
        Some(Integer | Extended | Float | Compare | Logic)
    )
}

fn vars(params: &[Param]) -> Vec<crate::ir::VarId> {
    params.iter().map(|p| p.var).collect()
}

/// The expectation of one register of this type.
fn scalar(ty: Type) -> Expected {
    Expected {
        ty: Some(ty),
        wider: false,
        lanes: Lanes::One,
        second: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_with_syntax_errors_never_passes() {
        let text = ".version 8.0\n.target sm_90\n.entry k() { add.s32 %r1, 1, 2; }\n";
        let (module, diagnostics) = Module::parse("k.ptx", text);
        assert!(!diagnostics.is_empty());
        assert!(verify(&module).is_err());
        let (module, _) = Module::parse_bytes("k.cubin", b"\x7fELF");
        assert!(verify(&module).is_err());
    }
}
