//! Options of a run, and what comes out of it.

use std::collections::BTreeMap;

use crate::fault::{Fault, Place};
use crate::lanes::Mask;
use crate::pattern::{Contended, Contention, Patterns};
use crate::program::Program;

/// Options of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Fault where a register, shared or local memory is used before it is written.
    pub uninitialised: bool,
    /// Fault where warps of a block access the same shared memory, one of them writing, with no
    /// barrier between.
    pub races: bool,
    /// What a shuffle reads of a lane that takes no part in it is no fault but a value that is not defined (PTX ISA,
    /// 'shfl.sync'): a NaN, as a float.
    pub loose_shuffles: bool,
    /// Warp instructions that one block may execute.
    pub budget: u64,
    /// Warp instructions that all blocks of a launch may execute together; beginning a block counts as some.
    pub total: u64,
    /// Run the blocks one after the other even where they could run in parallel.
    pub sequential: bool,
    /// Bytes of the heap behind `malloc`.
    pub heap: usize,
    /// Only so many blocks, evenly spread over the grid: enough to count, and no result.
    pub sample: Option<u64>,
    /// Count how the lanes of each access lie in memory ([`InstructionCount::patterns`]).
    pub patterns: bool,
}

impl Options {
    /// How many of so many blocks run.
    pub(crate) fn sampled(&self, blocks: u64) -> u64 {
        self.sample.map_or(blocks, |most| most.max(1).min(blocks))
    }

    /// Which of so many blocks is the n-th that runs.
    pub(crate) fn place(&self, number: u64, blocks: u64) -> u64 {
        let taken = u128::from(self.sampled(blocks).max(1));
        ((2 * u128::from(number) + 1) * u128::from(blocks) / (2 * taken)) as u64
    }
}

impl Default for Options {
    fn default() -> Self {
        Options {
            uninitialised: false,
            races: false,
            loose_shuffles: false,
            budget: 1 << 30,
            total: 1 << 34,
            sequential: false,
            heap: 8 << 20,
            sample: None,
            patterns: false,
        }
    }
}

/// What a run came to.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// The kernel ran to its end.
    Finished(Results),
    /// The program did something wrong.
    Faulted(Box<Fault>),
}

/// What a finished kernel leaves.
#[derive(Clone, Debug)]
pub struct Results {
    /// The final content of every buffer and symbol, in the order of
    /// [`Launch::buffers`](warpwright_launch::Launch::buffers).
    pub buffers: Vec<Vec<u8>>,
    /// Of each of them, the byte behind the last one that was accessed, 0 of none; nothing unless [`Options::patterns`]
    /// asks.
    pub reach: Vec<u64>,
    /// How often instructions were executed.
    pub statistics: Statistics,
    /// The instructions executed whose results the hardware only approximates, by opcode: if there
    /// are any, outputs may differ from the hardware's within the documented errors.
    pub approximate: Vec<Approximation>,
    /// What `printf` wrote, block by block.
    pub printed: String,
}

/// An instruction whose result is approximate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Approximation {
    /// Where it stands.
    pub place: Place,
    /// Executions, in threads.
    pub threads: u64,
}

/// Execution counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Instructions executed, counted once for each warp (guarded ones too, if at least one lane
    /// came to them).
    pub warp_instructions: u64,
    /// Instructions executed, counted once for each thread whose guard held.
    pub thread_instructions: u64,
    /// Thread instructions by the first word of the opcode (`fma`, `ld`).
    pub classes: BTreeMap<String, u64>,
    /// Counts of each instruction of the kernel and the functions it can reach, in program order.
    pub instructions: Vec<InstructionCount>,
    /// Atomic operations that wait for each other; nothing unless [`Options::patterns`] asks.
    pub contention: Contention,
}

/// Counts of one instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstructionCount {
    /// Where it stands.
    pub place: Place,
    /// Its number in its function's body.
    pub inst: warpwright_ptx::ir::Inst,
    /// Its function.
    pub function: warpwright_ptx::ir::FuncId,
    /// Executions by warps.
    pub warps: u64,
    /// Executions by threads whose guard held.
    pub threads: u64,
    /// How its accesses lie in memory; nothing unless [`Options::patterns`] asks.
    pub patterns: Patterns,
}

/// Raw counts by site: warps and threads, and accesses where these are asked for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counts {
    executed: Vec<[u64; 2]>,
    patterns: Vec<Patterns>,
    /// By the number of the allocation.
    reach: Vec<u64>,
    pub contended: Contended,
}

impl Counts {
    pub fn new(sites: usize, options: &Options) -> Self {
        let accessed = if options.patterns { sites } else { 0 };
        Counts {
            executed: vec![[0; 2]; sites],
            patterns: vec![Patterns::default(); accessed],
            reach: Vec::new(),
            contended: Contended::default(),
        }
    }

    /// Those of one block.
    pub fn of_block(sites: usize, options: &Options) -> Self {
        Counts {
            contended: Contended::of_block(),
            ..Counts::new(sites, options)
        }
    }

    #[inline(always)]
    pub fn add(&mut self, site: u32, mask: Mask) {
        if let Some([warps, threads]) = self.executed.get_mut(site as usize) {
            *warps += 1;
            *threads += mask.count_ones() as u64;
        }
    }

    /// Where the accesses of a site are counted, if they are.
    #[inline(always)]
    pub fn patterns_of(&mut self, site: u32) -> Option<&mut Patterns> {
        self.patterns.get_mut(site as usize)
    }

    /// Takes it that an allocation was accessed in front of a byte.
    pub fn note_reach(&mut self, allocation: usize, end: u64) {
        if self.reach.len() <= allocation {
            self.reach.resize(allocation + 1, 0);
        }
        self.reach[allocation] = self.reach[allocation].max(end);
    }

    /// The byte behind the last one of an allocation that was accessed.
    pub fn reach(&self, allocation: usize) -> u64 {
        self.reach.get(allocation).copied().unwrap_or(0)
    }

    pub fn merge(&mut self, other: &Counts) {
        for (allocation, &end) in other.reach.iter().enumerate() {
            self.note_reach(allocation, end);
        }
        for (a, b) in self.executed.iter_mut().zip(&other.executed) {
            a[0] += b[0];
            a[1] += b[1];
        }
        for (a, b) in self.patterns.iter_mut().zip(&other.patterns) {
            a.add(b);
        }
        self.contended.merge(&other.contended);
    }

    pub fn statistics(&self, program: &Program) -> Statistics {
        let mut statistics = Statistics {
            contention: self.contended.contention(),
            ..Statistics::default()
        };
        for (at, (site, &[warps, threads])) in program.sites.iter().zip(&self.executed).enumerate()
        {
            statistics.warp_instructions += warps;
            statistics.thread_instructions += threads;
            if threads > 0 {
                *statistics.classes.entry(site.opcode.clone()).or_default() += threads;
            }
            statistics.instructions.push(InstructionCount {
                place: site.place.clone(),
                inst: site.inst,
                function: site.func,
                warps,
                threads,
                patterns: self.patterns.get(at).copied().unwrap_or_default(),
            });
        }
        statistics
    }

    /// Has anything run whose results hardware approximates?
    pub fn is_approximate(&self, program: &Program) -> bool {
        let mut all = program.sites.iter().zip(&self.executed);
        all.any(|(site, [_, threads])| site.approximate && *threads > 0)
    }

    pub fn approximations(&self, program: &Program) -> Vec<Approximation> {
        let all = program.sites.iter().zip(&self.executed);
        all.filter(|(site, [_, threads])| site.approximate && *threads > 0)
            .map(|(site, &[_, threads])| Approximation {
                place: site.place.clone(),
                threads,
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_spread_over_the_grid() {
        let places = |sample, blocks: u64| -> Vec<u64> {
            let options = Options {
                sample,
                ..Options::default()
            };
            let numbers = 0..options.sampled(blocks);
            numbers.map(|n| options.place(n, blocks)).collect()
        };
        assert_eq!(places(None, 5), [0, 1, 2, 3, 4]);
        assert_eq!(places(Some(9), 5), [0, 1, 2, 3, 4]);
        assert_eq!(places(Some(4), 100), [12, 37, 62, 87]);
        assert_eq!(places(Some(0), 3), [1]);
        let huge = places(Some(2), u64::MAX);
        assert_eq!(huge, [u64::MAX / 4, 3 * (u64::MAX / 4) + 2]);
    }
}
