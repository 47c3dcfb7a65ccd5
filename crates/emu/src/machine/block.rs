//! A block in the middle of its work: its warps, shared memory and barriers.

use super::access::Trouble;
use super::barrier::Barriers;
use super::frame::{Check, Frame, POISON};
use super::registers::Pool;
use super::warp::{Stop, Strand, Wait, Warp};
use crate::fault::{Fault, FaultKind};
use crate::lanes::{Mask, WARP};
use crate::memory::Memory;
use crate::memory::shared::Shared;
use crate::outcome::{Counts, Options};
use crate::program::Program;

/// What the threads of a block share.
pub(crate) struct Block<'a> {
    pub program: &'a Program,
    pub memory: &'a Memory,
    pub options: &'a Options,
    pub check: Check,
    /// The bytes of the kernel's parameters.
    pub params: &'a [u8],
    pub shared: Shared,
    pub barriers: Barriers,
    /// What `setmaxnreg` moves; `None` where it does nothing.
    pub pool: Option<Pool>,
    pub grid: Grid,
    /// `%ctaid`
    pub index: [u32; 3],
    /// What `printf` has written.
    pub printed: String,
    pub counts: Counts,
    /// Warp instructions executed, and what matrix products cost; `%clock`.
    pub clock: u64,
    /// At this clock the launch has spent all that it may.
    pub left: u64,
}

/// Extents of the launch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Grid {
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub dynamic_smem: u32,
}

impl Grid {
    pub fn threads(&self) -> u32 {
        self.block.iter().product()
    }

    /// The position of number `index` in a box.
    pub fn unravel(extent: [u32; 3], index: u64) -> [u32; 3] {
        let [x, y] = [extent[0] as u64, extent[1] as u64];
        [
            (index % x) as u32,
            (index / x % y) as u32,
            (index / x / y) as u32,
        ]
    }

    /// `%tid` of a lane.
    pub fn thread(&self, warp: usize, lane: usize) -> [u32; 3] {
        Grid::unravel(self.block, (warp * WARP + lane) as u64)
    }

    /// The place of a block in the grid, counted in x first.
    pub fn rank(&self, block: [u32; 3]) -> u64 {
        let [x, y, z] = block.map(u64::from);
        x + self.grid[0] as u64 * (y + self.grid[1] as u64 * z)
    }
}

/// How far a block has come.
pub(crate) enum Progress {
    Finished,
    /// It could go on.
    Unfinished,
}

/// A block with its warps.
pub(crate) struct BlockRun<'a> {
    pub block: Block<'a>,
    warps: Vec<Warp>,
}

/// Instructions that a warp runs before the next warp's turn.
const WARP_SLICE: u32 = 1 << 14;

impl<'a> BlockRun<'a> {
    pub fn new(
        program: &'a Program,
        memory: &'a Memory,
        options: &'a Options,
        params: &'a [u8],
        grid: Grid,
        index: [u32; 3],
    ) -> Option<Self> {
        let check = Check {
            registers: options.uninitialised,
            memory: options.uninitialised,
        };
        let kernel = program.functions.get(program.kernel)?;
        let threads = grid.threads() as usize;
        let warp_count = threads.div_ceil(WARP);
        let warps = (0..warp_count).map(|warp| {
            let lanes = match threads - warp * WARP {
                n if n >= WARP => Mask::MAX,
                n => (1 << n) - 1,
            };
            Warp::new(
                warp,
                lanes,
                Frame::new(program.kernel, kernel, lanes, None, check),
            )
        });
        let layout = program.image.shared_layout(grid.dynamic_smem as u64);
        let races = options.races.then_some(warp_count);
        Some(BlockRun {
            warps: warps.collect(),
            block: Block {
                shared: Shared::new(layout, POISON, options.uninitialised, races),
                barriers: Barriers::new(warp_count),
                pool: program.entry_registers.map(|n| Pool::new(warp_count, n)),
                counts: Counts::of_block(program.sites.len(), options),
                printed: String::new(),
                clock: 0,
                left: u64::MAX,
                program,
                memory,
                options,
                check,
                params,
                grid,
                index,
            },
        })
    }

    /// Runs until the block ends or has executed about `slice` warp instructions.
    pub fn run(&mut self, slice: u64) -> Result<Progress, Box<Fault>> {
        let end = self.block.clock + slice;
        loop {
            let before = self.block.clock;
            let mut unfinished = false;
            for warp in &mut self.warps {
                if warp.live() == 0 {
                    continue;
                }
                // One more than may be executed shows that the end is not there.
                let most = self.block.options.budget.min(self.block.left);
                let more = most.saturating_sub(self.block.clock).saturating_add(1);
                let turn = u64::from(WARP_SLICE).min(slice).min(more);
                let stop = warp.run(&mut self.block, turn as u32);
                match stop {
                    Ok(Stop::Done) => {}
                    Ok(Stop::Blocked | Stop::Yield) => unfinished = true,
                    Err((trouble, strand)) => {
                        let index = warp.index;
                        return Err(self.fault(index, *trouble, &strand));
                    }
                }
                if self.block.clock > most {
                    return Err(self.out_of_budget());
                }
            }
            let released = match Barriers::release(&mut self.block, &mut self.warps) {
                Ok(released) => released,
                Err((warp, trouble, strand)) => return Err(self.fault(warp, *trouble, &strand)),
            };
            let released = Pool::release(&self.block, &mut self.warps) || released;
            if !unfinished && self.warps.iter().all(|w| w.live() == 0) {
                return Ok(Progress::Finished);
            }
            if before == self.block.clock && !released {
                return Err(self.deadlock());
            }
            if self.block.clock >= end {
                return Ok(Progress::Unfinished);
            }
        }
    }

    /// The first strand that has not finished.
    fn any_strand(&self, pick: impl Fn(&Strand) -> bool) -> (usize, Strand) {
        let all = self
            .warps
            .iter()
            .flat_map(|w| w.strands.iter().map(move |s| (w.index, s)));
        let chosen = all
            .clone()
            .find(|(_, s)| pick(s))
            .or_else(|| all.clone().next());
        let none = Strand {
            frame: 0,
            pc: 0,
            mask: 1,
            wait: Wait::Ready,
            turn: 0,
            ran: 0,
            may_spin: false,
        };
        chosen.map_or((0, none), |(warp, strand)| (warp, strand.clone()))
    }

    fn out_of_budget(&self) -> Box<Fault> {
        let (warp, strand) = self.any_strand(|s| s.wait == Wait::Ready);
        let message = match self.block.clock > self.block.options.budget {
            true => format!(
                "the block has executed {} warp instructions without coming to its end",
                self.block.options.budget
            ),
            false => format!(
                "the launch has executed {} warp instructions without coming to its end",
                self.block.options.total
            ),
        };
        let trouble = Trouble::new(FaultKind::Budget, Warp::first(strand.mask), message);
        self.fault(warp, *trouble, &strand)
    }

    /// Nothing can run: who waits where?
    fn deadlock(&self) -> Box<Fault> {
        let starving = |s: &Strand| matches!(s.wait, Wait::Registers(_));
        let collective = |s: &Strand| matches!(s.wait, Wait::Collective | Wait::WarpBarrier(_));
        let (warp, strand) = match self.any_strand(starving) {
            (warp, strand) if starving(&strand) => (warp, strand),
            _ => self.any_strand(collective),
        };
        let mut places: Vec<String> = Vec::new();
        for warp in &self.warps {
            for other in &warp.strands {
                let site = self.site(warp.index, other);
                let line = site.map_or(0, |s| s.place.ptx_line);
                let text = format!(
                    "lanes {:#010x} of warp {} at line {line}",
                    other.mask, warp.index
                );
                places.push(text);
            }
        }
        let total = places.len();
        places.truncate(6);
        let more = if total > 6 {
            format!(" and {} more", total - 6)
        } else {
            String::new()
        };
        let kind = match strand.wait {
            Wait::Registers(_) => FaultKind::NoRegisters,
            Wait::Collective | Wait::WarpBarrier(_) => FaultKind::WarpDivergence,
            _ => FaultKind::BarrierDivergence,
        };
        let missing = match (strand.wait, &self.block.pool) {
            (Wait::Registers(count), Some(pool)) => pool.missing(warp, count),
            _ => String::new(),
        };
        let message = format!(
            "no thread can go on: {}{more} wait for others{missing}",
            places.join(", ")
        );
        self.fault(
            warp,
            *Trouble::new(kind, Warp::first(strand.mask), message),
            &strand,
        )
    }

    fn site(&self, warp: usize, strand: &Strand) -> Option<&crate::program::Site> {
        let program = self.block.program;
        let frame = self.warps.get(warp)?.frames.get(strand.frame)?;
        let step = program
            .functions
            .get(frame.function)?
            .code
            .get(strand.pc as usize)?;
        program.sites.get(step.site as usize)
    }

    /// A fault with its place.
    fn fault(&self, warp: usize, trouble: Trouble, strand: &Strand) -> Box<Fault> {
        Box::new(Fault {
            kind: trouble.kind,
            place: self
                .site(warp, strand)
                .map(|s| s.place.clone())
                .unwrap_or_default(),
            block: self.block.index,
            thread: self.block.grid.thread(warp, trouble.lane),
            address: trouble.address,
            allocation: trouble.allocation,
            message: trouble.message,
        })
    }
}
