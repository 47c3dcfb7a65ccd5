//! The stack frame of a kernel: which bytes of it are spill slots.
//!
//! Goal: find all local memory that only plain `STL`/`LDL [R1+constant]` can reach, as slots that
//! may live elsewhere. Paper: none; RegDem (section 3) inserts its own spills, and Hayes and Zhang,
//! whom it cites, convert those of the compiler without saying how to tell them.
//!
//! Requires nothing. The rule is about the whole text section, helper functions included, and does
//! not depend on control flow: R1 is loaded once and moved once, both before anything can branch or
//! be branched to, and no other instruction touches it but as the base of a plain access. Then its
//! value is the same at every access, equal offsets are equal bytes, and nothing else can form an
//! address of the frame. Whatever does not fit is refused by name.

use std::collections::BTreeMap;

use warpwright_target::Unit;

use super::Refusal;
use super::word::{self, Local, LocalWord, STACK};
use crate::branch::CodeOperand;
use crate::inst::Instruction;
use crate::isa::decode;
use crate::operation::Operation;
use crate::roles::{File, Roles, is_usual};

/// One access to a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Access {
    /// Index of the instruction in its section.
    pub at: usize,
    /// Store or load?
    pub is_store: bool,
    /// From the start of the frame, in bytes.
    pub offset: u32,
    /// 1 to 16.
    pub bytes: u32,
}

/// Bytes of the frame that are accessed together: 4, 8 or 16, at a multiple of as many.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slot {
    /// From the start of the frame, in bytes.
    pub offset: u32,
    /// Its size, which is the width of its widest access, at least 4.
    pub bytes: u32,
    /// Its accesses, in program order.
    pub accesses: Vec<Access>,
}

/// A frame that consists of spill slots.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// Index of the instruction that loads the stack pointer.
    pub load: usize,
    /// Index of the instruction that makes room for the frame.
    pub adjust: usize,
    /// The frame's size in bytes per thread.
    pub bytes: u32,
    /// The slots, by offset. They do not overlap.
    pub slots: Vec<Slot>,
}

impl Frame {
    /// Finds the slots of a kernel from all instructions of its text section.
    ///
    /// # Errors
    /// [`Refusal::NoSpills`] if local memory is not used at all; other refusals name the first
    /// instruction that does not fit.
    pub fn find(code: &[Instruction]) -> Result<Frame, Refusal> {
        let words: Vec<(usize, LocalWord)> = plain_accesses(code)?;
        let &(first, _) = words.first().ok_or(Refusal::NoSpills)?;
        let (load, adjust, bytes) = set_up(code, first)?;
        if let Some(at) = code.iter().position(|&inst| word::is_cluster_barrier(inst)) {
            return Err(Refusal::Cluster { at });
        }
        if let Some(at) = code.iter().position(|&inst| word::counts_scoreboard(inst)) {
            return Err(Refusal::CountedWait { at });
        }
        for (at, &inst) in code.iter().enumerate() {
            let is_known = at == load || at == adjust || word::local(inst) != Local::No;
            if !is_known && touches_stack(at, inst)? {
                return Err(Refusal::FrameAddress { at });
            }
        }
        let accesses = words.into_iter().map(|(at, word)| access(at, word, bytes));
        let slots = slots(&accesses.collect::<Result<Vec<_>, _>>()?)?;
        Ok(Frame {
            load,
            adjust,
            bytes,
            slots,
        })
    }
}

/// Does `inst` read or write R1? An instruction that never executes does not.
fn touches_stack(at: usize, inst: Instruction) -> Result<bool, Refusal> {
    if word::is_never_executed(inst) {
        return Ok(false);
    }
    let roles = Roles::of(inst).ok_or(Refusal::Opaque { at })?;
    if roles.is_rare() && !is_usual(inst) {
        let name = decode(inst).mnemonic();
        return Err(Refusal::Rare { at, name });
    }
    let stack = u16::from(STACK);
    let general = roles.spans().iter().filter(|span| span.file == File::Gpr);
    Ok(general
        .into_iter()
        .any(|span| span.registers().contains(&stack)))
}

fn plain_accesses(code: &[Instruction]) -> Result<Vec<(usize, LocalWord)>, Refusal> {
    let mut words = Vec::new();
    for (at, &inst) in code.iter().enumerate() {
        match word::local(inst) {
            Local::No => {}
            Local::Plain(word) if word.base == STACK => words.push((at, word)),
            Local::Plain(_) => return Err(Refusal::LocalArray { at }),
            Local::Other => return Err(Refusal::UnknownForm { at }),
        }
    }
    Ok(words)
}

/// The two instructions that set the stack pointer up, and the size of the frame: both in the
/// straight line that the kernel begins with, before its first access.
fn set_up(code: &[Instruction], first_access: usize) -> Result<(usize, usize, u32), Refusal> {
    let line = straight_line(code);
    let find = |wanted: &dyn Fn(Instruction) -> bool| {
        code.iter()
            .position(|&inst| wanted(inst))
            .filter(|&at| at < line && at < first_access)
            .ok_or(Refusal::NoFrame)
    };
    let load = find(&word::is_stack_load)?;
    let adjust = find(&|inst| word::stack_add(inst).is_some())?;
    let room = word::stack_add(code[adjust]).unwrap_or(0);
    let bytes = u32::try_from(-i64::from(room)).map_err(|_| Refusal::NoFrame)?;
    if load > adjust || bytes == 0 {
        return Err(Refusal::NoFrame);
    }
    Ok((load, adjust, bytes))
}

/// How many instructions run, in order and once, before the first that may go elsewhere or that
/// may be gone to. A guarded exit ends threads and lets the others go on; BSSY only says where threads
/// will meet, and the place counts as one that may be gone to.
fn straight_line(code: &[Instruction]) -> usize {
    // It names the start of the section, to which it adds a register: a place behind a call.
    let targets = code.iter().enumerate().filter_map(|(at, inst)| {
        let CodeOperand::Relative(distance) = inst.code_operand() else {
            return None;
        };
        if inst.operation() == Operation::RET {
            return None;
        }
        usize::try_from(at as i64 + 1 + distance / 16).ok()
    });
    let goes_on = |inst: &Instruction| inst.is_exit() || inst.operation() == Operation::BSSY;
    let control = |inst: &Instruction| inst.unit() == Unit::Control && !goes_on(inst);
    let first_control = code.iter().position(control);
    let ends = targets.chain(first_control);
    ends.min().unwrap_or(code.len())
}

fn access(at: usize, word: LocalWord, frame: u32) -> Result<Access, Refusal> {
    let offset = u32::try_from(word.offset).map_err(|_| Refusal::OutsideFrame { at })?;
    if offset + word.bytes > frame {
        return Err(Refusal::OutsideFrame { at });
    }
    if offset % word.bytes != 0 {
        return Err(Refusal::UnknownForm { at });
    }
    Ok(Access {
        at,
        is_store: word.is_store,
        offset,
        bytes: word.bytes,
    })
}

/// Aligned powers of two either nest or are apart, so each access lies in the widest one around it.
fn slots(accesses: &[Access]) -> Result<Vec<Slot>, Refusal> {
    let mut widest: BTreeMap<u32, u32> = BTreeMap::new();
    for bytes in [16, 8, 4] {
        for access in accesses.iter().filter(|a| a.bytes.max(4) == bytes) {
            let start = access.offset / bytes * bytes;
            let before = widest.range(..=start).next_back();
            if before.is_none_or(|(&at, &bytes)| at + bytes <= start) {
                widest.insert(start, bytes);
            }
        }
    }
    let slots = widest.into_iter().map(|(offset, bytes)| Slot {
        offset,
        bytes,
        accesses: accesses
            .iter()
            .filter(|a| (offset..offset + bytes).contains(&a.offset))
            .copied()
            .collect(),
    });
    Ok(slots.collect())
}
