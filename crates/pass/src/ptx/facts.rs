//! What the PTX says of a kernel before any build: its shared memory, its operations, its pressure.

use std::collections::BTreeSet;

use warpwright_flow::{Cfg, Function as _, Liveness, Pressure, Value};
use warpwright_ptx::ir::{
    Address, Base, DirectiveKind, Function, Item, Module, Operand, Symbol, VarId,
};
use warpwright_ptx::types::Space;
use warpwright_ptx::{FuncId, Reg, View};

use crate::refusal::Refusal;

/// The kernel's view, if all its opcodes are known.
///
/// # Errors
/// [`Refusal::NoBody`], [`Refusal::UnknownInstruction`].
pub fn view(module: &Module, kernel: FuncId) -> Result<View<'_>, Refusal> {
    let view = module.view(kernel).ok_or(Refusal::NoBody)?;
    match module.functions[kernel]
        .opaque()
        .and_then(|insts| insts.first())
    {
        None => Ok(view),
        Some(&inst) => Err(Refusal::UnknownInstruction(
            view.inst_text(warpwright_flow::Inst(inst.as_u32())),
        )),
    }
}

/// The highest register pressure of a function, in 32-bit registers.
pub fn pressure(func: &impl warpwright_flow::Function) -> u32 {
    let cfg = Cfg::new(func);
    let liveness = Liveness::new(func, &cfg);
    Pressure::new(func, &cfg, &liveness).max()
}

/// The highest register pressure of a kernel, in 32-bit registers; 0 without a body.
pub fn kernel_pressure(module: &Module, kernel: FuncId) -> u32 {
    module.view(kernel).map_or(0, |view| pressure(&view))
}

pub(crate) fn register(value: Value) -> Reg {
    Reg::from_u32(value.0)
}

/// Bytes of static shared memory that `function` and what it may call use, wherever it is declared.
///
/// Only an estimate for when ptxas is missing: ptxas drops what is not used.
pub fn static_shared_bytes(module: &Module, function: &Function) -> u32 {
    let used = used_variables(module, function);
    let bytes: u64 = module
        .variables
        .iter()
        .filter(|(id, v)| v.space == Space::Shared && used.contains(id))
        .map(|(_, v)| v.bytes())
        .sum();
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

/// Does the kernel address dynamic shared memory (an open `.extern .shared` array)?
pub fn uses_dynamic_shared(module: &Module, function: &Function) -> bool {
    used_variables(module, function)
        .iter()
        .any(|&id| module.variables[id].space == Space::Shared && module.variables[id].is_open())
}

/// The variables that a function and the functions that it names use, and what those name in turn.
pub fn used_variables(module: &Module, function: &Function) -> BTreeSet<VarId> {
    let mut used = BTreeSet::new();
    let mut called = BTreeSet::new();
    let mut work = vec![function];
    while let Some(function) = work.pop() {
        let operands = function.body.iter().flat_map(|body| body.operands.values());
        for operand in operands {
            let symbol = match operand {
                Operand::Symbol { symbol, .. }
                | Operand::Mem(Address {
                    base: Base::Symbol(symbol),
                    ..
                }) => *symbol,
                _ => continue,
            };
            match symbol {
                Symbol::Var(id) => {
                    used.insert(id);
                }
                Symbol::Func(id) if called.insert(id) => work.push(&module.functions[id]),
                Symbol::Func(_) => {}
            }
        }
    }
    used
}

/// Has `function` an instruction whose opcode begins with `word`?
pub fn has_operation(module: &Module, function: &Function, word: &str) -> bool {
    let mut insts = function.body.iter().flat_map(|body| body.insts.values());
    insts.any(|inst| module.opcode(inst).text.split('.').next() == Some(word))
}

/// Does the kernel already ask for spilling to shared memory?
pub fn has_shared_spilling(function: &Function) -> bool {
    let is_it = |strings: &Vec<String>| strings.iter().any(|s| s == SMEM_PRAGMA);
    let in_head = function
        .directives
        .iter()
        .any(|d| matches!(&d.kind, DirectiveKind::Pragma(strings) if is_it(strings)));
    let in_body = function
        .body
        .iter()
        .flat_map(|b| &b.items)
        .any(|item| matches!(item, Item::Pragma(strings, _) if is_it(strings)));
    in_head || in_body
}

/// The pragma's string (CUDA 13.0 and later).
pub const SMEM_PRAGMA: &str = "enable_smem_spilling";
