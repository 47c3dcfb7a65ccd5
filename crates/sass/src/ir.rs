//! A function of machine code that can be put into another order: blocks of instructions without control
//! fields.
//!
//! [`Ir::new`] takes the code of a cubin apart; its blocks may then be permuted, and instructions inserted,
//! deleted and changed, as long as the function means the same. [`Ir::emit`] writes it back: everything that
//! holds an offset follows ([`crate::edit`]), and every control field is made anew ([`crate::issue`]), whoever
//! wrote the old ones.
//!
//! Blocks keep their order, and what ends a block stays at its end. A jump to a block lands on its first
//! instruction, whichever that is now. Calls and returns are targets of nobody: a block begins behind each call.
//!
//! Rows of line tables stay where they are in their block when its instructions change places: a line is right to
//! within a block.

use std::collections::BTreeSet;

use warpwright_flow::{Cfg, Inst};

use crate::edit::{Arrangement, Moves};
use crate::elf::kernel::INSTRUCTION;
use crate::elf::{Elf, ElfError, KernelSections};
use crate::function::{Calls, Code, CodeError};
use crate::inst::Instruction;
use crate::issue::{self, Old, Unassigned};

/// One instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Op {
    /// Its bits. The control field says nothing about waits and stalls any more; what it says about the
    /// instruction itself ([`crate::issue`]) is kept.
    pub inst: Instruction,
    origin: Option<usize>,
    target: Option<usize>,
}

impl Op {
    /// A new instruction that names no code.
    pub fn new(inst: Instruction) -> Op {
        Op {
            inst,
            origin: None,
            target: None,
        }
    }

    /// A new branch to a block.
    pub fn jump(inst: Instruction, block: usize) -> Op {
        Op {
            inst,
            origin: None,
            target: Some(block),
        }
    }

    /// The index of the instruction in the code that was taken apart; none for a new one.
    pub fn origin(self) -> Option<usize> {
        self.origin
    }
}

/// A function, block by block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ir {
    name: String,
    /// The first instruction of each block as it was, and their number.
    starts: Vec<usize>,
    /// The instructions of each block, in order. The padding behind the code is not among them.
    pub blocks: Vec<Vec<Op>>,
}

/// What stays of control fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// Nothing but what says something of the instruction itself.
    Nothing,
    /// The scoreboards of instructions that need one, in blocks that are in their old order: more may stand among it.
    Scoreboards,
    /// All fields of blocks whose order is as it was, which get stricter where they must; elsewhere scoreboards.
    Blocks,
}

/// Why a function cannot be taken apart or written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IrError {
    /// The container, or what an edit of it refuses.
    #[error(transparent)]
    Elf(#[from] ElfError),
    /// The control flow is not known.
    #[error(transparent)]
    Code(#[from] CodeError),
    /// The control fields cannot be made.
    #[error(transparent)]
    Issue(#[from] Unassigned),
}

impl Ir {
    /// Takes the function called `name` apart.
    ///
    /// # Errors
    /// The container is damaged, or the control flow is not known.
    pub fn new(elf: &Elf, name: &str) -> Result<Ir, IrError> {
        let kernel = elf.kernel(name)?;
        let code = Code::new(elf, &kernel, Calls::Followed)?;
        Ok(Ir::of_code(elf, &kernel, &code)?)
    }

    fn of_code(elf: &Elf, kernel: &KernelSections, code: &Code) -> Result<Ir, ElfError> {
        let insts = code.instructions();
        let end = Arrangement::length(insts);
        let cfg = Cfg::new(code);
        let mut leaders: BTreeSet<usize> =
            cfg.blocks().map(|b| cfg.first_inst(b).0 as usize).collect();
        let calls = insts.iter().enumerate().filter(|(_, inst)| inst.is_call());
        leaders.extend(calls.map(|(at, _)| at + 1));
        leaders.extend(named_places(elf, kernel.text)?);
        leaders.insert(0);
        let mut starts: Vec<usize> = leaders.range(..end).copied().collect();
        starts.push(end);
        let op = |at: usize| Op {
            inst: insts[at],
            origin: Some(at),
            target: None,
        };
        Ok(Ir {
            name: kernel.name.clone(),
            blocks: starts
                .windows(2)
                .map(|w| (w[0]..w[1]).map(op).collect())
                .collect(),
            starts,
        })
    }

    /// The function's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The block that an instruction of the code as it was began in; none for the padding.
    pub fn block_of(&self, inst: Inst) -> Option<usize> {
        let at = inst.0 as usize;
        let block = self
            .starts
            .partition_point(|&start| start <= at)
            .checked_sub(1)?;
        (block < self.blocks.len()).then_some(block)
    }

    /// Writes the function into the cubin that it was taken from: its instructions as they are now, with
    /// control fields of their own. Returns where everything went.
    ///
    /// # Errors
    /// Something outside the code cannot follow, or a control field cannot be made; the cubin is unchanged
    /// then.
    pub fn emit(&self, elf: &mut Elf, keep: Keep) -> Result<Moves, IrError> {
        let mut new = elf.clone();
        let moves = self.arrangement().apply(&mut new, &self.name)?;
        let kernel = new.kernel(&self.name)?;
        let mut code = Code::new(&new, &kernel, Calls::Followed)?;
        let before = Code::new(elf, &elf.kernel(&self.name)?, Calls::Followed)?;
        issue::assign(&mut code, &self.old(keep, &before))?;
        new.set_code(&kernel, code.instructions())?;
        *elf = new;
        Ok(moves)
    }

    /// What may stay of the old fields.
    fn old<'a>(&self, keep: Keep, before: &'a Code) -> Old<'a> {
        let mut old = Old {
            code: Some(before),
            ..Old::default()
        };
        for (block, range) in self.blocks.iter().zip(self.starts.windows(2)) {
            let places = block.iter().map(|op| op.origin());
            let is_same = places.eq((range[0]..range[1]).map(Some));
            let keeps = keep == Keep::Blocks && is_same;
            old.kept.extend(block.iter().map(|_| keeps));
            // In another order they would make one wait for all.
            let stays = keep != Keep::Nothing && is_in_order(block);
            old.scoreboards.extend(block.iter().map(|_| stays));
            let next = block.iter().skip(1).map(|op| op.origin()).chain([None]);
            let is_next = |(op, next): (&Op, Option<usize>)| {
                let origin = op.origin();
                next.is_some() && origin.map(|at| at + 1) == next
            };
            old.followed.extend(block.iter().zip(next).map(is_next));
        }
        old
    }

    fn arrangement(&self) -> Arrangement {
        let mut arrangement = Arrangement::default();
        let mut first = Vec::with_capacity(self.blocks.len());
        let mut jumps = Vec::new();
        for (block, range) in self.blocks.iter().zip(self.starts.windows(2)) {
            let start = arrangement.code.len();
            first.push(start);
            for op in block {
                jumps.extend(op.target.map(|target| (arrangement.code.len(), target)));
                arrangement.code.push((op.inst, op.origin));
            }
            // Inside a block the n-th place stays the n-th place of what was there.
            let mut kept = block
                .iter()
                .enumerate()
                .filter(|(_, op)| op.origin.is_some());
            arrangement.starts.push(start);
            kept.next();
            for _ in range[0] + 1..range[1] {
                let place = kept.next().map_or(block.len(), |(place, _)| place);
                arrangement.starts.push(start + place);
            }
        }
        let end = arrangement.code.len();
        let place = |block: usize| first.get(block).copied().unwrap_or(end);
        arrangement.jumps = jumps
            .into_iter()
            .map(|(at, block)| (at, place(block)))
            .collect();
        arrangement
    }
}

/// Do the instructions that were there come in the order that they had?
fn is_in_order(block: &[Op]) -> bool {
    block.iter().filter_map(|op| op.origin()).is_sorted()
}

/// Instructions that symbols and relocations name.
fn named_places(elf: &Elf, text: usize) -> Result<Vec<usize>, ElfError> {
    let symbols = elf.symbols()?;
    let mut places = Vec::new();
    for symbol in symbols.iter().filter(|s| usize::from(s.section) == text) {
        places.push(symbol.value as usize / INSTRUCTION);
        places.push(symbol.value.saturating_add(symbol.size) as usize / INSTRUCTION);
    }
    for (i, section) in elf.sections.iter().enumerate() {
        if !section.is_relocations() {
            continue;
        }
        for r in elf.relocations(i)? {
            let here = symbols.get(r.symbol as usize);
            let here = here.filter(|s| usize::from(s.section) == text);
            let named = here.map(|s| s.value.wrapping_add_signed(r.addend.unwrap_or(0)));
            places.extend(named.map(|named| named as usize / INSTRUCTION));
        }
    }
    Ok(places)
}
