//! What one instruction does to the accesses that are going on: everything that does not depend on the way to it.

use smallvec::SmallVec;
use warpwright_flow::{Function, Inst, Value};

use super::timing::Timing;
use super::waits::{GROUPS, Wait, bit, commits, is_block_barrier, waits};
use super::walk::Operand;
use crate::control::Control;
use crate::function::{Code, value_of};
use crate::inst::Instruction;
use crate::operation::{OperandForm, Operation};
use crate::roles::{File, Role, Span};

/// The lowest bit of the guard's field.
pub(crate) const GUARD_BIT: u8 = 12;

/// The lowest bit of the field of P2R and R2P that says which predicates they read and write. The tables of roles have
/// none of these, as nvdisasm has none.
const MASK_BIT: u8 = 32;

/// A predicate that decides whether an instruction is executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Guard {
    pub predicate: Value,
    pub negated: bool,
}

/// What one instruction does.
pub(crate) struct Effect {
    pub inst: Inst,
    bits: Instruction,
    /// The groups of asynchronous products, if it ends one.
    group: u8,
    /// What it waits for.
    pub waits: SmallVec<[Wait; 2]>,
    /// The control field.
    pub control: Control,
    pub timing: Timing,
    pub guard: Option<Guard>,
    /// The guard, if the instruction does not write its predicate.
    pub kept_guard: Option<Guard>,
    /// Registers that it writes.
    pub written: SmallVec<[Value; 4]>,
    /// Are predicates among them?
    pub writes_predicates: bool,
    /// Is it executed whatever happens?
    pub is_certain: bool,
    /// Does it wait for the other warps of the block?
    pub is_block_barrier: bool,
    /// Does control go to or come back from code that is not seen?
    pub leaves: bool,
    /// Scoreboards that tell when its results have come, one bit each.
    pub delivered: u8,
    /// Scoreboards that tell when its sources have been read: what it delivers, it has read before.
    pub read: u8,
    /// May a scoreboard, or the order of a unit, tell of an operand? Else time alone does.
    pub is_counted: bool,
    /// Its operands by register.
    pub operands: SmallVec<[(Value, Span); 8]>,
    /// Its operands, ascending, each once.
    spans: SmallVec<[Span; 6]>,
}

impl Effect {
    pub fn new(code: &Code, inst: Inst, timing: Timing) -> Effect {
        let bits = code.instructions()[inst.0 as usize];
        let spans = code.roles(inst).spans().iter().copied();
        let spans = spans.filter(|span| counts_as_access(*span));
        let operands = spans.chain(packed(bits)).flat_map(|span| {
            let values = span.registers().filter_map(move |n| value_of(span.file, n));
            values.map(move |value| (value, span))
        });
        let operands: SmallVec<[(Value, Span); 8]> = operands.collect();
        let written = operands
            .iter()
            .filter(|operand| operand.1.role == Role::Def);
        let group = match timing.unit.has_groups && commits(bits) {
            true => GROUPS,
            false => 0,
        };
        let all = operands.iter().map(|operand| operand.1);
        let mut spans: SmallVec<[Span; 6]> = all.collect();
        spans.sort_unstable();
        spans.dedup();
        let control = bits.control();
        let sets = bit(control.write_barrier) | bit(control.read_barrier);
        let mut step = Effect {
            inst,
            bits,
            group,
            waits: SmallVec::new(),
            control: Control::default(),
            delivered: 0,
            read: 0,
            is_block_barrier: is_block_barrier(bits) && !code.is_predicated(inst),
            leaves: code.leaves(inst),
            timing,
            guard: guard(code, inst),
            kept_guard: None,
            is_counted: timing.is_late
                || timing.unit.reads_uniform_late
                || timing.unit.has_groups
                || sets != 0,
            writes_predicates: written
                .clone()
                .any(|operand| matches!(operand.1.file, File::Pred | File::UniformPred)),
            written: written.map(|operand| operand.0).collect(),
            is_certain: !code.is_predicated(inst),
            operands,
            spans,
        };
        let is_kept = |guard: &Guard| !step.written.contains(&guard.predicate);
        step.kept_guard = step.guard.filter(is_kept);
        step.write_control(control);
        step
    }

    /// The same instruction with another control field.
    pub fn set_control(&mut self, control: Control) {
        if control != self.control {
            self.write_control(control);
        }
    }

    fn write_control(&mut self, control: Control) {
        self.waits.clear();
        self.waits.extend(waits(self.bits, control.wait_mask));
        self.delivered = bit(control.write_barrier) | self.group;
        self.read = self.delivered | bit(control.read_barrier);
        self.control = control;
        // Who may get a scoreboard is known before.
        debug_assert!(self.is_counted || self.read == 0);
    }

    /// The number of one of its operands, ascending.
    pub fn number(&self, span: Span) -> u16 {
        let place = self.spans.iter().position(|&known| known == span);
        place.unwrap_or(0) as u16
    }

    /// The operand of this number.
    pub fn span(&self, number: u16) -> Span {
        self.spans[usize::from(number)]
    }

    /// Scoreboards that tell when an operand is no longer in use.
    pub fn scoreboards(&self, span: Span) -> u8 {
        let comes_early = self.timing.unit.tells_early && span.file == File::Pred;
        match span.role == Role::Def && !comes_early {
            true => self.delivered,
            false => self.read,
        }
    }
}

/// The predicates that an instruction reads or writes by a mask.
fn packed(bits: Instruction) -> impl Iterator<Item = Span> {
    let role = match bits.operation() {
        Operation::P2R => Some(Role::Use),
        Operation::R2P => Some(Role::Def),
        _ => None,
    };
    let mask = match bits.opcode().form() {
        OperandForm::IMMEDIATE => bits.bits() >> MASK_BIT,
        _ => u128::MAX,
    };
    let numbers = (0..7).filter(move |number| mask >> number & 1 != 0);
    let span = move |role| {
        numbers.map(move |first| Span {
            role,
            file: File::Pred,
            first,
            count: 1,
            bit: MASK_BIT,
        })
    };
    role.into_iter().flat_map(move |role| span.clone()(role))
}

/// Is the predicate one of many that a mask names? How soon they can be read and written is not in any table.
pub(crate) fn is_packed(operand: &Operand) -> bool {
    let operation = Operation::new(operand.timing.operation);
    matches!(operation, Operation::P2R | Operation::R2P) && operand.span.bit == MASK_BIT
}

/// Is it the operand that decides whether the instruction is executed?
pub(crate) fn is_guard(span: Span) -> bool {
    span.role == Role::Use && span.bit == GUARD_BIT
}

/// No stall and the yield bit clear: the next instruction waits until this one is done, which takes
/// some cycles. Unoptimized
/// code is nothing else: 180,632 instructions with this control field and no scoreboard at all.
pub(crate) fn is_interlocked(control: Control) -> bool {
    control.stall == 0 && !control.yield_bit
}

/// Convergence barriers keep themselves in order.
fn counts_as_access(span: Span) -> bool {
    span.file != File::Barrier
}

fn guard(code: &Code, inst: Inst) -> Option<Guard> {
    let bits = code.instructions()[inst.0 as usize].bits();
    let spans = code.roles(inst).spans().iter();
    let span = spans.copied().find(|&span| is_guard(span))?;
    Some(Guard {
        predicate: value_of(span.file, span.first)?,
        negated: bits >> (GUARD_BIT + 3) & 1 != 0,
    })
}
