//! `demote`: values of a finished kernel leave their registers for shared memory, until it has so few registers
//! that more blocks reside.
//!
//! Goal and paper: RegDem, section 3, whole. What leaves where, and which register is whose afterwards, decides
//! [`warpwright_regs::demote`], with its departures; what the machine code asks of registers and the words that
//! are added stand in [`warpwright_sass::demote`], control fields in [`warpwright_sass::hazards::settle`]. Here is
//! what depends on the GPU and the launch.
//!
//! Departure: the paper's address register is R1 where no stack needs it, which costs nothing. Behind
//! [`spill_to_shared`](crate::spill_to_shared) it is there already, and the new slots stand behind those that moved.
//!
//! What it writes counts as proved only on an architecture where control fields of our own ran right ([`Timing`],
//! docs/scheduling.md).
//!
//! Requires: the block size and the dynamic shared memory of the launch where slots are needed; no clusters; one
//! copy of the program; no calls that leave the kernel; no asynchronous matrix products. Preserves: every
//! instruction of the kernel but the load of an idle stack pointer, in its order, under other registers.

use std::collections::{BTreeMap, BTreeSet};

use warpwright_diag::count;
use warpwright_flow::{Class, EntityRef, Function, Inst, Value};
pub use warpwright_regs::demote::{Again, Strategy};
use warpwright_regs::demote::{
    Cell, Demoted, Goal, Known, Refinements, Stuck, compact, demote, pressure,
};
use warpwright_regs::draft::{Draft, Origin, Role};
use warpwright_sass::demote::access::fresh;
use warpwright_sass::demote::{Access, General, Slot, Unset};
use warpwright_sass::edit::RenameError;
use warpwright_sass::elf::{KernelSections, RESERVED_REGISTERS};
use warpwright_sass::function::{Calls, Code};
use warpwright_sass::hazards::settle::{Thrift, settle, storable};
use warpwright_sass::{Edit, Elf, Instruction, Operation, roles, spill};
use warpwright_target::{Resources, desired_registers, occupancy};

use crate::options::Argument;
use crate::own_shared::{Launch, cautions, limit, used_bytes};
use crate::pass::{Fuel, Need, Outcome, Pass, Rewritten, Timing, Work};
use crate::refusal::Refusal;
use crate::reliance::Footprint;
use crate::site::{CubinSite, Setting};

/// How few registers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// So many per thread, as the kernel states them.
    Registers(u32),
    /// As many as let so many blocks reside.
    Blocks(u32),
    /// The nearest step of the occupancy staircase that can be had.
    Auto,
}

impl From<u32> for Target {
    fn from(registers: u32) -> Target {
        Target::Registers(registers)
    }
}

impl Argument for Target {
    fn wanted() -> String {
        "a number of registers, `x4` for the most with which four blocks reside, or `auto`".into()
    }

    fn parse(text: &str) -> Option<Self> {
        match (text, text.strip_prefix('x')) {
            ("auto", _) => Some(Target::Auto),
            (_, Some(blocks)) => blocks.parse().ok().map(Target::Blocks),
            (number, None) => number.parse().ok().map(Target::Registers),
        }
    }

    fn print(&self) -> Option<String> {
        Some(match self {
            Target::Registers(registers) => registers.to_string(),
            Target::Blocks(blocks) => format!("x{blocks}"),
            Target::Auto => "auto".to_owned(),
        })
    }
}

/// Is something done?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Switch {
    /// Yes.
    On,
    /// No.
    Off,
}

impl From<Switch> for bool {
    fn from(switch: Switch) -> bool {
        switch == Switch::On
    }
}

/// The pass.
#[derive(Debug, Clone, Copy)]
pub struct Demote {
    /// How few registers.
    pub registers: Target,
    /// In which order values are taken.
    pub by: Strategy,
    /// See [`Refinements::redundant`].
    pub redundant: Switch,
    /// See [`Refinements::hoist`].
    pub hoist: Switch,
    /// See [`Refinements::pairs`].
    pub pairs: Switch,
    /// See [`Refinements::again`].
    pub again: Again,
    /// Does each added access keep nobody waiting who does not need it?
    pub waits: Switch,
}

crate::words!(Switch: Switch::On = "on", Switch::Off = "off");
crate::words!(Again: Again::Nothing = "off", Again::Alone = "on", Again::All = "all");
crate::words!(Strategy: Strategy::Relief = "relief", Strategy::Accesses = "accesses",
    Strategy::Loops = "loops", Strategy::Conflicts = "conflicts");
crate::options!(Demote: [registers "registers per thread"];
    [by: Strategy = Strategy::Relief, "which values go first: most relief for the accesses, or one of RegDem's orders";
     redundant: Switch = Switch::On, "leave out loads and stores that the next ones make useless";
     hoist: Switch = Switch::On, "load some instructions before the use";
     pairs: Switch = Switch::On, "load and store pairs by one access";
     again: Again = Again::Alone, "compute again: constants and indices, or all that costs less so than its slot";
     waits: Switch = Switch::On, "let added accesses wait as late as they can"]);

impl Demote {
    /// All refinements, our own order.
    pub fn to(registers: impl Into<Target>) -> Demote {
        Demote {
            registers: registers.into(),
            by: Strategy::Relief,
            redundant: Switch::On,
            hoist: Switch::On,
            pairs: Switch::On,
            again: Again::Alone,
            waits: Switch::On,
        }
    }

    fn thrift(&self) -> Thrift {
        match self.waits {
            Switch::On => Thrift::Late,
            Switch::Off => Thrift::AtOnce,
        }
    }
}

impl Pass for Demote {
    const NAME: &'static str = "demote";
    const ABOUT: &'static str = "move values of finished kernels from registers to shared memory, so that more blocks reside (RegDem)";
    const FOOTPRINT: Footprint = Footprint::Registers;
    const TIMING: Timing = Timing::Mended;

    fn needs(&self) -> &'static [Need] {
        &[Need::BlockSize, Need::DynamicShared]
    }

    fn work(&self) -> Work<Self> {
        Work::MachineCode(rewrite)
    }
}

/// The refusal where colouring is given up.
const TOO_MUCH_WORK: &str = "finding registers for its values takes too long";

/// The stack pointer's register.
const STACK: u8 = 1;

/// Registers below which no step lies that the paper goes to.
const FEWEST: u32 = 32;

fn rewrite(pass: &Demote, site: &CubinSite, fuel: &mut Fuel) -> Outcome<Vec<u8>> {
    let kernel = Kernel::new(site)?;
    let general = [
        kernel.general(Unset::Kept)?,
        kernel.general(Unset::Dropped)?,
    ];
    let setting = &site.setting;
    let threads = Launch::new(kernel.elf, &kernel.sections, setting)?;
    let threads = threads.shape.threads();
    let steps: Vec<u32> = match pass.registers {
        Target::Registers(registers) => vec![registers],
        Target::Blocks(blocks) => {
            let registers = desired_registers(setting.gpu, threads, blocks);
            vec![registers.ok_or(Refusal::NoThrottle {
                what: "register count",
                blocks,
            })?]
        }
        Target::Auto => {
            let mut steps: Vec<u32> = setting.stairs(0)?.iter().map(|stair| stair.regs).collect();
            steps.retain(|&registers| (FEWEST..kernel.registers).contains(&registers));
            steps.sort_unstable_by(|a, b| b.cmp(a));
            steps
        }
    };
    let mut refused = Refusal::NoStair {
        pressure: kernel.registers,
    };
    for registers in steps {
        if registers >= kernel.registers {
            return Err(Refusal::WithinGoal {
                pressure: kernel.registers,
                goal: registers,
            });
        }
        for general in &general {
            match kernel.demote(general, (pass, site), registers, fuel) {
                // Fewer registers take no less.
                Err(why @ Refusal::InTheWay(TOO_MUCH_WORK)) => return Err(why),
                Err(why) => refused = why,
                done => return done,
            }
        }
    }
    Err(refused)
}

/// A kernel whose registers may get other names.
pub(crate) struct Kernel<'a> {
    pub(crate) elf: &'a Elf,
    pub(crate) sections: KernelSections,
    pub(crate) code: Code,
    /// Registers that it states.
    pub(crate) registers: u32,
    /// Instructions into which the linker or the driver writes something.
    relocated: BTreeSet<usize>,
}

impl<'a> Kernel<'a> {
    pub(crate) fn new(site: &CubinSite<'a>) -> Result<Kernel<'a>, Refusal> {
        let elf = site.cubin.elf();
        let sections = elf.kernel(site.kernel)?;
        if let Some(copy) = elf.intermediate_copy() {
            let what =
                "the cubin holds an intermediate copy of the program, which would stay the old one";
            return Err(Refusal::obstacle(what, copy));
        }
        let code = Code::new(elf, &sections, Calls::Followed)?;
        let registers = elf.registers(&sections)?.unwrap_or(0);
        let relocated = elf.relocations_of(sections.text)?;
        let relocated = relocated.iter().map(|r| (r.offset / 16) as usize).collect();
        Ok(Kernel {
            elf,
            sections,
            code,
            registers,
            relocated,
        })
    }

    pub(crate) fn general(&self, unset: Unset) -> Result<General<'_>, Refusal> {
        General::new(&self.code, unset)
            .map_err(|why| Refusal::obstacle("its registers cannot be renamed", why))
    }

    fn demote(
        &self,
        general: &General,
        (pass, site): (&Demote, &CubinSite),
        registers: u32,
        fuel: &mut Fuel,
    ) -> Outcome<Vec<u8>> {
        let setting = &site.setting;
        let launch = Launch::new(self.elf, &self.sections, setting)?;
        let threads = launch.shape.threads();
        let area = Area::new(self, setting, registers, threads)?;
        // Slots that were moved before have the index in the stack pointer's place already.
        let insts = self.code.instructions();
        let is_indexed = spill::index_register(insts, launch.shape) == Some(STACK);
        let goal = Goal {
            registers: registers.saturating_sub(RESERVED_REGISTERS),
            bytes: area.bytes,
            strategy: pass.by,
            refinements: Refinements {
                redundant: pass.redundant.into(),
                hoist: pass.hoist.into(),
                pairs: pass.pairs.into(),
                again: pass.again,
            },
            address: (!is_indexed && general.idle_stack().is_none()).then_some(Class(0)),
            most: fuel.left(),
        };
        let is_own = |inst: Inst| !self.relocated.contains(&inst.index());
        let storable = storable(&self.code)
            .map_err(|why| Refusal::obstacle("its control fields cannot be set", why))?;
        let known = Known {
            constant: &|inst| is_own(inst) && general.is_computable(inst),
            computable: &|inst, place| is_own(inst) && general.can_stand_before(inst, place),
            storable: &|inst: Inst| storable[inst.index()],
            fence: &|inst| general.is_fence(inst),
        };
        let done = match demote(general, &goal, known) {
            Ok(done) => done,
            Err(Stuck::Limited(_)) => return Ok(Rewritten::new(site.cubin.bytes().to_vec())),
            Err(stuck) => return Err(self.refusal(stuck, registers, &area)),
        };
        fuel.burn_up_to(done.values);
        let writer = Writer {
            kernel: self,
            general,
            done: &done,
            start: area.start,
            threads,
        };
        let (mut elf, mut code, added) = writer.write(site.kernel)?;
        settle(&mut code, &added, pass.thrift(), Some(&self.code))
            .map_err(|why| Refusal::obstacle("its control fields cannot be set", why))?;
        elf.set_instructions(site.kernel, code.instructions())?;
        let has_slots = done.bytes() > 0;
        if has_slots && !is_indexed {
            let scratch = spill::scratch(&code, registers.saturating_sub(RESERVED_REGISTERS));
            let scratch = scratch.ok_or(Refusal::InTheWay(
                "it has too few registers for the code at its entry",
            ))?;
            let index = writer.index();
            let sm = elf.target().sm;
            let mut edit = Edit::new();
            edit.insert_before(0, spill::index_code(sm, index, (launch.shape, scratch)));
            edit.apply(&mut elf, site.kernel)?;
        }
        if has_slots {
            let sections = elf.kernel(site.kernel)?;
            let end = u64::from(area.start + done.bytes() * threads);
            elf.set_shared_bytes(site.kernel, end.max(elf.shared_bytes(&sections)))?;
            if launch.is_promise {
                elf.bound_blocks(site.kernel, threads)?;
            }
        }
        let stated = self.state_registers(&mut elf, site.kernel)?;
        let note = format!(
            "{stated} instead of {} registers: {} demoted, {}, {}, {} computed again, {} bytes of shared memory per thread",
            self.registers,
            count(done.values, "value"),
            count(
                writer.count(|origin| matches!(origin, Origin::Load { .. })),
                "load"
            ),
            count(
                writer.count(|origin| matches!(origin, Origin::Store { .. })),
                "store"
            ),
            writer.count(|origin| matches!(origin, Origin::Copy { .. })),
            done.bytes(),
        );
        let cautions = match has_slots {
            true => cautions(site, &launch),
            false => Vec::new(),
        };
        let cost = writer.cost();
        let mut rewritten = Rewritten::new(elf.write()?).note(note).careful(cautions);
        rewritten.cost = cost;
        Ok(rewritten)
    }

    /// States as many registers as the code names.
    pub(crate) fn state_registers(&self, elf: &mut Elf, kernel: &str) -> Result<u32, Refusal> {
        let sections = elf.kernel(kernel)?;
        let mut last = 0;
        for inst in elf.instructions(&sections)? {
            let roles = roles::Roles::of(inst).unwrap_or_default();
            let general = roles
                .spans()
                .iter()
                .filter(|span| span.file == roles::File::Gpr);
            last = general.fold(last, |last, span| last.max(u32::from(span.registers().end)));
        }
        let stated = (last + RESERVED_REGISTERS).min(self.registers);
        let count =
            u8::try_from(stated).map_err(|_| Refusal::InTheWay("no such register count"))?;
        elf.set_registers(kernel, count)?;
        Ok(stated)
    }

    fn refusal(&self, stuck: Stuck, registers: u32, area: &Area) -> Refusal {
        match stuck {
            Stuck::TooFew(at) => Refusal::TooFewRegisters {
                registers,
                at: at.map(|at| self.code.inst_text(at)),
            },
            Stuck::NoRoom(bytes) => Refusal::NoRoom {
                wanted: bytes,
                free: area.bytes,
            },
            Stuck::Limited(pressure) => Refusal::NothingHelps {
                means: "demoted".to_owned(),
                pressure,
            },
            Stuck::Work => Refusal::InTheWay(TOO_MUCH_WORK),
            Stuck::Contradiction => {
                Refusal::InTheWay("operands ask for registers that contradict each other")
            }
        }
    }
}

/// Shared memory for slots.
struct Area {
    /// Bytes from the start of the block's shared memory.
    start: u32,
    /// Bytes per thread.
    bytes: u32,
}

impl Area {
    fn new(
        kernel: &Kernel<'_>,
        setting: &Setting,
        registers: u32,
        threads: u32,
    ) -> Result<Area, Refusal> {
        const ALIGN: u32 = 16;
        let used = used_bytes(kernel.elf, &kernel.sections, setting)?;
        let start = used.next_multiple_of(ALIGN);
        let own = used - setting.gpu.arch.first_shared_address().min(used);
        let need = Resources::new(registers, threads).static_smem(own);
        let blocks = occupancy(setting.gpu, &need).map_or(1, |found| found.blocks);
        let room = limit(setting, blocks, used).saturating_sub(start);
        Ok(Area {
            start,
            bytes: room / threads.max(1),
        })
    }
}

/// Writes the new code.
pub(crate) struct Writer<'a> {
    pub(crate) kernel: &'a Kernel<'a>,
    pub(crate) general: &'a General<'a>,
    pub(crate) done: &'a Demoted,
    pub(crate) start: u32,
    pub(crate) threads: u32,
}

/// The new registers of an instruction's operands, by role and field.
struct Names(BTreeMap<(roles::Role, u8), u16>);

impl Names {
    fn of(&self, span: roles::Span) -> u16 {
        let name = self.0.get(&(span.role, span.bit));
        match span.file {
            roles::File::Gpr => *name.unwrap_or(&span.first),
            _ => span.first,
        }
    }
}

/// The cubin, its code, and which instructions were added.
type Written = (Elf, Code, BTreeSet<Inst>);

impl Writer<'_> {
    pub(crate) fn write(&self, name: &str) -> Result<Written, Refusal> {
        let draft = &self.done.draft;
        let insts = self.kernel.code.instructions();
        let mut edit = Edit::new();
        let mut loads = Vec::new();
        let mut last = 0;
        for inst in draft.insts() {
            match draft.origin(inst) {
                Origin::Own(own) => {
                    last = own.index();
                    if !loads.is_empty() {
                        edit.insert_before(last, std::mem::take(&mut loads));
                    }
                    self.rename(&mut edit, inst, own)?;
                }
                Origin::Load { .. } => loads.push(self.load(inst)?),
                Origin::Store { .. } => edit.insert_after(last, [self.store(inst)?]),
                Origin::Bases => {}
                Origin::Copy { of, .. } => loads.push(self.again(inst, of)?),
            }
        }
        let idle = self.general.idle_stack().filter(|_| self.done.bytes() > 0);
        if let Some(load) = idle {
            edit.replace(load, spill::nothing_instead_of(insts[load]));
        }
        let mut elf = self.kernel.elf.clone();
        let moves = edit.apply(&mut elf, name)?;
        let sections = elf.kernel(name)?;
        let code = Code::new(&elf, &sections, Calls::Followed)?;
        let kept = (0..insts.len()).filter_map(|at| moves.instruction(16 * at as u64));
        let kept: BTreeSet<usize> = kept.map(|offset| (offset / 16) as usize).collect();
        let added = (0..code.inst_count())
            .filter(|at| !kept.contains(at))
            .filter(|&at| code.instructions()[at].operation() != Operation::NOP)
            .map(|at| Inst(at as u32));
        let added = added.collect();
        Ok((elf, code, added))
    }

    fn rename(&self, edit: &mut Edit, inst: Inst, own: Inst) -> Result<(), Refusal> {
        let word = self.kernel.code.instructions()[own.index()];
        let names = self.names(inst, own)?;
        edit.rename(own.index(), word, |span| names.of(span))
            .map_err(|why| self.cannot_be_renamed(own, why))
    }

    /// One of the kernel's own instructions under the registers that it has in the draft, where it is `inst`.
    pub(crate) fn renamed(&self, inst: Inst, own: Inst) -> Result<Instruction, Refusal> {
        let names = self.names(inst, own)?;
        let word = self.kernel.code.instructions()[own.index()];
        word.renamed(|span| names.of(span))
            .map_err(|why| self.cannot_be_renamed(own, why))
    }

    fn cannot_be_renamed(&self, own: Inst, why: RenameError) -> Refusal {
        Refusal::obstacle(
            "an instruction cannot have other registers",
            format!("{}: {why}", self.kernel.code.inst_text(own)),
        )
    }

    /// The registers of an instruction of the draft that has the operands of `own`.
    fn names(&self, inst: Inst, own: Inst) -> Result<Names, Refusal> {
        let draft = &self.done.draft;
        let mut names = BTreeMap::new();
        for operand in self.general.operands(own) {
            let defs = match operand.span.role {
                // R1 is written by nothing that moves.
                roles::Role::Def if operand.span.first == 1 => continue,
                _ => draft.defs(inst),
            };
            let values = operand.values(draft.uses(inst), defs);
            if let Some(&first) = values.first() {
                names.insert((operand.span.role, operand.span.bit), self.register(first)?);
            }
        }
        Ok(Names(names))
    }

    /// An instruction of the kernel once more, under the registers that it has in the draft.
    fn again(&self, inst: Inst, of: Inst) -> Result<Instruction, Refusal> {
        let word = self.kernel.code.instructions()[of.index()];
        let word = word.with_control(fresh()).unwrap_or(word);
        let names = self.names(inst, of)?;
        word.renamed(|span| names.of(span))
            .map_err(|why| Refusal::obstacle("a value cannot be computed again", why))
    }

    fn register(&self, value: Value) -> Result<u16, Refusal> {
        let register = self.done.register[value.index()];
        register
            .and_then(|register| u16::try_from(register).ok())
            .ok_or(Refusal::InTheWay("a value has no register"))
    }

    /// The register with the thread's index.
    pub(crate) fn index(&self) -> u8 {
        let draft = &self.done.draft;
        let base = draft
            .values()
            .find(|&value| matches!(draft.role(value), Role::Base(_)));
        let register = base.and_then(|base| self.done.register[base.index()]);
        register.map_or(STACK, |register| register as u8)
    }

    fn load(&self, inst: Inst) -> Result<Instruction, Refusal> {
        let draft = &self.done.draft;
        let (data, slot) = (self.register(draft.defs(inst)[0])?, draft.uses(inst)[0]);
        Ok(self.access(false, data, (slot, draft.defs(inst).len())))
    }

    fn store(&self, inst: Inst) -> Result<Instruction, Refusal> {
        let draft = &self.done.draft;
        let data = self.register(draft.uses(inst)[0])?;
        let slots = draft.defs(inst);
        Ok(self.access(true, data, (slots[0], slots.len())))
    }

    fn access(&self, is_store: bool, data: u16, (slot, words): (Value, usize)) -> Instruction {
        let pairs = 8 * self.threads * self.done.sizes[0];
        let slot = match self.done.cells.get(&slot) {
            Some(&Cell::Half(number, is_second)) => Slot {
                offset: self.start + 8 * self.threads * number + 4 * u32::from(is_second),
                stride: 8,
            },
            Some(&Cell::Word(number)) => Slot {
                offset: self.start + pairs + 4 * self.threads * number,
                stride: 4,
            },
            None => Slot {
                offset: self.start,
                stride: 4,
            },
        };
        let access = Access {
            is_store,
            data: data as u8,
            index: self.index(),
            bytes: 4 * words as u32,
            slot,
        };
        access.instruction(self.kernel.elf.target().sm)
    }

    fn count(&self, is_meant: impl Fn(Origin) -> bool) -> usize {
        let draft = &self.done.draft;
        let insts = draft.insts().filter(|&inst| is_meant(draft.origin(inst)));
        insts.count()
    }

    /// Loop-weighted instructions that were added.
    fn cost(&self) -> f64 {
        let cfg = warpwright_flow::Cfg::new(&self.done.draft);
        let loops = warpwright_flow::Loops::new(&cfg);
        let draft = &self.done.draft;
        let added = draft.insts().filter(|&inst| {
            matches!(
                draft.origin(inst),
                Origin::Load { .. } | Origin::Store { .. } | Origin::Copy { .. }
            )
        });
        added.map(|inst| loops.weight(cfg.block_of(inst))).sum()
    }
}

/// `compact`: fewer registers for a finished kernel whose values need no more.
///
/// Goal: registers that nobody uses at once share a number, until the count falls. Paper: RegDem, section 3.3,
/// which shifts and swaps; here the registers are coloured anew under the constraints of tuples. Requires and
/// preserves what [`Demote`] does; needs nothing of launches.
#[derive(Debug, Clone, Copy)]
pub struct Compact {
    /// Registers per thread; as few as can be had without it.
    pub registers: Option<u32>,
}

crate::options!(Compact: []; [registers: Option<u32> = None, "registers per thread [default: as few as can be had]"]);

impl Pass for Compact {
    const NAME: &'static str = "compact";
    const ABOUT: &'static str =
        "give the registers of finished kernels other numbers, so that fewer are stated (RegDem)";
    const FOOTPRINT: Footprint = Footprint::Registers;
    const TIMING: Timing = Timing::Mended;

    fn work(&self) -> Work<Self> {
        Work::MachineCode(renumber)
    }
}

pub(crate) fn renumber(pass: &Compact, site: &CubinSite, fuel: &mut Fuel) -> Outcome<Vec<u8>> {
    let kernel = Kernel::new(site)?;
    let general = kernel.general(Unset::Kept)?;
    let fewest = pressure(&general);
    let own = kernel.registers.saturating_sub(RESERVED_REGISTERS);
    let goals = match pass.registers {
        Some(registers) => {
            let goal = registers.saturating_sub(RESERVED_REGISTERS);
            goal..own.min(goal + 1)
        }
        None => fewest..own,
    };
    let found = goals
        .clone()
        .find_map(|goal| compact(Draft::new(&general), goal).ok());
    let Some(done) = found else {
        return Err(match pass.registers {
            Some(registers) if registers < kernel.registers => Refusal::TooFewRegisters {
                registers,
                at: None,
            },
            _ => Refusal::NothingToDo("registers to spare"),
        });
    };
    if !fuel.burn() {
        return Ok(Rewritten::new(site.cubin.bytes().to_vec()));
    }
    let writer = Writer {
        kernel: &kernel,
        general: &general,
        done: &done,
        start: 0,
        threads: 0,
    };
    let (mut elf, mut code, added) = writer.write(site.kernel)?;
    settle(&mut code, &added, Thrift::Late, Some(&kernel.code))
        .map_err(|why| Refusal::obstacle("its control fields cannot be set", why))?;
    elf.set_instructions(site.kernel, code.instructions())?;
    let stated = kernel.state_registers(&mut elf, site.kernel)?;
    let note = format!("{stated} instead of {} registers", kernel.registers);
    Ok(Rewritten::new(elf.write()?).note(note))
}
