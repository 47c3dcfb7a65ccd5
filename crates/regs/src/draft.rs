//! A draft: the code of one function while a register pass works on it.
//!
//! A pass decides step by step, and each step needs the analyses of what the earlier ones made. So
//! a [`Draft`] copies from any [`Function`] what the analyses see of it (and nothing else), takes
//! loads, stores and base addresses in between, and is a [`Function`] itself. When the pass is done
//! the draft says which code it added where; the instruction set writes it. Operands keep their order, so what an
//! instruction reads and writes in place of the function's registers stands where those stand.
//!
//! A spill slot is a value of its own class, which takes no register: a store defines it and a load
//! uses it. So liveness finds the stores that nobody reads, and live ranges find the slots that can
//! share memory.

use smallvec::SmallVec;
use warpwright_flow::{
    Class, ClassInfo, EntityRef, Function, Inst, Queue, Queues, Repetition, Transfer, Value,
};

/// Where an instruction of a draft comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The function's own instruction of this number.
    Own(Inst),
    /// Computes the base addresses of the spill area, at the function's entry.
    Bases,
    /// Loads a value from its slot, right before one of the function's own instructions.
    Load {
        /// The function's own instruction that reads the value.
        before: Inst,
    },
    /// Stores a value to its slot, right after one of the function's own instructions.
    Store {
        /// The function's own instruction that writes the value.
        after: Inst,
    },
    /// One of the function's own instructions once more, right before another one. What jumps to that one runs
    /// the copy, too, even if it was removed.
    Copy {
        /// The function's own instruction that it repeats.
        of: Inst,
        /// The function's own instruction before which it stands.
        before: Inst,
    },
}

#[derive(Clone, Debug)]
pub(crate) struct Code {
    pub(crate) origin: Origin,
    pub(crate) uses: SmallVec<[Value; 4]>,
    pub(crate) defs: SmallVec<[Value; 2]>,
    predicated: bool,
    transfer: Transfer,
    targets: SmallVec<[Inst; 1]>,
    held: SmallVec<[(Queue, Value); 0]>,
    waits: Queues,
    is_copy: bool,
    pub(crate) tuples: SmallVec<[(SmallVec<[Value; 4]>, u32); 0]>,
    tied: SmallVec<[(Value, Value); 0]>,
    repetition: Repetition,
}

impl Code {
    /// An instruction that the pass adds; control goes on to the next one.
    pub(crate) fn new(origin: Origin, defs: &[Value], uses: &[Value]) -> Code {
        Code {
            origin,
            uses: SmallVec::from_slice(uses),
            defs: SmallVec::from_slice(defs),
            predicated: false,
            transfer: Transfer::Next,
            targets: SmallVec::new(),
            held: SmallVec::new(),
            waits: Queues::NONE,
            is_copy: false,
            tuples: SmallVec::new(),
            tied: SmallVec::new(),
            repetition: Repetition::Never,
        }
    }

    fn copy(func: &impl Function, inst: Inst) -> Code {
        let mut code = Code {
            predicated: func.is_predicated(inst),
            transfer: func.transfer(inst),
            waits: func.waits(inst),
            is_copy: func.copy_of(inst).is_some(),
            ..Code::new(Origin::Own(inst), &[], &[])
        };
        func.for_each_use(inst, |value| code.uses.push(value));
        func.for_each_def(inst, |value| code.defs.push(value));
        func.for_each_target(inst, |target| code.targets.push(target));
        func.for_each_held(inst, |queue, value| code.held.push((queue, value)));
        func.for_each_tuple(inst, |values, align| {
            code.tuples.push((SmallVec::from_slice(values), align));
        });
        func.for_each_tied(inst, |def, used| code.tied.push((def, used)));
        if !code.defs.is_empty() && !code.predicated {
            code.repetition = func.repetition(inst);
        }
        code
    }

    /// Reads something else from now on. What it also writes must keep its name, unless that is one value: no tuple.
    fn rename_reads(&mut self, mut rename: impl FnMut(Value) -> Value) {
        let tuples = self.tuples.iter_mut().flat_map(|(values, _)| values);
        let tied = self.tied.iter_mut().map(|(_, used)| used);
        for value in self.uses.iter_mut().chain(tuples).chain(tied) {
            *value = rename(*value);
        }
    }

    /// Renames what it reads and writes.
    pub(crate) fn rename(&mut self, mut rename: impl FnMut(Value) -> Value) {
        let held = self.held.iter_mut().map(|(_, value)| value);
        let tuples = self.tuples.iter_mut().flat_map(|(values, _)| values);
        let tied = self.tied.iter_mut().flat_map(|(def, used)| [def, used]);
        let operands = self.uses.iter_mut().chain(&mut self.defs);
        for value in operands.chain(held).chain(tuples).chain(tied) {
            *value = rename(*value);
        }
    }
}

/// What a value of a draft stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A register of the function, or a part of its live range.
    Register(Value),
    /// The spill slot of a register of the function.
    Slot(Value),
    /// A base address of the spill area, for accesses of this many bytes.
    Base(u32),
    /// A register that computing the base addresses needs.
    Scratch,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Data {
    pub(crate) role: Role,
    pub(crate) class: Class,
    /// The register that it must lie in.
    fixed: Option<u32>,
    /// The register that it has now, in code that has registers.
    pub(crate) former: Option<u32>,
    /// For a register: its slot, once it has one.
    pub(crate) slot: Option<Value>,
    /// It lives no longer than an access needs it: spilling it again gains nothing.
    pub(crate) is_short: bool,
    /// Do stores stand behind its definitions?
    pub(crate) is_stored: bool,
}

/// The code of one function while a register pass works on it.
#[derive(Clone, Debug)]
pub struct Draft {
    classes: Vec<ClassInfo>,
    pub(crate) code: Vec<Code>,
    pub(crate) values: Vec<Data>,
}

/// Code to be added at the same place goes in the order of the list.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    Before(Inst),
    After(Inst),
}

impl Draft {
    /// A draft that is `func` as it stands, value for value.
    pub fn new(func: &impl Function) -> Draft {
        let mut classes = func.classes().to_vec();
        classes.push(ClassInfo {
            name: "slot",
            units: 0,
        });
        let insts = (0..func.inst_count()).map(Inst::new);
        let values = (0..func.value_count()).map(Value::new);
        Draft {
            classes,
            code: insts.map(|inst| Code::copy(func, inst)).collect(),
            values: values
                .map(|value| Data {
                    role: Role::Register(value),
                    class: func.class(value),
                    fixed: func.fixed(value),
                    former: func.register(value),
                    slot: None,
                    is_short: false,
                    is_stored: false,
                })
                .collect(),
        }
    }

    /// Puts the instructions from `first` on into another order: the new n-th one is the old `order[n]`-th. They are
    /// passed from the first to the last, and jumped to at the first alone.
    pub fn reorder(&mut self, first: Inst, order: &[usize]) {
        let place = first.index()..first.index() + order.len();
        let old = self.code[place.clone()].to_vec();
        for (code, &at) in self.code[place].iter_mut().zip(order) {
            code.clone_from(&old[at]);
        }
    }

    /// Where an instruction comes from.
    pub fn origin(&self, inst: Inst) -> Origin {
        self.code[inst.index()].origin
    }

    /// The function's own instruction that an instruction is or repeats.
    pub fn own(&self, inst: Inst) -> Option<Inst> {
        match self.origin(inst) {
            Origin::Own(own) | Origin::Copy { of: own, .. } => Some(own),
            Origin::Bases | Origin::Load { .. } | Origin::Store { .. } => None,
        }
    }

    /// The function's own instruction that an instruction is, or that it was put before.
    pub(crate) fn place(&self, inst: Inst) -> Option<Inst> {
        match self.origin(inst) {
            Origin::Own(own) => Some(own),
            Origin::Load { before } | Origin::Copy { before, .. } => Some(before),
            Origin::Bases | Origin::Store { .. } => None,
        }
    }

    /// What a value stands for.
    pub fn role(&self, value: Value) -> Role {
        self.values[value.index()].role
    }

    /// All instructions in program order.
    pub fn insts(&self) -> impl DoubleEndedIterator<Item = Inst> + use<> {
        (0..self.code.len()).map(Inst::new)
    }

    /// All values.
    pub fn values(&self) -> impl Iterator<Item = Value> + use<> {
        (0..self.values.len()).map(Value::new)
    }

    /// What an instruction writes.
    pub fn defs(&self, inst: Inst) -> &[Value] {
        &self.code[inst.index()].defs
    }

    /// What an instruction reads.
    pub fn uses(&self, inst: Inst) -> &[Value] {
        &self.code[inst.index()].uses
    }

    /// Bytes of a register as it lies in memory: what its class takes, at least a word.
    pub(crate) fn bytes(&self, value: Value) -> u32 {
        4 * self.units(value).max(1)
    }

    pub(crate) fn add_value(&mut self, role: Role, class: Class) -> Value {
        self.values.push(Data {
            role,
            class,
            fixed: None,
            former: None,
            slot: None,
            is_short: false,
            is_stored: false,
        });
        Value::new(self.values.len() - 1)
    }

    /// A new value of the class of `like`, a part of the live range of the same register.
    pub(crate) fn value_like(&mut self, like: Value) -> Value {
        let Data { role, class, .. } = self.values[like.index()];
        self.add_value(role, class)
    }

    /// Lets an instruction read `to` where it reads `from`. It must not write `from` or hold it.
    pub(crate) fn rename_read(&mut self, inst: Inst, from: Value, to: Value) {
        let code = &mut self.code[inst.index()];
        code.rename_reads(|value| if value == from { to } else { value });
    }

    /// An instruction once more, to be put before another one: it reads the second of each pair for the first,
    /// and writes `fresh`. `None` where a copy of it, or one at that place, has no origin.
    pub(crate) fn repeat(
        &self,
        inst: Inst,
        at: Inst,
        reads: &[(Value, Value)],
        fresh: Value,
    ) -> Option<Code> {
        let (of, before) = (self.own(inst)?, self.place(at)?);
        let mut code = self.code[inst.index()].clone();
        code.origin = Origin::Copy { of, before };
        code.rename_reads(|value| {
            let pair = reads.iter().find(|&&(from, _)| from == value);
            pair.map_or(value, |&(_, to)| to)
        });
        code.defs.fill(fresh);
        code.tied.iter_mut().for_each(|(def, _)| *def = fresh);
        Some(code)
    }

    /// One of the instructions of `func`, of which it is a draft as it stands, once more, to be put before another one.
    pub(crate) fn once_more(&self, own: Inst, before: Inst) -> Code {
        let mut code = self.code[own.index()].clone();
        code.origin = Origin::Copy { of: own, before };
        code
    }

    /// Is an operand of it read and written at one place?
    pub(crate) fn is_tied(&self, inst: Inst) -> bool {
        !self.code[inst.index()].tied.is_empty()
    }

    /// The slot of a register; it gets one now if it has none.
    pub(crate) fn slot_of(&mut self, value: Value) -> Value {
        if let Some(slot) = self.values[value.index()].slot {
            return slot;
        }
        let role = match self.role(value) {
            Role::Register(register) => Role::Slot(register),
            other => other,
        };
        let slot = self.add_value(role, Class(self.classes.len() as u8 - 1));
        self.values[value.index()].slot = Some(slot);
        slot
    }

    /// Adds code; see [`Place`]. Jumps to an instruction run what stands right before it.
    pub(crate) fn insert(&mut self, added: Vec<(Place, Code)>) {
        let count = self.code.len();
        let mut before: Vec<Vec<Code>> = vec![Vec::new(); count];
        let mut after: Vec<Vec<Code>> = vec![Vec::new(); count];
        for (place, code) in added {
            match place {
                Place::Before(inst) => before[inst.index()].push(code),
                Place::After(inst) => after[inst.index()].push(code),
            }
        }
        let mut moved = Vec::with_capacity(count + 1);
        let mut code = Vec::with_capacity(2 * count);
        for (index, own) in self.code.drain(..).enumerate() {
            moved.push(Inst::new(code.len()));
            code.append(&mut before[index]);
            code.push(own);
            code.append(&mut after[index]);
        }
        moved.push(Inst::new(code.len()));
        self.code = code;
        self.retarget(&moved);
    }

    /// Puts code before everything else; no jump leads back to it.
    pub(crate) fn insert_at_entry(&mut self, code: Code) {
        let moved: Vec<Inst> = (1..self.code.len() + 2).map(Inst::new).collect();
        self.code.insert(0, code);
        self.retarget(&moved);
    }

    /// Removes instructions that control passes through.
    pub(crate) fn remove(&mut self, is_removed: impl Fn(Inst) -> bool) {
        let mut moved = Vec::with_capacity(self.code.len() + 1);
        let mut kept = Vec::with_capacity(self.code.len());
        for (index, code) in self.code.drain(..).enumerate() {
            moved.push(Inst::new(kept.len()));
            if !is_removed(Inst::new(index)) {
                kept.push(code);
            }
        }
        moved.push(Inst::new(kept.len()));
        self.code = kept;
        self.retarget(&moved);
    }

    fn retarget(&mut self, moved: &[Inst]) {
        for target in self.code.iter_mut().flat_map(|code| &mut code.targets) {
            *target = moved[target.index()];
        }
    }
}

impl Function for Draft {
    fn inst_count(&self) -> usize {
        self.code.len()
    }

    fn value_count(&self) -> usize {
        self.values.len()
    }

    fn classes(&self) -> &[ClassInfo] {
        &self.classes
    }

    fn class(&self, value: Value) -> Class {
        self.values[value.index()].class
    }

    fn for_each_use(&self, inst: Inst, visit: impl FnMut(Value)) {
        self.code[inst.index()].uses.iter().copied().for_each(visit);
    }

    fn for_each_def(&self, inst: Inst, visit: impl FnMut(Value)) {
        self.code[inst.index()].defs.iter().copied().for_each(visit);
    }

    fn is_predicated(&self, inst: Inst) -> bool {
        self.code[inst.index()].predicated
    }

    fn transfer(&self, inst: Inst) -> Transfer {
        self.code[inst.index()].transfer
    }

    fn for_each_target(&self, inst: Inst, visit: impl FnMut(Inst)) {
        let targets = &self.code[inst.index()].targets;
        targets.iter().copied().for_each(visit);
    }

    fn for_each_held(&self, inst: Inst, mut visit: impl FnMut(Queue, Value)) {
        for &(queue, value) in &self.code[inst.index()].held {
            visit(queue, value);
        }
    }

    fn waits(&self, inst: Inst) -> Queues {
        self.code[inst.index()].waits
    }

    fn copy_of(&self, inst: Inst) -> Option<(Value, Value)> {
        let code = &self.code[inst.index()];
        let copy = (*code.defs.first()?, *code.uses.first()?);
        code.is_copy.then_some(copy)
    }

    fn for_each_tuple(&self, inst: Inst, mut visit: impl FnMut(&[Value], u32)) {
        for (values, align) in &self.code[inst.index()].tuples {
            visit(values, *align);
        }
    }

    fn for_each_tied(&self, inst: Inst, mut visit: impl FnMut(Value, Value)) {
        for &(def, used) in &self.code[inst.index()].tied {
            visit(def, used);
        }
    }

    fn fixed(&self, value: Value) -> Option<u32> {
        self.values[value.index()].fixed
    }

    fn repetition(&self, inst: Inst) -> Repetition {
        self.code[inst.index()].repetition
    }

    /// A draft knows no names; the function that it was made of does.
    fn can_stand_before(&self, _: Inst, _: Inst) -> bool {
        false
    }

    fn value_name(&self, value: Value) -> String {
        match self.role(value) {
            Role::Register(register) => format!("{value:?}({register:?})"),
            Role::Slot(register) => format!("slot of {register:?}"),
            Role::Base(bytes) => format!("base{bytes}"),
            Role::Scratch => format!("{value:?}"),
        }
    }

    fn inst_text(&self, inst: Inst) -> String {
        format!("{:?}", self.origin(inst))
    }
}
