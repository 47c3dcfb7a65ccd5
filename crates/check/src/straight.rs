//! Branches around a few plain instructions, as guards of these.
//!
//! `@p bra L; x; L:` does what `@!p x` does, thread by thread, and so do two such arms behind one branch. Where the
//! control flow of two functions differs, both are looked at in this form, in which a branch may meet a selection.

use warpwright_flow::{
    Block, Cfg, Class, ClassInfo, Function, Inst, Queue, Queues, Transfer, Value,
};

use crate::semantics::{Effect, Guard, Name, Semantics, Split, Step, Unsupported, Variable};

/// Instructions of an arm at most.
const LONGEST: usize = 64;

/// A function without its small branches.
pub(crate) struct Straightened<'a, S> {
    func: &'a S,
    /// By instruction: the guard that stands for a branch.
    guards: Vec<Option<Guard>>,
    /// Branches that are gone.
    gone: Vec<bool>,
    /// Does what is said of a branch bind it?
    is_bound: bool,
}

impl<'a, S: Semantics> Straightened<'a, S> {
    /// `is_bound`: a branch that is said to go one way in each warp stays.
    pub(crate) fn new(func: &'a S, is_bound: bool) -> Self {
        let cfg = Cfg::new(func);
        let mut found = Straightened {
            func,
            guards: vec![None; func.inst_count()],
            gone: vec![false; func.inst_count()],
            is_bound,
        };
        for block in cfg.blocks().filter(|&block| cfg.is_reachable(block)) {
            found.straighten(&cfg, block);
        }
        found
    }

    /// Was there anything to straighten?
    pub(crate) fn is_changed(&self) -> bool {
        self.gone.contains(&true)
    }

    fn straighten(&mut self, cfg: &Cfg, block: Block) -> Option<()> {
        let branch = cfg.last_inst(block);
        if !self.func.goes_by_guard(branch) || self.func.transfer(branch) != Transfer::Jump {
            return None;
        }
        if self.is_bound && self.func.is_said_uniform(branch) {
            return None;
        }
        let guard = self.func.step(branch).ok()?.guard?;
        let fallen = block_at(self.func, cfg, Inst(branch.0 + 1))?;
        let taken = target(self.func, cfg, branch)?;
        let behind = Inst(cfg.last_inst(fallen).0 + 1);
        let otherwise = Guard {
            negated: !guard.negated,
            ..guard
        };
        if block_at(self.func, cfg, behind)? != taken {
            return None;
        }
        let end = cfg.last_inst(fallen);
        let jumps = self.func.transfer(end) == Transfer::Jump && !self.func.is_predicated(end);
        let first = self.is_arm(cfg, fallen, block, guard.value, jumps)?;
        if !jumps {
            self.guard(first, otherwise);
        } else {
            // The other arm leads on to where this one jumps to.
            let second = self.is_arm(cfg, taken, block, guard.value, false)?;
            let join = block_at(self.func, cfg, Inst(cfg.last_inst(taken).0 + 1))?;
            if target(self.func, cfg, end)? != join {
                return None;
            }
            self.guard(first, otherwise);
            self.guard(second, guard);
            self.gone[end.0 as usize] = true;
        }
        self.gone[branch.0 as usize] = true;
        Some(())
    }

    /// The instructions of a block, its jump left out, if only this branch leads there and a guard may stand for it.
    fn is_arm(
        &self,
        cfg: &Cfg,
        arm: Block,
        from: Block,
        guard: Value,
        jumps: bool,
    ) -> Option<Vec<Inst>> {
        if cfg.preds(arm) != [from] || arm.as_u32() == 0 {
            return None;
        }
        let mut insts: Vec<Inst> = cfg.insts(arm).collect();
        if jumps {
            insts.pop();
        }
        let is_plain = |&inst: &Inst| {
            let Ok(step) = self.func.step(inst) else {
                return false;
            };
            let mut sets_guard = false;
            self.func
                .for_each_def(inst, |value| sets_guard |= value == guard);
            let mut is_held = false;
            self.func.for_each_held(inst, |_, _| is_held = true);
            self.func.transfer(inst) == Transfer::Next
                && step.guard.is_none()
                && !step.is_collective
                && !sets_guard
                && !is_held
                && matches!(
                    step.effect,
                    Effect::Pure | Effect::Load { .. } | Effect::Store(_)
                )
        };
        (insts.len() <= LONGEST && insts.iter().all(is_plain)).then_some(insts)
    }

    fn guard(&mut self, insts: Vec<Inst>, guard: Guard) {
        for inst in insts {
            self.guards[inst.0 as usize] = Some(guard);
        }
    }

    fn is_gone(&self, inst: Inst) -> bool {
        self.gone.get(inst.0 as usize) == Some(&true)
    }

    fn added(&self, inst: Inst) -> Option<Guard> {
        self.guards.get(inst.0 as usize).copied().flatten()
    }
}

fn block_at(func: &impl Function, cfg: &Cfg, inst: Inst) -> Option<Block> {
    ((inst.0 as usize) < func.inst_count()).then(|| cfg.block_of(inst))
}

fn target(func: &impl Function, cfg: &Cfg, branch: Inst) -> Option<Block> {
    let mut only = None;
    let mut count = 0;
    func.for_each_target(branch, |target| {
        only = block_at(func, cfg, target);
        count += 1;
    });
    only.filter(|_| count == 1)
}

impl<S: Semantics> Function for Straightened<'_, S> {
    fn inst_count(&self) -> usize {
        self.func.inst_count()
    }

    fn value_count(&self) -> usize {
        self.func.value_count()
    }

    fn classes(&self) -> &[ClassInfo] {
        self.func.classes()
    }

    fn class(&self, value: Value) -> Class {
        self.func.class(value)
    }

    fn for_each_use(&self, inst: Inst, mut visit: impl FnMut(Value)) {
        if self.is_gone(inst) {
            return;
        }
        if let Some(guard) = self.added(inst) {
            visit(guard.value);
        }
        self.func.for_each_use(inst, visit);
    }

    fn for_each_def(&self, inst: Inst, visit: impl FnMut(Value)) {
        self.func.for_each_def(inst, visit);
    }

    fn is_predicated(&self, inst: Inst) -> bool {
        !self.is_gone(inst) && (self.added(inst).is_some() || self.func.is_predicated(inst))
    }

    fn transfer(&self, inst: Inst) -> Transfer {
        match self.is_gone(inst) {
            true => Transfer::Next,
            false => self.func.transfer(inst),
        }
    }

    fn for_each_target(&self, inst: Inst, visit: impl FnMut(Inst)) {
        if !self.is_gone(inst) {
            self.func.for_each_target(inst, visit);
        }
    }

    fn for_each_held(&self, inst: Inst, visit: impl FnMut(Queue, Value)) {
        self.func.for_each_held(inst, visit);
    }

    fn waits(&self, inst: Inst) -> Queues {
        self.func.waits(inst)
    }

    fn value_name(&self, value: Value) -> String {
        self.func.value_name(value)
    }

    fn inst_text(&self, inst: Inst) -> String {
        self.func.inst_text(inst)
    }
}

impl<S: Semantics> Semantics for Straightened<'_, S> {
    fn step(&self, inst: Inst) -> Result<Step, Unsupported> {
        if self.is_gone(inst) {
            return Ok(Step::new("a branch that is gone"));
        }
        let mut step = self.func.step(inst)?;
        step.guard = step.guard.or(self.added(inst));
        Ok(step)
    }

    fn needs_fence(&self, queue: Queue) -> bool {
        self.func.needs_fence(queue)
    }

    fn is_fence(&self, queue: Queue, inst: Inst) -> bool {
        self.func.is_fence(queue, inst)
    }

    fn goes_by_guard(&self, inst: Inst) -> bool {
        !self.is_gone(inst) && self.func.goes_by_guard(inst)
    }

    fn is_said_uniform(&self, inst: Inst) -> bool {
        !self.is_gone(inst) && self.func.is_said_uniform(inst)
    }

    fn entry_name(&self, value: Value) -> Option<Name> {
        self.func.entry_name(value)
    }

    fn is_last_use(&self, inst: Inst) -> bool {
        self.func.is_last_use(inst)
    }

    fn variables(&self) -> Vec<Variable> {
        self.func.variables()
    }

    fn splits(&self) -> Vec<Split> {
        self.func.splits()
    }

    fn keeps_variables_apart(&self) -> bool {
        self.func.keeps_variables_apart()
    }

    fn own_memory(&self) -> Vec<Variable> {
        self.func.own_memory()
    }

    fn place(&self, inst: Inst) -> String {
        self.func.place(inst)
    }

    fn line(&self, inst: Inst) -> u32 {
        self.func.line(inst)
    }
}
