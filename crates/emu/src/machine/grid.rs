//! A whole launch: memory, parameters and the order of blocks.
//!
//! Blocks run in parallel unless the program could tell in which order they run (an atomic result
//! that is used, a fence between blocks, a heap): then they run one after the other in the order
//! of their index. A block that runs long without coming to its end may wait for one that has not
//! begun, so it gives way to the next ones and goes on later. Either way the same launch always
//! gives the same bytes, unless blocks race with plain stores.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use rayon::prelude::*;
use warpwright_launch::{Buffer, Launch};
use warpwright_target::{BLOCK_DIMENSIONS, GRID_DIMENSIONS, THREADS_PER_BLOCK, boards};

use super::block::{BlockRun, Grid, Progress};
use super::device::{Device, Extents, Spent};
use super::host::print;
use crate::fault::{EmuError, Fault};
use crate::memory::{Allocation, Memory, slot_address};
use crate::outcome::{Counts, Options, Outcome, Results};
use crate::program::Program;

/// Largest number of threads of a block on any GPU.
const MAX_THREADS: u64 = THREADS_PER_BLOCK as u64;

/// Most shared memory of a block, gaps between variables included: far above any GPU's.
const MAX_SHARED: u64 = 16 << 20;

/// Warp instructions of a block before those that wait get a turn.
const BLOCK_SLICE: u64 = 1 << 20;

/// The same where blocks wait for each other: most do so at once.
const COOPERATIVE_SLICE: u64 = 1 << 11;

/// Blocks between two looks at what the launch has spent, at most and at first. What the blocks so far took decides how
/// many are next, so that the block at which a launch runs out does not depend on the number of processors.
const WAVE: u64 = 1 << 12;
const FIRST_WAVE: u64 = 16;
/// As many times the blocks so far are in the next wave, at most: others may take longer.
const GROWTH: u64 = 4;

/// What it costs to begin a block, in warp instructions: an empty grid of two thousand million blocks takes
/// hours as well.
const BLOCK_START: u64 = 128;

/// What the blocks of a launch may print together, in bytes.
const MAX_PRINTED: usize = 16 << 20;

/// What finished blocks leave.
struct Finished {
    counts: Counts,
    printed: String,
    /// Warp instructions.
    spent: u64,
}

impl Finished {
    fn new(program: &Program, options: &Options) -> Finished {
        Finished {
            counts: Counts::new(program.sites.len(), options),
            printed: String::new(),
            spent: 0,
        }
    }

    fn of(block: BlockRun<'_>) -> Finished {
        Finished {
            counts: block.block.counts,
            printed: block.block.printed,
            spent: block.block.clock + BLOCK_START,
        }
    }

    fn add(&mut self, more: &Finished) {
        self.counts.merge(&more.counts);
        self.spent += more.spent;
        print(&mut self.printed, &more.printed, MAX_PRINTED);
    }
}

/// What [`launches_begun`] counts.
static BEGUN: AtomicU64 = AtomicU64::new(0);

/// Launches that this process has begun to emulate.
pub fn launches_begun() -> u64 {
    BEGUN.load(Relaxed)
}

impl Program {
    /// Runs the kernel. `inputs` are the initial contents of the launch's buffers, in the order of
    /// [`Launch::buffers`], as `Buffer::materialize` gives them.
    ///
    /// # Errors
    /// If the launch does not fit the kernel: other parameters, missing or wrong inputs, unknown
    /// symbols, a block that no GPU takes.
    pub fn run(
        &self,
        launch: &Launch,
        inputs: Vec<Vec<u8>>,
        options: &Options,
    ) -> Result<Outcome, EmuError> {
        self.run_counting(launch, inputs, options, &AtomicU64::new(0))
    }

    /// The same for somebody who looks on: `done` is how many blocks have run, of [`Launch::grid_blocks`].
    ///
    /// # Errors
    /// As [`Program::run`].
    pub fn run_counting(
        &self,
        launch: &Launch,
        inputs: Vec<Vec<u8>>,
        options: &Options,
        done: &AtomicU64,
    ) -> Result<Outcome, EmuError> {
        let setup = Setup::new(self, launch, inputs, options)?;
        let work = Work {
            memory: &setup.memory,
            params: &setup.params,
            grid: setup.grid,
            done,
        };
        let bytes = |&index: &usize| setup.memory.allocation(index).map(|a| a.bytes());
        let finished = match self.execute(&work, options) {
            Ok(finished) => finished,
            Err(fault) => return Ok(Outcome::Faulted(fault)),
        };
        let buffers = setup.buffers.iter();
        Ok(Outcome::Finished(Results {
            buffers: buffers.map(|i| bytes(i).unwrap_or_default()).collect(),
            reach: match options.patterns {
                true => setup
                    .buffers
                    .iter()
                    .map(|&i| finished.counts.reach(i))
                    .collect(),
                false => Vec::new(),
            },
            statistics: finished.counts.statistics(self),
            approximate: finished.counts.approximations(self),
            printed: finished.printed,
        }))
    }

    /// Runs the kernel on the memory of a device; `params` are the bytes of its parameters as
    /// [`Program::parameters`] says where they lie.
    ///
    /// # Errors
    /// If the launch does not fit the kernel: other parameters, a block that no GPU takes.
    pub fn run_on(
        &self,
        device: &Device,
        extents: &Extents,
        params: &[u8],
        options: &Options,
    ) -> Result<Result<Spent, Box<Fault>>, EmuError> {
        let refuse = |message: String| EmuError::Launch {
            kernel: self.name.clone(),
            message,
        };
        self.admit(extents)
            .map_err(|unfit| refuse(unfit.to_string()))?;
        let has = self.image.params.len;
        if params.len() as u64 != has {
            let given = params.len();
            let message = format!("{given} bytes of parameters, the kernel has {has}");
            return Err(refuse(message));
        }
        let work = Work {
            memory: &device.memory,
            params,
            grid: extents.grid(),
            done: &AtomicU64::new(0),
        };
        let finished = self.execute(&work, options);
        Ok(finished.map(|finished| Spent {
            work: finished.spent,
            is_approximate: finished.counts.is_approximate(self),
            printed: finished.printed,
        }))
    }

    fn execute(&self, work: &Work<'_>, options: &Options) -> Result<Finished, Box<Fault>> {
        BEGUN.fetch_add(1, Relaxed);
        let blocks = work.grid.grid.iter().map(|&n| u64::from(n)).product();
        // Those that wait for each other run together.
        let blocks = match self.cooperative {
            true => blocks,
            false => options.sampled(blocks),
        };
        match self.ordered || options.sequential {
            true => self.run_in_order(work, options, blocks),
            false => self.run_in_parallel(work, options, blocks),
        }
    }

    /// Is it a launch that some GPU takes of this kernel, and that the emulator knows?
    ///
    /// # Errors
    /// What does not fit.
    pub(crate) fn fits(&self, extents: &Extents) -> Result<(), EmuError> {
        let fit = self.admit(extents).and_then(|()| self.bounded(extents));
        fit.map_err(|unfit| EmuError::Launch {
            kernel: self.name.clone(),
            message: unfit.to_string(),
        })
    }

    /// No longer than a GPU's grids and blocks, and as the kernel's directives state.
    fn bounded(&self, extents: &Extents) -> Result<(), Unfit> {
        let is_long = |extents: [u32; 3], most: [u32; 3]| (0..3).any(|at| extents[at] > most[at]);
        if is_long(extents.grid, GRID_DIMENSIONS) || is_long(extents.block, BLOCK_DIMENSIONS) {
            return Err(Unfit::Extents(extents.grid, extents.block));
        }
        let product = |dims: [u32; 3]| dims.iter().map(|&n| u64::from(n)).product::<u64>();
        let threads = product(extents.block);
        match (self.block.required, self.block.most) {
            (Some(dims), _) if dims != extents.block => Err(Unfit::Required(dims)),
            (None, Some(dims)) if threads > product(dims) => Err(Unfit::Most(product(dims))),
            _ => Ok(()),
        }
    }

    fn admit(&self, extents: &Extents) -> Result<(), Unfit> {
        let threads: u64 = extents.block.iter().map(|&n| u64::from(n)).product();
        let is_empty = extents.grid.contains(&0);
        if threads == 0 || threads > MAX_THREADS || is_empty {
            let Extents { grid, block, .. } = extents;
            return Err(Unfit::Extents(*grid, *block));
        }
        if extents.cluster.is_some_and(|c| c != [1, 1, 1]) {
            return Err(Unfit::Clusters);
        }
        let blocks: u64 = extents.grid.iter().map(|&n| u64::from(n)).product();
        if self.cooperative && blocks > most_together() {
            return Err(Unfit::Together(blocks));
        }
        let dynamic = extents.dynamic_smem.into();
        let shared = self.image.shared_layout(dynamic).len;
        match shared > MAX_SHARED {
            true => Err(Unfit::Shared(shared)),
            false => Ok(()),
        }
    }

    fn block<'a>(
        &'a self,
        work: &Work<'a>,
        options: &'a Options,
        number: u64,
        left: u64,
    ) -> Option<BlockRun<'a>> {
        let blocks = work.grid.grid.iter().map(|&extent| u64::from(extent));
        let place = match self.cooperative {
            true => number,
            false => options.place(number, blocks.product()),
        };
        let index = Grid::unravel(work.grid.grid, place);
        let Work {
            memory,
            params,
            grid,
            ..
        } = *work;
        let mut block = BlockRun::new(self, memory, options, params, grid, index)?;
        block.block.left = left;
        Some(block)
    }

    fn run_in_parallel(
        &self,
        work: &Work<'_>,
        options: &Options,
        blocks: u64,
    ) -> Result<Finished, Box<Fault>> {
        let mut all = Finished::new(self, options);
        let mut start = 0;
        while start < blocks {
            let left = options.total.saturating_sub(all.spent);
            let wave = start..(start + next_wave(start, all.spent, left)).min(blocks);
            start = wave.end;
            all.add(&self.run_wave(work, options, wave, left)?);
        }
        Ok(all)
    }

    /// Runs some blocks; together they may be the first to exceed what is left for the launch, none may alone.
    fn run_wave(
        &self,
        work: &Work<'_>,
        options: &Options,
        wave: std::ops::Range<u64>,
        left: u64,
    ) -> Result<Finished, Box<Fault>> {
        // Blocks behind a fault need not run; those before it still decide which fault is reported.
        let faulted = AtomicU64::new(u64::MAX);
        let run = |number: u64| -> Option<Result<Finished, (u64, Box<Fault>)>> {
            if number > faulted.load(Relaxed) {
                return None;
            }
            let mut block = self.block(work, options, number, left)?;
            loop {
                match block.run(BLOCK_SLICE) {
                    Ok(Progress::Finished) => {
                        work.done.fetch_add(1, Relaxed);
                        return Some(Ok(Finished::of(block)));
                    }
                    Ok(Progress::Unfinished) if number > faulted.load(Relaxed) => return None,
                    Ok(Progress::Unfinished) => {}
                    Err(fault) => {
                        faulted.fetch_min(number, Relaxed);
                        return Some(Err((number, fault)));
                    }
                }
            }
        };
        // Chunks keep the counts of finished blocks few.
        let blocks = wave.end - wave.start;
        let chunk = (blocks / (8 * rayon::current_num_threads() as u64)).clamp(1, 64);
        let chunks: Vec<_> = (0..blocks.div_ceil(chunk))
            .into_par_iter()
            .map(|c| {
                let mut all = Finished::new(self, options);
                for number in c * chunk..((c + 1) * chunk).min(blocks) {
                    match run(wave.start + number) {
                        Some(Ok(more)) => all.add(&more),
                        Some(Err(fault)) => return Err(fault),
                        None => {}
                    }
                }
                Ok(all)
            })
            .collect();
        let mut total = Finished::new(self, options);
        let mut first: Option<(u64, Box<Fault>)> = None;
        for chunk in chunks {
            match chunk {
                Ok(more) => total.add(&more),
                Err(fault) if first.as_ref().is_none_or(|f| fault.0 < f.0) => first = Some(fault),
                Err(_) => {}
            }
        }
        match first {
            Some((_, fault)) => Err(fault),
            None => Ok(total),
        }
    }

    fn run_in_order(
        &self,
        work: &Work<'_>,
        options: &Options,
        blocks: u64,
    ) -> Result<Finished, Box<Fault>> {
        let slice = match self.cooperative {
            true => COOPERATIVE_SLICE,
            false => BLOCK_SLICE,
        };
        let mut all = Finished::new(self, options);
        let mut printed: Vec<(u64, String)> = Vec::new();
        let mut waiting: Vec<(u64, BlockRun<'_>)> = Vec::new();
        let mut next = 0;
        while next < blocks || !waiting.is_empty() {
            let begun = match next < blocks {
                true => {
                    all.spent += BLOCK_START;
                    let block = self.block(work, options, next, u64::MAX);
                    block.map(|block| (next, block))
                }
                false => None,
            };
            next += 1;
            let turn: Vec<_> = std::mem::take(&mut waiting)
                .into_iter()
                .chain(begun)
                .collect();
            for (number, mut block) in turn {
                let before = block.block.clock;
                block.block.left = before + options.total.saturating_sub(all.spent);
                let progress = block.run(slice)?;
                all.spent += block.block.clock - before;
                match progress {
                    Progress::Unfinished => waiting.push((number, block)),
                    Progress::Finished => {
                        work.done.fetch_add(1, Relaxed);
                        all.counts.merge(&block.block.counts);
                        if !block.block.printed.is_empty() {
                            printed.push((number, block.block.printed));
                        }
                    }
                }
            }
        }
        printed.sort_by_key(|(number, _)| *number);
        for (_, text) in &printed {
            print(&mut all.printed, text, MAX_PRINTED);
        }
        Ok(all)
    }
}

/// How many blocks are next, after some that spent so much, where so much is left: hardly more than exceed it.
fn next_wave(before: u64, spent: u64, left: u64) -> u64 {
    let Some(each) = spent.checked_div(before) else {
        return FIRST_WAVE;
    };
    let most = WAVE.min(GROWTH * before);
    (left / each.max(1))
        .saturating_add(1)
        .clamp(FIRST_WAVE, most)
}

/// What all blocks of a launch share.
#[derive(Clone, Copy)]
struct Work<'a> {
    memory: &'a Memory,
    params: &'a [u8],
    grid: Grid,
    /// Blocks that have run.
    done: &'a AtomicU64,
}

/// Blocks that a GPU holds at once, of those whose size is known.
fn most_together() -> u64 {
    let blocks = boards().filter_map(|board| {
        let sms = board.sms.as_ref()?.value;
        Some(u64::from(sms) * u64::from(board.arch.threads.blocks))
    });
    blocks.max().unwrap_or(u64::MAX)
}

/// What a launch description comes to.
struct Setup {
    memory: Memory,
    /// The kernel's parameters, as they lie in parameter space.
    params: Vec<u8>,
    /// Allocation of each buffer.
    buffers: Vec<usize>,
    grid: Grid,
}

impl Setup {
    fn new(
        program: &Program,
        launch: &Launch,
        inputs: Vec<Vec<u8>>,
        options: &Options,
    ) -> Result<Setup, EmuError> {
        let error = |message: String| EmuError::Launch {
            kernel: program.name.clone(),
            message,
        };
        let extents = Extents {
            grid: launch.grid,
            block: launch.block,
            cluster: launch.cluster,
            dynamic_smem: launch.dynamic_smem,
        };
        let admitted = program.admit(&extents);
        admitted.map_err(|unfit| error(unfit.to_string()))?;
        let wanted: Vec<&Buffer> = launch.buffers().collect();
        if wanted.len() != inputs.len() {
            return Err(error(format!(
                "{} inputs for {} buffers",
                inputs.len(),
                wanted.len()
            )));
        }
        if let Some((b, i)) = wanted
            .iter()
            .zip(&inputs)
            .find(|(b, i)| b.size() != i.len())
        {
            return Err(error(format!(
                "{} bytes for `{}`, which has {}",
                i.len(),
                b.name,
                b.size()
            )));
        }
        let mut allocations = program.image.allocations();
        let mut buffers = Vec::new();
        let symbols = wanted.len() - launch.symbols.len();
        for (i, (buffer, bytes)) in wanted.iter().zip(&inputs).enumerate() {
            if i < symbols {
                let base = slot_address(allocations.len()) + buffer.offset as u64;
                buffers.push(allocations.len());
                allocations.push(Allocation::new(buffer.name.clone(), base, bytes, false));
                continue;
            }
            let known = program
                .image
                .globals
                .iter()
                .position(|g| g.name == buffer.name);
            let Some(index) = known else {
                return Err(error(format!(
                    "the module has no variable `{}`",
                    buffer.name
                )));
            };
            let old = &allocations[index];
            if (old.len as usize) < bytes.len() {
                return Err(error(format!(
                    "{} bytes for variable `{}`, which has {}",
                    bytes.len(),
                    buffer.name,
                    old.len
                )));
            }
            let mut all = old.bytes();
            all[..bytes.len()].copy_from_slice(bytes);
            allocations[index] = Allocation::new(old.name.clone(), old.base, &all, old.constant);
            buffers.push(index);
        }
        let bases: Vec<u64> = buffers.iter().map(|&i| allocations[i].base).collect();
        for (buffer, &index) in wanted.iter().zip(&buffers) {
            if let Some(table) = buffer.table {
                let base = bases.get(table.of).copied().unwrap_or(0);
                let old = &allocations[index];
                let bytes = table.bytes(base, buffer.len);
                allocations[index] = Allocation::new(old.name.clone(), old.base, &bytes, false);
            }
        }
        let params = kernel_params(program, launch, &bases)?;
        Ok(Setup {
            memory: match program.heap {
                true => Memory::new(allocations).with_heap(options.heap),
                false => Memory::new(allocations),
            },
            params,
            buffers,
            grid: extents.grid(),
        })
    }
}

/// Why extents are none of a launch that is run.
#[derive(Debug, thiserror::Error)]
enum Unfit {
    #[error("a grid of {0:?} blocks of {1:?} threads")]
    Extents([u32; 3], [u32; 3]),
    #[error("the kernel requires blocks of {0:?} threads (`.reqntid`)")]
    Required([u32; 3]),
    #[error("the kernel takes blocks of at most {0} threads (`.maxntid`)")]
    Most(u64),
    #[error("no GPU holds the {0} blocks of this cooperative launch at once")]
    Together(u64),
    #[error("clusters of several blocks are not supported")]
    Clusters,
    #[error("{0} bytes of shared memory")]
    Shared(u64),
}

/// Why arguments are not those of a kernel.
#[derive(Debug, thiserror::Error)]
enum ArgumentError {
    #[error("{given} arguments for a kernel with {has} parameters")]
    Count { given: usize, has: usize },
    #[error("{given} bytes for parameter `{parameter}` ({argument}), which has {has}")]
    Size {
        given: usize,
        has: u64,
        parameter: String,
        argument: String,
    },
}

/// The kernel's parameters in memory, where each buffer lies at one of `bases`.
///
/// # Errors
/// If the arguments are not those of the kernel.
pub(crate) fn kernel_params(
    program: &Program,
    launch: &Launch,
    bases: &[u64],
) -> Result<Vec<u8>, EmuError> {
    params(program, launch, bases).map_err(|wrong| EmuError::Launch {
        kernel: program.name.clone(),
        message: wrong.to_string(),
    })
}

fn params(program: &Program, launch: &Launch, bases: &[u64]) -> Result<Vec<u8>, ArgumentError> {
    let layout = &program.image.params;
    if layout.regions.len() != launch.args.len() {
        let (has, given) = (layout.regions.len(), launch.args.len());
        return Err(ArgumentError::Count { given, has });
    }
    let mut bytes = vec![0; layout.len as usize];
    for (arg, region) in launch.args.iter().zip(&layout.regions) {
        let value = arg.with_pointers(|of| bases.get(of).copied().unwrap_or(0));
        if value.len() as u64 != region.len {
            return Err(ArgumentError::Size {
                given: value.len(),
                has: region.len,
                parameter: region.name.clone(),
                argument: arg.name.clone(),
            });
        }
        let start = region.start as usize;
        bytes[start..start + value.len()].copy_from_slice(&value);
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waves_hardly_exceed_what_is_left() {
        for (before, spent, left, expected) in [
            (0, 0, u64::MAX, FIRST_WAVE),
            // As many as fit, and one more; never so few that processors wait.
            (64, 64 * 1000, 100_500, 101),
            (64, 64 * 1000, 0, FIRST_WAVE),
            // Those behind may take longer.
            (16, 16, u64::MAX, 64),
            (1 << 20, 1 << 20, u64::MAX, WAVE),
        ] {
            assert_eq!(next_wave(before, spent, left), expected, "{before} {spent}");
        }
    }
}
