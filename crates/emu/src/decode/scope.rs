//! What a kernel can reach: functions and shared variables.

use std::collections::BTreeSet;

use warpwright_ptx::Space;
use warpwright_ptx::ir::{Base, Body, FuncId, Init, Module, Operand, Symbol, TopItem, VarId};

/// The functions and shared variables that a kernel can reach.
pub(super) struct Reach {
    /// The kernel first, then in order of discovery; functions without a body too.
    pub functions: Vec<FuncId>,
    /// In the order of their declarations, whatever refers to them first.
    pub shared: BTreeSet<VarId>,
}

impl Reach {
    pub fn of(module: &Module, entry: FuncId) -> Reach {
        let mut reach = Reach {
            functions: vec![entry],
            shared: BTreeSet::new(),
        };
        let mut next = 0;
        let mut tables_done = false;
        while let Some(&func) = reach.functions.get(next) {
            next += 1;
            let func = resolve_alias(module, func);
            let Some(body) = &module.functions[func].body else {
                continue;
            };
            reach.scan(module, body);
            if calls_indirectly(module, body) && !std::mem::replace(&mut tables_done, true) {
                reach.scan_initialisers(module);
            }
        }
        reach
    }

    fn scan(&mut self, module: &Module, body: &Body) {
        for operand in body.operands.values() {
            let symbol = match operand {
                Operand::Symbol { symbol, .. } => *symbol,
                Operand::Mem(address) => match address.base {
                    Base::Symbol(symbol) => symbol,
                    _ => continue,
                },
                _ => continue,
            };
            self.add(module, symbol);
        }
        for table in body.call_tables.values() {
            for &func in table.targets.iter().flatten() {
                self.add(module, Symbol::Func(func));
            }
        }
    }

    /// Tables of function pointers.
    fn scan_initialisers(&mut self, module: &Module) {
        for var in module.variables.values() {
            if let Some(Init::Data(init)) = &var.init {
                init.refs.iter().for_each(|r| self.add(module, r.symbol));
            }
        }
    }

    fn add(&mut self, module: &Module, symbol: Symbol) {
        match symbol {
            Symbol::Func(func) if !self.functions.contains(&func) => self.functions.push(func),
            Symbol::Var(var) if module.variables[var].space == Space::Shared => {
                self.shared.insert(var);
            }
            _ => {}
        }
    }
}

/// The function that a name stands for.
pub(super) fn resolve_alias(module: &Module, func: FuncId) -> FuncId {
    let aliases = module.items.iter().filter_map(|item| match item {
        TopItem::Alias { alias, aliasee, .. } => Some((*alias, *aliasee)),
        _ => None,
    });
    aliases
        .filter(|&(alias, _)| alias == func)
        .map(|(_, aliasee)| aliasee)
        .next()
        .unwrap_or(func)
}

fn calls_indirectly(module: &Module, body: &Body) -> bool {
    body.insts.iter().any(|(inst, data)| {
        module.opcode(data).text.starts_with("call")
            && body
                .call(inst)
                .is_some_and(|call| matches!(call.target, Operand::Reg(_)))
    })
}
