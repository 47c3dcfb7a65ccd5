//! Cubins.
//!
//! The rewritten version may keep what the original had in its stack frame elsewhere: in shared
//! memory behind the original's, or in a frame of its own. Both are memory of one version alone
//! (docs/checker.md, 'Spill slots'); everything else must be done by both, access by access.

mod align;
mod anew;
mod bits;
mod dynamic;
mod flight;
mod function;
mod habits;
mod judge;
mod launches;
mod module;
mod places;
mod protection;
mod returns;
mod step;
mod surroundings;
mod timing;
mod uniform;
mod unwritten;
mod words;

use std::collections::BTreeMap;
use std::ops::Range;

use warpwright_flow::Inst;
use warpwright_sass::Instruction;
use warpwright_sass::elf::info::{Attribute, Info};
use warpwright_sass::elf::{Elf, ElfError, KernelSections};
use warpwright_sass::function::{Calls, Code, CodeError};
use warpwright_sass::roles::{File, Table};
use warpwright_target::{EditedCode, machine_code, ran_right};

use crate::prove::check_counted;
use crate::verdict::{Cause, Reason, Verdict};
use function::{Memory, SassFunction};
use judge::Judged;
pub use launches::Promises;
use module::Module;
use places::Places;
use surroundings::Difference;
pub use timing::Unjudged;

/// What is known about launches.
#[derive(Clone, Copy, Debug, Default)]
pub struct CubinOptions {
    /// The block that all launches will have.
    pub block: Option<[u32; 3]>,
    /// The most dynamic shared memory that a launch will have, in bytes. Unless it is given, kernels that
    /// may use any are undecided where the rewritten version has shared memory of its own.
    pub dynamic_smem: Option<u32>,
}

/// What a proof of machine code rests on, as far as its control fields go. One rule by architecture: the first that
/// holds, and the second one only where a device has run such code with the right results
/// ([`EditedCode::ControlFields`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ControlFields {
    /// The original's, and more: what stands in the original protects no less.
    Kept,
    /// Its own, in another order: they follow from what ptxas was seen to leave between instructions.
    Anew,
}

impl ControlFields {
    /// One word for it.
    pub fn word(self) -> &'static str {
        match self {
            ControlFields::Kept => "kept",
            ControlFields::Anew => "anew",
        }
    }
}

/// The verdict on one kernel, and what it rests on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The verdict.
    pub verdict: Verdict,
    /// What must hold of launches, beyond what the driver refuses, for a proof to be one.
    pub promises: Promises,
    /// Of a proof of code that is not the same: what it rests on.
    pub control_fields: Option<ControlFields>,
    /// The work that it took: instructions executed, locations joined, pairs of values compared.
    pub work: u64,
}

/// All kernels of `original`, by name, with the answer for the kernel of that name in `new`.
///
/// # Errors
/// One of the two cannot be read.
pub fn check_cubins(
    original: &Elf,
    new: &Elf,
    options: &CubinOptions,
) -> Result<Vec<(String, Answer)>, ElfError> {
    let pair = Pair::new(original, new)?;
    let kernels = original.kernels()?.into_iter();
    Ok(kernels
        .map(|kernel| {
            let answer = pair.check(&kernel.name, options);
            (kernel.name, answer)
        })
        .collect())
}

/// The same for two files, whose last byte counts: one that does not come back from its parts is undecided.
///
/// # Errors
/// One of the two cannot be read.
pub fn check_files(
    original: &[u8],
    new: &[u8],
    options: &CubinOptions,
) -> Result<Vec<(String, Answer)>, ElfError> {
    let elves = [Elf::parse(original)?, Elf::parse(new)?];
    let mut answers = check_cubins(&elves[0], &elves[1], options)?;
    if elves[1].write()? != new {
        for (_, answer) in &mut answers {
            *answer = undecided(Stop::Unread);
        }
    }
    Ok(answers)
}

/// Is the kernel `name` of `new` a correct version of the one of `original`?
pub fn check_kernels(original: &Elf, new: &Elf, name: &str, options: &CubinOptions) -> Verdict {
    answer(original, new, name, options).verdict
}

/// The same, with what the verdict rests on.
pub fn answer(original: &Elf, new: &Elf, name: &str, options: &CubinOptions) -> Answer {
    match Pair::new(original, new) {
        Ok(pair) => pair.check(name, options),
        Err(error) => undecided(Stop::from(Difference::from(error))),
    }
}

fn undecided(why: Stop) -> Answer {
    Answer {
        verdict: Verdict::Undecided(Reason::new(why.cause(), why.to_string())),
        promises: Promises::default(),
        control_fields: None,
        work: 0,
    }
}

/// Why a kernel is undecided before its values are looked at.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
enum Stop {
    #[error(transparent)]
    Surroundings(#[from] Difference),
    #[error(transparent)]
    Code(#[from] CodeError),
    #[error(transparent)]
    Launches(#[from] launches::Narrower),
    #[error(transparent)]
    Words(#[from] words::Unknown),
    #[error(transparent)]
    Weaker(#[from] protection::Weaker),
    #[error("the schedule cannot be checked: {0}")]
    Unjudged(#[from] timing::Unjudged),
    #[error("the file has bytes that its headers do not account for")]
    Unread,
    #[error("the architecture is not known")]
    Architecture,
    #[error("the cubin has no function `{0}`")]
    NoFunction(String),
}

impl Stop {
    fn cause(&self) -> Cause {
        match self {
            Stop::Surroundings(_) | Stop::Unread | Stop::NoFunction(_) => Cause::Around,
            Stop::Code(_) | Stop::Architecture => Cause::Unsupported,
            Stop::Launches(launches::Narrower::DynamicNotStated) => Cause::DynamicSharedMemory,
            Stop::Launches(_) => Cause::Launches,
            Stop::Words(_) => Cause::Words,
            Stop::Weaker(_) | Stop::Unjudged(_) => Cause::Schedule,
        }
    }
}

/// Two cubins.
struct Pair<'e> {
    modules: [Module<'e>; 2],
    same_module: Result<(), Difference>,
}

impl<'e> Pair<'e> {
    fn new(original: &'e Elf, new: &'e Elf) -> Result<Pair<'e>, ElfError> {
        let modules = [Module::read(original)?, Module::read(new)?];
        let same_module = surroundings::same_module(&modules[0], &modules[1]);
        Ok(Pair {
            modules,
            same_module,
        })
    }

    fn check(&self, name: &str, options: &CubinOptions) -> Answer {
        self.try_check(name, options).unwrap_or_else(undecided)
    }

    fn try_check(&self, name: &str, options: &CubinOptions) -> Result<Answer, Stop> {
        self.same_module.clone()?;
        let table = Table::for_sm(self.modules[0].elf.target().sm);
        let table = table.ok_or(Stop::Architecture)?;
        let [original, new] = self.modules.each_ref();
        let words = [original.words(name)?, new.words(name)?];
        let [original, new] = [
            Side::read(original, name, &words[0], table)?,
            Side::read(new, name, &words[1], table)?,
        ];
        surroundings::same_kernel(&original, &new)?;
        if surroundings::is_identical(&original, &new) {
            return Ok(Answer {
                verdict: Verdict::Proved,
                promises: Promises::default(),
                control_fields: None,
                work: 0,
            });
        }
        let launches = launches::compare(&original, &new, options)?;
        let codes = [original.code()?, new.code()?];
        new.check_registers(&codes[1])?;
        words::check(&codes[0], &codes[1], new.parameter_bytes(), table)?;
        let has_dynamic = original.may_use_dynamic(&codes[0], table);
        let area = launches::own_shared(&original, &new, options, has_dynamic)?;
        let promises = launches.promises(options, &area, has_dynamic);
        let end = area.start;
        let mut first = original.function("original", &codes[0], end..end, table);
        let mut second = new.function("rewritten", &codes[1], area.clone(), table);
        let is_aligned = first.skeleton() == second.skeleton();
        (first.is_aligned, second.is_aligned) = (is_aligned, is_aligned);
        let barriers = anew::warp_barriers((&codes[0], &codes[1]), table);
        if let Ok([before, after]) = barriers.clone() {
            (first.warp_barriers, second.warp_barriers) = (before, after);
        }
        let (verdict, work) = check_counted(&first, &second, &launches.threads);
        let control_fields = match verdict.is_proved() {
            true => {
                barriers?;
                Some(control_fields(&codes, &area, table)?)
            }
            false => None,
        };
        let walked = [&first, &second].map(SassFunction::walked);
        Ok(Answer {
            verdict: certain(verdict),
            promises,
            control_fields,
            work: work + walked[0] + walked[1],
        })
    }
}

/// What the schedule of the second version rests on; its values are proved.
fn control_fields(
    codes: &[Code; 2],
    area: &Range<u32>,
    table: &'static Table,
) -> Result<ControlFields, Stop> {
    let [original, new] = codes;
    uniform::compare(original, new, table)?;
    let judged = [Judged::new(original)?, Judged::new(new)?];
    let [before, after] = &judged;
    if let Some(fault) = after.faults(before, table).into_iter().next() {
        return Err(fault.into());
    }
    let is_kept = || -> Result<(), Stop> {
        words::same_order(original, new, area, table)?;
        Ok(protection::compare((before, after), table)?)
    };
    let is_anew = || -> Result<(), Stop> {
        anew::compare(before, after, table)?;
        Ok(protection::compare_anew((before, after), table)?)
    };
    let Err(weaker) = is_kept() else {
        return Ok(ControlFields::Kept);
    };
    let sm = new.instructions().first().map_or(0, |word| word.sm());
    if !ran_right(EditedCode::ControlFields, sm) {
        return Err(weaker);
    }
    // In the old order the old stalls and waits say more than any table; scoreboards may be others.
    let has_renamed = || {
        protection::stalls_as_long(original, new, table)
            && anew::waits_for_as_much((before, after), table).is_ok()
    };
    match protection::is_in_old_order(original, new, table) {
        true if !has_renamed() => return Err(weaker),
        true => is_anew().map_err(|_| weaker)?,
        false => is_anew()?,
    }
    Ok(ControlFields::Anew)
}

/// Instructions of `new` before which something is not sure to be over that is so in `original`, or whose control field is
/// wrong by itself, ascending: what protects registers, as far as the judge's own walk finds it.
///
/// # Errors
/// An instruction is not known well enough.
pub fn unprotected(original: &Code, new: &Code) -> Result<Vec<Inst>, Unjudged> {
    let sm = new.instructions().first().map_or(0, |word| word.sm());
    let table = Table::for_sm(sm).ok_or(Unjudged::Architecture(sm))?;
    let judged = [Judged::new(original)?, Judged::new(new)?];
    let [before, after] = &judged;
    let close = protection::too_close(before, after).map(|found| found.later.inst);
    let faults = after.faults(before, table);
    let mut found: Vec<Inst> = faults
        .iter()
        .filter_map(words::Unknown::at)
        .chain(close)
        .collect();
    found.sort_unstable();
    found.dedup();
    Ok(found)
}

/// ptxas writes the same in many forms, most of which are free functions here: that they differ in form
/// refutes nothing.
fn certain(verdict: Verdict) -> Verdict {
    match verdict {
        Verdict::Refuted(found) if !found.is_certain => Verdict::Undecided(Reason {
            cause: Cause::Form,
            text: format!("{}, perhaps in form alone", found.what),
            original_place: found.original_place,
            rewritten_place: found.rewritten_place,
        }),
        verdict => verdict,
    }
}

impl Module<'_> {
    fn words(&self, name: &str) -> Result<Vec<Instruction>, Stop> {
        let sections = self.functions.get(name);
        let sections = sections.ok_or_else(|| Stop::NoFunction(name.to_owned()))?;
        Ok(self.elf.instructions(sections).map_err(Difference::from)?)
    }
}

/// One version of the kernel.
struct Side<'m> {
    module: &'m Module<'m>,
    sections: &'m KernelSections,
    info: Info,
    places: Places<'m>,
    relocations: BTreeMap<u32, String>,
}

impl<'m> Side<'m> {
    fn read(
        module: &'m Module<'m>,
        name: &str,
        words: &'m [Instruction],
        table: &'static Table,
    ) -> Result<Side<'m>, Stop> {
        let sections = module.functions.get(name);
        let sections = sections.ok_or_else(|| Stop::NoFunction(name.to_owned()))?;
        let data = sections.info.map(|at| &module.elf.sections[at].data);
        let info = data.map(|data| Info::parse(data)).transpose();
        let places = Places::new(words, table);
        Ok(Side {
            relocations: surroundings::relocations(module, sections.text, &places)?,
            info: info.map_err(Difference::from)?.unwrap_or_default(),
            places,
            sections,
            module,
        })
    }

    fn code(&self) -> Result<Code, CodeError> {
        Code::new(self.module.elf, self.sections, Calls::Followed)
    }

    fn function<'c>(
        &self,
        version: &'static str,
        code: &'c Code,
        shared: Range<u32>,
        table: &'static Table,
    ) -> SassFunction<'c> {
        let frame = self.frame();
        let memory = Memory { frame, shared };
        let relocations = self.relocations.clone();
        SassFunction::new(code, version, memory, relocations, table)
    }

    /// What `.nv.info` says of the kernel.
    fn number(&self, attribute: Attribute) -> Option<u32> {
        self.module.number(attribute, self.sections.symbol)
    }

    /// Bytes of local memory per thread (EIATTR_FRAME_SIZE).
    fn frame(&self) -> u32 {
        self.number(Attribute::FRAME_SIZE).unwrap_or(0)
    }

    /// Registers per thread (EIATTR_REGCOUNT).
    fn registers(&self) -> u32 {
        self.number(Attribute::REGCOUNT).unwrap_or(0)
    }

    /// Bytes of constant bank 0.
    fn parameter_bytes(&self) -> u64 {
        let sections = &self.module.elf.sections;
        self.sections.parameters.map_or(0, |at| sections[at].size())
    }

    /// May it use shared memory behind its section?
    fn may_use_dynamic(&self, code: &Code, table: &Table) -> bool {
        let section = self.module.elf.shared_bytes(self.sections);
        dynamic::may_be_used(code, table, section, |at| {
            self.relocations.contains_key(&at)
        })
    }

    /// Does the register count cover every register that is named?
    fn check_registers(&self, code: &Code) -> Result<(), launches::Narrower> {
        let insts = 0..code.instructions().len() as u32;
        let spans = insts.flat_map(|i| code.roles(warpwright_flow::Inst(i)).spans());
        let general = spans.filter(|span| span.file == File::Gpr);
        let highest = general.map(|span| u32::from(span.registers().end)).max();
        let stated = self.registers();
        match highest {
            Some(need) if need + launches::RESERVED > stated => {
                Err(launches::Narrower::TooFewRegisters { need, stated })
            }
            _ => Ok(()),
        }
    }
}

/// The offset in constant bank 0 of the initial stack pointer, as ptxas reads it.
fn stack_constant(sm: u32) -> u32 {
    machine_code(sm).stack_pointer
}

/// The offset in constant bank 0 of the block's first dimension, as ptxas reads it.
fn block_constant(sm: u32) -> u32 {
    machine_code(sm).block_size
}

/// The register into which `inst` loads the stack pointer from its constant, whatever else happens:
/// `LDC R1`, `MOV R1`, `IMAD.MOV.U32 R1`, or `ULDC` of any uniform register.
fn stack_load(inst: Instruction) -> Option<(File, u16)> {
    let word = u128::from(stack_constant(inst.sm()) / 4) << 40;
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
