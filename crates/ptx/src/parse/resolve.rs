//! Names that are used before they are declared: labels, and functions further down.

use std::mem;

use super::{Failed, Parse, Parser};
use crate::Span;
use crate::ir::{Base, Body, BranchTable, CallTable, FuncId, Operand, OperandId, Symbol};
use crate::names::Entity;

/// An operand or table entry whose name is not declared yet: labels may come later.
pub(super) struct Deferred {
    pub name: Span,
    pub place: Place,
}

/// What a deferred name fills in.
#[derive(Clone, Copy)]
pub(super) enum Place {
    Operand(OperandId),
    /// Entry of a branch table.
    Branch(BranchTable, u32),
    /// Entry of a call table.
    Call(CallTable, u32),
}

impl<'s> Parser<'s> {
    /// Looks up the names that functions left open among those of the module.
    pub(super) fn resolve_late_names(&mut self) {
        for (func, deferred) in mem::take(&mut self.unresolved) {
            let name = deferred.name.text(self.source);
            let Some(mut body) = self.module.functions[func].body.take() else {
                continue;
            };
            let result = match self.names.find(name) {
                Some(found) => self.fill_in(&mut body, &deferred, found.entity),
                None => {
                    self.unknown_late(func, &body, &deferred);
                    Err(Failed)
                }
            };
            result.unwrap_or_else(Failed::ignore);
            self.module.functions[func].body = Some(body);
        }
    }

    fn unknown_late(&mut self, func: FuncId, body: &Body, deferred: &Deferred) {
        // Names in an unknown instruction may be keywords that we do not know.
        if body.is_in_opaque(deferred.name) {
            return;
        }
        if self.diagnostics.len() >= super::MAX_DIAGNOSTICS {
            self.hidden += 1;
            return;
        }
        let labels = body.labels.values().map(|l| l.name.to_string());
        let locals = self
            .module
            .variables
            .values()
            .filter(|v| v.owner == Some(func));
        let locals = locals.map(|v| v.name.to_string());
        let visible: Vec<String> = self.names.visible().chain(labels).chain(locals).collect();
        let name = deferred.name.text(self.source);
        self.report_unknown(deferred.name, name, visible.iter().map(|s| &**s));
    }

    /// Puts what a deferred name stands for into its place.
    pub(super) fn fill_in(
        &mut self,
        body: &mut Body,
        deferred: &Deferred,
        entity: Entity,
    ) -> Parse<()> {
        match (deferred.place, entity) {
            (Place::Branch(table, i), Entity::Label(label)) => {
                body.branch_tables[table].targets[i as usize] = Some(label);
            }
            (Place::Call(table, i), Entity::Func(func)) => {
                body.call_tables[table].targets[i as usize] = Some(func);
            }
            (Place::Operand(id), entity) => return self.fill_operand(body, id, deferred, entity),
            (Place::Branch(..), _) => {
                return self.fail(
                    "ptx::name",
                    "expected a label",
                    deferred.name,
                    "this is none",
                );
            }
            (Place::Call(..), _) => {
                return self.fail(
                    "ptx::name",
                    "expected a function",
                    deferred.name,
                    "this is none",
                );
            }
        }
        Ok(())
    }

    fn fill_operand(
        &mut self,
        body: &mut Body,
        id: OperandId,
        deferred: &Deferred,
        entity: Entity,
    ) -> Parse<()> {
        if matches!(
            entity,
            Entity::Reg(_) | Entity::Range { .. } | Entity::Ranged { .. }
        ) {
            let message = "a register is declared before it is used";
            return self.fail("ptx::name", message, deferred.name, "declared further down");
        }
        let symbol = match entity {
            Entity::Var(var) => Some(Symbol::Var(var)),
            Entity::Func(func) => Some(Symbol::Func(func)),
            _ => None,
        };
        let operand = &mut body.operands[id];
        match (operand, symbol, entity) {
            (Operand::Mem(address), Some(symbol), _) => address.base = Base::Symbol(symbol),
            (operand @ Operand::Unresolved, _, entity) => *operand = operand_of(entity),
            _ => {
                let span = deferred.name;
                return self.fail("ptx::name", "expected a variable", span, "this is none");
            }
        }
        Ok(())
    }
}

impl Body {
    /// Does the place lie in an instruction of unknown opcode?
    fn is_in_opaque(&self, span: Span) -> bool {
        let index = self
            .opaque
            .partition_point(|&i| self.insts[i].span.end <= span.start);
        self.opaque
            .get(index)
            .is_some_and(|&i| self.insts[i].span.contains(span))
    }
}

/// An operand that stands for a name alone.
pub(super) fn operand_of(entity: Entity) -> Operand {
    match entity {
        Entity::Reg(reg) => Operand::Reg(reg),
        Entity::Var(var) => Operand::Symbol {
            symbol: Symbol::Var(var),
            offset: 0,
        },
        Entity::Func(func) => Operand::Symbol {
            symbol: Symbol::Func(func),
            offset: 0,
        },
        Entity::Label(label) => Operand::Label(label),
        Entity::BranchTable(table) => Operand::BranchTable(table),
        Entity::CallTable(table) => Operand::CallTable(table),
        Entity::Prototype(prototype) => Operand::Prototype(prototype),
        Entity::Range { .. } | Entity::Ranged { .. } => Operand::Unresolved,
    }
}
