//! One code section of a cubin, as the checker sees it.

use std::cell::{Cell, OnceCell};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use warpwright_flow::{Class, ClassInfo, Function as _, Inst, Transfer, Value};
use warpwright_sass::Instruction;
use warpwright_sass::function::{Code, value_of};
use warpwright_sass::roles::{File, Table};

use super::bits;
use super::step;
use crate::semantics::{Name, Semantics, SlotSpace, Step, Unsupported, Variable};

/// Memory that one version has for itself.
#[derive(Clone, Debug)]
pub(super) struct Memory {
    /// The stack frame: bytes per thread.
    pub(super) frame: u32,
    /// Shared memory that the other version does not have: addresses.
    pub(super) shared: Range<u32>,
}

/// A kernel's section.
pub(super) struct SassFunction<'c> {
    pub(super) code: &'c Code,
    /// "original" or "rewritten": what tells the names of its own memory apart.
    pub(super) version: &'static str,
    pub(super) memory: Memory,
    /// What the linker or the driver will put into an instruction.
    pub(super) relocations: BTreeMap<u32, String>,
    pub(super) table: &'static Table,
    /// Instructions up to the padding.
    end: usize,
    /// The register that holds the stack pointer, if anything loads it.
    pub(super) stack: Option<(File, u16)>,
    /// See [`super::returns`].
    pub(super) index_ranges: OnceCell<BTreeMap<Value, Range<i64>>>,
    /// Where walks over the code may meet: targets, and what stands behind control instructions.
    pub(super) meets: Vec<bool>,
    /// Instructions that walks may still look at.
    pub(super) fuel: Cell<usize>,
    /// Does it return to code that cannot be seen?
    pub(super) has_unknown_callers: bool,
    /// Do addresses of code in both versions mean the same if they are as far from the end?
    pub(super) is_aligned: bool,
    /// NOPs where barriers of the warp may have stood: global memory is another one behind them.
    pub(super) warp_barriers: BTreeSet<Inst>,
}

/// Instructions that the walks after return addresses look at, for each that there is.
const WALK: usize = 512;

fn meets(code: &Code) -> Vec<bool> {
    let mut meets = vec![false; code.inst_count() + 1];
    for at in 0..code.inst_count() {
        let inst = Inst(at as u32);
        code.for_each_target(inst, |to| meets[to.0 as usize] = true);
        meets[at + 1] |= code.transfer(inst) != Transfer::Next;
    }
    meets
}

impl<'c> SassFunction<'c> {
    pub(super) fn new(
        code: &'c Code,
        version: &'static str,
        memory: Memory,
        relocations: BTreeMap<u32, String>,
        table: &'static Table,
    ) -> Self {
        let insts = code.instructions();
        let end = insts.iter().rposition(|&inst| !bits::is_padding(inst));
        SassFunction {
            code,
            version,
            memory,
            relocations,
            table,
            end: end.map_or(0, |last| last + 1),
            stack: insts.iter().find_map(|&inst| super::stack_load(inst)),
            index_ranges: OnceCell::new(),
            meets: meets(code),
            fuel: Cell::new(WALK * insts.len()),
            has_unknown_callers: (0..insts.len() as u32)
                .any(|at| code.transfer(Inst(at)) == Transfer::Return),
            is_aligned: false,
            warp_barriers: BTreeSet::new(),
        }
    }

    /// Instructions that walks have looked at.
    pub(super) fn walked(&self) -> u64 {
        (WALK * self.code.inst_count() - self.fuel.get()) as u64
    }

    pub(super) fn instruction(&self, inst: Inst) -> Instruction {
        self.code.instructions()[inst.0 as usize]
    }

    pub(super) fn name(&self, inst: Inst) -> &'static str {
        let opcode = bits::OPCODE.get(self.instruction(inst)) as u16;
        let entry = self.table.entries().get(&opcode);
        entry.map_or("?", |entry| entry.name.as_str())
    }

    /// The control instructions in order, by opcode: equal lists make the same number mean the same one.
    pub(super) fn skeleton(&self) -> Vec<u32> {
        let insts = self.code.instructions()[..self.end].iter();
        let control = insts.filter(|inst| bits::is_control(**inst));
        control.map(|inst| bits::OPCODE.get(*inst)).collect()
    }

    /// A name for a place in the code that both versions share: the control instruction that it is behind, else
    /// the one that it is at, by number. So it is one where a block begins.
    pub(super) fn label(&self, target: usize) -> Result<String, Unsupported> {
        let insts = self.code.instructions();
        let is_control = |at: usize| insts.get(at).is_some_and(|&inst| bits::is_control(inst));
        let number = |end: usize| (0..end).filter(|&at| is_control(at)).count();
        let is_behind = target.checked_sub(1).is_some_and(is_control);
        if !self.is_aligned || target > self.end || !is_behind && !is_control(target) {
            return Err(Unsupported("an address of code is used".to_owned()));
        }
        let (way, number) = match is_behind {
            true => ("behind", number(target - 1)),
            false => ("at", number(target)),
        };
        Ok(format!("code {way} control instruction {number}"))
    }

    /// Does it load the stack pointer into the register for it, whatever else happens?
    pub(super) fn is_stack_load(&self, inst: Inst) -> bool {
        let load = super::stack_load(self.instruction(inst));
        load.is_some() && load == self.stack
    }

    /// Predicates that an instruction reads (or, the flag, writes) all together, by a mask. The tables of roles do not
    /// have them, as nvdisasm does not. Where the mask is no immediate, all count.
    pub(super) fn masked(&self, inst: Inst) -> Option<(impl Iterator<Item = Value> + use<>, bool)> {
        let (file, writes) = match self.name(inst) {
            "P2R" => (File::Pred, false),
            "R2P" => (File::Pred, true),
            "UP2UR" => (File::UniformPred, false),
            "UR2UP" => (File::UniformPred, true),
            _ => return None,
        };
        let word = self.instruction(inst);
        let mask = match bits::FORM.get(word) {
            bits::FORM_IMMEDIATE => bits::IMMEDIATE.get(word),
            _ => u32::MAX,
        };
        let numbers = (0..7).filter(move |number| mask >> number & 1 != 0);
        let all = numbers.filter_map(move |number| value_of(file, number));
        Some((all, writes))
    }

    pub(super) fn frame_name(&self) -> Name {
        Name::Module(format!("frame of the {}", self.version))
    }

    /// Where an `LDS` or `STS` finds the slots of the shared memory that only this version has, in bytes, if that is
    /// what it accesses: its address is an index that is scaled. Any other stands in the original, too, at the same
    /// address, which is none of a slot: pointers may lie far before a constant that is added.
    pub(super) fn own_shared_offset(&self, word: Instruction) -> Option<u32> {
        let offset = u32::try_from(bits::offset(word)).ok()?;
        let is_own = bits::scale(word) > 1 && self.memory.shared.contains(&offset);
        is_own.then_some(offset)
    }

    pub(super) fn shared_name(&self) -> Name {
        Name::Module(format!("spill area of the {}", self.version))
    }
}

impl warpwright_flow::Function for SassFunction<'_> {
    fn inst_count(&self) -> usize {
        self.code.inst_count()
    }

    fn value_count(&self) -> usize {
        self.code.value_count()
    }

    fn classes(&self) -> &[ClassInfo] {
        self.code.classes()
    }

    fn class(&self, value: Value) -> Class {
        self.code.class(value)
    }

    // What is written by a mask is read as well: it may stay.
    fn for_each_use(&self, inst: Inst, mut visit: impl FnMut(Value)) {
        self.code.for_each_use(inst, &mut visit);
        if let Some((all, _)) = self.masked(inst) {
            all.for_each(visit);
        }
    }

    fn for_each_def(&self, inst: Inst, mut visit: impl FnMut(Value)) {
        self.code.for_each_def(inst, &mut visit);
        if let Some((all, true)) = self.masked(inst) {
            all.for_each(visit);
        }
    }

    fn is_predicated(&self, inst: Inst) -> bool {
        self.code.is_predicated(inst)
    }

    fn transfer(&self, inst: Inst) -> Transfer {
        self.code.transfer(inst)
    }

    fn for_each_target(&self, inst: Inst, visit: impl FnMut(Inst)) {
        self.code.for_each_target(inst, visit);
    }

    fn value_name(&self, value: Value) -> String {
        self.code.value_name(value)
    }

    fn inst_text(&self, inst: Inst) -> String {
        let text = self.code.inst_text(inst);
        format!("{} {text}", self.name(inst))
    }
}

impl Semantics for SassFunction<'_> {
    fn step(&self, inst: Inst) -> Result<Step, Unsupported> {
        step::step(self, inst)
    }

    fn is_last_use(&self, inst: Inst) -> bool {
        let word = self.instruction(inst);
        self.name(inst) == "LDL" && bits::CACHE.get(word) == bits::LAST_USE
    }

    /// Everything that the program itself calls memory is matched access by access.
    fn variables(&self) -> Vec<Variable> {
        Vec::new()
    }

    fn own_memory(&self) -> Vec<Variable> {
        let Memory { frame, shared } = &self.memory;
        let area = |name, space, bytes: u32| Variable {
            name,
            space,
            bytes: u64::from(bytes),
            // The frame begins at a multiple of 16, and so does the area (see `mod.rs`).
            align: 16,
            declaration: String::new(),
            is_apart: false,
            is_global: false,
        };
        vec![
            area(self.frame_name(), SlotSpace::Local, *frame),
            area(
                self.shared_name(),
                SlotSpace::Shared,
                shared.end - shared.start,
            ),
        ]
    }

    fn place(&self, inst: Inst) -> String {
        match (inst.0 as usize) < self.inst_count() {
            true => self.inst_text(inst),
            false => "the end".to_owned(),
        }
    }

    fn line(&self, inst: Inst) -> u32 {
        inst.0 + 1
    }
}
