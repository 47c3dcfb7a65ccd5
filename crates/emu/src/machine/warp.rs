//! A warp: divergence, reconvergence and scheduling of its lanes.
//!
//! Lanes that are at the same place of the same call frame form a [`Strand`] and run together.
//! Where lanes part, the strand splits; the machine then runs the strand in the deepest call with
//! the smallest program counter first and joins strands that meet. Code as compilers lay it out
//! (loop bodies before loop exits, branches before their join) so converges at the joins. Nothing
//! depends on it: an instruction that involves several lanes waits until the lanes that it names
//! have all come (see [`super::collective`]), whatever order they run in.
//!
//! A strand that runs long while others could run gives way to them, so a lane that spins until
//! another lane of its warp has done something does not spin for ever.

use super::access::Trouble;
use super::block::Block;
use super::frame::{Caller, Frame};
use crate::lanes::{Mask, lanes_of};
use crate::program::Function;

/// Lanes that run together.
#[derive(Clone, Debug)]
pub(crate) struct Strand {
    pub frame: usize,
    pub pc: u32,
    pub mask: Mask,
    pub wait: Wait,
    /// When it last gave way to others; the scheduler prefers those that did so longest ago.
    pub turn: u32,
    /// Instructions since then.
    pub ran: u32,
    /// It has executed an atomic operation since then.
    pub may_spin: bool,
}

/// What a strand waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    /// Nothing: it can run.
    Ready,
    /// The other lanes of a collective instruction.
    Collective,
    /// `bar.warp.sync` of these lanes.
    WarpBarrier(Mask),
    /// A barrier of the block.
    Barrier(u32),
    /// So many registers (`setmaxnreg.inc`).
    Registers(u32),
}

/// A warp in the middle of its work.
pub(crate) struct Warp {
    /// Number in its block.
    pub index: usize,
    /// Lanes that exist.
    pub lanes: Mask,
    /// Lanes that have exited.
    pub exited: Mask,
    pub frames: Vec<Frame>,
    /// Frames that can be used again.
    free: Vec<usize>,
    pub strands: Vec<Strand>,
    /// The highest address that local memory ever had.
    pub deepest_local: u64,
    /// Copies that `cp.async` has begun, in order.
    pub copies: super::copies::Copies,
    /// An atomic operation was executed.
    pub may_spin: bool,
    turns: u32,
}

/// Why a warp stopped running.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// All lanes have exited.
    Done,
    /// All lanes that have not wait for other warps.
    Blocked,
    /// Its time is up, or it let others go first.
    Yield,
}

/// What follows an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// The next instruction.
    Fall,
    /// The strands changed, or the program counter was set: ask the scheduler.
    Reschedule,
    /// As `Reschedule`, and let other warps run.
    Yield,
}

/// Instructions that a strand may run while others of its warp could. Strands that have run unequally long meet less
/// often than on hardware, so it is long; but not behind an atomic operation, by which a lane may wait for another.
const STRAND_SLICE: u32 = 1 << 17;
const SPIN_SLICE: u32 = 1 << 12;

/// Nested calls before the stack overflows.
pub(crate) const MAX_DEPTH: u32 = 1024;

impl Warp {
    pub fn new(index: usize, lanes: Mask, kernel: Frame) -> Self {
        let deepest_local = kernel.local_end();
        Warp {
            index,
            lanes,
            exited: 0,
            frames: vec![kernel],
            free: Vec::new(),
            strands: vec![Strand {
                frame: 0,
                pc: 0,
                mask: lanes,
                wait: Wait::Ready,
                turn: 0,
                ran: 0,
                may_spin: false,
            }],
            deepest_local,
            copies: Default::default(),
            may_spin: false,
            turns: 0,
        }
    }

    /// Lanes that exist and have not exited.
    pub fn live(&self) -> Mask {
        self.lanes & !self.exited
    }

    /// Runs until nothing in the warp can run, or about `slice` instructions.
    pub fn run(
        &mut self,
        block: &mut Block<'_>,
        slice: u32,
    ) -> Result<Stop, (Box<Trouble>, Strand)> {
        let mut left = slice;
        loop {
            let Some(current) = self.pick() else {
                return Ok(if self.live() == 0 {
                    Stop::Done
                } else {
                    Stop::Blocked
                });
            };
            let alone = self.strands.len() == 1;
            let limit = self.meeting_point(current);
            let mut budget = left;
            let before = block.clock;
            let next = self
                .run_strand(block, current, limit, &mut budget)
                .map_err(|trouble| {
                    let strand = self.strands.get(current).cloned();
                    (
                        trouble,
                        strand.unwrap_or(Strand {
                            frame: 0,
                            pc: 0,
                            mask: 1,
                            wait: Wait::Ready,
                            turn: 0,
                            ran: 0,
                            may_spin: false,
                        }),
                    )
                })?;
            let ran = (block.clock - before) as u32;
            left = left.saturating_sub(ran);
            // That other warps get a turn is no reason for another strand to run.
            if !alone {
                self.count(current, ran);
            }
            if left == 0 || next == Next::Yield {
                return Ok(Stop::Yield);
            }
        }
    }

    /// Runs one strand up to a meeting point with others.
    fn run_strand(
        &mut self,
        block: &mut Block<'_>,
        current: usize,
        limit: u32,
        budget: &mut u32,
    ) -> Result<Next, Box<Trouble>> {
        loop {
            if *budget == 0 {
                return Ok(Next::Reschedule);
            }
            *budget -= 1;
            match self.step(block, current)? {
                Next::Fall => {
                    let Some(strand) = self.strands.get_mut(current) else {
                        return Ok(Next::Reschedule);
                    };
                    strand.pc += 1;
                    if strand.pc >= limit {
                        return Ok(Next::Reschedule);
                    }
                }
                other => return Ok(other),
            }
        }
    }

    /// The smallest program counter of the other strands that could be joined.
    fn meeting_point(&self, current: usize) -> u32 {
        let Strand { frame, pc, .. } = self.strands[current];
        let others = self.strands.iter().enumerate().filter(|&(i, s)| {
            let joinable = matches!(s.wait, Wait::Ready | Wait::Collective);
            i != current && s.frame == frame && s.pc > pc && joinable
        });
        others.map(|(_, s)| s.pc).min().unwrap_or(u32::MAX)
    }

    /// Joins strands that stand at the same place, wakes those whose partners have come, and
    /// chooses one to run.
    fn pick(&mut self) -> Option<usize> {
        if let [only] = &self.strands[..]
            && only.wait == Wait::Ready
        {
            return Some(0);
        }
        self.join();
        self.wake();
        let ready = self
            .strands
            .iter()
            .enumerate()
            .filter(|(_, s)| s.wait == Wait::Ready);
        let depth = |s: &Strand| self.frames.get(s.frame).map_or(0, |f| f.depth);
        ready
            .min_by_key(|(_, s)| (s.turn, std::cmp::Reverse(depth(s)), s.pc))
            .map(|(index, _)| index)
    }

    fn join(&mut self) {
        let mut index = 0;
        while index < self.strands.len() {
            let this = self.strands[index].clone();
            let joinable = |s: &Strand| {
                s.frame == this.frame
                    && s.pc == this.pc
                    && (s.wait == this.wait
                        || matches!(
                            (s.wait, this.wait),
                            (Wait::Ready, Wait::Collective) | (Wait::Collective, Wait::Ready)
                        ))
            };
            match self.strands[index + 1..].iter().position(joinable) {
                Some(other) if !matches!(this.wait, Wait::Barrier(_)) => {
                    let other = self.strands.remove(index + 1 + other);
                    let strand = &mut self.strands[index];
                    strand.mask |= other.mask;
                    strand.turn = strand.turn.max(other.turn);
                    // A strand that waits may now be complete: it tries again.
                    strand.wait = match strand.wait {
                        Wait::Collective => Wait::Ready,
                        wait => wait,
                    };
                }
                _ => index += 1,
            }
        }
    }

    fn wake(&mut self) {
        let live = self.live();
        // `bar.warp.sync` releases lanes at different places, when all of its mask have come.
        for index in 0..self.strands.len() {
            let Wait::WarpBarrier(members) = self.strands[index].wait else {
                continue;
            };
            let waits = |s: &&Strand| s.wait == Wait::WarpBarrier(members);
            let here = self
                .strands
                .iter()
                .filter(waits)
                .fold(0, |mask, s| mask | s.mask);
            if members & live & !here == 0 {
                for strand in self.strands.iter_mut() {
                    if strand.wait == Wait::WarpBarrier(members) {
                        strand.wait = Wait::Ready;
                        strand.pc += 1;
                    }
                }
            }
        }
    }

    /// Lets strands that wait for lanes that have since exited try again.
    pub fn retry_collectives(&mut self) {
        for strand in &mut self.strands {
            if strand.wait == Wait::Collective {
                strand.wait = Wait::Ready;
            }
        }
    }

    /// The strand has run so many instructions more.
    fn count(&mut self, current: usize, ran: u32) {
        let has_spun = std::mem::take(&mut self.may_spin);
        let Some(strand) = self.strands.get_mut(current) else {
            return;
        };
        strand.ran += ran;
        strand.may_spin |= has_spun;
        let most = match strand.may_spin {
            true => SPIN_SLICE,
            false => STRAND_SLICE,
        };
        if strand.ran >= most {
            (strand.ran, strand.may_spin) = (0, false);
            self.give_way(current);
        }
    }

    /// The strand has run long: others go first until they have run as long.
    fn give_way(&mut self, current: usize) {
        self.turns += 1;
        let turns = self.turns;
        if let Some(strand) = self.strands.get_mut(current) {
            strand.turn = turns;
        }
    }

    /// Splits lanes off a strand. The new strand stands at `pc`.
    pub fn split(&mut self, current: usize, mask: Mask, pc: u32, wait: Wait) {
        let Some(strand) = self.strands.get_mut(current) else {
            return;
        };
        let part = Strand {
            mask: strand.mask & mask,
            pc,
            wait,
            ..strand.clone()
        };
        strand.mask &= !mask;
        self.strands.push(part);
        self.drop_empty();
    }

    pub fn drop_empty(&mut self) {
        self.strands.retain(|s| s.mask != 0);
    }

    /// Enters a function with some lanes of a strand; the others go on behind the call.
    pub fn enter(
        &mut self,
        block: &Block<'_>,
        current: usize,
        number: usize,
        function: &Function,
        mask: Mask,
    ) -> Option<usize> {
        let strand = self.strands.get(current)?.clone();
        let above = self.frames.get(strand.frame)?;
        let caller = Caller {
            frame: strand.frame,
            pc: strand.pc,
        };
        let frame = Frame::new(number, function, mask, Some((caller, above)), block.check);
        self.deepest_local = self.deepest_local.max(frame.local_end());
        let index = match self.free.pop() {
            Some(index) => {
                self.frames[index] = frame;
                index
            }
            None => {
                self.frames.push(frame);
                self.frames.len() - 1
            }
        };
        if mask != strand.mask {
            self.split(current, strand.mask & !mask, strand.pc + 1, Wait::Ready);
        }
        if let Some(strand) = self.strands.get_mut(current) {
            (strand.frame, strand.pc) = (index, 0);
        }
        Some(index)
    }

    /// Takes lanes out of a frame; a frame without lanes can be used again.
    pub fn leave(&mut self, frame: usize, mask: Mask) {
        let Some(data) = self.frames.get_mut(frame) else {
            return;
        };
        data.active &= !mask;
        if data.active == 0 && data.caller.is_some() {
            self.free.push(frame);
        }
    }

    /// Ends lanes, in this frame and all its callers.
    pub fn exit(&mut self, current: usize, mask: Mask) {
        let mut frame = self.strands.get(current).map(|s| s.frame);
        while let Some(index) = frame {
            frame = self
                .frames
                .get(index)
                .and_then(|f| f.caller)
                .map(|c| c.frame);
            self.leave(index, mask);
        }
        self.exited |= mask;
        if let Some(strand) = self.strands.get_mut(current) {
            strand.mask &= !mask;
            strand.pc += 1;
        }
        self.drop_empty();
        self.retry_collectives();
    }

    /// The first lane of a mask.
    pub fn first(mask: Mask) -> usize {
        lanes_of(mask).next().unwrap_or(0)
    }
}
