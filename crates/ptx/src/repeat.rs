//! Repeating an instruction elsewhere in its function: when that gives the same result, where its
//! names are known, and the text of the copy.
//!
//! *Which* instruction is worth repeating, and where, is decided elsewhere.

use warpwright_flow::Repetition;

use crate::Span;
use crate::edit::places_in;
use crate::ir::{Address, Base, Body, FunctionKind, Inst, Operand, Reg, Symbol, VarId};
use crate::opcode::LatencyClass;
use crate::types::Space;
use crate::view::View;

/// Can an unguarded instruction be executed once more, where its registers hold the same values?
///
/// Yes for a pure function of its operands, and for a load of what nobody writes while the kernel
/// runs: constant space, the kernel's own parameters, the non-coherent path. Special registers must
/// keep their value.
pub(crate) fn repetition(view: &View<'_>, inst: Inst) -> Repetition {
    let (body, data) = (view.body(), &view.body().insts[inst]);
    let opcode = view.module().opcode(data);
    let is_same = opcode.is_pure()
        || opcode.is_invariant_load()
            && (opcode.space != Some(Space::Param) || is_kernel_parameter(view, inst));
    let operands = body.operands(inst);
    let is_stable = !operands.iter().any(|operand| match operand {
        Operand::Special { reg, .. } => !reg.is_stable(),
        Operand::Unresolved => true,
        _ => false,
    });
    // A declaration `.reg .v4` has no register of its own type.
    let is_scalar = view.defs(inst).iter().all(|&reg| {
        let decl = &body.reg_decls[body.regs[reg].decl];
        decl.vector <= 1
    });
    // What keeps a part of its result is no function of its sources alone.
    let keeps = (0..operands.len()).any(|index| view.operand_access(inst, index) == (true, true));
    if !is_same || !is_stable || !is_scalar || keeps || data.guard.is_some() {
        return Repetition::Never;
    }
    match opcode.latency_class() {
        class if class.is_long() => Repetition::Long,
        class => Repetition::Cheap(price(class)),
    }
}

/// What an instruction costs in simple ones, roughly: the share of the issue slots or of its unit's
/// throughput that it takes on any part since Volta. Only for ranking; no cycle counts.
fn price(class: LatencyClass) -> u32 {
    match class {
        LatencyClass::Alu | LatencyClass::Fp32 | LatencyClass::Fp16 => 1,
        LatencyClass::IntMul | LatencyClass::ConstLoad | LatencyClass::ParamLoad => 2,
        LatencyClass::Fp64 | LatencyClass::Conversion => 4,
        _ => 8,
    }
}

/// Does it read a parameter of the kernel, by name? (Around a call, `.param` is an ordinary variable.)
fn is_kernel_parameter(view: &View<'_>, inst: Inst) -> bool {
    let function = view.function();
    let is_own = |var: VarId| function.params.iter().any(|param| param.var == var);
    function.kind == FunctionKind::Entry
        && view.body().operands(inst).iter().any(|operand| {
            matches!(operand, Operand::Mem(Address { base: Base::Symbol(Symbol::Var(var)), .. })
                if is_own(*var))
        })
}

/// Do all names in `inst` mean the same right before `place`?
pub(crate) fn can_stand_before(view: &View<'_>, inst: Inst, place: Inst) -> bool {
    let body = view.body();
    if body.scopes.len() == 1 || body.insts[inst].scope == body.insts[place].scope {
        return true;
    }
    let at = body.insts[place].span;
    let regs = view.defs(inst).into_iter().chain(view.uses(inst));
    regs.into_iter().all(|reg| is_register_known(body, reg, at))
        && variables(body, inst).all(|var| is_variable_known(view, var, at))
}

/// Is the register's declaration visible at `at`, and hidden by no other one?
fn is_register_known(body: &Body, reg: Reg, at: Span) -> bool {
    let decl = &body.reg_decls[body.regs[reg].decl];
    let reaches = |scope| contains(body.scopes[scope].span, at);
    let mut others = body.reg_decls.values();
    reaches(decl.scope)
        && !others.any(|other| {
            other.base == decl.base && other.scope != decl.scope && reaches(other.scope)
        })
}

/// The same for a variable. Its scope is the innermost one around its declaration.
fn is_variable_known(view: &View<'_>, var: VarId, at: Span) -> bool {
    let (body, variables) = (view.body(), &view.module().variables);
    let reaches = |var: VarId| {
        let around = body.scopes.values().map(|scope| scope.span);
        let around = around.filter(|&scope| contains(scope, variables[var].span));
        let innermost = around.min_by_key(|scope| scope.end - scope.start);
        innermost.is_none_or(|scope| contains(scope, at))
    };
    let mut others = body.vars.iter().copied();
    reaches(var)
        && !others.any(|other| other != var && variables[other].name == variables[var].name)
}

fn variables(body: &Body, inst: Inst) -> impl Iterator<Item = VarId> + '_ {
    body.operands(inst).iter().filter_map(|operand| {
        let symbol = match *operand {
            Operand::Symbol { symbol, .. } => symbol,
            Operand::Mem(Address {
                base: Base::Symbol(symbol),
                ..
            }) => symbol,
            _ => return None,
        };
        match symbol {
            Symbol::Var(var) => Some(var),
            Symbol::Func(_) => None,
        }
    })
}

fn contains(outer: Span, inner: Span) -> bool {
    outer.start <= inner.start && inner.end <= outer.end
}

/// The text of an unguarded instruction, `;` included, on one line, with other names for some of the
/// registers that it reads and writes.
pub fn renamed(
    view: &View<'_>,
    inst: Inst,
    reads: &[(Reg, String)],
    writes: &[(Reg, String)],
) -> String {
    let (module, body) = (view.module(), view.body());
    let data = &body.insts[inst];
    let mut places: Vec<(Span, &str)> = Vec::new();
    for (index, operand) in data.operands.ids().enumerate() {
        let names = match view.operand_access(inst, index) {
            (_, true) => writes,
            (_, false) => reads,
        };
        for (reg, name) in names {
            let all = places_in(module, body, operand, *reg).into_iter();
            places.extend(all.map(|place| (place, name.as_str())));
        }
    }
    places.sort_by_key(|(place, _)| place.start);
    let mut text = String::new();
    let mut at = data.span.start;
    for (place, name) in places {
        text.push_str(module.text(Span::new(at, place.start)));
        text.push_str(name);
        at = place.end;
    }
    text.push_str(module.text(Span::new(at, data.span.end)));
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
