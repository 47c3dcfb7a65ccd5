//! Branches, calls and ends.

use cranelift_entity::EntityRef;
use warpwright_ptx::Type;
use warpwright_ptx::ir::{Inst, Label, Operand, Symbol};

use super::operands::Decoder;
use super::words::{Reason, Words};
use super::{Decoding, scope};
use crate::program::{Arg, Callee, HostFunction, Op};

impl Decoder<'_> {
    pub(super) fn control(
        &mut self,
        inst: Inst,
        words: &mut Words<'_>,
        operands: &[Operand],
    ) -> Result<(), Reason> {
        words.skip(&["uni"]);
        match words.name {
            "bra" => {
                let [Operand::Label(label)] = operands else {
                    return Err("a branch without a label".into());
                };
                let target = self.target(*label);
                self.emit(Op::Branch { target });
            }
            "brx" => {
                words.take("idx");
                let [index, Operand::BranchTable(table)] = operands else {
                    return Err("an indexed branch without a table".into());
                };
                let targets = &self.body.branch_tables[*table].targets;
                let targets: Option<Vec<u32>> = targets
                    .iter()
                    .map(|&label| Some(self.target(label?)))
                    .collect();
                let targets = targets.ok_or("a label that is not declared")?;
                let index = self.src(index, Type::U32)?;
                self.emit(Op::BranchTable { targets, index });
            }
            "call" => self.call(inst)?,
            "ret" => self.emit(Op::Return),
            "exit" => self.emit(Op::Exit),
            _ => self.emit(Op::Trap),
        }
        Ok(())
    }

    /// The instruction that a label stands before; replaced by its step when all are known.
    fn target(&self, label: Label) -> u32 {
        self.body.labels[label].at.index() as u32
    }

    fn call(&mut self, inst: Inst) -> Result<(), Reason> {
        let call = self.body.call(inst).ok_or("a call of this form")?;
        let callee = match *call.target {
            Operand::Symbol {
                symbol: Symbol::Func(func),
                ..
            } => self.callee(func)?,
            Operand::Reg(_) => Callee::Indirect(self.src(call.target, Type::U64)?),
            _ => return Err("a call of this form".into()),
        };
        let args = self.flat(call.args);
        let args = args.iter().map(|a| self.argument(a));
        let args = args.collect::<Result<Vec<_>, _>>()?;
        let returns = self.flat(call.returns);
        let returns = returns.iter().map(|r| self.result(r));
        let returns = returns.collect::<Result<Vec<_>, _>>()?;
        if let Callee::Function(number) = callee {
            self.has_results(number, returns.len())?;
        }
        if let Callee::Host(HostFunction::Malloc | HostFunction::Free) = callee {
            (self.ordered, self.heap) = (true, true);
        }
        self.emit(Op::Call {
            callee,
            args,
            returns,
        });
        Ok(())
    }

    /// Operands, vector registers as their elements.
    fn flat(&self, operands: &[Operand]) -> Vec<Operand> {
        operands.iter().flat_map(|o| self.elements(o)).collect()
    }

    fn callee(&self, func: warpwright_ptx::ir::FuncId) -> Result<Callee, Reason> {
        let target = &self.module.functions[scope::resolve_alias(self.module, func)];
        if target.body.is_none() {
            let host = Decoding::host_function(&target.name);
            return host
                .map(Callee::Host)
                .ok_or_else(|| format!("`{}` has no body", target.name));
        }
        let number = self.image.functions.iter().position(|&f| f == func);
        number
            .map(Callee::Function)
            .ok_or_else(|| format!("`{}` was not found", target.name))
    }

    /// Does a function return so many values? `_` does not say how many elements it stands for.
    fn has_results(&self, number: usize, given: usize) -> Result<(), Reason> {
        let func = scope::resolve_alias(self.module, self.image.functions[number]);
        let vector = |p: &warpwright_ptx::ir::Param| match p.reg {
            Some(_) => usize::from(self.module.variables[p.var].vector),
            None => 1,
        };
        let returns = self.module.functions[func].returns.iter();
        match returns.map(vector).sum::<usize>() == given {
            true => Ok(()),
            false => Err("a result that stands for a vector register".into()),
        }
    }

    fn argument(&mut self, operand: &Operand) -> Result<Arg, Reason> {
        match self.param_variable(operand) {
            Some((offset, len)) => Ok(Arg::Memory { offset, len }),
            None => Ok(Arg::Value(self.src(operand, Type::B64)?)),
        }
    }

    fn result(&mut self, operand: &Operand) -> Result<Arg, Reason> {
        match (self.param_variable(operand), operand) {
            (Some((offset, len)), _) => Ok(Arg::Memory { offset, len }),
            (None, Operand::Reg(_) | Operand::Select { .. } | Operand::Sink) => {
                Ok(Arg::Value(crate::program::Src::Reg(self.dst(operand)?)))
            }
            _ => Err("a result of this form".into()),
        }
    }
}
