//! Cubins.
//!
//! The rewritten version may keep what the original had in its stack frame elsewhere: in shared
//! memory behind the original's, or in a frame of its own. Both are memory of one version alone
//! (docs/checker.md, 'Spill slots'); everything else must be done by both, access by access.

mod bits;
mod dynamic;
mod function;
mod returns;
mod step;
mod surroundings;

use std::collections::BTreeMap;
use std::ops::Range;

use warpwright_sass::elf::info::Attribute;
use warpwright_sass::elf::{Elf, ElfError, Info, KernelSections};
use warpwright_sass::function::{Calls, Code};
use warpwright_sass::roles::{File, Table};
use warpwright_sass::{Instruction, function::CodeError};

use crate::prove::check;
use crate::slots::Threads;
use crate::verdict::{Reason, Verdict};
use function::{Memory, SassFunction};

/// Registers at the end of those that a cubin states which code must not name (docs/checker.md).
const RESERVED: u32 = 2;

const NOT_STATED: &str = "launches of the original may have dynamic shared memory where the rewritten \
    version has memory of its own: state the most with --dynamic-smem BYTES, or 0 if there is none";

/// What is known about launches.
#[derive(Clone, Copy, Debug, Default)]
pub struct CubinOptions {
    /// The block that all launches will have.
    pub block: Option<[u32; 3]>,
    /// The most dynamic shared memory that a launch will have, in bytes. Unless it is given, kernels that
    /// may use any are undecided where the rewritten version has shared memory of its own.
    pub dynamic_smem: Option<u32>,
}

/// All kernels of `original`, by name, with the verdict on the kernel of that name in `new`.
///
/// # Errors
/// One of the two cannot be read.
pub fn check_cubins(
    original: &Elf,
    new: &Elf,
    options: &CubinOptions,
) -> Result<Vec<(String, Verdict)>, ElfError> {
    let kernels = original.kernels()?;
    let names = kernels.iter().map(|kernel| kernel.name.clone());
    Ok(names
        .map(|name| {
            let verdict = check_kernels(original, new, &name, options);
            (name, verdict)
        })
        .collect())
}

/// Is the kernel `name` of `new` a correct version of the one of `original`?
pub fn check_kernels(original: &Elf, new: &Elf, name: &str, options: &CubinOptions) -> Verdict {
    match try_check([original, new], name, options) {
        Ok(verdict) => verdict,
        Err(why) => Verdict::Undecided(Reason::new(why)),
    }
}

/// One version of the kernel.
struct Side<'e> {
    elf: &'e Elf,
    sections: KernelSections,
    info: Info,
    code: Code,
    relocations: BTreeMap<u32, String>,
    registers: u32,
}

fn try_check(elves: [&Elf; 2], name: &str, options: &CubinOptions) -> Result<Verdict, String> {
    let [original, new] = elves.map(|elf| Side::read(elf, name));
    let (original, new) = (original?, new?);
    if original.elf.target() != new.elf.target() {
        return Err("they are for different architectures".to_owned());
    }
    surroundings::different(&original, &new)?;
    if surroundings::is_identical(&original, &new)? {
        return Ok(Verdict::Proved);
    }
    let threads = threads(&original, &new, options)?;
    new.check_registers()?;
    let table = Table::for_sm(new.elf.target().sm).ok_or("the architecture is not known")?;
    if new.elf.shared_bytes(&new.sections) < original.elf.shared_bytes(&original.sections) {
        return Err("it states less shared memory than the original".to_owned());
    }
    // Launches may have less dynamic shared memory, or none: then only the section is there.
    let end = original.shared_end(options.dynamic_smem.unwrap_or(0))?;
    let area = end..new.shared_end(0)?.max(end);
    if !area.is_empty() && options.dynamic_smem.is_none() && original.may_use_dynamic(table) {
        return Err(NOT_STATED.to_owned());
    }
    let mut first = original.function("original", end..end, table);
    let mut second = new.function("rewritten", area, table);
    let is_aligned = first.skeleton() == second.skeleton();
    (first.is_aligned, second.is_aligned) = (is_aligned, is_aligned);
    Ok(certain(check(&first, &second, &threads)))
}

/// ptxas writes the same in many forms, most of which are free functions here: that they differ in form
/// refutes nothing.
fn certain(verdict: Verdict) -> Verdict {
    match verdict {
        Verdict::Refuted(found) if !found.is_certain => Verdict::Undecided(Reason {
            text: format!("{}, perhaps in form alone", found.what),
            original_place: found.original_place,
            rewritten_place: found.rewritten_place,
        }),
        verdict => verdict,
    }
}

impl<'e> Side<'e> {
    fn read(elf: &'e Elf, name: &str) -> Result<Side<'e>, String> {
        let text = |e: ElfError| e.to_string();
        let sections = elf.kernel(name).map_err(text)?;
        let code = Code::new(elf, &sections, Calls::Followed);
        let code = code.map_err(|e: CodeError| e.to_string())?;
        let info = elf.info(&format!(".nv.info.{name}")).map_err(text)?;
        Ok(Side {
            relocations: surroundings::relocations(elf, name).map_err(text)?,
            registers: elf.registers(&sections).map_err(text)?.unwrap_or(0),
            info: info.unwrap_or_default(),
            sections,
            elf,
            code,
        })
    }

    fn function(
        &self,
        version: &'static str,
        shared: Range<u32>,
        table: &'static Table,
    ) -> SassFunction<'_> {
        let frame = self.frame();
        let memory = Memory { frame, shared };
        let relocations = self.relocations.clone();
        SassFunction::new(&self.code, version, memory, relocations, table)
    }

    /// Bytes of local memory per thread (EIATTR_FRAME_SIZE).
    fn frame(&self) -> u32 {
        let info = self.elf.info(".nv.info").ok().flatten().unwrap_or_default();
        let stated = info.of_symbol(Attribute::FRAME_SIZE, self.sections.symbol);
        stated.unwrap_or(0)
    }

    /// Where the block's shared memory ends with so much that is dynamic: an address, rounded up so that
    /// wide accesses behind it are aligned. From sm_90 on the first 1,024 bytes are the system's even if
    /// the kernel has no section.
    fn shared_end(&self, dynamic: u32) -> Result<u32, String> {
        let reserved = if self.elf.target().sm >= 90 { 1024 } else { 0 };
        let bytes = u32::try_from(self.elf.shared_bytes(&self.sections)).ok();
        bytes
            .and_then(|bytes| bytes.max(reserved).checked_add(dynamic))
            .and_then(|end| end.checked_next_multiple_of(16))
            .filter(|&end| end < 1 << 23)
            .ok_or_else(|| "its shared memory is too large".to_owned())
    }

    /// May it use shared memory behind its section?
    fn may_use_dynamic(&self, table: &Table) -> bool {
        let section = self.elf.shared_bytes(&self.sections);
        dynamic::may_be_used(&self.code, table, section, |at| {
            self.relocations.contains_key(&at)
        })
    }

    /// Does the register count cover every register that is named?
    fn check_registers(&self) -> Result<(), String> {
        let insts = 0..self.code.instructions().len() as u32;
        let spans = insts.flat_map(|i| self.code.roles(warpwright_flow::Inst(i)).spans());
        let general = spans.filter(|span| span.file == File::Gpr);
        let highest = general.map(|span| u32::from(span.registers().end)).max();
        match highest {
            Some(need) if need + RESERVED > self.registers => Err(format!(
                "it uses {need} registers and states {}, of which {RESERVED} are not its own",
                self.registers
            )),
            _ => Ok(()),
        }
    }

    fn block(&self, attribute: Attribute) -> Option<[u32; 3]> {
        let record = self.info.get(attribute)?;
        <[u32; 3]>::try_from(record.words()).ok()
    }
}

/// The blocks that may run the kernel; the rewritten version must take all that the original takes.
fn threads(original: &Side, new: &Side, options: &CubinOptions) -> Result<Threads, String> {
    let required = [original, new].map(|side| side.block(Attribute::REQNTID));
    let bound = [original, new].map(|side| side.block(Attribute::MAX_THREADS).map(count));
    if required[0] != required[1] && options.block.is_none_or(|block| required[1] != Some(block)) {
        return Err("its .reqntid refuses launches that the original takes".to_owned());
    }
    let block = options.block.or(required[0]);
    let largest = Threads::default().most;
    let most = block
        .map(count)
        .or(bound[0])
        .unwrap_or(largest)
        .min(largest);
    if bound[1].is_some_and(|bound| bound < most) {
        return Err("its .maxntid refuses launches that the original takes".to_owned());
    }
    let most = bound[1].unwrap_or(most).min(largest);
    Ok(Threads { block, most })
}

fn count(block: [u32; 3]) -> u32 {
    block.iter().fold(1, |all, &n| all.saturating_mul(n))
}

/// The word of constant bank 0 with the initial stack pointer, as ptxas reads it.
fn stack_constant(sm: u32) -> u32 {
    if sm < 100 { 0x28 / 4 } else { 0x37c / 4 }
}

/// The word of constant bank 0 with the block's first dimension, as ptxas reads it.
fn block_constant(sm: u32) -> u32 {
    if sm < 100 { 0 } else { 0x360 / 4 }
}

/// The register into which `inst` loads the stack pointer from its constant, whatever else happens:
/// `LDC R1`, `MOV R1`, `IMAD.MOV.U32 R1`, or `ULDC` of any uniform register.
fn stack_load(inst: Instruction) -> Option<(File, u16)> {
    let word = u128::from(stack_constant(inst.sm())) << 40;
    let forms: [u128; 3] = [
        0x0800 << 64 | 0xff01_7b82,
        0x0f00 << 64 | 0x0001_7a02,
        0x078e_00ff << 64 | 0xff01_7624,
    ];
    let bits = inst.bits() & !bits::CONTROL.mask();
    if forms.iter().any(|form| bits == form | word) {
        return Some((File::Gpr, bits::STACK as u16));
    }
    let uniform = bits::RESULT.get(inst) as u16;
    let is_load = bits & !bits::RESULT.mask() == 0x0800 << 64 | 0x7ab9 | word;
    (is_load && uniform < bits::URZ).then_some((File::Uniform, uniform))
}
