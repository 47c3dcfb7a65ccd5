//! Inserting, deleting and replacing instructions of one function, with everything that holds an
//! offset into its code.
//!
//! An [`Edit`] is a list of wishes against the instructions as they stand in the text section
//! (kernel and the helper functions behind it); [`Edit::apply`] carries them all out at once, or
//! refuses and leaves the cubin as it was.
//!
//! * A jump to instruction `i` lands on what was inserted before `i`; what was inserted after `i`
//!   is reached only from `i`.
//! * The padding at the end of the section keeps its rule (instructions up to a multiple of 128
//!   bytes, and as many whole groups of eight as there were).
//! * What follows: relative branches in every encoding ([`crate::branch`]), return addresses in
//!   registers ([`returns`]), jump tables ([`tables`]), symbols, relocations, the offsets in
//!   `.nv.info.KERNEL` ([`facts`]), line tables ([`lines`]), call frame information ([`frames`]);
//!   file offsets and program headers follow when the container is written.
//! * Refused by name: calls and jumps through registers that add distances, a return address or a
//!   jump table that is not proven to be one, a target out of reach, an attribute whose meaning is
//!   not known, full debug information, and the deletion of an instruction that something refers to.
//!
//! The intermediate copy of the program that cubins for sm_100 and later carry beside the machine
//! code (.nv.merc.*, .nv.capmerc.*) is left alone: it stays the original program's.

mod code;
mod error;
pub(crate) mod facts;
mod frames;
pub(crate) mod lines;
mod moves;
mod rename;
mod returns;
mod tables;
mod trace;

use std::collections::{BTreeMap, BTreeSet};

use crate::control::Control;
use crate::elf::kernel::INSTRUCTION;
use crate::elf::{Elf, ElfError, KernelSections, refused, unedited};
use crate::inst::Instruction;
use crate::roles::Span;

use returns::Returns;
use tables::Table;
use trace::Section;

pub use error::EditError;
pub use moves::Moves;
pub use rename::RenameError;

/// Changes of one function's code, by the index of the instruction in its section.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Edit {
    before: BTreeMap<usize, Vec<Instruction>>,
    after: BTreeMap<usize, Vec<Instruction>>,
    replaced: BTreeMap<usize, Instruction>,
    /// Those of the replaced ones that have other registers.
    renamed: BTreeSet<usize>,
    deleted: BTreeSet<usize>,
}

impl Edit {
    /// No change.
    pub fn new() -> Edit {
        Edit::default()
    }

    /// Inserts `code` before instruction `at`; jumps to `at` land on it. Its own distances, if it
    /// has any, are taken as they are.
    pub fn insert_before(&mut self, at: usize, code: impl IntoIterator<Item = Instruction>) {
        self.before.entry(at).or_default().extend(code);
    }

    /// Inserts `code` after instruction `at`; only `at` falls through to it.
    pub fn insert_after(&mut self, at: usize, code: impl IntoIterator<Item = Instruction>) {
        self.after.entry(at).or_default().extend(code);
    }

    /// Puts another instruction in the place of `at`. If it refers to code, it does so by the
    /// distance as it was before the edit.
    pub fn replace(&mut self, at: usize, instruction: Instruction) {
        self.replaced.insert(at, instruction);
    }

    /// Gives instruction `at`, which is `instruction`, other registers: `name` says which one each
    /// operand begins with. Refused by [`Edit::apply`] where `.nv.info` names the registers, too.
    ///
    /// # Errors
    /// See [`RenameError`]; nothing is renamed then.
    pub fn rename(
        &mut self,
        at: usize,
        instruction: Instruction,
        name: impl Fn(Span) -> u16,
    ) -> Result<(), RenameError> {
        let renamed = instruction.renamed(name)?;
        if renamed != instruction {
            self.renamed.insert(at);
            self.replace(at, renamed);
        }
        Ok(())
    }

    /// Deletes instruction `at`; jumps to it land on what follows.
    pub fn delete(&mut self, at: usize) {
        self.deleted.insert(at);
    }

    /// Is there nothing to do?
    pub fn is_empty(&self) -> bool {
        *self == Edit::default()
    }

    /// Carries out the changes in the function called `name`; returns where everything went.
    ///
    /// # Errors
    /// The reason why it cannot be done; the cubin is unchanged then.
    pub fn apply(&self, elf: &mut Elf, name: &str) -> Result<Moves, ElfError> {
        carry_out(elf, name, &self.renamed, |old, relocated, returns| {
            code::rebuild(self, old, relocated, returns)
        })
    }
}

/// The code of one function as a whole, in an order of its own.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Arrangement {
    /// The instructions, each with its index in the code as it was, if it was there. The padding is not among
    /// them. What was there names code by the distances that it had.
    pub code: Vec<(Instruction, Option<usize>)>,
    /// For every instruction as it was: before which one of `code` lands who jumps to it.
    pub starts: Vec<usize>,
    /// New branches, by their place in `code`, and the place that they lead to.
    pub jumps: Vec<(usize, usize)>,
}

impl Arrangement {
    /// Gives the function called `name` this code; returns where everything went. Everything outside the code
    /// follows as after an [`Edit`].
    ///
    /// # Errors
    /// The reason why it cannot be done; the cubin is unchanged then.
    pub fn apply(&self, elf: &mut Elf, name: &str) -> Result<Moves, ElfError> {
        let old = elf.instructions(&elf.kernel(name)?)?;
        let changed = self.code.iter().filter_map(|&(new, origin)| {
            let at = origin?;
            let blank = |inst: Instruction| inst.with_control(Control::default()).ok();
            (blank(new) != blank(*old.get(at)?)).then_some(at)
        });
        carry_out(elf, name, &changed.collect(), |old, relocated, returns| {
            code::arrange(self, old, relocated, returns)
        })
    }

    /// How many instructions a function has before the padding.
    pub fn length(code: &[Instruction]) -> usize {
        code::end(code)
    }
}

/// Gives the function called `name` the code that `make` makes of the old one, of relocated places and of
/// return addresses.
fn carry_out(
    elf: &mut Elf,
    name: &str,
    renamed: &BTreeSet<usize>,
    make: impl FnOnce(
        &[Instruction],
        &code::Relocated,
        &Returns,
    ) -> Result<(Vec<Instruction>, Moves), EditError>,
) -> Result<Moves, ElfError> {
    let kernel = elf.kernel(name)?;
    if elf.section(".debug_info").is_some() {
        return Err(refused(
            "the code of a cubin with full debug information (-G) cannot be moved",
        ));
    }
    facts::allow_renaming(elf, &kernel, renamed)?;
    let old = elf.instructions(&kernel)?;
    let relocated = code::relocated_targets(elf, kernel.text)?;
    let named = |why| unedited(name, why);
    let found = indirect(elf, &kernel, &old, &relocated)?;
    let (new, moves) = make(&old, &relocated, &found.returns).map_err(named)?;
    let mut undo = Undo::default();
    let followed = follow(elf, &kernel, &old, &found.tables, &moves, &mut undo);
    if let Err(why) = followed {
        undo.restore(elf);
        return Err(why);
    }
    let bytes = new.iter().flat_map(|i| i.bits().to_le_bytes());
    elf.sections[kernel.text].data = bytes.collect();
    Ok(moves)
}

/// Lets everything outside the code follow the moves.
fn follow(
    elf: &mut Elf,
    kernel: &KernelSections,
    code: &[Instruction],
    tables: &[Table],
    moves: &Moves,
    undo: &mut Undo,
) -> Result<(), ElfError> {
    lines::follow(elf, kernel.text, moves, undo)?;
    frames::follow(elf, kernel.text, moves, undo)?;
    facts::follow(elf, kernel, moves, undo)?;
    tables::follow(elf, kernel, tables, moves, undo)?;
    code::move_relocations(elf, kernel.text, code, moves, undo)?;
    code::move_symbols(elf, kernel.text, moves, undo)
}

/// The contents that sections had before an edit: what a refusal halfway gives back.
#[derive(Default)]
struct Undo(Vec<(usize, Vec<u8>)>);

impl Undo {
    /// Takes the contents of a section that is about to get others.
    fn take(&mut self, elf: &mut Elf, section: usize) {
        let old = std::mem::take(&mut elf.sections[section].data);
        self.0.push((section, old));
    }

    /// Gives a section other contents.
    fn replace(&mut self, elf: &mut Elf, section: usize, data: Vec<u8>) {
        self.take(elf, section);
        elf.sections[section].data = data;
    }

    fn restore(self, elf: &mut Elf) {
        for (section, data) in self.0.into_iter().rev() {
            elf.sections[section].data = data;
        }
    }
}

/// Code offsets that no instruction names by itself: return addresses and jump tables.
struct Indirect {
    returns: Returns,
    tables: Vec<Table>,
}

fn indirect(
    elf: &Elf,
    kernel: &KernelSections,
    code: &[Instruction],
    relocated: &code::Relocated,
) -> Result<Indirect, ElfError> {
    let symbols = elf.symbols()?;
    let own = symbols
        .iter()
        .filter(|s| usize::from(s.section) == kernel.text && s.is_function());
    let entries: Vec<usize> = own.map(|s| s.value as usize / INSTRUCTION).collect();
    let listed = elf.branch_targets(kernel)?;
    let section = Section::new(code, relocated, &entries, &listed);
    let found = || -> Result<Indirect, EditError> {
        Ok(Indirect {
            returns: returns::find(&section)?,
            tables: tables::prove(elf, kernel, &section)?,
        })
    };
    found().map_err(|why| unedited(&kernel.name, why))
}
