//! Where the value of a register comes from: reaching definitions inside one section of code, with the CFG and the
//! search of [`flow`](warpwright_flow).
//!
//! Flow is seen as the instructions say it; a call goes on behind itself, and what the callee
//! overwrites is looked up in the callee. Whatever is not known (an instruction without roles, a jump
//! without a table, a callee that cannot be seen) ends the search without an answer.

use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeMap, BTreeSet};

use warpwright_flow::{Cfg, EntityRef, Inst, Source, reaching};

use super::code::Relocated;
use crate::branch::target;
use crate::elf::kernel::{BranchTargets, INSTRUCTION};
use crate::function::{ControlFlow, Paths, abi, is_conditional};
use crate::inst::Instruction;
use crate::isa;
use crate::operation::{OperandForm, Operation};
use crate::roles::{File, Roles};

/// A register of some file.
pub(super) type Register = (File, u16);

/// The code of one section, and what is known of its flow before anything is traced.
pub(super) struct Section<'a> {
    pub code: &'a [Instruction],
    pub relocated: &'a Relocated,
    /// First instructions of the functions that symbols name.
    pub entries: &'a [usize],
    /// Targets of indirect branches.
    pub listed: &'a BranchTargets,
    trace: OnceCell<Option<Trace<'a>>>,
}

impl<'a> Section<'a> {
    pub(super) fn new(
        code: &'a [Instruction],
        relocated: &'a Relocated,
        entries: &'a [usize],
        listed: &'a BranchTargets,
    ) -> Section<'a> {
        let trace = OnceCell::new();
        Section {
            code,
            relocated,
            entries,
            listed,
            trace,
        }
    }

    /// Does the linker fill in a part of instruction `at`?
    pub(super) fn is_relocated(&self, at: usize) -> bool {
        let offset = (at * INSTRUCTION) as u64;
        self.relocated.contains_key(&offset)
    }

    /// The entry of the function that instruction `at` calls, if it is in the section.
    pub(super) fn callee(&self, at: usize) -> Option<usize> {
        match ControlFlow::of(self.code[at]) {
            ControlFlow::Call(distance) if !self.is_relocated(at) => index(at, distance),
            _ => None,
        }
    }

    /// The flow; `None` if control leads where nobody can tell.
    pub(super) fn trace(&self) -> Option<&Trace<'a>> {
        let trace = self.trace.get_or_init(|| Trace::new(self));
        trace.as_ref()
    }
}

/// The flow of one section.
pub(super) struct Trace<'a> {
    code: &'a [Instruction],
    cfg: Cfg,
    /// Functions that are called, by the call.
    callees: BTreeMap<usize, usize>,
    /// Calls that never come back.
    jumps: BTreeSet<usize>,
    /// What a callee may overwrite, by its entry; `None` if that is not known.
    overwritten: RefCell<BTreeMap<usize, Option<BTreeSet<Register>>>>,
}

impl<'a> Trace<'a> {
    fn new(section: &Section<'a>) -> Option<Trace<'a>> {
        let code = section.code;
        let all = 0..code.len();
        let called = all.filter_map(|at| Some((at, section.callee(at)?)));
        let callees: BTreeMap<usize, usize> = called.collect();
        let mut paths = Paths(vec![Vec::new()]);
        for at in 0..code.len() {
            let mut next = successors_of(section, at)?;
            // Behind the padding there is nothing.
            next.retain(|&to| to != code.len());
            paths.0.push(next.into_iter().map(seen).collect());
        }
        let own = section.entries.iter().copied().chain([0]);
        let own: BTreeSet<usize> = own.filter(|&entry| entry < code.len()).collect();
        let entries = |callees: &BTreeMap<usize, usize>| -> Vec<Inst> {
            let all: BTreeSet<usize> = own.iter().chain(callees.values()).copied().collect();
            all.into_iter().map(seen).collect()
        };
        paths.0[0] = entries(&callees);
        if paths.0.iter().flatten().any(|to| to.index() > code.len()) {
            return None;
        }
        let mut trace = Trace {
            code,
            cfg: Cfg::new(&paths),
            callees,
            jumps: BTreeSet::new(),
            overwritten: RefCell::default(),
        };
        while trace.turn_calls_into_jumps(&mut paths) {}
        paths.0[0] = entries(&trace.callees);
        trace.cfg = Cfg::new(&paths);
        Some(trace)
    }

    /// Calls to what never returns are jumps: ptxas (sm_80 to sm_89) leaves loops by them. Were there any?
    fn turn_calls_into_jumps(&mut self, paths: &mut Paths) -> bool {
        let targets: BTreeSet<usize> = self.callees.values().copied().collect();
        let returns = |at: usize| ControlFlow::of(self.code[at]) == ControlFlow::Return;
        let endless: BTreeSet<usize> = (targets.into_iter())
            .filter(|&entry| !self.reachable(entry, false).into_iter().any(returns))
            .collect();
        self.callees.retain(|&at, entry| {
            let jumps = endless.contains(entry);
            if jumps {
                self.jumps.insert(at);
                let falls = self.code[at].is_predicated() && at + 1 < self.code.len();
                let next = std::iter::once(*entry).chain(falls.then_some(at + 1));
                paths.0[at + 1] = next.map(seen).collect();
            }
            !jumps
        });
        self.cfg = Cfg::new(paths);
        !endless.is_empty()
    }

    /// Does the call at `at` never come back?
    pub(super) fn jumps(&self, at: usize) -> bool {
        self.jumps.contains(&at)
    }

    /// Everything that may have given `register` the value that instruction `at` reads; [`Source::Entry`] is
    /// whoever called the function.
    pub(super) fn sources(&self, at: usize, register: Register) -> Option<BTreeSet<Source>> {
        let mut is_known = true;
        let found = reaching(&self.cfg, seen(at), |first, end, found| {
            for at in (first.0..end.0).rev().filter_map(|inst| own(Inst(inst))) {
                match self.writes(at, register) {
                    Some(false) => continue,
                    Some(true) => _ = found.insert(Source::Inst(Inst::new(at))),
                    None => is_known = false,
                }
                // A guarded definition does not kill.
                if !is_known || !self.code[at].is_predicated() {
                    return false;
                }
            }
            true
        });
        is_known.then_some(found)
    }

    /// The instructions that control may reach next from `at`.
    fn after(&self, at: usize) -> impl Iterator<Item = usize> + '_ {
        self.cfg.after(seen(at)).filter_map(own)
    }

    /// Is the value that instruction `at` gives `register` read by nothing but returns and copies, up
    /// to the next call? A store to a spill slot hands it on, and so does the load from there, also in what is called.
    pub(super) fn only_returns_read(&self, at: usize, register: Register) -> bool {
        let mut done = BTreeSet::new();
        let behind = |at: usize, holds: Holds| self.after(at).map(move |next| (next, holds));
        let mut open: Vec<(usize, Holds)> = behind(at, Holds::Register(register)).collect();
        while let Some((here, holds)) = open.pop() {
            if !done.insert((here, holds)) {
                continue;
            }
            let next = match holds {
                Holds::Register(register) => self.hand_on(here, register),
                Holds::Slot(offset) => self.hand_on_slot(here, offset),
            };
            let Some(next) = next else { return false };
            if next.is_kept {
                open.extend(behind(here, holds));
            }
            if let Some(too) = next.too {
                open.extend(behind(here, too));
            }
            if let (Holds::Slot(_), Some(&entry)) = (holds, self.callees.get(&here)) {
                open.push((entry, holds));
            }
        }
        true
    }

    /// What holds the value of a register behind an instruction; `None` if that reads it for something else.
    fn hand_on(&self, here: usize, register: Register) -> Option<Handed> {
        let instruction = self.code[here];
        let Some(roles) = Roles::of(instruction) else {
            return names_no_general_register(instruction).then_some(Handed::KEPT);
        };
        let returns = ControlFlow::of(instruction) == ControlFlow::Return;
        let reads = roles.uses().any(|span| names(span, register));
        let slot = SlotAccess::of(instruction).filter(|slot| {
            slot.is_store && slot.bytes == WORD && (File::Gpr, slot.register) == register
        });
        if reads && !returns && slot.is_none() && copied(instruction).is_none() {
            return None;
        }
        let kills = roles.defs().any(|span| names(span, register));
        let ends = (kills || instruction.is_call()) && !instruction.is_predicated();
        Some(Handed {
            is_kept: !ends,
            too: slot.map(|slot| Holds::Slot(slot.offset)),
        })
    }

    /// The same for a spill slot. What is stored over it, wholly or in part, ends it.
    fn hand_on_slot(&self, here: usize, offset: i32) -> Option<Handed> {
        let instruction = self.code[here];
        let is_local = matches!(instruction.operation(), Operation::LDL | Operation::STL);
        let Some(slot) = SlotAccess::of(instruction) else {
            return (!is_local).then_some(Handed::KEPT);
        };
        if slot.offset >= offset + WORD || offset >= slot.offset + slot.bytes {
            return Some(Handed::KEPT);
        }
        if slot.is_store {
            let is_kept = instruction.is_predicated();
            return Some(Handed { is_kept, too: None });
        }
        let is_whole = slot.offset == offset && slot.bytes == WORD;
        is_whole.then_some(Handed {
            is_kept: true,
            too: Some(Holds::Register((File::Gpr, slot.register))),
        })
    }

    /// May instruction `at` write `register`? For a call: may the callee?
    fn writes(&self, at: usize, register: Register) -> Option<bool> {
        let instruction = self.code[at];
        let Some(own) = Roles::of(instruction) else {
            return names_no_general_register(instruction).then_some(false);
        };
        if own.defs().any(|span| names(span, register)) {
            return Some(true);
        }
        match (self.callees.get(&at), ControlFlow::of(instruction)) {
            (Some(&entry), _) => self.callee_writes(entry, register),
            (None, ControlFlow::Call(_) | ControlFlow::FarCall) if !self.jumps.contains(&at) => {
                Some(abi::CALL_DEFS.iter().any(|&span| names(span, register)))
            }
            _ => Some(false),
        }
    }

    fn callee_writes(&self, entry: usize, register: Register) -> Option<bool> {
        let known = self.overwritten.borrow().get(&entry).cloned();
        let registers = match known {
            Some(registers) => registers,
            None => {
                let registers = self.registers_written_from(entry);
                let mut memory = self.overwritten.borrow_mut();
                memory.insert(entry, registers.clone());
                registers
            }
        };
        Some(registers?.contains(&register))
    }

    /// The registers that the function at `entry`, and what it calls, may write.
    fn registers_written_from(&self, entry: usize) -> Option<BTreeSet<Register>> {
        let mut written = BTreeSet::new();
        for at in self.reachable(entry, true) {
            let Some(roles) = Roles::of(self.code[at]) else {
                if names_no_general_register(self.code[at]) {
                    continue;
                }
                return None;
            };
            for span in roles.defs() {
                written.extend(span.registers().map(|number| (span.file, number)));
            }
            let calls = !self.jumps.contains(&at)
                && matches!(
                    ControlFlow::of(self.code[at]),
                    ControlFlow::Call(_) | ControlFlow::FarCall
                );
            for span in abi::CALL_DEFS
                .iter()
                .filter(|_| calls && !self.callees.contains_key(&at))
            {
                written.extend(span.registers().map(|number| (span.file, number)));
            }
        }
        Some(written)
    }

    /// The instructions of the function at `entry`, with the functions that it calls if `deep`.
    pub(super) fn reachable(&self, entry: usize, deep: bool) -> Vec<usize> {
        let mut done = vec![false; self.code.len()];
        let mut open = vec![entry];
        let mut found = Vec::new();
        while let Some(here) = open.pop() {
            if std::mem::replace(&mut done[here], true) {
                continue;
            }
            found.push(here);
            open.extend(self.after(here));
            if deep {
                open.extend(self.callees.get(&here));
            }
        }
        found
    }
}

/// Where a value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Holds {
    Register(Register),
    /// Bytes behind the stack pointer.
    Slot(i32),
}

/// What an instruction leaves of where a value is.
struct Handed {
    is_kept: bool,
    /// Where it is then, too.
    too: Option<Holds>,
}

impl Handed {
    const KEPT: Handed = Handed {
        is_kept: true,
        too: None,
    };
}

/// Bytes of a register.
const WORD: i32 = 4;

/// `LDL R, [R1+n]` or `STL [R1+n], R`.
struct SlotAccess {
    is_store: bool,
    register: u16,
    offset: i32,
    bytes: i32,
}

impl SlotAccess {
    fn of(instruction: Instruction) -> Option<SlotAccess> {
        const STACK: u128 = 1;
        let field = |start: u32| instruction.bits() >> start & 0xff;
        let (is_store, register) = match instruction.operation() {
            Operation::STL => (true, field(32)),
            Operation::LDL => (false, field(16)),
            _ => return None,
        };
        let offset = (instruction.bits() >> 40) as u32 & 0xff_ffff;
        (field(24) == STACK).then_some(SlotAccess {
            is_store,
            register: register as u16,
            offset: (offset << 8) as i32 >> 8,
            bytes: instruction.access_bytes() as i32,
        })
    }
}

/// The number of an instruction of the section for [`flow`](warpwright_flow): instruction 0 is whoever calls from
/// outside. It goes to every entry, and the section's own instructions follow it.
fn seen(at: usize) -> Inst {
    Inst::new(at + 1)
}

/// The other way; none for the caller.
fn own(inst: Inst) -> Option<usize> {
    inst.index().checked_sub(1)
}

/// Is the instruction known by its text, if not by its roles, and names no registers but predicates?
fn names_no_general_register(instruction: Instruction) -> bool {
    use crate::isa::form::File as Named;
    let decoded = isa::decode(instruction);
    let operands = decoded.operands(0);
    let mut registers = operands.iter().flat_map(|operand| &operand.registers);
    let harmless = registers.all(|r| matches!(r.file, Named::Predicate | Named::UniformPredicate));
    !decoded.is_opaque() && harmless
}

/// The register that the instruction copies: MOV, or the multiply-add of zero that ptxas uses for it.
pub(super) fn copied(instruction: Instruction) -> Option<u16> {
    const RZ: u128 = 255;
    let field = |start: u32| (instruction.bits() >> start) & 0xff;
    let opcode = instruction.opcode();
    let source = match opcode.operation() {
        _ if opcode.form() != OperandForm::REGISTERS => return None,
        Operation::MOV => field(32),
        // RZ * RZ + register.
        Operation::IMAD if field(24) == RZ && field(32) == RZ => field(64),
        _ => return None,
    };
    (source != RZ && !instruction.is_predicated()).then_some(source as u16)
}

fn names(span: crate::roles::Span, (file, number): Register) -> bool {
    span.file == file && span.registers().contains(&number)
}

/// Index of the instruction `distance` bytes behind the one after `at`.
fn index(at: usize, distance: i64) -> Option<usize> {
    let offset = target(at * INSTRUCTION, distance)?;
    Some(usize::try_from(offset).ok()? / INSTRUCTION)
}

fn successors_of(section: &Section<'_>, at: usize) -> Option<Vec<usize>> {
    let instruction = section.code[at];
    let conditional = is_conditional(instruction);
    let (mut next, falls) = match ControlFlow::of(instruction) {
        ControlFlow::Next | ControlFlow::Call(_) | ControlFlow::FarCall => (Vec::new(), true),
        ControlFlow::Jump(_) | ControlFlow::FarJump if section.is_relocated(at) => return None,
        ControlFlow::Jump(distance) => (vec![index(at, distance)?], conditional),
        ControlFlow::Branch(distance) | ControlFlow::Collective(distance) => {
            (vec![index(at, distance)?], true)
        }
        ControlFlow::Table => {
            let targets = section.listed.get(&at)?.iter();
            let targets = targets.map(|&target| target as usize / INSTRUCTION);
            (targets.collect(), conditional)
        }
        ControlFlow::FarJump => return None,
        ControlFlow::Return | ControlFlow::Exit => (Vec::new(), conditional),
    };
    if falls {
        next.push(at + 1);
    }
    Some(next)
}
