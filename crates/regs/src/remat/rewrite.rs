//! A function with some of its instructions repeated, renamed or left out, before anybody has
//! written it down.
//!
//! The algorithm decides step by step, and each step needs the analyses of what the earlier ones
//! made. A [`Rewrite`] is a list of steps over a base function: each executes one instruction of the
//! base, with some registers renamed. It is a [`Function`] itself. When all is decided, the steps are
//! the plan that the instruction set writes down.

use warpwright_flow::{
    Class, ClassInfo, Function, Inst, Queue, Queues, Repetition, Transfer, Value,
};

/// One instruction of a [`Rewrite`]: an instance of one of the base.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instance {
    /// The base instruction that it executes.
    pub of: Inst,
    /// The base instruction in front of which it stands: `of` itself for an original. Jumps to
    /// that instruction run the copies in front of it, too.
    pub anchor: Inst,
    /// Is it a repetition?
    pub is_copy: bool,
    /// What it reads in place of registers of the base instruction.
    pub reads: Vec<(Value, Value)>,
    /// What it writes in place of registers of the base instruction.
    pub writes: Vec<(Value, Value)>,
    /// How a copy is kept from looking like what it repeats.
    pub hidden: Option<Hidden>,
}

/// A copy reads `(source xor mask) xor mask` in place of `source`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hidden {
    /// What it would read.
    pub source: Value,
    /// What is applied to it twice.
    pub mask: Mask,
}

/// A mask; see [`Hidden`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mask {
    /// This number, unique in the function.
    Constant(u32),
    /// A value of the same class that is live there.
    Value(Value),
}

impl Instance {
    /// What it reads where the base instruction reads `value`.
    pub fn read(&self, value: Value) -> Value {
        renamed(&self.reads, value)
    }

    fn written(&self, value: Value) -> Value {
        renamed(&self.writes, value)
    }

    /// Reads `to` from now on, where it read `from`.
    fn rename_read(&mut self, base_reads: &[Value], from: Value, to: Value) {
        for &value in base_reads {
            if self.read(value) == from {
                self.reads.retain(|&(old, _)| old != value);
                self.reads.push((value, to));
            }
        }
    }
}

fn renamed(pairs: &[(Value, Value)], value: Value) -> Value {
    let pair = pairs.iter().find(|&&(from, _)| from == value);
    pair.map_or(value, |&(_, to)| to)
}

/// A copy to be inserted in front of a step.
#[derive(Clone, Debug)]
pub(crate) struct Copy {
    /// The step that it repeats.
    pub(crate) of: Inst,
    /// What it reads in place of what that step reads.
    pub(crate) reads: Vec<(Value, Value)>,
    /// What it writes, a fresh value.
    pub(crate) fresh: Value,
}

/// A function with changes; see the module.
#[derive(Debug)]
pub struct Rewrite<'f, F> {
    base: &'f F,
    steps: Vec<Instance>,
    /// For each fresh value, the base value that it repeats.
    fresh: Vec<Value>,
}

impl<F> Clone for Rewrite<'_, F> {
    fn clone(&self) -> Self {
        Rewrite {
            base: self.base,
            steps: self.steps.clone(),
            fresh: self.fresh.clone(),
        }
    }
}

impl<'f, F: Function> Rewrite<'f, F> {
    /// The base function as it stands.
    pub fn new(base: &'f F) -> Self {
        let original = |index| Instance {
            of: Inst(index),
            anchor: Inst(index),
            is_copy: false,
            reads: Vec::new(),
            writes: Vec::new(),
            hidden: None,
        };
        Rewrite {
            base,
            steps: (0..base.inst_count() as u32).map(original).collect(),
            fresh: Vec::new(),
        }
    }

    /// The base function.
    pub fn base(&self) -> &'f F {
        self.base
    }

    /// All steps, in program order. Anchors ascend; copies stand before the original that they are
    /// anchored to.
    pub fn steps(&self) -> &[Instance] {
        &self.steps
    }

    /// The fresh values: consecutive numbers behind the base's, each with the base value of whose
    /// class it is.
    pub fn fresh(&self) -> impl Iterator<Item = (Value, Value)> + '_ {
        let first = self.base.value_count() as u32;
        let numbered = self.fresh.iter().enumerate();
        numbered.map(move |(index, &of)| (Value(first + index as u32), of))
    }

    /// The base value that a value is or repeats.
    pub fn origin(&self, value: Value) -> Value {
        let index = (value.0 as usize).checked_sub(self.base.value_count());
        index.map_or(value, |index| self.fresh[index])
    }

    /// A new value of the class of `like`.
    pub(crate) fn fresh_value(&mut self, like: Value) -> Value {
        let origin = self.origin(like);
        self.fresh.push(origin);
        Value(self.value_count() as u32 - 1)
    }

    /// Lets the step at `inst` read `to` where it reads `from`.
    pub(crate) fn rename_read(&mut self, inst: Inst, from: Value, to: Value) {
        let step = &mut self.steps[inst.0 as usize];
        let mut reads = Vec::new();
        self.base.for_each_use(step.of, |value| reads.push(value));
        step.rename_read(&reads, from, to);
    }

    /// Inserts copies, each in front of a step; those of one place in the order of the list.
    pub(crate) fn insert(&mut self, mut copies: Vec<(Inst, Copy)>) {
        copies.sort_by_key(|(before, _)| *before);
        let mut pending = copies.into_iter().peekable();
        let mut steps = Vec::with_capacity(self.steps.len() + pending.len());
        for (index, step) in self.steps.iter().enumerate() {
            while let Some((_, copy)) = pending.next_if(|(before, _)| before.0 as usize == index) {
                steps.push(self.copy_step(copy, step.anchor));
            }
            steps.push(step.clone());
        }
        self.steps = steps;
    }

    fn copy_step(&self, copy: Copy, anchor: Inst) -> Instance {
        let of = &self.steps[copy.of.0 as usize];
        let mut step = Instance {
            anchor,
            is_copy: true,
            hidden: None,
            ..of.clone()
        };
        let mut reads = Vec::new();
        self.base.for_each_use(of.of, |value| reads.push(value));
        step.reads.clear();
        for value in reads {
            let to = renamed(&copy.reads, of.read(value));
            if to != value {
                step.reads.push((value, to));
            }
        }
        step.writes.clear();
        let written = &mut step.writes;
        self.base
            .for_each_def(of.of, |value| written.push((value, copy.fresh)));
        step
    }

    /// Says how a copy is hidden.
    pub(crate) fn set_hidden(&mut self, inst: Inst, hidden: Option<Hidden>) {
        self.steps[inst.0 as usize].hidden = hidden;
    }

    /// Leaves out steps.
    pub(crate) fn remove(&mut self, insts: &[Inst]) {
        let mut index = 0;
        self.steps.retain(|_| {
            index += 1;
            !insts.contains(&Inst(index - 1))
        });
    }

    fn step(&self, inst: Inst) -> &Instance {
        &self.steps[inst.0 as usize]
    }
}

impl<F: Function> Function for Rewrite<'_, F> {
    fn inst_count(&self) -> usize {
        self.steps.len()
    }

    fn value_count(&self) -> usize {
        self.base.value_count() + self.fresh.len()
    }

    fn classes(&self) -> &[ClassInfo] {
        self.base.classes()
    }

    fn class(&self, value: Value) -> Class {
        self.base.class(self.origin(value))
    }

    fn for_each_use(&self, inst: Inst, mut visit: impl FnMut(Value)) {
        let step = self.step(inst);
        self.base
            .for_each_use(step.of, |value| visit(step.read(value)));
    }

    fn for_each_def(&self, inst: Inst, mut visit: impl FnMut(Value)) {
        let step = self.step(inst);
        self.base
            .for_each_def(step.of, |value| visit(step.written(value)));
    }

    fn is_predicated(&self, inst: Inst) -> bool {
        self.base.is_predicated(self.step(inst).of)
    }

    fn transfer(&self, inst: Inst) -> Transfer {
        self.base.transfer(self.step(inst).of)
    }

    fn for_each_target(&self, inst: Inst, mut visit: impl FnMut(Inst)) {
        self.base.for_each_target(self.step(inst).of, |target| {
            let index = self.steps.partition_point(|step| step.anchor < target);
            visit(Inst(index as u32));
        });
    }

    fn for_each_held(&self, inst: Inst, mut visit: impl FnMut(Queue, Value)) {
        let step = self.step(inst);
        self.base.for_each_held(step.of, |queue, value| {
            // Held values are never renamed by the planner, so read and written are the same.
            visit(queue, step.read(value));
        });
    }

    fn waits(&self, inst: Inst) -> Queues {
        self.base.waits(self.step(inst).of)
    }

    fn repetition(&self, inst: Inst) -> Repetition {
        self.base.repetition(self.step(inst).of)
    }

    fn can_stand_before(&self, inst: Inst, place: Inst) -> bool {
        let (of, anchor) = (self.step(inst).of, self.step(place).anchor);
        self.base.can_stand_before(of, anchor)
    }

    fn value_name(&self, value: Value) -> String {
        match self.origin(value) {
            base if base == value => self.base.value_name(base),
            base => format!("{}'{}", self.base.value_name(base), value.0),
        }
    }

    fn inst_text(&self, inst: Inst) -> String {
        self.base.inst_text(self.step(inst).of)
    }
}
