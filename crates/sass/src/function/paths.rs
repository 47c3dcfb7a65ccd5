//! Control flow alone: what CFG, loops and searches need, and nothing of registers.

use warpwright_flow::{Class, ClassInfo, EntityRef, Function, Inst, Transfer, Value};

/// For each instruction those that may follow; the number of instructions stands for what is behind the last one.
pub(crate) struct Paths(pub(crate) Vec<Vec<Inst>>);

impl Function for Paths {
    fn inst_count(&self) -> usize {
        self.0.len()
    }

    fn value_count(&self) -> usize {
        0
    }

    fn classes(&self) -> &[ClassInfo] {
        &[]
    }

    fn class(&self, _: Value) -> Class {
        Class(0)
    }

    fn for_each_use(&self, _: Inst, _: impl FnMut(Value)) {}

    fn for_each_def(&self, _: Inst, _: impl FnMut(Value)) {}

    /// A way on is one of several.
    fn is_predicated(&self, _: Inst) -> bool {
        false
    }

    fn transfer(&self, inst: Inst) -> Transfer {
        match self.0[inst.index()][..] {
            [only] if only.index() == inst.index() + 1 => Transfer::Next,
            _ => Transfer::Indirect,
        }
    }

    fn for_each_target(&self, inst: Inst, visit: impl FnMut(Inst)) {
        if self.transfer(inst) == Transfer::Indirect {
            self.0[inst.index()].iter().copied().for_each(visit);
        }
    }

    fn value_name(&self, value: Value) -> String {
        format!("{value:?}")
    }

    fn inst_text(&self, inst: Inst) -> String {
        format!("{inst:?}")
    }
}
