//! A launch on terms: memory, parameters, blocks one after the other.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::FxHashMap;
use warpwright_launch::{Buffer as Described, Launch};
use warpwright_target::{MOST_SHARED_PER_BLOCK, SHARED_PER_BLOCK};

use crate::cfg::{Flow, reached, strays};
use crate::fault::{EmuError, Place};
use crate::lanes::{Mask, WARP};
use crate::machine::{Extents, Grid, kernel_params};
use crate::memory::image::GlobalVariable;
use crate::memory::{SLOT_BITS, slot_address};
use crate::program::{Access, AccessSpace, Layout, Op, Program, Src};
use crate::symbolic::alike::Tracer;
use crate::symbolic::form::{Form, forms, opcode};
use crate::symbolic::memory::{Buffer, By, Clash, Conflict, Content, Log, Moment, Word};
use crate::symbolic::term::{Domain, Id, Kind, Terms, Unset, Val};
use crate::symbolic::warp::{Ordered, Wait, Warp};

/// Options of a run on terms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Terms that may be made.
    pub terms: usize,
    /// Warp instructions that all blocks together may execute.
    pub budget: u64,
    /// Blocks run from the last one to the first.
    pub reversed: bool,
    /// The blocks that run, in order; all of them where none are named.
    pub only: Option<Vec<u32>>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            terms: 60_000_000,
            budget: 1 << 30,
            reversed: false,
            only: None,
        }
    }
}

/// What a kernel does wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FaultClass {
    /// Outside of every allocation.
    OutOfBounds,
    /// At no multiple of its size.
    Misaligned,
    /// A store to constant memory.
    ReadOnly,
    /// Two threads at one place, with nothing that orders them.
    Race(Clash),
    /// Threads of a block that do not meet at a barrier.
    BarrierDivergence,
    /// Lanes that others wait for and that do not come.
    WarpDivergence,
    /// `trap`
    Trap,
    /// `assert`
    Assertion,
}

/// A fault with its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// What.
    pub class: FaultClass,
    /// The instruction.
    pub place: Place,
    /// `%ctaid`
    pub block: [u32; 3],
    /// `%tid`
    pub thread: [u32; 3],
    /// The other thread of a race: its block, and its place there.
    pub other: Option<([u32; 3], [u32; 3])>,
    /// The memory, and the byte in it.
    pub memory: Option<(String, i64)>,
}

/// What this machine does not do.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// An address that is made of data; the term.
    Address(Id),
    /// A loop whose trip count is made of data; the condition.
    Loop(Id),
    /// A barrier, a shuffle or the like on one side of a branch on data; the condition.
    Collective(Id),
    /// An access that leaves its allocation where data let it.
    ConditionalAccess,
    /// Two threads that meet at one place where data let both.
    ConditionalRace,
    /// A member mask, an index into a table or a size that is made of data.
    Operand(Id),
    /// An atomic operation on data whose order would show.
    Atomic,
    /// A call of a function that was not inlined.
    Call,
    /// A barrier for some of the threads.
    PartialBarrier,
    /// A lane that is elected, or which ones run together, where it is not stated.
    Together,
    /// A clock, or the number of an SM or of a warp.
    Clock,
    /// A loop that waits for what another block does.
    Waiting,
    /// This instruction.
    Instruction,
    /// More than [`Options`] permit.
    TooLarge,
}

/// Why a run ends early.
#[derive(Debug)]
pub enum Stop {
    /// The kernel is at fault.
    Fault(Box<Fault>),
    /// Not done here.
    Refused(Refusal, Box<Place>),
    /// The launch does not fit the kernel.
    Launch(EmuError),
}

/// What a result depends on beside the inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Note {
    /// Lanes of a warp that work in step, by `volatile` alone.
    Lockstep,
    /// Sums of floating point by atomics: their order is not stated.
    AtomicSum,
    /// An atomic operation's old value, or a fence of the device: the order of blocks could show.
    BlockOrder,
    /// An atomic operation's old value, or an exchange, among threads of a block that nothing orders.
    ThreadOrder,
    /// Threads of a block do not all come to one barrier: those that pass it by are not waited for.
    PassedBarrier,
    /// Threads of a block end ahead of a barrier at which others wait.
    Exited,
    /// `printf`
    Printed,
    /// Which lane has which element of a fragment, which is not stated.
    Fragments,
    /// Which block came first shows: an atomic operation tells, or one reads behind a fence what another one writes.
    OrderShown,
}

/// What a finished launch says.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Accesses that nothing orders, the first of each instruction.
    pub races: Vec<Fault>,
    /// See [`Note`].
    pub notes: BTreeSet<Note>,
    /// Warp instructions.
    pub instructions: u64,
    /// Branches on data.
    pub forks: u64,
    /// The first place where threads may meet, if data let them.
    possible: Option<Box<Place>>,
}

/// What a run is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Aim {
    /// Terms, and who touches what when.
    Terms,
    /// A record of what blocks do.
    Record,
    /// Faults of addresses, in memory that may be larger than this machine's.
    Addresses,
}

/// Slots from one memory to the next where they may be large, and addresses far out.
const APART: usize = 64;

/// Bytes by which buffers lie elsewhere in their slots where blocks run the other way round.
const MOVED: u64 = (1 << (SLOT_BITS - 2)) - 256;

/// Warp instructions in which nothing is stored and no term is new: a loop of more waits for others.
const IDLE: u64 = 1 << 20;

/// Most races told of.
const MAX_RACES: usize = 8;

/// Everything that the threads of a launch share.
pub(crate) struct Machine<'a> {
    pub program: &'a Program,
    pub terms: &'a mut Terms,
    pub forms: Vec<Vec<Form>>,
    pub volatile: Vec<bool>,
    /// Branches that are said to go one way in each warp, and loads from one address.
    pub uniform: Vec<bool>,
    /// Loads ahead of a compare-and-swap at the same address.
    guesses: Vec<bool>,
    /// Loads of what nothing may write.
    read_only: Vec<bool>,
    /// Copies under way, by word of shared memory to which and of global memory from which they go.
    pub arriving: FxHashMap<u64, u32>,
    pub leaving: FxHashMap<(usize, u64), u32>,
    flow: Option<Flow>,
    /// Steps behind each barrier at which threads were apart.
    behind: FxHashMap<u32, Vec<bool>>,
    strays: FxHashMap<u32, Vec<bool>>,
    pub memory: &'a mut Vec<Buffer>,
    logs: Vec<Log>,
    /// Memory of each slot, with its address.
    slots: Vec<(usize, u64)>,
    /// Bytes on either side of a slot's address that belong to it.
    reach: u64,
    pub params: Vec<u8>,
    pub options: &'a Options,
    pub report: Report,
    pub shared: Vec<Word>,
    pub shared_layout: Layout,
    shared_log: Log,
    pub grid: Grid,
    pub index: [u32; 3],
    number: u32,
    barriers: u32,
    /// What each register holds before it is written.
    pub unset: Vec<Id>,
    /// Values that are not defined, each another one.
    undefined: u32,
    /// Warp instructions since anything was stored, and the terms then.
    idle: (u64, usize),
    /// A buffer that is written although its accesses are not logged.
    unlogged: Option<usize>,
    /// The record of a run without terms.
    pub tracer: Option<Box<Tracer>>,
}

impl Program {
    /// Runs a launch on terms. `memory` holds what the launches of this side work on, `places` says which of it each of
    /// [`Launch::buffers`] is; variables of the module that the launch does not set are added to it.
    ///
    /// # Errors
    /// [`Stop`]: a fault, something that is not done, a launch that does not fit.
    pub fn run_on_terms(
        &self,
        launch: &Launch,
        terms: &mut Terms,
        memory: &mut Vec<Buffer>,
        places: &[usize],
        options: &Options,
    ) -> Result<Report, Stop> {
        loop {
            let before = memory.clone();
            let mut machine = Machine::new(
                self,
                launch,
                (&mut *terms, &mut *memory),
                places,
                options,
                Aim::Terms,
            )?;
            let result = machine.run();
            let (report, unlogged) = (machine.report, machine.unlogged);
            match unlogged {
                // Accesses before the first write count, too: once more, with a log.
                Some(at) => {
                    *memory = before;
                    if let Some(buffer) = memory.get_mut(at) {
                        buffer.logged = true;
                    }
                }
                None => return result.and_then(|()| decided(report)),
            }
        }
    }
}

impl Program {
    /// Constants that hold what their declarations say, where nobody sets them, each with its name in the module.
    pub fn given_constants(&self) -> Vec<(String, Buffer)> {
        let all = self.image.globals.iter().enumerate();
        let given = all.filter(|(_, global)| global.constant && global.exported && global.given);
        let buffer = |(at, global): (usize, &GlobalVariable)| {
            let place = (VARIABLES + at as u32, 32);
            let buffer = Buffer::given(&variable_name(&global.name), place, &global.bytes);
            (global.name.clone(), buffer)
        };
        given.map(buffer).collect()
    }

    /// Names of the variables of the module.
    pub fn variables(&self) -> impl Iterator<Item = &str> {
        self.image.globals.iter().map(|global| &*global.name)
    }
}

/// The name of a variable's memory.
fn variable_name(name: &str) -> String {
    format!("variable `{name}`")
}

/// Races that data may or may not lead to leave it open what comes out, unless there are others.
fn decided(mut report: Report) -> Result<Report, Stop> {
    match report.possible.take() {
        Some(place) if report.races.is_empty() => {
            Err(Stop::Refused(Refusal::ConditionalRace, place))
        }
        _ => Ok(report),
    }
}

impl<'a> Machine<'a> {
    pub fn new(
        program: &'a Program,
        launch: &Launch,
        (terms, memory): (&'a mut Terms, &'a mut Vec<Buffer>),
        places: &[usize],
        options: &'a Options,
        aim: Aim,
    ) -> Result<Self, Stop> {
        let stride = if aim == Aim::Addresses { APART } else { 1 };
        let extents = Extents {
            grid: launch.grid,
            block: launch.block,
            cluster: launch.cluster,
            dynamic_smem: launch.dynamic_smem,
        };
        program.fits(&extents).map_err(Stop::Launch)?;
        shared_fits(program, launch).map_err(Stop::Launch)?;
        let turn = (stride, options.reversed);
        let slots = slots(program, launch, (&mut *terms, &mut *memory), places, turn);
        let bases: Vec<u64> = bases(program, launch, &slots);
        for (buffer, &at) in launch.buffers().zip(places) {
            if let Some(table) = buffer.table {
                let bytes = table.bytes(bases.get(table.of).copied().unwrap_or(0), buffer.len);
                if let Some(buffer) = memory.get_mut(at) {
                    buffer.fill(&bytes);
                }
            }
        }
        let params = kernel_params(program, launch, &bases).map_err(Stop::Launch)?;
        let mut all = forms(program, terms);
        let kernel = program.kernel;
        let forms = match kernel < all.len() {
            true => all.swap_remove(kernel),
            false => Vec::new(),
        };
        let forms: Vec<Vec<Form>> = forms;
        let function = &program.functions[kernel];
        let has = |word: &'static str| {
            let steps = function.code.iter();
            steps.map(move |step| {
                let site = program.sites.get(step.site as usize);
                site.is_some_and(|site| {
                    let opcode = opcode(&site.place.instruction);
                    opcode.split('.').any(|other| other == word)
                })
            })
        };
        let unset = (0..function.regs as u32).map(|reg| terms.unset(Unset::Register, reg));
        let unset = unset.collect();
        let layout = program.image.shared_layout(launch.dynamic_smem.into());
        let finest = finest(program);
        let logs = memory.iter().map(|buffer| {
            let granule = finest.min(u64::from(buffer.bits / 8)).clamp(1, 4);
            match buffer.logged && aim == Aim::Terms {
                false => Log::default(),
                true => Log::new(buffer.len, granule),
            }
        });
        let mut report = Report::default();
        if program.ordered {
            report.notes.insert(Note::BlockOrder);
        }
        Ok(Machine {
            volatile: has("volatile").collect(),
            uniform: has("uni").zip(has("ldu")).map(|(a, b)| a || b).collect(),
            guesses: guesses(program),
            read_only: has("nc").collect(),
            arriving: FxHashMap::default(),
            leaving: FxHashMap::default(),
            logs: logs.collect(),
            program,
            terms,
            forms,
            flow: None,
            behind: FxHashMap::default(),
            strays: FxHashMap::default(),
            memory,
            slots,
            reach: (stride as u64) << (SLOT_BITS - 1),
            params,
            options,
            report,
            shared: vec![Word::Unset; layout.len.div_ceil(4) as usize],
            shared_log: Log::new(layout.len, finest.clamp(1, 4)),
            shared_layout: layout,
            grid: Grid {
                grid: launch.grid,
                block: launch.block,
                dynamic_smem: launch.dynamic_smem,
            },
            index: [0; 3],
            number: 0,
            barriers: 0,
            unset,
            undefined: 0,
            idle: (0, 0),
            unlogged: None,
            tracer: None,
        })
    }

    /// Blocks of the launch.
    pub fn blocks(&self) -> u64 {
        self.grid.grid.iter().map(|&n| u64::from(n)).product()
    }

    fn run(&mut self) -> Result<(), Stop> {
        let options = self.options;
        let count = match &options.only {
            Some(only) => only.len() as u64,
            None => self.blocks(),
        };
        for at in 0..count {
            let at = match options.reversed {
                true => count - 1 - at,
                false => at,
            };
            let only = options.only.as_ref();
            self.run_block(only.map_or(at, |only| u64::from(only[at as usize])))?;
        }
        Ok(())
    }

    /// The number of the block that runs.
    pub fn block_number(&self) -> u32 {
        self.number
    }

    /// Runs the block of a number.
    pub fn run_block(&mut self, number: u64) -> Result<(), Stop> {
        self.number = number as u32;
        self.index = Grid::unravel(self.grid.grid, number);
        self.block()
    }

    fn block(&mut self) -> Result<(), Stop> {
        self.shared.fill(Word::Unset);
        self.shared_log.clear();
        self.barriers = 0;
        let threads = self.grid.threads() as usize;
        let mut warps: Vec<Warp> = (0..threads.div_ceil(WARP))
            .map(|index| {
                let lanes = match threads - index * WARP {
                    n if n >= WARP => Mask::MAX,
                    n => (1 << n) - 1,
                };
                Warp::new(self, index, lanes)
            })
            .collect();
        loop {
            for warp in &mut warps {
                warp.run(self)?;
            }
            if warps.iter().all(|warp| warp.live() == 0) {
                return Ok(());
            }
            self.release(&mut warps)?;
        }
    }

    /// All threads that are left wait at a barrier: they go on.
    fn release(&mut self, warps: &mut [Warp]) -> Result<(), Stop> {
        for warp in warps.iter() {
            let Some(strand) = warp.strands.first() else {
                continue;
            };
            let lane = strand.mask.trailing_zeros() as usize;
            let waits = |wait: &Wait| *wait == Wait::Barrier;
            if !warp.strands.iter().all(|s| waits(&s.wait)) {
                return Err(self.fault(FaultClass::WarpDivergence, warp, (strand.pc, lane), None));
            }
            if warp.strands.len() > 1 {
                let class = FaultClass::BarrierDivergence;
                return Err(self.fault(class, warp, (strand.pc, lane), None));
            }
        }
        let live: u64 = warps.iter().map(|w| u64::from(w.live().count_ones())).sum();
        if live < self.grid.threads() as u64 {
            self.report.notes.insert(Note::Exited);
        }
        self.passed_by(warps);
        self.reduce_at_barrier(warps)?;
        self.traced(u32::MAX, self.barriers);
        self.barriers += 1;
        for warp in warps {
            warp.met_at_barrier();
            for strand in &mut warp.strands {
                strand.wait = Wait::Ready;
                strand.pc += 1;
            }
        }
        Ok(())
    }

    /// Notes it if a thread has passed the barrier by at which the others wait, or waits at another one.
    fn passed_by(&mut self, warps: &[Warp]) {
        let mut places = warps.iter().filter_map(|warp| warp.strands.first());
        let Some(at) = places.next().map(|strand| strand.pc) else {
            return;
        };
        let is_another = places.any(|strand| strand.pc != at);
        let behind = self.behind(at);
        if is_another || warps.iter().any(|warp| warp.passed_by(behind)) {
            self.report.notes.insert(Note::PassedBarrier);
        }
    }

    /// The steps that may come behind a barrier.
    pub fn behind(&mut self, at: u32) -> &[bool] {
        let code = &self.program.functions[self.program.kernel].code;
        let known = self.behind.entry(at);
        known.or_insert_with(|| reached(code, at + 1))
    }

    /// The steps at which lanes have passed a barrier by.
    pub fn strays(&mut self, at: u32) -> &[bool] {
        let function = &self.program.functions[self.program.kernel];
        let known = self.strays.entry(at);
        known.or_insert_with(|| strays(function, at))
    }

    // ---- control flow

    pub fn flow(&mut self) -> &Flow {
        let program = self.program;
        self.flow
            .get_or_insert_with(|| Flow::of(&program.functions[program.kernel]))
    }

    /// Counts an instruction.
    pub fn spend(&mut self, pc: u32) -> Result<(), Stop> {
        self.report.instructions += 1;
        let spent = self.report.instructions > self.options.budget;
        if spent || self.terms.len() > self.options.terms {
            return Err(self.refuse(Refusal::TooLarge, pc));
        }
        let (since, terms) = self.idle;
        self.idle = match terms == self.terms.len() {
            true => (since + 1, terms),
            false => (0, self.terms.len()),
        };
        if since > IDLE && self.tracer.is_none() {
            return Err(self.refuse(Refusal::Waiting, pc));
        }
        Ok(())
    }

    /// Another warp goes on.
    pub fn awake(&mut self) {
        self.idle.0 = 0;
    }

    /// Notes in a record that something happens at a step.
    pub fn traced(&mut self, pc: u32, what: u32) {
        if let Some(tracer) = &mut self.tracer {
            tracer.at(pc, what);
        }
    }

    // ---- what goes wrong

    pub fn place(&self, pc: u32) -> Place {
        let code = &self.program.functions[self.program.kernel].code;
        let site = code.get(pc as usize).map(|step| step.site);
        let site = site.and_then(|site| self.program.sites.get(site as usize));
        site.map(|site| site.place.clone()).unwrap_or_default()
    }

    pub fn refuse(&self, refusal: Refusal, pc: u32) -> Stop {
        Stop::Refused(refusal, Box::new(self.place(pc)))
    }

    /// A value that is not defined.
    pub fn undefined(&mut self) -> Val {
        self.undefined += 1;
        Val::Term(self.terms.unset(Unset::Lane, self.undefined))
    }

    pub fn fault(
        &self,
        class: FaultClass,
        warp: &Warp,
        (pc, lane): (u32, usize),
        memory: Option<(String, i64)>,
    ) -> Stop {
        Stop::Fault(Box::new(Fault {
            class,
            place: self.place(pc),
            block: self.index,
            thread: self.grid.thread(warp.index, lane),
            other: None,
            memory,
        }))
    }

    // ---- memory

    /// A write to a buffer; the run begins anew where its accesses were not logged.
    pub fn written(&mut self, index: usize, pc: u32) -> Result<(), Stop> {
        if self.tracer.is_some() || self.memory.get(index).is_some_and(|buffer| buffer.logged) {
            return Ok(());
        }
        self.unlogged = Some(index);
        Err(self.refuse(Refusal::TooLarge, pc))
    }

    /// The memory and the offset of a global address, and whether all bytes are in it.
    pub fn find(&self, address: u64, bytes: u64) -> Option<(usize, u64, bool)> {
        let at = self
            .slots
            .iter()
            .position(|&(_, base)| address.abs_diff(base) < self.reach)?;
        let (index, base) = self.slots[at];
        let offset = address.wrapping_sub(base);
        let len = self.memory.get(index)?.len;
        let inside = offset < len && bytes <= len - offset;
        Some((index, offset, inside))
    }

    /// How a load reads: as the first guess of a compare-and-swap, for which it counts only if it is still there then.
    pub fn read_by(&self, pc: u32) -> By {
        match self.guesses.get(pc as usize) {
            Some(true) => By::Guess,
            _ => By::Plain,
        }
    }

    fn now(&mut self, warp: &Warp, lane: usize, by: By) -> Moment {
        let under = warp.condition(self.terms, lane);
        Moment {
            block: self.number + 1,
            warp: warp.index as u16,
            lane: lane as u8,
            by,
            barriers: self.barriers,
            stamp: warp.stamp,
            under,
        }
    }

    /// Notes an access to global memory or, without a number, to shared memory. `value`: what is written.
    #[inline]
    pub fn note(
        &mut self,
        warp: &Warp,
        (pc, lane): (u32, usize),
        (of, offset, size): (Option<usize>, u64, u32),
        write: Option<Option<Val>>,
        by: By,
    ) {
        if !self.arriving.is_empty() || !self.leaving.is_empty() {
            self.under_way(warp, (pc, lane), (of, offset, size), write.is_some());
        }
        if write.is_some() && !by.is_atomic() {
            self.idle.0 = 0;
        }
        if of.is_none_or(|at| self.memory[at].logged) {
            self.logged(warp, (pc, lane), (of, offset, size), write, by);
        }
    }

    fn logged(
        &mut self,
        warp: &Warp,
        (pc, lane): (u32, usize),
        (of, offset, size): (Option<usize>, u64, u32),
        write: Option<Option<Val>>,
        by: By,
    ) {
        let by = match (by, self.read_only.get(pc as usize)) {
            (By::Plain, Some(true)) => By::ReadOnly,
            _ => by,
        };
        let now = self.now(warp, lane, by);
        let terms = &*self.terms;
        let in_step = Cell::new(false);
        let is_ordered = |earlier: &Moment| {
            let same_warp = earlier.warp == now.warp;
            let meet = Meeting::of(terms, earlier.under, now.under);
            let is_stated = meet == Meeting::Never
                || earlier.block == now.block
                    && (same_warp && earlier.lane == now.lane || earlier.barriers < now.barriers);
            let order = match is_stated {
                true => Some(Ordered::Stated),
                false if earlier.block != now.block || !same_warp => None,
                false => warp.order(earlier.lane, lane, earlier.stamp),
            };
            in_step.set(in_step.get() || order == Some(Ordered::InStep));
            order.is_some()
        };
        let log = match of {
            Some(at) => self.logs.get_mut(at),
            None => Some(&mut self.shared_log),
        };
        let Some(log) = log else { return };
        if by.is_atomic() && log.is_order_shown(offset, size, now, is_ordered) {
            self.report.notes.insert(Note::ThreadOrder);
        }
        if by.is_atomic() && of.is_some() && log.is_block_order_shown(offset, size, now) {
            self.report.notes.insert(Note::OrderShown);
        }
        let found = match write {
            None => log.read(offset, size, now, is_ordered),
            Some(value) => log.write(offset, size, now, value, is_ordered),
        };
        if in_step.get() {
            self.report.notes.insert(Note::Lockstep);
        }
        if let Some(conflict) = found {
            if Meeting::of(self.terms, conflict.first.under, now.under) == Meeting::Perhaps {
                let place = self.place(pc);
                self.report.possible.get_or_insert(Box::new(place));
                return;
            }
            self.race(warp, (pc, lane), (of, offset), conflict);
        }
    }

    /// Is a place touched to which or from which something is being copied?
    fn under_way(
        &mut self,
        warp: &Warp,
        at: (u32, usize),
        (of, offset, size): (Option<usize>, u64, u32),
        write: bool,
    ) {
        let mut words = offset / 4..(offset + u64::from(size)).div_ceil(4);
        let is_met = match of {
            None if self.arriving.is_empty() => false,
            None => words.any(|word| self.arriving.contains_key(&word)),
            Some(_) if !write || self.leaving.is_empty() => false,
            Some(of) => words.any(|word| self.leaving.contains_key(&(of, word))),
        };
        if is_met {
            let what = match (of, write) {
                (Some(_), _) => Clash::WriteAfterRead,
                (None, true) => Clash::WriteAfterWrite,
                (None, false) => Clash::ReadAfterWrite,
            };
            let first = self.now(warp, at.1, By::Plain);
            self.race(warp, at, (of, offset), Conflict { first, what });
        }
    }

    #[cold]
    fn race(
        &mut self,
        warp: &Warp,
        at: (u32, usize),
        (of, offset): (Option<usize>, u64),
        conflict: Conflict,
    ) {
        let class = FaultClass::Race(conflict.what);
        let name = match of {
            Some(index) => self.memory.get(index).map(|m| m.name.clone()),
            None => self.shared_layout.nearest(offset).map(|r| r.name.clone()),
        };
        let start = match of {
            Some(_) => 0,
            None => self.shared_layout.nearest(offset).map_or(0, |r| r.start),
        };
        let memory = name.map(|name| (name, offset.wrapping_sub(start) as i64));
        let Stop::Fault(mut fault) = self.fault(class, warp, at, memory) else {
            return;
        };
        let first = conflict.first;
        let block = Grid::unravel(self.grid.grid, u64::from(first.block - 1));
        let thread = self.grid.thread(first.warp.into(), first.lane.into());
        fault.other = Some((block, thread));
        // Blocks that a fence may order are run once more the other way round instead.
        let apart = first.block != self.number + 1;
        if apart && self.program.ordered && self.program.fenced {
            self.report.notes.insert(Note::OrderShown);
            return;
        }
        let known = self
            .report
            .races
            .iter()
            .any(|race| race.place == fault.place && race.class == fault.class);
        if !known && self.report.races.len() < MAX_RACES {
            self.report.races.push(*fault);
        }
    }
}

/// Loads from where a compare-and-swap further down looks, too.
fn guesses(program: &Program) -> Vec<bool> {
    let code = &program.functions[program.kernel].code;
    let origins = origins(program);
    let place = |access: &Access| {
        let base = match access.base {
            Src::Reg(reg) => Src::Reg(origins.get(&reg).copied().unwrap_or(reg)),
            known => known,
        };
        (base, access.offset, access.elem)
    };
    let is_swapped = |pc: usize, access: &Access| {
        code[pc..].iter().any(|step| match &step.op {
            Op::Atomic(atomic) => atomic.second.is_some() && place(&atomic.access) == place(access),
            _ => false,
        })
    };
    let steps = code.iter().enumerate();
    steps
        .map(|(pc, step)| match &step.op {
            Op::Load(load) => load.access.count == 1 && is_swapped(pc, &load.access),
            _ => false,
        })
        .collect()
}

/// Registers that hold an address of another one in another space: that one.
fn origins(program: &Program) -> BTreeMap<u32, u32> {
    let mut origins = BTreeMap::new();
    for step in &program.functions[program.kernel].code {
        let site = program.sites.get(step.site as usize);
        let is_cvta = site.is_some_and(|site| site.opcode == "cvta");
        if let (Op::Alu { srcs, outs }, true) = (&step.op, is_cvta)
            && let ([Src::Reg(from)], [out]) = (&srcs[..], &outs[..])
        {
            let first = origins.get(from).copied().unwrap_or(*from);
            origins.insert(out.dst, first);
        }
    }
    origins
}

/// Can two accesses under conditions on data both happen?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Meeting {
    /// One condition is the other one turned, or has it turned among its own.
    Never,
    /// Wherever the stricter of both conditions holds.
    Always,
    Perhaps,
}

impl Meeting {
    #[inline(always)]
    fn of(terms: &Terms, first: Id, second: Id) -> Meeting {
        match first == 0 || second == 0 {
            true => Meeting::Always,
            false => Meeting::under(terms, first, second),
        }
    }

    fn under(terms: &Terms, first: Id, second: Id) -> Meeting {
        let [mut a, mut b] = [first, second].map(|id| {
            let mut all = BTreeSet::new();
            conjuncts(terms, id, &mut all);
            all
        });
        if a.iter().any(|&(id, holds)| b.contains(&(id, !holds))) {
            return Meeting::Never;
        }
        if a.len() > b.len() {
            std::mem::swap(&mut a, &mut b);
        }
        match a.is_subset(&b) {
            true => Meeting::Always,
            false => Meeting::Perhaps,
        }
    }
}

/// The predicates of which a condition is made, and whether they hold.
fn conjuncts(terms: &Terms, id: Id, all: &mut BTreeSet<(Id, bool)>) {
    let node = terms.node(id);
    match node.kind() {
        Kind::And => {
            conjuncts(terms, node.a, all);
            conjuncts(terms, node.b, all);
        }
        Kind::Not => {
            all.insert((node.a, false));
        }
        _ => {
            all.insert((id, true));
        }
    }
}

/// Has a GPU that much shared memory, and is the block one of its own? Gaps between variables are the emulator's own.
fn shared_fits(program: &Program, launch: &Launch) -> Result<(), EmuError> {
    let stated = program.image.shared.regions.iter().map(|region| region.len);
    let stated: u64 = stated.sum();
    let all = stated + u64::from(launch.dynamic_smem);
    if program.block.clustered {
        return Err(EmuError::Launch {
            kernel: program.name.clone(),
            message: "clusters of several blocks are not supported".to_owned(),
        });
    }
    match stated > SHARED_PER_BLOCK.into() || all > MOST_SHARED_PER_BLOCK.into() {
        true => Err(EmuError::Launch {
            kernel: program.name.clone(),
            message: format!("{stated} bytes of shared memory and {} more", all - stated),
        }),
        false => Ok(()),
    }
}

/// The memory of each slot: the module's variables, then the launch's buffers.
fn slots(
    program: &Program,
    launch: &Launch,
    (terms, memory): (&mut Terms, &mut Vec<Buffer>),
    places: &[usize],
    (stride, turned): (usize, bool),
) -> Vec<(usize, u64)> {
    let address = |at: usize| slot_address(at * stride);
    let symbols = launch.memory.len();
    let described: Vec<&Described> = launch.buffers().collect();
    let mut slots = Vec::new();
    for (at, global) in program.image.globals.iter().enumerate() {
        let set = described.iter().skip(symbols);
        let set = set.zip(places.iter().skip(symbols));
        let bound = set.filter(|(buffer, _)| buffer.name == global.name);
        let index = match bound.map(|(_, &place)| place).next() {
            Some(place) => place,
            None => variable(terms, memory, global),
        };
        slots.push((index, address(at)));
    }
    let globals = slots.len();
    for (at, (buffer, &place)) in described.iter().take(symbols).zip(places).enumerate() {
        // The other way round every bit that is not stated is another one.
        let (at, moved) = match turned {
            true => (globals + symbols - 1 - at, MOVED),
            false => (globals + at, 0),
        };
        // No more than the alignment that is stated.
        let odd = match buffer.align {
            align if align < 256 => align as u64,
            _ => 0,
        };
        slots.push((place, address(at) + moved + odd + buffer.offset as u64));
    }
    slots
}

/// Variables of a module have numbers of their own: nothing of them is an input.
const VARIABLES: u32 = 1 << 20;
/// But those that others may set, which have one for each name.
const EXPORTED: u32 = 1 << 21;

/// A variable of the module that no launch sets: it keeps what launches write. One that others see holds anything before.
fn variable(terms: &mut Terms, memory: &mut Vec<Buffer>, global: &GlobalVariable) -> usize {
    let name = variable_name(&global.name);
    if let Some(at) = memory.iter().position(|buffer| buffer.name == name) {
        return at;
    }
    let (content, number) = match global.exported {
        true => (Content::Any, EXPORTED + terms.function(&name, Domain::Any)),
        false => {
            let number = VARIABLES + memory.len() as u32;
            (Content::Known(global.bytes.clone()), number)
        }
    };
    let len = global.bytes.len() as u64;
    let mut buffer = Buffer::of_bytes(&name, (number, 32), len, global.constant, &content);
    // A launch that begins anew makes it again: its accesses are logged from the start.
    buffer.logged = !global.constant;
    buffer.loaded = global.bytes.clone();
    memory.push(buffer);
    memory.len() - 1
}

/// The address of each of the launch's buffers.
fn bases(program: &Program, launch: &Launch, slots: &[(usize, u64)]) -> Vec<u64> {
    let globals = &program.image.globals;
    let own = slots.iter().skip(globals.len()).map(|&(_, base)| base);
    let symbols = launch.symbols.iter().map(|symbol| {
        let at = globals.iter().position(|g| g.name == symbol.name);
        at.and_then(|at| slots.get(at)).map_or(0, |&(_, base)| base)
    });
    own.chain(symbols).collect()
}

/// The smallest access of a program that is not private, in bytes.
fn finest(program: &Program) -> u64 {
    let code = program.functions[program.kernel].code.iter();
    let sizes = code.filter_map(|step| match &step.op {
        Op::Load(load) => Some(&load.access),
        Op::Store { access, .. } => Some(access),
        Op::Atomic(atomic) => Some(&atomic.access),
        Op::Collective {
            op: crate::program::CollectiveOp::Matrix(_),
            ..
        } => None,
        _ => None,
    });
    let shared = sizes.filter(|a| !matches!(a.space, AccessSpace::Local | AccessSpace::Param));
    let matrices = program.functions[program.kernel].code.iter().any(|step| {
        matches!(
            &step.op,
            Op::Collective {
                op: crate::program::CollectiveOp::Matrix(_),
                ..
            }
        )
    });
    let finest = shared.map(|a| u64::from(a.elem)).min().unwrap_or(4);
    if matrices { finest.min(2) } else { finest }
}
